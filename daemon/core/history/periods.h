/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * periods.h: transfers by period of a program. A period is the time between two checkpoints of one
 * label of a process:
 *
 *	first event     checkpoint 0     checkpoint 1           checkpoint n - 1      end
 *	     |    period 0      |   period 1     |     ...     |  n - 1  |    period n    |
 *
 * Periods 0 to n - 1 are complete, and shares are of these ("in 99 of 100 steps"). Period 0 has the
 * program's start in it, period n what comes after the last checkpoint. An event at the time of a
 * checkpoint belongs to the period that begins.
 *
 * Pure; the service (of its history) and `ttmon db show --period` (of a database) use the same sums.
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
	const char *label; /* borrowed: must outlive the ends below */
};

/* Ends of the complete periods, by process. */
struct ttmon_period_ends {
	uint32_t nr_procs;
	uint64_t *ts;	    /* ascending within a process */
	uint32_t *from;	    /* [nr_procs + 1]: those of process i are ts[from[i]] up to ts[from[i + 1]] */
	const char **label; /* [nr_procs] NULL: the process has none */
};

/*
 * label NULL: for each process the label that it used most, of equals the first. Marks of processes
 * past nr_procs are ignored. -ENOMEM. Free with ttmon_period_ends_fini().
 */
int ttmon_period_ends_init(struct ttmon_period_ends *e, const struct ttmon_period_mark *marks, size_t n,
			   const char *label, uint32_t nr_procs) _must_check;
void ttmon_period_ends_fini(struct ttmon_period_ends *e);
/* Number of complete periods of this process. */
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
/* Begins an allocation of that group: what is added from now on is a transfer from or to it. */
void ttmon_periods_alloc(struct ttmon_periods *p, uint32_t group, uint64_t size);
/* -ENOMEM, -E2BIG: too many cells. */
int ttmon_periods_add(struct ttmon_periods *p, uint32_t period, bool to_device, uint64_t bytes) _must_check;

enum ttmon_period_when {
	TTMON_WHEN_STEADY,    /* in at least 9 of 10 complete periods after the first */
	TTMON_WHEN_SOMETIMES, /* in fewer of them */
	TTMON_WHEN_START,     /* only in the first period */
	TTMON_WHEN_AFTER,     /* in no complete period */
	TTMON_WHEN_NEVER,
	TTMON_WHEN_MAX
};
const char *ttmon_period_when_name(unsigned int when); /* "steady", ... */

/* One group. Steps are complete periods with a transfer in either direction. */
struct ttmon_period_row {
	uint32_t group, steps, of;
	uint32_t first, last;	      /* first and last step; UINT32_MAX: there is none */
	uint32_t shown;		      /* the requested period, UINT32_MAX: none */
	uint8_t when;		      /* enum ttmon_period_when */
	uint64_t copies[2], bytes[2]; /* in all complete periods: to the host, to the device */
	uint64_t min, median, max;    /* bytes of a step, both directions together */
	uint64_t in_use;	      /* bytes of the allocations that one step used, the largest of all steps */
	uint64_t shown_copies[2], shown_bytes[2], shown_in_use; /* of the requested period */
};

/* Number of a group's complete periods, and the requested one (UINT32_MAX: none). */
struct ttmon_period_ask {
	uint32_t of, shown;
};

/* A row for each of the groups 0 to n - 1, in this order: rows[n] belongs to the caller. -ENOMEM. */
int ttmon_periods_rows(struct ttmon_periods *p, const struct ttmon_period_ask *ask, uint32_t n,
		       struct ttmon_period_row *rows) _must_check;

/*
 * What pinning the group's memory would save per period on average (0: no transfers), and after how
 * many periods that pays for pinning what one period uses. Rates in bytes per second, not 0.
 */
struct ttmon_period_gain {
	uint64_t saved_ns, cost_ns;
	uint64_t pays_after; /* periods, UINT64_MAX: never */
};
void ttmon_period_get_gain(const struct ttmon_period_row *row, uint64_t pageable_bps, uint64_t pinned_bps,
			   uint64_t pinning_bps, struct ttmon_period_gain *ret);

/*
 * Advice by periods: pin what pays for it within the periods so far; unpin memory without transfers
 * after the first period, unless a kernel may read it in place. enum ttmon_advice of
 * core/history/history.h.
 */
unsigned int ttmon_period_advice(const struct ttmon_period_row *row, const struct ttmon_period_gain *gain,
				 unsigned int method, bool in_place);

TTMON_FREEP(ttmon_periods_freep, struct ttmon_periods, ttmon_periods_free);

#endif
