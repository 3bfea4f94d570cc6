/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * quotas.h: users that got less because a shared table was full and they had the most entries: for the
 * log, status and metrics. Cold thread.
 */
#ifndef TTMON_QUOTAS_H
#define TTMON_QUOTAS_H

#include "daemon/run/daemon.h"
#include "lib/base/quota.h"

extern const struct ttmon_part ttmon_part_quotas;

/*
 * Users with the most dropped entries first; rows has room for TTMON_QUOTA_ROWS. Returns their number.
 */
uint32_t ttmon_quotas_get(const struct ttmon_daemon *c, struct ttmon_quota_row *rows);

#endif
