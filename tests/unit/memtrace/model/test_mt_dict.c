// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_mt_dict.c: a dictionary that grows: what is put in comes out, each text is there once, and it
 * ends where it should.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/read/run.h"
#include "memtrace/model/mt.h"
#include "lib/base/util.h"

#include "tests/unit/feed/torture.h"

#include "memtrace/model/dict.c"

#undef malloc
#undef calloc
#undef realloc
#undef reallocarray

static void dict_fini(struct ttmon_mt_dictw *d)
{
	ttmon_mt_dict_fini(d);
}
#define _cleanup_dict_ _cleanup_(dict_fini)

static size_t blocks(const struct ttmon_mt_dictw *d)
{
	size_t n = 0;

	for (const struct block *b = d->words ? d->words->blocks : NULL; b; b = b->next)
		n++;
	return n;
}

/*
 * Kernels that take turns: the text of each is there once, whatever stands between two of its
 * launches.
 */
static void takes_turns(void **state)
{
	_cleanup_dict_ struct ttmon_mt_dictw d = { 0 };
	const char *names[3];
	char buf[64];

	(void)state;
	for (unsigned int i = 0; i < 60000; i++) {
		struct ttmon_mt_launch l = { .id = i, .kernel = buf };

		snprintf(buf, sizeof(buf), "kernel_%c(float const*, int)", 'a' + i % 3);
		assert_int_equal(ttmon_mt_dict_launch(&d, &l), i);
		if (i < 3)
			names[i] = d.dict.launches[i].kernel;
		assert_string_equal(d.dict.launches[i].kernel, buf);
		assert_ptr_equal(d.dict.launches[i].kernel, names[i % 3]);
	}
	assert_int_equal(blocks(&d), 1);
	assert_int_equal(d.dict.launches[59999].id, 59999);
}

/* Many different ones, each twice, as names of all the places a text can be at. */
static void many(void **state)
{
	enum { N = 20000 };
	_cleanup_dict_ struct ttmon_mt_dictw d = { 0 };
	char kernel[64], file[64];

	(void)state;
	for (unsigned int i = 0; i < 2 * N; i++) {
		struct ttmon_mt_site s = {
			.kernel = kernel, .opcode = i & 1 ? "LDG.E" : "STG.E", .file = file, .line = i
		};

		snprintf(kernel, sizeof(kernel), "k%u", i % N);
		snprintf(file, sizeof(file), "k%u", (i + 1) % N); /* the text of another one's kernel */
		assert_int_equal(ttmon_mt_dict_site(&d, &s), i);
	}
	assert_int_equal(d.words->nr, N + 2);
	for (unsigned int i = 0; i < 2 * N; i++) {
		const struct ttmon_mt_site *s = &d.dict.sites[i];

		snprintf(kernel, sizeof(kernel), "k%u", i % N);
		assert_string_equal(s->kernel, kernel);
		assert_ptr_equal(s->kernel, d.dict.sites[(i + N) % (2 * N)].kernel);
		assert_ptr_equal(s->file, d.dict.sites[(i + 1) % N].kernel);
		assert_string_equal(s->module, "");
		assert_int_equal(s->line, i);
	}
}

/*
 * Long texts are cut, and those that differ behind the cut are one; what begins another one is not it.
 */
static void long_texts(void **state)
{
	_cleanup_dict_ struct ttmon_mt_dictw d = { 0 };
	char name[2 * TTMON_MT_MAX_TEXT];
	struct ttmon_mt_kernel k = { .name = name, .module = NULL, .why = "" };

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(ttmon_mt_dict_kernel(&d, &k), 0);
	name[TTMON_MT_MAX_TEXT] = 'm';
	assert_int_equal(ttmon_mt_dict_kernel(&d, &k), 1);
	name[TTMON_MT_MAX_TEXT - 1] = '\0';
	assert_int_equal(ttmon_mt_dict_kernel(&d, &k), 2);
	name[1] = '\0';
	assert_int_equal(ttmon_mt_dict_kernel(&d, &k), 3);
	assert_int_equal(strlen(d.dict.kernels[0].name), TTMON_MT_MAX_TEXT);
	assert_ptr_equal(d.dict.kernels[0].name, d.dict.kernels[1].name);
	assert_int_equal(strlen(d.dict.kernels[2].name), TTMON_MT_MAX_TEXT - 1);
	assert_string_equal(d.dict.kernels[3].name, "n");
	assert_string_equal(d.dict.kernels[3].module, "");
}

/* Without memory an entry is refused, and what is there stays whole; with it the same goes on. */
static void short_of_memory(void **state)
{
	_cleanup_dict_ struct ttmon_mt_dictw d = { 0 };
	char kernel[300], file[300];
	unsigned int refused = 0;

	(void)state;
	memset(kernel, 'k', sizeof(kernel));
	memset(file, 'f', sizeof(file));
	for (unsigned int i = 0; i < 600;) {
		struct ttmon_mt_site s = { .kernel = kernel, .opcode = "op", .file = file };
		int64_t got;

		snprintf(kernel + 280, 20, "%u", i);
		snprintf(file + 280, 20, "%u", i);
		fail_at = 0;
		fail_on = true;
		asked = 0;
		got = ttmon_mt_dict_site(&d, &s);
		fail_at = -1;
		fail_on = false;
		if (got < 0) {
			assert_int_equal(got, -ENOMEM);
			assert_int_equal(d.dict.nr_sites, i);
			refused++;
			got = ttmon_mt_dict_site(&d, &s);
		}
		assert_int_equal(got, i);
		assert_string_equal(d.dict.sites[i].kernel, kernel);
		assert_string_equal(d.dict.sites[i].file, file);
		i++;
	}
	assert_true(refused >= 8);
	assert_int_equal(d.words->nr, 1201);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(takes_turns), cmocka_unit_test(many),
					    cmocka_unit_test(long_texts), cmocka_unit_test(short_of_memory) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
