// SPDX-License-Identifier: GPL-2.0-only
/* trace.c: events and their accounting, slots, CPUs, rings, the recording, RMIDs. */
#include "daemon/core/stream/decode.h"

#include "lib/base/names.h"
#include "daemon/metrics/metrics_int.h"
#include "daemon/run/cpurun.h"

static void events(struct ttmon_metrics *m)
{
	const struct ttmon_accounting *a = &m->v.acc;
	struct ttmon_kernel_counts kernel;
	uint64_t malformed = 0;

	ttmon_daemon_kernel_counts(m->c, &kernel);
	for (unsigned int i = 1; i < TTMON_EV_FACT; i++)
		if (ttmon_event_name(i))
			TTMON_NUM(m, EVENTS, a->decoded[i], ttmon_event_name(i));
	TTMON_NUM(m, FACTS, a->facts);
	for (unsigned int i = 0; i < TTMON_LOSS_MAX; i++)
		TTMON_NUM(m, EVENTS_LOST, kernel.reason[i], ttmon_loss_name(i));
	for (unsigned int i = 0; i < TTMON_DECODE_MAX; i++)
		malformed += a->malformed[i];
	TTMON_NUM(m, EVENTS_MALFORMED, malformed);
	TTMON_NUM(m, EVENTS_LATE, a->late);
	TTMON_NUM(m, EVENTS_NO_ROOM, a->arena_full);
	TTMON_NUM(m, NESTED_CALLS, kernel.nested);
	TTMON_NUM(m, SLOTS_CLOSED, a->closed);
	TTMON_NUM(m, SLOTS_PUBLISHED, a->published - m->v.unpublished);
	TTMON_NUM(m, SLOTS_DROPPED, a->dropped);
	TTMON_NUM(m, SLOTS_FORCED, a->forced);
}

/* Figures of the hot thread, which a replay does not have. */
static void drains(struct ttmon_metrics *m)
{
	const struct ttmon_snapshot *s = &m->snap;

	TTMON_SECONDS(m, WATERMARK_LAG, ttmon_before(s->watermark_ns, s->now_ns) ? s->now_ns - s->watermark_ns : 0);
	TTMON_NUM(m, WATERMARK_STALLS, s->stalls);
	TTMON_SECONDS(m, LONGEST_GAP, s->longest_gap_ns);
	TTMON_SECONDS(m, LONGEST_CLOSE, s->oldest_lag_ns);
}

static void cpus(struct ttmon_metrics *m)
{
	const struct ttmon_cpu_totals *t = &m->v.cpu;

	if (!t->slots)
		return;
	TTMON_SECONDS(m, CPU_SECONDS, t->user_ns, "user");
	TTMON_SECONDS(m, CPU_SECONDS, t->kernel_ns, "kernel");
	TTMON_SECONDS(m, CPU_SECONDS, t->idle_ns, "idle");
	TTMON_SECONDS(m, CPU_SECONDS, t->missing_ns, "missing");
	TTMON_NUM(m, CPU_SLOTS, t->slots);
	TTMON_NUM(m, CPU_SLOTS_EXACT, t->exact);
	TTMON_SECONDS(m, CPU_WORST, t->worst_ns);
	TTMON_SECONDS(m, CPU_LATE, t->late_ns);
	TTMON_NUM(m, CPUS, t->cpus);
}

static void rings(struct ttmon_metrics *m)
{
	struct ttmon_bpf *b = ttmon_daemon_bpf(m->c);
	uint32_t n = ttmon_bpf_rings(b);
	uint64_t used = 0;

	for (uint32_t i = 0; i < n; i++)
		used += ttmon_ring_used(ttmon_bpf_ring(b, i));
	TTMON_NUM(m, RINGS, n);
	TTMON_NUM(m, RING_BYTES, n * ttmon_bpf_ring_bytes(b));
	TTMON_NUM(m, RING_USED, used);
}

static void recording(struct ttmon_metrics *m)
{
	struct ttmon_rec_stats st;

	ttmon_rec_writer_stats(ttmon_daemon_rec(m->c), &st);
	TTMON_NUM(m, RECORDS, st.records);
	TTMON_NUM(m, RECORDS_DROPPED, st.dropped);
	TTMON_NUM(m, RECORDING_BYTES, st.file_bytes);
}

static void rmids(struct ttmon_metrics *m)
{
	const struct ttmon_rmid_totals *t = &m->v.rmid;
	struct ttmon_rmids_info info;
	bool live = ttmon_cpurun_info(m->c, &info);

	if (t->backend == TTMON_RMID_OFF)
		return;
	TTMON_NUM(m, RMID_INFO, 1, ttmon_rmid_backend_name(t->backend));
	TTMON_NUM(m, RMIDS, t->max_rmid);
	TTMON_NUM(m, RMIDS_IN_USE, t->in_use);
	if (live)
		TTMON_NUM(m, RMIDS_EXHAUSTED, info.exhausted);
	if (t->has & (TTMON_RMID_HAS_OCCUPANCY | TTMON_RMID_HAS_TOTAL | TTMON_RMID_HAS_LOCAL)) {
		TTMON_NUM(m, RMID_READINGS, t->readings, "ok");
		if (live)
			TTMON_NUM(m, RMID_READINGS, info.failed_readings, "failed");
	}
	for (unsigned int i = 0; i < TTMON_RMID_ODD_MAX; i++)
		TTMON_NUM(m, RMID_ODD, t->odd[i], ttmon_rmid_odd_name(i));
	if (t->has & TTMON_RMID_HAS_TOTAL)
		TTMON_NUM(m, MBM, t->bytes[0], "total");
	if (t->has & TTMON_RMID_HAS_LOCAL)
		TTMON_NUM(m, MBM, t->bytes[1], "local");
}

static void known(struct ttmon_metrics *m)
{
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++) {
		uint64_t ns = m->v.seen.of[i].since_ns;

		if (ns && ns != UINT64_MAX)
			TTMON_SECONDS(m, KNOWN, ns + (uint64_t)m->v.real_offset_ns, ttmon_family_name(i));
	}
}

void ttmon_metrics_trace(struct ttmon_metrics *m)
{
	events(m);
	if (ttmon_daemon_hot(m->c))
		drains(m);
	cpus(m);
	if (ttmon_daemon_bpf(m->c))
		rings(m);
	if (ttmon_daemon_rec(m->c))
		recording(m);
	rmids(m);
	known(m);
}
