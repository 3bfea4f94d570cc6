// SPDX-License-Identifier: GPL-2.0-only
/*
 * listen.c: the socket that channels arrive on. One epoll descriptor has the listener, the connections
 * and a pidfd of each program: a child process may keep its connection open, so the end of the program
 * is watched too.
 *
 * A connection has HELLO_NS to send its hello; when there are too many, the one that has waited
 * longest is closed. So a client that connects and sends nothing cannot block others. A user may have
 * a part of the channels, not all.
 */
#include "memtrace/channel/chan.h"
#include "lib/os/clock.h"
#include "lib/base/util.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#define MAX_WAITING	  16
#define HELLO_NS	  (2 * NSEC_PER_SEC)
#define AT_ONCE		  (64u << 10) /* records of a channel before the next has its turn */
#define AT_THE_END	  (16u << 20) /* limit for a program that goes on; about a second */
#define MAX_REFUSED_NOTES 16
#define DEAF_NS		  NSEC_PER_SEC
/* After the program's end, its GPU may still finish a write. */
#define GRACE_NS (20 * NSEC_PER_MS)

struct conn {
	int fd, pidfd;
	uint32_t pid, uid;
	struct ttmon_mt_chan *chan; /* NULL: no hello yet */
	uint64_t since_ns;	    /* waiting: time of accept; gone: time when that was seen */
	bool gone;
};

struct ttmon_mt_listen {
	int fd, epoll;
	char *path;
	dev_t dev;
	ino_t ino;
	struct conn conns[TTMON_MT_MAX_CHANNELS + MAX_WAITING];
	size_t nr, nr_chans;
	struct ttmon_mt_names *names;
	uint64_t seen, refused, notes;
	uint64_t deaf_ns; /* no connection is accepted since then, for lack of descriptors; 0: all are */
	bool said_full;
	uint32_t full_uid; /* user of the last note about too many channels */
};

/* Returns whether the path is free. A socket without a listener is removed. */
static int clear_path(const struct sockaddr_un *addr, char *why, size_t n)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	int err;

	if (lstat(addr->sun_path, &st)) {
		if (errno == ENOENT)
			return 0;
		err = -errno;
		snprintf(why, n, "%s: %s", addr->sun_path, strerror(-err));
		return err;
	}
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(why, n, "%s is there and no socket: it is not touched", addr->sun_path);
		return -EEXIST;
	}
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	err = fd < 0 || connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) ? errno : 0;
	/* EAGAIN: the backlog is full, so there is a listener. EPROTOTYPE: a socket of another type. */
	if (fd < 0 || (err != ECONNREFUSED && err != ENOENT)) {
		snprintf(why, n, "%s: somebody listens there already", addr->sun_path);
		return -EADDRINUSE;
	}
	if (unlink(addr->sun_path) && errno != ENOENT) {
		err = -errno;
		snprintf(why, n, "%s: the stale socket cannot be removed: %s", addr->sun_path, strerror(-err));
		return err;
	}
	return 0;
}

static int watch(struct ttmon_mt_listen *l, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

/*
 * Binds under a umask without any permission. Until listen(2), connect(2) is refused, so no client
 * connects before the final mode is set.
 */
static int bind_path(struct ttmon_mt_listen *l, const struct sockaddr_un *addr, unsigned int mode)
{
	mode_t mask = umask(0777);
	int err = bind(l->fd, (const struct sockaddr *)addr, sizeof(*addr)) ? -errno : 0;
	struct stat st;

	umask(mask);
	if (err)
		return err;
	l->path = strdup(addr->sun_path);
	if (!l->path) {
		unlink(addr->sun_path);
		return -ENOMEM;
	}
	if (lstat(l->path, &st))
		return -errno;
	l->dev = st.st_dev;
	l->ino = st.st_ino;
	return chmod(l->path, mode) || listen(l->fd, TTMON_MT_MAX_CHANNELS) ? -errno : 0;
}

TTMON_FREEP(ttmon_mt_listen_freep, struct ttmon_mt_listen, ttmon_mt_listen_free);

int ttmon_mt_listen_new(const char *path, unsigned int mode, struct ttmon_mt_listen **ret, char *why, size_t n)
{
	_cleanup_(ttmon_mt_listen_freep) struct ttmon_mt_listen *l = calloc(1, sizeof(*l));
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int err;

	if (!l) {
		snprintf(why, n, "out of memory");
		return -ENOMEM;
	}
	l->fd = l->epoll = -1;
	if (strlen(path) >= sizeof(addr.sun_path)) {
		snprintf(why, n, "%s: longer than %zu characters", path, sizeof(addr.sun_path) - 1);
		return -ENAMETOOLONG;
	}
	memcpy(addr.sun_path, path, strlen(path) + 1);
	err = clear_path(&addr, why, n);
	if (err)
		return err;
	l->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	err = l->fd < 0 || l->epoll < 0 ? -errno : ttmon_mt_names_new(&l->names);
	err = err ?: bind_path(l, &addr, mode);
	err = err ?: watch(l, l->fd);
	if (err) {
		snprintf(why, n, "%s: %s", path, strerror(-err));
		return err;
	}
	*ret = TAKE_PTR(l);
	return 0;
}

int ttmon_mt_listen_fd(const struct ttmon_mt_listen *l)
{
	return l->epoll;
}

/* ---- connections ---- */

static void say(struct ttmon_mt_sink *sink, uint32_t pid, const char *text)
{
	if (sink->note)
		sink->note(sink->ctx, pid, text);
}

static void answer(int fd, int status)
{
	struct ttmon_mtc_answer a = { .magic = TTMON_MTC_MAGIC, .status = status };

	/* If the client is gone it does not need the answer. */
	(void)!send(fd, &a, sizeof(a), MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void drop(struct ttmon_mt_listen *l, size_t i)
{
	struct conn *c = &l->conns[i];

	l->nr_chans -= c->chan != NULL;
	ttmon_mt_chan_free(c->chan);
	close(c->fd);
	if (c->pidfd >= 0)
		close(c->pidfd);
	/* Keep the order: the first waiting connection has waited longest. */
	memmove(c, c + 1, (--l->nr - i) * sizeof(*c));
}

static void make_room(struct ttmon_mt_listen *l)
{
	size_t first = l->nr;

	if (l->nr - l->nr_chans < MAX_WAITING)
		return;
	for (size_t i = l->nr; i-- > 0;)
		if (!l->conns[i].chan)
			first = i;
	drop(l, first);
}

static int accept_one(struct ttmon_mt_listen *l)
{
	struct conn c = { .pidfd = -1, .since_ns = ttmon_mono_ns() };
	struct ucred cred = { 0 };
	socklen_t n = sizeof(cred);

	c.fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (c.fd < 0)
		return -errno;
	if (getsockopt(c.fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) || watch(l, c.fd)) {
		close(c.fd);
		return 0;
	}
	c.pid = (uint32_t)cred.pid;
	c.uid = cred.uid;
	make_room(l);
	l->conns[l->nr++] = c;
	return 0;
}

/*
 * A waiting connection keeps the listener readable. If there is no descriptor for it, trying again at
 * once is useless, so the listener is not polled for a while.
 */
static void accept_all(struct ttmon_mt_listen *l, struct ttmon_mt_sink *sink)
{
	char text[128];
	int err = 0;

	if (l->deaf_ns)
		return;
	for (unsigned int i = 0; i < MAX_WAITING && !err; i++)
		err = accept_one(l);
	if (err != -EMFILE && err != -ENFILE && err != -ENOBUFS && err != -ENOMEM)
		return;
	(void)epoll_ctl(l->epoll, EPOLL_CTL_DEL, l->fd, NULL);
	l->deaf_ns = ttmon_mono_ns();
	if (l->notes++ < MAX_REFUSED_NOTES) {
		snprintf(text, sizeof(text), "programs cannot be let in for now: %s", strerror(-err));
		say(sink, (uint32_t)getpid(), text);
	}
}

static void listen_again(struct ttmon_mt_listen *l)
{
	if (l->deaf_ns && ttmon_mono_ns() - l->deaf_ns >= DEAF_NS && !watch(l, l->fd))
		l->deaf_ns = 0;
}

/* Root and the reader's own user have no limit. */
static bool has_too_many(const struct ttmon_mt_listen *l, uint32_t uid)
{
	unsigned int n = 0;

	for (size_t i = 0; i < l->nr; i++)
		n += l->conns[i].chan && l->conns[i].uid == uid;
	return n >= TTMON_MT_USER_CHANNELS && uid && uid != geteuid();
}

/* Returns the descriptor of a message; -1: none. Further descriptors are closed. */
static int take_fd(struct msghdr *msg)
{
	int ret = -1, fd;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < (c->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(fd));
			if (ret < 0)
				ret = fd;
			else
				close(fd);
		}
	}
	return ret;
}

/*
 * Reads the hello. Returns 0: it has a channel now, or nothing arrived yet; -errno with why: the
 * connection is not usable.
 */
static int greet(struct ttmon_mt_listen *l, struct conn *c, char *why, size_t n)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(4 * sizeof(int))];
	} control;
	struct ttmon_mtc_hello hello;
	struct iovec iov = { &hello, sizeof(hello) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	ssize_t got = recvmsg(c->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	_cleanup_close_ int fd = -1;
	int err;

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	/* A client that only checks for a listener is not reported. */
	why[0] = '\0';
	if (got <= 0)
		return -ECONNRESET;
	fd = take_fd(&msg);
	snprintf(why, n, "what it said is no hello");
	if (got != sizeof(hello) || msg.msg_flags & MSG_TRUNC || fd < 0 || hello.magic != TTMON_MTC_MAGIC)
		return -EPROTO;
	snprintf(why, n, "it speaks version %u of the channel, this is %u", hello.version, TTMON_MTC_VERSION);
	if (hello.version != TTMON_MTC_VERSION)
		return -EPROTONOSUPPORT;
	snprintf(why, n, "there are %u channels already", TTMON_MT_MAX_CHANNELS);
	if (l->nr_chans >= TTMON_MT_MAX_CHANNELS)
		return -EMFILE;
	if (has_too_many(l, c->uid)) {
		snprintf(why, n, "user %u has %u channels already", c->uid, TTMON_MT_USER_CHANNELS);
		if (l->said_full && l->full_uid == c->uid)
			why[0] = '\0';
		l->said_full = true;
		l->full_uid = c->uid;
		return -EMFILE;
	}
	err = ttmon_mt_chan_open(TAKE_FD(fd), &c->chan, why, n);
	if (err)
		return err;
	/* 0: it is in a pid namespace that is not visible here. */
	if (c->pid)
		ttmon_mt_chan_set_pid(c->chan, c->pid);
	ttmon_mt_chan_set_names(c->chan, l->names);
	c->pidfd = c->pid ? (int)syscall(SYS_pidfd_open, c->pid, 0) : -1;
	if (c->pidfd >= 0)
		(void)watch(l, c->pidfd);
	l->nr_chans++;
	l->seen++;
	answer(c->fd, 0);
	return 0;
}

/*
 * Returns whether the other side has closed the connection or the program has ended. Data after the
 * hello is ignored.
 */
static bool has_gone(const struct conn *c, const struct pollfd *p)
{
	char buf[64];
	ssize_t n = -1;

	if (p[1].revents)
		return true;
	if (!p[0].revents)
		return false;
	n = recv(c->fd, buf, sizeof(buf), MSG_DONTWAIT);
	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

/* Notes about unusable connections are limited to the first few. */
static void refuse(struct ttmon_mt_listen *l, size_t i, int err, const char *why, struct ttmon_mt_sink *sink)
{
	char text[256];

	answer(l->conns[i].fd, err);
	l->refused += err != -ECONNRESET;
	if (*why && l->notes++ < MAX_REFUSED_NOTES) {
		snprintf(text, sizeof(text), "not recorded: %s", why);
		say(sink, l->conns[i].pid, text);
	}
	drop(l, i);
}

/* Ends a channel: nothing more is read from it. */
static int end_channel(struct ttmon_mt_listen *l, size_t i, struct ttmon_mt_sink *sink, const char *why)
{
	int err = ttmon_mt_chan_end(l->conns[i].chan, sink);

	if (why) {
		sink->stats->cut = true;
		say(sink, l->conns[i].pid, why);
	}
	drop(l, i);
	return err;
}

/*
 * Reads one round of a channel. Returns 1: there is more; 0; -errno. *dropped: it was removed from the
 * table.
 */
static int read_one(struct ttmon_mt_listen *l, size_t i, struct ttmon_mt_sink *sink, size_t max, bool *dropped)
{
	struct conn *c = &l->conns[i];
	bool done = ttmon_mt_chan_done(c->chan);
	char why[200] = "", text[256];
	int err = ttmon_mt_chan_read(c->chan, sink, max, why, sizeof(why));

	if (err == -EBADMSG) {
		snprintf(text, sizeof(text), "its channel is broken and not read any more: %s", why);
		*dropped = true;
		return end_channel(l, i, sink, text);
	}
	if (err == -ENOMEM) {
		/* Reading of the other channels continues. */
		*dropped = true;
		(void)end_channel(l, i, sink, "there is no memory to read its channel with: it is not read any more");
		return 0;
	}
	if (err)
		return err;
	if (!done && c->gone && ttmon_mono_ns() - c->since_ns >= GRACE_NS) {
		*dropped = true;
		return end_channel(l, i, sink, "ended without saying so: its last accesses may be missing");
	}
	if (done) {
		*dropped = true;
		return end_channel(l, i, sink, NULL);
	}
	return 0;
}

int ttmon_mt_listen_work(struct ttmon_mt_listen *l, struct ttmon_mt_sink *sink)
{
	struct pollfd fds[ARRAY_SIZE(l->conns)][2];
	struct epoll_event any;
	char why[200];
	int ret = 0, err;

	listen_again(l);
	/* In the usual case this costs one system call. */
	if (epoll_wait(l->epoll, &any, 1, 0) > 0) {
		accept_all(l, sink);
		for (size_t i = 0; i < l->nr; i++) {
			fds[i][0] = (struct pollfd){ .fd = l->conns[i].chan ? l->conns[i].fd : -1, .events = POLLIN };
			fds[i][1] = (struct pollfd){ .fd = l->conns[i].pidfd, .events = POLLIN };
		}
		(void)poll(fds[0], 2 * l->nr, 0);
		for (size_t i = 0; i < l->nr; i++) {
			struct conn *c = &l->conns[i];

			if (!c->chan || c->gone || !has_gone(c, fds[i]))
				continue;
			c->gone = true;
			c->since_ns = ttmon_mono_ns();
		}
	}
	for (size_t i = 0; i < l->nr;) {
		struct conn *c = &l->conns[i];
		bool dropped = false;

		if (!c->chan) {
			err = greet(l, c, why, sizeof(why));
			if (!err && !c->chan && ttmon_mono_ns() - c->since_ns >= HELLO_NS) {
				err = -ETIMEDOUT;
				snprintf(why, sizeof(why), "it connected and said nothing");
			}
			if (err) {
				refuse(l, i, err, why, sink);
				continue;
			}
		}
		err = c->chan ? read_one(l, i, sink, AT_ONCE, &dropped) : 0;
		if (err < 0)
			return err;
		ret |= err;
		i += !dropped;
	}
	return ret;
}

int ttmon_mt_listen_finish(struct ttmon_mt_listen *l, struct ttmon_mt_sink *sink)
{
	int ret = 0;

	while (l->nr) {
		struct conn *c = &l->conns[l->nr - 1];
		bool dropped = false;
		int err = c->chan ? read_one(l, l->nr - 1, sink, AT_THE_END, &dropped) : 0;

		ret = ret ?: MIN(err, 0);
		if (dropped)
			continue;
		if (c->chan)
			err = end_channel(l, l->nr - 1, sink, "goes on and is not recorded any more");
		else
			drop(l, l->nr - 1);
		ret = ret ?: MIN(err, 0);
	}
	return ret;
}

size_t ttmon_mt_listen_channels(const struct ttmon_mt_listen *l)
{
	return l->nr;
}

uint64_t ttmon_mt_listen_refused(const struct ttmon_mt_listen *l)
{
	return l->refused;
}

uint64_t ttmon_mt_listen_seen(const struct ttmon_mt_listen *l)
{
	return l->seen;
}

void ttmon_mt_listen_free(struct ttmon_mt_listen *l)
{
	struct stat st;

	if (!l)
		return;
	while (l->nr)
		drop(l, l->nr - 1);
	/* Another socket may be at the path by now. */
	if (l->path && !lstat(l->path, &st) && st.st_dev == l->dev && st.st_ino == l->ino)
		unlink(l->path);
	ttmon_mt_names_free(l->names);
	free(l->path);
	if (l->fd >= 0)
		close(l->fd);
	if (l->epoll >= 0)
		close(l->epoll);
	free(l);
}
