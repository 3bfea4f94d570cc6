/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * client_server.h: for the tests of programs that query ttmond: a server in a thread of its own that
 * serves `routes`, which the test defines before it includes this, and files for output.
 */
#ifndef TTMON_CLIENT_SERVER_H
#define TTMON_CLIENT_SERVER_H

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "daemon/io/http/http.h"
#include "lib/os/log.h"

static char dir[64];
static char path[128];
static struct ttmon_http *http;
static pthread_t server;
static int stop_fd;
static void *server_main(void *arg)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = stop_fd };
	int ep = epoll_create1(EPOLL_CLOEXEC);

	(void)arg;
	epoll_ctl(ep, EPOLL_CTL_ADD, stop_fd, &ev);
	ev.data.fd = ttmon_http_fd(http);
	epoll_ctl(ep, EPOLL_CTL_ADD, ev.data.fd, &ev);
	do {
		if (epoll_wait(ep, &ev, 1, ttmon_http_timeout_ms(http)) < 0)
			ev.data.fd = -1;
		ttmon_http_run(http);
	} while (ev.data.fd != stop_fd);
	close(ep);
	return NULL;
}

static int set_up(void **state)
{
	const struct ttmon_http_cfg cfg = { .socket = path, .routes = routes, .nr_routes = ARRAY_SIZE(routes) };

	(void)state;
	strcpy(dir, "/tmp/ttmon-test-client.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/t.sock", dir);
	stop_fd = eventfd(0, EFD_CLOEXEC);
	if (stop_fd < 0 || ttmon_http_new(&cfg, &http))
		return -1;
	return pthread_create(&server, NULL, server_main, NULL);
}

static int tear_down(void **state)
{
	char lock[sizeof(dir) + 16];

	(void)state;
	if (eventfd_write(stop_fd, 1))
		return -1;
	pthread_join(server, NULL);
	ttmon_http_free(http);
	close(stop_fd);
	/* The lock stays beside the socket. */
	snprintf(lock, sizeof(lock), "%s/.t.sock.lock", dir);
	return unlink(lock) ? -1 : rmdir(dir);
}

/* What was written. */
static char out[16384], err_out[4096];

static void read_back(FILE *f, char *buf, size_t n)
{
	rewind(f);
	buf[fread(buf, 1, n - 1, f)] = '\0';
	fclose(f);
}

#endif
