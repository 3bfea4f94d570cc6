// SPDX-License-Identifier: GPL-2.0-only
/*
 * in.c: what a source is, and its bytes given to the reader that knows it. The reader is chosen as
 * soon as one is sure, or when 64 KiB or all there is do not make it surer: of a regular file when it
 * is opened, of anything else when its bytes come. An error waits until the records before it are
 * handed out, and stays.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "memtrace/read/in_int.h"
#include "memtrace/read/src.h"
#include "lib/base/util.h"

#define HEAD  (64u << 10) /* what detect() is given */
#define SURE  50
#define BUF   (2u << 20)
#define ASKED (1u << 20) /* what a reader may ask for */
/* Read at a time: what is parsed next is in the cache still. */
#define CHUNK  (256u << 10)
#define ENOUGH 1024 /* records to hand out */

static const struct ttmon_mt_format *const formats[] = { &ttmon_mt_stream, &ttmon_mt_accel, &ttmon_mt_raw,
							 &ttmon_mt_text };

struct ttmon_mt_in {
	struct ttmon_mt_in_opts opts;
	struct ttmon_mt_dictw dict;
	struct ttmon_mt_stats stats;
	char *name;
	const char *file; /* name, or the one of the list that is read */
	int own;	  /* fd that is closed; -1: none */
	struct ttmon_mt_src *src;
	uint8_t *buf;
	size_t at, len;
	bool end; /* of this source */
	const struct ttmon_mt_format *format;
	void *reader;
	struct ttmon_mt_list *list; /* NULL: one file */
	uint64_t size, before;	    /* bytes of the file or files, and of those that are done; 0: a pipe */
	uint64_t records, inferred;
	bool done;
	int err; /* for ever, with why */
	char why[512];
	struct ttmon_mt_batch batch;
};

static _printf_(3, 4) int fail(struct ttmon_mt_in *in, int err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(in->why, sizeof(in->why), fmt, ap);
	va_end(ap);
	return err;
}

/* More bytes behind those in the buffer. 1; 0: the end; -EAGAIN: not now; -errno and why. */
static int fill(struct ttmon_mt_in *in, int wait_ms)
{
	ssize_t got;

	/*
	 * What is left is a piece of a line: moved to the front, so that the same memory, which is in the
	 * cache, is filled again.
	 */
	if (in->at >= in->len - in->at || BUF - in->len < CHUNK) {
		memmove(in->buf, in->buf + in->at, in->len - in->at);
		in->len -= in->at;
		in->at = 0;
	}
	got = ttmon_mt_src_read(in->src, in->buf + in->len, MIN(CHUNK, BUF - in->len), wait_ms, in->why,
				sizeof(in->why));
	in->stats.bytes = in->before + ttmon_mt_src_taken(in->src);
	if (got < 0)
		return (int)got;
	in->len += (size_t)got;
	in->end = !got;
	if (in->end && ttmon_mt_src_cut(in->src))
		in->stats.cut = true;
	return got > 0;
}

/* The next file of the list takes the place of the source. 1; 0: there is none; -errno. */
static int next_file(struct ttmon_mt_in *in)
{
	const char *name = NULL;
	int fd, err;

	in->before += ttmon_mt_src_taken(in->src);
	ttmon_mt_src_free(in->src);
	in->src = NULL;
	ttmon_closep(&in->own);
	in->own = -1;
	fd = ttmon_mt_list_next(in->list, &name, in->why, sizeof(in->why));
	if (fd < 0)
		return in->why[0] ? fd : 0;
	in->own = fd;
	in->file = name;
	err = ttmon_mt_src_new(fd, name, &in->src);
	if (err)
		return fail(in, err, "%s: out of memory", name);
	in->at = in->len = 0;
	in->end = false;
	return 1;
}

/* The whole list is in memory before its first file is. */
static int open_list(struct ttmon_mt_in *in)
{
	_cleanup_free_ uint8_t *text = NULL;
	size_t n = 0, cap = 0;
	int r = 1;

	if (!in->size)
		return fail(in, -EINVAL, "%s: a list of traces, which are beside it: give its path", in->name);
	do {
		size_t k = in->len - in->at;

		if (n + k > TTMON_MT_LIST_MAX)
			return fail(in, -E2BIG, "%s: a list of more than %u bytes", in->name, TTMON_MT_LIST_MAX);
		if (n + k >= cap) {
			uint8_t *more = realloc(text, (n + k) * 2 + 1);

			if (!more)
				return fail(in, -ENOMEM, "%s: out of memory", in->name);
			text = more;
			cap = (n + k) * 2 + 1;
		}
		memcpy(text + n, in->buf + in->at, k);
		n += k;
		in->at = in->len;
		r = fill(in, -1);
	} while (r > 0);
	if (r < 0)
		return r;
	r = ttmon_mt_list_new(in->name, text, n, &in->stats, &in->list, in->why, sizeof(in->why));
	if (r)
		return r;
	in->size += ttmon_mt_list_bytes(in->list);
	r = next_file(in);
	return r < 0 ? r : 0;
}

/* Is there a whole line of text, and nothing that text has not? */
static bool whole_line(const uint8_t *p, size_t n)
{
	return memchr(p, '\n', n) && !memchr(p, '\0', n);
}

/* Chooses the reader. 0; -EAGAIN: by what is there nothing can be said; -errno and why. */
static int detect(struct ttmon_mt_in *in, int wait_ms)
{
	const struct ttmon_mt_format *best;
	int score, list, r, err;
	char why[400] = "";

	for (;;) {
		const uint8_t *p = in->buf + in->at;
		size_t n = MIN(in->len - in->at, HEAD);
		bool all = in->end || in->len - in->at >= HEAD;

		best = NULL;
		score = 0;
		for (size_t i = 0; i < ARRAY_SIZE(formats) && n; i++) {
			int s = formats[i]->detect(p, n);

			if (s > score) {
				best = formats[i];
				score = s;
			}
		}
		list = in->list || !n ? 0 : ttmon_mt_list_detect(p, n);
		if (all || score >= SURE || list >= SURE)
			break;
		r = fill(in, wait_ms);
		/* A program that says something and then works for an hour: its words are to be handed on now. */
		if (r == -EAGAIN && best == &ttmon_mt_text && whole_line(p, n))
			break;
		if (r < 0)
			return r;
	}
	if (list > score)
		return open_list(in) ?: detect(in, wait_ms);
	if (in->end && in->at == in->len)
		return fail(in, -EBADMSG, "%s: %s", in->file,
			    in->stats.cut ? "cut before its first byte of data" : "empty");
	if (!best)
		return fail(in, -EBADMSG,
			    "%s: not a memory trace: neither text nor records of NVBit's mem_trace, nor of Accel-Sim's "
			    "tracer, nor of ttmon",
			    in->name);
	if (in->list && best != &ttmon_mt_accel)
		return fail(in, -EBADMSG, "%s: not a trace of Accel-Sim", in->file);
	err = best->open(&in->reader, in->name, &in->opts, &in->dict, &in->stats, why, sizeof(why));
	if (err)
		return fail(in, err, "%s: %s", in->file, why);
	in->format = best;
	return 0;
}

/*
 * Records into the batch until it is full, the source ends or has no more for now. 1; 0: the end;
 * -errno and why.
 */
static int advance(struct ttmon_mt_in *in)
{
	char why[400] = "";

	for (;;) {
		/* The caller may be waiting for what is in the batch already. */
		int wait_ms = !in->opts.live ? -1 : in->batch.nr ? 0 : MAX(in->opts.wait_ms, 0), r;
		int64_t used;

		if (!in->reader) {
			r = detect(in, wait_ms);
			if (r)
				return r == -EAGAIN ? 1 : r;
		}
		used = in->format->parse(in->reader, in->buf + in->at, in->len - in->at, in->end, &in->batch, why,
					 sizeof(why));
		if (used < 0)
			return fail(in, (int)used, "%s: %s", in->file, why);
		in->at += (size_t)used;
		if (in->batch.nr >= ENOUGH)
			return 1;
		if (in->end) {
			if (used && in->at < in->len)
				continue;
			in->stats.cut |= in->at < in->len;
			r = in->list ? next_file(in) : 0;
			if (r <= 0)
				return r;
			continue;
		}
		if (in->len - in->at >= ASKED) {
			if (!used)
				return fail(in, -EBADMSG, "%s: nothing that makes sense in %u bytes", in->file, ASKED);
			continue;
		}
		r = fill(in, wait_ms);
		if (r == -EAGAIN)
			return 1;
		if (r < 0)
			return r;
	}
}

int ttmon_mt_in_open_fd(int fd, const char *name, const struct ttmon_mt_in_opts *opts, struct ttmon_mt_in **ret,
			char *why, size_t n)
{
	_cleanup_(ttmon_mt_in_freep) struct ttmon_mt_in *in = calloc(1, sizeof(*in));
	struct stat st;
	int err;

	if (in)
		in->own = -1;
	if (!in || !(in->name = strdup(name)) || !(in->buf = malloc(BUF)) || ttmon_mt_src_new(fd, name, &in->src)) {
		snprintf(why, n, "%s: out of memory", name);
		return -ENOMEM;
	}
	in->file = in->name;
	if (opts)
		in->opts = *opts;
	if (fstat(fd, &st)) {
		snprintf(why, n, "%s: %s", name, strerror(errno));
		return -errno;
	}
	if (S_ISDIR(st.st_mode)) {
		snprintf(why, n, "%s: a directory; name a trace in it, or its kernelslist.g", name);
		return -EISDIR;
	}
	if (S_ISREG(st.st_mode)) {
		off_t at = lseek(fd, 0, SEEK_CUR);

		in->size = st.st_size > at ? (uint64_t)(st.st_size - at) : 0;
		err = detect(in, -1);
		if (err) {
			snprintf(why, n, "%s", in->why);
			return err;
		}
	}
	*ret = TAKE_PTR(in);
	return 0;
}

int ttmon_mt_in_open(const char *path, const struct ttmon_mt_in_opts *opts, struct ttmon_mt_in **ret, char *why,
		     size_t n)
{
	struct ttmon_mt_in *in = NULL;
	int fd, err;

	if (!strcmp(path, "-"))
		return ttmon_mt_in_open_fd(STDIN_FILENO, "standard input", opts, ret, why, n);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		snprintf(why, n, "%s: %s", path, strerror(-err));
		return err;
	}
	err = ttmon_mt_in_open_fd(fd, path, opts, &in, why, n);
	if (err) {
		close(fd);
		return err;
	}
	/* A list has closed it already, or goes on in files of its own. */
	if (in->list)
		close(fd);
	else
		in->own = fd;
	*ret = in;
	return 0;
}

int ttmon_mt_in_next(struct ttmon_mt_in *in, const struct ttmon_mt_rec **recs, size_t *nr, char *why, size_t n)
{
	int r;

	in->batch.nr = 0;
	*recs = in->batch.recs;
	*nr = 0;
	if (in->err) {
		snprintf(why, n, "%s", in->why);
		return in->err;
	}
	if (in->done)
		return 0;
	r = advance(in);
	in->records += in->batch.nr;
	for (size_t i = 0; i < in->batch.nr; i++)
		in->inferred += !!(in->batch.recs[i].flags & TTMON_MT_INFERRED);
	in->stats.records = in->records;
	in->stats.inferred = in->inferred;
	*nr = in->batch.nr;
	if (r < 0) {
		in->err = r;
		if (*nr)
			return 1;
		snprintf(why, n, "%s", in->why);
		return r;
	}
	in->done = !r;
	return r || *nr ? 1 : 0;
}

const struct ttmon_mt_dict *ttmon_mt_in_dict(const struct ttmon_mt_in *in)
{
	return &in->dict.dict;
}

const struct ttmon_mt_stats *ttmon_mt_in_stats(const struct ttmon_mt_in *in)
{
	return &in->stats;
}

uint64_t ttmon_mt_in_size(const struct ttmon_mt_in *in, uint64_t *at)
{
	*at = in->stats.bytes;
	return in->size;
}

void ttmon_mt_in_free(struct ttmon_mt_in *in)
{
	if (!in)
		return;
	if (in->reader)
		in->format->free(in->reader);
	ttmon_mt_src_free(in->src);
	ttmon_mt_list_free(in->list);
	ttmon_closep(&in->own);
	ttmon_mt_dict_fini(&in->dict);
	free(in->buf);
	free(in->name);
	free(in);
}
