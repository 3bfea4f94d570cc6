// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_ptx.c: the rewriter of PTX over what nvcc makes of tests/memtrace/kernels.cu (every access has
 * its call before it, originals are as they were, some copies are as tests/memtrace/golden/ has them),
 * and over modules that are odd or broken.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/feed/ptx_text.h"
#include "ttmon/mtchan.h"

static char *slurp(const char *path, size_t *len)
{
	FILE *f = fopen(path, "re");
	char *text = malloc(1 << 20);

	assert_non_null(f);
	assert_non_null(text);
	*len = fread(text, 1, (1 << 20) - 1, f);
	text[*len] = '\0';
	fclose(f);
	return text;
}

static void refused(const char *text, const struct ttmon_ptx_opts *opts, int err, const char *said)
{
	struct ttmon_ptx_result r = { .len = 7 };
	char why[200] = "";

	assert_int_equal(ttmon_ptx_rewrite(text, strlen(text), opts, &r, why, sizeof(why)), err);
	if (!strstr(why, said))
		fail_msg("\"%s\" is not in \"%s\"", said, why);
	assert_int_equal(r.len, 7);
}

/* The function whose declaration begins with that, to behind its last brace. */
static const char *function(const char *text, const char *begin, size_t *len)
{
	const char *p = strstr(text, begin), *s;
	int depth = 0;

	if (!p)
		fail_msg("no %s", begin);
	for (s = strchr(p, '{'); *s; s++) {
		depth += *s == '{';
		depth -= *s == '}';
		if (!depth)
			break;
	}
	*len = (size_t)(s + 1 - p);
	return p;
}

/*
 * The next statement of an instruction, without its predicate; how: opcode. A scanner that knows no
 * more of PTX than that statements end in ';'.
 */
static const char *statement(const char *p, const char *end, char *opcode, size_t size)
{
	size_t n;

	for (;;) {
		p += strspn(p, " \t\n;{}");
		if (p >= end)
			return NULL;
		if (!strncmp(p, "//", 2) || !strncmp(p, ".loc", 4) || *p == '$') {
			p += strcspn(p, "\n");
			continue;
		}
		break;
	}
	if (*p == '@') {
		p += strcspn(p, " \t");
		p += strspn(p, " \t");
	}
	n = strcspn(p, " \t;\n");
	snprintf(opcode, size, "%.*s", (int)n, p);
	return p + strcspn(p, ";");
}

static unsigned int accesses(const char *op)
{
	static const char *const begin[] = { "ld.", "st.", "atom.", "red.", "ldmatrix.", "stmatrix.", "prefetch." };

	if (!strncmp(op, "cp.async.c", 10) && strncmp(op, "cp.async.commit", 15))
		return 2;
	for (size_t i = 0; i < ARRAY_SIZE(begin); i++) {
		if (!strncmp(op, begin[i], strlen(begin[i])))
			return !strstr(op, ".param") && !strstr(op, ".const");
	}
	return 0;
}

static unsigned int count_accesses(const char *p, size_t len)
{
	const char *end = p + len;
	unsigned int nr = 0;
	char op[64];

	for (p = strchr(p, '{'); (p = statement(p, end, op, sizeof(op)));)
		nr += accesses(op);
	return nr;
}

/* Each access of the copy comes behind a call of the recorder, cp.async behind two. */
static unsigned int check_copy(const char *p, size_t len, bool aggregate)
{
	unsigned int calls = 0, nr = 0;
	const char *end = p + len, *from;
	char op[64];

	for (p = from = strchr(p, '{'); (p = statement(from = p, end, op, sizeof(op)));) {
		unsigned int wanted = accesses(op);

		if (!strcmp(op, "call.uni") && p[-1] == ')') {
			const char *rec = memmem(from, (size_t)(p - from), "__ttmon$", 8);

			if (rec && strncmp(rec, "__ttmon$block", 13)) {
				assert_true(!strncmp(rec, "__ttmon$gen", 11) ||
					    !strncmp(rec, aggregate ? "__ttmon$agg" : "__ttmon$rec", 11));
				calls++;
			}
		} else if (wanted) {
			if (calls != wanted)
				fail_msg("%u calls before %s", calls, op);
			nr += wanted;
			calls = 0;
		}
	}
	assert_int_equal(calls, 0);
	return nr;
}

/* Counters of a generic access are apart by space: three sites of one instruction. */
static bool is_triple(const struct ttmon_ptx_result *r, size_t i, bool aggregate)
{
	const struct ttmon_mt_site *s = &r->sites[i];

	return aggregate && i + 2 < r->nr_sites && s[0].space == TTMON_MT_GLOBAL && s[1].space == TTMON_MT_SHARED &&
	       s[2].space == TTMON_MT_LOCAL && s[0].text_line == s[2].text_line && !strcmp(s[0].opcode, s[2].opcode);
}

static uint32_t instructions(const struct ttmon_ptx_result *r, size_t first, size_t n, bool aggregate)
{
	uint32_t nr = 0;

	for (size_t i = first; i < first + n; i += is_triple(r, i, aggregate) ? 3 : 1)
		nr++;
	return nr;
}

static void check_module(const char *path, unsigned int kernels, bool aggregate)
{
	struct ttmon_ptx_opts opts = everything;
	struct ttmon_ptx_result r;
	_cleanup_free_ char *text = NULL;
	uint32_t in_kernels = 0;
	size_t len, n;
	char begin[200];

	text = slurp(path, &len);
	opts.aggregate = aggregate;
	opts.first_site = 1000;
	rewrite(text, &opts, &r);
	assert_int_equal(r.nr_kernels, kernels);
	assert_int_equal(strlen(r.text), r.len);
	for (size_t i = 0; i < r.nr_kernels; i++) {
		const struct ttmon_ptx_kernel *k = &r.kernels[i];
		const char *p;

		assert_string_equal(k->why, "");
		snprintf(begin, sizeof(begin), ".entry %s(", k->name);
		p = function(text, begin, &n);
		assert_non_null(memmem(r.text, r.len, p, n));
		assert_int_equal(instructions(&r, k->first, k->sites, aggregate), count_accesses(p, n));
		assert_int_equal(k->first, in_kernels);
		in_kernels += k->sites;
		snprintf(begin, sizeof(begin), ".visible .entry __ttmon_%s(", k->name);
		p = function(r.text, begin, &n);
		assert_int_equal(check_copy(p, n, aggregate), instructions(&r, k->first, k->sites, aggregate));
	}
	/*
	 * Behind those of kernels those of the three functions that are called directly (1, 5, 1); the one
	 * that only a pointer names has no copy.
	 */
	assert_int_equal(instructions(&r, in_kernels, r.nr_sites - in_kernels, aggregate), 7);
	assert_null(strstr(r.text, "minus_atEPKii_param_0, .param .u64 __ttmon"));
	for (size_t i = 0; i < r.nr_sites; i += is_triple(&r, i, aggregate) ? 3 : 1) {
		const char *line = text;

		for (uint32_t l = 1; l < r.sites[i].text_line; l++)
			line = strchr(line, '\n') + 1;
		assert_non_null(memmem(line, strcspn(line, "\n"), r.sites[i].opcode, strlen(r.sites[i].opcode)));
		assert_true(r.sites[i].line > 0);
		assert_true(strstr(r.sites[i].file, "kernels.cu") || strstr(r.sites[i].file, "/include/"));
		assert_true(r.sites[i].width && r.sites[i].width <= 32);
		snprintf(begin, sizeof(begin), "mov.u32 %%__ttmon_w, 0x%zx;",
			 1000 + i + (r.sites[i].space && !is_triple(&r, i, aggregate) ? 0 : 7u << 27));
		assert_non_null(strstr(r.text, begin));
	}
	ttmon_ptx_fini(&r);
}

static void test_nvcc(void **state)
{
	(void)state;
	for (int aggregate = 0; aggregate < 2; aggregate++) {
		check_module("tests/memtrace/kernels_75.ptx", 24, aggregate);
		check_module("tests/memtrace/kernels_80.ptx", 26, aggregate);
		check_module("tests/memtrace/kernels_90.ptx", 27, aggregate);
	}
}

static const struct ttmon_ptx_kernel *kernel(const struct ttmon_ptx_result *r, const char *name)
{
	for (size_t i = 0; i < r->nr_kernels; i++) {
		if (!strcmp(r->kernels[i].name, name))
			return &r->kernels[i];
	}
	fail_msg("no kernel %s", name);
	return NULL;
}

static void test_what_is_said(void **state)
{
	_cleanup_free_ char *text = NULL;
	struct ttmon_ptx_result r;
	size_t len;

	(void)state;
	text = slurp("tests/memtrace/kernels_90.ptx", &len);
	rewrite(text, &everything, &r);
	assert_int_equal(r.target, 90);
	assert_int_equal(kernel(&r, "vadd")->params, 4);
	assert_int_equal(kernel(&r, "vadd")->param_bytes, 28);
	assert_int_equal(kernel(&r, "by_value")->params, 2);
	assert_int_equal(kernel(&r, "by_value")->param_bytes, 33);
	assert_int_equal(kernel(&r, "nothing_given")->params, 0);
	assert_int_equal(kernel(&r, "nothing_given")->param_bytes, 0);
	assert_int_equal(kernel(&r, "hopper")->left_out, 3);
	assert_int_equal(kernel(&r, "indirect")->indirect, 1);
	assert_int_equal(kernel(&r, "calls")->indirect, 0);
	assert_int_equal(kernel(&r, "calls")->sites, 0);
	ttmon_ptx_fini(&r);
}

static bool in_list(void *ctx, const char *name)
{
	const char *const *names = ctx;

	for (; *names; names++) {
		if (!strcmp(*names, name))
			return true;
	}
	return false;
}

static void check_golden(const char *module, const char *golden, const char *const *names)
{
	_cleanup_free_ char *text = NULL, *wanted = NULL, *got = NULL;
	struct ttmon_ptx_opts opts = everything;
	struct ttmon_ptx_result r;
	size_t len, size, n, at = 0;
	FILE *f = open_memstream(&got, &size);

	text = slurp(module, &len);
	wanted = slurp(golden, &len);
	opts.select = in_list;
	opts.ctx = (void *)(uintptr_t)names;
	rewrite(text, &opts, &r);
	/*
	 * All that has a body and a name of ours, but not the recorder's: as tests/e2e/t_ptx.py does it too.
	 */
	for (const char *p; (p = strstr(r.text + at, " __ttmon_")); at = (size_t)(p - r.text) + n) {
		const char *line = p, *end = p + strcspn(p, ";{");

		while (line > r.text && line[-1] != '\n')
			line--;
		n = 9;
		if (*end == ';' || (strncmp(line, ".visible .entry", 15) && strncmp(line, ".func", 5)))
			continue;
		p = function(line, "", &n);
		fprintf(f, "%.*s\n", (int)n, p);
	}
	assert_int_equal(fclose(f), 0);
	assert_string_equal(got, wanted);
	ttmon_ptx_fini(&r);
}

static void test_golden(void **state)
{
	(void)state;
	check_golden(
		"tests/memtrace/kernels_80.ptx", "tests/memtrace/golden/copies_80.ptx",
		(const char *const[]){ "vadd", "generic", "calls", "nothing_given", "by_hand", "async_copy", NULL });
	check_golden("tests/memtrace/kernels_90.ptx", "tests/memtrace/golden/copies_90.ptx",
		     (const char *const[]){ "matrix", "hopper", NULL });
}

/*
 * Functions: handed on, also by those that access nothing themselves; those that cannot be copied are
 * called as they are.
 */
static void test_functions(void **state)
{
	struct ttmon_ptx_result r;

	(void)state;
	rewrite(HEAD
		".extern .func ext(.param .b64 a);\n.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 "
		"b);\n"
		".func leaf(.param .b64 a) { .reg .b64 %a; ld.param.u64 %a, [a]; st.u8 [%a], 1; ret; }\n"
		".func none() { ret; }\n"
		".func old(.reg .b64 %a) { st.u8 [%a], 1; ret; }\n"
		".func middle { .reg .b64 %x; { .param .b64 q; st.param.b64 [q], %x; call leaf, (q); } call none; "
		"call middle; ret; }\n"
		".entry k() { .reg .b64 %x; .reg .pred %p; call.uni middle; @%p call middle, (); call ext, (a); call "
		"(r), vprintf, (a, b); call old, (%x); call %x, (a), P; ret; }\n",
		&everything, &r);
	assert_int_equal(r.nr_sites, 1);
	assert_string_equal(r.sites[0].kernel, "leaf");
	assert_string_equal(r.kernels[0].why, "");
	assert_int_equal(r.kernels[0].indirect, 3); /* ext, old, %x */
	assert_non_null(strstr(
		r.text, ".func __ttmon_leaf(.param .b64 a, .param .u64 __ttmon_ctl, .param .u64 __ttmon_launch) ;\n"));
	assert_non_null(
		strstr(r.text, ".func __ttmon_middle(.param .u64 __ttmon_ctl, .param .u64 __ttmon_launch) ;\n"));
	assert_non_null(strstr(r.text, "call __ttmon_leaf, (q, __ttmon_c0, __ttmon_l0);"));
	assert_non_null(strstr(r.text, "call none;"));
	assert_non_null(strstr(r.text, "call __ttmon_middle, (__ttmon_c2, __ttmon_l2);"));
	assert_non_null(strstr(r.text, "@%p call __ttmon_middle, (__ttmon_c1, __ttmon_l1);"));
	assert_non_null(strstr(r.text, "call old, (%x);"));
	assert_null(strstr(r.text, "__ttmon_none"));
	assert_null(strstr(r.text, "__ttmon_old"));
	ttmon_ptx_fini(&r);
}

/* The recorder as a module of its own: not beside functions of the program. */
static void test_apart(void **state)
{
	struct ttmon_ptx_opts opts = everything;
	struct ttmon_ptx_result r;

	(void)state;
	opts.apart = true;
	rewrite(KERNEL("st.global.u32 [%rd1], %r1;"), &opts, &r);
	assert_non_null(strstr(r.text, "\n.extern .func __ttmon$rec("));
	assert_null(strstr(r.text, "\n.func __ttmon$rec("));
	assert_non_null(r.recorder);
	assert_non_null(strstr(r.recorder, "\n.visible .func __ttmon$rec("));
	assert_null(strstr(r.recorder, ".entry"));
	assert_memory_equal(r.recorder, HEAD, strlen(HEAD) - 1);
	ttmon_ptx_fini(&r);
	rewrite(HEAD ".func leaf(.param .b64 a) { .reg .b64 %a; ld.param.u64 %a, [a]; st.u8 [%a], 1; ret; }\n"
		     ".entry k() { .reg .b64 %x; call leaf, (%x); ret; }\n",
		&opts, &r);
	assert_null(r.recorder);
	assert_non_null(strstr(r.text, "\n.func __ttmon$rec("));
	ttmon_ptx_fini(&r);
}

static void test_selection(void **state)
{
	static const char text[] = KERNEL(
		"ld.global.u32 %r1, [%rd1];\nst.shared.u32 [%r1], %r2;\nld.u32 %r1, [%rd1];\nst.local.u32 [%r1], %r1;");
	struct ttmon_ptx_opts opts = everything;
	struct ttmon_ptx_result r;

	(void)state;
	opts.spaces = 1u << TTMON_MT_SHARED;
	rewrite(text, &opts, &r);
	assert_int_equal(r.nr_sites, 2);
	assert_int_equal(r.sites[0].space, TTMON_MT_SHARED);
	assert_int_equal(r.sites[1].space, TTMON_MT_GENERIC);
	assert_non_null(strstr(r.text, "mov.u32 %__ttmon_w, 0x10000001;"));
	ttmon_ptx_fini(&r);
	opts = everything;
	opts.instr_begin = 1;
	opts.instr_end = 2;
	rewrite(text, &opts, &r);
	assert_int_equal(r.nr_sites, 1);
	assert_int_equal(r.sites[0].kind, TTMON_MT_STORE);
	ttmon_ptx_fini(&r);
	opts = everything;
	opts.select = in_list;
	opts.ctx = (void *)(uintptr_t)(const char *const[]){ "other", NULL };
	rewrite(text, &opts, &r);
	assert_null(r.text);
	assert_int_equal(r.nr_kernels, 1);
	assert_string_equal(r.kernels[0].why, "not selected");
	ttmon_ptx_fini(&r);
	/* A kernel that sets the number of its registers is left alone, the one beside it is not. */
	rewrite(HEAD ".entry a() { .reg .b64 %a; setmaxnreg.dec.sync.aligned.u32 40; ld.u8 %a, [%a]; ret; }\n"
		     ".entry b() { .reg .b64 %a; ld.u8 %a, [%a]; ret; }\n",
		&everything, &r);
	assert_int_equal(r.nr_kernels, 2);
	assert_non_null(strstr(r.kernels[0].why, "setmaxnreg"));
	assert_string_equal(r.kernels[1].why, "");
	assert_null(strstr(r.text, "__ttmon_a("));
	ttmon_ptx_fini(&r);
	opts = everything;
	opts.first_site = TTMON_MTC_MAX_SITES - 3;
	refused(text, &opts, -E2BIG, "too many");
	opts.first_site--;
	rewrite(text, &opts, &r);
	assert_int_equal(r.nr_sites, 4);
	ttmon_ptx_fini(&r);
}

static void test_refused(void **state)
{
	struct ttmon_ptx_opts counts = everything;

	(void)state;
	counts.aggregate = true;
	refused("", &everything, -EBADMSG, ".version");
	refused("\177ELF", &everything, -EBADMSG, ".version");
	refused(".version x\n", &everything, -EBADMSG, "version");
	refused(".version 9.0\n", &everything, -EBADMSG, ".target");
	refused(".version 9.0\n.target sm_90\n", &everything, -EOPNOTSUPP, "32 bits");
	refused(".version 9.0\n.target sm_90\n.address_size 32\n", &everything, -EOPNOTSUPP, "32 bits");
	refused(".version 6.2\n.target sm_60\n.address_size 64\n", &everything, -EOPNOTSUPP, "6.2");
	refused(".version 6.3\n.target sm_35\n.address_size 64\n", &everything, -EOPNOTSUPP, "sm_35");
	refused(".version 6.3\n.target sm_61\n.address_size 64\n", &counts, -EOPNOTSUPP, "sm_70");
	refused(HEAD ".entry k() { st.u32 [%a], 1;", &everything, -EBADMSG, "ends in a function (k, line 4)");
	refused(HEAD "\n.entry 5() { }", &everything, -EBADMSG, "line 5");
	refused(HEAD ".global .u32 __ttmon_x;", &everything, -EOPNOTSUPP, "__ttmon");
}

/* Older than sm_70 there is no nanosleep; clusters have shared memory of their own from sm_90 on. */
static void test_targets(void **state)
{
	static const char old[] =
		".version 6.3\n.target sm_50\n.address_size 64\n.global .u32 g;\n.entry k() { st.global.u32 [g], 1; }";
	struct ttmon_ptx_result r;

	(void)state;
	rewrite(old, &everything, &r);
	assert_null(strstr(r.text, "nanosleep"));
	assert_null(strstr(r.text, "fence"));
	assert_null(strstr(r.text, "//"));
	assert_non_null(strstr(r.text, "membar.sys;"));
	assert_non_null(strstr(r.text, "isspacep.shared %ps"));
	assert_null(strstr(r.text, "__ttmon$agg"));
	ttmon_ptx_fini(&r);
	rewrite(".version 6.3\n.target sm_70\n.address_size 64\n.global .u32 g;\n.entry k() { st.global.u32 [g], 1; }",
		&everything, &r);
	assert_non_null(strstr(r.text, "nanosleep"));
	assert_null(strstr(r.text, "membar"));
	ttmon_ptx_fini(&r);
	rewrite(KERNEL("ld.u32 %r1, [%rd1];"), &everything, &r);
	assert_non_null(strstr(r.text, "nanosleep"));
	assert_non_null(strstr(r.text, "isspacep.shared::cluster %ps"));
	assert_null(strstr(r.text, "membar"));
	ttmon_ptx_fini(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nvcc),	  cmocka_unit_test(test_what_is_said), cmocka_unit_test(test_golden),
		cmocka_unit_test(test_functions), cmocka_unit_test(test_apart),	       cmocka_unit_test(test_selection),
		cmocka_unit_test(test_refused),	  cmocka_unit_test(test_targets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
