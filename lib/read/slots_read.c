// SPDX-License-Identifier: GPL-2.0-only
/*
 * lib/read/slots_read.c: the reader of the slot file (format: slots.h, tables: slots_int.h). One block
 * is in memory at a time.
 *
 * The file is not trusted. A CRC detects damage, not malice: every length is checked against the
 * available bytes, every value against the width of its field, and every byte of a block must be used.
 * No slot has more rows than its index column has bytes.
 */
#include "lib/read/slots.h"
#include "lib/base/varint.h"
#include "lib/base/grow.h"

#include <fcntl.h>
#include <stdarg.h>
#include <zlib.h>

#include "lib/read/slots_int.h"

#define MAX_HEAD 4096u

struct cursor {
	const uint8_t *p, *end;
};

struct ttmon_slots_reader {
	gzFile gz;
	char *name;
	struct ttmon_slots_info info;
	struct ttmon_slots_end end;
	bool ended;
	size_t slot_fields;   /* number of slot fields in this version */
	uint64_t slots, rows; /* read so far */

	/* The current block. */
	uint8_t *block;
	size_t cap_block;
	uint32_t left; /* slots not yet read */
	struct cursor cols[TTMON_SLOTS_COLS];
	struct ttmon_slot_row *procs; /* the last row of each process */
	size_t nr_procs, cap_procs;
	struct ttmon_slots_item last;

	struct ttmon_slot_row *out;
	size_t cap_out;
	int err;
	char why[512];
};

/* ---- errors ---- */

static int fail(struct ttmon_slots_reader *s, int err, const char *fmt, ...) _printf_(3, 4);
static int fail(struct ttmon_slots_reader *s, int err, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	/* Only the first error is kept; later ones follow from it. */
	if (s->err)
		return s->err;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(s->why, sizeof(s->why), "%.200s: %s", s->name, text);
	s->err = err;
	return err;
}

static int fail_damaged(struct ttmon_slots_reader *s, const char *what)
{
	return fail(s, -EBADMSG, "damaged after %llu slots: %s", (unsigned long long)s->slots, what);
}

static int fail_cut(struct ttmon_slots_reader *s)
{
	return fail(s, -ENODATA, "ends without its last block after %llu slots: cut off, or still being written",
		    (unsigned long long)s->slots);
}

/* ---- bytes ---- */

/* Reads n bytes; fewer only at the end of the file. Returns the number, or -errno. */
static ssize_t get_bytes(struct ttmon_slots_reader *s, void *to, size_t n)
{
	size_t got = 0;
	int zerr = Z_OK;

	while (got < n) {
		int r = gzread(s->gz, (uint8_t *)to + got, (unsigned int)(n - got));

		if (r > 0) {
			got += (size_t)r;
			continue;
		}
		gzerror(s->gz, &zerr);
		if (zerr == Z_ERRNO)
			return fail(s, errno ? -errno : -EIO, "cannot read: %s", strerror(errno));
		/* Z_BUF_ERROR: the gzip stream is cut off. */
		if (r < 0 && zerr != Z_BUF_ERROR)
			return fail_damaged(s, "gzip data");
		break;
	}
	return (ssize_t)got;
}

static uint32_t get_u32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t get_u64(const uint8_t *p)
{
	return get_u32(p) | (uint64_t)get_u32(p + 4) << 32;
}

static bool varint(struct cursor *c, uint64_t *ret)
{
	return ttmon_varint_get(&c->p, c->end, ret);
}

/* Returns false if the value does not fit the field. */
static bool set(void *base, const struct ttmon_slots_field *f, uint64_t v)
{
	uint8_t *p = (uint8_t *)base + f->offset;
	uint32_t v32 = (uint32_t)v;
	uint16_t v16 = (uint16_t)v;

	if (f->size < 8 && v >> (8 * f->size))
		return false;
	switch (f->size) {
	case 1:
		*p = (uint8_t)v;
		break;
	case 2:
		memcpy(p, &v16, sizeof(v16));
		break;
	case 4:
		memcpy(p, &v32, sizeof(v32));
		break;
	default:
		memcpy(p, &v, sizeof(v));
	}
	return true;
}

/* ---- blocks ---- */

static int read_end(struct ttmon_slots_reader *s, size_t len)
{
	struct cursor c = { s->block, s->block + len };
	struct ttmon_slots_end end;
	uint8_t more;
	ssize_t n;

	if (!varint(&c, &end.slots) || !varint(&c, &end.rows) || !varint(&c, &end.dropped))
		return fail_damaged(s, "the last block");
	if (end.slots != s->slots || end.rows != s->rows)
		return fail_damaged(s, "slots are missing");
	n = get_bytes(s, &more, 1);
	if (n)
		return n < 0 ? (int)n : fail_damaged(s, "there is more behind the last block");
	s->end = end;
	s->ended = true;
	return 0;
}

static int begin_block(struct ttmon_slots_reader *s, size_t len, uint32_t slots)
{
	struct cursor c = { s->block, s->block + len };
	uint64_t lens[TTMON_SLOTS_COLS];

	for (size_t i = 0; i < TTMON_SLOTS_COLS; i++)
		if (!varint(&c, &lens[i]))
			return fail_damaged(s, "columns");
	for (size_t i = 0; i < TTMON_SLOTS_COLS; i++) {
		if (lens[i] > (size_t)(c.end - c.p))
			return fail_damaged(s, "columns");
		s->cols[i] = (struct cursor){ c.p, c.p + lens[i] };
		c.p += lens[i];
	}
	if (c.p != c.end || !slots)
		return fail_damaged(s, "columns");
	memset(&s->last, 0, sizeof(s->last));
	s->nr_procs = 0;
	s->left = slots;
	return 0;
}

/* Returns 1: a block with slots was read; 0: the end. */
static int read_block(struct ttmon_slots_reader *s)
{
	uint8_t head[TTMON_SLOTS_BLOCK_HEAD];
	uint32_t type, len;
	uLong crc;
	ssize_t n = get_bytes(s, head, sizeof(head));

	if (n < 0)
		return (int)n;
	if (n < (ssize_t)sizeof(head))
		return fail_cut(s);
	type = get_u32(head);
	len = get_u32(head + 4);
	if ((type != TTMON_SLOTS_DATA && type != TTMON_SLOTS_END) || !len || len > TTMON_SLOTS_MAX_BLOCK)
		return fail_damaged(s, "this is no block");
	if (len > s->cap_block) {
		free(s->block);
		s->cap_block = 0;
		s->block = malloc(len);
		if (!s->block)
			return fail(s, -ENOMEM, "out of memory");
		s->cap_block = len;
	}
	n = get_bytes(s, s->block, len);
	if (n < 0)
		return (int)n;
	if (n < (ssize_t)len)
		return fail_cut(s);
	crc = crc32(crc32(0, head, sizeof(head) - 4), s->block, (uInt)len);
	if (crc != get_u32(head + sizeof(head) - 4))
		return fail_damaged(s, "a wrong checksum");
	if (type == TTMON_SLOTS_END)
		return read_end(s, len);
	n = begin_block(s, len, get_u32(head + 8));
	return n ? (int)n : 1;
}

/* ---- slots ---- */

/* Reads the next process of the block. Returns false if it is damaged. */
static bool get_process(struct ttmon_slots_reader *s, struct ttmon_slot_row *ret)
{
	struct cursor *c = &s->cols[TTMON_SLOTS_COL_PROCS];
	uint64_t tgid, cls, start, len;

	if (!varint(c, &tgid) || !varint(c, &cls) || !varint(c, &start) || !varint(c, &len) || tgid > UINT32_MAX ||
	    cls >= TTMON_ROW_CLASS_MAX || len >= sizeof(ret->comm) || len > (size_t)(c->end - c->p) ||
	    memchr(c->p, 0, len))
		return false;
	*ret = (struct ttmon_slot_row){ .tgid = (uint32_t)tgid, .cls = (uint8_t)cls, .start_ns = start };
	memcpy(ret->comm, c->p, len);
	c->p += len;
	return true;
}

/* Returns 0, -EBADMSG without a text, or -ENOMEM. */
static int get_row(struct ttmon_slots_reader *s, struct ttmon_slot_row *ret, struct ttmon_slots_sums *sums)
{
	uint64_t index, mask, diff;
	struct ttmon_slot_row *proc;

	if (!varint(&s->cols[TTMON_SLOTS_COL_INDEX], &index) || !varint(&s->cols[TTMON_SLOTS_COL_MASKS], &mask) ||
	    index > s->nr_procs || mask >> TTMON_SLOTS_ROW_FIELDS)
		return -EBADMSG;
	if (index == s->nr_procs) {
		if (index >= TTMON_SLOTS_MAX_PROCS)
			return -EBADMSG;
		if (TTMON_GROW(s->procs, s->cap_procs, index + 1, 1))
			return -ENOMEM;
		if (!get_process(s, &s->procs[index]))
			return -EBADMSG;
		s->nr_procs++;
	}
	proc = &s->procs[index];
	*ret = (struct ttmon_slot_row){ .tgid = proc->tgid, .cls = proc->cls, .start_ns = proc->start_ns };
	memcpy(ret->comm, proc->comm, sizeof(ret->comm));
	for (size_t i = 0; i < TTMON_SLOTS_ROW_FIELDS; i++) {
		const struct ttmon_slots_field *f = &ttmon_slots_row_fields[i];

		diff = 0;
		if (mask >> i & 1 && (!varint(&s->cols[TTMON_SLOTS_COL_FIELDS + i], &diff) || !diff))
			return -EBADMSG;
		if (!ttmon_slots_is_plain(f, proc->cls))
			diff = ttmon_unzigzag(diff);
		if (!set(ret, f, ttmon_slots_predict_row(f, proc, ret, sums) + diff))
			return -EBADMSG;
	}
	ttmon_slots_sum(sums, ret);
	*proc = *ret;
	return 0;
}

static bool get_slot_diffs(struct ttmon_slots_reader *s, uint64_t diffs[TTMON_SLOTS_SLOT_FIELDS])
{
	struct cursor *c = &s->cols[TTMON_SLOTS_COL_SLOTS];
	uint64_t mask;

	if (!varint(c, &mask) || mask >> s->slot_fields)
		return false;
	for (size_t i = 0; i < TTMON_SLOTS_SLOT_FIELDS; i++) {
		diffs[i] = 0;
		if (mask >> i & 1 && (!varint(c, &diffs[i]) || !diffs[i]))
			return false;
		if (!ttmon_slots_is_plain(&ttmon_slots_slot_fields[i], 0))
			diffs[i] = ttmon_unzigzag(diffs[i]);
	}
	return true;
}

static bool set_slot(struct ttmon_slots_reader *s, struct ttmon_slots_item *item, const uint64_t *diffs,
		     const struct ttmon_slots_sums *sums)
{
	for (size_t i = 0; i < TTMON_SLOTS_SLOT_FIELDS; i++) {
		const struct ttmon_slots_field *f = &ttmon_slots_slot_fields[i];
		bool summed =
			f->pred == TTMON_SLOTS_USER || f->pred == TTMON_SLOTS_KERNEL || f->pred == TTMON_SLOTS_IDLE;

		/*
		 * Called twice: first without the rows, for the fields that the rows' predictions need; then with the
		 * sums of the rows.
		 */
		if (summed == !!sums && !set(item, f, ttmon_slots_predict_slot(f, &s->last, sums) + diffs[i]))
			return false;
	}
	return true;
}

static int get_slot(struct ttmon_slots_reader *s, struct ttmon_slots_item *ret)
{
	struct ttmon_slots_item item = { .missed = 0 };
	const struct cursor *index = &s->cols[TTMON_SLOTS_COL_INDEX];
	uint64_t diffs[TTMON_SLOTS_SLOT_FIELDS];
	struct ttmon_slots_sums sums = { 0 };
	int err = 0;

	if (!get_slot_diffs(s, diffs) || !set_slot(s, &item, diffs, NULL) || item.slot.nr_rows > TTMON_SLOTS_MAX_ROWS ||
	    item.slot.nr_rows > (size_t)(index->end - index->p))
		return -EBADMSG;
	if (TTMON_GROW(s->out, s->cap_out, item.slot.nr_rows, 1))
		return -ENOMEM;
	sums.left = item.slot.cpus * NSEC_PER_MS - item.slot.missing_ns;
	for (size_t i = 0; i < item.slot.nr_rows && !err; i++)
		err = get_row(s, &s->out[i], &sums);
	if (err)
		return err;
	if (!set_slot(s, &item, diffs, &sums))
		return -EBADMSG;
	s->last = item;
	item.rows = s->out;
	*ret = item;
	return 0;
}

/* Called after the last slot: returns whether all bytes of all columns were used. */
static bool came_out_even(const struct ttmon_slots_reader *s)
{
	for (size_t i = 0; i < TTMON_SLOTS_COLS; i++)
		if (s->cols[i].p != s->cols[i].end)
			return false;
	return true;
}

int ttmon_slots_next(struct ttmon_slots_reader *s, struct ttmon_slots_item *ret)
{
	struct ttmon_slots_item item;
	int r;

	if (s->err)
		return s->err;
	if (s->ended)
		return 0;
	if (!s->left) {
		r = read_block(s);
		if (r <= 0)
			return r;
	}
	r = get_slot(s, &item);
	if (!r && s->left == 1 && !came_out_even(s))
		r = -EBADMSG;
	if (r)
		return r == -ENOMEM ? fail(s, r, "out of memory") : fail_damaged(s, "a block makes no sense");
	s->left--;
	s->slots++;
	s->rows += item.slot.nr_rows;
	*ret = item;
	return 1;
}

/* ---- opening ---- */

static int read_head(struct ttmon_slots_reader *s)
{
	uint8_t head[MAX_HEAD];
	ssize_t n = get_bytes(s, head, 16);
	uint32_t len, version;

	if (n < 0)
		return (int)n;
	if (!n)
		return fail(s, -EBADMSG, "empty, not a slot file of ttmond");
	if (n < 16 || memcmp(head, TTMON_SLOTS_MAGIC, 8) != 0)
		return fail(s, -EBADMSG, "not a slot file of ttmond (--slots-out)");
	version = get_u32(head + 8);
	if (version < 1 || version > TTMON_SLOTS_VERSION)
		return fail(s, -EPROTONOSUPPORT, "version %u of the slot file; this program reads versions 1 to %d",
			    version, TTMON_SLOTS_VERSION);
	s->slot_fields = version == 1 ? TTMON_SLOTS_SLOT_FIELDS_1 : TTMON_SLOTS_SLOT_FIELDS;
	len = get_u32(head + 12);
	if (len < TTMON_SLOTS_HEAD || len > MAX_HEAD)
		return fail(s, -EBADMSG, "damaged: the head");
	n = get_bytes(s, head + 16, len - 16);
	if (n < 0)
		return (int)n;
	if (n < (ssize_t)len - 16)
		return fail_cut(s);
	if (crc32(0, head, len - 4) != get_u32(head + len - 4))
		return fail(s, -EBADMSG, "damaged: the head");
	s->info.start_ns = get_u64(head + 16);
	s->info.real_ns = get_u64(head + 24);
	s->info.nr_cpus = get_u32(head + 32);
	memcpy(s->info.hostname, head + 40, sizeof(s->info.hostname) - 1);
	memcpy(s->info.ttmond, head + 40 + sizeof(s->info.hostname), sizeof(s->info.ttmond) - 1);
	return 0;
}

static int open_gz(struct ttmon_slots_reader *s, int fd)
{
	_cleanup_close_ int own = fd;

	if (own < 0)
		return fail(s, -errno, "%s", strerror(errno));
	s->gz = gzdopen(own, "r");
	if (!s->gz)
		return fail(s, -ENOMEM, "out of memory");
	TAKE_FD(own);
	if (gzbuffer(s->gz, 128u << 10))
		return fail(s, -ENOMEM, "out of memory");
	return read_head(s);
}

int ttmon_slots_open_fd(int fd, const char *name, struct ttmon_slots_reader **ret, char *why, size_t n)
{
	int saved = errno, err = -ENOMEM;
	struct ttmon_slots_reader *s = calloc(1, sizeof(*s));

	if (s)
		s->name = strdup(name);
	if (!s || !s->name) {
		if (fd >= 0)
			close(fd);
		snprintf(why, n, "%.200s: out of memory", name);
	} else {
		errno = saved;
		err = open_gz(s, fd);
		if (err)
			snprintf(why, n, "%s", s->why);
	}
	if (err)
		ttmon_slots_close(s);
	else
		*ret = s;
	return err;
}

int ttmon_slots_open(const char *path, struct ttmon_slots_reader **ret, char *why, size_t n)
{
	if (strcmp(path, "-") == 0)
		return ttmon_slots_open_fd(fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), "standard input", ret, why, n);
	return ttmon_slots_open_fd(open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC), path, ret, why, n);
}

void ttmon_slots_close(struct ttmon_slots_reader *s)
{
	if (!s)
		return;
	if (s->gz)
		gzclose(s->gz);
	free(s->name);
	free(s->block);
	free(s->procs);
	free(s->out);
	free(s);
}

const struct ttmon_slots_info *ttmon_slots_get_info(const struct ttmon_slots_reader *s)
{
	return &s->info;
}

const struct ttmon_slots_end *ttmon_slots_get_end(const struct ttmon_slots_reader *s)
{
	return &s->end;
}

const char *ttmon_slots_why(const struct ttmon_slots_reader *s)
{
	return s->why;
}
