// SPDX-License-Identifier: GPL-2.0-only
#include "tools/memtrace/join.h"

#include "lib/read/run.h"
#include "memtrace/analyse/an.h"
#include "memtrace/read/in.h"
#include "lib/base/util.h"

TTMON_FREEP(ttmon_mt_map_freep, struct ttmon_mt_map, ttmon_mt_map_free);

TTMON_FREEP(ttmon_mt_an_freep, struct ttmon_mt_an, ttmon_mt_an_free);

static int read_all(struct ttmon_mt_in *in, struct ttmon_mt_an *an, char *why, size_t n)
{
	const struct ttmon_mt_rec *recs;
	size_t nr;
	int more;

	while ((more = ttmon_mt_in_next(in, &recs, &nr, why, n)) > 0) {
		int err = ttmon_mt_an_feed(an, ttmon_mt_in_dict(in), recs, nr);

		if (err) {
			snprintf(why, n, "%s", strerror(-err));
			return err;
		}
	}
	if (!more)
		more = ttmon_mt_an_settle(an, ttmon_mt_in_dict(in));
	return more;
}

static void tell(const struct ttmon_mt_an *an, const struct ttmon_mt_map *map, struct ttmon_run *run,
		 struct ttmon_mt_joined *ret)
{
	size_t nr_rows, nr_allocs;
	const struct ttmon_mt_buffer_row *rows = ttmon_mt_an_buffers(an, &nr_rows);
	const struct ttmon_mt_alloc *allocs = ttmon_mt_map_get(map, &nr_allocs);

	for (size_t i = 0; i < nr_rows; i++) {
		const struct ttmon_mt_buffer_row *b = &rows[i];
		struct ttmon_run_alloc *a;

		if (b->alloc >= nr_allocs || allocs[b->alloc].user >= run->nr_allocs)
			continue;
		a = &run->allocs[allocs[b->alloc].user];
		/* If it is only known that a page was touched, the page counts as read. */
		ttmon_run_gpu_use(a, b->sums.reads + (b->sums.requests ? 0 : b->touches), b->sums.writes,
				  b->sums.sectors);
		ret->allocs++;
		ret->pinned += ttmon_run_is_pinned(a);
		ret->idle += ttmon_run_is_pinned(a) && !ttmon_run_moved(a);
	}
}

int ttmon_mt_join(const char *trace, struct ttmon_run *run, struct ttmon_mt_joined *ret)
{
	_cleanup_(ttmon_mt_in_freep) struct ttmon_mt_in *in = NULL;
	_cleanup_(ttmon_mt_map_freep) struct ttmon_mt_map *map = NULL;
	_cleanup_(ttmon_mt_an_freep) struct ttmon_mt_an *an = NULL;
	struct ttmon_mt_an_opts opts = { .reuse = TTMON_MT_REUSE_OFF };
	struct ttmon_mt_in_opts in_opts = { .known = ttmon_mt_map_known };
	char why[600] = "";
	int err = ttmon_mt_map_new(&map);

	*ret = (struct ttmon_mt_joined){ 0 };
	err = err ? err : ttmon_mt_map_run(map, run, 0);
	err = err ? err : ttmon_mt_map_done(map);
	opts.map = in_opts.known_ctx = map;
	opts.max_buffers = (uint32_t)MIN(run->nr_allocs + 1024, (size_t)1 << 22);
	err = err ? err : ttmon_mt_an_new(&opts, &an);
	if (err)
		snprintf(why, sizeof(why), "%s: %s", trace, strerror(-err));
	err = err ? err : ttmon_mt_in_open(trace, &in_opts, &in, why, sizeof(why));
	err = err ? err : read_all(in, an, why, sizeof(why));
	if (err) {
		fprintf(stderr, "ttmon: %s\n", *why ? why : strerror(-err));
		return err;
	}
	ret->records = ttmon_mt_in_stats(in)->records;
	tell(an, map, run, ret);
	return 0;
}
