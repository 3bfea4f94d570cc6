// SPDX-License-Identifier: GPL-2.0-only
/*
 * cmd_probes.c: `ttmon probes`: GET /v1/probes. One line for each probed object: the probes that are
 * attached, those that failed, those that its version does not have, those that are slow because the
 * instruction must be single-stepped, and how long calls could be missed before the probes were
 * active.
 */
#include <inttypes.h>

#include "lib/read/client.h"
#include "tools/cli/cmds.h"
#include "lib/demangle/demangle.h"
#include "tools/cli/show.h"

struct counts {
	unsigned int attached, failed, stepped;
};

static void count_probes(const json_t *probes, struct counts *ret)
{
	const json_t *probe;
	size_t i;

	*ret = (struct counts){ 0 };
	json_array_foreach(probes, i, probe)
	{
		const char *state = ttmon_show_str(probe, "state");

		ret->failed += !strcmp(state, "failed");
		if (strcmp(state, "attached"))
			continue;
		ret->attached++;
		ret->stepped += ttmon_show_bool(probe, "single_step");
	}
}

/* A path that is too long is cut at its beginning. columns 0: not cut. */
static void put_path(const char *path, size_t used, size_t columns)
{
	_cleanup_free_ char *copy = ttmon_show_clean(path);
	size_t n;

	if (!copy)
		return;
	n = strlen(copy);
	if (columns > used + 16 && n > columns - used)
		printf("...%s\n", copy + n - (columns - used - 3));
	else
		printf("%s\n", copy);
}

static void put_blind(const json_t *object)
{
	const json_t *gap = ttmon_show_at(object, "blind_us");
	char buf[TTMON_FMT_LEN];

	if (ttmon_show_bool(object, "held"))
		printf("%10s", "held");
	else if (!json_is_integer(gap))
		printf("%10s", "before");
	else if (!json_integer_value(gap))
		printf("%10s", "none");
	else
		printf("%10s", ttmon_fmt_ns(buf, sizeof(buf), ttmon_show_u64(object, "blind_us") * NSEC_PER_US));
}

/* Prints a number that should be 0; coloured if it is not. */
static void put_count(int width, uint64_t n, enum ttmon_show_colour colour)
{
	printf("%s%*" PRIu64 "%s ", n ? ttmon_show_escape(colour) : "", width, n,
	       n ? ttmon_show_escape(TTMON_SHOW_PLAIN) : "");
}

static void put_probe(const json_t *probe)
{
	const char *state = ttmon_show_str(probe, "state"), *reason = ttmon_show_str(probe, "reason");
	_cleanup_free_ char *program = ttmon_show_clean(ttmon_show_str(probe, "program"));
	_cleanup_free_ char *why = ttmon_show_clean(reason);
	uint64_t skip = ttmon_show_u64(probe, "skip");
	char place[TTMON_DEMANGLE_NAME + 24], symbol[TTMON_DEMANGLE_NAME];
	bool bad = !strcmp(state, "failed");

	ttmon_demangle(symbol, sizeof(symbol), ttmon_show_str(probe, "symbol"));
	snprintf(place, sizeof(place), "%s", *symbol ? symbol : "?");
	if (skip) /* the offset in the function, as a debugger writes it */
		snprintf(place, sizeof(place), "%s+%" PRIu64, *symbol ? symbol : "?", skip);
	printf("    %s%-9s%s %-32s %s", ttmon_show_escape(bad ? TTMON_SHOW_BAD : TTMON_SHOW_PLAIN), state,
	       ttmon_show_escape(TTMON_SHOW_PLAIN), place, program ? program : "?");
	if (ttmon_show_bool(probe, "single_step"))
		printf(" (single-stepped)");
	if (*reason)
		printf(": %s", why ? why : "?");
	putchar('\n');
}

static void show_object(const json_t *object, bool verbose)
{
	const json_t *probes = ttmon_show_at(object, "probes"), *probe;
	_cleanup_free_ char *error = ttmon_show_clean(ttmon_show_str(object, "error"));
	struct counts c;
	size_t i;

	count_probes(probes, &c);
	printf("%8u ", c.attached);
	put_count(6, c.failed, TTMON_SHOW_BAD);
	printf("%7" PRIu64 " ", ttmon_show_u64(object, "missing"));
	put_count(7, c.stepped, TTMON_SHOW_WARN);
	put_blind(object);
	printf("  ");
	put_path(ttmon_show_str(object, "path"), 44, verbose ? 0 : ttmon_show_columns());
	if (error && *error)
		printf("    %snot probed%s: %s\n", ttmon_show_escape(TTMON_SHOW_BAD),
		       ttmon_show_escape(TTMON_SHOW_PLAIN), error);
	if (ttmon_show_bool(object, "stripped"))
		printf("    holds a CUDA runtime without symbols: seen at driver level only\n");
	if (!verbose)
		return;
	json_array_foreach(probes, i, probe) put_probe(probe);
}

static void show_programs(const json_t *programs, bool verbose)
{
	size_t i, loaded = 0, attached = 0;
	const json_t *program;

	json_array_foreach(programs, i, program)
	{
		loaded += ttmon_show_bool(program, "loaded");
		attached += ttmon_show_bool(program, "attached");
	}
	printf("%zu BPF programs, %zu loaded, %zu attached\n", json_array_size(programs), loaded, attached);
	if (!verbose)
		return;
	json_array_foreach(programs, i, program)
	{
		_cleanup_free_ char *name = ttmon_show_clean(ttmon_show_str(program, "name"));

		const char *reason = ttmon_show_str(program, "reason");

		printf("    %-32s %-10s %s%s%s\n", name ? name : "?",
		       ttmon_show_bool(program, "loaded") ? "loaded" : "not loaded",
		       ttmon_show_bool(program, "attached") ? "attached" : "not attached", *reason ? ": " : "", reason);
	}
}

/* Shows the layout of profiler records, and how certain it is. */
static void show_record_layout(const json_t *clock)
{
	const json_t *layout = ttmon_show_at(clock, "record_layout");
	uint64_t refused = ttmon_show_u64(clock, "refused_layout");

	if (!json_is_string(layout))
		printf("%s", refused ? "not known" : "-");
	else
		printf("%s, %s", json_string_value(layout),
		       json_is_true(ttmon_show_at(clock, "layout_certain")) ? "certain" : "others fit too");
	if (refused)
		printf("; %s%" PRIu64 " refused%s", ttmon_show_escape(TTMON_SHOW_WARN), refused,
		       ttmon_show_escape(TTMON_SHOW_PLAIN));
	putchar('\n');
}

/*
 * Shows each process with tt-metal: how its buffers are read, and how device cycles are converted to
 * host time.
 */
static void show_tt(const json_t *tt)
{
	const json_t *list = ttmon_show_at(tt, "processes"), *one, *flag;
	char buf[4][TTMON_FMT_LEN];
	size_t i, k;

	if (json_array_size(list))
		printf("\n%8s %-15s  %s\n", "PID", "TENSTORRENT", "BUFFER LAYOUT");
	json_array_foreach(list, i, one)
	{
		_cleanup_free_ char *comm = ttmon_show_clean(ttmon_show_str(one, "comm"));

		printf("%8" PRIu64 " %-15s  %s", ttmon_show_u64(one, "tgid"), comm ? comm : "?",
		       ttmon_show_str(one, "layout"));
		json_array_foreach(ttmon_show_at(one, "flags"), k, flag)
			printf("%s%s%s%s", k ? ", " : "; ", ttmon_show_escape(TTMON_SHOW_WARN), json_string_value(flag),
			       ttmon_show_escape(TTMON_SHOW_PLAIN));
		putchar('\n');
	}
	list = ttmon_show_at(tt, "clocks");
	if (json_array_size(list))
		printf("\n%8s %6s  %-9s %6s %8s %10s %10s %8s  %s\n", "PID", "DEVICE", "CLOCK", "PAIRS", "GHZ",
		       "RESIDUAL", "RECORDS", "REFUSED", "RECORD LAYOUT");
	json_array_foreach(list, i, one)
	{
		uint64_t residual = (uint64_t)json_real_value(ttmon_show_at(one, "residual_ns"));
		bool fitted = ttmon_show_u64(one, "pairs") > 1;

		printf("%8" PRIu64 " %6s  %-9s %6" PRIu64 " %8.5f %10s %10s %8s  ", ttmon_show_u64(one, "tgid"),
		       json_is_integer(ttmon_show_at(one, "logical"))
			       ? ttmon_fmt_count(buf[2], TTMON_FMT_LEN, ttmon_show_u64(one, "logical"))
			       : "-",
		       ttmon_show_str(one, "clock"), ttmon_show_u64(one, "pairs"),
		       json_real_value(ttmon_show_at(one, "ghz")),
		       fitted ? ttmon_fmt_ns(buf[0], TTMON_FMT_LEN, residual) : "n/a",
		       ttmon_fmt_count(buf[1], TTMON_FMT_LEN, ttmon_show_u64(one, "records")),
		       ttmon_fmt_count(buf[3], TTMON_FMT_LEN, ttmon_show_u64(one, "refused")));
		show_record_layout(one);
	}
}

static int run_probes(const struct ttmon_cli *cli, void *ctx)
{
	_cleanup_(ttmon_client_reply_fini) struct ttmon_client_reply reply = { 0 };
	const struct ttmon_show_opts *opts = ctx;
	const json_t *objects, *object;
	json_t *root = NULL;
	size_t i;

	(void)cli;
	if (ttmon_client_fetch(opts->socket, "/v1/probes", &reply) || ttmon_client_json(&reply, &root))
		return TTMON_EXIT_ERROR;
	if (opts->json) {
		fwrite(reply.body, 1, reply.len, stdout);
	} else {
		objects = ttmon_show_at(root, "objects");
		if (json_array_size(objects))
			printf("ATTACHED FAILED MISSING STEPPED      BLIND  OBJECT\n");
		else
			printf("no process has mapped anything to probe\n");
		json_array_foreach(objects, i, object) show_object(object, opts->verbose);
		show_programs(ttmon_show_at(root, "programs"), opts->verbose);
		show_tt(ttmon_show_at(root, "tenstorrent"));
	}
	json_decref(root);
	return 0;
}

static const struct ttmon_cli_opt probes_options[] = {
	TTMON_SHOW_ROWS,
	{ "verbose", 'v', NULL, "every function, and the BPF programs", NULL,
	  TTMON_CLI_FLAG(struct ttmon_show_opts, verbose) },
};
const struct ttmon_cli_cmd ttmon_cmd_probes = {
	.name = "ttmon probes",
	.summary = "which objects and functions are probed",
	.args = "[--socket PATH] [--json] [-v]",
	.about = "Shows the objects (libraries, programs) that are probed.",
	.notes = "ATTACHED  functions whose probe is active\n"
		 "FAILED    functions that exist but could not be probed; -v says why\n"
		 "MISSING   functions that ttmond knows and the object does not have\n"
		 "STEPPED   of those attached, the ones whose instruction at the probe has to be\n"
		 "          single-stepped: about ten times the cost of a probe; -v shows\n"
		 "          where a probe is not at the function's entry (cuMemAlloc_v2+10)\n"
		 "BLIND     time from the mapping of the object to active probes, in which calls\n"
		 "          could be missed; 'held': the process waited, none was; 'none': the\n"
		 "          probes were active first; 'before': it was mapped when the trace\n"
		 "          began, so that the time is not known\n"
		 "Of programs with tt-metal also: how the layout of their buffers was told (E0 to\n"
		 "E4: generations; checked: against Buffer::create), what their figures are worth,\n"
		 "and by which CLOCK cycles of a device become host time: pairs (fitted; RESIDUAL\n"
		 "is the largest of the fit), record (the program's own), envelope (bounds only).\n"
		 "With -v: refused (by --tt-dispatch auto), spare (removed, not needed now).\n"
		 "\n"
		 "Exit status: 0, or 2 when there is no answer.",
	TTMON_CLI_OPTS(probes_options),
	TTMON_SHOW_DEFAULTS,
	.run = run_probes,
};
