/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * verdict.h: the rule that decides whether memory should be pinned. Every program that shows or
 * follows a verdict uses this code. Pure.
 *
 * A verdict is about a group of allocations (in ttmon those of one process, call site and method). It
 * compares the time that its transfers save with the cost of pinning it:
 *
 *	worth = bytes/pageable - bytes/pinned - pages/pinning - calls x (pin + unpin)
 *
 * Bytes are those to the device and from it.
 *
 * Pages and calls depend on how the memory is pinned. If each allocation is pinned individually, they
 * are the sums over all allocations. An allocator that pins a region once and reuses its pieces (as
 * libttmon-pin does) needs only the most pages that were live at one time, and one call. These are the
 * two ends of the range; the reported net gain is the upper one.
 *
 *	pin		pageable memory, if registering each allocation as it is pays
 *	allocate pinned	pageable memory, if that does not pay, but a pool of pinned memory does
 *	unpin		pinned memory whose transfers do not pay even for a pool: it is cold. Not memory
 *			that a kernel may read in place, nor a group that is all live and younger than
 *			cold_ns
 *	keep		everything else
 *	unknown		it is not known whether the memory is pinned, or what code requests it, so that
 *			the advice could not be followed; or some of its transfers were missed, and the
 *			others do not pay
 */
#ifndef TTMON_VERDICT_H
#define TTMON_VERDICT_H

#include "lib/base/util.h"

#define TTMON_VERDICT_PAGE 4096u

/* number, NAME, word. Append-only: files and the page of `ttmon view` contain the numbers. */
#define TTMON_ADVICE_TABLE(X)             \
	X(0, KEEP, "keep")                \
	X(1, PIN, "pin")                  \
	X(2, UNPIN, "unpin")              \
	X(3, ALLOCATE, "allocate pinned") \
	X(4, UNKNOWN, "unknown")
enum ttmon_advice {
#define X(nr, NAME, word) TTMON_ADVICE_##NAME = nr,
	TTMON_ADVICE_TABLE(X)
#undef X
		TTMON_ADVICE_MAX
};
const char *ttmon_advice_name(unsigned int advice);

#define TTMON_REASON_TABLE(X)                                                                            \
	X(PAYS, "its transfers pay for pinning each of it")                                              \
	X(PAYS_REUSED, "its transfers pay for memory that is pinned from the start and given out again") \
	X(PAID, "pinned, and its transfers pay for that")                                                \
	X(TOO_LITTLE, "its transfers do not pay for pinning")                                            \
	X(NOT_MOVED, "ordinary memory that was never copied")                                            \
	X(COLD, "pinned, and its transfers do not pay for that")                                         \
	X(NEVER_COPIED, "pinned, and never copied")                                                      \
	X(YOUNG, "pinned, and too young to judge")                                                       \
	X(IN_PLACE, "a kernel may read it in place")                                                     \
	X(KERNELS, "kernels access it in place")                                                         \
	X(MANAGED, "managed memory moves by itself")                                                     \
	X(KIND, "it may have been pinned before ttmond looked")                                          \
	X(UNSEEN, "not all of its transfers were seen, and those that were do not pay")                  \
	X(SITE, "its call site is not known")
enum ttmon_reason {
#define X(NAME, text) TTMON_REASON_##NAME,
	TTMON_REASON_TABLE(X)
#undef X
		TTMON_REASON_MAX
};
const char *ttmon_reason_text(unsigned int reason);

/* ---- prices ---- */

/* Bytes per second, not 0; and the fixed costs of calls, in ns. */
struct ttmon_cost {
	uint64_t pageable_bps, pinned_bps, pinning_bps;
	uint64_t pin_call_ns, unpin_call_ns;
};
/*
 * Rates: a PCIe 4.0 link at its practical best; half of a staging copy's; and pinning as measured on
 * servers (1 to 2 GB/s, docs/ARCHITECTURE.md section 14). The costs of calls are not measured: they
 * are the middle of the values at which policies are compared (0, 50, 200 us).
 */
#define TTMON_COST_DEFAULT                                \
	((struct ttmon_cost){ .pageable_bps = 6000000000, \
			      .pinned_bps = 24000000000,  \
			      .pinning_bps = 1500000000,  \
			      .pin_call_ns = 50000,       \
			      .unpin_call_ns = 50000 })
/* Returns the ns that bytes take at bps; at most INT64_MAX / 4. */
int64_t ttmon_cost_ns(uint64_t bytes, uint64_t bps);
/*
 * Returns the ns that a transfer from or to pinned memory saves; a fraction, because few bytes save
 * less than one ns.
 */
double ttmon_cost_saved(const struct ttmon_cost *c, uint64_t bytes);
/* Returns the ns to pin so many 4 KiB pages by so many calls, and to unpin them. */
double ttmon_cost_pinned(const struct ttmon_cost *c, uint64_t pages, uint64_t calls);

/* Calls whose times are alike: they differ by less than a factor of two. */
struct ttmon_cost_bin {
	uint64_t n, bytes, ns;
};
#define TTMON_COST_BINS 64

/*
 * Measured times of calls. A few of them are far too long: the first one makes CUDA's context, and in
 * others the thread waited for a CPU. So calls are kept by their time, and the price is that of the
 * middle ones.
 */
struct ttmon_cost_seen {
	struct ttmon_cost_bin all;		       /* all pins whose time is known */
	struct ttmon_cost_bin pins[TTMON_COST_BINS];   /* the same by ns for a MiB: they show the rate */
	struct ttmon_cost_bin small[TTMON_COST_BINS];  /* those of at most TTMON_COST_SMALL bytes by ns: the call */
	struct ttmon_cost_bin unpins[TTMON_COST_BINS]; /* unpins of such allocations by ns */
};
#define TTMON_COST_SMALL  65536u
#define TTMON_COST_CALLS  8u	     /* fewer small pins do not show the cost of calls */
#define TTMON_COST_ENOUGH (1u << 20) /* fewer bytes do not show the rate */
/*
 * No machine pins faster than this: memory cannot even be cleared at this rate. A library that only
 * pretends to pin does.
 */
#define TTMON_COST_BELIEVABLE 20000000000.0
/* Returns the pins that show the rate. */
struct ttmon_cost_bin ttmon_cost_middle(const struct ttmon_cost_seen *s);
/* Returns the number of calls in TTMON_COST_BINS bins. */
uint64_t ttmon_cost_calls(const struct ttmon_cost_bin *bins);
/* Adds a pinned allocation; a time of 0 was not measured. */
void ttmon_cost_see(struct ttmon_cost_seen *s, uint64_t size, uint64_t pin_ns, uint64_t unpin_ns);
#define TTMON_COST_RATE	  (1u << 0)
#define TTMON_COST_PINS	  (1u << 1)
#define TTMON_COST_UNPINS (1u << 2)
#define TTMON_COST_UNREAL (1u << 3) /* too fast for real pinning */
/* Sets in *c what was measured. Returns which parts; 0, or only UNREAL: *c has not changed. */
unsigned int ttmon_cost_measured(const struct ttmon_cost_seen *s, struct ttmon_cost *c);

/* ---- a group of allocations ---- */

/* Pinned memory that is younger than this, and still live, is not judged cold. */
#define TTMON_VERDICT_COLD_NS (100 * NSEC_PER_MS)

struct ttmon_memory {
	uint64_t allocs;
	/* of these, freed or older than cold_ns; if there are none, pinned memory is too young to judge */
	uint64_t done;
	uint64_t to_bytes, from_bytes; /* bytes to the device, from the device */
	uint64_t to_copies, from_copies;
	uint64_t pages;	     /* sum over the allocations of their 4 KiB pages that are, or would have to be, pinned */
	uint64_t peak_pages; /* the most of these at one time */
	uint64_t age_ns, ages_ns; /* age of the oldest; sum of the ages */
	bool pinned, managed;
	bool in_place, gpu; /* a kernel may access it in place; was seen to access it */
	bool unknown_kind;  /* it is not known whether it is pinned */
	bool unknown_site;  /* neither its call site nor a distinguishing name is known */
	bool at_least;	    /* some of its transfers were missed */
	double complete;    /* 0..1: completeness of the data; 0 counts as 1 */
};

struct ttmon_said {
	uint8_t advice; /* enum ttmon_advice */
	uint8_t reason; /* enum ttmon_reason */
	/*
	 * Pinned, and its transfers do not pay for that; set also if it stays pinned because kernels may read
	 * it.
	 */
	bool cold;
	bool known;	  /* gain_ns to worth_ns are valid: not for memory that is unknown, managed, or used in place */
	bool at_least;	  /* there may have been more transfers: worth has no upper end */
	int64_t worth_ns; /* net time that pinning saves if blocks are reused; negative: it loses */
	int64_t gain_ns;  /* time that following the advice saves; for `keep`: worth_ns */
	int64_t low_ns, high_ns; /* range of the gain */
	double confidence;	 /* 0..1 */
};
void ttmon_verdict_of(const struct ttmon_memory *m, const struct ttmon_cost *c, struct ttmon_said *ret);
/* Returns whether the memory is pinned if the advice is followed, now or from the next run on. */
static inline bool ttmon_advice_pins(unsigned int advice, bool pinned)
{
	return advice == TTMON_ADVICE_PIN || advice == TTMON_ADVICE_ALLOCATE ||
	       (pinned && advice != TTMON_ADVICE_UNPIN);
}
/* Formats "saves 41.9 ms", "would lose 3.1 us", "-", as all views show it. Returns buf. */
char *ttmon_said_text(char *buf, size_t n, const struct ttmon_said *s);
/* The same for figures read from a file. */
char *ttmon_gain_text(char *buf, size_t n, unsigned int advice, bool known, int64_t gain_ns);

/* ---- peaks ---- */

struct ttmon_edge {
	uint64_t ns;
	int64_t pages; /* pages that are added or removed */
};
/* Returns the most pages at one time; at equal times, ends come first. Sorts e. */
uint64_t ttmon_edges_peak(struct ttmon_edge *e, size_t n);
/* Makes the two edges of an allocation. */
static inline void ttmon_edges_of(struct ttmon_edge e[2], uint64_t from_ns, uint64_t to_ns, uint64_t pages)
{
	e[0] = (struct ttmon_edge){ from_ns, (int64_t)pages };
	e[1] = (struct ttmon_edge){ MAX(to_ns, from_ns + 1), -(int64_t)pages };
}

#endif
