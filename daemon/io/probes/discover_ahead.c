// SPDX-License-Identifier: GPL-2.0-only
/*
 * discover_ahead.c: libraries that are probed before any process maps them (ttmon_discover_ahead()). A
 * library that a service meets for the first time when a program maps it misses the first 10 to 20 ms
 * of that program and more where the host is busy; one that lies under the usual paths, of this host
 * or of a container that runs, misses nothing. Runs in the cold thread; helpers look and read
 * (jobs_ahead.c).
 *
 * A mount namespace that some user made by themselves (its processes are in another user namespace) is
 * left alone.
 */
#include <ctype.h>
#include <dirent.h>
#include <sys/stat.h>

#include "daemon/io/probes/discover_int.h"
#include "lib/os/log.h"

#define MAX_AHEAD 64 /* libraries, in total, that no process has mapped yet */
#define MAX_ROOTS 64 /* mount namespaces beside ours */

struct look {
	struct ttmon_discover *d;
	char root[64];
	uint64_t who;
};

static void on_probed(void *ctx, struct object *o)
{
	struct ttmon_discover *d = ctx;

	d->nr_ahead_out--;
	if (!o || !o->probed || o->mapped_ns || o->ahead)
		return;
	o->ahead = true;
	d->nr_ahead++;
	log_debug("%s: probed before a program has it mapped", o->path);
}

static void on_found(void *ctx, struct ttmon_helper_reply *reply)
{
	_cleanup_free_ struct look *l = ctx;
	const char *end = reply->buf + reply->n;
	struct ttmon_discover *d = l->d;

	for (const char *p = reply->buf; !reply->err && p < end; p += strlen(p) + 1) {
		struct ttmon_file_stat st;
		struct ttmon_object_ask ask = {
			.who = l->who, .where = 1ULL << 61, .fd = -1, .root = l->root, .done = on_probed, .ctx = d
		};

		if ((size_t)(end - p) < sizeof(st) + 2 || end[-1])
			break;
		memcpy(&st, p, sizeof(st));
		p += sizeof(st);
		ask.path = p;
		if (ttmon_object_known(d, &st) || d->nr_ahead + d->nr_ahead_out >= MAX_AHEAD)
			continue;
		d->nr_ahead_out += !ttmon_object_read(d, &ask);
	}
}

static void look_in(struct ttmon_discover *d, const char *root, uint64_t who)
{
	struct look *l = calloc(1, sizeof(*l));
	struct ttmon_helper_call call = {
		.fn = TTMON_JOB_AHEAD,
		.who = who,
		.where = 1ULL << 61,
		.in = root,
		.n = strlen(root) + 1,
		.fd = -1,
		.done = on_found,
		.ctx = l,
	};

	if (!l)
		return;
	l->d = d;
	l->who = who;
	snprintf(l->root, sizeof(l->root), "%s", root);
	if (ttmon_helpers_call(d->helpers, &call))
		free(l);
}

static bool is_ours(const char *pid, const char *ns, ino_t *ret)
{
	char path[64];
	struct stat st, own;

	snprintf(path, sizeof(path), "/proc/%.20s/ns/%s", pid, ns);
	if (stat(path, &st))
		return true;
	*ret = st.st_ino;
	snprintf(path, sizeof(path), "/proc/self/ns/%s", ns);
	return !stat(path, &own) && own.st_ino == st.st_ino;
}

/* Containers: one process of each mount namespace leads to its files. */
static void look_in_containers(struct ttmon_discover *d)
{
	ino_t seen[MAX_ROOTS], mnt, user;
	DIR *dir = opendir("/proc");
	size_t n = 0, i;
	struct dirent *e;
	char root[64];

	while (dir && n < MAX_ROOTS && (e = readdir(dir))) {
		if (!isdigit((unsigned char)e->d_name[0]) || is_ours(e->d_name, "mnt", &mnt) ||
		    !is_ours(e->d_name, "user", &user))
			continue;
		for (i = 0; i < n && seen[i] != mnt;)
			i++;
		if (i < n)
			continue;
		seen[n++] = mnt;
		snprintf(root, sizeof(root), "/proc/%.20s/root", e->d_name);
		look_in(d, root, ttmon_discover_who(d, (uint32_t)strtoul(e->d_name, NULL, 10)));
	}
	if (dir)
		closedir(dir);
}

void ttmon_discover_ahead(struct ttmon_discover *d)
{
	if (!d->cfg.look_ahead || !d->cfg.all)
		return;
	look_in(d, "/", 0);
	look_in_containers(d);
}
