// SPDX-License-Identifier: GPL-2.0-only
/* kpins.c: see kpins.h. Cold thread; the hot thread lists the processes that pin. */
#include "daemon/run/kpins.h"

#include "lib/os/clock.h"
#include "lib/base/fmt.h"

#define PROCS_MAX     64
#define REFRESH_TICKS 50 /* NVIDIA's module is searched again */
#define EVERY_NS      NSEC_PER_SEC
#define STALE_NS      (200 * NSEC_PER_MS)

struct ttmon_kpins {
	struct ttmon_daemon *c;
	uint64_t sampled_ns, peak_bytes; /* peak_bytes: the most pinned memory at any sample */
	struct ttmon_kpins_sample last;
	struct ttmon_kpins_sample top; /* the sample with most pinned memory */
	struct ttmon_vmpins_host first;
	bool first_known;
	unsigned int samples;
};

static int start(struct ttmon_daemon *c, void **state)
{
	struct ttmon_kpins *k = calloc(1, sizeof(*k));

	if (!k)
		return log_error_r(-ENOMEM, "out of memory");
	k->c = c;
	k->first_known = !ttmon_vmpins_read_host("/proc", &k->first);
	k->last.counted = k->first_known;
	k->last.host = k->first;
	*state = k;
	return 0;
}

/* ---- processes that pin ---- */

struct pinner {
	uint32_t pid;
	uint64_t pinned;
	struct ttmon_vmpins_told told;
};

struct pinners {
	size_t n;
	uint32_t more;
	struct pinner v[PROCS_MAX]; /* largest first */
};

static void insert(struct pinners *list, const struct ttmon_proc *p)
{
	const struct ttmon_proc_method *m = p->by_method;
	const struct pinner x = {
		.pid = p->tgid,
		.pinned = p->pinned_bytes,
		.told = { .allocated = m[TTMON_METHOD_HOST_ALLOC].live_bytes + m[TTMON_METHOD_POOL].live_bytes,
			  .registered = m[TTMON_METHOD_REGISTERED].live_bytes },
	};
	size_t at;

	if (list->n == PROCS_MAX) {
		list->more++;
		if (list->v[PROCS_MAX - 1].pinned >= x.pinned)
			return;
	} else {
		list->n++;
	}
	for (at = list->n - 1; at && list->v[at - 1].pinned < x.pinned; at--)
		list->v[at] = list->v[at - 1];
	list->v[at] = x;
}

/* Runs in the hot thread between two drains. */
static int find_pinners(void *ctx, struct ttmon_pipeline *pipeline, uint64_t now_ns)
{
	const struct ttmon_history *h = ttmon_pipeline_history(pipeline);
	struct pinners *list = ctx;

	(void)now_ns;
	for (size_t i = 0; i < ttmon_history_procs(h); i++) {
		const struct ttmon_proc *p = ttmon_history_proc(h, i);

		if (p && p->pinned_bytes && !p->exit_ns)
			insert(list, p);
	}
	return 0;
}

/* ---- sampling ---- */

static uint64_t told_bytes(const struct ttmon_kpins_sample *s)
{
	return s->told.allocated + s->told.registered;
}

static void sample(struct ttmon_kpins *k, uint64_t now_ns)
{
	struct ttmon_kpins_sample s = { .counted = false };
	struct pinners list = { .n = 0 };

	k->sampled_ns = now_ns;
	if (ttmon_daemon_call(k->c, find_pinners, &list))
		return;
	s.unread = list.more;
	s.counted = !ttmon_vmpins_read_host("/proc", &s.host);
	for (size_t i = 0; i < list.n; i++) {
		struct ttmon_vmpins_proc p;

		if (ttmon_vmpins_read_proc("/proc", list.v[i].pid, &p)) {
			s.unread++;
			continue;
		}
		s.procs++;
		s.proc.vm_pin += p.vm_pin;
		s.proc.rss_shmem += p.rss_shmem;
		s.told.allocated += list.v[i].told.allocated;
		s.told.registered += list.v[i].told.registered;
	}
	s.verdict = ttmon_vmpins_judge(&s.told, s.counted ? &s.host : NULL, &s.proc, (uint64_t)sysconf(_SC_PAGESIZE));
	k->last = s;
	k->samples++;
	/* Of equal samples the last: memory is pinned first and touched then. */
	if (told_bytes(&s) >= told_bytes(&k->top))
		k->top = s;
}

static void tick(void *state)
{
	struct ttmon_kpins *k = state;
	uint64_t now_ns = ttmon_mono_ns();
	struct ttmon_snapshot s;

	if (!(ttmon_daemon_ticks(k->c) % REFRESH_TICKS))
		ttmon_bpf_nvpin_refresh(ttmon_daemon_bpf(k->c));
	ttmon_daemon_snapshot(k->c, &s);
	/* One more sample after the last memory was released. */
	if (!s.totals.pinned_bytes && !told_bytes(&k->last))
		return;
	if (now_ns - k->sampled_ns < EVERY_NS && s.totals.pinned_bytes <= k->peak_bytes)
		return;
	k->peak_bytes = MAX(k->peak_bytes, s.totals.pinned_bytes);
	sample(k, now_ns);
}

bool ttmon_kpins_get(const struct ttmon_daemon *c, struct ttmon_kpins_sample *ret)
{
	struct ttmon_kpins *k = ttmon_daemon_part(c, &ttmon_part_kpins);
	uint64_t now_ns = ttmon_mono_ns();

	if (!k)
		return false;
	if (now_ns - k->sampled_ns >= STALE_NS)
		sample(k, now_ns);
	*ret = k->last;
	return true;
}

/* ---- reports ---- */

static uint64_t held(const struct ttmon_vmpins_host *h)
{
	return h->acquired > h->released ? h->acquired - h->released : 0;
}

#define INT(v) ((json_int_t)MIN((uint64_t)(v), (uint64_t)INT64_MAX))

/* Calls of functions of NVIDIA's module; null if --nvidia-pins was not given. */
static json_t *nvidia(const struct ttmon_bpf *b)
{
	json_t *functions = json_array();
	struct ttmon_nvpin_info v;

	for (unsigned int fn = 0; fn < TTMON_NVPIN_MAX; fn++) {
		json_t *row;

		if (!ttmon_bpf_nvpin_get(b, fn, &v)) {
			json_decref(functions);
			return json_null();
		}
		row = json_pack("{s:s, s:b, s:s, s:I, s:I, s:I}", "function", v.function, "probed", v.probed, "reason",
				v.reason, "calls", INT(v.sums.calls), "returned", INT(v.sums.returned), "failed",
				INT(v.sums.failed));
		if (*v.unit)
			json_object_set_new(row, v.unit, json_integer(INT(v.sums.amount)));
		json_array_append_new(functions, row);
	}
	return json_pack("{s:o}", "functions", functions);
}

json_t *ttmon_kpins_status(const struct ttmon_daemon *c)
{
	const struct ttmon_kpins *k = ttmon_daemon_part(c, &ttmon_part_kpins);
	struct ttmon_kpins_sample s;
	json_t *foll_pin;

	if (!ttmon_kpins_get(c, &s))
		return json_null();
	foll_pin = s.counted ? json_pack("{s:I, s:I, s:I, s:I}", "acquired", INT(s.host.acquired), "released",
					 INT(s.host.released), "held", INT(held(&s.host)), "acquired_since_start",
					 INT(s.host.acquired - (k->first_known ? k->first.acquired : 0)))
			     : json_null();
	return json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:o}", "foll_pin_pages", foll_pin, "processes",
			 INT(s.procs), "unread", INT(s.unread), "vm_pin_bytes", INT(s.proc.vm_pin), "rss_shmem_bytes",
			 INT(s.proc.rss_shmem), "allocated_bytes", INT(s.told.allocated), "registered_bytes",
			 INT(s.told.registered), "verdict", ttmon_vmpins_verdict_name(s.verdict), "note",
			 ttmon_vmpins_verdict_text(s.verdict), "nvidia", nvidia(ttmon_daemon_bpf(c)));
}

/* A line after the summary; nothing if nothing was pinned. */
static void summary(void *state, FILE *f)
{
	const struct ttmon_kpins *k = state;
	char told[TTMON_FMT_LEN], pages[TTMON_FMT_LEN], pin[TTMON_FMT_LEN], shmem[TTMON_FMT_LEN];
	const struct ttmon_kpins_sample *s;

	if (!told_bytes(&k->top))
		return;
	s = &k->top;
	fprintf(f,
		"kernel's view when %s of it were pinned: "
		"nr_foll_pin %s pages (whole host), VmPin %s, RssShmem %s: %s\n",
		ttmon_fmt_bytes(told, sizeof(told), told_bytes(s)),
		s->counted ? ttmon_fmt_count(pages, sizeof(pages), held(&s->host)) : "unknown",
		ttmon_fmt_bytes(pin, sizeof(pin), s->proc.vm_pin),
		ttmon_fmt_bytes(shmem, sizeof(shmem), s->proc.rss_shmem), ttmon_vmpins_verdict_text(s->verdict));
}

const struct ttmon_part ttmon_part_kpins = {
	.name = "kernel's pins",
	.in = TTMON_IN_LIVE,
	.start = start,
	.tick = tick,
	.summary = summary,
	.free = free,
};
