/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bpf.h: the BPF object: what the kernel can do, load, maps, and the switch. Only io/bpf/bpf.c
 * includes the skeleton.
 *
 * Phases: probe features, open, choose programs, load (ttmon_bpf_new), attach (io/probes), then
 * ttmon_bpf_activate().
 */
#ifndef TTMON_BPF_H
#define TTMON_BPF_H

#include <ttmon/event.h>
#include <ttmon/family.h>
#include <ttmon/fns.h>
#include <ttmon/nvpin.h>
#include <ttmon/stack.h>
#include <ttmon/tt_fns.h>

#include "daemon/io/bpf/ring.h"
#include "lib/base/util.h"

struct ttmon_bpf;

/* --alloc-fn and --free-fn: which arguments mean what. */
struct ttmon_user_row {
	uint8_t cls;	    /* TTMON_CLS_ALLOC (out argument), TTMON_CLS_ALLOC_RET or TTMON_CLS_FREE */
	uint8_t arg0, arg1; /* ALLOC: out, size; ALLOC_RET: 0, size; FREE: pointer, 0. 1-based */
};

struct ttmon_bpf_cfg {
	bool all;	 /* every process, not only those added */
	bool mmap;	 /* system-call tracepoints for mappings */
	bool mmap_later; /* they are loaded, and attached when they are requested */
	bool no_returns;
	bool tt_ioctl;	   /* pins of tt-kmd by the tracepoints of ioctl, where they cannot be had by kprobe */
	bool nvidia_pins;  /* count calls of NVIDIA's kernel module */
	bool cpu;	   /* who used the CPUs: the scheduler's programs */
	bool no_cpu_timer; /* with counters: no timer that closes the slots of busy CPUs (the module's tick does) */
	enum ttmon_rmid_backend rmid;
	uint32_t max_rmid;
	uint32_t stack_frames;
	uint64_t ring_bytes; /* per CPU, rounded up to a power of two of at least a page */
	const struct ttmon_user_row *user;
	size_t nr_user;
};

/*
 * The BPF programs, in the order they are listed by `ttmond --help` and `ttmon probes`. Those of
 * objects come first.
 *
 *	X(NAME, program, kind, FAMILY, attach, wanted)
 *
 *   program  its name in bpf/
 *   kind     what it is attached to, for people
 *   attach   enum ttmon_prog_attach: who attaches it, and when
 *   wanted   enum ttmon_prog_wanted: the option that loads it
 */
/* clang-format off */
#define TTMON_PROG_TABLE(X) \
	X(CALL,           cuda_call,         "uprobe",     ALLOC,       OBJECT, ALWAYS)     \
	X(RETURN,         cuda_return,       "uretprobe",  ALLOC,       OBJECT, RETURNS)    \
	X(COPY,           cuda_copy,         "uprobe",     TRANSFER,    OBJECT, ALWAYS)     \
	X(COPY_RET,       cuda_copy_ret,     "uretprobe",  TRANSFER,    OBJECT, RETURNS)    \
	X(ENQUEUE,        cuda_enqueue,      "uprobe",     TRANSFER,    OBJECT, ALWAYS)     \
	X(BATCH,          cuda_batch,        "uprobe",     TRANSFER,    OBJECT, ALWAYS)     \
	X(LAUNCH,         cuda_launch,       "uprobe",     LAUNCH,      OBJECT, ALWAYS)     \
	X(NOTE,           cuda_note,         "uprobe",     ALLOC,       OBJECT, ALWAYS)     \
	X(SYNC,           cuda_sync,         "uprobe",     WAIT,        OBJECT, ALWAYS)     \
	X(SYNC_RET,       cuda_sync_ret,     "uretprobe",  WAIT,        OBJECT, RETURNS)    \
	X(USER_CALL,      user_call,         "uprobe",     ALLOC,       OBJECT, USER)       \
	X(USER_RETURN,    user_return,       "uretprobe",  ALLOC,       OBJECT, USER_RET)   \
	X(USDT,           usdt_point,        "uprobe",     ALLOC,       OBJECT, ALWAYS)     \
	X(TT_BUFFER,      tt_buffer,         "uprobe",     TENSTORRENT, OBJECT, ALWAYS)     \
	X(TT_CALL,        tt_call,           "uprobe",     TENSTORRENT, OBJECT, ALWAYS)     \
	X(TT_DISPATCH,    tt_dispatch,       "uprobe",     DISPATCH,    OBJECT, ALWAYS)     \
	X(TT_PROGRAM,     tt_program,        "uprobe",     DISPATCH,    OBJECT, ALWAYS)     \
	X(FORK,           on_fork,           "tp_btf",     PROCESS,     START,  ALWAYS)     \
	X(EXEC,           on_exec,           "tp_btf",     PROCESS,     START,  ALWAYS)     \
	X(EXIT,           on_exit,           "tp_btf",     PROCESS,     START,  ALWAYS)     \
	X(CPU_SWITCH,     cpu_switch,        "tp_btf",     CPU,         START,  CPU_BTF)    \
	X(CPU_SWITCH_RAW, cpu_switch_raw,    "raw_tp",     CPU,         START,  CPU_RAW)    \
	X(WAIT_SWITCH,    wait_switch,       "tp_btf",     WAIT,        START,  WAIT_SWITCH) \
	X(TASK_FORK,      task_fork,         "tp_btf",     PROCESS,     START,  CPU)        \
	X(TASK_EXEC,      task_exec,         "tp_btf",     PROCESS,     START,  CPU)        \
	X(TASK_EXIT,      task_exit,         "tp_btf",     PROCESS,     START,  CPU)        \
	X(TASK_ITER,      task_iter,         "iter",       PROCESS,     HAND,   CPU)        \
	X(RMID_ALLOC,     rmid_mod_alloc,    "raw_tp",     RMID,        MODULE, CPU_MODULE) \
	X(RMID_EXISTING,  rmid_mod_existing, "raw_tp",     RMID,        MODULE, CPU_MODULE) \
	X(RMID_FREE,      rmid_mod_free,     "raw_tp",     RMID,        MODULE, CPU_MODULE) \
	X(RMID_RDT,       rmid_mod_rdt,      "raw_tp",     RMID,        MODULE, CPU_MODULE) \
	X(RMID_RDT9,      rmid_mod_rdt9,     "raw_tp",     RMID,        MODULE, CPU_MODULE) \
	X(CPU_TICK,       cpu_mod_tick,      "raw_tp",     CPU,         MODULE, CPU_MODULE) \
	X(KMD,            kmd_ioctl,         "kprobe",     TENSTORRENT, KMD,    KMD_PROBE)  \
	X(KMD_RET,        kmd_ioctl_ret,     "kretprobe",  TENSTORRENT, KMD,    KMD_PROBE)  \
	X(KMD_CLOSE,      kmd_release,       "kprobe",     TENSTORRENT, KMD,    KMD_PROBE)  \
	X(KMD_SYS,        kmd_sys_ioctl,     "tracepoint", TENSTORRENT, KMD,    KMD_IOCTL)  \
	X(KMD_SYS_RET,    kmd_sys_ret,       "tracepoint", TENSTORRENT, KMD,    KMD_IOCTL)  \
	X(NVPIN,          nvpin_call,        "kprobe",     ALLOC,       NVPIN,  NVIDIA_PINS) \
	X(NVPIN_RET,      nvpin_ret,         "kretprobe",  ALLOC,       NVPIN,  NVIDIA_PINS) \
	X(MMAP,           hm_mmap,           "tracepoint", MMAP,        START,  MMAP)       \
	X(MUNMAP,         hm_munmap,         "tracepoint", MMAP,        START,  MMAP)       \
	X(MREMAP_IN,      hm_mremap_in,      "tracepoint", MMAP,        START,  MMAP)       \
	X(MREMAP,         hm_mremap,         "tracepoint", MMAP,        START,  MMAP)       \
	X(BRK,            hm_brk,            "tracepoint", MMAP,        START,  MMAP)
/* clang-format on */

enum ttmon_prog_attach {
	TTMON_ATTACH_OBJECT, /* at functions of an ELF file: io/probes */
	TTMON_ATTACH_START,  /* at the start, with its family */
	TTMON_ATTACH_HAND,   /* to nothing: the daemon runs it (rmid.c) */
	TTMON_ATTACH_MODULE, /* when the RMID module is there (rmid.c) */
	TTMON_ATTACH_KMD,    /* when tt-kmd is there (kmd.c) */
	TTMON_ATTACH_NVPIN,  /* when NVIDIA's module is there (nvpin.c) */
};

enum ttmon_prog_wanted {
	TTMON_WANTED_ALWAYS,
	TTMON_WANTED_RETURNS,	  /* unless cfg.no_returns */
	TTMON_WANTED_USER,	  /* cfg.nr_user */
	TTMON_WANTED_USER_RET,	  /* cfg.nr_user, unless cfg.no_returns */
	TTMON_WANTED_CPU,	  /* cfg.cpu */
	TTMON_WANTED_CPU_BTF,	  /* cfg.cpu, where tp_btf can be had */
	TTMON_WANTED_CPU_RAW,	  /* cfg.cpu, where it cannot */
	TTMON_WANTED_WAIT_SWITCH, /* unless cfg.cpu or cfg.no_returns */
	TTMON_WANTED_CPU_MODULE,  /* cfg.cpu, with RMIDs of the module */
	TTMON_WANTED_KMD_PROBE,	  /* unless cfg.tt_ioctl */
	TTMON_WANTED_KMD_IOCTL,	  /* cfg.tt_ioctl */
	TTMON_WANTED_NVIDIA_PINS, /* cfg.nvidia_pins */
	TTMON_WANTED_MMAP,	  /* cfg.mmap or cfg.mmap_later */
};

enum ttmon_prog {
#define X(NAME, ...) TTMON_PROG_##NAME,
	TTMON_PROG_TABLE(X)
#undef X
		TTMON_PROG_MAX,
/* Number of those that are attached to objects; as a program: none of them. */
#define X(NAME, program, kind, family, attach, wanted) +(TTMON_ATTACH_##attach == TTMON_ATTACH_OBJECT)
	TTMON_PROG_UPROBES = 0 TTMON_PROG_TABLE(X)
#undef X
};

struct ttmon_prog_info {
	const char *name, *kind; /* "uprobe", "uretprobe", "tp_btf", "tracepoint" */
	enum ttmon_family family;
	bool wanted, loaded, attached;
	const char *reason;	  /* why it is not attached though it is wanted; "" */
	uint64_t run_cnt, run_ns; /* where the kernel keeps statistics (kernel.bpf_stats_enabled) */
};

/*
 * Load. On failure *ret is untouched and why (size n) says in one line what is missing and what to do.
 */
int ttmon_bpf_new(const struct ttmon_bpf_cfg *cfg, struct ttmon_bpf **ret, char *why, size_t n) _must_check;
/* Attach the tracepoint programs (not the uprobes, which belong to objects). */
int ttmon_bpf_attach(struct ttmon_bpf *b, char *why, size_t n) _must_check;
/*
 * Copies of stacks: the fd of their ring's map, of TTMON_STACK_RING bytes; whether they are made (enum
 * ttmon_stack_copying); how many were made and how many found no room; and a chain of which frame
 * pointers tell the truth, so that it is not copied again.
 */
int ttmon_bpf_stack_ring(const struct ttmon_bpf *b);
void ttmon_bpf_stacks(struct ttmon_bpf *b, enum ttmon_stack_copying on);
void ttmon_bpf_stack_counts(const struct ttmon_bpf *b, uint64_t *copied, uint64_t *lost);
void ttmon_bpf_confirm_chain(struct ttmon_bpf *b, uint64_t chain);
/* Let events flow; false stops them again. */
void ttmon_bpf_activate(struct ttmon_bpf *b, bool on);
/*
 * The end, when nothing more is wanted from the kernel: events stop, and the links whose last close
 * takes long are given to the closer (closer.h; its socket, borrowed until ttmon_bpf_free()). Where
 * it was killed, their ends are waited for as before.
 */
void ttmon_bpf_leave(struct ttmon_bpf *b, int closer);
void ttmon_bpf_free(struct ttmon_bpf *b);

/*
 * Families of probes (io/bpf/family.c). The gate is what programs look at: not ON, they do nothing, or
 * count. Links at objects are those of io/probes. A family that is not loaded has the gate ABSENT;
 * RMIDs and processes cannot be taken away.
 */
enum ttmon_family ttmon_bpf_family(enum ttmon_prog prog);
enum ttmon_family_state ttmon_bpf_gate(const struct ttmon_bpf *b, enum ttmon_family family);
void ttmon_bpf_set_gate(struct ttmon_bpf *b, enum ttmon_family family, enum ttmon_family_state state);
/* What is not at objects. On failure nothing of it is attached, and why (size n) is one line. */
int ttmon_bpf_attach_family(struct ttmon_bpf *b, enum ttmon_family family, char *why, size_t n) _must_check;
void ttmon_bpf_detach_family(struct ttmon_bpf *b, enum ttmon_family family);
/* Have the kernel keep run times, until the end; once. -EPERM: needs CAP_SYS_ADMIN. */
int ttmon_bpf_count_runs(struct ttmon_bpf *b);
/* Of its programs; 0 where nobody has the kernel keep them. */
void ttmon_bpf_family_runs(const struct ttmon_bpf *b, enum ttmon_family family, uint64_t *cnt, uint64_t *ns);

/*
 * Which processes are traced (io/bpf/procs.c): those listed and, from then on, their children; with
 * all, every process that hits a probe.
 * from_start: it is our own child before its exec, so it is seen from its start.
 */
int ttmon_bpf_add_pid(struct ttmon_bpf *b, uint32_t tgid, bool from_start) _must_check;
/* No longer listed; -ENOENT: it was not. With all it is traced all the same. */
int ttmon_bpf_unlist_pid(struct ttmon_bpf *b, uint32_t tgid);
/* It has ended. */
int ttmon_bpf_del_pid(struct ttmon_bpf *b, uint32_t tgid);
bool ttmon_bpf_has_pid(const struct ttmon_bpf *b, uint32_t tgid);
bool ttmon_bpf_is_listed(const struct ttmon_bpf *b, uint32_t tgid);
bool ttmon_bpf_all(const struct ttmon_bpf *b);
/* false: those that are not listed are not traced any more. */
void ttmon_bpf_set_all(struct ttmon_bpf *b, bool all);
/*
 * Families (1 << family) that are only counted in this process from now on; 0: none any more.
 * -E2BIG: in too many. Of its transfers one in 2^sample is told, by chance; sample 0: none.
 */
int ttmon_bpf_reduce_pid(struct ttmon_bpf *b, uint32_t tgid, uint32_t families, unsigned int sample) _must_check;
/* The same of all processes of a user, of those that begin later too. */
int ttmon_bpf_reduce_user(struct ttmon_bpf *b, uint32_t uid, uint32_t families, unsigned int sample) _must_check;
/*
 * Calls of each process so far, told or only counted; of several threads at once about so many. uid:
 * its user when it was announced last.
 */
enum {
	TTMON_PROC_HITS_TRANSFER,
	TTMON_PROC_HITS_LAUNCH,
	TTMON_PROC_HITS_ALLOC,
	TTMON_PROC_HITS_DISPATCH,
	TTMON_PROC_HITS
};
void ttmon_bpf_each_hits(const struct ttmon_bpf *b,
			 void (*cb)(void *ctx, uint32_t tgid, uint32_t uid, const uint64_t *hits), void *ctx);
/*
 * The same of each user, of processes that have ended too; it may begin anew with a user who was
 * quiet. -ENOMEM.
 */
int ttmon_bpf_each_user_hits(const struct ttmon_bpf *b, void (*cb)(void *ctx, uint32_t uid, const uint64_t *hits),
			     void *ctx);
/* The user of a process that is traced; false: it is not. */
bool ttmon_bpf_uid_of(const struct ttmon_bpf *b, uint32_t tgid, uint32_t *uid);
/* Processes being traced now. cb may call ttmon_bpf_del_pid(). */
void ttmon_bpf_each_pid(const struct ttmon_bpf *b, void (*cb)(void *ctx, uint32_t tgid), void *ctx);
/* Launch sums of every process and CPU, as facts TTMON_EV_LAUNCH_SUMS. */
void ttmon_bpf_each_launches(const struct ttmon_bpf *b, uint64_t now_ns,
			     void (*cb)(void *ctx, const void *rec, size_t size), void *ctx);
/* Those of one process that has ended, which are then forgotten. */
void ttmon_bpf_take_launches(struct ttmon_bpf *b, uint32_t tgid, uint64_t now_ns,
			     void (*cb)(void *ctx, const void *rec, size_t size), void *ctx);

/* Dispatch sums of every process, CPU and Tenstorrent device, as facts TTMON_EV_TT_SUMS. */
void ttmon_bpf_each_tt_sums(const struct ttmon_bpf *b, uint64_t now_ns,
			    void (*cb)(void *ctx, const void *rec, size_t size), void *ctx);
/* Those of one process that has ended, which are then forgotten. */
void ttmon_bpf_take_tt_sums(struct ttmon_bpf *b, uint32_t tgid, uint64_t now_ns,
			    void (*cb)(void *ctx, const void *rec, size_t size), void *ctx);
/* All that the kernel sums up for a process, of all; of one that has ended. */
void ttmon_bpf_each_sum(const struct ttmon_bpf *b, uint64_t now_ns, void (*cb)(void *ctx, const void *rec, size_t size),
			void *ctx);
void ttmon_bpf_take_sums(struct ttmon_bpf *b, uint32_t tgid, uint64_t now_ns,
			 void (*cb)(void *ctx, const void *rec, size_t size), void *ctx);
/*
 * Probe tt-kmd, if it is loaded (again); cheap where nothing changed. Called at start and every few
 * seconds: the module may come and go. What went wrong shows in the programs' reason. io/bpf/kmd.c
 */
void ttmon_bpf_kmd_refresh(struct ttmon_bpf *b);
/*
 * The same for NVIDIA's module, with cfg.nvidia_pins; says once in a line what keeps it from counting.
 * io/bpf/nvpin.c
 */
void ttmon_bpf_nvpin_refresh(struct ttmon_bpf *b);
struct ttmon_nvpin_info {
	const char *function, *unit; /* "pages", "bytes", "" */
	const char *reason;	     /* why it is not probed, else "" */
	bool probed;
	struct ttmon_nvpin_sums sums; /* over all CPUs */
};
/* false, and ret untouched: without cfg.nvidia_pins. */
bool ttmon_bpf_nvpin_get(const struct ttmon_bpf *b, enum ttmon_nvpin_fn fn, struct ttmon_nvpin_info *ret);
/*
 * Where the vtables of the library in this slot (< TTMON_TT_SLOTS) lie; before its probes are
 * attached.
 */
int ttmon_bpf_tt_slot(struct ttmon_bpf *b, uint32_t slot, const struct ttmon_tt_slot *vt) _must_check;

uint32_t ttmon_bpf_cpus(const struct ttmon_bpf *b);  /* possible CPUs */
uint32_t ttmon_bpf_rings(const struct ttmon_bpf *b); /* one for each CPU that was online at the start */
struct ttmon_ring *ttmon_bpf_ring(struct ttmon_bpf *b, uint32_t i);
int ttmon_bpf_ring_fd(const struct ttmon_bpf *b, uint32_t i); /* for epoll: forced wakeups of a filling ring */
uint64_t ttmon_bpf_ring_bytes(const struct ttmon_bpf *b);
const struct ttmon_cpu_stat *ttmon_bpf_stat(const struct ttmon_bpf *b, uint32_t cpu);
void ttmon_bpf_prog_info(const struct ttmon_bpf *b, enum ttmon_prog prog, struct ttmon_prog_info *ret);

/*
 * Who used the CPUs. io/bpf/sched.c Counters are opened before the programs are loaded: has_counters,
 * and why not (one line, "" where they are there).
 */
bool ttmon_bpf_has_counters(const struct ttmon_bpf *b, const char **why);
/* The mapped array cpu_states, NULL without cfg.cpu; stride is the bytes of an element. */
const void *ttmon_bpf_cpu_states(const struct ttmon_bpf *b, size_t *stride);
/*
 * Have each online CPU switch once, so that it is known what runs there; open counters of CPUs that
 * came online since. Called after ttmon_bpf_activate() and each second. bits: CPUs online now, for
 * ttmon_cpustate_online().
 */
void ttmon_bpf_cpus_refresh(struct ttmon_bpf *b, uint64_t *bits, size_t nr_words);
/*
 * The scheduler's programs were stopped, and are to go on: each CPU is as if never seen. Only while
 * its gate is closed.
 */
void ttmon_bpf_cpus_forget(struct ttmon_bpf *b);
/* RMIDs. io/bpf/rmid.c */
/*
 * Emulated and names: tell all processes there are (SEEN, EXISTING), through the rings. How many have
 * no RMID and should, or -errno.
 */
int ttmon_bpf_each_task(struct ttmon_bpf *b);
/* Emulated: the pool's counts, read without its lock. ready: an RMID could be given out now. */
struct ttmon_rmid_counts {
	uint32_t max, in_use;
	uint64_t allocs, frees, exhausted;
	bool ready;
};
int ttmon_bpf_rmid_counts(struct ttmon_bpf *b, struct ttmon_rmid_counts *ret) _must_check;
/*
 * Attach the RMID module's tracepoints under this prefix ("", "memory_collector_"); -ENOENT: it is not
 * loaded. Detach: it can be unloaded.
 */
int ttmon_bpf_module_attach(struct ttmon_bpf *b, const char *prefix);
void ttmon_bpf_module_detach(struct ttmon_bpf *b);

/* Offsets of one program in one object, all behind one link. */
struct ttmon_uprobe_set {
	enum ttmon_prog prog;
	size_t n;
	uint64_t *offsets;
	uint64_t *cookies;
};
/*
 * Attach; the object is named by an open fd. Returns the link (an fd, to be given to detach) or
 * -errno.
 */
int ttmon_bpf_attach_uprobes(struct ttmon_bpf *b, int object_fd, const struct ttmon_uprobe_set *set);
void ttmon_bpf_detach_uprobes(struct ttmon_bpf *b, int link);
/*
 * Many at once: each waits for the kernel's grace period, so they wait together; after
 * ttmon_bpf_leave() not at all.
 */
void ttmon_bpf_detach_many(struct ttmon_bpf *b, const int *links, size_t n);
/*
 * Does the kernel turn a probed nop of five bytes into a call, which a forked child does not survive?
 */
bool ttmon_bpf_optimizes_nop5(void);
/*
 * Without uprobe_multi links: the kernel has none, or TTMOND_NO_UPROBE_MULTI is in the environment
 * (for tests).
 */
bool ttmon_bpf_legacy(const struct ttmon_bpf *b);
/*
 * Programs at calls are run at both ends, and decide at the entry (Linux 6.13): no links for returns.
 */
bool ttmon_bpf_session(const struct ttmon_bpf *b);
/*
 * No call of this process gets a return probe from now on (NOW), or from its next exec on: what can be
 * said at the entry is told, as result not observed. Its children are the same. An exec ends it; 0: it
 * has ended, or executes something else. -EOPNOTSUPP: without sessions the kernel cannot leave one
 * process out. -E2BIG: too many.
 */
enum { TTMON_SWITCHER_NOW = 1, TTMON_SWITCHER_EXEC = 2 };
int ttmon_bpf_set_switcher(struct ttmon_bpf *b, uint32_t tgid, unsigned int when) _must_check;

struct ttmon_py_layout;
/*
 * The Python frames of this process are found so from now on; NULL: not any more. Its children are the
 * same, an exec ends it. -E2BIG: too many.
 */
int ttmon_bpf_set_python(struct ttmon_bpf *b, uint32_t tgid, const struct ttmon_py_layout *layout) _must_check;
/* Code objects that were sent are sent again: the process that had them is gone. */
void ttmon_bpf_codes_again(struct ttmon_bpf *b);

#endif
