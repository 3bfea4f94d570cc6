// SPDX-License-Identifier: GPL-2.0-only
/*
 * tell.c: writes the dictionary of a channel: the program's kernels, their instructions and launches,
 * and at the end the sums and losses of the GPU.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "memtrace/inject/inj_chan.h"

#define ROOM_WAIT   1000 /* ms that the reader has to make room in the dictionary */
#define KERNEL_WAIT 2	 /* s that kernels have to end */

bool ttmon_inj_reader_gone(struct ttmon_inj_chan *c)
{
	char byte;

	if (!c->gone && recv(c->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) {
		c->gone = true;
		ttmon_inj_say(false, "nobody reads any more: nothing is recorded from here on");
	}
	return c->gone;
}

/* Waits until n bytes fit. */
static bool room(struct ttmon_inj_chan *c, uint64_t n)
{
	struct timespec nap = { .tv_nsec = 200000 };

	for (int i = 0; i < ROOM_WAIT * 5; i++) {
		uint64_t tail = __atomic_load_n(&c->head->dict_tail, __ATOMIC_ACQUIRE);

		if (c->dict_head - tail + n <= TTMON_INJ_DICT_BYTES)
			return true;
		if (c->stuck == tail + 1 || ttmon_inj_reader_gone(c))
			break;
		nanosleep(&nap, NULL);
	}
	c->stuck = __atomic_load_n(&c->head->dict_tail, __ATOMIC_ACQUIRE) + 1;
	__atomic_add_fetch(&c->head->dict_lost, 1, __ATOMIC_RELAXED);
	return false;
}

/* Writes an entry with its texts as a whole. entry->bytes is filled in. */
bool ttmon_inj_put(struct ttmon_inj_chan *c, struct ttmon_mtc_entry *entry, size_t size, const char *const *texts,
		   size_t nr_texts)
{
	uint8_t *ring = (uint8_t *)c->head + c->dict_off, buf[16384];
	uint64_t at = c->dict_head;
	size_t n = size;

	for (size_t i = 0; i < nr_texts; i++) {
		size_t len = strnlen(texts[i], (sizeof(buf) - size) / 4 - 8);

		memcpy(buf + n, texts[i], len);
		buf[n + len] = '\0';
		n += len + 1;
	}
	while (n % 8)
		buf[n++] = '\0';
	entry->bytes = (uint32_t)n;
	memcpy(buf, entry, size);
	if (!room(c, n))
		return false;
	for (size_t i = 0; i < n;) {
		size_t to = (at + i) & (TTMON_INJ_DICT_BYTES - 1),
		       piece = n - i < TTMON_INJ_DICT_BYTES - to ? n - i : TTMON_INJ_DICT_BYTES - to;

		memcpy(ring + to, buf + i, piece);
		i += piece;
	}
	c->dict_head = at + n;
	__atomic_store_n(&c->head->dict_head, c->dict_head, __ATOMIC_RELEASE);
	return true;
}

/* ---- launches ---- */

/* With the channel's lock held; NULL: no memory. */
static struct told *told_of(struct ttmon_inj_chan *c, const struct ttmon_inj_kernel *k)
{
	if (k->number >= c->nr_told) {
		uint32_t n = (k->number + 64) * 2;
		struct told *p = realloc(c->told, n * sizeof(*p));

		if (!p)
			return NULL;
		memset(p + c->nr_told, 0, (n - c->nr_told) * sizeof(*p));
		c->told = p;
		c->nr_told = n;
	}
	return &c->told[k->number];
}

void ttmon_inj_count(struct ttmon_inj_chan *c, const struct ttmon_inj_kernel *k, enum ttmon_inj_count what)
{
	struct told *t;

	pthread_mutex_lock(&c->lock);
	t = told_of(c, k);
	if (t)
		t->counts[what]++;
	pthread_mutex_unlock(&c->lock);
}

static uint32_t min32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/*
 * Reports whether the kernel is in the trace, and if not, why, as it stands in this context. first:
 * its first recorded launch is about to be made.
 */
static bool tell_kernel(struct ttmon_inj_chan *c, const struct ttmon_inj_kernel *k, bool first)
{
	const struct told *t = told_of(c, k);
	struct ttmon_mtc_kernel e = { .e.kind = TTMON_MTC_ENTRY_KERNEL,
				      .launches = t ? t->counts[TTMON_INJ_LAUNCHED] : 0,
				      .recorded = first ? 1
						  : t	? t->counts[TTMON_INJ_RECORDED]
							: 0,
				      .sites = k->counted,
				      .left_out = k->left_out };
	uint64_t refused = t ? t->counts[TTMON_INJ_REFUSED] : 0;
	char why[128];

	snprintf(why, sizeof(why), "%s", k->why ? k->why : "");
	if (refused)
		snprintf(why, sizeof(why), "the driver did not launch it recorded %llu times",
			 (unsigned long long)refused);
	return TTMON_INJ_PUT(c, e, k->name, k->module, why);
}

bool ttmon_inj_announce_kernel(struct ttmon_inj_chan *c, const struct ttmon_inj_kernel *k)
{
	struct told *t = told_of(c, k);

	if (!t || t->announced)
		return t;
	for (uint32_t i = 0; i < k->nr_sites; i++) {
		const struct ttmon_mt_site *s = &k->sites[i];
		struct ttmon_mtc_site e = { .e.kind = TTMON_MTC_ENTRY_SITE,
					    .id = k->first + i,
					    .line = s->line,
					    .text_line = s->text_line,
					    .space = s->space,
					    .kind = s->kind,
					    .width = s->width,
					    .flags = s->flags };

		if (!TTMON_INJ_PUT(c, e, s->kernel, s->opcode, s->file, s->module))
			return false;
	}
	t->announced = true;
	if (k->nr_sites && c->agg_sites < k->first + k->nr_sites)
		c->agg_sites = min32(k->first + k->nr_sites, TTMON_INJ_AGG_SITES);
	/* If the program ends without closing the channel, it is at least known that there was one launch. */
	return !atomic_load(&k->loaded) || tell_kernel(c, k, true);
}

/* ---- data on the GPU ---- */

static int by_page(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void tell_touches(struct ttmon_inj_chan *c)
{
	uint64_t *t = calloc(TTMON_INJ_TOUCH_SLOTS, sizeof(*t));
	size_t n = 0;

	if (!t || ttmon_inj_copy(t, c->touch, NULL, TTMON_INJ_TOUCH_SLOTS * sizeof(*t)))
		goto out;
	for (size_t i = 0; i < TTMON_INJ_TOUCH_SLOTS; i++)
		if (t[i])
			t[n++] = t[i];
	qsort(t, n, sizeof(*t), by_page);
	for (size_t i = 0; i < n;) {
		struct ttmon_mtc_touch e = { .e.kind = TTMON_MTC_ENTRY_TOUCH,
					     .addr = (t[i] >> 2) << 12,
					     .reads = t[i] & 1,
					     .writes = t[i] >> 1 & 1 };
		size_t from = i++;

		while (i < n && t[i] >> 2 == (t[i - 1] >> 2) + 1 && (t[i] & 3) == (t[from] & 3))
			i++;
		e.size = (uint64_t)(i - from) << 12;
		if (!ttmon_inj_put(c, &e.e, sizeof(e), NULL, 0))
			break;
	}
out:
	free(t);
}

static void tell_aggregates(struct ttmon_inj_chan *c)
{
	struct ttmon_mtc_agg *a = calloc(c->agg_sites + 1, sizeof(*a));

	if (a && c->agg_sites && !ttmon_inj_copy(a, c->aggs, NULL, c->agg_sites * sizeof(*a))) {
		for (uint32_t i = 0; i < c->agg_sites; i++) {
			struct ttmon_mtc_agg_entry e = { .e.kind = TTMON_MTC_ENTRY_AGG, .site = i, .agg = a[i] };

			if (a[i].greatest | a[i].least && !ttmon_inj_put(c, &e.e, sizeof(e), NULL, 0))
				break;
		}
	}
	free(a);
}

/* Reports the losses that the recorder counted since the last time and had no record for. */
static void tell_lost(struct ttmon_inj_chan *c)
{
	size_t size = sizeof(struct ttmon_mtc_ctl) + c->nr_rings * sizeof(struct ttmon_mtc_ring);
	struct ttmon_mtc_lost e = { .e.kind = TTMON_MTC_ENTRY_LOST };
	struct ttmon_mtc_ctl *ctl = malloc(size);

	if (ctl && !ttmon_inj_copy(ctl, c->ctl, NULL, size)) {
		for (uint32_t i = 0; i < c->nr_rings; i++)
			e.records += ctl->ring[i].lost;
		e.records -= c->told_lost;
		e.pages = ctl->touch_lost - c->told_pages;
		if ((e.records || e.pages) && ttmon_inj_put(c, &e.e, sizeof(e), NULL, 0)) {
			c->told_lost += e.records;
			c->told_pages += e.pages;
		}
	}
	free(ctl);
}

static void tell_kernels(struct ttmon_inj_chan *c)
{
	uint32_t nr;

	for (struct ttmon_inj_kernel *k = ttmon_inj_kernels(&nr); k; k = k->next)
		if (atomic_load(&k->loaded) && !tell_kernel(c, k, false))
			break;
}

/* ---- waiting for kernels ---- */

struct wait {
	pthread_mutex_t lock;
	pthread_cond_t done;
	void *ctx;
	int err;
	bool over, left; /* left: no thread waits for it any more, so it frees this itself */
};

static void *synchronize(void *arg)
{
	struct wait *w = arg;
	int err = CALL(cuCtxPushCurrent_v2, w->ctx);
	bool left;

	err = err ? err : CALL(cuCtxSynchronize);
	pthread_mutex_lock(&w->lock);
	w->err = err;
	w->over = true;
	left = w->left;
	pthread_cond_signal(&w->done);
	pthread_mutex_unlock(&w->lock);
	if (left)
		free(w);
	return NULL;
}

/*
 * Returns whether all kernels of the context end within some time. A program must not be kept from
 * ending by a kernel that never ends.
 */
static bool kernels_ended(void *ctx)
{
	struct wait *w = calloc(1, sizeof(*w));
	struct timespec until;
	pthread_attr_t attr;
	pthread_t thread;
	bool ended;

	if (!w)
		return false;
	w->ctx = ctx;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->done, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += KERNEL_WAIT;
	if (pthread_create(&thread, &attr, synchronize, w)) {
		pthread_attr_destroy(&attr);
		free(w);
		return !CALL(cuCtxSynchronize);
	}
	pthread_attr_destroy(&attr);
	pthread_mutex_lock(&w->lock);
	while (!w->over && pthread_cond_timedwait(&w->done, &w->lock, &until) != ETIMEDOUT)
		;
	ended = w->over && !w->err;
	w->left = !w->over;
	pthread_mutex_unlock(&w->lock);
	/* The thread has signalled under the lock, and does not use this any more. */
	if (!w->left)
		free(w);
	return ended;
}

/*
 * With its lock held; cuda: its context is current. Reports everything that kernels have done so far.
 */
void ttmon_inj_tell(struct ttmon_inj_chan *c, bool cuda)
{
	if (c->armed && cuda && kernels_ended(c->ctx)) {
		tell_lost(c);
		if (c->aggs) {
			tell_aggregates(c);
			tell_touches(c);
		}
	} else if (c->armed) {
		struct ttmon_mtc_note e = { .e.kind = TTMON_MTC_ENTRY_NOTE };

		TTMON_INJ_PUT(
			c, e,
			"the context had failed or was gone when its channel ended, or a kernel went on: what the GPU "
			"had not written is missing");
	}
	tell_kernels(c);
}
