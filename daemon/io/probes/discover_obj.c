// SPDX-License-Identifier: GPL-2.0-only
/*
 * discover_obj.c: the files that processes map: one entry for each (device, inode), its probes, its names. Runs in the cold thread.
 * A file without anything for us is read once and remembered, so that the next process that maps it costs a look-up.
 */
#include <dirent.h>
#include <ctype.h>
#include <fcntl.h>
#include <search.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "daemon/io/probes/discover_int.h"
#include "daemon/io/host/facts.h"
#include "lib/os/clock.h"
#include "lib/os/log.h"

/* Objects of traced processes are kept open for their symbols; past this many they are opened again by path when asked for. */
#define MAX_OPEN    4096
#define MAX_OBJECTS 32768

static int cmp_alias(const void *a, const void *b)
{
	const struct alias *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	if (x->major != y->major)
		return x->major < y->major ? -1 : 1;
	return x->minor == y->minor ? 0 : x->minor < y->minor ? -1 : 1;
}

static int cmp_object(const void *a, const void *b)
{
	const struct object *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return x->dev == y->dev ? 0 : x->dev < y->dev ? -1 : 1;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* Our own libraries, which stand between a program and CUDA: libttmon.so.1, libttmon-preload.so. */
static bool is_ours(const char *path)
{
	const char *base = base_name(path);

	return !strncmp(base, "libttmon", strlen("libttmon")) && strstr(base, ".so");
}

/* It is called by the names of CUDA's functions: what it hands on is seen there, and what it does not is no call of CUDA's. The points that
 * it has are probed. */
static void points_only(struct ttmon_elf_info *elf)
{
	for (size_t i = 0; i < elf->nr_targets; i++)
		free(elf->targets[i].mangled);
	elf->nr_targets = 0;
	elf->missing = 0;
	elf->kind = 0;
}

/* Tell the stream what this object is, once. */
static void tell_object(struct ttmon_discover *d, struct object *o)
{
	if (o->id)
		return;
	o->id = d->next_id++;
	ttmon_fact_object(d->cfg.fact, d->cfg.ctx,
			  &(struct ttmon_object){
				  .id = o->id,
				  .flags = ((o->elf.kind & (TTMON_OBJ_IS_RT | TTMON_OBJ_IS_DRV) &&
					     !(o->elf.kind & TTMON_OBJ_STATIC_RT)) ||
							    is_ours(o->path)
						    ? TTMON_OBJ_CUDA
						    : 0) |
					   (o->probed ? TTMON_OBJ_PROBED : 0),
				  .build_id_len = o->elf.build_id_len,
				  .path = o->path,
			  },
			  o->elf.build_id, o->dev, o->ino);
}

/* What is known of its functions, which only probes need. */
static void forget_functions(struct object *o)
{
	struct ttmon_elf_info kept = o->elf;

	ttmon_elf_info_fini(&o->elf);
	kept.targets = NULL;
	kept.usdts = NULL;
	kept.nr_targets = kept.nr_usdts = 0;
	o->elf = kept;
}

/* What the object has probes of, as bits; of CUDA also where nothing of a runtime can be probed. */
static uint16_t families_of(const struct object *o)
{
	unsigned int families = 0;

	if (o->elf.kind & (TTMON_OBJ_IS_RT | TTMON_OBJ_IS_DRV | TTMON_OBJ_STATIC_RT | TTMON_OBJ_STRIPPED_RT))
		families |= TTMON_FAMILIES_CUDA;
	if (o->elf.kind & TTMON_OBJ_IS_TT)
		families |= TTMON_FAMILY_BIT(TENSTORRENT) | TTMON_FAMILY_BIT(DISPATCH);
	/* A program's own allocator. */
	return (uint16_t)(families ? families : TTMON_FAMILY_BIT(ALLOC));
}

/* Its owner has enough probes: what is done with it is not seen, and said so. */
static void refuse(struct object *o)
{
	o->refused = families_of(o);
	forget_functions(o);
	log_debug("%s: no probes: files of user %u have their share", o->path, o->owner);
}

/*
 * The unwinder finds the kernel's trampoline where a return probe has put it, and ends the program. NVIDIA's functions are C; an
 * allocator of the program's own may throw.
 */
static void say_thrown(const struct ttmon_discover *d, const struct object *o)
{
	for (size_t i = 0; o->elf.throws && !d->cfg.probes.no_returns && i < o->probes.n; i++)
		if (o->probes.probes[i].prog == TTMON_PROG_USER_CALL &&
		    o->probes.probes[i].state == TTMON_PROBE_ATTACHED)
			log_warn(
				"%s: an exception that leaves %s ends the program: it cannot pass a return probe (--no-return-probes)",
				o->path, o->probes.probes[i].symbol);
}

/* begun_ns: when reading it was begun. */
static void attach(struct ttmon_discover *d, struct object *o, uint64_t begun_ns)
{
	struct ttmon_probes_opts opts = d->cfg.probes;
	uint64_t read_ns = ttmon_mono_ns();
	size_t refused = 0;

	if (!o->elf.nr_targets && !o->elf.nr_usdts) {
		if (o->elf.kind & TTMON_OBJ_STRIPPED_RT)
			log_debug("%s holds a CUDA runtime without symbols: its calls are seen in the driver", o->path);
		return;
	}
	if (!ttmon_share_take(d, o, (uint32_t)(o->elf.nr_targets + o->elf.nr_usdts))) {
		refuse(o);
		return;
	}
	opts.tt_slot = o->elf.kind & TTMON_OBJ_IS_TT ? ttmon_object_tt_take(d, o) : -1;
	o->err = ttmon_probes_attach(d->cfg.bpf, o->fd, &o->elf, &opts, &o->probes);
	if (o->err) {
		ttmon_object_tt_give(d, o);
		ttmon_share_give(d, o);
		log_warn("cannot attach to %s: %s, continuing without it", o->path, ttmon_probe_reason(o->err));
		return;
	}
	o->probed = true;
	o->active_ns = o->probes.active_ns;
	o->next_probed = d->probed;
	d->probed = o;
	o->refused = 0;
	for (size_t i = 0; i < o->probes.n; i++) {
		const struct ttmon_probe *p = &o->probes.probes[i];

		if (p->state == TTMON_PROBE_FAILED || (p->state == TTMON_PROBE_REFUSED && p->err == TTMON_PROBE_ENOP))
			o->refused |= 1u << ttmon_probes_family_of(p) & TTMON_FAMILIES_CUDA;
		if (p->state == TTMON_PROBE_FAILED)
			log_warn("%s: %s cannot be probed: %s, continuing without it", o->path, p->symbol,
				 ttmon_probe_reason(p->err));
		if (p->state == TTMON_PROBE_REFUSED && p->err == TTMON_PROBE_ENOP)
			log_warn("%s: %s is not probed: %s, continuing without it", o->path, p->symbol,
				 ttmon_probe_reason(p->err));
		refused += p->state == TTMON_PROBE_REFUSED && p->err == TTMON_PROBE_ESTEP;
	}
	say_thrown(d, o);
	if (refused)
		log_info(
			"%s: %zu functions that dispatch would be single-stepped, continuing without them (--tt-dispatch on probes them)",
			o->path, refused);
	if (o->probes.single_step)
		log_info(
			"%s: %zu of %zu probed functions have an instruction at the probe that must be single-stepped (about ten times dearer)",
			o->path, o->probes.single_step, o->probes.attached);
	log_debug("%s: %zu probes, read in %llu us, active %llu us after that", o->path, o->probes.attached,
		  (unsigned long long)(read_ns - begun_ns) / NSEC_PER_US,
		  (unsigned long long)(o->active_ns - read_ns) / NSEC_PER_US);
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Written to after it was read (cp over it, not a rename): what was found in it is not there any more. */
static bool overwritten(const struct object *o, const struct stat *st)
{
	return !same_time(&o->mtim, &st->st_mtim) || o->size != (uint64_t)st->st_size;
}

static void not_probed(struct ttmon_discover *d, struct object *o)
{
	struct object **link = &d->probed;

	while (*link != o)
		link = &(*link)->next_probed;
	*link = o->next_probed;
	o->probed = false;
}

static void drop_probes(struct ttmon_discover *d, struct object *o, const char *why)
{
	log_info("%s %s: probes removed", o->path, why);
	ttmon_probes_detach(&o->probes);
	ttmon_share_give(d, o);
	forget_functions(o);
	ttmon_object_tt_give(d, o);
	not_probed(d, o);
	d->nr_open++; /* as one without probes, until the caller closes it */
	/* Its inode number may come back as another file. */
	o->ctim = (struct timespec){ 0 };
}

static void drop_overwritten(struct ttmon_discover *d, struct object *o)
{
	if (o->probed)
		drop_probes(d, o, "was overwritten");
	o->ctim = (struct timespec){ 0 };
	close(o->fd);
	o->fd = -1;
	d->nr_open--;
}

/* The object behind an open file, read and probed if it is new. Takes the fd. */
struct object *ttmon_object_of_fd(struct ttmon_discover *d, int fd_in, const char *path, uint64_t mapped_ns, bool held)
{
	_cleanup_close_ int fd = fd_in;
	struct object key, **found, *o;
	uint64_t begun_ns = ttmon_mono_ns();
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return NULL;
	key.dev = st.st_dev;
	key.ino = st.st_ino;
	found = tfind(&key, &d->objects, cmp_object);
	if (found) {
		o = *found;
		if (o->fd >= 0 && overwritten(o, &st))
			drop_overwritten(d, o);
		/* An inode number that was used again: a file we keep open cannot be. */
		if (o->fd >= 0 || same_time(&o->ctim, &st.st_ctim))
			return o;
		ttmon_elf_info_fini(&o->elf);
		free(o->path);
		o->path = NULL;
		o->id = 0;
		o->err = 0;
	} else {
		o = calloc(1, sizeof(*o));
		if (!o)
			return NULL;
		o->dev = key.dev;
		o->ino = key.ino;
		if (!tsearch(o, &d->objects, cmp_object)) {
			free(o);
			return NULL;
		}
		o->next = d->list;
		d->list = o;
		d->nr_objects++;
	}
	o->fd = TAKE_FD(fd);
	o->owner = st.st_uid;
	o->over_share = 0;
	o->refused = 0;
	o->ctim = st.st_ctim;
	o->mtim = st.st_mtim;
	o->size = (uint64_t)st.st_size;
	o->path = strdup(path);
	if (!o->path)
		o->path = strdup("?");
	o->mapped_ns = mapped_ns;
	o->held = held;
	memset(&o->elf, 0, sizeof(o->elf));
	o->err = ttmon_elf_read(o->fd, base_name(path), d->cfg.user, d->cfg.nr_user, &o->elf);
	if (!o->err && is_ours(path))
		points_only(&o->elf);
	if (!o->err)
		attach(d, o, begun_ns);
	else if (o->err != -ENOEXEC)
		log_debug("%s: not a readable ELF file: %s", path, strerror(-o->err));
	if (!o->probed) {
		/* Opened again if a traced process needs its symbols. */
		close(o->fd);
		o->fd = -1;
		if (o->elf.kind & TTMON_OBJ_STRIPPED_RT || o->over_share)
			tell_object(d, o);
	} else {
		tell_object(d, o);
		ttmon_object_tell_tt(d, o);
	}
	return o;
}

/*
 * A path that a traced program chose. What it leads to is looked at before it is opened: opening a device can be an act of its
 * own, as with a watchdog, and a pipe would wait.
 */
static int open_regular(const char *path)
{
	_cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
	char self[64];
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode))
		return -1;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* The file of a mapping: by the kernel's own link, else by path as the process sees it. */
static int open_mapping(uint32_t tgid, uint64_t start, uint64_t end, const char *name)
{
	char path[4096 + 64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/map_files/%llx-%llx", tgid, (unsigned long long)start,
		 (unsigned long long)end);
	fd = open_regular(path);
	if (fd >= 0 || name[0] != '/')
		return fd;
	snprintf(path, sizeof(path), "/proc/%u/root%s", tgid, name);
	fd = open_regular(path);
	if (fd >= 0)
		return fd;
	/* The process is gone: its path in our own mount namespace, if that is the same file (the caller compares inodes). */
	return open_regular(name);
}

static bool same_file(const struct object *o, const struct stat *st)
{
	return st->st_dev == o->dev && st->st_ino == o->ino && same_time(&o->ctim, &st->st_ctim) && !overwritten(o, st);
}

bool ttmon_object_known(struct ttmon_discover *d, const struct stat *st)
{
	struct object key = { .dev = st->st_dev, .ino = st->st_ino }, **found = tfind(&key, &d->objects, cmp_object);

	return found && same_file(*found, st);
}

/*
 * Is a file that is known, but not kept open, still as it was read? Asked by name, here and as the process sees it: a tenth of what opening
 * it takes, and every program that starts maps half a dozen such files. ctim is 0 where its probes were taken away.
 */
static bool is_unchanged(const struct object *o, uint32_t tgid, const char *name)
{
	char path[4096 + 64];
	struct stat st;

	if (name[0] != '/' || !o->ctim.tv_sec)
		return false;
	if (!strcmp(name, o->path) && !fstatat(AT_FDCWD, name, &st, AT_NO_AUTOMOUNT) && same_file(o, &st))
		return true;
	snprintf(path, sizeof(path), "/proc/%u/root%s", tgid, name);
	return !fstatat(AT_FDCWD, path, &st, AT_NO_AUTOMOUNT) && same_file(o, &st);
}

struct object *ttmon_object_of_mapping(struct ttmon_discover *d, uint32_t tgid, const struct mapping *m,
				       uint64_t mapped_ns)
{
	struct alias key = { m->major, m->minor, m->ino, NULL }, **found, *a;
	struct object *o;
	struct stat st;
	int fd;

	if (!m->ino)
		return NULL;
	found = tfind(&key, &d->aliases, cmp_alias);
	o = found ? (*found)->object : NULL;
	/* Read anew below. */
	if (o && ttmon_share_has_room_again(d, o))
		o->ctim = (struct timespec){ 0 };
	if (o && (o->fd >= 0 ? !fstat(o->fd, &st) && !overwritten(o, &st) : is_unchanged(o, tgid, m->name)))
		return o;
	fd = open_mapping(tgid, m->start, m->end, m->name);
	if (fd < 0)
		return o;
	if (fstat(fd, &st) || st.st_ino != m->ino) {
		close(fd);
		return NULL;
	}
	o = ttmon_object_of_fd(d, fd, m->name, mapped_ns, false);
	if (!o || found) {
		if (found && o)
			(*found)->object = o;
		return o;
	}
	a = malloc(sizeof(*a));
	if (a) {
		*a = key;
		a->object = o;
		if (!tsearch(a, &d->aliases, cmp_alias))
			free(a);
	}
	return o;
}

void ttmon_object_keep(struct ttmon_discover *d, struct object *o, uint32_t tgid, const struct mapping *m)
{
	if (o->fd < 0 && d->nr_open < MAX_OPEN) {
		o->fd = open_mapping(tgid, m->start, m->end, m->name);
		d->nr_open += o->fd >= 0;
	}
	tell_object(d, o);
}

void ttmon_object_tell_blind(struct ttmon_discover *d, uint32_t tgid, const struct object *o, uint64_t mapped_ns,
			     enum ttmon_blind_how how)
{
	bool lasts = how == TTMON_BLIND_STRIPPED || how == TTMON_BLIND_REFUSED;
	struct ttmon_ev_blind e = {
		.h = { .ts_ns = lasts ? ttmon_mono_ns() : o->active_ns,
		       .kind = TTMON_EV_BLIND,
		       .cpu = TTMON_CPU_DAEMON,
		       .tgid = tgid },
		.object = o->id,
		.how = (uint16_t)how,
		.families = how == TTMON_BLIND_REFUSED ? o->refused : families_of(o),
		.mapped_ns = mapped_ns,
		.active_ns = lasts ? UINT64_MAX : o->active_ns,
	};

	d->cfg.fact(d->cfg.ctx, &e, sizeof(e));
}

struct symbol_ctx {
	struct ttmon_discover *d;
	uint32_t object;
	const uint64_t *offsets;
};

static void on_symbol(void *ctx, size_t i, const char *name, uint64_t delta)
{
	struct symbol_ctx *s = ctx;

	ttmon_fact_symbol(s->d->cfg.fact, s->d->cfg.ctx, ttmon_mono_ns(), s->object, s->offsets[i], name ? name : "",
			  delta);
}

static int cmp_frame(const void *a, const void *b)
{
	const struct ttmon_frame *x = a, *y = b;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	return x->offset == y->offset ? 0 : x->offset < y->offset ? -1 : 1;
}

int ttmon_discover_open(const struct ttmon_discover *d, uint32_t id)
{
	_cleanup_close_ int fd = -1;
	const struct object *o = d->list;
	struct stat st;

	while (o && o->id != id)
		o = o->next;
	if (!o || !id)
		return -ENOENT;
	fd = o->fd >= 0 ? fcntl(o->fd, F_DUPFD_CLOEXEC, 0) : open_regular(o->path);
	if (fd < 0 || fstat(fd, &st) || st.st_dev != o->dev || st.st_ino != o->ino || overwritten(o, &st))
		return -ENOENT;
	return TAKE_FD(fd);
}

static void object_symbols(struct ttmon_discover *d, uint32_t id, const uint64_t *offsets, size_t n)
{
	struct symbol_ctx ctx = { .d = d, .object = id, .offsets = offsets };
	_cleanup_close_ int fd = ttmon_discover_open(d, id);
	int err = fd < 0 ? fd : ttmon_elf_symbols(fd, offsets, n, on_symbol, &ctx);

	for (size_t i = 0; err && i < n; i++)
		on_symbol(&ctx, i, NULL, 0);
}

void ttmon_discover_symbols(struct ttmon_discover *d, const struct ttmon_frame *frames, size_t n)
{
	_cleanup_free_ struct ttmon_frame *sorted = malloc((n + 1) * sizeof(*sorted));
	_cleanup_free_ uint64_t *offsets = malloc((n + 1) * sizeof(*offsets));

	if (!sorted || !offsets || !n)
		return;
	memcpy(sorted, frames, n * sizeof(*sorted));
	qsort(sorted, n, sizeof(*sorted), cmp_frame);
	for (size_t i = 0, k; i < n; i = k) {
		for (k = i; k < n && sorted[k].object == sorted[i].object; k++)
			offsets[k - i] = sorted[k].offset;
		object_symbols(d, sorted[i].object, offsets, k - i);
	}
}

/* A file without a name, or whose mount is in no namespace any more, that nobody maps: nobody can map it again. /proc/PID/maps of all
 * processes is the only one who knows, so this is asked for such files alone. */
static int maps_it(void *ctx, const struct ttmon_mapping *m)
{
	const struct object *o = ctx;

	return m->ino == o->ino && (m->prot & PROT_EXEC) ? 1 : 0;
}

static bool mapped_by_someone(const struct object *o)
{
	DIR *dir = opendir("/proc");
	struct dirent *ent;
	bool yes = !dir;

	while (dir && !yes && (ent = readdir(dir)))
		if (isdigit((unsigned char)ent->d_name[0]))
			yes = ttmon_maps_read("/proc", (uint32_t)strtoul(ent->d_name, NULL, 10), maps_it, (void *)o) ==
			      1;
	if (dir)
		closedir(dir);
	return yes;
}

static void object_free(struct ttmon_discover *d, struct object *o)
{
	tdelete(o, &d->objects, cmp_object);
	if (o->probed) {
		ttmon_probes_detach(&o->probes);
		ttmon_share_give(d, o);
		not_probed(d, o);
	}
	ttmon_object_tt_give(d, o);
	ttmon_elf_info_fini(&o->elf);
	if (o->fd >= 0)
		close(o->fd);
	free(o->path);
	free(o);
	d->nr_objects--;
}

/* Files that had nothing for us and are not open: forgotten together, as the names of gone files would pile up over months. */
static void forget_idle(struct ttmon_discover *d)
{
	struct object **link = &d->list;

	tdestroy(d->aliases, free);
	d->aliases = NULL;
	while (*link) {
		struct object *o = *link;

		if (o->probed || o->fd >= 0) {
			link = &o->next;
			continue;
		}
		*link = o->next;
		object_free(d, o);
	}
}

void ttmon_objects_check(struct ttmon_discover *d)
{
	for (struct object *o = d->probed, *next; o; o = next) {
		_cleanup_free_ char *path = NULL;
		struct stat st;
		int fd;

		next = o->next_probed;
		if (fstat(o->fd, &st) || !overwritten(o, &st))
			continue;
		/* Read anew at once, for those who have it mapped. While it is still being written it may be no ELF file: then
		 * that is done when it is mapped again. */
		path = strdup(o->path);
		fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
		drop_overwritten(d, o);
		if (path && fd >= 0)
			(void)ttmon_object_of_fd(d, fd, path, 0, false);
		else if (fd >= 0)
			close(fd);
	}
}

void ttmon_discover_family(struct ttmon_discover *d, enum ttmon_family family, bool on)
{
	if (on)
		d->cfg.probes.off &= ~(1u << family);
	else
		d->cfg.probes.off |= 1u << family;
	/* Places are those of the bytes that were read: not in a file that has others since. */
	if (on)
		ttmon_objects_check(d);
	for (struct object *o = d->list; o; o = o->next) {
		int err;

		if (!o->probed)
			continue;
		err = ttmon_probes_family(&o->probes, o->fd, &o->elf, family, on);
		if (err && err != -EOPNOTSUPP)
			log_warn("%s: cannot put all probes back: %s, continuing without them", o->path,
				 ttmon_probe_reason(err));
		if (!err && (family == TTMON_FAMILY_TENSTORRENT || family == TTMON_FAMILY_DISPATCH))
			ttmon_object_tell_tt(d, o);
	}
}

void ttmon_objects_sweep(struct ttmon_discover *d, bool any_process)
{
	for (struct object *o = d->list; o; o = o->next) {
		struct stat st;
		bool gone;

		if (o->fd < 0 || fstat(o->fd, &st))
			continue;
		gone = (!st.st_nlink || !ttmon_mount_is_there(o->fd, &o->mount)) && !mapped_by_someone(o);
		if (gone && o->probed)
			drop_probes(d, o, "is gone and no longer mapped");
		/* Kept for the symbols of traced processes: not longer than there are any, and never a deleted file. */
		if (!o->probed && (gone || !any_process)) {
			close(o->fd);
			o->fd = -1;
			d->nr_open--;
		}
	}
	if (d->nr_objects > MAX_OBJECTS)
		forget_idle(d);
}

void ttmon_discover_each(const struct ttmon_discover *d, void (*cb)(void *ctx, const struct ttmon_object_state *o),
			 void *ctx)
{
	for (const struct object *o = d->list; o; o = o->next) {
		struct ttmon_object_state s = {
			.id = o->id,
			.path = o->path,
			.dev = o->dev,
			.ino = o->ino,
			.kind = o->elf.kind,
			.tt_slot = o->has_slot ? o->tt_slot : -1,
			.tt_has = o->has_slot ? ttmon_probes_tt_has(&o->probes, &o->elf) : 0,
			.rt_major = o->elf.rt_major,
			.build_id = o->elf.build_id,
			.build_id_len = o->elf.build_id_len,
			.probes = o->probed ? &o->probes : NULL,
			.missing = o->elf.missing,
			.err = o->err,
			.mapped_ns = o->mapped_ns,
			.active_ns = o->active_ns,
			.held = o->held,
		};

		if (o->probed || (o->elf.kind & TTMON_OBJ_STRIPPED_RT) || (o->err && o->elf.nr_targets))
			cb(ctx, &s);
	}
}

void ttmon_discover_counts(const struct ttmon_discover *d, size_t *objects, size_t *attached, size_t *single_step)
{
	*objects = *attached = *single_step = 0;
	for (const struct object *o = d->list; o; o = o->next) {
		if (!o->probed)
			continue;
		++*objects;
		*attached += o->probes.attached;
		*single_step += o->probes.single_step;
	}
}

void ttmon_objects_free(struct ttmon_discover *d)
{
	_cleanup_free_ int *links = NULL;
	size_t n = 0;

	for (const struct object *o = d->list; o; o = o->next)
		n += o->probes.nr_links;
	links = malloc((n + 1) * sizeof(*links));
	n = 0;
	for (struct object *o = d->list; links && o; o = o->next)
		n += ttmon_probes_give_links(&o->probes, links + n);
	if (n)
		ttmon_bpf_detach_many(d->cfg.bpf, links, n);
	tdestroy(d->aliases, free);
	while (d->list) {
		struct object *o = d->list;

		d->list = o->next;
		object_free(d, o);
	}
}
