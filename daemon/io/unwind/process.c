// SPDX-License-Identifier: GPL-2.0-only
/*
 * process.c: the unwinding process: its tables of mappings, waiting copies, its loop. Started by a
 * process that ttmon_unwinder_start() has made in the cold thread, before the daemon has other
 * threads, and detached (lib/os/detached.h): one that hangs in a file is replaced by another.
 *
 * The daemon sends it the mappings of each process, with their times. A copy with addresses in no
 * known mapping is kept for a while: a mapping made just before is often reported just after. Files
 * are requested one by one, when a stack needs them.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <poll.h>

#include "daemon/core/history/maps.h"
#include "daemon/io/bpf/ring.h"
#include "daemon/io/unwind/unwinder.h"
#include "lib/base/hmap.h"
#include "lib/os/clock.h"
#include "lib/os/detached.h"
#include "lib/unwind/python.h"
#include "lib/unwind/unwind.h"

#define SOCK_FD TTMON_DETACHED_FD

#define PROCS_MAX   4096
#define TABLES_MAX  256
#define KNOWN	    4096 /* a power of two */
#define COMING_MAX  16
#define PENDING_MAX 64
#define PENDING_NS  (1500 * NSEC_PER_MS) /* its event waits for two seconds (core/history/siteq.c) */
/* After copies the ring is checked this often, until none have come for LINGER_NS. */
#define LINGER_MS 10
#define LINGER_NS (60 * NSEC_PER_MS)
#define WANT_MS	  1000		      /* a file that has not come by then is not waited for */
#define AGAIN_NS  (60 * NSEC_PER_SEC) /* a file that was not available is requested again after this time */
#define START_MS  2000		      /* limit for a fork */
#define GONE_NS	  (3 * NSEC_PER_SEC)  /* mappings of a process are kept for so long after its end */
#define VDSO_MAX  (256u << 10)

struct proc {
	uint32_t tgid;
	uint32_t serial;  /* 1, 2, ...: unique */
	uint64_t gone_ns; /* 0: it lives */
	struct ttmon_maps maps;
};

/*
 * Cache of the mapping of a page: the at-th of the process with this serial, valid for this generation
 * of its list.
 */
struct known {
	uint64_t page;
	uint32_t serial, gen, at; /* serial 0: the place is empty */
};

struct table {
	uint32_t object;	  /* 0: the place is empty */
	struct ttmon_uw_table *t; /* NULL: not available at since_ns */
	uint64_t since_ns, used;
};

/* A file that a helper is opening: the descriptor comes through this socket, or the socket ends. */
struct coming {
	uint32_t object;
	int sock;
};

struct pending {
	uint64_t since_ns;
	struct ttmon_stack_copy copy;
};

static struct {
	struct ttmon_uw *uw;
	struct ttmon_ring ring;
	uint32_t depth;
	int epoll, ring_fd;
	struct proc *procs[PROCS_MAX]; /* unordered; the oldest makes room */
	size_t next_proc, nr_gone;
	uint32_t serials;
	struct known known[KNOWN];
	struct ttmon_hmap by_tgid; /* place in procs */
	struct table tables[TABLES_MAX];
	uint64_t uses;
	struct coming coming[COMING_MAX]; /* oldest first */
	size_t nr_coming;
	struct pending *pending[PENDING_MAX];
	size_t nr_pending;
	const struct ttmon_stack_copy *now; /* the copy being unwound */
	bool look, finish;
	uint64_t *reads; /* as in unwinder.h */
	uint32_t turns;
	uint64_t last_ns; /* when the last copy came */
	_Alignas(8) char msg[TTMON_UNWINDER_MAX];
} u;

/* ---- mappings of processes ---- */

static struct proc *proc_of(uint32_t tgid)
{
	uint64_t at = ttmon_hmap_get(&u.by_tgid, tgid);

	return at == TTMON_HMAP_NONE ? NULL : u.procs[at];
}

static void proc_free(size_t at)
{
	struct proc *p = TAKE_PTR(u.procs[at]);

	if (!p)
		return;
	u.nr_gone -= p->gone_ns != 0;
	ttmon_hmap_del(&u.by_tgid, p->tgid);
	ttmon_maps_fini(&p->maps);
	free(p);
}

/* Copies of its stacks may still be in the ring. */
static void gone(uint32_t tgid)
{
	struct proc *p = proc_of(tgid);

	if (!p || p->gone_ns)
		return;
	p->gone_ns = ttmon_mono_ns();
	u.nr_gone++;
}

static void forget_gone(void)
{
	uint64_t now = ttmon_mono_ns();

	for (size_t i = 0; u.nr_gone && i < PROCS_MAX; i++)
		if (u.procs[i] && u.procs[i]->gone_ns && now - u.procs[i]->gone_ns >= GONE_NS)
			proc_free(i);
}

static struct proc *proc_new(uint32_t tgid)
{
	size_t at = u.next_proc;
	struct proc *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	proc_free(at);
	p->tgid = tgid;
	p->serial = ++u.serials;
	if (ttmon_hmap_put(&u.by_tgid, tgid, at) < 0) {
		free(p);
		return NULL;
	}
	u.procs[at] = p;
	u.next_proc = (at + 1) % PROCS_MAX;
	return p;
}

static void add_map(const struct ttmon_unwinder_map *m)
{
	struct ttmon_xmap x = { .start = m->start, .end = m->end, .pgoff = m->pgoff, .object = m->object };
	struct proc *p = proc_of(m->tgid);

	/* It is another process by now. */
	if (p && p->gone_ns && m->ts_ns > p->gone_ns) {
		proc_free(ttmon_hmap_get(&u.by_tgid, m->tgid));
		p = NULL;
	}
	if (!p)
		p = proc_new(m->tgid);
	/* A stack ends at mappings that were dropped because they are old, or for want of room. */
	if (p && m->ts_ns > 10 * NSEC_PER_SEC)
		ttmon_maps_prune(&p->maps, m->ts_ns - 10 * NSEC_PER_SEC);
	if (p && m->start < m->end)
		(void)!ttmon_maps_add(&p->maps, &x, m->ts_ns);
}

/* A process has hundreds of mappings, but a stack has few pages of code. */
static const struct ttmon_xmap *mapping_at(const struct proc *p, uint64_t pc, uint64_t ts_ns)
{
	uint64_t page = pc / TTMON_STACK_PAGE;
	struct known *k = &u.known[ttmon_mix64(page ^ (uint64_t)p->serial << 40) & (KNOWN - 1)];
	const struct ttmon_xmap *x;

	/* While no mapping has ended, the answer does not depend on the time. */
	if (k->page == page && k->serial == p->serial && k->gen == p->maps.gen && !p->maps.ended)
		return &p->maps.v[k->at];
	x = ttmon_maps_find(&p->maps, pc, ts_ns, NULL, 0);
	if (x)
		*k = (struct known){
			.page = page, .serial = p->serial, .gen = p->maps.gen, .at = (uint32_t)(x - p->maps.v)
		};
	return x;
}

static enum ttmon_uw_place locate(void *ctx, uint64_t pc, uint32_t *object, uint64_t *off)
{
	const struct proc *p = proc_of(u.now->tgid);
	const struct ttmon_xmap *x = p ? mapping_at(p, pc, u.now->ts_ns) : NULL;

	(void)ctx;
	if (!x)
		return TTMON_UW_NOWHERE;
	if (!x->object)
		return TTMON_UW_NO_FILE;
	*object = x->object;
	*off = pc - x->start + x->pgoff;
	return TTMON_UW_IN_OBJECT;
}

/* ---- messages ---- */

static void tell(enum ttmon_unwinder_kind kind, const void *entry, size_t size)
{
	struct {
		struct ttmon_unwinder_head head;
		char entry[sizeof(struct ttmon_unwinder_fn)];
	} msg = { .head = { .kind = kind, .n = size != 0 } };

	memcpy(msg.entry, entry, size);
	/* The daemon is gone, so this process has nothing to do. */
	if (ttmon_unwinder_send(SOCK_FD, &msg, sizeof(msg.head) + size, -1, true))
		_exit(0);
}

/* Until the next call this process may hang in the file of this object; 0: in none. */
static void reads(uint32_t object)
{
	__atomic_store_n(u.reads, (uint64_t)++u.turns << 32 | object, __ATOMIC_RELAXED);
}

static struct table *table_of(uint32_t object)
{
	for (size_t i = 0; i < TABLES_MAX; i++)
		if (u.tables[i].object == object)
			return &u.tables[i];
	return NULL;
}

/* The table that was used longest ago makes room. */
static void add_table(uint32_t object, int fd)
{
	struct table *to = table_of(object);

	/* Requested twice, because the first answer was late. */
	if (to && to->t) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (size_t i = 0; !to && i < TABLES_MAX; i++)
		if (!u.tables[i].object)
			to = &u.tables[i];
	if (!to) {
		to = &u.tables[0];
		for (size_t i = 1; i < TABLES_MAX; i++)
			if (u.tables[i].used < to->used)
				to = &u.tables[i];
	}
	/* Closing the file may block on its server. */
	reads(to->object);
	ttmon_uw_table_free(to->t);
	*to = (struct table){ .object = object, .since_ns = ttmon_mono_ns(), .used = ++u.uses };
	reads(object);
	if (fd >= 0 && ttmon_uw_table_open(fd, &to->t))
		to->t = NULL;
	reads(0);
}

static void set_up(const struct ttmon_unwinder_setup *s, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET, .data.fd = fd };

	u.depth = MIN(MAX(s->depth, 1u), (uint32_t)TTMON_MAX_FRAMES);
	u.ring_fd = fd;
	/* From here on the process can only read what it is given. */
	if (fd < 0 || ttmon_ring_map(&u.ring, fd, s->ring_bytes) || epoll_ctl(u.epoll, EPOLL_CTL_ADD, fd, &ev) ||
	    !ttmon_unwinder_box())
		_exit(1);
}

/*
 * Receives a message, if there is one, and the fd that came with it, which the caller closes; -1:
 * none. -EAGAIN: there is none. 0: the other end is closed.
 */
static ssize_t receive(int sock, void *buf, size_t n, int *fd)
{
	union {
		struct cmsghdr align;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { buf, n };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
	};
	struct cmsghdr *c;
	ssize_t got = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);

	*fd = -1;
	if (got < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	return got;
}

/* ---- files ---- */

static bool is_coming(uint32_t object)
{
	for (size_t i = 0; i < u.nr_coming; i++)
		if (u.coming[i].object == object)
			return true;
	return false;
}

/* The file has come, or will not come any more: fd -1. */
static void came(size_t i, int fd)
{
	struct coming c = u.coming[i];

	memmove(&u.coming[i], &u.coming[i + 1], (--u.nr_coming - i) * sizeof(c));
	close(c.sock);
	add_table(c.object, fd);
}

/* sock -1: the file is not available. The oldest request makes room. */
static void comes(uint32_t object, int sock)
{
	if (sock < 0) {
		add_table(object, -1);
		return;
	}
	if (u.nr_coming == COMING_MAX)
		came(0, -1);
	u.coming[u.nr_coming++] = (struct coming){ object, sock };
}

static void take_files(void)
{
	for (size_t i = 0; i < u.nr_coming;) {
		char byte;
		int fd;

		if (receive(u.coming[i].sock, &byte, sizeof(byte), &fd) == -EAGAIN)
			i++;
		else
			came(i, fd);
	}
}

static void take(const struct ttmon_unwinder_head *head, const char *entries, int fd)
{
	const struct ttmon_unwinder_map *maps = (const void *)entries;
	uint32_t object;

	switch (head->kind) {
	case TTMON_UNWINDER_SETUP:
		set_up((const void *)entries, fd);
		return;
	case TTMON_UNWINDER_MAP:
		for (uint32_t i = 0; i < head->n; i++)
			add_map(&maps[i]);
		return;
	case TTMON_UNWINDER_EXIT:
		gone(maps->tgid);
		return;
	case TTMON_UNWINDER_FILE:
		memcpy(&object, entries, sizeof(object));
		comes(object, fd);
		return;
	case TTMON_UNWINDER_LOOK:
		u.look = true;
		return;
	case TTMON_UNWINDER_FINISH:
		u.look = u.finish = true;
		return;
	}
}

/* Handles one message, if one comes within ms; files that come are taken too, and end the wait. */
static bool hear(int ms)
{
	struct pollfd p[1 + COMING_MAX] = { { .fd = SOCK_FD, .events = POLLIN } };
	ssize_t n;
	int fd;

	for (size_t i = 0; i < u.nr_coming; i++)
		p[1 + i] = (struct pollfd){ .fd = u.coming[i].sock, .events = POLLIN };
	if (poll(p, 1 + u.nr_coming, ms) <= 0)
		return false;
	take_files();
	n = receive(SOCK_FD, u.msg, sizeof(u.msg), &fd);
	if (n == -EAGAIN)
		return false;
	if (n < (ssize_t)sizeof(struct ttmon_unwinder_head))
		_exit(0);
	take((const void *)u.msg, u.msg + sizeof(struct ttmon_unwinder_head), fd);
	return true;
}

static struct ttmon_uw_table *table(void *ctx, uint32_t object)
{
	struct table *t = table_of(object);
	uint64_t now = ttmon_mono_ns(), until = now + WANT_MS * NSEC_PER_MS;

	(void)ctx;
	reads(0);
	/* A late file is waited for once. */
	if (is_coming(object)) {
		take_files();
		t = table_of(object);
	} else if (!t || (!t->t && now - t->since_ns >= AGAIN_NS)) {
		tell(TTMON_UNWINDER_WANT, &object, sizeof(object));
		if (t)
			t->object = 0;
		while (!(t = table_of(object)) && ttmon_before(ttmon_mono_ns(), until))
			(void)hear(WANT_MS / 10);
	}
	if (!t)
		return NULL;
	t->used = ++u.uses;
	reads(object);
	return t->t;
}

/* ---- stacks ---- */

static void tell_fn(const struct ttmon_unwinder_fn *fn)
{
	tell(TTMON_UNWINDER_FN, fn, sizeof(*fn));
}

/* A stack with Python's frames among the native ones. */
static void answer_python(const struct ttmon_stack_copy *c, const struct ttmon_uw_result *r,
			  struct ttmon_unwinder_stack *s)
{
	uint64_t lines[TTMON_PY_FRAMES];
	enum ttmon_stack_end end;
	bool all = true;

	for (uint32_t i = 0; i < MIN(c->npy, (uint32_t)TTMON_PY_FRAMES); i++) {
		bool known;

		lines[i] = ttmon_codes_line(c->tgid, &c->py[i], &known);
		all &= known;
	}
	s->nframes = (uint16_t)ttmon_py_merge(c, r, lines, u.depth, s->frames, &end);
	s->end = (uint8_t)end;
	if (end == TTMON_STACK_DEPTH)
		s->object = 0;
	/* The frames that say where it is from are there, even where the interpreter has no tables. */
	s->by = all ? TTMON_STACK_BY_TABLES : TTMON_STACK_BY_NO_PYTHON;
}

static void answer(const struct ttmon_stack_copy *c, const struct ttmon_uw_result *r)
{
	struct ttmon_unwinder_stack s = { .id = c->id,
					  .chain = c->chain,
					  .tgid = c->tgid,
					  .tid = c->tid,
					  .object = r->end_object,
					  .end = (uint8_t)r->end };
	uint32_t nfp = MIN(c->nfp, (uint32_t)TTMON_MAX_FRAMES);

	if (c->npy && c->py_state != TTMON_PY_FAILED) {
		answer_python(c, r, &s);
	} else if (c->py_state != TTMON_PY_FAILED &&
		   ttmon_uw_confirms(r, (const uint64_t *)c->fp, nfp, c->flags & TTMON_STACK_FP_CUT)) {
		s.by = TTMON_STACK_BY_FRAMES;
		s.end = c->flags & TTMON_STACK_FP_CUT ? TTMON_STACK_DEPTH : TTMON_STACK_COMPLETE;
		s.object = 0;
	} else {
		s.by = r->guessed ? TTMON_STACK_BY_GUESSED : TTMON_STACK_BY_TABLES;
		s.nframes = (uint16_t)MIN(r->n, u.depth);
		if (c->py_state == TTMON_PY_FAILED)
			s.by = TTMON_STACK_BY_NO_PYTHON;
		if (r->n > u.depth)
			s.end = TTMON_STACK_DEPTH;
		memcpy(s.frames, r->pc, s.nframes * sizeof(s.frames[0]));
	}
	if (s.object == TTMON_UNWINDER_VDSO)
		s.object = 0;
	tell(TTMON_UNWINDER_STACK, &s, sizeof(s));
}

/* False: it ends in no known mapping, and final is false. */
static bool unwind(const struct ttmon_stack_copy *c, bool final)
{
	static const struct ttmon_uw_files files = { .locate = locate, .table = table };
	struct ttmon_uw_result r;

	u.now = c;
	/* Of Python's most native frames are left out. */
	ttmon_uw_unwind(u.uw, c, &files, c->npy ? TTMON_UW_FRAMES : MIN(u.depth + 2, TTMON_UW_FRAMES), &r);
	reads(0);
	if (r.end == TTMON_STACK_NO_MAP && !final)
		return false;
	answer(c, &r);
	return true;
}

/*
 * Tries the copies that have waited long enough, or all, and those whose mappings were reported
 * meanwhile.
 */
static void look_at_pending(bool all)
{
	uint64_t now = ttmon_mono_ns();
	size_t n = 0;

	for (size_t i = 0; i < u.nr_pending; i++) {
		struct pending *p = u.pending[i];

		if (unwind(&p->copy, all || now - p->since_ns >= PENDING_NS))
			free(p);
		else
			u.pending[n++] = p;
	}
	u.nr_pending = n;
}

static void keep(const struct ttmon_stack_copy *c)
{
	struct pending *p = u.nr_pending < PENDING_MAX ? malloc(sizeof(*p)) : NULL;

	if (!p) {
		(void)unwind(c, true);
		return;
	}
	p->since_ns = ttmon_mono_ns();
	memcpy(&p->copy, c, sizeof(*c));
	u.pending[u.nr_pending++] = p;
}

static void on_copy(void *ctx, const void *rec, size_t size)
{
	uint64_t id = 0;

	(void)ctx;
	u.last_ns = ttmon_mono_ns();
	if (size >= sizeof(struct ttmon_py_code))
		memcpy(&id, rec, sizeof(id));
	if (!id)
		ttmon_codes_take(rec, size, tell_fn);
	else if (size >= sizeof(struct ttmon_stack_copy) && !unwind(rec, u.finish))
		keep(rec);
}

/* ---- life ---- */

/* The vDSO of this kernel, as a file. */
static void add_vdso(void)
{
	const Elf64_Ehdr *eh = (const void *)getauxval(AT_SYSINFO_EHDR);
	int fd = memfd_create("vdso", MFD_CLOEXEC);
	size_t n = eh ? eh->e_shoff + (size_t)eh->e_shnum * eh->e_shentsize : 0;

	if (n && n <= VDSO_MAX && fd >= 0 && write(fd, eh, n) == (ssize_t)n) {
		add_table(TTMON_UNWINDER_VDSO, fd);
		return;
	}
	if (fd >= 0)
		close(fd);
	add_table(TTMON_UNWINDER_VDSO, -1);
}

static int wait_ms(void)
{
	if (u.look && ttmon_mono_ns() - u.last_ns < LINGER_NS)
		return LINGER_MS;
	u.look = false;
	return u.nr_pending ? 100 : u.nr_gone ? 1000 : -1;
}

static void run(void)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = SOCK_FD }, got[4];
	uint32_t pid = (uint32_t)getpid();

	u.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (u.epoll < 0 || epoll_ctl(u.epoll, EPOLL_CTL_ADD, SOCK_FD, &ev) || ttmon_uw_new(TTMON_UW_ROWS, &u.uw))
		_exit(1);
	add_vdso();
	tell(TTMON_UNWINDER_HELLO, &pid, sizeof(pid));
	for (;;) {
		int n = epoll_wait(u.epoll, got, ARRAY_SIZE(got), u.finish ? 0 : wait_ms());

		for (int i = 0; i < n; i++)
			if (got[i].data.fd != SOCK_FD) {
				u.look = true;
				u.last_ns = ttmon_mono_ns();
			}
		while (hear(0))
			;
		/* Not set up yet, if the daemon's start failed. */
		if (u.ring.data) {
			if (u.look)
				(void)ttmon_ring_drain(&u.ring, ttmon_ring_producer(&u.ring), on_copy, NULL);
			look_at_pending(u.finish);
			forget_gone();
		}
		if (u.finish) {
			tell(TTMON_UNWINDER_DONE, "", 0);
			u.finish = false;
		}
	}
}

/* ---- the starter ---- */

static void start_them(void)
{
	char byte;

	ttmon_unwinder_starter_box();
	/* No process waits for them. */
	signal(SIGCHLD, SIG_IGN);
	while (recv(SOCK_FD, &byte, 1, 0) == 1) {
		_cleanup_close_ int ours = -1, theirs = -1;
		pid_t pid = -1;
		int pair[2];

		if (!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
			theirs = pair[0];
			ours = pair[1];
			pid = fork();
		}
		if (!pid) {
			dup3(ours, SOCK_FD, O_CLOEXEC);
			close(TAKE_FD(ours));
			close(TAKE_FD(theirs));
			run();
		}
		if (ttmon_unwinder_send(SOCK_FD, &byte, 1, pid < 0 ? -1 : theirs, true))
			break;
	}
}

int ttmon_unwinder_start(int *ret, uint64_t **reads_ret)
{
#ifdef __x86_64__
	void *shared = mmap(NULL, sizeof(*u.reads), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int err;

	if (shared == MAP_FAILED)
		return -errno;
	u.reads = shared;
	err = ttmon_detached_start("ttmond-unwind", 0, NULL, 0, start_them, ret);
	if (err)
		munmap(shared, sizeof(*u.reads));
	else
		*reads_ret = shared;
	return err;
#else
	(void)start_them;
	(void)ret;
	(void)reads_ret;
	return -EOPNOTSUPP;
#endif
}

int ttmon_unwinder_new(int starter, int *ret)
{
	struct pollfd p = { .fd = starter, .events = POLLIN };
	char byte = 0;
	int fd = -1;

	__atomic_store_n(u.reads, 0, __ATOMIC_RELAXED);
	if (ttmon_unwinder_send(starter, &byte, 1, -1, false) || poll(&p, 1, START_MS) != 1 ||
	    receive(starter, &byte, 1, &fd) != 1 || fd < 0)
		return -EIO;
	*ret = fd;
	return 0;
}
