// SPDX-License-Identifier: GPL-2.0-only
/* live.c: /v1/advice/live: live advice (core/history/live.h) as a feed that clients follow. */
#include "daemon/api/api.h"
#include "daemon/api/follow.h"
#include "daemon/api/rows.h"
#include "daemon/core/history/live.h"
#include "daemon/io/files/db_rows.h"

/* Longest text of a line in bytes: a function's name, and little else. */
#define ROW_MAX (32u << 10)

static void put_alloc(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_live_line *line)
{
	const struct ttmon_alloc *a = ttmon_history_alloc(h, line->alloc);
	uint64_t key = a ? ttmon_history_site(h, a->site)->key : line->site;
	char id[96], site[17];

	if (a) {
		ttmon_db_rows_alloc_id(w, "id", h, a);
	} else {
		snprintf(id, sizeof(id), "%016llx:%llu:%u@%u", (unsigned long long)key, (unsigned long long)line->size,
			 line->ordinal, line->proc);
		ttmon_jsonw_key_str(w, "id", id);
	}
	ttmon_jsonw_key_num(w, "alloc", line->alloc);
	ttmon_jsonw_key_addr(w, "addr", line->addr);
	ttmon_jsonw_key_num(w, "size", line->size);
	ttmon_jsonw_key_name(w, "method", ttmon_method_name(line->method));
	snprintf(site, sizeof(site), "%016llx", (unsigned long long)key);
	ttmon_jsonw_key_str(w, "site", key ? site : NULL);
	ttmon_api_row_site(w, h, a ? a->site : 0);
	ttmon_jsonw_key_num(w, "ordinal", a ? a->ordinal : line->ordinal);
	ttmon_jsonw_key_num(w, "copies", line->copies);
	ttmon_jsonw_key_num(w, "bytes", line->bytes);
	ttmon_jsonw_key_num(w, "copies_back", line->back_copies);
	ttmon_jsonw_key_num(w, "bytes_back", line->back_bytes);
	ttmon_jsonw_key_str(w, "reason", ttmon_reason_text(line->reason));
	ttmon_jsonw_key_int(w, "gain_ns", line->gain_ns);
	ttmon_jsonw_key(w, "confidence");
	ttmon_jsonw_ratio(w, line->confidence);
}

/* The process of the line, NULL: its place was reused. */
static const struct ttmon_proc *process_of(const struct ttmon_history *h, const struct ttmon_live_line *line)
{
	const struct ttmon_proc *p = line->proc < ttmon_history_procs(h) ? ttmon_history_proc(h, line->proc) : NULL;

	return p && p->tgid == line->tgid && p->start_ns == line->start_ns ? p : NULL;
}

static void put_line(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_live_line *line)
{
	const struct ttmon_proc *p = process_of(h, line);

	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_num(w, "seq", line->seq);
	ttmon_jsonw_key_time(w, "ts_ns", line->ts_ns);
	ttmon_jsonw_key_name(w, "advice", ttmon_live_name(line->said));
	ttmon_jsonw_key_num(w, "pid", line->tgid);
	ttmon_jsonw_key_time(w, "start_ns", line->start_ns);
	ttmon_jsonw_key_text(w, "comm", p ? p->comm : NULL, p ? sizeof(p->comm) : 0);
	if (line->said != TTMON_SAID_CHECKPOINT)
		put_alloc(w, h, line);
	ttmon_jsonw_key_num(w, "period", line->period);
	ttmon_jsonw_key_str(w, "label", *line->label ? line->label : NULL);
	ttmon_jsonw_close(w, '}');
	ttmon_jsonw_end(w);
}

static void numbers(struct ttmon_pipeline *p, uint64_t *first, uint64_t *next)
{
	struct ttmon_live_totals t;

	ttmon_history_live_totals(ttmon_pipeline_history(p), &t);
	*first = t.first_seq;
	*next = t.next_seq;
}

static bool get(struct ttmon_pipeline *p, uint64_t seq, struct ttmon_feed_line *ret, void *body)
{
	const struct ttmon_history *h = ttmon_pipeline_history(p);
	struct ttmon_live_line *line = body;
	const struct ttmon_proc *proc;

	if (!ttmon_history_live(h, seq, line))
		return false;
	/* Its user may have become known since. */
	proc = process_of(h, line);
	*ret = (struct ttmon_feed_line){ .seq = line->seq, .tgid = line->tgid, .uid = proc ? proc->uid : line->uid };
	return true;
}

static void write_line(struct ttmon_jsonw *w, struct ttmon_pipeline *p, const struct ttmon_feed_line *line,
		       const void *body, void *own)
{
	(void)line;
	(void)own;
	put_line(w, ttmon_pipeline_history(p), body);
}

static const struct ttmon_feed feed = {
	.what = "live advice",
	.news = TTMON_HOT_ADVICE,
	.body_size = sizeof(struct ttmon_live_line),
	.row_max = ROW_MAX,
	.numbers = numbers,
	.get = get,
	.write = write_line,
};

void ttmon_api_live(void *ctx, struct ttmon_http_reply *reply)
{
	struct ttmon_daemon *c = ctx;

	if (ttmon_daemon_opts(c)->trace_only)
		ttmon_http_error(reply, 404, "no advice: ttmond runs with --trace-only");
	else
		ttmon_follow_add(ttmon_daemon_part(c, &ttmon_part_live), reply);
}

static int start(struct ttmon_daemon *c, void **state)
{
	return ttmon_follow_new(c, &feed, state);
}

const struct ttmon_part ttmon_part_live = {
	.name = "live advice",
	.in = TTMON_IN_BOTH,
	.start = start,
	.wake = ttmon_follow_wake,
	.tick = ttmon_follow_tick,
	.free = ttmon_follow_free,
};
