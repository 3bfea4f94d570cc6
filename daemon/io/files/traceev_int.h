/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * traceev_int.h: shared by traceev.c (head, processes, host events) and traceev_tt.c (calls and device
 * runs on tracks).
 */
#ifndef TTMON_TRACEEV_INT_H
#define TTMON_TRACEEV_INT_H

#include "daemon/io/files/traceev.h"

/* Invented ids lie past those of the kernel (PID_MAX_LIMIT is 2^22). */
#define TTMON_TRACE_PID_AGAIN 0x10000000u /* + index: for a pid that another process had before */
#define TTMON_TRACE_PID_TT    0x20000000u
#define TTMON_TRACE_PID_TTMON 0x20000001u
#define TTMON_TRACE_TID_DIR   0x40000000u /* + index * 8 + direction */

/* Counters of live memory, by process. */
#define TTMON_TRACE_HELD_TABLE(X)           \
	X(PINNED, "pinned bytes")           \
	X(MANAGED, "managed bytes")         \
	X(DEVICE, "device bytes")           \
	X(CUSTOM, "custom bytes")           \
	X(TT_DRAM, "tt_dram bytes")         \
	X(TT_L1, "tt_l1 bytes")             \
	X(TT_L1_SMALL, "tt_l1_small bytes") \
	X(TT_TRACE, "tt_trace bytes")       \
	X(TT_CB, "tt_cb bytes")
enum ttmon_trace_held {
#define X(NAME, name) TTMON_TRACE_HELD_##NAME,
	TTMON_TRACE_HELD_TABLE(X)
#undef X
		TTMON_TRACE_HELD_MAX
};

struct ttmon_traceev_pid {
	uint32_t pid;	/* in the file */
	uint8_t tracks; /* bits: directions whose track was named */
	bool named;
	uint64_t *held; /* [TTMON_TRACE_HELD_MAX] present bytes */
};

struct ttmon_traceev_by_tgid {
	uint32_t tgid, idx;
	uint64_t from_ns;
};

/* A counted allocation that will end. */
struct ttmon_traceev_end {
	uint64_t ns, bytes;
	uint32_t proc, held;
};

struct ttmon_traceev {
	struct ttmon_jsonw w;
	struct ttmon_traceev_head head;
	int err;
	struct ttmon_traceev_pid *pids;
	struct ttmon_traceev_by_tgid *by_tgid; /* sorted */
	struct ttmon_traceev_end *heap;	       /* the next to end is first */
	size_t nr_heap, cap_heap;
	uint64_t counter_ns; /* counters were written up to here */
	uint64_t next_id;    /* of b and e */
	const struct ttmon_ev_tt_chip **chips;
	size_t nr_chips, cap_chips;
	const struct ttmon_tt_program **programs; /* sorted */
	size_t nr_programs;
	bool tt_named;
	uint64_t events, allocations, transfers, calls, dispatches, runs, checkpoints;
	uint64_t no_transfer; /* mappings without copies */
	uint64_t over;	      /* events past max_events */
	uint64_t unplaced;    /* runs without a time: drawn where they were reported */
	uint64_t strays;      /* events of unknown processes */
};

/*
 * Begins an event, up to its args. False: it exceeds the limit. Name and cat need no escape; name
 * NULL: the caller writes it next.
 */
bool ttmon_traceev_open(struct ttmon_traceev *t, char ph, const char *cat, const char *name, uint32_t pid, uint32_t tid,
			uint64_t ts_ns);
void ttmon_traceev_args(struct ttmon_traceev *t);
void ttmon_traceev_close(struct ttmon_traceev *t);
void ttmon_traceev_name(struct ttmon_traceev *t, const char *what, uint32_t pid, uint32_t tid, const char *name);
/* Id of b and e events, within their process. */
void ttmon_traceev_id(struct ttmon_traceev *t, uint64_t id);
void ttmon_traceev_dur(struct ttmon_traceev *t, uint64_t ns);

/* The pid of a process in the file; writes its name if it is new. */
uint32_t ttmon_traceev_get_pid(struct ttmon_traceev *t, uint32_t idx);
/* The same by pid and time. False: the process is unknown, *ret is tgid. */
bool ttmon_traceev_pid_of(struct ttmon_traceev *t, uint32_t tgid, uint64_t ns, uint32_t *ret);

static inline void ttmon_traceev_num(struct ttmon_traceev *t, const char *key, uint64_t value)
{
	ttmon_jsonw_key_num(&t->w, key, value);
}

static inline void ttmon_traceev_str(struct ttmon_traceev *t, const char *key, const char *text)
{
	ttmon_jsonw_key_str(&t->w, key, text);
}

static inline void ttmon_traceev_addr(struct ttmon_traceev *t, const char *key, uint64_t addr)
{
	ttmon_jsonw_key_addr(&t->w, key, addr);
}

static inline void ttmon_traceev_time(struct ttmon_traceev *t, const char *key, uint64_t ns)
{
	ttmon_jsonw_key_time(&t->w, key, ns);
}

#endif
