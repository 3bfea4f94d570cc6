// SPDX-License-Identifier: GPL-2.0-only
/*
 * ttmond.bpf.c: the maps and the configuration that all programs share, and the life cycle of
 * processes. It is linked first: if an earlier object only declares a map, bpftool's linker (libbpf
 * 1.1) loses the map's offset.
 */
#include "call.bpf.h"
#include "sched.bpf.h"
#include "tt.bpf.h"
#include "cause.bpf.h"

char LICENSE[] SEC("license") = "GPL";

struct rings_map rings SEC(".maps");
struct cpu_stat_map cpu_stat SEC(".maps");
struct procs_map procs SEC(".maps");
struct tasks_map tasks SEC(".maps");
struct reduced_map reduced SEC(".maps");
struct reduced_users_map reduced_users SEC(".maps");
struct user_hits_map user_hits SEC(".maps");
struct switchers_map switchers SEC(".maps");

const volatile u64 cfg_wake_bytes = 1 << 20;
const volatile u64 cfg_page_mask = 4095;
const volatile u32 cfg_legacy = 0;

/* The daemon fills in the rows of --alloc-fn and --free-fn before the load. */
const volatile struct ttmon_fn_desc fns[TTMON_FN_IDS] = { TTMON_FN_TABLE(TTMON_FN_DESC) };

const volatile struct ttmon_tt_desc tt_fns[TTMON_TT_FN_END - TTMON_TT_FN_FIRST] = {
#define T(id, name, pattern, c, x, b, a0, a1, a2, a3, a4, a5)                                                      \
	[id - TTMON_TT_FN_FIRST] = {                                                                               \
		.cls = TTMON_TT_CLS_##c, .aux = TTMON_TT_##x, .bits = TTMON_##b, .arg = { a0, a1, a2, a3, a4, a5 } \
	},
	TTMON_TT_FN_TABLE(T)
#undef T
};

const volatile u32 cfg_stack_frames = 16;
const volatile u32 cfg_no_returns = 0;
const volatile u32 cfg_session = 0;
const volatile u32 cfg_counters = 0;
const volatile u32 cfg_cpu_timer = 0;
const volatile u32 cfg_rmid = 0;
const volatile u32 cfg_max_rmid = 0;

struct handle_map host_pools SEC(".maps");    /* memory pools and VMM handles whose location is the host */
struct handle_map ctx_devices SEC(".maps");   /* context -> device + 1 */
struct handle_map captures SEC(".maps");      /* stream or event -> id of the capture it belongs to */
struct handle_map live_captures SEC(".maps"); /* id of a capture that has not ended */
struct legacy_map legacy_cookies SEC(".maps");
struct copy_sites_map copy_sites SEC(".maps"); /* callers whose stack was sent */
struct stack_ring_map stack_ring SEC(".maps"); /* copies of stacks */
struct pythons_map pythons SEC(".maps");       /* processes with a Python interpreter of known layout */
struct codes_map codes SEC(".maps");	       /* Python code objects that were sent */
struct chains_map chains SEC(".maps");	       /* stacks whose frame pointers are known to be right */
struct cpu_states_map cpu_states
	SEC(".maps");			   /* unfinished table of each CPU, which the daemon reads through a mapping */
struct runs_map cpu_runs SEC(".maps");	   /* the last periods of each CPU, by process */
struct tt_slots_map tt_slots SEC(".maps"); /* libraries with tt-metal, by the slot in the cookie */

int active = 0;
u32 trace_all = 0;
u64 calls_waiting = 0;
u32 nr_reduced = 0;
u32 nr_reduced_users = 0;
u32 any_switcher = 0;
u32 family_state[TTMON_FAMILY_MAX] = {};
u32 family_epoch[TTMON_FAMILY_MAX] = {};
u32 stacks_on = 0;
u64 stacks_copied = 0;
u64 stacks_lost = 0;
u32 any_python = 0;
u64 codes_since = 0;
u32 kmd_major = 0;
u32 kmd_closes = 0;

/* A child inherits its parent's mappings. */
static __always_inline void inherit(u32 parent, u32 child)
{
	u32 *when = any_switcher ? bpf_map_lookup_elem(&switchers, &parent) : NULL, now = 1;

	struct ttmon_py_layout *python = any_python ? bpf_map_lookup_elem(&pythons, &parent) : NULL;

	if (when && *when & 1)
		bpf_map_update_elem(&switchers, &child, &now, BPF_ANY);
	if (python)
		bpf_map_update_elem(&pythons, &child, python, BPF_ANY);
}

/* The process has executed another program. */
static __always_inline void forget_switcher(u32 tgid)
{
	u32 *when = bpf_map_lookup_elem(&switchers, &tgid), now = 1;

	if (when && *when & 2)
		bpf_map_update_elem(&switchers, &tgid, &now, BPF_ANY);
	else if (when)
		bpf_map_delete_elem(&switchers, &tgid);
}

/* Children of a traced process are traced. */
SEC("?tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	u32 ptgid = BPF_CORE_READ(parent, tgid), tgid = BPF_CORE_READ(child, tgid);
	struct proc_info fresh = { .flags = PROC_ANNOUNCED | PROC_FROM_START }, *p;

	if (!active || ptgid == tgid)
		return 0;
	p = bpf_map_lookup_elem(&procs, &ptgid);
	if (!p)
		return 0;
	fresh.flags |= p->flags & (PROC_LISTED | PROC_DRIVER);
	inherit(ptgid, tgid);
	fresh.start_ns = BPF_CORE_READ(child, start_time);
	note_user(&fresh);
	if (bpf_map_update_elem(&procs, &tgid, &fresh, BPF_ANY)) {
		emit_refuse(TTMON_EV_PROC, TTMON_LOSS_MAP_FULL);
		return 0;
	}
	/* ptgid is the process that was copied; with CLONE_PARENT it is not the parent of the child. */
	announce(child, task_id(child), ptgid, TTMON_PROC_FORK, bpf_get_current_cgroup_id());
	return 0;
}

/* The calling thread ends or executes a program, which also ends a call that it is in. */
static __always_inline void end_inside(u32 bits)
{
	struct task_state *t = bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, 0);

	if (t && t->ledger.on && t->cuda.fn)
		ledger_leave(t, LEDGER_FN(t->cuda.fn, bits), 0, 0);
}

SEC("?tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task)
{
	u32 tgid = BPF_CORE_READ(task, tgid);
	struct proc_info *p = bpf_map_lookup_elem(&procs, &tgid);

	if (any_switcher)
		forget_switcher(tgid);
	if (any_python)
		bpf_map_delete_elem(&pythons, &tgid);
	if (!active || !p)
		return 0;
	p->flags = (p->flags & ~(PROC_DRIVER | PROC_RETURNS | PROC_RT_NESTS)) | PROC_ANNOUNCED | PROC_FROM_START;
	__builtin_memset(p->tried, 0, sizeof(p->tried));
	__builtin_memset(p->doubt, 0, sizeof(p->doubt));
	note_user(p);
	p->capturing = 0;
	p->image++;
	p->kernels = p->graphs = p->told = 0;
	p->start_ns = BPF_CORE_READ(task, group_leader, start_time);
	end_inside(TTMON_W_EXEC);
	bpf_task_storage_delete(&tasks, bpf_get_current_task_btf());
	announce(task, task_id(task), parent_of(task), TTMON_PROC_EXEC, bpf_get_current_cgroup_id());
	return 0;
}

/*
 * When this tracepoint fires, the count of live threads has already been lowered (kernel/exit.c,
 * do_exit).
 */
SEC("?tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	u32 tgid = BPF_CORE_READ(task, tgid);
	struct ttmon_ev_exit *e;

	if (!active || !bpf_map_lookup_elem(&procs, &tgid))
		return 0;
	end_inside(TTMON_W_UNENDED);
	if (BPF_CORE_READ(task, signal, live.counter) > 0)
		return 0;
	bpf_map_delete_elem(&procs, &tgid);
	if (any_python)
		bpf_map_delete_elem(&pythons, &tgid);
	e = emit_reserve(TTMON_EV_EXIT, sizeof(*e), task_id(task));
	if (!e)
		return 0;
	e->start_ns = BPF_CORE_READ(task, group_leader, start_time);
	e->code = BPF_CORE_READ(task, exit_code);
	e->pad = 0;
	emit_submit(e);
	return 0;
}
