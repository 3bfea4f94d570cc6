// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/core/stream/listq.h"

/*
 * Sets when the reading of the record's list began, or when the launch that it is about was made;
 * false: it is neither kind of record.
 */
static bool read_at(const struct ttmon_event *ev, uint64_t *from_ns)
{
	if (ev->kind == TTMON_EV_MAPS_DONE) {
		*from_ns = ((const struct ttmon_ev_maps_done *)ev)->from_ns;
		return true;
	}
	*from_ns = ev->ts_ns;
	return ev->kind == TTMON_EV_GPU_USE || (ev->kind == TTMON_EV_MAP && !ev->tid);
}

static size_t find(const struct ttmon_listq *q, uint32_t tgid)
{
	size_t i = 0;

	while (i < q->nr_procs && q->procs[i].tgid != tgid)
		i++;
	return i;
}

static int reserve(struct ttmon_listq *q, size_t need)
{
	size_t cap = q->cap ? q->cap : 65536;
	char *v;

	if (q->off == q->len)
		q->off = q->len = 0;
	if (q->len + need <= q->cap)
		return 0;
	if (q->off) {
		memmove(q->v, q->v + q->off, q->len - q->off);
		q->len -= q->off;
		q->off = 0;
	}
	while (cap < q->len + need)
		cap *= 2;
	if (cap <= q->cap)
		return 0;
	v = cap > TTMON_LISTQ_BYTES ? NULL : realloc(q->v, cap);
	if (!v)
		return -ENOMEM;
	q->v = v;
	q->cap = cap;
	return 0;
}

bool ttmon_listq_put(struct ttmon_listq *q, const struct ttmon_event *ev, size_t size, bool known)
{
	bool list = ev->kind != TTMON_EV_GPU_USE;
	uint64_t from_ns, n = size;
	size_t i;

	if (!read_at(ev, &from_ns))
		return false;
	/* The rest of a list is treated as its beginning was. */
	i = find(q, ev->tgid);
	if (list && i == q->nr_procs && (!known || i == TTMON_LISTQ_PROCS))
		return false;
	if (reserve(q, sizeof(n) + size))
		return false;
	memcpy(q->v + q->len, &n, sizeof(n));
	memcpy(q->v + q->len + sizeof(n), ev, size);
	q->len += sizeof(n) + size;
	if (!list)
		return true;
	if (i == q->nr_procs) {
		q->procs[i].tgid = ev->tgid;
		q->procs[i].records = 0;
		q->nr_procs++;
	}
	q->procs[i].records++;
	return true;
}

const struct ttmon_event *ttmon_listq_next(struct ttmon_listq *q, const uint64_t *before_ns, size_t *size)
{
	const struct ttmon_event *ev;
	uint64_t n, from_ns;
	size_t i;

	if (q->off == q->len)
		return NULL;
	memcpy(&n, q->v + q->off, sizeof(n));
	ev = (const void *)(q->v + q->off + sizeof(n));
	if (before_ns && read_at(ev, &from_ns) && ttmon_before(*before_ns, from_ns))
		return NULL;
	i = ev->kind == TTMON_EV_GPU_USE ? q->nr_procs : find(q, ev->tgid);
	if (i < q->nr_procs && !--q->procs[i].records)
		q->procs[i] = q->procs[--q->nr_procs];
	q->off += sizeof(n) + n;
	*size = n;
	return ev;
}

void ttmon_listq_fini(struct ttmon_listq *q)
{
	free(q->v);
	*q = (struct ttmon_listq){ 0 };
}
