// SPDX-License-Identifier: GPL-2.0-only
/* find.c: what is wrong with which instruction, in a sentence each. Buffers are in find_buf.c. */
#include "memtrace/analyse/an_int.h"

#include <stdarg.h>

#include "lib/base/grow.h"
#include "lib/base/fmt.h"
#include "lib/demangle/site.h"

#define MIN_SHARE 0.05 /* of all sectors, or of all requests: less is not worth a sentence */
#define MIN_COST  0.01 /* where each single one costs much */
#define TLB_PAGES 8
#define MIN_MEET  8
#define PLACE	  192
#define NAME	  48

const char *ttmon_mt_find_name(unsigned int what)
{
	static const char *const names[TTMON_MT_FIND_MAX] = {
		[TTMON_MT_FIND_UNCOALESCED] = "uncoalesced", [TTMON_MT_FIND_MISALIGNED] = "misaligned",
		[TTMON_MT_FIND_AOS] = "array of structures", [TTMON_MT_FIND_GATHER] = "gather",
		[TTMON_MT_FIND_DIVERGED] = "diverged",	     [TTMON_MT_FIND_BANKS] = "bank conflicts",
		[TTMON_MT_FIND_CONTENTION] = "contention",   [TTMON_MT_FIND_NARROW] = "narrow",
		[TTMON_MT_FIND_LOCAL] = "local memory",	     [TTMON_MT_FIND_PAGES] = "many pages",
		[TTMON_MT_FIND_ZERO_COPY] = "zero copy",     [TTMON_MT_FIND_IN_PLACE] = "in place",
		[TTMON_MT_FIND_UNTOUCHED] = "untouched",     [TTMON_MT_FIND_WRITE_ONLY] = "write only",
		[TTMON_MT_FIND_SPARSE] = "sparse",
	};

	return what < TTMON_MT_FIND_MAX ? names[what] : "";
}

/* Is the weight of such a finding no count of sectors or wavefronts that could be saved? */
static bool is_estimated(unsigned int what)
{
	switch (what) {
	case TTMON_MT_FIND_UNCOALESCED:
	case TTMON_MT_FIND_MISALIGNED:
	case TTMON_MT_FIND_AOS:
	case TTMON_MT_FIND_GATHER:
	case TTMON_MT_FIND_BANKS:
	case TTMON_MT_FIND_LOCAL:
		return false;
	default:
		return true;
	}
}

void ttmon_mt_find_add(struct ttmon_mt_finds *f, unsigned int what, uint32_t row, double weight, const char *fmt, ...)
{
	struct ttmon_mt_finding *to;
	va_list args;

	if (!f->err)
		f->err = TTMON_GROW(f->list, f->cap, f->nr + 1, 16);
	if (f->err)
		return;
	to = &f->list[f->nr++];
	*to = (struct ttmon_mt_finding){
		.what = (uint8_t)what, .row = row, .weight = MIN(MAX(weight, 0), 1), .estimated = is_estimated(what)
	};
	va_start(args, fmt);
	vsnprintf(to->text, sizeof(to->text), fmt, args);
	va_end(args);
}

static double ratio(uint64_t a, uint64_t b)
{
	return b ? (double)a / (double)b : 0;
}

/* Clean; what does not fit ends in "...". */
static const char *name_of(const char *text, char *buf, size_t n)
{
	ttmon_fmt_text(buf, n - 3, text);
	if (strlen(text) > n - 4)
		strcat(buf, "...");
	return buf;
}

/* "ld.global.f32 at saxpy.cu:14 in saxpy (4 instructions)": n of them */
static const char *place(const struct ttmon_mt_site *s, uint32_t n, char *buf)
{
	const char *base = strrchr(s->file, '/') ? strrchr(s->file, '/') + 1 : s->file;
	char opcode[NAME], file[NAME], kernel[NAME], at[NAME + 24] = "", several[32] = "";

	if (*base && s->line)
		snprintf(at, sizeof(at), " at %s:%u", name_of(base, file, sizeof(file)), s->line);
	else if (s->text_line)
		snprintf(at, sizeof(at), " at line %u of its PTX", s->text_line);
	else if (s->pc)
		snprintf(at, sizeof(at), " at 0x%llx", (unsigned long long)s->pc);
	if (n > 1)
		snprintf(several, sizeof(several), " (%u instructions)", n);
	snprintf(buf, PLACE, "%s%s%s%s%s", name_of(s->opcode, opcode, sizeof(opcode)), at, *s->kernel ? " in " : "",
		 ttmon_site_show_text(kernel, sizeof(kernel), s->kernel, 0), several);
	return buf;
}

struct look {
	struct ttmon_mt_finds *f;
	const struct ttmon_mt_an *an;
	const struct ttmon_mt_dict *dict;
	uint32_t row, nr; /* the worst of so many */
	const struct ttmon_mt_site_row *site;
	const struct ttmon_mt_sums *s;
	char at[PLACE];
	double sectors, requests, waves; /* of the whole trace */
	double share;			 /* of all sectors */
};

/*
 * Whether another site of the kernel walks through memory with the same stride: another field of the
 * same structures.
 */
static bool has_sibling(const struct look *l, uint64_t stride)
{
	const char *kernel = l->dict->sites[l->site->site].kernel;

	for (uint32_t i = 0; i < l->an->nr_sites; i++) {
		const struct ttmon_mt_site_row *o = &l->an->sites[i];
		double share;
		uint64_t gap;

		if (i == l->row || o->site == TTMON_MT_NONE || o->space != TTMON_MT_GLOBAL ||
		    o->site == l->site->site || !o->sums.stride_votes || (uint64_t)llabs(o->sums.stride) != stride ||
		    ttmon_mt_main_class(&o->sums, &share) != TTMON_MT_STRIDED)
			continue;
		gap = MAX(o->sums.min_addr, l->s->min_addr) - MIN(o->sums.min_addr, l->s->min_addr);
		if (gap && gap < stride && !strcmp(l->dict->sites[o->site].kernel, kernel))
			return true;
	}
	return false;
}

static void coalescing(const struct look *l)
{
	const struct ttmon_mt_sums *s = l->s;
	bool writes = s->writes && !s->reads;
	uint64_t stride = s->stride_votes ? (uint64_t)llabs(s->stride) : 0;
	double share, eff = ttmon_mt_efficiency(s, false),
		      weight = ratio(s->sectors - MIN(s->ideal, s->sectors), 1) / l->sectors;
	unsigned int class = ttmon_mt_main_class(s, &share);
	double has = ratio(s->sectors, s->requests), least = ratio(s->ideal, s->requests), waste = 100 * (1 - eff);
	char how[64] = "";

	if (l->share < MIN_SHARE)
		return;
	if (class == TTMON_MT_STRIDED && stride >= 8 && stride <= 128 && stride > l->site->width &&
	    s->sectors > s->ideal && (stride & (stride - 1) || has_sibling(l, stride))) {
		ttmon_mt_find_add(
			l->f, TTMON_MT_FIND_AOS, l->row, weight,
			"%s: %.1f sectors a request where %.1f would do: it takes %u bytes of every %llu, a field of "
			"an array of structures; keep each "
			"field in an array of its own, or take whole structures with vector accesses",
			l->at, has, least, l->site->width, (unsigned long long)stride);
		return;
	}
	if (eff >= 0.5 || s->sectors <= s->ideal + s->sectors / 4)
		return;
	if (class == TTMON_MT_GATHER && share > 0.5) {
		ttmon_mt_find_add(
			l->f, TTMON_MT_FIND_GATHER, l->row, weight,
			"%s: %.1f sectors a request where %.1f would do, at addresses without order: %.1f %% of what "
			"it moves is not used; sort or group "
			"the indices, or go through shared memory",
			l->at, has, least, waste);
		return;
	}
	if ((class == TTMON_MT_STRIDED || class == TTMON_MT_SEGMENTED) && stride && stride != l->site->width)
		snprintf(how, sizeof(how), " (stride %llu bytes)", (unsigned long long)stride);
	else if (share > 0)
		snprintf(how, sizeof(how), " (%.0f %% %s)", 100 * share, ttmon_mt_class_name(class));
	ttmon_mt_find_add(l->f, TTMON_MT_FIND_UNCOALESCED, l->row, weight,
			  "%s: %.1f sectors a request where %.1f would do%s: %.1f %% of what it moves is not used; let "
			  "neighbouring threads %s neighbouring elements",
			  l->at, has, least, how, waste, writes ? "write" : "read");
}

static void misaligned(const struct look *l)
{
	const struct ttmon_mt_sums *s = l->s;
	uint64_t rows = s->classes[TTMON_MT_SEQUENTIAL] + s->classes[TTMON_MT_REVERSED];

	if (l->share < MIN_COST || rows <= s->requests / 2 || s->misaligned <= rows / 2)
		return;
	ttmon_mt_find_add(
		l->f, TTMON_MT_FIND_MISALIGNED, l->row, (double)s->misaligned / l->sectors,
		"%s: %.1f sectors a request where %.1f would do: %.0f %% of its rows do not begin at a multiple of 32 "
		"bytes; align the first element, and "
		"pad rows to it (cudaMallocPitch)",
		l->at, ratio(s->sectors, s->requests), ratio(s->ideal, s->requests), 100 * ratio(s->misaligned, rows));
}

static void diverged(const struct look *l)
{
	const struct ttmon_mt_sums *s = l->s;
	double share = (double)s->requests / l->requests, lanes = ratio(s->lanes, s->requests);
	bool one = (l->site->kind == TTMON_MT_ATOM || l->site->kind == TTMON_MT_RED) && s->lanes == s->requests;

	if (share < MIN_SHARE || lanes >= TTMON_MT_LANES / 2 || one) /* one atomic a warp is what there should be */
		return;
	ttmon_mt_find_add(
		l->f, TTMON_MT_FIND_DIVERGED, l->row, share * (1 - lanes / TTMON_MT_LANES) / 2,
		"%s: %.1f of 32 lanes take part on average: neighbouring threads go different ways, or blocks are no "
		"multiple of 32 threads; let whole "
		"warps take the same branch",
		l->at, lanes);
}

static void banks(const struct look *l)
{
	const struct ttmon_mt_sums *s = l->s;
	uint64_t least = MAX(s->ideal_waves, s->phases);
	char worst[80] = "";

	if (!least || (double)s->waves < MIN_COST * l->waves || s->waves / 2 < least)
		return;
	if (s->max_waves)
		snprintf(worst, sizeof(worst), " (at worst %u", s->max_waves);
	if (s->max_waves && s->stride_votes)
		snprintf(worst + strlen(worst), sizeof(worst) - strlen(worst), ", stride %lld bytes",
			 (long long)s->stride);
	ttmon_mt_find_add(
		l->f, TTMON_MT_FIND_BANKS, l->row, (double)(s->waves - least) / l->waves,
		"%s: %.1f wavefronts a request where %.1f would do%s%s: lanes want different words of one bank of "
		"shared memory; pad rows by "
		"one element ([32][33]) or swizzle the index",
		l->at, ratio(s->waves, s->requests), ratio(least, s->requests), worst, *worst ? ")" : "");
}

static void contention(const struct look *l)
{
	const struct ttmon_mt_sums *s = l->s;
	double meet = ratio(s->same, s->requests), share = (double)s->requests / l->requests;

	if (meet < MIN_MEET || share < MIN_COST)
		return;
	ttmon_mt_find_add(
		l->f, TTMON_MT_FIND_CONTENTION, l->row, share * (1 - 1 / meet),
		"%s: %.1f of %.1f lanes meet on one word on average (at worst %u), and take turns; combine them in "
		"the warp or in shared memory first, then "
		"one atomic a warp or block",
		l->at, meet, ratio(s->lanes, s->requests), s->max_same);
}

static void narrow(const struct look *l)
{
	const struct ttmon_mt_sums *s = l->s;
	double share, of_all = (double)s->requests / l->requests;
	unsigned int width = l->site->width, class = ttmon_mt_main_class(s, &share);

	if (width > 2 || class != TTMON_MT_SEQUENTIAL || share <= 0.5 || of_all < MIN_SHARE)
		return;
	ttmon_mt_find_add(
		l->f, TTMON_MT_FIND_NARROW, l->row, of_all * (1 - width / 4.0) / 2,
		"%s: %u byte%s a lane in sequence: %u bytes a request where 512 fit; let each thread take 4 to 16 "
		"bytes at once (%s, uint4)",
		l->at, width, width == 1 ? "" : "s", width * TTMON_MT_LANES, width == 1 ? "uchar4" : "half2");
}

static void local(const struct look *l)
{
	char requests[TTMON_FMT_LEN];

	if (l->share < MIN_COST)
		return;
	ttmon_mt_find_add(
		l->f, TTMON_MT_FIND_LOCAL, l->row, l->share,
		"%s: %s requests of local memory, %.1f %% of all sectors: spilled registers, or an array of a "
		"thread's own with an index that is not known when "
		"it is compiled; unroll, or keep it in shared memory",
		l->at, ttmon_fmt_count(requests, sizeof(requests), l->s->requests), 100 * l->share);
}

static void pages(const struct look *l)
{
	const struct ttmon_mt_sums *s = l->s;
	double each = ratio(s->pages_2m, s->requests);

	if (l->share < MIN_COST || each <= TLB_PAGES)
		return;
	ttmon_mt_find_add(
		l->f, TTMON_MT_FIND_PAGES, l->row, l->share * (each - 1) / TTMON_MT_LANES / 2,
		"%s: %.1f pages of 2 MiB a request, each of which may miss in the TLB; order the work so that a warp "
		"stays within a few pages (tiles, sorted "
		"indices)",
		l->at, each);
}

static void of_site(struct look *l)
{
	unsigned int space = l->site->space, kind = l->site->kind;

	if (l->site->site == TTMON_MT_NONE || !l->s->requests || kind == TTMON_MT_PREFETCH)
		return;
	place(&l->dict->sites[l->site->site], l->nr, l->at);
	l->share = (double)l->s->sectors / l->sectors;
	if (space == TTMON_MT_GLOBAL) {
		coalescing(l);
		misaligned(l);
		narrow(l);
		pages(l);
	} else if (space == TTMON_MT_SHARED) {
		banks(l);
	} else {
		local(l);
	}
	diverged(l);
	if (kind == TTMON_MT_ATOM || kind == TTMON_MT_RED)
		contention(l);
}

static int by_weight(const void *a, const void *b)
{
	const struct ttmon_mt_finding *x = a, *y = b;

	if (x->weight > y->weight || x->weight < y->weight)
		return x->weight > y->weight ? -1 : 1;
	if (x->what != y->what)
		return x->what < y->what ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

int ttmon_mt_an_findings(struct ttmon_mt_an *an, const struct ttmon_mt_dict *dict, const struct ttmon_mt_finding **ret,
			 size_t *n)
{
	struct ttmon_mt_finds f = { 0 };
	struct look l = { .f = &f, .an = an, .dict = dict };
	const struct ttmon_mt_site_group *groups;
	size_t nr;
	int err = an->dirty ? ttmon_mt_an_settle(an, dict) : 0;

	err = err ?: ttmon_mt_an_groups(an, dict, &groups, &nr);
	if (err)
		return err;
	l.sectors = MAX((double)an->totals[TTMON_MT_GENERIC].sectors, 1);
	l.requests = MAX((double)an->totals[TTMON_MT_GENERIC].requests, 1);
	l.waves = MAX((double)an->totals[TTMON_MT_SHARED].waves, 1);
	for (size_t i = 0; i < nr; i++) {
		l.row = groups[i].row;
		l.nr = groups[i].nr;
		l.site = groups[i].all;
		l.s = &l.site->sums;
		of_site(&l);
	}
	ttmon_mt_find_buffers(an, dict, &f);
	if (f.err) {
		free(f.list);
		return f.err;
	}
	if (f.nr)
		qsort(f.list, f.nr, sizeof(*f.list), by_weight);
	free(an->findings);
	an->findings = f.list;
	an->nr_findings = f.nr;
	*ret = an->findings;
	*n = an->nr_findings;
	return 0;
}
