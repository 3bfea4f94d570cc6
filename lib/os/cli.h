/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cli.h: a command line from tables. A command is a struct ttmon_cli_cmd, an option of it a row.
 * Parsing, --help, the option list of the manual page (--help=man) and completion in the shell
 * (--help=complete WORDS) come from the rows.
 */
#ifndef TTMON_CLI_H
#define TTMON_CLI_H

#include "lib/base/util.h"

#define TTMON_CLI_MISUSE 2 /* exit status: the command line is wrong, said why */

struct ttmon_cli;

enum ttmon_cli_kind {
	TTMON_CLI_KIND_SET,	 /* bool, unsigned int or enum: becomes max */
	TTMON_CLI_KIND_BITS,	 /* unsigned int: the bits of max are set */
	TTMON_CLI_KIND_TEXT,	 /* const char *: the argument, which lives as long as argv */
	TTMON_CLI_KIND_NUMBER,	 /* integer of 4 or 8 bytes, min to max */
	TTMON_CLI_KIND_SIZE,	 /* the same; K, M, G or T may follow the digits */
	TTMON_CLI_KIND_FRACTION, /* the same, times scale, rounded; min and max are of the result; scale 0: a double */
	TTMON_CLI_KIND_WORD,	 /* unsigned int or bool: which of the words it is, from min */
	TTMON_CLI_KIND_CALL,	 /* take() is called */
};

struct ttmon_cli_opt {
	const char *name;
	char letter;	  /* 0: none */
	const char *arg;  /* NULL: takes none; "=HOW": may be left out, and is given as --name=HOW alone */
	const char *help; /* of --help; more lines follow a newline */
	const char *man;  /* more, for the manual page; NULL */
	enum ttmon_cli_kind kind;
	bool rare;	 /* by --help=all, in the manual page and by completion only */
	unsigned int of; /* commands that share rows: an option of those with one of these bits in .is; 0: of all */
	size_t at, size; /* where its field is in the options, and its bytes */
	size_t given;	 /* 1 + where a bool is that becomes true when the option is given; 0: none */
	uint64_t min, max;
	double scale;
	const char *words; /* what it can be, with a space between; ":file", ":dir" and ":pid" of completion alone */
	/* arg NULL: left out. 0; 1: done, the program ends with 0; -errno: said why. */
	int (*take)(struct ttmon_cli *cli, const char *arg);
};

/* What follows the help of a row; T: the type of the options. */
#define TTMON_CLI_AT(T, m)	     .at = offsetof(T, m), .size = sizeof(((T *)0)->m)
#define TTMON_CLI_SET(T, m, v)	     .kind = TTMON_CLI_KIND_SET, .max = (v), TTMON_CLI_AT(T, m)
#define TTMON_CLI_FLAG(T, m)	     TTMON_CLI_SET(T, m, true)
#define TTMON_CLI_BITS(T, m, b)	     .kind = TTMON_CLI_KIND_BITS, .max = (b), TTMON_CLI_AT(T, m)
#define TTMON_CLI_TEXT(T, m, w)	     .kind = TTMON_CLI_KIND_TEXT, .words = (w), TTMON_CLI_AT(T, m)
#define TTMON_CLI_NUMBER(T, m, a, b) .kind = TTMON_CLI_KIND_NUMBER, .min = (a), .max = (b), TTMON_CLI_AT(T, m)
#define TTMON_CLI_SIZE(T, m, a, b)   .kind = TTMON_CLI_KIND_SIZE, .min = (a), .max = (b), TTMON_CLI_AT(T, m)
#define TTMON_CLI_FRACTION(T, m, s, a, b) \
	.kind = TTMON_CLI_KIND_FRACTION, .scale = (s), .min = (a), .max = (b), TTMON_CLI_AT(T, m)
#define TTMON_CLI_WORD(T, m, w) .kind = TTMON_CLI_KIND_WORD, .words = (w), TTMON_CLI_AT(T, m)
#define TTMON_CLI_CALL(fn)	.kind = TTMON_CLI_KIND_CALL, .take = (fn)
#define TTMON_CLI_GIVEN(T, m)	.given = 1 + offsetof(T, m)
#define TTMON_CLI_PID(T, m)	TTMON_CLI_NUMBER(T, m, 1, INT32_MAX), .words = ":pid"
/* Of a group alone, whose commands read it. */
#define TTMON_CLI_PASSED .kind = TTMON_CLI_KIND_CALL

struct ttmon_cli_cmd {
	const char *name;	   /* as it is typed: "ttmon memtrace diff" */
	const char *summary;	   /* one line in the list of the group's commands */
	const char *args;	   /* what follows the name in the usage; a newline begins another form */
	const char *about, *notes; /* before and after the options; NULL */
	const struct ttmon_cli_opt *opts;
	size_t nr_opts;
	unsigned int is;      /* see .of of an option */
	const void *defaults; /* of the options, size bytes; NULL: zeros */
	size_t size;
	int min_words, max_words; /* how many words follow the options; max_words -1: any number */
	const char *words;	  /* what these can be, as of an option */
	bool logs;		  /* what is wrong is told to the log: a daemon */
	bool stops;		  /* options end at the first word: what follows is a command with options of its own */
	const struct ttmon_cli_cmd *const *subs; /* its commands, up to a NULL; NULL: none */
	/* --help=NAME writes something of the program's own; NULL. */
	const char *more_name;
	void (*more)(FILE *f);
	/* The exit status, or -errno where the command line is wrong, said why. NULL: a group alone. */
	int (*run)(const struct ttmon_cli *cli, void *opts);
};
#define TTMON_CLI_OPTS(rows) .opts = (rows), .nr_opts = ARRAY_SIZE(rows)

/* A command line that is read. */
struct ttmon_cli {
	const struct ttmon_cli_cmd *cmd;
	const struct ttmon_cli_opt *opt; /* in take(): the row */
	void *opts;
	char **words; /* what is no option */
	int nr_words;
	bool dashes; /* "--" stands before the words */
};

/*
 * The command and its commands: reads argv and runs. argv[0] is of no meaning. The exit status: of
 * run(), 0 after --help, TTMON_CLI_MISUSE where the command line is wrong, said why in one line.
 */
int ttmon_cli_run(const struct ttmon_cli_cmd *cmd, int argc, char **argv) _must_check;
/*
 * One command's line alone, into opts, of cmd->size bytes. 0; 1: --help was shown; -EINVAL: it is
 * wrong, said why.
 */
int ttmon_cli_parse(const struct ttmon_cli_cmd *cmd, int argc, char **argv, void *opts,
		    struct ttmon_cli *ret) _must_check;
/*
 * Says on stderr, with the command's name before it and where help is behind it, what is wrong.
 * -EINVAL.
 */
int ttmon_cli_bad(const struct ttmon_cli *cli, const char *fmt, ...) _printf_(2, 3);

/*
 * The same of a word that is none of words (separated by a space; ":file" and the like are left out):
 * "no such WHAT: word", with the one that it is near to, or all of them. -EINVAL.
 */
int ttmon_cli_bad_word(const struct ttmon_cli *cli, const char *what, const char *word, const char *words);

/* clidoc.c: --help=HOW, how NULL: --help. */
void ttmon_cli_help(const struct ttmon_cli_cmd *cmd, const char *how, FILE *f);
/*
 * What the last of the words can become, a line each: WORD, a tab, what it is; or ":file", ":dir",
 * ":command N": from word N on.
 */
void ttmon_cli_complete(const struct ttmon_cli_cmd *cmd, int n, char **words);
/*
 * Row i of a command, --help behind the others; NULL past the end. Rows of other commands are left
 * out.
 */
const struct ttmon_cli_opt *ttmon_cli_row(const struct ttmon_cli_cmd *cmd, size_t *i);

#endif
