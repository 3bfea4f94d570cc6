// SPDX-License-Identifier: GPL-2.0-only
/*
 * symtab.c: see symtab.h. Facts are untrusted input: ids and offsets are checked, and both tables are
 * bounded.
 */
#include "daemon/core/history/symtab.h"
#include "lib/base/grow.h"

#define OFFSET_BITS 44
#define ASKED	    (TTMON_HMAP_NONE - 1)

void ttmon_symtab_init(struct ttmon_symtab *t)
{
	*t = (struct ttmon_symtab){ .nr_objects = 1, .wanted = { .elem = sizeof(struct ttmon_frame) } };
}

static bool frame_key(uint32_t object, uint64_t offset, uint64_t *key)
{
	if (object == 0 || object >= TTMON_OBJECTS_MAX || offset >> OFFSET_BITS)
		return false;
	*key = (uint64_t)object << OFFSET_BITS | offset;
	return true;
}

static char *copy_text(const char *text, uint32_t len)
{
	uint32_t n = (uint32_t)strnlen(text, len);
	char *s = malloc(n + 1);

	if (s) {
		memcpy(s, text, n);
		s[n] = '\0';
	}
	return s;
}

static int grow_objects(struct ttmon_symtab *t, uint32_t need)
{
	uint32_t cap = MAX(need, t->cap_objects ? t->cap_objects * 2 : 64);
	struct ttmon_object *v;

	if (need <= t->cap_objects)
		return 0;
	v = realloc(t->objects, cap * sizeof(*v));
	if (!v)
		return -ENOMEM;
	memset(v + t->cap_objects, 0, (cap - t->cap_objects) * sizeof(*v));
	t->objects = v;
	t->cap_objects = cap;
	return 0;
}

int ttmon_symtab_object(struct ttmon_symtab *t, const struct ttmon_ev_object *ev)
{
	struct ttmon_object *o;
	char *path;
	int err;

	/* The daemon numbers objects consecutively; a large jump does not come from it. */
	if (ev->id == 0 || ev->id >= TTMON_OBJECTS_MAX || ev->id > t->nr_objects + 65536)
		return -EINVAL;
	err = grow_objects(t, ev->id + 1);
	if (err)
		return err;
	path = copy_text(ev->path, ev->len);
	if (!path)
		return -ENOMEM;
	o = &t->objects[ev->id];
	free(o->path);
	o->id = ev->id;
	o->flags = ev->flags;
	memcpy(o->build_id, ev->build_id, sizeof(o->build_id));
	o->build_id_len = MIN(ev->build_id_len, TTMON_BUILD_ID);
	o->path = path;
	t->nr_objects = MAX(t->nr_objects, ev->id + 1);
	return 0;
}

const struct ttmon_object *ttmon_symtab_get_object(const struct ttmon_symtab *t, uint32_t id)
{
	return id && id < t->cap_objects && t->objects[id].id ? &t->objects[id] : NULL;
}

int ttmon_symtab_symbol(struct ttmon_symtab *t, const struct ttmon_ev_symbol *ev)
{
	_cleanup_free_ char *name = NULL;
	uint64_t key, at;

	if (!frame_key(ev->object, ev->offset, &key))
		return -EINVAL;
	at = ttmon_hmap_get(&t->by_frame, key);
	if (at == TTMON_HMAP_NONE || at == ASKED) {
		if (t->nr_symbols >= TTMON_SYMBOLS_MAX)
			return -ENOSPC;
		if (TTMON_GROW(t->symbols, t->cap_symbols, t->nr_symbols + 1, 64))
			return -ENOMEM;
		at = t->nr_symbols;
	}
	if (ev->len) {
		name = copy_text(ev->name, ev->len);
		if (!name)
			return -ENOMEM;
	}
	if (at == t->nr_symbols) {
		if (ttmon_hmap_put(&t->by_frame, key, at) < 0)
			return -ENOMEM;
		t->symbols[t->nr_symbols++] = (struct ttmon_symbol){ 0 };
	}
	free(t->symbols[at].name);
	t->symbols[at] = (struct ttmon_symbol){ TAKE_PTR(name), ev->delta };
	return 0;
}

const char *ttmon_symtab_get_symbol(const struct ttmon_symtab *t, const struct ttmon_frame *f, uint64_t *delta)
{
	uint64_t key, at;

	if (!frame_key(f->object, f->offset, &key))
		return NULL;
	at = ttmon_hmap_get(&t->by_frame, key);
	if (at >= t->nr_symbols || !t->symbols[at].name)
		return NULL;
	*delta = t->symbols[at].delta;
	return t->symbols[at].name;
}

int ttmon_symtab_want(struct ttmon_symtab *t, const struct ttmon_frame *f)
{
	uint64_t key;

	if (!frame_key(f->object, f->offset, &key) || ttmon_hmap_get(&t->by_frame, key) != TTMON_HMAP_NONE)
		return 0;
	if (t->by_frame.n >= TTMON_SYMBOLS_MAX)
		return -ENOSPC;
	if (ttmon_hmap_put(&t->by_frame, key, ASKED) < 0)
		return -ENOMEM;
	if (ttmon_fifo_push(&t->wanted, f) < 0) {
		ttmon_hmap_del(&t->by_frame, key);
		return -ENOMEM;
	}
	return 0;
}

void ttmon_symtab_fini(struct ttmon_symtab *t)
{
	for (uint32_t i = 0; i < t->nr_objects && t->objects; i++)
		free(t->objects[i].path);
	free(t->objects);
	for (uint32_t i = 0; i < t->nr_symbols; i++)
		free(t->symbols[i].name);
	free(t->symbols);
	ttmon_hmap_fini(&t->by_frame);
	ttmon_fifo_fini(&t->wanted);
	*t = (struct ttmon_symtab){ 0 };
}
