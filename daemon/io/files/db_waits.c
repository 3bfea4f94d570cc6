// SPDX-License-Identifier: GPL-2.0-only
/*
 * db_waits.c: where the time of synchronous calls went, as members of the database. Runs where
 * ttmon_db_write() runs.
 */
#include "daemon/io/files/db_waits.h"

#include "daemon/core/history/waits.h"

static const char *const flag_names[] = {
	"unobserved", "no_books", "hidden_switch", "delays", "unended", "exec", "who"
};
/* What is not a flag to the reader: members of their own say it. */
#define NO_FLAGS (TTMON_W_DELAYS | TTMON_W_WHO)

_Static_assert((1 << ARRAY_SIZE(flag_names)) - 1 == TTMON_W_BITS, "a name for each flag");

static void delays(struct ttmon_jsonw *w, bool known, const uint64_t *delay)
{
	if (!known) {
		ttmon_jsonw_key_null(w, "delays");
		return;
	}
	ttmon_jsonw_key_open(w, "delays", '{');
	for (unsigned int i = 0; i < TTMON_DELAY_MAX; i++)
		ttmon_jsonw_key_num(w, ttmon_delay_name(i), delay[i]);
	ttmon_jsonw_close(w, '}');
}

/* A part of the time, by what ran or woke; adds up to it. */
static void by(struct ttmon_jsonw *w, const char *key, bool known, const uint64_t *ns, unsigned int n,
	       const char *(*name)(unsigned int what))
{
	if (!known) {
		ttmon_jsonw_key_null(w, key);
		return;
	}
	ttmon_jsonw_key_open(w, key, '{');
	for (unsigned int i = 0; i < n; i++)
		ttmon_jsonw_key_num(w, name(i), ns[i]);
	ttmon_jsonw_close(w, '}');
}

static void divided(struct ttmon_jsonw *w, bool known, const uint64_t *runq, const uint64_t *woke)
{
	by(w, "run_queue_by", known, runq, TTMON_WAIT_RUNQ_MAX, ttmon_wait_runq_name);
	by(w, "woken_by", known, woke, TTMON_WAIT_WOKE_MAX, ttmon_wait_woke_name);
}

/* c->proc: UINT32_MAX: no single process. */
static void process_who(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_wait_culprit *c)
{
	const struct ttmon_who *who = &c->who;
	bool named = c->proc != UINT32_MAX;

	ttmon_jsonw_key_name(w, "role", named ? ttmon_wait_role_name(who->role) : NULL);
	TTMON_JSONW_KEY_IF(w, "pid", named, num, who->tgid);
	TTMON_JSONW_KEY_IF(w, "comm", named, str, who->comm);
	TTMON_JSONW_KEY_IF(w, "start_ns", named, time, who->start_ns);
	ttmon_jsonw_key_num(w, "ns", c->ns);
	if (who->role < TTMON_WAIT_ROLE_WOKE)
		return;
	ttmon_jsonw_key_name(w, "in_call", ttmon_fn_name((uint16_t)c->fn));
	ttmon_jsonw_key_num(w, "in_site", ttmon_history_wait_site_in(h, who, c->fn, c->caller));
}

static void histogram(struct ttmon_jsonw *w, const uint64_t *bucket)
{
	unsigned int n = TTMON_WAIT_BUCKETS;

	while (n && !bucket[n - 1])
		n--;
	ttmon_jsonw_key_open(w, "histogram", '[');
	for (unsigned int i = 0; i < n; i++)
		ttmon_jsonw_num(w, bucket[i]);
	ttmon_jsonw_close(w, ']');
}

static void sums(struct ttmon_jsonw *w, const struct ttmon_wait_sums *s)
{
	bool none = s->unknown == s->calls - s->unobserved;

	ttmon_jsonw_key_num(w, "calls", s->calls);
	ttmon_jsonw_key_num(w, "unobserved", s->unobserved);
	ttmon_jsonw_key_num(w, "unended", s->unended);
	ttmon_jsonw_key_num(w, "unknown", s->unknown);
	ttmon_jsonw_key_num(w, "hidden_switch", s->hidden);
	ttmon_jsonw_key_known(w, "ns", s->calls > s->unobserved, s->ns);
	ttmon_jsonw_key_known(w, "on_cpu_ns", !none, s->on_ns);
	ttmon_jsonw_key_known(w, "run_queue_ns", !none, s->runq_ns);
	ttmon_jsonw_key_known(w, "blocked_ns", !none, s->blocked_ns);
	divided(w, !none, s->runq, s->woke);
	ttmon_jsonw_key_num(w, "unknown_ns", s->unknown_ns);
	ttmon_jsonw_key_num(w, "minor_faults", s->minor);
	ttmon_jsonw_key_num(w, "major_faults", s->major);
	ttmon_jsonw_key_num(w, "voluntary_switches", s->voluntary);
	ttmon_jsonw_key_num(w, "involuntary_switches", s->involuntary);
	/* Threads that were made while the kernel counted have it, others not. */
	delays(w, s->delays && s->delays == s->calls - s->unobserved, s->delay);
	histogram(w, s->bucket);
}

void ttmon_db_waits_process(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_proc *p)
{
	const struct ttmon_wait_sums *s = ttmon_history_waits(h, p);

	if (ttmon_history_known(h, p, TTMON_FAMILY_WAIT) == TTMON_UNKNOWN) {
		ttmon_jsonw_key_null(w, "waits");
		return;
	}
	ttmon_jsonw_key_open(w, "waits", '{');
	for (unsigned int kind = 0; s && kind < TTMON_WAIT_MAX; kind++) {
		if (!s[kind].calls)
			continue;
		ttmon_jsonw_key_open(w, ttmon_wait_name(kind), '{');
		sums(w, &s[kind]);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, '}');
}

static void site_row(struct ttmon_jsonw *w, const struct ttmon_wait_site *s)
{
	bool named = s->proc != UINT32_MAX;

	ttmon_jsonw_row(w, '{');
	ttmon_jsonw_key_known(w, "process", named, s->proc);
	ttmon_jsonw_key_name(w, "fn", named ? ttmon_fn_name(s->fn) : NULL);
	ttmon_jsonw_key_name(w, "kind", named ? ttmon_wait_name(ttmon_wait_kind_of(s->fn)) : NULL);
	ttmon_jsonw_key_num(w, "site", s->site);
	sums(w, &s->sums);
	ttmon_jsonw_close(w, '}');
}

static int row_cmp(const void *pa, const void *pb)
{
	const struct ttmon_who_row *a = pa, *b = pb;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return (a->who.tgid > b->who.tgid) - (a->who.tgid < b->who.tgid);
}

/* The one that took most time first. */
static void call_who(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_wait_call *c)
{
	struct ttmon_who_row rows[TTMON_WHO_ROWS];

	memcpy(rows, c->who, sizeof(rows));
	qsort(rows, c->nr_who, sizeof(*rows), row_cmp);
	ttmon_jsonw_key_open(w, "who", '[');
	for (uint32_t i = 0; i < c->nr_who; i++) {
		const struct ttmon_wait_culprit row = { .proc = c->proc,
							.who = rows[i].who,
							.fn = rows[i].fn,
							.caller = rows[i].caller,
							.ns = rows[i].ns };

		ttmon_jsonw_row(w, '{');
		process_who(w, h, &row);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

static void call_row(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_wait_call *c)
{
	ttmon_jsonw_row(w, '{');
	ttmon_jsonw_key_num(w, "process", c->proc);
	ttmon_jsonw_key_num(w, "tid", c->tid);
	ttmon_jsonw_key_name(w, "fn", ttmon_fn_name(c->fn));
	ttmon_jsonw_key_name(w, "kind", ttmon_wait_name(ttmon_wait_kind_of(c->fn)));
	ttmon_jsonw_key_num(w, "site", ttmon_history_wait_site_of(h, c));
	ttmon_jsonw_key_time(w, "entry_ns", c->entry_ns);
	ttmon_jsonw_key_num(w, "ns", c->parts.ns);
	ttmon_jsonw_key_known(w, "on_cpu_ns", c->parts.known, c->parts.on_ns);
	ttmon_jsonw_key_known(w, "run_queue_ns", c->parts.known, c->parts.runq_ns);
	ttmon_jsonw_key_known(w, "blocked_ns", c->parts.known, c->parts.blocked_ns);
	divided(w, c->parts.known, c->parts.runq, c->parts.woke);
	call_who(w, h, c);
	ttmon_jsonw_key_num(w, "minor_faults", c->minor);
	ttmon_jsonw_key_num(w, "major_faults", c->major);
	ttmon_jsonw_key_num(w, "voluntary_switches", c->voluntary);
	ttmon_jsonw_key_num(w, "involuntary_switches", c->involuntary);
	delays(w, c->bits & TTMON_W_DELAYS, c->delay);
	ttmon_jsonw_key_open(w, "flags", '[');
	for (unsigned int i = 0; i < ARRAY_SIZE(flag_names); i++)
		if (c->bits >> i & ~NO_FLAGS >> i & 1)
			ttmon_jsonw_name(w, flag_names[i]);
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_key_int(w, "error", c->err);
	ttmon_jsonw_close(w, '}');
}

/* The longest first; of equal ones the older. */
static int call_cmp(const void *pa, const void *pb)
{
	const struct ttmon_wait_call *a = pa, *b = pb;

	if (a->parts.ns != b->parts.ns)
		return a->parts.ns > b->parts.ns ? -1 : 1;
	if (a->entry_ns != b->entry_ns)
		return a->entry_ns < b->entry_ns ? -1 : 1;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

static void who_rows(struct ttmon_jsonw *w, const struct ttmon_history *h)
{
	const struct ttmon_wait_culprit *rows;
	size_t n = ttmon_history_wait_who(h, &rows);

	ttmon_jsonw_key_open(w, "who", '[');
	for (size_t i = 0; i < n; i++) {
		bool named = rows[i].proc != UINT32_MAX;

		if (!rows[i].calls)
			continue;
		ttmon_jsonw_row(w, '{');
		ttmon_jsonw_key_known(w, "process", named, rows[i].proc);
		process_who(w, h, &rows[i]);
		ttmon_jsonw_key_num(w, "calls", rows[i].calls);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

int ttmon_db_waits(struct ttmon_jsonw *w, const struct ttmon_history *h)
{
	const struct ttmon_wait_site *sites;
	const struct ttmon_wait_call *calls;
	size_t nr_sites = ttmon_history_wait_sites(h, &sites), nr_calls = ttmon_history_wait_calls(h, &calls);
	_cleanup_free_ struct ttmon_wait_call *sorted = malloc((nr_calls + 1) * sizeof(*sorted));

	if (!sorted)
		return -ENOMEM;
	if (nr_calls)
		memcpy(sorted, calls, nr_calls * sizeof(*sorted));
	qsort(sorted, nr_calls, sizeof(*sorted), call_cmp);
	ttmon_jsonw_key_open(w, "waits", '{');
	ttmon_jsonw_key_open(w, "sites", '[');
	for (size_t i = 0; i < nr_sites; i++)
		if (sites[i].sums.calls)
			site_row(w, &sites[i]);
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_line(w);
	ttmon_jsonw_key_open(w, "calls", '[');
	for (size_t i = 0; i < nr_calls; i++)
		call_row(w, h, &sorted[i]);
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_line(w);
	who_rows(w, h);
	ttmon_jsonw_close(w, '}');
	return 0;
}
