/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cmds.h: the commands of ttmon, and option rows that several of them share. A command NAME is a
 * struct ttmon_cli_cmd called ttmon_cmd_NAME in a file of its own. Each error is one line on stderr
 * that begins with "ttmon".
 */
#ifndef TTMON_CMDS_H
#define TTMON_CMDS_H

#include "lib/os/cli.h"
#include "lib/read/client.h"

/*
 * Exit statuses. 0: all is well; 1: the answer is no (the checked thing is not in order); 2: there is
 * no answer.
 */
#define TTMON_EXIT_NO	 1
#define TTMON_EXIT_ERROR TTMON_CLI_MISUSE

/* In the order of ttmon --help. */
/* clang-format off */
#define TTMON_COMMANDS(X) \
	X(run) X(attach) X(serve) X(replay) X(open) X(diff) X(help) X(status) \
	X(probes) X(top) X(family) X(target) X(smi) X(programs) X(db) X(advise) \
	X(heat) X(waits) X(view) X(flame) X(export) X(memtrace) X(slots) X(trace) X(bugreport)
/* clang-format on */

#define X(name) extern const struct ttmon_cli_cmd ttmon_cmd_##name;
TTMON_COMMANDS(X)
#undef X

#define TTMON_SOCKET_HELP "of the service (default " TTMON_SOCKET_DEFAULT ")"
#define TTMON_ROW_SOCKET(T, m)                                                                \
	{                                                                                     \
		"socket", 's', "PATH", TTMON_SOCKET_HELP, NULL, TTMON_CLI_TEXT(T, m, ":file") \
	}
#define TTMON_ROW_PLUMBING(T, m)                                                                                       \
	{                                                                                                              \
		"plumbing", 0, "FILE", "patterns of frames that are not the program's own (default: $TTMON_PLUMBING)", \
			"A call site is identified by the frames that are the program's own. Built-in patterns "       \
			"leave out the C and C++ libraries, CUDA, PyTorch's libraries, and Python's interpreter and "  \
			"standard library. FILE has further patterns, one a line: object NAME, function SYMBOL, "      \
			"namespace NAME or python PATH, with * and ?. The first one that matches decides. \"own \" "   \
			"before it says that these frames are the program's own.",                                     \
			TTMON_CLI_TEXT(T, m, ":file")                                                                  \
	}
#define TTMON_ROW_JSON(T, m, help, man)                            \
	{                                                          \
		"json", 'j', NULL, help, man, TTMON_CLI_FLAG(T, m) \
	}

#endif
