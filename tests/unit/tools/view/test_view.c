// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_view.c: the parts of `ttmon view` behind the page: bins against a plain sum, the curve of
 * pinned pages against counting at each moment, which allocations fit, the JSON of a run with hostile
 * names, and the page as a file.
 *
 * The commands are part of a program, not of the archive that unit tests are linked with: their
 * sources are included.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>
#include <jansson.h>

#include "tools/view/bins.c"
#define by_time curve_by_time
#include "tools/view/curve.c"
#undef by_time
#include "tools/view/data.c"
#include "tools/view/cols.c"
#define put page_put
#include "tools/view/page.c"

static uint64_t seed;

static uint64_t lot(uint64_t n)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (seed >> 33) % n;
}

static void free_json(json_t **json)
{
	json_decref(*json);
}

/* ---- bins ---- */

static void test_bins_order(void **state)
{
	_cleanup_(ttmon_view_bins_fini) struct ttmon_view_bins b;
	const struct ttmon_view_bin *bins = NULL;

	(void)state;
	ttmon_view_bins_init(&b, 100);
	/* Not in order, both kinds, two in one bin. */
	ttmon_view_bins_add(&b, 5000, true, 7);
	ttmon_view_bins_add(&b, 9000, false, 10);
	ttmon_view_bins_add(&b, 2000, false, 20);
	ttmon_view_bins_add(&b, 9001, false, 30);
	ttmon_view_bins_end(&b, true);
	/* One that is forgotten leaves nothing. */
	ttmon_view_bins_add(&b, 1, false, 1);
	ttmon_view_bins_end(&b, false);
	ttmon_view_bins_end(&b, true);
	assert_int_equal(b.err, 0);
	assert_int_equal(b.nr_allocs, 2);
	assert_int_equal(ttmon_view_bins_get(&b, 0, &bins), 3);
	assert_int_equal(bins[0].at, 2000 >> 10);
	assert_int_equal(bins[1].at, 9000 >> 10);
	assert_int_equal(bins[1].copies, 2);
	assert_int_equal(bins[1].bytes, 40);
	assert_int_equal(bins[2].at, 5000 >> 10 | TTMON_VIEW_OTHER);
	assert_int_equal(ttmon_view_bins_get(&b, 1, &bins), 0);
	assert_int_equal(ttmon_view_bins_get(&b, 2, &bins), 0);
}

#define ALLOCS 40

/*
 * Whatever is added in whatever order: nothing is lost, nothing moves out of its bin, the limits hold.
 */
static void test_bins_sums(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < 60; round++) {
		_cleanup_(ttmon_view_bins_fini) struct ttmon_view_bins b;
		uint64_t copies[ALLOCS][2] = { 0 }, bytes[ALLOCS][2] = { 0 }, times[ALLOCS][2] = { 0 },
			 span = 1ULL << lot(50);
		size_t kept = 0;

		seed = round;
		ttmon_view_bins_init(&b, 100 + lot(2000));
		while (kept < ALLOCS) {
			bool keep = lot(4) > 0;

			for (uint64_t n = lot(300); n; n--) {
				uint64_t ns = lot(span + 1), size = lot(1 << 20);
				bool other = lot(3) == 0;

				ttmon_view_bins_add(&b, ns, other, size);
				if (!keep)
					continue;
				copies[kept][other]++;
				bytes[kept][other] += size;
				times[kept][other] += ns;
			}
			ttmon_view_bins_end(&b, keep);
			kept += keep;
		}
		assert_int_equal(b.err, 0);
		assert_int_equal(b.left_out, 0);
		assert_int_equal(b.nr_allocs, ALLOCS);
		assert_true(b.nr <= b.max);
		for (size_t a = 0; a < ALLOCS; a++) {
			const struct ttmon_view_bin *bins = NULL;
			size_t n = ttmon_view_bins_get(&b, a, &bins);
			for (size_t i = 0; i < n; i++) {
				bool other = bins[i].at & TTMON_VIEW_OTHER;
				uint64_t at = bins[i].at & ~TTMON_VIEW_OTHER;

				assert_true(i == 0 || bins[i - 1].at < bins[i].at);
				assert_true(at < TTMON_VIEW_AT_MAX);
				copies[a][other] -= bins[i].copies;
				bytes[a][other] -= bins[i].bytes;
				/* Each was at the beginning of its bin, or less than its width later. */
				times[a][other] -= (at << b.shift) * bins[i].copies;
			}
			for (unsigned int other = 0; other < 2; other++) {
				assert_int_equal(copies[a][other], 0);
				assert_int_equal(bytes[a][other], 0);
				assert_true(times[a][other] < (300ULL << b.shift));
			}
		}
	}
}

/* More allocations than bins: what does not fit is counted. */
static void test_bins_full(void **state)
{
	_cleanup_(ttmon_view_bins_fini) struct ttmon_view_bins b;
	uint64_t in = 0;

	(void)state;
	ttmon_view_bins_init(&b, 64);
	for (unsigned int a = 0; a < 100; a++) {
		ttmon_view_bins_add(&b, a * 1000000, false, 1);
		ttmon_view_bins_end(&b, true);
	}
	for (size_t i = 0; i < b.nr; i++)
		in += b.bins[i].copies;
	assert_int_equal(b.err, 0);
	assert_int_equal(b.nr_allocs, 100);
	assert_int_equal(in + b.left_out, 100);
	assert_int_equal(b.left_out, 36);
}

/* ---- a run ---- */

#define N 3000
static struct ttmon_run_alloc allocs[N];
static struct ttmon_run_proc procs_[3] = { { .pid = 1, .comm = "</script>" },
					   { .pid = 2, .comm = "\xff\xfe" },
					   { .pid = 3, .comm = "idle", .exe = "\"'&<" } };
static struct ttmon_run_object objects[] = { { .path = "/lib/a", .base = "a" }, { .path = "/lib/b\n", .base = "b\n" } };
static struct ttmon_run_frame frames[] = { { .object = 1, .offset = 16, .fn = "load", .delta = 4 },
					   { .object = TTMON_RUN_NONE, .offset = UINT64_MAX } };
static struct ttmon_run_site sites_[] = { { 0 },
					  { .key = UINT64_MAX, .frame = 0, .nframes = 2 },
					  { .key = 5, .frame = 1, .nframes = 1 } };
static struct ttmon_run_gap gap = { .from_ns = 500, .to_ns = 700, .what = "\x01" };
static struct ttmon_run_checkpoint checkpoint = { .ts_ns = 900, .proc = 2, .label = "</script>" };
static struct ttmon_run run = {
	.hostname = "<!--",
	.ttmond = "1",
	.start_ns = 1000,
	.end_ns = 101000,
	.reasons = "",
	.objects = objects,
	.nr_objects = 2,
	.frames = frames,
	.nr_frames = 2,
	.sites = sites_,
	.nr_sites = 3,
	.procs = procs_,
	.nr_procs = 3,
	.allocs = allocs,
	.gaps = &gap,
	.nr_gaps = 1,
	.checkpoints = &checkpoint,
	.nr_checkpoints = 1,
};

static void make_run(size_t n)
{
	static const uint8_t methods_[] = { TTMON_METHOD_HOST_ALLOC, TTMON_METHOD_REGISTERED, TTMON_METHOD_CUSTOM,
					    TTMON_METHOD_DEVICE };

	seed = n;
	for (size_t i = 0; i < n; i++) {
		uint64_t from = 1000 + lot(100000), to = from + lot(50000);

		allocs[i] = (struct ttmon_run_alloc){ .id = "x",
						      .name = i % 7 ? NULL : "</script><b>",
						      .addr = 4096 * lot(1000),
						      .size = 1 + lot(100000),
						      .alloc_ns = from,
						      .free_ns = MIN(to, run.end_ns),
						      .h2d_bytes = lot(4) ? lot(1 << 20) : 0,
						      .h2d_copies = (uint32_t)lot(5),
						      .proc = (uint32_t)lot(2),
						      .site = (uint32_t)(1 + lot(2)),
						      .method = methods_[lot(4)] };
		if (allocs[i].free_ns == run.end_ns)
			allocs[i].flags = TTMON_RUN_LIVE;
		if (!lot(10))
			allocs[i].flags |= TTMON_RUN_UNSEEN;
	}
	run.nr_allocs = n;
}

/* ---- the curve ---- */

static size_t curves;

static uint64_t pinned_at(uint64_t ns, uint32_t proc)
{
	uint64_t pages = 0;

	for (size_t i = 0; i < run.nr_allocs; i++) {
		const struct ttmon_run_alloc *a = &run.allocs[i];

		if (ttmon_run_is_pinned(a) && !ttmon_run_is_unknown(a) && (proc == TTMON_RUN_NONE || a->proc == proc) &&
		    a->alloc_ns <= ns && (a->flags & TTMON_RUN_LIVE || a->free_ns > ns))
			pages += ttmon_run_pages(a);
	}
	return pages;
}

static void exact(void *ctx, const struct ttmon_view_curve *c)
{
	uint64_t peak = 0;

	(void)ctx;
	curves++;
	assert_true((c->proc == TTMON_RUN_NONE) == (curves == 1));
	assert_int_equal(c->width_ns, 0);
	for (size_t i = 0; i < c->nr; i++) {
		assert_true(i == 0 || c->points[i - 1].ns < c->points[i].ns);
		assert_int_equal(c->points[i].pages, pinned_at(c->points[i].ns, c->proc));
		peak = MAX(peak, c->points[i].pages);
	}
	assert_int_equal(c->peak, peak);
	assert_int_equal(pinned_at(c->peak_ns, c->proc), peak);
}

static void coarse(void *ctx, const struct ttmon_view_curve *c)
{
	uint64_t peak = 0;

	(void)ctx;
	curves++;
	assert_true(c->nr <= TTMON_VIEW_POINTS);
	if (c->proc == TTMON_RUN_NONE)
		assert_true(c->width_ns > 0);
	for (size_t i = 0; i < c->nr; i++) {
		assert_true(c->points[i].pages >= pinned_at(c->points[i].ns, c->proc) || i + 1 == c->nr);
		peak = MAX(peak, c->points[i].pages);
	}
	assert_int_equal(c->peak, peak);
	assert_int_equal(pinned_at(c->peak_ns, c->proc), peak);
	assert_int_equal(c->points[c->nr - 1].pages, pinned_at(run.end_ns, c->proc));
}

static void nothing(void *ctx, const struct ttmon_view_curve *c)
{
	(void)ctx;
	curves++;
	assert_int_equal(c->nr, 0);
	assert_int_equal(c->peak, 0);
}

static void test_curves(void **state)
{
	(void)state;
	for (size_t n = 1; n < 700; n = n * 2 + 3) {
		make_run(n);
		curves = 0;
		assert_int_equal(ttmon_view_curves(&run, exact, NULL), 0);
		assert_true(curves >= 1 && curves <= 3);
	}
	make_run(N);
	curves = 0;
	assert_int_equal(ttmon_view_curves(&run, coarse, NULL), 0);
	assert_int_equal(curves, 3);
	make_run(0);
	curves = 0;
	assert_int_equal(ttmon_view_curves(&run, nothing, NULL), 0);
	assert_int_equal(curves, 1);
}

static void test_choose(void **state)
{
	uint32_t *shown = NULL;
	size_t n = 0;
	uint64_t least = UINT64_MAX;

	(void)state;
	make_run(500);
	assert_int_equal(ttmon_view_choose(&run, 100, &shown, &n), 0);
	assert_int_equal(n, 100);
	for (size_t i = 0; i < n; i++) {
		assert_true(i == 0 || shown[i - 1] < shown[i]);
		least = MIN(least, moved(&allocs[shown[i]]));
	}
	for (size_t i = 0, next = 0; i < run.nr_allocs; i++) {
		if (next < n && shown[next] == i)
			next++;
		else
			assert_true(moved(&allocs[i]) <= least);
	}
	free(shown);
	assert_int_equal(ttmon_view_choose(&run, 1000, &shown, &n), 0);
	assert_int_equal(n, 500);
	assert_int_equal(shown[499], 499);
	free(shown);
}

/* ---- the tables ---- */

static char *read_fd(int fd, size_t *ret_n)
{
	off_t n = lseek(fd, 0, SEEK_END);
	char *text = malloc((size_t)n + 1);

	assert_non_null(text);
	assert_int_equal(pread(fd, text, (size_t)n, 0), n);
	text[n] = '\0';
	*ret_n = (size_t)n;
	return text;
}

static json_int_t number_at(const json_t *meta, const char *column, size_t i)
{
	return json_integer_value(json_array_get(json_object_get(meta, column), i));
}

static void test_meta(void **state)
{
	static const char *const same_length[] = { "t0", "life", "proc", "site", "size", "addr", "verdict" };
	_cleanup_(ttmon_view_bins_fini) struct ttmon_view_bins bins;
	_cleanup_(free_json) json_t *meta = NULL;
	_cleanup_close_ int fd = memfd_create("test", MFD_CLOEXEC), bins_fd = memfd_create("test", MFD_CLOEXEC);
	_cleanup_free_ char *text = NULL, *packed = NULL;
	struct ttmon_profile *profile = NULL;
	const struct ttmon_run *runs[] = { &run };
	const struct ttmon_cost cost = TTMON_COST_DEFAULT;
	uint32_t shown[] = { 0, 3, 7 };
	struct ttmon_view v = {
		.run = &run, .bins = &bins, .cost = cost, .file = "f", .version = "v", .shown = shown, .nr_shown = 3
	};
	size_t n;

	(void)state;
	make_run(10);
	ttmon_view_bins_init(&bins, 1000);
	for (size_t i = 0; i < run.nr_allocs; i++) {
		for (size_t k = 0; k < i; k++)
			ttmon_view_bins_add(&bins, k * 5000, k % 2, k / 4);
		ttmon_view_bins_end(&bins, true);
	}
	/* Of the first nothing was seen, of the second not all, of the third all. */
	allocs[0].flags |= TTMON_RUN_AT_LEAST | TTMON_RUN_UNSEEN;
	allocs[0].h2d_copies = 0;
	allocs[0].h2d_bytes = 0;
	allocs[3].flags |= TTMON_RUN_AT_LEAST | TTMON_RUN_UNSEEN | TTMON_RUN_PROVED;
	allocs[3].h2d_copies = 2;
	allocs[7].h2d_copies = 0;
	allocs[7].flags &= (uint8_t)~TTMON_RUN_UNSEEN;
	procs_[0].at_least = true;
	assert_int_equal(ttmon_profile_new(runs, 1, &cost, &profile), 0);
	v.profile = profile;
	assert_int_equal(ttmon_view_write_meta(&v, fd), 0);
	text = read_fd(fd, &n);
	meta = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(meta);
	for (size_t i = 0; i < ARRAY_SIZE(same_length); i++)
		assert_int_equal(json_array_size(json_object_get(meta, same_length[i])), 3);
	for (size_t i = 0; i < 3; i++) {
		static const int64_t kinds[] = { 1, 2, 0 }, at_least[] = { 1, 1, 0 };
		static const int64_t advice[] = { TTMON_ADVICE_UNKNOWN, TTMON_ADVICE_UNKNOWN, TTMON_ADVICE_KEEP };
		json_t *copies = json_array_get(json_object_get(meta, "h2d"), i);

		assert_int_equal(number_at(meta, "kind", i), kinds[i]);
		assert_int_equal(number_at(meta, "at_least", i), at_least[i]);
		assert_int_equal(number_at(meta, "verdict", i), advice[i]);
		assert_int_equal(json_is_null(copies), i == 0);
		assert_int_equal(json_integer_value(copies), i == 1 ? 2 : 0);
	}
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(json_is_true(json_array_get(json_array_get(json_object_get(meta, "procs"), i), 13)),
				 i == 0);
	procs_[0].at_least = false;
	/* The third process has no allocation: it is left out, and its checkpoint belongs to none. */
	assert_int_equal(json_array_size(json_object_get(meta, "procs")), 2);
	assert_int_equal(json_integer_value(json_array_get(json_array_get(json_object_get(meta, "checkpoints"), 0), 1)),
			 -1);
	assert_int_equal(json_integer_value(json_object_get(meta, "nr_bins")), 3 + 7);
	assert_int_equal(json_integer_value(json_object_get(meta, "span")), 100000);
	assert_string_equal(json_string_value(json_object_get(meta, "host")), "<!--");
	assert_int_equal(ttmon_view_write_bins(&v, bins_fd), 0);
	packed = read_fd(bins_fd, &n);
	/*
	 * Nothing of the first; of the second two to the device (0 bytes at 0, 0 at 10000) and one other (0 at
	 * 5000).
	 */
	assert_memory_equal(packed, "\x00\x00\x02\x00\x24\x01\x10", 7);
	ttmon_profile_free(profile);
}

/* ---- the page ---- */

static char *between(const char *page, const char *from, const char *to)
{
	const char *begin = strstr(page, from), *end;

	assert_non_null(begin);
	begin += strlen(from);
	end = strstr(begin, to);
	assert_non_null(end);
	return strndup(begin, (size_t)(end - begin));
}

static unsigned int digit(char c)
{
	return c >= 'A' && c <= 'Z'   ? (unsigned int)(c - 'A')
	       : c >= 'a' && c <= 'z' ? (unsigned int)(c - 'a') + 26
	       : c >= '0' && c <= '9' ? (unsigned int)(c - '0') + 52
	       : c == '+'	      ? 62
	       : c == '/'	      ? 63
				      : 99;
}

static size_t decode(char *text)
{
	unsigned int bits = 0, have = 0;
	size_t n = 0;

	for (const char *p = text; *p && *p != '='; p++) {
		if (*p == '\n')
			continue;
		assert_true(digit(*p) < 64);
		bits = bits << 6 | digit(*p);
		have += 6;
		if (have >= 8) {
			have -= 8;
			text[n++] = (char)(bits >> have);
		}
	}
	return n;
}

static void test_page(void **state)
{
	static const char data[] = "</script><script>alert(1)</script> @BODY@ \xff";
	char *nonces[2];

	(void)state;
	for (size_t len = 0; len < 200; len++) {
		_cleanup_close_ int fd = memfd_create("test", MFD_CLOEXEC), part = memfd_create("test", MFD_CLOEXEC);
		const struct ttmon_page_part parts[] = { { "part", part } };
		const struct ttmon_page page = { .body = "<p>@JS@",
						 .body_len = 7,
						 .script = "run()",
						 .script_len = 5,
						 .parts = parts,
						 .nr_parts = 1,
						 .plain = true };
		_cleanup_free_ char *text = NULL, *got = NULL;
		char wanted[200];
		size_t n;

		for (size_t i = 0; i < len; i++)
			wanted[i] = data[i % sizeof(data)];
		assert_int_equal(write(part, wanted, len), len);
		assert_int_equal(ttmon_page_write(fd, &page), 0);
		text = read_fd(fd, &n);
		assert_int_equal(strlen(text), n);
		got = between(text, "id=\"part\">", "</script>");
		assert_int_equal(decode(got), len);
		assert_memory_equal(got, wanted, len);
		assert_null(strstr(text, "alert(1)"));
		assert_null(strstr(text, "@NONCE@"));
		/* What is put in is not searched for marks. */
		assert_non_null(strstr(text, "<p>@JS@"));
		assert_non_null(strstr(text, "run()"));
		if (len >= 2)
			continue;
		nonces[len] = between(text, "script-src 'nonce-", "'");
		assert_int_equal(strlen(nonces[len]), 32);
	}
	assert_string_not_equal(nonces[0], nonces[1]);
	free(nonces[0]);
	free(nonces[1]);
}

static void test_page_full(void **state)
{
	_cleanup_close_ int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	const struct ttmon_page page = { .body = "", .script = "" };

	(void)state;
	assert_int_equal(ttmon_page_write(fd, &page), -ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bins_order), cmocka_unit_test(test_bins_sums), cmocka_unit_test(test_bins_full),
		cmocka_unit_test(test_curves),	   cmocka_unit_test(test_choose),    cmocka_unit_test(test_meta),
		cmocka_unit_test(test_page),	   cmocka_unit_test(test_page_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
