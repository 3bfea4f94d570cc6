// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_promw.c: both text formats, hostile label values, exact numbers, the Accept header, and the
 * table of metrics.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/os/promw.h"
#include "daemon/metrics/table.h"

#define VALUES(...) ((const char *const[]){ __VA_ARGS__ })

static const struct ttmon_prom_metric bytes = { "a_bytes_total", TTMON_PROM_COUNTER, "bytes", "comm,method", "Bytes" };
static const struct ttmon_prom_metric plain = { "a_now", TTMON_PROM_GAUGE, "", "", "Now" };
static const struct ttmon_prom_metric build = { "a_build_info", TTMON_PROM_INFO, "", "version", "Build" };
static const struct ttmon_prom_metric times = { "a_seconds", TTMON_PROM_HISTOGRAM, "seconds", "method", "Times" };

struct out {
	struct ttmon_promw w;
	char *text;
	size_t len;
};

static void begin(struct out *o, bool openmetrics)
{
	*o = (struct out){ 0 };
	o->w.openmetrics = openmetrics;
	o->w.f = open_memstream(&o->text, &o->len);
	assert_non_null(o->w.f);
}

static void end(struct out *o, const char *wanted)
{
	ttmon_promw_end(&o->w);
	assert_int_equal(fclose(o->w.f), 0);
	assert_string_equal(o->text, wanted);
	free(o->text);
}

static void test_classic(void **state)
{
	struct out o;

	(void)state;
	begin(&o, false);
	ttmon_promw_metric(&o.w, &bytes);
	ttmon_promw_num(&o.w, UINT64_MAX, VALUES("python3", "pool"));
	ttmon_promw_num(&o.w, 0, VALUES("other", "pool"));
	ttmon_promw_metric(&o.w, &plain);
	ttmon_promw_nano(&o.w, 1500000001, NULL);
	ttmon_promw_metric(&o.w, &build);
	ttmon_promw_num(&o.w, 1, VALUES("1.0"));
	end(&o, "# HELP a_bytes_total Bytes\n# TYPE a_bytes_total counter\n"
		"a_bytes_total{comm=\"python3\",method=\"pool\"} 18446744073709551615\n"
		"a_bytes_total{comm=\"other\",method=\"pool\"} 0\n"
		"# HELP a_now Now\n# TYPE a_now gauge\na_now 1.500000001\n"
		"# HELP a_build_info Build\n# TYPE a_build_info gauge\na_build_info{version=\"1.0\"} 1\n");
}

static void test_openmetrics(void **state)
{
	struct out o;

	(void)state;
	begin(&o, true);
	ttmon_promw_metric(&o.w, &bytes);
	ttmon_promw_num(&o.w, 1, VALUES("python3", "pool"));
	ttmon_promw_metric(&o.w, &plain);
	ttmon_promw_num(&o.w, 7, NULL);
	ttmon_promw_metric(&o.w, &build);
	ttmon_promw_num(&o.w, 1, VALUES("1.0"));
	end(&o, "# HELP a_bytes Bytes\n# TYPE a_bytes counter\n# UNIT a_bytes bytes\n"
		"a_bytes_total{comm=\"python3\",method=\"pool\"} 1\n"
		"# HELP a_now Now\n# TYPE a_now gauge\na_now 7\n"
		"# HELP a_build Build\n# TYPE a_build info\na_build_info{version=\"1.0\"} 1\n# EOF\n");
}

/* A metric without a sample has no head either. */
static void test_nothing(void **state)
{
	struct out o;

	(void)state;
	begin(&o, true);
	ttmon_promw_metric(&o.w, &bytes);
	ttmon_promw_metric(&o.w, &plain);
	end(&o, "# EOF\n");
}

static void test_histogram(void **state)
{
	static const uint64_t bounds[] = { 1000, 2500000, 1000000000, 100000000000 }, counts[] = { 1, 0, 2, 3, 4 };
	struct ttmon_prom_histogram h = { bounds, counts, 4, 2000000000 };
	struct out o;

	(void)state;
	begin(&o, false);
	ttmon_promw_metric(&o.w, &times);
	ttmon_promw_histogram(&o.w, &h, VALUES("pool"));
	end(&o, "# HELP a_seconds Times\n# TYPE a_seconds histogram\n"
		"a_seconds_bucket{method=\"pool\",le=\"1e-06\"} 1\na_seconds_bucket{method=\"pool\",le=\"0.0025\"} 1\n"
		"a_seconds_bucket{method=\"pool\",le=\"1.0\"} 3\na_seconds_bucket{method=\"pool\",le=\"100.0\"} 6\n"
		"a_seconds_bucket{method=\"pool\",le=\"+Inf\"} 10\n"
		"a_seconds_sum{method=\"pool\"} 2\na_seconds_count{method=\"pool\"} 10\n");
}

static void test_numbers(void **state)
{
	static const struct {
		uint64_t nano;
		const char *text;
	} rows[] = {
		{ 0, "a_now 0\n" },	      { 1, "a_now 0.000000001\n" },
		{ 1000000000, "a_now 1\n" },  { 10000000000, "a_now 10\n" },
		{ 100, "a_now 0.0000001\n" }, { UINT64_MAX, "a_now 18446744073.709551615\n" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct out o;
		char wanted[128];

		begin(&o, false);
		ttmon_promw_metric(&o.w, &plain);
		ttmon_promw_nano(&o.w, rows[i].nano, NULL);
		snprintf(wanted, sizeof(wanted), "# HELP a_now Now\n# TYPE a_now gauge\n%s", rows[i].text);
		end(&o, wanted);
	}
}

static const struct {
	const char *text, *clean, *value; /* value: as it stands between quotes; NULL: like clean */
} texts[] = {
	{ "", "", NULL },
	{ "plain", "plain", NULL },
	{ "a\"b", "a\"b", "a\\\"b" },
	{ "a\\b\\", "a\\b\\", "a\\\\b\\\\" },
	{ "a\nb", "a?b", NULL },
	{ "\x1b[31m\x7f\x01", "?[31m??", NULL },
	{ "gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f", NULL },
	{ "\xe2\x82\xac \xf0\x9f\x98\x80", "\xe2\x82\xac \xf0\x9f\x98\x80", NULL },
	{ "\xc2\x9b"
	  "1",
	  "?1", NULL }, /* C1 */
	{ "a\xff"
	  "b",
	  "a\xef\xbf\xbd"
	  "b",
	  NULL },					  /* no such byte */
	{ "a\xc3", "a\xef\xbf\xbd", NULL },		  /* cut off */
	{ "\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd", NULL }, /* cut off */
	{ "\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd", NULL }, /* overlong */
	{ "\xc1\xbf", "\xef\xbf\xbd\xef\xbf\xbd", NULL },
	{ "\xe0\x80\xaf", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", NULL },
	{ "\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", NULL },		  /* a surrogate */
	{ "\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", NULL }, /* past the last one */
	{ "\xf0\x80\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", NULL },
	{ "\xf8\x88\x80\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd", NULL },
	{ "\xc3\"", "\xef\xbf\xbd\"", "\xef\xbf\xbd\\\"" },
};

static void test_texts(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		char once[64], twice[64], wanted[256];
		struct out o;

		assert_string_equal(ttmon_prom_clean(once, sizeof(once), texts[i].text), texts[i].clean);
		assert_string_equal(ttmon_prom_clean(twice, sizeof(twice), once), once);
		begin(&o, false);
		ttmon_promw_metric(&o.w, &build);
		ttmon_promw_num(&o.w, 1, VALUES(texts[i].text));
		snprintf(wanted, sizeof(wanted),
			 "# HELP a_build_info Build\n# TYPE a_build_info gauge\na_build_info{version=\"%s\"} 1\n",
			 texts[i].value ? texts[i].value : texts[i].clean);
		end(&o, wanted);
	}
}

static void test_clean_cuts(void **state)
{
	char buf[6] = "xxxxx";

	(void)state;
	assert_string_equal(ttmon_prom_clean(buf, 6, "123456"), "12345");
	assert_string_equal(ttmon_prom_clean(buf, 5, "123\xc3\xbc"), "123");
	assert_string_equal(ttmon_prom_clean(buf, 6, "123\xc3\xbc"), "123\xc3\xbc");
	assert_string_equal(ttmon_prom_clean(buf, 5, "12\xff"), "12");
	assert_string_equal(ttmon_prom_clean(buf, 1, "1"), "");
	buf[0] = 'x';
	ttmon_prom_clean(buf, 0, "1");
	assert_int_equal(buf[0], 'x');
}

static void test_accept(void **state)
{
	static const struct {
		const char *accept;
		bool openmetrics;
	} rows[] = {
		{ "", false },
		{ "*/*", false },
		{ "text/html", false },
		{ "text/plain", false },
		{ "application/json", false },
		/* Prometheus 2.42 and 2.5 */
		{ "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
		  "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		  true },
		{ "application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.5,*/*;q=0.1", false },
		{ "application/openmetrics-text", true },
		{ "Application/OpenMetrics-Text; Version=1.0.0", true },
		{ "application/openmetrics-text; version=\"1.0.0\"; charset=utf-8", true },
		{ "application/openmetrics-text;q=0", false },
		{ "application/openmetrics-text;q=0.0,*/*", false },
		{ "application/openmetrics-text;q=0.3, text/plain;q=0.4", false },
		{ "text/plain;q=0.4,application/openmetrics-text;q=0.41", true },
		{ "text/plain;q=0.4 , application/openmetrics-text ; q=0.401", true },
		{ "application/openmetrics-text;q=0.5,*/*;q=0.8", false },
		{ "application/openmetrics-text;q=0.5,*/*;q=0.8,text/plain;q=0.2", true },
		{ "*/*;q=0.8,text/plain;q=0.2,application/openmetrics-text;q=0.5", true },
		{ "application/openmetrics-textual", false },
		{ ",,;;q=1,application/openmetrics-text;q=", true },
		{ "application/openmetrics-text;q=9.9999999999999999999", true },
		{ " , ", false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (ttmon_prom_wants_openmetrics(rows[i].accept) != rows[i].openmetrics)
			fail_msg("%s", rows[i].accept);
}

/* ---- the table ---- */

static const struct ttmon_prom_metric table[TTMON_METRICS_MAX] = {
#define X(ID, n, t, u, l, need, h) { n, TTMON_PROM_##t, u, l, h },
	TTMON_METRICS_TABLE(X)
#undef X
};

static bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), k = strlen(end);

	return n > k && !strcmp(text + n - k, end);
}

static bool has_unit(const struct ttmon_prom_metric *m)
{
	char suffix[32];

	snprintf(suffix, sizeof(suffix), "_%s%s", m->unit, m->type == TTMON_PROM_COUNTER ? "_total" : "");
	return ends_in(m->name, suffix);
}

static void check_labels(const struct ttmon_prom_metric *m)
{
	const char *seen[TTMON_PROM_LABELS];
	size_t lens[TTMON_PROM_LABELS], n = 0;

	for (const char *p = m->labels; *p; n++) {
		size_t len = strcspn(p, ",");

		assert_true(n < TTMON_PROM_LABELS);
		assert_true(len > 0 && strspn(p, "abcdefghijklmnopqrstuvwxyz_GROUP") >= len);
		/* What a group may be called, and what Prometheus itself adds. */
		assert_true(strncmp(p, "comm", len) && strncmp(p, "cgroup", len) && strncmp(p, "unit", len) &&
			    strncmp(p, "container", len) && strncmp(p, "pod", len) && strncmp(p, "le", len) &&
			    strncmp(p, "job", len) && strncmp(p, "instance", len));
		for (size_t i = 0; i < n; i++)
			assert_true(lens[i] != len || memcmp(seen[i], p, len));
		seen[n] = p;
		lens[n] = len;
		p += len;
		if (*p == ',')
			assert_true(*++p);
	}
}

static void test_table(void **state)
{
	(void)state;
	for (size_t i = 0; i < TTMON_METRICS_MAX; i++) {
		const struct ttmon_prom_metric *m = &table[i];

		assert_true(!strncmp(m->name, "ttmond_", 7) || !strncmp(m->name, "process_", 8));
		assert_int_equal(strspn(m->name, "abcdefghijklmnopqrstuvwxyz_"), strlen(m->name));
		assert_true(ends_in(m->name, "_total") == (m->type == TTMON_PROM_COUNTER));
		assert_true(ends_in(m->name, "_info") == (m->type == TTMON_PROM_INFO));
		assert_false(ends_in(m->name, "_count") || ends_in(m->name, "_sum") || ends_in(m->name, "_bucket"));
		if (*m->unit && !has_unit(m))
			fail_msg("%s: its unit is %s", m->name, m->unit);
		if (!*m->unit &&
		    (ends_in(m->name, "_bytes") || ends_in(m->name, "_seconds") || strstr(m->name, "_bytes_total")))
			fail_msg("%s: no unit", m->name);
		assert_true(*m->help && !strpbrk(m->help, "\n\"\\.") && m->help[0] >= '0' && m->help[0] <= 'Z');
		check_labels(m);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(m->name, table[k].name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_classic),	   cmocka_unit_test(test_openmetrics), cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_histogram),  cmocka_unit_test(test_numbers),     cmocka_unit_test(test_texts),
		cmocka_unit_test(test_clean_cuts), cmocka_unit_test(test_accept),      cmocka_unit_test(test_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
