// SPDX-License-Identifier: GPL-2.0-only
/*
 * api.c: the routes of the local socket. Cold thread; it sees the hot thread's figures only through
 * the snapshot.
 */
#include <jansson.h>

#include "daemon/api/api.h"
#include "daemon/io/probes/discover.h"
#include "daemon/run/kpins.h"
#include "daemon/run/memtrace.h"
#include "daemon/run/quotas.h"
#include "daemon/run/unwind.h"
#include "lib/os/clock.h"
#include "version.h"

/* json_pack's "I" takes json_int_t. */
#define INT(x) ((json_int_t)(x))

/* A name may not be UTF-8, and the kernel may cut it within a character. */
json_t *ttmon_api_comm(const char comm[TTMON_COMM_LEN])
{
	char text[TTMON_COMM_LEN + 1];
	size_t n = strnlen(comm, TTMON_COMM_LEN);
	json_t *j;

	memcpy(text, comm, n);
	for (size_t cut = 0; cut < 4 && cut <= n; cut++) {
		j = json_stringn(text, n - cut);
		if (j)
			return j;
	}
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] >= 0x80)
			text[i] = '?';
	return json_stringn(text, n);
}

void ttmon_api_send(struct ttmon_http_reply *reply, json_t *doc)
{
	if (!doc || json_dumpf(doc, reply->body, JSON_COMPACT | JSON_PRESERVE_ORDER | JSON_ENSURE_ASCII))
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

static uint64_t ring_bytes_used(const struct ttmon_daemon *c)
{
	uint64_t used = 0;

	for (uint32_t i = 0; ttmon_daemon_bpf(c) && i < ttmon_bpf_rings(ttmon_daemon_bpf(c)); i++)
		used += ttmon_ring_used(ttmon_bpf_ring(ttmon_daemon_bpf(c), i));
	return used;
}

/*
 * While events flow, the identity gives only a bound: attempted - lost - decoded - malformed events
 * are in the rings now. decoded was read before attempted, so the difference is never negative;
 * without events it is 0. A recording has the kernel's counts at its end.
 */
static json_t *identity(const struct ttmon_daemon *c, const struct ttmon_snapshot *s)
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
	ttmon_daemon_kernel_counts(c, &k);
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

static json_t *losses(const struct ttmon_daemon *c)
{
	struct ttmon_kernel_counts k;
	json_t *o = json_object();

	ttmon_daemon_kernel_counts(c, &k);
	for (unsigned int i = 0; i < TTMON_LOSS_MAX; i++)
		json_object_set_new(o, ttmon_loss_name(i), json_integer(INT(k.reason[i])));
	return o;
}

static json_t *text(const char *s)
{
	json_t *j = json_string(s);

	/* A path may not be UTF-8. */
	return j ? j : json_string("?");
}

/* Over TCP only sums are served: no path. */
static json_t *recording(const struct ttmon_daemon *c, bool local)
{
	struct ttmon_rec_stats st;

	if (!ttmon_daemon_rec(c))
		return json_null();
	ttmon_rec_writer_stats(ttmon_daemon_rec(c), &st);
	return json_pack("{s:o, s:I, s:I, s:I, s:I}", "path", local ? text(ttmon_daemon_opts(c)->record) : json_null(),
			 "records", INT(st.records), "dropped", INT(st.dropped), "raw_bytes", INT(st.raw_bytes),
			 "file_bytes", INT(st.file_bytes));
}

/* Stacks unwound by tables; null: stacks are found by frame pointers only. */
static json_t *call_stacks(const struct ttmon_daemon *c)
{
	struct ttmon_unwind_state u;

	if (!ttmon_unwind_get(c, &u))
		return json_null();
	return json_pack("{s:b, s:I, s:I, s:I, s:I}", "unwinding", u.on, "copied", INT(u.copied), "found",
			 INT(u.answered), "lost", INT(u.lost), "cpu_ns", INT(u.cpu_ns));
}

/* Families that report memory that is held. */
#define HELD (TTMON_FAMILY_BIT(ALLOC) | TTMON_FAMILY_BIT(TENSTORRENT))

static json_t *pinned(const struct ttmon_snapshot *s)
{
	const struct ttmon_history_totals *t = &s->totals;
	bool on = ttmon_api_are_on(&s->seen, HELD);
	bool whole = ttmon_api_are_whole(&s->seen, HELD, 0) && !s->seen.of[TTMON_FAMILY_ALLOC].partly;
	const struct {
		const char *name;
		bool is_known;
		uint64_t value;
	} rows[] = {
		{ "now_pages", on, t->pinned_pages },
		{ "peak_pages", whole || t->pinned_peak_pages, t->pinned_peak_pages },
		{ "now_bytes", on, t->pinned_bytes },
		{ "peak_bytes", whole || t->pinned_peak_bytes, t->pinned_peak_bytes },
		{ "pins", whole || t->pins, t->pins },
	};
	json_t *o = json_object();

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		json_object_set_new(o, rows[i].name, rows[i].is_known ? json_integer(INT(rows[i].value)) : json_null());
	if (!whole)
		json_object_set_new(o, "at_least", json_true());
	return o;
}

static json_t *reasons(uint32_t incomplete)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < TTMON_INCOMPLETE_MAX; i++)
		if (incomplete >> i & 1)
			json_array_append_new(list, json_string(ttmon_incomplete_name(i)));
	return list;
}

/*
 * Over TCP only the names of parts, since reasons contain paths. The process that is in the way is
 * shown to root only.
 */
static json_t *why_degraded(const struct ttmon_lack *l, const struct ttmon_http_reply *reply)
{
	char why[sizeof(l->why) + sizeof(l->who) + 8];

	if (!reply->local)
		return json_null();
	snprintf(why, sizeof(why), "%s%s%s", l->why, reply->uid || !l->who[0] ? "" : ", in ", reply->uid ? "" : l->who);
	return text(why);
}

static json_t *degraded(const struct ttmon_daemon *c, const struct ttmon_http_reply *reply)
{
	size_t n;
	const struct ttmon_lack *lacks = ttmon_daemon_lacks(c, &n);
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:o}", "part", ttmon_lack_key(lacks[i].lack),
						      "what", ttmon_lack_what(lacks[i].lack), "since_ns",
						      INT(lacks[i].since_ns), "why", why_degraded(&lacks[i], reply)));
	return list;
}

/* Quotas: users that got less for want of room; the process is shown to root only. */
static json_t *quotas(const struct ttmon_daemon *c, const struct ttmon_http_reply *reply)
{
	struct ttmon_quota_row rows[TTMON_QUOTA_ROWS];
	uint32_t n = ttmon_quotas_get(c, rows);
	bool is_root = reply->local && !reply->uid;
	json_t *list = json_array();

	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(
			list, json_pack("{s:s, s:o, s:o, s:I}", "what", ttmon_quota_name(rows[i].what), "uid",
					rows[i].uid == UINT32_MAX ? json_null() : json_integer(rows[i].uid), "pid",
					is_root && rows[i].tgid ? json_integer(rows[i].tgid) : json_null(), "paid",
					INT(rows[i].paid)));
	return list;
}

static void count_unread(void *ctx, const struct ttmon_object_state *o)
{
	*(json_int_t *)ctx += o->unread;
}

/* Figures of the helpers that read files of other users; null: no file is read (replay). */
static json_t *files(const struct ttmon_daemon *c)
{
	struct ttmon_helpers_counts n;
	json_int_t unread = 0;

	if (!ttmon_daemon_helpers(c, &n) || !ttmon_daemon_discover(c))
		return json_null();
	ttmon_discover_each(ttmon_daemon_discover(c), count_unread, &unread);
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "unread", unread, "helpers", INT(n.processes),
			 "late", INT(n.late), "queued", INT(n.queued), "calls", INT(n.calls), "given_up",
			 INT(n.given_up), "refused", INT(n.refused), "cpu_ns", INT(n.cpu_ns));
}

static const char *uprobes(const struct ttmon_daemon *c)
{
	return !ttmon_daemon_bpf(c) ? "none" : ttmon_bpf_legacy(ttmon_daemon_bpf(c)) ? "tracefs" : "multi";
}

void ttmon_api_status(void *ctx, struct ttmon_http_reply *reply)
{
	const struct ttmon_daemon *c = ctx;
	struct ttmon_snapshot s;
	uint64_t decoded = 0;
	uint64_t now = ttmon_mono_ns();

	ttmon_daemon_snapshot(c, &s);
	for (unsigned int i = 0; i < TTMON_EV_FACT; i++)
		decoded += s.acc.decoded[i];
	ttmon_api_send(
		reply,
		json_pack("{s:s, s:I, s:s, s:s, s:{s:I, s:I, s:I, s:I, s:o}, s:o, s:{s:I, s:I, s:I, s:I}, s:{s:I, s:I, "
			  "s:I, s:I, s:I}, s:o, s:I, s:o, s:{s:I, s:I}, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
			  "s:o, s:o, s:o, s:b, s:o, s:o}",
			  "version", TTMON_VERSION, "uptime_ns", INT(now - ttmon_daemon_start_ns(c)), "mode",
			  ttmon_daemon_is_replay(c) ? "replay" : mode_name(ttmon_daemon_mode(c)), "uprobes", uprobes(c),
			  "events", "decoded", INT(decoded), "facts", INT(s.acc.facts), "late", INT(s.acc.late),
			  "arena_full", INT(s.acc.arena_full), "lost", losses(c), "identity", identity(c, &s), "window",
			  "slots",
			  INT(ttmon_daemon_opts(c)->window ? ttmon_daemon_opts(c)->window : TTMON_SLOTS_WINDOW),
			  "watermark_lag_ns", INT(s.now_ns - s.watermark_ns), "stalls", INT(s.stalls), "longest_gap_ns",
			  INT(s.longest_gap_ns), "slots", "closed", INT(s.acc.closed), "published",
			  INT(s.acc.published - s.unpublished), "unpublished", INT(s.unpublished), "dropped",
			  INT(s.acc.dropped), "forced", INT(s.acc.forced), "pinned", pinned(&s), "processes",
			  INT(s.procs), "allocations",
			  ttmon_api_are_on(&s.seen, HELD) ? json_integer(INT(s.totals.live)) : json_null(), "rings",
			  "bytes", INT(ttmon_daemon_bpf(c) ? ttmon_bpf_ring_bytes(ttmon_daemon_bpf(c)) : 0), "cpus",
			  INT(ttmon_daemon_bpf(c) ? ttmon_bpf_rings(ttmon_daemon_bpf(c)) : 0), "recording",
			  recording(c, reply->local), "tenstorrent", ttmon_api_tt_status(c), "cpu",
			  ttmon_api_cpu_status(c, &s), "rmid", ttmon_api_rmid_status(c, &s), "reduced",
			  ttmon_api_reduced(c), "families", ttmon_api_families_seen(&s.seen), "budget",
			  ttmon_api_budget(c, reply), "quotas", quotas(c, reply), "kernel_pins", ttmon_kpins_status(c),
			  "memtrace", ttmon_mtrun_status(c, s.totals.gpu_use_gone), "call_stacks", call_stacks(c),
			  "files", files(c), "complete", !s.incomplete, "reasons", reasons(s.incomplete), "degraded",
			  degraded(c, reply)));
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
	const struct ttmon_viewer *who;
	uint8_t *seen; /* by id of an object: a process that this viewer may see has it mapped */
	uint32_t nr_seen;
	json_t *objects;
};

/* Without memory it counts as not seen. */
static void see(struct listing *l, uint32_t id)
{
	if (id >= l->nr_seen) {
		uint32_t n = MAX(id + 1, l->nr_seen * 2);
		uint8_t *v = realloc(l->seen, n);

		if (!v)
			return;
		memset(v + l->nr_seen, 0, n - l->nr_seen);
		l->seen = v;
		l->nr_seen = n;
	}
	l->seen[id] = 1;
}

static void add_use(void *ctx, uint32_t tgid, uint64_t start_ns, const uint32_t *ids, uint32_t n)
{
	struct listing *l = ctx;

	/* For a process older than the trace the start may be unknown. */
	if (start_ns ? ttmon_viewer_sees_pid(l->who, tgid, start_ns) : ttmon_viewer_owns_pid(l->who, tgid))
		for (uint32_t i = 0; i < n; i++)
			see(l, ids[i]);
}

static void add_object(void *ctx, const struct ttmon_object_state *o)
{
	const struct listing *l = ctx;
	int64_t gap_us = ttmon_probes_gap_us(o->mapped_ns, o->active_ns, o->held);
	json_t *probes;

	if (!l->who->all && (o->id >= l->nr_seen || !l->seen[o->id]))
		return;
	probes = json_array();
	for (size_t i = 0; o->probes && i < o->probes->n; i++) {
		const struct ttmon_probe *p = &o->probes->probes[i];
		struct ttmon_prog_info info = { .name = "" };
		const char *fn = ttmon_fn_name(p->fn);

		/* A USDT point whose operands could not be read has no program. */
		if (p->prog < TTMON_PROG_UPROBES)
			ttmon_bpf_prog_info(l->bpf, p->prog, &info);
		json_array_append_new(probes, json_pack("{s:o, s:s, s:i, s:s, s:s, s:s, s:b}", "symbol",
							text(p->symbol), "fn", fn ? fn : "", "skip", (int)p->skip,
							"program", info.name, "state", ttmon_probe_state_name(p->state),
							"reason", p->err ? ttmon_probe_reason(p->err) : "",
							"single_step", p->single_step));
	}
	json_array_append_new(
		l->objects,
		json_pack("{s:o, s:I, s:I, s:o, s:b, s:b, s:b, s:b, s:i, s:I, s:o, s:b, s:b, s:s, s:o}", "path",
			  text(o->path), "dev", INT(o->dev), "ino", INT(o->ino), "build_id",
			  hex(o->build_id, o->build_id_len), "runtime", !!(o->kind & TTMON_OBJ_IS_RT), "driver",
			  !!(o->kind & TTMON_OBJ_IS_DRV), "static", !!(o->kind & TTMON_OBJ_STATIC_RT), "stripped",
			  !!(o->kind & TTMON_OBJ_STRIPPED_RT), "runtime_major", (int)o->rt_major, "missing",
			  INT(o->missing), "blind_us", gap_us < 0 ? json_null() : json_integer(gap_us), "held", o->held,
			  "unread", o->unread, "error", o->err ? ttmon_probe_reason(o->err) : "", "probes", probes));
}

void ttmon_api_probes(void *ctx, struct ttmon_http_reply *reply)
{
	const struct ttmon_daemon *c = ctx;
	json_t *objects = json_array(), *programs = json_array();
	struct ttmon_viewer who;
	struct listing l = { .bpf = ttmon_daemon_bpf(c), .who = &who, .objects = objects };

	ttmon_viewer_init(&who, reply);
	if (ttmon_daemon_discover(c) && !who.all)
		ttmon_discover_each_use(ttmon_daemon_discover(c), add_use, &l);
	if (ttmon_daemon_discover(c))
		ttmon_discover_each(ttmon_daemon_discover(c), add_object, &l);
	free(l.seen);
	for (int i = 0; ttmon_daemon_bpf(c) && i < TTMON_PROG_MAX; i++) {
		struct ttmon_prog_info p;

		ttmon_bpf_prog_info(ttmon_daemon_bpf(c), i, &p);
		json_array_append_new(programs, json_pack("{s:s, s:s, s:b, s:b, s:b, s:s, s:I, s:I}", "name", p.name,
							  "kind", p.kind, "wanted", p.wanted, "loaded", p.loaded,
							  "attached", p.attached, "reason", p.wanted ? p.reason : "",
							  "run_count", INT(p.run_cnt), "run_ns", INT(p.run_ns)));
	}
	ttmon_api_send(reply,
		       json_pack("{s:o, s:o, s:{s:o, s:o}}", "objects", objects, "programs", programs, "tenstorrent",
				 "processes", ttmon_api_tt_processes(c, &who), "clocks", ttmon_api_tt_clocks(c, &who)));
}

void ttmon_api_healthz(void *ctx, struct ttmon_http_reply *reply)
{
	reply->content_type = TTMON_HTTP_TEXT;
	if (!ttmon_daemon_is_alive(ctx))
		ttmon_http_error(reply, 503, "no drain for two seconds");
	else
		fputs("ok\n", reply->body);
}

static const struct ttmon_http_route routes[] = {
#define X(p, handler, flags, text)                                                                          \
	{                                                                                                   \
		.path = p,                                                                                  \
		.fn = handler,                                                                              \
		.help = text,                                                                               \
		.everybody = !!((flags)&TTMON_API_OPEN),                                                    \
		.methods = (flags)&TTMON_API_CTL ? TTMON_HTTP_GET | TTMON_HTTP_PUT | TTMON_HTTP_DELETE : 0, \
	},
	TTMON_API_ROUTES(X)
#undef X
};

const struct ttmon_part ttmon_part_api = {
	.name = "api",
	.in = TTMON_IN_BOTH,
	.routes = routes,
	.nr_routes = ARRAY_SIZE(routes),
};
