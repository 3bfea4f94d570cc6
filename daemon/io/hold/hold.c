// SPDX-License-Identifier: GPL-2.0-only
/*
 * hold.c: see hold.h. Runs in the cold thread.
 *
 * Three processes: the command, which installs the filter before its exec and passes the listener to
 * us over a socket pair; the keeper, which receives the requests and passes them on; and the daemon,
 * which has the file opened (io/hold/heldfile.c, in a helper), answers on its own copy of the
 * listener, and then notifies the keeper that this request is done. The fd to poll is an epoll fd over
 * the keeper's socket and an eventfd for the exec that ttmon_hold_go() has already fetched.
 *
 * A keeper that was killed is replaced; a request that it had received and not yet handed on
 * (microseconds) is lost with it.
 *
 * The filter costs the command about 40 ns a system call. It lets other architectures, i386 and x32
 * calls among them, through.
 */
#define _GNU_SOURCE
#include "daemon/io/hold/hold.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "daemon/io/hold/heldfile.h"
#include "daemon/io/hold/keeper.h"
#include "lib/os/log.h"
#include "lib/os/sendfd.h"

#if defined(__x86_64__)
#define OUR_AUDIT_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define OUR_AUDIT_ARCH AUDIT_ARCH_AARCH64
#else
#error "unknown architecture"
#endif

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

struct ttmon_hold {
	pid_t pid;
	int error;    /* why it is unheld */
	int child;    /* socket to the child until its exec: the listener, "go", errno of a failed exec */
	int listener; /* -1: unheld, or nothing left to hold */
	int keeper;   /* socket; -1: there is none at the moment */
	int epoll;
	int kick; /* eventfd, readable while `first` waits to be fetched */
	bool have_first;
	struct ttmon_hold_req first;
	uint64_t missed_before; /* reported by keepers that are gone */
	uint64_t missed;
};

/*
 * State that the command inherits as the daemon found it. Saved before main(), since the daemon
 * changes its own later.
 */
static struct {
	sigset_t mask, ignored;
	struct rlimit nofile, memlock;
} at_start;

__attribute__((constructor)) static void remember_start(void)
{
	struct sigaction sa;

	sigprocmask(SIG_BLOCK, NULL, &at_start.mask);
	sigemptyset(&at_start.ignored);
	for (int sig = 1; sig < NSIG; sig++) {
		if (sigaction(sig, NULL, &sa) == 0 && sa.sa_handler == SIG_IGN)
			sigaddset(&at_start.ignored, sig);
	}
	getrlimit(RLIMIT_NOFILE, &at_start.nofile);
	getrlimit(RLIMIT_MEMLOCK, &at_start.memlock);
}

static void restore_start(void)
{
	struct sigaction sa = { .sa_flags = 0 };

	sigemptyset(&sa.sa_mask);
	for (int sig = 1; sig < NSIG; sig++) {
		sa.sa_handler = sigismember(&at_start.ignored, sig) == 1 ? SIG_IGN : SIG_DFL;
		sigaction(sig, &sa, NULL);
	}
	setrlimit(RLIMIT_NOFILE, &at_start.nofile);
	setrlimit(RLIMIT_MEMLOCK, &at_start.memlock);
	sigprocmask(SIG_SETMASK, &at_start.mask, NULL);
}

static int install_filter(void)
{
	/*
	 * The low word of an argument: both architectures are little-endian here (AUDIT_ARCH_AARCH64 says so).
	 */
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OUR_AUDIT_ARCH, 0, 8),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_execve, 7, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_execveat, 6, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mmap, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 2),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, MAP_ANONYMOUS, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	};
	struct sock_fprog prog = { ARRAY_SIZE(code), code };
	/*
	 * Kernels before 5.16 would otherwise switch the speculative store bypass mitigation on, and slow the
	 * command down.
	 */
	unsigned long flags = SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
	long fd;

	/*
	 * Killable: a signal handler of the command does not interrupt a call that is held, as it would not
	 * interrupt an mmap.
	 */
	fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &prog);
	if (fd < 0 && errno == EINVAL)
		fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &prog);
	return fd < 0 ? -errno : (int)fd;
}

/* err: 0 with a listener, else why there is none. */
static int send_listener(int sock, int err, int listener)
{
	return ttmon_send_fd(sock, &err, sizeof(err), err ? -1 : listener, 0);
}

/*
 * 0 and *ret; or *unheld: why the child has no listener; or, as the return value, why it sent nothing.
 */
static int recv_listener(int sock, int *unheld, int *ret)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	int err;
	struct iovec iov = { &err, sizeof(err) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	struct cmsghdr *c;
	ssize_t n;

	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	if (n != sizeof(err))
		return -ECHILD;
	c = CMSG_FIRSTHDR(&msg);
	if (err || !c || c->cmsg_type != SCM_RIGHTS) {
		*unheld = err ? err : -EPROTO;
		return 0;
	}
	memcpy(ret, CMSG_DATA(c), sizeof(*ret));
	return 0;
}

_Noreturn static void run_child(int sock, char *const argv[])
{
	int listener, err;
	char go;

	restore_start();
	listener = install_filter();
	if (send_listener(sock, MIN(listener, 0), listener))
		_exit(127);
	/* No process under the filter may keep the listener open, since it would then never hang up. */
	if (listener >= 0)
		close(listener);
	while (read(sock, &go, 1) != 1) {
		if (errno != EINTR)
			_exit(127);
	}
	execvp(argv[0], argv);
	err = errno;
	(void)!write(sock, &err, sizeof(err));
	_exit(err == ENOENT ? 127 : 126);
}

static int fork_child(struct ttmon_hold *h, char *const argv[])
{
	sigset_t all, old;
	int pair[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	/* No signal handler of ours may run in the child before it has set its own dispositions. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	h->pid = fork();
	err = h->pid < 0 ? -errno : 0;
	if (h->pid == 0) {
		close(pair[0]);
		run_child(pair[1], argv);
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	close(pair[1]);
	h->child = pair[0];
	return err;
}

static int watch(struct ttmon_hold *h, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(h->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static int start_keeper(struct ttmon_hold *h)
{
	_cleanup_close_ int sock = -1;
	int err = ttmon_keeper_start(h->listener, &sock);

	if (err == 0)
		err = watch(h, sock);
	if (err)
		return err;
	h->keeper = TAKE_FD(sock);
	return 0;
}

static void close_hold(struct ttmon_hold *h)
{
	int *fds[] = { &h->keeper, &h->listener, &h->epoll, &h->kick, &h->child };
	int err;

	/* The first exec was held and failed for a reason that ttmon_hold_go() could not see before. */
	if (h->child >= 0 && recv(h->child, &err, sizeof(err), MSG_DONTWAIT) == sizeof(err))
		log_error("the command could not be executed: %s", strerror(err));
	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

void ttmon_hold_free(struct ttmon_hold *h)
{
	if (!h)
		return;
	if (h->have_first)
		ttmon_hold_release(h, &h->first);
	close_hold(h);
	free(h);
}

static void free_holdp(struct ttmon_hold **h)
{
	ttmon_hold_free(*h);
}

int ttmon_hold_new(char *const argv[], struct ttmon_hold **ret)
{
	_cleanup_(free_holdp) struct ttmon_hold *h = calloc(1, sizeof(*h));
	int err;

	if (!h)
		return -ENOMEM;
	h->child = h->listener = h->keeper = h->epoll = h->kick = -1;

	err = fork_child(h, argv);
	if (err == 0)
		err = recv_listener(h->child, &h->error, &h->listener);
	if (err == 0 && h->listener >= 0) {
		h->epoll = epoll_create1(EPOLL_CLOEXEC);
		h->kick = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		err = h->epoll < 0 || h->kick < 0 ? -errno : watch(h, h->kick);
		if (err == 0)
			err = start_keeper(h);
	}
	if (err) {
		/* The child sees the end of its socket and exits; it was never reported to others. */
		close(TAKE_FD(h->child));
		if (h->pid > 0)
			waitpid(h->pid, NULL, 0);
		return err;
	}
	*ret = TAKE_PTR(h);
	return 0;
}

pid_t ttmon_hold_pid(const struct ttmon_hold *h)
{
	return h->pid;
}

int ttmon_hold_fd(const struct ttmon_hold *h)
{
	return h->epoll;
}

int ttmon_hold_error(const struct ttmon_hold *h)
{
	return h->error;
}

uint64_t ttmon_hold_missed(const struct ttmon_hold *h)
{
	return h->missed_before + h->missed;
}

/* The keeper's socket is closed, or there was no keeper. */
static int without_keeper(struct ttmon_hold *h)
{
	struct pollfd pfd = { .fd = h->listener, .events = POLLIN };
	int err;

	if (poll(&pfd, 1, 0) == 1 && (pfd.revents & POLLHUP)) {
		close_hold(h);
		return -ENOENT;
	}
	if (h->keeper >= 0) {
		close(TAKE_FD(h->keeper));
		h->missed_before += h->missed;
		h->missed = 0;
		/*
		 * While there is no keeper, a request makes the epoll fd readable, and the next call tries again to
		 * start one.
		 */
		err = watch(h, h->listener);
		if (err)
			return err;
	}
	err = start_keeper(h);
	if (err)
		return err;
	epoll_ctl(h->epoll, EPOLL_CTL_DEL, h->listener, NULL);
	log_warn("the keeper of process %d was killed, another one has taken over", h->pid);
	return -EAGAIN;
}

static void tell_keeper(struct ttmon_hold *h, uint64_t id)
{
	/* A full socket does no harm: the keeper's own answer to this id is then refused by the kernel. */
	if (h->keeper >= 0)
		(void)!send(h->keeper, &id, sizeof(id), MSG_DONTWAIT | MSG_NOSIGNAL);
}

int ttmon_hold_next(struct ttmon_hold *h, struct ttmon_hold_req *ret)
{
	struct ttmon_keeper_msg msg;
	ssize_t n;

	if (h->have_first) {
		uint64_t one;

		(void)!read(h->kick, &one, sizeof(one));
		h->have_first = false;
		*ret = h->first;
		return 0;
	}
	if (h->listener < 0)
		return -ENOENT;
	if (h->keeper < 0)
		return without_keeper(h);

	/*
	 * ECONNRESET: the keeper died with unread messages of ours. It is returned once, before the messages
	 * that the keeper left.
	 */
	do
		n = recv(h->keeper, &msg, sizeof(msg), MSG_DONTWAIT);
	while (n < 0 && errno == ECONNRESET);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return -EAGAIN;
	if (n != sizeof(msg))
		return without_keeper(h);
	h->missed = msg.missed;
	if (msg.kind != TTMON_KEEPER_REQUEST)
		return -EAGAIN;

	*ret = (struct ttmon_hold_req){
		.id = msg.notif.id,
		.pid = msg.notif.pid,
		.exec = msg.notif.data.nr != __NR_mmap,
		.notif = msg.notif,
	};
	return 0;
}

bool ttmon_hold_waits(struct ttmon_hold *h, const struct ttmon_hold_req *req)
{
	uint64_t id = req->id;

	return h->listener >= 0 && !ioctl(h->listener, SECCOMP_IOCTL_NOTIF_ID_VALID, &id);
}

bool ttmon_hold_release(struct ttmon_hold *h, const struct ttmon_hold_req *req)
{
	/* The answer comes first, since the command waits for it; the keeper can wait. */
	bool waited = h->listener >= 0 && !ttmon_keeper_continue(h->listener, req->id);

	tell_keeper(h, req->id);
	return waited;
}

/*
 * Handles one message from the held side during go. True: the exec waits, will probably succeed, and
 * is kept as the first request.
 */
static bool fetch_first(struct ttmon_hold *h, bool (*is_program)(void *ctx, const struct seccomp_notif *notif),
			void *ctx)
{
	struct ttmon_hold_req req;
	uint64_t one = 1;

	if (ttmon_hold_next(h, &req))
		return false;
	if (!is_program(ctx, &req.notif)) {
		ttmon_hold_release(h, &req);
		return false;
	}
	h->first = req;
	h->have_first = true;
	(void)!write(h->kick, &one, sizeof(one));
	return true;
}

int ttmon_hold_go(struct ttmon_hold *h, bool (*is_program)(void *ctx, const struct seccomp_notif *notif), void *ctx)
{
	int err;

	if (send(h->child, "g", 1, MSG_NOSIGNAL) < 0)
		return -errno;
	for (;;) {
		struct pollfd pfd[2] = { { .fd = h->child, .events = POLLIN }, { .fd = h->epoll, .events = POLLIN } };
		ssize_t n;

		if (poll(pfd, ARRAY_SIZE(pfd), -1) < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		if (pfd[0].revents) {
			n = read(h->child, &err, sizeof(err));
			if (n < 0 && errno == EINTR)
				continue;
			/* End of file: the exec succeeded (or the child was killed, which its status shows). */
			close(TAKE_FD(h->child));
			return n == sizeof(err) ? -err : 0;
		}
		if (fetch_first(h, is_program, ctx))
			return 0;
	}
}
