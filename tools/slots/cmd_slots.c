// SPDX-License-Identifier: GPL-2.0-only
/*
 * cmd_slots.c: `ttmon slots FILE`: the options, reading the file, and what the outputs share. The
 * table takes two passes, because the first one finds which columns have any value; so standard input
 * is first copied to a temporary file. CSV and JSON have all columns and take one pass.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "tools/cli/cmds.h"
#include "tools/slots/slots_tool.h"
#include "lib/base/fmt.h"

/* ---- shared by the outputs ---- */

char *ttmon_slots_row_name(char buf[TTMON_SLOTS_NAME], const struct ttmon_slot_row *row)
{
	char comm[sizeof(row->comm) + 1];

	if (row->cls != TTMON_ROW_USER && row->cls != TTMON_ROW_KERNEL) {
		snprintf(buf, TTMON_SLOTS_NAME, "(%s)", ttmon_slots_class_name(row->cls));
		return buf;
	}
	ttmon_fmt_text(comm, sizeof(comm), row->comm);
	snprintf(buf, TTMON_SLOTS_NAME, row->cls == TTMON_ROW_KERNEL ? "[%s]" : "%s", comm[0] ? comm : "?");
	return buf;
}

const struct ttmon_slot_row *ttmon_slots_wanted(const struct ttmon_slots_opts *opts,
						const struct ttmon_slots_item *item, uint32_t *at, uint64_t *shown)
{
	while (*at < item->slot.nr_rows) {
		const struct ttmon_slot_row *row = &item->rows[(*at)++];

		if (opts->has_pid && (row->tgid != opts->pid || row->cls > TTMON_ROW_KERNEL))
			continue;
		if (row->cls != TTMON_ROW_IDLE && opts->top && (*shown)++ >= opts->top)
			continue;
		return row;
	}
	return NULL;
}

int64_t ttmon_slots_ms(const struct ttmon_slots_info *info, uint64_t no)
{
	return (int64_t)(no - info->start_ns / NSEC_PER_MS);
}

/* ---- reading ---- */

struct range {
	bool has_from, has_to;
	uint64_t from, to; /* slot numbers */
};

/* Parses "250" (ms) or "@123456" (a slot number). */
static bool parse_when(const char *text, bool *is_slot, uint64_t *ret)
{
	char *end;

	*is_slot = *text == '@';
	text += *is_slot;
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return !errno && !*end;
}

static bool in_range(const struct range *range, uint64_t no)
{
	return !(range->has_from && ttmon_before(no, range->from)) && !(range->has_to && !ttmon_before(no, range->to));
}

static void look(struct ttmon_slots_seen *seen, const struct ttmon_slots_opts *opts,
		 const struct ttmon_slots_item *item)
{
	const struct ttmon_slot_row *row;
	struct ttmon_slots_opts all = *opts;
	uint64_t shown = 0;
	uint32_t at = 0;

	all.top = 0;
	seen->ctr |= item->slot.flags & TTMON_SLOT_HAS_CTR;
	seen->missing |= item->slot.missing_ns != 0;
	seen->slots++;
	seen->no_cpu += !(item->slot.flags & TTMON_SLOT_HAS_CPU);
	seen->no_copies += !ttmon_slot_knows(&item->slot, TTMON_SLOT_NEED_COPIES);
	seen->no_pinned += !ttmon_slot_knows(&item->slot, TTMON_SLOT_NEED_PINNED);
	/* A column is shown too if its values were not measured: its "-" says so. */
	seen->copies |= seen->no_copies != 0;
	seen->pinned |= seen->no_pinned != 0;
	while ((row = ttmon_slots_wanted(&all, item, &at, &shown))) {
		seen->llc |= ttmon_slots_known_llc(row) != TTMON_SLOTS_UNKNOWN;
		seen->mbm |= ttmon_slots_known_mbm(row) != TTMON_SLOTS_UNKNOWN;
		seen->copies |= row->copies != 0;
		seen->pinned |= row->pinned_bytes != 0;
	}
}

/* Reads the file once. sum: NULL without --sum. Errors are reported in the second pass only. */
static int read_file(struct ttmon_slots_reader *s, struct ttmon_slots_view *v, const struct range *range,
		     bool first_pass, struct ttmon_slots_sum *sum)
{
	const struct ttmon_slots_opts *opts = v->opts;
	struct ttmon_slots_item item;
	uint64_t missed = 0;
	int r, err = 0;

	while (!err && !ferror(stdout) && (r = ttmon_slots_next(s, &item)) == 1) {
		missed += item.missed;
		if (!in_range(range, item.slot.no))
			continue;
		/* Missing slots before the range are not reported. */
		item.missed = missed;
		missed = 0;
		if (first_pass)
			look(&v->seen, opts, &item);
		else if (sum)
			err = ttmon_slots_sum_slot(sum, v, &item);
		else if (opts->form == TTMON_SLOTS_TABLE)
			ttmon_slots_table_slot(v, &item);
		else if (opts->form == TTMON_SLOTS_CSV)
			ttmon_slots_csv_slot(v, &item);
		else
			ttmon_slots_json_slot(v, &item);
	}
	if (err || ferror(stdout))
		return err;
	return r;
}

static int spool(int *ret)
{
	_cleanup_fclose_ FILE *f = tmpfile();
	char buf[65536];
	ssize_t n;
	int fd;

	if (!f)
		return -errno;
	while ((n = read(STDIN_FILENO, buf, sizeof(buf))) > 0)
		if (fwrite(buf, 1, (size_t)n, f) != (size_t)n)
			return -errno;
	if (n < 0 || fflush(f))
		return -errno;
	fd = fcntl(fileno(f), F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return -errno;
	*ret = fd;
	return 0;
}

/* fd: the temporary copy of standard input, or -1 for the file itself. */
static struct ttmon_slots_reader *open_file(const char *path, int fd)
{
	struct ttmon_slots_reader *s = NULL;
	char why[600];
	int err;

	if (fd < 0) {
		err = ttmon_slots_open(path, &s, why, sizeof(why));
	} else {
		lseek(fd, 0, SEEK_SET);
		err = ttmon_slots_open_fd(fcntl(fd, F_DUPFD_CLOEXEC, 3), "standard input", &s, why, sizeof(why));
	}
	if (err)
		fprintf(stderr, "ttmon: %s\n", why);
	return s;
}

/* Explains the "-" and ">=" in the table. */
static void say_unknown(const struct ttmon_slots_view *v)
{
	const struct {
		const char *what;
		uint64_t slots;
	} rows[] = {
		{ "CPU time was not measured", v->seen.no_cpu },
		{ "transfers were not all seen (transfer was not on, or records were lost)",
		  v->opts->by_slot ? 0 : v->seen.no_copies },
		{ "allocations were not all seen (alloc or tenstorrent was not on, or records were lost)",
		  v->opts->by_slot ? 0 : v->seen.no_pinned },
	};
	char n[TTMON_FMT_LEN], of[TTMON_FMT_LEN];

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].slots)
			fprintf(stderr, "ttmon: in %s of %s slots %s\n", ttmon_fmt_count(n, sizeof(n), rows[i].slots),
				ttmon_fmt_count(of, sizeof(of), v->seen.slots), rows[i].what);
}

static int finish(struct ttmon_slots_reader *s, int r)
{
	uint64_t dropped = ttmon_slots_get_end(s)->dropped;
	char buf[TTMON_FMT_LEN];

	if (r < 0) {
		fprintf(stderr, "ttmon: %s\n", ttmon_slots_why(s)[0] ? ttmon_slots_why(s) : strerror(-r));
		return TTMON_EXIT_NO;
	}
	if (dropped)
		fprintf(stderr, "ttmon: %s slots are not in the file: ttmond could not write them in time\n",
			ttmon_fmt_count(buf, sizeof(buf), dropped));
	return 0;
}

static int show(struct ttmon_slots_view *v, struct range *range, const bool is_slot[2])
{
	_cleanup_(ttmon_slots_closep) struct ttmon_slots_reader *s = NULL;
	_cleanup_(ttmon_slots_sum_freep) struct ttmon_slots_sum *sum = NULL;
	_cleanup_(ttmon_jsonw_fini) struct ttmon_jsonw json = { .fd = -1 };
	const struct ttmon_slots_opts *opts = v->opts;
	_cleanup_close_ int fd = -1;
	bool table = opts->form == TTMON_SLOTS_TABLE;
	uint64_t first;
	int r, err = table && !strcmp(opts->path, "-") ? spool(&fd) : 0;

	if (!err && opts->form == TTMON_SLOTS_JSON)
		err = ttmon_jsonw_init(&json, STDOUT_FILENO, false);
	if (!err && opts->sum)
		err = ttmon_slots_sum_new(&sum);
	if (err) {
		fprintf(stderr, "ttmon: cannot show %s: %s\n", opts->path, strerror(-err));
		return TTMON_EXIT_ERROR;
	}
	v->json = &json;
	s = open_file(opts->path, fd);
	if (!s)
		return TTMON_EXIT_ERROR;
	first = ttmon_slots_get_info(s)->start_ns / NSEC_PER_MS;
	range->from += is_slot[0] ? 0 : first;
	range->to += is_slot[1] ? 0 : first;
	if (range->has_from && range->has_to && !ttmon_before(range->from, range->to)) {
		fprintf(stderr,
			"ttmon slots: --to is not behind --from: no slot lies between them, see ttmon slots --help\n");
		return TTMON_EXIT_ERROR;
	}
	if (table) {
		v->info = ttmon_slots_get_info(s);
		r = read_file(s, v, range, true, NULL);
		ttmon_slots_close(s);
		s = open_file(opts->path, fd);
		if (!s)
			return TTMON_EXIT_ERROR;
	}
	v->info = ttmon_slots_get_info(s);
	if (!sum && table)
		ttmon_slots_table_head(v);
	else if (!sum && opts->form == TTMON_SLOTS_CSV)
		ttmon_slots_csv_head(v);
	r = read_file(s, v, range, false, sum);
	if (sum)
		ttmon_slots_sum_print(sum, v);
	fflush(stdout);
	err = opts->form == TTMON_SLOTS_JSON ? ttmon_jsonw_finish(&json) : 0;
	if (err) {
		fprintf(stderr, "ttmon: cannot write the output: %s\n", strerror(-err));
		return TTMON_EXIT_ERROR;
	}
	if (table)
		say_unknown(v);
	return finish(s, r);
}

struct opts {
	struct ttmon_slots_opts o;
	struct range range;
	bool is_slot[2];
};

static int take_when(struct ttmon_cli *cli, const char *arg)
{
	struct opts *o = cli->opts;
	bool to = !strcmp(cli->opt->name, "to");

	if (parse_when(arg, &o->is_slot[to], to ? &o->range.to : &o->range.from))
		return 0;
	return ttmon_cli_bad(cli, "--%s needs a number of ms, or @N for a slot, not \"%s\"", cli->opt->name, arg);
}

static int run(const struct ttmon_cli *cli, void *ctx)
{
	struct opts *o = ctx;
	struct ttmon_slots_view view = { .opts = &o->o };

	if (o->o.sum && o->o.by_slot)
		return ttmon_cli_bad(cli, "--sum and --slots cannot be used together");
	o->o.path = cli->words[0];
	return show(&view, &o->range, o->is_slot);
}

static const struct ttmon_cli_opt options[] = {
	{ "sum", 0, NULL, "one line for each process over all slots, sorted by CPU time", NULL,
	  TTMON_CLI_FLAG(struct opts, o.sum) },
	{ "slots", 0, NULL, "one line for each slot: user, kernel and idle time, and the time not accounted for", NULL,
	  TTMON_CLI_FLAG(struct opts, o.by_slot) },
	{ "pid", 'p', "PID", "this process alone", NULL, TTMON_CLI_NUMBER(struct opts, o.pid, 0, UINT32_MAX),
	  .words = ":pid", TTMON_CLI_GIVEN(struct opts, o.has_pid) },
	{ "from", 0, "WHEN", "first slot: ms since the start of the file, or @N for slot number N", NULL,
	  TTMON_CLI_CALL(take_when), TTMON_CLI_GIVEN(struct opts, range.has_from) },
	{ "to", 0, "WHEN", "end: up to this slot, not included", NULL, TTMON_CLI_CALL(take_when),
	  TTMON_CLI_GIVEN(struct opts, range.has_to) },
	{ "top", 0, "N", "at most N processes in each slot (with --sum: in all), sorted by CPU time, idle not counted",
	  NULL, TTMON_CLI_NUMBER(struct opts, o.top, 1, UINT64_MAX) },
	{ "csv", 0, NULL, "all fields as CSV; a figure that is not known is empty", NULL,
	  TTMON_CLI_SET(struct opts, o.form, TTMON_SLOTS_CSV) },
	{ "json", 'j', NULL, "all fields as JSON, one object in each line; a figure that is not known is null",
	  "at_least marks lower bounds; each slot lists the families of probes that were on.",
	  TTMON_CLI_SET(struct opts, o.form, TTMON_SLOTS_JSON) },
};
const struct ttmon_cli_cmd ttmon_cmd_slots = {
	.name = "ttmon slots",
	.summary = "what each process used in each millisecond, from a slot file (ttmond --slots-out)",
	.args = "[OPTIONS] FILE",
	.about = "Shows a slot file (ttmond --slots-out), plain or gzip; - is standard input. A slot is a millisecond "
		 "of the host.\n"
		 "One line for each slot and process: CPU time on all CPUs, counters, cache and memory bandwidth, "
		 "transfers.",
	.notes = "In the table, - means not known, and >= marks a lower bound: a reading is missing or a family of "
		 "probes was not on.\n"
		 "Exit status: 0; 1 if the file is damaged or ends early (the good part was shown); 2 if it cannot be "
		 "read.",
	TTMON_CLI_OPTS(options),
	.size = sizeof(struct opts),
	.min_words = 1,
	.max_words = 1,
	.words = ":file",
	.run = run,
};
