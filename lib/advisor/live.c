// SPDX-License-Identifier: GPL-2.0-only
/*
 * live.c: libttmon and the daemon: live advice, checkpoints, ttmon_trace_self().
 *
 * A subscription is a link (link.c) to /v1/advice/live. Lines wait in a ring, whose lock is held only
 * while one line is copied in or out. A subscription belongs to the process that made it: a child
 * after fork() does not have the thread, and the lock may be held for ever there, so it never uses
 * them; it can make its own subscription.
 */
#include <sched.h>

#include "lib/advisor/advisor_int.h"
#include "lib/read/client.h"
#include "lib/read/db.h"

#define LINES 4096u
#define SLOTS (2 * LINES)

struct ttmon_sub {
	struct ttmon_link link;
	struct ttmon_sub *parents; /* subscription of the process that forked this one */
	pthread_mutex_t lock;	   /* protects the fields below */
	struct ttmon_live_advice ring[LINES];
	size_t head, n;
	uint64_t lines, dropped;
	/* Only used by the thread that is in the callback. */
	struct ttmon_live_advice held[LINES];
	struct {
		uint64_t alloc;
		bool used;
	} slot[SLOTS];
};

struct ttmon_sub *ttmon_sub_of(const struct ttmon_advisor *adv)
{
	struct ttmon_sub *sub = atomic_load(&adv->sub);

	return sub && ttmon_link_is_own(&sub->link) ? sub : NULL;
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

/* Parses a line of advice; false: it is a numbered line of another kind. */
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

static void on_line(struct ttmon_link *l, const char *at, size_t len, const json_t *row)
{
	struct ttmon_live_advice a;
	uint64_t n;

	(void)at;
	(void)len;
	if (ttmon_db_u64(row, "seq", &n) && ttmon_link_is_new(l, n) && advice_of(row, &a))
		keep_line(l->cfg.ctx, &a);
}

/* ---- a subscription ---- */

void ttmon_sub_free(struct ttmon_sub *sub)
{
	while (sub) {
		struct ttmon_sub *parents = sub->parents;
		bool own = ttmon_link_is_own(&sub->link);

		ttmon_link_end(&sub->link);
		if (own)
			pthread_mutex_destroy(&sub->lock);
		free(sub);
		sub = parents;
	}
}

int ttmon_advisor_subscribe(struct ttmon_advisor *adv)
{
	struct ttmon_link_cfg cfg = { .route = "/v1/advice/live?follow=1&pid=self",
				      .thread = "ttmon-live",
				      .line = on_line };
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
	pthread_mutex_init(&sub->lock, NULL);
	cfg.ctx = sub;
	err = ttmon_link_begin(&sub->link, adv->socket, &cfg);
	if (err) {
		free(sub);
		return err;
	}
	/* If two threads subscribe at once, the first one succeeds. */
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
	ret->live_dropped = s->dropped;
	pthread_mutex_unlock(&s->lock);
	ret->live_missed = s->link.missed;
	ret->connects = s->link.connects;
	ret->disconnects = s->link.disconnects;
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

/* Returns whether this allocation was not seen before. There is always a free slot. */
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

/* Delivers what arrived since the last call: the last line of each allocation, in order. */
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
	/* If it fails, the old list of objects stays in use. */
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
