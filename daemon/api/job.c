// SPDX-License-Identifier: GPL-2.0-only
/*
 * job.c: see job.h. Cold thread; the children are forked from the hot one (ttmon_daemon_dump()) and
 * share nothing with it but the file. They write at low priority, and are killed when the thread that
 * forked them ends.
 */
#include "daemon/api/job.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "lib/os/clock.h"

struct item {
	struct ttmon_api_job job;
	struct ttmon_http_later *later;
	uid_t uid;
	pid_t pid; /* 0: waits in the queue */
	int fd;
	uint64_t start_ns;
	bool killed;
};

struct jobs {
	struct ttmon_daemon *c;
	struct item items[TTMON_JOBS_MAX]; /* in order of arrival */
	size_t n;
};

static int open_file(bool on_disk)
{
	const char *dir = getenv("STATE_DIRECTORY");
	char first[512];
	int fd = -1;

	/* systemd separates several directories by colons. */
	snprintf(first, sizeof(first), "%.*s", dir ? (int)strcspn(dir, ":") : 0, dir ? dir : "");
	if (on_disk)
		fd = open(first[0] ? first : "/var/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		fd = memfd_create("ttmond-api", MFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* The child's exit status is the error number; Linux's error numbers fit. */
static int run_child(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	const struct item *it = ctx;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpriority(PRIO_PROCESS, 0, 10);
	/*
	 * Closes above all sockets: a client must see the end of its connection, and no listener may outlive
	 * the daemon.
	 */
	if (it->fd > 3)
		close_range(3, (unsigned int)it->fd - 1, 0);
	close_range((unsigned int)it->fd + 1, ~0u, 0);
	_exit(-it->job.make(&it->job, it->fd, p, now_ns) & 0xff);
}

static size_t running(const struct jobs *jobs)
{
	size_t n = 0;

	for (size_t i = 0; i < jobs->n; i++)
		n += jobs->items[i].pid != 0;
	return n;
}

static void refuse(const struct item *it, int err)
{
	bool full = err == ENOSPC || err == EDQUOT || err == EFBIG;
	char text[256];

	if (err == ENOENT) {
		ttmon_http_later_error(it->later, 404, it->job.missing);
		return;
	}
	snprintf(text, sizeof(text), "cannot make %s: %s", it->job.what, strerror(err));
	ttmon_http_later_error(it->later, full ? 507 : 500, text);
}

static void answer(struct item *it, int status)
{
	char text[256];

	if (WIFEXITED(status) && !WEXITSTATUS(status)) {
		ttmon_http_later_file(it->later, TAKE_FD(it->fd), it->job.content_type);
	} else if (WIFEXITED(status)) {
		refuse(it, WEXITSTATUS(status));
	} else {
		snprintf(text, sizeof(text),
			 it->killed ? "%s took longer than %d s" : "the process that made %s was killed", it->job.what,
			 TTMON_JOB_S);
		ttmon_http_later_error(it->later, it->killed ? 503 : 500, text);
	}
}

static void drop(struct jobs *jobs, size_t i)
{
	if (jobs->items[i].fd >= 0)
		close(jobs->items[i].fd);
	jobs->n--;
	memmove(&jobs->items[i], &jobs->items[i + 1], (jobs->n - i) * sizeof(jobs->items[0]));
}

static int begin(const struct ttmon_daemon *c, struct item *it)
{
	pid_t pid;

	it->fd = open_file(it->job.on_disk);
	if (it->fd < 0)
		return it->fd;
	it->start_ns = ttmon_mono_ns();
	pid = ttmon_daemon_dump(c, run_child, it);
	if (pid < 0)
		return (int)pid;
	it->pid = pid;
	return 0;
}

static void start_waiting(struct jobs *jobs)
{
	for (size_t i = 0; i < jobs->n && running(jobs) < TTMON_JOBS_RUN;) {
		struct item *it = &jobs->items[i];
		int err = it->pid ? 0 : begin(jobs->c, it);

		if (err) {
			refuse(it, -err);
			drop(jobs, i);
		} else {
			i++;
		}
	}
}

static void reap(void *state)
{
	struct jobs *jobs = state;
	int status;

	for (size_t i = 0; i < jobs->n;) {
		struct item *it = &jobs->items[i];

		if (it->pid && waitpid(it->pid, &status, WNOHANG) == it->pid) {
			answer(it, status);
			drop(jobs, i);
			continue;
		}
		if (it->pid && !it->killed && ttmon_mono_ns() - it->start_ns > TTMON_JOB_S * NSEC_PER_SEC)
			it->killed = !kill(it->pid, SIGKILL);
		i++;
	}
	if (jobs->n)
		start_waiting(jobs);
}

void ttmon_api_add_job(struct ttmon_daemon *c, struct ttmon_http_reply *reply, const struct ttmon_api_job *job)
{
	struct jobs *jobs = ttmon_daemon_part(c, &ttmon_part_jobs);
	struct item *it;

	for (size_t i = 0; i < jobs->n && reply->uid; i++) {
		if (jobs->items[i].uid == reply->uid) {
			ttmon_http_error(reply, 503, "one of these at a time for a user, try again in a few seconds");
			return;
		}
	}
	if (jobs->n == TTMON_JOBS_MAX) {
		ttmon_http_error(reply, 503, "too many of these at a time, try again in a few seconds");
		return;
	}
	it = &jobs->items[jobs->n];
	*it = (struct item){ .job = *job, .uid = reply->uid, .fd = -1 };
	ttmon_viewer_init(&it->job.who, reply);
	it->job.run = c;
	it->later = ttmon_http_defer(reply);
	if (!it->later)
		return;
	jobs->n++;
	start_waiting(jobs);
}

static int start(struct ttmon_daemon *c, void **state)
{
	struct jobs *jobs = calloc(1, sizeof(*jobs));

	if (!jobs)
		return log_error_r(-ENOMEM, "out of memory");
	jobs->c = c;
	*state = jobs;
	return 0;
}

static void free_part(void *state)
{
	struct jobs *jobs = state;

	for (; jobs->n; drop(jobs, jobs->n - 1)) {
		const struct item *it = &jobs->items[jobs->n - 1];

		if (it->pid) {
			kill(it->pid, SIGKILL);
			waitpid(it->pid, NULL, 0);
		}
	}
	free(jobs);
}

const struct ttmon_part ttmon_part_jobs = {
	.name = "documents",
	.in = TTMON_IN_BOTH,
	.start = start,
	.child_ended = reap,
	.tick = reap,
	.free = free_part,
};
