// SPDX-License-Identifier: GPL-2.0-only
/*
 * discover_obj.c: the files that processes map: one entry for each (device, inode), its probes, its
 * names. Runs in the cold thread, which never opens, reads or stats these files: helpers do (jobs.h),
 * and pass O_PATH descriptors, about which the kernel answers without a request to the file's server.
 * A file without targets is read once and kept in the table, so that the next process that maps it
 * costs a look-up.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <search.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "daemon/io/host/facts.h"
#include "daemon/io/probes/discover_int.h"
#include "lib/os/clock.h"
#include "lib/os/log.h"

/*
 * Objects of traced processes are kept open for their symbols; beyond this number they are opened
 * again by path when needed.
 */
#define MAX_OPEN    4096
#define MAX_OBJECTS 32768
/* A file that was not read by then is reported as unknown, for each process that has it mapped. */
#define LATE_NS		NSEC_PER_SEC
#define AGAIN_NS	(60 * NSEC_PER_SEC)
#define CHECKS_MAX	128
#define CHECK_BYTES	(32u << 10)
#define SYMBOLS_AT_ONCE 4096
#define SWEEP_MAX	1024

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

	if (x->st.ino != y->st.ino)
		return x->st.ino < y->st.ino ? -1 : 1;
	return x->st.dev == y->st.dev ? 0 : x->st.dev < y->st.dev ? -1 : 1;
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

/*
 * It is called by the names of CUDA's functions: calls that it passes on are seen there, others are no
 * calls of CUDA. Its own USDT points are probed.
 */
static void points_only(struct ttmon_elf_info *elf)
{
	for (size_t i = 0; i < elf->nr_targets; i++)
		free(elf->targets[i].mangled);
	elf->nr_targets = 0;
	elf->missing = 0;
	elf->kind = 0;
}

/* Sends the object's fact, once. */
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
			  o->elf.build_id, o->st.dev, o->st.ino);
}

/* Frees the data about its functions, which only probes need. */
static void forget_functions(struct object *o)
{
	struct ttmon_elf_info kept = o->elf;

	ttmon_elf_info_fini(&o->elf);
	kept.targets = NULL;
	kept.usdts = NULL;
	kept.nr_targets = kept.nr_usdts = 0;
	o->elf = kept;
}

/*
 * Families with probes in the object, as bits; CUDA's also if no function of a runtime can be probed.
 */
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

/* Its owner's share of probes is used up: calls in it are not seen, which is reported. */
static void refuse(struct object *o)
{
	o->refused = families_of(o);
	forget_functions(o);
	log_debug("%s: no probes: files of user %u have their share", o->path, o->st.uid);
}

/*
 * C++ unwinding finds the kernel's trampoline of a return probe, and ends the program. NVIDIA's
 * functions are C; an allocator of the program's own may throw.
 */
static void say_thrown(const struct ttmon_discover *d, const struct object *o)
{
	for (size_t i = 0; o->elf.throws && !d->cfg.probes.no_returns && i < o->probes.n; i++)
		if (o->probes.probes[i].prog == TTMON_PROG_USER_CALL &&
		    o->probes.probes[i].state == TTMON_PROBE_ATTACHED)
			log_warn("%s: an exception that leaves %s ends the program: it cannot pass a return probe "
				 "(--no-return-probes)",
				 o->path, o->probes.probes[i].symbol);
}

/* Logs the functions that cannot be probed, and notes them by family. */
static void look_at_probes(struct object *o)
{
	size_t refused = 0;

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
	if (refused)
		log_info("%s: %zu functions that dispatch would be single-stepped, continuing without them "
			 "(--tt-dispatch on probes them)",
			 o->path, refused);
	if (o->probes.single_step)
		log_info("%s: %zu of %zu probed functions have an instruction at the probe that must be single-stepped "
			 "(about ten times dearer)",
			 o->path, o->probes.single_step, o->probes.attached);
}

/* A check of an object's breakpoints, whose probes may have changed by then. */
struct placing {
	struct ttmon_discover *d;
	uint32_t object;
	uint64_t active_ns;
};

static void on_places(void *ctx, struct ttmon_helper_reply *reply)
{
	_cleanup_free_ struct placing *q = ctx;
	struct object *o = q->d->probed;
	uint16_t before;

	while (o && o->id != q->object)
		o = o->next_probed;
	if (reply->err || !o || o->active_ns != q->active_ns)
		return;
	before = o->refused;
	if (!ttmon_probes_misplaced(&o->probes, reply->buf, reply->n))
		return;
	look_at_probes(o);
	if (o->refused & ~before)
		ttmon_discover_refused(q->d, o);
}

static void look_at_places(struct ttmon_discover *d, struct object *o)
{
	_cleanup_free_ uint64_t *places = calloc(o->elf.nr_targets + 1, sizeof(*places));
	struct placing *q = malloc(sizeof(*q));
	struct ttmon_helper_call call = {
		.fn = TTMON_JOB_PLACED,
		.who = o->who,
		.where = o->st.dev,
		.in = places,
		.fd = o->fd,
		.done = on_places,
		.ctx = q,
	};

	if (!places || !q) {
		free(q);
		return;
	}
	*q = (struct placing){ .d = d, .object = o->id, .active_ns = o->active_ns };
	call.n = ttmon_probes_places(&o->probes, &o->elf, places) * sizeof(*places);
	if (!call.n || ttmon_helpers_call(d->helpers, &call))
		free(q);
}

/* ---- attaching and detaching, in threads ---- */

/*
 * Both wait for the kernel: 10 ms for the first links after a quiet time, 30 to 60 ms for the last
 * close of each. They run in a thread, so that only processes that need those probes wait. Without
 * multi links all is done at once, since tracefs has one lock.
 */
struct attaching {
	struct ttmon_discover *d;
	struct object *o;
	struct ttmon_probes_opts opts;
	struct ttmon_probes probes;
	int err;
	uint64_t begun_ns, read_ns;
};

struct closing {
	struct ttmon_discover *d;
	struct object *o;
	bool together;
	size_t n;
	int links[];
};

static void post_attach(struct attaching *a);

/* In the thread. */
static void close_links(void *ctx)
{
	struct closing *c = ctx;

	if (c->together)
		ttmon_bpf_detach_many(c->d->cfg.bpf, c->links, c->n);
	/* Entries before their returns, begins before their ends. */
	for (size_t i = 0; !c->together && i < c->n; i++)
		ttmon_bpf_detach_uprobes(c->d->cfg.bpf, c->links[i]);
}

static void links_closed(void *ctx)
{
	_cleanup_free_ struct closing *c = ctx;

	if (!--c->o->closing && c->o->attaching)
		post_attach(c->o->attaching);
}

static void close_later(void *ctx, const int *links, size_t n, bool all)
{
	struct object *o = ctx;
	struct closing *c = malloc(sizeof(*c) + n * sizeof(*links));

	if (c) {
		*c = (struct closing){ .d = o->d, .o = o, .together = all, .n = n };
		memcpy(c->links, links, n * sizeof(*links));
		o->closing++;
		if (!ttmon_worker_do(o->d->closer, close_links, links_closed, c))
			return;
		o->closing--;
		free(c);
	}
	ttmon_bpf_detach_many(o->d->cfg.bpf, links, n);
}

void ttmon_object_wait_closed(struct ttmon_discover *d, const struct object *o)
{
	if (o->closing)
		ttmon_worker_drain(d->closer);
}

static void object_ready(struct ttmon_discover *d, struct object *o);

/* In the thread. */
static void do_attach(void *ctx)
{
	struct attaching *a = ctx;

	a->err = ttmon_probes_attach(a->d->cfg.bpf, a->o->fd, &a->o->elf, &a->opts, &a->probes);
}

/* Handles families that were switched during the attachment. */
static void follow_families(struct ttmon_discover *d, struct object *o, uint32_t off)
{
	for (unsigned int f = 0; f < TTMON_FAMILY_MAX; f++)
		if ((d->cfg.probes.off ^ off) >> f & 1)
			(void)!ttmon_probes_family(&o->probes, o->fd, &o->elf, f, off >> f & 1);
}

static void is_attached(void *ctx)
{
	_cleanup_free_ struct attaching *a = ctx;
	struct ttmon_discover *d = a->d;
	struct object *o = a->o;

	o->attaching = NULL;
	o->err = a->err;
	if (o->err) {
		ttmon_object_tt_give(d, o);
		ttmon_share_give(d, o);
		log_warn("cannot attach to %s: %s, continuing without it", o->path, ttmon_probe_reason(o->err));
		object_ready(d, o);
		return;
	}
	o->probes = a->probes;
	if (!ttmon_bpf_legacy(d->cfg.bpf)) {
		o->probes.close = close_later;
		o->probes.close_ctx = o;
	}
	o->probed = true;
	o->active_ns = o->probes.active_ns;
	o->next_probed = d->probed;
	d->probed = o;
	follow_families(d, o, a->opts.off);
	look_at_probes(o);
	say_thrown(d, o);
	log_debug("%s: %zu probes, read in %llu us, active %llu us after that", o->path, o->probes.attached,
		  (unsigned long long)(a->read_ns - a->begun_ns) / NSEC_PER_US,
		  (unsigned long long)(o->active_ns - a->read_ns) / NSEC_PER_US);
	object_ready(d, o);
}

static void post_attach(struct attaching *a)
{
	if (!ttmon_bpf_legacy(a->d->cfg.bpf) && !ttmon_worker_do(a->d->attacher, do_attach, is_attached, a))
		return;
	do_attach(a);
	is_attached(a);
}

/* begun_ns: when its reading began. False: it gets no probes. */
static bool attach(struct ttmon_discover *d, struct object *o, uint64_t begun_ns)
{
	struct attaching *a;

	if (!o->elf.nr_targets && !o->elf.nr_usdts) {
		if (o->elf.kind & TTMON_OBJ_STRIPPED_RT)
			log_debug("%s holds a CUDA runtime without symbols: its calls are seen in the driver", o->path);
		return false;
	}
	a = malloc(sizeof(*a));
	if (!a) {
		o->err = -ENOMEM;
		return false;
	}
	if (!ttmon_share_take(d, o, (uint32_t)(o->elf.nr_targets + o->elf.nr_usdts))) {
		refuse(o);
		free(a);
		return false;
	}
	*a = (struct attaching){
		.d = d, .o = o, .opts = d->cfg.probes, .begun_ns = begun_ns, .read_ns = ttmon_mono_ns()
	};
	a->opts.tt_slot = o->elf.kind & TTMON_OBJ_IS_TT ? ttmon_object_tt_take(d, o) : -1;
	o->attaching = a;
	if (!o->closing)
		post_attach(a);
	return true;
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
	/* Its inode number may be reused for another file. */
	o->st.ctim = (struct timespec){ 0 };
}

static void drop_overwritten(struct ttmon_discover *d, struct object *o)
{
	if (o->probed)
		drop_probes(d, o, "was overwritten");
	o->st.ctim = (struct timespec){ 0 };
	close(o->fd);
	o->fd = -1;
	d->nr_open--;
}

bool ttmon_object_known(struct ttmon_discover *d, const struct ttmon_file_stat *st)
{
	struct object key = { .st = *st }, **found = tfind(&key, &d->objects, cmp_object);

	return found && ttmon_file_same(&(*found)->st, st);
}

/* The entry of a file; NULL: no memory. */
static struct object *object_get(struct ttmon_discover *d, const struct ttmon_file_stat *st, bool create)
{
	struct object key = { .st = *st }, **found = tfind(&key, &d->objects, cmp_object), *o;

	if (found || !create)
		return found ? *found : NULL;
	o = calloc(1, sizeof(*o));
	if (!o)
		return NULL;
	o->d = d;
	o->st = *st;
	o->fd = -1;
	if (!tsearch(o, &d->objects, cmp_object)) {
		free(o);
		return NULL;
	}
	o->next = d->list;
	d->list = o;
	d->nr_objects++;
	return o;
}

/* Errors after which a file's content is unknown; other errors mean that it is no program. */
static bool is_unread(int err)
{
	return err && err != -ENOEXEC && err != -EBADMSG && err != -ENOMEM;
}

struct found {
	struct ttmon_file *file; /* parts that are taken over are zeroed */
	const char *path;
	uint64_t who, mapped_ns, begun_ns;
	bool held;
};

/* It has its probes, or gets none. */
static void object_ready(struct ttmon_discover *d, struct object *o)
{
	struct then *then = TAKE_PTR(o->then);

	if (!o->probed) {
		/* What a held process maps is kept for its symbols; others are opened again if they are needed. */
		if (o->held && !o->unread && d->nr_open < MAX_OPEN) {
			d->nr_open++;
		} else {
			close(o->fd);
			o->fd = -1;
		}
		if (o->unread || o->elf.kind & TTMON_OBJ_STRIPPED_RT || o->over_share)
			tell_object(d, o);
	} else {
		tell_object(d, o);
		ttmon_object_tell_tt(d, o);
		look_at_places(d, o);
	}
	while (then) {
		struct then *next = then->next;

		then->fn(then->ctx, o);
		then = next;
	}
}

static void then_add(struct object *o, struct then *then)
{
	struct then **end = &o->then;

	while (*end)
		end = &(*end)->next;
	then->next = NULL;
	*end = then;
}

/*
 * Takes a file that was read, by its descriptor: probes it if it is new. Takes the fd. then: called at
 * once, or later when its probes are in; NULL: out of memory.
 */
static void object_take(struct ttmon_discover *d, int fd_in, const struct found *f, struct then *then)
{
	_cleanup_close_ int fd = fd_in;
	struct object *o = object_get(d, &f->file->st, false);

	/* Whether it was overwritten meanwhile is checked after that. */
	if (o && o->attaching) {
		then_add(o, then);
		return;
	}
	if (o && o->fd >= 0 && ttmon_file_overwritten(&o->st, &f->file->st))
		drop_overwritten(d, o);
	/* A reused inode number; a file that we keep open cannot have one. */
	if (o && !o->unread && (o->fd >= 0 || ttmon_file_same(&o->st, &f->file->st))) {
		then->fn(then->ctx, o);
		return;
	}
	/* Forgotten in the meantime, and not read; or out of memory. */
	if (!o && !f->file->same)
		o = object_get(d, &f->file->st, true);
	else if (f->file->same)
		o = NULL;
	if (!o) {
		then->fn(then->ctx, NULL);
		return;
	}
	ttmon_elf_info_fini(&o->elf);
	free(o->path);
	o->id = 0;
	d->nr_open -= o->fd >= 0;
	if (o->fd >= 0)
		close(o->fd);
	o->fd = TAKE_FD(fd);
	o->mount = (struct ttmon_mount_at){ 0 };
	o->over_share = 0;
	o->refused = 0;
	o->st = f->file->st;
	o->path = strdup(f->path);
	if (!o->path)
		o->path = strdup("?");
	o->who = f->who;
	o->mapped_ns = f->mapped_ns;
	o->held = f->held;
	o->err = f->file->err;
	o->unread = is_unread(o->err);
	o->elf = f->file->elf;
	memset(&f->file->elf, 0, sizeof(f->file->elf));
	if (!o->err && is_ours(f->path))
		points_only(&o->elf);
	o->then = then;
	then->next = NULL;
	if (o->unread)
		log_warn("%s is not read: %s, continuing without it", o->path, ttmon_probe_reason(o->err));
	else if (!o->err && attach(d, o, f->begun_ns))
		return;
	else if (o->err && o->err != -ENOEXEC)
		log_debug("%s: not a readable ELF file: %s", f->path, strerror(-o->err));
	object_ready(d, o);
}

/* ---- mapped files ---- */

static struct alias *alias_get(struct ttmon_discover *d, const struct ttmon_mapping *m, bool create)
{
	struct alias key = { .major = m->dev_major, .minor = m->dev_minor, .ino = m->ino };
	struct alias **found = tfind(&key, &d->aliases, cmp_alias), *a;

	if (found || !create)
		return found ? *found : NULL;
	a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	*a = key;
	a->d = d;
	a->last = &a->waiters;
	if (!tsearch(a, &d->aliases, cmp_alias)) {
		free(a);
		return NULL;
	}
	return a;
}

/* Aliases that are being read, or could not be, are in a list, since some become late. */
static void set_unread(struct ttmon_discover *d, struct alias *a, bool on)
{
	struct alias **link = &d->reading;

	while (*link && *link != a)
		link = &(*link)->next_unread;
	if (on && !*link) {
		a->next_unread = d->reading;
		d->reading = a;
	} else if (!on && *link) {
		*link = a->next_unread;
	}
}

/* The content of a file that a process has mapped is unknown; to_ns 0: it has become known. */
static void tell_unread(struct alias *a, struct waiter *w, uint64_t to_ns)
{
	struct ttmon_discover *d = a->d;
	struct ttmon_ev_blind e = {
		.h = { .ts_ns = ttmon_mono_ns(), .kind = TTMON_EV_BLIND, .cpu = TTMON_CPU_DAEMON, .tgid = w->tgid },
		.how = TTMON_BLIND_UNREAD,
		.families = TTMON_UNREAD_FAMILIES,
		.mapped_ns = w->mapped_ns ? w->mapped_ns : 1,
		.active_ns = to_ns,
	};

	/* It has an id as an unknown file. It gets another id when it can be read. */
	if (!a->id) {
		a->id = d->next_id++;
		ttmon_fact_object(d->cfg.fact, d->cfg.ctx,
				  &(struct ttmon_object){ .id = a->id, .path = (char *)w->m.name }, (const uint8_t *)"",
				  makedev(a->major, a->minor), a->ino);
	}
	w->late = true;
	e.object = a->id;
	d->cfg.fact(d->cfg.ctx, &e, sizeof(e));
}

static struct waiter *waiter_new(const struct waiter *as)
{
	struct waiter *w = malloc(sizeof(*w));

	if (!w)
		return NULL;
	*w = *as;
	w->next = NULL;
	w->m.name = strdup(as->m.name);
	if (w->m.name)
		return w;
	free(w);
	return NULL;
}

static void not_read(struct alias *a, int err);
static void file_was_read(void *ctx, struct ttmon_helper_reply *reply);

/* Requests the file through the mapping of the first waiter. */
static int post_read(struct alias *a)
{
	const struct object *known = a->object;
	const struct waiter *w = a->waiters;
	struct ttmon_discover *d = a->d;
	struct ttmon_file_ask ask = {
		.tgid = w->tgid,
		.read = true,
		.start = w->m.start,
		.end = w->m.end,
		.ino = a->ino,
		.root = "",
		.path = w->m.name,
	};
	char in[sizeof(ask) + PATH_MAX + 64];
	struct ttmon_helper_call call = {
		.fn = TTMON_JOB_FILE,
		.who = ttmon_discover_who(d, w->tgid),
		.where = makedev(a->major, a->minor),
		.in = in,
		.fd = -1,
		.done = file_was_read,
		.ctx = a,
	};

	/*
	 * Most file systems use one device number: a held call's file need not be read a second time when its
	 * record comes.
	 */
	if (!known)
		known = object_get(d, &(struct ttmon_file_stat){ .dev = call.where, .ino = a->ino }, false);
	if (known && !known->unread)
		ask.known = known->st;
	call.n = ttmon_file_pack(&ask, in, sizeof(in));
	return call.n ? ttmon_helpers_call(d->helpers, &call) : -ENAMETOOLONG;
}

/* Notifies the waiters. */
static void waited(struct alias *a, struct object *o)
{
	struct waiter *w = a->waiters;

	a->waiters = NULL;
	a->last = &a->waiters;
	while (w) {
		struct waiter *next = w->next;
		bool late = w->late;

		/* The file was unknown until now. */
		if (late && o && !o->unread)
			tell_unread(a, w, 0);
		ttmon_discover_waited(a->d, w, o);
		w = next;
	}
}

static void file_is_known(void *ctx, struct object *o)
{
	struct alias *a = ctx;

	a->reading = false;
	set_unread(a->d, a, false);
	a->object = o;
	if (o && o->unread)
		a->again_ns = ttmon_mono_ns() + AGAIN_NS;
	waited(a, o);
	free(TAKE_PTR(a->path));
}

static void file_was_read(void *ctx, struct ttmon_helper_reply *reply)
{
	struct alias *a = ctx;
	struct waiter *w = a->waiters;
	struct ttmon_discover *d = a->d;
	struct ttmon_file file = { 0 };
	int err = reply->err;

	if (err == TTMON_JOB_EGONE && w && w->next) {
		/* The file is requested through the process of the next waiter, not through this one. */
		a->waiters = w->next;
		ttmon_discover_waited(d, w, a->object);
		err = post_read(a);
		if (!err)
			return;
		w = a->waiters;
	}
	if (!err)
		err = ttmon_file_unpack(reply->buf, reply->n, &file);
	if (!err) {
		struct found f = {
			.file = &file,
			.path = a->path,
			.who = ttmon_discover_who(d, w->tgid),
			.mapped_ns = w->mapped_ns,
			.begun_ns = a->asked_ns,
		};

		if (a->err)
			log_info("%s: read now", a->path);
		a->err = 0;
		a->then = (struct then){ .fn = file_is_known, .ctx = a };
		object_take(d, TAKE_FD(reply->fd), &f, &a->then);
		ttmon_elf_info_fini(&file.elf);
		return;
	}
	a->reading = false;
	set_unread(d, a, false);
	if (err != TTMON_JOB_EGONE)
		not_read(a, err);
	waited(a, a->err ? NULL : a->object);
	if (!a->err)
		free(TAKE_PTR(a->path));
}

/* Given up, or refused: the content is unknown. Logged once, until it can be read. */
static void not_read(struct alias *a, int err)
{
	if (!a->err)
		log_warn("%s is not read: %s, continuing without it", a->path,
			 ttmon_probe_reason(err == -ETIMEDOUT ? TTMON_PROBE_ELATE : err));
	a->err = err == -ETIMEDOUT ? TTMON_PROBE_ELATE : err;
	a->again_ns = ttmon_mono_ns() + AGAIN_NS;
	set_unread(a->d, a, true);
	for (struct waiter *w = a->waiters; w; w = w->next)
		if (!w->late)
			tell_unread(a, w, UINT64_MAX);
}

/* Makes w wait for the file, which is read unless that is under way. False: it cannot be read now. */
static bool read_later(struct alias *a, const struct waiter *as)
{
	struct ttmon_discover *d = a->d;
	struct process *p = ttmon_discover_process(d, as->tgid, true);
	struct waiter *w = p ? waiter_new(as) : NULL;
	int err;

	if (!w)
		return false;
	if (a->err && ttmon_before(ttmon_mono_ns(), a->again_ns)) {
		tell_unread(a, w, UINT64_MAX);
		free((char *)w->m.name);
		free(w);
		return false;
	}
	*a->last = w;
	a->last = &w->next;
	p->pending++;
	if (a->reading)
		return true;
	a->reading = true;
	a->asked_ns = ttmon_mono_ns();
	free(a->path);
	a->path = strdup(as->m.name);
	set_unread(d, a, true);
	err = a->path ? post_read(a) : -ENOMEM;
	if (!err)
		return true;
	a->reading = false;
	not_read(a, err);
	/* It is the only waiter. */
	a->waiters = NULL;
	a->last = &a->waiters;
	p->pending--;
	free((char *)w->m.name);
	free(w);
	return false;
}

void ttmon_objects_unlist(struct ttmon_discover *d, const struct list *l)
{
	for (struct alias *a = d->reading; a; a = a->next_unread)
		for (struct waiter *w = a->waiters; w; w = w->next)
			if (w->list == l)
				w->list = NULL;
}

void ttmon_objects_late(struct ttmon_discover *d, bool all)
{
	uint64_t before = ttmon_mono_ns() - LATE_NS;

	for (struct alias *a = d->reading; a; a = a->next_unread) {
		if (!a->reading || (!all && !ttmon_before(a->asked_ns, before)))
			continue;
		for (struct waiter *w = a->waiters; w; w = w->next)
			if (!w->late)
				tell_unread(a, w, UINT64_MAX);
	}
}

/* ---- known files: checks for changes ---- */

/* Files that were taken for known, with a process that has them mapped; sent together. */
struct check {
	struct ttmon_discover *d;
	uint64_t who;
	size_t n;
	struct {
		struct alias key;
		struct waiter *waiter;
	} of[CHECKS_MAX];
	size_t len;
	char in[CHECK_BYTES];
};

static void check_free(struct check *c)
{
	for (size_t i = 0; c && i < c->n; i++) {
		free((char *)c->of[i].waiter->m.name);
		free(c->of[i].waiter);
	}
	free(c);
}

static void on_checked(void *ctx, struct ttmon_helper_reply *reply)
{
	struct check *c = ctx;

	for (size_t i = 0; i < c->n; i++) {
		struct alias **found = tfind(&c->of[i].key, &c->d->aliases, cmp_alias);

		if (!found)
			continue;
		(*found)->checking = false;
		/*
		 * The file is read again; the processes that have it mapped are notified then. If the file is gone,
		 * nothing changes.
		 */
		if (!reply->err && i < reply->n && reply->buf[i] && !(*found)->reading)
			(void)!read_later(*found, c->of[i].waiter);
	}
	check_free(c);
}

void ttmon_objects_send_check(struct ttmon_discover *d)
{
	struct check *c = TAKE_PTR(d->check);
	struct ttmon_helper_call call = { .fn = TTMON_JOB_CHECK, .fd = -1, .done = on_checked, .ctx = c };

	if (!c)
		return;
	call.who = c->who;
	call.where = 1ULL << 62;
	call.in = c->in;
	call.n = c->len;
	if (!ttmon_helpers_call(d->helpers, &call))
		return;
	for (size_t i = 0; i < c->n; i++) {
		struct alias **found = tfind(&c->of[i].key, &d->aliases, cmp_alias);

		if (found)
			(*found)->checking = false;
	}
	check_free(c);
}

/* Checked by name, a little later: until then the file is taken for unchanged. */
static void check_later(struct ttmon_discover *d, struct alias *a, const struct waiter *w)
{
	uint64_t who = ttmon_discover_who(d, w->tgid);
	struct ttmon_check_ask ask = { .st = a->object->st, .tgid = w->tgid, .name = w->m.name };
	struct waiter *copy;
	struct check *c;
	size_t n;

	if (d->check && (d->check->who != who || d->check->n == CHECKS_MAX ||
			 d->check->len + sizeof(ask) + PATH_MAX + 64 > sizeof(d->check->in)))
		ttmon_objects_send_check(d);
	if (!d->check) {
		d->check = malloc(sizeof(*d->check));
		if (!d->check)
			return;
		d->check->d = d;
		d->check->who = who;
		d->check->n = d->check->len = 0;
	}
	c = d->check;
	copy = waiter_new(w);
	ask.same = !strcmp(w->m.name, a->object->path);
	n = copy ? ttmon_check_pack(&ask, c->in + c->len, sizeof(c->in) - c->len) : 0;
	if (!n) {
		if (copy)
			free((char *)copy->m.name);
		free(copy);
		return;
	}
	copy->list = NULL;
	copy->was = a->object;
	copy->was_id = a->object->id;
	c->of[c->n].key = (struct alias){ .major = a->major, .minor = a->minor, .ino = a->ino };
	c->of[c->n++].waiter = copy;
	c->len += n;
	a->checking = true;
}

/* True if the file seems unchanged, as far as that is visible without opening it. */
static bool is_usable(struct ttmon_discover *d, struct alias *a, const struct waiter *w)
{
	struct object *o = a->object;
	struct ttmon_file_stat now;

	/* Processes that map it wait until they are attached. */
	if (o->attaching)
		return false;
	if (o->fd >= 0)
		return !ttmon_file_look(o->fd, &now) && !ttmon_file_overwritten(&o->st, &now);
	/* Its probes were removed, or it could not be read and is tried again. */
	if (!o->st.ctim.tv_sec || (o->unread && !ttmon_before(ttmon_mono_ns(), a->again_ns)))
		return false;
	/* One check for all processes that map it within these milliseconds. */
	if (!a->checking)
		check_later(d, a, w);
	return true;
}

/*
 * A file that is kept open has its inode number for itself, and no two file systems share a device
 * number. If the kernel's numbers are those of stat(), as on most file systems, it is this file.
 */
static struct object *open_object(struct ttmon_discover *d, const struct ttmon_mapping *m)
{
	struct ttmon_file_stat st = { .dev = makedev(m->dev_major, m->dev_minor), .ino = m->ino };
	struct object *o = object_get(d, &st, false);

	return o && o->fd >= 0 && !o->unread ? o : NULL;
}

struct object *ttmon_object_of_mapping(struct ttmon_discover *d, const struct waiter *w, bool *pending)
{
	struct alias *a = alias_get(d, &w->m, true);

	if (!a)
		return NULL;
	if (!a->object && !a->reading)
		a->object = open_object(d, &w->m);
	/* It is read again below. */
	if (a->object && ttmon_share_has_room_again(d, a->object))
		a->object->st.ctim = (struct timespec){ 0 };
	if (!a->reading && a->object && is_usable(d, a, w))
		return a->object;
	*pending = read_later(a, w);
	return *pending ? NULL : a->object;
}

/* ---- files without a mapping ---- */

struct reading {
	struct ttmon_discover *d;
	struct ttmon_object_ask ask;
	char *path;
	uint64_t begun_ns;
	bool opening; /* for the symbols of this object */
	struct ttmon_file_stat st;
	struct then then;
};

static void read_end(void *ctx, struct object *o)
{
	_cleanup_free_ struct reading *r = ctx;

	if (r->ask.done)
		r->ask.done(r->ask.ctx, o);
	free(r->path);
}

static void is_read(struct reading *r, int fd, struct ttmon_file *file)
{
	struct found f = {
		.file = file,
		.path = r->path,
		.who = r->ask.who,
		.mapped_ns = r->ask.held ? r->begun_ns : 0,
		.begun_ns = r->begun_ns,
		.held = r->ask.held,
	};

	object_take(r->d, fd, &f, &r->then);
}

static void on_read(void *ctx, struct ttmon_helper_reply *reply)
{
	struct ttmon_file file = { 0 };
	struct reading *r = ctx;
	struct object *o = NULL;
	int err = reply->err;

	if (!err)
		err = ttmon_file_unpack(reply->buf, reply->n, &file);
	if (!err && r->opening) {
		o = object_get(r->d, &file.st, false);
		if (o && o->fd < 0 && ttmon_file_same(&o->st, &file.st) && r->d->nr_open < MAX_OPEN) {
			o->fd = TAKE_FD(reply->fd);
			r->d->nr_open++;
		}
	} else if (!err) {
		is_read(r, TAKE_FD(reply->fd), &file);
		ttmon_elf_info_fini(&file.elf);
		return;
	}
	if (r->opening) {
		o = object_get(r->d, &r->st, false);
		if (o)
			o->opening = false;
	}
	ttmon_elf_info_fini(&file.elf);
	read_end(r, o);
}

static int post_file(struct reading *r, const struct ttmon_file_ask *file)
{
	char in[sizeof(*file) + 2 * PATH_MAX + 64];
	struct ttmon_helper_call call = {
		.fn = TTMON_JOB_FILE,
		.who = r->ask.who,
		.where = r->ask.where,
		.in = in,
		.n = ttmon_file_pack(file, in, sizeof(in)),
		.fd = r->ask.fd,
		.done = on_read,
		.ctx = r,
	};

	return call.n ? ttmon_helpers_call(r->d->helpers, &call) : -ENAMETOOLONG;
}

int ttmon_object_read(struct ttmon_discover *d, const struct ttmon_object_ask *ask)
{
	struct ttmon_file_ask file = { .tgid = (uint32_t)getpid(), .read = true, .root = ask->root, .path = ask->path };
	struct ttmon_file_stat st;
	struct object *known;
	struct reading *r;
	int err;

	if (ask->fd >= 0) {
		err = ttmon_file_look(ask->fd, &st);
		if (err)
			return err;
		known = object_get(d, &st, false);
		if (known && !known->attaching && !known->unread && !ttmon_file_overwritten(&known->st, &st) &&
		    (known->fd >= 0 || ttmon_file_same(&known->st, &st))) {
			ask->done(ask->ctx, known);
			return 0;
		}
	}
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	*r = (struct reading){ .d = d,
			       .ask = *ask,
			       .path = strdup(ask->path),
			       .begun_ns = ttmon_mono_ns(),
			       .then = { .fn = read_end, .ctx = r } };
	if (ask->fd >= 0 && !r->ask.where)
		r->ask.where = st.dev;
	err = r->path ? 0 : -ENOMEM;
	if (!err && ask->file) {
		is_read(r, fcntl(ask->fd, F_DUPFD_CLOEXEC, 0), ask->file);
		return 0;
	}
	if (!err)
		err = post_file(r, &file);
	if (err) {
		free(r->path);
		free(r);
	}
	return err;
}

/* Its symbols may be requested later, when the process is gone. */
static void open_later(struct ttmon_discover *d, struct object *o, uint32_t tgid, const struct ttmon_mapping *m)
{
	struct ttmon_file_ask file = {
		.tgid = tgid, .start = m->start, .end = m->end, .ino = m->ino, .root = "", .path = m->name
	};
	struct reading *r = calloc(1, sizeof(*r));

	if (!r)
		return;
	*r = (struct reading){
		.d = d,
		.ask = { .who = ttmon_discover_who(d, tgid), .where = makedev(m->dev_major, m->dev_minor), .fd = -1 },
		.opening = true,
		.st = o->st,
	};
	o->opening = !post_file(r, &file);
	if (!o->opening)
		free(r);
}

void ttmon_object_keep(struct ttmon_discover *d, struct object *o, uint32_t tgid, const struct ttmon_mapping *m)
{
	if (o->fd < 0 && !o->opening && d->nr_open < MAX_OPEN)
		open_later(d, o, tgid, m);
	tell_object(d, o);
}

/* ---- reports ---- */

void ttmon_object_tell_blind(struct ttmon_discover *d, uint32_t tgid, const struct object *o, uint64_t mapped_ns,
			     enum ttmon_blind_how how)
{
	bool lasts = how == TTMON_BLIND_STRIPPED || how == TTMON_BLIND_REFUSED || how == TTMON_BLIND_UNREAD;
	struct ttmon_ev_blind e = {
		.h = { .ts_ns = lasts ? ttmon_mono_ns() : o->active_ns,
		       .kind = TTMON_EV_BLIND,
		       .cpu = TTMON_CPU_DAEMON,
		       .tgid = tgid },
		.object = o->id,
		.how = (uint16_t)how,
		.families = how == TTMON_BLIND_REFUSED	? o->refused
			    : how == TTMON_BLIND_UNREAD ? TTMON_UNREAD_FAMILIES
							: families_of(o),
		.mapped_ns = mapped_ns,
		.active_ns = lasts ? UINT64_MAX : o->active_ns,
	};

	d->cfg.fact(d->cfg.ctx, &e, sizeof(e));
}

struct symbol_ctx {
	struct ttmon_discover *d;
	uint32_t object;
	size_t n;
	bool *answered;
	uint64_t offsets[];
};

static void on_symbol(void *ctx, size_t i, const char *name, uint64_t delta)
{
	struct symbol_ctx *s = ctx;

	if (i >= s->n || s->answered[i])
		return;
	s->answered[i] = true;
	ttmon_fact_symbol(s->d->cfg.fact, s->d->cfg.ctx, ttmon_mono_ns(), s->object, s->offsets[i], name ? name : "",
			  delta);
}

static void symbols_end(struct symbol_ctx *s)
{
	for (size_t i = 0; i < s->n; i++)
		on_symbol(s, i, NULL, 0);
	free(s->answered);
	free(s);
}

static void on_symbols(void *ctx, struct ttmon_helper_reply *reply)
{
	if (!reply->err)
		ttmon_symbols_unpack(reply->buf, reply->n, on_symbol, ctx);
	symbols_end(ctx);
}

static int cmp_frame(const void *a, const void *b)
{
	const struct ttmon_frame *x = a, *y = b;

	if (x->object != y->object)
		return x->object < y->object ? -1 : 1;
	return x->offset == y->offset ? 0 : x->offset < y->offset ? -1 : 1;
}

static const struct object *object_of(const struct ttmon_discover *d, uint32_t id)
{
	const struct object *o = d->list;

	while (o && o->id != id)
		o = o->next;
	return id ? o : NULL;
}

uint32_t ttmon_discover_number(struct ttmon_discover *d)
{
	return d->next_id++;
}

const char *ttmon_discover_path(const struct ttmon_discover *d, uint32_t id)
{
	const struct object *o = object_of(d, id);

	return o ? o->path : NULL;
}

/* Prepares a call for the file of an object. o NULL: -ENOENT. */
static int ask_for_file(struct ttmon_discover *d, const struct object *o, struct ttmon_symbols_ask *ask,
			struct ttmon_helper_call *call, char *in, size_t n)
{
	if (!o)
		return -ENOENT;
	ask->st = o->st;
	ask->path = o->path;
	call->who = o->who;
	call->where = o->st.dev;
	call->fd = o->fd;
	call->in = in;
	call->n = ttmon_symbols_pack(ask, in, n);
	return call->n ? ttmon_helpers_call(d->helpers, call) : -ENAMETOOLONG;
}

static void object_symbols(struct ttmon_discover *d, uint32_t id, const uint64_t *offsets, size_t n)
{
	struct symbol_ctx *ctx = malloc(sizeof(*ctx) + n * sizeof(*offsets));
	struct ttmon_symbols_ask ask = { .offsets = offsets, .n = n };
	struct ttmon_helper_call call = { .fn = TTMON_JOB_SYMBOLS, .done = on_symbols, .ctx = ctx };
	char in[sizeof(ask) + PATH_MAX + 64 + SYMBOLS_AT_ONCE * sizeof(*offsets)];

	if (!ctx)
		return;
	*ctx = (struct symbol_ctx){ .d = d, .object = id, .n = n, .answered = calloc(n, sizeof(bool)) };
	memcpy(ctx->offsets, offsets, n * sizeof(*offsets));
	if (!ctx->answered) {
		free(ctx);
		return;
	}
	if (ask_for_file(d, object_of(d, id), &ask, &call, in, sizeof(in)))
		symbols_end(ctx);
}

static void handed(void *ctx _unused_, struct ttmon_helper_reply *reply _unused_)
{
}

void ttmon_discover_hand(struct ttmon_discover *d, uint32_t id, int sock)
{
	struct ttmon_helper_call call = { .fn = TTMON_JOB_OPEN, .to = &sock, .done = handed };
	char in[sizeof(struct ttmon_symbols_ask) + PATH_MAX + 64];
	const struct object *o = object_of(d, id);
	struct ttmon_symbols_ask ask = { 0 };

	/* Reading a file that a user's program serves may block: no such file is passed on. */
	if (o && !o->unread)
		(void)!ask_for_file(d, o, &ask, &call, in, sizeof(in));
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
		for (k = i; k < n && k - i < SYMBOLS_AT_ONCE && sorted[k].object == sorted[i].object; k++)
			offsets[k - i] = sorted[k].offset;
		object_symbols(d, sorted[i].object, offsets, k - i);
	}
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

static void alias_free(void *p)
{
	struct alias *a = p;

	while (a->waiters) {
		struct waiter *w = a->waiters;

		a->waiters = w->next;
		free((char *)w->m.name);
		free(w);
	}
	free(a->path);
	free(a);
}

/*
 * Removes files without targets that are not open, all together, as the names of deleted files would
 * accumulate over months.
 */
static void forget_idle(struct ttmon_discover *d)
{
	struct object **link = &d->list;
	void *kept = NULL;

	/* Files with waiters stay. */
	for (struct alias **a = &d->reading, *next; *a;) {
		next = (*a)->next_unread;
		if ((*a)->reading && tsearch(*a, &kept, cmp_alias)) {
			tdelete(*a, &d->aliases, cmp_alias);
			(*a)->object = NULL;
			a = &(*a)->next_unread;
		} else {
			*a = next;
		}
	}
	tdestroy(d->aliases, alias_free);
	d->aliases = kept;
	while (*link) {
		struct object *o = *link;

		if (o->probed || o->fd >= 0 || o->closing) {
			link = &o->next;
			continue;
		}
		*link = o->next;
		object_free(d, o);
	}
}

void ttmon_objects_check(struct ttmon_discover *d)
{
	ttmon_objects_send_check(d);
	for (struct object *o = d->probed, *next; o; o = next) {
		struct ttmon_object_ask ask = { .who = o->who, .where = o->st.dev, .root = "", .fd = o->fd };
		_cleanup_free_ char *path = NULL;
		_cleanup_close_ int fd = -1;
		struct ttmon_file_stat st;

		next = o->next_probed;
		if (ttmon_file_look(o->fd, &st) || !ttmon_file_overwritten(&o->st, &st))
			continue;
		/*
		 * Read again at once, for processes that have it mapped. While it is still being written it may be no
		 * ELF file: then this is done when it is mapped again.
		 */
		ask.path = path = strdup(o->path);
		ask.fd = fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
		drop_overwritten(d, o);
		if (path && fd >= 0)
			(void)!ttmon_object_read(d, &ask);
	}
}

void ttmon_discover_family(struct ttmon_discover *d, enum ttmon_family family, bool on)
{
	if (on)
		d->cfg.probes.off &= ~(1u << family);
	else
		d->cfg.probes.off |= 1u << family;
	/* Places belong to the bytes that were read: they are not used in a file with other bytes. */
	if (on)
		ttmon_objects_check(d);
	for (struct object *o = d->list; o; o = o->next) {
		int err;

		if (!o->probed)
			continue;
		if (on)
			ttmon_object_wait_closed(d, o);
		err = ttmon_probes_family(&o->probes, o->fd, &o->elf, family, on);
		if (err && err != -EOPNOTSUPP)
			log_warn("%s: cannot put all probes back: %s, continuing without them", o->path,
				 ttmon_probe_reason(err));
		if (!err && (family == TTMON_FAMILY_TENSTORRENT || family == TTMON_FAMILY_DISPATCH))
			ttmon_object_tell_tt(d, o);
	}
}

/*
 * A file without a name, or whose mount is in no namespace any more, and that no process has mapped,
 * can never be mapped again. Only the lists of all processes show that, so this is done for such files
 * only. If the list of one process cannot be read, the files stay. A process whose list may not be
 * read has what it was seen to map, by its records.
 */
struct sweep {
	struct ttmon_discover *d;
	size_t out; /* processes that were not checked yet */
	bool unknown;
	size_t n;
	char mapped[SWEEP_MAX];
	struct ttmon_file_stat of[SWEEP_MAX];
	uint64_t ask[1 + SWEEP_MAX]; /* a process, and their inode numbers */
};

/* One process was checked; after the last one the result is known. */
static void swept(struct sweep *s)
{
	if (--s->out)
		return;
	for (size_t i = 0; !s->unknown && i < s->n; i++) {
		struct object *o = object_get(s->d, &s->of[i], false);

		if (s->mapped[i] || !o || o->fd < 0 || o->attaching)
			continue;
		if (o->probed)
			drop_probes(s->d, o, "is gone and no longer mapped");
		close(o->fd);
		o->fd = -1;
		s->d->nr_open--;
	}
	s->d->sweeping = false;
	free(s);
}

struct swept_process {
	struct sweep *s;
	uint32_t tgid;
};

static void look_at_seen(struct sweep *s, uint32_t tgid)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct object *o = object_get(s->d, &s->of[i], false);

		s->mapped[i] |= o && ttmon_discover_has(s->d, tgid, o);
	}
}

static void on_mapped(void *ctx, struct ttmon_helper_reply *reply)
{
	_cleanup_free_ struct swept_process *p = ctx;
	struct sweep *s = p->s;

	if (reply->err == -EACCES || reply->err == -EPERM)
		look_at_seen(s, p->tgid);
	else
		s->unknown |= reply->err && reply->err != -ESRCH;
	for (size_t i = 0; !reply->err && i < MIN(s->n, reply->n); i++)
		s->mapped[i] |= reply->buf[i];
	swept(s);
}

static void ask_mapped(struct sweep *s, uint32_t tgid)
{
	struct swept_process *p = malloc(sizeof(*p));
	struct ttmon_helper_call call = {
		.fn = TTMON_JOB_MAPPED,
		.who = ttmon_discover_who(s->d, tgid),
		.where = 1ULL << 63 | tgid,
		.in = s->ask,
		.n = (1 + s->n) * sizeof(*s->ask),
		.fd = -1,
		.done = on_mapped,
		.ctx = p,
	};

	s->ask[0] = tgid;
	if (p)
		*p = (struct swept_process){ s, tgid };
	if (!p || ttmon_helpers_call(s->d->helpers, &call)) {
		free(p);
		s->unknown = true;
	} else {
		s->out++;
	}
}

static void look_for_gone(struct ttmon_discover *d)
{
	struct sweep *s = d->sweeping ? NULL : calloc(1, sizeof(*s));
	struct ttmon_file_stat st;
	struct dirent *ent;
	DIR *dir;

	if (!s)
		return;
	for (struct object *o = d->list; o && s->n < SWEEP_MAX; o = o->next) {
		if (o->fd < 0 || ttmon_file_look(o->fd, &st) || (st.nlink && ttmon_mount_is_there(o->fd, &o->mount)))
			continue;
		s->ask[1 + s->n] = o->st.ino;
		s->of[s->n++] = o->st;
	}
	dir = s->n ? opendir("/proc") : NULL;
	if (!dir) {
		free(s);
		return;
	}
	s->d = d;
	s->out = 1;
	d->sweeping = true;
	while ((ent = readdir(dir)))
		if (isdigit((unsigned char)ent->d_name[0]))
			ask_mapped(s, (uint32_t)strtoul(ent->d_name, NULL, 10));
	closedir(dir);
	swept(s);
}

void ttmon_objects_sweep(struct ttmon_discover *d, bool any_process)
{
	/* Kept for the symbols of traced processes, so only as long as there are any. */
	for (struct object *o = d->list; o && !any_process; o = o->next) {
		if (o->probed || o->fd < 0 || o->attaching)
			continue;
		close(o->fd);
		o->fd = -1;
		d->nr_open--;
	}
	look_for_gone(d);
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
			.dev = o->st.dev,
			.ino = o->st.ino,
			.kind = o->elf.kind,
			.tt_slot = o->has_slot ? o->tt_slot : -1,
			.tt_has = o->has_slot ? ttmon_probes_tt_has(&o->probes, &o->elf) : 0,
			.rt_major = o->elf.rt_major,
			.build_id = o->elf.build_id,
			.build_id_len = o->elf.build_id_len,
			.probes = o->probed ? &o->probes : NULL,
			.missing = o->elf.missing,
			.err = o->err,
			.unread = o->unread,
			.mapped_ns = o->mapped_ns,
			.active_ns = o->active_ns,
			.held = o->held,
		};

		if (o->probed || o->unread || (o->elf.kind & TTMON_OBJ_STRIPPED_RT) || (o->err && o->elf.nr_targets))
			cb(ctx, &s);
	}
	for (const struct alias *a = d->reading; a; a = a->next_unread) {
		struct ttmon_object_state s = {
			.path = a->path ? a->path : "?",
			.dev = makedev(a->major, a->minor),
			.ino = a->ino,
			.tt_slot = -1,
			.err = a->err ? a->err : TTMON_PROBE_ELATE,
			.unread = true,
			.mapped_ns = a->waiters ? a->waiters->mapped_ns : 0,
		};

		if (a->err || ttmon_before(a->asked_ns, ttmon_mono_ns() - LATE_NS))
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

	(void)ttmon_discover_drain(d);
	ttmon_worker_drain(d->closer);
	for (struct object *o = d->list; o; o = o->next) {
		n += o->probes.nr_links;
		o->probes.close = NULL;
	}
	links = malloc((n + 1) * sizeof(*links));
	n = 0;
	for (struct object *o = d->list; links && o; o = o->next)
		n += ttmon_probes_give_links(&o->probes, links + n);
	if (n)
		ttmon_bpf_detach_many(d->cfg.bpf, links, n);
	check_free(d->check);
	tdestroy(d->aliases, alias_free);
	while (d->list) {
		struct object *o = d->list;

		d->list = o->next;
		object_free(d, o);
	}
}
