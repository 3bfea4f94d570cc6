// SPDX-License-Identifier: GPL-2.0-only
/* run_head.c: the members of a database around its allocations: capture, losses, objects, processes, call sites, checkpoints. */
#include <stdarg.h>

#include "lib/profile.h"
#include "lib/run_int.h"

#define MAX_PROCS   (1u << 20)
#define MAX_OBJECTS (1u << 20)

/* n elements of size bytes, zeroed; one even for n 0, so that NULL means out of memory alone. */
static void *table(size_t n, size_t size)
{
	return calloc(n ? n : 1, size);
}

uint64_t ttmon_run_time(const json_t *obj, const char *key, uint64_t def)
{
	return MIN(ttmon_db_get(obj, key, def), TTMON_RUN_MAX_TIME);
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static int text(struct ttmon_run_load *l, const json_t *obj, const char *key, const char *def, const char **ret)
{
	const char *s = ttmon_db_str(obj, key, def);

	return s ? ttmon_run_intern(l->run, s, ret) : 0;
}

static int read_reasons(struct ttmon_run_load *l, const json_t *c)
{
	const json_t *list = json_object_get(c, "reasons");
	char buf[256] = "";
	size_t len = 0;

	for (size_t i = 0; i < json_array_size(list) && len < sizeof(buf); i++) {
		const char *s = json_string_value(json_array_get(list, i));

		if (s)
			len += (size_t)snprintf(buf + len, sizeof(buf) - len, "%s%s", len ? ", " : "", s);
	}
	return ttmon_run_intern(l->run, buf, &l->run->reasons);
}

static int read_completeness(struct ttmon_run_load *l)
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
	run->events_dropped = ttmon_db_get(c, "events_dropped", 0);
	return read_reasons(l, c);
}

static int read_capture(struct ttmon_run_load *l)
{
	const json_t *c = ttmon_db_member(l->db, "capture"), *clock = ttmon_db_member(l->db, "clock");
	struct ttmon_run *run = l->run;
	uint64_t mono = ttmon_run_time(clock, "mono_ns", 0), real = ttmon_run_time(clock, "real_ns", 0);
	int err;

	run->start_ns = ttmon_run_time(c, "start_ns", 0);
	run->end_ns = MAX(run->start_ns, ttmon_run_time(c, "end_ns", run->start_ns));
	if (mono && real && real + run->start_ns > mono)
		run->real_ns = real + run->start_ns - mono;
	err = text(l, ttmon_db_member(l->db, "host"), "hostname", "", &run->hostname);
	if (err)
		return err;
	return ttmon_run_intern(run, json_string_value(ttmon_db_member(l->db, "ttmond")) ?: "", &run->ttmond);
}

static unsigned int digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	return c >= 'a' && c <= 'f' ? (unsigned int)(c - 'a') + 10 : 16;
}

/* Anything that is not whole bytes in hexadecimal is no build-id. */
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

static int read_objects(struct ttmon_run_load *l)
{
	const json_t *list = ttmon_db_member(l->db, "objects");
	struct ttmon_run *run = l->run;
	size_t n = json_array_size(list);

	if (n > MAX_OBJECTS)
		return ttmon_run_fail(l, -E2BIG, "more than %u objects", MAX_OBJECTS);
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
		run->nr_objects = i + 1;
		if (ttmon_db_u64(row, "id", &id) && id && ttmon_hmap_put(&l->objects, ttmon_run_hash(run, id), i) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int read_procs(struct ttmon_run_load *l)
{
	const json_t *list = ttmon_db_member(l->db, "processes");
	struct ttmon_run *run = l->run;
	size_t n = json_array_size(list);

	if (n > MAX_PROCS)
		return ttmon_run_fail(l, -E2BIG, "more than %u processes", MAX_PROCS);
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
		p->start_ns = ttmon_run_time(row, "start_ns", 0);
		p->first_ns = ttmon_run_time(row, "first_ns", 0);
		p->last_ns = MAX(p->first_ns, ttmon_run_time(row, "last_ns", 0));
		p->numbered = ttmon_db_get(row, "launches_numbered", 0);
		run->nr_procs = i + 1;
	}
	return 0;
}

/* "function+0x12". Operators have a + of their own: the last one counts. */
static int read_symbol(struct ttmon_run_load *l, const char *symbol, struct ttmon_run_frame *f)
{
	const char *plus = symbol ? strrchr(symbol, '+') : NULL;
	char name[512];
	char *end;

	if (!plus || plus == symbol)
		return symbol && *symbol ? ttmon_run_intern(l->run, symbol, &f->fn) : 0;
	errno = 0;
	f->delta = strtoull(plus + 1, &end, 0);
	if (errno || *end || end == plus + 1) {
		f->delta = 0;
		return ttmon_run_intern(l->run, symbol, &f->fn);
	}
	if ((size_t)(plus - symbol) < sizeof(name)) {
		memcpy(name, symbol, (size_t)(plus - symbol));
		name[plus - symbol] = '\0';
		return ttmon_run_intern(l->run, name, &f->fn);
	}
	/* Too long for the stack: templates can be. */
	_cleanup_free_ char *copy = strndup(symbol, (size_t)(plus - symbol));

	return copy ? ttmon_run_intern(l->run, copy, &f->fn) : -ENOMEM;
}

static bool is_main(const char *fn)
{
	return fn && (!strcmp(fn, "main") || !strcmp(fn, "__libc_start_main") || !strcmp(fn, "_start"));
}

static int read_frames(struct ttmon_run_load *l, const json_t *list, struct ttmon_run_site *s)
{
	struct ttmon_run *run = l->run;
	uint64_t exact = TTMON_SITE_HASH, names = TTMON_SITE_HASH;
	bool named = false;

	for (uint32_t i = 0; i < s->nframes; i++) {
		const json_t *row = json_array_get(list, i);
		struct ttmon_run_frame *f = &run->frames[s->frame + i];
		const struct ttmon_run_object *o = NULL;
		uint64_t id = 0, at = TTMON_HMAP_NONE;
		int err = read_symbol(l, json_string_value(json_array_get(row, 2)), f);

		if (err)
			return err;
		ttmon_db_value(json_array_get(row, 1), &f->offset);
		if (ttmon_db_value(json_array_get(row, 0), &id) && id)
			at = ttmon_hmap_get(&l->objects, ttmon_run_hash(run, id));
		f->object = at < run->nr_objects ? (uint32_t)at : TTMON_RUN_NONE;
		if (f->object != TTMON_RUN_NONE)
			o = &run->objects[f->object];
		s->in_main |= is_main(f->fn);
		if (i >= TTMON_RUN_KEY_FRAMES)
			continue;
		exact = ttmon_site_hash_frame(exact, o ? o->build_id : NULL, o ? o->build_id_len : 0,
					      o ? o->base : NULL, f->offset);
		names = ttmon_site_hash_name(names, f->fn ? f->fn : o ? o->base : "?");
		named |= f->fn != NULL;
	}
	s->cut = s->nframes > TTMON_RUN_KEY_FRAMES;
	s->exact = s->nframes ? exact : 0;
	s->names = named ? names : 0;
	if (s->nframes && run->frames[s->frame].fn)
		s->leaf = ttmon_site_hash_name(TTMON_SITE_HASH, run->frames[s->frame].fn);
	return 0;
}

/* Deeper frames than those that make the key can differ: the file tells such sites apart, and who has the key alone does not. */
static int find_shared(struct ttmon_run_load *l)
{
	_cleanup_(ttmon_hmap_fini) struct ttmon_hmap seen = { 0 };
	struct ttmon_run *run = l->run;

	l->shared = table(run->nr_sites, sizeof(*l->shared));
	if (!l->shared)
		return -ENOMEM;
	for (size_t i = 0; i < run->nr_sites; i++) {
		uint64_t at;

		if (!run->sites[i].exact)
			continue;
		at = ttmon_hmap_get(&seen, ttmon_run_hash(run, run->sites[i].exact));
		if (at != TTMON_HMAP_NONE)
			l->shared[at] = l->shared[i] = true;
		else if (ttmon_hmap_put(&seen, ttmon_run_hash(run, run->sites[i].exact), i) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int count_frames(struct ttmon_run_load *l, const json_t *list)
{
	size_t n = json_array_size(list), total = 0;

	if (n > TTMON_RUN_MAX_SITES)
		return ttmon_run_fail(l, -E2BIG, "more than %u call sites", TTMON_RUN_MAX_SITES);
	for (size_t i = 0; i < n; i++) {
		size_t frames = json_array_size(json_object_get(json_array_get(list, i), "frames"));

		if (frames > TTMON_RUN_MAX_FRAMES)
			return ttmon_run_fail(l, -E2BIG, "call site %zu has more than %d frames", i,
					      TTMON_RUN_MAX_FRAMES);
		total += frames;
	}
	l->run->nr_frames = total;
	l->run->nr_sites = n ? n : 1;
	return 0;
}

static int read_sites(struct ttmon_run_load *l)
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
			return ttmon_run_fail(l, -EBADMSG, "call site %zu: its id is not its place in the list", i);
		s->key = ttmon_db_get(row, "key", 0);
		s->frame = frame;
		s->nframes = (uint32_t)json_array_size(frames);
		frame += s->nframes;
		err = read_frames(l, frames, s);
		if (err)
			return err;
	}
	return find_shared(l);
}

/* The last process of a pid is the one that counts. */
static int index_pids(const struct ttmon_run *run, struct ttmon_hmap *pids)
{
	for (size_t p = 0; p < run->nr_procs; p++)
		if (ttmon_hmap_put(pids, ttmon_run_hash(run, run->procs[p].pid), p) < 0)
			return -ENOMEM;
	return 0;
}

static int read_gaps(struct ttmon_run_load *l)
{
	_cleanup_(ttmon_hmap_fini) struct ttmon_hmap pids = { 0 };
	const json_t *list = json_object_get(ttmon_db_member(l->db, "completeness"), "blind");
	struct ttmon_run *run = l->run;

	run->gaps = table(json_array_size(list), sizeof(*run->gaps));
	if (!run->gaps || index_pids(run, &pids))
		return -ENOMEM;
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *row = json_array_get(list, i);
		struct ttmon_run_gap *g = &run->gaps[run->nr_gaps];
		uint64_t us = ttmon_db_get(row, "window_us", 0), pid = ttmon_db_get(row, "pid", 0), at;
		uint64_t ns = us > TTMON_RUN_MAX_TIME / 1000 ? TTMON_RUN_MAX_TIME : us * 1000;
		const char *base = "?";
		char what[160];
		int err;

		if (!us || json_is_true(json_object_get(row, "held")))
			continue;
		at = ttmon_hmap_get(&l->objects, ttmon_run_hash(run, ttmon_db_get(row, "object", 0)));
		if (at < run->nr_objects)
			base = run->objects[at].base;
		g->to_ns = run->start_ns;
		at = ttmon_hmap_get(&pids, ttmon_run_hash(run, pid));
		if (at < run->nr_procs)
			g->to_ns = MIN(MAX(run->procs[at].first_ns, run->start_ns), run->end_ns);
		g->from_ns = MAX(run->start_ns, g->to_ns > ns ? g->to_ns - ns : 0);
		snprintf(what, sizeof(what), "blind window of %s", base);
		err = ttmon_run_intern(run, what, &g->what);
		if (err)
			return err;
		run->nr_gaps++;
	}
	return 0;
}

static int by_when(const void *pa, const void *pb)
{
	const struct ttmon_run_checkpoint *a = pa, *b = pb;

	return (a->ts_ns > b->ts_ns) - (a->ts_ns < b->ts_ns);
}

static int read_checkpoints(struct ttmon_run_load *l)
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

		if (!ttmon_db_checkpoint(json_array_get(list, i), &c) || c.process >= run->nr_procs)
			return ttmon_run_fail(l, -EBADMSG, "checkpoint %zu is none, or its process is out of range", i);
		out->ts_ns = MIN(c.ts_ns, TTMON_RUN_MAX_TIME);
		out->proc = c.process;
		err = ttmon_run_intern(run, c.label, &out->label);
		if (err)
			return err;
		run->nr_checkpoints = i + 1;
	}
	qsort(run->checkpoints, run->nr_checkpoints, sizeof(*run->checkpoints), by_when);
	return 0;
}

int ttmon_run_head(struct ttmon_run_load *l)
{
	int err = read_capture(l);

	err = err ? err : read_completeness(l);
	err = err ? err : read_objects(l);
	err = err ? err : read_procs(l);
	err = err ? err : read_sites(l);
	return err || !ttmon_db_member(l->db, "checkpoints") ? err : read_checkpoints(l);
}

int ttmon_run_tail(struct ttmon_run_load *l)
{
	int err = read_gaps(l);

	return err || l->run->checkpoints ? err : read_checkpoints(l);
}
