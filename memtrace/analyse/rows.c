// SPDX-License-Identifier: GPL-2.0-only
/* rows.c: rows of sites, launches and kernels; working sets of launches; sums that the GPU made. */
#include "memtrace/analyse/an_int.h"
#include "lib/base/grow.h"
#include "lib/base/hash.h"

/* Zeroed up to n, at least. */
static int stretch(uint32_t **p, size_t *nr, size_t n)
{
	size_t more = MAX(n, *nr * 2);
	uint32_t *q;

	if (n <= *nr)
		return 0;
	q = realloc(*p, more * sizeof(*q));
	if (!q)
		return -ENOMEM;
	memset(q + *nr, 0, (more - *nr) * sizeof(*q));
	*p = q;
	*nr = more;
	return 0;
}

/* ---- kernels ---- */

static uint64_t hash(const char *s)
{
	uint64_t h = ttmon_fnv(TTMON_FNV_BASIS, s, strlen(s));

	return h ^ h >> 29;
}

static uint32_t *kernel_place(const struct ttmon_mt_an *an, const char *name)
{
	size_t i = hash(name) & (an->nr_kernel_hash - 1);

	while (an->kernel_hash[i] && strcmp(an->kernels[an->kernel_hash[i] - 1].kernel, name))
		i = (i + 1) & (an->nr_kernel_hash - 1);
	return &an->kernel_hash[i];
}

/* NULL: there is none of that name. */
static struct ttmon_mt_kernel_row *find_kernel(const struct ttmon_mt_an *an, const char *name)
{
	uint32_t at = an->nr_kernel_hash ? *kernel_place(an, name) : 0;

	return at ? &an->kernels[at - 1] : NULL;
}

static int rehash(struct ttmon_mt_an *an)
{
	size_t n = MAX(an->nr_kernel_hash * 2, (size_t)64);
	uint32_t *table;

	if (an->nr_kernels < an->nr_kernel_hash / 2)
		return 0;
	table = calloc(n, sizeof(*table));
	if (!table)
		return -ENOMEM;
	free(an->kernel_hash);
	an->kernel_hash = table;
	an->nr_kernel_hash = n;
	for (uint32_t i = 0; i < an->nr_kernels; i++)
		*kernel_place(an, an->kernels[i].kernel) = i + 1;
	return 0;
}

static int64_t kernel_row(struct ttmon_mt_an *an, const char *name)
{
	uint32_t *at;

	if (rehash(an) || TTMON_GROW(an->kernels, an->cap_kernels, an->nr_kernels + 1, 16))
		return -ENOMEM;
	at = kernel_place(an, name);
	if (!*at && an->nr_kernels >= an->opts.max_sites) {
		name = "(others)";
		at = kernel_place(an, name);
	}
	if (!*at) {
		struct ttmon_mt_kernel_row *row = &an->kernels[an->nr_kernels];

		memset(row, 0, sizeof(*row));
		row->kernel = name;
		ttmon_mt_an_empty(&row->sums);
		*at = ++an->nr_kernels;
	}
	return *at - 1;
}

int64_t ttmon_mt_an_kernel_of(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, uint32_t launch, uint32_t site)
{
	struct ttmon_mt_site_more *more = &an->site_more[site];
	uint32_t index = an->sites[site].site;

	if (launch != TTMON_MT_NONE && an->launch_more[launch].kernel != TTMON_MT_NONE)
		return an->launch_more[launch].kernel;
	if (more->kernel == TTMON_MT_NONE) {
		int64_t k = kernel_row(an, index == TTMON_MT_NONE ? "(others)" : dict->sites[index].kernel);

		if (k < 0)
			return k;
		more->kernel = (uint32_t)k;
	}
	return more->kernel;
}

/* ---- sites ---- */

int64_t ttmon_mt_an_site(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, uint32_t site, unsigned int space,
			 unsigned int width)
{
	size_t at = (size_t)site * TTMON_MT_SPACE_MAX + space;
	bool others = an->nr_sites >= an->opts.max_sites;
	struct ttmon_mt_site_row *row;

	if (at < an->nr_site_at && an->site_at[at])
		return an->site_at[at] - 1;
	if (stretch(&an->site_at, &an->nr_site_at, dict->nr_sites * TTMON_MT_SPACE_MAX) ||
	    TTMON_GROW(an->sites, an->cap_sites, an->nr_sites + 1, 16) ||
	    TTMON_GROW(an->site_more, an->cap_site_more, an->nr_sites + 1, 16))
		return -ENOMEM;
	if (an->nr_sites > an->opts.max_sites) { /* the last one is theirs */
		an->site_at[at] = an->nr_sites;
		return an->nr_sites - 1;
	}
	row = &an->sites[an->nr_sites];
	*row = (struct ttmon_mt_site_row){ .site = TTMON_MT_NONE };
	if (!others)
		*row = (struct ttmon_mt_site_row){
			.site = site,
			.space = (uint8_t)space,
			.kind = dict->sites[site].kind,
			.width = (uint8_t)width,
		};
	ttmon_mt_an_empty(&row->sums);
	an->site_more[an->nr_sites] = (struct ttmon_mt_site_more){
		.kernel = TTMON_MT_NONE,
	};
	an->site_at[at] = ++an->nr_sites;
	return an->nr_sites - 1;
}

/* ---- launches ---- */

/* Counts the launch of its kernel. A name that is not known is that of its sites. */
static int64_t launch_kernel(struct ttmon_mt_an *an, const struct ttmon_mt_launch *l)
{
	int64_t k = l->kernel[0] ? kernel_row(an, l->kernel) : TTMON_MT_NONE;

	if (k >= 0 && k != TTMON_MT_NONE)
		an->kernels[k].launches++;
	return k;
}

int64_t ttmon_mt_an_launch(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, uint32_t launch)
{
	bool others = an->nr_launches >= an->opts.max_launches;
	struct ttmon_mt_launch_row *row;
	int64_t kernel;

	if (launch < an->nr_launch_at && an->launch_at[launch])
		return an->launch_at[launch] - 1;
	if (stretch(&an->launch_at, &an->nr_launch_at, dict->nr_launches) ||
	    TTMON_GROW(an->launches, an->cap_launches, an->nr_launches + 1, 16) ||
	    TTMON_GROW(an->launch_more, an->cap_launch_more, an->nr_launches + 1, 16))
		return -ENOMEM;
	kernel = launch_kernel(an, &dict->launches[launch]);
	if (kernel < 0)
		return kernel;
	if (an->nr_launches > an->opts.max_launches) {
		an->launch_at[launch] = an->nr_launches;
		return an->nr_launches - 1;
	}
	row = &an->launches[an->nr_launches];
	memset(row, 0, sizeof(*row));
	row->launch = others ? TTMON_MT_NONE : launch;
	ttmon_mt_an_empty(&row->global);
	ttmon_mt_an_empty(&row->shared);
	ttmon_mt_an_empty(&row->local);
	an->launch_more[an->nr_launches] = (struct ttmon_mt_launch_more){
		.kernel = others ? TTMON_MT_NONE : (uint32_t)kernel,
		.late = others,
	};
	row->estimate = others;
	an->launch_at[launch] = ++an->nr_launches;
	return an->nr_launches - 1;
}

/* The one that was opened before o, if it is still there. */
static const struct ttmon_mt_open *before(const struct ttmon_mt_an *an, const struct ttmon_mt_open *o)
{
	for (unsigned int i = 0; i < TTMON_MT_AN_OPEN; i++)
		if (an->open[i].row != TTMON_MT_NONE && an->open[i].age + 1 == o->age)
			return &an->open[i];
	return NULL;
}

void ttmon_mt_an_close(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_open *o)
{
	struct ttmon_mt_launch_row *row = &an->launches[o->row];
	const struct ttmon_mt_open *b = before(an, o);
	bool estimate = false, of_both = false;

	row->sectors = ttmon_mt_sectors_count(o->set, &estimate);
	if (b)
		row->again = ttmon_mt_sectors_both(o->set, b->set, &of_both);
	row->estimate |= estimate || of_both;
	ttmon_mt_an_share(an, &dict->launches[row->launch], o->set);
}

struct ttmon_mt_sectors *ttmon_mt_an_is_open(const struct ttmon_mt_an *an, uint32_t launch)
{
	for (unsigned int i = 0; i < TTMON_MT_AN_OPEN; i++)
		if (an->open[i].row == launch)
			return an->open[i].set;
	return NULL;
}

struct ttmon_mt_sectors *ttmon_mt_an_open(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, uint32_t launch,
					  int *err)
{
	struct ttmon_mt_open *o = &an->open[0];

	if (an->open[an->cur].row == launch)
		return an->open[an->cur].set;
	if (an->launch_more[launch].late) {
		an->launches[launch].estimate = true;
		return NULL;
	}
	for (unsigned int i = 0; i < TTMON_MT_AN_OPEN; i++) {
		if (an->open[i].row == launch) {
			an->cur = i;
			return an->open[i].set;
		}
		if (an->open[i].age < o->age)
			o = &an->open[i];
	}
	if (o->row != TTMON_MT_NONE) {
		ttmon_mt_an_spill(an);
		/* The one behind it loses what it is compared with, too. */
		for (unsigned int i = 0; i < TTMON_MT_AN_OPEN; i++)
			if (an->open[i].row != TTMON_MT_NONE && an->open[i].age <= o->age + 1)
				ttmon_mt_an_close(an, dict, &an->open[i]);
		an->launch_more[o->row].late = true;
		ttmon_mt_sectors_clear(o->set);
	} else if (!o->set) {
		*err = ttmon_mt_sectors_new(256u << 10, &o->set);
		if (*err)
			return NULL;
	}
	o->row = launch;
	o->age = ++an->opened;
	an->cur = (uint32_t)(o - an->open);
	return o->set;
}

/* ---- from cells to rows ---- */

static unsigned int width_place(unsigned int width)
{
	unsigned int place = width ? (unsigned int)__builtin_ctz(width) : 6;

	return width && !(width & (width - 1)) && place < 6 ? place : 6;
}

static void add_to_launch(struct ttmon_mt_launch_row *row, unsigned int space, const struct ttmon_mt_sums *s)
{
	if (space == TTMON_MT_SHARED)
		ttmon_mt_sums_add(&row->shared, s);
	else if (space == TTMON_MT_LOCAL)
		ttmon_mt_sums_add(&row->local, s);
	else
		ttmon_mt_sums_add(&row->global, s);
}

void ttmon_mt_an_flush(struct ttmon_mt_an *an, struct ttmon_mt_cell *cell)
{
	struct ttmon_mt_site_row *site = &an->sites[cell->key.site];
	struct ttmon_mt_kernel_row *kernel = &an->kernels[cell->kernel];
	const struct ttmon_mt_sums *s = &cell->sums;

	ttmon_mt_an_finish(an, cell);
	ttmon_mt_sums_add(&site->sums, s);
	kernel->requests[cell->key.space][cell->key.kind] += s->requests;
	kernel->widths[width_place(cell->key.width)] += s->requests;
	if (cell->key.kind != TTMON_MT_PREFETCH) {
		ttmon_mt_sums_add(&an->totals[TTMON_MT_GENERIC], s);
		ttmon_mt_sums_add(&an->totals[cell->key.space], s);
		if (cell->key.launch != TTMON_MT_NONE)
			add_to_launch(&an->launches[cell->key.launch], cell->key.space, s);
		if (cell->key.space == TTMON_MT_GLOBAL)
			ttmon_mt_sums_add(&kernel->sums, s);
		if (cell->key.buffer != TTMON_MT_NONE) {
			ttmon_mt_sums_add(&an->bufs[cell->key.buffer].row.sums, s);
			ttmon_mt_an_pair(an, cell->key.buffer, cell->key.site, s);
		}
	}
	cell->key.site = TTMON_MT_NONE;
}

/* ---- sums of the GPU's ---- */

/* The stride that more than half of them have, if there is one. */
static void agg_stride(const struct ttmon_mt_agg *a, struct ttmon_mt_sums *s)
{
	uint64_t all = a->classes[TTMON_MT_STRIDED] + a->classes[TTMON_MT_SEGMENTED];

	for (unsigned int i = 0; i < TTMON_MT_AGG_STRIDES; i++) {
		if (a->stride_requests[i] <= all && a->stride_requests[i] > all - a->stride_requests[i]) {
			s->stride = a->stride[i];
			s->stride_votes = 2 * a->stride_requests[i] - all;
		}
	}
}

/* What costs, as records are counted: in one.c. */
static void agg_costs(const struct ttmon_mt_agg *a, bool shared, struct ttmon_mt_sums *s)
{
	s->unique = a->unique;
	s->ideal = a->ideal;
	s->misaligned = a->misaligned;
	s->pages_4k = a->pages_4k;
	s->pages_64k = a->pages_64k;
	s->pages_2m = a->pages_2m;
	s->phases = a->phases;
	s->same = a->same;
	s->max_same = a->max_same;
	s->max_waves = a->max_waves;
	memcpy(shared ? s->waves_hist : s->sectors_hist, a->cost_hist, sizeof(a->cost_hist));
	memcpy(s->lines_hist, a->lines_hist, sizeof(a->lines_hist));
	memcpy(s->pages_4k_bins, a->pages_4k_bins, sizeof(a->pages_4k_bins));
	memcpy(s->pages_2m_bins, a->pages_2m_bins, sizeof(a->pages_2m_bins));
}

/*
 * An older file's has no distinct bytes: those requested, at most what was moved, and where a generic
 * instruction accessed shared memory too, what was needed.
 */
static void agg_plain(const struct ttmon_mt_agg *a, struct ttmon_mt_sums *s)
{
	uint64_t most = a->waves && a->ideal_lanes ? MIN(a->ideal_lanes, a->sectors) : a->sectors;

	s->ideal = a->ideal_lanes;
	s->unique = MIN(a->bytes, most > UINT64_MAX / TTMON_MT_SECTOR ? UINT64_MAX : most * TTMON_MT_SECTOR);
	s->phases = a->ideal_waves;
}

static void agg_sums(const struct ttmon_mt_agg *a, unsigned int kind, bool shared, struct ttmon_mt_sums *s)
{
	ttmon_mt_an_empty(s);
	s->requests = a->requests;
	s->lanes = a->lanes;
	s->full = a->full;
	s->reads = ttmon_mt_reads(kind) ? a->requests : 0;
	s->writes = ttmon_mt_writes(kind) ? a->requests : 0;
	if (a->min_addr <= a->max_addr) {
		s->min_addr = a->min_addr;
		s->max_addr = a->max_addr;
	}
	memcpy(s->classes, a->classes, sizeof(s->classes));
	for (unsigned int n = 1; n <= TTMON_MT_LANES; n++)
		s->lanes_bins[31 - __builtin_clz(n)] += a->lanes_hist[n];
	agg_stride(a, s);
	if (kind == TTMON_MT_PREFETCH)
		return;
	s->bytes = a->bytes;
	s->sectors = a->sectors;
	s->lines = a->lines;
	s->ideal_lanes = a->ideal_lanes;
	s->waves = a->waves;
	s->ideal_waves = a->ideal_waves;
	if (a->shapes)
		agg_costs(a, shared, s);
	else
		agg_plain(a, s);
}

/* Where all that it touched lies in one buffer, it is that buffer's. */
static int agg_buffer(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_agg *a,
		      uint32_t *ret)
{
	const struct ttmon_mt_launch *l = a->launch == TTMON_MT_NO_LAUNCH ? NULL : &dict->launches[a->launch];
	struct ttmon_mt_part part;
	int err;

	*ret = TTMON_MT_NONE;
	if (a->min_addr > a->max_addr)
		return 0;
	err = ttmon_mt_an_part(an, l, a->min_addr, &part);
	if (err || a->max_addr / TTMON_MT_SECTOR > part.last)
		return err;
	*ret = part.buffer;
	an->bufs[part.buffer].row.low = MIN(an->bufs[part.buffer].row.low, a->min_addr);
	an->bufs[part.buffer].row.high = MAX(an->bufs[part.buffer].row.high, a->max_addr + 1);
	ttmon_mt_an_seen(&an->bufs[part.buffer], a->launch);
	return 0;
}

static bool agg_wanted(const struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_agg *a)
{
	const struct ttmon_mt_site *site = &dict->sites[a->site];
	struct ttmon_mt_rec rec = {
		.base = a->min_addr,
		.mask = UINT32_MAX,
		.site = a->site,
		.launch = a->launch,
		.sm = TTMON_MT_NO_SM,
		.space = site->space,
		.width = site->width,
	};

	return !an->opts.want || an->opts.want(an->opts.ctx, dict, &rec);
}

static int one_agg(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_agg *a)
{
	const struct ttmon_mt_site *site = &dict->sites[a->site];
	unsigned int space = site->space == TTMON_MT_GENERIC ? TTMON_MT_GLOBAL : site->space;
	struct ttmon_mt_cell cell = { .key = { .buffer = TTMON_MT_NONE,
					       .launch = TTMON_MT_NONE,
					       .space = (uint8_t)space,
					       .kind = site->kind,
					       .width = site->width } };
	int64_t row, kernel;
	int err = 0;

	row = ttmon_mt_an_site(an, dict, a->site, space, site->width);
	if (row < 0)
		return (int)row;
	cell.key.site = (uint32_t)row;
	if (a->launch != TTMON_MT_NO_LAUNCH) {
		row = ttmon_mt_an_launch(an, dict, a->launch);
		if (row < 0)
			return (int)row;
		cell.key.launch = (uint32_t)row;
	}
	kernel = ttmon_mt_an_kernel_of(an, dict, cell.key.launch, cell.key.site);
	if (kernel < 0)
		return (int)kernel;
	cell.kernel = (uint32_t)kernel;
	if (space == TTMON_MT_GLOBAL && site->kind != TTMON_MT_PREFETCH)
		err = agg_buffer(an, dict, a, &cell.key.buffer);
	if (err)
		return err;
	if (a->launch == TTMON_MT_NO_LAUNCH) {
		an->kernels[kernel].summed = true;
		an->kernels[kernel].function |= site->flags & TTMON_MT_SITE_FUNCTION;
	}
	agg_sums(a, site->kind, space == TTMON_MT_SHARED, &cell.sums);
	ttmon_mt_an_flush(an, &cell);
	return 0;
}

/*
 * Launches of kernels with sums of all launches together are those that the program counted. A kernel
 * whose accesses are all in functions that it calls has no sums of its own, but launches.
 */
static int agg_launches(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict)
{
	bool any = false;

	for (uint32_t i = 0; i < an->nr_kernels; i++) {
		any |= an->kernels[i].summed;
		if (an->kernels[i].summed)
			an->kernels[i].launches = 0;
	}
	for (size_t i = 0; i < dict->nr_kernels && any; i++) {
		const struct ttmon_mt_kernel *k = &dict->kernels[i];
		struct ttmon_mt_kernel_row *row = find_kernel(an, k->name);

		if (!row && k->recorded && !an->opts.want) {
			int64_t at = kernel_row(an, k->name);

			if (at < 0)
				return (int)at;
			row = &an->kernels[at];
			row->summed = true;
		}
		if (row && row->summed && !row->function)
			row->launches += k->recorded;
	}
	return 0;
}

int ttmon_mt_an_aggs(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict)
{
	int err;

	for (; an->nr_aggs < dict->nr_aggs; an->nr_aggs++) {
		const struct ttmon_mt_agg *a = &dict->aggs[an->nr_aggs];

		if (a->site >= dict->nr_sites || (a->launch != TTMON_MT_NO_LAUNCH && a->launch >= dict->nr_launches))
			return -EINVAL;
		if (!a->requests || !agg_wanted(an, dict, a))
			continue;
		err = one_agg(an, dict, a);
		if (err)
			return err;
	}
	return agg_launches(an, dict);
}
