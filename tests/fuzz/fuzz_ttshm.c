// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_ttshm.c: hostile tt_device_<key>_memory files. Reading must say what is in the file and nothing
 * wild; cleaning must take out all dead processes, leave the living ones as they are, let no total
 * grow past 2^50, and find nothing to do the second time.
 *
 * Input: the file. Pids in it are changed: even ones to our own, odd ones to one that is dead (the
 * fuzzer's guesses would be both).
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "lib/read/ttshm.h"
#include "lib/base/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NAME "tt_device_1_memory"

static char dir[64];
static int dir_fd = -1;
static int32_t dead;

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void leave(void)
{
	unlinkat(dir_fd, NAME, 0);
	rmdir(dir);
}

static void prepare(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	require(pid > 0 && waitpid(pid, NULL, 0) == pid);
	dead = pid;
	snprintf(dir, sizeof(dir), "%s/ttmon-fuzz-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	require(mkdtemp(dir));
	atexit(leave);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	require(dir_fd >= 0);
}

static void set_pids(uint8_t *file, size_t size)
{
	const struct ttmon_tt_shm_layout *l = NULL;
	uint32_t version;

	if (size >= sizeof(version)) {
		memcpy(&version, file, sizeof(version));
		l = ttmon_tt_shm_layout(version);
	}
	for (size_t i = 0; l && i < TTMON_TT_SHM_PROCESSES; i++) {
		size_t at = l->procs + i * l->proc_size;
		int32_t pid;

		if (at + sizeof(pid) > size)
			return;
		memcpy(&pid, file + at, sizeof(pid));
		if (pid > 0)
			pid = pid % 2 ? dead : getpid();
		memcpy(file + at, &pid, sizeof(pid));
	}
}

static uint64_t hash_living(const struct ttmon_ttshm *r, size_t *n)
{
	uint64_t sum = 0;

	*n = 0;
	for (size_t i = 0; i < r->nr_processes; i++) {
		const struct ttmon_ttshm_process *p = &r->processes[i];
		uint64_t h = 0xcbf29ce484222325ull;

		if (!p->alive)
			continue;
		++*n;
		for (size_t k = 0; k < sizeof(p->name); k++)
			h = (h ^ (uint8_t)p->name[k]) * 0x100000001b3ull;
		for (size_t k = 0; k < TTMON_TTSHM_TYPES; k++)
			h = (h ^ p->bytes[k]) * 0x100000001b3ull;
		sum += h; /* in any order */
	}
	return sum;
}

static void check(const struct ttmon_ttshm *r)
{
	bool read = r->status == TTMON_TTSHM_OK || r->status == TTMON_TTSHM_NONSENSE;

	require(r->nr_processes <= TTMON_TT_SHM_PROCESSES);
	require(read || !r->nr_processes);
	for (size_t k = 0; k < TTMON_TTSHM_TYPES; k++) {
		require(r->bytes[k] <= 1ull << 50 || r->bytes[k] == TTMON_TTSHM_UNKNOWN);
		require(read || r->bytes[k] == TTMON_TTSHM_UNKNOWN);
		require(r->status != TTMON_TTSHM_OK || k == 5 || r->bytes[k] != TTMON_TTSHM_UNKNOWN);
	}
	for (size_t i = 0; i < r->nr_processes; i++) {
		const struct ttmon_ttshm_process *p = &r->processes[i];

		require(p->pid > 0 && p->alive == (p->pid != dead) && memchr(p->name, 0, sizeof(p->name)));
		for (size_t k = 0; k < TTMON_TTSHM_TYPES; k++)
			require(p->bytes[k] <= 1ull << 50 || p->bytes[k] == TTMON_TTSHM_UNKNOWN);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct ttmon_ttshm before, after;
	_cleanup_free_ uint8_t *file = malloc(size + 1);
	size_t living, left, dying = 0;
	uint64_t hash;
	int fd, r;

	if (dir_fd < 0)
		prepare();
	require(file);
	memcpy(file, data, size);
	set_pids(file, size);
	fd = openat(dir_fd, NAME, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	require(fd >= 0 && write(fd, file, size) == (ssize_t)size);
	close(fd);

	ttmon_ttshm_read(dir_fd, NAME, &before);
	check(&before);
	require(before.status != TTMON_TTSHM_TORN && before.status != TTMON_TTSHM_UNREADABLE);
	hash = hash_living(&before, &living);
	for (size_t i = 0; i < before.nr_processes; i++)
		dying += !before.processes[i].alive;

	r = ttmon_ttshm_cleanup(dir_fd, NAME);
	ttmon_ttshm_read(dir_fd, NAME, &after);
	check(&after);
	if (r < 0) {
		require(!memcmp(&before, &after, sizeof(before)));
		return 0;
	}
	require((size_t)r == dying);
	require(hash_living(&after, &left) == hash && left == living && after.nr_processes == living);
	require(!dying || (after.status == TTMON_TTSHM_OK && after.num_active == living));
	require(ttmon_ttshm_cleanup(dir_fd, NAME) == 0);
	return 0;
}
