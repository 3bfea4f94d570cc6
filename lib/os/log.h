/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * log.h: messages on stderr for people and the journal. Code below daemon/core and lib/base never
 * logs.
 */
#ifndef TTMON_LOG_H
#define TTMON_LOG_H

#include "lib/base/util.h"

enum ttmon_log_level { TTMON_LOG_ERROR, TTMON_LOG_WARN, TTMON_LOG_INFO, TTMON_LOG_DEBUG };

/* Sets the level above which messages are dropped. Default TTMON_LOG_INFO. */
void ttmon_log_set_level(enum ttmon_log_level level);
enum ttmon_log_level ttmon_log_get_level(void);
/* "error", "warn", "info", "debug"; -EINVAL for anything else. */
int ttmon_log_parse_level(const char *name, enum ttmon_log_level *ret) _must_check;

/*
 * Writes one line "ttmond: text"; with a prefix such as "<3>" if stderr is the journal. Keeps errno.
 * Thread-safe.
 */
void ttmon_log(enum ttmon_log_level level, const char *fmt, ...) _printf_(2, 3);
/*
 * Shows a line without a newline, which is overwritten each time; a message replaces it. NULL: removes
 * it.
 */
void ttmon_log_live(const char *line);

#define log_error(...) ttmon_log(TTMON_LOG_ERROR, __VA_ARGS__)
#define log_warn(...)  ttmon_log(TTMON_LOG_WARN, __VA_ARGS__)
#define log_info(...)  ttmon_log(TTMON_LOG_INFO, __VA_ARGS__)
#define log_debug(...) ttmon_log(TTMON_LOG_DEBUG, __VA_ARGS__)

/* Logs an error and returns its number: return log_error_r(-ENOMEM, "cannot ..."). */
#define log_error_r(err, ...)           \
	({                              \
		int err_ = (err);       \
		log_error(__VA_ARGS__); \
		err_;                   \
	})

#endif
