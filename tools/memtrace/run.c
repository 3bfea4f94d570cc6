// SPDX-License-Identifier: GPL-2.0-only
/*
 * run.c: runs a command with libttmon-memtrace.so preloaded, and reads its channels until all writers
 * have ended.
 *
 * The socket is in a private folder, so no other user can connect. Ctrl-C reaches the command through
 * its terminal; a signal sent only to this process is forwarded to the command.
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "memtrace/channel/preload.h"
#include "tools/memtrace/record.h"
#include "lib/os/clock.h"

#define BUSY_NS	 (100 * NSEC_PER_MS) /* for this long after records, poll for more every millisecond */
#define IDLE_MS	 5
#define FLUSH_NS NSEC_PER_SEC
/* time after the command's end; a process that still writes then is not waited for */
#define LINGER_NS   (200 * NSEC_PER_MS)
#define SIGNAL_BASE 128

struct run {
	struct ttmon_mt_record *r;
	char dir[96];
	struct ttmon_mt_listen *listen;
	sigset_t old;
	int signals;
	pid_t pid;
	int status;	  /* exit status of the command, once it has ended */
	bool ended, stop; /* stop: a signal came after the command had ended */
};

static void note(void *ctx, uint32_t pid, const char *text)
{
	(void)ctx;
	ttmon_mt_record_say("process %u: %s", pid, text);
}

/* ---- before the command ---- */

static int make_dir(struct run *run)
{
	const char *base = getenv("XDG_RUNTIME_DIR");
	int n = base && *base == '/' ? snprintf(run->dir, sizeof(run->dir), "%s/ttmon-mt-XXXXXX", base) : -1;

	if (n > 0 && (size_t)n < sizeof(run->dir) - 8 && mkdtemp(run->dir))
		return 0;
	strcpy(run->dir, "/tmp/ttmon-mt-XXXXXX");
	if (mkdtemp(run->dir))
		return 0;
	n = -errno;
	ttmon_mt_record_say("no folder for the socket: %s: %s", run->dir, strerror(-n));
	*run->dir = '\0';
	return n;
}

static int prepare(struct run *run, char *path, size_t size)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD };
	char why[200];
	sigset_t set;
	int err;

	err = make_dir(run);
	if (err)
		return err;
	snprintf(path, size, "%s/sock", run->dir);
	err = ttmon_mt_listen_new(path, 0600, &run->listen, why, sizeof(why));
	if (err) {
		ttmon_mt_record_say("%s", why);
		return err;
	}
	sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, &run->old);
	run->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (run->signals >= 0)
		return 0;
	err = -errno;
	ttmon_mt_record_say("%s", strerror(-err));
	return err;
}

static _Noreturn void run_child(const struct run *run, const char *lib, const char *path, int fail)
{
	const char *before = getenv("LD_PRELOAD");
	char *preload = NULL;
	int err = asprintf(&preload, "%s%s%s", lib, before && *before ? ":" : "", before ?: "") < 0 ? ENOMEM : 0;

	sigprocmask(SIG_SETMASK, &run->old, NULL);
	for (size_t i = 0; i < run->r->nr_env && !err; i++)
		err = setenv(run->r->env[i].name, run->r->env[i].value, 1) ? errno : 0;
	if (!err && !setenv("LD_PRELOAD", preload, 1) && !setenv("TTMON_MEMTRACE_SOCKET", path, 1))
		execvp(run->r->cmd[0], run->r->cmd);
	err = err ?: errno;
	(void)!write(fail, &err, sizeof(err));
	_exit(127);
}

static int start(struct run *run, const char *lib, const char *path)
{
	int fail[2], err = 0;

	if (pipe2(fail, O_CLOEXEC)) {
		err = -errno;
		ttmon_mt_record_say("%s", strerror(-err));
		return err;
	}
	fflush(NULL);
	run->pid = fork();
	if (!run->pid)
		run_child(run, lib, path, fail[1]);
	err = run->pid < 0 ? errno : 0;
	close(fail[1]);
	if (!err && read(fail[0], &err, sizeof(err)) != sizeof(err))
		err = 0;
	close(fail[0]);
	if (!err)
		return 0;
	if (run->pid > 0)
		waitpid(run->pid, NULL, 0);
	ttmon_mt_record_say("cannot run %s: %s", run->r->cmd[0], strerror(err));
	return -err;
}

/* ---- while the command runs ---- */

static int status_of(int status)
{
	return WIFSIGNALED(status) ? SIGNAL_BASE + WTERMSIG(status) : WEXITSTATUS(status);
}

static void read_signals(struct run *run)
{
	struct signalfd_siginfo si;
	int status;

	while (read(run->signals, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo == SIGCHLD)
			continue;
		/* A signal from the terminal reaches the command directly. */
		if (run->ended)
			run->stop = true;
		else if (si.ssi_code <= 0)
			kill(run->pid, (int)si.ssi_signo);
	}
	if (run->ended || waitpid(run->pid, &status, WNOHANG) != run->pid)
		return;
	run->ended = true;
	run->status = status_of(status);
}

static int pump(struct run *run, struct ttmon_mt_sink *sink)
{
	struct pollfd fds[] = { { .fd = run->signals, .events = POLLIN },
				{ .fd = ttmon_mt_listen_fd(run->listen), .events = POLLIN } };
	uint64_t busy_ns = 0, seq = 0, now;
	bool told = false;
	uint64_t ended_ns = 0;
	int more;

	for (;;) {
		read_signals(run);
		more = ttmon_mt_listen_work(run->listen, sink);
		if (more < 0)
			return more;
		now = ttmon_mono_ns();
		if (sink->seq != seq)
			busy_ns = now;
		seq = sink->seq;
		if (run->ended && (run->stop || (!more && !ttmon_mt_listen_channels(run->listen))))
			return 0;
		if (run->ended && !ended_ns)
			ended_ns = now;
		if (run->ended && !told && now - ended_ns >= LINGER_NS) {
			told = true;
			ttmon_mt_record_say(
				"%s has ended; processes that it started go on and are recorded until they end, or "
				"Ctrl-C",
				run->r->cmd[0]);
		}
		if (now - run->r->flushed_ns >= FLUSH_NS) {
			ttmon_mt_record_flush(run->r);
			run->r->flushed_ns = now;
		}
		poll(fds, ARRAY_SIZE(fds),
		     more				      ? 0
		     : !ttmon_mt_listen_channels(run->listen) ? -1
		     : now - busy_ns < BUSY_NS		      ? 1
							      : IDLE_MS);
	}
}

/* After an error the command goes on: the library notices that the channel is not read any more. */
static void give_up(struct run *run, int err)
{
	int status;

	run->r->read_err = err;
	ttmon_mt_record_say("records of the GPU cannot be received any more: %s", strerror(-err));
	ttmon_mt_listen_free(TAKE_PTR(run->listen));
	if (run->ended || waitpid(run->pid, &status, 0) != run->pid)
		return;
	run->status = status_of(status);
}

static void fini(struct run *run)
{
	ttmon_mt_listen_free(run->listen);
	if (*run->dir)
		rmdir(run->dir);
	if (run->signals < 0)
		return;
	close(run->signals);
	sigprocmask(SIG_SETMASK, &run->old, NULL);
}

int ttmon_mt_record_run(struct ttmon_mt_record *r, int *status)
{
	struct ttmon_mt_sink sink = {
		.dict = &r->dict, .stats = &r->stats, .recs = ttmon_mt_record_take, .note = note, .ctx = r
	};
	_cleanup_(fini) struct run run = { .r = r, .signals = -1 };
	char lib[PATH_MAX], path[128], why[PATH_MAX + 128];
	int err;

	err = ttmon_mt_library(lib, sizeof(lib), why, sizeof(why));
	if (err)
		ttmon_mt_record_say("%s", why);
	err = err ?: prepare(&run, path, sizeof(path));
	err = err ?: start(&run, lib, path);
	if (err)
		return err;
	ttmon_mt_record_begin(r);
	err = pump(&run, &sink);
	err = err ?: ttmon_mt_listen_finish(run.listen, &sink);
	r->opened = ttmon_mt_listen_seen(run.listen);
	if (err)
		give_up(&run, err);
	else if (!r->opened)
		ttmon_mt_record_say("no channel was opened: %s launched nothing on a GPU, or libttmon-memtrace.so"
				    " was not loaded into it (set-uid, static)",
				    r->cmd[0]);
	*status = run.status;
	return 0;
}
