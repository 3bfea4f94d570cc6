/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * heat.h: `ttmon heat` shows what was moved as a map: a row for each allocation (or each group of
 * pages of one allocation), a column for each piece of time.
 *
 * db.c makes the map of a database, live.c that of a running service. map.c (pure) computes its cells
 * at any zoom, text.c (pure) its lines for a terminal of any width, json.c the JSON form; screen.c is
 * the interactive screen.
 *
 * A cell counts what copies moved from or to the memory, in both directions. An empty cell means that
 * nothing was moved. Where something may be missing the map says so: coverage gaps, rows whose events
 * were not kept, rows of which only a part was seen.
 */
#ifndef TTMON_HEAT_TOOL_H
#define TTMON_HEAT_TOOL_H

#include <jansson.h>

#include "lib/base/fmt.h"
#include "lib/base/util.h"
#include "lib/verdict/verdict.h"

#define TTMON_HEATMAP_BINS \
	65536 /* number of bins that the time of a database is divided into; fewer for many allocations */
/* bins of all rows, and room for four times as many while merging: 64 MiB and more */
#define TTMON_HEATMAP_MAX_BINS (4u << 20)
#define TTMON_HEATMAP_MAX_ROWS (1u << 20)
#define TTMON_HEATMAP_MAX_NS   (1ULL << 55) /* a year; longer times are cut */
#define TTMON_HEATMAP_GROUPS   64	    /* the most rows for the pages of one allocation */

/* What was moved in the time [origin + at * width, origin + (at + 1) * width). */
struct ttmon_heatmap_bin {
	uint32_t at, copies;
	uint64_t bytes;
};

struct ttmon_heatmap_row {
	char *id, *site; /* owned, may be NULL; site can also be a name, or the offset of a group of pages */
	char *shown;	 /* site with demangled names, owned; NULL: the same as site */
	char *comm;	 /* owned, may be NULL */
	uint32_t pid;
	uint8_t method; /* enum ttmon_method */
	bool pinned, in_place, live;
	bool unseen;		    /* it is not known whether the memory is pinned; pinned is false then */
	bool at_least;		    /* some copies were missed: copies, bytes and cells are lower bounds */
	bool gpu;		    /* kernels accessed it in place */
	bool judged;		    /* there is a verdict for its call site, process and method: said is valid */
	struct ttmon_said said;	    /* only advice, reason, known and gain_ns are set */
	bool more;		    /* some events were not kept: the cells show less than was moved */
	uint32_t allocs;	    /* number of allocations in this row: 1, or those of a group */
	uint64_t seq;		    /* position in the order of allocations, or of pages */
	uint64_t size;		    /* bytes; of a group: the most that was live at one time */
	bool size_least;	    /* a group of which not all allocations are known: size is a lower bound */
	uint64_t alloc_ns, free_ns; /* free_ns: UINT64_MAX while it is live */
	uint64_t bytes, copies;	    /* moved in its whole life; bytes is UINT64_MAX if not known */
	uint64_t origin_ns, width_ns;
	struct ttmon_heatmap_bin *bins; /* owned; sorted by time */
	uint32_t nr_bins, max_bins;
};

struct ttmon_heatmap_mark {
	uint64_t from_ns, to_ns; /* for a checkpoint from_ns and to_ns are equal */
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
	uint64_t nr_bins; /* of all rows together */
	bool open;	  /* rows[nr] was begun and is not ended yet */
	uint64_t width_ns;
	struct ttmon_heatmap_mark *checkpoints, *gaps;
	size_t nr_checkpoints, nr_gaps;
	uint32_t *order; /* permutation of the nr rows */
};

/*
 * What to show: a piece of time divided into columns; by_copies: cells are sums of copies, else of
 * bytes.
 */
struct ttmon_heatmap_span {
	uint64_t from_ns, to_ns; /* to_ns is greater than from_ns */
	unsigned int columns;	 /* 1..TTMON_HEAT_WIDTH_MAX */
	bool copies;
};

/*
 * The scale is exponential: level 8 is more than high / step, level 7 more than high / step^2, and so
 * on; level 1 is anything above 0.
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
/* Returns the name of an order, such as "bytes"; NULL for a number past the end. */
const char *ttmon_heat_sort_name(unsigned int sort);

/* ---- map.c ---- */
void ttmon_heatmap_fini(struct ttmon_heatmap *map);
/*
 * Begins a row: returns rows[nr], zeroed. ttmon_heatmap_keep() or _drop() ends it. NULL: out of
 * memory.
 */
struct ttmon_heatmap_row *ttmon_heatmap_begin(struct ttmon_heatmap *map) _must_check;
void ttmon_heatmap_keep(struct ttmon_heatmap *map);
void ttmon_heatmap_drop(struct ttmon_heatmap *map);
/*
 * Adds copies and bytes at a time to the row that was begun. Bins are map->width_ns wide and start at
 * map->start_ns. When there are too many bins, all of them are made wider. Returns 0 or -ENOMEM.
 */
int ttmon_heatmap_put(struct ttmon_heatmap *map, uint64_t ts_ns, uint32_t copies, uint64_t bytes) _must_check;
/*
 * Makes one row for each group of pages of an allocation of this size, in order of offset. group_bytes
 * 0: the function chooses it. Returns 0 or -ENOMEM.
 */
int ttmon_heatmap_make_pages(struct ttmon_heatmap *map, uint64_t size, uint64_t group_bytes, uint64_t page_size,
			     uint64_t *ret_group) _must_check;
/*
 * Adds a copy of bytes at offset. The bytes are divided among the groups that it touches; each of them
 * counts one copy.
 */
int ttmon_heatmap_put_pages(struct ttmon_heatmap *map, uint64_t group_bytes, uint64_t ts_ns, uint64_t offset,
			    uint64_t bytes) _must_check;
/* Appends a checkpoint or gap to a list. Returns 0 or -ENOMEM. */
int ttmon_heatmap_add_mark(struct ttmon_heatmap_mark **list, size_t *nr, uint64_t from_ns, uint64_t to_ns,
			   const char *text) _must_check;
/*
 * Sorts the rows, and their bins by time, and makes map->order. Call it after the last bin was added.
 * Returns 0 or -ENOMEM.
 */
int ttmon_heatmap_sort(struct ttmon_heatmap *map, enum ttmon_heat_sort by, bool reverse) _must_check;
/*
 * What was before the last last_ns goes: rows that had ended, and what the others moved until then. A
 * piece of time that begins before is left out whole; the sums of such a row are lower bounds, as are
 * those of rows of which events were not kept. Before the sort.
 */
void ttmon_heatmap_keep_last(struct ttmon_heatmap *map, uint64_t last_ns);
/*
 * Rows of one call site, process and method become one. Its size is the most bytes that its rows had
 * live at one time, a lower bound in a live map: what had ended before is not known. Before the sort.
 * -ENOMEM.
 */
int ttmon_heatmap_group(struct ttmon_heatmap *map) _must_check;
/*
 * Computes the sum of each column. Nothing is lost to rounding: where the span covers whole bins, the
 * columns add up exactly to the bins.
 */
void ttmon_heatmap_cells(const struct ttmon_heatmap_row *r, const struct ttmon_heatmap_span *span, uint64_t *cells);
/* Computes the scale from the cells of all rows. */
void ttmon_heatmap_find_scale(const struct ttmon_heatmap *map, const struct ttmon_heatmap_span *span,
			      struct ttmon_heatmap_scale *ret);
unsigned int ttmon_heatmap_level(const struct ttmon_heatmap_scale *scale, uint64_t value);
/* Returns the column of a time, clamped to the span; and the first time of a column. */
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
		/* width of each part in columns; pid 0: left out. map: columns of the map, map_at: where it begins */
		map;
	unsigned int map_at, sums; /* sums: width of the columns MOVED and COPIES */
	unsigned int size, advice; /* widths; advice 0: no row has a verdict, or there is no room */
	bool utf8;
};
void ttmon_heat_fit(const struct ttmon_heatmap *map, unsigned int width, bool utf8, struct ttmon_heat_layout *ret);
/* Makes line 0 or 1 of the head; line 2 says what is missing, if anything is. */
void ttmon_heat_head(const struct ttmon_heatmap *map, const struct ttmon_heat_layout *l, unsigned int line,
		     struct ttmon_heat_line *ret);
/* Makes the line of column titles, with the times above the map. */
void ttmon_heat_columns(const struct ttmon_heatmap *map, const struct ttmon_heat_layout *l,
			const struct ttmon_heatmap_span *span, struct ttmon_heat_line *ret);
/* Makes the line that marks checkpoints and gaps; false: there are none in the span. */
bool ttmon_heat_marks(const struct ttmon_heatmap *map, const struct ttmon_heat_layout *l,
		      const struct ttmon_heatmap_span *span, struct ttmon_heat_line *ret);
void ttmon_heat_row(const struct ttmon_heatmap *map, const struct ttmon_heat_layout *l,
		    const struct ttmon_heatmap_span *span, const struct ttmon_heatmap_scale *scale, size_t row,
		    struct ttmon_heat_line *ret);
/* Makes line 0 or 1 of the legend. */
void ttmon_heat_legend(const struct ttmon_heatmap *map, const struct ttmon_heat_layout *l,
		       const struct ttmon_heatmap_span *span, const struct ttmon_heatmap_scale *scale,
		       unsigned int line, struct ttmon_heat_line *ret);
/* Makes the line with all details of a row. */
void ttmon_heat_details(const struct ttmon_heatmap *map, const struct ttmon_heat_layout *l, size_t row,
			struct ttmon_heat_line *ret);
/*
 * Returns the index of a level (1..TTMON_HEAT_LEVELS) in the palette of 256 colours, and of the
 * background.
 */
unsigned int ttmon_heat_colour(unsigned int level);
#define TTMON_HEAT_GROUND 234
/* Encodes one character as UTF-8, NUL-terminated. */
void ttmon_heat_utf8(uint32_t ch, char buf[5]);
/*
 * Prints a line. colour: with escape sequences for 256 colours. Blanks without colour at the end of
 * the line are left out.
 */
void ttmon_heat_print(FILE *f, const struct ttmon_heat_line *line, bool colour);

/* ---- the commands ---- */
struct ttmon_heat_ask {
	const char *db; /* path of the database; NULL: a running service */
	const char *socket;
	const char *id; /* id of the allocation whose pages are shown; NULL: show allocations */
	unsigned int sort, width, interval_ms;
	bool has_sort, reverse, all, by_site;
	uint64_t pid, lines, last_ms; /* pid 0: all processes */
};
/*
 * Makes the map, sorted. Errors go to stderr unless quiet. Returns 0; -ENOENT: no such allocation;
 * -EREMOTEIO; or an error of the reader. Free *ret with ttmon_heatmap_fini().
 */
int ttmon_heat_read(const struct ttmon_heat_ask *ask, bool quiet, struct ttmon_heatmap *ret) _must_check;
/* db.c */
int ttmon_heat_read_db(const struct ttmon_heat_ask *ask, struct ttmon_heatmap *map, char *why, size_t n) _must_check;
/* live.c */
int ttmon_heat_read_live(const struct ttmon_heat_ask *ask, struct ttmon_heatmap *map, char *why, size_t n) _must_check;
/*
 * Adds the documents of /v1/heat, /v1/allocations and /v1/allocations/ID to the map. Returns 0,
 * -EBADMSG or -ENOMEM.
 */
int ttmon_heat_take_allocs(struct ttmon_heatmap *map, const json_t *doc, const struct ttmon_heat_ask *ask) _must_check;
int ttmon_heat_take_heat(struct ttmon_heatmap *map, const json_t *doc, const struct ttmon_heat_ask *ask) _must_check;
int ttmon_heat_take_pages(struct ttmon_heatmap *map, const json_t *doc) _must_check;
/*
 * Takes the verdicts of the rows from the lines of /v1/advice. If several call sites have the same
 * name but different verdicts, a row of that name gets none.
 */
void ttmon_heat_take_advice(struct ttmon_heatmap *map, const char *text);
/* Returns whether a row's call site, process or id contains a text, in any case of ASCII letters. */
bool ttmon_heat_matches(const struct ttmon_heatmap_row *r, const char *text);
/* Returns the name of a method in at most six characters: state and API. */
const char *ttmon_heat_how(const struct ttmon_heatmap_row *r);
/* Returns whether the amount that was moved is not known at all. */
static inline bool ttmon_heat_is_unknown(const struct ttmon_heatmap_row *r)
{
	return r->at_least && !r->copies;
}
/* json.c: the map in `columns` columns. NULL: out of memory. */
json_t *ttmon_heat_json(const struct ttmon_heatmap *map, const struct ttmon_heatmap_span *span,
			uint64_t lines) _must_check;
/*
 * term.c: whether colours are enabled (NO_COLOR) and the terminal has 256; whether a screen can be
 * drawn on it.
 */
bool ttmon_heat_has_colours(void);
bool ttmon_heat_has_screen(void);
/* screen.c: the interactive screen, until q. Returns the exit status of the program. */
int ttmon_heat_screen(struct ttmon_heat_ask *ask);
/* The same inside another screen, until Escape or q; an error is shown on the screen. */
void ttmon_heat_inside(struct ttmon_heat_ask *ask);
/* Makes a span of the whole map, or of its last ask->last_ms, with this many columns. */
void ttmon_heat_span(const struct ttmon_heatmap *map, const struct ttmon_heat_ask *ask, unsigned int columns,
		     struct ttmon_heatmap_span *ret);

#endif
