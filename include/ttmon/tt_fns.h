/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tt_fns.h: the probed functions of tt-metal, one row each, for BPF and daemon. Ids are append-only,
 * as in fns.h; these are 256 to 383, and may go on to 511. Entry probes only, always: these functions
 * throw, and a return probe would end the program.
 *
 * T(id, NAME, pattern, class, aux, bits, a0, a1, a2, a3, a4, a5)
 *
 *   NAME     for people and databases; several rows may mean the same function of different versions
 *   pattern  of the mangled name, from its start: '*' is any run of characters; a pattern without a
 *            '*' at its end must end with
 *            the name. "2v0" after "_ZN2tt8tt_metal" (an inline namespace of old releases) is taken
 *            out of the name before. Names
 *            with a '.' (clones, cold parts) never match. The first row that matches counts.
 *   class    enum ttmon_tt_class
 *   aux      by class: enum ttmon_tt_op or ttmon_tt_dispatch; users paste TTMON_TT_ before it
 *   bits     TTMON_TTF_*; users paste TTMON_ before it
 *   a0..a5   positions of the arguments that are reported, 1-based in the order of registers (a hidden
 *            return slot and "this" count);
 *            0: not there. What each means is said at the class.
 *
 * docs/tt-metal-releases.md shows which release of tt-metal has which function. A row is removed when
 * no release of the last eighteen months has its functions; a lint compares the page with this table.
 */
#ifndef TTMON_TT_FNS_H
#define TTMON_TT_FNS_H

#define TTMON_TT_FN_FIRST 256
#define TTMON_TT_FN_END	  384

enum ttmon_tt_class {
	TTMON_TT_CLS_NONE,
	TTMON_TT_CLS_BUFFER, /* a0: Buffer. aux: enum ttmon_tt_op. Event TT_BUFFER */
	/* TT_CALL: a0 device, a1 size, a2 page size, a3 BufferType, a4 address (shadows; else 0) */
	TTMON_TT_CLS_CREATE,
	TTMON_TT_CLS_BULK, /* TT_CALL: a0 allocator: all its buffers are gone */
	/*
	 * TT_CALL, as struct ttmon_ev_tt_cb: a0 device, a1 CoreRangeSet -> number of cores, a2 address, a3
	 * size per core, a4 global
	 */
	TTMON_TT_CLS_CB,
	TTMON_TT_CLS_CB_FREE,	 /* TT_CALL: a0 device; a1 the program that ends, 0: not known */
	TTMON_TT_CLS_DEVICE_NEW, /* TT_CALL: a0 Device, a1 logical id */
	TTMON_TT_CLS_DEVICE_END, /* TT_CALL: a0 Device */
	/* TT_CALL: a0 provider, a1 file key, a2 logical id, a3 disabled (0 where there is no such argument) */
	TTMON_TT_CLS_PROVIDER,
	/* TT_DISPATCH: a0 object that leads to the device, a1 what, a2 blocking. aux: enum ttmon_tt_dispatch */
	TTMON_TT_CLS_DISPATCH,
	TTMON_TT_CLS_PROGRAM,	  /* TT_PROGRAM: a0 record */
	TTMON_TT_CLS_PROGRAMS,	  /* TT_PROGRAM, several: a0 batch {records, count, dropped} */
	TTMON_TT_CLS_PAIR,	  /* TT_CALL: a0 chip, a1 host ticks, a2 device cycles */
	TTMON_TT_CLS_KMD,	  /* no function of a library: an ioctl of tt-kmd */
	TTMON_TT_CLS_DEVICE_OPEN, /* TT_CALL: a0 Device, which may have been closed before */
	/*
	 * TT_CALL: a0 MeshDevice that is made or destroyed there: earlier knowledge of that address is not
	 * valid
	 */
	TTMON_TT_CLS_MESH_ANEW,
	/*
	 * a0 device or mesh that it runs on, a1 ProgramImpl: the next circular buffers of this thread belong
	 * to this program. aux: OP_ENTER, OP_LEAVE (no a0). TT_CALL for OP_ENTER if the process closed a
	 * device before, once for each program and device since
	 */
	TTMON_TT_CLS_CB_OF,
	TTMON_TT_CLS_MAX
};

enum ttmon_tt_op {
	TTMON_TT_OP_NONE,
	TTMON_TT_OP_ALLOCATED, /* after a successful allocation: the primary */
	TTMON_TT_OP_FREEING,   /* before a real free: the primary */
	TTMON_TT_OP_ENTER,     /* an allocation begins, and may throw */
	TTMON_TT_OP_LEAVE,     /* deallocate_impl: a free, unless the buffer is not allocated */
	TTMON_TT_OP_MARK,      /* mark_as_deallocated: the device is gone already */
	TTMON_TT_OP_DTOR,
	TTMON_TT_OP_TAKE_BACK, /* Allocator::deallocate_buffer */
	TTMON_TT_OP_SHADOW,    /* class CREATE: with an address, no allocation of its own */
};

#define TTMON_TTF_NONE	0
#define TTMON_TTF_SPARE (1 << 0) /* unnecessary if the primary pair works: can be removed */
#define TTMON_TTF_REF	(1 << 1) /* DISPATCH: a1 is a reference to the 32-bit id that is meant */
#define TTMON_TTF_MAIN	(1 << 2) /* part of the primary pair */
/*
 * DISPATCH: called by the public function (a row without this bit) of the same kind, which may end in
 * a jump to it. Then both have the same return address at the same place, and count as one dispatch.
 */
#define TTMON_TTF_INNER	    (1 << 3)
#define TTMON_TTF_INNER_REF (TTMON_TTF_INNER | TTMON_TTF_REF)

/* clang-format off */
#define TTMON_TT_FN_TABLE(T) \
	/* allocation: the primary pair */ \
	T(256, track_allocate, "_ZN2tt8tt_metal12GraphTracker14track_allocateEPKN*6BufferE*", \
	  BUFFER, OP_ALLOCATED, TTF_MAIN, 2, 0, 0, 0, 0, 0) \
	T(257, track_deallocate, "_ZN2tt8tt_metal12GraphTracker16track_deallocateEPN*6BufferE*", \
	  BUFFER, OP_FREEING, TTF_MAIN, 2, 0, 0, 0, 0, 0) \
	T(258, notify_buffer_allocated, "_ZN2tt8tt_metal23notify_buffer_allocatedEPKN*6BufferE", \
	  BUFFER, OP_ALLOCATED, TTF_MAIN, 1, 0, 0, 0, 0, 0) \
	T(259, notify_buffer_deallocated, "_ZN2tt8tt_metal25notify_buffer_deallocatedEPN*6BufferE", \
	  BUFFER, OP_FREEING, TTF_MAIN, 1, 0, 0, 0, 0, 0) \
	/* and what stands in for it */ \
	T(260, allocate_impl, "_ZN2tt8tt_metal6Buffer13allocate_implEv", \
	  BUFFER, OP_ENTER, TTF_SPARE, 1, 0, 0, 0, 0, 0) \
	T(261, deallocate_impl, "_ZN2tt8tt_metal6Buffer15deallocate_implEv", \
	  BUFFER, OP_LEAVE, TTF_SPARE, 1, 0, 0, 0, 0, 0) \
	T(262, allocate_impl, "_ZN2tt8tt_metal10BufferImpl13allocate_implERN*6BufferE", \
	  BUFFER, OP_ENTER, TTF_SPARE, 2, 0, 0, 0, 0, 0) \
	T(263, deallocate_impl, "_ZN2tt8tt_metal10BufferImpl15deallocate_implERN*6BufferE", \
	  BUFFER, OP_LEAVE, TTF_SPARE, 2, 0, 0, 0, 0, 0) \
	T(264, deallocate, "_ZN2tt8tt_metal6Buffer10deallocateEv", BUFFER, OP_LEAVE, TTF_SPARE, 1, 0, 0, 0, 0, 0) \
	T(265, DeallocateBuffer, "_ZN2tt8tt_metal16DeallocateBufferERN*6BufferE", \
	  BUFFER, OP_LEAVE, TTF_SPARE, 1, 0, 0, 0, 0, 0) \
	T(266, mark_as_deallocated, "_ZN2tt8tt_metal6Buffer19mark_as_deallocatedEv", \
	  BUFFER, OP_MARK, TTF_NONE, 1, 0, 0, 0, 0, 0) \
	T(267, buffer_dtor, "_ZN2tt8tt_metal6BufferD1Ev", BUFFER, OP_DTOR, TTF_SPARE, 1, 0, 0, 0, 0, 0) \
	T(268, buffer_dtor, "_ZN2tt8tt_metal6BufferD2Ev", BUFFER, OP_DTOR, TTF_SPARE, 1, 0, 0, 0, 0, 0) \
	T(269, allocate_buffer, "_ZN2tt8tt_metal13AllocatorImpl15allocate_bufferEPN*6BufferE*", \
	  BUFFER, OP_ENTER, TTF_SPARE, 2, 0, 0, 0, 0, 0) \
	T(270, allocate_buffer, "_ZN2tt8tt_metal9Allocator15allocate_bufferEPN*6BufferE*", \
	  BUFFER, OP_ENTER, TTF_SPARE, 2, 0, 0, 0, 0, 0) \
	T(271, deallocate_buffer, "_ZN2tt8tt_metal13AllocatorImpl17deallocate_bufferEPN*6BufferE*", \
	  BUFFER, OP_TAKE_BACK, TTF_SPARE, 2, 0, 0, 0, 0, 0) \
	T(272, deallocate_buffer, "_ZN2tt8tt_metal9Allocator17deallocate_bufferEPN*6BufferE*", \
	  BUFFER, OP_TAKE_BACK, TTF_SPARE, 2, 0, 0, 0, 0, 0) \
	T(273, deallocate_buffers, "_ZN2tt8tt_metal13AllocatorImpl18deallocate_buffersEv", \
	  BULK, OP_NONE, TTF_NONE, 1, 0, 0, 0, 0, 0) \
	T(274, deallocate_buffers, "_ZN2tt8tt_metal9Allocator18deallocate_buffersEv", \
	  BULK, OP_NONE, TTF_NONE, 1, 0, 0, 0, 0, 0) \
	T(275, allocator_clear, "_ZN2tt8tt_metal13AllocatorImpl5clearEv", BULK, OP_NONE, TTF_NONE, 1, 0, 0, 0, 0, 0) \
	T(276, allocator_clear, "_ZN2tt8tt_metal9Allocator5clearEv", BULK, OP_NONE, TTF_NONE, 1, 0, 0, 0, 0, 0) \
	/* what layouts are checked with, and which chips a mesh has */ \
	T(280, buffer_create_at, "_ZN2tt8tt_metal6Buffer6createEPN*DeviceEmmmN*10BufferTypeE*", \
	  CREATE, OP_SHADOW, TTF_SPARE, 2, 4, 5, 6, 3, 0) \
	T(281, buffer_create, "_ZN2tt8tt_metal6Buffer6createEPN*DeviceEmmN*10BufferTypeE*", \
	  CREATE, OP_NONE, TTF_SPARE, 2, 3, 4, 5, 0, 0) \
	/* the program's own statistics */ \
	T(284, shm_provider, "_ZN2tt8tt_metal25SharedMemoryStatsProviderC1Emibb", \
	  PROVIDER, OP_NONE, TTF_NONE, 1, 2, 3, 4, 0, 0) \
	T(285, shm_provider, "_ZN2tt8tt_metal25SharedMemoryStatsProviderC2Emibb", \
	  PROVIDER, OP_NONE, TTF_NONE, 1, 2, 3, 4, 0, 0) \
	T(286, shm_provider, "_ZN2tt8tt_metal25SharedMemoryStatsProviderC1Em*", \
	  PROVIDER, OP_NONE, TTF_NONE, 1, 2, 3, 0, 0, 0) \
	T(287, shm_provider, "_ZN2tt8tt_metal25SharedMemoryStatsProviderC2Em*", \
	  PROVIDER, OP_NONE, TTF_NONE, 1, 2, 3, 0, 0, 0) \
	/* circular buffers */ \
	T(290, track_allocate_cb, "_ZN2tt8tt_metal12GraphTracker17track_allocate_cbERK*mmbPKN*DeviceE*", \
	  CB, OP_NONE, TTF_NONE, 6, 2, 3, 4, 5, 0) \
	T(291, track_deallocate_cb, "_ZN2tt8tt_metal12GraphTracker19track_deallocate_cbEPKN*DeviceE*", \
	  CB_FREE, OP_NONE, TTF_NONE, 2, 0, 0, 0, 0, 0) \
	T(292, allocate_circular_buffers, "_ZN2tt8tt_metal6detail*25allocate_circular_buffersEPKN*DeviceE*", \
	  CB_OF, OP_ENTER, TTF_NONE, 2, 1, 0, 0, 0, 0) \
	T(293, deallocate_circular_buffers, "_ZN2tt8tt_metal6detail*27deallocate_circular_buffersEv", \
	  CB_OF, OP_LEAVE, TTF_NONE, 0, 1, 0, 0, 0, 0) \
	/* devices */ \
	T(294, device, "_ZN2tt8tt_metal6DeviceC1EPN*8MetalEnv*", DEVICE_NEW, OP_NONE, TTF_NONE, 1, 4, 0, 0, 0, 0) \
	T(295, device, "_ZN2tt8tt_metal6DeviceC2EPN*8MetalEnv*", DEVICE_NEW, OP_NONE, TTF_NONE, 1, 4, 0, 0, 0, 0) \
	T(296, device, "_ZN2tt8tt_metal6DeviceC1E[ij]*", DEVICE_NEW, OP_NONE, TTF_NONE, 1, 2, 0, 0, 0, 0) \
	T(297, device, "_ZN2tt8tt_metal6DeviceC2E[ij]*", DEVICE_NEW, OP_NONE, TTF_NONE, 1, 2, 0, 0, 0, 0) \
	T(298, device_close, "_ZN2tt8tt_metal6Device5closeEv", DEVICE_END, OP_NONE, TTF_NONE, 1, 0, 0, 0, 0, 0) \
	T(299, device_initialize, "_ZN2tt8tt_metal6Device10initializeE*", \
	  DEVICE_OPEN, OP_NONE, TTF_NONE, 1, 0, 0, 0, 0, 0) \
	/* and the end of a program with circular buffers */ \
	T(300, program_dtor, "_ZN2tt8tt_metal6detail11ProgramImplD[12]Ev", \
	  CB_OF, OP_LEAVE, TTF_NONE, 0, 1, 0, 0, 0, 0) \
	/* another mesh may lie where one was */ \
	T(302, mesh_ctor, "_ZN2tt8tt_metal11distributed10MeshDeviceC[12]E*", \
	  MESH_ANEW, OP_NONE, TTF_NONE, 1, 0, 0, 0, 0, 0) \
	T(303, mesh_dtor, "_ZN2tt8tt_metal11distributed10MeshDeviceD[12]Ev", \
	  MESH_ANEW, OP_NONE, TTF_NONE, 1, 0, 0, 0, 0, 0) \
	/* dispatch; the outermost probed call of a thread counts */ \
	T(310, EnqueueMeshWorkload, "_ZN2tt8tt_metal11distributed19EnqueueMeshWorkloadE*", \
	  DISPATCH, WORKLOAD, TTF_NONE, 1, 2, 3, 0, 0, 0) \
	T(311, enqueue_mesh_workload, "_ZN2tt8tt_metal11distributed18FDMeshCommandQueue21enqueue_mesh_workloadE*", \
	  DISPATCH, WORKLOAD, TTF_INNER, 1, 2, 3, 0, 0, 0) \
	T(313, enqueue_mesh_workload, "_ZN2tt8tt_metal11distributed18SDMeshCommandQueue21enqueue_mesh_workloadE*", \
	  DISPATCH, SLOW, TTF_INNER, 1, 2, 3, 0, 0, 0) \
	T(314, EnqueueProgram, "_ZN2tt8tt_metal14EnqueueProgramERN*12CommandQueueE*", \
	  DISPATCH, WORKLOAD, TTF_NONE, 1, 2, 3, 0, 0, 0) \
	T(315, enqueue_program, "_ZN2tt8tt_metal14HWCommandQueue15enqueue_programE*", \
	  DISPATCH, WORKLOAD, TTF_INNER, 1, 2, 3, 0, 0, 0) \
	T(316, enqueue_trace, "_ZN2tt8tt_metal11distributed18FDMeshCommandQueue13enqueue_traceE*", \
	  DISPATCH, TRACE, TTF_INNER_REF, 1, 2, 3, 0, 0, 0) \
	T(317, ReplayTrace, "_ZN2tt8tt_metal11distributed11ReplayTraceEPN*10MeshDeviceE*", \
	  DISPATCH, TRACE, TTF_REF, 1, 3, 4, 0, 0, 0) \
	T(318, enqueue_trace, "_ZN2tt8tt_metal14HWCommandQueue13enqueue_traceE*", \
	  DISPATCH, TRACE, TTF_INNER, 1, 2, 3, 0, 0, 0) \
	T(319, EnqueueTrace, "_ZN2tt8tt_metal12EnqueueTraceERN*12CommandQueueE*", \
	  DISPATCH, TRACE, TTF_NONE, 1, 2, 3, 0, 0, 0) \
	T(320, LaunchProgram, "_ZN2tt8tt_metal6detail13LaunchProgramEPN*DeviceE*", \
	  DISPATCH, SLOW, TTF_NONE, 1, 2, 3, 0, 0, 0) \
	T(321, finish, "_ZN2tt8tt_metal11distributed18FDMeshCommandQueue6finishE*", \
	  DISPATCH, FINISH, TTF_INNER, 1, 0, 0, 0, 0, 0) \
	T(322, Finish, "_ZN2tt8tt_metal11distributed6FinishERN*16MeshCommandQueueE*", \
	  DISPATCH, FINISH, TTF_NONE, 1, 0, 0, 0, 0, 0) \
	T(323, Finish, "_ZN2tt8tt_metal6FinishERN*12CommandQueueE*", DISPATCH, FINISH, TTF_NONE, 1, 0, 0, 0, 0, 0) \
	T(324, finish, "_ZN2tt8tt_metal14HWCommandQueue6finishE*", DISPATCH, FINISH, TTF_INNER, 1, 0, 0, 0, 0, 0) \
	T(325, enqueue_write_mesh_buffer, "_ZN2tt8tt_metal11distributed*25enqueue_write_mesh_bufferE*", \
	  DISPATCH, WRITE, TTF_INNER, 1, 2, 4, 0, 0, 0) \
	T(326, enqueue_read_mesh_buffer, "_ZN2tt8tt_metal11distributed*24enqueue_read_mesh_bufferE*", \
	  DISPATCH, READ, TTF_INNER, 1, 3, 4, 0, 0, 0) \
	T(327, enqueue_write_shards, "_ZN2tt8tt_metal11distributed*20enqueue_write_shardsE*", \
	  DISPATCH, WRITE, TTF_INNER, 1, 2, 4, 0, 0, 0) \
	T(328, enqueue_read_shards, "_ZN2tt8tt_metal11distributed*19enqueue_read_shardsE*", \
	  DISPATCH, READ, TTF_INNER, 1, 3, 4, 0, 0, 0) \
	T(329, EnqueueWriteBuffer, "_ZN2tt8tt_metal18EnqueueWriteBufferERN*12CommandQueueE*", \
	  DISPATCH, WRITE, TTF_NONE, 1, 2, 4, 0, 0, 0) \
	T(330, EnqueueReadBuffer, "_ZN2tt8tt_metal17EnqueueReadBufferERN*12CommandQueueE*", \
	  DISPATCH, READ, TTF_NONE, 1, 2, 4, 0, 0, 0) \
	T(331, replay_mesh_trace, "_ZN2tt8tt_metal11distributed10MeshDevice17replay_mesh_traceE*", \
	  DISPATCH, TRACE, TTF_REF, 1, 3, 4, 0, 0, 0) \
	T(332, replay_mesh_trace, "_ZN2tt8tt_metal11distributed14MeshDeviceImpl17replay_mesh_traceE*", \
	  DISPATCH, TRACE, TTF_INNER_REF, 1, 3, 4, 0, 0, 0) \
	T(333, finish, "_ZN2tt8tt_metal11distributed18SDMeshCommandQueue6finishE*", \
	  DISPATCH, FINISH, TTF_INNER, 1, 0, 0, 0, 0, 0) \
	T(334, enqueue_trace, "_ZN2tt8tt_metal11distributed18SDMeshCommandQueue13enqueue_traceE*", \
	  DISPATCH, TRACE, TTF_INNER_REF, 1, 2, 3, 0, 0, 0) \
	/* the real-time profiler */ \
	T(340, program_callbacks, "_ZN2tt38InvokeProgramRealtimeProfilerCallbacksERKN*21ProgramRealtimeRecordE", \
	  PROGRAM, OP_NONE, TTF_NONE, 1, 0, 0, 0, 0, 0) \
	T(342, program_callbacks, \
	  "_ZN2tt8tt_metal13DataCollector38InvokeProgramRealtimeProfilerCallbacksERKN*21ProgramRealtimeRecordE", \
	  PROGRAM, OP_NONE, TTF_NONE, 2, 0, 0, 0, 0, 0) \
	T(343, tracy_on_records, "_ZN2tt8tt_metal*29RealtimeProfilerTracyConsumer10on_recordsE*", \
	  PROGRAMS, OP_NONE, TTF_NONE, 2, 0, 0, 0, 0, 0) \
	T(344, on_records, "_ZN2tt8tt_metal*24RealtimeProfilerConsumer10on_recordsE*", \
	  PROGRAMS, OP_NONE, TTF_NONE, 2, 0, 0, 0, 0, 0) \
	T(350, CalibrateDevice, "_ZN2tt8tt_metal*28RealtimeProfilerTracyHandler15CalibrateDeviceEjlmd", \
	  PAIR, OP_NONE, TTF_NONE, 2, 3, 4, 0, 0, 0) \
	/* tt-kmd; the patterns match nothing */ \
	T(370, PIN_PAGES, "", KMD, OP_NONE, TTF_NONE, 0, 0, 0, 0, 0, 0) \
	T(371, ALLOCATE_DMA_BUF, "", KMD, OP_NONE, TTF_NONE, 0, 0, 0, 0, 0, 0) \
	T(372, UNPIN_PAGES, "", KMD, OP_NONE, TTF_NONE, 0, 0, 0, 0, 0, 0)
/* clang-format on */

/*
 * The vtables that distinguish a device from a mesh: patterns as above. An object's first word is the
 * symbol's address + 16.
 */
#define TTMON_TT_VTABLE_DEVICE "_ZTVN2tt8tt_metal6DeviceE"
#define TTMON_TT_VTABLE_MESH   "_ZTVN2tt8tt_metal11distributed10MeshDeviceE"

/* The most libraries with tt-metal at a time; cookies contain a slot. */
#define TTMON_TT_SLOTS 256

/*
 * The attach cookie of a probe: bits 0-15 the function's id, 16-31 the library's slot, 32-63 the
 * function's link-time address, 0 if that does not fit. The instruction pointer at the probe minus
 * this address is the load address of the library.
 */
#define TTMON_TT_COOKIE(fn, slot, addr) \
	((unsigned long long)(fn) | (unsigned long long)(slot) << 16 | (unsigned long long)(addr) << 32)

/*
 * What the BPF programs know about a library (map tt_slots, by slot): link-time addresses, symbol +
 * 16; 0: not known.
 */
struct ttmon_tt_slot {
	unsigned long long vt_device;
	unsigned long long vt_mesh;
};

/* What the BPF programs know about a function, by id - TTMON_TT_FN_FIRST. */
struct ttmon_tt_desc {
	unsigned char cls, aux, bits, pad;
	unsigned char arg[6];
	unsigned char pad2[2];
};

#endif /* TTMON_TT_FNS_H */
