// SPDX-License-Identifier: GPL-2.0-only
/*
 * live.c: the heat map of a running service. The rows are the allocations that moved most (/v1/heat)
 * and all that are pinned now (/v1/allocations); or the pages of one allocation (/v1/allocations/ID).
 * The documents are not of exactly the same moment; an allocation that is in both gets one row.
 */
#include <inttypes.h>

#include "lib/base/names.h"
#include "lib/demangle/site.h"
#include "daemon/core/history/history.h"
#include "lib/read/client.h"
#include "tools/heat/heat.h"
#include "tools/cli/show.h"

#define HOTTEST	   1000 /* rows requested from /v1/heat */
#define PINNED_MAX 5000 /* the most pinned allocations of each method */
#define LATEST_NS  (1ULL << 62)

static unsigned int method_of(const char *name)
{
	for (unsigned int m = 0; m < TTMON_METHOD_MAX; m++)
		if (ttmon_method_name(m) && !strcmp(ttmon_method_name(m), name))
			return m;
	return TTMON_METHOD_NONE;
}

/* Reads a time and limits it, so that adding TTMON_HEATMAP_MAX_NS cannot overflow. */
static uint64_t time_at(const json_t *o, const char *key)
{
	return MIN(ttmon_show_u64(o, key), LATEST_NS);
}

static bool is_shown(const struct ttmon_heat_ask *ask, const json_t *a, unsigned int method)
{
	if (ask->pid && ttmon_show_u64(a, "pid") != ask->pid)
		return false;
	return ask->all || ttmon_method_pinned(method) || method == TTMON_METHOD_MANAGED ||
	       method == TTMON_METHOD_MMAP || method == TTMON_METHOD_CUSTOM;
}

static char *clean_copy(const char *text)
{
	char buf[160];

	return strdup(ttmon_fmt_text(buf, sizeof(buf), text));
}

/* Sets the kind of memory, and whether all of its copies were seen. */
static void take_known(struct ttmon_heatmap_row *r, const json_t *a)
{
	const char *kind = ttmon_show_str(a, "kind");

	r->unseen = !strcmp(kind, "unknown");
	r->pinned = !r->unseen && (ttmon_method_pinned(r->method) || !strcmp(kind, "pinned"));
	r->at_least |= ttmon_show_bool(a, "at_least");
}

/* Begins a row with the members that both documents have of an allocation. */
static struct ttmon_heatmap_row *begin(struct ttmon_heatmap *map, const json_t *a, unsigned int method)
{
	struct ttmon_heatmap_row *r = ttmon_heatmap_begin(map);
	const char *site = ttmon_show_str(a, "call_site"), *name = ttmon_show_str(a, "name");

	char shown[TTMON_SITE_WHOLE];

	if (!r)
		return NULL;
	if (*name && (!*site || method == TTMON_METHOD_MMAP))
		site = name;
	else if (*site)
		r->shown = strdup(ttmon_site_show_text(shown, sizeof(shown), site, 0));
	r->id = clean_copy(ttmon_show_str(a, "id"));
	r->site = clean_copy(*site ? site : "?");
	r->comm = clean_copy(ttmon_show_str(a, "comm"));
	if (!r->id || !r->site || !r->comm)
		return NULL;
	r->seq = ttmon_show_u64(a, "seq");
	r->pid = (uint32_t)ttmon_show_u64(a, "pid");
	r->size = ttmon_show_u64(a, "size");
	r->method = (uint8_t)method;
	take_known(r, a);
	return r;
}

/* Adds copies[] and bytes[], one entry for each width_ns from origin_ns on. */
static int take_buckets(struct ttmon_heatmap *map, struct ttmon_heatmap_row *r, const json_t *heat)
{
	const json_t *copies = json_object_get(heat, "copies"), *bytes = json_object_get(heat, "bytes");
	size_t n = MIN(json_array_size(copies), json_array_size(bytes));

	r->origin_ns = time_at(heat, "origin_ns");
	r->width_ns = MIN(MAX(ttmon_show_u64(heat, "width_ns"), 1), TTMON_HEATMAP_MAX_NS / TTMON_HEAT_BUCKETS);
	if (n > TTMON_HEAT_BUCKETS)
		return -EBADMSG;
	for (size_t i = 0; i < n; i++) {
		json_int_t c = json_integer_value(json_array_get(copies, i));
		json_int_t b = json_integer_value(json_array_get(bytes, i));
		int err = c > 0 || b > 0 ? ttmon_heatmap_put(map, r->origin_ns + i * r->width_ns,
							     (uint32_t)MIN(MAX(c, 0), UINT32_MAX), (uint64_t)MAX(b, 0))
					 : 0;

		if (err)
			return err;
		r->copies += c > 0 ? (uint64_t)c : 0;
		r->bytes += b > 0 ? (uint64_t)b : 0;
	}
	return 0;
}

int ttmon_heat_take_heat(struct ttmon_heatmap *map, const json_t *doc, const struct ttmon_heat_ask *ask)
{
	const json_t *list = json_object_get(doc, "allocations"), *a;
	size_t i;

	if (!json_is_array(list))
		return -EBADMSG;
	map->end_ns = MAX(map->end_ns, time_at(doc, "now_ns"));
	if (json_array_size(list) >= HOTTEST)
		snprintf(map->missing, sizeof(map->missing), "Of those that are not pinned now, the %d hottest.",
			 HOTTEST);
	json_array_foreach(list, i, a)
	{
		unsigned int method = method_of(ttmon_show_str(a, "method"));
		struct ttmon_heatmap_row *r;
		int err;

		if (!is_shown(ask, a, method)) {
			map->hidden++;
			continue;
		}
		r = begin(map, a, method);
		err = r ? take_buckets(map, r, a) : -ENOMEM;
		if (err)
			return err;
		r->alloc_ns = r->origin_ns;
		r->live = ttmon_show_bool(a, "live");
		/* This document does not have the time of the release. It was not before the last transfer. */
		if (!r->live)
			r->free_ns = r->origin_ns + (r->nr_bins ? r->bins[r->nr_bins - 1].at + 1 : 1) * r->width_ns;
		ttmon_heatmap_keep(map);
	}
	return 0;
}

static void take_sums(struct ttmon_heatmap_row *r, const json_t *transfers)
{
	const json_t *pair;
	const char *dir;

	json_object_foreach((json_t *)transfers, dir, pair)
	{
		json_int_t copies = json_integer_value(json_array_get(pair, 0));
		json_int_t bytes = json_integer_value(json_array_get(pair, 1));

		r->copies += copies > 0 ? (uint64_t)copies : 0;
		r->bytes += bytes > 0 ? (uint64_t)bytes : 0;
	}
}

static void take_life(struct ttmon_heatmap_row *r, const json_t *a)
{
	const json_t *flags = json_object_get(a, "flags"), *flag;
	uint64_t api = ttmon_show_u64(a, "api_flags");
	size_t i;

	r->alloc_ns = time_at(a, "alloc_ns");
	r->live = json_is_null(json_object_get(a, "free_ns"));
	r->free_ns = r->live ? UINT64_MAX : time_at(a, "free_ns");
	/* Portable, mapped, write-combined or I/O memory. */
	r->gpu = json_is_object(json_object_get(a, "gpu"));
	r->in_place = r->pinned && (api & 7 || r->gpu);
	json_array_foreach(flags, i, flag)
	{
		const char *name = json_string_value(flag);

		r->in_place |= name && !strcmp(name, "device_ptr");
	}
}

static struct ttmon_heatmap_row *find(const struct ttmon_heatmap *map, size_t nr, uint64_t seq)
{
	for (size_t i = 0; i < nr; i++)
		if (map->rows[i].seq == seq)
			return &map->rows[i];
	return NULL;
}

int ttmon_heat_take_allocs(struct ttmon_heatmap *map, const json_t *doc, const struct ttmon_heat_ask *ask)
{
	const json_t *list = json_object_get(doc, "allocations"), *a;
	size_t i, before = MIN(map->nr, (size_t)HOTTEST);

	if (!json_is_array(list))
		return -EBADMSG;
	map->end_ns = MAX(map->end_ns, time_at(doc, "now_ns"));
	json_array_foreach(list, i, a)
	{
		unsigned int method = method_of(ttmon_show_str(a, "method"));
		struct ttmon_heatmap_row *r = find(map, before, ttmon_show_u64(a, "seq"));

		if (r) {
			take_known(r, a);
			take_life(r, a);
			continue;
		}
		if (!is_shown(ask, a, method)) {
			map->hidden++;
			continue;
		}
		r = begin(map, a, method);
		if (!r)
			return -ENOMEM;
		take_life(r, a);
		take_sums(r, json_object_get(a, "transfers"));
		/* It was copied but is not among the hottest allocations, so the times of its copies are not known. */
		r->more = r->copies != 0;
		ttmon_heatmap_keep(map);
	}
	if (json_is_string(json_object_get(doc, "next")))
		snprintf(map->missing, sizeof(map->missing), "Only %d of each kind of pinned allocation.", PINNED_MAX);
	return 0;
}

/* ---- pages ---- */

static int take_events(struct ttmon_heatmap *map, const json_t *doc, uint64_t group)
{
	const json_t *events = json_object_get(doc, "events"), *e;
	size_t i;

	json_array_foreach(events, i, e)
	{
		json_int_t since = json_integer_value(json_array_get(e, 0));
		json_int_t size = json_integer_value(json_array_get(e, 2)),
			   offset = json_integer_value(json_array_get(e, 3));
		const char *kind = json_string_value(json_array_get(e, 1));
		unsigned int k = 0;
		int err;

		while (kind && k <= TTMON_AEV_UNKNOWN_DST && strcmp(kind, ttmon_aev_name(k)) != 0)
			k++;
		if (!kind || k > TTMON_AEV_UNKNOWN_DST || since < 0 || size <= 0 || offset < 0)
			continue;
		err = ttmon_heatmap_put_pages(map, group, MIN(map->start_ns + (uint64_t)since, map->end_ns - 1),
					      (uint64_t)offset, (uint64_t)size);
		if (err)
			return err;
	}
	return 0;
}

int ttmon_heat_take_pages(struct ttmon_heatmap *map, const json_t *doc)
{
	const json_t *page_heat = json_object_get(doc, "page_heat"), *copies = json_object_get(page_heat, "copies");
	uint64_t size = ttmon_show_u64(doc, "size"), group = 0, wanted = ttmon_show_u64(page_heat, "group_bytes");
	uint64_t kept = ttmon_show_u64(doc, "events_kept"), told = json_array_size(json_object_get(doc, "events"));
	uint64_t gone = ttmon_show_u64(doc, "events_dropped") + (kept > told ? kept - told : 0);
	char title[400], bytes[TTMON_FMT_LEN], id[80], site[300], count[TTMON_FMT_LEN];
	int err;

	if (!*ttmon_show_str(doc, "id") || !size)
		return -EBADMSG;
	map->pages = true;
	map->nr_procs = 1;
	map->start_ns = time_at(doc, "alloc_ns");
	map->end_ns = json_is_null(json_object_get(doc, "free_ns")) ? time_at(doc, "now_ns") : time_at(doc, "free_ns");
	map->end_ns = MAX(MIN(map->end_ns, map->start_ns + TTMON_HEATMAP_MAX_NS), map->start_ns + 1);
	map->width_ns = (map->end_ns - map->start_ns) / TTMON_HEATMAP_BINS + 1;
	snprintf(title, sizeof(title), "%s, %s by %s", ttmon_fmt_text(id, sizeof(id), ttmon_show_str(doc, "id")),
		 ttmon_fmt_bytes(bytes, sizeof(bytes), size),
		 ttmon_site_show_text(site, sizeof(site),
				      *ttmon_show_str(doc, "call_site") ? ttmon_show_str(doc, "call_site") : "?", 0));
	map->title = strdup(title);
	err = map->title ? ttmon_heatmap_make_pages(map, size, wanted, (uint64_t)sysconf(_SC_PAGESIZE), &group)
			 : -ENOMEM;
	if (!err)
		err = take_events(map, doc, group);
	for (size_t i = 0; i < map->nr && !err; i++)
		map->rows[i].at_least = ttmon_show_bool(doc, "at_least");
	if (err || !gone)
		return err;
	snprintf(map->missing, sizeof(map->missing), "The map is of the last %s events of %s.",
		 ttmon_fmt_count(count, sizeof(count), told), ttmon_fmt_count(bytes, sizeof(bytes), told + gone));
	/*
	 * The document counts how often each page was touched in its whole life, but not how many bytes that
	 * moved.
	 */
	for (size_t i = 0; i < map->nr; i++) {
		json_int_t n = json_integer_value(json_array_get(copies, i));

		map->rows[i].bytes = UINT64_MAX;
		map->rows[i].more = group == wanted && n > (json_int_t)map->rows[i].copies;
		if (map->rows[i].more)
			map->rows[i].copies = (uint64_t)n;
	}
	return 0;
}

/* ---- verdicts ---- */

static unsigned int number_of(const char *word, const char *(*name_of)(unsigned int nr))
{
	unsigned int i = 0;

	while (name_of(i) && strcmp(name_of(i), word) != 0)
		i++;
	return i;
}

static void take_said(struct ttmon_heatmap *map, const json_t *line)
{
	const json_t *gain = json_object_get(line, "gain_ns");
	unsigned int method = method_of(ttmon_show_str(line, "method"));
	unsigned int advice = number_of(ttmon_show_str(line, "advice"), ttmon_advice_name);
	unsigned int reason = number_of(ttmon_show_str(line, "reason"), ttmon_reason_text);
	const char *site = ttmon_show_str(line, "call_site"), *name = ttmon_show_str(line, "name");
	char text[160];

	if (*name && (!*site || method == TTMON_METHOD_MMAP))
		site = name;
	ttmon_fmt_text(text, sizeof(text), *site ? site : "?");
	for (size_t i = 0; i < map->nr && advice < TTMON_ADVICE_MAX && reason < TTMON_REASON_MAX; i++) {
		struct ttmon_heatmap_row *r = &map->rows[i];
		bool again = r->judged;

		if (r->pid != ttmon_show_u64(line, "pid") || r->method != method || strcmp(r->site, text) != 0)
			continue;
		r->judged = !again || (r->said.advice == advice && r->said.reason == reason);
		r->said = (struct ttmon_said){ .advice = (uint8_t)advice,
					       .reason = (uint8_t)reason,
					       .known = !again && json_is_integer(gain),
					       .gain_ns = json_integer_value(gain) };
	}
}

void ttmon_heat_take_advice(struct ttmon_heatmap *map, const char *text)
{
	for (const char *end; *text; text = *end ? end + 1 : end) {
		json_t *line;

		end = strchrnul(text, '\n');
		line = json_loadb(text, (size_t)(end - text), 0, NULL);
		if (json_is_object(line))
			take_said(map, line);
		json_decref(line);
	}
}

/* ---- requests ---- */

static int ask_for(const struct ttmon_heat_ask *ask, const char *path, json_t **ret, char *why, size_t n)
{
	_cleanup_(ttmon_client_reply_fini) struct ttmon_client_reply reply = { 0 };
	int err = ttmon_client_get(ask->socket, path, &reply);
	json_t *doc;

	if (err == -ENOENT || err == -ECONNREFUSED)
		snprintf(why, n, "no ttmond on %s", ask->socket);
	else if (err)
		snprintf(why, n, "%s: %s", ask->socket, strerror(-err));
	if (err)
		return err == -ENOENT ? -ECONNREFUSED : err;
	doc = json_loadb(reply.body, reply.len, 0, NULL);
	if (reply.status != 200) {
		char text[200];

		snprintf(why, n, "%s: %s", ask->socket,
			 ttmon_fmt_text(text, sizeof(text), ttmon_show_str(doc, "error")));
		json_decref(doc);
		return reply.status == 404 ? -ENOENT : -EREMOTEIO;
	}
	if (!json_is_object(doc)) {
		json_decref(doc);
		snprintf(why, n, "%s: what answers is not ttmond", ask->socket);
		return -EBADMSG;
	}
	*ret = doc;
	return 0;
}

static void add_reasons(struct ttmon_heatmap *map, const json_t *reasons)
{
	size_t len = strlen(map->missing), i;
	const json_t *reason;
	char text[80];

	len += (size_t)snprintf(map->missing + len, sizeof(map->missing) - len, "%sINCOMPLETE: ", len ? " " : "");
	json_array_foreach(reasons, i, reason)
	{
		const char *word = json_string_value(reason);

		len = MIN(len, sizeof(map->missing) - 1);
		len += (size_t)snprintf(map->missing + len, sizeof(map->missing) - len, "%s%s", i ? ", " : "",
					ttmon_fmt_text(text, sizeof(text), word ? word : "?"));
	}
}

static int take_status(const struct ttmon_heat_ask *ask, struct ttmon_heatmap *map, char *why, size_t n)
{
	json_t *doc = NULL, *value;
	size_t len = strlen(map->missing);
	char count[TTMON_FMT_LEN];
	uint64_t lost = 0;
	const char *key;
	int err = ask_for(ask, "/v1/status", &doc, why, n);

	if (err)
		return err;
	json_object_foreach((json_t *)ttmon_show_at(doc, "events.lost"), key, value) lost +=
		json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
	map->pages_least = ttmon_show_bool(doc, "pinned.at_least");
	map->now_unknown = json_is_null(ttmon_show_at(doc, "pinned.now_pages"));
	map->now_pages = ttmon_show_u64(doc, "pinned.now_pages");
	map->peak_pages = ttmon_show_u64(doc, "pinned.peak_pages");
	map->page_size = (uint64_t)sysconf(_SC_PAGESIZE);
	if (lost)
		snprintf(map->missing + len, sizeof(map->missing) - len, "%s%s events LOST", len ? " " : "",
			 ttmon_fmt_count(count, sizeof(count), lost));
	map->not_said = !json_is_boolean(json_object_get(doc, "complete"));
	map->complete = ttmon_show_bool(doc, "complete") && !map->missing[0];
	if (!map->not_said && !ttmon_show_bool(doc, "complete"))
		add_reasons(map, json_object_get(doc, "reasons"));
	json_decref(doc);
	return 0;
}

static int read_pages(const struct ttmon_heat_ask *ask, struct ttmon_heatmap *map, char *why, size_t n)
{
	char path[400] = "/v1/allocations/";
	size_t len = strlen(path);
	json_t *doc = NULL;
	int err;

	/* Escape all characters but digits, letters and those of ids, as a URL needs it. */
	for (const char *p = ask->id; *p && len + 4 < sizeof(path); p++) {
		if (strchr("0123456789abcdefghijklmnopqrstuvwxyz:@", *p))
			path[len++] = *p;
		else
			len += (size_t)snprintf(path + len, sizeof(path) - len, "%%%02X", (unsigned char)*p);
	}
	path[len] = '\0';
	err = ask_for(ask, path, &doc, why, n);
	if (err)
		return err;
	err = ttmon_heat_take_pages(map, doc);
	if (err)
		snprintf(why, n, "%s: %s", ask->socket, strerror(-err));
	json_decref(doc);
	return err;
}

static void find_bounds(struct ttmon_heatmap *map)
{
	uint64_t first = map->end_ns;

	for (size_t i = 0; i < map->nr; i++)
		first = MIN(first, map->rows[i].alloc_ns);
	map->start_ns = map->end_ns - first > TTMON_HEATMAP_MAX_NS ? map->end_ns - TTMON_HEATMAP_MAX_NS : first;
	map->end_ns = MAX(map->end_ns, map->start_ns + 1);
}

static void count_procs(struct ttmon_heatmap *map)
{
	/*
	 * Allocations come sorted by process, so many of one process follow each other; of the hottest there
	 * are at most a thousand.
	 */
	for (size_t i = 0; i < map->nr; i++) {
		size_t k = 0;

		while (k < i && map->rows[k].pid != map->rows[i].pid)
			k++;
		map->nr_procs += k == i;
	}
}

/* A service with --trace-only does not have this route: then there are no verdicts. */
static void read_advice(const struct ttmon_heat_ask *ask, struct ttmon_heatmap *map)
{
	_cleanup_(ttmon_client_reply_fini) struct ttmon_client_reply reply = { 0 };

	if (!ttmon_client_get(ask->socket, "/v1/advice", &reply) && reply.status == 200)
		ttmon_heat_take_advice(map, reply.body);
}

static int read_allocs(const struct ttmon_heat_ask *ask, struct ttmon_heatmap *map, char *why, size_t n)
{
	static const char *const methods[] = { "host_alloc", "registered", "pool" };
	char path[120], pid[40] = "";
	json_t *doc = NULL;
	int err;

	if (ask->pid)
		snprintf(pid, sizeof(pid), "&pid=%" PRIu64, ask->pid);
	snprintf(path, sizeof(path), "/v1/heat?n=%d%s", HOTTEST, pid);
	err = ask_for(ask, path, &doc, why, n);
	if (err)
		return err;
	err = ttmon_heat_take_heat(map, doc, ask);
	json_decref(doc);
	for (size_t i = 0; i < ARRAY_SIZE(methods) && !err; i++) {
		snprintf(path, sizeof(path), "/v1/allocations?method=%s&live=1&limit=%d%s", methods[i], PINNED_MAX,
			 pid);
		doc = NULL;
		err = ask_for(ask, path, &doc, why, n);
		if (err)
			return err;
		err = ttmon_heat_take_allocs(map, doc, ask);
		json_decref(doc);
	}
	if (err) {
		snprintf(why, n, "%s: %s", ask->socket, strerror(-err));
		return err;
	}
	find_bounds(map);
	count_procs(map);
	read_advice(ask, map);
	return 0;
}

int ttmon_heat_read_live(const struct ttmon_heat_ask *ask, struct ttmon_heatmap *map, char *why, size_t n)
{
	int err;

	map->live = true;
	err = ask->id ? read_pages(ask, map, why, n) : read_allocs(ask, map, why, n);
	if (!err)
		err = take_status(ask, map, why, n);
	if (!err && !map->title) {
		char title[80] = "live";

		if (ask->pid)
			snprintf(title, sizeof(title), "live, process %" PRIu64 "%s%s", ask->pid, map->nr ? " " : "",
				 map->nr && map->rows[0].comm ? map->rows[0].comm : "");
		map->title = strdup(title);
		err = map->title ? 0 : -ENOMEM;
	}
	if (err == -ENOMEM)
		snprintf(why, n, "out of memory");
	return err;
}
