// SPDX-License-Identifier: GPL-2.0-only
/*
 * discover_tt.c: libraries with tt-metal have a slot each while they have probes. It is part of the
 * cookies, so that the BPF programs know which library's vtables to look for, and events say which
 * library they came from. Runs in the cold thread.
 */
#include "lib/base/names.h"
#include "daemon/io/probes/discover_int.h"
#include "lib/os/clock.h"
#include "lib/os/log.h"

int ttmon_object_tt_take(struct ttmon_discover *d, struct object *o)
{
	int err;

	for (unsigned int i = 0; i < TTMON_TT_SLOTS; i++) {
		uint16_t slot = (uint16_t)((d->tt_next + i) % TTMON_TT_SLOTS);

		if (d->tt[slot])
			continue;
		err = ttmon_bpf_tt_slot(d->cfg.bpf, slot, &o->elf.tt);
		if (err) {
			log_warn("%s: %s, continuing without its functions of tt-metal", o->path, strerror(-err));
			return err;
		}
		d->tt[slot] = o;
		d->tt_next = (uint16_t)((slot + 1) % TTMON_TT_SLOTS);
		o->tt_slot = slot;
		o->has_slot = true;
		return slot;
	}
	log_warn("%s: more than %d libraries with tt-metal, continuing without this one", o->path, TTMON_TT_SLOTS);
	return -ENOSPC;
}

void ttmon_object_tt_give(struct ttmon_discover *d, struct object *o)
{
	if (o->has_slot)
		d->tt[o->tt_slot] = NULL;
	o->has_slot = false;
}

static uint32_t unprobed(const struct ttmon_probes *p)
{
	uint32_t kinds = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct ttmon_tt_desc *d = ttmon_tt_fn(p->probes[i].fn);

		if (d && d->cls == TTMON_TT_CLS_DISPATCH && p->probes[i].state != TTMON_PROBE_ATTACHED)
			kinds |= 1u << d->aux;
	}
	return kinds;
}

static void tell(struct ttmon_discover *d, const struct object *o, uint32_t but)
{
	struct ttmon_ev_tt_object e = {
		.h = { .ts_ns = ttmon_mono_ns(), .kind = TTMON_EV_TT_OBJECT, .cpu = TTMON_CPU_DAEMON },
		.object = o->id,
		.slot = o->tt_slot,
	};

	if (!o->has_slot)
		return;
	e.has = ttmon_probes_tt_has(&o->probes, &o->elf) & ~but;
	e.unprobed = unprobed(&o->probes);
	d->cfg.fact(d->cfg.ctx, &e, sizeof(e));
}

void ttmon_object_tell_tt(struct ttmon_discover *d, const struct object *o)
{
	tell(d, o, 0);
}

bool ttmon_discover_tt_vtables(const struct ttmon_discover *d, uint16_t slot, struct ttmon_tt_slot *ret)
{
	if (slot >= TTMON_TT_SLOTS || !d->tt[slot])
		return false;
	*ret = d->tt[slot]->elf.tt;
	return true;
}

int ttmon_discover_tt_spare(struct ttmon_discover *d, uint16_t slot, bool on)
{
	struct object *o;
	int err;

	/* As for ttmon_discover_family(). */
	if (on)
		ttmon_objects_check(d);
	o = slot < TTMON_TT_SLOTS ? d->tt[slot] : NULL;
	if (!o || !o->probed || o->fd < 0)
		return -ENOENT;
	/* From now on some of them are missing: said before, as it is said after they are all back. */
	if (!on)
		tell(d, o, TTMON_TT_HAS_SPARE);
	if (on)
		ttmon_object_wait_closed(d, o);
	err = ttmon_probes_spare(&o->probes, o->fd, &o->elf, on);
	if (err == -EOPNOTSUPP) {
		ttmon_object_tell_tt(d, o);
		return err;
	}
	if (err)
		log_warn("%s: cannot put the spare probes back: %s, continuing without them", o->path,
			 ttmon_probe_reason(err));
	else
		log_debug("%s: spare probes %s, %zu in all", o->path, on ? "put back" : "taken away",
			  o->probes.attached);
	ttmon_object_tell_tt(d, o);
	return err;
}
