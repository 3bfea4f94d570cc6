/* SPDX-License-Identifier: GPL-2.0-only */
/* ptx_text.h: PTX texts that are rewritten in tests. cmocka.h stands before it. */
#ifndef PTX_TEXT_H
#define PTX_TEXT_H

#include "memtrace/ptx/ptx.h"
#include "lib/base/util.h"

#define HEAD ".version 8.8\n.target sm_100a\n.address_size 64\n"
#define BEGIN                                                                                      \
	HEAD ".visible .entry k(.param .u64 p)\n{\n.reg .b64 %rd<5>;\n.reg .b32 %r<5>, %x;\n.reg " \
	     ".pred %p<3>;\n"
#define END	     "\nret;\n}\n"
#define KERNEL(body) BEGIN body END
#define ALL	     (1u << TTMON_MT_GLOBAL | 1u << TTMON_MT_SHARED | 1u << TTMON_MT_LOCAL)

static const struct ttmon_ptx_opts everything = { .spaces = ALL, .instr_end = UINT32_MAX };

static inline void rewrite(const char *text, const struct ttmon_ptx_opts *opts, struct ttmon_ptx_result *r)
{
	char why[200] = "";

	*r = (struct ttmon_ptx_result){ 0 };
	if (ttmon_ptx_rewrite(text, strlen(text), opts, r, why, sizeof(why)))
		fail_msg("%s", why);
}

#endif
