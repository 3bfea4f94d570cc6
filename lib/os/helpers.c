// SPDX-License-Identifier: GPL-2.0-only
/*
 * helpers.c: see helpers.h. The spawner and its helpers have one thread each and only a socket; the
 * rest runs in the caller's thread.
 *
 *   daemon -> spawner   a byte: start one more helper
 *   spawner -> daemon   the helper's pid, with its socket and pidfd
 *   daemon -> helper    struct request, n bytes
 *   helper -> daemon    struct answer, n bytes, over a stream; a descriptor comes with the head
 *
 * A helper handles one call at a time. It ends when it reads end of file or the spawner dies; if it
 * hangs in the kernel, it ends when it returns.
 */
#define _GNU_SOURCE
#include "lib/os/helpers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>

#include "lib/os/clock.h"
#include "lib/os/detached.h"

#define SOCK_FD	     TTMON_DETACHED_FD
#define HELPERS_MAX  32
#define PROMPT_MAX   3 /* the most helpers working on calls that are not late */
#define LATE_AT_ONE  2
#define LATE_OF_ONE  4
#define LATE_OF_ROOT 8
/*
 * Held programs and first calls wait for a helper that is not late, so it gets priority; nothing waits
 * for a late one.
 */
#define NICE_PROMPT (-10)
#define NICE_LATE   10
#define QUEUE_MAX   65536u
#define USERS_KEPT  256
#define ANSWER_MAX  (64u << 20)
#define CPU_SHARE   20 /* a user may use one part in this many of the CPU time */

struct request {
	uint64_t n;
	uint32_t fn;
	uint16_t has_fd, has_to; /* descriptors that come with it, in this order */
};

struct answer {
	uint64_t n, cpu_ns;
	int32_t err;
	uint32_t has_fd;
};

/* ---- both sides ---- */

union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(2 * sizeof(int))];
};

/*
 * A head and n bytes in one piece, so that the reader is woken once. nr_fds: 0 to 2 descriptors, with
 * the first byte.
 */
static ssize_t send_pair(int sock, const void *head, size_t len, const void *p, size_t n, const int *fds, size_t nr_fds,
			 int flags)
{
	union control control;
	struct iovec iov[2] = { { (void *)head, len }, { (void *)p, n } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	ssize_t done;

	if (nr_fds) {
		struct cmsghdr *c;

		memset(&control, 0, sizeof(control));
		msg.msg_control = &control;
		msg.msg_controllen = CMSG_SPACE(nr_fds * sizeof(*fds));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nr_fds * sizeof(*fds));
		memcpy(CMSG_DATA(c), fds, nr_fds * sizeof(*fds));
	}
	do
		done = sendmsg(sock, &msg, MSG_NOSIGNAL | flags);
	while (done < 0 && errno == EINTR);
	return done < 0 ? -errno : done;
}

static ssize_t send_some(int sock, const void *p, size_t n, const int *fds, size_t nr_fds, int flags)
{
	return send_pair(sock, p, n, NULL, 0, fds, nr_fds, flags);
}

static int send_all(int sock, const void *head, size_t len, const void *p, size_t n, int fd)
{
	size_t done = 0;

	while (done < len + n) {
		size_t of_head = MIN(done, len), of_p = done - of_head;
		ssize_t r = send_pair(sock, (const char *)head + of_head, len - of_head, (const char *)p + of_p,
				      n - of_p, &fd, fd >= 0 && !done, 0);

		if (r < 0)
			return (int)r;
		done += (size_t)r;
	}
	return 0;
}

/* fds[0] and fds[1]: descriptors that came with it, or -1. Returns 0 at end of file. */
static ssize_t recv_some(int sock, void *p, size_t n, int fds[2], int flags)
{
	union control control;
	struct iovec iov = { p, n };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	struct cmsghdr *c;
	ssize_t done;

	do
		done = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | flags);
	while (done < 0 && errno == EINTR);
	if (done < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		size_t got = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		memcpy(fds, CMSG_DATA(c), MIN(got, (size_t)2) * sizeof(int));
	}
	return done;
}

static bool recv_all(int sock, void *p, size_t n, int fds[2])
{
	struct pollfd pfd = { .fd = sock, .events = POLLIN };
	size_t done = 0;

	while (done < n) {
		ssize_t r;

		/* A process that waits in recvmsg() is woken also when the other end reads what it was sent. */
		(void)!poll(&pfd, 1, -1);
		r = recv_some(sock, (char *)p + done, n - done, fds, 0);

		if (r <= 0)
			return false;
		done += (size_t)r;
	}
	return true;
}

/* ---- spawner and helper ---- */

/* The configuration that they are forked with. */
static struct ttmon_helpers_cfg made_for;

void ttmon_helper_put(struct ttmon_helper_out *out, const void *p, size_t n)
{
	if (out->n + n > out->cap) {
		size_t cap = MAX(out->n + n, out->cap * 2);
		char *buf = realloc(out->buf, cap);

		if (!buf) {
			out->no_memory = true;
			return;
		}
		out->buf = buf;
		out->cap = cap;
	}
	if (n)
		memcpy(out->buf + out->n, p, n);
	out->n += n;
}

static uint64_t cpu_ns(void)
{
	return ttmon_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* Returns false if the daemon is gone. */
static bool serve_one(int sock)
{
	struct ttmon_helper_out out = { .fd = -1 };
	_cleanup_free_ char *in = NULL;
	int fds[2] = { -1, -1 }, to = -1;
	struct answer answer = { 0 };
	struct request req;
	uint64_t begun_ns;
	bool alive;

	if (!recv_all(sock, &req, sizeof(req), fds))
		return false;
	in = malloc(req.n + 1);
	if (!in || !recv_all(sock, in, req.n, fds))
		return false;
	if (req.has_to)
		to = TAKE_FD(fds[req.has_fd ? 1 : 0]);
	begun_ns = cpu_ns();
	answer.err = made_for.fns[req.fn](made_for.ctx, in, req.n, fds[0], &out);
	if (fds[0] >= 0)
		close(fds[0]);
	if (out.no_memory) {
		answer.err = -ENOMEM;
		out.n = 0;
	}
	if (to >= 0) {
		/*
		 * The process that waits at the other end of the socket sees end of file, whether it got the file or
		 * not.
		 */
		if (out.fd >= 0) {
			(void)!send_some(to, "", 1, &out.fd, 1, MSG_DONTWAIT);
			close(TAKE_FD(out.fd));
		}
		close(to);
	}
	answer.n = out.n;
	answer.cpu_ns = cpu_ns() - begun_ns;
	answer.has_fd = out.fd >= 0;
	alive = !send_all(sock, &answer, sizeof(answer), out.buf, out.n, out.fd);
	if (out.fd >= 0)
		close(out.fd);
	free(out.buf);
	return alive;
}

_Noreturn static void helper_run(int sock)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "ttmond-helper");
	setpriority(PRIO_PROCESS, 0, NICE_PROMPT);
	while (serve_one(sock))
		;
	_exit(0);
}

static void spawner_run(void)
{
	char byte;

	if (made_for.begin)
		made_for.begin();
	/* The spawner does not wait for its children. */
	signal(SIGCHLD, SIG_IGN);
	while (recv(SOCK_FD, &byte, 1, 0) == 1) {
		int pair[2] = { -1, -1 }, fds[2];
		int32_t who = 0;
		pid_t pid;

		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair)) {
			(void)!send_some(SOCK_FD, &who, sizeof(who), NULL, 0, 0);
			continue;
		}
		pid = fork();
		if (pid == 0) {
			close(SOCK_FD);
			close(pair[0]);
			helper_run(pair[1]);
		}
		close(pair[1]);
		fds[0] = pair[0];
		who = (int32_t)pid;
		fds[1] = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
		/*
		 * A helper that died already is noticed by its end of file. But without a pidfd it could not be
		 * killed, so then it is not passed on.
		 */
		(void)!send_some(SOCK_FD, &who, sizeof(who), fds, fds[1] < 0 ? 0 : 2, 0);
		close(fds[0]);
		if (fds[1] >= 0)
			close(fds[1]);
	}
}

/* ---- the daemon's side ---- */

struct user;

struct call {
	struct ttmon_helper_call of;
	int to; /* copy of of.to; -1: none */
	struct user *user;
	uint64_t asked_ns;
	struct call *next;
};

/* A user that calls are made for. */
struct user {
	uint64_t who;
	struct call *first, **last;
	uint32_t queued, running, late; /* late: number of helpers that hang, or were hanging, for this user */
	int64_t cpu_ns;			/* CPU time that the user may still use */
	uint64_t cpu_as_of_ns;
	struct user *next;
};

struct helper {
	pid_t pid;
	int sock, pidfd; /* sock -1: there is no helper, or it was given up but has not ended yet (pidfd) */
	struct call *call;
	struct user *user; /* user of the call, also of one that was given up */
	uint64_t where;
	uint64_t begun_ns;
	bool late;
	/* The part of the answer that has arrived. */
	struct answer head;
	size_t have;
	int fd;
	char *buf;
};

struct ttmon_helpers {
	int epoll, timer, spawner;
	uint64_t late_ns, give_up_ns;
	int64_t burst_ns;
	bool spawning, armed;
	struct helper helpers[HELPERS_MAX];
	struct user *users; /* list of users, the next to be served first */
	uint32_t nr_users;
	struct ttmon_helpers_counts counts;
};

enum { EV_SPAWNER = HELPERS_MAX, EV_TIMER, EV_DEATH };

static int watch(struct ttmon_helpers *h, int fd, uint64_t what)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.u64 = what };

	return epoll_ctl(h->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static void arm(struct ttmon_helpers *h)
{
	struct itimerspec it = { .it_value = { .tv_sec = (time_t)(h->late_ns / NSEC_PER_SEC),
					       .tv_nsec = (long)(h->late_ns % NSEC_PER_SEC) } };

	if (!h->armed)
		h->armed = !timerfd_settime(h->timer, 0, &it, NULL);
}

static void ask_for_helper(struct ttmon_helpers *h)
{
	if (!h->spawning && h->spawner >= 0)
		h->spawning = send_some(h->spawner, "", 1, NULL, 0, MSG_DONTWAIT) == 1;
}

int ttmon_helpers_start(const struct ttmon_helpers_cfg *cfg, struct ttmon_helpers **ret)
{
	struct ttmon_helpers *h = calloc(1, sizeof(*h));
	int err;

	if (!h)
		return -ENOMEM;
	for (size_t i = 0; i < HELPERS_MAX; i++)
		h->helpers[i].sock = h->helpers[i].pidfd = h->helpers[i].fd = -1;
	h->epoll = h->timer = h->spawner = -1;
	h->late_ns = (cfg->late_ms ? cfg->late_ms : 50) * NSEC_PER_MS;
	h->give_up_ns = (cfg->give_up_ms ? cfg->give_up_ms : 10000) * NSEC_PER_MS;
	h->burst_ns = (int64_t)((cfg->cpu_ms ? cfg->cpu_ms : 5000) * NSEC_PER_MS);
	made_for = *cfg;
	err = ttmon_detached_start("ttmond-spawner", 0, NULL, 0, spawner_run, &h->spawner);
	if (!err) {
		h->epoll = epoll_create1(EPOLL_CLOEXEC);
		h->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		err = h->epoll < 0 || h->timer < 0 ? -errno : watch(h, h->spawner, EV_SPAWNER);
	}
	if (!err)
		err = watch(h, h->timer, EV_TIMER);
	if (err) {
		ttmon_helpers_free(h);
		return err;
	}
	/* The first helper is started now so that it is ready when needed. */
	ask_for_helper(h);
	*ret = h;
	return 0;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void call_free(struct call *c)
{
	if (c->of.fd >= 0)
		close(c->of.fd);
	if (c->to >= 0)
		close(c->to);
	free((void *)c->of.in);
	free(c);
}

static void kill_helper(const struct helper *p)
{
	if (p->pidfd >= 0)
		(void)!syscall(SYS_pidfd_send_signal, p->pidfd, SIGKILL, NULL, 0);
}

static void drop_answer(struct helper *p)
{
	close_fd(&p->fd);
	free(TAKE_PTR(p->buf));
	p->have = 0;
}

void ttmon_helpers_free(struct ttmon_helpers *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < HELPERS_MAX; i++) {
		struct helper *p = &h->helpers[i];

		/* The other helpers see end of file on their sockets. */
		if (p->call) {
			kill_helper(p);
			call_free(p->call);
		}
		drop_answer(p);
		close_fd(&p->sock);
		close_fd(&p->pidfd);
	}
	while (h->users) {
		struct user *u = h->users;

		h->users = u->next;
		while (u->first) {
			struct call *c = u->first;

			u->first = c->next;
			call_free(c);
		}
		free(u);
	}
	close_fd(&h->spawner);
	close_fd(&h->timer);
	close_fd(&h->epoll);
	free(h);
}

static void refill(const struct ttmon_helpers *h, struct user *u, uint64_t now)
{
	u->cpu_ns = MIN(u->cpu_ns + (int64_t)((now - u->cpu_as_of_ns) / CPU_SHARE), h->burst_ns);
	u->cpu_as_of_ns = now;
}

static void forget_idle_users(struct ttmon_helpers *h, uint64_t now)
{
	for (struct user **link = &h->users; *link;) {
		struct user *u = *link;

		refill(h, u, now);
		if (u->queued || u->running || u->late || u->cpu_ns < h->burst_ns) {
			link = &u->next;
			continue;
		}
		*link = u->next;
		free(u);
		h->nr_users--;
	}
}

static struct user *user_get(struct ttmon_helpers *h, uint64_t who, uint64_t now)
{
	struct user *u;

	for (u = h->users; u; u = u->next)
		if (u->who == who)
			return u;
	if (h->nr_users >= USERS_KEPT)
		forget_idle_users(h, now);
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	*u = (struct user){ .who = who, .cpu_ns = h->burst_ns, .cpu_as_of_ns = now, .next = h->users };
	u->last = &u->first;
	h->users = u;
	h->nr_users++;
	return u;
}

/* Returns whether this user may have one more call running, at this place. */
static bool may_run(const struct ttmon_helpers *h, const struct user *u, uint64_t where)
{
	uint32_t there = 0;

	for (size_t i = 0; i < HELPERS_MAX; i++)
		there += h->helpers[i].late && h->helpers[i].user == u && h->helpers[i].where == where;
	return there < LATE_AT_ONE;
}

/* Takes the user's first call that may run out of the queue. */
static struct call *take_call(const struct ttmon_helpers *h, struct user *u, uint64_t now)
{
	struct call **link = &u->first;

	if (!u->queued)
		return NULL;
	refill(h, u, now);
	if (u->cpu_ns <= 0 || u->late >= (u->who ? LATE_OF_ONE : LATE_OF_ROOT))
		return NULL;
	while (*link && u->late && !may_run(h, u, (*link)->of.where))
		link = &(*link)->next;
	if (*link) {
		struct call *c = *link;

		*link = c->next;
		if (!*link)
			u->last = link;
		u->queued--;
		return c;
	}
	return NULL;
}

/* Serves users in turn: one that had its turn goes to the end of the list. */
static struct call *next_call(struct ttmon_helpers *h, uint64_t now)
{
	for (struct user **link = &h->users; *link; link = &(*link)->next) {
		struct user *u = *link, **end;
		struct call *c = take_call(h, u, now);

		if (!c)
			continue;
		*link = u->next;
		for (end = &h->users; *end;)
			end = &(*end)->next;
		u->next = NULL;
		*end = u;
		return c;
	}
	return NULL;
}

static void put_back(struct ttmon_helpers *h, struct call *c)
{
	struct user *u = c->user;

	(void)h;
	c->next = u->first;
	u->first = c;
	if (u->last == &u->first)
		u->last = &c->next;
	u->queued++;
}

/*
 * The socket is empty, so it takes the whole request: TTMON_HELPER_IN_MAX is less than half of the
 * default socket buffer.
 */
static bool give(struct helper *p, struct call *c, uint64_t now)
{
	struct request req = { .n = c->of.n, .fn = c->of.fn, .has_fd = c->of.fd >= 0, .has_to = c->to >= 0 };
	int fds[2] = { req.has_fd ? c->of.fd : c->to, c->to };

	if (send_pair(p->sock, &req, sizeof(req), c->of.in, c->of.n, fds, req.has_fd + req.has_to, MSG_DONTWAIT) !=
	    (ssize_t)(sizeof(req) + c->of.n))
		return false;
	p->call = c;
	p->user = c->user;
	p->where = c->of.where;
	p->begun_ns = now;
	p->late = false;
	c->user->running++;
	return true;
}

/* Closes a helper that was given up or has died: its slot is free when the process has ended. */
static void retire(struct ttmon_helpers *h, struct helper *p)
{
	(void)h;
	kill_helper(p);
	drop_answer(p);
	close_fd(&p->sock);
}

static void pump(struct ttmon_helpers *h)
{
	uint64_t now = ttmon_mono_ns();
	uint32_t prompt = 0, processes = 0;
	bool waiting = false;

	for (size_t i = 0; i < HELPERS_MAX; i++) {
		processes += h->helpers[i].pidfd >= 0;
		prompt += h->helpers[i].call && !h->helpers[i].late;
	}
	for (size_t i = 0; i < HELPERS_MAX && prompt < PROMPT_MAX; i++) {
		struct helper *p = &h->helpers[i];
		struct call *c;

		if (p->sock < 0 || p->call)
			continue;
		c = next_call(h, now);
		if (!c)
			return;
		if (give(p, c, now)) {
			prompt++;
			arm(h);
		} else {
			/* The helper has died. */
			put_back(h, c);
			retire(h, p);
		}
	}
	for (const struct user *u = h->users; u && !waiting; u = u->next)
		waiting = u->queued;
	if (!waiting)
		return;
	arm(h);
	if (prompt < PROMPT_MAX && processes < HELPERS_MAX)
		ask_for_helper(h);
}

int ttmon_helpers_call(struct ttmon_helpers *h, const struct ttmon_helper_call *call)
{
	uint64_t now = ttmon_mono_ns();
	struct user *u;
	struct call *c;

	if (call->n > TTMON_HELPER_IN_MAX)
		return -E2BIG;
	u = user_get(h, call->who, now);
	if (!u)
		return -ENOMEM;
	if (u->queued >= QUEUE_MAX) {
		h->counts.refused++;
		return -EBUSY;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->of = *call;
	c->of.in = malloc(call->n + 1);
	c->of.fd = call->fd >= 0 ? fcntl(call->fd, F_DUPFD_CLOEXEC, 0) : -1;
	c->to = call->to ? fcntl(*call->to, F_DUPFD_CLOEXEC, 0) : -1;
	if (!c->of.in || (call->fd >= 0 && c->of.fd < 0) || (call->to && c->to < 0)) {
		call_free(c);
		return -ENOMEM;
	}
	memcpy((void *)c->of.in, call->in, call->n);
	c->user = u;
	c->asked_ns = now;
	*u->last = c;
	u->last = &c->next;
	u->queued++;
	h->counts.calls++;
	pump(h);
	return 0;
}

/* Delivers the answer of the call; the helper may work on another call by then. */
static void finish(struct call *c, struct ttmon_helper_reply *reply)
{
	c->of.done(c->of.ctx, reply);
	if (reply->fd >= 0)
		close(reply->fd);
	call_free(c);
}

static void set_late(struct ttmon_helpers *h, struct helper *p, bool late)
{
	if (p->late == late)
		return;
	p->late = late;
	p->user->late += late ? 1 : -1U;
	setpriority(PRIO_PROCESS, (id_t)p->pid, late ? NICE_LATE : NICE_PROMPT);
	h->counts.lates += late;
}

/* Ends the call of the helper for the daemon. */
static struct call *take_back(struct helper *p)
{
	struct call *c = TAKE_PTR(p->call);

	c->user->running--;
	return c;
}

static void give_up(struct ttmon_helpers *h, struct helper *p, int err)
{
	struct ttmon_helper_reply reply = { .err = err, .fd = -1 };
	struct call *c = take_back(p);

	h->counts.given_up += err == -ETIMEDOUT;
	retire(h, p);
	finish(c, &reply);
}

static void answered(struct ttmon_helpers *h, struct helper *p)
{
	struct ttmon_helper_reply reply = { .err = p->head.err, .buf = p->buf, .n = p->head.n, .fd = TAKE_FD(p->fd) };
	char *buf = TAKE_PTR(p->buf);
	struct call *c = take_back(p);

	p->have = 0;
	set_late(h, p, false);
	c->user->cpu_ns -= (int64_t)p->head.cpu_ns;
	h->counts.cpu_ns += p->head.cpu_ns;
	/* Give the helper new work while the callback handles the answer. */
	pump(h);
	finish(c, &reply);
	free(buf);
}

/* Handles an answer or end of file. */
static void on_helper(struct ttmon_helpers *h, struct helper *p)
{
	int fds[2] = { -1, -1 };
	ssize_t n = 1;

	while (p->sock >= 0) {
		bool in_head = p->have < sizeof(p->head);
		size_t want = in_head ? sizeof(p->head) - p->have : sizeof(p->head) + p->head.n - p->have;

		if (!in_head && !want)
			break;
		n = recv_some(p->sock, in_head ? (char *)&p->head + p->have : p->buf + (p->have - sizeof(p->head)),
			      want, fds, MSG_DONTWAIT);
		if (n == -EAGAIN)
			return;
		if (n <= 0)
			break;
		if (fds[0] >= 0) {
			close_fd(&p->fd);
			p->fd = TAKE_FD(fds[0]);
		}
		close_fd(&fds[1]);
		p->have += (size_t)n;
		if (p->have == sizeof(p->head)) {
			p->buf = p->head.n <= ANSWER_MAX ? malloc(p->head.n + 1) : NULL;
			if (!p->buf) {
				n = 0;
				break;
			}
		}
	}
	if (n > 0 && p->call) {
		answered(h, p);
	} else if (p->call) {
		give_up(h, p, -EIO);
	} else if (p->sock >= 0) {
		retire(h, p);
	}
}

static void on_death(struct ttmon_helpers *h, struct helper *p)
{
	if (p->pidfd < 0)
		return;
	/* The last answer may still be in the socket. */
	if (p->sock >= 0)
		on_helper(h, p);
	if (p->call)
		give_up(h, p, -EIO);
	if (p->late)
		set_late(h, p, false);
	close_fd(&p->sock);
	close_fd(&p->pidfd);
	p->user = NULL;
}

static void on_spawner(struct ttmon_helpers *h)
{
	int fds[2] = { -1, -1 };
	struct helper *p = NULL;
	int32_t who = 0;
	ssize_t n = recv_some(h->spawner, &who, sizeof(who), fds, MSG_DONTWAIT);

	if (n == -EAGAIN)
		return;
	h->spawning = false;
	/* The spawner was killed: only the existing helpers remain. */
	if (n <= 0)
		close_fd(&h->spawner);
	for (size_t i = 0; i < HELPERS_MAX && !p; i++)
		if (h->helpers[i].pidfd < 0)
			p = &h->helpers[i];
	if (p && fds[1] >= 0) {
		uint64_t at = (uint64_t)(p - h->helpers);

		*p = (struct helper){ .sock = TAKE_FD(fds[0]), .pidfd = TAKE_FD(fds[1]), .fd = -1, .pid = who };
		if (watch(h, p->sock, at) || watch(h, p->pidfd, EV_DEATH + at))
			retire(h, p);
	}
	close_fd(&fds[0]);
	close_fd(&fds[1]);
}

/* Ends calls that were not begun in time. */
static void give_up_queued(struct ttmon_helpers *h, uint64_t now)
{
	struct call *old = NULL, **end = &old;

	for (struct user *u = h->users; u; u = u->next) {
		while (u->first && now - u->first->asked_ns > h->give_up_ns) {
			struct call *c = u->first;

			u->first = c->next;
			if (!u->first)
				u->last = &u->first;
			u->queued--;
			c->next = NULL;
			*end = c;
			end = &c->next;
		}
	}
	while (old) {
		struct ttmon_helper_reply reply = { .err = -ETIMEDOUT, .fd = -1 };
		struct call *c = old;

		old = c->next;
		h->counts.given_up++;
		finish(c, &reply);
	}
}

static void on_timer(struct ttmon_helpers *h)
{
	uint64_t expirations, now = ttmon_mono_ns();
	bool any = false;

	(void)!read(h->timer, &expirations, sizeof(expirations));
	h->armed = false;
	for (size_t i = 0; i < HELPERS_MAX; i++) {
		struct helper *p = &h->helpers[i];

		if (!p->call)
			continue;
		if (now - p->begun_ns >= h->late_ns)
			set_late(h, p, true);
		if (now - p->begun_ns >= h->give_up_ns)
			give_up(h, p, -ETIMEDOUT);
		any |= p->call != NULL;
	}
	give_up_queued(h, now);
	for (const struct user *u = h->users; u && !any; u = u->next)
		any = u->queued;
	if (any)
		arm(h);
}

int ttmon_helpers_fd(const struct ttmon_helpers *h)
{
	return h->epoll;
}

void ttmon_helpers_turn(struct ttmon_helpers *h)
{
	struct epoll_event ev[16];
	int n = epoll_wait(h->epoll, ev, ARRAY_SIZE(ev), 0);

	for (int i = 0; i < n; i++) {
		uint64_t what = ev[i].data.u64;

		if (what < HELPERS_MAX)
			on_helper(h, &h->helpers[what]);
		else if (what == EV_SPAWNER)
			on_spawner(h);
		else if (what == EV_TIMER)
			on_timer(h);
		else
			on_death(h, &h->helpers[what - EV_DEATH]);
	}
	if (n > 0)
		pump(h);
}

bool ttmon_helpers_wait(struct ttmon_helpers *h, bool (*over)(void *ctx), void *ctx, unsigned int ms)
{
	uint64_t end_ns = ttmon_mono_ns() + ms * NSEC_PER_MS;

	while (!over(ctx)) {
		uint64_t now = ttmon_mono_ns();
		struct pollfd pfd = { .fd = h->epoll, .events = POLLIN };

		if (!ttmon_before(now, end_ns))
			return false;
		if (poll(&pfd, 1, (int)((end_ns - now + NSEC_PER_MS - 1) / NSEC_PER_MS)) > 0)
			ttmon_helpers_turn(h);
	}
	return true;
}

bool ttmon_helpers_busy(const struct ttmon_helpers *h, unsigned int ms)
{
	uint64_t since = ttmon_mono_ns() - ms * NSEC_PER_MS;

	for (size_t i = 0; i < HELPERS_MAX; i++)
		if (h->helpers[i].call && !ttmon_before(h->helpers[i].call->asked_ns, since))
			return true;
	for (const struct user *u = h->users; u; u = u->next)
		for (const struct call *c = u->first; c; c = c->next)
			if (!ttmon_before(c->asked_ns, since))
				return true;
	return false;
}

void ttmon_helpers_get_counts(const struct ttmon_helpers *h, struct ttmon_helpers_counts *ret)
{
	*ret = h->counts;
	ret->processes = ret->late = ret->queued = 0;
	for (size_t i = 0; i < HELPERS_MAX; i++) {
		ret->processes += h->helpers[i].pidfd >= 0;
		ret->late += h->helpers[i].late;
	}
	for (const struct user *u = h->users; u; u = u->next)
		ret->queued += u->queued;
}
