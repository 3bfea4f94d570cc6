// SPDX-License-Identifier: GPL-2.0-only
/* profile_sites.c: the frames of all call sites of a profile, copied out of the runs, each site and object once. */
#include "lib/profile_int.h"

/* Space that is counted first and then filled: the second time round there is text to write to. */
struct copy {
	struct ttmon_profile *p;
	struct ttmon_hmap sites, objects, names; /* seen; names by address in the run */
	size_t nr_sites, nr_frames, nr_objects, text;
};

static void copy_fini(struct copy *c)
{
	ttmon_hmap_fini(&c->sites);
	ttmon_hmap_fini(&c->objects);
	ttmon_hmap_fini(&c->names);
}

/* Where a text of the runs is in p->text. TTMON_HMAP_NONE: no memory. */
static uint64_t put_text(struct copy *c, const char *s)
{
	uint64_t key = ttmon_mix64((uintptr_t)s), at = ttmon_hmap_get(&c->names, key);
	size_t n = strlen(s) + 1;

	if (at != TTMON_HMAP_NONE)
		return at;
	at = c->text;
	if (ttmon_hmap_put(&c->names, key, at) < 0)
		return TTMON_HMAP_NONE;
	if (c->p->text)
		memcpy(c->p->text + at, s, n);
	c->text += n;
	return at;
}

static int put_object(struct copy *c, const struct ttmon_run_object *o, uint32_t *ret)
{
	uint64_t path = put_text(c, o->path), key, at;

	if (path == TTMON_HMAP_NONE)
		return -ENOMEM;
	key = ttmon_site_hash_name(TTMON_SITE_HASH ^ c->p->seed, o->base);
	for (unsigned int i = 0; i < o->build_id_len; i++)
		key = ttmon_mix64(key ^ o->build_id[i]);
	at = ttmon_hmap_get(&c->objects, key);
	if (at == TTMON_HMAP_NONE) {
		at = c->nr_objects++;
		if (ttmon_hmap_put(&c->objects, key, at) < 0)
			return -ENOMEM;
		if (c->p->objects) {
			c->p->objects[at] = *o;
			c->p->objects[at].path = c->p->text + path;
			c->p->objects[at].base = c->p->text + path + (o->base - o->path);
		}
	}
	*ret = (uint32_t)at;
	return 0;
}

static int put_frame(struct copy *c, const struct ttmon_run *run, const struct ttmon_run_frame *f)
{
	struct ttmon_run_frame out = { .object = TTMON_RUN_NONE, .offset = f->offset, .delta = f->delta };
	uint64_t fn = f->fn ? put_text(c, f->fn) : 0;
	int err = 0;

	if (fn == TTMON_HMAP_NONE)
		return -ENOMEM;
	if (f->object != TTMON_RUN_NONE)
		err = put_object(c, &run->objects[f->object], &out.object);
	if (err)
		return err;
	if (c->p->frames) {
		out.fn = f->fn ? c->p->text + fn : NULL;
		c->p->frames[c->nr_frames] = out;
	}
	c->nr_frames++;
	return 0;
}

static int put_site(struct copy *c, const struct ttmon_run *run, const struct ttmon_run_site *s)
{
	uint64_t key = ttmon_mix64(s->exact ^ c->p->seed) ^ ttmon_mix64(s->names);
	uint32_t n = MIN(s->nframes, (uint32_t)TTMON_RUN_KEY_FRAMES);

	if ((!s->exact && !s->names) || ttmon_hmap_get(&c->sites, key) != TTMON_HMAP_NONE)
		return 0;
	if (ttmon_hmap_put(&c->sites, key, c->nr_sites) < 0)
		return -ENOMEM;
	if (c->p->sites)
		c->p->sites[c->nr_sites] = (struct ttmon_profile_site){
			.exact = s->exact, .names = s->names, .frames = c->p->frames + c->nr_frames, .nframes = n
		};
	c->nr_sites++;
	for (uint32_t i = 0; i < n; i++) {
		int err = put_frame(c, run, &run->frames[s->frame + i]);

		if (err)
			return err;
	}
	return 0;
}

static int put_all(struct copy *c, const struct ttmon_run *const *runs, size_t n)
{
	for (size_t r = 0; r < n; r++)
		for (size_t i = 0; i < runs[r]->nr_allocs; i++) {
			const struct ttmon_run_alloc *a = &runs[r]->allocs[i];
			int err = ttmon_profile_wants(a) ? put_site(c, runs[r], &runs[r]->sites[a->site]) : 0;

			if (err)
				return err;
		}
	return 0;
}

int ttmon_profile_copy_sites(struct ttmon_profile *p, const struct ttmon_run *const *runs, size_t n)
{
	_cleanup_(copy_fini) struct copy count = { .p = p }, fill = { .p = p };
	int err = put_all(&count, runs, n);

	if (err)
		return err;
	p->text = malloc(count.text + 1);
	p->sites = calloc(count.nr_sites + 1, sizeof(*p->sites));
	p->frames = calloc(count.nr_frames + 1, sizeof(*p->frames));
	p->objects = calloc(count.nr_objects + 1, sizeof(*p->objects));
	if (!p->text || !p->sites || !p->frames || !p->objects)
		return -ENOMEM;
	err = put_all(&fill, runs, n);
	p->nr_sites = fill.nr_sites;
	p->nr_objects = fill.nr_objects;
	return err;
}
