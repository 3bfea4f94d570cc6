// SPDX-License-Identifier: GPL-2.0-only
/*
 * find_buf.c: findings about buffers. If a trace is incomplete, findings that the missing part could
 * refute are not reported.
 */
#include "memtrace/analyse/an_int.h"

#include "lib/demangle/site.h"
#include "lib/base/search.h"
#include "lib/base/fmt.h"

#define MAX_UNTOUCHED 100	  /* named one by one: the largest */
#define MIN_SPARSE    (64u << 10) /* bytes */
#define BUS	      20	  /* a sector over PCIe costs as many of device memory, about */
#define BUF_NAME      160
#define WHY	      96

struct view {
	struct ttmon_mt_finds *f;
	struct ttmon_mt_an *an;
	const struct ttmon_mt_dict *dict;
	const struct ttmon_mt_alloc *allocs;
	size_t nr_allocs;
	char missing[WHY]; /* why the trace may not have all accesses; "" where it has */
	double sectors;	   /* of the trace */
	double memory;	   /* device and managed, bytes */
};

/* ---- is all of it there? ---- */

static void say_missing(struct view *l)
{
	const struct ttmon_mt_dict *d = l->dict;
	const struct ttmon_mt_stats *s = &l->an->stats;
	size_t kernels = 0, launches = 0;
	char n[TTMON_FMT_LEN];

	for (size_t i = 0; i < d->nr_kernels; i++)
		kernels += d->kernels[i].why[0] || d->kernels[i].left_out ||
			   d->kernels[i].recorded < d->kernels[i].launches;
	for (size_t i = 0; i < d->nr_launches; i++)
		launches += !!(d->launches[i].flags & TTMON_MT_LAUNCH_SAMPLED);
	if (s->sample > 1)
		snprintf(l->missing, WHY, "one block in %u was recorded", s->sample);
	else if (launches)
		snprintf(l->missing, WHY, "of %s launches only some blocks were recorded",
			 ttmon_fmt_count(n, sizeof(n), launches));
	else if (s->dropped)
		snprintf(l->missing, WHY, "%s records were dropped", ttmon_fmt_count(n, sizeof(n), s->dropped));
	else if (s->cut)
		snprintf(l->missing, WHY, "the trace ends in the middle");
	else if (s->malformed)
		snprintf(l->missing, WHY, "%s records could not be read", ttmon_fmt_count(n, sizeof(n), s->malformed));
	else if (kernels)
		snprintf(l->missing, WHY, "of %s kernels not all was recorded", ttmon_fmt_count(n, sizeof(n), kernels));
	else if (l->an->opts.want)
		snprintf(l->missing, WHY, "not all of the trace was looked at");
	else if (d->nr_aggs && !d->nr_touches)
		snprintf(l->missing, WHY, "the GPU kept sums, not addresses");
	else if (!l->an->has_stats || !d->nr_kernels)
		snprintf(l->missing, WHY, "the trace does not say which kernels are not in it");
}

/* " in this trace (one block in 64 was recorded)"; "" where all is there. */
static const char *but(const struct view *l, char *buf, size_t n)
{
	snprintf(buf, n, *l->missing ? " in this trace (%s)" : "%s", l->missing);
	return buf;
}

/* "buffer weights (device, 64.0 MiB, made at load_batch+0x41)" */
static const char *buffer_name(const struct ttmon_mt_alloc *a, char *buf)
{
	char text[40], site[64], size[TTMON_FMT_LEN];

	ttmon_fmt_text(text, sizeof(text), *a->name ? a->name : a->id);
	ttmon_site_show_text(site, sizeof(site), a->site, 0);
	snprintf(buf, BUF_NAME, "buffer %s%s(%s, %s%s%s)", text, *text ? " " : "", ttmon_mt_mem_name(a->mem),
		 ttmon_fmt_bytes(size, sizeof(size), a->size), *site ? ", made at " : "", site);
	return buf;
}

/* ---- buffers with accesses ---- */

static void zero_copy(const struct view *l, uint32_t row, const struct ttmon_mt_alloc *a)
{
	const struct ttmon_mt_buffer_row *b = &l->an->buffers[row];
	const struct ttmon_mt_sums *s = &b->sums;
	double read = s->requests ? (double)s->sectors * ((double)MIN(s->reads, s->requests) / (double)s->requests) : 0;
	char name[BUF_NAME], moved[TTMON_FMT_LEN], once[TTMON_FMT_LEN];

	if (!b->sectors || read <= 2 * (double)b->sectors)
		return;
	ttmon_mt_find_add(
		l->f, TTMON_MT_FIND_ZERO_COPY, row, BUS * (read - (double)b->sectors) / l->sectors,
		"%s: the GPU reads it in place, %s over the bus for %s that differ (%.1f times over); copy it to the "
		"device once",
		buffer_name(a, name), ttmon_fmt_bytes(moved, sizeof(moved), (uint64_t)(read * TTMON_MT_SECTOR)),
		ttmon_fmt_bytes(once, sizeof(once), b->sectors * TTMON_MT_SECTOR), read / (double)b->sectors);
}

static void in_place(const struct view *l, uint32_t row, const struct ttmon_mt_alloc *a)
{
	const struct ttmon_mt_buffer_row *b = &l->an->buffers[row];
	const struct ttmon_mt_sums *s = &b->sums;
	const char *does = s->reads && s->writes ? "reads and writes"
			   : s->writes		 ? "writes"
			   : s->reads		 ? "reads"
						 : "touches";
	char name[BUF_NAME], n[TTMON_FMT_LEN];

	if (a->copies)
		return;
	ttmon_mt_find_add(
		l->f, TTMON_MT_FIND_IN_PLACE, row, (double)s->sectors / l->sectors / 10,
		"%s: never copied, but the GPU %s it in place (%s requests): it is in use, not cold; keep it pinned",
		buffer_name(a, name), does, ttmon_fmt_count(n, sizeof(n), s->requests + b->touches));
}

static void write_only(const struct view *l, uint32_t row, const struct ttmon_mt_alloc *a)
{
	const struct ttmon_mt_buffer_row *b = &l->an->buffers[row];
	char name[BUF_NAME], n[TTMON_FMT_LEN], where[WHY + 24];

	if (!b->sums.writes || b->sums.reads || b->unknown || b->ambiguous || a->d2h_bytes || a->others)
		return;
	ttmon_mt_find_add(
		l->f, TTMON_MT_FIND_WRITE_ONLY, row, (double)b->sums.sectors / l->sectors / 2,
		"%s: kernels write it (%s requests), no kernel reads it%s, and it is never copied back; leave it out, "
		"or find out who is to read it",
		buffer_name(a, name), ttmon_fmt_count(n, sizeof(n), b->sums.writes), but(l, where, sizeof(where)));
}

static void sparse(const struct view *l, uint32_t row, const struct ttmon_mt_alloc *a)
{
	const struct ttmon_mt_buffer_row *b = &l->an->buffers[row];
	uint64_t used = b->sectors * TTMON_MT_SECTOR;
	char name[BUF_NAME], n[TTMON_FMT_LEN], low[TTMON_FMT_LEN], high[TTMON_FMT_LEN];

	if (*l->missing || !used || b->touches || a->size < MIN_SPARSE || used >= a->size / 10)
		return;
	ttmon_mt_find_add(l->f, TTMON_MT_FIND_SPARSE, row, (double)(a->size - used) / l->memory / 20,
			  "%s: kernels touch %s of it (%.1f %%), from %s to %s; allocate less, or pack what is used",
			  buffer_name(a, name), ttmon_fmt_bytes(n, sizeof(n), used),
			  100 * (double)used / (double)a->size,
			  ttmon_fmt_bytes(low, sizeof(low), b->low > a->addr ? b->low - a->addr : 0),
			  ttmon_fmt_bytes(high, sizeof(high), b->high > a->addr ? b->high - a->addr : 0));
}

/* ---- buffers without any ---- */

struct launched {
	uint64_t ns;
	uint32_t pid;
};

static int by_time(const void *a, const void *b)
{
	const struct launched *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->ns < y->ns ? -1 : x->ns > y->ns;
}

/* How many come before this process and time. */
static size_t up_to(const struct launched *list, size_t n, uint32_t pid, uint64_t ns)
{
	const struct launched key = { ns, pid };
	size_t lo = 0;

	lo = TTMON_SEARCH(lo, n, mid, by_time(&list[mid], &key) < 0);
	return lo;
}

/*
 * Launches of its process (or of one that is not known) while it was live; UINT64_MAX: that is not
 * known.
 */
static uint64_t launches_of(const struct launched *list, size_t n, const struct ttmon_mt_alloc *a)
{
	uint64_t of_any = up_to(list, n, 0, a->free_ns) - up_to(list, n, 0, a->alloc_ns);

	if (!n || !a->pid)
		return UINT64_MAX;
	return of_any + up_to(list, n, a->pid, a->free_ns) - up_to(list, n, a->pid, a->alloc_ns);
}

static int by_size(const void *a, const void *b, void *allocs)
{
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct ttmon_mt_alloc *x = (const struct ttmon_mt_alloc *)allocs + i,
				    *y = (const struct ttmon_mt_alloc *)allocs + k;

	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return i < k ? -1 : i > k;
}

static void say_untouched(const struct view *l, const struct launched *times, size_t nr_times, const uint32_t *list,
			  size_t n)
{
	char name[BUF_NAME], count[TTMON_FMT_LEN], size[TTMON_FMT_LEN], where[WHY + 24], ran[64] = "";
	uint64_t rest = 0;

	for (size_t i = 0; i < MIN(n, (size_t)MAX_UNTOUCHED); i++) {
		const struct ttmon_mt_alloc *a = &l->allocs[list[i]];
		uint64_t launches = launches_of(times, nr_times, a);

		if (launches != UINT64_MAX)
			snprintf(ran, sizeof(ran), ", while %s launches ran",
				 ttmon_fmt_count(count, sizeof(count), launches));
		ttmon_mt_find_add(
			l->f, TTMON_MT_FIND_UNTOUCHED, list[i], (double)a->size / l->memory / 20,
			*l->missing ? "%s: no recorded access%s%s; if none is missing, it need not be there"
				    : "%s: no kernel touched it%s%s; allocate it when it is needed, or not at all",
			buffer_name(a, name), ran, but(l, where, sizeof(where)));
	}
	for (size_t i = MAX_UNTOUCHED; i < n; i++)
		rest += MIN(l->allocs[list[i]].size, UINT64_MAX - rest);
	if (n > MAX_UNTOUCHED)
		ttmon_mt_find_add(l->f, TTMON_MT_FIND_UNTOUCHED, list[MAX_UNTOUCHED], 0,
				  "%s smaller buffers of %s together: no recorded access%s",
				  ttmon_fmt_count(count, sizeof(count), n - MAX_UNTOUCHED),
				  ttmon_fmt_bytes(size, sizeof(size), rest), but(l, where, sizeof(where)));
}

static bool on_device(const struct ttmon_mt_alloc *a)
{
	return a->mem == TTMON_MT_MEM_DEVICE || a->mem == TTMON_MT_MEM_MANAGED;
}

static void untouched(const struct view *l)
{
	_cleanup_free_ struct launched *times = calloc(l->dict->nr_launches + 1, sizeof(*times));
	_cleanup_free_ uint32_t *list = calloc(l->nr_allocs + 1, sizeof(*list));
	size_t nr_times = 0, n = 0;

	if (!times || !list) {
		l->f->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < l->dict->nr_launches; i++)
		if (l->dict->launches[i].time_ns)
			times[nr_times++] = (struct launched){ l->dict->launches[i].time_ns, l->dict->launches[i].pid };
	qsort(times, nr_times, sizeof(*times), by_time);
	for (uint32_t i = 0; i < l->nr_allocs; i++)
		if (on_device(&l->allocs[i]) && l->allocs[i].size && !(l->an->buf_at && l->an->buf_at[i]) &&
		    launches_of(times, nr_times, &l->allocs[i]))
			list[n++] = i;
	qsort_r(list, n, sizeof(*list), by_size, (void *)l->allocs);
	say_untouched(l, times, nr_times, list, n);
}

void ttmon_mt_find_buffers(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, struct ttmon_mt_finds *f)
{
	struct view l = { .f = f, .an = an, .dict = dict, .memory = 0 };

	if (!an->opts.map || !dict->nr_launches)
		return;
	l.allocs = ttmon_mt_map_get(an->opts.map, &l.nr_allocs);
	l.sectors = MAX((double)an->totals[TTMON_MT_GENERIC].sectors, 1);
	for (size_t i = 0; i < l.nr_allocs; i++)
		l.memory += on_device(&l.allocs[i]) ? (double)l.allocs[i].size : 0;
	l.memory = MAX(l.memory, 1);
	say_missing(&l);
	for (uint32_t row = 0; row < an->nr_buffers; row++) {
		const struct ttmon_mt_buffer_row *b = &an->buffers[row];
		const struct ttmon_mt_alloc *a = b->alloc == TTMON_MT_NONE ? NULL : &l.allocs[b->alloc];

		if (!a || !(b->sums.requests + b->touches))
			continue;
		if (a->mem == TTMON_MT_MEM_PINNED || a->mem == TTMON_MT_MEM_REGISTERED) {
			zero_copy(&l, row, a);
			in_place(&l, row, a);
		}
		if (a->mem == TTMON_MT_MEM_DEVICE)
			write_only(&l, row, a);
		if (on_device(a))
			sparse(&l, row, a);
	}
	untouched(&l);
}
