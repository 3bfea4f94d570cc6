// SPDX-License-Identifier: GPL-2.0-only
/*
 * tt.c: /v1/devices and /v1/trace. Runs in the cold thread; figures are those of ttrun.c's last tick,
 * at most 200 ms old.
 */
#include <jansson.h>

#include "daemon/run/ttrun.h"
#include "daemon/api/job.h"
#include "daemon/io/files/tracefile.h"

#define INT(x) ((json_int_t)(x))

/* By enum ttmon_ttshm_state. */
static const char *const states[] = { "published", "foreign", "refused", "idle", "unknown" };

/* flags: of the process or chip. What is not known is null. */
static json_t *by_type(const uint64_t *bytes, uint32_t flags)
{
	json_t *o = json_object();

	for (unsigned int i = 0; i < TTMON_TT_TYPES; i++)
		json_object_set_new(o, ttmon_tt_type_name(i),
				    ttmon_tt_is_known(i, bytes[i], flags) ? json_integer(INT(bytes[i])) : json_null());
	return o;
}

/* 64-bit ids do not fit a JSON number. */
static json_t *id(uint64_t value)
{
	char buf[24];

	if (!value)
		return json_null();
	snprintf(buf, sizeof(buf), "0x%llx", (unsigned long long)value);
	return json_string(buf);
}

static json_t *text(const char *s, size_t n)
{
	json_t *j = json_stringn(s, strnlen(s, n));

	return j ? j : json_string("?");
}

static json_t *shm_of(const struct ttmon_ttrun_view *v, uint32_t index)
{
	for (size_t i = 0; i < v->nr_shm; i++) {
		const struct ttmon_ttshm_report *r = &v->shm[i];

		if (r->index == index)
			return json_pack("{s:s, s:o, s:s, s:I}", "state", states[r->state], "path",
					 text(r->path, sizeof(r->path)), "error", r->err ? strerror(-r->err) : "",
					 "left_out", INT(r->left_out));
	}
	return json_null();
}

static json_t *flags_of(uint32_t flags)
{
	json_t *a = json_array();

	for (unsigned int i = 0; i < TTMON_TT_FLAGS; i++)
		if (flags & 1u << i)
			json_array_append_new(a, json_string(ttmon_tt_flag_name(i)));
	return a;
}

static json_t *chip(const struct ttmon_ttrun_view *v, const struct ttmon_tt_chip *c)
{
	static const char *const archs[TTMON_TT_ARCH_MAX] = { "unknown", "grayskull", "wormhole", "blackhole" };
	const struct ttmon_ev_tt_chip *f = &c->fact;
	json_t *ordinal = f->ordinal == UINT32_MAX ? json_null() : json_integer(f->ordinal);

	return json_pack(
		"{s:I, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:i, s:i, s:I, s:I, s:o, s:o, s:b, s:o, s:o}",
		"index", INT(f->index), "arch", archs[f->arch], "card", text(f->card, sizeof(f->card)), "ordinal",
		ordinal, "board_id", id(f->board_id), "asic_id", id(f->asic_id), "unique_id", id(f->unique_id),
		"key_v1", id(f->key_v1), "remote", !!(f->flags & TTMON_TT_CHIP_REMOTE), "gone",
		!!(f->flags & TTMON_TT_CHIP_GONE), "tray", f->tray, "chip", f->chip, "dram_bytes", INT(f->dram_bytes),
		"l1_bytes", INT(f->l1_bytes), "bytes", by_type(c->bytes, c->flags), "peak", by_type(c->peak, c->ever),
		"at_least", !!(c->ever & TTMON_TT_F_DOUBT), "flags", flags_of(c->flags), "shm", shm_of(v, f->index));
}

struct clocks {
	struct ttmon_tt_clock *v;
	size_t n;
};

static int take_clocks(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	const struct ttmon_tt_clock *v;
	struct clocks *out = ctx;

	(void)now_ns;
	out->n = ttmon_dispatch_clocks(ttmon_pipeline_dispatch(p), &v);
	out->v = malloc((out->n + 1) * sizeof(*v));
	if (!out->v)
		return -ENOMEM;
	if (out->n)
		memcpy(out->v, v, out->n * sizeof(*v));
	return 0;
}

/*
 * Device work reported by the profiler: null if it reported nothing. The error is null if a run has
 * none.
 */
static json_t *work_of(const struct clocks *cl, uint32_t tgid, uint32_t logical)
{
	for (size_t i = 0; i < cl->n; i++) {
		const struct ttmon_tt_clock *k = &cl->v[i];

		if (k->tgid == tgid && k->logical == logical && k->records)
			return json_pack("{s:I, s:I, s:o}", "runs", INT(k->records), "busy_ns", INT(k->busy_ns),
					 "busy_error_ns", k->unbounded ? json_null() : json_integer(INT(k->error_ns)));
	}
	return json_null();
}

static json_t *devices_of(const struct ttmon_tt_view *v, size_t proc, const struct clocks *cl)
{
	static const char *const hows[TTMON_TT_HOW_MAX] = {
#define X(n, NAME, name) [n] = name,
		TTMON_TT_HOW_TABLE(X)
#undef X
	};
	const struct ttmon_tt_process *p = &v->procs[proc];
	/* An ended process holds nothing. */
	uint32_t now = p->end_ns ? 0 : p->flags;
	json_t *a = json_array();

	for (size_t i = 0; i < v->nr_uses; i++) {
		const struct ttmon_tt_use *u = &v->uses[i];

		if (u->proc != proc)
			continue;
		json_array_append_new(
			a, json_pack("{s:o, s:o, s:s, s:o, s:o, s:I, s:I, s:I, s:o}", "logical",
				     u->logical == TTMON_TT_NO_LOGICAL ? json_null() : json_integer(u->logical), "chip",
				     u->chip ? json_integer(u->chip) : json_null(), "how", hows[u->how], "bytes",
				     by_type(u->bytes, now), "peak", by_type(u->peak, p->flags), "buffers",
				     INT(u->buffers), "allocs", INT(u->allocs), "frees", INT(u->frees), "work",
				     work_of(cl, p->tgid, u->logical)));
	}
	return a;
}

static bool sees(const struct ttmon_viewer *who, const struct ttmon_tt_process *p)
{
	return who->all || (!p->end_ns && ttmon_viewer_sees_pid(who, p->tgid, p->start_ns));
}

void ttmon_api_devices(void *ctx, struct ttmon_http_reply *reply)
{
	const struct ttmon_daemon *c = ctx;
	json_t *chips = json_array(), *procs = json_array(), *doc;
	struct ttmon_ttrun_view v;
	struct clocks cl = { 0 };
	struct ttmon_viewer who;

	ttmon_viewer_init(&who, reply);
	ttmon_ttrun_get(c, &v);
	if (v.tt->nr_procs && ttmon_daemon_call(c, take_clocks, &cl))
		cl.n = 0;
	for (size_t i = 0; i < v.tt->nr_chips; i++)
		json_array_append_new(chips, chip(&v, &v.tt->chips[i]));
	for (size_t i = 0; i < v.tt->nr_procs; i++) {
		const struct ttmon_tt_process *p = &v.tt->procs[i];

		if (!sees(&who, p))
			continue;
		json_array_append_new(procs, json_pack("{s:I, s:o, s:b, s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:o}",
						       "tgid", INT(p->tgid), "comm", text(p->comm, sizeof(p->comm)),
						       "running", !p->end_ns, "flags", flags_of(p->flags), "layout",
						       p->layout ? p->layout : "", "unknown_frees",
						       INT(p->unknown_frees), "failed", INT(p->failed), "hooked",
						       INT(p->hooked), "refused", INT(p->refused), "pending_bytes",
						       INT(p->pending_bytes), "devices", devices_of(v.tt, i, &cl)));
	}
	free(cl.v);
	doc = json_pack("{s:o, s:o}", "chips", chips, "processes", procs);
	if (!doc || json_dumpf(doc, reply->body, JSON_COMPACT | JSON_PRESERVE_ORDER))
		ttmon_http_error(reply, 500, "out of memory");
	json_decref(doc);
}

json_t *ttmon_api_tt_status(const struct ttmon_daemon *c)
{
	json_int_t files[ARRAY_SIZE(states)] = { 0 };
	struct ttmon_ttrun_view v;
	json_int_t running = 0;
	json_t *flags, *o;

	ttmon_ttrun_get(c, &v);
	if (!v.tt->nr_chips && !v.tt->nr_procs)
		return json_null();
	for (size_t i = 0; i < v.nr_shm; i++)
		files[v.shm[i].state]++;
	flags = json_object();
	for (size_t i = 0; i < v.tt->nr_procs; i++) {
		const struct ttmon_tt_process *p = &v.tt->procs[i];

		running += !p->end_ns;
		for (unsigned int k = 0; k < TTMON_TT_FLAGS && !p->end_ns; k++) {
			const char *name = ttmon_tt_flag_name(k);

			if (p->flags & 1u << k)
				json_object_set_new(flags, name,
						    json_integer(json_integer_value(json_object_get(flags, name)) + 1));
		}
	}
	o = json_pack("{s:I, s:I, s:o}", "chips", INT(v.tt->nr_chips), "processes", running, "flags", flags);
	for (size_t i = 0; o && i < ARRAY_SIZE(states); i++)
		json_object_set_new(o, states[i], json_integer(files[i]));
	return o;
}

json_t *ttmon_api_tt_processes(const struct ttmon_daemon *c, const struct ttmon_viewer *who)
{
	struct ttmon_ttrun_view v;
	json_t *a = json_array();

	ttmon_ttrun_get(c, &v);
	for (size_t i = 0; i < v.tt->nr_procs; i++) {
		const struct ttmon_tt_process *p = &v.tt->procs[i];

		if (!p->end_ns && sees(who, p))
			json_array_append_new(a, json_pack("{s:I, s:o, s:s, s:o}", "tgid", INT(p->tgid), "comm",
							   text(p->comm, sizeof(p->comm)), "layout",
							   p->layout ? p->layout : "", "flags", flags_of(p->flags)));
	}
	return a;
}

/* The user of an ended process can no longer be found. */
static bool sees_tgid(const struct ttmon_daemon *c, const struct ttmon_viewer *who, uint32_t tgid)
{
	struct ttmon_ttrun_view v;

	ttmon_ttrun_get(c, &v);
	for (size_t i = 0; i < v.tt->nr_procs && !who->all; i++)
		if (v.tt->procs[i].tgid == tgid && sees(who, &v.tt->procs[i]))
			return true;
	return who->all;
}

json_t *ttmon_api_tt_clocks(const struct ttmon_daemon *c, const struct ttmon_viewer *who)
{
	struct clocks cl = { 0 };
	json_t *a = json_array();

	if (!ttmon_daemon_call(c, take_clocks, &cl)) {
		for (size_t i = 0; i < cl.n; i++) {
			const struct ttmon_tt_clock *k = &cl.v[i];

			if (!sees_tgid(c, who, k->tgid))
				continue;
			json_array_append_new(
				a, json_pack("{s:I, s:o, s:I, s:s?, s:o, s:I, s:s, s:I, s:I, s:I, s:f, s:f, s:I, s:I, "
					     "s:I, s:I, s:I}",
					     "tgid", INT(k->tgid), "logical",
					     k->logical == TTMON_TT_NO_LOGICAL ? json_null()
									       : json_integer(INT(k->logical)),
					     "chip", INT(k->chip), "record_layout", k->layout, "layout_certain",
					     k->layout ? json_boolean(k->certain) : json_null(), "refused_layout",
					     INT(k->refused_layout), "clock", ttmon_clock_name(k->clock), "pairs",
					     INT(k->pairs), "outliers", INT(k->outliers), "resets", INT(k->resets),
					     "ghz", k->ghz, "residual_ns", k->residual_ns, "records", INT(k->records),
					     "untimed", INT(k->untimed), "refused", INT(k->refused), "dropped",
					     INT(k->dropped), "busy_ns", INT(k->busy_ns)));
		}
	}
	free(cl.v);
	return a;
}

static int make_trace(const struct ttmon_api_job *job, int fd, struct ttmon_pipeline *p, uint64_t now_ns)
{
	struct ttmon_trace_in in = {
		.pipeline = p,
		.end_ns = now_ns,
		.cut = true,
		.source = "live",
		.max_events = TTMON_TRACE_LIVE_EVENTS,
	};

	(void)job;
	return ttmon_trace_fd(fd, &in);
}

void ttmon_api_trace(void *ctx, struct ttmon_http_reply *reply)
{
	struct ttmon_api_job job = {
		.make = make_trace, .what = "the timeline", .content_type = TTMON_HTTP_JSON, .on_disk = true
	};

	if (reply->uid)
		ttmon_http_error(reply, 403, "only for root: the calls of all users are in the timeline");
	else
		ttmon_api_add_job(ctx, reply, &job);
}
