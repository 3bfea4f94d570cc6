/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tt_ops.h: how the test programs use a stand-in libtt_metal.so. It is the same for every generation:
 * one C++ program runs on all of them, and LD_LIBRARY_PATH (or --lib) selects the library. Functions
 * may throw std::exception; the program catches it.
 */
#ifndef STANDIN_TT_OPS_H
#define STANDIN_TT_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* BufferType of tt-metal. */
enum standin_tt_type { STANDIN_DRAM, STANDIN_L1, STANDIN_SYSTEM, STANDIN_L1_SMALL, STANDIN_TRACE, STANDIN_TYPES };

#define STANDIN_MESH	(-1) /* as a device: the MeshDevice over all of them */
#define STANDIN_SUBMESH (-2) /* and downwards: submeshes, in the order of their making */

/* What a generation has. */
#define STANDIN_HAS_MESH    (1 << 0)
#define STANDIN_HAS_VIEW    (1 << 1) /* Buffer::create with an address */
#define STANDIN_HAS_MARK    (1 << 2)
#define STANDIN_HAS_BULK    (1 << 3) /* and a Buffer shows which allocator it is from; that of e0 does not */
#define STANDIN_HAS_PROFILE (1 << 4)
#define STANDIN_HAS_PAIRS   (1 << 5) /* CalibrateDevice */
#define STANDIN_HAS_SYNC    (1 << 6) /* the record has clock_sync */
#define STANDIN_PAIRS_MONO  (1 << 7) /* host times of pairs are CLOCK_MONOTONIC ns, else time stamp counter */
#define STANDIN_NO_PRIMARY  (1 << 8) /* track_allocate is inlined */
#define STANDIN_HAS_FLAG    (1 << 9) /* Buffer has hooked_allocation_ */

struct standin_tt_buf;
struct standin_tt_program;

/* A circular buffer of a program: size bytes on each core of these ranges, the last core included. */
struct standin_tt_cb {
	uint64_t size;
	unsigned int nr;
	struct {
		unsigned int x0, y0, x1, y1;
	} range[4];
	bool global;
	uint64_t address; /* out */
};

/* A record of the real-time profiler, independent of its layout. */
struct standin_tt_record {
	uint32_t id, chip;
	uint64_t start, end; /* cycles */
	double ghz;
	int64_t sync_offset, sync_error; /* cycles at host time 0; ns */
	const char *const *kernels;
	size_t nr_kernels;
};

/*
 * A call that dispatches: one outermost probed call. kind: as TTMON_TT_DISPATCH_TABLE names it. on:
 * "mesh", "device".
 */
struct standin_tt_dispatch {
	const char *name, *kind, *on;
	void (*call)(void);
};

/* A function that begins with PROBED(), and was called. */
struct standin_tt_site {
	const char *name;
	const void *entry;
	uint64_t hits;
	bool throws;
};

struct standin_tt_ops {
	const char *gen;
	unsigned int has;

	/* Opens the first visible chips, at most the requested number; returns how many. */
	int (*open)(int chips, bool mesh);
	void (*open_close)(void);   /* opens one more device, closes it and destroys it at once */
	void (*close_one)(int dev); /* Device::close; the object stays */
	void (*close)(void);	    /* the MeshDevice and all devices are destroyed */
	const char *(*bdf)(int dev);
	const void *(*device)(int dev); /* address of the object */

	struct standin_tt_buf *(*alloc)(int dev, int type, uint64_t size);
	struct standin_tt_buf *(*alloc_each)(int type, uint64_t size); /* one owning buffer on every device */
	struct standin_tt_buf *(*view)(struct standin_tt_buf *buf);    /* owns nothing */
	void (*dealloc)(struct standin_tt_buf *buf);		       /* DeallocateBuffer; the objects stay */
	void (*mark)(struct standin_tt_buf *buf);		       /* mark_as_deallocated, without the device */
	void (*free)(struct standin_tt_buf *buf);		       /* destroys them */
	void (*capture)(bool on);				       /* NO_DISPATCH graph capture, of this thread */
	void (*bulk)(int dev, bool clear);			       /* Allocator::deallocate_buffers or clear */
	void (*cb)(int dev, uint64_t addr, uint64_t size, unsigned int w, unsigned int h, unsigned int ranges,
		   bool global);
	void (*cb_free)(int dev);

	/*
	 * track_allocate or track_deallocate with an arbitrary pointer: the library does not dereference it.
	 */
	void (*track)(const void *buffer, bool more);
	const void *(*object)(const struct standin_tt_buf *buf, size_t *size); /* its Buffer */

	size_t (*dispatches)(const struct standin_tt_dispatch **ret);
	void (*programs)(const struct standin_tt_record *recs, size_t n, uint64_t dropped); /* profiler callbacks */
	void (*callback)(void (*fn)(void)); /* runs inside every profiler callback; may throw */
	void (*pair)(uint32_t chip, int64_t host, uint64_t cycles, double ghz);

	void (*reopen)(int dev);		/* Device::initialize of a closed device */
	void (*mesh)(bool open);		/* destroys the MeshDevice, or makes it again over all devices */
	int (*submesh)(const int *devs, int n); /* returns its number as a device */
	void (*submesh_free)(int submesh);
	struct standin_tt_program *(*program)(const struct standin_tt_cb *cbs, size_t n);
	/*
	 * Runs on a device or mesh; the first run lays out the circular buffers and reports their addresses.
	 */
	void (*run)(struct standin_tt_program *program, int dev, struct standin_tt_cb *cbs);
	/* laid out again at its next run */
	void (*resize)(struct standin_tt_program *program, size_t cb, uint64_t size);
	void (*program_free)(struct standin_tt_program *program);
	uint64_t (*cb_total)(int dev); /* Device::get_total_cb_allocated */
};

const struct standin_tt_ops *standin_tt_ops(void);
size_t standin_tt_sites(struct standin_tt_site *ret, size_t max);
/* The next call of the function at entry throws, once. */
void standin_tt_arm(const void *entry);
bool standin_tt_armed(void);

#ifdef __cplusplus
}
#endif
#endif
