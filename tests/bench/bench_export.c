// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_export.c: how fast `ttmon export --format parquet` writes a slot file of 10,000,000 rows, and
 * `ttmon flame` a database of 1,000,000 allocations. The load is a host of two CPUs on which a build
 * runs: five processes in each slot, of a hundred. The floor of the export is `ttmon slots --sum` of
 * the same file, which reads it and writes nothing; that of the flame graph is reading the file. The
 * goals: 1,000,000 rows a second, 6 bytes a row, and 2 s for the flame graph. Each is the median of
 * three rounds, in CPU time. A number as argument: that many rows and a tenth of it allocations.
 */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/base/util.h"
#include "lib/read/slots.h"

#define ROWS	 10000000u
#define IN_SLOT	 5u
#define PROCS	 100u
#define ROUNDS	 3
#define T0	 1000000000000ULL
#define SITES	 400u
#define GOAL	 1e6
#define GOAL_ROW 6.0

static char dir[] = "/var/tmp/ttmon-bench-export-XXXXXX";
static char slots_path[64], db_path[64], out_path[64];

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "bench_export: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t next(void)
{
	static uint64_t state = 1;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* A compiler runs on each CPU for a part of the slot, others a little, the rest is idle. */
static void make_rows(struct ttmon_slot_row *rows, uint64_t slot)
{
	uint64_t left = 2 * NSEC_PER_MS;

	memset(rows, 0, IN_SLOT * sizeof(*rows));
	for (unsigned int i = 0; i < IN_SLOT; i++) {
		struct ttmon_slot_row *r = &rows[i];
		bool idle = i == IN_SLOT - 1;
		unsigned int proc = (unsigned int)(i < 2 ? slot / 200 * 2 + i : next()) % PROCS;

		r->cls = idle ? TTMON_ROW_IDLE : TTMON_ROW_USER;
		r->cpu_ns = idle ? left : i < 2 ? NSEC_PER_MS * 3 / 4 + next() % (NSEC_PER_MS / 8) : next() % 100000;
		left -= r->cpu_ns;
		if (idle)
			continue;
		r->tgid = 1000 + proc;
		r->start_ns = T0 - proc * 1234567;
		r->rmid = (uint16_t)(1 + proc);
		r->switches = (uint32_t)(next() % 4);
		snprintf(r->comm, sizeof(r->comm), "cc1-%u", proc % 20);
	}
}

static void put(FILE *f, const void *data, size_t n)
{
	if (fwrite(data, 1, n, f) != n)
		die("write");
}

static void make_slots(uint64_t nr)
{
	struct ttmon_slots_info info = { .start_ns = T0, .real_ns = T0, .nr_cpus = 2, .hostname = "host" };
	uint8_t head[TTMON_SLOTS_HEAD], end[TTMON_SLOTS_END_MAX];
	struct ttmon_slot_row rows[IN_SLOT];
	struct ttmon_slots_enc *enc;
	FILE *f = fopen(slots_path, "we");
	const uint8_t *block;
	size_t len;

	if (!f || ttmon_slots_enc_new(&enc))
		die(slots_path);
	ttmon_slots_enc_head(&info, head);
	put(f, head, sizeof(head));
	for (uint64_t i = 0; i < nr; i++) {
		struct ttmon_slots_item item = { .rows = rows };

		make_rows(rows, i);
		item.slot = (struct ttmon_slot){ .no = T0 / NSEC_PER_MS + i,
						 .flags = TTMON_SLOT_HAS_CPU,
						 .cpus = 2,
						 .nr_rows = IN_SLOT,
						 .idle_ns = rows[IN_SLOT - 1].cpu_ns,
						 .user_ns = 2 * NSEC_PER_MS - rows[IN_SLOT - 1].cpu_ns };
		if (ttmon_slots_enc_add(enc, &item))
			die("slot");
		if (!ttmon_slots_enc_full(enc) && i + 1 < nr)
			continue;
		if (ttmon_slots_enc_block(enc, &block, &len))
			die("block");
		put(f, block, len);
	}
	put(f, end, ttmon_slots_enc_end(&(struct ttmon_slots_end){ .slots = nr, .rows = nr * IN_SLOT }, end));
	ttmon_slots_enc_free(enc);
	if (fclose(f))
		die(slots_path);
}

/* As daemon/io/files writes it, with two transfers an allocation. */
static void make_db(uint64_t nr)
{
	FILE *f = fopen(db_path, "we");

	if (!f)
		die(db_path);
	fprintf(f,
		"{\"schema\":\"ttmon-db\",\"version\":1,\"ttmond\":\"bench\",\"host\":{\"hostname\":\"h\"},"
		"\"capture\":{\"start_ns\":\"%llu\",\"end_ns\":\"%llu\"},\"completeness\":{\"complete\":true,"
		"\"reasons\":[],\"folded\":0,\"blind\":[]},"
		"\"objects\":[{\"id\":1,\"path\":\"/usr/bin/train\","
		"\"build_id\":null,\"cuda\":false}],"
		"\"processes\":[{\"index\":0,\"pid\":1,\"comm\":\"train\"}],\"sites\":[",
		T0, T0 + 60 * NSEC_PER_SEC);
	for (unsigned int i = 0; i <= SITES; i++) {
		fprintf(f, "%s{\"id\":%u,\"key\":\"0x%016x\",\"frames\":[", i ? "," : "", i, i);
		for (unsigned int k = 0; i && k < 12; k++)
			fprintf(f, "%s[1,\"0x%x\",\"f%u+0x10\"]", k ? "," : "", 16 * (k + i % (1u << (12 - k))),
				k + i % (1u << (12 - k)));
		fprintf(f,
			"],\"allocs\":1,\"live\":0,\"live_bytes\":0,\"peak_bytes\":0,\"bytes\":0,"
			"\"h2d\":{},\"d2h\":{},"
			"\"pin_ns\":%u,\"folded\":0}",
			i * 1000);
	}
	fputs("],\"allocations\":[", f);
	for (uint64_t i = 0; i < nr; i++) {
		uint64_t at = T0 + i * 59 * NSEC_PER_SEC / nr, size = 4096 << next() % 8;

		fprintf(f,
			"%s{\"id\":\"b4166cac081fdc2a:%llu:%llu@0\",\"pid\":1,\"process\":0,"
			"\"site\":%u,\"ordinal\":%llu,"
			"\"size\":%llu,\"addr\":\"0x7fe671e60000\",\"gen\":0,\"method\":\"host_alloc\","
			"\"fn\":\"cudaHostAlloc\",\"device\":0,\"alloc_ns\":\"%llu\","
			"\"free_ns\":\"%llu\",\"end\":\"free\","
			"\"states\":[\"created\",\"transferred\",\"freed\"],\"pin_ns\":12000,"
			"\"unpin_ns\":4000,\"flags\":[],"
			"\"api_flags\":0,\"transfers\":{\"h2d\":[2,8192]},"
			"\"events\":[[1000,\"h2d\",4096,0,\"pinned\",1],"
			"[2000,\"h2d\",4096,0,\"pinned\",1]]}",
			i ? "," : "", (unsigned long long)size, (unsigned long long)i,
			(unsigned int)(1 + next() % SITES), (unsigned long long)i, (unsigned long long)size,
			(unsigned long long)at, (unsigned long long)(at + next() % NSEC_PER_SEC));
	}
	fputs("],\"advice\":[],\"summary\":{}}\n", f);
	if (fclose(f))
		die(db_path);
}

static double cpu_s(const struct rusage *r)
{
	return (double)(r->ru_utime.tv_sec + r->ru_stime.tv_sec) +
	       (double)(r->ru_utime.tv_usec + r->ru_stime.tv_usec) / 1e6;
}

/* CPU time: these commands have one thread, and other programs may keep the machine busy. */
static double run(char *const *argv)
{
	struct rusage used;
	pid_t pid = fork();
	int status;

	if (!pid) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		dup2(null, STDOUT_FILENO);
		execv(argv[0], argv);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &used) != pid || status)
		die(argv[1]);
	return cpu_s(&used);
}

static double read_file(const char *path)
{
	static char buf[128 << 10];
	struct rusage before, after;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	getrusage(RUSAGE_SELF, &before);
	while (fd >= 0 && read(fd, buf, sizeof(buf)) > 0)
		;
	close(fd);
	getrusage(RUSAGE_SELF, &after);
	return cpu_s(&after) - cpu_s(&before);
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double median(double *values)
{
	qsort(values, ROUNDS, sizeof(*values), by_value);
	return values[ROUNDS / 2];
}

static void remove_files(void)
{
	_unused_ int err;
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	err = system(cmd);
}

static void bench_export(char *ttmon, uint64_t rows)
{
	char *const export[] = { ttmon, "export", "-f", "parquet", "-o", out_path, slots_path, NULL };
	char *const sum[] = { ttmon, "slots", "--sum", slots_path, NULL };
	double took[ROUNDS], floor[ROUNDS], t, fl;
	char path[128];
	struct stat st;

	make_slots(rows / IN_SLOT);
	for (int i = 0; i < ROUNDS; i++) {
		floor[i] = run(sum);
		took[i] = run(export);
	}
	snprintf(path, sizeof(path), "%s/slot_rows.parquet", out_path);
	if (stat(path, &st))
		die(path);
	t = median(took);
	fl = median(floor);
	printf("export: %llu slot rows to Parquet in %.2f s, %.0f rows/s (goal 1,000,000)%s, "
	       "%.2f bytes a row (goal 6)%s; "
	       "ttmon slots --sum %.2f s, RATIO %.2f\n",
	       (unsigned long long)rows, t, (double)rows / t, (double)rows / t < GOAL ? " MISSED" : "",
	       (double)st.st_size / (double)rows, (double)st.st_size / (double)rows > GOAL_ROW ? " MISSED" : "", fl,
	       t / fl);
}

static void bench_flame(char *ttmon, uint64_t allocs)
{
	char *const flame[] = { ttmon, "flame", "-o", out_path, db_path, NULL };
	double took[ROUNDS], floor[ROUNDS], t, fl;

	remove_files();
	if (mkdir(dir, 0700))
		die(dir);
	make_db(allocs);
	for (int i = 0; i < ROUNDS; i++) {
		floor[i] = read_file(db_path);
		took[i] = run(flame);
	}
	t = median(took);
	fl = median(floor);
	printf("flame: %llu allocations in %.2f s (goal 2 s)%s; reading the file %.2f s, RATIO %.2f\n",
	       (unsigned long long)allocs, t, t > 2 ? " MISSED" : "", fl, t / fl);
}

int main(int argc, char **argv)
{
	uint64_t rows = argc > 1 ? strtoull(argv[1], NULL, 10) : ROWS;
	char self[512], ttmon[600];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (n < 0 || !mkdtemp(dir))
		die(dir);
	atexit(remove_files);
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	snprintf(ttmon, sizeof(ttmon), "%s/../../bin/ttmon", self);
	snprintf(slots_path, sizeof(slots_path), "%s/slots", dir);
	snprintf(db_path, sizeof(db_path), "%s/db", dir);
	snprintf(out_path, sizeof(out_path), "%s/out", dir);
	bench_export(ttmon, MAX(rows, (uint64_t)IN_SLOT));
	bench_flame(ttmon, rows / 10);
	return 0;
}
