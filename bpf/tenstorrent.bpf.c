// SPDX-License-Identifier: GPL-2.0-only
/*
 * tenstorrent.bpf.c: the memory of tt-metal and the records of its real-time profiler.
 *
 *   tt_buffer    functions with a Buffer as argument: its words in memory, and those of its device
 *   tt_call      other functions with arguments about memory, devices and clocks
 *   tt_program   the profiler's records: start and end of a program on a device, and its kernels once
 *
 * This file interprets words only as far as it must to find the next ones. core/tt/layout.c and
 * core/dispatch/record.c decode them.
 */
#include "tt.bpf.h"

char LICENSE[] SEC("license") = "GPL";

/* ---- buffers ---- */

struct tt_dev {
	u64 w[TTMON_TT_DEVICE_WORDS];
};

SUBPROG u32 read_device(const struct tt_hit *h, u64 ptr, struct tt_dev *d)
{
	if (!h || !d || !is_object(ptr) || bpf_probe_read_user(d, sizeof(*d), (void *)ptr))
		return TTMON_TT_DEV_UNKNOWN;
	return tt_kind(h, d->w[0]);
}

#define BUFFER_BYTES (TTMON_TT_BUFFER_WORDS * 8)
#define BUFFER_LEAST 24 /* a Buffer that only has a pointer to its impl (layout E4) may lie at the end of the heap */

SEC("?uprobe")
int tt_buffer(struct pt_regs *ctx)
{
	u64 w[TTMON_TT_BUFFER_WORDS], inner[TTMON_TT_BUFFER_WORDS];
	u32 base = TTMON_TT_BASE_NONE, kind = TTMON_TT_DEV_UNKNOWN;
	struct ttmon_ev_tt_buffer *e;
	struct tt_dev dev;
	struct tt_hit h;
	u64 buffer, device = 0;

	if (!tt_enter(ctx, &h) || family_gate(TTMON_FAMILY_TENSTORRENT, TTMON_EV_TT_BUFFER))
		return 0;
	buffer = tt_arg(&h, TT_DESC(h.fn)->arg[0]);
	if (!is_user(buffer)) /* it is not a Buffer, so nothing is lost */
		return 0;
	/* A failed read leaves zeros. */
	if (bpf_probe_read_user(w, BUFFER_BYTES, (void *)buffer) &&
	    bpf_probe_read_user(w, BUFFER_LEAST, (void *)buffer)) {
		emit_refuse(TTMON_EV_TT_BUFFER, TTMON_LOSS_READ_FAILED);
		return 0;
	}
	if (h.vt_device | h.vt_mesh) {
		device = w[2];
		base = TTMON_TT_BASE_16;
		kind = read_device(&h, device, &dev);
		if (!kind) {
			device = w[0];
			base = TTMON_TT_BASE_0;
			kind = read_device(&h, device, &dev);
		}
		if (!kind && is_object(w[2]) && !bpf_probe_read_user(inner, BUFFER_BYTES, (void *)w[2])) {
			device = inner[0];
			base = TTMON_TT_BASE_IMPL;
			kind = read_device(&h, device, &dev);
			if (kind)
				__builtin_memcpy(w, inner, sizeof(w));
		}
	}
	if (!kind) {
		device = 0;
		base = TTMON_TT_BASE_NONE;
		__builtin_memset(&dev, 0, sizeof(dev));
	}
	e = emit_reserve(TTMON_EV_TT_BUFFER, sizeof(*e), bpf_get_current_pid_tgid());
	if (!e)
		return 0;
	e->buffer = buffer;
	e->device = device;
	__builtin_memcpy(e->w, w, sizeof(e->w));
	__builtin_memcpy(e->dev, &dev, sizeof(e->dev));
	e->fn = h.fn;
	e->base = base;
	e->dev_kind = kind;
	e->slot = h.slot;
	e->pad = 0;
	emit_submit(e);
	return 0;
}

/* ---- circular buffers ---- */

#define MAX_COORD 256

struct core_range {
	u64 start_x, start_y, end_x, end_y;
};

struct core_ranges {
	u64 at;
	u64 n;
	u64 cores;
};

/* Copies one range into the scratch memory of the task. */
static long take_range(u32 i, struct core_ranges *c)
{
	struct ttmon_tt_core_range *out;
	struct task_state *s;
	struct core_range r;

	if (i >= c->n)
		return 1;
	s = task_get();
	if (!s || bpf_probe_read_user(&r, sizeof(r), (void *)(c->at + (u64)i * sizeof(r))) || r.end_x >= MAX_COORD ||
	    r.end_y >= MAX_COORD || r.start_x > r.end_x || r.start_y > r.end_y) {
		c->cores = 0;
		c->n = 0;
		return 1;
	}
	out = &((struct ttmon_tt_core_range *)s->frames)[i & (TTMON_TT_CORE_RANGES - 1)];
	out->x0 = r.start_x;
	out->y0 = r.start_y;
	out->x1 = r.end_x;
	out->y1 = r.end_y;
	c->cores += (r.end_x - r.start_x + 1) * (r.end_y - r.start_y + 1);
	return 0;
}

/* Reads a std::vector<CoreRange>: its begin, its end, and the end of its space. */
static __always_inline bool ranges_at(u64 ptr, struct core_ranges *c)
{
	u64 v[3];

	if (bpf_probe_read_user(v, sizeof(v), (void *)ptr) || !is_object(v[0]) || v[1] <= v[0] || v[2] < v[1] ||
	    (v[1] - v[0]) % sizeof(struct core_range))
		return false;
	c->at = v[0];
	c->n = (v[1] - v[0]) / sizeof(struct core_range);
	return c->n <= TTMON_TT_CORE_RANGES;
}

#define AFTER_MUTEX 40 /* in some versions a std::mutex precedes it */

static __always_inline void fill_call(struct ttmon_ev_tt_call *e, const struct tt_hit *h, const u64 *arg, u32 kind)
{
	__builtin_memcpy(e->arg, arg, sizeof(e->arg));
	e->fn = h->fn;
	e->dev_kind = kind;
	e->pad = 0;
	e->slot = h->slot;
	e->pad2 = 0;
}

#define CB_BYTES(n) (offsetof(struct ttmon_ev_tt_cb, range) + (n) * sizeof(struct ttmon_tt_core_range))

/* max is a constant. */
static __always_inline int emit_cb(const struct tt_hit *h, const u64 *arg, u32 kind, u32 n, u32 max)
{
	struct task_state *s = task_get();
	struct ttmon_ev_tt_cb *e;
	struct tt_dev dev = {};

	if (kind && bpf_probe_read_user(&dev, sizeof(dev), (void *)arg[0]))
		__builtin_memset(&dev, 0, sizeof(dev));
	if (!s) {
		emit_refuse(TTMON_EV_TT_CALL, TTMON_LOSS_MAP_FULL);
		return 0;
	}
	e = emit_reserve(TTMON_EV_TT_CALL, CB_BYTES(max), bpf_get_current_pid_tgid());
	if (!e)
		return 0;
	fill_call(&e->call, h, arg, kind);
	e->program = s->tt_cb_of;
	e->since_ns = s->tt_cb_since;
	__builtin_memcpy(e->dev, &dev, sizeof(e->dev));
	e->nr_ranges = n;
	e->pad = 0;
	__builtin_memcpy(e->range, s->frames, max * sizeof(e->range[0]));
	emit_submit(e);
	return 0;
}

/*
 * Sends a circular buffer with its cores. arg[1] is a CoreRangeSet. If the set does not have the
 * expected layout, the buffer is sent without cores.
 */
SUBPROG int tell_cb(const struct tt_hit *h, u64 *arg, u32 kind)
{
	struct core_ranges c = {};

	if (!h || !arg)
		return 0;
	if (is_object(arg[1]) && (ranges_at(arg[1], &c) || ranges_at(arg[1] + AFTER_MUTEX, &c)))
		bpf_loop(TTMON_TT_CORE_RANGES, take_range, &c, 0);
	else
		c.n = 0;
	arg[1] = c.cores;
	return c.n <= TTMON_TT_CORE_RANGES_FEW ? emit_cb(h, arg, kind, c.n, TTMON_TT_CORE_RANGES_FEW)
					       : emit_cb(h, arg, kind, c.n, TTMON_TT_CORE_RANGES);
}

/*
 * Notes the program of the thread's next calls about circular buffers, since the arguments of these
 * calls do not contain it.
 */
static __always_inline void note_program(u32 op, u64 program)
{
	struct task_state *s = task_get();

	if (!s) {
		emit_refuse(TTMON_EV_TT_CALL, TTMON_LOSS_MAP_FULL);
	} else if (op == TTMON_TT_OP_ENTER) {
		s->tt_cb_of = is_user(program) ? program : 0;
		s->tt_cb_since = bpf_ktime_get_ns();
		s->tt_cb_end = 0;
	} else {
		s->tt_cb_end = is_user(program) ? program : 0;
		if (s->tt_cb_of == program)
			s->tt_cb_of = 0;
	}
}

struct rerun {
	u32 tgid;
	u32 pad;
	u64 program, device;
};

/* The time at which a process last closed a device. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, u64);
} tt_closed SEC(".maps");

/* The runs of programs on a device that were reported since that time; the value is that time. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct rerun);
	__type(value, u64);
} tt_reruns SEC(".maps");

static __always_inline void note_closed(void)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;
	u64 now = bpf_ktime_get_ns();

	if (bpf_map_update_elem(&tt_closed, &tgid, &now, BPF_ANY))
		emit_refuse(TTMON_EV_TT_CALL, TTMON_LOSS_MAP_FULL);
}

/*
 * tt-metal lays out the circular buffers of a program for a device only once, even if the device is
 * closed and opened again. After that only a run of the program shows that it has its circular buffers
 * again. Returns true if this run was not reported yet.
 */
static __always_inline bool is_rerun(u64 program, u64 device)
{
	struct rerun key = { .tgid = bpf_get_current_pid_tgid() >> 32, .program = program, .device = device };
	u64 *closed = bpf_map_lookup_elem(&tt_closed, &key.tgid), *told, at;

	if (!closed)
		return false;
	at = *closed;
	told = bpf_map_lookup_elem(&tt_reruns, &key);
	if (told && *told == at)
		return false;
	/* If a run cannot be stored, it is reported again later. */
	bpf_map_update_elem(&tt_reruns, &key, &at, BPF_ANY);
	return true;
}

static __always_inline u64 ended_program(void)
{
	struct task_state *s = task_get();

	return s ? s->tt_cb_end : 0;
}

/* ---- other calls ---- */

/* In a register only the bits of the argument's type are defined. */
#define AS_U32(x)  ((x) = (u32)(x))
#define AS_BOOL(x) ((x) = (u8)(x) != 0)

SEC("?uprobe")
int tt_call(struct pt_regs *ctx)
{
	const volatile struct ttmon_tt_desc *d;
	struct ttmon_ev_tt_call *e;
	u64 arg[6] = {};
	struct tt_hit h;
	u32 kind = TTMON_TT_DEV_UNKNOWN, shift = 0;

	if (!tt_enter(ctx, &h) || family_gate(TTMON_FAMILY_TENSTORRENT, TTMON_EV_TT_CALL))
		return 0;
	d = TT_DESC(h.fn);
	if (d->cls == TTMON_TT_CLS_CREATE) /* returns a std::shared_ptr */
		shift = 1 - SRET_REGS;
#pragma unroll
	for (u32 i = 0; i < 6; i++)
		if (d->arg[i])
			arg[i] = tt_arg(&h, d->arg[i] - shift);
	switch (d->cls) {
	case TTMON_TT_CLS_CREATE:
		kind = tt_kind_at(&h, arg[0]);
		AS_U32(arg[3]);
		break;
	case TTMON_TT_CLS_CB_OF:
		note_program(d->aux, arg[1]);
		if (d->aux != TTMON_TT_OP_ENTER || !is_rerun(arg[1], arg[0]))
			return 0;
		kind = tt_kind_at(&h, arg[0]);
		break;
	case TTMON_TT_CLS_CB:
		kind = tt_kind_at(&h, arg[0]);
		AS_BOOL(arg[4]);
		return tell_cb(&h, arg, kind);
	case TTMON_TT_CLS_CB_FREE:
		kind = tt_kind_at(&h, arg[0]);
		arg[1] = ended_program();
		break;
	case TTMON_TT_CLS_DEVICE_NEW: /* its vtable pointer is not set yet */
		kind = TTMON_TT_DEV_DEVICE;
		AS_U32(arg[1]);
		break;
	case TTMON_TT_CLS_MESH_ANEW:
		kind = TTMON_TT_DEV_MESH;
		break;
	case TTMON_TT_CLS_DEVICE_END:
		note_closed();
		kind = TTMON_TT_DEV_DEVICE;
		break;
	case TTMON_TT_CLS_DEVICE_OPEN:
		kind = TTMON_TT_DEV_DEVICE;
		break;
	case TTMON_TT_CLS_PROVIDER:
		AS_U32(arg[2]);
		AS_BOOL(arg[3]);
		break;
	case TTMON_TT_CLS_PAIR:
		AS_U32(arg[0]);
		break;
	}
	e = emit_reserve(TTMON_EV_TT_CALL, sizeof(*e), bpf_get_current_pid_tgid());
	if (!e)
		return 0;
	fill_call(e, &h, arg, kind);
	emit_submit(e);
	return 0;
}

/* ---- the real-time profiler ---- */

#define RECORD_WORDS 8
#define RECORD_BYTES (RECORD_WORDS * 8)
#define RECORD_LEAST 48 /* size of the shortest kind */

#define MAX_RECORDS 256	  /* number of records that are read of one batch */
#define SANE_COUNT  65536 /* a larger value cannot be a count */

#define MAX_KERNELS 4
#define NAME_MAX    4096
#define NAME_KEPT   191 /* the last bytes of the name */

/*
 * The doubles 0.2 and 2.0 as integers, in cycles per nanosecond: positive doubles are ordered like
 * their bits.
 */
#define FREQ_LEAST 0x3fc999999999999aULL
#define FREQ_MOST  0x4000000000000000ULL

struct program_key {
	u32 tgid;
	u32 program;
};

/*
 * Programs whose kernels were reported. The value holds the number of kernels and the length of the
 * first name, since ids wrap at 16 bits and then mean another program.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct program_key);
	__type(value, u64);
} tt_programs SEC(".maps");

struct record {
	u64 w[RECORD_WORDS];
};

struct records {
	u64 at;
	u64 dropped;
	u32 count;
	u32 stride; /* 0: one record */
	u32 fn, slot;
};

static __always_inline bool read_record(struct record *r, u64 at)
{
	return is_object(at) &&
	       (!bpf_probe_read_user(r, RECORD_BYTES, (void *)at) || !bpf_probe_read_user(r, RECORD_LEAST, (void *)at));
}

/* The names of a program's kernels: std::string {ptr, len, ...} or std::string_view {len, ptr}. */
struct kernels {
	u64 at;
	u32 n;
	u32 step;
	bool views;
};

struct text {
	u64 ptr, len;
};

static __always_inline bool text_of(const struct kernels *k, u32 i, struct text *t)
{
	u64 head[2];

	if (bpf_probe_read_user(head, sizeof(head), (void *)(k->at + (u64)i * k->step)))
		return false;
	t->ptr = head[k->views ? 1 : 0];
	t->len = head[k->views ? 0 : 1];
	return t->len && t->len <= NAME_MAX && is_user(t->ptr);
}

static __always_inline bool looks_like_kernels(struct kernels *k, u64 at, u64 n, bool views, struct text *first)
{
	u8 c = 0;

	if (!is_object(at) || !n || n > 64)
		return false;
	k->at = at;
	k->n = n;
	k->step = views ? 16 : 32;
	k->views = views;
	return text_of(k, 0, first) && !bpf_probe_read_user(&c, 1, (void *)first->ptr) && c > ' ' && c < 0x7f;
}

/* Checks for a std::vector<std::string>: its begin, its end, and the end of its space. */
static __always_inline bool looks_like_strings(struct kernels *k, u64 begin, u64 end, u64 space, struct text *first)
{
	return end > begin && space >= end && !((end - begin) & 31) &&
	       looks_like_kernels(k, begin, (end - begin) >> 5, false, first);
}

/*
 * Finds the kernels of a record by their content (realtime_profiler_receiver.hpp of tt-metal,
 * 11790dfc). Words behind a record belong to the next record, or to nothing.
 */
SUBPROG u32 find_kernels(const struct record *r, struct kernels *k, struct text *first)
{
	const u64 *w;

	if (!r || !k || !first)
		return 0;
	w = r->w;
	if (looks_like_strings(k, w[5], w[6], w[7], first) || looks_like_strings(k, w[4], w[5], w[6], first))
		return 1;
	return looks_like_kernels(k, w[6], w[7], true, first) || looks_like_kernels(k, w[4], w[5], true, first);
}

/* Returns -1 if the ring is full. */
SUBPROG int tell_kernel(const struct kernels *k, u32 i, u32 program)
{
	struct ttmon_ev_tt_kernel *e;
	struct task_state *s;
	struct text t = {};
	u64 n;

	if (!k || i >= k->n || !text_of(k, i, &t))
		return 0;
	s = task_get(); /* its scratch memory is used, since the stack is full at this depth of calls */
	if (!s) {
		emit_refuse(TTMON_EV_TT_KERNEL, TTMON_LOSS_MAP_FULL);
		return 0;
	}
	__builtin_memset(s->frames, 0, NAME_KEPT + 1);
	n = t.len > NAME_KEPT ? NAME_KEPT : t.len;
	if (bpf_probe_read_user(s->frames, n & 255, (void *)(t.ptr + t.len - n))) {
		emit_refuse(TTMON_EV_TT_KERNEL, TTMON_LOSS_READ_FAILED);
		return 0;
	}
	e = emit_reserve(TTMON_EV_TT_KERNEL, sizeof(*e), bpf_get_current_pid_tgid());
	if (!e)
		return -1;
	e->program = program;
	e->nth = i;
	__builtin_memcpy(e->name, s->frames, sizeof(e->name));
	emit_submit(e);
	return 0;
}

SUBPROG int note_kernels(const struct record *r)
{
	struct program_key key = { .tgid = bpf_get_current_pid_tgid() >> 32 };
	struct kernels k = {};
	struct text first = {};
	u64 mark, *old;
	int err = 0;

	if (!r)
		return 0;
	key.program = r->w[0];
	if (!key.program || !find_kernels(r, &k, &first))
		return 0;
	mark = (u64)k.n << 32 | first.len;
	old = bpf_map_lookup_elem(&tt_programs, &key);
	if ((old && *old == mark) || bpf_map_update_elem(&tt_programs, &key, &mark, BPF_ANY))
		return 0;
#pragma unroll
	for (u32 i = 0; i < MAX_KERNELS; i++)
		err |= tell_kernel(&k, i, key.program);
	if (err)
		bpf_map_delete_elem(&tt_programs, &key); /* reported with the next record */
	return 0;
}

static long tell_record(u32 i, struct records *b)
{
	struct ttmon_ev_tt_program *e;
	struct record r;

	if (i >= b->count)
		return 1;
	if (!read_record(&r, b->at + (u64)i * b->stride)) {
		emit_refuse(TTMON_EV_TT_PROGRAM, TTMON_LOSS_READ_FAILED);
		return 0;
	}
	note_kernels(&r);
	e = emit_reserve(TTMON_EV_TT_PROGRAM, sizeof(*e), bpf_get_current_pid_tgid());
	if (!e)
		return 0;
	__builtin_memcpy(e->w, r.w, sizeof(e->w));
	e->dropped = b->dropped;
	e->nth = i;
	e->count = b->count;
	e->fn = b->fn;
	e->stride = b->stride;
	e->pad = 0;
	e->slot = b->slot;
	e->pad2 = 0;
	emit_submit(e);
	return 0;
}

/*
 * Returns true if a record begins here: its frequency is in a range that no other word of a record is
 * in. Records without an end time are recognised too.
 */
GLOBAL_SUBPROG u32 is_record(u64 at)
{
	u64 w[4];

	return is_object(at) && !bpf_probe_read_user(w, sizeof(w), (void *)at) && w[3] >= FREQ_LEAST &&
	       w[3] <= FREQ_MOST;
}

static __always_inline bool fits(u64 at, u64 n, u32 stride)
{
	return is_record(at + stride) && is_record(at + (n - 1) * stride);
}

/*
 * Returns true if a batch begins here, and stores it in b. The second record and the last one show the
 * size of a record.
 */
GLOBAL_SUBPROG u32 is_batch(struct records *b, u64 at, u64 n)
{
	if (!b || !n || n > SANE_COUNT || !is_object(at))
		return 0;
	b->at = at;
	b->count = n;
	b->stride = 0;
	if (n == 1)
		return is_record(at);
	if (fits(at, n, 64))
		b->stride = 64;
	else if (fits(at, n, 48))
		b->stride = 48;
	else if (fits(at, n, 72))
		b->stride = 72;
	else if (fits(at, n, 80))
		b->stride = 80;
	else if (fits(at, n, 56))
		b->stride = 56;
	return b->stride;
}

/*
 * Finds a batch. A batch is {records, count, dropped}. It is passed by reference, or by value: as a
 * span in two registers, or completely on the stack. The mangled names of the consumers do not show
 * which, so the content decides. Returns false if the batch is empty, or if it was not found, which is
 * counted as a loss.
 */
static __always_inline bool find_batch(struct pt_regs *ctx, const struct tt_hit *h, struct records *b, u32 n)
{
	u64 head[3] = {}, arg = tt_arg(h, n);

	if (is_object(arg) && !bpf_probe_read_user(head, sizeof(head), (void *)arg)) {
		b->dropped = head[2];
		if (is_batch(b, head[0], head[1]))
			return true;
		if (!head[1] && (!head[0] || is_object(head[0])))
			return false;
	}
	b->dropped = 0;
	if (is_batch(b, arg, tt_arg(h, n + 1)))
		return true;
	if (!bpf_probe_read_user(head, sizeof(head), (void *)STACK_ARGS(PT_REGS_SP(ctx))) &&
	    is_batch(b, head[0], head[1])) {
		b->dropped = head[2];
		return true;
	}
	emit_refuse(TTMON_EV_TT_PROGRAM, TTMON_LOSS_READ_FAILED);
	return false;
}

SEC("?uprobe")
int tt_program(struct pt_regs *ctx)
{
	const volatile struct ttmon_tt_desc *d;
	struct records b = {};
	struct tt_hit h;

	if (!tt_enter(ctx, &h) || family_gate(TTMON_FAMILY_DISPATCH, TTMON_EV_TT_PROGRAM))
		return 0;
	d = TT_DESC(h.fn);
	b.fn = h.fn;
	b.slot = h.slot;
	if (d->cls == TTMON_TT_CLS_PROGRAMS) {
		if (!find_batch(ctx, &h, &b, d->arg[0]))
			return 0;
	} else {
		b.at = tt_arg(&h, d->arg[0]);
		b.count = 1;
	}
	if (b.count > MAX_RECORDS)
		emit_refuse_many(TTMON_EV_TT_PROGRAM, TTMON_LOSS_READ_FAILED, b.count - MAX_RECORDS);
	bpf_loop(MAX_RECORDS, tell_record, &b, 0);
	return 0;
}
