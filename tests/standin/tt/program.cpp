// SPDX-License-Identifier: GPL-2.0-only
/*
 * program.cpp: circular buffers of programs: what tt-metal does in
 * ProgramImpl::allocate_circular_buffers, deallocate_circular_buffers, get_cb_l1_regions_per_core
 * (impl/program/program.cpp) and Device::get_total_cb_allocated (impl/device/device.cpp), as read
 * in main 622c6fb9 of 2026-06-23; the end of a program is program.cpp:1420-1425 there (facts/
 * tenstorrent.md 8). Held against a stored text of program.cpp of 2026 whose commit is not known
 * (it has allocate_scratchpads): these functions but the last do the same there.
 * Releases before cb_devices_ told a program's circular buffers once, for the device of its first
 * run alone; they are not modelled. In our own words; what is not about addresses is not here.
 */
#include <algorithm>

#include "metal.hpp"

namespace tt::tt_metal
{

static constexpr uint64_t base = 0x18000, alignment = 32;

static bool intersects(const CoreRange &a, const CoreRange &b)
{
	return a.start.x <= b.end.x && b.start.x <= a.end.x && a.start.y <= b.end.y && b.start.y <= a.end.y;
}

static bool equal(const CoreRange &a, const CoreRange &b)
{
	return a.start.x == b.start.x && a.start.y == b.start.y && a.end.x == b.end.x && a.end.y == b.end.y;
}

static std::vector<const IDevice *> devices_of(const IDevice *device)
{
#if TT_MESH_DEVICE
	std::vector<const IDevice *> ret;

	for (IDevice *one : const_cast<IDevice *>(device)->locals())
		ret.push_back(one);
	return ret;
#else
	return { device };
#endif
}

static Device *as_device(const IDevice *device)
{
#if TT_MESH_DEVICE
	return dynamic_cast<Device *>(const_cast<IDevice *>(device));
#else
	return const_cast<Device *>(device);
#endif
}

namespace detail
{

static uint64_t end_of(const CircularBufferAllocator &allocator)
{
	return allocator.l1_regions.empty() ? base : allocator.l1_regions.back().second;
}

static void mark(CircularBufferAllocator &allocator, uint64_t address, uint64_t size)
{
	if (!allocator.l1_regions.empty() && allocator.l1_regions.back().second == address)
		allocator.l1_regions.back().second += size;
	else
		allocator.l1_regions.push_back({ address, address + size });
}

void AnyProgram::add(const std::vector<CoreRange> &cores, uint64_t size, bool global)
{
	auto cb = std::make_unique<CircularBuffer>();

	cb->cores.ranges = cores;
	cb->size = size;
	cb->global = global;
	for (const CoreRange &range : cores)
		if (std::none_of(cb_allocators_.begin(), cb_allocators_.end(),
				 [&](const auto &a) { return equal(a.core_range, range); }))
			cb_allocators_.push_back({ range, {} });
	circular_buffers_.push_back(std::move(cb));
	invalidate();
}

void AnyProgram::invalidate()
{
	for (auto &allocator : cb_allocators_)
		allocator.l1_regions.clear();
	needed_ = true;
}

static void tell(const CircularBuffer &cb, const IDevice *device)
{
	GraphTracker::instance().track_allocate_cb(cb.cores, cb.address, cb.size, cb.global, device);
}

static uint64_t place(std::vector<CircularBufferAllocator> &allocators, const CircularBuffer &cb)
{
	uint64_t address = base;

	for (const CoreRange &range : cb.cores.ranges)
		for (const auto &allocator : allocators)
			if (equal(allocator.core_range, range))
				address = std::max(address, end_of(allocator));
	address = (address + alignment - 1) / alignment * alignment;
	for (const CoreRange &range : cb.cores.ranges)
		for (auto &allocator : allocators)
			if (intersects(allocator.core_range, range) &&
			    (equal(allocator.core_range, range) || address >= end_of(allocator)))
				mark(allocator, address, cb.size);
	return address;
}

void AnyProgram::allocate_circular_buffers(const IDevice *device)
{
	PROBED();
	std::vector<const IDevice *> devices = devices_of(device), fresh;

	for (const IDevice *one : devices)
		if (std::find(cb_devices_.begin(), cb_devices_.end(), one) == cb_devices_.end()) {
			cb_devices_.push_back(one);
			fresh.push_back(one);
		}
	if (!needed_) {
		for (const IDevice *one : fresh)
			for (const auto &cb : circular_buffers_)
				if (!cb->global)
					tell(*cb, one);
	} else {
		for (auto &cb : circular_buffers_) {
			if (!cb->global)
				cb->address = place(cb_allocators_, *cb);
			for (const IDevice *one : devices)
				tell(*cb, one);
		}
		needed_ = false;
	}
	for (const IDevice *one : fresh)
		as_device(one)->active_programs_.push_back(this);
}

void AnyProgram::deallocate_circular_buffers()
{
	PROBED_NOTHROW();
	for (const IDevice *one : cb_devices_) {
		auto &active = as_device(one)->active_programs_;

		GraphTracker::instance().track_deallocate_cb(one);
		active.erase(std::remove(active.begin(), active.end(), this), active.end());
	}
	cb_devices_.clear();
}

#if TT_GEN == 0
Program_::~Program_()
#else
ProgramImpl::~ProgramImpl()
#endif
{
	PROBED_NOTHROW();
	if (!cb_devices_.empty() && !circular_buffers_.empty())
		deallocate_circular_buffers();
}

} // namespace detail

uint64_t Device::get_total_cb_allocated() const
{
	std::map<std::pair<size_t, size_t>, std::vector<std::pair<uint64_t, uint64_t>>> cores;
	uint64_t total = 0;

	for (const void *program : active_programs_)
		for (const auto &allocator : static_cast<const detail::AnyProgram *>(program)->cb_allocators_)
			for (size_t x = allocator.core_range.start.x; x <= allocator.core_range.end.x; x++)
				for (size_t y = allocator.core_range.start.y; y <= allocator.core_range.end.y; y++)
					for (const auto &region : allocator.l1_regions)
						cores[{ x, y }].push_back(region);
	for (auto &[core, regions] : cores) {
		uint64_t until = 0;

		std::sort(regions.begin(), regions.end());
		for (const auto &[from, to] : regions) {
			total += to > until ? to - std::max(from, until) : 0;
			until = std::max(until, to);
		}
	}
	return total;
}

} // namespace tt::tt_metal
