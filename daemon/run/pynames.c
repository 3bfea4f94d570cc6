// SPDX-License-Identifier: GPL-2.0-only
/*
 * pynames.c: see pynames.h.
 *
 * Functions and lines stay for the run, as all facts about objects do: 131,072 functions, 1,048,576
 * lines. What comes after that is not known.
 */
#include "daemon/run/pynames.h"

#include "daemon/io/host/facts.h"
#include "daemon/io/probes/discover.h"
#include "daemon/run/daemon.h"
#include "lib/base/hash.h"
#include "lib/base/hmap.h"
#include "lib/os/clock.h"

#define FNS_MAX	  (1u << 17)
#define LINES_MAX (1u << 20)
#define UNKNOWN	  "<unknown>"

struct fn {
	uint32_t object;
	uint64_t code;
	char *file, *name;
};

struct ttmon_pynames {
	struct ttmon_daemon *c;
	struct fn *v;
	uint32_t n;
	struct ttmon_hmap by_name; /* place in v, by a hash of file, name and code */
	struct ttmon_hmap lines;   /* frames whose SYMBOL is in the stream */
	struct {
		uint32_t at; /* place in v + 1 */
		uint32_t firstlineno;
	} of_number[TTMON_UNWINDER_FNS];
	bool said;
};

int ttmon_pynames_new(struct ttmon_daemon *c, struct ttmon_pynames **ret)
{
	struct ttmon_pynames *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->v = calloc(FNS_MAX, sizeof(*p->v));
	if (!p->v) {
		free(p);
		return -ENOMEM;
	}
	p->c = c;
	*ret = p;
	return 0;
}

void ttmon_pynames_free(struct ttmon_pynames *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < p->n; i++) {
		free(p->v[i].file);
		free(p->v[i].name);
	}
	free(p->v);
	ttmon_hmap_fini(&p->by_name);
	ttmon_hmap_fini(&p->lines);
	free(p);
}

static uint64_t hash_of(const char *file, const char *name, uint64_t code)
{
	uint64_t h = ttmon_fnv(TTMON_FNV_BASIS, file, strlen(file) + 1);

	return ttmon_fnv_u64(ttmon_fnv(h, name, strlen(name)), code);
}

static void tell_object(struct ttmon_pynames *p, struct fn *f)
{
	uint64_t h = hash_of(f->file, f->name, f->code);
	uint8_t id[TTMON_PY_ID];

	for (size_t i = 0; i < sizeof(id); i++)
		id[i] = (uint8_t)(h >> (8 * i));
	f->object = ttmon_discover_number(ttmon_daemon_discover(p->c));
	ttmon_fact_object(
		ttmon_daemon_fact, p->c,
		&(struct ttmon_object){
			.id = f->object, .flags = TTMON_OBJ_PYTHON, .build_id_len = sizeof(id), .path = f->file },
		id, 0, 0);
}

/* Place in v; FNS_MAX: there is no room. A hash that is taken by another one: the next is tried. */
static uint32_t place_of(struct ttmon_pynames *p, const char *file, const char *name, uint64_t code)
{
	uint64_t h = hash_of(file, name, code), at;
	struct fn *f;

	for (; (at = ttmon_hmap_get(&p->by_name, h)) != TTMON_HMAP_NONE; h++)
		if (p->v[at].code == code && !strcmp(p->v[at].file, file) && !strcmp(p->v[at].name, name))
			return (uint32_t)at;
	if (p->n == FNS_MAX)
		return FNS_MAX;
	f = &p->v[p->n];
	f->code = code;
	f->file = strdup(file);
	f->name = strdup(name);
	if (!f->file || !f->name || ttmon_hmap_put(&p->by_name, h, p->n) < 0) {
		free(f->file);
		free(f->name);
		*f = (struct fn){ 0 };
		return FNS_MAX;
	}
	tell_object(p, f);
	return p->n++;
}

void ttmon_pynames_add(struct ttmon_pynames *p, const struct ttmon_unwinder_fn *fn)
{
	uint32_t at = place_of(p, fn->file, fn->name, fn->code);

	if (!fn->no)
		memset(p->of_number, 0, sizeof(p->of_number));
	p->of_number[fn->no].at = at == FNS_MAX ? 0 : at + 1;
	p->of_number[fn->no].firstlineno = fn->firstlineno;
	if (at == FNS_MAX && !p->said)
		log_warn("there are more than %u functions of Python: new ones are not known from now on", FNS_MAX);
	p->said |= at == FNS_MAX;
}

uint64_t ttmon_pynames_frame(struct ttmon_pynames *p, uint64_t frame, bool *known)
{
	uint32_t number = TTMON_FRAME_OBJECT(frame), line = (uint32_t)TTMON_FRAME_LINE(frame);
	uint32_t at = number < TTMON_UNWINDER_FNS ? p->of_number[number].at : 0;
	uint32_t first = at ? p->of_number[number].firstlineno : 0;
	const struct fn *f;

	*known = at != 0;
	at = at ? at - 1 : place_of(p, UNKNOWN, UNKNOWN, 0);
	if (at == FNS_MAX)
		return TTMON_FRAME_PYTHON;
	f = &p->v[at];
	line = *known ? line : 0;
	frame = TTMON_FRAME_PYTHON | (uint64_t)f->object << TTMON_FRAME_OBJECT_SHIFT | line;
	if (ttmon_hmap_get(&p->lines, frame) != TTMON_HMAP_NONE)
		return frame;
	if (p->lines.n >= LINES_MAX || ttmon_hmap_put(&p->lines, frame, 1) < 0)
		return frame;
	ttmon_fact_symbol(ttmon_daemon_fact, p->c, ttmon_mono_ns(), f->object, line, f->name,
			  line > first && first ? line - first : 0);
	return frame;
}
