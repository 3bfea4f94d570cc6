// SPDX-License-Identifier: GPL-2.0-only
/*
 * resctrl_tasks.c: tasks of groups. Cold thread.
 *
 * A task can only be put into a monitoring group of the control group that it is in (EINVAL
 * elsewhere), so a group is made beneath that one: what the task may use of the cache does not change,
 * and the sums of the control group include ours.
 *
 * Tasks move one by one: each thread is moved, and threads that it creates afterwards start in the
 * group. A thread created while its creator is moved may keep the old group: hence further passes
 * until one finds no new thread, and rescans later.
 *
 * The groups of a task are in /proc/TID/cpu_resctrl_groups (CONFIG_PROC_CPU_RESCTRL, which x86 always
 * has):
 *
 *	res:/		the default control group, or its name; empty: resctrl is not mounted
 *	mon:		the monitoring group, empty: none
 *
 * Without that file the task lists of all groups are read. They are as old as the pass, which is
 * enough to leave the groups of others alone.
 */
#include "daemon/io/rdt/resctrl_int.h"
#include "lib/base/search.h"
#include "lib/base/grow.h"

#include <dirent.h>
#include <fcntl.h>

#define MAX_THREADS 65536      /* of a process */
#define MAX_LIST    (4U << 20) /* bytes of a group's task list */
#define MAX_PLACES  4096
#define MAX_PASSES  10

struct census_task {
	uint32_t tid, place;
};

/* Tasks that are in another group than the default control group. Filled when it is needed. */
struct census {
	bool filled;
	struct census_task *tasks;
	size_t nr_tasks, tasks_cap;
	struct resctrl_place *places; /* monitoring groups after their control groups */
	size_t nr_places, places_cap;
};

static void census_fini(struct census *c)
{
	free(c->tasks);
	free(c->places);
}

static int cmp_tid(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* The monitoring group, which was added later, sorts first. */
static int cmp_task(const void *a, const void *b)
{
	const struct census_task *x = a, *y = b;

	return x->tid != y->tid ? cmp_tid(&x->tid, &y->tid) : cmp_tid(&y->place, &x->place);
}

static void census_add_list(struct census *c, const char *s, uint32_t place)
{
	while (*s) {
		char *end;
		unsigned long tid = strtoul(s, &end, 10);

		if (end == s)
			return;
		if (tid && tid <= INT32_MAX && !TTMON_GROW(c->tasks, c->tasks_cap, c->nr_tasks + 1, 64))
			c->tasks[c->nr_tasks++] = (struct census_task){ (uint32_t)tid, place };
		s = end + (*end == '\n');
	}
}

/* The task list of the group in this folder. */
static void census_add(struct census *c, int root, const char *folder, const char *ctrl, const char *mon)
{
	char path[RESCTRL_PATH + NAME_MAX + 8];
	_cleanup_free_ char *text = NULL;
	_cleanup_close_ int fd = -1;
	size_t n = 0;
	ssize_t got;

	if (c->nr_places == MAX_PLACES || !!TTMON_GROW(c->places, c->places_cap, c->nr_places + 1, 64))
		return;
	snprintf(path, sizeof(path), "%s/tasks", folder);
	fd = ttmon_resctrl_open(root, path, O_RDONLY);
	text = fd < 0 ? NULL : malloc(MAX_LIST + 1);
	if (!text)
		return;
	while (n < MAX_LIST && (got = read(fd, text + n, MAX_LIST - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	snprintf(c->places[c->nr_places].ctrl, NAME_MAX + 1, "%s", ctrl);
	snprintf(c->places[c->nr_places].mon, NAME_MAX + 1, "%s", mon);
	census_add_list(c, text, (uint32_t)c->nr_places++);
}

static void census_ctrl(const struct ttmon_resctrl *r, int root, const char *ctrl, void *ctx)
{
	char path[RESCTRL_PATH], folder[RESCTRL_PATH + NAME_MAX], **names = NULL;
	size_t n;

	(void)r;
	if (*ctrl)
		census_add(ctx, root, ctrl, ctrl, "");
	snprintf(path, sizeof(path), "%s%smon_groups", ctrl, *ctrl ? "/" : "");
	n = ttmon_resctrl_folders(root, path, &names);
	for (size_t i = 0; i < n; i++) {
		snprintf(folder, sizeof(folder), "%s/%s", path, names[i]);
		census_add(ctx, root, folder, ctrl, names[i]);
	}
	ttmon_resctrl_free_names(names, n);
}

static void census_find(const struct ttmon_resctrl *r, int root, struct census *c, uint32_t tid,
			struct resctrl_place *ret)
{
	size_t lo = 0;

	if (!c->filled) {
		ttmon_resctrl_each_ctrl(r, root, census_ctrl, c);
		if (c->nr_tasks)
			qsort(c->tasks, c->nr_tasks, sizeof(*c->tasks), cmp_task);
		c->filled = true;
	}
	lo = TTMON_SEARCH((size_t)0, c->nr_tasks, i, c->tasks[i].tid < tid);
	*ret = (struct resctrl_place){ 0 };
	if (lo < c->nr_tasks && c->tasks[lo].tid == tid)
		*ret = c->places[c->tasks[lo].place];
}

/*
 * The rest of the line that begins with word; false: there is none, or it is not a name of a folder.
 */
static bool take_line(const char *text, const char *word, char ret[static NAME_MAX + 1])
{
	const char *s = strstr(text, word);
	size_t n;

	if (!s || (s != text && s[-1] != '\n'))
		return false;
	s += strlen(word);
	n = strcspn(s, "\n");
	if (n > NAME_MAX)
		return false;
	memcpy(ret, s, n);
	ret[n] = '\0';
	return true;
}

static bool is_name(const char *s)
{
	return !strchr(s, '/') && strcmp(s, ".") != 0 && strcmp(s, "..") != 0;
}

/* Parses what the kernel reports for a task: 0, -ENODATA: nothing. */
static int parse_place(const char *text, struct resctrl_place *ret)
{
	struct resctrl_place p;

	if (!take_line(text, "res:", p.ctrl) || !take_line(text, "mon:", p.mon) || !*p.ctrl)
		return -ENODATA;
	if (!strcmp(p.ctrl, "/"))
		p.ctrl[0] = '\0';
	if (!is_name(p.ctrl) || !is_name(p.mon))
		return -ENODATA;
	*ret = p;
	return 0;
}

/* -ESRCH: no such task. */
static int place_of(const struct ttmon_resctrl *r, int root, struct census *c, uint32_t tgid, uint32_t tid,
		    struct resctrl_place *ret)
{
	char path[PATH_MAX], text[2 * NAME_MAX + 32];
	_cleanup_close_ int fd = -1;
	ssize_t n = -1;

	snprintf(path, sizeof(path), "%s/%u/task/%u/cpu_resctrl_groups", r->proc_root, tgid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		*strrchr(path, '/') = '\0';
		if (access(path, F_OK))
			return -ESRCH;
	} else {
		n = read(fd, text, sizeof(text) - 1);
		if (n < 0 && errno == ESRCH)
			return -ESRCH;
	}
	if (n > 0) {
		text[n] = '\0';
		if (!parse_place(text, ret))
			return 0;
	}
	census_find(r, root, c, tid, ret);
	return 0;
}

int ttmon_resctrl_place(const struct ttmon_resctrl *r, int root, uint32_t tgid, struct resctrl_place *ret)
{
	_cleanup_(census_fini) struct census c = { 0 };

	return place_of(r, root, &c, tgid, tgid, ret);
}

bool ttmon_resctrl_is_foreign(const struct ttmon_resctrl *r, const struct resctrl_place *p)
{
	return *p->mon && strncmp(p->mon, r->prefix, strlen(r->prefix)) != 0;
}

/* Threads of a process, ascending: -ESRCH if it is gone. */
static int list_threads(const struct ttmon_resctrl *r, uint32_t tgid, uint32_t **ret, size_t *nr)
{
	_cleanup_free_ uint32_t *tids = NULL;
	char path[PATH_MAX];
	size_t n = 0, cap = 0;
	struct dirent *e;
	bool ok = true;
	DIR *d;

	snprintf(path, sizeof(path), "%s/%u/task", r->proc_root, tgid);
	d = opendir(path);
	if (!d)
		return errno == ENOENT ? -ESRCH : -errno;
	while (ok && n < MAX_THREADS && (e = readdir(d))) {
		char *end;
		unsigned long tid = strtoul(e->d_name, &end, 10);

		if (*end || !tid || tid > INT32_MAX)
			continue;
		ok = !TTMON_GROW(tids, cap, n + 1, 64);
		if (ok)
			tids[n++] = (uint32_t)tid;
	}
	closedir(d);
	if (!ok)
		return -ENOMEM;
	if (!n)
		return -ESRCH;
	qsort(tids, n, sizeof(*tids), cmp_tid);
	*ret = TAKE_PTR(tids);
	*nr = n;
	return 0;
}

size_t ttmon_resctrl_threads(const struct ttmon_resctrl *r, uint32_t tgid)
{
	_cleanup_free_ uint32_t *tids = NULL;
	size_t n = 0;

	return list_threads(r, tgid, &tids, &n) ? 0 : n;
}

/*
 * Moves one thread into the group: 0 (also if it has gone, or stays where it is), -ENODEV: there is no
 * group.
 */
static int move_one(struct ttmon_resctrl *r, int root, struct census *c, int tasks, const struct resctrl_proc *p,
		    uint32_t tid)
{
	struct resctrl_place place;
	char text[16];
	int len;

	if (place_of(r, root, c, p->tgid, tid, &place))
		return 0;
	if (ttmon_resctrl_is_foreign(r, &place)) {
		r->foreign++;
		return 0;
	}
	len = snprintf(text, sizeof(text), "%u\n", tid);
	if (write(tasks, text, (size_t)len) == len || errno == ESRCH)
		return 0;
	if (errno == ENODEV || errno == ENOENT)
		return -ENODEV;
	/* EINVAL: it is in another control group than its process's main thread. */
	r->foreign++;
	return 0;
}

int ttmon_resctrl_move(struct ttmon_resctrl *r, int root, struct resctrl_proc *p)
{
	char path[RESCTRL_PATH];
	_cleanup_close_ int tasks = -1;

	ttmon_resctrl_path(p->group, "tasks", path, sizeof(path));
	tasks = ttmon_resctrl_open(root, path, O_WRONLY | O_APPEND);
	if (tasks < 0)
		return tasks == -ENOENT ? -ENODEV : tasks;
	for (unsigned int pass = 0; pass < MAX_PASSES; pass++) {
		_cleanup_(census_fini) struct census c = { 0 };
		_cleanup_free_ uint32_t *tids = NULL;
		size_t n = 0, fresh = 0;
		int err = list_threads(r, p->tgid, &tids, &n);

		for (size_t i = 0; !err && i < n; i++) {
			if (p->nr_tids && bsearch(&tids[i], p->tids, p->nr_tids, sizeof(*tids), cmp_tid))
				continue;
			fresh++;
			err = move_one(r, root, &c, tasks, p, tids[i]);
		}
		if (err)
			return err;
		free(p->tids);
		p->tids = TAKE_PTR(tids);
		p->nr_tids = n;
		if (!fresh)
			return 0;
	}
	return 0;
}
