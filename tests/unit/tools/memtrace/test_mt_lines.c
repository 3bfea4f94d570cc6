// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_mt_lines.c: what `ttmon memtrace` prints, read again: random accesses of every space, kind and
 * width, with opcodes that no reader knows; which launches are chosen; tables of any width.
 *
 * The commands are part of a program, not of the archive that unit tests are linked with: their
 * sources are included.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tools/cli/show.c"
#include "tools/term/table.c"
#include "tools/memtrace/pick.c"
#include "tools/memtrace/table.c"
#include "tools/memtrace/lines.c"

#define RECORDS 5000

static uint64_t seed = 0x9e3779b97f4a7c15;
static uint64_t rnd(uint64_t below)
{
	seed = seed * 6364136223846793005 + 1442695040888963407;
	return (seed >> 20) % below;
}

static uint64_t address(unsigned int space)
{
	return space == TTMON_MT_SHARED || space == TTMON_MT_LOCAL ? 64 + rnd(1 << 20)
								   : 0x7f0000000000 + rnd(1ull << 31);
}

/* Sites with opcodes of PTX, of SASS, and of nothing at all. */
static void make_sites(struct ttmon_mt_dictw *d)
{
	static const char *const opcodes[] = { "ld.global.v4.f32", "LDG.E.64", "", "atom.shared::cta add",
					       "LDG.E.128.WITH.A.NAME.THAT.IS.LONGER.THAN.ALL.OPCODES.ARE.64.8.16.32" };

	for (unsigned int space = 0; space < TTMON_MT_SPACE_MAX; space++)
		for (unsigned int kind = 0; kind < TTMON_MT_KIND_MAX; kind++)
			for (size_t i = 0; i < ARRAY_SIZE(opcodes); i++) {
				struct ttmon_mt_site s = { .kernel = "k",
							   .opcode = opcodes[i],
							   .file = "",
							   .module = "",
							   .space = (uint8_t)space,
							   .kind = (uint8_t)kind,
							   .width = 4 };

				assert_true(ttmon_mt_dict_site(d, &s) >= 0);
			}
}

/* Is there an access of this kind in this space, as far as SASS has names? */
static bool has_opcode(unsigned int space, unsigned int kind)
{
	switch (kind) {
	case TTMON_MT_ATOM:
	case TTMON_MT_RED:
		return space != TTMON_MT_LOCAL;
	case TTMON_MT_COPY_SRC:
	case TTMON_MT_PREFETCH:
		return space == TTMON_MT_GLOBAL;
	case TTMON_MT_COPY_DST:
	case TTMON_MT_LDMATRIX:
	case TTMON_MT_STMATRIX:
		return space == TTMON_MT_SHARED;
	default:
		return true;
	}
}

static void make_rec(const struct ttmon_mt_dict *d, struct ttmon_mt_rec *r, uint64_t *addr)
{
	uint32_t site = (uint32_t)rnd(d->nr_sites);
	unsigned int kind = d->sites[site].kind;

	while (!has_opcode(d->sites[site].space, kind)) {
		site = (uint32_t)rnd(d->nr_sites);
		kind = d->sites[site].kind;
	}
	*r = (struct ttmon_mt_rec){ .site = site,
				    .launch = (uint32_t)rnd(d->nr_launches),
				    .mask = rnd(2) ? UINT32_MAX : (uint32_t)rnd(UINT32_MAX) | 1u << rnd(32),
				    .cta = { (uint32_t)rnd(1u << 31), (uint32_t)rnd(65536), (uint32_t)rnd(3) },
				    .warp = (uint16_t)rnd(64),
				    .sm = TTMON_MT_NO_SM,
				    .space = d->sites[site].space,
				    .width = kind == TTMON_MT_LDMATRIX || kind == TTMON_MT_STMATRIX
						     ? 16
						     : (uint8_t)(1u << rnd(6)) };
	if (kind == TTMON_MT_PREFETCH || kind == TTMON_MT_COPY_SRC || kind == TTMON_MT_COPY_DST)
		r->width = 4;
	r->base = address(r->space);
	r->stride = r->mask & (r->mask - 1) ? (int64_t)rnd(64) : 0;
	if (rnd(2))
		return;
	for (unsigned int i = 0; i < 32; i++)
		addr[i] = address(r->space);
	r->addr = addr;
	r->base = addr[__builtin_ctz(r->mask)];
}

static void same_rec(const struct ttmon_mt_dict *d, const struct ttmon_mt_rec *a, const struct ttmon_mt_dict *e,
		     const struct ttmon_mt_rec *b)
{
	assert_int_equal(b->mask, a->mask);
	assert_int_equal(b->space, a->space);
	assert_int_equal(e->sites[b->site].kind, d->sites[a->site].kind);
	assert_int_equal(b->width, a->width);
	assert_memory_equal(b->cta, a->cta, sizeof(a->cta));
	assert_int_equal(b->warp, a->warp);
	assert_int_equal(e->launches[b->launch].id, d->launches[a->launch].id);
	assert_int_equal(e->launches[b->launch].ctx, d->launches[a->launch].ctx);
	for (unsigned int i = 0; i < 32; i++)
		if (a->mask >> i & 1)
			assert_int_equal(ttmon_mt_lane(b, i), ttmon_mt_lane(a, i));
}

static void read_again(void **state)
{
	struct ttmon_mt_dictw d = { 0 };
	static struct ttmon_mt_rec recs[RECORDS];
	static uint64_t addr[RECORDS][32];
	const struct ttmon_mt_rec *got;
	struct ttmon_mt_lines l;
	struct ttmon_mt_in *in = NULL;
	size_t nr, at = 0;
	int fd = memfd_create("lines", 0), more = 1;
	char why[200];

	(void)state;
	make_sites(&d);
	for (uint64_t i = 0; i < 4; i++) {
		struct ttmon_mt_launch launch = { .id = i * 3,
						  .ctx = 0x55d0c0de000 + (i & 1),
						  .kernel = "void k<1, 2>(int) - x",
						  .grid = { 4, 1, 1 },
						  .block = { 64, 2, 1 } };

		assert_int_equal(ttmon_mt_dict_launch(&d, &launch), i);
	}
	assert_int_equal(ttmon_mt_lines_init(&l, fd), 0);
	for (size_t i = 0; i < d.dict.nr_launches; i++)
		ttmon_mt_lines_launch(&l, &d.dict.launches[i]);
	for (size_t i = 0; i < RECORDS; i++) {
		make_rec(&d.dict, &recs[i], addr[i]);
		ttmon_mt_lines_rec(&l, &d.dict, &recs[i]);
	}
	assert_int_equal(ttmon_mt_lines_flush(&l), 0);
	ttmon_mt_lines_fini(&l);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(ttmon_mt_in_open_fd(fd, "lines", NULL, &in, why, sizeof(why)), 0);
	while (more > 0) {
		more = ttmon_mt_in_next(in, &got, &nr, why, sizeof(why));
		assert_true(more >= 0);
		for (size_t i = 0; i < nr; i++, at++)
			same_rec(&d.dict, &recs[at], ttmon_mt_in_dict(in), &got[i]);
	}
	assert_int_equal(at, RECORDS);
	assert_int_equal(ttmon_mt_in_stats(in)->malformed + ttmon_mt_in_stats(in)->foreign +
				 ttmon_mt_in_stats(in)->unknown_op,
			 0);
	assert_int_equal(ttmon_mt_in_dict(in)->nr_launches, 4);
	assert_string_equal(ttmon_mt_in_dict(in)->launches[2].kernel, "void k<1, 2>(int) - x");
	ttmon_mt_in_free(in);
	ttmon_mt_dict_fini(&d);
	close(fd);
}

static void hexadecimal(void **state)
{
	char want[9], got[9] = "";

	(void)state;
	for (unsigned int i = 0; i < 100000; i++) {
		uint32_t v = i < 4096 ? i * 0x00100401u : (uint32_t)rnd(1ull << 32);

		snprintf(want, sizeof(want), "%08x", v);
		put_hex(got, v);
		assert_string_equal(got, want);
	}
	*put_number(got, 0) = '\0';
	assert_string_equal(got, "0");
	*put_number(got, 1234567) = '\0';
	assert_string_equal(got, "1234567");
}

/* An error is kept, and nothing is written behind it. */
static void full_disk(void **state)
{
	struct ttmon_mt_launch launch = { .kernel = "k" };
	struct ttmon_mt_lines l;
	int fd = open("/dev/full", O_WRONLY);

	(void)state;
	assert_int_equal(ttmon_mt_lines_init(&l, fd), 0);
	for (unsigned int i = 0; i < 20000; i++)
		ttmon_mt_lines_launch(&l, &launch);
	assert_int_equal(l.err, -ENOSPC);
	assert_int_equal(ttmon_mt_lines_flush(&l), -ENOSPC);
	ttmon_mt_lines_fini(&l);
	close(fd);
}

static void picks(void **state)
{
	static const struct {
		const char *text;
		bool good;
		uint64_t first, last;
	} table[] = {
		{ "5", true, 5, 5 },	 { "5-9", true, 5, 9 },	 { "5-", true, 5, UINT64_MAX },
		{ "-9", true, 0, 9 },	 { "0-0", true, 0, 0 },	 { "", false, 0, 0 },
		{ "-", false, 0, 0 },	 { "9-5", false, 0, 0 }, { "5--9", false, 0, 0 },
		{ "5-9x", false, 0, 0 }, { " 5", false, 0, 0 },	 { "+5", false, 0, 0 },
		{ "0x5", false, 0, 0 },	 { "5,9", false, 0, 0 }, { "99999999999999999999", false, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct ttmon_mt_pick p = { 0 };

		assert_int_equal(ttmon_mt_pick_launches(&p, table[i].text), table[i].good);
		assert_int_equal(p.first, table[i].first);
		assert_int_equal(p.last, table[i].last);
	}
}

/*
 * No line is longer than the terminal; each row is one line; what is left out is named, the later
 * columns first, and the last one stays.
 */
static void tables(void **state)
{
	static const char *const heads[] = { "NUMBER", "<NAME", "COUNT", "<REST" };

	(void)state;
	for (size_t width = 30; width < 120; width += 7) {
		struct ttmon_mt_grid t = { .heads = heads, .cols = ARRAY_SIZE(heads) };
		_cleanup_free_ char *text = NULL;
		size_t n = 0, lines = 0;
		FILE *out = open_memstream(&text, &n);

		for (unsigned int i = 0; i < 3; i++) {
			ttmon_mt_grid_put(&t, "%u", i * 1000);
			ttmon_mt_grid_put(&t, "%s",
					  "grau-\xc3\xbc"
					  "ber");
			ttmon_mt_grid_put(&t, "%s", "12,345");
			ttmon_mt_grid_put(&t, "%s",
					  "the last column takes what is left of the line and is cut where that ends");
		}
		ttmon_mt_grid_print(&t, out, width);
		fclose(out);
		assert_null(t.cells);
		assert_true(!strstr(text, "left out") == (width >= 6 + 2 + 10 + 2 + 6 + 2 + REST_MIN));
		assert_non_null(strstr(text, "REST\n"));
		if (width < 40)
			assert_true(strstr(text, "NAME,") && strstr(text, "COUNT)\n"));
		for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
			assert_true(ttmon_term_width(line) <= width);
			assert_true(line[strlen(line) - 1] != ' ');
			/* The note begins with '(', and what is wrapped of it with one space. */
			lines += *line != '(' && !(*line == ' ' && line[1] != ' ');
		}
		assert_int_equal(lines, 4);
	}
}

static void names(void **state)
{
	static const char *const table[][2] = {
		{ "void transpose<float, 32>(float const*, int)", "transpose<float, 32>" },
		{ "void f<(int)3>(void (*)(int))", "f<(int)3>" },
		{ "kernel", "kernel" },
		{ "_Z4vaddPKfS0_Pfi", "vadd" },
		{ "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIf"
		  "EESt5arrayIPcLm3EEEEviT0_T1_",
		  "at::native::vectorized_elementwise_kernel<...>" },
		{ "", "?" },
		{ "(anonymous)", "(anonymous)" },
		{ ")", ")" },
		{ "a\x1b[2J(int)", "a?[2J" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		_cleanup_free_ char *got = ttmon_mt_short_name(table[i][0]);

		assert_string_equal(got, table[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read_again), cmocka_unit_test(hexadecimal), cmocka_unit_test(full_disk),
		cmocka_unit_test(picks),      cmocka_unit_test(tables),	     cmocka_unit_test(names),
	};

	return cmocka_run_group_tests_name("mt_lines", tests, NULL, NULL);
}
