/* SPDX-License-Identifier: GPL-2.0-only */
/* ttfns.h: what a probed function of tt-metal is (tt_fns.h), by id. Pure. */
#ifndef TTMON_TTFNS_H
#define TTMON_TTFNS_H

#include <ttmon/tt_fns.h>

#include "util/util.h"

/* NULL: no such function. */
const struct ttmon_tt_desc *ttmon_tt_fn(uint16_t fn);
const char *ttmon_tt_fn_name(uint16_t fn);

#endif
