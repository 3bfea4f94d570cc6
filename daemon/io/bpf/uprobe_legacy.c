// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/io/bpf/uprobe_legacy.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

#include "lib/os/log.h"
#include "lib/os/proc.h"
#include "lib/os/tracefs.h"

#define GROUP	     "ttmond"
#define NAME_MAX_LEN 63 /* the kernel's MAX_EVENT_NAME_LEN without the NUL */

struct event {
	uint32_t id; /* the cookie of its link, and part of its name */
	int handle;  /* the fd that the caller has; -1: detached, but not removed yet */
	int link;
	bool created; /* it exists in uprobe_events */
	uint32_t *low;
	size_t nr_low;
};

struct ttmon_uprobe_legacy {
	int cookies_fd;
	int dir_fd;  /* tracefs */
	int list_fd; /* uprobe_events */
	uint64_t page;
	uint64_t start; /* start time of this process */
	struct event *events;
	size_t nr;
};

/*
 * Numbers of events, shared by all instances in this process: two events of the same name would put
 * their probes together, and removing one would remove the other's.
 */
static uint32_t next_id(void)
{
	static uint32_t last;

	return __atomic_fetch_add(&last, 1, __ATOMIC_RELAXED);
}

static void event_name(const struct ttmon_uprobe_legacy *l, uint32_t id, char *name, size_t n)
{
	snprintf(name, n, "t%u_%llu_%u", (uint32_t)getpid(), (unsigned long long)l->start, id);
}

bool ttmon_uprobe_legacy_parse(const char *line, char *name, size_t n, uint32_t *pid, uint64_t *start)
{
	unsigned long long s;
	unsigned int p, id;
	int len = 0;

	if ((line[0] != 'p' && line[0] != 'r') || strncmp(line + 1, ":" GROUP "/", sizeof(GROUP) + 1))
		return false;
	line += sizeof(GROUP) + 2;
	if (sscanf(line, "t%10u_%20llu_%10u%n", &p, &s, &id, &len) != 3 || (size_t)len >= n ||
	    (line[len] != ' ' && line[len] != '\n'))
		return false;
	memcpy(name, line, (size_t)len);
	name[len] = '\0';
	*pid = p;
	*start = s;
	return true;
}

uint32_t ttmon_uprobe_legacy_group(const uint64_t *offsets, size_t n, uint64_t page, uint32_t *group)
{
	uint32_t groups = 0;

	for (size_t i = 0; i < n; i++) {
		group[i] = 0;
		for (size_t j = 0; j < i; j++)
			group[i] += !((offsets[i] ^ offsets[j]) & (page - 1));
		groups = MAX(groups, group[i] + 1);
	}
	return groups;
}

/* One command to the list of events. */
static int command(int list_fd, const char *line)
{
	return write(list_fd, line, strlen(line)) < 0 ? -errno : 0;
}

static int remove_event(int list_fd, const char *name)
{
	char line[NAME_MAX_LEN + sizeof(GROUP) + 8];

	snprintf(line, sizeof(line), "-:" GROUP "/%s\n", name);
	return command(list_fd, line);
}

/*
 * Removes events of daemons that are gone. They probe nothing any more, but keep the file and its file
 * system busy.
 */
static void remove_leftovers(struct ttmon_uprobe_legacy *l)
{
	_cleanup_free_ char *names = NULL;
	_cleanup_fclose_ FILE *f = NULL;
	char line[512], name[NAME_MAX_LEN + 1], last[NAME_MAX_LEN + 1] = "";
	size_t nr = 0;
	uint32_t pid;
	uint64_t start;
	int fd = openat(l->dir_fd, "uprobe_events", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return;
	}
	/*
	 * An event has a line for each of its probes, one after the other. The list is read to its end before
	 * it is changed.
	 */
	while (fgets(line, sizeof(line), f)) {
		char *more;

		if (!ttmon_uprobe_legacy_parse(line, name, sizeof(name), &pid, &start) || !strcmp(name, last) ||
		    ttmon_proc_alive(pid) == start)
			continue;
		more = realloc(names, (nr + 1) * sizeof(name));
		if (!more)
			break;
		names = more;
		memcpy(names + nr++ * sizeof(name), name, sizeof(name));
		memcpy(last, name, sizeof(last));
	}
	for (size_t i = 0; i < nr; i++)
		(void)remove_event(l->list_fd, names + i * sizeof(name));
	if (nr)
		log_debug("removed %zu probe events that a daemon before this one left behind", nr);
}

static int open_tracefs(struct ttmon_uprobe_legacy *l)
{
	int err = ttmon_tracefs_open(&l->dir_fd);

	if (err)
		return err;
	/* Without O_APPEND the open would truncate, which removes the events of all users. */
	l->list_fd = openat(l->dir_fd, "uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);
	if (l->list_fd >= 0)
		return 0;
	err = -errno;
	close(l->dir_fd);
	return err;
}

int ttmon_uprobe_legacy_new(int cookies_fd, struct ttmon_uprobe_legacy **ret)
{
	_cleanup_free_ struct ttmon_uprobe_legacy *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->cookies_fd = cookies_fd;
	l->page = (uint64_t)sysconf(_SC_PAGESIZE);
	l->start = ttmon_proc_start((uint32_t)getpid());
	err = open_tracefs(l);
	if (err)
		return err;
	remove_leftovers(l);
	*ret = TAKE_PTR(l);
	return 0;
}

/*
 * Removes what is left of an event, except the handle, which its owner closes. Returns whether the
 * event is gone.
 */
static bool drop(struct ttmon_uprobe_legacy *l, struct event *e)
{
	char name[NAME_MAX_LEN + 1];

	if (e->link >= 0)
		close(e->link);
	e->link = -1;
	e->handle = -1;
	for (size_t i = 0; i < e->nr_low; i++) {
		struct ttmon_uprobe_legacy_key k = { .event = e->id, .low = e->low[i] };

		bpf_map_delete_elem(l->cookies_fd, &k);
	}
	free(e->low);
	e->low = NULL;
	e->nr_low = 0;
	event_name(l, e->id, name, sizeof(name));
	/* Busy while a child that inherited the link writes a database: tried again later. */
	return !e->created || remove_event(l->list_fd, name) != -EBUSY;
}

/* Removes the events of this handle, and those that could not be removed before. */
static void drop_all(struct ttmon_uprobe_legacy *l, int handle)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->nr; i++) {
		struct event *e = &l->events[i];

		if ((e->handle != handle && e->handle != -1) || !drop(l, e))
			l->events[kept++] = *e;
	}
	l->nr = kept;
}

void ttmon_uprobe_legacy_detach(struct ttmon_uprobe_legacy *l, int fd)
{
	drop_all(l, fd);
}

void ttmon_uprobe_legacy_free(struct ttmon_uprobe_legacy *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->nr; i++)
		drop(l, &l->events[i]);
	close(l->list_fd);
	close(l->dir_fd);
	free(l->events);
	free(l);
}

/* Makes the probes of one group one event. EEXIST: the same place twice is one probe. */
static int create_event(struct ttmon_uprobe_legacy *l, struct event *e, const char *name, bool on_return, int object_fd,
			const struct ttmon_uprobe_set *set, const uint32_t *group, uint32_t which)
{
	char line[160];

	for (size_t i = 0; i < set->n; i++) {
		int err;

		if (group[i] != which)
			continue;
		snprintf(line, sizeof(line), "%c:" GROUP "/%s /proc/self/fd/%d:0x%llx\n", on_return ? 'r' : 'p', name,
			 object_fd, (unsigned long long)set->offsets[i]);
		err = command(l->list_fd, line);
		if (err && err != -EEXIST)
			return err;
		e->created = true;
	}
	return 0;
}

static int tell_cookies(struct ttmon_uprobe_legacy *l, struct event *e, const struct ttmon_uprobe_set *set,
			const uint32_t *group, uint32_t which)
{
	e->low = malloc(set->n * sizeof(*e->low));
	if (!e->low)
		return -ENOMEM;
	for (size_t i = 0; i < set->n; i++) {
		struct ttmon_uprobe_legacy_key k = { .event = e->id,
						     .low = (uint32_t)(set->offsets[i] & (l->page - 1)) };

		if (group[i] != which)
			continue;
		if (bpf_map_update_elem(l->cookies_fd, &k, &set->cookies[i], BPF_NOEXIST))
			return -errno;
		e->low[e->nr_low++] = k.low;
	}
	return 0;
}

/* A perf event on one CPU: a uprobe runs the program on whichever CPU it is hit. */
static int link_event(uint64_t tracepoint, int prog_fd, uint64_t cookie)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_TRACEPOINT,
		.config = tracepoint,
		.sample_period = 1,
		.wakeup_events = 1,
	};
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = cookie);
	_cleanup_close_ int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	int link;

	if (fd < 0)
		return -errno;
	link = bpf_link_create(prog_fd, fd, BPF_PERF_EVENT, &opts);
	return link < 0 ? -errno : link;
}

static int attach_group(struct ttmon_uprobe_legacy *l, struct event *e, int prog_fd, bool on_return, int object_fd,
			const struct ttmon_uprobe_set *set, const uint32_t *group, uint32_t which)
{
	char name[NAME_MAX_LEN + 1], path[sizeof(name) + sizeof(GROUP)];
	uint64_t tracepoint = 0;
	int err = 0;

	if (!on_return)
		err = tell_cookies(l, e, set, group, which);
	event_name(l, e->id, name, sizeof(name));
	if (!err)
		err = create_event(l, e, name, on_return, object_fd, set, group, which);
	snprintf(path, sizeof(path), GROUP "/%s", name);
	if (!err)
		err = ttmon_tracefs_event_id(l->dir_fd, path, &tracepoint);
	if (err)
		return err;
	e->link = link_event(tracepoint, prog_fd, e->id);
	return e->link < 0 ? e->link : 0;
}

int ttmon_uprobe_legacy_attach(struct ttmon_uprobe_legacy *l, int prog_fd, bool on_return, int object_fd,
			       const struct ttmon_uprobe_set *set)
{
	_cleanup_free_ uint32_t *group = calloc(set->n + 1, sizeof(*group));
	uint32_t groups = 1;
	struct event *more;
	size_t first;
	int err = 0;

	if (!set->n)
		return -EINVAL;
	if (!group)
		return -ENOMEM;
	if (!on_return)
		groups = ttmon_uprobe_legacy_group(set->offsets, set->n, l->page, group);
	drop_all(l, -1);
	more = realloc(l->events, (l->nr + groups) * sizeof(*more));
	if (!more)
		return -ENOMEM;
	l->events = more;
	first = l->nr;
	for (uint32_t g = 0; g < groups && !err; g++) {
		struct event *e = &l->events[l->nr++];

		*e = (struct event){ .id = next_id(), .handle = -1, .link = -1 };
		err = attach_group(l, e, prog_fd, on_return, object_fd, set, group, g);
	}
	if (err) {
		drop_all(l, -1);
		return err;
	}
	for (size_t i = first; i < l->nr; i++)
		l->events[i].handle = l->events[first].link;
	return l->events[first].link;
}
