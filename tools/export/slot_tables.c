// SPDX-License-Identifier: GPL-2.0-only
/*
 * slot_tables.c: a slot file as tables: a row a slot, and a row a slot and process. What is known of a
 * figure is decided as for `ttmon slots --json`.
 *
 * For Parquet the rows of a process follow each other within each 128 Ki rows: what they share (pid,
 * start, name, RMID) then takes next to nothing, which halves the file on a busy host.
 */
#include <ttmon/event.h>

#include "lib/base/grow.h"
#include "lib/base/hash.h"
#include "lib/base/hmap.h"
#include "lib/base/utf8.h"
#include "lib/read/slots_json.h"
#include "tools/export/tables.h"

enum { RUN, SLOTS, SLOT_ROWS };

#define T(n) TTMON_EXPORT_T(n)
#define I(n) TTMON_EXPORT_I(n)

static const struct ttmon_export_column run_columns[] = { T("key"), T("value") };
static const struct ttmon_export_column slot_columns[] = {
	I("slot"),	    I("start_ns"), I("cpus"),	      I("user_ns"),	 I("kernel_ns"),     I("idle_ns"),
	I("missing_ns"),    I("events"),   I("late"),	      I("dropped"),	 I("kernel_lost"),   I("allocs"),
	I("frees"),	    I("copies"),   I("copied_bytes"), I("pinned_pages"), I("tt_dispatches"), I("tt_busy_ns"),
	I("missed_before"), T("flags"),	   T("known"),	      I("at_least"),
};
static const struct ttmon_export_column row_columns[] = {
	I("slot"),
	I("pid"),
	I("start_ns"),
	T("comm"),
	T("class"),
	I("rmid"),
	I("cpu_ns"),
	I("switches"),
	I("cycles"),
	I("instructions"),
	I("llc_misses"),
	I("llc_references"),
	I("llc_bytes"),
	I("mbm_total_bytes"),
	I("mbm_local_bytes"),
	I("rdt_ns"),
	I("copies"),
	I("copied_bytes"),
	I("pinned_bytes"),
	T("flags"),
	I("at_least"),
};

const struct ttmon_export_table ttmon_export_slots_tables[TTMON_EXPORT_SLOTS_TABLES] = {
	[RUN] = TTMON_EXPORT_TABLE("run", run_columns),
	[SLOTS] = TTMON_EXPORT_TABLE("slots", slot_columns),
	[SLOT_ROWS] = TTMON_EXPORT_TABLE("slot_rows", row_columns),
};

#define FLAGS 256 /* bytes of the names of all flags */

static void add_flag(char *buf, const char *name)
{
	if (!name)
		return;
	if (*buf)
		strcat(buf, " ");
	strcat(buf, name);
}

/* A sum that is a lower bound sets *least. */
static struct ttmon_export_value sum(const struct ttmon_slot *s, uint32_t need, uint64_t v, bool *least)
{
	enum ttmon_slots_known known = ttmon_slots_known_sum(s, need, v);

	*least |= known == TTMON_SLOTS_AT_LEAST;
	return ttmon_export_u64(known != TTMON_SLOTS_UNKNOWN, v);
}

static int put_slot(struct ttmon_export *x, const struct ttmon_slots_item *item)
{
	const struct ttmon_slot *s = &item->slot;
	bool cpu = s->flags & TTMON_SLOT_HAS_CPU, families = s->flags & TTMON_SLOT_HAS_KNOWN, least = false;
	char flags[FLAGS] = "", known[FLAGS] = "";
	struct ttmon_export_value values[] = {
		ttmon_export_u64(true, s->no),
		ttmon_export_u64(s->no < INT64_MAX / NSEC_PER_MS, s->no * NSEC_PER_MS),
		ttmon_export_u64(cpu, s->cpus),
		ttmon_export_u64(cpu, s->user_ns),
		ttmon_export_u64(cpu, s->kernel_ns),
		ttmon_export_u64(cpu, s->idle_ns),
		ttmon_export_u64(cpu, s->missing_ns),
		ttmon_export_u64(true, s->events),
		ttmon_export_u64(true, s->late),
		ttmon_export_u64(true, s->dropped),
		ttmon_export_u64(true, s->kernel_lost),
		sum(s, TTMON_SLOT_NEED_ALLOCS, s->allocs, &least),
		sum(s, TTMON_SLOT_NEED_ALLOCS, s->frees, &least),
		sum(s, TTMON_SLOT_NEED_COPIES, s->copies, &least),
		sum(s, TTMON_SLOT_NEED_COPIES, s->copy_bytes, &least),
		ttmon_export_u64(ttmon_slots_known_held(s, TTMON_SLOT_NEED_PINNED) != TTMON_SLOTS_UNKNOWN,
				 s->pinned_pages),
		sum(s, TTMON_SLOT_NEED_TT, s->tt_dispatches, &least),
		sum(s, TTMON_SLOT_NEED_TT, s->tt_busy_ns, &least),
		ttmon_export_u64(true, item->missed),
		ttmon_export_text(flags),
		ttmon_export_text(families ? known : NULL),
		{ 0 },
	};

	_Static_assert(ARRAY_SIZE(values) == ARRAY_SIZE(slot_columns), "a value a column");
	values[ARRAY_SIZE(values) - 1] = ttmon_export_u64(true, least);
	for (unsigned int i = 0; i < TTMON_SLOTS_SLOT_FLAG_NAMES; i++)
		add_flag(flags, ttmon_slots_slot_flag(s->flags, i));
	for (unsigned int i = 0; i < TTMON_FAMILY_MAX; i++)
		add_flag(known, ttmon_slots_family(s, i));
	return ttmon_export_row(x, SLOTS, values);
}

static int put_row(struct ttmon_export *x, const struct ttmon_slot *s, const struct ttmon_slot_row *r)
{
	bool process = r->cls == TTMON_ROW_USER || r->cls == TTMON_ROW_KERNEL, cpu = s->flags & TTMON_SLOT_HAS_CPU;
	bool mbm = ttmon_slots_known_mbm(r) != TTMON_SLOTS_UNKNOWN, least = false;
	char comm[3 * sizeof(r->comm) + 1], flags[FLAGS] = "";
	struct ttmon_export_value values[] = {
		ttmon_export_u64(true, s->no),
		ttmon_export_u64(process, r->tgid),
		ttmon_export_u64(process, r->start_ns),
		ttmon_export_text(*r->comm ? ttmon_utf8_clean(comm, sizeof(comm), r->comm, sizeof(r->comm)) : NULL),
		ttmon_export_text(ttmon_slots_class_name(r->cls)),
		ttmon_export_u64(r->rmid, r->rmid),
		ttmon_export_u64(cpu, r->cpu_ns),
		ttmon_export_u64(cpu, r->switches),
		{ 0 },
		{ 0 },
		{ 0 },
		{ 0 },
		ttmon_export_u64(ttmon_slots_known_llc(r) != TTMON_SLOTS_UNKNOWN, r->llc_bytes),
		ttmon_export_u64(mbm, r->mbm_total),
		ttmon_export_u64(mbm, r->mbm_local),
		ttmon_export_u64(mbm, r->rdt_ns),
		sum(s, TTMON_SLOT_NEED_COPIES, r->copies, &least),
		sum(s, TTMON_SLOT_NEED_COPIES, r->copy_bytes, &least),
		ttmon_export_u64(ttmon_slots_known_held(s, TTMON_SLOT_NEED_PINNED) != TTMON_SLOTS_UNKNOWN,
				 r->pinned_bytes),
		ttmon_export_text(flags),
		{ 0 },
	};

	_Static_assert(ARRAY_SIZE(values) == ARRAY_SIZE(row_columns), "a value a column");
	/* The counters are columns 8 to 11, in the order of enum ttmon_ctr. */
	for (unsigned int i = 0; i < TTMON_CTR_MAX; i++)
		values[8 + i] =
			ttmon_export_u64(ttmon_slots_known_ctr(s->flags, r, i) != TTMON_SLOTS_UNKNOWN, r->ctr[i]);
	values[ARRAY_SIZE(values) - 1] = ttmon_export_u64(true, least);
	for (unsigned int i = 0; r->flags && i < TTMON_SLOTS_ROW_FLAG_NAMES; i++)
		add_flag(flags, ttmon_slots_row_flag(r->flags, i));
	return ttmon_export_row(x, SLOT_ROWS, values);
}

static int put_run(struct ttmon_export *x, const char *key, const char *text)
{
	return ttmon_export_row(x, RUN, (const struct ttmon_export_value[]){ { .text = key }, { .text = text } });
}

static int put_number(struct ttmon_export *x, const char *key, uint64_t v)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)v);
	return put_run(x, key, text);
}

static int put_head(struct ttmon_export *x, const struct ttmon_slots_info *info)
{
	char text[3 * sizeof(info->hostname) + 1];
	int err = put_run(x, "ttmond", ttmon_utf8_clean(text, sizeof(text), info->ttmond, sizeof(info->ttmond)));

	ttmon_utf8_clean(text, sizeof(text), info->hostname, sizeof(info->hostname));
	err = err ? err : put_run(x, "hostname", text);
	err = err ? err : put_number(x, "start_ns", info->start_ns);
	err = err ? err : put_number(x, "real_ns", info->real_ns);
	return err ? err : put_number(x, "nr_cpus", info->nr_cpus);
}

/* ---- rows by process ---- */

struct waiting {
	struct ttmon_slot_row row;
	uint32_t slot, proc; /* indexes */
};

/* Rows that wait for their order; written when there are TTMON_EXPORT_BATCH. */
struct batch {
	struct waiting *rows;
	struct ttmon_slot *slots;
	size_t nr_rows, nr_slots, cap_slots;
	struct ttmon_hmap procs; /* from the hash of what rows of a process share to its number */
	uint32_t *first;	 /* scratch */
};

static void free_batch(struct batch *b)
{
	free(b->rows);
	free(b->slots);
	free(b->first);
	ttmon_hmap_fini(&b->procs);
}

/* Two processes of one hash are only mixed with each other. */
static uint64_t hash_of(const struct ttmon_slot_row *r)
{
	uint64_t h = ttmon_fnv_u64(TTMON_FNV_BASIS, r->start_ns);

	h = ttmon_fnv_u64(h, (uint64_t)r->tgid << 32 | (uint64_t)r->rmid << 8 | r->cls);
	return ttmon_fnv(h, r->comm, sizeof(r->comm));
}

/* The rows in the order in which their processes were first seen, and then in that of the slots. */
static int flush(struct ttmon_export *x, struct batch *b)
{
	size_t n = b->nr_rows, procs = b->procs.n;
	uint32_t *order = b->first + TTMON_EXPORT_BATCH + 1;
	int err = 0;

	memset(b->first, 0, (procs + 1) * sizeof(*b->first));
	for (size_t i = 0; i < n; i++)
		b->first[b->rows[i].proc + 1]++;
	for (size_t i = 0; i < procs; i++)
		b->first[i + 1] += b->first[i];
	for (size_t i = 0; i < n; i++)
		order[b->first[b->rows[i].proc]++] = (uint32_t)i;
	for (size_t i = 0; i < n && !err; i++) {
		const struct waiting *w = &b->rows[order[i]];

		err = put_row(x, &b->slots[w->slot], &w->row);
	}
	b->nr_rows = b->nr_slots = 0;
	ttmon_hmap_fini(&b->procs);
	b->procs = (struct ttmon_hmap){ 0 };
	return err;
}

static int add_slot(struct ttmon_export *x, struct batch *b, const struct ttmon_slots_item *item)
{
	if (!b->rows) {
		b->rows = malloc(TTMON_EXPORT_BATCH * sizeof(*b->rows));
		b->first = malloc((2 * TTMON_EXPORT_BATCH + 1) * sizeof(*b->first));
		if (!b->rows || !b->first)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < item->slot.nr_rows; i++) {
		uint64_t key = hash_of(&item->rows[i]), proc = ttmon_hmap_get(&b->procs, key);

		/* After a flush too. */
		if (!i || !b->nr_rows) {
			if (TTMON_GROW(b->slots, b->cap_slots, b->nr_slots + 1, 4096))
				return -ENOMEM;
			b->slots[b->nr_slots++] = item->slot;
		}
		if (proc == TTMON_HMAP_NONE) {
			proc = b->procs.n;
			if (ttmon_hmap_put(&b->procs, key, proc))
				return -ENOMEM;
		}
		b->rows[b->nr_rows++] = (struct waiting){ item->rows[i], (uint32_t)b->nr_slots - 1, (uint32_t)proc };
		if (b->nr_rows == TTMON_EXPORT_BATCH) {
			int err = flush(x, b);

			if (err)
				return err;
		}
	}
	return 0;
}

/* ---- the file ---- */

int ttmon_export_slots(struct ttmon_export *x, struct ttmon_slots_reader *s, bool by_process,
		       const volatile sig_atomic_t *stopped)
{
	_cleanup_(free_batch) struct batch batch = { 0 };
	int err = put_head(x, ttmon_slots_get_info(s)), r = 0;
	struct ttmon_slots_item item;

	while (!err && !*stopped && (r = ttmon_slots_next(s, &item)) == 1) {
		err = put_slot(x, &item);
		if (!err && by_process)
			err = add_slot(x, &batch, &item);
		for (uint32_t i = 0; i < item.slot.nr_rows && !err && !by_process; i++)
			err = put_row(x, &item.slot, &item.rows[i]);
	}
	if (!err && !r && batch.nr_rows)
		err = flush(x, &batch);
	if (*stopped)
		return -EINTR;
	if (err || r < 0)
		return err ? err : r;
	return put_number(x, "dropped_slots", ttmon_slots_get_end(s)->dropped);
}
