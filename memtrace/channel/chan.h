/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/channel/chan.h: the reader of <ttmon/mtchan.h>: one channel (chan.c; its dictionary:
 * dict.c), and the socket that channels arrive on (listen.c). No thread: the caller polls. Nothing in
 * the memory is trusted; a channel that breaks the protocol is closed with one line.
 *
 * Losses are counted: stats.dropped: records that the GPU had no room for; stats.malformed: records
 * that name something unknown; stats.cut: programs that ended without closing the channel. produced =
 * records + dropped + malformed. Memory: 0.5 MiB a channel, 8 bytes a site, 24 a launch; and of texts
 * at most 256 MiB a channel, 512 MiB with common names. A light sink keeps none.
 */
#ifndef TTMON_MEMTRACE_CHAN_H
#define TTMON_MEMTRACE_CHAN_H

#include <ttmon/mtchan.h>

#include "memtrace/model/mt.h"

struct ttmon_mt_chan;

/*
 * Destination of what is read. Sites and launches of records are indexes of dict, which all channels
 * of a trace share.
 */
struct ttmon_mt_sink {
	struct ttmon_mt_dictw *dict;
	struct ttmon_mt_stats *stats;
	uint64_t seq; /* number of the next record */
	/*
	 * Gets records in the order of a ring, one ring after the other. pid: of the channel. -errno stops
	 * reading.
	 */
	int (*recs)(void *ctx, const struct ttmon_mt_rec *recs, size_t n, uint32_t pid);
	void (*note)(void *ctx, uint32_t pid, const char *text);      /* a message for the user, cleaned; may be NULL */
	void (*touch)(void *ctx, const struct ttmon_mt_touch *touch); /* may be NULL */
	/*
	 * For a reader that runs for ever: launches, aggregates, kernels and touches are not kept in dict. All
	 * records have launch 0, which is a placeholder, and the one nameless site of their kind; touches go
	 * only to touch(), otherwise to both.
	 */
	bool light;
	/*
	 * For a light sink: while recs() runs, the time of each record's launch (CLOCK_MONOTONIC, as the
	 * program reports it), 0: not known, or launched by a graph.
	 */
	const uint64_t *launch_ns;
	/*
	 * for programs of several users: each channel may use a quarter of the room that the others have left
	 */
	bool shared;
	void *ctx;
};

/*
 * Instructions by their properties: an instruction that several channels announce is one site of the
 * dictionary. Belongs to one sink; must outlive its channels.
 */
struct ttmon_mt_names;
int ttmon_mt_names_new(struct ttmon_mt_names **ret); /* -ENOMEM */
void ttmon_mt_names_free(struct ttmon_mt_names *names);

/*
 * Maps fd after checking it (a memfd, sealed against shrinking, a valid header), and owns it from then
 * on, even on failure: -EINVAL and the like, with one line in why.
 */
int ttmon_mt_chan_open(int fd, struct ttmon_mt_chan **ret, char *why, size_t n);
/*
 * Sets the pid as the kernel reported it: the header only has the pid in the program's own pid
 * namespace, at best.
 */
void ttmon_mt_chan_set_pid(struct ttmon_mt_chan *c, uint32_t pid);
void ttmon_mt_chan_set_names(struct ttmon_mt_chan *c, struct ttmon_mt_names *names);
/*
 * Reads what is there, at most about max records. Returns 1: there may be more; 0: nothing is left;
 * -EBADMSG: protocol error; -ENOMEM; or an error of the sink. One line in why.
 */
int ttmon_mt_chan_read(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink, size_t max, char *why, size_t n);
/*
 * Delivers what is reported once at the end: aggregates and kernels, as they stand, and losses. Call
 * it once. Returns 0 or -ENOMEM.
 */
int ttmon_mt_chan_end(struct ttmon_mt_chan *c, struct ttmon_mt_sink *sink);
/*
 * Returns whether the program has marked the channel as finished: a read that begins afterwards and
 * returns 0 was the last.
 */
bool ttmon_mt_chan_done(const struct ttmon_mt_chan *c);
void ttmon_mt_chan_free(struct ttmon_mt_chan *c); /* NULL is allowed */

/* ---- the socket ---- */

#define TTMON_MT_MAX_CHANNELS  64
#define TTMON_MT_USER_CHANNELS 16 /* limit for one user; root and the reader's own user have no limit */

struct ttmon_mt_listen;

/*
 * Binds path with this mode, as for chmod(2). A socket without a listener at the path is removed
 * first.
 */
int ttmon_mt_listen_new(const char *path, unsigned int mode, struct ttmon_mt_listen **ret, char *why, size_t n);
/* Returns the total of refused connections. */
uint64_t ttmon_mt_listen_refused(const struct ttmon_mt_listen *l);
/*
 * Returns a descriptor for poll(2): readable when a program connects or leaves. It does not become
 * readable for records: call ttmon_mt_listen_work() about every millisecond to read them.
 */
int ttmon_mt_listen_fd(const struct ttmon_mt_listen *l);
/*
 * Accepts connections, reads each channel once, and closes channels that are finished, or whose
 * program is gone and that are empty. Returns 1: call again at once; 0: nothing to do now; -errno of
 * the sink. A channel with a protocol error, or for which there is no memory, is closed with a note.
 */
int ttmon_mt_listen_work(struct ttmon_mt_listen *l, struct ttmon_mt_sink *sink);
size_t ttmon_mt_listen_channels(const struct ttmon_mt_listen *l); /* channels that are open or waiting */
uint64_t ttmon_mt_listen_seen(const struct ttmon_mt_listen *l);	  /* total of channels */
/*
 * Reads what is committed now and ends all channels, including those of running programs. Returns 0 or
 * an error of the sink.
 */
int ttmon_mt_listen_finish(struct ttmon_mt_listen *l, struct ttmon_mt_sink *sink);
void ttmon_mt_listen_free(struct ttmon_mt_listen *l); /* removes the path; NULL is allowed */

#endif
