// SPDX-License-Identifier: GPL-2.0-only
/*
 * op.c: what a PTX opcode accesses. Qualifiers stand in different orders in different versions of the
 * language, so each is looked for by itself: ".v4" and the type say the width, a state space says the
 * space. Constants and parameters are no memory accesses here.
 */
#include "memtrace/ptx/ptx_int.h"
#include "lib/base/util.h"

struct qualifiers {
	unsigned int bytes, vector;  /* 0: not said */
	int space;		     /* enum ttmon_mt_space; -1: constants, parameters */
	unsigned int matrices, rows; /* ldmatrix, stmatrix: .x4; 16 of .m16n16 */
	bool tensormap, from_global, cg;
};

static bool is(const char *s, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(s, word, len);
}

static bool begins(const char *s, size_t len, const char *with)
{
	return len >= strlen(with) && !memcmp(s, with, strlen(with));
}

static void qualifier(struct qualifiers *q, const char *s, size_t len)
{
	static const struct {
		const char *name;
		int space;
	} spaces[] = {
		{ "global", TTMON_MT_GLOBAL },
		{ "shared", TTMON_MT_SHARED },
		{ "shared::cta", TTMON_MT_SHARED },
		{ "shared::cluster", TTMON_MT_SHARED },
		{ "local", TTMON_MT_LOCAL },
		{ "const", -1 },
		{ "param", -1 },
		{ "param::entry", -1 },
		{ "param::func", -1 },
	};
	struct ttmon_ptx_tok dotted = { .s = s - 1, .len = len + 1, .kind = TTMON_PTX_WORD };
	int bytes = ttmon_ptx_type(&dotted);

	if (bytes > 0)
		q->bytes = (unsigned int)bytes;
	for (size_t i = 0; i < ARRAY_SIZE(spaces); i++) {
		if (!is(s, len, spaces[i].name))
			continue;
		/* cp.async names the space of its destination first. */
		if (q->space == TTMON_MT_SHARED && spaces[i].space == TTMON_MT_GLOBAL)
			q->from_global = true;
		else
			q->space = spaces[i].space;
	}
	if (len == 2 && s[0] == 'v' && strchr("248", s[1]))
		q->vector = (unsigned int)(s[1] - '0');
	if (len == 2 && s[0] == 'x' && strchr("124", s[1]))
		q->matrices = (unsigned int)(s[1] - '0');
	if (is(s, len, "m16n16"))
		q->rows = 16;
	q->tensormap |= is(s, len, "tensormap");
	q->cg |= is(s, len, "cg");
}

/* Opcodes that access memory and say no address for each lane, or one that is none of a lane's own. */
static bool other(const char *op, size_t len)
{
	static const char *const exact[] = { "tex", "tld4", "suld", "sust", "sured", "multimem", "discard" };
	static const char *const with[] = { "st.async.",      "st.bulk.",	    "red.async.",
					    "cp.async.bulk.", "cp.reduce.async.",   "cp.async.mbarrier.",
					    "mbarrier.",      "wgmma.mma_async.",   "wmma.load.",
					    "wmma.store.",    "tcgen05.cp.",	    "tcgen05.mma.",
					    "tcgen05.alloc.", "tensormap.replace.", "clusterlaunchcontrol.try_cancel.",
					    "tcgen05.ld.",    "tcgen05.st.",	    "tensormap.cp_fenceproxy." };
	size_t first = 0;

	if (begins(op, len, "cp.async.bulk.commit_group") || begins(op, len, "cp.async.bulk.wait_group"))
		return false;
	while (first < len && op[first] != '.')
		first++;
	for (size_t i = 0; i < ARRAY_SIZE(exact); i++) {
		if (is(op, first, exact[i]))
			return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(with); i++) {
		if (begins(op, len, with[i]))
			return true;
	}
	return false;
}

static int kind_of(const char *op, size_t len, unsigned int operand)
{
	static const struct {
		const char *name;
		int kind;
	} kinds[] = { { "ld", TTMON_MT_LOAD },		 { "ldu", TTMON_MT_LOAD },
		      { "st", TTMON_MT_STORE },		 { "atom", TTMON_MT_ATOM },
		      { "red", TTMON_MT_RED },		 { "ldmatrix", TTMON_MT_LDMATRIX },
		      { "stmatrix", TTMON_MT_STMATRIX }, { "prefetch", TTMON_MT_PREFETCH },
		      { "prefetchu", TTMON_MT_PREFETCH } };
	size_t first = 0;

	if (begins(op, len, "cp.async.ca.") || begins(op, len, "cp.async.cg."))
		return operand == 0 ? TTMON_MT_COPY_DST : operand == 1 ? TTMON_MT_COPY_SRC : -1;
	while (first < len && op[first] != '.')
		first++;
	for (size_t i = 0; i < ARRAY_SIZE(kinds) && !operand && first < len; i++) {
		if (is(op, first, kinds[i].name))
			return kinds[i].kind;
	}
	return -1;
}

bool ttmon_ptx_classify(const char *op, size_t len, unsigned int operand, struct ttmon_mt_site *site,
			unsigned int *limit, bool *left_out)
{
	struct qualifiers q = { .space = TTMON_MT_GENERIC, .matrices = 1, .rows = 8 };
	int kind;

	*left_out = other(op, len);
	if (*left_out)
		return false;
	kind = kind_of(op, len, operand);
	if (kind < 0)
		return false;
	for (size_t at = 0, n; at < len; at += n + 1) {
		const char *dot = memchr(op + at, '.', len - at);

		n = dot ? (size_t)(dot - op) - at : len - at;
		if (at)
			qualifier(&q, op + at, n);
	}
	if (q.space < 0)
		return false;
	switch (kind) {
	case TTMON_MT_LDMATRIX:
	case TTMON_MT_STMATRIX:
		q.bytes = 16;
		q.vector = 1;
		break;
	case TTMON_MT_PREFETCH:
		/* A tensor map's is a prefetch of a descriptor. */
		if (q.tensormap)
			return false;
		q.bytes = 1;
		break;
	case TTMON_MT_COPY_DST:
	case TTMON_MT_COPY_SRC:
		/* How much is an operand; .cg knows 16 alone. */
		q.bytes = q.cg ? 16 : 4;
		q.space = kind == TTMON_MT_COPY_DST ? TTMON_MT_SHARED : TTMON_MT_GLOBAL;
		break;
	default:
		if (!q.bytes) {
			*left_out = true;
			return false;
		}
	}
	site->space = (uint8_t)q.space;
	site->kind = (uint8_t)kind;
	site->width = (uint8_t)(q.bytes * MAX(q.vector, 1));
	site->flags = 0;
	if (limit)
		*limit = kind == TTMON_MT_LDMATRIX || kind == TTMON_MT_STMATRIX
				 ? MIN(q.rows * q.matrices, TTMON_MT_LANES)
				 : TTMON_MT_LANES;
	return true;
}

bool ttmon_ptx_op(const char *opcode, size_t len, unsigned int operand, struct ttmon_mt_site *site, bool *left_out)
{
	return ttmon_ptx_classify(opcode, len, operand, site, NULL, left_out);
}
