/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * api.h: the routes of the local socket (docs/ttmond-api.md): the parts of a run that have them, and
 * functions that their handlers share. A handler has the struct ttmon_daemon as its ctx. Cold thread.
 */
#ifndef TTMON_API_H
#define TTMON_API_H

#include <jansson.h>

#include "daemon/api/viewer.h"
#include "daemon/run/daemon.h"

extern const struct ttmon_part ttmon_part_api; /* the table of routes, api.c */
/*
 * Their state is a struct ttmon_follow: followers of live advice (live.c) and of program runs
 * (programs.c).
 */
extern const struct ttmon_part ttmon_part_live, ttmon_part_programs;
extern const struct ttmon_part ttmon_part_jobs; /* job.c: documents made by forked children */

/*
 * Every route but /metrics: X(path, handler, flags, help). A new route takes a row here and its
 * handler. A path that ends in "/" takes one more segment. "/" lists the routes in this order.
 */
#define TTMON_API_OPEN (1 << 0) /* also on TCP, for every client: sums only */
#define TTMON_API_CTL  (1 << 1) /* also PUT and DELETE */
/* clang-format off */
#define TTMON_API_ROUTES(X) \
	X("/healthz", ttmon_api_healthz, TTMON_API_OPEN, "whether the daemon is alive") \
	X("/v1/status", ttmon_api_status, TTMON_API_OPEN, "build, events, losses, accounting identity, window") \
	X("/v1/probes", ttmon_api_probes, 0, "objects, probes and programs") \
	X("/v1/families", ttmon_api_families, TTMON_API_CTL, "families of probes; PUT ?name=&state=on|counting|off") \
	X("/v1/targets", ttmon_api_targets, TTMON_API_CTL, "traced processes; PUT and DELETE ?pid=, ?self or ?all") \
	X("/v1/processes", ttmon_api_processes, 0, "CPU time, cache and memory bandwidth by process, since the " \
		"start") \
	X("/v1/allocations", ttmon_api_allocations, 0, "allocations that are kept: ?pid=&live&limit=&cursor=") \
	X("/v1/allocations/", ttmon_api_allocation, 0, "one of them, by id") \
	X("/v1/heat", ttmon_api_heat, 0, "transfers over time or pages: ?by=allocation|page&id=&n=&last=") \
	X("/v1/hotspots", ttmon_api_hotspots, 0, "unpinned memory with the most transfers: ?n=, " \
		"?pid=&period=&label=") \
	X("/v1/coldspots", ttmon_api_coldspots, 0, "pinned memory that is not used: ?n=, ?pid=&period=&label=") \
	X("/v1/advice", ttmon_api_advice, 0, "what to pin and what not, a JSON document per line") \
	X("/v1/advice/live", ttmon_api_live, 0, "advice while programs run: ?after=SEQ&start=ID&pid=&follow=1") \
	X("/v1/slots", ttmon_api_slots, 0, "the last slots of 1 ms: ?last=") \
	X("/v1/tt/programs", ttmon_api_programs, 0, "runs of programs on Tenstorrent chips: " \
		"?after=SEQ&start=ID&pid=&follow=1") \
	X("/v1/devices", ttmon_api_devices, 0, "Tenstorrent chips and the processes that hold their memory") \
	X("/v1/db", ttmon_api_db, 0, "the whole database, as --dump-db writes it: ?gz=1") \
	X("/v1/trace", ttmon_api_trace, 0, "timeline of the kept events, for Perfetto")
/* clang-format on */
#define X(path, handler, flags, help) void handler(void *ctx, struct ttmon_http_reply *reply);
TTMON_API_ROUTES(X)
#undef X

/* Takes the reference of doc; NULL means out of memory. */
void ttmon_api_send(struct ttmon_http_reply *reply, json_t *doc);

/* /v1/hotspots or (cold) /v1/coldspots of one period. */
void ttmon_api_period(void *ctx, struct ttmon_http_reply *reply, bool cold);
/* cpu.c. For /v1/status: null where CPU time is not measured. New references. */
json_t *ttmon_api_cpu_status(const struct ttmon_daemon *c, const struct ttmon_snapshot *s);
json_t *ttmon_api_rmid_status(const struct ttmon_daemon *c, const struct ttmon_snapshot *s);
/*
 * ctl.c: targets and families, reading and changing. For /v1/status: the families that are only
 * counted or off; null without a budget. New references.
 */
json_t *ttmon_api_reduced(const struct ttmon_daemon *c);
/* Includes the processes and users that the client may see. */
json_t *ttmon_api_budget(const struct ttmon_daemon *c, const struct ttmon_http_reply *reply);
/* The name of a process or thread, as the kernel has it. NULL: out of memory. */
json_t *ttmon_api_comm(const char comm[TTMON_COMM_LEN]);
/*
 * Member "families": for each family whether it is on, since when, and how much of that time is
 * unknown.
 */
json_t *ttmon_api_families_seen(const struct ttmon_seen_view *v);
/*
 * are_on: true if all these families (bits) are on. are_whole: true if all their events since then
 * were seen.
 */
bool ttmon_api_are_on(const struct ttmon_seen_view *v, uint32_t families);
bool ttmon_api_are_whole(const struct ttmon_seen_view *v, uint32_t families, uint64_t since_ns);
/* tt.c: figures for /v1/status, and layouts and clocks for /v1/probes. New references. */
json_t *ttmon_api_tt_status(const struct ttmon_daemon *c);
json_t *ttmon_api_tt_processes(const struct ttmon_daemon *c, const struct ttmon_viewer *who);
json_t *ttmon_api_tt_clocks(const struct ttmon_daemon *c, const struct ttmon_viewer *who);

#endif
