// SPDX-License-Identifier: GPL-2.0-only
/* promw.c: see promw.h. */
#include "lib/os/promw.h"

#include <ctype.h>
#include <inttypes.h>
#include <strings.h>

#include "lib/base/fmt.h"

#define SUFFIX_TOTAL "_total"
#define SUFFIX_INFO  "_info"
#define REPLACEMENT  "\xef\xbf\xbd" /* U+FFFD */
#define VALUE_MAX    64		    /* room for 20 digits, a point, an exponent */

static const char *const type_names[TTMON_PROM_TYPES] = { "counter", "gauge", "histogram", "info" };

const char *ttmon_prom_type_name(unsigned int type)
{
	return type < TTMON_PROM_TYPES ? type_names[type] : NULL;
}

/* ---- text ---- */

/*
 * Returns the bytes of the character at p, and its number in *code; 0: not valid UTF-8 (overlong, a
 * surrogate, too large, cut off).
 */
static size_t utf8(const unsigned char *p, uint32_t *code)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t len = p[0] < 0x80 ? 1 : p[0] < 0xc0 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf8 ? 4 : 0;

	if (len < 2) {
		*code = p[0];
		return len;
	}
	*code = p[0] & (0x7fu >> len);
	for (size_t i = 1; i < len; i++) {
		/* This check also stops at the end of the string. */
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (p[i] & 0x3f);
	}
	return *code < least[len] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000) ? 0 : len;
}

/* Finds the next piece of a text: its length in the text, and what to show for it. */
static size_t next_piece(const char *text, const char **show, size_t *show_len)
{
	uint32_t code;
	size_t len = utf8((const unsigned char *)text, &code);

	*show = text;
	*show_len = len;
	if (!len) {
		*show = REPLACEMENT;
		*show_len = strlen(REPLACEMENT);
		return 1;
	}
	if (ttmon_fmt_control(text)) {
		*show = "?";
		*show_len = 1;
	}
	return len;
}

char *ttmon_prom_clean(char *buf, size_t n, const char *text)
{
	const char *show;
	size_t i = 0, len;

	while (*text) {
		text += next_piece(text, &show, &len);
		if (i + len >= n)
			break;
		memcpy(buf + i, show, len);
		i += len;
	}
	if (n)
		buf[i] = '\0';
	return buf;
}

static void put_value(FILE *f, const char *text)
{
	const char *show;
	size_t len;

	while (*text) {
		text += next_piece(text, &show, &len);
		if (*show == '"' || *show == '\\')
			fputc('\\', f);
		fwrite(show, 1, len, f);
	}
}

/* ---- metrics ---- */

static size_t base_len(const struct ttmon_promw *w)
{
	const struct ttmon_prom_metric *m = w->metric;
	size_t n = strlen(m->name);

	/* In OpenMetrics the name of a metric has no suffix; its samples do. */
	if (w->openmetrics && m->type == TTMON_PROM_COUNTER)
		n -= strlen(SUFFIX_TOTAL);
	if (w->openmetrics && m->type == TTMON_PROM_INFO)
		n -= strlen(SUFFIX_INFO);
	return n;
}

static void put_head(struct ttmon_promw *w)
{
	const struct ttmon_prom_metric *m = w->metric;
	const char *type = m->type == TTMON_PROM_INFO && !w->openmetrics ? "gauge" : type_names[m->type];
	int n = (int)base_len(w);

	fprintf(w->f, "# HELP %.*s %s\n# TYPE %.*s %s\n", n, m->name, m->help, n, m->name, type);
	if (w->openmetrics && *m->unit)
		fprintf(w->f, "# UNIT %.*s %s\n", n, m->name, m->unit);
}

void ttmon_promw_metric(struct ttmon_promw *w, const struct ttmon_prom_metric *metric)
{
	w->metric = metric;
	w->begun = false;
}

/* le: upper bound of a bucket; NULL: none. */
static void put_sample(struct ttmon_promw *w, const char *suffix, const char *const *values, const char *le,
		       const char *value)
{
	const char *name = w->metric->labels;
	char sep = '{';

	if (!w->begun)
		put_head(w);
	w->begun = true;
	fprintf(w->f, "%s%s", w->metric->name, suffix);
	for (size_t i = 0; *name; i++) {
		size_t n = strcspn(name, ",");

		fprintf(w->f, "%c%.*s=\"", sep, (int)n, name);
		put_value(w->f, values[i]);
		fputc('"', w->f);
		name += n + (name[n] == ',');
		sep = ',';
	}
	if (le)
		fprintf(w->f, "%cle=\"%s\"", sep, le);
	fprintf(w->f, "%s %s\n", le || sep == ',' ? "}" : "", value);
}

/* Appends the digits after the point, without trailing zeros. */
static void nano_text(char *buf, size_t n, uint64_t value)
{
	uint64_t whole = value / NSEC_PER_SEC, rest = value % NSEC_PER_SEC;
	size_t len = (size_t)snprintf(buf, n, "%" PRIu64 ".%09" PRIu64, whole, rest);

	while (buf[len - 1] == '0')
		len--;
	buf[len - (buf[len - 1] == '.')] = '\0';
}

void ttmon_promw_num(struct ttmon_promw *w, uint64_t value, const char *const *values)
{
	char text[VALUE_MAX];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	put_sample(w, "", values, NULL, text);
}

void ttmon_promw_nano(struct ttmon_promw *w, uint64_t value, const char *const *values)
{
	char text[VALUE_MAX];

	nano_text(text, sizeof(text), value);
	put_sample(w, "", values, NULL, text);
}

/*
 * Formats a bound as OpenMetrics requires it: "1e-06", "0.0025", "1.0". The classic format accepts any
 * form, so both formats have the same series.
 */
static void bound_text(char *buf, size_t n, uint64_t ns)
{
	snprintf(buf, n, "%.9g", (double)ns / (double)NSEC_PER_SEC);
	if (!strpbrk(buf, ".e"))
		snprintf(buf + strlen(buf), n - strlen(buf), ".0");
}

void ttmon_promw_histogram(struct ttmon_promw *w, const struct ttmon_prom_histogram *h, const char *const *values)
{
	char le[VALUE_MAX], text[VALUE_MAX];
	uint64_t sum = 0;

	for (size_t i = 0; i <= h->n; i++) {
		sum += h->counts[i];
		if (i < h->n)
			bound_text(le, sizeof(le), h->bounds_ns[i]);
		snprintf(text, sizeof(text), "%" PRIu64, sum);
		put_sample(w, "_bucket", values, i < h->n ? le : "+Inf", text);
	}
	nano_text(le, sizeof(le), h->sum_ns);
	put_sample(w, "_sum", values, NULL, le);
	put_sample(w, "_count", values, NULL, text);
}

void ttmon_promw_end(struct ttmon_promw *w)
{
	if (w->openmetrics)
		fputs("# EOF\n", w->f);
}

/* ---- Accept ---- */

/* Parses a quality in thousandths: "1", "0.5"; 1000 if it is not a number. */
static unsigned int quality(const char *text)
{
	unsigned int milli = 0, unit = 1000;

	if (!isdigit((unsigned char)*text))
		return 1000;
	for (; isdigit((unsigned char)*text) || *text == '.'; text++) {
		if (*text != '.') {
			milli += (unsigned int)(*text - '0') * unit;
			unit /= 10;
		}
	}
	return MIN(milli, 1000u);
}

struct range {
	const char *type; /* "application/openmetrics-text" */
	size_t len;
	unsigned int q;
	bool other; /* a version that this writer does not support */
};

/* Parses one element of the list: a type and its parameters. */
static struct range parse_range(const char *p, const char *end)
{
	struct range r = { .type = p, .q = 1000 };

	while (p < end && *p != ';' && *p != ' ' && *p != '\t')
		p++;
	r.len = (size_t)(p - r.type);
	while (p < end) {
		while (p < end && (*p == ';' || *p == ' ' || *p == '\t'))
			p++;
		if (!strncasecmp(p, "q=", 2))
			r.q = quality(p + 2);
		/* Prometheus requests an older version of OpenMetrics besides 1.0.0, which comes first. */
		if (!strncasecmp(p, "version=", 8))
			r.other = strncmp(p + 8, "1.0.0", 5) && strncmp(p + 8, "\"1.0.0\"", 7);
		while (p < end && *p != ';')
			p++;
	}
	return r;
}

static bool is_type(const struct range *r, const char *type)
{
	return r->len == strlen(type) && !strncasecmp(r->type, type, r->len);
}

bool ttmon_prom_wants_openmetrics(const char *accept)
{
	unsigned int open = 0, classic = 0, any = 0;
	bool named = false;

	while (*accept) {
		size_t n = strcspn(accept, ",");
		const char *start = accept + strspn(accept, " \t");
		struct range r = parse_range(MIN(start, accept + n), accept + n);

		if (is_type(&r, "application/openmetrics-text") && !r.other)
			open = MAX(open, r.q);
		if (is_type(&r, "*/*") || is_type(&r, "text/*"))
			any = MAX(any, r.q);
		if (is_type(&r, "text/plain")) {
			classic = MAX(classic, r.q);
			named = true;
		}
		accept += n + (accept[n] == ',');
	}
	/* A client that accepts any type gets the classic format, unless it names OpenMetrics as well. */
	return open && open >= (named ? classic : any);
}
