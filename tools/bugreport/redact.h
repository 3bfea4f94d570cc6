/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * redact.h: names become pseudonyms: "x" and twelve hex digits of a keyed hash (SipHash-2-4) whose key
 * nobody keeps. The same name is the same pseudonym as long as the key lives, and nobody can try names
 * against it afterwards.
 *
 * What stays: numbers, words that stand on every Linux host ("usr", "[heap]", "init.scope"), the
 * libraries that are probed, the functions of CUDA, the members of JSON and the labels of metrics that
 * are known to hold words of ttmond's own. What is not known is a name.
 */
#ifndef TTMON_REDACT_H
#define TTMON_REDACT_H

#include <jansson.h>

#include "lib/base/util.h"

#define TTMON_REDACT_KEY 16
#define TTMON_REDACT_LEN 14 /* a pseudonym with its NUL */

struct ttmon_redact {
	uint64_t key[2];
};

void ttmon_redact_init(struct ttmon_redact *r, const uint8_t key[TTMON_REDACT_KEY]);

/* The hash, for whoever wants to hold it against the published vectors. */
uint64_t ttmon_redact_hash(const struct ttmon_redact *r, const void *data, size_t n);

/*
 * One word of n bytes: the same where it stays, else its pseudonym, with what a unit's name ends in
 * (".service") where there is room for that. buf is NUL-terminated. The name of a process (comm) is
 * one word into TTMON_COMM_LEN bytes, wherever it stands.
 */
void ttmon_redact_word(const struct ttmon_redact *r, const char *text, size_t n, char *buf, size_t size);
/*
 * Any text: words between '/', ' ', NULs and what stands in brackets in /proc/PID/maps. At most size -
 * 1 bytes; one that would be longer is one pseudonym. Returns the length.
 */
size_t ttmon_redact_text(const struct ttmon_redact *r, const char *text, size_t n, char *buf, size_t size);
/* Is this the name of a function of CUDA, with or without its version and per-thread suffix? */
bool ttmon_redact_is_cuda(const char *name, size_t n);
/* May the values of this member of a JSON document or label of a metric be read by anybody? */
bool ttmon_redact_key_stays(const char *key);

/* Every string below root. -ENOMEM. */
int ttmon_redact_json(const struct ttmon_redact *r, json_t *root) _must_check;
/*
 * Label values of a text in the format of Prometheus or OpenMetrics. A line that is not in it is left
 * out.
 */
int ttmon_redact_metrics(const struct ttmon_redact *r, const char *text, size_t n, FILE *out) _must_check;

/*
 * The records of a recording, one by one, into a new one. 0; -ENODATA: the recording was cut off,
 * -EBADMSG: damaged (what could be read is in the new one, which is complete); other errors: there is
 * no new one.
 */
int ttmon_redact_recording(const struct ttmon_redact *r, const char *from, const char *to) _must_check;
/*
 * A record as it is to be written. rec: size bytes, aligned to 8; out: TTMON_RECORD_MAX bytes. Returns
 * its size.
 */
size_t ttmon_redact_record(const struct ttmon_redact *r, const void *rec, size_t size, void *out);

#endif
