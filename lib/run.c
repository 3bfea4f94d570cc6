// SPDX-License-Identifier: GPL-2.0-only
/*
 * run.c: a database into tables: the strings, and the allocations one by one out of lib/db.h. Each is checked, summed up and shown to
 * who asked for events; then its tree is let go.
 */
#include "lib/run.h"

#include <stdarg.h>
#include <sys/auxv.h>

#include "core/decode.h"
#include "core/history.h"
#include "lib/run_int.h"

#define SITE_TEXT_FRAMES 3u
#include "util/fmt.h"

#define CHUNK	  (64u << 10)
#define PAGE	  4096u
#define MAX_PAGES (1ULL << 38)
#define MAX_ID	  128 /* the longest that ttmond writes is 80 bytes */

/* cudaHostAlloc and cudaHostRegister: portable, mapped, write-combined or I/O memory. */
#define IN_PLACE_FLAGS 7

struct ttmon_run_chunk {
	struct ttmon_run_chunk *next;
	char text[];
};

uint64_t ttmon_run_seed(void)
{
	uint64_t random[2];

	memcpy(random, (const void *)getauxval(AT_RANDOM), sizeof(random));
	return ttmon_mix64(random[0] ^ ttmon_mix64(random[1]));
}

uint64_t ttmon_run_hash(const struct ttmon_run *run, uint64_t v)
{
	return ttmon_mix64(v ^ run->store->seed);
}

int ttmon_run_fail(struct ttmon_run_load *l, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(l->why, sizeof(l->why), fmt, ap);
	va_end(ap);
	return err;
}

int ttmon_run_put(struct ttmon_run *run, const char *text, size_t n, const char **ret)
{
	struct ttmon_run_store *st = run->store;
	char *at;

	if (n >= TTMON_RUN_MAX_TEXT - st->total)
		return -E2BIG;
	if (st->room - st->used <= n) {
		size_t room = MAX((size_t)CHUNK, n + 1);
		struct ttmon_run_chunk *c = malloc(sizeof(*c) + room);

		if (!c)
			return -ENOMEM;
		c->next = st->chunks;
		st->chunks = c;
		st->room = room;
		st->used = 0;
	}
	at = st->chunks->text + st->used;
	memcpy(at, text, n);
	at[n] = '\0';
	st->used += n + 1;
	st->total += n + 1;
	*ret = at;
	return 0;
}

int ttmon_run_intern(struct ttmon_run *run, const char *text, const char **ret)
{
	struct ttmon_run_store *st = run->store;
	uint64_t hash = st->seed, at;
	const char *copy;
	int err;

	for (const char *p = text; *p; p++)
		hash = (hash ^ (uint8_t)*p) * 0x100000001b3ULL;
	/* A hash that another text has: the next number is tried. */
	for (; (at = ttmon_hmap_get(&st->names, hash)) != TTMON_HMAP_NONE; hash++) {
		if (strcmp((const char *)(uintptr_t)at, text) == 0) {
			*ret = (const char *)(uintptr_t)at;
			return 0;
		}
	}
	err = ttmon_run_put(run, text, strlen(text), &copy);
	if (err)
		return err;
	if (ttmon_hmap_put(&st->names, hash, (uintptr_t)copy) < 0)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

static int fail_alloc(struct ttmon_run_load *l, const char *what)
{
	return ttmon_run_fail(l, -EBADMSG, "allocation %zu: %s", l->run->nr_allocs, what);
}

static uint8_t method_of(const char *name)
{
	for (unsigned int m = 0; m < TTMON_METHOD_MAX; m++)
		if (!strcmp(name, ttmon_method_name(m)))
			return (uint8_t)m;
	return TTMON_METHOD_NONE;
}

/* One after the other calls the same: most come out of the first comparison. */
static uint16_t fn_of(struct ttmon_run_load *l, const char *name)
{
	if (l->fn_name && !strcmp(name, l->fn_name))
		return l->fn;
	for (unsigned int fn = 1; fn < TTMON_FN_COUNT; fn++) {
		const char *known = ttmon_fn_name(fn);

		if (known && !strcmp(name, known)) {
			l->fn_name = known;
			return l->fn = (uint16_t)fn;
		}
	}
	return 0;
}

static uint8_t flags_of(const json_t *row, const struct ttmon_run_alloc *a)
{
	static const struct {
		const char *name;
		uint8_t bits;
	} names[] = {
		{ "old", TTMON_RUN_OLD },
		{ "device_ptr", TTMON_RUN_DEVICE_PTR | TTMON_RUN_IN_PLACE },
		{ "provisional", TTMON_RUN_MADE_UP },
	};
	const json_t *list = json_object_get(row, "flags");
	uint8_t flags = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *name = json_string_value(json_array_get(list, i));

		for (size_t k = 0; name && k < ARRAY_SIZE(names); k++)
			if (!strcmp(name, names[k].name))
				flags |= names[k].bits;
	}
	if (ttmon_run_is_pinned(a) && a->api_flags & IN_PLACE_FLAGS)
		flags |= TTMON_RUN_IN_PLACE;
	return flags;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

void ttmon_run_gpu_use(struct ttmon_run_alloc *a, uint64_t reads, uint64_t writes, uint64_t sectors)
{
	a->gpu_reads = plus(a->gpu_reads, reads);
	a->gpu_writes = plus(a->gpu_writes, writes);
	a->gpu_sectors = plus(a->gpu_sectors, sectors);
	a->flags |= TTMON_RUN_GPU | (ttmon_run_is_pinned(a) ? TTMON_RUN_IN_PLACE : 0);
}

static void read_gpu(const json_t *use, struct ttmon_run_alloc *a)
{
	uint64_t reads = 0, writes = 0, sectors = 0;

	if (!json_is_object(use))
		return;
	ttmon_db_value(json_object_get(use, "reads"), &reads);
	ttmon_db_value(json_object_get(use, "writes"), &writes);
	ttmon_db_value(json_object_get(use, "sectors"), &sectors);
	ttmon_run_gpu_use(a, reads, writes, sectors);
}

static uint32_t u32(uint64_t v)
{
	return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static void read_pair(const json_t *obj, const char *key, uint32_t *copies, uint64_t *bytes)
{
	const json_t *pair = json_object_get(obj, key);
	uint64_t n = 0, b = 0;

	ttmon_db_value(json_array_get(pair, 0), &n);
	ttmon_db_value(json_array_get(pair, 1), &b);
	*copies = u32(n + (uint64_t)*copies);
	*bytes += b;
}

/* False: not one of a kind that is known. */
static bool read_event(const json_t *row, const struct ttmon_run_alloc *a, struct ttmon_run_event *ev)
{
	static const char *const mems[] = { "pinned", "pageable", "managed", "unknown" };
	static const char *const kinds[] = {
#define X(id, NAME, name) [id] = name,
		TTMON_AEV_TABLE(X)
#undef X
	};
	const char *kind = json_string_value(json_array_get(row, 1)), *mem = json_string_value(json_array_get(row, 4));
	json_int_t rel = json_integer_value(json_array_get(row, 0));
	uint64_t bits = 0;

	*ev = (struct ttmon_run_event){ .mem = TTMON_MEM_UNKNOWN };
	while (kind && ev->kind < TTMON_AEV_MAX && strcmp(kind, kinds[ev->kind]))
		ev->kind++;
	if (!kind || ev->kind == TTMON_AEV_MAX)
		return false;
	for (uint8_t m = 0; mem && m < ARRAY_SIZE(mems); m++)
		if (!strcmp(mem, mems[m]))
			ev->mem = m;
	if (rel < 0)
		ev->ts_ns = (uint64_t) - (rel + 1) < a->alloc_ns ? a->alloc_ns - (uint64_t) - (rel + 1) - 1 : 0;
	else
		ev->ts_ns = MIN(a->alloc_ns + (uint64_t)rel, TTMON_RUN_MAX_TIME);
	ttmon_db_value(json_array_get(row, 2), &ev->bytes);
	ttmon_db_value(json_array_get(row, 3), &ev->offset);
	ttmon_db_value(json_array_get(row, 5), &bits);
	ev->bits = (uint16_t)bits;
	return true;
}

static void seen(uint64_t *first, uint64_t *last, uint64_t ts)
{
	ts = MAX(ts, 1);
	*first = *first ? MIN(*first, ts) : ts;
	*last = MAX(*last, ts);
}

static void read_events(struct ttmon_run_load *l, const json_t *row, struct ttmon_run_alloc *a)
{
	const json_t *list = json_object_get(row, "events");
	uint64_t ignored = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		struct ttmon_run_event ev;

		if (!read_event(json_array_get(list, i), a, &ev))
			continue;
		if (l->opts && l->opts->event)
			l->opts->event(l->opts->ctx, l->run, a, &ev);
		if (ev.kind >= TTMON_AEV_PREFETCH)
			continue;
		a->async_copies += ev.bits & TTMON_B_ASYNC ? 1 : 0;
		seen(&ignored, &a->last_copy_ns, ev.ts_ns);
		if (ev.kind == TTMON_AEV_H2D)
			seen(&a->first_h2d_ns, &a->last_h2d_ns, ev.ts_ns);
	}
}

/* Where events are missing the buckets tell more, all directions together. */
static void read_heat(const json_t *row, struct ttmon_run_alloc *a)
{
	const json_t *heat = json_object_get(row, "heat"), *copies = json_object_get(heat, "copies");
	uint64_t origin = ttmon_run_time(heat, "origin_ns", 0), width = ttmon_db_get(heat, "width_ns", 0), ignored = 0;

	width = MIN(width, TTMON_RUN_MAX_TIME / 64);
	for (size_t i = 0; i < MIN(json_array_size(copies), (size_t)64); i++) {
		uint64_t n = 0, ts = MIN(origin + i * width, TTMON_RUN_MAX_TIME);

		if (!ttmon_db_value(json_array_get(copies, i), &n) || !n)
			continue;
		seen(&ignored, &a->last_copy_ns, ts);
		if (a->h2d_copies)
			seen(&a->first_h2d_ns, &a->last_h2d_ns, ts);
	}
}

static void read_traffic(struct ttmon_run_load *l, const json_t *row, struct ttmon_run_alloc *a)
{
	const json_t *t = json_object_get(row, "transfers");
	uint64_t bytes = 0;

	read_pair(t, "h2d", &a->h2d_copies, &a->h2d_bytes);
	read_pair(t, "d2h", &a->d2h_copies, &a->d2h_bytes);
	read_pair(t, "h2h", &a->other_copies, &bytes);
	read_pair(t, "d2d", &a->other_copies, &bytes);
	read_pair(t, "unknown", &a->other_copies, &bytes);
	a->events_dropped = u32(ttmon_db_get(row, "events_dropped", 0));
	read_events(l, row, a);
	if (a->events_dropped || (a->h2d_copies && !a->first_h2d_ns))
		read_heat(row, a);
	/* It was transferred; nothing says when. */
	if (a->h2d_copies && !a->first_h2d_ns) {
		seen(&a->first_h2d_ns, &a->last_h2d_ns, a->alloc_ns);
		seen(&a->first_h2d_ns, &a->last_h2d_ns, a->free_ns);
	}
	if (!a->h2d_copies)
		a->first_h2d_ns = a->last_h2d_ns = 0;
	a->last_copy_ns = MAX(a->last_copy_ns, a->last_h2d_ns);
	if ((a->h2d_copies || a->d2h_copies || a->other_copies) && !a->last_copy_ns)
		a->last_copy_ns = MAX(a->free_ns, 1);
}

/* "launches": [before it was made, before it was freed or null]; not there where that is not known. */
static uint64_t nth(const json_t *row, size_t i)
{
	const json_t *n = json_array_get(json_object_get(row, "launches"), i);

	return json_is_integer(n) && json_integer_value(n) >= 0 ? (uint64_t)json_integer_value(n) : UINT64_MAX;
}

static void read_life(const struct ttmon_run_load *l, const json_t *row, struct ttmon_run_alloc *a)
{
	uint64_t freed = UINT64_MAX;

	a->alloc_ns = ttmon_run_time(row, "alloc_ns", l->run->start_ns);
	if (!ttmon_db_u64(row, "free_ns", &freed)) {
		a->flags |= TTMON_RUN_LIVE;
		freed = l->run->end_ns;
	}
	a->free_ns = MAX(a->alloc_ns, MIN(freed, TTMON_RUN_MAX_TIME));
	a->made_nth = u32(nth(row, 0));
	a->freed_nth = MAX(u32(nth(row, 1)), a->made_nth);
	a->pin_ns = ttmon_run_time(row, "pin_ns", 0);
	a->unpin_ns = ttmon_run_time(row, "unpin_ns", 0);
}

/* The next number of this process, size and site or name. */
static int count_ordinal(struct ttmon_run_load *l, const struct ttmon_run_alloc *a, uint64_t what, uint32_t *ret)
{
	uint64_t key = ttmon_run_hash(l->run, what), at;

	key = ttmon_mix64(key ^ ttmon_mix64(a->size + 1)) ^ ttmon_mix64((uint64_t)a->proc + 1);
	at = ttmon_hmap_get(&l->ordinals, key);
	*ret = at == TTMON_HMAP_NONE ? 0 : (uint32_t)at + 1;
	return ttmon_hmap_put(&l->ordinals, key, *ret) < 0 ? -ENOMEM : 0;
}

static int read_ordinals(struct ttmon_run_load *l, const json_t *row, struct ttmon_run_alloc *a)
{
	int err = 0;

	a->ordinal = u32(ttmon_db_get(row, "ordinal", 0));
	if (l->shared[a->site])
		err = count_ordinal(l, a, l->run->sites[a->site].exact, &a->ordinal);
	if (a->name && !err)
		err = count_ordinal(l, a, (uintptr_t)a->name, &a->name_ordinal);
	return err;
}

static int read_alloc(struct ttmon_run_load *l, const json_t *row, struct ttmon_run_alloc *a)
{
	const char *id = ttmon_db_str(row, "id", "?"), *name = ttmon_db_str(row, "name", NULL);
	struct ttmon_run *run = l->run;
	uint64_t proc = ttmon_db_get(row, "process", 0), site = ttmon_db_get(row, "site", 0);
	int err;

	if (proc >= run->nr_procs)
		return fail_alloc(l, "its process is out of range");
	if (site >= run->nr_sites)
		return fail_alloc(l, "its call site is out of range");
	if (strlen(id) > MAX_ID)
		return fail_alloc(l, "its id is too long");
	err = ttmon_run_put(run, id, strlen(id), &a->id);
	if (!err && name && *name)
		err = ttmon_run_intern(run, name, &a->name);
	if (err)
		return err;
	a->proc = (uint32_t)proc;
	a->site = (uint32_t)site;
	a->addr = ttmon_db_get(row, "addr", 0);
	a->size = ttmon_db_get(row, "size", 0);
	a->api_flags = (uint32_t)ttmon_db_get(row, "api_flags", 0);
	a->method = method_of(ttmon_db_str(row, "method", "none"));
	a->fn = fn_of(l, ttmon_db_str(row, "fn", ""));
	a->flags = flags_of(row, a);
	read_gpu(json_object_get(row, "gpu"), a);
	read_life(l, row, a);
	read_traffic(l, row, a);
	return read_ordinals(l, row, a);
}

static int make_room(struct ttmon_run_load *l)
{
	struct ttmon_run *run = l->run;
	size_t cap = l->cap ? l->cap + l->cap / 2 : 256;
	struct ttmon_run_alloc *v;

	if (run->nr_allocs < l->cap)
		return 0;
	if (run->nr_allocs >= TTMON_RUN_MAX_ALLOCS)
		return ttmon_run_fail(l, -E2BIG, "more than %u allocations", TTMON_RUN_MAX_ALLOCS);
	v = realloc(run->allocs, cap * sizeof(*v));
	if (!v)
		return -ENOMEM;
	run->allocs = v;
	l->cap = cap;
	return 0;
}

static int read_allocs(struct ttmon_run_load *l)
{
	struct ttmon_run *run = l->run;
	int r;

	for (;;) {
		_cleanup_(ttmon_json_decrefp) json_t *row = NULL;
		struct ttmon_run_alloc a = { 0 };

		r = ttmon_db_next_alloc(l->db, &row);
		if (r <= 0)
			break;
		r = read_alloc(l, row, &a);
		if (r)
			return r;
		if (l->opts && l->opts->want && !l->opts->want(l->opts->ctx, run, &a))
			continue;
		r = make_room(l);
		if (r)
			return r;
		run->allocs[run->nr_allocs++] = a;
	}
	return r;
}

static int read_all(struct ttmon_run_load *l)
{
	int err = ttmon_run_head(l);

	err = err ? err : read_allocs(l);
	return err ? err : ttmon_run_tail(l);
}

static struct ttmon_run *new_run(const char *path)
{
	_cleanup_(ttmon_run_freep) struct ttmon_run *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	run->store = calloc(1, sizeof(*run->store));
	run->path = strdup(path);
	if (!run->store || !run->path)
		return NULL;
	run->store->seed = ttmon_run_seed();
	return TAKE_PTR(run);
}

int ttmon_run_load(const char *path, const struct ttmon_run_opts *opts, struct ttmon_run **ret, char *why, size_t n)
{
	_cleanup_(ttmon_run_freep) struct ttmon_run *run = new_run(path);
	_cleanup_(ttmon_db_closep) struct ttmon_db *db = NULL;
	struct ttmon_run_load l = { .run = run, .opts = opts };
	int err;

	if (!run) {
		snprintf(why, n, "out of memory");
		return -ENOMEM;
	}
	err = ttmon_db_open(path, &db, why, n);
	if (err)
		return err;
	l.db = db;
	err = read_all(&l);
	ttmon_hmap_fini(&l.objects);
	ttmon_hmap_fini(&l.ordinals);
	free(l.shared);
	if (err) {
		if (ttmon_db_why(db)[0])
			snprintf(why, n, "%s", ttmon_db_why(db));
		else
			snprintf(why, n, "%.200s: %s", path,
				 l.why[0]	 ? l.why
				 : err == -E2BIG ? "more than 256 MB of names"
						 : strerror(-err));
		return err;
	}
	*ret = TAKE_PTR(run);
	return 0;
}

void ttmon_run_free(struct ttmon_run *run)
{
	if (!run)
		return;
	while (run->store && run->store->chunks) {
		struct ttmon_run_chunk *c = run->store->chunks;

		run->store->chunks = c->next;
		free(c);
	}
	if (run->store)
		ttmon_hmap_fini(&run->store->names);
	free(run->store);
	free(run->path);
	free(run->objects);
	free(run->frames);
	free(run->sites);
	free(run->procs);
	free(run->allocs);
	free(run->checkpoints);
	free(run->gaps);
	free(run);
}

bool ttmon_run_is_pinned(const struct ttmon_run_alloc *a)
{
	return a->method == TTMON_METHOD_HOST_ALLOC || a->method == TTMON_METHOD_REGISTERED ||
	       a->method == TTMON_METHOD_POOL;
}

bool ttmon_run_is_host(const struct ttmon_run_alloc *a)
{
	return ttmon_run_is_pinned(a) || a->method == TTMON_METHOD_CUSTOM || a->method == TTMON_METHOD_MMAP;
}

uint64_t ttmon_run_moved(const struct ttmon_run_alloc *a)
{
	return a->h2d_bytes > UINT64_MAX - a->d2h_bytes ? UINT64_MAX : a->h2d_bytes + a->d2h_bytes;
}

uint64_t ttmon_run_pages(const struct ttmon_run_alloc *a)
{
	uint64_t into = a->addr % PAGE;

	if (!a->size)
		return 0;
	return MIN(a->size / PAGE + (a->size % PAGE + into + PAGE - 1) / PAGE, MAX_PAGES);
}

const char *ttmon_run_site_text(const struct ttmon_run *run, uint32_t site, char *buf, size_t n)
{
	const struct ttmon_run_site *s = &run->sites[site];
	char text[512];
	size_t len = 0;

	if (site >= run->nr_sites || !s->nframes)
		return ttmon_fmt_text(buf, n, "?");
	for (uint32_t i = 0; i < MIN(s->nframes, SITE_TEXT_FRAMES) && len < sizeof(text); i++) {
		const struct ttmon_run_frame *f = &run->frames[s->frame + i];
		const char *base = f->object == TTMON_RUN_NONE ? "?" : run->objects[f->object].base;

		if (i)
			len += (size_t)snprintf(text + len, sizeof(text) - len, " < %s", f->fn ?: base);
		else
			len += (size_t)snprintf(text, sizeof(text), "%s+0x%llx", f->fn ?: base,
						(unsigned long long)(f->fn ? f->delta : f->offset));
	}
	return ttmon_fmt_text(buf, n, text);
}
