// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_hold.c: io/hold/hold.c, io/hold/keeper.c and io/hold/heldfile.c with real processes. Needs
 * CAP_SYS_ADMIN and a kernel that grants a seccomp listener; exit 77 otherwise. The program is its own
 * target: an argument names the part to play.
 *
 * The test process is a child subreaper, so that it inherits the keepers and can see (and kill) its
 * own ones only.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/io/hold/heldfile.h"
#include "daemon/io/hold/hold.h"
#include "daemon/io/hold/keeper.h"
#include "lib/os/log.h"

#define NR_THREADS 8
#define NR_MAPS	   10
#define NR_FDS	   128

static char self[4096], dir[] = "/tmp/ttmon-hold-XXXXXX";

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / NSEC_PER_MS;
}

/* ---- what the target does ---- */

static void *map_self(void *arg)
{
	for (int i = 0; i < NR_MAPS; i++) {
		int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

		if (p == MAP_FAILED)
			return arg;
		munmap(p, 4096);
		close(fd);
	}
	return NULL;
}

static int play_threads(void)
{
	pthread_t threads[NR_THREADS];
	void *bad = NULL;

	for (size_t i = 0; i < NR_THREADS; i++)
		pthread_create(&threads[i], NULL, map_self, &threads);
	for (size_t i = 0; i < NR_THREADS; i++) {
		void *r;

		pthread_join(threads[i], &r);
		bad = r ? r : bad;
	}
	return bad ? 1 : 42;
}

static int play_map(void)
{
	return map_self(dir) ? 1 : 42;
}

/* A line of /proc/self/status as a number. */
static unsigned long long status_hex(const char *key)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/status", "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, key, strlen(key)) == 0)
			return strtoull(line + strlen(key), NULL, 16);
	}
	return 0;
}

static int play_inherit(char **argv)
{
	struct rlimit r;

	if (status_hex("SigIgn:\t") != strtoull(argv[2], NULL, 16))
		return 1;
	if (status_hex("SigBlk:\t") != strtoull(argv[3], NULL, 16))
		return 2;
	if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur != strtoull(argv[4], NULL, 10))
		return 3;
	if (getpgrp() != atoi(argv[5]))
		return 4;
	if (status_hex("NoNewPrivs:\t"))
		return 5;
	for (int fd = 0; fd < NR_FDS; fd++) {
		if (argv[6][fd] != (fcntl(fd, F_GETFD) >= 0 ? 'o' : '-'))
			return 6;
	}
	return 42;
}

static int run(char *const argv[], struct ttmon_hold **ret);

/* Under a hold already: a second listener is refused and the command runs without. */
static int play_nested(void)
{
	char *const argv[] = { self, "exit3", NULL };
	struct ttmon_hold *h;
	int status = 0;

	if (ttmon_hold_new(argv, &h))
		return 1;
	if (ttmon_hold_error(h) != -EBUSY || ttmon_hold_fd(h) != -1)
		return 2;
	if (ttmon_hold_go(h, NULL, NULL))
		return 3;
	if (waitpid(ttmon_hold_pid(h), &status, 0) < 0)
		return 4;
	ttmon_hold_free(h);
	return WIFEXITED(status) && WEXITSTATUS(status) == 3 ? 42 : 5;
}

static int play_paths(void)
{
	char *const script[] = { "./script", NULL }, *const args[] = { self, "exit3", NULL };
	char *const env[] = { NULL };
	int fd, status;

	if (chdir(dir))
		return 1;
	for (int i = 0; i < 4; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			fd = open(self, O_PATH | O_CLOEXEC);
			if (i == 0)
				execve("./script", script, env);
			else if (i == 1)
				syscall(SYS_execveat, fd, "", args, env, AT_EMPTY_PATH);
			else if (i == 2)
				execve("/proc/self/exe", args, env);
			else
				execve("../../proc/self/exe", args, env);
			_exit(9);
		}
		waitpid(pid, &status, 0);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 3)
			return 10 + i;
	}
	return 42;
}

static int play(char **argv)
{
	if (strcmp(argv[1], "exit3") == 0)
		return 3;
	if (strcmp(argv[1], "map") == 0)
		return play_map();
	if (strcmp(argv[1], "threads") == 0)
		return play_threads();
	if (strcmp(argv[1], "inherit") == 0)
		return play_inherit(argv);
	if (strcmp(argv[1], "nested") == 0)
		return play_nested();
	if (strcmp(argv[1], "paths") == 0) {
		snprintf(dir, sizeof(dir), "%s", argv[2]);
		return play_paths();
	}
	return 99;
}

/* ---- the daemon's side ---- */

static bool is_program(void *ctx _unused_, const struct seccomp_notif *notif)
{
	_cleanup_close_ int fd = -1;

	return !ttmon_heldfile_open(notif, &fd) && ttmon_heldfile_is_program(fd);
}

static int run(char *const argv[], struct ttmon_hold **ret)
{
	int err = ttmon_hold_new(argv, ret);

	if (err)
		return err;
	assert_int_equal(ttmon_hold_error(*ret), 0);
	return ttmon_hold_go(*ret, is_program, NULL);
}

static bool is_same_file(int fd, const char *path)
{
	struct stat a, b;

	return fd >= 0 && fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev;
}

static bool is_file_of(const struct ttmon_hold_req *req, const char *path)
{
	_cleanup_close_ int fd = -1;

	return !ttmon_heldfile_open(&req->notif, &fd) && is_same_file(fd, path);
}

/* Wait for the next request. 0, or -ENOENT at the end. */
static int next(struct ttmon_hold *h, struct ttmon_hold_req *req)
{
	for (;;) {
		struct pollfd pfd = { .fd = ttmon_hold_fd(h), .events = POLLIN };
		int err;

		assert_int_equal(poll(&pfd, 1, 10000), 1);
		err = ttmon_hold_next(h, req);
		if (err != -EAGAIN)
			return err;
	}
}

struct seen {
	unsigned int execs, maps, files; /* files: requests for the file looked for */
};

/*
 * Serves until nothing is left. The child is reaped as soon as possible, since older kernels count
 * zombies as users of the filter.
 */
static int serve(struct ttmon_hold *h, const char *look_for, struct seen *seen)
{
	int status = -1;

	for (;;) {
		struct pollfd pfd = { .fd = ttmon_hold_fd(h), .events = POLLIN };
		struct ttmon_hold_req req;
		int err;

		if (status == -1)
			waitpid(ttmon_hold_pid(h), &status, WNOHANG);
		if (poll(&pfd, 1, 10) == 0)
			continue;
		err = ttmon_hold_next(h, &req);
		if (err == -ENOENT)
			break;
		if (err)
			continue;
		*(req.exec ? &seen->execs : &seen->maps) += 1;
		seen->files += is_file_of(&req, look_for);
		ttmon_hold_release(h, &req);
	}
	if (status == -1)
		assert_int_equal(waitpid(ttmon_hold_pid(h), &status, 0), ttmon_hold_pid(h));
	assert_int_equal(ttmon_hold_fd(h), -1);
	return status;
}

/* The keeper: a process that this test has inherited. 0: none. */
static pid_t find_keeper(void)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], name[64];
	unsigned int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "re");
	while (f && fscanf(f, "%u", &pid) == 1) {
		_cleanup_fclose_ FILE *comm = NULL;

		snprintf(path, sizeof(path), "/proc/%u/comm", pid);
		comm = fopen(path, "re");
		if (comm && fgets(name, sizeof(name), comm) && strcmp(name, TTMON_KEEPER_NAME "\n") == 0)
			return (pid_t)pid;
	}
	return 0;
}

/* A keeper has one child. */
static bool has_guard(pid_t keeper)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64];
	unsigned int pid;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", keeper, keeper);
	f = fopen(path, "re");
	return f && fscanf(f, "%u", &pid) == 1;
}

/* Every keeper ends with the last process under its filter. */
static int reap_all(void **state)
{
	uint64_t end = now_ms() + 5000;

	(void)state;
	while (waitpid(-1, NULL, WNOHANG) >= 0 && now_ms() < end)
		poll(NULL, 0, 1);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	return 0;
}

static void test_requests_and_status(void **state)
{
	char *const argv[] = { self, "map", NULL };
	struct seen seen = { 0 };
	struct ttmon_hold_req req;
	struct ttmon_hold *h;
	int status;

	(void)state;
	assert_int_equal(run(argv, &h), 0);
	assert_int_equal(next(h, &req), 0);
	assert_true(req.exec);
	assert_int_equal(req.pid, ttmon_hold_pid(h));
	assert_true(is_file_of(&req, self));
	assert_true(ttmon_hold_release(h, &req));
	status = serve(h, self, &seen);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 42);
	assert_int_equal(seen.execs, 0);
	assert_int_equal(seen.files, NR_MAPS);
	assert_true(seen.maps > seen.files); /* libc and the like */
	assert_int_equal(ttmon_hold_missed(h), 0);
	assert_int_equal(ttmon_hold_next(h, &req), -ENOENT);
	ttmon_hold_free(h);
}

static void test_exec_failures(void **state)
{
	char file[64];
	char *const missing[] = { "ttmon-no-such-command", NULL }, *const no_x[] = { file, NULL };
	struct ttmon_hold *h;
	int status;

	(void)state;
	assert_int_equal(run(missing, &h), -ENOENT);
	assert_int_equal(waitpid(ttmon_hold_pid(h), &status, 0), ttmon_hold_pid(h));
	assert_int_equal(WEXITSTATUS(status), 127);
	ttmon_hold_free(h);

	snprintf(file, sizeof(file), "%s/no-x", dir);
	close(open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
	assert_int_equal(run(no_x, &h), -EACCES);
	assert_int_equal(waitpid(ttmon_hold_pid(h), &status, 0), ttmon_hold_pid(h));
	assert_int_equal(WEXITSTATUS(status), 126);
	ttmon_hold_free(h);
}

static void test_script_means_interpreter(void **state)
{
	char file[64];
	char *const argv[] = { file, NULL };
	struct ttmon_hold_req req;
	struct seen seen = { 0 };
	struct ttmon_hold *h;

	(void)state;
	snprintf(file, sizeof(file), "%s/script", dir);
	assert_int_equal(run(argv, &h), 0);
	assert_int_equal(next(h, &req), 0);
	assert_true(is_file_of(&req, self));
	ttmon_hold_release(h, &req);
	assert_int_equal(WEXITSTATUS(serve(h, self, &seen)), 3);
	ttmon_hold_free(h);
}

/*
 * A relative script, execveat of a descriptor and /proc/self/exe all name the test program. The last
 * way spells /proc/self so that it is not recognised: it is not opened (it would be the daemon's own
 * file), and the command runs all the same.
 */
static void test_paths(void **state)
{
	char *const argv[] = { self, "paths", dir, NULL };
	struct seen seen = { 0 };
	struct ttmon_hold *h;

	(void)state;
	assert_int_equal(run(argv, &h), 0);
	assert_int_equal(WEXITSTATUS(serve(h, self, &seen)), 42);
	assert_int_equal(seen.execs, 5);
	assert_int_equal(seen.files, 4);
	ttmon_hold_free(h);
}

static void test_threads(void **state)
{
	char *const argv[] = { self, "threads", NULL };
	struct seen seen = { 0 };
	struct ttmon_hold *h;

	(void)state;
	assert_int_equal(run(argv, &h), 0);
	assert_int_equal(WEXITSTATUS(serve(h, self, &seen)), 42);
	assert_int_equal(seen.files, 1 + NR_THREADS * NR_MAPS);
	assert_int_equal(ttmon_hold_missed(h), 0);
	ttmon_hold_free(h);
}

static void test_child_is_as_we_were_started(void **state)
{
	char ign[32], blk[32], nofile[32], pgrp[16], fds[NR_FDS + 1] = "";
	char *const argv[] = { self, "inherit", ign, blk, nofile, pgrp, fds, NULL };
	struct sigaction old_int, old_pipe;
	struct rlimit r, low;
	struct seen seen = { 0 };
	struct ttmon_hold *h;
	sigset_t usr1;
	int fd;

	(void)state;
	snprintf(ign, sizeof(ign), "%llx", status_hex("SigIgn:\t"));
	snprintf(blk, sizeof(blk), "%llx", status_hex("SigBlk:\t"));
	getrlimit(RLIMIT_NOFILE, &r);
	snprintf(nofile, sizeof(nofile), "%llu", (unsigned long long)r.rlim_cur);
	snprintf(pgrp, sizeof(pgrp), "%d", getpgrp());

	/* From here on this process acts as the daemon. */
	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, &old_pipe);
	sigaction(SIGINT, &(struct sigaction){ .sa_handler = SIG_IGN }, &old_int);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	low = (struct rlimit){ r.rlim_cur / 2, r.rlim_max };
	setrlimit(RLIMIT_NOFILE, &low);
	fd = fcntl(0, F_DUPFD, 100); /* inherited on purpose, as a shell's 3<file */
	for (int i = 0; i < NR_FDS; i++) {
		int flags = fcntl(i, F_GETFD);

		fds[i] = flags >= 0 && !(flags & FD_CLOEXEC) ? 'o' : '-';
	}
	assert_int_equal(fds[fd], 'o');

	assert_int_equal(run(argv, &h), 0);
	close(fd);
	sigprocmask(SIG_UNBLOCK, &usr1, NULL);
	sigaction(SIGPIPE, &old_pipe, NULL);
	sigaction(SIGINT, &old_int, NULL);
	setrlimit(RLIMIT_NOFILE, &r);
	assert_int_equal(WEXITSTATUS(serve(h, self, &seen)), 42);
	ttmon_hold_free(h);
}

static void test_stuck_daemon(void **state)
{
	char *const argv[] = { self, "map", NULL };
	struct ttmon_hold_req req, late;
	struct ttmon_hold *h;
	uint64_t t0 = now_ms();
	int status;

	(void)state;
	assert_int_equal(run(argv, &h), 0);
	assert_int_equal(next(h, &req), 0);
	/* The test does nothing: there is one delay, then everything else runs on at once. */
	assert_int_equal(waitpid(ttmon_hold_pid(h), &status, 0), ttmon_hold_pid(h));
	assert_int_equal(WEXITSTATUS(status), 42);
	assert_in_range(now_ms() - t0, TTMON_KEEPER_TIMEOUT_MS, NR_MAPS * TTMON_KEEPER_TIMEOUT_MS - 1);
	assert_false(ttmon_hold_release(h, &req));
	assert_int_equal(next(h, &late), -ENOENT);
	assert_true(ttmon_hold_missed(h) > NR_MAPS);
	ttmon_hold_free(h);
}

/* The keeper holds again as soon as the daemon is back. */
static void test_daemon_comes_back(void **state)
{
	char *const argv[] = { "/bin/sh", "-c", "\"$0\" map; \"$0\" map; \"$0\" map; exit 42", self, NULL };
	struct ttmon_hold_req req;
	struct seen seen = { 0 };
	struct ttmon_hold *h;

	(void)state;
	assert_int_equal(run(argv, &h), 0);
	assert_int_equal(next(h, &req), 0);
	poll(NULL, 0, TTMON_KEEPER_TIMEOUT_MS + 10);
	/* A caller that believes that the process waited would report that no call was missed. */
	assert_false(ttmon_hold_release(h, &req));
	assert_int_equal(WEXITSTATUS(serve(h, self, &seen)), 42);
	assert_true(ttmon_hold_missed(h) > 0);
	assert_true(seen.files > 0);
	ttmon_hold_free(h);
}

/*
 * It runs until it has a request, writes the process of the request, and dies. Before it does, it
 * kills its keepers, one after the other.
 */
static void be_killed(char *const argv[], int fd, int keepers)
{
	struct ttmon_hold_req req;
	struct ttmon_hold *h;
	pid_t pid;

	if (prctl(PR_SET_CHILD_SUBREAPER, 1) || run(argv, &h) || next(h, &req))
		_exit(1);
	ttmon_hold_release(h, &req);
	if (next(h, &req))
		_exit(2);
	pid = ttmon_hold_pid(h);
	(void)!write(fd, &pid, sizeof(pid));
	for (int i = 0; i < keepers; i++) {
		pid = find_keeper();
		/*
		 * The guard of the first keeper becomes a child of this test. A keeper without a guard would end the
		 * hold that this test is about.
		 */
		for (int k = 0; k < 2000 && !has_guard(pid); k++)
			poll(NULL, 0, 1);
		if (pid <= 0 || kill(pid, SIGKILL) || waitpid(pid, NULL, 0) != pid)
			_exit(3);
	}
	raise(SIGKILL);
}

static void daemon_killed(int keepers)
{
	char *const argv[] = { self, "map", NULL };
	int pipefd[2], status;
	pid_t daemon, target = 0;
	uint64_t t0;

	/* The wait for the daemon would take longer than this test does on any machine. */
	assert_int_equal(setenv("TTMOND_HOLD_MS", "10000", 1), 0);
	assert_int_equal(pipe2(pipefd, O_CLOEXEC), 0);
	daemon = fork();
	if (daemon == 0)
		be_killed(argv, pipefd[1], keepers);
	assert_int_equal(read(pipefd[0], &target, sizeof(target)), sizeof(target));
	t0 = now_ms();
	assert_int_equal(waitpid(daemon, &status, 0), daemon);
	assert_true(WIFSIGNALED(status));
	/* The daemon had a request in its hands. */
	assert_int_equal(waitpid(target, &status, 0), target);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 42);
	assert_true(now_ms() - t0 < 10000);
	unsetenv("TTMOND_HOLD_MS");
	close(pipefd[0]);
	close(pipefd[1]);
}

static void test_daemon_killed(void **state)
{
	(void)state;
	daemon_killed(0);
}

/* The guard answers the requests that the daemon and the keeper had received, and later ones. */
static void test_daemon_and_keeper_killed(void **state)
{
	(void)state;
	daemon_killed(1);
}

/* One after the other: each guard starts another one. */
static void test_daemon_and_keepers_killed(void **state)
{
	(void)state;
	daemon_killed(5);
}

static void test_target_dies_while_held(void **state)
{
	char *const argv[] = { self, "map", NULL };
	struct ttmon_hold_req req, none;
	struct ttmon_hold *h;
	int status;

	(void)state;
	assert_int_equal(run(argv, &h), 0);
	assert_int_equal(next(h, &req), 0);
	assert_int_equal(kill(ttmon_hold_pid(h), SIGKILL), 0);
	assert_int_equal(waitpid(ttmon_hold_pid(h), &status, 0), ttmon_hold_pid(h));
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	ttmon_hold_release(h, &req);
	assert_int_equal(next(h, &none), -ENOENT);
	assert_int_equal(ttmon_hold_missed(h), 0);
	ttmon_hold_free(h);
}

static void test_keeper_killed(void **state)
{
	char *const argv[] = { self, "map", NULL };
	enum ttmon_log_level level = ttmon_log_get_level();
	struct seen seen = { 0 };
	struct ttmon_hold_req req;
	struct ttmon_hold *h;
	pid_t keeper, guard;

	(void)state;
	assert_int_equal(run(argv, &h), 0);
	assert_int_equal(next(h, &req), 0);
	keeper = find_keeper();
	assert_true(keeper > 0);
	/* Both of them: the daemon starts another one. */
	for (int i = 0; i < 2000 && !has_guard(keeper); i++)
		poll(NULL, 0, 1);
	assert_int_equal(getsid(keeper), keeper);
	assert_int_equal(kill(keeper, SIGTERM), 0); /* no effect */
	assert_int_equal(kill(keeper, SIGKILL), 0);
	assert_int_equal(waitpid(keeper, NULL, 0), keeper);
	guard = find_keeper();
	assert_true(guard > 0);
	assert_int_equal(kill(guard, SIGKILL), 0);
	assert_int_equal(waitpid(guard, NULL, 0), guard);
	ttmon_log_set_level(TTMON_LOG_ERROR);
	ttmon_hold_release(h, &req);
	assert_int_equal(WEXITSTATUS(serve(h, self, &seen)), 42);
	ttmon_log_set_level(level);
	assert_int_equal(seen.files, NR_MAPS);
	ttmon_hold_free(h);
}

/* Returns true if this process has the required capability (CAP_SYS_RESOURCE). */
static bool may_be_spared(void)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

		_exit(write(fd, "-1000", 5) == 5);
	}
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}

static void test_keeper_owns_nothing(void **state)
{
	char *const argv[] = { self, "exit3", NULL };
	char path[64], to[64];
	struct seen seen = { 0 };
	struct ttmon_hold *h;
	pid_t keeper = 0;
	ssize_t n;
	int fd;

	(void)state;
	assert_int_equal(run(argv, &h), 0);
	for (int i = 0; i < 1000 && !keeper; i++)
		keeper = find_keeper();
	assert_true(keeper > 0);
	for (fd = 0; fd < 256; fd++) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", keeper, fd);
		n = readlink(path, to, sizeof(to) - 1);
		to[MAX(n, 0)] = '\0';
		if (fd < 3)
			assert_string_equal(to, "/dev/null");
		else if (fd == 3)
			assert_string_equal(to, "anon_inode:seccomp notify");
		else if (fd == 4 || (fd == 5 && n >= 0)) /* the daemon; the guard, as soon as it is there */
			assert_memory_equal(to, "socket:", 7);
		else
			assert_int_equal(n, -1);
	}
	/* Nor is the daemon's name in the place where pkill(1) looks. */
	snprintf(path, sizeof(path), "/proc/%d/cmdline", keeper);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, to, sizeof(to) - 1);
	close(fd);
	to[MAX(n, 0)] = '\0';
	assert_string_equal(to, TTMON_KEEPER_NAME);
	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", keeper);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, to, sizeof(to) - 1);
	close(fd);
	to[MAX(n, 0)] = '\0';
	assert_string_equal(to, may_be_spared() ? "-1000\n" : "0\n");
	assert_int_equal(WEXITSTATUS(serve(h, self, &seen)), 3);
	ttmon_hold_free(h);
}

static void test_free_lets_go(void **state)
{
	char *const argv[] = { self, "map", NULL };
	struct ttmon_hold_req req;
	struct ttmon_hold *h;
	uint64_t t0;
	pid_t pid;
	int status;

	(void)state;
	/* With a received request. */
	assert_int_equal(setenv("TTMOND_HOLD_MS", "10000", 1), 0);
	assert_int_equal(run(argv, &h), 0);
	assert_int_equal(next(h, &req), 0);
	pid = ttmon_hold_pid(h);
	t0 = now_ms();
	ttmon_hold_free(h);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 42);
	assert_true(now_ms() - t0 < 10000);
	unsetenv("TTMOND_HOLD_MS");

	/* With the first request not fetched. */
	assert_int_equal(run(argv, &h), 0);
	pid = ttmon_hold_pid(h);
	ttmon_hold_free(h);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 42);

	/* Before go. */
	assert_int_equal(ttmon_hold_new(argv, &h), 0);
	pid = ttmon_hold_pid(h);
	ttmon_hold_free(h);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 127);
	ttmon_hold_free(NULL);
}

static void test_second_listener_runs_unheld(void **state)
{
	char *const argv[] = { self, "nested", NULL };
	struct seen seen = { 0 };
	struct ttmon_hold *h;

	(void)state;
	assert_int_equal(run(argv, &h), 0);
	assert_int_equal(WEXITSTATUS(serve(h, self, &seen)), 42);
	assert_int_equal(seen.execs, 2);
	ttmon_hold_free(h);
}

static int prepare(void **state)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64];

	(void)state;
	if (!mkdtemp(dir) || prctl(PR_SET_CHILD_SUBREAPER, 1))
		return -1;
	snprintf(path, sizeof(path), "%s/script", dir);
	f = fopen(path, "we");
	if (!f || fprintf(f, "#! %s exit3\n", self) < 0)
		return -1;
	return chmod(path, 0755);
}

static int clean(void **state)
{
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/script", dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/no-x", dir);
	unlink(path);
	return rmdir(dir);
}

/* Returns true if this process can have a listener at all. */
static int probe(void)
{
	char *const argv[] = { self, "exit3", NULL };
	struct ttmon_hold *h;
	int err = ttmon_hold_new(argv, &h);

	if (err)
		return err;
	err = ttmon_hold_error(h);
	waitpid(ttmon_hold_pid(h), NULL, WNOHANG);
	ttmon_hold_free(h);
	return err;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_requests_and_status, reap_all),
		cmocka_unit_test_teardown(test_exec_failures, reap_all),
		cmocka_unit_test_teardown(test_script_means_interpreter, reap_all),
		cmocka_unit_test_teardown(test_paths, reap_all),
		cmocka_unit_test_teardown(test_threads, reap_all),
		cmocka_unit_test_teardown(test_child_is_as_we_were_started, reap_all),
		cmocka_unit_test_teardown(test_stuck_daemon, reap_all),
		cmocka_unit_test_teardown(test_daemon_comes_back, reap_all),
		cmocka_unit_test_teardown(test_daemon_killed, reap_all),
		cmocka_unit_test_teardown(test_daemon_and_keeper_killed, reap_all),
		cmocka_unit_test_teardown(test_daemon_and_keepers_killed, reap_all),
		cmocka_unit_test_teardown(test_target_dies_while_held, reap_all),
		cmocka_unit_test_teardown(test_keeper_killed, reap_all),
		cmocka_unit_test_teardown(test_keeper_owns_nothing, reap_all),
		cmocka_unit_test_teardown(test_free_lets_go, reap_all),
		cmocka_unit_test_teardown(test_second_listener_runs_unheld, reap_all),
	};
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	int err;

	if (n < 0)
		return 1;
	self[n] = '\0';
	if (argc > 1)
		return play(argv);
	err = probe();
	if (err) {
		printf("SKIP: no seccomp listener for us: %s\n", strerror(-err));
		return 77;
	}
	return cmocka_run_group_tests(tests, prepare, clean);
}
