// SPDX-License-Identifier: GPL-2.0-only
/*
 * ctl.c: /v1/families and /v1/targets: read by GET, changed by PUT and DELETE. Only root may change
 * them, so that no user can hide from tracing; the log names the user. A process that requests to be
 * traced and already is gets a reply that says so. The reply to PUT is sent when everything that the
 * process has mapped is probed: later calls are seen. Cold thread.
 */
#include "daemon/api/api.h"
#include "daemon/run/families.h"
#include "lib/os/proc.h"

#include "daemon/run/targets.h"
#include "daemon/api/viewer.h"

#define INT(x) ((json_int_t)(x))

static json_t *family_json(const struct ttmon_daemon *c, enum ttmon_family family)
{
	struct ttmon_family_view v;

	ttmon_families_get(c, family, &v);
	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:b, s:s}", "name", ttmon_family_name(family),
			 "state", ttmon_family_state_name(v.state), "why", v.why, "since_ns", INT(v.since_ns), "hits",
			 INT(v.hits), "counted", INT(v.counted), "run_count", INT(v.run_cnt), "run_ns", INT(v.run_ns),
			 "countable", ttmon_family_countable(family), "help", ttmon_family_help(family));
}

json_t *ttmon_api_reduced(const struct ttmon_daemon *c)
{
	json_t *o = json_object();

	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++) {
		struct ttmon_family_view v;

		ttmon_families_get(c, i, &v);
		/* A family that is off from the beginning, as mmap in a service, was not reduced. */
		if ((v.state == TTMON_FAMILY_COUNTING || v.state == TTMON_FAMILY_OFF) && v.why[0])
			json_object_set_new(o, ttmon_family_name(i),
					    json_pack("{s:s, s:s, s:I}", "state", ttmon_family_state_name(v.state),
						      "why", v.why, "counted", INT(v.counted)));
	}
	return o;
}

bool ttmon_api_are_on(const struct ttmon_seen_view *v, uint32_t families)
{
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++)
		if (families >> i & 1 && v->of[i].since_ns == UINT64_MAX)
			return false;
	return true;
}

bool ttmon_api_are_whole(const struct ttmon_seen_view *v, uint32_t families, uint64_t since_ns)
{
	since_ns = MAX(since_ns, v->start_ns);
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++)
		if (families >> i & 1 && v->of[i].since_ns > since_ns)
			return false;
	return true;
}

json_t *ttmon_api_families_seen(const struct ttmon_seen_view *v)
{
	json_t *o = json_object();

	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++) {
		const struct ttmon_seen_family *f = &v->of[i];
		const char *why = f->state == TTMON_FAMILY_ON	? ""
				  : f->why == TTMON_GAP_WHY_MAX ? "not there from the start"
								: ttmon_gap_why_name(f->why);

		json_object_set_new(o, ttmon_family_name(i),
				    json_pack("{s:s, s:s, s:o, s:o, s:I, s:I}", "state",
					      ttmon_family_state_name(MIN(f->state, TTMON_FAMILY_ABSENT)), "why", why,
					      "from_ns", f->from_ns ? json_integer(INT(f->from_ns)) : json_null(),
					      "seen_since_ns",
					      f->since_ns != UINT64_MAX ? json_integer(INT(f->since_ns)) : json_null(),
					      "off_ns", INT(f->off_ns), "missed", INT(f->missed)));
	}
	return o;
}

/* A reduction of one process or one user, which other users do not see. */
static json_t *reduction_json(const struct ttmon_reduction *r)
{
	char comm[16];
	json_t *o;

	if (r->tgid)
		o = json_pack("{s:I, s:o, s:s}", "pid", INT(r->tgid), "comm",
			      ttmon_api_comm(ttmon_proc_comm(r->tgid, comm)), "family", ttmon_family_name(r->family));
	else
		o = json_pack("{s:I, s:s}", "uid", INT(r->uid), "family", ttmon_family_name(r->family));
	if (r->family == TTMON_FAMILY_TRANSFER)
		json_object_set_new(o, "sampled", json_integer(1 << TTMON_FAMILY_SAMPLE));
	return o;
}

json_t *ttmon_api_budget(const struct ttmon_daemon *c, const struct ttmon_http_reply *reply)
{
	struct ttmon_budget_view v;
	struct ttmon_viewer who;
	json_t *procs, *users;

	if (!ttmon_families_budget(c, &v))
		return json_null();
	ttmon_viewer_init(&who, reply);
	procs = json_array();
	users = json_array();
	for (unsigned int i = 0; i < v.nr; i++) {
		const struct ttmon_reduction *r = &v.reductions[i];

		if ((r->tgid || r->uid != TTMON_BUDGET_NOBODY) && ttmon_viewer_sees_uid(&who, r->uid))
			json_array_append_new(r->tgid ? procs : users, reduction_json(r));
	}
	return json_pack("{s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:b}", "max_percent", v.max_percent, "percent", v.percent,
			 "daemon_percent", v.daemon_percent, "base_percent", v.base_percent, "bpf_percent",
			 v.bpf_percent, "processes", procs, "users", users, "over", v.over);
}

static void send_families(const struct ttmon_daemon *c, struct ttmon_http_reply *reply)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++)
		json_array_append_new(list, family_json(c, i));
	ttmon_api_send(reply, json_pack("{s:o, s:o}", "families", list, "budget", ttmon_api_budget(c, reply)));
}

static bool may_change(struct ttmon_http_reply *reply)
{
	bool may = reply->local && !reply->uid;

	if (!may)
		ttmon_http_error(reply, 403, "only root may change what is traced");
	return may;
}

static void put_family(struct ttmon_daemon *c, struct ttmon_http_reply *reply, const char *name, const char *state)
{
	unsigned int family = 0, to = 0;
	char why[256];
	int err;

	while (family < TTMON_FAMILY_MAX && strcmp(name, ttmon_family_name(family)) != 0)
		family++;
	while (to < TTMON_FAMILY_ABSENT && strcmp(state, ttmon_family_state_name(to)) != 0)
		to++;
	if (family == TTMON_FAMILY_MAX) {
		ttmon_http_error(reply, 400, "no such family");
	} else if (to == TTMON_FAMILY_ABSENT) {
		ttmon_http_error(reply, 400, "a family is on, off or counting");
	} else if (!ttmon_families_exist(c)) {
		ttmon_http_error(reply, 409, "a replay has no probes");
	} else {
		err = ttmon_families_set(c, family, to, reply->uid, why, sizeof(why));
		if (err)
			ttmon_http_error(reply, err == -ENOENT || err == -EINVAL ? 409 : 500, "%s", why);
		else
			send_families(c, reply);
	}
}

void ttmon_api_families(void *ctx, struct ttmon_http_reply *reply)
{
	const char *name = ttmon_http_arg(reply, "name"), *state = ttmon_http_arg(reply, "state");

	if (reply->method == TTMON_HTTP_GET)
		send_families(ctx, reply);
	else if (!may_change(reply))
		;
	else if (reply->method == TTMON_HTTP_PUT && name && state)
		put_family(ctx, reply, name, state);
	else
		ttmon_http_error(reply, 400, "PUT ?name=FAMILY&state=on|off|counting");
}

/* ---- targets ---- */

struct listing {
	const struct ttmon_bpf *bpf;
	const struct ttmon_viewer *viewer;
	json_t *pids;
};

static void add_pid(void *ctx, uint32_t pid)
{
	const struct listing *l = ctx;

	if (ttmon_bpf_is_listed(l->bpf, pid) && ttmon_viewer_owns_pid(l->viewer, pid))
		json_array_append_new(l->pids, json_integer(pid));
}

/*
 * With ?self also the client's pid as the daemon sees it: in a pid namespace the client has another
 * number.
 */
static void send_targets(const struct ttmon_daemon *c, const struct ttmon_viewer *v, struct ttmon_http_reply *reply)
{
	struct listing l = { .bpf = ttmon_daemon_bpf(c), .viewer = v, .pids = json_array() };
	json_t *doc;

	if (ttmon_daemon_bpf(c))
		ttmon_bpf_each_pid(ttmon_daemon_bpf(c), add_pid, &l);
	doc = json_pack("{s:b, s:o}", "all", ttmon_daemon_bpf(c) && ttmon_bpf_all(ttmon_daemon_bpf(c)), "pids", l.pids);
	if (ttmon_http_arg(reply, "self"))
		json_object_set_new(doc, "self", reply->pid ? json_integer(reply->pid) : json_null());
	ttmon_api_send(reply, doc);
}

static bool parse_pid(const char *text, uint32_t *ret)
{
	unsigned long n;
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	n = strtoul(text, &end, 10);
	if (errno || *end || !n || n > INT32_MAX)
		return false;
	*ret = (uint32_t)n;
	return true;
}

static void change_pid(struct ttmon_daemon *c, const struct ttmon_viewer *v, struct ttmon_http_reply *reply,
		       uint32_t pid)
{
	bool put = reply->method == TTMON_HTTP_PUT;
	char why[128] = "";
	int err;

	if (put) {
		err = ttmon_target_check(pid, why, sizeof(why));
	} else {
		err = ttmon_bpf_is_listed(ttmon_daemon_bpf(c), pid) ? 0 : -ESRCH;
		snprintf(why, sizeof(why), "process %u is no target", pid);
	}
	if (!err)
		err = put ? ttmon_target_add(c, pid, reply->uid, why, sizeof(why))
			  : ttmon_target_remove(c, pid, reply->uid);
	if (err)
		ttmon_http_error(reply, err == -ESRCH || err == -ENOENT ? 404 : err == -EPERM ? 409 : 500, "%s", why);
	else
		send_targets(c, v, reply);
}

static void change_named(struct ttmon_daemon *c, const struct ttmon_viewer *v, struct ttmon_http_reply *reply,
			 const char *text)
{
	uint32_t pid;

	if (parse_pid(text, &pid))
		change_pid(c, v, reply, pid);
	else
		ttmon_http_error(reply, 400, "not a process id");
}

/* The process that connected, according to the kernel. */
static void change_self(struct ttmon_daemon *c, const struct ttmon_viewer *v, struct ttmon_http_reply *reply)
{
	if (reply->pid > 0)
		change_pid(c, v, reply, (uint32_t)reply->pid);
	else
		ttmon_http_error(reply, 409, "your process is in a pid namespace that ttmond does not see");
}

/* It requests what it already has: a library that does so may run as any user. */
static bool is_traced(const struct ttmon_daemon *c, const struct ttmon_http_reply *reply)
{
	const struct ttmon_bpf *b = ttmon_daemon_bpf(c);

	return reply->method == TTMON_HTTP_PUT && reply->uid && reply->pid > 0 &&
	       (ttmon_bpf_all(b) || ttmon_bpf_is_listed(b, (uint32_t)reply->pid));
}

/*
 * After the reply no call of it is missed, as with root's requests: everything that it has mapped is
 * probed.
 */
static void answer_self(struct ttmon_daemon *c, const struct ttmon_viewer *v, struct ttmon_http_reply *reply)
{
	ttmon_daemon_list_wait(c, (uint32_t)reply->pid);
	send_targets(c, v, reply);
}

static void change_all(struct ttmon_daemon *c, const struct ttmon_viewer *v, struct ttmon_http_reply *reply)
{
	int err;

	err = ttmon_target_all(c, reply->method == TTMON_HTTP_PUT, reply->uid);
	if (err)
		ttmon_http_error(reply, 500, "cannot scan /proc: %s", strerror(-err));
	else
		send_targets(c, v, reply);
}

void ttmon_api_targets(void *ctx, struct ttmon_http_reply *reply)
{
	const char *pid = ttmon_http_arg(reply, "pid");
	bool all = ttmon_http_arg(reply, "all"), self = ttmon_http_arg(reply, "self");
	struct ttmon_daemon *c = ctx;
	struct ttmon_viewer v;

	ttmon_viewer_init(&v, reply);
	if (reply->method == TTMON_HTTP_GET)
		send_targets(c, &v, reply);
	else if (!ttmon_daemon_bpf(c))
		ttmon_http_error(reply, 409, "a replay has no targets");
	else if (!!pid + all + self != 1)
		ttmon_http_error(reply, 400, "PUT or DELETE ?pid=PID, ?self or ?all");
	else if (self && is_traced(c, reply))
		answer_self(c, &v, reply);
	else if (!may_change(reply))
		;
	else if (pid)
		change_named(c, &v, reply, pid);
	else if (self)
		change_self(c, &v, reply);
	else
		change_all(c, &v, reply);
}
