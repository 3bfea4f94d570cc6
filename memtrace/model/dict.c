// SPDX-License-Identifier: GPL-2.0-only
/*
 * dict.c: a dictionary that grows. Texts lie in blocks that never move, each text once: the same few
 * names come with millions of launches.
 */
#include "lib/read/run.h"
#include "memtrace/model/mt.h"
#include "lib/base/hash.h"
#include "lib/base/util.h"

#define BLOCK (64u << 10)

struct block {
	struct block *next;
	size_t used;
	char text[];
};

struct ttmon_mt_words {
	struct block *blocks;
	const char **table; /* all texts by their hash; of a power of two, at most half full */
	size_t nr, cap;
	uint64_t seed;
};

static uint64_t hash(const struct ttmon_mt_words *w, const char *text, size_t n)
{
	uint64_t h = ttmon_fnv(w->seed, text, n);

	return h ^ h >> 32;
}

/* Where a text of n bytes is in the table, or is to be. */
static const char **find(const struct ttmon_mt_words *w, const char *text, size_t n)
{
	size_t i = hash(w, text, n) & (w->cap - 1);

	while (w->table[i] && (strncmp(w->table[i], text, n) != 0 || w->table[i][n]))
		i = (i + 1) & (w->cap - 1);
	return &w->table[i];
}

static int grow(struct ttmon_mt_words *w)
{
	struct ttmon_mt_words more = { .cap = w->cap ? w->cap * 2 : 64, .seed = w->seed };

	if (w->nr < w->cap / 2)
		return 0;
	more.table = calloc(more.cap, sizeof(*more.table));
	if (!more.table)
		return -ENOMEM;
	for (size_t i = 0; i < w->cap; i++)
		if (w->table[i])
			*find(&more, w->table[i], strlen(w->table[i])) = w->table[i];
	free((void *)w->table);
	w->table = more.table;
	w->cap = more.cap;
	return 0;
}

/*
 * ret: a copy of text, cut at TTMON_MT_MAX_TEXT, that lives as long as d; the one there is, if there
 * is one. NULL is "".
 */
static int keep(struct ttmon_mt_dictw *d, const char *text, const char **ret)
{
	struct ttmon_mt_words *w = d->words;
	const char **at;
	struct block *b;
	size_t n;

	if (!text || !*text) {
		*ret = "";
		return 0;
	}
	if (!w) {
		w = d->words = calloc(1, sizeof(*w));
		if (!w)
			return -ENOMEM;
		w->seed = ttmon_run_seed();
	}
	if (grow(w))
		return -ENOMEM;
	n = strnlen(text, TTMON_MT_MAX_TEXT);
	at = find(w, text, n);
	if (*at) {
		*ret = *at;
		return 0;
	}
	b = w->blocks;
	if (!b || BLOCK - b->used < n + 1) {
		b = malloc(sizeof(*b) + BLOCK);
		if (!b)
			return -ENOMEM;
		b->next = w->blocks;
		b->used = 0;
		w->blocks = b;
	}
	memcpy(b->text + b->used, text, n);
	b->text[b->used + n] = '\0';
	*ret = *at = b->text + b->used;
	b->used += n + 1;
	w->nr++;
	return 0;
}

/* Room for one more of nr things of the given size in *p. */
static int room(void **p, size_t *cap, size_t nr, size_t size, size_t max)
{
	size_t more;
	void *q;

	if (nr < *cap)
		return 0;
	if (nr >= max)
		return -E2BIG;
	more = *cap ? *cap * 2 : 64;
	q = reallocarray(*p, more, size);
	if (!q)
		return -ENOMEM;
	*p = q;
	*cap = more;
	return 0;
}

#define ROOM(d, field, max) \
	room((void **)&(d)->dict.field, &(d)->cap_##field, (d)->dict.nr_##field, sizeof(*(d)->dict.field), max)

int64_t ttmon_mt_dict_site(struct ttmon_mt_dictw *d, const struct ttmon_mt_site *site)
{
	struct ttmon_mt_site s = *site;
	int err = ROOM(d, sites, TTMON_MT_MAX_SITES);

	err = err ?: keep(d, site->kernel, &s.kernel);
	err = err ?: keep(d, site->opcode, &s.opcode);
	err = err ?: keep(d, site->file, &s.file);
	err = err ?: keep(d, site->module, &s.module);
	if (err)
		return err;
	d->dict.sites[d->dict.nr_sites] = s;
	return (int64_t)d->dict.nr_sites++;
}

int64_t ttmon_mt_dict_launch(struct ttmon_mt_dictw *d, const struct ttmon_mt_launch *launch)
{
	struct ttmon_mt_launch l = *launch;
	int err = ROOM(d, launches, TTMON_MT_MAX_LAUNCHES);

	err = err ?: keep(d, launch->kernel, &l.kernel);
	if (err)
		return err;
	d->dict.launches[d->dict.nr_launches] = l;
	return (int64_t)d->dict.nr_launches++;
}

int64_t ttmon_mt_dict_agg(struct ttmon_mt_dictw *d, const struct ttmon_mt_agg *agg)
{
	int err = ROOM(d, aggs, TTMON_MT_MAX_LAUNCHES);

	if (err)
		return err;
	d->dict.aggs[d->dict.nr_aggs] = *agg;
	return (int64_t)d->dict.nr_aggs++;
}

int64_t ttmon_mt_dict_touch(struct ttmon_mt_dictw *d, const struct ttmon_mt_touch *touch)
{
	int err = ROOM(d, touches, TTMON_MT_MAX_LAUNCHES);

	if (err)
		return err;
	d->dict.touches[d->dict.nr_touches] = *touch;
	return (int64_t)d->dict.nr_touches++;
}

int64_t ttmon_mt_dict_kernel(struct ttmon_mt_dictw *d, const struct ttmon_mt_kernel *kernel)
{
	struct ttmon_mt_kernel k = *kernel;
	int err = ROOM(d, kernels, TTMON_MT_MAX_SITES);

	err = err ?: keep(d, kernel->name, &k.name);
	err = err ?: keep(d, kernel->module, &k.module);
	err = err ?: keep(d, kernel->why, &k.why);
	if (err)
		return err;
	d->dict.kernels[d->dict.nr_kernels] = k;
	return (int64_t)d->dict.nr_kernels++;
}

void ttmon_mt_dict_fini(struct ttmon_mt_dictw *d)
{
	struct block *b, *next;

	free(d->dict.sites);
	free(d->dict.launches);
	free(d->dict.aggs);
	free(d->dict.touches);
	free(d->dict.kernels);
	for (b = d->words ? d->words->blocks : NULL; b; b = next) {
		next = b->next;
		free(b);
	}
	if (d->words)
		free((void *)d->words->table);
	free(d->words);
	memset(d, 0, sizeof(*d));
}
