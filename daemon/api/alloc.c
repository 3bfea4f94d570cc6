// SPDX-License-Identifier: GPL-2.0-only
/*
 * alloc.c: /v1/allocations and /v1/allocations/ID. Cold thread.
 *
 * The list is a stream: each block of it is written as text in the hot thread, between two drains,
 * some hundred rows at a time into memory made here. Each block continues where the one before ended,
 * by the number in the order of allocations, which never changes, and the list ends with the newest
 * allocation at its beginning. So an allocation that lives all the time is listed exactly once, one
 * that comes or goes meanwhile at most once. A slow client holds no more memory than one row.
 */
#include <limits.h>

#include "daemon/api/job.h"
#include "daemon/api/rows.h"
#include "daemon/io/files/db_rows.h"

/* Limits of one call in the hot thread: rows written, records visited, bytes; about 0.3 ms. */
#define ROWS_MAX  256
#define LOOKS_MAX 4096
#define TEXT_MAX  65536
/* Calls for one block, where few records match. */
#define STAYS_MAX      8
#define DEFAULT_LIMIT  1000
#define ANY	       UINT_MAX
#define DETAILS_EVENTS 1000

struct walk {
	const struct ttmon_daemon *run;
	struct ttmon_viewer who;
	/* The filter. */
	uint32_t pid; /* 0: any */
	unsigned int method;
	bool has_live, live;
	uint64_t left; /* rows to write; UINT64_MAX: all */
	/* The position. */
	uint64_t at, end, now_ns;
	bool begun, more, over; /* more: there is another row, at `at`; over: the text is complete */
	bool comma;		/* state of the writer */
	char *rest;		/* part of a row that did not fit into the last block */
	size_t rest_at, rest_len;
};

struct stay {
	struct walk *walk;
	struct ttmon_jsonw *w;
	size_t full; /* no further row once there is this much text */
};

static bool wanted(const struct walk *k, const struct ttmon_history *h, const struct ttmon_alloc *a)
{
	const struct ttmon_proc *p = ttmon_history_proc(h, a->proc);

	return (!k->pid || k->pid == p->tgid) && (k->method == ANY || k->method == a->method) &&
	       (!k->has_live || k->live == (a->end == TTMON_END_LIVE)) && ttmon_viewer_sees_uid(&k->who, p->uid);
}

/* Members that both the list and the single allocation have. */
static void put_row(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_alloc *a)
{
	const struct ttmon_proc *p = ttmon_history_proc(h, a->proc);

	ttmon_db_rows_alloc(w, h, a);
	ttmon_jsonw_key_num(w, "seq", ttmon_alloc_seq(a));
	ttmon_api_row_process(w, p, false);
	if (ttmon_db_rows_has_launches(h, a))
		ttmon_jsonw_key_num(w, "launches_numbered", ttmon_history_numbered(h, p));
	ttmon_api_row_site(w, h, a->site);
	TTMON_JSONW_KEY_IF(w, "last_copy_ns", a->traffic->last_copy_ns, time, a->traffic->last_copy_ns);
}

/* ---- the list ---- */

/* Hot thread. 1: there may be more, 0: the list is complete. */
static int put_rows(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	const struct ttmon_history *h = ttmon_pipeline_history(p);
	const struct stay *s = ctx;
	struct walk *k = s->walk;

	if (!k->begun) {
		k->end = ttmon_history_allocs(h);
		k->now_ns = now_ns;
		k->begun = true;
	}
	for (unsigned int rows = 0, looks = 0; rows < ROWS_MAX && looks < LOOKS_MAX && s->w->len < s->full; looks++) {
		const struct ttmon_alloc *a;

		k->at = ttmon_history_next(h, k->at);
		if (k->at >= k->end)
			return 0;
		a = ttmon_history_alloc(h, k->at);
		if (wanted(k, h, a)) {
			k->more = !k->left;
			if (k->more)
				return 0;
			ttmon_jsonw_row(s->w, '{');
			put_row(s->w, h, a);
			ttmon_jsonw_close(s->w, '}');
			k->left -= k->left != UINT64_MAX;
			rows++;
		}
		k->at++;
	}
	return 1;
}

static void put_end(struct walk *k, struct ttmon_jsonw *w)
{
	ttmon_jsonw_close(w, ']');
	TTMON_JSONW_KEY_IF(w, "next", k->more, time, k->at);
	ttmon_jsonw_key_time(w, "now_ns", k->now_ns);
	ttmon_jsonw_close(w, '}');
	ttmon_jsonw_end(w);
	k->over = true;
}

static ssize_t take_rest(struct walk *k, char *buf, size_t max)
{
	size_t n = MIN(max, k->rest_len - k->rest_at);

	memcpy(buf, k->rest + k->rest_at, n);
	k->rest_at += n;
	if (k->rest_at == k->rest_len) {
		free(k->rest);
		k->rest = NULL;
	}
	return (ssize_t)n;
}

static ssize_t give(struct walk *k, const struct ttmon_jsonw *w, char *buf, size_t max)
{
	size_t n = MIN(max, w->len);

	memcpy(buf, w->buf, n);
	if (w->len > n) {
		k->rest = malloc(w->len - n);
		if (!k->rest)
			return -ENOMEM;
		memcpy(k->rest, w->buf + n, w->len - n);
		k->rest_len = w->len - n;
		k->rest_at = 0;
	}
	return (ssize_t)n;
}

static ssize_t next_block(void *ctx, char *buf, size_t max)
{
	_cleanup_(ttmon_jsonw_fini) struct ttmon_jsonw w = { .fd = -1 };
	struct walk *k = ctx;
	struct stay s = { k, &w, MIN(max, (size_t)TEXT_MAX) };

	if (k->rest)
		return take_rest(k, buf, max);
	if (k->over)
		return 0;
	/* Without a file: its buffer holds more than one call writes; an overflow would be an error. */
	if (ttmon_jsonw_init(&w, -1, false))
		return -ENOMEM;
	w.comma = k->comma;
	if (!k->begun) {
		ttmon_jsonw_open(&w, '{');
		ttmon_jsonw_key_open(&w, "allocations", '[');
	}
	for (unsigned int i = 0; i < STAYS_MAX && w.len < s.full / 2 && !k->over; i++)
		if (!ttmon_daemon_call(k->run, put_rows, &s))
			put_end(k, &w);
	/* No match in all records visited: other clients must be served too. */
	if (!w.len)
		ttmon_jsonw_end(&w);
	else
		k->comma = w.comma;
	return w.err ? w.err : give(k, &w, buf, max);
}

static void walk_done(void *ctx)
{
	struct walk *k = ctx;

	free(k->rest);
	free(k);
}

static bool parse_method(struct ttmon_http_reply *reply, unsigned int *ret)
{
	const char *text = ttmon_http_arg(reply, "method");

	if (!text)
		return true;
	for (unsigned int m = 0; m < TTMON_METHOD_MAX; m++) {
		if (ttmon_method_name(m) && !strcmp(ttmon_method_name(m), text)) {
			*ret = m;
			return true;
		}
	}
	ttmon_http_error(reply, 400, "method=%.40s: there is no such method", text);
	return false;
}

static bool parse_walk(struct ttmon_http_reply *reply, struct walk *k)
{
	uint64_t pid = 0, limit = DEFAULT_LIMIT;

	k->method = ANY;
	k->has_live = ttmon_http_arg(reply, "live") != NULL;
	if (!ttmon_api_arg_num(reply, "pid", 1, INT32_MAX, &pid) ||
	    !ttmon_api_arg_num(reply, "limit", 0, INT64_MAX, &limit) ||
	    !ttmon_api_arg_num(reply, "cursor", 0, INT64_MAX, &k->at) || !ttmon_api_arg_bool(reply, "live", &k->live) ||
	    !parse_method(reply, &k->method))
		return false;
	k->pid = (uint32_t)pid;
	k->left = limit ? limit : UINT64_MAX;
	return true;
}

void ttmon_api_allocations(void *ctx, struct ttmon_http_reply *reply)
{
	struct walk *k = calloc(1, sizeof(*k));

	if (!k) {
		ttmon_http_error(reply, 500, "out of memory");
		return;
	}
	k->run = ctx;
	ttmon_viewer_init(&k->who, reply);
	if (parse_walk(reply, k))
		ttmon_http_stream(reply, next_block, walk_done, k);
	else
		walk_done(k);
}

/* ---- one ---- */

/* Digits up to the character `end`, which is cut off; hex: 16 of them. */
static bool cut_number(char **text, char end, uint64_t *ret)
{
	char *at = strchr(*text, end), *number = *text;

	if (!at)
		return false;
	*at = '\0';
	*text = at + 1;
	return ttmon_api_number(number, ret);
}

static bool cut_key(char **text, uint64_t *ret)
{
	char *end;

	if (strspn(*text, "0123456789abcdef") != 16 || (*text)[16] != ':')
		return false;
	*ret = strtoull(*text, &end, 16);
	*text = end + 1;
	return true;
}

bool ttmon_api_parse_id(const char *text, struct ttmon_api_alloc_id *ret)
{
	char copy[128], *at = copy, *seq;
	uint64_t ordinal, proc;

	*ret = (struct ttmon_api_alloc_id){ 0 };
	if (ttmon_api_number(text, &ret->seq)) {
		ret->by_seq = true;
		ret->proc = UINT32_MAX;
		return true;
	}
	if (strlen(text) >= sizeof(copy))
		return false;
	strcpy(copy, text);
	if (!cut_key(&at, &ret->key) || !cut_number(&at, ':', &ret->size) || !cut_number(&at, '@', &ordinal))
		return false;
	seq = strchr(at, '#');
	if (seq) {
		*seq = '\0';
		ret->by_seq = ttmon_api_number(seq + 1, &ret->seq);
	}
	if (seq && !ret->by_seq)
		return false;
	if (!ttmon_api_number(at, &proc) || proc >= UINT32_MAX || ordinal > UINT32_MAX)
		return false;
	ret->ordinal = (uint32_t)ordinal;
	ret->proc = (uint32_t)proc;
	return true;
}

static bool same_id(const struct ttmon_history *h, const struct ttmon_alloc *a, const struct ttmon_api_alloc_id *id)
{
	return a->size == id->size && a->ordinal == id->ordinal && a->proc == id->proc &&
	       ttmon_history_site(h, a->site)->key == id->key;
}

const struct ttmon_alloc *ttmon_api_find(const struct ttmon_api_job *job, const struct ttmon_history *h)
{
	const struct ttmon_api_alloc_id *id = &job->id;
	const struct ttmon_alloc *a = NULL;

	if (id->by_seq) {
		/*
		 * If the number is known, the other parts need not match: a mapping changes its size, a call site is
		 * resolved later.
		 */
		a = ttmon_history_alloc(h, id->seq);
		if (a && id->proc != UINT32_MAX && id->proc != a->proc)
			a = NULL;
	} else {
		for (uint64_t seq = ttmon_history_next(h, 0); seq < ttmon_history_allocs(h);
		     seq = ttmon_history_next(h, seq + 1)) {
			a = ttmon_history_alloc(h, seq);
			if (same_id(h, a, id))
				break;
			a = NULL;
		}
	}
	return a && ttmon_viewer_sees_uid(&job->who, ttmon_history_proc(h, a->proc)->uid) ? a : NULL;
}

static int make_details(const struct ttmon_api_job *job, int fd, struct ttmon_pipeline *p, uint64_t now_ns)
{
	_cleanup_(ttmon_jsonw_fini) struct ttmon_jsonw w = { .fd = -1 };
	const struct ttmon_history *h = ttmon_pipeline_history(p);
	const struct ttmon_alloc *a = ttmon_api_find(job, h);
	uint32_t kept;
	int err;

	if (!a)
		return -ENOENT;
	err = ttmon_jsonw_init(&w, fd, false);
	if (err)
		return err;
	kept = a->traffic->nr_events;
	ttmon_jsonw_open(&w, '{');
	put_row(&w, h, a);
	ttmon_api_row_frames(&w, h, a->site);
	ttmon_db_rows_alloc_heat(&w, a);
	ttmon_jsonw_key_num(&w, "events_kept", kept);
	ttmon_jsonw_key_num(&w, "events_dropped", a->traffic->events_dropped);
	ttmon_db_rows_alloc_events(&w, a, kept > DETAILS_EVENTS ? kept - DETAILS_EVENTS : 0);
	ttmon_jsonw_key_time(&w, "now_ns", now_ns);
	ttmon_jsonw_close(&w, '}');
	ttmon_jsonw_end(&w);
	return ttmon_jsonw_finish(&w);
}

void ttmon_api_allocation(void *ctx, struct ttmon_http_reply *reply)
{
	struct ttmon_api_job job = {
		.make = make_details,
		.what = "the allocation",
		.content_type = TTMON_HTTP_JSON,
		.missing = TTMON_API_NO_ALLOC,
	};

	if (!ttmon_api_parse_id(reply->rest, &job.id))
		ttmon_http_error(reply, 400, "%.60s is no id of an allocation: " TTMON_API_ID_FORM, reply->rest);
	else
		ttmon_api_add_job(ctx, reply, &job);
}
