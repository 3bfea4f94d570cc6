/* SPDX-License-Identifier: GPL-2.0-only */
/* opts_int.h: what the two parts of the command line share. */
#ifndef TTMON_OPTS_INT_H
#define TTMON_OPTS_INT_H

#include "opts.h"

/* Say what is wrong, on stderr. -EINVAL. */
int ttmon_opts_bad(const char *fmt, ...) _printf_(1, 2);
/* LIB:SYMBOL,size=N,out=N|ret or LIB:SYMBOL,ptr=N: -EINVAL, said; -ENOMEM. */
int ttmon_opts_user_fn(struct ttmon_opts *o, const char *opt, const char *spec, bool is_free) _must_check;
/* gain, first, N, or bytes with a unit. -EINVAL, said. */
int ttmon_opts_pin_after(struct ttmon_opts *o, const char *opt, const char *text) _must_check;

#endif
