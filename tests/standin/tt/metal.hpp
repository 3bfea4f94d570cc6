// SPDX-License-Identifier: GPL-2.0-only
/*
 * metal.hpp: the classes of tt-metal that ttmond looks at, in the layouts and under the names of each generation. Our own words, from
 * facts/tenstorrent.md 2.1-2.3 and 3.1; what is not looked at is not here. TT_GEN picks the generation:
 *
 *	0   to late 2024: inline namespace v0, Device without virtual functions, no mesh
 *	10  early 2025: no base class, Allocator, allocation states 0 requested, 1 failed, 2 allocated, 3 deallocated
 *	20  mid 2025: Buffer begins with enable_shared_from_this
 *	25  2026: AllocatorImpl, MetalEnv, the hooked flag, statistics published by the program itself
 *	40  the branch with BufferImpl and notify_buffer_allocated
 *
 * TT_INLINED: nothing calls track_allocate and track_deallocate, although they are there. All members are public: access is not in names.
 */
#ifndef STANDIN_TT_METAL_HPP
#define STANDIN_TT_METAL_HPP

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>
#include <sys/types.h>

#include "site.hpp"

#pragma GCC diagnostic ignored "-Winvalid-offsetof"

#define TT_MESH_DEVICE (TT_GEN >= 10)
#define TT_IMPL	       (TT_GEN >= 25) // AllocatorImpl, MetalEnv
#define TT_HOOKED      (TT_GEN >= 25)
#define TT_PIMPL       (TT_GEN == 40)
#define TT_PROVIDER    (TT_GEN >= 20)
#if TT_GEN == 0
#define TT_V0_BEGIN         \
	inline namespace v0 \
	{
#define TT_V0_END }
#else
#define TT_V0_BEGIN
#define TT_V0_END
#endif

using ChipId = int;

struct CoreCoord {
	size_t x, y;
};
struct CoreRange {
	CoreCoord start, end;
};
class CoreRangeSet
{
      public:
#if TT_GEN == 0
	std::mutex guard;
#endif
	std::vector<CoreRange> ranges;
	CoreRangeSet() = default;
};
#if TT_GEN == 0
static_assert(offsetof(CoreRangeSet, ranges) == 40);
#else
static_assert(offsetof(CoreRangeSet, ranges) == 0);
#endif

// Strong types moved from tt::stl to ttsl in 2025.
#if TT_GEN >= 20
namespace ttsl
#else
namespace tt::stl
#endif
{
template <typename T, typename Tag> class StrongType
{
      public:
	T value;
};
template <typename T> class Span
{
      public:
	T *data;
	size_t size;
};
}
#if TT_GEN >= 20
namespace tt_types = ttsl;
#else
namespace tt_types = tt::stl;
#endif

namespace tt::tt_metal
{
using DeviceAddr = uint64_t;

enum class BufferType { DRAM, L1, SYSTEM_MEMORY, L1_SMALL, TRACE };
enum class TensorMemoryLayout { INTERLEAVED, SINGLE_BANK, HEIGHT_SHARDED, WIDTH_SHARDED, BLOCK_SHARDED, ND_SHARDED };

struct SubDeviceIdTag;
struct SubDeviceManagerIdTag;
using SubDeviceId = tt_types::StrongType<uint8_t, SubDeviceIdTag>;
using SubDeviceManagerId = tt_types::StrongType<uint64_t, SubDeviceManagerIdTag>;

class ShardSpecBuffer
{
      public:
	uint64_t page[4];
};
class BufferShardingArgs
{
      public:
	uint64_t args[6];
};

TT_V0_BEGIN
class Buffer;
class Device;
class Program
{
      public:
	uint64_t id;
};
TT_V0_END
#if TT_MESH_DEVICE
class IDevice;
#else
using IDevice = Device;
#endif
class AllocatorImpl;
class Allocator;
#if TT_IMPL
using AnyAllocator = AllocatorImpl;
#else
using AnyAllocator = Allocator;
#endif

// The banks: gives addresses, throws where there is no room.
class BankManager
{
      public:
	explicit BankManager(uint64_t size) : size_(size)
	{
	}
	uint64_t allocate_buffer(DeviceAddr size, DeviceAddr page_size, bool bottom_up, const CoreRangeSet &grid,
				 std::optional<uint32_t> shards);
	void deallocate_buffer(DeviceAddr size);

	uint64_t size_;
	std::atomic<uint64_t> used_{ 0 }, next_{ 0 };
};

#if TT_IMPL
class AllocatorImpl
#else
class Allocator
#endif
{
      public:
	DeviceAddr allocate_buffer(Buffer *buffer);
	void deallocate_buffer(Buffer *buffer);
	void deallocate_buffers();
	void clear();

	std::mutex lock_;
	std::map<Buffer *, std::pair<BankManager *, uint64_t>> live_;
	BankManager dram_{ 1ull << 42 }, l1_{ 1ull << 40 }, small_{ 1ull << 40 }, trace_{ 1ull << 40 };
	void forget();
};

TT_V0_BEGIN
#if TT_GEN == 0
class Buffer
{
      public:
	static std::shared_ptr<Buffer> create(Device *device, DeviceAddr size, DeviceAddr page_size, BufferType type,
					      TensorMemoryLayout layout, const std::optional<ShardSpecBuffer> &shards,
					      std::optional<bool> bottom_up);
	Buffer(Device *device, DeviceAddr size, DeviceAddr page_size, BufferType type);
	~Buffer();
	void allocate();
	void deallocate();
	AnyAllocator *allocator();
	uint64_t size() const
	{
		return size_;
	}
	BufferType buffer_type() const
	{
		return buffer_type_;
	}

	Device *device_;
	DeviceAddr size_, address_ = 0;
	BufferType buffer_type_;
	TensorMemoryLayout buffer_layout_ = TensorMemoryLayout::INTERLEAVED;
	DeviceAddr page_size_;
	std::optional<ShardSpecBuffer> shard_parameters_;
	std::optional<bool> bottom_up_;
	bool hooked() const
	{
		return false;
	}
};
static_assert(offsetof(Buffer, device_) == 0 && offsetof(Buffer, size_) == 8 && offsetof(Buffer, address_) == 16 &&
	      offsetof(Buffer, buffer_type_) == 24 && offsetof(Buffer, buffer_layout_) == 28);
#else

#if TT_GEN == 10
enum class AllocationStatus : uint8_t { ALLOCATION_REQUESTED, ALLOCATION_FAILED, ALLOCATED, DEALLOCATED };
#else
enum class AllocationStatus : uint8_t { ALLOCATION_REQUESTED, ALLOCATED, DEALLOCATED };
#endif

// The fields that all generations since 2025 begin with, in their order.
#define TT_BUFFER_FIELDS                                          \
	IDevice *device_;                                         \
	DeviceAddr size_;                                         \
	BufferType buffer_type_;                                  \
	TensorMemoryLayout buffer_layout_;                        \
	bool bottom_up_ = true;                                   \
	std::optional<SubDeviceId> sub_device_id_;                \
	bool owns_data_ = true;                                   \
	std::optional<SubDeviceManagerId> sub_device_manager_id_; \
	AnyAllocator *allocator_;

#if TT_PIMPL
class Buffer;
class BufferImpl
{
      public:
	BufferImpl(IDevice *device, DeviceAddr size, DeviceAddr page_size, BufferType type, bool owns);
	void allocate_impl(Buffer &buffer);
	void deallocate_impl(Buffer &buffer);
	TT_BUFFER_FIELDS
	AllocationStatus allocation_status_ = AllocationStatus::ALLOCATION_REQUESTED;
	bool hooked_allocation_ = false;
	DeviceAddr address_ = 0, page_size_;
	std::shared_ptr<void> page_mapping_;
};
static_assert(offsetof(BufferImpl, device_) == 0 && offsetof(BufferImpl, size_) == 8 &&
	      offsetof(BufferImpl, buffer_type_) == 16 && offsetof(BufferImpl, owns_data_) == 27 &&
	      offsetof(BufferImpl, sub_device_manager_id_) == 32 && offsetof(BufferImpl, allocator_) == 48 &&
	      offsetof(BufferImpl, allocation_status_) == 56 && offsetof(BufferImpl, hooked_allocation_) == 57 &&
	      offsetof(BufferImpl, address_) == 64 && offsetof(BufferImpl, page_size_) == 72);
#endif

#if TT_GEN >= 20
class Buffer : public std::enable_shared_from_this<Buffer>
#else
class Buffer
#endif
{
      public:
#if TT_GEN >= 20
	static std::shared_ptr<Buffer> create(IDevice *device, DeviceAddr size, DeviceAddr page_size, BufferType type,
					      const BufferShardingArgs &args, std::optional<bool> bottom_up,
					      std::optional<SubDeviceId> sub_device);
	static std::shared_ptr<Buffer> create(IDevice *device, DeviceAddr address, DeviceAddr size,
					      DeviceAddr page_size, BufferType type, const BufferShardingArgs &args,
					      std::optional<bool> bottom_up, std::optional<SubDeviceId> sub_device);
#else
	static std::shared_ptr<Buffer> create(IDevice *device, DeviceAddr size, DeviceAddr page_size, BufferType type,
					      TensorMemoryLayout layout, const std::optional<ShardSpecBuffer> &shards,
					      std::optional<bool> bottom_up, std::optional<SubDeviceId> sub_device);
	static std::shared_ptr<Buffer> create(IDevice *device, DeviceAddr address, DeviceAddr size,
					      DeviceAddr page_size, BufferType type, TensorMemoryLayout layout,
					      const std::optional<ShardSpecBuffer> &shards,
					      std::optional<bool> bottom_up, std::optional<SubDeviceId> sub_device);
#endif
	Buffer(IDevice *device, DeviceAddr size, DeviceAddr page_size, BufferType type, bool owns);
	~Buffer();
	void deallocate();
	void mark_as_deallocated();

#if TT_PIMPL
	std::unique_ptr<BufferImpl> impl_;
	BufferImpl &me()
	{
		return *impl_;
	}
	const BufferImpl &me() const
	{
		return *impl_;
	}
#else
	void allocate_impl();
	void deallocate_impl();
	TT_BUFFER_FIELDS
#if TT_GEN == 10
	std::atomic<AllocationStatus> allocation_status_ = AllocationStatus::ALLOCATION_REQUESTED;
	DeviceAddr address_ = 0;
	std::mutex allocation_mutex_;
	std::condition_variable allocation_cv_;
	uint64_t unknown_ = 0;
	DeviceAddr page_size_;
	std::optional<ShardSpecBuffer> shard_parameters_;
	std::weak_ptr<Buffer> weak_self_;
#else
	AllocationStatus allocation_status_ = AllocationStatus::ALLOCATION_REQUESTED;
#if TT_HOOKED
	bool hooked_allocation_ = false;
#endif
	DeviceAddr address_ = 0, page_size_;
	std::shared_ptr<void> page_mapping_;
#endif
	Buffer &me()
	{
		return *this;
	}
	const Buffer &me() const
	{
		return *this;
	}
#endif
	bool hooked() const
	{
#if TT_HOOKED
		return me().hooked_allocation_;
#else
		return !me().address_;
#endif
	}
	uint64_t size() const
	{
		return me().size_;
	}
	BufferType buffer_type() const
	{
		return me().buffer_type_;
	}
};

#if TT_PIMPL
static_assert(offsetof(Buffer, impl_) == 16);
#else
#if TT_GEN == 10
#define TT_B 0
static_assert(offsetof(Buffer, address_) == 64 && offsetof(Buffer, page_size_) == 168);
#else
#define TT_B 16
static_assert(offsetof(Buffer, address_) == 80 && offsetof(Buffer, page_size_) == 88);
#endif
static_assert(offsetof(Buffer, device_) == TT_B && offsetof(Buffer, size_) == TT_B + 8 &&
	      offsetof(Buffer, buffer_type_) == TT_B + 16 && offsetof(Buffer, buffer_layout_) == TT_B + 20 &&
	      offsetof(Buffer, bottom_up_) == TT_B + 24 && offsetof(Buffer, sub_device_id_) == TT_B + 25 &&
	      offsetof(Buffer, owns_data_) == TT_B + 27 && offsetof(Buffer, sub_device_manager_id_) == TT_B + 32 &&
	      offsetof(Buffer, allocator_) == TT_B + 48 && offsetof(Buffer, allocation_status_) == TT_B + 56);
#if TT_HOOKED
static_assert(offsetof(Buffer, hooked_allocation_) == 73);
#endif
#endif
void DeallocateBuffer(Buffer &buffer);
#endif
TT_V0_END

#if TT_PIMPL
void notify_buffer_allocated(const Buffer *buffer);
void notify_buffer_deallocated(Buffer *buffer);
#endif

class GraphTracker
{
      public:
	static GraphTracker &instance();
#if TT_GEN == 0
	void track_allocate(const Buffer *buffer, bool bottom_up);
#else
	void track_allocate(const Buffer *buffer);
#endif
	void track_deallocate(Buffer *buffer);
	void track_allocate_cb(const CoreRangeSet &cores, uint64_t addr, uint64_t size, bool global,
			       const IDevice *device);
	void track_deallocate_cb(const IDevice *device);
	bool hook_allocate(const Buffer *buffer);

	// The list of processors is thread_local since tt-metal #44668: what other threads allocate is not in tt-metal's own statistics.
	static thread_local bool processing;
	static thread_local bool capturing; // a NO_DISPATCH capture of this thread
	static thread_local bool blind;	    // a test passes pointers that lead nowhere
	std::atomic<uint64_t> seen{ 0 };
};

#if TT_PROVIDER
enum class ShmBufferType : uint8_t { DRAM, L1, SYSTEM_MEMORY, L1_SMALL, TRACE, CB, UNKNOWN = 255 };
// tt-metal's own statistics, layout version 2. Publishes in the folder STANDIN_TT_SHM, where that is set.
class SharedMemoryStatsProvider
{
      public:
#if TT_IMPL
	SharedMemoryStatsProvider(uint64_t key, int device_id, bool disabled, bool verbose);
#else
	SharedMemoryStatsProvider(uint64_t key, int device_id);
#endif
	~SharedMemoryStatsProvider();
	void record_allocation(pid_t pid, uint64_t size, ShmBufferType type, uint32_t chip);
	void record_deallocation(pid_t pid, uint64_t size, ShmBufferType type, uint32_t chip);
	void begin(uint64_t key, int device_id);
	void add(pid_t pid, uint64_t size, ShmBufferType type, bool more);

	unsigned char *region_ = nullptr;
};
#endif

#if TT_MESH_DEVICE
class IDevice
{
      public:
	virtual ~IDevice();
	virtual ChipId id() const = 0;
	virtual AnyAllocator *allocator() = 0;
	virtual bool is_initialized() const = 0;
	virtual std::vector<IDevice *> locals() = 0;
};
#endif

class MetalContext
{
      public:
	uint64_t rank = 0;
};
class MetalEnv
{
      public:
	uint64_t flags = 0;
};

TT_V0_BEGIN
#if TT_MESH_DEVICE
class Device : public IDevice
#else
class Device
#endif
{
      public:
#if TT_IMPL
	Device(MetalEnv *env, MetalContext *context, ChipId id, uint8_t queues, size_t l1_small, size_t trace,
	       tt_types::Span<const uint32_t> remap);
	MetalContext *context_;
	MetalEnv *env_;
	ChipId id_;
#else
	Device(ChipId id, uint8_t queues, size_t l1_small, size_t trace);
	ChipId id_;
	std::vector<std::vector<ChipId>> tunnels_;
#endif
	bool initialized_ = true;
	std::unique_ptr<AnyAllocator> allocator_;
#if TT_PROVIDER
	std::unique_ptr<SharedMemoryStatsProvider> shm_stats_provider_;
#endif
	std::string bdf_;
	std::vector<const void *> active_programs_;

	// A closed Device is opened again without a constructor: impl/device/device_manager.cpp:341-349 of main 622c6fb9.
	bool initialize(uint8_t queues, size_t l1_small, size_t trace, size_t worker_l1, bool minimal);
	uint64_t get_total_cb_allocated() const;
	bool close();
	~Device();
#if TT_MESH_DEVICE
	ChipId id() const override;
	AnyAllocator *allocator() override;
	bool is_initialized() const override;
	std::vector<IDevice *> locals() override;
#else
	AnyAllocator *allocator();
	bool is_initialized() const;
#endif
};
#if TT_IMPL
static_assert(offsetof(Device, context_) == 8 && offsetof(Device, env_) == 16 && offsetof(Device, id_) == 24);
#endif
TT_V0_END

#if TT_MESH_DEVICE
namespace distributed
{
#if TT_IMPL
/*
 * Since 2026 the view's content is behind a pointer, and lists MaybeRemote<IDevice *>: distributed/mesh_device_view_impl.hpp and
 * api/tt-metalium/maybe_remote.hpp of main 622c6fb9. A submesh shares the ScopedDevices of its root, which lie nearer.
 */
struct RemoteDevice {
};
using MaybeRemote = std::variant<RemoteDevice, IDevice *>;
static_assert(sizeof(MaybeRemote) == 16);
class MeshDeviceViewImpl
{
      public:
	size_t shape[2];
	std::vector<MaybeRemote> devices;
};
class MeshDeviceView
{
      public:
	std::unique_ptr<MeshDeviceViewImpl> impl_ = std::make_unique<MeshDeviceViewImpl>();
};
static_assert(sizeof(MeshDeviceView) == 8);
struct ScopedDevices {
	std::map<ChipId, IDevice *> opened_local_devices_;
	std::vector<MaybeRemote> devices_;
};
#else
class MeshDeviceView
{
      public:
	size_t shape[2];
	std::vector<IDevice *> devices;
};
struct ScopedDevices {
	std::map<ChipId, IDevice *> opened_local_devices_;
	std::vector<IDevice *> devices_;
};
#endif
using MeshTraceId = tt_types::StrongType<uint32_t, struct MeshTraceIdTag>;
class MeshDevice;
class MeshDeviceImpl
{
      public:
	int mesh_id = 1;
	MeshDevice *self = nullptr;
#if TT_IMPL
	void replay_mesh_trace(uint8_t cq_id, const MeshTraceId &id, bool blocking);
#endif
	std::shared_ptr<ScopedDevices> scoped;
	std::shared_ptr<MeshDevice> parent;
	std::unique_ptr<MeshDeviceView> view;
	std::unique_ptr<AnyAllocator> allocator;
};
class MeshDevice : public IDevice, public std::enable_shared_from_this<MeshDevice>
{
      public:
	explicit MeshDevice(const std::vector<IDevice *> &devices, std::shared_ptr<MeshDevice> parent = nullptr);
	~MeshDevice() override;
	ChipId id() const override;
	AnyAllocator *allocator() override;
	bool is_initialized() const override;
	std::vector<IDevice *> locals() override;
	std::vector<IDevice *> get_devices() const;
#if TT_IMPL
	void replay_mesh_trace(uint8_t cq_id, const MeshTraceId &id, bool blocking);
#endif
	std::unique_ptr<MeshDeviceImpl> pimpl_;
};
static_assert(offsetof(MeshDevice, pimpl_) == 24);

struct ReplicatedBufferConfig {
	DeviceAddr size;
};
struct ShardedBufferConfig {
	DeviceAddr size;
	uint32_t shape[2];
};
struct DeviceLocalBufferConfig {
	DeviceAddr page_size;
	BufferType buffer_type;
};
class MeshBuffer
{
      public:
	static std::shared_ptr<MeshBuffer> create(
		const std::variant<ReplicatedBufferConfig, ShardedBufferConfig> &config,
		const DeviceLocalBufferConfig &local, MeshDevice *mesh, std::optional<DeviceAddr> address);
	void deallocate();
	std::shared_ptr<Buffer> backing;
	std::vector<std::shared_ptr<Buffer>> shadows;
};
} // namespace distributed
#endif

/*
 * A program's circular buffers, as impl/program/program.cpp of tt-metal main 622c6fb9 (2026-06-23) has them: laid out once for all devices,
 * from one base address; told for each local device; told as gone for each device when the program is destroyed.
 */
namespace detail
{
struct CircularBuffer {
	CoreRangeSet cores;
	uint64_t size = 0, address = 0;
	bool global = false;
};
struct CircularBufferAllocator {
	CoreRange core_range;
	std::vector<std::pair<uint64_t, uint64_t>> l1_regions;
};
#if TT_GEN == 0
class Program_
#else
class ProgramImpl
#endif
{
      public:
	void allocate_circular_buffers(const IDevice *device);
	void deallocate_circular_buffers();
	void add(const std::vector<CoreRange> &cores, uint64_t size, bool global);
	void invalidate();
#if TT_GEN == 0
	~Program_();
#else
	~ProgramImpl();
#endif

	std::vector<std::unique_ptr<CircularBuffer>> circular_buffers_;
	std::vector<CircularBufferAllocator> cb_allocators_;
	std::vector<const IDevice *> cb_devices_;
	bool needed_ = true;
};
#if TT_GEN == 0
using AnyProgram = Program_;
#else
using AnyProgram = ProgramImpl;
#endif
} // namespace detail

// Which chips a process sees: chips.cpp.
struct VisibleChip {
	std::string bdf;
	uint64_t unique_id; // UMD's; 0: not known
};
std::vector<VisibleChip> visible_chips();

} // namespace tt::tt_metal

#endif
