// SPDX-License-Identifier: GPL-2.0-only
#include "opts_int.h"

#include <ctype.h>
#include <getopt.h>

#include "core/cgname.h"
#include "io/probes.h"
#include "metrics.h"
#include "version.h"

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
	const char *arg;  /* NULL: takes none */
	const char *help; /* fits a line of --help */
	const char *man;  /* more, for the manual page; NULL */
} table[] = {
	{ "pid", 'p', OPT_PID, "PID", "trace this process and its children; repeatable",
	  "Ends with status 0 when the last of them has gone." },
	{ "dump-db", 'o', OPT_DUMP_DB, "FILE", "write the database at the end, and on SIGUSR1",
	  "Without a target the history of a running service is written instead. A name ending in .gz is compressed. The file is written beside its place and renamed, so that the previous one stays until the new one is whole." },
	{ "record", 'r', OPT_RECORD, "FILE", "keep the raw stream for --replay", NULL },
	{ "replay", 'R', OPT_REPLAY, "FILE", "run a recording through the same pipeline",
	  "Gives the same database, byte for byte, on another host too. Needs no privileges and no CUDA." },
	{ "trace-out", 'T', OPT_TRACE_OUT, "FILE", "write a timeline for Perfetto at the end",
	  "Allocations, transfers, dispatches and what the devices ran, on one clock, in the Trace Event Format of Chrome. A name ending in .gz is compressed. ttmon trace makes the same from a recording, a database or a running service." },
	{ "trace-only", 't', OPT_TRACE_ONLY, NULL, "trace and count, give no advice", NULL },
	{ "no-mmap", 0, OPT_NO_MMAP, NULL, "do not trace mmap, munmap, mremap, brk",
	  "Their system-call tracepoints cost every system call of every process on the host 10 to 65 ns, by machine, while the trace runs. Without them unpinned memory is known from /proc/PID/maps alone." },
	{ "trace-mmap", 0, OPT_TRACE_MMAP, NULL, "trace them system-wide too (costs everybody)",
	  "See --no-mmap. Without a target they are not traced otherwise." },
	{ "copy-results", 0, OPT_COPY_RESULTS, NULL, "observe results of asynchronous copies",
	  "Costs a return probe a copy; without it they are recorded as enqueued, result not observed." },
	{ "no-return-probes", 0, OPT_NO_RETURNS, NULL, "entry probes only: no results, fewer addresses",
	  "For programs that switch stacks. Registrations, frees and copies are seen at their entry; allocations that hand their address out through a pointer are counted only." },
	{ "alloc-fn", 0, OPT_ALLOC_FN, "SPEC", "own allocator: LIB:SYMBOL,size=N,out=N|ret",
	  "LIB is the base name of the file (up to .so is enough, * is any), N an argument position from 1. out=ret: the pointer is the return value." },
	{ "free-fn", 0, OPT_FREE_FN, "SPEC", "and its free: LIB:SYMBOL,ptr=N", NULL },
	{ "stack-depth", 0, OPT_STACK, "N", "frames of a call site, 1-32 (16)", NULL },
	{ "ring-size", 0, OPT_RING, "KIB", "ring buffer per CPU (4096)",
	  "Rounded up to a power of two; 64 CPUs times 4096 KiB make 256 MiB." },
	{ "window", 0, OPT_WINDOW, "N", "open slots of 1 ms, 2-4096 (64)", NULL },
	{ "max-events", 0, OPT_MAX_EVENTS, "N", "events kept in the history (10,000,000)",
	  "Past it the sums go on, and the database says that it is incomplete." },
	{ "max-allocations", 0, OPT_MAX_ALLOCS, "N", "allocations kept in the history (1,000,000)", NULL },
	{ "pin-after", 0, OPT_PIN_AFTER, "WHEN", "live advice to pin: gain, first, N, BYTES (gain)",
	  "When transfers of unpinned memory to the device would have been faster by more than pinning costs (gain), at the first one, after so many (N) or so many bytes (64M). ttmon advise --live shows it." },
	{ "cold-after", 0, OPT_COLD_AFTER, "SECONDS", "live advice: cold without transfers so long (10)",
	  "Pinned memory that took part in no transfer for so long is to be unpinned, or is cold where the GPU may read it in place. 1 to 86400." },
	{ "slots-out", 0, OPT_SLOTS_OUT, "FILE", "write each 1 ms slot: who used the CPUs, caches",
	  "Rows of every process in every slot; read by ttmon slots. A name ending in .gz is compressed." },
	{ "memtrace", 0, OPT_MEMTRACE, NULL, "read memory accesses of GPU kernels",
	  "Of programs that have libttmon-memtrace.so in them (see ttmon-memtrace(1)); CMD gets it. Which allocations kernels read and write in place is then in the history, and pinned memory that a kernel reads is not cold." },
	{ "memtrace-out", 0, OPT_MEMTRACE_OUT, "FILE", "and write them to FILE, for ttmon memtrace",
	  "Each access of a warp, in the format of ttmon memtrace convert (.ttmt). Means --memtrace. For bounded runs: names are kept until the end, a program's at most a quarter of the room that others have left." },
	{ "memtrace-socket", 0, OPT_MEMTRACE_SOCKET, "PATH", "programs come here (/run/ttmond/memtrace.sock)",
	  "TTMON_MEMTRACE_SOCKET says the same to the library. With -- CMD a private one is made unless this is given. Means --memtrace." },
	{ "cpu", 0, OPT_CPU, "on|off", "measure who uses the CPUs, system-wide",
	  "At every context switch: time, and cycles, instructions and misses of the last-level cache where the host has counters. On by default for the service and with --slots-out or --rmid; off for runs with a target." },
	{ "rmid", 0, OPT_RMID, "FROM", "auto, module, resctrl, emulated, off (auto)",
	  "Where resource monitoring ids, and with them cache occupancy and memory bandwidth, come from: a kernel module that assigns them to processes (kmod/), monitoring groups of the kernel's resctrl, or numbers of our own without readings. auto takes the first that is there. Asking for one that is not there is an error." },
	{ "rmid-group", 0, OPT_RMID_GROUP, "BY", "resctrl groups by process or cgroup (process)", NULL },
	{ "rdt-rate", 0, OPT_RDT_RATE, "HZ", "readings of resctrl a second, 1-10 (4)", NULL },
	{ "resctrl-root", 0, OPT_RESCTRL, "DIR", "resctrl is here (/sys/fs/resctrl)", NULL },
	{ "rmid-events", 0, OPT_RMID_EVENTS, "SYSTEM[:PREFIX]", "the module's tracepoints",
	  "By default memory_collector, with and without the prefix memory_collector_ of older versions." },
	{ "shm-slots", 0, OPT_SHM_SLOTS, "N", "slots in /dev/shm/ttmon.v1, 0 is none (128)",
	  "For local readers, see include/ttmon/shm.h. Runs with a target make none unless this is given." },
	{ "tt-shm-version", 0, OPT_TT_SHM, "N", "tt_device_*_memory files: 1-4, off (1)", "Layout of the files in /dev/shm that per-chip memory of Tenstorrent devices is published in. 1 is what the design notes' tt_smi reads, named by board id and location, for everybody to read; 2 to 4 are those of tt-metal, named by the chip's unique id, for the user of the program. Where a program publishes by itself nothing is written. By default runs with --pid, -- CMD, --dump-db, --trace-out or --replay publish nothing." },
	{ "tt-dispatch", 0, OPT_TT_DISPATCH, "MODE", "Tenstorrent dispatches: auto, on, off (auto)",
	  "auto leaves those functions out whose probe would have to be single-stepped, which is about ten times dearer." },
	{ "tt-ioctl", 0, OPT_TT_IOCTL, NULL, "pins of tt-kmd by system-call tracepoint",
	  "Where the kernel has no kprobes. Costs every system call of every process on the host 10 to 65 ns." },
	{ "nvidia-pins", 0, OPT_NVIDIA_PINS, NULL, "count pins of NVIDIA's kernel module",
	  "Kprobes at functions of the module nvidia that pin, allocate and map host memory: calls, failures and pages of the whole host, in ttmon status, /v1/status and the metrics. Where the kernel has no kprobes, or the module is not there, a line says so and everything else goes on." },
	{ "sysfs-root", 0, OPT_SYSFS, "DIR", "chips are read from here (/sys)", NULL },
	{ "proc-root", 0, OPT_PROC, "DIR", "and /proc/driver/tenstorrent from here", NULL },
	{ "shm-root", 0, OPT_SHM, "DIR", "tt_device files go here (/dev/shm)", NULL },
	{ "socket", 's', OPT_SOCKET, "PATH", "local socket, or none",
	  "By default " TTMON_SOCKET
	  "; with --pid, -- CMD, --dump-db, --trace-out, --slots-out or --replay there is none unless this is given." },
	{ "listen-address", 'l', OPT_LISTEN, "ADDR", "HOST:PORT for metrics, or none (127.0.0.1:9843)",
	  "Repeatable. /metrics, /healthz and /v1/status: sums alone, for everybody who reaches the port, not encrypted. Runs with a target do not listen by default; with --replay the recording is played at its own pace and stays." },
	{ "group-by", 0, OPT_GROUP_BY, "BY", "label of metrics: comm, cgroup, unit, container, pod",
	  "What processes are summed up by in metrics, comm by default." },
	{ "series", 0, OPT_SERIES, "N", "names with series of their own, 0-1000 (20)",
	  "Those that moved most bytes, and for CPU time those that used most; all others are summed up in one called other." },
	{ "series-linger", 0, OPT_LINGER, "SECONDS", "series of the dead stay, 1-86400 (120)", NULL },
	{ "max-overhead", 0, OPT_OVERHEAD, "PERCENT", "budget, of the host's CPU time (1)",
	  "Over it families of probes are reduced to counting, the dearest first, and come back when there is room; never allocations. 0: no budget, and no statistics of BPF programs, which cost 20 to 50 ns a run." },
	{ "log-level", 0, OPT_LOG_LEVEL, "LEVEL", "error, warn, info, debug (info)", NULL },
	{ "quiet", 'q', OPT_QUIET, NULL, "no live line and no summary", NULL },
	{ "help", 'h', OPT_HELP, NULL, "this text; --help=all: rare options too", NULL },
	{ "version", 'V', OPT_VERSION, NULL, "version", NULL },
};

/* Shown by --help=all and in the manual page only. */
static bool is_rare(enum opt id)
{
	return id == OPT_STACK || id == OPT_WINDOW || id == OPT_TT_DISPATCH || id == OPT_TT_IOCTL ||
	       id == OPT_NVIDIA_PINS || id == OPT_SYSFS || id == OPT_RMID_GROUP || id == OPT_RDT_RATE ||
	       id == OPT_RESCTRL || id == OPT_RMID_EVENTS || id == OPT_SHM_SLOTS || id == OPT_SERIES ||
	       id == OPT_LINGER || id == OPT_GROUP_BY || id == OPT_RMID || id == OPT_TT_SHM || id == OPT_COPY_RESULTS ||
	       id == OPT_CPU || id == OPT_RING || id == OPT_NO_RETURNS || id == OPT_PROC || id == OPT_SHM ||
	       id == OPT_COLD_AFTER || id == OPT_PIN_AFTER || id == OPT_MEMTRACE || id == OPT_MEMTRACE_SOCKET;
}

static void print_help(bool all)
{
	puts("Usage: ttmond [OPTIONS] [-- CMD ARGS...]       no target: the whole host\n"
	     "Trace CUDA and Tenstorrent memory: who allocates, pins and moves it.\n");
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		const struct option_row *o = &table[i];
		char left[40];

		if (is_rare(o->id) && !all)
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
		return ttmon_opts_bad("--%s wants a number from %llu to %llu, not \"%s\"", opt, (unsigned long long)min,
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
	return ttmon_opts_bad("--%s wants %s, not \"%s\"", opt, all, arg);
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
		return ttmon_opts_bad("--%s wants a number from 0 to 100, not \"%s\"", opt, text);
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
			return ttmon_opts_bad("at most %d --listen-address", TTMON_MAX_LISTEN);
		if (!strrchr(arg, ':'))
			return ttmon_opts_bad("--listen-address wants HOST:PORT or none, not \"%s\"", arg);
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
			return ttmon_opts_bad("at most %d --pid", TTMON_MAX_PIDS);
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
	case OPT_ALLOC_FN:
		return ttmon_opts_user_fn(o, row->name, arg, false);
	case OPT_FREE_FN:
		return ttmon_opts_user_fn(o, row->name, arg, true);
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
		return ttmon_opts_pin_after(o, row->name, arg);
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
			return ttmon_opts_bad("--log-level wants error, warn, info or debug, not \"%s\"", arg);
		ttmon_log_set_level(level);
		return 0;
	case OPT_QUIET:
		o->quiet = true;
		return 0;
	case OPT_HELP:
		if (arg && !strcmp(arg, "man"))
			print_man();
		else if (arg && !strcmp(arg, "metrics"))
			ttmon_metrics_man(stdout);
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
		return ttmon_opts_bad("--pid and -- CMD do not go together");
	if (o->replay && (o->cmd || o->nr_pids || o->record))
		return ttmon_opts_bad("--replay takes no target and no --record");
	if (o->replay && o->memtrace)
		return ttmon_opts_bad(
			"--replay reads no memory accesses: what was recorded of them is in the recording");
	if (o->no_mmap && o->trace_mmap)
		return ttmon_opts_bad("--no-mmap and --trace-mmap do not go together");
	if (o->copy_results && o->no_returns)
		return ttmon_opts_bad("--copy-results and --no-return-probes do not go together");
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
		return ttmon_opts_bad("--rmid needs --cpu on");
	if (!o->cpu_given)
		o->cpu = !o->replay && (!run || o->slots_out || (o->rmid_given && o->rmid != TTMON_RMID_OFF));
	return 0;
}

int ttmon_opts_parse(int argc, char **argv, struct ttmon_opts *opts)
{
	struct option longs[ARRAY_SIZE(table) + 1] = { 0 };
	char shorts[3 * ARRAY_SIZE(table) + 2] = "+";
	int c, err;

	*opts = (struct ttmon_opts){ .ring_kib = 4096,
				     .stack_frames = 16,
				     .socket = TTMON_SOCKET,
				     .tt_shm_version = 1,
				     .rmid = TTMON_RMID_AUTO,
				     .shm_slots = 128,
				     .listen = { TTMON_LISTEN },
				     .nr_listen = 1,
				     .series = 20,
				     .linger_s = 120,
				     .max_overhead = 1 };
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

			return optopt && optopt < 256
				       ? ttmon_opts_bad("unknown option or missing argument: -%c", optopt)
				       : ttmon_opts_bad("unknown option or missing argument: %s", what);
		}
		err = one(opts, row, optarg);
		if (err)
			return err;
	}
	if (optind < argc) {
		/* getopt stops at the first word that is no option; only "--" makes it a command. */
		if (strcmp(argv[optind - 1], "--"))
			return ttmon_opts_bad("unexpected argument \"%s\": a command to run follows --", argv[optind]);
		opts->cmd = argv + optind;
	} else if (!strcmp(argv[argc - 1], "--")) {
		/* Not the whole host because a script's variable was empty. */
		return ttmon_opts_bad("-- wants a command to run");
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
