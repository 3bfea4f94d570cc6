// SPDX-License-Identifier: GPL-2.0-only
/*
 * rec_read.c: reads the recording file (format: <ttmon/rec.h>) into a pipeline.
 *
 * Runs in the thread that calls it. The file is hostile input: nothing in it is believed before it is checked, and
 * memory is bounded by TTMON_REC_RAW_MAX whatever it says. Of what a record means this module knows the time in its
 * first eight bytes, the rest is for the decoder to judge.
 */
#include "io/rec.h"

#include <fcntl.h>
#include <zlib.h>

#define ADVANCE_ENTRY  16u /* u32 0, u32 0, u64 watermark */
#define HEADER_LEN_MAX 4096u

struct ttmon_rec_reader {
	int fd;
	uint32_t nr_cpus;
	uint8_t *comp, *raw;
	size_t comp_size;
	uint64_t records; /* fed */
	uint64_t last_ns; /* of the last watermark, or of the last record while there was none */
	bool watermark_seen;
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

static void reader_freep(struct ttmon_rec_reader **r)
{
	ttmon_rec_reader_free(*r);
}

/* n bytes, or -ENODATA with fewer in the file; *got says how many there were. */
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

/* The next block, checked and inflated into r->raw. */
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

static int feed_block(struct ttmon_rec_reader *r, struct ttmon_pipeline *p, size_t len)
{
	const uint8_t *at = r->raw, *end = r->raw + len;

	while (at < end) {
		uint32_t head;

		if ((size_t)(end - at) < sizeof(head))
			return -EBADMSG;
		memcpy(&head, at, sizeof(head));
		if (!head) {
			uint32_t zero;

			if ((size_t)(end - at) < ADVANCE_ENTRY)
				return -EBADMSG;
			memcpy(&zero, at + sizeof(head), sizeof(zero));
			if (zero)
				return -EBADMSG;
			memcpy(&r->last_ns, at + 2 * sizeof(head), sizeof(r->last_ns));
			r->watermark_seen = true;
			ttmon_pipeline_advance(p, r->last_ns);
			at += ADVANCE_ENTRY;
			continue;
		}
		at += sizeof(head);
		if (head % 8 || head > sizeof(r->rec) || head > (size_t)(end - at))
			return -EBADMSG;
		memcpy(r->rec, at, head);
		if (!r->watermark_seen)
			r->last_ns = r->rec[0];
		ttmon_pipeline_feed(p, r->rec, head);
		r->records++;
		at += head;
	}
	return 0;
}

/* The totals must be those of what was read, and nothing may follow. */
static int check_end(struct ttmon_rec_reader *r, size_t len, struct ttmon_rec_end *end)
{
	uint8_t byte;
	size_t got;
	int err;

	if (len != sizeof(*end))
		return -EBADMSG;
	memcpy(end, r->raw, sizeof(*end));
	err = read_full(r->fd, &byte, sizeof(byte), &got);
	if (err != -ENODATA)
		return err ? err : -EBADMSG;
	return end->records == r->records ? 0 : -EBADMSG;
}

int ttmon_rec_replay(struct ttmon_rec_reader *r, struct ttmon_pipeline *p, uint64_t *end_ns, uint64_t *dropped)
{
	struct ttmon_rec_end end = { 0 };
	struct ttmon_rec_block head;
	int err;

	for (;;) {
		err = next_block(r, &head);
		if (err || head.type == TTMON_REC_END)
			break;
		err = feed_block(r, p, head.raw_len);
		if (err)
			break;
	}
	if (!err)
		err = check_end(r, head.raw_len, &end);
	/* What could be fed is in the pipeline also after -ENODATA and -EBADMSG: it needs an end in any case. */
	*end_ns = err ? r->last_ns : end.end_ns;
	*dropped = err ? 0 : end.dropped;
	return err;
}
