// SPDX-License-Identifier: GPL-2.0-only
/* opts.c: see opts.h. Parsing, help and the manual page come from one table. */
#include "daemon/run/opts.h"

#include <ctype.h>
#include <getopt.h>
#include <stdarg.h>

#include "daemon/core/usage/cgname.h"
#include "daemon/io/probes/probes.h"
#include "version.h"

/* Say what is wrong, on stderr. -EINVAL. */
static _printf_(1, 2) int bad_option(const char *fmt, ...)
{
	va_list ap;

	fputs("ttmond: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs(" (ttmond --help)\n", stderr);
	return -EINVAL;
}

/* key=N of a spec; "ret" is allowed for out. -EINVAL. */
static int spec_arg(char *field, const char *key, uint8_t *ret, bool *is_ret)
{
	size_t n = strlen(key);
	char *end;
	unsigned long v;

	if (strncmp(field, key, n) || field[n] != '=')
		return -ENOENT;
	if (is_ret && !strcmp(field + n + 1, "ret")) {
		*is_ret = true;
		return 0;
	}
	v = strtoul(field + n + 1, &end, 10);
	if (*end || v < 1 || v > 6)
		return -EINVAL;
	*ret = (uint8_t)v;
	return 0;
}

/* LIB:SYMBOL,size=N,out=N|ret or LIB:SYMBOL,ptr=N: -EINVAL, said; -ENOMEM. */
static int parse_user_fn(struct ttmon_opts *o, const char *opt, const char *spec, bool is_free)
{
	_cleanup_free_ char *copy = strdup(spec);
	char *save = NULL, *head, *colon, *field;
	uint8_t size = 0, out = 0, ptr = 0;
	struct ttmon_user_row *row;
	struct ttmon_user_fn *fn;
	bool is_ret = false;

	if (!copy)
		return -ENOMEM;
	if (o->nr_user == TTMON_FN_USER_MAX)
		return bad_option("--%s: at most %d functions", opt, TTMON_FN_USER_MAX);
	head = strtok_r(copy, ",", &save);
	colon = head ? strrchr(head, ':') : NULL;
	if (!colon || colon == head || !colon[1])
		return bad_option("--%s: \"%s\" does not begin with LIB:SYMBOL", opt, spec);
	*colon = '\0';
	while ((field = strtok_r(NULL, ",", &save))) {
		int err = is_free ? spec_arg(field, "ptr", &ptr, NULL) : spec_arg(field, "size", &size, NULL);

		if (err == -ENOENT && !is_free)
			err = spec_arg(field, "out", &out, &is_ret);
		if (err)
			return bad_option("--%s: \"%s\" in \"%s\" is not %s", opt, field, spec,
					  is_free ? "ptr=1..6" : "size=1..6, out=1..6 or out=ret");
	}
	if (is_free ? !ptr : !size || (!out && !is_ret))
		return bad_option("--%s: \"%s\" wants %s", opt, spec, is_free ? "ptr=" : "size= and out=");
	fn = &o->user[o->nr_user];
	row = &o->rows[o->nr_user];
	fn->lib = strdup(head);
	fn->symbol = strdup(colon + 1);
	fn->fn = (uint16_t)(TTMON_FN_USER + o->nr_user++);
	if (!fn->lib || !fn->symbol)
		return -ENOMEM;
	if (is_free)
		*row = (struct ttmon_user_row){ TTMON_CLS_FREE, ptr, 0 };
	else
		*row = (struct ttmon_user_row){ is_ret ? TTMON_CLS_ALLOC_RET : TTMON_CLS_ALLOC, is_ret ? 0 : out,
						size };
	return 0;
}

/* gain, first, N, or bytes with a unit. -EINVAL, said. */
static int parse_pin_after(struct ttmon_opts *o, const char *opt, const char *text)
{
	static const char units[] = "KMGT";
	const char *unit;
	unsigned long long v;
	char *end;

	o->live_pin = !strcmp(text, "first") ? TTMON_PIN_FIRST : TTMON_PIN_GAIN;
	if (!strcmp(text, "gain") || !strcmp(text, "first"))
		return 0;
	errno = 0;
	v = strtoull(text, &end, 10);
	unit = *end ? strchr(units, *end) : NULL;
	if (!isdigit((unsigned char)*text) || errno || !v || (*end && (!unit || end[1])) ||
	    (unit && v > UINT64_MAX >> (10 * (unit - units + 1))))
		return bad_option("--%s wants gain, first, a number of transfers, or bytes as in 64M, not \"%s\"", opt,
				  text);
	o->live_pin = unit ? TTMON_PIN_BYTES : TTMON_PIN_COPIES;
	o->live_threshold = unit ? v << (10 * (unit - units + 1)) : v;
	return 0;
}

enum opt {
	OPT_PID = 256,
	OPT_DUMP_DB,
	OPT_RECORD,
	OPT_REPLAY,
	OPT_TRACE_ONLY,
	OPT_NO_MMAP,
	OPT_TRACE_MMAP,
	OPT_COPY_RESULTS,
	OPT_NO_RETURNS,
	OPT_ALLOC_FN,
	OPT_AHEAD,
	OPT_FREE_FN,
	OPT_STACK,
	OPT_RING,
	OPT_WINDOW,
	OPT_MAX_EVENTS,
	OPT_MAX_ALLOCS,
	OPT_PIN_AFTER,
	OPT_COLD_AFTER,
	OPT_TRACE_OUT,
	OPT_TT_SHM,
	OPT_TT_DISPATCH,
	OPT_TT_IOCTL,
	OPT_NVIDIA_PINS,
	OPT_CPU,
	OPT_RMID,
	OPT_RMID_GROUP,
	OPT_RDT_RATE,
	OPT_RESCTRL,
	OPT_RMID_EVENTS,
	OPT_SLOTS_OUT,
	OPT_MEMTRACE,
	OPT_MEMTRACE_OUT,
	OPT_MEMTRACE_SOCKET,
	OPT_SHM_SLOTS,
	OPT_SYSFS,
	OPT_PROC,
	OPT_SHM,
	OPT_SOCKET,
	OPT_LISTEN,
	OPT_GROUP_BY,
	OPT_SERIES,
	OPT_LINGER,
	OPT_OVERHEAD,
	OPT_LOG_LEVEL,
	OPT_QUIET,
	OPT_HELP,
	OPT_VERSION,
};

static const struct option_row {
	const char *name;
	char letter;
	enum opt id;
	enum { COMMON, RARE } shown; /* RARE: by --help=all and in the manual page only */
	const char *arg;	     /* NULL: takes none */
	const char *help;	     /* fits a line of --help */
	const char *man;	     /* more, for the manual page; NULL */
} table[] = {
	{ "pid", 'p', OPT_PID, COMMON, "PID", "trace this process and its children; repeatable",
	  "Ends with status 0 when the last of them has gone." },
	{ "dump-db", 'o', OPT_DUMP_DB, COMMON, "FILE", "write the database at the end, and on SIGUSR1",
	  "Without a target the history of a running service is written instead. A name ending in .gz is compressed. The file is written beside its place and renamed, so that the previous one stays until the new one is whole." },
	{ "record", 'r', OPT_RECORD, COMMON, "FILE", "keep the raw stream for --replay", NULL },
	{ "replay", 'R', OPT_REPLAY, COMMON, "FILE", "run a recording through the same pipeline",
	  "Gives the same database, byte for byte, on another host too. Needs no privileges and no CUDA." },
	{ "trace-out", 'T', OPT_TRACE_OUT, COMMON, "FILE", "write a timeline for Perfetto at the end",
	  "Allocations, transfers, dispatches and what the devices ran, on one clock, in the Trace Event Format of Chrome. A name ending in .gz is compressed. ttmon trace makes the same from a recording, a database or a running service." },
	{ "trace-only", 't', OPT_TRACE_ONLY, COMMON, NULL, "trace and count, give no advice", NULL },
	{ "no-mmap", 0, OPT_NO_MMAP, COMMON, NULL, "do not trace mmap, munmap, mremap, brk",
	  "Their system-call tracepoints cost every system call of every process on the host 10 to 65 ns, by machine, while the trace runs. Without them unpinned memory is known from /proc/PID/maps alone." },
	{ "trace-mmap", 0, OPT_TRACE_MMAP, COMMON, NULL, "trace them system-wide too (costs everybody)",
	  "See --no-mmap. Without a target they are not traced otherwise." },
	{ "copy-results", 0, OPT_COPY_RESULTS, RARE, NULL, "observe results of asynchronous copies",
	  "Costs a return probe a copy; without it they are recorded as enqueued, result not observed." },
	{ "no-return-probes", 0, OPT_NO_RETURNS, RARE, NULL, "entry probes only: no results, fewer addresses",
	  "For programs that switch stacks. Registrations, frees and copies are seen at their entry; allocations that hand their address out through a pointer are counted only." },
	{ "alloc-fn", 0, OPT_ALLOC_FN, COMMON, "SPEC", "own allocator: LIB:SYMBOL,size=N,out=N|ret",
	  "LIB is the base name of the file (up to .so is enough, * is any), N an argument position from 1. out=ret: the pointer is the return value." },
	{ "free-fn", 0, OPT_FREE_FN, COMMON, "SPEC", "and its free: LIB:SYMBOL,ptr=N", NULL },
	{ "probe-ahead", 0, OPT_AHEAD, RARE, "WHERE", "libraries probed before they are mapped: on, off, DIR (on)",
	  "A service probes CUDA's and Tenstorrent's libraries under the usual paths, of this host and of its containers, so that the first program to map one is seen from its first call. DIR, repeatable: there too, a pattern for each component. What lies elsewhere is probed when it is mapped first, some milliseconds late." },
	{ "stack-depth", 0, OPT_STACK, RARE, "N", "frames of a call site, 1-32 (16)", NULL },
	{ "ring-size", 0, OPT_RING, RARE, "KIB", "ring buffer per CPU (4096)",
	  "Rounded up to a power of two; 64 CPUs times 4096 KiB make 256 MiB." },
	{ "window", 0, OPT_WINDOW, RARE, "N", "open slots of 1 ms, 2-4096 (64)", NULL },
	{ "max-events", 0, OPT_MAX_EVENTS, COMMON, "N", "events kept in the history (10,000,000)",
	  "Past it the sums go on, and the database says that it is incomplete." },
	{ "max-allocations", 0, OPT_MAX_ALLOCS, COMMON, "N", "allocations kept in the history (1,000,000)", NULL },
	{ "pin-after", 0, OPT_PIN_AFTER, RARE, "WHEN", "live advice to pin: gain, first, N, BYTES (gain)",
	  "When transfers of unpinned memory to the device would have been faster by more than pinning costs (gain), at the first one, after so many (N) or so many bytes (64M). ttmon advise --live shows it." },
	{ "cold-after", 0, OPT_COLD_AFTER, RARE, "SECONDS", "live advice: cold without transfers so long (10)",
	  "Pinned memory that took part in no transfer for so long is to be unpinned, or is cold where the GPU may read it in place. 1 to 86400." },
	{ "slots-out", 0, OPT_SLOTS_OUT, COMMON, "FILE", "write each 1 ms slot: who used the CPUs, caches",
	  "Rows of every process in every slot; read by ttmon slots. A name ending in .gz is compressed." },
	{ "memtrace", 0, OPT_MEMTRACE, RARE, NULL, "read memory accesses of GPU kernels",
	  "Of programs that have libttmon-memtrace.so in them (see ttmon-memtrace(1)); CMD gets it. Which allocations kernels read and write in place is then in the history, and pinned memory that a kernel reads is not cold." },
	{ "memtrace-out", 0, OPT_MEMTRACE_OUT, COMMON, "FILE", "and write them to FILE, for ttmon memtrace",
	  "Each access of a warp, in the format of ttmon memtrace convert (.ttmt). Means --memtrace. For bounded runs: names are kept until the end, a program's at most a quarter of the room that others have left." },
	{ "memtrace-socket", 0, OPT_MEMTRACE_SOCKET, RARE, "PATH", "programs come here (/run/ttmond/memtrace.sock)",
	  "TTMON_MEMTRACE_SOCKET says the same to the library. With -- CMD a private one is made unless this is given. Means --memtrace." },
	{ "cpu", 0, OPT_CPU, RARE, "on|off", "measure who uses the CPUs, system-wide",
	  "At every context switch: time, and cycles, instructions and misses of the last-level cache where the host has counters. On by default for the service and with --slots-out or --rmid; off for runs with a target." },
	{ "rmid", 0, OPT_RMID, RARE, "FROM", "auto, module, resctrl, emulated, off (auto)",
	  "Where resource monitoring ids, and with them cache occupancy and memory bandwidth, come from: a kernel module that assigns them to processes (kmod/), monitoring groups of the kernel's resctrl, or numbers of our own without readings. auto takes the first that is there. Asking for one that is not there is an error." },
	{ "rmid-group", 0, OPT_RMID_GROUP, RARE, "BY", "resctrl groups by process or cgroup (process)", NULL },
	{ "rdt-rate", 0, OPT_RDT_RATE, RARE, "HZ", "readings of resctrl a second, 1-10 (4)", NULL },
	{ "resctrl-root", 0, OPT_RESCTRL, RARE, "DIR", "resctrl is here (/sys/fs/resctrl)", NULL },
	{ "rmid-events", 0, OPT_RMID_EVENTS, RARE, "SYSTEM[:PREFIX]", "the module's tracepoints",
	  "By default memory_collector, with and without the prefix memory_collector_ of older versions." },
	{ "shm-slots", 0, OPT_SHM_SLOTS, RARE, "N", "slots in /dev/shm/ttmon.v1, 0 is none (128)",
	  "For local readers, see include/ttmon/shm.h. Runs with a target make none unless this is given." },
	{ "tt-shm-version", 0,
	  OPT_TT_SHM, RARE, "N", "tt_device_*_memory files: 1-4, off (1)", "Layout of the files in /dev/shm that per-chip memory of Tenstorrent devices is published in. 1 is what the design notes' tt_smi reads, named by board id and location, for everybody to read; 2 to 4 are those of tt-metal, named by the chip's unique id, for the user of the program. Where a program publishes by itself nothing is written. tt-metal's switches (TT_METAL_SHM_STATS_ENABLED, TT_METAL_SHM_STATS_PER_PID, TT_METAL_SHM_TRACKING_DISABLED) say what a program publishes by itself; ttmond sees its memory whether they are set or not, and its files always have an entry with its name for each process: off writes none. By default runs with --pid, -- CMD, --dump-db, --trace-out or --replay publish nothing." },
	{ "tt-dispatch", 0, OPT_TT_DISPATCH, RARE, "MODE", "Tenstorrent dispatches: auto, on, off (auto)",
	  "auto leaves those functions out whose probe would have to be single-stepped, which is about ten times dearer." },
	{ "tt-ioctl", 0, OPT_TT_IOCTL, RARE, NULL, "pins of tt-kmd by system-call tracepoint",
	  "Where the kernel has no kprobes. Costs every system call of every process on the host 10 to 65 ns." },
	{ "nvidia-pins", 0, OPT_NVIDIA_PINS, RARE, NULL, "count pins of NVIDIA's kernel module",
	  "Kprobes at functions of the module nvidia that pin, allocate and map host memory: calls, failures and pages of the whole host, in ttmon status, /v1/status and the metrics. Where the kernel has no kprobes, or the module is not there, a line says so and everything else goes on." },
	{ "sysfs-root", 0, OPT_SYSFS, RARE, "DIR", "chips are read from here (/sys)", NULL },
	{ "proc-root", 0, OPT_PROC, RARE, "DIR", "and /proc/driver/tenstorrent from here", NULL },
	{ "shm-root", 0, OPT_SHM, RARE, "DIR", "tt_device files go here (/dev/shm)", NULL },
	{ "socket", 's', OPT_SOCKET, COMMON, "PATH", "local socket, or none",
	  "By default " TTMON_SOCKET
	  "; with --pid, -- CMD, --dump-db, --trace-out, --slots-out or --replay there is none unless this is given." },
	{ "listen-address", 'l', OPT_LISTEN, COMMON, "ADDR", "HOST:PORT for metrics, or none (127.0.0.1:9843)",
	  "Repeatable. /metrics, /healthz and /v1/status: sums alone, for everybody who reaches the port, not encrypted. Runs with a target do not listen by default; with --replay the recording is played at its own pace and stays." },
	{ "group-by", 0, OPT_GROUP_BY, RARE, "BY", "label of metrics: comm, cgroup, unit, container, pod",
	  "What processes are summed up by in metrics, comm by default." },
	{ "series", 0, OPT_SERIES, RARE, "N", "names with series of their own, 0-1000 (20)",
	  "Those that moved most bytes, and for CPU time those that used most; all others are summed up in one called other." },
	{ "series-linger", 0, OPT_LINGER, RARE, "SECONDS", "series of the dead stay, 1-86400 (120)", NULL },
	{ "max-overhead", 0, OPT_OVERHEAD, COMMON, "PERCENT", "budget, of the host's CPU time (1)",
	  "By default 5 % of a CPU where that is more. Over it in the mean of ten seconds a family of probes is reduced to counting, in the process that makes most of its calls alone where there is one, and comes back when there is room; transfers last, allocations never. Of the copies of one process that is reduced alone one in 64 is told, and the database has an estimate with its error. 0: no budget, and no statistics of BPF programs, which cost 20 to 50 ns a run." },
	{ "log-level", 0, OPT_LOG_LEVEL, COMMON, "LEVEL", "error, warn, info, debug (info)", NULL },
	{ "quiet", 'q', OPT_QUIET, COMMON, NULL, "no live line and no summary", NULL },
	{ "help", 'h', OPT_HELP, COMMON, NULL, "this text; --help=all: rare options too", NULL },
	{ "version", 'V', OPT_VERSION, COMMON, NULL, "version", NULL },
};

static void print_help(bool all)
{
	puts("Usage: ttmond [OPTIONS] [-- CMD ARGS...]       no target: the whole host\n"
	     "Trace CUDA and Tenstorrent memory: who allocates, pins and moves it.\n");
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct option_row *o = &table[i];
		char left[40];

		if (o->shown == RARE && !all)
			continue;
		snprintf(left, sizeof(left), "%c%c%s --%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
			 o->letter ? "," : " ", o->name, o->arg ? " " : "", o->arg ? o->arg : "");
		printf("  %-27s %s\n", left, o->help);
	}
	puts("\nExamples:\n"
	     "  ttmond --dump-db out.json -- python3 train.py  one program, every call\n"
	     "  ttmond --pid 4711 --pid 4712                   programs that run already\n"
	     "  ttmond --replay trace.rec --dump-db out.json   the same database again\n"
	     "  ttmon db show out.json                         read it");
}

/* Rows for man/ttmond.8 (make man). */
static void print_man(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct option_row *o = &table[i];

		printf(".TP\n.B ");
		if (o->letter)
			printf("\\-%c, ", o->letter);
		printf("\\-\\-");
		for (const char *c = o->name; *c; c++)
			printf("%s%c", *c == '-' ? "\\" : "", *c);
		printf("%s%s\n%c%s%s\n", o->arg ? " " : "", o->arg ? o->arg : "", toupper((unsigned char)o->help[0]),
		       o->help + 1, ".");
		if (o->man)
			printf("%s\n", o->man);
	}
}

static int number(const char *opt, const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno || v < min || v > max)
		return bad_option("--%s wants a number from %llu to %llu, not \"%s\"", opt, (unsigned long long)min,
				  (unsigned long long)max, text);
	*ret = v;
	return 0;
}

/* Which of these words it is, from 0. */
static int word(const char *opt, const char *arg, const char *const *words, size_t n, unsigned int *ret)
{
	char all[128] = "";

	for (unsigned int i = 0; i < n; i++) {
		if (!strcmp(arg, words[i])) {
			*ret = i;
			return 0;
		}
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s",
			 i == 0	      ? ""
			 : i + 1 == n ? " or "
				      : ", ",
			 words[i]);
	}
	return bad_option("--%s wants %s, not \"%s\"", opt, all, arg);
}

static int cpu_option(struct ttmon_opts *o, const struct option_row *row, const char *arg)
{
	static const char *const off_on[] = { "off", "on" };
	static const char *const by[] = { "process", "cgroup" };
	static const char *const from[] = { "off", "module", "resctrl", "emulated", "auto" };
	unsigned int i = 0;
	uint64_t v = 0;
	int err;

	switch (row->id) {
	case OPT_CPU:
		err = word(row->name, arg, off_on, ARRAY_SIZE(off_on), &i);
		o->cpu = i;
		o->cpu_given = true;
		return err;
	case OPT_RMID:
		err = word(row->name, arg, from, ARRAY_SIZE(from), &i);
		o->rmid = i == TTMON_RMID_BACKEND_MAX ? TTMON_RMID_AUTO : i;
		o->rmid_given = true;
		return err;
	case OPT_RMID_GROUP:
		err = word(row->name, arg, by, ARRAY_SIZE(by), &i);
		o->rmid_by_cgroup = i;
		return err;
	case OPT_RDT_RATE:
		err = number(row->name, arg, 1, 10, &v);
		o->rdt_hz = (unsigned int)v;
		return err;
	default:
		err = number(row->name, arg, 0, 4096, &v);
		o->shm_slots = (uint32_t)v;
		o->shm_given = true;
		return err;
	}
}

/* A number with a fraction, from 0. */
static int percent(const char *opt, const char *text, double *ret)
{
	char *end;
	double v = strtod(text, &end);

	if (!isdigit((unsigned char)*text) || *end || !(v >= 0 && v <= 100))
		return bad_option("--%s wants a number from 0 to 100, not \"%s\"", opt, text);
	*ret = v;
	return 0;
}

static int service_option(struct ttmon_opts *o, const struct option_row *row, const char *arg)
{
	static const char *const by[] = {
#define X(id, NAME, name, help) [id] = name,
		TTMON_GROUP_TABLE(X)
#undef X
	};
	uint64_t v = 0;
	int err;

	switch (row->id) {
	case OPT_LISTEN:
		if (!o->listen_given)
			o->nr_listen = 0;
		o->listen_given = true;
		if (!strcmp(arg, "none"))
			return 0;
		if (o->nr_listen == TTMON_MAX_LISTEN)
			return bad_option("at most %d --listen-address", TTMON_MAX_LISTEN);
		if (!strrchr(arg, ':'))
			return bad_option("--listen-address wants HOST:PORT or none, not \"%s\"", arg);
		o->listen[o->nr_listen++] = arg;
		return 0;
	case OPT_GROUP_BY:
		return word(row->name, arg, by, ARRAY_SIZE(by), &o->group_by);
	case OPT_SERIES:
		err = number(row->name, arg, 0, 1000, &v);
		o->series = (uint32_t)v;
		return err;
	case OPT_LINGER:
		return number(row->name, arg, 1, 86400, &o->linger_s);
	default:
		o->overhead_given = true;
		return percent(row->name, arg, &o->max_overhead);
	}
}

static int one(struct ttmon_opts *o, const struct option_row *row, const char *arg)
{
	static const char *const tt_dispatch[] = {
		[TTMON_TT_DISPATCH_AUTO] = "auto", [TTMON_TT_DISPATCH_ON] = "on", [TTMON_TT_DISPATCH_OFF] = "off"
	};
	enum ttmon_log_level level;
	uint64_t v = 0;
	int err;

	switch (row->id) {
	case OPT_PID:
		if (o->nr_pids == TTMON_MAX_PIDS)
			return bad_option("at most %d --pid", TTMON_MAX_PIDS);
		err = number(row->name, arg, 1, INT32_MAX, &v);
		if (!err)
			o->pids[o->nr_pids++] = (uint32_t)v;
		return err;
	case OPT_DUMP_DB:
		o->dump_db = arg;
		return 0;
	case OPT_RECORD:
		o->record = arg;
		return 0;
	case OPT_REPLAY:
		o->replay = arg;
		return 0;
	case OPT_TRACE_ONLY:
		o->trace_only = true;
		return 0;
	case OPT_NO_MMAP:
		o->no_mmap = true;
		return 0;
	case OPT_TRACE_MMAP:
		o->trace_mmap = true;
		return 0;
	case OPT_COPY_RESULTS:
		o->copy_results = true;
		return 0;
	case OPT_NO_RETURNS:
		o->no_returns = true;
		return 0;
	case OPT_AHEAD:
		if (!strcmp(arg, "on") || !strcmp(arg, "off")) {
			o->look_ahead = !strcmp(arg, "on");
			return 0;
		}
		if (arg[0] != '/' || o->nr_ahead == TTMON_MAX_AHEAD)
			return bad_option("--%s: \"%s\": on, off, or a folder that begins with /, %d at most",
					  row->name, arg, TTMON_MAX_AHEAD);
		o->ahead[o->nr_ahead++] = (char *)arg;
		return 0;
	case OPT_ALLOC_FN:
		return parse_user_fn(o, row->name, arg, false);
	case OPT_FREE_FN:
		return parse_user_fn(o, row->name, arg, true);
	case OPT_STACK:
		err = number(row->name, arg, 1, TTMON_MAX_FRAMES, &v);
		o->stack_frames = (uint32_t)v;
		return err;
	case OPT_RING:
		return number(row->name, arg, 4, 1 << 20, &o->ring_kib);
	case OPT_WINDOW:
		err = number(row->name, arg, 2, 4096, &v);
		o->window = (uint32_t)v;
		return err;
	case OPT_MAX_EVENTS:
		return number(row->name, arg, 1, UINT64_MAX, &o->max_events);
	case OPT_MAX_ALLOCS:
		return number(row->name, arg, 1, UINT32_MAX, &o->max_allocations);
	case OPT_PIN_AFTER:
		return parse_pin_after(o, row->name, arg);
	case OPT_COLD_AFTER:
		return number(row->name, arg, 1, 86400, &o->live_cold_s);
	case OPT_TRACE_OUT:
		o->trace_out = arg;
		return 0;
	case OPT_TT_SHM:
		o->tt_shm_given = true;
		if (!strcmp(arg, "off")) {
			o->tt_shm_version = 0;
			return 0;
		}
		err = number(row->name, arg, 1, 4, &v);
		o->tt_shm_version = (unsigned int)v;
		return err;
	case OPT_TT_DISPATCH:
		return word(row->name, arg, tt_dispatch, ARRAY_SIZE(tt_dispatch), &o->tt_dispatch);
	case OPT_TT_IOCTL:
		o->tt_ioctl = true;
		return 0;
	case OPT_NVIDIA_PINS:
		o->nvidia_pins = true;
		return 0;
	case OPT_CPU:
	case OPT_RMID:
	case OPT_RMID_GROUP:
	case OPT_RDT_RATE:
	case OPT_SHM_SLOTS:
		return cpu_option(o, row, arg);
	case OPT_RESCTRL:
		o->resctrl_root = arg;
		return 0;
	case OPT_RMID_EVENTS:
		o->rmid_events = arg;
		return 0;
	case OPT_SLOTS_OUT:
		o->slots_out = arg;
		return 0;
	case OPT_MEMTRACE:
	case OPT_MEMTRACE_OUT:
	case OPT_MEMTRACE_SOCKET:
		o->memtrace = true;
		if (row->id == OPT_MEMTRACE_OUT)
			o->memtrace_out = arg;
		else if (row->id == OPT_MEMTRACE_SOCKET)
			o->memtrace_socket = arg;
		return 0;
	case OPT_SYSFS:
		o->sysfs_root = arg;
		return 0;
	case OPT_PROC:
		o->proc_root = arg;
		return 0;
	case OPT_SHM:
		o->shm_root = arg;
		return 0;
	case OPT_SOCKET:
		o->socket = strcmp(arg, "none") ? arg : NULL;
		o->socket_given = true;
		return 0;
	case OPT_LISTEN:
	case OPT_GROUP_BY:
	case OPT_SERIES:
	case OPT_LINGER:
	case OPT_OVERHEAD:
		return service_option(o, row, arg);
	case OPT_LOG_LEVEL:
		if (ttmon_log_parse_level(arg, &level))
			return bad_option("--log-level wants error, warn, info or debug, not \"%s\"", arg);
		ttmon_log_set_level(level);
		return 0;
	case OPT_QUIET:
		o->quiet = true;
		return 0;
	case OPT_HELP:
		if (arg && !strcmp(arg, "man"))
			print_man();
		else if (arg && !strcmp(arg, "metrics"))
			o->print_metrics(stdout);
		else
			print_help(arg && !strcmp(arg, "all"));
		return 1;
	case OPT_VERSION:
		puts("ttmond " TTMON_VERSION);
		return 1;
	}
	return -EINVAL;
}

/* What does not go together, said before anything is started. */
static int consistent(struct ttmon_opts *o)
{
	bool run = o->nr_pids || o->cmd || o->dump_db || o->replay || o->trace_out || o->slots_out;

	if (o->cmd && o->nr_pids)
		return bad_option("--pid and -- CMD do not go together");
	if (o->replay && (o->cmd || o->nr_pids || o->record))
		return bad_option("--replay takes no target and no --record");
	if (o->replay && o->memtrace)
		return bad_option("--replay reads no memory accesses: what was recorded of them is in the recording");
	if (o->no_mmap && o->trace_mmap)
		return bad_option("--no-mmap and --trace-mmap do not go together");
	if (o->copy_results && o->no_returns)
		return bad_option("--copy-results and --no-return-probes do not go together");
	if (o->dump_db && o->socket &&
	    !(o->nr_pids || o->cmd || o->replay || o->record || o->trace_out || o->slots_out))
		o->ask = o->socket;
	if (!o->socket_given && run)
		o->socket = NULL;
	if (!o->listen_given && run)
		o->nr_listen = 0;
	o->service = !run;
	if (!o->tt_shm_given && run)
		o->tt_shm_version = 0;
	if (!o->shm_given && run)
		o->shm_slots = 0;
	if (o->cpu_given && !o->cpu && o->rmid_given && o->rmid != TTMON_RMID_OFF)
		return bad_option("--rmid needs --cpu on");
	if (!o->cpu_given)
		o->cpu = !o->replay && (!run || o->slots_out || (o->rmid_given && o->rmid != TTMON_RMID_OFF));
	return 0;
}

int ttmon_opts_parse(int argc, char **argv, void (*metrics)(FILE *f), struct ttmon_opts *opts)
{
	struct option longs[ARRAY_SIZE(table) + 1] = { 0 };
	char shorts[3 * ARRAY_SIZE(table) + 2] = "+";
	int c, err;

	*opts = (struct ttmon_opts){ .print_metrics = metrics,
				     .ring_kib = 4096,
				     .stack_frames = 16,
				     .socket = TTMON_SOCKET,
				     .tt_shm_version = 1,
				     .rmid = TTMON_RMID_AUTO,
				     .shm_slots = 128,
				     .listen = { TTMON_LISTEN },
				     .nr_listen = 1,
				     .series = 20,
				     .linger_s = 120,
				     .max_overhead = 1,
				     .look_ahead = true };
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		longs[i].name = table[i].name;
		longs[i].has_arg = table[i].id == OPT_HELP ? optional_argument
				   : table[i].arg	   ? required_argument
							   : no_argument;
		longs[i].val = (int)table[i].id;
		if (table[i].letter)
			snprintf(shorts + strlen(shorts), sizeof(shorts) - strlen(shorts), "%c%s", table[i].letter,
				 table[i].arg ? ":" : "");
	}
	opterr = 0;
	while ((c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct option_row *row = NULL;

		for (size_t i = 0; i < ARRAY_SIZE(table); i++)
			if (c == (int)table[i].id || (table[i].letter && c == table[i].letter))
				row = &table[i];
		if (!row) {
			const char *what = argv[optind - 1];

			return optopt && optopt < 256 ? bad_option("unknown option or missing argument: -%c", optopt)
						      : bad_option("unknown option or missing argument: %s", what);
		}
		err = one(opts, row, optarg);
		if (err)
			return err;
	}
	if (optind < argc) {
		/* getopt stops at the first word that is no option; only "--" makes it a command. */
		if (strcmp(argv[optind - 1], "--"))
			return bad_option("unexpected argument \"%s\": a command to run follows --", argv[optind]);
		opts->cmd = argv + optind;
	} else if (!strcmp(argv[argc - 1], "--")) {
		/* Not the whole host because a script's variable was empty. */
		return bad_option("-- wants a command to run");
	}
	return consistent(opts);
}

struct ttmon_live_cfg ttmon_opts_live(const struct ttmon_opts *o)
{
	return (struct ttmon_live_cfg){ .off = o->trace_only,
					.pin = o->live_pin,
					.threshold = o->live_threshold,
					.cold_ns = o->live_cold_s * NSEC_PER_SEC };
}

void ttmon_opts_fini(struct ttmon_opts *opts)
{
	for (size_t i = 0; i < opts->nr_user; i++) {
		free((char *)opts->user[i].lib);
		free((char *)opts->user[i].symbol);
	}
}
