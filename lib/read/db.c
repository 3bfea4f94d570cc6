// SPDX-License-Identifier: GPL-2.0-only
/*
 * lib/read/db.c: the database reader. The document is a stream of bytes (zlib reads uncompressed files
 * too). A small scanner that only knows strings and brackets cuts out one value at a time, and jansson
 * parses it. The scanner limits depth, size and number of values before jansson gets anything; jansson
 * decides what is valid JSON.
 */
#include "lib/read/db.h"

#include <fcntl.h>
#include <stdarg.h>

#include <zlib.h>

#define IN_SIZE (128u << 10)

/* Current position in the document. */
enum place { IN_HEAD, IN_ALLOCS, IN_TAIL, AT_END };

struct ttmon_db {
	gzFile gz;
	char *path;
	unsigned char *in;
	size_t pos, len;
	uint64_t offset; /* position of in[0] in the uncompressed document */
	char *val;	 /* text of the value cut out last */
	size_t val_len, val_cap;
	size_t val_nr;	    /* number of values in it */
	size_t members_len; /* bytes of text of the members so far */
	size_t members_nr;  /* number of values of the members so far */
	json_t *members;
	enum place place;
	bool first; /* nothing was read yet in the current object or array */
	uint64_t allocs;
	int err;
	char why[512];
};

static int fail(struct ttmon_db *db, int err, const char *fmt, ...) _printf_(3, 4);
static int fail(struct ttmon_db *db, int err, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	/* Only the first error is kept; later ones follow from it. */
	if (db->err)
		return db->err;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(db->why, sizeof(db->why), "%.200s: %s", db->path, text);
	db->err = err;
	return err;
}

static int fail_here(struct ttmon_db *db, const char *what)
{
	return fail(db, -EBADMSG, "damaged at byte %llu: %s", (unsigned long long)(db->offset + db->pos), what);
}

static int fail_cut(struct ttmon_db *db)
{
	if (!db->offset && !db->len && gzdirect(db->gz))
		return fail(db, -EBADMSG, "empty, not a ttmond database");
	return fail(db, -EBADMSG, "cut off after %llu bytes and %llu allocations",
		    (unsigned long long)(db->offset + db->pos), (unsigned long long)db->allocs);
}

/* Reads more bytes. Returns 1, 0 at the end of the file, or -errno. */
static int refill(struct ttmon_db *db)
{
	int n, zerr = Z_OK;
	const char *text;

	if (db->pos < db->len)
		return 1;
	n = gzread(db->gz, db->in, IN_SIZE);
	if (n > 0) {
		db->offset += db->len;
		db->pos = 0;
		db->len = (size_t)n;
		return 1;
	}
	text = gzerror(db->gz, &zerr);
	if (zerr == Z_ERRNO)
		return fail(db, errno ? -errno : -EIO, "cannot read: %s", strerror(errno));
	if (zerr == Z_BUF_ERROR)
		return fail_cut(db);
	if (n < 0 || (zerr != Z_OK && zerr != Z_STREAM_END))
		return fail(db, -EBADMSG, "damaged gzip data: %s", text);
	return 0;
}

/*
 * Returns the next byte that is not white space, without consuming it. -EBADMSG at the end of the
 * file.
 */
static int peek(struct ttmon_db *db)
{
	for (;;) {
		int r = refill(db);

		if (r < 0)
			return r;
		if (r == 0)
			return fail_cut(db);
		for (; db->pos < db->len; db->pos++) {
			unsigned char c = db->in[db->pos];

			if (c != ' ' && c != '\n' && c != '\t' && c != '\r')
				return c;
		}
	}
}

/* Consumes the byte c. */
static int expect(struct ttmon_db *db, char c, const char *what)
{
	int r = peek(db);

	if (r < 0)
		return r;
	if (r != c)
		return fail_here(db, what);
	db->pos++;
	return 0;
}

static int keep(struct ttmon_db *db, const unsigned char *p, size_t n, size_t limit)
{
	if (n > limit - db->val_len)
		return fail(db, -E2BIG, "a value is longer than %zu bytes at byte %llu", limit,
			    (unsigned long long)(db->offset + db->pos));
	if (db->val_len + n > db->val_cap) {
		size_t cap = MAX(db->val_cap * 2, db->val_len + n);
		char *val;

		cap = MIN(MAX(cap, (size_t)4096), MAX(limit, (size_t)4096));
		val = realloc(db->val, cap);
		if (!val)
			return fail(db, -ENOMEM, "out of memory");
		db->val = val;
		db->val_cap = cap;
	}
	memcpy(db->val + db->val_len, p, n);
	db->val_len += n;
	return 0;
}

/* State of the scanner within one value. */
struct scan {
	unsigned int depth;
	size_t values;
	bool string, escape, done;
};

/* Classes of bytes that matter to the scanner. */
enum { PLAIN, QUOTE, OPEN, CLOSE, COMMA, BREAK, BACKSLASH };
static const unsigned char class_of[256] = {
	['"'] = QUOTE, ['{'] = OPEN,  ['['] = OPEN,   ['}'] = CLOSE,  [']'] = CLOSE,  [','] = COMMA,
	[':'] = BREAK, [' '] = BREAK, ['\n'] = BREAK, ['\t'] = BREAK, ['\r'] = BREAK, ['\\'] = BACKSLASH,
};

/*
 * Scans bytes at p until the value or the bytes end; returns how many belong to the value. -E2BIG:
 * nested too deeply.
 */
static ssize_t scan_bytes(struct scan *s, const unsigned char *p, size_t n)
{
	size_t i;

	for (i = 0; i < n && !s->done; i++) {
		unsigned char cls = class_of[p[i]];

		if (cls == PLAIN && !s->escape)
			continue;
		if (s->string) {
			if (s->escape)
				s->escape = false;
			else if (cls == BACKSLASH)
				s->escape = true;
			else if (cls == QUOTE)
				s->string = false;
			s->done = !s->string && !s->depth;
		} else if (cls == QUOTE) {
			s->string = true;
		} else if (cls == OPEN) {
			s->values++;
			if (++s->depth > TTMON_DB_MAX_DEPTH)
				return -E2BIG;
		} else if (cls == CLOSE && s->depth) {
			s->done = --s->depth == 0;
		} else if (!s->depth) {
			/* A number or word ends before the byte that follows it. */
			s->done = true;
			break;
		} else {
			s->values += cls == COMMA;
		}
	}
	return (ssize_t)i;
}

/*
 * Cuts one value out of the stream, into db->val if want is set; nr: the most values that it may
 * contain then.
 */
static int cut(struct ttmon_db *db, size_t limit, size_t nr, bool want)
{
	struct scan s = { 0 };
	size_t len = 0;
	int r = peek(db);

	db->val_len = 0;
	while (r >= 0 && !s.done) {
		ssize_t n;

		r = refill(db);
		if (r <= 0)
			return r < 0 ? r : fail_cut(db);
		n = scan_bytes(&s, db->in + db->pos, db->len - db->pos);
		if (n < 0)
			return fail(db, -E2BIG, "nested deeper than %d levels at byte %llu", TTMON_DB_MAX_DEPTH,
				    (unsigned long long)(db->offset + db->pos));
		len += (size_t)n;
		if (want && s.values > nr)
			return fail(db, -E2BIG, "more than %u values before byte %llu", TTMON_DB_MAX_VALUES,
				    (unsigned long long)(db->offset + db->pos + (size_t)n));
		r = want ? keep(db, db->in + db->pos, (size_t)n, limit) : 0;
		db->pos += (size_t)n;
	}
	if (r < 0)
		return r;
	db->val_nr = s.values;
	return len ? 0 : fail_here(db, "a value is missing");
}

/* Parses the value that was cut out. */
static json_t *parse(struct ttmon_db *db)
{
	json_error_t error;
	json_t *json = json_loadb(db->val, db->val_len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);

	if (!json) {
		/* jansson's message may quote bytes of the file, which must not control a terminal. */
		for (char *p = error.text; *p; p++)
			if ((unsigned char)*p < ' ' || (unsigned char)*p > '~')
				*p = '?';
		fail(db, -EBADMSG, "damaged before byte %llu: %s", (unsigned long long)(db->offset + db->pos),
		     error.text);
	}
	return json;
}

/* Reads the name of the next member and its colon. Returns 1, or 0 at the end of the document. */
static int next_key(struct ttmon_db *db, char key[TTMON_DB_MAX_KEY + 1])
{
	_cleanup_(ttmon_json_decrefp) json_t *json = NULL;
	int r = peek(db);

	if (r < 0)
		return r;
	if (r == '}') {
		db->pos++;
		return 0;
	}
	if (!db->first) {
		r = expect(db, ',', "a comma or the end of the document is missing");
		if (r)
			return r;
		r = peek(db);
		if (r < 0)
			return r;
	}
	if (r != '"')
		return fail_here(db, "a member name is missing");
	db->first = false;
	r = cut(db, TTMON_DB_MAX_KEY + 2, 0, true);
	if (r)
		return r;
	json = parse(db);
	if (!json)
		return db->err;
	if (json_string_length(json) > TTMON_DB_MAX_KEY)
		return fail_here(db, "a member name is too long");
	memcpy(key, json_string_value(json), json_string_length(json) + 1);
	r = expect(db, ':', "a colon is missing");
	return r ? r : 1;
}

static int read_member(struct ttmon_db *db, const char *key)
{
	json_t *json;
	int r;

	if (json_object_get(db->members, key))
		return fail_here(db, "a member is there twice");
	if (json_object_size(db->members) >= TTMON_DB_MAX_NR)
		return fail(db, -E2BIG, "more than %d members", TTMON_DB_MAX_NR);
	r = cut(db, TTMON_DB_MAX_MEMBERS - db->members_len, TTMON_DB_MAX_VALUES - db->members_nr, true);
	if (r)
		return r;
	db->members_len += db->val_len;
	db->members_nr += db->val_nr;
	json = parse(db);
	if (!json)
		return db->err;
	return json_object_set_new(db->members, key, json) ? fail(db, -ENOMEM, "out of memory") : 0;
}

/* Schema and version come first, to distinguish a file of another kind from a damaged one. */
static int check_head(struct ttmon_db *db)
{
	const json_t *schema = json_object_get(db->members, "schema"),
		     *version = json_object_get(db->members, "version");
	const char *name = json_string_value(schema);
	size_t n = json_object_size(db->members);

	if (!name || strcmp(name, TTMON_DB_READS_SCHEMA) != 0)
		return fail(db, -EBADMSG, "not a ttmond database");
	if (n < 2)
		return 0;
	if (!json_is_integer(version))
		return fail(db, -EBADMSG, "not a ttmond database: it has no version");
	if (json_integer_value(version) != TTMON_DB_READS_VERSION)
		return fail(db, -EPROTONOSUPPORT, "version %lld of the database; this program reads version %d",
			    (long long)json_integer_value(version), TTMON_DB_READS_VERSION);
	return 0;
}

static int read_head(struct ttmon_db *db)
{
	char key[TTMON_DB_MAX_KEY + 1];
	int r = peek(db);

	if (r < 0)
		return r;
	if (r != '{')
		return fail(db, -EBADMSG, "not a ttmond database");
	db->pos++;
	while ((r = next_key(db, key)) == 1) {
		if (json_object_size(db->members) == 0 && strcmp(key, "schema") != 0)
			return fail(db, -EBADMSG, "not a ttmond database");
		if (strcmp(key, "allocations") == 0) {
			if (json_object_size(db->members) < 2)
				return fail(db, -EBADMSG, "not a ttmond database: it has no version");
			db->place = IN_ALLOCS;
			db->first = true;
			return expect(db, '[', "allocations is not an array");
		}
		r = read_member(db, key);
		if (!r)
			r = check_head(db);
		if (r)
			return r;
	}
	return r ? r : fail(db, -EBADMSG, "damaged: it has no allocations");
}

static int read_tail(struct ttmon_db *db)
{
	char key[TTMON_DB_MAX_KEY + 1];
	int r;

	while ((r = next_key(db, key)) == 1) {
		if (strcmp(key, "allocations") == 0)
			return fail_here(db, "a member is there twice");
		r = read_member(db, key);
		if (r)
			return r;
	}
	if (r)
		return r;
	/* Only white space may follow. */
	while ((r = refill(db)) == 1) {
		for (; db->pos < db->len; db->pos++)
			if (!strchr(" \n\t\r", db->in[db->pos]) || !db->in[db->pos])
				return fail_here(db, "there is more after the end of the document");
	}
	if (!r)
		db->place = AT_END;
	return r;
}

/*
 * Returns 1 if an allocation begins here; 0: there are no more, and the rest of the document was read.
 */
static int at_alloc(struct ttmon_db *db)
{
	int r;

	if (db->err)
		return db->err;
	if (db->place == AT_END)
		return 0;
	r = peek(db);
	if (r < 0)
		return r;
	if (r == ']') {
		db->pos++;
		db->place = IN_TAIL;
		db->first = false;
		return read_tail(db);
	}
	if (!db->first) {
		r = expect(db, ',', "a comma between allocations is missing");
		if (r)
			return r;
		r = peek(db);
		if (r < 0)
			return r;
	}
	db->first = false;
	return r == '{' ? 1 : fail_here(db, "an allocation is not an object");
}

int ttmon_db_next_alloc(struct ttmon_db *db, json_t **ret)
{
	json_t *json;
	int r = at_alloc(db);

	if (r <= 0)
		return r;
	r = cut(db, TTMON_DB_MAX_ALLOC, TTMON_DB_MAX_VALUES, true);
	if (r)
		return r;
	json = parse(db);
	if (!json)
		return db->err;
	db->allocs++;
	*ret = json;
	return 1;
}

/* Returns the bytes of an object at text; 0: it is damaged, or does not end here. */
static size_t take_fields(const char *text, size_t n, void (*take)(void *ctx, const struct ttmon_field *f), void *ctx)
{
	const char *at = text;
	struct ttmon_field f;
	int r;

	take(ctx, NULL);
	while ((r = ttmon_fields_next(&at, text + n, &f)) == 1)
		take(ctx, &f);
	return r ? 0 : (size_t)(at - text);
}

int ttmon_db_next_fields(struct ttmon_db *db, void (*take)(void *ctx, const struct ttmon_field *f), void *ctx)
{
	int r = at_alloc(db);
	size_t n;

	if (r <= 0)
		return r;
	/* Most lie in one piece in what was read last. */
	n = take_fields((const char *)db->in + db->pos, db->len - db->pos, take, ctx);
	db->pos += n;
	if (!n) {
		r = cut(db, TTMON_DB_MAX_ALLOC, TTMON_DB_MAX_VALUES, true);
		if (r)
			return r;
		if (!take_fields(db->val, db->val_len, take, ctx))
			return fail_here(db, "an allocation cannot be read");
	}
	db->allocs++;
	return 1;
}

int ttmon_db_skip(struct ttmon_db *db)
{
	int r;

	while ((r = at_alloc(db)) == 1) {
		r = cut(db, 0, 0, false);
		if (r)
			return r;
		db->allocs++;
	}
	return r;
}

json_t *ttmon_db_member(const struct ttmon_db *db, const char *name)
{
	return json_object_get(db->members, name);
}

const char *ttmon_db_why(const struct ttmon_db *db)
{
	return db->why;
}

static int open_file(struct ttmon_db *db)
{
	_cleanup_close_ int fd = -1;

	if (strcmp(db->path, "-") == 0)
		fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	else
		fd = open(db->path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return fail(db, -errno, "%s", strerror(errno));
	db->gz = gzdopen(fd, "r");
	if (!db->gz)
		return fail(db, -ENOMEM, "out of memory");
	TAKE_FD(fd);
	if (gzbuffer(db->gz, IN_SIZE))
		return fail(db, -ENOMEM, "out of memory");
	return read_head(db);
}

int ttmon_db_open(const char *path, struct ttmon_db **ret, char *why, size_t n)
{
	_cleanup_(ttmon_db_closep) struct ttmon_db *db = calloc(1, sizeof(*db));
	int err;

	if (db) {
		db->first = true;
		db->path = strdup(path);
		db->in = malloc(IN_SIZE);
		db->members = json_object();
	}
	if (!db || !db->path || !db->in || !db->members) {
		snprintf(why, n, "out of memory");
		return -ENOMEM;
	}
	err = open_file(db);
	if (err) {
		snprintf(why, n, "%s", db->why);
		return err;
	}
	*ret = TAKE_PTR(db);
	return 0;
}

void ttmon_db_close(struct ttmon_db *db)
{
	if (!db)
		return;
	if (db->gz)
		gzclose(db->gz);
	json_decref(db->members);
	free(db->val);
	free(db->in);
	free(db->path);
	free(db);
}

bool ttmon_db_u64(const json_t *obj, const char *key, uint64_t *ret)
{
	return ttmon_db_value(json_object_get(obj, key), ret);
}

bool ttmon_db_value(const json_t *json, uint64_t *ret)
{
	const char *text = json_string_value(json);
	unsigned long long value;
	char *end;

	if (json_is_integer(json)) {
		if (json_integer_value(json) < 0)
			return false;
		*ret = (uint64_t)json_integer_value(json);
		return true;
	}
	/* strtoull would accept a sign, white space and octal numbers. */
	if (!text || text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	value = strtoull(text, &end, text[0] == '0' && text[1] == 'x' ? 16 : 10);
	if (errno || *end)
		return false;
	*ret = value;
	return true;
}

uint64_t ttmon_db_get(const json_t *obj, const char *key, uint64_t def)
{
	ttmon_db_u64(obj, key, &def);
	return def;
}

const char *ttmon_db_str(const json_t *obj, const char *key, const char *def)
{
	const char *text = json_string_value(json_object_get(obj, key));

	return text ? text : def;
}

bool ttmon_db_get_checkpoint(const json_t *row, struct ttmon_db_checkpoint *ret)
{
	const char *label = json_string_value(json_array_get(row, 3));
	uint64_t ts_ns, process, tid;

	if (!label || !ttmon_db_value(json_array_get(row, 0), &ts_ns) ||
	    !ttmon_db_value(json_array_get(row, 1), &process) || !ttmon_db_value(json_array_get(row, 2), &tid) ||
	    process > UINT32_MAX || tid > UINT32_MAX)
		return false;
	*ret = (struct ttmon_db_checkpoint){ ts_ns, (uint32_t)process, (uint32_t)tid, label };
	return true;
}
