/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/analyse/an_int.h: shared by the parts of the analysis: an.c (entry points, results), one.c
 * (one record), walk.c (what it touches), rows.c (sites, launches, kernels), buf.c (buffers), pair.c
 * (instructions of a buffer), heat.c (heat map), group.c (instructions that do the same), find.c and
 * find_buf.c (sentences).
 *
 * A record is not added to the rows it belongs to one by one: neighbours mostly have the same site,
 * launch and buffer, so they are summed up in a cell of these three, and a cell goes to the rows when
 * another takes its place, and at the end of a batch.
 */
#ifndef TTMON_MEMTRACE_AN_INT_H
#define TTMON_MEMTRACE_AN_INT_H

#include "memtrace/analyse/an.h"

#include "lib/base/util.h"

#define TTMON_MT_NONE UINT32_MAX

#define TTMON_MT_AN_CELLS   64	 /* a power of two; a key has four of them to be in */
#define TTMON_MT_AN_STEPS   4096 /* the same: warps whose last address at a site is remembered */
#define TTMON_MT_AN_OPEN    3	 /* launches whose working set is at hand: two open, and the one before */
#define TTMON_MT_AN_HEATS   256
#define TTMON_MT_AN_PLACES  512	 /* a power of two: 2 MiB chunks whose place is remembered */
#define TTMON_MT_AN_COLUMNS 1024 /* the same: columns that are in the sets */

struct ttmon_mt_key {
	uint32_t site, launch, buffer; /* rows; launch, buffer: or NONE. site NONE: the cell is empty */
	uint8_t space, kind, width;    /* of the record: a site's row may be the others' */
};

/*
 * Where a buffer is, for one launch: sectors first to last; of these only inner_first to inner_last
 * are in no other buffer.
 */
struct ttmon_mt_part {
	uint64_t first, last;
	uint64_t inner_first, inner_last;
	uint32_t buffer;
};

struct ttmon_mt_cell {
	struct ttmon_mt_key key;
	uint32_t kernel;
	uint32_t launch;	   /* of the dictionary, of the record that came last */
	struct ttmon_mt_part part; /* part of the buffer */
	/* The last request: if several cost the same, the sums only have its pages and extent. */
	uint32_t times, mask;
	uint8_t flags;
	bool like, whole; /* like: what follows says what another costs; whole: its mask has no holes */
	bool apart;	  /* whole, and each lane has a sector and a line of its own, whole lines from the next */
	uint64_t base, step, down,
		reach; /* down: from base to the lowest byte; reach: from there, bytes; step: bytes from lane to lane */
	int64_t stride;
	unsigned int len;   /* lanes from the first to the last */
	uint64_t from, end; /* sectors that are not in the sets yet */
	struct ttmon_mt_sums sums;
	struct ttmon_mt_shape shape;
};

struct ttmon_mt_last {
	uint64_t key, base;
};

/* A place that was looked up recently. */
struct ttmon_mt_place {
	struct ttmon_mt_part part;
	uint32_t launch; /* of the dictionary, + 1; 0: free */
};

/* Sectors in equal steps that are in the sets of a launch and of a buffer. */
struct ttmon_mt_column {
	uint64_t first, by;
	uint32_t launch;   /* row, + 1; 0: free */
	uint32_t followed; /* steps of which a sector may be followed for its reuse */
	uint32_t buffer;
	uint16_t per, len; /* sectors a step, steps */
};

/* What a site's row has beside it. */
struct ttmon_mt_site_more {
	uint32_t kernel; /* of the site's own name, NONE: not looked up */
	uint32_t cell;	 /* that it was in last */
};

/* What a launch's row has beside it. */
struct ttmon_mt_launch_more {
	uint32_t kernel; /* NONE: by the sites */
	bool late;	 /* its working set is closed */
};

struct ttmon_mt_open {
	uint32_t row; /* of the launches; NONE: free */
	uint64_t age;
	struct ttmon_mt_sectors *set;
};

struct ttmon_mt_heat_map {
	uint32_t *count;    /* [col][bin]; NULL: there is none */
	uint64_t first;	    /* sector >> shift of bin 0 */
	uint64_t low, high; /* sectors that it has room for; low > high: none yet */
	unsigned int shift;
};

struct ttmon_mt_buf {
	/* First what each sector needs, so that it is in few lines of a cache. */
	struct ttmon_mt_heat_map heat;
	struct ttmon_mt_sectors *set; /* NULL: not counted */
	/* For requests whose first lane is elsewhere; added to rows only when results are made. */
	uint64_t touches, reads, writes, low, high;
	bool range; /* not of the map */
	struct ttmon_mt_buffer_row row;
};

/*
 * Chunks of 2 MiB of a buffer that no allocation is known for. Those from sure_first to sure_last were
 * never one of the others'.
 */
struct ttmon_mt_range {
	uint64_t first, last;
	uint64_t sure_first, sure_last;
	uint32_t buffer;
};

/* Which buffers a row of the results is: nr ranges from there, or one buffer. */
struct ttmon_mt_made {
	uint32_t from, nr;
};

struct ttmon_mt_an {
	struct ttmon_mt_an_opts opts;
	struct ttmon_mt_stats stats;
	bool has_stats, dirty;
	uint64_t records;
	struct ttmon_mt_sums totals[TTMON_MT_SPACE_MAX];
	struct ttmon_mt_cell cells[TTMON_MT_AN_CELLS];
	uint32_t evicted;
	struct ttmon_mt_last steps[TTMON_MT_AN_STEPS];
	struct ttmon_mt_place places[TTMON_MT_AN_PLACES];
	struct ttmon_mt_column columns[TTMON_MT_AN_COLUMNS];

	uint32_t *site_at; /* row + 1 of [site][space] */
	size_t nr_site_at;
	struct ttmon_mt_site_row *sites;
	struct ttmon_mt_site_more *site_more;
	uint32_t nr_sites, cap_sites, cap_site_more;

	uint32_t *launch_at; /* row + 1 of [launch] */
	size_t nr_launch_at;
	struct ttmon_mt_launch_row *launches;
	struct ttmon_mt_launch_more *launch_more;
	uint32_t nr_launches, cap_launches, cap_launch_more;
	struct ttmon_mt_open open[TTMON_MT_AN_OPEN];
	uint32_t cur; /* the one of the last record */
	uint64_t opened;

	struct ttmon_mt_kernel_row *kernels;
	uint32_t nr_kernels, cap_kernels;
	uint32_t *kernel_hash; /* row + 1; of a power of two */
	size_t nr_kernel_hash;

	uint32_t *buf_at; /* row + 1 of [allocation] */
	struct ttmon_mt_buf *bufs;
	uint32_t nr_bufs, cap_bufs, others; /* others: NONE until there are any */
	struct ttmon_mt_range *ranges;
	uint32_t nr_ranges, cap_ranges;
	uint64_t pages;	     /* of 4 KiB whose sectors buffers may still count exactly */
	uint32_t nr_guessed; /* buffers that may need more pages than they have */
	struct ttmon_mt_buffer_row *buffers;
	struct ttmon_mt_made *made;
	size_t nr_buffers;

	struct ttmon_mt_pair *pairs; /* a hash table; buffer is of bufs + 1, 0: free */
	uint32_t nr_pairs, cap_pairs;
	struct ttmon_mt_pair *pair_list; /* results: by rows of the buffers */
	size_t nr_pair_list;

	unsigned int col_shift; /* records a column */
	size_t col_at;		/* counts before the column of the last record */
	uint32_t nr_heats;
	uint32_t *heat_count, *heat_buffer;

	struct ttmon_mt_reuse_set *reuse;
	struct ttmon_mt_reuse_result reuse_result;

	size_t nr_aggs, nr_touches; /* of the dictionary, taken */
	struct ttmon_mt_site_group *groups;
	size_t nr_groups;
	struct ttmon_mt_site_row *joined; /* sums of groups of several */
	struct ttmon_mt_finding *findings;
	size_t nr_findings;
};

/* one.c */

/*
 * The first of n records that were looked at: their sites, launches, spaces and masks are what they
 * may be. With it those right after it that are the same elsewhere. Returns how many were taken, or
 * -ENOMEM.
 */
int64_t ttmon_mt_an_some(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *recs,
			 size_t n);
void ttmon_mt_an_finish(struct ttmon_mt_an *an,
			struct ttmon_mt_cell *cell); /* what it holds back goes to its sums and the sets */

/* walk.c */

/* What a record of global memory that its cell has counted does beside that. -ENOMEM. */
int ttmon_mt_an_walk(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec,
		     struct ttmon_mt_cell *cell);
/*
 * n sectors in the cell's own buffer alone, its launch being open: they wait in the cell for what may
 * join them.
 */
void ttmon_mt_an_walk_run(struct ttmon_mt_an *an, struct ttmon_mt_cell *cell, uint64_t sector, uint32_t n);
/*
 * Finds the part that addr is in during a launch, mostly from the cache of recent lookups. *ret: valid
 * until the next call. Returns 0 or -ENOMEM.
 */
int ttmon_mt_an_part_at(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, uint32_t launch, uint64_t addr,
			const struct ttmon_mt_part **ret);
void ttmon_mt_an_spill(struct ttmon_mt_an *an); /* what cells hold back goes to the sets: before a set is counted */
void ttmon_mt_an_spill_cell(struct ttmon_mt_an *an, struct ttmon_mt_cell *cell);
static inline bool ttmon_mt_an_is_in(const struct ttmon_mt_part *p, uint64_t sector, uint64_t n)
{
	return sector >= p->first && sector + n - 1 <= p->last;
}
static inline bool ttmon_mt_an_is_inner(const struct ttmon_mt_part *p, uint64_t sector, uint64_t n)
{
	return sector >= p->inner_first && sector + n - 1 <= p->inner_last;
}

/* rows.c */

void ttmon_mt_an_empty(struct ttmon_mt_sums *sums);
/* Return the index of a row, which is made if necessary, or -ENOMEM. */
int64_t ttmon_mt_an_site(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, uint32_t site, unsigned int space,
			 unsigned int width);
int64_t ttmon_mt_an_launch(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, uint32_t launch);
int64_t ttmon_mt_an_kernel_of(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, uint32_t launch, uint32_t site);
/* Returns the set of sectors of this launch; NULL: it is closed. *err: -ENOMEM. */
struct ttmon_mt_sectors *ttmon_mt_an_open(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, uint32_t launch,
					  int *err);
struct ttmon_mt_sectors *ttmon_mt_an_is_open(const struct ttmon_mt_an *an, uint32_t launch); /* NULL: it is not */
/* Its figures so far into its row, its sectors into the sets of buffers. */
void ttmon_mt_an_close(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_open *o);
void ttmon_mt_an_flush(struct ttmon_mt_an *an, struct ttmon_mt_cell *cell);
int ttmon_mt_an_aggs(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict);

/* buf.c */

/* Where addr is in launch l (NULL: not known), a place made for it if need be. -ENOMEM. */
int ttmon_mt_an_part(struct ttmon_mt_an *an, const struct ttmon_mt_launch *l, uint64_t addr, struct ttmon_mt_part *ret);
/* What the set of launch l has exactly goes to the sets of the buffers where it lies in one alone. */
void ttmon_mt_an_share(struct ttmon_mt_an *an, const struct ttmon_mt_launch *l, const struct ttmon_mt_sectors *set);
int ttmon_mt_an_touches(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict);
int ttmon_mt_an_make_buffers(struct ttmon_mt_an *an);
void ttmon_mt_an_seen(struct ttmon_mt_buf *b, uint32_t launch); /* index in the dictionary */
void ttmon_mt_an_buf_fini(struct ttmon_mt_an *an);

/* pair.c */

/* Requests of a site's row in a buffer. What finds no room is left out. */
void ttmon_mt_an_pair(struct ttmon_mt_an *an, uint32_t buffer, uint32_t site, const struct ttmon_mt_sums *s);
int ttmon_mt_an_make_pairs(struct ttmon_mt_an *an); /* after ttmon_mt_an_make_buffers() */

/* heat.c */

int ttmon_mt_an_heat_new(struct ttmon_mt_an *an, struct ttmon_mt_buf *b, uint64_t addr,
			 uint64_t size); /* that it is to have room for */
void ttmon_mt_an_heat_any(struct ttmon_mt_an *an, struct ttmon_mt_heat_map *h, uint64_t sector, uint32_t n);
/* len times n sectors, from first on, by sectors apart. */
void ttmon_mt_an_heat_steps(struct ttmon_mt_an *an, struct ttmon_mt_heat_map *h, uint64_t first, uint64_t by,
			    unsigned int len, uint32_t n);
void ttmon_mt_an_heat_next(
	struct ttmon_mt_an *an); /* before a record that is past the last column: makes columns of twice as many */

static inline void ttmon_mt_an_heat_bump(uint32_t *at, uint64_t n)
{
	*at = n > UINT32_MAX - *at ? UINT32_MAX : *at + (uint32_t)n;
}

/* n sectors of the last record: mostly it is one, or they are in one bin. */
static inline void ttmon_mt_an_heat_add(struct ttmon_mt_an *an, struct ttmon_mt_heat_map *h, uint64_t sector,
					uint32_t n)
{
	uint64_t bin = (sector >> h->shift) - h->first;

	if (bin >= an->opts.heat_rows || (n > 1 && ((sector + n - 1) >> h->shift) - h->first != bin))
		ttmon_mt_an_heat_any(an, h, sector, n);
	else
		ttmon_mt_an_heat_bump(&h->count[an->col_at + bin], n);
}

/* find.c, find_buf.c */

struct ttmon_mt_finds {
	struct ttmon_mt_finding *list;
	uint32_t nr, cap;
	int err; /* -ENOMEM: what came after it is not in the list */
};

void ttmon_mt_find_add(struct ttmon_mt_finds *f, unsigned int what, uint32_t row, double weight, const char *fmt, ...)
	_printf_(5, 6);
void ttmon_mt_find_buffers(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, struct ttmon_mt_finds *f);

#endif
