// SPDX-License-Identifier: GPL-2.0-only
#include "lib/os/log.h"

#include <stdarg.h>
#include <sys/stat.h>

#include "lib/base/fmt.h"

static enum ttmon_log_level max_level = TTMON_LOG_INFO;
static bool live; /* atomic: a live line is shown on the terminal */

void ttmon_log_set_level(enum ttmon_log_level level)
{
	max_level = level;
}

enum ttmon_log_level ttmon_log_get_level(void)
{
	return max_level;
}

int ttmon_log_parse_level(const char *name, enum ttmon_log_level *ret)
{
	static const char *const names[] = { "error", "warn", "info", "debug" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(name, names[i])) {
			*ret = (enum ttmon_log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

/* systemd sets JOURNAL_STREAM to the device and inode of a service's stderr (systemd.exec(5)). */
static bool to_journal(void)
{
	static int known = -1;
	const char *env = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	if (known < 0)
		known = env && sscanf(env, "%llu:%llu", &dev, &ino) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
			st.st_dev == dev && st.st_ino == ino;
	return known > 0;
}

static const char *clear_live(void)
{
	return __atomic_exchange_n(&live, false, __ATOMIC_RELAXED) ? "\r\033[K" : "";
}

void ttmon_log_live(const char *line)
{
	if (line) {
		__atomic_store_n(&live, true, __ATOMIC_RELAXED);
		fprintf(stderr, "\r%s\033[K", line);
	} else {
		fputs(clear_live(), stderr);
	}
}

void ttmon_log(enum ttmon_log_level level, const char *fmt, ...)
{
	static const int priority[] = { 3, 4, 6, 7 };
	int saved = errno;
	char text[2048], line[2048];
	va_list ap;

	if (level > max_level)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/*
	 * The message may contain paths and names of programs: these must not begin a new line or control the
	 * terminal.
	 */
	ttmon_fmt_text(line, sizeof(line), text);
	if (to_journal())
		fprintf(stderr, "<%d>%s\n", priority[level], line);
	else
		fprintf(stderr, "%sttmond: %s\n", clear_live(), line);
	errno = saved;
}
