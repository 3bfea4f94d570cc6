/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/channel/chan.h: the reading side of <ttmon/mtchan.h>: one channel (chan.c, what it says
 * once: dict.c), and the socket that channels come through (listen.c). No thread: the caller polls.
 * Nothing in the memory is trusted; a channel that breaks the protocol is closed with one line.
 *
 * What is lost is counted: stats.dropped what the GPU had no room for, stats.malformed what names
 * nothing that was announced, stats.cut a program that ended without saying so. produced = records +
 * dropped + malformed. Memory: 0.5 MiB a channel, 8 bytes a site, 24 a launch; and of texts at most
 * 256 MiB a channel, 512 MiB with common names. A light sink keeps none.
 */
#ifndef TTMON_MEMTRACE_CHAN_H
#define TTMON_MEMTRACE_CHAN_H

#include <ttmon/mtchan.h>

#include "memtrace/model/mt.h"

struct ttmon_mt_chan;

/*
 * What is read goes here. Records' sites and launches are indexes of dict, which all channels of a
 * trace share.
 */
struct ttmon_mt_sink {
	struct ttmon_mt_dictw *dict;
	struct ttmon_mt_stats *stats;
	uint64_t seq; /* next */
	/*
	 * Records in the order a ring has them; rings one after the other. pid: of the channel. -errno stops
	 * reading.
	 */
	int (*recs)(void *ctx, const struct ttmon_mt_rec *recs, size_t n, uint32_t pid);
	void (*note)(void *ctx, uint32_t pid, const char *text);      /* for the user, clean; may be NULL */
	void (*touch)(void *ctx, const struct ttmon_mt_touch *touch); /* may be NULL */
	/*
	 * For a reader that runs for ever: launches, aggregates, kernels and touches are not kept in dict. All
	 * records have launch 0, which is made up, and the one nameless site of their kind; touches go to
	 * touch() alone, else to both.
	 */
	bool light;
	/*
	 * For a light sink: while recs() runs, of each record when its launch was made (CLOCK_MONOTONIC, as
	 * the program says it), 0: not known, or a graph's.
	 */
	const uint64_t *launch_ns;
	/* programs of several users: each channel may fill a quarter of the room that the others have left */
	bool shared;
	void *ctx;
};

/*
 * Instructions by what they are: those that several channels announce are one site of the dictionary.
 * Of one sink; outlives its channels.
 */
struct ttmon_mt_names;
int ttmon_mt_names_new(struct ttmon_mt_names **ret); /* -ENOMEM */
void ttmon_mt_names_free(struct ttmon_mt_names *names);

/*
 * Maps fd (checked: a memfd, sealed against shrinking, a sane header) and owns it from then on, also
 * on failure: -EINVAL and the like, one line in why.
 */
int ttmon_mt_chan_open(int fd, struct ttmon_mt_chan **ret, char *why, size_t n);
/*
 * The process, as the kernel told it: what its header says is in the program's own pid namespace, at
 * best.
 */
void ttmon_mt_chan_set_pid(struct ttmon_mt_chan *c, uint32_t pid);
void ttmon_mt_chan_set_names(struct ttmon_mt_chan *c, struct ttmon_mt_names *names);
/*
 * Reads what is there, at most about max records. 1: more may be there at once; 0: nothing was left;
 * -EBADMSG: broken; -ENOMEM; what sink says. One line in why.
 */
int ttmon_mt_chan_read(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink, size_t max, char *why, size_t n);
/*
 * What is said once when nothing more is read: aggregates and kernels, as they stand, and what was
 * lost. Once. -ENOMEM.
 */
int ttmon_mt_chan_end(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink);
/*
 * The program has said that no more will come: a read that begins after this and returns 0 was the
 * last.
 */
bool ttmon_mt_chan_done(const struct ttmon_mt_chan *c);
void ttmon_mt_chan_free(struct ttmon_mt_chan *c); /* NULL is fine */

/* ---- the socket ---- */

#define TTMON_MT_MAX_CHANNELS  64
#define TTMON_MT_USER_CHANNELS 16 /* of one user; of root and of the reader's own: all */

struct ttmon_mt_listen;

/* Binds path (removed first if it is a socket nobody listens on), mode as chmod(2). */
int ttmon_mt_listen_new(const char *path, unsigned int mode, struct ttmon_mt_listen **ret, char *why, size_t n);
/* Connections that were turned away, ever. */
uint64_t ttmon_mt_listen_refused(const struct ttmon_mt_listen *l);
/*
 * For poll(2): readable when somebody comes or goes. Records make it not readable: look for them by
 * ttmon_mt_listen_work() every millisecond or so.
 */
int ttmon_mt_listen_fd(const struct ttmon_mt_listen *l);
/*
 * Accepts, reads all channels once around, closes those that are done or whose program is gone and
 * that are drained. 1: call again at once; 0: nothing for now; -errno: what sink said. A channel that
 * breaks the protocol, or for which there is no memory, is dropped, with a note.
 */
int ttmon_mt_listen_work(struct ttmon_mt_listen *l, struct ttmon_mt_sink *sink);
size_t ttmon_mt_listen_channels(const struct ttmon_mt_listen *l); /* open, or about to be */
uint64_t ttmon_mt_listen_seen(const struct ttmon_mt_listen *l);	  /* ever */
/*
 * Reads what is committed now and ends all channels, of programs that go on too. What sink said, or 0.
 */
int ttmon_mt_listen_finish(struct ttmon_mt_listen *l, struct ttmon_mt_sink *sink);
void ttmon_mt_listen_free(struct ttmon_mt_listen *l); /* removes the path; NULL is fine */

#endif
