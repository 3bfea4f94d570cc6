// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_probe.c: the cost of a probed call for the program that makes it, against the same call with
 * empty BPF programs.
 *
 * Each way of probing has its own copy of the library of nothing.c, so that all are attached at once
 * and take turns, a block of calls each, in an order that changes from round to round. A ratio is the
 * median over the rounds of the ratio within a round. The rings are emptied between the blocks, and at
 * the end every call must have been seen once.
 *
 *	bench_probe [--rounds N] [--peer LIBRARY [--pause MS]]
 *
 * With --peer, another tracer has probes at that library (bpftrace.sh): only asynchronous and
 * synchronous copies are measured.
 */
#include <getopt.h>

#include "empty.h"

#define CALLS 500 /* in a block */
/* Of allocations: their stacks fit into the part of their ring that one process may fill. */
#define ALLOCS	   50
#define ROUNDS_MAX 2001
#define CPUS_MAX   4096

/*
 * OUTER: the functions of the driver are not probed, but their callers are. COPIED: the stack is
 * copied each time, as for code without frame pointers. CONFIRMED: it is copied once, as for code
 * whose tables show that it has frame pointers. PYTHON_3_11, PYTHON_3_12: as COPIED, with 32 Python
 * frames (3.13 has those of 3.12). NOT_PYTHON: as CONFIRMED, beside another process with Python.
 * NO_LEDGER: as ALL, but without the ledger of synchronous calls.
 */
enum way {
	BARE,
	EMPTY,
	ALL,
	PID,
	MISS,
	OUTER,
	COPIED,
	PYTHON_3_11,
	PYTHON_3_12,
	NOT_PYTHON,
	CONFIRMED,
	NO_LEDGER,
	PEER,
	WAYS
};
static const char *const way_names[WAYS] = { "no probe",      "empty programs",	 "every process",   "chosen process",
					     "other process", "no driver probe", "stack copied",    "Python 3.11",
					     "Python 3.12",   "beside Python",	 "stack confirmed", "no ledger",
					     "peer" };
#define LEDGER_GOAL 1.10 /* for a pair of calls with the ledger, against one without */
#define COPY_NS	    1000 /* the copy of 8 KiB of stack may add this much */
#define PYTHON_NS   5000 /* and 32 Python frames this much to it */

struct load {
	const char *name;
	const char *symbol[2]; /* functions of the empty programs */
	bool ret;	       /* a return probe too */
	unsigned int frames;
	void (*run)(const struct nothing *n, unsigned int frames);
	uint16_t kind; /* kind of the event that every call must produce; 0: none */
	double goal[WAYS];
};

static void run_async(const struct nothing *n, unsigned int frames)
{
	(void)frames;
	n->async(CALLS);
}

static void run_sync(const struct nothing *n, unsigned int frames)
{
	(void)frames;
	n->sync(CALLS);
}

static void run_launch(const struct nothing *n, unsigned int frames)
{
	(void)frames;
	n->launch(CALLS);
}

static void run_nested(const struct nothing *n, unsigned int frames)
{
	(void)frames;
	n->nested(CALLS);
}

static void run_alloc(const struct nothing *n, unsigned int frames)
{
	n->alloc(ALLOCS, frames);
}

#define ENTRY_GOALS                      \
	{                                \
		[ALL] = 1.2, [PID] = 1.4 \
	}
#define PAIR_GOALS                       \
	{                                \
		[ALL] = 1.5, [PID] = 1.5 \
	}
#define FRAME_NS 100 /* a stack frame may add this much */

static const struct load loads[] = {
	{ "asynchronous copy", { "cudaMemcpyAsync" }, false, 0, run_async, TTMON_EV_COPY, ENTRY_GOALS },
	{ "synchronous copy", { "cudaMemcpy" }, true, 0, run_sync, TTMON_EV_COPY, PAIR_GOALS },
	{ "launch", { "cudaLaunchKernel" }, false, 0, run_launch, 0, ENTRY_GOALS },
	{ "copy, runtime calls driver",
	  { "cudaMemcpyPeerAsync", "cuMemcpyPeerAsync" },
	  false,
	  0,
	  run_nested,
	  TTMON_EV_COPY,
	  ENTRY_GOALS },
	{ "allocation, 2 frames", { "cudaHostAlloc" }, true, 2, run_alloc, TTMON_EV_ALLOC, PAIR_GOALS },
	{ "allocation, 8 frames", { "cudaHostAlloc" }, true, 8, run_alloc, TTMON_EV_ALLOC, PAIR_GOALS },
	{ "allocation, 16 frames", { "cudaHostAlloc" }, true, 16, run_alloc, TTMON_EV_ALLOC, PAIR_GOALS },
};
#define NR_LOADS ARRAY_SIZE(loads)

static size_t calls_of(size_t load)
{
	return loads[load].run == run_alloc ? ALLOCS : CALLS;
}

struct contestant {
	enum way way;
	struct nothing lib;
	struct ttmon_bpf *bpf; /* ALL, PID, MISS */
	struct ttmon_probes probes;
	struct ttmon_ring stacks;		      /* COPIED to CONFIRMED */
	uint64_t copies[NR_LOADS], pythons[NR_LOADS]; /* pythons: of them, with all Python frames */
	uint64_t seen[NR_LOADS], frames[NR_LOADS];    /* events, and frames in them */
	size_t at;				      /* the load that is running */
};

static struct contestant contestants[WAYS];
static double took[NR_LOADS][WAYS][ROUNDS_MAX]; /* ns a call */
static unsigned long pause_ms = 20;

/* ---- the empty programs ---- */

/* Links stay until the process ends. */
static int set_up_empty(struct contestant *c)
{
	struct empty_bpf *skel = load_empty();
	struct ttmon_elf_info info;
	int err;

	if (!skel)
		return -EINVAL;
	err = ttmon_elf_read(c->lib.fd, "libnothing.so", NULL, 0, &info);
	if (err)
		return err;
	for (size_t i = 0; i < NR_LOADS && !err; i++) {
		/* Several loads of allocations use one function. */
		if (i && !strcmp(loads[i].symbol[0], loads[i - 1].symbol[0]))
			continue;
		for (size_t k = 0; k < 2 && loads[i].symbol[k] && !err; k++) {
			uint64_t offset = 0;

			err = offset_of(&info, loads[i].symbol[k], &offset);
			if (!err && (attach_empty(skel, c->lib.fd, offset, false) < 0 ||
				     (loads[i].ret && attach_empty(skel, c->lib.fd, offset, true) < 0)))
				err = -EINVAL;
		}
	}
	ttmon_elf_info_fini(&info);
	return err;
}

/* ---- ours ---- */

/* Only functions that a program calls directly. */
static int attach_outer(struct contestant *c)
{
	const struct ttmon_probes_opts opts = { 0 };
	struct ttmon_elf_info info;
	size_t kept = 0;
	int err = ttmon_elf_read(c->lib.fd, "libnothing.so", NULL, 0, &info);

	if (err)
		return err;
	for (size_t i = 0; i < info.nr_targets; i++)
		if (!strncmp(info.targets[i].symbol, "cuda", 4))
			info.targets[kept++] = info.targets[i];
	info.nr_targets = kept;
	err = ttmon_probes_attach(c->bpf, c->lib.fd, &info, &opts, &c->probes);
	ttmon_elf_info_fini(&info);
	return err;
}

/* ---- an interpreter that is none, with frames of this thread ---- */

/* The structs of CPython 3.11 and 3.12, by the offsets of daemon/io/objects/python.c. */
struct interpreter {
	struct ttmon_py_layout layout;
	uint64_t runtime[8], interp[16], thread[32], cframe[4];
	uint64_t frames[TTMON_PY_FRAMES + 1][12], code[TTMON_PY_FRAMES][32];
	uint64_t file[16], name[16], lines[64];
};

static void put_object(uint64_t *o, uint64_t len, uint64_t hash, size_t at, uint8_t c)
{
	o[2] = len;
	o[3] = hash;
	/* A string is compact, ASCII, of one byte a character; of bytes this is the beginning. */
	o[4] = 1 << 2 | 32 | 64;
	memset((char *)o + at, c, len);
}

static void put_frame(struct interpreter *in, size_t i, bool is_3_11)
{
	uint64_t *f = in->frames[i], code = i < TTMON_PY_FRAMES ? (uint64_t)in->code[i] : 0;
	/* The outermost one was entered from C: 3.11 has a mark, later versions a frame behind it. */
	bool last = i + 1 == TTMON_PY_FRAMES + (size_t)!is_3_11;
	uint64_t next = last ? 0 : (uint64_t)in->frames[i + 1];

	f[is_3_11 ? 4 : 0] = code;
	f[is_3_11 ? 6 : 1] = next;
	f[7] = code + in->layout.co_code + 8;
	f[8] = last ? is_3_11 ? 1ULL << 32 : 3ULL << 48 : 0;
}

static struct interpreter *new_interpreter(bool is_3_11)
{
	struct interpreter *in = calloc(1, sizeof(*in));

	if (!in)
		return NULL;
	in->layout = (struct ttmon_py_layout){
		.runtime = (uint64_t)in->runtime,
		.shape = is_3_11 ? TTMON_PY_3_11 : TTMON_PY_3_12,
		.interp_head = 40,
		.threads_head = 16,
		.ts_next = 8,
		.ts_thread = 152,
		.ts_frame = 56,
		.via_cframe = 1,
		.cframe_frame = is_3_11 ? 8 : 0,
		.co_firstlineno = is_3_11 ? 72 : 68,
		.co_code = 192,
		.text = is_3_11 ? 48 : 40,
		.text_other = is_3_11 ? 72 : 56,
	};
	in->runtime[5] = (uint64_t)in->interp;
	in->interp[2] = (uint64_t)in->thread;
	in->thread[19] = (uint64_t)__builtin_thread_pointer();
	in->thread[7] = (uint64_t)in->cframe;
	in->cframe[is_3_11 ? 1 : 0] = (uint64_t)in->frames[0];
	put_object(in->file, 20, 7, in->layout.text, 'f');
	put_object(in->name, 20, 8, in->layout.text, 'n');
	put_object(in->lines, 200, UINT64_MAX, 32, 0x80);
	for (size_t i = 0; i < TTMON_PY_FRAMES; i++) {
		in->code[i][14] = (uint64_t)in->file;
		in->code[i][16] = (uint64_t)in->name;
		in->code[i][17] = (uint64_t)in->lines;
		in->code[i][10] = i + 1; /* what differs from one function to the next */
	}
	for (size_t i = 0; i < TTMON_PY_FRAMES + 1; i++)
		put_frame(in, i, is_3_11);
	return in;
}

/* The interpreter stays until the process ends. */
static int set_python(struct contestant *c)
{
	struct interpreter *in;

	if (c->way != PYTHON_3_11 && c->way != PYTHON_3_12 && c->way != NOT_PYTHON)
		return 0;
	in = new_interpreter(c->way == PYTHON_3_11);
	return in ? ttmon_bpf_set_python(c->bpf, c->way == NOT_PYTHON ? 1 : (uint32_t)getpid(), &in->layout) : -ENOMEM;
}

static bool copies_stacks(enum way way)
{
	return way >= COPIED && way <= CONFIRMED;
}

static int set_up_ours(struct contestant *c)
{
	const struct ttmon_bpf_cfg cfg = { .all = c->way == ALL || c->way >= OUTER,
					   .stack_frames = 16,
					   .ring_bytes = 4 << 20 };
	char why[256];
	int err = ttmon_bpf_new(&cfg, &c->bpf, why, sizeof(why));

	if (err) {
		fprintf(stderr, "%s\n", why);
		return err;
	}
	if (c->way == NO_LEDGER)
		ttmon_bpf_set_gate(c->bpf, TTMON_FAMILY_WAIT, TTMON_FAMILY_OFF);
	if (c->way == PID) {
		err = ttmon_bpf_add_pid(c->bpf, (uint32_t)getpid(), false);
		if (err)
			return err;
	}
	err = c->way == OUTER ? attach_outer(c) : attach_object(c->bpf, c->lib.fd, "libnothing.so", &c->probes);
	if (err)
		fprintf(stderr, "cannot attach: %s\n", strerror(-err));
	if (!err && copies_stacks(c->way)) {
		err = ttmon_ring_map(&c->stacks, ttmon_bpf_stack_ring(c->bpf), TTMON_STACK_RING);
		ttmon_bpf_stacks(c->bpf, TTMON_STACKS_ON);
		err = err ? err : set_python(c);
	}
	ttmon_bpf_activate(c->bpf, true);
	return err;
}

static void count_copy(void *ctx, const void *rec, size_t size)
{
	const struct ttmon_stack_copy *s = rec;
	struct contestant *c = ctx;

	(void)size;
	/* A code object. */
	if (!s->id)
		return;
	c->copies[c->at]++;
	c->pythons[c->at] += s->py_state == TTMON_PY_OK && s->npy == TTMON_PY_FRAMES && s->py[0].print;
	if (c->way == CONFIRMED || c->way == NOT_PYTHON)
		ttmon_bpf_confirm_chain(c->bpf, s->chain);
}

static void count(void *ctx, const void *rec, size_t size)
{
	struct contestant *c = ctx;
	const struct ttmon_event *e = rec;

	(void)size;
	if (e->kind != loads[c->at].kind)
		return;
	c->seen[c->at]++;
	if (e->kind == TTMON_EV_ALLOC)
		c->frames[c->at] += ((const struct ttmon_ev_alloc *)rec)->nframes;
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
	if (c->stacks.data)
		ttmon_ring_drain(&c->stacks, ttmon_ring_producer(&c->stacks), count_copy, c);
}

/* ---- measuring ---- */

static double block(struct contestant *c, size_t load)
{
	uint64_t t0 = now_ns(), t1;

	loads[load].run(&c->lib, loads[load].frames);
	t1 = now_ns();
	drain(c, load);
	/* The peer's reader gets time to do its work before the next block. */
	if (c->way == PEER && pause_ms)
		sleep_ns(pause_ms * NSEC_PER_MS);
	return (double)(t1 - t0) / (double)calls_of(load);
}

static bool takes_part(enum way way, size_t load, bool peer)
{
	if (peer)
		return (way == BARE || way == ALL || way == PID || way == PEER) && load < 2;
	if (copies_stacks(way))
		return loads[load].run == run_alloc;
	if (way == NO_LEDGER)
		return loads[load].ret;
	return way != PEER && (way != OUTER || loads[load].run == run_nested);
}

/* The ratio of this way to the floor, over the rounds. */
static double ratio(size_t load, enum way way, enum way floor, size_t rounds)
{
	static double r[ROUNDS_MAX];

	for (size_t i = 0; i < rounds; i++)
		r[i] = took[load][way][i] / took[load][floor][i];
	return median(r, rounds);
}

static double typical(size_t load, enum way way, size_t rounds)
{
	static double v[ROUNDS_MAX];

	memcpy(v, took[load][way], rounds * sizeof(*v));
	return median(v, rounds);
}

/* For a difference of two times that other programs disturb, the minimum is the best estimate. */
static double least(size_t load, enum way way, size_t rounds)
{
	double v = took[load][way][0];

	for (size_t i = 1; i < rounds; i++)
		v = MIN(v, took[load][way][i]);
	return v;
}

static int check(size_t load, enum way way, size_t rounds)
{
	const struct contestant *c = &contestants[way];
	uint64_t calls = calls_of(load) * (rounds + 1);

	if (way == COPIED && takes_part(way, load, false) && c->copies[load] != calls) {
		fprintf(stderr, "bench_probe: %s: %llu of %llu stacks copied\n", loads[load].name,
			(unsigned long long)c->copies[load], (unsigned long long)calls);
		return -EIO;
	}
	if ((way == PYTHON_3_11 || way == PYTHON_3_12) && takes_part(way, load, false) && c->pythons[load] != calls) {
		fprintf(stderr, "bench_probe: %s, %s: %llu of %llu stacks with all frames of Python\n",
			loads[load].name, way_names[way], (unsigned long long)c->pythons[load],
			(unsigned long long)calls);
		return -EIO;
	}
	if ((way != ALL && way != PID && !copies_stacks(way)) || !takes_part(way, load, false) || !loads[load].kind ||
	    c->seen[load] == calls)
		return 0;
	fprintf(stderr, "bench_probe: %s, %s: %llu of %llu calls seen\n", loads[load].name, way_names[way],
		(unsigned long long)c->seen[load], (unsigned long long)calls);
	return -EIO;
}

static void report(size_t load, size_t rounds)
{
	double floor = typical(load, EMPTY, rounds);

	printf("%s: %s %.0f ns, empty programs %.0f ns%s\n", loads[load].name, way_names[BARE],
	       typical(load, BARE, rounds), floor, loads[load].ret ? " (entry and return)" : "");
	for (enum way way = ALL; way <= CONFIRMED; way++) {
		double goal = loads[load].goal[way], r = ratio(load, way, EMPTY, rounds);
		double frames = (double)contestants[way].frames[load] / ((double)calls_of(load) * (double)(rounds + 1));

		if (!takes_part(way, load, false))
			continue;

		printf("  %-15s %6.0f ns, ratio %.2f", way_names[way], typical(load, way, rounds), r);
		if (goal > 0) {
			goal += frames * FRAME_NS / floor;
			printf(" (goal %.2f%s)", goal, r > goal ? ", MISSED" : "");
		}
		if (copies_stacks(way)) {
			enum way below = way == PYTHON_3_11 || way == PYTHON_3_12 ? COPIED
					 : way == NOT_PYTHON			  ? CONFIRMED
										  : ALL;
			double more = least(load, way, rounds) - least(load, below, rounds);

			printf(", %.0f ns on top of the least of \"%s\"", more, way_names[below]);
			if (below == COPIED)
				printf(" (goal %d%s)", PYTHON_NS, more > PYTHON_NS ? ", MISSED" : "");
			if (way == COPIED)
				printf(" (goal %d%s)", COPY_NS, more > COPY_NS ? ", MISSED" : "");
		}
		if (frames > 0)
			printf(" %.0f frames", frames);
		printf("\n");
	}
	if (loads[load].ret) {
		double r = ratio(load, ALL, NO_LEDGER, rounds);

		printf("  with the ledger %.0f ns, without %.0f ns, ratio %.2f (goal %.2f%s); least %+.0f ns\n",
		       typical(load, ALL, rounds), typical(load, NO_LEDGER, rounds), r, LEDGER_GOAL,
		       r > LEDGER_GOAL ? ", MISSED" : "", least(load, ALL, rounds) - least(load, NO_LEDGER, rounds));
	}
}

static void report_peer(size_t load, size_t rounds)
{
	const double goal = loads[load].ret ? 0.25 : 0.15;

	printf("%s: peer %.0f ns\n", loads[load].name, typical(load, PEER, rounds));
	for (enum way way = ALL; way <= PID; way++) {
		double r = ratio(load, way, PEER, rounds);

		printf("  %-15s %6.0f ns, ratio %.2f (goal %.2f%s)\n", way_names[way], typical(load, way, rounds), r,
		       goal, r > goal ? ", MISSED" : "");
	}
}

static int set_up(const char *peer)
{
	for (enum way way = BARE; way < WAYS; way++) {
		struct contestant *c = &contestants[way];
		int err;

		c->way = way;
		if (way >= OUTER && way < PEER ? peer != NULL : !takes_part(way, 0, peer))
			continue;
		err = way == PEER ? nothing_open(peer, &c->lib) : nothing_copy(&c->lib);
		if (!err && way == EMPTY)
			err = set_up_empty(c);
		if (!err && way >= ALL && way < PEER)
			err = set_up_ours(c);
		if (err) {
			fprintf(stderr, "bench_probe: cannot set up %s: %s\n", way_names[way], strerror(-err));
			return err;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "rounds", required_argument, NULL, 'r' },
		{ "peer", required_argument, NULL, 'p' },
		{ "pause", required_argument, NULL, 'm' },
		{ 0 },
	};
	const char *peer = NULL;
	size_t rounds = 101;
	int opt, err = 0;

	while ((opt = getopt_long(argc, argv, "r:p:m:", options, NULL)) != -1) {
		if (opt == 'r')
			rounds = strtoul(optarg, NULL, 10);
		else if (opt == 'p')
			peer = optarg;
		else if (opt == 'm')
			pause_ms = strtoul(optarg, NULL, 10);
		else
			return 2;
	}
	if (rounds < 1 || rounds > ROUNDS_MAX) {
		fprintf(stderr, "bench_probe: --rounds 1 to %d\n", ROUNDS_MAX);
		return 2;
	}
	if (skipped("bench_probe"))
		return 0;
	pin((int)sysconf(_SC_NPROCESSORS_ONLN) - 1);
	if (set_up(peer))
		return 1;
	/* The first round is not counted. */
	for (size_t r = 0; r <= rounds; r++) {
		for (size_t load = 0; load < NR_LOADS; load++) {
			for (unsigned int i = 0; i < WAYS; i++) {
				enum way way = (enum way)((i + r) % WAYS);

				if (takes_part(way, load, peer))
					took[load][way][r ? r - 1 : 0] = block(&contestants[way], load);
			}
		}
	}
	for (size_t load = 0; load < NR_LOADS; load++) {
		if (!takes_part(BARE, load, peer))
			continue;
		if (peer)
			report_peer(load, rounds);
		else
			report(load, rounds);
		for (enum way way = ALL; way <= CONFIRMED; way++)
			err |= way == OUTER ? 0 : check(load, way, rounds);
	}
	for (enum way way = ALL; way <= CONFIRMED; way++) {
		if (way == OUTER || !contestants[way].bpf)
			continue;
		ttmon_ring_unmap(&contestants[way].stacks);
		ttmon_probes_detach(&contestants[way].probes);
		ttmon_bpf_free(contestants[way].bpf);
	}
	return err ? 1 : 0;
}
