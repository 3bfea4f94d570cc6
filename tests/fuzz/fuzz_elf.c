// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_elf.c: a hostile ELF file into the reader and the symbolizer. What they say must lie within the
 * file and be in order.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "daemon/io/objects/objects.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok)
{
	if (!ok)
		abort();
}

struct seen {
	size_t n;
	const uint64_t *offsets;
};

static void see(void *ctx, size_t i, const char *name, uint64_t delta)
{
	struct seen *s = ctx;

	require(i == s->n++);
	require(!name || (name[0] && delta <= s->offsets[i]));
}

static void check(const struct ttmon_elf_info *info, size_t size)
{
	for (size_t i = 0; i < info->nr_targets; i++) {
		const struct ttmon_target *t = &info->targets[i];

		require(t->offset < size && t->fn && t->fn < TTMON_FN_COUNT && strlen(t->symbol) < sizeof(t->symbol));
		require(!i || info->targets[i - 1].offset < t->offset);
		require(t->offset + t->skip < size && !(t->skip && (t->single_step || t->nop5)));
	}
	for (size_t i = 0; i < info->nr_usdts; i++) {
		const struct ttmon_usdt *u = &info->usdts[i];

		require(u->offset < size && u->sema < size && strlen(u->args) < sizeof(u->args));
	}
	require(info->build_id_len <= TTMON_BUILD_ID);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ttmon_user_fn user[] = { { "*", "my_alloc", 200 }, { "libx", "f", 201 } };
	uint64_t offsets[32];
	struct seen s = { .offsets = offsets };
	_cleanup_close_ int fd = memfd_create("fuzz_elf", MFD_CLOEXEC);
	struct ttmon_elf_info info;
	int err;

	require(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	err = ttmon_elf_read(fd, "libx.so", user, ARRAY_SIZE(user), &info);
	require(err == 0 || err == -EBADMSG || err == -ENOEXEC);
	if (!err) {
		check(&info, size);
		ttmon_elf_info_fini(&info);
	}
	for (size_t i = 0; i < ARRAY_SIZE(offsets); i++)
		offsets[i] = i * (size / ARRAY_SIZE(offsets));
	err = ttmon_elf_symbols(fd, offsets, ARRAY_SIZE(offsets), see, &s);
	require(err == 0 || err == -EBADMSG || err == -ENOEXEC);
	require(s.n == (err ? 0 : ARRAY_SIZE(offsets)));
	return 0;
}
