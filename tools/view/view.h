/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * view.h: the parts of `ttmon view`: transfers in bins of time (bins.c), what the page shows as JSON
 * (data.c), and the page around it (page.c), which knows nothing of allocations.
 */
#ifndef TTMON_VIEW_H
#define TTMON_VIEW_H

#include "lib/pin/policy.h"
#include "lib/pin/groups.h"
#include "lib/pin/profile.h"
#include "lib/read/run.h"

/* ---- transfers in bins of time ---- */

#define TTMON_VIEW_BINS_MAX (1u << 20) /* of all allocations: 16 MiB, and about 4 MB of the page */
#define TTMON_VIEW_AT_MAX \
	(1u << 26) /* bins from the beginning to the end of a capture: 1 us each in a minute, 2 ms in a day */
#define TTMON_VIEW_OTHER (1u << 31) /* in at: a transfer that is not to the device */

struct ttmon_view_bin {
	uint32_t at; /* number of the bin, and TTMON_VIEW_OTHER */
	uint32_t copies;
	uint64_t bytes;
};

/*
 * Sparse bins of one width for all allocations: 1 << shift ns, as fine as the limits allow. Where one
 * is passed, neighbours are added up and the width doubles.
 */
struct ttmon_view_bins {
	struct ttmon_view_bin *bins;
	size_t nr, cap, max;
	size_t *first; /* of each allocation that was kept; its bins end where the next one's begin */
	size_t nr_allocs, cap_allocs;
	unsigned int shift;
	uint64_t left_out; /* transfers: there are more allocations than bins */
	int err;	   /* the first: -ENOMEM; nothing is added after it */
};

void ttmon_view_bins_init(struct ttmon_view_bins *b, size_t max);
void ttmon_view_bins_fini(struct ttmon_view_bins *b);
/* A transfer of the allocation that is being read, ns after the beginning of the capture. */
void ttmon_view_bins_add(struct ttmon_view_bins *b, uint64_t ns, bool other, uint64_t bytes);
/* That allocation has been read: keep it as the next one, or forget its transfers. */
void ttmon_view_bins_end(struct ttmon_view_bins *b, bool keep);
/*
 * Bins of an allocation that was kept: those to the device first, each kind by time, no two with one
 * number. Valid until the next call.
 */
size_t ttmon_view_bins_get(const struct ttmon_view_bins *b, size_t alloc, const struct ttmon_view_bin **ret);

/* ---- what the page shows ---- */

struct ttmon_view {
	const struct ttmon_run *run;
	const struct ttmon_view_bins *bins; /* by index in run->allocs */
	const struct ttmon_profile *profile;
	const struct ttmon_pin_groups *groups;	    /* the verdicts; NULL: none */
	const struct ttmon_policy_result *policies; /* TTMON_POLICY_MAX; NULL: none */
	struct ttmon_cost cost;
	const char *file, *version; /* the database's name, and ours */
	const uint32_t *shown;	    /* indexes in run->allocs, ascending */
	size_t nr_shown;
	uint64_t mappings; /* left out: no transfer touched them */
};

/* The tables, as JSON. 0 or -errno. */
int ttmon_view_write_meta(const struct ttmon_view *v, int fd) _must_check;
/* The bins of the allocations shown, one after the other, as view.js reads them. 0 or -errno. */
int ttmon_view_write_bins(const struct ttmon_view *v, int fd) _must_check;
/*
 * Which allocations fit into the page: all, or the max that moved the most bytes, then the largest.
 * Indexes, ascending, to be freed. -ENOMEM.
 */
int ttmon_view_choose(const struct ttmon_run *run, size_t max, uint32_t **ret, size_t *ret_nr) _must_check;

/* ---- the page ---- */

/*
 * name_start to name_end: the bytes of a file, put into the program as they are; the Makefile names it
 * as a prerequisite.
 */
#define TTMON_INCBIN(name, file)                            \
	extern const char name##_start[], name##_end[];     \
	__asm__(".pushsection .rodata\n"                    \
		".global " #name "_start\n"                 \
		".global " #name "_end\n" #name "_start:\n" \
		".incbin \"" file "\"\n" #name "_end:\n"    \
		".popsection\n")

struct ttmon_page_part {
	const char *id; /* of the element that holds it; view.js asks for it with loadPart() */
	int fd;		/* read from its beginning to its end; a file, not a pipe */
};

/*
 * A page that needs nothing but itself: the frame page.html with page.css and page.js, which any kind
 * of page can use, and what makes it this
 * one: the body, the script, and its data. Each part is put in as base64, compressed unless plain.
 * What traced programs chose is in the parts alone, so that nothing of it can be taken for markup.
 */
struct ttmon_page {
	const char *body, *script;
	size_t body_len, script_len;
	const struct ttmon_page_part *parts;
	size_t nr_parts;
	bool plain;
};

/* 0 or -errno. */
int ttmon_page_write(int fd, const struct ttmon_page *page) _must_check;

#endif
