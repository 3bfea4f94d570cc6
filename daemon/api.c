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

/*
 * While events flow the identity can only be bounded: attempted - lost - decoded - malformed are in the rings now. They were counted
 * before (decoded) and after (attempted), so the difference is never negative, and at rest it is 0.
 */
static json_t *identity(const struct ttmon_run *c, const struct ttmon_snapshot *s)
{
	uint64_t decoded = 0, malformed = 0, attempted = 0, lost = 0, used = 0;
	const struct ttmon_accounting *a = &s->acc;
	const char *why = "";
	int64_t flight;

	for (unsigned int i = 0; i < TTMON_EV_FACT; i++)
		decoded += a->decoded[i];
	for (unsigned int i = 0; i < TTMON_DECODE_MAX; i++)
		malformed += a->malformed[i];
	for (uint32_t cpu = 0; cpu < ttmon_bpf_cpus(c->bpf); cpu++) {
		const struct ttmon_cpu_stat *st = ttmon_bpf_stat(c->bpf, cpu);

		for (unsigned int i = 0; i < TTMON_EV_FACT; i++) {
			attempted += st->attempted[i];
			lost += st->lost[i];
		}
	}
	for (uint32_t i = 0; i < ttmon_bpf_rings(c->bpf); i++)
		used += ttmon_ring_used(ttmon_bpf_ring(c->bpf, i));
	flight = (int64_t)(attempted - lost - decoded - malformed);
	if (flight < 0)
		why = "more events came out of the rings than went in";
	else if (a->slotted + a->late + a->arena_full + a->direct > decoded)
		why = "more events in slots than were decoded";
	else if (a->closed != a->published + a->dropped)
		why = "closed slots are neither published nor dropped";
	return json_pack("{s:b, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "ok", !*why, "why", why, "attempted",
			 INT(attempted), "lost", INT(lost), "decoded", INT(decoded), "malformed", INT(malformed),
			 "in_flight", INT(flight), "ring_bytes_used", INT(used));
}

static json_t *losses(const struct ttmon_run *c)
{
	json_t *o = json_object();

	for (unsigned int i = 0; i < TTMON_LOSS_MAX; i++) {
		uint64_t sum = 0;

		for (uint32_t cpu = 0; cpu < ttmon_bpf_cpus(c->bpf); cpu++)
			sum += ttmon_bpf_stat(c->bpf, cpu)->reason[i];
		json_object_set_new(o, ttmon_loss_name(i), json_integer(INT(sum)));
	}
	return o;
}

static json_t *recording(const struct ttmon_run *c)
{
	struct ttmon_rec_stats st;

	if (!c->rec)
		return json_null();
	ttmon_rec_writer_stats(c->rec, &st);
	return json_pack("{s:s, s:I, s:I, s:I, s:I}", "path", c->opts->record, "records", INT(st.records), "dropped",
			 INT(st.dropped), "raw_bytes", INT(st.raw_bytes), "file_bytes", INT(st.file_bytes));
}

static void status(void *ctx, struct ttmon_http_reply *reply)
{
	const struct ttmon_run *c = ctx;
	struct ttmon_snapshot s;
	uint64_t decoded = 0;
	uint64_t now = ttmon_mono_ns();

	ttmon_hot_snapshot(c->hot, &s);
	for (unsigned int i = 0; i < TTMON_EV_FACT; i++)
		decoded += s.acc.decoded[i];
	ttmon_api_send(
		reply,
		json_pack(
			"{s:s, s:I, s:s, s:s, s:{s:I, s:I, s:I, s:I, s:o}, s:o, s:{s:I, s:I, s:I, s:I}, s:{s:I, s:I, s:I, s:I}, s:{s:I, s:I, s:I, s:I, s:I}, s:I, s:I, s:{s:I, s:I}, s:o, s:o, s:o, s:o}",
			"version", TTMON_VERSION, "uptime_ns", INT(now - c->start_ns), "mode", mode_name(c->mode),
			"uprobes", ttmon_bpf_legacy(c->bpf) ? "tracefs" : "multi", "events", "decoded", INT(decoded),
			"facts", INT(s.acc.facts), "late", INT(s.acc.late), "arena_full", INT(s.acc.arena_full), "lost",
			losses(c), "identity", identity(c, &s), "window", "slots",
			INT(c->opts->window ? c->opts->window : TTMON_SLOTS_WINDOW), "watermark_lag_ns",
			INT(s.now_ns - s.watermark_ns), "stalls", INT(s.stalls), "longest_gap_ns",
			INT(s.longest_gap_ns), "slots", "closed", INT(s.acc.closed), "published", INT(s.acc.published),
			"dropped", INT(s.acc.dropped), "forced", INT(s.acc.forced), "pinned", "now_pages",
			INT(s.totals.pinned_pages), "peak_pages", INT(s.totals.pinned_peak_pages), "now_bytes",
			INT(s.totals.pinned_bytes), "peak_bytes", INT(s.totals.pinned_peak_bytes), "pins",
			INT(s.totals.pins), "processes", INT(s.procs), "allocations", INT(s.totals.live), "rings",
			"bytes", INT(ttmon_bpf_ring_bytes(c->bpf)), "cpus", INT(ttmon_bpf_rings(c->bpf)), "recording",
			recording(c), "tenstorrent", ttmon_api_tt_status(c), "cpu", ttmon_api_cpu_status(c, &s), "rmid",
			ttmon_api_rmid_status(c, &s)));
}

static json_t *hex(const uint8_t *p, size_t n)
{
	char buf[2 * TTMON_BUILD_ID + 1] = "";

	for (size_t i = 0; i < n; i++)
		snprintf(buf + 2 * i, 3, "%02x", p[i]);
	return json_string(buf);
}

static json_t *text(const char *s)
{
	json_t *j = json_string(s);

	/* A path need not be UTF-8. */
	return j ? j : json_string("?");
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

	ttmon_discover_each(c->discover, add_object, &l);
	for (int i = 0; i < TTMON_PROG_MAX; i++) {
		struct ttmon_prog_info p;

		ttmon_bpf_prog_info(c->bpf, i, &p);
		json_array_append_new(programs, json_pack("{s:s, s:s, s:b, s:b, s:b, s:s, s:I, s:I}", "name", p.name,
							  "kind", p.kind, "wanted", p.wanted, "loaded", p.loaded,
							  "attached", p.attached, "reason", p.wanted ? p.reason : "",
							  "run_count", INT(p.run_cnt), "run_ns", INT(p.run_ns)));
	}
	ttmon_api_send(reply,
		       json_pack("{s:o, s:o, s:{s:o, s:o}}", "objects", objects, "programs", programs, "tenstorrent",
				 "processes", ttmon_api_tt_processes(c), "clocks", ttmon_api_tt_clocks(c)));
}

static void healthz(void *ctx, struct ttmon_http_reply *reply)
{
	struct ttmon_snapshot s;
	const struct ttmon_run *c = ctx;

	ttmon_hot_snapshot(c->hot, &s);
	reply->content_type = TTMON_HTTP_TEXT;
	/* The hot thread tells its figures every 100 ms; silence means that it hangs. */
	if (ttmon_mono_ns() - s.now_ns > 2 * NSEC_PER_SEC)
		ttmon_http_error(reply, 503, "no drain for two seconds");
	else
		fputs("ok\n", reply->body);
}

const struct ttmon_http_route ttmon_api_routes[] = {
	{ "/healthz", "is it alive", healthz },
	{ "/v1/status", "build, events, losses, accounting identity, window", status },
	{ "/v1/probes", "objects, probes and programs", probes },
	{ "/v1/processes", "who used the CPUs, caches and memory bandwidth, sums since the start",
	  ttmon_api_processes },
	{ "/v1/devices", "Tenstorrent chips and who holds their memory", ttmon_api_devices },
	{ "/v1/trace", "timeline of what is kept, for Perfetto", ttmon_api_trace },
};
const size_t ttmon_api_nr_routes = ARRAY_SIZE(ttmon_api_routes);
