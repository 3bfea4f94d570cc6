/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * view.h: the parts of `ttmon view`: transfers in bins of time (bins.c), the data of the page as JSON
 * (data.c), and the page around it (page.c), which knows nothing of allocations.
 */
#ifndef TTMON_VIEW_H
#define TTMON_VIEW_H

#include "lib/pin/policy.h"
#include "lib/pin/groups.h"
#include "lib/pin/profile.h"
#include "lib/read/run.h"

/* ---- transfers in bins of time ---- */

#define TTMON_VIEW_BINS_MAX (1u << 20) /* of all allocations together: 16 MiB, and about 4 MB of the page */
#define TTMON_VIEW_AT_MAX \
	(1u << 26) /* the most bins over the time of a capture: 1 us each for a minute, 2 ms for a day */
#define TTMON_VIEW_OTHER (1u << 31) /* flag in at: a transfer that is not to the device */

struct ttmon_view_bin {
	uint32_t at; /* number of the bin, plus TTMON_VIEW_OTHER */
	uint32_t copies;
	uint64_t bytes;
};

/*
 * Bins of 1 << shift ns for all allocations; empty bins are not stored. The width is as small as the
 * limits allow: when there are too many bins, the width doubles and neighbours are merged.
 */
struct ttmon_view_bins {
	struct ttmon_view_bin *bins;
	size_t nr, cap, max;
	/*
	 * index of the first bin of each allocation that was kept; its bins end where those of the next begin
	 */
	size_t *first;
	size_t nr_allocs, cap_allocs;
	unsigned int shift;
	uint64_t left_out; /* number of transfers left out because there are more allocations than bins */
	int err;	   /* the first error, -ENOMEM; nothing is added after it */
};

void ttmon_view_bins_init(struct ttmon_view_bins *b, size_t max);
void ttmon_view_bins_fini(struct ttmon_view_bins *b);
/*
 * Adds a transfer to the allocation that is being read. ns: time since the beginning of the capture.
 */
void ttmon_view_bins_add(struct ttmon_view_bins *b, uint64_t ns, bool other, uint64_t bytes);
/* Ends the allocation that is being read: keeps it as the next one, or drops its transfers. */
void ttmon_view_bins_end(struct ttmon_view_bins *b, bool keep);
/*
 * Returns the bins of an allocation that was kept: those to the device first, each kind by time,
 * without duplicates. Valid until the next call.
 */
size_t ttmon_view_bins_get(const struct ttmon_view_bins *b, size_t alloc, const struct ttmon_view_bin **ret);

/* ---- the data of the page ---- */

struct ttmon_view {
	const struct ttmon_run *run;
	const struct ttmon_view_bins *bins; /* by index in run->allocs */
	const struct ttmon_profile *profile;
	const struct ttmon_pin_groups *groups;	    /* the verdicts; NULL: none */
	const struct ttmon_policy_result *policies; /* TTMON_POLICY_MAX entries; NULL: none */
	struct ttmon_cost cost;
	const char *file, *version; /* name of the database; version of ttmon */
	const uint32_t *shown;	    /* indexes in run->allocs, ascending */
	size_t nr_shown;
	uint64_t mappings; /* number of mappings left out because no transfer touched them */
};

/* Writes the tables as JSON. Returns 0 or -errno. */
int ttmon_view_write_meta(const struct ttmon_view *v, int fd) _must_check;
/*
 * Writes the bins of the shown allocations, one after the other, in the form that view.js reads.
 * Returns 0 or -errno.
 */
int ttmon_view_write_bins(const struct ttmon_view *v, int fd) _must_check;
/*
 * Chooses the allocations for the page: all if they fit, otherwise the max that moved the most bytes,
 * then the largest ones. *ret: indexes in ascending order, freed by the caller. Returns 0 or -ENOMEM.
 */
int ttmon_view_choose(const struct ttmon_run *run, size_t max, uint32_t **ret, size_t *ret_nr) _must_check;

/* ---- the page ---- */

/*
 * Embeds a file in the program: name_start to name_end are its bytes. The Makefile names the file as a
 * prerequisite.
 */
#define TTMON_INCBIN(name, file)                            \
	extern const char name##_start[], name##_end[];     \
	__asm__(".pushsection .rodata\n"                    \
		".global " #name "_start\n"                 \
		".global " #name "_end\n" #name "_start:\n" \
		".incbin \"" file "\"\n" #name "_end:\n"    \
		".popsection\n")

struct ttmon_page_part {
	const char *id; /* id of the element that holds it; view.js loads it with loadPart() */
	int fd;		/* a file (not a pipe), read from its beginning to its end */
};

/*
 * A self-contained page: the frame page.html with page.css and page.js, which every kind of page
 * shares, and what differs: the body, the script and the data. Each part is embedded as base64,
 * compressed unless plain. Text from traced programs is only in the parts, so none of it can act as
 * markup.
 */
struct ttmon_page {
	const char *body, *script;
	size_t body_len, script_len;
	const struct ttmon_page_part *parts;
	size_t nr_parts;
	bool plain;
};

/* Returns 0 or -errno. */
int ttmon_page_write(int fd, const struct ttmon_page *page) _must_check;

#endif
