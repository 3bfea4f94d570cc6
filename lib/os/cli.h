/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cli.h: command lines defined by tables. A command is a struct ttmon_cli_cmd, each of its options is
 * a row. Parsing, --help, the option list of the manual page (--help=man) and shell completion
 * (--help=complete WORDS) are all generated from the rows.
 */
#ifndef TTMON_CLI_H
#define TTMON_CLI_H

#include "lib/base/util.h"

#define TTMON_CLI_MISUSE 2 /* exit status: the command line is wrong, which a message has said */

struct ttmon_cli;

enum ttmon_cli_kind {
	TTMON_CLI_KIND_SET,    /* bool, unsigned int or enum: is set to max */
	TTMON_CLI_KIND_BITS,   /* unsigned int: the bits of max are set */
	TTMON_CLI_KIND_TEXT,   /* const char *: the argument, valid as long as argv */
	TTMON_CLI_KIND_NUMBER, /* integer of 4 or 8 bytes, min to max */
	TTMON_CLI_KIND_SIZE,   /* the same; K, M, G or T may follow the digits */
	/* the same, multiplied by scale and rounded; min and max limit the result; scale 0: a double */
	TTMON_CLI_KIND_FRACTION,
	TTMON_CLI_KIND_WORD, /* unsigned int or bool: min + the index of the word in words */
	TTMON_CLI_KIND_CALL, /* take() is called */
};

struct ttmon_cli_opt {
	const char *name;
	char letter;	  /* short option; 0: none */
	const char *arg;  /* name of the argument; NULL: no argument; "=HOW": optional, only as --name=HOW */
	const char *help; /* text of --help; a newline begins another line */
	const char *man;  /* more text for the manual page; may be NULL */
	enum ttmon_cli_kind kind;
	bool rare; /* only shown by --help=all, in the manual page and by completion */
	/* if commands share rows: the option belongs to commands with one of these bits in .is; 0: to all */
	unsigned int of;
	size_t at, size; /* offset and size of its field in the options */
	size_t given;	 /* 1 + offset of a bool that is set when the option is given; 0: none */
	uint64_t min, max;
	double scale;
	/* possible values separated by spaces; ":file", ":dir" and ":pid" are only for completion */
	const char *words;
	/*
	 * arg NULL: no argument was given. Returns 0; 1: done, the program exits with 0; -errno after an error
	 * message.
	 */
	int (*take)(struct ttmon_cli *cli, const char *arg);
};

/* These macros follow the help text of a row; T: type of the options. */
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
/* For options of a group whose commands read them. */
#define TTMON_CLI_PASSED .kind = TTMON_CLI_KIND_CALL

struct ttmon_cli_cmd {
	const char *name;	   /* as the user types it: "ttmon memtrace diff" */
	const char *summary;	   /* one line in the list of the group's commands */
	const char *args;	   /* what follows the name in the usage; a newline begins another usage line */
	const char *about, *notes; /* text before and after the options; may be NULL */
	const struct ttmon_cli_opt *opts;
	size_t nr_opts;
	unsigned int is;      /* see .of of struct ttmon_cli_opt */
	const void *defaults; /* initial value of the options, size bytes; NULL: zeros */
	size_t size;
	int min_words, max_words; /* number of words after the options; max_words -1: no limit */
	const char *words;	  /* possible values of the words, as .words of an option */
	bool logs;		  /* errors go to the log, for a daemon */
	bool stops;		  /* options end at the first word, because a command with its own options follows */
	const struct ttmon_cli_cmd *const *subs; /* commands of the group, ended by NULL; NULL: none */
	/* name of an output of the program itself, for --help=NAME; may be NULL. */
	const char *more_name;
	void (*more)(FILE *f);
	/*
	 * Returns the exit status, or -errno after a message that the command line is wrong. NULL: only a
	 * group.
	 */
	int (*run)(const struct ttmon_cli *cli, void *opts);
};
#define TTMON_CLI_OPTS(rows) .opts = (rows), .nr_opts = ARRAY_SIZE(rows)

/* A parsed command line. */
struct ttmon_cli {
	const struct ttmon_cli_cmd *cmd;
	const struct ttmon_cli_opt *opt; /* in take(): the current row */
	void *opts;
	char **words; /* the words that are not options */
	int nr_words;
	bool dashes; /* there is a "--" before the words */
};

/*
 * Reads argv and runs the command, or the command of the group that it names. argv[0] is not used.
 * Returns the exit status of run(); 0 after --help; TTMON_CLI_MISUSE if the command line is wrong,
 * after a message of one line.
 */
int ttmon_cli_run(const struct ttmon_cli_cmd *cmd, int argc, char **argv) _must_check;
/*
 * Parses the command line of one command into opts, which has cmd->size bytes. Returns 0; 1: --help
 * was shown; -EINVAL after an error message.
 */
int ttmon_cli_parse(const struct ttmon_cli_cmd *cmd, int argc, char **argv, void *opts,
		    struct ttmon_cli *ret) _must_check;
/*
 * Prints an error to stderr, with the name of the command before it and a hint at --help behind it.
 * Returns -EINVAL.
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
 * Prints what the last of the words can become, one possibility in each line: WORD, a tab, its
 * meaning; or ":file", ":dir", or ":command N": a command line that begins at word N.
 */
void ttmon_cli_complete(const struct ttmon_cli_cmd *cmd, int n, char **words);
/*
 * Returns row i of a command, with --help behind the others; NULL past the end. Skips rows of other
 * commands.
 */
const struct ttmon_cli_opt *ttmon_cli_row(const struct ttmon_cli_cmd *cmd, size_t *i);

#endif
