// SPDX-License-Identifier: GPL-2.0-only
/* read.c: reads a trace to its end or to the first signal, and shows the progress on a terminal. */
#include <signal.h>
#include <time.h>

#include "tools/memtrace/tool.h"

#define WAIT_MS 200 /* longest wait for more data of a pipe: the delay of a signal or tick */
#define TICK_NS (1000 * NSEC_PER_MS)

static volatile sig_atomic_t ended;

static void on_signal(int nr)
{
	ended = nr;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void hand_on(void *ctx, const char *line, size_t n)
{
	(void)ctx;
	fwrite(line, 1, n, stdout);
	putchar('\n');
}

/* Prints a progress line, which the next one, or ttmon_mt_read_trace() at the end, overwrites. */
static void progress(const struct ttmon_mt_in *in, uint64_t since_ns)
{
	const struct ttmon_mt_stats *st = ttmon_mt_in_stats(in);
	char bytes[TTMON_FMT_LEN], of[TTMON_FMT_LEN], rate[TTMON_FMT_LEN], count[TTMON_FMT_LEN];
	uint64_t at = 0, size = ttmon_mt_in_size(in, &at), ns = MAX(now_ns() - since_ns, 1);

	at = size ? at : st->bytes;
	fprintf(stderr, "\r%s", ttmon_fmt_bytes(bytes, sizeof(bytes), at));
	if (size)
		fprintf(stderr, " of %s, %.0f%%", ttmon_fmt_bytes(of, sizeof(of), size),
			100.0 * (double)MIN(at, size) / (double)size);
	fprintf(stderr, ", %s records, %s/s\033[K", ttmon_fmt_count(count, sizeof(count), st->records),
		ttmon_fmt_bytes(rate, sizeof(rate), (uint64_t)((double)at * 1e9 / (double)ns)));
}

/*
 * Some error texts begin with the file name already; those of a list of traces with the name of one of
 * its files.
 */
static void say(const struct ttmon_mt_read *r, const char *why, int err)
{
	const char *path = strcmp(r->path, "-") ? r->path : "standard input";
	size_t n = strlen(path);
	bool named = !strncmp(why, path, n) && why[n] == ':';
	char clean[600];

	if (r->leave)
		r->leave(r->ctx);
	ttmon_fmt_text(clean, sizeof(clean), *why ? why : strerror(-err));
	fprintf(stderr, "ttmon %s: %s%s%s\n", r->args->name, named ? "" : path, named ? "" : ": ", clean);
}

/* Reports that the trace is not complete. whole: it was read to its end. */
static void say_missing(const struct ttmon_mt_read *r, const struct ttmon_mt_stats *st, bool whole)
{
	const char *path = strcmp(r->path, "-") ? r->path : "standard input";
	char bad[TTMON_FMT_LEN], clean[200], text[120] = "";

	if (st->malformed)
		snprintf(text, sizeof(text), "%s%s line%s or record%s could not be parsed (torn, cut) and %s left out",
			 whole && st->cut ? "; " : "", ttmon_fmt_count(bad, sizeof(bad), st->malformed),
			 st->malformed == 1 ? "" : "s", st->malformed == 1 ? "" : "s",
			 st->malformed == 1 ? "was" : "were");
	if (*text || (whole && st->cut))
		fprintf(stderr, "ttmon %s: %s: %s%s\n", r->args->name, ttmon_fmt_text(clean, sizeof(clean), path),
			whole && st->cut ? "the trace ends in the middle: it was cut" : "", text);
}

static bool is_without_records(const struct ttmon_mt_in *in)
{
	const struct ttmon_mt_dict *dict = ttmon_mt_in_dict(in);

	return ttmon_mt_in_stats(in)->cut && !ttmon_mt_in_stats(in)->records && !dict->nr_aggs && !dict->nr_touches;
}

static int read_on(const struct ttmon_mt_read *r, struct ttmon_mt_in *in, bool *interrupted)
{
	bool told = false, tell = !r->tick && isatty(STDERR_FILENO);
	uint64_t start = now_ns(), last = start, now;
	char why[600] = "";
	int more = 1, err = 0;

	while (more > 0 && !err && !ended) {
		const struct ttmon_mt_rec *recs = NULL;
		size_t nr = 0;

		more = ttmon_mt_in_next(in, &recs, &nr, why, sizeof(why));
		if (more < 0)
			break;
		err = r->take(r->ctx, ttmon_mt_in_dict(in), recs, nr);
		if (!tell && !r->tick && !r->args->pass)
			continue;
		now = now_ns();
		if (now - last < TICK_NS)
			continue;
		last = now;
		if (r->tick)
			r->tick(r->ctx, in);
		else if (tell)
			progress(in, start);
		told |= tell;
		if (r->args->pass)
			fflush(stdout);
	}
	if (told)
		fputs("\r\033[K", stderr);
	*interrupted = ended != 0;
	if (more >= 0 || (ended && more == -EINTR))
		return err;
	say(r, why, more);
	return more;
}

int ttmon_mt_read_trace(const struct ttmon_mt_read *r, struct ttmon_mt_in **ret, bool *interrupted)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct ttmon_mt_in_opts opts = {
		.opcodes = r->args->opcodes,
		.live = true,
		.wait_ms = WAIT_MS,
		.foreign = r->args->pass ? hand_on : NULL,
		.known = r->map ? ttmon_mt_map_known : NULL,
		.known_ctx = r->map,
	};
	struct sigaction act = { .sa_handler = on_signal }, old[ARRAY_SIZE(signals)];
	_cleanup_(ttmon_mt_in_freep) struct ttmon_mt_in *in = NULL;
	char why[600] = "";
	int err;

	*ret = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &act, &old[i]);
	err = ttmon_mt_in_open(r->path, &opts, &in, why, sizeof(why));
	if (err && !ended)
		say(r, why, err);
	if (!err) {
		err = read_on(r, in, interrupted);
		if (r->bare)
			say_missing(r, ttmon_mt_in_stats(in), !err && !*interrupted);
		/* The file is no trace, which an error message has said: there is nothing to show. */
		if (!err || ttmon_mt_in_stats(in)->records || ttmon_mt_in_dict(in)->nr_sites ||
		    ttmon_mt_in_dict(in)->nr_launches || ttmon_mt_in_dict(in)->nr_kernels ||
		    ttmon_mt_in_dict(in)->nr_touches)
			*ret = TAKE_PTR(in);
	}
	/* No figure of it says anything of the program. */
	if (!err && !*interrupted && is_without_records(*ret)) {
		err = -EBADMSG;
		say(r, "the trace was cut before its first record", err);
	}
	/* A second one ends the program while it prints. */
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaction(signals[i], &old[i], NULL);
	return err;
}
