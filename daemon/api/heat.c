// SPDX-License-Identifier: GPL-2.0-only
/*
 * heat.c: /v1/heat, /v1/hotspots, /v1/coldspots, /v1/advice. Each walks all records, so a forked child
 * does it (job.h). An ordinary user gets the same lists without the processes of other users.
 */
#include "daemon/api/job.h"
#include "daemon/api/rows.h"
#include "daemon/io/files/db_rows.h"

#define HEAT_N	  20
#define SPOTS_N	  10
#define LIST_MAX  1000
#define SPOTS_ALL 65536 /* groups that are searched for an ordinary user */

/* ---- heat over time ---- */

/* Buckets from..to of the transfers in the last last_ns (0: ever). */
struct span {
	unsigned int from, to;
	uint64_t bytes;
};

static struct span span_of(const struct ttmon_heat *heat, uint64_t now_ns, uint64_t last_ns)
{
	uint64_t since = last_ns && now_ns > last_ns ? now_ns - last_ns : 0;
	struct span s = { .to = TTMON_HEAT_BUCKETS };

	if (since > heat->origin_ns)
		s.from = (unsigned int)MIN((since - heat->origin_ns) / heat->width_ns, (uint64_t)TTMON_HEAT_BUCKETS);
	while (s.to > s.from && !heat->copies[s.to - 1])
		s.to--;
	for (unsigned int i = s.from; i < s.to; i++)
		s.bytes += heat->bytes[i];
	return s;
}

static void put_buckets(struct ttmon_jsonw *w, const struct ttmon_heat *heat, const struct span *s)
{
	ttmon_jsonw_key_time(w, "origin_ns", heat->origin_ns + s->from * heat->width_ns);
	ttmon_jsonw_key_num(w, "width_ns", heat->width_ns);
	ttmon_jsonw_key_open(w, "copies", '[');
	for (unsigned int i = s->from; i < s->to; i++)
		ttmon_jsonw_num(w, heat->copies[i]);
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_key_open(w, "bytes", '[');
	for (unsigned int i = s->from; i < s->to; i++)
		ttmon_jsonw_num(w, heat->bytes[i]);
	ttmon_jsonw_close(w, ']');
}

static void put_alloc(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_alloc *a)
{
	ttmon_db_rows_alloc_id(w, "id", h, a);
	ttmon_jsonw_key_num(w, "seq", ttmon_alloc_seq(a));
	ttmon_api_row_process(w, ttmon_history_proc(h, a->proc), true);
	ttmon_jsonw_key_name(w, "method", ttmon_method_name(a->method));
	ttmon_jsonw_key_num(w, "size", a->size);
	ttmon_jsonw_key_addr(w, "addr", a->addr);
	ttmon_db_rows_alloc_known(w, h, a);
	ttmon_jsonw_key_bool(w, "live", a->end == TTMON_END_LIVE);
	ttmon_api_row_site(w, h, a->site);
}

static void put_heat(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_alloc *a, uint64_t now_ns,
		     uint64_t last_ns)
{
	struct ttmon_heat heat = { .origin_ns = a->alloc_ns, .width_ns = NSEC_PER_MS };
	struct span s;

	(void)ttmon_history_heat(a, &heat);
	s = span_of(&heat, now_ns, last_ns);
	ttmon_jsonw_row(w, '{');
	put_alloc(w, h, a);
	ttmon_jsonw_key_known(w, "moved", ttmon_history_alloc_known(h, a) != TTMON_UNKNOWN, s.bytes);
	put_buckets(w, &heat, &s);
	ttmon_jsonw_close(w, '}');
}

struct hot {
	const struct ttmon_alloc *a;
	uint64_t bytes;
};

static bool hotter(const struct hot *x, const struct hot *y)
{
	return x->bytes != y->bytes ? x->bytes > y->bytes : ttmon_alloc_seq(x->a) < ttmon_alloc_seq(y->a);
}

/* The n hottest allocations that the viewer may see, hottest first. Returns their number. */
static size_t find_hottest(const struct ttmon_api_job *job, const struct ttmon_history *h, uint64_t now_ns,
			   struct hot *list)
{
	size_t n = 0;

	for (uint64_t seq = ttmon_history_next(h, 0); seq < ttmon_history_allocs(h);
	     seq = ttmon_history_next(h, seq + 1)) {
		struct hot x = { .a = ttmon_history_alloc(h, seq) };
		const struct ttmon_proc *proc = ttmon_history_proc(h, x.a->proc);
		struct ttmon_heat heat;
		size_t at;

		if ((job->pid && proc->tgid != job->pid) || !ttmon_viewer_sees_uid(&job->who, proc->uid) ||
		    !ttmon_history_heat(x.a, &heat))
			continue;
		x.bytes = span_of(&heat, now_ns, job->last_ns).bytes;
		if (!x.bytes || (n == job->n && !hotter(&x, &list[n - 1])))
			continue;
		n += n < job->n;
		for (at = n - 1; at && hotter(&x, &list[at - 1]); at--)
			list[at] = list[at - 1];
		list[at] = x;
	}
	return n;
}

static int put_hottest(struct ttmon_jsonw *w, const struct ttmon_api_job *job, const struct ttmon_history *h,
		       uint64_t now_ns)
{
	_cleanup_free_ struct hot *list = malloc(job->n * sizeof(*list));
	size_t n;

	if (!list)
		return -ENOMEM;
	n = find_hottest(job, h, now_ns, list);
	for (size_t i = 0; i < n; i++)
		put_heat(w, h, list[i].a, now_ns, job->last_ns);
	return 0;
}

/* ---- heat over pages ---- */

static void put_pages(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_alloc *a)
{
	const struct ttmon_page_heat *ph = a->traffic->page_heat;
	uint64_t groups = ph ? a->size / ph->group_bytes + (a->size % ph->group_bytes != 0) : 0;

	ttmon_jsonw_row(w, '{');
	put_alloc(w, h, a);
	ttmon_jsonw_key_known(w, "group_bytes", ph, ph ? ph->group_bytes : 0);
	ttmon_jsonw_key_open(w, "copies", '[');
	for (uint64_t i = 0; i < MIN(groups, (uint64_t)TTMON_PAGE_GROUPS); i++)
		ttmon_jsonw_num(w, ph->copies[i]);
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_close(w, '}');
}

enum heat_view { BY_ALLOCATION, BY_PAGE };

static int make_heat(const struct ttmon_api_job *job, int fd, struct ttmon_pipeline *p, uint64_t now_ns)
{
	_cleanup_(ttmon_jsonw_fini) struct ttmon_jsonw w = { .fd = -1 };
	const struct ttmon_history *h = ttmon_pipeline_history(p);
	const struct ttmon_alloc *a = job->has_id ? ttmon_api_find(job, h) : NULL;
	int err = job->has_id && !a ? -ENOENT : ttmon_jsonw_init(&w, fd, false);

	if (err)
		return err;
	ttmon_jsonw_open(&w, '{');
	ttmon_jsonw_key_name(&w, "by", job->view == BY_PAGE ? "page" : "allocation");
	ttmon_jsonw_key_open(&w, "allocations", '[');
	if (job->view == BY_PAGE)
		put_pages(&w, h, a);
	else if (a)
		put_heat(&w, h, a, now_ns, job->last_ns);
	else
		err = put_hottest(&w, job, h, now_ns);
	if (err)
		return err;
	ttmon_jsonw_close(&w, ']');
	ttmon_jsonw_key_time(&w, "now_ns", now_ns);
	ttmon_jsonw_close(&w, '}');
	ttmon_jsonw_end(&w);
	return ttmon_jsonw_finish(&w);
}

static bool parse_heat(struct ttmon_http_reply *reply, struct ttmon_api_job *job)
{
	const char *by = ttmon_http_arg(reply, "by"), *id = ttmon_http_arg(reply, "id");
	uint64_t last_ms = 0, pid = 0;

	if (by && strcmp(by, "allocation") && strcmp(by, "page")) {
		ttmon_http_error(reply, 400, "by=%.40s: allocation or page is wanted", by);
		return false;
	}
	job->view = by && !strcmp(by, "page") ? BY_PAGE : BY_ALLOCATION;
	job->has_id = id != NULL;
	if (id && !ttmon_api_parse_id(id, &job->id)) {
		ttmon_http_error(reply, 400, "id=%.60s is no id of an allocation: " TTMON_API_ID_FORM, id);
		return false;
	}
	if (job->view == BY_PAGE && !id) {
		ttmon_http_error(reply, 400, "by=page wants the id= of an allocation");
		return false;
	}
	if (job->view == BY_PAGE && ttmon_http_arg(reply, "last")) {
		ttmon_http_error(reply, 400, "last= goes with by=allocation: pages are counted over the whole life");
		return false;
	}
	if (!ttmon_api_arg_num(reply, "n", 1, LIST_MAX, &job->n) ||
	    !ttmon_api_arg_num(reply, "last", 1, UINT32_MAX, &last_ms) ||
	    !ttmon_api_arg_num(reply, "pid", 1, UINT32_MAX, &pid))
		return false;
	job->pid = (uint32_t)pid;
	job->last_ns = last_ms * NSEC_PER_MS;
	return true;
}

void ttmon_api_heat(void *ctx, struct ttmon_http_reply *reply)
{
	struct ttmon_api_job job = {
		.make = make_heat,
		.what = "the heat",
		.content_type = TTMON_HTTP_JSON,
		.missing = TTMON_API_NO_ALLOC,
		.n = HEAT_N,
	};

	if (parse_heat(reply, &job))
		ttmon_api_add_job(ctx, reply, &job);
}

/* ---- spots and advice ---- */

static void put_spot(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_spot *s)
{
	const struct ttmon_alloc *a = ttmon_history_alloc(h, s->alloc_seq);

	ttmon_jsonw_open(w, '{');
	ttmon_api_row_process(w, ttmon_history_proc(h, s->proc), true);
	ttmon_api_row_site(w, h, s->site);
	ttmon_db_rows_spot(w, h, s);
	if (a && a->name)
		ttmon_jsonw_key_str(w, "name", a->name);
	ttmon_jsonw_close(w, '}');
}

static bool sees(const struct ttmon_api_job *job, const struct ttmon_history *h, const struct ttmon_spot *s)
{
	return ttmon_viewer_sees_uid(&job->who, ttmon_history_proc(h, s->proc)->uid);
}

enum spot_view { HOT, COLD };

static void put_counts(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_alloc *a)
{
	bool known = ttmon_history_alloc_known(h, a) != TTMON_UNKNOWN;
	bool pinned = ttmon_method_pinned(a->method);

	ttmon_jsonw_key(w, "pinned");
	if (!pinned && !ttmon_db_rows_is_plain_host(a))
		ttmon_jsonw_bool(w, false);
	else if (ttmon_history_mem(h, a) == TTMON_MEM_UNKNOWN)
		ttmon_jsonw_null(w);
	else
		ttmon_jsonw_bool(w, ttmon_history_mem(h, a) == TTMON_MEM_PINNED);
	ttmon_jsonw_key_known(w, "copies", known, a->traffic->copies[TTMON_RDIR_H2D]);
	ttmon_jsonw_key_known(w, "copied", known, a->traffic->bytes[TTMON_RDIR_H2D]);
	ttmon_jsonw_key_known(w, "copies_back", known, a->traffic->copies[TTMON_RDIR_D2H]);
	ttmon_jsonw_key_known(w, "copied_back", known, a->traffic->bytes[TTMON_RDIR_D2H]);
}

/* Live allocations by number of transfers, pinned or not. */
static int put_hottest_live(struct ttmon_jsonw *w, const struct ttmon_api_job *job, const struct ttmon_history *h)
{
	size_t max = job->who.all ? job->n : SPOTS_ALL, n, shown = 0;
	_cleanup_free_ uint64_t *seqs = calloc(max, sizeof(*seqs));

	if (!seqs)
		return -ENOMEM;
	n = ttmon_history_hottest(h, seqs, max);
	ttmon_jsonw_key_open(w, "allocations", '[');
	for (size_t i = 0; i < n && shown < job->n; i++) {
		const struct ttmon_alloc *a = ttmon_history_alloc(h, seqs[i]);

		if (!ttmon_viewer_sees_uid(&job->who, ttmon_history_proc(h, a->proc)->uid))
			continue;
		shown++;
		ttmon_jsonw_row(w, '{');
		put_alloc(w, h, a);
		put_counts(w, h, a);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
	return 0;
}

static int make_spots(const struct ttmon_api_job *job, int fd, struct ttmon_pipeline *p, uint64_t now_ns)
{
	_cleanup_(ttmon_jsonw_fini) struct ttmon_jsonw w = { .fd = -1 };
	const struct ttmon_history *h = ttmon_pipeline_history(p);
	size_t max = job->who.all ? job->n : SPOTS_ALL, n, shown = 0;
	_cleanup_free_ struct ttmon_spot *spots = calloc(max, sizeof(*spots));
	int err = spots ? ttmon_jsonw_init(&w, fd, false) : -ENOMEM;

	if (err)
		return err;
	n = job->view == HOT ? ttmon_history_hotspots(h, spots, max) : ttmon_history_coldspots(h, spots, max);
	ttmon_jsonw_open(&w, '{');
	ttmon_jsonw_key_open(&w, "spots", '[');
	for (size_t i = 0; i < n && shown < job->n; i++) {
		if (!sees(job, h, &spots[i]))
			continue;
		ttmon_jsonw_line(&w);
		put_spot(&w, h, &spots[i]);
		shown++;
	}
	ttmon_jsonw_close(&w, ']');
	if (job->view == HOT) {
		err = put_hottest_live(&w, job, h);
		if (err)
			return err;
	}
	ttmon_jsonw_key_time(&w, "now_ns", now_ns);
	ttmon_jsonw_close(&w, '}');
	ttmon_jsonw_end(&w);
	return ttmon_jsonw_finish(&w);
}

static void serve_spots(void *ctx, struct ttmon_http_reply *reply, enum spot_view view)
{
	struct ttmon_api_job job = {
		.make = make_spots,
		.what = "the list",
		.content_type = TTMON_HTTP_JSON,
		.n = SPOTS_N,
		.view = view,
	};

	if (ttmon_http_arg(reply, "period"))
		ttmon_api_period(ctx, reply, view == COLD);
	else if (ttmon_http_arg(reply, "pid"))
		ttmon_http_error(reply, 400, "pid= goes with period=");
	else if (ttmon_api_arg_num(reply, "n", 1, LIST_MAX, &job.n))
		ttmon_api_add_job(ctx, reply, &job);
}

void ttmon_api_hotspots(void *ctx, struct ttmon_http_reply *reply)
{
	serve_spots(ctx, reply, HOT);
}

void ttmon_api_coldspots(void *ctx, struct ttmon_http_reply *reply)
{
	serve_spots(ctx, reply, COLD);
}

static int make_advice(const struct ttmon_api_job *job, int fd, struct ttmon_pipeline *p, uint64_t now_ns)
{
	_cleanup_(ttmon_jsonw_fini) struct ttmon_jsonw w = { .fd = -1 };
	const struct ttmon_history *h = ttmon_pipeline_history(p);
	_cleanup_free_ struct ttmon_spot *spots = NULL;
	size_t n = 0;
	int err = ttmon_history_advice(h, &spots, &n);

	(void)now_ns;
	if (!err)
		err = ttmon_jsonw_init(&w, fd, false);
	if (err)
		return err;
	for (size_t i = 0; i < n; i++) {
		if (!sees(job, h, &spots[i]))
			continue;
		put_spot(&w, h, &spots[i]);
		ttmon_jsonw_end(&w);
	}
	return ttmon_jsonw_finish(&w);
}

void ttmon_api_advice(void *ctx, struct ttmon_http_reply *reply)
{
	struct ttmon_api_job job = {
		.make = make_advice,
		.what = "the advice",
		.content_type = TTMON_HTTP_JSONL,
		.on_disk = true,
	};

	ttmon_api_add_job(ctx, reply, &job);
}
