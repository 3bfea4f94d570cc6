/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/analyse/an.h: analyses a trace in one pass and bounded memory: sums for each site, launch,
 * kernel and buffer; the working set; reuse distances; a heat map; findings in words. Only reuse
 * distances depend on the order of the records. It needs one batch of records at a time.
 *
 * Results are sums over requests, never averages of ratios. Efficiency is the 32-byte sectors that
 * were needed, divided by those that were transferred:
 *	unique		sum of unique bytes / (32 x sum of sectors): at most 1; the default meaning
 *			of "efficiency"
 *	requested	sum of requested bytes / (32 x sum of sectors): nvprof's gld_efficiency; over 1
 *			where lanes overlap
 *
 * Sums made by the GPU (aggregates) are as exact as records, but have no order of requests: no steps,
 * reuse or heat, and nothing about single launches. Aggregates of older files have no unique bytes:
 * requested bytes are used, limited to what was moved, so broadcasts look better than they are.
 * Prefetches are only in the row of their site and in the mix of their kernel, without sectors. A
 * generic access of unknown space counts as global; if the launch's windows are known, it counts as
 * shared or local by its address.
 *
 * Memory: 1.3 to 1.6 KiB a site, kernel and buffer and 3.8 KiB a launch that records name, up to the
 * limits of the options, past which one row has the rest; 6 MiB at most for pairs of a site and a
 * buffer; 16 bytes a site and 4 a launch of the dictionary; a heat map of rows x cols x 4 bytes for
 * each of the first 256 buffers; distinct sectors exactly for 1 GiB of each of three launches and for
 * 4 GiB of all buffers (a sixteenth of what is left for each, at least 2 MiB), past that as estimates,
 * of 2,048 buffers; reuse as its option says.
 */
#ifndef TTMON_MEMTRACE_AN_H
#define TTMON_MEMTRACE_AN_H

#include "memtrace/model/map.h"
#include "memtrace/model/shape.h"

#define TTMON_MT_LANES_BINS 6 /* 1, 2-3, 4-7, 8-15, 16-31, 32 */

struct ttmon_mt_sums {
	uint64_t requests, records; /* records: requests recorded one by one; the others are sums of the GPU */
	uint64_t inferred;	    /* requests whose mask of active lanes is inferred */
	uint64_t lanes, full;	    /* full: requests with all 32 lanes */
	uint64_t bytes, unique;
	uint64_t sectors, lines, ideal, ideal_lanes;
	uint64_t misaligned;
	uint64_t pages_4k, pages_64k, pages_2m;
	uint64_t waves, phases, ideal_waves; /* shared memory */
	uint64_t same; /* atomics and reductions: sum over requests of the most lanes on one word */
	uint32_t max_same, max_waves;
	uint64_t reads, writes;			   /* requests; an atomic is both */
	uint64_t classes[TTMON_MT_CLASS_MAX];	   /* requests */
	uint64_t lines_hist[TTMON_MT_LANES + 2];   /* [n]: requests with n lines; the last: more */
	uint64_t sectors_hist[TTMON_MT_LANES + 2]; /* [n]; the last: more than 32 */
	uint64_t waves_hist[TTMON_MT_LANES + 2];
	uint64_t lanes_bins[TTMON_MT_LANES_BINS]; /* requests by active lanes: [k] has 2^k to 2^(k + 1) - 1 of them */
	/*
	 * Requests of global memory by distinct pages of 4 KiB and of 2 MiB: [0] one, [k] 2^(k - 1) + 1 to
	 * 2^k, the last: more.
	 */
	uint64_t pages_4k_bins[TTMON_MT_PAGES_BINS], pages_2m_bins[TTMON_MT_PAGES_BINS];
	int64_t stride; /* stride of most STRIDED and SEGMENTED requests, found by majority vote; 0: none */
	uint64_t stride_votes;
	/*
	 * distance in bytes from one request of a warp to its next at this site, by majority vote; 0: none, or
	 * always the same place
	 */
	int64_t step;
	uint64_t step_votes;
	uint64_t min_addr, max_addr; /* max_addr: the last byte; min > max: none */
};

/*
 * Returns an efficiency: 0 to 1 (requested may be higher); -1 if no sectors are counted. Not for sums
 * that include shared memory, whose bytes do not belong to sectors.
 */
double ttmon_mt_efficiency(const struct ttmon_mt_sums *s, bool requested);
/* Returns the class of most requests, and their share, 0 to 1. */
unsigned int ttmon_mt_main_class(const struct ttmon_mt_sums *s, double *share);
void ttmon_mt_sums_add(struct ttmon_mt_sums *to, const struct ttmon_mt_sums *s);

enum ttmon_mt_reuse { TTMON_MT_REUSE_SAMPLED, TTMON_MT_REUSE_EXACT, TTMON_MT_REUSE_OFF };

struct ttmon_mt_an_opts {
	const struct ttmon_mt_map *map; /* allocations; NULL: buffers are ranges of adjacent 2 MiB chunks */
	/* Selects the records that count; NULL: all. */
	bool (*want)(void *ctx, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec);
	void *ctx;
	enum ttmon_mt_reuse reuse;
	uint32_t reuse_max; /* number of sectors remembered; 0: 16,384 sampled, 16 Mi exact */
	/* limits of rows; 0: 16,384 of each. The rest goes into one row "others" */
	uint32_t max_sites, max_launches, max_buffers;
	/* of the heat map: parts of each buffer, and of the trace by records; 0: 64 x 128; at most 1,024 */
	uint32_t heat_rows, heat_cols;
};

struct ttmon_mt_an;

/* opts may be NULL. Returns 0 or -ENOMEM */
int ttmon_mt_an_new(const struct ttmon_mt_an_opts *opts, struct ttmon_mt_an **ret);
/*
 * Adds records. Returns 0; -EINVAL (a record without a mask, of an unknown space, or whose site or
 * launch is not in dict); -ENOMEM; records before the bad one are counted.
 */
int ttmon_mt_an_feed(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *recs,
		     size_t n);
/*
 * Adds the contents of dict that are not records (aggregates, touches), and makes the results below,
 * which are valid as of the last call. It may be called at any time, and feeding may continue. Returns
 * 0, -EINVAL or -ENOMEM. Touches are left out if want is set, because they belong to no site. For an
 * aggregate of all launches together rec->launch is TTMON_MT_NO_LAUNCH.
 */
int ttmon_mt_an_settle(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict);
/*
 * Passes the source's statistics of missing data, so that findings can distinguish "never touched"
 * from "no access was recorded". Without it they say the latter.
 */
void ttmon_mt_an_stats(struct ttmon_mt_an *an, const struct ttmon_mt_stats *stats);
void ttmon_mt_an_free(struct ttmon_mt_an *an);

/* ---- results: valid until the next feed or settling; texts are the dictionary's ---- */

struct ttmon_mt_row {
	uint32_t index; /* index of the site or launch in the dictionary; UINT32_MAX: "others" */
	struct ttmon_mt_sums sums;
};

/*
 * One row for each site; for a generic site with records of several spaces, one for each space. In the
 * order of first occurrence.
 */
struct ttmon_mt_site_row {
	uint32_t site; /* UINT32_MAX: others */
	uint8_t space, kind, width;
	struct ttmon_mt_sums sums;
};

/*
 * Instructions of one source line that do the same (copies by unrolling and inlining, or fields of one
 * structure) are one group; a row without a source line is a group by itself.
 */
struct ttmon_mt_site_group {
	uint32_t row;			     /* index of the site's row: the worst of the group */
	uint32_t nr;			     /* number of instructions in the group */
	const struct ttmon_mt_site_row *all; /* its sums are those of the whole group */
};

/* Returns what could be saved at a site: sectors, or wavefronts for shared memory. */
uint64_t ttmon_mt_waste(const struct ttmon_mt_site_row *row);

struct ttmon_mt_launch_row {
	uint32_t launch;
	struct ttmon_mt_sums global, shared, local; /* generic accesses of unknown space count as global */
	/*
	 * sectors: distinct sectors of global memory, the working set. again: of these, also touched by the
	 * launch before. Two launches are open at a time, in the order of their first records; records that
	 * come after a third one began are in the sums but not here, and then estimate is set.
	 */
	uint64_t sectors, again;
	bool estimate;
};

/* One kernel with all its launches: the mix of its instructions, counted in requests. */
struct ttmon_mt_kernel_row {
	const char *kernel; /* "(others)": kernels beyond the limit */
	bool function;	    /* a device function, whose sums (by the GPU) are of all kernels that call it */
	bool summed;	    /* has sums by the GPU of all launches together */
	/* number of launches in the records; if summed, launches that the program made with recording */
	uint64_t launches;
	uint64_t requests[TTMON_MT_SPACE_MAX][TTMON_MT_KIND_MAX];
	uint64_t widths[7];	   /* 1, 2, 4, 8, 16, 32, other */
	struct ttmon_mt_sums sums; /* global */
};

struct ttmon_mt_buffer_row {
	uint32_t alloc;		   /* index in the map; UINT32_MAX: no allocation is known there */
	uint64_t addr, size;	   /* 0 and 0: "others" */
	uint64_t low, high;	   /* touched: first byte, last byte + 1 */
	struct ttmon_mt_sums sums; /* of requests whose first lane is in the buffer; reads and writes include touches */
	uint64_t sectors;	   /* distinct sectors over the whole trace; 0: not counted */
	bool estimate;
	uint32_t first_launch, last_launch; /* indexes; UINT32_MAX: not known */
	/*
	 * requests of ttmon_mt_touch (or 1 each if their number is not known), and requests whose first lane
	 * is elsewhere
	 */
	uint64_t touches;
	uint64_t unknown; /* touches of which it is not known whether they read or write */
	bool ambiguous;	  /* another allocation had these addresses too, and the trace does not show which one it was */
	bool by_order;	  /* the same, but the number of the launch decided */
};

/*
 * The accesses of one instruction to one buffer: requests whose first lane is in it, with all their
 * sectors.
 */
struct ttmon_mt_pair {
	uint32_t buffer, site; /* rows */
	uint64_t requests, sectors, ideal, ideal_lanes;
};

enum ttmon_mt_find {
	/*
	 * a site with at least 5 % of all sectors, an efficiency below 50 %, and possible savings of a quarter
	 * of its sectors
	 */
	TTMON_MT_FIND_UNCOALESCED,
	TTMON_MT_FIND_MISALIGNED, /* most sequential requests take one sector more */
	/*
	 * stride of 8 to 128 bytes with narrower accesses, not a power of two or at several sites of the
	 * kernel: array of structures
	 */
	TTMON_MT_FIND_AOS,
	TTMON_MT_FIND_GATHER,
	TTMON_MT_FIND_DIVERGED,	  /* fewer than half of the lanes are active */
	TTMON_MT_FIND_BANKS,	  /* shared memory: at least twice the ideal wavefronts */
	TTMON_MT_FIND_CONTENTION, /* atomics: at least 8 lanes on one word on average */
	TTMON_MT_FIND_NARROW,	  /* sequential accesses of 1 or 2 bytes */
	TTMON_MT_FIND_LOCAL,	  /* local memory: spills or arrays */
	TTMON_MT_FIND_PAGES,	  /* more than 8 distinct 2 MiB pages for each request */
	TTMON_MT_FIND_ZERO_COPY,  /* pinned or registered memory that the GPU reads in place, more than twice over */
	TTMON_MT_FIND_IN_PLACE,	  /* pinned memory without a copy that the GPU accesses: it is not cold */
	/* a device or managed buffer that was live while kernels ran and that none touched */
	TTMON_MT_FIND_UNTOUCHED,
	TTMON_MT_FIND_WRITE_ONLY, /* a buffer that is written and neither read by a kernel nor copied back */
	/* a buffer of at least 64 KiB of which less than a tenth is touched; only for complete traces */
	TTMON_MT_FIND_SPARSE,
	TTMON_MT_FIND_MAX
};

struct ttmon_mt_finding {
	uint8_t what; /* enum ttmon_mt_find */
	/*
	 * row of a site (the worst of its group), or of a buffer from ZERO_COPY on; UNTOUCHED: index in the
	 * map
	 */
	uint32_t row;
	/* 0 to 1, to sort by: the share of all sectors (or wavefronts) that could be saved */
	double weight;
	bool estimated; /* the share cannot be computed: weight is only an estimate for sorting */
	char text[400]; /* one sentence with its figures, cleaned */
};

/* GENERIC: all spaces */
const struct ttmon_mt_sums *ttmon_mt_an_total(const struct ttmon_mt_an *an, unsigned int space);
const struct ttmon_mt_site_row *ttmon_mt_an_sites(const struct ttmon_mt_an *an, size_t *n);
/*
 * dict: as passed to feed. The result is owned by an, valid until the next call, including that of
 * findings. Returns 0 or -ENOMEM.
 */
int ttmon_mt_an_groups(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_site_group **ret,
		       size_t *n);
const struct ttmon_mt_launch_row *ttmon_mt_an_launches(const struct ttmon_mt_an *an, size_t *n);
const struct ttmon_mt_kernel_row *ttmon_mt_an_kernels(const struct ttmon_mt_an *an, size_t *n);
const struct ttmon_mt_buffer_row *ttmon_mt_an_buffers(const struct ttmon_mt_an *an, size_t *n);
/*
 * Returns the instructions that access a buffer (a row of the buffers), the largest possible savings
 * first; NULL and 0 if there are none. Only the first 65,536 pairs of instruction and buffer in the
 * trace are kept; accesses of further pairs are only in the buffer's row.
 */
const struct ttmon_mt_pair *ttmon_mt_an_buffer_sites(const struct ttmon_mt_an *an, uint32_t buffer, size_t *n);
/*
 * Returns the findings, worst first. dict: as passed to feed; settles if necessary. Owned by an, valid
 * until the next call. Returns 0, -ENOMEM or -EINVAL.
 */
int ttmon_mt_an_findings(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_finding **ret,
			 size_t *n);
const char *ttmon_mt_find_name(unsigned int what); /* "uncoalesced", "misaligned", ... */

/*
 * Sectors by part of a buffer (rows) and of the trace (columns); the buffers touched most often come
 * first. Only the first 256 buffers of the trace have a map.
 */
struct ttmon_mt_heat {
	uint32_t rows, cols; /* cols: number of columns reached so far */
	uint64_t per_col;    /* records in a column */
	size_t nr_buffers;
	const uint32_t *buffer; /* index of the row in ttmon_mt_an_buffers() */
	const uint32_t *count;	/* [buffer][row][col], sectors */
};
/* As of the last settling. Owned by an, valid until the next call. Returns 0 or -ENOMEM. */
int ttmon_mt_an_heat(struct ttmon_mt_an *an, struct ttmon_mt_heat *ret);

/* ---- reuse distances (memtrace/analyse/reuse.c) ---- */

/*
 * The reuse distance is the number of distinct sectors between two touches of the same sector, in the
 * order of the trace, which across SMs is not the order in time. Exact: with a tree over all live
 * sectors. Sampled: only sectors whose hash is below a threshold are followed; the threshold is
 * lowered so that at most max are remembered (SHARDS, fixed size), and distances are scaled.
 */
struct ttmon_mt_reuse_result {
	bool exact;
	uint64_t touches, cold; /* cold: first touches; both are scaled if sampled */
	double rate;		/* share of sectors that are followed, 0 to 1 */
	uint64_t hist[48];	/* [k]: distances from 2^(k-1) to 2^k - 1; [0]: 0. Scaled where sampled */
	uint64_t lost;		/* exact: sectors beyond the memory limit: from then on it is sampled */
};
struct ttmon_mt_reuse_set;
int ttmon_mt_reuse_new(bool exact, uint32_t max, struct ttmon_mt_reuse_set **ret);
void ttmon_mt_reuse_touch(struct ttmon_mt_reuse_set *r, uint64_t sector, uint32_t n); /* n sectors from there */
/*
 * The same for several runs (at most 64). Bit i of the result: run i has a sector that is followed; a
 * run without one will never have one.
 */
uint64_t ttmon_mt_reuse_runs(struct ttmon_mt_reuse_set *r, const struct ttmon_mt_run *runs, unsigned int nr);
/* counts n touches of sectors that are not followed */
void ttmon_mt_reuse_pass(struct ttmon_mt_reuse_set *r, uint32_t n);
void ttmon_mt_reuse_get(const struct ttmon_mt_reuse_set *r, struct ttmon_mt_reuse_result *ret);
/*
 * Returns the share of touches that miss in a cache of so many bytes with least-recently-used
 * replacement and 32-byte sectors.
 */
double ttmon_mt_reuse_miss(const struct ttmon_mt_reuse_result *r, uint64_t bytes);
void ttmon_mt_reuse_free(struct ttmon_mt_reuse_set *r);
const struct ttmon_mt_reuse_result *ttmon_mt_an_reuse(struct ttmon_mt_an *an); /* NULL: off */

/* ---- distinct sectors (memtrace/analyse/sectors.c) ---- */

/*
 * Exact, in pieces of 64 KiB with a bitmap of their 2,048 sectors, up to max pages of 4 KiB (16 in a
 * piece); beyond that an estimate (HyperLogLog, error about 1 %).
 */
struct ttmon_mt_sectors;
int ttmon_mt_sectors_new(uint32_t max_pages, struct ttmon_mt_sectors **ret);
/*
 * Copies all sectors that s has exactly to other sets: whose() returns the set for a sector (NULL:
 * none), and *last, up to which the following sectors go to the same set.
 */
void ttmon_mt_sectors_share(const struct ttmon_mt_sectors *s,
			    struct ttmon_mt_sectors *(*whose)(void *ctx, uint64_t sector, uint64_t *last), void *ctx);
/* Returns whether all of them are counted exactly. */
bool ttmon_mt_sectors_add(struct ttmon_mt_sectors *s, uint64_t sector, uint32_t n);
/*
 * Up to TTMON_MT_MAX_RUNS runs; far: they are far apart, so their cache lines are prefetched together.
 */
bool ttmon_mt_sectors_runs(struct ttmon_mt_sectors *s, const struct ttmon_mt_run *runs, unsigned int nr, bool far);
uint64_t ttmon_mt_sectors_count(const struct ttmon_mt_sectors *s, bool *estimate);
/* Returns the number of sectors in both sets; an estimate if either set is. */
uint64_t ttmon_mt_sectors_both(const struct ttmon_mt_sectors *a, const struct ttmon_mt_sectors *b, bool *estimate);
void ttmon_mt_sectors_clear(struct ttmon_mt_sectors *s);
void ttmon_mt_sectors_free(struct ttmon_mt_sectors *s);

#endif
