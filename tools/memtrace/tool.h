/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tool.h: shared by the commands of `ttmon memtrace` that read traces: options (args.c), selection of
 * records (pick.c), reading with progress until the end or a signal (read.c), allocations (allocs.c),
 * text tables (table.c), and the outputs of a report: tables.c and parts.c as text, json.c as JSON;
 * columns.c defines the columns of all of them.
 *
 * All text of a trace comes from another process, so it is cleaned where it is printed. Each error is
 * one line on stderr that begins with "ttmon memtrace:".
 */
#ifndef TTMON_TOOLS_MT_TOOL_H
#define TTMON_TOOLS_MT_TOOL_H

#include <stdio.h>

#include "memtrace/analyse/an.h"
#include "memtrace/read/in.h"
#include "lib/base/fmt.h"
#include "lib/base/util.h"
#include "lib/os/cli.h"

/* ---- selection of records (pick.c) ---- */

/*
 * State of each launch or site of a dictionary: 0: not checked yet, 1: counts, 2: does not count, 3 (a
 * launch): depends on the site's name.
 */
struct ttmon_mt_known {
	uint8_t *of;
	size_t nr;
};

struct ttmon_mt_pick {
	/* fnmatch(3) pattern for the name, or for the result of ttmon_mt_short_name(); NULL: all */
	const char *kernel;
	const char *launches; /* as it was given, for messages */
	uint64_t first, last; /* ids of launches, if launches is given */
	/* fnmatch(3) pattern for the place as ttmon_mt_place_text() prints it, or for the opcode; NULL: all */
	const char *site;
	unsigned int spaces; /* 1 << enum ttmon_mt_space; 0: all. Global includes generic accesses of unknown space */
	struct ttmon_mt_known launch_is, site_is;
	const char *name; /* the last name compared, borrowed from the dictionary, and the result */
	bool has_name;
	uint64_t asked, taken; /* number of records checked, and of those that count */
	/* number of sums without a known launch: they do not count if launches are selected */
	uint64_t of_all_launches;
};

/* Parses "A-B", "A-", "-B" or "A". Returns false if it is not valid. */
bool ttmon_mt_pick_launches(struct ttmon_mt_pick *p, const char *text);
/* Parses "global,shared". Returns false if it is not valid. */
bool ttmon_mt_pick_spaces(struct ttmon_mt_pick *p, const char *text);
bool ttmon_mt_pick_is_all(const struct ttmon_mt_pick *p);
/*
 * Returns whether a launch is selected, independent of its records. A launch without a name matches
 * any kernel.
 */
bool ttmon_mt_pick_launch(struct ttmon_mt_pick *p, const struct ttmon_mt_launch *l);
/*
 * A callback for struct ttmon_mt_an_opts; ctx is the struct ttmon_mt_pick. Use each pick with one
 * dictionary only.
 */
bool ttmon_mt_pick_want(void *ctx, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec);
/* Copies the selected sums of the GPU to `to`, which has room for all. Returns their number. */
size_t ttmon_mt_pick_aggs(struct ttmon_mt_pick *p, const struct ttmon_mt_dict *dict, struct ttmon_mt_agg *to);
/*
 * Prints on stderr that no record was selected, if the trace had any. name: of the command; path: of
 * the trace.
 */
void ttmon_mt_pick_say(const struct ttmon_mt_pick *p, const char *name, const char *path);
void ttmon_mt_pick_fini(struct ttmon_mt_pick *p);

/* ---- options (args.c) ---- */

enum ttmon_mt_section {
	TTMON_MT_SHOW_SITES = 1 << 0,
	TTMON_MT_SHOW_LAUNCHES = 1 << 1,
	TTMON_MT_SHOW_KERNELS = 1 << 2,
	TTMON_MT_SHOW_BUFFERS = 1 << 3,
	TTMON_MT_SHOW_REUSE = 1 << 4,
	TTMON_MT_SHOW_HEAT = 1 << 5,
	TTMON_MT_SHOW_DIVERGENCE = 1 << 6,
};

/* The commands: each takes some of the options. */
enum ttmon_mt_command {
	TTMON_MT_REPORT = 1 << 0,
	TTMON_MT_PRINT = 1 << 1,
	TTMON_MT_CONVERT = 1 << 2,
	TTMON_MT_DIFF = 1 << 3,
	TTMON_MT_VIEW = 1 << 4,
};

struct ttmon_mt_args {
	const char *name;    /* "memtrace", "memtrace diff" */
	const char *path[2]; /* traces; "-": standard input; [1] is only for diff */
	struct ttmon_mt_pick pick;
	const char *opcodes;
	bool json, requested, all, pass;
	unsigned int csv;      /* a value of enum ttmon_mt_section, 0: no CSV */
	unsigned int sections; /* 0: the default sections */
	uint64_t lines;	       /* rows of a table; UINT64_MAX: all */
	bool has_lines;
	enum ttmon_mt_reuse reuse;
	const char *db, *socket;
	bool live;
	uint32_t pid;
	const char *out;
	bool order;
	uint64_t max_bytes;
	bool exit_code;
	bool plain;
};

#define TTMON_MT_OPTIONS 27
extern const struct ttmon_cli_opt ttmon_mt_options[TTMON_MT_OPTIONS]; /* .of: enum ttmon_mt_command */
extern const struct ttmon_mt_args ttmon_mt_defaults;
/* Members of a struct ttmon_cli_cmd: the options of a command. */
#define TTMON_MT_ARGS(command)                                                                                    \
	TTMON_CLI_OPTS(ttmon_mt_options),                                                                         \
		.is = (command), .defaults = &ttmon_mt_defaults, .size = sizeof(struct ttmon_mt_args),            \
		.min_words = (command) == TTMON_MT_DIFF ? 2 : 1, .max_words = (command) == TTMON_MT_DIFF ? 2 : 1, \
		.words = ":file"
/* Checks the paths and the combination of options. Returns 0, or -EINVAL after an error message. */
int ttmon_mt_args_check(const struct ttmon_cli *cli, struct ttmon_mt_args *a) _must_check;

/* ---- reading (read.c) ---- */

struct ttmon_mt_read {
	const struct ttmon_mt_args *args;
	const char *path;
	/* finds the space of a generic access from the allocation that its lanes lie in; may be NULL */
	struct ttmon_mt_map *map;
	bool bare; /* the output has no place to say what is missing in the trace: print one line on stderr */
	/* Takes some records, maybe none. -errno ends the reading and is returned; take() has reported it. */
	int (*take)(void *ctx, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *recs, size_t n);
	/* Called about once a second in place of the progress line; may be NULL. */
	void (*tick)(void *ctx, const struct ttmon_mt_in *in);
	/* Called before an error is printed, to leave the screen; may be NULL. */
	void (*leave)(void *ctx);
	void *ctx;
};
/*
 * Reads the trace to its end, or to the first SIGINT, SIGTERM or SIGHUP. Shows the progress if stderr
 * is a terminal. Returns 0, or -errno of what ended the reading (reported), or of take(). *ret: the
 * reader, for the contents read; NULL if opening failed, or if an error came before anything else.
 * *interrupted: a signal ended the reading.
 */
int ttmon_mt_read_trace(const struct ttmon_mt_read *r, struct ttmon_mt_in **ret, bool *interrupted) _must_check;

/* ---- allocations (allocs.c) ---- */

/*
 * Reads the allocations of --db or --live, or of args->path[0] if that is a list of traces that has
 * allocations; *ret is NULL if there are none. Returns 0, or -errno after an error message.
 */
int ttmon_mt_allocs(const struct ttmon_mt_args *args, struct ttmon_mt_map **ret) _must_check;

/*
 * Writes the source of the allocations to buf, cleaned: "database x.ttmon", "the running service",
 * "copies in kernelslist.g".
 */
const char *ttmon_mt_allocs_from(const struct ttmon_mt_args *args, char *buf, size_t n);

/* ---- text (table.c) ---- */

#define TTMON_MT_GRID_COLS 16 /* the most columns */

struct ttmon_mt_grid {
	const char *const *
		/*
		 * titles of the columns; '<' at the start aligns to the left; the last column takes the rest of the
		 * line
		 */
		heads;
	unsigned int cols;
	char **cells; /* owned */
	size_t nr, cap;
	bool failed; /* memory ran out: the output says so after what there is */
};
void ttmon_mt_grid_put(struct ttmon_mt_grid *t, const char *fmt, ...) _printf_(2, 3);
/*
 * Prints the table and frees its cells. width: columns of the terminal, 0: nothing is cut. Columns
 * that do not fit are left out, the later ones first, and a line below the table names them.
 */
void ttmon_mt_grid_print(struct ttmon_mt_grid *t, FILE *out, size_t width);
/*
 * Prints text wrapped at spaces to width (0: not wrapped), with `indent` spaces before each line but
 * the first. at: the column where the first line begins.
 */
void ttmon_mt_wrap(FILE *out, const char *text, size_t at, size_t indent, size_t width);
/* Prints a title such as "SITES of global memory" after an empty line, its first word in colour. */
void ttmon_mt_title(FILE *out, const char *text, size_t width);
/*
 * Returns a kernel's name without return type and parameters, cleaned; "?" if there is none. The
 * caller frees it; NULL: out of memory.
 */
char *ttmon_mt_short_name(const char *kernel);
/*
 * Writes the place of an instruction to buf, cleaned: "file.cu:12", "+0x120", "line 40 of the PTX", or
 * "".
 */
const char *ttmon_mt_place_text(const struct ttmon_mt_site *s, char *buf, size_t n);
/* Formats "12.5%"; "-" if it is not known (negative). */
const char *ttmon_mt_percent(char *buf, size_t n, double share);
/* Formats a / b with two decimals; "-" if b is 0. */
const char *ttmon_mt_per(char *buf, size_t n, uint64_t a, uint64_t b);

/* ---- a report ---- */

struct ttmon_mt_report {
	const struct ttmon_mt_args *args;
	const char *path;
	const struct ttmon_mt_dict *dict;
	const struct ttmon_mt_stats *stats;
	const struct ttmon_mt_map *map; /* may be NULL */
	struct ttmon_mt_an *an;
	bool interrupted;
	int err; /* error that ended the reading, or 0 */
	/* Sorted rows, the worst or most costly first. */
	const struct ttmon_mt_site_row **sites;
	const struct ttmon_mt_launch_row **launches;
	const struct ttmon_mt_kernel_row **kernels;
	const struct ttmon_mt_buffer_row **buffers;
	size_t nr_sites, nr_launches, nr_kernels, nr_buffers;
	const struct ttmon_mt_finding *findings;
	size_t nr_findings;
};
/* Makes the sorted rows from an and dict. Returns 0 or -ENOMEM. Only the rows are freed by _fini. */
int ttmon_mt_report_sort(struct ttmon_mt_report *r) _must_check;
void ttmon_mt_report_fini(struct ttmon_mt_report *r);
/* Compares rows: negative if a has larger possible savings than b. */
int ttmon_mt_row_order(const struct ttmon_mt_site_row *a, const struct ttmon_mt_site_row *b);
/* Returns the site of a row; for the row "others" a site that says so. */
const struct ttmon_mt_site *ttmon_mt_row_site(const struct ttmon_mt_dict *dict, const struct ttmon_mt_site_row *row);

/*
 * report.c: reads args->path[0], analyses it and calls show, which returns 0, or -errno after an error
 * message; NULL: prints what `ttmon memtrace` prints. Returns the exit status: TTMON_EXIT_NO if the
 * trace could not be read to its end.
 */
int ttmon_mt_report_run(struct ttmon_mt_args *args, int (*show)(const struct ttmon_mt_report *r)) _must_check;

/* Prints what `ttmon memtrace` prints. The rows must be sorted. */
void ttmon_mt_report_print(const struct ttmon_mt_report *r, FILE *out, size_t width);

/* table.c: prints the title of a table of n rows, sorted by `order`; returns how many rows to show. */
size_t ttmon_mt_rows(const struct ttmon_mt_report *r, FILE *out, size_t width, const char *title, const char *order,
		     size_t n);
/* sites.c, tables.c, buffers.c: print tables; width 0: nothing is cut. */
void ttmon_mt_sites(const struct ttmon_mt_report *r, FILE *out, size_t width);
/* Prints the worst instructions of each of the first n buffers. */
void ttmon_mt_sites_of_buffers(const struct ttmon_mt_report *r, size_t n, FILE *out, size_t width);
void ttmon_mt_launches(const struct ttmon_mt_report *r, FILE *out, size_t width);
void ttmon_mt_kernels(const struct ttmon_mt_report *r, FILE *out, size_t width);
void ttmon_mt_buffers(const struct ttmon_mt_report *r, FILE *out, size_t width);
/*
 * tables.c: prints a table of rows of one kind with the columns of these names (columns.h). rows: n
 * pointers to them.
 */
void ttmon_mt_put_table(const struct ttmon_mt_report *r, enum ttmon_mt_section what, const void *rows, size_t n,
			const char *const *names, FILE *out, size_t width);
/*
 * columns.c: formats the place of an instruction: "file.cu:12 x4  kernel"; nr: number of instructions
 * of that line. The caller frees it; NULL: out of memory.
 */
char *ttmon_mt_where(const struct ttmon_mt_site *s, uint32_t nr);
/* Returns the allocation of a buffer; NULL: not known. */
const struct ttmon_mt_alloc *ttmon_mt_buffer_alloc(const struct ttmon_mt_report *r,
						   const struct ttmon_mt_buffer_row *b);
/* Writes the name of a buffer, or its address, to buf, cleaned. */
const char *ttmon_mt_buffer_label(const struct ttmon_mt_report *r, const struct ttmon_mt_buffer_row *b, char *buf,
				  size_t n);
/* Returns how kernels use it: "RO", "WO", "RW"; "?": not completely known. */
const char *ttmon_mt_buffer_use(const struct ttmon_mt_buffer_row *b);
/* divergence.c: prints requests by lanes, sectors, lines, pages and wavefronts. */
void ttmon_mt_divergence(const struct ttmon_mt_report *r, FILE *out, size_t width);
/* parts.c: sums of global and local memory; the source and what is missing; findings; reuse; heat. */
void ttmon_mt_memory(const struct ttmon_mt_an *an, struct ttmon_mt_sums *ret);
/*
 * Returns whether there are sums of the GPU without distinct bytes, as in older files. The efficiency
 * is that of requested bytes then.
 */
bool ttmon_mt_plain(const struct ttmon_mt_dict *d);
void ttmon_mt_head(const struct ttmon_mt_report *r, FILE *out, size_t width);
void ttmon_mt_findings(const struct ttmon_mt_report *r, FILE *out, size_t width);
void ttmon_mt_show_reuse(const struct ttmon_mt_report *r, FILE *out, size_t width);
void ttmon_mt_show_heat(const struct ttmon_mt_report *r, FILE *out, size_t width);
/* json.c. Returns 0 or -errno of the write. */
int ttmon_mt_json(const struct ttmon_mt_report *r, int fd) _must_check;

struct ttmon_jsonw;
/*
 * These write members of the open object: a figure with three decimals (null if negative); the source
 * and sums, in the form that two documents share.
 */
void ttmon_mt_json_figure(struct ttmon_jsonw *w, const char *key, double value);
void ttmon_mt_json_sums(struct ttmon_jsonw *w, const struct ttmon_mt_sums *s, bool requested);
/* Writes the total sums; their efficiency is that of global and local memory. */
void ttmon_mt_json_total(struct ttmon_jsonw *w, const struct ttmon_mt_an *an, bool requested);
void ttmon_mt_json_source(struct ttmon_jsonw *w, const char *path, const struct ttmon_mt_stats *st);

/* ---- kernels that are not in a trace (missing.c) ---- */

/*
 * Reports kernels that are missing in the trace, or in some of its launches; returns their number.
 * Calls out with one cleaned line for each reason (NULL: no output); kernels that were not selected
 * are only counted. each: a line for each kernel.
 */
size_t ttmon_mt_missing(const struct ttmon_mt_dict *d, bool each, void (*out)(void *ctx, const char *text), void *ctx);

/* ---- lines of NVBit's format (lines.c) ---- */

struct ttmon_mt_lines {
	int fd;
	int err; /* first error of write(2), as -errno: nothing is written after it */
	size_t len;
	char **opcodes; /* [site * spaces * widths]: opcodes printed in place of the site's own text */
	size_t nr_opcodes;
	char *buf;
};
int ttmon_mt_lines_init(struct ttmon_mt_lines *l, int fd) _must_check; /* returns 0 or -ENOMEM */
void ttmon_mt_lines_launch(struct ttmon_mt_lines *l, const struct ttmon_mt_launch *launch);
void ttmon_mt_lines_rec(struct ttmon_mt_lines *l, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec);
int ttmon_mt_lines_flush(struct ttmon_mt_lines *l) _must_check;
void ttmon_mt_lines_fini(struct ttmon_mt_lines *l);

#endif
