// SPDX-License-Identifier: GPL-2.0-only
/*
 * cmd_ctl.c: `ttmon family` and `ttmon target` show what the service traces and change it at run time
 * (/v1/families, /v1/targets).
 */
#include <inttypes.h>

#include "lib/read/client.h"
#include "tools/cli/cmds.h"
#include "tools/cli/show.h"

/* Sends a request and shows the answer. Returns the exit status of the command. */
static int ask(const struct ttmon_show_opts *opts, const char *method, const char *path,
	       void (*show)(const json_t *root))
{
	_cleanup_(ttmon_client_reply_fini) struct ttmon_client_reply reply = { 0 };
	int err = ttmon_client_request(opts->socket, method, path, &reply);
	json_t *root = NULL;

	err = ttmon_client_check(opts->socket, path, err, &reply);
	if (err)
		return err == -EREMOTEIO ? TTMON_EXIT_NO : TTMON_EXIT_ERROR;
	if (ttmon_client_json(&reply, &root))
		return TTMON_EXIT_ERROR;
	if (opts->json)
		fwrite(reply.body, 1, reply.len, stdout);
	else
		show(root);
	json_decref(root);
	return 0;
}

/* ---- family ---- */

static enum ttmon_show_colour colour_of(const char *state)
{
	return !strcmp(state, "counting") || !strcmp(state, "off") ? TTMON_SHOW_WARN : TTMON_SHOW_PLAIN;
}

static void show_family(const json_t *f)
{
	const char *state = ttmon_show_str(f, "state");
	char events[TTMON_FMT_LEN], counted[TTMON_FMT_LEN], runs[TTMON_FMT_LEN], ns[TTMON_FMT_LEN];

	printf("%-12s %s%-9s%s %-10s %9s %9s %9s %10s  %s\n", ttmon_show_str(f, "name"),
	       ttmon_show_escape(colour_of(state)), state, ttmon_show_escape(TTMON_SHOW_PLAIN),
	       ttmon_show_str(f, "why"), ttmon_fmt_count(events, sizeof(events), ttmon_show_u64(f, "hits")),
	       ttmon_fmt_count(counted, sizeof(counted), ttmon_show_u64(f, "counted")),
	       ttmon_fmt_count(runs, sizeof(runs), ttmon_show_u64(f, "run_count")),
	       ttmon_fmt_ns(ns, sizeof(ns), ttmon_show_u64(f, "run_ns")), ttmon_show_str(f, "help"));
}

static void show_families(const json_t *root)
{
	const json_t *list = ttmon_show_at(root, "families"), *budget = ttmon_show_at(root, "budget"), *f;
	size_t i;

	printf("%-12s %-9s %-10s %9s %9s %9s %10s  %s\n", "FAMILY", "STATE", "WHY", "EVENTS", "COUNTED", "RUNS", "TIME",
	       "WHAT");
	json_array_foreach(list, i, f) show_family(f);
	if (!json_is_object(budget))
		return;
	printf("\noverhead %.2f %% of the host (BPF programs %.2f %%, ttmond %.2f %%, of which %.2f %% not for "
	       "records), budget %g %%%s\n",
	       json_real_value(ttmon_show_at(budget, "percent")), json_real_value(ttmon_show_at(budget, "bpf_percent")),
	       json_real_value(ttmon_show_at(budget, "daemon_percent")),
	       json_real_value(ttmon_show_at(budget, "base_percent")),
	       json_number_value(ttmon_show_at(budget, "max_percent")),
	       ttmon_show_bool(budget, "over") ? ": exceeded, but nothing is left that could be reduced" : "");
	json_array_foreach(ttmon_show_at(budget, "processes"), i, f)
	{
		_cleanup_free_ char *comm = ttmon_show_clean(ttmon_show_str(f, "comm"));

		printf("%s of process %llu (%s) is only counted: it causes most of it\n", ttmon_show_str(f, "family"),
		       (unsigned long long)ttmon_show_u64(f, "pid"), comm ? comm : "");
	}
	json_array_foreach(ttmon_show_at(budget, "users"), i, f)
		printf("%s of user %llu is only counted: the user causes most of it\n", ttmon_show_str(f, "family"),
		       (unsigned long long)ttmon_show_u64(f, "uid"));
}

/* Returns whether a text has only characters of known names: these need no escape in a URL. */
static bool is_word(const char *text)
{
	return *text && !text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_")];
}

static int run_family(const struct ttmon_cli *cli, void *opts)
{
	char **words = cli->words, path[128] = "/v1/families";
	const char *method = "GET";

	if (cli->nr_words) {
		if (!is_word(words[0]) || strlen(words[0]) > 32)
			return ttmon_cli_bad(cli, "no such family: %s", words[0]);
		if (cli->nr_words == 1)
			return ttmon_cli_bad(cli, "what %s is to be is missing: on, off or counting", words[0]);
		if (strcmp(words[1], "on") != 0 && strcmp(words[1], "off") != 0 && strcmp(words[1], "counting") != 0)
			return ttmon_cli_bad_word(cli, "state", words[1], "on off counting");
		method = "PUT";
		snprintf(path, sizeof(path), "/v1/families?name=%s&state=%s", words[0], words[1]);
	}
	return ask(opts, method, path, show_families);
}

static const struct ttmon_cli_opt options[] = { TTMON_SHOW_ROWS };
const struct ttmon_cli_cmd ttmon_cmd_family = {
	.name = "ttmon family",
	.summary = "families of probes: on, off, counted only",
	.args = "[--socket PATH] [--json] [NAME on|off|counting]",
	.about = "Shows families of probes, or changes one.",
	.notes = "STATE    on; counting: hits are only counted, not reported; off: the probes\n"
		 "         are removed; absent: not loaded when the service started\n"
		 "WHY      asked for: set here or over the socket; the budget leaves it alone;\n"
		 "         budget: --max-overhead was exceeded\n"
		 "EVENTS   events and counted hits; COUNTED: hits that were only counted\n"
		 "RUNS     of the BPF programs, and the TIME they took (with a budget)\n"
		 "\n"
		 "Memory that is allocated or freed while alloc or tenstorrent is off is not known\n"
		 "later either: what was freed then is shown until its process ends.\n"
		 "\n"
		 "Exit status: 0; 1 when the service refuses; 2 when there is no answer.",
	TTMON_CLI_OPTS(options),
	TTMON_SHOW_DEFAULTS,
	.max_words = 2,
	.run = run_family,
};

/* ---- target ---- */

static void show_targets(const json_t *root)
{
	const json_t *pids = ttmon_show_at(root, "pids"), *pid;
	size_t i;

	if (ttmon_show_bool(root, "all"))
		printf("every process is traced\n");
	else if (!json_array_size(pids))
		printf("no process is traced: ttmon target add PID, or ttmon target all on\n");
	else
		printf("only these are traced:\n");
	json_array_foreach(pids, i, pid) printf("%" PRIu64 "\n", (uint64_t)json_integer_value(pid));
}

/* Makes the request for the words of the command line; false: they are not valid. */
static bool target_request(char **words, int n, const char **method, char *path, size_t size)
{
	bool add, on;

	if (!n)
		return true;
	if (n != 2)
		return false;
	if (!strcmp(words[0], "all")) {
		on = !strcmp(words[1], "on");
		*method = on ? "PUT" : "DELETE";
		snprintf(path, size, "/v1/targets?all");
		return on || !strcmp(words[1], "off");
	}
	add = !strcmp(words[0], "add");
	if ((!add && strcmp(words[0], "remove") != 0) || words[1][strspn(words[1], "0123456789")] ||
	    strlen(words[1]) > 10)
		return false;
	*method = add ? "PUT" : "DELETE";
	snprintf(path, size, "/v1/targets?pid=%s", words[1]);
	return true;
}

static int run_target(const struct ttmon_cli *cli, void *opts)
{
	const char *method = "GET";
	char path[64] = "/v1/targets";

	static const char verbs[] = "add remove all";
	const char *first = cli->nr_words ? cli->words[0] : "";

	if (*first && strcmp(first, "add") != 0 && strcmp(first, "remove") != 0 && strcmp(first, "all") != 0)
		return ttmon_cli_bad_word(cli, "verb", first, verbs);
	if (!target_request(cli->words, cli->nr_words, &method, path, sizeof(path)))
		return ttmon_cli_bad(cli, "%s wants %s%s%s", first,
				     !strcmp(first, "all") ? "on or off" : "the number of a process",
				     cli->nr_words > 1 ? ", not " : "", cli->nr_words > 1 ? cli->words[1] : "");
	return ask(opts, method, path, show_targets);
}

const struct ttmon_cli_cmd ttmon_cmd_target = {
	.name = "ttmon target",
	.summary = "which processes are traced",
	.args = "[--socket PATH] [--json] [add PID | remove PID | all on|off]",
	.about = "Shows which processes are traced, or changes that.",
	.notes = "add PID     trace the process, and its children from now on\n"
		 "remove PID  stop tracing it and its children (unless all are); what it held is\n"
		 "            shown as it was until it ends\n"
		 "all on|off  every process, or only those added (only root)\n"
		 "\n"
		 "Exit status: 0; 1 when the service refuses; 2 when there is no answer.",
	TTMON_CLI_OPTS(options),
	TTMON_SHOW_DEFAULTS,
	.max_words = 2,
	.words = "add remove all",
	.run = run_target,
};
