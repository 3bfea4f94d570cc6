// SPDX-License-Identifier: GPL-2.0-only
/*
 * programs.c: /v1/tt/programs: runs of programs on Tenstorrent devices as a feed that clients follow,
 * each as it enters the timeline.
 *
 * A row is an array, because there may be 100,000 a second. The names of kernels are sent once to each
 * follower, under the number that rows use: an operation of ttnn has another program id each time it
 * runs, but the same kernels.
 */
#include "daemon/api/api.h"
#include "daemon/api/follow.h"
#include "daemon/core/stream/timeline.h"
#include "lib/base/hmap.h"

/* A row, preceded by the names of its kernels with every byte escaped. */
#define ROW_MAX 8192u
/* Numbers sent to a follower before it must drop them all. */
#define TOLD_MAX 16384u

static void numbers(struct ttmon_pipeline *p, uint64_t *first, uint64_t *next)
{
	ttmon_timeline_run_numbers(ttmon_pipeline_timeline(p), first, next);
}

static bool get(struct ttmon_pipeline *p, uint64_t seq, struct ttmon_feed_line *ret, void *body)
{
	const struct ttmon_tt_run *run = ttmon_timeline_run_from(ttmon_pipeline_timeline(p), &seq);

	if (!run)
		return false;
	memcpy(body, run, sizeof(*run));
	*ret = (struct ttmon_feed_line){ .seq = seq, .tgid = run->tgid, .uid = run->uid };
	return true;
}

static void write_head(struct ttmon_jsonw *w)
{
	static const char *const columns[] = { "seq",	 "pid",	     "device", "chip",	  "program", "start_ns",
					       "end_ns", "error_ns", "clock",  "seen_ns", "kernels" };

	ttmon_jsonw_key_open(w, "columns", '[');
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		ttmon_jsonw_name(w, columns[i]);
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_key_open(w, "clocks", '[');
	for (unsigned int i = 0; i < TTMON_CLOCKS; i++)
		ttmon_jsonw_name(w, ttmon_clock_name(i));
	ttmon_jsonw_close(w, ']');
}

/* Names are sent before the first row with their number. False: they are unknown, or were dropped. */
static bool tell_kernels(struct ttmon_jsonw *w, const struct ttmon_dispatch *d, uint32_t kernels,
			 struct ttmon_hmap *told)
{
	const char *names;

	if (!kernels)
		return false;
	if (ttmon_hmap_get(told, kernels) != TTMON_HMAP_NONE)
		return true;
	names = ttmon_dispatch_kernels(d, kernels);
	if (!names)
		return false;
	if (told->n == TOLD_MAX) {
		ttmon_hmap_fini(told);
		ttmon_jsonw_open(w, '{');
		ttmon_jsonw_key_bool(w, "forget", true);
		ttmon_jsonw_close(w, '}');
		ttmon_jsonw_end(w);
	}
	/* Out of memory: they are sent again with the next row. */
	(void)!ttmon_hmap_put(told, kernels, 1);
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_num(w, "kernels", kernels);
	ttmon_jsonw_key_str(w, "names", names);
	ttmon_jsonw_close(w, '}');
	ttmon_jsonw_end(w);
	return true;
}

static void put_known(struct ttmon_jsonw *w, bool known, uint64_t value)
{
	if (known)
		ttmon_jsonw_num(w, value);
	else
		ttmon_jsonw_null(w);
}

static void write_run(struct ttmon_jsonw *w, struct ttmon_pipeline *p, const struct ttmon_feed_line *line,
		      const void *body, void *own)
{
	const struct ttmon_tt_run *r = body;
	bool has_kernels = tell_kernels(w, ttmon_pipeline_dispatch(p), r->kernels, own);
	bool placed = r->clock != TTMON_CLOCK_NONE;

	ttmon_jsonw_open(w, '[');
	ttmon_jsonw_num(w, line->seq);
	ttmon_jsonw_num(w, r->tgid);
	ttmon_jsonw_num(w, r->logical);
	put_known(w, r->chip, r->chip);
	ttmon_jsonw_num(w, r->program);
	put_known(w, placed, r->start_ns);
	put_known(w, placed, r->end_ns);
	put_known(w, placed && r->error_ns != UINT64_MAX, r->error_ns);
	ttmon_jsonw_num(w, r->clock);
	ttmon_jsonw_num(w, r->seen_ns);
	put_known(w, has_kernels, r->kernels);
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_end(w);
}

static void fini_told(void *own)
{
	ttmon_hmap_fini(own);
}

static const struct ttmon_feed feed = {
	.what = "programs",
	.news = TTMON_HOT_RUNS,
	.body_size = sizeof(struct ttmon_tt_run),
	.own_size = sizeof(struct ttmon_hmap),
	.row_max = ROW_MAX,
	.numbers = numbers,
	.get = get,
	.head = write_head,
	.write = write_run,
	.own_fini = fini_told,
};

void ttmon_api_programs(void *ctx, struct ttmon_http_reply *reply)
{
	ttmon_follow_add(ttmon_daemon_part(ctx, &ttmon_part_programs), reply);
}

static int start(struct ttmon_daemon *c, void **state)
{
	return ttmon_follow_new(c, &feed, state);
}

const struct ttmon_part ttmon_part_programs = {
	.name = "programs",
	.in = TTMON_IN_BOTH,
	.start = start,
	.wake = ttmon_follow_wake,
	.tick = ttmon_follow_tick,
	.free = ttmon_follow_free,
};
