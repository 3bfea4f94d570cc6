// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/run/hot.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include "daemon/core/stream/decode.h"
#include "daemon/core/history/live.h"
#include "lib/base/grow.h"
#include "lib/base/names.h"
#include "lib/os/clock.h"
#include "lib/os/log.h"
#include "lib/os/soon.h"
#include "lib/os/thread.h"

/*
 * One drain each ROUND_MS: the cost is in waking, not in events, and slots are still published within
 * 20 ms of their end. One drain each PROMPT_MS, until nothing has come for PROMPT_NS, while something
 * waits: a client that follows live advice, or a command of ours whose processes are held until they
 * are handled. A ring that fills up faster, or the first record of a process, ends the wait.
 */
#define ROUND_MS      15
#define PROMPT_MS     1
#define PROMPT_NS     (200 * NSEC_PER_MS)
#define ASK_EVERY_NS  (20 * NSEC_PER_MS)
#define TELL_EVERY_NS (100 * NSEC_PER_MS)
#define TELL_RUNS_NS  (10 * NSEC_PER_MS)
#define MAX_ASK	      64
#define COSTS	      1024 /* rounds */
/* Facts that wait for the hot thread, which takes them once a round. */
#define MAX_FACTS (64u << 20)
/*
 * Requests that wait for the cold thread. Beyond this number they are dropped, and made again later.
 */
#define MAX_REQUESTS 65536

struct bytes {
	char *p;
	size_t len, cap;
};

struct ttmon_hot {
	struct ttmon_hot_cfg cfg;
	pthread_t thread;
	bool stop;	     /* atomic */
	unsigned int follow; /* atomic: what clients follow, enum ttmon_hot_news bits */
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

	/* Used by the thread itself. */
	struct bytes batch;
	int epoll_fd, wake_fd;
	uint64_t *positions;
	uint64_t *lost;	     /* by CPU and kind: contents of the last LOST fact */
	uint64_t losses_ns;  /* when losses were read last */
	uint64_t part_kinds; /* kinds that some part has a handler for */
	struct ttmon_watermark mark;
	bool cpus_paused;
	uint64_t last_t0, events, background, last_event_ns, longest_gap;
	uint64_t closed_ns, longest_lag;
	/* Cost of records, for budget.h. */
	uint64_t records[TTMON_FAMILY_MAX + 1], records_ns;
	uint64_t calls_ns;
	uint64_t slot_ns[2]; /* shortest time that a slot took, in the last COSTS rounds and in those before */
	uint32_t costs;
	clockid_t cost_clock;
	uint64_t lines, runs; /* numbers up to which lines of live advice, and runs of the timeline, were announced */
	uint64_t runs_ns;     /* when runs were announced last */
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
	/* In the order of the facts, so that the facts about the process are fed first. */
	ttmon_hot_fact(h, &tgid, sizeof(tgid));
}

void ttmon_hot_follow(struct ttmon_hot *h, enum ttmon_hot_news news, bool follow)
{
	if (follow)
		__atomic_fetch_or(&h->follow, news, __ATOMIC_RELEASE);
	else
		__atomic_fetch_and(&h->follow, ~(unsigned int)news, __ATOMIC_RELEASE);
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
	if (h->nr_requests < MAX_REQUESTS && !TTMON_GROW(h->requests, h->cap_requests, h->nr_requests + 1, 64))
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

struct ttmon_asker {
	struct ttmon_hot *hot;
	uint32_t part;
};

void ttmon_hot_note(struct ttmon_asker *a, const char *text)
{
	struct ttmon_request req = { .kind = TTMON_REQ_NOTE };

	snprintf(req.note, sizeof(req.note), "%s", text);
	ask(a->hot, &req);
}

void ttmon_hot_ask(struct ttmon_asker *a, uint32_t tgid, const void *body, size_t n)
{
	struct ttmon_request req = { .kind = TTMON_REQ_PART, .tgid = tgid, .part = a->part };

	memcpy(req.body, body, MIN(n, sizeof(req.body)));
	ask(a->hot, &req);
}

static void show_parts(struct ttmon_hot *h, const struct ttmon_event *e, size_t size)
{
	if (size < ttmon_event_min_size(e->kind))
		return;
	for (uint32_t i = 0; i < h->cfg.nr_parts; i++)
		if (h->cfg.parts[i]->kinds >> e->kind & 1)
			h->cfg.parts[i]->event(&(struct ttmon_asker){ h, i }, e);
}

static void feed_event(void *ctx, const void *rec, size_t size)
{
	struct ttmon_hot *h = ctx;
	const struct ttmon_event *e = rec;

	feed(h, rec, size);
	h->events++;
	if (size < sizeof(*e))
		return;
	if (e->kind < TTMON_EV_FACT)
		h->records[ttmon_event_family(e->kind)]++;
	if (ttmon_event_is_cpu(e->kind)) {
		h->background++;
	} else if (e->kind == TTMON_EV_PROC && size >= sizeof(struct ttmon_ev_proc)) {
		/* The kind of its first copies depends on its mappings, which are being read at this moment. */
		ttmon_watermark_hold(&h->mark, e->tgid, e->ts_ns);
		ask(h, &(struct ttmon_request){ .kind = TTMON_REQ_PROC,
						.tgid = e->tgid,
						.start_ns = ((const struct ttmon_ev_proc *)e)->start_ns });
	} else if (e->kind == TTMON_EV_EXIT) {
		ask(h, &(struct ttmon_request){ .kind = TTMON_REQ_EXIT, .tgid = e->tgid });
	}
	if (e->kind < TTMON_EV_FACT && h->part_kinds >> e->kind & 1)
		show_parts(h, e, size);
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
	ttmon_bpf_each_sum(b, now, fn, ctx);
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
	/* The slot that closes first in a drain waits longest: the one right after the slot closed before. */
	if (h->closed_ns && h->mark.ns >= h->closed_ns + TTMON_SLOT_NS)
		h->longest_lag = MAX(h->longest_lag, ttmon_mono_ns() - (h->closed_ns + TTMON_SLOT_NS));
	if (!h->closed_ns || h->mark.ns >= h->closed_ns)
		h->closed_ns = h->mark.ns - h->mark.ns % TTMON_SLOT_NS;
	ttmon_pipeline_advance(h->cfg.pipeline, h->mark.ns);
	if (h->cfg.rec)
		ttmon_rec_writer_advance(h->cfg.rec, h->mark.ns);
}

/*
 * A round took this time and closed this many slots: what exceeds the shortest time of these slots is
 * the cost of records. Slots are closed, and written to the segment, whether anything was recorded or
 * not.
 */
static void share_cost(struct ttmon_hot *h, uint64_t ns, uint64_t slots)
{
	uint64_t least;

	if (slots)
		h->slot_ns[0] = MIN(h->slot_ns[0], ns / slots);
	least = MIN(h->slot_ns[0], h->slot_ns[1]);
	h->records_ns += least == UINT64_MAX || ns < least * slots ? 0 : ns - least * slots;
	if (++h->costs % COSTS)
		return;
	h->slot_ns[1] = h->slot_ns[0];
	h->slot_ns[0] = UINT64_MAX;
}

/* Records in this ring will be handled after their slots have closed. */
static void tell_behind(struct ttmon_hot *h, uint32_t cpu, uint64_t t0)
{
	const struct ttmon_ev_cpu_open e = {
		.h = { .ts_ns = t0, .kind = TTMON_EV_CPU_OPEN, .cpu = TTMON_CPU_DAEMON },
		.of_cpu = cpu,
		.state = TTMON_CPU_OPEN_BEHIND,
	};

	feed(h, &e, sizeof(e));
}

/*
 * One round: handles every record submitted before it began. CPU states are read before the positions,
 * see io/bpf/cpustate.h.
 */
static void drain(struct ttmon_hot *h)
{
	uint64_t t0 = ttmon_mono_ns(), began_ns = ttmon_clock_ns(h->cost_clock), closed_ns = h->closed_ns;
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
		if (!ttmon_watermark_ring(&h->mark, i, reached, h->events != before) && h->cfg.cpus)
			tell_behind(h, i, t0);
		/* Switches and processes occur all the time, our own wakeups among them: they can wait. */
		if (h->events - h->background != wanted)
			h->last_event_ns = t0;
	}
	if (h->cfg.cpus && !h->cpus_paused)
		ttmon_cpustate_tell(h->cfg.cpus, t0, !all && !h->mark.wait, feed, h);
	ttmon_watermark_end(&h->mark);
	advance(h);
	share_cost(h, ttmon_clock_ns(h->cost_clock) - began_ns, (h->closed_ns - closed_ns) / TTMON_SLOT_NS);
}

static void ask_all(struct ttmon_hot *h)
{
	struct ttmon_history *hist = ttmon_pipeline_history(h->cfg.pipeline);
	struct ttmon_frame frames[MAX_ASK];
	uint32_t tgids[MAX_ASK];
	size_t n = ttmon_history_want_maps(hist, tgids, MAX_ASK);

	for (size_t i = 0; i < n; i++)
		ask(h, &(struct ttmon_request){ .kind = TTMON_REQ_MAPS, .tgid = tgids[i] });
	n = ttmon_history_want_symbols(hist, frames, MAX_ASK);
	for (size_t i = 0; i < n; i++)
		ask(h, &(struct ttmon_request){ .kind = TTMON_REQ_SYMBOL, .frame = frames[i] });
	for (uint32_t i = 0; i < h->cfg.nr_parts; i++)
		if (h->cfg.parts[i]->ask)
			h->cfg.parts[i]->ask(&(struct ttmon_asker){ h, i }, h->cfg.pipeline);
}

/*
 * Figures of events of these kinds have a gap from now on; without this it would show only at the end
 * of the trace.
 */
static void tell_losses(struct ttmon_hot *h)
{
	/* Rounded up, plus one: a loss just before the last reading may show only now. */
	uint32_t ms =
		h->losses_ns ? (uint32_t)MIN((h->last_t0 - h->losses_ns) / NSEC_PER_MS + 2, (uint64_t)UINT32_MAX) : 0;

	for (uint32_t cpu = 0; cpu < ttmon_bpf_cpus(h->cfg.bpf); cpu++) {
		const struct ttmon_cpu_stat *st = ttmon_bpf_stat(h->cfg.bpf, cpu);

		for (unsigned int kind = 1; kind < TTMON_EV_FACT; kind++) {
			struct ttmon_ev_lost e = {
				.h = { .ts_ns = h->last_t0, .kind = TTMON_EV_LOST, .cpu = TTMON_CPU_DAEMON, .tid = ms },
				.stat_cpu = cpu,
				.stat_kind = kind,
				.attempted = st->attempted[kind],
				.lost = st->lost[kind],
			};

			if (e.lost != h->lost[cpu * TTMON_EV_FACT + kind])
				feed(h, &e, sizeof(e));
			h->lost[cpu * TTMON_EV_FACT + kind] = e.lost;
		}
	}
	h->losses_ns = h->last_t0;
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
		.records_ns = h->records_ns,
		.calls_ns = h->calls_ns,
		.unpublished = h->cfg.unpublished ? *h->cfg.unpublished : 0,
	};

	memcpy(s.records, h->records, sizeof(s.records));
	ttmon_snapshot_fill(&s, h->cfg.pipeline);
	if (h->cfg.cpus)
		ttmon_cpustate_get_sums(h->cfg.cpus, &s.sched);
	pthread_mutex_lock(&h->lock);
	h->shown = s;
	pthread_mutex_unlock(&h->lock);
}

/* Runs come in great numbers: followers are woken rarely and take many at a time. */
static void tell_lines(struct ttmon_hot *h)
{
	uint64_t lines = ttmon_history_live_next(ttmon_pipeline_history(h->cfg.pipeline)), first, runs;
	unsigned int follow = __atomic_load_n(&h->follow, __ATOMIC_ACQUIRE);
	bool has_lines = (follow & TTMON_HOT_ADVICE) && lines != h->lines, has_runs;

	ttmon_timeline_run_numbers(ttmon_pipeline_timeline(h->cfg.pipeline), &first, &runs);
	has_runs = (follow & TTMON_HOT_RUNS) && runs != h->runs && h->last_t0 - h->runs_ns >= TELL_RUNS_NS;
	if (has_lines)
		h->lines = lines;
	if (has_runs) {
		h->runs = runs;
		h->runs_ns = h->last_t0;
	}
	if ((has_lines || has_runs) && write(h->event_fd, &(uint64_t){ 1 }, sizeof(uint64_t)) < 0)
		log_debug("eventfd: %s", strerror(errno));
}

static void run_call(struct ttmon_hot *h)
{
	uint64_t began_ns = ttmon_clock_ns(CLOCK_THREAD_CPUTIME_ID);

	h->call.result = h->call.fn(h->call.ctx, h->cfg.pipeline, h->mark.ns);
	h->calls_ns += ttmon_clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
	__atomic_store_n(&h->call.wanted, false, __ATOMIC_RELEASE);
	sem_post(&h->call.done);
}

static void *run(void *arg)
{
	struct ttmon_hot *h = arg;
	uint64_t asked = 0, told = 0;
	struct rusage ru;

	prctl(PR_SET_NAME, "ttmond-hot");
	/*
	 * A system call twice a round costs more than what it measures; a real-time thread is not preempted
	 * and can use the monotonic clock.
	 */
	h->cost_clock = ttmon_thread_soon() ? CLOCK_MONOTONIC : CLOCK_THREAD_CPUTIME_ID;
	/* The window begins here, not at the first event of whichever ring is read first. */
	advance(h);
	while (!__atomic_load_n(&h->stop, __ATOMIC_ACQUIRE)) {
		struct epoll_event ev[8];
		bool prompt;

		drain(h);
		tell_lines(h);
		if (h->last_t0 - asked >= ASK_EVERY_NS) {
			ask_all(h);
			asked = h->last_t0;
		}
		if (h->last_t0 - told >= TELL_EVERY_NS) {
			tell_losses(h);
			tell(h);
			told = h->last_t0;
		}
		if (__atomic_load_n(&h->call.wanted, __ATOMIC_ACQUIRE))
			run_call(h);
		prompt = h->last_t0 - h->last_event_ns <= PROMPT_NS &&
			 (h->cfg.prompt || (__atomic_load_n(&h->follow, __ATOMIC_ACQUIRE) & TTMON_HOT_ADVICE));
		epoll_wait(h->epoll_fd, ev, ARRAY_SIZE(ev), prompt ? PROMPT_MS : ROUND_MS);
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
	free(h->lost);
	ttmon_watermark_fini(&h->mark);
	free(h);
}

/* Edge-triggered: the reason for the wakeup is stored elsewhere, and nothing needs to be read. */
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
	int err;

	if (!h)
		return -ENOMEM;
	h->cfg = *cfg;
	h->rings = ttmon_bpf_rings(cfg->bpf);
	h->last_event_ns = h->last_t0 = ttmon_mono_ns();
	h->slot_ns[0] = h->slot_ns[1] = UINT64_MAX;
	h->cost_clock = CLOCK_THREAD_CPUTIME_ID;
	/* The other thread may be preempted with the lock held: it then runs at this thread's priority. */
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&h->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	sem_init(&h->call.done, 0, 0);
	h->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	h->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	h->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	h->positions = calloc(h->rings, sizeof(*h->positions));
	h->lost = calloc(ttmon_bpf_cpus(cfg->bpf), TTMON_EV_FACT * sizeof(*h->lost));
	for (size_t i = 0; i < cfg->nr_parts; i++)
		h->part_kinds |= cfg->parts[i]->kinds;
	err = ttmon_watermark_init(&h->mark, h->rings + 1, h->last_t0);
	if (err || h->event_fd < 0 || h->epoll_fd < 0 || h->wake_fd < 0 || !h->positions || !h->lost) {
		err = -ENOMEM;
		goto fail;
	}
	err = watch(h);
	if (err)
		goto fail;
	/*
	 * The socket is served before the first drain: a figure with time zero would look like a thread that
	 * hangs.
	 */
	tell(h);
	err = ttmon_thread_start(&h->thread, NULL, NULL, run, h);
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

/*
 * The CPUs' current states are no longer true once the programs have stopped: their time ends with the
 * last record.
 */
static int pause_cpus(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	struct ttmon_hot *h = ctx;

	(void)p;
	(void)now_ns;
	if (!h->cfg.cpus || h->cpus_paused)
		return 0;
	h->cpus_paused = true;
	/* Waits for programs that run at this moment on other CPUs. */
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
		ttmon_history_settle(ttmon_pipeline_history(p));
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
	/*
	 * The probes are off: records reserved now are submitted within the time that a preempted task may
	 * take.
	 */
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
