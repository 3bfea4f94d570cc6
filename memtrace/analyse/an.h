/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/analyse/an.h: what a trace says, in one pass and fixed memory: sums for each site, launch,
 * kernel and buffer; the working set; reuse distances; a heat map; findings in words. Needs no order
 * but for reuse distances, and no more than one batch of records at a time.
 *
 * Sums are of requests, never averages of ratios. Efficiency is 32-byte sectors that were needed over those that were taken:
 *	unique		sum of unique bytes / (32 x sum of sectors)	at most 1; what "efficiency" is unless another is requested
 *	requested	sum of requested bytes / (32 x sum of sectors)	nvprof's gld_efficiency: over 1 where lanes overlap
 *
 * What the GPU summed up (aggregates) is as exact as records; what has no place there is the order of
 * requests: steps, reuse, heat, and what is of one launch. Aggregates of older files have no unique
 * bytes: the requested ones are taken, at most what was moved, so that broadcasts look better than
 * they are. Prefetches are in their site's row and in their kernel's mix alone, without sectors. A
 * generic access whose space is not known counts as global; where the launch's windows are known, as
 * shared or local, by its offset there.
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
	uint64_t requests, records; /* records: of these, seen one by one; the rest are sums of the GPU's */
	uint64_t inferred;	    /* requests whose mask is inferred */
	uint64_t lanes, full;	    /* full: requests with all 32 lanes */
	uint64_t bytes, unique;
	uint64_t sectors, lines, ideal, ideal_lanes;
	uint64_t misaligned;
	uint64_t pages_4k, pages_64k, pages_2m;
	uint64_t waves, phases, ideal_waves; /* shared memory */
	uint64_t same;			     /* atomics and reductions: sum of the most lanes on one word */
	uint32_t max_same, max_waves;
	uint64_t reads, writes;			   /* requests; an atomic is both */
	uint64_t classes[TTMON_MT_CLASS_MAX];	   /* requests */
	uint64_t lines_hist[TTMON_MT_LANES + 2];   /* [n]: requests of n lines; the last: more */
	uint64_t sectors_hist[TTMON_MT_LANES + 2]; /* [n]; the last: more than 32 */
	uint64_t waves_hist[TTMON_MT_LANES + 2];
	uint64_t lanes_bins[TTMON_MT_LANES_BINS]; /* requests by active lanes: [k] has 2^k to 2^(k + 1) - 1 of them */
	/*
	 * Requests of global memory by distinct pages of 4 KiB and of 2 MiB: [0] one, [k] 2^(k - 1) + 1 to
	 * 2^k, the last: more.
	 */
	uint64_t pages_4k_bins[TTMON_MT_PAGES_BINS], pages_2m_bins[TTMON_MT_PAGES_BINS];
	int64_t stride; /* of most STRIDED and SEGMENTED requests: a candidate kept by majority vote; 0: none */
	uint64_t stride_votes;
	/*
	 * from one request of a warp to its next at this site: bytes, by majority vote; 0: none, or always the
	 * same place
	 */
	int64_t step;
	uint64_t step_votes;
	uint64_t min_addr, max_addr; /* max_addr: the last byte; min > max: none */
};

/*
 * Which efficiency: 0 to 1 (requested may be more); -1 where no sectors are counted. Not for sums with
 * shared memory in them, whose bytes are not those of sectors.
 */
double ttmon_mt_efficiency(const struct ttmon_mt_sums *s, bool requested);
/* The class most requests have, and their share, 0 to 1. */
unsigned int ttmon_mt_main_class(const struct ttmon_mt_sums *s, double *share);
void ttmon_mt_sums_add(struct ttmon_mt_sums *to, const struct ttmon_mt_sums *s);

enum ttmon_mt_reuse { TTMON_MT_REUSE_SAMPLED, TTMON_MT_REUSE_EXACT, TTMON_MT_REUSE_OFF };

struct ttmon_mt_an_opts {
	const struct ttmon_mt_map
		*map; /* allocations; NULL: buffers are 2 MiB ranges with gaps of nothing between them */
	/* Which records count: NULL all. */
	bool (*want)(void *ctx, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec);
	void *ctx;
	enum ttmon_mt_reuse reuse;
	uint32_t reuse_max;			       /* sectors remembered; 0: 16,384 sampled, 16 Mi exact */
	uint32_t max_sites, max_launches, max_buffers; /* rows; 0: 16,384 of each. More go into one row "others" */
	uint32_t heat_rows,
		heat_cols; /* of the heat map: parts of each buffer, and of the trace by records; 0: 64 x 128; at most 1,024 */
};

struct ttmon_mt_an;

int ttmon_mt_an_new(const struct ttmon_mt_an_opts *opts, struct ttmon_mt_an **ret); /* opts may be NULL. -ENOMEM */
/*
 * -EINVAL (a record without a mask, of no space, or whose site or launch is not in dict), -ENOMEM;
 * records before it are counted.
 */
int ttmon_mt_an_feed(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *recs,
		     size_t n);
/*
 * Takes what dict has got without records (aggregates, touches) and makes the results below, which are
 * of the last settling. May be called at any time; feeding may go on. -EINVAL, -ENOMEM. Touches are
 * left out where want is given: they are of no site. In an aggregate of all launches together
 * rec->launch is TTMON_MT_NO_LAUNCH.
 */
int ttmon_mt_an_settle(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict);
/*
 * What the source says is missing: with it, findings tell "never touched" from "no access was
 * recorded". Without it they say the latter.
 */
void ttmon_mt_an_stats(struct ttmon_mt_an *an, const struct ttmon_mt_stats *stats);
void ttmon_mt_an_free(struct ttmon_mt_an *an);

/* ---- results: valid until the next feed or settling; texts are the dictionary's ---- */

struct ttmon_mt_row {
	uint32_t index; /* of the site or launch in the dictionary; UINT32_MAX: "others" */
	struct ttmon_mt_sums sums;
};

/*
 * Per site; with records of several spaces at a generic site, one row for each space. In the order
 * they were first seen.
 */
struct ttmon_mt_site_row {
	uint32_t site; /* UINT32_MAX: others */
	uint8_t space, kind, width;
	struct ttmon_mt_sums sums;
};

/*
 * Instructions of one source line that do the same, copies by unrolling and inlining or fields of one
 * structure, are one here; rows without a line alone.
 */
struct ttmon_mt_site_group {
	uint32_t row;			     /* of the sites: the worst of them */
	uint32_t nr;			     /* of them */
	const struct ttmon_mt_site_row *all; /* its sums are those of all of them */
};

/* What could be saved at a site: sectors, or wavefronts in shared memory. */
uint64_t ttmon_mt_waste(const struct ttmon_mt_site_row *row);

struct ttmon_mt_launch_row {
	uint32_t launch;
	struct ttmon_mt_sums global, shared, local; /* generic ones that are not known count as global */
	/*
	 * sectors: distinct, of global memory: the working set. again: of these, also touched by the launch
	 * before it. Two launches are open at a time, by their first records; records that come after a third
	 * one began are in the sums, but not here: then estimate is set too.
	 */
	uint64_t sectors, again;
	bool estimate;
};

/* Of one kernel, all its launches: what its instructions are, by requests. */
struct ttmon_mt_kernel_row {
	const char *kernel; /* "(others)": those past the limit */
	bool function;	    /* a device function, whose sums are of all kernels that call it: the GPU summed them up */
	bool summed;	    /* with sums of the GPU's of all launches together */
	uint64_t launches;  /* that records name; where summed, those that the program made recorded */
	uint64_t requests[TTMON_MT_SPACE_MAX][TTMON_MT_KIND_MAX];
	uint64_t widths[7];	   /* 1, 2, 4, 8, 16, 32, other */
	struct ttmon_mt_sums sums; /* global */
};

struct ttmon_mt_buffer_row {
	uint32_t alloc;	     /* in the map; UINT32_MAX: no allocation is known there */
	uint64_t addr, size; /* 0 and 0: others */
	uint64_t low, high;  /* touched: first byte, last byte + 1 */
	struct ttmon_mt_sums
		sums;	  /* of requests whose first lane is in it; reads and writes have those of touches too */
	uint64_t sectors; /* distinct; of the whole trace; 0: not counted */
	bool estimate;
	uint32_t first_launch, last_launch; /* indexes; UINT32_MAX: not known */
	uint64_t
		touches; /* requests of ttmon_mt_touch, or 1 each where their number is not known, and those whose first lane is elsewhere */
	uint64_t unknown; /* touches of which it is not known whether they read or write */
	bool ambiguous;	  /* another allocation had these addresses too, and the trace does not say which one it was */
	bool by_order;	  /* the same, and the number of the launch said it */
};

/*
 * What one instruction does to one buffer: requests whose first lane is in it, with all their sectors.
 */
struct ttmon_mt_pair {
	uint32_t buffer, site; /* rows */
	uint64_t requests, sectors, ideal, ideal_lanes;
};

enum ttmon_mt_find {
	/*
	 * site with at least 5 % of all sectors, an efficiency under 50 %, and a quarter of its sectors to
	 * save
	 */
	TTMON_MT_FIND_UNCOALESCED,
	TTMON_MT_FIND_MISALIGNED, /* most sequential requests take one sector more */
	/*
	 * stride of 8 to 128 bytes with narrower accesses, no power of two or at several sites of the kernel:
	 * array of structures
	 */
	TTMON_MT_FIND_AOS,
	TTMON_MT_FIND_GATHER,
	TTMON_MT_FIND_DIVERGED,	  /* fewer than half of the lanes */
	TTMON_MT_FIND_BANKS,	  /* shared memory: at least twice the wavefronts it had to */
	TTMON_MT_FIND_CONTENTION, /* atomics: at least 8 lanes on one word on average */
	TTMON_MT_FIND_NARROW,	  /* sequential accesses of 1 or 2 bytes */
	TTMON_MT_FIND_LOCAL,	  /* local memory: spills or arrays */
	TTMON_MT_FIND_PAGES,	  /* more than 8 distinct 2 MiB pages a request */
	TTMON_MT_FIND_ZERO_COPY,  /* pinned or registered memory the GPU reads in place, more than twice over */
	TTMON_MT_FIND_IN_PLACE,	  /* pinned memory without a copy that the GPU touches: not cold */
	TTMON_MT_FIND_UNTOUCHED, /* a device or managed buffer that was live while kernels ran, and that none touched */
	TTMON_MT_FIND_WRITE_ONLY, /* a buffer that is written and neither read by a kernel nor copied back */
	/*
	 * a buffer of at least 64 KiB of which under a tenth is touched; not told of a trace that is not
	 * complete
	 */
	TTMON_MT_FIND_SPARSE,
	TTMON_MT_FIND_MAX
};

struct ttmon_mt_finding {
	uint8_t what; /* enum ttmon_mt_find */
	uint32_t
		row; /* of the sites, the worst where it is of a group, or of the buffers from ZERO_COPY on; UNTOUCHED: an index of the map */
	/* what it costs, to sort by, 0 to 1: the share of all sectors (or wavefronts) that could be saved */
	double weight;
	bool estimated; /* that share cannot be counted: weight is a guess of the same kind, good for the order alone */
	char text[400]; /* one sentence, with its figures; clean */
};

const struct ttmon_mt_sums *ttmon_mt_an_total(const struct ttmon_mt_an *an, unsigned int space); /* GENERIC: all */
const struct ttmon_mt_site_row *ttmon_mt_an_sites(const struct ttmon_mt_an *an, size_t *n);
/* dict: the one that was fed. Owned by an, valid until the next call, of findings too. -ENOMEM. */
int ttmon_mt_an_groups(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_site_group **ret,
		       size_t *n);
const struct ttmon_mt_launch_row *ttmon_mt_an_launches(const struct ttmon_mt_an *an, size_t *n);
const struct ttmon_mt_kernel_row *ttmon_mt_an_kernels(const struct ttmon_mt_an *an, size_t *n);
const struct ttmon_mt_buffer_row *ttmon_mt_an_buffers(const struct ttmon_mt_an *an, size_t *n);
/*
 * The instructions that access a buffer (a row of these), those with most sectors to save first; NULL
 * and 0 where there are none. Of the first 65,536 pairs of an instruction and a buffer in the trace;
 * what is past that is in the buffer's row alone.
 */
const struct ttmon_mt_pair *ttmon_mt_an_buffer_sites(const struct ttmon_mt_an *an, uint32_t buffer, size_t *n);
/*
 * Worst first. dict: the one that was fed; settles if need be. Owned by an, valid until the next call.
 * -ENOMEM, -EINVAL.
 */
int ttmon_mt_an_findings(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_finding **ret,
			 size_t *n);
const char *ttmon_mt_find_name(unsigned int what); /* "uncoalesced", "misaligned", ... */

/*
 * Sectors by part of a buffer (rows) and of the trace (columns), most often touched buffers first; of
 * the 256 that were touched first.
 */
struct ttmon_mt_heat {
	uint32_t rows, cols; /* cols: those that the trace has got to */
	uint64_t per_col;    /* records a column holds */
	size_t nr_buffers;
	const uint32_t *buffer; /* row of ttmon_mt_an_buffers() */
	const uint32_t *count;	/* [buffer][row][col], sectors */
};
/* As of the last settling. Owned by an, valid until the next call. -ENOMEM. */
int ttmon_mt_an_heat(struct ttmon_mt_an *an, struct ttmon_mt_heat *ret);

/* ---- reuse distances (memtrace/analyse/reuse.c) ---- */

/*
 * Distance: distinct sectors between two touches of one. By order of arrival in the trace: across SMs
 * that is not the order in time. Exact: a tree over all live sectors. Sampled: sectors chosen by a
 * hash under a threshold that sinks so that at most max are remembered (SHARDS, fixed size), distances
 * scaled.
 */
struct ttmon_mt_reuse_result {
	bool exact;
	uint64_t touches, cold; /* cold: first touches; both scaled where sampled */
	double rate;		/* share of sectors that were followed, 0 to 1 */
	uint64_t hist[48];	/* [k]: distances from 2^(k-1) to 2^k - 1; [0]: 0. Scaled where sampled */
	uint64_t lost;		/* exact: sectors that did not fit into its memory: from there on sampled */
};
struct ttmon_mt_reuse_set;
int ttmon_mt_reuse_new(bool exact, uint32_t max, struct ttmon_mt_reuse_set **ret);
void ttmon_mt_reuse_touch(struct ttmon_mt_reuse_set *r, uint64_t sector, uint32_t n); /* n sectors from there */
/*
 * The same of all of these (at most 64). Bit i: run i has a sector that is followed; one that has none
 * will not have one later.
 */
uint64_t ttmon_mt_reuse_runs(struct ttmon_mt_reuse_set *r, const struct ttmon_mt_run *runs, unsigned int nr);
void ttmon_mt_reuse_pass(struct ttmon_mt_reuse_set *r, uint32_t n); /* n touches of sectors that are not followed */
void ttmon_mt_reuse_get(const struct ttmon_mt_reuse_set *r, struct ttmon_mt_reuse_result *ret);
/*
 * Share of touches that miss in a cache of so many bytes with least-recently-used replacement and
 * 32-byte sectors.
 */
double ttmon_mt_reuse_miss(const struct ttmon_mt_reuse_result *r, uint64_t bytes);
void ttmon_mt_reuse_free(struct ttmon_mt_reuse_set *r);
const struct ttmon_mt_reuse_result *ttmon_mt_an_reuse(struct ttmon_mt_an *an); /* NULL: off */

/* ---- distinct sectors (memtrace/analyse/sectors.c) ---- */

/*
 * Exact by pieces of 64 KiB with a bitmap of their 2,048 sectors, up to max pages of 4 KiB (16 of a
 * piece); past that an estimate (HyperLogLog, error about 1 %).
 */
struct ttmon_mt_sectors;
int ttmon_mt_sectors_new(uint32_t max_pages, struct ttmon_mt_sectors **ret);
/*
 * All that s has exactly goes to other sets: whose says into which one a sector goes (NULL: none), and
 * all after it up to *last with it.
 */
void ttmon_mt_sectors_share(const struct ttmon_mt_sectors *s,
			    struct ttmon_mt_sectors *(*whose)(void *ctx, uint64_t sector, uint64_t *last), void *ctx);
/* Whether all of them are where they are counted exactly. */
bool ttmon_mt_sectors_add(struct ttmon_mt_sectors *s, uint64_t sector, uint32_t n);
/*
 * Up to TTMON_MT_MAX_RUNS; far: anywhere, each in a line of a cache of its own, so all are fetched
 * before one is waited for.
 */
bool ttmon_mt_sectors_runs(struct ttmon_mt_sectors *s, const struct ttmon_mt_run *runs, unsigned int nr, bool far);
uint64_t ttmon_mt_sectors_count(const struct ttmon_mt_sectors *s, bool *estimate);
/* Of both; an estimate where either is. */
uint64_t ttmon_mt_sectors_both(const struct ttmon_mt_sectors *a, const struct ttmon_mt_sectors *b, bool *estimate);
void ttmon_mt_sectors_clear(struct ttmon_mt_sectors *s);
void ttmon_mt_sectors_free(struct ttmon_mt_sectors *s);

#endif
