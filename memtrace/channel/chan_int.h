/* SPDX-License-Identifier: GPL-2.0-only */
/* memtrace/channel/chan_int.h: shared by chan.c and dict.c. */
#ifndef TTMON_MEMTRACE_CHAN_INT_H
#define TTMON_MEMTRACE_CHAN_INT_H

#include "lib/base/hmap.h"
#include "memtrace/channel/chan.h"
#include "lib/base/util.h"

#define TTMON_MT_CHAN_BATCH  1024 /* records that are copied before they are interpreted */
#define TTMON_MT_CHAN_TEXTS  (256u << 20)
#define TTMON_MT_ALL_TEXTS   (512u << 20)
#define TTMON_MT_CHAN_NOTES  64
#define TTMON_MT_CHAN_RECENT 4096 /* launches whose time is kept for a light sink; a power of two */

/* A site, at its number in the process. */
struct ttmon_mt_chan_site {
	uint32_t index; /* index in the dictionary + 1; 0: not announced */
	uint8_t space, kind, width;
};

struct ttmon_mt_names {
	struct ttmon_hmap sites;   /* from the hash of the site's properties to its index */
	struct ttmon_hmap kernels; /* the same for kernels */
	uint64_t texts;		   /* bytes of texts kept */
};

struct ttmon_mt_chan_ring {
	uint64_t tail, told; /* head of the dictionary in the shared memory, as last read */
};

/* A copy of a record. LIST: its addresses are in the row with the same number. */
struct ttmon_mt_raw {
	uint64_t base;
	uint32_t mask;
	int32_t stride;
	uint32_t launch_warp, cta_x;
	uint16_t cta_y, cta_z;
	uint32_t tag;
};

struct ttmon_mt_chan {
	int fd;
	uint8_t *mem;
	struct ttmon_mtc_head head; /* as it was at the start, checked */
	uint32_t pid;
	struct ttmon_mt_chan_ring *rings;
	uint32_t next;		      /* the ring to begin with */
	struct ttmon_mt_names *names; /* belongs to the caller; may be NULL */
	struct ttmon_mt_chan_site *sites;
	uint32_t nr_sites;
	struct ttmon_hmap launches, kernels, aggs;
	uint32_t made_up; /* 1 + index of a placeholder for launches that were not announced; 0: none */
	/* For a light sink: the last launches, at their number modulo the size. */
	struct ttmon_mt_chan_recent {
		uint64_t ns;
		uint32_t id;
	} recent[TTMON_MT_CHAN_RECENT];
	uint64_t launch_ns[TTMON_MT_CHAN_BATCH]; /* of recs */
	uint32_t last_launch, last_index;
	bool has_last, broken;
	uint64_t dict_tail, texts; /* texts: bytes of texts kept */
	uint32_t own_sites;	   /* sites of the dictionary that this channel named first */
	bool full;		   /* the note about this was sent */
	unsigned int notes;
	uint64_t lost_pages;
	struct ttmon_mtc_kernel **kernel; /* the last entry of each kernel */
	size_t nr_kernels, cap_kernels;
	struct ttmon_mtc_agg_entry *agg; /* the last entry of each site */
	size_t nr_aggs, cap_aggs;
	struct ttmon_mt_raw raw[TTMON_MT_CHAN_BATCH];
	struct ttmon_mt_rec recs[TTMON_MT_CHAN_BATCH];
	uint64_t lists[TTMON_MT_CHAN_BATCH][TTMON_MT_LANES];
	union {
		struct ttmon_mtc_entry e;
		struct ttmon_mtc_site site;
		struct ttmon_mtc_launch launch;
		struct ttmon_mtc_kernel kernel;
		struct ttmon_mtc_agg_entry agg;
		struct ttmon_mtc_touch touch;
		struct ttmon_mtc_lost lost;
		struct ttmon_mtc_note note;
		char bytes[TTMON_MTC_MAX_ENTRY + 8]; /* followed by a NUL */
	} entry;
};

/* NULL: not there. */

/* Takes the entries that are there now. -EBADMSG, -ENOMEM. */
int ttmon_mt_chan_read_dict(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink, char *why, size_t n);
/*
 * Returns the index of a launch by its number, a placeholder if it was not announced; negative:
 * -errno.
 */
int64_t ttmon_mt_chan_launch(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink, uint32_t id);
void ttmon_mt_chan_dict_free(struct ttmon_mt_chan *c);
/*
 * Converts the counters of a site of the channel to those of the dictionary's site (agg.c). They may
 * have any values: only overflow of the sums made here is checked.
 */
void ttmon_mt_chan_agg(const struct ttmon_mtc_agg *g, const struct ttmon_mt_chan_site *s, struct ttmon_mt_agg *ret);

#endif
