/* SPDX-License-Identifier: GPL-2.0-only */
/* utf8.h: texts of other programs as valid UTF-8. Pure. */
#ifndef TTMON_UTF8_H
#define TTMON_UTF8_H

#include "lib/base/util.h"

/*
 * Returns the length of the valid UTF-8 sequence at p (of n > 0 bytes); 0 if it is not valid:
 * overlong, a surrogate, or above U+10FFFF.
 */
static inline size_t ttmon_utf8_len(const unsigned char *p, size_t n)
{
	static const struct {
		unsigned char lead, mask, len, min2, max2; /* range of the second byte */
	} forms[] = {
		{ 0xe0, 0xff, 3, 0xa0, 0xbf }, { 0xed, 0xff, 3, 0x80, 0x9f }, { 0xf0, 0xff, 4, 0x90, 0xbf },
		{ 0xf4, 0xff, 4, 0x80, 0x8f }, { 0xe0, 0xf0, 3, 0x80, 0xbf }, { 0xf0, 0xfc, 4, 0x80, 0xbf },
		{ 0xc0, 0xe0, 2, 0x80, 0xbf },
	};

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		if ((p[0] & forms[i].mask) != forms[i].lead)
			continue;
		if (n < forms[i].len || p[1] < forms[i].min2 || p[1] > forms[i].max2)
			return 0;
		for (size_t k = 2; k < forms[i].len; k++)
			if ((p[k] & 0xc0) != 0x80)
				return 0;
		return forms[i].len;
	}
	return 0;
}

/*
 * Copies text (at most len bytes, up to its NUL) to buf; a byte that is not UTF-8 becomes U+FFFD, as
 * in JSON. 3 * len + 1 bytes are always enough; in a smaller buffer the text is cut. Returns buf.
 */
static inline char *ttmon_utf8_clean(char *buf, size_t size, const char *text, size_t len)
{
	size_t at = 0;

	for (size_t i = 0, n; i < len && text[i]; i += n ? n : 1) {
		n = ttmon_utf8_len((const unsigned char *)text + i, len - i);
		if (at + (n ? n : 3) >= size)
			break;
		memcpy(buf + at, n ? text + i : "\xef\xbf\xbd", n ? n : 3);
		at += n ? n : 3;
	}
	buf[at] = '\0';
	return buf;
}

#endif
