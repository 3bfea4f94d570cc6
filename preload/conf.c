// SPDX-License-Identifier: GPL-2.0-only
/*
 * conf.c: reads the settings from the environment, at the first call that matters rather than when the
 * library is loaded, because every shell and helper that the program starts inherits the environment.
 * An invalid setting does not harm the program: it causes one line on stderr, and nothing is unpinned.
 */
#include <stdarg.h>

#include "lib/read/run.h"
#include "preload/pin.h"

#define MAX_DBS	  64
#define MAX_SITES 65536
#define MAX_NAMES 256

static struct ttmon_pin_conf conf;
static pthread_once_t once = PTHREAD_ONCE_INIT;

void ttmon_pin_say(const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	int n = snprintf(line, sizeof(line), "ttmon-pin: ");

	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	dprintf(STDERR_FILENO, "%s\n", line);
}

/*
 * Returns a copy of a variable that is set and not empty, because the program may change the
 * environment.
 */
static const char *get(const char *name)
{
	const char *text = secure_getenv(name);

	return text && *text ? strdup(text) : NULL;
}

struct list {
	char *text; /* the text, split into items */
	const char **item;
	size_t n;
};

static void list_fini(struct list *l)
{
	free(l->text);
	free(l->item);
}

static int list_split(const char *text, const char *sep, size_t max, struct list *ret)
{
	struct list l = { .text = strdup(text), .item = calloc(max, sizeof(char *)) };
	char *save = NULL;

	for (char *s = l.text && l.item ? strtok_r(l.text, sep, &save) : NULL; s; s = strtok_r(NULL, sep, &save)) {
		if (l.n == max) {
			list_fini(&l);
			return -E2BIG;
		}
		l.item[l.n++] = s;
	}
	if (!l.text || !l.item) {
		list_fini(&l);
		return -ENOMEM;
	}
	*ret = l;
	return 0;
}

static int add_site(uint64_t key)
{
	static size_t cap;

	if (!key)
		return 0;
	if (conf.nr_sites == cap) {
		size_t more = cap ? 2 * cap : 64;
		uint64_t *sites = conf.nr_sites < MAX_SITES ? realloc(conf.sites, more * sizeof(*sites)) : NULL;

		if (!sites)
			return conf.nr_sites < MAX_SITES ? -ENOMEM : -E2BIG;
		conf.sites = sites;
		cap = more;
	}
	conf.sites[conf.nr_sites++] = key;
	return 0;
}

static bool nothing(void *ctx, const struct ttmon_run *run, const struct ttmon_run_alloc *a)
{
	(void)ctx;
	(void)run;
	(void)a;
	return false;
}

static bool is_given(uint64_t key, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (key && conf.sites[i] == key)
			return true;
	return false;
}

/*
 * Collects the sites of a database whose stacks contain one of the functions, or whose key was given:
 * here they are identified by `exact`. found[i] is set if names[i] is in one.
 */
static int sites_of_db(const char *db, const struct list *names, bool *found, char *why, size_t n)
{
	const struct ttmon_run_opts opts = { .want = nothing };
	struct ttmon_run *run = NULL;
	size_t given = conf.nr_sites;
	int err = ttmon_run_load(db, &opts, &run, why, n);

	for (size_t s = 0; !err && s < run->nr_sites; s++) {
		const struct ttmon_run_site *site = &run->sites[s];
		bool hit = is_given(site->key, given);

		for (uint32_t f = 0; f < site->nframes; f++) {
			const char *fn = run->frames[site->frame + f].fn;

			for (size_t i = 0; fn && i < names->n; i++)
				if (!strcmp(fn, names->item[i]))
					hit = found[i] = true;
		}
		if (hit)
			err = add_site(site->key);
		if (hit && !err && site->exact != site->key)
			err = add_site(site->exact);
		if (err)
			snprintf(why, n, "%s: %s", db, strerror(-err));
	}
	ttmon_run_free(run);
	return err;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

bool ttmon_pin_opted_in(const struct ttmon_pin_conf *c, uint64_t site)
{
	if (c->all_sites)
		return true;
	return site && c->nr_sites && bsearch(&site, c->sites, c->nr_sites, sizeof(site), by_value);
}

/*
 * Parses a key as databases and `ttmon db show` print it: sixteen hexadecimal digits, with or without
 * 0x.
 */
static bool parse_key(const char *text, uint64_t *ret)
{
	char *end;

	if (!strncmp(text, "0x", 2))
		text += 2;
	if (strlen(text) != 16 || strspn(text, "0123456789abcdefABCDEF") != 16)
		return false;
	*ret = strtoull(text, &end, 16);
	return true;
}

static int read_sites(const char *text, const struct list *dbs)
{
	_cleanup_(list_fini) struct list items = { 0 };
	bool found[MAX_NAMES] = { false };
	struct list names = { 0 };
	char why[256] = "";
	uint64_t key;
	int err;

	if (!strcmp(text, "all")) {
		conf.all_sites = true;
		return 0;
	}
	err = list_split(text, ",", MAX_NAMES, &items);
	/* An item that is not a key is a name, and stays in the list. */
	for (size_t i = 0; !err && i < items.n; i++) {
		if (parse_key(items.item[i], &key))
			err = add_site(key);
		else
			items.item[names.n++] = items.item[i];
	}
	names.item = items.item;
	if (err) {
		ttmon_pin_say("TTMON_PIN_SITES: %s", strerror(-err));
		return err;
	}
	if (names.n && !dbs->n) {
		ttmon_pin_say(
			"TTMON_PIN_SITES=%s: a function's name needs a database (TTMON_PIN_DB) that has its sites",
			names.item[0]);
		return -EINVAL;
	}
	for (size_t i = 0; i < dbs->n; i++) {
		err = sites_of_db(dbs->item[i], &names, found, why, sizeof(why));
		if (err) {
			ttmon_pin_say("%s", why);
			return err;
		}
	}
	for (size_t i = 0; i < names.n; i++)
		if (!found[i])
			ttmon_pin_say("TTMON_PIN_SITES: no call site of the databases is in a function %s",
				      names.item[i]);
	if (conf.nr_sites)
		qsort(conf.sites, conf.nr_sites, sizeof(*conf.sites), by_value);
	return 0;
}

static int wrong(const char *name, const char *text, const char *wanted)
{
	ttmon_pin_say("%s=%s: wanted %s", name, text, wanted);
	return -EINVAL;
}

static int read_checkpoints(const char *text)
{
	_cleanup_(list_fini) struct list items = { 0 };
	int err = list_split(text, ",", 8, &items);

	for (size_t i = 0; !err && i < items.n; i++) {
		if (!strcmp(items.item[i], "cudaDeviceSynchronize"))
			conf.at_device_sync = true;
		else if (!strcmp(items.item[i], "cudaStreamSynchronize"))
			conf.at_stream_sync = true;
		else
			err = wrong("TTMON_PIN_CHECKPOINT", items.item[i],
				    "cudaDeviceSynchronize, cudaStreamSynchronize");
	}
	return err;
}

static int read_all(void)
{
	_cleanup_(list_fini) struct list dbs = { 0 };
	const char *mode = get("TTMON_PIN"), *db = get("TTMON_PIN_DB"), *live = get("TTMON_PIN_LIVE"),
		   *unknown = get("TTMON_PIN_UNKNOWN"), *at = get("TTMON_PIN_CHECKPOINT");
	struct ttmon_advisor_opts opts = { .size = sizeof(opts) };
	struct ttmon_advisor_stats s;
	char why[256] = "";
	int err = 0;

	conf.sites_text = get("TTMON_PIN_SITES");
	conf.stats = get("TTMON_PIN_STATS");
	conf.base = get("TTMON_PIN_BASE");
	if (mode && strcmp(mode, "all") && strcmp(mode, "none"))
		return wrong("TTMON_PIN", mode, "all or none");
	if (mode && db) {
		ttmon_pin_say("TTMON_PIN and TTMON_PIN_DB are both set: a run is either by default or advised");
		return -EINVAL;
	}
	if (live && strcmp(live, "0") && strcmp(live, "1"))
		return wrong("TTMON_PIN_LIVE", live, "0 or 1");
	if (unknown && strcmp(unknown, "pin") && strcmp(unknown, "no-pin"))
		return wrong("TTMON_PIN_UNKNOWN", unknown, "pin or no-pin");
	if (at)
		err = read_checkpoints(at);
	if (!err && db)
		err = list_split(db, ":", MAX_DBS, &dbs);
	if (!err && conf.sites_text)
		err = read_sites(conf.sites_text, &dbs);
	if (err)
		return err;
	conf.live = live && *live == '1';
	conf.unknown_no_pin = unknown && !strcmp(unknown, "no-pin");
	conf.mode = db				    ? TTMON_PIN_MODE_ADVISED
		    : mode && !strcmp(mode, "none") ? TTMON_PIN_MODE_NONE
						    : TTMON_PIN_MODE_ALL;
	if (!conf.sites_text && (db || conf.live || conf.mode == TTMON_PIN_MODE_NONE))
		ttmon_pin_say("TTMON_PIN_SITES is not set: nothing is unpinned");
	if (!dbs.n && !conf.live && !conf.sites_text)
		return 0;
	opts.sites = conf.all_sites ? NULL : conf.sites;
	opts.nr_sites = conf.nr_sites;
	err = ttmon_advisor_open(dbs.item, dbs.n, &opts, &conf.adv, why, sizeof(why));
	if (err) {
		ttmon_pin_say("%s", *why ? why : strerror(-err));
		return err;
	}
	ttmon_advisor_get_stats(conf.adv, &s);
	conf.known_pages = ttmon_pin_pages_of(s.peak_pin_bytes);
	conf.limit_pages = ttmon_pool_pages(conf.known_pages);
	if (conf.live) {
		/* If no daemon is running yet, the subscription waits for one. */
		conf.traced = ttmon_trace_self(NULL);
		err = ttmon_advisor_subscribe(conf.adv);
		if (err)
			ttmon_pin_say("live advice: %s", strerror(-err));
	}
	return err;
}

static void read_once(void)
{
	if (!read_all())
		return;
	/* Use what was read until the error. */
	conf.mode = TTMON_PIN_MODE_ALL;
	conf.live = conf.all_sites = conf.at_device_sync = conf.at_stream_sync = false;
	conf.nr_sites = 0;
	ttmon_pin_say("everything is pinned as the program asks");
}

const struct ttmon_pin_conf *ttmon_pin_conf(void)
{
	pthread_once(&once, read_once);
	return &conf;
}
