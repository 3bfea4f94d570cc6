/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fields.h: the members of an object's text of JSON, one after the other, without a tree: for callers
 * that need a few members of very many objects. Brackets and texts are followed; whether what lies
 * between them is JSON is not checked. Pure, any thread.
 */
#ifndef TTMON_LIB_FIELDS_H
#define TTMON_LIB_FIELDS_H

#include "lib/base/util.h"

struct ttmon_field {
	const char *key, *value; /* not ended by NUL; the key without its quotes, the value as it stands */
	size_t key_len, len;
};

/*
 * *at: the opening bracket at first, then where the last call left it; end: behind the text. Returns
 * 1; 0: there are no more, and *at is behind the closing bracket; -EBADMSG: this is no object, or it
 * does not end.
 */
int ttmon_fields_next(const char **at, const char *end, struct ttmon_field *ret) _must_check;
static inline bool ttmon_field_is(const struct ttmon_field *f, const char *key)
{
	return f->key_len == strlen(key) && !memcmp(f->key, key, f->key_len);
}
/* A figure as ttmon_db_u64() takes it; false: it is none, and *ret stays. */
bool ttmon_field_u64(const struct ttmon_field *f, uint64_t *ret);
/*
 * A text without escapes, cut to n. "": it is another value, or has an escape: no name of ours has
 * one.
 */
char *ttmon_field_name(const struct ttmon_field *f, char *buf, size_t n);

#endif
