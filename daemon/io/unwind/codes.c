// SPDX-License-Identifier: GPL-2.0-only
/*
 * codes.c: see unwinder.h. In the unwinding process.
 *
 * Memory: at most 16,384 code objects with 32 KiB of line table each, of which those that were not
 * used lately make room, and 64 MiB of tables; 32,768 functions.
 */
#include <sys/random.h>

#include "daemon/io/unwind/unwinder.h"
#include "lib/base/hash.h"
#include "lib/base/hmap.h"
#include "lib/unwind/python.h"

#define CODES_MAX   16384u
#define LINES_BYTES (64u << 20) /* bytes of all line tables */

struct code {
	uint64_t key, code, print;
	uint32_t tgid, firstlineno;
	uint32_t fn; /* number; TTMON_UNWINDER_NO_FN: nothing is here */
	uint32_t nlines;
	bool cut;    /* the table has more */
	bool hidden; /* no frame of the program's */
	bool used;   /* since the hand of the clock was here */
	uint8_t *lines;
};

static struct {
	struct code v[CODES_MAX];
	uint32_t n, hand;
	size_t bytes;
	struct ttmon_hmap by_key;
	uint32_t nr_fns;
	struct ttmon_hmap fns; /* number by hash of file, name, code and first line */
	uint64_t seed;
} codes;

static uint64_t key_of(uint32_t tgid, uint64_t code, uint64_t print)
{
	uint64_t key = ttmon_mix64(code ^ ttmon_mix64(print ^ ttmon_mix64(tgid)));

	return key == TTMON_HMAP_NONE ? 0 : key;
}

static struct code *find(uint32_t tgid, uint64_t code, uint64_t print)
{
	uint64_t at = ttmon_hmap_get(&codes.by_key, key_of(tgid, code, print));
	struct code *c = at == TTMON_HMAP_NONE ? NULL : &codes.v[at];

	return c && c->tgid == tgid && c->code == code && c->print == print ? c : NULL;
}

static void drop(struct code *c)
{
	if (!c->lines)
		return;
	ttmon_hmap_del(&codes.by_key, c->key);
	codes.bytes -= c->nlines;
	free(c->lines);
	*c = (struct code){ .fn = TTMON_UNWINDER_NO_FN };
}

/* The next one that was not used in the last turn of the clock's hand makes room. */
static struct code *room(uint32_t nlines)
{
	struct code *c = NULL;

	if (codes.n < CODES_MAX && codes.bytes + nlines <= LINES_BYTES)
		return &codes.v[codes.n++];
	for (uint32_t i = 0; i < 2 * CODES_MAX && (!c || c->lines || codes.bytes + nlines > LINES_BYTES); i++) {
		c = &codes.v[codes.hand];
		codes.hand = (codes.hand + 1) % MAX(codes.n, 1u);
		if (!c->used)
			drop(c);
		c->used = false;
	}
	return c && !c->lines && codes.bytes + nlines <= LINES_BYTES ? c : NULL;
}

static void start_anew(void)
{
	for (uint32_t i = 0; i < codes.n; i++)
		drop(&codes.v[i]);
	ttmon_hmap_fini(&codes.fns);
	codes.fns = (struct ttmon_hmap){ 0 };
	codes.n = codes.hand = codes.nr_fns = 0;
}

/* Two names of one hash of 64 bits, which no program can choose, would be one. */
static uint32_t fn_of(const struct ttmon_unwinder_fn *names, ttmon_codes_tell_fn tell)
{
	struct ttmon_unwinder_fn fn = *names;
	uint64_t h, no;

	if (!codes.seed && getrandom(&codes.seed, sizeof(codes.seed), GRND_NONBLOCK) != sizeof(codes.seed))
		return TTMON_UNWINDER_NO_FN;
	h = TTMON_FNV_BASIS ^ codes.seed;
	h = ttmon_fnv(h, names->file, strlen(names->file) + 1);
	h = ttmon_fnv_u64(ttmon_fnv_u64(h, names->code), names->firstlineno);
	h = ttmon_mix64(ttmon_fnv(h, names->name, strlen(names->name)) ^ codes.seed);
	no = ttmon_hmap_get(&codes.fns, h);
	if (no != TTMON_HMAP_NONE)
		return (uint32_t)no;
	if (codes.nr_fns == TTMON_UNWINDER_FNS)
		start_anew();
	if (ttmon_hmap_put(&codes.fns, h, codes.nr_fns) < 0)
		return TTMON_UNWINDER_NO_FN;
	fn.no = codes.nr_fns++;
	tell(&fn);
	return fn.no;
}

void ttmon_codes_take(const struct ttmon_py_code *c, size_t size, ttmon_codes_tell_fn tell)
{
	struct ttmon_unwinder_fn names = { .tgid = c->tgid };
	struct code *to;
	uint32_t fn;

	if (size < sizeof(*c) || c->nlines > size - sizeof(*c) || find(c->tgid, c->code, c->print) ||
	    !ttmon_py_text(&c->file, c->file_text, sizeof(c->file_text), names.file, sizeof(names.file)) ||
	    !ttmon_py_text(&c->name, c->name_text, sizeof(c->name_text), names.name, sizeof(names.name)))
		return;
	names.code = ttmon_fnv_u64(ttmon_fnv(TTMON_FNV_BASIS, c->lines, c->nlines), c->nlines);
	names.firstlineno = c->firstlineno;
	fn = fn_of(&names, tell);
	to = fn == TTMON_UNWINDER_NO_FN ? NULL : room(c->nlines);
	if (!to)
		return;
	to->lines = malloc(c->nlines + 1);
	to->key = key_of(c->tgid, c->code, c->print);
	if (!to->lines || ttmon_hmap_put(&codes.by_key, to->key, (uint64_t)(to - codes.v)) < 0) {
		free(to->lines);
		to->lines = NULL;
		return;
	}
	memcpy(to->lines, c->lines, c->nlines);
	to->code = c->code;
	to->print = c->print;
	to->tgid = c->tgid;
	to->firstlineno = c->firstlineno;
	to->fn = fn;
	to->nlines = c->nlines;
	to->cut = c->cut;
	/* What 3.12 and 3.13 put below a class's __init__(): sys._getframe() leaves it out too. */
	to->hidden = !strcmp(names.file, "__init__") && !strcmp(names.name, "__init__");
	to->used = true;
	codes.bytes += c->nlines;
}

uint64_t ttmon_codes_line(uint32_t tgid, const struct ttmon_py_frame *f, bool *known)
{
	struct code *c = f->print ? find(tgid, f->code, f->print) : NULL;
	uint32_t line;

	*known = false;
	if (!c)
		return TTMON_FRAME_PYTHON | (uint64_t)TTMON_UNWINDER_NO_FN << TTMON_FRAME_OBJECT_SHIFT;
	c->used = true;
	line = ttmon_py_line(c->lines, c->nlines, c->firstlineno, f->off);
	*known = line || !c->cut;
	if (c->hidden && !line)
		return 0;
	return TTMON_FRAME_PYTHON | (uint64_t)c->fn << TTMON_FRAME_OBJECT_SHIFT | line;
}
