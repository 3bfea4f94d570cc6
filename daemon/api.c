// SPDX-License-Identifier: GPL-2.0-only
/* api.c: what the local socket serves. Runs in the cold thread; sees the hot thread's figures through its snapshot alone. */
#include <jansson.h>

#include "capture.h"
#include "util/clock.h"
#include "version.h"

/* json_pack's "I" wants json_int_t. */
#define INT(x) ((json_int_t)(x))

void ttmon_api_send(struct ttmon_http_reply *reply, json_t *doc)
{
	if (!doc || json_dumpf(doc, reply->body, JSON_COMPACT | JSON_PRESERVE_ORDER))
		ttmon_http_error(reply, 500, "out of memory");
	else
		fputc('\n', reply->body);
	json_decref(doc);
}

static const char *mode_name(enum ttmon_capture mode)
{
	static const char *const names[] = { "system", "pids", "command" };

	return names[mode];
}

static int take_counts(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	(void)now_ns;
	ttmon_pipeline_kernel_counts(p, ctx);
	return 0;
}

void ttmon_run_kernel_counts(const struct ttmon_run *c, struct ttmon_kernel_counts *ret)
{
	*ret = (struct ttmon_kernel_counts){ .known = c->bpf != NULL };
	if (!c->bpf) {
		ttmon_run_call(c, take_counts, ret);
		return;
	}
	for (uint32_t cpu = 0; cpu < ttmon_bpf_cpus(c->bpf); cpu++) {
		const struct ttmon_cpu_stat *st = ttmon_bpf_stat(c->bpf, cpu);

		for (unsigned int i = 0; i < TTMON_EV_FACT; i++) {
			ret->attempted[i] += st->attempted[i];
			ret->lost[i] += st->lost[i];
		}
		for (unsigned int i = 0; i < TTMON_LOSS_MAX; i++)
			ret->reason[i] += st->reason[i];
		ret->nested += st->nested;
	}
}

static uint64_t ring_bytes_used(const struct ttmon_run *c)
{
	uint64_t used = 0;

	for (uint32_t i = 0; c->bpf && i < ttmon_bpf_rings(c->bpf); i++)
		used += ttmon_ring_used(ttmon_bpf_ring(c->bpf, i));
	return used;
}

/*
 * While events flow the identity can only be bounded: attempted - lost - decoded - malformed are in the rings now. They were counted
 * before (decoded) and after (attempted), so the difference is never negative, and at rest it is 0. A recording tells the kernel's counts
 * at its end.
 */
static json_t *identity(const struct ttmon_run *c, const struct ttmon_snapshot *s)
{
	uint64_t decoded = 0, malformed = 0, attempted = 0, lost = 0;
	const struct ttmon_accounting *a = &s->acc;
	struct ttmon_kernel_counts k;
	const char *why = "";
	int64_t flight = 0;

	for (unsigned int i = 0; i < TTMON_EV_FACT; i++)
		decoded += a->decoded[i];
	for (unsigned int i = 0; i < TTMON_DECODE_MAX; i++)
		malformed += a->malformed[i];
	ttmon_run_kernel_counts(c, &k);
	for (unsigned int i = 0; i < TTMON_EV_FACT; i++) {
		attempted += k.attempted[i];
		lost += k.lost[i];
	}
	if (k.known)
		flight = (int64_t)(attempted - lost - decoded - malformed);
	if (flight < 0)
		why = "more events came out of the rings than went in";
	else if (a->slotted + a->late + a->arena_full + a->direct > decoded)
		why = "more events in slots than were decoded";
	else if (a->closed != a->published + a->dropped)
		why = "closed slots are neither published nor dropped";
	return json_pack("{s:b, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "ok", !*why, "why", why, "attempted",
			 INT(attempted), "lost", INT(lost), "decoded", INT(decoded), "malformed", INT(malformed),
			 "in_flight", INT(flight), "ring_bytes_used", INT(ring_bytes_used(c)));
}

static json_t *losses(const struct ttmon_run *c)
{
	struct ttmon_kernel_counts k;
	json_t *o = json_object();

	ttmon_run_kernel_counts(c, &k);
	for (unsigned int i = 0; i < TTMON_LOSS_MAX; i++)
		json_object_set_new(o, ttmon_loss_name(i), json_integer(INT(k.reason[i])));
	return o;
}

static json_t *text(const char *s)
{
	json_t *j = json_string(s);

	/* A path need not be UTF-8. */
	return j ? j : json_string("?");
}

/* Over TCP sums alone: no path. */
static json_t *recording(const struct ttmon_run *c, bool local)
{
	struct ttmon_rec_stats st;

	if (!c->rec)
		return json_null();
	ttmon_rec_writer_stats(c->rec, &st);
	return json_pack("{s:o, s:I, s:I, s:I, s:I}", "path", local ? text(c->opts->record) : json_null(), "records",
			 INT(st.records), "dropped", INT(st.dropped), "raw_bytes", INT(st.raw_bytes), "file_bytes",
			 INT(st.file_bytes));
}

static const char *uprobes(const struct ttmon_run *c)
{
	return !c->bpf ? "none" : ttmon_bpf_legacy(c->bpf) ? "tracefs" : "multi";
}

static void status(void *ctx, struct ttmon_http_reply *reply)
{
	const struct ttmon_run *c = ctx;
	struct ttmon_snapshot s;
	uint64_t decoded = 0;
	uint64_t now = ttmon_mono_ns();

	ttmon_run_snapshot(c, &s);
	for (unsigned int i = 0; i < TTMON_EV_FACT; i++)
		decoded += s.acc.decoded[i];
	ttmon_api_send(
		reply,
		json_pack(
			"{s:s, s:I, s:s, s:s, s:{s:I, s:I, s:I, s:I, s:o}, s:o, s:{s:I, s:I, s:I, s:I}, s:{s:I, s:I, s:I, s:I}, s:{s:I, s:I, s:I, s:I, s:I}, s:I, s:I, s:{s:I, s:I}, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			"version", TTMON_VERSION, "uptime_ns", INT(now - c->start_ns), "mode",
			c->replay ? "replay" : mode_name(c->mode), "uprobes", uprobes(c), "events", "decoded",
			INT(decoded), "facts", INT(s.acc.facts), "late", INT(s.acc.late), "arena_full",
			INT(s.acc.arena_full), "lost", losses(c), "identity", identity(c, &s), "window", "slots",
			INT(c->opts->window ? c->opts->window : TTMON_SLOTS_WINDOW), "watermark_lag_ns",
			INT(s.now_ns - s.watermark_ns), "stalls", INT(s.stalls), "longest_gap_ns",
			INT(s.longest_gap_ns), "slots", "closed", INT(s.acc.closed), "published", INT(s.acc.published),
			"dropped", INT(s.acc.dropped), "forced", INT(s.acc.forced), "pinned", "now_pages",
			INT(s.totals.pinned_pages), "peak_pages", INT(s.totals.pinned_peak_pages), "now_bytes",
			INT(s.totals.pinned_bytes), "peak_bytes", INT(s.totals.pinned_peak_bytes), "pins",
			INT(s.totals.pins), "processes", INT(s.procs), "allocations", INT(s.totals.live), "rings",
			"bytes", INT(c->bpf ? ttmon_bpf_ring_bytes(c->bpf) : 0), "cpus",
			INT(c->bpf ? ttmon_bpf_rings(c->bpf) : 0), "recording", recording(c, reply->local),
			"tenstorrent", ttmon_api_tt_status(c), "cpu", ttmon_api_cpu_status(c, &s), "rmid",
			ttmon_api_rmid_status(c, &s), "reduced", ttmon_api_reduced(c), "budget", ttmon_api_budget(c),
			"kernel_pins", ttmon_kpins_status(c->kpins), "memtrace",
			ttmon_mtrun_status(c->mt, s.totals.gpu_use_gone)));
}

static json_t *hex(const uint8_t *p, size_t n)
{
	char buf[2 * TTMON_BUILD_ID + 1] = "";

	for (size_t i = 0; i < n; i++)
		snprintf(buf + 2 * i, 3, "%02x", p[i]);
	return json_string(buf);
}

struct listing {
	const struct ttmon_bpf *bpf;
	json_t *objects;
};

static void add_object(void *ctx, const struct ttmon_object_state *o)
{
	const struct listing *l = ctx;
	json_t *probes = json_array();

	for (size_t i = 0; o->probes && i < o->probes->n; i++) {
		const struct ttmon_probe *p = &o->probes->probes[i];
		struct ttmon_prog_info info = { .name = "" };
		const char *fn = ttmon_fn_name(p->fn);

		/* A USDT point whose operands could not be read has no program. */
		if (p->prog < TTMON_PROG_UPROBES)
			ttmon_bpf_prog_info(l->bpf, p->prog, &info);
		json_array_append_new(probes, json_pack("{s:o, s:s, s:s, s:s, s:s, s:b}", "symbol", text(p->symbol),
							"fn", fn ? fn : "", "program", info.name, "state",
							ttmon_probe_state_name(p->state), "reason",
							p->err ? ttmon_probe_reason(p->err) : "", "single_step",
							p->single_step));
	}
	json_array_append_new(
		l->objects,
		json_pack("{s:o, s:I, s:I, s:o, s:b, s:b, s:b, s:b, s:i, s:I, s:I, s:b, s:s, s:o}", "path",
			  text(o->path), "dev", INT(o->dev), "ino", INT(o->ino), "build_id",
			  hex(o->build_id, o->build_id_len), "runtime", !!(o->kind & TTMON_OBJ_IS_RT), "driver",
			  !!(o->kind & TTMON_OBJ_IS_DRV), "static", !!(o->kind & TTMON_OBJ_STATIC_RT), "stripped",
			  !!(o->kind & TTMON_OBJ_STRIPPED_RT), "runtime_major", (int)o->rt_major, "missing",
			  INT(o->missing), "blind_us",
			  INT(o->mapped_ns && !o->held ? (o->active_ns - o->mapped_ns) / 1000 : 0), "held", o->held,
			  "error", o->err ? ttmon_probe_reason(o->err) : "", "probes", probes));
}

static void probes(void *ctx, struct ttmon_http_reply *reply)
{
	const struct ttmon_run *c = ctx;
	json_t *objects = json_array(), *programs = json_array();
	struct listing l = { c->bpf, objects };
	struct ttmon_viewer who;

	ttmon_viewer_init(&who, reply);
	if (c->discover)
		ttmon_discover_each(c->discover, add_object, &l);
	for (int i = 0; c->bpf && i < TTMON_PROG_MAX; i++) {
		struct ttmon_prog_info p;

		ttmon_bpf_prog_info(c->bpf, i, &p);
		json_array_append_new(programs, json_pack("{s:s, s:s, s:b, s:b, s:b, s:s, s:I, s:I}", "name", p.name,
							  "kind", p.kind, "wanted", p.wanted, "loaded", p.loaded,
							  "attached", p.attached, "reason", p.wanted ? p.reason : "",
							  "run_count", INT(p.run_cnt), "run_ns", INT(p.run_ns)));
	}
	ttmon_api_send(reply,
		       json_pack("{s:o, s:o, s:{s:o, s:o}}", "objects", objects, "programs", programs, "tenstorrent",
				 "processes", ttmon_api_tt_processes(c, &who), "clocks", ttmon_api_tt_clocks(c, &who)));
}

static void healthz(void *ctx, struct ttmon_http_reply *reply)
{
	reply->content_type = TTMON_HTTP_TEXT;
	if (!ttmon_run_is_alive(ctx))
		ttmon_http_error(reply, 503, "no drain for two seconds");
	else
		fputs("ok\n", reply->body);
}

#define R(p, f, h)                            \
	{                                     \
		.path = p, .fn = f, .help = h \
	}
#define OPEN(p, f, h)                                            \
	{                                                        \
		.path = p, .fn = f, .help = h, .everybody = true \
	}
#define CTL(p, f, h)                                                                                          \
	{                                                                                                     \
		.path = p, .fn = f, .help = h, .methods = TTMON_HTTP_GET | TTMON_HTTP_PUT | TTMON_HTTP_DELETE \
	}

const struct ttmon_http_route ttmon_api_routes[] = {
	OPEN("/metrics", ttmon_api_metrics, "for Prometheus"),
	OPEN("/healthz", healthz, "is it alive"),
	OPEN("/v1/status", status, "build, events, losses, accounting identity, window"),
	R("/v1/probes", probes, "objects, probes and programs"),
	CTL("/v1/families", ttmon_api_families, "families of probes; PUT ?name=&state=on|counting|off"),
	CTL("/v1/targets", ttmon_api_targets, "which processes are traced; PUT and DELETE ?pid=, ?self or ?all"),
	R("/v1/processes", ttmon_api_processes, "who used the CPUs, caches and memory bandwidth, sums since the start"),
	R("/v1/allocations", ttmon_api_allocations, "allocations that are kept: ?pid=&live&limit=&cursor="),
	R("/v1/allocations/", ttmon_api_allocation, "one of them, by id"),
	R("/v1/heat", ttmon_api_heat, "transfers over time or pages: ?by=allocation|page&id=&n=&last="),
	R("/v1/hotspots", ttmon_api_hotspots, "unpinned memory that is moved most: ?n=, ?pid=&period=&label="),
	R("/v1/coldspots", ttmon_api_coldspots, "pinned memory that is not used: ?n=, ?pid=&period=&label="),
	R("/v1/advice", ttmon_api_advice, "what to pin, what not, a JSON document a line"),
	R("/v1/advice/live", ttmon_api_live, "said while programs run: ?after=SEQ&start=ID&pid=&follow=1"),
	R("/v1/slots", ttmon_api_slots, "the last slots of 1 ms: ?last="),
	R("/v1/devices", ttmon_api_devices, "Tenstorrent chips and who holds their memory"),
	R("/v1/db", ttmon_api_db, "the database of all that is kept, as --dump-db writes it: ?gz=1"),
	R("/v1/trace", ttmon_api_trace, "timeline of what is kept, for Perfetto"),
};
const size_t ttmon_api_nr_routes = ARRAY_SIZE(ttmon_api_routes);
