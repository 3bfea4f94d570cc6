// SPDX-License-Identifier: GPL-2.0-only
/*
 * ttnames.c: mangled names of tt-metal against the patterns of tt_fns.h.
 *
 * Runs in the cold thread and in tests; pure. Names come from untrusted files, so the matcher is our
 * own: fnmatch(3) needs a terminated copy, and its time is unbounded. A name that is not of tt-metal
 * costs a comparison of its first bytes.
 */
#include "daemon/io/objects/ttnames.h"

#define PREFIX	  "_ZN2tt"
#define NAMESPACE "_ZN2tt8tt_metal"
#define VTABLES	  "_ZTVN2tt8tt_metal"
#define INLINE_NS "2v0" /* tt::tt_metal::v0 of releases up to 2024 */

struct row {
	const char *pattern;
	uint16_t fn;
};

static const struct row rows[] = {
#define T(id, name, pattern, c, x, b, a0, a1, a2, a3, a4, a5) { pattern, id },
	TTMON_TT_FN_TABLE(T)
#undef T
};

/* The end of a set "[ab]" at p; *hit: c is in it. NULL: the set has no end. */
static const char *set_end(const char *p, char c, bool *hit)
{
	*hit = false;
	for (p++; *p && *p != ']'; p++)
		*hit |= *p == c;
	return *p ? p + 1 : NULL;
}

/* One step: the pattern after p if its first element takes c, else NULL. */
static const char *step(const char *p, char c)
{
	bool hit;

	if (*p == '[') {
		p = set_end(p, c, &hit);
		return hit ? p : NULL;
	}
	return *p && *p == c ? p + 1 : NULL;
}

bool ttmon_ttname_glob(const char *pattern, const char *s, size_t len)
{
	const char *p = pattern, *star = NULL, *end = s + len, *back = NULL;

	while (s < end) {
		const char *next;

		if (*p == '*') {
			star = ++p;
			back = s;
			continue;
		}
		next = step(p, *s);
		if (next) {
			p = next;
			s++;
		} else if (star) {
			/* The last '*' matches one more character: earlier ones need not be tried again. */
			p = star;
			s = ++back;
		} else {
			return false;
		}
	}
	while (*p == '*')
		p++;
	return !*p;
}

static bool begins(const char *s, size_t len, const char *prefix)
{
	return len > strlen(prefix) && !memcmp(s, prefix, strlen(prefix));
}

/* Copies the name without the inline namespace; shortens len. */
static const char *strip(const char *s, size_t *len, const char *prefix, char *copy)
{
	size_t n = strlen(prefix), v0 = sizeof(INLINE_NS) - 1;

	if (*len <= n + v0 || memcmp(s + n, INLINE_NS, v0))
		return s;
	memcpy(copy, s, n);
	memcpy(copy + n, s + n + v0, *len - n - v0);
	*len -= v0;
	return copy;
}

unsigned int ttmon_ttname_find(const char *s, size_t len)
{
	char copy[TTMON_TTNAME_MAX];

	if (len > sizeof(copy))
		return TTMON_TTNAME_NONE;
	if (begins(s, len, VTABLES)) {
		s = strip(s, &len, VTABLES, copy);
		if (ttmon_ttname_glob(TTMON_TT_VTABLE_DEVICE, s, len))
			return TTMON_TTNAME_VT_DEVICE;
		return ttmon_ttname_glob(TTMON_TT_VTABLE_MESH, s, len) ? TTMON_TTNAME_VT_MESH : TTMON_TTNAME_NONE;
	}
	if (!begins(s, len, PREFIX) || memchr(s, '.', len))
		return TTMON_TTNAME_NONE;
	if (begins(s, len, NAMESPACE))
		s = strip(s, &len, NAMESPACE, copy);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (ttmon_ttname_glob(rows[i].pattern, s, len))
			return rows[i].fn;
	return TTMON_TTNAME_NONE;
}
