// SPDX-License-Identifier: GPL-2.0-only
/* metrics.c: see metrics.h and metrics_int.h. Cold thread. */
#include "metrics_int.h"

#include "core/cgname.h"

/* The label that --group-by names. */
#define GROUP	       "GROUP"
#define TICKS_A_SECOND 10

static const struct ttmon_prom_metric all[TTMON_METRICS_MAX] = {
#define X(ID, n, t, u, l, h) \
	[TTMON_METRIC_##ID] = { .name = n, .type = TTMON_PROM_##t, .unit = u, .labels = l, .help = h },
	TTMON_METRICS_TABLE(X)
#undef X
};

static bool has_group(const char *labels)
{
	return !strncmp(labels, GROUP, strlen(GROUP));
}

static int make_table(struct ttmon_metrics *m)
{
	const char *by = ttmon_group_by_name(m->c->opts->group_by);

	for (size_t i = 0; i < TTMON_METRICS_MAX; i++) {
		m->table[i] = all[i];
		if (!has_group(all[i].labels))
			continue;
		if (asprintf(&m->labels[i], "%s%s", by, all[i].labels + strlen(GROUP)) < 0) {
			m->labels[i] = NULL;
			return -ENOMEM;
		}
		m->table[i].labels = m->labels[i];
	}
	return 0;
}

int ttmon_metrics_new(struct ttmon_run *c, struct ttmon_metrics **ret)
{
	struct ttmon_metrics *m = calloc(1, sizeof(*m));
	int err = m ? 0 : -ENOMEM;

	if (err)
		return err;
	m->c = c;
	m->start_real_ns = ttmon_metrics_start();
	err = make_table(m);
	if (!err)
		err = ttmon_metrics_tt_new(&m->tt);
	if (!err)
		err = ttmon_metrics_groups_new(m);
	if (err) {
		ttmon_metrics_free(m);
		return err;
	}
	*ret = m;
	return 0;
}

void ttmon_metrics_free(struct ttmon_metrics *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < TTMON_METRICS_MAX; i++)
		free(m->labels[i]);
	ttmon_topn_free(m->mem);
	ttmon_topn_free(m->cpu);
	ttmon_metrics_tt_free(m->tt);
	free(m->v.groups);
	free(m->cgroups);
	free(m);
}

void ttmon_metrics_tick(struct ttmon_metrics *m)
{
	/* Where nobody can ask, nothing is kept for an answer. */
	if (!m || !m->c->http || ++m->ticks % TICKS_A_SECOND)
		return;
	if (m->c->opts->group_by != TTMON_GROUP_COMM && !m->c->replay)
		ttmon_metrics_ask_cgroups(m);
	ttmon_run_snapshot(m->c, &m->snap);
	if (m->snap.has_tt)
		ttmon_metrics_tt_take(m);
}

static void begin(struct ttmon_metrics *m, enum ttmon_metric id)
{
	if (m->w.metric != &m->table[id])
		ttmon_promw_metric(&m->w, &m->table[id]);
}

void ttmon_metrics_num(struct ttmon_metrics *m, enum ttmon_metric id, uint64_t value, const char *const *values)
{
	begin(m, id);
	ttmon_promw_num(&m->w, value, values);
}

void ttmon_metrics_nano(struct ttmon_metrics *m, enum ttmon_metric id, uint64_t value, const char *const *values)
{
	begin(m, id);
	ttmon_promw_nano(&m->w, value, values);
}

void ttmon_metrics_histogram(struct ttmon_metrics *m, enum ttmon_metric id, const struct ttmon_prom_histogram *h,
			     const char *const *values)
{
	begin(m, id);
	ttmon_promw_histogram(&m->w, h, values);
}

void ttmon_api_metrics(void *ctx, struct ttmon_http_reply *reply)
{
	struct ttmon_run *c = ctx;
	struct ttmon_metrics *m = c->metrics;
	bool openmetrics = ttmon_prom_wants_openmetrics(reply->accept);
	int err;

	if (!m) {
		ttmon_http_error(reply, 503, "no metrics yet");
		return;
	}
	err = ttmon_metrics_take(m);
	if (!err)
		err = ttmon_metrics_rank(m);
	if (err) {
		ttmon_http_error(reply, 503,
				 err == -ENOMEM ? "out of memory" : "processes come faster than they are listed");
		return;
	}
	ttmon_run_snapshot(c, &m->snap);
	reply->content_type = openmetrics ? TTMON_PROM_OPENMETRICS : TTMON_PROM_CLASSIC;
	m->w = (struct ttmon_promw){ .f = reply->body, .openmetrics = openmetrics };
	ttmon_metrics_memory(m);
	ttmon_metrics_groups(m);
	ttmon_metrics_tt(m);
	ttmon_metrics_trace(m);
	ttmon_metrics_probes(m);
	ttmon_metrics_self(m);
	ttmon_promw_end(&m->w);
	m->w.f = NULL;
}

/* ---- the manual page ---- */

static void man_labels(FILE *f, const char *labels)
{
	for (const char *p = labels; *p;) {
		size_t n = strcspn(p, ",");

		fprintf(f, p == labels ? " {" : ", ");
		if (n == strlen(GROUP) && !strncmp(p, GROUP, n))
			fprintf(f, "\\fIGROUP\\fP");
		else
			fprintf(f, "%.*s", (int)n, p);
		p += n + (p[n] == ',');
	}
	fputs(*labels ? "}" : "", f);
}

static void man_rows(FILE *f, const char *title, const enum ttmon_metric *ids, size_t n)
{
	fprintf(f, ".SS %s\n", title);
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_prom_metric *r = &all[ids[i]];

		fprintf(f, ".TP\n\\fB%s\\fP", r->name);
		man_labels(f, r->labels);
		fprintf(f, "\n%s.\n(%s%s%s)\n", r->help, ttmon_prom_type_name(r->type), *r->unit ? ", " : "", r->unit);
	}
}

void ttmon_metrics_man(FILE *f)
{
#define X(ID, name, type, unit, labels, help) TTMON_METRIC_##ID,
#define PART(title, TABLE)                                           \
	{                                                            \
		static const enum ttmon_metric ids[] = { TABLE(X) }; \
		man_rows(f, title, ids, ARRAY_SIZE(ids));            \
	}
	PART("Memory and transfers of the whole host", TTMON_METRICS_MEMORY)
	PART("Groups of processes", TTMON_METRICS_GROUPS)
	PART("Tenstorrent chips", TTMON_METRICS_TT)
	PART("The trace", TTMON_METRICS_TRACE)
	PART("Probes and what they cost", TTMON_METRICS_PROBES)
	PART("The daemon", TTMON_METRICS_SELF)
#undef PART
#undef X
}
