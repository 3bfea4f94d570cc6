/* SPDX-License-Identifier: GPL-2.0-only */
/* runsite.h: a call site of a database, as people read it (lib/demangle/site.h). Pure, any thread. */
#ifndef TTMON_DEMANGLE_RUNSITE_H
#define TTMON_DEMANGLE_RUNSITE_H

#include "lib/read/run.h"

/*
 * All frames of a site of run, as many as take columns (0: no limit) and n bytes; the first alone
 * says where in its function it is. "?" where no frames are known. ttmon_run_site_text() is what
 * JSON has and rows are told apart by. Returns buf.
 */
char *ttmon_site_show_run(char *buf, size_t n, const struct ttmon_run *run, uint32_t site, size_t columns);

#endif
