// SPDX-License-Identifier: GPL-2.0-only
/*
 * follow.c: see follow.h. Cold thread; lines are written as text in the hot one, between two drains,
 * some hundred at a time into memory made here.
 *
 * A follower whose lines are all sent sleeps until ttmon_http_wake(). The hot thread signals new
 * lines; one call of it lists their processes, and the followers concerned are woken. No thread waits
 * for a follower: lines are kept in the hot thread's memory, and a follower that reads too late gets
 * the number of lines it missed.
 */
#include "daemon/api/follow.h"
#include "daemon/api/rows.h"
#include "lib/base/hmap.h"
#include "lib/os/clock.h"

/* lines visited in one call in the hot thread */
#define LOOKS_MAX     4096
#define ALIVE_NS      (3 * NSEC_PER_SEC)
#define FOLLOWERS_MAX 256
#define OF_A_USER_MAX 64
#define NEWS_MAX      64

struct follower {
	struct follower *prev, *next;
	struct ttmon_follow *of;
	struct ttmon_http_source *source;
	struct ttmon_viewer who;
	uid_t uid;
	uint32_t pid; /* 0: any process */
	bool follow, listed;
	/* The position. */
	bool begun, restarted, over;
	bool has_all;	  /* it got all lines, and was not woken since */
	bool other_start; /* its last line came from another daemon */
	uint64_t after, at;
	uint64_t sent_ns; /* time of the last data sent */
	void *own;
};

struct ttmon_follow {
	struct ttmon_daemon *c;
	const struct ttmon_feed *feed;
	uint64_t start_id;
	struct follower *first;
	uint64_t at; /* followers were woken for lines before this number */
	struct ttmon_follow_stats stats;
	/* Used for the follower being served; there is one at a time. */
	struct ttmon_jsonw w;
	void *body;
};

/* ---- lines ---- */

static void put_head(struct follower *f, struct ttmon_pipeline *p, uint64_t now_ns)
{
	struct ttmon_jsonw *w = &f->of->w;
	uint64_t first, next;
	char id[17];

	f->of->feed->numbers(p, &first, &next);
	f->restarted = f->other_start || f->after >= next;
	if (f->restarted)
		f->after = 0;
	f->at = f->after ? f->after + 1 : first;
	f->begun = true;
	snprintf(id, sizeof(id), "%016llx", (unsigned long long)f->of->start_id);
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_bool(w, "head", true);
	ttmon_jsonw_key_str(w, "start_id", id);
	ttmon_jsonw_key_bool(w, "restarted", f->restarted);
	ttmon_jsonw_key_num(w, "first", first);
	ttmon_jsonw_key_num(w, "next", next);
	ttmon_jsonw_key_num(w, "after", f->after);
	ttmon_jsonw_key_time(w, "now_ns", now_ns);
	if (f->of->feed->head)
		f->of->feed->head(w);
	ttmon_jsonw_close(w, '}');
	ttmon_jsonw_end(w);
}

static void go_to(struct follower *f, uint64_t seq)
{
	struct ttmon_jsonw *w = &f->of->w;

	if (seq > f->at) {
		f->of->stats.missed += seq - f->at;
		ttmon_jsonw_open(w, '{');
		ttmon_jsonw_key_num(w, "missed", seq - f->at);
		ttmon_jsonw_close(w, '}');
		ttmon_jsonw_end(w);
	}
	f->at = seq;
}

/* There are no more lines. Numbers that were assigned but not kept are after the last line. */
static void go_to_end(struct follower *f, struct ttmon_pipeline *p)
{
	uint64_t first, next;

	f->of->feed->numbers(p, &first, &next);
	go_to(f, MAX(next, f->at));
}

struct stay {
	struct follower *f;
	size_t full;
};

/* Hot thread. 1: there may be more, 0: that was all. */
static int put_lines(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	const struct stay *s = ctx;
	struct follower *f = s->f;
	struct ttmon_follow *l = f->of;

	if (!f->begun)
		put_head(f, p, now_ns);
	for (unsigned int looks = 0; looks < LOOKS_MAX && l->w.len < s->full; looks++) {
		struct ttmon_feed_line line;

		if (!l->feed->get(p, f->at, &line, l->body)) {
			go_to_end(f, p);
			return 0;
		}
		go_to(f, line.seq);
		f->at++;
		if ((!f->pid || f->pid == line.tgid) && ttmon_viewer_sees_uid(&f->who, line.uid))
			l->feed->write(&l->w, p, &line, l->body, f->own);
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

/* Lines that come after this call are signalled. */
static void take_lines(struct follower *f, size_t max)
{
	struct ttmon_follow *l = f->of;
	struct stay s = { f, max > l->feed->row_max ? max - l->feed->row_max : 1 };
	int more = 1;

	while (more && !l->w.len)
		more = ttmon_daemon_call(l->c, put_lines, &s);
	f->has_all = !more;
	f->over = !more && !f->follow;
}

static ssize_t next_block(void *ctx, char *buf, size_t max)
{
	struct follower *f = ctx;
	struct ttmon_jsonw *w = &f->of->w;
	uint64_t now = ttmon_mono_ns();

	if (f->over)
		return 0;
	w->len = 0;
	w->err = 0;
	w->comma = false;
	if (!f->has_all)
		take_lines(f, max);
	if (!w->len && f->follow && now - f->sent_ns >= ALIVE_NS)
		put_alive(w, now);
	if (!w->len)
		return f->follow ? -EAGAIN : 0;
	if (w->err || w->len > max)
		return w->err ? w->err : -EMSGSIZE;
	memcpy(buf, w->buf, w->len);
	f->sent_ns = now;
	return (ssize_t)w->len;
}

/* ---- followers ---- */

/* The hot thread signals new lines only while a follower waits for them. */
static void set_follow(const struct ttmon_follow *l)
{
	struct ttmon_hot *hot = ttmon_daemon_hot(l->c);

	if (hot)
		ttmon_hot_follow(hot, l->feed->news, l->first != NULL);
}

static void follower_free(struct follower *f)
{
	if (f->own && f->of->feed->own_fini)
		f->of->feed->own_fini(f->own);
	free(f->own);
	free(f);
}

static void done(void *ctx)
{
	struct follower *f = ctx;
	struct ttmon_follow *l = f->of;

	if (f->listed) {
		*(f->prev ? &f->prev->next : &l->first) = f->next;
		if (f->next)
			f->next->prev = f->prev;
		l->stats.followers--;
	}
	set_follow(l);
	follower_free(f);
}

static bool has_room(const struct ttmon_follow *l, const struct ttmon_http_reply *reply)
{
	uint32_t of_user = 0;

	for (const struct follower *f = l->first; f; f = f->next)
		of_user += f->uid == reply->uid;
	return l->stats.followers < FOLLOWERS_MAX && (!reply->uid || of_user < OF_A_USER_MAX);
}

/*
 * pid=: a process's number, or the client's own, which is translated from its pid namespace. Without
 * it: all processes.
 */
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
	f->other_start = strtoull(start, &end, 16) != f->of->start_id;
	return true;
}

static void begin(struct ttmon_http_reply *reply, struct follower *f)
{
	struct ttmon_follow *l = f->of;
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

void ttmon_follow_add(struct ttmon_follow *l, struct ttmon_http_reply *reply)
{
	struct follower *f = calloc(1, sizeof(*f));

	if (f) {
		f->of = l;
		f->own = l->feed->own_size ? calloc(1, l->feed->own_size) : NULL;
	}
	if (!f || (l->feed->own_size && !f->own)) {
		free(f);
		ttmon_http_error(reply, 500, "out of memory");
		return;
	}
	f->uid = reply->uid;
	ttmon_viewer_init(&f->who, reply);
	if (parse(reply, f) && (!f->follow || has_room(l, reply))) {
		begin(reply, f);
		return;
	}
	if (reply->status < 400)
		ttmon_http_error(reply, 503, "too many follow %s already", l->feed->what);
	follower_free(f);
}

/* ---- waking them ---- */

struct news {
	struct ttmon_follow *of;
	uint64_t from;
	uint32_t tgids[NEWS_MAX];
	unsigned int n;
	bool many; /* lines of several processes */
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
	struct ttmon_feed_line line;
	struct news *n = ctx;
	const struct ttmon_feed *feed = n->of->feed;
	uint64_t first, next;

	(void)now_ns;
	for (unsigned int looks = 0; !n->many && feed->get(p, n->from, &line, n->of->body); n->from = line.seq + 1) {
		add_process(n, line.tgid);
		n->many |= ++looks == LOOKS_MAX;
	}
	feed->numbers(p, &first, &next);
	/* Lines that were not kept may concern any process. */
	n->many |= n->from < next;
	n->from = next;
	return 0;
}

static bool concerns(const struct news *n, const struct follower *f)
{
	bool is = n->many || (!f->pid && n->n);

	for (unsigned int i = 0; i < n->n; i++)
		is |= n->tgids[i] == f->pid;
	return is;
}

static void wake_one(struct follower *f)
{
	if (f->source)
		ttmon_http_wake(f->source);
}

void ttmon_follow_wake(void *state)
{
	struct ttmon_follow *l = state;
	struct news n = { .of = l, .from = l->at };

	if (!l->first)
		return;
	(void)!ttmon_daemon_call(l->c, take_news, &n);
	l->at = n.from;
	for (struct follower *f = l->first; f; f = f->next) {
		if (!concerns(&n, f))
			continue;
		f->has_all = false;
		wake_one(f);
	}
}

void ttmon_follow_tick(void *state)
{
	struct ttmon_follow *l = state;
	uint64_t now = ttmon_mono_ns();

	/* A replay has no hot thread that signals new lines. */
	if (!ttmon_daemon_hot(l->c))
		ttmon_follow_wake(l);
	for (struct follower *f = l->first; f; f = f->next)
		if (now - f->sent_ns >= ALIVE_NS)
			wake_one(f);
}

/* ---- life ---- */

int ttmon_follow_new(struct ttmon_daemon *c, const struct ttmon_feed *feed, void **state)
{
	struct ttmon_follow *l = calloc(1, sizeof(*l));

	if (!l)
		return log_error_r(-ENOMEM, "out of memory");
	l->c = c;
	l->feed = feed;
	l->start_id = ttmon_mix64(ttmon_real_ns() ^ (uint64_t)getpid() << 40);
	l->body = malloc(feed->body_size);
	if (!l->body || ttmon_jsonw_init(&l->w, -1, false)) {
		ttmon_follow_free(l);
		return log_error_r(-ENOMEM, "out of memory");
	}
	*state = l;
	return 0;
}

void ttmon_follow_free(void *state)
{
	struct ttmon_follow *l = state;

	ttmon_jsonw_fini(&l->w);
	free(l->body);
	free(l);
}

void ttmon_follow_get_stats(const struct ttmon_follow *l, struct ttmon_follow_stats *ret)
{
	*ret = l ? l->stats : (struct ttmon_follow_stats){ 0 };
}
