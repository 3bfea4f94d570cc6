/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * heat.h: `ttmon heat`: what was moved, as a map: a row for each allocation, or for each group of
 * pages of one, a column for a piece of time.
 *
 * db.c and live.c make the map, of a database or of what the service says; map.c (pure) gives its
 * cells at any zoom, text.c (pure) its lines for a terminal of any width, json.c the same for
 * programs, screen.c a screen to look around in.
 *
 * Moved is what copies moved from or to the memory, in either direction. A cell that is empty says
 * that nothing was moved; where something can be missing the map says so: gaps, rows of which events
 * were not kept, rows of which not all was seen.
 */
#ifndef TTMON_HEAT_TOOL_H
#define TTMON_HEAT_TOOL_H

#include <jansson.h>

#include "lib/base/fmt.h"
#include "lib/base/util.h"
#include "lib/verdict/verdict.h"

#define TTMON_HEATMAP_BINS \
	65536 /* pieces that the time of a database is divided into; fewer where there are too many bins */
#define TTMON_HEATMAP_MAX_BINS (4u << 20) /* of all rows, and four of each: 64 MiB and more */
#define TTMON_HEATMAP_MAX_ROWS (1u << 20)
#define TTMON_HEATMAP_MAX_NS   (1ULL << 55) /* a year: longer is cut */
#define TTMON_HEATMAP_GROUPS   64	    /* rows of one allocation's pages, at most */

/* What was moved in [origin + at * width, origin + (at + 1) * width). */
struct ttmon_heatmap_bin {
	uint32_t at, copies;
	uint64_t bytes;
};

struct ttmon_heatmap_row {
	char *id, *site; /* owned, may be NULL; site: also a name, or the offset of a group of pages */
	char *shown;	 /* site as people read it, owned; NULL: site */
	char *comm;	 /* owned, may be NULL */
	uint32_t pid;
	uint8_t method; /* enum ttmon_method */
	bool pinned, in_place, live;
	bool unseen;		    /* whether it is pinned is not known; pinned is false then */
	bool at_least;		    /* not all of its copies were seen: copies, bytes and cells are lower bounds */
	bool gpu;		    /* kernels were seen to access it in place */
	bool judged;		    /* what is said of its call site, process and method is known: in said */
	struct ttmon_said said;	    /* advice, reason, known, gain_ns alone */
	bool more;		    /* events were not kept: there was more than its cells show */
	uint32_t allocs;	    /* in this row: 1, or of a group */
	uint64_t seq;		    /* its place in the order of allocations, or of pages */
	uint64_t size;		    /* bytes */
	uint64_t alloc_ns, free_ns; /* free_ns: UINT64_MAX while it is live */
	uint64_t bytes, copies;	    /* moved, in its whole life; bytes UINT64_MAX: not known */
	uint64_t origin_ns, width_ns;
	struct ttmon_heatmap_bin *bins; /* owned; by time */
	uint32_t nr_bins, max_bins;
};

struct ttmon_heatmap_mark {
	uint64_t from_ns, to_ns; /* to_ns of a checkpoint: the same */
	char text[64];
};

struct ttmon_heatmap {
	bool live, pages, sites;		   /* sites: rows are groups */
	bool complete, not_said;		   /* not_said: whether it is complete */
	bool last;				   /* of the end of the run alone: ttmon_heatmap_keep_last() */
	char *title;				   /* owned: what it is of */
	char missing[200];			   /* what is not in it, "" where nothing is known to be missing */
	uint64_t start_ns, end_ns;		   /* of the map */
	uint64_t nr_procs, hidden;		   /* hidden: allocations that were not requested */
	uint64_t now_pages, peak_pages, page_size; /* pinned */
	bool now_unknown, pages_least; /* allocations are not seen now; the figures above are lower bounds */
	struct ttmon_heatmap_row *rows;
	size_t nr, max;
	uint64_t nr_bins; /* of all rows */
	bool open;	  /* rows[nr] is being made */
	uint64_t width_ns;
	struct ttmon_heatmap_mark *checkpoints, *gaps;
	size_t nr_checkpoints, nr_gaps;
	uint32_t *order; /* of nr */
};

/* What to show: a piece of time in columns; sums of bytes, or of copies. */
struct ttmon_heatmap_span {
	uint64_t from_ns, to_ns; /* to_ns past from_ns */
	unsigned int columns;	 /* 1..TTMON_HEAT_WIDTH_MAX */
	bool copies;
};

/*
 * The scale is of powers: level 8 is more than high / step, 7 more than high / step^2, ..., 1 anything
 * more than nothing.
 */
struct ttmon_heatmap_scale {
	uint64_t high;
	unsigned int step; /* 2 or 4 */
};
#define TTMON_HEAT_LEVELS 8

enum ttmon_heat_sort {
	TTMON_HEAT_BY_BYTES,
	TTMON_HEAT_BY_COPIES,
	TTMON_HEAT_BY_SIZE,
	TTMON_HEAT_BY_AGE,  /* the oldest first */
	TTMON_HEAT_BY_SITE, /* rows of pages: by offset */
	TTMON_HEAT_SORTS
};
/* "bytes", ...; NULL past the end. */
const char *ttmon_heat_sort_name(unsigned int sort);

/* ---- map.c ---- */
void ttmon_heatmap_fini(struct ttmon_heatmap *map);
/* Begin a row: rows[nr], all zero; ttmon_heatmap_keep() or _drop() ends it. NULL: out of memory. */
struct ttmon_heatmap_row *ttmon_heatmap_begin(struct ttmon_heatmap *map) _must_check;
void ttmon_heatmap_keep(struct ttmon_heatmap *map);
void ttmon_heatmap_drop(struct ttmon_heatmap *map);
/*
 * Into the row that is being made: copies and bytes at a time. Its bins are of map->width_ns from map->start_ns on; they are made wider, all of them,
 * when there are too many. -ENOMEM.
 */
int ttmon_heatmap_put(struct ttmon_heatmap *map, uint64_t ts_ns, uint32_t copies, uint64_t bytes) _must_check;
/*
 * Rows for the pages of an allocation of this size: kept, in order. group_bytes 0: chosen here.
 * -ENOMEM.
 */
int ttmon_heatmap_make_pages(struct ttmon_heatmap *map, uint64_t size, uint64_t group_bytes, uint64_t page_size,
			     uint64_t *ret_group) _must_check;
/* A copy of bytes from offset on, shared out to the groups it touches, each of which counts it. */
int ttmon_heatmap_put_pages(struct ttmon_heatmap *map, uint64_t group_bytes, uint64_t ts_ns, uint64_t offset,
			    uint64_t bytes) _must_check;
/* Checkpoints and gaps are appended. -ENOMEM. */
int ttmon_heatmap_add_mark(struct ttmon_heatmap_mark **list, size_t *nr, uint64_t from_ns, uint64_t to_ns,
			   const char *text) _must_check;
/* Of the bins too: after the last one was put. Makes map->order. -ENOMEM. */
int ttmon_heatmap_sort(struct ttmon_heatmap *map, enum ttmon_heat_sort by, bool reverse) _must_check;
/*
 * What was before the last last_ns goes: rows that had ended, and what the others moved until then. A
 * piece of time that begins before is left out whole; the sums of such a row are lower bounds, as are
 * those of rows of which events were not kept. Before the sort.
 */
void ttmon_heatmap_keep_last(struct ttmon_heatmap *map, uint64_t last_ns);
/*
 * Rows of one call site, process and method become one, with the size of the largest. Before the sort.
 * -ENOMEM.
 */
int ttmon_heatmap_group(struct ttmon_heatmap *map) _must_check;
/*
 * Sums of each column; those of all columns together are those of the bins in the span, exactly where
 * the span covers them.
 */
void ttmon_heatmap_cells(const struct ttmon_heatmap_row *r, const struct ttmon_heatmap_span *span, uint64_t *cells);
/* By the cells of all rows. */
void ttmon_heatmap_find_scale(const struct ttmon_heatmap *map, const struct ttmon_heatmap_span *span,
			      struct ttmon_heatmap_scale *ret);
unsigned int ttmon_heatmap_level(const struct ttmon_heatmap_scale *scale, uint64_t value);
/* Column of a time in the span: clamped. And the first time of a column. */
unsigned int ttmon_heatmap_column(const struct ttmon_heatmap_span *span, uint64_t ts_ns);
uint64_t ttmon_heatmap_column_ns(const struct ttmon_heatmap_span *span, unsigned int column);

/* ---- text.c ---- */
#define TTMON_HEAT_WIDTH_MIN 60
#define TTMON_HEAT_WIDTH_MAX 512

enum ttmon_heat_style {
	TTMON_HEAT_PLAIN,
	TTMON_HEAT_LEVEL1, /* ... LEVEL1 + TTMON_HEAT_LEVELS - 1 */
	TTMON_HEAT_IDLE = TTMON_HEAT_LEVEL1 + TTMON_HEAT_LEVELS,
	TTMON_HEAT_UNKNOWN,
	TTMON_HEAT_HEAD,
	TTMON_HEAT_DIM,
	TTMON_HEAT_WARN,
	TTMON_HEAT_STYLES
};
struct ttmon_heat_cell {
	uint32_t ch; /* Unicode */
	uint8_t style;
};
#define TTMON_HEAT_BEHIND_WIDE 0 /* the second column of a wide character: nothing is written there */
/* A line of a terminal; what is past n is blank. */
struct ttmon_heat_line {
	unsigned int n;
	bool utf8; /* the terminal shows it; else what is not ASCII becomes '?' */
	struct ttmon_heat_cell cells[TTMON_HEAT_WIDTH_MAX];
};
struct ttmon_heat_layout {
	unsigned int width, site, pid,
		map; /* columns; pid 0: left out. map is the number of columns of the map, map_at where it begins */
	unsigned int map_at, sums; /* sums: columns of MOVED, and of COPIES */
	bool utf8;
};
void ttmon_heat_fit(const struct ttmon_heatmap *map, unsigned int width, bool utf8, struct ttmon_heat_layout *ret);
/* Line 0 or 1 of the head; 2, where something is missing: what. */
void ttmon_heat_head(const struct ttmon_heatmap *map, const struct ttmon_heat_layout *l, unsigned int line,
		     struct ttmon_heat_line *ret);
/* Titles of the columns, with the times over the map. */
void ttmon_heat_columns(const struct ttmon_heatmap *map, const struct ttmon_heat_layout *l,
			const struct ttmon_heatmap_span *span, struct ttmon_heat_line *ret);
/* Checkpoints and gaps over the map; false: there are none in it. */
bool ttmon_heat_marks(const struct ttmon_heatmap *map, const struct ttmon_heat_layout *l,
		      const struct ttmon_heatmap_span *span, struct ttmon_heat_line *ret);
void ttmon_heat_row(const struct ttmon_heatmap *map, const struct ttmon_heat_layout *l,
		    const struct ttmon_heatmap_span *span, const struct ttmon_heatmap_scale *scale, size_t row,
		    struct ttmon_heat_line *ret);
/* Line 0 or 1 of what the signs mean. */
void ttmon_heat_legend(const struct ttmon_heatmap *map, const struct ttmon_heat_layout *l,
		       const struct ttmon_heatmap_span *span, const struct ttmon_heatmap_scale *scale,
		       unsigned int line, struct ttmon_heat_line *ret);
/* All there is to say of a row. */
void ttmon_heat_details(const struct ttmon_heatmap *map, const struct ttmon_heat_layout *l, size_t row,
			struct ttmon_heat_line *ret);
/* The 256-colour index of a level (1..TTMON_HEAT_LEVELS), and what lies under it. */
unsigned int ttmon_heat_colour(unsigned int level);
#define TTMON_HEAT_GROUND 234
/* UTF-8 of one character, NUL-terminated. */
void ttmon_heat_utf8(uint32_t ch, char buf[5]);
/*
 * colour: with escape sequences for 256 colours. Blanks at the end are left out where they have no
 * colour.
 */
void ttmon_heat_print(FILE *f, const struct ttmon_heat_line *line, bool colour);

/* ---- the commands ---- */
struct ttmon_heat_ask {
	const char *db; /* NULL: live */
	const char *socket;
	const char *id; /* pages of this allocation; NULL: allocations */
	unsigned int sort, width, interval_ms;
	bool has_sort, reverse, all, by_site;
	uint64_t pid, lines, last_ms; /* 0: all */
};
/*
 * Make the map, sorted. Errors are said on stderr unless quiet. -ENOENT: no such allocation;
 * -EREMOTEIO, errors of the reader. ret: ttmon_heatmap_fini().
 */
int ttmon_heat_read(const struct ttmon_heat_ask *ask, bool quiet, struct ttmon_heatmap *ret) _must_check;
/* db.c */
int ttmon_heat_read_db(const struct ttmon_heat_ask *ask, struct ttmon_heatmap *map, char *why, size_t n) _must_check;
/* live.c */
int ttmon_heat_read_live(const struct ttmon_heat_ask *ask, struct ttmon_heatmap *map, char *why, size_t n) _must_check;
/*
 * The documents of /v1/heat, /v1/allocations and /v1/allocations/ID into the map. -EBADMSG, -ENOMEM.
 */
int ttmon_heat_take_allocs(struct ttmon_heatmap *map, const json_t *doc, const struct ttmon_heat_ask *ask) _must_check;
int ttmon_heat_take_heat(struct ttmon_heatmap *map, const json_t *doc, const struct ttmon_heat_ask *ask) _must_check;
int ttmon_heat_take_pages(struct ttmon_heatmap *map, const json_t *doc) _must_check;
/*
 * The lines of /v1/advice: the verdicts of the rows; where several call sites have one name and not
 * one verdict, none.
 */
void ttmon_heat_take_advice(struct ttmon_heatmap *map, const char *text);
/* What a method is called in a row of six characters: state and API. */
const char *ttmon_heat_how(const struct ttmon_heatmap_row *r);
/* How much was moved is not known at all. */
static inline bool ttmon_heat_is_unknown(const struct ttmon_heatmap_row *r)
{
	return r->at_least && !r->copies;
}
/* json.c: of `columns` columns. NULL: out of memory. */
json_t *ttmon_heat_json(const struct ttmon_heatmap *map, const struct ttmon_heatmap_span *span,
			uint64_t lines) _must_check;
/* term.c: 256 colours that are wanted (NO_COLOR), and a terminal that a screen can be drawn on. */
bool ttmon_heat_has_colours(void);
bool ttmon_heat_has_screen(void);
/* screen.c: on a terminal, until q. The exit status of the program. */
int ttmon_heat_screen(struct ttmon_heat_ask *ask);
/* The whole map, or its last ask->last_ms, in so many columns. */
void ttmon_heat_span(const struct ttmon_heatmap *map, const struct ttmon_heat_ask *ask, unsigned int columns,
		     struct ttmon_heatmap_span *ret);

#endif
