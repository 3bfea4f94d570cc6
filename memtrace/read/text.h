/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * memtrace/read/text.h: the lines of NVBit's mem_trace taken apart, of any spacing (line.c). The fast
 * way for lines as the tool writes them is in text.c.
 */
#ifndef TTMON_MEMTRACE_IN_TEXT_H
#define TTMON_MEMTRACE_IN_TEXT_H

#include "memtrace/model/mt.h"

enum ttmon_mt_line {
	TTMON_MT_LINE_FOREIGN, /* another process's, or the tool's own talk */
	TTMON_MT_LINE_TORN,    /* begins as one of ours, or is the end of one */
	TTMON_MT_LINE_BANNER,
	TTMON_MT_LINE_ACCESS,
	TTMON_MT_LINE_LAUNCH,
};

struct ttmon_mt_text_line {
	bool old;	  /* of 1.3 or before: no context, no id */
	uint64_t ctx, id; /* 0 where old */
	/* ACCESS */
	uint32_t cta[3], warp;
	const char *op;
	size_t op_len;
	uint64_t addr[TTMON_MT_LANES];
	/* LAUNCH; kernel is name of name_len bytes */
	struct ttmon_mt_launch launch;
	const char *name;
	size_t name_len;
	/* BANNER: "1.5.5", of version_len bytes, 0: it does not say */
	const char *version;
	size_t version_len;
};

/* What a line of n bytes, without its end, is. ret: what its kind has; anything else is anything. */
enum ttmon_mt_line ttmon_mt_parse_line(const char *p, size_t n, struct ttmon_mt_text_line *ret);
/*
 * Where the next line of ours may begin in the middle of p, not at its first byte and not before from;
 * NULL: nowhere. old: lines of 1.3 too.
 */
const char *ttmon_mt_line_next(const char *p, size_t from, size_t n, bool old);

#endif
