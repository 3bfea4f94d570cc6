// SPDX-License-Identifier: GPL-2.0-only
/*
 * text.c: `ttmon slots --csv` and `--json`: every field. An unknown figure is empty or null, never 0.
 * A lower bound is printed, and the flags of the row, or at_least, say so.
 */
#include <inttypes.h>

#include "tools/slots/slots_tool.h"

/* ---- CSV ---- */

void ttmon_slots_put_csv(const char *text, size_t n)
{
	n = strnlen(text, n);
	putchar('"');
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '"')
			putchar('"');
		putchar(c < 0x20 || c == 0x7f ? '?' : c);
	}
	putchar('"');
}

static void put_known(bool known, uint64_t value)
{
	if (known)
		printf(",%" PRIu64, value);
	else
		putchar(',');
}

/* Writes a sum; *least: set if it is a lower bound. */
static void put_sum(const struct ttmon_slot *s, uint32_t need, uint64_t value, bool *least)
{
	enum ttmon_slots_known known = ttmon_slots_known_sum(s, need, value);

	put_known(known != TTMON_SLOTS_UNKNOWN, value);
	*least |= known == TTMON_SLOTS_AT_LEAST;
}

void ttmon_slots_csv_head(const struct ttmon_slots_view *v)
{
	if (v->opts->by_slot)
		puts("slot,ms,cpus,user_ns,kernel_ns,idle_ns,missing_ns,rows,events,late,dropped,kernel_lost,allocs,"
		     "frees,copies,"
		     "copy_bytes,pinned_pages,tt_dispatches,tt_busy_ns,missed_before,flags,known,at_least");
	else
		puts("slot,ms,pid,start_ns,comm,class,rmid,cpu_ns,switches,cycles,instructions,llc_misses,"
		     "llc_references,llc_bytes,"
		     "mbm_total,mbm_local,rdt_ns,copies,copy_bytes,pinned_bytes,flags,at_least");
}

static void csv_row(const struct ttmon_slots_view *v, const struct ttmon_slots_item *item,
		    const struct ttmon_slot_row *r)
{
	bool process = r->cls == TTMON_ROW_USER || r->cls == TTMON_ROW_KERNEL,
	     mbm = ttmon_slots_known_mbm(r) != TTMON_SLOTS_UNKNOWN;
	bool first = true, least = false;

	printf("%llu,%" PRId64, item->slot.no, ttmon_slots_ms(v->info, item->slot.no));
	put_known(process, r->tgid);
	put_known(process, r->start_ns);
	putchar(',');
	ttmon_slots_put_csv(r->comm, sizeof(r->comm));
	printf(",%s,%u", ttmon_slots_class_name(r->cls), r->rmid);
	put_known(item->slot.flags & TTMON_SLOT_HAS_CPU, r->cpu_ns);
	put_known(item->slot.flags & TTMON_SLOT_HAS_CPU, r->switches);
	for (unsigned int i = 0; i < TTMON_CTR_MAX; i++)
		put_known(ttmon_slots_known_ctr(item->slot.flags, r, i) != TTMON_SLOTS_UNKNOWN, r->ctr[i]);
	put_known(ttmon_slots_known_llc(r) != TTMON_SLOTS_UNKNOWN, r->llc_bytes);
	put_known(mbm, r->mbm_total);
	put_known(mbm, r->mbm_local);
	put_known(mbm, r->rdt_ns);
	put_sum(&item->slot, TTMON_SLOT_NEED_COPIES, r->copies, &least);
	put_sum(&item->slot, TTMON_SLOT_NEED_COPIES, r->copy_bytes, &least);
	put_known(ttmon_slots_known_held(&item->slot, TTMON_SLOT_NEED_PINNED) != TTMON_SLOTS_UNKNOWN, r->pinned_bytes);
	putchar(',');
	for (unsigned int i = 0; i < TTMON_SLOTS_ROW_FLAG_NAMES; i++) {
		const char *name = ttmon_slots_row_flag(r->flags, i);

		if (name)
			printf("%s%s", first ? "" : " ", name);
		first &= !name;
	}
	puts(least ? ",true" : ",");
}

static void csv_slot(const struct ttmon_slots_view *v, const struct ttmon_slots_item *item)
{
	const struct ttmon_slot *s = &item->slot;
	bool cpu = s->flags & TTMON_SLOT_HAS_CPU, first = true, least = false;

	printf("%llu,%" PRId64, s->no, ttmon_slots_ms(v->info, s->no));
	put_known(cpu, s->cpus);
	put_known(cpu, s->user_ns);
	put_known(cpu, s->kernel_ns);
	put_known(cpu, s->idle_ns);
	put_known(cpu, s->missing_ns);
	printf(",%u,%u,%u,%u,%u", s->nr_rows, s->events, s->late, s->dropped, s->kernel_lost);
	put_sum(s, TTMON_SLOT_NEED_ALLOCS, s->allocs, &least);
	put_sum(s, TTMON_SLOT_NEED_ALLOCS, s->frees, &least);
	put_sum(s, TTMON_SLOT_NEED_COPIES, s->copies, &least);
	put_sum(s, TTMON_SLOT_NEED_COPIES, s->copy_bytes, &least);
	put_known(ttmon_slots_known_held(s, TTMON_SLOT_NEED_PINNED) != TTMON_SLOTS_UNKNOWN, s->pinned_pages);
	put_sum(s, TTMON_SLOT_NEED_TT, s->tt_dispatches, &least);
	put_sum(s, TTMON_SLOT_NEED_TT, s->tt_busy_ns, &least);
	printf(",%" PRIu64 ",", item->missed);
	for (unsigned int i = 0; i < TTMON_SLOTS_SLOT_FLAG_NAMES; i++) {
		const char *name = ttmon_slots_slot_flag(s->flags, i);

		if (name)
			printf("%s%s", first ? "" : " ", name);
		first &= !name;
	}
	putchar(',');
	first = true;
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++) {
		const char *name = ttmon_slots_family(s, i);

		if (name)
			printf("%s%s", first ? "" : " ", name);
		first &= !name;
	}
	puts(least ? ",true" : ",");
}

void ttmon_slots_csv_slot(const struct ttmon_slots_view *v, const struct ttmon_slots_item *item)
{
	const struct ttmon_slot_row *row;
	uint64_t shown = 0;
	uint32_t at = 0;

	if (v->opts->by_slot) {
		csv_slot(v, item);
		return;
	}
	while ((row = ttmon_slots_wanted(v->opts, item, &at, &shown)))
		csv_row(v, item, row);
}

/* ---- JSON ---- */

static void json_slot(struct ttmon_jsonw *w, const struct ttmon_slots_view *v, const struct ttmon_slots_item *item)
{
	const struct ttmon_slot *s = &item->slot;

	ttmon_jsonw_key_num(w, "slot", s->no);
	ttmon_jsonw_key_int(w, "ms", ttmon_slots_ms(v->info, s->no));
	ttmon_slotjson_figures(w, s);
	ttmon_jsonw_key_num(w, "missed_before", item->missed);
	ttmon_slotjson_flags(w, s->flags);
}

void ttmon_slots_json_slot(const struct ttmon_slots_view *v, const struct ttmon_slots_item *item)
{
	const struct ttmon_slot_row *row;
	uint64_t shown = 0;
	uint32_t at = 0;

	ttmon_jsonw_open(v->json, '{');
	json_slot(v->json, v, item);
	if (!v->opts->by_slot) {
		ttmon_jsonw_key_open(v->json, "rows", '[');
		while ((row = ttmon_slots_wanted(v->opts, item, &at, &shown)))
			ttmon_slotjson_row(v->json, &item->slot, row);
		ttmon_jsonw_close(v->json, ']');
	}
	ttmon_jsonw_close(v->json, '}');
	ttmon_jsonw_end(v->json);
}
