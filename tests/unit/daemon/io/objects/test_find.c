// SPDX-License-Identifier: GPL-2.0-only
/* test_find.c: a pair of bytes is found wherever it is, and nothing behind the end is looked at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/io/objects/find.h"

/* Every place of the pair in every length around the blocks, and halves of it at both ends. */
static void pair_is_found_wherever_it_is(void **state)
{
	char room[3 * TTMON_FIND_BLOCK + 2];

	(void)state;
	for (size_t n = 0; n <= 3 * TTMON_FIND_BLOCK; n++) {
		memset(room, 'c', sizeof(room));
		room[n] = 'u'; /* behind the end */
		assert_null(ttmon_find_pair(room, room + n, 'c', 'u'));
		for (size_t at = 0; at + 2 <= n; at++) {
			memset(room, 'u', sizeof(room));
			room[at] = 'c';
			assert_ptr_equal(ttmon_find_pair(room, room + n, 'c', 'u'), room + at);
			assert_null(ttmon_find_pair(room + at + 1, room + n, 'c', 'u'));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(pair_is_found_wherever_it_is) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
