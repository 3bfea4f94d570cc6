/* SPDX-License-Identifier: GPL-2.0-only */
/* jobs_int.h: what jobs.c and jobs_ahead.c share; both run in a helper. */
#ifndef TTMON_JOBS_INT_H
#define TTMON_JOBS_INT_H

#include "lib/os/helpers.h"

/* Below root, whatever links there say. */
int ttmon_job_open_in(int root, const char *path, int flags);
int ttmon_job_ahead(const void *ctx, const void *in, size_t n, int fd, struct ttmon_helper_out *out);

#endif
