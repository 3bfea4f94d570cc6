/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * follow.h: numbered lines of the hot thread that clients follow: a head, the kept lines, then new
 * ones as they come. Cold thread.
 *
 * A feed (live advice, runs of programs) defines its lines; followers, positions, access and missed
 * lines are handled here for all feeds. ?after=SEQ&start=ID&pid=&follow=1; docs/ttmond-api.md has the
 * lines.
 */
#ifndef TTMON_API_FOLLOW_H
#define TTMON_API_FOLLOW_H

#include "daemon/api/viewer.h"
#include "daemon/run/daemon.h"
#include "lib/os/jsonw.h"

/* Members of every line. */
struct ttmon_feed_line {
	uint64_t seq; /* from 1 */
	uint32_t tgid;
	uint32_t uid; /* UINT32_MAX: unknown, for root only */
};

/* Its functions run in the hot thread, for some hundred lines per call. */
struct ttmon_feed {
	const char *what; /* for the message "too many follow WHAT already" */
	enum ttmon_hot_news news;
	size_t body_size; /* bytes of a line beyond struct ttmon_feed_line */
	size_t own_size;  /* bytes that write() keeps for each follower, zeroed at first; 0: none */
	size_t row_max;	  /* longest text of a line in bytes, less than 32 KiB */
	/* Lines are kept from number first on; next is the number of the line to come. */
	void (*numbers)(struct ttmon_pipeline *p, uint64_t *first, uint64_t *next);
	/* The line of this number, or the oldest one kept after it. False: none. */
	bool (*get)(struct ttmon_pipeline *p, uint64_t seq, struct ttmon_feed_line *line, void *body);
	/* More members of the head. NULL: none. */
	void (*head)(struct ttmon_jsonw *w);
	void (*write)(struct ttmon_jsonw *w, struct ttmon_pipeline *p, const struct ttmon_feed_line *line,
		      const void *body, void *own);
	void (*own_fini)(void *own);
};

struct ttmon_follow_stats {
	uint64_t missed; /* lines that followers missed */
	uint32_t followers;
};

struct ttmon_follow;

/*
 * The state of a part that is a feed (run/daemon.h), which is a struct ttmon_follow, and three
 * functions of that part. feed must outlive it. Failures are logged.
 */
int ttmon_follow_new(struct ttmon_daemon *c, const struct ttmon_feed *feed, void **state) _must_check;
void ttmon_follow_wake(void *state);
void ttmon_follow_tick(void *state);
void ttmon_follow_free(void *state);
/* Adds a client. */
void ttmon_follow_add(struct ttmon_follow *l, struct ttmon_http_reply *reply);
void ttmon_follow_get_stats(const struct ttmon_follow *l, struct ttmon_follow_stats *ret);

#endif
