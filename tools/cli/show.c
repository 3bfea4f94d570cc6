// SPDX-License-Identifier: GPL-2.0-only
/* show.c: see show.h. Pure except for the functions that look at the terminal. */
#include "tools/cli/show.h"

#include <time.h>

#include <sys/ioctl.h>

const json_t *ttmon_show_at(const json_t *root, const char *where)
{
	char key[64];

	while (root) {
		size_t n = strcspn(where, ".");

		if (n >= sizeof(key))
			return NULL;
		memcpy(key, where, n);
		key[n] = '\0';
		root = json_object_get(root, key);
		if (!where[n])
			break;
		where += n + 1;
	}
	return root;
}

uint64_t ttmon_show_u64(const json_t *root, const char *where)
{
	const json_t *value = ttmon_show_at(root, where);
	unsigned long long n;
	char *end;

	if (json_is_integer(value))
		return json_integer_value(value) < 0 ? 0 : (uint64_t)json_integer_value(value);
	if (!json_is_string(value) || json_string_value(value)[0] < '0' || json_string_value(value)[0] > '9')
		return 0;
	errno = 0;
	n = strtoull(json_string_value(value), &end, 10);
	return errno || *end ? 0 : n;
}

const char *ttmon_show_time(uint64_t ns, int64_t real_offset_ns, char buf[TTMON_SHOW_TIME])
{
	time_t s = (time_t)(((int64_t)ns + real_offset_ns) / (int64_t)NSEC_PER_SEC);
	struct tm tm;

	if (!localtime_r(&s, &tm) || !strftime(buf, TTMON_SHOW_TIME, "%H:%M:%S", &tm))
		snprintf(buf, TTMON_SHOW_TIME, "?");
	return buf;
}

const char *ttmon_show_str(const json_t *root, const char *where)
{
	const char *text = json_string_value(ttmon_show_at(root, where));

	return text ? text : "";
}

bool ttmon_show_bool(const json_t *root, const char *where)
{
	return json_is_true(ttmon_show_at(root, where));
}

char *ttmon_show_clean(const char *text)
{
	size_t n = strlen(text) + 1;
	char *copy = malloc(n);

	return copy ? ttmon_fmt_text(copy, n, text) : NULL;
}

const char *ttmon_show_escape(enum ttmon_show_colour colour)
{
	static const char *const escapes[] = {
		[TTMON_SHOW_PLAIN] = "\033[0m",
		[TTMON_SHOW_GOOD] = "\033[32m",
		[TTMON_SHOW_BAD] = "\033[31m",
		[TTMON_SHOW_WARN] = "\033[33m",
	};
	const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

	if (!isatty(STDOUT_FILENO) || (no && *no) || !term || !strcmp(term, "dumb"))
		return "";
	return escapes[colour];
}

size_t ttmon_show_columns(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		return 0;
	return size.ws_col ? size.ws_col : 80;
}
