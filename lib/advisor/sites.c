// SPDX-License-Identifier: GPL-2.0-only
/*
 * sites.c: translates return addresses of this process to call sites of another run.
 *
 * The frames are the same that the tracer would have (daemon/core/history/sites.c): each is looked up
 * by the byte before the return address; frames outside any file, and leading frames in CUDA and
 * libttmon, are left out. Of those that are the program's own (lib/base/plumbing.h) the hashes of
 * lib/read/run.h are made:
 *
 *	exact	of build-ids and offsets
 *	names	of the functions' names: it survives a rebuild
 *	near	of the names and the places in the functions: it survives one that does not change them
 *	inner	exact, but for the innermost frame, of which only the function counts: an allocator
 *		looks up the advice at another place than it allocates
 *
 * inner is used only if, together with the size of the allocation, exactly one site of the runs has
 * it.
 */
#include <sys/random.h>

#include "lib/advisor/advisor_int.h"

#define SEEN_EMPTY 0u
#define SEEN_BUSY  1u
#define SEENS_MIN  (1u << 9) /* smallest number of sets */
#define SEENS_MAX  (1u << 15)

/* ---- what the runs know ---- */

static uint64_t inner_key(const struct ttmon_known *k, uint64_t inner, uint64_t size)
{
	return ttmon_mix64(inner ^ k->seed) ^ size;
}

static int mark(struct ttmon_hmap *m, uint64_t key, uint64_t bits)
{
	uint64_t was = ttmon_hmap_get(m, key);

	return ttmon_hmap_put(m, key, was == TTMON_HMAP_NONE ? bits : was | bits);
}

static int know_object(struct ttmon_known *k, const struct ttmon_run_object *o, bool inner)
{
	uint64_t bits = (o->cuda ? TTMON_BUILD_CUDA : 0) | (inner ? TTMON_BUILD_INNER : 0);
	int err = 0;

	if (o->build_id_len)
		err = mark(&k->builds, ttmon_hash_build(o->build_id, o->build_id_len) ^ k->seed, bits);
	if (!err && o->base)
		err = mark(&k->bases, ttmon_site_hash_name(TTMON_FNV_BASIS, o->base) ^ k->seed, bits);
	return err;
}

static uint64_t frame_hash(uint64_t hash, const struct ttmon_run_object *o, uint64_t offset)
{
	return ttmon_site_hash_frame(hash, o->build_id, o->build_id_len, offset);
}

static int know_frame(struct ttmon_known *k, const struct ttmon_run_object *o, const struct ttmon_run_frame *f,
		      bool inner)
{
	uint64_t frame = frame_hash(TTMON_FNV_BASIS, o, f->offset);
	int err = know_object(k, o, inner && f->fn);

	if (!err && frame)
		err = ttmon_hmap_put(&k->frames, frame ^ k->seed, (uint64_t)(uintptr_t)f);
	if (!err && f->fn)
		err = ttmon_hmap_put(&k->fns, ttmon_site_hash_name(TTMON_FNV_BASIS, f->fn) ^ k->seed,
				     (uint64_t)(uintptr_t)f->fn);
	return err;
}

int ttmon_known_init(struct ttmon_known *k, const struct ttmon_profile *profile)
{
	*k = (struct ttmon_known){ .profile = profile };
	if (getrandom(&k->seed, sizeof(k->seed), GRND_NONBLOCK) != (ssize_t)sizeof(k->seed))
		k->seed = ttmon_mix64((uint64_t)(uintptr_t)k);
	for (size_t i = 0; profile && i < ttmon_profile_sites(profile); i++) {
		struct ttmon_profile_site site;
		bool inner = true;

		ttmon_profile_get_site(profile, i, &site);
		for (uint32_t j = 0; j < site.nframes; j++) {
			const struct ttmon_run_frame *f = &site.frames[j];
			const struct ttmon_run_object *o =
				f->object == TTMON_RUN_NONE ? NULL : ttmon_profile_object(profile, f->object);

			if (o && know_frame(k, o, f, inner && !f->plumbing) < 0)
				return -ENOMEM;
			inner &= f->plumbing;
		}
	}
	return 0;
}

/* Returns the hash of a site by its innermost function; 0: that function has no name. */
static uint64_t inner_of(const struct ttmon_run *run, const struct ttmon_run_site *site)
{
	uint64_t hash = TTMON_FNV_BASIS;
	uint32_t own = 0;

	for (uint32_t i = 0; i < site->nframes && own < TTMON_RUN_KEY_FRAMES; i++) {
		const struct ttmon_run_frame *f = &run->frames[site->frame + i];

		if (f->plumbing)
			continue;
		/* Lines of Python are not seen here. */
		if (f->object >= run->nr_objects || run->objects[f->object].python ||
		    (!own && (!f->fn || f->delta > f->offset)))
			return 0;
		hash = frame_hash(hash, &run->objects[f->object], own ? f->offset : f->offset - f->delta);
		own++;
	}
	return own ? hash : 0;
}

/* If a second site has the same hash, it identifies neither. */
static int know_inner(struct ttmon_known *k, uint64_t inner, uint64_t size, uint64_t exact)
{
	uint64_t key = inner_key(k, inner, size), was = ttmon_hmap_get(&k->inner, key);

	if (was != TTMON_HMAP_NONE && was != exact)
		exact = 0;
	return ttmon_hmap_put(&k->inner, key, exact);
}

int ttmon_known_run(struct ttmon_known *k, const struct ttmon_run *run, struct ttmon_ordinals *ordinals)
{
	_cleanup_free_ uint64_t *inner = calloc(run->nr_sites ? run->nr_sites : 1, sizeof(*inner));
	int err = inner ? 0 : -ENOMEM;

	/* Objects that the runs left out of all sites. */
	for (size_t i = 0; i < run->nr_objects && !err; i++)
		err = run->objects[i].cuda ? know_object(k, &run->objects[i], false) : 0;
	for (size_t i = 0; i < run->nr_sites && !err; i++)
		inner[i] = inner_of(run, &run->sites[i]);
	for (size_t i = 0; i < run->nr_allocs && !err; i++) {
		const struct ttmon_run_alloc *a = &run->allocs[i];
		const struct ttmon_run_site *site = a->site < run->nr_sites ? &run->sites[a->site] : NULL;

		if (!ttmon_run_is_host(a) || a->method == TTMON_METHOD_MMAP)
			continue;
		if (site && site->exact) {
			err = ttmon_ordinals_add(ordinals, site->exact, a->size);
			if (!err && inner[a->site])
				err = know_inner(k, inner[a->site], a->size, site->exact);
		}
		if (!err && a->name)
			err = ttmon_ordinals_add(ordinals, ttmon_site_hash_name(TTMON_FNV_BASIS, a->name), a->size);
	}
	return err;
}

void ttmon_known_fini(struct ttmon_known *k)
{
	ttmon_plumbing_free(k->plumbing);
	ttmon_hmap_fini(&k->frames);
	ttmon_hmap_fini(&k->fns);
	ttmon_hmap_fini(&k->builds);
	ttmon_hmap_fini(&k->bases);
	ttmon_hmap_fini(&k->inner);
}

uint64_t ttmon_known_inner(const struct ttmon_known *k, uint64_t inner, uint64_t size)
{
	uint64_t exact = ttmon_hmap_get(&k->inner, inner_key(k, inner, size));

	return exact == TTMON_HMAP_NONE ? 0 : exact;
}

/* ---- a stack, translated ---- */

struct place {
	const struct ttmon_obj *obj;
	uint64_t offset;
};

/* The same selection as in daemon/core/history/sites.c. Returns the number of frames left. */
static unsigned int locate(const struct ttmon_objs *objs, const uint64_t *frames, unsigned int n, struct place *out)
{
	unsigned int known = 0, skip = 0;

	for (unsigned int i = 0; i < n; i++) {
		const struct ttmon_seg *seg = ttmon_objs_find(objs, frames[i] - 1);

		if (seg)
			out[known++] = (struct place){ &objs->objs[seg->obj], frames[i] + seg->to_file };
	}
	while (skip < known && out[skip].obj->left_out)
		skip++;
	memmove(out, out + skip, (known - skip) * sizeof(*out));
	return known - skip;
}

static uint64_t hash_place(uint64_t hash, const struct place *p, uint64_t offset)
{
	return ttmon_site_hash_frame(hash, p->obj->build_id, p->obj->build_id_len, offset);
}

/* What is known of a frame. */
struct known_frame {
	bool known; /* a run has it, or the file was read */
	bool plumbing;
	const char *name; /* NULL: it has none, or no run has this function */
	uint64_t delta;	  /* distance from the function's beginning; with a name */
};

static struct known_frame look_up(const struct ttmon_known *k, const struct place *p)
{
	uint64_t frame = hash_place(TTMON_FNV_BASIS, p, p->offset);
	uint64_t at = frame ? ttmon_hmap_get(&k->frames, frame ^ k->seed) : TTMON_HMAP_NONE;
	const struct ttmon_run_frame *r = (const struct ttmon_run_frame *)(uintptr_t)at;
	const struct ttmon_func *f;

	if (at != TTMON_HMAP_NONE)
		return (struct known_frame){ true, r->plumbing, r->fn, r->delta };
	if (!p->obj->funcs)
		return (struct known_frame){ false, p->obj->plumbing, NULL, 0 };
	f = ttmon_funcs_find(p->obj->funcs, p->offset);
	if (!f)
		return (struct known_frame){ true, p->obj->plumbing, NULL, 0 };
	return (struct known_frame){ f->name != NULL, f->plumbing, f->name, p->offset - f->start };
}

/* Returns the hash of the innermost frame's function; 0: not known. */
static uint64_t inner_begin(const struct place *p)
{
	const struct ttmon_func *f = p->obj->funcs ? ttmon_funcs_find(p->obj->funcs, p->offset) : NULL;

	return f ? hash_place(TTMON_FNV_BASIS, p, f->start) : 0;
}

/* The hashes so far, of `own` frames that are the program's own. */
struct hashes {
	uint64_t exact, part; /* part: `exact` of fewer frames that a run has as the innermost part of a stack */
	uint64_t names, near, leaf, inner;
	unsigned int own;
	bool named, names_on, near_on;
};

static void add_frame(const struct ttmon_known *k, const struct place *p, struct hashes *h)
{
	struct known_frame f = look_up(k, p);

	if (f.plumbing)
		return;
	h->exact = hash_place(h->exact, p, p->offset);
	if (ttmon_profile_has_inner_part(k->profile, h->exact))
		h->part = h->exact;
	h->inner = h->own ? hash_place(h->inner, p, p->offset) : inner_begin(p);
	h->names_on &= f.known;
	h->near_on &= f.name != NULL;
	if (!h->own && f.name)
		h->leaf = ttmon_site_hash_name(TTMON_FNV_BASIS, f.name);
	if (h->names_on)
		h->names = ttmon_site_hash_name(h->names, f.name ? f.name : p->obj->base);
	if (h->near_on)
		h->near = ttmon_site_hash_near(h->near, f.name, f.delta);
	h->named |= f.name != NULL;
	h->own++;
}

void ttmon_where_of(const struct ttmon_known *k, const struct ttmon_objs *objs, const uint64_t *frames, unsigned int n,
		    struct ttmon_where *ret)
{
	struct hashes h = { TTMON_FNV_BASIS, 0, TTMON_FNV_BASIS, TTMON_FNV_BASIS, 0, 0, 0, false, true, true };
	struct place at[TTMON_WALK_MAX];
	bool python = false;

	*ret = (struct ttmon_where){ 0 };
	n = locate(objs, frames, MIN(n, TTMON_WALK_MAX), at);
	for (unsigned int i = 0; i < n; i++) {
		python |= at[i].obj->interpreter;
		if (h.own < TTMON_RUN_KEY_FRAMES)
			add_frame(k, &at[i], &h);
	}
	if (!h.own)
		return;
	ret->exact = h.exact;
	ret->names = h.names_on && h.named ? h.names : 0;
	if (python) {
		/* The lines belong to the site, and are not seen here. */
		ret->exact = ttmon_site_hash_python(ret->exact);
		ret->names = ttmon_site_hash_python(ret->names);
		return;
	}
	ret->near = h.near_on ? h.near : 0;
	ret->leaf = h.leaf;
	if (ttmon_profile_has_site(k->profile, h.exact))
		return;
	ret->exact = h.part ? h.part : h.exact;
	ret->inner = h.part ? 0 : h.inner;
}

/* ---- stacks that were seen ---- */

int ttmon_seens_init(struct ttmon_seens *s, size_t sites)
{
	size_t n = SEENS_MIN;

	while (n < SEENS_MAX && n * TTMON_SEEN_WAYS < 4 * sites)
		n *= 2;
	s->sets = aligned_alloc(_Alignof(struct ttmon_advisor_seen), n * sizeof(*s->sets));
	if (!s->sets)
		return -ENOMEM;
	memset(s->sets, 0, n * sizeof(*s->sets));
	s->n = n;
	return 0;
}

void ttmon_seens_fini(struct ttmon_seens *s)
{
	free(s->sets);
	*s = (struct ttmon_seens){ 0 };
}

uint64_t ttmon_seen_key(const uint64_t *frames, unsigned int n, uint64_t gen)
{
	uint64_t hash = gen * 0x9e3779b97f4a7c15ULL + n;

	for (unsigned int i = 0; i < n; i++) {
		hash = (hash ^ frames[i]) * 0xff51afd7ed558ccdULL;
		hash ^= hash >> 32;
	}
	return hash > SEEN_BUSY ? hash : hash + 2;
}

bool ttmon_seens_get(const struct ttmon_seens *s, uint64_t key, struct ttmon_where *ret)
{
	struct ttmon_advisor_seen *set = &s->sets[key & (s->n - 1)];

	for (unsigned int i = 0; i < TTMON_SEEN_WAYS; i++) {
		if (atomic_load_explicit(&set->key[i], memory_order_acquire) != key)
			continue;
		ret->exact = atomic_load_explicit(&set->v[i].exact, memory_order_acquire);
		ret->names = atomic_load_explicit(&set->v[i].names, memory_order_acquire);
		ret->near = atomic_load_explicit(&set->v[i].near, memory_order_acquire);
		ret->leaf = atomic_load_explicit(&set->v[i].leaf, memory_order_acquire);
		ret->inner = atomic_load_explicit(&set->v[i].inner, memory_order_acquire);
		if (atomic_load_explicit(&set->key[i], memory_order_relaxed) == key)
			return true;
	}
	return false;
}

void ttmon_seens_put(struct ttmon_seens *s, uint64_t key, const struct ttmon_where *where)
{
	struct ttmon_advisor_seen *set = &s->sets[key & (s->n - 1)];
	unsigned int at = key >> 32 & (TTMON_SEEN_WAYS - 1);
	uint64_t was;

	for (unsigned int i = 0; i < TTMON_SEEN_WAYS; i++) {
		was = atomic_load_explicit(&set->key[i], memory_order_relaxed);
		if (was == key)
			return;
		if (was == SEEN_EMPTY) {
			at = i;
			break;
		}
	}
	was = atomic_load_explicit(&set->key[at], memory_order_relaxed);
	/* Another thread is writing here: this stack is computed again the next time. */
	if (was == SEEN_BUSY || !atomic_compare_exchange_strong(&set->key[at], &was, SEEN_BUSY))
		return;
	atomic_store_explicit(&set->v[at].exact, where->exact, memory_order_release);
	atomic_store_explicit(&set->v[at].names, where->names, memory_order_release);
	atomic_store_explicit(&set->v[at].near, where->near, memory_order_release);
	atomic_store_explicit(&set->v[at].leaf, where->leaf, memory_order_release);
	atomic_store_explicit(&set->v[at].inner, where->inner, memory_order_release);
	atomic_store_explicit(&set->key[at], key, memory_order_release);
}

/* ---- ordinals ---- */

static uint64_t ordinal_key(const struct ttmon_ordinals *o, uint64_t site, uint64_t size)
{
	return ttmon_mix64(site ^ o->seed) ^ size;
}

int ttmon_ordinals_add(struct ttmon_ordinals *o, uint64_t site, uint64_t size)
{
	uint64_t key = ordinal_key(o, site, size);

	return ttmon_hmap_get(&o->index, key) == TTMON_HMAP_NONE ? ttmon_hmap_put(&o->index, key, o->index.n) : 0;
}

uint32_t ttmon_ordinals_next(const struct ttmon_ordinals *o, uint64_t site, uint64_t size)
{
	uint64_t at = ttmon_hmap_get(&o->index, ordinal_key(o, site, size));

	if (at == TTMON_HMAP_NONE)
		return TTMON_RUN_NONE;
	return atomic_fetch_add_explicit(&o->count[at], 1, memory_order_relaxed);
}

void ttmon_ordinals_fini(struct ttmon_ordinals *o)
{
	ttmon_hmap_fini(&o->index);
	free(o->count);
	*o = (struct ttmon_ordinals){ 0 };
}
