/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * quotas.h: which users had to do with less, because a table that all share was full and they had most
 * of it: for the log, status and metrics. Cold thread.
 */
#ifndef TTMON_QUOTAS_H
#define TTMON_QUOTAS_H

#include "daemon/run/daemon.h"
#include "lib/base/quota.h"

extern const struct ttmon_part ttmon_part_quotas;

/* Those who paid most first; rows has room for TTMON_QUOTA_ROWS. Returns how many. */
uint32_t ttmon_quotas_get(const struct ttmon_daemon *c, struct ttmon_quota_row *rows);

#endif
