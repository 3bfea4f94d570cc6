/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ev_tt.h: records about Tenstorrent's memory, dispatches and devices. Part of event.h, which includes
 * it.
 */
#ifndef TTMON_EV_TT_H
#define TTMON_EV_TT_H

/*
 * Tenstorrent. The layout of tt-metal's objects differs between versions and no header describes them
 * all, so the probes send words of memory as they are, and daemon/core/tt/layout.c finds their
 * meaning. Objects behind pointers are recognized by the first word of a device, the address of its
 * vtable (the library's slot has its place, see struct ttmon_tt_slot in tt_fns.h).
 */

/* Which pointer led to a device, and so where the fields of a Buffer were read. */
enum ttmon_tt_base {
	TTMON_TT_BASE_NONE, /* no vtable was recognised: w is the Buffer itself */
	TTMON_TT_BASE_0,    /* the device is the Buffer's first word (tt-metal until mid-2025) */
	TTMON_TT_BASE_16,   /* the device is the word at byte 16 (E2); w is the Buffer itself */
	/* the word at byte 16 leads to an impl whose first word is the device (E4); w is the impl */
	TTMON_TT_BASE_IMPL,
	TTMON_TT_BASE_MAX
};

enum ttmon_tt_dev { TTMON_TT_DEV_UNKNOWN, TTMON_TT_DEV_DEVICE, TTMON_TT_DEV_MESH, TTMON_TT_DEV_MAX };

#define TTMON_TT_BUFFER_WORDS 12
#define TTMON_TT_DEVICE_WORDS 5

struct ttmon_ev_tt_buffer {
	struct ttmon_event h;
	__u64 buffer;			  /* address of the Buffer object */
	__u64 device;			  /* address of its IDevice, 0 with TTMON_TT_BASE_NONE */
	__u64 w[TTMON_TT_BUFFER_WORDS];	  /* words, see base */
	__u64 dev[TTMON_TT_DEVICE_WORDS]; /* first words of the device; 0 with TTMON_TT_BASE_NONE */
	__u16 fn;			  /* tt_fns.h */
	__u8 base;			  /* enum ttmon_tt_base */
	__u8 dev_kind;			  /* enum ttmon_tt_dev */
	__u16 slot;			  /* of the library, as in TT_OBJECT */
	__u16 pad;
};

/* Arguments by the function's class (tt_fns.h); arguments that do not exist are 0. */
struct ttmon_ev_tt_call {
	struct ttmon_event h;
	__u64 arg[6];
	__u16 fn;
	__u8 dev_kind; /* of the device among the arguments, enum ttmon_tt_dev */
	__u8 pad;
	__u16 slot;
	__u16 pad2;
};

/*
 * A TT_CALL of class CB is longer: it has the cores of the circular buffer, and the program it belongs
 * to. The record ends behind the last valid range, or later. A record of an earlier version has
 * neither.
 */
struct ttmon_tt_core_range {
	__u8 x0, y0, x1, y1; /* inclusive: the last core belongs to it */
};
#define TTMON_TT_CORE_RANGES	 64
#define TTMON_TT_CORE_RANGES_FEW 8 /* most records have no more ranges */
struct ttmon_ev_tt_cb {
	struct ttmon_ev_tt_call call;
	__u64 program;	/* address of its ProgramImpl, 0: not known */
	__u64 since_ns; /* when the layout of the program's circular buffers that includes this one began */
	__u64 dev[TTMON_TT_DEVICE_WORDS]; /* first words of the device; 0 if it is not a known device */
	__u32 nr_ranges;		  /* 0: could not be read, or more than TTMON_TT_CORE_RANGES */
	__u32 pad;
	struct ttmon_tt_core_range range[TTMON_TT_CORE_RANGES];
};

/* Kinds of dispatches; indexes of sums. Append-only. */
#define TTMON_TT_DISPATCH_TABLE(X)                                                                \
	X(0, WORKLOAD, "workload") /* a program or mesh workload enqueued */                      \
	X(1, TRACE, "trace")	   /* a captured trace replayed: its programs are not enqueued */ \
	X(2, SLOW, "slow")	   /* slow dispatch: the host launches it core by core */         \
	X(3, WRITE, "write")	   /* buffer write enqueued */                                    \
	X(4, READ, "read")                                                                        \
	X(5, FINISH, "finish")
enum ttmon_tt_dispatch {
#define X(id, NAME, name) TTMON_TT_##NAME = id,
	TTMON_TT_DISPATCH_TABLE(X)
#undef X
		TTMON_TT_DISPATCH_MAX
};

/*
 * Sent for at most TTMON_TT_DISPATCH_BURST dispatches of a process on a CPU to a device in a
 * millisecond. The sums count all dispatches of (process, CPU, device) since the process was first
 * seen, including this one; daemon/core computes the difference to the last record. Sums never go
 * down, but two threads that preempt each other on a CPU may send theirs in the other order: the
 * larger one counts.
 */
#define TTMON_TT_DISPATCH_BURST 16
struct ttmon_ev_tt_dispatch {
	struct ttmon_event h;
	__u64 device; /* MeshDevice or Device it goes to, 0: unknown */
	__u64 what;   /* address of the workload or program; id of the trace; 0 */
	__u64 sums[TTMON_TT_DISPATCH_MAX];
	__u16 fn;
	__u8 kind; /* enum ttmon_tt_dispatch */
	__u8 dev_kind;
	__u8 blocking; /* 1: the caller waits */
	__u8 pad;
	__u16 slot;
};

/*
 * w: the first 8 words of the record as tt-metal stores it; there are several layouts, see
 * daemon/core/dispatch/record.c.
 */
struct ttmon_ev_tt_program {
	struct ttmon_event h;
	__u64 w[8];
	__u64 dropped; /* records that tt-metal reports as lost before this batch */
	__u32 nth;     /* position in its batch, from 0 */
	__u32 count;   /* size of the batch; 1 if the function gets one record */
	__u16 fn;
	__u8 stride; /* bytes from one record to the next, as found at run time; 0: one record */
	__u8 pad;
	__u16 slot;
	__u16 pad2;
};

/*
 * The nth kernel source of a program, sent once for each program id of a process as far as the
 * kernel's table remembers.
 */
struct ttmon_ev_tt_kernel {
	struct ttmon_event h;
	__u32 program; /* as in the record: 16 bits that wrap */
	__u32 nth;
	char name[192]; /* NUL-terminated; a longer path is cut at its beginning */
};

/* Host memory that tt-kmd holds for a process (tt-kmd's ioctl.h, 4af71921). */
enum ttmon_tt_pin_op {
	TTMON_TT_PIN,
	TTMON_TT_UNPIN,
	TTMON_TT_DMA_BUF,
	/* the last reference to the open device is gone, and with it all it held; of its pinner's process */
	TTMON_TT_CLOSE,
	TTMON_TT_PIN_OP_MAX
};
struct ttmon_ev_tt_pin {
	struct ttmon_event h;
	__u64 entry_ns;
	__u64 addr; /* PIN, UNPIN: user address; DMA_BUF: 0, the buffer belongs to the driver until it is mapped */
	__u64 size;
	__s32 err;     /* 0 or -errno */
	__u32 ordinal; /* N of /dev/tenstorrent/N */
	__u32 flags;   /* as passed */
	__u32 op;      /* enum ttmon_tt_pin_op */
	__u32 file;    /* the open device that holds it; 0: not known, its end is not seen */
	__u32 pad;
};

/* ---- facts ---- */

enum ttmon_tt_arch {
	TTMON_TT_ARCH_UNKNOWN,
	TTMON_TT_GRAYSKULL,
	TTMON_TT_WORMHOLE,
	TTMON_TT_BLACKHOLE,
	TTMON_TT_ARCH_MAX
};
#define TTMON_TT_CHIP_REMOTE (1 << 0) /* the remote chip of an N300: it has no node */
#define TTMON_TT_CHIP_GALAXY (1 << 1) /* tray and chip are known */
#define TTMON_TT_CHIP_GONE   (1 << 2) /* no longer in sysfs */
/* not in sysfs at all: known from a process's key (or only from a logical id) */
#define TTMON_TT_CHIP_LEARNED (1 << 3)

/* A chip; sent again whenever something about it is learned. Unknown numbers are 0. */
struct ttmon_ev_tt_chip {
	struct ttmon_event h;
	__u32 index; /* 1, 2, ...: assigned by the daemon */
	__u32 flags; /* TTMON_TT_CHIP_* */
	__u64 board_id;
	__u64 asic_id;	 /* tt_asic_id */
	__u64 unique_id; /* UMD's chip_unique_id: file key of versions 2 and up */
	__u64 key_v1;	 /* (board_id << 8) | location: file key of version 1 */
	__u64 dram_bytes, l1_bytes;
	__u32 ordinal;	 /* N of /dev/tenstorrent/N; of the near half for a remote chip; 0xffffffff: none */
	__u32 bdf;	 /* domain << 16 | bus << 8 | device << 3 | function; 0xffffffff: unknown */
	__u8 arch;	 /* enum ttmon_tt_arch */
	__u8 location;	 /* asic location: the low byte of key_v1 */
	__u8 tray, chip; /* Galaxy: 1.. */
	__u32 pad;
	char card[24]; /* tt_card_type, NUL-terminated ("galaxy-blackhole" has 16 letters) */
};

/*
 * Bits of ttmon_ev_tt_object.has: the ways to see allocations in this library (functions found and
 * probed).
 */
#define TTMON_TT_HAS_PRIMARY  (1 << 0) /* track_allocate and track_deallocate, or their successors */
#define TTMON_TT_HAS_FALLBACK (1 << 1) /* allocate_impl and what frees */
#define TTMON_TT_HAS_CREATE   (1 << 2) /* Buffer::create: sizes and types to check layouts with */
#define TTMON_TT_HAS_SHADOW   (1 << 3) /* Buffer::create with an address: which chips a mesh has */
#define TTMON_TT_HAS_DEVICE   (1 << 4) /* Device::Device */
#define TTMON_TT_HAS_VTABLE   (1 << 5) /* Device's vtable is known */
#define TTMON_TT_HAS_MESH     (1 << 6) /* MeshDevice's vtable is known */
#define TTMON_TT_HAS_SHM      (1 << 7) /* SharedMemoryStatsProvider: the program may publish by itself */
#define TTMON_TT_HAS_CB	      (1 << 8)
#define TTMON_TT_HAS_DISPATCH (1 << 9)
#define TTMON_TT_HAS_PROGRAMS (1 << 10)
#define TTMON_TT_HAS_SYNC     (1 << 11)
#define TTMON_TT_HAS_CB_OF    (1 << 13) /* the program of a circular buffer, from its beginning to its end */
/* the probes that a working primary pair makes unnecessary are attached now */
#define TTMON_TT_HAS_SPARE (1 << 12)

struct ttmon_ev_tt_object {
	struct ttmon_event h;
	__u32 object; /* id of its OBJECT fact */
	__u32 has;    /* TTMON_TT_HAS_* */
	__u32 slot;
	/*
	 * 1 << enum ttmon_tt_dispatch: kinds with a function that is not probed, so that not all are counted
	 */
	__u32 unprobed;
};

/* How a process's logical device id was mapped to a chip, best first. */
#define TTMON_TT_HOW_TABLE(X)                                                                                  \
	X(0, NONE, "unknown")                                                                                  \
	X(1, PROVIDER, "provider")	 /* the program's own SharedMemoryStatsProvider gave its key */        \
	X(2, MAPPED, "mapped file")	 /* the only tt_device file it has mapped */                           \
	X(3, VISIBLE, "visible devices") /* TT_VISIBLE_DEVICES over the chips in order of their bus address */ \
	X(4, OPEN, "open device")	 /* the only chip it has open */                                       \
	X(5, ONLY, "only chip")		 /* the host has one */                                                \
	X(6, ORDER, "bus order")	 /* the nth chip by bus address */
enum ttmon_tt_how {
#define X(id, NAME, name) TTMON_TT_HOW_##NAME = id,
	TTMON_TT_HOW_TABLE(X)
#undef X
		TTMON_TT_HOW_MAX
};

#define TTMON_TT_PROC_OWN_SHM (1 << 0) /* it has a tt_device_*_memory file mapped: it publishes its memory itself */

struct ttmon_ev_tt_proc {
	struct ttmon_event h; /* tgid */
	__u32 logical;	      /* logical device id in that process */
	__u32 chip;	      /* index of a TT_CHIP fact, 0: unknown */
	__u32 how;	      /* enum ttmon_tt_how */
	__u32 flags;	      /* TTMON_TT_PROC_* of the process as a whole */
};

/*
 * The kernel's sums of h.tgid on of_cpu for a device, read at h.ts_ns; same meaning as in TT_DISPATCH
 * from that CPU.
 */
struct ttmon_ev_tt_sums {
	struct ttmon_event h;
	__u64 device;
	__u64 sums[TTMON_TT_DISPATCH_MAX];
	__u32 of_cpu;
	__u8 dev_kind;
	__u8 pad[3];
};

/* tsc was read between from_ns and h.ts_ns (CLOCK_MONOTONIC). */
struct ttmon_ev_tsc {
	struct ttmon_event h;
	__u64 from_ns;
	__u64 tsc;
};

#define TTMON_TT_MESH_MAX 64
struct ttmon_tt_mesh_dev {
	__u64 device;  /* address of the Device */
	__u32 logical; /* its chip id */
	__u32 pad;
};
struct ttmon_ev_tt_mesh {
	struct ttmon_event h; /* tgid */
	__u64 mesh;	      /* address of the MeshDevice */
	__u32 count;	      /* <= TTMON_TT_MESH_MAX; 0: looked for chips and found none */
	__u32 pad;
	struct ttmon_tt_mesh_dev dev[];
};

#endif
