// SPDX-License-Identifier: GPL-2.0-only
/*
 * text.c: the text of NVBit's mem_trace, among whatever else its program printed. Lines as the tool
 * writes them go a fast way: an address is 16 digits in 19 bytes, which are looked at all at once. All
 * others are taken apart by line.c, where a line that begins in the middle of another is found too.
 *
 * 1.5 numbers launches from 1 in its launch lines and from 0 in its accesses. The banner has the
 * version; without it, accesses whose id is one less than the first launch's show it, unless they are
 * late ones of the launch before it: then one with the newest launch's own id, which 1.5 does not
 * have, comes before the next launch, or one with theirs came before the first. Accesses are right.
 */
#include "memtrace/read/index.h"
#include "memtrace/read/in_int.h"
#include "memtrace/read/known.h"
#include "memtrace/read/text.h"
#include "memtrace/model/shape.h"
#include "lib/base/util.h"

#define MAX_LINE (64u << 10) /* longer ones are not ours */
#define HEX	 19	     /* "0x0123456789abcdef " */
#define FAST	 1024	     /* no line of the tool is longer but for its kernel's name */
#define MAX_HEAD 128
#define STEP	 256u /* of a line are looked at at once: it may be one of very many pieces */
#define MARK	 10u  /* bytes of what a line begins with, at most */
#define ALIKE	 16u  /* accesses that say which way launches are counted */

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "The bytes of an address are turned round."
#endif

enum skew { UNDECIDED, EQUAL, LESS_ONE };

struct reader {
	const struct ttmon_mt_in_opts *opts;
	struct ttmon_mt_dictw *dict;
	struct ttmon_mt_stats *stats;
	struct ttmon_mt_index *ix;
	struct ttmon_mt_bounds range;
	struct ttmon_mt_knows knows;
	enum skew skew;
	bool repeated;			 /* a launch id came twice: the launches are of several processes */
	bool banner, old, new, launched; /* old: lines of 1.3 were seen; new: of 1.5 or later */
	uint64_t first_launch, old_id;	 /* old_id: of the launch that accesses of 1.3 belong to */
	uint64_t newest;		 /* of launches, the last line's id */
	uint64_t last_id;		 /* while it is not decided: of the last access before the first launch */
	bool has_last;
	uint64_t described; /* launches while it is not decided */
	uint64_t ours, seq;
	size_t lists; /* of the batch: records that are not affine */
	/* The last line's beginning up to its block, and what it says. */
	char head[MAX_HEAD];
	size_t head_len;
	uint32_t launch;
	uint64_t threads; /* of a block of it, 0: not known */
	bool made_up;
};

/* From a line on, all that is there. */
struct text {
	const char *p;
	size_t n;
	bool end;
};

typedef uint8_t u8x16 __attribute__((vector_size(16)));
typedef uint8_t u8x8 __attribute__((vector_size(8)));
typedef uint16_t u16x8 __attribute__((vector_size(16)));

/* 16 hexadecimal digits as the tool writes them; a bit of *good is gone where one is not. */
static inline uint64_t hex16(const uint8_t *p, u8x16 *good)
{
	u8x16 c, digit, letter;
	u16x8 pairs;
	u8x8 bytes;
	uint64_t v;

	memcpy(&c, p, sizeof(c));
	digit = c - '0';
	letter = (u8x16)(digit - ('a' - '0') < 6);
	*good &= (u8x16)(digit < 10) | letter;
	digit -= letter & ('a' - '0' - 10);
	pairs = (u16x8)digit;
	pairs = (pairs << 4 | pairs >> 8) & 0xff;
	bytes = __builtin_convertvector(pairs, u8x8);
	memcpy(&v, &bytes, sizeof(v));
	return __builtin_bswap64(v);
}

static inline bool digits(const uint8_t **p, uint32_t *ret)
{
	const uint8_t *q = *p;
	uint64_t v = 0;

	for (; *q >= '0' && *q <= '9' && q - *p < 10; q++)
		v = v * 10 + (uint64_t)(*q - '0');
	if (q == *p || v > INT32_MAX || (*q >= '0' && *q <= '9'))
		return false;
	*p = q;
	*ret = (uint32_t)v;
	return true;
}

/*
 * 32 addresses and the end of their line: behind it; NULL: they are something else. *doubt: one is 0,
 * or of another 4 GiB than the first.
 */
static inline const uint8_t *addresses(const uint8_t *p, uint64_t *addr, bool *doubt)
{
	uint64_t zero = 0, far = 0, whole[2];
	uint32_t marks = 0, mark;
	u8x16 good = ~(u8x16){ 0 };

	for (unsigned int i = 0; i < TTMON_MT_LANES; i++, p += HEX) {
		uint64_t v = hex16(p + 2, &good);

		memcpy(&mark, i ? p - 1 : p, sizeof(mark));
		marks |= i ? (mark & 0xffffff) ^ (' ' | '0' << 8 | 'x' << 16) : (mark & 0xffff) ^ ('0' | 'x' << 8);
		addr[i] = v;
		zero |= !v;
		far |= v ^ addr[0];
	}
	p--;
	p += *p == ' ';
	p += *p == '\r';
	*doubt = zero || far >> 32;
	memcpy(whole, &good, sizeof(whole));
	return ~(whole[0] & whole[1]) || marks || *p != '\n' ? NULL : p + 1;
}

/*
 * An access of id, the first launch's less one, of which r->launched: what the lines from it on say,
 * up to the next launch. UNDECIDED: more of them are needed.
 */
static enum skew look_ahead(const struct reader *r, uint64_t ctx, uint64_t id, const struct text *rest)
{
	const char *p = rest->p, *stop = p + MIN(rest->n, (size_t)MAX_LINE);
	unsigned int nr = 0;

	if (r->has_last && r->last_id == id)
		return EQUAL;
	while (p < stop && nr < ALIKE) {
		const char *nl = memchr(p, '\n', (size_t)(stop - p));
		struct ttmon_mt_text_line l;
		enum ttmon_mt_line kind;

		if (!nl && !rest->end)
			break;
		kind = ttmon_mt_parse_line(p, (size_t)((nl ?: stop) - p), &l);
		if (kind == TTMON_MT_LINE_LAUNCH || kind == TTMON_MT_LINE_BANNER)
			return LESS_ONE;
		if (kind == TTMON_MT_LINE_ACCESS && !l.old && l.ctx == ctx) {
			if (l.id == r->newest)
				return EQUAL;
			nr++;
		}
		p = nl ? nl + 1 : stop;
	}
	return rest->end || nr == ALIKE || rest->n >= MAX_LINE ? LESS_ONE : UNDECIDED;
}

/* The launch that id of ctx is; decides about the skew. -EAGAIN: when there is more of the rest. */
static int set_launch(struct reader *r, uint64_t ctx, uint64_t id, const struct text *rest)
{
	const struct ttmon_mt_launch *l;
	int64_t i;

	if (r->skew == UNDECIDED && !r->launched) {
		r->last_id = id;
		r->has_last = true;
	}
	/* An id that is neither may be a late record of a launch before the first. */
	if (r->skew == UNDECIDED && r->launched && id + 1 == r->first_launch) {
		enum skew skew = look_ahead(r, ctx, id, rest);
		int err = skew == UNDECIDED ? -EAGAIN : skew == LESS_ONE ? ttmon_mt_index_shift(r->ix) : 0;

		if (err)
			return err;
		r->skew = skew;
		if (skew == LESS_ONE)
			r->stats->skewed += r->described;
	} else if (r->skew == UNDECIDED && r->launched && ttmon_mt_index_has(r->ix, ctx, id)) {
		r->skew = EQUAL;
	}
	i = ttmon_mt_index_launch(r->ix, ctx, id);
	if (i < 0)
		return (int)i;
	l = &r->dict->dict.launches[i];
	if (!r->old && !r->repeated)
		r->dict->dict.launches[i].flags |= TTMON_MT_LAUNCH_NTH_0;
	r->launch = (uint32_t)i;
	r->made_up = l->flags & TTMON_MT_LAUNCH_MADE_UP;
	r->threads = 0;
	if (l->block[0] && l->block[1] && l->block[2] && l->block[0] <= 1024 && l->block[1] <= 1024 &&
	    l->block[2] <= 1024)
		r->threads = (uint64_t)l->block[0] * l->block[1] * l->block[2];
	return 0;
}

/*
 * A record of the batch out of an access: addr is its place for lists, which the next record gets
 * where this one is affine. 1; 0: it is no access after all; -errno.
 */
static int put(struct reader *r, struct ttmon_mt_batch *b, const uint32_t *cta, uint32_t warp, const char *op,
	       size_t len, const uint64_t *addr, bool doubt)
{
	struct ttmon_mt_rec *rec = &b->recs[b->nr];
	const struct ttmon_mt_site *site;
	int64_t i;

	i = ttmon_mt_index_site(r->ix, r->launch, op, len, ttmon_mt_operand(op, len, addr, UINT32_MAX),
				&(struct ttmon_mt_site){ .file = "" });
	if (i < 0)
		return i == -ENOENT ? 0 : (int)i;
	site = &r->dict->dict.sites[i];
	*rec = (struct ttmon_mt_rec){ .mask = UINT32_MAX,
				      .site = (uint32_t)i,
				      .launch = r->launch,
				      .cta = { cta[0], cta[1], cta[2] },
				      .warp = (uint16_t)warp,
				      .sm = TTMON_MT_NO_SM,
				      .space = site->space,
				      .width = site->width,
				      .flags = TTMON_MT_INFERRED | TTMON_MT_SLOT };
	if (doubt || (r->threads && r->threads < 32)) {
		rec->mask = ttmon_mt_infer(addr, site->space, &r->range, r->threads);
	} else if (site->space <= TTMON_MT_GLOBAL) {
		uint64_t low = MIN(addr[0], addr[31]), high = MAX(addr[0], addr[31]);

		r->range.low = r->range.high ? MIN(r->range.low, low) : low;
		r->range.high = MAX(r->range.high, high);
	}
	if (r->opts->known)
		rec->mask = ttmon_mt_known_lanes(&r->knows, site->space, addr,
						 r->threads && r->threads < 32 ? (1u << r->threads) - 1 : UINT32_MAX,
						 rec->mask);
	if (!rec->mask) {
		r->stats->malformed++;
		return 1;
	}
	if (site->kind == TTMON_MT_LDMATRIX || site->kind == TTMON_MT_STMATRIX) {
		rec->mask &= ttmon_mt_row_lanes(op, len);
		if (!rec->mask) {
			r->stats->malformed++;
			return 1;
		}
	}
	ttmon_mt_fit(rec, addr);
	r->lists += !!rec->addr;
	rec->seq = r->seq++;
	r->stats->no_launch += r->made_up;
	r->ours++;
	b->nr++;
	return 1;
}

/* What opcodes are made of. */
static const bool op_chars[256] = {
	['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['0' ... '9'] = true, ['.'] = true, ['_'] = true
};

/*
 * A whole line as the tool writes it, of which FAST bytes are there. Behind it; NULL: it is not one;
 * *err: -errno.
 */
static const uint8_t *fast(struct reader *r, const uint8_t *line, struct ttmon_mt_batch *b, int *err)
{
	const uint8_t *p = line + r->head_len, *op, *end;
	uint32_t cta[3], warp;
	size_t len;
	bool doubt;
	int n;

	if (!r->head_len || memcmp(line, r->head, r->head_len))
		return NULL;
	if (!digits(&p, &cta[0]) || *p++ != ',' || !digits(&p, &cta[1]) || *p++ != ',' || !digits(&p, &cta[2]) ||
	    memcmp(p, " - warp ", 8))
		return NULL;
	p += 8;
	if (!digits(&p, &warp) || warp > 0xffff || memcmp(p, " - ", 3))
		return NULL;
	op = p += 3;
	while (op_chars[*p] && p - op < TTMON_MT_MAX_OP)
		p++;
	len = (size_t)(p - op);
	if (!len || *op < 'A' || *op > 'Z' || memcmp(p, " - 0x", 5))
		return NULL;
	end = addresses(p + 3, b->addr[r->lists], &doubt);
	if (!end)
		return NULL;
	n = put(r, b, cta, warp, (const char *)op, len, b->addr[r->lists], doubt);
	*err = MIN(n, 0);
	return n == 1 ? end : NULL;
}

/* What the next lines begin with, if they are of the same launch. */
static void remember(struct reader *r, const char *p, size_t n)
{
	const char *cta = memmem(p, n, "CTA ", 4);

	r->head_len = 0;
	if (!cta || (size_t)(cta + 4 - p) > MAX_HEAD)
		return;
	r->head_len = (size_t)(cta + 4 - p);
	memcpy(r->head, p, r->head_len);
}

static void set_tool(struct reader *r, const struct ttmon_mt_text_line *l)
{
	unsigned int major = 0, minor = 0;
	char version[16] = "";

	snprintf(version, sizeof(version), "%.*s", (int)MIN(l->version_len, sizeof(version) - 1), l->version);
	snprintf(r->stats->tool, sizeof(r->stats->tool), "NVBit %s%smem_trace", version, version[0] ? " " : "");
	r->banner = true;
	/* Launches behind a banner that follows others are a second program's: its numbers begin again. */
	r->repeated |= r->launched;
	r->launched = false;
	r->described = 0;
	r->has_last = false;
	r->skew = UNDECIDED;
	if (sscanf(version, "%u.%u", &major, &minor) == 2 && major == 1)
		r->skew = minor >= 7 ? EQUAL : minor >= 5 ? LESS_ONE : UNDECIDED;
}

static int launch(struct reader *r, struct ttmon_mt_text_line *l)
{
	char name[TTMON_MT_MAX_TEXT + 1];
	int64_t i;

	snprintf(name, sizeof(name), "%.*s", (int)MIN(l->name_len, sizeof(name) - 1), l->name);
	l->launch.kernel = name;
	if (l->old) {
		l->launch.id = r->old_id + r->launched;
		r->old_id = l->launch.id;
	} else if (!r->launched) {
		r->first_launch = l->launch.id;
	}
	r->repeated |= r->launched && l->launch.id <= r->newest;
	r->launched = true;
	r->newest = l->launch.id;
	l->launch.flags = l->old || r->repeated ? 0 : TTMON_MT_LAUNCH_NTH_0;
	/* A build that counts as the accesses do whatever its banner says. */
	if (r->skew == LESS_ONE && !l->launch.id)
		r->skew = EQUAL;
	if (l->old)
		r->skew = EQUAL;
	if (r->skew == LESS_ONE) {
		l->launch.id--;
		r->stats->skewed++;
	}
	r->described += r->skew == UNDECIDED;
	i = ttmon_mt_index_add(r->ix, &l->launch);
	/* What is known of the last line's launch may have changed. */
	r->head_len = 0;
	r->ours++;
	return (int)MIN(i, 0);
}

static int foreign(struct reader *r, const char *p, size_t n)
{
	r->stats->foreign++;
	if (r->opts->foreign)
		r->opts->foreign(r->opts->ctx, p, n);
	return 0;
}

/*
 * A line without its end, or a piece of one, of n bytes at the beginning of rest. -EAGAIN: not before
 * there is more behind it.
 */
static int line(struct reader *r, const struct text *rest, size_t n, struct ttmon_mt_batch *b)
{
	const char *p = rest->p;
	struct ttmon_mt_text_line l;
	enum ttmon_mt_line kind = ttmon_mt_parse_line(p, n, &l);
	bool ours = kind == TTMON_MT_LINE_ACCESS || kind == TTMON_MT_LINE_LAUNCH;
	int err;

	if (ours && !r->banner && !r->stats->tool[0])
		snprintf(r->stats->tool, sizeof(r->stats->tool), "NVBit mem_trace%s", l.old ? " 1.3 or older" : "");
	/* Nothing writes both: the end of a torn line. */
	if (ours && l.old && r->new)
		kind = TTMON_MT_LINE_TORN;
	else if (ours)
		*(l.old ? &r->old : &r->new) = true;
	switch (kind) {
	case TTMON_MT_LINE_FOREIGN:
		return foreign(r, p, n);
	case TTMON_MT_LINE_BANNER:
		set_tool(r, &l);
		return foreign(r, p, n);
	case TTMON_MT_LINE_TORN:
		r->stats->malformed++;
		return 0;
	case TTMON_MT_LINE_LAUNCH:
		return launch(r, &l);
	case TTMON_MT_LINE_ACCESS:
		break;
	}
	if (l.op_len > TTMON_MT_MAX_OP) {
		r->stats->malformed++;
		return 0;
	}
	err = set_launch(r, l.ctx, l.old ? r->old_id : l.id, rest);
	if (err)
		return err;
	remember(r, p, n);
	memcpy(b->addr[r->lists], l.addr, sizeof(l.addr));
	err = put(r, b, l.cta, l.warp, l.op, l.op_len, b->addr[r->lists], true);
	if (!err)
		return foreign(r, p, n);
	return MIN(err, 0);
}

static int text_detect(const uint8_t *p, size_t n)
{
	static const char *const marks[] = { "MEMTRACE: CTX 0x", "NVBit (NVidia Binary Instrumentation Tool",
					     "MEMTRACE: STARTING CONTEXT" };
	size_t odd = 0;

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++)
		if (memmem(p, n, marks[i], strlen(marks[i])))
			return 90;
	for (size_t i = 0; i < n; i++)
		odd += p[i] < ' ' && p[i] != '\n' && p[i] != '\r' && p[i] != '\t' && p[i] != 27 && p[i] != '\b';
	if (odd * 100 > n)
		return 0;
	if ((n > 4 && !memcmp(p, "CTA ", 4) && memmem(p, n, " - warp ", 8)) ||
	    (memmem(p, n, "\nCTA ", 5) && memmem(p, n, " - warp ", 8)))
		return 80;
	/* It may be a program's own output, of which the trace is somewhere further on. */
	return 1;
}

static void text_free(void *reader)
{
	struct reader *r = reader;

	ttmon_mt_index_free(r->ix);
	free(r);
}

static int text_open(void **ret, const char *path, const struct ttmon_mt_in_opts *opts, struct ttmon_mt_dictw *dict,
		     struct ttmon_mt_stats *stats, char *why, size_t n)
{
	struct reader *r = calloc(1, sizeof(*r));
	int err = r ? ttmon_mt_index_new(dict, stats, &r->ix) : -ENOMEM;

	(void)path;
	if (err) {
		snprintf(why, n, "out of memory");
		free(r);
		return err;
	}
	r->opts = opts;
	r->dict = dict;
	r->stats = stats;
	r->knows = (struct ttmon_mt_knows){ .opts = opts, .stats = stats };
	*ret = r;
	return 0;
}

/*
 * One line, or its piece up to where another begins in its middle. How many bytes; 0: it is not whole
 * yet; -errno.
 */
static int64_t slow(struct reader *r, const char *p, size_t n, bool end, struct ttmon_mt_batch *b)
{
	const char *nl = NULL, *next = NULL;
	size_t k = n, used = n;
	uint64_t torn;
	int err;

	for (size_t at = 0; at < n && !nl && !next; at += STEP) {
		size_t stop = MIN(at + STEP, n);

		nl = memchr(p + at, '\n', stop - at);
		next = ttmon_mt_line_next(p, at > MARK ? at - MARK : 1, nl ? (size_t)(nl - p) : stop, r->old);
	}
	if (!nl && !next && !end && n < MAX_LINE)
		return 0;
	if (next) {
		k = used = (size_t)(next - p);
	} else if (nl) {
		k = (size_t)(nl - p);
		used = k + 1;
	} else if (!end) {
		/* Too long for a line of ours; one may begin in its last bytes. */
		k = used = n - 16;
	}
	torn = r->stats->malformed;
	err = line(r, &(struct text){ p, n, end }, k, b);
	if (err == -EAGAIN)
		return 0;
	if (!nl && used == n && r->stats->malformed != torn)
		r->stats->cut = true;
	return err ?: (int64_t)used;
}

static int64_t text_parse(void *reader, const uint8_t *p, size_t n, bool end, struct ttmon_mt_batch *b, char *why,
			  size_t n_why)
{
	struct reader *r = reader;
	const uint8_t *at = p, *stop = p + n;
	int64_t used = 0;

	if (!b->nr)
		r->lists = 0;
	while (b->nr < TTMON_MT_BATCH && at < stop) {
		const uint8_t *behind = NULL;
		int err = 0;

		if (stop - at >= FAST)
			behind = fast(r, at, b, &err);
		used = err;
		if (behind)
			used = behind - at;
		else if (!err)
			used = slow(r, (const char *)at, (size_t)(stop - at), end, b);
		if (used <= 0)
			break;
		at += used;
	}
	if (used < 0) {
		snprintf(why, n_why, "%s",
			 used == -E2BIG ? "more kernels, instructions or launches than can be kept" : "out of memory");
		return used;
	}
	if (end && at == stop && !r->ours && !r->banner) {
		snprintf(why, n_why, "not a memory trace: no line of NVBit's mem_trace in %llu lines of text",
			 (unsigned long long)(r->stats->foreign + r->stats->malformed));
		return -EBADMSG;
	}
	return at - p;
}

const struct ttmon_mt_format ttmon_mt_text = { "NVBit text", text_detect, text_open, text_parse, text_free };
