/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * event.h: the event table, shared by the BPF programs, the daemon and every reader of a recording.
 *
 * A record is a struct ttmon_event (24 bytes) followed by the rest of the struct of its kind. All
 * records are multiples of 8 bytes, have no implicit padding (tests/lint builds this header with
 * -Werror=padded) and are written in host byte order. Kinds below TTMON_EV_FACT come from BPF through
 * the per-CPU rings. The others are facts that the daemon itself adds to the stream (mappings of a
 * process, names of objects), so that a recording has all that a replay needs.
 *
 * Ids are append-only: a kind is never renumbered and never reused.
 */
#ifndef TTMON_EVENT_H
#define TTMON_EVENT_H

#ifdef __bpf__
/* vmlinux.h defines these types */
#else
#include <linux/types.h>
#endif

/*
 * Frames of a call stack kept with an allocation, innermost (the caller of the CUDA function) first.
 */
#define TTMON_MAX_FRAMES 32
#define TTMON_COMM_LEN	 16
#define TTMON_LABEL_LEN	 64 /* bytes of a checkpoint's label, with its NUL */
#define TTMON_BUILD_ID	 20

/*
 * The event table. One row for each kind of record:
 *
 *	X(id, NAME, name, struct, way, family, check, stream, timeline, history, tt, dispatch, cpu,
 *	rmid, help)
 *
 *   name      lower case: what metrics and JSON show, and the end of the names of the functions that
 *             handle it
 *   struct    the whole record. A record that ends in a flexible array has its own length
 *             (ttmon_event_min_size()).
 *   way       enum ttmon_way: where it comes from, and when it is handled
 *   family    enum ttmon_family: the probes that send it; for a fact, the probes that it adds to; or
 *             NONE
 *   check     Y: check_NAME() in daemon/core/stream/decode.c checks its values; _: every value is
 *             valid
 *   stream, timeline, history, tt, dispatch, cpu, rmid
 *             the parts of daemon/core. Y: this part handles the kind, in a function of its own: for
 *             history that
 *             is ttmon_history_on_NAME(). Several parts are called in this order. The headers of the
 *             parts declare
 *             these functions, and core/stream/pipeline.c calls them, by these columns.
 *
 * The last row has the highest id.
 */
/* clang-format off */
#define TTMON_EVENT_TABLE(X) \
	/* the last eight columns: chk str tim his tt dis cpu rmid */ \
	X( 1, PROC,        proc,        ttmon_ev_proc,        EVENT,  PROCESS,     Y,   Y,  _,  Y,  Y,  Y,  _,  _, \
	  "process seen for the first time, forked or exec'd") \
	X( 2, EXIT,        exit,        ttmon_ev_exit,        EVENT,  PROCESS,     _,   Y,  _,  Y,  Y,  Y,  _,  _, \
	  "last thread of a process exited") \
	X( 3, ALLOC,       alloc,       ttmon_ev_alloc,       EVENT,  ALLOC,       Y,   Y,  Y,  Y,  _,  _,  _,  _, \
	  "allocation or registration returned") \
	X( 4, FREE,        free,        ttmon_ev_free,        EVENT,  ALLOC,       Y,   Y,  Y,  Y,  _,  _,  _,  _, \
	  "free or unregister returned") \
	X( 5, COPY,        copy,        ttmon_ev_copy,        EVENT,  TRANSFER,    Y,   Y,  Y,  Y,  _,  _,  _,  _, \
	  "transfer of contiguous bytes") \
	X( 6, COPY_RECT,   copy_rect,   ttmon_ev_copy_rect,   EVENT,  TRANSFER,    Y,   Y,  Y,  Y,  _,  _,  _,  _, \
	  "transfer of a 2D or 3D region") \
	X( 7, HINT,        hint,        ttmon_ev_hint,        EVENT,  TRANSFER,    Y,   _,  _,  Y,  _,  _,  _,  _, \
	  "prefetch, advice or device pointer asked for a range") \
	X( 8, RESET,       reset,       ttmon_ev_reset,       EVENT,  ALLOC,       Y,   _,  _,  Y,  _,  _,  _,  _, \
	  "device reset or context destroyed: implicit free of all it held") \
	X( 9, LAUNCHES,    launches,    ttmon_ev_launches,    EVENT,  LAUNCH,      _,   _,  _,  Y,  _,  _,  _,  _, \
	  "kernel and graph launches of a process on one CPU, cumulative") \
	X(10, MMAP,        mmap,        ttmon_ev_mmap,        EVENT,  MMAP,        Y,   _,  _,  Y,  _,  _,  _,  _, \
	  "mmap returned") \
	X(11, MUNMAP,      munmap,      ttmon_ev_munmap,      EVENT,  MMAP,        _,   _,  _,  Y,  _,  _,  _,  _, \
	  "munmap entered") \
	X(12, MREMAP,      mremap,      ttmon_ev_mremap,      EVENT,  MMAP,        Y,   _,  _,  Y,  _,  _,  _,  _, \
	  "mremap returned") \
	X(13, BRK,         brk,         ttmon_ev_brk,         EVENT,  MMAP,        Y,   _,  _,  Y,  _,  _,  _,  _, \
	  "brk returned") \
	X(14, TAG,         tag,         ttmon_ev_tag,         EVENT,  ALLOC,       Y,   _,  _,  Y,  _,  _,  _,  _, \
	  "name that the program gave to an allocation (USDT ttmon:alloc)") \
	X(15, COPY_SITE,   copy_site,   ttmon_ev_copy_site,   EVENT,  TRANSFER,    Y,   _,  _,  Y,  _,  _,  _,  _, \
	  "who copies from or to a piece of host memory, at the first copy there") \
	X(16, TT_BUFFER,   tt_buffer,   ttmon_ev_tt_buffer,   EVENT,  TENSTORRENT, Y,   _,  _,  _,  Y,  _,  _,  _, \
	  "a function of tt-metal that was given a Buffer") \
	X(17, TT_CALL,     tt_call,     ttmon_ev_tt_call,     EVENT,  TENSTORRENT, Y,   _,  _,  _,  Y,  Y,  _,  _, \
	  "another function of tt-metal, with its arguments") \
	X(18, TT_DISPATCH, tt_dispatch, ttmon_ev_tt_dispatch, EVENT,  DISPATCH,    Y,   _,  _,  _,  _,  Y,  _,  _, \
	  "dispatches of a process to a device, cumulative") \
	X(19, TT_PROGRAM,  tt_program,  ttmon_ev_tt_program,  EVENT,  DISPATCH,    Y,   _,  _,  _,  _,  Y,  _,  _, \
	  "record of the real-time profiler: a program's start and end") \
	X(20, TT_KERNEL,   tt_kernel,   ttmon_ev_tt_kernel,   EVENT,  DISPATCH,    Y,   _,  _,  _,  _,  Y,  _,  _, \
	  "kernel source of a program") \
	X(21, TT_PIN,      tt_pin,      ttmon_ev_tt_pin,      EVENT,  TENSTORRENT, Y,   Y,  _,  Y,  _,  _,  _,  _, \
	  "tt-kmd pinned or let go host memory, or made a DMA buffer") \
	X(22, CPU_SLOT,    cpu_slot,    ttmon_ev_cpu_slot,    DIRECT, CPU,         Y,   _,  _,  _,  _,  _,  Y,  _, \
	  "who used a CPU in one slot, and in the time up to the next switch") \
	X(23, TASK,        task,        ttmon_ev_task,        SCHED,  PROCESS,     Y,   _,  _,  _,  _,  _,  Y,  _, \
	  "a process as the scheduler knows it: fork, exec, exit") \
	X(24, RMID,        rmid,        ttmon_ev_rmid,        SCHED,  RMID,        Y,   _,  _,  _,  _,  _,  Y,  Y, \
	  "an RMID was given to a process, or taken back") \
	X(25, RDT,         rdt,         ttmon_ev_rdt,         DIRECT, RMID,        Y,   _,  _,  _,  _,  _,  _,  Y, \
	  "RDT readings of an RMID") \
	X(26, CHECKPOINT,  checkpoint,  ttmon_ev_checkpoint,  EVENT,  ALLOC,       Y,   _,  _,  Y,  _,  _,  _,  _, \
	  "end of a period, as the program says (USDT ttmon:checkpoint)") \
	X(27, LAUNCHED,    launched,    ttmon_ev_launched,    EVENT,  LAUNCH,      Y,   _,  _,  Y,  _,  _,  _,  _, \
	  "launches of a process so far, told before memory is made or freed") \
	X(28, WAIT,        wait,        ttmon_ev_wait,        EVENT,  WAIT,        Y,   _,  _,  Y,  _,  _,  _,  _, \
	  "a synchronous call returned: where its time went") \
	X(64, CLOCK,       clock,       ttmon_ev_clock,       FACT,   NONE,        Y,   Y,  _,  Y,  Y,  Y,  _,  _, \
	  "clock triple, host and configuration of the capture") \
	X(65, PROC_NAME,   proc_name,   ttmon_ev_text,        FACT,   PROCESS,     Y,   _,  _,  Y,  _,  _,  _,  _, \
	  "command line, executable or cgroup of a process") \
	X(66, OBJECT,      object,      ttmon_ev_object,      FACT,   NONE,        Y,   _,  _,  Y,  _,  _,  _,  _, \
	  "an ELF file: id, build-id, path") \
	X(67, MAP,         map,         ttmon_ev_map,         LISTED, NONE,        Y,   _,  _,  Y,  _,  _,  _,  _, \
	  "one mapping of a process, from /proc/PID/maps or a perf MMAP2 record") \
	X(68, SYMBOL,      symbol,      ttmon_ev_symbol,      FACT,   NONE,        Y,   _,  _,  Y,  _,  _,  _,  _, \
	  "name of the function at an object's file offset") \
	X(69, BLIND,       blind,       ttmon_ev_blind,       FACT,   NONE,        Y,   Y,  _,  Y,  Y,  Y,  _,  _, \
	  "time between an object's mapping and its probes being active") \
	X(70, LOST,        lost,        ttmon_ev_lost,        FACT,   NONE,        Y,   Y,  _,  _,  _,  _,  _,  _, \
	  "kernel counters at a point in time, one CPU and kind") \
	X(71, MAPS_DONE,   maps_done,   ttmon_ev_maps_done,   LISTED, NONE,        _,   _,  _,  Y,  _,  _,  _,  _, \
	  "end of a full list of a process's mappings") \
	X(72, LAUNCH_SUMS, launch_sums, ttmon_ev_launch_sums, FACT,   LAUNCH,      Y,   _,  _,  Y,  _,  _,  _,  _, \
	  "LAUNCHES as read by the daemon, for what no later record told") \
	X(73, GONE,        gone,        ttmon_ev_gone,        FACT,   PROCESS,     _,   Y,  _,  Y,  Y,  Y,  _,  _, \
	  "a process found to be gone, whose EXIT was lost") \
	X(74, TT_CHIP,     tt_chip,     ttmon_ev_tt_chip,     FACT,   TENSTORRENT, Y,   _,  _,  _,  Y,  _,  _,  _, \
	  "a Tenstorrent chip of the host") \
	X(75, TT_OBJECT,   tt_object,   ttmon_ev_tt_object,   FACT,   TENSTORRENT, Y,   _,  _,  _,  Y,  Y,  _,  _, \
	  "a library with tt-metal in it: what of it is probed") \
	X(76, TT_PROC,     tt_proc,     ttmon_ev_tt_proc,     FACT,   TENSTORRENT, Y,   _,  _,  _,  Y,  _,  _,  _, \
	  "which chip a process means by a logical device id") \
	X(77, TT_SUMS,     tt_sums,     ttmon_ev_tt_sums,     FACT,   DISPATCH,    Y,   _,  _,  _,  _,  Y,  _,  _, \
	  "TT_DISPATCH as read by the daemon, for what no later record told") \
	X(78, TSC,         tsc,         ttmon_ev_tsc,         FACT,   NONE,        _,   _,  _,  _,  _,  Y,  _,  _, \
	  "the time stamp counter at a time") \
	X(79, TT_MESH,     tt_mesh,     ttmon_ev_tt_mesh,     FACT,   TENSTORRENT, Y,   _,  _,  _,  Y,  _,  _,  _, \
	  "the local devices of a MeshDevice, as found in the process's memory") \
	X(80, CPU_OPEN,    cpu_open,    ttmon_ev_cpu_open,    FACT,   CPU,         Y,   _,  _,  _,  _,  _,  Y,  _, \
	  "what a CPU is in the middle of") \
	X(81, RMID_SET,    rmid_set,    ttmon_ev_rmid,        FACT,   RMID,        Y,   _,  _,  _,  _,  _,  Y,  Y, \
	  "RMID as told by resctrl") \
	X(82, RDT_READ,    rdt_read,    ttmon_ev_rdt,         FACT,   RMID,        Y,   _,  _,  _,  _,  _,  _,  Y, \
	  "RDT as read from resctrl") \
	X(83, RMID_INFO,   rmid_info,   ttmon_ev_rmid_info,   FACT,   RMID,        Y,   _,  _,  _,  _,  _,  _,  Y, \
	  "where RMIDs come from, and the units of their readings") \
	X(84, FAMILY,      family,      ttmon_ev_family,      FACT,   NONE,        Y,   Y,  _,  Y,  Y,  _,  _,  _, \
	  "a family of probes was reduced, taken away or put back") \
	X(85, GPU_USE,     gpu_use,     ttmon_ev_gpu_use,     LISTED, NONE,        Y,   _,  _,  Y,  _,  _,  _,  _, \
	  "memory that a GPU's kernels accessed, out of a memory-access channel") \
	X(86, UNWOUND,     unwound,     ttmon_ev_unwound,     FACT,   NONE,        Y,   _,  _,  Y,  _,  _,  _,  _, \
	  "call stack that was found in a copy of the stack, by unwind tables")
/* clang-format on */

/* Origin of a kind, and when it is handled. */
enum ttmon_way {
	TTMON_WAY_EVENT, /* from BPF: waits until the slot of its time closes; handled in order of time */
	TTMON_WAY_SCHED, /* the same, about the scheduler: the memory parts do not get it */
	/*
	 * from BPF, handled at once: it contains the time it is about, and is needed before that slot closes
	 */
	TTMON_WAY_DIRECT,
	TTMON_WAY_FACT, /* from the daemon, at once */
	/* from the daemon, after the events of its time if it has one (daemon/core/stream/listq.h) */
	TTMON_WAY_LISTED,
};

/* TTMON_IF_##column(code): the code if that column of the row is Y. */
#define TTMON_IF_Y(...) __VA_ARGS__
#define TTMON_IF__(...)

enum ttmon_event_kind {
	TTMON_EV_NONE = 0,
	TTMON_EV_FACT = 64, /* facts have ids from here on: the kernel only has counters for the kinds below */
#define X(id, NAME, ...) TTMON_EV_##NAME = id,
	TTMON_EVENT_TABLE(X)
#undef X
		TTMON_EV_MAX /* one past the last kind */
};

struct ttmon_event {
	__u64 ts_ns; /* CLOCK_MONOTONIC, taken after the ring space was reserved */
	__u16 kind;  /* enum ttmon_event_kind */
	__u16 cpu;
	__u32 lost; /* number of records this CPU has lost so far (wraps) */
	__u32 tgid; /* in the initial pid namespace */
	__u32 tid;
};

/*
 * Why a process is announced. DRIVER: a call of CUDA's runtime was seen to enter a probed function of
 * the driver; once a process. DOUBT: a call of that family, or several in the next 1 <<
 * TTMON_DOUBT_SHIFT ns, counted as parts of another call, and perhaps were not.
 */
enum ttmon_proc_reason {
	TTMON_PROC_SEEN,
	TTMON_PROC_FORK,
	TTMON_PROC_EXEC,
	TTMON_PROC_DRIVER,
	TTMON_PROC_DOUBT, /* transfers */
	TTMON_PROC_DOUBT_ALLOC,
	TTMON_PROC_DOUBT_LAUNCH,
	TTMON_PROC_REASON_MAX
};
#define TTMON_DOUBT_SHIFT 27

struct ttmon_ev_proc {
	struct ttmon_event h;
	__u64 start_ns;	 /* task->start_time of the thread group leader: with tgid, the process's identity */
	__u64 cgroup_id; /* cgroup v2 id, 0 if unknown */
	__u32 ppid;
	__u32 reason; /* enum ttmon_proc_reason */
	char comm[TTMON_COMM_LEN];
};

struct ttmon_ev_exit {
	struct ttmon_event h;
	__u64 start_ns;
	__u32 code; /* wait status as in waitpid(2) */
	__u32 pad;
};

/* Origin of an allocation. The names are those of the database. Append-only. */
#define TTMON_METHOD_TABLE(X)                                                                                     \
	X(0, NONE, "none")                                                                                        \
	X(1, HOST_ALLOC, "host_alloc") /* cudaHostAlloc, cudaMallocHost, cuMemHostAlloc, ... : pinned */          \
	X(2, REGISTERED, "registered") /* cudaHostRegister: the program's own memory, pinned */                   \
	X(3, MANAGED, "managed")                                                                                  \
	X(4, POOL, "pool") /* host memory pool or VMM allocation with a host location: pinned */                  \
	X(5, MMAP, "mmap") /* an ordinary mapping of the process, including [heap] and [stack]: pageable */       \
	X(6, DEVICE, "device")                                                                                    \
	X(7, TT_DRAM, "tt_dram")                                                                                  \
	X(8, TT_L1, "tt_l1")                                                                                      \
	X(9, TT_L1_SMALL, "tt_l1_small")                                                                          \
	X(10, TT_TRACE, "tt_trace")                                                                               \
	X(11, TT_CB, "tt_cb")                                                                                     \
	X(12, CUSTOM, "custom") /* the program's own allocator: --alloc-fn or USDT ttmon:alloc: pageable */       \
	X(13, TT_DMA, "tt_dma") /* host memory of tt-kmd for a process's transfers: pinned, without an address */ \
	X(14, PIECE, "piece")	/* piece of pinned memory from the program's own allocator */

enum ttmon_method {
#define X(id, NAME, name) TTMON_METHOD_##NAME = id,
	TTMON_METHOD_TABLE(X)
#undef X
		TTMON_METHOD_MAX
};

/*
 * In the flags of the call that pinned it, in records and databases: pieces of this memory are given
 * out and have records of their own. CUDA does not use this bit.
 */
#define TTMON_API_BACKING (1u << 31)

/* Bits of ttmon_ev_alloc, _free, _copy and _copy_rect. */
#define TTMON_B_ASYNC	   (1 << 0) /* the call is asynchronous */
#define TTMON_B_UNOBSERVED (1 << 1) /* recorded at entry: enqueued, result not observed; entry_ns == ts_ns, err is 0 */
#define TTMON_B_CAPTURED   (1 << 2) /* enqueued into a stream being captured: a graph node, not a transfer */
#define TTMON_B_BATCH	   (1 << 3) /* one element of a batched call */
#define TTMON_B_TRUNCATED  (1 << 4) /* last element seen of a batch longer than the cap */
#define TTMON_B_SRC_ARRAY  (1 << 5) /* source is a CUDA array or symbol: on the device, has no address */
#define TTMON_B_DST_ARRAY  (1 << 6) /* same for the destination */
#define TTMON_B_STACK_CUT  (1 << 7) /* the call stack was longer than what is kept */
/*
 * Four bits, n: it stands for 2^n copies of the process, chosen at random; the others were only
 * counted. 0: each copy is sent.
 */
#define TTMON_B_SAMPLE	     (15 << TTMON_B_SAMPLE_SHIFT)
#define TTMON_B_SAMPLE_SHIFT 8
/* Two bits, enum ttmon_stack_state: how the frames were found. */
#define TTMON_B_STACK	    (3 << TTMON_B_STACK_SHIFT)
#define TTMON_B_STACK_SHIFT 12

/*
 * The frames of an event were found by frame pointers, which code may lack. COPIED: the top of the
 * stack was copied too; frames[nframes] is its number, and an UNWOUND record has the result.
 * UNCHECKED: it could not be copied, so the frames may be wrong. CONFIRMED: the same frames were
 * checked shortly before.
 */
enum ttmon_stack_state {
	TTMON_STACK_NOT_SAID, /* by frame pointers, without a check */
	TTMON_STACK_COPY,
	TTMON_STACK_UNCHECKED,
	TTMON_STACK_CONFIRMED,
};

/* Where a call stack ends. Append-only. */
#define TTMON_STACK_END_TABLE(X)                                                                                     \
	X(0, UNKNOWN, "unknown", "it is not known whether it is whole")                                              \
	X(1, COMPLETE, "complete", "it is whole")                                                                    \
	X(2, DEPTH, "depth", "there are more frames than are kept")                                                  \
	X(3, COPIED, "copied", "the rest lies beyond the part of the stack that is copied")                          \
	X(4, NO_TABLE, "no_table", "the code of the last frame has no unwind table")                                 \
	X(5, NO_MAP, "no_map", "what would be the next frame is in no code that is known to be mapped")              \
	X(6, BAD_TABLE, "bad_table", "the unwind table of the last frame is broken, or of a kind that is not known") \
	X(7, LOST, "lost", "a register that is needed was not kept")

enum ttmon_stack_end {
#define X(id, NAME, name, help) TTMON_STACK_##NAME = id,
	TTMON_STACK_END_TABLE(X)
#undef X
		TTMON_STACK_END_MAX
};

/* How the frames of a call stack were found. Append-only. */
#define TTMON_STACK_BY_TABLE(X)                                                                      \
	X(0, NOT_SAID, "unknown", "by frame pointers; nobody has looked whether all code has them")  \
	X(1, FRAMES, "frame_pointers", "by frame pointers; unwind tables say the same")              \
	X(2, TABLES, "tables", "by unwind tables")                                                   \
	X(3, GUESSED, "guessed", "by unwind tables, and by a frame pointer where code has no table") \
	X(4, UNCHECKED, "unchecked", "by frame pointers, where code may have none: it may be wrong") \
	X(5, NO_PYTHON, "python_unknown",                                                            \
	  "it has Python frames, and some of their lines, or which there are, is not known")

enum ttmon_stack_by {
#define X(id, NAME, name, help) TTMON_STACK_BY_##NAME = id,
	TTMON_STACK_BY_TABLE(X)
#undef X
		TTMON_STACK_BY_MAX
};

struct ttmon_ev_alloc {
	struct ttmon_event h;
	__u64 entry_ns; /* CLOCK_MONOTONIC at function entry; ts_ns is at return */
	__u64 addr;	/* 0 if err != 0 or the address was not observed */
	__u64 size;	/* bytes requested */
	__u32 flags;	/* API flags as passed: cudaHostAlloc / cudaHostRegister / managed attach */
	__s32 err;	/* cudaError_t or CUresult; 0 is success */
	__u16 fn;	/* enum ttmon_fn: the outermost function called */
	__u8 method;	/* enum ttmon_method */
	__u8 nframes;	/* <= TTMON_MAX_FRAMES; the record may be longer than they need */
	__s16 device;	/* current device of the thread, -1 if unknown */
	__u16 bits;	/* TTMON_B_* */
	/* return addresses, the caller of fn first; with TTMON_STACK_COPY then the number of the copy */
	__u64 frames[];
};

struct ttmon_ev_free {
	struct ttmon_event h;
	__u64 entry_ns; /* a free takes effect at its entry: the address may be reused before it returns */
	__u64 addr;
	__s32 err;
	__u16 fn;
	__u16 bits;
	__s16 device;
	/*
	 * what the function frees: HOST_ALLOC, REGISTERED, DEVICE (also managed and pool), CUSTOM, POOL (VMM
	 * unmap)
	 */
	__u8 method;
	__u8 pad[5];
};

/* Direction of a transfer, numbered as cudaMemcpyKind (driver_types.h). */
enum ttmon_dir {
	TTMON_DIR_H2H,
	TTMON_DIR_H2D,
	TTMON_DIR_D2H,
	TTMON_DIR_D2D,
	TTMON_DIR_DEFAULT, /* to be inferred from both pointers */
	TTMON_DIR_INVALID, /* the program passed a kind that does not exist */
	TTMON_DIR_MAX,
};

struct ttmon_ev_copy {
	struct ttmon_event h;
	__u64 entry_ns;
	__u64 dst; /* 0 with TTMON_B_DST_ARRAY */
	__u64 src;
	__u64 bytes;
	__u64 stream;
	__s32 err;
	__u16 fn;
	__u16 bits;
	__s16 device;
	__u8 dir; /* enum ttmon_dir, from the arguments */
	__u8 pad[5];
};

/*
 * rows * slices pieces of width bytes; the addresses are those of the first byte moved, with offsets
 * applied.
 */
struct ttmon_ev_copy_rect {
	struct ttmon_event h;
	__u64 entry_ns;
	__u64 dst;
	__u64 src;
	__u64 stream;
	__u64 width;  /* bytes of a row */
	__u64 rows;   /* rows of a slice, >= 1 */
	__u64 slices; /* >= 1; 1 in 2D */
	__u64 dpitch; /* bytes from row to row at the destination */
	__u64 spitch;
	__u64 dslice; /* bytes from slice to slice at the destination */
	__u64 sslice;
	__s32 err;
	__u16 fn;
	__u16 bits;
	__s16 device;
	__u8 dir;
	__u8 pad[5];
};

enum ttmon_hint { TTMON_HINT_PREFETCH, TTMON_HINT_ADVISE, TTMON_HINT_DEVICE_PTR };

struct ttmon_ev_hint {
	struct ttmon_event h;
	__u64 addr;
	__u64 bytes; /* 0 for DEVICE_PTR */
	__u32 hint;  /* enum ttmon_hint */
	__s32 err;
	__u32 advice;	/* cudaMemoryAdvise; 0 otherwise */
	__s32 loc_type; /* cudaMemLocationType: 1 device, 2 host, 3 host NUMA node, 4 current NUMA node; 0 unknown */
	__s32 loc_id;	/* device or node */
	__u16 fn;
	__u16 bits;
};

struct ttmon_ev_reset {
	struct ttmon_event h;
	__s32 err;
	__u16 fn;
	/* -1: not known; then all memory of the process is in doubt, except registrations of other devices */
	__s16 device;
};

/*
 * Sent at the first launch in a slot later than the last record's; daemon/core computes the difference
 * to the last record of (process, cpu).
 */
struct ttmon_ev_launches {
	struct ttmon_event h;
	__u64 kernels; /* launches of this process on this CPU since it was first seen */
	__u64 graphs;  /* graph launches */
	/*
	 * copy nodes added to graphs or changed in them: a coverage gap, because their transfers are not seen
	 */
	__u64 graph_copies;
};

/*
 * Number of launches of a process on all CPUs so far. Sent at its first launch, at its first graph
 * launch, and, if there were launches since the last record, before memory is freed and after it is
 * allocated. So the lifetime of each allocation is known in numbers of launches too.
 */
struct ttmon_ev_launched {
	struct ttmon_event h;
	__u64 kernels;
	__u64 graphs;
	__u32 since; /* enum ttmon_launched */
	__u32 pad;
};
/*
 * Counted since the process was first seen, which is shortly after its beginning if it is younger than
 * the capture; since its fork or exec; with a gap.
 */
enum ttmon_launched { TTMON_LAUNCHED_SEEN, TTMON_LAUNCHED_START, TTMON_LAUNCHED_GAP, TTMON_LAUNCHED_MAX };

struct ttmon_ev_mmap {
	struct ttmon_event h;
	__u64 addr;
	__u64 len; /* page aligned */
	__u32 prot;
	__u32 flags; /* MAP_* */
	__s32 fd;    /* -1 for anonymous */
	__u32 pad;
};

struct ttmon_ev_munmap {
	struct ttmon_event h;
	__u64 addr;
	__u64 len;
};

struct ttmon_ev_mremap {
	struct ttmon_event h;
	__u64 entry_ns; /* the old range is released at entry */
	__u64 old_addr;
	__u64 old_len;
	__u64 new_addr;
	__u64 new_len;
	__u64 flags; /* MREMAP_* */
};

struct ttmon_ev_brk {
	struct ttmon_event h;
	__u64 start; /* begin of the heap (mm->start_brk) */
	__u64 brk;   /* its end from now on */
};

/* Follows the ALLOC that it belongs to. */
struct ttmon_ev_tag {
	struct ttmon_event h;
	__u64 addr;
	char tag[32]; /* NUL-terminated */
};

/* A period of the program (a batch, a step) ends here, and the next one begins. */
struct ttmon_ev_checkpoint {
	struct ttmon_event h;
	char label[TTMON_LABEL_LEN]; /* kind of period; NUL-terminated, cut, may be empty */
};

/*
 * Memory from malloc or mmap is not allocated by a probed call. Its call site is that of the code that
 * copies from it to the device: sent after the first copy from a 2 MiB piece of memory by a calling
 * function (return address), as far as the kernel's table remembers.
 */
struct ttmon_ev_copy_site {
	struct ttmon_event h;
	__u64 addr; /* host side of the copy */
	__u16 fn;
	__u8 nframes; /* <= TTMON_MAX_FRAMES; the record may be longer than they need */
	__u8 stack;   /* enum ttmon_stack_state, TTMON_CS_CUT */
	__u8 pad[4];
	/* return addresses, the caller of fn first; with TTMON_STACK_COPY then the number of the copy */
	__u64 frames[];
};
#define TTMON_CS_CUT	      (1 << 2) /* the call stack was longer than what is kept */
#define TTMON_COPY_SITE_SHIFT 21

/*
 * What the kernel counts of a thread's delays (Documentation/accounting/delay-accounting.rst).
 * Append-only.
 */
#define TTMON_DELAY_TABLE(X)                                                             \
	X(0, BLKIO, "block_io", "waiting for block I/O")                                 \
	X(1, SWAPIN, "swap_in", "waiting for pages to be swapped in")                    \
	X(2, RECLAIM, "reclaim", "reclaiming memory for its own allocation")             \
	X(3, THRASHING, "thrashing", "waiting for pages that were evicted a moment ago") \
	X(4, COMPACT, "compaction", "compacting memory for its own allocation")
enum ttmon_delay {
#define X(id, NAME, name, help) TTMON_DELAY_##NAME = id,
	TTMON_DELAY_TABLE(X)
#undef X
		TTMON_DELAY_MAX
};

/*
 * Where the time of a synchronous call went, by the kernel's own counters of its thread. off_ns and
 * runq_ns are by the clock of the run queue, ns by CLOCK_MONOTONIC. What of ns is not off_ns the
 * thread was on its CPU; what of off_ns is not runq_ns it was blocked: core/history/waits.h divides.
 * Calls that this one made itself are part of it.
 */
struct ttmon_ev_wait {
	struct ttmon_event h;
	__u64 entry_ns;
	__u64 ns;      /* from entry to return */
	__u64 off_ns;  /* not on a CPU */
	__u64 runq_ns; /* ready to run, and waiting for a CPU; being throttled by its own cgroup included */
	__u64 caller;  /* return address; 0: not known */
	__u64 delay[TTMON_DELAY_MAX]; /* ns, TTMON_W_DELAYS */
	__u32 voluntary, involuntary; /* switches, by the kernel's count */
	__u32 minor, major;	      /* page faults */
	__s32 err;
	__u16 fn;
	__u16 bits; /* TTMON_W_* */
};
#define TTMON_W_UNOBSERVED (1 << 0) /* recorded at its entry: nothing but fn and caller is known of it */
#define TTMON_W_NO_BOOKS   (1 << 1) /* this kernel does not count run_delay: runq_ns means nothing */
#define TTMON_W_HIDDEN	   (1 << 2) /* it switched, and not each switch was seen: off_ns is a lower bound */
#define TTMON_W_DELAYS	   (1 << 3) /* delay[] is counted for this thread */
#define TTMON_W_UNENDED	   (1 << 4) /* the thread ended inside of it, or has left it by longjmp and ended */
#define TTMON_W_EXEC	   (1 << 5) /* the thread became another program inside of it */
#define TTMON_W_WHO	   (1 << 6) /* the record is a struct ttmon_ev_wait_who */
#define TTMON_W_BITS	   ((1 << 7) - 1)

/*
 * The times of a call that belong to no process: the first three are parts of its time in run queues,
 * the others of its blocked time. Append-only.
 */
#define TTMON_WAIT_SUM_TABLE(X)                                                         \
	X(0, IDLE, "the CPU ran nothing: it had to wake up first")                      \
	X(1, THROTTLED, "the cgroup of the thread had used up its share of CPU time")   \
	X(2, RAN_OTHERS, "processes ran for which there was no row left")               \
	X(3, TIMER, "blocked until a timer")                                            \
	X(4, INTERRUPT, "blocked until an interrupt that is no timer: mostly a device") \
	X(5, WOKE_OTHERS, "blocked until a process for which there was no row left")
enum ttmon_wait_sum {
#define X(id, NAME, help) TTMON_WAIT_SUM_##NAME = id,
	TTMON_WAIT_SUM_TABLE(X)
#undef X
		TTMON_WAIT_SUMS
};

/* What a process had to do with the wait of a call. Append-only. */
#define TTMON_WAIT_ROLE_TABLE(X)                                                     \
	X(0, RAN, "ran", "it ran on the CPU for which the thread was waiting")       \
	X(1, RAN_KERNEL, "ran_kernel", "the same, and it is a thread of the kernel") \
	X(2, WOKE, "woke", "it ended the blocked time, by waking the thread")        \
	X(3, WOKE_KERNEL, "woke_kernel", "the same, and it is a thread of the kernel")
enum ttmon_wait_role {
#define X(id, NAME, name, help) TTMON_WAIT_ROLE_##NAME = id,
	TTMON_WAIT_ROLE_TABLE(X)
#undef X
		TTMON_WAIT_ROLES
};

/* A process that had to do with the wait of a call, as it was at that time. */
struct ttmon_who {
	__u64 start_ns; /* CLOCK_MONOTONIC, of the process */
	__u32 tgid;
	__u32 role;    /* enum ttmon_wait_role */
	char comm[16]; /* of the process; NUL-terminated */
};

struct ttmon_who_row {
	struct ttmon_who who;
	__u64 ns;
	__u64 caller; /* return address of the call that it was in itself when it woke; or 0 */
	__u64 fn;     /* of that call, or 0 */
};

/*
 * WAIT of a call that waited: the processes that ran meanwhile, and those that woke it. The times are
 * of the run queue's clock. Those of the first are at most runq_ns together, those of the wakers at
 * most off_ns - runq_ns; what is missing is unknown.
 */
#define TTMON_WHO_ROWS 16
struct ttmon_ev_wait_who {
	struct ttmon_ev_wait w;
	__u64 sum[TTMON_WAIT_SUMS];
	struct ttmon_who_row row[TTMON_WHO_ROWS]; /* the first nr_rows */
	__u32 nr_rows, pad;
};

/* ---- facts: made by the daemon, cpu is TTMON_CPU_DAEMON ---- */
#define TTMON_CPU_DAEMON 0xffff

/* First record of a capture. hostname and release are NUL-terminated. */
struct ttmon_ev_clock {
	struct ttmon_event h; /* ts_ns: mono_ns */
	__u64 mono_ns;
	__u64 real_ns;
	__u64 boot_ns;
	__u32 nr_cpus;
	__u32 page_size;
	__u32 capture; /* enum ttmon_capture */
	__u32 options; /* TTMON_OPT_* */
	char hostname[64];
	char release[64];
};

enum ttmon_capture { TTMON_CAPTURE_SYSTEM, TTMON_CAPTURE_PIDS, TTMON_CAPTURE_COMMAND };
#define TTMON_OPT_MMAP	       (1 << 0) /* mmap and related calls are traced */
#define TTMON_OPT_COPY_RESULTS (1 << 1)
#define TTMON_OPT_NO_RETURNS   (1 << 2)
/* the upper half has the families of probes that were on: 1 << enum ttmon_family */
#define TTMON_OPT_FAMILIES     (1 << 3)
#define TTMON_OPT_FAMILY_SHIFT 16

enum ttmon_text { TTMON_TEXT_EXE, TTMON_TEXT_CMDLINE, TTMON_TEXT_CGROUP, TTMON_TEXT_UID /* decimal */ };

/*
 * len bytes of text, not NUL-terminated, padded with zeros to a multiple of 8. h.tgid: the process it
 * belongs to.
 */
struct ttmon_ev_text {
	struct ttmon_event h;
	__u32 what; /* enum ttmon_text */
	__u32 len;
	char text[];
};

/*
 * Not part of call sites, as leading frames: CUDA runtime and driver, and ttmon's libraries (base name
 * libttmon*.so*), so that a program has the same sites with and without them.
 */
#define TTMON_OBJ_CUDA	 (1 << 0)
#define TTMON_OBJ_PROBED (1 << 1)
/*
 * A function of Python: path is its source file as its code object names it, and the build-id, of
 * TTMON_PY_ID bytes, a hash of that and of its qualified name: in another run it is the same.
 */
#define TTMON_OBJ_PYTHON (1 << 2)
#define TTMON_PY_ID	 8

struct ttmon_ev_object {
	struct ttmon_event h;
	__u32 id;    /* 1, 2, ...: assigned by the daemon, one for each (device, inode) */
	__u32 flags; /* TTMON_OBJ_* */
	__u64 dev;   /* st_dev */
	__u64 ino;
	__u8 build_id[TTMON_BUILD_ID]; /* shorter ids are padded with zeros */
	__u8 build_id_len;	       /* 0: none */
	__u8 pad[3];
	__u32 text_end_pad;
	__u32 len; /* length of the path that follows, not NUL-terminated, padded to 8 */
	char path[];
};

struct ttmon_ev_map {
	struct ttmon_event h; /* ts_ns: time before the list was read, or the time of the MMAP2 record */
	__u64 start;
	__u64 end;
	__u64 pgoff;  /* bytes */
	__u32 object; /* id of an OBJECT fact, 0: none (anonymous, or a file that was not read) */
	__u32 prot;   /* PROT_READ | PROT_WRITE | PROT_EXEC */
	__u32 shared; /* 1: MAP_SHARED */
	__u32 len; /* length of the name from /proc/PID/maps that follows ("[heap]", a path, or empty), padded to 8 */
	char name[];
};

/*
 * The MAP facts of h.tgid since the last MAPS_DONE were the complete list, read between from_ns and
 * h.ts_ns.
 */
struct ttmon_ev_maps_done {
	struct ttmon_event h;
	__u64 from_ns;
	__u32 count;
	__u32 pad;
};

/*
 * The kernel's sums for h.tgid on of_cpu, read at h.ts_ns; same meaning as TTMON_EV_LAUNCHES from that
 * CPU.
 */
struct ttmon_ev_launch_sums {
	struct ttmon_event h;
	__u32 of_cpu;
	__u32 pad;
	__u64 kernels;
	__u64 graphs;
	__u64 graph_copies;
};

/* h.tgid has ended, as seen at h.ts_ns. No effect on a process whose EXIT was received. */
struct ttmon_ev_gone {
	struct ttmon_event h;
};

struct ttmon_ev_symbol {
	struct ttmon_event h;
	__u32 object;
	__u32 len;    /* length of the name that follows, padded to 8; 0: there is no name */
	__u64 offset; /* file offset that was looked up */
	__u64 delta;  /* offset minus the function's start */
	char name[];
};

struct ttmon_ev_blind {
	struct ttmon_event h; /* tgid: the process that mapped it */
	__u32 object;
	__u16 how;	 /* enum ttmon_blind_how */
	__u16 families;	 /* 1 << enum ttmon_family: families that the object has probes of; 0: those of CUDA */
	__u64 mapped_ns; /* when the mapping appeared, 0: before the trace began */
	__u64 active_ns; /* when the probes were active; STRIPPED, UNPROBED, REFUSED, UNREAD: UINT64_MAX */
};

/*
 * HELD: the process was stopped meanwhile, so no call was missed. STRIPPED: it contains a CUDA runtime
 * without symbols, whose calls are only seen in the driver, if at all: TTMON_PROC_DRIVER. UNPROBED: it
 * has a device file of a GPU mapped, but no object with probes; object is 0. REFUSED: some function of
 * these families cannot be probed. LET_GO: as WINDOW; the process was held, and released before the
 * probes were active. UNREAD: it has a file mapped that could not be read, or not in time, so it is
 * not known whether there are functions to probe in it. The same process, object and mapped_ns with
 * active_ns 0 means: the file has been read since and this was no gap; its contents are reported as
 * for any file.
 */
enum ttmon_blind_how {
	TTMON_BLIND_WINDOW,
	TTMON_BLIND_HELD,
	TTMON_BLIND_STRIPPED,
	TTMON_BLIND_UNPROBED,
	TTMON_BLIND_REFUSED,
	TTMON_BLIND_LET_GO,
	TTMON_BLIND_UNREAD
};

/*
 * Valid from h.ts_ns on. Events of a family that is not on are missing by intent: the history is
 * incomplete.
 */
struct ttmon_ev_family {
	struct ttmon_event h; /* tgid: only this process; 0: all */
	__u32 family;	      /* enum ttmon_family */
	__u32 state;	      /* enum ttmon_family_state */
	__u32 why;	      /* 0: requested, 1: budget */
	__u32 pad;
};

/*
 * Accesses of kernels of process h.tgid, each reported once (memtrace/analyse/use.h). h.ts_ns: when
 * the first of these kernels was launched, or, if not known, when the accesses were read.
 */
struct ttmon_ev_gpu_use {
	struct ttmon_event h;
	__u64 addr, size;    /* bytes, size not 0 */
	__u64 reads, writes; /* requests: instructions of a warp; an atomic is both */
	__u64 sectors;	     /* of 32 bytes */
};

/*
 * Result of unwinding a copy of the stack of h.tgid, h.tid. stack 0: copies without a result so far
 * will not get one, because unwinding has stopped.
 */
/*
 * A frame that is a line of Python: the OBJECT of its function, which has TTMON_OBJ_PYTHON, and the
 * line, 0: not known. In a site the line is its offset, and the SYMBOL there, which comes first, is
 * the function's qualified name.
 */
#define TTMON_FRAME_PYTHON	  (1ULL << 63)
#define TTMON_FRAME_OBJECT_SHIFT  32
#define TTMON_FRAME_LINE(frame)	  ((frame)&0xffffffffULL)
#define TTMON_FRAME_OBJECT(frame) (__u32)(((frame) & ~TTMON_FRAME_PYTHON) >> TTMON_FRAME_OBJECT_SHIFT)

struct ttmon_ev_unwound {
	struct ttmon_event h;
	__u64 stack;	/* number of the copy */
	__u8 by;	/* enum ttmon_stack_by. FRAMES: the frames of the event are right, and none follow here */
	__u8 end;	/* enum ttmon_stack_end */
	__u16 nframes;	/* <= TTMON_MAX_FRAMES */
	__u32 object;	/* NO_TABLE, BAD_TABLE: whose code it is, as in the OBJECT fact; 0: none */
	__u64 frames[]; /* return addresses and lines of Python, innermost first */
};

#include <ttmon/ev_cpu.h>
#include <ttmon/ev_tt.h>

/* Losses and refusals, counted for each CPU in the kernel. Append-only. */
#define TTMON_LOSS_TABLE(X)                                                                            \
	X(0, RING_FULL, "ring_full", "no space in the ring")                                           \
	X(1, MAP_FULL, "map_full", "a kernel table was full or out of memory")                         \
	X(2, READ_FAILED, "read_failed", "memory of the program could not be read (page not present)") \
	X(3, UNPAIRED, "unpaired", "a call never returned (longjmp, exception)")

enum ttmon_loss {
#define X(id, NAME, name, help) TTMON_LOSS_##NAME = id,
	TTMON_LOSS_TABLE(X)
#undef X
		TTMON_LOSS_MAX
};

/*
 * Counters of one CPU as the kernel keeps them; written by BPF, read by the daemon through the mapped
 * array.
 */
struct ttmon_cpu_stat {
	__u64 attempted[TTMON_EV_FACT]; /* by kind: events that a probe tried to send */
	__u64 lost[TTMON_EV_FACT];	/* by kind: those that were not sent */
	__u64 reason[TTMON_LOSS_MAX];	/* the reasons; their sum is the sum over lost[] */
	__u64 nested;			/* probed calls inside another probed call: not counted twice */
	__u64 filtered;			/* hits of processes that are not traced */
	__u64 running_lost;		/* value for ttmon_event.lost */
	__u64 pad;
	__u64 counted[TTMON_EV_FACT]; /* by kind: hits of families that are only counted; not attempted */
};

/*
 * The counters of one CPU and kind, at the end of a capture (or on request), so that a replay has
 * them; and at once when events were lost.
 */
struct ttmon_ev_lost {
	struct ttmon_event h; /* tid: milliseconds since these counters were read last, 0: not known */
	__u32 stat_cpu;
	__u32 stat_kind; /* kind; 0: only reason[] and nested are valid, attempted and lost are 0 */
	__u64 attempted;
	__u64 lost;
	__u64 reason[TTMON_LOSS_MAX];
	__u64 nested;
};

#endif /* TTMON_EVENT_H */
