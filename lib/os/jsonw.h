/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * jsonw.h: a JSON row writer: values one after the other into a buffer of fixed size, from there to a
 * file, compressed if asked.
 *
 * The caller says what to write in order (open, key, value, close); commas are put by the writer. It
 * does not check that keys and brackets fit together: the tests hold the output against a parser. The
 * first error of the file is kept, everything after it is dropped, ttmon_jsonw_finish() tells it: a
 * caller need not look at each call. No printf, no locale, no thread.
 */
#ifndef TTMON_JSONW_H
#define TTMON_JSONW_H

#include "lib/base/util.h"

struct ttmon_jsonw {
	int fd; /* borrowed */
	int err;
	bool comma; /* a value stands before the place we are at */
	char *buf;
	size_t len;
	struct ttmon_jsonw_gz *gz; /* NULL: plain */
};

/*
 * Write to fd (the caller's, stays open). gzip: level 1, no name and no time in its header. -ENOMEM.
 */
int ttmon_jsonw_init(struct ttmon_jsonw *w, int fd, bool gzip) _must_check;
/* Flush what is left, end the gzip stream. The first error of all, -errno. */
int ttmon_jsonw_finish(struct ttmon_jsonw *w) _must_check;
/* Free; no-op on a zeroed struct. */
void ttmon_jsonw_fini(struct ttmon_jsonw *w);

/* bracket: one of { [ and } ] */
void ttmon_jsonw_open(struct ttmon_jsonw *w, char bracket);
void ttmon_jsonw_close(struct ttmon_jsonw *w, char bracket);
/* Member name: written as it is, it must need no escape. */
void ttmon_jsonw_key(struct ttmon_jsonw *w, const char *name);
/* A member that is an object or an array. */
void ttmon_jsonw_key_open(struct ttmon_jsonw *w, const char *name, char bracket);
/* A row of a table, on a line of its own: an object or an array. */
void ttmon_jsonw_row(struct ttmon_jsonw *w, char bracket);

/* Numbers saturate at 2^63 - 1, what a signed 64-bit reader can take. */
void ttmon_jsonw_num(struct ttmon_jsonw *w, uint64_t value);
void ttmon_jsonw_int(struct ttmon_jsonw *w, int64_t value);
/* Three decimals, 0..1. */
void ttmon_jsonw_ratio(struct ttmon_jsonw *w, double value);
void ttmon_jsonw_bool(struct ttmon_jsonw *w, bool value);
void ttmon_jsonw_null(struct ttmon_jsonw *w);
/* Decimal in quotes. */
void ttmon_jsonw_time(struct ttmon_jsonw *w, uint64_t ns);
/* Microseconds with three decimals: the times of a trace file. */
void ttmon_jsonw_us(struct ttmon_jsonw *w, uint64_t ns);
/* "0x7f00" in quotes, without leading zeros. */
void ttmon_jsonw_addr(struct ttmon_jsonw *w, uint64_t addr);
/*
 * Text of at most n bytes, up to its first NUL; NULL is null. Chosen by whoever names a process or a
 * file, hence: quotes, backslashes and control characters (C0, DEL, C1) are escaped, each byte that is
 * not part of valid UTF-8 becomes \ufffd.
 */
void ttmon_jsonw_text(struct ttmon_jsonw *w, const char *text, size_t n);
/* The same for a NUL-terminated string. */
void ttmon_jsonw_str(struct ttmon_jsonw *w, const char *text);
/* "function+0x12"; NULL is null. */
void ttmon_jsonw_symbol(struct ttmon_jsonw *w, const char *name, uint64_t delta);
/* A name out of one of our own tables: must need no escape; NULL is null. For the hot part. */
void ttmon_jsonw_name(struct ttmon_jsonw *w, const char *name);
/* A member: the name, then the value, as above. */
void ttmon_jsonw_key_num(struct ttmon_jsonw *w, const char *key, uint64_t value);
void ttmon_jsonw_key_null(struct ttmon_jsonw *w, const char *key);
/* null where it is not known. */
void ttmon_jsonw_key_known(struct ttmon_jsonw *w, const char *key, bool known, uint64_t value);
void ttmon_jsonw_key_int(struct ttmon_jsonw *w, const char *key, int64_t value);
void ttmon_jsonw_key_time(struct ttmon_jsonw *w, const char *key, uint64_t ns);
void ttmon_jsonw_key_addr(struct ttmon_jsonw *w, const char *key, uint64_t addr);
void ttmon_jsonw_key_str(struct ttmon_jsonw *w, const char *key, const char *text);
void ttmon_jsonw_key_text(struct ttmon_jsonw *w, const char *key, const char *text, size_t n);
void ttmon_jsonw_key_name(struct ttmon_jsonw *w, const char *key, const char *name);
void ttmon_jsonw_key_bool(struct ttmon_jsonw *w, const char *key, bool value);
/*
 * A member of a kind (num, int, time, addr, str, name, bool), null where it is not known: value is not
 * looked at then.
 */
#define TTMON_JSONW_KEY_IF(w, key, known, kind, value) \
	((known) ? ttmon_jsonw_key_##kind(w, key, value) : ttmon_jsonw_key_null(w, key))
/* A line break between two values, so that a line of the file is one row of the table. */
void ttmon_jsonw_line(struct ttmon_jsonw *w);
/* The line break at the end of the document. */
void ttmon_jsonw_end(struct ttmon_jsonw *w);

/*
 * value in base 10, or in base 16 without prefix, into buf (not terminated, at least 20 bytes).
 * Returns the length.
 */
size_t ttmon_jsonw_decimal(char *buf, uint64_t value);
size_t ttmon_jsonw_hex(char *buf, uint64_t value, size_t min_digits);

#endif
