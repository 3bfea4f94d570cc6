/* SPDX-License-Identifier: GPL-2.0-only */
/* mt_feed.h: a trace from memory, read to its end, with everything that was said of it. */
#ifndef TTMON_TESTS_MT_FEED_H
#define TTMON_TESTS_MT_FEED_H

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "memtrace/read/in.h"
#include "memtrace/model/shape.h"
#include "lib/base/util.h"

#define TRACES "tests/memtrace/traces/"

struct feed {
	struct ttmon_mt_in *in;
	int err; /* of open, or of the end */
	char why[500];
	struct ttmon_mt_rec *recs; /* addr is of no use any more: lanes are */
	uint64_t (*lanes)[TTMON_MT_LANES];
	size_t nr;
	const struct ttmon_mt_dict *dict;
	struct ttmon_mt_stats stats;
};

static inline void feed_add(struct feed *f, const struct ttmon_mt_rec *recs, size_t n)
{
	f->recs = reallocarray(f->recs, f->nr + n + 1, sizeof(*f->recs));
	f->lanes = reallocarray(f->lanes, f->nr + n + 1, sizeof(*f->lanes));
	for (size_t i = 0; i < n; i++) {
		assert_true(recs[i].mask && recs[i].site < f->dict->nr_sites && recs[i].launch < f->dict->nr_launches);
		assert_true(recs[i].width >= 1 && recs[i].width <= 64 && recs[i].space < TTMON_MT_SPACE_MAX);
		assert_int_equal(recs[i].seq, f->nr);
		assert_int_equal(recs[i].base, ttmon_mt_lane(&recs[i], (unsigned int)__builtin_ctz(recs[i].mask)));
		f->recs[f->nr] = recs[i];
		for (unsigned int l = 0; l < TTMON_MT_LANES; l++)
			f->lanes[f->nr][l] = recs[i].mask >> l & 1 ? ttmon_mt_lane(&recs[i], l) : 0;
		f->nr++;
	}
}

static inline void feed_read(struct feed *f)
{
	const struct ttmon_mt_rec *recs;
	size_t n;

	f->dict = ttmon_mt_in_dict(f->in);
	while ((f->err = ttmon_mt_in_next(f->in, &recs, &n, f->why, sizeof(f->why))) > 0)
		feed_add(f, recs, n);
	/* What it was stays. */
	assert_int_equal(ttmon_mt_in_next(f->in, &recs, &n, f->why, sizeof(f->why)), f->err);
	f->stats = *ttmon_mt_in_stats(f->in);
	assert_int_equal(f->stats.records, f->nr);
	assert_true(!f->err == !f->why[0]);
}

static inline struct feed feed_file(const char *path, const struct ttmon_mt_in_opts *opts)
{
	struct feed f = { 0 };

	f.err = ttmon_mt_in_open(path, opts, &f.in, f.why, sizeof(f.why));
	assert_true(f.err ? !f.in && f.why[0] : f.in && !f.why[0]);
	if (!f.err)
		feed_read(&f);
	return f;
}

static inline struct feed feed_bytes(const void *p, size_t n, const struct ttmon_mt_in_opts *opts)
{
	struct feed f = { 0 };
	int fd = memfd_create("trace", MFD_CLOEXEC);

	assert_true(fd >= 0 && write(fd, p, n) == (ssize_t)n && !lseek(fd, 0, SEEK_SET));
	f.err = ttmon_mt_in_open_fd(fd, "trace", opts, &f.in, f.why, sizeof(f.why));
	if (!f.err)
		feed_read(&f);
	close(fd);
	return f;
}

static inline struct feed feed_text(const char *text)
{
	return feed_bytes(text, strlen(text), NULL);
}

static inline const char *feed_op(const struct feed *f, size_t i)
{
	return f->dict->sites[f->recs[i].site].opcode;
}

static inline const struct ttmon_mt_launch *feed_launch(const struct feed *f, size_t i)
{
	return &f->dict->launches[f->recs[i].launch];
}

static inline void feed_free(struct feed *f)
{
	ttmon_mt_in_free(f->in);
	free(f->recs);
	free(f->lanes);
	*f = (struct feed){ 0 };
}

/* A whole file; free it. */
static inline char *slurp(const char *path, size_t *n)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *p = malloc(1 << 20);
	ssize_t got;

	assert_true(fd >= 0 && p);
	got = read(fd, p, (1 << 20) - 1);
	assert_true(got >= 0);
	p[got] = '\0';
	*n = (size_t)got;
	close(fd);
	return p;
}

#endif
