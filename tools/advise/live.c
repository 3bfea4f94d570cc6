// SPDX-License-Identifier: GPL-2.0-only
/*
 * live.c: `ttmon advise --live` follows /v1/advice/live (docs/ttmond-api.md) and prints one line of
 * text for each line of advice. When the connection breaks, it reconnects until the service answers,
 * and continues after the last line received. If the service was restarted, it begins with the first
 * line of the new run.
 */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>

#include "lib/demangle/site.h"
#include "lib/read/client.h"
#include "tools/advise/advise.h"
#include "tools/cli/cmds.h"
#include "tools/cli/show.h"

#define MAX_LINE  65536
#define RETRY_MS  500
#define TIMEOUT_S 10 /* the service sends at least one line every 3 s */

struct live {
	const struct ttmon_advise_opts *o;
	uint64_t after;
	char start_id[40]; /* "": not known yet */
	char line[MAX_LINE];
	size_t len;
	bool too_long; /* the current line is too long: skip the rest of it */
	bool lost;     /* a message has said that the service is away */
};

static int64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * (int64_t)NSEC_PER_SEC + ts.tv_nsec;
}

/* Prints the time of day that belongs to a monotonic time, to the millisecond. */
static void print_time(uint64_t mono_ns)
{
	int64_t real =
		clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC) + (int64_t)MIN(mono_ns, (uint64_t)INT64_MAX / 2);
	time_t sec = (time_t)(real / (int64_t)NSEC_PER_SEC);
	char text[16] = "?";
	struct tm tm;

	if (localtime_r(&sec, &tm))
		strftime(text, sizeof(text), "%H:%M:%S", &tm);
	printf("%s.%03d ", text, (int)(real % (int64_t)NSEC_PER_SEC / (int64_t)NSEC_PER_MS));
}

static void show_advice(const json_t *line)
{
	const char *advice = ttmon_show_str(line, "advice"), *site = ttmon_show_str(line, "call_site");
	char comm[20], said[16], where[TTMON_SITE_WHOLE], label[80], size[TTMON_FMT_LEN], bytes[TTMON_FMT_LEN],
		gain[TTMON_FMT_LEN];
	const json_t *gain_ns = ttmon_show_at(line, "gain_ns");
	uint64_t copies = ttmon_show_u64(line, "copies") + ttmon_show_u64(line, "copies_back");
	char reason[100];

	print_time(ttmon_show_u64(line, "ts_ns"));
	printf("%-6s %s[%" PRIu64 "] ",
	       ttmon_fmt_text(said, sizeof(said), strcmp(advice, "checkpoint") ? advice : "period"),
	       ttmon_fmt_text(comm, sizeof(comm), ttmon_show_str(line, "comm")), ttmon_show_u64(line, "pid"));
	ttmon_fmt_text(label, sizeof(label), ttmon_show_str(line, "label"));
	if (!strcmp(advice, "checkpoint")) {
		printf("%" PRIu64 " begins: %s\n", ttmon_show_u64(line, "period"), label);
		return;
	}
	ttmon_site_show_text(where, sizeof(where), *site ? site : ttmon_show_str(line, "addr"), 0);
	printf("%s: %s %s", where, ttmon_fmt_bytes(size, sizeof(size), ttmon_show_u64(line, "size")),
	       ttmon_fmt_text(said, sizeof(said), ttmon_show_str(line, "method")));
	if (copies)
		printf(", %" PRIu64 " %s, %s", copies, copies == 1 ? "copy" : "copies",
		       ttmon_fmt_bytes(bytes, sizeof(bytes),
				       ttmon_show_u64(line, "bytes") + ttmon_show_u64(line, "bytes_back")));
	else
		printf(", never copied");
	if (json_integer_value(gain_ns) > 0)
		printf(", saves %s", ttmon_fmt_ns(gain, sizeof(gain), (uint64_t)json_integer_value(gain_ns)));
	if (*ttmon_show_str(line, "reason"))
		printf(": %s", ttmon_fmt_text(reason, sizeof(reason), ttmon_show_str(line, "reason")));
	printf(" (%.0f%%)\n", 100 * json_number_value(ttmon_show_at(line, "confidence")));
}

/* Handles a received line. A line of an unknown form is ignored. */
static void take_line(struct live *l)
{
	json_t *line = json_loadb(l->line, l->len, JSON_REJECT_DUPLICATES, NULL);
	const char *id = ttmon_show_str(line, "start_id");

	if (l->o->json) {
		fwrite(l->line, 1, l->len, stdout);
		putchar('\n');
	}
	if (json_object_get(line, "head")) {
		if (*l->start_id && strcmp(l->start_id, id)) {
			l->after = 0;
			fprintf(stderr, "ttmon: the service was restarted\n");
		}
		snprintf(l->start_id, sizeof(l->start_id), "%.*s", (int)strspn(id, "0123456789abcdef"), id);
		l->lost = false;
	} else if (json_object_get(line, "missed")) {
		if (!l->o->json)
			printf("%" PRIu64 " lines are missing: the service no longer has them\n",
			       ttmon_show_u64(line, "missed"));
	} else if (json_object_get(line, "seq")) {
		l->after = ttmon_show_u64(line, "seq");
		if (!l->o->json)
			show_advice(line);
	}
	json_decref(line);
}

static int data(void *ctx, const char *at, size_t n)
{
	struct live *l = ctx;

	for (size_t i = 0; i < n; i++) {
		if (at[i] != '\n') {
			l->too_long |= l->len == MAX_LINE;
			if (!l->too_long)
				l->line[l->len++] = at[i];
			continue;
		}
		if (!l->too_long)
			take_line(l);
		l->len = 0;
		l->too_long = false;
	}
	return fflush(stdout) ? -errno : 0;
}

static int connect_once(struct live *l, int cancel, int *status)
{
	const struct ttmon_client_stream to = { .cancel = cancel, .timeout_s = TIMEOUT_S, .data = data, .ctx = l };
	char path[160], pid[32] = "", start[64] = "";

	if (l->o->pid)
		snprintf(pid, sizeof(pid), "&pid=%" PRIu64, l->o->pid);
	if (*l->start_id)
		snprintf(start, sizeof(start), "&start=%s", l->start_id);
	snprintf(path, sizeof(path), "/v1/advice/live?follow=1&after=%" PRIu64 "%s%s", l->after, start, pid);
	l->len = 0;
	l->too_long = false;
	*status = 0;
	return ttmon_client_open_stream(l->o->socket, path, &to, status);
}

static int refused(int status)
{
	fprintf(stderr, "ttmon: the service answers %d: %s\n", status,
		status == 404	? "it gives no live advice (--trace-only, or older than this)"
		: status == 503 ? "too many follow it already"
				: "no live advice");
	return TTMON_EXIT_ERROR;
}

static int follow(struct live *l, int cancel)
{
	struct pollfd interrupted = { .fd = cancel, .events = POLLIN };

	for (;;) {
		int status, err = connect_once(l, cancel, &status);

		if (err == -ECANCELED)
			return 0;
		if (status && status != 200)
			return refused(status);
		if (ferror(stdout))
			return 0;
		if (!*l->start_id) {
			fprintf(stderr, "ttmon: no answer from %s: %s\n", l->o->socket,
				err ? strerror(-err) : "the connection ended at once");
			return TTMON_EXIT_ERROR;
		}
		if (!l->lost)
			fprintf(stderr, "ttmon: the service is away, waiting for it\n");
		l->lost = true;
		if (poll(&interrupted, 1, RETRY_MS) > 0)
			return 0;
	}
}

int ttmon_advise_live(const struct ttmon_advise_opts *o)
{
	_cleanup_free_ struct live *l = calloc(1, sizeof(*l));
	_cleanup_close_ int cancel = -1;
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	cancel = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (!l || cancel < 0) {
		fprintf(stderr, "ttmon: %s\n", strerror(l ? errno : ENOMEM));
		return TTMON_EXIT_ERROR;
	}
	l->o = o;
	return follow(l, cancel);
}
