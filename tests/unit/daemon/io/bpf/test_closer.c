// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_closer.c: io/bpf/closer.c with write ends of pipes instead of links: a pipe is at its end when
 * no process holds its write end any more.
 *
 * The test process is a child subreaper, so that it inherits the closers and sees (and kills) only its
 * own ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "daemon/io/bpf/closer.c"

#include <dirent.h>
#include <poll.h>

#define MANY 300 /* more than fits into one message */

struct link {
	int read_end, fd;
};

static struct link make_link(void)
{
	int pair[2];

	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	return (struct link){ pair[0], pair[1] };
}

/* Returns true if a process still holds it after at most this many ms. */
static bool is_held(const struct link *l, int ms)
{
	struct pollfd pfd = { .fd = l->read_end };

	return poll(&pfd, 1, ms) == 0;
}

/* The only child of this process. */
static pid_t closer_pid(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/thread-self/children", "re");
	pid_t pid, second;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%d %d", &pid, &second), 1);
	return pid;
}

static int status_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void closes_when_the_daemon_is_gone(void **state)
{
	struct link l[MANY];
	int fds[MANY], sock;
	pid_t pid;

	(void)state;
	assert_int_equal(ttmon_closer_start(&sock), 0);
	pid = closer_pid();
	for (size_t i = 0; i < MANY; i++) {
		l[i] = make_link();
		fds[i] = l[i].fd;
	}
	assert_int_equal(ttmon_closer_give(sock, TTMON_CLOSE_IN_TURN, fds, 5), 0);
	assert_int_equal(ttmon_closer_give(sock, TTMON_CLOSE_TOGETHER, fds + 5, MANY - 5), 0);
	for (size_t i = 0; i < MANY; i++)
		close(fds[i]);
	for (size_t i = 0; i < MANY; i++)
		assert_true(is_held(&l[i], i ? 0 : 100));
	close(sock);
	for (size_t i = 0; i < MANY; i++) {
		assert_false(is_held(&l[i], 20000));
		close(l[i].read_end);
	}
	assert_int_equal(status_of(pid), 0);
}

static void ends_when_it_was_given_nothing(void **state)
{
	int sock;
	pid_t pid;

	(void)state;
	assert_int_equal(ttmon_closer_start(&sock), 0);
	pid = closer_pid();
	assert_int_equal(ttmon_closer_give(sock, TTMON_CLOSE_TOGETHER, NULL, 0), 0);
	close(sock);
	assert_int_equal(status_of(pid), 0);
}

/* A killed closer holds nothing, and the daemon is notified that it has to wait itself. */
static void killed(void **state)
{
	struct link l = make_link(), late = make_link();
	int sock, err;
	pid_t pid;

	(void)state;
	assert_int_equal(ttmon_closer_start(&sock), 0);
	pid = closer_pid();
	assert_int_equal(ttmon_closer_give(sock, TTMON_CLOSE_IN_TURN, &l.fd, 1), 0);
	close(l.fd);
	assert_true(is_held(&l, 0));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_true(WIFSIGNALED(status_of(pid)));
	assert_false(is_held(&l, 20000));
	err = ttmon_closer_give(sock, TTMON_CLOSE_IN_TURN, &late.fd, 1);
	assert_true(err == -EPIPE || err == -ECONNRESET);
	close(late.fd);
	assert_false(is_held(&late, 0));
	close(late.read_end);
	close(l.read_end);
	close(sock);
}

/* What was sent and not yet received is released too. */
static void killed_before_it_received(void **state)
{
	struct link l = make_link();
	int sock;
	pid_t pid;

	(void)state;
	assert_int_equal(ttmon_closer_start(&sock), 0);
	pid = closer_pid();
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(ttmon_closer_give(sock, TTMON_CLOSE_IN_TURN, &l.fd, 1), 0);
	close(l.fd);
	assert_true(is_held(&l, 20));
	assert_int_equal(kill(pid, SIGKILL), 0);
	status_of(pid);
	assert_false(is_held(&l, 20000));
	close(sock);
	close(l.read_end);
}

/* It has none of the test's descriptors but its socket, and is not in the test's session. */
static void keeps_nothing_else(void **state)
{
	struct link l = make_link();
	char path[64], name[32];
	size_t open_fds = 0;
	struct dirent *ent;
	int sock;
	pid_t pid;
	FILE *f;
	DIR *dir;

	(void)state;
	assert_int_equal(ttmon_closer_start(&sock), 0);
	pid = closer_pid();
	close(l.fd);
	/* The forked process had it until it closed it. */
	assert_false(is_held(&l, 20000));
	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((ent = readdir(dir)))
		open_fds += ent->d_name[0] != '.';
	closedir(dir);
	assert_int_equal(open_fds, SOCK_FD + 1);
	assert_int_equal(getsid(pid), pid);
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%31s", name), 1);
	fclose(f);
	assert_string_equal(name, "ttmond-closer");
	close(sock);
	close(l.read_end);
	status_of(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(closes_when_the_daemon_is_gone),
		cmocka_unit_test(ends_when_it_was_given_nothing),
		cmocka_unit_test(killed),
		cmocka_unit_test(killed_before_it_received),
		cmocka_unit_test(keeps_nothing_else),
	};

	if (prctl(PR_SET_CHILD_SUBREAPER, 1))
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
