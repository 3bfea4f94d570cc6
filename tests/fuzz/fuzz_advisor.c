// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_advisor.c: arbitrary bytes as a database that a program loads with libttmon and queries: by
 * stacks of its own code, by its own stack, by names and by sizes in the bytes. A database that is
 * accepted answers with a valid verdict, match and confidence; a refused one gives the reason.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "lib/advisor/advisor_int.h"

static void check(const struct ttmon_answer *a, enum ttmon_verdict v)
{
	if (a->verdict != v || v > TTMON_VERDICT_NO_PIN || a->match >= TTMON_MATCH_MAX ||
	    !(a->confidence >= 0 && a->confidence <= 1))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ttmon_advisor *adv = NULL;
	struct ttmon_answer a;
	char path[64], why[300] = "", name[64];
	const char *const dbs[] = { path, path };
	int fd = memfd_create("db", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (ttmon_advisor_open(dbs, 1 + size % 2, NULL, &adv, why, sizeof(why))) {
		if (!why[0] || adv)
			abort();
		close(fd);
		return 0;
	}
	close(fd);
	for (size_t i = 0; i < 64 && size; i++) {
		const void *stack[] = { (const char *)(uintptr_t)check + data[i * 37 % size],
					(const char *)(uintptr_t)LLVMFuzzerTestOneInput + i };
		size_t at = i * 101 % size, n = MIN(sizeof(name) - 1, size - at);
		uint64_t bytes = 4096ull << (i % 20);
		enum ttmon_verdict v;

		memcpy(name, data + at, n);
		name[n] = '\0';
		name[strcspn(name, "\"")] = '\0';
		v = ttmon_advise_stack(adv, stack, 2, bytes, &a);
		check(&a, v);
		v = ttmon_advise_here(adv, bytes, &a);
		check(&a, v);
		v = ttmon_advise_name(adv, name, bytes, &a);
		check(&a, v);
		v = ttmon_advise_stack(adv, NULL, 0, bytes, &a);
		check(&a, v);
	}
	ttmon_advisor_close(adv);
	return 0;
}
