// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_place.c: the cost of a probe on a function of NVIDIA's driver, at its entry, where the kernel
 * single-steps a cmpl, and at the place that ttmond selects, the je behind it.
 *
 *	bench_place [--rounds N] [LIBRARY FUNCTION...]
 *
 * Without a library it uses a function of its own that begins as those of libcuda 550 do. With a
 * library, its functions are called with a buffer and zeros: a real driver returns 3 before cuInit().
 * The programs are empty; the ways take turns in every round. In a round before the timed ones the
 * kernel counts the runs of the program: each call must have caused one, a pair two.
 */
#include <bpf/bpf.h>
#include <getopt.h>

#include "empty.h"

#define BLOCK	   300 /* calls in a block */
#define ROUNDS_MAX 101
#define FNS_MAX	   16

enum way { BARE, ENTRY_0, ENTRY_K, PAIR_0, PAIR_K, WAYS };
static const char *const way_names[WAYS] = { "no probe", "entry +0", "entry +k", "pair +0", "pair +k" };

typedef long (*function)(long, long, long, long, long, long, long, long);

struct probed {
	const char *name;
	function fn;
	uint64_t offset;
	uint8_t skip;
	double took[WAYS][ROUNDS_MAX];
};

#ifdef __x86_64__
/* models libcuda 550's stub: 10 bytes of cmpl, je, jmp through memory */
__asm__(".pushsection .text\n"
	".fill 128, 1, 0xcc\n"
	".balign 32\n"
	".globl cuMemHostAlloc\n"
	".type cuMemHostAlloc, @function\n"
	"cuMemHostAlloc:\n"
	"cmpl $0x321cba00, place_word(%rip)\n"
	"je 1f\n"
	"jmp *place_real(%rip)\n"
	".balign 8\n"
	"1: mov $4, %eax\n"
	"ret\n"
	".size cuMemHostAlloc, . - cuMemHostAlloc\n"
	"place_fn: mov $3, %eax\n"
	"ret\n"
	".fill 128, 1, 0xcc\n"
	".popsection\n"
	".pushsection .data\n"
	"place_word: .long 7\n"
	".balign 8\n"
	"place_real: .quad place_fn\n"
	".popsection\n");
#endif

static char buffer[4096];

static double block(function fn)
{
	uint64_t t0 = now_ns();

	for (int i = 0; i < BLOCK; i++)
		fn((long)buffer, 0, 0, 0, 0, 0, 0, 0);
	return (double)(now_ns() - t0) / BLOCK;
}

static uint64_t runs_of(const struct empty_bpf *skel)
{
	struct bpf_prog_info info = { 0 };
	uint32_t len = sizeof(info);

	if (bpf_obj_get_info_by_fd(bpf_program__fd(skel->progs.empty), &info, &len))
		return 0;
	return info.run_cnt;
}

/* Measures one block of one way, after a block that is not counted. */
static int measure(const struct empty_bpf *skel, int fd, struct probed *p, enum way way, size_t round, bool counted)
{
	uint64_t offset = p->offset + (way == ENTRY_K || way == PAIR_K ? p->skip : 0), before = runs_of(skel);
	uint64_t want = 2 * BLOCK * (way == BARE ? 0 : way >= PAIR_0 ? 2 : 1), hits;
	int links[2] = { -1, -1 };

	if (way != BARE)
		links[0] = attach_empty(skel, fd, offset, false);
	if (way >= PAIR_0)
		links[1] = attach_empty(skel, fd, offset, true);
	if (way != BARE && (links[0] < 0 || (way >= PAIR_0 && links[1] < 0)))
		return -EIO;
	block(p->fn);
	p->took[way][round] = block(p->fn);
	hits = runs_of(skel) - before;
	for (size_t i = 0; i < 2; i++)
		if (links[i] >= 0)
			close(links[i]);
	if (!counted || hits == want)
		return 0;
	fprintf(stderr, "bench_place: %s, %s: %llu of %llu hits\n", p->name, way_names[way], (unsigned long long)hits,
		(unsigned long long)want);
	return -EIO;
}

/* Finds the place by the library's symbol table and the placer. */
static int look_up(int fd, void *dl, const char *name, struct probed *ret)
{
	const struct ttmon_user_fn user = { "*", name, TTMON_FN_USER };
	struct ttmon_elf_info info;
	int err = ttmon_elf_read(fd, "lib", &user, 1, &info);

	if (err)
		return err;
	err = -ENOENT;
	for (size_t i = 0; i < info.nr_targets && err; i++) {
		const struct ttmon_target *t = &info.targets[i];

		if (strcmp(t->symbol, name))
			continue;
		*ret = (struct probed){ .name = name, .offset = t->offset, .skip = t->skip };
		*(void **)&ret->fn = dlsym(dl, name);
		err = ret->fn ? 0 : -ENOENT;
	}
	ttmon_elf_info_fini(&info);
	return err;
}

static void report(struct probed *p, size_t rounds)
{
	printf("%s, k %u:", p->name, p->skip);
	for (enum way way = BARE; way < WAYS; way++)
		printf("%s %s %.0f ns", way ? "," : "", way_names[way], median(p->took[way], rounds));
	printf("\n");
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "rounds", required_argument, NULL, 'r' }, { 0 } };
	static struct probed fns[FNS_MAX];
	static char own[] = "cuMemHostAlloc", *mine[] = { own };
	const char *path = "/proc/self/exe";
	struct empty_bpf *skel;
	char **names = mine;
	size_t rounds = 9, n = 1;
	void *dl;
	int opt, fd, stats;

	while ((opt = getopt_long(argc, argv, "r:", options, NULL)) != -1) {
		if (opt != 'r')
			return 2;
		rounds = strtoul(optarg, NULL, 10);
	}
	if (rounds < 1 || rounds > ROUNDS_MAX || argc - optind > FNS_MAX || argc - optind == 1)
		return 2;
	if (optind < argc) {
		path = argv[optind];
		names = argv + optind + 1;
		n = (size_t)(argc - optind - 1);
	}
	if (skipped("bench_place"))
		return 0;
#ifndef __x86_64__
	printf("SKIP bench_place: x86-64 alone\n");
	return 0;
#endif
	dl = dlopen(optind < argc ? path : NULL, RTLD_NOW);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (!dl || fd < 0) {
		fprintf(stderr, "bench_place: cannot open %s\n", path);
		return 1;
	}
	skel = load_empty();
	stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (!skel || stats < 0)
		return 1;
	pin((int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
	for (size_t i = 0; i < n; i++) {
		int err = look_up(fd, dl, names[i], &fns[i]);

		if (err) {
			fprintf(stderr, "bench_place: no %s: %s\n", names[i], strerror(-err));
			return 1;
		}
	}
	for (size_t r = 0; r <= rounds; r++) {
		for (size_t i = 0; i < n * WAYS; i++) {
			enum way way = (enum way)((i + r) % WAYS);

			if (measure(skel, fd, &fns[i / WAYS], way, r ? r - 1 : 0, !r))
				return 1;
		}
		/* Counting costs time. */
		if (!r)
			close(stats);
	}
	for (size_t i = 0; i < n; i++)
		report(&fns[i], rounds);
	return 0;
}
