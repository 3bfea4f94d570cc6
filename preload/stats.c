// SPDX-License-Identifier: GPL-2.0-only
/*
 * stats.c: the report at exit: JSON to a file, or text on stderr, with the figures of an earlier run
 * beside it. It is only printed if some call was intercepted, because programs without CUDA inherit
 * the environment too. CUDA is not called any more at this time.
 */
#include <fcntl.h>
#include <jansson.h>

#include "preload/pin.h"

#define S	ttmon_pin
#define VERSION 1

static const char *const why_name[] = {
#define X(id, name) name,
	TTMON_PIN_WHY_TABLE(X)
#undef X
};
static const char *const verdict_name[] = { "unknown", "pin", "no_pin" };
static const char *const match_name[] = { "none", "order", "names", "site", "exact" };
_Static_assert(ARRAY_SIZE(match_name) == TTMON_MATCH_MAX, "a name for each level");

static json_t *number(uint64_t n)
{
	return json_integer((json_int_t)MIN(n, (uint64_t)INT64_MAX));
}

static void put(json_t *o, const char *name, uint64_t n)
{
	json_object_set_new(o, name, number(n));
}

/* {"pin":[allocations,bytes]} */
static json_t *pairs(const char *const *names, const uint64_t *n, const uint64_t *bytes, size_t count)
{
	json_t *o = json_object(), *pair;

	for (size_t i = 0; i < count; i++) {
		pair = json_array();
		json_array_append_new(pair, number(n[i]));
		json_array_append_new(pair, number(bytes[i]));
		json_object_set_new(o, names[i], pair);
	}
	return o;
}

static const char *mode_text(const struct ttmon_pin_conf *conf)
{
	return conf->mode == TTMON_PIN_MODE_ADVISED ? "advised" : conf->mode == TTMON_PIN_MODE_NONE ? "none" : "all";
}

static json_t *report(const struct ttmon_pin_conf *conf)
{
	const struct ttmon_pin_counts *c = &S.count;
	json_t *o = json_object(), *sub;

	put(o, "ttmon_pin", VERSION);
	put(o, "pid", (uint64_t)getpid());
	json_object_set_new(o, "mode", json_string(mode_text(conf)));
	json_object_set_new(o, "live", json_boolean(conf->live));
	json_object_set_new(o, "sites", json_string(conf->sites_text ? conf->sites_text : "none"));
	put(o, "pinned_pages_peak", S.pages.peak);
	put(o, "pinned_pages_total", S.pages.total);
	put(o, "pinned_pages_now", S.pages.now);
	put(o, "pins", S.pages.pins);
	put(o, "pins_uncounted", S.pages.uncounted);
	put(o, "allocations", c->allocs);
	put(o, "requested_bytes", c->requested);
	put(o, "failed_allocations", c->failed_allocs);
	json_object_set_new(o, "done", pairs(why_name, c->why, c->why_bytes, ARRAY_SIZE(why_name)));
	json_object_set_new(o, "verdict", pairs(verdict_name, c->verdict, c->verdict_bytes, ARRAY_SIZE(verdict_name)));
	sub = json_object();
	for (size_t i = 0; i < ARRAY_SIZE(match_name); i++)
		put(sub, match_name[i], c->match[i]);
	json_object_set_new(o, "match", sub);
	sub = json_object();
	put(sub, "known_pages", conf->known_pages);
	put(sub, "pieces", c->pieces);
	put(sub, "busy", c->busy);
	put(sub, "pinned", c->regions);
	put(sub, "given_back", c->regions_back);
	json_object_set_new(o, "regions", sub);
	sub = json_object();
	put(sub, "limit_pages", conf->limit_pages);
	put(sub, "hits", S.pool.hits);
	put(sub, "busy", S.pool.busy);
	put(sub, "evicted", S.pool.evicted);
	put(sub, "emptied_for_memory", S.retried);
	json_object_set_new(sub, "off", json_boolean(S.no_reuse));
	json_object_set_new(o, "cache", sub);
	sub = json_object();
	put(sub, "checkpoints", c->checkpoints);
	put(sub, "advice", c->advice);
	put(sub, "pinned", c->moved_in);
	put(sub, "released", c->moved_out);
	put(sub, "failed", c->move_failed);
	put(sub, "wrong", c->wrong);
	json_object_set_new(o, "moves", sub);
	put(o, "waits", S.waits);
	put(o, "leaked_bytes", S.leaked);
	return o;
}

/* Returns a figure of a report by its path of at most two names. */
static uint64_t figure(const json_t *o, const char *a, const char *b, size_t index)
{
	const json_t *v = json_object_get(o, a);

	if (b)
		v = json_object_get(v, b);
	if (json_is_array(v))
		v = json_array_get(v, index);
	return json_is_integer(v) && json_integer_value(v) > 0 ? (uint64_t)json_integer_value(v) : 0;
}

struct row {
	const char *text, *a, *b;
	size_t index;
};
static const struct row rows[] = {
	{ "pinned pages, peak", "pinned_pages_peak", NULL, 0 },
	{ "pinned pages, total", "pinned_pages_total", NULL, 0 },
	{ "pins", "pins", NULL, 0 },
	{ "pins not counted", "pins_uncounted", NULL, 0 },
	{ "allocations", "allocations", NULL, 0 },
	{ "  that failed", "failed_allocations", NULL, 0 },
	{ "bytes requested", "requested_bytes", NULL, 0 },
	{ "advice pin", "verdict", "pin", 0 },
	{ "advice no-pin", "verdict", "no_pin", 0 },
	{ "advice unknown", "verdict", "unknown", 0 },
	{ "found: exact", "match", "exact", 0 },
	{ "found: site", "match", "site", 0 },
	{ "found: names", "match", "names", 0 },
	{ "found: order", "match", "order", 0 },
	{ "found: not", "match", "none", 0 },
	{ "pinned as advised", "done", "pinned", 0 },
	{ "pageable", "done", "pageable", 0 },
	{ "  bytes", "done", "pageable", 1 },
	{ "left pinned: default", "done", "default", 0 },
	{ "  not opted in", "done", "not_opted_in", 0 },
	{ "  by their flags", "done", "flags", 0 },
	{ "  read in place before", "done", "in_place", 0 },
	{ "  device pointer asked", "done", "device_pointer", 0 },
	{ "  no pageable memory", "done", "no_memory", 0 },
	{ "pageable, nothing fits", "done", "no_fit", 0 },
	{ "pieces of regions", "regions", "pieces", 0 },
	{ "  still being copied", "regions", "busy", 0 },
	{ "  regions pinned", "regions", "pinned", 0 },
	{ "  regions given back", "regions", "given_back", 0 },
	{ "reused pinned blocks", "cache", "hits", 0 },
	{ "  still being copied", "cache", "busy", 0 },
	{ "  given back", "cache", "evicted", 0 },
	{ "  for lack of memory", "cache", "emptied_for_memory", 0 },
	{ "checkpoints", "moves", "checkpoints", 0 },
	{ "  lines of live advice", "moves", "advice", 0 },
	{ "  pinned in place", "moves", "pinned", 0 },
	{ "  released", "moves", "released", 0 },
	{ "  could not be moved", "moves", "failed", 0 },
	{ "wrongly pageable", "moves", "wrong", 0 },
	{ "waits for copies", "waits", NULL, 0 },
	{ "bytes leaked", "leaked_bytes", NULL, 0 },
};

static void print(const json_t *now, const json_t *base, const struct ttmon_pin_conf *conf)
{
	const json_t *mode = json_object_get(base, "mode");
	bool both = base;

	dprintf(STDERR_FILENO, "ttmon-pin: process %d, %s%s; may be unpinned: %.200s%s\n", getpid(), mode_text(conf),
		conf->live ? " and live advice" : "",
		conf->sites_text ? conf->sites_text : "nothing (TTMON_PIN_SITES is not set)",
		S.no_reuse ? "; nothing was reused: it copies by batches or graphs" : "");
	if (conf->live && conf->traced)
		dprintf(STDERR_FILENO, "ttmon-pin: live advice: at the start the daemon was not there: %s\n",
			strerror(-conf->traced));
	if (both)
		dprintf(STDERR_FILENO, "ttmon-pin: %-24s %14s %14s %8s\n", "", "before", "now", "ratio");
	if (both && json_is_string(mode))
		dprintf(STDERR_FILENO, "ttmon-pin: %-24s %14.14s %14s\n", "mode", json_string_value(mode),
			mode_text(conf));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct row *r = &rows[i];
		uint64_t n = figure(now, r->a, r->b, r->index), was = figure(base, r->a, r->b, r->index);

		/* The first two lines are always printed; the others only if they are not 0. */
		if (!n && !was && i > 1)
			continue;
		if (!conf->adv && !both && (!strcmp(r->a, "verdict") || !strcmp(r->a, "match")))
			continue;
		if (!both)
			dprintf(STDERR_FILENO, "ttmon-pin: %-24s %14llu\n", r->text, (unsigned long long)n);
		else if (i < 2 && n)
			dprintf(STDERR_FILENO, "ttmon-pin: %-24s %14llu %14llu %7.2fx\n", r->text,
				(unsigned long long)was, (unsigned long long)n, (double)was / (double)n);
		else
			dprintf(STDERR_FILENO, "ttmon-pin: %-24s %14llu %14llu\n", r->text, (unsigned long long)was,
				(unsigned long long)n);
	}
}

/* %p in the name stands for the process id, %% for a percent sign. */
static bool file_name(const char *pattern, char *buf, size_t n)
{
	size_t at = 0;

	for (const char *s = pattern; *s && at < n; s++) {
		if (*s == '%' && s[1] == 'p')
			at += (size_t)snprintf(buf + at, n - at, "%d", getpid());
		else
			buf[at++] = *s;
		s += *s == '%' && (s[1] == 'p' || s[1] == '%');
	}
	if (at >= n)
		return false;
	buf[at] = 0;
	return true;
}

static void write_file(const json_t *now, const char *pattern)
{
	char path[4096];
	_cleanup_close_ int fd = -1;

	if (file_name(pattern, path, sizeof(path)))
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	else
		errno = ENAMETOOLONG;
	if (fd < 0 || json_dumpfd(now, fd, JSON_INDENT(1)) || write(fd, "\n", 1) != 1)
		ttmon_pin_say("TTMON_PIN_STATS=%.200s: %s", pattern, strerror(errno));
}

static json_t *read_base(const char *path)
{
	json_error_t why;
	json_t *base = json_load_file(path, 0, &why);

	if (base && figure(base, "ttmon_pin", NULL, 0) == VERSION)
		return base;
	ttmon_pin_say("TTMON_PIN_BASE=%.200s: %s", path,
		      base ? "not the figures of an earlier run (TTMON_PIN_STATS)" : why.text);
	json_decref(base);
	return NULL;
}

static __attribute__((destructor)) void at_exit(void)
{
	const struct ttmon_pin_conf *conf;
	json_t *now, *base = NULL;

	pthread_mutex_lock(&S.lock);
	if (!S.child && (S.count.allocs || S.count.failed_allocs)) {
		conf = ttmon_pin_conf();
		now = report(conf);
		if (conf->base)
			base = read_base(conf->base);
		if (conf->stats && strcmp(conf->stats, "-"))
			write_file(now, conf->stats);
		if (base || (conf->stats && !strcmp(conf->stats, "-")))
			print(now, base, conf);
		json_decref(base);
		json_decref(now);
	}
	pthread_mutex_unlock(&S.lock);
}
