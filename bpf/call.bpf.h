/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * call.bpf.h: the code with which every program at a CUDA function begins, the rule for nested calls,
 * and the records that more than one program sends.
 */
#ifndef TTMON_CALL_BPF_H
#define TTMON_CALL_BPF_H

#include "ledger.bpf.h"
#include "stack.bpf.h"

extern const volatile u32 cfg_no_returns;
extern const volatile u32 cfg_session; /* probes with a return are session programs: see BOTH_ENDS */
extern const volatile u32 cfg_legacy;  /* the kernel has no uprobe_multi links: daemon/io/bpf/uprobe_legacy.h */
extern const volatile u64 cfg_page_mask;

struct legacy_key {
	u32 event;
	u32 low;
};

struct legacy_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct legacy_key);
	__type(value, u64);
};

extern struct legacy_map legacy_cookies SEC(".maps");

/*
 * Returns the cookie that the daemon gave this probe. A legacy perf event has one cookie for all its
 * probes: the event and the offset of the probed instruction in its page together identify the cookie.
 */
static __always_inline u64 probe_cookie(struct pt_regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx);

	if (cfg_legacy) {
		struct legacy_key k = { .event = cookie, .low = PT_REGS_IP(ctx) & cfg_page_mask };
		u64 *v = bpf_map_lookup_elem(&legacy_cookies, &k);

		cookie = v ? *v : 0;
	}
	return cookie;
}

/*
 * Returns the number of the function that is returning. For a legacy event this is the function of the
 * call in flight: leave() checks that this call was entered at this stack pointer.
 */
static __always_inline u32 returning_fn(struct pt_regs *ctx, const struct call *c)
{
	return cfg_legacy ? c->fn : TTMON_COOKIE_FN(bpf_get_attach_cookie(ctx));
}

/* The expression which_fn may use t. No function has the number 0. */
#define PROLOGUE(which_fn)                                        \
	u64 id = bpf_get_current_pid_tgid();                      \
	u32 fn;                                                   \
	struct proc_info *p;                                      \
	struct task_state *t;                                     \
                                                                  \
	if (!active)                                              \
		return 0;                                         \
	p = wanted(id >> 32);                                     \
	if (!p)                                                   \
		return 0;                                         \
	t = task_get();                                           \
	if (!t) {                                                 \
		__sync_fetch_and_or(&p->flags, PROC_GAP);         \
		emit_refuse(TTMON_EV_ALLOC, TTMON_LOSS_MAP_FULL); \
		return 0;                                         \
	}                                                         \
	fn = TTMON_COOKIE_FN(which_fn);                           \
	if (!fn)                                                  \
		return 0;

static __always_inline void count_nested(void)
{
	struct ttmon_cpu_stat *st = emit_stat();

	if (st)
		__sync_fetch_and_add(&st->nested, 1);
}

/*
 * Returns true if the call in flight is still on the stack. If a deeper function left it with
 * longjmp(), it is not, and calls from deeper frames later are not inside it. While the call is in
 * flight, its return address on the stack is the address of the kernel's trampoline. On arm64 the
 * return address is in a register, so this cannot be determined and the result is always true.
 */
static __always_inline bool still_in(const struct call *c)
{
#ifdef __TARGET_ARCH_x86
	u64 word = 0;

	if (bpf_probe_read_user(&word, sizeof(word), (void *)c->sp))
		return true;
	return word == trampoline_of_current();
#else
	return true;
#endif
}

/*
 * Returns true if the family of the call was switched off after its entry. Then it is unknown whether
 * the call still runs.
 */
static __always_inline bool outlived(const struct call *c)
{
	u32 cls = FN(c->fn).cls;
	u32 family = is_transfer(cls)	     ? TTMON_FAMILY_TRANSFER
		     : cls == TTMON_CLS_SYNC ? TTMON_FAMILY_WAIT
					     : TTMON_FAMILY_ALLOC;

	return c->epoch != family_epoch[family];
}

/* The position of a new call relative to the call in flight. */
enum place {
	OUTERMOST,
	NESTED, /* inside the call in flight */
	/*
	 * The new call is on another stack, and the call in flight is suspended on its own stack: a coroutine
	 * yielded in the middle of a call. With a return probe at the new call the kernel would discard the
	 * return address that it keeps for the suspended call (kernel/events/uprobes.c,
	 * cleanup_return_instances()), and the program would get SIGILL when that call returns.
	 */
	ELSEWHERE,
};

/*
 * Returns true if the daemon has marked this process as one that switches stacks in ways that the
 * stack pointer does not show.
 */
static __always_inline bool is_switcher(u32 tgid)
{
	u32 *when = cfg_session && any_switcher ? bpf_map_lookup_elem(&switchers, &tgid) : NULL;

	return when && *when & 1;
}

/*
 * A C library keeps a descriptor of each thread. On x86 the thread pointer points to its begin, on
 * arm64 to its end. The descriptor holds the lowest address and the length of the thread's stack in
 * two consecutive words (glibc: stackblock in nptl/descr.h; musl: map_base in
 * src/internal/pthread_impl.h). Their offset differs between versions. The descriptor of the first
 * thread of a process has no such words. A thread that clone() made without a descriptor of its own
 * has the thread pointer of another thread.
 */
#define DESCRIPTOR_WORDS 320
#define DESCRIPTOR_MAX	 (64UL << 10) /* the longest distance from the thread pointer to the upper end of the stack */
#define STACK_LOWEST	 (4UL << 20)  /* all stacks lie above it, and all thread numbers below it (PID_MAX_LIMIT) */

struct own_stack {
	struct task_state *t;
	u64 tp;
};

/* Word i of the descriptor and the one after it. 1: the search ends. */
static long try_descriptor_word(u32 i, struct own_stack *o)
{
	u64 words[2];

	if (bpf_probe_read_user(words, sizeof(words), (void *)(DESCRIPTOR(o->tp, DESCRIPTOR_WORDS * 8) + i * 8)))
		return 1;
	if (words[0] < STACK_LOWEST || words[0] >= o->tp || words[1] - (o->tp - words[0]) > DESCRIPTOR_MAX)
		return 0;
	o->t->own_low = o->tp - words[0] < FRAME_MAX ? words[0] : o->tp - FRAME_MAX;
	o->t->own_end = o->tp;
	return 1;
}

SUBPROG int find_own_stack(struct task_state *t)
{
	struct own_stack o = { .t = t, .tp = THREAD_POINTER(bpf_get_current_task_btf()) };

	if (!t)
		return 0;
	/* These values mean that the search has found nothing. */
	t->own_low = t->own_end = 1;
	bpf_loop(DESCRIPTOR_WORDS, try_descriptor_word, &o, 0);
	return 0;
}

/*
 * Returns true if sp is on the stack that the thread was made with. For the first thread of a process
 * the kernel knows where the stack begins, and keeps the addresses below free for it (mm/util.c,
 * mmap_base()). For other threads the mapping around an address shows nothing: if no guard page is
 * between a coroutine's stack and the thread's stack above it, the kernel merges their mappings.
 */
static __always_inline bool on_own_stack(struct task_state *t, u64 id, u64 sp)
{
	if ((u32)id == id >> 32) {
		struct mm_struct *mm = BPF_CORE_READ(bpf_get_current_task_btf(), mm);
		u64 deep = BPF_CORE_READ(mm, start_stack) - sp;

		/* Nearly all stacks have 8 MiB or less. The mapping of a deeper stack has grown accordingly. */
		if (deep < FRAME_MAX || deep < BPF_CORE_READ(mm, stack_vm) * (cfg_page_mask + 1))
			return true;
	}
	if (!t->own_end)
		find_own_stack(t);
	return sp - t->own_low < t->own_end - t->own_low;
}

/*
 * Returns true if a call may return in another thread. Code on a stack that is not the thread's own (a
 * coroutine, a fiber, a green thread) can be continued by any thread. Without session programs a
 * return probe cannot be left out for a single call, so the result is false.
 */
static __always_inline bool may_move(struct task_state *t, u64 id, u64 sp)
{
	return cfg_session && !on_own_stack(t, id, sp);
}

/*
 * Determines whether the thread is already inside another probed call. The call in flight has a return
 * probe, so it was made on the thread's own stack.
 *
 * If the new call was entered at a higher address than the call in flight, there are two cases.
 * Normally the call in flight was left without a return. But if its return address is still the
 * kernel's trampoline, it is suspended on another stack, since the stack of a coroutine may be an
 * array on the thread's stack.
 *
 * If both calls have the same stack pointer, a trampoline at that place shows that the new function
 * was reached by a jump (a library that passes the call on to a function of the same name): a call
 * would have written its return address there. On arm64 the function decides: the same function at the
 * same stack pointer is the next iteration of a loop that a longjmp() continued.
 */
static __always_inline enum place place_of(struct task_state *t, struct call *c, u64 id, u64 sp, u32 fn)
{
	bool still;

	if (!c->fn)
		return OUTERMOST;
	if (may_move(t, id, sp))
		return ELSEWHERE;
	still = still_in(c);
	if (still && (sp < c->sp || (sp == c->sp && (IS_X86 || fn != c->fn))) && !outlived(c))
		return NESTED;
#ifdef __TARGET_ARCH_x86
	if (still && cfg_session)
		return ELSEWHERE;
#endif
	c->fn = 0;
	emit_refuse(TTMON_EV_ALLOC, TTMON_LOSS_UNPAIRED);
	return OUTERMOST;
}

/*
 * Returns true if a call of the other kind is in flight on another stack. The two kinds are calls of
 * CUDA, and calls of the program's own allocator.
 */
static __always_inline bool waits_elsewhere(const struct call *other, u64 sp)
{
#ifdef __TARGET_ARCH_x86
	return cfg_session && other->fn && sp > other->sp && still_in(other);
#else
	return false;
#endif
}

/*
 * The entry and the return of a call. A session program (Linux 6.13) runs at both. At the entry it
 * chooses whether it also runs at the return; if not, the kernel does not replace the return address.
 * enter() and leave() are functions of ctx; enter() returns true if the return is to be observed.
 * Without sessions a separate program with its own link always runs at the return.
 */
#define BOTH_ENDS(ctx, enter, leave)                         \
	do {                                                 \
		if (!cfg_session)                            \
			return (enter)(ctx), 0;              \
		if (PT_REGS_IP(ctx) != bpf_get_func_ip(ctx)) \
			return (leave)(ctx), 0;              \
		return !(enter)(ctx);                        \
	} while (0)

/*
 * The end of a call without a return probe is not observed. On x86 such a call has ended when the word
 * at the place of its return address has changed. On arm64 the return address is in a register, so the
 * frame records of the callers are searched for it.
 */
/*
 * Returns the value that is stored at the place of the marked call's return address while the call
 * runs.
 */
static __always_inline u64 marked(const struct marker *m)
{
	u32 family = MARKER_FAMILY(m->ra);

	if (!(m->ra & MARKER_RETURNS))
		return m->ra;
	return family < TTMON_FAMILY_MAX && (u32)m->ra == family_epoch[family] ? trampoline_of_current()
									       : MARKER_RETURNS;
}

/* Whether a call is inside the marked call. */
enum inside { OUTSIDE, INSIDE, PERHAPS };

#ifdef __TARGET_ARCH_x86
#define NEIGHBOUR_DEPTH 8
/*
 * Returns true if a call is in flight whose return address was ra, at sp. The return probe of another
 * tracer replaces this return address by the kernel's trampoline, and the kernel keeps the original
 * (kernel/events/uprobes.c, prepare_uretprobe()).
 */
SUBPROG int returns_to(u64 sp, u64 ra)
{
	struct return_instance *ri = BPF_CORE_READ(bpf_get_current_task_btf(), utask, return_instances);

	for (int i = 0; ri && i < NEIGHBOUR_DEPTH; i++) {
		if (BPF_CORE_READ(ri, stack) == sp)
			return BPF_CORE_READ(ri, orig_ret_vaddr) == ra;
		ri = BPF_CORE_READ(ri, next);
	}
	return false;
}

/*
 * Returns true if the marked call may still run. At the same stack pointer the kernel's trampoline
 * shows that the marked function jumped to this one: a call would have written its own return address
 * there.
 */
static __always_inline bool may_run(u64 fp, const struct marker *m, u64 sp)
{
	u64 ra = 0;

	if (m->sp < sp || m->sp - sp >= FRAME_MAX || (m->sp == sp && !(m->ra & MARKER_RETURNS)))
		return false;
	bpf_probe_read_user(&ra, sizeof(ra), (void *)m->sp);
	if (ra == marked(m))
		return true;
	return ra && m->sp != sp && !(m->ra & MARKER_RETURNS) && ra == trampoline_of_current() &&
	       returns_to(m->sp, m->ra);
}

/* Returns true if a call of this function was seen from its entry to its return. */
static __always_inline bool was_tried(const struct proc_info *p, u32 fn)
{
	return p->tried[TRIED_WORD(fn)] >> (fn & 63) & 1;
}

#define CHAIN_FRAMES 12
#define PIECE_WORDS  4
#define PIECES	     256 /* 8 KiB of stack */
/* Return addresses into a function lie behind a call in it, perhaps behind its last instruction. */
#define RETURNS_INTO(ra, ip, size) ((ra) - (ip)-1 < (size))

struct scan {
	u64 sp, end, ip, size, trampoline;
	u64 found; /* enum inside */
	u64 word[PIECE_WORDS];
};

/* One piece of the stack. 1: the answer is there. */
static long scan_piece(u32 i, struct scan *s)
{
	if (bpf_probe_read_user(s->word, sizeof(s->word), (void *)s->sp))
		return 1;
	for (int k = 0; k < PIECE_WORDS; k++) {
		u64 word = s->word[k];

		if (s->sp >= s->end) {
			s->found = OUTSIDE;
			return 1;
		}
		/* Another one's return probe hides where a call returns to. */
		if (RETURNS_INTO(word, s->ip, s->size) || (word == s->trampoline && word))
			return 1;
		s->sp += sizeof(u64);
	}
	return 0;
}

/*
 * Returns whether the call at sp is inside the marked call, whose return address is at end and whose
 * function has size bytes at ip. fp is the frame pointer.
 *
 * The word at end alone proves little. It stays there after the call has returned, while the frames of
 * other calls lie over it. And one instruction that calls several functions (in libffi, in a
 * dispatcher) writes the same word for each of them.
 *
 * While the marked function runs, a return address into it lies below end. The return address at sp
 * belongs to a call that runs now. So do those in frame records, which CUDA's runtime has, including
 * the static one. Any other word with such a value may be left over from an earlier call: the result
 * is then PERHAPS.
 */
__weak GLOBAL_SUBPROG int inside_of(u64 sp, u64 fp, u64 end, u64 ip, u64 size)
{
	struct scan scan = { .sp = sp, .end = end, .ip = ip, .size = size, .found = PERHAPS };
	u64 record[2], low = sp;

	if (!size || bpf_probe_read_user(record, sizeof(u64), (void *)sp))
		return PERHAPS;
	if (RETURNS_INTO(record[0], ip, size))
		return INSIDE;
	for (int i = 0; i < CHAIN_FRAMES; i++) {
		if (fp <= low || fp >= end || fp & 7 || bpf_probe_read_user(record, sizeof(record), (void *)fp))
			break;
		/*
		 * This record holds the return address into the marked function, whose frame begins directly below the
		 * word at end.
		 */
		if (record[0] + sizeof(u64) == end && RETURNS_INTO(record[1], ip, size))
			return INSIDE;
		low = fp;
		fp = record[0];
	}
	scan.trampoline = trampoline_of_current();
	bpf_loop(PIECES, scan_piece, &scan, 0);
	return scan.found;
}

/*
 * Returns whether a call is inside the marked call. A return probe at the marked call makes this
 * certain, and also shows whether the stack alone would have given the right answer.
 *
 * Leftover return addresses on the stack are ignored if both functions belong to the runtime, an
 * earlier call of the marked function was seen to its end, and no function of the runtime was ever
 * seen to call another one.
 */
static __always_inline enum inside inside_marker(u64 fp, const struct marker *m, struct proc_info *p, u64 sp, u32 fn)
{
	bool returns = m->ra & MARKER_RETURNS;
	u32 outer = m->fn;
	enum inside in;

	if (!may_run(fp, m, sp))
		return OUTSIDE;
	if (returns && (!cfg_session || p->flags & PROC_RETURNS))
		return INSIDE;
	in = m->sp == sp ? OUTSIDE : inside_of(sp, fp, m->sp, m->ip, m->size);
	if (in == INSIDE || (in == OUTSIDE && !returns))
		return in;
	if (!returns && TTMON_LIB_IS_RT(FN(outer).lib) && TTMON_LIB_IS_RT(FN(fn).lib) && was_tried(p, outer) &&
	    !(p->flags & PROC_RT_NESTS))
		return OUTSIDE;
	__sync_fetch_and_or(&p->flags, PROC_RETURNS);
	return returns ? INSIDE : PERHAPS;
}
#else
#define MARKER_FRAMES 8
static __always_inline bool may_run(u64 fp, const struct marker *m, u64 sp)
{
	u64 record[2] = { fp, 0 }, ra = marked(m);

	if (m->sp <= sp)
		return false;
#pragma unroll
	for (int i = 0; i < MARKER_FRAMES; i++) {
		if (record[0] >= m->sp || bpf_probe_read_user(record, sizeof(record), (void *)record[0]))
			return false;
		if (record[1] == ra)
			return true;
	}
	return false;
}

static __always_inline enum inside inside_marker(u64 fp, const struct marker *m, struct proc_info *p, u64 sp, u32 fn)
{
	return may_run(fp, m, sp) ? INSIDE : OUTSIDE;
}
#endif

static __always_inline void set_marker(struct pt_regs *ctx, struct marker *m, u64 sp, u32 fn)
{
	u64 ra = 0; /* on the stack: the verifier takes longer to check a read into a map's memory */
	u64 cookie = probe_cookie(ctx);

	CALLER(ctx, &ra);
	m->sp = sp;
	m->ra = ra;
	m->ip = PT_REGS_IP(ctx);
	m->fn = fn;
	m->size = TTMON_COOKIE_SIZE(cookie);
	m->whole = cookie & TTMON_COOKIE_WHOLE;
}

/*
 * Returns true if a marked call with a return probe is suspended on another stack: the case ELSEWHERE
 * of place_of().
 */
static __always_inline bool marked_waits(const struct marker *m, u64 sp)
{
#ifdef __TARGET_ARCH_x86
	u64 word = 0;

	if (!cfg_session || !(m->ra & MARKER_RETURNS) || m->sp - sp < FRAME_MAX)
		return false;
	bpf_probe_read_user(&word, sizeof(word), (void *)m->sp);
	return word == marked(m);
#else
	return false;
#endif
}

static __always_inline bool any_marked_waits(const struct task_state *t, u64 sp)
{
	return marked_waits(&t->marker, sp) || marked_waits(&t->waiting, sp);
}

/* Sets the marker of a call of CUDA. */
static __always_inline void set_cuda_marker(struct pt_regs *ctx, struct task_state *t, u64 sp, u32 fn)
{
	if (marked_waits(&t->marker, sp))
		t->waiting = t->marker;
	set_marker(ctx, &t->marker, sp, fn);
}

/*
 * Returns true if this call gets a return probe although no event is sent at its return. If the kernel
 * has sessions, the first call of each function in a process gets one: it shows whether the stack
 * reveals which calls are inside such calls. If the stack does not reveal it (for instance, a library
 * without frame pointers is between the runtime and the driver), all calls get a return probe.
 */
static __always_inline bool wants_return(struct task_state *t, struct proc_info *p, u64 id, u64 sp, u32 fn,
					 enum place place)
{
#ifdef __TARGET_ARCH_x86
	if (!cfg_session || (!(p->flags & PROC_RETURNS) && was_tried(p, fn)))
		return false;
	return place != ELSEWHERE && !may_move(t, id, sp);
#else
	return false;
#endif
}

/*
 * Marks a call for which no event is sent at its return. Returns true if its return is observed all
 * the same.
 */
static __always_inline bool mark_call(struct pt_regs *ctx, struct task_state *t, struct proc_info *p, u64 id, u64 sp,
				      u32 fn, u32 family, enum place place)
{
	set_cuda_marker(ctx, t, sp, fn);
	if (!wants_return(t, p, id, sp, fn, place))
		return false;
	t->marker.ra = MARKER_OF(family);
	return true;
}

static __always_inline bool end_marker(struct pt_regs *ctx, struct marker *m)
{
	u32 fn = m->fn, tgid;
	struct proc_info *p;

	if (!(m->ra & MARKER_RETURNS) || PT_REGS_SP(ctx) != RETURN_SP(m->sp))
		return false;
	m->sp = m->ra = 0;
	tgid = bpf_get_current_pid_tgid() >> 32;
	p = cfg_session ? bpf_map_lookup_elem(&procs, &tgid) : NULL;
	if (p)
		__sync_fetch_and_or(&p->tried[TRIED_WORD(fn)], 1ULL << (fn & 63));
	return true;
}

/* Returns true if a marked call has returned. Calls from deeper frames are no longer inside it. */
static __always_inline bool end_marked(struct pt_regs *ctx, struct task_state *t)
{
	return end_marker(ctx, &t->marker) || end_marker(ctx, &t->waiting);
}

/* Handles the return of a function for which no event is sent at the return. */
static __always_inline int leave_marked(struct pt_regs *ctx)
{
	struct task_state *t = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);

	if (t)
		end_marked(ctx, t);
	return 0;
}

/*
 * Notes a call inside another one. When a call of the runtime is seen to enter a probed function of
 * the driver, the calls of a second copy of the runtime without symbols in this process are seen too,
 * at the driver. A library that has a few functions with names of the runtime and calls the driver
 * itself does not prove this: outer_whole is TTMON_COOKIE_WHOLE of the outer call.
 */
static __always_inline void note_nested(struct proc_info *p, u32 outer, u32 outer_whole, u32 inner)
{
	count_nested();
	if (!(p->flags & PROC_RT_NESTS) && TTMON_LIB_IS_RT(FN(inner).lib) && TTMON_LIB_IS_RT(FN(outer).lib))
		__sync_fetch_and_or(&p->flags, PROC_RT_NESTS);
	if (!(p->flags & PROC_DRIVER) && FN(inner).lib == TTMON_LIB_DRV && TTMON_LIB_IS_RT(FN(outer).lib) &&
	    outer_whole)
		tell_driver(p);
}

static __always_inline enum doubt doubt_of(u32 fn)
{
	u32 cls = FN(fn).cls;

	if (cls >= TTMON_CLS_LAUNCH)
		return DOUBT_LAUNCH;
	return cls >= TTMON_CLS_COPY && cls <= TTMON_CLS_HINT ? DOUBT_TRANSFER : DOUBT_ALLOC;
}

/* cuda_place(), which the verifier looks at once. fp: the frame pointer. */
__weak GLOBAL_SUBPROG int cuda_place_at(struct task_state *t, struct proc_info *p, u64 sp, u64 fp, u64 fn_)
{
	u32 fn = fn_;
	enum place place;
	enum inside in;

	if (!t || !p)
		return OUTERMOST;
	place = place_of(t, &t->cuda, bpf_get_current_pid_tgid(), sp, fn);
	if (place == NESTED) {
		note_nested(p, t->cuda.fn, t->cuda.whole, fn);
		return NESTED;
	}
	in = inside_marker(fp, &t->marker, p, sp, fn);
	if (in == INSIDE) {
		note_nested(p, t->marker.fn, t->marker.whole, fn);
		return NESTED;
	}
	if ((t->waiting.ra & MARKER_RETURNS) && may_run(fp, &t->waiting, sp)) {
		note_nested(p, t->waiting.fn, t->waiting.whole, fn);
		return NESTED;
	}
	if (in == PERHAPS) {
		/* Counting a call twice would be wrong. Leaving one out makes the sum a lower bound. */
		count_nested();
		tell_doubt(p, doubt_of(fn));
		return NESTED;
	}
	return place == OUTERMOST && (waits_elsewhere(&t->user, sp) || any_marked_waits(t, sp)) ? ELSEWHERE : place;
}

/* Of a call of CUDA's. */
static __always_inline enum place cuda_place(struct pt_regs *ctx, struct task_state *t, struct proc_info *p, u64 sp,
					     u32 fn)
{
	return cuda_place_at(t, p, sp, PT_REGS_FP(ctx), fn);
}

/*
 * Notes an outermost call that has no return probe, or that needs none because its family is not on.
 * Calls that it makes itself are not reported or counted again. Returns false if no event is to be
 * sent for it.
 */
static __always_inline bool note_call(struct task_state *t, struct proc_info *p, u32 family, u32 kind)
{
	if (family == TTMON_FAMILY_ALLOC) {
		count_hit(p, PROC_HITS_ALLOC);
	} else {
		count_hit(p, family == TTMON_FAMILY_LAUNCH ? PROC_HITS_LAUNCH : PROC_HITS_TRANSFER);
		if (is_reduced(p, bpf_get_current_pid_tgid() >> 32, family, &t->sample)) {
			/* From now on the number of launches is incomplete. */
			if (family == TTMON_FAMILY_LAUNCH && !(p->flags & PROC_GAP))
				__sync_fetch_and_or(&p->flags, PROC_GAP);
			count_only(kind);
			return false;
		}
	}
	return !family_gate(family, kind);
}

SUBPROG int emit_copy(struct task_state *t, struct copy_args *c, u64 entry_ns, u64 packed)
{
	/*
	 * packed holds fn in bits 0-31 and the device in bits 32-47. The error is not in it: it is 0 or in
	 * t->word[27].
	 */
	u64 id = bpf_get_current_pid_tgid();
	u32 fn = packed;
	s16 device = packed >> 32;

	if (!t || !c)
		return 0;
	if (c->rows == 1 && c->slices == 1) {
		struct ttmon_ev_copy *e = emit_reserve(TTMON_EV_COPY, sizeof(*e), id);

		if (!e)
			return 0;
		e->entry_ns = entry_ns ?: e->h.ts_ns;
		e->dst = c->dst;
		e->src = c->src;
		e->bytes = c->width;
		e->stream = c->stream;
		e->err = (s32)t->word[27];
		e->fn = fn;
		e->bits = c->bits;
		e->device = device;
		e->dir = c->dir;
		__builtin_memset(e->pad, 0, sizeof(e->pad));
		emit_submit(e);
	} else {
		struct ttmon_ev_copy_rect *e = emit_reserve(TTMON_EV_COPY_RECT, sizeof(*e), id);

		if (!e)
			return 0;
		e->entry_ns = entry_ns ?: e->h.ts_ns;
		e->dst = c->dst;
		e->src = c->src;
		e->stream = c->stream;
		e->width = c->width;
		e->rows = c->rows;
		e->slices = c->slices;
		e->dpitch = c->dpitch;
		e->spitch = c->spitch;
		e->dslice = c->dslice;
		e->sslice = c->sslice;
		e->err = (s32)t->word[27];
		e->fn = fn;
		e->bits = c->bits;
		e->device = device;
		e->dir = c->dir;
		__builtin_memset(e->pad, 0, sizeof(e->pad));
		emit_submit(e);
	}
	return 0;
}

#define PACK_FN(fn, device) ((u64)(fn) | (u64)(u16)(device) << 32)

struct alloc_out {
	u64 entry_ns, addr, size;
	u32 flags, frames;
	s32 err;
	u16 fn, bits;
	s16 device;
	u8 method, pad;
};

/* The bits of an ALLOC event that describe its stack. */
#define STACK_BITS(frames) ((frames) >> 31 ? TTMON_B_STACK_CUT : 0) | TAKEN_STATE(frames) << TTMON_B_STACK_SHIFT

#define FILL_ALLOC(e, o, t, count)                                     \
	do {                                                           \
		(e)->entry_ns = (o)->entry_ns ?: (e)->h.ts_ns;         \
		(e)->addr = (o)->addr;                                 \
		(e)->size = (o)->size;                                 \
		(e)->flags = (o)->flags;                               \
		(e)->err = (o)->err;                                   \
		(e)->fn = (o)->fn;                                     \
		(e)->method = (o)->method;                             \
		(e)->nframes = (o)->frames & 63;                       \
		(e)->device = (o)->device;                             \
		(e)->bits = (o)->bits | STACK_BITS((o)->frames);       \
		__builtin_memcpy((e)->frames, (t)->frames, (count)*8); \
	} while (0)

SUBPROG int emit_alloc(struct task_state *t, struct alloc_out *o)
{
	u64 id = bpf_get_current_pid_tgid();
	struct ttmon_ev_alloc *e;
	u32 n;

	if (!t || !o)
		return 0;
	n = TAKEN_WORDS(o->frames);
	if (!n) {
		e = emit_reserve(TTMON_EV_ALLOC, sizeof(*e), id);
		if (!e)
			return 0;
		FILL_ALLOC(e, o, t, 0);
	} else if (n <= 8) {
		e = emit_reserve(TTMON_EV_ALLOC, sizeof(*e) + 8 * 8, id);
		if (!e)
			return 0;
		FILL_ALLOC(e, o, t, 8);
	} else if (n <= 16) {
		e = emit_reserve(TTMON_EV_ALLOC, sizeof(*e) + 16 * 8, id);
		if (!e)
			return 0;
		FILL_ALLOC(e, o, t, 16);
	} else {
		e = emit_reserve(TTMON_EV_ALLOC, sizeof(*e) + 32 * 8, id);
		if (!e)
			return 0;
		FILL_ALLOC(e, o, t, 32);
	}
	emit_submit(e);
	return 0;
}

SUBPROG int emit_free(struct call *c, u64 packed, s32 err)
{
	struct ttmon_ev_free *e;

	if (!c)
		return 0;
	e = emit_reserve(TTMON_EV_FREE, sizeof(*e), bpf_get_current_pid_tgid());
	if (!e)
		return 0;
	e->entry_ns = c->entry_ns ?: e->h.ts_ns;
	e->addr = c->a[0];
	e->err = err;
	e->fn = (u32)packed;
	e->bits = c->bits;
	e->device = packed >> 32;
	e->method = FN((u32)packed).aux;
	__builtin_memset(e->pad, 0, sizeof(e->pad));
	emit_submit(e);
	return 0;
}

SUBPROG int emit_hint(struct call *c, u32 fn, s32 err)
{
	const volatile struct ttmon_fn_desc *d = &FN(fn);
	struct ttmon_ev_hint *e;

	if (!c)
		return 0;
	e = emit_reserve(TTMON_EV_HINT, sizeof(*e), bpf_get_current_pid_tgid());
	if (!e)
		return 0;
	e->addr = d->cls == TTMON_CLS_HOST_PTR ? c->a[1] : c->a[0];
	e->bytes = d->cls == TTMON_CLS_HOST_PTR ? 0 : c->a[1];
	e->hint = d->aux;
	e->err = err;
	e->advice = d->aux == TTMON_HINT_ADVISE ? c->a[2] : 0;
	e->loc_type = 0;
	e->loc_id = 0;
	if (d->cls == TTMON_CLS_HINT) {
		if (d->bits & TTMON_FN_LOC_DEVICE) {
			e->loc_id = (s32)c->a[3];
			e->loc_type = e->loc_id < 0 ? TTMON_ABI_LOC_HOST : TTMON_ABI_LOC_DEVICE;
		} else {
			e->loc_type = (s32)c->a[3];
			e->loc_id = (s32)(c->a[3] >> 32);
		}
	}
	e->fn = fn;
	e->bits = 0;
	emit_submit(e);
	return 0;
}

struct copy_site_key {
	u32 tgid;
	u32 pad;
	u64 caller;
	u64 piece;
};

struct copy_sites_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct copy_site_key);
	__type(value, u32); /* the value of proc_info.unmapped of the slot when the caller was sent */
};

extern struct copy_sites_map copy_sites SEC(".maps");

#define FILL_COPY_SITE(e, host, t, f, n, count)                               \
	do {                                                                  \
		(e)->addr = (host);                                           \
		(e)->fn = (f);                                                \
		(e)->nframes = (n)&63;                                        \
		(e)->stack = TAKEN_STATE(n) | ((n) >> 31 ? TTMON_CS_CUT : 0); \
		__builtin_memset((e)->pad, 0, sizeof((e)->pad));              \
		__builtin_memcpy((e)->frames, (t)->frames, (count)*8);        \
	} while (0)

/*
 * Sends the call stack of a copy from or to host memory, once for each caller and 2 MiB of memory. It
 * is sent again after memory in this range was unmapped, since a loader of batches maps each batch at
 * the address of the last one. All other copies cost one look-up.
 */
static __always_inline void note_copy_site(struct pt_regs *ctx, struct task_state *t, struct proc_info *p,
					   struct copy_args *c, u32 fn, u64 caller, bool at_entry)
{
	u64 id = bpf_get_current_pid_tgid();
	u64 host = c->dir == TTMON_DIR_D2H ? c->dst : c->src;
	struct copy_site_key k = { .tgid = id >> 32, .caller = caller, .piece = host >> TTMON_COPY_SITE_SHIFT };
	struct ttmon_ev_copy_site *e;
	u32 unmapped = p->unmapped[PROC_PIECE_SLOT(k.piece)], n, *told;

	if (!host || (c->bits & TTMON_B_CAPTURED))
		return;
	if (c->dir != TTMON_DIR_H2D && c->dir != TTMON_DIR_D2H && c->dir != TTMON_DIR_DEFAULT)
		return;
	told = bpf_map_lookup_elem(&copy_sites, &k);
	if ((told && *told == unmapped) || bpf_map_update_elem(&copy_sites, &k, &unmapped, BPF_ANY))
		return;
	n = take_stack(ctx, t, at_entry ? TAKE_ENTRY : TAKE_RETURN);
	if (TAKEN_WORDS(n) <= 8) {
		e = emit_reserve(TTMON_EV_COPY_SITE, sizeof(*e) + 8 * 8, id);
		if (!e)
			goto lost;
		FILL_COPY_SITE(e, host, t, fn, n, 8);
	} else {
		e = emit_reserve(TTMON_EV_COPY_SITE, sizeof(*e) + 32 * 8, id);
		if (!e)
			goto lost;
		FILL_COPY_SITE(e, host, t, fn, n, 32);
	}
	emit_submit(e);
	return;
lost:
	/* The next copy sends it. */
	bpf_map_delete_elem(&copy_sites, &k);
}

#endif
