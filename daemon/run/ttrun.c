// SPDX-License-Identifier: GPL-2.0-only
/*
 * ttrun.c: the Tenstorrent part of a run: chips and identity, the published files, spare probes,
 * readings of the time stamp counter. It only reads sysfs until there is a chip or a program with
 * tt-metal.
 */
#include <sys/stat.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#include "daemon/io/probes/discover.h"
#include "daemon/io/tt/ident.h"
#include "daemon/run/ttrun.h"
#include "lib/base/names.h"
#include "lib/os/clock.h"
#include "lib/os/log.h"
#include "lib/os/proc.h"

#define REFRESH_TICKS	50 /* of 100 ms: sysfs is read again */
#define HELD_QUIET_NS	NSEC_PER_SEC
#define REPUBLISH_TICKS 10
#define OPEN_TICKS	10 /* the processes that have the chips open are read again */
#define TSC_FAST	20 /* readings a tick after the first library, then each TSC_TICKS */
#define TSC_TICKS	100
#define PIDS_MAX	4096 /* processes that have a chip open */
#define WANTS_MAX	64
#define LAST_LOOKS_MS	2000 /* for helpers, at the end */

struct ttmon_ttrun {
	struct ttmon_daemon *run;
	struct ttmon_ttident *ident;
	struct ttmon_ttshm_writer *shm; /* NULL: nothing is published */
	struct ttmon_tt_view view;
	uint64_t generation;
	bool published;
	unsigned int ticks, tsc_readings;
	uint8_t shm_state[TTMON_TTSYS_MAX]; /* by chip: state that was logged last */
	bool spare_off[TTMON_TT_SLOTS];
	uint64_t hiders; /* hash of the processes that hidden[] is about */
	unsigned int hidden_ticks;
	uint32_t hidden[TTMON_TTSYS_MAX + 1]; /* by chip: flags of processes that may hold more there than is known */
};

/* A request to the cold thread. */
struct question {
	bool provider; /* true: a process gave the file key of a logical device id */
	union {
		struct ttmon_tt_want want;
		struct {
			uint64_t key;
			uint32_t logical;
			bool disabled;
		} said;
	};
};
_Static_assert(sizeof(struct question) <= TTMON_REQ_BODY, "it fits into a request");

/* ---- in the hot thread ---- */

static void on_call(struct ttmon_asker *a, const struct ttmon_event *ev)
{
	const struct ttmon_ev_tt_call *e = (const void *)ev;
	const struct ttmon_tt_desc *d = ttmon_tt_fn(e->fn);
	struct question q = {
		.provider = true,
		.said = { .key = e->arg[1], .logical = (uint32_t)e->arg[2], .disabled = e->arg[3] & 0xff },
	};

	if (d && d->cls == TTMON_TT_CLS_PROVIDER)
		ttmon_hot_ask(a, e->h.tgid, &q, sizeof(q));
}

static void ask(struct ttmon_asker *a, struct ttmon_pipeline *p)
{
	struct ttmon_tt_want wants[WANTS_MAX];
	size_t n = ttmon_tt_wants(ttmon_pipeline_tt(p), wants, WANTS_MAX);

	for (size_t i = 0; i < n; i++) {
		struct question q = { .want = wants[i] };

		ttmon_hot_ask(a, wants[i].tgid, &q, sizeof(q));
	}
}

/* ---- the time stamp counter ---- */

/*
 * Some versions of tt-metal report host times in its ticks. Machines with another clock have nothing
 * to report.
 */
static void tell_tsc(struct ttmon_ttrun *t)
{
#ifdef __x86_64__
	struct ttmon_ev_tsc best = { .h = { .kind = TTMON_EV_TSC, .cpu = TTMON_CPU_DAEMON } };
	uint64_t width = UINT64_MAX;

	/* Of a few readings, the one that was interrupted least. */
	for (int i = 0; i < 8; i++) {
		uint64_t from = ttmon_mono_ns(), tsc = __rdtsc(), to = ttmon_mono_ns();

		if (to - from >= width)
			continue;
		width = to - from;
		best.from_ns = from;
		best.tsc = tsc;
		best.h.ts_ns = to;
	}
	ttmon_daemon_fact(t->run, &best, sizeof(best));
#else
	(void)t;
#endif
}

static void free_part(void *state)
{
	struct ttmon_ttrun *t = state;

	ttmon_ttshm_writer_free(t->shm);
	ttmon_ttident_free(t->ident);
	ttmon_tt_view_fini(&t->view);
	free(t);
}

static int start(struct ttmon_daemon *c, void **state)
{
	const struct ttmon_opts *o = ttmon_daemon_opts(c);
	struct ttmon_ttrun *t = calloc(1, sizeof(*t));
	struct ttmon_ttident_cfg cfg = {
		.roots = { .sysfs = o->sysfs_root, .proc = o->proc_root, .dev_shm = o->shm_root },
		.fact = ttmon_daemon_fact,
		.ctx = c,
	};
	bool replay = ttmon_daemon_is_replay(c);
	int err;

	if (!t)
		return log_error_r(-ENOMEM, "out of memory");
	t->run = c;
	err = replay ? 0 : ttmon_ttident_new(&cfg, &t->ident);
	if (!err && o->tt_shm_version)
		err = ttmon_ttshm_writer_new(o->shm_root ? o->shm_root : "/dev/shm", o->tt_shm_version, &t->shm);
	if (err) {
		free_part(t);
		return log_error_r(err, "cannot look for Tenstorrent chips: %s", strerror(-err));
	}
	*state = t;
	/* A recording has everything that this host could only report about itself. */
	if (replay)
		return 0;
	ttmon_ttident_refresh(t->ident);
	/* One reading alone is useless, but with the one at the end there are two, however short the run. */
	tell_tsc(t);
	return 0;
}

bool ttmon_ttrun_get(const struct ttmon_daemon *c, struct ttmon_ttrun_view *ret)
{
	const struct ttmon_ttrun *t = ttmon_daemon_part(c, &ttmon_part_tt);

	*ret = (struct ttmon_ttrun_view){ .tt = NULL };
	if (!t)
		return false;
	ret->tt = &t->view;
	if (t->shm)
		ret->shm = ttmon_ttshm_reports(t->shm, &ret->nr_shm);
	return true;
}

struct meshing {
	struct ttmon_ttrun *t;
	struct ttmon_ttmesh_ask ask;
};

static void on_mesh(void *ctx, struct ttmon_helper_reply *reply)
{
	_cleanup_free_ struct meshing *m = ctx;
	size_t n = reply->err ? 0 : reply->n / sizeof(struct ttmon_tt_mesh_dev);

	ttmon_ttident_mesh(m->t->ident, &m->ask, (const void *)reply->buf, n);
}

/* A helper reads its memory. */
static void answer_mesh(struct ttmon_ttrun *t, const struct ttmon_tt_want *w)
{
	struct ttmon_ttmesh_ask ask = { .mesh = w->mesh, .vt_device = w->vt_device, .tgid = w->tgid };
	struct meshing *m = w->vt_device ? malloc(sizeof(*m)) : NULL;

	if (m) {
		*m = (struct meshing){ t, ask };
		if (!ttmon_daemon_help(t->run, TTMON_HELP_MESH, w->tgid, &ask, sizeof(ask), on_mesh, m))
			return;
		free(m);
	}
	ttmon_ttident_mesh(t->ident, &ask, NULL, 0);
}

/* A process is looked at by a helper, then what is asked is done with what it read. */
struct looking {
	struct ttmon_ttrun *t;
	uint32_t tgid;
	void (*then)(struct ttmon_ttrun *t, uint32_t tgid, const struct question *q);
	struct question q;
};

static void on_look(void *ctx, struct ttmon_helper_reply *reply)
{
	_cleanup_free_ struct looking *l = ctx;

	ttmon_ttident_read(l->t->ident, l->tgid, reply->buf, reply->err ? 0 : reply->n);
	l->then(l->t, l->tgid, &l->q);
}

static void on_note(void *ctx, struct ttmon_helper_reply *reply)
{
	_cleanup_free_ struct looking *l = ctx;

	ttmon_ttident_noted(l->t->ident, l->tgid, reply->buf, reply->err ? 0 : reply->n);
}

static int look(struct ttmon_ttrun *t, uint32_t tgid, void (*done)(void *ctx, struct ttmon_helper_reply *reply),
		const struct looking *what)
{
	struct ttmon_ttident_ask ask = ttmon_ttident_question(t->ident, tgid);
	struct looking *l = malloc(sizeof(*l));
	int err = -ENOMEM;

	if (l) {
		*l = *what;
		err = ttmon_daemon_help(t->run, TTMON_HELP_IDENT, tgid, &ask, sizeof(ask), done, l);
	}
	if (err)
		free(l);
	return err;
}

static void note(struct ttmon_ttrun *t, uint32_t tgid)
{
	if (ttmon_ttident_note(t->ident, tgid))
		(void)!look(t, tgid, on_note, &(struct looking){ .t = t, .tgid = tgid });
}

static void do_again(struct ttmon_ttrun *t, uint32_t tgid, const struct question *q _unused_)
{
	ttmon_ttident_again(t->ident, tgid);
}

/* Without a helper it is done at the next refresh. */
static void look_again(void *ctx, uint32_t tgid)
{
	(void)!look(ctx, tgid, on_look, &(struct looking){ .t = ctx, .tgid = tgid, .then = do_again });
}

static void do_answer(struct ttmon_ttrun *t, uint32_t tgid, const struct question *q)
{
	if (q->provider)
		ttmon_ttident_provider(t->ident, tgid, q->said.logical, q->said.key, q->said.disabled);
	else
		ttmon_ttident_answer(t->ident, &q->want);
}

/* By what a helper reads of the process, or, where none can, by what is known. */
static void look_then_answer(struct ttmon_ttrun *t, uint32_t tgid, const struct question *q)
{
	struct looking what = { .t = t, .tgid = tgid, .then = do_answer, .q = *q };

	if (!ttmon_ttident_is_old(t->ident, tgid) || look(t, tgid, on_look, &what))
		do_answer(t, tgid, q);
}

/* A process that only used meshes so far has shown no Device: its vtable lies in the same library. */
static void answer(struct ttmon_ttrun *t, struct ttmon_tt_want *w)
{
	struct ttmon_tt_slot vt;

	if (!w->vt_device && w->vt_mesh && ttmon_discover_tt_vtables(ttmon_daemon_discover(t->run), w->slot, &vt) &&
	    vt.vt_device && vt.vt_mesh)
		w->vt_device = w->vt_mesh - vt.vt_mesh + vt.vt_device;
	if (w->mesh)
		answer_mesh(t, w);
	else
		look_then_answer(t, w->tgid, &(struct question){ .want = *w });
}

static void request(void *state, const struct ttmon_request *req)
{
	struct ttmon_ttrun *t = state;
	struct question q;

	switch (req->kind) {
	case TTMON_REQ_PART:
		memcpy(&q, req->body, sizeof(q));
		if (q.provider)
			look_then_answer(t, req->tgid, &q);
		else
			answer(t, &q.want);
		break;
	case TTMON_REQ_PROC:
		note(t, req->tgid);
		break;
	case TTMON_REQ_EXIT:
		ttmon_ttident_exit(t->ident, req->tgid);
		break;
	default:
		break;
	}
}

/* ---- publishing ---- */

static uint64_t file_key(const struct ttmon_ev_tt_chip *chip, unsigned int version)
{
	return version == 1 ? chip->key_v1 : chip->unique_id;
}

/*
 * Of a partial process not all chips are known, of one that is not calibrated none. A process that
 * publishes its own figures knows its chips.
 */
static bool may_hide(const struct ttmon_tt_process *p)
{
	return !p->end_ns && !(p->flags & TTMON_TT_F_OWN_SHM) &&
	       p->flags & (TTMON_TT_F_PARTIAL | TTMON_TT_F_UNCALIBRATED);
}

/*
 * Flags of such processes for the chips that they have open. For all chips, if a process is not
 * calibrated or no driver says which process has which chip open.
 */
static void find_hidden(struct ttmon_ttrun *t)
{
	const struct ttmon_tt_view *v = &t->view;
	const struct ttmon_ttsys_roots roots = { .sysfs = ttmon_daemon_opts(t->run)->sysfs_root,
						 .proc = ttmon_daemon_opts(t->run)->proc_root };
	_cleanup_free_ uint32_t *pids = malloc(PIDS_MAX * sizeof(*pids));
	_cleanup_free_ bool *found = calloc(v->nr_procs + 1, sizeof(*found));
	bool listed = false; /* the driver lists the processes that have a chip open */

	memset(t->hidden, 0, sizeof(t->hidden));
	if (!pids || !found)
		return;
	for (size_t i = 0; i < v->nr_chips; i++) {
		const struct ttmon_ev_tt_chip *chip = &v->chips[i].fact;
		size_t n = 0;

		if (chip->index >= ARRAY_SIZE(t->hidden) || ttmon_ttsys_pids(&roots, chip->ordinal, pids, PIDS_MAX, &n))
			continue;
		listed = true;
		for (size_t p = 0; p < v->nr_procs; p++) {
			for (size_t k = 0; may_hide(&v->procs[p]) && k < n; k++) {
				if (pids[k] != v->procs[p].tgid)
					continue;
				t->hidden[chip->index] |= v->procs[p].flags;
				found[p] = true;
				break;
			}
		}
	}
	for (size_t p = 0; p < v->nr_procs; p++) {
		if (!may_hide(&v->procs[p]) || found[p] || (listed && !(v->procs[p].flags & TTMON_TT_F_UNCALIBRATED)))
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(t->hidden); i++)
			t->hidden[i] |= v->procs[p].flags;
	}
}

static void update_hidden(struct ttmon_ttrun *t)
{
	uint64_t hiders = 0;

	for (size_t p = 0; p < t->view.nr_procs; p++)
		if (may_hide(&t->view.procs[p]))
			hiders = (hiders ^ ((uint64_t)t->view.procs[p].tgid << 32 | t->view.procs[p].flags)) *
				 0x9e3779b97f4a7c15u;
	if (hiders == t->hiders && (!hiders || t->ticks - t->hidden_ticks < OPEN_TICKS))
		return;
	t->hiders = hiders;
	t->hidden_ticks = t->ticks;
	find_hidden(t);
}

/*
 * The users of a chip: running processes with usable figures. *own: one of them publishes by itself.
 * *flags: of all that are known to use it.
 */
static size_t users_of(const struct ttmon_tt_view *v, uint32_t chip, struct ttmon_ttshm_user *users, int32_t *logical,
		       bool *own, uint32_t *flags)
{
	size_t n = 0;

	*logical = -1;
	*own = false;
	for (size_t i = 0; i < v->nr_uses; i++) {
		const struct ttmon_tt_use *use = &v->uses[i];
		const struct ttmon_tt_process *p = &v->procs[use->proc];
		struct ttmon_ttshm_user *u;

		if (use->chip != chip || p->end_ns)
			continue;
		*own |= p->flags & TTMON_TT_F_OWN_SHM;
		*flags |= p->flags & TTMON_TT_F_OWN_SHM ? TTMON_TT_F_OWN_SHM : p->flags;
		if (p->flags & (TTMON_TT_F_UNCALIBRATED | TTMON_TT_F_OWN_SHM))
			continue;
		u = &users[n ? n - 1 : 0];
		if (!n || u->tgid != p->tgid) {
			struct ttmon_ttshm_user fresh = { .tgid = p->tgid };

			/* False: it has just ended, and the owner of its file can no longer be found. */
			if (!ttmon_proc_owner(p->tgid, &fresh.uid, &fresh.gid))
				continue;
			memcpy(fresh.name, p->comm, sizeof(fresh.name));
			u = &users[n++];
			*u = fresh;
		}
		for (unsigned int k = 0; k < TTMON_TT_TYPES; k++)
			u->bytes[k] += use->bytes[k];
		if (*logical < 0 && use->logical != TTMON_TT_NO_LOGICAL)
			*logical = (int32_t)use->logical;
	}
	return n;
}

static void log_states(struct ttmon_ttrun *t)
{
	size_t n;
	const struct ttmon_ttshm_report *r = ttmon_ttshm_reports(t->shm, &n);

	for (size_t i = 0; i < n; i++) {
		uint8_t now = (uint8_t)(r[i].state + 1);

		if (r[i].index >= ARRAY_SIZE(t->shm_state) || t->shm_state[r[i].index] == now)
			continue;
		t->shm_state[r[i].index] = now;
		if (r[i].state == TTMON_TTSHM_PUBLISHED)
			log_debug("publishing %s", r[i].path);
		else if (r[i].state == TTMON_TTSHM_IDLE)
			log_debug("%s: nobody uses the chip", r[i].path);
		else if (r[i].state == TTMON_TTSHM_UNKNOWN)
			log_debug("%s: what the chip holds is not known", r[i].path);
		else if (r[i].state == TTMON_TTSHM_FOREIGN)
			log_info("%s is written by the program itself: only read", r[i].path);
		else
			log_warn("cannot publish %s: %s, continuing without it", r[i].path, strerror(-r[i].err));
	}
}

static bool holds_any(const struct ttmon_ttshm_chip *c)
{
	for (size_t i = 0; i < c->nr_users; i++)
		for (unsigned int k = 0; k < TTMON_TT_TYPES; k++)
			if (c->users[i].bytes[k])
				return true;
	return false;
}

static void publish(struct ttmon_ttrun *t)
{
	const struct ttmon_tt_view *v = &t->view;
	_cleanup_free_ struct ttmon_ttshm_chip *chips = calloc(v->nr_chips + 1, sizeof(*chips));
	_cleanup_free_ struct ttmon_ttshm_user *users = calloc(v->nr_uses + 1, sizeof(*users));
	size_t n = 0, used = 0;

	if (!chips || !users)
		return;
	update_hidden(t);
	for (size_t i = 0; i < v->nr_chips; i++) {
		const struct ttmon_ev_tt_chip *chip = &v->chips[i].fact;
		struct ttmon_ttshm_chip *c = &chips[n];
		bool own;

		*c = (struct ttmon_ttshm_chip){
			.index = chip->index,
			.key = file_key(chip, ttmon_daemon_opts(t->run)->tt_shm_version),
			.board_id = chip->board_id,
			.remote = chip->flags & TTMON_TT_CHIP_REMOTE,
			.users = users + used,
		};
		if (!c->key)
			continue;
		c->nr_users = users_of(v, chip->index, users + used, &c->device_id, &own, &c->flags);
		if (chip->index < ARRAY_SIZE(t->hidden))
			c->flags |= t->hidden[chip->index];
		used += c->nr_users;
		c->unknown = c->flags & (TTMON_TT_F_PARTIAL | TTMON_TT_F_UNCALIBRATED) && !holds_any(c);
		/* Zeros of ours beside a program's own file would be taken for its figures. */
		if (!own || c->nr_users)
			n++;
	}
	ttmon_ttshm_publish(t->shm, chips, n, ttmon_real_ns());
	log_states(t);
}

static int take_view(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	struct ttmon_tt_view *v = ctx;

	(void)now_ns;
	return ttmon_tt_snapshot(ttmon_pipeline_tt(p), v);
}

static void show(struct ttmon_ttrun *t, struct ttmon_tt_view *fresh)
{
	ttmon_tt_view_fini(&t->view);
	t->view = *fresh;
	update_hidden(t);
	for (size_t i = 0; i < t->view.nr_chips; i++) {
		struct ttmon_tt_chip *chip = &t->view.chips[i];

		if (chip->fact.index < ARRAY_SIZE(t->hidden)) {
			chip->flags |= t->hidden[chip->fact.index];
			chip->ever |= t->hidden[chip->fact.index];
		}
	}
	if (t->shm && (t->view.nr_chips || t->published)) {
		publish(t);
		t->published = true;
	}
}

/* ---- spare probes ---- */

struct spares {
	struct ttmon_ttrun *t;
	bool off[TTMON_TT_SLOTS];
};

static int take_spares(void *ctx, struct ttmon_pipeline *p, uint64_t now_ns)
{
	struct spares *s = ctx;

	(void)now_ns;
	for (uint16_t slot = 0; slot < TTMON_TT_SLOTS; slot++)
		s->off[slot] = ttmon_tt_get_spare(ttmon_pipeline_tt(p), slot) == TTMON_TT_SPARE_DROP;
	return 0;
}

/*
 * Removing probes waits for a grace period of 0.1 s, during which no held process is released, and the
 * keeper waits at most 0.25 s: so one library per tick, and not while programs are being started.
 */
static void move_spares(struct ttmon_ttrun *t)
{
	struct spares s = { .t = t };

	ttmon_daemon_call(t->run, take_spares, &s);
	for (uint16_t slot = 0; slot < TTMON_TT_SLOTS; slot++) {
		if (s.off[slot] == t->spare_off[slot])
			continue;
		if (s.off[slot] && ttmon_mono_ns() - ttmon_daemon_held_ns(t->run) < HELD_QUIET_NS)
			continue;
		ttmon_discover_tt_spare(ttmon_daemon_discover(t->run), slot, !s.off[slot]);
		t->spare_off[slot] = s.off[slot];
		return;
	}
}

static void tick(void *state)
{
	struct ttmon_ttrun *t = state;
	struct ttmon_tt_view fresh;
	struct ttmon_snapshot s;

	t->ticks++;
	if (t->ident && !(t->ticks % REFRESH_TICKS)) {
		ttmon_ttident_refresh(t->ident);
		ttmon_ttident_each_again(t->ident, look_again, t);
		ttmon_bpf_kmd_refresh(ttmon_daemon_bpf(t->run));
	}
	ttmon_daemon_snapshot(t->run, &s);
	if (!s.has_tt)
		return;
	if (t->ident && (t->tsc_readings < TSC_FAST || !(t->ticks % TSC_TICKS))) {
		tell_tsc(t);
		t->tsc_readings++;
	}
	if (t->ident)
		move_spares(t);
	if (s.tt_generation == t->generation) {
		/* Writing again repairs what other processes did to the files. */
		if (t->shm && t->published && !(t->ticks % REPUBLISH_TICKS))
			publish(t);
		return;
	}
	if (ttmon_daemon_call(t->run, take_view, &fresh))
		return;
	t->generation = s.tt_generation;
	show(t, &fresh);
}

static void last_facts(void *state)
{
	struct ttmon_ttrun *t = state;

	if (ttmon_pipeline_has_tt(ttmon_daemon_pipeline(t->run)))
		tell_tsc(t);
}

static void finish(void *state)
{
	struct ttmon_ttrun *t = state;
	struct ttmon_pipeline *p = ttmon_daemon_pipeline(t->run);
	struct ttmon_tt_want wants[WANTS_MAX];
	struct ttmon_tt_view fresh;
	size_t n;

	if (!ttmon_pipeline_has_tt(p))
		return;
	for (int round = 0; round < 64 && (n = ttmon_tt_wants(ttmon_pipeline_tt(p), wants, WANTS_MAX)); round++)
		for (size_t i = 0; i < n; i++)
			answer(t, &wants[i]);
	(void)ttmon_daemon_settle(t->run, LAST_LOOKS_MS);
	if (!ttmon_tt_snapshot(ttmon_pipeline_tt(p), &fresh))
		show(t, &fresh);
}

const struct ttmon_part ttmon_part_tt = {
	.name = "tenstorrent",
	.in = TTMON_IN_BOTH,
	.start = start,
	.request = request,
	.tick = tick,
	.last_facts = last_facts,
	.finish = finish,
	.free = free_part,
	.hot = {
		.kinds = 1ull << TTMON_EV_TT_CALL,
		.event = on_call,
		.ask = ask,
	},
};
