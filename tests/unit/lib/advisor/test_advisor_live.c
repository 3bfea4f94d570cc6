// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_advisor_live.c: libttmon and a daemon that is there, is not, goes away, and says what it should
 * not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "lib/advisor/advisor_int.h"

static char dir[] = "/tmp/ttmon-test-live.XXXXXX";
static char path[64];

/* ---- a daemon: one connection at a time, answers by hand ---- */

static int listener = -1;

static void daemon_up(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	assert_true(listener >= 0 && !bind(listener, (struct sockaddr *)&addr, sizeof(addr)) && !listen(listener, 8));
}

static void daemon_down(void)
{
	close(listener);
	unlink(path);
}

static char request[2048];

/* Takes a request: its first line in `request`. Given 10 s. */
static int next_request(void)
{
	struct timeval limit = { .tv_sec = 10 };
	size_t n = 0;
	int fd;

	setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	while (n < sizeof(request) - 1) {
		ssize_t got = recv(fd, request + n, sizeof(request) - 1 - n, 0);

		assert_true(got > 0);
		n += (size_t)got;
		request[n] = '\0';
		if (strstr(request, "\r\n\r\n"))
			break;
	}
	*strchr(request, '\r') = '\0';
	return fd;
}

static void say(int fd, const char *text)
{
	char chunk[16384];
	int n = snprintf(chunk, sizeof(chunk), "%zx\r\n%s\r\n", strlen(text), text);

	assert_int_equal(send(fd, chunk, (size_t)n, MSG_NOSIGNAL), n);
}

static void head(int fd, const char *start_id)
{
	static const char http[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
	char line[200];

	assert_int_equal(send(fd, http, sizeof(http) - 1, MSG_NOSIGNAL), sizeof(http) - 1);
	snprintf(line, sizeof(line), "{\"head\":true,\"start_id\":\"%s\",\"restarted\":false,\"first\":1,\"next\":1}\n",
		 start_id);
	say(fd, line);
}

static void advice(int fd, unsigned int seq, const char *kind, unsigned int alloc)
{
	char line[400];

	snprintf(line, sizeof(line),
		 "{\"seq\":%u,\"ts_ns\":\"123\",\"advice\":\"%s\",\"pid\":1,\"alloc\":%u,\"addr\":\"0x7f00%02x000000\","
		 "\"size\":4096,"
		 "\"site\":\"f7a1c02b9d3e4455\",\"ordinal\":2,\"copies\":5,\"bytes\":99,\"gain_ns\":-7,"
		 "\"confidence\":0.5}\n",
		 seq, kind, alloc, alloc);
	say(fd, line);
}

/* ---- the library ---- */

static struct ttmon_advisor *subscribed(void)
{
	const struct ttmon_advisor_opts opts = { .size = sizeof(opts), .socket = path };
	struct ttmon_advisor *adv = NULL;
	char why[80];

	assert_int_equal(ttmon_advisor_open(NULL, 0, &opts, &adv, why, sizeof(why)), 0);
	assert_int_equal(ttmon_advisor_subscribe(adv), 0);
	assert_int_equal(ttmon_advisor_subscribe(adv), -EALREADY);
	return adv;
}

static void nap(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
}

#define wait_until(cond)                              \
	do {                                          \
		unsigned int tries_ = 0;              \
		while (!(cond)) {                     \
			nap();                        \
			assert_true(tries_++ < 2000); \
		}                                     \
	} while (0)

static struct ttmon_advisor_stats stats_of(struct ttmon_advisor *adv)
{
	struct ttmon_advisor_stats st;

	ttmon_advisor_get_stats(adv, &st);
	return st;
}

static void hears_and_goes_on_behind_the_last_line(void **state)
{
	struct ttmon_live_advice a;
	struct ttmon_advisor *adv;
	int fd;

	(void)state;
	daemon_up();
	adv = subscribed();
	fd = next_request();
	assert_string_equal(request, "GET /v1/advice/live?follow=1&pid=self&after=0 HTTP/1.1");
	head(fd, "00000000000000aa");
	advice(fd, 3, "pin", 1);
	say(fd, "{\"alive\":\"5\"}\n{\"missed\":12}\n{\"seq\":4,\"advice\":\"checkpoint\",\"label\":\"x\"}\n");
	/* In pieces, and what is no line of ours. */
	say(fd, "not json\n\n{\"seq\":5,\"advice\":\"un");
	say(fd, "pin\",\"alloc\":2,\"site\":null}\n{\"seq\":\"\"}\n[1]\n");
	advice(fd, 5, "cold", 9);
	wait_until(stats_of(adv).live_lines == 2 && stats_of(adv).live_missed == 12);
	assert_int_equal(ttmon_advisor_poll(adv, &a), 1);
	assert_int_equal(a.seq, 3);
	assert_int_equal(a.kind, TTMON_LIVE_PIN);
	assert_int_equal(a.addr, 0x7f0001000000);
	assert_int_equal(a.site, 0xf7a1c02b9d3e4455);
	assert_true(a.size == 4096 && a.ordinal == 2 && a.copies == 5 && a.bytes == 99 && a.gain_ns == -7 &&
		    a.alloc == 1);
	assert_true(a.ts_ns == 123 && a.confidence > 0.49 && a.confidence < 0.51);
	assert_int_equal(ttmon_advisor_poll(adv, &a), 1);
	assert_int_equal(a.kind, TTMON_LIVE_UNPIN);
	assert_int_equal(a.site, 0);
	assert_int_equal(ttmon_advisor_poll(adv, &a), 0);
	/* Cut off: it comes again. */
	close(fd);
	fd = next_request();
	assert_string_equal(request, "GET /v1/advice/live?follow=1&pid=self&after=5&start=00000000000000aa HTTP/1.1");
	head(fd, "00000000000000aa");
	advice(fd, 5, "pin", 1);
	advice(fd, 6, "pin", 1);
	wait_until(ttmon_advisor_poll(adv, &a));
	assert_int_equal(a.seq, 6);
	close(fd);
	daemon_down();
	/* No daemon for a while; then another one, whose lines begin again. */
	nap();
	daemon_up();
	fd = next_request();
	assert_non_null(strstr(request, "after=6&start=00000000000000aa"));
	head(fd, "00000000000000bb");
	advice(fd, 1, "keep", 1);
	wait_until(ttmon_advisor_poll(adv, &a));
	assert_int_equal(a.seq, 1);
	assert_int_equal(a.kind, TTMON_LIVE_KEEP);
	assert_int_equal(stats_of(adv).connects, 3);
	assert_int_equal(stats_of(adv).disconnects, 2);
	ttmon_advisor_close(adv);
	close(fd);
	daemon_down();
}

static unsigned int moves;
static uint32_t moved[8];
static uint64_t moved_alloc[8];
static struct ttmon_advisor *moving;

static void on_move(void *ctx, const struct ttmon_live_advice *a)
{
	assert_ptr_equal(ctx, &moves);
	moved[moves % 8] = a->kind;
	moved_alloc[moves++ % 8] = a->alloc;
	/* One at a time: this one does nothing. */
	ttmon_checkpoint(moving, "inner");
}

static void callback_has_the_last_line_of_each(void **state)
{
	struct ttmon_live_advice a;
	struct ttmon_advisor *adv;
	int fd;

	(void)state;
	daemon_up();
	adv = moving = subscribed();
	ttmon_advisor_on_checkpoint(adv, on_move, &moves);
	fd = next_request();
	head(fd, "1");
	advice(fd, 1, "pin", 1);
	advice(fd, 2, "pin", 2);
	advice(fd, 3, "unpin", 3);
	advice(fd, 4, "keep", 3);
	advice(fd, 5, "unpin", 1);
	wait_until(stats_of(adv).live_lines == 5);
	assert_int_equal(moves, 0);
	ttmon_checkpoint(adv, "step");
	assert_int_equal(moves, 2);
	assert_true(moved_alloc[0] == 2 && moved[0] == TTMON_LIVE_PIN);
	assert_true(moved_alloc[1] == 1 && moved[1] == TTMON_LIVE_UNPIN);
	ttmon_checkpoint(adv, "step");
	assert_int_equal(moves, 2);
	/* Without a callback lines wait until they are taken. */
	ttmon_advisor_on_checkpoint(adv, NULL, NULL);
	advice(fd, 6, "pin", 7);
	wait_until(stats_of(adv).live_lines == 6);
	ttmon_checkpoint(adv, NULL);
	assert_int_equal(ttmon_advisor_poll(adv, &a), 1);
	ttmon_advisor_close(adv);
	close(fd);
	daemon_down();
}

static void oldest_lines_go(void **state)
{
	struct ttmon_live_advice a;
	struct ttmon_advisor *adv;
	int fd;

	(void)state;
	daemon_up();
	adv = subscribed();
	fd = next_request();
	head(fd, "1");
	for (unsigned int i = 1; i <= 5000; i++)
		advice(fd, i, "pin", i);
	wait_until(stats_of(adv).live_lines == 5000);
	assert_int_equal(stats_of(adv).live_dropped, 904);
	assert_int_equal(ttmon_advisor_poll(adv, &a), 1);
	assert_int_equal(a.seq, 905);
	/* A line without an end is no line. */
	for (int i = 0; i < 3; i++)
		say(fd, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
			"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
	for (int i = 0; i < 200; i++)
		say(fd, "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"
			"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy");
	say(fd, "\n");
	advice(fd, 5001, "pin", 1);
	wait_until(stats_of(adv).live_lines == 5001);
	ttmon_advisor_close(adv);
	close(fd);
	daemon_down();
}

/* What a thread of ours blocks: 0 where it is gone or of another name. */
static uint64_t blocked_in(const char *task, const char *wanted)
{
	char file[320], line[128], name[32] = "", mask[32] = "";
	FILE *f;

	snprintf(file, sizeof(file), "/proc/self/task/%s/status", task);
	f = fopen(file, "r");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "Name: %31s", name);
		sscanf(line, "SigBlk: %31s", mask);
	}
	fclose(f);
	return strcmp(name, wanted) ? 0 : strtoull(mask, NULL, 16);
}

/* Every signal is blocked in the library's thread. */
static void thread_takes_no_signals(void **state)
{
	/* KILL, STOP and the two of the C library are never blocked. */
	const uint64_t never = 1ull << 8 | 1ull << 18 | 3ull << 31;
	const struct timespec pause = { 0, 1000000 };
	struct ttmon_advisor *adv = subscribed();
	unsigned int others = 0;
	DIR *d = opendir("/proc/self/task");
	const struct dirent *e;

	(void)state;
	assert_non_null(d);
	while ((e = readdir(d))) {
		uint64_t mask = blocked_in(e->d_name, "ttmon-live");

		if (!mask)
			continue;
		/* clang's ASan lets SIGSYS through while it starts a thread. */
		for (int i = 0; i < 10000 && (mask | never) != UINT64_MAX; i++) {
			nanosleep(&pause, NULL);
			mask = blocked_in(e->d_name, "ttmon-live");
		}
		others++;
		assert_true((mask | never) == UINT64_MAX);
	}
	closedir(d);
	assert_int_equal(others, 1);
	ttmon_advisor_close(adv);
}

/* A daemon that accepts connections and sends nothing delays no caller. */
static void close_is_quick(void **state)
{
	struct timespec a, b;
	struct ttmon_advisor *adv;

	(void)state;
	daemon_up();
	adv = subscribed();
	nap();
	clock_gettime(CLOCK_MONOTONIC, &a);
	ttmon_advisor_close(adv);
	clock_gettime(CLOCK_MONOTONIC, &b);
	assert_true(b.tv_sec - a.tv_sec < 2);
	daemon_down();
}

/* ---- runs of programs ---- */

static struct ttmon_program_run last_run;
static char last_kernels[64];
static _Atomic unsigned int nr_runs;

static void on_run(void *ctx, const struct ttmon_program_run *run)
{
	assert_ptr_equal(ctx, &nr_runs);
	last_run = *run;
	snprintf(last_kernels, sizeof(last_kernels), "%s", run->kernels ? run->kernels : "-");
	nr_runs++;
}

static struct ttmon_program_sub *programs(int32_t pid)
{
	const struct ttmon_program_opts opts = { .size = sizeof(opts), .socket = path, .pid = pid };
	struct ttmon_program_sub *sub = NULL;

	nr_runs = 0;
	assert_int_equal(ttmon_program_subscribe(&opts, on_run, &nr_runs, &sub), 0);
	return sub;
}

static struct ttmon_program_stats heard(const struct ttmon_program_sub *sub)
{
	struct ttmon_program_stats st;

	ttmon_program_get_stats(sub, &st);
	return st;
}

static void programs_are_heard(void **state)
{
	struct ttmon_program_sub *sub;
	int fd;

	(void)state;
	daemon_up();
	sub = programs(0);
	fd = next_request();
	assert_string_equal(request, "GET /v1/tt/programs?follow=1&after=0 HTTP/1.1");
	head(fd, "00000000000000aa");
	say(fd, "{\"kernels\":7,\"names\":\"a/b.cpp, \\u00e9\"}\n[5,4711,1,2,65535,100,200,30,1,250,7]\n");
	wait_until(heard(sub).runs == 1);
	assert_true(last_run.seq == 5 && last_run.pid == 4711 && last_run.device == 1 && last_run.chip == 2 &&
		    last_run.program == 65535 && last_run.start_ns == 100 && last_run.end_ns == 200 &&
		    last_run.error_ns == 30 && last_run.clock == TTMON_PROGRAM_CLOCK_PAIRS && last_run.seen_ns == 250);
	assert_string_equal(last_kernels, "a/b.cpp, \xc3\xa9");
	/*
	 * What is not known; names that were forgotten; in pieces; one that was heard before; and what is no
	 * row of ours.
	 */
	say(fd, "{\"forget\":true}\n[6,1,0,nu");
	say(fd, "ll,1,null,null,null,0,9,7]\n[6,1,0,1,1,1,1,1,1,1,1]\n[7]\n[\n[]\n[-8,1,0,1,1,1,1,1,1,1,1]\n[1e3]\n");
	say(fd, "[8,4294967296,0,1,1,1,1,1,1,1,1]\n[8,1,0,1,1,5,4,1,1,1,1]\n[0,1,0,1,1,1,1,1,1,1,1]\n[null]\n{}\n");
	say(fd, "[8,1,0,1,1,1,1,1,1,1,18446744073709551616]\n[8,1,0,1,1,1,1,1,1,1]\n[8,1,0,1,1,1,1,1,1,1,1");
	say(fd, "\n");
	wait_until(heard(sub).runs == 2);
	assert_true(last_run.seq == 6 && last_run.chip == 0 && !last_run.start_ns && !last_run.end_ns &&
		    last_run.error_ns == UINT64_MAX && last_run.clock == TTMON_PROGRAM_CLOCK_NONE);
	assert_string_equal(last_kernels, "-");
	/* Of a later daemon. */
	say(fd, "{\"kernels\":7,\"names\":\"b\"}\n[9,1,0,1,1,1,1,1,1,1,7,\"more\",[2]]\n");
	wait_until(heard(sub).runs == 3);
	assert_string_equal(last_kernels, "b");
	/* Notified of missed lines and cut off: not notified again. */
	say(fd, "{\"missed\":40}\n");
	wait_until(heard(sub).missed == 40);
	close(fd);
	fd = next_request();
	assert_string_equal(request, "GET /v1/tt/programs?follow=1&after=49&start=00000000000000aa HTTP/1.1");
	head(fd, "00000000000000aa");
	say(fd, "{\"missed\":2}\n[52,1,0,1,1,1,1,1,1,1,7]\n");
	wait_until(heard(sub).runs == 4);
	/* The daemon sends the names again on each connection. */
	assert_string_equal(last_kernels, "-");
	assert_true(heard(sub).missed == 42 && heard(sub).connects == 2 && heard(sub).disconnects == 1);
	ttmon_program_unsubscribe(sub);
	close(fd);
	daemon_down();
}

/* A daemon that has sent more than it keeps. */
static void programs_of_before_are_counted(void **state)
{
	static const char http[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
	struct ttmon_program_sub *sub;
	int fd;

	(void)state;
	daemon_up();
	sub = programs(TTMON_PROGRAM_SELF);
	for (int i = 0; i < 3; i++) {
		fd = next_request();
		assert_non_null(strstr(request, "/v1/tt/programs?follow=1&pid=self&after="));
		assert_int_equal(send(fd, http, sizeof(http) - 1, MSG_NOSIGNAL), sizeof(http) - 1);
		say(fd,
		    i == 2 ? "{\"head\":true,\"start_id\":\"b\",\"first\":101,\"next\":103}\n[102,1,0,1,1,1,1,1,1,1,"
			     "1]\n"
			   : "{\"head\":true,\"start_id\":\"a\",\"first\":11,\"next\":13}\n[12,1,0,1,1,1,1,1,1,1,1]\n");
		wait_until(heard(sub).connects == (uint64_t)i + 1);
		close(fd);
	}
	wait_until(heard(sub).runs == 2);
	assert_int_equal(heard(sub).earlier, 110);
	ttmon_program_unsubscribe(sub);
	daemon_down();
}

static void programs_refuse_nonsense(void **state)
{
	struct ttmon_program_opts opts = { .size = sizeof(opts), .pid = -2 };
	struct ttmon_program_sub *sub = (void *)1;

	(void)state;
	assert_int_equal(ttmon_program_subscribe(&opts, on_run, NULL, &sub), -EINVAL);
	opts.size = 4;
	opts.pid = 0;
	assert_int_equal(ttmon_program_subscribe(&opts, on_run, NULL, &sub), -EINVAL);
	assert_int_equal(ttmon_program_subscribe(NULL, NULL, NULL, &sub), -EINVAL);
	assert_int_equal(ttmon_program_subscribe(NULL, on_run, NULL, NULL), -EINVAL);
	assert_ptr_equal(sub, (void *)1);
	assert_int_equal(heard(NULL).runs, 0);
	ttmon_program_unsubscribe(NULL);
}

/* A child has no thread, and ends what it has a copy of. */
static void programs_after_a_fork(void **state)
{
	struct ttmon_program_sub *sub;
	int fd, status = -1;
	pid_t child;

	(void)state;
	daemon_up();
	sub = programs(0);
	fd = next_request();
	head(fd, "1");
	say(fd, "{\"kernels\":7,\"names\":\"a\"}\n[5,4711,1,2,65535,100,200,30,1,250,7]\n");
	wait_until(heard(sub).runs == 1);
	child = fork();
	if (!child) {
		ttmon_program_unsubscribe(sub);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	say(fd, "[6,4711,1,2,65535,100,200,30,1,250,7]\n");
	wait_until(heard(sub).runs == 2);
	ttmon_program_unsubscribe(sub);
	close(fd);
	daemon_down();
}

/* ---- being traced ---- */

static const char *answer;

static void *answer_once(void *arg)
{
	int fd = next_request();

	(void)arg;
	assert_int_equal(send(fd, answer, strlen(answer), MSG_NOSIGNAL), (ssize_t)strlen(answer));
	close(fd);
	return NULL;
}

static int trace_self_with(const char *text)
{
	pthread_t t;
	int err;

	answer = text;
	assert_int_equal(pthread_create(&t, NULL, answer_once, NULL), 0);
	err = ttmon_trace_self(path);
	pthread_join(t, NULL);
	return err;
}

static void trace_self(void **state)
{
	char deep[200];

	(void)state;
	memset(deep, 'x', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	assert_int_equal(ttmon_trace_self("/nonexistent/ttmond.sock"), -ENOTCONN);
	assert_int_equal(ttmon_trace_self(path), -ENOTCONN);
	assert_int_equal(ttmon_trace_self(deep), -ENAMETOOLONG);
	daemon_up();
	assert_int_equal(trace_self_with("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"), 0);
	assert_string_equal(request, "PUT /v1/targets?self HTTP/1.1");
	assert_int_equal(trace_self_with("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"), -EACCES);
	assert_int_equal(trace_self_with("HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n"), -EPROTO);
	close(listener);
	/* A socket without a daemon. */
	assert_int_equal(ttmon_trace_self(path), -ENOTCONN);
	unlink(path);
	assert_int_equal(setenv("TTMON_SOCKET", "/nonexistent/x", 1), 0);
	assert_string_equal(ttmon_socket_or(NULL), "/nonexistent/x");
	assert_string_equal(ttmon_socket_or("y"), "y");
	assert_int_equal(ttmon_trace_self(NULL), -ENOTCONN);
	unsetenv("TTMON_SOCKET");
	assert_string_equal(ttmon_socket_or(NULL), "/run/ttmond/ttmond.sock");
}

static int set_up(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/t.sock", dir);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hears_and_goes_on_behind_the_last_line),
		cmocka_unit_test(callback_has_the_last_line_of_each),
		cmocka_unit_test(oldest_lines_go),
		cmocka_unit_test(thread_takes_no_signals),
		cmocka_unit_test(close_is_quick),
		cmocka_unit_test(programs_are_heard),
		cmocka_unit_test(programs_of_before_are_counted),
		cmocka_unit_test(programs_refuse_nonsense),
		cmocka_unit_test(programs_after_a_fork),
		cmocka_unit_test(trace_self),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
