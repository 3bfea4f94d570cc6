// SPDX-License-Identifier: GPL-2.0-only
/*
 * profiler.cpp: the host side of the real-time profiler, TT_PROF (facts/tenstorrent.md 3.2):
 *
 *	0  none
 *	1  tt::InvokeProgramRealtimeProfilerCallbacks, chip at byte 32, kernels a vector of strings at 40
 *	2  the same, and clock pairs (time stamp counter)
 *	3  the same record, DataCollector's function, clock pairs
 *	4  chip at 4, kernels a span of string_view at 32
 *	5  batches of records of 48 bytes to the Tracy consumer, clock pairs (CLOCK_MONOTONIC)
 *	6  batches of records of 64 bytes, with clock_sync, to a consumer
 *	7  batches of records of 80 bytes, with queue, stream and losses, to the Tracy consumer
 *	8  batches of records of 72 bytes, with queue, stream and type, to the Tracy consumer
 *
 * From 7 on the consumer calibrates Tracy with host nanoseconds and a frequency of 1.0, which are no device cycles: CalibrateFromRecord in
 * impl/realtime_profiler/realtime_profiler_tracy_consumer.cpp of 292bcd1a. Records: experimental/realtime_profiler.hpp.
 */
#include <ctime>
#include <string_view>

#include "metal.hpp"
#include "world.hpp"

#define TT_VIEWS (TT_PROF >= 4) // kernels are views, else strings
#define TT_BATCH (TT_PROF >= 5)
#define TT_PAIRS (TT_PROF == 2 || TT_PROF == 3 || TT_PROF == 4 || TT_PROF == 5)

static void (*user_callback)(void);

namespace tt::tt_metal::experimental
{
#if TT_PROF > 0 && TT_PROF <= 3
struct ProgramRealtimeRecord {
	uint32_t program_id;
	uint64_t start_timestamp, end_timestamp;
	double frequency;
	uint32_t chip_id;
	std::vector<std::string> kernel_sources;
};
static_assert(sizeof(ProgramRealtimeRecord) == 64 && offsetof(ProgramRealtimeRecord, chip_id) == 32 &&
	      offsetof(ProgramRealtimeRecord, kernel_sources) == 40);
#elif TT_VIEWS
template <typename T> struct Items {
	const T *data;
	size_t size;
};
struct ClockSync {
	int64_t device_cycle_offset, sync_error;
};
struct ProgramRealtimeRecord {
	uint32_t runtime_id, chip_id;
	uint64_t start_timestamp, end_timestamp;
	double frequency;
#if TT_PROF == 6
	ClockSync clock_sync;
#endif
	Items<std::string_view> kernel_sources;
#if TT_PROF == 7
	uint32_t command_queue_id, dispatch_stream, generation, sequence, schema_version, record_type;
	uint64_t cumulative_source_dropped;
#elif TT_PROF == 8
	uint32_t command_queue_id, dispatch_stream, sequence, schema_version, record_type;
#endif
};
static_assert(sizeof(ProgramRealtimeRecord) == (TT_PROF <= 5 ? 48 : TT_PROF == 6 ? 64 : TT_PROF == 7 ? 80 : 72));
struct DeviceLossSnapshot {
	uint32_t chip_id;
	uint64_t cumulative_source_dropped;
};
struct ProgramRealtimeRecordBatch {
	Items<ProgramRealtimeRecord> records;
	uint64_t dropped;
#if TT_PROF == 7
	Items<DeviceLossSnapshot> device_loss;
#endif
};
#endif
#if TT_PROF
static_assert(offsetof(ProgramRealtimeRecord, start_timestamp) == 8 &&
	      offsetof(ProgramRealtimeRecord, frequency) == 24);
#endif
} // namespace tt::tt_metal::experimental

#if TT_PROF == 1 || TT_PROF == 2
namespace tt
{
void InvokeProgramRealtimeProfilerCallbacks(const tt_metal::experimental::ProgramRealtimeRecord &)
{
	PROBED();
	if (user_callback)
		user_callback();
}
} // namespace tt
#define TT_INVOKE(record) tt::InvokeProgramRealtimeProfilerCallbacks(record)
#elif TT_PROF == 3 || TT_PROF == 4
namespace tt::tt_metal
{
class DataCollector
{
      public:
	uint64_t calls = 0;
	void InvokeProgramRealtimeProfilerCallbacks(const experimental::ProgramRealtimeRecord &record);
};
void DataCollector::InvokeProgramRealtimeProfilerCallbacks(const experimental::ProgramRealtimeRecord &)
{
	PROBED();
	calls++;
	if (user_callback)
		user_callback();
}
static DataCollector collector;
} // namespace tt::tt_metal
#define TT_INVOKE(record) tt::tt_metal::collector.InvokeProgramRealtimeProfilerCallbacks(record)
#elif TT_BATCH
namespace tt::tt_metal
{
class RealtimeProfilerConsumer
{
      public:
	uint64_t calls = 0;
	virtual ~RealtimeProfilerConsumer() = default;
#if TT_PROF == 6
	virtual void on_records(const experimental::ProgramRealtimeRecordBatch &batch);
#else
	virtual void on_records(const experimental::ProgramRealtimeRecordBatch &batch) = 0;
#endif
};
#if TT_PROF == 6
void RealtimeProfilerConsumer::on_records(const experimental::ProgramRealtimeRecordBatch &)
{
	PROBED();
	calls++;
	if (user_callback)
		user_callback();
}
static RealtimeProfilerConsumer consumer;
#else
class RealtimeProfilerTracyConsumer final : public RealtimeProfilerConsumer
{
      public:
	void on_records(const experimental::ProgramRealtimeRecordBatch &batch) override;
	void CalibrateDevice(uint32_t chip_id, int64_t host_anchor, uint64_t device_anchor, double frequency);
};
void RealtimeProfilerTracyConsumer::CalibrateDevice(uint32_t, int64_t, uint64_t, double)
{
	calls++;
}
void RealtimeProfilerTracyConsumer::on_records(const experimental::ProgramRealtimeRecordBatch &batch)
{
	PROBED();
	calls++;
	for (size_t i = 0; i < batch.records.size && TT_PROF >= 7; i++) {
		struct timespec ts;

		clock_gettime(CLOCK_MONOTONIC, &ts);
		uint64_t now = ts.tv_sec * 1000000000ull + ts.tv_nsec;
		CalibrateDevice(batch.records.data[i].chip_id, now, now, 1.0);
	}
	if (user_callback)
		user_callback();
}
static RealtimeProfilerTracyConsumer consumer;
#endif
static RealtimeProfilerConsumer *volatile consumers = &consumer;
} // namespace tt::tt_metal
#endif

#if TT_PAIRS
namespace tt::tt_metal
{
class RealtimeProfilerTracyHandler
{
      public:
	std::mutex mutex_;
	uint64_t calls = 0;
	void CalibrateDevice(uint32_t chip_id, int64_t host_time, uint64_t device_timestamp, double frequency);
};
void RealtimeProfilerTracyHandler::CalibrateDevice(uint32_t, int64_t, uint64_t, double)
{
	PROBED();
	calls++;
}
static RealtimeProfilerTracyHandler handler;
} // namespace tt::tt_metal
#endif

namespace standin
{

const unsigned int profiler_has = (TT_PROF ? STANDIN_HAS_PROFILE : 0) | (TT_PAIRS ? STANDIN_HAS_PAIRS : 0) |
				  (TT_PROF == 5 ? STANDIN_PAIRS_MONO : 0) | (TT_PROF == 6 ? STANDIN_HAS_SYNC : 0);

void callback(void (*fn)(void))
{
	user_callback = fn;
}

#if TT_PROF == 0
void programs(const struct standin_tt_record *, size_t, uint64_t)
{
	(void)user_callback;
}
#elif !TT_VIEWS
void programs(const struct standin_tt_record *recs, size_t n, uint64_t)
{
	for (size_t i = 0; i < n; i++) {
		tt::tt_metal::experimental::ProgramRealtimeRecord record{};

		record.program_id = recs[i].id;
		record.chip_id = recs[i].chip;
		record.start_timestamp = recs[i].start;
		record.end_timestamp = recs[i].end;
		record.frequency = recs[i].ghz;
		for (size_t k = 0; k < recs[i].nr_kernels; k++)
			record.kernel_sources.emplace_back(recs[i].kernels[k]);
		TT_INVOKE(record);
	}
}
#else
void programs(const struct standin_tt_record *recs, size_t n, uint64_t dropped)
{
	std::vector<tt::tt_metal::experimental::ProgramRealtimeRecord> records(n);
	std::vector<std::vector<std::string_view>> names(n);

	for (size_t i = 0; i < n; i++) {
		auto &record = records[i];

		for (size_t k = 0; k < recs[i].nr_kernels; k++)
			names[i].emplace_back(recs[i].kernels[k]);
		record.runtime_id = recs[i].id;
		record.chip_id = recs[i].chip;
		record.start_timestamp = recs[i].start;
		record.end_timestamp = recs[i].end;
		record.frequency = recs[i].ghz;
		record.kernel_sources = { names[i].data(), names[i].size() };
#if TT_PROF == 6
		record.clock_sync = { recs[i].sync_offset, recs[i].sync_error };
#elif TT_PROF == 7
		record.sequence = i;
		record.schema_version = 1;
		record.generation = 3;
		record.cumulative_source_dropped = dropped;
#elif TT_PROF == 8
		record.sequence = i;
		record.schema_version = 1;
		record.record_type = 2;
#endif
	}
#if TT_BATCH
#if TT_PROF == 7
	tt::tt_metal::experimental::DeviceLossSnapshot loss = { 0, dropped };

	tt::tt_metal::consumers->on_records({ { records.data(), n }, dropped, { &loss, 1 } });
#else
	tt::tt_metal::consumers->on_records({ { records.data(), n }, dropped });
#endif
#else
	(void)dropped;
	for (const auto &record : records)
		TT_INVOKE(record);
#endif
}
#endif

void pair(uint32_t chip, int64_t host, uint64_t cycles, double ghz)
{
#if TT_PAIRS
	tt::tt_metal::handler.CalibrateDevice(chip, host, cycles, ghz);
#else
	(void)chip, (void)host, (void)cycles, (void)ghz;
#endif
}

} // namespace standin
