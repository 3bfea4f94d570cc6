/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * periods.h: what was moved in which period of a program. A period is the time between two checkpoints
 * of one label of a process:
 *
 *	first heard of     checkpoint 0     checkpoint 1           checkpoint n - 1      end
 *	     |    period 0      |   period 1     |     ...     |  n - 1  |    period n    |
 *
 * Periods 0 to n - 1 are complete, and are what a share is of ("in 99 of 100 steps"). Period 0 has the
 * program's start in it, period n what comes after the last checkpoint. What happens at the time of a
 * checkpoint belongs to the period that begins.
 *
 * Pure; the service (of its history) and `ttmon db show --period` (of a database) go by the same sums.
 * Memory: 40 bytes for each (group, period) with transfers, at most TTMON_PERIODS_CELLS of them, and
 * 12 a checkpoint.
 */
#ifndef TTMON_PERIODS_H
#define TTMON_PERIODS_H

#include "lib/base/util.h"

#define TTMON_PERIODS_CELLS (4u << 20)

struct ttmon_period_mark {
	uint64_t ts_ns;
	uint32_t proc;
	const char *label; /* borrowed, for as long as the ends below live */
};

/* Ends of the complete periods, by process. */
struct ttmon_period_ends {
	uint32_t nr_procs;
	uint64_t *ts;	    /* ascending within a process */
	uint32_t *from;	    /* [nr_procs + 1]: those of process i are ts[from[i]] up to ts[from[i + 1]] */
	const char **label; /* [nr_procs] NULL: it has none */
};

/*
 * label NULL: of each process the one that it told most often, the first told of several. Marks of
 * processes past nr_procs are ignored. -ENOMEM. Free with ttmon_period_ends_fini().
 */
int ttmon_period_ends_init(struct ttmon_period_ends *e, const struct ttmon_period_mark *marks, size_t n,
			   const char *label, uint32_t nr_procs) _must_check;
void ttmon_period_ends_fini(struct ttmon_period_ends *e);
/* How many periods of this process are complete. */
static inline uint32_t ttmon_period_count(const struct ttmon_period_ends *e, uint32_t proc)
{
	return e->from[proc + 1] - e->from[proc];
}
/* The period that this time lies in, 0 to ttmon_period_count(). */
uint32_t ttmon_period_at(const struct ttmon_period_ends *e, uint32_t proc, uint64_t ts_ns);

/* Transfers by group (any number that the caller gives: a call site of a process, say) and period. */
struct ttmon_periods;

int ttmon_periods_new(struct ttmon_periods **ret) _must_check;
void ttmon_periods_free(struct ttmon_periods *p);
/* An allocation of that group: what is added from now on was moved from or to it. */
void ttmon_periods_alloc(struct ttmon_periods *p, uint32_t group, uint64_t size);
/* -ENOMEM, -E2BIG: too many cells. */
int ttmon_periods_add(struct ttmon_periods *p, uint32_t period, bool to_device, uint64_t bytes) _must_check;

enum ttmon_period_when {
	TTMON_WHEN_STEADY,    /* in at least 9 of 10 complete periods after the first */
	TTMON_WHEN_SOMETIMES, /* in fewer */
	TTMON_WHEN_START,     /* in the first period alone */
	TTMON_WHEN_AFTER,     /* in none that is complete */
	TTMON_WHEN_NEVER,
	TTMON_WHEN_MAX
};
const char *ttmon_period_when_name(unsigned int when); /* "steady", ... */

/* One group. Steps are complete periods in which something was moved in either direction. */
struct ttmon_period_row {
	uint32_t group, steps, of;
	uint32_t first, last;	      /* of the steps; UINT32_MAX: there is none */
	uint32_t shown;		      /* the period asked for, UINT32_MAX: none */
	uint8_t when;		      /* enum ttmon_period_when */
	uint64_t copies[2], bytes[2]; /* in all complete periods: to the host, to the device */
	uint64_t min, median, max;    /* bytes of a step, both directions together */
	uint64_t in_use;	      /* most bytes of allocations that one step moved something of */
	uint64_t shown_copies[2], shown_bytes[2], shown_in_use; /* of the period asked for */
};

/* Which of a group's periods are complete, and which is asked for (UINT32_MAX: none). */
struct ttmon_period_ask {
	uint32_t of, shown;
};

/* A row for each of the groups 0 to n - 1, in this order: rows[n] is the caller's. -ENOMEM. */
int ttmon_periods_rows(struct ttmon_periods *p, const struct ttmon_period_ask *ask, uint32_t n,
		       struct ttmon_period_row *rows) _must_check;

/*
 * What pinning the group's memory would save in each period on average (0: it is not moved), and after
 * how many periods that has paid for pinning what one period uses. Rates in bytes per second, not 0.
 */
struct ttmon_period_gain {
	uint64_t saved_ns, cost_ns;
	uint64_t pays_after; /* periods, UINT64_MAX: never */
};
void ttmon_period_get_gain(const struct ttmon_period_row *row, uint64_t pageable_bps, uint64_t pinned_bps,
			   uint64_t pinning_bps, struct ttmon_period_gain *ret);

/*
 * What to do about memory by what its periods were: pin what pays for it in the periods there were,
 * unpin what was moved in none after the first, unless a kernel may read it where it is. enum
 * ttmon_advice of core/history/history.h.
 */
unsigned int ttmon_period_advice(const struct ttmon_period_row *row, const struct ttmon_period_gain *gain,
				 unsigned int method, bool in_place);

TTMON_FREEP(ttmon_periods_freep, struct ttmon_periods, ttmon_periods_free);

#endif
