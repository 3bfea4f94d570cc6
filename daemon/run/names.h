/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * names.h: names of functions for the summary, demangled by a process that can do nothing else:
 * symbols are what the authors of traced programs chose, and the daemon has all rights.
 */
#ifndef TTMON_RUN_NAMES_H
#define TTMON_RUN_NAMES_H

#include "lib/base/util.h"

/*
 * ret[i]: what is shown of symbols[i] (lib/demangle/demangle.h), to be freed, or NULL when out of
 * memory. A symbol that the process gave no name for, as it could not be fenced off (not x86-64),
 * died or took two seconds, stays as it is, clean for a terminal. Call it from the cold thread.
 */
void ttmon_names_show(const char *const *symbols, size_t n, char **ret);

#endif
