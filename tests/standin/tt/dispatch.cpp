// SPDX-License-Identifier: GPL-2.0-only
/*
 * dispatch.cpp: everything that sends work to a device, under the names of each generation (facts/tenstorrent.md 3.1), outer functions
 * calling inner ones as tt-metal does. Nothing is done with the work. Sources in tt-metal: distributed/fd_mesh_command_queue.hpp of 01d4cc77,
 * mesh_command_queue.hpp of 03bbd749, sd_mesh_command_queue.cpp and mesh_device.cpp of main 622c6fb9, tt_metal.hpp of 0141280a (LaunchProgram).
 */
#include "metal.hpp"
#include "world.hpp"

#if TT_GEN >= 10
namespace tt::tt_metal::distributed
{
class MeshWorkload
{
      public:
	uint64_t programs = 1;
};
struct ShardDataTransfer {
	uint64_t coordinate;
};
using Spans = tt_types::Span<const SubDeviceId>;
using Bufs = std::shared_ptr<MeshBuffer>;

class MeshCommandQueue
{
      public:
	MeshDevice *mesh_device_;
	uint32_t id_ = 0;
	explicit MeshCommandQueue(MeshDevice *mesh) : mesh_device_(mesh)
	{
	}
	virtual ~MeshCommandQueue() = default;
	virtual void enqueue_mesh_workload(MeshWorkload &workload, bool blocking) = 0;
	virtual void finish(Spans subs) = 0;
	virtual void enqueue_trace(const MeshTraceId &id, bool blocking) = 0;
};
class MeshCommandQueueBase : public MeshCommandQueue
{
      public:
	using MeshCommandQueue::MeshCommandQueue;
	void enqueue_write_mesh_buffer(const Bufs &buffer, const void *src, bool blocking);
	void enqueue_read_mesh_buffer(void *dst, const Bufs &buffer, bool blocking);
	void enqueue_write_shards(const Bufs &buffer, const std::vector<ShardDataTransfer> &shards, bool blocking);
	void enqueue_read_shards(const std::vector<ShardDataTransfer> &shards, const Bufs &buffer, bool blocking);
};
class FDMeshCommandQueue : public MeshCommandQueueBase
{
      public:
	using MeshCommandQueueBase::MeshCommandQueueBase;
	void enqueue_mesh_workload(MeshWorkload &workload, bool blocking) override;
	void finish(Spans subs) override;
	void enqueue_trace(const MeshTraceId &id, bool blocking) override;
};
class SDMeshCommandQueue : public MeshCommandQueueBase
{
      public:
	using MeshCommandQueueBase::MeshCommandQueueBase;
	void enqueue_mesh_workload(MeshWorkload &workload, bool blocking) override;
	void finish(Spans subs) override;
	void enqueue_trace(const MeshTraceId &id, bool blocking) override;
};
using Queue = FDMeshCommandQueue;
using Transfers = MeshCommandQueueBase;

void SDMeshCommandQueue::enqueue_mesh_workload(MeshWorkload &workload, bool)
{
	PROBED();
	workload.programs++;
}
void SDMeshCommandQueue::finish(Spans)
{
	PROBED();
}
/* tt-metal's throws: "Not supported for slow dispatch" (distributed/sd_mesh_command_queue.cpp). */
void SDMeshCommandQueue::enqueue_trace(const MeshTraceId &, bool)
{
	PROBED();
}

void Queue::enqueue_mesh_workload(MeshWorkload &workload, bool)
{
	PROBED();
	workload.programs++;
}

void Queue::finish(Spans)
{
	PROBED();
}

void Queue::enqueue_trace(const MeshTraceId &id, bool)
{
	PROBED();
	id_ += id.value * 0;
}

void Transfers::enqueue_write_mesh_buffer(const Bufs &, const void *, bool)
{
	PROBED();
}
void Transfers::enqueue_read_mesh_buffer(void *, const Bufs &, bool)
{
	PROBED();
}
void Transfers::enqueue_write_shards(const Bufs &, const std::vector<ShardDataTransfer> &, bool)
{
	PROBED();
}
void Transfers::enqueue_read_shards(const std::vector<ShardDataTransfer> &, const Bufs &, bool)
{
	PROBED();
}

void EnqueueMeshWorkload(MeshCommandQueue &queue, MeshWorkload &workload, bool blocking)
{
	PROBED();
	queue.enqueue_mesh_workload(workload, blocking);
	workload.programs++;
}

void ReplayTrace(MeshDevice *mesh, uint8_t, const MeshTraceId &id, bool blocking)
{
	PROBED();
	Queue queue(mesh);

	queue.enqueue_trace(id, blocking);
}

#if TT_IMPL
/* ReplayTrace is gone: a trace is replayed by the mesh, whose impl calls its queue (distributed/mesh_device.cpp of main 622c6fb9). */
void MeshDeviceImpl::replay_mesh_trace(uint8_t, const MeshTraceId &id, bool blocking)
{
	PROBED();
	Queue queue(self);

	queue.enqueue_trace(id, blocking);
}
void MeshDevice::replay_mesh_trace(uint8_t cq_id, const MeshTraceId &id, bool blocking)
{
	PROBED();
	pimpl_->replay_mesh_trace(cq_id, id, blocking);
}
#endif

void Finish(MeshCommandQueue &queue, Spans subs)
{
	PROBED();
	queue.finish(subs);
}

static MeshDevice *mesh()
{
	return standin::world().mesh.get();
}
static MeshWorkload workload;
static const MeshTraceId trace_id = { 7 };
static const Spans no_subs = { nullptr, 0 };
static const Bufs no_buffer;

template <typename F> static void with(F call)
{
	Queue queue(mesh());

	call(queue);
}
static void call_workload()
{
	with([](Queue &q) { EnqueueMeshWorkload(q, workload, false); });
}
static void call_blocking()
{
	with([](Queue &q) { EnqueueMeshWorkload(q, workload, true); });
}
static void call_inner()
{
	with([](Queue &q) { q.enqueue_mesh_workload(workload, false); });
}
static void call_replay()
{
	ReplayTrace(mesh(), 0, trace_id, false);
}
#if TT_IMPL
static void call_replay_mesh()
{
	mesh()->replay_mesh_trace(0, trace_id, false);
}
static void call_replay_impl()
{
	mesh()->pimpl_->replay_mesh_trace(0, trace_id, true);
}
#endif
static void call_finish()
{
	with([](Queue &q) { Finish(q, no_subs); });
}
static void call_write()
{
	with([](Queue &q) { q.enqueue_write_mesh_buffer(no_buffer, &workload, false); });
}
static void call_read()
{
	with([](Queue &q) { q.enqueue_read_mesh_buffer(&workload, no_buffer, true); });
}
static void call_write_shards()
{
	with([](Queue &q) { q.enqueue_write_shards(no_buffer, {}, false); });
}
static void call_read_shards()
{
	with([](Queue &q) { q.enqueue_read_shards({}, no_buffer, true); });
}
static void call_inner_trace()
{
	with([](Queue &q) { q.enqueue_trace(trace_id, true); });
}
static void call_inner_finish()
{
	with([](Queue &q) { q.finish(no_subs); });
}
static void call_slow_mesh()
{
	SDMeshCommandQueue queue(mesh());

	queue.enqueue_mesh_workload(workload, true);
}
static void call_slow_finish()
{
	SDMeshCommandQueue queue(mesh());

	queue.finish(no_subs);
}
static void call_slow_trace()
{
	SDMeshCommandQueue queue(mesh());

	queue.enqueue_trace(trace_id, true);
}
} // namespace tt::tt_metal::distributed
#endif

namespace tt::tt_metal
{
#define TT_LEGACY (TT_GEN <= 20)
#if TT_LEGACY
TT_V0_BEGIN
class CommandQueue
{
      public:
	uint32_t id_ = 0;
	IDevice *device_;
	explicit CommandQueue(IDevice *device) : device_(device)
	{
	}
};
TT_V0_END
class HWCommandQueue
{
      public:
	uint32_t id_ = 0;
	IDevice *device_;
	explicit HWCommandQueue(IDevice *device) : device_(device)
	{
	}
	void enqueue_program(Program &program, bool blocking);
	void enqueue_trace(uint32_t id, bool blocking);
	void finish();
};
void HWCommandQueue::enqueue_program(Program &program, bool)
{
	PROBED();
	program.id++;
}
void HWCommandQueue::enqueue_trace(uint32_t, bool)
{
	PROBED();
}
void HWCommandQueue::finish()
{
	PROBED();
}

TT_V0_BEGIN
void EnqueueProgram(CommandQueue &queue, Program &program, bool blocking)
{
	PROBED();
	HWCommandQueue(queue.device_).enqueue_program(program, blocking);
}
void EnqueueTrace(CommandQueue &queue, uint32_t id, bool blocking)
{
	PROBED();
	HWCommandQueue(queue.device_).enqueue_trace(id, blocking);
}
void EnqueueWriteBuffer(CommandQueue &, const std::shared_ptr<Buffer> &, std::vector<uint32_t> &, bool)
{
	PROBED();
}
void EnqueueReadBuffer(CommandQueue &, const std::shared_ptr<Buffer> &, std::vector<uint32_t> &, bool)
{
	PROBED();
}
#if TT_GEN == 0
void Finish(CommandQueue &queue)
#else
void Finish(CommandQueue &queue, tt_types::Span<const SubDeviceId>)
#endif
{
	PROBED();
	HWCommandQueue(queue.device_).finish();
}
TT_V0_END
#endif

namespace detail
{
#if TT_GEN >= 25
void LaunchProgram(IDevice *, Program &program, bool, bool)
#else
void LaunchProgram(IDevice *, Program &program, bool)
#endif
{
	PROBED();
	program.id++;
}
} // namespace detail

static IDevice *device()
{
	return standin::world().devices[0].get();
}
static Program program;

static void call_launch()
{
#if TT_GEN >= 25
	detail::LaunchProgram(device(), program, true, false);
#else
	detail::LaunchProgram(device(), program, true);
#endif
}
#if TT_LEGACY
static std::vector<uint32_t> words(4);
static void call_program()
{
	CommandQueue queue(device());

	EnqueueProgram(queue, program, false);
}
static void call_trace()
{
	CommandQueue queue(device());

	EnqueueTrace(queue, 9, false);
}
static void call_write_buffer()
{
	CommandQueue queue(device());

	EnqueueWriteBuffer(queue, nullptr, words, false);
}
static void call_read_buffer()
{
	CommandQueue queue(device());

	EnqueueReadBuffer(queue, nullptr, words, true);
}
static void call_finish_queue()
{
	CommandQueue queue(device());

#if TT_GEN == 0
	Finish(queue);
#else
	Finish(queue, { nullptr, 0 });
#endif
}
static void call_hw_program()
{
	HWCommandQueue(device()).enqueue_program(program, false);
}
static void call_hw_trace()
{
	HWCommandQueue(device()).enqueue_trace(9, false);
}
static void call_hw_finish()
{
	HWCommandQueue(device()).finish();
}
#endif

/* Nobody can tell that an object of e0 is a Device. */
#define TT_DEVICE (TT_GEN == 0 ? "unknown" : "device")
static const struct standin_tt_dispatch table[] = {
	{ "LaunchProgram", "slow", TT_DEVICE, call_launch },
#if TT_LEGACY
	{ "EnqueueProgram", "workload", TT_DEVICE, call_program },
	{ "EnqueueTrace", "trace", TT_DEVICE, call_trace },
	{ "EnqueueWriteBuffer", "write", TT_DEVICE, call_write_buffer },
	{ "EnqueueReadBuffer", "read", TT_DEVICE, call_read_buffer },
	{ "Finish", "finish", TT_DEVICE, call_finish_queue },
	{ "HWCommandQueue::enqueue_program", "workload", TT_DEVICE, call_hw_program },
	{ "HWCommandQueue::enqueue_trace", "trace", TT_DEVICE, call_hw_trace },
	{ "HWCommandQueue::finish", "finish", TT_DEVICE, call_hw_finish },
#endif
#if TT_GEN >= 10
	{ "EnqueueMeshWorkload", "workload", "mesh", distributed::call_workload },
	{ "EnqueueMeshWorkload blocking", "workload", "mesh", distributed::call_blocking },
	{ "enqueue_mesh_workload", "workload", "mesh", distributed::call_inner },
	{ "ReplayTrace", "trace", "mesh", distributed::call_replay },
	{ "distributed::Finish", "finish", "mesh", distributed::call_finish },
	{ "enqueue_write_mesh_buffer", "write", "mesh", distributed::call_write },
	{ "enqueue_read_mesh_buffer", "read", "mesh", distributed::call_read },
	{ "enqueue_write_shards", "write", "mesh", distributed::call_write_shards },
	{ "enqueue_read_shards", "read", "mesh", distributed::call_read_shards },
	{ "enqueue_trace", "trace", "mesh", distributed::call_inner_trace },
	{ "finish", "finish", "mesh", distributed::call_inner_finish },
	{ "SDMeshCommandQueue::enqueue_mesh_workload", "slow", "mesh", distributed::call_slow_mesh },
	{ "SDMeshCommandQueue::finish", "finish", "mesh", distributed::call_slow_finish },
	{ "SDMeshCommandQueue::enqueue_trace", "trace", "mesh", distributed::call_slow_trace },
#endif
#if TT_IMPL
	/* In this order: an inner function called from the place of its outer one looks as if that had jumped to it. */
	{ "MeshDeviceImpl::replay_mesh_trace", "trace", "mesh", distributed::call_replay_impl },
	{ "MeshDevice::replay_mesh_trace", "trace", "mesh", distributed::call_replay_mesh },
#endif
};
} // namespace tt::tt_metal

size_t standin::dispatch_table(const struct standin_tt_dispatch **ret)
{
	*ret = tt::tt_metal::table;
	return sizeof(tt::tt_metal::table) / sizeof(tt::tt_metal::table[0]);
}
