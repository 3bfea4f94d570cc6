// SPDX-License-Identifier: GPL-2.0-only
/*
 * ledger.c: a workload that keeps its own accounts. Threads mix every kind of call of the stand-in
 * runtime, pass allocations to one another and reuse addresses at once. At the end the program writes
 * its accounts to a JSON file, and tests/e2e/compare.py checks that ttmond's database agrees exactly.
 *
 *	ledger [--threads N] [--calls N] [--seed S] [--out FILE] [--wait] [--fail-async]
 *
 * --wait prints "ready PID" and waits for a line on stdin before the first call and for another before
 * it ends. The buffers of ordinary memory are mapped before, so that a tracer without mmap tracing can
 * know them when it begins. --fail-async lets asynchronous copies fail too (a tracer sees that only
 * with --copy-results).
 *
 * The accounts are exact because a copy is inside one allocation that its thread owns at that time; an
 * allocation is passed on under a lock; and the order number is taken after the call has returned and
 * before any thread can free. The peak of pinned pages is exact because at the end, with no other
 * thread left, the program pins more than can ever have been pinned before.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ledger.h"

struct options opt = { .threads = 8, .calls = 200000, .seed = 1 };
atomic_uint_fast64_t order;
atomic_long calls_left;
static atomic_int_fast64_t bound, bound_max; /* upper bound of the pages that may be pinned at this moment */
static struct thread *threads;

uint32_t rnd(struct thread *t, uint32_t n)
{
	t->rng ^= t->rng << 13;
	t->rng ^= t->rng >> 7;
	t->rng ^= t->rng << 17;
	return n ? (uint32_t)((t->rng >> 20) % n) : 0;
}

bool counted(struct thread *t, enum fn fn, int err)
{
	struct count *c = &t->counts[fn];
	size_t i;

	atomic_fetch_sub(&calls_left, 1);
	for (i = 0; i < c->n && c->err[i] != err; i++)
		;
	if (i == MAX_ERRS) {
		fprintf(stderr, "ledger: too many kinds of errors\n");
		exit(2);
	}
	if (i == c->n)
		c->err[c->n++] = err;
	c->calls[i]++;
	return !err;
}

bool pinned(enum method m)
{
	return m == M_HOST || m == M_REGISTERED || m == M_POOL;
}

uint64_t pages_of(uint64_t addr, uint64_t size)
{
	return (addr + size - 1) / 4096 - addr / 4096 + 1;
}

/*
 * Before a pin call: adds the pages that it may pin. The true peak is at most the peak of this sum.
 */
void bound_add(int64_t pages)
{
	int64_t now = atomic_fetch_add(&bound, pages) + pages, max = atomic_load(&bound_max);

	while (pages > 0 && now > max && !atomic_compare_exchange_weak(&bound_max, &max, now))
		;
}

struct rec *rec_new(struct thread *t, enum fn fn, enum method m, void *addr, uint64_t size)
{
	struct rec *r = calloc(1, sizeof(*r));

	if (!r) {
		perror("ledger");
		exit(2);
	}
	*r = (struct rec){ .addr = (uintptr_t)addr, .size = size, .fn = fn, .method = m, .device = t->device };
	r->order = atomic_fetch_add(&order, 1);
	r->next = t->recs;
	t->recs = r;
	t->allocs++;
	return r;
}

static void side(struct thread *t, struct rec *r, enum dir dir, uint64_t bytes)
{
	struct pair *p = r ? &r->moved[dir] : &t->pageable_moved[dir];

	p->copies++;
	p->bytes += bytes;
}

void moved(struct thread *t, struct rec *dst, struct rec *src, enum dir dir, uint64_t bytes)
{
	struct rec *host = dir == DIR_D2H || dir == DIR_H2H ? dst : src;
	enum mem mem = !host ? MEM_PAGEABLE : host->method == M_MANAGED ? MEM_MANAGED : MEM_PINNED;
	struct pair *p = &t->moved[dir][dir == DIR_D2D ? MEM_NONE : mem];

	p->copies++;
	p->bytes += bytes;
	if (dst != SYMBOL)
		side(t, dst, dir, bytes);
	if (src != SYMBOL)
		side(t, src, dir, bytes);
}

/* ---- life of a thread ---- */
static void hand_over(struct thread *t)
{
	struct thread *to = &threads[rnd(t, (uint32_t)opt.threads)];
	struct own *o = rnd(t, 2) ? &t->host : &t->dev;
	struct rec *r;

	if (!o->n || to == t)
		return;
	r = o->recs[--o->n];
	pthread_mutex_lock(&to->lock);
	if (to->nr_mail < MAX_MAIL) {
		to->mail[to->nr_mail++] = r;
		r = NULL;
	}
	pthread_mutex_unlock(&to->lock);
	if (r)
		o->recs[o->n++] = r;
}

static void take_mail(struct thread *t)
{
	pthread_mutex_lock(&t->lock);
	while (t->nr_mail) {
		struct rec *r = t->mail[t->nr_mail - 1];
		struct own *o = r->method == M_DEVICE ? &t->dev : &t->host;

		if (o->n == MAX_OWN)
			break;
		o->recs[o->n++] = r;
		t->nr_mail--;
	}
	pthread_mutex_unlock(&t->lock);
}

static void *work(void *arg)
{
	struct thread *t = arg;

	if (ledger_start(t))
		exit(2);
	while (atomic_load(&calls_left) > 0) {
		uint32_t dice = rnd(t, 100);

		if (dice < 18)
			ledger_alloc(t);
		else if (dice < 36)
			ledger_free(t);
		else if (dice < 92)
			ledger_copy(t);
		else if (dice < 97)
			ledger_other(t);
		else
			hand_over(t);
		if (!rnd(t, 8))
			take_mail(t);
	}
	return NULL;
}

/* ---- the accounts ---- */
static const char *const fn_names[] = {
#define F(name) #name,
	LEDGER_FUNCTIONS(F)
#undef F
};
static const char *const method_names[] = { "host_alloc", "registered", "managed", "pool", "device" };
static const char *const dir_names[] = { "h2h", "h2d", "d2h", "d2d" };
static const char *const mem_names[] = { "pinned", "pageable", "managed", "none" };

static void print_moved(FILE *f, const struct pair *moved)
{
	for (int d = 0; d < DIRS; d++)
		if (moved[d].copies)
			fprintf(f, ",\"%s\":[%lu,%lu]", dir_names[d], moved[d].copies, moved[d].bytes);
}

static void print_calls(FILE *f)
{
	const char *comma = "";

	fprintf(f, "\"calls\":{");
	for (int fn = 0; fn < FN_MAX; fn++) {
		struct count sum = { 0 };

		for (int i = 0; i <= opt.threads; i++) {
			struct count *c = &threads[i].counts[fn];

			for (size_t k = 0; k < c->n; k++) {
				size_t j;

				for (j = 0; j < sum.n && sum.err[j] != c->err[k]; j++)
					;
				if (j == sum.n)
					sum.err[sum.n++] = c->err[k];
				sum.calls[j] += c->calls[k];
			}
		}
		if (!sum.n)
			continue;
		fprintf(f, "%s\n\"%s\":{", comma, fn_names[fn]);
		for (size_t j = 0; j < sum.n; j++)
			fprintf(f, "%s\"%d\":%lu", j ? "," : "", sum.err[j], sum.calls[j]);
		fprintf(f, "}");
		comma = ",";
	}
	fprintf(f, "},\n");
}

static void print_sums(FILE *f)
{
	struct pair sum[DIRS][MEMS] = { 0 }, pageable[DIRS] = { 0 };

	for (int i = 0; i <= opt.threads; i++)
		for (int d = 0; d < DIRS; d++) {
			for (int m = 0; m < MEMS; m++) {
				sum[d][m].copies += threads[i].moved[d][m].copies;
				sum[d][m].bytes += threads[i].moved[d][m].bytes;
			}
			pageable[d].copies += threads[i].pageable_moved[d].copies;
			pageable[d].bytes += threads[i].pageable_moved[d].bytes;
		}
	fprintf(f, "\"pageable\":{\"x\":0");
	print_moved(f, pageable);
	fprintf(f, "},\n\"transfers\":{");
	for (int d = 0; d < DIRS; d++) {
		fprintf(f, "%s\n\"%s\":{", d ? "," : "", dir_names[d]);
		for (int m = 0; m < MEMS; m++)
			fprintf(f, "%s\"%s\":[%lu,%lu]", m ? "," : "", mem_names[m], sum[d][m].copies, sum[d][m].bytes);
		fprintf(f, "}");
	}
	fprintf(f, "},\n");
}

static int print_books(const char *path)
{
	uint64_t pins = 0, live_pages = 0, live_bytes = 0, allocs = 0, frees = 0, kernels = 0;
	FILE *f = path ? fopen(path, "we") : stdout;
	const char *comma = "";

	if (!f) {
		perror(path);
		return 1;
	}
	fprintf(f, "{\"pid\":%d,\"threads\":%d,\n", getpid(), opt.threads);
	print_calls(f);
	print_sums(f);
	fprintf(f, "\"allocations\":[");
	for (int i = 0; i <= opt.threads; i++) {
		for (struct rec *r = threads[i].recs; r; r = r->next) {
			fprintf(f,
				"%s\n{\"addr\":\"0x%lx\",\"size\":%lu,\"method\":\"%s\",\"fn\":\"%s\",\"order\":%lu,"
				"\"device\":%d,\"freed\":%s",
				comma, r->addr, r->size, method_names[r->method], fn_names[r->fn], r->order, r->device,
				r->freed ? "true" : "false");
			print_moved(f, r->moved);
			fprintf(f, "}");
			comma = ",";
			if (!pinned(r->method))
				continue;
			pins++;
			live_pages += r->freed ? 0 : pages_of(r->addr, r->size);
			live_bytes += r->freed ? 0 : r->size;
		}
		allocs += threads[i].allocs;
		frees += threads[i].frees;
		kernels += threads[i].kernels;
	}
	fprintf(f,
		"],\n\"allocs\":%lu,\"frees\":%lu,\"kernels\":%lu,\"pins\":%lu,\"live_pages\":%lu,\"live_bytes\":%lu,",
		allocs, frees, kernels, pins, live_pages, live_bytes);
	/* Nothing was freed since the last pin, which exceeded all earlier peaks. */
	fprintf(f, "\"peak_pages\":%lu}\n", live_pages);
	if (fflush(f) || ferror(f)) {
		perror(path ? path : "stdout");
		return 1;
	}
	if (path)
		fclose(f);
	return 0;
}

/* No other thread is left: pins more than was ever pinned. */
static void pin_peak(struct thread *t)
{
	uint64_t size = (uint64_t)(atomic_load(&bound_max) + 16) * 4096;
	void *p = NULL;

	if (counted(t, FN_cudaHostAlloc, cudaHostAlloc(&p, size, cudaHostAllocDefault)))
		rec_new(t, FN_cudaHostAlloc, M_HOST, p, size);
}

static void wait_line(bool wait)
{
	char line[16];

	if (wait && !fgets(line, sizeof(line), stdin))
		exit(3);
}

int main(int argc, char **argv)
{
	static const struct option longs[] = { { "threads", 1, NULL, 't' }, { "calls", 1, NULL, 'c' },
					       { "seed", 1, NULL, 's' },    { "out", 1, NULL, 'o' },
					       { "wait", 0, NULL, 'w' },    { "fail-async", 0, NULL, 'a' },
					       { NULL, 0, NULL, 0 } };
	struct thread *last;
	int c;

	while ((c = getopt_long(argc, argv, "t:c:s:o:wa", longs, NULL)) != -1) {
		switch (c) {
		case 't':
			opt.threads = atoi(optarg);
			break;
		case 'c':
			opt.calls = atol(optarg);
			break;
		case 's':
			opt.seed = strtoull(optarg, NULL, 0);
			break;
		case 'o':
			opt.out = optarg;
			break;
		case 'w':
			opt.wait = true;
			break;
		case 'a':
			opt.fail_async = true;
			break;
		default:
			return 2;
		}
	}
	threads = calloc((size_t)opt.threads + 1, sizeof(*threads));
	if (!threads || opt.threads < 1)
		return 2;
	for (int i = 0; i < opt.threads; i++)
		if (ledger_buffer(&threads[i]))
			return 2;
	if (opt.wait) {
		printf("ready %d\n", getpid());
		fflush(stdout);
	}
	wait_line(opt.wait);
	atomic_store(&calls_left, opt.calls);
	for (int i = 0; i <= opt.threads; i++) {
		threads[i].rng = (opt.seed + 1) * 0x9e3779b97f4a7c15ull + (uint64_t)i * 0xbf58476d1ce4e5b9ull;
		threads[i].device = -1;
		threads[i].idx = i;
		pthread_mutex_init(&threads[i].lock, NULL);
		if (i < opt.threads && pthread_create(&threads[i].thread, NULL, work, &threads[i]))
			return 2;
	}
	for (int i = 0; i < opt.threads; i++)
		pthread_join(threads[i].thread, NULL);
	last = &threads[opt.threads];
	pin_peak(last);
	if (print_books(opt.out))
		return 1;
	if (opt.wait) {
		printf("done\n");
		fflush(stdout);
	}
	wait_line(opt.wait);
	return 0;
}
