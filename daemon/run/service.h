/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * service.h: the protocol with systemd (READY, a status line, watchdog messages, reload), and dropping
 * of capabilities.
 */
#ifndef TTMON_SERVICE_H
#define TTMON_SERVICE_H

#include "daemon/run/daemon.h"

/* In the table it comes after all parts that reload. */
extern const struct ttmon_part ttmon_part_service;

#endif
