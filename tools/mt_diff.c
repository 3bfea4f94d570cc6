// SPDX-License-Identifier: GPL-2.0-only
/*
 * mt_diff.c: `ttmon memtrace diff A B`: two runs site by site. A site of B is one of A that has the same kernel, space and kind of access, and, surest first,
 * the same opcode and place; the same opcode and source line; the same source line (an access that became wider); the same opcode alone; and of those that
 * are left, where there are as many on both sides, the same kind alone (an access that became wider, without source lines). Of several that are alike the first
 * one of B is the first one of A, and so on.
 */
#include <inttypes.h>
#include <locale.h>

#include "io/jsonw.h"
#include "tools/cmds.h"
#include "tools/mt.h"
#include "tools/mt_tool.h"
#include "tools/show.h"

static const char usage[] =
	"usage: ttmon memtrace diff [OPTIONS] A B\n\n"
	"What two traces say of the same instructions: what became better, what worse, what is new and what is gone.\n\n"
	"  -n, --lines N       rows of the table (20), 0: all of them\n"
	"  -a, --all           all rows, also of sites that cost the same\n"
	"      --kernel GLOB   kernels whose name is like this alone\n"
	"      --launch A-B    these launches alone, by their ids: A, A-B, A- or -B\n"
	"      --space LIST    accesses to generic,global,shared,local alone; global: generic ones too\n"
	"      --efficiency unique|requested\n"
	"                      of distinct bytes (unless it is given), or of all that lanes asked for\n"
	"      --opcodes FILE  names of the opcodes of raw records: lines ID OPCODE\n"
	"  -j, --json          for programs\n"
	"      --exit-code     exit status 1 where a figure differs\n"
	"  -h, --help          this text\n";

enum how { HOW_EXACT, HOW_LINE, HOW_SOURCE, HOW_OPCODE, HOW_KIND, HOWS };
static const char *const how_names[HOWS] = { "exact", "line", "source", "opcode", "kind" };

enum verdict { SAME, BETTER, WORSE, NEW, GONE };
static const char *const verdict_names[] = { "same", "better", "worse", "new", "gone" };

struct item {
	const struct ttmon_mt_site_row *row;
	const struct ttmon_mt_site *site;
	uint64_t launches; /* of its kernel; 0: not known */
	uint32_t sample;   /* one block in so many was recorded: its figures stand for so many times as much */
	struct item *other;
	enum how how;
};

struct side {
	const char *path;
	struct ttmon_mt_in *in;
	struct ttmon_mt_an *an;
	struct ttmon_mt_pick pick;
	struct item *items;
	size_t nr;
	bool interrupted;
	int err;
};

struct pair {
	const struct item *a, *b; /* one may be NULL */
	enum verdict verdict;
	bool differs;
	bool of_request; /* the launches of one are not known, or not the same share of its blocks: the cost of a request was compared */
	double change; /* of the cost of all launches of A (of B where it is new), to sort by */
};

static void side_fini(struct side *s)
{
	ttmon_mt_an_free(s->an);
	ttmon_mt_in_free(s->in);
	ttmon_mt_pick_fini(&s->pick);
	free(s->items);
}

/* ---- reading ---- */

static int take(void *ctx, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *recs, size_t n)
{
	struct side *s = ctx;
	int err = ttmon_mt_an_feed(s->an, dict, recs, n);

	if (err)
		fprintf(stderr, "ttmon memtrace diff: %s: %s\n", s->path, strerror(-err));
	return err;
}

static int by_name(const void *pa, const void *pb)
{
	const struct ttmon_mt_kernel_row *const *a = pa, *const *b = pb;

	return strcmp((*a)->kernel, (*b)->kernel);
}

/* Launches that were recorded, where sums of the GPU do not say of which of them they are. */
static uint64_t recorded(const struct ttmon_mt_dict *dict, const char *kernel)
{
	for (size_t i = 0; i < dict->nr_kernels; i++)
		if (!strcmp(dict->kernels[i].name, kernel))
			return dict->kernels[i].recorded;
	return 0;
}

static uint32_t sample_of(const struct side *s)
{
	return MAX(ttmon_mt_in_stats(s->in)->sample, 1u);
}

static int make_items(struct side *s)
{
	const struct ttmon_mt_dict *dict = ttmon_mt_in_dict(s->in);
	size_t nr_kernels = 0;
	const struct ttmon_mt_kernel_row *kernels = ttmon_mt_an_kernels(s->an, &nr_kernels);
	const struct ttmon_mt_site_row *rows = ttmon_mt_an_sites(s->an, &s->nr);
	_cleanup_free_ const struct ttmon_mt_kernel_row **sorted = calloc(nr_kernels + 1, sizeof(*sorted));

	s->items = calloc(s->nr + 1, sizeof(*s->items));
	if (!s->items || !sorted)
		return -ENOMEM;
	for (size_t i = 0; i < nr_kernels; i++)
		sorted[i] = &kernels[i];
	if (nr_kernels)
		qsort((void *)sorted, nr_kernels, sizeof(*sorted), by_name);
	for (size_t i = 0; i < s->nr; i++) {
		const struct ttmon_mt_site *site = ttmon_mt_row_site(dict, &rows[i]);
		const struct ttmon_mt_kernel_row key = { .kernel = site->kernel }, *at = &key;
		const struct ttmon_mt_kernel_row **found =
			bsearch(&at, (void *)sorted, nr_kernels, sizeof(*sorted), by_name);

		s->items[i] = (struct item){ .row = &rows[i],
					     .site = site,
					     .launches = found && (*found)->launches ? (*found)->launches
										     : recorded(dict, site->kernel),
					     .sample = sample_of(s) };
	}
	return 0;
}

static int read_side(const struct ttmon_mt_args *args, struct side *s)
{
	struct ttmon_mt_an_opts opts = { .reuse = TTMON_MT_REUSE_OFF, .ctx = &s->pick };
	struct ttmon_mt_read read = { .args = args, .path = s->path, .take = take, .ctx = s };
	int err;

	s->pick = args->pick;
	opts.want = ttmon_mt_pick_is_all(&s->pick) ? NULL : ttmon_mt_pick_want;
	err = ttmon_mt_an_new(&opts, &s->an);
	if (!err) {
		s->err = ttmon_mt_read(&read, &s->in, &s->interrupted);
		if (!s->in)
			return s->err;
		ttmon_mt_an_stats(s->an, ttmon_mt_in_stats(s->in));
		err = ttmon_mt_an_settle(s->an, ttmon_mt_in_dict(s->in));
		ttmon_mt_pick_say(&s->pick, args->name, s->path);
	}
	err = err ?: make_items(s);
	if (err)
		fprintf(stderr, "ttmon %s: %s: %s\n", args->name, s->path, strerror(-err));
	return err;
}

/* ---- matching ---- */

static int compare(const struct item *a, const struct item *b, enum how how)
{
	int c = strcmp(a->site->kernel, b->site->kernel) ?: (int)a->row->space - b->row->space ?: (int)a->row->kind - b->row->kind;

	if (!c && how != HOW_SOURCE && how != HOW_KIND)
		c = strcmp(a->site->opcode, b->site->opcode);
	if (!c && how < HOW_OPCODE)
		c = strcmp(a->site->file, b->site->file)
			    ?: (a->site->line > b->site->line) - (a->site->line < b->site->line);
	if (!c && how == HOW_EXACT)
		c = (a->site->pc > b->site->pc) - (a->site->pc < b->site->pc);
	return c;
}

/* Equal ones in the order of the trace. */
static int by_key(const void *pa, const void *pb, void *how)
{
	const struct item *a = *(const struct item *const *)pa, *b = *(const struct item *const *)pb;

	return compare(a, b, *(const enum how *)how) ?: (a > b) - (a < b);
}

/* Those that have no partner yet, in order; a source line only where there is one. */
static size_t gather(struct side *s, enum how how, struct item **to)
{
	size_t n = 0;

	for (size_t i = 0; i < s->nr; i++)
		if (!s->items[i].other && (s->items[i].site->line || (how != HOW_LINE && how != HOW_SOURCE)))
			to[n++] = &s->items[i];
	qsort_r(to, n, sizeof(*to), by_key, &how);
	return n;
}

/* How many of n, from the first on, have its key. */
static size_t alike(struct item *const *of, size_t n, enum how how)
{
	size_t k = 1;

	while (k < n && !compare(of[0], of[k], how))
		k++;
	return k;
}

static void match(struct side *a, struct side *b, enum how how, struct item **of_a, struct item **of_b)
{
	size_t na = gather(a, how, of_a), nb = gather(b, how, of_b);

	for (size_t i = 0, k = 0; i < na && k < nb;) {
		int c = compare(of_a[i], of_b[k], how);
		size_t ai = alike(of_a + i, na - i, how), bk = alike(of_b + k, nb - k, how);

		for (size_t n = 0; !c && n < MIN(ai, bk) && (how != HOW_KIND || ai == bk); n++) {
			of_a[i + n]->other = of_b[k + n];
			of_b[k + n]->other = of_a[i + n];
			of_a[i + n]->how = of_b[k + n]->how = how;
		}
		i += c <= 0 ? ai : 0;
		k += c >= 0 ? bk : 0;
	}
}

/* ---- comparing ---- */

static bool is_shared(const struct item *i)
{
	return i->row->space == TTMON_MT_SHARED;
}

static uint64_t cost(const struct item *i)
{
	return is_shared(i) ? i->row->sums.waves : i->row->sums.sectors;
}

/* Where launches are not known, of all of them together. */
static double per_launch(const struct item *i)
{
	return (double)cost(i) * i->sample / (double)MAX(i->launches, 1u);
}

static double per_request(const struct item *i)
{
	return i->row->sums.requests ? (double)cost(i) / (double)i->row->sums.requests : 0;
}

/* What verdicts are of: the cost of a launch, or of a request. */
static double compared(const struct pair *p, const struct item *i)
{
	return p->of_request ? per_request(i) : per_launch(i);
}

static double efficiency(const struct item *i, bool requested)
{
	const struct ttmon_mt_sums *s = &i->row->sums;

	if (!is_shared(i))
		return ttmon_mt_efficiency(s, requested);
	return s->waves ? (double)s->ideal_waves / (double)s->waves : -1;
}

static bool sums_differ(const struct ttmon_mt_sums *a, const struct ttmon_mt_sums *b)
{
	return a->requests != b->requests || a->lanes != b->lanes || a->bytes != b->bytes || a->unique != b->unique ||
	       a->sectors != b->sectors || a->lines != b->lines || a->ideal != b->ideal || a->waves != b->waves ||
	       a->ideal_waves != b->ideal_waves || a->same != b->same || a->reads != b->reads || a->writes != b->writes;
}

static void judge(struct pair *p)
{
	const struct item *any = p->a ? p->a : p->b;
	/* The last block of many, of which not all lanes work, weighs more among few. */
	double before, now, slack = p->a && p->b && p->a->sample != p->b->sample ? 0.1 : 0.01;

	/* Some blocks are not all of them divided by so many, and of few blocks far from it. */
	p->of_request = p->a && p->b && (!p->a->launches != !p->b->launches || p->a->sample != p->b->sample);
	before = p->a ? compared(p, p->a) : 0;
	now = p->b ? compared(p, p->b) : 0;
	p->change = (now - before) *
		    (double)(p->of_request ? any->row->sums.requests * any->sample : MAX(any->launches, 1u));
	p->differs = !p->a || !p->b || sums_differ(&p->a->row->sums, &p->b->row->sums);
	if (!p->a)
		p->verdict = NEW;
	else if (!p->b)
		p->verdict = GONE;
	else
		p->verdict = now < before * (1 - slack) ? BETTER : now > before * (1 + slack) ? WORSE : SAME;
}

/* What changed most first; what is alike keeps its order. */
static int by_change(const void *pa, const void *pb)
{
	const struct pair *a = pa, *b = pb;
	double x = a->change < 0 ? -a->change : a->change, y = b->change < 0 ? -b->change : b->change;
	const struct item *ia = a->a ? a->a : a->b, *ib = b->a ? b->a : b->b;

	return (x < y) - (x > y) ?: (a->verdict == SAME) - (b->verdict == SAME) ?: (!a->a) - (!b->a) ?: (ia > ib) - (ia < ib);
}

static size_t make_pairs(struct side *a, struct side *b, struct pair *pairs)
{
	size_t n = 0;

	for (size_t i = 0; i < a->nr; i++)
		pairs[n++] = (struct pair){ .a = &a->items[i], .b = a->items[i].other };
	for (size_t i = 0; i < b->nr; i++)
		if (!b->items[i].other)
			pairs[n++] = (struct pair){ .b = &b->items[i] };
	for (size_t i = 0; i < n; i++)
		judge(&pairs[i]);
	if (n)
		qsort(pairs, n, sizeof(*pairs), by_change);
	return n;
}

/* ---- text ---- */

static void say_side(const struct side *s, const char *name)
{
	const struct ttmon_mt_stats *st = ttmon_mt_in_stats(s->in);
	char path[200], tool[80], count[TTMON_FMT_LEN], lack[TTMON_FMT_LEN];

	printf("%s: %s: %s, %s record%s", name,
	       strcmp(s->path, "-") ? ttmon_fmt_text(path, sizeof(path), s->path) : "standard input",
	       *st->tool ? ttmon_fmt_text(tool, sizeof(tool), st->tool) : "a trace",
	       ttmon_fmt_count(count, sizeof(count), st->records), st->records == 1 ? "" : "s");
	if (st->dropped)
		printf(", %s dropped", ttmon_fmt_count(lack, sizeof(lack), st->dropped));
	if (st->malformed)
		printf(", %s malformed", ttmon_fmt_count(lack, sizeof(lack), st->malformed));
	if (st->sample > 1)
		printf(", one block in %u, which below count as all", st->sample);
	if (st->inferred)
		printf(", lanes of %s inferred", ttmon_fmt_count(lack, sizeof(lack), st->inferred));
	puts(s->err ? ", ended by an error" : s->interrupted ? ", interrupted" : st->cut ? ", cut off" : "");
}

/* Launches with records; else those that were recorded; 0: not known. */
static uint64_t launches_of(const struct side *s)
{
	const struct ttmon_mt_dict *dict = ttmon_mt_in_dict(s->in);
	uint64_t sum = 0;
	size_t n = 0;

	ttmon_mt_an_launches(s->an, &n);
	for (size_t i = 0; i < dict->nr_kernels && !n; i++)
		sum += dict->kernels[i].recorded;
	return n ? n : sum;
}

/* a, b: less than 0 where not known. */
static void put_total(struct ttmon_mt_grid *t, const char *what, double a, double b, bool share)
{
	char x[TTMON_FMT_LEN];

	for (unsigned int k = 0; k < 2; k++) {
		double v = k ? b : a;

		ttmon_mt_grid_put(t, "%s",
				  share || v < 0 ? ttmon_mt_percent(x, sizeof(x), v)
						 : ttmon_fmt_count(x, sizeof(x), (uint64_t)v));
	}
	if (share || !(a > 0) || b < 0)
		ttmon_mt_grid_put(t, "-");
	else
		ttmon_mt_grid_put(t, "%+.1f%%", 100 * (b - a) / a);
	ttmon_mt_grid_put(t, "%s", what);
}

static void say_totals(const struct side *a, const struct side *b, bool requested, size_t width)
{
	static const char *const heads[] = { "A", "B", "CHANGE", "<TOTAL" };
	struct ttmon_mt_grid t = { .heads = heads, .cols = ARRAY_SIZE(heads) };
	const struct ttmon_mt_sums *x = ttmon_mt_an_total(a->an, TTMON_MT_GENERIC),
				   *y = ttmon_mt_an_total(b->an, TTMON_MT_GENERIC);
	struct ttmon_mt_sums memory[2];
	uint64_t la = launches_of(a), lb = launches_of(b);
	uint32_t sa = sample_of(a), sb = sample_of(b);

	ttmon_mt_memory(a->an, &memory[0]);
	ttmon_mt_memory(b->an, &memory[1]);
	put_total(&t, "launches", la ? (double)la : -1, lb ? (double)lb : -1, false);
	put_total(&t, "requests", (double)x->requests * sa, (double)y->requests * sb, false);
	put_total(&t, "sectors of 32 bytes", (double)x->sectors * sa, (double)y->sectors * sb, false);
	put_total(&t, requested ? "efficiency, of requested bytes" : "efficiency, of distinct bytes",
		  ttmon_mt_efficiency(&memory[0], requested), ttmon_mt_efficiency(&memory[1], requested), true);
	put_total(&t, "wavefronts of shared memory", (double)x->waves * sa, (double)y->waves * sb, false);
	putchar('\n');
	ttmon_mt_grid_print(&t, stdout, width);
}

static void put_both(struct ttmon_mt_grid *t, const char *a, const char *b)
{
	ttmon_mt_grid_put(t, "%s", a);
	ttmon_mt_grid_put(t, "%s", b);
}

static void put_pair(struct ttmon_mt_grid *t, const struct pair *p, bool requested)
{
	const struct item *sides[2] = { p->a, p->b }, *any = p->b ? p->b : p->a;
	_cleanup_free_ char *name = ttmon_mt_short_name(any->site->kernel);
	char x[3][2][TTMON_FMT_LEN], place[200], op[2][100];

	for (unsigned int k = 0; k < 2; k++) {
		const struct item *i = sides[k];

		ttmon_mt_percent(x[2][k], TTMON_FMT_LEN, i ? efficiency(i, requested) : -1);
		ttmon_mt_per(x[1][k], TTMON_FMT_LEN, i ? cost(i) : 0, i ? i->row->sums.requests : 0);
		if (i)
			ttmon_fmt_count(x[0][k], TTMON_FMT_LEN, (uint64_t)(per_launch(i) + 0.5));
		else
			snprintf(x[0][k], TTMON_FMT_LEN, "-");
		ttmon_fmt_text(op[k], sizeof(op[k]), i ? i->site->opcode : "");
	}
	ttmon_mt_grid_put(t, "%s", verdict_names[p->verdict]);
	if (p->a && p->b && cost(p->a))
		ttmon_mt_grid_put(t, "%+.1f%%", 100 * (compared(p, p->b) / compared(p, p->a) - 1));
	else
		ttmon_mt_grid_put(t, "-");
	ttmon_mt_grid_put(t, "%s", is_shared(any) ? "waves" : "sectors");
	for (unsigned int i = 0; i < ARRAY_SIZE(x); i++)
		put_both(t, x[i][0], x[i][1]);
	ttmon_mt_place(any->site, place, sizeof(place));
	ttmon_mt_grid_put(
		t, "%s%s%s  %s%s%s%s", p->a ? op[0] : op[1], p->a && p->b && strcmp(op[0], op[1]) ? " -> " : "",
		p->a && p->b && strcmp(op[0], op[1]) ? op[1] : "", place, *place ? "  " : "", name ? name : "?",
		p->of_request					   ? " (of a request)"
		: p->a && p->b && p->a->launches != p->b->launches ? " (other number of launches)"
								   : "");
}

static void say_pairs(const struct pair *pairs, size_t n, const struct ttmon_mt_args *args, size_t width)
{
	static const char *const heads[] = { "<",     "CHANGE", "<COST", "A",	  "B",
					     "A/REQ", "B/REQ",	"A EFF", "B EFF", "<WHERE" };
	struct ttmon_mt_grid t = { .heads = heads, .cols = ARRAY_SIZE(heads) };
	size_t of[ARRAY_SIZE(verdict_names)] = { 0 }, shown = 0, want = 0, requests = 0;

	for (size_t i = 0; i < n; i++) {
		requests += pairs[i].of_request;
		of[pairs[i].verdict]++;
		if (!args->all && pairs[i].verdict == SAME)
			continue;
		want++;
		if (shown >= args->lines)
			continue;
		shown++;
		put_pair(&t, &pairs[i], args->requested);
	}
	printf("\nSites: %zu better, %zu worse, %zu the same, %zu new, %zu gone", of[BETTER], of[WORSE], of[SAME],
	       of[NEW], of[GONE]);
	printf(shown < want ? "; the %zu that changed most:\n" : "\n", shown);
	if (!shown)
		return;
	ttmon_mt_wrap(
		stdout,
		"Cost: 32-byte sectors, or wavefronts of shared memory, of a launch on average; of a request; efficiency, of shared memory the ideal wavefronts "
		"over those taken. Within 1% is the same.",
		0, 0, width);
	if (requests)
		ttmon_mt_wrap(
			stdout,
			"(of a request): the launches of one are not known, or only one had all its blocks recorded, so that CHANGE compares the cost of a request; of some blocks against all, within 10% is the same.",
			0, 0, width);
	ttmon_mt_grid_print(&t, stdout, width);
}

/* ---- JSON ---- */

static void json_item(struct ttmon_jsonw *w, const char *key, const struct item *i, bool requested)
{
	ttmon_jsonw_key(w, key);
	if (!i) {
		ttmon_jsonw_null(w);
		return;
	}
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_str(w, "opcode", *i->site->opcode ? i->site->opcode : NULL);
	ttmon_jsonw_key_str(w, "file", *i->site->file ? i->site->file : NULL);
	ttmon_jsonw_key_known(w, "line", i->site->line, i->site->line);
	ttmon_jsonw_key_num(w, "width", i->row->width);
	ttmon_jsonw_key_known(w, "launches", i->launches, i->launches);
	ttmon_jsonw_key_num(w, "sample", i->sample);
	ttmon_jsonw_key_num(w, "cost", cost(i));
	ttmon_mt_json_figure(w, "cost_per_launch", per_launch(i));
	ttmon_mt_json_sums(w, &i->row->sums, requested);
	ttmon_jsonw_close(w, '}');
}

static int json(struct side *sides, const struct pair *pairs, size_t n, const struct ttmon_mt_args *args, bool differs)
{
	_cleanup_(ttmon_jsonw_fini) struct ttmon_jsonw w = { .fd = -1 };
	int err = ttmon_jsonw_init(&w, STDOUT_FILENO, false);

	if (err)
		return err;
	ttmon_jsonw_open(&w, '{');
	ttmon_jsonw_key_name(&w, "schema", "ttmon-memtrace-diff");
	ttmon_jsonw_key_num(&w, "version", 1);
	ttmon_jsonw_key_bool(&w, "differs", differs);
	for (unsigned int k = 0; k < 2; k++) {
		ttmon_jsonw_key(&w, k ? "b" : "a");
		ttmon_jsonw_open(&w, '{');
		ttmon_jsonw_key(&w, "source");
		ttmon_jsonw_open(&w, '{');
		ttmon_mt_json_source(&w, sides[k].path, ttmon_mt_in_stats(sides[k].in));
		ttmon_jsonw_key_bool(&w, "interrupted", sides[k].interrupted);
		ttmon_jsonw_key_bool(&w, "failed", sides[k].err != 0);
		ttmon_jsonw_close(&w, '}');
		ttmon_jsonw_key(&w, "total");
		ttmon_jsonw_open(&w, '{');
		ttmon_mt_json_total(&w, sides[k].an, args->requested);
		ttmon_jsonw_close(&w, '}');
		ttmon_jsonw_close(&w, '}');
	}
	ttmon_jsonw_key(&w, "sites");
	ttmon_jsonw_open(&w, '[');
	for (size_t i = 0; i < n && (!args->has_lines || i < args->lines); i++) {
		const struct item *any = pairs[i].b ? pairs[i].b : pairs[i].a;

		ttmon_jsonw_line(&w);
		ttmon_jsonw_open(&w, '{');
		ttmon_jsonw_key_name(&w, "verdict", verdict_names[pairs[i].verdict]);
		ttmon_jsonw_key_bool(&w, "differs", pairs[i].differs);
		ttmon_jsonw_key_name(&w, "matched_by", pairs[i].a && pairs[i].b ? how_names[any->how] : NULL);
		ttmon_jsonw_key_str(&w, "kernel", *any->site->kernel ? any->site->kernel : NULL);
		ttmon_jsonw_key_name(&w, "space", ttmon_mt_space_name(any->row->space));
		ttmon_jsonw_key_name(&w, "kind", ttmon_mt_kind_name(any->row->kind));
		ttmon_jsonw_key_name(&w, "cost", is_shared(any) ? "wavefronts" : "sectors");
		ttmon_jsonw_key_name(&w, "cost_of", pairs[i].of_request ? "request" : "launch");
		json_item(&w, "a", pairs[i].a, args->requested);
		json_item(&w, "b", pairs[i].b, args->requested);
		ttmon_jsonw_close(&w, '}');
	}
	ttmon_jsonw_close(&w, ']');
	ttmon_jsonw_close(&w, '}');
	ttmon_jsonw_end(&w);
	return ttmon_jsonw_finish(&w);
}

/* ---- the command ---- */

static int diff(const struct ttmon_mt_args *args, struct side *sides)
{
	_cleanup_free_ struct item **of_a = NULL, **of_b = NULL;
	_cleanup_free_ struct pair *pairs = NULL;
	bool differs = false;
	int err = 0;
	size_t n;

	if (read_side(args, &sides[0]) || read_side(args, &sides[1]))
		return TTMON_EXIT_ERROR;
	of_a = calloc(sides[0].nr + 1, sizeof(*of_a));
	of_b = calloc(sides[1].nr + 1, sizeof(*of_b));
	pairs = calloc(sides[0].nr + sides[1].nr + 1, sizeof(*pairs));
	if (!of_a || !of_b || !pairs) {
		fprintf(stderr, "ttmon %s: out of memory\n", args->name);
		return TTMON_EXIT_ERROR;
	}
	for (unsigned int how = 0; how < HOWS; how++)
		match(&sides[0], &sides[1], (enum how)how, of_a, of_b);
	n = make_pairs(&sides[0], &sides[1], pairs);
	for (size_t i = 0; i < n; i++)
		differs |= pairs[i].differs;
	if (args->json) {
		err = json(sides, pairs, n, args, differs);
		if (err)
			fprintf(stderr, "ttmon %s: cannot write the output: %s\n", args->name, strerror(-err));
	} else {
		say_side(&sides[0], "A");
		say_side(&sides[1], "B");
		say_totals(&sides[0], &sides[1], args->requested, ttmon_show_columns());
		say_pairs(pairs, n, args, ttmon_show_columns());
	}
	if (err || sides[0].err || sides[1].err)
		return TTMON_EXIT_ERROR;
	return args->exit_code && differs ? TTMON_EXIT_NO : 0;
}

int ttmon_mt_cmd_diff(int argc, char **argv)
{
	struct ttmon_mt_args args;
	struct side sides[2] = { 0 };
	int err = ttmon_mt_args_parse(argc, argv, TTMON_MT_DIFF, usage, &args), status;

	if (err)
		return err == -ECANCELED ? 0 : TTMON_EXIT_ERROR;
	setlocale(LC_CTYPE, "");
	for (unsigned int i = 0; i < 2; i++)
		sides[i].path = args.path[i];
	status = diff(&args, sides);
	for (unsigned int i = 0; i < 2; i++)
		side_fini(&sides[i]);
	return status;
}
