// SPDX-License-Identifier: GPL-2.0-only
/*
 * sites.c: see sites.h. Hot thread; the only user is the history.
 *
 * A site's key is FNV-1a over the build-ids and file offsets of its frames, so that it is the same in
 * another process, under ASLR, and in another run of the same binaries. Two stacks with one key are
 * one site.
 */
#include "daemon/core/history/sites.h"

#include "lib/base/hash.h"

struct ttmon_stack {
	uint32_t nframes;
	uint32_t site; /* resolved site, */
	uint32_t gen;  /* valid for this generation of the maps */
	bool resolved; /* all frames were known then */
	bool made_do;  /* some were unknown, and were left out */
	uint64_t frames[];
};

static int stacks_room(struct ttmon_stacks *s)
{
	struct ttmon_stack **v;
	uint32_t cap;

	if (s->n >= TTMON_STACKS_MAX)
		return -ENOSPC;
	if (s->n < s->cap)
		return 0;
	cap = s->cap ? s->cap * 2 : 16;
	v = realloc(s->v, cap * sizeof(struct ttmon_stack *));
	if (!v)
		return -ENOMEM;
	s->v = v;
	s->cap = cap;
	return 0;
}

int ttmon_stacks_intern(struct ttmon_stacks *s, const uint64_t *frames, uint32_t n, uint32_t *ret)
{
	uint64_t hash = TTMON_FNV_BASIS, at;
	struct ttmon_stack *st;
	int err;

	for (uint32_t i = 0; i < n; i++)
		hash = ttmon_mix64(hash ^ frames[i]) + i;
	/* A hash taken by another stack: try the next number. */
	for (; (at = ttmon_hmap_get(&s->by_hash, hash)) != TTMON_HMAP_NONE; hash++) {
		st = s->v[at];
		if (st->nframes == n && !memcmp(st->frames, frames, n * sizeof(*frames))) {
			*ret = (uint32_t)at;
			return 0;
		}
	}
	err = stacks_room(s);
	if (err)
		return err;
	st = malloc(sizeof(*st) + n * sizeof(*frames));
	if (!st)
		return -ENOMEM;
	*st = (struct ttmon_stack){ .nframes = n };
	memcpy(st->frames, frames, n * sizeof(*frames));
	if (ttmon_hmap_put(&s->by_hash, hash, s->n) < 0) {
		free(st);
		return -ENOMEM;
	}
	*ret = s->n;
	s->v[s->n++] = st;
	return 0;
}

void ttmon_stacks_fini(struct ttmon_stacks *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		free(s->v[i]);
	free(s->v);
	ttmon_hmap_fini(&s->by_hash);
	*s = (struct ttmon_stacks){ 0 };
}

int ttmon_sites_init(struct ttmon_sites *s)
{
	*s = (struct ttmon_sites){ .cap = 64 };
	s->v = calloc(s->cap, sizeof(*s->v));
	if (!s->v)
		return -ENOMEM;
	s->n = 1;
	return 0;
}

/* Finds object and offset of each frame; false if one is in no known mapping. */
static bool locate(const struct ttmon_symtab *symtab, const struct ttmon_site_query *q, const struct ttmon_stack *st,
		   struct ttmon_frame *out)
{
	bool all = true;

	for (uint32_t i = 0; i < st->nframes; i++) {
		uint64_t addr = st->frames[i];

		if (addr & TTMON_FRAME_PYTHON && ttmon_symtab_get_object(symtab, TTMON_FRAME_OBJECT(addr))) {
			out[i] = (struct ttmon_frame){ TTMON_FRAME_OBJECT(addr), TTMON_FRAME_LINE(addr) };
			continue;
		}
		/* A return address may be the first byte after the code it belongs to. */
		const struct ttmon_xmap *x = ttmon_maps_find(q->maps, addr - 1, q->ts_ns, q->execs, q->nr_execs);

		if (x && ttmon_symtab_get_object(symtab, x->object))
			out[i] = (struct ttmon_frame){ x->object, addr - x->start + x->pgoff };
		else
			out[i] = (struct ttmon_frame){ 0, addr };
		all &= out[i].object != 0;
	}
	return all;
}

/*
 * Leaves out frames in no object (unless all are) and then the leading frames inside CUDA. Returns how
 * many are left.
 */
static uint32_t reduce(const struct ttmon_symtab *symtab, struct ttmon_frame *f, uint32_t n)
{
	uint32_t known = 0, skip = 0;

	for (uint32_t i = 0; i < n; i++)
		if (f[i].object)
			f[known++] = f[i];
	if (!known)
		return n;
	while (skip < known && ttmon_symtab_get_object(symtab, f[skip].object)->flags & TTMON_OBJ_CUDA)
		skip++;
	memmove(f, f + skip, (known - skip) * sizeof(*f));
	return known - skip;
}

static uint64_t site_key(const struct ttmon_symtab *symtab, const struct ttmon_frame *f, uint32_t n)
{
	uint64_t key = TTMON_FNV_BASIS;

	for (uint32_t i = 0; i < n; i++) {
		const struct ttmon_object *o = ttmon_symtab_get_object(symtab, f[i].object);

		if (o && o->build_id_len) {
			key = ttmon_fnv(key, o->build_id, o->build_id_len);
		} else if (o) {
			const char *slash = strrchr(o->path, '/');
			const char *base = slash ? slash + 1 : o->path;

			key = ttmon_fnv(key, base, strlen(base));
		}
		key = ttmon_fnv_u64(key, f[i].offset);
	}
	return key;
}

static int find_site(struct ttmon_sites *s, struct ttmon_symtab *symtab, const struct ttmon_frame *f, uint32_t n,
		     bool refuse, uint32_t *ret)
{
	uint64_t key = site_key(symtab, f, n), at = ttmon_hmap_get(&s->by_key, key);
	_cleanup_free_ struct ttmon_frame *frames = NULL;

	if (at != TTMON_HMAP_NONE) {
		*ret = (uint32_t)at;
		return 0;
	}
	if (s->n >= TTMON_SITES_MAX)
		return -ENOSPC;
	if (refuse)
		return -EDQUOT;
	if (s->n == s->cap) {
		struct ttmon_site *v = realloc(s->v, 2 * s->cap * sizeof(*v));

		if (!v)
			return -ENOMEM;
		s->v = v;
		s->cap *= 2;
	}
	frames = malloc(n * sizeof(*f));
	if (!frames || ttmon_hmap_put(&s->by_key, key, s->n) < 0)
		return -ENOMEM;
	memcpy(frames, f, n * sizeof(*f));
	s->v[s->n] = (struct ttmon_site){ .key = key, .nframes = n, .frames = TAKE_PTR(frames) };
	*ret = s->n++;
	for (uint32_t i = 0; i < n; i++) {
		int err = ttmon_symtab_want(symtab, &f[i]);

		/* A frame without a requested name is shown as object and offset. */
		if (err)
			break;
	}
	return 0;
}

int ttmon_sites_resolve(struct ttmon_sites *s, struct ttmon_symtab *symtab, const struct ttmon_site_query *q,
			uint32_t *ret)
{
	struct ttmon_stack *st = q->stacks->v[q->stack];
	struct ttmon_frame frames[TTMON_MAX_FRAMES];
	uint32_t n;
	bool all;
	int err;

	if ((st->resolved || (st->made_do && q->as_before)) && st->gen == q->maps->gen && !q->maps->ended) {
		*ret = st->site;
		return 0;
	}
	all = locate(symtab, q, st, frames);
	if (!all && !q->final)
		return -EAGAIN;
	n = reduce(symtab, frames, st->nframes);
	if (!n) {
		st->site = 0;
	} else {
		err = find_site(s, symtab, frames, n, q->refuse, &st->site);
		if (err)
			return err;
	}
	st->resolved = all;
	st->made_do = !all;
	st->gen = q->maps->gen;
	*ret = st->site;
	return 0;
}

void ttmon_sites_fini(struct ttmon_sites *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		free(s->v[i].frames);
	free(s->v);
	ttmon_hmap_fini(&s->by_key);
	*s = (struct ttmon_sites){ 0 };
}
