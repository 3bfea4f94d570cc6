/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tool.h: what the commands of `ttmon memtrace` that read traces have in common: their options
 * (args.c), which records count (pick.c), reading with progress until the end or a signal (read.c),
 * allocations (allocs.c), text (table.c), and the forms of a report: tables.c and parts.c for people,
 * json.c for programs; columns.c has the columns of all of them.
 *
 * All text of a trace is another process's: it is cleaned where it is printed. An error is one line on
 * stderr, which begins with "ttmon memtrace:".
 */
#ifndef TTMON_TOOLS_MT_TOOL_H
#define TTMON_TOOLS_MT_TOOL_H

#include <stdio.h>

#include "memtrace/analyse/an.h"
#include "memtrace/read/in.h"
#include "lib/base/fmt.h"
#include "lib/base/util.h"
#include "lib/os/cli.h"

/* ---- which records count (pick.c) ---- */

/*
 * Each launch or site of a dictionary is: 0 not looked at yet, 1 counted, 2 not, 3 (a launch) by its
 * site's name.
 */
struct ttmon_mt_known {
	uint8_t *of;
	size_t nr;
};

struct ttmon_mt_pick {
	const char *kernel;   /* fnmatch(3) on the name, or on what ttmon_mt_short_name() makes of it; NULL: all */
	const char *launches; /* as it was given, for who wants to say it */
	uint64_t first, last; /* ids of launches, where launches is given */
	const char *site; /* fnmatch(3) on the place as ttmon_mt_place_text() prints it, or on the opcode; NULL: all */
	unsigned int
		spaces; /* 1 << enum ttmon_mt_space; 0: all. Global ones: also generic ones of which it is not known where they are */
	struct ttmon_mt_known launch_is, site_is;
	const char *name; /* the last one that was compared, of the dictionary, and how that ended */
	bool has_name;
	uint64_t asked, taken;	  /* records that were looked at, and of these those that count */
	uint64_t of_all_launches; /* sums that no launch is known of, where launches are chosen: they do not count */
};

/* "A-B", "A-", "-B" or "A". */
bool ttmon_mt_pick_launches(struct ttmon_mt_pick *p, const char *text);
/* "global,shared". */
bool ttmon_mt_pick_spaces(struct ttmon_mt_pick *p, const char *text);
bool ttmon_mt_pick_is_all(const struct ttmon_mt_pick *p);
/* Does a launch count, whatever its records? A launch without a name is one of any kernel. */
bool ttmon_mt_pick_launch(struct ttmon_mt_pick *p, const struct ttmon_mt_launch *l);
/*
 * As struct ttmon_mt_an_opts wants it; ctx is the struct ttmon_mt_pick. One dictionary for each pick.
 */
bool ttmon_mt_pick_want(void *ctx, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec);
/* The sums of the GPU that are wanted, into to, which has room for all. Returns how many. */
size_t ttmon_mt_pick_aggs(struct ttmon_mt_pick *p, const struct ttmon_mt_dict *dict, struct ttmon_mt_agg *to);
/*
 * Says on stderr that no record was one of those that are to count, where there were any. name: of the
 * command; path: of the trace.
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

/* Which command: each takes some of the options. */
enum ttmon_mt_command {
	TTMON_MT_REPORT = 1 << 0,
	TTMON_MT_PRINT = 1 << 1,
	TTMON_MT_CONVERT = 1 << 2,
	TTMON_MT_DIFF = 1 << 3,
	TTMON_MT_VIEW = 1 << 4,
};

struct ttmon_mt_args {
	const char *name;    /* "memtrace", "memtrace diff" */
	const char *path[2]; /* traces; "-": standard input; [1]: of diff alone */
	struct ttmon_mt_pick pick;
	const char *opcodes;
	bool json, requested, all, pass;
	unsigned int csv;      /* one of enum ttmon_mt_section, 0: none */
	unsigned int sections; /* 0: the usual ones */
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
/* Of a struct ttmon_cli_cmd: the options of that command. */
#define TTMON_MT_ARGS(command)                                                                                    \
	TTMON_CLI_OPTS(ttmon_mt_options),                                                                         \
		.is = (command), .defaults = &ttmon_mt_defaults, .size = sizeof(struct ttmon_mt_args),            \
		.min_words = (command) == TTMON_MT_DIFF ? 2 : 1, .max_words = (command) == TTMON_MT_DIFF ? 2 : 1, \
		.words = ":file"
/* Name, paths, and what does not go together. -EINVAL: said why. */
int ttmon_mt_args_check(const struct ttmon_cli *cli, struct ttmon_mt_args *a) _must_check;

/* ---- reading (read.c) ---- */

struct ttmon_mt_read {
	const struct ttmon_mt_args *args;
	const char *path;
	struct ttmon_mt_map *map; /* lanes that were on lie in one of its allocations, where nothing else tells; NULL */
	bool bare; /* what is printed has no place for what is missing in the trace: one line on stderr says it */
	/*
	 * Some records, maybe none; -errno ends it and is returned; what is to be said about it has been said.
	 */
	int (*take)(void *ctx, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *recs, size_t n);
	/* About once a second, instead of a progress line; NULL. */
	void (*tick)(void *ctx, const struct ttmon_mt_in *in);
	/* Before an error is said: gives back a screen; NULL. */
	void (*leave)(void *ctx);
	void *ctx;
};
/*
 * Reads all of it, or to the first SIGINT, SIGTERM or SIGHUP. On stderr, if that is a terminal, how
 * far it is. 0, or -errno of what ended it (said), or of take(). *ret: what was opened, for what is in
 * it: NULL where that failed, or where an error came before anything else. *interrupted: by a signal.
 */
int ttmon_mt_read_trace(const struct ttmon_mt_read *r, struct ttmon_mt_in **ret, bool *interrupted) _must_check;

/* ---- allocations (allocs.c) ---- */

/*
 * Those of --db or --live, else of args->path[0] if that is a list of traces that tells of memory;
 * NULL where there are none. -errno, said.
 */
int ttmon_mt_allocs(const struct ttmon_mt_args *args, struct ttmon_mt_map **ret) _must_check;

/*
 * "database x.ttmon", "the running service", "copies in kernelslist.g": where they come from, clean,
 * into buf.
 */
const char *ttmon_mt_allocs_from(const struct ttmon_mt_args *args, char *buf, size_t n);

/* ---- text (table.c) ---- */

#define TTMON_MT_GRID_COLS 16 /* at most */

struct ttmon_mt_grid {
	const char *const *
		heads; /* of the columns; one that begins with '<' is left-aligned; the last one takes the rest of the line */
	unsigned int cols;
	char **cells; /* owned */
	size_t nr, cap;
	bool failed; /* out of memory: it prints what it has, and says so */
};
void ttmon_mt_grid_put(struct ttmon_mt_grid *t, const char *fmt, ...) _printf_(2, 3);
/*
 * width: columns of the terminal, 0: nothing is cut. Columns that have no room take a second line.
 * Frees the cells.
 */
void ttmon_mt_grid_print(struct ttmon_mt_grid *t, FILE *out, size_t width);
/*
 * Text with `indent` blanks before each line but the first; broken at blanks at width, 0: nowhere. at:
 * where the first line stands.
 */
void ttmon_mt_wrap(FILE *out, const char *text, size_t at, size_t indent, size_t width);
/* "SITES of global memory", the first word in colour, a line before it. */
void ttmon_mt_title(FILE *out, const char *text, size_t width);
/*
 * A kernel's name without return type and parameters, cleaned; "?" where there is none. To be freed;
 * NULL: out of memory.
 */
char *ttmon_mt_short_name(const char *kernel);
/* Where an instruction is: "file.cu:12", "+0x120", "line 40 of the PTX", "": into buf, cleaned. */
const char *ttmon_mt_place_text(const struct ttmon_mt_site *s, char *buf, size_t n);
/* "12.5%", "-" where it is not known (less than 0). */
const char *ttmon_mt_percent(char *buf, size_t n, double share);
/* a / b with two decimals, "-" where b is 0. */
const char *ttmon_mt_per(char *buf, size_t n, uint64_t a, uint64_t b);

/* ---- a report ---- */

struct ttmon_mt_report {
	const struct ttmon_mt_args *args;
	const char *path;
	const struct ttmon_mt_dict *dict;
	const struct ttmon_mt_stats *stats;
	const struct ttmon_mt_map *map; /* NULL */
	struct ttmon_mt_an *an;
	bool interrupted;
	int err; /* what ended the reading; 0 */
	/* Rows, worst or biggest first. */
	const struct ttmon_mt_site_row **sites;
	const struct ttmon_mt_launch_row **launches;
	const struct ttmon_mt_kernel_row **kernels;
	const struct ttmon_mt_buffer_row **buffers;
	size_t nr_sites, nr_launches, nr_kernels, nr_buffers;
	const struct ttmon_mt_finding *findings;
	size_t nr_findings;
};
/* Fills in the rows from an, dict; -ENOMEM. _fini frees these alone. */
int ttmon_mt_report_sort(struct ttmon_mt_report *r) _must_check;
void ttmon_mt_report_fini(struct ttmon_mt_report *r);
/* Less than 0: more could be saved at a than at b. */
int ttmon_mt_row_order(const struct ttmon_mt_site_row *a, const struct ttmon_mt_site_row *b);
/* The site of a row; of "others" one that says so. */
const struct ttmon_mt_site *ttmon_mt_row_site(const struct ttmon_mt_dict *dict, const struct ttmon_mt_site_row *row);

/*
 * report.c: reads args->path[0], analyses it and has it shown: show says what went wrong there, and
 * returns -errno; NULL: what `ttmon memtrace` prints. The exit status: TTMON_EXIT_NO where the trace
 * could not be read to its end.
 */
int ttmon_mt_report_run(struct ttmon_mt_args *args, int (*show)(const struct ttmon_mt_report *r)) _must_check;

/* What `ttmon memtrace` prints, of rows that are sorted. */
void ttmon_mt_report_print(const struct ttmon_mt_report *r, FILE *out, size_t width);

/* table.c: title of a table of n rows, worst first by `order`; how many of them are shown. */
size_t ttmon_mt_rows(const struct ttmon_mt_report *r, FILE *out, size_t width, const char *title, const char *order,
		     size_t n);
/* sites.c, tables.c, buffers.c: tables; width 0: nothing is cut. */
void ttmon_mt_sites(const struct ttmon_mt_report *r, FILE *out, size_t width);
/* The worst instructions of each of the first n buffers. */
void ttmon_mt_sites_of_buffers(const struct ttmon_mt_report *r, size_t n, FILE *out, size_t width);
void ttmon_mt_launches(const struct ttmon_mt_report *r, FILE *out, size_t width);
void ttmon_mt_kernels(const struct ttmon_mt_report *r, FILE *out, size_t width);
void ttmon_mt_buffers(const struct ttmon_mt_report *r, FILE *out, size_t width);
/*
 * tables.c: rows of one kind as a table with the columns of these names (columns.h). rows: n pointers
 * to them.
 */
void ttmon_mt_put_table(const struct ttmon_mt_report *r, enum ttmon_mt_section what, const void *rows, size_t n,
			const char *const *names, FILE *out, size_t width);
/* columns.c: "file.cu:12 x4  kernel": where an instruction is; nr: how many of that line. To be freed; NULL: no memory. */
char *ttmon_mt_where(const struct ttmon_mt_site *s, uint32_t nr);
/* The allocation that a buffer is; NULL: not known. */
const struct ttmon_mt_alloc *ttmon_mt_buffer_alloc(const struct ttmon_mt_report *r,
						   const struct ttmon_mt_buffer_row *b);
/* The name of a buffer, or its address: into buf, clean. */
const char *ttmon_mt_buffer_label(const struct ttmon_mt_report *r, const struct ttmon_mt_buffer_row *b, char *buf,
				  size_t n);
/* What kernels do to it: "RO", "WO", "RW"; "?": not all of that is known. */
const char *ttmon_mt_buffer_use(const struct ttmon_mt_buffer_row *b);
/* divergence.c: requests by lanes, sectors, lines, pages and wavefronts. */
void ttmon_mt_divergence(const struct ttmon_mt_report *r, FILE *out, size_t width);
/* parts.c: sums of global and local memory; what it is, what is missing; findings; reuse; heat. */
void ttmon_mt_memory(const struct ttmon_mt_an *an, struct ttmon_mt_sums *ret);
/*
 * Are there sums of the GPU without distinct bytes, as older files have them? An efficiency is of
 * requested ones then.
 */
bool ttmon_mt_plain(const struct ttmon_mt_dict *d);
void ttmon_mt_head(const struct ttmon_mt_report *r, FILE *out, size_t width);
void ttmon_mt_findings(const struct ttmon_mt_report *r, FILE *out, size_t width);
void ttmon_mt_show_reuse(const struct ttmon_mt_report *r, FILE *out, size_t width);
void ttmon_mt_show_heat(const struct ttmon_mt_report *r, FILE *out, size_t width);
/* json.c. -errno of writing. */
int ttmon_mt_json(const struct ttmon_mt_report *r, int fd) _must_check;

struct ttmon_jsonw;
/*
 * Members of the object that is open: a figure with three decimals, null below 0; what two documents
 * say of a source and of sums.
 */
void ttmon_mt_json_figure(struct ttmon_jsonw *w, const char *key, double value);
void ttmon_mt_json_sums(struct ttmon_jsonw *w, const struct ttmon_mt_sums *s, bool requested);
/* The sums of all; their efficiency is that of global and local memory. */
void ttmon_mt_json_total(struct ttmon_jsonw *w, const struct ttmon_mt_an *an, bool requested);
void ttmon_mt_json_source(struct ttmon_jsonw *w, const char *path, const struct ttmon_mt_stats *st);

/* ---- kernels that are not in a trace (missing.c) ---- */

/*
 * Kernels that are not in the trace, or not with all their launches; returns how many. Each reason is
 * one line, clean, for out (NULL: none is said); what was not selected is counted alone. each: a line
 * for each kernel.
 */
size_t ttmon_mt_missing(const struct ttmon_mt_dict *d, bool each, void (*out)(void *ctx, const char *text), void *ctx);

/* ---- lines of NVBit's form (lines.c) ---- */

struct ttmon_mt_lines {
	int fd;
	int err; /* the first one of write(2), -errno: from then on nothing is written */
	size_t len;
	char **opcodes; /* [site * spaces * widths]: what is printed, where that is not the site's own text */
	size_t nr_opcodes;
	char *buf;
};
int ttmon_mt_lines_init(struct ttmon_mt_lines *l, int fd) _must_check; /* -ENOMEM */
void ttmon_mt_lines_launch(struct ttmon_mt_lines *l, const struct ttmon_mt_launch *launch);
void ttmon_mt_lines_rec(struct ttmon_mt_lines *l, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec);
int ttmon_mt_lines_flush(struct ttmon_mt_lines *l) _must_check;
void ttmon_mt_lines_fini(struct ttmon_mt_lines *l);

#endif
