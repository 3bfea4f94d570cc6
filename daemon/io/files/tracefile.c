// SPDX-License-Identifier: GPL-2.0-only
/*
 * tracefile.c: writes the views of a pipeline as events of a trace file. Cold thread, or a forked
 * child: it starts no thread and logs nothing. The content depends only on the pipeline and the input:
 * a replay gives the same bytes.
 */
#include "daemon/io/files/tracefile.h"

#include <sys/mman.h>

#include "daemon/core/stream/decode.h"
#include "daemon/io/files/db_tt.h"
#include "lib/os/outfile.h"
#include "daemon/io/files/traceev.h"
#include "version.h"

static const char *const end_names[TTMON_END_MAX] = {
#define X(id, NAME, name) [id] = name,
	TTMON_END_TABLE(X)
#undef X
};
_Static_assert(TTMON_END_MAX == 8, "what the three bits of an allocation can say has a name");

struct source {
	const struct ttmon_trace_in *in;
	const struct ttmon_history *h;
	struct ttmon_tt_tables tt;
	char comm[TTMON_COMM_LEN + 1]; /* of the process requested last */
};

static void source_fini(struct source *s)
{
	ttmon_tt_tables_fini(&s->tt);
}

static void process(void *ctx, uint32_t idx, struct ttmon_traceev_proc *ret)
{
	struct source *s = ctx;
	const struct ttmon_proc *p = ttmon_history_proc(s->h, idx);

	memcpy(s->comm, p->comm, sizeof(s->comm));
	s->comm[TTMON_COMM_LEN] = '\0';
	*ret = (struct ttmon_traceev_proc){
		.tgid = p->tgid, .from_ns = p->first_ns, .comm = s->comm, .cmdline = p->cmdline
	};
}

static int source_init(struct source *s, const struct ttmon_trace_in *in)
{
	int err = ttmon_tt_tables_init(&s->tt, in->pipeline);

	if (err)
		return err;
	s->in = in;
	s->h = ttmon_pipeline_history(in->pipeline);
	return 0;
}

/* The function that allocated it: the innermost frame with a name. */
static const char *site_name(const struct ttmon_history *h, uint32_t site, uint64_t *delta)
{
	const struct ttmon_site *s = site ? ttmon_history_site(h, site) : NULL;

	for (uint32_t i = 0; s && i < s->nframes; i++) {
		const char *name = ttmon_history_symbol(h, &s->frames[i], delta);

		if (name)
			return name;
	}
	return NULL;
}

static void write_alloc(struct ttmon_traceev *t, const struct ttmon_history *h, const struct ttmon_alloc *a)
{
	struct ttmon_traceev_transfer x = { .proc = a->proc, .method = a->method, .addr = a->addr };
	struct ttmon_traceev_alloc out = {
		.proc = a->proc,
		.method = a->method,
		.device = a->device,
		.live = a->end == TTMON_END_LIVE,
		.addr = a->addr,
		.size = a->size,
		.alloc_ns = a->alloc_ns,
		.free_ns = a->free_ns,
		.pin_ns = a->pin_ns,
		.fn = a->fn ? ttmon_fn_name(a->fn) : NULL,
		.name = a->name,
		.end = end_names[a->end],
	};
	uint32_t pos = 0;

	for (unsigned int dir = 0; dir < TTMON_RDIR_MAX; dir++) {
		out.copies += a->traffic->copies[dir];
		out.bytes += a->traffic->bytes[dir];
	}
	out.site = site_name(h, a->site, &out.site_delta);
	ttmon_traceev_put_alloc(t, &out);
	while (ttmon_history_event(a, &pos, &x.ev))
		ttmon_traceev_put_transfer(t, &x);
}

static int write_timeline(struct ttmon_traceev *t, const struct ttmon_timeline *tl)
{
	size_t nr_calls = ttmon_timeline_calls(tl), nr_runs = ttmon_timeline_runs(tl);
	_cleanup_free_ const struct ttmon_timeline_call **calls = calloc(nr_calls + 1, sizeof(*calls));
	_cleanup_free_ const struct ttmon_tt_run **runs = calloc(nr_runs + 1, sizeof(*runs));

	if (!calls || !runs)
		return -ENOMEM;
	for (size_t i = 0; i < nr_calls; i++)
		calls[i] = ttmon_timeline_get_call(tl, i);
	ttmon_traceev_calls(t, calls, nr_calls);
	for (size_t i = 0; i < ttmon_timeline_dispatches(tl); i++)
		ttmon_traceev_dispatched(t, ttmon_timeline_get_dispatched(tl, i));
	for (size_t i = 0; i < nr_runs; i++)
		runs[i] = ttmon_timeline_get_run(tl, i);
	ttmon_traceev_runs(t, runs, nr_runs);
	return 0;
}

static void write_checkpoints(struct ttmon_traceev *t, const struct ttmon_history *h)
{
	const struct ttmon_period_end *c;
	size_t n = ttmon_history_checkpoints(h, &c);

	for (size_t i = 0; i < n; i++)
		ttmon_traceev_checkpoint(t, &c[i]);
}

/* A gap that began after the end, or was over before the beginning, does not matter. */
static uint64_t write_gaps(struct ttmon_traceev *t, const struct ttmon_know *k, const struct ttmon_traceev_head *head)
{
	const struct ttmon_gap *gaps;
	size_t n = ttmon_know_gaps(k, &gaps);
	uint64_t count = 0;

	for (size_t i = 0; i < n; i++) {
		ttmon_traceev_gap(t, &gaps[i]);
		count += gaps[i].to_ns > head->start_ns && gaps[i].from_ns < head->end_ns;
	}
	return count;
}

static void gather_missing(const struct source *s, struct ttmon_traceev_missing *m)
{
	struct ttmon_kernel_counts kernel;
	struct ttmon_history_totals tot;
	struct ttmon_accounting acc;

	ttmon_pipeline_kernel_counts(s->in->pipeline, &kernel);
	ttmon_pipeline_accounting(s->in->pipeline, &acc);
	ttmon_history_get_totals(s->h, &tot);
	for (size_t i = 0; i < TTMON_EV_FACT; i++)
		m->lost += kernel.lost[i];
	for (size_t i = 0; i < TTMON_DECODE_MAX; i++)
		m->malformed += acc.malformed[i];
	m->arena_full = acc.arena_full;
	m->events_dropped = tot.events_dropped;
	m->evicted = tot.evicted;
	m->folded = tot.folded;
	m->cut = s->in->cut;
	m->timeline_dropped = ttmon_timeline_dropped(s->tt.timeline);
	m->calls_dropped = ttmon_timeline_calls_dropped(s->tt.timeline);
}

static void fill_head(const struct ttmon_trace_in *in, const struct ttmon_ev_clock *c, struct ttmon_traceev_head *head)
{
	static const char *const modes[] = { "system", "pids", "command" };

	head->version = in->version ? in->version : TTMON_VERSION;
	head->source = in->source ? in->source : "capture";
	head->end_ns = in->end_ns;
	head->max_events = in->max_events;
	if (!c)
		return;
	head->hostname = c->hostname;
	head->release = c->release;
	head->mode = c->capture < ARRAY_SIZE(modes) ? modes[c->capture] : NULL;
	head->mono_ns = c->mono_ns;
	head->real_ns = c->real_ns;
	head->boot_ns = c->boot_ns;
	head->start_ns = c->mono_ns;
}

static int write_fd(int fd, bool gzip, void *ctx)
{
	_cleanup_(ttmon_traceev_freep) struct ttmon_traceev *t = NULL;
	_cleanup_(source_fini) struct source s = { 0 };
	struct ttmon_traceev_head head = { .proc = process, .ctx = &s };
	struct ttmon_traceev_missing missing = { 0 };
	int err = source_init(&s, ctx);

	if (err)
		return err;
	fill_head(s.in, ttmon_history_clock(s.h), &head);
	head.nr_procs = (uint32_t)ttmon_history_procs(s.h);
	err = ttmon_traceev_new(fd, gzip, &head, &t);
	if (err)
		return err;
	for (size_t i = 0; i < s.tt.view.nr_chips; i++)
		ttmon_traceev_chip(t, &s.tt.view.chips[i].fact);
	ttmon_traceev_programs(t, s.tt.programs, s.tt.nr_programs);
	/* Bounded lists first: a limit then cuts the long list of allocations. */
	err = write_timeline(t, s.tt.timeline);
	if (err)
		return err;
	write_checkpoints(t, s.h);
	for (uint64_t seq = ttmon_history_next(s.h, 0); seq < ttmon_history_allocs(s.h);
	     seq = ttmon_history_next(s.h, seq + 1))
		write_alloc(t, s.h, ttmon_history_alloc(s.h, seq));
	missing.gaps = write_gaps(t, ttmon_pipeline_know(s.in->pipeline), &head);
	gather_missing(&s, &missing);
	return ttmon_traceev_finish(t, &missing, s.tt.clocks, s.tt.nr_clocks);
}

int ttmon_trace_write(const char *path, const struct ttmon_trace_in *in, char *why, size_t n)
{
	struct ttmon_trace_in copy = *in;
	int err = ttmon_outfile_write(path, write_fd, &copy);

	if (err)
		snprintf(why, n, "cannot write the trace to %s: %s", ttmon_outfile_name(path), strerror(-err));
	return err;
}

int ttmon_trace_fd(int fd, const struct ttmon_trace_in *in)
{
	struct ttmon_trace_in copy = *in;

	return write_fd(fd, false, &copy);
}

int ttmon_trace_buffer(const struct ttmon_trace_in *in, char **ret, size_t *len)
{
	struct ttmon_trace_in copy = *in;
	_cleanup_close_ int fd = memfd_create("ttmon-trace", MFD_CLOEXEC);
	_cleanup_free_ char *buf = NULL;
	size_t done = 0, size;
	off_t end;
	int err;

	if (fd < 0)
		return -errno;
	if (!copy.max_events)
		copy.max_events = TTMON_TRACE_LIVE_EVENTS;
	err = write_fd(fd, false, &copy);
	if (err)
		return err;
	end = lseek(fd, 0, SEEK_END);
	if (end < 0)
		return -errno;
	size = (size_t)end;
	buf = malloc(size + 1);
	if (!buf)
		return -ENOMEM;
	while (done < size) {
		ssize_t n = pread(fd, buf + done, size - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : -EIO;
		done += (size_t)n;
	}
	buf[size] = '\0';
	*ret = TAKE_PTR(buf);
	*len = size;
	return 0;
}
