/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * metrics_table.h: every metric there is. What is served, ttmond --help=metrics and ttmond-metrics(7) come from here.
 *
 * X(ID, name, type, unit, labels, help). The label GROUP is called what --group-by says. Names and labels are what others' dashboards and
 * alerts are made of: they are added, not changed. A new one: a row here, a TTMON_METRIC_ID where its figure is written
 * (tests/e2e/t_metrics.py misses it otherwise).
 */
#ifndef TTMON_METRICS_TABLE_H
#define TTMON_METRICS_TABLE_H

/* Memory and transfers of the whole host. */
#define TTMON_METRICS_MEMORY(X)                                                                                            \
	X(ALLOCATIONS, "ttmond_allocations_total", COUNTER, "", "vendor,method",                                           \
	  "Allocations and registrations that succeeded")                                                                  \
	X(ALLOCATED_BYTES, "ttmond_allocated_bytes_total", COUNTER, "bytes", "vendor,method", "Bytes they asked for")      \
	X(FREES, "ttmond_frees_total", COUNTER, "", "vendor,method",                                                       \
	  "Allocations that ended, by a call or with their process")                                                       \
	X(LIVE_ALLOCATIONS, "ttmond_live_allocations", GAUGE, "", "vendor,method", "Allocations that are there now")       \
	X(LIVE_BYTES, "ttmond_live_bytes", GAUGE, "bytes", "vendor,method",                                                \
	  "Bytes of the allocations that are there now, on the host and on devices")                                       \
	X(PINNED_BYTES, "ttmond_pinned_bytes", GAUGE, "bytes", "vendor,method", "Bytes of host memory pinned now")         \
	X(PINNED_PAGES, "ttmond_pinned_pages", GAUGE, "", "vendor,method",                                                 \
	  "Pages of host memory pinned now, those pinned twice counted twice")                                             \
	X(PAGES_PINNED, "ttmond_pages_pinned_total", COUNTER, "", "vendor,method",                                         \
	  "Pages of host memory that were pinned, those pinned again counted again")                                       \
	X(PINNED_PEAK_BYTES, "ttmond_pinned_peak_bytes", GAUGE, "bytes", "vendor,method",                                  \
	  "Most bytes of host memory ever pinned at a time")                                                               \
	X(PINNED_PEAK_PAGES, "ttmond_pinned_peak_pages", GAUGE, "", "vendor,method",                                       \
	  "Most pages of host memory ever pinned at a time")                                                               \
	X(HOST_PINNED_BYTES, "ttmond_host_pinned_bytes", GAUGE, "bytes", "",                                               \
	  "Bytes of host memory pinned now, by all methods")                                                               \
	X(HOST_PINNED_PEAK_BYTES, "ttmond_host_pinned_peak_bytes", GAUGE, "bytes", "",                                     \
	  "Most bytes of host memory ever pinned at a time, by all methods")                                               \
	X(HOST_PINNED_PAGES, "ttmond_host_pinned_pages", GAUGE, "", "",                                                    \
	  "Pages of host memory pinned now, each counted once in its process")                                             \
	X(HOST_PINNED_PEAK_PAGES, "ttmond_host_pinned_peak_pages", GAUGE, "", "",                                          \
	  "Most pages of host memory ever pinned at a time, each counted once in its process")                             \
	X(KERNEL_PAGES_PINNED, "ttmond_kernel_pages_pinned_total", COUNTER, "", "",                                        \
	  "Pages that drivers pinned with pin_user_pages() since boot, by the kernel (nr_foll_pin_acquired)")              \
	X(KERNEL_PAGES_UNPINNED, "ttmond_kernel_pages_unpinned_total", COUNTER, "", "",                                    \
	  "Pages of these that were let go (nr_foll_pin_released)")                                                        \
	X(PINNERS_VM_PIN, "ttmond_pinning_processes_vm_pin_bytes", GAUGE, "bytes", "",                                     \
	  "VmPin of the 64 processes that pin most: io_uring, VFIO and RDMA book there, CUDA does not")                    \
	X(PINNERS_SHMEM, "ttmond_pinning_processes_rss_shmem_bytes", GAUGE, "bytes", "",                                   \
	  "RssShmem of the same processes, where the driver's pinned allocations show")                                    \
	X(MEMTRACE_CHANNELS, "ttmond_memtrace_channels", GAUGE, "", "",                                                    \
	  "CUDA contexts whose kernels' memory accesses are read now (--memtrace)")                                        \
	X(MEMTRACE_RECORDS, "ttmond_memtrace_records_total", COUNTER, "", "",                                              \
	  "Memory accesses of warps that were read")                                                                       \
	X(MEMTRACE_DROPPED, "ttmond_memtrace_dropped_total", COUNTER, "", "",                                              \
	  "Memory accesses that a GPU had no room for")                                                                    \
	X(NVIDIA_CALLS, "ttmond_nvidia_driver_calls_total", COUNTER, "", "function",                                       \
	  "Calls of functions of the module nvidia that pin, allocate and map host memory (--nvidia-pins)")                \
	X(NVIDIA_RETURNS, "ttmond_nvidia_driver_returns_total", COUNTER, "", "function",                                   \
	  "Of these, those whose return was seen; the others still run, or there were too many at a time")                 \
	X(NVIDIA_FAILURES, "ttmond_nvidia_driver_failures_total", COUNTER, "", "function",                                 \
	  "Of these, those that failed")                                                                                   \
	X(NVIDIA_PAGES, "ttmond_nvidia_driver_pages_total", COUNTER, "", "function",                                       \
	  "Pages of those that succeeded, by functions that count in pages")                                               \
	X(NVIDIA_BYTES, "ttmond_nvidia_driver_bytes_total", COUNTER, "bytes", "function",                                  \
	  "Bytes of those that succeeded, by functions that count in bytes")                                               \
	X(PIN_SECONDS, "ttmond_pin_seconds", HISTOGRAM, "seconds", "vendor,method",                                        \
	  "Duration of the calls that allocated or registered pinned memory")                                              \
	X(UNPIN_SECONDS, "ttmond_unpin_seconds", HISTOGRAM, "seconds", "vendor,method",                                    \
	  "Duration of the calls that freed or unregistered pinned memory")                                                \
	X(PIN_UNOBSERVED, "ttmond_pin_unobserved_total", COUNTER, "", "vendor,method,call",                                \
	  "Calls of pin and unpin whose duration was not observed, which are in no histogram")                             \
	X(CALL_FAILURES, "ttmond_call_failures_total", COUNTER, "", "function,error",                                      \
	  "Calls that returned an error, by function and name of the error, or its number")                                \
	X(TRANSFERS, "ttmond_transfers_total", COUNTER, "", "vendor,direction,host_memory",                                \
	  "Transfers, by direction and kind of the host memory (none between devices)")                                    \
	X(TRANSFER_BYTES, "ttmond_transfer_bytes_total", COUNTER, "bytes", "vendor,direction,host_memory",                 \
	  "Bytes they moved")                                                                                              \
	X(LAUNCHES, "ttmond_launches_total", COUNTER, "", "vendor,kind",                                                   \
	  "Launches of kernels and graphs; the last ones of a process show with its next, or when it ends")                \
	X(GRAPH_COPIES, "ttmond_graph_copies_total", COUNTER, "", "vendor",                                                \
	  "Copy nodes added to graphs, whose transfers are not seen")                                                      \
	X(CAPTURED_COPIES, "ttmond_captured_copies_total", COUNTER, "", "vendor",                                          \
	  "Copies into a stream that was being captured, which are no transfers")                                          \
	X(UNMATCHED_FREES, "ttmond_unmatched_frees_total", COUNTER, "", "",                                                \
	  "Frees of addresses that nobody was seen to allocate")                                                           \
	X(UNMATCHED_TRANSFERS, "ttmond_unmatched_transfers_total", COUNTER, "", "",                                        \
	  "Transfers whose host address lies in nothing known")                                                            \
	X(SUPERSEDED, "ttmond_superseded_allocations_total", COUNTER, "", "",                                              \
	  "Allocations whose address was given out again without a free having been seen")                                 \
	X(FINDINGS, "ttmond_findings_total", COUNTER, "", "finding", "Faults found in traced programs")                    \
	X(TRACKED_ALLOCATIONS, "ttmond_tracked_allocations", GAUGE, "", "",                                                \
	  "Allocations that are there now, by all methods")                                                                \
	X(TRACED_PROCESSES, "ttmond_traced_processes", GAUGE, "", "", "Living processes in the history")                   \
	X(HISTORY_EVENTS, "ttmond_history_events", GAUGE, "", "", "Events kept with allocations")                          \
	X(HISTORY_DROPPED, "ttmond_history_dropped_events_total", COUNTER, "", "",                                         \
	  "Events not kept with their allocation because of --max-events, though in all sums")                             \
	X(HISTORY_EVICTED, "ttmond_history_evicted_allocations_total", COUNTER, "", "",                                    \
	  "Allocations forgotten because of --max-allocations")                                                            \
	X(CHECKPOINTS, "ttmond_checkpoints_total", COUNTER, "", "", "Ends of periods that programs told")                  \
	X(CHECKPOINTS_DROPPED, "ttmond_checkpoints_dropped_total", COUNTER, "", "",                                        \
	  "Checkpoints that are no longer kept, for the newest 65,536 are")                                                \
	X(HISTORY_INCOMPLETE, "ttmond_history_incomplete", GAUGE, "", "",                                                  \
	  "1: a bound was reached, memory ran out, or a family of probes was not on for a time: the history is not whole") \
	X(LIVE_ADVICE, "ttmond_live_advice_total", COUNTER, "", "advice", "Lines of live advice")                          \
	X(LIVE_UNHEARD, "ttmond_live_advice_unheard_total", COUNTER, "", "",                                               \
	  "Allocations that live advice could not go on with: no memory, or too many")                                     \
	X(LIVE_FOLLOWED, "ttmond_live_advice_allocations", GAUGE, "", "",                                                  \
	  "Pinned allocations that are watched for growing cold, or did")                                                  \
	X(LIVE_FOLLOWERS, "ttmond_live_advice_followers", GAUGE, "", "", "Clients that follow live advice")                \
	X(LIVE_MISSED, "ttmond_live_advice_missed_lines_total", COUNTER, "", "",                                           \
	  "Lines that were no longer kept when a client came to them")

/* Processes, summed up by name, cgroup, unit, container or pod. */
#define TTMON_METRICS_GROUPS(X)                                                                                        \
	X(GROUP_PROCESSES, "ttmond_group_processes", GAUGE, "", "GROUP",                                               \
	  "Living processes; groups that never allocated, moved or launched anything have no series")                  \
	X(GROUP_PINNED_BYTES, "ttmond_group_pinned_bytes", GAUGE, "bytes", "GROUP,vendor,method",                      \
	  "Bytes of host memory pinned now")                                                                           \
	X(GROUP_PINNED_PAGES, "ttmond_group_pinned_pages", GAUGE, "", "GROUP",                                         \
	  "Pages of host memory pinned now, each counted once in its process")                                         \
	X(GROUP_PINNED_PEAK_BYTES, "ttmond_group_pinned_peak_bytes", GAUGE, "bytes", "GROUP",                          \
	  "Most bytes any one process ever had pinned, sums where several programs are in one series")                 \
	X(GROUP_LIVE_BYTES, "ttmond_group_live_bytes", GAUGE, "bytes", "GROUP,vendor,method",                          \
	  "Bytes of the allocations that are there now, on the host and on devices")                                   \
	X(GROUP_ALLOCATIONS, "ttmond_group_allocations_total", COUNTER, "", "GROUP,vendor,method",                     \
	  "Allocations and registrations that succeeded")                                                              \
	X(GROUP_ALLOCATED_BYTES, "ttmond_group_allocated_bytes_total", COUNTER, "bytes", "GROUP,vendor,method",        \
	  "Bytes they asked for")                                                                                      \
	X(GROUP_TRANSFERS, "ttmond_group_transfers_total", COUNTER, "", "GROUP,vendor,direction,host_memory",          \
	  "Transfers")                                                                                                 \
	X(GROUP_TRANSFER_BYTES, "ttmond_group_transfer_bytes_total", COUNTER, "bytes",                                 \
	  "GROUP,vendor,direction,host_memory", "Bytes they moved")                                                    \
	X(GROUP_LAUNCHES, "ttmond_group_launches_total", COUNTER, "", "GROUP,vendor,kind",                             \
	  "Launches of kernels and graphs; the last ones of a process show with its next, or when it ends")            \
	X(GROUP_FAILED_CALLS, "ttmond_group_failed_calls_total", COUNTER, "", "GROUP", "Calls that returned an error") \
	X(GROUP_CPU_SECONDS, "ttmond_group_cpu_seconds_total", COUNTER, "seconds", "GROUP", "CPU time")                \
	X(GROUP_SWITCHES, "ttmond_group_context_switches_total", COUNTER, "", "GROUP", "Times a thread left a CPU")    \
	X(GROUP_CYCLES, "ttmond_group_cpu_cycles_total", COUNTER, "", "GROUP",                                         \
	  "CPU cycles, where the host has counters")                                                                   \
	X(GROUP_INSTRUCTIONS, "ttmond_group_instructions_total", COUNTER, "", "GROUP",                                 \
	  "Instructions, where the host has counters")                                                                 \
	X(GROUP_LLC_MISSES, "ttmond_group_llc_misses_total", COUNTER, "", "GROUP",                                     \
	  "Misses of the last-level cache, where the host has counters")                                               \
	X(GROUP_LLC_REFS, "ttmond_group_llc_references_total", COUNTER, "", "GROUP",                                   \
	  "References to the last-level cache, where the host has counters")                                           \
	X(GROUP_LLC_BYTES, "ttmond_group_llc_occupancy_bytes", GAUGE, "bytes", "GROUP",                                \
	  "Last-level cache occupied, where the host measures it")                                                     \
	X(GROUP_MBM, "ttmond_group_memory_traffic_bytes_total", COUNTER, "bytes", "GROUP,scope",                       \
	  "Bytes between last-level cache and memory, where the host measures them; local is a part of total")         \
	X(GROUPS, "ttmond_groups", GAUGE, "", "", "Programs in cgroups that figures are kept of")                      \
	X(GROUPS_REFUSED, "ttmond_groups_refused_total", COUNTER, "", "",                                              \
	  "Processes counted without a name because there are too many of those")

/* Tenstorrent chips. */
#define TTMON_METRICS_TT(X)                                                                                   \
	X(TT_CHIP_INFO, "ttmond_tt_chip_info", INFO, "", "chip,arch,card,device,unique_id",                   \
	  "A Tenstorrent chip; chip is the number that the other metrics know it by")                         \
	X(TT_MEMORY, "ttmond_tt_memory_bytes", GAUGE, "bytes", "chip,type", "Memory of the chip in use")      \
	X(TT_MEMORY_PEAK, "ttmond_tt_memory_peak_bytes", GAUGE, "bytes", "chip,type",                         \
	  "Most memory of the chip ever in use")                                                              \
	X(TT_CAPACITY, "ttmond_tt_memory_capacity_bytes", GAUGE, "bytes", "chip,type", "Memory the chip has") \
	X(TT_PUBLISHED, "ttmond_tt_published", GAUGE, "", "chip,state",                                       \
	  "1 for the state of the chip's file in /dev/shm")                                                   \
	X(TT_DISPATCHES, "ttmond_tt_dispatches_total", COUNTER, "", "chip,kind",                              \
	  "Dispatches; those to a mesh count for its first chip")                                             \
	X(TT_BUSY, "ttmond_tt_device_busy_seconds_total", COUNTER, "seconds", "chip",                         \
	  "Time the chip ran programs, as the profiler of tt-metal tells it")                                 \
	X(TT_PROCESSES, "ttmond_tt_processes", GAUGE, "", "", "Living processes that use Tenstorrent chips")  \
	X(TT_FLAGGED, "ttmond_tt_flagged_processes", GAUGE, "", "flag",                                       \
	  "Of these, those with something wrong with their figures")

/* The trace itself. */
#define TTMON_METRICS_TRACE(X)                                                                                       \
	X(EVENTS, "ttmond_events_total", COUNTER, "", "kind", "Events that came out of the rings")                   \
	X(FACTS, "ttmond_facts_total", COUNTER, "", "",                                                              \
	  "Records that the daemon itself made, of mappings, files and counters")                                    \
	X(EVENTS_LOST, "ttmond_events_lost_total", COUNTER, "", "reason", "Events that could not be sent")           \
	X(EVENTS_MALFORMED, "ttmond_events_malformed_total", COUNTER, "", "", "Records that made no sense")          \
	X(EVENTS_LATE, "ttmond_events_late_total", COUNTER, "", "",                                                  \
	  "Events that came after their slot had closed: in all sums, in no slot")                                   \
	X(EVENTS_NO_ROOM, "ttmond_events_no_room_total", COUNTER, "", "", "Events that found no room in their slot") \
	X(NESTED_CALLS, "ttmond_nested_calls_total", COUNTER, "", "",                                                \
	  "Calls within a traced call, which are not counted again")                                                 \
	X(SLOTS_CLOSED, "ttmond_slots_closed_total", COUNTER, "", "", "Slots of a millisecond that were closed")     \
	X(SLOTS_PUBLISHED, "ttmond_slots_published_total", COUNTER, "", "", "Slots handed on")                       \
	X(SLOTS_DROPPED, "ttmond_slots_dropped_total", COUNTER, "", "",                                              \
	  "Slots for which there was no room in the queue")                                                          \
	X(SLOTS_FORCED, "ttmond_slots_forced_total", COUNTER, "", "",                                                \
	  "Slots closed before all their events were known to be there")                                             \
	X(WATERMARK_LAG, "ttmond_watermark_lag_seconds", GAUGE, "seconds", "",                                       \
	  "How far the newest closed time is behind")                                                                \
	X(WATERMARK_STALLS, "ttmond_watermark_stalls_total", COUNTER, "", "",                                        \
	  "Times that it went on without something that was not there in time")                                      \
	X(LONGEST_GAP, "ttmond_longest_drain_gap_seconds", GAUGE, "seconds", "",                                     \
	  "Longest time between two drains of the rings")                                                            \
	X(LONGEST_CLOSE, "ttmond_longest_slot_close_seconds", GAUGE, "seconds", "",                                  \
	  "Longest time from the end of a slot to its closing")                                                      \
	X(CPU_SECONDS, "ttmond_cpu_seconds_total", COUNTER, "seconds", "class",                                      \
	  "Time of all CPUs; missing is what nobody told")                                                           \
	X(CPU_SLOTS, "ttmond_cpu_slots_total", COUNTER, "", "", "Slots with CPU time")                               \
	X(CPU_SLOTS_EXACT, "ttmond_cpu_slots_exact_total", COUNTER, "", "",                                          \
	  "Of these, those that add up to CPUs times a millisecond")                                                 \
	X(CPU_WORST, "ttmond_cpu_worst_slot_seconds", GAUGE, "seconds", "", "Most time that is missing in a slot")   \
	X(CPU_LATE, "ttmond_cpu_late_seconds_total", COUNTER, "seconds", "", "Time told too late for its slot")      \
	X(CPUS, "ttmond_cpus", GAUGE, "", "", "CPUs online")                                                         \
	X(RINGS, "ttmond_rings", GAUGE, "", "", "Ring buffers, one for each CPU")                                    \
	X(RING_BYTES, "ttmond_ring_bytes", GAUGE, "bytes", "", "Size of all ring buffers")                           \
	X(RING_USED, "ttmond_ring_used_bytes", GAUGE, "bytes", "", "Of this, in use now")                            \
	X(RECORDS, "ttmond_recording_records_total", COUNTER, "", "", "Records of --record")                         \
	X(RECORDS_DROPPED, "ttmond_recording_dropped_records_total", COUNTER, "", "",                                \
	  "Records that came faster than they could be written")                                                     \
	X(RECORDING_BYTES, "ttmond_recording_file_bytes", GAUGE, "bytes", "", "Size of the recording")               \
	X(RMID_INFO, "ttmond_rmid_info", INFO, "", "backend", "Where resource monitoring ids come from")             \
	X(RMIDS, "ttmond_rmids", GAUGE, "", "", "Resource monitoring ids there are")                                 \
	X(RMIDS_IN_USE, "ttmond_rmids_in_use", GAUGE, "", "", "Of these, given to processes")                        \
	X(RMIDS_EXHAUSTED, "ttmond_rmids_exhausted_total", COUNTER, "", "", "Times that none was free")              \
	X(RMID_READINGS, "ttmond_rmid_readings_total", COUNTER, "", "result", "Readings of them")                    \
	X(RMID_ODD, "ttmond_rmid_odd_total", COUNTER, "", "what", "What must not happen to them, and did")           \
	X(MBM, "ttmond_memory_traffic_bytes_total", COUNTER, "bytes", "scope",                                       \
	  "Bytes between last-level cache and memory, all read; local is a part of total")

/* Probes, programs, what they cost. */
#define TTMON_METRICS_PROBES(X)                                                                                     \
	X(OBJECTS, "ttmond_objects", GAUGE, "", "object", "Files with functions to be probed")                      \
	X(OBJECTS_FAILED, "ttmond_objects_failed", GAUGE, "", "object", "Of these, those that could not be probed") \
	X(PROBES, "ttmond_probes", GAUGE, "", "program,state", "Probes in those files")                             \
	X(PROBES_MISSING, "ttmond_probes_missing", GAUGE, "", "object",                                             \
	  "Functions that those files ought to have and have not")                                                  \
	X(PROGRAM_ATTACHED, "ttmond_program_attached", GAUGE, "", "program,type",                                   \
	  "1: the BPF program is attached; uprobe programs: to an object at least")                                 \
	X(PROGRAM_RUNS, "ttmond_program_runs_total", COUNTER, "", "program",                                        \
	  "Times a BPF program ran, where the kernel counts")                                                       \
	X(PROGRAM_SECONDS, "ttmond_program_run_seconds_total", COUNTER, "seconds", "program",                       \
	  "Time it ran, where the kernel counts")                                                                   \
	X(FAMILY_STATE, "ttmond_family_state", GAUGE, "", "family,state", "1 for the state of a family of probes")  \
	X(FAMILY_HITS, "ttmond_family_hits_total", COUNTER, "", "family", "Hits of its probes")                     \
	X(FAMILY_COUNTED, "ttmond_family_counted_hits_total", COUNTER, "", "family",                                \
	  "Of these, hits that were only counted")                                                                  \
	X(FAMILY_REDUCED, "ttmond_family_reduced_total", COUNTER, "", "family",                                     \
	  "Times it was reduced to counting by the budget")                                                         \
	X(FAMILY_OVERHEAD, "ttmond_family_overhead_ratio", GAUGE, "ratio", "family",                                \
	  "Its share of the CPU time of the host in the last second")                                               \
	X(OVERHEAD, "ttmond_overhead_ratio", GAUGE, "ratio", "part",                                                \
	  "Share of the CPU time of the host that the daemon and the BPF programs took in the last second")         \
	X(BUDGET, "ttmond_overhead_budget_ratio", GAUGE, "ratio", "", "What --max-overhead allows")                 \
	X(OVER_BUDGET, "ttmond_over_budget", GAUGE, "", "", "1: over budget, and nothing is left that could be reduced")

/* The daemon. Standard names come without our prefix. */
#define TTMON_METRICS_SELF(X)                                                                                  \
	X(BUILD_INFO, "ttmond_build_info", INFO, "", "version", "The daemon")                                  \
	X(HOST_INFO, "ttmond_host_info", INFO, "", "hostname,kernel", "The host")                              \
	X(HTTP_REQUESTS, "ttmond_http_requests_total", COUNTER, "", "", "HTTP requests answered")              \
	X(HTTP_ERRORS, "ttmond_http_errors_total", COUNTER, "", "", "Of these, with a status of 400 and more") \
	X(HTTP_CLOSED, "ttmond_http_closed_connections_total", COUNTER, "", "reason",                          \
	  "Connections closed because they were too slow, or to make room")                                    \
	X(HTTP_BYTES, "ttmond_http_reply_bytes_total", COUNTER, "bytes", "", "Bytes of replies")               \
	X(HTTP_CONNECTIONS, "ttmond_http_connections", GAUGE, "", "", "Connections now")                       \
	X(SELF_CPU, "process_cpu_seconds_total", COUNTER, "seconds", "", "CPU time of the daemon")             \
	X(SELF_RSS, "process_resident_memory_bytes", GAUGE, "bytes", "", "Resident memory of the daemon")      \
	X(SELF_VSZ, "process_virtual_memory_bytes", GAUGE, "bytes", "", "Address space of the daemon")         \
	X(SELF_FDS, "process_open_fds", GAUGE, "", "", "Open file descriptors of the daemon")                  \
	X(SELF_MAX_FDS, "process_max_fds", GAUGE, "", "", "File descriptors it may have")                      \
	X(SELF_START, "process_start_time_seconds", GAUGE, "seconds", "", "When it was started, since the epoch")

#define TTMON_METRICS_TABLE(X)  \
	TTMON_METRICS_MEMORY(X) \
	TTMON_METRICS_GROUPS(X) TTMON_METRICS_TT(X) TTMON_METRICS_TRACE(X) TTMON_METRICS_PROBES(X) TTMON_METRICS_SELF(X)

enum ttmon_metric {
#define X(ID, name, type, unit, labels, help) TTMON_METRIC_##ID,
	TTMON_METRICS_TABLE(X)
#undef X
		TTMON_METRICS_MAX
};

#endif
