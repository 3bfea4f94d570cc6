// SPDX-License-Identifier: GPL-2.0-only
/*
 * shm_word.c: one word of a tt_device_<key>_memory file. In a file of its own, so that the unit test
 * can look at each store.
 */
#include "daemon/io/tt/shm_int.h"

int ttmon_ttshm_word_store(int fd, uint64_t *map, size_t word, uint64_t value)
{
	ssize_t r;

	if (map) {
		__atomic_store_n(&map[word], value, __ATOMIC_RELEASE);
		return 0;
	}
	r = pwrite(fd, &value, sizeof(value), (off_t)(word * sizeof(value)));
	return r == (ssize_t)sizeof(value) ? 0 : r < 0 ? -errno : -EIO;
}
