/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * ttmon_rmid_trace.h: the tracepoints. Names, order of arguments and of fields are the predecessor's:
 * see PROTOCOL.md.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM memory_collector

#if !defined(TTMON_RMID_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define TTMON_RMID_TRACE_H

#include <linux/sched.h>
#include <linux/tracepoint.h>
#include <linux/types.h>

TRACE_EVENT(measure_perf_counters, TP_PROTO(bool is_context_switch, u32 rmid), TP_ARGS(is_context_switch, rmid),
	    TP_STRUCT__entry(__field(bool, is_context_switch) __field(u32, rmid)),
	    TP_fast_assign(__entry->is_context_switch = is_context_switch; __entry->rmid = rmid;),
	    TP_printk("is_context_switch=%d rmid=%u", __entry->is_context_switch, __entry->rmid));

TRACE_EVENT(
	rdt_sample,
	TP_PROTO(u32 rmid, u64 timestamp, u64 llc_occupancy_val, int llc_occupancy_err, u64 mbm_total_val,
		 int mbm_total_err, u64 mbm_local_val, int mbm_local_err, u32 domain),
	TP_ARGS(rmid, timestamp, llc_occupancy_val, llc_occupancy_err, mbm_total_val, mbm_total_err, mbm_local_val,
		mbm_local_err, domain),
	TP_STRUCT__entry(__field(u32, rmid) __field(u64, timestamp) __field(u64, llc_occupancy_val)
				 __field(int, llc_occupancy_err) __field(u64, mbm_total_val) __field(int, mbm_total_err)
					 __field(u64, mbm_local_val) __field(int, mbm_local_err) __field(u32, domain)),
	TP_fast_assign(__entry->rmid = rmid; __entry->timestamp = timestamp;
		       __entry->llc_occupancy_val = llc_occupancy_val; __entry->llc_occupancy_err = llc_occupancy_err;
		       __entry->mbm_total_val = mbm_total_val; __entry->mbm_total_err = mbm_total_err;
		       __entry->mbm_local_val = mbm_local_val; __entry->mbm_local_err = mbm_local_err;
		       __entry->domain = domain;),
	TP_printk("rmid=%u timestamp=%llu llc_occupancy=%llu (%d) mbm_total=%llu (%d) mbm_local=%llu (%d) domain=%u",
		  __entry->rmid, __entry->timestamp, __entry->llc_occupancy_val, __entry->llc_occupancy_err,
		  __entry->mbm_total_val, __entry->mbm_total_err, __entry->mbm_local_val, __entry->mbm_local_err,
		  __entry->domain));

DECLARE_EVENT_CLASS(rmid_owner, TP_PROTO(u32 rmid, const char *comm, pid_t tgid, u64 timestamp),
		    TP_ARGS(rmid, comm, tgid, timestamp),
		    TP_STRUCT__entry(__field(u32, rmid) __array(char, comm, TASK_COMM_LEN) __field(pid_t, tgid)
					     __field(u64, timestamp)),
		    TP_fast_assign(__entry->rmid = rmid; memcpy(__entry->comm, comm, TASK_COMM_LEN);
				   __entry->tgid = tgid; __entry->timestamp = timestamp;),
		    TP_printk("rmid=%u comm=%.16s tgid=%d timestamp=%llu", __entry->rmid, __entry->comm, __entry->tgid,
			      __entry->timestamp));

DEFINE_EVENT(rmid_owner, rmid_alloc, TP_PROTO(u32 rmid, const char *comm, pid_t tgid, u64 timestamp),
	     TP_ARGS(rmid, comm, tgid, timestamp));

DEFINE_EVENT(rmid_owner, rmid_existing, TP_PROTO(u32 rmid, const char *comm, pid_t tgid, u64 timestamp),
	     TP_ARGS(rmid, comm, tgid, timestamp));

TRACE_EVENT(rmid_free, TP_PROTO(u32 rmid, u64 timestamp), TP_ARGS(rmid, timestamp),
	    TP_STRUCT__entry(__field(u32, rmid) __field(u64, timestamp)),
	    TP_fast_assign(__entry->rmid = rmid; __entry->timestamp = timestamp;),
	    TP_printk("rmid=%u timestamp=%llu", __entry->rmid, __entry->timestamp));

TRACE_EVENT(rmid_failed, TP_PROTO(pid_t tgid, const char *comm, u64 timestamp), TP_ARGS(tgid, comm, timestamp),
	    TP_STRUCT__entry(__field(pid_t, tgid) __array(char, comm, TASK_COMM_LEN) __field(u64, timestamp)),
	    TP_fast_assign(__entry->tgid = tgid; memcpy(__entry->comm, comm, TASK_COMM_LEN);
			   __entry->timestamp = timestamp;),
	    TP_printk("tgid=%d comm=%.16s timestamp=%llu", __entry->tgid, __entry->comm, __entry->timestamp));

#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE ttmon_rmid_trace
#include <trace/define_trace.h>
