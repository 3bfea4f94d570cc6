/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * advise.h: the parts of `ttmon advise`: what was asked for, the runs of one program, and what came
 * out.
 */
#ifndef TTMON_TOOLS_ADVISE_H
#define TTMON_TOOLS_ADVISE_H

#include "lib/pin/policy.h"
#include "lib/base/fmt.h"

#define TTMON_ADVISE_MAX_DBS 256

struct ttmon_advise_opts {
	const char *socket;
	bool json, live, measure, runs;
	uint64_t pid;		/* live: 0: all */
	struct ttmon_cost cost; /* rates: 0: not given */
	bool has_pin_call, has_unpin_call;
	uint64_t round_max, cached_max; /* bytes, 0: no limit */
	unsigned int min_match;		/* 0: NAMES */
	unsigned int top;		/* lines of advice of a kind */
	const char *train[TTMON_ADVISE_MAX_DBS], *dbs[TTMON_ADVISE_MAX_DBS];
	unsigned int nr_train, nr_dbs;
	const char *traces[TTMON_ADVISE_MAX_DBS]; /* of memory accesses; [i] is of dbs[i] */
	unsigned int nr_traces;
};

/* ---- cost.c: the cost model, and where its figures come from ---- */

enum {
	TTMON_ADVISE_PAGEABLE,
	TTMON_ADVISE_PINNED,
	TTMON_ADVISE_PINNING,
	TTMON_ADVISE_PIN_CALL,
	TTMON_ADVISE_UNPIN_CALL,
	TTMON_ADVISE_RATES
};
struct ttmon_advise_cost {
	struct ttmon_cost cost;
	char from[TTMON_ADVISE_RATES][160]; /* "default", "--pinned-gbps", "64 pins of 1.2 GiB in the databases", ... */
	const char *warning;		    /* what has to be known of them; NULL */
};
/* What was given, else measured (--measure), else in the databases, else the defaults. */
void ttmon_advise_get_cost(const struct ttmon_advise_opts *o, struct ttmon_run *const *runs, size_t n,
			   struct ttmon_advise_cost *ret);

/* ---- cmd_advise.c: the runs of one program ---- */

/* Policies, and the advice of the other runs alone. */
#define TTMON_ADVISE_OTHERS TTMON_POLICY_MAX
#define TTMON_ADVISE_ROWS   (TTMON_POLICY_MAX + 1)

struct ttmon_advise_run {
	struct ttmon_run *run;
	struct ttmon_policy_result rows[TTMON_ADVISE_ROWS];
};

struct ttmon_advise_group {
	const char *exe; /* of the process that allocated most; "?" */
	struct ttmon_advise_run *runs;
	size_t nr_runs;
	bool trained;					     /* the profile is made of other databases (--train) */
	struct ttmon_profile *profile;			     /* of all runs, or of those of --train */
	struct ttmon_policy_result total[TTMON_ADVISE_ROWS]; /* sums; peaks, least: the highest of the runs */
};

static inline bool ttmon_advise_has_row(const struct ttmon_advise_group *g, unsigned int row)
{
	return row != TTMON_ADVISE_OTHERS || (g->nr_runs > 1 && !g->trained);
}
const char *ttmon_advise_row_name(unsigned int row);

/* ---- sites.c: what to do with the memory of each call site: the groups of lib/pin/groups, those of one text together ---- */

struct ttmon_advise_site {
	char *text; /* call site or name, clean for a terminal */
	/* the same as people read it: function names and not symbols */
	char *shown;
	unsigned int advice, reason;			    /* enum ttmon_advice, ttmon_reason */
	bool known;					    /* gain_ns and its range mean something */
	uint64_t allocs, min_size, max_size, copies, bytes; /* of all runs together */
	uint64_t peak_pages;				    /* at one time, the most of any run */
	uint64_t runs;					    /* that have any */
	double confidence;				    /* mean over allocations */
	unsigned int match;				    /* the weakest of them */
	bool pinned;					    /* so far, most of it */
	bool mapped;					    /* mappings of its own, that no allocator gave */
	bool at_least;					    /* copies and bytes are lower bounds */
	int64_t saved_ns;				    /* a run: by its transfers from pinned memory */
	int64_t gain_ns, low_ns, high_ns; /* a run: what following the advice saves (lib/verdict), and its range */
};

struct ttmon_advise_sites {
	struct ttmon_advise_site *v; /* by advice, what matters most first */
	size_t n;
};
/* -ENOMEM. */
int ttmon_advise_get_sites(const struct ttmon_advise_group *g, const struct ttmon_policy_cfg *cfg,
			   struct ttmon_advise_sites *ret) _must_check;
void ttmon_advise_sites_fini(struct ttmon_advise_sites *s);
const char *ttmon_advise_match_name(unsigned int match); /* "exact" */

/* ---- show.c, json.c, live.c ---- */

void ttmon_advise_show_cost(const struct ttmon_advise_opts *o, const struct ttmon_advise_cost *cost);
/* What to type after the advice of one run of the program exe, whose database is path. */
void ttmon_advise_show_next(const char *path, const struct ttmon_run *run, const char *exe,
			    const struct ttmon_advise_sites *sites);
void ttmon_advise_show(const struct ttmon_advise_opts *o, const struct ttmon_advise_group *g,
		       const struct ttmon_advise_cost *cost, const struct ttmon_advise_sites *sites);

struct ttmon_jsonw;
void ttmon_advise_json_begin(struct ttmon_jsonw *w, const struct ttmon_advise_opts *o,
			     const struct ttmon_advise_cost *cost);
void ttmon_advise_json_group(struct ttmon_jsonw *w, const struct ttmon_advise_group *g,
			     const struct ttmon_advise_sites *sites);
void ttmon_advise_json_end(struct ttmon_jsonw *w);

/* Follows the daemon until it is interrupted. The exit status. */
int ttmon_advise_live(const struct ttmon_advise_opts *o);

#endif
