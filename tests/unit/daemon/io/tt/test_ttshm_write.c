// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_ttshm_write.c: io/tt/shm*.c, the writer of tt_device_<key>_memory files, in a directory of its
 * own. Offsets are given as numbers. Tests that need root (another owner, trusted attributes, a small
 * tmpfs) are skipped without it.
 *
 * The linker wraps the storing of a word: every store of the code under test is intercepted, and after
 * each one the file must be in a state that readers may see.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <linux/capability.h>

#include "daemon/io/tt/shm.h"
#include "daemon/io/tt/shm_int.h"
#include "lib/read/ttshm.h"
#include "lib/os/clock.h"

#define NOW 1700000000000000000ull
#define KEY 469504ull

static char dir[64], path[128];

/* ---- every store ---- */

static struct {
	bool watch, grows; /* grows: no entry that num_active_processes counts may be empty at any time */
	unsigned int version, stores, bad;
	int fail_after; /* fail with ENOSPC after this many stores; -1: never */
	int cut_after;	/* truncate the file after this many stores; -1: never */
	unsigned int by_pwrite;
	size_t last; /* offset of the last store */
} hook = { .fail_after = -1, .cut_after = -1 };

struct off {
	size_t size, totals, chips, chip, procs, proc, types;
};

static const struct off offs[5] = {
	[1] = { 9280, 48, 96, 56, 992, 128, 6 },
	[2] = { 8576, 48, 88, 48, 856, 120, 5 },
	[3] = { 8576, 48, 88, 48, 856, 120, 5 },
	[4] = { 8576, 48, 88, 48, 856, 120, 5 },
};

static uint64_t at64(const uint8_t *b, size_t off)
{
	uint64_t v;

	memcpy(&v, b + off, sizeof(v));
	return v;
}

static uint32_t at32(const uint8_t *b, size_t off)
{
	uint32_t v;

	memcpy(&v, b + off, sizeof(v));
	return v;
}

/*
 * Returns true if the file is valid for a reader: no process is in it twice, and the processes do not
 * have more than the chip.
 */
static bool is_possible(const uint8_t *b, unsigned int version)
{
	const struct off *o = &offs[version];
	uint64_t sums[6] = { 0 };

	if (at32(b, 0) != version || at32(b, 4) > 64)
		return version == 4 && at32(b, 8536) != 0x52454459;
	for (size_t i = 0; i < 64; i++) {
		uint32_t pid = at32(b, o->procs + i * o->proc);

		for (size_t j = 0; pid && j < i; j++) {
			if (at32(b, o->procs + j * o->proc) == pid)
				return false;
		}
		for (size_t k = 0; pid && k < o->types; k++)
			sums[k] += at64(b, o->procs + i * o->proc + 8 + 8 * k);
		if (hook.grows && i < at32(b, 4) && !pid)
			return false;
	}
	for (size_t k = 0; k < o->types; k++) {
		if (sums[k] > at64(b, o->totals + 8 * k) || at64(b, o->chips + 8 + 8 * k) > at64(b, o->totals + 8 * k))
			return false;
	}
	return true;
}

int __real_ttmon_ttshm_word_store(int fd, uint64_t *map, size_t word, uint64_t value);
int __wrap_ttmon_ttshm_word_store(int fd, uint64_t *map, size_t word, uint64_t value);

int __wrap_ttmon_ttshm_word_store(int fd, uint64_t *map, size_t word, uint64_t value)
{
	uint8_t b[9280] = { 0 };
	int err;

	if (hook.fail_after >= 0 && hook.fail_after-- == 0)
		return -ENOSPC;
	if (hook.cut_after >= 0 && hook.cut_after-- == 0)
		assert_int_equal(truncate(path, 0), 0);
	err = __real_ttmon_ttshm_word_store(fd, map, word, value);
	hook.by_pwrite += !map;
	if (!hook.watch)
		return err;
	hook.stores++;
	hook.last = word * 8;
	if (pread(fd, b, sizeof(b), 0) < 0 || !is_possible(b, hook.version))
		hook.bad++;
	return err;
}

static void watch(unsigned int version)
{
	hook.watch = true;
	hook.version = version;
	hook.stores = hook.bad = 0;
}

static unsigned int watched(void)
{
	hook.watch = hook.grows = false;
	assert_int_equal(hook.bad, 0);
	return hook.stores;
}

/* ---- helpers ---- */

static int setup(void **state)
{
	(void)state;
	/* tmpfs, where there is one. */
	snprintf(dir, sizeof(dir), "%s/ttmon-ttshm-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/tt_device_%" PRIu64 "_memory", dir, (uint64_t)KEY);
	hook.watch = false;
	hook.fail_after = hook.cut_after = -1;
	return 0;
}

static int teardown(void **state)
{
	char cmd[128];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	return system(cmd);
}

static size_t slurp(const char *file, uint8_t *b)
{
	int fd = open(file, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	assert_true(fd >= 0);
	memset(b, 0, 9280);
	n = pread(fd, b, 9280, 0);
	assert_true(n >= 0);
	close(fd);
	return (size_t)n;
}

static struct ttmon_ttshm_user user(uint32_t tgid, const char *name, uint64_t dram)
{
	struct ttmon_ttshm_user u = { .tgid = tgid, .uid = geteuid(), .gid = getegid() };

	strncpy(u.name, name, sizeof(u.name) - 1);
	for (size_t k = 0; k < TTMON_TT_TYPES; k++)
		u.bytes[k] = dram ? dram + k : 0;
	return u;
}

static struct ttmon_ttshm_chip chip(const struct ttmon_ttshm_user *users, size_t n)
{
	return (struct ttmon_ttshm_chip){
		.index = 7, .key = KEY, .board_id = KEY >> 8, .device_id = 3, .users = users, .nr_users = n
	};
}

static struct ttmon_ttshm_writer *writer(unsigned int version)
{
	struct ttmon_ttshm_writer *w = NULL;

	assert_int_equal(ttmon_ttshm_writer_new(dir, version, &w), 0);
	return w;
}

static const struct ttmon_ttshm_report *publish(struct ttmon_ttshm_writer *w, const struct ttmon_ttshm_user *users,
						size_t n, uint64_t now)
{
	struct ttmon_ttshm_chip c = chip(users, n);
	const struct ttmon_ttshm_report *r;
	size_t nr;

	ttmon_ttshm_publish(w, &c, 1, now);
	r = ttmon_ttshm_reports(w, &nr);
	assert_int_equal(nr, 1);
	assert_int_equal(r->index, 7);
	assert_string_equal(r->path, path);
	return r;
}

static void check_state(const struct ttmon_ttshm_report *r, enum ttmon_ttshm_state state, int err)
{
	assert_int_equal(r->state, state);
	assert_int_equal(r->err, err);
}

/* An image as a program of tt-metal makes it, without the daemon's mark. */
static void program_file(unsigned int version, uint32_t references, uint32_t pid, uint64_t dram)
{
	union ttmon_ttshm_image img = { .words = { 0 } };
	struct ttmon_ttshm_user u = user(pid, "program", dram);
	struct ttmon_ttshm_chip c = chip(&u, 1);
	struct ttmon_tt_shm_mark none = { 0 };
	int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	ttmon_ttshm_image_set(&img, version, &c, &none, NOW);
	memset(ttmon_ttshm_image_mark(&img, ttmon_tt_shm_layout(version)), 0, sizeof(none));
	img.v1.reference_count = references;
	assert_int_equal(pwrite(fd, &img, offs[version].size, 0), (ssize_t)offs[version].size);
	close(fd);
}

static void check_untouched(const uint8_t *before)
{
	uint8_t b[9280];

	slurp(path, b);
	assert_memory_equal(b, before, sizeof(b));
}

/* Returns the pid of no process. */
static uint32_t dead_pid(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return (uint32_t)pid;
}

/* ---- layouts ---- */

static void check_common(const uint8_t *b, unsigned int version, const struct ttmon_ttshm_user *u)
{
	const struct off *o = &offs[version];

	assert_int_equal(at32(b, 0), version);
	assert_int_equal(at32(b, 4), 2);
	assert_int_equal(at64(b, 8), NOW);
	assert_int_equal(at64(b, 16), 1);
	assert_int_equal(at64(b, 24), version == 1 ? KEY >> 8 : 0);
	assert_int_equal(at64(b, 32), version == 1 ? KEY & 0xff : KEY);
	assert_int_equal(at64(b, 40), 3);
	for (size_t k = 0; k < o->types; k++) {
		assert_int_equal(at64(b, o->totals + 8 * k), u[0].bytes[k] + u[1].bytes[k]);
		assert_int_equal(at64(b, o->chips + 8 + 8 * k), u[0].bytes[k] + u[1].bytes[k]);
		assert_int_equal(at64(b, o->procs + 8 + 8 * k), u[0].bytes[k]);
		assert_int_equal(at64(b, o->procs + o->proc + 8 + 8 * k), u[1].bytes[k]);
	}
	assert_int_equal(at64(b, o->chips), 3); /* id, not remote */
	assert_int_equal(at64(b, o->procs), u[0].tgid);
	assert_int_equal(at64(b, o->procs + o->proc), u[1].tgid);
	assert_int_equal(at64(b, o->procs + 8 + 8 * o->types), NOW);
	assert_string_equal((const char *)b + o->procs + 16 + 8 * o->types, u[0].name);
	for (size_t i = 2 * o->proc; i < 64 * o->proc; i++)
		assert_int_equal(b[o->procs + i], 0);
}

static void version_1_is_byte_exact(void **state)
{
	const struct ttmon_ttshm_user u[] = { user(101, "trainer", 1ull << 33), user(102, "evaluate_fifteen", 4096) };
	struct ttmon_ttshm_writer *w = writer(1);
	uint8_t b[9280];
	struct stat st;

	(void)state;
	check_state(publish(w, u, 2, NOW), TTMON_TTSHM_PUBLISHED, 0);
	assert_int_equal(slurp(path, b), 9280);
	check_common(b, 1, u);
	/* Further chips are unused, so they are zeros; so is the padding before the mark. */
	for (size_t i = 96 + 56; i < 992; i++)
		assert_int_equal(b[i], 0);
	for (size_t i = 9184; i < 9248; i++)
		assert_int_equal(b[i], 0);
	assert_memory_equal(b + 9248, "ttmond01", 8);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0644);
	assert_int_equal(st.st_uid, geteuid());
	assert_true(st.st_blocks * 512 >= 9280);
	ttmon_ttshm_writer_free(w);
}

static void versions_2_to_4_are_byte_exact(void **state)
{
	struct ttmon_ttshm_user u[] = { user(101, "trainer", 1ull << 33), user(102, "e", 4096) };
	uint8_t b[9280];
	struct stat st;

	(void)state;
	if (!geteuid())
		u[0].uid = u[0].gid = 12345;
	for (unsigned int version = 2; version <= 4; version++) {
		struct ttmon_ttshm_writer *w = writer(version);

		check_state(publish(w, u, 2, NOW), TTMON_TTSHM_PUBLISHED, 0);
		assert_int_equal(slurp(path, b), 8576);
		check_common(b, version, u);
		for (size_t i = 1; i < 16; i++) {
			assert_int_equal(at64(b, 88 + 48 * i), 0xffffffff);
			for (size_t k = 8; k < 48; k += 8)
				assert_int_equal(at64(b, 88 + 48 * i + k), 0);
		}
		assert_int_equal(at64(b, 8536), version == 4 ? 0x52454459 : 0);
		assert_memory_equal(b + 8544, "ttmond01", 8);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode, S_IFREG | 0600);
		assert_int_equal(st.st_uid, u[0].uid);
		assert_int_equal(st.st_gid, u[0].gid);
		ttmon_ttshm_writer_free(w);
		unlink(path);
	}
}

/*
 * Flags are in the mark and nowhere else. They change alone, are removed with the last user, and stay
 * without users.
 */
static void flags_are_in_the_mark(void **state)
{
	const struct ttmon_ttshm_user u = user(101, "x", 77);
	uint8_t b[9280], before[9280];

	(void)state;
	for (unsigned int version = 1; version <= 4; version++) {
		const size_t at = offs[version].size - 8;
		struct ttmon_ttshm_writer *w = writer(version);
		struct ttmon_ttshm_chip c = chip(&u, 1);

		ttmon_ttshm_publish(w, &c, 1, NOW);
		slurp(path, before);
		assert_int_equal(at64(before, at), 0);
		c.flags = 0x80000009;
		ttmon_ttshm_publish(w, &c, 1, NOW);
		slurp(path, b);
		assert_int_equal(at64(b, at), 0x80000009);
		memset(b + at, 0, 8);
		assert_memory_equal(b, before, offs[version].size);
		c.nr_users = 0;
		ttmon_ttshm_publish(w, &c, 1, NOW);
		slurp(path, b);
		assert_int_equal(at64(b, at), 0x80000009);
		c.flags = 0;
		ttmon_ttshm_publish(w, &c, 1, NOW);
		slurp(path, b);
		assert_int_equal(at64(b, at), 0);
		c.flags = 8;
		ttmon_ttshm_publish(w, &c, 1, NOW);
		ttmon_ttshm_publish(w, NULL, 0, NOW);
		slurp(path, b);
		assert_int_equal(at64(b, at), 0);
		ttmon_ttshm_writer_free(w);
		unlink(path);
	}
}

static void unknown_device_leaves_chips_unused(void **state)
{
	const struct ttmon_ttshm_user u = user(101, "x", 77);
	struct ttmon_ttshm_chip c = chip(&u, 1);
	uint8_t b[9280];

	(void)state;
	c.device_id = -1;
	for (unsigned int version = 1; version <= 4; version++) {
		struct ttmon_ttshm_writer *w = writer(version);

		ttmon_ttshm_publish(w, &c, 1, NOW);
		slurp(path, b);
		assert_int_equal(at64(b, 40), 0xffffffff);
		assert_int_equal(at64(b, 48), 77);
		assert_int_equal(at64(b, offs[version].chips), version == 1 ? 0 : 0xffffffff);
		assert_int_equal(at64(b, offs[version].chips + 8), 0);
		ttmon_ttshm_writer_free(w);
		unlink(path);
	}
}

static void bad_arguments(void **state)
{
	struct ttmon_ttshm_writer *w = NULL;
	const struct ttmon_ttshm_user u = user(1, "x", 1);
	struct ttmon_ttshm_chip c[] = { chip(&u, 1), chip(&u, 1), chip(&u, 1) };
	const struct ttmon_ttshm_report *r;
	size_t n;

	(void)state;
	assert_int_equal(ttmon_ttshm_writer_new(dir, 0, &w), -EINVAL);
	assert_int_equal(ttmon_ttshm_writer_new(dir, 5, &w), -EINVAL);
	assert_null(w);
	w = writer(1);
	c[1].key = 0;
	ttmon_ttshm_publish(w, c, 3, NOW);
	r = ttmon_ttshm_reports(w, &n);
	assert_int_equal(n, 3);
	check_state(&r[0], TTMON_TTSHM_PUBLISHED, 0);
	check_state(&r[1], TTMON_TTSHM_REFUSED, -EINVAL);
	check_state(&r[2], TTMON_TTSHM_REFUSED, -EEXIST);
	ttmon_ttshm_writer_free(w);
	ttmon_ttshm_writer_free(NULL);
}

/* ---- figures over time ---- */

static void entries_stay_compact(void **state)
{
	struct ttmon_ttshm_user u[40];
	uint8_t b[9280];
	unsigned int seed = 1;

	(void)state;
	for (unsigned int version = 1; version <= 4; version++) {
		struct ttmon_ttshm_writer *w = writer(version);
		const struct off *o = &offs[version];

		for (unsigned int round = 0; round < 200; round++) {
			size_t n = 0;
			uint64_t total = 0;

			for (uint32_t pid = 1000; pid < 1040; pid++) {
				seed = seed * 1103515245 + 12345;
				if (seed >> 16 & 1)
					u[n++] = user(pid, "p", 1 + (seed >> 17) % 1000);
			}
			for (size_t i = 0; i < n; i++)
				total += u[i].bytes[0];
			if (round)
				watch(version);
			check_state(publish(w, u, n, NOW + round),
				    n || version == 1 || round ? TTMON_TTSHM_PUBLISHED : TTMON_TTSHM_IDLE, 0);
			if (round)
				assert_true(watched() > 0);
			slurp(path, b);
			assert_int_equal(at32(b, 4), n);
			assert_int_equal(at64(b, 48), total);
			for (size_t i = 0; i < 64; i++) {
				uint64_t pid = at64(b, o->procs + i * o->proc);
				size_t k = 0;

				assert_int_equal(pid != 0, i < n);
				while (pid && k < n && u[k].tgid != pid)
					k++;
				assert_true(!pid || (k < n && at64(b, o->procs + i * o->proc + 8) == u[k].bytes[0]));
			}
		}
		ttmon_ttshm_writer_free(w);
		unlink(path);
	}
}

static void unchanged_is_not_written(void **state)
{
	struct ttmon_ttshm_user u[] = { user(1, "a", 10), user(2, "b", 20) };
	struct ttmon_ttshm_writer *w = writer(4);
	uint8_t b[9280];

	(void)state;
	publish(w, u, 2, NOW);
	watch(4);
	publish(w, u, 2, NOW + 1);
	assert_int_equal(watched(), 0);
	u[1].bytes[TTMON_TT_TYPE_L1] += 5;
	watch(4);
	publish(w, u, 2, NOW + 2);
	/* total, chip, entry and its time, the file's time: init_state stays READY. */
	assert_int_equal(watched(), 5);
	slurp(path, b);
	assert_int_equal(at64(b, 8), NOW + 2);
	assert_int_equal(at64(b, 856 + 48), NOW);
	assert_int_equal(at64(b, 856 + 120 + 48), NOW + 2);
	ttmon_ttshm_writer_free(w);
}

static void entry_is_there_before_it_is_counted(void **state)
{
	struct ttmon_ttshm_user u[40];

	(void)state;
	for (uint32_t i = 0; i < 40; i++)
		u[i] = user(i + 1, "a", 10);
	for (unsigned int version = 1; version <= 4; version++) {
		struct ttmon_ttshm_writer *w = writer(version);

		publish(w, u, 1, NOW);
		for (size_t n = 4; n <= 40; n += 12) {
			watch(version);
			hook.grows = true;
			publish(w, u, n, NOW);
			assert_true(watched() > 0);
		}
		ttmon_ttshm_writer_free(w);
		unlink(path);
	}
}

/* Bytes that move from one process to another are never counted for both. */
static void bytes_change_hands(void **state)
{
	(void)state;
	for (unsigned int version = 1; version <= 4; version++) {
		struct ttmon_ttshm_user u[] = { user(1, "a", 10), user(2, "b", 5000), user(3, "c", 3000) };
		struct ttmon_ttshm_writer *w = writer(version);

		publish(w, u, 3, NOW);
		for (size_t i = 0; i < 6; i++) {
			struct ttmon_ttshm_user other = u[i % 3];

			memcpy(u[i % 3].bytes, u[(i + 1) % 3].bytes, sizeof(other.bytes));
			memcpy(u[(i + 1) % 3].bytes, other.bytes, sizeof(other.bytes));
			watch(version);
			publish(w, u, 3, NOW + i);
			assert_true(watched() > 0);
		}
		ttmon_ttshm_writer_free(w);
		unlink(path);
	}
}

static void more_users_than_entries(void **state)
{
	struct ttmon_ttshm_user u[80];
	struct ttmon_ttshm_writer *w = writer(1);
	const struct ttmon_ttshm_report *r;
	uint8_t b[9280];

	(void)state;
	for (uint32_t i = 0; i < 80; i++)
		u[i] = user(i + 1, "many", 1000);
	u[5].tgid = 0;
	u[6].tgid = UINT32_MAX; /* a pid that a file cannot store */
	r = publish(w, u, 80, NOW);
	check_state(r, TTMON_TTSHM_PUBLISHED, 0);
	assert_int_equal(r->left_out, 16);
	slurp(path, b);
	assert_int_equal(at32(b, 4), 64);
	assert_int_equal(at64(b, 48), 80000);
	/* The first ten end: other processes get their entries. */
	r = publish(w, u + 10, 70, NOW + 1);
	assert_int_equal(r->left_out, 6);
	slurp(path, b);
	assert_int_equal(at32(b, 4), 64);
	assert_int_equal(at64(b, 48), 70000);
	for (size_t i = 0; i < 64; i++)
		assert_true(at64(b, 992 + 128 * i) > 10);
	ttmon_ttshm_writer_free(w);
}

static void totals_never_wrap(void **state)
{
	struct ttmon_ttshm_user u[] = { user(1, "a", UINT64_MAX - 10), user(2, "b", 100), user(1, "a", 100) };
	struct ttmon_ttshm_writer *w = writer(3);
	uint8_t b[9280];

	(void)state;
	publish(w, u, 3, NOW);
	slurp(path, b);
	assert_int_equal(at32(b, 4), 2);
	for (size_t k = 0; k < 5; k++) {
		assert_true(at64(b, 48 + 8 * k) == UINT64_MAX);
		assert_true(at64(b, 856 + 8 + 8 * k) == UINT64_MAX);
		assert_int_equal(at64(b, 856 + 120 + 8 + 8 * k), 100 + k);
	}
	ttmon_ttshm_writer_free(w);
}

static void check_zeros(unsigned int version, uint32_t references)
{
	const struct off *o = &offs[version];
	uint8_t b[9280];

	assert_int_equal(slurp(path, b), o->size);
	assert_int_equal(at32(b, 0), version);
	assert_int_equal(at32(b, 4), 0);
	assert_int_equal(at32(b, 16), references);
	for (size_t k = 0; k < o->types; k++) {
		assert_int_equal(at64(b, o->totals + 8 * k), 0);
		assert_int_equal(at64(b, o->chips + 8 + 8 * k), 0);
	}
	for (size_t i = 0; i < 64 * o->proc; i++)
		assert_int_equal(b[o->procs + i], 0);
}

static void chip_that_leaves_gets_zeros(void **state)
{
	const struct ttmon_ttshm_user u = user(11, "a", 5000);
	uint8_t b[9280];
	struct stat st;

	(void)state;
	for (unsigned int version = 1; version <= 4; version++) {
		struct ttmon_ttshm_writer *w = writer(version);

		publish(w, &u, 1, NOW);
		watch(version);
		ttmon_ttshm_publish(w, NULL, 0, NOW + 1);
		assert_true(watched() > 0);
		check_zeros(version, 0);
		watch(version);
		ttmon_ttshm_publish(w, NULL, 0, NOW + 2);
		assert_int_equal(watched(), 0);
		watch(version);
		publish(w, &u, 1, NOW + 3);
		watched();
		slurp(path, b);
		assert_int_equal(at64(b, 48), 5000);
		assert_int_equal(at64(b, 16), 1);
		ttmon_ttshm_writer_free(w);
		/* The file stays, and only its mark shows that it is the daemon's. */
		check_zeros(version, 0);
		slurp(path, b);
		assert_int_equal(at32(b, offs[version].size - 24), 0);
		assert_int_equal(stat(path, &st), 0);
		unlink(path);
	}
}

static void idle_chip_of_a_user_file_waits(void **state)
{
	struct ttmon_ttshm_writer *w = writer(3);
	const struct ttmon_ttshm_user u = user(11, "a", 5000);

	(void)state;
	check_state(publish(w, NULL, 0, NOW), TTMON_TTSHM_IDLE, 0);
	assert_int_equal(access(path, F_OK), -1);
	check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_PUBLISHED, 0);
	check_state(publish(w, NULL, 0, NOW), TTMON_TTSHM_PUBLISHED, 0);
	check_zeros(3, 0);
	ttmon_ttshm_writer_free(w);
	unlink(path);
	/* Version 1 is used by every program: an idle chip gets a file too. */
	w = writer(1);
	check_state(publish(w, NULL, 0, NOW), TTMON_TTSHM_PUBLISHED, 0);
	check_zeros(1, 0);
	ttmon_ttshm_writer_free(w);
}

/* ---- existing files ---- */

static void foreign_file_is_only_read(void **state)
{
	const struct ttmon_ttshm_user u = user((uint32_t)getpid(), "a", 5000);
	uint8_t before[9280];

	(void)state;
	for (unsigned int version = 1; version <= 4; version++) {
		struct ttmon_ttshm_writer *w;
		void *map;
		int fd;

		program_file(version, 1, (uint32_t)getpid(), 123456);
		slurp(path, before);
		w = writer(version);
		check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_FOREIGN, 0);
		check_untouched(before);
		ttmon_ttshm_publish(w, NULL, 0, NOW);
		check_untouched(before);
		ttmon_ttshm_writer_free(w);
		check_untouched(before);
		unlink(path);

		/*
		 * Its process has ended, but a process has it mapped; then none has: the file is stale, and still
		 * foreign.
		 */
		program_file(version, 1, dead_pid(), 123456);
		slurp(path, before);
		fd = open(path, O_RDWR | O_CLOEXEC);
		map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
		assert_true(map != MAP_FAILED);
		w = writer(version);
		check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_FOREIGN, 0);
		munmap(map, 8192);
		check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_FOREIGN, -ESTALE);
		check_untouched(before);
		/* When it is removed, the next publish makes a file of the daemon. */
		unlink(path);
		check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_PUBLISHED, 0);
		ttmon_ttshm_writer_free(w);
		unlink(path);
	}
}

/* A known file is replaced by another one of that name. */
static void exchanged_file(void **state)
{
	const struct ttmon_ttshm_user u = user((uint32_t)getpid(), "a", 5000);
	struct ttmon_ttshm_writer *w = writer(3);
	uint8_t before[9280];

	(void)state;
	check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_PUBLISHED, 0);
	unlink(path);
	program_file(3, 1, (uint32_t)getpid(), 123456);
	slurp(path, before);
	check_state(publish(w, &u, 1, NOW + 1), TTMON_TTSHM_FOREIGN, 0);
	check_untouched(before);
	ttmon_ttshm_publish(w, NULL, 0, NOW + 2);
	ttmon_ttshm_writer_free(w);
	check_untouched(before);
}

static void hostile_names(void **state)
{
	const struct ttmon_ttshm_user u = user(11, "a", 5000);
	struct ttmon_ttshm_writer *w = writer(1);
	char other[160], target[160];
	uint8_t before[9280], after[9280];

	(void)state;
	snprintf(target, sizeof(target), "%s/target", dir);
	snprintf(other, sizeof(other), "%s/other", dir);

	/* A link without a target: no target is created. */
	assert_int_equal(symlink(target, path), 0);
	check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_REFUSED, -ELOOP);
	assert_int_equal(access(target, F_OK), -1);
	unlink(path);

	/* A symbolic or hard link to a file that is the daemon's in every respect. */
	check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_PUBLISHED, 0);
	ttmon_ttshm_writer_free(w);
	assert_int_equal(rename(path, target), 0);
	assert_int_equal(symlink(target, path), 0);
	slurp(target, before);
	w = writer(1);
	check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_REFUSED, -ELOOP);
	unlink(path);
	assert_int_equal(link(target, path), 0);
	check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_REFUSED, -EMLINK);
	unlink(path);
	slurp(target, after);
	assert_memory_equal(before, after, sizeof(before));

	assert_int_equal(mkfifo(path, 0666), 0);
	check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_REFUSED, -EINVAL);
	unlink(path);
	assert_int_equal(mkdir(path, 0777), 0);
	check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_REFUSED, -EINVAL);
	rmdir(path);

	/* A known file that is replaced by a link. */
	check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_PUBLISHED, 0);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	slurp(other, before);
	check_state(publish(w, NULL, 0, NOW + 1), TTMON_TTSHM_REFUSED, -ELOOP);
	slurp(other, after);
	assert_memory_equal(before, after, sizeof(before));
	ttmon_ttshm_writer_free(w);
	slurp(other, after);
	assert_memory_equal(before, after, sizeof(before));
}

static void odd_sizes(void **state)
{
	const struct ttmon_ttshm_user u = user(11, "a", 5000);
	struct ttmon_ttshm_writer *w = writer(3);
	uint8_t b[9280];
	struct stat st;

	(void)state;
	/* These are foreign: an empty file, and one that has nothing but the mark. */
	assert_true(close(open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0644)) == 0);
	check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_FOREIGN, -ESTALE);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 0);
	unlink(path);
	/* The daemon's file was enlarged by another process: the daemon never shrinks a file. */
	check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_PUBLISHED, 0);
	assert_int_equal(truncate(path, 1 << 20), 0);
	check_state(publish(w, &u, 1, NOW + 1), TTMON_TTSHM_REFUSED, -EFBIG);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 1 << 20);
	unlink(path);
	/*
	 * The daemon's file is truncated by its owner while a reader has it mapped: it becomes complete again.
	 */
	check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_PUBLISHED, 0);
	for (off_t size = 0; size < 8576; size += 4000) {
		assert_int_equal(truncate(path, size), 0);
		check_state(publish(w, &u, 1, NOW + 2), TTMON_TTSHM_PUBLISHED, 0);
		assert_int_equal(slurp(path, b), 8576);
		assert_int_equal(at64(b, 48), 5000);
		assert_int_equal(at64(b, 88 + 48), 0xffffffff);
	}
	/* It is removed, and made again. */
	unlink(path);
	check_state(publish(w, &u, 1, NOW + 3), TTMON_TTSHM_PUBLISHED, 0);
	assert_int_equal(slurp(path, b), 8576);
	ttmon_ttshm_writer_free(w);
}

static void missing_directory(void **state)
{
	const struct ttmon_ttshm_user u = user(11, "a", 5000);
	struct ttmon_ttshm_writer *w;

	(void)state;
	assert_int_equal(rmdir(dir), 0);
	w = writer(1);
	check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_REFUSED, -ENOENT);
	assert_int_equal(mkdir(dir, 0700), 0);
	check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_PUBLISHED, 0);
	ttmon_ttshm_writer_free(w);
}

/* A store fails in the middle: the result is refused, and the next publish repairs everything. */
static void store_fails_half_way(void **state)
{
	struct ttmon_ttshm_user u[] = { user(11, "a", 5000), user(12, "b", 70) };
	struct ttmon_ttshm_writer *w = writer(4);
	uint8_t b[9280];

	(void)state;
	for (int k = 0; k < 8; k++) {
		publish(w, u, 2, NOW);
		u[0].bytes[0] += 100;
		u[1].bytes[1] -= 1;
		hook.fail_after = k;
		check_state(publish(w, u, 2, NOW + 1), TTMON_TTSHM_REFUSED, -ENOSPC);
		hook.fail_after = -1;
		check_state(publish(w, u, 2, NOW + 2), TTMON_TTSHM_PUBLISHED, 0);
		slurp(path, b);
		assert_int_equal(at64(b, 48), u[0].bytes[0] + u[1].bytes[0]);
		assert_int_equal(at64(b, 56), u[0].bytes[1] + u[1].bytes[1]);
	}
	ttmon_ttshm_writer_free(w);
}

/* Runs in a mount namespace of its own; exit status 77: that is not allowed here. */
static int on_a_full_disk(void)
{
	const struct ttmon_ttshm_user u = user(11, "a", 5000);
	struct ttmon_ttshm_chip c = chip(&u, 1);
	const struct ttmon_ttshm_report *r;
	struct ttmon_ttshm_writer *w;
	char fill[128];
	size_t n;
	int fd;

	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tmpfs", dir, "tmpfs", 0, "size=16k"))
		return 77;
	snprintf(fill, sizeof(fill), "%s/fill", dir);
	fd = open(fill, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0 || fallocate(fd, 0, 0, 8192) || ttmon_ttshm_writer_new(dir, 1, &w))
		return 1;
	ttmon_ttshm_publish(w, &c, 1, NOW);
	r = ttmon_ttshm_reports(w, &n);
	/* It is refused, and leaves no file. */
	if (r->state != TTMON_TTSHM_REFUSED || r->err != -ENOSPC || !access(path, F_OK))
		return 2;
	if (ftruncate(fd, 0))
		return 1;
	ttmon_ttshm_publish(w, &c, 1, NOW);
	r = ttmon_ttshm_reports(w, &n);
	ttmon_ttshm_writer_free(w);
	return r && n == 1 && !access(path, F_OK) ? 0 : 3;
}

static int in_child(int (*f)(void))
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(f());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void full_disk(void **state)
{
	int r = in_child(on_a_full_disk);

	(void)state;
	if (r == 77)
		skip();
	assert_int_equal(r, 0);
}

/* Its owner has mounted a file system over it, which may never answer: that is not opened. */
static int mounted_over(void)
{
	const struct ttmon_ttshm_user u = user(11, "a", 5000);
	struct ttmon_ttshm_writer *w = writer(1);
	char other[160];

	snprintf(other, sizeof(other), "%s/other", dir);
	check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_PUBLISHED, 0);
	close(open(other, O_CREAT | O_RDWR | O_CLOEXEC, 0600));
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount(other, path, NULL, MS_BIND, NULL))
		return 77;
	check_state(publish(w, &u, 1, NOW + 1), TTMON_TTSHM_REFUSED, -EXDEV);
	if (umount(path))
		return 1;
	check_state(publish(w, &u, 1, NOW + 2), TTMON_TTSHM_PUBLISHED, 0);
	ttmon_ttshm_writer_free(w);
	return 0;
}

static void file_with_a_mount(void **state)
{
	int r = in_child(mounted_over);

	(void)state;
	if (r == 77)
		skip();
	assert_int_equal(r, 0);
}

/* Any user may make millions of such files: the start does not open them all. */
static void many_files_of_others(void **state)
{
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), dir_fd;
	_Alignas(struct inotify_event) char buf[65536];
	unsigned int opened = 0;
	ssize_t n;

	(void)state;
	assert_true(watch >= 0);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir_fd >= 0);
	for (unsigned int i = 1; i <= 6000; i++) {
		char name[64];

		snprintf(name, sizeof(name), "tt_device_%u_memory", i);
		close(openat(dir_fd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	}
	assert_true(inotify_add_watch(watch, dir, IN_OPEN) >= 0);
	ttmon_ttshm_writer_free(writer(1));
	while ((n = read(watch, buf, sizeof(buf))) > 0)
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (void *)(buf + at);

			opened += e->len && !strncmp(e->name, "tt_device_", 10);
			at += (ssize_t)(sizeof(*e) + e->len);
		}
	close(watch);
	assert_in_range(opened, 1, 4096);
	for (unsigned int i = 1; i <= 6000; i++) {
		char name[64];

		snprintf(name, sizeof(name), "tt_device_%u_memory", i);
		unlinkat(dir_fd, name, 0);
	}
	close(dir_fd);
}

/* ---- the owner of a file ---- */

static int publish_and_die(void)
{
	const struct ttmon_ttshm_user u[] = { user(11, "a", 5000), user(12, "b", 6000) };
	struct ttmon_ttshm_chip c[] = { chip(u, 2), chip(u, 2) };
	struct ttmon_ttshm_writer *w = writer(1);

	c[1].key = 12;
	ttmon_ttshm_publish(w, c, 2, NOW);
	return 0; /* without ttmon_ttshm_writer_free(): the process is killed */
}

static void restart_takes_over(void **state)
{
	const struct ttmon_ttshm_user u = user(12, "b", 40);
	struct ttmon_ttshm_writer *w;
	uint8_t b[9280];
	struct stat before, after;

	(void)state;
	assert_int_equal(in_child(publish_and_die), 0);
	slurp(path, b);
	assert_int_equal(at64(b, 48), 11000);
	assert_int_equal(stat(path, &before), 0);
	w = writer(1);
	check_state(publish(w, &u, 1, NOW + 5), TTMON_TTSHM_PUBLISHED, 0);
	/* It is the same file, and its figures are set again, not added to. */
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	slurp(path, b);
	assert_int_equal(at32(b, 4), 1);
	assert_int_equal(at64(b, 48), 40);
	assert_int_equal(at64(b, 16), 1);
	assert_int_equal(at64(b, 992), 12);
	assert_int_equal(at64(b, 992 + 128), 0);
	/* The file of the chip that has no users now was cleared, too. */
	snprintf(path, sizeof(path), "%s/tt_device_12_memory", dir);
	check_zeros(1, 0);
	ttmon_ttshm_writer_free(w);
}

static void leftover_of_another_version(void **state)
{
	const struct ttmon_ttshm_user u = user(12, "b", 40);
	struct ttmon_ttshm_chip c = chip(&u, 1);
	struct ttmon_ttshm_writer *w;

	(void)state;
	assert_int_equal(in_child(publish_and_die), 0);
	/* --tt-shm-version 3 now: other names. */
	c.key = 0x251732099;
	w = writer(3);
	ttmon_ttshm_publish(w, &c, 1, NOW);
	check_zeros(1, 0);
	/* The same name, but the file is too long. */
	check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_REFUSED, -EFBIG);
	ttmon_ttshm_writer_free(w);
}

static void version_switch(void **state)
{
	const unsigned int versions[] = { 2, 3, 4, 2, 4, 3 };
	const struct ttmon_ttshm_user u = user(12, "b", 40);
	uint8_t b[9280];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++) {
		struct ttmon_ttshm_writer *w = writer(versions[i]);

		watch(versions[i]);
		check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_PUBLISHED, 0);
		if (i && versions[i] == 4)
			assert_int_equal(hook.last, 8536);
		hook.watch = false;
		slurp(path, b);
		assert_int_equal(at32(b, 0), versions[i]);
		assert_int_equal(at64(b, 48), 40);
		assert_int_equal(at32(b, 8536), versions[i] == 4 ? 0x52454459 : 0);
		ttmon_ttshm_writer_free(w);
	}
}

static int child_pipe[2];

static int publish_and_wait(void)
{
	const struct ttmon_ttshm_user u = user(11, "a", 5000);
	struct ttmon_ttshm_writer *w = writer(1);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	publish(w, &u, 1, NOW);
	if (write(child_pipe[1], "x", 1) != 1)
		return 1;
	pause();
	return 1;
}

static void other_daemon_keeps_its_files(void **state)
{
	const struct ttmon_ttshm_user u = user(12, "b", 40);
	struct ttmon_ttshm_writer *w;
	uint8_t before[9280];
	char c;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe2(child_pipe, O_CLOEXEC), 0);
	pid = fork();
	if (!pid)
		_exit(publish_and_wait());
	assert_int_equal(read(child_pipe[0], &c, 1), 1);
	slurp(path, before);
	w = writer(1);
	check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_REFUSED, -EBUSY);
	ttmon_ttshm_publish(w, NULL, 0, NOW);
	check_untouched(before);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_PUBLISHED, 0);
	ttmon_ttshm_writer_free(w);
	close(child_pipe[0]);
	close(child_pipe[1]);
}

/* A program of tt-metal on a file of the daemon: it attaches and detaches as UMD does. */
struct program {
	uint8_t *map;
};

static void add32(uint8_t *p, uint32_t n)
{
	__atomic_fetch_add((uint32_t *)p, n, __ATOMIC_SEQ_CST);
}

static void add64(uint8_t *p, uint64_t n)
{
	__atomic_fetch_add((uint64_t *)p, n, __ATOMIC_SEQ_CST);
}

static void attach(struct program *p)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);

	p->map = mmap(NULL, 8576, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(p->map != MAP_FAILED);
	close(fd);
	add32(p->map + 16, 1);
}

static void allocate(struct program *p, uint32_t pid, uint64_t dram)
{
	size_t i = 0;

	while (at32(p->map, 856 + 120 * i) && at32(p->map, 856 + 120 * i) != pid)
		i++;
	if (!at32(p->map, 856 + 120 * i)) {
		memcpy(p->map + 856 + 120 * i, &pid, 4);
		add32(p->map + 4, 1);
	}
	add64(p->map + 856 + 120 * i + 8, dram);
	add64(p->map + 88 + 8, dram);
	add64(p->map + 48, dram);
}

static void program_attaches(void **state)
{
	const struct ttmon_ttshm_user u[] = { user(11, "a", 5000), user(12, "b", 600) };
	struct ttmon_ttshm_writer *w = writer(3);
	struct program p;
	uint8_t b[9280];

	(void)state;
	publish(w, u, 2, NOW);
	attach(&p);
	allocate(&p, 4242, 1 << 20);
	allocate(&p, 12, 7); /* its entry is the one that the daemon made */
	/* The daemon's figures are removed, those of the programs stay, and the file is used further. */
	check_state(publish(w, u, 2, NOW + 1), TTMON_TTSHM_FOREIGN, 0);
	slurp(path, b);
	assert_int_equal(at64(b, 48), (1 << 20) + 7);
	assert_int_equal(at64(b, 56), 0);
	assert_int_equal(at64(b, 88 + 8), (1 << 20) + 7);
	assert_int_equal(at64(b, 856), 0);
	assert_int_equal(at64(b, 856 + 120), 12);
	assert_int_equal(at64(b, 856 + 120 + 8), 7);
	assert_int_equal(at64(b, 856 + 240), 4242);
	assert_int_equal(at64(b, 856 + 240 + 8), 1 << 20);
	assert_int_equal(at32(b, 4), 2);
	watch(3);
	for (unsigned int i = 0; i < 3; i++)
		check_state(publish(w, u, 2, NOW + 2), TTMON_TTSHM_FOREIGN, 0);
	assert_int_equal(watched(), 0);
	/* The program is killed: its figures are not removed, but no process has the file. */
	munmap(p.map, 8576);
	check_state(publish(w, u, 2, NOW + 3), TTMON_TTSHM_PUBLISHED, 0);
	slurp(path, b);
	assert_int_equal(at64(b, 48), 5600);
	assert_int_equal(at32(b, 4), 2);
	assert_int_equal(at64(b, 16), 1);
	assert_int_equal(at64(b, 856 + 240), 0);
	/* Another program, which ends normally while the daemon is being replaced. */
	attach(&p);
	ttmon_ttshm_writer_free(w);
	slurp(path, b);
	assert_int_equal(at64(b, 16), 2);
	w = writer(3);
	check_state(publish(w, u, 2, NOW + 4), TTMON_TTSHM_FOREIGN, 0);
	add32(p.map + 16, (uint32_t)-1);
	munmap(p.map, 8576);
	check_state(publish(w, u, 2, NOW + 5), TTMON_TTSHM_PUBLISHED, 0);
	slurp(path, b);
	assert_int_equal(at64(b, 48), 5600);
	ttmon_ttshm_writer_free(w);
}

/* With reference_count 0 a tt-metal of another version takes over the file. */
static void program_takes_an_idle_file(void **state)
{
	const struct ttmon_ttshm_user u = user(11, "a", 5000);
	struct ttmon_ttshm_writer *w = writer(3);
	struct program p;
	uint8_t before[9280], b[9280];

	(void)state;
	publish(w, &u, 1, NOW);
	publish(w, NULL, 0, NOW);
	attach(&p);
	memset(p.map, 0, 8576);
	add32(p.map, 2);
	add32(p.map + 16, 1);
	slurp(path, before);
	check_state(publish(w, &u, 1, NOW + 1), TTMON_TTSHM_FOREIGN, 0);
	check_untouched(before);
	munmap(p.map, 8576);
	/* Without the mark inside, it is still the file that the daemon made. */
	check_state(publish(w, &u, 1, NOW + 2), TTMON_TTSHM_PUBLISHED, 0);
	slurp(path, b);
	assert_int_equal(at32(b, 0), 3);
	assert_int_equal(at64(b, 48), 5000);
	ttmon_ttshm_writer_free(w);
}

/*
 * Version 4 takes over a file without living processes: then it has no figures of the daemon, and none
 * must be removed.
 */
static void program_takes_a_used_file(void **state)
{
	const struct ttmon_ttshm_user u = user(dead_pid(), "a", 5000);
	struct ttmon_ttshm_writer *w = writer(3);
	struct program p;
	uint8_t before[9280];

	(void)state;
	publish(w, &u, 1, NOW);
	attach(&p);
	memset(p.map, 0, 8576);
	add32(p.map, 4);
	add32(p.map + 16, 1);
	add32(p.map + 8536, 0x52454459);
	allocate(&p, u.tgid, 9000);
	slurp(path, before);
	check_state(publish(w, &u, 1, NOW + 1), TTMON_TTSHM_FOREIGN, 0);
	check_untouched(before);
	ttmon_ttshm_writer_free(w);
	check_untouched(before);
	munmap(p.map, 8576);
}

/*
 * tt_smi takes a process for dead (EPERM) and subtracts below 0; tt-mgmt keeps the file mapped
 * meanwhile.
 */
static void readers_cleanup_is_put_right(void **state)
{
	const struct ttmon_ttshm_user u[] = { user(11, "a", 5000), user(12, "b", 600) };
	struct ttmon_ttshm_writer *w = writer(3);
	struct program p;
	uint8_t b[9280];

	(void)state;
	publish(w, u, 2, NOW);
	attach(&p);
	add32(p.map + 16, (uint32_t)-1);
	memset(p.map + 856, 0, 120);
	add32(p.map + 4, (uint32_t)-1);
	add64(p.map + 48, (uint64_t)-10000);
	check_state(publish(w, u, 2, NOW + 1), TTMON_TTSHM_PUBLISHED, 0);
	slurp(path, b);
	assert_int_equal(at64(b, 48), 5600);
	assert_int_equal(at32(b, 4), 2);
	assert_int_equal(at64(b, 856), 11);
	assert_int_equal(at64(b, 856 + 8), 5000);
	munmap(p.map, 8576);
	ttmon_ttshm_writer_free(w);
}

static bool can_be_root(void)
{
	char value[32];
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	bool ok = fd >= 0 && !geteuid() && !fsetxattr(fd, "trusted.ttmond", value, 0, 0) && !fchown(fd, 12345, 12345);

	close(fd);
	return ok;
}

/* Every user can write a mark, so it proves nothing in a file of another user. */
static void forged_mark(void **state)
{
	struct ttmon_ttshm_user u = user(11, "a", 5000);
	struct ttmon_ttshm_writer *w;
	uint8_t before[9280];

	(void)state;
	if (!can_be_root())
		skip();
	u.uid = u.gid = 12345;
	for (unsigned int version = 1; version <= 3; version += 2) {
		w = writer(version);
		publish(w, &u, 1, NOW);
		ttmon_ttshm_writer_free(w);
		assert_int_equal(removexattr(path, "trusted.ttmond"), 0);
		assert_int_equal(chown(path, 12345, 12345), 0);
		slurp(path, before);
		w = writer(version);
		check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_FOREIGN, -ESTALE);
		ttmon_ttshm_writer_free(w);
		/* The daemon's file, but other users may write it. */
		assert_int_equal(chown(path, 0, 0), 0);
		assert_int_equal(chmod(path, 0666), 0);
		w = writer(version);
		check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_FOREIGN, -ESTALE);
		check_untouched(before);
		assert_int_equal(chmod(path, 0600), 0);
		check_state(publish(w, &u, 1, NOW), TTMON_TTSHM_PUBLISHED, 0);
		ttmon_ttshm_writer_free(w);
		unlink(path);
	}
}

static void next_users_file(void **state)
{
	struct ttmon_ttshm_user u[] = { user(11, "a", 5000), user(12, "b", 10) };
	struct ttmon_ttshm_writer *w;
	struct stat st;

	(void)state;
	if (!can_be_root())
		skip();
	u[0].uid = u[0].gid = 12345;
	u[1].uid = u[1].gid = 54321;
	w = writer(3);
	publish(w, u, 2, NOW);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 12345);
	publish(w, NULL, 0, NOW);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 12345);
	check_state(publish(w, u + 1, 1, NOW), TTMON_TTSHM_PUBLISHED, 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 54321);
	assert_int_equal(st.st_mode, S_IFREG | 0600);
	ttmon_ttshm_writer_free(w);
}

static void drop_admin(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data))
		_exit(10);
	data[0].effective &= ~(1u << CAP_SYS_ADMIN);
	data[0].permitted &= ~(1u << CAP_SYS_ADMIN);
	data[0].inheritable = data[1].inheritable = 0;
	if (syscall(SYS_capset, &head, data))
		_exit(11);
}

/* In a container without trusted attributes. */
static int without_xattrs(void)
{
	struct ttmon_ttshm_user u[] = { user(11, "a", 5000), user(12, "b", 10) };
	struct ttmon_ttshm_writer *w;
	uint8_t before[9280];

	drop_admin();
	u[0].uid = u[0].gid = 12345;
	u[1].uid = u[1].gid = 54321;
	w = writer(3);
	check_state(publish(w, u, 1, NOW), TTMON_TTSHM_PUBLISHED, 0);
	ttmon_ttshm_writer_free(w);
	w = writer(3);
	check_state(publish(w, u, 1, NOW), TTMON_TTSHM_PUBLISHED, 0);
	ttmon_ttshm_writer_free(w);
	/* For another user the file is foreign: it is unknown which process made it. */
	slurp(path, before);
	w = writer(3);
	check_state(publish(w, u + 1, 1, NOW), TTMON_TTSHM_FOREIGN, -ESTALE);
	check_untouched(before);
	ttmon_ttshm_writer_free(w);
	return 0;
}

static void marks_without_xattrs(void **state)
{
	(void)state;
	if (!can_be_root())
		skip();
	assert_int_equal(in_child(without_xattrs), 0);
}

/*
 * The owner truncates the file between two stores: the next store to the mapping raises SIGBUS, and
 * the others use pwrite().
 */
static void cut_short_while_storing(void **state)
{
	struct ttmon_ttshm_writer *w = writer(1);
	struct ttmon_ttshm_user u = user(42, "x", 0);
	uint8_t b[9280];

	(void)state;
#ifdef __SANITIZE_THREAD__
	skip(); /* the fault would be inside TSan's own store, with TSan's lock held */
#endif
	u.bytes[0] = 4096;
	publish(w, &u, 1, NOW);
	assert_int_equal(hook.by_pwrite, 0);
	u.bytes[0] = 8192;
	hook.cut_after = 1;
	publish(w, &u, 1, NOW + 1);
	assert_true(hook.by_pwrite > 0);
	/* The earlier stores are lost; this is noticed, and the file becomes complete again. */
	hook.cut_after = -1;
	publish(w, &u, 1, NOW + 2);
	check_state(publish(w, &u, 1, NOW + 3), TTMON_TTSHM_PUBLISHED, 0);
	assert_int_equal(slurp(path, b), 9280);
	assert_int_equal(at64(b, 48), 8192);
	ttmon_ttshm_writer_free(w);
}

/* ---- readers and a writer at the same time ---- */

static atomic_bool stop;

/* The halves differ if a store was seen half done. */
static bool is_whole(uint64_t v)
{
	return (uint32_t)v == v >> 32;
}

/* Impossible values that a reader saw: how often, and the last time. */
struct seen {
	uint64_t bad, value;
	const char *what;
};

static void look(struct seen *s, bool good, const char *what, uint64_t value)
{
	if (!good)
		*s = (struct seen){ s->bad + 1, value, what };
}

static void *read_mapped(void *arg)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const volatile uint64_t *w = mmap(NULL, 9280, PROT_READ, MAP_SHARED, fd, 0);
	struct seen *s = arg;
	uint64_t n = 0, v;

	close(fd);
	while (!stop) {
		for (size_t k = 0; k < 6; k++) {
			v = w[6 + k];
			look(s, is_whole(v), "mapped: a total", v);
		}
		for (size_t i = 0; i < 64; i++) {
			v = w[(992 + 128 * i) / 8];
			look(s, v <= 64, "mapped: a pid", v);
			for (size_t k = 0; k < 6; k++) {
				v = w[(992 + 128 * i) / 8 + 1 + k];
				look(s, is_whole(v), "mapped: bytes of a process", v);
			}
		}
		v = w[0];
		look(s, v >> 32 <= 64 && (uint32_t)v == 1, "mapped: the version, or how many there are", v);
		n++;
	}
	munmap((void *)(uintptr_t)w, 9280);
	return n ? NULL : arg;
}

static void *read_with_us(void *arg)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct ttmon_ttshm *r = malloc(sizeof(*r));
	struct seen *s = arg;

	while (!stop) {
		ttmon_ttshm_read(fd, strrchr(path, '/') + 1, r);
		/*
		 * On a busy machine the file can change during each of the tries: that is reported, and no figures are
		 * shown.
		 */
		if (r->status == TTMON_TTSHM_TORN)
			continue;
		look(s, r->status == TTMON_TTSHM_OK, "read: the status", r->status);
		look(s, r->ours, "read: not ours", r->version);
		look(s, r->num_active <= 64, "read: how many there are", r->num_active);
		look(s, is_whole(r->bytes[0]), "read: a total", r->bytes[0]);
	}
	free(r);
	close(fd);
	return NULL;
}

static void readers_at_the_same_time(void **state)
{
	struct ttmon_ttshm_writer *w = writer(1);
	struct ttmon_ttshm_user u[64];
	struct seen seen[3] = { 0 };
	pthread_t t[3];
	unsigned int seed = 7;
	uint64_t end = ttmon_mono_ns() + 3 * NSEC_PER_SEC;

	(void)state;
	publish(w, NULL, 0, NOW);
	stop = false;
	pthread_create(&t[0], NULL, read_mapped, &seen[0]);
	pthread_create(&t[1], NULL, read_mapped, &seen[1]);
	pthread_create(&t[2], NULL, read_with_us, &seen[2]);
	/* It takes at most three seconds, in case the readers use all of a slow machine. */
	for (unsigned int round = 0; round < 1500 && (round < 20 || ttmon_mono_ns() < end); round++) {
		size_t n = 0;

		for (uint32_t i = 0; i < 64; i++) {
			seed = seed * 1103515245 + 12345;
			if (seed >> 30)
				u[n++] = user(i + 1, "x", 0);
			for (size_t k = 0; n && k < TTMON_TT_TYPES; k++)
				u[n - 1].bytes[k] = (seed >> 20) * 0x100000001ull;
		}
		publish(w, u, n, NOW + round);
	}
	stop = true;
	for (size_t i = 0; i < 3; i++) {
		void *r;

		pthread_join(t[i], &r);
		assert_null(r);
		if (seen[i].bad)
			fail_msg("%" PRIu64 " times, the last one %s: %#" PRIx64, seen[i].bad, seen[i].what,
				 seen[i].value);
	}
	ttmon_ttshm_writer_free(w);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(version_1_is_byte_exact),
		TEST(versions_2_to_4_are_byte_exact),
		TEST(flags_are_in_the_mark),
		TEST(unknown_device_leaves_chips_unused),
		TEST(bad_arguments),
		TEST(entries_stay_compact),
		TEST(unchanged_is_not_written),
		TEST(entry_is_there_before_it_is_counted),
		TEST(bytes_change_hands),
		TEST(more_users_than_entries),
		TEST(totals_never_wrap),
		TEST(chip_that_leaves_gets_zeros),
		TEST(idle_chip_of_a_user_file_waits),
		TEST(foreign_file_is_only_read),
		TEST(exchanged_file),
		TEST(hostile_names),
		TEST(odd_sizes),
		TEST(missing_directory),
		TEST(store_fails_half_way),
		TEST(full_disk),
		TEST(file_with_a_mount),
		TEST(many_files_of_others),
		TEST(restart_takes_over),
		TEST(leftover_of_another_version),
		TEST(version_switch),
		TEST(other_daemon_keeps_its_files),
		TEST(program_attaches),
		TEST(program_takes_an_idle_file),
		TEST(program_takes_a_used_file),
		TEST(readers_cleanup_is_put_right),
		TEST(forged_mark),
		TEST(next_users_file),
		TEST(marks_without_xattrs),
		TEST(cut_short_while_storing),
		TEST(readers_at_the_same_time),
	};

	umask(022);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
