// SPDX-License-Identifier: GPL-2.0-only
/*
 * decode.c: the gate between bytes and the core.
 *
 * Any thread; no state. A record that passes (TTMON_DECODE_OK) has a known kind, a CPU that may index
 * a table, lengths that end inside the record, and numbers within their enums, so that later code need
 * not check them again. A record longer than its struct passes: later versions append fields. Values
 * that a program may have passed to a call (sizes, addresses, flags, device numbers, ranges that wrap)
 * are not checked here; ranges that come from the kernel or the daemon are.
 *
 * The record must be aligned to 8 bytes; the ring and the pipeline see to that.
 */
#include "daemon/core/stream/decode.h"

#include <ttmon/fns.h>

const struct ttmon_kind ttmon_kinds[TTMON_EV_MAX] = {
#define X(id, NAME, name, type, way, family, ...) \
	[id] = { sizeof(struct type), TTMON_WAY_##way, TTMON_FAMILY_##family },
	TTMON_EVENT_TABLE(X)
#undef X
};

#define X(id, NAME, name, type, way, ...)                                              \
	_Static_assert((TTMON_WAY_##way >= TTMON_WAY_FACT) == ((id) >= TTMON_EV_FACT), \
		       #NAME " has an id of events or of facts, as its way says");
TTMON_EVENT_TABLE(X)
#undef X

static bool range_wraps(uint64_t addr, uint64_t len)
{
	return addr + len < addr;
}

static bool is_terminated(const char *s, size_t n)
{
	return memchr(s, 0, n) != NULL;
}

static enum ttmon_decode_err value_if(bool bad)
{
	return bad ? TTMON_DECODE_VALUE : TTMON_DECODE_OK;
}

/* A text of len bytes must end within the bytes after the fixed part. */
static enum ttmon_decode_err check_tail(uint16_t kind, size_t size, uint64_t len, bool bad_value)
{
	if (len > size - ttmon_kinds[kind].min_size)
		return TTMON_DECODE_LENGTH;
	return value_if(bad_value);
}

/* The frames of an event whose stack was copied are followed by the number of the copy. */
static uint64_t frame_bytes(unsigned int nframes, unsigned int state)
{
	return (nframes + (state == TTMON_STACK_COPY)) * sizeof(uint64_t);
}

/* The methods of Tenstorrent have events of their own. */
static bool is_cuda_method(uint8_t method)
{
	return method < TTMON_METHOD_MAX && (method < TTMON_METHOD_TT_DRAM || method == TTMON_METHOD_CUSTOM);
}

/*
 * Checks the values of a kind whose row in the event table says so. The record e is at least as long
 * as its struct; size is its whole length in bytes.
 */
#define CHECK(name, type) \
	static enum ttmon_decode_err check_##name(const struct type *e, size_t size _unused_, uint32_t nr_cpus _unused_)

/* ---- events ---- */

CHECK(proc, ttmon_ev_proc)
{
	return value_if(e->reason >= TTMON_PROC_REASON_MAX);
}

CHECK(alloc, ttmon_ev_alloc)
{
	unsigned int state = (e->bits & TTMON_B_STACK) >> TTMON_B_STACK_SHIFT;

	return check_tail(TTMON_EV_ALLOC, size, frame_bytes(e->nframes, state),
			  e->nframes > TTMON_MAX_FRAMES || !is_cuda_method(e->method) || !ttmon_fn_name(e->fn));
}

CHECK(free, ttmon_ev_free)
{
	return value_if(!is_cuda_method(e->method) || !ttmon_fn_name(e->fn));
}

CHECK(copy, ttmon_ev_copy)
{
	return value_if(e->dir >= TTMON_DIR_MAX || !ttmon_fn_name(e->fn));
}

CHECK(copy_rect, ttmon_ev_copy_rect)
{
	return value_if(e->dir >= TTMON_DIR_MAX || !ttmon_fn_name(e->fn) || !e->rows || !e->slices);
}

CHECK(hint, ttmon_ev_hint)
{
	return value_if(e->hint > TTMON_HINT_DEVICE_PTR || !ttmon_fn_name(e->fn));
}

CHECK(reset, ttmon_ev_reset)
{
	return value_if(!ttmon_fn_name(e->fn));
}

CHECK(mmap, ttmon_ev_mmap)
{
	return value_if(range_wraps(e->addr, e->len));
}

CHECK(mremap, ttmon_ev_mremap)
{
	return value_if(range_wraps(e->new_addr, e->new_len));
}

CHECK(brk, ttmon_ev_brk)
{
	return value_if(e->brk < e->start);
}

CHECK(tag, ttmon_ev_tag)
{
	return value_if(!is_terminated(e->tag, sizeof(e->tag)));
}

CHECK(checkpoint, ttmon_ev_checkpoint)
{
	return value_if(!is_terminated(e->label, sizeof(e->label)));
}

CHECK(wait, ttmon_ev_wait)
{
	const struct ttmon_ev_wait_who *who = (const void *)e;

	if (!ttmon_fn_name(e->fn) || e->bits & ~TTMON_W_BITS)
		return TTMON_DECODE_VALUE;
	if (!(e->bits & TTMON_W_WHO))
		return TTMON_DECODE_OK;
	if (size < sizeof(*who))
		return TTMON_DECODE_LENGTH;
	if (who->nr_rows > TTMON_WHO_ROWS)
		return TTMON_DECODE_VALUE;
	for (uint32_t i = 0; i < who->nr_rows; i++)
		if (who->row[i].who.role >= TTMON_WAIT_ROLES ||
		    (who->row[i].fn && (who->row[i].fn > UINT16_MAX || !ttmon_fn_name((uint16_t)who->row[i].fn))) ||
		    !is_terminated(who->row[i].who.comm, sizeof(who->row[i].who.comm)))
			return TTMON_DECODE_VALUE;
	return TTMON_DECODE_OK;
}

CHECK(launched, ttmon_ev_launched)
{
	return value_if(e->since >= TTMON_LAUNCHED_MAX);
}

CHECK(copy_site, ttmon_ev_copy_site)
{
	return check_tail(TTMON_EV_COPY_SITE, size, frame_bytes(e->nframes, e->stack & 3),
			  e->nframes > TTMON_MAX_FRAMES || e->stack > (TTMON_STACK_CONFIRMED | TTMON_CS_CUT) ||
				  !ttmon_fn_name(e->fn));
}

/* ---- events of Tenstorrent ---- */

static bool is_tt_fn(uint16_t fn, unsigned int cls)
{
	const struct ttmon_tt_desc *d = ttmon_tt_fn(fn);

	return d && (!cls || d->cls == cls);
}

CHECK(tt_buffer, ttmon_ev_tt_buffer)
{
	return value_if(!is_tt_fn(e->fn, TTMON_TT_CLS_BUFFER) || e->base >= TTMON_TT_BASE_MAX ||
			e->dev_kind >= TTMON_TT_DEV_MAX || e->slot >= TTMON_TT_SLOTS);
}

CHECK(tt_call, ttmon_ev_tt_call)
{
	const struct ttmon_ev_tt_cb *cb = (const void *)e;

	if (!is_tt_fn(e->fn, 0) || e->dev_kind >= TTMON_TT_DEV_MAX || e->slot >= TTMON_TT_SLOTS)
		return TTMON_DECODE_VALUE;
	if (!is_tt_fn(e->fn, TTMON_TT_CLS_CB) || size == sizeof(*e))
		return TTMON_DECODE_OK;
	if (size < offsetof(struct ttmon_ev_tt_cb, range))
		return TTMON_DECODE_LENGTH;
	if (cb->nr_ranges > TTMON_TT_CORE_RANGES)
		return TTMON_DECODE_VALUE;
	return cb->nr_ranges * sizeof(cb->range[0]) > size - offsetof(struct ttmon_ev_tt_cb, range)
		       ? TTMON_DECODE_LENGTH
		       : TTMON_DECODE_OK;
}

CHECK(tt_dispatch, ttmon_ev_tt_dispatch)
{
	return value_if(!is_tt_fn(e->fn, TTMON_TT_CLS_DISPATCH) || e->kind >= TTMON_TT_DISPATCH_MAX ||
			e->dev_kind >= TTMON_TT_DEV_MAX || e->blocking > 1 || e->slot >= TTMON_TT_SLOTS);
}

CHECK(tt_program, ttmon_ev_tt_program)
{
	return value_if(!is_tt_fn(e->fn, 0) || e->nth >= e->count || e->slot >= TTMON_TT_SLOTS);
}

CHECK(tt_kernel, ttmon_ev_tt_kernel)
{
	return value_if(!is_terminated(e->name, sizeof(e->name)));
}

CHECK(tt_pin, ttmon_ev_tt_pin)
{
	return value_if(e->op >= TTMON_TT_PIN_OP_MAX);
}

/* ---- CPU time ---- */

static bool bad_who(const struct ttmon_cpu_who *who)
{
	return who->cls >= TTMON_CPU_CLASS_MAX || who->flags & ~TTMON_WHO_FLAGS || who->rmid >= TTMON_RMID_LIMIT;
}

/* The rows follow the record's fixed part. */
static enum ttmon_decode_err check_table(const struct ttmon_event *ev, size_t size, const struct ttmon_cpu_table *t)
{
	size_t fixed = ttmon_kinds[ev->kind].min_size;
	const uint8_t *row = (const uint8_t *)ev + fixed;

	if (t->nr_rows > TTMON_CPU_ROWS || (t->row_size != TTMON_CPU_ROW_SHORT && t->row_size != TTMON_CPU_ROW_FULL) ||
	    t->switched > 1 || bad_who(&t->who) || t->last_ns - t->begin_ns > NSEC_PER_MS)
		return TTMON_DECODE_VALUE;
	if ((size_t)t->nr_rows * t->row_size > size - fixed)
		return TTMON_DECODE_LENGTH;
	for (unsigned int i = 0; i < t->nr_rows; i++, row += t->row_size) {
		const struct ttmon_cpu_row *r = (const void *)row;

		if (bad_who(&r->who) || r->ns > NSEC_PER_MS)
			return TTMON_DECODE_VALUE;
	}
	return TTMON_DECODE_OK;
}

CHECK(cpu_slot, ttmon_ev_cpu_slot)
{
	if ((int64_t)(e->t.to_ns - e->t.last_ns) < 0)
		return TTMON_DECODE_VALUE;
	return check_table(&e->h, size, &e->t);
}

CHECK(cpu_open, ttmon_ev_cpu_open)
{
	if (e->of_cpu >= nr_cpus)
		return TTMON_DECODE_CPU;
	if (e->state >= TTMON_CPU_OPEN_STATE_MAX)
		return TTMON_DECODE_VALUE;
	return e->state == TTMON_CPU_OPEN_KNOWN ? check_table(&e->h, size, &e->t) : TTMON_DECODE_OK;
}

CHECK(task, ttmon_ev_task)
{
	return value_if(e->reason >= TTMON_TASK_REASON_MAX || e->cls >= TTMON_CPU_CLASS_MAX ||
			!is_terminated(e->comm, sizeof(e->comm)));
}

CHECK(rmid, ttmon_ev_rmid)
{
	return value_if(e->op >= TTMON_RMID_OP_MAX || e->rmid >= TTMON_RMID_LIMIT ||
			!e->rmid != (e->op == TTMON_RMID_NONE) || !is_terminated(e->comm, sizeof(e->comm)));
}

CHECK(rmid_set, ttmon_ev_rmid)
{
	return check_rmid(e, size, nr_cpus);
}

CHECK(rdt, ttmon_ev_rdt)
{
	bool bad = e->rmid >= TTMON_RMID_LIMIT;

	for (unsigned int i = 0; i < TTMON_RDT_VALUES; i++)
		bad |= e->state[i] >= TTMON_RDT_STATE_MAX;
	return value_if(bad);
}

CHECK(rdt_read, ttmon_ev_rdt)
{
	return check_rdt(e, size, nr_cpus);
}

CHECK(rmid_info, ttmon_ev_rmid_info)
{
	return value_if(e->backend >= TTMON_RMID_BACKEND_MAX || e->max_rmid >= TTMON_RMID_LIMIT || !e->scale ||
			e->width < 24 || e->width > 64);
}

/* ---- facts ---- */

CHECK(clock, ttmon_ev_clock)
{
	return value_if(e->capture > TTMON_CAPTURE_COMMAND || e->page_size == 0 ||
			(e->page_size & (e->page_size - 1)) || !is_terminated(e->hostname, sizeof(e->hostname)) ||
			!is_terminated(e->release, sizeof(e->release)));
}

CHECK(proc_name, ttmon_ev_text)
{
	return check_tail(TTMON_EV_PROC_NAME, size, e->len, e->what > TTMON_TEXT_UID);
}

CHECK(family, ttmon_ev_family)
{
	return value_if(e->family >= TTMON_FAMILY_MAX || e->state >= TTMON_FAMILY_STATE_MAX || e->why > 1);
}

CHECK(object, ttmon_ev_object)
{
	return check_tail(TTMON_EV_OBJECT, size, e->len, !e->id || e->build_id_len > TTMON_BUILD_ID);
}

CHECK(map, ttmon_ev_map)
{
	return check_tail(TTMON_EV_MAP, size, e->len, e->start >= e->end || e->shared > 1);
}

CHECK(symbol, ttmon_ev_symbol)
{
	return check_tail(TTMON_EV_SYMBOL, size, e->len, false);
}

CHECK(blind, ttmon_ev_blind)
{
	return value_if(e->how > TTMON_BLIND_UNREAD || e->families >> TTMON_FAMILY_MAX);
}

CHECK(gpu_use, ttmon_ev_gpu_use)
{
	return value_if(!e->size);
}

CHECK(launch_sums, ttmon_ev_launch_sums)
{
	return e->of_cpu < nr_cpus ? TTMON_DECODE_OK : TTMON_DECODE_CPU;
}

CHECK(lost, ttmon_ev_lost)
{
	if (e->stat_cpu >= nr_cpus)
		return TTMON_DECODE_CPU;
	return value_if(e->stat_kind >= TTMON_EV_FACT);
}

CHECK(tt_chip, ttmon_ev_tt_chip)
{
	return value_if(!e->index || e->arch >= TTMON_TT_ARCH_MAX || !is_terminated(e->card, sizeof(e->card)));
}

CHECK(tt_object, ttmon_ev_tt_object)
{
	return value_if(e->slot >= TTMON_TT_SLOTS || e->unprobed >> TTMON_TT_DISPATCH_MAX);
}

CHECK(tt_proc, ttmon_ev_tt_proc)
{
	return value_if(e->how >= TTMON_TT_HOW_MAX);
}

CHECK(tt_sums, ttmon_ev_tt_sums)
{
	if (e->of_cpu >= nr_cpus)
		return TTMON_DECODE_CPU;
	return value_if(e->dev_kind >= TTMON_TT_DEV_MAX);
}

CHECK(tt_mesh, ttmon_ev_tt_mesh)
{
	return check_tail(TTMON_EV_TT_MESH, size, (uint64_t)e->count * sizeof(e->dev[0]), e->count > TTMON_TT_MESH_MAX);
}

CHECK(unwound, ttmon_ev_unwound)
{
	return check_tail(TTMON_EV_UNWOUND, size, e->nframes * sizeof(e->frames[0]),
			  e->nframes > TTMON_MAX_FRAMES || e->by >= TTMON_STACK_BY_MAX ||
				  e->end >= TTMON_STACK_END_MAX);
}

static enum ttmon_decode_err check(const struct ttmon_event *ev, size_t size, uint32_t nr_cpus)
{
	switch (ev->kind) {
#define X(id, NAME, name, type, way, family, judged, ...) \
	TTMON_IF_##judged(case id : return check_##name((const struct type *)ev, size, nr_cpus);)
		TTMON_EVENT_TABLE(X)
#undef X
	default:
		return TTMON_DECODE_OK;
	}
}

enum ttmon_decode_err ttmon_decode(const void *rec, size_t size, uint32_t nr_cpus)
{
	const struct ttmon_event *ev = rec;

	if (size < sizeof(*ev) || size % sizeof(uint64_t) || size > TTMON_RECORD_MAX)
		return TTMON_DECODE_SHORT;
	if (ev->kind >= TTMON_EV_MAX || !ttmon_kinds[ev->kind].min_size)
		return TTMON_DECODE_KIND;
	if (size < ttmon_kinds[ev->kind].min_size)
		return TTMON_DECODE_SHORT;
	if (ttmon_event_is_fact(ev->kind) ? ev->cpu != TTMON_CPU_DAEMON : ev->cpu >= nr_cpus)
		return TTMON_DECODE_CPU;
	return check(ev, size, nr_cpus);
}

size_t ttmon_event_min_size(unsigned int kind)
{
	return kind < TTMON_EV_MAX ? ttmon_kinds[kind].min_size : 0;
}
