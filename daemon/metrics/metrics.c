// SPDX-License-Identifier: GPL-2.0-only
/* metrics.c: see metrics.h and metrics_int.h. Cold thread. */
#include "daemon/metrics/metrics_int.h"

#include "lib/base/names.h"
#include "daemon/run/serve.h"

#include "daemon/core/usage/cgname.h"

/* The label that --group-by names. */
#define GROUP	       "GROUP"
#define TICKS_A_SECOND 10

static const struct ttmon_prom_metric all[TTMON_METRICS_MAX] = {
#define X(ID, n, t, u, l, need, h) \
	[TTMON_METRIC_##ID] = { .name = n, .type = TTMON_PROM_##t, .unit = u, .labels = l, .help = h },
	TTMON_METRICS_TABLE(X)
#undef X
};

/* Families that must be on. */
static const uint32_t needs[TTMON_METRICS_MAX] = {
#define X(ID, name, type, unit, labels, need, help) [TTMON_METRIC_##ID] = TTMON_NEED_##need,
	TTMON_METRICS_TABLE(X)
#undef X
};

static bool has_group(const char *labels)
{
	return !strncmp(labels, GROUP, strlen(GROUP));
}

static int make_table(struct ttmon_metrics *m)
{
	const char *by = ttmon_group_by_name(ttmon_daemon_opts(m->c)->group_by);

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

static void metrics_free(void *state)
{
	struct ttmon_metrics *m = state;

	for (size_t i = 0; i < TTMON_METRICS_MAX; i++)
		free(m->labels[i]);
	ttmon_topn_free(m->mem);
	ttmon_topn_free(m->cpu);
	ttmon_metrics_tt_free(m->tt);
	free(m->v.groups);
	ttmon_cgroups_free(m->cgroup_paths);
	free(m->cgroups);
	free(m);
}

static int start(struct ttmon_daemon *c, void **state)
{
	struct ttmon_metrics *m;
	int err;

	if (!ttmon_serve_wanted(c))
		return 0;
	m = calloc(1, sizeof(*m));
	if (!m)
		return log_error_r(-ENOMEM, "cannot make metrics: out of memory");
	m->c = c;
	m->start_real_ns = ttmon_metrics_start();
	err = ttmon_daemon_is_replay(c) ? 0 : ttmon_cgroups_new(NULL, &m->cgroup_paths);
	if (!err)
		err = make_table(m);
	if (!err)
		err = ttmon_metrics_tt_new(&m->tt);
	if (!err)
		err = ttmon_metrics_groups_new(m);
	if (err) {
		metrics_free(m);
		return log_error_r(err, "cannot make metrics: %s", strerror(-err));
	}
	*state = m;
	return 0;
}

static void tick(void *state)
{
	struct ttmon_metrics *m = state;

	/* Without a server no client can read figures, so none are kept. */
	if (!ttmon_serve_http(m->c) || ++m->ticks % TICKS_A_SECOND)
		return;
	if (ttmon_daemon_opts(m->c)->group_by != TTMON_GROUP_COMM && !ttmon_daemon_is_replay(m->c))
		ttmon_metrics_ask_cgroups(m);
	ttmon_daemon_snapshot(m->c, &m->snap);
	if (m->snap.has_tt)
		ttmon_metrics_tt_take(m);
}

/* The families that see what this sample counts. */
static uint32_t need_of(enum ttmon_metric id, const char *const *values)
{
	const char *vendor;

	if (needs[id] == TTMON_NEED_VENDOR) {
		vendor = values[has_group(all[id].labels)];
		return strcmp(vendor, "tenstorrent") ? TTMON_NEED_ALLOC : TTMON_NEED_TENSTORRENT;
	}
	return needs[id] == TTMON_NEED_FUNCTION ? ttmon_metrics_function_need(values[0]) : needs[id];
}

/* A series that stands still because its probes are off would look like a figure: it is left out. */
static bool is_seen(const struct ttmon_metrics *m, enum ttmon_metric id, const char *const *values)
{
	uint32_t need = need_of(id, values);

	for (unsigned int i = 0; need && i < TTMON_FAMILY_MAX; i++)
		if (need >> i & 1 && m->v.seen.of[i].since_ns == UINT64_MAX)
			return false;
	return true;
}

static void begin(struct ttmon_metrics *m, enum ttmon_metric id)
{
	if (m->w.metric != &m->table[id])
		ttmon_promw_metric(&m->w, &m->table[id]);
}

void ttmon_metrics_num(struct ttmon_metrics *m, enum ttmon_metric id, uint64_t value, const char *const *values)
{
	if (!is_seen(m, id, values))
		return;
	begin(m, id);
	ttmon_promw_num(&m->w, value, values);
}

void ttmon_metrics_nano(struct ttmon_metrics *m, enum ttmon_metric id, uint64_t value, const char *const *values)
{
	if (!is_seen(m, id, values))
		return;
	begin(m, id);
	ttmon_promw_nano(&m->w, value, values);
}

void ttmon_metrics_histogram(struct ttmon_metrics *m, enum ttmon_metric id, const struct ttmon_prom_histogram *h,
			     const char *const *values)
{
	if (!is_seen(m, id, values))
		return;
	begin(m, id);
	ttmon_promw_histogram(&m->w, h, values);
}

static void serve(void *ctx, struct ttmon_http_reply *reply)
{
	struct ttmon_daemon *c = ctx;
	struct ttmon_metrics *m = ttmon_daemon_part(c, &ttmon_part_metrics);
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
	ttmon_daemon_snapshot(c, &m->snap);
	reply->content_type = openmetrics ? TTMON_PROM_OPENMETRICS : TTMON_PROM_CLASSIC;
	m->w = (struct ttmon_promw){ .f = reply->body, .openmetrics = openmetrics };
	ttmon_metrics_memory(m);
	ttmon_metrics_groups(m);
	ttmon_metrics_chips(m);
	ttmon_metrics_trace(m);
	ttmon_metrics_probes(m);
	ttmon_metrics_self(m);
	ttmon_promw_end(&m->w);
	m->w.f = NULL;
}

static const struct ttmon_http_route route = {
	.path = "/metrics", .fn = serve, .help = "for Prometheus", .everybody = true
};

const struct ttmon_part ttmon_part_metrics = {
	.name = "metrics",
	.in = TTMON_IN_BOTH,
	.start = start,
	.tick = tick,
	.free = metrics_free,
	.routes = &route,
	.nr_routes = 1,
};

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

static void man_need(FILE *f, uint32_t need)
{
	const char *sep = "; needs ";

	if (need == TTMON_NEED_VENDOR)
		fputs("; needs alloc, or tenstorrent for memory of that vendor", f);
	if (need == TTMON_NEED_FUNCTION)
		fputs("; needs the family that sees the function", f);
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++) {
		if (!(need >> i & 1))
			continue;
		fprintf(f, "%s%s", sep, ttmon_family_name(i));
		sep = ", ";
	}
}

static void man_rows(FILE *f, const char *title, const enum ttmon_metric *ids, size_t n)
{
	fprintf(f, ".SS %s\n", title);
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_prom_metric *r = &all[ids[i]];

		fprintf(f, ".TP\n\\fB%s\\fP", r->name);
		man_labels(f, r->labels);
		fprintf(f, "\n%s.\n(%s%s%s", r->help, ttmon_prom_type_name(r->type), *r->unit ? ", " : "", r->unit);
		man_need(f, needs[ids[i]]);
		fputs(")\n", f);
	}
}

void ttmon_metrics_man(FILE *f)
{
#define X(ID, name, type, unit, labels, need, help) TTMON_METRIC_##ID,
#define PART(title, TABLE)                                           \
	{                                                            \
		static const enum ttmon_metric ids[] = { TABLE(X) }; \
		man_rows(f, title, ids, ARRAY_SIZE(ids));            \
	}
	PART("Memory and transfers of the whole host", TTMON_METRICS_MEMORY)
	PART("Time of synchronous calls of the whole host", TTMON_METRICS_CALLS)
	PART("Groups of processes", TTMON_METRICS_GROUPS)
	PART("Tenstorrent chips", TTMON_METRICS_TT)
	PART("The trace", TTMON_METRICS_TRACE)
	PART("Probes and what they cost", TTMON_METRICS_PROBES)
	PART("The daemon", TTMON_METRICS_SELF)
#undef PART
#undef X
}
