// SPDX-License-Identifier: GPL-2.0-only
/* site.c: see site.h. */
#include "lib/base/fmt.h"
#include "lib/demangle/demangle.h"
#include "lib/demangle/site.h"

#define BEFORE " < "
#define DOTS   "..."

/* ---- kinds of frames ---- */

static bool is_one_of(const char *name, const char *const *list, size_t n)
{
	size_t len = strcspn(name, "+@");

	for (size_t i = 0; i < n; i++)
		if (strlen(list[i]) == len && !memcmp(list[i], name, len))
			return true;
	return false;
}

/*
 * Returns whether this is start-up code of the C and C++ libraries. Without symbols the name is that
 * of the file.
 */
static bool is_start_up(const char *name)
{
	static const char *const names[] = { "_start",
					     "__libc_start_main",
					     "__libc_start_call_main",
					     "__libc_start_main_impl",
					     "__clone",
					     "clone",
					     "__clone3",
					     "clone3",
					     "start_thread" };
	static const char *const files[] = { "libc.so.", "libpthread.so.", "libstdc++.so." };

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (!strncmp(name, files[i], strlen(files[i])))
			return true;
	return is_one_of(name, names, ARRAY_SIZE(names));
}

/* Returns whether this is a frame of the Python interpreter, by CPython's names of functions. */
static bool is_python(const char *name)
{
	static const char *const starts[] = { "_Py", "cfunction_", "method_vectorcall" };

	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		if (!strncmp(name, starts[i], strlen(starts[i])))
			return true;
	return name[0] == 'P' && name[1] == 'y' && name[2] >= 'A' && name[2] <= 'Z';
}

/* ---- fitting into columns ---- */

static size_t part(size_t i, const char *name)
{
	return (i ? strlen(BEFORE) : 0) + strlen(name);
}

/* Removes leading namespaces until the name fits into columns; at least its last part stays. */
static const char *without_scopes(const char *name, size_t columns)
{
	const char *next;

	while (strlen(name) > columns && (next = strstr(name, "::")) && next[2])
		name = next + 2;
	return name;
}

static void put(char *buf, size_t n, size_t *len, const char *name)
{
	int more = snprintf(buf + *len, n - *len, "%s%s", *len ? BEFORE : "", name);

	*len = MIN(*len + (size_t)MAX(more, 0), n - 1);
}

/*
 * Returns the bytes that the names [0, inner) and kept take, the first and the last of them as given,
 * with the dots for what is left out.
 */
static size_t taken(const char *const *names, size_t nr, size_t inner, size_t kept)
{
	size_t len = 0;

	for (size_t i = 0; i < inner; i++)
		len += part(i, names[i]);
	len += inner < kept ? part(1, DOTS) : 0;
	len += inner <= kept ? part(1, names[kept]) : 0;
	return len + (MAX(inner, kept + 1) < nr ? part(1, DOTS) : 0);
}

static char *join(char *buf, size_t n, const char *const *names, size_t nr, size_t inner, size_t kept)
{
	size_t len = 0;

	buf[0] = '\0';
	for (size_t i = 0; i < inner; i++)
		put(buf, n, &len, names[i]);
	if (inner < kept)
		put(buf, n, &len, DOTS);
	if (inner <= kept)
		put(buf, n, &len, names[kept]);
	if (MAX(inner, kept + 1) < nr)
		put(buf, n, &len, DOTS);
	return buf;
}

/*
 * If the first and the kept name do not fit: first removes the namespaces of both, then shows only the
 * first, cut.
 */
static char *squeeze(char *buf, size_t n, const char *first, const char *kept, bool between, bool after, size_t columns)
{
	const char *two[] = { first, kept };
	size_t fixed = part(1, "") + (between ? part(1, DOTS) : 0) + (after ? part(1, DOTS) : 0);
	size_t len = 0;

	if (first != kept && columns > fixed) {
		two[1] = without_scopes(kept, columns - fixed > strlen(first) ? columns - fixed - strlen(first) : 0);
		two[0] = without_scopes(first, columns - fixed > strlen(two[1]) ? columns - fixed - strlen(two[1]) : 0);
		if (strlen(two[0]) + strlen(two[1]) + fixed <= columns) {
			put(buf, n, &len, two[0]);
			if (between)
				put(buf, n, &len, DOTS);
			put(buf, n, &len, two[1]);
			if (after)
				put(buf, n, &len, DOTS);
			return buf;
		}
	}
	first = without_scopes(first, columns);
	if (strlen(first) <= columns)
		return ttmon_fmt_text(buf, n, first);
	ttmon_fmt_text(buf, columns > strlen(DOTS) ? columns - strlen(DOTS) + 1 : columns + 1, first);
	if (columns > strlen(DOTS))
		strcat(buf, DOTS);
	return buf;
}

char *ttmon_site_join(char *buf, size_t n, const char *const *names, size_t nr, size_t columns)
{
	size_t kept, inner;

	if (!n)
		return buf;
	columns = MIN(columns ? columns : SIZE_MAX, n - 1);
	while (nr > 1 && is_start_up(names[nr - 1]))
		nr--;
	if (!nr)
		return ttmon_fmt_text(buf, n, "");
	if (taken(names, nr, nr, nr - 1) <= columns)
		return join(buf, n, names, nr, nr, nr - 1);
	kept = nr - 1;
	for (size_t i = 1; i < nr && kept == nr - 1; i++)
		if (is_python(names[i]))
			kept = i - 1;
	inner = 1;
	while (inner < nr && taken(names, nr, inner + 1, kept) <= columns)
		inner++;
	if (taken(names, nr, inner, kept) <= columns)
		return join(buf, n, names, nr, inner, kept);
	return squeeze(buf, n, names[0], names[kept], kept > 1, kept + 1 < nr, columns);
}

/* ---- symbols ---- */

/* Returns where "+0x12" begins in "symbol+0x12"; the end if there is none. */
static const char *offset_of(const char *frame)
{
	const char *plus = strrchr(frame, '+');

	if (!plus || plus == frame || strncmp(plus, "+0x", 3) != 0 || !plus[3] ||
	    plus[3 + strspn(plus + 3, "0123456789abcdef")])
		return frame + strlen(frame);
	return plus;
}

static char *show_frame(const char *frame)
{
	const char *offset = offset_of(frame);
	_cleanup_free_ char *symbol = strndup(frame, (size_t)(offset - frame));
	size_t n = MAX(strlen(frame) + 1, (size_t)TTMON_DEMANGLE_WHOLE);
	_cleanup_free_ char *name = symbol ? malloc(n) : NULL;
	char *text = NULL;

	if (!name || asprintf(&text, "%s%s", ttmon_demangle(name, n, symbol), offset) < 0)
		return NULL;
	return text;
}

char *ttmon_site_show(char *buf, size_t n, const char *const *symbols, size_t nr, size_t columns)
{
	const char *names[TTMON_SITE_FRAMES] = { 0 };
	char *own[TTMON_SITE_FRAMES];
	size_t shown = MIN(nr, (size_t)TTMON_SITE_FRAMES);

	for (size_t i = 0; i < shown; i++) {
		own[i] = show_frame(symbols[i]);
		names[i] = own[i] ? own[i] : "?";
	}
	ttmon_site_join(buf, n, names, shown, columns);
	for (size_t i = 0; i < shown; i++)
		free(own[i]);
	return buf;
}

char *ttmon_site_show_text(char *buf, size_t n, const char *site, size_t columns)
{
	_cleanup_free_ char *copy = strdup(site);
	const char *frames[TTMON_SITE_FRAMES] = { 0 };
	size_t nr = 0;

	if (!copy)
		return ttmon_fmt_text(buf, n, site);
	for (char *p = copy; p && nr < TTMON_SITE_FRAMES;) {
		char *end = strstr(p, BEFORE);

		if (end)
			*end = '\0';
		frames[nr++] = p;
		p = end ? end + strlen(BEFORE) : NULL;
	}
	return ttmon_site_show(buf, n, frames, nr, columns);
}
