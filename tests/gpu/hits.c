// SPDX-License-Identifier: GPL-2.0-only
/*
 * hits.c: uprobes on a library, without ttmond: which functions are entered, and what a probe
 * costs. It uses bpf(2) alone, so that it needs no library but libc. Offsets are file offsets of
 * instructions, in hexadecimal.
 *
 *	hits check			loads a program and tries a link: "ok", or the first step that the kernel refuses
 *	hits count LIB < OFFSETS	"attached N", "refused OFFSET ERROR" for those that cannot be probed;
 *					then, for each further line of its input, "INDEX COUNT" for every offset
 *					that was hit, and "." at the end
 *	hits cost LIB NAME[:K]...	calls each function, which must do nothing and return, with zeros;
 *					one line each:
 *					NAME bare=NS entry=NS entry+K=NS pair=NS pair+K=NS
 *
 * The offsets of `count` are on the first line of its input, with blanks between them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define OFFSETS_MAX 4096
#define ROUNDS	    5

/* linux/bpf.h of Debian 12 ends before these (Linux 6.6, 89ae89f53d20). */
#define ATTACH_UPROBE_MULTI 48
#define MULTI_RETURN	    1
struct multi_attr {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, uprobe_flags, pid, pad;
};

static const char *library;

static int sys_bpf(int cmd, const void *attr, size_t size)
{
	long fd = syscall(SYS_bpf, cmd, attr, size);

	return fd < 0 ? -errno : (int)fd;
}

static int new_map(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 8, .max_entries = OFFSETS_MAX
	};

	return sys_bpf(BPF_MAP_CREATE, &attr, sizeof(attr));
}

static int load(const struct bpf_insn *insns, size_t n)
{
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_KPROBE,
		.expected_attach_type = ATTACH_UPROBE_MULTI,
		.insns = (uintptr_t)insns,
		.insn_cnt = (uint32_t)n,
		.license = (uintptr_t) "GPL",
		.prog_name = "gpu_hits",
	};

	return sys_bpf(BPF_PROG_LOAD, &attr, sizeof(attr));
}

#define INSN(c, d, s, o, i) ((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })

/* map[cookie]++ */
static int load_counter(int map)
{
	const struct bpf_insn insns[] = {
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_get_attach_cookie),
		INSN(BPF_STX | BPF_MEM | BPF_W, BPF_REG_10, BPF_REG_0, -4, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, -4),
		INSN(BPF_LD | BPF_IMM | BPF_DW, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 2, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_1, 0, 0, 1),
		INSN(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_0, BPF_REG_1, 0, BPF_ADD),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};

	return load(insns, sizeof(insns) / sizeof(*insns));
}

static int load_empty(void)
{
	const struct bpf_insn insns[] = {
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};

	return load(insns, sizeof(insns) / sizeof(*insns));
}

static int attach(int prog, const char *path, const uint64_t *offsets, const uint64_t *cookies, size_t n,
		  bool on_return)
{
	struct multi_attr attr = {
		.prog_fd = (uint32_t)prog,
		.attach_type = ATTACH_UPROBE_MULTI,
		.path = (uintptr_t)path,
		.offsets = (uintptr_t)offsets,
		.cookies = (uintptr_t)cookies,
		.cnt = (uint32_t)n,
		.uprobe_flags = on_return ? MULTI_RETURN : 0,
	};

	return sys_bpf(BPF_LINK_CREATE, &attr, offsetof(struct multi_attr, pad));
}

static int fail(const char *what, int err)
{
	printf("%s: %s\n", what, strerror(-err));
	return 1;
}

/* ---- check ---- */
static int check(void)
{
	uint64_t offset = 0;
	int map = new_map(), prog, err;

	if (map < 0)
		return fail("a BPF map", map);
	prog = load_empty();
	if (prog < 0)
		return fail("a BPF program for uprobe_multi", prog);
	prog = load_counter(map);
	if (prog < 0)
		return fail("a BPF program with an attach cookie", prog);
	/*
	 * A kernel that knows such links has looked at the path when it refuses a folder with EBADF; others
	 * say EINVAL.
	 */
	err = attach(prog, "/", &offset, NULL, 1, false);
	if (err != -EBADF)
		return fail("a uprobe_multi link", err < 0 ? err : -EINVAL);
	printf("ok\n");
	return 0;
}

/* ---- count ---- */
static uint64_t offsets[OFFSETS_MAX], cookies[OFFSETS_MAX];
static size_t attached;

/*
 * One link takes all or none: what it refuses is halved until the one that is at fault stands alone.
 */
static void attach_all(int prog, size_t first, size_t n)
{
	int link = n ? attach(prog, library, offsets + first, cookies + first, n, false) : 0;

	if (link >= 0) {
		attached += n;
		return;
	}
	if (n == 1) {
		printf("refused %lx %s\n", (unsigned long)offsets[first], strerror(-link));
		return;
	}
	attach_all(prog, first, n / 2);
	attach_all(prog, first + n / 2, n - n / 2);
}

static void print_counts(int map, size_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t count = 0;
		union bpf_attr attr = { .map_fd = (uint32_t)map, .key = (uintptr_t)&i, .value = (uintptr_t)&count };

		if (!sys_bpf(BPF_MAP_LOOKUP_ELEM, &attr, sizeof(attr)) && count)
			printf("%u %lu\n", i, (unsigned long)count);
	}
	printf(".\n");
	fflush(stdout);
}

static int count(void)
{
	int map = new_map(), prog = map < 0 ? map : load_counter(map);
	char *line = NULL, *end, *at;
	size_t room = 0, n = 0;

	if (prog < 0)
		return fail("a BPF program with an attach cookie", prog);
	if (getline(&line, &room, stdin) <= 0)
		return 2;
	for (at = line; n < OFFSETS_MAX; at = end, n++) {
		offsets[n] = strtoull(at, &end, 16);
		cookies[n] = n;
		if (end == at)
			break;
	}
	attach_all(prog, 0, n);
	printf("attached %zu\n", attached);
	fflush(stdout);
	while (getline(&line, &room, stdin) > 0)
		print_counts(map, n);
	free(line);
	return 0;
}

/* ---- cost ---- */
typedef long (*function)(void *, long, long, long, long, long, long, long);

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double run(function f, int n)
{
	static long nothing[64];
	double from = now();

	for (int i = 0; i < n; i++)
		f(nothing, 0, 0, 0, 0, 0, 0, 0);
	return (now() - from) / n;
}

/* 20 ms of calls. */
static double measure(function f)
{
	double once = run(f, 100);
	int n = once > 0 ? (int)(20e6 / once) : 100000;

	return run(f, n < 500 ? 500 : n > 100000 ? 100000 : n);
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* Of an address in the library, by its first segment with code. */
static uint64_t file_offset(const void *address)
{
	uint64_t found = 0, start, end, offset;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 && (uintptr_t)address >= start &&
		    (uintptr_t)address < end)
			found = (uintptr_t)address - start + offset;
	if (maps)
		fclose(maps);
	return found;
}

enum way { BARE, ENTRY, ENTRY_K, PAIR, PAIR_K, WAYS };
static const char *const way_names[WAYS] = { "bare", "entry", "entry+k", "pair", "pair+k" };

static int cost(int argc, char **argv)
{
	void *lib = dlopen(library, RTLD_NOW);
	int prog = load_empty();

	if (!lib || prog < 0)
		return lib ? fail("a BPF program for uprobe_multi", prog) : (puts(dlerror()), 1);
	for (int i = 0; i < argc; i++) {
		char *colon = strchr(argv[i], ':');
		uint64_t k = colon ? strtoull(colon + 1, NULL, 0) : 0, entry, placed;
		double ns[WAYS][ROUNDS];
		function f;

		if (colon)
			*colon = '\0';
		f = (function)dlsym(lib, argv[i]);
		if (!f)
			continue;
		entry = file_offset((void *)f);
		placed = entry + k;
		for (int r = 0; r < ROUNDS; r++)
			for (int w = 0; w < WAYS; w++) {
				const uint64_t *at = w == ENTRY_K || w == PAIR_K ? &placed : &entry;
				int links[2] = { -1, -1 };

				if (w != BARE)
					links[0] = attach(prog, library, at, NULL, 1, false);
				if (w == PAIR || w == PAIR_K)
					links[1] = attach(prog, library, at, NULL, 1, true);
				if (w != BARE && links[0] < 0)
					return fail(argv[i], links[0]);
				ns[w][r] = measure(f);
				for (int l = 0; l < 2; l++)
					if (links[l] >= 0)
						close(links[l]);
			}
		printf("%s k=%lu", argv[i], (unsigned long)k);
		for (int w = 0; w < WAYS; w++) {
			qsort(ns[w], ROUNDS, sizeof(double), by_size);
			printf(" %s=%.0f", way_names[w], ns[w][ROUNDS / 2]);
		}
		printf("\n");
		fflush(stdout);
	}
	return 0;
}

int main(int argc, char **argv)
{
	library = argc > 2 ? argv[2] : NULL;
	if (argc == 2 && !strcmp(argv[1], "check"))
		return check();
	if (argc == 3 && !strcmp(argv[1], "count"))
		return count();
	if (argc > 3 && !strcmp(argv[1], "cost"))
		return cost(argc - 3, argv + 3);
	fprintf(stderr, "hits: see the head of hits.c\n");
	return 2;
}
