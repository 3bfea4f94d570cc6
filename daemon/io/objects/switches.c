// SPDX-License-Identifier: GPL-2.0-only
/* switches.c: see switches.h. */
#include "daemon/io/objects/switches.h"

#include "daemon/io/objects/find.h"

static bool begins(const char *s, const char *with)
{
	return !strncmp(s, with, strlen(with));
}

bool ttmon_switches_file(const char *base)
{
	static const char *const files[] = {
		"_greenlet.", "libboost_context.", "libboost_coroutine.", "libboost_fiber.", "libjulia-internal",
		"libfolly.",  "libbrpc.",	   "libphoton.",	  "libcolib.",	     "libaco.",
		"libdill.",   "libmill.",	   "libboost_coroutine-", "libboost_fiber-", "libboost_context-"
	};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (begins(base, files[i]))
			return true;
	return false;
}

/*
 * Names that end in "context": the C library's, and Boost's with a prefix that others put before it
 * (bthread_jump_fcontext).
 */
static bool is_switch(const char *name, size_t n)
{
	static const char c[] = "swapcontext", boost[] = "jump_fcontext";

	return (n == sizeof(c) - 1 && !memcmp(name, c, n)) ||
	       (n >= sizeof(boost) - 1 && !memcmp(name + n - (sizeof(boost) - 1), boost, sizeof(boost) - 1));
}

bool ttmon_switches_strings(const char *p, size_t n)
{
	static const char mark[] = "context";
	const char *s = p, *end = p + n;

	/* By its last two bytes, which are rarer than the first two. */
	while ((s = ttmon_find_pair(s, end, 'x', 't'))) {
		const char *first = s;

		s += 2;
		/* Its end: NUL, or '@' and a version. */
		if (s == end || (*s && *s != '@') || (size_t)(s - p) < sizeof(mark) - 1 ||
		    memcmp(s - (sizeof(mark) - 1), mark, sizeof(mark) - 1))
			continue;
		while (first > p && first[-1])
			first--;
		if (is_switch(first, (size_t)(s - first)))
			return true;
	}
	return false;
}
