// SPDX-License-Identifier: GPL-2.0-only
/*
 * cmd_status.c: `ttmon status`: GET /v1/status, for people: one line that says whether all is well,
 * which the exit status follows, then what people look for; the rest with -v. FAILED is an accounting
 * that does not add up: every event must be accounted for, and the figures of a daemon that lost count
 * are worth nothing.
 */
#include "lib/os/clock.h"
#include "lib/read/client.h"
#include "tools/cli/cmds.h"
#include "tools/cli/show.h"

static void label(const char *name)
{
	printf("  %-12s ", name);
}

/* Prints a count with its name, such as "1,234 decoded". */
static void counted(const json_t *root, const char *where, const char *what)
{
	char buf[TTMON_FMT_LEN];

	printf("%s %s", ttmon_fmt_count(buf, sizeof(buf), ttmon_show_u64(root, where)), what);
}

static void clean(const char *text)
{
	_cleanup_free_ char *copy = ttmon_show_clean(text);

	fputs(copy ? copy : "?", stdout);
}

/* Returns the state of a family that is not on; NULL: it is on, or the service does not report it. */
static const json_t *not_on(const json_t *root, const char *family)
{
	const json_t *f = json_object_get(ttmon_show_at(root, "families"), family);

	return json_is_object(f) && strcmp(ttmon_show_str(f, "state"), "on") != 0 ? f : NULL;
}

static void since(const json_t *family, const char *where)
{
	/* The socket is a local one, so the service has the same clock. */
	int64_t offset = (int64_t)(ttmon_clock_ns(CLOCK_REALTIME) - ttmon_mono_ns());
	char buf[TTMON_SHOW_TIME];

	if (ttmon_show_u64(family, where))
		printf(" since %s", ttmon_show_time(ttmon_show_u64(family, where), offset, buf));
}

/* Prints "transfer is counting since 12:03:11 (budget)". */
static void why_not(const char *name, const json_t *family)
{
	clean(name);
	printf(" is ");
	clean(ttmon_show_str(family, "state"));
	since(family, "from_ns");
	if (*ttmon_show_str(family, "why")) {
		printf(" (");
		clean(ttmon_show_str(family, "why"));
		putchar(')');
	}
}

/* Prints a name or a number from the list of targets. */
static void scalar(const json_t *value)
{
	if (json_is_integer(value))
		printf("%lld", (long long)json_integer_value(value));
	else if (json_is_string(value))
		clean(json_string_value(value));
	else
		putchar('?');
}

static void show_head(const json_t *root)
{
	const json_t *targets = ttmon_show_at(root, "targets"), *one;
	const size_t most = 8;
	char buf[TTMON_FMT_LEN];
	size_t i;

	printf("ttmond ");
	clean(ttmon_show_str(root, "version"));
	printf(", up %s\n", ttmon_fmt_ns(buf, sizeof(buf), ttmon_show_u64(root, "uptime_ns")));
	label("traces");
	clean(ttmon_show_str(root, "mode"));
	json_array_foreach(targets, i, one)
	{
		if (i == most) {
			printf(" and %zu more", json_array_size(targets) - most);
			break;
		}
		printf("%s", i ? ", " : ": ");
		scalar(one);
	}
	putchar('\n');
}

/* Shows what was requested and is not available. */
static void show_degraded(const json_t *root)
{
	const json_t *one;
	size_t i;

	json_array_foreach(ttmon_show_at(root, "degraded"), i, one)
	{
		label(i ? "" : "DEGRADED");
		printf("%swithout ", ttmon_show_escape(TTMON_SHOW_BAD));
		clean(ttmon_show_str(one, "what"));
		since(one, "since_ns");
		printf(": ");
		clean(ttmon_show_str(one, "why"));
		printf("%s\n", ttmon_show_escape(TTMON_SHOW_PLAIN));
	}
}

static void show_lost(const json_t *root)
{
	const char *sep = ttmon_show_escape(TTMON_SHOW_BAD);
	json_t *lost = (json_t *)ttmon_show_at(root, "events.lost"), *value;
	char buf[TTMON_FMT_LEN];
	const char *reason;
	bool any = false;

	label("lost");
	json_object_foreach(lost, reason, value)
	{
		if (!json_is_integer(value) || json_integer_value(value) <= 0)
			continue;
		printf("%s%s ", sep, ttmon_fmt_count(buf, sizeof(buf), (uint64_t)json_integer_value(value)));
		clean(reason);
		sep = ", ";
		any = true;
	}
	printf("%s\n", any ? ttmon_show_escape(TTMON_SHOW_PLAIN) : "nothing");
}

static void show_events(const json_t *root)
{
	char buf[TTMON_FMT_LEN];

	label("events");
	counted(root, "events.decoded", "decoded, ");
	counted(root, "events.late", "late, ");
	counted(root, "identity.malformed", "malformed\n");
	show_lost(root);
	label("slots");
	counted(root, "slots.closed", "closed, ");
	counted(root, "slots.published", "published, ");
	if (ttmon_show_u64(root, "slots.unpublished"))
		counted(root, "slots.unpublished", "not published, ");
	counted(root, "slots.dropped", "dropped, ");
	counted(root, "slots.forced", "forced\n");
	label("window");
	counted(root, "window.slots", "slots, watermark ");
	printf("%s behind\n", ttmon_fmt_ns(buf, sizeof(buf), ttmon_show_u64(root, "window.watermark_lag_ns")));
}

static void pages(const json_t *root, const char *where, const char *what, bool least)
{
	uint64_t n = ttmon_show_u64(root, where);
	char count_buf[TTMON_FMT_LEN], bytes_buf[TTMON_FMT_LEN];

	/* A lower bound of 0 says nothing. */
	if (json_is_null(ttmon_show_at(root, where)) || (least && !n)) {
		printf("- %s, ", what);
		return;
	}

	/* The socket is a local one, so the service has the same page size. */
	printf("%s%s (%s pages) %s, ", least ? ">=" : "",
	       ttmon_fmt_bytes(bytes_buf, sizeof(bytes_buf), n * (uint64_t)sysconf(_SC_PAGESIZE)),
	       ttmon_fmt_count(count_buf, sizeof(count_buf), n), what);
}

/* Shows what the functions of NVIDIA's module did (--nvidia-pins), one line each. */
static void show_nvidia(const json_t *functions)
{
	bool counted_ever = false;
	const json_t *f;
	size_t i;

	json_array_foreach(functions, i, f) counted_ever |= !*ttmon_show_str(f, "reason") || ttmon_show_u64(f, "calls");
	if (json_array_size(functions) && !counted_ever) {
		label("nvidia");
		printf("not counted: ");
		clean(ttmon_show_str(json_array_get(functions, 0), "reason"));
		putchar('\n');
		return;
	}
	json_array_foreach(functions, i, f)
	{
		const char *unit = json_object_get(f, "pages") ? "pages" : "bytes",
			   *reason = ttmon_show_str(f, "reason");
		uint64_t calls = ttmon_show_u64(f, "calls"), returned = ttmon_show_u64(f, "returned");
		char buf[TTMON_FMT_LEN];

		label(i ? "" : "nvidia");
		clean(ttmon_show_str(f, "function"));
		printf(" %s calls", ttmon_fmt_count(buf, sizeof(buf), calls));
		printf(", %s failed", ttmon_fmt_count(buf, sizeof(buf), ttmon_show_u64(f, "failed")));
		if (json_object_get(f, unit))
			printf(", %s %s", ttmon_fmt_count(buf, sizeof(buf), ttmon_show_u64(f, unit)), unit);
		if (calls > returned)
			printf(", %s not seen to return", ttmon_fmt_count(buf, sizeof(buf), calls - returned));
		if (*reason) {
			printf(" (not counted: ");
			clean(reason);
			putchar(')');
		}
		putchar('\n');
	}
}

/* Shows the kernel's count of pinned pages, and whether it is consistent with the line above. */
static void show_kernel_pins(const json_t *k)
{
	const char *verdict = ttmon_show_str(k, "verdict");
	bool odd = *verdict && strcmp(verdict, "agrees") && strcmp(verdict, "nothing");
	char buf[TTMON_FMT_LEN];

	if (!json_is_object(k))
		return;
	label("kernel");
	if (json_is_object(ttmon_show_at(k, "foll_pin_pages")))
		counted(k, "foll_pin_pages.held", "pages held by pin_user_pages() (nr_foll_pin, whole host)");
	else
		printf("no count of pinned pages");
	putchar('\n');
	show_nvidia(ttmon_show_at(k, "nvidia.functions"));
	if (!strcmp(verdict, "nothing"))
		return;
	label("");
	counted(k, "processes", "processes that pin: ");
	printf("VmPin %s, ", ttmon_fmt_bytes(buf, sizeof(buf), ttmon_show_u64(k, "vm_pin_bytes")));
	printf("RssShmem %s", ttmon_fmt_bytes(buf, sizeof(buf), ttmon_show_u64(k, "rss_shmem_bytes")));
	printf(" (%s allocated, ", ttmon_fmt_bytes(buf, sizeof(buf), ttmon_show_u64(k, "allocated_bytes")));
	printf("%s registered)\n", ttmon_fmt_bytes(buf, sizeof(buf), ttmon_show_u64(k, "registered_bytes")));
	label("");
	printf("%s", odd ? ttmon_show_escape(TTMON_SHOW_WARN) : "");
	clean(ttmon_show_str(k, "note"));
	printf("%s\n", odd ? ttmon_show_escape(TTMON_SHOW_PLAIN) : "");
}

/* What the kernel says, where that and the figures of the trace cannot both be true. */
static void show_kernel_contradiction(const json_t *k)
{
	const char *verdict = ttmon_show_str(k, "verdict");

	if (!*verdict || !strcmp(verdict, "agrees") || !strcmp(verdict, "nothing"))
		return;
	label("kernel");
	printf("%s", ttmon_show_escape(TTMON_SHOW_WARN));
	clean(ttmon_show_str(k, "note"));
	printf("%s\n", ttmon_show_escape(TTMON_SHOW_PLAIN));
}

/* Memory accesses of GPU kernels. */
static void show_memtrace(const json_t *m)
{
	if (!json_is_object(m))
		return;
	label("accesses");
	counted(m, "channels", "contexts now, ");
	counted(m, "channels_seen", "ever, ");
	counted(m, "records", "requests, ");
	counted(m, "dropped", "dropped");
	if (ttmon_show_u64(m, "malformed"))
		counted(m, "malformed", "not understood");
	putchar('\n');
}

/* Shows files only if some could not be read because their filesystem hangs. */
static void show_files(const json_t *f)
{
	uint64_t unread = ttmon_show_u64(f, "unread"), late = ttmon_show_u64(f, "late");

	if (!unread && !late)
		return;
	label("files");
	printf("%llu could not be read, and %llu of %llu processes that read them are blocked: see ttmon probes\n",
	       (unsigned long long)unread, (unsigned long long)late, (unsigned long long)ttmon_show_u64(f, "helpers"));
}

static void show_memory(const json_t *root, bool verbose)
{
	/* The families that report memory in use. */
	static const char *const tell[] = { "alloc", "tenstorrent" };
	bool least = ttmon_show_bool(root, "pinned.at_least");
	char buf[TTMON_FMT_LEN];

	label("pinned");
	pages(root, "pinned.now_pages", "now", least);
	pages(root, "pinned.peak_pages", "peak", least);
	if (json_is_null(ttmon_show_at(root, "pinned.pins"))) {
		printf("- pins");
	} else {
		printf("%s", least ? ">=" : "");
		counted(root, "pinned.pins", "pins");
	}
	for (size_t i = 0; i < ARRAY_SIZE(tell); i++) {
		if (!not_on(root, tell[i]))
			continue;
		printf("; ");
		why_not(tell[i], not_on(root, tell[i]));
	}
	putchar('\n');
	if (verbose)
		show_kernel_pins(ttmon_show_at(root, "kernel_pins"));
	else
		show_kernel_contradiction(ttmon_show_at(root, "kernel_pins"));
	show_memtrace(ttmon_show_at(root, "memtrace"));
	show_files(ttmon_show_at(root, "files"));
	label("known");
	counted(root, "processes", "processes, ");
	if (json_is_null(ttmon_show_at(root, "allocations")))
		printf("- allocations\n");
	else
		counted(root, "allocations", "allocations\n");
	if (!verbose)
		return;
	label("rings");
	printf("%s, ", ttmon_fmt_bytes(buf, sizeof(buf), ttmon_show_u64(root, "rings.bytes")));
	counted(root, "rings.cpus", "CPUs\n");
}

static void show_tenstorrent(const json_t *root)
{
	json_t *flags = (json_t *)ttmon_show_at(root, "tenstorrent.flags"), *value;
	const char *name;

	if (!json_is_object(ttmon_show_at(root, "tenstorrent")))
		return;
	label("tenstorrent");
	counted(root, "tenstorrent.chips", "chips, ");
	counted(root, "tenstorrent.processes", "processes; files: ");
	counted(root, "tenstorrent.published", "published, ");
	counted(root, "tenstorrent.foreign", "foreign, ");
	counted(root, "tenstorrent.refused", "refused\n");
	json_object_foreach(flags, name, value)
	{
		label("");
		printf("%s%lld %s %s%s\n", ttmon_show_escape(TTMON_SHOW_WARN), (long long)json_integer_value(value),
		       json_integer_value(value) == 1 ? "process:" : "processes:", name,
		       ttmon_show_escape(TTMON_SHOW_PLAIN));
	}
}

/* Prints "sample_on_free" as words. */
static void odd_name(const char *name)
{
	_cleanup_free_ char *copy = ttmon_show_clean(name);

	for (char *p = copy; p && *p; p++)
		if (*p == '_')
			*p = ' ';
	fputs(copy ? copy : "?", stdout);
}

/* Shows families that are on now but were not on all the time. */
static void show_gaps(const json_t *root)
{
	json_t *families = (json_t *)ttmon_show_at(root, "families"), *f;
	char buf[TTMON_FMT_LEN];
	const char *name;

	json_object_foreach(families, name, f)
	{
		if (not_on(root, name) || !(ttmon_show_u64(f, "off_ns") || ttmon_show_u64(f, "missed")))
			continue;
		label("seen");
		clean(name);
		printf(": all of it");
		since(f, "seen_since_ns");
		if (ttmon_show_u64(f, "off_ns"))
			printf("; nothing of it for %s", ttmon_fmt_ns(buf, sizeof(buf), ttmon_show_u64(f, "off_ns")));
		putchar('\n');
	}
}

/* Shows users of whose data less was kept because they had the most. */
static void show_quotas(const json_t *root)
{
	const json_t *q;
	size_t i;

	json_array_foreach(ttmon_show_at(root, "quotas"), i, q)
	{
		label(i ? "" : "made room");
		if (json_is_null(ttmon_show_at(q, "uid")))
			printf("a user that is not known: ");
		else
			printf("user %llu: ", (unsigned long long)ttmon_show_u64(q, "uid"));
		counted(q, "paid", "");
		clean(ttmon_show_str(q, "what"));
		if (ttmon_show_u64(q, "pid"))
			printf(", the last of process %llu", (unsigned long long)ttmon_show_u64(q, "pid"));
		putchar('\n');
	}
}

/* Shows one process or one user that the budget has reduced individually. */
static void show_reduced(const json_t *one, bool first)
{
	label(first ? "reduced alone" : "");
	clean(ttmon_show_str(one, "family"));
	if (ttmon_show_at(one, "pid")) {
		printf(" of process %llu (", (unsigned long long)ttmon_show_u64(one, "pid"));
		clean(ttmon_show_str(one, "comm"));
		printf(")");
	} else {
		printf(" of user %llu", (unsigned long long)ttmon_show_u64(one, "uid"));
	}
	printf(" is only counted (budget)");
	if (ttmon_show_u64(one, "sampled"))
		printf(", one in %llu is reported", (unsigned long long)ttmon_show_u64(one, "sampled"));
	putchar('\n');
}

/* Shows the families that report less than they could, and why. */
static void show_families(const json_t *root)
{
	json_t *reduced = (json_t *)ttmon_show_at(root, "reduced"), *one;
	const json_t *budget = ttmon_show_at(root, "budget");
	bool over = ttmon_show_bool(budget, "over");
	const char *name, *sep = "";
	const json_t *p;
	size_t i;

	if (json_object_size(reduced)) {
		label("reduced");
		printf("%s", ttmon_show_escape(TTMON_SHOW_BAD));
		json_object_foreach(reduced, name, one)
		{
			printf("%s", sep);
			clean(name);
			printf(" ");
			clean(ttmon_show_str(one, "state"));
			since(not_on(root, name), "from_ns");
			printf(" (");
			clean(ttmon_show_str(one, "why"));
			printf(")");
			sep = ", ";
		}
		printf("%s\n", ttmon_show_escape(TTMON_SHOW_PLAIN));
	}
	show_gaps(root);
	if (!json_is_object(budget))
		return;
	label("overhead");
	printf("%s%.2f %%%s of %g %% of the host's CPU time%s\n", over ? ttmon_show_escape(TTMON_SHOW_BAD) : "",
	       json_number_value(ttmon_show_at(budget, "percent")), over ? ttmon_show_escape(TTMON_SHOW_PLAIN) : "",
	       json_number_value(ttmon_show_at(budget, "max_percent")),
	       over ? ", but nothing is left that could be reduced" : "");
	json_array_foreach(ttmon_show_at(budget, "processes"), i, p) show_reduced(p, !i);
	json_array_foreach(ttmon_show_at(budget, "users"), i, p) show_reduced(p, !i);
}

/* Shows whether the CPU time of each slot adds up to CPUs x 1 ms, and how much is missing. */
static void show_exact(const json_t *cpu, const char *until)
{
	uint64_t slots = ttmon_show_u64(cpu, "slots"), exact = ttmon_show_u64(cpu, "exact");
	uint64_t missing = ttmon_show_u64(cpu, "missing_ns");
	char buf[TTMON_FMT_LEN];

	printf("%s", ttmon_show_escape(exact == slots ? TTMON_SHOW_GOOD : TTMON_SHOW_BAD));
	counted(cpu, "exact", "of ");
	counted(cpu, "slots", until);
	printf("%s, %s%s missing%s\n", ttmon_show_escape(TTMON_SHOW_PLAIN),
	       missing ? ttmon_show_escape(TTMON_SHOW_BAD) : "",
	       missing ? ttmon_fmt_ns(buf, sizeof(buf), missing) : "nothing",
	       missing ? ttmon_show_escape(TTMON_SHOW_PLAIN) : "");
}

static void show_cpu(const json_t *root, bool verbose)
{
	const json_t *cpu = ttmon_show_at(root, "cpu"), *off = not_on(root, "cpu");

	if (!cpu)
		return;
	label("cpu time");
	if (!json_is_object(cpu)) {
		printf("not measured\n");
		return;
	}
	if (off) {
		printf("not measured: ");
		why_not("cpu", off);
		putchar('\n');
		if (ttmon_show_u64(cpu, "slots")) {
			label("");
			show_exact(cpu, "slots until then add up exactly");
		}
	} else {
		if (json_is_null(ttmon_show_at(cpu, "cpus")))
			printf("- CPUs, ");
		else
			counted(cpu, "cpus", "CPUs, ");
		show_exact(cpu, "slots add up exactly");
	}
	if (!verbose)
		return;
	label("");
	counted(cpu, "switches", "switches, ");
	counted(cpu, "processes", "processes; ");
	if (ttmon_show_bool(cpu, "counters")) {
		printf("with counters");
		if (ttmon_show_u64(cpu, "counter_read_fails")) {
			printf(", ");
			counted(cpu, "counter_read_fails", "of their readings failed");
		}
	} else {
		printf("no counters");
		if (*ttmon_show_str(cpu, "counters_reason"))
			printf(": ");
		clean(ttmon_show_str(cpu, "counters_reason"));
	}
	putchar('\n');
}

/* Shows counts that should be 0 and are not. */
static void show_cpu_odd(const json_t *root)
{
	static const struct {
		const char *name, *help;
		bool is_time;
	} odd[] = {
		{ "gaps", "gaps in the reports of a CPU", false },
		{ "overlaps", "overlaps in the reports of a CPU", false },
		{ "clock_backwards", "times a clock went back", false },
		{ "switches_unseen", "switches that the kernel hides from tracers, placed by its own accounts", false },
		{ "mismatch_ns", "contradict earlier reports", true },
		{ "late_ns", "came too late for their slot", true },
		{ "processes_dropped", "processes found no room", false },
		{ "records_dropped", "records made no sense or found no room", false },
	};
	const json_t *cpu = ttmon_show_at(root, "cpu");
	char buf[TTMON_FMT_LEN];

	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		uint64_t n = ttmon_show_u64(cpu, odd[i].name);

		if (!n)
			continue;
		label("");
		printf("%s%s %s%s\n", ttmon_show_escape(TTMON_SHOW_WARN),
		       odd[i].is_time ? ttmon_fmt_ns(buf, sizeof(buf), n) : ttmon_fmt_count(buf, sizeof(buf), n),
		       odd[i].help, ttmon_show_escape(TTMON_SHOW_PLAIN));
	}
}

static void show_rmids(const json_t *root)
{
	const json_t *rmid = ttmon_show_at(root, "rmid"), *value;
	const char *backend = ttmon_show_str(rmid, "backend"), *reason = ttmon_show_str(rmid, "reason"), *name;
	char buf[TTMON_FMT_LEN];

	if (!json_is_object(rmid))
		return;
	label("RMIDs");
	clean(backend);
	if (*ttmon_show_str(rmid, "source")) {
		printf(" (");
		clean(ttmon_show_str(rmid, "source"));
		putchar(')');
	}
	if (strcmp(backend, "off") != 0) {
		printf(": ");
		counted(rmid, "in_use", "of ");
		counted(rmid, "max_rmid", "in use, peak ");
		printf("%s; ", ttmon_fmt_count(buf, sizeof(buf), ttmon_show_u64(rmid, "peak")));
		counted(rmid, "readings", "readings");
		if (ttmon_show_u64(rmid, "failed_readings")) {
			printf(", ");
			counted(rmid, "failed_readings", "failed");
		}
		if (json_is_integer(ttmon_show_at(rmid, "mbm_total_bytes")))
			printf(", %s of memory traffic",
			       ttmon_fmt_bytes(buf, sizeof(buf), ttmon_show_u64(rmid, "mbm_total_bytes")));
	}
	putchar('\n');
	if (*reason) {
		label("");
		printf("%s", ttmon_show_escape(TTMON_SHOW_WARN));
		clean(reason);
		printf("%s\n", ttmon_show_escape(TTMON_SHOW_PLAIN));
	}
	json_object_foreach((json_t *)ttmon_show_at(rmid, "odd"), name, value)
	{
		if (!json_is_integer(value) || json_integer_value(value) <= 0)
			continue;
		label("");
		printf("%s%s ", ttmon_show_escape(TTMON_SHOW_WARN),
		       ttmon_fmt_count(buf, sizeof(buf), (uint64_t)json_integer_value(value)));
		odd_name(name);
		printf("%s\n", ttmon_show_escape(TTMON_SHOW_PLAIN));
	}
}

static void show_recording(const json_t *root)
{
	const json_t *recording = ttmon_show_at(root, "recording");
	char buf[TTMON_FMT_LEN];

	if (!json_is_object(recording))
		return;
	label("recording");
	counted(recording, "records", "records, ");
	counted(recording, "dropped", "dropped, ");
	printf("%s written\n", ttmon_fmt_bytes(buf, sizeof(buf), ttmon_show_u64(recording, "file_bytes")));
}

static void show_call_stacks(const json_t *root)
{
	const json_t *stacks = ttmon_show_at(root, "call_stacks");
	bool on = json_is_true(json_object_get(stacks, "unwinding"));

	/* Where stacks are walked by frame pointers there is nothing to show. */
	if (!json_is_object(stacks) || (on && !ttmon_show_u64(stacks, "copied")))
		return;
	label("call stacks");
	counted(stacks, "copied", "copied, ");
	counted(stacks, "found", "found by unwind tables");
	if (ttmon_show_u64(stacks, "lost")) {
		printf(", %s", ttmon_show_escape(TTMON_SHOW_WARN));
		counted(stacks, "lost", "too many to be copied");
		printf("%s", ttmon_show_escape(TTMON_SHOW_PLAIN));
	}
	if (!on)
		printf(", %sno longer unwound%s", ttmon_show_escape(TTMON_SHOW_WARN),
		       ttmon_show_escape(TTMON_SHOW_PLAIN));
	putchar('\n');
}

/* Does the accounting identity hold? */
static void show_identity(const json_t *root)
{
	bool ok = ttmon_show_bool(root, "identity.ok");

	label("accounting");
	printf("%s%s%s", ttmon_show_escape(ok ? TTMON_SHOW_GOOD : TTMON_SHOW_BAD), ok ? "adds up" : "DOES NOT ADD UP",
	       ttmon_show_escape(TTMON_SHOW_PLAIN));
	if (!ok) {
		printf(": ");
		clean(ttmon_show_str(root, "identity.why"));
	}
	putchar('\n');
}

/* ---- the answer ---- */

enum answer { OK, DEGRADED, FAILED };

static uint64_t sum_of_lost(const json_t *root)
{
	json_t *lost = (json_t *)ttmon_show_at(root, "events.lost"), *value;
	uint64_t sum = ttmon_show_u64(root, "slots.dropped");
	const char *reason;

	json_object_foreach(lost, reason, value) if (json_is_integer(value) && json_integer_value(value) > 0) sum +=
		(uint64_t)json_integer_value(value);
	return sum;
}

/* The first family that the budget has reduced; NULL. What a person turned off is as it should be. */
static const char *reduced_by_budget(const json_t *root)
{
	json_t *reduced = (json_t *)ttmon_show_at(root, "reduced"), *one;
	const char *name;

	json_object_foreach(reduced, name, one) if (!strcmp(ttmon_show_str(one, "why"), "budget")) return name;
	return NULL;
}

static enum answer answer_of(const json_t *root)
{
	if (!ttmon_show_bool(root, "identity.ok"))
		return FAILED;
	return json_array_size(ttmon_show_at(root, "degraded")) || sum_of_lost(root) || reduced_by_budget(root) ||
			       ttmon_show_bool(root, "budget.over")
		       ? DEGRADED
		       : OK;
}

static void first_reason(const json_t *root)
{
	const json_t *first = json_array_get(ttmon_show_at(root, "degraded"), 0);
	const char *family = reduced_by_budget(root);
	char buf[TTMON_FMT_LEN];

	if (first) {
		printf("without ");
		clean(ttmon_show_str(first, "what"));
		since(first, "since_ns");
		printf(": ");
		clean(ttmon_show_str(first, "why"));
	} else if (sum_of_lost(root)) {
		printf("%s events or slots were lost: figures are lower bounds",
		       ttmon_fmt_count(buf, sizeof(buf), sum_of_lost(root)));
	} else if (family) {
		why_not(family, not_on(root, family) ? not_on(root, family)
						     : ttmon_show_at(ttmon_show_at(root, "reduced"), family));
	} else {
		printf("tracing costs more than the budget, and nothing that could be reduced would help");
	}
}

static void show_answer(const json_t *root, enum answer answer)
{
	static const struct {
		const char *word;
		enum ttmon_show_colour colour;
	} words[] = { [OK] = { "OK", TTMON_SHOW_GOOD },
		      [DEGRADED] = { "DEGRADED", TTMON_SHOW_WARN },
		      [FAILED] = { "FAILED", TTMON_SHOW_BAD } };

	printf("%s%s%s", ttmon_show_escape(words[answer].colour), words[answer].word,
	       ttmon_show_escape(TTMON_SHOW_PLAIN));
	if (answer == FAILED) {
		printf(": the accounting does not add up, believe no figure");
		if (*ttmon_show_str(root, "identity.why")) {
			printf(": ");
			clean(ttmon_show_str(root, "identity.why"));
		}
	} else if (answer == DEGRADED) {
		printf(": ");
		first_reason(root);
	}
	putchar('\n');
}

static void show_text(const json_t *root, enum answer answer, bool verbose)
{
	show_answer(root, answer);
	show_head(root);
	show_degraded(root);
	if (verbose)
		show_events(root);
	else
		show_lost(root);
	show_memory(root, verbose);
	show_cpu(root, verbose);
	if (verbose) {
		show_cpu_odd(root);
		show_rmids(root);
	}
	show_tenstorrent(root);
	show_families(root);
	show_quotas(root);
	show_recording(root);
	if (verbose) {
		show_call_stacks(root);
		show_identity(root);
	}
}

static int run_status(const struct ttmon_cli *cli, void *ctx)
{
	_cleanup_(ttmon_client_reply_fini) struct ttmon_client_reply reply = { 0 };
	const struct ttmon_show_opts *opts = ctx;
	json_t *root = NULL;
	enum answer answer;

	(void)cli;
	if (ttmon_client_fetch(opts->socket, "/v1/status", &reply) || ttmon_client_json(&reply, &root))
		return TTMON_EXIT_ERROR;
	answer = answer_of(root);
	if (opts->json)
		fwrite(reply.body, 1, reply.len, stdout);
	else
		show_text(root, answer, opts->verbose);
	json_decref(root);
	return answer == OK ? 0 : TTMON_EXIT_NO;
}

static const struct ttmon_cli_opt status_options[] = {
	TTMON_SHOW_ROWS,
	{ "verbose", 'v', NULL, "also how the service works: slots, window, rings, RMIDs, the kernel's figures", NULL,
	  TTMON_CLI_FLAG(struct ttmon_show_opts, verbose) },
};
const struct ttmon_cli_cmd ttmon_cmd_status = {
	.name = "ttmon status",
	.summary = "is the service well? what it traces, what it has lost, what is pinned",
	.args = "[--socket PATH] [--json] [-v]",
	.about = "Says in one line whether the service is well: OK; DEGRADED, what it lacks, since when and why;\n"
		 "FAILED, where its accounting does not add up. Then what it traces, has lost, and what is pinned.",
	.notes = "Exit status: 0 OK, 1 DEGRADED or FAILED, 2 no answer.",
	TTMON_CLI_OPTS(status_options),
	TTMON_SHOW_DEFAULTS,
	.run = run_status,
};
