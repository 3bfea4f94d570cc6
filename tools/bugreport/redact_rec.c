// SPDX-License-Identifier: GPL-2.0-only
/*
 * redact_rec.c: redacts a recording. It decodes each record, replaces the names in it with pseudonyms
 * and writes it again. Ids, addresses, sizes and times stay, so a replay gives the same sums. A record
 * that does not decode could hold anything, so it is replaced by an empty record that does not decode
 * either.
 */
#include "tools/bugreport/redact.h"

#include <time.h>

#include "daemon/core/stream/decode.h"
#include "daemon/io/files/rec.h"

/* Longest text of a redacted record, in bytes. A longer one becomes one pseudonym. */
#define TEXT_MAX 4096

/* Redacts a NUL-terminated name in a field of fixed size, and clears the bytes behind the NUL. */
static void hide_word(const struct ttmon_redact *r, char *field, size_t size)
{
	char buf[64];

	ttmon_redact_word(r, field, strnlen(field, size), buf, MIN(size, sizeof(buf)));
	memset(field, 0, size);
	memcpy(field, buf, strlen(buf));
}

/* The same for a text of several words, such as a path. */
static void hide_text(const struct ttmon_redact *r, char *field, size_t size)
{
	char buf[256];
	size_t n = ttmon_redact_text(r, field, strnlen(field, size), buf, MIN(size, sizeof(buf)));

	memset(field, 0, size);
	memcpy(field, buf, n);
}

/*
 * Redacts a text of *len bytes at the end of a record. The text is padded with zeros to a multiple of
 * 8. Returns the size of the record with it.
 */
static size_t hide_tail(const struct ttmon_redact *r, void *out, size_t head, __u32 *len, bool function)
{
	char buf[TEXT_MAX], *text = (char *)out + head;
	size_t n;

	if (function && ttmon_redact_is_cuda(text, *len))
		return ROUND_UP(head + *len, 8);
	/* A function name is one word. */
	if (function) {
		ttmon_redact_word(r, text, *len, buf, sizeof(buf));
		n = strlen(buf);
	} else {
		n = ttmon_redact_text(r, text, *len, buf, sizeof(buf));
	}
	memset(text, 0, ROUND_UP(head + n, 8) - head);
	memcpy(text, buf, n);
	*len = (__u32)n;
	return ROUND_UP(head + n, 8);
}

/* Replaces a record that does not decode: none of its bytes are known to be harmless. */
static size_t unknown(const void *rec, void *out)
{
	struct ttmon_event h = { .kind = TTMON_EV_MAX };

	memcpy(&h.ts_ns, rec, sizeof(h.ts_ns));
	memcpy(out, &h, sizeof(h));
	return sizeof(h);
}

/* The processes of a call's wait. The rows behind them hold what other calls left there. */
static void hide_who(const struct ttmon_redact *r, struct ttmon_ev_wait_who *e)
{
	for (unsigned int i = 0; i < TTMON_WHO_ROWS; i++) {
		struct ttmon_who *who = &e->row[i].who;

		if (i >= e->nr_rows)
			e->row[i] = (struct ttmon_who_row){ 0 };
		/* Kernel threads have the same names on every host. */
		else if (who->role != TTMON_WAIT_ROLE_RAN_KERNEL && who->role != TTMON_WAIT_ROLE_WOKE_KERNEL)
			hide_word(r, who->comm, sizeof(who->comm));
	}
}

size_t ttmon_redact_record(const struct ttmon_redact *r, const void *rec, size_t size, void *out)
{
	struct ttmon_event *h = out;

	/* Whether a CPU exists is checked by the replay, so any CPU number is accepted here. */
	if (ttmon_decode(rec, size, TTMON_CPU_DAEMON))
		return unknown(rec, out);
	memcpy(out, rec, size);
	switch (h->kind) {
	case TTMON_EV_PROC:
		hide_word(r, ((struct ttmon_ev_proc *)out)->comm, TTMON_COMM_LEN);
		break;
	case TTMON_EV_TASK:
		/* Kernel threads have the same names on every host. */
		if (((struct ttmon_ev_task *)out)->cls == TTMON_CPU_USER)
			hide_word(r, ((struct ttmon_ev_task *)out)->comm, TTMON_COMM_LEN);
		break;
	case TTMON_EV_RMID:
	case TTMON_EV_RMID_SET:
		hide_word(r, ((struct ttmon_ev_rmid *)out)->comm, TTMON_COMM_LEN);
		break;
	case TTMON_EV_WAIT:
		if (((struct ttmon_ev_wait *)out)->bits & TTMON_W_WHO)
			hide_who(r, out);
		break;
	case TTMON_EV_TAG:
		hide_text(r, ((struct ttmon_ev_tag *)out)->tag, sizeof(((struct ttmon_ev_tag *)out)->tag));
		break;
	case TTMON_EV_CHECKPOINT:
		hide_text(r, ((struct ttmon_ev_checkpoint *)out)->label,
			  sizeof(((struct ttmon_ev_checkpoint *)out)->label));
		break;
	case TTMON_EV_TT_KERNEL:
		hide_text(r, ((struct ttmon_ev_tt_kernel *)out)->name,
			  sizeof(((struct ttmon_ev_tt_kernel *)out)->name));
		break;
	case TTMON_EV_CLOCK:
		hide_word(r, ((struct ttmon_ev_clock *)out)->hostname,
			  sizeof(((struct ttmon_ev_clock *)out)->hostname));
		break;
	case TTMON_EV_PROC_NAME:
		return ((struct ttmon_ev_text *)out)->what == TTMON_TEXT_UID
			       ? size
			       : hide_tail(r, out, sizeof(struct ttmon_ev_text), &((struct ttmon_ev_text *)out)->len,
					   false);
	case TTMON_EV_OBJECT:
		return hide_tail(r, out, sizeof(struct ttmon_ev_object), &((struct ttmon_ev_object *)out)->len, false);
	case TTMON_EV_MAP:
		return hide_tail(r, out, sizeof(struct ttmon_ev_map), &((struct ttmon_ev_map *)out)->len, false);
	case TTMON_EV_SYMBOL:
		return hide_tail(r, out, sizeof(struct ttmon_ev_symbol), &((struct ttmon_ev_symbol *)out)->len, true);
	}
	return size;
}

/* ---- the file ---- */

struct copy {
	const struct ttmon_redact *redact;
	struct ttmon_rec_writer *w;
	uint64_t put;	     /* bytes given to the writer since file_bytes was read */
	uint64_t file_bytes; /* size of the new file at that time */
	uint64_t watermark_ns;
	uint64_t out[TTMON_RECORD_MAX / 8];
};

/*
 * The writer drops data when its thread falls behind, and this program reads faster than the thread
 * compresses. So after each buffer's worth of entries, when at least one buffer has gone to the
 * thread, wait until the file has grown.
 */
static void wait_for_writer(struct copy *c)
{
	const struct timespec ms = { .tv_nsec = NSEC_PER_MS };
	struct ttmon_rec_stats s;

	if (c->put <= TTMON_REC_RAW_MAX + TTMON_RECORD_MAX)
		return;
	for (;;) {
		ttmon_rec_writer_stats(c->w, &s);
		if (s.file_bytes != c->file_bytes || s.dropped)
			break;
		nanosleep(&ms, NULL);
	}
	c->file_bytes = s.file_bytes;
	c->put = 0;
}

static void on_record(void *ctx, const void *rec, size_t size)
{
	struct copy *c = ctx;
	size_t n = ttmon_redact_record(c->redact, rec, size, c->out);

	c->put += n + sizeof(uint32_t);
	wait_for_writer(c);
	ttmon_rec_writer_record(c->w, c->out, n);
}

static void on_advance(void *ctx, uint64_t watermark_ns)
{
	struct copy *c = ctx;

	ttmon_rec_writer_advance(c->w, watermark_ns);
}

static void free_reader(struct ttmon_rec_reader **r)
{
	ttmon_rec_reader_free(*r);
}

int ttmon_redact_recording(const struct ttmon_redact *r, const char *from, const char *to)
{
	_cleanup_(free_reader) struct ttmon_rec_reader *reader = NULL;
	uint64_t end_ns = 0, dropped = 0;
	struct copy c = { .redact = r };
	struct ttmon_rec_sink sink = { .record = on_record, .advance = on_advance, .ctx = &c };
	struct ttmon_rec_stats s;
	int err, fed;

	err = ttmon_rec_reader_open(from, &reader);
	if (!err)
		err = ttmon_rec_writer_new(to, ttmon_rec_reader_cpus(reader), &c.w);
	if (err)
		return err;
	fed = ttmon_rec_read(reader, &sink, UINT64_MAX, &end_ns, &dropped);
	ttmon_rec_writer_stats(c.w, &s);
	/*
	 * A record lost from the old recording has to be counted as lost in the new one: give the writer a
	 * record that it refuses and counts.
	 */
	for (uint64_t i = dropped + (fed != 0); i; i--)
		ttmon_rec_writer_record(c.w, NULL, 0);
	err = ttmon_rec_writer_close(c.w, end_ns);
	if (!err && s.dropped)
		err = -ENOMEM;
	return err ? err : fed;
}
