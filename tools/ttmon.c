// SPDX-License-Identifier: GPL-2.0-only
/*
 * ttmon.c: the one client. Finds the command in a table and hands it its arguments.
 *
 * --socket and --json may stand before the command too: they are handed on behind its name, so that each option has one
 * place where it is read, the command.
 */
#include "tools/cli/cmds.h"
#include "lib/read/client.h"
#include "lib/base/util.h"
#include "version.h"

static const struct command {
	const char *name;
	int (*fn)(int argc, char **argv);
	const char *help;
} commands[] = {
	{ "status", cmd_status, "what the service traces, has lost, and whether its books balance" },
	{ "probes", cmd_probes, "which objects and functions are probed" },
	{ "top", cmd_top, "who uses the CPUs, caches, memory bandwidth and pinned memory, live" },
	{ "family", cmd_family, "families of probes: on, off, counted only" },
	{ "target", cmd_target, "which processes are traced" },
	{ "smi", cmd_smi, "the Tenstorrent chips of this host, their memory and who uses it" },
	{ "programs", cmd_programs, "programs that run on Tenstorrent chips, live" },
	{ "db", cmd_db, "check and show an allocation database (ttmond --dump-db)" },
	{ "advise", cmd_advise, "what to pin the next time, and what other ways of pinning would have cost" },
	{ "heat", cmd_heat, "transfers over time, or over the pages of an allocation, as a heat map in the terminal" },
	{ "view", cmd_view, "a database as one page for the browser" },
	{ "memtrace", cmd_memtrace, "memory accesses of GPU kernels: record, read, analyse, compare" },
	{ "slots", cmd_slots, "who used the machine, a millisecond each, out of a slot file (ttmond --slots-out)" },
	{ "trace", cmd_trace, "a timeline for Perfetto of a recording, a database or the service" },
	{ "bugreport", cmd_bugreport, "one archive with what somebody needs who was not there; names redactable" },
};

static void usage(FILE *out)
{
	fprintf(out, "usage: ttmon [--socket PATH] [--json] COMMAND [OPTIONS]\n\ncommands:\n");
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].help);
	fprintf(out,
		"\noptions:\n"
		"  -s, --socket PATH  of the service (default %s)\n"
		"  -j, --json         what the service sent, as it is\n"
		"  -V, --version      print the version\n"
		"  -h, --help         this text; ttmon COMMAND --help for a command's own\n",
		TTMON_SOCKET_DEFAULT);
}

/* Options in front of the command: how many words they take; -1 when one is not known. */
static int leading_options(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "-j") || !strcmp(argv[i], "--json") || !strncmp(argv[i], "--socket=", 9))
			continue;
		if ((!strcmp(argv[i], "-s") || !strcmp(argv[i], "--socket")) && i + 1 < argc) {
			i++;
			continue;
		}
		fprintf(stderr, "ttmon: no such option, or its value is missing: %s, see ttmon --help\n", argv[i]);
		return -1;
	}
	return i - 1;
}

static int run(int argc, char **argv, int options)
{
	const char *name = argv[1 + options];
	_cleanup_free_ char **args = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(commands); i++) {
		if (strcmp(commands[i].name, name))
			continue;
		/* NAME, the options that stood before it, the rest, NULL */
		args = calloc((size_t)argc, sizeof(*args));
		if (!args) {
			fprintf(stderr, "ttmon: out of memory\n");
			return TTMON_EXIT_ERROR;
		}
		args[0] = argv[1 + options];
		memcpy(args + 1, argv + 1, (size_t)options * sizeof(*args));
		memcpy(args + 1 + options, argv + 2 + options, (size_t)(argc - 2 - options) * sizeof(*args));
		return commands[i].fn(argc - 1, args);
	}
	fprintf(stderr, "ttmon: no such command: %s, see ttmon --help\n", name);
	return TTMON_EXIT_ERROR;
}

int main(int argc, char **argv)
{
	int options, status;

	if (argc > 1 && (!strcmp(argv[1], "-h") || !strcmp(argv[1], "--help"))) {
		usage(stdout);
		status = 0;
	} else if (argc > 1 && (!strcmp(argv[1], "-V") || !strcmp(argv[1], "--version"))) {
		printf("ttmon %s\n", TTMON_VERSION);
		status = 0;
	} else {
		options = leading_options(argc, argv);
		if (options < 0)
			return TTMON_EXIT_ERROR;
		if (1 + options >= argc) {
			usage(stderr);
			return TTMON_EXIT_ERROR;
		}
		status = run(argc, argv, options);
	}
	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "ttmon: cannot write the output: %s\n", strerror(errno));
		return TTMON_EXIT_ERROR;
	}
	return status;
}
