// SPDX-License-Identifier: GPL-2.0-only
/*
 * progs.c: see progs.h. Hot thread.
 *
 * The kernels of a program are reported one by one, the first with number 0, and may be reported again
 * later. Each name is compared with the text so far: where it matches, nothing changes; where the text
 * ends, it grows; where it differs, the id now means another program with a new text. A text that
 * several ids share is kept once.
 */
#include "daemon/core/dispatch/progs.h"

#include "daemon/core/dispatch/dispatch_int.h"
#include "lib/base/search.h"
#include "lib/base/grow.h"
#include "lib/base/hash.h"
#include "lib/base/hmap.h"

#define TEXT_MAX  512 /* with the NUL */
#define MAX_TEXTS 16384
#define MAX_NAMES 65536
#define NO_TEXT	  UINT32_MAX
#define SEPARATOR ", "

/* The kernels that an id of a process stands for. */
struct named {
	uint64_t key; /* process, program */
	uint32_t text;
	uint32_t told; /* bytes of the text that the current reports have matched so far */
};

struct extra {
	uint64_t key; /* device, program */
	uint32_t proc;
	uint32_t text;
};

/* serial: increases from one text to the next, never reused. */
struct text {
	char *s;
	uint32_t serial;
};

struct ttmon_disp_progs {
	uint32_t max;
	struct ttmon_tt_program *v;
	struct extra *x; /* parallel to v */
	size_t n, cap;
	struct ttmon_hmap by_key; /* newest entry */

	struct named *named;
	size_t nr_named, cap_named;
	struct ttmon_hmap by_name;

	struct text *texts;
	uint32_t serial;
	size_t nr_texts, cap_texts;
	struct ttmon_hmap by_text; /* by hash of the text */
};

static uint64_t make_key(uint32_t a, uint32_t b)
{
	return (uint64_t)a << 32 | b;
}

int ttmon_disp_progs_new(uint32_t max, struct ttmon_disp_progs **ret)
{
	struct ttmon_disp_progs *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->max = max;
	*ret = p;
	return 0;
}

void ttmon_disp_progs_free(struct ttmon_disp_progs *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->nr_texts; i++)
		free(p->texts[i].s);
	free(p->texts);
	free(p->named);
	free(p->v);
	free(p->x);
	ttmon_hmap_fini(&p->by_key);
	ttmon_hmap_fini(&p->by_name);
	ttmon_hmap_fini(&p->by_text);
	free(p);
}

/* ---- texts ---- */

static int intern(struct ttmon_disp_progs *p, const char *text, uint32_t *ret)
{
	uint64_t hash = ttmon_fnv(TTMON_FNV_BASIS, text, strlen(text)), idx;
	char *copy;
	int err;

	while ((idx = ttmon_hmap_get(&p->by_text, hash)) != TTMON_HMAP_NONE) {
		if (strcmp(p->texts[idx].s, text) == 0) {
			*ret = (uint32_t)idx;
			return 0;
		}
		hash++;
	}
	if (p->nr_texts == MAX_TEXTS)
		return -ENOSPC;
	err = TTMON_GROW(p->texts, p->cap_texts, p->nr_texts + 1, 16);
	if (err)
		return err;
	copy = malloc(strlen(text) + 1);
	if (!copy)
		return -ENOMEM;
	strcpy(copy, text);
	err = ttmon_hmap_put(&p->by_text, hash, p->nr_texts);
	if (err) {
		free(copy);
		return err;
	}
	*ret = (uint32_t)p->nr_texts;
	p->texts[p->nr_texts++] = (struct text){ copy, ++p->serial };
	return 0;
}

/* True if text begins with these len bytes, as whole names. */
static bool begins(const char *text, const char *with, size_t len)
{
	return strncmp(text, with, len) == 0 && (text[len] == 0 || strncmp(text + len, SEPARATOR, 2) == 0);
}

static int named_get(struct ttmon_disp_progs *p, uint64_t key, struct named **ret)
{
	uint64_t idx = ttmon_hmap_get(&p->by_name, key);
	int err;

	if (idx == TTMON_HMAP_NONE) {
		if (p->nr_named == MAX_NAMES)
			return -ENOSPC;
		err = TTMON_GROW(p->named, p->cap_named, p->nr_named + 1, 16);
		if (!err)
			err = ttmon_hmap_put(&p->by_name, key, p->nr_named);
		if (err)
			return err;
		idx = p->nr_named++;
		p->named[idx] = (struct named){ .key = key, .text = NO_TEXT };
	}
	*ret = &p->named[idx];
	return 0;
}

int ttmon_disp_progs_kernel(struct ttmon_disp_progs *p, uint32_t proc, const struct ttmon_ev_tt_kernel *ev)
{
	char text[TEXT_MAX];
	struct named *n;
	size_t len = 0, more;
	uint32_t idx;
	int err;

	if (!ev->program || !ev->name[0])
		return 0;
	err = named_get(p, make_key(proc, ev->program), &n);
	if (err)
		return err;
	if (ev->nth > 0) {
		/* The kernels before it were lost. */
		if (n->text == NO_TEXT)
			return 0;
		len = n->told;
		memcpy(text, p->texts[n->text].s, len);
		memcpy(text + len, SEPARATOR, 2);
		len += 2;
	}
	more = strnlen(ev->name, sizeof(ev->name));
	if (len + more + 2 >= sizeof(text))
		return 0;
	memcpy(text + len, ev->name, more);
	len += more;
	text[len] = 0;
	if (n->text == NO_TEXT || !begins(p->texts[n->text].s, text, len)) {
		err = intern(p, text, &idx);
		n->text = err ? NO_TEXT : idx;
		n->told = 0;
		if (err)
			return err;
	}
	n->told = (uint32_t)len;
	return 0;
}

const char *ttmon_disp_progs_kernels(const struct ttmon_disp_progs *p, uint32_t kernels)
{
	size_t from = 0, to = p->nr_texts;

	from = TTMON_SEARCH(from, to, mid, p->texts[mid].serial < kernels);
	return from < p->nr_texts && p->texts[from].serial == kernels ? p->texts[from].s : NULL;
}

static uint32_t text_of(const struct ttmon_disp_progs *p, uint32_t proc, uint32_t program)
{
	uint64_t idx = ttmon_hmap_get(&p->by_name, make_key(proc, program));

	return idx == TTMON_HMAP_NONE ? NO_TEXT : p->named[idx].text;
}

/* ---- programs ---- */

static int entry_new(struct ttmon_disp_progs *p, const struct extra *x, const struct ttmon_tt_run *run,
		     uint32_t program, size_t *ret)
{
	size_t cap = p->cap;
	int err = TTMON_GROW(p->v, cap, p->n + 1, 16);

	cap = p->cap;
	if (!err)
		err = TTMON_GROW(p->x, cap, p->n + 1, 16);
	if (err)
		return err;
	p->cap = cap;
	err = ttmon_hmap_put(&p->by_key, x->key, p->n);
	if (err)
		return err;
	p->v[p->n] = (struct ttmon_tt_program){
		.tgid = run->tgid,
		.logical = run->logical,
		.program = program,
		.min_ns = UINT64_MAX,
		.first_ns = run->start_ns,
	};
	p->x[p->n] = *x;
	*ret = p->n++;
	return 0;
}

/* The entry that a run belongs to. */
static int entry_get(struct ttmon_disp_progs *p, uint32_t proc, uint32_t clock, const struct ttmon_tt_run *run,
		     size_t *ret)
{
	struct extra x = {
		.key = make_key(clock, run->program),
		.proc = proc,
		.text = text_of(p, proc, run->program),
	};
	uint64_t idx = ttmon_hmap_get(&p->by_key, x.key);

	if (idx != TTMON_HMAP_NONE) {
		uint32_t had = p->x[idx].text;

		if (had == NO_TEXT || x.text == NO_TEXT || had == x.text ||
		    begins(p->texts[x.text].s, p->texts[had].s, strlen(p->texts[had].s))) {
			if (x.text != NO_TEXT)
				p->x[idx].text = x.text;
			*ret = idx;
			return 0;
		}
	}
	if (p->n < p->max)
		return entry_new(p, &x, run, run->program, ret);
	x.key = make_key(clock, 0);
	x.text = NO_TEXT;
	idx = ttmon_hmap_get(&p->by_key, x.key);
	if (idx == TTMON_HMAP_NONE)
		return entry_new(p, &x, run, 0, ret);
	*ret = idx;
	return 0;
}

int ttmon_disp_progs_run(struct ttmon_disp_progs *p, uint32_t proc, uint32_t clock, struct ttmon_tt_run *run)
{
	uint64_t ns = run->end_ns - run->start_ns;
	uint32_t text = text_of(p, proc, run->program);
	struct ttmon_tt_program *v;
	size_t i;
	int err = entry_get(p, proc, clock, run, &i);

	run->kernels = text == NO_TEXT ? 0 : p->texts[text].serial;
	if (err)
		return err;
	v = &p->v[i];
	v->runs++;
	v->busy_ns += ns;
	v->min_ns = MIN(v->min_ns, ns);
	v->max_ns = MAX(v->max_ns, ns);
	v->chip = run->chip ? run->chip : v->chip;
	if (ttmon_before(run->start_ns, v->first_ns))
		v->first_ns = run->start_ns;
	if (v->runs == 1 || ttmon_before(v->last_ns, run->end_ns))
		v->last_ns = run->end_ns;
	return 0;
}

/* The caller knows that the key is in the map. */
static void move_to(struct ttmon_hmap *m, uint64_t key, uint64_t idx)
{
	m->v[ttmon_hmap_slot(m, key)].val = idx;
}

static void keep_text(struct ttmon_disp_progs *p, uint32_t at, uint32_t to)
{
	uint64_t hash = ttmon_fnv(TTMON_FNV_BASIS, p->texts[at].s, strlen(p->texts[at].s));

	p->texts[to] = p->texts[at];
	while (ttmon_hmap_get(&p->by_text, hash) != TTMON_HMAP_NONE)
		hash++;
	/* Out of memory: the same text may be kept twice, which does no other harm. */
	(void)!ttmon_hmap_put(&p->by_text, hash, to);
}

/*
 * Removes texts that no id uses any more; otherwise a service would some day have no room for new
 * ones.
 */
static void drop_texts(struct ttmon_disp_progs *p)
{
	_cleanup_free_ uint32_t *to = calloc(p->nr_texts + 1, sizeof(*to));
	uint32_t k = 0;

	if (!to)
		return;
	for (size_t i = 0; i < p->n; i++)
		if (p->x[i].text != NO_TEXT)
			to[p->x[i].text] = 1;
	for (size_t i = 0; i < p->nr_named; i++)
		if (p->named[i].text != NO_TEXT)
			to[p->named[i].text] = 1;
	ttmon_hmap_fini(&p->by_text);
	for (uint32_t i = 0; i < p->nr_texts; i++) {
		if (!to[i]) {
			free(p->texts[i].s);
			continue;
		}
		keep_text(p, i, k);
		to[i] = k++;
	}
	p->nr_texts = k;
	for (size_t i = 0; i < p->n; i++)
		if (p->x[i].text != NO_TEXT)
			p->x[i].text = to[p->x[i].text];
	for (size_t i = 0; i < p->nr_named; i++)
		if (p->named[i].text != NO_TEXT)
			p->named[i].text = to[p->named[i].text];
}

void ttmon_disp_progs_drop(struct ttmon_disp_progs *p, bool (*gone)(void *ctx, uint32_t proc), void *ctx)
{
	size_t k = 0;

	for (size_t i = 0; i < p->n; i++) {
		bool newest = ttmon_hmap_get(&p->by_key, p->x[i].key) == i;

		if (gone(ctx, p->x[i].proc)) {
			if (newest)
				ttmon_hmap_del(&p->by_key, p->x[i].key);
			continue;
		}
		if (newest)
			move_to(&p->by_key, p->x[i].key, k);
		p->v[k] = p->v[i];
		p->x[k++] = p->x[i];
	}
	p->n = k;
	k = 0;
	for (size_t i = 0; i < p->nr_named; i++) {
		struct named n = p->named[i];

		if (gone(ctx, (uint32_t)(n.key >> 32))) {
			ttmon_hmap_del(&p->by_name, n.key);
			continue;
		}
		move_to(&p->by_name, n.key, k);
		p->named[k++] = n;
	}
	p->nr_named = k;
	if (p->nr_texts > MAX_TEXTS / 2)
		drop_texts(p);
}

size_t ttmon_disp_progs_view(const struct ttmon_disp_progs *p, const struct ttmon_tt_program **ret)
{
	for (size_t i = 0; i < p->n; i++)
		p->v[i].kernels = p->x[i].text == NO_TEXT ? NULL : p->texts[p->x[i].text].s;
	*ret = p->v;
	return p->n;
}
