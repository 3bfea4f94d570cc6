/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * history.h: the allocation history: allocations by process and call site, which memory is pinned, and
 * its transfers.
 *
 * Fed in slot order by the pipeline (hot thread). Pure: events and facts in, tables out. All memory is
 * bounded (cfg); no code here logs or reads a clock. A table that is full refuses, counts and marks
 * the history incomplete.
 *
 * Ordering rules. Allocations take effect at ts_ns (return), frees at entry_ns: another thread may get
 * the address between the free's effect and its return. So an allocation over a live one supersedes
 * it, and a later free whose entry_ns is before that allocation ends the superseded one. Nothing wraps
 * below zero.
 */
#ifndef TTMON_HISTORY_H
#define TTMON_HISTORY_H

#include <ttmon/event.h>
#include <ttmon/fns.h>

#include "daemon/core/know/know.h"
#include "lib/base/names.h"
#include "lib/base/quota.h"
#include "lib/base/util.h"
#include "lib/verdict/verdict.h"

struct ttmon_history;
struct ttmon_proc;
struct ttmon_wait_sums;

/*
 * When to advise pinning pageable memory: when its transfers pay for it, at the first transfer, or
 * after so many transfers or bytes (core/history/live.h).
 */
enum ttmon_live_pin { TTMON_PIN_GAIN, TTMON_PIN_FIRST, TTMON_PIN_COPIES, TTMON_PIN_BYTES };

struct ttmon_live_cfg {
	bool off;
	unsigned int pin;   /* enum ttmon_live_pin */
	uint64_t threshold; /* copies or bytes */
	uint64_t cold_ns;   /* pinned memory without transfers for so long is cold; 0: 10 s */
	uint32_t lines;	    /* lines kept, rounded up to a power of two; 0: 16384 */
};

struct ttmon_history_cfg {
	/*
	 * True (a --dump-db run): freed allocations and their events are kept; else they are folded into sites
	 * after fold_ns.
	 */
	bool keep_all;
	/*
		 * Records of live allocations (and kept ones with keep_all); 0: 1,000,000. Past it the user with the
		 * most records makes room: first that user's oldest freed ones go, then live ones lose their record
		 * (core/history/condensed.c). Both are counted.
		 */
	uint64_t max_allocations;
	/*
		 * Kept events of all allocations; 0: 10,000,000. Further ones are counted, and the history is
		 * incomplete.
		 */
	uint64_t max_events;
	uint64_t fold_ns;	  /* 0: 60 s; the oldest are folded sooner when more than 65,536 wait */
	uint64_t page_heat_bytes; /* allocations of at least this many bytes get heat by groups of pages; 0: 1 MiB */
	uint64_t start_ns;	  /* begin of the capture; heat buckets count from an allocation's own start */
	/*
	 * Cost model for advice in bytes per second; 0: defaults (pageable 6e9, pinned 24e9, pinning 1.5e9).
	 */
	uint64_t pageable_bps, pinned_bps, pinning_bps;
	uint64_t pin_call_ns,
		/* ns for each call, in addition to the bytes; 0: the durations that were seen, else 50 us */
		unpin_call_ns;
	uint64_t cold_age_ns; /* a pinned allocation can be cold only past this age; 0: 100 ms */
	struct ttmon_live_cfg live;
	const struct ttmon_know *know; /* what was not seen; NULL: everything was seen. Must outlive the history. */
	/* Called when a process's pinned bytes change; may be NULL. */
	void (*pinned)(void *ctx, uint32_t tgid, uint64_t bytes);
	/* Called with the last figures of an ended process before its line is reused; may be NULL. */
	void (*leaving)(void *ctx, const struct ttmon_proc *p);
	void *ctx;
};

/* States that an allocation has been through, as bits. */
#define TTMON_ST_CREATED     (1 << 0)
#define TTMON_ST_POPULATED   (1 << 1) /* pages known to exist: pinned, MAP_POPULATE, or read by a transfer */
#define TTMON_ST_PINNED	     (1 << 2)
#define TTMON_ST_TRANSFERRED (1 << 3)
#define TTMON_ST_FREED	     (1 << 4)
#define TTMON_ST_UNSEEN	     (1 << 5) /* its pin or free can have been missed, so that its kind of memory is unknown */
#define TTMON_ST_EXTENT	     (1 << 6) /* a piece of a mapping, known by its copies (core/history/extents.c) */
#define TTMON_ST_MERGED	     (1 << 7) /* a mapping whose creation was not seen: it may hold the memory of many calls */
/*
 * api_flags of an extent: mapped from a device file of a GPU's driver, and so pinned; or from the file
 * of unified memory, and so managed.
 */
#define TTMON_EXTENT_DRIVER  1
#define TTMON_EXTENT_MANAGED 2

/* How it ended. */
#define TTMON_END_TABLE(X)                                                                                \
	X(0, LIVE, "live")                                                                                \
	X(1, FREE, "free") /* its own free call, or munmap of a mapping */                                \
	X(2, EXIT, "exit") /* process exit */                                                             \
	X(3, EXEC, "exec")                                                                                \
	X(4, RESET, "reset")	       /* device reset or context destroyed */                            \
	X(5, SUPERSEDED, "superseded") /* its address was allocated again without a free being seen */    \
	X(6, UNMAPPED, "unmapped")     /* registered memory was unmapped without unregister: a finding */ \
	X(7, MERGED, "merged")	       /* a mapping that became part of another (grew, moved, merged) */

enum ttmon_end {
#define X(id, NAME, name) TTMON_END_##NAME = id,
	TTMON_END_TABLE(X)
#undef X
		TTMON_END_MAX
};

/*
 * What is missing from sums of copies that were sampled (TTMON_B_SAMPLE), estimated from the reported
 * ones: each of weight w stands for w - 1 others like it (Horvitz and Thompson, 1952), and adds w (w -
 * 1) times its square to the variance.
 */
struct ttmon_sampled {
	uint64_t told; /* reported copies that have a weight */
	uint64_t copies, bytes;
	double copies_var, bytes_var;
};

/* Copies and bytes by (direction, host memory). For h2h the memory is that of the destination. */
struct ttmon_xfer {
	uint64_t copies;
	uint64_t bytes;
};

/*
 * A copy from an address in no known mapping counts as unknown, and moves to pageable when the list of
 * mappings shows a mapping there. unsettled[rdir] is the part of xfer[rdir][TTMON_MEM_UNKNOWN] that
 * may still move. proven[rdir] is the part that moved from unknown to pinned when the memory was freed
 * as pinned. Without the first, and with the second counted where it was at the time of the copy, the
 * figures only grow.
 */
static inline struct ttmon_xfer ttmon_xfer_settled(const struct ttmon_xfer xfer[TTMON_RDIR_MAX][TTMON_MEM_MAX],
						   const struct ttmon_xfer unsettled[TTMON_RDIR_MAX],
						   const struct ttmon_xfer proven[TTMON_RDIR_MAX], unsigned int rdir,
						   unsigned int mem)
{
	struct ttmon_xfer x = xfer[rdir][mem];

	if (mem == TTMON_MEM_UNKNOWN) {
		x.copies += proven[rdir].copies - unsettled[rdir].copies;
		x.bytes += proven[rdir].bytes - unsettled[rdir].bytes;
	} else if (mem == TTMON_MEM_PINNED) {
		x.copies -= proven[rdir].copies;
		x.bytes -= proven[rdir].bytes;
	}
	return x;
}

/*
 * The same for transfers outside every known mapping: those that may yet be shown to lie in a mapping
 * are left out.
 */
static inline uint64_t ttmon_unmatched_settled(uint64_t unmatched, const struct ttmon_xfer unsettled[TTMON_RDIR_MAX])
{
	for (unsigned int d = 0; d < TTMON_RDIR_MAX; d++)
		unmatched -= unsettled[d].copies;
	return unmatched;
}

#define TTMON_HEAT_BUCKETS 64
/*
 * Transfers over time in a fixed number of buckets. When time passes the last bucket, pairs are added
 * up and the width doubles.
 */
struct ttmon_heat {
	uint64_t origin_ns;
	uint64_t width_ns; /* starts at 1 ms */
	uint32_t copies[TTMON_HEAT_BUCKETS];
	uint64_t bytes[TTMON_HEAT_BUCKETS];
};

#define TTMON_PAGE_GROUPS 64
/* Copies that touched each of 64 equal groups of pages (the last may be shorter). */
struct ttmon_page_heat {
	uint64_t group_bytes; /* a multiple of the page size */
	uint32_t copies[TTMON_PAGE_GROUPS];
};

/* One kept event of an allocation, decoded. */
struct ttmon_aev {
	uint64_t ts_ns;
	uint8_t kind;  /* enum ttmon_aev_kind */
	uint8_t mem;   /* enum ttmon_mem of this allocation at that time (for transfers) */
	uint16_t bits; /* TTMON_B_* and TTMON_AB_* */
	uint64_t bytes;
	uint64_t offset; /* from the allocation's start, in bytes */
};
#define TTMON_AB_STAGED	  (1 << 12) /* pageable: the driver copies through its own pinned buffer */
#define TTMON_AB_STRADDLE (1 << 13) /* the copy continues past the end of this allocation */

/*
 * API allocations of one method; mappings (METHOD_MMAP) are not counted. Only allocs, bytes and ends
 * never fall.
 */
struct ttmon_proc_method {
	uint64_t allocs, bytes;
	uint64_t ends; /* ends of any kind */
	uint64_t live, live_bytes;
};

/*
 * A process, one per (tgid, start time); exec keeps the entry and is counted. Indexes are stable for
 * the life of the history.
 */
/*
 * Device work of a process's Tenstorrent programs, as tt-metal's profiler reported it. Sums over its
 * chips.
 */
struct ttmon_work {
	uint64_t runs;	    /* runs of programs; 0: nothing was reported, and the other fields mean nothing */
	uint64_t busy_ns;   /* sum of their durations */
	uint64_t error_ns;  /* by how much busy_ns may be wrong, for the runs with a known error */
	uint64_t unbounded; /* runs without a known error */
	uint64_t missed;    /* records that led to no run, and those that tt-metal dropped: missing from busy_ns */
};

struct ttmon_proc {
	uint32_t idx;
	uint32_t tgid;
	uint32_t ppid;
	uint32_t execs;
	uint32_t uid;	  /* effective user when it was announced; UINT32_MAX: unknown */
	uint32_t changes; /* grows with every change of its figures; 0: the process was only announced */
	uint64_t start_ns;
	uint64_t cgroup_id;
	uint64_t first_ns, last_ns; /* times of its events */
	uint64_t exit_ns;	    /* 0: it still runs */
	uint32_t exit_code;	    /* wait status */
	bool maps_known;	    /* a full list of mappings was seen: an address outside them is no host memory */
	char comm[TTMON_COMM_LEN + 1];
	char *exe, *cmdline, *cgroup; /* owned, may be NULL; cmdline: NULs are replaced by spaces */

	uint64_t pins;				  /* pinned allocations since the start */
	uint64_t pinned_pages, pinned_peak_pages; /* distinct pages: where registrations overlap, a page counts once */
	uint64_t pinned_bytes, pinned_peak_bytes; /* as requested, overlaps counted each time */
	uint64_t peak_ns;
	uint64_t live;		/* live allocations, without mappings */
	uint64_t allocs, frees; /* successful API calls (not mmap) */
	struct ttmon_proc_method by_method[TTMON_METHOD_MAX];
	struct ttmon_xfer xfer[TTMON_RDIR_MAX][TTMON_MEM_MAX];
	struct ttmon_xfer unsettled[TTMON_RDIR_MAX]; /* see ttmon_xfer_settled() */
	struct ttmon_xfer proven[TTMON_RDIR_MAX];
	struct ttmon_sampled sampled[TTMON_RDIR_MAX];
	uint64_t kernels, graphs, graph_copies;
	uint64_t captured;	/* async copies into a capturing stream: not transfers */
	uint64_t failed;	/* calls that returned an error, see ttmon_history_errors() */
	uint64_t unknown_frees; /* frees of addresses without a known allocation (older than the trace, or lost) */
	/* transfers whose host address lies in no known memory, see ttmon_unmatched_settled() */
	uint64_t unmatched;
	uint64_t findings[8]; /* by enum ttmon_finding */
	uint64_t checkpoints; /* since the start */
	/* live allocations without a record: included in the sums here, and listed nowhere else */
	uint64_t condensed;
	uint64_t condensed_ever;
	uint64_t forgotten; /* live ones that are in no sum any more: live, pinned and by_method are lower bounds */
	bool limited;	    /* something of it was not kept, for its user had most */
	struct ttmon_wait_sums *waits; /* [TTMON_WAIT_MAX] by kind of call (core/history/waits.h); NULL: none; owned */
	uint64_t folded_to_ns; /* what ended, or lost its record, up to then need not have one any more; 0: all have */
	struct ttmon_work work;
};

#define TTMON_FINDING_TABLE(X)                                                                                  \
	X(0, UNMAP_REGISTERED, "unmap_registered", "registered memory was unmapped without cudaHostUnregister") \
	X(1, SLOW_PIN, "slow_pin", "a pin call took longer than 10 ms")                                         \
	X(2, OVERLAP, "overlap", "a registration overlaps a live one")                                          \
	X(3, TRUNCATED_BATCH, "truncated_batch", "a batched copy was longer than what is looked at")            \
	X(4, FREE_BY_OTHER, "free_by_other", "memory was given to the wrong free function")                     \
	X(5, FORK_PINNED, "fork_pinned", "a process forked while it held registered memory (copy-on-write hazard)")
enum ttmon_finding {
#define X(id, NAME, name, help) TTMON_FINDING_##NAME = id,
	TTMON_FINDING_TABLE(X)
#undef X
		TTMON_FINDING_MAX
};
const char *ttmon_finding_name(unsigned int finding);
const char *ttmon_finding_help(unsigned int finding);

/*
 * Fields that only an allocation with transfers (or hints) has; a block of its own, made by the first
 * event.
 */
struct ttmon_traffic {
	uint64_t bytes[TTMON_RDIR_MAX];
	uint32_t copies[TTMON_RDIR_MAX]; /* transfers that it took part in */
	uint32_t nr_events;		 /* kept, read with ttmon_history_event() */
	uint64_t last_copy_ns;
	uint32_t events_dropped; /* not kept, for any reason */
	struct ttmon_page_heat *page_heat;
	struct ttmon_gpu_use *gpu;     /* NULL: no access of a kernel was seen; owned */
	struct ttmon_sampled *sampled; /* [TTMON_RDIR_MAX], NULL: none of its copies was sampled; owned */
};

/* Accesses of kernels, where they are recorded (--memtrace). */
struct ttmon_gpu_use {
	uint64_t reads, writes; /* requests */
	uint64_t sectors;	/* of 32 bytes */
	uint64_t first_ns, last_ns;
};

/*
 * One record per live or kept allocation. A million of them are common, so the layout is tight: fields
 * for transfers come first, then those for the begin and end.
 */
#define TTMON_HISTORY_ROW_EVENTS (512u << 10) /* bytes of the events of one allocation, at most */

struct ttmon_alloc {
	uint64_t addr, size;
	const struct ttmon_traffic *traffic; /* never NULL; all zero without transfers */
	uint32_t site; /* index of the call site; 0: unknown (mappings, older than the trace, not resolved yet) */
	uint8_t method : 4, end : 3; /* enum ttmon_method, enum ttmon_end */
	uint8_t cold : 1;	     /* live advice called it cold, and it had no transfer since */
	uint8_t states, bits;	     /* TTMON_ST_*, TTMON_AL_* */
	uint8_t seq_high;	     /* bits 32 to 39 of its number in order of allocation */
	uint32_t seq_low;
	uint32_t proc;	   /* index */
	uint64_t alloc_ns; /* at the return of the call */
	uint64_t free_ns;  /* at the entry of the free; 0: live */
	uint64_t pin_ns;   /* duration of the call that made it */
	uint64_t unpin_ns; /* duration of the call that freed it */
	char *name;	   /* mappings: path or "[heap]"; USDT: the tag; or NULL */
	uint32_t ordinal;  /* 0, 1, ...: number within (process, site, size) */
	uint32_t api_flags;
	uint32_t gen; /* how often this address had been allocated before in the process */
	/*
	 * Kernel launches of the process before it was made, and before it was freed. UINT32_MAX: it was not
	 * freed, or the number is too large. Valid below ttmon_history_numbered().
	 */
	uint32_t made_nth, freed_nth;
	uint16_t fn;
	int16_t device;
};
#define TTMON_AL_OLD	     (1 << 0) /* existed before the trace began */
#define TTMON_AL_DEVICE_PTR  (1 << 1) /* its device pointer was requested: a kernel may read it in place */
#define TTMON_AL_PROVISIONAL (1 << 2) /* a mapping assumed from a copy's address */
#define TTMON_AL_READONLY    (1 << 3)
#define TTMON_AL_SHARED	     (1 << 4)
#define TTMON_AL_UNOBSERVED  (1 << 5) /* made by a call whose result was not observed */
#define TTMON_AL_SITE_QUEUED (1 << 6) /* its call site is not resolved yet; never set after finish */
#define TTMON_AL_FREE_QUEUED (1 << 7) /* its end is not in the site's sums yet; never set after finish */

/* True if the method pins pages: host_alloc, registered, pool, tt_dma. */
static inline bool ttmon_method_pins(unsigned int method)
{
	return method == TTMON_METHOD_HOST_ALLOC || method == TTMON_METHOD_REGISTERED || method == TTMON_METHOD_POOL ||
	       method == TTMON_METHOD_TT_DMA;
}
/* True if its memory is pinned: by itself, or as a piece of pinned memory. */
static inline bool ttmon_method_pinned(unsigned int method)
{
	return ttmon_method_pins(method) || method == TTMON_METHOD_PIECE;
}

struct ttmon_frame {
	/*
	 * index of an object; 0: no mapping known (JIT, or the process exited before its mappings were read)
	 */
	uint32_t object;
	uint64_t offset; /* file offset of the return address; the raw address where object is 0 */
};

/*
 * A call site: frames outside CUDA and allocator objects, innermost first. The key is the same under
 * ASLR and in another run.
 */
struct ttmon_site {
	/*
		 * FNV-1a 64 over, per frame: build-id bytes (or the base name of the path), then the offset, little
		 * endian
		 */
	uint64_t key;
	uint32_t nframes;
	struct ttmon_frame *frames; /* owned by the history */
	uint64_t allocs;	    /* since the start */
	uint64_t live, live_bytes, peak_bytes;
	uint64_t peak_live;
	uint64_t bytes; /* requested in total */
	uint64_t min_size, max_size;
	struct ttmon_xfer h2d[TTMON_MEM_MAX], d2h[TTMON_MEM_MAX];
	uint64_t pin_ns;      /* time spent in pin and unpin calls */
	uint64_t folded;      /* freed allocations folded into this site */
	uint32_t method_mask; /* 1 << method */
	uint8_t by;	      /* enum ttmon_stack_by: how its frames were found, the best of its stacks */
	uint8_t end;	      /* enum ttmon_stack_end of that stack */
	uint32_t end_object;  /* id of the object without an unwind table, or with a broken one; 0: none */
};

struct ttmon_object {
	uint32_t id; /* number as in the OBJECT fact; 0: unused */
	uint32_t flags;
	uint8_t build_id[TTMON_BUILD_ID];
	uint8_t build_id_len;
	char *path;
};

/* One line of hotspots(), coldspots() or advice(). */
struct ttmon_spot {
	uint32_t proc, site;
	uint8_t method;
	uint32_t allocs;		  /* allocations summed up in this line */
	uint64_t size;			  /* size of the largest */
	uint64_t bytes;			  /* bytes of all */
	uint64_t copies;		  /* to the device */
	uint64_t copied;		  /* bytes to the device */
	uint64_t back_copies, back_bytes; /* from the device */
	uint64_t age_ns;		  /* life time of the oldest */
	struct ttmon_said said;
	uint64_t alloc_seq; /* number of one of them (ttmon_history_alloc) */
};

/*
 * Figures of the whole host since the start. pages: pages touched by each allocation of pinned memory,
 * overlaps counted each time. Peaks follow the order of events.
 */
struct ttmon_method_totals {
	uint64_t allocs, bytes, pages, ends;
	uint64_t live, live_bytes, live_pages;
	uint64_t peak_bytes, peak_pages;
};

/*
 * Counters here never fall, even when the line of a process is reused, except: allocs (a Tenstorrent
 * buffer whose creation failed is taken back), superseded (its free came after all), xfer and
 * unmatched (see ttmon_xfer_settled()). live, pinned_pages, pinned_bytes and events_kept are current
 * values.
 */
struct ttmon_history_totals {
	uint64_t pins, pinned_pages, pinned_peak_pages, pinned_bytes, pinned_peak_bytes, peak_ns; /* whole host */
	uint64_t allocs, frees, live, folded;
	uint64_t evicted;	 /* records evicted to make room, of freed and of live allocations */
	uint64_t condensed_ever; /* live ones of these, whose bytes stayed in the sums */
	uint64_t forgotten;	 /* live ones that left the sums, which are lower bounds then */
	uint64_t events_kept;
	uint64_t events_dropped; /* for want of room (max_events) or memory */
				 /*
		 * older events of an allocation with many: they are still in its sums and heat, so that nothing is
		 * lost
		 */
	uint64_t events_trimmed;
	uint64_t unknown_frees, unmatched, superseded, failed, captured;
	uint64_t gpu_use_gone; /* GPU_USE facts of which a page or all belonged to no known allocation when they came */
	uint64_t late;	       /* events that came late */
	uint64_t checkpoints,
		/* since the start; of these, not in ttmon_history_checkpoints() for want of room */
		checkpoints_dropped;
	uint64_t malformed_facts;
	uint64_t findings[8]; /* by enum ttmon_finding */
	struct ttmon_method_totals method[TTMON_METHOD_MAX];
	struct ttmon_xfer xfer[TTMON_RDIR_MAX][TTMON_MEM_MAX];
	struct ttmon_xfer unsettled[TTMON_RDIR_MAX];
	struct ttmon_xfer proven[TTMON_RDIR_MAX];
	uint64_t kernels, graphs, graph_copies;
	struct ttmon_work work;
	uint64_t no_memory; /* items not kept because memory ran out */
	bool reduced;	    /* a family of probes was off or only counting for some time */
	/* something of some process was not kept because its user had the most: ttmon_history_quotas() */
	bool limited;
	bool incomplete; /* max_events, another limit or memory was reached; max_allocations shows in evicted */
};

struct ttmon_error_count {
	uint32_t proc;
	uint16_t fn;
	int32_t err;
	uint64_t count;
};

/*
 * Durations of calls that pin or unpin. Bounds are upper ones, inclusive; the last count is of longer
 * calls.
 */
#define TTMON_PIN_BUCKETS 14
extern const uint64_t ttmon_pin_bounds_ns[TTMON_PIN_BUCKETS];
struct ttmon_pin_times {
	uint64_t count[TTMON_PIN_BUCKETS + 1]; /* not cumulative */
	uint64_t sum_ns;
	uint64_t unobserved; /* calls whose return was not seen: not in the counts and the sum */
};

/* Failed calls on the whole host. err 0: failed by its arguments, or without an error code. */
struct ttmon_failure {
	uint16_t fn; /* 0: the sum of those without room for a row */
	int32_t err;
	uint64_t count;
};

/* The end of a period that the program marked (USDT ttmon:checkpoint). */
struct ttmon_period_end {
	uint64_t ts_ns;
	uint32_t proc, tid;
	char *label; /* owned by the history */
};

struct ttmon_blind {
	uint32_t object, tgid;
	uint64_t mapped_ns, active_ns;
	bool held;   /* stopped until its probes were active */
	bool let_go; /* released before they were, because they took too long */
};

int ttmon_history_new(const struct ttmon_history_cfg *cfg, struct ttmon_history **ret) _must_check;
void ttmon_history_free(struct ttmon_history *h);

/*
 * ttmon_history_on_NAME(h, ev): a record that ttmon_decode() has passed; events in slot order, facts
 * whenever they come.
 */
#define X(id, NAME, name, type, way, family, check, stream, timeline, history, ...) \
	TTMON_IF_##history(void ttmon_history_on_##name(struct ttmon_history *h, const struct type *ev);)
TTMON_EVENT_TABLE(X)
#undef X
/*
 * Advances the stream time. Called before each event that is no fact, also where another part handles
 * the event.
 */
void ttmon_history_now(struct ttmon_history *h, uint64_t ts_ns, bool late);
/*
 * This event comes in a few events' time: reads ahead what it will need. Changes nothing. With a
 * million allocations each line of memory that a copy touches comes from far away, and waiting for one
 * after the other is most of its cost.
 */
void ttmon_history_ahead(struct ttmon_history *h, const struct ttmon_event *ev);
/*
 * Time has passed up to now_ns: folds allocations freed long ago, and does other work that waits for
 * time. Returns when there is work next if no record comes before: an earlier call would change
 * nothing but the time, which ttmon_history_now() does too.
 */
uint64_t ttmon_history_tick(struct ttmon_history *h, uint64_t now_ns);
/*
 * End of the capture: resolves the open call sites and takes the last launches. Live allocations stay
 * live.
 */
void ttmon_history_finish(struct ttmon_history *h, uint64_t end_ns);
/*
 * For a copy of the history that is read once: resolves the call sites that still wait. Where the
 * mappings of the last milliseconds are not known yet, a site stays unknown. Later allocations may get
 * other ordinals than without this call.
 */
void ttmon_history_settle(struct ttmon_history *h);

/* Memory of a Tenstorrent device, as core/tt/tt.h reports it. */
struct ttmon_tt_alloc {
	uint64_t ts_ns, addr, bytes;
	uint16_t fn;
	uint8_t method; /* TTMON_METHOD_TT_* */
};
/* Its number (ttmon_alloc_seq); UINT64_MAX: not kept. */
uint64_t ttmon_history_tt_alloc(struct ttmon_history *h, uint32_t tgid, const struct ttmon_tt_alloc *in);
/* It has ended; no effect if it had ended already. */
void ttmon_history_tt_free(struct ttmon_history *h, uint64_t seq, uint64_t ts_ns);
/* It never existed: the call that was to make it failed. */
void ttmon_history_tt_undo(struct ttmon_history *h, uint64_t seq);

/* True if this process's list of mappings was seen since its last exec. */
bool ttmon_history_maps_known(const struct ttmon_history *h, uint32_t tgid);
/*
 * Processes whose mappings are needed (a copy came from an unknown address): fills in at most max
 * tgids, each once until its MAPS_DONE comes. Returns their number.
 */
size_t ttmon_history_want_maps(struct ttmon_history *h, uint32_t *tgids, size_t max);
/* Frames without a SYMBOL fact, each once: (object id, file offset). Returns their number. */
size_t ttmon_history_want_symbols(struct ttmon_history *h, struct ttmon_frame *frames, size_t max);

/*
 * Views, valid until the next record, tick or finish. Index 0 of sites is the unknown site, index 0 of
 * objects is unused.
 */
size_t ttmon_history_procs(const struct ttmon_history *h);
const struct ttmon_proc *ttmon_history_proc(const struct ttmon_history *h, size_t idx);
/*
 * The effective user of the process that has this id, or had it last, if it ran at that time.
 * UINT32_MAX: unknown.
 */
uint32_t ttmon_history_uid(const struct ttmon_history *h, uint32_t tgid, uint64_t at_ns);
/*
 * Adds to the work of the process that had this id at that time. No effect where another process has
 * the id by now.
 */
void ttmon_history_work(struct ttmon_history *h, uint32_t tgid, uint64_t at_ns, const struct ttmon_work *more);
size_t ttmon_history_sites(const struct ttmon_history *h);
const struct ttmon_site *ttmon_history_site(const struct ttmon_history *h, size_t idx);
size_t ttmon_history_objects(const struct ttmon_history *h);
const struct ttmon_object *ttmon_history_object(const struct ttmon_history *h, size_t idx);
/*
 * How many of the process's kernel launches, from the first on, have a number: up to the first graph
 * launch (a graph is an unknown number of kernels), or the first launch during a stream capture. 0:
 * the process is older than the capture, or launches of it may have been missed.
 */
uint64_t ttmon_history_numbered(const struct ttmon_history *h, const struct ttmon_proc *p);
/* Function name at a frame, NULL if unknown; *delta: offset in the function. */
const char *ttmon_history_symbol(const struct ttmon_history *h, const struct ttmon_frame *f, uint64_t *delta);
/* The same for people: of Python "train.py:42 in forward", made in buf. NULL: it has no name. */
const char *ttmon_history_frame_name(const struct ttmon_history *h, const struct ttmon_frame *f, char *buf, size_t n);
/*
 * Allocations in the order they were made: seq runs from 0 to ttmon_history_allocs() - 1; NULL where
 * folded or evicted.
 */
uint64_t ttmon_history_allocs(const struct ttmon_history *h);
const struct ttmon_alloc *ttmon_history_alloc(const struct ttmon_history *h, uint64_t seq);
/*
 * The first seq from this one on that is not NULL; ttmon_history_allocs() if there is none. Use this
 * to loop: a service that ran for months has folded billions.
 */
uint64_t ttmon_history_next(const struct ttmon_history *h, uint64_t seq);
static inline uint64_t ttmon_alloc_seq(const struct ttmon_alloc *a)
{
	return (uint64_t)a->seq_high << 32 | a->seq_low;
}
/*
 * Decodes the next kept event: *pos starts at 0; ev must be the one filled in by the call before.
 * False at the end.
 */
bool ttmon_history_event(const struct ttmon_alloc *a, uint32_t *pos, struct ttmon_aev *ev);
/* Its transfers over time; false: it had none. */
bool ttmon_history_heat(const struct ttmon_alloc *a, struct ttmon_heat *ret);
/*
 * Whether its transfers (and, where it was pinned before the trace, its size) are known. UNKNOWN: none
 * of its life was seen.
 */
enum ttmon_knowledge ttmon_history_alloc_known(const struct ttmon_history *h, const struct ttmon_alloc *a);
/* The kind of memory it is, or was at its end. */
enum ttmon_mem ttmon_history_mem(const struct ttmon_history *h, const struct ttmon_alloc *a);
/*
 * Whether the family's figures of a process are known. UNKNOWN: no probe of the family saw any of its
 * life.
 */
enum ttmon_knowledge ttmon_history_known(const struct ttmon_history *h, const struct ttmon_proc *p,
					 enum ttmon_family family);
/*
 * True if the sums of allocations and transfers of the process, or of all processes, are lower bounds.
 */
bool ttmon_history_at_least(const struct ttmon_history *h, const struct ttmon_proc *p);
bool ttmon_history_all_at_least(const struct ttmon_history *h);
/*
 * True if the estimates of its sampled copies are lower bounds too, since copies beside the sampled
 * ones can have been missed.
 */
bool ttmon_history_sampled_at_least(const struct ttmon_history *h, const struct ttmon_proc *p);
/* When the last of its libraries got its probes; 0: all had them from the beginning. */
uint64_t ttmon_history_probed_ns(const struct ttmon_history *h, const struct ttmon_proc *p);
/*
 * True if pinned_pages and pinned_bytes of the process are the present state. False where a free can
 * have been missed.
 */
bool ttmon_history_pinned_known(const struct ttmon_history *h, const struct ttmon_proc *p);
/*
 * The live allocation that holds addr: pinned, managed or device memory first, else the mapping; or
 * NULL.
 */
const struct ttmon_alloc *ttmon_history_find(const struct ttmon_history *h, uint32_t tgid, uint64_t addr);

/*
 * Fills in the n unpinned (site, process) groups with the most bytes to and from the device, best
 * first; groups without copies are left out. Returns their number.
 */
size_t ttmon_history_hotspots(const struct ttmon_history *h, struct ttmon_spot *spots, size_t n);
/*
 * The numbers (ttmon_history_alloc) of the n live allocations, pinned ones included, with the most
 * transfers to and from the device, best first.
 */
size_t ttmon_history_hottest(const struct ttmon_history *h, uint64_t *seqs, size_t n);
/* Pinned groups that are cold by the rule (ttmon_said.cold), most pinned bytes first. */
size_t ttmon_history_coldspots(const struct ttmon_history *h, struct ttmon_spot *spots, size_t n);
/* The costs that verdicts use: configured, else measured, else the defaults. */
void ttmon_history_cost(const struct ttmon_history *h, struct ttmon_cost *ret);
/*
 * Advice for every (site, process, method) with host memory, in site order. Free *ret with free().
 * -ENOMEM.
 */
int ttmon_history_advice(const struct ttmon_history *h, struct ttmon_spot **ret, size_t *ret_n) _must_check;

/*
 * Users that got less than they needed because a table was full; rows has room for TTMON_QUOTA_ROWS.
 * Returns their number.
 */
uint32_t ttmon_history_quotas(const struct ttmon_history *h, struct ttmon_quota_row *rows);
/* Number of host pages pinned now, of the totals. */
uint64_t ttmon_history_pinned_pages(const struct ttmon_history *h);
void ttmon_history_get_totals(const struct ttmon_history *h, struct ttmon_history_totals *ret);
size_t ttmon_history_errors(const struct ttmon_history *h, const struct ttmon_error_count **ret);
/* Their counts add up to totals.failed. Sorted by (fn, err), at most 1025 rows. */
size_t ttmon_history_failures(const struct ttmon_history *h, const struct ttmon_failure **ret);
/* Since the start; all 0 for methods that do not pin. */
void ttmon_history_pin_times(const struct ttmon_history *h, unsigned int method, bool unpin,
			     struct ttmon_pin_times *ret);
size_t ttmon_history_blinds(const struct ttmon_history *h, const struct ttmon_blind **ret);
/*
 * In order of arrival; the newest TTMON_CHECKPOINTS_MAX of a service, the first ones of a --dump-db
 * run (which is then incomplete). Those of a process go when its line is reused.
 */
#define TTMON_CHECKPOINTS_MAX 65536u
size_t ttmon_history_checkpoints(const struct ttmon_history *h, const struct ttmon_period_end **ret);
const struct ttmon_ev_clock *ttmon_history_clock(const struct ttmon_history *h); /* NULL before the CLOCK fact */

#endif
