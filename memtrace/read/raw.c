// SPDX-License-Identifier: GPL-2.0-only
/*
 * raw.c: records of NVBit's mem_trace as its channel carries them, dumped to a file. Nothing in them
 * says that they are: they are taken for it where nearly all of many make sense. Little endian:
 *
 *	280 bytes	NVBit up to 1.4: i32 cta x, y, z, i32 warp, i32 opcode, 4 bytes of anything, u64
 *			addresses[32]
 *	288 bytes	NVBit 1.5 to 1.7: u64 launch, then the same
 *
 * A record whose cta x is -1 marks the end of a kernel (280), or of a context (288). Opcodes are
 * numbers of one run: their names are in a file beside it, in lines of "ID OPCODE".
 */
#include "memtrace/read/index.h"
#include "memtrace/read/in_int.h"
#include "memtrace/read/known.h"
#include "memtrace/model/shape.h"
#include "lib/base/util.h"

#define BIG	  288u
#define SMALL	  280u
#define LOOK	  256u /* records that detection looks at */
#define MAX_OPS	  65536u
#define MAX_TABLE (4u << 20) /* bytes */
#define GIVE_UP	  4096u	     /* bad records in a row */

struct raw {
	uint64_t launch;
	uint32_t cta[3], warp, op;
	bool end;
	uint64_t addr[TTMON_MT_LANES];
};

struct reader {
	struct ttmon_mt_dictw *dict;
	struct ttmon_mt_stats *stats;
	struct ttmon_mt_index *ix;
	struct ttmon_mt_bounds range;
	struct ttmon_mt_knows knows;
	size_t size;		   /* of a record; 0: not known yet */
	char **ops;		   /* MAX_OPS of them, NULL: no name; or NULL: no table */
	uint64_t seq, kernels, at; /* at: bytes that are parsed */
	unsigned int bad;
};

static void take(const uint8_t *p, size_t size, struct raw *ret)
{
	int32_t v[5];

	ret->launch = 0;
	if (size == BIG)
		memcpy(&ret->launch, p, 8);
	memcpy(v, p + (size == BIG ? 8 : 0), sizeof(v));
	for (unsigned int i = 0; i < 3; i++)
		ret->cta[i] = (uint32_t)v[i];
	ret->warp = (uint32_t)v[3];
	ret->op = (uint32_t)v[4];
	ret->end = v[0] == -1;
	memcpy(ret->addr, p + size - sizeof(ret->addr), sizeof(ret->addr));
}

/* Could it be a record? nothing: it has no address at all. */
static bool plausible(const struct raw *r, bool *nothing)
{
	uint64_t all = 0;

	*nothing = true;
	if (r->end)
		return r->launch < 1ull << 32;
	if (r->launch >= 1ull << 32 || r->cta[0] > INT32_MAX || r->cta[1] > 65535 || r->cta[2] > 65535 ||
	    r->warp > 127 || r->op >= MAX_OPS)
		return false;
	for (unsigned int i = 0; i < TTMON_MT_LANES; i++)
		all |= r->addr[i];
	*nothing = !all;
	return all < 1ull << 57;
}

/* How many of a hundred records of a size make sense; 0 where too few say anything. */
static unsigned int score(const uint8_t *p, size_t n, size_t size)
{
	size_t nr = MIN(n / size, LOOK), good = 0, some = 0;

	for (size_t i = 0; i < nr; i++) {
		struct raw r;
		bool nothing;

		take(p + i * size, size, &r);
		if (!plausible(&r, &nothing))
			continue;
		good++;
		some += !nothing;
	}
	return nr && some * 2 >= nr ? (unsigned int)(good * 100 / nr) : 0;
}

static int raw_detect(const uint8_t *p, size_t n)
{
	unsigned int best = MAX(score(p, n, BIG), score(p, n, SMALL));

	/* Of few records it is a guess. */
	return best < 95 ? 0 : n / SMALL >= 8 ? 60 : 20;
}

/* "ID OPCODE" in each line; blank ones and such with '#' are nothing. */
static int read_table(struct reader *r, const char *path, bool must, char *why, size_t n_why)
{
	_cleanup_fclose_ FILE *f = fopen(path, "re");
	char line[512];
	size_t bytes = 0;

	if (!f && (must || errno != ENOENT)) {
		int err = -errno;

		snprintf(why, n_why, "%s: %s", path, strerror(errno));
		return err;
	}
	if (!f)
		return 0;
	r->ops = calloc(MAX_OPS, sizeof(*r->ops));
	for (unsigned int no = 1; r->ops && fgets(line, sizeof(line), f); no++) {
		size_t n = strlen(line), len;
		char *end = NULL, *p = line + strspn(line, " \t");
		unsigned long id = strtoul(p, &end, 10);

		bytes += n;
		if (!*p || *p == '#' || *p == '\n' || *p == '\r')
			continue;
		len = strcspn(end + strspn(end, " \t,:="), " \t\r\n");
		p = end + strspn(end, " \t,:=");
		if (*line == '-' || end == line || id >= MAX_OPS || !len || len > TTMON_MT_MAX_OP || p == end ||
		    p[len + strspn(p + len, " \t\r\n")] || bytes > MAX_TABLE) {
			snprintf(why, n_why, "%s: line %u: not \"ID OPCODE\"", path, no);
			return -EBADMSG;
		}
		free(r->ops[id]);
		r->ops[id] = strndup(p, len);
		if (!r->ops[id]) {
			snprintf(why, n_why, "%s: out of memory", path);
			return -ENOMEM;
		}
	}
	if (!r->ops || ferror(f)) {
		snprintf(why, n_why, "%s: %s", path, r->ops ? "cannot be read" : "out of memory");
		return r->ops ? -EIO : -ENOMEM;
	}
	return 0;
}

static void raw_free(void *reader)
{
	struct reader *r = reader;

	ttmon_mt_index_free(r->ix);
	for (size_t i = 0; r->ops && i < MAX_OPS; i++)
		free(r->ops[i]);
	free(r->ops);
	free(r);
}

static int raw_open(void **ret, const char *path, const struct ttmon_mt_in_opts *opts, struct ttmon_mt_dictw *dict,
		    struct ttmon_mt_stats *stats, char *why, size_t n)
{
	_cleanup_free_ char *beside = NULL;
	struct reader *r = calloc(1, sizeof(*r));
	int err = r ? ttmon_mt_index_new(dict, stats, &r->ix) : -ENOMEM;

	if (!err && asprintf(&beside, "%s.opcodes", path) < 0) {
		beside = NULL;
		err = -ENOMEM;
	}
	if (err)
		snprintf(why, n, "out of memory");
	else
		err = read_table(r, opts->opcodes ?: beside, opts->opcodes, why, n);
	if (err) {
		if (r)
			raw_free(r);
		return err;
	}
	r->dict = dict;
	r->stats = stats;
	r->knows = (struct ttmon_mt_knows){ .opts = opts, .stats = stats };
	*ret = r;
	return 0;
}

static int put(struct reader *r, const struct raw *raw, struct ttmon_mt_batch *b)
{
	struct ttmon_mt_rec *rec = &b->recs[b->nr];
	uint64_t *addr = b->addr[b->nr];
	char name[32];
	const char *op = r->ops ? r->ops[raw->op] : NULL;
	const struct ttmon_mt_site *site;
	int64_t launch, i;

	launch = ttmon_mt_index_launch(r->ix, 0, r->size == BIG ? raw->launch : r->kernels);
	if (launch < 0)
		return (int)launch;
	if (r->size == BIG)
		r->dict->dict.launches[launch].flags |= TTMON_MT_LAUNCH_NTH_0;
	snprintf(name, sizeof(name), "opcode %u", raw->op);
	op = op ?: name;
	i = ttmon_mt_index_site(r->ix, (uint32_t)launch, op, strlen(op),
				ttmon_mt_operand(op, strlen(op), raw->addr, UINT32_MAX),
				&(struct ttmon_mt_site){ .file = "" });
	if (i == -ENOENT) {
		r->stats->foreign++;
		return 0;
	}
	if (i < 0)
		return (int)i;
	site = &r->dict->dict.sites[i];
	memcpy(addr, raw->addr, sizeof(raw->addr));
	*rec = (struct ttmon_mt_rec){ .site = (uint32_t)i,
				      .launch = (uint32_t)launch,
				      .cta = { raw->cta[0], raw->cta[1], raw->cta[2] },
				      .warp = (uint16_t)raw->warp,
				      .sm = TTMON_MT_NO_SM,
				      .space = site->space,
				      .width = site->width,
				      .flags = TTMON_MT_INFERRED | TTMON_MT_SLOT };
	rec->mask = ttmon_mt_infer(addr, site->space, &r->range, 0);
	rec->mask = ttmon_mt_known_lanes(&r->knows, site->space, addr, UINT32_MAX, rec->mask) &
		    ttmon_mt_row_lanes(op, strlen(op));
	if (!rec->mask) {
		r->stats->malformed++;
		return 0;
	}
	ttmon_mt_fit(rec, addr);
	rec->seq = r->seq++;
	r->stats->no_launch++;
	b->nr++;
	return 0;
}

/* Records are found again behind damage where two in a row make sense. 0: not in what is there. */
static size_t resync(const struct reader *r, const uint8_t *p, size_t n)
{
	for (size_t k = 4; k + 2 * r->size <= n; k += 4) {
		struct raw a, z;
		bool none_a, none_z;

		take(p + k, r->size, &a);
		take(p + k + r->size, r->size, &z);
		if (plausible(&a, &none_a) && plausible(&z, &none_z) && !none_a && !none_z)
			return k;
	}
	return 0;
}

static int64_t raw_parse(void *reader, const uint8_t *p, size_t n, bool end, struct ttmon_mt_batch *b, char *why,
			 size_t n_why)
{
	struct reader *r = reader;
	size_t at = 0;
	int err = 0;

	if (!r->size) {
		r->size = score(p, n, SMALL) > score(p, n, BIG) ? SMALL : BIG;
		snprintf(r->stats->tool, sizeof(r->stats->tool), "NVBit mem_trace, %zu-byte records", r->size);
	}
	while (b->nr < TTMON_MT_BATCH && n - at >= r->size && !err) {
		struct raw raw;
		bool nothing;

		take(p + at, r->size, &raw);
		if (!plausible(&raw, &nothing)) {
			size_t k = resync(r, p + at, n - at), nr = MAX(k / r->size, (size_t)1);

			/* Look again with more behind it. */
			if (!k && !end && n - at < 4 * r->size)
				break;
			/* Nothing but at the end of what was looked at can be one. */
			if (!k)
				nr = MAX((n - at) / r->size, (size_t)3) - 2;
			r->stats->malformed += nr;
			r->bad += (unsigned int)nr;
			if (!k && r->bad > GIVE_UP) {
				snprintf(why, n_why, "no records of mem_trace behind byte %llu",
					 (unsigned long long)(r->at + at));
				return -EBADMSG;
			}
			at += k ?: nr * r->size;
			continue;
		}
		at += r->size;
		r->bad = 0;
		if (raw.end)
			r->kernels++;
		else
			err = put(r, &raw, b);
	}
	if (err) {
		snprintf(why, n_why, "%s",
			 err == -E2BIG ? "more instructions or launches than can be kept" : "out of memory");
		return err;
	}
	/* Less than a record: the dump was cut. */
	if (end && at < n && n - at < r->size && b->nr < TTMON_MT_BATCH) {
		r->stats->cut = true;
		at = n;
	}
	r->at += at;
	return (int64_t)at;
}

const struct ttmon_mt_format ttmon_mt_raw = { "NVBit records", raw_detect, raw_open, raw_parse, raw_free };
