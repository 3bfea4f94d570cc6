// SPDX-License-Identifier: GPL-2.0-only
/*
 * graph.cpp: the tracking functions, and with them tt-metal's own statistics: recorded for each local device of the buffer's. Source in
 * tt-metal: GraphTracker in impl/graph/graph_tracking.cpp of main 622c6fb9 (graph/graph_tracking.cpp before #44668).
 */
#include <unistd.h>

#include "metal.hpp"

namespace tt::tt_metal
{

thread_local bool GraphTracker::processing, GraphTracker::capturing, GraphTracker::blind;

GraphTracker &GraphTracker::instance()
{
	static GraphTracker one;

	return one;
}

bool GraphTracker::hook_allocate(const Buffer *)
{
	return capturing;
}

#if TT_PROVIDER
static void record(const Buffer *buffer, bool more)
{
	if (GraphTracker::blind || (TT_IMPL && !GraphTracker::processing))
		return;
	for (IDevice *local : buffer->me().device_->locals()) {
		auto *device = dynamic_cast<Device *>(local);
		SharedMemoryStatsProvider *stats = device ? device->shm_stats_provider_.get() : nullptr;

		if (!stats || !stats->region_ || buffer->hooked())
			continue;
		if (more)
			stats->record_allocation(getpid(), buffer->size(), ShmBufferType(buffer->buffer_type()),
						 device->id());
		else
			stats->record_deallocation(getpid(), buffer->size(), ShmBufferType(buffer->buffer_type()),
						   device->id());
	}
}
#else
static void record(const Buffer *, bool)
{
}
#endif

#if TT_GEN == 0
void GraphTracker::track_allocate(const Buffer *buffer, bool)
#else
void GraphTracker::track_allocate(const Buffer *buffer)
#endif
{
	PROBED();
	seen++;
	record(buffer, true);
}

void GraphTracker::track_deallocate(Buffer *buffer)
{
	PROBED();
	seen++;
	record(buffer, false);
}

#if TT_PIMPL
void notify_buffer_allocated(const Buffer *)
{
	PROBED();
	GraphTracker::instance().seen++;
}

void notify_buffer_deallocated(Buffer *)
{
	PROBED();
	GraphTracker::instance().seen++;
}
#endif

void GraphTracker::track_allocate_cb(const CoreRangeSet &cores, uint64_t addr, uint64_t size, bool global,
				     const IDevice *device)
{
	PROBED();
	seen += cores.ranges.size() + !!addr + !!size + global + !!device;
}

void GraphTracker::track_deallocate_cb(const IDevice *device)
{
	PROBED();
	seen += !!device;
}

} // namespace tt::tt_metal
