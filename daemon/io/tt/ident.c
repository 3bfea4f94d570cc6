// SPDX-License-Identifier: GPL-2.0-only
/*
 * ident.c: the chips of the host as facts, and the chip of each logical id of a process. Cold thread,
 * no lock.
 *
 * A chip gets an index when it is first seen and keeps it; one that leaves sysfs is marked, not
 * removed. It is recognised by its bus address and board id (numbers of device nodes change over a
 * reset), and values missing during a reset stay as they were. Facts are sent only for changes.
 *
 * An answer for (process, logical id) is kept, and only a better source replaces it: enum
 * ttmon_tt_how, best first. A reused process id is recognised by the start time.
 */
#include "daemon/io/tt/ident_int.h"
#include "lib/base/grow.h"
#include "lib/os/proc.h"
#include "lib/os/clock.h"

#define INFO_NS	   NSEC_PER_SEC /* how long a reading of /proc is used: requests come in bunches */
#define OWN_CHECKS 3		/* refreshes after a process's first request that look for newly mapped files */

static void tell(struct ttmon_ttident *t, struct ttmon_event *h, unsigned int kind, uint32_t tgid, size_t size)
{
	h->ts_ns = ttmon_mono_ns();
	h->kind = (__u16)kind;
	h->cpu = TTMON_CPU_DAEMON;
	h->tgid = tgid;
	if (t->cfg.fact)
		t->cfg.fact(t->cfg.ctx, h, size);
}

void ttmon_ttident_tell_chip(struct ttmon_ttident *t, size_t pos)
{
	struct ttmon_ev_tt_chip e = t->chips[pos].fact;

	e.index = (uint32_t)pos + 1;
	tell(t, &e.h, TTMON_EV_TT_CHIP, 0, sizeof(e));
}

size_t ttmon_ttident_add(struct ttmon_ttident *t, const struct ttmon_ttsys_chip *c)
{
	if (t->nr_chips == TTIDENT_CHIPS)
		return SIZE_MAX;
	t->chips[t->nr_chips] = *c;
	t->chips[t->nr_chips].fact.index = (uint32_t)t->nr_chips + 1;
	t->extra[t->nr_chips] = (struct ttident_extra){ 0 };
	return t->nr_chips++;
}

/* ---- chips ---- */

/*
 * The known chip that this chip of sysfs is; near: index of its near half, for remote ones. SIZE_MAX:
 * a new one.
 */
static size_t find_chip(const struct ttmon_ttident *t, const struct ttmon_ev_tt_chip *f, uint32_t near)
{
	for (size_t i = 0; i < t->nr_chips; i++) {
		const struct ttmon_ev_tt_chip *o = &t->chips[i].fact;

		if (o->flags & TTMON_TT_CHIP_LEARNED || t->extra[i].seen ||
		    (o->flags & TTMON_TT_CHIP_REMOTE) != (f->flags & TTMON_TT_CHIP_REMOTE))
			continue;
		if (f->flags & TTMON_TT_CHIP_REMOTE
			    ? t->extra[i].near != near
			    : o->bdf != f->bdf || (f->bdf == 0xffffffffu && o->ordinal != f->ordinal))
			continue;
		if (!o->board_id || !f->board_id || o->board_id == f->board_id)
			return i;
	}
	return SIZE_MAX;
}

/* Merges new values of a chip over the known ones. */
static void merge(struct ttmon_ttsys_chip *o, const struct ttmon_ttsys_chip *c, bool learned_unique)
{
	struct ttmon_ev_tt_chip old = o->fact, *f = &o->fact;

	*o = *c;
	f->index = old.index;
	if (c->resetting || !f->board_id) {
		f->board_id = old.board_id;
		f->key_v1 = old.key_v1;
		f->location = old.location;
		f->tray = old.tray;
		f->chip = old.chip;
		f->flags |= old.flags & TTMON_TT_CHIP_GALAXY;
	}
	/* Learned from a file if sysfs has none. */
	if (!f->key_v1)
		f->key_v1 = old.key_v1;
	if (!f->asic_id)
		f->asic_id = old.asic_id;
	if (learned_unique || c->resetting)
		f->unique_id = old.unique_id;
	if (!f->arch)
		f->arch = old.arch;
	if (!f->card[0])
		memcpy(f->card, old.card, sizeof(f->card));
	if (!f->dram_bytes)
		f->dram_bytes = old.dram_bytes;
	if (!f->l1_bytes)
		f->l1_bytes = old.l1_bytes;
}

static bool differs(const struct ttmon_ev_tt_chip *a, const struct ttmon_ev_tt_chip *b)
{
	return memcmp((const char *)a + sizeof(a->h), (const char *)b + sizeof(b->h), sizeof(*a) - sizeof(a->h)) != 0;
}

/* Takes one chip from sysfs. True: there is a change to report. */
static bool take(struct ttmon_ttident *t, const struct ttmon_ttsys_chip *c, uint32_t near)
{
	size_t pos = find_chip(t, &c->fact, near);
	struct ttmon_ev_tt_chip old;

	if (pos == SIZE_MAX) {
		pos = ttmon_ttident_add(t, c);
		if (pos == SIZE_MAX)
			return false;
		t->extra[pos].near = near;
		t->extra[pos].seen = true;
		ttmon_ttident_tell_chip(t, pos);
		return true;
	}
	old = t->chips[pos].fact;
	merge(&t->chips[pos], c, t->extra[pos].learned_unique);
	t->extra[pos].seen = true;
	if (!differs(&old, &t->chips[pos].fact))
		return false;
	ttmon_ttident_tell_chip(t, pos);
	return true;
}

/* Index of the near half of a remote chip of the list, which has the same node. */
static uint32_t near_of(const struct ttmon_ttident *t, const struct ttmon_ev_tt_chip *far)
{
	for (uint32_t i = 0; i < t->nr_chips; i++) {
		const struct ttmon_ev_tt_chip *f = &t->chips[i].fact;

		if (t->extra[i].seen && f->ordinal == far->ordinal &&
		    !(f->flags & (TTMON_TT_CHIP_REMOTE | TTMON_TT_CHIP_LEARNED)))
			return i + 1;
	}
	return 0;
}

static bool mark_gone(struct ttmon_ttident *t)
{
	bool news = false;

	for (size_t i = 0; i < t->nr_chips; i++) {
		struct ttmon_ev_tt_chip *f = &t->chips[i].fact;
		uint32_t near = t->extra[i].near;

		if (t->extra[i].seen || f->flags & (TTMON_TT_CHIP_GONE | TTMON_TT_CHIP_LEARNED))
			continue;
		/* During a reset the near half does not show that it is one of two. */
		if (near && t->extra[near - 1].seen && t->chips[near - 1].resetting) {
			t->chips[i].resetting = true;
			continue;
		}
		f->flags |= TTMON_TT_CHIP_GONE;
		ttmon_ttident_tell_chip(t, i);
		news = true;
	}
	return news;
}

/* ---- processes ---- */

static void proc_fini(struct ttident_proc *p)
{
	free(p->v);
	memset(p, 0, sizeof(*p));
}

static struct ttident_proc *proc_get(struct ttmon_ttident *t, uint32_t tgid)
{
	uint64_t start = ttmon_proc_alive(tgid);
	struct ttident_proc *p = NULL;

	for (size_t i = 0; i < t->nr_procs && !p; i++)
		if (t->procs[i].tgid == tgid)
			p = &t->procs[i];
	if (p && start && p->start != start) {
		proc_fini(p);
		if (t->info.tgid == tgid && t->info.start != start)
			t->info.tgid = 0;
	} else if (p) {
		return p;
	}
	if (!p && t->nr_procs == TTIDENT_PROCS) {
		proc_fini(&t->procs[0]); /* the oldest is dropped */
		memmove(t->procs, t->procs + 1, (TTIDENT_PROCS - 1) * sizeof(*t->procs));
		t->nr_procs--;
	}
	if (!p && TTMON_GROW(t->procs, t->cap_procs, t->nr_procs + 1, 16))
		return NULL;
	if (!p)
		p = &t->procs[t->nr_procs++];
	*p = (struct ttident_proc){ .tgid = tgid, .start = start, .checks = OWN_CHECKS };
	return p;
}

struct ttmon_ttident_ask ttmon_ttident_question(const struct ttmon_ttident *t, uint32_t tgid)
{
	/* Chips of a tree of files are not the ones that a process has nodes of. */
	return (struct ttmon_ttident_ask){ .tgid = tgid, .nodes = !t->cfg.roots.sysfs };
}

bool ttmon_ttident_note(struct ttmon_ttident *t, uint32_t tgid)
{
	/*
	 * It may be another program, with another environment: what was found out of the old one is not
	 * requested again.
	 */
	ttmon_ttident_exit(t, tgid);
	/* Without chips there is nothing to be asked. */
	return t->nr_chips > 0;
}

void ttmon_ttident_noted(struct ttmon_ttident *t, uint32_t tgid, const char *buf, size_t n)
{
	struct ttident_info **slot = &t->noted[t->next_noted];

	for (size_t i = 0; i < TTIDENT_NOTED; i++)
		if (t->noted[i] && t->noted[i]->tgid == tgid)
			slot = &t->noted[i];
	if (!*slot)
		*slot = malloc(sizeof(**slot));
	if (!*slot)
		return;
	if (slot == &t->noted[t->next_noted])
		t->next_noted = (t->next_noted + 1) % TTIDENT_NOTED;
	ttmon_ttident_unpack(t, tgid, buf, n, *slot);
}

static const struct ttident_info *noted(const struct ttmon_ttident *t, uint32_t tgid)
{
	for (size_t i = 0; i < TTIDENT_NOTED; i++)
		if (t->noted[i] && t->noted[i]->tgid == tgid && t->noted[i]->start)
			return t->noted[i];
	return NULL;
}

bool ttmon_ttident_is_old(const struct ttmon_ttident *t, uint32_t tgid)
{
	return t->info.tgid != tgid || !t->info.start || ttmon_mono_ns() - t->info.at_ns >= INFO_NS;
}

void ttmon_ttident_read(struct ttmon_ttident *t, uint32_t tgid, const char *buf, size_t n)
{
	struct ttident_info info;

	ttmon_ttident_unpack(t, tgid, buf, n, &info);
	/* It has ended: what it said before is the best there is. */
	if (!info.start && t->info.tgid != tgid && noted(t, tgid))
		t->info = *noted(t, tgid);
	else if (info.start || t->info.tgid != tgid)
		t->info = info;
}

static const struct ttident_info *info_get(struct ttmon_ttident *t, uint32_t tgid)
{
	if (t->info.tgid != tgid)
		ttmon_ttident_read(t, tgid, NULL, 0);
	return &t->info;
}

static struct ttident_logical *logical_get(struct ttident_proc *p, uint32_t logical)
{
	for (size_t i = 0; i < p->n; i++)
		if (p->v[i].logical == logical)
			return &p->v[i];
	if (logical >= TTIDENT_LOGICALS)
		return NULL;
	if (TTMON_GROW(p->v, p->cap, p->n + 1, 8))
		return NULL;
	p->v[p->n] = (struct ttident_logical){ .logical = logical };
	return &p->v[p->n++];
}

static void tell_proc(struct ttmon_ttident *t, const struct ttident_proc *p, const struct ttident_logical *l)
{
	struct ttmon_ev_tt_proc e = {
		.logical = l->logical,
		.chip = l->chip,
		.how = l->how,
		.flags = p->own ? TTMON_TT_PROC_OWN_SHM : 0,
	};

	tell(t, &e.h, TTMON_EV_TT_PROC, p->tgid, sizeof(e));
}

/* Any answer except that of the program's own provider may be replaced by a better one later. */
static void resolve(struct ttmon_ttident *t, struct ttident_proc *p, struct ttident_logical *l)
{
	const struct ttident_info *info;
	uint32_t chip, how;
	size_t locals;

	if (l->how == TTMON_TT_HOW_PROVIDER)
		return;
	info = info_get(t, p->tgid);
	p->own |= info->own;
	if (info->nr_keys == 1 && p->n == 1) {
		chip = ttmon_ttident_by_key(t, info, l->logical, info->keys[0], true);
		if (chip) {
			l->chip = chip;
			l->how = TTMON_TT_HOW_MAPPED;
			return;
		}
	}
	chip = ttmon_ttident_resolve(t, info, l->logical, &how, &locals);
	if (chip && (!l->how || how < l->how)) {
		l->chip = chip;
		l->how = how;
	}
}

static bool lacks_chips(const struct ttident_proc *p)
{
	for (size_t i = 0; i < p->n; i++)
		if (!p->v[i].chip)
			return true;
	return false;
}

void ttmon_ttident_each_again(struct ttmon_ttident *t, void (*cb)(void *ctx, uint32_t tgid), void *ctx)
{
	for (size_t i = 0; i < t->nr_procs; i++)
		if ((t->procs[i].checks && !t->procs[i].own) || (t->procs[i].again && lacks_chips(&t->procs[i])))
			cb(ctx, t->procs[i].tgid);
}

/* Files that were mapped after the first question; answers that chips now there make possible. */
void ttmon_ttident_again(struct ttmon_ttident *t, uint32_t tgid)
{
	const struct ttident_info *info = info_get(t, tgid);
	struct ttident_proc *p = NULL;
	bool own, again;

	for (size_t i = 0; i < t->nr_procs && !p; i++)
		if (t->procs[i].tgid == tgid)
			p = &t->procs[i];
	if (!p)
		return;
	own = p->own;
	again = p->again;
	p->checks -= p->checks > 0;
	p->again = false;
	p->own |= info->start == p->start && info->own;
	for (size_t i = 0; i < p->n; i++) {
		struct ttident_logical *l = &p->v[i];
		bool unknown = !l->chip;

		if (again && unknown)
			resolve(t, p, l);
		if (own != p->own || (unknown && l->chip))
			tell_proc(t, p, l);
	}
}

/* ---- the interface ---- */

int ttmon_ttident_new(const struct ttmon_ttident_cfg *cfg, struct ttmon_ttident **ret)
{
	struct ttmon_ttident *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->cfg = *cfg;
	*ret = t;
	return 0;
}

void ttmon_ttident_free(struct ttmon_ttident *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->nr_procs; i++)
		proc_fini(&t->procs[i]);
	for (size_t i = 0; i < TTIDENT_NOTED; i++)
		free(t->noted[i]);
	free(t->procs);
	free(t);
}

void ttmon_ttident_redirect(struct ttmon_ttident *t, void (*fact)(void *ctx, const void *rec, size_t size), void *ctx)
{
	t->cfg.fact = fact;
	t->cfg.ctx = ctx;
}

void ttmon_ttident_refresh(struct ttmon_ttident *t)
{
	_cleanup_free_ struct ttmon_ttsys_chip *chips = NULL;
	bool news = false;
	size_t n;

	/* A tree that cannot be read says nothing about chips: they stay. */
	if (ttmon_ttsys_read(&t->cfg.roots, &chips, &n))
		return;
	for (size_t i = 0; i < t->nr_chips; i++)
		t->extra[i].seen = false;
	for (size_t i = 0; i < n; i++) {
		bool remote = chips[i].fact.flags & TTMON_TT_CHIP_REMOTE;
		uint32_t near = remote ? near_of(t, &chips[i].fact) : 0;

		if (!remote || near)
			news |= take(t, &chips[i], near);
	}
	news |= mark_gone(t);
	if (news)
		t->info.tgid = 0; /* it holds positions, which have changed */
	for (size_t i = 0; i < t->nr_procs; i++)
		t->procs[i].again |= news;
}

void ttmon_ttident_mesh(struct ttmon_ttident *t, const struct ttmon_ttmesh_ask *ask,
			const struct ttmon_tt_mesh_dev *devs, size_t n)
{
	union {
		struct ttmon_ev_tt_mesh e;
		char space[sizeof(struct ttmon_ev_tt_mesh) + TTMON_TT_MESH_MAX * sizeof(struct ttmon_tt_mesh_dev)];
	} u;

	memset(&u, 0, sizeof(u));
	n = n <= TTMON_TT_MESH_MAX ? n : 0;
	u.e.mesh = ask->mesh;
	u.e.count = (uint32_t)n;
	if (n)
		memcpy(u.e.dev, devs, n * sizeof(*devs));
	tell(t, &u.e.h, TTMON_EV_TT_MESH, ask->tgid, sizeof(u.e) + n * sizeof(*devs));
}

void ttmon_ttident_answer(struct ttmon_ttident *t, const struct ttmon_tt_want *want)
{
	struct ttident_proc *p;
	struct ttident_logical *l;

	p = proc_get(t, want->tgid);
	l = p ? logical_get(p, want->logical) : NULL;
	if (!l) {
		struct ttident_proc none = { .tgid = want->tgid, .own = p && p->own };

		tell_proc(t, &none, &(struct ttident_logical){ .logical = want->logical });
		return;
	}
	resolve(t, p, l);
	tell_proc(t, p, l);
}

void ttmon_ttident_provider(struct ttmon_ttident *t, uint32_t tgid, uint32_t logical, uint64_t key, bool disabled)
{
	struct ttident_proc *p = proc_get(t, tgid);
	struct ttident_logical *l;
	uint32_t chip;
	bool own;

	if (!p)
		return;
	own = p->own;
	p->own |= !disabled;
	l = logical_get(p, logical);
	if (l) {
		chip = ttmon_ttident_by_key(t, info_get(t, tgid), logical, key, false);
		if (chip) {
			l->chip = chip;
			l->how = TTMON_TT_HOW_PROVIDER;
		} else {
			resolve(t, p, l);
		}
		tell_proc(t, p, l);
	}
	for (size_t i = 0; own != p->own && i < p->n; i++)
		if (&p->v[i] != l)
			tell_proc(t, p, &p->v[i]);
}

void ttmon_ttident_exit(struct ttmon_ttident *t, uint32_t tgid)
{
	if (t->info.tgid == tgid)
		t->info.tgid = 0;
	for (size_t i = 0; i < t->nr_procs; i++) {
		if (t->procs[i].tgid != tgid)
			continue;
		proc_fini(&t->procs[i]);
		memmove(&t->procs[i], &t->procs[i + 1], (t->nr_procs - i - 1) * sizeof(*t->procs));
		t->nr_procs--;
		return;
	}
}

const struct ttmon_ttsys_chip *ttmon_ttident_chips(const struct ttmon_ttident *t, size_t *n)
{
	*n = t->nr_chips;
	return t->chips;
}
