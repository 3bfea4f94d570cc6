/* SPDX-License-Identifier: GPL-2.0-only */
/* serve.h: the HTTP server of a run, at the addresses of the options, with the routes of all parts. */
#ifndef TTMON_SERVE_H
#define TTMON_SERVE_H

#include "daemon/run/daemon.h"

/* In the table it comes after all parts whose routes use their state. */
extern const struct ttmon_part ttmon_part_serve;

/* True if the run is to be served, before and while it is. */
bool ttmon_serve_wanted(const struct ttmon_daemon *c);
/* NULL: it is not served, or not yet. */
struct ttmon_http *ttmon_serve_http(const struct ttmon_daemon *c);
/* CPU time spent on clients since the start, in ns. */
uint64_t ttmon_serve_spent_ns(const struct ttmon_daemon *c);

#endif
