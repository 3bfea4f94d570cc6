// SPDX-License-Identifier: GPL-2.0-only
#include <sys/stat.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#include "capture.h"
#include "util/clock.h"
#include "util/log.h"

#define REFRESH_TICKS	50 /* of 100 ms: sysfs is read again */
#define HELD_QUIET_NS	NSEC_PER_SEC
#define REPUBLISH_TICKS 10
#define OPEN_TICKS	10 /* who has the chips open is read again */
#define TSC_FAST	20 /* readings a tick after the first library, then each TSC_TICKS */
#define TSC_TICKS	100
#define PIDS_MAX	4096 /* processes that have a chip open */

struct ttmon_ttrun {
	struct ttmon_run *run;
	ttmon_fact_fn fact;
	void *ctx;
	struct ttmon_ttident *ident;
	struct ttmon_ttshm_writer *shm; /* NULL: nothing is published */
	struct ttmon_tt_view view;
	uint64_t generation;
	bool published;
	unsigned int ticks, tsc_readings;
	uint8_t shm_state[TTMON_TTSYS_MAX]; /* by chip: what was logged */
	bool spare_off[TTMON_TT_SLOTS];
	uint64_t hiders; /* which processes hidden[] is about */
	unsigned int hidden_ticks;
	uint32_t hidden[TTMON_TTSYS_MAX + 1]; /* by chip: flags of processes that may hold more there than is known */
};

static void tell_fact(void *ctx, const void *rec, size_t size)
{
	struct ttmon_ttrun *t = ctx;

	t->fact(t->ctx, rec, size);
}

/* ---- the time stamp counter ---- */

/* Some versions of tt-metal tell host times as its ticks. On other machines there is nothing to tell. */
static void tell_tsc(struct ttmon_ttrun *t)
{
#ifdef __x86_64__
	struct ttmon_ev_tsc best = { .h = { .kind = TTMON_EV_TSC, .cpu = TTMON_CPU_DAEMON } };
	uint64_t width = UINT64_MAX;

	/* The one of a few readings that was interrupted the least. */
	for (int i = 0; i < 8; i++) {
		uint64_t from = ttmon_mono_ns(), tsc = __rdtsc(), to = ttmon_mono_ns();

		if (to - from >= width)
			continue;
		width = to - from;
		best.from_ns = from;
		best.tsc = tsc;
		best.h.ts_ns = to;
	}
	t->fact(t->ctx, &best, sizeof(best));
#else
	(void)t;
#endif
}

int ttmon_ttrun_new(struct ttmon_run *c, struct ttmon_ttrun **ret)
{
	struct ttmon_ttrun *t = calloc(1, sizeof(*t));
	struct ttmon_ttident_cfg cfg = {
		.roots = { .sysfs = c->opts->sysfs_root, .proc = c->opts->proc_root, .dev_shm = c->opts->shm_root },
		.fact = tell_fact,
		.ctx = t,
	};
	int err;

	if (!t)
		return -ENOMEM;
	t->run = c;
	t->fact = ttmon_hot_fact;
	t->ctx = c->hot;
	err = c->replay ? 0 : ttmon_ttident_new(&cfg, &t->ident);
	if (!err && c->opts->tt_shm_version)
		err = ttmon_ttshm_writer_new(c->opts->shm_root ? c->opts->shm_root : "/dev/shm",
					     c->opts->tt_shm_version, &t->shm);
	if (err) {
		ttmon_ttrun_free(t);
		return err;
	}
	*ret = t;
	/* A recording knows all that this host could only say of itself. */
	if (c->replay)
		return 0;
	ttmon_ttident_refresh(t->ident);
	/* One is of no use, but with the one at the end it makes two, however short the run. */
	tell_tsc(t);
	return 0;
}

void ttmon_ttrun_free(struct ttmon_ttrun *t)
{
	if (!t)
		return;
	ttmon_ttshm_writer_free(t->shm);
	ttmon_ttident_free(t->ident);
	ttmon_tt_view_fini(&t->view);
	free(t);
}

void ttmon_ttrun_get(const struct ttmon_ttrun *t, struct ttmon_ttrun_view *ret)
{
	*ret = (struct ttmon_ttrun_view){ .tt = &t->view };
	if (t->shm)
		ret->shm = ttmon_ttshm_reports(t->shm, &ret->nr_shm);
}

void ttmon_ttrun_request(struct ttmon_ttrun *t, const struct ttmon_request *req)
{
	switch (req->kind) {
	case TTMON_REQ_TT:
		ttmon_ttident_answer(t->ident, &req->want);
		break;
	case TTMON_REQ_TT_PROVIDER:
		ttmon_ttident_provider(t->ident, req->tgid, req->provider.logical, req->provider.key,
				       req->provider.disabled);
		break;
	case TTMON_REQ_PROC:
		ttmon_ttident_note(t->ident, req->tgid);
		break;
	case TTMON_REQ_EXIT:
		ttmon_ttident_exit(t->ident, req->tgid);
		break;
	default:
		break;
	}
}

/* ---- publishing ---- */

/* False: it has just ended, and whose file it would be cannot be told any more. */
static bool owner_of(uint32_t tgid, struct ttmon_ttshm_user *u)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%u", tgid);
	if (stat(path, &st))
		return false;
	u->uid = st.st_uid;
	u->gid = st.st_gid;
	return true;
}

static uint64_t file_key(const struct ttmon_ev_tt_chip *chip, unsigned int version)
{
	return version == 1 ? chip->key_v1 : chip->unique_id;
}

/* Of a partial process we do not know all chips, of one that is not calibrated none. What publishes by itself knows them. */
static bool may_hide(const struct ttmon_tt_process *p)
{
	return !p->end_ns && !(p->flags & TTMON_TT_F_OWN_SHM) &&
	       p->flags & (TTMON_TT_F_PARTIAL | TTMON_TT_F_UNCALIBRATED);
}

/* Flags of such processes for the chips that they have open; of one that is not calibrated, if nothing says which, for all. */
static void find_hidden(struct ttmon_ttrun *t)
{
	const struct ttmon_tt_view *v = &t->view;
	const struct ttmon_ttsys_roots roots = { .sysfs = t->run->opts->sysfs_root, .proc = t->run->opts->proc_root };
	_cleanup_free_ uint32_t *pids = malloc(PIDS_MAX * sizeof(*pids));
	_cleanup_free_ bool *found = calloc(v->nr_procs + 1, sizeof(*found));

	memset(t->hidden, 0, sizeof(t->hidden));
	if (!pids || !found)
		return;
	for (size_t i = 0; i < v->nr_chips; i++) {
		const struct ttmon_ev_tt_chip *chip = &v->chips[i].fact;
		size_t n = 0;

		if (chip->index >= ARRAY_SIZE(t->hidden) || ttmon_ttsys_pids(&roots, chip->ordinal, pids, PIDS_MAX, &n))
			continue;
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
		if (!may_hide(&v->procs[p]) || found[p] || !(v->procs[p].flags & TTMON_TT_F_UNCALIBRATED))
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
 * The users of a chip: processes that run and whose figures mean something. *own: one of them publishes by itself. *flags: of all that
 * are known to use it.
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

			if (!owner_of(p->tgid, &fresh))
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
		else if (r[i].state == TTMON_TTSHM_FOREIGN)
			log_info("%s is written by the program itself: only read", r[i].path);
		else
			log_warn("cannot publish %s: %s, continuing without it", r[i].path, strerror(-r[i].err));
	}
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
			.key = file_key(chip, t->run->opts->tt_shm_version),
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
		/* Zeros of ours beside the figures of a program's own file would be believed. */
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
		s->off[slot] = ttmon_tt_spare(ttmon_pipeline_tt(p), slot) == TTMON_TT_SPARE_DROP;
	return 0;
}

/*
 * Taking probes away waits for a grace period, 0.1 s, in which no held process is let go, and the keeper's patience is 0.25 s: one
 * library a tick, and not while programs are being started.
 */
static void move_spares(struct ttmon_ttrun *t)
{
	struct spares s = { .t = t };

	ttmon_run_call(t->run, take_spares, &s);
	for (uint16_t slot = 0; slot < TTMON_TT_SLOTS; slot++) {
		if (s.off[slot] == t->spare_off[slot])
			continue;
		if (s.off[slot] && ttmon_mono_ns() - t->run->held_ns < HELD_QUIET_NS)
			continue;
		ttmon_discover_tt_spare(t->run->discover, slot, !s.off[slot]);
		t->spare_off[slot] = s.off[slot];
		return;
	}
}

void ttmon_ttrun_tick(struct ttmon_ttrun *t)
{
	struct ttmon_tt_view fresh;
	struct ttmon_snapshot s;

	t->ticks++;
	if (t->ident && !(t->ticks % REFRESH_TICKS)) {
		ttmon_ttident_refresh(t->ident);
		ttmon_bpf_kmd_refresh(t->run->bpf);
	}
	ttmon_run_snapshot(t->run, &s);
	if (!s.has_tt)
		return;
	if (t->ident && (t->tsc_readings < TSC_FAST || !(t->ticks % TSC_TICKS))) {
		tell_tsc(t);
		t->tsc_readings++;
	}
	if (t->ident)
		move_spares(t);
	if (s.tt_generation == t->generation) {
		/* What others did to the files is noticed by writing. */
		if (t->shm && t->published && !(t->ticks % REPUBLISH_TICKS))
			publish(t);
		return;
	}
	if (ttmon_run_call(t->run, take_view, &fresh))
		return;
	t->generation = s.tt_generation;
	show(t, &fresh);
}

void ttmon_ttrun_redirect(struct ttmon_ttrun *t, ttmon_fact_fn fact, void *ctx)
{
	t->fact = fact;
	t->ctx = ctx;
	if (ttmon_pipeline_has_tt(t->run->pipeline))
		tell_tsc(t);
}

void ttmon_ttrun_finish(struct ttmon_ttrun *t)
{
	struct ttmon_tt *tt = ttmon_pipeline_tt(t->run->pipeline);
	struct ttmon_tt_want wants[64];
	struct ttmon_tt_view fresh;
	size_t n;

	if (!ttmon_pipeline_has_tt(t->run->pipeline))
		return;
	for (int round = 0; round < 64 && (n = ttmon_tt_wants(tt, wants, ARRAY_SIZE(wants))); round++)
		for (size_t i = 0; i < n; i++)
			ttmon_ttident_answer(t->ident, &wants[i]);
	if (!ttmon_tt_snapshot(tt, &fresh))
		show(t, &fresh);
}
