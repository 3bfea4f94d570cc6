// SPDX-License-Identifier: GPL-2.0-only
/*
 * tt.c: the Tenstorrent part of `ttmon db check` and `ttmon db show`. Each sum is compared with its
 * parts: chips with the devices of processes, programs with their runs, counts of dispatches with the
 * list of single dispatches, slots with both. A list that is marked as incomplete (dropped, limits, a
 * recording that goes on) is not compared.
 */
#include <inttypes.h>
#include <stdarg.h>

#include "tools/db/db_tool.h"
#include "lib/base/fmt.h"

#define MAX_ROWS 8 /* rows shown of each table */

static const char *const types[] = { "dram", "l1", "l1_small", "trace", "cb", "kernel" };
static const char *const kinds[] = { "workload", "trace", "slow", "write", "read", "finish" };

struct check {
	const json_t *tt, *chips, *procs;
	void (*problem)(void *ctx, const char *text);
	void *ctx;
};

static void problem(const struct check *c, const char *fmt, ...) _printf_(2, 3);
static void problem(const struct check *c, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	c->problem(c->ctx, text);
}

/* Returns a cell of a table; the names of the columns stand once, at the head of the table. */
static const json_t *cell(const json_t *table, size_t row, const char *column)
{
	const json_t *columns = json_object_get(table, "columns");

	for (size_t i = 0; i < json_array_size(columns); i++) {
		const char *name = json_string_value(json_array_get(columns, i));

		if (name && strcmp(name, column) == 0)
			return json_array_get(json_array_get(json_object_get(table, "rows"), row), i);
	}
	return NULL;
}

static uint64_t cell_u64(const json_t *table, size_t row, const char *column)
{
	uint64_t value = 0;

	ttmon_db_value(cell(table, row, column), &value);
	return value;
}

/* Adds a value to the sum whose key is two numbers and a word. */
static bool add(json_t *sums, uint64_t a, uint64_t b, const char *what, uint64_t value)
{
	char key[80];
	uint64_t sum;

	snprintf(key, sizeof(key), "%" PRIu64 " %" PRIu64 " %.20s", a, b, what);
	sum = (uint64_t)json_integer_value(json_object_get(sums, key)) + value;
	return json_object_set_new_nocheck(sums, key, json_integer((json_int_t)(sum & INT64_MAX))) == 0;
}

static uint64_t sum_of(const json_t *sums, uint64_t a, uint64_t b, const char *what)
{
	char key[80];

	snprintf(key, sizeof(key), "%" PRIu64 " %" PRIu64 " %.20s", a, b, what);
	return (uint64_t)json_integer_value(json_object_get(sums, key));
}

static bool has_flag(const json_t *obj, const char *flag)
{
	const json_t *flags = json_object_get(obj, "flags");

	for (size_t i = 0; i < json_array_size(flags); i++) {
		const char *name = json_string_value(json_array_get(flags, i));

		if (name && strcmp(name, flag) == 0)
			return true;
	}
	return false;
}

static void check_peak(const struct check *c, const json_t *obj, const char *what, size_t i)
{
	const json_t *bytes = json_object_get(obj, "bytes"), *peak = json_object_get(obj, "peak");

	for (size_t k = 0; k < ARRAY_SIZE(types); k++)
		if (ttmon_db_get(bytes, types[k], 0) > ttmon_db_get(peak, types[k], 0))
			problem(c, "%s %zu: holds more %s than at its peak", what, i, types[k]);
}

static const json_t *chip_by_index(const struct check *c, uint64_t index)
{
	for (size_t i = 0; i < json_array_size(c->chips); i++)
		if (ttmon_db_get(json_array_get(c->chips, i), "index", 0) == index)
			return json_array_get(c->chips, i);
	return NULL;
}

/* Checks that the memory in use on a chip is the sum over the processes. */
static void check_memory(const struct check *c, json_t *sums)
{
	bool ok = true;

	for (size_t i = 0; i < json_array_size(c->procs); i++) {
		const json_t *p = json_array_get(c->procs, i), *devices = json_object_get(p, "devices");

		for (size_t k = 0; k < json_array_size(devices); k++) {
			const json_t *d = json_array_get(devices, k), *bytes = json_object_get(d, "bytes");
			uint64_t chip;

			check_peak(c, d, "Tenstorrent process", i);
			if (!ttmon_db_u64(d, "chip", &chip))
				continue;
			if (!chip_by_index(c, chip))
				problem(c, "Tenstorrent process %zu: chip %" PRIu64 " is not in the list", i, chip);
			for (size_t t = 0; t < ARRAY_SIZE(types); t++)
				ok &= add(sums, chip, has_flag(p, "uncalibrated"), types[t],
					  ttmon_db_get(bytes, types[t], 0));
		}
	}
	for (size_t i = 0; ok && i < json_array_size(c->chips); i++) {
		const json_t *chip = json_array_get(c->chips, i), *bytes = json_object_get(chip, "bytes");
		uint64_t index = ttmon_db_get(chip, "index", 0);

		check_peak(c, chip, "chip", i);
		if (chip_by_index(c, index) != chip)
			problem(c, "chip %zu: its index is there twice", i);
		for (size_t t = 0; t < ARRAY_SIZE(types); t++)
			if (ttmon_db_get(bytes, types[t], 0) != sum_of(sums, index, 0, types[t]))
				problem(c, "chip %" PRIu64 ": %s is not the sum over the processes (%" PRIu64 ")",
					index, types[t], sum_of(sums, index, 0, types[t]));
	}
	if (!ok)
		problem(c, "out of memory");
}

/*
 * Checks the runs and the busy time of each device of a process in three ways: by program, by clock,
 * and run by run.
 */
static void check_runs(const struct check *c, json_t *sums)
{
	const json_t *runs = json_object_get(c->tt, "runs"), *programs = json_object_get(c->tt, "programs");
	size_t n = json_array_size(json_object_get(runs, "rows"));
	bool ok = true;

	for (size_t i = 0; i < n; i++) {
		uint64_t pid = cell_u64(runs, i, "pid"), device = cell_u64(runs, i, "device");
		uint64_t start = cell_u64(runs, i, "start_ns"), end = cell_u64(runs, i, "end_ns");

		if (end < start)
			problem(c, "run %zu: ends before it starts", i);
		ok &= add(sums, pid, device, "rows", 1) && add(sums, pid, device, "rows busy", end - start);
	}
	for (size_t i = 0; i < json_array_size(programs); i++) {
		const json_t *p = json_array_get(programs, i);
		uint64_t pid = ttmon_db_get(p, "pid", 0), device = ttmon_db_get(p, "device", 0);
		uint64_t nr = ttmon_db_get(p, "runs", 0), busy = ttmon_db_get(p, "busy_ns", 0);
		uint64_t min = ttmon_db_get(p, "min_ns", 0), max = ttmon_db_get(p, "max_ns", 0);

		if (!nr || min > max || busy < max || busy / nr > max)
			problem(c,
				"program %zu: %" PRIu64 " runs of %" PRIu64 " to %" PRIu64 " ns do not make %" PRIu64,
				i, nr, min, max, busy);
		ok &= add(sums, pid, device, "runs", nr) && add(sums, pid, device, "busy", busy);
	}
	for (size_t i = 0; ok && i < json_array_size(programs); i++) {
		const json_t *p = json_array_get(programs, i);
		uint64_t pid = ttmon_db_get(p, "pid", 0), device = ttmon_db_get(p, "device", 0);

		if (sum_of(sums, pid, device, "runs") != sum_of(sums, pid, device, "rows") ||
		    sum_of(sums, pid, device, "busy") != sum_of(sums, pid, device, "rows busy")) {
			problem(c, "programs of device %" PRIu64 " of %" PRIu64 " are not the sum of its runs", device,
				pid);
			break;
		}
	}
	if (!ok)
		problem(c, "out of memory");
}

static uint64_t address(const json_t *json)
{
	uint64_t value = 0;

	ttmon_db_value(json, &value);
	return value;
}

/*
 * Checks that the list of dispatches is not longer than their count. It may be shorter: the last
 * dispatches of a burst are only counted.
 */
static void check_dispatches(const struct check *c, json_t *sums)
{
	const json_t *told = json_object_get(c->tt, "dispatched"), *list = json_object_get(c->tt, "dispatches");
	bool ok = true;

	for (size_t i = 0; i < json_array_size(json_object_get(told, "rows")); i++) {
		const char *kind = json_string_value(cell(told, i, "kind"));

		ok &= add(sums, cell_u64(told, i, "pid"), address(cell(told, i, "device")), kind ? kind : "?",
			  cell_u64(told, i, "count"));
	}
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *s = json_array_get(list, i), *count = json_object_get(s, "count");
		char key[32];

		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
			snprintf(key, sizeof(key), "sum %s", kinds[k]);
			ok &= add(sums, ttmon_db_get(s, "pid", 0), ttmon_db_get(s, "device", 0), key,
				  ttmon_db_get(count, kinds[k], 0));
		}
	}
	for (size_t i = 0; ok && i < json_array_size(list); i++) {
		const json_t *s = json_array_get(list, i);
		uint64_t pid = ttmon_db_get(s, "pid", 0), device = ttmon_db_get(s, "device", 0);
		char key[32];

		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
			snprintf(key, sizeof(key), "sum %s", kinds[k]);
			if (sum_of(sums, pid, device, kinds[k]) > sum_of(sums, pid, device, key))
				problem(c, "dispatches of %" PRIu64 ": the list has more %s than their count", pid,
					kinds[k]);
		}
	}
	if (!ok)
		problem(c, "out of memory");
}

static uint64_t all_kinds(const json_t *sum)
{
	uint64_t n = 0;

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		n += ttmon_db_get(json_object_get(sum, "count"), kinds[k], 0);
	return n;
}

/*
 * Checks that the slots add up to all dispatches of a process and to all device time of each device.
 */
static void check_slots(const struct check *c, json_t *sums)
{
	const json_t *slots = json_object_get(c->tt, "slots"), *rows = json_object_get(slots, "rows");
	const json_t *clocks = json_object_get(c->tt, "clocks"), *list = json_object_get(c->tt, "dispatches");
	uint64_t all[2] = { 0 }, slotted[2] = { 0 };
	bool ok = true;

	for (size_t i = 0; i < json_array_size(rows); i++) {
		uint64_t pid = cell_u64(slots, i, "pid"), device = cell_u64(slots, i, "device");
		uint64_t n = cell_u64(slots, i, "dispatches"), busy = cell_u64(slots, i, "busy_ns");

		if (!n && !busy)
			problem(c, "slot row %zu: nothing in it", i);
		slotted[0] += n;
		slotted[1] += busy;
		ok &= (!n || add(sums, pid, 0, "slotted", n)) && (!busy || add(sums, pid, device, "slot busy", busy));
	}
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *s = json_array_get(list, i);

		all[0] += all_kinds(s);
		ok &= add(sums, ttmon_db_get(s, "pid", 0), 0, "dispatched", all_kinds(s));
	}
	for (size_t i = 0; i < json_array_size(clocks); i++) {
		const json_t *k = json_array_get(clocks, i);

		all[1] += ttmon_db_get(k, "busy_ns", 0);
		ok &= add(sums, ttmon_db_get(k, "pid", 0), ttmon_db_get(k, "device", 0), "busy",
			  ttmon_db_get(k, "busy_ns", 0));
	}
	if (!ok) {
		problem(c, "out of memory");
		return;
	}
	for (size_t i = 0; i < json_array_size(list); i++) {
		uint64_t pid = ttmon_db_get(json_array_get(list, i), "pid", 0);
		uint64_t want = sum_of(sums, pid, 0, "dispatched"), got = sum_of(sums, pid, 0, "slotted");

		if (want != got) {
			problem(c, "slots of %" PRIu64 ": %" PRIu64 " dispatches of %" PRIu64, pid, got, want);
			return;
		}
	}
	for (size_t i = 0; i < json_array_size(clocks); i++) {
		const json_t *k = json_array_get(clocks, i);
		uint64_t pid = ttmon_db_get(k, "pid", 0), device = ttmon_db_get(k, "device", 0);
		uint64_t want = sum_of(sums, pid, device, "busy"), got = sum_of(sums, pid, device, "slot busy");

		if (want != got) {
			problem(c, "slots of device %" PRIu64 " of %" PRIu64 ": %" PRIu64 " ns of %" PRIu64, device,
				pid, got, want);
			return;
		}
	}
	/* The slots have rows of a process or device that is in neither list. */
	if (all[0] != slotted[0] || all[1] != slotted[1])
		problem(c, "slots: %" PRIu64 " dispatches of %" PRIu64 ", %" PRIu64 " ns of %" PRIu64, slotted[0],
			all[0], slotted[1], all[1]);
}

/* Returns whether a table is missing or incomplete, so that there is nothing to compare with. */
static bool is_short(const struct check *c, bool of_slots)
{
	const json_t *slots = json_object_get(c->tt, "slots");

	return of_slots ? !slots || ttmon_db_get(slots, "dropped", 0) : ttmon_db_get(c->tt, "dropped", 0) > 0;
}

void ttmon_db_tool_check_tt(const struct ttmon_db *db, bool limited, void (*report)(void *ctx, const char *text),
			    void *ctx)
{
	struct check c = { .tt = ttmon_db_member(db, "tenstorrent"), .problem = report, .ctx = ctx };
	bool cut = json_is_true(json_object_get(ttmon_db_member(db, "completeness"), "cut"));
	static void (*const checks[])(const struct check *c, json_t *sums) = { check_memory, check_runs,
									       check_dispatches, check_slots };

	if (!c.tt)
		return;
	c.chips = json_object_get(c.tt, "chips");
	c.procs = json_object_get(c.tt, "processes");
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
		_cleanup_(ttmon_json_decrefp) json_t *sums = NULL;

		/*
		 * The service forgets the programs and dispatches of ended processes before their runs, so these
		 * tables may be shorter.
		 */
		if (checks[i] != check_memory && (limited || cut || is_short(&c, checks[i] == check_slots)))
			continue;
		sums = json_object();
		if (!sums) {
			problem(&c, "out of memory");
			return;
		}
		checks[i](&c, sums);
	}
}

/* ---- show ---- */

static uint64_t total(const json_t *bytes, bool l1)
{
	return l1 ? ttmon_db_get(bytes, "l1", 0) + ttmon_db_get(bytes, "l1_small", 0) + ttmon_db_get(bytes, "cb", 0)
		  : ttmon_db_get(bytes, "dram", 0) + ttmon_db_get(bytes, "trace", 0) + ttmon_db_get(bytes, "kernel", 0);
}

static void show_use(const json_t *obj)
{
	const json_t *bytes = json_object_get(obj, "bytes"), *peak = json_object_get(obj, "peak");
	const json_t *const of[] = { bytes, peak, bytes, peak };
	bool at_least = json_is_true(json_object_get(obj, "at_least"));
	char text[TTMON_FMT_LEN];

	for (unsigned int i = 0; i < ARRAY_SIZE(of); i++) {
		bool l1 = i >= 2;
		uint64_t sum = total(of[i], l1);

		ttmon_fmt_bytes(text, sizeof(text), sum);
		printf(" %12s",
		       ttmon_fmt_known(text, sizeof(text), text, sum,
				       json_is_integer(json_object_get(of[i], l1 ? "l1" : "dram")) || sum, at_least));
	}
	puts("");
}

static void show_chips(const json_t *tt)
{
	const json_t *chips = json_object_get(tt, "chips");
	size_t idle = 0, shown = 0;

	for (size_t i = 0; i < json_array_size(chips); i++) {
		const json_t *chip = json_array_get(chips, i), *peak = json_object_get(chip, "peak");
		char card[17], arch[13];

		/* A chip of which nothing is known must not be shown as idle. */
		if (!total(peak, false) && !total(peak, true) && !json_is_true(json_object_get(chip, "at_least"))) {
			idle++;
			continue;
		}
		if (!shown++)
			printf("\n%-5s %-12s %-10s %12s %12s %12s %12s\n", "CHIP", "CARD", "ARCH", "DRAM", "PEAK", "L1",
			       "PEAK");
		printf("%-5" PRIu64 " %-12s %-10s", ttmon_db_get(chip, "index", 0),
		       ttmon_fmt_text(card, 13, ttmon_db_str(chip, "card", "")),
		       ttmon_fmt_text(arch, 11, ttmon_db_str(chip, "arch", "?")));
		show_use(chip);
	}
	if (idle)
		printf(shown ? "and %zu chips without memory in use\n" : "\nCHIPS      %zu, without memory in use\n",
		       idle);
}

static void show_process(const json_t *p)
{
	const json_t *devices = json_object_get(p, "devices"), *flags = json_object_get(p, "flags");
	char comm[16], text[80];

	for (size_t i = 0; i < MIN(json_array_size(devices), (size_t)MAX_ROWS); i++) {
		const json_t *d = json_array_get(devices, i);
		uint64_t device, chip;

		printf("%-9s %7" PRIu64, ttmon_fmt_text(comm, 10, ttmon_db_str(p, "comm", "?")),
		       ttmon_db_get(p, "pid", 0));
		snprintf(text, sizeof(text), "%s", "?");
		if (ttmon_db_u64(d, "device", &device))
			snprintf(text, sizeof(text), "%" PRIu64, device);
		printf(" %4.4s", text);
		snprintf(text, sizeof(text), "%s", "?");
		if (ttmon_db_u64(d, "chip", &chip))
			snprintf(text, sizeof(text), "%" PRIu64, chip);
		printf(" %4.4s", text);
		show_use(d);
	}
	if (json_array_size(devices) > MAX_ROWS)
		printf("  and %zu devices more\n", json_array_size(devices) - MAX_ROWS);
	for (size_t i = 0; i < json_array_size(flags); i++)
		printf("%s%s%s",
		       i ? ", " : "  figures: ", ttmon_fmt_text(text, 20, json_string_value(json_array_get(flags, i))),
		       i + 1 == json_array_size(flags) ? "\n" : "");
	if (has_flag(p, "uncalibrated"))
		printf("  layout: %s\n", ttmon_fmt_text(text, 70, ttmon_db_str(p, "layout", "?")));
}

static void show_dispatches(const json_t *tt)
{
	const json_t *list = json_object_get(tt, "dispatches");
	uint64_t sums[ARRAY_SIZE(kinds)] = { 0 };
	bool any = false;

	for (size_t i = 0; i < json_array_size(list); i++)
		for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
			sums[k] += ttmon_db_get(json_object_get(json_array_get(list, i), "count"), kinds[k], 0);
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		char text[TTMON_FMT_LEN];

		if (!sums[k])
			continue;
		printf("%s%s %s", any ? ", " : "\nDISPATCHED ", ttmon_fmt_count(text, sizeof(text), sums[k]), kinds[k]);
		any = true;
	}
	if (any)
		putchar('\n');
}

static int by_busy(const void *pa, const void *pb)
{
	const json_t *const *a = pa, *const *b = pb;
	uint64_t x = ttmon_db_get(*a, "busy_ns", 0), y = ttmon_db_get(*b, "busy_ns", 0);

	return (x < y) - (x > y);
}

static int show_programs(const json_t *tt)
{
	const json_t *programs = json_object_get(tt, "programs");
	size_t n = json_array_size(programs);
	_cleanup_free_ const json_t **list = calloc(n + 1, sizeof(*list));

	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		list[i] = json_array_get(programs, i);
	qsort(list, n, sizeof(*list), by_busy);
	if (n)
		printf("\n%8s %4s %7s %10s %10s %10s  %s\n", "PID", "DEV", "PROGRAM", "RUNS", "BUSY", "LONGEST",
		       "KERNELS");
	for (size_t i = 0; i < MIN(n, (size_t)MAX_ROWS); i++) {
		const json_t *p = list[i];
		const char *kernels = ttmon_db_str(p, "kernels", ""), *slash;
		size_t first = strcspn(kernels, ",");
		char runs[TTMON_FMT_LEN], busy[TTMON_FMT_LEN], max[TTMON_FMT_LEN], text[24], name[64];

		slash = memrchr(kernels, '/', first);
		first -= slash ? (size_t)(slash + 1 - kernels) : 0;
		snprintf(name, sizeof(name), "%.*s%s", (int)MIN(first, (size_t)48), slash ? slash + 1 : kernels,
			 strchr(kernels, ',') ? ", ..." : "");
		printf("%8" PRIu64 " %4" PRIu64 " %7" PRIu64 " %10s %10s %10s  %s\n", ttmon_db_get(p, "pid", 0),
		       ttmon_db_get(p, "device", 0), ttmon_db_get(p, "program", 0),
		       ttmon_fmt_count(runs, sizeof(runs), ttmon_db_get(p, "runs", 0)),
		       ttmon_fmt_ns(busy, sizeof(busy), ttmon_db_get(p, "busy_ns", 0)),
		       ttmon_fmt_ns(max, sizeof(max), ttmon_db_get(p, "max_ns", 0)),
		       ttmon_fmt_text(text, sizeof(text), name));
	}
	if (n > MAX_ROWS)
		printf("and %zu programs more\n", n - MAX_ROWS);
	return 0;
}

/* Shows the layout of profiler records, and how certain it is. */
static void show_record_layouts(const json_t *clocks)
{
	size_t unsure = 0;
	uint64_t refused = 0;

	for (size_t i = 0; i < json_array_size(clocks); i++) {
		const json_t *k = json_array_get(clocks, i);

		unsure += json_is_false(json_object_get(k, "layout_certain"));
		refused += ttmon_db_get(k, "refused_layout", 0);
	}
	if (unsure)
		printf("RECORDS    %zu %s: another layout fits the profiler's records too; only records that are the "
		       "same in both are shown\n",
		       unsure, unsure == 1 ? "device" : "devices");
	if (refused)
		printf("RECORDS    %" PRIu64
		       " of the profiler not used: their layout is not known, or two layouts fit with different "
		       "results\n",
		       refused);
}

static void show_clocks(const json_t *tt)
{
	const json_t *clocks = json_object_get(tt, "clocks");
	size_t nr[4] = { 0 };
	static const char *const names[4] = { "pairs", "record", "envelope", "none" };
	static const char *const help[4] = { "fitted over clock pairs", "by the records' own offset",
					     "placed between enqueue and callback only", "without a place" };

	for (size_t i = 0; i < json_array_size(clocks); i++)
		for (size_t k = 0; k < ARRAY_SIZE(names); k++)
			nr[k] += strcmp(ttmon_db_str(json_array_get(clocks, i), "clock", "none"), names[k]) == 0;
	for (size_t k = 0; k < ARRAY_SIZE(names); k++)
		if (nr[k])
			printf("CLOCKS     %zu %s: %s\n", nr[k], nr[k] == 1 ? "device" : "devices", help[k]);
	show_record_layouts(clocks);
}

int ttmon_db_tool_show_tt(const struct ttmon_db *db)
{
	const json_t *tt = ttmon_db_member(db, "tenstorrent"), *procs = json_object_get(tt, "processes");
	int err;

	if (!tt)
		return 0;
	show_chips(tt);
	if (json_array_size(procs))
		printf("\n%-9s %7s %4s %4s %12s %12s %12s %12s\n", "PROCESS", "PID", "DEV", "CHIP", "DRAM", "PEAK",
		       "L1", "PEAK");
	for (size_t i = 0; i < MIN(json_array_size(procs), (size_t)MAX_ROWS); i++)
		show_process(json_array_get(procs, i));
	if (json_array_size(procs) > MAX_ROWS)
		printf("and %zu processes more\n", json_array_size(procs) - MAX_ROWS);
	show_dispatches(tt);
	err = show_programs(tt);
	show_clocks(tt);
	return err;
}
