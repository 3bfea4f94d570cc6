// SPDX-License-Identifier: GPL-2.0-only
/* memory.c: allocations, pinned memory, calls and transfers of the whole host. */
#include "daemon/core/stream/decode.h"
#include "daemon/api/api.h"
#include "daemon/api/follow.h"
#include "daemon/metrics/metrics_int.h"
#include "daemon/run/quotas.h"
#include "daemon/run/kpins.h"
#include "daemon/run/memtrace.h"

/* Mappings are not allocations through an API, so they have no vendor. */
const char *ttmon_metrics_vendor(unsigned int method)
{
	switch (method) {
	case TTMON_METHOD_HOST_ALLOC:
	case TTMON_METHOD_REGISTERED:
	case TTMON_METHOD_MANAGED:
	case TTMON_METHOD_POOL:
	case TTMON_METHOD_PIECE:
	case TTMON_METHOD_DEVICE:
		return "nvidia";
	case TTMON_METHOD_TT_DRAM:
	case TTMON_METHOD_TT_L1:
	case TTMON_METHOD_TT_L1_SMALL:
	case TTMON_METHOD_TT_TRACE:
	case TTMON_METHOD_TT_CB:
	case TTMON_METHOD_TT_DMA:
		return "tenstorrent";
	case TTMON_METHOD_CUSTOM:
		return "host";
	default:
		return NULL;
	}
}

const char *ttmon_metrics_method(unsigned int method)
{
	static const char *const names[TTMON_METHOD_MAX] = {
#define X(id, NAME, name) [id] = name,
		TTMON_METHOD_TABLE(X)
#undef X
	};

	return names[method];
}

const char *ttmon_metrics_mem(unsigned int rdir, unsigned int mem)
{
	return rdir == TTMON_RDIR_D2D ? "none" : ttmon_mem_name(mem);
}

/* Methods that do not occur on this host are not shown. */
static bool is_shown(const struct ttmon_metrics *m, unsigned int method)
{
	const char *vendor = ttmon_metrics_vendor(method);

	return vendor && (m->v.has_tt || strcmp(vendor, "tenstorrent") || m->v.totals.method[method].allocs);
}

static void by_method(struct ttmon_metrics *m)
{
	static const struct {
		enum ttmon_metric id;
		size_t offset; /* in struct ttmon_method_totals */
		bool pinned;   /* only methods that pin */
	} rows[] = {
		{ TTMON_METRIC_ALLOCATIONS, offsetof(struct ttmon_method_totals, allocs), false },
		{ TTMON_METRIC_ALLOCATED_BYTES, offsetof(struct ttmon_method_totals, bytes), false },
		{ TTMON_METRIC_FREES, offsetof(struct ttmon_method_totals, ends), false },
		{ TTMON_METRIC_LIVE_ALLOCATIONS, offsetof(struct ttmon_method_totals, live), false },
		{ TTMON_METRIC_LIVE_BYTES, offsetof(struct ttmon_method_totals, live_bytes), false },
		{ TTMON_METRIC_PINNED_BYTES, offsetof(struct ttmon_method_totals, live_bytes), true },
		{ TTMON_METRIC_PINNED_PAGES, offsetof(struct ttmon_method_totals, live_pages), true },
		{ TTMON_METRIC_PAGES_PINNED, offsetof(struct ttmon_method_totals, pages), true },
		{ TTMON_METRIC_PINNED_PEAK_BYTES, offsetof(struct ttmon_method_totals, peak_bytes), true },
		{ TTMON_METRIC_PINNED_PEAK_PAGES, offsetof(struct ttmon_method_totals, peak_pages), true },
	};

	for (size_t r = 0; r < ARRAY_SIZE(rows); r++) {
		for (unsigned int i = 0; i < TTMON_METHOD_MAX; i++) {
			const char *figures = (const char *)&m->v.totals.method[i];

			if (is_shown(m, i) && (!rows[r].pinned || ttmon_method_pins(i)))
				ttmon_metrics_num(m, rows[r].id, *(const uint64_t *)(figures + rows[r].offset),
						  TTMON_VALUES(ttmon_metrics_vendor(i), ttmon_metrics_method(i)));
		}
	}
}

static void durations(struct ttmon_metrics *m, enum ttmon_metric id, const struct ttmon_pin_times *times)
{
	for (unsigned int i = 0; i < TTMON_METHOD_MAX; i++) {
		struct ttmon_prom_histogram h = { ttmon_pin_bounds_ns, times[i].count, TTMON_PIN_BUCKETS,
						  times[i].sum_ns };

		if (is_shown(m, i) && ttmon_method_pins(i))
			ttmon_metrics_histogram(m, id, &h,
						TTMON_VALUES(ttmon_metrics_vendor(i), ttmon_metrics_method(i)));
	}
}

static void kernel_pins(struct ttmon_metrics *m)
{
	struct ttmon_kpins_sample s;

	if (!ttmon_kpins_get(m->c, &s))
		return;
	if (s.counted) {
		TTMON_NUM(m, KERNEL_PAGES_PINNED, s.host.acquired);
		TTMON_NUM(m, KERNEL_PAGES_UNPINNED, s.host.released);
	}
	TTMON_NUM(m, PINNERS_VM_PIN, s.proc.vm_pin);
	TTMON_NUM(m, PINNERS_SHMEM, s.proc.rss_shmem);
}

static void memory_accesses(struct ttmon_metrics *m)
{
	struct ttmon_mtrun_stats s;

	if (!ttmon_mtrun_get(m->c, &s))
		return;
	TTMON_NUM(m, MEMTRACE_CHANNELS, s.channels);
	TTMON_NUM(m, MEMTRACE_RECORDS, s.records);
	TTMON_NUM(m, MEMTRACE_DROPPED, s.dropped);
}

/* Metric by metric, as the format has them. */
static void sync_calls(struct ttmon_metrics *m)
{
	const struct ttmon_wait_sums *s = m->v.waits;

	for (unsigned int k = 0; k < TTMON_WAIT_MAX; k++)
		TTMON_NUM(m, WAIT_CALLS, s[k].calls, ttmon_wait_name(k));
	for (unsigned int k = 0; k < TTMON_WAIT_MAX; k++)
		for (unsigned int part = 0; part < TTMON_WAIT_PARTS; part++)
			TTMON_SECONDS(m, WAIT_SECONDS, ttmon_wait_part_ns(&s[k], part), ttmon_wait_name(k),
				      ttmon_wait_part_name(part));
	for (unsigned int k = 0; k < TTMON_WAIT_MAX; k++)
		TTMON_NUM(m, WAIT_UNKNOWN, s[k].unknown + s[k].unobserved, ttmon_wait_name(k));
}

static void nvidia_driver(struct ttmon_metrics *m)
{
	static const struct {
		enum ttmon_metric id;
		size_t offset;	  /* in struct ttmon_nvpin_sums */
		const char *unit; /* only functions with that unit; NULL: all */
	} rows[] = {
		{ TTMON_METRIC_NVIDIA_CALLS, offsetof(struct ttmon_nvpin_sums, calls), NULL },
		{ TTMON_METRIC_NVIDIA_RETURNS, offsetof(struct ttmon_nvpin_sums, returned), NULL },
		{ TTMON_METRIC_NVIDIA_FAILURES, offsetof(struct ttmon_nvpin_sums, failed), NULL },
		{ TTMON_METRIC_NVIDIA_PAGES, offsetof(struct ttmon_nvpin_sums, amount), "pages" },
		{ TTMON_METRIC_NVIDIA_BYTES, offsetof(struct ttmon_nvpin_sums, amount), "bytes" },
	};
	struct ttmon_nvpin_info v[TTMON_NVPIN_MAX];

	for (unsigned int fn = 0; fn < ARRAY_SIZE(v); fn++)
		if (!ttmon_daemon_bpf(m->c) || !ttmon_bpf_nvpin_get(ttmon_daemon_bpf(m->c), fn, &v[fn]))
			return;
	for (size_t r = 0; r < ARRAY_SIZE(rows); r++) {
		for (unsigned int fn = 0; fn < ARRAY_SIZE(v); fn++) {
			const char *figures = (const char *)&v[fn].sums;

			/* A function that was never probed has no figure, rather than 0. */
			if ((v[fn].probed || v[fn].sums.calls) && (!rows[r].unit || !strcmp(rows[r].unit, v[fn].unit)))
				ttmon_metrics_num(m, rows[r].id, *(const uint64_t *)(figures + rows[r].offset),
						  TTMON_VALUES(v[fn].function));
		}
	}
}

static void pins(struct ttmon_metrics *m)
{
	const struct ttmon_history_totals *t = &m->v.totals;

	TTMON_NUM(m, HOST_PINNED_BYTES, t->pinned_bytes);
	TTMON_NUM(m, HOST_PINNED_PEAK_BYTES, t->pinned_peak_bytes);
	TTMON_NUM(m, HOST_PINNED_PAGES, t->pinned_pages);
	TTMON_NUM(m, HOST_PINNED_PEAK_PAGES, t->pinned_peak_pages);
	kernel_pins(m);
	nvidia_driver(m);
	memory_accesses(m);
	durations(m, TTMON_METRIC_PIN_SECONDS, m->v.pin);
	durations(m, TTMON_METRIC_UNPIN_SECONDS, m->v.unpin);
	for (unsigned int i = 0; i < TTMON_METHOD_MAX; i++) {
		const char *vendor = ttmon_metrics_vendor(i), *method = ttmon_metrics_method(i);

		if (!is_shown(m, i) || !ttmon_method_pins(i))
			continue;
		TTMON_NUM(m, PIN_UNOBSERVED, m->v.pin[i].unobserved, vendor, method, "pin");
		TTMON_NUM(m, PIN_UNOBSERVED, m->v.unpin[i].unobserved, vendor, method, "unpin");
	}
	sync_calls(m);
}

/* The families by which io/probes chooses the programs. */
static uint32_t class_need(unsigned int cls)
{
	if (cls >= TTMON_CLS_LAUNCH)
		return TTMON_NEED_LAUNCH;
	if (cls == TTMON_CLS_SYNC)
		return TTMON_NEED_WAIT;
	return cls >= TTMON_CLS_COPY && cls <= TTMON_CLS_HINT ? TTMON_NEED_TRANSFER : TTMON_NEED_ALLOC;
}

uint32_t ttmon_metrics_function_need(const char *function)
{
	static const struct {
		const char *name;
		unsigned int cls;
	} fns[] = {
#define F(id, sym, lib, ver, cls, ...) { #sym, TTMON_CLS_##cls },
		TTMON_FN_TABLE(F)
#undef F
	};

	for (size_t i = 0; i < ARRAY_SIZE(fns); i++)
		if (!strcmp(fns[i].name, function))
			return class_need(fns[i].cls);
	return TTMON_NEED_CALLS;
}

/* Several functions of the table share a name, and so may several numbers: a name has one series. */
static int by_text(const void *a, const void *b)
{
	const struct ttmon_failure *x = a, *y = b;
	const char *fn[2] = { ttmon_fn_name(x->fn), ttmon_fn_name(y->fn) };
	int cmp = strcmp(fn[0] ? fn[0] : "", fn[1] ? fn[1] : "");

	return cmp ? cmp : (x->err > y->err) - (x->err < y->err);
}

static void failures(struct ttmon_metrics *m)
{
	struct ttmon_failure *f = m->v.failures;
	size_t n = m->v.nr_failures;

	qsort(f, n, sizeof(*f), by_text);
	for (size_t i = 0, k; i < n; i = k) {
		const char *fn = f[i].fn ? ttmon_fn_name(f[i].fn) : "other";
		const char *err = f[i].fn ? ttmon_error_name(f[i].fn, f[i].err) : "other";
		uint64_t count = f[i].count;
		char number[16];

		for (k = i + 1; k < n && !by_text(&f[i], &f[k]); k++)
			count += f[k].count;
		snprintf(number, sizeof(number), "%d", f[i].err);
		TTMON_NUM(m, CALL_FAILURES, count, fn ? fn : "unknown", err ? err : number);
	}
}

static void transfers(struct ttmon_metrics *m, enum ttmon_metric id)
{
	const struct ttmon_history_totals *t = &m->v.totals;

	for (unsigned int d = 0; d < TTMON_RDIR_MAX; d++) {
		/* For these directions the kind of memory at the ends is not distinguished. */
		unsigned int first = d == TTMON_RDIR_D2D || d == TTMON_RDIR_UNKNOWN ? TTMON_MEM_UNKNOWN : 0;

		for (unsigned int k = first; k < TTMON_MEM_MAX; k++) {
			struct ttmon_xfer x = ttmon_xfer_settled(t->xfer, t->unsettled, t->proven, d, k);

			ttmon_metrics_num(m, id, id == TTMON_METRIC_TRANSFERS ? x.copies : x.bytes,
					  TTMON_VALUES("nvidia", ttmon_rdir_name(d), ttmon_metrics_mem(d, k)));
		}
	}
}

static void live_advice(struct ttmon_metrics *m)
{
	const struct ttmon_live_totals *t = &m->v.live;
	struct ttmon_follow_stats s;

	if (ttmon_daemon_opts(m->c)->trace_only)
		return;
	ttmon_follow_get_stats(ttmon_daemon_part(m->c, &ttmon_part_live), &s);
	for (unsigned int i = TTMON_SAID_PIN; i < ARRAY_SIZE(t->said); i++)
		TTMON_NUM(m, LIVE_ADVICE, t->said[i], ttmon_live_name(i));
	TTMON_NUM(m, LIVE_UNHEARD, t->unheard);
	TTMON_NUM(m, LIVE_FOLLOWED, t->followed);
	TTMON_NUM(m, LIVE_FOLLOWERS, s.followers);
	TTMON_NUM(m, LIVE_MISSED, s.missed);
}

static void quotas(struct ttmon_metrics *m)
{
	struct ttmon_quota_row rows[TTMON_QUOTA_ROWS];
	uint32_t n = ttmon_quotas_get(m->c, rows);
	char uid[16];

	for (uint32_t i = 0; i < n; i++) {
		snprintf(uid, sizeof(uid), "%u", rows[i].uid);
		TTMON_NUM(m, QUOTA_PAID, rows[i].paid, ttmon_quota_name(rows[i].what),
			  rows[i].uid == UINT32_MAX ? "unknown" : uid);
	}
}

void ttmon_metrics_memory(struct ttmon_metrics *m)
{
	const struct ttmon_history_totals *t = &m->v.totals;

	by_method(m);
	pins(m);
	failures(m);
	transfers(m, TTMON_METRIC_TRANSFERS);
	transfers(m, TTMON_METRIC_TRANSFER_BYTES);
	TTMON_NUM(m, LAUNCHES, t->kernels, "nvidia", "kernel");
	TTMON_NUM(m, LAUNCHES, t->graphs, "nvidia", "graph");
	TTMON_NUM(m, GRAPH_COPIES, t->graph_copies, "nvidia");
	TTMON_NUM(m, CAPTURED_COPIES, t->captured, "nvidia");
	TTMON_NUM(m, UNMATCHED_FREES, t->unknown_frees);
	TTMON_NUM(m, UNMATCHED_TRANSFERS, ttmon_unmatched_settled(t->unmatched, t->unsettled));
	m->superseded = MAX(m->superseded, t->superseded);
	TTMON_NUM(m, SUPERSEDED, m->superseded);
	for (unsigned int i = 0; i < TTMON_FINDING_MAX; i++)
		TTMON_NUM(m, FINDINGS, t->findings[i], ttmon_finding_name(i));
	TTMON_NUM(m, TRACKED_ALLOCATIONS, t->live);
	TTMON_NUM(m, TRACED_PROCESSES, m->v.processes);
	TTMON_NUM(m, HISTORY_EVENTS, t->events_kept);
	TTMON_NUM(m, HISTORY_DROPPED, t->events_dropped);
	TTMON_NUM(m, HISTORY_TRIMMED, t->events_trimmed);
	TTMON_NUM(m, HISTORY_EVICTED, t->evicted);
	TTMON_NUM(m, HISTORY_CONDENSED, t->condensed_ever);
	TTMON_NUM(m, HISTORY_FORGOTTEN, t->forgotten);
	quotas(m);
	TTMON_NUM(m, CHECKPOINTS, t->checkpoints);
	TTMON_NUM(m, CHECKPOINTS_DROPPED, t->checkpoints_dropped);
	TTMON_NUM(m, HISTORY_INCOMPLETE, t->incomplete || t->evicted || t->limited || t->reduced);
	live_advice(m);
}
