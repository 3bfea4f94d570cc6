// SPDX-License-Identifier: GPL-2.0-only
/*
 * live.c: /v1/advice/live. Cold thread; lines are written as text in the hot one, between two drains, some hundred at a time into memory made
 * here.
 *
 * A follower whose lines are all sent waits without being asked (ttmon_http_wake()). The hot thread says that there are new ones; one call of it
 * tells of which processes, and those are woken whom it concerns. Nobody waits for a follower: lines are kept in the history, and who
 * comes too late is told how many are gone.
 */
#include "daemon/api/rows.h"
#include "daemon/api/api.h"
#include "lib/base/hmap.h"
#include "daemon/core/history/live.h"
#include "daemon/io/files/db_rows.h"
#include "lib/os/clock.h"

/* In one stay in the hot thread: about 0.3 ms. */
#define ROWS_MAX  256
#define LOOKS_MAX 4096
/* Longest text of a line: that of a function's name, and little else. */
#define ROW_MAX	      (32u << 10)
#define ALIVE_NS      (3 * NSEC_PER_SEC)
#define FOLLOWERS_MAX 256
#define OF_A_USER_MAX 64
#define NEWS_MAX      64

struct follower {
	struct follower *prev, *next;
	struct live *live;
	struct ttmon_http_source *source;
	struct ttmon_viewer who;
	uid_t uid;
	uint32_t pid; /* 0: any */
	bool follow, listed;
	/* where it is */
	bool begun, restarted, over;
	bool other_start; /* what it has seen is of another daemon */
	uint64_t after, at;
	uint64_t sent_ns; /* when anything was sent last */
};

struct live {
	struct ttmon_daemon *c;
	uint64_t start_id;
	struct follower *first;
	uint64_t at; /* followers were woken for the lines before it */
	struct ttmon_api_live_stats stats;
};

/* ---- lines ---- */

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
	ttmon_jsonw_key(w, "gain_ns");
	ttmon_jsonw_int(w, line->gain_ns);
	ttmon_jsonw_key(w, "confidence");
	ttmon_jsonw_ratio(w, line->confidence);
}

/* The process that the line is of, NULL: another has its place by now. */
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
	ttmon_jsonw_key(w, "comm");
	ttmon_jsonw_text(w, p ? p->comm : NULL, p ? sizeof(p->comm) : 0);
	if (line->said != TTMON_SAID_CHECKPOINT)
		put_alloc(w, h, line);
	ttmon_jsonw_key_num(w, "period", line->period);
	ttmon_jsonw_key_str(w, "label", *line->label ? line->label : NULL);
	ttmon_jsonw_close(w, '}');
	ttmon_jsonw_end(w);
}

static bool wanted(const struct follower *f, const struct ttmon_history *h, const struct ttmon_live_line *line)
{
	const struct ttmon_proc *p = process_of(h, line);

	/* Whose process it is may have become known since. */
	return (!f->pid || f->pid == line->tgid) && ttmon_viewer_sees_uid(&f->who, p ? p->uid : line->uid);
}

static void put_head(struct ttmon_jsonw *w, struct follower *f, const struct ttmon_history *h, uint64_t now_ns)
{
	struct ttmon_live_totals t;
	char id[17];

	ttmon_history_live_totals(h, &t);
	f->restarted = f->other_start || f->after >= t.next_seq;
	if (f->restarted)
		f->after = 0;
	f->at = f->after ? f->after + 1 : t.first_seq;
	f->begun = true;
	snprintf(id, sizeof(id), "%016llx", (unsigned long long)f->live->start_id);
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_bool(w, "head", true);
	ttmon_jsonw_key_str(w, "start_id", id);
	ttmon_jsonw_key_bool(w, "restarted", f->restarted);
	ttmon_jsonw_key_num(w, "first", t.first_seq);
	ttmon_jsonw_key_num(w, "next", t.next_seq);
	ttmon_jsonw_key_num(w, "after", f->after);
	ttmon_jsonw_key_time(w, "now_ns", now_ns);
	ttmon_jsonw_close(w, '}');
	ttmon_jsonw_end(w);
}

static void put_missed(struct ttmon_jsonw *w, uint64_t missed)
{
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_num(w, "missed", missed);
	ttmon_jsonw_close(w, '}');
	ttmon_jsonw_end(w);
}

struct stay {
	struct follower *f;
	struct ttmon_jsonw *w;
	size_t full;
};

/* In the hot thread. 1: there may be more, 0: that was all. */
static int put_lines(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	const struct ttmon_history *h = ttmon_pipeline_history(p);
	const struct stay *s = ctx;
	struct follower *f = s->f;

	if (!f->begun)
		put_head(s->w, f, h, now_ns);
	for (unsigned int rows = 0, looks = 0; rows < ROWS_MAX && looks < LOOKS_MAX && s->w->len < s->full; looks++) {
		struct ttmon_live_line line;

		if (!ttmon_history_live(h, f->at, &line))
			return 0;
		if (line.seq > f->at) {
			f->live->stats.missed += line.seq - f->at;
			put_missed(s->w, line.seq - f->at);
		}
		f->at = line.seq + 1;
		if (wanted(f, h, &line)) {
			put_line(s->w, h, &line);
			rows++;
		}
	}
	return 1;
}

static void put_alive(struct ttmon_jsonw *w, uint64_t now_ns)
{
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_time(w, "alive", now_ns);
	ttmon_jsonw_close(w, '}');
	ttmon_jsonw_end(w);
}

static ssize_t next_block(void *ctx, char *buf, size_t max)
{
	_cleanup_(ttmon_jsonw_fini) struct ttmon_jsonw w = { .fd = -1 };
	struct follower *f = ctx;
	struct stay s = { f, &w, max > ROW_MAX ? max - ROW_MAX : 1 };
	uint64_t now = ttmon_mono_ns();
	int more;

	if (f->over)
		return 0;
	if (ttmon_jsonw_init(&w, -1, false))
		return -ENOMEM;
	do {
		more = ttmon_daemon_call(f->live->c, put_lines, &s);
	} while (more && !w.len);
	f->over = !more && !f->follow;
	if (!w.len && f->follow && now - f->sent_ns >= ALIVE_NS)
		put_alive(&w, now);
	if (!w.len)
		return f->follow ? -EAGAIN : 0;
	if (w.err || w.len > max)
		return w.err ? w.err : -EMSGSIZE;
	memcpy(buf, w.buf, w.len);
	f->sent_ns = now;
	return (ssize_t)w.len;
}

/* ---- followers ---- */

/* The hot thread is to tell of new lines while somebody waits for them. */
static void set_follow(const struct live *l)
{
	struct ttmon_hot *hot = ttmon_daemon_hot(l->c);

	if (hot)
		ttmon_hot_follow(hot, l->first != NULL);
}

static void done(void *ctx)
{
	struct follower *f = ctx;
	struct live *l = f->live;

	if (f->listed) {
		*(f->prev ? &f->prev->next : &l->first) = f->next;
		if (f->next)
			f->next->prev = f->prev;
		l->stats.followers--;
	}
	set_follow(l);
	free(f);
}

static bool has_room(const struct live *l, const struct ttmon_http_reply *reply)
{
	uint32_t of_user = 0;

	for (const struct follower *f = l->first; f; f = f->next)
		of_user += f->uid == reply->uid;
	return l->stats.followers < FOLLOWERS_MAX && (!reply->uid || of_user < OF_A_USER_MAX);
}

/* Of one process: its number, or the client's own, which in a pid namespace is another one here. Without one: of all. */
static bool parse_pid(struct ttmon_http_reply *reply, uint32_t *ret)
{
	const char *text = ttmon_http_arg(reply, "pid");
	uint64_t pid = 0;

	if (text && !strcmp(text, "self")) {
		if (reply->pid <= 0) {
			ttmon_http_error(reply, 409, "your process is in a pid namespace that ttmond does not see");
			return false;
		}
		pid = (uint64_t)reply->pid;
	} else if (!ttmon_api_arg_num(reply, "pid", 1, INT32_MAX, &pid)) {
		return false;
	}
	*ret = (uint32_t)pid;
	return true;
}

static bool parse(struct ttmon_http_reply *reply, struct follower *f)
{
	const char *start = ttmon_http_arg(reply, "start");
	char *end;

	if (!ttmon_api_arg_num(reply, "after", 0, INT64_MAX, &f->after) || !parse_pid(reply, &f->pid) ||
	    !ttmon_api_arg_bool(reply, "follow", &f->follow))
		return false;
	if (!start)
		return true;
	if (strlen(start) != 16 || strspn(start, "0123456789abcdef") != 16) {
		ttmon_http_error(reply, 400, "start=%.40s: the start_id of a head is wanted", start);
		return false;
	}
	f->other_start = strtoull(start, &end, 16) != f->live->start_id;
	return true;
}

static void begin(struct ttmon_http_reply *reply, struct follower *f)
{
	struct live *l = f->live;
	struct ttmon_http_source *source;

	if (f->follow) {
		f->next = l->first;
		if (f->next)
			f->next->prev = f;
		l->first = f;
		f->listed = true;
		l->stats.followers++;
		set_follow(l);
	}
	reply->content_type = TTMON_HTTP_JSONL;
	f->sent_ns = ttmon_mono_ns();
	source = ttmon_http_stream(reply, next_block, done, f);
	if (source)
		f->source = source;
}

void ttmon_api_live(void *ctx, struct ttmon_http_reply *reply)
{
	struct ttmon_daemon *c = ctx;
	struct live *l = ttmon_daemon_part(c, &ttmon_part_live);
	struct follower *f;

	if (ttmon_daemon_opts(c)->trace_only) {
		ttmon_http_error(reply, 404, "no advice: ttmond runs with --trace-only");
		return;
	}
	f = calloc(1, sizeof(*f));
	if (!f) {
		ttmon_http_error(reply, 500, "out of memory");
		return;
	}
	f->live = l;
	f->uid = reply->uid;
	ttmon_viewer_init(&f->who, reply);
	if (parse(reply, f) && (!f->follow || has_room(l, reply))) {
		begin(reply, f);
		return;
	}
	if (reply->status < 400)
		ttmon_http_error(reply, 503, "too many follow live advice already");
	free(f);
}

/* ---- waking them ---- */

struct news {
	uint64_t from;
	uint32_t tgids[NEWS_MAX];
	unsigned int n;
	bool many; /* of more processes */
};

static void add_process(struct news *n, uint32_t tgid)
{
	for (unsigned int i = 0; i < n->n; i++)
		if (n->tgids[i] == tgid)
			return;
	if (n->n == NEWS_MAX)
		n->many = true;
	else
		n->tgids[n->n++] = tgid;
}

static int take_news(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	const struct ttmon_history *h = ttmon_pipeline_history(p);
	struct ttmon_live_line line;
	struct news *n = ctx;

	(void)now_ns;
	for (unsigned int looks = 0; !n->many && ttmon_history_live(h, n->from, &line); n->from = line.seq + 1) {
		add_process(n, line.tgid);
		n->many |= ++looks == LOOKS_MAX;
	}
	n->from = ttmon_history_live_next(h);
	return 0;
}

static bool concerns(const struct news *n, const struct follower *f)
{
	bool is = n->many || (!f->pid && n->n);

	for (unsigned int i = 0; i < n->n; i++)
		is |= n->tgids[i] == f->pid;
	return is;
}

static void wake(void *state)
{
	struct live *l = state;
	struct news n = { .from = l->at };

	if (!l->first)
		return;
	(void)!ttmon_daemon_call(l->c, take_news, &n);
	l->at = n.from;
	for (struct follower *f = l->first; f; f = f->next)
		if (f->source && concerns(&n, f))
			ttmon_http_wake(f->source);
}

static void tick(void *state)
{
	struct live *l = state;
	uint64_t now = ttmon_mono_ns();

	/* A recording has no hot thread to tell of new ones. */
	if (!ttmon_daemon_hot(l->c))
		wake(l);
	for (struct follower *f = l->first; f; f = f->next)
		if (f->source && now - f->sent_ns >= ALIVE_NS)
			ttmon_http_wake(f->source);
}

static int start(struct ttmon_daemon *c, void **state)
{
	struct live *l = calloc(1, sizeof(*l));

	if (!l)
		return log_error_r(-ENOMEM, "out of memory");
	l->c = c;
	l->start_id = ttmon_mix64(ttmon_real_ns() ^ (uint64_t)getpid() << 40);
	*state = l;
	return 0;
}

void ttmon_api_live_get_stats(const struct ttmon_daemon *c, struct ttmon_api_live_stats *ret)
{
	const struct live *l = ttmon_daemon_part(c, &ttmon_part_live);

	*ret = l ? l->stats : (struct ttmon_api_live_stats){ 0 };
}

const struct ttmon_part ttmon_part_live = {
	.name = "live advice",
	.in = TTMON_IN_BOTH,
	.start = start,
	.wake = wake,
	.tick = tick,
	.free = free,
};
