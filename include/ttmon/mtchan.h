/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mtchan.h: the channel between a GPU, the program that uses it, and the reader of the accesses
 * (ttmond, `ttmon memtrace record`).
 *
 * One channel for each CUDA context: a memfd, sealed against shrinking, made by libttmon-memtrace.so,
 * mapped by the program and the consumer and registered with CUDA, so that the GPU writes into it. The
 * consumer does not call CUDA and has no thread in the program. It receives the channel in a message
 * on a SOCK_SEQPACKET socket (struct ttmon_mtc_hello with the fd as SCM_RIGHTS, answered by a
 * ttmon_mtc_answer); when the connection ends, the program is gone.
 *
 *	struct ttmon_mtc_head, tails[nr_rings], dictionary ring, data rings; each begins at a
 *	multiple of 4096
 *
 * Data rings: one for each SM (ring %smid % nr_rings), of `units` units of 32 bytes, units a power of
 * two. Positions count units from 0 and never wrap; the unit of position p is p % units. A record is a
 * header unit, for LIST followed by ceil(lanes / 4) units with the address of each active lane, lowest
 * lane first.
 *
 *   Producer (the recorder on the GPU, memtrace/ptx/recorder.ptx). head, seen, lost and stuck of each
 *   ring are in *device* memory (struct ttmon_mtc_ctl), where atomics are cheap; nothing in the shared
 *   memory is changed by more than one side at a time. n: units of the record, and one more where
 *   ring.lost was not 0.
 *	P1  h = ring.head. While (signed) h + n - ring.seen > units: t = tails[ring].tail
 *	    (volatile); if (signed) h + n - t <= units: ring.seen = t, go on. Else the ring is full.
 *	    If t + 1 == ring.stuck, or ctl.wait_ns by %globaltimer_lo have passed since the first
 *	    poll: ring.stuck = t + 1, ring.lost += 1, nothing is written. Else wait (nanosleep) and
 *	    P1 again. A ring that stays full thus costs one wait, not one for each record. P4 comes
 *	    after the read of tail: its stores are behind a branch on the value (in C: tail is read
 *	    with acquire, seen is stored with release and read with acquire).
 *	P2  compare-and-swap ring.head from h to h + n; failed: P1. The units h .. h + n - 1 are
 *	this warp's now, and they are all zero.
 *	P3  where n has the unit more: lost = exchange(ring.lost, 0), and the first unit is a LOST
 *	record of so many (0, if another warp was faster).
 *	P4  every lane writes its address (LIST), the first lane the header but for its tag; the
 *	warp meets (bar.warp.sync).
 *	P5  fence.sys (membar.sys) by the first lane, then it writes the tag, or both tags, which
 *	are not 0, by a volatile store of 4 bytes.
 *   Consumer, for each ring, position t = tail (its own, it starts at 0):
 *	C1  tag of unit t (acquire); 0: nothing more here.
 *	C2  copy the record's units.
 *	C3  write zeros over them; release; tails[ring].tail = t + n: after each record, or after
 *	several, but at the latest when nothing more is there or a quarter of
 *	    the ring is taken.
 *   So a unit is zero from C3 to P5: a tag is never taken from an older lap or from addresses, and the
 *   lap in it is a check, not the protocol. A record may run over the end of the ring: each unit is
 *   where its own position says.
 *
 * The dictionary ring is bytes: entries of struct ttmon_mtc_entry, written by the program under a lock
 * of its own (one producer), read by the consumer. dict_head and dict_tail are byte positions that
 * never wrap; byte p is at p % dict_bytes, and an entry may run over the end. An entry is written,
 * then dict_head is stored with release; dict_tail is read with acquire before what is free is
 * written. What a record names was written before the kernel was launched, so a consumer reads data
 * rings first, then the dictionary, then interprets. A full dictionary: the launch is not recorded,
 * dict_lost counts it.
 *
 * The consumer does not trust the memory: the program may write anything there at any time.
 */
#ifndef TTMON_MTCHAN_H
#define TTMON_MTCHAN_H

#include <stdint.h>

#define TTMON_MTC_MAGIC	    0x434d5454u /* "TTMC" */
#define TTMON_MTC_VERSION   2
#define TTMON_MTC_MAX_RINGS 1024
#define TTMON_MTC_UNIT	    32
#define TTMON_MTC_MIN_UNITS 16
#define TTMON_MTC_MAX_UNITS (1u << 22)	/* a ring: 128 MiB */
#define TTMON_MTC_MIN_DICT  (64u << 10) /* bytes */
#define TTMON_MTC_MAX_DICT  (256u << 20)
#define TTMON_MTC_MAX_ENTRY (16u << 10)
#define TTMON_MTC_MAX_BYTES (8ull << 30)

enum ttmon_mtc_state { TTMON_MTC_RUNNING = 1, TTMON_MTC_DONE = 2 };

struct ttmon_mtc_head {
	uint32_t magic;
	uint16_t version, head_bytes;
	uint32_t pid, nr_rings;
	uint64_t bytes; /* of the memfd */
	uint64_t tails_off, dict_off, dict_bytes /* dict_bytes: a power of two */, rings_off;
	uint32_t units; /* units of each ring */
	uint32_t mode;	/* enum ttmon_mtc_mode */
	uint64_t ctx;	/* number of the context in the program, from 1 */
	uint32_t device;
	uint32_t sample;   /* one of this many blocks is recorded */
	uint32_t state;	   /* enum ttmon_mtc_state, written by the program, last of all */
	uint32_t consumer; /* written by the consumer: 1 while it reads */
	uint8_t pad0[128 - 88];
	uint64_t dict_head; /* written by the program */
	uint64_t dict_lost;
	uint8_t pad1[112];
	uint64_t dict_tail; /* written by the consumer */
	uint8_t pad2[120];
};

enum ttmon_mtc_mode { TTMON_MTC_STREAM, TTMON_MTC_AGGREGATE };

struct ttmon_mtc_tail {
	uint64_t tail; /* written by the consumer */
	uint8_t pad[120];
};

enum ttmon_mtc_rec_kind { TTMON_MTC_AFFINE = 1, TTMON_MTC_LIST = 2, TTMON_MTC_LOST = 3 };

struct ttmon_mtc_rec {
	uint64_t base; /* address of the first active lane; LOST: number of dropped records */
	uint32_t mask;
	int32_t stride;	      /* AFFINE: bytes from lane to lane */
	uint32_t launch_warp; /* launch << 6 | warp in the block (tid / 32) */
	uint32_t cta_x;
	uint16_t cta_y, cta_z;
	uint32_t tag; /* the fields below; 0: not committed */
};
#define TTMON_MTC_LIST_UNITS(lanes) (1 + ((lanes) + 3) / 4)
#define TTMON_MTC_COMMITTED	    (1u << 31)
#define TTMON_MTC_KIND(tag)	    ((tag) >> 29 & 3)
#define TTMON_MTC_SPACE(tag)	    ((tag) >> 27 & 3)  /* 0: as defined for the site; 1 global, 2 shared, 3 local */
#define TTMON_MTC_LAP(tag)	    ((tag) >> 22 & 31) /* position / units */
#define TTMON_MTC_SITE(tag)	    ((tag)&0x3fffff)   /* process-wide number of the site */
#define TTMON_MTC_MAX_SITES	    (1u << 20)	       /* the same as in memtrace/model/mt.h */
#define TTMON_MTC_MAX_LAUNCHES	    (1u << 26)	       /* beyond it launches are not recorded, which is reported */

/*
 * In device memory, one for each context; its address is the first of the two parameters that a
 * recorded kernel has in addition to the program's.
 */
struct ttmon_mtc_ring {
	uint64_t head, seen, lost, stuck;
};
struct ttmon_mtc_ctl {
	uint64_t rings; /* address on the device: the first data ring */
	uint64_t tails; /* address on the device: tails[0] */
	uint64_t aggs;	/* struct ttmon_mtc_agg[agg_sites] in device memory; 0: none */
	uint64_t touch; /* uint64_t[touch_slots] in device memory; 0: none */
	uint32_t nr_rings, units;
	uint32_t wait_ns; /* so long a warp waits at a full ring, by the device's clock (%globaltimer_lo) */
	uint32_t sample;  /* blocks whose linear number % sample == 0 are recorded; 0 and 1: all */
	uint32_t agg_sites;
	uint32_t touch_slots; /* power of two */
	uint64_t touch_lost;  /* number of pages that found no slot */
	struct ttmon_mtc_ring ring[];
};

/* The second parameter: the number of the launch (from 0) in the low 32 bits; the high 32 are 0. */

/*
 * Aggregate mode: for each site (index: its process-wide number; a generic access has three, by
 * space), all launches together. Changed by atomics on the GPU, zeroed when it is made. A request is
 * what one warp does with at least one lane; it counts once in lanes, in cost, in classes, and where
 * it has lines in lines. Accesses are aligned to their width, a power of two up to 32, as the hardware
 * requires: two lanes have the same bytes or none in common.
 *
 *	cost		global memory: distinct sectors of 32 bytes. Local memory: distinct (word of 4 bytes,
 *			lane / 8), since the words of neighbouring lanes at one offset lie side by side.
 *			Shared memory: wavefronts (32 banks of 4 bytes; widths of 8 and 16 go by halves and
 *			quarters of a warp)
 *	lines		global memory: distinct lines of 128 bytes; local memory: distinct words
 *	distinct bytes	(lanes - lanes that are at the address of one before them) x width; in local memory
 *			lanes x width
 *	ideal		ceil(distinct bytes / 32), of shared memory ceil(distinct words / 32) wavefronts
 *	classes		those of memtrace/model/shape.h, in that order: single, broadcast, sequential,
 *			reversed, strided, segmented, permuted, clustered, gather. Differences of addresses
 *			are modulo 2^64
 *
 * Sums follow: requests, full warps, lanes, bytes, sectors or wavefronts, and the CUPTI ideal are made
 * of the distributions and the site's width.
 */
#define TTMON_MTC_AGG_CLASSES 9
#define TTMON_MTC_AGG_COSTS   33
#define TTMON_MTC_AGG_PAGES   5
#define TTMON_MTC_AGG_STRIDES 3

struct ttmon_mtc_agg {
	uint64_t most_same; /* the highest number of lanes that went to `same` at once */
	uint64_t classes[TTMON_MTC_AGG_CLASSES];
	/*
	 * Sums of how much each request exceeds its best possible value: mostly 0, which needs no atomic.
	 *
	 *	misaligned	global memory: 1 for a sequential or reversed request with more sectors than if
	 *			its lowest byte were the first of a sector
	 *	saved		global memory: ceil(lanes x width / 32) - ideal
	 *	twice		global and shared memory: lanes that are at the address of one before them
	 *	pages		global memory: distinct pages of 4 KiB, 64 KiB, 2 MiB - 1
	 *	same		atomics, not in local memory: the most lanes on one word - 1. A word is 4
	 *			bytes; for wider accesses, what one lane has
	 *	phases		shared memory: phases with a lane in them; ideal_waves: ideal
	 *	more		of a request in the last place of cost, of lines: what it has more than 33
	 */
	uint64_t misaligned, saved, twice;
	uint64_t pages_4k, pages_64k, pages_2m;
	uint64_t same, phases, ideal_waves;
	uint64_t more_cost, more_lines;
	uint64_t lanes[32];		    /* requests with i + 1 lanes */
	uint64_t cost[TTMON_MTC_AGG_COSTS]; /* requests that cost i + 1; the last: 33 and more */
	uint64_t lines[TTMON_MTC_AGG_COSTS];
	/* Global memory: requests of 2^i + 1 to 2^(i + 1) distinct pages. */
	uint64_t bins_4k[TTMON_MTC_AGG_PAGES], bins_2m[TTMON_MTC_AGG_PAGES];
	/*
	 * Strided and segmented requests by their stride, unless it is 0; only the first three strides that
	 * occur. strides: bytes from lane to lane; 0: free.
	 */
	uint64_t strides[TTMON_MTC_AGG_STRIDES], stride_requests[TTMON_MTC_AGG_STRIDES];
	uint64_t pad;
	uint64_t least, greatest; /* of the lanes' first bytes; least: with all bits inverted, so that 0 is none */
};
/*
 * touch: a set of 4 KiB pages by open addressing, with up to 16 tries. The slot is
 * page * 0x9e3779b97f4a7c15 >> (64 - log2 slots); the word is page << 2 | 1 (read) | 2 (written).
 */

/* ---- the dictionary ---- */

enum ttmon_mtc_kind {
	TTMON_MTC_ENTRY_SITE = 1,
	TTMON_MTC_ENTRY_LAUNCH,
	TTMON_MTC_ENTRY_KERNEL, /* coverage; the last entry of a name and module is valid */
	TTMON_MTC_ENTRY_AGG,	/* the last entry of a site is valid */
	TTMON_MTC_ENTRY_TOUCH,
	TTMON_MTC_ENTRY_LOST, /* losses on the GPU that had no room for a LOST record; at the end */
	TTMON_MTC_ENTRY_NOTE, /* text for the user */
	/* struct ttmon_mtc_touch: the channel's own memory, pinned and in use; not an access of the program */
	TTMON_MTC_ENTRY_OWN,
};

/*
 * bytes: size of the whole entry with its texts, a multiple of 8, at most 16 KiB. The texts follow the
 * struct one after the other, each with its NUL.
 */
struct ttmon_mtc_entry {
	uint32_t bytes;
	uint16_t kind, pad;
};
struct ttmon_mtc_site {
	struct ttmon_mtc_entry e;
	uint32_t id, line, text_line;
	uint8_t space, kind, width, flags; /* as in memtrace/model/mt.h; texts: kernel, opcode, file, module */
};
struct ttmon_mtc_launch {
	struct ttmon_mtc_entry e;
	uint32_t id, shmem;
	uint64_t time_ns, stream;
	uint32_t grid[3], block[3];
	uint32_t flags, regs; /* TTMON_MT_LAUNCH_* */
			      /* text: kernel */
};
struct ttmon_mtc_kernel {
	struct ttmon_mtc_entry e;
	uint64_t launches, recorded;
	uint32_t sites, left_out;
	/* texts: name, module, why */
};
struct ttmon_mtc_agg_entry {
	struct ttmon_mtc_entry e;
	uint32_t site, pad;
	struct ttmon_mtc_agg agg;
};
struct ttmon_mtc_touch {
	struct ttmon_mtc_entry e;
	uint64_t addr, size, reads, writes; /* merged pages; reads, writes: 1 or 0 */
};
struct ttmon_mtc_lost {
	struct ttmon_mtc_entry e;
	uint64_t records, pages;
};
struct ttmon_mtc_note {
	struct ttmon_mtc_entry e;
	/* text */
};

/* ---- the socket ---- */

struct ttmon_mtc_hello {
	uint32_t magic, version;
	uint64_t bytes;
};
struct ttmon_mtc_answer {
	uint32_t magic;
	int32_t status; /* 0, or -errno: it refuses to read */
};
/* The socket that libttmon-memtrace.so connects to, unless TTMON_MEMTRACE_SOCKET is set. */
#define TTMON_MTC_SOCKET "/run/ttmond/memtrace.sock"

#endif
