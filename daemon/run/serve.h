/* SPDX-License-Identifier: GPL-2.0-only */
/* serve.h: the HTTP server of a run: where the options want it, with the routes of all parts. */
#ifndef TTMON_SERVE_H
#define TTMON_SERVE_H

#include "daemon/run/daemon.h"

/* Behind all parts whose routes use their state. */
extern const struct ttmon_part ttmon_part_serve;

/* A run that is served, before and while it is. */
bool ttmon_serve_wanted(const struct ttmon_daemon *c);
/* NULL: it is not served, or not yet. */
struct ttmon_http *ttmon_serve_http(const struct ttmon_daemon *c);
/*
 * Are all addresses served now? Tries those that are not, and says so if one cannot be had
 * (degraded.c).
 */
void ttmon_serve_take_up(struct ttmon_daemon *c);
/* CPU time that was spent on clients, since the start. */
uint64_t ttmon_serve_spent_ns(const struct ttmon_daemon *c);

#endif
