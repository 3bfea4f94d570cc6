/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * inj_chan.h: a channel, shared by chan.c, which makes and ends it, and tell.c, which writes its
 * dictionary.
 */
#ifndef TTMON_MEMTRACE_INJ_CHAN_H
#define TTMON_MEMTRACE_INJ_CHAN_H

#include "memtrace/inject/inj.h"

#define TTMON_INJ_DICT_BYTES  (4u << 20)
#define TTMON_INJ_AGG_SITES   65536u
#define TTMON_INJ_TOUCH_SLOTS (1u << 21)

/* State of a kernel in this context. */
struct told {
	bool announced; /* its sites are in the dictionary */
	uint64_t counts[TTMON_INJ_COUNTS];
};

struct ttmon_inj_chan {
	struct ttmon_inj_chan *next;
	pthread_mutex_t lock; /* protects writing to the dictionary, and the fields below */
	void *ctx;	      /* NULL: finished */
	int device, socket;
	struct ttmon_mtc_head *head; /* NULL: there is no memory, and nothing is recorded in this context */
	uint64_t bytes;
	/* Copies, because the reader could change the shared memory. */
	uint64_t tails_off, dict_off, rings_off, dict_head;
	/* dict_tail + 1 when the reader last made no room in time: until it moves, no thread waits again */
	uint64_t stuck;
	uint32_t units;
	bool gone;		   /* the reader is gone */
	bool armed, cannot_arm;	   /* the memory is registered with CUDA; CUDA refused it */
	uint64_t ctl, aggs, touch; /* device memory */
	uint32_t agg_sites;	   /* number of aggs that may be in use: up to the last one announced */
	uint32_t nr_rings;
	uint64_t told_lost, told_pages;
	struct told *told; /* by number of the kernel */
	uint32_t nr_told;
};

/*
 * Copies from device memory to `to`, or, if that is NULL, to device memory. It does not use the legacy
 * stream, which would wait for the program's work or break a capture. Returns an error of CUDA.
 */
int ttmon_inj_copy(void *to, uint64_t device, const void *from, size_t size);

/* Call all of these with the channel's lock held. */
bool ttmon_inj_reader_gone(struct ttmon_inj_chan *c);
/*
 * Writes an entry with its texts as a whole; entry->bytes is filled in. Returns false if there was no
 * room in time (which is counted), or no reader.
 */
bool ttmon_inj_put(struct ttmon_inj_chan *c, struct ttmon_mtc_entry *entry, size_t size, const char *const *texts,
		   size_t nr_texts);
#define TTMON_INJ_PUT(c, entry, ...)                                                      \
	ttmon_inj_put(c, &(entry).e, sizeof(entry), (const char *const[]){ __VA_ARGS__ }, \
		      sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))
/* Announces a kernel with its instructions, once. */
bool ttmon_inj_announce_kernel(struct ttmon_inj_chan *c, const struct ttmon_inj_kernel *k);
/*
 * Reports everything that kernels have done so far, after waiting for them; cuda: the context is
 * current.
 */
void ttmon_inj_tell(struct ttmon_inj_chan *c, bool cuda);

#endif
