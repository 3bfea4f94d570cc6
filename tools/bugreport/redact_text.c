// SPDX-License-Identifier: GPL-2.0-only
/*
 * redact_text.c: redacts JSON documents and metrics. A string is taken to be a name unless its key or
 * label is known to hold only words of ttmond itself. So what a newer daemon adds is hidden until it
 * is listed here.
 */
#include "tools/bugreport/redact.h"

#include <ttmon/event.h>

/* JSON members and metric labels whose values stay readable. */
static const char *const open_keys[] = {
	"arch",	     "backend",	 "build_id", "call",	    "card",  "class",  "counters_reason",
	"direction", "error",	 "family",   "finding",	    "flag",  "flags",  "fn",
	"function",  "group_by", "help",     "host_memory", "how",   "kernel", "kind",
	"layout",    "le",	 "method",   "mode",	    "note",  "object", "part",
	"program",   "reason",	 "release",  "result",	    "scope", "state",  "type",
	"uprobes",   "vendor",	 "verdict",  "version",	    "what",  "why",
};

bool ttmon_redact_key_stays(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(open_keys); i++)
		if (!strcmp(key, open_keys[i]))
			return true;
	return false;
}

#define SHOWN_MAX 4096

/* Writes the value of this member or label, redacted if necessary. */
static void hide_value(const struct ttmon_redact *r, const char *key, const char *text, size_t n, char *buf,
		       size_t size)
{
	if (!strcmp(key, "comm"))
		ttmon_redact_word(r, text, n, buf, TTMON_COMM_LEN);
	else
		ttmon_redact_text(r, text, n, buf, size);
}

/* ---- JSON ---- */

static int hide_string(const struct ttmon_redact *r, const char *key, json_t *value)
{
	char buf[SHOWN_MAX];

	hide_value(r, key, json_string_value(value), json_string_length(value), buf, sizeof(buf));
	return json_string_set(value, buf) ? -ENOMEM : 0;
}

/* The symbol of a known function may stay; one given by --alloc-fn is a name. */
static bool own_symbol(const json_t *object, const char *key)
{
	const char *fn = json_string_value(json_object_get(object, "fn"));

	return !strcmp(key, "symbol") && fn && fn[0] && strncmp(fn, "user", 4) != 0;
}

/* Recognizes a BPF program of ttmond: {"name": ..., "run_count": ...} */
static bool own_program(const json_t *object, const char *key)
{
	return !strcmp(key, "name") && json_object_get(object, "run_count");
}

/*
 * key: the key of the member that value belongs to. All strings of an array belong to the key of the
 * array.
 */
static int hide(const struct ttmon_redact *r, const char *key, json_t *value)
{
	const char *name;
	json_t *member;
	int err = 0;
	size_t i;

	if (json_is_string(value))
		return ttmon_redact_key_stays(key) ? 0 : hide_string(r, key, value);
	json_array_foreach(value, i, member)
	{
		err = hide(r, key, member);
		if (err)
			return err;
	}
	json_object_foreach(value, name, member)
	{
		if (json_is_string(member) && (own_symbol(value, name) || own_program(value, name)))
			continue;
		err = hide(r, name, member);
		if (err)
			return err;
	}
	return 0;
}

int ttmon_redact_json(const struct ttmon_redact *r, json_t *root)
{
	return hide(r, "", root);
}

/* ---- metrics ---- */

struct line {
	const char *at, *end;
};

static bool take(struct line *l, const char *what)
{
	size_t n = strlen(what);

	if ((size_t)(l->end - l->at) < n || memcmp(l->at, what, n))
		return false;
	l->at += n;
	return true;
}

static size_t name_len(const struct line *l)
{
	size_t n = 0;

	while (l->at + n < l->end && l->at[n] &&
	       strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:", l->at[n]))
		n++;
	return n;
}

/* Reads a label value after its opening quote, undoes its escapes, and skips the closing quote. */
static bool take_value(struct line *l, char *buf, size_t size, size_t *n)
{
	for (*n = 0; l->at < l->end && *n < size; l->at++) {
		char c = *l->at;

		if (c == '"') {
			l->at++;
			return true;
		}
		if (c == '\\') {
			l->at++;
			if (l->at == l->end || !strchr("\\\"n", *l->at))
				return false;
			c = *l->at == 'n' ? '\n' : *l->at;
		}
		buf[(*n)++] = c;
	}
	return false;
}

static void put_value(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n')
			fputs("\\n", out);
		else
			fprintf(out, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	}
}

/* Writes name="value", the value redacted if necessary. */
static bool hide_label(const struct ttmon_redact *r, struct line *l, FILE *out)
{
	char key[64], value[SHOWN_MAX], shown[SHOWN_MAX];
	size_t n = name_len(l);

	if (!n || n >= sizeof(key))
		return false;
	memcpy(key, l->at, n);
	key[n] = '\0';
	l->at += n;
	if (!take(l, "=\"") || !take_value(l, value, sizeof(value) - 1, &n))
		return false;
	value[n] = '\0';
	if (!ttmon_redact_key_stays(key))
		hide_value(r, key, value, n, shown, sizeof(shown));
	fprintf(out, "%s=\"", key);
	put_value(out, ttmon_redact_key_stays(key) ? value : shown);
	putc('"', out);
	return true;
}

/* Behind the labels there are only numbers. An exemplar (" # {") would have labels again. */
static bool hide_sample(const struct ttmon_redact *r, struct line *l, FILE *out)
{
	size_t n = name_len(l);

	if (!n)
		return false;
	fprintf(out, "%.*s", (int)n, l->at);
	l->at += n;
	if (take(l, "{")) {
		putc('{', out);
		while (!take(l, "}")) {
			if (!hide_label(r, l, out))
				return false;
			if (take(l, ","))
				putc(',', out);
		}
		putc('}', out);
	}
	if (l->at == l->end || *l->at != ' ' || memchr(l->at, '{', (size_t)(l->end - l->at)))
		return false;
	fprintf(out, "%.*s\n", (int)(l->end - l->at), l->at);
	return true;
}

int ttmon_redact_metrics(const struct ttmon_redact *r, const char *text, size_t n, FILE *out)
{
	_cleanup_free_ char *shown = NULL;
	size_t size = 0;

	for (const char *at = text, *end = text + n; at < end;) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		struct line l = { at, nl ? nl : end };
		_cleanup_fclose_ FILE *one = NULL;

		at = l.end + 1;
		if (l.at == l.end)
			continue;
		if (*l.at == '#') {
			fprintf(out, "%.*s\n", (int)(l.end - l.at), l.at);
			continue;
		}
		/* A line is written whole or not at all. */
		free(TAKE_PTR(shown));
		one = open_memstream(&shown, &size);
		if (!one)
			return -ENOMEM;
		if (!hide_sample(r, &l, one)) {
			fputs("# left out: a line of another format\n", out);
			continue;
		}
		if (fflush(one))
			return -ENOMEM;
		fwrite(shown, 1, size, out);
	}
	return ferror(out) ? -EIO : 0;
}
