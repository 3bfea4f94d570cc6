// SPDX-License-Identifier: GPL-2.0-only
/*
 * ident_proc.c: what /proc/PID says about a process and chips: TT_VISIBLE_DEVICES of its environment,
 * device nodes it has open, files of statistics it has mapped. Cold thread.
 *
 * All of it is chosen by the process. The environment is the one that it was started with (what it set
 * later does not show); 2 MiB of it are read, and a value past that or longer than TTIDENT_VISIBLE is
 * as good as unreadable. Nodes and files are known by their names; none is opened.
 */
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>

#include "daemon/io/objects/objects.h"
#include "daemon/io/tt/ident_int.h"
#include "lib/os/clock.h"
#include "lib/os/proc.h"

#define ENV_MAX (2u << 20)
#define FDS_MAX 65536

static int open_proc(uint32_t tgid, const char *name, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/%s", tgid, name);
	return open(path, O_RDONLY | O_CLOEXEC | flags);
}

/* Looks for NAME=value among strings that end in NULs and come in pieces. */
struct env_scan {
	size_t pos;   /* characters of the current string so far */
	bool matches; /* they are those of the name */
	bool found, too_long;
	char *value;
};

static void env_feed(struct env_scan *s, const char *buf, size_t n)
{
	static const char name[] = "TT_VISIBLE_DEVICES=";

	for (size_t i = 0; i < n && !s->found; i++, s->pos++) {
		size_t at = s->pos - (sizeof(name) - 1);

		if (s->pos < sizeof(name) - 1) {
			s->matches = (!s->pos || s->matches) && buf[i] == name[s->pos];
		} else if (s->matches) {
			if (at == TTIDENT_VISIBLE - 1 && buf[i])
				s->too_long = true;
			if (!s->too_long)
				s->value[at] = buf[i];
			/* getenv() takes the first. */
			s->found = !buf[i];
		}
		if (!buf[i]) {
			s->pos = SIZE_MAX; /* the loop makes it 0 */
			s->matches = s->found && s->matches;
		}
	}
}

static bool read_visible(uint32_t tgid, char value[static TTIDENT_VISIBLE])
{
	_cleanup_close_ int fd = open_proc(tgid, "environ", 0);
	_cleanup_free_ char *buf = malloc(64u << 10);
	struct env_scan s = { .value = value };
	size_t total = 0;

	value[0] = '\0';
	if (fd < 0 || !buf)
		return false;
	while (total < ENV_MAX && !s.found) {
		ssize_t n = read(fd, buf, 64u << 10);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return false;
		if (!n)
			break;
		env_feed(&s, buf, (size_t)n);
		total += (size_t)n;
	}
	if (s.found && !s.too_long)
		return true;
	/* A process writes where the kernel looks for its environment: a value without an end is none. */
	value[0] = '\0';
	return !s.found && !s.matches && total < ENV_MAX;
}

static bool parse_u64(const char *s, size_t n, uint64_t *ret)
{
	uint64_t v = 0;

	if (!n || n > 20 || (s[0] == '0' && n > 1))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (s[i] < '0' || s[i] > '9' || v > (UINT64_MAX - (uint64_t)(s[i] - '0')) / 10)
			return false;
		v = v * 10 + (uint64_t)(s[i] - '0');
	}
	*ret = v;
	return true;
}

bool ttmon_ttident_parse_key(const char *path, uint64_t *key)
{
	static const char before[] = "tt_device_", after[] = "_memory";
	const char *base = strrchr(path, '/');
	size_t n;

	base = base ? base + 1 : path;
	n = strlen(base);
	if (n < sizeof(before) + sizeof(after) - 1 || strncmp(base, before, sizeof(before) - 1) ||
	    strcmp(base + n - (sizeof(after) - 1), after))
		return false;
	return parse_u64(base + sizeof(before) - 1, n - (sizeof(before) - 1) - (sizeof(after) - 1), key);
}

struct maps_scan {
	uint64_t *keys;
	size_t max, n;
};

static int on_mapping(void *ctx, const struct ttmon_mapping *m)
{
	struct maps_scan *s = ctx;
	uint64_t key;

	/* A process that publishes writes to it; a monitor may read it. */
	if (!m->shared || !(m->prot & PROT_WRITE) || !ttmon_ttident_parse_key(m->name, &key))
		return 0;
	for (size_t i = 0; i < s->n; i++)
		if (s->keys[i] == key)
			return 0;
	if (s->n < s->max)
		s->keys[s->n++] = key;
	return 0;
}

bool ttmon_ttident_maps(uint32_t tgid, uint64_t *keys, size_t max, size_t *n)
{
	struct maps_scan s = { .keys = keys, .max = max };

	int err = ttmon_maps_read("/proc", tgid, on_mapping, &s);

	*n = s.n; /* what was found before an error counts */
	return s.n > 0 && err != -ESRCH;
}

/*
 * Chip of a link target: "/dev/tenstorrent/N", or by-id/NAME-ASICID where a container was given that
 * node. Position, or -1.
 */
static int chip_of_node(const struct ttmon_ttident *t, const char *path)
{
	static const char dir[] = "/dev/tenstorrent/";
	const char *p = path + sizeof(dir) - 1;
	uint64_t v;
	char *end;

	if (strncmp(path, dir, sizeof(dir) - 1))
		return -1;
	if (!strncmp(p, "by-id/", 6)) {
		p = strrchr(p, '-');
		if (!p || strlen(p + 1) > 16)
			return -1;
		errno = 0;
		v = strtoull(p + 1, &end, 16);
		if (errno || *end || end == p + 1 || !v)
			return -1;
		for (size_t i = 0; i < t->nr_chips; i++)
			if (t->chips[i].fact.asic_id == v && !(t->chips[i].fact.flags & TTMON_TT_CHIP_GONE))
				return (int)i;
		return -1;
	}
	if (!parse_u64(p, strlen(p), &v))
		return -1;
	for (size_t i = 0; i < t->nr_chips; i++) {
		const struct ttmon_ev_tt_chip *f = &t->chips[i].fact;

		if (f->ordinal == v &&
		    !(f->flags & (TTMON_TT_CHIP_GONE | TTMON_TT_CHIP_REMOTE | TTMON_TT_CHIP_LEARNED)))
			return (int)i;
	}
	return -1;
}

static void set_open(struct ttident_info *info, int pos)
{
	if (pos < 0 || info->open[pos])
		return;
	info->open[pos] = true;
	info->nr_open++;
}

static void look_at_fds(const struct ttmon_ttident *t, struct ttident_info *info)
{
	int fd = open_proc(info->tgid, "fd", O_DIRECTORY);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	char link[128];
	struct dirent *e;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (int i = 0; i < FDS_MAX && (e = readdir(d)); i++) {
		ssize_t n = readlinkat(fd, e->d_name, link, sizeof(link) - 1);

		if (n <= 0)
			continue;
		link[n] = '\0';
		set_open(info, chip_of_node(t, link));
	}
	closedir(d);
}

/* The driver knows too: for processes whose descriptors cannot be read. */
static void look_at_driver(const struct ttmon_ttident *t, struct ttident_info *info)
{
	for (size_t i = 0; i < t->nr_chips; i++) {
		const struct ttmon_ev_tt_chip *f = &t->chips[i].fact;
		uint32_t pids[1024];
		size_t n = 0;

		if (f->flags & (TTMON_TT_CHIP_GONE | TTMON_TT_CHIP_REMOTE | TTMON_TT_CHIP_LEARNED))
			continue;
		if (ttmon_ttsys_pids(&t->cfg.roots, f->ordinal, pids, ARRAY_SIZE(pids), &n))
			return;
		for (size_t j = 0; j < n; j++)
			if (pids[j] == info->tgid)
				set_open(info, (int)i);
	}
}

/*
 * A container may have some of the nodes only; UMD counts those (TT_VISIBLE_DEVICES.md of tt-umd). No
 * node at all: not reported.
 */
static void look_at_nodes(const struct ttmon_ttident *t, struct ttident_info *info)
{
	bool there[TTIDENT_CHIPS] = { false };
	char path[PATH_MAX] = "";
	size_t n = 0;
	struct dirent *e;
	const char *pid = strstr(t->nodes, "%u");
	DIR *d;

	if (pid)
		snprintf(path, sizeof(path), "%.*s%u%s", (int)(pid - t->nodes), t->nodes, info->tgid, pid + 2);
	d = opendir(pid ? path : t->nodes);
	if (!d)
		return;
	for (int i = 0; i < FDS_MAX && (e = readdir(d)); i++) {
		char node[320];
		int pos;

		snprintf(node, sizeof(node), "/dev/tenstorrent/%s", e->d_name);
		pos = chip_of_node(t, node);
		if (pos >= 0 && !there[pos]) {
			there[pos] = true;
			n++;
		}
	}
	closedir(d);
	for (size_t i = 0; n && i < t->nr_chips; i++)
		info->hidden[i] = !there[i];
}

void ttmon_ttident_look(const struct ttmon_ttident *t, uint32_t tgid, struct ttident_info *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->tgid = tgid;
	ret->at_ns = ttmon_mono_ns();
	ret->start = ttmon_proc_alive(tgid);
	if (!ret->start)
		return;
	ret->env_known = read_visible(tgid, ret->visible);
	ret->own = ttmon_ttident_maps(tgid, ret->keys, ARRAY_SIZE(ret->keys), &ret->nr_keys);
	look_at_fds(t, ret);
	if (!ret->nr_open)
		look_at_driver(t, ret);
	if (t->nodes)
		look_at_nodes(t, ret);
	/* It may have ended meanwhile, and what was read be that of no process, or of another. */
	if (ttmon_proc_alive(tgid) != ret->start) {
		memset(ret, 0, sizeof(*ret));
		ret->tgid = tgid;
		ret->at_ns = ttmon_mono_ns();
	}
}
