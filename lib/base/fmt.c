// SPDX-License-Identifier: GPL-2.0-only
/*
 * fmt.c: formats figures for people (sizes, durations, counts). Pure. It only uses integer arithmetic,
 * so the locale does not change the decimal point, and a number always gives the same text. Any
 * thread.
 */
#include "lib/base/fmt.h"

#include <inttypes.h>

/*
 * Returns value / unit in tenths, rounded to nearest. It cannot overflow, because the whole units are
 * computed first.
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
	/* 1023.96 KiB becomes 1.0 MiB, not 1024.0 KiB: the unit is chosen after rounding. */
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

/* Returns the bytes of the UTF-8 sequence at p; 1 if it is not valid. */
static size_t sequence(const unsigned char *p)
{
	size_t len = p[0] < 0xc2 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 1;

	for (size_t i = 1; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 1;
	return len;
}

size_t ttmon_fmt_control(const char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t len = sequence(p);
	uint32_t c = p[0];

	if (len == 2)
		c = (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
	else if (len == 3)
		c = (p[0] & 0xfu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
	if (c < ' ' || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
	    (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069))
		return len;
	return 0;
}

char *ttmon_fmt_text(char *buf, size_t n, const char *text)
{
	size_t i = 0;

	while (text && *text && i + 1 < n) {
		size_t bad = ttmon_fmt_control(text), len = bad ? 1 : sequence((const unsigned char *)text);

		if (i + len >= n)
			break;
		memcpy(buf + i, bad ? "?" : text, len);
		i += len;
		text += bad ? bad : len;
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

char *ttmon_fmt_quote(char *buf, size_t n, const char *path)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-:@%,=";
	size_t at = 0;

	if (*path && !path[strspn(path, plain)]) {
		snprintf(buf, n, "%s", path);
		return buf;
	}
	for (const char *p = path; n > 8 && at < n - 8 && *p; p++) {
		if (p == path)
			buf[at++] = '\'';
		if (*p == '\'') {
			memcpy(buf + at, "'\\''", 4);
			at += 4;
		} else {
			/* A terminal would obey it. */
			buf[at++] = (unsigned char)*p < ' ' || *p == 0x7f ? '?' : *p;
		}
	}
	if (!*path)
		buf[at++] = '\'';
	buf[at++] = '\'';
	buf[at] = '\0';
	return buf;
}

char *ttmon_python_line(char *buf, size_t n, const char *path, uint64_t line, const char *function)
{
	const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;

	if (line)
		snprintf(buf, n, "%s:%llu in %s", base, (unsigned long long)line, function);
	else
		snprintf(buf, n, "%s in %s", base, function);
	return buf;
}
