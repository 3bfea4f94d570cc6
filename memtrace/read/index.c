// SPDX-License-Identifier: GPL-2.0-only
/*
 * index.c: two hash tables over the dictionary, with the last finds before them, since traces say the
 * same again and again; and the inference of masks.
 */
#include "lib/read/run.h"
#include "memtrace/read/index.h"
#include "lib/base/grow.h"
#include "lib/base/util.h"

#define NONE	UINT32_MAX
#define HOT	512 /* sites */
#define FAR	(4ull << 30)
#define WINDOW	(16ull << 20) /* offsets in shared memory are below, global addresses are not */
#define LOWEST	(64ull << 10) /* no global memory is below */
#define HIGHEST (1ull << 57)

struct table {
	uint32_t *slots; /* indexes; NONE: free */
	size_t nr, mask;
};

struct hot {
	uint32_t kernel, site;
	uint32_t len;
	uint8_t operand;
	uint64_t pc;
	char op[TTMON_MT_MAX_OP];
};

struct ttmon_mt_index {
	struct ttmon_mt_dictw *dict;
	struct ttmon_mt_stats *stats;
	uint64_t seed;
	struct table sites, launches, kernels;
	/* Kernels are numbered by their names: of each launch, and of each site with its operand. */
	const char **names;
	size_t nr_names, cap_names;
	uint32_t *of_launch, *of_site;
	size_t cap_of_launch, cap_of_site;
	uint8_t *operand;
	size_t cap_operand;
	uint32_t last; /* launch */
	struct hot hot[HOT];
};

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * 0x9e3779b97f4a7c15;
	return h ^ (h >> 29);
}

static uint64_t hash_text(uint64_t h, const char *p, size_t n)
{
	uint64_t v;

	for (; n >= 8; p += 8, n -= 8) {
		memcpy(&v, p, 8);
		h = mix(h, v);
	}
	v = n;
	for (size_t i = 0; i < n; i++)
		v = v << 8 | (uint8_t)p[i];
	return mix(h, v);
}

int ttmon_mt_index_new(struct ttmon_mt_dictw *dict, struct ttmon_mt_stats *stats, struct ttmon_mt_index **ret)
{
	struct ttmon_mt_index *ix = calloc(1, sizeof(*ix));

	if (!ix)
		return -ENOMEM;
	ix->dict = dict;
	ix->stats = stats;
	ix->seed = ttmon_run_seed();
	ix->last = NONE;
	for (size_t i = 0; i < HOT; i++)
		ix->hot[i].site = NONE;
	*ret = ix;
	return 0;
}

void ttmon_mt_index_free(struct ttmon_mt_index *ix)
{
	if (!ix)
		return;
	free(ix->sites.slots);
	free(ix->launches.slots);
	free(ix->kernels.slots);
	free(ix->names);
	free(ix->of_launch);
	free(ix->of_site);
	free(ix->operand);
	free(ix);
}

static uint64_t hash_launch(const struct ttmon_mt_index *ix, uint64_t ctx, uint64_t id)
{
	return mix(mix(ix->seed, ctx), id);
}

static uint64_t hash_site(const struct ttmon_mt_index *ix, uint32_t kernel, unsigned int operand, uint64_t pc,
			  const char *op, size_t len)
{
	return hash_text(mix(mix(ix->seed, (uint64_t)kernel << 1 | operand), pc), op, len);
}

static uint64_t hash_of(const struct ttmon_mt_index *ix, const struct table *t, uint32_t i)
{
	const struct ttmon_mt_dict *d = &ix->dict->dict;

	if (t == &ix->launches)
		return hash_launch(ix, d->launches[i].ctx, d->launches[i].id);
	if (t == &ix->sites)
		return hash_site(ix, ix->of_site[i], ix->operand[i], d->sites[i].pc, d->sites[i].opcode,
				 strlen(d->sites[i].opcode));
	return hash_text(ix->seed, ix->names[i], strlen(ix->names[i]));
}

/* Room for one more: at most half of the slots are taken. */
static int table_room(const struct ttmon_mt_index *ix, struct table *t)
{
	size_t n = t->slots ? (t->mask + 1) * 2 : 256;
	uint32_t *slots;

	if (t->slots && t->nr * 2 < t->mask + 1)
		return 0;
	slots = malloc(n * sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	memset(slots, 0xff, n * sizeof(*slots));
	for (size_t i = 0; t->slots && i <= t->mask; i++) {
		if (t->slots[i] == NONE)
			continue;
		for (size_t k = hash_of(ix, t, t->slots[i]) & (n - 1);; k = (k + 1) & (n - 1)) {
			if (slots[k] != NONE)
				continue;
			slots[k] = t->slots[i];
			break;
		}
	}
	free(t->slots);
	t->slots = slots;
	t->mask = n - 1;
	return 0;
}

/* The slot of a launch, or the free one it would have; NULL: there are no slots. */
static uint32_t *find_launch(const struct ttmon_mt_index *ix, uint64_t ctx, uint64_t id)
{
	const struct table *t = &ix->launches;

	if (!t->slots)
		return NULL;
	for (size_t k = hash_launch(ix, ctx, id) & t->mask;; k = (k + 1) & t->mask) {
		const struct ttmon_mt_launch *l = t->slots[k] == NONE ? NULL : &ix->dict->dict.launches[t->slots[k]];

		if (!l || (l->id == id && l->ctx == ctx))
			return &t->slots[k];
	}
}

/* The number of a kernel; name must live as long as the dictionary. */
static int64_t kernel_of(struct ttmon_mt_index *ix, const char *name)
{
	struct table *t = &ix->kernels;
	size_t k;
	int err = table_room(ix, t) ?: TTMON_GROW(ix->names, ix->cap_names, ix->nr_names + 1, 64);

	if (err)
		return err;
	for (k = hash_text(ix->seed, name, strlen(name)) & t->mask; t->slots[k] != NONE; k = (k + 1) & t->mask)
		if (!strcmp(ix->names[t->slots[k]], name))
			return t->slots[k];
	t->slots[k] = (uint32_t)ix->nr_names;
	t->nr++;
	ix->names[ix->nr_names] = name;
	return (int64_t)ix->nr_names++;
}

/* A launch at the end of the dictionary. */
static int64_t append(struct ttmon_mt_index *ix, const struct ttmon_mt_launch *launch)
{
	int64_t i = ttmon_mt_dict_launch(ix->dict, launch), kernel;
	int err;

	if (i < 0)
		return i;
	err = TTMON_GROW(ix->of_launch, ix->cap_of_launch, (size_t)i + 1, 64);
	if (err)
		return err;
	kernel = kernel_of(ix, ix->dict->dict.launches[i].kernel);
	if (kernel < 0)
		return kernel;
	ix->of_launch[i] = (uint32_t)kernel;
	return i;
}

int64_t ttmon_mt_index_add(struct ttmon_mt_index *ix, const struct ttmon_mt_launch *launch)
{
	int err = table_room(ix, &ix->launches);
	uint32_t *slot, old;
	int64_t i;

	if (err)
		return err;
	slot = find_launch(ix, launch->ctx, launch->id);
	old = *slot;
	i = append(ix, launch);
	if (i < 0)
		return i;
	if (old != NONE && ix->dict->dict.launches[old].flags & TTMON_MT_LAUNCH_MADE_UP) {
		/* Its records have its index: it takes what the new one is, which goes. */
		ix->dict->dict.launches[old] = ix->dict->dict.launches[i];
		ix->of_launch[old] = ix->of_launch[i];
		ix->dict->dict.nr_launches--;
		return old;
	}
	ix->launches.nr += old == NONE;
	*slot = (uint32_t)i;
	ix->last = (uint32_t)i;
	return i;
}

bool ttmon_mt_index_has(const struct ttmon_mt_index *ix, uint64_t ctx, uint64_t id)
{
	const uint32_t *slot = find_launch(ix, ctx, id);

	return slot && *slot != NONE && !(ix->dict->dict.launches[*slot].flags & TTMON_MT_LAUNCH_MADE_UP);
}

int64_t ttmon_mt_index_launch(struct ttmon_mt_index *ix, uint64_t ctx, uint64_t id)
{
	const struct ttmon_mt_launch *l = ix->last == NONE ? NULL : &ix->dict->dict.launches[ix->last];

	if (!l || l->id != id || l->ctx != ctx) {
		int err = table_room(ix, &ix->launches);
		uint32_t *slot;

		if (err)
			return err;
		slot = find_launch(ix, ctx, id);
		if (*slot == NONE) {
			int64_t i = append(
				ix, &(struct ttmon_mt_launch){
					    .id = id, .ctx = ctx, .kernel = "", .flags = TTMON_MT_LAUNCH_MADE_UP });

			if (i < 0)
				return i;
			*slot = (uint32_t)i;
			ix->launches.nr++;
		}
		ix->last = *slot;
	}
	return ix->last;
}

int ttmon_mt_index_shift(struct ttmon_mt_index *ix)
{
	struct table t = ix->launches;
	int err;

	for (size_t i = 0; i < ix->dict->dict.nr_launches; i++)
		ix->dict->dict.launches[i].id -= !(ix->dict->dict.launches[i].flags & TTMON_MT_LAUNCH_MADE_UP);
	ix->launches = (struct table){ 0 };
	ix->last = NONE;
	for (size_t i = 0; t.slots && i <= t.mask; i++) {
		uint32_t *slot;

		if (t.slots[i] == NONE)
			continue;
		err = table_room(ix, &ix->launches);
		if (err) {
			free(t.slots);
			return err;
		}
		slot = find_launch(ix, ix->dict->dict.launches[t.slots[i]].ctx, ix->dict->dict.launches[t.slots[i]].id);
		*slot = t.slots[i];
		ix->launches.nr++;
	}
	free(t.slots);
	return 0;
}

/* A site at the end of the dictionary. */
static int64_t new_site(struct ttmon_mt_index *ix, uint32_t kernel, const char *op, size_t len, unsigned int operand,
			const struct ttmon_mt_site *like)
{
	struct ttmon_mt_site site = {
		.kernel = ix->names[kernel], .file = like->file, .pc = like->pc, .line = like->line
	};
	char text[TTMON_MT_MAX_OP + 1];
	int64_t i;
	int err;

	memcpy(text, op, len);
	text[len] = '\0';
	site.opcode = text;
	if (!ttmon_mt_sass(text, len, operand, &site) && !(site.flags & TTMON_MT_SITE_GUESSED))
		return -ENOENT;
	if (site.flags & TTMON_MT_SITE_GUESSED && like->width)
		site.width = like->width;
	err = TTMON_GROW(ix->of_site, ix->cap_of_site, ix->dict->dict.nr_sites + 1, 64);
	err = err ?: TTMON_GROW(ix->operand, ix->cap_operand, ix->dict->dict.nr_sites + 1, 64);
	if (err)
		return err;
	i = ttmon_mt_dict_site(ix->dict, &site);
	if (i < 0)
		return i;
	ix->of_site[i] = kernel;
	ix->operand[i] = (uint8_t)operand;
	return i;
}

int64_t ttmon_mt_index_site(struct ttmon_mt_index *ix, uint32_t launch, const char *op, size_t len,
			    unsigned int operand, const struct ttmon_mt_site *like)
{
	uint32_t kernel = ix->of_launch[launch];
	uint64_t h = hash_site(ix, kernel, operand, like->pc, op, len);
	struct hot *hot = &ix->hot[h >> 32 & (HOT - 1)];
	struct table *t = &ix->sites;

	if (hot->site == NONE || hot->kernel != kernel || hot->pc != like->pc || hot->operand != operand ||
	    hot->len != len || memcmp(hot->op, op, len)) {
		int err = table_room(ix, t);
		int64_t i = -1;
		size_t k;

		if (err)
			return err;
		for (k = h & t->mask; t->slots[k] != NONE; k = (k + 1) & t->mask) {
			const struct ttmon_mt_site *s = &ix->dict->dict.sites[t->slots[k]];

			if (ix->of_site[t->slots[k]] == kernel && s->pc == like->pc &&
			    ix->operand[t->slots[k]] == operand && strlen(s->opcode) == len &&
			    !memcmp(s->opcode, op, len)) {
				i = t->slots[k];
				break;
			}
		}
		if (i < 0) {
			i = new_site(ix, kernel, op, len, operand, like);
			if (i < 0)
				return i;
			t->slots[k] = (uint32_t)i;
			t->nr++;
		}
		*hot = (struct hot){ .kernel = kernel,
				     .site = (uint32_t)i,
				     .len = (uint32_t)len,
				     .operand = (uint8_t)operand,
				     .pc = like->pc };
		memcpy(hot->op, op, len);
	}
	ix->stats->unknown_op += !!(ix->dict->dict.sites[hot->site].flags & TTMON_MT_SITE_GUESSED);
	return hot->site;
}

unsigned int ttmon_mt_operand(const char *op, size_t len, const uint64_t *addr, uint32_t mask)
{
	if (len < 6 || memcmp(op, "LDGSTS", 6) || (len > 6 && op[6] != '.'))
		return 0;
	for (; mask; mask &= mask - 1)
		if (addr[__builtin_ctz(mask)])
			return addr[__builtin_ctz(mask)] >= WINDOW;
	return 0;
}

uint32_t ttmon_mt_row_lanes(const char *op, size_t len)
{
	unsigned int rows = 8, matrices = 1;

	if (len < 4 || (memcmp(op, "LDSM", 4) && memcmp(op, "STSM", 4)) || (len > 4 && op[4] != '.'))
		return UINT32_MAX;
	for (size_t at = 5, n; at < len; at += n + 1) {
		const char *dot = memchr(op + at, '.', len - at);

		n = dot ? (size_t)(dot - op) - at : len - at;
		if (n == 1 && (op[at] == '2' || op[at] == '4'))
			matrices = (unsigned int)(op[at] - '0');
		else if (n > 4 && !memcmp(op + at + n - 4, "1616", 4))
			rows = 16;
	}
	return rows * matrices >= TTMON_MT_LANES ? UINT32_MAX : (1u << rows * matrices) - 1;
}

/*
 * Offsets: 0 is one too. A lane at 0 was on where the others are a line that goes through it, or where
 * it alone is 0 and its neighbour is close.
 */
static uint32_t infer_offsets(const uint64_t *addr, uint32_t mask)
{
	unsigned int first, second, lane;
	int64_t stride;

	/* Something was on, or there were no record: all at one place. */
	if (!mask)
		return UINT32_MAX;
	if (mask == UINT32_MAX || !(mask & (mask - 1)))
		return mask;
	if (!(~mask & (~mask - 1))) {
		lane = (unsigned int)__builtin_ctz(~mask);
		if ((lane && addr[lane - 1] <= 256) || (lane < 31 && addr[lane + 1] <= 256))
			return UINT32_MAX;
	}
	first = (unsigned int)__builtin_ctz(mask);
	second = (unsigned int)__builtin_ctz(mask & (mask - 1));
	stride = (int64_t)(addr[second] - addr[first]);
	if (!stride || stride % (int64_t)(second - first))
		return mask;
	stride /= (int64_t)(second - first);
	for (lane = 0; lane < 32; lane++)
		if (mask >> lane & 1 &&
		    addr[lane] - addr[first] != (uint64_t)stride * (uint64_t)(lane - (int64_t)first))
			return mask;
	for (lane = 0; lane < 32; lane++)
		if (!(mask >> lane & 1) && (mask << 1 | mask >> 1) >> lane & 1 &&
		    !(addr[first] + (uint64_t)stride * (uint64_t)(lane - (int64_t)first)))
			return mask | 1u << lane;
	return mask;
}

uint32_t ttmon_mt_infer(const uint64_t *addr, unsigned int space, struct ttmon_mt_bounds *range, uint64_t threads)
{
	uint32_t mask = 0, there = 0, inside = 0;
	uint64_t low = UINT64_MAX, high = 0;

	for (unsigned int i = 0; i < 32; i++) {
		mask |= (uint32_t) !!addr[i] << i;
		if (addr[i] < LOWEST || addr[i] >= HIGHEST)
			continue;
		there |= 1u << i;
		low = MIN(low, addr[i]);
		high = MAX(high, addr[i]);
	}
	if (space == TTMON_MT_SHARED || space == TTMON_MT_LOCAL) {
		mask = infer_offsets(addr, mask);
	} else if (there) {
		mask = there;
		if (high - low > FAR && range->high) {
			for (unsigned int i = 0; i < 32; i++)
				if (there >> i & 1 && addr[i] + FAR >= range->low && addr[i] <= range->high + FAR)
					inside |= 1u << i;
			if (__builtin_popcount(inside) * 2 >= __builtin_popcount(there))
				mask = inside;
		} else if (high - low <= FAR) {
			range->low = range->high ? MIN(range->low, low) : low;
			range->high = MAX(range->high, high);
		}
	}
	if (threads && threads < 32 && mask & ((1u << threads) - 1))
		mask &= (1u << threads) - 1;
	return mask;
}
