// SPDX-License-Identifier: GPL-2.0-only
/*
 * tt_reader.c: reads tt_device_<key>_memory files as other tools do, for tests: a second
 * implementation of the layouts.
 *
 *     tt_reader FILE...        one line of JSON a file
 *
 * It includes nothing of ttmon. The structs below are written from the documented layouts of versions
 * 1 and 3 (4 adds init_state), with their compiled alignment; the compiler computes the offsets. Like
 * tt_smi it maps the file and trusts it, so it must only be used on files of a test. "seen" is what
 * tt_smi of version 1 shows: the first num_active_processes entries that kill(pid, 0) finds.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct chip1 {
	uint32_t chip_id, is_remote;
	uint64_t dram_allocated, l1_allocated, l1_small_allocated, trace_allocated, cb_allocated, kernel_allocated;
};

struct process1 {
	pid_t pid;
	uint64_t dram_allocated, l1_allocated, l1_small_allocated, trace_allocated, cb_allocated, kernel_allocated;
	uint64_t last_update_timestamp;
	char process_name[64];
};

struct region1 {
	uint32_t version, num_active_processes;
	uint64_t last_update_timestamp;
	_Atomic uint32_t reference_count;
	uint64_t board_serial, asic_id;
	int32_t device_id;
	_Atomic uint64_t total_dram_allocated, total_l1_allocated, total_l1_small_allocated, total_trace_allocated,
		total_cb_allocated, total_kernel_allocated;
	struct chip1 chip_stats[16];
	struct process1 processes[64];
	uint8_t padding[64];
} __attribute__((aligned(64)));

struct chip3 {
	uint32_t chip_id, is_remote;
	uint64_t dram_allocated, l1_allocated, l1_small_allocated, trace_allocated, cb_allocated;
};

struct process3 {
	pid_t pid;
	uint64_t dram_allocated, l1_allocated, l1_small_allocated, trace_allocated, cb_allocated;
	uint64_t last_update_timestamp;
	char process_name[64];
};

struct region3 {
	uint32_t version, num_active_processes;
	uint64_t last_update_timestamp;
	_Atomic uint32_t reference_count;
	uint64_t board_serial, asic_id;
	uint32_t device_id;
	_Atomic uint64_t total_dram_allocated, total_l1_allocated, total_l1_small_allocated, total_trace_allocated,
		total_cb_allocated;
	struct chip3 chip_stats[16];
	struct process3 processes[64];
	_Atomic uint32_t init_state;
} __attribute__((aligned(64)));

_Static_assert(sizeof(struct chip1) == 56 && sizeof(struct process1) == 128 && sizeof(struct region1) == 9280,
	       "version 1");
_Static_assert(sizeof(struct chip3) == 48 && sizeof(struct process3) == 120 && sizeof(struct region3) == 8576,
	       "version 3");

static const char *sep;

/* The five figures that every version has. */
#define FIGURES(of, kind)                                                                                   \
	printf("\"dram\": %" PRIu64 ", \"l1\": %" PRIu64 ", \"l1_small\": %" PRIu64 ", \"trace\": %" PRIu64 \
	       ", \"cb\": %" PRIu64,                                                                        \
	       (uint64_t)(of)->kind##dram_allocated, (uint64_t)(of)->kind##l1_allocated,                    \
	       (uint64_t)(of)->kind##l1_small_allocated, (uint64_t)(of)->kind##trace_allocated,             \
	       (uint64_t)(of)->kind##cb_allocated)

#define HEADER(r)                                                                                                   \
	printf("\"version\": %" PRIu32 ", \"num_active_processes\": %" PRIu32 ", \"last_update\": %" PRIu64         \
	       ", \"reference_count\": %" PRIu32 ", \"board_serial\": %" PRIu64 ", \"asic_id\": %" PRIu64           \
	       ", \"device_id\": %" PRId64 ", \"totals\": {",                                                       \
	       (r)->version, (r)->num_active_processes, (r)->last_update_timestamp, (uint32_t)(r)->reference_count, \
	       (r)->board_serial, (r)->asic_id, (int64_t)(r)->device_id)

static void put_name(const char *name)
{
	printf("\"");
	for (size_t i = 0; i < 64 && name[i]; i++) {
		if ((unsigned char)name[i] < ' ' || (unsigned char)name[i] > '~' || strchr("\"\\", name[i]))
			printf("\\u%04x", (unsigned int)(unsigned char)name[i]);
		else
			printf("%c", name[i]);
	}
	printf("\"");
}

static int is_seen(uint32_t i, uint32_t n, pid_t pid)
{
	return i < n && i < 64 && kill(pid, 0) == 0;
}

static void print1(const struct region1 *r)
{
	HEADER(r);
	FIGURES(r, total_);
	printf(", \"kernel\": %" PRIu64 "}, \"chips\": [", (uint64_t)r->total_kernel_allocated);
	sep = "";
	for (uint32_t i = 0; i < 16; i++) {
		const struct chip1 *c = &r->chip_stats[i];

		if (!i || c->chip_id) {
			printf("%s{\"chip_id\": %" PRIu32 ", \"is_remote\": %" PRIu32 ", ", sep, c->chip_id,
			       c->is_remote);
			FIGURES(c, );
			printf(", \"kernel\": %" PRIu64 "}", c->kernel_allocated);
			sep = ", ";
		}
	}
	printf("], \"processes\": [");
	sep = "";
	for (uint32_t i = 0; i < 64; i++) {
		const struct process1 *p = &r->processes[i];

		if (!p->pid)
			continue;
		printf("%s{\"entry\": %" PRIu32 ", \"pid\": %d, \"seen\": %s, \"name\": ", sep, i, p->pid,
		       is_seen(i, r->num_active_processes, p->pid) ? "true" : "false");
		put_name(p->process_name);
		printf(", ");
		FIGURES(p, );
		printf(", \"kernel\": %" PRIu64 ", \"last_update\": %" PRIu64 "}", p->kernel_allocated,
		       p->last_update_timestamp);
		sep = ", ";
	}
}

static void print3(const struct region3 *r)
{
	HEADER(r);
	FIGURES(r, total_);
	printf("}, \"init_state\": %" PRIu32 ", \"chips\": [", (uint32_t)r->init_state);
	sep = "";
	for (uint32_t i = 0; i < 16; i++) {
		const struct chip3 *c = &r->chip_stats[i];

		if (c->chip_id != UINT32_MAX) {
			printf("%s{\"chip_id\": %" PRIu32 ", \"is_remote\": %" PRIu32 ", ", sep, c->chip_id,
			       c->is_remote);
			FIGURES(c, );
			printf("}");
			sep = ", ";
		}
	}
	printf("], \"processes\": [");
	sep = "";
	for (uint32_t i = 0; i < 64; i++) {
		const struct process3 *p = &r->processes[i];

		if (p->pid <= 0)
			continue;
		printf("%s{\"entry\": %" PRIu32 ", \"pid\": %d, \"seen\": %s, \"name\": ", sep, i, p->pid,
		       is_seen(i, r->num_active_processes, p->pid) ? "true" : "false");
		put_name(p->process_name);
		printf(", ");
		FIGURES(p, );
		printf(", \"last_update\": %" PRIu64 "}", p->last_update_timestamp);
		sep = ", ";
	}
}

static int read_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st = { 0 };
	const void *map = MAP_FAILED;
	uint32_t version;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0)
		map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		perror(path);
		return 1;
	}
	memcpy(&version, map, sizeof(version));
	if (st.st_size != (version == 1 ? (off_t)sizeof(struct region1) : (off_t)sizeof(struct region3)) || !version ||
	    version > 4) {
		fprintf(stderr, "%s: version %" PRIu32 ", %lld bytes\n", path, version, (long long)st.st_size);
		return 1;
	}
	printf("{\"file\": \"%s\", \"mode\": %u, \"uid\": %u, ", path, (unsigned int)(st.st_mode & 07777),
	       (unsigned int)st.st_uid);
	if (version == 1)
		print1(map);
	else
		print3(map);
	printf("]}\n");
	return 0;
}

int main(int argc, char **argv)
{
	int failed = argc < 2;

	for (int i = 1; i < argc; i++)
		failed |= read_file(argv[i]);
	return failed;
}
