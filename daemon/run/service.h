/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * service.h: what a service owes systemd: READY, a status line, the watchdog's sign of life, reload;
 * and fewer capabilities.
 */
#ifndef TTMON_SERVICE_H
#define TTMON_SERVICE_H

#include "daemon/run/daemon.h"

/* Behind all parts that reload. */
extern const struct ttmon_part ttmon_part_service;

#endif
