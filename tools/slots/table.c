// SPDX-License-Identifier: GPL-2.0-only
/*
 * table.c: the table of `ttmon slots`: a line for each slot and process, or for each slot. Every line
 * is complete by itself, so that grep and sort can be used. Columns without any value in the file are
 * left out.
 */
#include <inttypes.h>

#include "tools/slots/slots_tool.h"
#include "lib/base/fmt.h"

static double ms(uint64_t ns)
{
	return (double)ns / (double)NSEC_PER_MS;
}

/* Right-aligned, "-" for an unknown value, ">=" before a lower bound. */
static void put_figure(int width, enum ttmon_slots_known known, const char *text)
{
	char cell[TTMON_FMT_LEN + 2];

	snprintf(cell, sizeof(cell), "%s%s", known == TTMON_SLOTS_AT_LEAST ? ">=" : "",
		 known == TTMON_SLOTS_UNKNOWN ? "-" : text);
	printf("  %*s", width, cell);
}

static void put_held(int width, const struct ttmon_slot *s, uint64_t bytes)
{
	char text[TTMON_FMT_LEN];

	put_figure(width, ttmon_slots_known_held(s, TTMON_SLOT_NEED_PINNED),
		   ttmon_fmt_bytes(text, sizeof(text), bytes));
}

static void put_copies(const struct ttmon_slot *s, uint64_t copies, uint64_t bytes)
{
	char text[TTMON_FMT_LEN];

	put_figure(7, ttmon_slots_known_sum(s, TTMON_SLOT_NEED_COPIES, copies),
		   ttmon_fmt_count(text, sizeof(text), copies));
	put_figure(12, ttmon_slots_known_sum(s, TTMON_SLOT_NEED_COPIES, bytes),
		   ttmon_fmt_bytes(text, sizeof(text), bytes));
}

static void put_ipc(const struct ttmon_slots_item *item, const struct ttmon_slot_row *row)
{
	enum ttmon_slots_known known = ttmon_slots_known_ctr(item->slot.flags, row, TTMON_CTR_CYCLES);
	char text[TTMON_FMT_LEN];

	/* If both counts are lower bounds, their ratio is not a bound of any kind. */
	if (known != TTMON_SLOTS_EXACT || !row->ctr[TTMON_CTR_CYCLES])
		known = TTMON_SLOTS_UNKNOWN;
	else
		snprintf(text, sizeof(text), "%.2f",
			 (double)row->ctr[TTMON_CTR_INSTRUCTIONS] / (double)row->ctr[TTMON_CTR_CYCLES]);
	put_figure(5, known, text);
}

static void put_row(const struct ttmon_slots_view *v, const struct ttmon_slots_item *item,
		    const struct ttmon_slot_row *row)
{
	bool process = row->cls == TTMON_ROW_USER || row->cls == TTMON_ROW_KERNEL;
	char name[TTMON_SLOTS_NAME], text[TTMON_FMT_LEN] = "";

	printf("%8" PRId64 "  ", ttmon_slots_ms(v->info, item->slot.no));
	if (process)
		printf("%7u", row->tgid);
	else
		printf("%7s", "-");
	printf("  %-18s", ttmon_slots_row_name(name, row));
	if (item->slot.flags & TTMON_SLOT_HAS_CPU)
		printf("  %9.3f  %8u", ms(row->cpu_ns), row->switches);
	else
		printf("  %9s  %8s", "-", "-");
	if (v->seen.ctr) {
		put_ipc(item, row);
		ttmon_fmt_count(text, sizeof(text), row->ctr[TTMON_CTR_LLC_MISSES]);
		put_figure(13, ttmon_slots_known_ctr(item->slot.flags, row, TTMON_CTR_LLC_MISSES), text);
	}
	if (v->seen.llc)
		put_figure(12, ttmon_slots_known_llc(row), ttmon_fmt_bytes(text, sizeof(text), row->llc_bytes));
	if (v->seen.mbm) {
		if (row->rdt_ns)
			snprintf(text, sizeof(text), "%.3f", (double)row->mbm_total / (double)row->rdt_ns);
		put_figure(10, ttmon_slots_known_mbm(row), text);
	}
	if (v->seen.copies)
		put_copies(&item->slot, row->copies, row->copy_bytes);
	if (v->seen.pinned)
		put_held(10, &item->slot, row->pinned_bytes);
	putchar('\n');
}

static void head_of_rows(const struct ttmon_slots_seen *seen)
{
	printf("%8s  %7s  %-18s  %9s  %8s", "ms", "pid", "process", "CPU ms", "switches");
	if (seen->ctr)
		printf("  %5s  %13s", "IPC", "LLC misses");
	if (seen->llc)
		printf("  %12s", "LLC");
	if (seen->mbm)
		printf("  %10s", "GB/s");
	if (seen->copies)
		printf("  %7s  %12s", "copies", "copied");
	if (seen->pinned)
		printf("  %10s", "pinned");
	putchar('\n');
}

/*
 * The times on the line add up to CPUs x 1 ms; if they do not, the last column shows the difference.
 */
static void put_slot(const struct ttmon_slots_view *v, const struct ttmon_slot *s)
{
	uint64_t sum = s->user_ns + s->kernel_ns + s->idle_ns + s->missing_ns;
	int64_t off = (int64_t)(sum - s->cpus * NSEC_PER_MS);

	printf("%8" PRId64 "  %12llu", ttmon_slots_ms(v->info, s->no), s->no);
	if (s->flags & TTMON_SLOT_HAS_CPU)
		printf("  %4u  %10.6f  %10.6f  %10.6f  %10.6f  %8" PRId64, s->cpus, ms(s->user_ns), ms(s->kernel_ns),
		       ms(s->idle_ns), ms(s->missing_ns), off);
	else
		printf("  %4s  %10s  %10s  %10s  %10s  %8s", "-", "-", "-", "-", "-", "-");
	printf("  %5u  %7u  ", s->nr_rows, s->events);
	for (unsigned int i = 0, n = 0; i < TTMON_SLOTS_SLOT_FLAG_NAMES; i++) {
		const char *name = ttmon_slots_slot_flag(s->flags, i);

		if (name && strncmp(name, "has_", 4) != 0)
			printf("%s%s", n++ ? "," : "", name);
	}
	putchar('\n');
}

void ttmon_slots_table_head(const struct ttmon_slots_view *v)
{
	if (v->opts->by_slot)
		printf("%8s  %12s  %4s  %10s  %10s  %10s  %10s  %8s  %5s  %7s  %s\n", "ms", "slot", "CPUs", "user ms",
		       "kernel ms", "idle ms", "missing ms", "off ns", "rows", "events", "flags");
	else
		head_of_rows(&v->seen);
}

void ttmon_slots_table_slot(const struct ttmon_slots_view *v, const struct ttmon_slots_item *item)
{
	const struct ttmon_slot_row *row;
	uint64_t shown = 0;
	uint32_t at = 0;

	char text[TTMON_FMT_LEN];

	if (item->missed)
		printf("%8s  %s slots are not in the file\n", "...", ttmon_fmt_count(text, sizeof(text), item->missed));
	if (v->opts->by_slot) {
		put_slot(v, &item->slot);
		return;
	}
	while ((row = ttmon_slots_wanted(v->opts, item, &at, &shown)))
		put_row(v, item, row);
	if (item->slot.missing_ns && !v->opts->has_pid)
		printf("%8" PRId64 "  %7s  %-18s  %9.3f\n", ttmon_slots_ms(v->info, item->slot.no), "-", "(missing)",
		       ms(item->slot.missing_ns));
}
