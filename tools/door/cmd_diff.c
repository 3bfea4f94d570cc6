// SPDX-License-Identifier: GPL-2.0-only
/*
 * cmd_diff.c: `ttmon diff`: two databases of a program: what the second run pinned, copied and waited
 * for, and whether that is better or worse.
 *
 * A figure of a run that was not seen whole is a lower bound. Whether it became better is then said
 * only where that is certain.
 */
#include <math.h>

#include "lib/base/fmt.h"
#include "lib/demangle/runsite.h"
#include "lib/demangle/site.h"
#include "lib/read/run_pinned.h"
#include "tools/cli/cmds.h"
#include "tools/cli/show.h"

#define SITES 10

struct opts {
	bool json, exit_code;
	double tolerance; /* percent */
};

enum unit { BYTES, COUNT, TIME };
enum verdict { NEITHER, BETTER, WORSE, SAME, UNKNOWN };

struct side {
	struct ttmon_run *run;
	uint64_t peak, pins, pin_ns, pinned, pageable, unknown, host_peak; /* bytes, but pins and pin_ns */
	bool peak_least, least;
};

struct figure {
	const char *name, *key;
	enum unit unit;
	bool judged; /* less is better */
	uint64_t v[2];
	bool least[2];
	enum verdict verdict;
};

static void side_fini(struct side *s)
{
	ttmon_run_free(s->run);
}

static int load(const char *path, struct side *s)
{
	struct ttmon_run_pinned pinned;
	char why[600];

	if (ttmon_run_load(path, NULL, &s->run, why, sizeof(why))) {
		fprintf(stderr, "ttmon diff: %s\n", why);
		return TTMON_EXIT_ERROR;
	}
	if (ttmon_run_count_pinned(s->run, &pinned)) {
		fprintf(stderr, "ttmon diff: out of memory\n");
		return TTMON_EXIT_ERROR;
	}
	s->peak = pinned.peak_pages * 4096;
	s->least = s->run->at_least || !s->run->complete;
	s->peak_least = pinned.at_least || s->least;
	for (size_t i = 0; i < s->run->nr_allocs; i++) {
		const struct ttmon_run_alloc *a = &s->run->allocs[i];
		uint64_t moved = ttmon_run_moved(a);

		s->least |= a->flags & TTMON_RUN_AT_LEAST;
		if (!ttmon_run_is_host(a))
			continue;
		if (ttmon_run_pins_pages(a)) {
			s->pins++;
			s->pin_ns += a->pin_ns + a->unpin_ns;
		}
		if (ttmon_run_is_unknown(a))
			s->unknown += moved;
		else if (ttmon_run_is_pinned(a) || a->flags & TTMON_RUN_PROVED || ttmon_run_is_backing(a))
			s->pinned += moved;
		else
			s->pageable += moved;
	}
	return 0;
}

static enum verdict judge(const struct figure *f, double tolerance)
{
	double a = (double)f->v[0], b = (double)f->v[1], near = MAX(a, b) * tolerance / 100;

	if (!f->judged)
		return NEITHER;
	if (b > a + near)
		return f->least[0] ? UNKNOWN : WORSE;
	if (a > b + near)
		return f->least[1] ? UNKNOWN : BETTER;
	return f->least[0] || f->least[1] ? UNKNOWN : SAME;
}

static const char *verdict_name(enum verdict v)
{
	static const char *const names[] = { "", "better", "worse", "same", "not known" };

	return names[v];
}

static const char *value(char *buf, const struct figure *f, int i)
{
	char text[TTMON_FMT_LEN];

	switch (f->unit) {
	case BYTES:
		ttmon_fmt_bytes(text, sizeof(text), f->v[i]);
		break;
	case COUNT:
		ttmon_fmt_count(text, sizeof(text), f->v[i]);
		break;
	case TIME:
		ttmon_fmt_ns(text, sizeof(text), f->v[i]);
		break;
	}
	return ttmon_fmt_known(buf, TTMON_FMT_LEN, text, f->v[i], true, f->least[i]);
}

/* "-86 %", "+1,200 %"; "" of nothing, and of a bound. */
static const char *change(char *buf, size_t n, const struct figure *f)
{
	double share;

	*buf = '\0';
	if (f->v[0] && f->v[0] != f->v[1] && !f->least[0] && !f->least[1]) {
		share = 100.0 * ((double)f->v[1] - (double)f->v[0]) / (double)f->v[0];
		snprintf(buf, n, fabs(share) < 10 ? "%+.1f %%" : "%+.0f %%", share);
	}
	return buf;
}

/* ---- call sites ---- */

/* What one call site had in both runs. */
struct site {
	uint64_t key;
	const struct ttmon_run *run; /* the run its name is from */
	uint32_t site;
	uint64_t pageable[2], pinned[2]; /* bytes: moved from or to pageable memory; pinned, of all allocations */
};

static int by_key(const void *a, const void *b)
{
	const struct site *x = a, *y = b;

	return x->key < y->key ? -1 : x->key > y->key;
}

static uint64_t weight(const struct site *s)
{
	uint64_t moved =
		s->pageable[0] > s->pageable[1] ? s->pageable[0] - s->pageable[1] : s->pageable[1] - s->pageable[0];
	uint64_t pinned = s->pinned[0] > s->pinned[1] ? s->pinned[0] - s->pinned[1] : s->pinned[1] - s->pinned[0];

	return MAX(moved, pinned);
}

static int by_weight(const void *a, const void *b)
{
	uint64_t x = weight(a), y = weight(b);

	return x > y ? -1 : x < y;
}

/* One row a site of each run, then those of one name together. */
static struct site *sites_of(const struct side s[2], size_t *ret)
{
	size_t n = 0, max = s[0].run->nr_sites + s[1].run->nr_sites;
	struct site *v = calloc(max + 1, sizeof(*v));

	if (!v)
		return NULL;
	for (int side = 0; side < 2; side++) {
		const struct ttmon_run *run = s[side].run;

		for (size_t i = 0; i < run->nr_sites; i++)
			v[n + i] = (struct site){ .key = run->sites[i].names ? run->sites[i].names : run->sites[i].key,
						  .run = run,
						  .site = (uint32_t)i };
		for (size_t i = 0; i < run->nr_allocs; i++) {
			const struct ttmon_run_alloc *a = &run->allocs[i];
			struct site *one = &v[n + a->site];

			if (!ttmon_run_is_host(a) || ttmon_run_is_unknown(a))
				continue;
			if (ttmon_run_pins_pages(a))
				one->pinned[side] += a->size;
			else if (!ttmon_run_is_pinned(a) && !(a->flags & TTMON_RUN_PROVED))
				one->pageable[side] += ttmon_run_moved(a);
		}
		n += run->nr_sites;
	}
	qsort(v, n, sizeof(*v), by_key);
	*ret = 0;
	for (size_t i = 0; i < n; i++) {
		struct site *last = *ret ? &v[*ret - 1] : NULL;

		if (!last || last->key != v[i].key) {
			v[(*ret)++] = v[i];
			continue;
		}
		for (int side = 0; side < 2; side++) {
			last->pageable[side] += v[i].pageable[side];
			last->pinned[side] += v[i].pinned[side];
		}
	}
	qsort(v, *ret, sizeof(*v), by_weight);
	return v;
}

static void print_sites(const struct side s[2])
{
	char a[TTMON_FMT_LEN], b[TTMON_FMT_LEN], c[TTMON_FMT_LEN], d[TTMON_FMT_LEN], name[TTMON_SITE_WHOLE];
	size_t n = 0, shown = 0;
	_cleanup_free_ struct site *v = sites_of(s, &n);

	for (size_t i = 0; v && i < n && shown < SITES && weight(&v[i]); i++, shown++) {
		if (!shown)
			printf("\n%-23s %-23s  %s\n", "PINNED IN ALL", "COPIED FROM PAGEABLE", "CALL SITE");
		printf("%10s > %-10s %10s > %-10s  %s\n", ttmon_fmt_bytes(a, sizeof(a), v[i].pinned[0]),
		       ttmon_fmt_bytes(b, sizeof(b), v[i].pinned[1]), ttmon_fmt_bytes(c, sizeof(c), v[i].pageable[0]),
		       ttmon_fmt_bytes(d, sizeof(d), v[i].pageable[1]),
		       ttmon_site_show_run(name, sizeof(name), v[i].run, v[i].site, ttmon_show_columns() ? 30 : 0));
	}
}

/* ---- both ---- */

static const char *program(const struct ttmon_run *run)
{
	return run->nr_procs ? run->procs[0].comm : "?";
}

static void print_text(const char *const names[2], const struct side s[2], const struct figure *f, size_t n)
{
	static const enum ttmon_show_colour colours[] = { [NEITHER] = TTMON_SHOW_PLAIN,
							  [BETTER] = TTMON_SHOW_GOOD,
							  [WORSE] = TTMON_SHOW_BAD,
							  [SAME] = TTMON_SHOW_PLAIN,
							  [UNKNOWN] = TTMON_SHOW_WARN };
	char text[128], time[TTMON_FMT_LEN], a[TTMON_FMT_LEN], b[TTMON_FMT_LEN], c[32];

	for (int i = 0; i < 2; i++) {
		printf("%s  %s: ", i ? "AFTER " : "BEFORE", ttmon_fmt_text(text, sizeof(text), names[i]));
		printf("%s, %s%s\n", ttmon_fmt_text(text, 64, program(s[i].run)),
		       ttmon_fmt_ns(time, sizeof(time), s[i].run->end_ns - s[i].run->start_ns),
		       s[i].run->complete ? "" : ", not complete: its figures are lower bounds");
	}
	printf("\n%-30s %12s %12s %9s\n", "FIGURE", "BEFORE", "AFTER", "CHANGE");
	for (size_t i = 0; i < n; i++)
		printf("%-30s %12s %12s %9s%s%s%s%s\n", f[i].name, value(a, &f[i], 0), value(b, &f[i], 1),
		       change(c, sizeof(c), &f[i]), f[i].judged ? "  " : "", ttmon_show_escape(colours[f[i].verdict]),
		       verdict_name(f[i].verdict), ttmon_show_escape(TTMON_SHOW_PLAIN));
	print_sites(s);
}

static json_t *number(uint64_t v)
{
	return json_integer((json_int_t)MIN(v, (uint64_t)INT64_MAX));
}

static int print_json(const char *const names[2], const struct side s[2], const struct figure *f, size_t n,
		      enum verdict worst)
{
	json_t *doc = json_object(), *figures = json_object();
	bool failed;

	for (int i = 0; i < 2; i++)
		json_object_set_new(doc, i ? "after" : "before",
				    json_pack("{s:s?, s:b}", "file", names[i], "complete", s[i].run->complete));
	for (size_t i = 0; i < n; i++)
		json_object_set_new(figures, f[i].key,
				    json_pack("{s:o, s:o, s:b, s:b, s:s}", "before", number(f[i].v[0]), "after",
					      number(f[i].v[1]), "before_at_least", f[i].least[0], "after_at_least",
					      f[i].least[1], "verdict",
					      f[i].judged ? verdict_name(f[i].verdict) : "none"));
	json_object_set_new(doc, "figures", figures);
	json_object_set_new(doc, "verdict", json_string(verdict_name(worst)));
	failed = json_dumpf(doc, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(doc);
	return failed ? TTMON_EXIT_ERROR : 0;
}

#define FIGURE(title, json, what, is_judged, member)                                                                \
	{                                                                                                           \
		.name = (title), .key = (json), .unit = (what), .judged = (is_judged), .v = { a.member, b.member }, \
		.least = {                                                                                          \
			a.least,                                                                                    \
			b.least                                                                                     \
		}                                                                                                   \
	}

static int run(const struct ttmon_cli *cli, void *ctx)
{
	_cleanup_(side_fini) struct side a = { 0 };
	_cleanup_(side_fini) struct side b = { 0 };
	const char *const names[2] = { cli->words[0], cli->words[1] };
	enum verdict worst = SAME;
	const struct opts *o = ctx;
	int err = load(names[0], &a);

	err = err ? err : load(names[1], &b);
	if (err)
		return err;
	struct figure f[] = {
		FIGURE("pinned at the peak", "pinned_peak_bytes", BYTES, true, peak),
		FIGURE("calls that pin", "pins", COUNT, true, pins),
		FIGURE("time in pinning and unpinning", "pinning_ns", TIME, true, pin_ns),
		FIGURE("copied from or to pageable", "pageable_bytes", BYTES, true, pageable),
		FIGURE("copied from or to pinned", "pinned_bytes", BYTES, false, pinned),
		FIGURE("copied, kind not known", "unknown_bytes", BYTES, false, unknown),
	};
	const struct side s[2] = { a, b };
	size_t n = ARRAY_SIZE(f) - !(a.unknown || b.unknown);

	f[0].least[0] = a.peak_least;
	f[0].least[1] = b.peak_least;
	/* What was copied from memory of an unknown kind may have been pageable. */
	f[3].least[0] |= a.unknown != 0;
	f[3].least[1] |= b.unknown != 0;
	for (size_t i = 0; i < n; i++) {
		f[i].verdict = judge(&f[i], o->tolerance);
		if (f[i].verdict == WORSE || (f[i].verdict == UNKNOWN && worst != WORSE))
			worst = f[i].verdict;
		else if (f[i].verdict == BETTER && worst == SAME)
			worst = BETTER;
	}
	if (o->json)
		err = print_json(names, s, f, n, worst);
	else
		print_text(names, s, f, n);
	return err ? err : o->exit_code && (worst == WORSE || worst == UNKNOWN) ? TTMON_EXIT_NO : 0;
}

static const struct ttmon_cli_opt options[] = {
	{ "exit-code", 0, NULL, "exit status 1 where a figure is worse, or that is not known", "For scripts.",
	  TTMON_CLI_FLAG(struct opts, exit_code) },
	{ "tolerance", 0, "PERCENT", "a change of so much is none (5)", NULL,
	  TTMON_CLI_FRACTION(struct opts, tolerance, 0, 0, 100) },
	TTMON_ROW_JSON(struct opts, json, "the figures and verdicts as JSON", NULL),
};
const struct ttmon_cli_cmd ttmon_cmd_diff = {
	.name = "ttmon diff",
	.summary = "two runs: what became better and worse",
	.args = "[OPTIONS] BEFORE AFTER",
	.about = "Compares the databases of two runs: what was pinned, what that took, what was copied from where,\n"
		 "and the call sites in which that changed most.",
	.notes = "Less is better. Where a run is not complete its figures are lower bounds, and a verdict is\n"
		 "given where it is certain all the same.\n"
		 "Exit status: 0; with --exit-code 1; 2 where a database cannot be read.",
	TTMON_CLI_OPTS(options),
	.defaults = &(const struct opts){ .tolerance = 5 },
	.size = sizeof(struct opts),
	.min_words = 2,
	.max_words = 2,
	.words = ":file",
	.run = run,
};
