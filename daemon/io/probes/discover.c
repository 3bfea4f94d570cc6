// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/io/probes/discover.h"
#include "lib/base/grow.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <search.h>
#include <signal.h>
#include <sys/mman.h>

#include "daemon/io/probes/discover_int.h"
#include "daemon/io/host/facts.h"
#include "lib/os/clock.h"
#include "lib/os/log.h"
#include "lib/os/proc.h"

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

	if (!d)
		return -ENOMEM;
	d->cfg = *cfg;
	d->next_id = 1;
	*ret = d;
	return 0;
}

void ttmon_discover_free(struct ttmon_discover *d)
{
	if (!d)
		return;
	tdestroy(d->processes, process_free);
	ttmon_objects_free(d);
	free(d->shares);
	free(d);
}

void ttmon_discover_redirect(struct ttmon_discover *d, void (*fact)(void *ctx, const void *rec, size_t size), void *ctx)
{
	d->cfg.fact = fact;
	d->cfg.ctx = ctx;
}

static struct process *process_get(struct ttmon_discover *d, uint32_t tgid, bool create)
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

void ttmon_discover_forget(struct ttmon_discover *d, uint32_t tgid)
{
	struct process *p = process_get(d, tgid, false);

	if (p && p->switches)
		(void)!ttmon_bpf_set_switcher(d->cfg.bpf, tgid, 0);
	if (p) {
		tdelete(p, &d->processes, cmp_process);
		process_free(p);
	}
}

static bool is_settled(const struct process *p, uint32_t object)
{
	for (uint32_t i = 0; p && i < p->nr_settled; i++)
		if (p->settled[i] == object)
			return true;
	return false;
}

/* Without memory it is told again, or told to be blind where it was not: too much, never too little. */
static void settle(struct ttmon_discover *d, uint32_t tgid, uint32_t object)
{
	struct process *p = process_get(d, tgid, true);
	uint32_t *v;

	if (!p || is_settled(p, object))
		return;
	v = realloc(p->settled, (p->nr_settled + 1) * sizeof(*v));
	if (!v)
		return;
	p->settled = v;
	v[p->nr_settled++] = object;
}

/* Did the process begin when the probes of this object were active already? /proc knows its start to a clock tick, rounded down. */
static bool is_younger(const struct process *p, uint32_t tgid, const struct object *o)
{
	uint64_t tick_ns = NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t asleep_ns = ttmon_clock_ns(CLOCK_BOOTTIME) - ttmon_mono_ns(), start;

	if (p && p->start_ns)
		return p->start_ns >= o->active_ns;
	start = ttmon_proc_start(tgid);
	return start && start * tick_ns >= o->active_ns + asleep_ns;
}

/* A process has this object mapped, since mapped_ns (0: nobody saw since when): were its probes there in time? Told once, but for one thing. */
static void look_back(struct ttmon_discover *d, uint32_t tgid, const struct object *o, uint64_t mapped_ns)
{
	const struct process *p = process_get(d, tgid, false);

	/* Each time: with an exec it has ended, and what the program before was seen to do says nothing of this one. */
	if (o->elf.kind & TTMON_OBJ_STRIPPED_RT)
		ttmon_object_tell_blind(d, tgid, o, mapped_ns ? mapped_ns : 1, TTMON_BLIND_STRIPPED);
	if (is_settled(p, o->id))
		return;
	if (o->refused)
		ttmon_object_tell_blind(d, tgid, o, mapped_ns, TTMON_BLIND_REFUSED);
	if (o->over_share)
		ttmon_share_mapped(d, o, tgid);
	if (o->probed && (mapped_ns ? ttmon_before(mapped_ns, o->active_ns) : !is_younger(p, tgid, o)))
		ttmon_object_tell_blind(d, tgid, o, mapped_ns, TTMON_BLIND_WINDOW);
	settle(d, tgid, o->id);
}

/*
 * Return probes and coroutines do not go together (io/objects/switches.h). when: of enum TTMON_SWITCHER_. What follows is
 * said once of a process, and only where it has something with probes.
 */
static void look_at_stacks(struct ttmon_discover *d, uint32_t tgid, const struct object *o, unsigned int when)
{
	struct process *p = o->elf.switches && !d->cfg.returns_all ? process_get(d, tgid, true) : NULL;
	int err = 0;

	/* Each time: an exec that was not held has ended it in the kernel. */
	if (p) {
		p->switches |= when == TTMON_SWITCHER_NOW;
		err = ttmon_bpf_set_switcher(d->cfg.bpf, tgid, when);
		if (err && err != -EOPNOTSUPP)
			log_warn("process %u switches stacks, and cannot be left out: %s", tgid, strerror(-err));
		log_debug("process %u can switch stacks: calls on other stacks than its threads' own get no return probe: %s", tgid,
			  o->path);
	}
	p = process_get(d, tgid, false);
	if (!p || !p->switches || p->said || !o->probed)
		return;
	p->said = true;
	if (!ttmon_bpf_session(d->cfg.bpf))
		log_warn(
			"process %u can switch stacks (coroutines), and this kernel cannot leave it out: a call that yields may end it with SIGILL (--no-return-probes)",
			tgid);
}

/* What a process had mapped at one moment: read at once, looked into later (which takes longer than a held program may wait). */
struct ttmon_listing {
	uint32_t tgid;
	uint64_t from_ns, done_ns;
	struct ttmon_mapping *maps; /* names owned */
	size_t n, cap;
};

static void listing_free(struct ttmon_listing *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n; i++)
		free((char *)l->maps[i].name);
	free(l->maps);
	free(l);
}

static int keep_mapping(void *ctx, const struct ttmon_mapping *m)
{
	struct ttmon_listing *l = ctx;
	char *name;

	if (TTMON_GROW(l->maps, l->cap, l->n + 1, 128))
		return -ENOMEM;
	name = strdup(m->name);
	if (!name)
		return -ENOMEM;
	l->maps[l->n] = *m;
	l->maps[l->n++].name = name;
	return 0;
}

static int listing_read(uint32_t tgid, struct ttmon_listing **ret)
{
	struct ttmon_listing *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	l->tgid = tgid;
	l->from_ns = ttmon_mono_ns();
	err = ttmon_maps_read("/proc", tgid, keep_mapping, l);
	l->done_ns = ttmon_mono_ns();
	/* A zombie's list is empty; nobody else's is. */
	if (!err && !l->n)
		err = -ESRCH;
	if (err) {
		listing_free(l);
		return err;
	}
	*ret = l;
	return 0;
}

static bool is_of_interest(const struct object *o)
{
	return o->id && (o->probed || o->over_share || o->elf.kind & TTMON_OBJ_STRIPPED_RT);
}

/* It uses a GPU by something that nobody knows: a runtime that was not recognized, or code of its own. */
static void tell_unprobed(struct ttmon_discover *d, uint32_t tgid, uint64_t ts_ns)
{
	struct process *p = process_get(d, tgid, true);
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

/* Probe the objects in it; tell: the process is traced, its mappings go into the stream. */
static void listing_look(struct ttmon_discover *d, const struct ttmon_listing *l, bool tell)
{
	struct ttmon_ev_maps_done e = {
		.h = { .ts_ns = l->done_ns, .kind = TTMON_EV_MAPS_DONE, .cpu = TTMON_CPU_DAEMON, .tgid = l->tgid },
		.from_ns = l->from_ns,
		.count = (uint32_t)l->n,
	};
	struct process *p = process_get(d, l->tgid, false);
	bool gpu = false, probed = false;

	/* Found again where it is still so: it may have executed another program. */
	if (p)
		p->switches = false;
	for (size_t i = 0; i < l->n; i++) {
		const struct ttmon_mapping *m = &l->maps[i];
		struct mapping map = { m->start, m->end, m->dev_major, m->dev_minor, m->ino, m->name };
		struct object *o = NULL;

		if ((m->prot & PROT_EXEC) && m->ino)
			o = ttmon_object_of_mapping(d, l->tgid, &map, 0);
		if (o && tell)
			ttmon_object_keep(d, o, l->tgid, &map);
		if (o)
			look_at_stacks(d, l->tgid, o, TTMON_SWITCHER_NOW);
		if (o && is_of_interest(o))
			look_back(d, l->tgid, o, 0);
		probed |= o && o->probed;
		gpu |= !strncmp(m->name, "/dev/nvidia", sizeof("/dev/nvidia") - 1);
		if (tell)
			ttmon_fact_map(d->cfg.fact, d->cfg.ctx, l->from_ns, l->tgid, 0, m, o ? o->id : 0);
	}
	if (gpu && !probed)
		tell_unprobed(d, l->tgid, l->from_ns);
	if (tell)
		d->cfg.fact(d->cfg.ctx, &e, sizeof(e));
}

int ttmon_discover_follow(struct ttmon_discover *d, uint32_t tgid, uint64_t start_ns)
{
	struct process *p = process_get(d, tgid, true);

	if (!p)
		return -ENOMEM;
	p->listed = true;
	if (start_ns && p->start_ns && p->start_ns != start_ns) {
		/* Another one by now, whose forerunner's end was not told. */
		p->nr_settled = 0;
		p->unprobed = p->switches = p->said = false;
	}
	if (start_ns)
		p->start_ns = start_ns;
	return 0;
}

int ttmon_discover_read(struct ttmon_discover *d, uint32_t tgid, struct ttmon_listing **ret)
{
	/* First, so that no mapping falls between list and records. */
	int err = ttmon_discover_follow(d, tgid, 0);

	if (err)
		return err;
	ttmon_fact_names(d->cfg.fact, d->cfg.ctx, ttmon_mono_ns(), tgid);
	return listing_read(tgid, ret);
}

void ttmon_discover_tell(struct ttmon_discover *d, struct ttmon_listing *l)
{
	if (l)
		listing_look(d, l, true);
	listing_free(l);
}

int ttmon_discover_scan(struct ttmon_discover *d)
{
	DIR *dir = opendir("/proc");
	struct dirent *ent;

	if (!dir)
		return -errno;
	while ((ent = readdir(dir))) {
		struct ttmon_listing *l = NULL;

		/* A process that went away meanwhile is no error. */
		if (isdigit((unsigned char)ent->d_name[0]) &&
		    !listing_read((uint32_t)strtoul(ent->d_name, NULL, 10), &l))
			listing_look(d, l, false);
		listing_free(l);
	}
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

/* Probes on a library that only others use would cost them and tell us nothing. */
static bool is_wanted(const struct ttmon_discover *d, const struct process *p, uint32_t tgid)
{
	return d->cfg.all || (p && p->listed) || ttmon_bpf_has_pid(d->cfg.bpf, tgid);
}

void ttmon_discover_first(struct ttmon_discover *d, const struct ttmon_mmap2_rec *rec)
{
	struct mapping map = { rec->addr, rec->addr + rec->len, rec->maj, rec->min, rec->ino, rec->filename };

	struct object *o;

	if (!ttmon_object_is_named(rec->filename) || !is_wanted(d, process_get(d, rec->pid, false), rec->pid))
		return;
	o = ttmon_object_of_mapping(d, rec->pid, &map, rec->ts_ns);
	/* At once: slots are closed that say what was seen in them. */
	if (o && is_of_interest(o))
		look_back(d, rec->pid, o, rec->ts_ns);
}

void ttmon_discover_mapping(struct ttmon_discover *d, const struct ttmon_mmap2_rec *rec)
{
	struct mapping map = { rec->addr, rec->addr + rec->len, rec->maj, rec->min, rec->ino, rec->filename };
	struct process *p = process_get(d, rec->pid, false);
	struct ttmon_mapping m = {
		.start = map.start,
		.end = map.end,
		.pgoff = rec->pgoff,
		.prot = rec->prot,
		.name = rec->filename,
	};
	struct object *o;

	if (!is_wanted(d, p, rec->pid))
		return;
	o = ttmon_object_of_mapping(d, rec->pid, &map, rec->ts_ns);
	/* Code that the program makes itself is told of too: call stacks go through it, and end there. */
	if (!o && (rec->ino || !(rec->prot & PROT_EXEC)))
		return;
	if (o)
		look_at_stacks(d, rec->pid, o, TTMON_SWITCHER_NOW);
	if (o && p && p->listed)
		ttmon_object_keep(d, o, rec->pid, &map);
	if (o && is_of_interest(o))
		look_back(d, rec->pid, o, rec->ts_ns);
	if (!p || !p->listed)
		return;
	/* As /proc/PID/maps has it. */
	if (!strcmp(rec->filename, "//anon"))
		m.name = "";
	ttmon_fact_map(d->cfg.fact, d->cfg.ctx, rec->ts_ns, rec->pid, rec->tid, &m, o ? o->id : 0);
}

bool ttmon_discover_held(struct ttmon_discover *d, uint32_t tgid, int fd, bool exec)
{
	char link[64], path[4096];
	uint32_t next = d->next_id;
	struct object *o;
	ssize_t n;
	int own;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	own = open(link, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (n < 0 || own < 0) {
		if (own >= 0)
			close(own);
		return false;
	}
	path[n] = '\0';
	o = ttmon_object_of_fd(d, own, path, ttmon_mono_ns(), true);
	d->held = o;
	if (o)
		look_at_stacks(d, tgid, o, exec ? TTMON_SWITCHER_EXEC : TTMON_SWITCHER_NOW);
	if (!o || !o->probed)
		return false;
	d->held_new = o->id >= next;
	if (o->refused && !is_settled(process_get(d, tgid, false), o->id))
		ttmon_object_tell_blind(d, tgid, o, ttmon_mono_ns(), TTMON_BLIND_REFUSED);
	/* It waits: whatever it does with it, probes are there. */
	settle(d, tgid, o->id);
	return true;
}

void ttmon_discover_held_end(struct ttmon_discover *d, uint32_t tgid, uint64_t begun_ns, bool waited)
{
	struct object *o = d->held;

	if (!o || !o->probed)
		return;
	/* Its thread was let go after 250 ms, or was killed: nobody knows when. */
	if (!waited && ttmon_before(begun_ns, o->active_ns)) {
		o->held = o->held && !d->held_new;
		ttmon_object_tell_blind(d, tgid, o, begun_ns, TTMON_BLIND_LET_GO);
	} else if (d->held_new) {
		ttmon_object_tell_blind(d, tgid, o, o->mapped_ns, TTMON_BLIND_HELD);
	}
}

/* Exits are told by the kernel; where that was lost, the table would grow. twalk() has no context argument. */
static struct dead {
	uint32_t tgids[256];
	size_t n, alive;
} dead;

static void find_dead(const void *node, VISIT which, int depth)
{
	const struct process *p = *(struct process *const *)node;

	(void)depth;
	if (which != postorder && which != leaf)
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
		ttmon_discover_forget(d, dead.tgids[i]);
		ttmon_bpf_take_sums(d->cfg.bpf, dead.tgids[i], ttmon_mono_ns(), d->cfg.fact, d->cfg.ctx);
	}
	ttmon_objects_sweep(d, dead.alive);
}
