// SPDX-License-Identifier: GPL-2.0-only
/*
 * opts.c: see opts.h. Parsing, help, the manual page and completion come from one table
 * (lib/os/cli.h).
 */
#include "daemon/run/opts.h"

#include <ctype.h>

#include "daemon/core/usage/cgname.h"
#include "daemon/io/probes/probes.h"
#include "lib/os/cli.h"
#include "version.h"

/* Parses key=N of a spec; out may also be "ret". -ENOENT: another key; -EINVAL: a bad value. */
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

/* LIB:SYMBOL,size=N,out=N|ret or LIB:SYMBOL,ptr=N: -EINVAL, reported; -ENOMEM. */
static int take_user_fn(struct ttmon_cli *cli, const char *spec)
{
	const char *opt = cli->opt->name;
	bool is_free = !strcmp(opt, "free-fn");
	struct ttmon_opts *o = cli->opts;
	_cleanup_free_ char *copy = strdup(spec);
	char *save = NULL, *head, *colon, *field;
	uint8_t size = 0, out = 0, ptr = 0;
	struct ttmon_user_row *row;
	struct ttmon_user_fn *fn;
	bool is_ret = false;

	if (!copy)
		return -ENOMEM;
	if (o->nr_user == TTMON_FN_USER_MAX)
		return ttmon_cli_bad(cli, "--%s: at most %d functions", opt, TTMON_FN_USER_MAX);
	head = strtok_r(copy, ",", &save);
	colon = head ? strrchr(head, ':') : NULL;
	if (!colon || colon == head || !colon[1])
		return ttmon_cli_bad(cli, "--%s: \"%s\" does not begin with LIB:SYMBOL", opt, spec);
	*colon = '\0';
	while ((field = strtok_r(NULL, ",", &save))) {
		int err = is_free ? spec_arg(field, "ptr", &ptr, NULL) : spec_arg(field, "size", &size, NULL);

		if (err == -ENOENT && !is_free)
			err = spec_arg(field, "out", &out, &is_ret);
		if (err)
			return ttmon_cli_bad(cli, "--%s: \"%s\" in \"%s\" is not %s", opt, field, spec,
					     is_free ? "ptr=1..6" : "size=1..6, out=1..6 or out=ret");
	}
	if (is_free ? !ptr : !size || (!out && !is_ret))
		return ttmon_cli_bad(cli, "--%s: \"%s\" needs %s", opt, spec, is_free ? "ptr=" : "size= and out=");
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

/* gain, first, N, or bytes with a unit. -EINVAL, reported. */
static int take_pin_after(struct ttmon_cli *cli, const char *text)
{
	static const char units[] = "KMGT";
	struct ttmon_opts *o = cli->opts;
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
		return ttmon_cli_bad(cli,
				     "--%s needs gain, first, a number of transfers, or bytes as in 64M, not \"%s\"",
				     cli->opt->name, text);
	o->live_pin = unit ? TTMON_PIN_BYTES : TTMON_PIN_COPIES;
	o->live_threshold = unit ? v << (10 * (unit - units + 1)) : v;
	return 0;
}

static int take_pid(struct ttmon_cli *cli, const char *arg)
{
	struct ttmon_opts *o = cli->opts;
	char *end;
	unsigned long v = strtoul(arg, &end, 10);

	if (!isdigit((unsigned char)*arg) || *end || !v || v > INT32_MAX)
		return ttmon_cli_bad(cli, "--pid needs a number from 1 to %d, not \"%s\"", INT32_MAX, arg);
	if (o->nr_pids == TTMON_MAX_PIDS)
		return ttmon_cli_bad(cli, "at most %d --pid", TTMON_MAX_PIDS);
	o->pids[o->nr_pids++] = (uint32_t)v;
	return 0;
}

static int take_ahead(struct ttmon_cli *cli, const char *arg)
{
	struct ttmon_opts *o = cli->opts;

	if (!strcmp(arg, "on") || !strcmp(arg, "off")) {
		o->look_ahead = !strcmp(arg, "on");
		return 0;
	}
	if (arg[0] != '/' || o->nr_ahead == TTMON_MAX_AHEAD)
		return ttmon_cli_bad(cli, "--%s: \"%s\": on, off, or a folder that begins with /, %d at most",
				     cli->opt->name, arg, TTMON_MAX_AHEAD);
	o->ahead[o->nr_ahead++] = (char *)arg;
	return 0;
}

static int take_listen(struct ttmon_cli *cli, const char *arg)
{
	struct ttmon_opts *o = cli->opts;

	if (!o->listen_given)
		o->nr_listen = 0;
	o->listen_given = true;
	if (!strcmp(arg, "none"))
		return 0;
	if (o->nr_listen == TTMON_MAX_LISTEN)
		return ttmon_cli_bad(cli, "at most %d --listen-address", TTMON_MAX_LISTEN);
	if (!strrchr(arg, ':'))
		return ttmon_cli_bad(cli, "--listen-address needs HOST:PORT or none, not \"%s\"", arg);
	o->listen[o->nr_listen++] = arg;
	return 0;
}

static int take_log_level(struct ttmon_cli *cli, const char *arg)
{
	enum ttmon_log_level level;

	if (ttmon_log_parse_level(arg, &level))
		return ttmon_cli_bad(cli, "--log-level needs error, warn, info or debug, not \"%s\"", arg);
	ttmon_log_set_level(level);
	return 0;
}

static int take_version(struct ttmon_cli *cli, const char *arg)
{
	(void)cli;
	(void)arg;
	puts("ttmond " TTMON_VERSION);
	return 1;
}

#define X(id, NAME, name, help) name " "
#define GROUP_WORDS		TTMON_GROUP_TABLE(X)
#define T			struct ttmon_opts
#define FLAG(m)			TTMON_CLI_FLAG(T, m)
#define TEXT(m, words)		TTMON_CLI_TEXT(T, m, words)
#define NUMBER(m, min, max)	TTMON_CLI_NUMBER(T, m, min, max)
#define WORD(m, words)		TTMON_CLI_WORD(T, m, words)
#define CALL(fn)		TTMON_CLI_CALL(fn)
#define GIVEN(m)		TTMON_CLI_GIVEN(T, m)
static const struct ttmon_cli_opt table[] = {
	{ "pid", 'p', "PID", "trace this process and its children; repeatable",
	  "Ends with status 0 when the last of them has gone.", CALL(take_pid), .words = ":pid" },
	{ "dump-db", 'o', "FILE", "write the database at the end, and on SIGUSR1",
	  "Without a target the history of a running service is written instead. A name that ends in .gz is "
	  "compressed. The file is written under another name and then renamed, so that the previous file "
	  "stays until the new one is whole.",
	  TEXT(dump_db, ":file") },
	{ "record", 'r', "FILE", "keep the raw stream for --replay", NULL, TEXT(record, ":file") },
	{ "replay", 'R', "FILE", "run a recording through the same pipeline",
	  "Gives the same database, byte for byte, on another host too. Needs no privileges and no CUDA.",
	  TEXT(replay, ":file") },
	{ "trace-out", 'T', "FILE", "write a timeline for Perfetto at the end",
	  "Allocations, transfers, dispatches and what the devices ran, on one clock, in Chrome's Trace "
	  "Event Format. A name that ends in .gz is compressed. ttmon trace makes the same file from a "
	  "recording, a database or a running service.",
	  TEXT(trace_out, ":file") },
	{ "trace-only", 't', NULL, "trace and count, give no advice", NULL, FLAG(trace_only) },
	{ "no-mmap", 0, NULL, "do not trace mmap, munmap, mremap, brk",
	  "The tracepoints of these system calls cost every system call of every process on the host 10 to "
	  "65 ns, by machine, while the trace runs. Without them unpinned memory is known from "
	  "/proc/PID/maps alone.",
	  FLAG(no_mmap) },
	{ "trace-mmap", 0, NULL, "trace them system-wide too (costs everybody)",
	  "See --no-mmap. Without a target they are not traced otherwise.", FLAG(trace_mmap) },
	{ "no-unwind", 0, NULL, "call stacks by frame pointers alone",
	  "Without this option, code without frame pointers is unwound too: a part of its stack is copied, "
	  "and a separate process without any other rights unwinds the copy by the tables in the program's "
	  "files (x86-64).",
	  FLAG(no_unwind), .rare = true },
	{ "copy-results", 0, NULL, "observe results of asynchronous copies",
	  "Costs a return probe a copy; without it they are recorded as enqueued, result not observed.",
	  FLAG(copy_results), .rare = true },
	{ "no-return-probes", 0, NULL, "entry probes only: no results, fewer addresses",
	  "For programs that switch stacks. Registrations, frees and copies are seen at their entry. "
	  "Allocations that return their address through a pointer are only counted.",
	  FLAG(no_returns), .rare = true },
	{ "return-probes", 0, "WHERE", "at calls of an own allocator: auto, all (auto)",
	  "Which calls of an allocator of --alloc-fn get a return probe. The kernel's return probes end a "
	  "program with SIGILL when a coroutine yields in the middle of a probed call and another thread "
	  "resumes it. auto: no return probes in a program that can switch stacks by known means "
	  "(swapcontext(), Boost.Context and what is built on it, greenlet, Julia and others). all: return "
	  "probes there too. Where the kernel can leave out a single call (Linux 6.13), a call on another "
	  "stack than its thread's own never gets a return probe.",
	  WORD(returns_all, "auto all"), .rare = true },
	{ "alloc-fn", 0, "SPEC", "own allocator: LIB:SYMBOL,size=N,out=N|ret",
	  "LIB is the base name of the file (the part up to .so is enough, * is any file). N is the "
	  "position of an argument, from 1. out=ret: the return value is the pointer.",
	  CALL(take_user_fn) },
	{ "free-fn", 0, "SPEC", "and its free: LIB:SYMBOL,ptr=N", NULL, CALL(take_user_fn) },
	{ "probe-ahead", 0, "WHERE", "libraries probed before they are mapped: on, off, DIR (on)",
	  "A service probes CUDA's and Tenstorrent's libraries under the usual paths of this host and of "
	  "its containers, so that the first program that maps one is traced from its first call. DIR adds "
	  "a folder; a component may be a pattern; repeatable. A library elsewhere is probed some "
	  "milliseconds after a program first maps it.",
	  CALL(take_ahead), .words = "on off :dir", .rare = true },
	{ "stack-depth", 0, "N", "frames of a call site, 1-32 (16)", NULL, NUMBER(stack_frames, 1, TTMON_MAX_FRAMES),
	  .rare = true },
	{ "ring-size", 0, "KIB", "ring buffer per CPU (4096)",
	  "Rounded up to a power of two; 64 CPUs times 4096 KiB make 256 MiB.", NUMBER(ring_kib, 4, 1 << 20),
	  .rare = true },
	{ "window", 0, "N", "open slots of 1 ms, 2-4096 (64)", NULL, NUMBER(window, 2, 4096), .rare = true },
	{ "max-events", 0, "N", "events kept in the history (10,000,000)",
	  "Past it the sums go on, and the database says that it is incomplete.", NUMBER(max_events, 1, UINT64_MAX) },
	{ "max-allocations", 0, "N", "allocations kept in the history (1,000,000)",
	  "Past the limit each new allocation replaces one of the user who has most of them: first one that "
	  "has ended, then the record of a live one, whose bytes stay in the sums.",
	  NUMBER(max_allocations, 1, UINT32_MAX) },
	{ "max-user-probes", 0, "N", "functions probed in files of one user (32,768)",
	  "Past the limit the next file of that user gets no probes, and its calls are reported as not "
	  "seen. The limit for root's files is 131,072.",
	  NUMBER(max_user_probes, 1, UINT32_MAX), .rare = true },
	{ "pin-after", 0, "WHEN", "live advice to pin: gain, first, N, BYTES (gain)",
	  "gain: when faster transfers would have saved more time than pinning costs. first: at the first "
	  "transfer of unpinned memory to the device. N: after so many transfers. BYTES, such as 64M: after "
	  "so many bytes. ttmon advise --live shows the advice.",
	  CALL(take_pin_after), .words = "gain first 16 64M", .rare = true },
	{ "cold-after", 0, "SECONDS", "live advice: cold without transfers so long (10)",
	  "Pinned memory without a transfer for so long gets the advice unpin, or cold where the GPU may "
	  "read it in place. 1 to 86400.",
	  NUMBER(live_cold_s, 1, 86400), .rare = true },
	{ "slots-out", 0, "FILE", "write each 1 ms slot: who used the CPUs, caches",
	  "Rows of every process in every slot; read by ttmon slots. A name ending in .gz is compressed.",
	  TEXT(slots_out, ":file") },
	{ "memtrace", 0, NULL, "read memory accesses of GPU kernels",
	  "Reads the accesses of programs that have loaded libttmon-memtrace.so (see ttmon-memtrace(1)); "
	  "CMD loads it. The history then shows which allocations kernels read and write in place, and "
	  "pinned memory that a kernel reads is not cold.",
	  FLAG(memtrace), .rare = true },
	{ "memtrace-out", 0, "FILE", "and write them to FILE, for ttmon memtrace",
	  "Writes each access of a warp in the format of ttmon memtrace convert (.ttmt). Implies "
	  "--memtrace. For runs that end: names are kept until the end, and those of one program take at "
	  "most a quarter of the room that is left.",
	  TEXT(memtrace_out, ":file"), GIVEN(memtrace) },
	{ "memtrace-socket", 0, "PATH", "programs come here (/run/ttmond/memtrace.sock), or none",
	  "TTMON_MEMTRACE_SOCKET names the socket for the library. With -- CMD and without this option the "
	  "daemon makes a private socket. Implies --memtrace; none means that no memory accesses are read.",
	  TEXT(memtrace_socket, ":file"), GIVEN(memtrace), .rare = true },
	{ "cpu", 0, "on|off", "measure who uses the CPUs, system-wide",
	  "At every context switch: time, and, where the host has hardware counters, cycles, instructions "
	  "and misses of the last-level cache. On by default for the service and with --slots-out or "
	  "--rmid; off for runs with a target.",
	  WORD(cpu, "off on"), GIVEN(cpu_given), .rare = true },
	{ "rmid", 0, "FROM", "auto, module, resctrl, emulated, off (auto)",
	  "Where RMIDs (resource monitoring ids) come from, and with them cache occupancy and memory "
	  "bandwidth. module: a kernel module assigns them to processes (kmod/). resctrl: monitoring groups "
	  "of the kernel. emulated: numbers without readings. auto: the first of these that is available. "
	  "It is an error to select one that is not available.",
	  WORD(rmid, "off module resctrl emulated auto"), GIVEN(rmid_given), .rare = true },
	{ "rmid-group", 0, "BY", "resctrl groups by process or cgroup (process)", NULL,
	  WORD(rmid_by_cgroup, "process cgroup"), .rare = true },
	{ "rdt-rate", 0, "HZ", "readings of resctrl a second, 1-10 (4)", NULL, NUMBER(rdt_hz, 1, 10), .rare = true },
	{ "resctrl-root", 0, "DIR", "resctrl is here (/sys/fs/resctrl)", NULL, TEXT(resctrl_root, ":dir"),
	  .rare = true },
	{ "rmid-events", 0, "SYSTEM[:PREFIX]", "the module's tracepoints",
	  "By default memory_collector, with and without the prefix memory_collector_ of older versions.",
	  TEXT(rmid_events, NULL), .rare = true },
	{ "shm-slots", 0, "N", "slots in /dev/shm/ttmon.v1, 0 is none (128)",
	  "For local readers, see include/ttmon/shm.h. Runs with a target make none unless this is given.",
	  NUMBER(shm_slots, 0, 4096), GIVEN(shm_given), .rare = true },
	{ "tt-shm-version", 0, "N", "tt_device_*_memory files: 1-4, off (1)",
	  "Layout of the files in /dev/shm that publish the memory of each Tenstorrent chip. 1: the layout "
	  "that tt_smi reads; files are named by board id and location, and every user may read them. 2 to "
	  "4: the layouts of tt-metal; files are named by the chip's unique id and belong to the program's "
	  "user. Nothing is written for a program that publishes by itself; tt-metal's switches "
	  "(TT_METAL_SHM_STATS_ENABLED, TT_METAL_SHM_STATS_PER_PID, TT_METAL_SHM_TRACKING_DISABLED) control "
	  "that. ttmond sees a program's memory whatever these switches are, and its files always have an "
	  "entry for each process. off: no files. By default runs with --pid, -- CMD, --dump-db, "
	  "--trace-out or --replay write none.",
	  WORD(tt_shm_version, "off 1 2 3 4"), GIVEN(tt_shm_given), .rare = true },
	{ "tt-dispatch", 0, "MODE", "Tenstorrent dispatches: auto, on, off (auto)",
	  "auto: functions whose probe would have to be single-stepped, which makes it about ten times as "
	  "expensive, are left out.",
	  WORD(tt_dispatch, "auto on off"), .rare = true },
	{ "tt-ioctl", 0, NULL, "pins of tt-kmd by system-call tracepoint",
	  "Where the kernel has no kprobes. Costs every system call of every process on the host 10 to 65 ns.",
	  FLAG(tt_ioctl), .rare = true },
	{ "nvidia-pins", 0, NULL, "count pins of NVIDIA's kernel module",
	  "Kprobes at functions of the module nvidia that pin, allocate and map host memory. They count "
	  "calls, failures and pages of the whole host, for ttmon status, /v1/status and the metrics. Where "
	  "the kernel has no kprobes or the module is not loaded, a log line says so and tracing continues "
	  "without them.",
	  FLAG(nvidia_pins), .rare = true },
	{ "sysfs-root", 0, "DIR", "chips are read from here (/sys)", NULL, TEXT(sysfs_root, ":dir"), .rare = true },
	{ "proc-root", 0, "DIR", "and /proc/driver/tenstorrent from here", NULL, TEXT(proc_root, ":dir"),
	  .rare = true },
	{ "shm-root", 0, "DIR", "tt_device files go here (/dev/shm)", NULL, TEXT(shm_root, ":dir"), .rare = true },
	{ "socket", 's', "PATH", "local socket, or none",
	  "By default " TTMON_SOCKET
	  "; with --pid, -- CMD, --dump-db, --trace-out, --slots-out or --replay there is no socket by "
	  "default.",
	  TEXT(socket, ":file"), GIVEN(socket_given) },
	{ "listen-address", 'l', "ADDR", "HOST:PORT for metrics, or none (127.0.0.1:9843)",
	  "Repeatable. Serves /metrics, /healthz and /v1/status: sums alone, unencrypted, for everyone who "
	  "can reach the port. Runs with a target do not listen by default. With --replay the recording is "
	  "played at its own pace, and the daemon stays. If another process has the address, a service "
	  "continues without it, says whose it is (log, ttmon status), and takes it when it becomes free. "
	  "Until then others read what that process serves there. systemd can hold the port from the boot on "
	  "(ListenStream=127.0.0.1:9843 in ttmond.socket, with --listen-address none).",
	  CALL(take_listen), .words = TTMON_LISTEN " none" },
	{ "group-by", 0, "BY", "label of metrics: comm, cgroup, unit, container, pod",
	  "What processes are summed up by in metrics, comm by default.", WORD(group_by, GROUP_WORDS), .rare = true },
	{ "series", 0, "N", "names with series of their own, 0-1000 (20)",
	  "The names that moved most bytes get series of their own, and for CPU time those that used most. "
	  "All others are summed up under the name other.",
	  NUMBER(series, 0, 1000), .rare = true },
	{ "series-linger", 0, "SECONDS", "series of the dead stay, 1-86400 (120)", NULL, NUMBER(linger_s, 1, 86400),
	  .rare = true },
	{ "max-overhead", 0, "PERCENT", "budget, of the host's CPU time (1)",
	  "By default 1 percent of the host's CPU time, or 5 percent of one CPU where that is more. When "
	  "the mean over ten seconds is higher, a family of probes is reduced: it then only counts calls. "
	  "If one process makes most of the calls, only that process is reduced. Transfers are reduced "
	  "last, allocations never. A reduced family returns to full tracing when the budget allows. Of the "
	  "copies of a process that is reduced alone, one in 64 is still reported, and the database has an "
	  "estimate with its error. 0: no budget, and no statistics of BPF programs, which cost 20 to 50 ns "
	  "a run.",
	  TTMON_CLI_FRACTION(T, max_overhead, 0, 0, 100), GIVEN(overhead_given) },
	{ "log-level", 0, "LEVEL", "error, warn, info, debug (info)", NULL, CALL(take_log_level),
	  .words = "error warn info debug" },
	{ "quiet", 'q', NULL, "no live line and no summary", NULL, FLAG(quiet) },
	{ "version", 'V', NULL, "version", NULL, CALL(take_version) },
};
#undef X

/* Checks for options that exclude each other before anything is started. */
static int consistent(const struct ttmon_cli *cli, struct ttmon_opts *o)
{
	bool run;

	/* auto is a word of the command line, but no backend. */
	if (o->rmid == TTMON_RMID_BACKEND_MAX)
		o->rmid = TTMON_RMID_AUTO;
	if (o->socket && !strcmp(o->socket, "none"))
		o->socket = NULL;
	if (o->memtrace_socket && !strcmp(o->memtrace_socket, "none")) {
		if (o->memtrace_out)
			return ttmon_cli_bad(
				cli, "--memtrace-out needs a socket: --memtrace-socket none and it do not go together");
		o->memtrace_socket = NULL;
		o->memtrace = false;
	}
	run = o->nr_pids || o->cmd || o->dump_db || o->replay || o->trace_out || o->slots_out;

	if (o->cmd && o->nr_pids)
		return ttmon_cli_bad(cli, "--pid and -- CMD do not go together");
	if (o->replay && (o->cmd || o->nr_pids || o->record))
		return ttmon_cli_bad(cli, "--replay takes no target and no --record");
	if (o->replay && o->memtrace)
		return ttmon_cli_bad(
			cli, "--replay reads no memory accesses: what was recorded of them is in the recording");
	if (o->no_mmap && o->trace_mmap)
		return ttmon_cli_bad(cli, "--no-mmap and --trace-mmap do not go together");
	if (o->copy_results && o->no_returns)
		return ttmon_cli_bad(cli, "--copy-results and --no-return-probes do not go together");
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
		return ttmon_cli_bad(cli, "--rmid needs --cpu on");
	if (!o->cpu_given)
		o->cpu = !o->replay && (!run || o->slots_out || (o->rmid_given && o->rmid != TTMON_RMID_OFF));
	return 0;
}

static const struct ttmon_cli_cmd ttmond = {
	.name = "ttmond",
	.logs = true,
	.args = "[OPTIONS] [-- CMD ARGS...]       no target: the whole host",
	.about = "Trace CUDA and Tenstorrent memory: who allocates, pins and moves it.",
	.notes = "Examples:\n"
		 "  ttmond --dump-db out.json -- python3 train.py  one program, every call\n"
		 "  ttmond --pid 4711 --pid 4712                   programs that run already\n"
		 "  ttmond --replay trace.rec --dump-db out.json   the same database again\n"
		 "  ttmon db show out.json                         read it",
	TTMON_CLI_OPTS(table),
	.defaults = &(const T){ .ring_kib = 4096,
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
				.look_ahead = true },
	.size = sizeof(T),
	.max_words = -1,
	.stops = true,
	.more_name = "metrics",
};

int ttmon_opts_parse(int argc, char **argv, void (*metrics)(FILE *f), struct ttmon_opts *opts)
{
	struct ttmon_cli_cmd cmd = ttmond;
	struct ttmon_cli cli;
	int err;

	cmd.more = metrics;
	err = ttmon_cli_parse(&cmd, argc, argv, opts, &cli);
	if (err)
		return err;
	/* Options end at the first word; only "--" makes it a command. */
	if (cli.nr_words && !cli.dashes)
		return ttmon_cli_bad(&cli, "unexpected argument \"%s\": a command to run follows --", cli.words[0]);
	/* A script's empty variable after -- must not trace the whole host. */
	if (cli.dashes && !cli.nr_words)
		return ttmon_cli_bad(&cli, "-- needs a command to run");
	opts->cmd = cli.nr_words ? cli.words : NULL;
	return consistent(&cli, opts);
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
