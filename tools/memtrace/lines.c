// SPDX-License-Identifier: GPL-2.0-only
/*
 * lines.c: prints records in the format of NVBit's mem_trace (1.7). For speed it does not use printf
 * for each record, converts eight digits at a time, and copies what is the same as for the lane
 * before.
 *
 * A reader of this format learns space, kind and width of an access from its opcode only. If the text
 * of a site says something else (PTX; a generic access whose space is known), a SASS opcode of the
 * same meaning is printed instead.
 */
#include <inttypes.h>

#include "memtrace/read/index.h"
#include "memtrace/model/shape.h"
#include "tools/memtrace/tool.h"

#define BUFFER (1u << 20)
/* bytes of the longest record: 32 times 19 bytes, an opcode of at most OPCODE bytes, and numbers */
#define RECORD_MAX 1400
#define OPCODE	   64
#define WIDTHS	   7 /* 1, 2, 4, ... 64 bytes */

int ttmon_mt_lines_init(struct ttmon_mt_lines *l, int fd)
{
	*l = (struct ttmon_mt_lines){ .fd = fd, .buf = malloc(BUFFER) };
	return l->buf ? 0 : -ENOMEM;
}

void ttmon_mt_lines_fini(struct ttmon_mt_lines *l)
{
	for (size_t i = 0; i < l->nr_opcodes; i++)
		free(l->opcodes[i]);
	free(l->opcodes);
	free(l->buf);
	memset(l, 0, sizeof(*l));
}

int ttmon_mt_lines_flush(struct ttmon_mt_lines *l)
{
	for (size_t at = 0; at < l->len && !l->err;) {
		ssize_t n = write(l->fd, l->buf + at, l->len - at);

		if (n < 0 && errno != EINTR)
			l->err = -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	l->len = 0;
	return l->err;
}

/* Makes room for n bytes, at most BUFFER; NULL after an error. */
static char *room(struct ttmon_mt_lines *l, size_t n)
{
	if (BUFFER - l->len < n && ttmon_mt_lines_flush(l))
		return NULL;
	return l->err ? NULL : l->buf + l->len;
}

void ttmon_mt_lines_launch(struct ttmon_mt_lines *l, const struct ttmon_mt_launch *launch)
{
	char name[TTMON_MT_MAX_TEXT + 1], *p = room(l, sizeof(name) + 400);

	if (!p)
		return;
	l->len += (size_t)sprintf(
		p,
		"MEMTRACE: CTX 0x%016" PRIx64 " - LAUNCH - Kernel pc 0x%016x - Kernel name %s - grid launch id %" PRIu64
		" - grid size %u,%u,%u - block size %u,%u,%u - nregs %u - shmem %u - cuda stream id %" PRIu64 "\n",
		launch->ctx, 0, ttmon_fmt_text(name, sizeof(name), launch->kernel), launch->id, launch->grid[0],
		launch->grid[1], launch->grid[2], launch->block[0], launch->block[1], launch->block[2], launch->regs,
		launch->shmem, launch->stream);
}

/* ---- opcodes ---- */

/* Makes LDG, STS and so on; the generic space has no letter. */
static int make_opcode(unsigned int space, unsigned int kind, unsigned int width, const char *matrices, char *buf,
		       size_t n)
{
	static const char letters[TTMON_MT_SPACE_MAX] = {
		[TTMON_MT_GLOBAL] = 'G', [TTMON_MT_SHARED] = 'S', [TTMON_MT_LOCAL] = 'L'
	};
	char letter[2] = { letters[space], '\0' }, bits[8] = "";

	if (width == 1 || width == 2)
		snprintf(bits, sizeof(bits), ".U%u", width * 8);
	else if (width != 4)
		snprintf(bits, sizeof(bits), ".%u", width * 8);
	switch (kind) {
	case TTMON_MT_LOAD:
		return snprintf(buf, n, "LD%s%s%s", letter,
				space == TTMON_MT_GLOBAL || space == TTMON_MT_GENERIC ? ".E" : "", bits);
	case TTMON_MT_STORE:
		return snprintf(buf, n, "ST%s%s%s", letter,
				space == TTMON_MT_GLOBAL || space == TTMON_MT_GENERIC ? ".E" : "", bits);
	case TTMON_MT_ATOM:
		return snprintf(buf, n, "ATOM%s%s.ADD%s", letter, space == TTMON_MT_SHARED ? "" : ".E", bits);
	case TTMON_MT_RED:
		return snprintf(buf, n, "RED%s%s.ADD%s", letter, space == TTMON_MT_SHARED ? "" : ".E", bits);
	case TTMON_MT_COPY_SRC:
	case TTMON_MT_COPY_DST:
		return snprintf(buf, n, "LDGSTS.E%s", bits);
	case TTMON_MT_LDMATRIX:
		return snprintf(buf, n, "LDSM.16.M88%s", matrices);
	case TTMON_MT_STMATRIX:
		return snprintf(buf, n, "STSM.16.M88%s", matrices);
	default:
		return snprintf(buf, n, "CCTL.E.PF1");
	}
}

static bool says(const char *opcode, unsigned int space, unsigned int kind, unsigned int width)
{
	struct ttmon_mt_site got = { 0 };
	unsigned int operand = kind == TTMON_MT_COPY_SRC;

	return ttmon_mt_sass(opcode, strlen(opcode), operand, &got) && !(got.flags & TTMON_MT_SITE_GUESSED) &&
	       got.space == space && got.kind == kind && got.width == width;
}

/* Returns the opcode that is printed for a record of this site; it is made for the first record. */
static const char *opcode_of(struct ttmon_mt_lines *l, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec)
{
	const struct ttmon_mt_site *s = &dict->sites[rec->site];
	static const char *const matrices[] = { "", ".2", ".4" };
	bool matrix = s->kind == TTMON_MT_LDMATRIX || s->kind == TTMON_MT_STMATRIX;
	unsigned int log = (unsigned int)__builtin_ctz(rec->width | 64u), rows = !(rec->mask >> 8)    ? 0
										 : !(rec->mask >> 16) ? 1
												      : 2;
	/* A row of a matrix is always 16 bytes, so the index is the number of rows instead of the width. */
	size_t at = ((size_t)rec->site * TTMON_MT_SPACE_MAX + rec->space) * WIDTHS + (matrix ? rows : log);
	char text[OPCODE];

	if (at >= l->nr_opcodes) {
		size_t more = ROUND_UP(at + 1, (size_t)4096);
		char **q = reallocarray(l->opcodes, more, sizeof(*q));

		if (!q)
			return NULL;
		memset(q + l->nr_opcodes, 0, (more - l->nr_opcodes) * sizeof(*q));
		l->opcodes = q;
		l->nr_opcodes = more;
	}
	if (l->opcodes[at])
		return l->opcodes[at];
	/* A space would end the opcode, and a text that is cut off would have another meaning. */
	if (strlen(s->opcode) >= OPCODE || !*s->opcode || strchr(s->opcode, ' ') ||
	    !says(s->opcode, rec->space, s->kind, rec->width) ||
	    (matrix && 8u << rows > (unsigned int)__builtin_popcount(ttmon_mt_row_lanes(s->opcode, strlen(s->opcode)))))
		make_opcode(rec->space, s->kind, 1u << log, matrices[rows], text, sizeof(text));
	else
		ttmon_fmt_text(text, sizeof(text), s->opcode);
	l->opcodes[at] = strdup(text);
	return l->opcodes[at];
}

/* ---- records ---- */

/* Converts to eight hexadecimal digits: first one nibble in each byte, then its character. */
static uint64_t digits(uint32_t v)
{
	uint64_t x = v, tens;

	x = (x << 32 | x >> 16) & 0x0000ffff0000ffffULL;
	x = (x << 16 | x >> 8) & 0x00ff00ff00ff00ffULL;
	x = (x << 8 | x >> 4) & 0x0f0f0f0f0f0f0f0fULL;
	/* Sets 1 in each byte that is ten or more. */
	tens = (x + 0x0606060606060606ULL) >> 4 & 0x0101010101010101ULL;
	return x + 0x3030303030303030ULL + tens * ('a' - '0' - 10);
}

static char *put_hex(char *p, uint32_t v)
{
	uint64_t x = digits(v);

	/* This makes the first digit the lowest byte. */
	memcpy(p, &x, 8);
	return p + 8;
}

static char *put_number(char *p, uint64_t v)
{
	char text[20];
	size_t n = sizeof(text);

	do {
		text[--n] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	memcpy(p, text + n, sizeof(text) - n);
	return p + sizeof(text) - n;
}

static char *put_text(char *p, const char *text)
{
	size_t n = strlen(text);

	memcpy(p, text, n);
	return p + n;
}

static char *put_lanes(char *p, const struct ttmon_mt_rec *rec)
{
	static const char none[] = "0x0000000000000000 ";
	uint64_t before = 0;
	char high[8];

	put_hex(high, 0);
	for (unsigned int lane = 0; lane < TTMON_MT_LANES; lane++) {
		uint64_t addr;

		if (!(rec->mask >> lane & 1)) {
			memcpy(p, none, 19);
			p += 19;
			continue;
		}
		addr = ttmon_mt_lane(rec, lane);
		if (addr >> 32 != before >> 32)
			put_hex(high, (uint32_t)(addr >> 32));
		before = addr;
		memcpy(p, "0x", 2);
		memcpy(p + 2, high, 8);
		p = put_hex(p + 10, (uint32_t)addr);
		*p++ = ' ';
	}
	return p;
}

void ttmon_mt_lines_rec(struct ttmon_mt_lines *l, const struct ttmon_mt_dict *dict, const struct ttmon_mt_rec *rec)
{
	const struct ttmon_mt_launch *launch = rec->launch < dict->nr_launches ? &dict->launches[rec->launch] : NULL;
	const char *opcode = opcode_of(l, dict, rec);
	char *p = room(l, RECORD_MAX);

	if (!opcode && !l->err)
		l->err = -ENOMEM;
	if (!p || l->err)
		return;
	p = put_text(p, "MEMTRACE: CTX 0x");
	p = put_hex(p, (uint32_t)((launch ? launch->ctx : 0) >> 32));
	p = put_hex(p, (uint32_t)(launch ? launch->ctx : 0));
	p = put_text(p, " - grid_launch_id ");
	p = put_number(p, launch ? launch->id : 0);
	p = put_text(p, " - CTA ");
	for (unsigned int i = 0; i < 3; i++) {
		p = put_number(p, rec->cta[i]);
		*p++ = ',';
	}
	p = put_text(p - 1, " - warp ");
	p = put_number(p, rec->warp);
	p = put_text(p, " - ");
	p = put_text(p, opcode);
	p = put_text(p, " - ");
	p = put_lanes(p, rec);
	*p++ = '\n';
	l->len = (size_t)(p - l->buf);
}
