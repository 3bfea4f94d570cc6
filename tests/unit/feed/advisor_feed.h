/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * advisor_feed.h: a database of allocations that this very program could make: its sites are addresses
 * of functions of its own. For the tests, the fuzz target and the benchmark of libttmon.
 */
#ifndef TTMON_ADVISOR_FEED_H
#define TTMON_ADVISOR_FEED_H

#include "lib/advisor/advisor_int.h"

struct feed_frame {
	const void *addr;
	const char *fn; /* "f+0x10"; NULL: none */
};

struct feed_alloc {
	struct feed_frame frames[16]; /* innermost first, to the first without an address */
	const char *name;	      /* a tag */
	uint64_t size;
	unsigned int copies;
	bool by_depth; /* the stack was cut by --stack-depth */
};

static struct ttmon_objs *feed_objs;

static inline void feed_hex(FILE *f, const uint8_t *p, size_t n, uint8_t flip)
{
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%02x", p[i] ^ flip);
}

/*
 * flip: of the build-ids, as if all had been built again. Each allocation is a site of its own;
 * ordinals are counted by the caller.
 */
static inline void feed_write(const char *path, const struct feed_alloc *a, size_t n, uint8_t flip)
{
	struct ttmon_funcs *funcs = NULL;
	struct ttmon_known none = { 0 };
	FILE *f = fopen(path, "w");

	if (!f || (!feed_objs && ttmon_objs_take(&none, NULL, &funcs, &feed_objs)))
		abort();
	fprintf(f,
		"{\"schema\":\"ttmon-db\",\"version\":1,\"ttmond\":\"test\",\"host\":{\"hostname\":\"h\"},"
		"\"clock\":{\"mono_ns\":\"1\",\"real_ns\":\"1\"},\"capture\":{\"mode\":\"command\",\"start_ns\":\"1\","
		"\"end_ns\":\"9000000000\"},"
		"\"completeness\":{\"complete\":true,\"reasons\":[]},\"objects\":[");
	for (size_t i = 0; i < feed_objs->nr_objs; i++) {
		const struct ttmon_obj *o = &feed_objs->objs[i];

		fprintf(f, "%s{\"id\":%zu,\"path\":\"%s\",\"build_id\":\"", i ? "," : "", i + 1, o->path);
		feed_hex(f, o->build_id, o->build_id_len, flip);
		fprintf(f, "\",\"cuda\":false}");
	}
	fprintf(f, "],\"processes\":[{\"index\":0,\"pid\":7,\"start_ns\":\"1\",\"comm\":\"t\",\"first_ns\":\"1\","
		   "\"last_ns\":\"8000000000\"}],"
		   "\"sites\":[{\"id\":0,\"key\":\"0x0\",\"frames\":[]}");
	for (size_t i = 0; i < n; i++) {
		fprintf(f, ",{\"id\":%zu,\"key\":\"0x%zx\",\"frames\":[", i + 1, i + 1);
		for (size_t j = 0; j < 16 && a[i].frames[j].addr; j++) {
			uint64_t addr = (uint64_t)(uintptr_t)a[i].frames[j].addr;
			const struct ttmon_seg *seg = ttmon_objs_find(feed_objs, addr - 1);
			const char *fn = a[i].frames[j].fn;

			if (!seg)
				abort();
			fprintf(f, "%s[%u,\"0x%llx\",%s%s%s]", j ? "," : "", seg->obj + 1,
				(unsigned long long)(addr + seg->to_file), fn ? "\"" : "", fn ? fn : "null",
				fn ? "\"" : "");
		}
		fprintf(f, "]%s}", a[i].by_depth ? ",\"stack\":{\"by\":\"tables\",\"end\":\"depth\"}" : "");
	}
	fprintf(f, "],\"allocations\":[");
	for (size_t i = 0; i < n; i++) {
		bool framed = a[i].frames[0].addr != NULL;

		fprintf(f,
			"%s{\"id\":\"%zu\",\"pid\":7,\"process\":0,\"site\":%zu,\"ordinal\":0,\"size\":%llu,"
			"\"addr\":\"0x%llx\",\"method\":\"%s\","
			"\"fn\":null,\"name\":%s%s%s,\"alloc_ns\":\"%zu\",\"free_ns\":null,\"pin_ns\":1,"
			"\"unpin_ns\":0,\"flags\":[],\"api_flags\":0,"
			"\"transfers\":{",
			i ? "," : "", i, framed ? i + 1 : 0, (unsigned long long)a[i].size,
			0x100000000ull + i * 0x10000000ull, a[i].name ? "custom" : "host_alloc", a[i].name ? "\"" : "",
			a[i].name ? a[i].name : "null", a[i].name ? "\"" : "", 1000 + i);
		if (a[i].copies)
			fprintf(f, "\"h2d\":[%u,%llu]", a[i].copies, (unsigned long long)a[i].size * a[i].copies);
		fprintf(f, "},\"events\":[]}");
	}
	fprintf(f, "],\"summary\":{}}\n");
	fclose(f);
	ttmon_funcs_free(funcs);
}

static inline void feed_fini(void)
{
	ttmon_objs_free(TAKE_PTR(feed_objs));
}

#endif
