// SPDX-License-Identifier: GPL-2.0-only
/*
 * opcode.c: what a SASS opcode does, from its name: the first component says space and kind, the last
 * component that is a width and nothing else the width. A name that is not in the table is a guess and
 * says so.
 */
#include "memtrace/model/mt.h"
#include "lib/base/util.h"

#define NOT_MEMORY TTMON_MT_KIND_MAX

struct op {
	const char *name;
	uint8_t space, kind;
	uint8_t width; /* where no component says one */
};

static const struct op ops[] = {
	{ "LDG", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4 },
	{ "STG", TTMON_MT_GLOBAL, TTMON_MT_STORE, 4 },
	{ "LDS", TTMON_MT_SHARED, TTMON_MT_LOAD, 4 },
	{ "STS", TTMON_MT_SHARED, TTMON_MT_STORE, 4 },
	{ "LD", TTMON_MT_GENERIC, TTMON_MT_LOAD, 4 },
	{ "ST", TTMON_MT_GENERIC, TTMON_MT_STORE, 4 },
	{ "LDL", TTMON_MT_LOCAL, TTMON_MT_LOAD, 4 },
	{ "STL", TTMON_MT_LOCAL, TTMON_MT_STORE, 4 },
	{ "LDU", TTMON_MT_GENERIC, TTMON_MT_LOAD, 4 },
	{ "LDSLK", TTMON_MT_SHARED, TTMON_MT_LOAD, 4 },
	{ "STSCUL", TTMON_MT_SHARED, TTMON_MT_STORE, 4 },
	{ "STSUL", TTMON_MT_SHARED, TTMON_MT_STORE, 4 },
	{ "STAS", TTMON_MT_SHARED, TTMON_MT_STORE, 4 },
	{ "LDGMC", TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4 },
	{ "ATOM", TTMON_MT_GENERIC, TTMON_MT_ATOM, 4 },
	{ "ATOMG", TTMON_MT_GLOBAL, TTMON_MT_ATOM, 4 },
	{ "ATOMS", TTMON_MT_SHARED, TTMON_MT_ATOM, 4 },
	{ "SYNCS", TTMON_MT_SHARED, TTMON_MT_ATOM, 8 }, /* mbarrier objects */
	{ "RED", TTMON_MT_GENERIC, TTMON_MT_RED, 4 },
	{ "REDG", TTMON_MT_GLOBAL, TTMON_MT_RED, 4 },
	{ "REDS", TTMON_MT_SHARED, TTMON_MT_RED, 4 },
	{ "REDAS", TTMON_MT_SHARED, TTMON_MT_RED, 4 },
	{ "REDGMC", TTMON_MT_GLOBAL, TTMON_MT_RED, 4 },
	{ "LDSM", TTMON_MT_SHARED, TTMON_MT_LDMATRIX, 16 },
	{ "STSM", TTMON_MT_SHARED, TTMON_MT_STMATRIX, 16 },
	{ "LDGSTS", TTMON_MT_SHARED, TTMON_MT_COPY_DST, 4 }, /* its first operand */
	/* These give addresses and move nothing by lanes. */
	{ "CCTL", TTMON_MT_GENERIC, NOT_MEMORY, 0 },
	{ "CCTLL", TTMON_MT_LOCAL, NOT_MEMORY, 0 },
	{ "CCTLT", TTMON_MT_GENERIC, NOT_MEMORY, 0 },
	{ "QSPC", TTMON_MT_GENERIC, NOT_MEMORY, 0 },
	{ "MEMBAR", TTMON_MT_GENERIC, NOT_MEMORY, 0 },
	{ "ERRBAR", TTMON_MT_GENERIC, NOT_MEMORY, 0 },
	{ "LDC", TTMON_MT_GENERIC, NOT_MEMORY, 0 },
	{ "ULDC", TTMON_MT_GENERIC, NOT_MEMORY, 0 },
	{ "LDGDEPBAR", TTMON_MT_GENERIC, NOT_MEMORY, 0 },
	{ "UBLKCP", TTMON_MT_GENERIC, NOT_MEMORY, 0 },
	{ "UBLKPF", TTMON_MT_GENERIC, NOT_MEMORY, 0 },
	{ "UBLKRED", TTMON_MT_GENERIC, NOT_MEMORY, 0 },
	{ "UTMALDG", TTMON_MT_GENERIC, NOT_MEMORY, 0 },
	{ "UTMASTG", TTMON_MT_GENERIC, NOT_MEMORY, 0 },
	{ "UTMAREDG", TTMON_MT_GENERIC, NOT_MEMORY, 0 },
	{ "UTMAPF", TTMON_MT_GENERIC, NOT_MEMORY, 0 },
	{ "UTMACCTL", TTMON_MT_GENERIC, NOT_MEMORY, 0 },
	{ "LDTM", TTMON_MT_GENERIC, NOT_MEMORY, 0 },
	{ "STTM", TTMON_MT_GENERIC, NOT_MEMORY, 0 },
};

/*
 * Components that are a width. What only begins or ends like one is not: LTC128B is a hint to the
 * cache, M88 a shape.
 */
static const struct width {
	const char *name;
	uint8_t width;
} widths[] = {
	{ "64", 8 },	 { "128", 16 },	   { "32", 4 },	    { "U8", 1 },      { "S8", 1 },    { "U16", 2 },
	{ "S16", 2 },	 { "F16", 2 },	   { "BF16", 2 },   { "U32", 4 },     { "S32", 4 },   { "F32", 4 },
	{ "U64", 8 },	 { "S64", 8 },	   { "F64", 8 },    { "U128", 16 },   { "256", 32 },  { "U256", 32 },
	{ "F16x2", 4 },	 { "BF16x2", 4 },  { "F16_V2", 4 }, { "BF16_V2", 4 }, { "F16x4", 8 }, { "BF16x4", 8 },
	{ "F16x8", 16 }, { "BF16x8", 16 }, { "F32x2", 8 },  { "F32x4", 16 },
};

/* Opcodes that the rule above gets wrong, the whole name or its beginning up to a point. */
static const struct op overrides[] = {
	{ "CCTL.E.PF1", TTMON_MT_GLOBAL, TTMON_MT_PREFETCH, 4 },
	{ "CCTL.E.PF1.5", TTMON_MT_GLOBAL, TTMON_MT_PREFETCH, 4 },
	{ "CCTL.E.PF2", TTMON_MT_GLOBAL, TTMON_MT_PREFETCH, 4 },
	{ "CCTL.PF1", TTMON_MT_GENERIC, TTMON_MT_PREFETCH, 4 },
	{ "CCTL.PF2", TTMON_MT_GENERIC, TTMON_MT_PREFETCH, 4 },
	{ "SYNCS.CCTL", TTMON_MT_SHARED, NOT_MEMORY, 0 },
};

static bool is(const char *text, size_t n, const char *name)
{
	return strlen(name) == n && !memcmp(text, name, n);
}

static const struct op * override(const char *opcode, size_t len)
{
	for (size_t i = 0; i < ARRAY_SIZE(overrides); i++) {
		size_t n = strlen(overrides[i].name);

		if (len >= n && !memcmp(opcode, overrides[i].name, n) && (len == n || opcode[n] == '.'))
			return &overrides[i];
	}
	return NULL;
}

/* The last component that is a width; 0: none. */
static uint8_t width_of(const char *p, const char *end)
{
	uint8_t width = 0;

	while (p < end) {
		const char *dot = memchr(p, '.', (size_t)(end - p)) ?: end;

		for (size_t i = 0; i < ARRAY_SIZE(widths); i++)
			if (is(p, (size_t)(dot - p), widths[i].name))
				width = widths[i].width;
		p = dot + (dot < end);
	}
	return width;
}

bool ttmon_mt_sass(const char *opcode, size_t len, unsigned int operand, struct ttmon_mt_site *site)
{
	const char *dot = len ? memchr(opcode, '.', len) ?: opcode + len : opcode;
	const struct op *op = len ? override(opcode, len) : NULL;
	uint8_t width = 0;

	for (size_t i = 0; i < ARRAY_SIZE(ops) && !op; i++)
		if (is(opcode, (size_t)(dot - opcode), ops[i].name))
			op = &ops[i];
	/* The rows of a matrix are 16 bytes whatever their elements are. */
	if (dot < opcode + len && !(op && (op->kind == TTMON_MT_LDMATRIX || op->kind == TTMON_MT_STMATRIX)))
		width = width_of(dot + 1, opcode + len);
	site->flags &= (uint8_t)~TTMON_MT_SITE_GUESSED;
	if (!op || op->kind == NOT_MEMORY) {
		site->space = TTMON_MT_GENERIC;
		site->kind = TTMON_MT_LOAD;
		site->width = width ?: 4;
		if (!op)
			site->flags |= TTMON_MT_SITE_GUESSED;
		return !op;
	}
	site->space = op->space;
	site->kind = op->kind;
	site->width = width ?: op->width;
	if (op->kind == TTMON_MT_COPY_DST && operand) {
		site->space = TTMON_MT_GLOBAL;
		site->kind = TTMON_MT_COPY_SRC;
	}
	return true;
}

const char *ttmon_mt_space_name(unsigned int space)
{
	static const char *const names[TTMON_MT_SPACE_MAX] = { "generic", "global", "shared", "local" };

	return space < TTMON_MT_SPACE_MAX ? names[space] : "?";
}

const char *ttmon_mt_kind_name(unsigned int kind)
{
	static const char *const names[TTMON_MT_KIND_MAX] = { "load",	   "store",	"atomic",
							      "reduction", "copy from", "copy to",
							      "ldmatrix",  "stmatrix",	"prefetch" };

	return kind < TTMON_MT_KIND_MAX ? names[kind] : "?";
}
