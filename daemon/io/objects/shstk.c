// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/io/objects/shstk.h"

/* The next line, x86_Thread_features_locked, lists what the program can no longer change. */
bool ttmon_shstk_is_on(const char *status)
{
	const char *line = strstr(status, "\nx86_Thread_features:\t"), *word;

	if (!line)
		return false;
	line++;
	word = strstr(line, "shstk");
	return word && word < line + strcspn(line, "\n");
}

bool ttmon_shstk_breaks(bool (*has)(const char *function))
{
	return has("shstk_setup") && !has("shstk_update_last_frame");
}
