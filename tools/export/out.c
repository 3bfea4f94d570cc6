// SPDX-License-Identifier: GPL-2.0-only
/*
 * out.c: see out.h. libsqlite3 (public domain) is loaded when a database is to be written: all
 * else works without it. The declarations are those of its documentation (https://sqlite.org/c3ref).
 */
#include "tools/export/out.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <sys/stat.h>

#include "lib/base/fmt.h"
#include "lib/os/clock.h"
#include "tools/export/parquet.h"

#define MAX_TABLES  8
#define SQLITE_OK   0
#define SQLITE_DONE 101
/* The text lives as long as the statement is not run again. */
#define SQLITE_STATIC ((void (*)(void *))0)

struct sqlite {
	void *lib, *db, *inserts[MAX_TABLES];
	int (*open)(const char *path, void **ret);
	int (*close)(void *db);
	int (*exec)(void *db, const char *sql, void *cb, void *ctx, char **err);
	int (*prepare)(void *db, const char *sql, int n, void **ret, const char **tail);
	int (*bind_int64)(void *stmt, int i, long long v);
	int (*bind_text)(void *stmt, int i, const char *text, int n, void (*release)(void *));
	int (*bind_null)(void *stmt, int i);
	int (*step)(void *stmt);
	int (*reset)(void *stmt);
	int (*finalize)(void *stmt);
	const char *(*errmsg)(void *db);
};

struct ttmon_export {
	enum ttmon_export_format format;
	char dir[PATH_MAX];
	const struct ttmon_export_table *tables;
	unsigned int nr;
	FILE *files[MAX_TABLES];
	struct ttmon_parquet *parquet[MAX_TABLES];
	struct sqlite sql;
	bool made; /* the unfinished database is there */
	uint64_t rows, begun_ns, shown_ns;
	bool shows; /* progress, on a terminal */
};

static const char sqlite_name[] = "ttmon.sqlite";

/* DIR/NAME, or what it is called until it is whole. */
static const char *path_of(const struct ttmon_export *x, unsigned int i, bool whole, char buf[PATH_MAX + 80])
{
	static const char *const ends[] = {
		[TTMON_EXPORT_CSV] = ".csv", [TTMON_EXPORT_SQLITE] = "", [TTMON_EXPORT_PARQUET] = ".parquet"
	};

	snprintf(buf, PATH_MAX + 80, "%s/%s%s%s%s", x->dir, whole ? "" : ".",
		 x->format == TTMON_EXPORT_SQLITE ? sqlite_name : x->tables[i].name, ends[x->format],
		 whole ? "" : ".part");
	return buf;
}

/* ---- SQLite ---- */

static int load_sqlite(struct sqlite *s)
{
	const struct {
		const char *name;
		void *at;
	} fns[] = {
		{ "sqlite3_open", &s->open },
		{ "sqlite3_close", &s->close },
		{ "sqlite3_exec", &s->exec },
		{ "sqlite3_prepare_v2", &s->prepare },
		{ "sqlite3_bind_int64", &s->bind_int64 },
		{ "sqlite3_bind_text", &s->bind_text },
		{ "sqlite3_bind_null", &s->bind_null },
		{ "sqlite3_step", &s->step },
		{ "sqlite3_reset", &s->reset },
		{ "sqlite3_finalize", &s->finalize },
		{ "sqlite3_errmsg", &s->errmsg },
	};

	s->lib = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
	if (!s->lib)
		return -ELIBACC;
	for (size_t i = 0; i < ARRAY_SIZE(fns); i++) {
		void *fn = dlsym(s->lib, fns[i].name);

		if (!fn)
			return -ELIBACC;
		memcpy(fns[i].at, &fn, sizeof(fn));
	}
	return 0;
}

static int begin_sqlite(struct ttmon_export *x)
{
	char path[PATH_MAX + 80], create[2048], insert[1024];
	struct sqlite *s = &x->sql;

	unlink(path_of(x, 0, false, path));
	x->made = true;
	/* Half of it is of no use: no journal, and no waiting for the disk. */
	if (s->open(path, &s->db) != SQLITE_OK ||
	    s->exec(s->db, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN", NULL, NULL, NULL) != SQLITE_OK)
		return -EIO;
	for (unsigned int i = 0; i < x->nr; i++) {
		const struct ttmon_export_table *t = &x->tables[i];
		int at = snprintf(create, sizeof(create), "CREATE TABLE %s (", t->name);
		int in = snprintf(insert, sizeof(insert), "INSERT INTO %s VALUES (", t->name);

		for (unsigned int c = 0; c < t->nr; c++) {
			at += snprintf(create + at, sizeof(create) - (size_t)at, "%s\"%s\" %s", c ? ", " : "",
				       t->columns[c].name, t->columns[c].text ? "TEXT" : "INTEGER");
			in += snprintf(insert + in, sizeof(insert) - (size_t)in, "%s?", c ? ", " : "");
		}
		strcat(create, ")");
		strcat(insert, ")");
		if (s->exec(s->db, create, NULL, NULL, NULL) != SQLITE_OK ||
		    s->prepare(s->db, insert, -1, &s->inserts[i], NULL) != SQLITE_OK)
			return -EIO;
	}
	return 0;
}

static int row_sqlite(struct ttmon_export *x, unsigned int i, const struct ttmon_export_value *values)
{
	const struct ttmon_export_table *t = &x->tables[i];
	struct sqlite *s = &x->sql;
	void *stmt = s->inserts[i];
	int err = SQLITE_OK;

	for (unsigned int c = 0; c < t->nr && err == SQLITE_OK; c++) {
		const struct ttmon_export_value *v = &values[c];

		if (t->columns[c].text && v->text)
			err = s->bind_text(stmt, (int)c + 1, v->text, -1, SQLITE_STATIC);
		else if (!t->columns[c].text && v->known)
			err = s->bind_int64(stmt, (int)c + 1, v->n);
		else
			err = s->bind_null(stmt, (int)c + 1);
	}
	if (err == SQLITE_OK && s->step(stmt) != SQLITE_DONE)
		err = -1;
	return err == SQLITE_OK && s->reset(stmt) == SQLITE_OK ? 0 : -EIO;
}

/* ---- CSV (RFC 4180) and Parquet: a file a table ---- */

static int begin_files(struct ttmon_export *x)
{
	char path[PATH_MAX + 80];

	for (unsigned int i = 0; i < x->nr; i++) {
		x->files[i] = fopen(path_of(x, i, false, path), "we");
		if (!x->files[i])
			return -errno;
		if (x->format == TTMON_EXPORT_PARQUET) {
			int err = ttmon_parquet_new(x->files[i], &x->tables[i], &x->parquet[i]);

			if (err)
				return err;
			continue;
		}
		for (unsigned int c = 0; c < x->tables[i].nr; c++)
			fprintf(x->files[i], "%s%s", c ? "," : "", x->tables[i].columns[c].name);
		fputs("\r\n", x->files[i]);
	}
	return 0;
}

static int row_csv(struct ttmon_export *x, unsigned int i, const struct ttmon_export_value *values)
{
	const struct ttmon_export_table *t = &x->tables[i];
	FILE *f = x->files[i];

	for (unsigned int c = 0; c < t->nr; c++) {
		const char *text = values[c].text;

		if (c)
			putc(',', f);
		if (!t->columns[c].text) {
			if (values[c].known)
				fprintf(f, "%" PRId64, values[c].n);
			continue;
		}
		/* A text that is not known is empty, one that is empty is in quotes. */
		if (text && *text && !strpbrk(text, "\",\r\n")) {
			fputs(text, f);
		} else if (text) {
			putc('"', f);
			for (; *text; text++) {
				if (*text == '"')
					putc('"', f);
				putc(*text, f);
			}
			putc('"', f);
		}
	}
	fputs("\r\n", f);
	return ferror(f) ? -EIO : 0;
}

/* ---- all ---- */

/* Past a second, once in a while; the line is taken away in the end. */
static void progress(struct ttmon_export *x)
{
	uint64_t now = ttmon_mono_ns();
	char n[TTMON_FMT_LEN];

	if (now - x->begun_ns < NSEC_PER_SEC || now - x->shown_ns < NSEC_PER_SEC / 5)
		return;
	x->shown_ns = now;
	fprintf(stderr, "\r%s rows\033[K", ttmon_fmt_count(n, sizeof(n), x->rows));
}

int ttmon_export_new(enum ttmon_export_format format, const char *dir, const struct ttmon_export_table *tables,
		     unsigned int nr, struct ttmon_export **ret, char *why, size_t n)
{
	struct ttmon_export *x = calloc(1, sizeof(*x));
	int err = x ? 0 : -ENOMEM;

	if (!err && (nr > MAX_TABLES || strlen(dir) >= sizeof(x->dir)))
		err = -ENAMETOOLONG;
	if (!err) {
		x->format = format;
		x->tables = tables;
		x->nr = nr;
		x->begun_ns = ttmon_mono_ns();
		x->shows = isatty(STDERR_FILENO);
		strcpy(x->dir, dir);
		if (mkdir(dir, 0777) && errno != EEXIST)
			err = -errno;
	}
	if (!err && format == TTMON_EXPORT_SQLITE)
		err = load_sqlite(&x->sql);
	if (!err)
		err = format == TTMON_EXPORT_SQLITE ? begin_sqlite(x) : begin_files(x);
	if (!err) {
		*ret = x;
		return 0;
	}
	if (err == -ELIBACC)
		snprintf(why, n, "SQLite is not here: install libsqlite3-0, or choose --format csv");
	else
		snprintf(why, n, "cannot write into %s: %s", dir, strerror(-err));
	ttmon_export_drop(x);
	return err;
}

int ttmon_export_row(struct ttmon_export *x, unsigned int i, const struct ttmon_export_value *values)
{
	x->rows++;
	if (x->shows && !(x->rows & 0x3fff))
		progress(x);
	switch (x->format) {
	case TTMON_EXPORT_SQLITE:
		return row_sqlite(x, i, values);
	case TTMON_EXPORT_PARQUET:
		return ttmon_parquet_row(x->parquet[i], values);
	default:
		return row_csv(x, i, values);
	}
}

static void close_sqlite(struct sqlite *s)
{
	for (unsigned int i = 0; i < MAX_TABLES; i++)
		if (s->inserts[i])
			s->finalize(s->inserts[i]);
	memset(s->inserts, 0, sizeof(s->inserts));
	if (s->db)
		s->close(s->db);
	s->db = NULL;
	if (s->lib)
		dlclose(s->lib);
	s->lib = NULL;
}

int ttmon_export_finish(struct ttmon_export *x, FILE *f, char *why, size_t n)
{
	bool sqlite = x->format == TTMON_EXPORT_SQLITE;
	char part[PATH_MAX + 80], whole[PATH_MAX + 80];
	unsigned int files = sqlite ? 1 : x->nr;
	int err = 0;

	if (sqlite && x->sql.exec(x->sql.db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		err = -EIO;
	close_sqlite(&x->sql);
	for (unsigned int i = 0; i < files && x->format == TTMON_EXPORT_PARQUET && !err; i++)
		err = ttmon_parquet_finish(x->parquet[i]);
	for (unsigned int i = 0; i < files && !sqlite; i++) {
		errno = EIO;
		if (fclose(x->files[i]) && !err)
			err = -errno;
		x->files[i] = NULL;
	}
	for (unsigned int i = 0; i < files && !err; i++) {
		if (rename(path_of(x, i, false, part), path_of(x, i, true, whole)))
			err = -errno;
		else
			fprintf(f, "%s\n", whole);
	}
	if (err)
		snprintf(why, n, "cannot write into %s: %s", x->dir, strerror(-err));
	ttmon_export_drop(x);
	return err;
}

void ttmon_export_drop(struct ttmon_export *x)
{
	char path[PATH_MAX + 80];

	if (!x)
		return;
	if (x->shown_ns)
		fprintf(stderr, "\r\033[K");
	close_sqlite(&x->sql);
	for (unsigned int i = 0; i < x->nr && x->format != TTMON_EXPORT_SQLITE; i++) {
		ttmon_parquet_free(x->parquet[i]);
		if (x->files[i])
			fclose(x->files[i]);
		unlink(path_of(x, i, false, path));
	}
	if (x->made)
		unlink(path_of(x, 0, false, path));
	free(x);
}
