// SPDX-License-Identifier: GPL-2.0-only
/* test_cli.c: a command line from tables: each kind of option, groups, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/os/cli.h"

enum { A = 1, B = 2 };

struct opts {
	bool flag, given, word_bool;
	unsigned int bits, word, form;
	const char *text;
	uint32_t number;
	uint64_t size, ms;
	double share;
};

static struct opts got;
static int got_words;
static char first[32];
static bool got_dashes;

static int run(const struct ttmon_cli *cli, void *opts)
{
	got = *(struct opts *)opts;
	got_words = cli->nr_words;
	got_dashes = cli->dashes;
	snprintf(first, sizeof(first), "%s", cli->nr_words ? cli->words[0] : "");
	return 7;
}

static const struct ttmon_cli_opt rows[] = {
	{ "flag", 'f', NULL, "h", NULL, TTMON_CLI_FLAG(struct opts, flag) },
	{ "one", 0, NULL, "h", NULL, TTMON_CLI_BITS(struct opts, bits, 1) },
	{ "two", 0, NULL, "h", NULL, TTMON_CLI_BITS(struct opts, bits, 2) },
	{ "form", 0, NULL, "h", NULL, TTMON_CLI_SET(struct opts, form, 5) },
	{ "text", 't', "T", "h", NULL, TTMON_CLI_TEXT(struct opts, text, ":file") },
	{ "number", 'n', "N", "h", NULL, TTMON_CLI_NUMBER(struct opts, number, 2, UINT32_MAX),
	  TTMON_CLI_GIVEN(struct opts, given) },
	{ "size", 0, "N", "h", NULL, TTMON_CLI_SIZE(struct opts, size, 1024, UINT64_MAX) },
	{ "seconds", 'i', "S", "h", NULL, TTMON_CLI_FRACTION(struct opts, ms, 1000, 100, 60000) },
	{ "share", 0, "S", "h", NULL, TTMON_CLI_FRACTION(struct opts, share, 0, 0, 100) },
	{ "word", 0, "W", "h", NULL, TTMON_CLI_WORD(struct opts, word, "ab abc c"), .min = 1 },
	{ "cpu", 0, "W", "h", NULL, TTMON_CLI_WORD(struct opts, word_bool, "off on") },
	{ "of-b", 'b', NULL, "h", NULL, TTMON_CLI_FLAG(struct opts, flag), .of = B },
};
static const struct ttmon_cli_cmd leaf = {
	.name = "prog leaf",
	.summary = "s",
	.args = "[WORD]",
	TTMON_CLI_OPTS(rows),
	.is = A,
	.size = sizeof(struct opts),
	.defaults = &(const struct opts){ .number = 9 },
	.max_words = 1,
	.run = run,
};
static const struct ttmon_cli_cmd stops = {
	.name = "prog stops",
	.summary = "s",
	.args = "CMD",
	TTMON_CLI_OPTS(rows),
	.is = B,
	.size = sizeof(struct opts),
	.max_words = -1,
	.stops = true,
	.run = run,
};
static const struct ttmon_cli_opt group_rows[] = {
	{ "text", 't', "T", "h", NULL, TTMON_CLI_PASSED },
};
static const struct ttmon_cli_cmd group = {
	.name = "prog",
	.args = "CMD",
	TTMON_CLI_OPTS(group_rows),
	.subs = (const struct ttmon_cli_cmd *const[]){ &leaf, &stops, NULL },
};

/* Status of the words behind "prog". Refusals go to a stderr that is closed. */
static int line(const char *words)
{
	char text[256], *argv[32] = { (char *)"prog" }, *save = NULL;
	int n = 1;

	snprintf(text, sizeof(text), "%s", words);
	for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save))
		argv[n++] = w;
	got = (struct opts){ 0 };
	return ttmon_cli_run(&group, n, argv);
}

static void test_values(void **state)
{
	(void)state;
	assert_int_equal(line("leaf"), 7);
	assert_true(!got.flag && got.number == 9 && !got.given && !got.bits);
	assert_int_equal(
		line("leaf -f --one --two --form x -n 4294967295 --size 2G -i 0.15 --share 1.5 --word abc --cpu on"),
		7);
	assert_true(got.flag && got.bits == 3 && got.form == 5 && got.number == UINT32_MAX && got.given);
	assert_true(got.size == 2ULL << 30 && got.ms == 150 && got.word == 2 && got.word_bool);
	assert_true(got.share > 1.49 && got.share < 1.51);
	assert_string_equal(first, "x");
	assert_int_equal(line("-t before leaf --num=7"), 7);
	assert_int_equal(got.number, 7);
}

static void test_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"none",
		"leaf a b",
		"leaf --none",
		"leaf -x",
		"leaf -n",
		"leaf -n 1",
		"leaf -n -3",
		"leaf -n 4294967296",
		"leaf -n 3x",
		"leaf --size 1023",
		"leaf --size 1KB",
		"leaf --size 99999999T",
		"leaf -i 0.05",
		"leaf -i nan",
		"leaf --share 101",
		"leaf --word a",
		"leaf --word",
		"leaf --flag=1",
		"leaf -b",
		"--none leaf",
		"leaf --cpu",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		if (line(wrong[i]) != TTMON_CLI_MISUSE)
			fail_msg("taken: %s", wrong[i]);
}

static void test_command_behind(void **state)
{
	(void)state;
	assert_int_equal(line("stops -b prog -n 1 --none"), 7);
	assert_true(got_words == 4 && !got_dashes && got.flag);
	assert_string_equal(first, "prog");
	assert_int_equal(line("stops -- -n"), 7);
	assert_true(got_words == 1 && got_dashes);
	assert_int_equal(line("leaf -- -n"), 7);
	assert_string_equal(first, "-n");
}

static void test_rows(void **state)
{
	const struct ttmon_cli_opt *o;
	size_t n = 0;

	(void)state;
	for (size_t i = 0; (o = ttmon_cli_row(&leaf, &i)); n++)
		assert_string_not_equal(o->name, "of-b");
	assert_int_equal(n, ARRAY_SIZE(rows)); /* one that it has not, and --help */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_command_behind),
		cmocka_unit_test(test_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
