/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * promw.h: writes metrics in the two text formats that Prometheus reads: the classic one (0.0.4) and
 * OpenMetrics 1.0.0. The same calls produce both; the formats differ in the head of a metric, the
 * names of counters in it, and the end.
 *
 * All samples of a metric must be written together: if a metric were continued after another one, it
 * would get a second head, which neither format allows. Write errors are kept by the stream: check
 * ferror() or fclose().
 */
#ifndef TTMON_PROMW_H
#define TTMON_PROMW_H

#include "lib/base/util.h"

#define TTMON_PROM_CLASSIC     "text/plain; version=0.0.4; charset=utf-8"
#define TTMON_PROM_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* INFO: a constant 1; the information is in its labels. */
enum ttmon_prom_type { TTMON_PROM_COUNTER, TTMON_PROM_GAUGE, TTMON_PROM_HISTOGRAM, TTMON_PROM_INFO, TTMON_PROM_TYPES };
const char *ttmon_prom_type_name(unsigned int type); /* "counter", ... */

#define TTMON_PROM_LABELS 8 /* the most labels of a metric */

struct ttmon_prom_metric {
	const char *name; /* name as in samples: counters end in _total, infos in _info */
	enum ttmon_prom_type type;
	const char *unit;   /* "seconds", "bytes", "ratio": the last word of the name before _total; "": none */
	const char *labels; /* names separated by commas; "": none */
	const char *help;   /* one sentence, without line break */
};

struct ttmon_promw {
	FILE *f;
	bool openmetrics;
	const struct ttmon_prom_metric *metric; /* the metric of the current samples */
	bool begun;				/* its head was written */
};

/*
 * Sets the metric of the following samples; its head is written with the first of them. The struct
 * must stay valid.
 */
void ttmon_promw_metric(struct ttmon_promw *w, const struct ttmon_prom_metric *metric);
/*
 * Writes a sample. values: one for each label, in the metric's order; NULL without labels. They may
 * contain any bytes.
 */
void ttmon_promw_num(struct ttmon_promw *w, uint64_t value, const char *const *values);
/* Writes an exact value given in billionths: ns as seconds, or a ratio. */
void ttmon_promw_nano(struct ttmon_promw *w, uint64_t value, const char *const *values);
/*
 * A histogram: n bounds in ns, ascending; n + 1 counts (each bucket's own, the last one above the last
 * bound); and the sum in ns. It is written in seconds. The labels of the metric must not include `le`.
 */
struct ttmon_prom_histogram {
	const uint64_t *bounds_ns, *counts;
	size_t n;
	uint64_t sum_ns;
};
void ttmon_promw_histogram(struct ttmon_promw *w, const struct ttmon_prom_histogram *h, const char *const *values);
/* Writes the end of the document. */
void ttmon_promw_end(struct ttmon_promw *w);

/*
 * Returns whether an Accept header prefers OpenMetrics; if it is "" or names neither format, the
 * classic one is used.
 */
bool ttmon_prom_wants_openmetrics(const char *accept);
/*
 * Makes a label value from text of others: each byte that is not part of valid UTF-8 becomes U+FFFD,
 * control characters become '?'. Cut to n - 1 bytes, between characters. Cleaning a clean text does
 * not change it. Returns buf.
 */
char *ttmon_prom_clean(char *buf, size_t n, const char *text);

#endif
