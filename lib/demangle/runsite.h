/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * runsite.h: the text of a call site of a database for people (lib/demangle/site.h). Pure, any thread.
 */
#ifndef TTMON_DEMANGLE_RUNSITE_H
#define TTMON_DEMANGLE_RUNSITE_H

#include "lib/read/run.h"

/*
 * Writes as many frames of a site as fit into columns (0: no limit) and n bytes; only the first frame
 * shows its offset in the function. "?" if no frames are known. Returns buf. This text is for display
 * only: JSON and comparisons use ttmon_run_site_text().
 */
char *ttmon_site_show_run(char *buf, size_t n, const struct ttmon_run *run, uint32_t site, size_t columns);

#endif
