// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_db.c: any bytes as a database, plain or gzip: read to the end, then again passing over the
 * allocations. Both ways must agree on whether the document is whole up to what only a parser of the
 * allocations sees, and each error must say something.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "lib/read/db.h"

/* What a user of the reader does with a value. */
static void use(const json_t *a)
{
	uint64_t v = 0;

	ttmon_db_u64(a, "alloc_ns", &v);
	ttmon_db_get(a, "addr", 0);
	ttmon_db_str(a, "id", "");
}

static int read_allocs(struct ttmon_db *db)
{
	json_t *a = NULL;
	int r;

	while ((r = ttmon_db_next_alloc(db, &a)) == 1) {
		use(a);
		json_decref(a);
	}
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64], why[600];
	int fd = memfd_create("db", MFD_CLOEXEC);
	int results[2] = { 0, 0 };

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (int skip = 0; skip < 2; skip++) {
		struct ttmon_db *db = NULL;

		why[0] = '\0';
		results[skip] = ttmon_db_open(path, &db, why, sizeof(why));
		if (results[skip]) {
			if (!why[0] || db)
				abort();
			continue;
		}
		results[skip] = skip ? ttmon_db_skip(db) : read_allocs(db);
		if ((results[skip] != 0) != (ttmon_db_why(db)[0] != '\0'))
			abort();
		use(ttmon_db_member(db, "summary"));
		ttmon_db_close(db);
	}
	/* Passing over takes everything that reading takes. */
	if (!results[0] && results[1])
		abort();
	close(fd);
	return 0;
}
