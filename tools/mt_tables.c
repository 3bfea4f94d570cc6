// SPDX-License-Identifier: GPL-2.0-only
/* mt_tables.c: sites, launches, kernels and buffers of a trace, worst or biggest first. */
#include <inttypes.h>

#include "tools/mt_tool.h"
#include "tools/show.h"

struct text {
	char a[TTMON_FMT_LEN], b[TTMON_FMT_LEN], c[TTMON_FMT_LEN], d[TTMON_FMT_LEN], e[TTMON_FMT_LEN];
};

#define COUNT(buf, v)	   ttmon_fmt_count(buf, sizeof(buf), v)
#define BYTES(buf, v)	   ttmon_fmt_bytes(buf, sizeof(buf), v)
#define PERCENT(buf, v)	   ttmon_mt_percent(buf, sizeof(buf), v)
#define PER(buf, num, den) ttmon_mt_per(buf, sizeof(buf), num, den)

static double share(uint64_t part, uint64_t all)
{
	return all ? (double)part / (double)all : -1;
}

/* Title of a table; how many of its n rows are shown: of all, it says so. */
static size_t rows(const struct ttmon_mt_report *r, FILE *out, size_t width, const char *title, const char *order,
		   size_t n)
{
	size_t shown = (size_t)MIN((uint64_t)n, r->args->lines);
	char text[300];
	int len = n > 1 ? snprintf(text, sizeof(text), "%s, %s first", title, order)
			: snprintf(text, sizeof(text), "%s", title);

	if (shown < n && len > 0)
		snprintf(text + len, sizeof(text) - (size_t)len, ": %zu of %zu (-n 0 shows all)", shown, n);
	ttmon_mt_title(out, text, width);
	return shown;
}

/* "strided 128 B, 93%" */
static void pattern(const struct ttmon_mt_sums *s, char *buf, size_t n)
{
	double part = 0;
	unsigned int class = ttmon_mt_main_class(s, &part);
	size_t len;

	if (!s->records) {
		snprintf(buf, n, "(sums)");
		return;
	}
	len = (size_t)snprintf(buf, n, "%s", ttmon_mt_class_name(class));
	if ((class == TTMON_MT_STRIDED || class == TTMON_MT_SEGMENTED) && s->stride && len < n)
		len += (size_t)snprintf(buf + len, n - len, " %" PRId64 " B", s->stride);
	if (s->misaligned * 2 > s->requests && len < n)
		len += (size_t)snprintf(buf + len, n - len, ", misaligned");
	if (part < 0.995 && len < n)
		snprintf(buf + len, n - len, ", %.0f%%", 100 * part);
}

/* "ld.global  file:12 x4  kernel" as the last columns. */
static void put_where(struct ttmon_mt_grid *t, const struct ttmon_mt_report *r, const struct ttmon_mt_site_group *group)
{
	const struct ttmon_mt_site *s = ttmon_mt_row_site(r->dict, group->all);
	_cleanup_free_ char *name = ttmon_mt_short_name(s->kernel);
	char place[200], op[100], several[16] = "";

	ttmon_mt_grid_put(t, "%s", ttmon_fmt_text(op, sizeof(op), s->opcode));
	ttmon_mt_place(s, place, sizeof(place));
	if (group->nr > 1)
		snprintf(several, sizeof(several), " x%u", group->nr);
	/* The place first: a long name is cut. */
	ttmon_mt_grid_put(t, "%s%s%s%s", place, several, *place ? "  " : "", name ? name : "?");
}

static bool has_sectors(const struct ttmon_mt_site_row *row)
{
	return row->space != TTMON_MT_SHARED;
}

static bool is_atomic(const struct ttmon_mt_site_row *row)
{
	return (row->kind == TTMON_MT_ATOM || row->kind == TTMON_MT_RED) && row->sums.records;
}

static bool is_shared(const struct ttmon_mt_site_row *row)
{
	return row->space == TTMON_MT_SHARED;
}

/* Instructions, worst first; those of a line that do the same are one, unless all are asked for. */
struct sites {
	struct ttmon_mt_site_group *all, *of; /* of: those of the table that is printed */
	size_t nr;
};

static int by_waste(const void *pa, const void *pb)
{
	const struct ttmon_mt_site_group *a = pa, *b = pb;

	return ttmon_mt_row_order(a->all, b->all) ?: (a->row > b->row) - (a->row < b->row);
}

static int get_sites(const struct ttmon_mt_report *r, struct sites *s)
{
	const struct ttmon_mt_site_group *groups = NULL;
	int err = r->args->all ? 0 : ttmon_mt_an_groups(r->an, r->dict, &groups, &s->nr);

	if (err)
		return err;
	if (!groups)
		s->nr = r->nr_sites;
	s->all = calloc(s->nr + 1, sizeof(*s->all));
	s->of = calloc(s->nr + 1, sizeof(*s->of));
	if (!s->all || !s->of)
		return -ENOMEM;
	for (size_t i = 0; i < s->nr; i++)
		s->all[i] = groups ? groups[i] : (struct ttmon_mt_site_group){ 0, 1, r->sites[i] };
	if (groups)
		qsort(s->all, s->nr, sizeof(*s->all), by_waste);
	return 0;
}

static void sites_fini(struct sites *s)
{
	free(s->all);
	free(s->of);
}

/* Those of a kind, into s->of; returns how many. */
static size_t choose(struct sites *s, bool (*want)(const struct ttmon_mt_site_row *))
{
	size_t n = 0;

	for (size_t i = 0; i < s->nr; i++)
		if (want(s->all[i].all))
			s->of[n++] = s->all[i];
	return n;
}

/* Below a title: text, and what xN is where one of n rows has it. */
static void explain(const struct sites *s, size_t n, const char *text, FILE *out, size_t width)
{
	char all[600];
	size_t i;

	for (i = 0; i < n && s->of[i].nr == 1; i++)
		;
	snprintf(all, sizeof(all), "%s%s%s", text, *text && i < n ? " " : "",
		 i < n ? "xN: N instructions of that line that do the same, -a shows each." : "");
	if (*all)
		ttmon_mt_wrap(out, all, 0, 0, width);
}

static void memory_sites(const struct ttmon_mt_report *r, struct sites *sites, FILE *out, size_t width)
{
	static const char *const heads[] = { "SHARE", "REQUESTS", "SECT/REQ", "IDEAL",	 "LINES",
					     "EFF",   "LANES",	  "<PATTERN", "<OPCODE", "<WHERE" };
	struct ttmon_mt_grid t = { .heads = heads, .cols = ARRAY_SIZE(heads) };
	uint64_t all = ttmon_mt_an_total(r->an, TTMON_MT_GENERIC)->sectors;
	size_t n = choose(sites, has_sectors);
	struct text x;
	char text[96];

	if (!n)
		return;
	n = rows(r, out, width, "SITES of global and local memory", "most sectors that could be saved", n);
	explain(sites, n,
		r->args->requested
			? "SHARE: of all sectors. Of a request: 32-byte sectors, the ideal number (of its lanes x width), 128-byte lines, lanes. "
			  "EFF: bytes requested / (32 x sectors), more than 100% where lanes overlap."
			: "SHARE: of all sectors. Of a request: 32-byte sectors, the ideal number (of its distinct bytes), 128-byte lines, lanes. "
			  "EFF: distinct bytes / (32 x sectors).",
		out, width);
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_mt_sums *s = &sites->of[i].all->sums;

		ttmon_mt_grid_put(&t, "%s", PERCENT(x.a, share(s->sectors, all)));
		ttmon_mt_grid_put(&t, "%s", COUNT(x.a, s->requests));
		ttmon_mt_grid_put(&t, "%s", PER(x.a, s->sectors, s->requests));
		ttmon_mt_grid_put(&t, "%s", PER(x.a, r->args->requested ? s->ideal_lanes : s->ideal, s->requests));
		ttmon_mt_grid_put(&t, "%s", PER(x.a, s->lines, s->requests));
		ttmon_mt_grid_put(&t, "%s", PERCENT(x.a, ttmon_mt_efficiency(s, r->args->requested)));
		ttmon_mt_grid_put(&t, "%s%s", PER(x.a, s->lanes, s->requests), s->inferred ? "?" : "");
		pattern(s, text, sizeof(text));
		ttmon_mt_grid_put(&t, "%s", text);
		put_where(&t, r, &sites->of[i]);
	}
	ttmon_mt_grid_print(&t, out, width);
}

static void shared_sites(const struct ttmon_mt_report *r, struct sites *sites, FILE *out, size_t width)
{
	static const char *const heads[] = { "SHARE", "REQUESTS", "WAVES/REQ", "IDEAL",	  "MOST",
					     "CONFL", "LANES",	  "<PATTERN",  "<OPCODE", "<WHERE" };
	struct ttmon_mt_grid t = { .heads = heads, .cols = ARRAY_SIZE(heads) };
	uint64_t all = ttmon_mt_an_total(r->an, TTMON_MT_SHARED)->waves;
	size_t n = choose(sites, is_shared);
	struct text x;
	char text[96];

	if (!n)
		return;
	n = rows(r, out, width, "SITES of shared memory", "most wavefronts that could be saved", n);
	explain(sites, n,
		"SHARE: of all wavefronts. Of a request: wavefronts, the ideal number, the most that one took, bank conflicts (wavefronts more than its "
		"width needs), lanes.",
		out, width);
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_mt_sums *s = &sites->of[i].all->sums;

		ttmon_mt_grid_put(&t, "%s", PERCENT(x.a, share(s->waves, all)));
		ttmon_mt_grid_put(&t, "%s", COUNT(x.a, s->requests));
		ttmon_mt_grid_put(&t, "%s", PER(x.a, s->waves, s->requests));
		ttmon_mt_grid_put(&t, "%s", PER(x.a, s->ideal_waves, s->requests));
		ttmon_mt_grid_put(&t, "%s", s->records ? COUNT(x.a, s->max_waves) : "-");
		ttmon_mt_grid_put(&t, "%s",
				  s->records ? PER(x.a, s->waves - MIN(s->phases, s->waves), s->requests) : "-");
		ttmon_mt_grid_put(&t, "%s%s", PER(x.a, s->lanes, s->requests), s->inferred ? "?" : "");
		pattern(s, text, sizeof(text));
		ttmon_mt_grid_put(&t, "%s", text);
		put_where(&t, r, &sites->of[i]);
	}
	ttmon_mt_grid_print(&t, out, width);
}

static void atomic_sites(const struct ttmon_mt_report *r, struct sites *sites, FILE *out, size_t width)
{
	static const char *const heads[] = { "REQUESTS", "LANES", "ON ONE WORD", "MOST", "<OPCODE", "<WHERE" };
	struct ttmon_mt_grid t = { .heads = heads, .cols = ARRAY_SIZE(heads) };
	size_t n = choose(sites, is_atomic);
	struct text x;

	if (!n)
		return;
	n = rows(r, out, width,
		 "ATOMICS and reductions: lanes of a request that meet on one word, on average and at most",
		 "most sectors that could be saved", n);
	explain(sites, n, "", out, width);
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_mt_sums *s = &sites->of[i].all->sums;

		ttmon_mt_grid_put(&t, "%s", COUNT(x.a, s->requests));
		ttmon_mt_grid_put(&t, "%s%s", PER(x.a, s->lanes, s->requests), s->inferred ? "?" : "");
		ttmon_mt_grid_put(&t, "%s", PER(x.a, s->same, s->records));
		ttmon_mt_grid_put(&t, "%u", s->max_same);
		put_where(&t, r, &sites->of[i]);
	}
	ttmon_mt_grid_print(&t, out, width);
}

static void launches(const struct ttmon_mt_report *r, FILE *out, size_t width)
{
	static const char *const heads[] = { "LAUNCH",	"<GRID", "<BLOCK", "REQUESTS",	  "SECTORS", "EFF",
					     "TOUCHED", "AGAIN", "SHARED", "WAVES/IDEAL", "<KERNEL" };
	struct ttmon_mt_grid t = { .heads = heads, .cols = ARRAY_SIZE(heads) };
	struct text x;
	size_t n;

	if (!r->nr_launches)
		return;
	n = rows(r, out, width, "LAUNCHES", "most sectors", r->nr_launches);
	ttmon_mt_wrap(
		out,
		"TOUCHED: distinct sectors of global memory, AGAIN: of these, also touched by the launch before. SHARED: requests of shared memory. A * behind the number: only some of its blocks were recorded.",
		0, 0, width);
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_mt_launch_row *row = r->launches[i];
		const struct ttmon_mt_launch *l =
			row->launch < r->dict->nr_launches ? &r->dict->launches[row->launch] : NULL;
		_cleanup_free_ char *name = l ? ttmon_mt_short_name(l->kernel) : NULL;
		const struct ttmon_mt_sums *g = &row->global, *s = &row->shared;
		uint64_t requests = g->requests + s->requests + row->local.requests;

		if (l)
			ttmon_mt_grid_put(&t, "%" PRIu64 "%s", l->id, l->flags & TTMON_MT_LAUNCH_SAMPLED ? "*" : "");
		else
			ttmon_mt_grid_put(&t, "others");
		for (unsigned int k = 0; k < 2; k++) {
			const uint32_t *d = l ? k ? l->block : l->grid : NULL;

			if (d && d[0])
				ttmon_mt_grid_put(&t, "%u,%u,%u", d[0], d[1], d[2]);
			else
				ttmon_mt_grid_put(&t, "?");
		}
		ttmon_mt_grid_put(&t, "%s", COUNT(x.a, requests));
		ttmon_mt_grid_put(&t, "%s", COUNT(x.a, g->sectors + row->local.sectors));
		ttmon_mt_grid_put(&t, "%s", PERCENT(x.a, ttmon_mt_efficiency(g, r->args->requested)));
		ttmon_mt_grid_put(&t, "%s%s", row->estimate ? "~" : "",
				  g->records ? BYTES(x.a, row->sectors * TTMON_MT_SECTOR) : "-");
		ttmon_mt_grid_put(&t, "%s", PERCENT(x.a, share(row->again, row->sectors)));
		ttmon_mt_grid_put(&t, "%s", COUNT(x.a, s->requests));
		ttmon_mt_grid_put(&t, "%s", PER(x.a, s->waves, s->ideal_waves));
		ttmon_mt_grid_put(&t, "%s", name ? name : "");
	}
	ttmon_mt_grid_print(&t, out, width);
}

static uint64_t sum_kinds(const struct ttmon_mt_kernel_row *k, unsigned int spaces, unsigned int kinds)
{
	uint64_t sum = 0;

	for (unsigned int s = 0; s < TTMON_MT_SPACE_MAX; s++)
		for (unsigned int i = 0; i < TTMON_MT_KIND_MAX; i++)
			if (spaces >> s & 1 && kinds >> i & 1)
				sum += k->requests[s][i];
	return sum;
}

static void kernels(const struct ttmon_mt_report *r, FILE *out, size_t width)
{
	static const char *const heads[] = { "LAUNCHES", "REQUESTS", "LOAD",  "STORE",	 "ATOMIC", "COPY",
					     "SHARED",	 "LOCAL",    "OTHER", "<WIDTHS", "EFF",	   "<KERNEL" };
	static const unsigned int bytes[] = { 1, 2, 4, 8, 16, 32 };
	const unsigned int global = 1u << TTMON_MT_GENERIC | 1u << TTMON_MT_GLOBAL, every = ~0u;
	const unsigned int atomics = 1u << TTMON_MT_ATOM | 1u << TTMON_MT_RED,
			   copies = 1u << TTMON_MT_COPY_SRC | 1u << TTMON_MT_COPY_DST;
	struct ttmon_mt_grid t = { .heads = heads, .cols = ARRAY_SIZE(heads) };
	struct text x;
	size_t n;

	if (!r->nr_kernels)
		return;
	n = rows(r, out, width, "KERNELS", "most requests", r->nr_kernels);
	ttmon_mt_wrap(
		out,
		"What their requests are: loads, stores, atomics and asynchronous copies of global memory, all of shared and of local memory; bytes a lane. EFF: of "
		"global memory.",
		0, 0, width);
	for (size_t i = 0; i < n; i++) {
		const struct ttmon_mt_kernel_row *k = r->kernels[i];
		_cleanup_free_ char *name = ttmon_mt_short_name(k->kernel);
		uint64_t all = sum_kinds(k, every, every), load = sum_kinds(k, global, 1u << TTMON_MT_LOAD);
		uint64_t store = sum_kinds(k, global, 1u << TTMON_MT_STORE), atomic = sum_kinds(k, global, atomics),
			 copy = sum_kinds(k, global, copies), shared = sum_kinds(k, 1u << TTMON_MT_SHARED, every),
			 local = sum_kinds(k, 1u << TTMON_MT_LOCAL, every);
		char text[160] = "";
		size_t len = 0;

		ttmon_mt_grid_put(&t, "%s", COUNT(x.a, k->launches));
		ttmon_mt_grid_put(&t, "%s", COUNT(x.a, all));
		ttmon_mt_grid_put(&t, "%s", PERCENT(x.a, share(load, all)));
		ttmon_mt_grid_put(&t, "%s", PERCENT(x.a, share(store, all)));
		ttmon_mt_grid_put(&t, "%s", PERCENT(x.a, share(atomic, all)));
		ttmon_mt_grid_put(&t, "%s", PERCENT(x.a, share(copy, all)));
		ttmon_mt_grid_put(&t, "%s", PERCENT(x.a, share(shared, all)));
		ttmon_mt_grid_put(&t, "%s", PERCENT(x.a, share(local, all)));
		ttmon_mt_grid_put(&t, "%s",
				  PERCENT(x.a, share(all - load - store - atomic - copy - shared - local, all)));
		for (size_t w = 0; w < ARRAY_SIZE(k->widths) && len < sizeof(text); w++) {
			if (!k->widths[w])
				continue;
			if (w < ARRAY_SIZE(bytes))
				len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%u", len ? " " : "",
							bytes[w]);
			else
				len += (size_t)snprintf(text + len, sizeof(text) - len, "%s*", len ? " " : "");
			if (k->widths[w] != all && len < sizeof(text))
				len += (size_t)snprintf(text + len, sizeof(text) - len, ":%s%.0f%%",
							k->widths[w] * 200 < all ? "<" : "",
							MAX(100 * share(k->widths[w], all), 1));
		}
		ttmon_mt_grid_put(&t, "%s", text);
		ttmon_mt_grid_put(&t, "%s", PERCENT(x.a, ttmon_mt_efficiency(&k->sums, r->args->requested)));
		ttmon_mt_grid_put(&t, "%s", name ? name : "?");
	}
	ttmon_mt_grid_print(&t, out, width);
}

/* An allocation's memory was allocated for kernels that ran, and none touched it: said by the findings; here as a sum. */
static void untouched(const struct ttmon_mt_report *r, FILE *out)
{
	uint64_t n = 0, bytes = 0;
	size_t nr = 0;
	const struct ttmon_mt_alloc *allocs = r->map ? ttmon_mt_map_get(r->map, &nr) : NULL;
	struct text x;

	for (size_t i = 0; i < r->nr_findings; i++) {
		if (r->findings[i].what != TTMON_MT_FIND_UNTOUCHED || r->findings[i].row >= nr)
			continue;
		n++;
		bytes += allocs[r->findings[i].row].size;
	}
	if (n)
		fprintf(out, "never touched: %s allocations of %s: see the findings\n", COUNT(x.a, n),
			BYTES(x.b, bytes));
}

static void put_buffer(struct ttmon_mt_grid *t, const struct ttmon_mt_report *r, const struct ttmon_mt_buffer_row *b)
{
	size_t nr = 0;
	const struct ttmon_mt_alloc *allocs = r->map ? ttmon_mt_map_get(r->map, &nr) : NULL;
	const struct ttmon_mt_alloc *a = b->alloc < nr ? &allocs[b->alloc] : NULL;
	uint64_t first = b->first_launch < r->dict->nr_launches ? r->dict->launches[b->first_launch].id : UINT64_MAX;
	uint64_t last = b->last_launch < r->dict->nr_launches ? r->dict->launches[b->last_launch].id : UINT64_MAX;
	struct text x;
	char what[200];

	ttmon_mt_grid_put(t, "%s", COUNT(x.a, b->sums.sectors));
	ttmon_mt_grid_put(t, "%s", COUNT(x.a, b->sums.reads));
	ttmon_mt_grid_put(t, "%s", COUNT(x.a, b->sums.writes));
	ttmon_mt_grid_put(t, "%s", PERCENT(x.a, ttmon_mt_efficiency(&b->sums, r->args->requested)));
	ttmon_mt_grid_put(t, "%s%s", b->estimate ? "~" : "", BYTES(x.a, b->sectors * TTMON_MT_SECTOR));
	ttmon_mt_grid_put(t, "%s",
			  PERCENT(x.a, b->size ? MIN((double)b->sectors * TTMON_MT_SECTOR / (double)b->size, 1) : -1));
	if (first == UINT64_MAX)
		ttmon_mt_grid_put(t, "?");
	else if (first == last)
		ttmon_mt_grid_put(t, "%" PRIu64, first);
	else
		ttmon_mt_grid_put(t, "%" PRIu64 "-%" PRIu64, first, last);
	ttmon_mt_grid_put(t, "%s", a ? COUNT(x.a, a->copies) : "-");
	ttmon_mt_grid_put(t, "%s", BYTES(x.a, b->size));
	ttmon_mt_grid_put(t, "%s%s", ttmon_mt_mem_name(a ? a->mem : TTMON_MT_MEM_UNKNOWN), b->ambiguous ? "?" : "");
	if (!b->addr && !b->size)
		ttmon_mt_grid_put(t, "others");
	else if (!a)
		ttmon_mt_grid_put(t, "0x%" PRIx64, b->addr);
	else
		ttmon_mt_grid_put(t, "0x%" PRIx64 "  %s", b->addr,
				  ttmon_fmt_text(what, sizeof(what),
						 *a->name   ? a->name
						 : *a->site ? a->site
							    : a->id));
}

static void buffers(const struct ttmon_mt_report *r, FILE *out, size_t width)
{
	static const char *const heads[] = { "SECTORS",	  "READS",  "WRITES", "EFF",	 "TOUCHED", "COVER",
					     "<LAUNCHES", "COPIES", "SIZE",   "<MEMORY", "<BUFFER" };
	struct ttmon_mt_grid t = { .heads = heads, .cols = ARRAY_SIZE(heads) };
	size_t n;

	if (!r->nr_buffers) {
		untouched(r, out);
		return;
	}
	n = rows(r, out, width,
		 r->map ? "BUFFERS"
			: "BUFFERS: ranges of 2 MiB that were touched; --db or --live names the allocations",
		 "most sectors", r->nr_buffers);
	ttmon_mt_wrap(
		out,
		"READS, WRITES: requests. TOUCHED: distinct sectors, COVER: of the size. COPIES: transfers of it. A ? behind the memory: another allocation had these addresses too.",
		0, 0, width);
	for (size_t i = 0; i < n; i++)
		put_buffer(&t, r, r->buffers[i]);
	ttmon_mt_grid_print(&t, out, width);
	untouched(r, out);
}

void ttmon_mt_tables(const struct ttmon_mt_report *r, FILE *out, size_t width)
{
	unsigned int usual =
		TTMON_MT_SHOW_SITES | TTMON_MT_SHOW_LAUNCHES | TTMON_MT_SHOW_KERNELS | TTMON_MT_SHOW_BUFFERS;
	unsigned int show = r->args->sections ? r->args->sections : usual;
	_cleanup_(sites_fini) struct sites sites = { 0 };

	if (show & TTMON_MT_SHOW_SITES && get_sites(r, &sites)) {
		fputs("\nout of memory for the sites\n", out);
	} else if (show & TTMON_MT_SHOW_SITES) {
		memory_sites(r, &sites, out, width);
		shared_sites(r, &sites, out, width);
		atomic_sites(r, &sites, out, width);
	}
	if (show & TTMON_MT_SHOW_LAUNCHES)
		launches(r, out, width);
	if (show & TTMON_MT_SHOW_KERNELS)
		kernels(r, out, width);
	if (show & TTMON_MT_SHOW_BUFFERS)
		buffers(r, out, width);
}
