// SPDX-License-Identifier: GPL-2.0-only
/*
 * link.c: a thread that follows one route of the daemon. It blocks all signals. When the reply ends,
 * it connects again, after 0.2 s at first and up to 5 s later, and continues after the last line it
 * received.
 */
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include "lib/advisor/advisor_int.h"
#include "lib/os/thread.h"
#include "lib/read/client.h"
#include "lib/read/db.h"

#define IDLE_S	     15 /* the daemon sends something at least every 3 s */
#define RETRY_MIN_MS 200
#define RETRY_MAX_MS 5000
#define STACK_SIZE   (1u << 20)

const char *ttmon_socket_or(const char *socket)
{
	const char *env = socket ? NULL : secure_getenv("TTMON_SOCKET");

	return socket ? socket : env && env[0] ? env : TTMON_SOCKET_DEFAULT;
}

bool ttmon_link_is_own(const struct ttmon_link *l)
{
	return l->pid == getpid();
}

bool ttmon_link_is_new(struct ttmon_link *l, uint64_t seq)
{
	if (seq <= l->after)
		return false;
	l->after = seq;
	l->gone = 0;
	return true;
}

static void head_line(struct ttmon_link *l, const json_t *row)
{
	const char *id = ttmon_db_str(row, "start_id", "");
	bool fits = strlen(id) < sizeof(l->start_id) && id[strspn(id, "0123456789abcdef")] == '\0';
	uint64_t first = ttmon_db_get(row, "first", 1);

	/* The daemon was restarted, so line numbers begin again. */
	if (!fits || strcmp(id, l->start_id)) {
		snprintf(l->start_id, sizeof(l->start_id), "%s", fits ? id : "");
		l->after = l->gone = 0;
		if (first)
			l->earlier += first - 1;
	}
	if (!l->connected)
		l->connects++;
	l->connected = true;
	if (l->cfg.head)
		l->cfg.head(l->cfg.ctx);
}

static void miss(struct ttmon_link *l, uint64_t n)
{
	l->missed += n;
	l->gone += n;
}

static void take_line(struct ttmon_link *l, const char *at, size_t n)
{
	json_t *row = *at == '[' ? NULL : json_loadb(at, n, 0, NULL);
	uint64_t missed;

	if (json_object_get(row, "head"))
		head_line(l, row);
	else if (ttmon_db_u64(row, "missed", &missed))
		miss(l, missed);
	else
		l->cfg.line(l, at, n, row);
	json_decref(row);
}

/* Adds received bytes to the current line; the rest of a line that is too long is skipped. */
static void add_part(struct ttmon_link *l, const char *at, size_t n)
{
	if (n > sizeof(l->part) - l->len) {
		l->too_long = true;
		return;
	}
	memcpy(l->part + l->len, at, n);
	l->len += n;
}

static int on_data(void *ctx, const char *at, size_t n)
{
	struct ttmon_link *l = ctx;
	const char *end = at + n;

	while (at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		size_t len = (size_t)((nl ? nl : end) - at);

		if (nl && !l->len && !l->too_long && len && len <= sizeof(l->part)) {
			take_line(l, at, len);
		} else {
			add_part(l, at, len);
			if (nl && l->len && !l->too_long)
				take_line(l, l->part, l->len);
		}
		if (!nl)
			break;
		l->len = 0;
		l->too_long = false;
		at = nl + 1;
	}
	return 0;
}

static void *follow(void *arg)
{
	struct ttmon_link *l = arg;
	const struct ttmon_client_stream to = { .cancel = l->cancel, .timeout_s = IDLE_S, .data = on_data, .ctx = l };
	struct pollfd stop = { .fd = l->cancel, .events = POLLIN };
	char path[160];
	int wait_ms = RETRY_MIN_MS, status;

	do {
		/* The number of missed lines already reported is sent back, so they are not reported twice. */
		snprintf(path, sizeof(path), "%s&after=%llu%s%s", l->cfg.route,
			 (unsigned long long)(l->after + l->gone), l->start_id[0] ? "&start=" : "", l->start_id);
		l->len = 0;
		l->too_long = false;
		/* However the stream ends, the loop connects again. */
		if (ttmon_client_open_stream(l->socket, path, &to, &status) == -ECANCELED)
			break;
		wait_ms = l->connected ? RETRY_MIN_MS : MIN(2 * wait_ms, RETRY_MAX_MS);
		if (l->connected)
			l->disconnects++;
		l->connected = false;
	} while (poll(&stop, 1, wait_ms) <= 0);
	return NULL;
}

static int start(struct ttmon_link *l)
{
	pthread_attr_t attr;
	int err;

	if (pthread_attr_init(&attr))
		return -ENOMEM;
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	err = ttmon_thread_start(&l->thread, &attr, l->cfg.thread, follow, l);
	pthread_attr_destroy(&attr);
	return err ? -EAGAIN : 0;
}

static void release(struct ttmon_link *l)
{
	if (l->cancel >= 0)
		close(l->cancel);
	free(l->socket);
}

int ttmon_link_begin(struct ttmon_link *l, const char *socket, const struct ttmon_link_cfg *cfg)
{
	int err;

	l->cfg = *cfg;
	l->pid = getpid();
	l->socket = strdup(socket);
	l->cancel = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = l->socket ? l->cancel >= 0 ? start(l) : -errno : -ENOMEM;
	if (err)
		release(l);
	return err;
}

void ttmon_link_end(struct ttmon_link *l)
{
	if (ttmon_link_is_own(l) && eventfd_write(l->cancel, 1) == 0)
		pthread_join(l->thread, NULL);
	release(l);
}
