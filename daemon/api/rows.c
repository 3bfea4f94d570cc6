// SPDX-License-Identifier: GPL-2.0-only
/*
 * rows.c: parameters, and the members that rows of several routes have. The row_ functions make no
 * system call, so the hot thread may call them.
 */
#include "daemon/api/rows.h"

bool ttmon_api_number(const char *text, uint64_t *ret)
{
	uint64_t n = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || __builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*text - '0'), &n))
			return false;
	}
	*ret = n;
	return true;
}

bool ttmon_api_arg_num(struct ttmon_http_reply *reply, const char *name, uint64_t min, uint64_t max, uint64_t *ret)
{
	const char *text = ttmon_http_arg(reply, name);
	uint64_t n = 0;

	if (!text)
		return true;
	if (!ttmon_api_number(text, &n) || n < min || n > max) {
		ttmon_http_error(reply, 400, "%s=%.40s: a number from %llu to %llu is wanted", name, text,
				 (unsigned long long)min, (unsigned long long)max);
		return false;
	}
	*ret = n;
	return true;
}

bool ttmon_api_arg_bool(struct ttmon_http_reply *reply, const char *name, bool *ret)
{
	const char *text = ttmon_http_arg(reply, name);

	if (!text)
		return true;
	if (*text && strcmp(text, "0") && strcmp(text, "1")) {
		ttmon_http_error(reply, 400, "%s=%.40s: 0 or 1 is wanted", name, text);
		return false;
	}
	*ret = *text != '0';
	return true;
}

void ttmon_api_row_process(struct ttmon_jsonw *w, const struct ttmon_proc *p, bool with_pid)
{
	if (with_pid)
		ttmon_jsonw_key_num(w, "pid", p->tgid);
	ttmon_jsonw_key_time(w, "start_ns", p->start_ns);
	ttmon_jsonw_key_text(w, "comm", p->comm, sizeof(p->comm));
}

static const char *object_path(const struct ttmon_history *h, const struct ttmon_frame *f)
{
	const struct ttmon_object *o = f->object ? ttmon_history_object(h, f->object) : NULL;

	return o ? o->path : NULL;
}

static bool is_python(const struct ttmon_history *h, const struct ttmon_frame *f)
{
	const struct ttmon_object *o = f->object ? ttmon_history_object(h, f->object) : NULL;

	return o && o->flags & TTMON_OBJ_PYTHON;
}

/* Which of its frames a call site is called by: the innermost with a name, else the innermost. */
static const struct ttmon_frame *best_frame(const struct ttmon_history *h, const struct ttmon_site *s)
{
	uint64_t delta;

	for (uint32_t i = 0; i < s->nframes; i++)
		if (ttmon_history_symbol(h, &s->frames[i], &delta))
			return &s->frames[i];
	return s->nframes ? &s->frames[0] : NULL;
}

void ttmon_api_row_site(struct ttmon_jsonw *w, const struct ttmon_history *h, uint32_t site)
{
	const struct ttmon_site *s = site ? ttmon_history_site(h, site) : NULL;
	const struct ttmon_frame *f = s ? best_frame(h, s) : NULL;
	const char *name, *path, *slash;
	uint64_t delta = 0;
	char text[160];

	ttmon_jsonw_key(w, "call_site");
	if (!f) {
		ttmon_jsonw_null(w);
		return;
	}
	name = ttmon_history_symbol(h, f, &delta);
	if (name && is_python(h, f)) {
		ttmon_jsonw_str(w, ttmon_history_frame_name(h, f, text, sizeof(text)));
		return;
	}
	if (name) {
		ttmon_jsonw_symbol(w, name, delta);
		return;
	}
	path = object_path(h, f);
	slash = path ? strrchr(path, '/') : NULL;
	snprintf(text, sizeof(text), "%.128s+0x%llx",
		 slash	? slash + 1
		 : path ? path
			: "?",
		 (unsigned long long)f->offset);
	ttmon_jsonw_str(w, text);
}

void ttmon_api_row_frames(struct ttmon_jsonw *w, const struct ttmon_history *h, uint32_t site)
{
	const struct ttmon_site *s = site ? ttmon_history_site(h, site) : NULL;

	ttmon_jsonw_key_open(w, "frames", '[');
	for (uint32_t i = 0; s && i < s->nframes; i++) {
		const struct ttmon_frame *f = &s->frames[i];
		uint64_t delta = 0;
		const char *name = ttmon_history_symbol(h, f, &delta);

		ttmon_jsonw_open(w, '{');
		ttmon_jsonw_key(w, "function");
		if (is_python(h, f)) {
			ttmon_jsonw_str(w, name);
			ttmon_jsonw_key_str(w, "file", object_path(h, f));
			ttmon_jsonw_key_num(w, "line", f->offset);
			ttmon_jsonw_close(w, '}');
			continue;
		}
		ttmon_jsonw_symbol(w, name, delta);
		ttmon_jsonw_key_str(w, "object", object_path(h, f));
		ttmon_jsonw_key_addr(w, "offset", f->offset);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}
