// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_slot.c: the cost of a closed slot for the hot thread, with warm caches and with caches that
 * other programs have used.
 *
 * The load is that of a quiet service: rounds of 15 slots on two CPUs, each with a few switches, into
 * a segment in a folder in memory (or, with a recording as argument, its records and watermarks).
 * Warm: round after round. Cold: before each round more memory is written, and more code is run, than
 * the second-level cache holds, as the programs of a host do while the hot thread sleeps. The floor is
 * what must be written in any case: slot and rows, copied into a ring as large as the segment.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "daemon/core/stream/pipeline.h"
#include "daemon/io/files/rec.h"
#include "daemon/io/files/shm.h"

#define ROUND_SLOTS 15
#define ROUNDS	    3000
#define EVICT_BYTES (8u << 20)
#define CODE_BYTES  (4u << 20)
#define RING_BYTES  (4u << 20)
#define ENTRY_BYTES 32768u

/* The input: records, each preceded by its length; length 0: a watermark follows. */
struct tape {
	uint64_t *words;
	size_t n, cap;
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void put(struct tape *t, uint64_t len, const void *data, size_t size)
{
	size_t words = 1 + (size + 7) / 8;

	if (t->n + words > t->cap) {
		t->cap = (t->cap + words) * 2;
		t->words = realloc(t->words, t->cap * sizeof(*t->words));
		if (!t->words)
			abort();
	}
	t->words[t->n] = len;
	memcpy(&t->words[t->n + 1], data, size);
	t->n += words;
}

static void put_record(void *ctx, const void *rec, size_t size)
{
	put(ctx, size, rec, size);
}

static void put_advance(void *ctx, uint64_t watermark_ns)
{
	put(ctx, 0, &watermark_ns, sizeof(watermark_ns));
}

static int read_tape(struct tape *t, const char *path, uint32_t *nr_cpus)
{
	const struct ttmon_rec_sink sink = { put_record, put_advance, t };
	struct ttmon_rec_reader *r;
	uint64_t end_ns, dropped;
	int err = ttmon_rec_reader_open(path, &r);

	if (err)
		return err;
	*nr_cpus = ttmon_rec_reader_cpus(r);
	err = ttmon_rec_read(r, &sink, UINT64_MAX, &end_ns, &dropped);
	ttmon_rec_reader_free(r);
	return err;
}

/*
 * One of eight programs runs for 50 us, then the CPU is idle until the next one, which comes 3 ms
 * later.
 */
static void make_tape(struct tape *t)
{
	struct {
		struct ttmon_ev_cpu_slot s;
		struct ttmon_cpu_row row;
	} e = { 0 };
	uint64_t last[2] = { 1000 * TTMON_SLOT_NS, 1000 * TTMON_SLOT_NS };

	put_advance(t, 1000 * TTMON_SLOT_NS);
	for (uint64_t slot = 1000; slot < 1000 + ROUND_SLOTS * ROUNDS; slot++) {
		uint32_t cpu = slot & 1;

		if (slot % 3 == 2) {
			uint64_t at = slot * TTMON_SLOT_NS + 300000;

			memset(&e, 0, sizeof(e));
			e.s.h = (struct ttmon_event){ .ts_ns = at + 50000,
						      .kind = TTMON_EV_CPU_SLOT,
						      .cpu = (uint16_t)cpu };
			e.s.t.begin_ns = e.s.t.last_ns = last[cpu];
			e.s.t.to_ns = at;
			e.s.t.row_size = TTMON_CPU_ROW_SHORT;
			e.s.t.who.cls = TTMON_CPU_IDLE;
			e.s.t.switched = 1;
			put_record(t, &e.s, sizeof(e.s));
			e.s.t.begin_ns = e.s.t.last_ns = at;
			e.s.t.to_ns = last[cpu] = at + 50000;
			e.s.t.who.cls = TTMON_CPU_USER;
			e.s.t.who.tgid = 100 + (uint32_t)(slot / 3 % 8);
			e.s.t.who.start_ns = 1;
			put_record(t, &e.s, sizeof(e.s));
		}
		if ((slot + 1) % ROUND_SLOTS == 0)
			put_advance(t, (slot + 1) * TTMON_SLOT_NS);
	}
}

static bool publish(void *ctx, const struct ttmon_slot *slot, const struct ttmon_slot_row *rows, size_t n)
{
	ttmon_shm_publish(ctx, slot, rows, n);
	return true;
}

static uint8_t evict[EVICT_BYTES];
static void (*code)(void);

/*
 * A jump in each cache line to the next one; the last one returns. On other architectures than x86-64
 * instructions stay warm.
 */
static void make_code(void)
{
#ifdef __x86_64__
	uint8_t *p = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return;
	for (size_t i = 0; i < CODE_BYTES; i += 64) {
		p[i] = 0xeb;
		p[i + 1] = 62;
	}
	p[CODE_BYTES - 64] = 0xc3;
	memcpy(&code, &p, sizeof(p));
#endif
}

static void chill(void)
{
	if (code)
		code();
	for (size_t i = 0; i < sizeof(evict); i += 64)
		((volatile uint8_t *)evict)[i]++;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Returns the nanoseconds of the median round. */
static double play(const struct tape *t, struct ttmon_pipeline *p, bool cold)
{
	double *took = calloc(t->n, sizeof(*took)), median;
	uint64_t began = 0, spent = 0;
	size_t rounds = 0;

	if (!took)
		abort();
	for (size_t i = 0; i < t->n;) {
		uint64_t len = t->words[i];

		if (!spent && cold)
			chill();
		began = now_ns();
		if (len)
			ttmon_pipeline_feed(p, &t->words[i + 1], len);
		else
			ttmon_pipeline_advance(p, t->words[i + 1]);
		spent += MAX(now_ns() - began, 1u);
		if (!len) {
			took[rounds++] = (double)spent;
			spent = 0;
		}
		i += 1 + (len ? (len + 7) / 8 : 1);
	}
	qsort(took, rounds, sizeof(*took), by_value);
	median = took[rounds / 2];
	free(took);
	return median;
}

static double floor_ns(bool cold)
{
	static struct ttmon_slot_row rows[4];
	static double took[ROUNDS];
	uint8_t *ring = calloc(1, RING_BYTES);

	for (size_t i = 0; ring && i < ROUNDS; i++) {
		uint64_t began;

		if (cold)
			chill();
		began = now_ns();
		for (size_t k = 0; k < ROUND_SLOTS; k++) {
			uint8_t *to = ring + (i * ROUND_SLOTS + k) % (RING_BYTES / ENTRY_BYTES) * ENTRY_BYTES;

			memcpy(to, rows, sizeof(struct ttmon_slot));
			memcpy(to + sizeof(struct ttmon_slot), rows, 2 * sizeof(*rows));
			__asm__ volatile("" ::: "memory");
		}
		took[i] = (double)(now_ns() - began);
	}
	free(ring);
	qsort(took, ROUNDS, sizeof(*took), by_value);
	return took[ROUNDS / 2];
}

int main(int argc, char **argv)
{
	struct ttmon_shm_cfg shm_cfg = { .root = "/dev/shm/ttmon-bench-slot" };
	struct tape tape = { 0 };
	uint32_t nr_cpus = 2;
	char why[256];

	if (argc > 1 && read_tape(&tape, argv[1], &nr_cpus)) {
		fprintf(stderr, "bench_slot: cannot read %s\n", argv[1]);
		return 1;
	}
	if (argc <= 1)
		make_tape(&tape);
	make_code();
	mkdir(shm_cfg.root, 0700);
	for (int cold = 0; cold < 2; cold++) {
		struct ttmon_pipeline_cfg cfg = { .nr_cpus = nr_cpus };
		struct ttmon_pipeline *p = NULL;
		struct ttmon_shm *shm = NULL;
		double took, least;

		if (ttmon_shm_new(&shm_cfg, &shm, why, sizeof(why)) || ttmon_pipeline_new(&cfg, publish, shm, &p)) {
			fprintf(stderr, "bench_slot: %s\n", why);
			return 1;
		}
		took = play(&tape, p, cold);
		least = floor_ns(cold);
		printf("%s: %.0f ns a slot, copying it %.0f ns, ratio %.1f\n", cold ? "cold" : "warm",
		       took / ROUND_SLOTS, least / ROUND_SLOTS, took / least);
		ttmon_pipeline_free(p);
		ttmon_shm_free(shm);
	}
	rmdir(shm_cfg.root);
	free(tape.words);
	return 0;
}
