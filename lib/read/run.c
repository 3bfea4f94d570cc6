// SPDX-License-Identifier: GPL-2.0-only
/*
 * run.c: reads a database into tables: the strings, and the allocations one by one from lib/read/db.h.
 * Each allocation is checked, summed up and passed to the caller's callback for events; then its tree
 * is freed.
 */
#include "lib/read/run.h"

#include <stdarg.h>
#include <sys/auxv.h>

#include "lib/base/hash.h"
#include "lib/base/hmap.h"
#include "lib/base/names.h"
#include "lib/read/db.h"
#include "lib/read/fields.h"

/* Upper limit of all times: far from overflow, so that times can be compared and added to. */
#define TTMON_RUN_MAX_TIME ((uint64_t)INT64_MAX)

struct ttmon_run_chunk;

/*
 * Owner of the strings. A name that occurs often is stored once; ids occur once and are not looked up.
 */
struct ttmon_run_store {
	struct ttmon_run_chunk *chunks;
	size_t used, room; /* bytes used and allocated of the newest block */
	size_t total;
	/*
	 * seed of all hashes of data from the file, so that a file cannot be written that makes them collide
	 */
	uint64_t seed;
	struct ttmon_hmap names; /* from the hash to the address */
};

struct ttmon_run_loader {
	struct ttmon_run *run;
	struct ttmon_db *db;
	const struct ttmon_run_opts *opts;
	const struct ttmon_plumbing *plumbing;
	struct ttmon_hmap objects;  /* from the id in the file to the index */
	struct ttmon_hmap ordinals; /* of names, and of sites that look the same */
	bool *shared;		    /* for sites: another site of this run has the same exact frames */
	size_t cap;		    /* number of allocations there is room for */
	const char *fn_name;	    /* name looked up last */
	uint16_t fn;
	char why[256];
};

#define SITE_TEXT_FRAMES 3u
#include "lib/base/fmt.h"

#define CHUNK	       (64u << 10)
#define PAGE	       4096u
#define MAX_PAGES      (1ULL << 38)
#define PLUMBING_BYTES (1u << 20) /* the most of a file with patterns */
#define MAX_ID	       128	  /* the longest id that ttmond writes has 80 bytes */

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

/* Makes a key of a hash table from a number of the file. */
static uint64_t hash_of(const struct ttmon_run *run, uint64_t v)
{
	return ttmon_mix64(v ^ run->store->seed);
}

/* Sets the error text, and returns err. */
static _printf_(3, 4) int fail_with(struct ttmon_run_loader *l, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(l->why, sizeof(l->why), fmt, ap);
	va_end(ap);
	return err;
}

/* Stores text. Returns 0, -E2BIG or -ENOMEM. */
static int store_text(struct ttmon_run *run, const char *text, size_t n, const char **ret)
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

static int intern_text(struct ttmon_run *run, const char *text, const char **ret)
{
	struct ttmon_run_store *st = run->store;
	uint64_t hash = ttmon_fnv(st->seed, text, strlen(text)), at;
	const char *copy;
	int err;

	/* If another text has this hash, the next number is tried. */
	for (; (at = ttmon_hmap_get(&st->names, hash)) != TTMON_HMAP_NONE; hash++) {
		if (strcmp((const char *)(uintptr_t)at, text) == 0) {
			*ret = (const char *)(uintptr_t)at;
			return 0;
		}
	}
	err = store_text(run, text, strlen(text), &copy);
	if (err)
		return err;
	if (ttmon_hmap_put(&st->names, hash, (uintptr_t)copy) < 0)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

static int fail_alloc(struct ttmon_run_loader *l, const char *what)
{
	return fail_with(l, -EBADMSG, "allocation %zu: %s", l->run->nr_allocs, what);
}

static uint8_t method_of(const char *name)
{
	for (unsigned int m = 0; m < TTMON_METHOD_MAX; m++)
		if (!strcmp(name, ttmon_method_name(m)))
			return (uint8_t)m;
	return TTMON_METHOD_NONE;
}

/* Consecutive events mostly have the same function, so the first comparison usually succeeds. */
static uint16_t fn_of(struct ttmon_run_loader *l, const char *name)
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

static uint8_t flags_of(const json_t *row, struct ttmon_run_alloc *a)
{
	static const struct {
		const char *name;
		uint8_t bits;
	} names[] = {
		{ "old", TTMON_RUN_OLD },
		{ "device_ptr", TTMON_RUN_DEVICE_PTR | TTMON_RUN_IN_PLACE },
		{ "provisional", TTMON_RUN_UNSEEN },
	};
	const json_t *list = json_object_get(row, "flags");
	uint8_t flags = 0;

	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *name = json_string_value(json_array_get(list, i));

		for (size_t k = 0; name && k < ARRAY_SIZE(names); k++)
			if (!strcmp(name, names[k].name))
				flags |= names[k].bits;
		if (name && !strcmp(name, "backing"))
			a->api_flags |= TTMON_API_BACKING;
	}
	if (ttmon_run_is_pinned(a) && a->api_flags & IN_PLACE_FLAGS)
		flags |= TTMON_RUN_IN_PLACE;
	return flags;
}

void ttmon_run_gpu_use(struct ttmon_run_alloc *a, uint64_t reads, uint64_t writes, uint64_t sectors)
{
	a->gpu_reads = ttmon_add_sat(a->gpu_reads, reads);
	a->gpu_writes = ttmon_add_sat(a->gpu_writes, writes);
	a->gpu_sectors = ttmon_add_sat(a->gpu_sectors, sectors);
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

/* Returns false if the event is not of a known kind. */
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

static void read_events(struct ttmon_run_loader *l, const json_t *row, struct ttmon_run_alloc *a)
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

#define MAX_PROCS   (1u << 20)
#define MAX_OBJECTS (1u << 20)

/*
 * Returns n elements of size bytes, zeroed; one element for n 0, so that NULL always means out of
 * memory.
 */
static void *table(size_t n, size_t size)
{
	return calloc(n ? n : 1, size);
}

/* Returns a time of an object, def if there is none. */
static uint64_t time_of(const json_t *obj, const char *key, uint64_t def)
{
	return MIN(ttmon_db_get(obj, key, def), TTMON_RUN_MAX_TIME);
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static int text(struct ttmon_run_loader *l, const json_t *obj, const char *key, const char *def, const char **ret)
{
	const char *s = ttmon_db_str(obj, key, def);

	return s ? intern_text(l->run, s, ret) : 0;
}

static int read_reasons(struct ttmon_run_loader *l, const json_t *c)
{
	const json_t *list = json_object_get(c, "reasons");
	char buf[256] = "";
	size_t len = 0;

	for (size_t i = 0; i < json_array_size(list) && len < sizeof(buf); i++) {
		const char *s = json_string_value(json_array_get(list, i));

		if (s)
			len += (size_t)snprintf(buf + len, sizeof(buf) - len, "%s%s", len ? ", " : "", s);
	}
	return intern_text(l->run, buf, &l->run->reasons);
}

static int read_completeness(struct ttmon_run_loader *l)
{
	static const char *const lost[] = { "ring_full", "map_full", "read_failed", "unpaired" };
	const json_t *c = ttmon_db_member(l->db, "completeness"), *by = json_object_get(c, "lost");
	struct ttmon_run *run = l->run;

	run->complete = json_is_true(json_object_get(c, "complete"));
	for (size_t i = 0; i < ARRAY_SIZE(lost); i++)
		run->lost = add(run->lost, ttmon_db_get(by, lost[i], 0));
	run->lost = add(run->lost, ttmon_db_get(c, "malformed", 0));
	run->lost = add(run->lost, ttmon_db_get(c, "arena_full", 0));
	run->folded = ttmon_db_get(c, "folded", 0);
	run->evicted = ttmon_db_get(c, "evicted", 0);
	run->events_dropped = ttmon_add_sat(ttmon_db_get(c, "events_dropped", 0), ttmon_db_get(c, "events_trimmed", 0));
	return read_reasons(l, c);
}

static int read_capture(struct ttmon_run_loader *l)
{
	const json_t *c = ttmon_db_member(l->db, "capture"), *clock = ttmon_db_member(l->db, "clock");
	struct ttmon_run *run = l->run;
	uint64_t mono = time_of(clock, "mono_ns", 0), real = time_of(clock, "real_ns", 0);
	int err;

	run->start_ns = time_of(c, "start_ns", 0);
	run->end_ns = MAX(run->start_ns, time_of(c, "end_ns", run->start_ns));
	if (mono && real && real + run->start_ns > mono)
		run->real_ns = real + run->start_ns - mono;
	err = text(l, ttmon_db_member(l->db, "host"), "hostname", "", &run->hostname);
	if (err)
		return err;
	return intern_text(run, json_string_value(ttmon_db_member(l->db, "ttmond")) ?: "", &run->ttmond);
}

static unsigned int digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	return c >= 'a' && c <= 'f' ? (unsigned int)(c - 'a') + 10 : 16;
}

/* A text that is not whole bytes in hexadecimal is not a build-id. */
static uint8_t read_build_id(const char *hex, uint8_t out[20])
{
	size_t n = strlen(hex);

	if (n % 2 || n > 40)
		return 0;
	for (size_t i = 0; i < n; i += 2) {
		unsigned int hi = digit(hex[i]), lo = digit(hex[i + 1]);

		if (hi > 15 || lo > 15)
			return 0;
		out[i / 2] = (uint8_t)(hi << 4 | lo);
	}
	return (uint8_t)(n / 2);
}

static int read_objects(struct ttmon_run_loader *l)
{
	const json_t *list = ttmon_db_member(l->db, "objects");
	struct ttmon_run *run = l->run;
	size_t n = json_array_size(list);

	if (n > MAX_OBJECTS)
		return fail_with(l, -E2BIG, "more than %u objects", MAX_OBJECTS);
	run->objects = table(n, sizeof(*run->objects));
	if (!run->objects)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const json_t *row = json_array_get(list, i);
		struct ttmon_run_object *o = &run->objects[i];
		const char *slash;
		uint64_t id;
		int err = text(l, row, "path", "?", &o->path);

		if (err)
			return err;
		slash = strrchr(o->path, '/');
		o->base = slash ? slash + 1 : o->path;
		o->build_id_len = read_build_id(ttmon_db_str(row, "build_id", ""), o->build_id);
		o->cuda = json_is_true(json_object_get(row, "cuda"));
		o->python = !strcmp(ttmon_db_str(row, "kind", ""), "python");
		run->nr_objects = i + 1;
		if (ttmon_db_u64(row, "id", &id) && id && ttmon_hmap_put(&l->objects, hash_of(run, id), i) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int read_procs(struct ttmon_run_loader *l)
{
	const json_t *list = ttmon_db_member(l->db, "processes");
	struct ttmon_run *run = l->run;
	size_t n = json_array_size(list);

	if (n > MAX_PROCS)
		return fail_with(l, -E2BIG, "more than %u processes", MAX_PROCS);
	run->procs = table(n, sizeof(*run->procs));
	if (!run->procs)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const json_t *row = json_array_get(list, i);
		struct ttmon_run_proc *p = &run->procs[i];
		int err = text(l, row, "comm", "?", &p->comm);

		err = err ? err : text(l, row, "exe", NULL, &p->exe);
		err = err ? err : text(l, row, "cmdline", NULL, &p->cmdline);
		if (err)
			return err;
		p->pid = (uint32_t)ttmon_db_get(row, "pid", 0);
		p->start_ns = time_of(row, "start_ns", 0);
		p->first_ns = time_of(row, "first_ns", 0);
		p->last_ns = MAX(p->first_ns, time_of(row, "last_ns", 0));
		p->at_least = json_is_true(json_object_get(row, "at_least"));
		run->at_least |= p->at_least;
		p->numbered = ttmon_db_get(row, "launches_numbered", 0);
		run->nr_procs = i + 1;
	}
	return 0;
}

/* Parses "function+0x12". Names of operators may contain a +, so the last one counts. */
static int read_symbol(struct ttmon_run_loader *l, const char *symbol, struct ttmon_run_frame *f)
{
	const char *plus = symbol ? strrchr(symbol, '+') : NULL;
	char name[512];
	char *end;

	if (!plus || plus == symbol)
		return symbol && *symbol ? intern_text(l->run, symbol, &f->fn) : 0;
	errno = 0;
	f->delta = strtoull(plus + 1, &end, 0);
	if (errno || *end || end == plus + 1) {
		f->delta = 0;
		return intern_text(l->run, symbol, &f->fn);
	}
	if ((size_t)(plus - symbol) < sizeof(name)) {
		memcpy(name, symbol, (size_t)(plus - symbol));
		name[plus - symbol] = '\0';
		return intern_text(l->run, name, &f->fn);
	}
	/* Names of templates can be too long for the stack. */
	_cleanup_free_ char *copy = strndup(symbol, (size_t)(plus - symbol));

	return copy ? intern_text(l->run, copy, &f->fn) : -ENOMEM;
}

static bool is_main(const char *fn)
{
	return fn && (!strcmp(fn, "main") || !strcmp(fn, "__libc_start_main") || !strcmp(fn, "_start"));
}

static bool is_python(const struct ttmon_run *run, const struct ttmon_run_frame *f)
{
	return f->object != TTMON_RUN_NONE && run->objects[f->object].python;
}

/* One row of a site: object, offset, symbol. */
static int read_frame(struct ttmon_run_loader *l, const json_t *row, struct ttmon_run_frame *f)
{
	const struct ttmon_run *run = l->run;
	const struct ttmon_run_object *o = NULL;
	uint64_t id = 0, at = TTMON_HMAP_NONE;
	int err = read_symbol(l, json_string_value(json_array_get(row, 2)), f);

	if (err)
		return err;
	ttmon_db_value(json_array_get(row, 1), &f->offset);
	if (ttmon_db_value(json_array_get(row, 0), &id) && id)
		at = ttmon_hmap_get(&l->objects, hash_of(run, id));
	f->object = at < run->nr_objects ? (uint32_t)at : TTMON_RUN_NONE;
	if (f->object == TTMON_RUN_NONE)
		return 0;
	o = &run->objects[f->object];
	f->plumbing = o->python ? ttmon_plumbing_python(l->plumbing, o->path)
				: o->cuda || ttmon_plumbing_native(l->plumbing, o->path, f->fn);
	return 0;
}

/* The hashes of a site so far, and whether each is known. */
struct hashes {
	uint64_t exact, names, near;
	bool named, near_known;
};

static void add_frame(const struct ttmon_run *run, const struct ttmon_run_frame *f, struct hashes *h)
{
	const struct ttmon_run_object *o = f->object == TTMON_RUN_NONE ? NULL : &run->objects[f->object];
	/* A line of Python moves with its function, and the build-id of that says whether it is the same. */
	uint64_t at = o && o->python ? f->delta : f->offset;
	const char *name = f->fn ? f->fn : o ? o->base : "?";

	h->exact = ttmon_site_hash_frame(h->exact, o ? o->build_id : NULL, o ? o->build_id_len : 0, at);
	h->names = ttmon_site_hash_name(h->names, name);
	h->near = ttmon_site_hash_near(h->near, name, f->delta);
	h->named |= f->fn != NULL;
	h->near_known &= f->fn != NULL;
}

static int read_frames(struct ttmon_run_loader *l, const json_t *list, struct ttmon_run_site *s)
{
	struct hashes h = { TTMON_FNV_BASIS, TTMON_FNV_BASIS, TTMON_FNV_BASIS, false, true };
	struct ttmon_run *run = l->run;
	bool interpreter = false, python = false;

	for (uint32_t i = 0; i < s->nframes; i++) {
		struct ttmon_run_frame *f = &run->frames[s->frame + i];
		int err = read_frame(l, json_array_get(list, i), f);

		if (err)
			return err;
		s->in_main |= is_main(f->fn);
		python |= is_python(run, f);
		interpreter |=
			f->object != TTMON_RUN_NONE && ttmon_plumbing_is_interpreter(run->objects[f->object].path);
		if (f->plumbing)
			continue;
		if (!s->own && f->fn)
			s->leaf = ttmon_site_hash_name(TTMON_FNV_BASIS, f->fn);
		if (s->own++ < TTMON_RUN_KEY_FRAMES)
			add_frame(run, f, &h);
	}
	s->cut = s->own > TTMON_RUN_KEY_FRAMES;
	s->exact = s->own ? h.exact : 0;
	s->names = s->own && h.named ? h.names : 0;
	s->near = s->own && h.near_known ? h.near : 0;
	if (interpreter && !python) {
		s->cut = true;
		s->exact = ttmon_site_hash_python(s->exact);
		s->names = ttmon_site_hash_python(s->names);
		s->near = s->leaf = 0;
	}
	return 0;
}

/*
 * A stack that may be wrong does not identify a site, and one that was cut may belong to several. A
 * stack without this information is taken to be as reliable as frame pointers are.
 */
static void judge_stack(const struct ttmon_run *run, const json_t *stack, struct ttmon_run_site *s)
{
	const char *by = ttmon_db_str(stack, "by", ""), *end = ttmon_db_str(stack, "end", "");

	if (!strcmp(by, "unchecked") || !strcmp(by, "guessed") || !strcmp(by, "python_unknown")) {
		s->exact = s->names = s->near = 0;
		/* The innermost frame is certain. */
		if (s->nframes && run->frames[s->frame].plumbing)
			s->leaf = 0;
	}
	s->by_depth = !strcmp(end, "depth") && s->own < TTMON_RUN_KEY_FRAMES;
	if (s->by_depth || (*end && strcmp(end, "complete") != 0 && strcmp(end, "depth") != 0))
		s->cut = true;
}

/* Returns whether the first n of their own frames are the same: for Python the lines, too. */
static bool same_lines(const struct ttmon_run *run, const struct ttmon_run_site *a, const struct ttmon_run_site *b)
{
	uint32_t i = 0, j = 0;

	for (uint32_t n = 0; n < TTMON_RUN_KEY_FRAMES; n++, i++, j++) {
		const struct ttmon_run_frame *x, *y;

		while (i < a->nframes && run->frames[a->frame + i].plumbing)
			i++;
		while (j < b->nframes && run->frames[b->frame + j].plumbing)
			j++;
		if (i == a->nframes || j == b->nframes)
			return i == a->nframes && j == b->nframes;
		x = &run->frames[a->frame + i];
		y = &run->frames[b->frame + j];
		if (is_python(run, x) && x->offset != y->offset)
			return false;
	}
	return true;
}

/*
 * Sites can differ in plumbing, and in deeper frames than those of the key: the file distinguishes
 * them, but a lookup by the key cannot. Two lines of Python can have one key, if both begin a function
 * of the same name and code, such as a lambda: neither is identified.
 */
static int find_shared(struct ttmon_run_loader *l)
{
	_cleanup_(ttmon_hmap_fini) struct ttmon_hmap seen = { 0 };
	struct ttmon_run *run = l->run;
	_cleanup_free_ bool *mixed = table(run->nr_sites, sizeof(*mixed));

	l->shared = table(run->nr_sites, sizeof(*l->shared));
	if (!l->shared || !mixed)
		return -ENOMEM;
	for (size_t i = 0; i < run->nr_sites; i++) {
		uint64_t at;

		if (!run->sites[i].exact)
			continue;
		at = ttmon_hmap_get(&seen, hash_of(run, run->sites[i].exact));
		if (at == TTMON_HMAP_NONE) {
			if (ttmon_hmap_put(&seen, hash_of(run, run->sites[i].exact), i) < 0)
				return -ENOMEM;
			continue;
		}
		l->shared[at] = l->shared[i] = true;
		mixed[at] |= !same_lines(run, &run->sites[at], &run->sites[i]);
	}
	for (size_t i = 0; i < run->nr_sites; i++) {
		struct ttmon_run_site *s = &run->sites[i];

		if (l->shared[i] && mixed[ttmon_hmap_get(&seen, hash_of(run, s->exact))]) {
			s->exact = s->near = 0;
			l->shared[i] = false;
		}
	}
	return 0;
}

static int count_frames(struct ttmon_run_loader *l, const json_t *list)
{
	size_t n = json_array_size(list), total = 0;

	if (n > TTMON_RUN_MAX_SITES)
		return fail_with(l, -E2BIG, "more than %u call sites", TTMON_RUN_MAX_SITES);
	for (size_t i = 0; i < n; i++) {
		size_t frames = json_array_size(json_object_get(json_array_get(list, i), "frames"));

		if (frames > TTMON_RUN_MAX_FRAMES)
			return fail_with(l, -E2BIG, "call site %zu has more than %d frames", i, TTMON_RUN_MAX_FRAMES);
		total += frames;
	}
	l->run->nr_frames = total;
	l->run->nr_sites = n ? n : 1;
	return 0;
}

static int read_sites(struct ttmon_run_loader *l)
{
	const json_t *list = ttmon_db_member(l->db, "sites");
	struct ttmon_run *run = l->run;
	uint32_t frame = 0;
	int err = count_frames(l, list);

	if (err)
		return err;
	run->frames = table(run->nr_frames, sizeof(*run->frames));
	run->sites = table(run->nr_sites, sizeof(*run->sites));
	if (!run->frames || !run->sites)
		return -ENOMEM;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *row = json_array_get(list, i), *frames = json_object_get(row, "frames");
		struct ttmon_run_site *s = &run->sites[i];

		if (ttmon_db_get(row, "id", i) != i)
			return fail_with(l, -EBADMSG, "call site %zu: its id is not its place in the list", i);
		s->key = ttmon_db_get(row, "key", 0);
		s->frame = frame;
		s->nframes = (uint32_t)json_array_size(frames);
		frame += s->nframes;
		err = read_frames(l, frames, s);
		if (err)
			return err;
		judge_stack(run, json_object_get(row, "stack"), s);
	}
	return find_shared(l);
}

/* If several processes had the same pid, the last one is used. */
static int index_pids(const struct ttmon_run *run, struct ttmon_hmap *pids)
{
	for (size_t p = 0; p < run->nr_procs; p++)
		if (ttmon_hmap_put(pids, hash_of(run, run->procs[p].pid), p) < 0)
			return -ENOMEM;
	return 0;
}

static const char *object_base(const struct ttmon_run_loader *l, uint64_t number)
{
	uint64_t at = ttmon_hmap_get(&l->objects, hash_of(l->run, number));

	return at < l->run->nr_objects ? l->run->objects[at].base : NULL;
}

/*
 * Reads a row of `completeness.knowledge` about memory: which families missed something, when and why.
 */
static int read_gap(struct ttmon_run_loader *l, const json_t *row)
{
	static const char *const about[] = { "alloc", "transfer", "mmap" };
	const json_t *families = json_object_get(row, "families");
	struct ttmon_run *run = l->run;
	struct ttmon_run_gap g = { .from_ns = ttmon_db_get(row, "from_ns", 0),
				   .to_ns = ttmon_db_get(row, "to_ns", run->end_ns) };
	const char *base = object_base(l, ttmon_db_get(row, "object", UINT64_MAX));
	char list[64] = "", what[160];
	int err;

	for (size_t i = 0; i < json_array_size(families); i++)
		for (size_t k = 0; k < ARRAY_SIZE(about); k++)
			if (json_string_value(json_array_get(families, i)) &&
			    !strcmp(json_string_value(json_array_get(families, i)), about[k]))
				snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", *list ? ", " : "",
					 about[k]);
	g.from_ns = MAX(g.from_ns, run->start_ns);
	g.to_ns = MIN(g.to_ns, run->end_ns);
	if (!*list || g.from_ns >= g.to_ns)
		return 0;
	snprintf(what, sizeof(what), "%.24s%s%.64s: %s %.24s", ttmon_db_str(row, "why", "?"), base ? " of " : "",
		 base ? base : "", list, ttmon_db_str(row, "state", "?"));
	err = intern_text(run, what, &g.what);
	if (!err)
		run->gaps[run->nr_gaps++] = g;
	return err;
}

/*
 * Reads a row of `completeness.blind` of databases without knowledge: it only has the length of the
 * gap, which is placed before the first event of the process.
 */
static int read_blind(struct ttmon_run_loader *l, const json_t *row, const struct ttmon_hmap *pids)
{
	struct ttmon_run *run = l->run;
	struct ttmon_run_gap *g = &run->gaps[run->nr_gaps];
	uint64_t us = ttmon_db_get(row, "window_us", 0), at;
	uint64_t ns = us > TTMON_RUN_MAX_TIME / 1000 ? TTMON_RUN_MAX_TIME : us * 1000;
	const char *base = object_base(l, ttmon_db_get(row, "object", 0));
	char what[160];
	int err;

	if (!us || json_is_true(json_object_get(row, "held")))
		return 0;
	g->to_ns = run->start_ns;
	at = ttmon_hmap_get(pids, hash_of(run, ttmon_db_get(row, "pid", 0)));
	if (at < run->nr_procs)
		g->to_ns = MIN(MAX(run->procs[at].first_ns, run->start_ns), run->end_ns);
	g->from_ns = MAX(run->start_ns, g->to_ns > ns ? g->to_ns - ns : 0);
	snprintf(what, sizeof(what), "coverage gap of %s", base ? base : "?");
	err = intern_text(run, what, &g->what);
	run->nr_gaps += !err;
	return err;
}

static int read_gaps(struct ttmon_run_loader *l)
{
	_cleanup_(ttmon_hmap_fini) struct ttmon_hmap pids = { 0 };
	const json_t *comp = ttmon_db_member(l->db, "completeness"), *known = json_object_get(comp, "knowledge"),
		     *list = known ? known : json_object_get(comp, "blind");
	struct ttmon_run *run = l->run;
	int err = 0;

	run->gaps = table(json_array_size(list), sizeof(*run->gaps));
	if (!run->gaps || index_pids(run, &pids))
		return -ENOMEM;
	for (size_t i = 0; i < json_array_size(list) && !err; i++)
		err = known ? read_gap(l, json_array_get(list, i)) : read_blind(l, json_array_get(list, i), &pids);
	return err;
}

static int by_when(const void *pa, const void *pb)
{
	const struct ttmon_run_checkpoint *a = pa, *b = pb;

	return (a->ts_ns > b->ts_ns) - (a->ts_ns < b->ts_ns);
}

static int read_checkpoints(struct ttmon_run_loader *l)
{
	const json_t *list = ttmon_db_member(l->db, "checkpoints");
	struct ttmon_run *run = l->run;

	run->checkpoints = table(json_array_size(list), sizeof(*run->checkpoints));
	if (!run->checkpoints)
		return -ENOMEM;
	for (size_t i = 0; i < json_array_size(list); i++) {
		struct ttmon_run_checkpoint *out = &run->checkpoints[i];
		struct ttmon_db_checkpoint c;
		int err;

		if (!ttmon_db_get_checkpoint(json_array_get(list, i), &c) || c.process >= run->nr_procs)
			return fail_with(l, -EBADMSG, "checkpoint %zu is none, or its process is out of range", i);
		out->ts_ns = MIN(c.ts_ns, TTMON_RUN_MAX_TIME);
		out->proc = c.process;
		err = intern_text(run, c.label, &out->label);
		if (err)
			return err;
		run->nr_checkpoints = i + 1;
	}
	qsort(run->checkpoints, run->nr_checkpoints, sizeof(*run->checkpoints), by_when);
	return 0;
}

/* Read all members except the allocations: _head before them, _tail after them. */
static int read_head(struct ttmon_run_loader *l)
{
	int err = read_capture(l);

	err = err ? err : read_completeness(l);
	err = err ? err : read_objects(l);
	err = err ? err : read_procs(l);
	err = err ? err : read_sites(l);
	return err || !ttmon_db_member(l->db, "checkpoints") ? err : read_checkpoints(l);
}

static int read_tail(struct ttmon_run_loader *l)
{
	int err = read_gaps(l);

	return err || l->run->checkpoints ? err : read_checkpoints(l);
}

/* If events are missing, the buckets have more; they count all directions together. */
static void read_heat(const json_t *row, struct ttmon_run_alloc *a)
{
	const json_t *heat = json_object_get(row, "heat"), *copies = json_object_get(heat, "copies");
	uint64_t origin = time_of(heat, "origin_ns", 0), width = ttmon_db_get(heat, "width_ns", 0), ignored = 0;

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

/* As in daemon/core/history/heat: groups of pages that some copy touched. */
static void read_page_heat(const json_t *row, struct ttmon_run_alloc *a)
{
	const json_t *heat = json_object_get(row, "page_heat"), *copies = json_object_get(heat, "copies");
	uint64_t group = ttmon_db_get(heat, "group_bytes", 0), n = 0, any;

	for (size_t i = 0; i < MIN(json_array_size(copies), (size_t)64); i++)
		n += ttmon_db_value(json_array_get(copies, i), &any) && any;
	a->touched = n && group > a->size / n ? a->size : n * group;
}

static void read_traffic(struct ttmon_run_loader *l, const json_t *row, struct ttmon_run_alloc *a)
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
	read_page_heat(row, a);
	if (a->events_dropped || (a->h2d_copies && !a->first_h2d_ns))
		read_heat(row, a);
	/* It was transferred, at an unknown time. */
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

/*
 * "launches": [launches before the allocation, launches before the free or null]; missing if not
 * known.
 */
static uint64_t nth(const json_t *row, size_t i)
{
	const json_t *n = json_array_get(json_object_get(row, "launches"), i);

	return json_is_integer(n) && json_integer_value(n) >= 0 ? (uint64_t)json_integer_value(n) : UINT64_MAX;
}

static void read_life(const struct ttmon_run_loader *l, const json_t *row, struct ttmon_run_alloc *a)
{
	uint64_t freed = UINT64_MAX;

	a->alloc_ns = time_of(row, "alloc_ns", l->run->start_ns);
	if (!ttmon_db_u64(row, "free_ns", &freed)) {
		a->flags |= TTMON_RUN_LIVE;
		freed = l->run->end_ns;
	}
	a->free_ns = MAX(a->alloc_ns, MIN(freed, TTMON_RUN_MAX_TIME));
	a->made_nth = u32(nth(row, 0));
	a->freed_nth = MAX(u32(nth(row, 1)), a->made_nth);
	a->pin_ns = time_of(row, "pin_ns", 0);
	a->unpin_ns = time_of(row, "unpin_ns", 0);
}

/* Gets the next ordinal of this process, size and site or name. */
static int count_ordinal(struct ttmon_run_loader *l, const struct ttmon_run_alloc *a, uint64_t what, uint32_t *ret)
{
	uint64_t key = hash_of(l->run, what), at;

	key = ttmon_mix64(key ^ ttmon_mix64(a->size + 1)) ^ ttmon_mix64((uint64_t)a->proc + 1);
	at = ttmon_hmap_get(&l->ordinals, key);
	*ret = at == TTMON_HMAP_NONE ? 0 : (uint32_t)at + 1;
	return ttmon_hmap_put(&l->ordinals, key, *ret) < 0 ? -ENOMEM : 0;
}

static int read_ordinals(struct ttmon_run_loader *l, const json_t *row, struct ttmon_run_alloc *a)
{
	int err = 0;

	a->ordinal = u32(ttmon_db_get(row, "ordinal", 0));
	if (l->shared[a->site])
		err = count_ordinal(l, a, l->run->sites[a->site].exact, &a->ordinal);
	if (a->name && !err)
		err = count_ordinal(l, a, (uintptr_t)a->name, &a->name_ordinal);
	return err;
}

static int read_alloc(struct ttmon_run_loader *l, const json_t *row, struct ttmon_run_alloc *a)
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
	err = store_text(run, id, strlen(id), &a->id);
	if (!err && name && *name)
		err = intern_text(run, name, &a->name);
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
	if (*ttmon_db_str(row, "kind", ""))
		a->flags |= TTMON_RUN_UNSEEN;
	if (!strcmp(ttmon_db_str(row, "kind", ""), "pinned"))
		a->flags |= TTMON_RUN_PROVED;
	if (json_is_true(json_object_get(row, "at_least")))
		a->flags |= TTMON_RUN_AT_LEAST;
	return read_ordinals(l, row, a);
}

/* For readers of lives alone. */
struct life {
	struct ttmon_run_alloc a;
	bool freed;
};

/* One member of an allocation. */
static void take_field(void *ctx, const struct ttmon_field *f)
{
	struct life *l = ctx;
	struct ttmon_run_alloc *a = &l->a;
	char name[32];
	uint64_t v;

	if (!f)
		*l = (struct life){ .a = { .id = "" } };
	else if (ttmon_field_is(f, "process")) {
		v = UINT32_MAX;
		ttmon_field_u64(f, &v);
		a->proc = u32(v);
	} else if (ttmon_field_is(f, "site")) {
		v = UINT32_MAX;
		ttmon_field_u64(f, &v);
		a->site = u32(v);
	} else if (ttmon_field_is(f, "size")) {
		ttmon_field_u64(f, &a->size);
	} else if (ttmon_field_is(f, "method")) {
		a->method = method_of(ttmon_field_name(f, name, sizeof(name)));
	} else if (ttmon_field_is(f, "alloc_ns")) {
		ttmon_field_u64(f, &a->alloc_ns);
	} else if (ttmon_field_is(f, "free_ns")) {
		l->freed = ttmon_field_u64(f, &a->free_ns);
	} else if (ttmon_field_is(f, "pin_ns")) {
		ttmon_field_u64(f, &a->pin_ns);
	} else if (ttmon_field_is(f, "unpin_ns")) {
		ttmon_field_u64(f, &a->unpin_ns);
	} else if (ttmon_field_is(f, "flags")) {
		if (memmem(f->value, f->len, "\"provisional\"", 13))
			a->flags |= TTMON_RUN_UNSEEN;
		if (memmem(f->value, f->len, "\"backing\"", 9))
			a->api_flags |= TTMON_API_BACKING;
	} else if (ttmon_field_is(f, "kind") && *ttmon_field_name(f, name, sizeof(name))) {
		a->flags |= TTMON_RUN_UNSEEN | (strcmp(name, "pinned") ? 0 : TTMON_RUN_PROVED);
	} else if (ttmon_field_is(f, "at_least") && *f->value == 't') {
		a->flags |= TTMON_RUN_AT_LEAST;
	}
}

static int make_room(struct ttmon_run_loader *l)
{
	struct ttmon_run *run = l->run;
	size_t cap = l->cap ? l->cap + l->cap / 2 : 256;
	struct ttmon_run_alloc *v;

	if (run->nr_allocs < l->cap)
		return 0;
	if (run->nr_allocs >= TTMON_RUN_MAX_ALLOCS)
		return fail_with(l, -E2BIG, "more than %u allocations", TTMON_RUN_MAX_ALLOCS);
	v = realloc(run->allocs, cap * sizeof(*v));
	if (!v)
		return -ENOMEM;
	run->allocs = v;
	l->cap = cap;
	return 0;
}

static int read_lives(struct ttmon_run_loader *l)
{
	struct ttmon_run *run = l->run;
	struct life life;
	int r;

	while ((r = ttmon_db_next_fields(l->db, take_field, &life)) == 1) {
		struct ttmon_run_alloc *a = &life.a;

		if (a->proc >= run->nr_procs)
			return fail_alloc(l, "its process is out of range");
		if (a->site >= run->nr_sites)
			return fail_alloc(l, "its call site is out of range");
		if (!life.freed)
			a->flags |= TTMON_RUN_LIVE;
		a->alloc_ns = MIN(a->alloc_ns ? a->alloc_ns : run->start_ns, TTMON_RUN_MAX_TIME);
		a->free_ns = MAX(a->alloc_ns, life.freed ? MIN(a->free_ns, TTMON_RUN_MAX_TIME) : run->end_ns);
		if (l->opts->want && !l->opts->want(l->opts->ctx, run, a))
			continue;
		r = make_room(l);
		if (r)
			return r;
		run->allocs[run->nr_allocs++] = *a;
	}
	return r;
}

static int read_allocs(struct ttmon_run_loader *l)
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

static int read_all(struct ttmon_run_loader *l)
{
	int err = read_head(l);

	err = err ? err : l->opts && l->opts->lives ? read_lives(l) : read_allocs(l);
	err = err ? err : read_tail(l);
	return err || !l->opts || !l->opts->members ? err : l->opts->members(l->opts->ctx, l->run, l->db);
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

int ttmon_run_plumbing(const char *path, struct ttmon_plumbing **ret, char *why, size_t n)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *text = NULL;
	char bad[128] = "";
	size_t len;
	int err;

	path = path ?: secure_getenv("TTMON_PLUMBING");
	if (!path || !*path) {
		*ret = NULL;
		return 0;
	}
	f = fopen(path, "re");
	text = malloc(PLUMBING_BYTES + 1);
	if (!f || !text) {
		err = text ? -errno : -ENOMEM;
		snprintf(why, n, "%.200s: %s", path, strerror(-err));
		return err;
	}
	len = fread(text, 1, PLUMBING_BYTES + 1, f);
	if (ferror(f))
		err = -EIO;
	else
		err = len > PLUMBING_BYTES ? -E2BIG : ttmon_plumbing_parse(text, len, ret, bad, sizeof(bad));
	if (err)
		snprintf(why, n, "%.200s: %s", path,
			 bad[0]		 ? bad
			 : err == -E2BIG ? "more than 1 MB of patterns"
					 : strerror(-err));
	return err;
}

int ttmon_run_load(const char *path, const struct ttmon_run_opts *opts, struct ttmon_run **ret, char *why, size_t n)
{
	_cleanup_(ttmon_run_freep) struct ttmon_run *run = new_run(path);
	_cleanup_(ttmon_plumbing_freep) struct ttmon_plumbing *plumbing = NULL;
	_cleanup_(ttmon_db_closep) struct ttmon_db *db = NULL;
	struct ttmon_run_loader l = { .run = run, .opts = opts, .plumbing = opts ? opts->plumbing : NULL };
	int err;

	if (!run) {
		snprintf(why, n, "out of memory");
		return -ENOMEM;
	}
	err = l.plumbing ? 0 : ttmon_run_plumbing(NULL, &plumbing, why, n);
	if (err)
		return err;
	l.plumbing = l.plumbing ?: plumbing;
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
	if (ttmon_run_is_backing(a))
		return false;
	return a->method == TTMON_METHOD_HOST_ALLOC || a->method == TTMON_METHOD_REGISTERED ||
	       a->method == TTMON_METHOD_POOL || a->method == TTMON_METHOD_PIECE;
}

bool ttmon_run_pins_pages(const struct ttmon_run_alloc *a)
{
	return ttmon_run_is_backing(a) || (ttmon_run_is_pinned(a) && a->method != TTMON_METHOD_PIECE);
}

bool ttmon_run_is_unknown(const struct ttmon_run_alloc *a)
{
	return (a->flags & (TTMON_RUN_UNSEEN | TTMON_RUN_PROVED)) == TTMON_RUN_UNSEEN && ttmon_run_is_host(a);
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

const char *ttmon_run_frame_name(const struct ttmon_run *run, const struct ttmon_run_frame *f, char *buf, size_t n)
{
	const struct ttmon_run_object *o = f->object == TTMON_RUN_NONE ? NULL : &run->objects[f->object];

	return f->fn && o && o->python ? ttmon_python_line(buf, n, o->path, f->offset, f->fn) : f->fn;
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
		char line[256];
		const char *fn = ttmon_run_frame_name(run, f, line, sizeof(line));

		if (i || fn == line)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? " < " : "", fn ?: base);
		else
			len += (size_t)snprintf(text, sizeof(text), "%s+0x%llx", f->fn ?: base,
						(unsigned long long)(f->fn ? f->delta : f->offset));
	}
	return ttmon_fmt_text(buf, n, text);
}
