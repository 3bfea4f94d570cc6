// SPDX-License-Identifier: GPL-2.0-only
/*
 * run.c: runs other programs for `ttmon bugreport`, and has a ttmond make the recording. No shell is
 * involved.
 */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>

#include "tools/bugreport/bugreport.h"

#define TICK_MS	 20
#define START_MS 60000 /* limit for ttmond to begin tracing: it first reads the symbols of all running programs */
#define END_MS	 60000 /* limit for ttmond to write the rest */

extern char **environ;

volatile sig_atomic_t ttmon_report_stopped;

static void freepp(char ***p)
{
	free(*p);
}

/* Returns the environment with one more entry; the strings are borrowed. NULL: out of memory. */
static char **environ_with(const char *more)
{
	size_t n = 0;
	char **env;

	while (environ[n])
		n++;
	env = calloc(n + 2, sizeof(*env));
	if (!env)
		return NULL;
	memcpy(env, environ, n * sizeof(*env));
	env[n] = (char *)more;
	return env;
}

int ttmon_child_start(char *const argv[], int fd, const char *env, pid_t *ret)
{
	_cleanup_(freepp) char **all = environ_with(env);
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t def;
	pid_t pid;
	int err;

	if (!all)
		return -ENOMEM;
	err = posix_spawn_file_actions_init(&files);
	if (err)
		return -err;
	err = posix_spawnattr_init(&attr);
	if (err) {
		posix_spawn_file_actions_destroy(&files);
		return -err;
	}
	sigfillset(&def);
	err = posix_spawnattr_setsigdefault(&attr, &def);
	if (!err)
		err = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGDEF);
	if (!err)
		err = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&files, fd, STDOUT_FILENO);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&files, fd, STDERR_FILENO);
	if (!err)
		err = posix_spawnp(&pid, argv[0], &files, &attr, argv, all);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	if (err)
		return -err;
	*ret = pid;
	return 0;
}

static void tick(void)
{
	const struct timespec t = { .tv_nsec = TICK_MS * (long)NSEC_PER_MS };

	nanosleep(&t, NULL);
}

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / NSEC_PER_MS;
}

static bool wait_for(pid_t pid, unsigned int ms, bool stoppable, int *status)
{
	uint64_t end = now_ms() + ms;

	for (;;) {
		pid_t done = waitpid(pid, status, WNOHANG);

		if (done == pid)
			return true;
		if ((done < 0 && errno != EINTR) || (stoppable && ttmon_report_stopped) || now_ms() >= end)
			return false;
		tick();
	}
}

bool ttmon_child_wait(pid_t pid, unsigned int ms, int *status)
{
	return wait_for(pid, ms, true, status);
}

static void kill_child(pid_t pid)
{
	kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

int ttmon_child_run(char *const argv[], int fd, const char *env, unsigned int ms)
{
	int status, err;
	pid_t pid;

	err = ttmon_child_start(argv, fd, env, &pid);
	if (err)
		return err;
	if (!ttmon_child_wait(pid, ms, &status)) {
		kill_child(pid);
		return -ETIMEDOUT;
	}
	return WIFEXITED(status) && !WEXITSTATUS(status) ? 0 : -ENOEXEC;
}

void ttmon_report_ttmond(char *buf, size_t size)
{
	static const char *const places[] = { "ttmond", "../sbin/ttmond" };
	char own[4096];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
	char *slash;

	own[n > 0 ? n : 0] = '\0';
	slash = strrchr(own, '/');
	for (size_t i = 0; slash && i < ARRAY_SIZE(places); i++) {
		snprintf(buf, size, "%.*s/%s", (int)(slash - own), own, places[i]);
		if (!access(buf, X_OK))
			return;
	}
	snprintf(buf, size, "ttmond");
}

/* ---- the recording ---- */

/* Returns whether the log says that ttmond is tracing. */
static bool says_tracing(int log)
{
	char buf[16384];
	ssize_t n = pread(log, buf, sizeof(buf) - 1, 0);

	buf[n > 0 ? n : 0] = '\0';
	return strstr(buf, "tracing ") != NULL;
}

/* Copies the last line of the log, from behind its last ": ". */
static void last_line(int log, char *buf, size_t size)
{
	char text[4096];
	off_t end = lseek(log, 0, SEEK_END);
	ssize_t n =
		pread(log, text, sizeof(text) - 1, end > (off_t)sizeof(text) - 1 ? end - (off_t)sizeof(text) + 1 : 0);
	char *line;

	text[n > 0 ? n : 0] = '\0';
	while (n > 0 && text[n - 1] == '\n')
		text[--n] = '\0';
	line = strrchr(text, '\n');
	snprintf(buf, size, "%.*s", (int)size - 1, line ? line + 1 : text);
}

/* Returns 0 if ttmond wrote the file. Otherwise why has the reason. */
static int record(char *const argv[], int log, unsigned int seconds, char *why, size_t size)
{
	int status = 0, err;
	bool ended = false;
	pid_t pid;

	err = ttmon_child_start(argv, log, NULL, &pid);
	if (err) {
		snprintf(why, size, "cannot start ttmond: %s", strerror(-err));
		return err;
	}
	for (unsigned int ms = 0; ms < START_MS && !ended && !ttmon_report_stopped && !says_tracing(log); ms += TICK_MS)
		ended = ttmon_child_wait(pid, TICK_MS, &status);
	if (!ended && says_tracing(log))
		ended = ttmon_child_wait(pid, seconds * 1000, &status);
	if (!ended) {
		kill(pid, SIGINT);
		ended = wait_for(pid, END_MS, false, &status);
	}
	if (!ended) {
		kill_child(pid);
		snprintf(why, size, "ttmond did not end");
		return -ETIMEDOUT;
	}
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	last_line(log, why, size);
	return -ENOEXEC;
}

void ttmon_report_recording(struct ttmon_report *b, const char *scratch, unsigned int seconds)
{
	_cleanup_free_ char *raw = NULL, *to = NULL, *said = NULL;
	char ttmond[4200], why[512] = "";
	_cleanup_close_ int log = -1;
	int err;

	ttmon_report_ttmond(ttmond, sizeof(ttmond));
	if (asprintf(&to, "%s/recording.rec", b->folder) < 0 || asprintf(&raw, "%s/raw.rec", scratch) < 0 ||
	    asprintf(&said, "%s/recording.log", b->hide ? scratch : b->folder) < 0) {
		b->missing++;
		ttmon_report_lacks(b, "recording.rec", strerror(ENOMEM));
		return;
	}
	log = open(said, O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
	if (log < 0)
		err = -errno;
	else
		err = record((char *[]){ ttmond, "--record", b->hide ? raw : to, "--quiet", NULL }, log, seconds, why,
			     sizeof(why));
	if (err) {
		b->missing++;
		/* A message of ttmond may contain names. */
		ttmon_report_lacks(b, "recording.rec", b->hide || !why[0] ? "ttmond made none" : why);
		return;
	}
	err = b->hide ? ttmon_redact_recording(&b->redact, raw, to) : 0;
	if (err) {
		b->missing++;
		ttmon_report_lacks(b, "recording.rec", strerror(-err));
	}
}
