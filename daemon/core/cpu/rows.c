// SPDX-License-Identifier: GPL-2.0-only
/*
 * rows.c: the rows of the slot that is being closed. Part of core/cpu (hot thread, pure).
 *
 * An entry holds the number of its row in this slot, so that adding needs no search. The fixed rows
 * always have room; a process without room for a row is added to the row of class OTHER.
 */
#include "daemon/core/cpu/cpu_int.h"

#define ROWS_MIN 64u /* a power of two */
#define MOST_NS	 ((1ULL << 62) - 1)

int ttmon_cpu_rows_init(struct cpu_rows *rs)
{
	rs->gen = 1;
	rs->v = calloc(ROWS_MIN, sizeof(*rs->v));
	rs->keys = calloc(ROWS_MIN, sizeof(*rs->keys));
	rs->out = calloc(ROWS_MIN, sizeof(*rs->out));
	if (!rs->v || !rs->keys || !rs->out)
		return -ENOMEM;
	rs->cap = ROWS_MIN;
	return 0;
}

void ttmon_cpu_rows_fini(struct cpu_rows *rs)
{
	free(rs->v);
	free(rs->keys);
	free(rs->out);
}

/* Memory that the close needs is allocated here, where a failure can still be handled. */
static int grow(struct cpu_rows *rs)
{
	uint32_t cap = rs->cap * 2;
	struct cpu_row *v = realloc(rs->v, cap * sizeof(*v));
	struct cpu_row_key *keys;
	struct ttmon_slot_row *out;

	if (!v)
		return -ENOMEM;
	rs->v = v;
	keys = realloc(rs->keys, cap * sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	rs->keys = keys;
	out = realloc(rs->out, cap * sizeof(*out));
	if (!out)
		return -ENOMEM;
	rs->out = out;
	rs->cap = cap;
	return 0;
}

/*
 * Member by member: the compiler would clear a whole structure with a string instruction, the slowest
 * step of this function. finish_row() sets the rest.
 */
static void clear(struct ttmon_slot_row *r)
{
	r->rmid = 0;
	r->flags = 0;
	r->cpu_ns = 0;
	for (unsigned int i = 0; i < TTMON_CTR_MAX; i++)
		r->ctr[i] = 0;
	r->llc_bytes = 0;
	r->mbm_total = 0;
	r->mbm_local = 0;
	r->rdt_ns = 0;
	r->copies = 0;
	r->copy_bytes = 0;
	r->switches = 0;
	r->pad = 0;
}

struct ttmon_slot_row *ttmon_cpu_rows_get(struct ttmon_cpu *c, uint32_t proc)
{
	struct cpu_rows *rs = &c->rows;
	struct cpu_proc *p = &c->procs.v[proc];
	struct cpu_row *row;

	if (p->row_gen == rs->gen)
		return &rs->v[p->row].r;
	if (proc >= PROC_FIXED && rs->n + PROC_FIXED >= rs->cap && grow(rs) < 0) {
		c->totals.procs_dropped++;
		return ttmon_cpu_rows_get(c, PROC_OTHER);
	}
	p->row_gen = rs->gen;
	p->row = rs->n;
	row = &rs->v[rs->n++];
	row->proc = proc;
	clear(&row->r);
	return &row->r;
}

static void add_late(struct ttmon_cpu *c, struct ttmon_slot_row *r, const __u64 *late)
{
	for (unsigned int i = 0; i < TTMON_CTR_MAX; i++) {
		c->totals.late_ctr[i] += late[i];
		if (late[i])
			r->flags |= TTMON_ROW_CTR_LATE;
	}
}

static bool any_of(const __u64 *ctr)
{
	uint64_t any = 0;

	for (unsigned int i = 0; i < TTMON_CTR_MAX; i++)
		any |= ctr[i];
	return any != 0;
}

void ttmon_cpu_rows_put(struct ttmon_cpu *c, const struct ttmon_cpu_who *who, const struct cpu_piece *piece)
{
	uint32_t proc = PROC_IDLE;
	struct ttmon_slot_row *r;

	if (who->cls != TTMON_CPU_IDLE)
		proc = ttmon_cpu_procs_get(c, who->tgid, who->start_ns,
					   who->cls == TTMON_CPU_KERNEL ? TTMON_ROW_KERNEL : TTMON_ROW_USER);
	c->at.covered_ns += piece->ns;
	c->at.ns[who->cls < TTMON_CPU_CLASS_MAX ? who->cls : TTMON_CPU_USER] += piece->ns;
	c->totals.told_ns += piece->ns + piece->late_ns;
	if (piece->late_ns) {
		c->totals.late_ns += piece->late_ns;
		c->procs.v[proc].pub.cpu_ns += piece->late_ns;
	}
	if (!piece->ns && !piece->switches && !(piece->ctr && any_of(piece->ctr)))
		return;
	r = ttmon_cpu_rows_get(c, proc);
	r->cpu_ns += piece->ns;
	r->switches = piece->switches > UINT32_MAX - r->switches ? UINT32_MAX : r->switches + piece->switches;
	r->flags |= piece->flags;
	if (who->flags & TTMON_WHO_CTR_UNKNOWN)
		r->flags |= TTMON_ROW_CTR_UNKNOWN;
	if (who->flags & TTMON_WHO_SCALED)
		r->flags |= TTMON_ROW_CTR_SCALED;
	/* Not from a late piece: another process may have that RMID now. */
	if (who->rmid && proc >= PROC_FIXED && (piece->ns || !piece->late_ns))
		r->rmid = who->rmid;
	for (unsigned int i = 0; piece->ctr && i < TTMON_CTR_MAX; i++)
		r->ctr[i] += piece->ctr[i];
	if (piece->late_ctr)
		add_late(c, r, piece->late_ctr);
}

static int by_key(const void *va, const void *vb)
{
	const struct cpu_row_key *a = va, *b = vb;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->row < b->row ? -1 : 1;
}

/*
 * Rows lie in the order in which their processes first appeared, which is the same for the same
 * stream: equal keys need no further rule.
 */
static void sort(struct cpu_row_key *v, uint32_t n)
{
	if (n > 32) {
		qsort(v, n, sizeof(*v), by_key);
		return;
	}
	for (uint32_t i = 1; i < n; i++) {
		struct cpu_row_key key = v[i];
		uint32_t k = i;

		for (; k > 0 && key.key < v[k - 1].key; k--)
			v[k] = v[k - 1];
		v[k] = key;
	}
}

/* Users and kernel threads before unassigned, other, idle. */
static uint64_t rank_of(uint32_t proc)
{
	switch (proc) {
	case PROC_UNASSIGNED:
		return 1;
	case PROC_OTHER:
		return 2;
	case PROC_IDLE:
		return 3;
	default:
		return 0;
	}
}

static bool has_rdt(const struct ttmon_slot_row *r)
{
	return r->rdt_ns || r->mbm_total || r->mbm_local || r->flags & TTMON_ROW_LLC_VALID;
}

static void finish_rdt(struct cpu_proc *p, const struct ttmon_slot_row *r)
{
	p->pub.mbm_total = ttmon_add_sat(p->pub.mbm_total, r->mbm_total);
	p->pub.mbm_local = ttmon_add_sat(p->pub.mbm_local, r->mbm_local);
	p->pub.rdt_ns = ttmon_add_sat(p->pub.rdt_ns, r->rdt_ns);
	if (r->flags & TTMON_ROW_LLC_VALID)
		p->pub.llc_bytes = r->llc_bytes;
}

/* Identity of the process as of the slot's end, and what the process's sums get from the row. */
static void finish_row(struct ttmon_cpu *c, struct cpu_row *row)
{
	struct cpu_proc *p = &c->procs.v[row->proc];
	struct ttmon_slot_row *r = &row->r;

	r->start_ns = p->pub.start_ns;
	r->tgid = p->pub.tgid;
	r->cls = p->pub.cls;
	if (r->rmid)
		ttmon_cpu_procs_ran_under(c, row->proc, r->rmid);
	else
		r->rmid = ttmon_cpu_procs_rmid(c, p);
	memcpy(r->comm, p->pub.comm, sizeof(r->comm));
	r->pinned_bytes = p->pub.pinned_bytes;
	if (p->ended)
		r->flags |= TTMON_ROW_ENDED;

	p->heard_ns = c->at.end_ns;
	p->pub.cpu_ns += r->cpu_ns;
	p->pub.switches += r->switches;
	p->pub.flags |= r->flags;
	for (unsigned int i = 0; i < TTMON_CTR_MAX; i++) {
		p->pub.ctr[i] += r->ctr[i];
		c->totals.ctr[i] += r->ctr[i];
	}
	if (r->copies) {
		p->pub.copies += r->copies;
		p->pub.copy_bytes = ttmon_add_sat(p->pub.copy_bytes, r->copy_bytes);
	}
	if (has_rdt(r))
		finish_rdt(p, r);
}

size_t ttmon_cpu_rows_close(struct ttmon_cpu *c, bool *rdt, const struct ttmon_slot_row **ret)
{
	struct cpu_rows *rs = &c->rows;
	uint32_t n = rs->n;

	*rdt = false;
	for (uint32_t i = 0; i < n; i++) {
		struct cpu_row *row = &rs->v[i];

		finish_row(c, row);
		rs->keys[i].key = rank_of(row->proc) << 62 | (MOST_NS - MIN(row->r.cpu_ns, MOST_NS));
		rs->keys[i].row = i;
		*rdt |= has_rdt(&row->r);
	}
	sort(rs->keys, n);
	for (uint32_t i = 0; i < n; i++)
		memcpy(&rs->out[i], &rs->v[rs->keys[i].row].r, sizeof(rs->out[i]));
	rs->n = 0;
	rs->gen++;
	*ret = rs->out;
	return n;
}
