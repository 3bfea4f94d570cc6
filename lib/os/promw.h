/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * promw.h: writes metrics in the two text formats that Prometheus reads: the classic one (0.0.4) and
 * OpenMetrics 1.0.0. One set of calls makes both; what differs is the head of a metric, the names of
 * counters in it, and the end.
 *
 * The samples of a metric come one after the other: a metric that is given again after another one
 * would have a second head, which neither format allows. Errors are the stream's: look at ferror() or
 * fclose().
 */
#ifndef TTMON_PROMW_H
#define TTMON_PROMW_H

#include "lib/base/util.h"

#define TTMON_PROM_CLASSIC     "text/plain; version=0.0.4; charset=utf-8"
#define TTMON_PROM_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* INFO: a constant 1 whose labels are what is reported. */
enum ttmon_prom_type { TTMON_PROM_COUNTER, TTMON_PROM_GAUGE, TTMON_PROM_HISTOGRAM, TTMON_PROM_INFO, TTMON_PROM_TYPES };
const char *ttmon_prom_type_name(unsigned int type); /* "counter", ... */

#define TTMON_PROM_LABELS 8 /* of a metric at most */

struct ttmon_prom_metric {
	const char *name; /* as samples have it: counters end in _total, infos in _info */
	enum ttmon_prom_type type;
	const char *unit;   /* "seconds", "bytes", "ratio": the name's last word, but for _total; "": none */
	const char *labels; /* names, joined by commas; "": none */
	const char *help;   /* a sentence, no line break */
};

struct ttmon_promw {
	FILE *f;
	bool openmetrics;
	const struct ttmon_prom_metric *metric; /* whose samples are being written */
	bool begun;				/* its head is */
};

/*
 * The metric that the following samples are of; its head is written with the first of them. The struct
 * must stay where it is.
 */
void ttmon_promw_metric(struct ttmon_promw *w, const struct ttmon_prom_metric *metric);
/*
 * A sample. values: of the labels, in the metric's order, as many as it has; NULL without labels. They
 * may be any bytes.
 */
void ttmon_promw_num(struct ttmon_promw *w, uint64_t value, const char *const *values);
/* A value in billionths, exact: seconds of ns, a ratio. */
void ttmon_promw_nano(struct ttmon_promw *w, uint64_t value, const char *const *values);
/*
 * A histogram: n bounds in ns, growing, n + 1 counts (each bucket's own, the last one past the last
 * bound) and the sum in ns; written in seconds. The labels of the metric do not name `le`.
 */
struct ttmon_prom_histogram {
	const uint64_t *bounds_ns, *counts;
	size_t n;
	uint64_t sum_ns;
};
void ttmon_promw_histogram(struct ttmon_promw *w, const struct ttmon_prom_histogram *h, const char *const *values);
/* The end of the document. */
void ttmon_promw_end(struct ttmon_promw *w);

/* Which format does an Accept header want? "" and what has neither: classic. */
bool ttmon_prom_wants_openmetrics(const char *accept);
/*
 * Text that somebody else chose, as a label's value shows it: each byte that is no part of valid UTF-8
 * becomes U+FFFD, control characters become '?'. Cut to n - 1 bytes, not within a character. Twice is
 * the same as once. Gives buf back.
 */
char *ttmon_prom_clean(char *buf, size_t n, const char *text);

#endif
