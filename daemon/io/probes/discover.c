// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/io/probes/discover.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <search.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "daemon/io/host/facts.h"
#include "daemon/io/objects/shstk.h"
#include "daemon/io/probes/discover_int.h"
#include "lib/base/grow.h"
#include "lib/os/clock.h"
#include "lib/os/log.h"
#include "lib/os/proc.h"

#define LEAVE_NS (100 * NSEC_PER_MS)
#define LIST_NS	 (50 * NSEC_PER_MS)
#define WHO_NS	 (10 * NSEC_PER_MS)
#define WHO_GONE UINT64_MAX /* a process that is gone: its user is unknown */

static int cmp_process(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return x->tgid == y->tgid ? 0 : x->tgid < y->tgid ? -1 : 1;
}

static void process_free(void *p)
{
	free(((struct process *)p)->settled);
	free(p);
}

int ttmon_discover_new(const struct ttmon_discover_cfg *cfg, struct ttmon_discover **ret)
{
	struct ttmon_discover *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	d->cfg = *cfg;
	d->helpers = cfg->helpers;
	d->next_id = 1;
	d->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = d->event_fd < 0 ? -errno : ttmon_worker_new("ttmond-attach", d->event_fd, &d->attacher);
	if (!err)
		err = ttmon_worker_new("ttmond-detach", d->event_fd, &d->closer);
	if (err) {
		ttmon_worker_free(d->attacher);
		if (d->event_fd >= 0)
			close(d->event_fd);
		free(d);
		return err;
	}
	*ret = d;
	return 0;
}

int ttmon_discover_fd(const struct ttmon_discover *d)
{
	return d->event_fd;
}

void ttmon_discover_turn(struct ttmon_discover *d)
{
	eventfd_t n;

	(void)!eventfd_read(d->event_fd, &n);
	ttmon_worker_turn(d->closer);
	ttmon_worker_turn(d->attacher);
}

static void nothing(void *ctx)
{
	(void)ctx;
}

int ttmon_discover_in_threads(struct ttmon_discover *d, void (*fn)(void *ctx), void *ctx)
{
	int err = ttmon_worker_do(d->closer, fn, nothing, ctx);

	ttmon_worker_drain(d->closer);
	if (!err)
		err = ttmon_worker_do(d->attacher, fn, nothing, ctx);
	ttmon_worker_drain(d->attacher);
	return err;
}

bool ttmon_discover_drain(struct ttmon_discover *d)
{
	bool any = false;

	/* Objects that wait for links to be closed are attached after that. */
	for (const struct object *o = d->list; o; o = o->next)
		if (o->attaching) {
			any = true;
			ttmon_object_wait_closed(d, o);
		}
	ttmon_worker_drain(d->attacher);
	return any;
}

static void list_free(struct list *l)
{
	ttmon_listing_free(l->l);
	free(l->objects);
	free(l);
}

void ttmon_discover_free(struct ttmon_discover *d)
{
	if (!d)
		return;
	tdestroy(d->processes, process_free);
	ttmon_objects_free(d);
	ttmon_worker_free(d->attacher);
	ttmon_worker_free(d->closer);
	if (d->event_fd >= 0)
		close(d->event_fd);
	free(d->shares);
	while (d->lists) {
		struct list *l = d->lists;

		d->lists = l->next;
		list_free(l);
	}
	free(d);
}

void ttmon_discover_redirect(struct ttmon_discover *d, void (*fact)(void *ctx, const void *rec, size_t size), void *ctx)
{
	d->cfg.fact = fact;
	d->cfg.ctx = ctx;
}

struct process *ttmon_discover_process(struct ttmon_discover *d, uint32_t tgid, bool create)
{
	struct process key = { .tgid = tgid }, **found = tfind(&key, &d->processes, cmp_process), *p;

	if (found || !create)
		return found ? *found : NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->tgid = tgid;
	if (!tsearch(p, &d->processes, cmp_process)) {
		free(p);
		return NULL;
	}
	return p;
}

static void forget(struct ttmon_discover *d, struct process *p)
{
	if (p->switches)
		(void)!ttmon_bpf_set_switcher(d->cfg.bpf, p->tgid, 0);
	if (p->python)
		(void)!ttmon_bpf_set_python(d->cfg.bpf, p->tgid, NULL);
	tdelete(p, &d->processes, cmp_process);
	process_free(p);
}

/* It has ended, and its mappings were reported, or are late. */
static void leave(struct ttmon_discover *d, struct process *p)
{
	void (*gone)(void *ctx, uint32_t tgid) = p->gone;
	void *ctx = p->ctx;
	uint32_t tgid = p->tgid;

	d->nr_gone--;
	forget(d, p);
	gone(ctx, tgid);
}

void ttmon_discover_leave(struct ttmon_discover *d, uint32_t tgid, void (*gone)(void *ctx, uint32_t tgid), void *ctx)
{
	struct process *p = ttmon_discover_process(d, tgid, false);

	if (!p) {
		gone(ctx, tgid);
		return;
	}
	d->nr_gone += !p->gone_ns;
	p->gone_ns = ttmon_mono_ns();
	p->gone = gone;
	p->ctx = ctx;
	if (!p->pending)
		leave(d, p);
}

void ttmon_discover_unpend(struct ttmon_discover *d, uint32_t tgid)
{
	struct process *p = ttmon_discover_process(d, tgid, false);

	if (!p || !p->pending || --p->pending)
		return;
	if (p->gone_ns)
		leave(d, p);
	else if (!p->listed && !p->nr_settled && !p->unprobed && !p->switches && !p->start_ns)
		forget(d, p);
}

/* twalk() has no context argument. */
static struct {
	uint64_t before_ns;
	struct process *found;
} overdue;

static void find_overdue(const void *node, VISIT which, int depth)
{
	struct process *p = *(struct process *const *)node;

	(void)depth;
	if ((which == postorder || which == leaf) && p->gone_ns && ttmon_before(p->gone_ns, overdue.before_ns))
		overdue.found = p;
}

/* Processes whose files take too long. */
static void leave_overdue(struct ttmon_discover *d)
{
	while (d->nr_gone) {
		overdue.before_ns = ttmon_mono_ns() - LEAVE_NS;
		overdue.found = NULL;
		twalk(d->processes, find_overdue);
		if (!overdue.found)
			break;
		leave(d, overdue.found);
	}
}

uint64_t ttmon_discover_who(struct ttmon_discover *d, uint32_t tgid)
{
	uint64_t now = ttmon_mono_ns();
	struct stat st, own;
	char path[64];

	/* Records of a process come together. */
	if (d->who_tgid == tgid && now - d->who_ns < WHO_NS)
		return d->who;
	d->who_tgid = tgid;
	d->who_ns = now;
	d->who = WHO_GONE;
	snprintf(path, sizeof(path), "/proc/%u", tgid);
	if (!stat(path, &st)) {
		d->who = st.st_uid;
		snprintf(path, sizeof(path), "/proc/%u/ns/mnt", tgid);
		if (!st.st_uid && !stat(path, &st) && !stat("/proc/self/ns/mnt", &own) && st.st_ino != own.st_ino)
			d->who = 1ULL << 32 | st.st_ino;
	}
	return d->who;
}

static bool is_settled(const struct process *p, uint32_t object)
{
	for (uint32_t i = 0; p && i < p->nr_settled; i++)
		if (p->settled[i] == object)
			return true;
	return false;
}

bool ttmon_discover_has(struct ttmon_discover *d, uint32_t tgid, const struct object *o)
{
	return o->id && is_settled(ttmon_discover_process(d, tgid, false), o->id);
}

/*
 * Without memory the report is repeated, or a gap is reported where there was none: too much, never
 * too little.
 */
static void settle(struct ttmon_discover *d, uint32_t tgid, uint32_t object)
{
	struct process *p = ttmon_discover_process(d, tgid, true);
	uint32_t *v;

	if (!p || is_settled(p, object))
		return;
	v = realloc(p->settled, (p->nr_settled + 1) * sizeof(*v));
	if (!v)
		return;
	p->settled = v;
	v[p->nr_settled++] = object;
}

/*
 * True if the process began when the probes of this object were active already. /proc has its start
 * rounded down to a clock tick.
 */
static bool is_younger(const struct process *p, uint32_t tgid, const struct object *o)
{
	uint64_t tick_ns = NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t asleep_ns = ttmon_clock_ns(CLOCK_BOOTTIME) - ttmon_mono_ns(), start;

	if (p && p->start_ns)
		return p->start_ns >= o->active_ns;
	start = ttmon_proc_start(tgid);
	return start && start * tick_ns >= o->active_ns + asleep_ns;
}

/*
 * A process has this object mapped since mapped_ns (0: unknown): checks whether its probes were there
 * in time. Reported once, with one exception.
 */
static void look_back(struct ttmon_discover *d, uint32_t tgid, const struct object *o, uint64_t mapped_ns)
{
	const struct process *p = ttmon_discover_process(d, tgid, false);

	/* Every time: an exec ends it, and what the earlier program did says nothing about this one. */
	if (o->elf.kind & TTMON_OBJ_STRIPPED_RT)
		ttmon_object_tell_blind(d, tgid, o, mapped_ns ? mapped_ns : 1, TTMON_BLIND_STRIPPED);
	if (is_settled(p, o->id))
		return;
	if (o->unread)
		ttmon_object_tell_blind(d, tgid, o, mapped_ns, TTMON_BLIND_UNREAD);
	if (o->refused)
		ttmon_object_tell_blind(d, tgid, o, mapped_ns, TTMON_BLIND_REFUSED);
	if (o->over_share)
		ttmon_share_mapped(d, o, tgid);
	if (o->probed && (mapped_ns ? ttmon_before(mapped_ns, o->active_ns) : !is_younger(p, tgid, o))) {
		/* It may never make a call that is seen, but what it held until now ends with it. */
		ttmon_bpf_follow_pid(d->cfg.bpf, tgid);
		ttmon_object_tell_blind(d, tgid, o, mapped_ns, TTMON_BLIND_WINDOW);
	}
	settle(d, tgid, o->id);
}

/* A program switches its shadow stack on at its start, so the library of a later mapping finds it. */
static void look_at_shadow_stack(struct ttmon_discover *d, uint32_t tgid, const struct object *o)
{
	struct process *p = o->probed && !d->cfg.probes.no_returns ? ttmon_discover_process(d, tgid, false) : NULL;
	char status[4096];

	if (!p || p->shstk || ttmon_proc_read(NULL, tgid, "status", status, sizeof(status)) <= 0 ||
	    !ttmon_shstk_is_on(status))
		return;
	p->shstk = true;
	if (ttmon_shstk_breaks(ttmon_bpf_kernel_has_function))
		log_warn("process %u has a shadow stack, which this kernel (before Linux 6.11) does not adjust for "
			 "return probes: a probed call may end it with SIGSEGV (--no-return-probes)",
			 tgid);
}

/*
 * Return probes and coroutines are not compatible (io/objects/switches.h). when: of enum
 * TTMON_SWITCHER_. The consequences are logged once per process, and only if it has something with
 * probes.
 */
static void look_at_stacks(struct ttmon_discover *d, uint32_t tgid, const struct object *o, unsigned int when)
{
	struct process *p = o->elf.switches && !d->cfg.returns_all ? ttmon_discover_process(d, tgid, true) : NULL;
	int err = 0;

	/* Every time: an exec that was not held has ended it in the kernel. */
	if (p) {
		p->switches |= when == TTMON_SWITCHER_NOW;
		err = ttmon_bpf_set_switcher(d->cfg.bpf, tgid, when);
		if (err && err != -EOPNOTSUPP)
			log_warn("process %u switches stacks, and cannot be left out: %s", tgid, strerror(-err));
		log_debug("process %u can switch stacks: calls of its own allocator get no return probe: %s", tgid,
			  o->path);
	}
	if (when == TTMON_SWITCHER_NOW)
		look_at_shadow_stack(d, tgid, o);
	p = ttmon_discover_process(d, tgid, false);
	if (!p || !p->switches || p->said || !o->probed)
		return;
	p->said = true;
	if (!ttmon_bpf_session(d->cfg.bpf))
		log_warn("process %u can switch stacks (coroutines), and this kernel cannot leave it out: a call that "
			 "yields may end it with SIGILL (--no-return-probes)",
			 tgid);
}

/*
 * The interpreter that it has mapped there, if it is one. A second one would have frames of its own:
 * then neither's are shown. Each time: an exec has ended it in the kernel.
 */
static void look_at_python(struct ttmon_discover *d, uint32_t tgid, const struct object *o,
			   const struct ttmon_mapping *m)
{
	const struct ttmon_python *py = &o->elf.python;
	struct ttmon_py_layout layout = py->layout;
	struct process *p = py->build && m->prot & PROT_EXEC ? ttmon_discover_process(d, tgid, true) : NULL;
	const char *why = p ? ttmon_python_refused(py) : NULL;
	int err = 0;

	if (!p)
		return;
	if (!why && p->python_of && p->python_of != o->id)
		why = "a second interpreter in one process";
	p->python = !why;
	layout.runtime = m->start - m->pgoff + py->from_text;
	layout.text_start = m->start;
	layout.text_end = m->end;
	err = ttmon_bpf_set_python(d->cfg.bpf, tgid, why ? NULL : &layout);
	if (err)
		why = strerror(-err);
	if (why && p->python_of != o->id)
		log_warn("process %u: its Python lines are not known: %s is %s (version %x)", tgid, o->path, why,
			 py->version >> 16);
	p->python_of = o->id;
}

static bool is_of_interest(const struct object *o)
{
	return o->id && (o->probed || o->unread || o->over_share || o->elf.kind & TTMON_OBJ_STRIPPED_RT);
}

/* It uses a GPU through unknown code: a runtime that was not recognised, or code of its own. */
static void tell_unprobed(struct ttmon_discover *d, uint32_t tgid, uint64_t ts_ns)
{
	struct process *p = ttmon_discover_process(d, tgid, true);
	struct ttmon_ev_blind e = {
		.h = { .ts_ns = ts_ns, .kind = TTMON_EV_BLIND, .cpu = TTMON_CPU_DAEMON, .tgid = tgid },
		.how = TTMON_BLIND_UNPROBED,
		.families = TTMON_FAMILIES_CUDA,
		.active_ns = UINT64_MAX,
	};

	if (!p || p->unprobed)
		return;
	p->unprobed = true;
	log_warn("process %u uses a GPU and has no library with functions that can be probed: what it does is not seen",
		 tgid);
	d->cfg.fact(d->cfg.ctx, &e, sizeof(e));
}

/* Reports its mappings, as far as they are known, in one piece. */
static void list_tell(struct list *list)
{
	const struct ttmon_listing *l = list->l;
	struct ttmon_discover *d = list->d;
	struct ttmon_ev_maps_done e = {
		.h = { .ts_ns = l->done_ns, .kind = TTMON_EV_MAPS_DONE, .cpu = TTMON_CPU_DAEMON, .tgid = l->tgid },
		.from_ns = l->from_ns,
		.count = (uint32_t)l->n,
	};
	struct process *p = ttmon_discover_process(d, l->tgid, false);
	bool gpu = false, probed = false;

	/* Helpers answer in any order: what it had mapped before, or before it executed another program. */
	if (p && ttmon_before(l->from_ns, p->list_ns))
		return;
	if (p && list->tell)
		p->list_ns = l->from_ns;
	/* Found again where it is still so: it may have executed another program. */
	if (p) {
		p->switches = p->python = false;
		p->python_of = 0;
	}
	for (size_t i = 0; i < l->n; i++) {
		const struct ttmon_mapping *m = &l->maps[i];
		struct object *o = list->objects[i];

		if (o && list->tell)
			ttmon_object_keep(d, o, l->tgid, m);
		if (o)
			look_at_stacks(d, l->tgid, o, TTMON_SWITCHER_NOW);
		if (o)
			look_at_python(d, l->tgid, o, m);
		if (o && is_of_interest(o))
			look_back(d, l->tgid, o, 0);
		probed |= o && o->probed;
		gpu |= !strncmp(m->name, "/dev/nvidia", sizeof("/dev/nvidia") - 1);
		if (list->tell)
			ttmon_fact_map(d->cfg.fact, d->cfg.ctx, l->from_ns, l->tgid, 0, m, o ? o->id : 0);
	}
	if (gpu && !probed && !list->pending)
		tell_unprobed(d, l->tgid, l->from_ns);
	if (list->tell)
		d->cfg.fact(d->cfg.ctx, &e, sizeof(e));
}

/* The list was reported, or there is nothing to report: removes it from the list of lists. */
static void list_end(struct list *l)
{
	struct ttmon_discover *d = l->d;
	struct list **link = &d->lists;

	while (*link != l)
		link = &(*link)->next;
	*link = l->next;
	if (l->l)
		list_tell(l);
	if (l->hooks.told)
		l->hooks.told(l->hooks.ctx, l->tgid);
	ttmon_discover_unpend(d, l->tgid);
	list_free(l);
}

/* Reports lists that wait too long for files; those files are reported when they are known. */
static void lists_due(struct ttmon_discover *d)
{
	uint64_t now = ttmon_mono_ns();

	for (struct list *l = d->lists, *next; l; l = next) {
		next = l->next;
		if (!l->l || ttmon_before(now, l->due_ns))
			continue;
		ttmon_objects_unlist(d, l);
		list_end(l);
	}
}

static void list_look(struct list *list)
{
	struct waiter w = { .tgid = list->tgid, .list = list };

	list->pending = 1; /* until all of them were handled */
	for (size_t i = 0; i < list->l->n; i++) {
		bool pending = false;

		w.m = list->l->maps[i];
		w.at = i;
		if (!(w.m.prot & PROT_EXEC) || !w.m.ino)
			continue;
		list->objects[i] = ttmon_object_of_mapping(list->d, &w, &pending);
		list->pending += pending;
	}
	ttmon_objects_send_check(list->d);
	if (!--list->pending)
		list_end(list);
}

/* Its mappings are unknown. */
static void tell_unlisted(struct ttmon_discover *d, uint32_t tgid)
{
	struct ttmon_ev_blind e = {
		.h = { .ts_ns = ttmon_mono_ns(), .kind = TTMON_EV_BLIND, .cpu = TTMON_CPU_DAEMON, .tgid = tgid },
		.how = TTMON_BLIND_UNREAD,
		.families = TTMON_UNREAD_FAMILIES,
		.mapped_ns = 1,
		.active_ns = UINT64_MAX,
	};

	d->cfg.fact(d->cfg.ctx, &e, sizeof(e));
}

static void list_was_read(void *ctx, struct ttmon_helper_reply *reply)
{
	struct list *l = ctx;
	int err = reply->err;

	if (!err)
		err = ttmon_listing_unpack(reply->buf, reply->n, l->d->cfg.fact, l->d->cfg.ctx, &l->l);
	if (!err) {
		l->objects = calloc(l->l->n + 1, sizeof(*l->objects));
		if (!l->objects) {
			ttmon_listing_free(TAKE_PTR(l->l));
			err = -ENOMEM;
		}
	}
	if (err && err != -ESRCH && l->tell)
		log_warn("cannot read the mappings of process %u: %s", l->tgid,
			 ttmon_probe_reason(err == -ETIMEDOUT ? TTMON_PROBE_ELATE : err));
	if (err == -ETIMEDOUT || err == -EIO)
		tell_unlisted(l->d, l->tgid);
	if (l->hooks.read)
		l->hooks.read(l->hooks.ctx, l->tgid);
	if (err) {
		list_end(l);
		return;
	}
	l->due_ns = ttmon_mono_ns() + LIST_NS;
	list_look(l);
}

void ttmon_discover_list(struct ttmon_discover *d, uint32_t tgid, bool tell, const struct ttmon_list_hooks *hooks)
{
	struct ttmon_list_ask ask = { .tgid = tgid, .names = tell };
	struct process *p = ttmon_discover_process(d, tgid, true);
	struct list *l = p ? calloc(1, sizeof(*l)) : NULL;
	struct ttmon_helper_call call = {
		.fn = TTMON_JOB_LIST,
		.who = ttmon_discover_who(d, tgid),
		.where = 1ULL << 63 | tgid,
		.in = &ask,
		.n = sizeof(ask),
		.fd = -1,
		.done = list_was_read,
		.ctx = l,
	};
	int err = l ? 0 : -ENOMEM;

	if (l) {
		*l = (struct list){ .d = d, .tgid = tgid, .tell = tell, .hooks = *hooks, .next = d->lists };
		d->lists = l;
		p->pending++;
		/* First, so that no mapping falls between list and records. */
		p->listed |= tell;
		err = ttmon_helpers_call(d->helpers, &call);
	}
	if (!err)
		return;
	if (tell)
		log_warn("cannot read the mappings of process %u: %s", tgid, strerror(-err));
	tell_unlisted(d, tgid);
	if (hooks->read)
		hooks->read(hooks->ctx, tgid);
	if (l)
		list_end(l);
	else if (hooks->told)
		hooks->told(hooks->ctx, tgid);
}

int ttmon_discover_follow(struct ttmon_discover *d, uint32_t tgid, uint64_t start_ns)
{
	struct process *p = ttmon_discover_process(d, tgid, true);

	if (!p)
		return -ENOMEM;
	p->listed = true;
	if (start_ns && p->start_ns && p->start_ns != start_ns) {
		/* It is another process by now; the end of the earlier one was not reported. */
		p->nr_settled = 0;
		p->unprobed = p->switches = p->said = p->shstk = p->python = false;
		p->python_of = 0;
	}
	if (start_ns)
		p->start_ns = start_ns;
	return 0;
}

struct followed {
	uint32_t *tgids;
	size_t n, cap;
};

static void find_followed(const void *node, VISIT which, void *closure)
{
	const struct process *p = *(struct process *const *)node;
	struct followed *f = closure;

	if ((which == postorder || which == leaf) && p->listed && !p->gone_ns &&
	    !TTMON_GROW(f->tgids, f->cap, f->n + 1, 64))
		f->tgids[f->n++] = p->tgid;
}

void ttmon_discover_each_followed(struct ttmon_discover *d, void (*cb)(void *ctx, uint32_t tgid), void *ctx)
{
	struct followed f = { 0 };

	/* cb may change the table. */
	twalk_r(d->processes, find_followed, &f);
	for (size_t i = 0; i < f.n; i++)
		cb(ctx, f.tgids[i]);
	free(f.tgids);
}

uint64_t ttmon_discover_start(struct ttmon_discover *d, uint32_t tgid)
{
	const struct process *p = ttmon_discover_process(d, tgid, false);

	return p ? p->start_ns : 0;
}

int ttmon_discover_scan(struct ttmon_discover *d)
{
	DIR *dir = opendir("/proc");
	struct dirent *ent;

	if (!dir)
		return -errno;
	/* A process that goes away meanwhile is no error. */
	while ((ent = readdir(dir)))
		if (isdigit((unsigned char)ent->d_name[0]))
			ttmon_discover_list(d, (uint32_t)strtoul(ent->d_name, NULL, 10), false,
					    &(struct ttmon_list_hooks){ 0 });
	closedir(dir);
	return 0;
}

int ttmon_discover_children(uint32_t tgid, int (*cb)(void *ctx, uint32_t tgid), void *ctx)
{
	char path[64], name[32];
	struct dirent *ent;
	DIR *dir;
	int err = 0;

	snprintf(path, sizeof(path), "/proc/%u/task", tgid);
	dir = opendir(path);
	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while (!err && (ent = readdir(dir))) {
		_cleanup_fclose_ FILE *f = NULL;
		unsigned int child;

		if (!isdigit((unsigned char)ent->d_name[0]))
			continue;
		snprintf(name, sizeof(name), "%.20s", ent->d_name);
		snprintf(path, sizeof(path), "/proc/%u/task/%s/children", tgid, name);
		f = fopen(path, "re");
		while (f && !err && fscanf(f, "%u", &child) == 1) {
			err = cb(ctx, child);
			if (!err)
				err = ttmon_discover_children(child, cb, ctx);
			if (err == -ESRCH)
				err = 0;
		}
	}
	closedir(dir);
	return err;
}

/* Probes on a library that only untraced processes use would cost them, and report nothing. */
static bool is_wanted(const struct ttmon_discover *d, const struct process *p, uint32_t tgid)
{
	return d->cfg.all || (p && p->listed) || ttmon_bpf_has_pid(d->cfg.bpf, tgid);
}

static struct waiter waiter_of(const struct ttmon_mmap2_rec *rec)
{
	return (struct waiter){
		.tgid = rec->pid,
		.tid = rec->tid,
		.mapped_ns = rec->ts_ns,
		.m = { .start = rec->addr,
		       .end = rec->addr + rec->len,
		       .pgoff = rec->pgoff,
		       .prot = rec->prot,
		       .dev_major = rec->maj,
		       .dev_minor = rec->min,
		       .ino = rec->ino,
		       .name = rec->filename },
	};
}

/* Handles the mapping of a record when its file is known. */
static void mapping_known(struct ttmon_discover *d, const struct waiter *w, struct object *o)
{
	struct process *p = ttmon_discover_process(d, w->tgid, false);
	bool listed = p && p->listed && !w->first;

	if (w->was == o && w->was_id == o->id)
		return;
	look_at_stacks(d, w->tgid, o, TTMON_SWITCHER_NOW);
	look_at_python(d, w->tgid, o, &w->m);
	if (listed)
		ttmon_object_keep(d, o, w->tgid, &w->m);
	/* At once: closing slots report what was seen in them. */
	if (is_of_interest(o))
		look_back(d, w->tgid, o, w->mapped_ns);
	if (listed)
		ttmon_fact_map(d->cfg.fact, d->cfg.ctx, w->mapped_ns ? w->mapped_ns : ttmon_mono_ns(), w->tgid, w->tid,
			       &w->m, o->id);
}

void ttmon_discover_waited(struct ttmon_discover *d, struct waiter *w, struct object *o)
{
	struct list *l = w->list;

	if (l) {
		l->objects[w->at] = o;
		if (!--l->pending)
			list_end(l);
	} else if (o) {
		mapping_known(d, w, o);
	}
	ttmon_discover_unpend(d, w->tgid);
	free((char *)w->m.name);
	free(w);
}

/* Code that the program generates: call stacks pass through it, and end there. */
static void own_code(struct ttmon_discover *d, const struct waiter *w)
{
	const struct process *p = ttmon_discover_process(d, w->tgid, false);
	struct ttmon_mapping m = w->m;

	if (!p || !p->listed)
		return;
	/* As in /proc/PID/maps. */
	if (!strcmp(m.name, "//anon"))
		m.name = "";
	ttmon_fact_map(d->cfg.fact, d->cfg.ctx, w->mapped_ns, w->tgid, w->tid, &m, 0);
}

static void record(struct ttmon_discover *d, const struct waiter *w)
{
	bool pending = false;
	struct object *o;

	if (!w->m.ino) {
		if (w->m.prot & PROT_EXEC && !w->first)
			own_code(d, w);
		return;
	}
	o = ttmon_object_of_mapping(d, w, &pending);
	if (o)
		mapping_known(d, w, o);
}

void ttmon_discover_first(struct ttmon_discover *d, const struct ttmon_mmap2_rec *rec)
{
	struct waiter w = waiter_of(rec);

	w.first = true;
	if (ttmon_object_is_named(rec->filename) && is_wanted(d, ttmon_discover_process(d, rec->pid, false), rec->pid))
		record(d, &w);
}

void ttmon_discover_mapping(struct ttmon_discover *d, const struct ttmon_mmap2_rec *rec)
{
	struct waiter w = waiter_of(rec);

	if (is_wanted(d, ttmon_discover_process(d, rec->pid, false), rec->pid))
		record(d, &w);
}

/* A held process waits until this is done: until the object, if it has probes, has them. */
struct held_file {
	struct ttmon_discover *d;
	uint32_t tgid, next;
	bool exec;
	void (*done)(void *ctx, const struct ttmon_held_object *held);
	void *ctx;
};

static void held_known(void *ctx, struct object *o)
{
	struct held_file h = *(struct held_file *)ctx;
	struct ttmon_held_object held = { 0 };
	bool probed = o && o->probed;

	free(ctx);
	if (o)
		look_at_stacks(h.d, h.tgid, o, h.exec ? TTMON_SWITCHER_EXEC : TTMON_SWITCHER_NOW);
	if (probed && o->refused && !is_settled(ttmon_discover_process(h.d, h.tgid, false), o->id))
		ttmon_object_tell_blind(h.d, h.tgid, o, ttmon_mono_ns(), TTMON_BLIND_REFUSED);
	/* It waits, so whatever it does with the file, the probes are there. */
	if (probed) {
		settle(h.d, h.tgid, o->id);
		held = (struct ttmon_held_object){ .id = o->id, .is_new = o->id >= h.next };
	}
	h.done(h.ctx, &held);
}

void ttmon_discover_held(struct ttmon_discover *d, uint32_t tgid, const struct ttmon_helper_reply *reply, bool exec,
			 void (*done)(void *ctx, const struct ttmon_held_object *held), void *ctx)
{
	struct held_file *h = malloc(sizeof(*h));
	struct ttmon_file file = { 0 };
	char link[64], path[4096];
	struct ttmon_object_ask ask = { .who = ttmon_discover_who(d, tgid),
					.fd = reply->fd,
					.root = "",
					.path = path,
					.held = true,
					.done = held_known,
					.ctx = h };
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", reply->fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (!h || n < 0 || ttmon_file_unpack(reply->buf, reply->n, &file)) {
		free(h);
		done(ctx, &(struct ttmon_held_object){ 0 });
		return;
	}
	path[n] = '\0';
	ask.file = file.same ? NULL : &file;
	*h = (struct held_file){ .d = d, .tgid = tgid, .next = d->next_id, .exec = exec, .done = done, .ctx = ctx };
	if (ttmon_object_read(d, &ask))
		held_known(h, NULL);
	ttmon_elf_info_fini(&file.elf);
}

void ttmon_discover_held_end(struct ttmon_discover *d, uint32_t tgid, const struct ttmon_held_object *held,
			     uint64_t begun_ns, bool waited)
{
	struct object *o = d->probed;

	while (o && o->id != held->id)
		o = o->next_probed;
	if (!o)
		return;
	/* Its thread was released after 250 ms, or was killed, at an unknown time. */
	if (!waited && ttmon_before(begun_ns, o->active_ns)) {
		o->held = o->held && !held->is_new;
		ttmon_object_tell_blind(d, tgid, o, begun_ns, TTMON_BLIND_LET_GO);
	} else if (held->is_new) {
		ttmon_object_tell_blind(d, tgid, o, o->mapped_ns, TTMON_BLIND_HELD);
	}
}

static struct {
	struct ttmon_discover *d;
	const struct object *object;
} refused;

static void tell_refused(const void *node, VISIT which, int depth)
{
	const struct process *p = *(struct process *const *)node;

	(void)depth;
	if ((which == postorder || which == leaf) && is_settled(p, refused.object->id))
		ttmon_object_tell_blind(refused.d, p->tgid, refused.object, refused.object->mapped_ns,
					TTMON_BLIND_REFUSED);
}

void ttmon_discover_refused(struct ttmon_discover *d, const struct object *o)
{
	refused.d = d;
	refused.object = o;
	twalk(d->processes, tell_refused);
}

/* The kernel reports exits; lost reports would let the table grow. twalk() has no context argument. */
static struct dead {
	uint32_t tgids[256];
	size_t n, alive;
} dead;

static void find_dead(const void *node, VISIT which, int depth)
{
	const struct process *p = *(struct process *const *)node;

	(void)depth;
	if ((which != postorder && which != leaf) || p->pending || p->gone_ns)
		return;
	if (!kill((pid_t)p->tgid, 0) || errno != ESRCH)
		dead.alive++;
	else if (dead.n < ARRAY_SIZE(dead.tgids))
		dead.tgids[dead.n++] = p->tgid;
}

struct uses {
	void (*cb)(void *ctx, uint32_t tgid, uint64_t start_ns, const uint32_t *ids, uint32_t n);
	void *ctx;
};

static void tell_use(const void *node, VISIT which, void *closure)
{
	const struct process *p = *(struct process *const *)node;
	const struct uses *u = closure;

	if ((which == postorder || which == leaf) && p->nr_settled)
		u->cb(u->ctx, p->tgid, p->start_ns, p->settled, p->nr_settled);
}

void ttmon_discover_each_use(const struct ttmon_discover *d,
			     void (*cb)(void *ctx, uint32_t tgid, uint64_t start_ns, const uint32_t *ids, uint32_t n),
			     void *ctx)
{
	struct uses u = { cb, ctx };

	twalk_r(d->processes, tell_use, &u);
}

void ttmon_discover_set_all(struct ttmon_discover *d, bool all)
{
	d->cfg.all = all;
}

void ttmon_discover_check(struct ttmon_discover *d)
{
	ttmon_objects_check(d);
	ttmon_objects_late(d, false);
	lists_due(d);
	leave_overdue(d);
}

void ttmon_discover_end(struct ttmon_discover *d)
{
	ttmon_objects_late(d, true);
}

void ttmon_discover_sweep(struct ttmon_discover *d)
{
	dead.n = dead.alive = 0;
	twalk(d->processes, find_dead);
	for (size_t i = 0; i < dead.n; i++) {
		struct ttmon_ev_gone e = {
			.h = { .ts_ns = ttmon_mono_ns(),
			       .kind = TTMON_EV_GONE,
			       .cpu = TTMON_CPU_DAEMON,
			       .tgid = dead.tgids[i] },
		};

		d->cfg.fact(d->cfg.ctx, &e, sizeof(e));
		forget(d, ttmon_discover_process(d, dead.tgids[i], false));
		ttmon_bpf_take_sums(d->cfg.bpf, dead.tgids[i], ttmon_mono_ns(), d->cfg.fact, d->cfg.ctx);
	}
	ttmon_objects_sweep(d, dead.alive);
}
