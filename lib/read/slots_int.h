/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * slots_int.h: the tables of the slot file, shared by its encoder (slots.c) and its reader
 * (slots_read.c), and used only there.
 *
 * The order of the fields is that of the bits of the masks: fields that change often come first, so
 * that most masks are one byte.
 */
#ifndef TTMON_LIB_SLOTS_INT_H
#define TTMON_LIB_SLOTS_INT_H

#include "lib/read/slots.h"

#define TTMON_SLOTS_MAGIC "ttmonsl1"
/* Bytes of a block's head: type, length, slots, CRC. */
#define TTMON_SLOTS_BLOCK_HEAD 16

enum ttmon_slots_block { TTMON_SLOTS_DATA = 1, TTMON_SLOTS_END = 2 };

/* How a field is predicted. */
enum ttmon_slots_pred {
	TTMON_SLOTS_ZERO, /* stored as it is; all others are stored as a difference */
	TTMON_SLOTS_LAST, /* the same as in the last slot, or in the last row of the process */
	TTMON_SLOTS_NEXT, /* that plus one */
	TTMON_SLOTS_USER, /* sum of cpu_ns over the rows of a class */
	TTMON_SLOTS_KERNEL,
	TTMON_SLOTS_IDLE,
	TTMON_SLOTS_TIME,   /* for a row of class IDLE: the rest of cpus * 1 ms; else 0 */
	TTMON_SLOTS_CYCLES, /* proportional to CPU time, as in the process's last row */
	TTMON_SLOTS_TOTAL,  /* mbm_total of the same row: the host has one socket */
};

struct ttmon_slots_field {
	uint16_t offset;
	uint8_t size;
	uint8_t pred; /* enum ttmon_slots_pred */
};

#define TTMON_SLOTS_S(f, p)                                                                                      \
	{                                                                                                        \
		offsetof(struct ttmon_slots_item, f), sizeof(((struct ttmon_slots_item *)0)->f), TTMON_SLOTS_##p \
	}
static const struct ttmon_slots_field ttmon_slots_slot_fields[] = {
	TTMON_SLOTS_S(slot.events, ZERO),
	TTMON_SLOTS_S(slot.nr_rows, LAST),
	TTMON_SLOTS_S(slot.no, NEXT),
	TTMON_SLOTS_S(slot.missing_ns, ZERO),
	TTMON_SLOTS_S(slot.flags, LAST),
	TTMON_SLOTS_S(slot.copies, ZERO),
	TTMON_SLOTS_S(slot.copy_bytes, ZERO),
	TTMON_SLOTS_S(slot.allocs, ZERO),
	TTMON_SLOTS_S(slot.frees, ZERO),
	TTMON_SLOTS_S(slot.pinned_pages, LAST),
	TTMON_SLOTS_S(slot.tt_dispatches, ZERO),
	TTMON_SLOTS_S(slot.tt_busy_ns, ZERO),
	TTMON_SLOTS_S(slot.cpus, LAST),
	TTMON_SLOTS_S(slot.user_ns, USER),
	TTMON_SLOTS_S(slot.kernel_ns, KERNEL),
	TTMON_SLOTS_S(slot.idle_ns, IDLE),
	TTMON_SLOTS_S(slot.late, ZERO),
	TTMON_SLOTS_S(slot.dropped, ZERO),
	TTMON_SLOTS_S(slot.kernel_lost, ZERO),
	TTMON_SLOTS_S(missed, ZERO),
	TTMON_SLOTS_S(slot.known, LAST), /* from version 2 on */
};

#define TTMON_SLOTS_R(f, p)                                                                                  \
	{                                                                                                    \
		offsetof(struct ttmon_slot_row, f), sizeof(((struct ttmon_slot_row *)0)->f), TTMON_SLOTS_##p \
	}
static const struct ttmon_slots_field ttmon_slots_row_fields[] = {
	TTMON_SLOTS_R(cpu_ns, TIME),	TTMON_SLOTS_R(switches, ZERO),	 TTMON_SLOTS_R(ctr[0], CYCLES),
	TTMON_SLOTS_R(ctr[1], ZERO),	TTMON_SLOTS_R(ctr[2], ZERO),	 TTMON_SLOTS_R(ctr[3], ZERO),
	TTMON_SLOTS_R(mbm_total, ZERO), TTMON_SLOTS_R(mbm_local, TOTAL), TTMON_SLOTS_R(rdt_ns, LAST),
	TTMON_SLOTS_R(llc_bytes, LAST), TTMON_SLOTS_R(flags, LAST),	 TTMON_SLOTS_R(rmid, LAST),
	TTMON_SLOTS_R(copies, ZERO),	TTMON_SLOTS_R(copy_bytes, ZERO), TTMON_SLOTS_R(pinned_bytes, LAST),
};

#define TTMON_SLOTS_SLOT_FIELDS ARRAY_SIZE(ttmon_slots_slot_fields)
/* Number of these fields that version 1 has. */
#define TTMON_SLOTS_SLOT_FIELDS_1 20
#define TTMON_SLOTS_ROW_FIELDS	  ARRAY_SIZE(ttmon_slots_row_fields)

/* Columns of a block. */
enum {
	TTMON_SLOTS_COL_SLOTS,
	TTMON_SLOTS_COL_INDEX,
	TTMON_SLOTS_COL_PROCS,
	TTMON_SLOTS_COL_MASKS,
	TTMON_SLOTS_COL_FIELDS, /* one column for each field */
	TTMON_SLOTS_COLS = TTMON_SLOTS_COL_FIELDS + TTMON_SLOTS_ROW_FIELDS
};

/* Sums of the current slot that predictions use. */
struct ttmon_slots_sums {
	uint64_t user, kernel, idle; /* cpu_ns of the rows so far */
	uint64_t left;		     /* cpus * 1 ms, minus missing_ns and the rows so far */
};

static inline void ttmon_slots_sum(struct ttmon_slots_sums *s, const struct ttmon_slot_row *row)
{
	s->left -= row->cpu_ns;
	if (row->cls == TTMON_ROW_USER)
		s->user += row->cpu_ns;
	else if (row->cls == TTMON_ROW_KERNEL)
		s->kernel += row->cpu_ns;
	else if (row->cls == TTMON_ROW_IDLE)
		s->idle += row->cpu_ns;
}

static inline uint64_t ttmon_slots_get(const void *base, const struct ttmon_slots_field *f)
{
	const uint8_t *p = (const uint8_t *)base + f->offset;
	uint64_t v64;
	uint32_t v32;
	uint16_t v16;

	switch (f->size) {
	case 1:
		return *p;
	case 2:
		memcpy(&v16, p, sizeof(v16));
		return v16;
	case 4:
		memcpy(&v32, p, sizeof(v32));
		return v32;
	default:
		memcpy(&v64, p, sizeof(v64));
		return v64;
	}
}

static inline uint64_t ttmon_slots_cycles(const struct ttmon_slot_row *last, const struct ttmon_slot_row *row)
{
	return last->cpu_ns ? (uint64_t)((unsigned __int128)last->ctr[0] * row->cpu_ns / last->cpu_ns) : 0;
}

/* last: the last row of the same process; row: its fields before f are known. */
static inline uint64_t ttmon_slots_predict_row(const struct ttmon_slots_field *f, const struct ttmon_slot_row *last,
					       const struct ttmon_slot_row *row, const struct ttmon_slots_sums *sums)
{
	switch ((enum ttmon_slots_pred)f->pred) {
	case TTMON_SLOTS_LAST:
		return ttmon_slots_get(last, f);
	case TTMON_SLOTS_TIME:
		return row->cls == TTMON_ROW_IDLE ? sums->left : 0;
	case TTMON_SLOTS_CYCLES:
		return ttmon_slots_cycles(last, row);
	case TTMON_SLOTS_TOTAL:
		return row->mbm_total;
	default:
		return 0;
	}
}

static inline uint64_t ttmon_slots_predict_slot(const struct ttmon_slots_field *f, const struct ttmon_slots_item *last,
						const struct ttmon_slots_sums *sums)
{
	switch ((enum ttmon_slots_pred)f->pred) {
	case TTMON_SLOTS_LAST:
		return ttmon_slots_get(last, f);
	case TTMON_SLOTS_NEXT:
		return ttmon_slots_get(last, f) + 1;
	case TTMON_SLOTS_USER:
		return sums->user;
	case TTMON_SLOTS_KERNEL:
		return sums->kernel;
	case TTMON_SLOTS_IDLE:
		return sums->idle;
	default:
		return 0;
	}
}

/* A predicted time is stored as it is if the prediction is 0. */
static inline bool ttmon_slots_is_plain(const struct ttmon_slots_field *f, uint8_t cls)
{
	return f->pred == TTMON_SLOTS_ZERO || (f->pred == TTMON_SLOTS_TIME && cls != TTMON_ROW_IDLE);
}

#endif
