// SPDX-License-Identifier: GPL-2.0-only
/* cmd_memtrace.c: `ttmon memtrace`: which of its commands it is. */
#include "tools/cli/cmds.h"
#include "tools/memtrace/mt.h"
#include "lib/base/util.h"

/* Where its command stands: --json and --socket can be before it, which tools/ttmon.c hands on behind "memtrace". */
static int command_at(int argc, char **argv)
{
	int i = 1;

	while (i < argc && *argv[i] == '-') {
		if (!strcmp(argv[i], "-s") || !strcmp(argv[i], "--socket"))
			i += 2;
		else if (!strcmp(argv[i], "-j") || !strcmp(argv[i], "--json") || !strncmp(argv[i], "--socket=", 9))
			i++;
		else
			break;
	}
	return i;
}

int cmd_memtrace(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*fn)(int argc, char **argv);
	} commands[] = {
		{ "report", ttmon_mt_cmd_report },   { "print", ttmon_mt_cmd_print },
		{ "convert", ttmon_mt_cmd_convert }, { "diff", ttmon_mt_cmd_diff },
		{ "record", ttmon_mt_cmd_record },   { "view", ttmon_mt_cmd_view },
	};
	int at = command_at(argc, argv);

	for (size_t i = 0; at < argc && i < ARRAY_SIZE(commands); i++) {
		if (strcmp(argv[at], commands[i].name))
			continue;
		memmove(&argv[2], &argv[1], (size_t)(at - 1) * sizeof(*argv));
		argv[1] = (char *)commands[i].name;
		return commands[i].fn(argc - 1, argv + 1);
	}
	return ttmon_mt_cmd_report(argc, argv);
}
