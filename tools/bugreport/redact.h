/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * redact.h: replaces names with pseudonyms. A pseudonym is "x" and twelve hex digits of a keyed hash
 * (SipHash-2-4). The key is random and never stored, so guessed names cannot be tested against
 * a report. Within one report, the same name has the same pseudonym.
 *
 * These stay readable: numbers, words that are on every Linux host ("usr", "[heap]", "init.scope"),
 * the libraries that are probed, CUDA functions, and the values of JSON members and metric labels that
 * are known to hold only words of ttmond itself. Everything else is taken to be a name.
 */
#ifndef TTMON_REDACT_H
#define TTMON_REDACT_H

#include <jansson.h>

#include "lib/base/util.h"

#define TTMON_REDACT_KEY 16
#define TTMON_REDACT_LEN 14 /* length of a pseudonym with its NUL */

struct ttmon_redact {
	uint64_t key[2];
};

void ttmon_redact_init(struct ttmon_redact *r, const uint8_t key[TTMON_REDACT_KEY]);

/* The hash. It is public so that a test can compare it with the published vectors. */
uint64_t ttmon_redact_hash(const struct ttmon_redact *r, const void *data, size_t n);

/*
 * Redacts one word of n bytes: copies it if it may stay, else writes its pseudonym, followed by the
 * ending of a unit's name (".service") if there is room. buf is NUL-terminated. The name of a process
 * (comm) is one word in TTMON_COMM_LEN bytes, wherever it occurs.
 */
void ttmon_redact_word(const struct ttmon_redact *r, const char *text, size_t n, char *buf, size_t size);
/*
 * Redacts each word of a text. Words are separated by '/', ' ', NUL, and the brackets of
 * /proc/PID/maps. Writes at most size - 1 bytes; a result that would be longer becomes one pseudonym.
 * Returns the length.
 */
size_t ttmon_redact_text(const struct ttmon_redact *r, const char *text, size_t n, char *buf, size_t size);
/*
 * Returns whether this is the name of a CUDA function, with or without its version and per-thread
 * suffix.
 */
bool ttmon_redact_is_cuda(const char *name, size_t n);
/* Returns whether the values of this JSON member or metric label may stay readable. */
bool ttmon_redact_key_stays(const char *key);

/* Redacts every string below root, in place. Returns 0 or -ENOMEM. */
int ttmon_redact_json(const struct ttmon_redact *r, json_t *root) _must_check;
/*
 * Redacts the label values of a text in the format of Prometheus or OpenMetrics. Leaves out a line
 * that is not in this format.
 */
int ttmon_redact_metrics(const struct ttmon_redact *r, const char *text, size_t n, FILE *out) _must_check;

/*
 * Copies a recording and redacts each record. Returns 0; -ENODATA: the old recording ends early;
 * -EBADMSG: it is damaged (in both cases the new one is valid and has all that could be read); or
 * another error, and then there is no new recording.
 */
int ttmon_redact_recording(const struct ttmon_redact *r, const char *from, const char *to) _must_check;
/*
 * Redacts one record. rec: size bytes, aligned to 8; out: TTMON_RECORD_MAX bytes. Returns the new
 * size.
 */
size_t ttmon_redact_record(const struct ttmon_redact *r, const void *rec, size_t size, void *out);

#endif
