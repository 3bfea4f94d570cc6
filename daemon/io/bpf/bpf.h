/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * bpf.h: the BPF object: features of the kernel, load, maps, and the switch `active`. Only
 * io/bpf/bpf.c includes the skeleton.
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

/* --alloc-fn and --free-fn: the positions of the arguments. */
struct ttmon_user_row {
	uint8_t cls;	    /* TTMON_CLS_ALLOC (out argument), TTMON_CLS_ALLOC_RET or TTMON_CLS_FREE */
	uint8_t arg0, arg1; /* ALLOC: out, size; ALLOC_RET: 0, size; FREE: pointer, 0. 1-based */
};

struct ttmon_bpf_cfg {
	bool all;	 /* trace every process, not only those added */
	bool mmap;	 /* system-call tracepoints for mappings */
	bool mmap_later; /* they are loaded now, and attached on request */
	bool no_returns;
	bool tt_ioctl;	  /* pins of tt-kmd through the tracepoints of ioctl, for kernels without kprobes */
	bool nvidia_pins; /* count calls of NVIDIA's kernel module */
	bool cpu;	  /* measure CPU time: loads the scheduler's programs */
	/* with counters: no timer that closes the slots of busy CPUs (the module's tick does that) */
	bool no_cpu_timer;
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
 *	`X(NAME, program, kind, FAMILY, attach, wanted)`
 *
 *   program  its name in bpf/
 *   kind     what it is attached to, for output
 *   attach   enum ttmon_prog_attach: how and when it is attached
 *   `wanted` enum ttmon_prog_wanted: the option that loads it
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
	X(WHO_MIGRATE,    who_migrate,       "tp_btf",     WAIT,        TRACED, WHO)        \
	X(WHO_WAKING,     who_waking,        "tp_btf",     WAIT,        TRACED, WHO)        \
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
	TTMON_ATTACH_START,  /* at the start, together with its family */
	TTMON_ATTACH_TRACED, /* while there is a traced process (family.c) */
	TTMON_ATTACH_HAND,   /* not at all: the daemon runs it (rmid.c) */
	TTMON_ATTACH_MODULE, /* when the RMID module is loaded (rmid.c) */
	TTMON_ATTACH_KMD,    /* when tt-kmd is loaded (kmd.c) */
	TTMON_ATTACH_NVPIN,  /* when NVIDIA's module is loaded (nvpin.c) */
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
	TTMON_WANTED_WHO,	  /* unless cfg.no_returns, and where the switches are seen by tp_btf */
	TTMON_WANTED_CPU_MODULE,  /* cfg.cpu, with RMIDs of the module */
	TTMON_WANTED_KMD_PROBE,	  /* unless cfg.tt_ioctl */
	TTMON_WANTED_KMD_IOCTL,	  /* if cfg.tt_ioctl */
	TTMON_WANTED_NVIDIA_PINS, /* if cfg.nvidia_pins */
	TTMON_WANTED_MMAP,	  /* if cfg.mmap or cfg.mmap_later */
};

enum ttmon_prog {
#define X(NAME, ...) TTMON_PROG_##NAME,
	TTMON_PROG_TABLE(X)
#undef X
		TTMON_PROG_MAX,
/* The number of programs for objects; used as a program number: none of them. */
#define X(NAME, program, kind, family, attach, wanted) +(TTMON_ATTACH_##attach == TTMON_ATTACH_OBJECT)
	TTMON_PROG_UPROBES = 0 TTMON_PROG_TABLE(X)
#undef X
};

struct ttmon_prog_info {
	const char *name, *kind; /* "uprobe", "uretprobe", "tp_btf", "tracepoint" */
	enum ttmon_family family;
	bool wanted, loaded, attached;
	const char *reason;	  /* why it is not attached although it was selected; "": no reason */
	uint64_t run_cnt, run_ns; /* where the kernel keeps statistics (kernel.bpf_stats_enabled) */
};

/*
 * Opens and loads the programs. On failure *ret is untouched, and why (size n) is one line that says
 * what is missing and what to do.
 */
int ttmon_bpf_new(const struct ttmon_bpf_cfg *cfg, struct ttmon_bpf **ret, char *why, size_t n) _must_check;
/* Attaches the tracepoint programs (not the uprobes, which belong to objects). */
int ttmon_bpf_attach(struct ttmon_bpf *b, char *why, size_t n) _must_check;
/*
 * Copies of stacks. stack_ring: fd of their ring's map, of TTMON_STACK_RING bytes. stacks: whether
 * copies are made (enum ttmon_stack_copying). stack_counts: how many were made, and how many found no
 * room. The last one notes a chain of frame pointers that is correct, so that it is not copied again.
 */
int ttmon_bpf_stack_ring(const struct ttmon_bpf *b);
void ttmon_bpf_stacks(struct ttmon_bpf *b, enum ttmon_stack_copying on);
void ttmon_bpf_stack_counts(const struct ttmon_bpf *b, uint64_t *copied, uint64_t *lost);
void ttmon_bpf_confirm_chain(struct ttmon_bpf *b, uint64_t chain);
/* true: events flow; false: they stop. */
void ttmon_bpf_activate(struct ttmon_bpf *b, bool on);
/*
 * The end, after which nothing is read from the kernel: events stop, and the links whose last close
 * takes long are passed to the closer (closer.h; its socket is borrowed until ttmon_bpf_free()). If
 * the closer was killed, closing them waits as without it.
 */
void ttmon_bpf_leave(struct ttmon_bpf *b, int closer);
void ttmon_bpf_free(struct ttmon_bpf *b);

/*
 * Families of probes (io/bpf/family.c). Programs check the gate of their family: unless it is ON, they
 * do nothing or only count. Links at objects belong to io/probes. A family that is not loaded has the
 * gate ABSENT; RMIDs and processes cannot be switched off.
 */
enum ttmon_family ttmon_bpf_family(enum ttmon_prog prog);
enum ttmon_family_state ttmon_bpf_gate(const struct ttmon_bpf *b, enum ttmon_family family);
void ttmon_bpf_set_gate(struct ttmon_bpf *b, enum ttmon_family family, enum ttmon_family_state state);
/*
 * Attaches or detaches the programs that are not at objects. On failure none of them is attached, and
 * why (size n) is one line.
 */
int ttmon_bpf_attach_family(struct ttmon_bpf *b, enum ttmon_family family, char *why, size_t n) _must_check;
void ttmon_bpf_detach_family(struct ttmon_bpf *b, enum ttmon_family family);
/*
 * Attaches the programs that are only needed while there is a traced process (TTMON_ATTACH_TRACED), or
 * detaches them when there has been none for a while. Called before the first process is activated,
 * and at each tick.
 */
void ttmon_bpf_traced_refresh(struct ttmon_bpf *b);
/* Makes the kernel keep run times until the end; call it once. -EPERM: needs CAP_SYS_ADMIN. */
int ttmon_bpf_count_runs(struct ttmon_bpf *b);
/* Runs and run time of its programs; 0 if the kernel does not keep them. */
void ttmon_bpf_family_runs(const struct ttmon_bpf *b, enum ttmon_family family, uint64_t *cnt, uint64_t *ns);

/*
 * The traced processes (io/bpf/procs.c): those listed and, from then on, their children; with all,
 * every process that hits a probe. from_start: it is our own child before its exec, so it is seen from
 * its start.
 */
int ttmon_bpf_add_pid(struct ttmon_bpf *b, uint32_t tgid, bool from_start) _must_check;
/*
 * The kernel reports the end of this process too, which has made no probed call yet. Only where all
 * processes are traced: else it has no effect. It may have ended before.
 */
void ttmon_bpf_follow_pid(struct ttmon_bpf *b, uint32_t tgid);
/* Removes it from the list; -ENOENT: it was not listed. With all it is still traced. */
int ttmon_bpf_unlist_pid(struct ttmon_bpf *b, uint32_t tgid);
/* The process has ended. */
int ttmon_bpf_del_pid(struct ttmon_bpf *b, uint32_t tgid);
bool ttmon_bpf_has_pid(const struct ttmon_bpf *b, uint32_t tgid);
bool ttmon_bpf_is_listed(const struct ttmon_bpf *b, uint32_t tgid);
bool ttmon_bpf_all(const struct ttmon_bpf *b);
/* false: only listed processes are traced from now on. */
void ttmon_bpf_set_all(struct ttmon_bpf *b, bool all);
/*
 * From now on these families (bits 1 << family) are only counted in this process; 0: none. Of its
 * transfers one in 2^sample is reported, chosen at random; sample 0: none. -E2BIG: too many processes.
 */
int ttmon_bpf_reduce_pid(struct ttmon_bpf *b, uint32_t tgid, uint32_t families, unsigned int sample) _must_check;
/* The same for all processes of a user, including later ones. */
int ttmon_bpf_reduce_user(struct ttmon_bpf *b, uint32_t uid, uint32_t families, unsigned int sample) _must_check;
/*
 * Calls of each process so far, reported or only counted; approximate if several threads call at once.
 * uid: its user when it was last announced.
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
 * The same for each user, including ended processes; the count of a user without recent calls may
 * start again from 0. -ENOMEM.
 */
int ttmon_bpf_each_user_hits(const struct ttmon_bpf *b, void (*cb)(void *ctx, uint32_t uid, const uint64_t *hits),
			     void *ctx);
/* The user of a traced process; false: it is not traced. */
bool ttmon_bpf_uid_of(const struct ttmon_bpf *b, uint32_t tgid, uint32_t *uid);
/* Calls cb for each traced process. cb may call ttmon_bpf_del_pid(). */
void ttmon_bpf_each_pid(const struct ttmon_bpf *b, void (*cb)(void *ctx, uint32_t tgid), void *ctx);
/* Launch sums of every process and CPU, as facts TTMON_EV_LAUNCH_SUMS. */
void ttmon_bpf_each_launches(const struct ttmon_bpf *b, uint64_t now_ns,
			     void (*cb)(void *ctx, const void *rec, size_t size), void *ctx);
/* The sums of one process that has ended, which are then deleted. */
void ttmon_bpf_take_launches(struct ttmon_bpf *b, uint32_t tgid, uint64_t now_ns,
			     void (*cb)(void *ctx, const void *rec, size_t size), void *ctx);

/* Dispatch sums of every process, CPU and Tenstorrent device, as facts TTMON_EV_TT_SUMS. */
void ttmon_bpf_each_tt_sums(const struct ttmon_bpf *b, uint64_t now_ns,
			    void (*cb)(void *ctx, const void *rec, size_t size), void *ctx);
/* The sums of one process that has ended, which are then deleted. */
void ttmon_bpf_take_tt_sums(struct ttmon_bpf *b, uint32_t tgid, uint64_t now_ns,
			    void (*cb)(void *ctx, const void *rec, size_t size), void *ctx);
/* All sums that the kernel keeps: of every process; of one that has ended. */
void ttmon_bpf_each_sum(const struct ttmon_bpf *b, uint64_t now_ns, void (*cb)(void *ctx, const void *rec, size_t size),
			void *ctx);
void ttmon_bpf_take_sums(struct ttmon_bpf *b, uint32_t tgid, uint64_t now_ns,
			 void (*cb)(void *ctx, const void *rec, size_t size), void *ctx);
/*
 * Probes tt-kmd if it was loaded (again); cheap if nothing changed. Called at the start and every few
 * seconds, since the module may be unloaded and loaded. Errors show in the programs' reason.
 * io/bpf/kmd.c
 */
void ttmon_bpf_kmd_refresh(struct ttmon_bpf *b);
/*
 * The same for NVIDIA's module, with cfg.nvidia_pins; logs once why it does not count. io/bpf/nvpin.c
 */
void ttmon_bpf_nvpin_refresh(struct ttmon_bpf *b);
struct ttmon_nvpin_info {
	const char *function, *unit; /* "pages", "bytes", "" */
	const char *reason;	     /* why it is not probed, else "" */
	bool probed;
	struct ttmon_nvpin_sums sums; /* over all CPUs */
};
/* false, and ret untouched, without cfg.nvidia_pins. */
bool ttmon_bpf_nvpin_get(const struct ttmon_bpf *b, enum ttmon_nvpin_fn fn, struct ttmon_nvpin_info *ret);
/*
 * Sets the addresses of the vtables of the library in this slot (< TTMON_TT_SLOTS); call it before its
 * probes are attached.
 */
int ttmon_bpf_tt_slot(struct ttmon_bpf *b, uint32_t slot, const struct ttmon_tt_slot *vt) _must_check;

uint32_t ttmon_bpf_cpus(const struct ttmon_bpf *b);  /* possible CPUs */
uint32_t ttmon_bpf_rings(const struct ttmon_bpf *b); /* one for each CPU that was online at the start */
struct ttmon_ring *ttmon_bpf_ring(struct ttmon_bpf *b, uint32_t i);
int ttmon_bpf_ring_fd(const struct ttmon_bpf *b, uint32_t i); /* for epoll: readable when a ring fills up */
uint64_t ttmon_bpf_ring_bytes(const struct ttmon_bpf *b);
const struct ttmon_cpu_stat *ttmon_bpf_stat(const struct ttmon_bpf *b, uint32_t cpu);
void ttmon_bpf_prog_info(const struct ttmon_bpf *b, enum ttmon_prog prog, struct ttmon_prog_info *ret);

/*
 * CPU time (io/bpf/sched.c). Counters are opened before the programs are loaded. Returns whether there
 * are any; *why: the reason if not (one line), else "".
 */
bool ttmon_bpf_has_counters(const struct ttmon_bpf *b, const char **why);
/* The mapped array cpu_states, NULL without cfg.cpu; stride: bytes of an element. */
const void *ttmon_bpf_cpu_states(const struct ttmon_bpf *b, size_t *stride);
/*
 * Makes each online CPU switch once, so that its current task is known, and opens counters of CPUs
 * that came online since. Call it after ttmon_bpf_activate() and each second. bits: CPUs online now,
 * for ttmon_cpustate_online().
 */
void ttmon_bpf_cpus_refresh(struct ttmon_bpf *b, uint64_t *bits, size_t nr_words);
/*
 * The scheduler's programs were stopped and will run again: resets each CPU to never seen. Only while
 * their gate is closed.
 */
void ttmon_bpf_cpus_forget(struct ttmon_bpf *b);
/* RMIDs. io/bpf/rmid.c */
/*
 * For emulated RMIDs and for names: reports all present processes (SEEN, EXISTING) through the rings.
 * Returns how many have no RMID and should have one, or -errno.
 */
int ttmon_bpf_each_task(struct ttmon_bpf *b);
/* Emulated: counts of the pool, read without its lock. ready: an RMID could be assigned now. */
struct ttmon_rmid_counts {
	uint32_t max, in_use;
	uint64_t allocs, frees, exhausted;
	bool ready;
};
int ttmon_bpf_rmid_counts(struct ttmon_bpf *b, struct ttmon_rmid_counts *ret) _must_check;
/*
 * Attaches the RMID module's tracepoints with this prefix ("", "memory_collector_"); -ENOENT: it is
 * not loaded. After detach it can be unloaded.
 */
int ttmon_bpf_module_attach(struct ttmon_bpf *b, const char *prefix);
void ttmon_bpf_module_detach(struct ttmon_bpf *b);

/* Offsets for one program in one object, all attached by one link. */
struct ttmon_uprobe_set {
	enum ttmon_prog prog;
	size_t n;
	uint64_t *offsets;
	uint64_t *cookies;
};
/* Attaches; object_fd is an open fd of the object. Returns the link (an fd for detach) or -errno. */
int ttmon_bpf_attach_uprobes(struct ttmon_bpf *b, int object_fd, const struct ttmon_uprobe_set *set);
void ttmon_bpf_detach_uprobes(struct ttmon_bpf *b, int link);
/*
 * Detaches many at once: each waits for the kernel's grace period, so they wait together; after
 * ttmon_bpf_leave() they do not wait.
 */
void ttmon_bpf_detach_many(struct ttmon_bpf *b, const int *links, size_t n);
/* True if the kernel turns a probed nop of five bytes into a call, which crashes a forked child. */
bool ttmon_bpf_optimizes_nop5(void);
/*
 * True without uprobe_multi links: the kernel has none, or TTMOND_NO_UPROBE_MULTI is set in the
 * environment (for tests).
 */
bool ttmon_bpf_legacy(const struct ttmon_bpf *b);
/*
 * True if programs at calls run at both ends and decide at the entry about the return (Linux 6.13): no
 * links for returns.
 */
bool ttmon_bpf_session(const struct ttmon_bpf *b);
/* True if this kernel has a function of this name, as its BTF lists them. Takes some 10 ms. */
bool ttmon_bpf_kernel_has_function(const char *name);
/*
 * No call of this process gets a return probe from now on (NOW), or from its next exec on: results of
 * its calls are reported as not observed. Its children inherit this. An exec ends it; 0: it has ended,
 * or executes something else. -EOPNOTSUPP: without sessions the kernel cannot exempt one process.
 * -E2BIG: too many.
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
