/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * metrics.h: /metrics, in the classic text format (0.0.4) or OpenMetrics 1.0.0 by the Accept header,
 * from one table. Cold thread; figures of the history are copied in the hot thread between two drains.
 */
#ifndef TTMON_METRICS_H
#define TTMON_METRICS_H

#include "daemon/run/daemon.h"

/* Has the route of /metrics, in runs that are served. */
extern const struct ttmon_part ttmon_part_metrics;

/* The list of metrics for ttmond-metrics(7), as roff. */
void ttmon_metrics_man(FILE *f);

#endif
