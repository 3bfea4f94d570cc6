// SPDX-License-Identifier: GPL-2.0-only
/* fields.c: see fields.h. */
#include "lib/read/fields.h"

static const char *skip_space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
		p++;
	return p;
}

/* p: behind the opening quote. Returns where the closing one is; NULL: there is none. */
static const char *end_of_text(const char *p, const char *end)
{
	for (; p < end && *p != '"'; p++)
		if (*p == '\\')
			p++;
	return p < end ? p : NULL;
}

/* What a byte does: ends or begins a text, goes a level in (1) or out (255), hides the next one. */
enum { QUOTE = 2, BACKSLASH = 3 };
static const unsigned char kind_of[256] = {
	['"'] = QUOTE, ['\\'] = BACKSLASH, ['{'] = 1, ['['] = 1, ['}'] = 255, [']'] = 255,
};

/*
 * p: an opening bracket. Returns the byte behind the closing one; NULL: there is none. No branch but
 * the loop's depends on what the bytes are, which is twice as fast as asking for each.
 */
static const char *skip_nested(const char *p, const char *end)
{
	unsigned int outside = 1; /* of texts */
	int depth = 0;

	for (; p < end; p++) {
		unsigned char kind = kind_of[(unsigned char)*p];

		if (kind == BACKSLASH) {
			p++;
			continue;
		}
		outside ^= kind == QUOTE;
		depth += kind == QUOTE ? 0 : (int)(signed char)kind * (int)outside;
		if (!depth)
			return p + 1;
	}
	return NULL;
}

/* Returns the byte behind the value at p; NULL: it does not end. */
static const char *skip_value(const char *p, const char *end)
{
	if (p < end && *p == '"') {
		p = end_of_text(p + 1, end);
		return p ? p + 1 : NULL;
	}
	if (p < end && (*p == '{' || *p == '['))
		return skip_nested(p, end);
	while (p < end && *p != ',' && *p != '}' && *p != ']' && *p != ' ' && *p != '\n' && *p != '\t' && *p != '\r')
		p++;
	return p < end ? p : NULL;
}

int ttmon_fields_next(const char **at, const char *end, struct ttmon_field *ret)
{
	const char *p = skip_space(*at, end), *close;
	bool first = p < end && *p == '{';

	if (first)
		p = skip_space(p + 1, end);
	if (p < end && *p == '}') {
		*at = p + 1;
		return 0;
	}
	if (!first) {
		if (p == end || *p != ',')
			return -EBADMSG;
		p = skip_space(p + 1, end);
	}
	if (p == end || *p != '"')
		return -EBADMSG;
	close = end_of_text(p + 1, end);
	if (!close)
		return -EBADMSG;
	ret->key = p + 1;
	ret->key_len = (size_t)(close - p - 1);
	p = skip_space(close + 1, end);
	if (p == end || *p != ':')
		return -EBADMSG;
	p = skip_space(p + 1, end);
	close = skip_value(p, end);
	if (!close || close == p)
		return -EBADMSG;
	ret->value = p;
	ret->len = (size_t)(close - p);
	*at = close;
	return 1;
}

char *ttmon_field_name(const struct ttmon_field *f, char *buf, size_t n)
{
	size_t len = f->len >= 2 && *f->value == '"' ? f->len - 2 : 0;

	len = memchr(f->value, '\\', f->len) ? 0 : MIN(len, n - 1);
	memcpy(buf, f->value + 1, len);
	buf[len] = '\0';
	return buf;
}

bool ttmon_field_u64(const struct ttmon_field *f, uint64_t *ret)
{
	bool quoted = *f->value == '"';
	const char *p = f->value + quoted, *end = f->value + f->len - quoted;
	unsigned int base = 10;
	uint64_t v = 0;

	if (end - p > 2 && p[0] == '0' && p[1] == 'x' && quoted) {
		base = 16;
		p += 2;
	}
	if (p >= end)
		return false;
	for (; p < end; p++) {
		unsigned int digit = *p >= '0' && *p <= '9' ? (unsigned int)(*p - '0')
				     : base == 16 && (*p | 32) >= 'a' && (*p | 32) <= 'f'
					     ? (unsigned int)((*p | 32) - 'a' + 10)
					     : base;

		if (digit >= base || __builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, digit, &v))
			return false;
	}
	*ret = v;
	return true;
}
