// SPDX-License-Identifier: GPL-2.0-only
/*
 * host.c: the part of `ttmon bugreport` about the host: versions, kernel settings, modules, logs.
 * Everything is copied from files as it is. What cannot be read is left out.
 */
#include <fcntl.h>
#include <sys/klog.h>
#include <sys/utsname.h>
#include <zlib.h>

#include "tools/bugreport/bugreport.h"
#include "version.h"

#define LOG_LINES 500
#define RUN_MS	  10000
#define LOG_MAX	  (16u << 20)

/* ---- small files ---- */

/* Reads the first line of a file. Returns false if the file cannot be read. */
static bool first_line(const char *path, char *buf, size_t size)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");

	if (!f || !fgets(buf, (int)size, f))
		return false;
	buf[strcspn(buf, "\n")] = '\0';
	return true;
}

/* Copies the lines of a file that begin with key, at most n of them. */
static void lines_of(FILE *out, const char *path, const char *key, unsigned int n)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	char line[1024];

	while (f && n && fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, strlen(key)) != 0)
			continue;
		fputs(line, out);
		n--;
	}
}

/* ---- versions ---- */

/* Writes the output of a program to the file; nothing if it cannot be run. */
static void output_of(FILE *out, char *const argv[], const char *env)
{
	fflush(out);
	if (ttmon_child_run(argv, fileno(out), env, RUN_MS))
		fprintf(out, "%s: cannot be run\n", env ? "libraries" : "ttmond");
	/* The program wrote to the same file, so the position has moved. */
	fseek(out, 0, SEEK_END);
}

/*
 * Lists the libraries of ttmond with their versions. The loader prints where each library is
 * ("libbpf.so.1 => /lib/libbpf.so.1 (0x7f..)"); the version is in the name of the file that the link
 * leads to.
 */
static void libraries(FILE *out, char *ttmond)
{
	_cleanup_fclose_ FILE *list = tmpfile();
	char line[4096], *end;

	if (!list)
		return;
	output_of(list, (char *[]){ ttmond, NULL }, "LD_TRACE_LOADED_OBJECTS=1");
	rewind(list);
	while (fgets(line, sizeof(line), list)) {
		char *path = strstr(line, "=> /");
		_cleanup_free_ char *real = NULL;

		end = path ? strstr(path, " (0x") : NULL;
		if (!end)
			continue;
		*end = '\0';
		real = realpath(path + 3, NULL);
		if (real)
			fprintf(out, "%s\n", strrchr(real, '/') + 1);
	}
}

static void versions(struct ttmon_report *b)
{
	_cleanup_fclose_ FILE *out = ttmon_report_open(b, "versions.txt");
	char ttmond[4200], cpus[64] = "?";
	struct utsname u;

	if (!out)
		return;
	fprintf(out, "ttmon %s\n", TTMON_VERSION);
	ttmon_report_ttmond(ttmond, sizeof(ttmond));
	output_of(out, (char *[]){ ttmond, "--version", NULL }, NULL);
	libraries(out, ttmond);
	/* The host name is left out. */
	if (!uname(&u))
		fprintf(out, "%s %s %s %s\n", u.sysname, u.release, u.version, u.machine);
	lines_of(out, "/etc/os-release", "PRETTY_NAME=", 1);
	lines_of(out, "/etc/os-release", "VERSION_ID=", 1);
	lines_of(out, "/proc/cpuinfo", "model name", 1);
	lines_of(out, "/proc/cpuinfo", "microcode", 1);
	first_line("/sys/devices/system/cpu/online", cpus, sizeof(cpus));
	fprintf(out, "CPUs online: %s\n", cpus);
	lines_of(out, "/proc/meminfo", "MemTotal", 1);
}

/* ---- settings ---- */

static const char *const settings[] = {
	"/proc/sys/kernel/perf_event_paranoid",
	"/proc/sys/kernel/perf_event_max_sample_rate",
	"/proc/sys/kernel/perf_event_mlock_kb",
	"/proc/sys/kernel/unprivileged_bpf_disabled",
	"/proc/sys/kernel/bpf_stats_enabled",
	"/proc/sys/kernel/kptr_restrict",
	"/proc/sys/kernel/dmesg_restrict",
	"/proc/sys/kernel/randomize_va_space",
	"/proc/sys/kernel/yama/ptrace_scope",
	"/proc/sys/kernel/sched_rt_runtime_us",
	"/proc/sys/kernel/nmi_watchdog",
	"/proc/sys/net/core/bpf_jit_enable",
	"/proc/sys/net/core/bpf_jit_harden",
	"/proc/sys/fs/nr_open",
	"/sys/kernel/security/lockdown",
	"/sys/kernel/mm/transparent_hugepage/enabled",
	"/sys/devices/system/clocksource/clocksource0/current_clocksource",
	"/sys/devices/system/cpu/smt/control",
	"/sys/fs/resctrl/info/L3_MON/num_rmids",
	"/sys/fs/resctrl/info/L3_MON/mon_features",
	"/proc/driver/nvidia/version",
};

static void kernel_settings(struct ttmon_report *b)
{
	_cleanup_fclose_ FILE *out = ttmon_report_open(b, "settings.txt");
	char value[512];

	if (!out)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		fprintf(out, "%s: %s\n", settings[i],
			first_line(settings[i], value, sizeof(value)) ? value : strerror(errno ? errno : ENODATA));
	fprintf(out, "/sys/kernel/btf/vmlinux: %s\n",
		access("/sys/kernel/btf/vmlinux", R_OK) ? strerror(errno) : "there");
}

/* ---- the kernel's configuration ---- */

static const char *const options[] = {
	"BPF",
	"UPROBE",
	"KPROBE",
	"FTRACE=",
	"FTRACE_SYSCALLS",
	"DEBUG_INFO_BTF",
	"PERF_EVENTS",
	"X86_CPU_RESCTRL",
	"CGROUPS=",
	"SECCOMP",
	"FPROBE",
	"PREEMPT",
	"HZ",
	"NO_HZ",
	"LOCKDOWN",
	"SECURITY_LOCKDOWN",
	"MEMCG=",
	"CHECKPOINT_RESTORE",
	"FUNCTION_ERROR_INJECTION",
	"CPU_SUP",
};

static bool option_counts(const char *line)
{
	if (!strncmp(line, "# CONFIG_", 9))
		line += 9;
	else if (!strncmp(line, "CONFIG_", 7))
		line += 7;
	else
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (!strncmp(line, options[i], strlen(options[i])))
			return true;
	return false;
}

static void kernel_config(struct ttmon_report *b)
{
	_cleanup_fclose_ FILE *out = NULL;
	char path[256], line[512];
	struct utsname u;
	gzFile f = gzopen("/proc/config.gz", "re");

	if (!f && !uname(&u)) {
		snprintf(path, sizeof(path), "/boot/config-%s", u.release);
		f = gzopen(path, "re");
	}
	if (!f) {
		ttmon_report_lacks(b, "kernel-config.txt",
				   "neither /proc/config.gz nor /boot/config-RELEASE can be read");
		return;
	}
	out = ttmon_report_open(b, "kernel-config.txt");
	while (out && gzgets(f, line, sizeof(line)))
		if (option_counts(line))
			fputs(line, out);
	gzclose(f);
}

/* ---- modules ---- */

static bool module_counts(const char *name)
{
	return strstr(name, "nvidia") || strstr(name, "tenstorrent") || strstr(name, "ttmon") || strstr(name, "rmid");
}

static void modules(struct ttmon_report *b)
{
	_cleanup_fclose_ FILE *in = fopen("/proc/modules", "re"), *out = NULL;
	char line[1024], path[256], version[128];

	if (!in) {
		ttmon_report_lacks(b, "modules.txt", strerror(errno));
		return;
	}
	out = ttmon_report_open(b, "modules.txt");
	while (out && fgets(line, sizeof(line), in)) {
		line[strcspn(line, " \n")] = '\0';
		if (!module_counts(line))
			continue;
		snprintf(path, sizeof(path), "/sys/module/%.100s/version", line);
		fprintf(out, "%s %s\n", line,
			first_line(path, version, sizeof(version)) ? version : "without a version");
	}
}

/* ---- logs ---- */

static bool log_counts(const char *line)
{
	static const char *const words[] = { "ttmon", "bpf", "BPF", "uprobe", "tenstorrent", "NVRM" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strstr(line, words[i]))
			return true;
	return false;
}

/* Copies the last lines of a text. */
static void put_last(FILE *out, char *text)
{
	const char *keep[LOG_LINES];
	size_t n = 0;

	for (char *save, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (log_counts(line))
			keep[n++ % LOG_LINES] = line;
	for (size_t i = n > LOG_LINES ? n - LOG_LINES : 0; i < n; i++)
		fprintf(out, "%s\n", keep[i % LOG_LINES]);
}

#define KLOG_READ_ALL 3
#define KLOG_SIZE     10

static void kernel_log(struct ttmon_report *b)
{
	int size = klogctl(KLOG_SIZE, NULL, 0), n = -1;
	_cleanup_free_ char *text = NULL;
	_cleanup_fclose_ FILE *out = NULL;

	if (size > 0 && (unsigned int)size <= LOG_MAX) {
		text = malloc((size_t)size + 1);
		n = text ? klogctl(KLOG_READ_ALL, text, size) : -1;
	}
	if (n < 0) {
		ttmon_report_lacks(b, "kernel-log.txt", strerror(errno));
		return;
	}
	text[n] = '\0';
	out = ttmon_report_open(b, "kernel-log.txt");
	if (out)
		put_last(out, text);
}

static void unit_log(struct ttmon_report *b)
{
	char *const argv[] = { "journalctl",	"--unit=ttmond.service",
			       "--lines=500",	"--output=short-iso",
			       "--no-hostname", "--no-pager",
			       "--quiet",	NULL };
	_cleanup_fclose_ FILE *out = ttmon_report_open(b, "journal.txt");
	int err = out ? ttmon_child_run(argv, fileno(out), NULL, RUN_MS) : 0;

	if (!err)
		return;
	unlinkat(b->dir, "journal.txt", 0);
	ttmon_report_lacks(b, "journal.txt", err == -ENOEXEC ? "journalctl refused" : strerror(-err));
}

void ttmon_report_host(struct ttmon_report *b)
{
	versions(b);
	kernel_settings(b);
	kernel_config(b);
	modules(b);
	if (b->hide) {
		ttmon_report_lacks(b, "kernel-log.txt", "left out by --redact: it is free text");
		ttmon_report_lacks(b, "journal.txt", "left out by --redact: it is free text");
		return;
	}
	kernel_log(b);
	unit_log(b);
}
