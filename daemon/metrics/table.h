/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * table.h: every metric. /metrics, ttmond --help=metrics and ttmond-metrics(7) are generated from it.
 *
 * X(ID, name, type, unit, labels, need, help). need: the families of probes that must be on
 * (TTMON_NEED_*). A counter that stands still because its probes are off is no figure, so without them
 * the series are absent. The label GROUP gets the name that --group-by gives. Dashboards and alerts of
 * users depend on names and labels: they are added, never changed. A new metric takes a row here and a
 * TTMON_METRIC_ID where its figure is written (tests/e2e/t_metrics.py fails without it).
 */
#ifndef TTMON_METRICS_TABLE_H
#define TTMON_METRICS_TABLE_H

#include <ttmon/family.h>

#define TTMON_NEED_NONE	       0u
#define TTMON_NEED_ALLOC       TTMON_FAMILY_BIT(ALLOC)
#define TTMON_NEED_TRANSFER    TTMON_FAMILY_BIT(TRANSFER)
#define TTMON_NEED_LAUNCH      TTMON_FAMILY_BIT(LAUNCH)
#define TTMON_NEED_TENSTORRENT TTMON_FAMILY_BIT(TENSTORRENT)
#define TTMON_NEED_CPU	       TTMON_FAMILY_BIT(CPU)
#define TTMON_NEED_WAIT	       TTMON_FAMILY_BIT(WAIT)
#define TTMON_NEED_HELD	       (TTMON_NEED_ALLOC | TTMON_NEED_TENSTORRENT)
#define TTMON_NEED_CALLS       (TTMON_NEED_ALLOC | TTMON_NEED_TRANSFER)
#define TTMON_NEED_WORK	       (TTMON_NEED_TENSTORRENT | TTMON_FAMILY_BIT(DISPATCH))
/*
 * VENDOR: by the label vendor, the family tenstorrent or alloc. FUNCTION: by the label function, the
 * families that see its calls.
 */
#define TTMON_NEED_VENDOR   (1u << 31)
#define TTMON_NEED_FUNCTION (1u << 30)

/* Memory and transfers of the whole host. */
#define TTMON_METRICS_MEMORY(X)                                                                                      \
	X(ALLOCATIONS, "ttmond_allocations_total", COUNTER, "", "vendor,method", VENDOR,                             \
	  "Allocations and registrations that succeeded")                                                            \
	X(ALLOCATED_BYTES, "ttmond_allocated_bytes_total", COUNTER, "bytes", "vendor,method", VENDOR,                \
	  "Bytes requested by them")                                                                                 \
	X(FREES, "ttmond_frees_total", COUNTER, "", "vendor,method", VENDOR,                                         \
	  "Allocations that ended, by a call or with their process")                                                 \
	X(LIVE_ALLOCATIONS, "ttmond_live_allocations", GAUGE, "", "vendor,method", VENDOR,                           \
	  "Allocations that are there now")                                                                          \
	X(LIVE_BYTES, "ttmond_live_bytes", GAUGE, "bytes", "vendor,method", VENDOR,                                  \
	  "Bytes of the allocations that are there now, on the host and on devices")                                 \
	X(PINNED_BYTES, "ttmond_pinned_bytes", GAUGE, "bytes", "vendor,method", VENDOR,                              \
	  "Bytes of host memory pinned now")                                                                         \
	X(PINNED_PAGES, "ttmond_pinned_pages", GAUGE, "", "vendor,method", VENDOR,                                   \
	  "Pages of host memory pinned now, those pinned twice counted twice")                                       \
	X(PAGES_PINNED, "ttmond_pages_pinned_total", COUNTER, "", "vendor,method", VENDOR,                           \
	  "Pages of host memory that were pinned, those pinned again counted again")                                 \
	X(PINNED_PEAK_BYTES, "ttmond_pinned_peak_bytes", GAUGE, "bytes", "vendor,method", VENDOR,                    \
	  "Most bytes of host memory ever pinned at a time")                                                         \
	X(PINNED_PEAK_PAGES, "ttmond_pinned_peak_pages", GAUGE, "", "vendor,method", VENDOR,                         \
	  "Most pages of host memory ever pinned at a time")                                                         \
	X(HOST_PINNED_BYTES, "ttmond_host_pinned_bytes", GAUGE, "bytes", "", HELD,                                   \
	  "Bytes of host memory pinned now, by all methods")                                                         \
	X(HOST_PINNED_PEAK_BYTES, "ttmond_host_pinned_peak_bytes", GAUGE, "bytes", "", HELD,                         \
	  "Most bytes of host memory ever pinned at a time, by all methods")                                         \
	X(HOST_PINNED_PAGES, "ttmond_host_pinned_pages", GAUGE, "", "", HELD,                                        \
	  "Pages of host memory pinned now, each counted once in its process")                                       \
	X(HOST_PINNED_PEAK_PAGES, "ttmond_host_pinned_peak_pages", GAUGE, "", "", HELD,                              \
	  "Most pages of host memory ever pinned at a time, each counted once in its process")                       \
	X(KERNEL_PAGES_PINNED, "ttmond_kernel_pages_pinned_total", COUNTER, "", "", NONE,                            \
	  "Pages that drivers pinned with pin_user_pages() since boot, by the kernel (nr_foll_pin_acquired)")        \
	X(KERNEL_PAGES_UNPINNED, "ttmond_kernel_pages_unpinned_total", COUNTER, "", "", NONE,                        \
	  "Pages of these that were released (nr_foll_pin_released)")                                                \
	X(PINNERS_VM_PIN, "ttmond_pinning_processes_vm_pin_bytes", GAUGE, "bytes", "", NONE,                         \
	  "VmPin of the 64 processes that pin most: io_uring, VFIO and RDMA count there, CUDA does not")             \
	X(PINNERS_SHMEM, "ttmond_pinning_processes_rss_shmem_bytes", GAUGE, "bytes", "", NONE,                       \
	  "RssShmem of the same processes, which includes the driver's pinned allocations")                          \
	X(MEMTRACE_CHANNELS, "ttmond_memtrace_channels", GAUGE, "", "", NONE,                                        \
	  "CUDA contexts whose kernels' memory accesses are read now (--memtrace)")                                  \
	X(MEMTRACE_RECORDS, "ttmond_memtrace_records_total", COUNTER, "", "", NONE,                                  \
	  "Memory accesses of warps that were read from channels")                                                   \
	X(MEMTRACE_DROPPED, "ttmond_memtrace_dropped_total", COUNTER, "", "", NONE,                                  \
	  "Memory accesses lost because a channel had no room")                                                      \
	X(NVIDIA_CALLS, "ttmond_nvidia_driver_calls_total", COUNTER, "", "function", ALLOC,                          \
	  "Calls of functions of the module nvidia that pin, allocate and map host memory (--nvidia-pins)")          \
	X(NVIDIA_RETURNS, "ttmond_nvidia_driver_returns_total", COUNTER, "", "function", ALLOC,                      \
	  "Of these, those whose return was seen; the others still run, or there were too many at a time")           \
	X(NVIDIA_FAILURES, "ttmond_nvidia_driver_failures_total", COUNTER, "", "function", ALLOC,                    \
	  "Of these, those that failed")                                                                             \
	X(NVIDIA_PAGES, "ttmond_nvidia_driver_pages_total", COUNTER, "", "function", ALLOC,                          \
	  "Pages of those that succeeded, by functions that count in pages")                                         \
	X(NVIDIA_BYTES, "ttmond_nvidia_driver_bytes_total", COUNTER, "bytes", "function", ALLOC,                     \
	  "Bytes of those that succeeded, by functions that count in bytes")                                         \
	X(PIN_SECONDS, "ttmond_pin_seconds", HISTOGRAM, "seconds", "vendor,method", VENDOR,                          \
	  "Duration of the calls that allocated or registered pinned memory")                                        \
	X(UNPIN_SECONDS, "ttmond_unpin_seconds", HISTOGRAM, "seconds", "vendor,method", VENDOR,                      \
	  "Duration of the calls that freed or unregistered pinned memory")                                          \
	X(PIN_UNOBSERVED, "ttmond_pin_unobserved_total", COUNTER, "", "vendor,method,call", VENDOR,                  \
	  "Calls of pin and unpin whose duration was not observed, which are in no histogram")                       \
	X(CALL_FAILURES, "ttmond_call_failures_total", COUNTER, "", "function,error", FUNCTION,                      \
	  "Calls that returned an error, by function and name of the error, or its number")                          \
	X(TRANSFERS, "ttmond_transfers_total", COUNTER, "", "vendor,direction,host_memory", TRANSFER,                \
	  "Transfers, by direction and kind of the host memory (none between devices)")                              \
	X(TRANSFER_BYTES, "ttmond_transfer_bytes_total", COUNTER, "bytes", "vendor,direction,host_memory", TRANSFER, \
	  "Bytes they moved")                                                                                        \
	X(LAUNCHES, "ttmond_launches_total", COUNTER, "", "vendor,kind", LAUNCH,                                     \
	  "Launches of kernels and graphs; the last ones of a process are counted at its next one, or at its end")   \
	X(GRAPH_COPIES, "ttmond_graph_copies_total", COUNTER, "", "vendor", LAUNCH,                                  \
	  "Copy nodes added to graphs, whose transfers are not seen")                                                \
	X(CAPTURED_COPIES, "ttmond_captured_copies_total", COUNTER, "", "vendor", TRANSFER,                          \
	  "Copies into a stream that was being captured, which are no transfers")                                    \
	X(UNMATCHED_FREES, "ttmond_unmatched_frees_total", COUNTER, "", "", ALLOC,                                   \
	  "Frees of addresses whose allocation was not seen")                                                        \
	X(UNMATCHED_TRANSFERS, "ttmond_unmatched_transfers_total", COUNTER, "", "", TRANSFER,                        \
	  "Transfers whose host address lies in no known memory")                                                    \
	X(SUPERSEDED, "ttmond_superseded_allocations_total", COUNTER, "", "", ALLOC,                                 \
	  "Allocations whose address was given out again without a free having been seen")                           \
	X(FINDINGS, "ttmond_findings_total", COUNTER, "", "finding", CALLS,                                          \
	  "Faults found in traced programs, by "                                                                     \
	  "kind")                                                                                                    \
	X(TRACKED_ALLOCATIONS, "ttmond_tracked_allocations", GAUGE, "", "", HELD,                                    \
	  "Allocations that are there now, by all methods")                                                          \
	X(TRACED_PROCESSES, "ttmond_traced_processes", GAUGE, "", "", NONE, "Living processes in the history")       \
	X(HISTORY_EVENTS, "ttmond_history_events", GAUGE, "", "", NONE, "Events kept with allocations")              \
	X(HISTORY_DROPPED, "ttmond_history_dropped_events_total", COUNTER, "", "", NONE,                             \
	  "Events not kept with their allocation because of --max-events, though in all sums")                       \
	X(HISTORY_TRIMMED, "ttmond_history_trimmed_events_total", COUNTER, "", "", NONE,                             \
	  "Older events of allocations that have many, which are in sums and heat alone: no loss")                   \
	X(HISTORY_EVICTED, "ttmond_history_evicted_allocations_total", COUNTER, "", "", NONE,                        \
	  "Records of allocations that made room for others (--max-allocations)")                                    \
	X(HISTORY_CONDENSED, "ttmond_history_condensed_allocations_total", COUNTER, "", "", NONE,                    \
	  "Of these, live ones, whose bytes stayed in all sums")                                                     \
	X(HISTORY_FORGOTTEN, "ttmond_history_forgotten_allocations_total", COUNTER, "", "", NONE,                    \
	  "Of these, live ones that left the sums for want of room, so that the sums are lower bounds")              \
	X(QUOTA_PAID, "ttmond_quota_paid_total", COUNTER, "", "what,uid", NONE,                                      \
	  "Entries dropped of the user with the most when a table was full; users with the most drops")              \
	X(CHECKPOINTS, "ttmond_checkpoints_total", COUNTER, "", "", ALLOC, "Ends of periods that programs marked")   \
	X(CHECKPOINTS_DROPPED, "ttmond_checkpoints_dropped_total", COUNTER, "", "", NONE,                            \
	  "Checkpoints dropped because only the newest 65,536 are kept")                                             \
	X(HISTORY_INCOMPLETE, "ttmond_history_incomplete", GAUGE, "", "", NONE,                                      \
	  "1: a bound was reached, memory ran out, or a family of probes was not on for a time: the history is "     \
	  "not whole")                                                                                               \
	X(LIVE_ADVICE, "ttmond_live_advice_total", COUNTER, "", "advice", NONE, "Lines of live advice")              \
	X(LIVE_UNHEARD, "ttmond_live_advice_unheard_total", COUNTER, "", "", NONE,                                   \
	  "Allocations that live advice could not follow: no memory, or too many")                                   \
	X(LIVE_FOLLOWED, "ttmond_live_advice_allocations", GAUGE, "", "", NONE,                                      \
	  "Pinned allocations that may become cold, or did")                                                         \
	X(LIVE_FOLLOWERS, "ttmond_live_advice_followers", GAUGE, "", "", NONE, "Clients that follow live advice")    \
	X(LIVE_MISSED, "ttmond_live_advice_missed_lines_total", COUNTER, "", "", NONE,                               \
	  "Lines that were dropped before a client read them")

/* Where the time of synchronous calls went. */
#define TTMON_METRICS_CALLS(X)                                                                     \
	X(WAIT_CALLS, "ttmond_sync_calls_total", COUNTER, "", "call", WAIT,                        \
	  "Synchronous calls that returned, by what they do")                                      \
	X(WAIT_SECONDS, "ttmond_sync_call_seconds_total", COUNTER, "seconds", "call,part", WAIT,   \
	  "Their time: on a CPU, in a run queue, blocked, and of calls whose parts are not known") \
	X(WAIT_UNKNOWN, "ttmond_sync_calls_unknown_total", COUNTER, "", "call", WAIT,              \
	  "Of these calls, those whose parts are not known, and those of which only the entry was seen")

/* Processes, summed up by name, cgroup, unit, container or pod. */
#define TTMON_METRICS_GROUPS(X)                                                                                      \
	X(GROUP_PROCESSES, "ttmond_group_processes", GAUGE, "", "GROUP", NONE,                                       \
	  "Living processes; groups that never allocated, moved or launched anything have no series")                \
	X(GROUP_PINNED_BYTES, "ttmond_group_pinned_bytes", GAUGE, "bytes", "GROUP,vendor,method", VENDOR,            \
	  "Bytes of host memory pinned now")                                                                         \
	X(GROUP_PINNED_PAGES, "ttmond_group_pinned_pages", GAUGE, "", "GROUP", HELD,                                 \
	  "Pages of host memory pinned now, each counted once in its process")                                       \
	X(GROUP_PINNED_PEAK_BYTES, "ttmond_group_pinned_peak_bytes", GAUGE, "bytes", "GROUP", HELD,                  \
	  "Most bytes any one process ever had pinned, sums where several programs are in one series")               \
	X(GROUP_LIVE_BYTES, "ttmond_group_live_bytes", GAUGE, "bytes", "GROUP,vendor,method", VENDOR,                \
	  "Bytes of the allocations that are there now, on the host and on devices")                                 \
	X(GROUP_ALLOCATIONS, "ttmond_group_allocations_total", COUNTER, "", "GROUP,vendor,method", VENDOR,           \
	  "Allocations and registrations that succeeded")                                                            \
	X(GROUP_ALLOCATED_BYTES, "ttmond_group_allocated_bytes_total", COUNTER, "bytes", "GROUP,vendor,method",      \
	  VENDOR, "Bytes requested by them")                                                                         \
	X(GROUP_TRANSFERS, "ttmond_group_transfers_total", COUNTER, "", "GROUP,vendor,direction,host_memory",        \
	  TRANSFER, "Transfers")                                                                                     \
	X(GROUP_TRANSFER_BYTES, "ttmond_group_transfer_bytes_total", COUNTER, "bytes",                               \
	  "GROUP,vendor,direction,host_memory", TRANSFER, "Bytes they moved")                                        \
	X(GROUP_LAUNCHES, "ttmond_group_launches_total", COUNTER, "", "GROUP,vendor,kind", LAUNCH,                   \
	  "Launches of kernels and graphs; the last ones of a process show with its next, or when it ends")          \
	X(GROUP_WAIT_SECONDS, "ttmond_group_sync_call_seconds_total", COUNTER, "seconds", "GROUP,call,part", WAIT,   \
	  "Time of synchronous calls: on a CPU, in a run queue, blocked, and of calls whose parts are not known")    \
	X(GROUP_FAILED_CALLS, "ttmond_group_failed_calls_total", COUNTER, "", "GROUP", CALLS,                        \
	  "Calls that returned an error")                                                                            \
	X(GROUP_TT_BUSY, "ttmond_group_tt_device_busy_seconds_total", COUNTER, "seconds", "GROUP", WORK,             \
	  "Time Tenstorrent chips ran its programs, summed over chips, as reported by the profiler of tt-metal")     \
	X(GROUP_TT_BUSY_ERROR, "ttmond_group_tt_device_busy_error_seconds_total", COUNTER, "seconds", "GROUP", WORK, \
	  "By how much that time may be wrong in either direction, without runs of unknown error")                   \
	X(GROUP_TT_UNBOUNDED, "ttmond_group_tt_unbounded_runs_total", COUNTER, "", "GROUP", WORK,                    \
	  "Runs of programs whose error is not known")                                                               \
	X(GROUP_TT_MISSED, "ttmond_group_tt_missed_runs_total", COUNTER, "", "GROUP", WORK,                          \
	  "Records of runs that were dropped, or have no time: the busy time lacks them")                            \
	X(GROUP_CPU_SECONDS, "ttmond_group_cpu_seconds_total", COUNTER, "seconds", "GROUP", CPU, "CPU time")         \
	X(GROUP_SWITCHES, "ttmond_group_context_switches_total", COUNTER, "", "GROUP", CPU,                          \
	  "Times a thread left a CPU")                                                                               \
	X(GROUP_CYCLES, "ttmond_group_cpu_cycles_total", COUNTER, "", "GROUP", CPU,                                  \
	  "CPU cycles, where the host has counters")                                                                 \
	X(GROUP_INSTRUCTIONS, "ttmond_group_instructions_total", COUNTER, "", "GROUP", CPU,                          \
	  "Instructions, where the host has counters")                                                               \
	X(GROUP_LLC_MISSES, "ttmond_group_llc_misses_total", COUNTER, "", "GROUP", CPU,                              \
	  "Misses of the last-level cache, where the host has counters")                                             \
	X(GROUP_LLC_REFS, "ttmond_group_llc_references_total", COUNTER, "", "GROUP", CPU,                            \
	  "References to the last-level cache, where the host has counters")                                         \
	X(GROUP_LLC_BYTES, "ttmond_group_llc_occupancy_bytes", GAUGE, "bytes", "GROUP", NONE,                        \
	  "Last-level cache occupied, where the host measures it")                                                   \
	X(GROUP_MBM, "ttmond_group_memory_traffic_bytes_total", COUNTER, "bytes", "GROUP,scope", NONE,               \
	  "Bytes between last-level cache and memory, where the host measures them; local is a part of total")       \
	X(GROUPS, "ttmond_groups", GAUGE, "", "", NONE, "Groups (programs in cgroups) with figures")                 \
	X(GROUPS_REFUSED, "ttmond_groups_refused_total", COUNTER, "", "", NONE,                                      \
	  "Processes counted in the group without a name because there are too many groups")

/* Tenstorrent chips. */
#define TTMON_METRICS_TT(X)                                                                                         \
	X(TT_CHIP_INFO, "ttmond_tt_chip_info", INFO, "", "chip,arch,card,device,unique_id", NONE,                   \
	  "A Tenstorrent chip; chip is its number in the other metrics")                                            \
	X(TT_MEMORY, "ttmond_tt_memory_bytes", GAUGE, "bytes", "chip,type", TENSTORRENT,                            \
	  "Memory of the chip in "                                                                                  \
	  "use")                                                                                                    \
	X(TT_MEMORY_PEAK, "ttmond_tt_memory_peak_bytes", GAUGE, "bytes", "chip,type", TENSTORRENT,                  \
	  "Most memory of the chip ever in use")                                                                    \
	X(TT_CAPACITY, "ttmond_tt_memory_capacity_bytes", GAUGE, "bytes", "chip,type", NONE, "Memory the chip has") \
	X(TT_PUBLISHED, "ttmond_tt_published", GAUGE, "", "chip,state", NONE,                                       \
	  "1 for the state of the chip's file in /dev/shm")                                                         \
	X(TT_DISPATCHES, "ttmond_tt_dispatches_total", COUNTER, "", "chip,kind", WORK,                              \
	  "Dispatches; those to a mesh count for its first chip")                                                   \
	X(TT_BUSY, "ttmond_tt_device_busy_seconds_total", COUNTER, "seconds", "chip", WORK,                         \
	  "Time the chip ran programs, as reported by the profiler of tt-metal")                                    \
	X(TT_BUSY_ERROR, "ttmond_tt_device_busy_error_seconds_total", COUNTER, "seconds", "chip", WORK,             \
	  "By how much that time may be wrong in either direction, without runs of unknown error")                  \
	X(TT_UNBOUNDED, "ttmond_tt_unbounded_runs_total", COUNTER, "", "chip", WORK,                                \
	  "Runs of programs whose place in time has no error bound")                                                \
	X(TT_FOLLOWERS, "ttmond_tt_program_followers", GAUGE, "", "", NONE, "Clients that follow runs of programs") \
	X(TT_MISSED, "ttmond_tt_program_missed_runs_total", COUNTER, "", "", NONE,                                  \
	  "Runs of programs that clients missed because they read too late")                                        \
	X(TT_PROCESSES, "ttmond_tt_processes", GAUGE, "", "", TENSTORRENT,                                          \
	  "Living processes that use Tenstorrent chips")                                                            \
	X(TT_FLAGGED, "ttmond_tt_flagged_processes", GAUGE, "", "flag", TENSTORRENT,                                \
	  "Of these, those with something wrong with their figures")

/* The trace itself. */
#define TTMON_METRICS_TRACE(X)                                                                                        \
	X(EVENTS, "ttmond_events_total", COUNTER, "", "kind", NONE, "Events read from the rings")                     \
	X(FACTS, "ttmond_facts_total", COUNTER, "", "", NONE,                                                         \
	  "Records that the daemon itself made, of mappings, files and counters")                                     \
	X(EVENTS_LOST, "ttmond_events_lost_total", COUNTER, "", "reason", NONE, "Events that could not be sent")      \
	X(EVENTS_MALFORMED, "ttmond_events_malformed_total", COUNTER, "", "", NONE, "Records with invalid content")   \
	X(EVENTS_LATE, "ttmond_events_late_total", COUNTER, "", "", NONE,                                             \
	  "Events that came after their slot had closed: in all sums, in no slot")                                    \
	X(EVENTS_NO_ROOM, "ttmond_events_no_room_total", COUNTER, "", "", NONE,                                       \
	  "Events that found no room in their slot")                                                                  \
	X(NESTED_CALLS, "ttmond_nested_calls_total", COUNTER, "", "", NONE,                                           \
	  "Calls within a traced call, which are not counted again")                                                  \
	X(SLOTS_CLOSED, "ttmond_slots_closed_total", COUNTER, "", "", NONE,                                           \
	  "Slots of a millisecond that were "                                                                         \
	  "closed")                                                                                                   \
	X(SLOTS_PUBLISHED, "ttmond_slots_published_total", COUNTER, "", "", NONE,                                     \
	  "Slots written to shared memory or a file")                                                                 \
	X(SLOTS_DROPPED, "ttmond_slots_dropped_total", COUNTER, "", "", NONE,                                         \
	  "Slots for which there was no room in the queue")                                                           \
	X(SLOTS_FORCED, "ttmond_slots_forced_total", COUNTER, "", "", NONE,                                           \
	  "Slots closed before all their events were known to be there")                                              \
	X(WATERMARK_LAG, "ttmond_watermark_lag_seconds", GAUGE, "seconds", "", NONE, "Age of the newest closed slot") \
	X(WATERMARK_STALLS, "ttmond_watermark_stalls_total", COUNTER, "", "", NONE,                                   \
	  "Times the watermark advanced without waiting for late records")                                            \
	X(LONGEST_GAP, "ttmond_longest_drain_gap_seconds", GAUGE, "seconds", "", NONE,                                \
	  "Longest time between two drains of the rings")                                                             \
	X(LONGEST_CLOSE, "ttmond_longest_slot_close_seconds", GAUGE, "seconds", "", NONE,                             \
	  "Longest time from the end of a slot to its closing")                                                       \
	X(CPU_SECONDS, "ttmond_cpu_seconds_total", COUNTER, "seconds", "class", CPU,                                  \
	  "Time of all CPUs; missing is time without a record")                                                       \
	X(CPU_SLOTS, "ttmond_cpu_slots_total", COUNTER, "", "", CPU, "Slots with CPU time")                           \
	X(CPU_SLOTS_EXACT, "ttmond_cpu_slots_exact_total", COUNTER, "", "", CPU,                                      \
	  "Of these, those that add up to CPUs times a millisecond")                                                  \
	X(CPU_WORST, "ttmond_cpu_worst_slot_seconds", GAUGE, "seconds", "", CPU,                                      \
	  "Most time that is missing in a slot")                                                                      \
	X(CPU_LATE, "ttmond_cpu_late_seconds_total", COUNTER, "seconds", "", CPU,                                     \
	  "Time recorded too late for "                                                                               \
	  "its slot")                                                                                                 \
	X(CPUS, "ttmond_cpus", GAUGE, "", "", CPU, "CPUs online")                                                     \
	X(RINGS, "ttmond_rings", GAUGE, "", "", NONE, "Ring buffers, one for each CPU")                               \
	X(RING_BYTES, "ttmond_ring_bytes", GAUGE, "bytes", "", NONE, "Size of all ring buffers")                      \
	X(RING_USED, "ttmond_ring_used_bytes", GAUGE, "bytes", "", NONE, "Of this, in use now")                       \
	X(RECORDS, "ttmond_recording_records_total", COUNTER, "", "", NONE, "Records of --record")                    \
	X(RECORDS_DROPPED, "ttmond_recording_dropped_records_total", COUNTER, "", "", NONE,                           \
	  "Records that came faster than they could be written")                                                      \
	X(RECORDING_BYTES, "ttmond_recording_file_bytes", GAUGE, "bytes", "", NONE, "Size of the recording")          \
	X(RMID_INFO, "ttmond_rmid_info", INFO, "", "backend", NONE, "Where resource monitoring ids come from")        \
	X(RMIDS, "ttmond_rmids", GAUGE, "", "", NONE, "Resource monitoring ids there are")                            \
	X(RMIDS_IN_USE, "ttmond_rmids_in_use", GAUGE, "", "", NONE, "Of these, given to processes")                   \
	X(RMIDS_EXHAUSTED, "ttmond_rmids_exhausted_total", COUNTER, "", "", NONE, "Times that no id was free")        \
	X(RMID_READINGS, "ttmond_rmid_readings_total", COUNTER, "", "result", NONE,                                   \
	  "Readings of resource "                                                                                     \
	  "monitoring ids")                                                                                           \
	X(RMID_ODD, "ttmond_rmid_odd_total", COUNTER, "", "what", NONE,                                               \
	  "Errors of the source of these ids, by "                                                                    \
	  "kind")                                                                                                     \
	X(MBM, "ttmond_memory_traffic_bytes_total", COUNTER, "bytes", "scope", NONE,                                  \
	  "Bytes between last-level cache and memory, all read; local is a part of total")

/* Probes, programs and their cost. */
#define TTMON_METRICS_PROBES(X)                                                                                     \
	X(OBJECTS, "ttmond_objects", GAUGE, "", "object", NONE, "Files with functions to be probed")                \
	X(OBJECTS_FAILED, "ttmond_objects_failed", GAUGE, "", "object", NONE,                                       \
	  "Of these, those that could not be probed")                                                               \
	X(PROBES, "ttmond_probes", GAUGE, "", "program,state", NONE, "Probes in those files")                       \
	X(PROBES_MISSING, "ttmond_probes_missing", GAUGE, "", "object", NONE, "Functions missing from these files") \
	X(FILES_UNREAD, "ttmond_files_unread", GAUGE, "", "", NONE,                                                 \
	  "Mapped files that could not be read, or not in time: their content is unknown")                          \
	X(HELPERS, "ttmond_helpers", GAUGE, "", "state", NONE, "Processes that read files, by whether they hang")   \
	X(HELPERS_QUEUED, "ttmond_helpers_queued", GAUGE, "", "", NONE, "Files and processes that wait for them")   \
	X(HELPERS_GIVEN_UP, "ttmond_helpers_given_up_total", COUNTER, "", "", NONE,                                 \
	  "Files and processes that took too long to be read")                                                      \
	X(HELPERS_CPU, "ttmond_helpers_cpu_seconds_total", COUNTER, "seconds", "", NONE,                            \
	  "CPU time of these "                                                                                      \
	  "processes")                                                                                              \
	X(PROGRAM_ATTACHED, "ttmond_program_attached", GAUGE, "", "program,type", NONE,                             \
	  "1: the BPF program is attached; a uprobe program: to at least one object")                               \
	X(PROGRAM_RUNS, "ttmond_program_runs_total", COUNTER, "", "program", NONE,                                  \
	  "Times a BPF program ran, where the kernel counts")                                                       \
	X(PROGRAM_SECONDS, "ttmond_program_run_seconds_total", COUNTER, "seconds", "program", NONE,                 \
	  "Time it ran, where the kernel counts")                                                                   \
	X(FAMILY_STATE, "ttmond_family_state", GAUGE, "", "family,state", NONE,                                     \
	  "1 for the state of a family of probes")                                                                  \
	X(KNOWN, "ttmond_known", GAUGE, "", "family", NONE,                                                         \
	  "Time, in seconds since the epoch, from which all of the family's events are seen; absent while they "    \
	  "are not")                                                                                                \
	X(FAMILY_HITS, "ttmond_family_hits_total", COUNTER, "", "family", NONE, "Hits of its probes")               \
	X(FAMILY_COUNTED, "ttmond_family_counted_hits_total", COUNTER, "", "family", NONE,                          \
	  "Of these, hits that were only counted")                                                                  \
	X(FAMILY_REDUCED, "ttmond_family_reduced_total", COUNTER, "", "family", NONE,                               \
	  "Times it was reduced to counting by the budget")                                                         \
	X(FAMILY_OVERHEAD, "ttmond_family_overhead_ratio", GAUGE, "ratio", "family", NONE,                          \
	  "Its share of the CPU time of the host in the last second")                                               \
	X(OVERHEAD, "ttmond_overhead_ratio", GAUGE, "ratio", "part", NONE,                                          \
	  "Share of the CPU time of the host that the daemon and the BPF programs took in the last second")         \
	X(BUDGET, "ttmond_overhead_budget_ratio", GAUGE, "ratio", "", NONE, "Limit set by --max-overhead")          \
	X(BUDGET_PROCESSES, "ttmond_reduced_processes", GAUGE, "", "", NONE,                                        \
	  "Families of single processes that the budget has only counted now")                                      \
	X(BUDGET_USERS, "ttmond_reduced_users", GAUGE, "", "", NONE,                                                \
	  "Families of single users that the budget has only counted now")                                          \
	X(OVER_BUDGET, "ttmond_over_budget", GAUGE, "", "", NONE,                                                   \
	  "1: over budget, and nothing that could be reduced would help")

/* The daemon. Standard names come without our prefix. */
#define TTMON_METRICS_SELF(X)                                                                                        \
	X(BUILD_INFO, "ttmond_build_info", INFO, "", "version", NONE, "The daemon")                                  \
	X(HOST_INFO, "ttmond_host_info", INFO, "", "hostname,kernel", NONE, "The host")                              \
	X(DEGRADED, "ttmond_degraded", GAUGE, "", "part", NONE,                                                      \
	  "1 for each part that was requested and is missing: /v1/status says why")                                  \
	X(HTTP_REQUESTS, "ttmond_http_requests_total", COUNTER, "", "", NONE, "HTTP requests answered")              \
	X(HTTP_ERRORS, "ttmond_http_errors_total", COUNTER, "", "", NONE, "Of these, with a status of 400 and more") \
	X(HTTP_CLOSED, "ttmond_http_closed_connections_total", COUNTER, "", "reason", NONE,                          \
	  "Connections closed because they were too slow, or to make room")                                          \
	X(HTTP_LIMITED, "ttmond_http_limited_requests_total", COUNTER, "", "how", NONE,                              \
	  "Requests over TCP of clients above their rate: delayed, or refused")                                      \
	X(HTTP_CPU, "ttmond_http_cpu_seconds_total", COUNTER, "seconds", "", NONE,                                   \
	  "CPU time spent on clients, which is not part of the overhead that --max-overhead limits")                 \
	X(HTTP_BYTES, "ttmond_http_reply_bytes_total", COUNTER, "bytes", "", NONE, "Bytes of replies")               \
	X(HTTP_CONNECTIONS, "ttmond_http_connections", GAUGE, "", "", NONE, "Connections now")                       \
	X(SELF_CPU, "process_cpu_seconds_total", COUNTER, "seconds", "", NONE, "CPU time of the daemon")             \
	X(SELF_RSS, "process_resident_memory_bytes", GAUGE, "bytes", "", NONE, "Resident memory of the daemon")      \
	X(SELF_VSZ, "process_virtual_memory_bytes", GAUGE, "bytes", "", NONE, "Address space of the daemon")         \
	X(SELF_FDS, "process_open_fds", GAUGE, "", "", NONE, "Open file descriptors of the daemon")                  \
	X(SELF_MAX_FDS, "process_max_fds", GAUGE, "", "", NONE, "Largest number of file descriptors of the daemon")  \
	X(SELF_START, "process_start_time_seconds", GAUGE, "seconds", "", NONE, "When it was started, since the epoch")

#define TTMON_METRICS_TABLE(X)  \
	TTMON_METRICS_MEMORY(X) \
	TTMON_METRICS_CALLS(X)  \
	TTMON_METRICS_GROUPS(X) TTMON_METRICS_TT(X) TTMON_METRICS_TRACE(X) TTMON_METRICS_PROBES(X) TTMON_METRICS_SELF(X)

enum ttmon_metric {
#define X(ID, name, type, unit, labels, need, help) TTMON_METRIC_##ID,
	TTMON_METRICS_TABLE(X)
#undef X
		TTMON_METRICS_MAX
};

#endif
