/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * inj_chan.h: a channel, between chan.c, which makes and ends it, and tell.c, which writes its
 * dictionary.
 */
#ifndef TTMON_MEMTRACE_INJ_CHAN_H
#define TTMON_MEMTRACE_INJ_CHAN_H

#include "memtrace/inject/inj.h"

#define TTMON_INJ_DICT_BYTES  (4u << 20)
#define TTMON_INJ_AGG_SITES   65536u
#define TTMON_INJ_TOUCH_SLOTS (1u << 21)

/* Of a kernel, in this context. */
struct told {
	bool announced; /* its sites are in the dictionary */
	uint64_t counts[TTMON_INJ_COUNTS];
};

struct ttmon_inj_chan {
	struct ttmon_inj_chan *next;
	pthread_mutex_t lock; /* of what is written to the dictionary, and of the rest below */
	void *ctx;	      /* NULL: finished */
	int device, socket;
	struct ttmon_mtc_head *head; /* NULL: there is no memory, nothing is recorded in this context */
	uint64_t bytes;
	/* Not taken out of the memory, which the reader can write. */
	uint64_t tails_off, dict_off, rings_off, dict_head;
	uint64_t
		stuck; /* dict_tail + 1 when the reader last made no room in time: it has to move before anybody waits again */
	uint32_t units;
	bool gone;		   /* nobody reads any more */
	bool armed, cannot_arm;	   /* CUDA knows of the memory; it did not take it */
	uint64_t ctl, aggs, touch; /* device memory */
	uint32_t agg_sites;	   /* of aggs, those that may have something: up to the last one announced */
	uint32_t nr_rings;
	uint64_t told_lost, told_pages;
	struct told *told; /* by number of the kernel */
	uint32_t nr_told;
};

/*
 * From device memory to `to`, or, where that is NULL, to it; beside everything the program does: the
 * legacy stream would wait for that, or break a capture. An error of CUDA's.
 */
int ttmon_inj_copy(void *to, uint64_t device, const void *from, size_t size);

/* All with the channel's lock held. */
bool ttmon_inj_reader_gone(struct ttmon_inj_chan *c);
/*
 * An entry with its texts, in one piece; entry->bytes is filled in. False: there was no room in time,
 * counted, or nobody reads.
 */
bool ttmon_inj_put(struct ttmon_inj_chan *c, struct ttmon_mtc_entry *entry, size_t size, const char *const *texts,
		   size_t nr_texts);
#define TTMON_INJ_PUT(c, entry, ...)                                                      \
	ttmon_inj_put(c, &(entry).e, sizeof(entry), (const char *const[]){ __VA_ARGS__ }, \
		      sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))
/* Its instructions, and that it is there, once. */
bool ttmon_inj_announce_kernel(struct ttmon_inj_chan *c, const struct ttmon_inj_kernel *k);
/* Everything that kernels have done so far, which are waited for; cuda: the context is current. */
void ttmon_inj_tell(struct ttmon_inj_chan *c, bool cuda);

#endif
