// SPDX-License-Identifier: GPL-2.0-only
/*
 * accel.c: traces of Accel-Sim's tracer, one kernel a file. First lines "-NAME = VALUE", then
 * instructions:
 *
 *	[line] PC mask ndst dst.. OPCODE nsrc src.. width [mode address..] [immediate]
 *
 * .traceg (version 3 on) has them in groups, "thread block = x,y,z", "warp = n", "insts = k"; .trace
 * (1, 2) has "x y z warp" before each. Masks are known: of the lanes that were on and whose predicate
 * held. mode 0: an address for each lane of the mask; 1: base and stride; 2: base, then differences to
 * the lane before. Only instructions with a width have addresses, the others are passed over. Line
 * numbers are there where the header says so.
 *
 * The tracer takes 4 bytes for opcodes whose width it does not know (S8, F16): what the opcode says
 * counts, its width where the opcode is not known.
 */
#include "memtrace/read/index.h"
#include "memtrace/read/in_int.h"
#include "memtrace/model/shape.h"
#include "lib/base/util.h"

#define MAX_LINE (64u << 10)
#define GIVE_UP	 1000u	       /* malformed lines in a row */
#define WINDOW	 (16ull << 20) /* of shared and of local memory in generic addresses */

struct reader {
	struct ttmon_mt_dictw *dict;
	struct ttmon_mt_stats *stats;
	struct ttmon_mt_index *ix;
	struct ttmon_mt_launch launch; /* of this file */
	char kernel[TTMON_MT_MAX_TEXT + 1];
	bool named, lineinfo, grouped, in_block, in_warp;
	int64_t index; /* of the launch; -1: its first record makes it */
	uint32_t cta[3], warp;
	uint64_t seq, line;
	unsigned int bad;
};

struct cur {
	const char *p, *end;
};

static bool word(struct cur *c, const char **p, size_t *n)
{
	while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\r'))
		c->p++;
	*p = c->p;
	while (c->p < c->end && *c->p != ' ' && *c->p != '\t' && *c->p != '\r')
		c->p++;
	*n = (size_t)(c->p - *p);
	return *n;
}

/* 16: it is none. */
static unsigned int digit(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned int)(c - '0');
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? (unsigned int)(c - 'a' + 10) : 16;
}

/*
 * The whole of n bytes as a number of the base, "0x" allowed with 16, a sign with 10; the sign in
 * *minus.
 */
static bool number(const char *p, size_t n, unsigned int base, uint64_t *ret, bool *minus)
{
	uint64_t v = 0;

	*minus = base == 10 && n && *p == '-';
	p += *minus;
	n -= *minus;
	if (base == 16 && n > 2 && p[0] == '0' && (p[1] | 0x20) == 'x') {
		p += 2;
		n -= 2;
	}
	for (size_t i = 0; i < n; i++) {
		unsigned int d = digit(p[i]);

		if (d >= base || __builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, d, &v))
			return false;
	}
	*ret = v;
	return n;
}

static bool next(struct cur *c, unsigned int base, uint64_t max, uint64_t *ret)
{
	const char *p;
	size_t n;
	bool minus;

	return word(c, &p, &n) && number(p, n, base, ret, &minus) && !minus && *ret <= max;
}

static bool next_signed(struct cur *c, int64_t *ret)
{
	const char *p;
	size_t n;
	bool minus;
	uint64_t v;

	if (!word(c, &p, &n) || !number(p, n, 10, &v, &minus))
		return false;
	*ret = (int64_t)(minus ? -v : v);
	return true;
}

/* "(x,y,z)" or "x,y,z" */
static bool triple(const char *p, size_t n, uint32_t *ret)
{
	const char *end = p + n;
	uint32_t v[3];

	p += p < end && *p == '(';
	for (unsigned int i = 0; i < 3; i++) {
		const char *stop = memchr(p, i < 2 ? ',' : ')', (size_t)(end - p)) ?: end;
		uint64_t x;
		bool minus;

		while (p < stop && *p == ' ')
			p++;
		if ((i < 2 && stop == end) || !number(p, (size_t)(stop - p), 10, &x, &minus) || minus || x > INT32_MAX)
			return false;
		v[i] = (uint32_t)x;
		p = stop + (stop < end);
	}
	memcpy(ret, v, sizeof(v));
	return p == end;
}

static bool is(const char *p, size_t n, const char *text)
{
	return strlen(text) == n && !memcmp(p, text, n);
}

/* "NAME = VALUE" */
static bool split(const char *p, size_t n, size_t *name, const char **value, size_t *len)
{
	const char *eq = memmem(p, n, " =", 2);

	if (!eq)
		return false;
	*name = (size_t)(eq - p);
	*value = eq + 2;
	while (*value < p + n && **value == ' ')
		(*value)++;
	*len = (size_t)(p + n - *value);
	return true;
}

/* A line of the header, behind its '-'. What is not known is left out. */
static bool header(struct reader *r, const char *p, size_t n)
{
	struct ttmon_mt_launch *l = &r->launch;
	const char *value;
	size_t name, len;
	uint64_t v = 0;
	bool minus = false, dec;

	if (!split(p, n, &name, &value, &len))
		return false;
	dec = number(value, len, 10, &v, &minus);
	if (is(p, name, "kernel name")) {
		snprintf(r->kernel, sizeof(r->kernel), "%.*s", (int)MIN(len, sizeof(r->kernel) - 1), value);
		r->named = true;
	} else if (is(p, name, "kernel id")) {
		l->id = v;
		return dec && !minus;
	} else if (is(p, name, "grid dim")) {
		return triple(value, len, l->grid);
	} else if (is(p, name, "block dim")) {
		return triple(value, len, l->block);
	} else if (is(p, name, "shmem")) {
		l->shmem = (uint32_t)v;
		return dec && !minus && v <= UINT32_MAX;
	} else if (is(p, name, "nregs")) {
		l->regs = (uint32_t)v;
		return dec && !minus && v <= UINT32_MAX;
	} else if (is(p, name, "cuda stream id")) {
		l->stream = minus ? -v : v;
		return dec;
	} else if (is(p, name, "shmem base_addr")) {
		return number(value, len, 16, &l->shared_base, &minus);
	} else if (is(p, name, "local mem base_addr")) {
		return number(value, len, 16, &l->local_base, &minus);
	} else if (is(p, name, "enable lineinfo")) {
		r->lineinfo = v == 1;
		return dec;
	} else if (is(p, name, "accelsim tracer version")) {
		snprintf(r->stats->tool, sizeof(r->stats->tool), "Accel-Sim tracer %.*s", (int)MIN(len, 16u), value);
	}
	return true;
}

/* "thread block = x,y,z", "warp = n", "insts = n", "#BEGIN_TB", "#END_TB", "#traces format = ..." */
static bool group(struct reader *r, const char *p, size_t n)
{
	const char *value;
	size_t name, len;
	uint64_t v;
	bool minus;

	if (*p == '#') {
		r->in_block = r->in_warp = false;
		r->grouped |= is(p, n, "#BEGIN_TB") || is(p, n, "#END_TB");
		return true;
	}
	if (!split(p, n, &name, &value, &len))
		return false;
	if (is(p, name, "thread block")) {
		r->grouped = true;
		r->in_warp = false;
		return r->in_block = triple(value, len, r->cta);
	}
	if (!number(value, len, 10, &v, &minus) || minus)
		return false;
	if (is(p, name, "warp")) {
		r->warp = (uint32_t)v;
		return r->in_warp = r->in_block && v <= UINT16_MAX;
	}
	return is(p, name, "insts");
}

/* The addresses of an instruction into the lanes of mask. */
static bool addresses(struct cur *c, uint32_t mask, uint64_t *addr)
{
	uint64_t mode, v = 0;
	int64_t step = 0;
	bool first = true;

	if (!next(c, 10, 2, &mode))
		return false;
	if (mode && (!next(c, 16, UINT64_MAX, &v) || (mode == 1 && !next_signed(c, &step))))
		return false;
	for (unsigned int i = 0; i < TTMON_MT_LANES; i++) {
		addr[i] = 0;
		if (!(mask >> i & 1))
			continue;
		if (mode == 0 && !next(c, 16, UINT64_MAX, &v))
			return false;
		if (mode == 2 && !first && !next_signed(c, &step))
			return false;
		if (mode && !first)
			v += (uint64_t)step;
		addr[i] = v;
		first = false;
	}
	return true;
}

static int make_launch(struct reader *r)
{
	r->launch.kernel = r->kernel;
	/* The tracer counts from 1, whatever it leaves out. */
	r->launch.flags = r->launch.id ? TTMON_MT_LAUNCH_NTH_1 : 0;
	r->index = ttmon_mt_index_add(r->ix, &r->launch);
	return (int)MIN(r->index, 0);
}

/* What a generic address is, where the windows are known: then rec has offsets. */
static void resolve(const struct reader *r, struct ttmon_mt_rec *rec, uint64_t *addr)
{
	const struct ttmon_mt_launch *l = &r->dict->dict.launches[rec->launch];
	const uint64_t bases[] = { l->shared_base, l->local_base };

	if (rec->space != TTMON_MT_GENERIC)
		return;
	for (unsigned int i = 0; i < 2; i++) {
		uint32_t in = 0;

		for (unsigned int k = 0; k < TTMON_MT_LANES; k++)
			in |= (uint32_t)(rec->mask >> k & 1 && addr[k] - bases[i] < WINDOW) << k;
		if (!bases[i] || in != rec->mask)
			continue;
		for (unsigned int k = 0; k < TTMON_MT_LANES; k++)
			addr[k] -= bases[i];
		rec->space = i ? TTMON_MT_LOCAL : TTMON_MT_SHARED;
		return;
	}
}

/* An instruction. 1; 0: not one of the tracer's lines; -errno. */
static int instruction(struct reader *r, const char *p, size_t n, struct ttmon_mt_batch *b)
{
	struct ttmon_mt_site like = { .file = "" };
	struct ttmon_mt_rec *rec = &b->recs[b->nr];
	uint64_t *addr = b->addr[b->nr], v, mask, width;
	struct cur c = { p, p + n };
	const char *op, *w;
	size_t len, k;
	int64_t site;
	bool ok = true;

	if (!r->grouped) {
		for (unsigned int i = 0; i < 3 && ok; i++) {
			ok = next(&c, 10, INT32_MAX, &v);
			r->cta[i] = (uint32_t)v;
		}
		ok = ok && next(&c, 10, UINT16_MAX, &v);
		r->warp = (uint32_t)v;
	}
	if (!ok || (r->grouped && !r->in_warp))
		return 0;
	if (r->lineinfo) {
		ok = next(&c, 10, UINT32_MAX, &v);
		like.line = (uint32_t)v;
	}
	if (!ok || !next(&c, 16, UINT32_MAX, &like.pc) || !next(&c, 16, UINT32_MAX, &mask) || !next(&c, 10, 64, &v))
		return 0;
	for (; v; v--)
		if (!word(&c, &w, &k))
			return 0;
	if (!word(&c, &op, &len) || len > TTMON_MT_MAX_OP || *op < 'A' || *op > 'Z' || !next(&c, 10, 64, &v))
		return 0;
	for (; v; v--)
		if (!word(&c, &w, &k))
			return 0;
	if (!next(&c, 10, 64, &width))
		return 0;
	/* All lanes off: it did nothing. */
	if (!width || !mask)
		return 1;
	if (!addresses(&c, (uint32_t)mask, addr))
		return 0;
	if (r->index < 0) {
		int err = make_launch(r);

		if (err)
			return err;
	}
	like.width = (uint8_t)width;
	site = ttmon_mt_index_site(r->ix, (uint32_t)r->index, op, len, ttmon_mt_operand(op, len, addr, (uint32_t)mask),
				   &like);
	if (site == -ENOENT)
		return 1;
	if (site < 0)
		return (int)site;
	*rec = (struct ttmon_mt_rec){ .mask = (uint32_t)mask,
				      .site = (uint32_t)site,
				      .launch = (uint32_t)r->index,
				      .cta = { r->cta[0], r->cta[1], r->cta[2] },
				      .warp = (uint16_t)r->warp,
				      .sm = TTMON_MT_NO_SM,
				      .space = r->dict->dict.sites[site].space,
				      .width = r->dict->dict.sites[site].width };
	rec->mask &= ttmon_mt_row_lanes(op, len);
	if (!rec->mask)
		return 1;
	resolve(r, rec, addr);
	ttmon_mt_fit(rec, addr);
	rec->seq = r->seq++;
	b->nr++;
	return 1;
}

/* A line: 0; -EBADMSG: nothing of a trace can be made of what follows; another -errno. */
static int line(struct reader *r, const char *p, size_t n, struct ttmon_mt_batch *b)
{
	int got = 1;

	r->line++;
	while (n && (p[n - 1] == '\r' || p[n - 1] == ' ' || p[n - 1] == '\t'))
		n--;
	if (!n)
		return 0;
	if (*p == '-' && r->index < 0) {
		/* A file behind another in one stream has a header too. */
		return header(r, p + 1, n - 1) ? 0 : -EBADMSG;
	}
	if (*p == '-' && n > 13 && !memcmp(p, "-kernel name ", 13)) {
		r->launch = (struct ttmon_mt_launch){ 0 };
		r->index = -1;
		r->grouped = r->in_block = r->in_warp = r->lineinfo = false;
		return header(r, p + 1, n - 1) ? 0 : -EBADMSG;
	}
	if (*p == '#' || (*p >= 'a' && *p <= 'z' && memchr(p, '=', n)))
		got = group(r, p, n);
	else
		got = r->named ? instruction(r, p, n, b) : -EBADMSG;
	if (got < 0)
		return got;
	r->stats->malformed += !got;
	r->bad = got ? 0 : r->bad + 1;
	return r->bad > GIVE_UP ? -EBADMSG : 0;
}

static int accel_detect(const uint8_t *p, size_t n)
{
	static const char first[] = "-kernel name =";

	while (n && (*p == '\n' || *p == '\r' || *p == ' ')) {
		p++;
		n--;
	}
	return n >= sizeof(first) - 1 && !memcmp(p, first, sizeof(first) - 1) ? 95 : 0;
}

static void accel_free(void *reader)
{
	struct reader *r = reader;

	ttmon_mt_index_free(r->ix);
	free(r);
}

static void begin(struct reader *r)
{
	r->launch = (struct ttmon_mt_launch){ 0 };
	r->kernel[0] = '\0';
	r->named = r->lineinfo = r->grouped = r->in_block = r->in_warp = false;
	r->index = -1;
	r->line = 0;
	r->bad = 0;
}

static int accel_open(void **ret, const char *path, const struct ttmon_mt_in_opts *opts, struct ttmon_mt_dictw *dict,
		      struct ttmon_mt_stats *stats, char *why, size_t n)
{
	struct reader *r = calloc(1, sizeof(*r));
	int err = r ? ttmon_mt_index_new(dict, stats, &r->ix) : -ENOMEM;

	(void)path;
	(void)opts;
	if (err) {
		snprintf(why, n, "out of memory");
		free(r);
		return err;
	}
	r->dict = dict;
	r->stats = stats;
	begin(r);
	snprintf(stats->tool, sizeof(stats->tool), "Accel-Sim tracer");
	*ret = r;
	return 0;
}

static int64_t accel_parse(void *reader, const uint8_t *p, size_t n, bool end, struct ttmon_mt_batch *b, char *why,
			   size_t n_why)
{
	struct reader *r = reader;
	const char *at = (const char *)p, *stop = at + n;
	int err = 0;

	while (b->nr < TTMON_MT_BATCH && at < stop && !err) {
		const char *nl = memchr(at, '\n', (size_t)(stop - at));
		uint64_t bad = r->stats->malformed;

		if (!nl && !end && stop - at < MAX_LINE)
			break;
		if (!nl && !end)
			err = -EBADMSG;
		else
			err = line(r, at, (size_t)((nl ?: stop) - at), b);
		if (!nl && !err && r->stats->malformed != bad)
			r->stats->cut = true;
		at = nl ? nl + 1 : stop;
	}
	if (err == -EBADMSG)
		snprintf(why, n_why, "line %llu: not a line of an Accel-Sim trace", (unsigned long long)r->line);
	else if (err)
		snprintf(why, n_why, "%s",
			 err == -E2BIG ? "more instructions or launches than can be kept" : "out of memory");
	if (err)
		return err;
	/* The next file of a list begins again; a kernel without a single access was launched all the same. */
	if (end && at == stop && b->nr < TTMON_MT_BATCH) {
		if (r->named && r->index < 0)
			err = make_launch(r);
		begin(r);
	}
	return err ?: (int64_t)n - (stop - at);
}

const struct ttmon_mt_format ttmon_mt_accel = { "Accel-Sim", accel_detect, accel_open, accel_parse, accel_free };
