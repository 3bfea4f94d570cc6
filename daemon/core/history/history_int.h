/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * history_int.h: shared by the files of core/history; not included elsewhere.
 *
 *   history.c    life, hooks, time                  recs.c     records: made, ended, dropped
 *   transfers.c  transfers and their sums           counts.c   counters that only grow
 *   procs.c      processes, launches, errors        siteq.c    call sites, in event order, later
 *   unwound.c    stacks found in copies of the stack
 *   calls.c      alloc, free, hint, reset           pins.c     pinned pages, bytes, peaks
 *   mappings.c   mmap, munmap, mremap, brk, lists   extents.c  pieces of mappings not seen to be made
 *   ttmem.c      memory of Tenstorrent              gpu_use.c  accesses by kernels
 *   live.c       advice while the program runs      advice.c   what should be pinned
 *   views.c      the read side                      known.c    what is known, a lower bound, unknown
 *   users.c      quotas of users                    condensed.c live allocations without a record
 */
#ifndef TTMON_HISTORY_INT_H
#define TTMON_HISTORY_INT_H

#include "daemon/core/history/evlog.h"
#include "lib/base/fifo.h"
#include "daemon/core/history/heat.h"
#include "daemon/core/history/history.h"
#include "lib/base/hmap.h"
#include "daemon/core/history/live.h"
#include "daemon/core/history/maps.h"
#include "lib/base/ranges.h"
#include "lib/base/seqtab.h"
#include "daemon/core/history/sites.h"
#include "daemon/core/history/symtab.h"
#include "daemon/core/history/waits.h"

#define TTMON_PROCS_MAX (1u << 20)
#define TTMON_USERS_MAX 4096u /* further users share a line */
#define TTMON_FREED_KEPT \
	65536 /* Service: freed allocations that wait to be folded; beyond this the oldest are folded at once. */
#define TTMON_EXITED_KEPT \
	4096 /* A service reuses the place of an exited process when this many younger ones are kept. */
#define TTMON_EXIT_GRACE_NS 2000000000ULL /* facts about an exited process may come so late */
#define TTMON_WANT_PAUSE_NS 100000000ULL  /* between two lists of one process */
/*
 * An allocation with more events keeps the younger half: in a service. Where everything is kept, the
 * limit is what one row of a database holds.
 */
#define TTMON_ALLOC_EVENTS     4096
#define TTMON_ALLOC_EVENTS_ALL TTMON_HISTORY_ROW_EVENTS
#define TTMON_PIECES_MAX       1024 /* allocations that one transfer can touch */
#define TTMON_GHOSTS	       64
/* per process: allocations that ended last, for uses by kernels that are reported late */
#define TTMON_ENDED	   64
#define TTMON_CHANGES	   256
#define TTMON_UNMAPPED	   16
#define TTMON_VMAS_MAX	   (1u << 18)
#define TTMON_ERRORS_MAX   4096
#define TTMON_FAILURES_MAX 1024
#define TTMON_BLINDS_MAX   65536
#define TTMON_EXECS	   8
#define TTMON_RECENT	   256
#define TTMON_AHEAD	   4
#define TTMON_SEEN	   4 /* two streams of copies, each with a source and a destination */
#define TTMON_GENS_SERVICE 65536
#define TTMON_TT_PINS_MAX  (1u << 20) /* per process: (range, device) pairs, and ranges */

/*
 * Values of <asm/mman.h>, which the core does not include: part of the kernel's ABI, the same on
 * x86-64 and arm64.
 */
#define TTMON_PROT_READ	       0x1
#define TTMON_PROT_WRITE       0x2
#define TTMON_PROT_EXEC	       0x4
#define TTMON_MAP_SHARED       0x1 /* also set in MAP_SHARED_VALIDATE */
#define TTMON_MAP_PRIVATE      0x2
#define TTMON_MAP_ANONYMOUS    0x20
#define TTMON_MAP_POPULATE     0x8000
#define TTMON_MREMAP_DONTUNMAP 0x4

/* Objects with an address, in order of lookup: the first layer that knows an address answers. */
enum ttmon_layer {
	TTMON_LAYER_PIECE, /* pieces that the program's allocator gave out of memory of the next two layers */
	TTMON_LAYER_DEV,   /* host_alloc, pool, managed, device: memory that CUDA allocated */
	TTMON_LAYER_REG,   /* registered; may overlap */
	TTMON_LAYER_CUSTOM,
	TTMON_LAYER_MAP,    /* ordinary mappings */
	TTMON_LAYER_EXTENT, /* pieces of mappings; looked up separately */
	TTMON_LAYER_TT,	    /* Tenstorrent: device addresses, never looked up by a host pointer */
	TTMON_LAYER_MAX,
};

/* A cached lookup: every address of this range has the same answer. */
struct ttmon_seen {
	uint64_t lo, len;
	struct ttmon_alloc *a; /* NULL: in no known memory */
};

/* Live advice to pin an allocation: what was said, and the sums from which the next time counts. */
struct ttmon_live_hot {
	bool said;
	uint8_t level; /* how often it was pinned and unpinned again: each time doubles the threshold */
	uint32_t copies;
	uint64_t bytes;
};

/*
 * The block around the traffic of struct ttmon_alloc; allocations without traffic share one without
 * this block. What every copy touches comes first.
 */
struct ttmon_htraffic {
	struct ttmon_traffic pub;
	struct ttmon_evlog log;
	struct ttmon_heat_now now;
	struct ttmon_live_hot hot;
	struct ttmon_heat *heat; /* without what is in `now`; NULL: no bucket but that one had transfers; owned */
	struct ttmon_xfer unsettled[2]; /* of a provisional mapping: its copies as counted in xfer; H2D, D2H */
	struct ttmon_xfer unproven[2];	/* of memory whose pin can have been missed: likewise */
};

struct ttmon_launch {
	uint32_t cpu;
	uint64_t kernels, graphs, graph_copies;
};

/* Numbers of launches: the latest reports, so that the number at a free's entry can be found. */
#define TTMON_NUMBERS 16
struct ttmon_numbers {
	uint64_t ts_ns[TTMON_NUMBERS], n[TTMON_NUMBERS];
	uint64_t told;	  /* number of reports; the last ones are kept */
	uint64_t to;	  /* kernels before the first graph launch; UINT64_MAX: there was none */
	uint64_t exec_ns; /* time of the last exec */
	uint8_t since;	  /* enum ttmon_launched, as reported last */
	bool gap;	  /* the numbers are unusable */
};

/* Memory that CUDA allocated or registered, and that has ended. */
struct ttmon_ended {
	uint64_t seq;
	uint64_t free_ns; /* as it was ended; a free that is reported later may carry an earlier time */
};

/* A line of a list of mappings. */
struct ttmon_vma {
	uint64_t start, end;
	uint32_t prot;
	bool shared;
	char *name; /* NULL: anonymous */
};

struct ttmon_change {
	uint64_t lo, hi, ts_ns;
};

/*
 * When the last time ended in which calls of the process can have been missed, of those that began so
 * far: a pin of memory older than this, or a free of pinned memory, can have been missed. 0: there was
 * none.
 */
struct ttmon_unseen {
	uint64_t pins_to_ns, frees_to_ns;
};

enum ttmon_want { TTMON_WANT_NO, TTMON_WANT_YES, TTMON_WANT_TOLD };

struct ttmon_hproc {
	struct ttmon_proc pub;
	struct ttmon_seen seen[TTMON_SEEN]; /* valid until a layer changes: ttmon_rec_forget() */
	uint32_t next_seen;
	struct ttmon_ranges layer[TTMON_LAYER_MAX];
	struct ttmon_maps maps;
	struct ttmon_stacks stacks;
	struct ttmon_hmap ordinals; /* by (site, size): number of allocations */
	struct ttmon_hmap gens;	    /* by address that is free now: next generation */
	struct ttmon_hmap tt_pins;  /* ttmem.c */
	uint32_t user;		    /* index in users */
	uint64_t events;	    /* kept events of its allocations */
	uint64_t hand;		    /* address from which the next live record to condense is searched */
	/* mappings of it were evicted: its list is not complete, and not requested again */
	bool maps_evicted;
	struct ttmon_remains *remains; /* see condensed.c; NULL: none */
	uint32_t gen_floor, gen_max;
	uint64_t *ghosts; /* [TTMON_GHOSTS] superseded allocations: ended, but a free may still come */
	uint32_t nr_ghosts;
	struct ttmon_ended *ended;     /* [TTMON_ENDED] ring; kept across an exit and an exec */
	uint64_t nr_ended;	       /* since the start */
	struct ttmon_launch *launches; /* by CPU */
	uint32_t nr_launches;
	struct ttmon_numbers numbers;
	struct ttmon_vma *vmas; /* the list that is being received */
	uint32_t nr_vmas, cap_vmas;
	bool vmas_bad;
	/* cached ttmon_rec_unseen(), and the change number of core/know for which it is valid */
	struct ttmon_unseen unseen;
	uint64_t unseen_as_of;
	uint64_t unmapped[TTMON_UNMAPPED]; /* ring: numbers of the extents that were unmapped last */
	uint32_t nr_unmapped;
	struct ttmon_change unmap;    /* the last munmap */
	struct ttmon_change *changes; /* [TTMON_CHANGES] ring of the last changes by events */
	uint32_t nr_changes;
	uint64_t last_change_ns;
	uint64_t maps_from_ns; /* the last list was read after this time; 0: none */
	uint64_t brk_first;
	enum ttmon_want want;
	uint64_t want_ns, want_after_ns;
	uint64_t execs[TTMON_EXECS];
	uint32_t nr_execs;
	uint32_t gen;	    /* generation: number of the process among those that had this place; outlives them */
	uint32_t nr_folded; /* its groups in advice.c */
	uint32_t nr_errors; /* its rows in errors */
	uint32_t records;   /* in the tables: live and kept ones */
	uint32_t queued;    /* site operations that wait */
	uint64_t told_ns;   /* begin of the current second of checkpoints, and their number in it */
	uint32_t told;
	uint32_t kept_checkpoints;
	uint32_t period; /* checkpoints so far */
	char period_label[TTMON_LIVE_LABEL];
};

/* The call stack of an event. */
struct ttmon_taken {
	uint64_t copy;	     /* number of the copy of the stack; 0: there is none */
	uint32_t stack;	     /* found by frame pointers; TTMON_STACK_NONE: none */
	uint32_t end_object; /* as in struct ttmon_site */
	uint8_t by, end;
};

struct ttmon_site_op {
	uint64_t ts_ns;
	uint64_t seq;
	uint32_t proc;
	bool end;
	struct ttmon_taken taken; /* unused by operations for an end */
};

/* Call stack found in a copy of the stack, until its event is handled. */
struct ttmon_unwound {
	uint64_t copy; /* number of the copy; 0: the place is free */
	uint64_t *frames;
	uint16_t nframes;
	uint8_t by, end;
	uint32_t object;
};

#define TTMON_UNWOUND_RINGS 16u	  /* a process uses one ring, by its tgid: a process that fills it affects few others */
#define TTMON_UNWOUND_MAX   8192u /* in each ring */

/* The latest ones; see unwound.c. */
struct ttmon_unwounds {
	struct ttmon_unwound *v; /* [TTMON_UNWOUND_RINGS][TTMON_UNWOUND_MAX]; NULL: none came yet */
	struct {
		uint32_t next;
		uint64_t gone; /* highest number whose answer had to make room */
	} rings[TTMON_UNWOUND_RINGS];
	bool over; /* unwinding has stopped for good */
	struct ttmon_hmap by_copy;
};

struct ttmon_exited {
	uint64_t ts_ns;
	uint32_t proc;
};

/*
 * Sums over the allocations of one (process, site, method), or over the mappings of one name, or of
 * one mapping without a name.
 */
struct ttmon_group {
	uint32_t proc, gen;    /* gen: of the process that had this place; groups of an earlier one are stale */
	uint32_t site, folded; /* folded: number of its allocations that are gone */
	uint8_t method;
	uint64_t name; /* hash of the name, or the mapping's own number */
	uint64_t seq;  /* the oldest that is still kept, TTMON_SEQTAB_END: none */
	uint64_t size, bytes;
	struct ttmon_memory m;
};

/* What a user has in the tables, and what that user gave up (lib/base/quota.h). */
struct ttmon_user {
	uint32_t uid; /* UINT32_MAX: unknown, or one of too many */
	uint64_t records, events;
	uint64_t watched; /* allocations that live advice follows */
	uint32_t sites, errors, groups;
	uint64_t lines_ns; /* begin of the current second of live advice, and the lines written in it */
	uint32_t lines;
	struct ttmon_fifo freed; /* u64 seq: ended allocations, in that order */
	struct ttmon_fifo dead;	 /* u32 process: those past their grace period */
	uint64_t paid[TTMON_QUOTA_MAX];
	uint32_t payer[TTMON_QUOTA_MAX]; /* the process that gave up last */
};

/* A live allocation without a record: the fields that its end will need. */
struct ttmon_condensed {
	uint64_t size; /* in a free place: the next free one */
	uint64_t seq;
	uint32_t site;
	int16_t device;
	uint8_t method;
};

struct ttmon_groups {
	struct ttmon_group *v;
	uint32_t n, cap, stale;
	struct ttmon_hmap by_key;
};

struct ttmon_checkpoints {
	struct ttmon_period_end *v; /* kept: [first, first + n) */
	uint32_t first, n, cap;
};

/*
 * Live advice (live.c). An allocation costs nothing until it is cold_ns old: they are visited in the
 * order they were made. Then a pinned one waits in the wheel until it may be cold, or is in `cold`
 * after it was called cold.
 */
struct ttmon_live {
	struct ttmon_live_line *lines;
	uint32_t cap; /* a power of two */
	bool full;    /* it cannot grow further */
	uint64_t next_seq;
	uint64_t said[TTMON_SAID_CHECKPOINT + 1], unheard;
	struct ttmon_hmap cold;	  /* by number of the allocation: what was said, and its level */
	struct ttmon_fifo *wheel; /* number and level; NULL: nothing waits yet */
	uint64_t wheel_at;	  /* turns so far */
	uint64_t waiting;
	uint64_t met;	     /* allocations before this number were visited */
	uint64_t seen_ns;    /* transfers are seen from here on */
	uint32_t speaker[2]; /* the users that wrote a line last, and when; 0: none */
	uint64_t spoke_ns[2];
	bool blind;
};

struct ttmon_rec_hooks;

struct ttmon_history {
	struct ttmon_history_cfg cfg;
	struct ttmon_history_totals totals;
	struct ttmon_ev_clock clock;
	bool has_clock;
	uint64_t page_size;
	uint64_t now_ns; /* stream time */
	/* launches are seen since then; 0: from the beginning, UINT64_MAX: they are not seen */
	uint64_t launches_on_ns;

	struct ttmon_alloc **chunks; /* the records */
	uint32_t nr_chunks, cap_chunks, free_id;
	struct ttmon_seqtab seqs; /* seq to record */
	uint64_t next_seq;
	uint64_t records;
	uint64_t nr_freed; /* in the lists of all users */
	struct ttmon_user *users;
	uint32_t nr_users, cap_users;
	struct ttmon_hmap by_uid;
	struct ttmon_hproc *payer; /* users.c: process that makes room now, for so many payments more */
	uint32_t payer_user, payments;
	uint32_t events_payer, events_payments, events_hand;
	struct ttmon_condensed *condensed;
	uint32_t condensed_used, condensed_cap, condensed_free;
	uint64_t nr_condensed;
	struct ttmon_hmap tt_condensed; /* Tenstorrent buffers among them: number to process */
	const struct ttmon_rec_hooks *hooks;
	size_t nr_hooks;

	struct ttmon_hproc **procs;
	uint32_t nr_procs, cap_procs;
	struct ttmon_hmap by_tgid;
	struct ttmon_hproc *recent[TTMON_RECENT]; /* cache by the tgid's lower bits: the entry found last */
	struct ttmon_fifo exited;		  /* struct ttmon_exited: in their grace period */
	uint64_t nr_dead;			  /* processes past their grace period, in the lists of all users */
	struct ttmon_fifo reusable;		  /* u32: may be reused at once */
	uint32_t nr_wanted;

	struct ttmon_symtab symtab;
	struct ttmon_sites sites;
	struct ttmon_fifo siteq;
	struct ttmon_unwounds unwounds;

	struct ttmon_error_count *errors; /* sorted by (proc, fn, err) */
	uint32_t nr_errors, cap_errors;
	/* the first: those without room; the others sorted by (fn, err) */
	struct ttmon_failure failures[TTMON_FAILURES_MAX + 1];
	uint32_t nr_failures;				       /* without the first */
	struct ttmon_pin_times pin_times[TTMON_METHOD_MAX][2]; /* of pins, of unpins */
	struct ttmon_blind *blinds;
	uint32_t nr_blinds, cap_blinds;
	struct ttmon_groups folded; /* sums for advice over folded allocations */
	struct ttmon_cost_seen cost_seen;
	struct ttmon_cost cost, cost_given; /* cost_given: 0: not configured */
	struct ttmon_live live;
	struct ttmon_checkpoints checkpoints;
	struct ttmon_waits waits;
	struct ttmon_alloc *ahead[TTMON_AHEAD]; /* ring: records that the next events will need, or NULL */
	uint32_t nr_ahead;
};

static inline uint64_t ttmon_page_down(const struct ttmon_history *h, uint64_t addr)
{
	return addr & ~(h->page_size - 1);
}

/* For the last page of the address space it returns the last address. */
static inline uint64_t ttmon_page_up(const struct ttmon_history *h, uint64_t addr)
{
	return addr > UINT64_MAX - h->page_size ? ttmon_page_down(h, UINT64_MAX)
						: ttmon_page_down(h, addr + h->page_size - 1);
}

/* history.c */
void ttmon_history_no_memory(struct ttmon_history *h);

/* recs.c */
/*
 * Hooks of another part at the end of records (history.c has the list), so that recs.c need not know
 * the parts. NULL: no hook.
 */
struct ttmon_rec_hooks {
	void (*ended)(struct ttmon_history *h, struct ttmon_alloc *a);
	/* the record is about to go: its sums must be taken over */
	void (*folded)(struct ttmon_history *h, struct ttmon_alloc *a);
};

struct ttmon_rec_init {
	uint64_t addr, size, ts_ns, pin_ns;
	uint32_t api_flags;
	uint16_t fn;
	int16_t device;
	uint8_t method, bits;
	bool extent;
	const char *name; /* copied */
};

struct ttmon_touch {
	uint64_t ts_ns, bytes, offset;
	unsigned int rdir, kind, mem; /* enum ttmon_rdir, ttmon_aev_kind, ttmon_mem */
	uint16_t bits;
	const struct ttmon_rect *rect; /* NULL: contiguous */
	uint64_t weight;	       /* number of copies it stands for, itself included */
};

static inline uint64_t ttmon_end_of(uint64_t addr, uint64_t size)
{
	return addr > UINT64_MAX - size ? UINT64_MAX : addr + size;
}

/* One past the last byte; an allocation of 0 bytes takes up one. */
static inline uint64_t ttmon_rec_limit(const struct ttmon_alloc *a)
{
	return ttmon_end_of(a->addr, a->size ? a->size : 1);
}

static inline bool ttmon_rec_live(const struct ttmon_alloc *a)
{
	return a->free_ns == 0;
}

static inline enum ttmon_mem ttmon_rec_mem(const struct ttmon_alloc *a)
{
	if (a->states & TTMON_ST_EXTENT && a->api_flags & TTMON_EXTENT_DRIVER)
		return TTMON_MEM_PINNED;
	if (a->states & TTMON_ST_EXTENT && a->api_flags & TTMON_EXTENT_MANAGED)
		return TTMON_MEM_MANAGED;
	if (a->states & TTMON_ST_UNSEEN)
		return TTMON_MEM_UNKNOWN;
	if (ttmon_method_pinned(a->method))
		return TTMON_MEM_PINNED;
	if (a->method == TTMON_METHOD_MANAGED)
		return TTMON_MEM_MANAGED;
	if (a->method == TTMON_METHOD_CUSTOM || (a->method == TTMON_METHOD_MMAP && !(a->bits & TTMON_AL_PROVISIONAL)))
		return TTMON_MEM_PAGEABLE;
	return TTMON_MEM_UNKNOWN;
}

struct ttmon_alloc *ttmon_rec_at(const struct ttmon_history *h, uint32_t id);
struct ttmon_alloc *ttmon_rec_by_seq(const struct ttmon_history *h, uint64_t seq);
/*
 * The record at this place, NULL where there is none; *hand moves to the next place, after the last to
 * the first.
 */
struct ttmon_alloc *ttmon_rec_next(const struct ttmon_history *h, uint32_t *hand);
struct ttmon_alloc *ttmon_rec_new(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_rec_init *in);
void ttmon_recs_end(struct ttmon_history *h, struct ttmon_alloc *a, uint64_t ts_ns, enum ttmon_end end,
		    uint64_t unpin_ns);
/* Moves the record to another range; where the index has no room for it, the record is ended. */
void ttmon_rec_move(struct ttmon_history *h, struct ttmon_alloc *a, uint64_t addr, uint64_t size, uint64_t ts_ns);
/* Drops cached lookups, since a layer of the process has changed. */
static inline void ttmon_rec_forget(struct ttmon_hproc *p)
{
	memset(p->seen, 0, sizeof(p->seen));
	p->next_seen = 0;
}
/*
 * True if it counts as pinned with pages of its own. A driver's DMA buffer has no address in the
 * program.
 */
static inline bool ttmon_rec_pinned(const struct ttmon_alloc *a)
{
	return ttmon_method_pins(a->method) && (a->addr || a->method == TTMON_METHOD_TT_DMA);
}
/* True for pinned memory that is given out in pieces; verdicts are about the pieces. */
static inline bool ttmon_rec_backing(const struct ttmon_alloc *a)
{
	return ttmon_method_pins(a->method) && a->api_flags & TTMON_API_BACKING;
}
void ttmon_rec_unindex(struct ttmon_history *h, const struct ttmon_alloc *a);
uint64_t ttmon_rec_fold(struct ttmon_history *h);
/* Number of earlier allocations of this site and size in the process. */
uint32_t ttmon_rec_ordinal(struct ttmon_history *h, struct ttmon_hproc *p, uint32_t site, uint64_t size);
void ttmon_rec_fini(struct ttmon_history *h);
enum ttmon_layer ttmon_layer_of(unsigned int method);
static inline enum ttmon_layer ttmon_rec_layer(const struct ttmon_alloc *a)
{
	return a->states & TTMON_ST_EXTENT ? TTMON_LAYER_EXTENT : ttmon_layer_of(a->method);
}
uint64_t ttmon_layer_key(const struct ttmon_alloc *a);
/* The live record of this layer that holds addr, or NULL; in REG the one that begins last. */
struct ttmon_alloc *ttmon_rec_holding(const struct ttmon_history *h, const struct ttmon_hproc *p,
				      enum ttmon_layer layer, uint64_t addr);
/* The first record (by start) of this layer that overlaps [lo, hi), or NULL. */
struct ttmon_alloc *ttmon_rec_overlapping(const struct ttmon_history *h, const struct ttmon_hproc *p,
					  enum ttmon_layer layer, uint64_t lo, uint64_t hi);

/* transfers.c */
extern const struct ttmon_traffic ttmon_no_traffic; /* shared by all allocations without transfers */
/* The allocation has another size: heat by pages is extended to cover it. */
void ttmon_traffic_resized(const struct ttmon_alloc *a);
void ttmon_rec_transfer(struct ttmon_history *h, struct ttmon_alloc *a, const struct ttmon_touch *t);
void ttmon_rec_event(struct ttmon_history *h, struct ttmon_alloc *a, const struct ttmon_aev *ev);
/* Kernels accessed it: so many bytes of the fact's range. */
void ttmon_rec_gpu_use(struct ttmon_history *h, struct ttmon_alloc *a, const struct ttmon_ev_gpu_use *ev,
		       uint64_t bytes);
/*
 * A transfer of a provisional mapping was counted as of unknown memory, for now
 * (ttmon_xfer_settled()).
 */
void ttmon_rec_unsettle(struct ttmon_history *h, struct ttmon_alloc *a, unsigned int rdir, uint64_t bytes);
/* The counts of unknown memory are final. Returns what was unsettled. */
struct ttmon_xfer ttmon_rec_settle(struct ttmon_history *h, struct ttmon_alloc *a, unsigned int rdir);
/* dst takes over the transfers and events of src. */
void ttmon_rec_merge(struct ttmon_history *h, struct ttmon_alloc *dst, struct ttmon_alloc *src);
void ttmon_traffic_drop(struct ttmon_history *h, struct ttmon_alloc *a);

/* users.c */
int ttmon_users_init(struct ttmon_history *h) _must_check;
void ttmon_users_fini(struct ttmon_history *h);
/* Sets the process's user; until it is known, the process counts for its parent's user. */
void ttmon_users_set(struct ttmon_history *h, struct ttmon_hproc *p, uint32_t uid);
void ttmon_users_inherit(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_hproc *parent);
/*
 * True if this user may have one more entry of a table with room for max, of which the user has `has`.
 * False is counted as paid.
 */
bool ttmon_users_may_add(struct ttmon_history *h, struct ttmon_hproc *p, uint32_t has, uint32_t max);
void ttmon_users_paid(struct ttmon_history *h, struct ttmon_hproc *p, enum ttmon_quota what, uint64_t n);
/*
 * The process with about the most records, of the user with the most; `anew`: search again. NULL: no
 * process has any.
 */
struct ttmon_hproc *ttmon_users_payer(struct ttmon_history *h, bool anew);
/* Index of the user with the most of each. */
uint32_t ttmon_users_most_freed(const struct ttmon_history *h);
uint32_t ttmon_users_most_dead(const struct ttmon_history *h);
uint32_t ttmon_users_most_events(const struct ttmon_history *h);

/* condensed.c */
/* A live allocation loses its record: takes it out of the index; the caller drops it. */
void ttmon_condensed_add(struct ttmon_history *h, struct ttmon_alloc *a);
/*
 * A stand-in for the condensed allocation of this layer that holds addr, for transfers: only method
 * and process are set. NULL: there is none. *hi is lowered to the end of the range with this answer.
 */
struct ttmon_alloc *ttmon_condensed_at(const struct ttmon_history *h, const struct ttmon_hproc *p,
				       enum ttmon_layer layer, uint64_t addr, uint64_t *hi);
static inline bool ttmon_rec_stands_in(const struct ttmon_alloc *a)
{
	return a->seq_low == UINT32_MAX && a->seq_high == UINT8_MAX;
}
bool ttmon_condensed_pinned_at(const struct ttmon_history *h, const struct ttmon_hproc *p, uint64_t addr);
/* No condensed allocation is older than this; UINT64_MAX: there is none. */
uint64_t ttmon_condensed_oldest_ns(const struct ttmon_hproc *p);
/* Walking by address: the set of a layer or NULL; the end of an entry, and whether it pins. */
const struct ttmon_ranges *ttmon_condensed_layer(const struct ttmon_hproc *p, enum ttmon_layer layer);
uint64_t ttmon_condensed_limit(const struct ttmon_history *h, const struct ttmon_ranges_pos *pos);
bool ttmon_condensed_pins(const struct ttmon_history *h, const struct ttmon_ranges_pos *pos);
/* Lookup by key (ttmon_layer_key()). NULL, false: there is none. */
const struct ttmon_condensed *ttmon_condensed_get(const struct ttmon_history *h, const struct ttmon_hproc *p,
						  enum ttmon_layer layer, uint64_t key);
bool ttmon_condensed_any(const struct ttmon_history *h, const struct ttmon_hproc *p, enum ttmon_layer layer,
			 uint64_t lo, uint64_t hi);
bool ttmon_condensed_end(struct ttmon_history *h, struct ttmon_hproc *p, enum ttmon_layer layer, uint64_t key,
			 uint64_t ts_ns, enum ttmon_end end);
/* Ends all that touch [lo, hi); all of a device (-1: any); all. */
void ttmon_condensed_end_in(struct ttmon_history *h, struct ttmon_hproc *p, enum ttmon_layer layer, uint64_t lo,
			    uint64_t hi, uint64_t ts_ns, enum ttmon_end end);
/*
 * A free of one that ended without it (end_in). may_free: as frees() in calls.c. False: there is none.
 */
bool ttmon_condensed_free_ghost(struct ttmon_history *h, const struct ttmon_hproc *p, uint64_t addr,
				bool (*may_free)(unsigned int method, const struct ttmon_alloc *a),
				unsigned int method);
void ttmon_condensed_end_of_device(struct ttmon_history *h, struct ttmon_hproc *p, int32_t device, uint64_t ts_ns);
void ttmon_condensed_end_all(struct ttmon_history *h, struct ttmon_hproc *p, enum ttmon_layer layer, uint64_t ts_ns,
			     enum ttmon_end end);
void ttmon_condensed_release(struct ttmon_history *h, struct ttmon_hproc *p);

/* ttmem.c: memory that tt-kmd pinned is released by its number. */
void ttmon_ttpins_condensed(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_alloc *a);

/* counts.c */
/* It no longer counts as live, though it has not ended. */
void ttmon_count_left(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_alloc *a);
/* The program made an allocation, whether or not there is room for a record. */
void ttmon_count_made(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_rec_init *in);
void ttmon_count_live(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_alloc *a);
void ttmon_count_ended(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_alloc *a);
void ttmon_count_finding(struct ttmon_history *h, struct ttmon_hproc *p, enum ttmon_finding finding);
/* A call that failed; err 0: without an error code. */
void ttmon_count_failed(struct ttmon_history *h, struct ttmon_hproc *p, uint16_t fn, int32_t err);
/*
 * A call that pins or unpins has returned (ignored for other methods); ns UINT64_MAX: its duration was
 * not seen.
 */
void ttmon_count_pin_time(struct ttmon_history *h, unsigned int method, bool unpin, uint64_t ns);

/* procs.c */
struct ttmon_hproc *ttmon_procs_find(const struct ttmon_history *h, uint32_t tgid);
/* The process that an event of that time belongs to, made if there is none; NULL: no room. */
struct ttmon_hproc *ttmon_procs_get(struct ttmon_history *h, uint32_t tgid, uint64_t ts_ns);
/* The same for a fact, which may have a time a little after the end of its process. */
struct ttmon_hproc *ttmon_procs_fact(struct ttmon_history *h, uint32_t tgid, uint64_t ts_ns);
/* Number of kernel launches of the process up to then, as far as reported; UINT32_MAX: too large. */
uint32_t ttmon_procs_nth(const struct ttmon_hproc *p, uint64_t ts_ns);
void ttmon_procs_error(struct ttmon_history *h, struct ttmon_hproc *p, uint16_t fn, int32_t err);
uint64_t ttmon_procs_tick(struct ttmon_history *h);
void ttmon_procs_fini(struct ttmon_history *h);

/* unwound.c: call stacks that were found in copies of the stack */
/*
 * The stack of an event whose stack was copied: fills in what is known of it. -EAGAIN: nothing is
 * known yet and final is false; with final the frames stay as they were found, unchecked. An answer is
 * returned once.
 */
int ttmon_unwound_take(struct ttmon_history *h, struct ttmon_hproc *p, struct ttmon_taken *t, bool final) _must_check;
void ttmon_unwound_fini(struct ttmon_history *h);

/* siteq.c */
void ttmon_siteq_alloc(struct ttmon_history *h, struct ttmon_alloc *a, const struct ttmon_taken *taken);
void ttmon_siteq_ended(struct ttmon_history *h, struct ttmon_alloc *a);	 /* a hook */
void ttmon_siteq_folded(struct ttmon_history *h, struct ttmon_alloc *a); /* a hook */
/* The record goes before its site is known: it counts for the unknown site. */
void ttmon_siteq_unresolved(struct ttmon_history *h, struct ttmon_alloc *a);
void ttmon_siteq_name(struct ttmon_history *h, struct ttmon_alloc *a, uint16_t fn, const struct ttmon_taken *taken,
		      uint64_t ts_ns);
void ttmon_siteq_inherit(struct ttmon_history *h, struct ttmon_alloc *dst, struct ttmon_alloc *src);
/* Does the operations that have settled; with all, every one. */
uint64_t ttmon_siteq_run(struct ttmon_history *h, bool all);

/* pins.c */
void ttmon_pins_add(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_alloc *a);
void ttmon_pins_del(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_alloc *a);

/* calls.c */
void ttmon_calls_ghost(struct ttmon_hproc *p, const struct ttmon_alloc *a);
/* [lo, hi) of this layer is allocated again: what was there has ended, though no free was seen. */
void ttmon_calls_supersede(struct ttmon_history *h, struct ttmon_hproc *p, enum ttmon_layer layer, uint64_t lo,
			   uint64_t hi, uint64_t ts_ns);

/* gpu_use.c */
/* a hook: uses by kernels may still be reported */
void ttmon_gpu_use_ended(struct ttmon_history *h, struct ttmon_alloc *a);

/* waits.c */
void ttmon_waits_init(struct ttmon_history *h);
void ttmon_waits_fini(struct ttmon_history *h);
/* Call sites that have settled; with all, everything. Returns when the next one may have. */
uint64_t ttmon_waits_run(struct ttmon_history *h, bool all);
void ttmon_waits_drop_proc(struct ttmon_history *h, uint32_t proc);

/* checkpoints.c */
void ttmon_checkpoints_drop_proc(struct ttmon_history *h, uint32_t proc);
void ttmon_checkpoints_fini(struct ttmon_history *h);

/*
 * A provisional mapping turns out to be memory of this kind: its copies are moved to that kind. (Not
 * h2h copies, which count by their destination only.)
 */
void ttmon_copies_rebook(struct ttmon_history *h, struct ttmon_hproc *p, struct ttmon_alloc *a, enum ttmon_mem mem);
/* Memory of an unknown kind turns out to have been pinned. */
void ttmon_copies_prove(struct ttmon_history *h, struct ttmon_hproc *p, struct ttmon_alloc *a);
/* It is pageable, and may have had transfers before that was known. */
void ttmon_rec_hot(struct ttmon_history *h, struct ttmon_alloc *a);

/* mappings.c */
/* Takes [lo, hi) out of the ordinary mappings. */
void ttmon_hostmem_carve(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t lo, uint64_t hi, uint64_t ts_ns);
void ttmon_hostmem_inherit(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_hproc *parent,
			   uint64_t ts_ns);

/* known.c */
struct ttmon_unseen ttmon_rec_unseen(const struct ttmon_history *h, struct ttmon_hproc *p, uint64_t ts_ns);
/* An event of it comes at ts_ns: decides whether its kind is known. */
void ttmon_rec_look(struct ttmon_history *h, struct ttmon_hproc *p, struct ttmon_alloc *a, uint64_t ts_ns);
/* Its free was seen, so no earlier free was missed. */
void ttmon_rec_still_pinned(struct ttmon_history *h, struct ttmon_hproc *p, struct ttmon_alloc *a);
/* Moves the transfers so far to another kind of memory in the sums of its call site. */
void ttmon_known_move_site(struct ttmon_history *h, const struct ttmon_alloc *a, enum ttmon_mem from,
			   enum ttmon_mem to);

/* extents.c */
/*
 * The extent that holds [lo, hi), made if there is none. m: the mapping that holds lo, NULL: none is
 * known. Returns NULL: no room.
 */
struct ttmon_alloc *ttmon_extent_of(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_alloc *m,
				    uint64_t lo, uint64_t hi, uint64_t ts_ns);
/* [lo, hi) was unmapped at ts_ns. */
void ttmon_extents_end(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t lo, uint64_t hi, uint64_t ts_ns);
/* The extent is about to end because it was unmapped: a free reported later may refer to it. */
void ttmon_extent_unmapped(struct ttmon_hproc *p, const struct ttmon_alloc *a);
/*
 * A list of mappings, read after from_ns, has come in: each provisional extent lies in one of them, or
 * is gone.
 */
void ttmon_extents_settle(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t from_ns);
/* A free or unregister of memory without a known pin: it was pinned. */
void ttmon_extents_prove(struct ttmon_history *h, struct ttmon_hproc *p, const struct ttmon_ev_free *ev);

void ttmon_maplist_want(struct ttmon_history *h, struct ttmon_hproc *p, uint64_t ts_ns);
void ttmon_maplist_forget(struct ttmon_hproc *p);

/* advice.c */
void ttmon_advice_init(struct ttmon_history *h, const struct ttmon_history_cfg *cfg);
/* A call that pins or unpins took so long; 0: unknown. */
void ttmon_advice_saw(struct ttmon_history *h, const struct ttmon_alloc *a, uint64_t pin_ns, uint64_t unpin_ns);
/* The verdict on one allocation by itself, identified by its address: its call site may be unknown. */
void ttmon_advice_judge(const struct ttmon_history *h, const struct ttmon_alloc *a, struct ttmon_said *ret);
/* A hook: keeps the sums of an allocation that is about to go. */
void ttmon_advice_folded(struct ttmon_history *h, struct ttmon_alloc *a);
/* The same for a live one that loses its record: later transfers are missing from the sums. */
void ttmon_advice_condensed(struct ttmon_history *h, const struct ttmon_alloc *a);
void ttmon_advice_drop_proc(struct ttmon_history *h, uint32_t proc);
void ttmon_advice_fini(struct ttmon_history *h);
/* 0 to 1: lower where something of the process was lost. */
double ttmon_advice_completeness(const struct ttmon_history *h, uint32_t proc);
/* True if a kernel may access the memory in place, or was seen to. */
bool ttmon_advice_in_place(const struct ttmon_alloc *a);

/* live.c */
void ttmon_live_init(struct ttmon_history *h);
void ttmon_live_fini(struct ttmon_history *h);
uint64_t ttmon_live_tick(struct ttmon_history *h);
/* Pageable memory was copied to or from the device at ts_ns: decides whether pinning it pays now. */
void ttmon_live_became_hot(struct ttmon_history *h, const struct ttmon_alloc *a, struct ttmon_live_hot *hot,
			   uint64_t ts_ns);
/* It is pageable again. */
void ttmon_live_unregistered(const struct ttmon_alloc *a, struct ttmon_live_hot *hot);
/*
 * Memory that was called cold was transferred, or a kernel accessed it; or its device pointer was
 * requested.
 */
void ttmon_live_warm(struct ttmon_history *h, struct ttmon_alloc *a, uint64_t ts_ns);
void ttmon_live_in_place(struct ttmon_history *h, const struct ttmon_alloc *a, uint64_t ts_ns);
void ttmon_live_ended(struct ttmon_history *h, struct ttmon_alloc *a); /* a hook */
/* Transfers are seen from ts_ns on, or no longer. */
void ttmon_live_seen(struct ttmon_history *h, bool on, uint64_t ts_ns);
/* The process has ended a period; label: of the period that begins. */
void ttmon_live_checkpoint(struct ttmon_history *h, uint32_t proc, uint64_t ts_ns, const char *label);

/* views.c */
/*
 * The live allocation that holds addr, in the first layer that knows one; *limit: the end of the range
 * with this answer.
 */
struct ttmon_alloc *ttmon_views_at(const struct ttmon_history *h, struct ttmon_hproc *p, uint64_t addr,
				   uint64_t *limit);

#endif
