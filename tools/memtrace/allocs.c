// SPDX-License-Identifier: GPL-2.0-only
/*
 * allocs.c: reads the allocations that accesses are joined with, from a database or the running
 * service.
 */
#include <inttypes.h>

#include "lib/base/names.h"
#include "lib/read/client.h"
#include "lib/read/db.h"
#include "lib/read/run.h"
#include "tools/memtrace/tool.h"
#include "tools/cli/show.h"

TTMON_FREEP(map_freep, struct ttmon_mt_map, ttmon_mt_map_free);

static int of_db(const struct ttmon_mt_args *args, struct ttmon_mt_map *map)
{
	_cleanup_(ttmon_run_freep) struct ttmon_run *run = NULL;
	char why[400] = "", clean[400];
	int err = ttmon_run_load(args->db, NULL, &run, why, sizeof(why));

	if (err) {
		fprintf(stderr, "ttmon %s: %s: %s\n", args->name, args->db,
			ttmon_fmt_text(clean, sizeof(clean), *why ? why : strerror(-err)));
		return err;
	}
	err = ttmon_mt_map_run(map, run, args->pid);
	if (err)
		fprintf(stderr, "ttmon %s: %s: %s\n", args->name, args->db, strerror(-err));
	return err;
}

/*
 * Returns the kind of memory of a method of the service; TTMON_MT_MEM_UNKNOWN: memory that a CUDA GPU
 * does not access.
 */
static unsigned int mem_of(const char *method)
{
	static const struct {
		unsigned int method, mem;
	} table[] = {
		{ TTMON_METHOD_DEVICE, TTMON_MT_MEM_DEVICE },	      { TTMON_METHOD_MANAGED, TTMON_MT_MEM_MANAGED },
		{ TTMON_METHOD_HOST_ALLOC, TTMON_MT_MEM_PINNED },     { TTMON_METHOD_POOL, TTMON_MT_MEM_PINNED },
		{ TTMON_METHOD_REGISTERED, TTMON_MT_MEM_REGISTERED }, { TTMON_METHOD_MMAP, TTMON_MT_MEM_MAPPED },
		{ TTMON_METHOD_CUSTOM, TTMON_MT_MEM_MAPPED },	      { TTMON_METHOD_PIECE, TTMON_MT_MEM_PINNED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (!strcmp(method, ttmon_method_name(table[i].method)))
			return table[i].mem;
	return TTMON_MT_MEM_UNKNOWN;
}

static void take_copies(const json_t *a, struct ttmon_mt_alloc *ret)
{
	const json_t *pair;
	const char *dir;

	json_object_foreach((json_t *)json_object_get(a, "transfers"), dir, pair)
	{
		json_int_t copies = json_integer_value(json_array_get(pair, 0)),
			   bytes = json_integer_value(json_array_get(pair, 1));

		ret->copies += copies > 0 ? (uint64_t)copies : 0;
		ret->bytes += bytes > 0 ? (uint64_t)bytes : 0;
		if (!strcmp(dir, "d2h"))
			ret->d2h_bytes += bytes > 0 ? (uint64_t)bytes : 0;
	}
}

/* "launches": [launches before the allocation, launches before the free or null] */
static uint64_t nth(const json_t *a, size_t i)
{
	const json_t *n = json_array_get(json_object_get(a, "launches"), i);

	return json_is_integer(n) && json_integer_value(n) >= 0 ? (uint64_t)json_integer_value(n) : TTMON_MT_NO_NTH;
}

/*
 * Finds the number of launches of each process: the lowest value in the rows of the answer. The rows
 * are written one after the other, so launches after that number may have come during the answer. A
 * process that had the same pid earlier is another process.
 */
static int take_order(struct ttmon_mt_map *map, const json_t *list)
{
	_cleanup_(ttmon_json_decrefp) json_t *least = json_object();
	const char *key;
	json_t *a, *n;
	size_t i;
	int err = least ? 0 : -ENOMEM;

	json_array_foreach((json_t *)list, i, a)
	{
		json_int_t numbered = json_integer_value(json_object_get(a, "launches_numbered"));
		char of[48];

		snprintf(of, sizeof(of), "%" PRIu64 " %" PRIu64, ttmon_show_u64(a, "pid"),
			 ttmon_show_u64(a, "process"));
		n = json_object_get(least, of);
		if ((!n || numbered < json_integer_value(n)) && json_object_set_new(least, of, json_integer(numbered)))
			err = -ENOMEM;
	}
	json_object_foreach(least, key, n)
	{
		json_int_t to = MAX(json_integer_value(n), 0);

		if (!err)
			err = ttmon_mt_map_order(map, (uint32_t)strtoul(key, NULL, 10), (uint64_t)to);
	}
	return err;
}

static int take(struct ttmon_mt_map *map, const json_t *a)
{
	const json_t *flags = json_object_get(a, "flags"), *flag;
	const char *addr = ttmon_show_str(a, "addr");
	struct ttmon_mt_alloc got = {
		.addr = strtoull(addr, NULL, 16),
		.size = ttmon_show_u64(a, "size"),
		.alloc_ns = ttmon_show_u64(a, "alloc_ns"),
		.free_ns = json_is_null(json_object_get(a, "free_ns")) ? UINT64_MAX : ttmon_show_u64(a, "free_ns"),
		.id = ttmon_show_str(a, "id"),
		.name = ttmon_show_str(a, "name"),
		.site = ttmon_show_str(a, "call_site"),
		.pid = (uint32_t)ttmon_show_u64(a, "pid"),
		.mem = (uint8_t)mem_of(ttmon_show_str(a, "method")),
		.made_nth = nth(a, 0),
		.freed_nth = nth(a, 1),
	};
	size_t i;

	if (got.mem == TTMON_MT_MEM_UNKNOWN || !got.addr || !got.size)
		return 0;
	/* Portable, mapped, write-combined or I/O memory. */
	got.in_place = (got.mem == TTMON_MT_MEM_PINNED || got.mem == TTMON_MT_MEM_REGISTERED) &&
		       (ttmon_show_u64(a, "api_flags") & 7);
	json_array_foreach(flags, i, flag)
	{
		const char *name = json_string_value(flag);

		got.in_place |= name && !strcmp(name, "device_ptr");
	}
	take_copies(a, &got);
	return ttmon_mt_map_add(map, &got);
}

static int of_service(const struct ttmon_mt_args *args, struct ttmon_mt_map *map)
{
	_cleanup_(ttmon_client_reply_fini) struct ttmon_client_reply reply = { 0 };
	char path[80] = "/v1/allocations?limit=0";
	json_t *doc = NULL, *list, *a;
	size_t i;
	int err;

	if (args->pid)
		snprintf(path + strlen(path), sizeof(path) - strlen(path), "&pid=%u", args->pid);
	err = ttmon_client_fetch(args->socket, path, &reply);
	if (err)
		return err;
	err = ttmon_client_json(&reply, &doc);
	list = json_object_get(doc, "allocations");
	if (!err && !json_is_array(list))
		err = -EBADMSG;
	json_array_foreach(list, i, a)
	{
		if (!err)
			err = take(map, a);
	}
	if (!err)
		err = take_order(map, list);
	json_decref(doc);
	if (err)
		fprintf(stderr, "ttmon %s: %s: allocations: %s\n", args->name, args->socket, strerror(-err));
	return err;
}

/* Returns the number of allocations in a list of traces; 0: it is not a list. */
static int of_list(const struct ttmon_mt_args *args, struct ttmon_mt_map *map)
{
	char lines[32], kept[32];
	uint64_t left_out = 0;
	int n = ttmon_mt_in_allocs(args->path[0], map, &left_out);

	if (n < 0)
		fprintf(stderr, "ttmon %s: %s: allocations: %s\n", args->name, args->path[0], strerror(-n));
	else if (left_out)
		fprintf(stderr, "ttmon %s: %s: %s lines tell of memory that is left out: %s allocations are kept\n",
			args->name, args->path[0], ttmon_fmt_count(lines, sizeof(lines), left_out),
			ttmon_fmt_count(kept, sizeof(kept), (uint64_t)n));
	return n;
}

const char *ttmon_mt_allocs_from(const struct ttmon_mt_args *args, char *buf, size_t n)
{
	char path[200];

	if (args->live)
		snprintf(buf, n, "the running service");
	else
		snprintf(buf, n, args->db ? "database %s" : "copies in %s",
			 ttmon_fmt_text(path, sizeof(path), args->db ? args->db : args->path[0]));
	return buf;
}

int ttmon_mt_allocs(const struct ttmon_mt_args *args, struct ttmon_mt_map **ret)
{
	_cleanup_(map_freep) struct ttmon_mt_map *map = NULL;
	int err;

	*ret = NULL;
	if (!args->db && !args->live && !strcmp(args->path[0], "-"))
		return 0;
	err = ttmon_mt_map_new(&map);
	if (err) {
		fprintf(stderr, "ttmon %s: %s\n", args->name, strerror(-err));
		return err;
	}
	err = args->db ? of_db(args, map) : args->live ? of_service(args, map) : of_list(args, map);
	if (err <= 0 && !(args->db || args->live))
		return err;
	if (err < 0)
		return err;
	err = ttmon_mt_map_done(map);
	if (err)
		fprintf(stderr, "ttmon %s: allocations: %s\n", args->name, strerror(-err));
	else
		*ret = TAKE_PTR(map);
	return err;
}
