// SPDX-License-Identifier: GPL-2.0-only
/*
 * missing.c: lists kernels that the recorder saw but that are missing in its trace, or in some
 * launches; one line for each reason.
 */
#include <inttypes.h>

#include "tools/memtrace/cells.h"

#define NAMES 4 /* number of kernels that are named for each reason */

static const char not_selected[] = "not selected"; /* the text that the library uses */

static bool is_missing(const struct ttmon_mt_kernel *k)
{
	return *k->why || k->recorded < k->launches;
}

/* Kernels that the user excluded come last: nothing is wrong with them. */
static int rank(const char *why)
{
	return !*why ? 2 : !strcmp(why, not_selected) ? 1 : 0;
}

static int by_reason(const void *pa, const void *pb)
{
	const struct ttmon_mt_kernel *a = *(const struct ttmon_mt_kernel *const *)pa,
				     *b = *(const struct ttmon_mt_kernel *const *)pb;

	return rank(a->why) - rank(b->why) ?: strcmp(a->why, b->why) ?: (a > b) - (a < b);
}

/* Formats "gemm, copy, ...". */
static void names_of(const struct ttmon_mt_kernel *const *of, size_t n, char *buf, size_t size)
{
	size_t len = 0;

	*buf = '\0';
	for (size_t i = 0; i < MIN(n, (size_t)NAMES) && len < size; i++) {
		_cleanup_free_ char *name = ttmon_mt_short_name(of[i]->name);

		len += (size_t)snprintf(buf + len, size - len, "%s%s", i ? ", " : "", name ? name : "?");
	}
	if (n > NAMES && len < size)
		snprintf(buf + len, size - len, ", ...");
}

static void say(const struct ttmon_mt_kernel *const *of, size_t n, void (*out)(void *, const char *), void *ctx)
{
	char text[900], why[200], names[500], a[TTMON_FMT_LEN], b[TTMON_FMT_LEN], c[TTMON_FMT_LEN];
	uint64_t launches = 0, recorded = 0;
	const char *es;

	for (size_t i = 0; i < n; i++) {
		launches += of[i]->launches;
		recorded += of[i]->recorded;
	}
	es = launches == 1 ? "" : "es";
	COUNT(a, n);
	COUNT(b, launches);
	COUNT(c, recorded);
	ttmon_fmt_text(why, sizeof(why), of[0]->why);
	names_of(of, n, names, sizeof(names));
	if (!*of[0]->why)
		snprintf(text, sizeof(text),
			 "launches that were not selected, or could not be recorded: %s kernel%s, %s of %s launch%s "
			 "recorded",
			 a, n == 1 ? "" : "s", c, b, es);
	else if (!strcmp(of[0]->why, not_selected))
		snprintf(text, sizeof(text), "not recorded, not selected: %s kernel%s (%s launch%s)", a,
			 n == 1 ? "" : "s", b, es);
	else if (n > NAMES)
		snprintf(text, sizeof(text), "not recorded, %s: %s (%s kernels, %s launch%s)", why, names, a, b, es);
	else if (recorded)
		snprintf(text, sizeof(text), "not all recorded, %s: %s (%s of %s launch%s)", why, names, c, b, es);
	else
		snprintf(text, sizeof(text), "not recorded, %s: %s (%s launch%s)", why, names, b, es);
	out(ctx, text);
}

static void say_each(const struct ttmon_mt_kernel *k, void (*out)(void *, const char *), void *ctx)
{
	_cleanup_free_ char *name = ttmon_mt_short_name(k->name);
	char text[900], why[200], a[TTMON_FMT_LEN], b[TTMON_FMT_LEN];

	snprintf(text, sizeof(text), "%s: %s, %s of %s launch%s recorded", name ? name : "?",
		 *k->why ? ttmon_fmt_text(why, sizeof(why), k->why) : "not selected, or could not be recorded",
		 COUNT(a, k->recorded), COUNT(b, k->launches), k->launches == 1 ? "" : "es");
	out(ctx, text);
}

size_t ttmon_mt_missing(const struct ttmon_mt_dict *d, bool each, void (*out)(void *, const char *), void *ctx)
{
	_cleanup_free_ const struct ttmon_mt_kernel **of = calloc(d->nr_kernels + 1, sizeof(*of));
	size_t n = 0, k;

	for (size_t i = 0; i < d->nr_kernels; i++) {
		if (of && is_missing(&d->kernels[i]))
			of[n] = &d->kernels[i];
		n += is_missing(&d->kernels[i]);
	}
	if (!of || !n || !out)
		return n;
	qsort((void *)of, n, sizeof(*of), by_reason);
	for (size_t i = 0; i < n; i = k) {
		for (k = i + 1; k < n && !each && !strcmp(of[k]->why, of[i]->why); k++)
			;
		if (each)
			say_each(of[i], out, ctx);
		else
			say(of + i, k - i, out, ctx);
	}
	return n;
}
