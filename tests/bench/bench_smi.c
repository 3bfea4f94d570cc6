// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_smi.c: the CPU time of one `ttmon smi` over a Galaxy of 32 chips: its sysfs, the processes
 * that have each chip open, and for each chip a file in shared memory with 8 processes in it. The
 * floor is open(), read() and close() of the same files. Figures are medians of 21 interleaved rounds,
 * user and system time together. In a real sysfs each read costs more than in these plain files, for
 * both. Then the whole program is measured, if it is built, including its start, which `ttmon
 * --version` shows alone. More than 10 ms for that is a failure.
 */
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "tools/smi/figures.c"
#include "tools/smi/match.c"
#include "tools/smi/read.c"
#include "tools/term/table.c"
#include "tools/smi/text.c"
#include "tools/smi/details.c"
#include "lib/base/util.h"

#define CHIPS	  32
#define PROCESSES 8
#define ROUNDS	  21
#define LIMIT_MS  10.0
#define FILES_MAX (CHIPS * 16)

static char dir[] = "/tmp/ttmon-bench-smi-XXXXXX";
static char *files[FILES_MAX];
static size_t nr_files;
static char sysfs[64], proc[64], shm_dir[64];

__attribute__((noreturn)) static void die(const char *what)
{
	fprintf(stderr, "bench_smi: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void make_folders(char *path)
{
	for (char *p = path + 1; (p = strchr(p, '/')); p++) {
		*p = '\0';
		if (mkdir(path, 0755) && errno != EEXIST)
			die(path);
		*p = '/';
	}
}

static void put(const char *path, const void *data, size_t n)
{
	_cleanup_free_ char *copy = strdup(path);
	int fd;

	if (!copy || nr_files == FILES_MAX)
		die("files");
	make_folders(copy);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, data, n) != (ssize_t)n || close(fd))
		die(path);
	files[nr_files++] = TAKE_PTR(copy);
}

static void put_text(const char *folder, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	put(path, text, strlen(text));
}

/*
 * Makes chip N of a Galaxy as tt-kmd shows it. The folder of the class is a link to the folder of the
 * device.
 */
static void make_chip(unsigned int n)
{
	static const unsigned int nibbles[] = { 0xc, 0x8, 0x0, 0x4 };
	unsigned int bus = nibbles[n / 8] << 4 | (n % 8 + 1), location = (n / 8 + 1) << 4 | (n % 8 + 1);
	uint64_t board = UINT64_C(0x35) << 36 | (n / 8), key = board << 8 | location;
	struct ttmon_tt_shm_v1 image = {
		.version = 1, .num_active_processes = PROCESSES, .board_serial = key >> 8, .asic_id = key & 0xff
	};
	char folder[160], link[200], to[80], text[64];

	snprintf(folder, sizeof(folder), "%s/devices/pci0000:00/0000:%02x:00.0", sysfs, bus);
	put_text(folder, "device", "0x401e\n");
	put_text(folder, "numa_node", "0\n");
	put_text(folder, "hwmon/hwmon1/name", "wormhole\n");
	put_text(folder, "hwmon/hwmon1/temp1_input", "45000\n");
	put_text(folder, "hwmon/hwmon1/power1_input", "35000000\n");
	snprintf(folder, sizeof(folder), "%s/class/tenstorrent/tenstorrent!%u", sysfs, n);
	snprintf(text, sizeof(text), "%016llX\n", (unsigned long long)board);
	put_text(folder, "tt_serial", text);
	snprintf(text, sizeof(text), "%016X\n", 0x20000 + n);
	put_text(folder, "tt_asic_id", text);
	put_text(folder, "tt_card_type", "galaxy-wormhole\n");
	put_text(folder, "tt_aiclk", "1000\n");
	put_text(folder, "tt_fw_bundle_ver", "18.12.0.0\n");
	snprintf(link, sizeof(link), "%s/device", folder);
	snprintf(to, sizeof(to), "../../../devices/pci0000:00/0000:%02x:00.0", bus);
	if (symlink(to, link))
		die(link);
	for (int i = 0; i < PROCESSES; i++) {
		image.processes[i].pid = getpid() + i;
		image.processes[i].dram = image.processes[i].l1 = 1 << 20;
		snprintf(image.processes[i].name, sizeof(image.processes[i].name), "python3");
	}
	image.total_dram = image.total_l1 = PROCESSES << 20;
	snprintf(link, sizeof(link), "%s/tt_device_%" PRIu64 "_memory", shm_dir, key);
	put(link, &image, sizeof(image));
	snprintf(link, sizeof(link), "%s/driver/tenstorrent/%u/pids", proc, n);
	snprintf(text, sizeof(text), "%d\n%d\n", getpid(), getpid());
	put(link, text, strlen(text));
}

static double cpu_ms(const struct rusage *r)
{
	return 1e3 * (double)(r->ru_utime.tv_sec + r->ru_stime.tv_sec) +
	       (double)(r->ru_utime.tv_usec + r->ru_stime.tv_usec) / 1e3;
}

static double process_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

static double read_plainly(void)
{
	static char buf[16384];
	double start = process_ms();

	for (size_t i = 0; i < nr_files; i++) {
		int fd = open(files[i], O_RDONLY | O_CLOEXEC);

		if (fd < 0 || read(fd, buf, sizeof(buf)) <= 0 || close(fd))
			die(files[i]);
	}
	return process_ms() - start;
}

static double show_once(FILE *null)
{
	struct ttmon_smi_ask ask = { .roots = { sysfs, proc, shm_dir } };
	struct ttmon_term_style style = { .columns = 120, .colour = true, .utf8 = true };
	double start = process_ms();
	struct ttmon_smi v;

	if (ttmon_smi_read(&ask, &v))
		die("smi");
	if (v.nr_chips != CHIPS || v.nr_shm != CHIPS || v.nr_problems || v.chips[CHIPS - 1].status != TTMON_SMI_IN_USE)
		die("not what was made");
	ttmon_smi_text(&v, &style, null);
	ttmon_smi_fini(&v);
	return process_ms() - start;
}

/* -1: it is not built. */
static double run_program(const char *path, bool only_start)
{
	struct rusage used;
	pid_t pid = fork();
	int status;

	if (!pid) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		dup2(null, STDOUT_FILENO);
		if (only_start)
			execl(path, "ttmon", "--version", (char *)NULL);
		else
			execl(path, "ttmon", "smi", "--sysfs-root", sysfs, "--proc-root", proc, "--shm-root", shm_dir,
			      (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || wait4(pid, &status, 0, &used) != pid)
		die("fork");
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		return -1;
	return cpu_ms(&used);
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

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

int main(int argc, char **argv)
{
	double plain[ROUNDS], smi[ROUNDS], start[ROUNDS], whole[ROUNDS], floor_ms, ms;
	char program[PATH_MAX];
	FILE *null = fopen("/dev/null", "we");
	const char *slash = strrchr(argv[0], '/');
	int status = 0;

	(void)argc;
	if (!null || !mkdtemp(dir))
		die(dir);
	snprintf(sysfs, sizeof(sysfs), "%s/sys", dir);
	snprintf(proc, sizeof(proc), "%s/proc", dir);
	snprintf(shm_dir, sizeof(shm_dir), "%s/shm", dir);
	for (unsigned int n = 0; n < CHIPS; n++)
		make_chip(n);
	snprintf(program, sizeof(program), "%.*s../../bin/ttmon", slash ? (int)(slash + 1 - argv[0]) : 0, argv[0]);
	read_plainly();
	show_once(null);
	for (int i = 0; i < ROUNDS; i++) {
		plain[i] = read_plainly();
		smi[i] = show_once(null);
		start[i] = run_program(program, true);
		whole[i] = run_program(program, false);
	}
	floor_ms = median(plain);
	ms = median(smi);
	printf("%d chips, %zu files: plain reads %.2f ms of CPU, smi %.2f ms, ratio %.1f\n", CHIPS, nr_files, floor_ms,
	       ms, ms / floor_ms);
	qsort(whole, ROUNDS, sizeof(*whole), by_value);
	if (whole[0] < 0) {
		printf("the program as a whole: %s is not built\n", program);
	} else {
		ms = whole[ROUNDS / 2];
		printf("the program as a whole: %.2f ms of CPU, of which its start %.2f ms; limit %.0f ms\n", ms,
		       median(start), LIMIT_MS);
		status = ms > LIMIT_MS;
	}
	fclose(null);
	for (size_t i = 0; i < nr_files; i++)
		free(files[i]);
	nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return status;
}
