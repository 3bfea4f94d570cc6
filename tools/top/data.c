// SPDX-License-Identifier: GPL-2.0-only
/*
 * data.c: reads the service's sums and computes their difference. No terminal here. The data of the
 * service is validated.
 */
#include "lib/os/clock.h"
#include "lib/read/client.h"
#include "tools/cli/show.h"
#include "tools/top/top.h"

static const char *const members[TTMON_TOP_FIGURES] = {
	[TTMON_TOP_CPU] = "cpu_ns",
	[TTMON_TOP_SWITCHES] = "switches",
	[TTMON_TOP_CYCLES] = "cycles",
	[TTMON_TOP_INSTRUCTIONS] = "instructions",
	[TTMON_TOP_MISSES] = "llc_misses",
	[TTMON_TOP_REFS] = "llc_references",
	[TTMON_TOP_MBM] = "mbm_total_bytes",
	[TTMON_TOP_COPIES] = "copies",
	[TTMON_TOP_COPIED] = "copy_bytes",
	[TTMON_TOP_WAIT] = "wait_ns",
	[TTMON_TOP_WAIT_MISSED] = "wait_missed",
	[TTMON_TOP_CHIP] = "busy_ns",
	[TTMON_TOP_CHIP_ERROR] = "bounded_error_ns",
	[TTMON_TOP_CHIP_UNBOUNDED] = "unbounded_runs",
	[TTMON_TOP_CHIP_MISSED] = "missed_runs",
	[TTMON_TOP_LLC] = "llc_bytes",
	[TTMON_TOP_PINNED] = "pinned_bytes",
	[TTMON_TOP_RMID] = "rmid",
};

static const char *const families[TTMON_TOP_FAMILIES] = {
	[TTMON_TOP_FAMILY_CPU] = "cpu",		  [TTMON_TOP_FAMILY_TRANSFER] = "transfer",
	[TTMON_TOP_FAMILY_ALLOC] = "alloc",	  [TTMON_TOP_FAMILY_TENSTORRENT] = "tenstorrent",
	[TTMON_TOP_FAMILY_DISPATCH] = "dispatch", [TTMON_TOP_FAMILY_WAIT] = "wait",
};

const char *ttmon_top_family_name(unsigned int family)
{
	return families[family];
}

void ttmon_top_fini(struct ttmon_top *t)
{
	free(t->procs);
	*t = (struct ttmon_top){ 0 };
}

/* ---- reading ---- */

int ttmon_top_by_identity(const void *a, const void *b)
{
	const struct ttmon_top_proc *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

/* Returns UNKNOWN if the member is null, missing, or not a valid sum. */
static uint64_t figure(const json_t *o, const char *member)
{
	const json_t *value = json_object_get(o, member);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return TTMON_TOP_UNKNOWN;
	return (uint64_t)json_integer_value(value);
}

static void no_process(struct ttmon_top_proc *p, enum ttmon_top_class cls, const char *name)
{
	p->pid = p->start_ns = 0;
	p->cls = cls;
	p->v[TTMON_TOP_RMID] = TTMON_TOP_UNKNOWN;
	snprintf(p->comm, sizeof(p->comm), "%s", name);
}

/*
 * Reads the sums. A sum that missed a part is read as it is: the difference determines whether it is a
 * lower bound.
 */
static void begin_sums(const json_t *o, const struct ttmon_top *t, struct ttmon_top_proc *p)
{
	bool traced = ttmon_show_bool(o, "traced");

	/* An older service does not have this member, and always sends all figures. */
	if (!json_object_get(o, "traced"))
		return;

	for (unsigned int i = 0; i < TTMON_TOP_SUMS; i++) {
		bool measured = i == TTMON_TOP_MBM || i >= TTMON_TOP_WAIT_MISSED ? false
				: i == TTMON_TOP_COPIES || i == TTMON_TOP_COPIED ? traced
				: i == TTMON_TOP_WAIT				 ? traced && p->pid
				: i <= TTMON_TOP_SWITCHES			 ? true
										 : t->counters;

		if (measured && json_is_null(json_object_get(o, members[i])))
			p->v[i] = 0;
	}
}

/*
 * Some pinned memory may be missing: it was there before its calls were traced, or was released in a
 * coverage gap.
 */
static bool is_least_pinned(const struct ttmon_top *t, const struct ttmon_top_proc *p)
{
	for (unsigned int f = TTMON_TOP_FAMILY_ALLOC; f <= TTMON_TOP_FAMILY_TENSTORRENT; f++)
		if ((t->seen[f].off_ns || t->seen[f].missed) && t->seen[f].since_ns > p->start_ns)
			return true;
	return p->probed_ns != 0;
}

static bool is_work(unsigned int figure)
{
	return figure >= TTMON_TOP_CHIP && figure <= TTMON_TOP_CHIP_MISSED;
}

static void parse_proc(const json_t *o, const struct ttmon_top *t, struct ttmon_top_proc *p)
{
	const char *cls = ttmon_show_str(o, "class");

	p->pid = ttmon_show_u64(o, "pid");
	p->start_ns = ttmon_show_u64(o, "start_ns");
	p->ppid = ttmon_show_u64(o, "ppid");
	p->cls = !strcmp(cls, "kernel")	      ? TTMON_TOP_KERNEL
		 : !strcmp(cls, "unassigned") ? TTMON_TOP_UNASSIGNED
		 : !strcmp(cls, "other")      ? TTMON_TOP_OTHER
					      : TTMON_TOP_USER;
	ttmon_fmt_text(p->comm, sizeof(p->comm), ttmon_show_str(o, "comm"));
	p->ended = ttmon_show_bool(o, "ended");
	p->complete = ttmon_show_bool(o, "counters_complete");
	p->probed_ns = ttmon_show_u64(o, "probed_ns");
	for (unsigned int i = 0; i < TTMON_TOP_FIGURES; i++)
		p->v[i] = figure(is_work(i) ? json_object_get(o, "work") : o, members[i]);
	begin_sums(o, t, p);
	p->least[TTMON_TOP_PINNED] =
		p->v[TTMON_TOP_PINNED] && p->v[TTMON_TOP_PINNED] != TTMON_TOP_UNKNOWN && is_least_pinned(t, p);
	if (p->cls == TTMON_TOP_UNASSIGNED)
		no_process(p, p->cls, "(unassigned)");
}

/* A service without families in its answer is taken to trace everything. */
static void parse_family(const json_t *doc, unsigned int family, struct ttmon_top_seen *f)
{
	const json_t *o = json_object_get(json_object_get(doc, "families"), families[family]);

	if (!json_is_object(o))
		return;
	snprintf(f->state, sizeof(f->state), "%s", ttmon_show_str(o, "state"));
	snprintf(f->why, sizeof(f->why), "%s", ttmon_show_str(o, "why"));
	f->from_ns = ttmon_show_u64(o, "from_ns");
	f->since_ns = figure(o, "seen_since_ns");
	f->off_ns = ttmon_show_u64(o, "off_ns");
	f->missed = ttmon_show_u64(o, "missed");
}

int ttmon_top_parse(const json_t *doc, struct ttmon_top *ret)
{
	const json_t *procs = json_object_get(doc, "processes"), *gone = json_object_get(doc, "gone"), *o;
	struct ttmon_top t = {
		.since_ns = ttmon_show_u64(doc, "since_ns"),
		.now_ns = ttmon_show_u64(doc, "now_ns"),
		.cpus = figure(json_object_get(doc, "sums"), "cpus"),
		.user_ns = ttmon_show_u64(doc, "sums.user_ns"),
		.kernel_ns = ttmon_show_u64(doc, "sums.kernel_ns"),
		.idle_ns = ttmon_show_u64(doc, "sums.idle_ns"),
		.missing_ns = ttmon_show_u64(doc, "sums.missing_ns"),
		.counters = ttmon_show_bool(doc, "counters"),
		.rdt = ttmon_show_bool(doc, "rdt"),
	};
	size_t i, n = 0;

	if (!json_is_array(procs))
		return -EBADMSG;
	t.procs = calloc(json_array_size(procs) + 1, sizeof(*t.procs));
	if (!t.procs)
		return -ENOMEM;
	for (unsigned int f = 0; f < TTMON_TOP_FAMILIES; f++)
		parse_family(doc, f, &t.seen[f]);
	json_array_foreach(procs, i, o)
	{
		struct ttmon_top_proc *p = &t.procs[t.n];

		if (!json_is_object(o))
			continue;
		parse_proc(o, &t, p);
		t.has_work |= p->v[TTMON_TOP_CHIP] != TTMON_TOP_UNKNOWN;
		t.has_wait |= json_object_get(o, members[TTMON_TOP_WAIT]) != NULL;
		t.has_rmid |= p->v[TTMON_TOP_RMID] != TTMON_TOP_UNKNOWN;
		/* The idle task is shown in the head. */
		if (p->cls == TTMON_TOP_OTHER || (!p->pid && p->cls != TTMON_TOP_UNASSIGNED))
			continue;
		t.n++;
	}
	qsort(t.procs, t.n, sizeof(*t.procs), ttmon_top_by_identity);
	/* There must be one row for each identity: the difference relies on it. */
	for (i = 0; i < t.n; i++)
		if (!n || ttmon_top_by_identity(&t.procs[n - 1], &t.procs[i]))
			t.procs[n++] = t.procs[i];
	t.n = n;
	parse_proc(gone, &t, &t.gone);
	no_process(&t.gone, TTMON_TOP_OTHER, "(ended)");
	*ret = t;
	return 0;
}

/* The socket is a local one, so the service has the same clock. */
static void find_clock(struct ttmon_top *t)
{
	t->real_offset_ns = (int64_t)(ttmon_clock_ns(CLOCK_REALTIME) - ttmon_mono_ns());
}

int ttmon_top_read(const char *socket, struct ttmon_top *ret)
{
	_cleanup_(ttmon_client_reply_fini) struct ttmon_client_reply reply = { 0 };
	json_t *doc = NULL;
	int err = ttmon_client_fetch(socket, "/v1/processes", &reply);

	if (err)
		return err;
	err = ttmon_client_json(&reply, &doc);
	if (err)
		return err;
	err = ttmon_top_parse(doc, ret);
	if (!err)
		find_clock(ret);
	if (err)
		fprintf(stderr, "ttmon top: %s\n",
			err == -EBADMSG ? "the service sent no list of processes" : strerror(-err));
	json_decref(doc);
	return err;
}

int ttmon_top_read_quietly(const char *socket, struct ttmon_top *ret)
{
	_cleanup_(ttmon_client_reply_fini) struct ttmon_client_reply reply = { 0 };
	json_t *doc;
	int err = ttmon_client_get(socket, "/v1/processes", &reply);

	if (err)
		return err;
	if (reply.status != 200)
		return reply.status == 404 ? -ENODATA : -EREMOTEIO;
	doc = json_loadb(reply.body, reply.len, 0, NULL);
	err = doc ? ttmon_top_parse(doc, ret) : -EBADMSG;
	if (!err)
		find_clock(ret);
	json_decref(doc);
	return err;
}

/* ---- the difference ---- */

/* Sums only grow; a smaller one was started again from 0. */
static uint64_t since(uint64_t from, uint64_t to)
{
	return to >= from ? to - from : to;
}

/* A process that did something before its start time was known is listed with start 0. */
static size_t find(const struct ttmon_top *t, const bool *seen, const struct ttmon_top_proc *p)
{
	struct ttmon_top_proc key = { .pid = p->pid, .start_ns = p->start_ns };
	const struct ttmon_top_proc *at;

	if (!t->n)
		return 0;
	at = bsearch(&key, t->procs, t->n, sizeof(key), ttmon_top_by_identity);
	if (!at && p->pid) {
		key.start_ns = 0;
		at = bsearch(&key, t->procs, t->n, sizeof(key), ttmon_top_by_identity);
		if (at && seen[at - t->procs])
			at = NULL;
	}
	return at ? (size_t)(at - t->procs) : t->n;
}

static void add(struct ttmon_top_proc *to, const struct ttmon_top_proc *p)
{
	for (unsigned int k = 0; k < TTMON_TOP_RMID; k++)
		if (p->v[k] != TTMON_TOP_UNKNOWN) {
			to->v[k] = to->v[k] == TTMON_TOP_UNKNOWN ? p->v[k] : to->v[k] + p->v[k];
			to->least[k] |= p->least[k];
		}
}

static void unknown(struct ttmon_top_proc *p)
{
	for (unsigned int k = 0; k < TTMON_TOP_FIGURES; k++)
		p->v[k] = TTMON_TOP_UNKNOWN;
}

bool ttmon_top_did_anything(const struct ttmon_top_proc *p)
{
	for (unsigned int k = 0; k < TTMON_TOP_SUMS; k++)
		if (p->v[k] && p->v[k] != TTMON_TOP_UNKNOWN)
			return true;
	return false;
}

/* Returns how much the service saw of a family between two readings. */
static enum ttmon_top_known between(const struct ttmon_top *from, const struct ttmon_top *to, unsigned int family)
{
	const struct ttmon_top_seen *a = &from->seen[family], *b = &to->seen[family];

	if (b->off_ns <= a->off_ns && b->missed <= a->missed)
		return TTMON_TOP_ALL;
	return b->off_ns - MIN(a->off_ns, b->off_ns) >= since(from->now_ns, to->now_ns) ? TTMON_TOP_NOTHING
											: TTMON_TOP_AT_LEAST;
}

/* A lower bound of 0 says nothing, so it becomes unknown. */
static void lower(struct ttmon_top_proc *p, unsigned int figure, enum ttmon_top_known known)
{
	if (known == TTMON_TOP_ALL || p->v[figure] == TTMON_TOP_UNKNOWN)
		return;
	if (known == TTMON_TOP_NOTHING || !p->v[figure])
		p->v[figure] = TTMON_TOP_UNKNOWN;
	else
		p->least[figure] = true;
}

/* If a run was dropped, or its time is not known, the sum of the others is a lower bound. */
static void judge_work(const struct ttmon_top *d, struct ttmon_top_proc *p)
{
	enum ttmon_top_known known = MAX(d->known[TTMON_TOP_FAMILY_TENSTORRENT], d->known[TTMON_TOP_FAMILY_DISPATCH]);

	if (p->v[TTMON_TOP_CHIP] == TTMON_TOP_UNKNOWN)
		return;
	if (p->v[TTMON_TOP_CHIP_MISSED])
		known = MAX(known, TTMON_TOP_AT_LEAST);
	lower(p, TTMON_TOP_CHIP, known);
	if (p->v[TTMON_TOP_CHIP] == TTMON_TOP_UNKNOWN || p->v[TTMON_TOP_CHIP_UNBOUNDED])
		p->v[TTMON_TOP_CHIP_ERROR] = TTMON_TOP_UNKNOWN;
}

/* Determines what is known of each figure of a process. from_ns: start of the interval. */
static void judge(const struct ttmon_top *d, struct ttmon_top_proc *p, uint64_t from_ns)
{
	static const enum ttmon_top_figure cpu[] = { TTMON_TOP_CPU,	     TTMON_TOP_SWITCHES, TTMON_TOP_CYCLES,
						     TTMON_TOP_INSTRUCTIONS, TTMON_TOP_MISSES,	 TTMON_TOP_REFS };
	enum ttmon_top_known copies = d->known[TTMON_TOP_FAMILY_TRANSFER], waits = d->known[TTMON_TOP_FAMILY_WAIT];

	/* The probes of this process became active within the interval. */
	if (p->probed_ns > from_ns) {
		copies = MAX(copies, TTMON_TOP_AT_LEAST);
		waits = MAX(waits, TTMON_TOP_AT_LEAST);
	}
	if (p->v[TTMON_TOP_WAIT_MISSED] && p->v[TTMON_TOP_WAIT_MISSED] != TTMON_TOP_UNKNOWN)
		waits = MAX(waits, TTMON_TOP_AT_LEAST);
	for (size_t i = 0; i < ARRAY_SIZE(cpu); i++)
		lower(p, cpu[i], d->known[TTMON_TOP_FAMILY_CPU]);
	lower(p, TTMON_TOP_COPIES, copies);
	lower(p, TTMON_TOP_COPIED, copies);
	lower(p, TTMON_TOP_WAIT, waits);
	judge_work(d, p);
	if (d->known[TTMON_TOP_FAMILY_CPU] != TTMON_TOP_ALL)
		p->complete = false;
}

static void judge_all(struct ttmon_top *d, uint64_t from_ns)
{
	d->cpu_least = d->known[TTMON_TOP_FAMILY_CPU] == TTMON_TOP_AT_LEAST;
	if (d->known[TTMON_TOP_FAMILY_CPU] == TTMON_TOP_NOTHING)
		d->cpus = d->user_ns = d->kernel_ns = d->idle_ns = d->missing_ns = TTMON_TOP_UNKNOWN;
	for (size_t i = 0; i < d->n; i++)
		judge(d, &d->procs[i], from_ns);
}

/*
 * Adds the processes that ended and are no longer kept: their sums are now part of `gone`, including
 * what they had before the first reading. seen: the rows of the first reading that are in the second.
 */
static void add_gone(const struct ttmon_top *from, const struct ttmon_top *to, const bool *seen, struct ttmon_top *d)
{
	struct ttmon_top_proc before = from->gone, *row = &d->procs[d->n];

	for (size_t i = 0; i < from->n; i++)
		if (!seen[i])
			add(&before, &from->procs[i]);
	*row = to->gone;
	for (unsigned int k = 0; k < TTMON_TOP_SUMS; k++)
		if (row->v[k] != TTMON_TOP_UNKNOWN && before.v[k] != TTMON_TOP_UNKNOWN)
			row->v[k] = row->v[k] > before.v[k] ? row->v[k] - before.v[k] : 0;
	row->v[TTMON_TOP_LLC] = row->v[TTMON_TOP_PINNED] = TTMON_TOP_UNKNOWN;
	d->n += ttmon_top_did_anything(row);
}

static void sum_up(struct ttmon_top *d)
{
	enum ttmon_top_known cpu = d->known[TTMON_TOP_FAMILY_CPU];

	unknown(&d->all);
	for (size_t i = 0; i < d->n; i++) {
		const struct ttmon_top_proc *p = &d->procs[i];

		bool ran = p->v[TTMON_TOP_CPU] && p->v[TTMON_TOP_CPU] != TTMON_TOP_UNKNOWN;

		add(&d->all, p);
		if (p->cls != TTMON_TOP_USER)
			continue;
		d->known_procs += !p->ended || ran;
		d->running += ran;
	}
	/* Counts processes that may have run without being reported. */
	if (cpu == TTMON_TOP_NOTHING)
		d->running = TTMON_TOP_UNKNOWN;
	lower(&d->all, TTMON_TOP_SWITCHES, cpu);
	lower(&d->all, TTMON_TOP_COPIED, d->known[TTMON_TOP_FAMILY_TRANSFER]);
	lower(&d->all, TTMON_TOP_WAIT, d->known[TTMON_TOP_FAMILY_WAIT]);
}

int ttmon_top_diff(const struct ttmon_top *from, const struct ttmon_top *to, struct ttmon_top *ret)
{
	struct ttmon_top none = { .now_ns = to->since_ns, .since_ns = to->since_ns };
	_cleanup_free_ bool *seen = NULL;
	struct ttmon_top d = *to;

	unknown(&none.gone);
	if (from->since_ns != to->since_ns)
		from = &none;
	seen = calloc(from->n + 1, sizeof(*seen));
	d.procs = calloc(to->n + 1, sizeof(*d.procs));
	if (!seen || !d.procs) {
		free(d.procs);
		return -ENOMEM;
	}
	d.now_ns = since(from->now_ns, to->now_ns);
	d.user_ns = since(from->user_ns, to->user_ns);
	d.kernel_ns = since(from->kernel_ns, to->kernel_ns);
	d.idle_ns = since(from->idle_ns, to->idle_ns);
	d.missing_ns = since(from->missing_ns, to->missing_ns);
	for (size_t i = 0; i < to->n; i++) {
		const struct ttmon_top_proc *old;
		struct ttmon_top_proc *p = &d.procs[i];
		size_t at = find(from, seen, &to->procs[i]);

		*p = to->procs[i];
		if (at == from->n)
			continue;
		old = &from->procs[at];
		seen[at] = true;
		for (unsigned int k = 0; k < TTMON_TOP_SUMS; k++)
			if (p->v[k] != TTMON_TOP_UNKNOWN && old->v[k] != TTMON_TOP_UNKNOWN)
				p->v[k] = since(old->v[k], p->v[k]);
	}
	add_gone(from, to, seen, &d);
	for (unsigned int f = 0; f < TTMON_TOP_FAMILIES; f++)
		d.known[f] = between(from, to, f);
	judge_all(&d, from->now_ns);
	sum_up(&d);
	*ret = d;
	return 0;
}
