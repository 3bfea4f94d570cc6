// SPDX-License-Identifier: GPL-2.0-only
/* cli.c: see cli.h. The only loop over getopt_long(3). */
#include "lib/os/cli.h"

#include <getopt.h>
#include <stdarg.h>

#include "lib/base/fmt.h"
#include "lib/os/log.h"

#define LONG	 256 /* the getopt value of row i is LONG + i */
#define MAX_ROWS 128

static const struct ttmon_cli_opt help_row = { "help", 'h', "=", "this text", .man = NULL };
static const struct ttmon_cli_opt help_all_row = { "help", 'h', "=", "this text; --help=all: rare options too",
						   .words = "all man metrics" };

static bool has_rare(const struct ttmon_cli_cmd *cmd)
{
	for (size_t i = 0; i < cmd->nr_opts; i++)
		if (cmd->opts[i].rare)
			return true;
	return false;
}

const struct ttmon_cli_opt *ttmon_cli_row(const struct ttmon_cli_cmd *cmd, size_t *i)
{
	while (*i < cmd->nr_opts && cmd->opts[*i].of && !(cmd->opts[*i].of & cmd->is))
		++*i;
	if (*i < cmd->nr_opts)
		return &cmd->opts[(*i)++];
	return (*i)++ == cmd->nr_opts ? has_rare(cmd) ? &help_all_row : &help_row : NULL;
}

int ttmon_cli_bad(const struct ttmon_cli *cli, const char *fmt, ...)
{
	char text[1024], clean[1024];
	const char *see;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ttmon_fmt_text(clean, sizeof(clean), text);
	see = *clean && clean[strlen(clean) - 1] == '?' ? " See" : ", see";
	if (cli->cmd->logs)
		log_error("%s%s %s --help", clean, see, cli->cmd->name);
	else
		fprintf(stderr, "%s: %s%s %s --help\n", cli->cmd->name, clean, see, cli->cmd->name);
	return -EINVAL;
}

/* ---- what was meant ---- */

/* Letters to insert, to leave out, to replace or to exchange with the next, until a is b. */
static unsigned int distance(const char *a, const char *b)
{
	unsigned int rows[3][33], *before = rows[0], *last = rows[1], *row = rows[2];
	size_t na = strlen(a), nb = strlen(b);

	if (na > 32 || nb > 32)
		return UINT32_MAX;
	for (size_t k = 0; k <= nb; k++)
		last[k] = before[k] = (unsigned int)k;
	for (size_t i = 1; i <= na; i++) {
		unsigned int *free_row = before;

		row[0] = (unsigned int)i;
		for (size_t k = 1; k <= nb; k++) {
			row[k] = MIN(MIN(last[k], row[k - 1]) + 1, last[k - 1] + (a[i - 1] != b[k - 1]));
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				row[k] = MIN(row[k], before[k - 2] + 1);
		}
		before = last;
		last = row;
		row = free_row;
	}
	return last[nb];
}

struct near {
	const char *word, *best;
	unsigned int least;
	char all[640]; /* "a, b, c" */
	bool cut;
};

/* One that would be right; it lives as long as the search. */
static void near_try(struct near *n, const char *dashes, const char *name)
{
	size_t at = strlen(n->all), word = strlen(n->word);
	unsigned int d = distance(n->word, name);

	/* A third of its letters may be wrong; what it begins is meant sooner. */
	if (word > 1 && !strncmp(n->word, name, word))
		d = MIN(d, 1);
	if (d <= MAX(word / 3, (size_t)1) && d < n->least) {
		n->least = d;
		n->best = name;
	}
	if (at + strlen(dashes) + strlen(name) + 3 < sizeof(n->all))
		snprintf(n->all + at, sizeof(n->all) - at, "%s%s%s", at ? ", " : "", dashes, name);
	else
		n->cut = true;
}

/* "; did you mean --socket?" or "; there are --socket, --json"; where there are none "". */
static const char *near_text(const struct near *n, const char *dashes, char *buf, size_t size)
{
	if (n->best)
		snprintf(buf, size, "; did you mean %s%s?", dashes, n->best);
	else if (*n->all)
		snprintf(buf, size, "; there are %s%s", n->all, n->cut ? " and more" : "");
	else
		*buf = '\0';
	return buf;
}

int ttmon_cli_bad_word(const struct ttmon_cli *cli, const char *what, const char *word, const char *words)
{
	struct near n = { .word = word, .least = UINT32_MAX };
	_cleanup_free_ char *copy = strdup(words);
	char text[700], *save = NULL;

	for (char *w = copy ? strtok_r(copy, " ", &save) : NULL; w; w = strtok_r(NULL, " ", &save))
		if (*w != ':')
			near_try(&n, "", w);
	return ttmon_cli_bad(cli, "no such %s: %s%s", what, word, near_text(&n, "", text, sizeof(text)));
}

/* ---- values ---- */

static void put(const struct ttmon_cli *cli, uint64_t v)
{
	void *at = (char *)cli->opts + cli->opt->at;

	if (cli->opt->size == sizeof(bool))
		*(bool *)at = v;
	else if (cli->opt->size == sizeof(uint32_t))
		*(uint32_t *)at = (uint32_t)v;
	else
		*(uint64_t *)at = v;
}

static int take_number(const struct ttmon_cli *cli, const char *arg)
{
	static const char units[] = "KMGT";
	const struct ttmon_cli_opt *o = cli->opt;
	bool size = o->kind == TTMON_CLI_KIND_SIZE;
	unsigned long long v;
	unsigned int shift = 0;
	const char *unit;
	char *end;

	errno = 0;
	v = strtoull(arg, &end, 10);
	unit = size && *end ? strchr(units, *end) : NULL;
	if (unit) {
		shift = 10 * (unsigned int)(unit - units + 1);
		end++;
	}
	if (*arg < '0' || *arg > '9' || *end || errno || v > o->max >> shift || v << shift < o->min)
		return ttmon_cli_bad(cli, "--%s wants a %s from %llu to %llu%s, not \"%s\"", o->name,
				     size ? "size" : "number", (unsigned long long)o->min, (unsigned long long)o->max,
				     size ? ", K, M, G or T may follow it" : "", arg);
	put(cli, (uint64_t)v << shift);
	return 0;
}

static int take_fraction(const struct ttmon_cli *cli, const char *arg)
{
	const struct ttmon_cli_opt *o = cli->opt;
	double v, scale = o->scale ? o->scale : 1, lo = (double)o->min / scale, hi = (double)o->max / scale;
	char *end;

	v = strtod(arg, &end);
	if (end == arg || *end || !(v >= lo && v <= hi))
		return ttmon_cli_bad(cli, "--%s wants a number from %g to %g, not \"%s\"", o->name, lo, hi, arg);
	if (o->scale)
		put(cli, (uint64_t)(v * o->scale + 0.5));
	else
		*(double *)((char *)cli->opts + o->at) = v;
	return 0;
}

static int take_word(const struct ttmon_cli *cli, const char *arg)
{
	struct near near = { .word = arg, .least = UINT32_MAX };
	const char *p = cli->opt->words;
	char all[256] = "", word[64], meant[96] = "";

	for (uint64_t i = cli->opt->min; *p; i++) {
		size_t n = strcspn(p, " ");

		if (strlen(arg) == n && !memcmp(arg, p, n)) {
			put(cli, i);
			return 0;
		}
		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%.*s",
			 !*all		    ? ""
			 : p[n] && p[n + 1] ? ", "
					    : " or ",
			 (int)n, p);
		snprintf(word, sizeof(word), "%.*s", (int)n, p);
		near.best = NULL;
		near_try(&near, "", word);
		if (near.best)
			snprintf(meant, sizeof(meant), "; did you mean %s?", word);
		p += n + (p[n] == ' ');
	}
	return ttmon_cli_bad(cli, "--%s wants %s, not \"%s\"%s", cli->opt->name, all, arg, meant);
}

static int take(struct ttmon_cli *cli, const char *arg)
{
	const struct ttmon_cli_opt *o = cli->opt;

	if (o->given)
		*((bool *)cli->opts + o->given - 1) = true;
	switch (o->kind) {
	case TTMON_CLI_KIND_SET:
		put(cli, o->max);
		return 0;
	case TTMON_CLI_KIND_BITS:
		*(unsigned int *)((char *)cli->opts + o->at) |= (unsigned int)o->max;
		return 0;
	case TTMON_CLI_KIND_TEXT:
		*(const char **)((char *)cli->opts + o->at) = arg;
		return 0;
	case TTMON_CLI_KIND_NUMBER:
	case TTMON_CLI_KIND_SIZE:
		return take_number(cli, arg);
	case TTMON_CLI_KIND_FRACTION:
		return take_fraction(cli, arg);
	case TTMON_CLI_KIND_WORD:
		return take_word(cli, arg);
	case TTMON_CLI_KIND_CALL:
		return o->take(cli, arg);
	}
	return -EINVAL;
}

/* ---- the loop ---- */

/* Reports an error of getopt. */
static int refuse(const struct ttmon_cli *cli, const struct ttmon_cli_opt *const *rows, int c, const char *word)
{
	char letter[] = { '-', (char)optopt, '\0' };
	const char *name = optopt > 0 && optopt < LONG ? letter : word;
	struct near near = { .least = UINT32_MAX };
	const struct ttmon_cli_opt *row;
	char given[64], text[700];
	size_t n = 0;

	for (size_t i = 0; c == ':' && (row = ttmon_cli_row(cli->cmd, &i));)
		if (optopt >= LONG ? row == rows[optopt - LONG] : row->letter == optopt)
			return ttmon_cli_bad(cli, "a value is missing after %s%s: %s", optopt >= LONG ? "--" : "",
					     optopt >= LONG ? row->name : name, row->arg);
	if (optopt >= LONG)
		return ttmon_cli_bad(cli, "takes no value: %s", name);
	snprintf(given, sizeof(given), "%.*s", (int)strcspn(name + strspn(name, "-"), "="), name + strspn(name, "-"));
	near.word = given;
	for (size_t i = 0; (row = ttmon_cli_row(cli->cmd, &i)); n++)
		near_try(&near, "--", row->name);
	/* A list that long is what --help is for. */
	if (n > 16)
		*near.all = '\0';
	/* One letter is near to everything. */
	if (!given[1])
		near.best = NULL;
	return ttmon_cli_bad(cli, "no such option: %s%s", name, near_text(&near, "--", text, sizeof(text)));
}

/*
 * Reads the options. scan: takes no option, and stops at the first word; optind is then where the
 * words begin. Returns 0; 1 after --help; or the error of take().
 */
static int loop(struct ttmon_cli *cli, int argc, char **argv, bool scan)
{
	const struct ttmon_cli_opt *rows[MAX_ROWS], *row;
	struct option longs[MAX_ROWS + 1] = { 0 };
	char shorts[2 * MAX_ROWS + 3] = "";
	int c, err = 0;
	size_t n = 0;

	snprintf(shorts, sizeof(shorts), scan || cli->cmd->stops ? "+:" : ":");
	for (size_t i = 0; n < MAX_ROWS && (row = ttmon_cli_row(cli->cmd, &i)); n++) {
		bool maybe = row->arg && *row->arg == '=';

		rows[n] = row;
		longs[n].name = row->name;
		longs[n].has_arg = maybe ? optional_argument : row->arg ? required_argument : no_argument;
		longs[n].val = LONG + (int)n;
		if (row->letter)
			snprintf(shorts + strlen(shorts), sizeof(shorts) - strlen(shorts), "%c%s", row->letter,
				 row->arg && !maybe ? ":" : "");
	}
	/* 0, not 1: glibc then resets its state from an earlier argv. */
	optind = 0;
	opterr = 0;
	while (!err && (c = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		cli->opt = c >= LONG ? rows[c - LONG] : NULL;
		for (size_t i = 0; i < n && !cli->opt; i++)
			if (rows[i]->letter == c)
				cli->opt = rows[i];
		if (!cli->opt || c == ':' || c == '?')
			/* A group that is also a command reads its options again later, and reports the error then. */
			return scan && cli->cmd->run ? -EINVAL : refuse(cli, rows, c, argv[optind - 1]);
		if (cli->opt == &help_row || cli->opt == &help_all_row) {
			if (optarg && !strcmp(optarg, "complete"))
				ttmon_cli_complete(cli->cmd, argc - optind, argv + optind);
			else
				ttmon_cli_help(cli->cmd, optarg, stdout);
			return 1;
		}
		/* Options before a command belong to the command. */
		if (!scan || (cli->opt->take && !cli->cmd->run))
			err = take(cli, optarg);
	}
	return err;
}

int ttmon_cli_parse(const struct ttmon_cli_cmd *cmd, int argc, char **argv, void *opts, struct ttmon_cli *ret)
{
	struct ttmon_cli cli = { .cmd = cmd, .opts = opts };
	int err;

	if (cmd->defaults)
		memcpy(opts, cmd->defaults, cmd->size);
	err = loop(&cli, argc, argv, false);
	if (err)
		return err;
	cli.words = argv + optind;
	cli.nr_words = argc - optind;
	cli.dashes = optind > 1 && !strcmp(argv[optind - 1], "--");
	if (cmd->max_words >= 0 && cli.nr_words > cmd->max_words)
		return cmd->max_words
			       ? ttmon_cli_bad(&cli, "takes no more than %.*s: %s is too much",
					       (int)strcspn(cmd->args, "\n"), cmd->args, cli.words[cmd->max_words])
			       : ttmon_cli_bad(&cli, "takes no argument: %s", cli.words[0]);
	if (cli.nr_words < cmd->min_words)
		return ttmon_cli_bad(&cli, "an argument is missing: %s %.*s", cmd->name, (int)strcspn(cmd->args, "\n"),
				     cmd->args);
	*ret = cli;
	return 0;
}

static int leaf(const struct ttmon_cli_cmd *cmd, int argc, char **argv)
{
	_cleanup_free_ void *opts = calloc(1, MAX(cmd->size, (size_t)1));
	struct ttmon_cli cli;
	int err;

	if (!opts) {
		fprintf(stderr, "%s: out of memory\n", cmd->name);
		return -ENOMEM;
	}
	err = ttmon_cli_parse(cmd, argc, argv, opts, &cli);
	return err > 0 ? 0 : err ? err : cmd->run(&cli, opts);
}

/* word NULL: none was given. */
static int no_command(const struct ttmon_cli *cli, const char *word)
{
	struct near near = { .word = word ? word : "", .least = UINT32_MAX };
	char text[700];

	for (size_t i = 0; cli->cmd->subs[i]; i++)
		near_try(&near, "", strrchr(cli->cmd->subs[i]->name, ' ') + 1);
	if (!word) {
		near.best = NULL;
		/* The front door: a newcomer is shown what the commands do. */
		if (!strchr(cli->cmd->name, ' ')) {
			fprintf(stderr, "%s: a command is missing\n\n", cli->cmd->name);
			ttmon_cli_help(cli->cmd, NULL, stderr);
			return -EINVAL;
		}
	}
	near_text(&near, "", text, sizeof(text));
	return word ? ttmon_cli_bad(cli, "no such command: %s%s", word, text)
		    : ttmon_cli_bad(cli, "a command is missing%s", text);
}

/*
 * Returns the command of the group that the first word names, and moves the options before the word
 * behind it; NULL: no such command.
 */
static int group(const struct ttmon_cli_cmd *cmd, int argc, char **argv)
{
	struct ttmon_cli cli = { .cmd = cmd };
	int err = loop(&cli, argc, argv, true), at = optind;
	const char *last;

	if (err > 0)
		return 0;
	if (err && !cmd->run)
		return err;
	for (size_t i = 0; !err && at < argc && cmd->subs[i]; i++) {
		last = strrchr(cmd->subs[i]->name, ' ') + 1;
		if (strcmp(argv[at], last) != 0)
			continue;
		memmove(&argv[2], &argv[1], (size_t)(at - 1) * sizeof(*argv));
		argv[1] = (char *)last;
		return ttmon_cli_run(cmd->subs[i], argc - 1, argv + 1);
	}
	if (cmd->run)
		return leaf(cmd, argc, argv);
	return no_command(&cli, at < argc ? argv[at] : NULL);
}

int ttmon_cli_run(const struct ttmon_cli_cmd *cmd, int argc, char **argv)
{
	int status = cmd->subs ? group(cmd, argc, argv) : leaf(cmd, argc, argv);

	return status < 0 ? TTMON_CLI_MISUSE : status;
}
