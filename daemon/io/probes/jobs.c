// SPDX-License-Identifier: GPL-2.0-only
/*
 * jobs.c: see jobs.h. Functions named job_*() run in a helper, where everything may wait; packing and
 * unpacking in the cold thread.
 */
#define _GNU_SOURCE
#include "daemon/io/probes/jobs.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "daemon/core/stream/decode.h"
#include "daemon/io/host/facts.h"
#include "daemon/io/probes/jobs_int.h"
#include "daemon/io/probes/probes.h"
#include "lib/base/grow.h"
#include "lib/os/clock.h"

#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

/* ---- reading what was packed ---- */

struct cursor {
	const char *p, *end;
};

static bool take(struct cursor *c, void *ret, size_t n)
{
	if ((size_t)(c->end - c->p) < n)
		return false;
	memcpy(ret, c->p, n);
	c->p += n;
	return true;
}

/* A string with its NUL, borrowed. */
static const char *take_string(struct cursor *c)
{
	const char *nul = memchr(c->p, '\0', (size_t)(c->end - c->p)), *s = c->p;

	if (!nul)
		return NULL;
	c->p = nul + 1;
	return s;
}

/* ---- files ---- */

static void stat_of(const struct stat *st, struct ttmon_file_stat *ret)
{
	*ret = (struct ttmon_file_stat){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.nlink = st->st_nlink,
		.uid = st->st_uid,
		.ctim = st->st_ctim,
		.mtim = st->st_mtim,
	};
}

int ttmon_file_look(int fd, struct ttmon_file_stat *ret)
{
	struct statx sx;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &sx))
		return -errno;
	*ret = (struct ttmon_file_stat){
		.dev = makedev(sx.stx_dev_major, sx.stx_dev_minor),
		.ino = sx.stx_ino,
		.size = sx.stx_size,
		.nlink = sx.stx_nlink,
		.uid = sx.stx_uid,
		.ctim = { sx.stx_ctime.tv_sec, sx.stx_ctime.tv_nsec },
		.mtim = { sx.stx_mtime.tv_sec, sx.stx_mtime.tv_nsec },
	};
	return 0;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool ttmon_file_overwritten(const struct ttmon_file_stat *a, const struct ttmon_file_stat *b)
{
	return !same_time(&a->mtim, &b->mtim) || a->size != b->size;
}

bool ttmon_file_same(const struct ttmon_file_stat *a, const struct ttmon_file_stat *b)
{
	return a->dev == b->dev && a->ino == b->ino && same_time(&a->ctim, &b->ctim) && !ttmon_file_overwritten(a, b);
}

/*
 * What a path leads to is looked at before it is opened: opening a device can be an act of its own, as
 * with a watchdog, and a pipe would wait.
 */
static int open_regular(const char *path)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return -1;
	return TAKE_FD(fd);
}

/* The file of a mapping: by the kernel's own link, else by path as the process sees it. */
static int open_mapping(const struct ttmon_file_ask *ask)
{
	char path[PATH_MAX + 64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", ask->tgid, (unsigned long long)ask->start,
		 (unsigned long long)ask->end);
	fd = open_regular(path);
	if (fd >= 0 || ask->path[0] != '/')
		return fd;
	snprintf(path, sizeof(path), "/proc/%u/root%s", ask->tgid, ask->path);
	fd = open_regular(path);
	if (fd >= 0)
		return fd;
	/*
	 * The process is gone: its path in our own mount namespace, if that is the same file (inodes are
	 * compared).
	 */
	return open_regular(ask->path);
}

int ttmon_job_open_in(int root, const char *path, int flags)
{
	struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC),
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
}

static int open_below(const char *root, const char *path)
{
	_cleanup_close_ int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC), fd = -1;
	struct stat st;

	if (dir < 0)
		return -1;
	fd = ttmon_job_open_in(dir, path, O_PATH);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return -1;
	return TAKE_FD(fd);
}

/* From an O_PATH descriptor to one that can be read. Never blocks on a lease. */
static int reopen(int fd, int flags)
{
	char self[64];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return open(self, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/*
 * The user for whom a file system in user space was mounted: "... 12 ... - fuse.x y
 * rw,user_id=1000,group_id=..". False: this mount is not there.
 */
static bool fuse_owner(const char *mountinfo, uint64_t mount, unsigned int *uid)
{
	_cleanup_fclose_ FILE *f = fopen(mountinfo, "re");
	_cleanup_free_ char *line = NULL;
	size_t cap = 0;

	while (f && getline(&line, &cap, f) > 0) {
		const char *opts;

		if (strtoull(line, NULL, 10) != mount)
			continue;
		opts = strstr(line, " - ");
		opts = opts ? strstr(opts, "user_id=") : NULL;
		return opts && sscanf(opts, "user_id=%u", uid) == 1;
	}
	return false;
}

/*
 * A probe makes the kernel read the file with a lock that every fork() of the host waits for. So no
 * file is probed that is served by a program of a user other than root: it could let that read wait.
 * (A server of root's is trusted as any other file system.)
 */
static bool is_of_user(int fd, uint32_t tgid)
{
	char path[64];
	struct statfs fs;
	struct statx sx;
	unsigned int uid;

	if (fstatfs(fd, &fs))
		return true;
	if (fs.f_type != FUSE_SUPER_MAGIC)
		return false;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &sx) || !(sx.stx_mask & STATX_MNT_ID))
		return true;
	snprintf(path, sizeof(path), "/proc/%u/mountinfo", tgid);
	return !(fuse_owner(path, sx.stx_mnt_id, &uid) || fuse_owner("/proc/self/mountinfo", sx.stx_mnt_id, &uid)) ||
	       uid;
}

size_t ttmon_file_pack(const struct ttmon_file_ask *ask, char *buf, size_t n)
{
	struct ttmon_file_ask head = *ask;
	size_t root = strlen(ask->root) + 1, path = strlen(ask->path) + 1;

	if (sizeof(head) + root + path > n)
		return 0;
	head.root = head.path = NULL;
	memcpy(buf, &head, sizeof(head));
	memcpy(buf + sizeof(head), ask->root, root);
	memcpy(buf + sizeof(head) + root, ask->path, path);
	return sizeof(head) + root + path;
}

struct file_head {
	struct ttmon_file_stat st;
	struct ttmon_elf_info elf; /* its pointers mean nothing */
	int32_t err;
	bool same;
};

static void put_file(struct ttmon_helper_out *out, const struct file_head *head)
{
	const struct ttmon_elf_info *elf = &head->elf;

	ttmon_helper_put(out, head, sizeof(*head));
	ttmon_helper_put(out, elf->targets, elf->nr_targets * sizeof(*elf->targets));
	ttmon_helper_put(out, elf->usdts, elf->nr_usdts * sizeof(*elf->usdts));
	for (size_t i = 0; i < elf->nr_targets; i++)
		if (elf->targets[i].mangled)
			ttmon_helper_put(out, elf->targets[i].mangled, strlen(elf->targets[i].mangled) + 1);
}

/*
 * A file on one of these is read from a disk or from memory, without a server. Others are read by a
 * call of their own, which is late at their place and not at the process that maps them.
 */
static bool is_local(int fd)
{
	static const uint32_t types[] = { EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC,
					  OVERLAYFS_SUPER_MAGIC };
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if ((uint32_t)fs.f_type == types[i])
			return true;
	return false;
}

int ttmon_job_held(const struct ttmon_jobs_cfg *cfg, int fd, struct ttmon_helper_out *out)
{
	/* What this helper has read last: the daemon knows what was in it. */
	static struct ttmon_file_stat seen[256];
	struct file_head head = { .same = true };
	struct ttmon_file_stat *last;
	char self[64], path[PATH_MAX];
	const char *base;
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st))
		return -errno;
	stat_of(&st, &head.st);
	last = &seen[st.st_ino % ARRAY_SIZE(seen)];
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	n = readlink(self, path, sizeof(path) - 1);
	if (n > 0 && is_local(fd) && !ttmon_file_same(last, &head.st)) {
		path[n] = '\0';
		base = strrchr(path, '/');
		head.same = false;
		head.err = ttmon_elf_read(fd, base ? base + 1 : path, cfg->user, cfg->nr_user, &head.elf);
		*last = head.st;
	}
	put_file(out, &head);
	ttmon_elf_info_fini(&head.elf);
	out->fd = open(self, O_PATH | O_CLOEXEC);
	return out->fd < 0 ? -errno : 0;
}

static int job_file(const void *ctx, const void *in, size_t n, int given, struct ttmon_helper_out *out)
{
	const struct ttmon_jobs_cfg *cfg = ctx;
	struct cursor c = { in, (const char *)in + n };
	_cleanup_close_ int fd = -1, file = -1;
	struct file_head head = { 0 };
	struct ttmon_file_ask ask;
	const char *base;
	struct stat st;

	if (!take(&c, &ask, sizeof(ask)) || !(ask.root = take_string(&c)) || !(ask.path = take_string(&c)))
		return -EINVAL;
	if (given >= 0)
		fd = fcntl(given, F_DUPFD_CLOEXEC, 0);
	else
		fd = ask.root[0] ? open_below(ask.root, ask.path) : open_mapping(&ask);
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || (ask.ino && st.st_ino != ask.ino))
		return TTMON_JOB_EGONE;
	stat_of(&st, &head.st);
	head.same = ask.known.ino && ttmon_file_same(&ask.known, &head.st);
	if (ask.read && !head.same) {
		base = strrchr(ask.path, '/');
		file = is_of_user(fd, ask.tgid) ? TTMON_PROBE_EUSERFS : reopen(fd, O_RDONLY);
		head.err = file == TTMON_PROBE_EUSERFS ? file : file < 0 ? -errno : 0;
		if (!head.err)
			head.err = ttmon_elf_read(file, base ? base + 1 : ask.path, cfg->user, cfg->nr_user, &head.elf);
	}
	put_file(out, &head);
	out->fd = TAKE_FD(fd);
	ttmon_elf_info_fini(&head.elf);
	return 0;
}

int ttmon_file_unpack(const char *buf, size_t n, struct ttmon_file *ret)
{
	struct cursor c = { buf, buf + n };
	struct ttmon_elf_info *elf;
	struct file_head head;
	bool ok = true;

	if (!take(&c, &head, sizeof(head)))
		return -EBADMSG;
	elf = &head.elf;
	elf->targets = calloc(elf->nr_targets + 1, sizeof(*elf->targets));
	elf->usdts = calloc(elf->nr_usdts + 1, sizeof(*elf->usdts));
	if (!elf->targets || !elf->usdts || !take(&c, elf->targets, elf->nr_targets * sizeof(*elf->targets)) ||
	    !take(&c, elf->usdts, elf->nr_usdts * sizeof(*elf->usdts))) {
		free(elf->targets);
		free(elf->usdts);
		return -EBADMSG;
	}
	for (size_t i = 0; i < elf->nr_targets; i++) {
		const char *name = elf->targets[i].mangled ? take_string(&c) : NULL;

		ok &= !elf->targets[i].mangled || name;
		elf->targets[i].mangled = name ? strdup(name) : NULL;
	}
	if (!ok) {
		ttmon_elf_info_fini(elf);
		return -EBADMSG;
	}
	*ret = (struct ttmon_file){ .st = head.st, .same = head.same, .err = head.err, .elf = *elf };
	return 0;
}

/* ---- processes ---- */

struct fact_head {
	uint64_t size; /* 0: no more */
};

static void put_fact(void *ctx, const void *rec, size_t size)
{
	struct fact_head h = { size };

	ttmon_helper_put(ctx, &h, sizeof(h));
	ttmon_helper_put(ctx, rec, size);
}

static int put_mapping(void *ctx, const struct ttmon_mapping *m)
{
	struct ttmon_mapping plain = *m;

	plain.name = NULL;
	ttmon_helper_put(ctx, &plain, sizeof(plain));
	ttmon_helper_put(ctx, m->name, strlen(m->name) + 1);
	return 0;
}

struct list_head {
	uint64_t from_ns, done_ns;
	uint32_t tgid, pad;
};

static int job_list(const void *ctx _unused_, const void *in, size_t n, int fd _unused_, struct ttmon_helper_out *out)
{
	const struct ttmon_list_ask *ask = in;
	struct list_head head;
	size_t at;
	int err;

	if (n != sizeof(*ask))
		return -EINVAL;
	if (ask->names)
		ttmon_fact_names(put_fact, out, ttmon_mono_ns(), ask->tgid);
	ttmon_helper_put(out, &(struct fact_head){ 0 }, sizeof(struct fact_head));
	at = out->n;
	head = (struct list_head){ .tgid = ask->tgid, .from_ns = ttmon_mono_ns() };
	ttmon_helper_put(out, &head, sizeof(head));
	err = ttmon_maps_read("/proc", ask->tgid, put_mapping, out);
	/* A zombie's list is empty; no other process has an empty one. */
	if (!err && out->n == at + sizeof(head))
		err = -ESRCH;
	head.done_ns = ttmon_mono_ns();
	if (!out->no_memory)
		memcpy(out->buf + at, &head, sizeof(head));
	return err;
}

void ttmon_listing_free(struct ttmon_listing *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n; i++)
		free((char *)l->maps[i].name);
	free(l->maps);
	free(l);
}

int ttmon_listing_unpack(const char *buf, size_t n, void (*fact)(void *ctx, const void *rec, size_t size), void *ctx,
			 struct ttmon_listing **ret)
{
	struct cursor c = { buf, buf + n };
	struct ttmon_listing *l;
	struct list_head head;
	struct fact_head h;
	size_t cap = 0;

	while (take(&c, &h, sizeof(h)) && h.size) {
		union {
			struct ttmon_event h;
			char room[TTMON_RECORD_MAX];
		} rec;

		if (h.size > sizeof(rec) || !take(&c, &rec, h.size))
			return -EBADMSG;
		fact(ctx, &rec, h.size);
	}
	if (!take(&c, &head, sizeof(head)))
		return -EBADMSG;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->tgid = head.tgid;
	l->from_ns = head.from_ns;
	l->done_ns = head.done_ns;
	while (c.p < c.end) {
		struct ttmon_mapping m;
		const char *name;

		if (TTMON_GROW(l->maps, cap, l->n + 1, 128))
			break;
		if (!take(&c, &m, sizeof(m)) || !(name = take_string(&c)) || !(m.name = strdup(name)))
			break;
		l->maps[l->n++] = m;
	}
	if (c.p < c.end) {
		ttmon_listing_free(l);
		return -ENOMEM;
	}
	*ret = l;
	return 0;
}

/* ---- files that are known ---- */

size_t ttmon_check_pack(const struct ttmon_check_ask *ask, char *buf, size_t n)
{
	struct ttmon_check_ask head = *ask;
	size_t name = strlen(ask->name) + 1;

	if (sizeof(head) + name > n)
		return 0;
	head.name = NULL;
	memcpy(buf, &head, sizeof(head));
	memcpy(buf + sizeof(head), ask->name, name);
	return sizeof(head) + name;
}

static bool is_there(const char *path, const struct ttmon_file_stat *as)
{
	struct ttmon_file_stat now;
	struct stat st;

	if (fstatat(AT_FDCWD, path, &st, AT_NO_AUTOMOUNT))
		return false;
	stat_of(&st, &now);
	return ttmon_file_same(as, &now);
}

/*
 * Looks the file up by its name, in our own root and in the process's. That takes a tenth of the time
 * of opening the file, and every program that starts maps half a dozen such files.
 */
static int job_check(const void *ctx _unused_, const void *in, size_t n, int fd _unused_, struct ttmon_helper_out *out)
{
	struct cursor c = { in, (const char *)in + n };
	struct ttmon_check_ask ask;

	while (take(&c, &ask, sizeof(ask)) && (ask.name = take_string(&c))) {
		char path[PATH_MAX + 64], changed = 1;

		if (ask.name[0] == '/') {
			snprintf(path, sizeof(path), "/proc/%u/root%s", ask.tgid, ask.name);
			changed = !((ask.same && is_there(ask.name, &ask.st)) || is_there(path, &ask.st));
		}
		ttmon_helper_put(out, &changed, 1);
	}
	return 0;
}

/* ---- symbols ---- */

size_t ttmon_symbols_pack(const struct ttmon_symbols_ask *ask, char *buf, size_t n)
{
	struct ttmon_symbols_ask head = *ask;
	size_t path = ROUND_UP(strlen(ask->path) + 1, sizeof(uint64_t)), offsets = ask->n * sizeof(*ask->offsets);

	if (sizeof(head) + path + offsets > n)
		return 0;
	head.path = NULL;
	head.offsets = NULL;
	memcpy(buf, &head, sizeof(head));
	memset(buf + sizeof(head), 0, path);
	memcpy(buf + sizeof(head), ask->path, strlen(ask->path));
	if (offsets)
		memcpy(buf + sizeof(head) + path, ask->offsets, offsets);
	return sizeof(head) + path + offsets;
}

struct symbol_head {
	uint64_t i, delta;
};

static void put_symbol(void *ctx, size_t i, const char *name, uint64_t delta)
{
	struct symbol_head h = { i, delta };

	ttmon_helper_put(ctx, &h, sizeof(h));
	name = name ? name : "";
	ttmon_helper_put(ctx, name, strlen(name) + 1);
}

static int take_symbols_ask(struct cursor *c, struct ttmon_symbols_ask *ret)
{
	const char *at;

	if (!take(c, ret, sizeof(*ret)))
		return -EINVAL;
	at = c->p;
	ret->path = take_string(c);
	if (!ret->path)
		return -EINVAL;
	c->p = at + ROUND_UP((size_t)(c->p - at), sizeof(uint64_t));
	if (c->p > c->end || (size_t)(c->end - c->p) != ret->n * sizeof(uint64_t))
		return -EINVAL;
	ret->offsets = (const uint64_t *)c->p;
	return 0;
}

/*
 * For reading, if it is as it was: what was found in another one is not there. fd: the file, -1: by
 * its path.
 */
static int open_known(const struct ttmon_symbols_ask *ask, int fd)
{
	_cleanup_close_ int path = fd < 0 ? open_regular(ask->path) : -1, file = -1;
	struct ttmon_file_stat now;
	struct stat st;

	if (fd < 0 && path < 0)
		return -ENOENT;
	if (fstat(fd < 0 ? path : fd, &st))
		return -errno;
	stat_of(&st, &now);
	if (now.dev != ask->st.dev || now.ino != ask->st.ino || ttmon_file_overwritten(&now, &ask->st))
		return -ESTALE;
	file = reopen(fd < 0 ? path : fd, O_RDONLY);
	return file < 0 ? -errno : TAKE_FD(file);
}

static int job_symbols(const void *ctx _unused_, const void *in, size_t n, int fd, struct ttmon_helper_out *out)
{
	struct cursor c = { in, (const char *)in + n };
	_cleanup_close_ int file = -1;
	struct ttmon_symbols_ask ask;
	int err = take_symbols_ask(&c, &ask);

	if (err)
		return err;
	file = open_known(&ask, fd);
	return file < 0 ? file : ttmon_elf_symbols(file, ask.offsets, ask.n, put_symbol, out);
}

static int job_open(const void *ctx _unused_, const void *in, size_t n, int fd, struct ttmon_helper_out *out)
{
	struct cursor c = { in, (const char *)in + n };
	struct ttmon_symbols_ask ask;
	int err = take_symbols_ask(&c, &ask);

	if (!err)
		out->fd = open_known(&ask, fd);
	return err ? err : MIN(out->fd, 0);
}

void ttmon_symbols_unpack(const char *buf, size_t n, void (*cb)(void *ctx, size_t i, const char *name, uint64_t delta),
			  void *ctx)
{
	struct cursor c = { buf, buf + n };
	struct symbol_head h;
	const char *name;

	while (take(&c, &h, sizeof(h)) && (name = take_string(&c)))
		cb(ctx, h.i, name[0] ? name : NULL, h.delta);
}

/* ---- what is mapped, and what is in place ---- */

struct sought {
	const uint64_t *inos;
	size_t n;
	char *found;
};

static int look_for(void *ctx, const struct ttmon_mapping *m)
{
	struct sought *s = ctx;

	for (size_t i = 0; i < s->n; i++)
		s->found[i] |= m->ino == s->inos[i] && (m->prot & PROT_EXEC);
	return 0;
}

static int job_mapped(const void *ctx _unused_, const void *in, size_t n, int fd _unused_, struct ttmon_helper_out *out)
{
	const uint64_t *v = in;
	struct sought s = { .inos = v + 1, .n = n / sizeof(*v) - 1 };
	_cleanup_free_ char *found = calloc(s.n + 1, 1);
	int err;

	if (!found)
		return -ENOMEM;
	s.found = found;
	err = ttmon_maps_read("/proc", (uint32_t)v[0], look_for, &s);
	ttmon_helper_put(out, found, s.n);
	return err;
}

/*
 * The file is mapped, which is what makes the kernel put its breakpoints there, and may be cut short
 * by its owner meanwhile: that ends a helper.
 */
static int job_placed(const void *ctx _unused_, const void *in, size_t n, int fd, struct ttmon_helper_out *out)
{
	uint64_t first = UINT64_MAX, end = 0, page = (uint64_t)sysconf(_SC_PAGESIZE);
	_cleanup_close_ int file = reopen(fd, O_RDONLY);
	const uint64_t *at = in;
	const uint8_t *map;

	n /= sizeof(*at);
	for (size_t i = 0; i < n; i++) {
		first = MIN(first, at[i]);
		end = MAX(end, at[i] + 1);
	}
	if (file < 0 || !n)
		return file < 0 ? -errno : 0;
	first -= first % page;
	map = mmap(NULL, end - first, PROT_READ, MAP_PRIVATE, file, (off_t)first);
	if (map == MAP_FAILED)
		return -errno;
	for (size_t i = 0; i < n; i++) {
		uint8_t byte;
		char missing = pread(file, &byte, 1, (off_t)at[i]) == 1 && map[at[i] - first] == byte;

		ttmon_helper_put(out, &missing, 1);
	}
	munmap((void *)map, end - first);
	return 0;
}

const ttmon_helper_fn ttmon_jobs[TTMON_JOBS] = {
	[TTMON_JOB_LIST] = job_list,	     [TTMON_JOB_FILE] = job_file,     [TTMON_JOB_CHECK] = job_check,
	[TTMON_JOB_SYMBOLS] = job_symbols,   [TTMON_JOB_OPEN] = job_open,     [TTMON_JOB_MAPPED] = job_mapped,
	[TTMON_JOB_AHEAD] = ttmon_job_ahead, [TTMON_JOB_PLACED] = job_placed,
};
