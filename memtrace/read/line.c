// SPDX-License-Identifier: GPL-2.0-only
/*
 * line.c: a line of NVBit's mem_trace of any version, with any blanks and hexadecimal numbers of any
 * length. A kernel's name may hold everything, also what stands between the fields: a launch is read
 * from its right end.
 */
#include "memtrace/read/text.h"
#include "lib/base/util.h"

struct cur {
	const char *p, *end;
};

static void blanks(struct cur *c)
{
	while (c->p < c->end && (*c->p == ' ' || *c->p == '\t'))
		c->p++;
}

/* text, where a blank of it is any number of blanks. */
static bool lit(struct cur *c, const char *text)
{
	struct cur at = *c;

	for (; *text; text++) {
		if (*text == ' ') {
			blanks(&at);
			continue;
		}
		if (at.p == at.end || *at.p != *text)
			return false;
		at.p++;
	}
	*c = at;
	return true;
}

static bool dec(struct cur *c, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;
	const char *p = c->p;

	for (; p < c->end && *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v) || v > max)
			return false;
	if (p == c->p)
		return false;
	c->p = p;
	*ret = v;
	return true;
}

/* 16: it is none. */
static unsigned int digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? (unsigned int)(c - 'a' + 10) : 16;
}

static bool hex(struct cur *c, uint64_t *ret)
{
	uint64_t v = 0;
	const char *p;

	if (c->end - c->p < 3 || c->p[0] != '0' || (c->p[1] | 0x20) != 'x')
		return false;
	for (p = c->p + 2; p < c->end; p++) {
		unsigned int d = digit(*p);

		if (d > 15)
			break;
		if (v >> 60)
			return false;
		v = v << 4 | d;
	}
	if (p == c->p + 2)
		return false;
	c->p = p;
	*ret = v;
	return true;
}

/* "x,y,z" */
static bool triple(struct cur *c, uint32_t *ret)
{
	uint64_t v[3];

	if (!dec(c, INT32_MAX, &v[0]) || !lit(c, " , ") || !dec(c, INT32_MAX, &v[1]) || !lit(c, " , ") ||
	    !dec(c, INT32_MAX, &v[2]))
		return false;
	for (unsigned int i = 0; i < 3; i++)
		ret[i] = (uint32_t)v[i];
	return true;
}

/* A stream's id is printed signed. */
static bool stream(struct cur *c, uint64_t *ret)
{
	bool minus = lit(c, "-");

	if (!dec(c, UINT64_MAX, ret))
		return false;
	if (minus)
		*ret = -*ret;
	return true;
}

static bool op_char(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_';
}

/* "CTA x,y,z - warp W - OPCODE - 0x... x 32" and nothing more */
static bool access_line(struct cur c, struct ttmon_mt_text_line *ret)
{
	bool padded = false;
	uint64_t warp;

	if (!lit(&c, "CTA ") || !triple(&c, ret->cta) || !lit(&c, " - warp ") || !dec(&c, 0xffff, &warp) ||
	    !lit(&c, " - "))
		return false;
	ret->warp = (uint32_t)warp;
	ret->op = c.p;
	while (c.p < c.end && op_char(*c.p))
		c.p++;
	ret->op_len = (size_t)(c.p - ret->op);
	if (!ret->op_len || *ret->op < 'A' || *ret->op > 'Z' || !lit(&c, " - "))
		return false;
	for (unsigned int i = 0; i < TTMON_MT_LANES; i++) {
		const char *before = c.p;

		blanks(&c);
		if (i && c.p == before)
			return false;
		before = c.p;
		if (!hex(&c, &ret->addr[i]))
			return false;
		/* Where they are padded, a shorter one has lost its end. */
		if (i && padded && c.p - before != 18)
			return false;
		padded = c.p - before == 18;
	}
	blanks(&c);
	return c.p == c.end;
}

/* The last " - WHAT" in the line. */
static const char *from_right(const struct cur *c, const char *what)
{
	size_t k = strlen(what);

	for (const char *p = c->end - k; p >= c->p; p--)
		if (*p == *what && !memcmp(p, what, k))
			return p;
	return NULL;
}

/* "Kernel name NAME - grid launch id I - grid size ..."; of 1.3: "Kernel NAME - grid size ..." */
static bool launch_line(struct cur c, bool old, struct ttmon_mt_text_line *ret)
{
	struct ttmon_mt_launch *l = &ret->launch;
	uint64_t regs, shmem;
	const char *p;

	*l = (struct ttmon_mt_launch){ 0 };
	p = (size_t)(c.end - c.p) < 24 ? NULL : from_right(&c, old ? " - grid size " : " - grid launch id ");
	if (!p)
		return false;
	ret->name = c.p;
	ret->name_len = (size_t)(p - c.p);
	c.p = p;
	if (!old && (!lit(&c, " - grid launch id ") || !dec(&c, UINT64_MAX, &ret->id)))
		return false;
	if (!lit(&c, " - grid size ") || !triple(&c, l->grid) || !lit(&c, " - block size ") || !triple(&c, l->block) ||
	    !lit(&c, " - nregs ") || !dec(&c, UINT32_MAX, &regs) || !lit(&c, " - shmem ") ||
	    !dec(&c, UINT32_MAX, &shmem) || !lit(&c, " - cuda stream id ") || !stream(&c, &l->stream))
		return false;
	blanks(&c);
	l->regs = (uint32_t)regs;
	l->shmem = (uint32_t)shmem;
	l->id = ret->id;
	l->ctx = ret->ctx;
	return c.p == c.end;
}

static bool banner(const struct cur *c, struct ttmon_mt_text_line *ret)
{
	static const char what[] = "NVBit (NVidia Binary Instrumentation Tool";
	const char *p = memmem(c->p, (size_t)(c->end - c->p), what, sizeof(what) - 1);

	if (!p)
		return false;
	p += sizeof(what) - 1;
	while (p < c->end && (*p == ' ' || *p == 'v'))
		p++;
	ret->version = p;
	while (p < c->end && ((*p >= '0' && *p <= '9') || *p == '.'))
		p++;
	ret->version_len = (size_t)(p - ret->version);
	return true;
}

/* The end of a torn line: addresses alone, at least one of them whole. */
static bool addresses(struct cur c)
{
	uint64_t v;
	unsigned int n = 0;

	/* The first may have lost its beginning. */
	while (c.p < c.end && *c.p != ' ' &&
	       ((*c.p >= '0' && *c.p <= '9') || (*c.p >= 'a' && *c.p <= 'f') || *c.p == 'x'))
		c.p++;
	for (blanks(&c); c.p < c.end; blanks(&c), n++)
		if (!hex(&c, &v))
			return false;
	return n;
}

enum ttmon_mt_line ttmon_mt_parse_line(const char *p, size_t n, struct ttmon_mt_text_line *ret)
{
	struct cur c = { p, p + n };

	while (c.p < c.end && (c.end[-1] == ' ' || c.end[-1] == '\r' || c.end[-1] == '\t'))
		c.end--;
	ret->old = false;
	if (lit(&c, "MEMTRACE:")) {
		blanks(&c);
		if (lit(&c, "STARTING CONTEXT") || lit(&c, "TERMINATING CONTEXT"))
			return TTMON_MT_LINE_FOREIGN;
		if (!lit(&c, "CTX ") || !hex(&c, &ret->ctx))
			return TTMON_MT_LINE_TORN;
		if (lit(&c, " , Inspecting"))
			return TTMON_MT_LINE_FOREIGN;
		if (lit(&c, " - LAUNCH - ")) {
			uint64_t pc;

			if (lit(&c, "Kernel pc ") && (!hex(&c, &pc) || !lit(&c, " - ")))
				return TTMON_MT_LINE_TORN;
			return lit(&c, "Kernel name ") && launch_line(c, false, ret) ? TTMON_MT_LINE_LAUNCH
										     : TTMON_MT_LINE_TORN;
		}
		if (!lit(&c, " - grid_launch_id ") || !dec(&c, UINT64_MAX, &ret->id) || !lit(&c, " - ") ||
		    !access_line(c, ret))
			return TTMON_MT_LINE_TORN;
		return TTMON_MT_LINE_ACCESS;
	}
	ret->old = true;
	ret->ctx = ret->id = 0;
	if (lit(&c, "CTA ")) {
		c.p = p;
		if (access_line(c, ret))
			return TTMON_MT_LINE_ACCESS;
		return memmem(p, n, " - warp ", 8) ? TTMON_MT_LINE_TORN : TTMON_MT_LINE_FOREIGN;
	}
	if (lit(&c, "Kernel "))
		return launch_line(c, true, ret) ? TTMON_MT_LINE_LAUNCH : TTMON_MT_LINE_FOREIGN;
	if (banner(&c, ret))
		return TTMON_MT_LINE_BANNER;
	return addresses(c) ? TTMON_MT_LINE_TORN : TTMON_MT_LINE_FOREIGN;
}

const char *ttmon_mt_line_next(const char *p, size_t from, size_t n, bool old)
{
	static const char *const marks[] = { "MEMTRACE: ", "CTA ", "Kernel " };
	const char *first = NULL;

	from = MAX(from, 1u);
	for (size_t i = 0; i < (old ? ARRAY_SIZE(marks) : 1) && n > from; i++) {
		const char *at = memmem(p + from, n - from, marks[i], strlen(marks[i]));

		if (at && (!first || at < first))
			first = at;
	}
	return first;
}
