// SPDX-License-Identifier: GPL-2.0-only
#include "core/ttfns.h"

#include <ttmon/event.h>

static const struct ttmon_tt_desc descs[TTMON_TT_FN_END - TTMON_TT_FN_FIRST] = {
#define T(id, name, pattern, c, x, b, a0, a1, a2, a3, a4, a5)                                                      \
	[id - TTMON_TT_FN_FIRST] = {                                                                               \
		.cls = TTMON_TT_CLS_##c, .aux = TTMON_TT_##x, .bits = TTMON_##b, .arg = { a0, a1, a2, a3, a4, a5 } \
	},
	TTMON_TT_FN_TABLE(T)
#undef T
};

static const char *const names[TTMON_TT_FN_END - TTMON_TT_FN_FIRST] = {
#define T(id, name, ...) [id - TTMON_TT_FN_FIRST] = #name,
	TTMON_TT_FN_TABLE(T)
#undef T
};

const struct ttmon_tt_desc *ttmon_tt_fn(uint16_t fn)
{
	const struct ttmon_tt_desc *d;

	if (fn < TTMON_TT_FN_FIRST || fn >= TTMON_TT_FN_END)
		return NULL;
	d = &descs[fn - TTMON_TT_FN_FIRST];
	return d->cls ? d : NULL;
}

const char *ttmon_tt_fn_name(uint16_t fn)
{
	return ttmon_tt_fn(fn) ? names[fn - TTMON_TT_FN_FIRST] : NULL;
}
