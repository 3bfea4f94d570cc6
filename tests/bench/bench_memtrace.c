// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_memtrace.c: GPU memory traces. It measures the computation of the costs of requests, against a
 * loop that only reads the records; the analysis of NVBit's text, against a search for the ends of its
 * lines, and beside a loop that prints such lines as NVBit's tool does; the analysis of a file in
 * ttmon's format, against a loop over its records; the size of a record in that file; and memory over
 * a long trace. The traces are generated: 2048 warps at a time, in any order, as on a GPU of some
 * size. Time is CPU time, since other programs run too; figures are medians of interleaved rounds.
 */
#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>

#include "memtrace/analyse/an.h"
#include "memtrace/read/in.h"
#include "memtrace/stream/stream.h"
#include "lib/base/util.h"

#define RECORDS	 1000000u /* one-time setup is not part of the figures */
#define LISTED	 200000u  /* number for traces with lists of addresses, and for slow analyses */
#define RESIDENT 2048u
#define ROUNDS	 3

static uint64_t seed = 88172645463325252;
static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void die(const char *what)
{
	fprintf(stderr, "bench_memtrace: %s\n", what);
	exit(1);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double median(double *x, unsigned int n)
{
	qsort(x, n, sizeof(*x), ascending);
	return x[n / 2];
}

/* ---- traces ---- */

struct trace {
	const char *name;
	struct ttmon_mt_dictw dict;
	struct ttmon_mt_rec *recs;
	uint64_t (*addr)[TTMON_MT_LANES];
	size_t n, nr_text; /* number of records; how many of them are in the text */
	uint64_t text;	   /* bytes of the text as NVBit prints it */
	char path[64], own[64];
};

/* Access number nr of warp w: what it does, and where. The last one of a warp has `last` set. */
struct access {
	uint64_t base;
	int64_t stride;
	uint64_t *list; /* set: fill it */
	bool store, last;
};

#define A 0x710c00000000
#define B 0x710d00000000
#define C 0x710e00000000

static void vecadd(uint64_t w, unsigned int nr, struct access *a)
{
	a->base = (nr == 0 ? A : nr == 1 ? B : C) + 128 * w;
	a->store = a->last = nr == 2;
}

static void transpose(uint64_t w, unsigned int nr, struct access *a)
{
	uint64_t row = w / 128, col = w % 128; /* 4096 columns */

	a->base = nr ? B + (col * 32 * 4096 + row) * 4 : A + (row * 4096 + col * 32) * 4;
	a->stride = nr ? 4096 * 4 : 4;
	a->store = a->last = nr;
}

static void stencil(uint64_t w, unsigned int nr, struct access *a)
{
	static const int64_t at[] = { 0, -4, 4, -16384, 16384 };

	a->base = nr < 5 ? A + 16384 + 128 * w + (uint64_t)at[nr] : B + 16384 + 128 * w;
	a->store = a->last = nr == 5;
}

static void gather(uint64_t w, unsigned int nr, struct access *a)
{
	a->base = (nr ? C : A) + 128 * w;
	a->store = a->last = nr == 2;
	for (unsigned int i = 0; nr == 1 && i < TTMON_MT_LANES; i++)
		a->list[i] = B + rnd() % (1u << 26) * 4;
	if (nr == 1)
		a->base = a->list[0];
	else
		a->list = NULL;
}

static void make(struct trace *t, const char *name, void (*fn)(uint64_t, unsigned int, struct access *),
		 unsigned int accesses, size_t n)
{
	struct ttmon_mt_launch launch = {
		.ctx = 0x6403c12bdf10, .kernel = name, .grid = { 1u << 20, 1, 1 }, .block = { 256, 1, 1 }
	};
	static struct {
		uint64_t warp;
		unsigned int nr;
	} resident[RESIDENT];
	uint64_t next = RESIDENT;

	t->name = name;
	t->n = n;
	t->nr_text = MIN(n, LISTED);
	t->recs = calloc(n, sizeof(*t->recs));
	t->addr = calloc(n == LISTED ? n : 1, sizeof(*t->addr));
	if (!t->recs || !t->addr || ttmon_mt_dict_launch(&t->dict, &launch) < 0)
		die("no memory");
	for (unsigned int i = 0; i < accesses; i++) {
		struct ttmon_mt_site site = { .kernel = name,
					      .opcode = "LDG.E",
					      .file = "",
					      .module = "",
					      .pc = 16 * i,
					      .space = TTMON_MT_GLOBAL,
					      .width = 4 };

		if (i == accesses - 1) {
			site.opcode = "STG.E";
			site.kind = TTMON_MT_STORE;
		}
		if (ttmon_mt_dict_site(&t->dict, &site) < 0)
			die("no memory");
	}
	for (unsigned int i = 0; i < RESIDENT; i++) {
		resident[i].warp = i;
		resident[i].nr = 0;
	}
	for (size_t i = 0; i < n; i++) {
		unsigned int k = (unsigned int)(rnd() % RESIDENT);
		struct access a = { .stride = 4, .list = n == LISTED ? t->addr[i] : NULL };

		fn(resident[k].warp, resident[k].nr, &a);
		t->recs[i] = (struct ttmon_mt_rec){ .base = a.base,
						    .stride = a.list ? 0 : a.stride,
						    .addr = a.list,
						    .seq = i,
						    .mask = UINT32_MAX,
						    .site = resident[k].nr,
						    .cta = { (uint32_t)(resident[k].warp / 8), 0, 0 },
						    .warp = (uint16_t)(resident[k].warp % 8),
						    .sm = TTMON_MT_NO_SM,
						    .space = TTMON_MT_GLOBAL,
						    .width = 4 };
		resident[k].nr++;
		if (a.last) {
			resident[k].nr = 0;
			resident[k].warp = next++;
		}
	}
}

/* Prints as NVBit 1.7 does, each list through a buffer, as its string stream does. */
static uint64_t print(const struct trace *t, size_t n, FILE *f)
{
	uint64_t bytes = 0;
	char line[1024];

	for (size_t i = 0; i < n; i++) {
		const struct ttmon_mt_rec *r = &t->recs[i];
		int at = snprintf(line, sizeof(line),
				  "MEMTRACE: CTX 0x%016lx - grid_launch_id %lu - CTA %u,%u,%u - warp %u - %s - ",
				  (unsigned long)t->dict.dict.launches[0].ctx, 0UL, r->cta[0], r->cta[1], r->cta[2],
				  r->warp, t->dict.dict.sites[r->site].opcode);

		for (unsigned int k = 0; k < TTMON_MT_LANES; k++)
			at += snprintf(line + at, sizeof(line) - (size_t)at, "0x%016lx ",
				       (unsigned long)(r->addr ? r->addr[k] : r->base + (uint64_t)r->stride * k));
		bytes += (uint64_t)fprintf(f, "%s\n", line);
	}
	return bytes;
}

static void write_text(struct trace *t)
{
	FILE *f;

	snprintf(t->path, sizeof(t->path), "/dev/shm/ttmon-bench-%d-%s.txt", getpid(), t->name);
	f = fopen(t->path, "we");
	if (!f)
		die(t->path);
	t->text = (uint64_t)fprintf(
		f,
		"------------- NVBit (NVidia Binary Instrumentation Tool v1.7.6) Loaded --------------\n"
		"MEMTRACE: CTX 0x%016lx - LAUNCH - Kernel pc 0x00007f3c2fa00000 - Kernel name %s(float const*, int) - "
		"grid launch id 0 - grid size "
		"1048576,1,1 - block size 256,1,1 - nregs 16 - shmem 0 - cuda stream id 0\n",
		(unsigned long)t->dict.dict.launches[0].ctx, t->name);
	t->text += print(t, t->nr_text, f);
	if (fclose(f))
		die(t->path);
}

static void write_own(struct trace *t, bool order)
{
	struct ttmon_mt_stats stats = { .produced = t->n };
	struct ttmon_mt_out_opts opts = { .order = order };
	struct ttmon_mt_out *out;
	int fd;

	snprintf(t->own, sizeof(t->own), "/dev/shm/ttmon-bench-%d-%s.ttmt", getpid(), t->name);
	fd = open(t->own, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 || ttmon_mt_out_new(fd, &opts, &out) || ttmon_mt_out_put(out, &t->dict.dict, t->recs, t->n) ||
	    ttmon_mt_out_end(out, &t->dict.dict, &stats))
		die(t->own);
	ttmon_mt_out_free(out);
	close(fd);
}

/* ---- what is measured ---- */

static uint64_t sink;

/* The floor of everything that works on records. */
static void only_read(const struct trace *t)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct ttmon_mt_rec *r = &t->recs[i];

		sink += r->base + (uint64_t)r->stride + r->mask + r->site + r->cta[0] + r->warp;
		if (r->addr)
			for (unsigned int k = 0; k < TTMON_MT_LANES; k++)
				sink += r->addr[k];
	}
}

static void shapes(const struct trace *t)
{
	struct ttmon_mt_shape s;

	for (size_t i = 0; i < t->n; i++) {
		ttmon_mt_get_shape(&t->recs[i], TTMON_MT_LOAD, &s);
		sink += s.sectors;
	}
}

static void reuse_of(const struct trace *t, size_t n, bool exact)
{
	struct ttmon_mt_reuse_set *r;
	struct ttmon_mt_shape s;

	if (ttmon_mt_reuse_new(exact, 0, &r))
		die("no memory");
	for (size_t i = 0; i < n; i++) {
		ttmon_mt_get_shape(&t->recs[i], TTMON_MT_LOAD, &s);
		for (unsigned int k = 0; k < s.nr_runs; k++)
			ttmon_mt_reuse_touch(r, s.runs[k].sector, s.runs[k].n);
	}
	ttmon_mt_reuse_free(r);
}

static void reuse_sampled(const struct trace *t)
{
	reuse_of(t, t->n, false);
}

static void reuse_exact(const struct trace *t)
{
	reuse_of(t, t->nr_text, true);
}

static void sectors(const struct trace *t)
{
	struct ttmon_mt_sectors *set;
	struct ttmon_mt_shape s;

	if (ttmon_mt_sectors_new(1 << 18, &set))
		die("no memory");
	for (size_t i = 0; i < t->n; i++) {
		ttmon_mt_get_shape(&t->recs[i], TTMON_MT_LOAD, &s);
		for (unsigned int k = 0; k < s.nr_runs; k++)
			ttmon_mt_sectors_add(set, s.runs[k].sector, s.runs[k].n);
	}
	ttmon_mt_sectors_free(set);
}

static void analyse(const struct trace *t)
{
	struct ttmon_mt_an *an;

	if (ttmon_mt_an_new(NULL, &an))
		die("no memory");
	for (size_t i = 0; i < t->n; i += TTMON_MT_BATCH)
		if (ttmon_mt_an_feed(an, &t->dict.dict, t->recs + i, MIN(TTMON_MT_BATCH, t->n - i)))
			die("feed");
	if (ttmon_mt_an_settle(an, &t->dict.dict))
		die("settle");
	ttmon_mt_an_free(an);
}

static void read_file(const char *path, size_t want, bool all)
{
	struct ttmon_mt_an *an = NULL;
	struct ttmon_mt_in *in;
	char why[256];
	const struct ttmon_mt_rec *recs;
	size_t n, sum = 0;
	int err;

	if (ttmon_mt_in_open(path, NULL, &in, why, sizeof(why)))
		die(why);
	if (all && ttmon_mt_an_new(NULL, &an))
		die("no memory");
	while ((err = ttmon_mt_in_next(in, &recs, &n, why, sizeof(why))) > 0) {
		if (all && ttmon_mt_an_feed(an, ttmon_mt_in_dict(in), recs, n))
			die("feed");
		sum += n;
	}
	if (err)
		die(why);
	if (all && ttmon_mt_an_settle(an, ttmon_mt_in_dict(in)))
		die("settle");
	if (sum != want)
		die("records are missing");
	ttmon_mt_an_free(an);
	ttmon_mt_in_free(in);
}

static void text_read(const struct trace *t)
{
	read_file(t->path, t->nr_text, false);
}

static void text_all(const struct trace *t)
{
	read_file(t->path, t->nr_text, true);
}

static void own_read(const struct trace *t)
{
	read_file(t->own, t->n, false);
}

static void own_all(const struct trace *t)
{
	read_file(t->own, t->n, true);
}

/* The floor of everything that reads text: finding the ends of its lines. */
static void lines(const struct trace *t)
{
	static char buf[1 << 20];
	int fd = open(t->path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		die(t->path);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		for (char *p = buf, *end = buf + n; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
			sink++;
	close(fd);
}

static void formatter(const struct trace *t)
{
	FILE *f = fopen("/dev/null", "we");

	if (!f)
		die("/dev/null");
	sink += print(t, t->nr_text, f);
	fclose(f);
}

struct step {
	const char *what;
	void (*fn)(const struct trace *t);
	double goal; /* millions of records per second; 0: none */
	bool few;    /* only the records that are in the text */
	bool text;   /* GB/s too, with a goal of 1 */
};

static void measure(const struct trace *t, const struct step *steps, unsigned int n)
{
	double took[16][ROUNDS], floor;

	for (unsigned int r = 0; r < ROUNDS; r++)
		for (unsigned int i = 0; i < n; i++) {
			double start = now();

			steps[i].fn(t);
			took[i][r] = now() - start;
		}
	floor = median(took[0], ROUNDS) / (double)(steps[0].few ? t->nr_text : t->n);
	for (unsigned int i = 0; i < n; i++) {
		double nr = (double)(steps[i].few ? t->nr_text : t->n), s = median(took[i], ROUNDS),
		       rate = nr / s / 1e6, gb = (double)t->text / s / 1e9;

		printf("  %-10s %-36s %8.1f ns a record %7.1f M/s %8.1f x", t->name, steps[i].what, s / nr * 1e9, rate,
		       s / nr / floor);
		if (steps[i].text)
			printf(" %6.2f GB/s", gb);
		if (steps[i].goal > 0)
			printf("  goal %.0f M/s%s%s", steps[i].goal, steps[i].text ? ", 1 GB/s" : "",
			       rate < steps[i].goal || (steps[i].text && gb < 1) ? ": MISSED" : "");
		printf("\n");
	}
}

/* Peak memory of this process, MiB. */
static double peak(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return (double)ru.ru_maxrss / 1024;
}

/* The same text again and again, as through a pipe: memory after a tenth of it and after all. */
static void flat(const struct trace *t)
{
	struct ttmon_mt_an *an;
	double early = 0;

	if (ttmon_mt_an_new(NULL, &an))
		die("no memory");
	for (unsigned int k = 0; k < 30; k++) {
		struct ttmon_mt_in *in;
		const struct ttmon_mt_rec *recs;
		char why[256];
		size_t n;

		if (ttmon_mt_in_open(t->path, NULL, &in, why, sizeof(why)))
			die(why);
		while (ttmon_mt_in_next(in, &recs, &n, why, sizeof(why)) > 0)
			if (ttmon_mt_an_feed(an, ttmon_mt_in_dict(in), recs, n))
				die("feed");
		ttmon_mt_in_free(in);
		if (k == 2)
			early = peak();
	}
	printf("  %-10s %.1f GB of text: peak memory %.1f MiB after a tenth, %.1f MiB after all\n", t->name,
	       30 * (double)t->text / 1e9, early, peak());
	ttmon_mt_an_free(an);
}

static uint64_t size_of(const char *path)
{
	struct ttmon_mt_in *in;
	char why[256];
	uint64_t at, size;

	if (ttmon_mt_in_open(path, NULL, &in, why, sizeof(why)))
		die(why);
	size = ttmon_mt_in_size(in, &at);
	ttmon_mt_in_free(in);
	return size;
}

int main(void)
{
	static const struct {
		const char *name;
		void (*fn)(uint64_t w, unsigned int nr, struct access *a);
		unsigned int accesses;
		size_t records;
	} kernels[] = {
		{ "vecadd", vecadd, 3, RECORDS },
		{ "transpose", transpose, 2, RECORDS / 2 },
		{ "stencil", stencil, 6, RECORDS },
		{ "gather", gather, 3, LISTED },
	};
	static const struct step on_records[] = {
		{ .what = "floor: reading the records", .fn = only_read },
		{ .what = "shape", .fn = shapes },
		{ .what = "shape, sampled reuse", .fn = reuse_sampled },
		{ .what = "shape, exact reuse", .fn = reuse_exact, .few = true },
		{ .what = "shape, distinct sectors", .fn = sectors },
		{ .what = "all analyses", .fn = analyse },
		{ .what = "own stream", .fn = own_read },
		{ .what = "own stream, all analyses", .fn = own_all, .goal = 20 },
	};
	static const struct step on_text[] = {
		{ .what = "floor: ends of lines", .fn = lines, .few = true, .text = true },
		{ .what = "text", .fn = text_read, .few = true, .text = true },
		{ .what = "text, all analyses", .fn = text_all, .goal = 2, .few = true, .text = true },
		{ .what = "for scale: a formatter as the note's", .fn = formatter, .few = true, .text = true },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(kernels); i++) {
		struct trace trace = { .name = kernels[i].name }, *t = &trace;
		uint64_t plain, order;
		double per_line;

		make(t, kernels[i].name, kernels[i].fn, kernels[i].accesses, kernels[i].records);
		write_text(t);
		per_line = (double)t->text / (double)t->nr_text;
		write_own(t, true);
		order = size_of(t->own);
		write_own(t, false);
		plain = size_of(t->own);
		measure(t, on_records, ARRAY_SIZE(on_records));
		measure(t, on_text, ARRAY_SIZE(on_text) - !!i);
		printf("  %-10s own stream: %.2f bytes a record, %.2f %% of the text%s; with the order of arrival "
		       "%.2f, %.2f %%\n",
		       t->name, (double)plain / (double)t->n, 100 * (double)plain / (double)t->n / per_line,
		       i < 3 && (double)plain * 100 >= per_line * (double)t->n ? " MISSED" : "",
		       (double)order / (double)t->n, 100 * (double)order / (double)t->n / per_line);
		if (!i)
			flat(t);
		unlink(t->path);
		unlink(t->own);
		free(t->recs);
		free(t->addr);
		ttmon_mt_dict_fini(&t->dict);
	}
	printf("  (%llu)\n", (unsigned long long)(sink & 1));
	return 0;
}
