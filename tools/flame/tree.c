// SPDX-License-Identifier: GPL-2.0-only
/* tree.c: call stacks as a tree of frames by their names. */
#include <inttypes.h>

#include "lib/base/fmt.h"
#include "lib/base/grow.h"
#include "lib/base/hash.h"
#include "lib/base/hmap.h"
#include "lib/demangle/demangle.h"
#include "tools/flame/flame.h"

struct ttmon_flame_maker {
	uint64_t seed;
	struct ttmon_hmap names, children;
	size_t cap_nodes, cap_names, cap_kinds;
};

int ttmon_flame_new(struct ttmon_flame **ret)
{
	_cleanup_(ttmon_flame_freep) struct ttmon_flame *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->maker = calloc(1, sizeof(*f->maker));
	if (!f->maker || TTMON_GROW(f->nodes, f->maker->cap_nodes, 1, 256))
		return -ENOMEM;
	f->maker->seed = ttmon_run_seed();
	f->nodes[f->nr_nodes++] = (struct ttmon_flame_node){ .name = UINT32_MAX };
	*ret = TAKE_PTR(f);
	return 0;
}

void ttmon_flame_free(struct ttmon_flame *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->nr_names; i++)
		free(f->names[i]);
	free(f->names);
	free(f->kinds);
	free(f->nodes);
	if (f->maker) {
		ttmon_hmap_fini(&f->maker->names);
		ttmon_hmap_fini(&f->maker->children);
	}
	free(f->maker);
	free(f);
}

static int name_of(struct ttmon_flame *f, const char *text, enum ttmon_flame_kind kind, uint32_t *ret)
{
	struct ttmon_flame_maker *m = f->maker;
	uint64_t key = ttmon_fnv(m->seed ^ kind, text, strlen(text)), at;

	/* If another text has this hash, the next number is tried. */
	for (; (at = ttmon_hmap_get(&m->names, key)) != TTMON_HMAP_NONE; key++) {
		if (f->kinds[at] == kind && !strcmp(f->names[at], text)) {
			*ret = (uint32_t)at;
			return 0;
		}
	}
	if (TTMON_GROW(f->names, m->cap_names, f->nr_names + 1, 256) ||
	    TTMON_GROW(f->kinds, m->cap_kinds, f->nr_names + 1, 256))
		return -ENOMEM;
	f->names[f->nr_names] = strdup(text);
	if (!f->names[f->nr_names] || ttmon_hmap_put(&m->names, key, f->nr_names)) {
		free(f->names[f->nr_names]);
		return -ENOMEM;
	}
	f->kinds[f->nr_names] = (uint8_t)kind;
	*ret = (uint32_t)f->nr_names++;
	return 0;
}

int ttmon_flame_child(struct ttmon_flame *f, uint32_t parent, const char *text, enum ttmon_flame_kind kind,
		      uint32_t *ret)
{
	struct ttmon_flame_maker *m = f->maker;
	uint64_t key, at;
	uint32_t name;

	if (name_of(f, text, kind, &name))
		return -ENOMEM;
	key = (uint64_t)parent << 32 | name;
	at = ttmon_hmap_get(&m->children, key);
	if (at == TTMON_HMAP_NONE) {
		at = f->nr_nodes;
		if (at == UINT32_MAX || TTMON_GROW(f->nodes, m->cap_nodes, at + 1, 256) ||
		    ttmon_hmap_put(&m->children, key, at))
			return -ENOMEM;
		f->nodes[f->nr_nodes++] = (struct ttmon_flame_node){ .parent = parent, .name = name };
	}
	*ret = (uint32_t)at;
	return 0;
}

static int add_frame(struct ttmon_flame *f, const struct ttmon_run *run, const struct ttmon_run_frame *frame,
		     uint32_t *node)
{
	const struct ttmon_run_object *o = frame->object == TTMON_RUN_NONE ? NULL : &run->objects[frame->object];
	char text[TTMON_DEMANGLE_NAME], line[TTMON_DEMANGLE_NAME], clean[TTMON_DEMANGLE_NAME];
	const char *name = ttmon_run_frame_name(run, frame, line, sizeof(line));
	bool python = name && name == line;

	if (!name) {
		snprintf(text, sizeof(text), "%s+0x%" PRIx64, o ? o->base : "?", frame->offset);
		name = text;
	}
	if (python || name == text)
		ttmon_fmt_text(clean, sizeof(clean), name);
	else
		ttmon_demangle(clean, sizeof(clean), name);
	return ttmon_flame_child(f, *node, clean, python ? TTMON_FLAME_PYTHON : TTMON_FLAME_NATIVE, node);
}

int ttmon_flame_site(struct ttmon_flame *f, const struct ttmon_run *run, uint32_t site, bool cut, uint32_t *ret)
{
	const struct ttmon_run_site *s = &run->sites[site];
	uint32_t node = 0;
	int err = 0;

	if (!s->nframes)
		return ttmon_flame_child(f, 0, "(call stack not known)", TTMON_FLAME_NOTE, ret);
	if (cut)
		err = ttmon_flame_child(f, 0, "(outer frames not known)", TTMON_FLAME_NOTE, &node);
	for (uint32_t i = s->nframes; i-- && !err;)
		err = add_frame(f, run, &run->frames[s->frame + i], &node);
	*ret = node;
	return err;
}
