/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * metrics.h: /metrics, in the classic text format (0.0.4) or OpenMetrics 1.0.0 by the Accept header, from one table. Cold thread; figures
 * of the history are copied in the hot thread between two drains.
 */
#ifndef TTMON_METRICS_H
#define TTMON_METRICS_H

#include "io/http.h"

struct ttmon_run;
struct ttmon_metrics;

/* Of a run that is served. */
int ttmon_metrics_new(struct ttmon_run *c, struct ttmon_metrics **ret) _must_check;
void ttmon_metrics_free(struct ttmon_metrics *m);
/* Each tick (100 ms), NULL is allowed: names of new cgroups are read soon after they come, figures of chips before their processes are forgotten. */
void ttmon_metrics_tick(struct ttmon_metrics *m);
/* The handler; ctx: struct ttmon_run. */
void ttmon_api_metrics(void *ctx, struct ttmon_http_reply *reply);
/* Rows for man/ttmond-metrics.7 (ttmond --help=metrics): every metric with its type, unit, labels and help, from the table. */
void ttmon_metrics_man(FILE *f);

#endif
