/* SPDX-License-Identifier: MIT */
/*
 * client.h: libttmon, for an allocator inside a traced program. C11 and C++11; link with `pkg-config
 * --libs libttmon`.
 *
 *	struct ttmon_advisor *adv;
 *	const char *dbs[] = { "yesterday.json.gz" };
 *	char why[256];
 *
 *	if (ttmon_advisor_open(dbs, 1, NULL, &adv, why, sizeof(why)) < 0)
 *		adv = NULL;                             all calls accept NULL and then answer
 *		"unknown"
 *	...
 *	ttmon_advise_here(adv, size, &answer);          in the allocator: should this buffer be
 *	pinned?
 *	...
 *	ttmon_checkpoint(adv, "step");	                the end of a period: hot buffers are moved
 *					now
 *
 * Guarantees: no function prints, exits, raises a signal, forks, or installs a signal handler.
 * Functions return 0 or a negative errno. A function marked "hot path" does not allocate or lock,
 * makes no system call (with the exception noted there), and may be called from any thread and from a
 * signal handler. A database is not trusted: a malicious one is refused, or gives bad advice, but does
 * no other harm.
 */
#ifndef TTMON_CLIENT_LIB_H
#define TTMON_CLIENT_LIB_H

#include <stddef.h>
#include <stdint.h>

#include <ttmon/usdt.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TTMON_API __attribute__((__visibility__("default")))

/* ---- advice from earlier runs ---- */

/*
 * How certain it is that an allocation is the same as one of an earlier run. The levels are tried from
 * the strictest to the weakest; docs/libttmon.md explains them.
 */
enum ttmon_match {
	TTMON_MATCH_NONE,  /* not found */
	TTMON_MATCH_ORDER, /* API, size and position in the order of allocations */
	/*
	 * names of the functions and size class (power of two); else the innermost function and size class;
	 * else only the names
	 */
	TTMON_MATCH_NAMES,
	/*
	 * exact frames (build-id and offset) and size, or the allocator's name and size; the site has no other
	 * size
	 */
	TTMON_MATCH_SITE,
	/*
	 * the same, and the ordinal within it, if the runs show that ordinals distinguish allocations and
	 * agree on them
	 */
	TTMON_MATCH_EXACT,
	TTMON_MATCH_MAX
};

enum ttmon_verdict {
	TTMON_VERDICT_UNKNOWN, /* not known: use the allocator's default */
	TTMON_VERDICT_PIN,     /* its transfers pay for pinning */
	/* known, and pinning does not pay. in_place says whether a kernel may access it in place */
	TTMON_VERDICT_NO_PIN,
};

struct ttmon_answer {
	uint8_t verdict; /* enum ttmon_verdict */
	uint8_t match;	 /* enum ttmon_match */
	/* mapped, portable or write-combined, or its device pointer was requested: never unpin it */
	uint8_t in_place;
	/*
	 * with PIN: it also pays to pin each such allocation individually, not only if pinned memory is reused
	 */
	uint8_t alone;
	float confidence; /* 0..1: confidence of the match times that of the evidence */
	uint32_t runs;	  /* number of earlier runs that had it */
	/* ordinal within site and size that this call counted; UINT32_MAX: no run had this site and size */
	uint32_t ordinal;
	/*
	 * key of the call site (of at most 12 frames; with more it differs from the database's), or of the
	 * name; 0: none
	 */
	uint64_t site;
	int64_t gain_ns;    /* time that pinning saves in a run by the cost model, in ns; negative: it loses */
	uint64_t h2d_bytes; /* bytes moved to the device, mean over the allocations */
};

struct ttmon_advisor;

struct ttmon_advisor_opts {
	size_t size; /* sizeof(struct ttmon_advisor_opts) */
	/*
	 * Cost model in bytes per second; 0: 6e9, 24e9, and for pinning the rate measured in the databases,
	 * else 1.5e9
	 */
	uint64_t pageable_bps, pinned_bps, pinning_bps;
	const char *socket; /* socket of the daemon; NULL: $TTMON_SOCKET, else /run/ttmond/ttmond.sock */
	/* Weakest match whose verdict is used: below it the answer is UNKNOWN. 0: TTMON_MATCH_NAMES */
	uint32_t min_match;
	uint32_t reserved;
	/* Fixed cost of a call that pins or unpins, in ns; 0: measured in the databases, else 50000 */
	uint64_t pin_call_ns, unpin_call_ns;
	/*
	 * Keys of call sites: if set, peak_pin_bytes of the statistics only counts their memory. Only read
	 * during the call. NULL: all sites
	 */
	const uint64_t *sites;
	size_t nr_sites;
};

/*
 * Loads databases (.json, .json.gz; several are merged). n 0: only live advice. opts NULL: the
 * defaults. Call it at start: the time depends on the size of the files, because all events are
 * parsed; the memory depends on the number of call sites and allocations, not of events. Returns 0, or
 * on failure -errno with a line of text in why (size why_size), and leaves *ret unchanged: -ENOENT;
 * -EBADMSG (not a database, damaged, cut off); -EPROTONOSUPPORT (a later version); -E2BIG; -EINVAL;
 * -ENOMEM.
 */
TTMON_API int ttmon_advisor_open(const char *const *databases, size_t n, const struct ttmon_advisor_opts *opts,
				 struct ttmon_advisor **ret, char *why, size_t why_size);
/* Frees the advisor and ends its subscription. No other thread may be using it. NULL is allowed. */
TTMON_API void ttmon_advisor_close(struct ttmon_advisor *adv);

/*
 * Hot path. Returns whether an allocation that is about to be made should be pinned. Each call counts
 * as one allocation: it takes the next ordinal of its site and size. ttmon_advise_here(): the site is
 * the caller's stack, found by frame pointers or unwind tables, without frames of libttmon and CUDA.
 * ttmon_advise_stack(): return addresses, innermost first. ttmon_advise_name(): the allocator's name
 * for it (the tag given to TTMON_ALLOC, of which 31 bytes count). Always fills *ret. Returns the
 * verdict.
 *
 * Only ttmon_advise_here() makes system calls, to find the end of the stack: on the first call in a
 * thread and on one deeper than any before, one for each page of stack in between. On a stack that is
 * not the thread's own (of a coroutine or signal handler) it makes two for each frame.
 */
TTMON_API enum ttmon_verdict ttmon_advise_here(struct ttmon_advisor *adv, uint64_t size, struct ttmon_answer *ret);
TTMON_API enum ttmon_verdict ttmon_advise_stack(struct ttmon_advisor *adv, const void *const *frames, unsigned int n,
						uint64_t size, struct ttmon_answer *ret);
TTMON_API enum ttmon_verdict ttmon_advise_name(struct ttmon_advisor *adv, const char *name, uint64_t size,
					       struct ttmon_answer *ret);
/*
 * Call it after objects were loaded or unloaded (dlopen): their call sites are looked up again.
 * ttmon_checkpoint() does this itself. Not for the hot path. Returns 0, or -ENOMEM: the old state
 * stays in use.
 */
TTMON_API int ttmon_advisor_refresh(struct ttmon_advisor *adv);

struct ttmon_advisor_stats {
	uint64_t lookups, by_match[TTMON_MATCH_MAX];
	uint64_t entries, sites; /* entries and sites loaded from the databases */
	/* the most bytes that were worth pinning at one time in one process of earlier runs, in whole pages */
	uint64_t peak_pin_bytes;
	uint64_t live_lines;		/* number of lines of live advice that were delivered */
	uint64_t live_missed;		/* number of lines that the daemon had dropped */
	uint64_t live_dropped;		/* number of lines dropped here because they were not taken in time */
	uint64_t connects, disconnects; /* of the subscription */
};
TTMON_API void ttmon_advisor_get_stats(const struct ttmon_advisor *adv, struct ttmon_advisor_stats *ret);

/* ---- live advice ---- */

enum ttmon_live_kind {
	TTMON_LIVE_PIN,	  /* the transfers of this unpinned allocation have passed the threshold */
	TTMON_LIVE_UNPIN, /* pinned, and not transferred for a long time: it can be unpinned */
	TTMON_LIVE_COLD,  /* the same, but a kernel may access it in place, which is not visible: keep it pinned */
	TTMON_LIVE_KEEP,  /* the last advice for this allocation is not valid any more */
};

struct ttmon_live_advice {
	uint64_t seq;
	uint64_t ts_ns; /* CLOCK_MONOTONIC, ns: time of the event that led to it */
	uint64_t alloc; /* number of the allocation: unique as long as the daemon runs */
	uint64_t addr, size;
	uint64_t site; /* key of the call site, 0: not known */
	uint32_t kind; /* enum ttmon_live_kind */
	uint32_t ordinal;
	uint64_t copies, bytes; /* totals to the device so far */
	int64_t gain_ns;
	double confidence;
};

/*
 * Subscribes to the daemon's advice about this process. A thread of the library connects, reads,
 * reconnects when the daemon goes away, and continues after the last line received. Lines wait until
 * ttmon_advisor_poll() or a checkpoint takes them; at most 4096 are kept, older ones are dropped and
 * counted. Returns 0, also if no daemon is running yet; -EALREADY; -ENOMEM; -EAGAIN (no thread).
 */
TTMON_API int ttmon_advisor_subscribe(struct ttmon_advisor *adv);
/* Takes the next line. Returns 1: *ret is filled; 0: there is none. Never waits. */
TTMON_API int ttmon_advisor_poll(struct ttmon_advisor *adv, struct ttmon_live_advice *ret);

/*
 * The callback that moves hot buffers. Only ttmon_checkpoint() calls it, in its own thread, once for
 * each line of advice since the last checkpoint that is still valid. There is one callback at a time;
 * NULL: none. The memory may have been freed meanwhile, and its address reused.
 */
typedef void (*ttmon_move_fn)(void *ctx, const struct ttmon_live_advice *advice);
TTMON_API void ttmon_advisor_on_checkpoint(struct ttmon_advisor *adv, ttmon_move_fn fn, void *ctx);

/*
 * Marks the end of a period (batch, step) and the beginning of the next; label: kind of period, up to
 * 63 bytes. It notifies a daemon that traces this process (a nop if none does), then calls the
 * callback. adv may be NULL: then it only notifies the daemon.
 */
TTMON_API void ttmon_checkpoint(struct ttmon_advisor *adv, const char *label);

/* ---- runs of programs on Tenstorrent devices ---- */

/* How the times of a run were converted to the host's clock. */
enum ttmon_program_clock {
	TTMON_PROGRAM_CLOCK_NONE,   /* not converted: start_ns and end_ns are 0 */
	TTMON_PROGRAM_CLOCK_PAIRS,  /* by pairs (host time, device cycles) that tt-metal measures */
	TTMON_PROGRAM_CLOCK_RECORD, /* by values in the profiler's record */
	/* length by the device's frequency; position: it ended before it was reported */
	TTMON_PROGRAM_CLOCK_ENVELOPE,
};

/*
 * A run of a program on one device, as tt-metal's real-time profiler reports it. Times are ns of
 * CLOCK_MONOTONIC.
 */
struct ttmon_program_run {
	uint64_t seq; /* number that grows, with gaps; unique as long as the daemon runs */
	uint32_t pid;
	uint32_t device;  /* chip id of tt-metal, within the process */
	uint32_t chip;	  /* number in `ttmon smi`; 0: not known */
	uint32_t program; /* runtime id of 16 bits, which tt-metal reuses */
	uint64_t start_ns, end_ns;
	/* the true start is within this of start_ns, and the end of end_ns; UINT64_MAX: not known */
	uint64_t error_ns;
	uint64_t seen_ns; /* time of the report */
	uint32_t clock;	  /* enum ttmon_program_clock */
	uint32_t reserved;
	const char *kernels; /* paths of its kernels joined by ", ", valid during the callback; NULL: not known */
};

/*
 * Called in the library's thread, one at a time, in order. It may take long: runs that the daemon
 * drops meanwhile are counted as missed.
 */
typedef void (*ttmon_program_fn)(void *ctx, const struct ttmon_program_run *run);

struct ttmon_program_sub;

#define TTMON_PROGRAM_SELF (-1)

struct ttmon_program_opts {
	size_t size;	    /* sizeof(struct ttmon_program_opts) */
	const char *socket; /* socket of the daemon; NULL: $TTMON_SOCKET, else /run/ttmond/ttmond.sock */
	/*
	 * Runs of this process; 0: all that the user may see (root: all, others: their own);
	 * TTMON_PROGRAM_SELF: the calling process
	 */
	int32_t pid;
	uint32_t reserved;
};

/*
 * Subscribes to the runs that the daemon sees: first those that it has kept (the last 262,144), then
 * new ones. A thread of the library, with all signals blocked and a stack of 1 MiB, connects, reads,
 * calls fn, reconnects when the daemon goes away, and continues after the last run received. opts
 * NULL: the defaults. Returns 0, also if no daemon is running yet; -EINVAL; -ENOMEM; -EAGAIN (no
 * thread); or an error of eventfd(2). *ret belongs to the caller and to this process: a child after
 * fork() gets no runs, and can make its own subscription.
 */
TTMON_API int ttmon_program_subscribe(const struct ttmon_program_opts *opts, ttmon_program_fn fn, void *ctx,
				      struct ttmon_program_sub **ret);

/* For a subscription to all processes, runs + missed + earlier is what the daemon has sent so far. */
struct ttmon_program_stats {
	uint64_t runs;	  /* number of callbacks that have returned */
	uint64_t missed;  /* number of runs, of any process, that the daemon had dropped */
	uint64_t earlier; /* number of runs, of any process, dropped before the first connection to that daemon */
	uint64_t connects, disconnects;
};
/* May be called from any thread. */
TTMON_API void ttmon_program_get_stats(const struct ttmon_program_sub *sub, struct ttmon_program_stats *ret);
/*
 * Ends the subscription. Waits for a running callback, so it must not be called from one. fn is not
 * called afterwards. In a child after fork() it only frees memory. NULL is allowed.
 */
TTMON_API void ttmon_program_unsubscribe(struct ttmon_program_sub *sub);

/* ---- the daemon ---- */

/*
 * Requests that the running daemon traces this process from now on. Returns 0: it does (or did
 * already); -ENOTCONN: no daemon is running (costs one connect(2)); -EACCES: this user is not
 * permitted; -EPROTO: the daemon refused.
 */
TTMON_API int ttmon_trace_self(const char *socket);

#ifdef __cplusplus
}
#endif

#endif
