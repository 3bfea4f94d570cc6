// SPDX-License-Identifier: GPL-2.0-only
/* summary_tt.c: the Tenstorrent part of the tables at the end of a run. */
#include "daemon/run/summary.h"
#include "lib/base/fmt.h"

#define LINES 32

static const char *bytes(char *buf, uint64_t n)
{
	return ttmon_fmt_bytes(buf, TTMON_FMT_LEN, n);
}

static void notes(FILE *f, const struct ttmon_tt_process *p)
{
	for (unsigned int k = 0; k < TTMON_TT_FLAGS; k++)
		if (p->flags & 1u << k)
			fprintf(f, "process %u: %s: %s\n", p->tgid, ttmon_tt_flag_name(k), ttmon_tt_flag_help(k));
}

static void processes(FILE *f, const struct ttmon_tt_view *v)
{
	static const enum ttmon_tt_type shown[] = { TTMON_TT_TYPE_DRAM, TTMON_TT_TYPE_TRACE_BUF, TTMON_TT_TYPE_L1,
						    TTMON_TT_TYPE_L1_SMALL, TTMON_TT_TYPE_CB };
	char buf[TTMON_FMT_LEN], comm[64], chip[16], logical[16];

	if (!v->nr_uses)
		return;
	/* Each peak is that of its own kind of memory; they need not be of the same time. */
	fprintf(f, "\n%8s %-12s %5s %4s %9s %9s %9s %9s %9s %7s\n", "PID", "TENSTORRENT", "DEV", "CHIP", "DRAM PEAK",
		"TRACE", "L1", "L1_SMALL", "CB", "ALLOCS");
	for (size_t i = 0; i < v->nr_uses && i < LINES; i++) {
		const struct ttmon_tt_use *u = &v->uses[i];
		const struct ttmon_tt_process *p = &v->procs[u->proc];

		snprintf(logical, sizeof(logical), u->logical == TTMON_TT_NO_LOGICAL ? "?" : "%u", u->logical);
		snprintf(chip, sizeof(chip), u->chip ? "%u" : "?", u->chip);
		fprintf(f, "%8u %-12s %5s %4s", p->tgid, ttmon_fmt_text(comm, 12, p->comm), logical, chip);
		for (size_t k = 0; k < ARRAY_SIZE(shown); k++)
			fprintf(f, " %9s", bytes(buf, u->peak[shown[k]]));
		fprintf(f, " %7s\n", ttmon_fmt_count(buf, sizeof(buf), u->allocs));
	}
	if (v->nr_uses > LINES)
		fprintf(f, "%8s and %zu more\n", "", v->nr_uses - LINES);
	for (size_t i = 0; i < v->nr_procs && i < LINES; i++)
		notes(f, &v->procs[i]);
}

static void dispatches(FILE *f, struct ttmon_dispatch *d, uint32_t unprobed)
{
	static const char *const names[TTMON_TT_DISPATCH_MAX] = {
#define X(id, NAME, name) [id] = name,
		TTMON_TT_DISPATCH_TABLE(X)
#undef X
	};
	const struct ttmon_tt_dispatch_sum *s;
	const struct ttmon_tt_program *p;
	uint64_t sums[TTMON_TT_DISPATCH_MAX] = { 0 }, busy = 0, runs = 0;
	size_t n = ttmon_dispatch_sums(d, &s), shown = 0;
	char buf[TTMON_FMT_LEN], buf2[TTMON_FMT_LEN];

	for (size_t i = 0; i < n; i++)
		for (unsigned int k = 0; k < TTMON_TT_DISPATCH_MAX; k++)
			sums[k] += s[i].count[k];
	for (unsigned int k = 0; k < TTMON_TT_DISPATCH_MAX; k++)
		if (sums[k])
			fprintf(f, "%s%s %s",
				shown++ ? ", " : "\ndispatched: ", ttmon_fmt_count(buf, sizeof(buf), sums[k]),
				names[k]);
	if (shown)
		fputc('\n', f);
	shown = 0;
	for (unsigned int k = 0; k < TTMON_TT_DISPATCH_MAX; k++)
		if (unprobed & 1u << k)
			fprintf(f, "%s%s", shown++ ? ", " : "not all counted: ", names[k]);
	if (shown)
		fputs(" (some of their functions are not probed; --tt-dispatch on)\n", f);
	n = ttmon_dispatch_programs(d, &p);
	for (size_t i = 0; i < n; i++) {
		busy += p[i].busy_ns;
		runs += p[i].runs;
	}
	if (runs)
		fprintf(f, "devices ran %s program%s of %zu for %s\n", ttmon_fmt_count(buf, sizeof(buf), runs),
			runs == 1 ? "" : "s", n, ttmon_fmt_ns(buf2, sizeof(buf2), busy));
}

void ttmon_summary_tt(FILE *f, struct ttmon_pipeline *p)
{
	struct ttmon_tt_view v;

	if (!ttmon_pipeline_has_tt(p) || ttmon_tt_snapshot(ttmon_pipeline_tt(p), &v))
		return;
	processes(f, &v);
	ttmon_tt_view_fini(&v);
	dispatches(f, ttmon_pipeline_dispatch(p), ttmon_dispatch_unprobed(ttmon_pipeline_dispatch(p)));
}
