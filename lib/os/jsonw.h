/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * jsonw.h: writes a JSON document value by value through a buffer of fixed size to a file, optionally
 * compressed.
 *
 * The caller writes in document order (open, key, value, close); the writer adds the commas. It does
 * not check that keys and brackets match: the tests parse the output. After the first write error
 * everything is dropped, and ttmon_jsonw_finish() returns the error, so a caller need not check each
 * call. It uses no printf, no locale and no thread.
 */
#ifndef TTMON_JSONW_H
#define TTMON_JSONW_H

#include "lib/base/util.h"

struct ttmon_jsonw {
	int fd; /* borrowed */
	int err;
	bool comma; /* there is a value before the current position */
	char *buf;
	size_t len;
	struct ttmon_jsonw_gz *gz; /* NULL: plain */
};

/*
 * Prepares writing to fd, which the caller owns and closes. gzip: level 1, without name and time in
 * the header. Returns 0 or -ENOMEM.
 */
int ttmon_jsonw_init(struct ttmon_jsonw *w, int fd, bool gzip) _must_check;
/* Writes what is left and ends the gzip stream. Returns 0 or the first error as -errno. */
int ttmon_jsonw_finish(struct ttmon_jsonw *w) _must_check;
/* Frees the writer; does nothing on a zeroed struct. */
void ttmon_jsonw_fini(struct ttmon_jsonw *w);

/* bracket: one of { and [, or of } and ] */
void ttmon_jsonw_open(struct ttmon_jsonw *w, char bracket);
void ttmon_jsonw_close(struct ttmon_jsonw *w, char bracket);
/* Writes a member name as it is: it must not need an escape. */
void ttmon_jsonw_key(struct ttmon_jsonw *w, const char *name);
/* Begins a member that is an object or an array. */
void ttmon_jsonw_key_open(struct ttmon_jsonw *w, const char *name, char bracket);
/* Begins an object or array on a line of its own, as a row of a table. */
void ttmon_jsonw_row(struct ttmon_jsonw *w, char bracket);

/* Values are limited to 2^63 - 1, which a signed 64-bit reader can take. */
void ttmon_jsonw_num(struct ttmon_jsonw *w, uint64_t value);
void ttmon_jsonw_int(struct ttmon_jsonw *w, int64_t value);
/* Writes a number from 0 to 1 with three decimals. */
void ttmon_jsonw_ratio(struct ttmon_jsonw *w, double value);
void ttmon_jsonw_bool(struct ttmon_jsonw *w, bool value);
void ttmon_jsonw_null(struct ttmon_jsonw *w);
/* Writes a decimal number in quotes. */
void ttmon_jsonw_time(struct ttmon_jsonw *w, uint64_t ns);
/* Writes microseconds with three decimals, as trace files have times. */
void ttmon_jsonw_us(struct ttmon_jsonw *w, uint64_t ns);
/* Writes "0x7f00" in quotes, without leading zeros. */
void ttmon_jsonw_addr(struct ttmon_jsonw *w, uint64_t addr);
/*
 * Writes text of at most n bytes, up to its first NUL; NULL becomes null. The text may come from the
 * name of a process or file: quotes, backslashes and control characters (C0, DEL, C1) are escaped, and
 * each byte that is not part of valid UTF-8 becomes \ufffd.
 */
void ttmon_jsonw_text(struct ttmon_jsonw *w, const char *text, size_t n);
/* The same for a NUL-terminated string. */
void ttmon_jsonw_str(struct ttmon_jsonw *w, const char *text);
/* Writes "function+0x12"; NULL becomes null. */
void ttmon_jsonw_symbol(struct ttmon_jsonw *w, const char *name, uint64_t delta);
/*
 * Writes a name of ttmon's own tables, which must not need an escape; NULL becomes null. Faster than
 * ttmon_jsonw_str().
 */
void ttmon_jsonw_name(struct ttmon_jsonw *w, const char *name);
/* These write a member: its name, then the value as above. */
void ttmon_jsonw_key_num(struct ttmon_jsonw *w, const char *key, uint64_t value);
void ttmon_jsonw_key_null(struct ttmon_jsonw *w, const char *key);
/* Writes null if the value is not known. */
void ttmon_jsonw_key_known(struct ttmon_jsonw *w, const char *key, bool known, uint64_t value);
void ttmon_jsonw_key_int(struct ttmon_jsonw *w, const char *key, int64_t value);
void ttmon_jsonw_key_time(struct ttmon_jsonw *w, const char *key, uint64_t ns);
void ttmon_jsonw_key_addr(struct ttmon_jsonw *w, const char *key, uint64_t addr);
void ttmon_jsonw_key_str(struct ttmon_jsonw *w, const char *key, const char *text);
void ttmon_jsonw_key_text(struct ttmon_jsonw *w, const char *key, const char *text, size_t n);
void ttmon_jsonw_key_name(struct ttmon_jsonw *w, const char *key, const char *name);
void ttmon_jsonw_key_bool(struct ttmon_jsonw *w, const char *key, bool value);
/*
 * Writes a member of a kind (num, int, time, addr, str, name, bool), or null if it is not known; value
 * is not evaluated then.
 */
#define TTMON_JSONW_KEY_IF(w, key, known, kind, value) \
	((known) ? ttmon_jsonw_key_##kind(w, key, value) : ttmon_jsonw_key_null(w, key))
/* Writes a line break between two values, so that each row of a table is one line of the file. */
void ttmon_jsonw_line(struct ttmon_jsonw *w);
/* Writes the line break at the end of the document. */
void ttmon_jsonw_end(struct ttmon_jsonw *w);

/*
 * Writes value in base 10, or in base 16 without prefix, to buf (not terminated, at least 20 bytes).
 * Returns the length.
 */
size_t ttmon_jsonw_decimal(char *buf, uint64_t value);
size_t ttmon_jsonw_hex(char *buf, uint64_t value, size_t min_digits);

#endif
