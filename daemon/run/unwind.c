// SPDX-License-Identifier: GPL-2.0-only
/* unwind.c: see unwind.h. Cold thread, except look_soon(). */
#include "daemon/run/unwind.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include "daemon/io/probes/discover.h"
#include "daemon/io/unwind/unwinder.h"
#include "daemon/run/pynames.h"
#include "lib/os/clock.h"

#define MAPS_MAX  128 /* entries of one message */
#define WANTS_MAX 64
#define QUEUE_MAX (8u << 20) /* bytes of messages that wait for room in the socket */
/*
 * A process that has copies and sends nothing for so long hangs. A copy that waits in it for a second
 * is answered earlier.
 */
#define HANGS_NS (10 * NSEC_PER_SEC)
/* A process that reads one file for so long hangs. It is replaced, so many times. */
#define FILE_HANGS_NS (5 * NSEC_PER_SEC)
#define FOLLOWERS     8
#define FINISH_MS     2000
/* One request of the hot thread for all copies of this time. */
#define LOOK_EVERY_NS (5 * NSEC_PER_MS)

struct unwind {
	struct ttmon_daemon *c;
	int starter;
	int sock;  /* -1: the process is gone */
	int pidfd; /* -1: unknown */
	pid_t pid;
	bool met;		/* it has sent something */
	uint64_t cpu_ns;	/* CPU time of the process when it was last read */
	uint64_t before_cpu_ns; /* of the processes before it */
	const uint64_t *reads;	/* object whose file it reads, as it reports (unwinder.h) */
	uint64_t reads_was, reads_ns;
	uint32_t refused[FOLLOWERS]; /* objects whose files hung */
	size_t nr_refused;
	struct ttmon_pynames *pynames;
	uint64_t left; /* copies that those before it left without an answer, or more */
	struct {
		struct ttmon_unwinder_head head;
		struct ttmon_unwinder_map v[MAPS_MAX];
	} maps; /* not sent yet */
	uint32_t wants[WANTS_MAX];
	size_t nr_wants;
	char *queue; /* messages without room in the socket: each a u32 length, then the message */
	size_t queued, cap;
	bool done; /* it has answered everything */
	uint64_t answered, answered_ns;
};

/* ---- its end ---- */

/* From now on call stacks come from frame pointers only. why: what the process did. */
static void over(struct unwind *w, const char *why)
{
	struct ttmon_ev_unwound e = {
		.h = { .ts_ns = ttmon_mono_ns(), .kind = TTMON_EV_UNWOUND, .cpu = TTMON_CPU_DAEMON },
	};

	if (w->sock < 0)
		return;
	log_warn("the process that unwinds call stacks %s: stacks of code without frame pointers are not known from "
		 "now on",
		 why);
	if (ttmon_daemon_bpf(w->c))
		ttmon_bpf_stacks(ttmon_daemon_bpf(w->c), TTMON_STACKS_OVER);
	ttmon_daemon_fact(w->c, &e, sizeof(e));
	close(w->sock);
	w->sock = -1;
	if (w->pidfd >= 0)
		syscall(SYS_pidfd_send_signal, w->pidfd, SIGKILL, NULL, 0);
}

/* CPU time so far; for an ended process, as of the last reading. */
static uint64_t cpu_ns(struct unwind *w)
{
	struct pollfd p = { .fd = w->pidfd, .events = POLLIN };
	struct timespec ts;
	clockid_t clock;

	if (w->pidfd < 0 || clock_getcpuclockid(w->pid, &clock) || clock_gettime(clock, &ts))
		return w->before_cpu_ns + w->cpu_ns;
	/* If it is alive now, the reading was of this process. */
	if (poll(&p, 1, 0) == 0)
		w->cpu_ns = MAX(w->cpu_ns, (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec);
	return w->before_cpu_ns + w->cpu_ns;
}

/* ---- messages to it ---- */

static void flush_queue(struct unwind *w)
{
	size_t at = 0;

	while (at < w->queued && w->sock >= 0) {
		uint32_t n;
		int err;

		memcpy(&n, w->queue + at, sizeof(n));
		err = ttmon_unwinder_send(w->sock, w->queue + at + sizeof(n), n, -1, false);
		if (err == -EAGAIN)
			break;
		if (err)
			over(w, "has ended");
		at += sizeof(n) + n;
	}
	at = w->sock < 0 ? w->queued : at;
	w->queued -= at;
	if (at)
		memmove(w->queue, w->queue + at, w->queued);
}

static void send_later(struct unwind *w, const void *msg, uint32_t n)
{
	if (w->queued + sizeof(n) + n > w->cap) {
		size_t cap = MAX(w->cap * 2, (size_t)64 << 10);
		char *p = cap > QUEUE_MAX ? NULL : realloc(w->queue, cap);

		if (!p) {
			over(w, "takes nothing any more");
			return;
		}
		w->queue = p;
		w->cap = cap;
	}
	memcpy(w->queue + w->queued, &n, sizeof(n));
	memcpy(w->queue + w->queued + sizeof(n), msg, n);
	w->queued += sizeof(n) + n;
}

static void send_now(struct unwind *w, const void *msg, size_t n)
{
	int err;

	flush_queue(w);
	if (w->sock < 0)
		return;
	err = w->queued ? -EAGAIN : ttmon_unwinder_send(w->sock, msg, n, -1, false);
	if (err == -EAGAIN)
		send_later(w, msg, (uint32_t)n);
	else if (err)
		over(w, "has ended");
}

static void send_maps(struct unwind *w)
{
	size_t n = sizeof(w->maps.head) + w->maps.head.n * sizeof(w->maps.v[0]);

	if (!w->maps.head.n)
		return;
	w->maps.head.kind = TTMON_UNWINDER_MAP;
	send_now(w, &w->maps, n);
	w->maps.head.n = 0;
}

static void send_word(struct unwind *w, enum ttmon_unwinder_kind kind)
{
	struct ttmon_unwinder_head head = { .kind = kind };

	send_maps(w);
	send_now(w, &head, sizeof(head));
}

static bool is_refused(const struct unwind *w, uint32_t object)
{
	for (size_t i = 0; i < w->nr_refused; i++)
		if (w->refused[i] == object)
			return true;
	return false;
}

/*
 * It requested a file: it gets one end of a socket, and a helper the other, which opens the file. The
 * daemon never has such a file open itself: opening or closing it may block on its file system's
 * server.
 */
static int answer_want(struct unwind *w, uint32_t object)
{
	struct {
		struct ttmon_unwinder_head head;
		uint32_t object;
	} msg = { { .kind = TTMON_UNWINDER_FILE, .n = 1 }, object };
	_cleanup_close_ int its = -1, helpers = -1;
	int pair[2], err;

	if (!is_refused(w, object) && !socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
		its = pair[0];
		helpers = pair[1];
	}
	err = ttmon_unwinder_send(w->sock, &msg, sizeof(msg), its, false);
	if (!err && helpers >= 0)
		ttmon_discover_hand(ttmon_daemon_discover(w->c), object, helpers);
	return err;
}

/* An answer without room is sent at the next opportunity: the process waits for it, so it reads. */
static void answer_wants(struct unwind *w)
{
	while (w->nr_wants && w->sock >= 0) {
		int err = answer_want(w, w->wants[0]);

		if (err == -EAGAIN)
			return;
		if (err)
			over(w, "has ended");
		w->nr_wants--;
		memmove(w->wants, w->wants + 1, w->nr_wants * sizeof(w->wants[0]));
	}
}

/* ---- messages from it ---- */

static void on_stack(struct unwind *w, const struct ttmon_unwinder_stack *s)
{
	union {
		struct ttmon_ev_unwound e;
		char space[sizeof(struct ttmon_ev_unwound) + TTMON_MAX_FRAMES * sizeof(uint64_t)];
	} fact = {
		.e = { .h = { .ts_ns = ttmon_mono_ns(),
			      .kind = TTMON_EV_UNWOUND,
			      .cpu = TTMON_CPU_DAEMON,
			      .tgid = s->tgid,
			      .tid = s->tid },
		       .stack = s->id,
		       .by = s->by,
		       .end = s->end,
		       .nframes = s->nframes,
		       .object = s->object },
	};

	/* Only the daemon sends 0. */
	if (!s->id)
		return;
	w->answered++;
	w->answered_ns = ttmon_mono_ns();
	for (uint32_t i = 0; i < s->nframes; i++) {
		bool known = true;

		fact.e.frames[i] = s->frames[i] & TTMON_FRAME_PYTHON
					   ? ttmon_pynames_frame(w->pynames, s->frames[i], &known)
					   : s->frames[i];
		if (!known)
			fact.e.by = TTMON_STACK_BY_NO_PYTHON;
	}
	if (s->by == TTMON_STACK_BY_FRAMES)
		ttmon_bpf_confirm_chain(ttmon_daemon_bpf(w->c), s->chain);
	ttmon_daemon_fact(w->c, &fact, sizeof(fact.e) + s->nframes * sizeof(s->frames[0]));
}

static void take(struct unwind *w, const void *msg)
{
	const struct ttmon_unwinder_head *head = msg;
	bool first = !w->met;
	uint32_t word = 0;

	w->met = true;
	if (head->kind == TTMON_UNWINDER_HELLO || head->kind == TTMON_UNWINDER_WANT)
		memcpy(&word, head + 1, sizeof(word));
	switch (head->kind) {
	case TTMON_UNWINDER_HELLO:
		/* Before it has read any untrusted file. */
		if (first) {
			w->pidfd = (int)syscall(SYS_pidfd_open, word, 0);
			w->pid = (pid_t)word;
		}
		log_debug("call stacks are unwound by process %u", word);
		return;
	case TTMON_UNWINDER_WANT:
		if (w->nr_wants < WANTS_MAX)
			w->wants[w->nr_wants++] = word;
		return;
	case TTMON_UNWINDER_STACK:
		on_stack(w, (const void *)(head + 1));
		return;
	case TTMON_UNWINDER_DONE:
		w->done = true;
		return;
	case TTMON_UNWINDER_FN: {
		const struct ttmon_unwinder_fn *fn = (const void *)(head + 1);

		/* Its numbers begin again, and it has dropped all code objects. */
		if (!fn->no)
			ttmon_bpf_codes_again(ttmon_daemon_bpf(w->c));
		ttmon_pynames_add(w->pynames, fn);
		return;
	}
	}
}

static void receive(struct unwind *w)
{
	_Alignas(8) char msg[sizeof(struct ttmon_unwinder_head) + sizeof(struct ttmon_unwinder_fn) + 8];

	while (w->sock >= 0) {
		ssize_t n = recv(w->sock, msg, sizeof(msg), MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
			over(w, "has ended");
		else if (!ttmon_unwinder_is_good(msg, (size_t)n))
			over(w, "sends nonsense");
		else
			take(w, msg);
	}
}

/* ---- the part ---- */

/* The process is a fork, made before anything is open that it must not have. */
static int configure(struct ttmon_daemon *c, void **state, struct ttmon_bpf_cfg *cfg)
{
	struct unwind *w;
	_cleanup_close_ int starter = -1, sock = -1;
	uint64_t *reads;
	int err;

	(void)cfg;
	if (ttmon_daemon_opts(c)->no_unwind)
		return 0;
	err = ttmon_unwinder_start(&starter, &reads);
	if (!err)
		err = ttmon_unwinder_new(starter, &sock);
	if (err) {
		if (err != -EOPNOTSUPP)
			log_warn(
				"cannot start the process that unwinds call stacks: %s, continuing with frame pointers",
				strerror(-err));
		return 0;
	}
	w = calloc(1, sizeof(*w));
	if (!w)
		return log_error_r(-ENOMEM, "out of memory");
	w->c = c;
	if (ttmon_pynames_new(c, &w->pynames)) {
		free(w);
		return log_error_r(-ENOMEM, "out of memory");
	}
	w->reads = reads;
	w->starter = TAKE_FD(starter);
	w->sock = TAKE_FD(sock);
	w->pidfd = -1;
	*state = w;
	return 0;
}

static int set_up(struct unwind *w)
{
	struct {
		struct ttmon_unwinder_head head;
		struct ttmon_unwinder_setup setup;
	} msg = { { .kind = TTMON_UNWINDER_SETUP, .n = 1 },
		  { .ring_bytes = TTMON_STACK_RING, .depth = ttmon_daemon_opts(w->c)->stack_frames } };

	return ttmon_unwinder_send(w->sock, &msg, sizeof(msg), ttmon_bpf_stack_ring(ttmon_daemon_bpf(w->c)), false);
}

static int load(struct ttmon_daemon *c, void **state)
{
	struct unwind *w = *state;

	if (!w)
		return 0;
	if (set_up(w))
		over(w, "cannot be reached");
	else
		ttmon_bpf_stacks(ttmon_daemon_bpf(c), TTMON_STACKS_ON);
	return 0;
}

static int start(struct ttmon_daemon *c, void **state)
{
	struct unwind *w = *state;

	return w && w->sock >= 0 ? ttmon_daemon_watch(c, w->sock) : 0;
}

/*
 * Hot thread: a copy was made. Sends a request at once; the reader then also takes the copies of the
 * next milliseconds.
 */
static void look_soon(struct ttmon_asker *a, const struct ttmon_event *e)
{
	static uint64_t asked_ns;
	unsigned int state = e->kind == TTMON_EV_ALLOC
				     ? (((const struct ttmon_ev_alloc *)e)->bits & TTMON_B_STACK) >> TTMON_B_STACK_SHIFT
				     : ((const struct ttmon_ev_copy_site *)e)->stack & 3;

	if (state != TTMON_STACK_COPY || (e->ts_ns >= asked_ns && e->ts_ns - asked_ns < LOOK_EVERY_NS))
		return;
	asked_ns = e->ts_ns;
	ttmon_hot_ask(a, e->tgid, "", 0);
}

static void request(void *state, const struct ttmon_request *req)
{
	struct {
		struct ttmon_unwinder_head head;
		struct ttmon_unwinder_map map;
	} msg = { { .kind = TTMON_UNWINDER_EXIT, .n = 1 }, { .tgid = req->tgid } };
	struct unwind *w = state;

	if (req->kind == TTMON_REQ_PART)
		send_word(w, TTMON_UNWINDER_LOOK);
	send_maps(w);
	if (req->kind == TTMON_REQ_EXIT)
		send_now(w, &msg, sizeof(msg));
}

static void fact(void *state, const void *rec, size_t size)
{
	const struct ttmon_ev_map *m = rec;
	struct unwind *w = state;
	bool vdso;

	if (w->sock < 0 || m->h.kind != TTMON_EV_MAP || !(m->prot & 4))
		return;
	vdso = m->len == 6 && size >= sizeof(*m) + 6 && !memcmp(m->name, "[vdso]", 6);
	w->maps.v[w->maps.head.n++] = (struct ttmon_unwinder_map){ .ts_ns = m->h.ts_ns,
								   .start = m->start,
								   .end = m->end,
								   .pgoff = vdso ? 0 : m->pgoff,
								   .tgid = m->h.tgid,
								   .object = vdso ? TTMON_UNWINDER_VDSO : m->object };
	if (w->maps.head.n == MAPS_MAX)
		send_maps(w);
}

static void turn(void *state)
{
	struct unwind *w = state;

	receive(w);
	answer_wants(w);
	send_maps(w);
}

/*
 * It hangs in the file of this object: a new process takes its place, is not given that file, and gets
 * the mappings of all processes again.
 */
static void follow(struct unwind *w, uint32_t object)
{
	const char *path = ttmon_discover_path(ttmon_daemon_discover(w->c), object);
	uint64_t copied, lost;
	int sock;

	if (w->nr_refused == FOLLOWERS || ttmon_unwinder_new(w->starter, &sock)) {
		over(w, "hangs in a file");
		return;
	}
	log_warn("the unwind tables of %s take too long to read: call stacks end there", path ? path : "a file");
	w->refused[w->nr_refused++] = object;
	w->before_cpu_ns = cpu_ns(w);
	w->cpu_ns = 0;
	if (w->pidfd >= 0) {
		syscall(SYS_pidfd_send_signal, w->pidfd, SIGKILL, NULL, 0);
		close(w->pidfd);
	}
	close(w->sock);
	w->sock = sock;
	w->pidfd = -1;
	w->met = false;
	w->nr_wants = w->queued = w->maps.head.n = 0;
	ttmon_bpf_stack_counts(ttmon_daemon_bpf(w->c), &copied, &lost);
	w->left = copied - MIN(copied, w->answered);
	w->answered_ns = ttmon_mono_ns();
	if (set_up(w) || ttmon_daemon_watch(w->c, sock))
		over(w, "cannot be reached");
	else
		ttmon_discover_each_followed(ttmon_daemon_discover(w->c), ttmon_daemon_list, w->c);
}

static void look_at_reads(struct unwind *w, uint64_t now)
{
	uint64_t reads = __atomic_load_n(w->reads, __ATOMIC_RELAXED);

	if (reads != w->reads_was) {
		w->reads_was = reads;
		w->reads_ns = now;
	} else if ((uint32_t)reads && now - w->reads_ns >= FILE_HANGS_NS) {
		follow(w, (uint32_t)reads);
	}
}

static void tick(void *state)
{
	struct unwind *w = state;
	uint64_t copied, lost, now;

	if (w->sock < 0)
		return;
	turn(w);
	flush_queue(w);
	now = ttmon_mono_ns();
	look_at_reads(w, now);
	ttmon_bpf_stack_counts(ttmon_daemon_bpf(w->c), &copied, &lost);
	if (copied <= w->answered + w->left || !w->answered_ns)
		w->answered_ns = now;
	if (ttmon_before(w->answered_ns, now) && now - w->answered_ns >= HANGS_NS)
		over(w, "hangs");
}

/* Copies made until the end are answered, as far as possible within two seconds. */
static int stop(void *state)
{
	struct unwind *w = state;
	uint64_t until = ttmon_mono_ns() + FINISH_MS * NSEC_PER_MS, copied, lost;

	if (w->sock < 0 || w->done || !ttmon_daemon_bpf(w->c))
		return 0;
	ttmon_bpf_stacks(ttmon_daemon_bpf(w->c), TTMON_STACKS_OFF);
	ttmon_bpf_stack_counts(ttmon_daemon_bpf(w->c), &copied, &lost);
	send_word(w, TTMON_UNWINDER_FINISH);
	while (w->sock >= 0 && !w->done && ttmon_before(ttmon_mono_ns(), until)) {
		ttmon_daemon_work(w->c, w->sock, 50);
		turn(w);
		flush_queue(w);
	}
	if (w->sock >= 0 && !w->done)
		over(w, "does not end");
	if (lost)
		log_warn("%llu call stacks of code that may have no frame pointers could not be copied: they came "
			 "faster than they were unwound",
			 (unsigned long long)lost);
	return 0;
}

static void unwind_free(void *state)
{
	struct unwind *w = state;

	if (!w)
		return;
	if (w->sock >= 0)
		close(w->sock);
	if (w->pidfd >= 0)
		close(w->pidfd);
	close(w->starter);
	free(w->queue);
	ttmon_pynames_free(w->pynames);
	free(w);
}

bool ttmon_unwind_get(const struct ttmon_daemon *c, struct ttmon_unwind_state *ret)
{
	struct unwind *w = ttmon_daemon_part(c, &ttmon_part_unwind);

	if (!w)
		return false;
	*ret = (struct ttmon_unwind_state){ .on = w->sock >= 0, .answered = w->answered, .cpu_ns = cpu_ns(w) };
	if (ttmon_daemon_bpf(c))
		ttmon_bpf_stack_counts(ttmon_daemon_bpf(c), &ret->copied, &ret->lost);
	return true;
}

const struct ttmon_part ttmon_part_unwind = {
	.name = "unwind",
	.in = TTMON_IN_LIVE,
	.configure = configure,
	.load = load,
	.start = start,
	.request = request,
	.fact = fact,
	.tick = tick,
	.turn = turn,
	.stop = stop,
	.free = unwind_free,
	.hot = { .kinds = 1ull << TTMON_EV_ALLOC | 1ull << TTMON_EV_COPY_SITE, .event = look_soon },
};
