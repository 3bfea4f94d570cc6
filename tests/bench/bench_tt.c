// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_tt.c: the cost of the probes at tt-metal for the program that calls it.
 *
 * Each way of probing has its own copy of the stand-in library, with 32 chips and a mesh of all of
 * them open in it, so that all are attached at once and take turns, a block of calls each, in an order
 * that changes from round to round. A ratio is the median over the rounds of the ratio within a round.
 * Single functions are compared with empty programs at the same functions. An allocation and its free
 * are also compared with no probe, because a program sees their total cost. At the end every call must
 * have been seen once.
 *
 *	bench_tt [--rounds N] [--lib LIBRARY]
 *
 * The stand-in allocates from a counter: its time without probes is not that of tt-metal.
 */
#include <getopt.h>

#include "lib/base/names.h"
#include "empty.h"
#include "../standin/tt/tt_ops.h"

#define CHIPS	   32
#define CALLS	   500 /* in a block */
#define BURSTS	   10  /* in a block of calls that are all reported */
#define ROUNDS_MAX 2001

/* Rows of tt_fns.h. */
enum { FN_ALLOCATED = 256, FN_FREEING = 257, FN_ENQUEUE = 310, FN_INNER = 311 };

enum way { BARE, EMPTY, SPARE, ALL, PID, MISS, WAYS };
static const char *const way_names[WAYS] = { "no probe",      "empty programs", "spare probes in",
					     "every process", "chosen process", "other process" };

struct contestant {
	enum way way;
	void *dl;
	int fd;
	const struct standin_tt_ops *ops;
	const void *buffer;
	void (*enqueue)(void), (*inner)(void);
	struct ttmon_elf_info info;
	struct ttmon_bpf *bpf; /* SPARE and later */
	struct ttmon_probes probes;
	size_t at; /* the load that is running */
};

struct load {
	const char *name;
	void (*run)(const struct contestant *c);
	unsigned int calls;
	bool told;	/* no more in a millisecond than get records of their own */
	bool pair;	/* an allocation and its free, also compared with no probe */
	bool dispatch;	/* counted in the kernel's sums */
	uint16_t fn[2]; /* each call produces one record of each; 0: none */
};

static void run_track(const struct contestant *c)
{
	c->ops->track(c->buffer, true);
}

static void run_enqueue(const struct contestant *c)
{
	c->enqueue();
}

static void run_inner(const struct contestant *c)
{
	c->inner();
}

static void run_chip(const struct contestant *c)
{
	c->ops->free(c->ops->alloc(0, STANDIN_DRAM, 4096));
}

static void run_mesh(const struct contestant *c)
{
	c->ops->free(c->ops->alloc(STANDIN_MESH, STANDIN_DRAM, 4096));
}

#define TOLD (BURSTS * TTMON_TT_DISPATCH_BURST)

static const struct load loads[] = {
	{ .name = "track_allocate", .run = run_track, .calls = CALLS, .fn = { FN_ALLOCATED } },
	{ .name = "EnqueueMeshWorkload and the inner function, with a record",
	  .run = run_enqueue,
	  .calls = TOLD,
	  .told = true,
	  .dispatch = true,
	  .fn = { FN_ENQUEUE } },
	{ .name = "EnqueueMeshWorkload and the inner function, counted",
	  .run = run_enqueue,
	  .calls = CALLS,
	  .dispatch = true },
	{ .name = "enqueue_mesh_workload alone, with a record",
	  .run = run_inner,
	  .calls = TOLD,
	  .told = true,
	  .dispatch = true,
	  .fn = { FN_INNER } },
	{ .name = "enqueue_mesh_workload alone, counted", .run = run_inner, .calls = CALLS, .dispatch = true },
	{ .name = "allocation and free, one chip",
	  .run = run_chip,
	  .calls = CALLS,
	  .pair = true,
	  .fn = { FN_ALLOCATED, FN_FREEING } },
	{ .name = "allocation and free, mesh of 32 chips",
	  .run = run_mesh,
	  .calls = 20,
	  .pair = true,
	  .fn = { FN_ALLOCATED, FN_FREEING } },
};
#define NR_LOADS ARRAY_SIZE(loads)
#define GOAL_ALL 1.2 /* goal of the design for an entry probe with an event */
#define GOAL_PID 1.4

static struct contestant contestants[WAYS];
static uint64_t seen[WAYS][NR_LOADS][2], records[WAYS][NR_LOADS];
static double took[NR_LOADS][WAYS][ROUNDS_MAX]; /* ns a call */

/* ---- the library ---- */

static void (*find_dispatch(const struct standin_tt_ops *ops, const char *name))(void)
{
	const struct standin_tt_dispatch *v;
	size_t n = ops->dispatches(&v);

	for (size_t i = 0; i < n; i++)
		if (!strcmp(v[i].name, name))
			return v[i].call;
	return NULL;
}

static int open_library(const char *path, struct contestant *c)
{
	const struct standin_tt_ops *(*get)(void);
	size_t size;

	c->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (c->fd < 0)
		return -errno;
	c->dl = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!c->dl) {
		fprintf(stderr, "%s\n", dlerror());
		return -ENOENT;
	}
	*(void **)&get = dlsym(c->dl, "standin_tt_ops");
	if (!get)
		return -EINVAL;
	c->ops = get();
	if (!(c->ops->has & STANDIN_HAS_MESH) || c->ops->has & STANDIN_NO_PRIMARY) {
		fprintf(stderr, "bench_tt: %s has no mesh, or never calls track_allocate\n", c->ops->gen);
		return -EINVAL;
	}
	if (c->ops->open(CHIPS, true) != CHIPS)
		return -ENODEV;
	c->buffer = c->ops->object(c->ops->alloc(0, STANDIN_DRAM, 4096), &size);
	c->enqueue = find_dispatch(c->ops, "EnqueueMeshWorkload");
	c->inner = find_dispatch(c->ops, "enqueue_mesh_workload");
	if (!c->enqueue || !c->inner)
		return -ENOENT;
	return ttmon_elf_read(c->fd, "libtt_metal.so", NULL, 0, &c->info);
}

/* Removed when the process ends, with its links. */
static int copy_library(const char *lib, struct contestant *c)
{
	char to[] = "/tmp/ttmon-bench-XXXXXX";
	int err = copy_file(lib, to);

	if (err)
		return err;
	err = open_library(to, c);
	unlink(to);
	return err;
}

/* ---- the programs ---- */

/* At the primary pair, and where a mesh workload passes. */
static bool is_measured(uint16_t fn)
{
	const struct ttmon_tt_desc *d = ttmon_tt_fn(fn);

	return (d && d->bits & TTMON_TTF_MAIN) || (fn >= FN_ENQUEUE && fn <= FN_INNER);
}

static int set_up_empty(struct contestant *c)
{
	struct empty_bpf *skel = load_empty();

	if (!skel)
		return -EINVAL;
	for (size_t i = 0; i < c->info.nr_targets; i++) {
		const struct ttmon_target *t = &c->info.targets[i];
		int link;

		if (!is_measured(t->fn))
			continue;
		if (t->single_step) {
			fprintf(stderr, "%s would be single-stepped\n", t->symbol);
			return -EINVAL;
		}
		link = attach_empty(skel, c->fd, t->offset + t->skip, false);
		if (link < 0)
			return link;
	}
	return 0;
}

static int set_up_ours(struct contestant *c)
{
	const struct ttmon_bpf_cfg cfg = { .all = c->way == SPARE || c->way == ALL, .ring_bytes = 4 << 20 };
	const struct ttmon_probes_opts opts = { 0 };
	char why[256];
	int err = ttmon_bpf_new(&cfg, &c->bpf, why, sizeof(why));

	if (err) {
		fprintf(stderr, "%s\n", why);
		return err;
	}
	if (ttmon_bpf_legacy(c->bpf)) {
		fprintf(stderr, "needs uprobe_multi links\n");
		return -EOPNOTSUPP;
	}
	err = c->way == PID ? ttmon_bpf_add_pid(c->bpf, (uint32_t)getpid(), false) : 0;
	if (!err)
		err = ttmon_bpf_tt_slot(c->bpf, 0, &c->info.tt);
	if (!err)
		err = ttmon_probes_attach(c->bpf, c->fd, &c->info, &opts, &c->probes);
	/* As the daemon does when the primary pair is known to work. */
	if (!err && c->way != SPARE)
		err = ttmon_probes_spare(&c->probes, c->fd, &c->info, false);
	ttmon_bpf_activate(c->bpf, true);
	return err;
}

static int set_up(const char *lib)
{
	for (enum way way = BARE; way < WAYS; way++) {
		struct contestant *c = &contestants[way];
		int err;

		c->way = way;
		err = copy_library(lib, c);
		if (!err && way == EMPTY)
			err = set_up_empty(c);
		if (!err && way > EMPTY)
			err = set_up_ours(c);
		if (err) {
			fprintf(stderr, "bench_tt: cannot set up %s: %s\n", way_names[way], strerror(-err));
			return err;
		}
	}
	return 0;
}

/* ---- what was seen ---- */

/* Only records that identify the device: the others take another path through the program. */
static void count(void *ctx, const void *rec, size_t size)
{
	const struct contestant *c = ctx;
	const struct ttmon_event *e = rec;
	uint16_t fn = 0;

	(void)size;
	if (e->kind == TTMON_EV_TT_BUFFER) {
		const struct ttmon_ev_tt_buffer *b = rec;

		fn = b->dev_kind != TTMON_TT_DEV_UNKNOWN ? b->fn : 0;
	} else if (e->kind == TTMON_EV_TT_DISPATCH) {
		const struct ttmon_ev_tt_dispatch *d = rec;

		fn = d->dev_kind == TTMON_TT_DEV_MESH ? d->fn : 0;
	}
	if (e->kind != TTMON_EV_PROC)
		records[c->way][c->at]++;
	for (size_t i = 0; fn && i < 2; i++)
		if (fn == loads[c->at].fn[i])
			seen[c->way][c->at][i]++;
}

static void drain(struct contestant *c, size_t load)
{
	if (!c->bpf)
		return;
	c->at = load;
	for (uint32_t i = 0; i < ttmon_bpf_rings(c->bpf); i++) {
		struct ttmon_ring *r = ttmon_bpf_ring(c->bpf, i);

		ttmon_ring_drain(r, ttmon_ring_producer(r), count, c);
	}
}

static void add_sums(void *ctx, const void *rec, size_t size)
{
	const struct ttmon_ev_tt_sums *e = rec;

	(void)size;
	*(uint64_t *)ctx += e->sums[TTMON_TT_WORKLOAD];
}

static int differs(enum way way, const char *what, uint64_t got, uint64_t want)
{
	if (got == want)
		return 0;
	fprintf(stderr, "bench_tt: %s, %s: %llu of %llu calls seen\n", what, way_names[way], (unsigned long long)got,
		(unsigned long long)want);
	return -EIO;
}

static int check(enum way way, size_t rounds)
{
	uint64_t dispatches = 0, sums = 0;
	int err = 0;

	for (size_t load = 0; load < NR_LOADS; load++) {
		uint64_t calls = way == MISS ? 0 : (uint64_t)loads[load].calls * (rounds + 1);

		if (way == SPARE && !loads[load].pair)
			continue;
		for (size_t i = 0; i < 2; i++)
			if (loads[load].fn[i])
				err |= differs(way, loads[load].name, seen[way][load][i], calls);
		if (loads[load].dispatch)
			dispatches += calls;
	}
	ttmon_bpf_each_tt_sums(contestants[way].bpf, now_ns(), add_sums, &sums);
	return err | differs(way, "sums of dispatches", sums, dispatches);
}

/* ---- measuring ---- */

static double timed(const struct contestant *c, const struct load *l, unsigned int calls)
{
	uint64_t t0 = now_ns();

	for (unsigned int i = 0; i < calls; i++)
		l->run(c);
	return (double)(now_ns() - t0);
}

static double block(struct contestant *c, size_t load)
{
	const struct load *l = &loads[load];
	double ns = 0;

	if (!l->told)
		ns = timed(c, l, l->calls);
	for (unsigned int i = 0; l->told && i < BURSTS; i++) {
		uint64_t ms = now_ns() / NSEC_PER_MS;

		while (now_ns() / NSEC_PER_MS == ms)
			;
		ns += timed(c, l, TTMON_TT_DISPATCH_BURST);
	}
	drain(c, load);
	return ns / l->calls;
}

/* This way against the floor, over the rounds: the quotient, or the difference. */
static double against(size_t load, enum way way, enum way floor, size_t rounds, bool minus)
{
	static double r[ROUNDS_MAX];

	for (size_t i = 0; i < rounds; i++)
		r[i] = minus ? took[load][way][i] - took[load][floor][i] : took[load][way][i] / took[load][floor][i];
	return median(r, rounds);
}

static double typical(size_t load, enum way way, size_t rounds)
{
	static double v[ROUNDS_MAX];

	memcpy(v, took[load][way], rounds * sizeof(*v));
	return median(v, rounds);
}

static void report(size_t load, size_t rounds)
{
	const struct load *l = &loads[load];

	printf("%s: %s %.0f ns, empty programs%s %.0f ns\n", l->name, way_names[BARE], typical(load, BARE, rounds),
	       l->pair ? " at the primary pair" : "", typical(load, EMPTY, rounds));
	for (enum way way = l->pair ? SPARE : ALL; way <= MISS; way++) {
		double goal = l->pair ? 0 : way == ALL ? GOAL_ALL : way == PID ? GOAL_PID : 0;
		double r = against(load, way, EMPTY, rounds, false);

		printf("  %-15s %6.0f ns, ratio %.2f", way_names[way], typical(load, way, rounds), r);
		if (goal > 0)
			printf(" (goal %.2f%s)", goal, r > goal ? ", MISSED" : "");
		if (l->pair)
			printf(", %.2f us more than no probe, %.0f records",
			       against(load, way, BARE, rounds, true) / 1000,
			       (double)records[way][load] / ((double)l->calls * (double)(rounds + 1)));
		printf("\n");
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "lib", required_argument, NULL, 'l' },
		{ 0 },
	};
	char lib[PATH_MAX];
	size_t rounds = 101;
	int opt, err = 0;

	beside("../standin/tt/e2b/libtt_metal.so", lib, sizeof(lib));
	while ((opt = getopt_long(argc, argv, "r:l:", options, NULL)) != -1) {
		if (opt == 'r')
			rounds = strtoul(optarg, NULL, 10);
		else if (opt == 'l')
			snprintf(lib, sizeof(lib), "%s", optarg);
		else
			return 2;
	}
	if (rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "bench_tt: --rounds 1 to %d\n", ROUNDS_MAX);
		return 2;
	}
	if (skipped("bench_tt"))
		return 0;
	/* The chips and the publishing programs that the stand-in has without these variables. */
	unsetenv("STANDIN_TT_CHIPS");
	unsetenv("STANDIN_TT_SHM");
	unsetenv("TT_VISIBLE_DEVICES");
	pin((int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
	if (set_up(lib))
		return 1;
	/* The first round is not counted. */
	for (size_t r = 0; r <= rounds; r++) {
		for (size_t load = 0; load < NR_LOADS; load++) {
			for (unsigned int i = 0; i < WAYS; i++) {
				enum way way = (enum way)((i + r) % WAYS);

				if (way != SPARE || loads[load].pair)
					took[load][way][r ? r - 1 : 0] = block(&contestants[way], load);
			}
		}
	}
	for (size_t load = 0; load < NR_LOADS; load++)
		report(load, rounds);
	for (enum way way = SPARE; way <= MISS; way++) {
		err |= check(way, rounds);
		ttmon_probes_detach(&contestants[way].probes);
		ttmon_bpf_free(contestants[way].bpf);
	}
	return err ? 1 : 0;
}
