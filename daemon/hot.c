// SPDX-License-Identifier: GPL-2.0-only
#include "hot.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "core/decode.h"
#include "core/live.h"
#include "core/ttfns.h"
#include "util/clock.h"
#include "util/log.h"

/* Busy: a drain a millisecond. After this long without an event a drain each IDLE_MS: slots still come out within 20 ms. */
#define BUSY_MS	      1
#define IDLE_MS	      10
#define IDLE_AFTER_NS (200 * NSEC_PER_MS)
#define ASK_EVERY_NS  (20 * NSEC_PER_MS)
#define TELL_EVERY_NS (100 * NSEC_PER_MS)
#define MAX_ASK	      64
/* Facts that wait for the hot thread, which takes them once a millisecond. */
#define MAX_FACTS (64u << 20)
/* Requests that wait for the cold thread. Past this many a question is asked again later. */
#define MAX_REQUESTS 65536

struct bytes {
	char *p;
	size_t len, cap;
};

struct ttmon_hot {
	struct ttmon_hot_cfg cfg;
	pthread_t thread;
	bool stop;   /* atomic */
	bool follow; /* atomic: somebody reads live advice */
	uint32_t rings;

	pthread_mutex_t lock; /* facts in, requests out, snapshot; held for copies only */
	struct bytes facts;
	uint64_t facts_dropped;
	struct ttmon_request *requests;
	size_t nr_requests, cap_requests;
	int event_fd;
	struct ttmon_snapshot shown;

	struct {
		ttmon_hot_fn fn;
		void *ctx;
		int result;
		sem_t done;
		bool wanted; /* atomic */
	} call;

	/* the thread's own */
	struct bytes batch;
	int epoll_fd, wake_fd;
	uint64_t *positions;
	uint64_t *tt_lost; /* by CPU and kind: what the last LOST fact said */
	struct ttmon_watermark mark;
	bool cpus_paused;
	uint64_t last_t0, events, background, last_event_ns, longest_gap;
	uint64_t closed_ns, longest_lag;
	uint64_t lines; /* of live advice that were told of */
};

/* ---- between the threads ---- */

void ttmon_hot_fact(void *hot, const void *rec, size_t size)
{
	struct ttmon_hot *h = hot;
	struct bytes *b = &h->facts;
	uint64_t len = size;

	pthread_mutex_lock(&h->lock);
	if (b->len + size + sizeof(len) > b->cap) {
		size_t cap = MAX(b->cap * 2, (b->len + size + sizeof(len)) * 2);
		char *p = cap > MAX_FACTS ? NULL : realloc(b->p, cap);

		if (!p) {
			h->facts_dropped++;
			pthread_mutex_unlock(&h->lock);
			return;
		}
		b->p = p;
		b->cap = cap;
	}
	memcpy(b->p + b->len, &len, sizeof(len));
	memcpy(b->p + b->len + sizeof(len), rec, size);
	b->len += sizeof(len) + size;
	pthread_mutex_unlock(&h->lock);
}

void ttmon_hot_listed(struct ttmon_hot *h, uint32_t tgid)
{
	/* In the order of the facts, so that what was told of the process is fed first. */
	ttmon_hot_fact(h, &tgid, sizeof(tgid));
}

void ttmon_hot_follow(struct ttmon_hot *h, bool follow)
{
	__atomic_store_n(&h->follow, follow, __ATOMIC_RELEASE);
}

int ttmon_hot_fd(const struct ttmon_hot *h)
{
	return h->event_fd;
}

size_t ttmon_hot_requests(struct ttmon_hot *h, struct ttmon_request **ret)
{
	uint64_t count;
	size_t n;

	if (read(h->event_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		log_debug("eventfd: %s", strerror(errno));
	pthread_mutex_lock(&h->lock);
	n = h->nr_requests;
	*ret = TAKE_PTR(h->requests);
	h->nr_requests = h->cap_requests = 0;
	pthread_mutex_unlock(&h->lock);
	return n;
}

static void ask(struct ttmon_hot *h, const struct ttmon_request *req)
{
	uint64_t one = 1;

	pthread_mutex_lock(&h->lock);
	if (h->nr_requests == h->cap_requests && h->cap_requests < MAX_REQUESTS) {
		size_t cap = h->cap_requests ? h->cap_requests * 2 : 64;
		void *p = realloc(h->requests, cap * sizeof(*h->requests));

		if (p) {
			h->requests = p;
			h->cap_requests = cap;
		}
	}
	if (h->nr_requests < h->cap_requests)
		h->requests[h->nr_requests++] = *req;
	pthread_mutex_unlock(&h->lock);
	if (write(h->event_fd, &one, sizeof(one)) < 0)
		log_debug("eventfd: %s", strerror(errno));
}

void ttmon_hot_snapshot(struct ttmon_hot *h, struct ttmon_snapshot *ret)
{
	pthread_mutex_lock(&h->lock);
	*ret = h->shown;
	pthread_mutex_unlock(&h->lock);
}

/* ---- the thread ---- */

static void feed(void *ctx, const void *rec, size_t size)
{
	struct ttmon_hot *h = ctx;

	ttmon_pipeline_feed(h->cfg.pipeline, rec, size);
	if (h->cfg.rec)
		ttmon_rec_writer_record(h->cfg.rec, rec, size);
}

static void ask_provider(struct ttmon_hot *h, const struct ttmon_ev_tt_call *e)
{
	const struct ttmon_tt_desc *d = ttmon_tt_fn(e->fn);

	if (d && d->cls == TTMON_TT_CLS_PROVIDER)
		ask(h, &(struct ttmon_request){ .kind = TTMON_REQ_TT_PROVIDER,
						.tgid = e->h.tgid,
						.provider = { .key = e->arg[1],
							      .logical = (uint32_t)e->arg[2],
							      .disabled = e->arg[3] & 0xff } });
}

static void feed_event(void *ctx, const void *rec, size_t size)
{
	struct ttmon_hot *h = ctx;
	const struct ttmon_event *e = rec;

	feed(h, rec, size);
	h->events++;
	if (size < sizeof(*e))
		return;
	if (ttmon_event_is_cpu(e->kind)) {
		h->background++;
	} else if (e->kind == TTMON_EV_PROC && size >= sizeof(struct ttmon_ev_proc)) {
		/* Its first copies are told apart by its mappings, which are read at this moment. */
		ttmon_watermark_hold(&h->mark, e->tgid, e->ts_ns);
		ask(h, &(struct ttmon_request){ .kind = TTMON_REQ_PROC,
						.tgid = e->tgid,
						.start_ns = ((const struct ttmon_ev_proc *)e)->start_ns });
	} else if (e->kind == TTMON_EV_EXIT) {
		ask(h, &(struct ttmon_request){ .kind = TTMON_REQ_EXIT, .tgid = e->tgid });
	} else if (e->kind == TTMON_EV_TT_CALL && size >= sizeof(struct ttmon_ev_tt_call)) {
		ask_provider(h, (const struct ttmon_ev_tt_call *)e);
	}
}

static void feed_facts(struct ttmon_hot *h)
{
	struct bytes b;

	pthread_mutex_lock(&h->lock);
	b = h->facts;
	h->facts = h->batch;
	h->facts.len = 0;
	pthread_mutex_unlock(&h->lock);
	h->batch = b;
	for (size_t off = 0; off < b.len;) {
		uint64_t len;

		memcpy(&len, b.p + off, sizeof(len));
		if (len == sizeof(uint32_t)) {
			uint32_t tgid;

			memcpy(&tgid, b.p + off + sizeof(len), sizeof(tgid));
			ttmon_watermark_release(&h->mark, tgid);
		} else {
			feed(h, b.p + off + sizeof(len), len);
		}
		off += sizeof(len) + len;
	}
}

void ttmon_kernel_facts(const struct ttmon_bpf *b, uint64_t now, void (*fn)(void *ctx, const void *rec, size_t size),
			void *ctx)
{
	ttmon_bpf_each_launches(b, now, fn, ctx);
	ttmon_bpf_each_tt_sums(b, now, fn, ctx);
	for (uint32_t cpu = 0; cpu < ttmon_bpf_cpus(b); cpu++) {
		const struct ttmon_cpu_stat *st = ttmon_bpf_stat(b, cpu);
		struct ttmon_ev_lost e = {
			.h = { .ts_ns = now, .kind = TTMON_EV_LOST, .cpu = TTMON_CPU_DAEMON },
			.stat_cpu = cpu,
			.nested = st->nested,
		};

		memcpy(e.reason, st->reason, sizeof(e.reason));
		fn(ctx, &e, sizeof(e));
		e.nested = 0;
		memset(e.reason, 0, sizeof(e.reason));
		for (uint32_t kind = 1; kind < TTMON_EV_FACT; kind++) {
			e.stat_kind = kind;
			e.attempted = st->attempted[kind];
			e.lost = st->lost[kind];
			if (e.attempted)
				fn(ctx, &e, sizeof(e));
		}
	}
}

static void advance(struct ttmon_hot *h)
{
	/* The last slot to close waits longest when it is the first past the one closed before. */
	if (h->closed_ns && h->mark.ns >= h->closed_ns + TTMON_SLOT_NS)
		h->longest_lag = MAX(h->longest_lag, ttmon_mono_ns() - (h->closed_ns + TTMON_SLOT_NS));
	if (!h->closed_ns || h->mark.ns >= h->closed_ns)
		h->closed_ns = h->mark.ns - h->mark.ns % TTMON_SLOT_NS;
	ttmon_pipeline_advance(h->cfg.pipeline, h->mark.ns);
	if (h->cfg.rec)
		ttmon_rec_writer_advance(h->cfg.rec, h->mark.ns);
}

/* One round: everything that was submitted before it began. CPUs' states before the positions: io/cpustate.h. */
static void drain(struct ttmon_hot *h)
{
	uint64_t t0 = ttmon_mono_ns();
	bool read = true, all;

	if (h->last_t0 && t0 - h->last_t0 > h->longest_gap)
		h->longest_gap = t0 - h->last_t0;
	h->last_t0 = t0;
	ttmon_watermark_begin(&h->mark, t0);
	if (h->cfg.cpus && !h->cpus_paused)
		read = ttmon_cpustate_read(h->cfg.cpus, t0 - TTMON_GUARD_NS);
	ttmon_watermark_ring(&h->mark, h->rings, read, false);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint32_t i = 0; i < h->rings; i++)
		h->positions[i] = ttmon_ring_producer(ttmon_bpf_ring(h->cfg.bpf, i));
	feed_facts(h);
	all = read;
	for (uint32_t i = 0; i < h->rings; i++) {
		uint64_t before = h->events, wanted = h->events - h->background;
		bool reached = ttmon_ring_drain(ttmon_bpf_ring(h->cfg.bpf, i), h->positions[i], feed_event, h);

		all &= reached;
		ttmon_watermark_ring(&h->mark, i, reached, h->events != before);
		/* Switches and processes there are always, our own wakeups among them: they can wait. */
		if (h->events - h->background != wanted)
			h->last_event_ns = t0;
	}
	if (h->cfg.cpus && !h->cpus_paused)
		ttmon_cpustate_tell(h->cfg.cpus, t0, !all && !h->mark.wait, feed, h);
	ttmon_watermark_end(&h->mark);
	advance(h);
}

static void ask_history(struct ttmon_hot *h)
{
	struct ttmon_history *hist = ttmon_pipeline_history(h->cfg.pipeline);
	struct ttmon_tt_want wants[MAX_ASK];
	struct ttmon_frame frames[MAX_ASK];
	struct ttmon_request note = { .kind = TTMON_REQ_NOTE };
	uint32_t tgids[MAX_ASK];
	size_t n = ttmon_history_want_maps(hist, tgids, MAX_ASK);

	for (size_t i = 0; i < n; i++)
		ask(h, &(struct ttmon_request){ .kind = TTMON_REQ_MAPS, .tgid = tgids[i] });
	n = ttmon_history_want_symbols(hist, frames, MAX_ASK);
	for (size_t i = 0; i < n; i++)
		ask(h, &(struct ttmon_request){ .kind = TTMON_REQ_SYMBOL, .frame = frames[i] });
	while (ttmon_rmid_note(ttmon_pipeline_rmid(h->cfg.pipeline), note.note, sizeof(note.note)))
		ask(h, &note);
	n = ttmon_tt_wants(ttmon_pipeline_tt(h->cfg.pipeline), wants, MAX_ASK);
	for (size_t i = 0; i < n; i++)
		ask(h, &(struct ttmon_request){ .kind = TTMON_REQ_TT, .tgid = wants[i].tgid, .want = wants[i] });
}

/* Buffers whose events were lost are missing in the figures from now on, not from the end of the trace on. */
static void tell_tt_losses(struct ttmon_hot *h)
{
	static const uint16_t kinds[] = { TTMON_EV_TT_BUFFER, TTMON_EV_TT_CALL };

	for (uint32_t cpu = 0; cpu < ttmon_bpf_cpus(h->cfg.bpf); cpu++) {
		const struct ttmon_cpu_stat *st = ttmon_bpf_stat(h->cfg.bpf, cpu);

		for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
			struct ttmon_ev_lost e = {
				.h = { .ts_ns = h->last_t0, .kind = TTMON_EV_LOST, .cpu = TTMON_CPU_DAEMON },
				.stat_cpu = cpu,
				.stat_kind = kinds[i],
				.attempted = st->attempted[kinds[i]],
				.lost = st->lost[kinds[i]],
			};

			if (e.lost != h->tt_lost[cpu * ARRAY_SIZE(kinds) + i])
				feed(h, &e, sizeof(e));
			h->tt_lost[cpu * ARRAY_SIZE(kinds) + i] = e.lost;
		}
	}
}

void ttmon_snapshot_fill(struct ttmon_snapshot *s, struct ttmon_pipeline *p)
{
	s->procs = ttmon_history_procs(ttmon_pipeline_history(p));
	s->has_tt = ttmon_pipeline_has_tt(p);
	s->tt_generation =
		ttmon_tt_generation(ttmon_pipeline_tt(p)) + ttmon_dispatch_generation(ttmon_pipeline_dispatch(p));
	ttmon_pipeline_accounting(p, &s->acc);
	ttmon_history_totals(ttmon_pipeline_history(p), &s->totals);
	ttmon_cpu_get_totals(ttmon_pipeline_cpu(p), &s->cpu);
	ttmon_rmid_get_totals(ttmon_pipeline_rmid(p), &s->rmid);
}

static void tell(struct ttmon_hot *h)
{
	struct ttmon_snapshot s = {
		.now_ns = h->last_t0,
		.watermark_ns = h->mark.ns,
		.events = h->events,
		.stalls = h->mark.stalls,
		.longest_gap_ns = h->longest_gap,
		.oldest_lag_ns = h->longest_lag,
	};

	ttmon_snapshot_fill(&s, h->cfg.pipeline);
	if (h->cfg.cpus)
		ttmon_cpustate_get_sums(h->cfg.cpus, &s.sched);
	pthread_mutex_lock(&h->lock);
	h->shown = s;
	pthread_mutex_unlock(&h->lock);
}

static void tell_lines(struct ttmon_hot *h)
{
	uint64_t next = ttmon_history_live_next(ttmon_pipeline_history(h->cfg.pipeline));

	if (next == h->lines || !__atomic_load_n(&h->follow, __ATOMIC_ACQUIRE))
		return;
	h->lines = next;
	if (write(h->event_fd, &(uint64_t){ 1 }, sizeof(uint64_t)) < 0)
		log_debug("eventfd: %s", strerror(errno));
}

static void run_call(struct ttmon_hot *h)
{
	h->call.result = h->call.fn(h->call.ctx, h->cfg.pipeline, h->mark.ns);
	__atomic_store_n(&h->call.wanted, false, __ATOMIC_RELEASE);
	sem_post(&h->call.done);
}

/*
 * It needs little of the CPU, but soon: with both cores of a host kept busy by a dozen ordinary threads it was once not run for
 * 0.36 s, which is more than the rings hold. The lowest real-time priority where that is allowed (the kernel still keeps 5 % for
 * everybody else), else the best nice value.
 */
static void raise_priority(void)
{
	struct sched_param param = { .sched_priority = sched_get_priority_min(SCHED_RR) };

	if (!sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &param))
		return;
	if (setpriority(PRIO_PROCESS, (id_t)gettid(), -20))
		log_debug("the hot thread runs at ordinary priority: %s", strerror(errno));
}

static void *run(void *arg)
{
	struct ttmon_hot *h = arg;
	uint64_t asked = 0, told = 0;
	struct rusage ru;

	prctl(PR_SET_NAME, "ttmond-hot");
	raise_priority();
	/* The window begins here, not at the first event of whichever ring is read first. */
	advance(h);
	while (!__atomic_load_n(&h->stop, __ATOMIC_ACQUIRE)) {
		struct epoll_event ev[8];
		bool idle;

		drain(h);
		tell_lines(h);
		if (h->last_t0 - asked >= ASK_EVERY_NS) {
			ask_history(h);
			asked = h->last_t0;
		}
		if (h->last_t0 - told >= TELL_EVERY_NS) {
			tell_tt_losses(h);
			tell(h);
			told = h->last_t0;
		}
		if (__atomic_load_n(&h->call.wanted, __ATOMIC_ACQUIRE))
			run_call(h);
		idle = h->last_t0 - h->last_event_ns > IDLE_AFTER_NS;
		/* Woken early only by a ring that fills up faster than that. */
		epoll_wait(h->epoll_fd, ev, ARRAY_SIZE(ev), idle ? IDLE_MS : BUSY_MS);
	}
	if (!getrusage(RUSAGE_THREAD, &ru))
		log_debug("hot thread: %llu events, %ld ms user, %ld ms system, longest gap %llu us, %llu stalls",
			  (unsigned long long)h->events, ru.ru_utime.tv_sec * 1000 + ru.ru_utime.tv_usec / 1000,
			  ru.ru_stime.tv_sec * 1000 + ru.ru_stime.tv_usec / 1000,
			  (unsigned long long)(h->longest_gap / NSEC_PER_US), (unsigned long long)h->mark.stalls);
	return NULL;
}

/* ---- life ---- */

static void destroy(struct ttmon_hot *h)
{
	if (!h)
		return;
	if (h->event_fd >= 0)
		close(h->event_fd);
	if (h->epoll_fd >= 0)
		close(h->epoll_fd);
	if (h->wake_fd >= 0)
		close(h->wake_fd);
	pthread_mutex_destroy(&h->lock);
	sem_destroy(&h->call.done);
	free(h->facts.p);
	free(h->batch.p);
	free(h->requests);
	free(h->positions);
	free(h->tt_lost);
	ttmon_watermark_fini(&h->mark);
	free(h);
}

/* Edge-triggered: who wakes it has said why elsewhere, and nobody needs to read. */
static int watch(struct ttmon_hot *h)
{
	struct epoll_event wake = { .events = EPOLLIN | EPOLLET };

	if (epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, h->wake_fd, &wake))
		return -errno;
	for (uint32_t i = 0; i < h->rings; i++) {
		struct epoll_event ev = { .events = EPOLLIN | EPOLLET };

		if (epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, ttmon_bpf_ring_fd(h->cfg.bpf, i), &ev))
			return -errno;
	}
	return 0;
}

int ttmon_hot_start(const struct ttmon_hot_cfg *cfg, struct ttmon_hot **ret)
{
	struct ttmon_hot *h = calloc(1, sizeof(*h));
	pthread_mutexattr_t attr;
	sigset_t all, old;
	int err;

	if (!h)
		return -ENOMEM;
	h->cfg = *cfg;
	h->rings = ttmon_bpf_rings(cfg->bpf);
	h->last_event_ns = h->last_t0 = ttmon_mono_ns();
	/* The other thread may be preempted with the lock held: it then runs at the priority of this one. */
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&h->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	sem_init(&h->call.done, 0, 0);
	h->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	h->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	h->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	h->positions = calloc(h->rings, sizeof(*h->positions));
	h->tt_lost = calloc(ttmon_bpf_cpus(cfg->bpf), 2 * sizeof(*h->tt_lost));
	err = ttmon_watermark_init(&h->mark, h->rings + 1, h->last_t0);
	if (err || h->event_fd < 0 || h->epoll_fd < 0 || h->wake_fd < 0 || !h->positions || !h->tt_lost) {
		err = -ENOMEM;
		goto fail;
	}
	err = watch(h);
	if (err)
		goto fail;
	/* Signals are the cold thread's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = -pthread_create(&h->thread, NULL, run, h);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		goto fail;
	*ret = h;
	return 0;
fail:
	destroy(h);
	return err;
}

int ttmon_hot_call(struct ttmon_hot *h, ttmon_hot_fn fn, void *ctx)
{
	h->call.fn = fn;
	h->call.ctx = ctx;
	__atomic_store_n(&h->call.wanted, true, __ATOMIC_RELEASE);
	if (write(h->wake_fd, &(uint64_t){ 1 }, sizeof(uint64_t)) < 0)
		log_debug("eventfd: %s", strerror(errno));
	while (sem_wait(&h->call.done) && errno == EINTR)
		;
	return h->call.result;
}

/* What CPUs are in the middle of is no longer true once the programs have stopped: their time ends with their last record. */
static int pause_cpus(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	struct ttmon_hot *h = ctx;

	(void)p;
	(void)now_ns;
	if (!h->cfg.cpus || h->cpus_paused)
		return 0;
	h->cpus_paused = true;
	/* Programs that run at this moment on other CPUs. */
	nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
	for (uint32_t i = 0; i < h->rings; i++)
		ttmon_ring_drain(ttmon_bpf_ring(h->cfg.bpf, i), ttmon_ring_producer(ttmon_bpf_ring(h->cfg.bpf, i)),
				 feed_event, h);
	for (uint32_t cpu = 0; cpu < ttmon_bpf_cpus(h->cfg.bpf); cpu++) {
		struct ttmon_ev_cpu_open e = {
			.h = { .ts_ns = ttmon_mono_ns(), .kind = TTMON_EV_CPU_OPEN, .cpu = TTMON_CPU_DAEMON },
			.of_cpu = cpu,
			.state = TTMON_CPU_OPEN_OFFLINE,
		};

		feed(h, &e, sizeof(e));
	}
	return 0;
}

static int resume_cpus(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	struct ttmon_hot *h = ctx;

	(void)p;
	(void)now_ns;
	h->cpus_paused = false;
	return 0;
}

void ttmon_hot_pause_cpus(struct ttmon_hot *h, bool pause)
{
	(void)!ttmon_hot_call(h, pause ? pause_cpus : resume_cpus, h);
}

static int end_capture(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	struct ttmon_hot *h = ctx;

	ttmon_bpf_activate(h->cfg.bpf, false);
	return pause_cpus(h, p, now_ns);
}

void ttmon_hot_end(struct ttmon_hot *h)
{
	(void)!ttmon_hot_call(h, end_capture, h);
}

struct dump {
	struct ttmon_hot *hot;
	ttmon_hot_fn fn;
	void *ctx;
};

static int run_dump(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	const struct dump *d = ctx;
	pid_t pid;

	ttmon_kernel_facts(d->hot->cfg.bpf, ttmon_mono_ns(), feed, d->hot);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_NAME, "ttmond-dump");
		_exit(d->fn(d->ctx, p, now_ns) ? 1 : 0);
	}
	return pid < 0 ? -errno : pid;
}

pid_t ttmon_hot_dump(struct ttmon_hot *h, ttmon_hot_fn fn, void *ctx)
{
	struct dump d = { .hot = h, .fn = fn, .ctx = ctx };

	return ttmon_hot_call(h, run_dump, &d);
}

void ttmon_hot_stop(struct ttmon_hot *h, uint64_t *end_ns)
{
	__atomic_store_n(&h->stop, true, __ATOMIC_RELEASE);
	pthread_join(h->thread, NULL);
	/* The probes are off: what is reserved now is submitted within the time a preempted task may take. */
	for (int i = 0; i < 50; i++) {
		bool open = false;

		drain(h);
		for (uint32_t c = 0; c < h->rings; c++)
			open |= ttmon_ring_used(ttmon_bpf_ring(h->cfg.bpf, c)) != 0;
		if (!open)
			break;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	ttmon_kernel_facts(h->cfg.bpf, ttmon_mono_ns(), feed, h);
	*end_ns = h->mark.ns;
	if (h->facts_dropped)
		log_warn("%llu facts about mappings and names were dropped: memory was short",
			 (unsigned long long)h->facts_dropped);
	destroy(h);
}
