// SPDX-License-Identifier: GPL-2.0-only
/* summary_cpu.c: CPU time by process, in the tables at the end of a run. */
#include "daemon/run/summary.h"
#include "lib/base/fmt.h"

#define LINES 10

static const char *const odd_help[TTMON_RMID_ODD_MAX] = {
#define X(NAME, name, help) [TTMON_RMID_ODD_##NAME] = help,
	TTMON_RMID_ODD_TABLE(X)
#undef X
};

struct top {
	struct ttmon_cpu_proc best[LINES];
	size_t n;
};

static void insert(void *ctx, const struct ttmon_cpu_proc *p)
{
	struct top *t = ctx;
	size_t i = t->n;

	if (p->cls != TTMON_ROW_USER || !p->cpu_ns)
		return;
	while (i > 0 && t->best[i - 1].cpu_ns < p->cpu_ns)
		i--;
	if (i == LINES)
		return;
	t->n = MIN(t->n + 1, (size_t)LINES);
	memmove(&t->best[i + 1], &t->best[i], (t->n - 1 - i) * sizeof(t->best[0]));
	t->best[i] = *p;
}

static const char *ipc(char *buf, const struct ttmon_cpu_proc *p)
{
	if (!p->ctr[TTMON_CTR_CYCLES])
		return "-";
	snprintf(buf, TTMON_FMT_LEN, "%.2f", (double)p->ctr[TTMON_CTR_INSTRUCTIONS] / (double)p->ctr[TTMON_CTR_CYCLES]);
	return buf;
}

static void processes(FILE *f, struct ttmon_pipeline *p, bool has_ctr)
{
	char a[TTMON_FMT_LEN], b[TTMON_FMT_LEN], c[TTMON_FMT_LEN], d[TTMON_FMT_LEN], comm[TTMON_COMM_LEN];
	struct top top = { .n = 0 };

	ttmon_cpu_each(ttmon_pipeline_cpu(p), insert, &top);
	if (!top.n)
		return;
	fprintf(f, "\n%-8s %-16s %10s %12s", "PID", "MOST CPU TIME", "CPU TIME", "SWITCHES");
	/* Without counters the columns would hold only dashes; a line at the start has already said so. */
	fprintf(f, has_ctr ? " %6s %16s\n" : "\n", "IPC", "LLC MISSES");
	for (size_t i = 0; i < top.n; i++) {
		const struct ttmon_cpu_proc *x = &top.best[i];
		bool known = !(x->flags & TTMON_ROW_CTR_UNKNOWN);

		fprintf(f, "%-8u %-16s %10s %12s", x->tgid,
			ttmon_fmt_text(comm, sizeof(comm), x->comm[0] ? x->comm : "?"),
			ttmon_fmt_ns(a, sizeof(a), x->cpu_ns), ttmon_fmt_count(b, sizeof(b), x->switches));
		if (has_ctr)
			fprintf(f, " %6s %s%*s", ipc(c, x), known ? "" : ">", known ? 16 : 15,
				ttmon_fmt_count(d, sizeof(d), x->ctr[TTMON_CTR_LLC_MISSES]));
		fputc('\n', f);
	}
}

static void rmids(FILE *f, const struct ttmon_rmid_totals *r)
{
	char a[TTMON_FMT_LEN], b[TTMON_FMT_LEN], c[TTMON_FMT_LEN];

	if (r->backend == TTMON_RMID_OFF)
		return;
	fprintf(f, "RMIDs (%s): %s of %u in use at most, %s given out, %s readings",
		ttmon_rmid_backend_name(r->backend), ttmon_fmt_count(a, sizeof(a), r->peak), r->max_rmid,
		ttmon_fmt_count(b, sizeof(b), r->allocs), ttmon_fmt_count(c, sizeof(c), r->readings));
	if (r->has & TTMON_RMID_HAS_TOTAL)
		fprintf(f, ", %s of memory traffic", ttmon_fmt_bytes(a, sizeof(a), r->bytes[0]));
	fputc('\n', f);
	for (unsigned int i = 0; i < TTMON_RMID_ODD_MAX; i++)
		if (r->odd[i])
			fprintf(f, "RMIDs: %s (%s)\n", odd_help[i], ttmon_fmt_count(a, sizeof(a), r->odd[i]));
}

void ttmon_summary_cpu(FILE *f, struct ttmon_pipeline *p)
{
	char a[TTMON_FMT_LEN], b[TTMON_FMT_LEN];
	struct ttmon_cpu_totals t;
	struct ttmon_rmid_totals r;

	ttmon_cpu_get_totals(ttmon_pipeline_cpu(p), &t);
	ttmon_rmid_get_totals(ttmon_pipeline_rmid(p), &r);
	if (!t.told_ns)
		return;
	processes(f, p, t.has_ctr);
	fprintf(f, "\nCPU time of %u CPU%s: %s processes, ", t.cpus_peak, t.cpus_peak == 1 ? "" : "s",
		ttmon_fmt_ns(a, sizeof(a), t.user_ns));
	fprintf(f, "%s kernel, %s idle", ttmon_fmt_ns(a, sizeof(a), t.kernel_ns),
		ttmon_fmt_ns(b, sizeof(b), t.idle_ns));
	if (t.missing_ns)
		fprintf(f, ", %s MISSING", ttmon_fmt_ns(a, sizeof(a), t.missing_ns));
	fprintf(f, "; %s of %s slots add up exactly\n", ttmon_fmt_count(a, sizeof(a), t.exact),
		ttmon_fmt_count(b, sizeof(b), t.slots));
	if (t.late_ns)
		fprintf(f, "%s of CPU time came too late for its slot\n", ttmon_fmt_ns(a, sizeof(a), t.late_ns));
	if (t.mismatch_ns)
		fprintf(f, "%s of CPU time contradict what was reported before\n",
			ttmon_fmt_ns(a, sizeof(a), t.mismatch_ns));
	if (t.procs_dropped)
		fprintf(f, "%s times there was no room for a process\n",
			ttmon_fmt_count(a, sizeof(a), t.procs_dropped));
	rmids(f, &r);
}
