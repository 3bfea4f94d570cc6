// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_sdnotify.c: the datagrams to a socket of the test, and sockets that are handed over from fd 3
 * on (in a child, which has these descriptors free).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "daemon/io/host/sdnotify.h"
#include "lib/os/log.h"

static void set_number(const char *name, long long v)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", v);
	setenv(name, text, 1);
}

/* A socket that stands for systemd's, in the abstract namespace. */
static int receiver(char *name, size_t n)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	snprintf(name, n, "@ttmon-test-%d", getpid());
	memcpy(a.sun_path, name, strlen(name));
	a.sun_path[0] = '\0';
	assert_int_equal(
		bind(fd, (struct sockaddr *)&a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(name))), 0);
	return fd;
}

static void test_without_systemd(void **state)
{
	int fds[2];

	(void)state;
	ttmon_sd_init();
	ttmon_sd_notify("READY=1");
	assert_int_equal(ttmon_sd_watchdog_ns(), 0);
	assert_int_equal(ttmon_sd_listen_fds(fds, 2), 0);
}

static void test_notify(void **state)
{
	char name[64], buf[4096], text[2000];
	_cleanup_close_ int fd = receiver(name, sizeof(name));

	(void)state;
	setenv("NOTIFY_SOCKET", name, 1);
	ttmon_sd_init();
	assert_null(getenv("NOTIFY_SOCKET"));
	ttmon_sd_notify("READY=1\nSTATUS=%s %d", "tracing", 7);
	memset(buf, 0, sizeof(buf));
	assert_int_equal(recv(fd, buf, sizeof(buf), 0), 24);
	assert_string_equal(buf, "READY=1\nSTATUS=tracing 7");
	/* Too long is cut off, not lost. */
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	ttmon_sd_notify("STATUS=%s", text);
	assert_int_equal(recv(fd, buf, sizeof(buf), 0), 1023);
	assert_int_equal(recv(fd, buf, sizeof(buf), 0), -1);
	ttmon_sd_notify("%s", "");
	assert_int_equal(recv(fd, buf, sizeof(buf), 0), -1);
	/* errno stays the caller's. */
	close(TAKE_FD(fd));
	errno = ENOTTY;
	ttmon_sd_notify("WATCHDOG=1");
	assert_int_equal(errno, ENOTTY);
	ttmon_sd_init();
}

static void test_path(void **state)
{
	char dir[] = "/tmp/ttmon-sd-XXXXXX", path[64], buf[64] = "";
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/notify", dir);
	memcpy(a.sun_path, path, strlen(path));
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	setenv("NOTIFY_SOCKET", path, 1);
	ttmon_sd_init();
	ttmon_sd_notify("STOPPING=1");
	assert_int_equal(recv(fd, buf, sizeof(buf), 0), 10);
	assert_string_equal(buf, "STOPPING=1");
	unlink(path);
	rmdir(dir);
	ttmon_sd_init();
}

/* An invalid address is ignored, whatever it contains. */
static void test_bad_addresses(void **state)
{
	char path[200];
	static const char *const bad[] = { "", "@", "/", "vsock:2:1234", "relative/path" };

	(void)state;
	memset(path, 'p', sizeof(path));
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	for (size_t i = 0; i <= ARRAY_SIZE(bad); i++) {
		setenv("NOTIFY_SOCKET", i < ARRAY_SIZE(bad) ? bad[i] : path, 1);
		ttmon_sd_init();
		assert_null(getenv("NOTIFY_SOCKET"));
		ttmon_sd_notify("READY=1");
	}
}

static void watchdog(const char *usec, long long pid, uint64_t want)
{
	setenv("WATCHDOG_USEC", usec, 1);
	if (pid)
		set_number("WATCHDOG_PID", pid);
	ttmon_sd_init();
	assert_int_equal(ttmon_sd_watchdog_ns(), want);
	assert_null(getenv("WATCHDOG_USEC"));
	assert_null(getenv("WATCHDOG_PID"));
}

static void test_watchdog(void **state)
{
	(void)state;
	watchdog("30000000", 0, 15 * NSEC_PER_SEC);
	watchdog("30000000", getpid(), 15 * NSEC_PER_SEC);
	watchdog("30000000", getpid() + 1, 0);
	watchdog("0", 0, 0);
	watchdog("-1", 0, 0);
	watchdog("12x", 0, 0);
	watchdog("", 0, 0);
	watchdog("18446744073709551615", 0, 0);
	watchdog("99999999999999999999", 0, 0);
}

/* ---- sockets ---- */

static int listener(int domain, int type)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(domain, type, 0);

	if (domain == AF_INET)
		(void)!bind(fd, (struct sockaddr *)&in, sizeof(in));
	else /* autobind: a name of the kernel's */
		(void)!bind(fd, (struct sockaddr *)&un, sizeof(sa_family_t));
	if (type == SOCK_STREAM)
		(void)!listen(fd, 1);
	return fd;
}

/* What systemd does before exec(): these descriptors from 3 on, and none above. */
static void hand_over(const int *fds, int n)
{
	int high[8];

	for (int i = 0; i < n; i++)
		high[i] = fds[i] < 0 ? -1 : fcntl(fds[i], F_DUPFD, 100);
	for (int fd = 3; fd < 100; fd++)
		close(fd);
	for (int i = 0; i < n; i++)
		if (high[i] >= 0)
			dup2(high[i], 3 + i);
	set_number("LISTEN_PID", getpid());
	set_number("LISTEN_FDS", n);
	setenv("LISTEN_FDNAMES", "a:b", 1);
}

static bool both_flags(int fd)
{
	return (fcntl(fd, F_GETFD) & FD_CLOEXEC) && (fcntl(fd, F_GETFL) & O_NONBLOCK);
}

static bool is_closed(int fd)
{
	return fcntl(fd, F_GETFD) < 0 && errno == EBADF;
}

static void in_child(bool (*fn)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(fn() ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static bool two_good_ones(void)
{
	const int mine[] = { listener(AF_UNIX, SOCK_STREAM), listener(AF_INET, SOCK_STREAM) };
	int fds[4] = { -1, -1, -1, -1 };

	hand_over(mine, 2);
	ttmon_sd_init();
	if (getenv("LISTEN_PID") || getenv("LISTEN_FDS") || getenv("LISTEN_FDNAMES"))
		return false;
	if (!(fcntl(3, F_GETFD) & FD_CLOEXEC) || !(fcntl(4, F_GETFD) & FD_CLOEXEC))
		return false;
	if (ttmon_sd_listen_fds(fds, 4) != 2 || fds[0] != 3 || fds[1] != 4 || !both_flags(3) || !both_flags(4))
		return false;
	/* They are handed over only once. */
	return ttmon_sd_listen_fds(fds, 4) == 0 && !is_closed(3);
}

static bool what_does_not_fit(void)
{
	const int mine[] = { listener(AF_UNIX, SOCK_DGRAM), listener(AF_INET, SOCK_STREAM), open("/dev/null", O_RDONLY),
			     socket(AF_UNIX, SOCK_STREAM, 0), -1 };
	int fds[4];

	hand_over(mine, 5);
	ttmon_sd_init();
	return ttmon_sd_listen_fds(fds, 4) == 1 && fds[0] == 4 && is_closed(3) && is_closed(5) && is_closed(6) &&
	       is_closed(7) && !is_closed(4);
}

static bool too_many(void)
{
	const int mine[] = { listener(AF_UNIX, SOCK_STREAM), listener(AF_INET, SOCK_STREAM) };
	int fds[1];

	hand_over(mine, 2);
	ttmon_sd_init();
	return ttmon_sd_listen_fds(fds, 1) == 1 && fds[0] == 3 && is_closed(4);
}

/* Sockets for another process, or invalid variables: no descriptor is touched. */
static bool not_ours(void)
{
	static const char *const counts[] = { "-1", "2x", "", "4000000000" };
	const int mine[] = { listener(AF_UNIX, SOCK_STREAM) };
	int fds[4];

	hand_over(mine, 1);
	set_number("LISTEN_PID", getppid());
	ttmon_sd_init();
	if (ttmon_sd_listen_fds(fds, 4) || is_closed(3) || (fcntl(3, F_GETFD) & FD_CLOEXEC))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		set_number("LISTEN_PID", getpid());
		setenv("LISTEN_FDS", counts[i], 1);
		ttmon_sd_init();
		if (ttmon_sd_listen_fds(fds, 4) || is_closed(3) || getenv("LISTEN_FDS"))
			return false;
	}
	return true;
}

static void test_sockets(void **state)
{
	(void)state;
	in_child(two_good_ones);
	in_child(what_does_not_fit);
	in_child(too_many);
	in_child(not_ours);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_without_systemd), cmocka_unit_test(test_notify),	 cmocka_unit_test(test_path),
		cmocka_unit_test(test_bad_addresses),	cmocka_unit_test(test_watchdog), cmocka_unit_test(test_sockets),
	};

	ttmon_log_set_level(TTMON_LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
