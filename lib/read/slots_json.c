// SPDX-License-Identifier: GPL-2.0-only
/* slots_json.c: see slots_json.h. */
#include "lib/read/slots_json.h"

#include "lib/base/names.h"

#include <ttmon/event.h>

enum ttmon_slots_known ttmon_slots_known_ctr(uint32_t slot_flags, const struct ttmon_slot_row *row, unsigned int ctr)
{
	if (!(slot_flags & TTMON_SLOT_HAS_CTR) || row->cls == TTMON_ROW_UNASSIGNED)
		return TTMON_SLOTS_UNKNOWN;
	if (row->flags & TTMON_ROW_CTR_UNKNOWN)
		return row->ctr[ctr] ? TTMON_SLOTS_AT_LEAST : TTMON_SLOTS_UNKNOWN;
	return TTMON_SLOTS_EXACT;
}

enum ttmon_slots_known ttmon_slots_known_llc(const struct ttmon_slot_row *row)
{
	if (!(row->flags & TTMON_ROW_LLC_VALID))
		return TTMON_SLOTS_UNKNOWN;
	return row->flags & TTMON_ROW_RDT_UNKNOWN ? TTMON_SLOTS_AT_LEAST : TTMON_SLOTS_EXACT;
}

enum ttmon_slots_known ttmon_slots_known_mbm(const struct ttmon_slot_row *row)
{
	if (!row->rdt_ns)
		return TTMON_SLOTS_UNKNOWN;
	return row->flags & TTMON_ROW_RDT_UNKNOWN ? TTMON_SLOTS_AT_LEAST : TTMON_SLOTS_EXACT;
}

enum ttmon_slots_known ttmon_slots_known_sum(const struct ttmon_slot *slot, uint32_t need, uint64_t value)
{
	if (ttmon_slot_knows(slot, need))
		return TTMON_SLOTS_EXACT;
	return value ? TTMON_SLOTS_AT_LEAST : TTMON_SLOTS_UNKNOWN;
}

enum ttmon_slots_known ttmon_slots_known_held(const struct ttmon_slot *slot, uint32_t need)
{
	return ttmon_slot_knows(slot, need) ? TTMON_SLOTS_EXACT : TTMON_SLOTS_UNKNOWN;
}

const char *ttmon_slots_family(const struct ttmon_slot *slot, unsigned int i)
{
	return i < TTMON_FAMILY_MAX && slot->flags & TTMON_SLOT_HAS_KNOWN && slot->known >> i & 1 ? ttmon_family_name(i)
												  : NULL;
}

const char *ttmon_slots_class_name(unsigned int cls)
{
	static const char *const names[TTMON_ROW_CLASS_MAX] = {
		[TTMON_ROW_USER] = "user",   [TTMON_ROW_KERNEL] = "kernel",
		[TTMON_ROW_IDLE] = "idle",   [TTMON_ROW_UNASSIGNED] = "unassigned",
		[TTMON_ROW_OTHER] = "other",
	};

	return cls < TTMON_ROW_CLASS_MAX ? names[cls] : "?";
}

const char *ttmon_slots_row_flag(uint8_t flags, unsigned int i)
{
	static const char *const names[TTMON_SLOTS_ROW_FLAG_NAMES] = { "ctr_unknown", "ctr_scaled", "ctr_late",
								       "rdt_unknown", "llc_valid",  "ended" };

	return flags >> i & 1 ? names[i] : NULL;
}

const char *ttmon_slots_slot_flag(uint32_t flags, unsigned int i)
{
	static const char *const names[TTMON_SLOTS_SLOT_FLAG_NAMES] = { "forced",  "has_cpu",  "has_ctr",  "has_rdt",
									"missing", "rows_cut", "has_known" };

	return flags >> i & 1 ? names[i] : NULL;
}

/* Writes a sum. Returns true if it is a lower bound. */
static bool put_sum(struct ttmon_jsonw *w, const struct ttmon_slot *s, const char *name, uint32_t need, uint64_t value)
{
	enum ttmon_slots_known known = ttmon_slots_known_sum(s, need, value);

	ttmon_jsonw_key_known(w, name, known != TTMON_SLOTS_UNKNOWN, value);
	return known == TTMON_SLOTS_AT_LEAST;
}

static void put_families(struct ttmon_jsonw *w, const struct ttmon_slot *s)
{
	ttmon_jsonw_key(w, "known");
	if (!(s->flags & TTMON_SLOT_HAS_KNOWN)) {
		ttmon_jsonw_null(w);
		return;
	}
	ttmon_jsonw_open(w, '[');
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++)
		if (ttmon_slots_family(s, i))
			ttmon_jsonw_name(w, ttmon_slots_family(s, i));
	ttmon_jsonw_close(w, ']');
}

void ttmon_slotjson_figures(struct ttmon_jsonw *w, const struct ttmon_slot *s)
{
	bool cpu = s->flags & TTMON_SLOT_HAS_CPU, least = false;

	ttmon_jsonw_key_known(w, "cpus", cpu, s->cpus);
	ttmon_jsonw_key_known(w, "user_ns", cpu, s->user_ns);
	ttmon_jsonw_key_known(w, "kernel_ns", cpu, s->kernel_ns);
	ttmon_jsonw_key_known(w, "idle_ns", cpu, s->idle_ns);
	ttmon_jsonw_key_known(w, "missing_ns", cpu, s->missing_ns);
	ttmon_jsonw_key_num(w, "events", s->events);
	ttmon_jsonw_key_num(w, "late", s->late);
	ttmon_jsonw_key_num(w, "dropped", s->dropped);
	ttmon_jsonw_key_num(w, "kernel_lost", s->kernel_lost);
	least |= put_sum(w, s, "allocs", TTMON_SLOT_NEED_ALLOCS, s->allocs);
	least |= put_sum(w, s, "frees", TTMON_SLOT_NEED_ALLOCS, s->frees);
	least |= put_sum(w, s, "copies", TTMON_SLOT_NEED_COPIES, s->copies);
	least |= put_sum(w, s, "copy_bytes", TTMON_SLOT_NEED_COPIES, s->copy_bytes);
	ttmon_jsonw_key_known(w, "pinned_pages",
			      ttmon_slots_known_held(s, TTMON_SLOT_NEED_PINNED) != TTMON_SLOTS_UNKNOWN,
			      s->pinned_pages);
	least |= put_sum(w, s, "tt_dispatches", TTMON_SLOT_NEED_TT, s->tt_dispatches);
	least |= put_sum(w, s, "tt_busy_ns", TTMON_SLOT_NEED_TT, s->tt_busy_ns);
	put_families(w, s);
	if (least)
		ttmon_jsonw_key_bool(w, "at_least", true);
}

void ttmon_slotjson_flags(struct ttmon_jsonw *w, uint32_t slot_flags)
{
	ttmon_jsonw_key_open(w, "flags", '[');
	for (unsigned int i = 0; i < TTMON_SLOTS_SLOT_FLAG_NAMES; i++)
		if (ttmon_slots_slot_flag(slot_flags, i))
			ttmon_jsonw_name(w, ttmon_slots_slot_flag(slot_flags, i));
	ttmon_jsonw_close(w, ']');
}

void ttmon_slotjson_who(struct ttmon_jsonw *w, const struct ttmon_slot_row *r)
{
	bool process = r->cls == TTMON_ROW_USER || r->cls == TTMON_ROW_KERNEL;

	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_known(w, "pid", process, r->tgid);
	TTMON_JSONW_KEY_IF(w, "start_ns", process, time, r->start_ns);
	ttmon_jsonw_key_text(w, "comm", r->comm, sizeof(r->comm));
	ttmon_jsonw_key_name(w, "class", ttmon_slots_class_name(r->cls));
}

void ttmon_slotjson_row(struct ttmon_jsonw *w, const struct ttmon_slot *s, const struct ttmon_slot_row *r)
{
	static const char *const ctrs[TTMON_CTR_MAX] = {
#define X(id, NAME, name) [id] = name,
		TTMON_CTR_TABLE(X)
#undef X
	};
	bool mbm = ttmon_slots_known_mbm(r) != TTMON_SLOTS_UNKNOWN;
	bool cpu = s->flags & TTMON_SLOT_HAS_CPU, least = false;

	ttmon_slotjson_who(w, r);
	ttmon_jsonw_key_known(w, "rmid", r->rmid, r->rmid);
	ttmon_jsonw_key_known(w, "cpu_ns", cpu, r->cpu_ns);
	ttmon_jsonw_key_known(w, "switches", cpu, r->switches);
	for (unsigned int i = 0; i < TTMON_CTR_MAX; i++)
		ttmon_jsonw_key_known(w, ctrs[i], ttmon_slots_known_ctr(s->flags, r, i) != TTMON_SLOTS_UNKNOWN,
				      r->ctr[i]);
	ttmon_jsonw_key_known(w, "llc_bytes", ttmon_slots_known_llc(r) != TTMON_SLOTS_UNKNOWN, r->llc_bytes);
	ttmon_jsonw_key_known(w, "mbm_total", mbm, r->mbm_total);
	ttmon_jsonw_key_known(w, "mbm_local", mbm, r->mbm_local);
	ttmon_jsonw_key_known(w, "rdt_ns", mbm, r->rdt_ns);
	least |= put_sum(w, s, "copies", TTMON_SLOT_NEED_COPIES, r->copies);
	least |= put_sum(w, s, "copy_bytes", TTMON_SLOT_NEED_COPIES, r->copy_bytes);
	ttmon_jsonw_key_known(w, "pinned_bytes",
			      ttmon_slots_known_held(s, TTMON_SLOT_NEED_PINNED) != TTMON_SLOTS_UNKNOWN,
			      r->pinned_bytes);
	if (least)
		ttmon_jsonw_key_bool(w, "at_least", true);
	ttmon_jsonw_key_open(w, "flags", '[');
	for (unsigned int i = 0; i < TTMON_SLOTS_ROW_FLAG_NAMES; i++)
		if (ttmon_slots_row_flag(r->flags, i))
			ttmon_jsonw_name(w, ttmon_slots_row_flag(r->flags, i));
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_close(w, '}');
}
