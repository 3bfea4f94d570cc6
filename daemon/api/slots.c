// SPDX-License-Identifier: GPL-2.0-only
/*
 * slots.c: /v1/slots: the last slots, from the segment in /dev/shm, which the hot thread writes
 * without waiting for readers. Cold thread. Rows of other users' processes are left out; the figures
 * of the slot are the host's.
 */
#include <limits.h>
#include <ttmon/shm.h>

#include "daemon/api/rows.h"
#include "daemon/api/api.h"
#include "lib/read/slots_json.h"
#include "daemon/api/viewer.h"

#define DEFAULT_LAST 16
#define SEEN	     64

struct list {
	struct ttmon_shm_reader shm;
	struct ttmon_viewer who;
	struct ttmon_slot_row *rows;
	/*
	 * Cache of the viewer's rights, by the lower bits of the id: the same few processes are in every slot.
	 */
	struct {
		uint64_t start_ns;
		uint32_t tgid;
		bool asked, sees;
	} seen[SEEN];
};

static void list_fini(struct list *l)
{
	ttmon_shm_close(&l->shm);
	free(l->rows);
}

static bool sees(struct list *l, const struct ttmon_slot_row *r)
{
	__typeof__(l->seen[0]) *s = &l->seen[r->tgid % SEEN];

	if (l->who.all || (r->cls != TTMON_ROW_USER && r->cls != TTMON_ROW_KERNEL))
		return true;
	if (!s->asked || s->tgid != r->tgid || s->start_ns != r->start_ns) {
		s->asked = true;
		s->tgid = r->tgid;
		s->start_ns = r->start_ns;
		s->sees = ttmon_viewer_sees_pid(&l->who, r->tgid, r->start_ns);
	}
	return s->sees;
}

/* The writer has no file: its buffer is copied into the reply. */
static void flush(struct ttmon_http_reply *reply, struct ttmon_jsonw *w)
{
	fwrite(w->buf, 1, w->len, reply->body);
	w->len = 0;
}

static void put_slot(struct ttmon_http_reply *reply, struct ttmon_jsonw *w, struct list *l, const struct ttmon_slot *s)
{
	uint32_t hidden = 0;

	ttmon_jsonw_row(w, '{');
	ttmon_jsonw_key_num(w, "slot", s->no);
	ttmon_slotjson_figures(w, s);
	ttmon_slotjson_flags(w, s->flags);
	ttmon_jsonw_key_open(w, "rows", '[');
	for (uint32_t i = 0; i < s->nr_rows; i++) {
		if (!sees(l, &l->rows[i])) {
			hidden++;
			continue;
		}
		ttmon_slotjson_row(w, s, &l->rows[i]);
		flush(reply, w);
	}
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_key_num(w, "hidden", hidden);
	ttmon_jsonw_close(w, '}');
	flush(reply, w);
}

static int open_list(const struct ttmon_daemon *c, struct list *l)
{
	char path[PATH_MAX];
	int err;

	snprintf(path, sizeof(path), "%s/ttmon.v1",
		 ttmon_daemon_opts(c)->shm_root ? ttmon_daemon_opts(c)->shm_root : "/dev/shm");
	err = ttmon_shm_open(path, &l->shm);
	if (err)
		return err;
	l->rows = malloc(MAX(l->shm.rows, 1u) * sizeof(*l->rows));
	return l->rows ? 0 : -ENOMEM;
}

static void put_slots(struct ttmon_http_reply *reply, struct ttmon_jsonw *w, struct list *l, uint64_t last)
{
	uint64_t published = TTMON_SHM_HEAD(&l->shm, published), missed = 0;
	struct ttmon_slot slot;
	int r = 1;

	l->shm.next = published > last ? published - last : 0;
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_open(w, "slots", '[');
	while (l->shm.next < published && (r == 1 || r == -EOVERFLOW)) {
		r = ttmon_shm_next(&l->shm, &slot, l->rows, l->shm.rows);
		if (r == 1)
			put_slot(reply, w, l, &slot);
		else if (r == -EOVERFLOW)
			missed += l->shm.missed;
	}
	ttmon_jsonw_close(w, ']');
	/* Slots overwritten while they were read. */
	ttmon_jsonw_key_num(w, "missed", missed);
	ttmon_jsonw_close(w, '}');
	ttmon_jsonw_end(w);
	flush(reply, w);
}

void ttmon_api_slots(void *ctx, struct ttmon_http_reply *reply)
{
	_cleanup_(ttmon_jsonw_fini) struct ttmon_jsonw w = { .fd = -1 };
	_cleanup_(list_fini) struct list l = { 0 };
	const struct ttmon_daemon *c = ctx;
	uint64_t last = DEFAULT_LAST;
	int err;

	if (!ttmon_api_arg_num(reply, "last", 1, UINT32_MAX, &last))
		return;
	if (!ttmon_daemon_has_shm(c)) {
		ttmon_http_error(reply, 404, "slots are not kept (--shm-slots 0)");
		return;
	}
	ttmon_viewer_init(&l.who, reply);
	err = open_list(c, &l);
	if (!err)
		err = ttmon_jsonw_init(&w, -1, false);
	if (err)
		ttmon_http_error(reply, 500, "cannot read the slots: %s", strerror(-err));
	else
		put_slots(reply, &w, &l, MIN(last, (uint64_t)l.shm.entries));
}
