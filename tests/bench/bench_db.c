// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_db.c: writing and reading a database of 1,000,000 events (10,000 allocations with 100 copies
 * each), against writing and reading the same bytes without parsing. Rounds are interleaved, figures
 * are medians of 5. Every write ends with fsync, as the daemon's does. The memory of the reader is
 * that of a process that only reads ("bench_db --read FILE"); the memory of the writer is what it adds
 * to this process.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/io/files/db.h"
#include "lib/read/db.h"

#define ALLOCS 10000u
#define EVENTS 100u
#define ROUNDS 5
#define T0     1000000000000ull

enum { WRITE, RAW_WRITE, WRITE_GZ, READ, RAW_READ, READ_GZ, FIGURES };

static char dir[] = "/tmp/ttmon-bench-db-XXXXXX";
static char plain[64], gz[64], raw[64];

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void die(const char *what)
{
	fprintf(stderr, "bench_db: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct ttmon_event head(unsigned int kind, uint64_t ts_ns)
{
	return (struct ttmon_event){ .ts_ns = ts_ns, .kind = (uint16_t)kind, .tgid = 1000, .tid = 1000 };
}

static struct ttmon_pipeline *fill(void)
{
	struct ttmon_pipeline_cfg cfg = { .nr_cpus = 1, .history = { .keep_all = true, .start_ns = T0 } };
	struct ttmon_pipeline *p = NULL;
	uint64_t t = T0, seed = 1;

	if (ttmon_pipeline_new(&cfg, NULL, NULL, &p))
		die("pipeline");
	for (uint64_t a = 0; a < ALLOCS; a++) {
		uint64_t addr = 0x7f0000000000 + a * 65536, frame = 0x400000 + a % 100 * 16;
		struct ttmon_ev_alloc alloc = { .h = head(TTMON_EV_ALLOC, t + 1000),
						.entry_ns = t + 500,
						.addr = addr,
						.size = 65536,
						.fn = 1,
						.method = TTMON_METHOD_HOST_ALLOC,
						.nframes = 1 };
		uint64_t rec[(sizeof(alloc) + sizeof(frame)) / 8];

		t += 1000;
		memcpy(rec, &alloc, sizeof(alloc));
		memcpy(rec + sizeof(alloc) / 8, &frame, sizeof(frame));
		ttmon_pipeline_feed(p, rec, sizeof(rec));
		for (unsigned int e = 0; e < EVENTS; e++) {
			struct ttmon_ev_copy copy = { .h = head(TTMON_EV_COPY, t + 1000 + seed % 4096),
						      .entry_ns = t + 900,
						      .dst = 0x7e0000000000,
						      .src = addr + seed % 64 * 512,
						      .bytes = 512 * (1 + seed % 64),
						      .fn = 16,
						      .dir = TTMON_DIR_H2D };

			t = copy.h.ts_ns;
			seed = seed * 6364136223846793005 + 1442695040888963407;
			seed ^= seed >> 33;
			ttmon_pipeline_feed(p, &copy, sizeof(copy));
		}
		ttmon_pipeline_advance(p, t);
	}
	ttmon_pipeline_finish(p, t);
	return p;
}

static double write_db(struct ttmon_pipeline *p, const char *path)
{
	struct ttmon_db_meta meta = { .version = "bench", .start_ns = T0, .end_ns = T0 + 1 };
	double start = now();
	char why[256];

	if (ttmon_db_write(path, p, &meta, why, sizeof(why))) {
		fprintf(stderr, "bench_db: %s\n", why);
		exit(1);
	}
	return now() - start;
}

static double raw_write(const char *bytes, size_t n)
{
	double start = now();
	int fd = open(raw, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	for (size_t done = 0; fd >= 0 && done < n;) {
		ssize_t w = write(fd, bytes + done, MIN(n - done, (size_t)128 << 10));

		if (w < 0)
			die(raw);
		done += (size_t)w;
	}
	if (fd < 0 || fsync(fd) || close(fd))
		die(raw);
	return now() - start;
}

static double raw_read(char *bytes, size_t n)
{
	double start = now();
	int fd = open(plain, O_RDONLY | O_CLOEXEC);
	size_t done = 0;
	ssize_t r = 0;

	while (fd >= 0 && done < n && (r = read(fd, bytes + done, MIN(n - done, (size_t)128 << 10))) > 0)
		done += (size_t)r;
	if (fd < 0 || done != n || close(fd))
		die(plain);
	return now() - start;
}

static double read_db(const char *path)
{
	struct ttmon_db *db = NULL;
	double start = now();
	size_t events = 0;
	char why[600];
	json_t *a;
	int r;

	if (ttmon_db_open(path, &db, why, sizeof(why))) {
		fprintf(stderr, "bench_db: %s\n", why);
		exit(1);
	}
	while ((r = ttmon_db_next_alloc(db, &a)) == 1) {
		events += json_array_size(json_object_get(a, "events"));
		json_decref(a);
	}
	if (r || events != (size_t)ALLOCS * EVENTS) {
		fprintf(stderr, "bench_db: %s: %zu events, %s\n", path, events, ttmon_db_why(db));
		exit(1);
	}
	ttmon_db_close(db);
	return now() - start;
}

/*
 * Peak memory of this program since its exec, KiB. (getrusage() would include the time before the
 * exec.)
 */
static long peak_kib(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[128];
	long kib = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmHWM: %ld", &kib) == 1)
			break;
	if (!kib)
		die("/proc/self/status");
	fclose(f);
	return kib;
}

/* Runs a process that only reads, and prints its memory. */
static void read_alone(const char *path)
{
	pid_t pid;
	int status = 0;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "bench_db", "--read", path, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		die("reader");
}

static int cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *v)
{
	qsort(v, ROUNDS, sizeof(*v), cmp);
	return v[ROUNDS / 2];
}

static void report(double f[FIGURES][ROUNDS], size_t bytes, size_t gz_bytes)
{
	double m[FIGURES];

	for (size_t i = 0; i < FIGURES; i++)
		m[i] = median(f[i]);
	printf("db: %u events in %u allocations, %.1f MB, %.1f MB compressed\n", ALLOCS * EVENTS, ALLOCS,
	       (double)bytes / 1e6, (double)gz_bytes / 1e6);
	printf("db write: %.3f s, raw bytes %.3f s, ratio %.2f (goal: within 1 s)\n", m[WRITE], m[RAW_WRITE],
	       m[WRITE] / m[RAW_WRITE]);
	printf("db write .gz: %.3f s, raw bytes %.3f s, ratio %.2f\n", m[WRITE_GZ], m[RAW_WRITE],
	       m[WRITE_GZ] / m[RAW_WRITE]);
	printf("db read: %.3f s, raw bytes %.3f s, ratio %.2f (goal: within 2 s)\n", m[READ], m[RAW_READ],
	       m[READ] / m[RAW_READ]);
	printf("db read .gz: %.3f s, raw bytes %.3f s, ratio %.2f\n", m[READ_GZ], m[RAW_READ],
	       m[READ_GZ] / m[RAW_READ]);
}

int main(int argc, char **argv)
{
	double f[FIGURES][ROUNDS];
	struct ttmon_pipeline *p;
	struct stat st, st_gz;
	char *bytes = NULL;
	long before, after;

	if (argc == 3 && strcmp(argv[1], "--read") == 0) {
		read_db(argv[2]);
		if (stat(argv[2], &st))
			die(argv[2]);
		printf("db read memory: %.1f MiB in all, file %.1f MiB, ratio %.2f\n", (double)peak_kib() / 1024,
		       (double)st.st_size / (1 << 20), (double)peak_kib() * 1024 / (double)st.st_size);
		return 0;
	}
	if (!mkdtemp(dir))
		die(dir);
	snprintf(plain, sizeof(plain), "%s/db.json", dir);
	snprintf(gz, sizeof(gz), "%s/db.json.gz", dir);
	snprintf(raw, sizeof(raw), "%s/raw", dir);
	p = fill();
	before = peak_kib();
	write_db(p, plain);
	after = peak_kib();
	if (stat(plain, &st))
		die(plain);
	bytes = malloc((size_t)st.st_size);
	if (!bytes)
		die("memory");
	for (size_t i = 0; i < ROUNDS; i++) {
		f[WRITE][i] = write_db(p, plain);
		f[RAW_READ][i] = raw_read(bytes, (size_t)st.st_size);
		f[RAW_WRITE][i] = raw_write(bytes, (size_t)st.st_size);
		f[WRITE_GZ][i] = write_db(p, gz);
		f[READ][i] = read_db(plain);
		f[READ_GZ][i] = read_db(gz);
	}
	if (stat(gz, &st_gz))
		die(gz);
	report(f, (size_t)st.st_size, (size_t)st_gz.st_size);
	printf("db write memory: %.1f MiB more than before, file %.1f MiB, ratio %.2f\n",
	       (double)(after - before) / 1024, (double)st.st_size / (1 << 20),
	       (double)(after - before) * 1024 / (double)st.st_size);
	read_alone(plain);
	unlink(plain);
	unlink(gz);
	unlink(raw);
	rmdir(dir);
	free(bytes);
	ttmon_pipeline_free(p);
	return 0;
}
