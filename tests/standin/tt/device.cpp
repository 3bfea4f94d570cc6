// SPDX-License-Identifier: GPL-2.0-only
/*
 * device.cpp: devices, meshes, and which chips a process sees. Sources in tt-metal: Device in impl/device/device.cpp (initialize, close,
 * destructor) and device_manager.cpp:341-349 (a closed one is opened again by initialize), MeshDevice and its impl in
 * distributed/mesh_device.cpp, its view in distributed/mesh_device_view_impl.hpp, all of main 622c6fb9; in UMD visible_chips() is
 * topology discovery over PCIDevice's list by bus address (3ed9cb6d, facts/tenstorrent.md 4.1).
 *
 * Later versions clear a device's program cache in Device::close, so that programs end there which here live on.
 */
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "metal.hpp"

namespace tt::tt_metal
{

#if TT_MESH_DEVICE
IDevice::~IDevice() = default;
#endif

TT_V0_BEGIN
#if TT_IMPL
Device::Device(MetalEnv *env, MetalContext *context, ChipId id, uint8_t, size_t, size_t, tt_types::Span<const uint32_t>)
    : context_(context), env_(env), id_(id), allocator_(std::make_unique<AnyAllocator>())
#else
Device::Device(ChipId id, uint8_t, size_t, size_t) : id_(id), allocator_(std::make_unique<AnyAllocator>())
#endif
{
	PROBED();
}

Device::~Device() = default;

bool Device::close()
{
	PROBED();
	bool was = initialized_;

	allocator_->forget();
	initialized_ = false;
	return was;
}

bool Device::initialize(uint8_t, size_t, size_t, size_t, bool)
{
	PROBED();
	initialized_ = true;
	return true;
}

AnyAllocator *Device::allocator()
{
	return allocator_.get();
}

bool Device::is_initialized() const
{
	return initialized_;
}

#if TT_MESH_DEVICE
ChipId Device::id() const
{
	return id_;
}

std::vector<IDevice *> Device::locals()
{
	return { this };
}
#endif
TT_V0_END

#if TT_MESH_DEVICE
namespace distributed
{

MeshDevice::MeshDevice(const std::vector<IDevice *> &devices, std::shared_ptr<MeshDevice> parent)
    : pimpl_(std::make_unique<MeshDeviceImpl>())
{
	PROBED();
	pimpl_->self = this;
	pimpl_->scoped = parent ? parent->pimpl_->scoped : std::make_shared<ScopedDevices>();
	pimpl_->view = std::make_unique<MeshDeviceView>();
#if TT_IMPL
	MeshDeviceViewImpl &view = *pimpl_->view->impl_;
#else
	MeshDeviceView &view = *pimpl_->view;
#endif
	view.shape[0] = 1;
	view.shape[1] = devices.size();
	for (IDevice *device : devices) {
		view.devices.push_back(device);
		if (parent)
			continue;
		pimpl_->scoped->opened_local_devices_[device->id()] = device;
		pimpl_->scoped->devices_.push_back(device);
	}
	pimpl_->parent = std::move(parent);
	pimpl_->allocator = std::make_unique<AnyAllocator>();
}

MeshDevice::~MeshDevice()
{
	PROBED_NOTHROW();
}

ChipId MeshDevice::id() const
{
	return pimpl_->mesh_id;
}

AnyAllocator *MeshDevice::allocator()
{
	return pimpl_->allocator.get();
}

bool MeshDevice::is_initialized() const
{
	return true;
}

std::vector<IDevice *> MeshDevice::locals()
{
	return get_devices();
}

std::vector<IDevice *> MeshDevice::get_devices() const
{
#if TT_IMPL
	std::vector<IDevice *> ret;

	for (const MaybeRemote &one : pimpl_->view->impl_->devices)
		ret.push_back(std::get<IDevice *>(one));
	return ret;
#else
	return pimpl_->view->devices;
#endif
}

} // namespace distributed
#endif

static std::vector<std::string> split(const char *text, char by)
{
	std::vector<std::string> parts;
	std::string part;
	std::istringstream in(text);

	while (std::getline(in, part, by))
		if (!part.empty())
			parts.push_back(part);
	return parts;
}

struct HostChip {
	std::string bdf;
	uint64_t unique, remote;
	bool has_remote;
};

/* STANDIN_TT_CHIPS: BDF[=UNIQUE[+UNIQUE of the remote half]],... in any order; without it 64 chips that nobody knows. */
static std::vector<HostChip> host_chips()
{
	std::vector<HostChip> chips;
	const char *text = getenv("STANDIN_TT_CHIPS");

	for (const std::string &one : split(text ? text : "", ',')) {
		size_t eq = one.find('='), plus = one.find('+');
		HostChip chip = { one.substr(0, std::min(eq, plus)), 0, 0, plus != std::string::npos };

		if (eq != std::string::npos)
			chip.unique = std::strtoull(one.c_str() + eq + 1, nullptr, 0);
		if (chip.has_remote)
			chip.remote = std::strtoull(one.c_str() + plus + 1, nullptr, 0);
		chips.push_back(chip);
	}
	for (int i = 0; !text && i < 64; i++) {
		char bdf[16];

		snprintf(bdf, sizeof(bdf), "0000:%02x:00.0", i + 1);
		chips.push_back({ bdf, 0, 0, false });
	}
	std::sort(chips.begin(), chips.end(), [](const HostChip &a, const HostChip &b) { return a.bdf < b.bdf; });
	return chips;
}

/* As UMD: TT_VISIBLE_DEVICES is a set of indexes into the chips by bus address, or of parts of addresses; remote chips come last. */
std::vector<VisibleChip> visible_chips()
{
	std::vector<HostChip> all = host_chips();
	std::vector<VisibleChip> ret;
	const char *text = getenv("TT_VISIBLE_DEVICES");
	std::vector<std::string> wanted = split(text ? text : "", ',');
	auto seen = [&](size_t i) {
		return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const std::string &w) {
			       bool number = w.find_first_not_of("0123456789") == std::string::npos;
			       return number ? std::stoul(w) == i : all[i].bdf.find(w) != std::string::npos;
		       });
	};

	for (size_t i = 0; i < all.size(); i++)
		if (seen(i))
			ret.push_back({ all[i].bdf, all[i].unique });
	for (size_t i = 0; i < all.size(); i++)
		if (seen(i) && all[i].has_remote)
			ret.push_back({ all[i].bdf + "R", all[i].remote });
	return ret;
}

} // namespace tt::tt_metal
