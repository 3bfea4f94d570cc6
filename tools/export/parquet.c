// SPDX-License-Identifier: GPL-2.0-only
/*
 * parquet.c: see parquet.h. The format is that of the Apache Parquet project: "File Format",
 * parquet.thrift, "Parquet encoding definitions" (Encodings.md) of github.com/apache/parquet-format,
 * and "Thrift Compact protocol encoding" (thrift-compact-protocol.md) of github.com/apache/thrift.
 *
 *	"PAR1"
 *	row group, of up to GROUP rows: for each column a dictionary page, or none, and one data page.
 *		A page is a header in the compact protocol and a body that zstd has packed.
 *		A data page has the definition levels (1: known, 0: null), then the values that are known
 *	FileMetaData in the compact protocol, its length (4 bytes), "PAR1"
 *
 * A column is encoded in one of three ways: as it is, by a dictionary of its row group, or, integers
 * alone, by packed differences. Which one gives the smallest pages is tried on the first row group.
 */
#include "tools/export/parquet.h"

#include <zstd.h>

#include "lib/base/grow.h"
#include "lib/base/hash.h"
#include "lib/base/hmap.h"
#include "lib/base/varint.h"

#define GROUP	   TTMON_PARQUET_GROUP
#define MAX_TEXT   (64u << 20) /* bytes of texts of a row group after which it ends */
#define MAX_WORDS  (64u << 10) /* values of a dictionary */
#define ZSTD_LEVEL 3
#define MAGIC	   "PAR1"

/* Numbers of parquet.thrift. */
enum { TYPE_INT64 = 2, TYPE_BYTE_ARRAY = 6 };
enum { ENC_PLAIN = 0, ENC_RLE = 3, ENC_DELTA = 5, ENC_DICTIONARY = 8 };
enum { CODEC_ZSTD = 6, CONVERTED_UTF8 = 0, OPTIONAL = 1, DATA_PAGE = 0, DICTIONARY_PAGE = 2 };

/* Types of the compact protocol. */
enum { T_I32 = 5, T_I64 = 6, T_BINARY = 8, T_LIST = 9, T_STRUCT = 12 };

/* A growing text of bytes; after a failure it stays as it is, and failed says so. */
struct bytes {
	uint8_t *v;
	size_t n, cap;
	bool failed;
};

/* What the footer says of a column in a row group. */
struct chunk {
	uint64_t at, dict_at, size, raw; /* places in the file; bytes packed and not, with headers */
	int encoding;
};

struct column {
	const struct ttmon_export_column *def;
	bool chosen; /* encoding is */
	int encoding;
	int64_t *ints; /* of the rows that are known; of texts their number among words */
	uint8_t *known;
	size_t nr_known;
	/* texts: each different one once; words[i] to words[i + 1] in text */
	struct bytes text;
	uint32_t *words;
	size_t nr_words, cap_words;
	uint32_t *slots; /* of the hash table, 1 + number */
	size_t nr_slots;
};

struct ttmon_parquet {
	FILE *f;
	const struct ttmon_export_table *t;
	struct column *columns;
	ZSTD_CCtx *zstd;
	uint64_t at; /* in the file */
	uint64_t rows, seed;
	size_t group_rows, text;
	struct chunk *chunks; /* t->nr for each row group */
	uint64_t *groups;     /* rows of each */
	size_t nr_groups, cap_chunks, cap_groups;
	uint32_t *index; /* scratch: numbers in a dictionary */
	int64_t *dict;
	struct bytes body, words, best, best_words, head;
};

/* ---- bytes ---- */

static uint8_t *room(struct bytes *b, size_t n)
{
	if (b->failed || TTMON_GROW(b->v, b->cap, b->n + n, 4096)) {
		b->failed = true;
		return NULL;
	}
	return b->v + b->n;
}

static void put(struct bytes *b, const void *data, size_t n)
{
	uint8_t *p = room(b, n);

	if (p && n)
		memcpy(p, data, n);
	b->n += p ? n : 0;
}

static void put_byte(struct bytes *b, uint8_t v)
{
	put(b, &v, 1);
}

static void put_le(struct bytes *b, uint64_t v, size_t n)
{
	uint8_t le[8];

	for (size_t i = 0; i < n; i++)
		le[i] = (uint8_t)(v >> (8 * i));
	put(b, le, n);
}

static void put_varint(struct bytes *b, uint64_t v)
{
	uint8_t *p = room(b, TTMON_VARINT_MAX);

	if (p)
		b->n = (size_t)(ttmon_varint_put(p, v) - b->v);
}

static void put_zigzag(struct bytes *b, uint64_t v)
{
	put_varint(b, ttmon_zigzag(v));
}

/* ---- the compact protocol ---- */

/* A field of a struct whose last field was *last. */
static void field(struct bytes *b, int *last, int id, int type)
{
	put_byte(b, (uint8_t)((id - *last) << 4 | type));
	*last = id;
}

static void field_int(struct bytes *b, int *last, int id, int type, uint64_t v)
{
	field(b, last, id, type);
	put_zigzag(b, v);
}

static void text_of(struct bytes *b, const char *text)
{
	put_varint(b, strlen(text));
	put(b, text, strlen(text));
}

static void list(struct bytes *b, size_t n, int type)
{
	put_byte(b, (uint8_t)((n < 15 ? n : 15) << 4 | (size_t)type));
	if (n >= 15)
		put_varint(b, n);
}

static void end(struct bytes *b)
{
	put_byte(b, 0);
}

/* ---- encodings ---- */

/* Packs n values of width bits each, the lowest bit first; bytes are padded with zeros. */
static void pack(struct bytes *b, const uint64_t *v, size_t n, unsigned int width)
{
	size_t len = (n * width + 7) / 8;
	uint8_t *p = room(b, len);
	unsigned __int128 bits = 0;
	unsigned int have = 0;

	if (!p)
		return;
	for (size_t i = 0; i < n; i++) {
		bits |= (unsigned __int128)v[i] << have;
		for (have += width; have >= 8; have -= 8, bits >>= 8)
			*p++ = (uint8_t)bits;
	}
	if (have)
		*p = (uint8_t)bits;
	b->n += len;
}

static unsigned int width_of(uint64_t max)
{
	return max ? 64 - (unsigned int)__builtin_clzll(max) : 0;
}

/* Groups of eight values, the last one filled with zeros. */
static void put_groups(struct bytes *b, const uint32_t *v, size_t n, unsigned int width)
{
	if (!n)
		return;
	put_varint(b, (n + 7) / 8 << 1 | 1);
	for (size_t i = 0; i < n; i += 8) {
		uint64_t group[8] = { 0 };

		for (size_t k = 0; k < 8 && i + k < n; k++)
			group[k] = v[i + k];
		pack(b, group, 8, width);
	}
}

/* Runs of equal values, and groups of eight between them. */
static void put_runs(struct bytes *b, const uint32_t *v, size_t n, unsigned int width)
{
	size_t begun = 0;

	for (size_t i = 0; i < n;) {
		size_t run = 1;

		while (i + run < n && v[i + run] == v[i])
			run++;
		if (run < 8) {
			i += 8;
			continue;
		}
		put_groups(b, v + begun, i - begun, width);
		put_varint(b, run << 1);
		put_le(b, v[i], (width + 7) / 8);
		i += run;
		begun = i;
	}
	put_groups(b, v + begun, n - begun, width);
}

#define BLOCK 128u
#define MINI  32u

/* DELTA_BINARY_PACKED: blocks of 128 differences, above the least of them, in four parts. */
static void put_deltas(struct bytes *b, const int64_t *v, size_t n)
{
	put_varint(b, BLOCK);
	put_varint(b, BLOCK / MINI);
	put_varint(b, n);
	put_zigzag(b, n ? (uint64_t)v[0] : 0);
	for (size_t i = 1; i < n; i += BLOCK) {
		size_t in = MIN(n - i, (size_t)BLOCK);
		uint64_t deltas[BLOCK] = { 0 };
		uint8_t widths[BLOCK / MINI] = { 0 };
		int64_t least = INT64_MAX;

		for (size_t k = 0; k < in; k++) {
			deltas[k] = (uint64_t)v[i + k] - (uint64_t)v[i + k - 1];
			least = MIN(least, (int64_t)deltas[k]);
		}
		for (size_t k = 0; k < in; k++) {
			deltas[k] -= (uint64_t)least;
			widths[k / MINI] = MAX(widths[k / MINI], (uint8_t)width_of(deltas[k]));
		}
		put_zigzag(b, (uint64_t)least);
		put(b, widths, sizeof(widths));
		for (size_t m = 0; m * MINI < in; m++)
			pack(b, deltas + m * MINI, MINI, widths[m]);
	}
}

static void put_word(struct bytes *b, const struct column *c, int64_t i)
{
	uint32_t from = c->words[i], len = c->words[i + 1] - from;

	put_le(b, len, 4);
	put(b, c->text.v + from, len);
}

static void put_plain(struct bytes *b, const struct column *c, const int64_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (c->def->text)
			put_word(b, c, v[i]);
		else
			put_le(b, (uint64_t)v[i], 8);
	}
}

/* The numbers of the values in a dictionary of n; SIZE_MAX: there are too many, or no memory. */
static size_t make_dictionary(struct ttmon_parquet *p, const struct column *c)
{
	struct ttmon_hmap map = { 0 };
	size_t n = 0;

	if (c->def->text) {
		for (size_t i = 0; i < c->nr_known; i++)
			p->index[i] = (uint32_t)c->ints[i];
		return c->nr_words > MAX_WORDS ? SIZE_MAX : c->nr_words;
	}
	for (size_t i = 0; i < c->nr_known; i++) {
		uint64_t key = (uint64_t)c->ints[i] ^ p->seed, at;

		if (i && c->ints[i] == c->ints[i - 1]) {
			p->index[i] = p->index[i - 1];
			continue;
		}
		at = ttmon_hmap_get(&map, key);
		if (at == TTMON_HMAP_NONE) {
			at = n;
			if (n == MAX_WORDS || ttmon_hmap_put(&map, key, n)) {
				n = SIZE_MAX;
				break;
			}
			p->dict[n++] = c->ints[i];
		}
		p->index[i] = (uint32_t)at;
	}
	ttmon_hmap_fini(&map);
	return n;
}

/* ---- pages ---- */

static void put_levels(struct ttmon_parquet *p, const struct column *c, struct bytes *b)
{
	size_t at = b->n;

	put_le(b, 0, 4);
	/* One bit a row; p->index is free here. */
	for (size_t i = 0; i < p->group_rows; i++)
		p->index[i] = c->known[i];
	put_runs(b, p->index, p->group_rows, 1);
	for (size_t i = 0; i < 4 && !b->failed; i++)
		b->v[at + i] = (uint8_t)((b->n - at - 4) >> (8 * i));
}

/* A page: header and packed body, at the end of to. -errno. */
static int put_page(struct ttmon_parquet *p, struct bytes *to, const struct bytes *body, bool dictionary, size_t values,
		    int encoding, uint64_t *raw)
{
	size_t bound = ZSTD_compressBound(body->n), packed;
	struct bytes *h = &p->head;
	int last = 0, inner = 0;
	_cleanup_free_ uint8_t *out = malloc(bound);

	if (!out || body->failed)
		return -ENOMEM;
	packed = ZSTD_compressCCtx(p->zstd, out, bound, body->v, body->n, ZSTD_LEVEL);
	if (ZSTD_isError(packed))
		return -ENOMEM;
	h->n = 0;
	field_int(h, &last, 1, T_I32, dictionary ? DICTIONARY_PAGE : DATA_PAGE);
	field_int(h, &last, 2, T_I32, body->n);
	field_int(h, &last, 3, T_I32, packed);
	field(h, &last, dictionary ? 7 : 5, T_STRUCT);
	field_int(h, &inner, 1, T_I32, values);
	field_int(h, &inner, 2, T_I32, (uint64_t)encoding);
	if (!dictionary) {
		field_int(h, &inner, 3, T_I32, ENC_RLE);
		field_int(h, &inner, 4, T_I32, ENC_RLE);
	}
	end(h);
	end(h);
	*raw += h->n + body->n;
	put(to, h->v, h->n);
	put(to, out, packed);
	return h->failed || to->failed ? -ENOMEM : 0;
}

/*
 * The pages of a column in one encoding: those of a dictionary in dict, else that is empty. 1: it does
 * not fit into this encoding.
 */
static int encode(struct ttmon_parquet *p, const struct column *c, int encoding, struct bytes *dict, struct bytes *data,
		  uint64_t *raw)
{
	_cleanup_free_ uint32_t *index = NULL;
	struct bytes body = { 0 };
	size_t words = 0;
	int err = 0;

	dict->n = data->n = 0;
	*raw = 0;
	if (encoding == ENC_DELTA && c->def->text)
		return 1;
	if (encoding == ENC_DICTIONARY) {
		words = make_dictionary(p, c);
		if (words == SIZE_MAX)
			return 1;
		index = malloc((c->nr_known + 1) * sizeof(*index));
		if (!index)
			return -ENOMEM;
		memcpy(index, p->index, c->nr_known * sizeof(*index));
		for (size_t i = 0; c->def->text && i < words; i++)
			put_word(&body, c, (int64_t)i);
		if (!c->def->text)
			put_plain(&body, c, p->dict, words);
		err = put_page(p, dict, &body, true, words, ENC_PLAIN, raw);
	}
	body.n = 0;
	put_levels(p, c, &body);
	if (encoding == ENC_DICTIONARY) {
		unsigned int width = width_of(words ? words - 1 : 0);

		put_byte(&body, (uint8_t)width);
		put_runs(&body, index, c->nr_known, width);
	} else if (encoding == ENC_DELTA) {
		put_deltas(&body, c->ints, c->nr_known);
	} else {
		put_plain(&body, c, c->ints, c->nr_known);
	}
	err = err ? err : put_page(p, data, &body, false, p->group_rows, encoding, raw);
	free(body.v);
	return err;
}

static int write_out(struct ttmon_parquet *p, const void *data, size_t n)
{
	if (n && fwrite(data, 1, n, p->f) != n)
		return -EIO;
	p->at += n;
	return 0;
}

static void swap(struct bytes *a, struct bytes *b)
{
	struct bytes t = *a;

	*a = *b;
	*b = t;
}

/* The smallest pages, in p->best_words and p->best. */
static int try_all(struct ttmon_parquet *p, struct column *c, uint64_t *raw)
{
	static const int encodings[] = { ENC_DICTIONARY, ENC_DELTA, ENC_PLAIN };
	size_t best = SIZE_MAX;
	uint64_t r;

	for (size_t i = 0; i < ARRAY_SIZE(encodings); i++) {
		int err = encode(p, c, encodings[i], &p->words, &p->body, &r);

		if (err < 0)
			return err;
		if (err || p->words.n + p->body.n >= best)
			continue;
		best = p->words.n + p->body.n;
		c->encoding = encodings[i];
		*raw = r;
		swap(&p->words, &p->best_words);
		swap(&p->body, &p->best);
	}
	/* What a column without values is like says nothing about it. */
	c->chosen = c->nr_known;
	return 0;
}

static int write_column(struct ttmon_parquet *p, struct column *c, struct chunk *ret)
{
	int err = 0, encoding = c->encoding;
	uint64_t raw = 0;

	if (!c->chosen) {
		err = try_all(p, c, &raw);
		encoding = c->encoding;
	} else {
		err = encode(p, c, encoding, &p->best_words, &p->best, &raw);
		if (err == 1) {
			encoding = c->def->text ? ENC_PLAIN : ENC_DELTA;
			err = encode(p, c, encoding, &p->best_words, &p->best, &raw);
		}
	}
	if (err)
		return err;
	*ret = (struct chunk){ .dict_at = p->best_words.n ? p->at : 0,
			       .at = p->at + p->best_words.n,
			       .size = p->best_words.n + p->best.n,
			       .raw = raw,
			       .encoding = encoding };
	err = write_out(p, p->best_words.v, p->best_words.n);
	return err ? err : write_out(p, p->best.v, p->best.n);
}

static int write_group(struct ttmon_parquet *p)
{
	int err = 0;

	if (!p->group_rows)
		return 0;
	if (TTMON_GROW(p->chunks, p->cap_chunks, (p->nr_groups + 1) * p->t->nr, 64) ||
	    TTMON_GROW(p->groups, p->cap_groups, p->nr_groups + 1, 16))
		return -ENOMEM;
	for (unsigned int i = 0; i < p->t->nr && !err; i++) {
		struct column *c = &p->columns[i];

		err = write_column(p, c, &p->chunks[p->nr_groups * p->t->nr + i]);
		c->nr_known = c->nr_words = c->text.n = 0;
		memset(c->slots, 0, c->nr_slots * sizeof(*c->slots));
	}
	p->groups[p->nr_groups++] = p->group_rows;
	p->rows += p->group_rows;
	p->group_rows = p->text = 0;
	return err;
}

/* ---- rows ---- */

static int grow_slots(struct ttmon_parquet *p, struct column *c)
{
	size_t n = c->nr_slots ? c->nr_slots * 2 : 256;
	uint32_t *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < c->nr_words; i++) {
		uint32_t from = c->words[i], len = c->words[i + 1] - from;
		size_t at = ttmon_mix64(ttmon_fnv(p->seed, c->text.v + from, len)) & (n - 1);

		while (slots[at])
			at = (at + 1) & (n - 1);
		slots[at] = (uint32_t)i + 1;
	}
	free(c->slots);
	c->slots = slots;
	c->nr_slots = n;
	return 0;
}

static bool is_word(const struct column *c, uint32_t i, const char *text, size_t len)
{
	return c->words[i + 1] - c->words[i] == len && !memcmp(c->text.v + c->words[i], text, len);
}

/* The number of a text among those of the row group. -ENOMEM. */
static int64_t intern(struct ttmon_parquet *p, struct column *c, const char *text)
{
	size_t len = strlen(text), at;

	/* Most are the one before. */
	if (c->nr_known && is_word(c, (uint32_t)c->ints[c->nr_known - 1], text, len))
		return c->ints[c->nr_known - 1];
	if (2 * (c->nr_words + 1) > c->nr_slots && grow_slots(p, c))
		return -ENOMEM;
	at = ttmon_mix64(ttmon_fnv(p->seed, text, len)) & (c->nr_slots - 1);
	for (; c->slots[at]; at = (at + 1) & (c->nr_slots - 1))
		if (is_word(c, c->slots[at] - 1, text, len))
			return c->slots[at] - 1;
	if (TTMON_GROW(c->words, c->cap_words, c->nr_words + 2, 256))
		return -ENOMEM;
	put(&c->text, text, len);
	if (c->text.failed)
		return -ENOMEM;
	c->words[0] = 0;
	c->words[++c->nr_words] = (uint32_t)c->text.n;
	c->slots[at] = (uint32_t)c->nr_words;
	p->text += len;
	return (int64_t)c->nr_words - 1;
}

int ttmon_parquet_row(struct ttmon_parquet *p, const struct ttmon_export_value *values)
{
	for (unsigned int i = 0; i < p->t->nr; i++) {
		struct column *c = &p->columns[i];
		bool known = c->def->text ? values[i].text != NULL : values[i].known;
		int64_t v = values[i].n;

		if (known && c->def->text) {
			v = intern(p, c, values[i].text);
			if (v < 0)
				return -ENOMEM;
		}
		c->known[p->group_rows] = known;
		if (known)
			c->ints[c->nr_known++] = v;
	}
	p->group_rows++;
	return p->group_rows == GROUP || p->text >= MAX_TEXT ? write_group(p) : 0;
}

/* ---- the footer ---- */

static void put_schema(struct ttmon_parquet *p, struct bytes *b)
{
	int last = 0;

	list(b, p->t->nr + 1, T_STRUCT);
	field(b, &last, 4, T_BINARY);
	text_of(b, p->t->name);
	field_int(b, &last, 5, T_I32, p->t->nr);
	end(b);
	for (unsigned int i = 0; i < p->t->nr; i++) {
		bool text = p->t->columns[i].text;
		int inner = 0;

		last = 0;
		field_int(b, &last, 1, T_I32, text ? TYPE_BYTE_ARRAY : TYPE_INT64);
		field_int(b, &last, 3, T_I32, OPTIONAL);
		field(b, &last, 4, T_BINARY);
		text_of(b, p->t->columns[i].name);
		if (text) {
			field_int(b, &last, 6, T_I32, CONVERTED_UTF8);
			/* The logical type STRING: a union whose member 1 is an empty struct. */
			field(b, &last, 10, T_STRUCT);
			field(b, &inner, 1, T_STRUCT);
			end(b);
			end(b);
		}
		end(b);
	}
}

static void put_chunk(struct ttmon_parquet *p, struct bytes *b, const struct chunk *c, unsigned int column,
		      uint64_t rows)
{
	const struct ttmon_export_column *def = &p->t->columns[column];
	int last = 0, meta = 0;

	field_int(b, &last, 2, T_I64, c->dict_at ? c->dict_at : c->at);
	field(b, &last, 3, T_STRUCT);
	field_int(b, &meta, 1, T_I32, def->text ? TYPE_BYTE_ARRAY : TYPE_INT64);
	field(b, &meta, 2, T_LIST);
	list(b, c->dict_at ? 3 : 2, T_I32);
	put_zigzag(b, ENC_RLE);
	put_zigzag(b, (uint64_t)c->encoding);
	if (c->dict_at)
		put_zigzag(b, ENC_PLAIN);
	field(b, &meta, 3, T_LIST);
	list(b, 1, T_BINARY);
	text_of(b, def->name);
	field_int(b, &meta, 4, T_I32, CODEC_ZSTD);
	field_int(b, &meta, 5, T_I64, rows);
	field_int(b, &meta, 6, T_I64, c->raw);
	field_int(b, &meta, 7, T_I64, c->size);
	field_int(b, &meta, 9, T_I64, c->at);
	if (c->dict_at)
		field_int(b, &meta, 11, T_I64, c->dict_at);
	end(b);
	end(b);
}

int ttmon_parquet_finish(struct ttmon_parquet *p)
{
	int err = write_group(p), last = 0;
	struct bytes b = { 0 };

	field_int(&b, &last, 1, T_I32, 2);
	field(&b, &last, 2, T_LIST);
	put_schema(p, &b);
	field_int(&b, &last, 3, T_I64, p->rows);
	field(&b, &last, 4, T_LIST);
	list(&b, p->nr_groups, T_STRUCT);
	for (size_t g = 0; g < p->nr_groups; g++) {
		const struct chunk *chunks = &p->chunks[g * p->t->nr];
		uint64_t raw = 0;
		int group = 0;

		field(&b, &group, 1, T_LIST);
		list(&b, p->t->nr, T_STRUCT);
		for (unsigned int i = 0; i < p->t->nr; i++) {
			put_chunk(p, &b, &chunks[i], i, p->groups[g]);
			raw += chunks[i].raw;
		}
		field_int(&b, &group, 2, T_I64, raw);
		field_int(&b, &group, 3, T_I64, p->groups[g]);
		end(&b);
	}
	field(&b, &last, 6, T_BINARY);
	text_of(&b, "ttmon");
	end(&b);
	put_le(&b, b.n, 4);
	put(&b, MAGIC, 4);
	if (b.failed)
		err = err ? err : -ENOMEM;
	err = err ? err : write_out(p, b.v, b.n);
	free(b.v);
	return err;
}

/* ---- life ---- */

int ttmon_parquet_new(FILE *f, const struct ttmon_export_table *t, struct ttmon_parquet **ret)
{
	struct ttmon_parquet *p = calloc(1, sizeof(*p));
	bool ok = p;

	if (p) {
		/* A file cannot be written that makes hashes collide: the address space is random. */
		p->seed = ttmon_mix64((uint64_t)(uintptr_t)p);
		p->f = f;
		p->t = t;
		p->zstd = ZSTD_createCCtx();
		p->columns = calloc(t->nr, sizeof(*p->columns));
		p->index = malloc(GROUP * sizeof(*p->index));
		p->dict = malloc(MAX_WORDS * sizeof(*p->dict));
		ok = p->zstd && p->columns && p->index && p->dict;
	}
	for (unsigned int i = 0; ok && i < t->nr; i++) {
		struct column *c = &p->columns[i];

		c->def = &t->columns[i];
		c->ints = malloc(GROUP * sizeof(*c->ints));
		c->known = malloc(GROUP);
		ok = c->ints && c->known;
	}
	if (!ok) {
		ttmon_parquet_free(p);
		return -ENOMEM;
	}
	if (write_out(p, MAGIC, 4)) {
		ttmon_parquet_free(p);
		return -EIO;
	}
	*ret = p;
	return 0;
}

void ttmon_parquet_free(struct ttmon_parquet *p)
{
	if (!p)
		return;
	for (unsigned int i = 0; p->columns && i < p->t->nr; i++) {
		struct column *c = &p->columns[i];

		free(c->ints);
		free(c->known);
		free(c->text.v);
		free(c->words);
		free(c->slots);
	}
	free(p->columns);
	free(p->chunks);
	free(p->groups);
	free(p->index);
	free(p->dict);
	free(p->body.v);
	free(p->words.v);
	free(p->best.v);
	free(p->best_words.v);
	free(p->head.v);
	ZSTD_freeCCtx(p->zstd);
	free(p);
}
