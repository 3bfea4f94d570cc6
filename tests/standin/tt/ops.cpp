// SPDX-License-Identifier: GPL-2.0-only
/* ops.cpp: tt_ops.h on top of the classes of this generation. */
#include <cstdlib>
#include <cstring>

#include "metal.hpp"
#include "world.hpp"

using namespace tt::tt_metal;

struct standin_tt_buf {
	std::vector<std::shared_ptr<Buffer>> buffers;
#if TT_MESH_DEVICE
	std::shared_ptr<distributed::MeshBuffer> mesh;
	std::vector<Buffer *> owners()
	{
		std::vector<Buffer *> ret;

		for (auto &b : buffers)
			ret.push_back(b.get());
		if (mesh)
			ret.push_back(mesh->backing.get());
		return ret;
	}
#else
	std::vector<Buffer *> owners()
	{
		return { buffers[0].get() };
	}
#endif
};

namespace standin
{

World &world()
{
	static World *one = new World; // never destroyed: the order of exits is nobody's business

	return *one;
}

static std::vector<VisibleChip> chips;

static std::unique_ptr<Device> make_device(int id)
{
#if TT_IMPL
	static MetalEnv env;
	static MetalContext context;
	auto device =
		std::make_unique<Device>(&env, &context, id, 1, 0, 0, tt_types::Span<const uint32_t>{ nullptr, 0 });
#else
	auto device = std::make_unique<Device>(id, 1, 0, 0);
#endif

	device->bdf_ = chips[id].bdf;
#if TT_PROVIDER
	uint64_t key = chips[id].unique_id ? chips[id].unique_id : id;
	const char *how = getenv("STANDIN_TT_PROVIDER"); // "none": no provider is built, as with tracking disabled

	if (how && !strcmp(how, "none"))
		return device;
#if TT_IMPL
	device->shm_stats_provider_ =
		std::make_unique<SharedMemoryStatsProvider>(key, id, !getenv("STANDIN_TT_SHM"), false);
#else
	if (getenv("STANDIN_TT_SHM")) // opt-in in these versions
		device->shm_stats_provider_ = std::make_unique<SharedMemoryStatsProvider>(key, id);
#endif
#endif
	return device;
}

static int open(int n, bool mesh)
{
	World &w = world();

	chips = visible_chips();
	for (int i = 0; i < n && i < (int)chips.size(); i++)
		w.devices.push_back(make_device(i));
#if TT_MESH_DEVICE
	if (mesh) {
		std::vector<IDevice *> all;

		for (auto &d : w.devices)
			all.push_back(d.get());
		w.mesh = std::make_shared<distributed::MeshDevice>(all);
	}
#else
	(void)mesh;
#endif
	return w.devices.size();
}

static void open_close(void)
{
	int id = world().devices.size();
	auto device = (chips.resize(id + 1), make_device(id));

#if TT_PROVIDER && !TT_IMPL
	SharedMemoryStatsProvider(0x7700, id);
#endif
	device->close();
}

static void close_one(int dev)
{
	world().devices[dev]->close();
}

static void close_all(void)
{
#if TT_MESH_DEVICE
	world().mesh.reset();
#endif
	for (auto &d : world().devices)
		if (d->is_initialized())
			d->close();
	world().devices.clear();
}

static IDevice *device(int dev)
{
#if TT_MESH_DEVICE
	if (dev == STANDIN_MESH)
		return world().mesh.get();
#endif
	return world().devices[dev].get();
}

static const void *address(int dev)
{
	return device(dev);
}

static const char *bdf(int dev)
{
	return world().devices[dev]->bdf_.c_str();
}

static std::shared_ptr<Buffer> create(IDevice *on, int type, uint64_t size)
{
#if TT_GEN == 0
	return Buffer::create(on, size, 2048, BufferType(type), TensorMemoryLayout::INTERLEAVED, std::nullopt,
			      std::nullopt);
#elif TT_GEN == 10
	return Buffer::create(on, size, 2048, BufferType(type), TensorMemoryLayout::INTERLEAVED, std::nullopt,
			      std::nullopt, std::nullopt);
#else
	return Buffer::create(on, size, 2048, BufferType(type), BufferShardingArgs{}, std::nullopt, std::nullopt);
#endif
}

static standin_tt_buf *alloc(int dev, int type, uint64_t size)
{
	auto buf = std::make_unique<standin_tt_buf>();

#if TT_MESH_DEVICE
	if (dev == STANDIN_MESH) {
		buf->mesh =
			distributed::MeshBuffer::create(distributed::ReplicatedBufferConfig{ size },
							{ 2048, BufferType(type) }, world().mesh.get(), std::nullopt);
		return buf.release();
	}
#endif
	buf->buffers.push_back(create(device(dev), type, size));
	return buf.release();
}

static standin_tt_buf *alloc_each(int type, uint64_t size)
{
	auto buf = std::make_unique<standin_tt_buf>();

	for (auto &d : world().devices)
		buf->buffers.push_back(create(d.get(), type, size));
	return buf.release();
}

static standin_tt_buf *view(standin_tt_buf *of)
{
#if TT_MESH_DEVICE
	auto buf = std::make_unique<standin_tt_buf>();

	for (Buffer *b : of->owners()) {
		auto &me = b->me();
#if TT_GEN == 10
		buf->buffers.push_back(Buffer::create(me.device_, me.address_, me.size_, 2048, me.buffer_type_,
						      TensorMemoryLayout::INTERLEAVED, std::nullopt, std::nullopt,
						      std::nullopt));
#else
		buf->buffers.push_back(Buffer::create(me.device_, me.address_, me.size_, 2048, me.buffer_type_,
						      BufferShardingArgs{}, std::nullopt, std::nullopt));
#endif
	}
	return buf.release();
#else
	(void)of;
	return nullptr;
#endif
}

static void dealloc(standin_tt_buf *buf)
{
	for (Buffer *b : buf->owners())
#if TT_GEN == 0
		b->deallocate();
#else
		DeallocateBuffer(*b);
#endif
}

static void mark(standin_tt_buf *buf)
{
#if TT_MESH_DEVICE
	for (Buffer *b : buf->owners())
		b->mark_as_deallocated();
#else
	(void)buf;
#endif
}

static void free_buf(standin_tt_buf *buf)
{
	delete buf;
}

static void capture(bool on)
{
	GraphTracker::capturing = on;
}

static void bulk(int dev, bool clear)
{
	AnyAllocator *allocator = device(dev)->allocator();

	if (clear)
		allocator->clear();
	else
		allocator->deallocate_buffers();
}

static void cb(int dev, uint64_t addr, uint64_t size, unsigned int w, unsigned int h, unsigned int ranges, bool global)
{
	CoreRangeSet cores;

	for (unsigned int i = 0; i < ranges; i++)
		cores.ranges.push_back({ { 0, (size_t)i * h }, { w - 1, (size_t)i * h + h - 1 } });
	GraphTracker::instance().track_allocate_cb(cores, addr, size, global, device(dev));
}

static void cb_free(int dev)
{
	GraphTracker::instance().track_deallocate_cb(device(dev));
}

static void track(const void *buffer, bool more)
{
	auto *b = const_cast<Buffer *>(static_cast<const Buffer *>(buffer));

	GraphTracker::blind = true;
#if TT_GEN == 0
	if (more)
		GraphTracker::instance().track_allocate(b, true);
#else
	if (more)
		GraphTracker::instance().track_allocate(b);
#endif
	else
		GraphTracker::instance().track_deallocate(b);
	GraphTracker::blind = false;
}

static const void *object(const standin_tt_buf *buf, size_t *size)
{
	*size = sizeof(Buffer);
	return const_cast<standin_tt_buf *>(buf)->owners()[0];
}

} // namespace standin

const struct standin_tt_ops *standin_tt_ops(void)
{
	static const struct standin_tt_ops ops = {
		TT_NAME,
		(TT_MESH_DEVICE ? STANDIN_HAS_MESH | STANDIN_HAS_VIEW | STANDIN_HAS_MARK | STANDIN_HAS_BULK : 0) |
			(TT_HOOKED ? STANDIN_HAS_FLAG : 0) | (TT_INLINED ? STANDIN_NO_PRIMARY : 0) |
			standin::profiler_has,
		standin::open,
		standin::open_close,
		standin::close_one,
		standin::close_all,
		standin::bdf,
		standin::address,
		standin::alloc,
		standin::alloc_each,
		standin::view,
		standin::dealloc,
		standin::mark,
		standin::free_buf,
		standin::capture,
		standin::bulk,
		standin::cb,
		standin::cb_free,
		standin::track,
		standin::object,
		standin::dispatch_table,
		standin::programs,
		standin::callback,
		standin::pair,
	};

	return &ops;
}
