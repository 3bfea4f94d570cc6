// SPDX-License-Identifier: GPL-2.0-only
/*
 * ident_proc.c: what /proc/PID says about a process and chips: TT_VISIBLE_DEVICES of its environment,
 * device nodes it has open, files of statistics it has mapped. Read by a helper; what it read is
 * understood in the cold thread.
 *
 * All of it is chosen by the process. The environment is the one that it was started with (what it set
 * later does not show); 2 MiB of it are read, and a value past that or longer than TTIDENT_VISIBLE
 * counts as unreadable. Nodes and files are identified by name; none is opened.
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

/* Searches NAME=value among NUL-terminated strings that come in pieces. */
struct env_scan {
	size_t pos;   /* characters of the current string so far */
	bool matches; /* they match the name so far */
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
			/* getenv() takes the first one. */
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
	/* A process can write where the kernel reads its environment: a value without an end is invalid. */
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

static bool read_maps(uint32_t tgid, uint64_t *keys, size_t max, size_t *n)
{
	struct maps_scan s = { .keys = keys, .max = max };

	int err = ttmon_maps_read("/proc", tgid, on_mapping, &s);

	*n = s.n; /* results before an error count */
	return s.n > 0 && err != -ESRCH;
}

/*
 * Chip of a link target: "/dev/tenstorrent/N", or by-id/NAME-ASICID if a container was given that
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

/* What a helper answers: this, then names of nodes with their NULs, the open ones first. */
struct answer {
	uint64_t start, at_ns;
	uint32_t env_known, own;
	uint32_t nr_open, nr_nodes;
	char visible[TTIDENT_VISIBLE];
	uint64_t keys[TTIDENT_KEYS];
	uint64_t nr_keys;
};

#define NODES "/dev/tenstorrent/"

static uint32_t put_open(uint32_t tgid, struct ttmon_helper_out *out)
{
	int fd = open_proc(tgid, "fd", O_DIRECTORY);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	char link[128];
	struct dirent *e;
	uint32_t nr = 0;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return 0;
	}
	for (int i = 0; i < FDS_MAX && (e = readdir(d)); i++) {
		ssize_t n = readlinkat(fd, e->d_name, link, sizeof(link) - 1);

		if (n <= 0)
			continue;
		link[n] = '\0';
		if (strncmp(link, NODES, sizeof(NODES) - 1))
			continue;
		ttmon_helper_put(out, link, (size_t)n + 1);
		nr++;
	}
	closedir(d);
	return nr;
}

static uint32_t put_nodes(uint32_t tgid, struct ttmon_helper_out *out)
{
	char path[64], node[320];
	struct dirent *e;
	uint32_t nr = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%u/root" NODES, tgid);
	d = opendir(path);
	for (int i = 0; d && i < FDS_MAX && (e = readdir(d)); i++) {
		snprintf(node, sizeof(node), NODES "%s", e->d_name);
		ttmon_helper_put(out, node, strlen(node) + 1);
		nr++;
	}
	if (d)
		closedir(d);
	return nr;
}

int ttmon_ttident_job(const void *ctx _unused_, const void *in, size_t n, int fd _unused_, struct ttmon_helper_out *out)
{
	const struct ttmon_ttident_ask *ask = in;
	struct answer a = { .at_ns = ttmon_mono_ns() };
	size_t nr_keys = 0;

	if (n != sizeof(*ask))
		return -EINVAL;
	a.start = ttmon_proc_alive(ask->tgid);
	if (!a.start)
		return -ESRCH;
	a.env_known = read_visible(ask->tgid, a.visible);
	a.own = read_maps(ask->tgid, a.keys, ARRAY_SIZE(a.keys), &nr_keys);
	a.nr_keys = nr_keys;
	ttmon_helper_put(out, &a, sizeof(a));
	a.nr_open = put_open(ask->tgid, out);
	a.nr_nodes = ask->nodes ? put_nodes(ask->tgid, out) : 0;
	if (!out->no_memory)
		memcpy(out->buf, &a, sizeof(a));
	/* It may have ended meanwhile, and what was read be that of no process, or of another. */
	return ttmon_proc_alive(ask->tgid) == a.start ? 0 : -ESRCH;
}

/* The driver has this too, for processes whose descriptors cannot be read. */
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
 * A container may have only some of the nodes; UMD counts those (TT_VISIBLE_DEVICES.md of tt-umd). No
 * node at all: unknown.
 */
static void take_nodes(const struct ttmon_ttident *t, const char *const *nodes, uint32_t nr, struct ttident_info *info)
{
	bool there[TTIDENT_CHIPS] = { false }, any = false;

	for (uint32_t i = 0; i < nr; i++) {
		int pos = chip_of_node(t, nodes[i]);

		if (pos >= 0)
			there[pos] = any = true;
	}
	for (size_t i = 0; any && i < t->nr_chips; i++)
		info->hidden[i] = !there[i];
}

/* The names that follow an answer, in place. NULL: there are not as many, or no memory. */
static const char **names_of(const char *p, const char *end, size_t nr)
{
	const char **v = nr <= 2 * FDS_MAX ? calloc(nr + 1, sizeof(*v)) : NULL;

	for (size_t i = 0; v && i < nr; i++) {
		const char *nul = memchr(p, '\0', (size_t)(end - p));

		if (!nul) {
			free(v);
			return NULL;
		}
		v[i] = p;
		p = nul + 1;
	}
	return v;
}

void ttmon_ttident_unpack(const struct ttmon_ttident *t, uint32_t tgid, const char *buf, size_t n,
			  struct ttident_info *ret)
{
	const char **names;
	struct answer a;

	memset(ret, 0, sizeof(*ret));
	ret->tgid = tgid;
	ret->at_ns = ttmon_mono_ns();
	if (n < sizeof(a))
		return;
	memcpy(&a, buf, sizeof(a));
	names = names_of(buf + sizeof(a), buf + n, (size_t)a.nr_open + a.nr_nodes);
	if (!names)
		return;
	ret->start = a.start;
	ret->at_ns = a.at_ns;
	ret->env_known = a.env_known != 0;
	ret->own = a.own != 0;
	memcpy(ret->visible, a.visible, sizeof(ret->visible));
	ret->visible[sizeof(ret->visible) - 1] = '\0';
	memcpy(ret->keys, a.keys, sizeof(ret->keys));
	ret->nr_keys = MIN(a.nr_keys, (uint64_t)TTIDENT_KEYS);
	for (uint32_t i = 0; i < a.nr_open; i++)
		set_open(ret, chip_of_node(t, names[i]));
	if (!ret->nr_open)
		look_at_driver(t, ret);
	take_nodes(t, names + a.nr_open, a.nr_nodes, ret);
	free(names);
}
