/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * follow.h: numbered lines of the hot thread that clients follow: a head, the lines that are kept,
 * then what comes. Cold thread.
 *
 * A feed (live advice, runs of programs) says what its lines are; who follows, from where on, whom
 * a line concerns and what was missed is the same for all. ?after=SEQ&start=ID&pid=&follow=1;
 * docs/ttmond-api.md has the lines.
 */
#ifndef TTMON_API_FOLLOW_H
#define TTMON_API_FOLLOW_H

#include "daemon/api/viewer.h"
#include "daemon/run/daemon.h"
#include "lib/os/jsonw.h"

/* What every line has. */
struct ttmon_feed_line {
	uint64_t seq; /* from 1 */
	uint32_t tgid;
	uint32_t uid; /* UINT32_MAX: not known, for root alone */
};

/* The functions run in the hot thread, some hundred lines in one stay. */
struct ttmon_feed {
	const char *what; /* "too many follow WHAT already" */
	enum ttmon_hot_news news;
	size_t body_size; /* of a line, beside the above */
	size_t own_size;  /* of what write() remembers of a follower, zeroed at first; 0: nothing */
	size_t row_max;	  /* longest text of a line, less than 32 KiB */
	/* Lines are kept from first on; next is the number that the next one will have. */
	void (*numbers)(struct ttmon_pipeline *p, uint64_t *first, uint64_t *next);
	/* The line of this number, or the oldest kept after it. False: none. */
	bool (*get)(struct ttmon_pipeline *p, uint64_t seq, struct ttmon_feed_line *line, void *body);
	/* More members of the head. NULL: none. */
	void (*head)(struct ttmon_jsonw *w);
	void (*write)(struct ttmon_jsonw *w, struct ttmon_pipeline *p, const struct ttmon_feed_line *line,
		      const void *body, void *own);
	void (*own_fini)(void *own);
};

struct ttmon_follow_stats {
	uint64_t missed; /* lines that followers were told they missed */
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
/* A client comes. */
void ttmon_follow_add(struct ttmon_follow *l, struct ttmon_http_reply *reply);
void ttmon_follow_get_stats(const struct ttmon_follow *l, struct ttmon_follow_stats *ret);

#endif
