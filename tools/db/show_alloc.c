// SPDX-License-Identifier: GPL-2.0-only
/*
 * show_alloc.c: `ttmon db show FILE ID` shows one allocation with its call site, heat and events. ID
 * is the allocation's id or the beginning of it: the first allocation that fits is shown.
 */
#include <inttypes.h>

#include "daemon/core/history/history.h"
#include "tools/db/db_tool.h"
#include "lib/base/fmt.h"

static void print_list(const char *title, const json_t *list)
{
	printf("  %-10s", title);
	for (size_t i = 0; i < json_array_size(list); i++) {
		char text[32];

		printf("%s%s", i ? ", " : "",
		       ttmon_fmt_text(text, sizeof(text), json_string_value(json_array_get(list, i))));
	}
	puts(json_array_size(list) ? "" : "none");
}

static void print_life(const struct ttmon_db *db, const json_t *a)
{
	uint64_t start = ttmon_db_get(ttmon_db_member(db, "capture"), "start_ns", 0), end_ns;
	uint64_t alloc_ns = ttmon_db_get(a, "alloc_ns", 0);
	char at[TTMON_FMT_LEN], life[TTMON_FMT_LEN], end[24], pin[TTMON_FMT_LEN], unpin[TTMON_FMT_LEN];
	bool freed = ttmon_db_u64(a, "free_ns", &end_ns);

	if (!freed)
		end_ns = ttmon_db_get(ttmon_db_member(db, "capture"), "end_ns", alloc_ns);
	if (ttmon_before(alloc_ns, start))
		printf("  life      from before the capture");
	else
		printf("  life      from %s after the start of the capture",
		       ttmon_fmt_ns(at, sizeof(at), alloc_ns - start));
	printf(", for %s", ttmon_fmt_ns(life, sizeof(life), ttmon_before(end_ns, alloc_ns) ? 0 : end_ns - alloc_ns));
	if (freed)
		printf("; ended by %s\n", ttmon_fmt_text(end, sizeof(end), ttmon_db_str(a, "end", "?")));
	else
		puts("; still there");
	printf("  calls     allocation %s, free %s\n", ttmon_fmt_ns(pin, sizeof(pin), ttmon_db_get(a, "pin_ns", 0)),
	       ttmon_fmt_ns(unpin, sizeof(unpin), ttmon_db_get(a, "unpin_ns", 0)));
}

static void print_identity(const struct ttmon_db *db, const json_t *a)
{
	const json_t *p = json_array_get(ttmon_db_member(db, "processes"), ttmon_db_get(a, "process", UINT64_MAX));
	const char *fn = ttmon_db_str(a, "fn", NULL), *name = ttmon_db_str(a, "name", NULL);
	char text[200], size[TTMON_FMT_LEN], count[TTMON_FMT_LEN];
	uint64_t device;

	printf("allocation %s\n", ttmon_fmt_text(text, sizeof(text), ttmon_db_str(a, "id", "?")));
	printf("  process   %s", ttmon_fmt_text(text, sizeof(text), ttmon_db_str(p, "comm", "?")));
	printf(" (pid %" PRIu64 ")\n", ttmon_db_get(a, "pid", 0));
	printf("  memory    %s (%s bytes) at %s", ttmon_fmt_bytes(size, sizeof(size), ttmon_db_get(a, "size", 0)),
	       ttmon_fmt_count(count, sizeof(count), ttmon_db_get(a, "size", 0)),
	       ttmon_fmt_text(text, sizeof(text), ttmon_db_str(a, "addr", "?")));
	printf(", %s", ttmon_fmt_text(text, sizeof(text), ttmon_db_str(a, "method", "?")));
	if (fn)
		printf(" by %s", ttmon_fmt_text(text, sizeof(text), fn));
	if (ttmon_db_u64(a, "device", &device))
		printf(", device %" PRIu64, device);
	putchar('\n');
	if (name)
		printf("  name      %s\n", ttmon_fmt_text(text, sizeof(text), name));
}

static void print_site(const struct ttmon_db *db, const json_t *a)
{
	const json_t *site = json_array_get(ttmon_db_member(db, "sites"), ttmon_db_get(a, "site", UINT64_MAX));
	const json_t *frames = json_object_get(site, "frames"), *stack = json_object_get(site, "stack");
	const char *by = ttmon_stack_by_help(ttmon_db_str(stack, "by", "")),
		   *end = ttmon_stack_end_help(ttmon_db_str(stack, "end", ""));
	char text[400];

	printf("  site      %s\n", json_array_size(frames)
					   ? ttmon_fmt_text(text, sizeof(text), ttmon_db_str(site, "key", "?"))
					   : "not known");
	for (size_t i = 0; i < json_array_size(frames); i++)
		printf("    #%-3zu    %s\n", i,
		       ttmon_db_tool_frame_long(text, sizeof(text), db, json_array_get(frames, i)));
	if (by && end)
		printf("  stack     %s; %s\n", by, end);
}

static void print_transfers(const json_t *a)
{
	const char *dir;
	json_t *pair;

	json_object_foreach(json_object_get(a, "transfers"), dir, pair)
	{
		char text[16], count[TTMON_FMT_LEN], size[TTMON_FMT_LEN];
		uint64_t copies, bytes;

		ttmon_db_tool_pair(pair, &copies, &bytes);
		printf("  %-9s %s copies, %s\n", ttmon_fmt_text(text, sizeof(text), dir),
		       ttmon_fmt_count(count, sizeof(count), copies), ttmon_fmt_bytes(size, sizeof(size), bytes));
	}
}

/*
 * Prints one character for each bucket: blank for 0, and darker the higher the count, in tenths of the
 * fullest bucket.
 */
static void print_line(const json_t *counts, size_t n)
{
	static const char shades[] = " .:-=+*#%@";
	json_int_t most = 1;

	for (size_t i = 0; i < json_array_size(counts); i++)
		most = MAX(most, json_integer_value(json_array_get(counts, i)));
	fputs("            |", stdout);
	for (size_t i = 0; i < n; i++) {
		json_int_t c = json_integer_value(json_array_get(counts, i));

		putchar(shades[c <= 0 ? 0 : 1 + (int)((double)c / (double)most * 8)]);
	}
	puts("|");
}

static void print_heat(const json_t *a)
{
	const json_t *heat = json_object_get(a, "heat"), *pages = json_object_get(a, "page_heat");
	char width[TTMON_FMT_LEN];

	if (heat) {
		size_t n = MIN(json_array_size(json_object_get(heat, "bytes")), (size_t)TTMON_HEAT_BUCKETS);

		printf("  heat      bytes moved over time, %s a character\n",
		       ttmon_fmt_ns(width, sizeof(width), ttmon_db_get(heat, "width_ns", 0)));
		print_line(json_object_get(heat, "bytes"), n);
	}
	if (pages) {
		uint64_t group = ttmon_db_get(pages, "group_bytes", 1), size = ttmon_db_get(a, "size", 0);
		uint64_t n = group ? size / group + (size % group != 0) : 0;

		printf("  pages     copies that touched each %s\n", ttmon_fmt_bytes(width, sizeof(width), group));
		print_line(json_object_get(pages, "copies"), (size_t)MIN(n, (uint64_t)TTMON_PAGE_GROUPS));
	}
}

static void print_events(const json_t *a)
{
	const json_t *events = json_object_get(a, "events");
	uint64_t dropped = ttmon_db_get(a, "events_dropped", 0);
	char text[TTMON_FMT_LEN];

	printf("  events    %s", ttmon_fmt_count(text, sizeof(text), json_array_size(events)));
	if (dropped)
		printf(" (%s more were not kept)", ttmon_fmt_count(text, sizeof(text), dropped));
	putchar('\n');
	if (json_array_size(events))
		printf("%16s  %-12s %14s %14s  %-9s %s\n", "NS AFTER", "KIND", "BYTES", "OFFSET", "MEMORY", "BITS");
	for (size_t i = 0; i < json_array_size(events); i++) {
		const json_t *e = json_array_get(events, i);
		char kind[16], mem[16];

		printf("%16" JSON_INTEGER_FORMAT "  %-12s %14" JSON_INTEGER_FORMAT " %14" JSON_INTEGER_FORMAT
		       "  %-9s 0x%" PRIx64 "\n",
		       json_integer_value(json_array_get(e, 0)),
		       ttmon_fmt_text(kind, sizeof(kind), json_string_value(json_array_get(e, 1))),
		       json_integer_value(json_array_get(e, 2)), json_integer_value(json_array_get(e, 3)),
		       ttmon_fmt_text(mem, sizeof(mem), json_string_value(json_array_get(e, 4))),
		       (uint64_t)json_integer_value(json_array_get(e, 5)));
	}
}

/* Prints how kernels accessed the memory in place. */
static void print_gpu(const json_t *use)
{
	uint64_t reads = 0, writes = 0, sectors = 0;
	char count[TTMON_FMT_LEN], bytes[TTMON_FMT_LEN];

	if (!json_is_object(use))
		return;
	ttmon_db_value(json_object_get(use, "reads"), &reads);
	ttmon_db_value(json_object_get(use, "writes"), &writes);
	ttmon_db_value(json_object_get(use, "sectors"), &sectors);
	printf("  kernels   %s reads, ", ttmon_fmt_count(count, sizeof(count), reads));
	printf("%s writes in place, ", ttmon_fmt_count(count, sizeof(count), writes));
	printf("%s in sectors\n", ttmon_fmt_bytes(bytes, sizeof(bytes), sectors * 32));
}

static void print_alloc(const struct ttmon_db *db, const json_t *a)
{
	print_identity(db, a);
	print_life(db, a);
	print_list("states", json_object_get(a, "states"));
	print_list("flags", json_object_get(a, "flags"));
	print_transfers(a);
	print_gpu(json_object_get(a, "gpu"));
	print_site(db, a);
	print_heat(a);
	print_events(a);
}

int ttmon_db_tool_show_alloc(const char *path, const char *id)
{
	_cleanup_(ttmon_db_closep) struct ttmon_db *db = NULL;
	char why[600];
	json_t *alloc;
	int r;

	if (ttmon_db_open(path, &db, why, sizeof(why))) {
		fprintf(stderr, "ttmon: %s\n", why);
		return 1;
	}
	while ((r = ttmon_db_next_alloc(db, &alloc)) == 1) {
		bool found = strncmp(ttmon_db_str(alloc, "id", ""), id, strlen(id)) == 0;

		if (found)
			print_alloc(db, alloc);
		json_decref(alloc);
		if (found)
			return 0;
	}
	if (r)
		fprintf(stderr, "ttmon: %s\n", ttmon_db_why(db));
	else
		fprintf(stderr, "ttmon: %s: no allocation has the id %s\n", path, id);
	return 1;
}
