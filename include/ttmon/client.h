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
 *		adv = NULL;				all calls take NULL and know nothing then
 *	...
 *	ttmon_advise_here(adv, size, &answer);		in the allocator: should the caller's buffer be pinned?
 *	...
 *	ttmon_checkpoint(adv, "step");			the end of a period: hot buffers are moved now
 *
 * What it promises: nothing here prints, exits, raises, forks, or installs a signal handler. Functions
 * return 0 or a negative errno. Those marked "hot path" neither allocate, lock, nor make a system call
 * (but for one, see there), may be called from any thread, and from a signal handler. A database is
 * input: a hostile one is refused, or gives bad advice, and nothing worse.
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

/* ---- what was learnt in earlier runs ---- */

/*
 * How sure it is that an allocation is the one of an earlier run. Each level is tried after the one
 * before it; what a level says is in docs/libttmon.md.
 */
enum ttmon_match {
	TTMON_MATCH_NONE,  /* not found */
	TTMON_MATCH_ORDER, /* API, size and place in the order of allocations */
	/*
	 * names of the functions and size class (power of two); else the innermost function and size class;
	 * else the names alone
	 */
	TTMON_MATCH_NAMES,
	/*
	 * exact frames (build-id and offset) and size, or the name that the allocator gave and size; the site
	 * asks for no other size
	 */
	TTMON_MATCH_SITE,
	/*
	 * the same, and the ordinal within it, where the runs show that ordinals mean something and agree on
	 * them
	 */
	TTMON_MATCH_EXACT,
	TTMON_MATCH_MAX
};

enum ttmon_verdict {
	TTMON_VERDICT_UNKNOWN, /* nothing is known of it: the allocator's default */
	TTMON_VERDICT_PIN,     /* transfers pay for pinning */
	/* seen, and pinning does not pay. in_place says whether a kernel may read it where it is */
	TTMON_VERDICT_NO_PIN,
};

struct ttmon_answer {
	uint8_t verdict; /* enum ttmon_verdict */
	uint8_t match;	 /* enum ttmon_match */
	/* mapped, portable or write-combined, or its device pointer was requested: never take its pin away */
	uint8_t in_place;
	/*
	 * PIN: it pays to pin each such allocation by itself too, not only where pinned memory is used again
	 */
	uint8_t alone;
	float confidence; /* 0..1: that of the match times that of the evidence */
	uint32_t runs;	  /* earlier runs that had it */
	uint32_t ordinal; /* that this allocation was counted as, within site and size; UINT32_MAX: no run had these */
	uint64_t
		site; /* key of the call site (of 12 frames at most: else it is not the database's), or of the name; 0: none */
	int64_t gain_ns;    /* time saved by pinning, per run, by the cost model; negative: lost */
	uint64_t h2d_bytes; /* moved to the device, per allocation */
};

struct ttmon_advisor;

struct ttmon_advisor_opts {
	size_t size; /* sizeof(struct ttmon_advisor_opts) */
	/*
	 * Cost model, bytes per second; 0: 6e9, 24e9, and of pinning what the pins in the databases took, else
	 * 1.5e9
	 */
	uint64_t pageable_bps, pinned_bps, pinning_bps;
	const char *socket; /* of the daemon; NULL: $TTMON_SOCKET, else /run/ttmond/ttmond.sock */
	/* Weakest match whose verdict counts: below it the answer is UNKNOWN. 0: TTMON_MATCH_NAMES */
	uint32_t min_match;
	uint32_t reserved;
	/* What a call that pins or unpins takes beside the bytes, ns; 0: what the databases say, else 50000 */
	uint64_t pin_call_ns, unpin_call_ns;
	/*
	 * Keys of call sites: peak_pin_bytes of the statistics is of their memory alone; read during the call.
	 * NULL: of all
	 */
	const uint64_t *sites;
	size_t nr_sites;
};

/*
 * Load databases (.json, .json.gz; several are merged). n 0: live advice alone. opts NULL: the
 * defaults. Takes time by the size of the files, whose events are all parsed, and memory by the number
 * of call sites and allocations, not of events: call it at start. On failure -errno and a line of text
 * in why (size why_size), and *ret is untouched: -ENOENT, -EBADMSG (no database, damaged, cut off),
 * -EPROTONOSUPPORT (a later version), -E2BIG, -EINVAL, -ENOMEM.
 */
TTMON_API int ttmon_advisor_open(const char *const *databases, size_t n, const struct ttmon_advisor_opts *opts,
				 struct ttmon_advisor **ret, char *why, size_t why_size);
/* Ends the subscription too. No other thread may be in a call with it. NULL is allowed. */
TTMON_API void ttmon_advisor_close(struct ttmon_advisor *adv);

/*
 * Hot path. Should what is about to be allocated be pinned? Each call counts as one allocation: it
 * takes the next ordinal of its site and size. here: the site is the caller's stack, by frame pointers
 * or unwind tables, without frames in libttmon and CUDA; stack: return addresses, innermost first;
 * name: what the allocator calls it (the tag given to TTMON_ALLOC, of which 31 bytes count). Always
 * fills *ret. Returns the verdict.
 *
 * Where the stack ends the kernel is asked, by ttmon_advise_here() alone, on the first call in a
 * thread and on one deeper than any before: one system call for each page of stack in between. On a
 * stack that is not the thread's own (a coroutine's, a signal handler's) two for each frame.
 */
TTMON_API enum ttmon_verdict ttmon_advise_here(struct ttmon_advisor *adv, uint64_t size, struct ttmon_answer *ret);
TTMON_API enum ttmon_verdict ttmon_advise_stack(struct ttmon_advisor *adv, const void *const *frames, unsigned int n,
						uint64_t size, struct ttmon_answer *ret);
TTMON_API enum ttmon_verdict ttmon_advise_name(struct ttmon_advisor *adv, const char *name, uint64_t size,
					       struct ttmon_answer *ret);
/*
 * Objects were loaded or unloaded (dlopen): their call sites are looked up again. ttmon_checkpoint()
 * does it by itself. Not for the hot path. -ENOMEM: what was known before stays.
 */
TTMON_API int ttmon_advisor_refresh(struct ttmon_advisor *adv);

struct ttmon_advisor_stats {
	uint64_t lookups, by_match[TTMON_MATCH_MAX];
	uint64_t entries, sites; /* loaded */
	/* the most that was worth pinning at one time in one process of earlier runs: whole pages */
	uint64_t peak_pin_bytes;
	uint64_t live_lines;		/* lines of live advice taken */
	uint64_t live_missed;		/* lines the daemon no longer had */
	uint64_t live_dropped;		/* lines that nobody took in time */
	uint64_t connects, disconnects; /* of the subscription */
};
TTMON_API void ttmon_advisor_get_stats(const struct ttmon_advisor *adv, struct ttmon_advisor_stats *ret);

/* ---- live advice ---- */

enum ttmon_live_kind {
	TTMON_LIVE_PIN,	  /* transfers of this unpinned allocation have passed the threshold */
	TTMON_LIVE_UNPIN, /* pinned, and not transferred for long: its pin can be released */
	TTMON_LIVE_COLD,  /* the same, but a kernel may read it in place: GPU use unknown, keep it */
	TTMON_LIVE_KEEP,  /* what was said of it last no longer holds */
};

struct ttmon_live_advice {
	uint64_t seq;
	uint64_t ts_ns; /* CLOCK_MONOTONIC: of what led to it */
	uint64_t alloc; /* the allocation's number: names it for as long as the daemon runs */
	uint64_t addr, size;
	uint64_t site; /* key, 0: not known */
	uint32_t kind; /* enum ttmon_live_kind */
	uint32_t ordinal;
	uint64_t copies, bytes; /* to the device, so far */
	int64_t gain_ns;
	double confidence;
};

/*
 * Hear the daemon's advice on this process. A thread of the library connects, reads, connects again
 * when the daemon goes away, and goes on after the last line heard. Lines wait (at most 4096; the
 * oldest go: counted) until ttmon_advisor_poll() or a checkpoint takes them. 0 also where no daemon is
 * there yet. -EALREADY, -ENOMEM, -EAGAIN (no thread).
 */
TTMON_API int ttmon_advisor_subscribe(struct ttmon_advisor *adv);
/* Next line. 1: *ret is filled; 0: there is none. Never waits. */
TTMON_API int ttmon_advisor_poll(struct ttmon_advisor *adv, struct ttmon_live_advice *ret);

/*
 * The callback that moves hotspots: called by ttmon_checkpoint() alone, in its thread, once for each
 * line of advice since the last checkpoint that still holds. One at a time; NULL: none. The memory may
 * have been freed since, and its address given out again.
 */
typedef void (*ttmon_move_fn)(void *ctx, const struct ttmon_live_advice *advice);
TTMON_API void ttmon_advisor_on_checkpoint(struct ttmon_advisor *adv, ttmon_move_fn fn, void *ctx);

/*
 * The end of a period (batch, step), and the beginning of the next; label: which kind, up to 63 bytes.
 * Tells a daemon that traces this process (a nop where none does), then calls the callback. adv may be
 * NULL: only tells.
 */
TTMON_API void ttmon_checkpoint(struct ttmon_advisor *adv, const char *label);

/* ---- runs of programs on Tenstorrent devices ---- */

/* How a run's times were led to the host's clock. */
enum ttmon_program_clock {
	TTMON_PROGRAM_CLOCK_NONE,   /* not at all: start_ns and end_ns are 0 */
	TTMON_PROGRAM_CLOCK_PAIRS,  /* by pairs (host time, device cycles) that tt-metal measures */
	TTMON_PROGRAM_CLOCK_RECORD, /* by what the profiler's record says itself */
	/* its length by the device's frequency; of its place: it had ended when it was reported */
	TTMON_PROGRAM_CLOCK_ENVELOPE,
};

/*
 * A run of a program on one device, as tt-metal's real-time profiler reports it. Times: nanoseconds
 * of CLOCK_MONOTONIC.
 */
struct ttmon_program_run {
	uint64_t seq; /* grows, with gaps; names the run for as long as the daemon runs */
	uint32_t pid;
	uint32_t device;  /* chip id of tt-metal, within the process */
	uint32_t chip;	  /* as in `ttmon smi`; 0: not known */
	uint32_t program; /* runtime id, of 16 bits, which tt-metal gives out again */
	uint64_t start_ns, end_ns;
	/* the true start lies within this of start_ns, the end likewise; UINT64_MAX: not known */
	uint64_t error_ns;
	uint64_t seen_ns; /* when it was reported */
	uint32_t clock;	  /* enum ttmon_program_clock */
	uint32_t reserved;
	const char *kernels; /* paths of its kernels joined by ", ", good during the callback; NULL: not known */
};

/*
 * In the library's thread, one at a time, in order. It may take its time: what the daemon no longer
 * has then is counted as missed.
 */
typedef void (*ttmon_program_fn)(void *ctx, const struct ttmon_program_run *run);

struct ttmon_program_sub;

#define TTMON_PROGRAM_SELF (-1)

struct ttmon_program_opts {
	size_t size;	    /* sizeof(struct ttmon_program_opts) */
	const char *socket; /* of the daemon; NULL: $TTMON_SOCKET, else /run/ttmond/ttmond.sock */
	/*
	 * Runs of this process; 0: of all that the user may see (root: all, others their own);
	 * TTMON_PROGRAM_SELF: of this one
	 */
	int32_t pid;
	uint32_t reserved;
};

/*
 * Hear each run that the daemon sees: first those that it has kept (the last 262,144), then what
 * comes. A thread of the library, whose signals are all blocked and whose stack is 1 MiB, connects,
 * reads, calls fn, connects again when the daemon goes away, and goes on after the last run heard.
 * opts NULL: the defaults. 0 also where no daemon is there yet; *ret belongs to the caller and to
 * this process: a child after fork() hears nothing, and may subscribe itself. -EINVAL, -ENOMEM,
 * -EAGAIN (no thread), the errors of eventfd(2).
 */
TTMON_API int ttmon_program_subscribe(const struct ttmon_program_opts *opts, ttmon_program_fn fn, void *ctx,
				      struct ttmon_program_sub **ret);

/* Of runs of all processes runs + missed + earlier is what the daemon has told so far. */
struct ttmon_program_stats {
	uint64_t runs;	  /* callbacks that ended */
	uint64_t missed;  /* runs, of any process, that the daemon no longer had */
	uint64_t earlier; /* runs, of any process, that were gone before the first connection to that daemon */
	uint64_t connects, disconnects;
};
/* Any thread. */
TTMON_API void ttmon_program_get_stats(const struct ttmon_program_sub *sub, struct ttmon_program_stats *ret);
/*
 * Waits for a callback that is under way; so not from within one. fn is not called after it. In a
 * child after fork(): frees. NULL is allowed.
 */
TTMON_API void ttmon_program_unsubscribe(struct ttmon_program_sub *sub);

/* ---- the daemon ---- */

/*
 * Have the running daemon trace this process, with all it does from now on. 0: it does (or did
 * already). -ENOTCONN: there is none, at the cost of one connect(2). -EACCES: this user may not ask
 * it. -EPROTO: it refused.
 */
TTMON_API int ttmon_trace_self(const char *socket);

#ifdef __cplusplus
}
#endif

#endif
