/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/model/mt.h: the model. One record for all sources: one warp-level memory instruction that
 * was executed with at least one active lane (a "request"), or one side of one that has two (LDGSTS,
 * cp.async: shared destination and global source).
 *
 * Data that many records share is in a dictionary: sites (instructions, or kernel and opcode if a
 * source has no finer name) and launches. Records have their indexes. Sources are not trusted, but
 * readers guarantee: an index in a record is in range, a width is 1 to 64, a mask is not 0, a text is
 * "" rather than NULL. Texts are not cleaned: clean them before printing.
 */
#ifndef TTMON_MEMTRACE_MT_H
#define TTMON_MEMTRACE_MT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TTMON_MT_LANES	32
#define TTMON_MT_SECTOR 32  /* bytes: what a request is counted in */
#define TTMON_MT_LINE	128 /* bytes: an L1 tag, four sectors */

#define TTMON_MT_MAX_SITES    (1u << 20)
#define TTMON_MT_MAX_LAUNCHES (1u << 22)
#define TTMON_MT_MAX_TEXT     4096 /* bytes of one text; longer ones are cut */

enum ttmon_mt_space {
	TTMON_MT_GENERIC, /* by address: global, or a window onto shared or local memory */
	TTMON_MT_GLOBAL,
	TTMON_MT_SHARED, /* addresses are offsets in the window */
	TTMON_MT_LOCAL,	 /* addresses are offsets of the thread */
	TTMON_MT_SPACE_MAX
};

enum ttmon_mt_kind {
	TTMON_MT_LOAD,
	TTMON_MT_STORE,
	TTMON_MT_ATOM,	   /* read and write, returns a value */
	TTMON_MT_RED,	   /* the same without a value */
	TTMON_MT_COPY_SRC, /* cp.async, LDGSTS: the global side, a read */
	TTMON_MT_COPY_DST, /* its shared side, a write */
	TTMON_MT_LDMATRIX, /* a row pointer of 16 bytes for each lane that gives one */
	TTMON_MT_STMATRIX,
	TTMON_MT_PREFETCH, /* moves no data to a register: counted apart, and left out of efficiencies */
	TTMON_MT_KIND_MAX
};

static inline bool ttmon_mt_reads(unsigned int kind)
{
	return kind != TTMON_MT_STORE && kind != TTMON_MT_COPY_DST && kind != TTMON_MT_STMATRIX &&
	       kind != TTMON_MT_PREFETCH;
}
static inline bool ttmon_mt_writes(unsigned int kind)
{
	return kind == TTMON_MT_STORE || kind == TTMON_MT_ATOM || kind == TTMON_MT_RED || kind == TTMON_MT_COPY_DST ||
	       kind == TTMON_MT_STMATRIX;
}

struct ttmon_mt_site {
	const char *kernel;	    /* "" where not known */
	const char *opcode;	    /* "LDG.E.64", "ld.global.v4.f32" */
	const char *file;	    /* source file, ""; with line */
	const char *module;	    /* where its code came from, "" */
	uint64_t pc;		    /* in the kernel, where the source has it; else 0 */
	uint32_t line;		    /* of file; 0: not known */
	uint32_t text_line;	    /* of the PTX; 0 */
	uint8_t space, kind, width; /* width: bytes a lane; of the site, unless a record says otherwise */
	uint8_t flags;		    /* TTMON_MT_SITE_* */
};
#define TTMON_MT_SITE_GUESSED  (1 << 0) /* an opcode that is not known: space, kind and width are guesses */
#define TTMON_MT_SITE_FUNCTION (1 << 1) /* kernel is the name of a device function, which several kernels may call */

struct ttmon_mt_launch {
	uint64_t id;  /* as the source numbers them; of one context */
	uint64_t ctx; /* number of the context; 0: not known */
	const char *kernel;
	uint32_t grid[3], block[3]; /* 0: not known */
	uint32_t regs, shmem;	    /* registers a thread, bytes of shared memory; 0 */
	uint64_t stream;
	uint64_t time_ns;		  /* CLOCK_MONOTONIC when the program launched it; 0: not known */
	uint64_t shared_base, local_base; /* windows of generic addresses; 0: not known. 16 MiB each */
	uint32_t pid;			  /* of the program; 0 */
	uint8_t flags;			  /* TTMON_MT_LAUNCH_* */
};
#define TTMON_MT_LAUNCH_MADE_UP (1 << 0) /* records name it, but the source does not describe it */
#define TTMON_MT_LAUNCH_GRAPH	(1 << 1) /* a node of a graph: all its replays are one launch here */
#define TTMON_MT_LAUNCH_SAMPLED (1 << 2) /* only some of its blocks were recorded */
/*
 * id is its number among all launches of its process, in the order in which they were made: from 0;
 * from 1.
 */
#define TTMON_MT_LAUNCH_NTH_0 (1 << 3)
#define TTMON_MT_LAUNCH_NTH_1 (1 << 4)

/*
 * Lane i of mask accesses width bytes at base + stride * (i - first), first being the lowest lane of
 * mask; or at addr[i].
 */
struct ttmon_mt_rec {
	uint64_t base;	      /* address of the lowest active lane, in both shapes */
	const uint64_t *addr; /* NULL: affine. Else 32 addresses; those of lanes that are not in mask are anything */
	int64_t stride;	      /* bytes a lane; affine with one lane: 0 */
	uint64_t seq;	      /* order of arrival, over the whole trace */
	uint32_t mask;
	uint32_t site, launch; /* indexes in the dictionary */
	uint32_t cta[3];
	uint16_t warp; /* within the block (rank), or hardware slot: TTMON_MT_SLOT */
	uint16_t sm;   /* TTMON_MT_NO_SM: not known */
	/* of the site, or found for a generic access; GENERIC: still not known, treat it as global */
	uint8_t space;
	uint8_t width; /* bytes a lane */
	uint8_t flags; /* TTMON_MT_* below */
};
#define TTMON_MT_NO_SM 0xffff
#define TTMON_MT_INFERRED \
	(1 << 0) /* the mask is inferred: inactive lanes may be counted, and active ones at address 0 not counted */
#define TTMON_MT_SLOT (1 << 1) /* warp is a hardware slot (%warpid), not the rank in the block */

#define TTMON_MT_CLASSES     9			  /* enum ttmon_mt_class of memtrace/model/shape.h */
#define TTMON_MT_COST_BINS   (TTMON_MT_LANES + 2) /* [n]: requests of n; the last: more than 32 */
#define TTMON_MT_PAGES_BINS  7			  /* 1, 2, 3-4, 5-8, 9-16, 17-32, more */
#define TTMON_MT_AGG_STRIDES 3

/*
 * Counters of one site that were kept on the GPU (aggregate mode), in place of records. The sums are
 * those that its records would have.
 */
struct ttmon_mt_agg {
	uint32_t site;
	uint32_t launch;	     /* TTMON_MT_NO_LAUNCH: all launches together */
	uint64_t requests, full;     /* full: of these, with all 32 lanes */
	uint64_t lanes, bytes;	     /* bytes: lanes x width */
	uint64_t sectors, lines;     /* 0 in shared memory */
	uint64_t ideal_lanes;	     /* sum of ceil(lanes x width / 32); 0 in shared memory */
	uint64_t waves, ideal_waves; /* shared memory wavefronts; 0 elsewhere */
	uint64_t min_addr, max_addr; /* of any lane, max_addr the last byte; min > max: none */
	/*
	 * What follows is 0 where shapes is: an older file has none of it. As memtrace/model/shape.h defines
	 * it for one request, added up; same and max_same of atomics and reductions alone.
	 */
	uint32_t shapes, max_same, max_waves, pad;
	uint64_t unique, ideal, misaligned, pages_4k, pages_64k, pages_2m, phases, same;
	uint64_t classes[TTMON_MT_CLASSES];
	uint64_t lanes_hist[TTMON_MT_LANES + 1]; /* [n]: requests of n lanes */
	uint64_t cost_hist[TTMON_MT_COST_BINS];	 /* of n sectors; in shared memory, wavefronts */
	uint64_t lines_hist[TTMON_MT_COST_BINS];
	uint64_t pages_4k_bins[TTMON_MT_PAGES_BINS], pages_2m_bins[TTMON_MT_PAGES_BINS]; /* global memory */
	/*
	 * The first strides of STRIDED and SEGMENTED requests, bytes, and requests of each. 0: none; those of
	 * other strides, and of 0, are the rest of the classes.
	 */
	int64_t stride[TTMON_MT_AGG_STRIDES];
	uint64_t stride_requests[TTMON_MT_AGG_STRIDES];
};
#define TTMON_MT_NO_LAUNCH UINT32_MAX

/* A range that the GPU touched, reported by a producer in place of records: merged pages. */
struct ttmon_mt_touch {
	uint64_t addr, size;	/* bytes */
	uint64_t reads, writes; /* requests; 0 and 0: not known which */
	uint32_t launch;	/* TTMON_MT_NO_LAUNCH */
	uint32_t pid;		/* of the program; 0: not known */
};

/* A kernel that a producer saw: whether it is in the trace, and if not, why. */
struct ttmon_mt_kernel {
	const char *name, *module;
	const char *why; /* "" where it is recorded; else "no PTX", "not selected", "the driver did not take it: ..." */
	uint64_t launches; /* seen; 0 where not counted */
	uint64_t recorded; /* of these, with the recorder */
	uint32_t sites;	   /* instructions that are recorded */
	uint32_t left_out; /* instructions that access memory and are not: bulk copies, tensor, texture, multimem */
};

struct ttmon_mt_dict {
	struct ttmon_mt_site *sites;
	size_t nr_sites;
	struct ttmon_mt_launch *launches;
	size_t nr_launches;
	struct ttmon_mt_agg *aggs;
	size_t nr_aggs;
	struct ttmon_mt_touch *touches;
	size_t nr_touches;
	struct ttmon_mt_kernel *kernels; /* coverage */
	size_t nr_kernels;
};

/* Data that is missing or in doubt. Shown with every result. */
struct ttmon_mt_stats {
	uint64_t bytes;	     /* read from the source */
	uint64_t records;    /* passed to the caller */
	uint64_t inferred;   /* of these, with an inferred mask */
	uint64_t foreign;    /* lines of another process: the program's own output, banners */
	uint64_t malformed;  /* lines or records that begin like a record but cannot be parsed: torn, cut, or absurd */
	uint64_t unknown_op; /* records whose opcode is not known */
	uint64_t no_launch;  /* records whose launch the source does not describe */
	uint64_t produced, dropped; /* by the producer's count; both 0 if it has none */
	uint64_t skewed;	    /* launch ids corrected by one (NVBit 1.5) */
	/*
	 * Records with lanes counted as inactive because their addresses are in no known allocation; number of
	 * these lanes.
	 */
	uint64_t outside, outside_lanes;
	uint32_t sample; /* one of this many blocks was recorded; 0 or 1: all */
	bool cut;	 /* the source ends in the middle */
	bool grouped;	 /* some records come grouped by site, not in the order in which they arrived */
	char tool[64];	 /* "NVBit 1.5.5 mem_trace", "Accel-Sim tracer 5", "ttmon" */
};

/* ---- opcodes (memtrace/model/opcode.c) ---- */

/*
 * What a SASS opcode ("LDG.E.64.SYS", "ATOMS.ADD", "LDGSTS.E.BYPASS.LTC128B.128") does. len bytes of
 * text. operand: which of its memory operands (LDGSTS: 0 the shared destination, 1 the global source).
 * Fills space, kind, width, flags of site (GUESSED where it is not known; then as a generic load of 4
 * bytes). Rules: ../shared/facts/memtrace.md 3, NVIDIA's opcode lists. Returns whether it accesses
 * memory at all.
 */
bool ttmon_mt_sass(const char *opcode, size_t len, unsigned int operand, struct ttmon_mt_site *site);

const char *ttmon_mt_space_name(unsigned int space); /* "generic", "global", "shared", "local" */
/* "load", "store", "atomic", "reduction", "copy from", "copy to", "ldmatrix", "stmatrix", "prefetch" */
const char *ttmon_mt_kind_name(unsigned int kind);

/* ---- a dictionary that grows (memtrace/model/dict.c) ---- */

struct ttmon_mt_words; /* owns the texts */

struct ttmon_mt_dictw {
	struct ttmon_mt_dict dict;
	size_t cap_sites, cap_launches, cap_aggs, cap_touches, cap_kernels;
	struct ttmon_mt_words *words;
};

/*
 * These copy their argument with its texts (cut at TTMON_MT_MAX_TEXT). Return the index, or -ENOMEM,
 * or -E2BIG beyond the limits above.
 */
int64_t ttmon_mt_dict_site(struct ttmon_mt_dictw *d, const struct ttmon_mt_site *site);
int64_t ttmon_mt_dict_launch(struct ttmon_mt_dictw *d, const struct ttmon_mt_launch *launch);
int64_t ttmon_mt_dict_agg(struct ttmon_mt_dictw *d, const struct ttmon_mt_agg *agg);
int64_t ttmon_mt_dict_touch(struct ttmon_mt_dictw *d, const struct ttmon_mt_touch *touch);
int64_t ttmon_mt_dict_kernel(struct ttmon_mt_dictw *d, const struct ttmon_mt_kernel *kernel);
void ttmon_mt_dict_fini(struct ttmon_mt_dictw *d); /* a zeroed one is empty */

#endif
