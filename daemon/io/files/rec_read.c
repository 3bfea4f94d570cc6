// SPDX-License-Identifier: GPL-2.0-only
/*
 * rec_read.c: reads the recording file (format: <ttmon/rec.h>) into a pipeline.
 *
 * Runs in the thread that calls it. The file is untrusted: everything in it is checked before use, and
 * memory is bounded by TTMON_REC_RAW_MAX whatever it contains. Of a record this module reads only the
 * time in its first eight bytes; the decoder checks the rest.
 */
#include "daemon/io/files/rec.h"

#include <fcntl.h>
#include <zlib.h>

#define ADVANCE_ENTRY  16u /* u32 0, u32 0, u64 watermark */
#define HEADER_LEN_MAX 4096u

struct ttmon_rec_reader {
	int fd;
	uint32_t nr_cpus;
	uint8_t *comp, *raw;
	size_t comp_size;
	uint64_t records; /* passed on */
	uint64_t last_ns; /* of the last watermark, or of the last record before the first watermark */
	bool watermark_seen;
	size_t at, len;			    /* in raw: the rest of the block */
	uint64_t rec[TTMON_RECORD_MAX / 8]; /* a record, aligned */
};

void ttmon_rec_reader_free(struct ttmon_rec_reader *r)
{
	if (!r)
		return;
	if (r->fd >= 0)
		close(r->fd);
	free(r->comp);
	free(r->raw);
	free(r);
}

TTMON_FREEP(reader_freep, struct ttmon_rec_reader, ttmon_rec_reader_free);

/* Reads n bytes; -ENODATA if the file has fewer; *got is their number. */
static int read_full(int fd, void *data, size_t n, size_t *got)
{
	uint8_t *p = data;

	*got = 0;
	while (*got < n) {
		ssize_t done = read(fd, p + *got, n - *got);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		if (done == 0)
			return -ENODATA;
		*got += (size_t)done;
	}
	return 0;
}

int ttmon_rec_reader_open(const char *path, struct ttmon_rec_reader **ret)
{
	_cleanup_(reader_freep) struct ttmon_rec_reader *r = calloc(1, sizeof(*r));
	uint8_t more[HEADER_LEN_MAX];
	struct ttmon_rec_file file;
	size_t got;
	int err;

	if (!r)
		return -ENOMEM;
	r->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (r->fd < 0)
		return -errno;
	err = read_full(r->fd, &file, sizeof(file), &got);
	if (err)
		return err == -ENODATA ? -EBADMSG : err;
	if (memcmp(file.magic, TTMON_REC_MAGIC, sizeof(file.magic)))
		return -EBADMSG;
	if (file.bom != TTMON_REC_BOM || file.version != TTMON_REC_VERSION)
		return -EPROTONOSUPPORT;
	if (!file.nr_cpus || file.nr_cpus > TTMON_CPU_DAEMON || file.header_len < sizeof(file) ||
	    file.header_len > HEADER_LEN_MAX)
		return -EBADMSG;
	err = read_full(r->fd, more, file.header_len - sizeof(file), &got);
	if (err)
		return err == -ENODATA ? -EBADMSG : err;
	r->nr_cpus = file.nr_cpus;
	r->comp_size = compressBound(TTMON_REC_RAW_MAX);
	r->comp = malloc(r->comp_size);
	r->raw = malloc(TTMON_REC_RAW_MAX);
	if (!r->comp || !r->raw)
		return -ENOMEM;
	*ret = TAKE_PTR(r);
	return 0;
}

uint32_t ttmon_rec_reader_cpus(const struct ttmon_rec_reader *r)
{
	return r->nr_cpus;
}

/* Checks the next block and inflates it into r->raw. */
static int next_block(struct ttmon_rec_reader *r, struct ttmon_rec_block *head)
{
	uLongf raw_len;
	uLong comp_len;
	size_t got;
	int err;

	err = read_full(r->fd, head, sizeof(*head), &got);
	if (err)
		return err;
	if ((head->type != TTMON_REC_DATA && head->type != TTMON_REC_END) || !head->raw_len ||
	    head->raw_len > TTMON_REC_RAW_MAX || !head->comp_len || head->comp_len > r->comp_size)
		return -EBADMSG;
	err = read_full(r->fd, r->comp, head->comp_len, &got);
	if (err)
		return err;
	if (crc32(0, r->comp, head->comp_len) != head->crc)
		return -EBADMSG;
	raw_len = head->raw_len;
	comp_len = head->comp_len;
	if (uncompress2(r->raw, &raw_len, r->comp, &comp_len) != Z_OK || raw_len != head->raw_len ||
	    comp_len != head->comp_len)
		return -EBADMSG;
	return 0;
}

/* Passes on the rest of the block, up to and including the first watermark past until_ns. */
static int tell_block(struct ttmon_rec_reader *r, const struct ttmon_rec_sink *sink, uint64_t until_ns)
{
	while (r->at < r->len) {
		const uint8_t *at = r->raw + r->at;
		size_t left = r->len - r->at;
		uint32_t head;

		if (left < sizeof(head))
			return -EBADMSG;
		memcpy(&head, at, sizeof(head));
		if (!head) {
			uint32_t zero;

			if (left < ADVANCE_ENTRY)
				return -EBADMSG;
			memcpy(&zero, at + sizeof(head), sizeof(zero));
			if (zero)
				return -EBADMSG;
			memcpy(&r->last_ns, at + 2 * sizeof(head), sizeof(r->last_ns));
			r->watermark_seen = true;
			r->at += ADVANCE_ENTRY;
			sink->advance(sink->ctx, r->last_ns);
			if (r->last_ns > until_ns)
				return 1;
			continue;
		}
		at += sizeof(head);
		left -= sizeof(head);
		if (head % 8 || head > sizeof(r->rec) || head > left)
			return -EBADMSG;
		memcpy(r->rec, at, head);
		if (!r->watermark_seen)
			r->last_ns = r->rec[0];
		r->at += sizeof(head) + head;
		sink->record(sink->ctx, r->rec, head);
		r->records++;
	}
	return 0;
}

/* The totals must match what was read, and nothing may follow. */
static int check_end(struct ttmon_rec_reader *r, struct ttmon_rec_end *end)
{
	uint8_t byte;
	size_t got;
	int err;

	if (r->len != sizeof(*end))
		return -EBADMSG;
	memcpy(end, r->raw, sizeof(*end));
	err = read_full(r->fd, &byte, sizeof(byte), &got);
	if (err != -ENODATA)
		return err ? err : -EBADMSG;
	return end->records == r->records ? 0 : -EBADMSG;
}

int ttmon_rec_read(struct ttmon_rec_reader *r, const struct ttmon_rec_sink *sink, uint64_t until_ns, uint64_t *end_ns,
		   uint64_t *dropped)
{
	struct ttmon_rec_end end = { 0 };
	struct ttmon_rec_block head;
	int err;

	for (;;) {
		err = tell_block(r, sink, until_ns);
		if (err)
			break;
		err = next_block(r, &head);
		if (err)
			break;
		r->at = 0;
		r->len = head.raw_len;
		if (head.type == TTMON_REC_END) {
			err = check_end(r, &end);
			r->at = r->len;
			break;
		}
	}
	/*
	 * Everything readable was passed on, also after -ENODATA and -EBADMSG: the stream needs an end in any
	 * case.
	 */
	*end_ns = err ? r->last_ns : end.end_ns;
	*dropped = err ? 0 : end.dropped;
	return err;
}

static void feed(void *ctx, const void *rec, size_t size)
{
	ttmon_pipeline_feed(ctx, rec, size);
}

static void advance(void *ctx, uint64_t watermark_ns)
{
	ttmon_pipeline_advance(ctx, watermark_ns);
}

int ttmon_rec_replay(struct ttmon_rec_reader *r, struct ttmon_pipeline *p, uint64_t until_ns, uint64_t *end_ns,
		     uint64_t *dropped)
{
	const struct ttmon_rec_sink sink = { .record = feed, .advance = advance, .ctx = p };

	return ttmon_rec_read(r, &sink, until_ns, end_ns, dropped);
}
