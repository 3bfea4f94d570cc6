// SPDX-License-Identifier: GPL-2.0-only
/*
 * fmt.c: figures for people (sizes, durations, counts). Pure; integer arithmetic only, so that no locale changes
 * the decimal point and the same number always gives the same text. Any thread.
 */
#include "lib/base/fmt.h"

#include <inttypes.h>

/*
 * value / unit with one decimal, rounded to nearest: the tenths. Never overflows: the whole units are taken out
 * first.
 */
static uint64_t tenths(uint64_t value, uint64_t unit)
{
	uint64_t rest = value % unit;

	/* rest < unit <= 2^60, so rest * 10 fits in 64 bits. */
	return value / unit * 10 + (rest * 10 + unit / 2) / unit;
}

char *ttmon_fmt_bytes(char *buf, size_t n, uint64_t bytes)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	uint64_t unit = 1024, t;
	size_t i = 0;

	if (bytes < 1024) {
		snprintf(buf, n, "%" PRIu64 " B", bytes);
		return buf;
	}
	/* 1023.96 KiB is 1.0 MiB, not 1024.0 KiB: the rounded figure decides on the unit. */
	for (t = tenths(bytes, unit); t >= 10240 && i + 1 < ARRAY_SIZE(units); i++) {
		unit *= 1024;
		t = tenths(bytes, unit);
	}
	snprintf(buf, n, "%" PRIu64 ".%" PRIu64 " %s", t / 10, t % 10, units[i]);
	return buf;
}

char *ttmon_fmt_ns(char *buf, size_t n, uint64_t ns)
{
	static const char *const units[] = { "us", "ms", "s" };
	uint64_t unit = 1000, t, s = ns / NSEC_PER_SEC;
	size_t i = 0;

	if (s >= 3600) {
		snprintf(buf, n, "%" PRIu64 " h %02" PRIu64 " min", s / 3600, s / 60 % 60);
	} else if (s >= 60) {
		snprintf(buf, n, "%" PRIu64 " min %02" PRIu64 " s", s / 60, s % 60);
	} else if (ns < 1000) {
		snprintf(buf, n, "%" PRIu64 " ns", ns);
	} else {
		for (t = tenths(ns, unit); t >= 10000 && i + 1 < ARRAY_SIZE(units); i++) {
			unit *= 1000;
			t = tenths(ns, unit);
		}
		snprintf(buf, n, "%" PRIu64 ".%" PRIu64 " %s", t / 10, t % 10, units[i]);
	}
	return buf;
}

char *ttmon_fmt_count(char *buf, size_t n, uint64_t count)
{
	char text[TTMON_FMT_LEN];
	size_t i = sizeof(text), digits = 0;

	text[--i] = '\0';
	do {
		if (digits && digits % 3 == 0)
			text[--i] = ',';
		text[--i] = (char)('0' + count % 10);
		digits++;
		count /= 10;
	} while (count);
	snprintf(buf, n, "%s", text + i);
	return buf;
}

char *ttmon_fmt_text(char *buf, size_t n, const char *text)
{
	size_t i = 0;

	for (; text && *text && i + 1 < n; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == 0xc2 && (unsigned char)text[1] >= 0x80 && (unsigned char)text[1] < 0xa0) {
			c = '?';
			text++;
		}
		buf[i++] = c < ' ' || c == 0x7f ? '?' : (char)c;
	}
	/* Cut off: if the first byte left out goes on with a sequence, take that sequence back. */
	if (text && ((unsigned char)*text & 0xc0) == 0x80) {
		while (i && ((unsigned char)buf[i - 1] & 0xc0) == 0x80)
			i--;
		if (i && ((unsigned char)buf[i - 1] & 0xc0) == 0xc0)
			i--;
	}
	if (n)
		buf[i] = '\0';
	return buf;
}

char *ttmon_fmt_known(char *buf, size_t n, const char *text, uint64_t v, bool known, bool at_least)
{
	char copy[TTMON_FMT_LEN];

	known = known && (v || !at_least);
	snprintf(copy, sizeof(copy), "%s", text);
	snprintf(buf, n, "%s%s", known && at_least ? ">= " : "", known ? copy : "-");
	return buf;
}
