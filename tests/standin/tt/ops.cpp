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

struct standin_tt_program {
	detail::AnyProgram impl;
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

static void set_mesh(bool open)
{
#if TT_MESH_DEVICE
	std::vector<IDevice *> all;

	world().mesh.reset();
	for (auto &d : world().devices)
		all.push_back(d.get());
	if (open)
		world().mesh = std::make_shared<distributed::MeshDevice>(all);
#else
	(void)open;
#endif
}

static int open(int n, bool mesh)
{
	World &w = world();

	chips = visible_chips();
	GraphTracker::processing = true;
	for (int i = 0; i < n && i < (int)chips.size(); i++)
		w.devices.push_back(make_device(i));
	if (mesh)
		set_mesh(true);
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
	world().submeshes.clear();
	world().mesh.reset();
#endif
	for (auto &d : world().devices)
		if (d->is_initialized())
			d->close();
	world().devices.clear();
}

#if TT_MESH_DEVICE
static const std::shared_ptr<distributed::MeshDevice> &mesh_of(int dev)
{
	return dev == STANDIN_MESH ? world().mesh : world().submeshes[STANDIN_SUBMESH - dev];
}
#endif

static IDevice *device(int dev)
{
#if TT_MESH_DEVICE
	if (dev < 0)
		return mesh_of(dev).get();
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
	if (dev < 0) {
		buf->mesh =
			distributed::MeshBuffer::create(distributed::ReplicatedBufferConfig{ size },
							{ 2048, BufferType(type) }, mesh_of(dev).get(), std::nullopt);
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

static void reopen(int dev)
{
	world().devices[dev]->initialize(1, 0, 0, 0, false);
}

static int submesh(const int *devs, int n)
{
#if TT_MESH_DEVICE
	std::vector<IDevice *> some;

	for (int i = 0; i < n; i++)
		some.push_back(device(devs[i]));
	world().submeshes.push_back(std::make_shared<distributed::MeshDevice>(some, world().mesh));
	return STANDIN_SUBMESH - (int)(world().submeshes.size() - 1);
#else
	(void)devs, (void)n;
	return 0;
#endif
}

static void submesh_free(int submesh)
{
#if TT_MESH_DEVICE
	world().submeshes[STANDIN_SUBMESH - submesh].reset();
#else
	(void)submesh;
#endif
}

static standin_tt_program *program(const standin_tt_cb *cbs, size_t n)
{
	auto *ret = new standin_tt_program;

	for (size_t i = 0; i < n; i++) {
		std::vector<CoreRange> cores;

		for (unsigned int k = 0; k < cbs[i].nr; k++)
			cores.push_back({ { cbs[i].range[k].x0, cbs[i].range[k].y0 },
					  { cbs[i].range[k].x1, cbs[i].range[k].y1 } });
		ret->impl.add(cores, cbs[i].size, cbs[i].global);
	}
	return ret;
}

static void run(standin_tt_program *program, int dev, standin_tt_cb *cbs)
{
	program->impl.allocate_circular_buffers(device(dev));
	for (size_t i = 0; cbs && i < program->impl.circular_buffers_.size(); i++)
		cbs[i].address = program->impl.circular_buffers_[i]->address;
}

static void resize(standin_tt_program *program, size_t cb, uint64_t size)
{
	program->impl.circular_buffers_[cb]->size = size;
	program->impl.invalidate();
}

static void program_free(standin_tt_program *program)
{
	delete program;
}

static uint64_t cb_total(int dev)
{
	return world().devices[dev]->get_total_cb_allocated();
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
		standin::reopen,
		standin::set_mesh,
		standin::submesh,
		standin::submesh_free,
		standin::program,
		standin::run,
		standin::resize,
		standin::program_free,
		standin::cb_total,
	};

	return &ops;
}
