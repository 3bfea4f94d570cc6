// SPDX-License-Identifier: GPL-2.0-only
/*
 * period.c: /v1/hotspots and /v1/coldspots with period=: transfers of a process between two of its
 * checkpoints, compared with its other periods (core/history/period_view.h). Made by a forked child
 * (job.h).
 */
#include "daemon/api/job.h"
#include "daemon/api/rows.h"
#include "daemon/core/stream/decode.h"
#include "daemon/core/history/period_view.h"
#include "daemon/io/files/db_rows.h"

#define SPOTS_N	 10
#define LIST_MAX 1000

enum view { HOT, COLD };

static bool is_hot(const struct ttmon_period_spot *s)
{
	return (s->method == TTMON_METHOD_CUSTOM || s->method == TTMON_METHOD_MMAP) && s->row.shown_copies[1];
}

static bool is_cold(const struct ttmon_period_spot *s)
{
	return ttmon_method_pinned(s->method) && s->allocs && !s->row.shown_copies[0] && !s->row.shown_copies[1];
}

static int compare(uint64_t a, uint64_t b)
{
	return a < b ? 1 : a > b ? -1 : 0;
}

static int hottest(const void *pa, const void *pb)
{
	const struct ttmon_period_spot *a = pa, *b = pb;
	int order = compare(a->row.shown_bytes[1], b->row.shown_bytes[1]);

	return order ? order : compare(b->alloc_seq, a->alloc_seq);
}

static int coldest(const void *pa, const void *pb)
{
	const struct ttmon_period_spot *a = pa, *b = pb;
	int order = compare(a->bytes, b->bytes);

	return order ? order : compare(b->alloc_seq, a->alloc_seq);
}

static void put_number(struct ttmon_jsonw *w, const char *key, uint32_t value)
{
	ttmon_jsonw_key_known(w, key, value != UINT32_MAX, value);
}

static void put_spot(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_period_spot *s)
{
	const struct ttmon_alloc *a = ttmon_history_alloc(h, s->alloc_seq);
	const struct ttmon_period_row *r = &s->row;

	ttmon_jsonw_row(w, '{');
	ttmon_api_row_site(w, h, s->site);
	ttmon_jsonw_key_num(w, "site", s->site);
	ttmon_jsonw_key_name(w, "method", ttmon_method_name(s->method));
	if (s->name)
		ttmon_jsonw_key_str(w, "name", s->name);
	ttmon_jsonw_key_num(w, "allocs", s->allocs);
	ttmon_jsonw_key_num(w, "size", s->size);
	ttmon_jsonw_key_num(w, "bytes", s->bytes);
	ttmon_jsonw_key_num(w, "copies", r->shown_copies[1]);
	ttmon_jsonw_key_num(w, "copied", r->shown_bytes[1]);
	ttmon_jsonw_key_num(w, "copies_back", r->shown_copies[0]);
	ttmon_jsonw_key_num(w, "copied_back", r->shown_bytes[0]);
	ttmon_jsonw_key_num(w, "steps", r->steps);
	ttmon_jsonw_key_num(w, "of", r->of);
	put_number(w, "first", r->first);
	put_number(w, "last", r->last);
	ttmon_jsonw_key_name(w, "when", ttmon_period_when_name(r->when));
	ttmon_jsonw_key_num(w, "min", r->min);
	ttmon_jsonw_key_num(w, "median", r->median);
	ttmon_jsonw_key_num(w, "max", r->max);
	ttmon_jsonw_key_name(w, "advice", ttmon_advice_name(s->advice));
	ttmon_jsonw_key_num(w, "saved_ns", s->gain.saved_ns);
	ttmon_jsonw_key_num(w, "cost_ns", s->gain.cost_ns);
	ttmon_jsonw_key_known(w, "pays_after", s->gain.pays_after != UINT64_MAX, s->gain.pays_after);
	if (a)
		ttmon_db_rows_alloc_id(w, "allocation", h, a);
	ttmon_jsonw_close(w, '}');
}

/* The last process of that number with a checkpoint (with that label, if one is requested). */
static bool find_proc(const struct ttmon_api_job *job, const struct ttmon_history *h, uint32_t *ret)
{
	const struct ttmon_period_end *c;
	size_t n = ttmon_history_checkpoints(h, &c);

	while (n--) {
		const struct ttmon_proc *p = ttmon_history_proc(h, c[n].proc);

		if (p->tgid == job->pid && ttmon_viewer_sees_uid(&job->who, p->uid) &&
		    (!job->label[0] || !strcmp(c[n].label, job->label))) {
			*ret = p->idx;
			return true;
		}
	}
	return false;
}

static void put_view(struct ttmon_jsonw *w, const struct ttmon_api_job *job, const struct ttmon_history *h,
		     uint32_t proc, const struct ttmon_period_view *v)
{
	uint64_t shown = 0;

	ttmon_jsonw_open(w, '{');
	ttmon_api_row_process(w, ttmon_history_proc(h, proc), true);
	ttmon_jsonw_key_str(w, "label", v->label);
	ttmon_jsonw_key_num(w, "periods", v->of);
	ttmon_jsonw_key_num(w, "period", v->period);
	ttmon_jsonw_key_time(w, "from_ns", v->from_ns);
	ttmon_jsonw_key_time(w, "to_ns", v->to_ns);
	ttmon_jsonw_key_num(w, "dropped", v->dropped);
	ttmon_jsonw_key_bool(w, "whole", v->whole);
	ttmon_jsonw_key_open(w, "spots", '[');
	for (uint32_t i = 0; i < v->n && shown < job->n; i++) {
		if (!(job->view == HOT ? is_hot : is_cold)(&v->spots[i]))
			continue;
		put_spot(w, h, &v->spots[i]);
		shown++;
	}
	ttmon_jsonw_close(w, ']');
}

static int make_period(const struct ttmon_api_job *job, int fd, struct ttmon_pipeline *p, uint64_t now_ns)
{
	_cleanup_(ttmon_jsonw_fini) struct ttmon_jsonw w = { .fd = -1 };
	_cleanup_(ttmon_period_view_fini) struct ttmon_period_view v = { 0 };
	const struct ttmon_history *h = ttmon_pipeline_history(p);
	struct ttmon_period_query q = { .label = job->label[0] ? job->label : NULL, .period = job->period };
	int err = find_proc(job, h, &q.proc) ? ttmon_history_period(h, &q, now_ns, &v) : -ENOENT;

	if (!err)
		err = ttmon_jsonw_init(&w, fd, false);
	if (err)
		return err;
	if (v.n)
		qsort(v.spots, v.n, sizeof(*v.spots), job->view == HOT ? hottest : coldest);
	put_view(&w, job, h, q.proc, &v);
	ttmon_jsonw_key_time(&w, "now_ns", now_ns);
	ttmon_jsonw_close(&w, '}');
	ttmon_jsonw_end(&w);
	return ttmon_jsonw_finish(&w);
}

static bool parse(struct ttmon_http_reply *reply, struct ttmon_api_job *job)
{
	const char *period = ttmon_http_arg(reply, "period"), *label = ttmon_http_arg(reply, "label");
	uint64_t pid = 0, n = 0;
	bool back = *period == '-';

	if (!ttmon_http_arg(reply, "pid")) {
		ttmon_http_error(reply, 400, "period= wants the pid= of a process");
		return false;
	}
	if (!ttmon_api_arg_num(reply, "pid", 1, INT32_MAX, &pid) ||
	    !ttmon_api_arg_num(reply, "n", 1, LIST_MAX, &job->n))
		return false;
	if (!ttmon_api_number(period + back, &n) || n > UINT32_MAX || (back && !n)) {
		ttmon_http_error(reply, 400,
				 "period=%.40s: a number is wanted, from 0, or -1 for the last complete one", period);
		return false;
	}
	if (label && (!*label || strlen(label) >= sizeof(job->label))) {
		ttmon_http_error(reply, 400, "label= wants 1 to %zu bytes", sizeof(job->label) - 1);
		return false;
	}
	job->pid = (uint32_t)pid;
	job->period = back ? -(int64_t)n : (int64_t)n;
	snprintf(job->label, sizeof(job->label), "%s", label ? label : "");
	return true;
}

void ttmon_api_period(void *ctx, struct ttmon_http_reply *reply, bool cold)
{
	struct ttmon_api_job job = {
		.make = make_period,
		.what = "the list",
		.content_type = TTMON_HTTP_JSON,
		.missing =
			"no such period: no such process, or not yours; or it has not told so many checkpoints (with "
			"that label)",
		.n = SPOTS_N,
		.view = cold ? COLD : HOT,
	};

	if (parse(reply, &job))
		ttmon_api_add_job(ctx, reply, &job);
}
