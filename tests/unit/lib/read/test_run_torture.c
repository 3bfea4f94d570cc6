// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_run_torture.c: every allocation of memory that loading a database and making a profile of it
 * takes fails once, and then all after it: an error, no crash, no leak, nothing half done. The sources
 * are compiled in here once more, with malloc and friends replaced; the linker then takes nothing of
 * them from the archive.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>

#include "tests/unit/feed/torture.h"

#include "lib/base/hmap.c"
#include "lib/pin/profile.c"
#include "lib/pin/profile_make.c"
#include "lib/read/run.c"

#undef malloc
#undef calloc
#undef realloc
#undef reallocarray

static char path[] = "/tmp/ttmon-test-run-torture-XXXXXX";

#define ALLOC(site, order, method, name)                                                                        \
	"{\"id\":\"aa:4096:0@0\",\"site\":" #site ",\"ordinal\":" #order ",\"size\":4096,\"method\":\"" method  \
	"\",\"name\":\"" name                                                                                   \
	"\",\"alloc_ns\":\"3\",\"free_ns\":\"8\",\"transfers\":{\"h2d\":[2,600]},\"events\":[[1,\"h2d\",300,0," \
	"\"pinned\",1]]}"

static int setup(void **state)
{
	static const char text[] =
		"{\"schema\":\"ttmon-db\",\"version\":1,\"ttmond\":\"1\",\"host\":{\"hostname\":\"h\"},"
		"\"completeness\":{\"reasons\":[\"cut\"],\"blind\":[{\"object\":1,\"pid\":1,\"window_us\":1}]},"
		"\"objects\":[{\"id\":1,\"path\":\"/opt/app\",\"build_id\":\"01\"}],\"processes\":[{\"pid\":1,"
		"\"exe\":\"/opt/app\"}],"
		"\"sites\":[{},{\"frames\":[[1,\"0x1\",\"f+0x1\"],[1,\"0x2\",\"main+0x2\"]]},{\"frames\":[[1,\"0x3\","
		"null]]}],"
		"\"checkpoints\":[[\"1\",0,1,\"step\"]],\"allocations\":[" ALLOC(1, 0, "host_alloc", "") "," ALLOC(
			1, 1, "registered", "") "," ALLOC(2, 0, "pool", "") "," ALLOC(0, 0, "custom", "weights") "]}";
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0 || write(fd, text, sizeof(text) - 1) != (ssize_t)sizeof(text) - 1)
		return 1;
	return close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

/* Both steps; 0 when both went well. */
static int run_once(void)
{
	const struct ttmon_cost cost = TTMON_COST_DEFAULT;
	struct ttmon_profile *p = NULL;
	struct ttmon_run *run = NULL;
	const struct ttmon_run *runs[1];
	char why[256] = "";
	int err;

	asked = 0;
	err = ttmon_run_load(path, NULL, &run, why, sizeof(why));
	if (err) {
		assert_null(run);
		assert_int_equal(err, -ENOMEM);
		assert_true(why[0] != '\0');
		return err;
	}
	assert_int_equal(run->nr_allocs, 4);
	runs[0] = run;
	err = ttmon_profile_new(runs, 1, &cost, &p);
	assert_true(err ? err == -ENOMEM && !p : p != NULL);
	ttmon_profile_free(p);
	ttmon_run_free(run);
	return err;
}

static void fails(void **state)
{
	long all;

	(void)state;
	assert_int_equal(run_once(), 0);
	all = asked;
	assert_true(all > 30);
	for (int on = 0; on < 2; on++) {
		fail_on = on;
		for (fail_at = 0; fail_at < all; fail_at++)
			assert_int_equal(run_once(), -ENOMEM);
	}
	fail_at = -1;
	fail_on = false;
	assert_int_equal(run_once(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(fails, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
