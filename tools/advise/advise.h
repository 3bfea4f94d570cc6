/* SPDX-License-Identifier: GPL-2.0-only */
/* advise.h: the parts of `ttmon advise`: the options, the runs of one program, and the results. */
#ifndef TTMON_TOOLS_ADVISE_H
#define TTMON_TOOLS_ADVISE_H

#include "lib/pin/policy.h"
#include "lib/base/fmt.h"

#define TTMON_ADVISE_MAX_DBS 256

struct ttmon_advise_opts {
	const char *socket, *plumbing;
	bool json, live, measure, runs;
	uint64_t pid;		/* for --live; 0: all processes */
	struct ttmon_cost cost; /* a rate that is 0 was not given on the command line */
	bool has_pin_call, has_unpin_call;
	uint64_t round_max, cached_max; /* bytes, 0: no limit */
	unsigned int min_match;		/* 0: TTMON_MATCH_NAMES */
	unsigned int top;		/* the most lines of advice to print for each kind of advice */
	const char *train[TTMON_ADVISE_MAX_DBS], *dbs[TTMON_ADVISE_MAX_DBS];
	unsigned int nr_train, nr_dbs;
	const char *traces[TTMON_ADVISE_MAX_DBS]; /* recordings of memory accesses; traces[i] belongs to dbs[i] */
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
	/* one text for each rate: "default", "--pinned-gbps", "64 pins of 1.2 GiB in the databases", ... */
	char from[TTMON_ADVISE_RATES][160];
	const char *warning; /* a warning about how the rates were found; NULL: none */
};
/*
 * Fills in the cost model. Each rate comes from the first of these that has it: an option, a
 * measurement (--measure), the databases, the default.
 */
void ttmon_advise_get_cost(const struct ttmon_advise_opts *o, struct ttmon_run *const *runs, size_t n,
			   struct ttmon_advise_cost *ret);

/* ---- cmd_advise.c: the runs of one program ---- */

/*
 * One row for each policy, and one more: the policy "profile" with a profile of the other runs only.
 */
#define TTMON_ADVISE_OTHERS TTMON_POLICY_MAX
#define TTMON_ADVISE_ROWS   (TTMON_POLICY_MAX + 1)

struct ttmon_advise_run {
	struct ttmon_run *run;
	struct ttmon_policy_result rows[TTMON_ADVISE_ROWS];
};

struct ttmon_advise_group {
	const char *exe; /* executable of the process that allocated most; "?" if not known */
	struct ttmon_advise_run *runs;
	size_t nr_runs;
	bool trained;		       /* the profile was made from other databases (--train) */
	struct ttmon_profile *profile; /* made from all runs, or from those of --train */
	/* sums over the runs; peaks and minima are the highest of any run */
	struct ttmon_policy_result total[TTMON_ADVISE_ROWS];
};

static inline bool ttmon_advise_has_row(const struct ttmon_advise_group *g, unsigned int row)
{
	return row != TTMON_ADVISE_OTHERS || (g->nr_runs > 1 && !g->trained);
}
const char *ttmon_advise_row_name(unsigned int row);

/* ---- sites.c: the advice for each call site: groups of lib/pin/groups, merged by their text ---- */

struct ttmon_advise_site {
	char *text; /* call site or name, clean for a terminal */
	/* the same text with demangled function names */
	char *shown;
	unsigned int advice, reason;			    /* enum ttmon_advice, ttmon_reason */
	bool known;					    /* gain_ns, low_ns and high_ns are valid */
	uint64_t allocs, min_size, max_size, copies, bytes; /* sums over all runs */
	uint64_t peak_pages;				    /* the most pages at one time in any run */
	uint64_t runs;					    /* number of runs that have such allocations */
	double confidence;				    /* mean over allocations */
	unsigned int match;				    /* the weakest match of any allocation */
	bool pinned;					    /* most of the memory is pinned already */
	bool mapped;	  /* memory that the program mapped itself, without an allocator */
	bool at_least;	  /* copies and bytes are lower bounds */
	int64_t saved_ns; /* mean over the runs: time saved by transfers from pinned memory */
	/* mean over the runs: time saved by following the advice (lib/verdict), and its range */
	int64_t gain_ns, low_ns, high_ns;
};

struct ttmon_advise_sites {
	struct ttmon_advise_site *v; /* sorted by advice, the largest gain first */
	size_t n;
};
/* Returns 0, or -ENOMEM. */
int ttmon_advise_get_sites(const struct ttmon_advise_group *g, const struct ttmon_policy_cfg *cfg,
			   struct ttmon_advise_sites *ret) _must_check;
void ttmon_advise_sites_fini(struct ttmon_advise_sites *s);
const char *ttmon_advise_match_name(unsigned int match); /* The name of a kind of match, such as "exact". */

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

/* Prints the advice of the daemon until it is interrupted. Returns the exit status. */
int ttmon_advise_live(const struct ttmon_advise_opts *o);

#endif
