// SPDX-License-Identifier: GPL-2.0-only
/*
 * buffer.cpp: what happens inside one allocation and one free, in the order of tt-metal (facts/tenstorrent.md 2.2). The tracking functions
 * are in graph.cpp, an object of their own, so that no compiler melts them into their callers.
 *
 * Sources in tt-metal: Buffer in impl/buffers/buffer.cpp (create, allocate_impl, deallocate, deallocate_impl, mark_as_deallocated; 00002df2,
 * 4b23a16a and main 622c6fb9), BankManager in impl/allocator/bank_manager.cpp (allocate_buffer throws where there is no room), MeshBuffer
 * in distributed/mesh_buffer.cpp (create: 0062748f).
 */
#include <stdexcept>

#include "metal.hpp"

namespace tt::tt_metal
{

uint64_t BankManager::allocate_buffer(DeviceAddr size, DeviceAddr page_size, bool bottom_up, const CoreRangeSet &grid,
				      std::optional<uint32_t> shards)
{
	(void)bottom_up;
	(void)grid;
	(void)shards;
	uint64_t used = used_.load();

	/* Never more than there is, not for a moment: another thread would see a full bank. */
	do {
		if (size > size_ - used)
			throw std::runtime_error("TT_THROW: Out of Memory: Not enough space to allocate " +
						 std::to_string(size) + " B buffer across banks, page size " +
						 std::to_string(page_size));
	} while (!used_.compare_exchange_weak(used, used + size));
	return 1024 + next_.fetch_add((size + 63) & ~63ull) % size_;
}

void BankManager::deallocate_buffer(DeviceAddr size)
{
	used_.fetch_sub(size);
}

DeviceAddr AnyAllocator::allocate_buffer(Buffer *buffer)
{
	PROBED();
	BankManager *banks = buffer->buffer_type() == BufferType::L1	     ? &l1_
			     : buffer->buffer_type() == BufferType::L1_SMALL ? &small_
			     : buffer->buffer_type() == BufferType::TRACE    ? &trace_
									     : &dram_;
	uint64_t address = banks->allocate_buffer(buffer->size(), 2048, true, CoreRangeSet(), std::nullopt);
	std::lock_guard<std::mutex> guard(lock_);

	live_[buffer] = { banks, buffer->size() };
	return address;
}

void AnyAllocator::deallocate_buffer(Buffer *buffer)
{
	PROBED();
	std::lock_guard<std::mutex> guard(lock_);
	auto found = live_.find(buffer);

	if (found == live_.end())
		return;
	found->second.first->deallocate_buffer(found->second.second);
	live_.erase(found);
}

void AnyAllocator::forget()
{
	std::lock_guard<std::mutex> guard(lock_);

	for (auto &one : live_)
		one.second.first->deallocate_buffer(one.second.second);
	live_.clear();
}

void AnyAllocator::deallocate_buffers()
{
	PROBED();
	forget();
}

void AnyAllocator::clear()
{
	PROBED();
	forget();
}

#if TT_INLINED
/* What a compiler makes of tracking in the same unit: no call of the exported function. */
static inline void tell_allocated(const Buffer *)
{
	GraphTracker::instance().seen++;
}
static inline void tell_freeing(Buffer *)
{
	GraphTracker::instance().seen++;
}
#elif TT_GEN == 0
static void tell_allocated(const Buffer *buffer)
{
	GraphTracker::instance().track_allocate(buffer, true);
}
static void tell_freeing(Buffer *buffer)
{
	GraphTracker::instance().track_deallocate(buffer);
}
#else
static void tell_allocated(const Buffer *buffer)
{
#if TT_PIMPL
	notify_buffer_allocated(buffer);
#endif
	GraphTracker::instance().track_allocate(buffer);
}
static void tell_freeing(Buffer *buffer)
{
#if TT_PIMPL
	notify_buffer_deallocated(buffer);
#endif
	GraphTracker::instance().track_deallocate(buffer);
}
#endif

TT_V0_BEGIN
#if TT_GEN == 0

Buffer::Buffer(Device *device, DeviceAddr size, DeviceAddr page_size, BufferType type)
    : device_(device), size_(size), buffer_type_(type), page_size_(page_size)
{
}

std::shared_ptr<Buffer> Buffer::create(Device *device, DeviceAddr size, DeviceAddr page_size, BufferType type,
				       TensorMemoryLayout layout, const std::optional<ShardSpecBuffer> &shards,
				       std::optional<bool> bottom_up)
{
	PROBED();
	auto buffer = std::make_shared<Buffer>(device, size, page_size, type);

	buffer->buffer_layout_ = layout;
	buffer->shard_parameters_ = shards;
	buffer->bottom_up_ = bottom_up;
	if (size)
		buffer->allocate();
	return buffer;
}

AnyAllocator *Buffer::allocator()
{
	return device_->allocator();
}

void Buffer::allocate()
{
	if (GraphTracker::instance().hook_allocate(this)) {
		address_ = 0;
	} else {
		try {
			address_ = allocator()->allocate_buffer(this);
		} catch (...) {
			size_ = 0;
			throw;
		}
	}
	tell_allocated(this);
}

void Buffer::deallocate()
{
	PROBED();
	if (!device_ || !device_->is_initialized() || !size_)
		return;
	tell_freeing(this);
	if (address_)
		allocator()->deallocate_buffer(this);
	size_ = 0;
}

Buffer::~Buffer()
{
	PROBED_NOTHROW();
	deallocate();
}

#else

[[maybe_unused]] static const BufferShardingArgs no_shards{};

static DeviceAddr get_address(Buffer *buffer)
{
	auto &me = buffer->me();

	if (GraphTracker::instance().hook_allocate(buffer)) {
#if TT_HOOKED
		me.hooked_allocation_ = true;
#endif
		return 0;
	}
	return me.allocator_->allocate_buffer(buffer);
}

static void allocate_now(Buffer *buffer)
{
	auto &me = buffer->me();

#if TT_GEN == 10
	try {
		me.address_ = get_address(buffer);
	} catch (...) {
		me.allocation_status_ = AllocationStatus::ALLOCATION_FAILED;
		throw;
	}
#else
	me.address_ = get_address(buffer);
#endif
	me.allocation_status_ = AllocationStatus::ALLOCATED;
	tell_allocated(buffer);
}

static void deallocate_now(Buffer *buffer)
{
	auto &me = buffer->me();

	if (me.allocation_status_ != AllocationStatus::ALLOCATED)
		return;
	if (me.device_->is_initialized() && me.size_) {
		tell_freeing(buffer);
		if (!buffer->hooked())
			me.allocator_->deallocate_buffer(buffer);
	}
	me.allocation_status_ = AllocationStatus::DEALLOCATED;
}

#if TT_PIMPL
BufferImpl::BufferImpl(IDevice *device, DeviceAddr size, DeviceAddr page_size, BufferType type, bool owns)
    : device_(device), size_(size), buffer_type_(type), buffer_layout_(TensorMemoryLayout::INTERLEAVED),
      owns_data_(owns), allocator_(device->allocator()), page_size_(page_size)
{
}

void BufferImpl::allocate_impl(Buffer &buffer)
{
	PROBED();
	allocate_now(&buffer);
}

void BufferImpl::deallocate_impl(Buffer &buffer)
{
	PROBED();
	deallocate_now(&buffer);
}

Buffer::Buffer(IDevice *device, DeviceAddr size, DeviceAddr page_size, BufferType type, bool owns)
    : impl_(std::make_unique<BufferImpl>(device, size, page_size, type, owns))
{
}

static void allocate(Buffer *buffer)
{
	buffer->impl_->allocate_impl(*buffer);
}
static void release(Buffer *buffer)
{
	buffer->impl_->deallocate_impl(*buffer);
}
#else
Buffer::Buffer(IDevice *device, DeviceAddr size, DeviceAddr page_size, BufferType type, bool owns)
    : device_(device), size_(size), buffer_type_(type), buffer_layout_(TensorMemoryLayout::INTERLEAVED),
      owns_data_(owns), allocator_(device->allocator()), page_size_(page_size)
{
}

void Buffer::allocate_impl()
{
	PROBED();
	allocate_now(this);
}

void Buffer::deallocate_impl()
{
	PROBED();
	deallocate_now(this);
}

static void allocate(Buffer *buffer)
{
	buffer->allocate_impl();
}
static void release(Buffer *buffer)
{
	buffer->deallocate_impl();
}
#endif

static std::shared_ptr<Buffer> make(IDevice *device, DeviceAddr size, DeviceAddr page_size, BufferType type)
{
	auto buffer = std::make_shared<Buffer>(device, size, page_size, type, true);

	if (size)
		allocate(buffer.get());
	else
		buffer->me().allocation_status_ = AllocationStatus::ALLOCATED;
	return buffer;
}

static std::shared_ptr<Buffer> make_at(IDevice *device, DeviceAddr address, DeviceAddr size, DeviceAddr page_size,
				       BufferType type)
{
	auto buffer = std::make_shared<Buffer>(device, size, page_size, type, false);

	buffer->me().address_ = address;
	buffer->me().allocation_status_ = AllocationStatus::ALLOCATED;
	return buffer;
}

#if TT_GEN >= 20
std::shared_ptr<Buffer> Buffer::create(IDevice *device, DeviceAddr size, DeviceAddr page_size, BufferType type,
				       const BufferShardingArgs &, std::optional<bool>, std::optional<SubDeviceId>)
{
	PROBED();
	return make(device, size, page_size, type);
}

std::shared_ptr<Buffer> Buffer::create(IDevice *device, DeviceAddr address, DeviceAddr size, DeviceAddr page_size,
				       BufferType type, const BufferShardingArgs &, std::optional<bool>,
				       std::optional<SubDeviceId>)
{
	PROBED();
	return make_at(device, address, size, page_size, type);
}
#else
std::shared_ptr<Buffer> Buffer::create(IDevice *device, DeviceAddr size, DeviceAddr page_size, BufferType type,
				       TensorMemoryLayout, const std::optional<ShardSpecBuffer> &, std::optional<bool>,
				       std::optional<SubDeviceId>)
{
	PROBED();
	return make(device, size, page_size, type);
}

std::shared_ptr<Buffer> Buffer::create(IDevice *device, DeviceAddr address, DeviceAddr size, DeviceAddr page_size,
				       BufferType type, TensorMemoryLayout, const std::optional<ShardSpecBuffer> &,
				       std::optional<bool>, std::optional<SubDeviceId>)
{
	PROBED();
	return make_at(device, address, size, page_size, type);
}
#endif

void Buffer::deallocate()
{
	PROBED();
	if (!me().owns_data_)
		return;
	release(this);
}

void Buffer::mark_as_deallocated()
{
	PROBED();
	me().allocation_status_ = AllocationStatus::DEALLOCATED;
}

void DeallocateBuffer(Buffer &buffer)
{
	PROBED();
	buffer.deallocate();
}

Buffer::~Buffer()
{
	PROBED_NOTHROW();
	if (me().allocation_status_ != AllocationStatus::DEALLOCATED)
		deallocate();
}

#endif
TT_V0_END

#if TT_MESH_DEVICE
namespace distributed
{

#if TT_GEN >= 20
static std::shared_ptr<Buffer> create(IDevice *device, DeviceAddr size, const DeviceLocalBufferConfig &local)
{
	return Buffer::create(device, size, local.page_size, local.buffer_type, no_shards, std::nullopt, std::nullopt);
}
static std::shared_ptr<Buffer> create_at(IDevice *device, DeviceAddr at, DeviceAddr size,
					 const DeviceLocalBufferConfig &local)
{
	return Buffer::create(device, at, size, local.page_size, local.buffer_type, no_shards, std::nullopt,
			      std::nullopt);
}
#else
static std::shared_ptr<Buffer> create(IDevice *device, DeviceAddr size, const DeviceLocalBufferConfig &local)
{
	return Buffer::create(device, size, local.page_size, local.buffer_type, TensorMemoryLayout::INTERLEAVED,
			      std::nullopt, std::nullopt, std::nullopt);
}
static std::shared_ptr<Buffer> create_at(IDevice *device, DeviceAddr at, DeviceAddr size,
					 const DeviceLocalBufferConfig &local)
{
	return Buffer::create(device, at, size, local.page_size, local.buffer_type, TensorMemoryLayout::INTERLEAVED,
			      std::nullopt, std::nullopt, std::nullopt);
}
#endif

/* One owning buffer on the mesh, of the device-local size; then one shadow on each device. */
std::shared_ptr<MeshBuffer> MeshBuffer::create(const std::variant<ReplicatedBufferConfig, ShardedBufferConfig> &config,
					       const DeviceLocalBufferConfig &local, MeshDevice *mesh,
					       std::optional<DeviceAddr> address)
{
	auto buffer = std::make_shared<MeshBuffer>();
	const auto *same = std::get_if<ReplicatedBufferConfig>(&config);
	std::vector<IDevice *> devices = mesh->get_devices();
	DeviceAddr size = same ? same->size : std::get<ShardedBufferConfig>(config).size / devices.size();

	if (!address) {
		buffer->backing = distributed::create(mesh, size, local);
		address = buffer->backing->me().address_;
	}
	for (IDevice *device : devices)
		buffer->shadows.push_back(create_at(device, *address, size, local));
	return buffer;
}

void MeshBuffer::deallocate()
{
	shadows.clear();
	backing.reset();
}

} // namespace distributed
#endif

} // namespace tt::tt_metal
