// SPDX-License-Identifier: GPL-2.0-only
/*
 * sites.c: the tables of instructions, worst first: global and local memory, shared memory, atomics,
 * and the instructions of each buffer.
 */
#include "tools/memtrace/cells.h"
#include "tools/memtrace/columns.h"
#include "tools/cli/show.h"

static bool has_sectors(const struct ttmon_mt_site_row *row)
{
	return row->space != TTMON_MT_SHARED;
}

static bool is_atomic(const struct ttmon_mt_site_row *row)
{
	return (row->kind == TTMON_MT_ATOM || row->kind == TTMON_MT_RED) && row->sums.same;
}

static bool is_shared(const struct ttmon_mt_site_row *row)
{
	return row->space == TTMON_MT_SHARED;
}

/*
 * Instructions, worst first. Those of one source line that do the same are one row, unless all are
 * requested.
 */
struct sites {
	struct ttmon_mt_site_group *all, *of; /* of: the rows of the table that is printed */
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

/* Copies the rows of a kind to s->of; returns their number. */
static size_t choose(struct sites *s, bool (*want)(const struct ttmon_mt_site_row *))
{
	size_t n = 0;

	for (size_t i = 0; i < s->nr; i++)
		if (want(s->all[i].all))
			s->of[n++] = s->all[i];
	return n;
}

static bool is_several(const struct ttmon_mt_site_group *g)
{
	return g->nr > 1;
}

/* Returns whether the row has only the counters of the GPU, as older files do. */
static bool is_plain(const struct ttmon_mt_site_group *g)
{
	double part;

	ttmon_mt_main_class(&g->all->sums, &part);
	return !(part > 0);
}

static bool any(const struct sites *s, size_t n, bool (*is)(const struct ttmon_mt_site_group *))
{
	for (size_t i = 0; i < n; i++)
		if (is(&s->of[i]))
			return true;
	return false;
}

/* Prints below a title a text, and what xN and (sums) mean if one of n rows has it. */
static void explain(const struct sites *s, size_t n, const char *text, FILE *out, size_t width)
{
	char all[800];

	snprintf(all, sizeof(all), "%s%s%s", text,
		 any(s, n, is_several) ? " xN: N instructions of that line that do the same, -a shows each." : "",
		 any(s, n, is_plain)
			 ? " (sums): no more was counted on the GPU; EFF is of requested bytes there, at most 100%."
			 : "");
	if (*all)
		ttmon_mt_wrap(out, all + (*all == ' '), 0, 0, width);
}

/* Prints the table of the rows of a kind. */
static void show_sites(const struct ttmon_mt_report *r, struct sites *sites,
		       bool (*want)(const struct ttmon_mt_site_row *), const char *title, const char *order,
		       const char *text, const char *const *names, FILE *out, size_t width)
{
	size_t n = choose(sites, want);
	_cleanup_free_ struct ttmon_mt_shown *shown = calloc(n + 1, sizeof(*shown));

	if (!n || !shown)
		return;
	n = ttmon_mt_rows(r, out, width, title, order, n);
	explain(sites, n, text, out, width);
	for (size_t i = 0; i < n; i++)
		shown[i] = (struct ttmon_mt_shown){ TTMON_MT_SHOW_SITES, sites->of[i].all, sites->of[i].nr };
	ttmon_mt_columns_text(r, shown, n, names, out, width);
}

/* ---- instructions of a buffer ---- */

#define OF_BUFFER 3 /* number of instructions of each buffer */

struct of_buffer {
	struct ttmon_mt_pair sums;
	const struct ttmon_mt_site *site;
	uint32_t nr; /* number of instructions in the row */
};

static int by_line(const void *pa, const void *pb)
{
	const struct of_buffer *a = pa, *b = pb;
	const struct ttmon_mt_site *x = a->site, *y = b->site;
	int d = strcmp(x->kernel, y->kernel) ?: strcmp(x->file, y->file);

	d = d ?: (x->line > y->line) - (x->line < y->line);
	d = d ?: strcmp(x->opcode, y->opcode);
	/* Instructions without a source line are rows of their own. */
	return d || (*x->file && x->line) ? d : (a->sums.site > b->sums.site) - (a->sums.site < b->sums.site);
}

static uint64_t saves(const struct of_buffer *i)
{
	return i->sums.sectors - MIN(i->sums.ideal, i->sums.sectors);
}

static int by_saves(const void *pa, const void *pb)
{
	const struct of_buffer *a = pa, *b = pb;
	uint64_t x = saves(a), y = saves(b);

	if (x != y)
		return x > y ? -1 : 1;
	if (a->sums.sectors != b->sums.sectors)
		return a->sums.sectors > b->sums.sectors ? -1 : 1;
	return (a->sums.site > b->sums.site) - (a->sums.site < b->sums.site);
}

/*
 * Makes the rows of a buffer, the largest savings first; instructions of one line are one row, unless
 * all are requested. Returns their number.
 */
static size_t get_of_buffer(const struct ttmon_mt_report *r, const struct ttmon_mt_pair *pairs, size_t n,
			    struct of_buffer *to)
{
	size_t nr = 0, all;
	const struct ttmon_mt_site_row *rows = ttmon_mt_an_sites(r->an, &all);

	for (size_t i = 0; i < n; i++)
		to[i] = (struct of_buffer){ pairs[i], ttmon_mt_row_site(r->dict, &rows[pairs[i].site]), 1 };
	if (!r->args->all)
		qsort(to, n, sizeof(*to), by_line);
	for (size_t i = 0; i < n; i++) {
		if (!nr || r->args->all || by_line(&to[nr - 1], &to[i])) {
			to[nr++] = to[i];
			continue;
		}
		to[nr - 1].nr++;
		to[nr - 1].sums.requests += to[i].sums.requests;
		to[nr - 1].sums.sectors += to[i].sums.sectors;
		to[nr - 1].sums.ideal += to[i].sums.ideal;
		to[nr - 1].sums.ideal_lanes += to[i].sums.ideal_lanes;
	}
	qsort(to, nr, sizeof(*to), by_saves);
	return nr;
}

static void put_of_buffer(struct ttmon_mt_grid *t, const struct ttmon_mt_report *r, const struct ttmon_mt_buffer_row *b)
{
	size_t n, all;
	const struct ttmon_mt_pair *pairs =
		ttmon_mt_an_buffer_sites(r->an, (uint32_t)(b - ttmon_mt_an_buffers(r->an, &all)), &n);
	_cleanup_free_ struct of_buffer *list = n ? calloc(n, sizeof(*list)) : NULL;
	char x[TTMON_FMT_LEN], label[200];

	if (!list)
		return;
	n = get_of_buffer(r, pairs, n, list);
	for (size_t i = 0; i < MIN(n, (size_t)OF_BUFFER); i++) {
		const struct ttmon_mt_pair *p = &list[i].sums;
		_cleanup_free_ char *where = NULL;
		char op[100];

		ttmon_mt_grid_put(t, "%s", COUNT(x, p->sectors));
		ttmon_mt_grid_put(t, "%s", COUNT(x, p->requests));
		ttmon_mt_grid_put(t, "%s", PER(x, p->sectors, p->requests));
		ttmon_mt_grid_put(t, "%s", PER(x, r->args->requested ? p->ideal_lanes : p->ideal, p->requests));
		ttmon_mt_grid_put(t, "%s", ttmon_mt_buffer_label(r, b, label, sizeof(label)));
		ttmon_mt_grid_put(t, "%s", ttmon_fmt_text(op, sizeof(op), list[i].site->opcode));
		where = ttmon_mt_where(list[i].site, list[i].nr);
		ttmon_mt_grid_put(t, "%s", where ? where : "?");
	}
}

void ttmon_mt_sites_of_buffers(const struct ttmon_mt_report *r, size_t n, FILE *out, size_t width)
{
	static const char *const heads[] = {
		"SECTORS", "REQUESTS", "SECT/REQ", "IDEAL", "<BUFFER", "<OPCODE", "<WHERE"
	};
	struct ttmon_mt_grid t = { .heads = heads, .cols = ARRAY_SIZE(heads) };

	for (size_t i = 0; i < n; i++)
		put_of_buffer(&t, r, r->buffers[i]);
	if (!t.nr)
		return;
	ttmon_mt_title(
		out,
		n > 1 ? "SITES of these buffers, at most three each, the largest possible savings of sectors first"
		      : "SITES of this buffer, at most three, the largest possible savings of sectors first",
		width);
	ttmon_mt_grid_print(&t, out, width);
}

void ttmon_mt_sites(const struct ttmon_mt_report *r, FILE *out, size_t width)
{
	static const char *const memory[] = { "share",
					      "requests",
					      "sectors_per_request",
					      "ideal",
					      "lines_per_request",
					      "efficiency",
					      "lanes_per_request",
					      "pattern",
					      "opcode",
					      "where",
					      NULL };
	static const char *const shared[] = { "share",
					      "requests",
					      "wavefronts_per_request",
					      "ideal",
					      "most",
					      "conflicts",
					      "lanes_per_request",
					      "pattern",
					      "opcode",
					      "where",
					      NULL };
	static const char *const atomics[] = {
		"requests", "lanes_per_request", "on_one_word", "max_same_word", "opcode", "where", NULL
	};
	_cleanup_(sites_fini) struct sites sites = { 0 };

	if (get_sites(r, &sites)) {
		fputs("\nout of memory for the sites\n", out);
		return;
	}
	show_sites(r, &sites, has_sectors, "SITES of global and local memory", "most sectors that could be saved",
		   r->args->requested
			   ? "SHARE: of all sectors. Of a request: 32-byte sectors, the ideal number (of its lanes x "
			     "width), "
			     "128-byte lines, lanes. EFF: bytes requested / (32 x sectors), more than 100% where lanes "
			     "overlap."
			   : "SHARE: of all sectors. Of a request: 32-byte sectors, the ideal number (of its distinct "
			     "bytes), "
			     "128-byte lines, lanes. EFF: distinct bytes / (32 x sectors).",
		   memory, out, width);
	show_sites(r, &sites, is_shared, "SITES of shared memory", "most wavefronts that could be saved",
		   "SHARE: of all wavefronts. Of a request: wavefronts, the ideal number, the most that one took, bank "
		   "conflicts (wavefronts more than its width needs), lanes.",
		   shared, out, width);
	show_sites(r, &sites, is_atomic,
		   "ATOMICS and reductions: lanes of a request that access the same word, on average and at most",
		   "most sectors that could be saved", "", atomics, out, width);
}
