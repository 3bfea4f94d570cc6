// SPDX-License-Identifier: GPL-2.0-only
/*
 * shm.cpp: tt-metal's own statistics, layout version 2 (facts/tenstorrent.md 1.2, 1.5). A tracer that sees a process do this only reads.
 * Source in tt-metal: impl/memory_tracking/memory_stats_shm.hpp of 480e740f (version 2).
 */
#include <cstdlib>
#include <cstring>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "metal.hpp"

#if TT_PROVIDER
namespace tt::tt_metal
{

static constexpr size_t region_size = 8576, totals = 48, chips = 88, procs = 856, proc_size = 120, nr_procs = 64;

template <typename T> static T *at(unsigned char *region, size_t offset)
{
	return reinterpret_cast<T *>(region + offset);
}

#if TT_IMPL
SharedMemoryStatsProvider::SharedMemoryStatsProvider(uint64_t key, int device_id, bool disabled, bool)
{
	PROBED();
	if (!disabled)
		begin(key, device_id);
}
#else
SharedMemoryStatsProvider::SharedMemoryStatsProvider(uint64_t key, int device_id)
{
	PROBED();
	begin(key, device_id);
}
#endif

void SharedMemoryStatsProvider::begin(uint64_t key, int device_id)
{
	const char *dir = getenv("STANDIN_TT_SHM");
	char path[512];

	if (!dir)
		return;
	snprintf(path, sizeof(path), "%s/tt_device_%llu_memory", dir, (unsigned long long)key);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (!ftruncate(fd, region_size)) {
		void *p = mmap(nullptr, region_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		region_ = p == MAP_FAILED ? nullptr : static_cast<unsigned char *>(p);
	}
	close(fd);
	if (!region_)
		return;
	if (*at<uint32_t>(region_, 0) != 2) {
		memset(region_, 0, region_size);
		*at<uint64_t>(region_, 32) = key;
		*at<uint32_t>(region_, chips) = device_id;
		for (size_t i = 1; i < 16; i++)
			*at<uint32_t>(region_, chips + i * 48) = 0xffffffff;
		*at<uint32_t>(region_, 0) = 2;
	}
	*at<int32_t>(region_, 40) = device_id;
	__atomic_fetch_add(at<uint32_t>(region_, 16), 1, __ATOMIC_SEQ_CST);
}

SharedMemoryStatsProvider::~SharedMemoryStatsProvider()
{
	if (!region_)
		return;
	__atomic_fetch_sub(at<uint32_t>(region_, 16), 1, __ATOMIC_SEQ_CST);
	munmap(region_, region_size);
}

void SharedMemoryStatsProvider::add(pid_t pid, uint64_t size, ShmBufferType type, bool more)
{
	static std::mutex lock;
	std::lock_guard<std::mutex> guard(lock);
	static constexpr int order[] = { 0, 1, -1, 2, 3, 4 };
	int which = uint8_t(type) < 6 ? order[uint8_t(type)] : -1;
	uint64_t delta = more ? size : -size;
	struct timespec ts;

	if (!region_ || which < 0)
		return;
	__atomic_fetch_add(at<uint64_t>(region_, totals + 8 * which), delta, __ATOMIC_SEQ_CST);
	__atomic_fetch_add(at<uint64_t>(region_, chips + 8 + 8 * which), delta, __ATOMIC_SEQ_CST);
	for (size_t i = 0; i < nr_procs; i++) {
		unsigned char *slot = region_ + procs + i * proc_size;

		if (*at<int32_t>(slot, 0) && *at<int32_t>(slot, 0) != pid)
			continue;
		if (!*at<int32_t>(slot, 0)) {
			*at<int32_t>(slot, 0) = pid;
			snprintf(at<char>(slot, 56), 64, "%s", program_invocation_short_name);
			__atomic_fetch_add(at<uint32_t>(region_, 4), 1, __ATOMIC_SEQ_CST);
		}
		*at<uint64_t>(slot, 8 + 8 * which) += delta;
		break;
	}
	clock_gettime(CLOCK_REALTIME, &ts);
	*at<uint64_t>(region_, 8) = ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

void SharedMemoryStatsProvider::record_allocation(pid_t pid, uint64_t size, ShmBufferType type, uint32_t)
{
	add(pid, size, type, true);
}

void SharedMemoryStatsProvider::record_deallocation(pid_t pid, uint64_t size, ShmBufferType type, uint32_t)
{
	add(pid, size, type, false);
}

} // namespace tt::tt_metal
#endif
