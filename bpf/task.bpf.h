/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * task.bpf.h: the traced processes, and the calls in flight of each thread.
 *
 * A call in flight is stored in task storage, so it is freed with its thread. It is recognised by its
 * stack pointer. The return probe of the outermost probed call sees the stack pointer of the entry
 * (plus the popped return address). A nested call is entered at a lower address. A call that is
 * entered at the same address or above proves that the call in flight never returned (longjmp,
 * exception).
 */
#ifndef TTMON_TASK_BPF_H
#define TTMON_TASK_BPF_H

#include "emit.bpf.h"

#include <ttmon/fns.h>
#include <ttmon/python.h>

#define PROC_ANNOUNCED	(1 << 0) /* a PROC event was sent */
#define PROC_FROM_START (1 << 1) /* traced since its fork or exec: any call that was not seen did not happen */
#define PROC_DRIVER	(1 << 4) /* a call of CUDA's runtime was seen to enter a probed function of the driver */
/*
 * The words on its stacks do not show whether a call is inside another one. Therefore functions that
 * need no return probe otherwise get one.
 */
#define PROC_RETURNS  (1 << 5)
#define PROC_RT_NESTS (1 << 6) /* a function of the runtime was called inside another one */
#define PROC_GAP      (1 << 3) /* launches may be missing: the daemon rewrote this entry, or a record had no room */
/*
 * Hits are counted by process and by user, so that the source of load is known and only that source
 * can be reduced.
 */
enum { PROC_HITS_TRANSFER, PROC_HITS_LAUNCH, PROC_HITS_ALLOC, PROC_HITS_DISPATCH, PROC_HITS };

/* The slot of a piece of memory with 1 << TTMON_COPY_SITE_SHIFT bytes. */
#define PROC_PIECES	    32
#define PROC_PIECE_SLOT(nr) ((nr) & (PROC_PIECES - 1))

#define PROC_LISTED (1 << 2) /* selected by number, or a child of such a process: traced even if not all are */

/*
 * The word of a function's number: four words for numbers below 256, and other words from 512 on.
 */
#define PROC_TRIED_WORDS 8
#define TRIED_WORD(fn)	 (((fn) >> 6 ^ (fn) >> 7) & (PROC_TRIED_WORDS - 1))

/*
 * Kinds of calls that may have been missed, in the order of TTMON_PROC_DOUBT and the values after it.
 */
enum doubt { DOUBT_TRANSFER, DOUBT_ALLOC, DOUBT_LAUNCH, DOUBT_MAX };

struct proc_info {
	u64 start_ns;
	u32 flags;
	u32 capturing;	     /* number of streams that are being captured now */
	u64 kernels, graphs; /* launched so far on all CPUs; graphs also counts kernels during captures */
	u64 told;	     /* value of kernels in the last LAUNCHED event */
	u32 image;	     /* number of programs that the process has executed */
	u32 stacks;	     /* copies in the 8 ms given by the upper 24 bits: stack.bpf.h, has_its_share() */
	u64 hits[PROC_HITS]; /* reported or only counted; approximate if several threads call at once */
	/*
	 * How often memory in a piece of this slot was unmapped. Afterwards different memory may be mapped
	 * there.
	 */
	u32 unmapped[PROC_PIECES];
	u32 uid;		     /* its user when it was announced last */
	u32 doubt[DOUBT_MAX];	     /* when it was reported last that a call may have been missed; 0: never */
	u64 tried[PROC_TRIED_WORDS]; /* see wants_return() */
};

struct user_hits {
	u64 n[PROC_HITS];
};

/* The arguments of a copy, gathered at the entry. Linear copies have rows == slices == 1. */
struct copy_args {
	u64 dst, src, stream;
	u64 width, rows, slices;
	u64 dpitch, spitch, dslice, sslice;
	u32 dir;
	u32 bits;
};

struct call {
	u64 sp;
	u64 entry_ns;
	u32 fn; /* 0: no call is in flight */
	u32 bits;
	u32 epoch; /* epoch of its family at its entry */
	u32 whole; /* TTMON_COOKIE_WHOLE, if the function belongs to a complete runtime */
	u64 a[4];  /* stored by the entry program of the class for its return program */
	struct copy_args copy;
};

/*
 * The last call for which no event is sent at its return. It has ended when the word at sp is no
 * longer ra.
 */
struct marker {
	u64 sp;
	u64 ra;
	u64 ip; /* address of the probe in the function that was called */
	u32 fn;
	u32 size;  /* bytes of that function; 0: unknown */
	u32 whole; /* as in struct call */
	u32 pad;
};
/*
 * A flag in ra: the call has a return probe all the same, so the kernel has replaced the return
 * address by its own. The low bits then hold the family and the family's epoch.
 */
#define MARKER_RETURNS	  (1ULL << 63)
#define MARKER_FAMILY(ra) ((u32)((ra) >> 32) & 15)
#define MARKER_OF(family) (MARKER_RETURNS | (u64)(family) << 32 | family_epoch[family])

enum waker { WAKER_NONE, WAKER_PROCESS, WAKER_TIMER, WAKER_INTERRUPT };

/* The processes that made the call in flight wait: see cause.bpf.h. */
struct who_table {
	u64 sum[TTMON_WAIT_SUMS];
	struct ttmon_who_row row[TTMON_WHO_ROWS];
	u32 nr_rows, pad;
};

/* The kernel's counters of the thread when the call in flight was entered: see ledger.bpf.h. */
struct ledger {
	u64 on; /* 1: a call with a ledger is in flight */
	u64 entry_ns;
	u64 run_delay;
	u64 voluntary, involuntary, minor, major;
	u64 delay[TTMON_DELAY_MAX];
	/* the following are written when the thread leaves its CPU */
	u64 switches; /* number of switches since the entry */
	u64 off_ns;   /* time off its CPU, without the last period */
	u64 out_ns;   /* begin of the last period, by the run queue's clock; 0: none */
	/* cause.bpf.h */
	u64 waiting;  /* 1: it is off its CPU, and counted in calls_waiting */
	u64 run_seen; /* run_delay when its wait was looked at last */
	u64 run_out;  /* run_delay when it left its CPU */
	u64 cfs_rq;   /* the run queue of its group, and for how long that was throttled, at the same time */
	u64 throttled;
	u64 ready; /* it was ready to run then, and has been ever since */
	struct who_table who;
	/* what woke it while it was off its CPU: enum waker; the others are of a process */
	u64 waker_set;
	u64 waker_caller, waker_fn;
	struct ttmon_who waker;
};

struct task_state {
	struct call cuda;
	struct call user;     /* the program's own allocator: it calls CUDA inside, and both calls count */
	struct call kept;     /* saved call in flight, while a call on another stack is reported */
	struct ledger ledger; /* of the call in cuda */
	struct marker marker;
	struct marker waiting;	 /* the previous marker, if its call is suspended on another stack */
	struct marker tt_marker; /* for dispatches of tt-metal: nested in one another, not in calls of CUDA */
	u32 sample;		 /* TTMON_B_SAMPLE of the copy that is reported, as in its bits */
	s32 device;		 /* current device + 1; 0: unknown */
	u64 tt_cb_of;		 /* the ProgramImpl whose circular buffers were laid out last */
	u64 tt_cb_since;	 /* the time at which that began */
	u64 tt_cb_end;		 /* the ProgramImpl that ended last */
	u64 own_low, own_end;	 /* of the thread's own stack; 0, 0: not searched yet; 1, 1: not found */
	u64 reg[16];		 /* scratch: arguments by position; reg[0] is 0 */
	u64 word[28];		 /* scratch: a parameter struct */
	u64 frames[TTMON_MAX_FRAMES];
	u64 stack;	/* number of the copy of the stack that was made last */
	u64 trampoline; /* where functions with a return probe returned to when the last stack was taken */
	/* python.bpf.c */
	u64 py_thread;		    /* the thread's state in the interpreter, as it was found last */
	u64 py_start;		    /* when its process began */
	u64 py_now;		    /* when the walk began */
	u64 py_file, py_file_print; /* of the code object before this one: mostly it is the same file */
	struct call point;	    /* of a USDT point that frees: zeros but for a[0] */
	u64 py_buf[16];		    /* scratch; these three are too much for the stack of kernels before 6.13 */
	u64 py_code[10];	    /* of the frame in hand: words of its code object, */
	u64 py_words[9];	    /* and its own */
	u32 npy, pad;
	struct ttmon_py_frame py[TTMON_PY_FRAMES];
};

struct procs_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32); /* tgid */
	__type(value, struct proc_info);
};

/*
 * By tgid: the families (1 << enum ttmon_family) that are only counted in this process. The bits from
 * REDUCED_SAMPLE_SHIFT on hold n: one in 2^n of its transfers is still reported; 0: none.
 */
#define REDUCED_SAMPLE_SHIFT 24
struct reduced_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, u32);
};

/* The same for all processes of a user, including later ones. */
struct reduced_users_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, u32);
};

/* If there are more users than entries, the hits of users without recent calls are dropped. */
struct user_hits_map {
	__uint(type, BPF_MAP_TYPE_LRU_PERCPU_HASH);
	__uint(max_entries, 1024);
	__type(key, u32); /* uid */
	__type(value, struct user_hits);
};

/*
 * By tgid: processes that switch stacks in ways that the probes do not see. In such a process a call
 * may return in another thread than the one that made it. 1: now, 2: from the next exec on.
 */
struct switchers_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, u32);
};

struct tasks_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
};

extern struct procs_map procs SEC(".maps");
extern struct tasks_map tasks SEC(".maps");
extern struct reduced_map reduced SEC(".maps");
extern u32 nr_reduced; /* 0: no look-up is needed */
extern struct reduced_users_map reduced_users SEC(".maps");
extern u32 nr_reduced_users;
extern struct user_hits_map user_hits SEC(".maps");
extern struct switchers_map switchers SEC(".maps");
extern u32 any_switcher; /* 0: no look-up is needed */
extern u32 trace_all;	 /* 1: trace every process that hits a probe, not only those in procs; the daemon may change
			  * it */

static __always_inline u64 task_id(struct task_struct *t)
{
	return ((u64)BPF_CORE_READ(t, tgid) << 32) | (u32)BPF_CORE_READ(t, pid);
}

static __always_inline u32 parent_of(struct task_struct *leader)
{
	return BPF_CORE_READ(leader, real_parent, tgid);
}

static __always_inline void announce(struct task_struct *leader, u64 id, u32 ppid, u32 reason, u64 cgroup)
{
	struct ttmon_ev_proc *e = emit_reserve(TTMON_EV_PROC, sizeof(*e), id);

	if (!e)
		return;
	e->start_ns = BPF_CORE_READ(leader, start_time);
	e->cgroup_id = cgroup;
	e->ppid = ppid;
	e->reason = reason;
	__builtin_memset(e->comm, 0, sizeof(e->comm));
	BPF_CORE_READ_STR_INTO(&e->comm, leader, comm);
	/*
	 * The daemon is woken to read the process's mappings and names at once, since the process may end
	 * soon.
	 */
	emit_submit_now(e);
}

/*
 * The user is stored before the process is announced, so that the daemon finds it when it handles the
 * announcement.
 */
static __always_inline void note_user(struct proc_info *p)
{
	p->uid = (u32)bpf_get_current_uid_gid();
}

SUBPROG int first_seen(struct proc_info *p)
{
	struct task_struct *t, *leader;

	if (!p)
		return 0;
	note_user(p);
	/*
	 * Only one of several threads announces the process. Events of the other threads may arrive before the
	 * announcement, which the daemon handles.
	 */
	if (__sync_fetch_and_or(&p->flags, PROC_ANNOUNCED) & PROC_ANNOUNCED)
		return 0;
	t = (struct task_struct *)bpf_get_current_task();
	leader = BPF_CORE_READ(t, group_leader);
	p->start_ns = BPF_CORE_READ(leader, start_time);
	announce(leader, bpf_get_current_pid_tgid(), parent_of(leader), TTMON_PROC_SEEN, bpf_get_current_cgroup_id());
	return 0;
}

/* Sent once. If two threads do this at once, it is sent twice, which does no harm. */
SUBPROG int tell_driver(struct proc_info *p)
{
	struct task_struct *leader;

	if (!p)
		return 0;
	leader = BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), group_leader);
	__sync_fetch_and_or(&p->flags, PROC_DRIVER);
	announce(leader, bpf_get_current_pid_tgid(), parent_of(leader), TTMON_PROC_DRIVER, bpf_get_current_cgroup_id());
	return 0;
}

/*
 * Sent at most once in a period of 1 << TTMON_DOUBT_SHIFT ns. If two threads do this at once, it is
 * sent twice, which does no harm.
 */
SUBPROG int tell_doubt(struct proc_info *p, u32 what)
{
	u32 now = (u32)(bpf_ktime_get_ns() >> TTMON_DOUBT_SHIFT) + 1;
	struct task_struct *leader;

	if (!p || what >= DOUBT_MAX || p->doubt[what] == now)
		return 0;
	p->doubt[what] = now;
	leader = BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), group_leader);
	announce(leader, bpf_get_current_pid_tgid(), parent_of(leader), TTMON_PROC_DOUBT + what,
		 bpf_get_current_cgroup_id());
	return 0;
}

static __always_inline void tell_launched_now(struct proc_info *p)
{
	struct ttmon_ev_launched *e = emit_reserve(TTMON_EV_LAUNCHED, sizeof(*e), bpf_get_current_pid_tgid());
	u64 kernels = p->kernels;

	if (!e) {
		__sync_fetch_and_or(&p->flags, PROC_GAP);
		return;
	}
	e->kernels = kernels;
	e->graphs = p->graphs;
	e->since = p->flags & PROC_GAP		? TTMON_LAUNCHED_GAP
		   : p->flags & PROC_FROM_START ? TTMON_LAUNCHED_START
						: TTMON_LAUNCHED_SEEN;
	e->pad = 0;
	emit_submit(e);
	p->told = kernels;
}

/*
 * Reports the number of launches before memory is freed or after it was allocated. If two threads do
 * this at once, it is reported twice, which does no harm.
 */
SUBPROG int tell_launched(struct proc_info *p)
{
	if (p && p->kernels != p->told)
		tell_launched_now(p);
	return 0;
}

static __always_inline void count_hit(struct proc_info *p, u32 which)
{
	u32 uid = p->uid;
	struct user_hits *u = bpf_map_lookup_elem(&user_hits, &uid);
	struct user_hits fresh = {};

	p->hits[which]++;
	if (u) {
		u->n[which]++;
		return;
	}
	fresh.n[which] = 1;
	bpf_map_update_elem(&user_hits, &uid, &fresh, BPF_NOEXIST);
}

/*
 * Returns true if this family is only counted in this process or for its user, and this hit is not
 * reported. The choice is random, since programs copy in loops. *sample is the TTMON_B_SAMPLE of a hit
 * that is reported.
 */
static __always_inline bool is_reduced(const struct proc_info *p, u32 tgid, u32 family, u32 *sample)
{
	u32 *families = nr_reduced ? bpf_map_lookup_elem(&reduced, &tgid) : NULL, uid = p->uid, n;

	*sample = 0;
	if ((!families || !(*families >> family & 1)) && nr_reduced_users)
		families = bpf_map_lookup_elem(&reduced_users, &uid);
	if (!families || !(*families >> family & 1))
		return false;
	n = family == TTMON_FAMILY_TRANSFER ? *families >> REDUCED_SAMPLE_SHIFT & 15 : 0;
	if (!n || bpf_get_prandom_u32() & ((1U << n) - 1))
		return true;
	*sample = n << TTMON_B_SAMPLE_SHIFT;
	return false;
}

/*
 * Returns the process if it is to be traced, else NULL. For other processes this costs one hash
 * look-up.
 */
static __always_inline struct proc_info *wanted(u32 tgid)
{
	struct proc_info *p = bpf_map_lookup_elem(&procs, &tgid);

	if (!p) {
		/* It is static, since the BPF stack is too small for it. */
		static const struct proc_info fresh = {};
		struct ttmon_cpu_stat *st;

		if (!trace_all) {
			st = emit_stat();
			if (st)
				st->filtered++;
			return NULL;
		}
		bpf_map_update_elem(&procs, &tgid, &fresh, BPF_NOEXIST);
		p = bpf_map_lookup_elem(&procs, &tgid);
		if (!p) {
			emit_refuse(TTMON_EV_PROC, TTMON_LOSS_MAP_FULL);
			return NULL;
		}
	}
	if (!(p->flags & PROC_ANNOUNCED))
		first_seen(p);
	return p;
}

static __always_inline struct task_state *task_get(void)
{
	return bpf_task_storage_get(&tasks, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

#endif
