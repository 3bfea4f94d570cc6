// SPDX-License-Identifier: GPL-2.0-only
/*
 * live.c: libttmon and the daemon: live advice, checkpoints, ttmon_trace_self().
 *
 * A subscription is one thread, all of whose signals are blocked. It follows /v1/advice/live, connects again when that ends, after 0.2 s at first and
 * 5 s at most, and goes on behind the last line it has had. Lines wait in a ring. The thread takes the lock for the copy of one line, as does who takes one.
 * It belongs to the process that made it: a child after fork() has neither the thread nor, perhaps, the lock, so it never touches them and may subscribe itself.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "lib/advisor/advisor_int.h"
#include "lib/read/client.h"
#include "lib/read/db.h"

#define LINES	     4096u
#define SLOTS	     (2 * LINES)
#define LINE_MAX_LEN 8192u /* bytes; a longer one is none of ours */
#define IDLE_S	     15	   /* the daemon says something every 3 s */
#define RETRY_MIN_MS 200
#define RETRY_MAX_MS 5000
#define STACK_SIZE   (1u << 20)

struct ttmon_sub {
	pid_t pid;
	struct ttmon_sub *parents; /* that of the process which forked this one */
	char *socket;
	pthread_t thread;
	int cancel;
	pthread_mutex_t lock; /* what follows */
	struct ttmon_live_advice ring[LINES];
	size_t head, n;
	uint64_t lines, missed, dropped, connects, disconnects;
	/* Of who is in the callback. */
	struct ttmon_live_advice held[LINES];
	struct {
		uint64_t alloc;
		bool used;
	} slot[SLOTS];
	/* Of the thread. */
	uint64_t after;
	char start_id[32];
	bool connected;
	char line[LINE_MAX_LEN];
	size_t len;
	bool too_long;
};

const char *ttmon_socket_or(const char *socket)
{
	const char *env = socket ? NULL : secure_getenv("TTMON_SOCKET");

	return socket ? socket : env && env[0] ? env : TTMON_SOCKET_DEFAULT;
}

struct ttmon_sub *ttmon_sub_of(const struct ttmon_advisor *adv)
{
	struct ttmon_sub *sub = atomic_load(&adv->sub);

	return sub && sub->pid == getpid() ? sub : NULL;
}

/* ---- lines ---- */

static void keep_line(struct ttmon_sub *sub, const struct ttmon_live_advice *a)
{
	pthread_mutex_lock(&sub->lock);
	if (sub->n == LINES) {
		sub->head = (sub->head + 1) % LINES;
		sub->n--;
		sub->dropped++;
	}
	sub->ring[(sub->head + sub->n++) % LINES] = *a;
	sub->lines++;
	pthread_mutex_unlock(&sub->lock);
}

static void count(struct ttmon_sub *sub, uint64_t *what, uint64_t n)
{
	pthread_mutex_lock(&sub->lock);
	*what += n;
	pthread_mutex_unlock(&sub->lock);
}

static bool kind_of(const char *text, uint32_t *ret)
{
	static const char *const names[] = {
		[TTMON_LIVE_PIN] = "pin",
		[TTMON_LIVE_UNPIN] = "unpin",
		[TTMON_LIVE_COLD] = "cold",
		[TTMON_LIVE_KEEP] = "keep",
	};

	for (uint32_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(text, names[i])) {
			*ret = i;
			return true;
		}
	return false;
}

/* A line of advice; false: of another kind, which also has a number. */
static bool advice_of(const json_t *row, struct ttmon_live_advice *ret)
{
	*ret = (struct ttmon_live_advice){
		.ts_ns = ttmon_db_get(row, "ts_ns", 0),
		.alloc = ttmon_db_get(row, "alloc", 0),
		.addr = ttmon_db_get(row, "addr", 0),
		.size = ttmon_db_get(row, "size", 0),
		.site = strtoull(ttmon_db_str(row, "site", "0"), NULL, 16),
		.ordinal = (uint32_t)ttmon_db_get(row, "ordinal", 0),
		.copies = ttmon_db_get(row, "copies", 0),
		.bytes = ttmon_db_get(row, "bytes", 0),
		.gain_ns = json_integer_value(json_object_get(row, "gain_ns")),
		.confidence = json_number_value(json_object_get(row, "confidence")),
		.seq = ttmon_db_get(row, "seq", 0),
	};
	return kind_of(ttmon_db_str(row, "advice", ""), &ret->kind);
}

static void head_line(struct ttmon_sub *sub, const json_t *row)
{
	const char *id = ttmon_db_str(row, "start_id", "");
	bool fits = strlen(id) < sizeof(sub->start_id) && id[strspn(id, "0123456789abcdef")] == '\0';

	/* Of another daemon, whose lines begin again. */
	if (!fits || strcmp(id, sub->start_id)) {
		snprintf(sub->start_id, sizeof(sub->start_id), "%s", fits ? id : "");
		sub->after = 0;
	}
	if (!sub->connected)
		count(sub, &sub->connects, 1);
	sub->connected = true;
}

static void take_line(struct ttmon_sub *sub)
{
	json_t *row = json_loadb(sub->line, sub->len, 0, NULL);
	struct ttmon_live_advice a;
	uint64_t n;

	if (json_object_get(row, "head"))
		head_line(sub, row);
	else if (ttmon_db_u64(row, "missed", &n))
		count(sub, &sub->missed, n);
	else if (ttmon_db_u64(row, "seq", &n) && n > sub->after) {
		sub->after = n;
		if (advice_of(row, &a))
			keep_line(sub, &a);
	}
	json_decref(row);
}

static int on_data(void *ctx, const char *at, size_t n)
{
	struct ttmon_sub *sub = ctx;

	for (size_t i = 0; i < n; i++) {
		if (at[i] == '\n') {
			if (!sub->too_long && sub->len)
				take_line(sub);
			sub->len = 0;
			sub->too_long = false;
		} else if (sub->len < sizeof(sub->line)) {
			sub->line[sub->len++] = at[i];
		} else {
			sub->too_long = true;
		}
	}
	return 0;
}

/* ---- the thread ---- */

static void *follow(void *arg)
{
	struct ttmon_sub *sub = arg;
	const struct ttmon_client_stream to = {
		.cancel = sub->cancel, .timeout_s = IDLE_S, .data = on_data, .ctx = sub
	};
	struct pollfd stop = { .fd = sub->cancel, .events = POLLIN };
	char path[160];
	int wait_ms = RETRY_MIN_MS, status;

	do {
		snprintf(path, sizeof(path), "/v1/advice/live?follow=1&pid=self&after=%llu%s%s",
			 (unsigned long long)sub->after, sub->start_id[0] ? "&start=" : "", sub->start_id);
		sub->len = 0;
		sub->too_long = false;
		/* However it ends, it is tried again. */
		if (ttmon_client_open_stream(sub->socket, path, &to, &status) == -ECANCELED)
			break;
		wait_ms = sub->connected ? RETRY_MIN_MS : MIN(2 * wait_ms, RETRY_MAX_MS);
		if (sub->connected)
			count(sub, &sub->disconnects, 1);
		sub->connected = false;
	} while (poll(&stop, 1, wait_ms) <= 0);
	return NULL;
}

static int start(struct ttmon_sub *sub)
{
	sigset_t all, before;
	pthread_attr_t attr;
	int err;

	if (pthread_attr_init(&attr))
		return -ENOMEM;
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	/* It is born with the mask of who makes it: no signal ever finds it open. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&sub->thread, &attr, follow, sub);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (err)
		return -EAGAIN;
	pthread_setname_np(sub->thread, "ttmon-live");
	return 0;
}

static void sub_fini(struct ttmon_sub *sub)
{
	if (sub->cancel >= 0)
		close(sub->cancel);
	free(sub->socket);
	free(sub);
}

void ttmon_sub_free(struct ttmon_sub *sub)
{
	while (sub) {
		struct ttmon_sub *parents = sub->parents;

		if (sub->pid == getpid()) {
			if (eventfd_write(sub->cancel, 1) == 0)
				pthread_join(sub->thread, NULL);
			pthread_mutex_destroy(&sub->lock);
		}
		sub_fini(sub);
		sub = parents;
	}
}

int ttmon_advisor_subscribe(struct ttmon_advisor *adv)
{
	struct ttmon_sub *before, *sub;
	int err;

	if (!adv)
		return -EINVAL;
	if (ttmon_sub_of(adv))
		return -EALREADY;
	before = atomic_load(&adv->sub);
	sub = calloc(1, sizeof(*sub));
	if (!sub)
		return -ENOMEM;
	sub->pid = getpid();
	sub->socket = strdup(adv->socket);
	sub->cancel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&sub->lock, NULL);
	err = sub->socket ? sub->cancel >= 0 ? start(sub) : -errno : -ENOMEM;
	if (err) {
		sub_fini(sub);
		return err;
	}
	/* Two at once: the first one counts. */
	if (!atomic_compare_exchange_strong(&adv->sub, &before, sub)) {
		ttmon_sub_free(sub);
		return -EALREADY;
	}
	sub->parents = before;
	return 0;
}

void ttmon_sub_stats(const struct ttmon_sub *sub, struct ttmon_advisor_stats *ret)
{
	struct ttmon_sub *s = (struct ttmon_sub *)sub;

	pthread_mutex_lock(&s->lock);
	ret->live_lines = s->lines;
	ret->live_missed = s->missed;
	ret->live_dropped = s->dropped;
	ret->connects = s->connects;
	ret->disconnects = s->disconnects;
	pthread_mutex_unlock(&s->lock);
}

/* ---- taking lines ---- */

static bool take(struct ttmon_sub *sub, struct ttmon_live_advice *ret)
{
	bool any;

	pthread_mutex_lock(&sub->lock);
	any = sub->n > 0;
	if (any) {
		*ret = sub->ring[sub->head];
		sub->head = (sub->head + 1) % LINES;
		sub->n--;
	}
	pthread_mutex_unlock(&sub->lock);
	return any;
}

int ttmon_advisor_poll(struct ttmon_advisor *adv, struct ttmon_live_advice *ret)
{
	struct ttmon_sub *sub = adv ? ttmon_sub_of(adv) : NULL;

	return sub ? take(sub, ret) : 0;
}

static void get_move(struct ttmon_advisor *adv, ttmon_move_fn *fn, void **ctx)
{
	while (!ttmon_flag_take(&adv->setting))
		sched_yield();
	*fn = adv->move;
	*ctx = adv->move_ctx;
	ttmon_flag_drop(&adv->setting);
}

void ttmon_advisor_on_checkpoint(struct ttmon_advisor *adv, ttmon_move_fn fn, void *ctx)
{
	if (!adv)
		return;
	while (!ttmon_flag_take(&adv->setting))
		sched_yield();
	adv->move = fn;
	adv->move_ctx = ctx;
	ttmon_flag_drop(&adv->setting);
}

/* Was this allocation not among those seen before? There is always a free slot. */
static bool first_of(struct ttmon_sub *sub, uint64_t alloc)
{
	size_t i = ttmon_mix64(alloc) % SLOTS;

	while (sub->slot[i].used && sub->slot[i].alloc != alloc)
		i = (i + 1) % SLOTS;
	if (sub->slot[i].used)
		return false;
	sub->slot[i].used = true;
	sub->slot[i].alloc = alloc;
	return true;
}

/* What was said since the last time, the last line of each allocation, in order. */
static void move_hotspots(struct ttmon_sub *sub, ttmon_move_fn fn, void *ctx)
{
	size_t n = 0;

	while (n < LINES && take(sub, &sub->held[n]))
		n++;
	memset(sub->slot, 0, sizeof(sub->slot));
	for (size_t i = n; i-- > 0;)
		if (!first_of(sub, sub->held[i].alloc))
			sub->held[i].kind = TTMON_LIVE_KEEP;
	for (size_t i = 0; i < n; i++)
		if (sub->held[i].kind != TTMON_LIVE_KEEP)
			fn(ctx, &sub->held[i]);
}

void ttmon_checkpoint(struct ttmon_advisor *adv, const char *label)
{
	struct ttmon_sub *sub;
	ttmon_move_fn fn;
	void *ctx;

	TTMON_CHECKPOINT(label);
	if (!adv)
		return;
	/* Objects that cannot be looked at again are as they were. */
	(void)ttmon_advisor_refresh(adv);
	sub = ttmon_sub_of(adv);
	get_move(adv, &fn, &ctx);
	if (!sub || !fn || !ttmon_flag_take(&adv->moving))
		return;
	move_hotspots(sub, fn, ctx);
	ttmon_flag_drop(&adv->moving);
}

/* ---- being traced ---- */

int ttmon_trace_self(const char *socket)
{
	_cleanup_(ttmon_client_reply_fini) struct ttmon_client_reply reply = { 0 };
	int err = ttmon_client_request(ttmon_socket_or(socket), "PUT", "/v1/targets?self", &reply);

	if (err == -ENOENT || err == -ECONNREFUSED)
		return -ENOTCONN;
	if (err == -EACCES || err == -EPERM || reply.status == 403)
		return -EACCES;
	if (!err && reply.status != 200)
		return -EPROTO;
	return err;
}
