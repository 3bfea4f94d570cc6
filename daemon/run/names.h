/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * names.h: names of functions for the summary, demangled by a process that can do nothing else:
 * symbols are chosen by the authors of traced programs, and the daemon runs with all rights.
 */
#ifndef TTMON_RUN_NAMES_H
#define TTMON_RUN_NAMES_H

#include "lib/base/util.h"

/*
 * ret[i]: the text to show for symbols[i] (lib/demangle/demangle.h), freed by the caller, or NULL when
 * out of memory. If the process gave no name, because it could not be confined (not x86-64), died or
 * took two seconds, the symbol stays as it is, made safe for a terminal. Call it from the cold thread.
 */
void ttmon_names_show(const char *const *symbols, size_t n, char **ret);

#endif
