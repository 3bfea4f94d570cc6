// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_ttshm.c: lib/read/ttshm*.c, the reader of tt_device_<key>_memory files and the clean-up of
 * `ttmon smi -c`, in a directory of its own. The files are made of bytes at the offsets of the fact
 * sheet, not of our structs.
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
#include <signal.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/read/ttshm.h"
#include "lib/base/util.h"

#define NAME "tt_device_469504_memory"

static char dir[64], path[128];
static int dir_fd = -1;
static uint32_t dead[4];

struct off {
	size_t size, totals, chips, chip, procs, proc, types;
};

static const struct off offs[5] = {
	[1] = { 9280, 48, 96, 56, 992, 128, 6 },
	[2] = { 8576, 48, 88, 48, 856, 120, 5 },
	[3] = { 8576, 48, 88, 48, 856, 120, 5 },
	[4] = { 8576, 48, 88, 48, 856, 120, 5 },
};

static uint8_t file[12288 + 1];

static void set32(size_t off, uint32_t v)
{
	memcpy(file + off, &v, sizeof(v));
}

static void set64(size_t off, uint64_t v)
{
	memcpy(file + off, &v, sizeof(v));
}

static uint64_t at64(size_t off)
{
	uint64_t v;

	memcpy(&v, file + off, sizeof(v));
	return v;
}

static uint32_t at32(size_t off)
{
	uint32_t v;

	memcpy(&v, file + off, sizeof(v));
	return v;
}

/* The test replaces pwrite() and pread(): between the reader's two reads the file may be written. */
static struct {
	int reads;  /* reads during which the file changes, -1: all */
	size_t off; /* which word changes, and by what */
	uint64_t value, step;
} busy;

ssize_t pread(int fd, void *buf, size_t n, off_t off)
{
	ssize_t r = syscall(SYS_pread64, fd, buf, n, off);

	if (busy.reads) {
		int w = open(path, O_WRONLY | O_CLOEXEC);

		busy.reads -= busy.reads > 0;
		busy.value += busy.step;
		if (w < 0 || pwrite(w, &busy.value, 8, (off_t)busy.off) != 8)
			abort();
		close(w);
	}
	return r;
}

static void save(size_t n)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, file, n), (ssize_t)n);
	close(fd);
}

static void load(void)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	memset(file, 0, sizeof(file));
	assert_true(read(fd, file, sizeof(file)) >= 0);
	close(fd);
}

/* A process in an entry: figures bytes, bytes + 1, ... */
static void set_process(unsigned int version, size_t entry, uint32_t pid, uint64_t bytes, const char *name)
{
	const struct off *o = &offs[version];
	size_t at = o->procs + entry * o->proc;

	set32(at, pid);
	for (size_t k = 0; k < o->types; k++)
		set64(at + 8 + 8 * k, bytes ? bytes + k : 0);
	set64(at + 8 + 8 * o->types, 77);
	strncpy((char *)file + at + 16 + 8 * o->types, name, 64);
}

static void set_total(unsigned int version, uint64_t bytes)
{
	const struct off *o = &offs[version];

	for (size_t k = 0; k < o->types; k++) {
		set64(o->totals + 8 * k, bytes + k);
		set64(o->chips + 8 + 8 * k, bytes + k);
	}
}

static void fresh(unsigned int version)
{
	memset(file, 0, sizeof(file));
	set32(0, version);
	set64(8, 123456789);
	set32(16, 1);
	set64(24, version == 1 ? 1834 : 0);
	set64(32, version == 1 ? 0 : 469504);
	set32(40, 5);
	for (size_t i = 0; version > 1 && i < 16; i++)
		set32(offs[version].chips + i * offs[version].chip, 0xffffffff);
	set32(offs[version].chips, 5);
	if (version == 4)
		set32(8536, 0x52454459);
}

static void get(struct ttmon_ttshm *ret)
{
	memset(ret, 0xa5, sizeof(*ret));
	ttmon_ttshm_read(dir_fd, NAME, ret);
	assert_string_equal(ret->name, NAME);
	assert_int_equal(ret->key, 469504);
}

static int setup(void **state)
{
	(void)state;
	/* tmpfs, where there is one. */
	snprintf(dir, sizeof(dir), "%s/ttmon-ttshm-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/" NAME, dir);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	memset(&busy, 0, sizeof(busy));
	/* Pids that no process has. */
	for (size_t i = 0; i < ARRAY_SIZE(dead); i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
		dead[i] = (uint32_t)pid;
	}
	return dir_fd < 0;
}

static int teardown(void **state)
{
	char cmd[128];

	(void)state;
	close(dir_fd);
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	return system(cmd);
}

/* ---- names ---- */

static void names(void **state)
{
	static const char *const bad[] = {
		"",
		"tt_device_",
		"tt_device__memory",
		"tt_device_1_memor",
		"tt_device_1_memory2",
		"tt_device_1_memory ",
		"tt_device_01_memory",
		"tt_device_+1_memory",
		"tt_device_-1_memory",
		"tt_device_ 1_memory",
		"tt_device_0x1_memory",
		"tt_device_1a_memory",
		"tt_device_18446744073709551616_memory",
		"tt_device_99999999999999999999_memory",
		"tt_device_184467440737095516150_memory",
		"xtt_device_1_memory",
		"TT_device_1_memory",
		"tt_device_1",
		"tt_device_1_memory/../x",
	};
	uint64_t key = 99;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_false(ttmon_ttshm_parse_name(bad[i], &key));
		assert_int_equal(key, 99);
	}
	assert_true(ttmon_ttshm_parse_name("tt_device_0_memory", &key));
	assert_int_equal(key, 0);
	assert_true(ttmon_ttshm_parse_name("tt_device_18446744073709551615_memory", &key));
	assert_true(key == UINT64_MAX);
	assert_true(ttmon_ttshm_parse_name("tt_device_9956434073_memory", &key));
	assert_int_equal(key, 0x251732099);
	assert_string_equal(ttmon_ttshm_status_text(TTMON_TTSHM_OK), "ok");
	assert_string_equal(ttmon_ttshm_status_text((enum ttmon_ttshm_status)99), "?");
	for (int i = 0; i <= TTMON_TTSHM_NONSENSE; i++)
		assert_true(strlen(ttmon_ttshm_status_text((enum ttmon_ttshm_status)i)) > 1);
}

/* ---- reading ---- */

static void every_version_is_read(void **state)
{
	struct ttmon_ttshm r;

	(void)state;
	for (unsigned int version = 1; version <= 4; version++) {
		fresh(version);
		set_total(version, 1000);
		set32(4, 3);
		set_process(version, 0, (uint32_t)getpid(), 100, "me");
		set_process(version, 1, dead[0], 200, "dead \x1b[31m");
		set_process(version, 2, (uint32_t)-5, 300, "releasing");
		set_process(version, 63, 1, 400, "0123456789012345678901234567890123456789012345678901234567890123");
		save(offs[version].size);
		get(&r);
		assert_int_equal(r.status, TTMON_TTSHM_OK);
		assert_int_equal(r.err, 0);
		assert_int_equal(r.version, version);
		assert_int_equal(r.num_active, 3);
		assert_int_equal(r.reference_count, 1);
		assert_int_equal(r.last_update_ns, 123456789);
		assert_int_equal(r.device_id, 5);
		assert_int_equal(r.board_serial, version == 1 ? 1834 : 0);
		assert_int_equal(r.asic_id, version == 1 ? 0 : 469504);
		assert_int_equal(r.mode, S_IFREG | 0644);
		assert_int_equal(r.uid, geteuid());
		assert_false(r.ours);
		for (size_t k = 0; k < 6; k++)
			assert_true(r.bytes[k] == (version > 1 && k == 5 ? TTMON_TTSHM_UNKNOWN : 1000 + k));
		assert_int_equal(r.nr_processes, 3);
		assert_int_equal(r.processes[0].pid, getpid());
		assert_true(r.processes[0].alive);
		assert_string_equal(r.processes[0].name, "me");
		for (size_t k = 0; k < 6; k++)
			assert_true(r.processes[0].bytes[k] == (version > 1 && k == 5 ? TTMON_TTSHM_UNKNOWN : 100 + k));
		assert_int_equal(r.processes[0].last_update_ns, 77);
		assert_int_equal(r.processes[1].pid, dead[0]);
		assert_false(r.processes[1].alive);
		assert_string_equal(r.processes[1].name, "dead \x1b[31m");
		assert_int_equal(r.processes[2].pid, 1);
		assert_true(r.processes[2].alive);
		assert_int_equal(strlen(r.processes[2].name), 63);
		/* Our mark, and only at its place. */
		memcpy(file + offs[version].size - 32, "ttmond01", 8);
		save(offs[version].size);
		get(&r);
		assert_true(r.ours);
		assert_int_equal(r.flags, 0);
		/* Flags are in the mark; the same bytes in a file of another writer are not flags. */
		set32(offs[version].size - 8, 0x89);
		save(offs[version].size);
		get(&r);
		assert_int_equal(r.flags, 0x89);
		set32(offs[version].size - 32, 0);
		save(offs[version].size);
		get(&r);
		assert_false(r.ours);
		assert_int_equal(r.flags, 0);
	}
}

static void eperm_means_alive(void **state)
{
	struct ttmon_ttshm r;
	int status;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	fresh(3);
	set_process(3, 0, 1, 100, "init");
	save(8576);
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(chmod(path, 0666), 0);
	pid = fork();
	if (!pid) {
		if (setresuid(12345, 12345, 12345) || !kill(1, 0))
			_exit(2);
		ttmon_ttshm_read(dir_fd, NAME, &r);
		if (r.nr_processes != 1 || !r.processes[0].alive)
			_exit(3);
		_exit(ttmon_ttshm_cleanup(dir_fd, NAME) == 0 ? 0 : 4);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	load();
	assert_int_equal(at32(856), 1);
}

static void sizes(void **state)
{
	static const struct {
		unsigned int version;
		size_t size;
		enum ttmon_ttshm_status status;
	} cases[] = {
		{ 1, 0, TTMON_TTSHM_TRUNCATED },    { 1, 3, TTMON_TTSHM_TRUNCATED },
		{ 1, 4, TTMON_TTSHM_TRUNCATED },    { 1, 9183, TTMON_TTSHM_TRUNCATED },
		{ 1, 9184, TTMON_TTSHM_OK },	    { 1, 9216, TTMON_TTSHM_OK },
		{ 1, 9248, TTMON_TTSHM_OK },	    { 1, 12288, TTMON_TTSHM_OK },
		{ 1, 12289, TTMON_TTSHM_NONSENSE }, { 2, 8575, TTMON_TTSHM_TRUNCATED },
		{ 2, 8576, TTMON_TTSHM_OK },	    { 3, 12289, TTMON_TTSHM_NONSENSE },
		{ 4, 8192, TTMON_TTSHM_TRUNCATED }, { 5, 8576, TTMON_TTSHM_VERSION },
		{ 0, 9280, TTMON_TTSHM_NOT_READY }, { 0x01000000, 9280, TTMON_TTSHM_VERSION },
		{ 77, 4, TTMON_TTSHM_VERSION },
	};
	struct ttmon_ttshm r;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		fresh(cases[i].version <= 4 && cases[i].version ? cases[i].version : 3);
		set32(0, cases[i].version);
		set_total(1, 1000);
		save(cases[i].size);
		get(&r);
		assert_int_equal(r.status, cases[i].status);
		if (r.status != TTMON_TTSHM_OK) {
			assert_int_equal(r.nr_processes, 0);
			assert_true(r.bytes[0] == TTMON_TTSHM_UNKNOWN);
		}
	}
	/* Sparse and huge: read like any other. */
	fresh(3);
	save(8576);
	assert_int_equal(truncate(path, (off_t)1 << 40), 0);
	get(&r);
	assert_int_equal(r.status, TTMON_TTSHM_NONSENSE);
	assert_int_equal(ttmon_ttshm_cleanup(dir_fd, NAME), -EINVAL);
}

static void not_files(void **state)
{
	struct ttmon_ttshm r;
	char other[128], event[1024];
	int inotify;

	(void)state;
	get(&r);
	assert_int_equal(r.status, TTMON_TTSHM_UNREADABLE);
	assert_int_equal(r.err, ENOENT);
	assert_int_equal(ttmon_ttshm_cleanup(dir_fd, NAME), -ENOENT);

	fresh(3);
	set_process(3, 0, dead[0], 1, "x");
	save(8576);
	snprintf(other, sizeof(other), "%s/other", dir);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink("other", path), 0);
	get(&r);
	assert_int_equal(r.status, TTMON_TTSHM_NOT_A_FILE);
	assert_int_equal(ttmon_ttshm_cleanup(dir_fd, NAME), -ELOOP);
	unlink(path);
	/* Another name of the same file can be read, but not cleaned. */
	assert_int_equal(link(other, path), 0);
	get(&r);
	assert_int_equal(r.status, TTMON_TTSHM_OK);
	assert_int_equal(ttmon_ttshm_cleanup(dir_fd, NAME), -EMLINK);
	unlink(path);
	/* A pipe does not block, and is not even opened: that alone may do something where it is a device. */
	assert_int_equal(mkfifo(path, 0666), 0);
	inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	assert_true(inotify_add_watch(inotify, path, IN_OPEN) >= 0);
	get(&r);
	assert_int_equal(r.status, TTMON_TTSHM_NOT_A_FILE);
	assert_int_equal(ttmon_ttshm_cleanup(dir_fd, NAME), -ELOOP);
	assert_int_equal(read(inotify, event, sizeof(event)), -1);
	close(inotify);
	unlink(path);
	assert_int_equal(mkdir(path, 0777), 0);
	get(&r);
	assert_int_equal(r.status, TTMON_TTSHM_NOT_A_FILE);
	rmdir(path);
	if (!mknod(path, S_IFCHR | 0666, 0x10a)) {
		get(&r);
		assert_int_equal(r.status, TTMON_TTSHM_NOT_A_FILE);
	}
	assert_int_equal(ttmon_ttshm_cleanup(dir_fd, "../etc/passwd"), -EINVAL);
}

static void not_for_us(void **state)
{
	struct ttmon_ttshm r;
	int status;
	pid_t pid;

	(void)state;
	if (geteuid())
		skip();
	fresh(3);
	set_process(3, 0, dead[0], 1, "x");
	save(8576);
	assert_int_equal(chmod(dir, 0755), 0);
	assert_int_equal(chmod(path, 0600), 0);
	pid = fork();
	if (!pid) {
		if (setresuid(12345, 12345, 12345))
			_exit(2);
		ttmon_ttshm_read(dir_fd, NAME, &r);
		if (r.status != TTMON_TTSHM_UNREADABLE || r.err != EACCES || r.uid != 0 || (r.mode & 07777) != 0600)
			_exit(3);
		_exit(ttmon_ttshm_cleanup(dir_fd, NAME) == -EACCES ? 0 : 4);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void nonsense(void **state)
{
	struct ttmon_ttshm r;

	(void)state;
	for (unsigned int version = 1; version <= 4; version++) {
		/* One figure that cannot be: the others can. */
		fresh(version);
		set_total(version, 1000);
		set64(56, (uint64_t)-4096);
		set_process(version, 0, 1, (1ull << 50) - 1, "x");
		save(offs[version].size);
		get(&r);
		assert_int_equal(r.status, TTMON_TTSHM_NONSENSE);
		assert_int_equal(r.bytes[0], 1000);
		assert_true(r.bytes[1] == TTMON_TTSHM_UNKNOWN);
		assert_int_equal(r.nr_processes, 1);
		assert_true(r.processes[0].bytes[1] == 1ull << 50);
		assert_true(r.processes[0].bytes[2] == TTMON_TTSHM_UNKNOWN);
		fresh(version);
		set32(4, 65);
		save(offs[version].size);
		get(&r);
		assert_int_equal(r.status, TTMON_TTSHM_NONSENSE);
		assert_int_equal(r.num_active, 65);
		fresh(version);
		set32(40, 0xffffffff);
		set32(4, 64);
		save(offs[version].size);
		get(&r);
		assert_int_equal(r.status, TTMON_TTSHM_OK);
		assert_int_equal(r.device_id, -1);
	}
	fresh(4);
	set32(8536, 1);
	save(8576);
	get(&r);
	assert_int_equal(r.status, TTMON_TTSHM_NOT_READY);
	assert_int_equal(ttmon_ttshm_cleanup(dir_fd, NAME), -EAGAIN);
}

static void busy_is_not_torn(void **state)
{
	struct ttmon_ttshm r;

	(void)state;
	fresh(1);
	set_process(1, 0, 1, 100, "x");
	save(9280);
	/* It changes for a while: the last state. */
	busy.reads = 3;
	busy.off = 48;
	busy.value = 1000;
	busy.step = 1;
	get(&r);
	assert_int_equal(r.status, TTMON_TTSHM_OK);
	assert_int_equal(r.bytes[0], 1003);
	/* For ever, but it makes sense. */
	busy.reads = -1;
	get(&r);
	assert_int_equal(r.status, TTMON_TTSHM_OK);
	assert_true(r.bytes[0] > 1003 && r.bytes[0] < 1030);
	assert_int_equal(r.nr_processes, 1);
	/* For ever, and it makes none. */
	busy.value = 1ull << 60;
	get(&r);
	assert_int_equal(r.status, TTMON_TTSHM_TORN);
	assert_int_equal(r.nr_processes, 0);
	assert_true(r.bytes[0] == TTMON_TTSHM_UNKNOWN);
	busy.reads = -1;
	assert_int_equal(ttmon_ttshm_cleanup(dir_fd, NAME), -EAGAIN);
	busy.reads = 0;
}

static void scan(void **state)
{
	struct ttmon_ttshm *r = (void *)1;
	size_t n = 99;
	char other[160];

	(void)state;
	assert_int_equal(ttmon_ttshm_scan("/nonexistent", &r, &n), -ENOENT);
	assert_ptr_equal(r, (void *)1);
	assert_int_equal(n, 99);
	assert_int_equal(ttmon_ttshm_scan(dir, &r, &n), 0);
	assert_int_equal(n, 0);
	free(r);
	fresh(3);
	save(8576);
	snprintf(other, sizeof(other), "%s/tt_device_7_memory", dir);
	assert_int_equal(symlink("x", other), 0);
	snprintf(other, sizeof(other), "%s/tt_device_07_memory", dir);
	assert_int_equal(symlink("x", other), 0);
	snprintf(other, sizeof(other), "%s/sem.other", dir);
	assert_int_equal(symlink("x", other), 0);
	snprintf(other, sizeof(other), "%s/tt_device_1_memory", dir);
	assert_true(close(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) == 0);
	assert_int_equal(ttmon_ttshm_scan(dir, &r, &n), 0);
	assert_int_equal(n, 3);
	assert_string_equal(r[0].name, "tt_device_1_memory");
	assert_int_equal(r[0].status, TTMON_TTSHM_TRUNCATED);
	assert_int_equal(r[1].key, 469504);
	assert_int_equal(r[1].status, TTMON_TTSHM_OK);
	assert_int_equal(r[2].key, 7);
	assert_int_equal(r[2].status, TTMON_TTSHM_NOT_A_FILE);
	free(r);
	/* No end of files: bounded. */
	for (int i = 0; i < 1100; i++) {
		snprintf(other, sizeof(other), "%s/tt_device_%d_memory", dir, 1000000 + i);
		assert_true(close(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) == 0);
	}
	assert_int_equal(ttmon_ttshm_scan(dir, &r, &n), 0);
	assert_int_equal(n, 1024);
	free(r);
}

/* ---- cleaning ---- */

static void check_total(unsigned int version, uint64_t bytes, bool linear)
{
	for (size_t k = 0; k < offs[version].types; k++) {
		assert_int_equal(at64(48 + 8 * k), bytes + (linear ? k : 0));
		assert_int_equal(at64(offs[version].chips + 8 + 8 * k), bytes + (linear ? k : 0));
	}
}

static void dead_processes_go(void **state)
{
	(void)state;
	for (unsigned int version = 1; version <= 4; version++) {
		const struct off *o = &offs[version];
		uint8_t me[128];

		fresh(version);
		set_process(version, 0, dead[0], 100, "a");
		set_process(version, 1, (uint32_t)getpid(), 2000, "me");
		set_process(version, 2, dead[1], 30, "b");
		set_process(version, 3, dead[2], 0, "c");
		set_process(version, 4, 1, 5000, "init");
		set32(4, 5);
		set32(16, 5);
		set_total(version, 0);
		for (size_t k = 0; k < o->types; k++) {
			set64(48 + 8 * k, 7130 + 4 * k);
			set64(o->chips + 8 + 8 * k, 7130 + 4 * k);
		}
		save(o->size);
		memcpy(me, file + o->procs + o->proc, o->proc);
		assert_int_equal(ttmon_ttshm_cleanup(dir_fd, NAME), 3);
		load();
		for (size_t k = 0; k < o->types; k++) {
			assert_int_equal(at64(48 + 8 * k), 7000 + 2 * k);
			assert_int_equal(at64(o->chips + 8 + 8 * k), 7000 + 2 * k);
		}
		/* Compact, whole, and nothing after them. */
		assert_int_equal(at32(4), 2);
		assert_int_equal(at32(16), 2);
		assert_int_equal(at32(o->procs), 1);
		assert_int_equal(at64(o->procs + 8), 5000);
		assert_string_equal((char *)file + o->procs + 16 + 8 * o->types, "init");
		assert_memory_equal(file + o->procs + o->proc, me, o->proc);
		for (size_t i = 2 * o->proc; i < 64 * o->proc; i++)
			assert_int_equal(file[o->procs + i], 0);
		assert_int_equal(at32(0), version);
		assert_int_equal(at64(8), 123456789);
		assert_int_equal(ttmon_ttshm_cleanup(dir_fd, NAME), 0);
	}
}

static void subtraction_stops_at_0(void **state)
{
	(void)state;
	for (unsigned int version = 1; version <= 4; version++) {
		fresh(version);
		set_process(version, 0, dead[0], 1000, "a");
		set_process(version, 1, 1, 7, "b");
		set_total(version, 500);
		set64(offs[version].procs + 8, UINT64_MAX);
		save(offs[version].size);
		assert_int_equal(ttmon_ttshm_cleanup(dir_fd, NAME), 1);
		load();
		check_total(version, 0, false);
		/* A total that wrapped already: what the living hold. */
		set_process(version, 1, dead[1], 9, "c");
		set64(48, (uint64_t)-4096);
		save(offs[version].size);
		assert_int_equal(ttmon_ttshm_cleanup(dir_fd, NAME), 1);
		load();
		assert_int_equal(at64(48), 7);
	}
}

/*
 * Killed without an entry, as in version 1 without TT_METAL_SHM_STATS_PER_PID: no process will ever
 * subtract these bytes.
 */
static void bytes_of_nobody(void **state)
{
	void *map;
	int fd;

	(void)state;
	for (unsigned int version = 1; version <= 4; version++) {
		fresh(version);
		set_total(version, 500);
		save(offs[version].size);
		/* While a process has the file mapped for writing, they may belong to it. */
		fd = open(path, O_RDWR | O_CLOEXEC);
		map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
		assert_int_equal(ttmon_ttshm_cleanup(dir_fd, NAME), 0);
		load();
		check_total(version, 500, true);
		assert_int_equal(at32(16), 1);
		munmap(map, 8192);
		assert_int_equal(ttmon_ttshm_cleanup(dir_fd, NAME), 0);
		load();
		check_total(version, 0, false);
		assert_int_equal(at32(16), 0);
	}
}

/* A program of version 4 remembers the index of its entry. */
static void entries_of_attached_programs_stay(void **state)
{
	void *map;
	int fd;

	(void)state;
	for (unsigned int version = 1; version <= 4; version++) {
		const struct off *o = &offs[version];

		fresh(version);
		set_process(version, 0, dead[0], 1000, "a");
		set_process(version, 1, (uint32_t)getpid(), 7, "b");
		set32(4, 2);
		set32(16, 2);
		set_total(version, 1007);
		save(o->size);
		fd = open(path, O_RDWR | O_CLOEXEC);
		map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		close(fd);
		assert_int_equal(ttmon_ttshm_cleanup(dir_fd, NAME), 1);
		load();
		assert_int_equal(at32(o->procs), version == 1 ? getpid() : 0);
		assert_int_equal(at32(o->procs + o->proc), version == 1 ? 0 : getpid());
		assert_int_equal(at32(4), 1);
		assert_int_equal(at32(16), 1);
		assert_int_equal(at64(48), 7);
		munmap(map, 8192);
	}
}

static void hostile_entries(void **state)
{
	(void)state;
	for (unsigned int version = 1; version <= 4; version++) {
		const struct off *o = &offs[version];

		/* Everything set: dead, negative and live pids, no end of processes. */
		memset(file, 0xff, sizeof(file));
		set32(0, version);
		set32(4, 1000);
		if (version == 4)
			set32(8536, 0x52454459);
		for (size_t i = 0; i < 64; i++)
			set32(o->procs + i * o->proc, i % 3 == 0   ? dead[0]
						      : i % 3 == 1 ? 0x80000000u + (uint32_t)i
								   : 1);
		save(o->size);
		assert_int_equal(ttmon_ttshm_cleanup(dir_fd, NAME), 22);
		load();
		assert_int_equal(at32(4), 21);
		for (size_t i = 0; i < 64; i++)
			assert_int_not_equal(at32(o->procs + i * o->proc), dead[0]);
		for (size_t k = 0; k < o->types; k++)
			assert_int_equal(at64(48 + 8 * k), 0);
	}
}

static void two_cleaners(void **state)
{
	int fd;

	(void)state;
	fresh(3);
	set_process(3, 0, dead[0], 1000, "a");
	set_total(3, 1000);
	save(8576);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(ttmon_ttshm_cleanup(dir_fd, NAME), -EBUSY);
	close(fd);
	assert_int_equal(ttmon_ttshm_cleanup(dir_fd, NAME), 1);
	assert_int_equal(ttmon_ttshm_cleanup(dir_fd, NAME), 0);
}

/* ---- a program that writes while we read ---- */

static atomic_bool stop;

static void *program(void *arg)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	uint64_t *w = mmap(NULL, 8576, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	(void)arg;
	close(fd);
	for (uint64_t i = 0; !stop; i++) {
		__atomic_store_n(&w[6], i % 2 ? 0x0000123400001234 : 0x0000567800005678, __ATOMIC_RELAXED);
		__atomic_store_n(&w[1], i, __ATOMIC_RELAXED);
	}
	munmap(w, 8576);
	return NULL;
}

/* Cut short and grown again: no SIGBUS for a reader that maps nothing. */
static void *cutter(void *arg)
{
	(void)arg;
	while (!stop) {
		if (truncate(path, 100) || truncate(path, 8576))
			break;
	}
	return NULL;
}

static void racing_program(void **state)
{
	struct ttmon_ttshm r;
	pthread_t t;

	(void)state;
	fresh(3);
	set64(48, 0x0000123400001234);
	save(8576);
	stop = false;
	pthread_create(&t, NULL, program, NULL);
	for (int i = 0; i < 2000; i++) {
		get(&r);
		assert_int_equal(r.status, TTMON_TTSHM_OK);
		assert_true(r.bytes[0] == 0x0000123400001234 || r.bytes[0] == 0x0000567800005678);
	}
	stop = true;
	pthread_join(t, NULL);

	stop = false;
	pthread_create(&t, NULL, cutter, NULL);
	for (int i = 0; i < 2000; i++) {
		save(8576);
		get(&r);
		/* Never wild: what is said is what was there. */
		assert_true(r.status != TTMON_TTSHM_OK || !r.bytes[0] || r.bytes[0] == 0x0000123400001234);
		assert_true(r.status == TTMON_TTSHM_OK || r.status == TTMON_TTSHM_TRUNCATED ||
			    r.status == TTMON_TTSHM_TORN || r.status == TTMON_TTSHM_NOT_READY);
	}
	stop = true;
	pthread_join(t, NULL);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(names),
		TEST(every_version_is_read),
		TEST(eperm_means_alive),
		TEST(sizes),
		TEST(not_files),
		TEST(not_for_us),
		TEST(nonsense),
		TEST(busy_is_not_torn),
		TEST(scan),
		TEST(dead_processes_go),
		TEST(subtraction_stops_at_0),
		TEST(bytes_of_nobody),
		TEST(entries_of_attached_programs_stay),
		TEST(hostile_entries),
		TEST(two_cleaners),
		TEST(racing_program),
	};

	umask(022);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
