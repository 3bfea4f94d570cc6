// SPDX-License-Identifier: GPL-2.0-only
/* ttmon.c: the client program. Options that stand before the command are passed on to the command. */
#include "tools/cli/cmds.h"
#include "version.h"

static const struct ttmon_cli_cmd *const commands[] = {
#define X(name) &ttmon_cmd_##name,
	TTMON_COMMANDS(X)
#undef X
		NULL
};

static int help(const struct ttmon_cli *cli, void *opts);
const struct ttmon_cli_cmd ttmon_cmd_help = {
	.name = "ttmon help",
	.summary = "what a command does and takes: ttmon help COMMAND",
	.args = "[COMMAND [COMMAND]]",
	.about = "Shows what a command does and which options it takes, as COMMAND --help does.",
	.max_words = 2,
	.run = help,
};

static int version(struct ttmon_cli *cli, const char *arg)
{
	(void)cli;
	(void)arg;
	puts("ttmon " TTMON_VERSION);
	return 1;
}

static const struct ttmon_cli_opt options[] = {
	{ "socket", 's', "PATH", TTMON_SOCKET_HELP, NULL, TTMON_CLI_PASSED, .words = ":file" },
	{ "json", 'j', NULL, "what the service sent, as it is", "Sizes are bytes, times nanoseconds.",
	  TTMON_CLI_PASSED },
	{ "version", 'V', NULL, "print the version", NULL, TTMON_CLI_CALL(version) },
};

static const struct ttmon_cli_cmd ttmon = {
	.name = "ttmon",
	.args = "[--socket PATH] [--json] COMMAND [OPTIONS]",
	.notes = "ttmon COMMAND --help: the options of a command.",
	TTMON_CLI_OPTS(options),
	.subs = commands,
};

static int help(const struct ttmon_cli *cli, void *opts)
{
	char name[] = "ttmon", option[] = "--help", *argv[5] = { name };
	int n = 1;

	(void)opts;
	for (int i = 0; i < cli->nr_words; i++)
		argv[n++] = cli->words[i];
	argv[n++] = option;
	return ttmon_cli_run(&ttmon, n, argv);
}

int main(int argc, char **argv)
{
	int status = ttmon_cli_run(&ttmon, argc, argv);

	if (fflush(stdout) || ferror(stdout)) {
		fprintf(stderr, "ttmon: cannot write the output: %s\n", strerror(errno));
		return TTMON_EXIT_ERROR;
	}
	return status;
}
