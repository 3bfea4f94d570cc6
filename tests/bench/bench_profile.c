// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_profile.c: reading a database of 100,000 allocations from 10,000 call sites into tables
 * (against reading the same bytes), making a profile of the tables, and look-ups in it (against one
 * look-up in a hash table with as many keys). Keys are looked up in random order, since an allocator's
 * caches would be cold. Time is CPU time, since other programs run too; figures are medians of 5
 * interleaved rounds.
 *
 * bench_profile --gb N: instead, one database of N GB in /var/tmp, most of it events. It is read into
 * tables and a profile as `ttmon advise` does it (lib/read/run.h without a consumer of events), in a
 * process of its own, whose memory is reported too. Before and after it the same bytes are read
 * without parsing.
 */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <zlib.h>

#include "lib/base/hmap.h"
#include "lib/pin/profile.h"

#define SITES	   10000u
#define ALLOCS	   100000u
#define LOOKUPS	   1000000u
#define ROUNDS	   5
#define BIG_EVENTS 2000u /* number for each allocation in the database of N GB: 67 kB of text */

enum { LOAD, RAW, LOAD_GZ, RAW_GZ, MAKE, FOUND, DEMOTED, MISSED, FLOOR, FIGURES };

static char dir[] = "/tmp/ttmon-bench-profile-XXXXXX";
static char plain[64], gz[64];
static size_t bytes;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void die(const char *what)
{
	fprintf(stderr, "bench_profile: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* Up to the allocations. */
static void write_head(gzFile f)
{
	gzprintf(f, "{\"schema\":\"ttmon-db\",\"version\":1,\"capture\":{\"start_ns\":\"1\",\"end_ns\":\"900000000\"},"
		    "\"completeness\":{\"complete\":true},\"objects\":[{\"id\":1,\"path\":\"/opt/app\","
		    "\"build_id\":\"0102030405060708090a0b0c0d0e0f1011121314\"}],\"processes\":[{\"comm\":\"app\"}],"
		    "\"sites\":[{}");
	for (unsigned int i = 1; i <= SITES; i++)
		gzprintf(f,
			 ",\n{\"id\":%u,\"frames\":[[1,\"0x%x\",\"f%u+0x1\"],[1,\"0x10\",\"g+0x2\"],[1,\"0x20\","
			 "\"main+0x3\"]]}",
			 i, 0x1000 + 16 * i, i);
	gzprintf(f, "],\"allocations\":[");
}

/* Writes allocation number i with its events: this many copies, each at its own time. */
static void write_alloc(gzFile f, unsigned int i, unsigned int ordinal, unsigned int size, unsigned int copies)
{
	unsigned int site = 1 + i % SITES;

	gzprintf(f,
		 "%s\n{\"id\":\"%016x:65536:0@0\",\"pid\":1,\"process\":0,\"site\":%u,\"ordinal\":%u,\"size\":%u,"
		 "\"addr\":\"0x%llx\",\"gen\":0,\"method\":\"host_alloc\",\"fn\":\"cudaHostAlloc\",\"device\":null,"
		 "\"alloc_ns\":\"%u\",\"free_ns\":null,\"end\":\"live\",\"pin_ns\":40,\"flags\":[],\"api_flags\":0,"
		 "\"transfers\":{\"h2d\":[%u,%u]},\"events\":[",
		 i ? "," : "", site, site, ordinal, size, 0x7f0000000000ULL + i * 65536ULL, i + 2, copies,
		 65536 * copies);
	for (unsigned int e = 0; e < copies; e++)
		gzprintf(f, "%s[%u,\"h2d\",65536,0,\"pinned\",1]", e ? "," : "", 100 * e);
	gzprintf(f, "]}");
}

/* Every tenth site makes ten allocations of one size; the others make ten sizes. */
static void write_db(const char *path, const char *mode)
{
	gzFile f = gzopen(path, mode);

	if (!f)
		die(path);
	write_head(f);
	for (unsigned int i = 0; i < ALLOCS; i++) {
		unsigned int nr = i / SITES, same = (1 + i % SITES) % 10 == 0;

		write_alloc(f, i, same ? nr : 0, same ? 65536 : 65536 * (nr + 1), nr);
	}
	gzprintf(f, "]}\n");
	if (gzclose(f) != Z_OK)
		die(path);
}

static double load(const char *path, struct ttmon_run **ret)
{
	double start = now();
	char why[600];

	if (ttmon_run_load(path, NULL, ret, why, sizeof(why))) {
		fprintf(stderr, "bench_profile: %s\n", why);
		exit(1);
	}
	return now() - start;
}

static double raw_read(const char *path)
{
	static char buf[128 << 10];
	double start = now();
	gzFile f = gzopen(path, "rb");
	int n;

	if (!f || gzbuffer(f, sizeof(buf)))
		die(path);
	bytes = 0;
	while ((n = gzread(f, buf, sizeof(buf))) > 0)
		bytes += (size_t)n;
	gzclose(f);
	return now() - start;
}

/* The same sequence of numbers each time, not in order. */
static uint64_t next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005 + 1442695040888963407;
	return *seed >> 33;
}

/* change: 0: unchanged keys; 1: different frames with the same names; 2: unknown keys */
static double ask(const struct ttmon_profile *p, const struct ttmon_profile_key *keys, int change, unsigned int want)
{
	uint64_t seed = 7, found = 0;
	double start = now();

	for (unsigned int i = 0; i < LOOKUPS; i++) {
		struct ttmon_profile_key key = keys[next(&seed) % ALLOCS];
		struct ttmon_answer x;

		key.exact ^= change ? 1 : 0;
		key.names ^= change > 1 ? 1 : 0;
		key.leaf ^= change > 1 ? 1 : 0;
		key.near ^= change > 1 ? 1 : 0;
		ttmon_profile_lookup(p, &key, &x);
		found += x.match != TTMON_MATCH_NONE;
	}
	if (found != want) {
		fprintf(stderr, "bench_profile: %llu found, not %u\n", (unsigned long long)found, want);
		exit(1);
	}
	return (now() - start) * 1e9 / LOOKUPS;
}

static double ask_floor(const struct ttmon_hmap *map, const struct ttmon_profile_key *keys)
{
	uint64_t seed = 7, sum = 0;
	double start = now();

	for (unsigned int i = 0; i < LOOKUPS; i++) {
		const struct ttmon_profile_key *key = &keys[next(&seed) % ALLOCS];

		sum += ttmon_hmap_get(map, key->exact + key->size);
	}
	if (!sum)
		die("floor");
	return (now() - start) * 1e9 / LOOKUPS;
}

/* ---- --gb N ---- */

/* Writes a database of this many bytes. Returns how many allocations it has. */
static unsigned int write_big(int fd, uint64_t want)
{
	gzFile f = gzdopen(dup(fd), "wT");
	unsigned int i = 0;

	if (!f)
		die("/var/tmp");
	write_head(f);
	while ((uint64_t)gztell(f) < want)
		write_alloc(f, i++, 0, 65536, BIG_EVENTS);
	gzprintf(f, "]}\n");
	if (gzclose(f) != Z_OK)
		die("/var/tmp");
	return i;
}

static void read_big(const char *path)
{
	const struct ttmon_cost cost = TTMON_COST_DEFAULT;
	const struct ttmon_run *runs[1];
	struct ttmon_profile *p = NULL;
	struct ttmon_run *run = NULL;

	load(path, &run);
	runs[0] = run;
	if (ttmon_profile_new(runs, 1, &cost, &p))
		die("profile");
	ttmon_profile_free(p);
	ttmon_run_free(run);
}

static void read_floor(const char *path)
{
	raw_read(path);
}

/* Runs fn in a process of its own. Returns seconds of CPU time; *rss: its peak memory, MiB. */
static double apart(void (*fn)(const char *path), const char *path, double *rss)
{
	struct rusage u;
	int status = 0;
	pid_t pid;

	pid = fork();
	if (!pid) {
		fn(path);
		_exit(0);
	}
	if (pid < 0 || wait4(pid, &status, 0, &u) != pid || status)
		die("child");
	*rss = (double)u.ru_maxrss / 1024;
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int big(const char *arg)
{
	char name[] = "/var/tmp/ttmon-bench-profile-XXXXXX", path[64];
	double gb = atof(arg), rss, floor_rss, t, floor_t, mb;
	unsigned int allocs;
	struct stat st;
	int fd;

	if (gb <= 0 || gb > 1000) {
		fprintf(stderr, "usage: bench_profile [--gb N]\n");
		return 2;
	}
	/* The name is removed at once, so that nothing is left however this ends. */
	fd = mkstemp(name);
	if (fd < 0 || unlink(name))
		die(name);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	allocs = write_big(fd, (uint64_t)(gb * 1e9));
	if (fstat(fd, &st))
		die(name);
	mb = (double)st.st_size / 1e6;
	floor_t = apart(read_floor, path, &floor_rss);
	t = apart(read_big, path, &rss);
	floor_t = (floor_t + apart(read_floor, path, &floor_rss)) / 2;
	close(fd);
	printf("profile load and make: %.0f MB, %u allocations of %u events: %.1f s of CPU, %.0f MB/s, peak %.1f MiB\n",
	       mb, allocs, BIG_EVENTS, t, mb / t, rss);
	printf("reading alone: %.2f s, %.0f MB/s, peak %.1f MiB, ratio %.0f\n", floor_t, mb / floor_t, floor_rss,
	       t / floor_t);
	return 0;
}

static int cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	const struct ttmon_cost cost = TTMON_COST_DEFAULT;
	static struct ttmon_profile_key keys[ALLOCS];
	struct ttmon_profile_totals totals = { 0 };
	struct ttmon_hmap map = { 0 };
	double f[FIGURES][ROUNDS];
	const double *m[FIGURES];

	if (argc > 1)
		return big(argc == 3 && !strcmp(argv[1], "--gb") ? argv[2] : "");
	if (!mkdtemp(dir))
		die(dir);
	snprintf(plain, sizeof(plain), "%s/db.json", dir);
	snprintf(gz, sizeof(gz), "%s/db.json.gz", dir);
	write_db(plain, "wT");
	write_db(gz, "wb1");
	for (size_t r = 0; r < ROUNDS; r++) {
		struct ttmon_run *run = NULL, *packed = NULL;
		struct ttmon_profile *p = NULL;
		const struct ttmon_run *runs[1];
		double start;

		f[LOAD][r] = load(plain, &run);
		f[RAW][r] = raw_read(plain);
		f[LOAD_GZ][r] = load(gz, &packed);
		f[RAW_GZ][r] = raw_read(gz);
		ttmon_run_free(packed);
		runs[0] = run;
		start = now();
		if (ttmon_profile_new(runs, 1, &cost, &p))
			die("profile");
		f[MAKE][r] = now() - start;
		ttmon_profile_get_totals(p, &totals);
		for (unsigned int i = 0; i < ALLOCS; i++) {
			ttmon_profile_key_of(run, &run->allocs[i], TTMON_RUN_NONE, &keys[i]);
			if (!r && ttmon_hmap_put(&map, keys[i].exact + keys[i].size, i) < 0)
				die("floor");
		}
		ttmon_run_free(run);
		f[FOUND][r] = ask(p, keys, 0, LOOKUPS);
		f[DEMOTED][r] = ask(p, keys, 1, LOOKUPS);
		f[MISSED][r] = ask(p, keys, 2, 0);
		f[FLOOR][r] = ask_floor(&map, keys);
		ttmon_profile_free(p);
	}
	for (size_t i = 0; i < FIGURES; i++) {
		qsort(f[i], ROUNDS, sizeof(f[i][0]), cmp);
		m[i] = &f[i][ROUNDS / 2];
	}
	printf("profile load: %.1f MB, %u allocations: %.0f MB/s, reading alone %.0f MB/s, ratio %.1f\n",
	       (double)bytes / 1e6, ALLOCS, (double)bytes / 1e6 / *m[LOAD], (double)bytes / 1e6 / *m[RAW],
	       *m[LOAD] / *m[RAW]);
	printf("profile load .gz: %.0f MB/s, reading alone %.0f MB/s, ratio %.1f\n", (double)bytes / 1e6 / *m[LOAD_GZ],
	       (double)bytes / 1e6 / *m[RAW_GZ], *m[LOAD_GZ] / *m[RAW_GZ]);
	printf("profile make: %zu entries in %.0f ms, load %.0f ms, ratio %.2f\n", totals.entries, *m[MAKE] * 1e3,
	       *m[LOAD] * 1e3, *m[MAKE] / *m[LOAD]);
	printf("profile lookup: %.0f ns found at once, %.0f ns by names, %.0f ns not found; hash table %.0f ns, ratio "
	       "%.1f (goal: below 1 us)\n",
	       *m[FOUND], *m[DEMOTED], *m[MISSED], *m[FLOOR], *m[FOUND] / *m[FLOOR]);
	ttmon_hmap_fini(&map);
	unlink(plain);
	unlink(gz);
	rmdir(dir);
	return 0;
}
