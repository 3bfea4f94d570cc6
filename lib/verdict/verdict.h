/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * verdict.h: should this memory be pinned? The one rule: whoever shows or follows a verdict asks here.
 * Pure.
 *
 * Judged is a group of allocations (ttmon: of one process, call site and method), by what was moved
 * from and to it and by what having it pinned costs:
 *
 *	worth = bytes/pageable - bytes/pinned - pages/pinning - calls x (pin + unpin)	bytes: to the device and from it
 *
 * Pages and calls depend on who pins. Where each allocation is pinned by itself they are those of all
 * of them together; an allocator that pins a region once and gives its pieces out again and again (as
 * libttmon-pin does) needs the pages that were there at one time, and one call. These are the two ends
 * of the range; the net gain that is said is the upper one.
 *
 *	pin		ordinary memory, and it pays to register each allocation as it is
 *	allocate pinned	ordinary memory for which that does not pay, but memory that is pinned from the start and given out again does
 *	unpin		pinned memory whose transfers do not pay for it even so: it is cold. Not what a kernel may read in place, nor what
 *			is all younger than cold_ns and still there
 *	keep		the rest
 *	unknown		it is not known whether it is pinned, or where in the program it is asked for: then nobody knows which memory is meant; or not
 *			all of its transfers were seen, and those that were do not pay
 */
#ifndef TTMON_VERDICT_H
#define TTMON_VERDICT_H

#include "lib/base/util.h"

#define TTMON_VERDICT_PAGE 4096u

/* number, NAME, word. Append-only: files and the page of `ttmon view` have the numbers. */
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

/* Bytes per second, not 0; and what each call takes beside the bytes. */
struct ttmon_cost {
	uint64_t pageable_bps, pinned_bps, pinning_bps;
	uint64_t pin_call_ns, unpin_call_ns;
};
/*
 * Rates: a PCIe 4.0 link at its practical best, half of a staging copy's, and what pinning took on
 * servers (1 to 2 GB/s, docs/ARCHITECTURE.md section 14). Calls: no machine's figure, the middle of
 * those that ways of pinning are compared at (0, 50, 200 us).
 */
#define TTMON_COST_DEFAULT                                \
	((struct ttmon_cost){ .pageable_bps = 6000000000, \
			      .pinned_bps = 24000000000,  \
			      .pinning_bps = 1500000000,  \
			      .pin_call_ns = 50000,       \
			      .unpin_call_ns = 50000 })
/* ns that bytes take at bps; saturates at INT64_MAX / 4. */
int64_t ttmon_cost_ns(uint64_t bytes, uint64_t bps);
/*
 * ns that bytes take less from or to pinned memory; not whole ones: few bytes that are moved once save
 * less than one.
 */
double ttmon_cost_saved(const struct ttmon_cost *c, uint64_t bytes);
/* ns that so many pages of 4 KiB, pinned by so many calls that are all taken back, take. */
double ttmon_cost_pinned(const struct ttmon_cost *c, uint64_t pages, uint64_t calls);

/* What calls were seen to take. */
struct ttmon_cost_seen {
	uint64_t pins, bytes, ns; /* all pins whose time is known */
	uint64_t small, small_bytes,
		small_ns;	    /* of these, of TTMON_COST_SMALL bytes at most: what the call itself takes */
	uint64_t unpins, unpins_ns; /* of small ones */
	uint64_t slowest_ns, slowest_bytes; /* the slowest pin: as a rule the first, which CUDA makes its context in */
};
#define TTMON_COST_SMALL  65536u
#define TTMON_COST_CALLS  8u	     /* fewer small ones say nothing of calls */
#define TTMON_COST_ENOUGH (1u << 20) /* fewer bytes say nothing of rates */
/*
 * No machine pins so fast: memory is not even cleared at this rate. A library that only pretends to
 * pin does.
 */
#define TTMON_COST_BELIEVABLE 20000000000.0
/* An allocation that is pinned; 0: that call was not timed. */
void ttmon_cost_see(struct ttmon_cost_seen *s, uint64_t size, uint64_t pin_ns, uint64_t unpin_ns);
#define TTMON_COST_RATE	  (1u << 0)
#define TTMON_COST_PINS	  (1u << 1)
#define TTMON_COST_UNPINS (1u << 2)
#define TTMON_COST_UNREAL (1u << 3) /* too fast to be pinning */
/*
 * Puts what they say into *c. Returns which of it was measured; 0, or UNREAL alone: *c is as it was.
 */
unsigned int ttmon_cost_measured(const struct ttmon_cost_seen *s, struct ttmon_cost *c);

/* ---- a group of allocations ---- */

/* Pinned memory that is younger than this, and still there, is not judged cold. */
#define TTMON_VERDICT_COLD_NS (100 * NSEC_PER_MS)

struct ttmon_memory {
	uint64_t allocs;
	uint64_t done; /* of these: freed, or older than cold_ns; without any of them pinned memory is too young */
	uint64_t to_bytes, from_bytes; /* to the device, from the device */
	uint64_t to_copies, from_copies;
	uint64_t pages;		  /* that would have to be pinned, or are: 4 KiB, of each allocation by itself */
	uint64_t peak_pages;	  /* of them at one time */
	uint64_t age_ns, ages_ns; /* of the oldest; of all together */
	bool pinned, managed;
	bool in_place, gpu; /* a kernel may read it where it is; was seen to access it */
	bool unknown_kind;  /* it may be pinned */
	bool unknown_site;  /* neither its call site nor a name that tells it from other memory is known */
	bool at_least;	    /* not all of its transfers were seen */
	double complete;    /* 0..1: of what it is known from; 0 counts as 1 */
};

struct ttmon_said {
	uint8_t advice; /* enum ttmon_advice */
	uint8_t reason; /* enum ttmon_reason */
	/*
	 * pinned, and its transfers do not pay for that; also where it stays because of kernels that may read
	 * it
	 */
	bool cold;
	bool known;	  /* gain_ns to worth_ns mean something: not of what is unknown, managed, or used in place */
	bool at_least;	  /* there may have been more transfers: the upper end of worth is open */
	int64_t worth_ns; /* net time that having it pinned saves, blocks given out again; negative: loses */
	int64_t gain_ns;  /* what following the advice saves; of `keep`: worth_ns */
	int64_t low_ns, high_ns; /* its range */
	double confidence;	 /* 0..1 */
};
void ttmon_verdict_of(const struct ttmon_memory *m, const struct ttmon_cost *c, struct ttmon_said *ret);
/* Does the advice mean that it is pinned, now or from the next time on? */
static inline bool ttmon_advice_pins(unsigned int advice, bool pinned)
{
	return advice == TTMON_ADVICE_PIN || advice == TTMON_ADVICE_ALLOCATE ||
	       (pinned && advice != TTMON_ADVICE_UNPIN);
}
/* "saves 41.9 ms", "would lose 3.1 us", "-": what every view says of it. Returns buf. */
char *ttmon_said_text(char *buf, size_t n, const struct ttmon_said *s);
/* The same of figures that were read back. */
char *ttmon_gain_text(char *buf, size_t n, unsigned int advice, bool known, int64_t gain_ns);

/* ---- peaks ---- */

struct ttmon_edge {
	uint64_t ns;
	int64_t pages; /* more, or less */
};
/* The most pages at one time; of what happens at one time ends come first. Sorts e. */
uint64_t ttmon_edges_peak(struct ttmon_edge *e, size_t n);
/* The two edges of an allocation. */
static inline void ttmon_edges_of(struct ttmon_edge e[2], uint64_t from_ns, uint64_t to_ns, uint64_t pages)
{
	e[0] = (struct ttmon_edge){ from_ns, (int64_t)pages };
	e[1] = (struct ttmon_edge){ MAX(to_ns, from_ns + 1), -(int64_t)pages };
}

#endif
