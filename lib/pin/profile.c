// SPDX-License-Identifier: GPL-2.0-only
/*
 * profile.c: lookups in a profile. They may be made in any thread at any time, even in a signal
 * handler: they only read tables that do not change, and every index is checked against the size of
 * its table.
 */
#include "lib/pin/profile.h"

#include "lib/pin/profile_int.h"

/* Returns the exponent of the power of two at or above the size. */
static unsigned int size_class(uint64_t size)
{
	return size < 2 ? 0 : 64 - (unsigned int)__builtin_clzll(size - 1);
}

static uint64_t mix(const struct ttmon_profile *p, unsigned int way, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t h = ttmon_mix64(p->seed ^ a);

	h = ttmon_mix64(h + b * 0x9e3779b97f4a7c15ULL + way);
	return ttmon_mix64(h + c * 0xc2b2ae3d27d4eb4fULL);
}

bool ttmon_profile_way_key(const struct ttmon_profile *p, enum ttmon_profile_way way,
			   const struct ttmon_profile_key *key, uint32_t ordinal, uint64_t *ret)
{
	switch (way) {
	case TTMON_WAY_NAME_EXACT:
	case TTMON_WAY_NAME_SITE:
		if (!key->name)
			return false;
		*ret = mix(p, way, ttmon_fnv(TTMON_FNV_BASIS, key->name, strlen(key->name)), key->size,
			   way == TTMON_WAY_NAME_EXACT ? ordinal : 0);
		return true;
	case TTMON_WAY_EXACT:
	case TTMON_WAY_SITE:
		*ret = mix(p, way, key->exact, key->size, way == TTMON_WAY_EXACT ? ordinal : 0);
		return key->exact != 0;
	case TTMON_WAY_SITE_ANY:
		*ret = mix(p, way, key->exact, 0, 0);
		return key->exact != 0;
	case TTMON_WAY_NEAR:
		*ret = mix(p, way, key->near, size_class(key->size), 0);
		return key->near != 0;
	case TTMON_WAY_NEAR_ANY:
		*ret = mix(p, way, key->near, 0, 0);
		return key->near != 0;
	case TTMON_WAY_NAMES:
		*ret = mix(p, way, key->names, size_class(key->size), 0);
		return key->names != 0;
	case TTMON_WAY_LEAF:
		*ret = mix(p, way, key->leaf, size_class(key->size), 0);
		return key->leaf != 0;
	case TTMON_WAY_NAMES_ANY:
		*ret = mix(p, way, key->names, 0, 0);
		return key->names != 0;
	case TTMON_WAY_ORDER:
		*ret = mix(p, way, key->method, key->size, key->order);
		return !key->name && !key->names && key->method && key->order != TTMON_RUN_NONE;
	case TTMON_WAY_MAX:
		break;
	}
	return false;
}

uint64_t ttmon_profile_has_key(const struct ttmon_profile *p, uint64_t exact)
{
	return mix(p, TTMON_WAY_HAS, exact, 0, 0);
}

static uint32_t slot_of(const struct ttmon_profile *p, uint64_t key)
{
	for (size_t i = key & p->mask;; i = (i + 1) & p->mask)
		if (p->slots[i].entry == TTMON_RUN_NONE || p->slots[i].key == key)
			return p->slots[i].entry;
}

const struct ttmon_profile_entry *ttmon_profile_get(const struct ttmon_profile *p, uint64_t key)
{
	uint32_t at = slot_of(p, key);

	return at == TTMON_RUN_NONE ? NULL : &p->entries[at];
}

static void put_slot(struct ttmon_profile *p, uint64_t key, uint32_t entry)
{
	size_t i = key & p->mask;

	while (p->slots[i].entry != TTMON_RUN_NONE && p->slots[i].key != key)
		i = (i + 1) & p->mask;
	if (p->slots[i].entry == TTMON_RUN_NONE)
		p->slots[i] = (struct ttmon_profile_slot){ key, entry };
}

int ttmon_profile_make_slots(struct ttmon_profile *p, const uint64_t *keys)
{
	size_t cap = 16;

	while (cap < 2 * (p->nr_entries + p->nr_sites))
		cap *= 2;
	p->slots = malloc(cap * sizeof(*p->slots));
	if (!p->slots)
		return -ENOMEM;
	p->mask = cap - 1;
	for (size_t i = 0; i < cap; i++)
		p->slots[i] = (struct ttmon_profile_slot){ 0, TTMON_RUN_NONE };
	for (size_t i = 0; i < p->nr_entries; i++)
		put_slot(p, keys[i], (uint32_t)i);
	for (size_t i = 0; i < p->nr_sites; i++)
		if (p->sites[i].exact)
			put_slot(p, ttmon_profile_has_key(p, p->sites[i].exact), (uint32_t)i);
	return 0;
}

/* Returns the entry of this way of lookup, or NULL. */
static const struct ttmon_profile_entry *try(const struct ttmon_profile *p, const struct ttmon_profile_key *key,
					     unsigned int way)
{
	uint64_t k;

	/* If there is a name, the ordinal counts within the name. */
	if (way == TTMON_WAY_EXACT && key->name)
		return NULL;
	return ttmon_profile_way_key(p, way, key, key->ordinal, &k) ? ttmon_profile_get(p, k) : NULL;
}

/*
 * any_size: other sizes of the call site are used too; that gives a verdict, but does not claim that
 * the allocation is the same one.
 */
static const struct ttmon_profile_entry *find(const struct ttmon_profile *p, const struct ttmon_profile_key *key,
					      bool any_size, unsigned int *way)
{
	const struct ttmon_profile_entry *e = NULL;

	for (*way = 0; *way < TTMON_WAY_MAX; ++*way) {
		if (*way == TTMON_WAY_SITE_ANY && !any_size)
			continue;
		e = try(p, key, *way);
		if (e)
			break;
	}
	return e;
}

void ttmon_profile_lookup(const struct ttmon_profile *p, const struct ttmon_profile_key *key, struct ttmon_answer *ret)
{
	unsigned int way;
	const struct ttmon_profile_entry *e = find(p, key, true, &way);

	ret->verdict = e ? e->verdict : TTMON_VERDICT_UNKNOWN;
	ret->match = e ? e->match : TTMON_MATCH_NONE;
	ret->in_place = e ? e->in_place : 0;
	ret->alone = e ? e->alone : 0;
	ret->confidence = e ? e->confidence : 0;
	ret->runs = e ? e->runs : 0;
	ret->gain_ns = e ? e->gain_ns : 0;
	ret->h2d_bytes = e ? e->h2d_bytes : 0;
}

void ttmon_profile_find(const struct ttmon_profile *p, const struct ttmon_profile_key *key,
			struct ttmon_profile_found *ret)
{
	unsigned int way;
	const struct ttmon_profile_entry *e = find(p, key, false, &way), *wider;

	*ret = (struct ttmon_profile_found){ .run = TTMON_RUN_NONE, .alloc = TTMON_RUN_NONE };
	if (!e)
		return;
	ret->match = e->match;
	/*
	 * An entry that claims less than its way of lookup could must not hide a better entry of a lesser way.
	 */
	while (way < TTMON_WAY_MAX && (ttmon_profile_way_match(way) > e->match || way == TTMON_WAY_SITE_ANY))
		way++;
	wider = way < TTMON_WAY_MAX ? try(p, key, way) : NULL;
	e = wider ?: e;
	ret->candidates = e->nr;
	ret->members = p->members + e->member;
	if (e->nr == 1) {
		ret->run = ret->members->run;
		ret->alloc = ret->members->alloc;
	}
}

bool ttmon_profile_wants(const struct ttmon_run_alloc *a)
{
	return ttmon_run_is_host(a) && a->method != TTMON_METHOD_MMAP;
}

void ttmon_profile_key_of(const struct ttmon_run *run, const struct ttmon_run_alloc *a, uint32_t order,
			  struct ttmon_profile_key *ret)
{
	const struct ttmon_run_site *s = &run->sites[a->site];
	/* For other memory the name is what is mapped there. */
	const char *name = ttmon_run_has_tag(a) ? a->name : NULL;

	*ret = (struct ttmon_profile_key){
		.exact = s->exact,
		.names = s->names,
		.near = s->near,
		.leaf = s->leaf,
		.name = name,
		.size = a->size,
		.ordinal = name ? a->name_ordinal : a->ordinal,
		.order = order,
		.method = a->method,
	};
}

void ttmon_profile_get_totals(const struct ttmon_profile *p, struct ttmon_profile_totals *ret)
{
	*ret = p->totals;
}

bool ttmon_profile_has_site(const struct ttmon_profile *p, uint64_t exact)
{
	return exact && slot_of(p, ttmon_profile_has_key(p, exact)) != TTMON_RUN_NONE;
}

bool ttmon_profile_has_inner_part(const struct ttmon_profile *p, uint64_t exact)
{
	uint32_t at = exact ? slot_of(p, ttmon_profile_has_key(p, exact)) : TTMON_RUN_NONE;

	return at != TTMON_RUN_NONE && p->sites[at].by_depth;
}

size_t ttmon_profile_sites(const struct ttmon_profile *p)
{
	return p->nr_sites;
}

void ttmon_profile_get_site(const struct ttmon_profile *p, size_t i, struct ttmon_profile_site *ret)
{
	*ret = p->sites[i];
}

const struct ttmon_run_object *ttmon_profile_object(const struct ttmon_profile *p, uint32_t i)
{
	return i < p->nr_objects ? &p->objects[i] : NULL;
}

void ttmon_profile_free(struct ttmon_profile *p)
{
	if (!p)
		return;
	free(p->slots);
	free(p->entries);
	free(p->members);
	free(p->sites);
	free(p->frames);
	free(p->objects);
	free(p->text);
	free(p);
}
