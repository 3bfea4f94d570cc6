/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * record.h: decodes the words of a real-time profiler record. Pure; no allocation.
 *
 *   byte   CHIP32            SYNC32                  KERNELS32
 *   0      program id u32    program id u32          program id u32
 *   4      -                 chip u32                chip u32
 *   8      start u64         start u64               start u64             device cycles
 *   16     end u64           end u64                 end u64
 *   24     GHz double        GHz double              GHz double            cycles per ns
 *   32     chip u32          cycle offset i64        kernels {ptr, count} or vector
 *   40     kernels vector    error ns i64
 *   48                       kernels {ptr, count}    queue u32, stream u32, or the end
 *   56     in records of 72 and 80 bytes: sequence, schema, type, losses
 *
 * Source: tt-metal, experimental/realtime_profiler.hpp of 2026. No record names its layout, and gaps
 * hold arbitrary bytes. So each (process, library) has a judge that examines several records: chips
 * are small, pointers look like pointers and agree with their counts, a clock_sync must lead to a time
 * shortly before the callback, and the distance of records in a batch is that of a known layout. A
 * layout is certain when its score is ahead of all others' (ttmon_rec_is_certain()). Where it is not,
 * a record is taken only if the other fitting layouts give the same values.
 */
#ifndef TTMON_DISP_RECORD_H
#define TTMON_DISP_RECORD_H

#include <ttmon/event.h>

#include "lib/base/util.h"

#define TTMON_REC_LAYOUT_TABLE(X)    \
	X(0, KERNELS32, "kernels32") \
	X(1, SYNC32, "sync32")       \
	X(2, CHIP32, "chip32")
enum ttmon_rec_layout {
#define X(id, NAME, name) TTMON_REC_##NAME = id,
	TTMON_REC_LAYOUT_TABLE(X)
#undef X
		TTMON_REC_LAYOUTS
};

/* Most chips of a process: a larger number is no chip. */
#define TTMON_REC_CHIPS 256

struct ttmon_rec_judge {
	int16_t score[TTMON_REC_LAYOUTS];
	uint32_t seen;	  /* records examined */
	uint64_t from_ns; /* time of the first */
	bool settled;
	uint8_t layout; /* enum ttmon_rec_layout, once settled; later records may change it */
};

struct ttmon_rec {
	uint32_t program; /* never 0 */
	uint32_t chip;
	uint64_t start, end; /* cycles, end >= start unless it is UNTIMED */
	double ghz;
	/* clock_sync, where the record has a credible one: host time = (cycles - offset) / ghz */
	bool has_sync;
	int64_t offset;
	uint64_t error_ns;
};

enum ttmon_rec_err {
	TTMON_REC_OK,
	TTMON_REC_SKIP,	    /* program id 0: no program */
	TTMON_REC_BAD,	    /* impossible values */
	TTMON_REC_UNTIMED,  /* it ran, but when is unknown: no end (0), or an end before its start */
	TTMON_REC_DOUBTFUL, /* another layout fits as well and gives other values */
	TTMON_REC_UNKNOWN   /* layout not settled yet */
};

/* Checks the words that every layout has: OK, SKIP, BAD or UNTIMED. */
enum ttmon_rec_err ttmon_rec_check(const __u64 w[8]);
/*
 * Adds an OK record to the judge's scores. batch: it came together with others, which only the newer
 * layouts do.
 */
void ttmon_rec_judge_add(struct ttmon_rec_judge *j, const struct ttmon_ev_tt_program *ev, bool batch);
/* Stream time has advanced: an undecided judge settles for the best score when the time is up. */
void ttmon_rec_judge_tick(struct ttmon_rec_judge *j, uint64_t now_ns);
/* True if the score of the settled layout is ahead of all others. */
bool ttmon_rec_is_certain(const struct ttmon_rec_judge *j);
/* "chip32" and so on, the layouts of the table above; NULL: none is settled. */
const char *ttmon_rec_layout_name(const struct ttmon_rec_judge *j);
/* OK, BAD, DOUBTFUL or UNKNOWN. seen_ns: time of the callback. */
enum ttmon_rec_err ttmon_rec_parse(const struct ttmon_rec_judge *j, const __u64 w[8], uint64_t seen_ns,
				   struct ttmon_rec *ret);
/* Host time of a cycle count by a record's clock_sync; false: the record has none. */
bool ttmon_rec_host_ns(const struct ttmon_rec *r, uint64_t cycles, uint64_t *host_ns);

#endif
