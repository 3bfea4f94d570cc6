// SPDX-License-Identifier: GPL-2.0-only
/*
 * slots.c: dispatches and device time of a slot, in total and by process. Hot thread; fixed memory, no
 * call can fail.
 *
 * Device time by slot: a run's nanoseconds up to the newest event are counted at once, in the slot
 * being delivered, wherever they lie. Those after it (a clock that is a little ahead) stay open and
 * are counted in the slots they lie in. Every nanosecond is counted once: the parts are differences of
 * whole numbers. When too many runs are open, a run is counted as a whole.
 *
 * Rows: one for each (process, device) with a count, found by hash. A slot without rows costs nothing.
 * When the table is full, all rows are reported before the slot has closed, and the table starts empty
 * again.
 */
#include "daemon/core/dispatch/dispatch_int.h"

static struct disp_row *row_get(struct ttmon_dispatch *d, const struct disp_who *who)
{
	uint32_t i = ttmon_mix64(ttmon_disp_key(who->proc, who->logical)) % DISP_PLACES;
	struct disp_row *row;

	if (d->nr_rows == DISP_ROWS)
		ttmon_disp_tell_rows(d, MAX(d->next_slot, d->now_ns / NSEC_PER_MS));
	for (; d->row_at[i]; i = (i + 1) % DISP_PLACES) {
		row = &d->rows[d->row_at[i] - 1];
		if (row->who.proc == who->proc && row->who.logical == who->logical) {
			row->who.chip = who->chip ? who->chip : row->who.chip;
			return row;
		}
	}
	row = &d->rows[d->nr_rows++];
	*row = (struct disp_row){ .who = *who, .place = i };
	d->row_at[i] = (uint16_t)d->nr_rows;
	return row;
}

void ttmon_disp_tell_rows(struct ttmon_dispatch *d, uint64_t slot_no)
{
	for (uint32_t i = 0; i < d->nr_rows; i++) {
		const struct disp_row *row = &d->rows[i];
		struct ttmon_tt_slot_row told = {
			.slot_no = slot_no,
			.tgid = row->who.tgid,
			.logical = row->who.logical,
			.chip = row->who.chip,
			.dispatches = row->dispatches,
			.busy_ns = row->busy_ns,
		};

		d->row_at[row->place] = 0;
		d->ops.slot(d->ctx, &told);
	}
	d->nr_rows = 0;
}

void ttmon_disp_book_dispatches(struct ttmon_dispatch *d, const struct disp_who *who, uint64_t n)
{
	d->slot_dispatches += n;
	if (n && d->ops.slot)
		row_get(d, who)->dispatches += n;
}

static void add_busy(struct ttmon_dispatch *d, const struct disp_who *who, uint64_t ns)
{
	d->slot_busy_ns += ns;
	if (ns && d->ops.slot)
		row_get(d, who)->busy_ns += ns;
}

void ttmon_disp_book(struct ttmon_dispatch *d, const struct disp_who *who, uint64_t from_ns, uint64_t to_ns)
{
	if (!ttmon_before(d->now_ns, to_ns) || d->nr_open == DISP_OPEN) {
		add_busy(d, who, to_ns - from_ns);
		return;
	}
	if (ttmon_before(from_ns, d->now_ns)) {
		add_busy(d, who, d->now_ns - from_ns);
		from_ns = d->now_ns;
	}
	d->open[d->nr_open++] = (struct disp_part){ *who, from_ns, to_ns };
}

void ttmon_disp_close_open(struct ttmon_dispatch *d, uint64_t end_ns, bool all)
{
	uint32_t k = 0;

	for (uint32_t i = 0; i < d->nr_open; i++) {
		struct disp_part p = d->open[i];

		if (all || !ttmon_before(end_ns, p.to_ns)) {
			add_busy(d, &p.who, p.to_ns - p.from_ns);
			continue;
		}
		if (ttmon_before(p.from_ns, end_ns)) {
			add_busy(d, &p.who, end_ns - p.from_ns);
			p.from_ns = end_ns;
		}
		d->open[k++] = p;
	}
	d->nr_open = k;
}
