// SPDX-License-Identifier: GPL-2.0-only
/*
 * fuzz_mt_in.c: any bytes as a trace, in all formats, at once and in pieces through a pipe. What is
 * handed out is in range as mt.h says, an error has its line, and what counts says no more than there
 * is.
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "memtrace/read/in.h"
#include "memtrace/model/shape.h"
#include "lib/base/util.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t touched; /* keeps the reads */

static void touch(const char *text)
{
	if (!text)
		abort();
	touched += strlen(text);
}

static void check(const struct ttmon_mt_dict *d, const struct ttmon_mt_rec *r, size_t n, uint64_t *seq)
{
	if (n > TTMON_MT_BATCH)
		abort();
	for (size_t i = 0; i < n; i++, r++) {
		if (!r->mask || r->site >= d->nr_sites || r->launch >= d->nr_launches || !r->width || r->width > 64 ||
		    r->space >= TTMON_MT_SPACE_MAX)
			abort();
		if (d->sites[r->site].kind >= TTMON_MT_KIND_MAX ||
		    ttmon_mt_lane(r, (unsigned int)__builtin_ctz(r->mask)) != r->base)
			abort();
		for (unsigned int l = 0; l < TTMON_MT_LANES; l++)
			touched += r->mask >> l & 1 ? ttmon_mt_lane(r, l) : 0;
		(*seq)++;
	}
}

static void foreign(void *ctx, const char *line, size_t n)
{
	(void)ctx;
	for (size_t i = 0; i < n; i++)
		touched += (uint8_t)line[i];
}

/* What it was: the number of records, or the error; whether it could be opened. */
static int64_t read_all(int fd, const struct ttmon_mt_in_opts *opts, int feed, const uint8_t *data, size_t size)
{
	struct ttmon_mt_in *in = NULL;
	const struct ttmon_mt_rec *recs;
	const struct ttmon_mt_dict *d;
	const struct ttmon_mt_stats *s;
	char why[300] = "";
	uint64_t seq = 0, at;
	size_t nr, done = 0;
	int r = ttmon_mt_in_open_fd(fd, "x", opts, &in, why, sizeof(why));

	if (r) {
		if (!why[0] || in)
			abort();
		return r;
	}
	d = ttmon_mt_in_dict(in);
	while ((r = ttmon_mt_in_next(in, &recs, &nr, why, sizeof(why))) > 0) {
		size_t m = MIN(size - done, 1 + size / 16);

		check(d, recs, nr, &seq);
		if (feed < 0)
			continue;
		if (m && write(feed, data + done, m) != (ssize_t)m)
			abort();
		done += m;
		if (done == size) {
			close(feed);
			feed = -1;
		}
	}
	if (feed >= 0)
		close(feed);
	if (!r != !why[0])
		abort();
	s = ttmon_mt_in_stats(in);
	if (s->records != seq || s->inferred > seq)
		abort();
	touch(s->tool);
	ttmon_mt_in_size(in, &at);
	for (size_t i = 0; i < d->nr_sites; i++) {
		touch(d->sites[i].kernel);
		touch(d->sites[i].opcode);
		touch(d->sites[i].file);
		touch(d->sites[i].module);
	}
	for (size_t i = 0; i < d->nr_launches; i++)
		touch(d->launches[i].kernel);
	ttmon_mt_in_free(in);
	return r ? r : (int64_t)seq;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ttmon_mt_in_opts opts = { .foreign = size % 2 ? foreign : NULL };
	int fd = memfd_create("trace", MFD_CLOEXEC), pv[2];
	int64_t whole, pieces;

	/* A list names files of this machine, and xz is a program: not to be run a thousand times a second. */
	if (size > 60000 || (size > 6 && !memcmp(data, "\3757zXZ", 6)) || memmem(data, size, "kernel-", 7))
		return close(fd);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size || lseek(fd, 0, SEEK_SET))
		abort();
	whole = read_all(fd, &opts, -1, NULL, 0);
	close(fd);
	opts.live = true;
	if (pipe2(pv, O_CLOEXEC))
		abort();
	pieces = read_all(pv[0], &opts, pv[1], data, size);
	close(pv[0]);
	/*
	 * Pieces may be taken for text before they are known for something else; what is a trace stays the one
	 * it is.
	 */
	if (whole > 0 && pieces > whole)
		abort();
	return 0;
}
