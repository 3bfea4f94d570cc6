// SPDX-License-Identifier: GPL-2.0-only
/*
 * sum.c: `ttmon slots --sum`: for each process of the file, what it used in all slots together, sorted
 * by CPU time. A process is identified by its pid and start time. Beyond MAX_PROCS processes, the
 * others share one line.
 *
 * A count that is missing from a slot because its process went on running is added to a later slot
 * (flag ctr_late), so sums are complete where single rows are not. A sum is a lower bound only if a
 * reading failed, which a row cannot distinguish: the sum is shown as it is, with the flag.
 */
#include <inttypes.h>

#include "tools/slots/slots_tool.h"
#include "lib/base/fmt.h"

#define MAX_PROCS (256u << 10)

struct proc {
	struct ttmon_slot_row sum; /* comm: the last one; llc and pinned: the highest */
	uint64_t switches;	   /* wider than the field of a row */
	uint64_t slots, first, last;
	bool ctr, mbm, llc;
	bool cpu;    /* CPU time was measured in at least one of its slots */
	bool no_cpu; /* in at least one of its slots this was not known */
};

struct ttmon_slots_sum {
	struct proc *procs;
	size_t nr, cap;
	uint32_t *hash; /* index into procs + 1; cap * 2 entries */
	struct proc others;
	uint64_t slots, cpu_ns, missing_ns;
	/* In some slot these were not known. */
	bool no_copies, no_pinned;
};

int ttmon_slots_sum_new(struct ttmon_slots_sum **ret)
{
	struct ttmon_slots_sum *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->others.sum.cls = TTMON_ROW_OTHER;
	*ret = s;
	return 0;
}

void ttmon_slots_sum_free(struct ttmon_slots_sum *s)
{
	if (!s)
		return;
	free(s->procs);
	free(s->hash);
	free(s);
}

static size_t place(const struct ttmon_slots_sum *s, const struct ttmon_slot_row *row)
{
	uint64_t h = (row->start_ns ^ ((uint64_t)row->tgid << 32 | row->cls)) * 0x9e3779b97f4a7c15ull;
	size_t mask = s->cap * 2 - 1, at = (size_t)(h >> 32) & mask;

	while (s->hash[at]) {
		const struct ttmon_slot_row *have = &s->procs[s->hash[at] - 1].sum;

		if (have->tgid == row->tgid && have->start_ns == row->start_ns && have->cls == row->cls)
			break;
		at = (at + 1) & mask;
	}
	return at;
}

static int grow(struct ttmon_slots_sum *s)
{
	size_t cap = s->cap ? s->cap * 2 : 256;
	uint32_t *hash = calloc(cap * 2, sizeof(*hash));
	struct proc *procs = realloc(s->procs, cap * sizeof(*procs));

	if (procs)
		s->procs = procs;
	if (!hash || !procs) {
		free(hash);
		return -ENOMEM;
	}
	free(s->hash);
	s->hash = hash;
	s->cap = cap;
	for (size_t i = 0; i < s->nr; i++)
		s->hash[place(s, &s->procs[i].sum)] = (uint32_t)(i + 1);
	return 0;
}

static int find(struct ttmon_slots_sum *s, const struct ttmon_slot_row *row, struct proc **ret)
{
	size_t at;

	if (row->cls == TTMON_ROW_OTHER) {
		*ret = &s->others;
		return 0;
	}
	if (s->nr == s->cap && s->cap < MAX_PROCS && grow(s))
		return -ENOMEM;
	at = place(s, row);
	if (s->hash[at]) {
		*ret = &s->procs[s->hash[at] - 1];
	} else if (s->nr == s->cap) {
		*ret = &s->others;
	} else {
		s->procs[s->nr] =
			(struct proc){ .sum = { .tgid = row->tgid, .start_ns = row->start_ns, .cls = row->cls } };
		s->hash[at] = (uint32_t)++s->nr;
		*ret = &s->procs[s->nr - 1];
	}
	return 0;
}

static enum ttmon_slots_known known(bool gap, uint64_t value)
{
	return !gap ? TTMON_SLOTS_EXACT : value ? TTMON_SLOTS_AT_LEAST : TTMON_SLOTS_UNKNOWN;
}

static enum ttmon_slots_known known_cpu(const struct proc *p)
{
	return !p->cpu ? TTMON_SLOTS_UNKNOWN : p->no_cpu ? TTMON_SLOTS_AT_LEAST : TTMON_SLOTS_EXACT;
}

static enum ttmon_slots_known known_copies(const struct ttmon_slots_sum *s, uint64_t value)
{
	return known(s->no_copies, value);
}

static enum ttmon_slots_known known_pinned(const struct ttmon_slots_sum *s, const struct proc *p)
{
	return known(s->no_pinned, p->sum.pinned_bytes);
}

static bool is_least(const struct ttmon_slots_sum *s, const struct proc *p)
{
	return known_cpu(p) == TTMON_SLOTS_AT_LEAST || known_copies(s, p->sum.copies) == TTMON_SLOTS_AT_LEAST ||
	       known_pinned(s, p) == TTMON_SLOTS_AT_LEAST;
}

static void add(struct proc *p, const struct ttmon_slots_item *item, const struct ttmon_slot_row *row)
{
	if (!p->slots++)
		p->first = item->slot.no;
	p->last = item->slot.no;
	p->ctr |= item->slot.flags & TTMON_SLOT_HAS_CTR && row->cls != TTMON_ROW_UNASSIGNED;
	p->mbm |= row->rdt_ns != 0;
	p->llc |= (row->flags & TTMON_ROW_LLC_VALID) != 0;
	p->sum.flags |= row->flags;
	if (row->rmid)
		p->sum.rmid = row->rmid;
	if (p->sum.cls != TTMON_ROW_OTHER)
		memcpy(p->sum.comm, row->comm, sizeof(p->sum.comm));
	p->sum.cpu_ns += row->cpu_ns;
	for (unsigned int i = 0; i < TTMON_CTR_MAX; i++)
		p->sum.ctr[i] += row->ctr[i];
	p->sum.llc_bytes = MAX(p->sum.llc_bytes, row->llc_bytes);
	p->sum.mbm_total += row->mbm_total;
	p->sum.mbm_local += row->mbm_local;
	p->sum.copies += row->copies;
	p->sum.copy_bytes += row->copy_bytes;
	if (ttmon_slot_knows(&item->slot, TTMON_SLOT_NEED_PINNED))
		p->sum.pinned_bytes = MAX(p->sum.pinned_bytes, row->pinned_bytes);
	p->cpu |= (item->slot.flags & TTMON_SLOT_HAS_CPU) != 0;
	p->no_cpu |= !(item->slot.flags & TTMON_SLOT_HAS_CPU);
	p->switches += row->switches;
}

int ttmon_slots_sum_slot(struct ttmon_slots_sum *s, const struct ttmon_slots_view *v,
			 const struct ttmon_slots_item *item)
{
	struct ttmon_slots_opts all = *v->opts;
	const struct ttmon_slot_row *row;
	struct proc *p = NULL;
	uint64_t shown = 0;
	uint32_t at = 0;
	int err = 0;

	all.top = 0;
	s->slots++;
	s->cpu_ns += item->slot.cpus * NSEC_PER_MS;
	s->missing_ns += item->slot.missing_ns;
	/*
	 * This counts for processes without a row in this slot too: a gap is reported by a later slot, in
	 * which that process may not have run.
	 */
	s->no_copies |= !ttmon_slot_knows(&item->slot, TTMON_SLOT_NEED_COPIES);
	s->no_pinned |= !ttmon_slot_knows(&item->slot, TTMON_SLOT_NEED_PINNED);
	while (!err && (row = ttmon_slots_wanted(&all, item, &at, &shown))) {
		err = find(s, row, &p);
		if (!err)
			add(p, item, row);
	}
	return err;
}

static int by_time(const void *a, const void *b)
{
	const struct ttmon_slot_row *x = &((const struct proc *)a)->sum, *y = &((const struct proc *)b)->sum;

	if (x->cpu_ns != y->cpu_ns)
		return x->cpu_ns < y->cpu_ns ? 1 : -1;
	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

/* ---- output forms ---- */

static bool known_ctr(const struct proc *p, unsigned int ctr)
{
	return p->ctr && (p->sum.ctr[ctr] || !(p->sum.flags & TTMON_ROW_CTR_UNKNOWN));
}

/* Prints a value, "-" or ">=12", as the other table does. */
static void cell(int width, enum ttmon_slots_known known, const char *text)
{
	char buf[TTMON_FMT_LEN + 2];

	snprintf(buf, sizeof(buf), "%s%s", known == TTMON_SLOTS_AT_LEAST ? ">=" : "",
		 known == TTMON_SLOTS_UNKNOWN ? "-" : text);
	printf("  %*s", width, buf);
}

static void table_head(const struct ttmon_slots_seen *seen)
{
	printf("%7s  %-18s  %12s  %6s  %10s", "pid", "process", "CPU ms", "%", "switches");
	if (seen->ctr)
		printf("  %5s  %13s", "IPC", "LLC misses");
	if (seen->llc)
		printf("  %10s", "LLC peak");
	if (seen->mbm)
		printf("  %10s", "traffic");
	if (seen->copies)
		printf("  %9s  %12s", "copies", "copied");
	if (seen->pinned)
		printf("  %12s", "pinned");
	putchar('\n');
}

static void table_proc(const struct ttmon_slots_sum *s, const struct ttmon_slots_seen *seen, const struct proc *p)
{
	const struct ttmon_slot_row *r = &p->sum;
	char name[TTMON_SLOTS_NAME], text[TTMON_FMT_LEN];

	if (r->cls == TTMON_ROW_USER || r->cls == TTMON_ROW_KERNEL)
		printf("%7u", r->tgid);
	else
		printf("%7s", "-");
	printf("  %-18s", ttmon_slots_row_name(name, r));
	snprintf(text, sizeof(text), "%.3f", (double)r->cpu_ns / (double)NSEC_PER_MS);
	cell(12, known_cpu(p), text);
	if (s->cpu_ns && p->cpu)
		printf("  %6.2f", 100.0 * (double)r->cpu_ns / (double)s->cpu_ns);
	else
		printf("  %6s", "-");
	cell(10, known_cpu(p), ttmon_fmt_count(text, sizeof(text), p->switches));
	if (seen->ctr) {
		if (r->ctr[TTMON_CTR_CYCLES])
			printf("  %5.2f", (double)r->ctr[TTMON_CTR_INSTRUCTIONS] / (double)r->ctr[TTMON_CTR_CYCLES]);
		else
			printf("  %5s", "-");
		printf("  %13s", known_ctr(p, TTMON_CTR_LLC_MISSES)
					 ? ttmon_fmt_count(text, sizeof(text), r->ctr[TTMON_CTR_LLC_MISSES])
					 : "-");
	}
	if (seen->llc)
		printf("  %10s", p->llc ? ttmon_fmt_bytes(text, sizeof(text), r->llc_bytes) : "-");
	if (seen->mbm)
		printf("  %10s", p->mbm ? ttmon_fmt_bytes(text, sizeof(text), r->mbm_total) : "-");
	if (seen->copies) {
		cell(9, known_copies(s, r->copies), ttmon_fmt_count(text, sizeof(text), r->copies));
		cell(12, known_copies(s, r->copy_bytes), ttmon_fmt_bytes(text, sizeof(text), r->copy_bytes));
	}
	if (seen->pinned)
		cell(12, known_pinned(s, p), ttmon_fmt_bytes(text, sizeof(text), r->pinned_bytes));
	putchar('\n');
}

static void csv_proc(const struct ttmon_slots_sum *s, const struct proc *p, const struct ttmon_slots_info *info)
{
	const struct ttmon_slot_row *r = &p->sum;
	bool process = r->cls == TTMON_ROW_USER || r->cls == TTMON_ROW_KERNEL;
	const struct {
		bool known;
		uint64_t value;
	} cells[] = {
		{ p->cpu, r->cpu_ns },
		{ p->cpu, p->switches },
		{ known_ctr(p, 0), r->ctr[0] },
		{ known_ctr(p, 1), r->ctr[1] },
		{ known_ctr(p, 2), r->ctr[2] },
		{ known_ctr(p, 3), r->ctr[3] },
		{ p->llc, r->llc_bytes },
		{ p->mbm, r->mbm_total },
		{ p->mbm, r->mbm_local },
		{ known_copies(s, r->copies) != TTMON_SLOTS_UNKNOWN, r->copies },
		{ known_copies(s, r->copy_bytes) != TTMON_SLOTS_UNKNOWN, r->copy_bytes },
		{ known_pinned(s, p) != TTMON_SLOTS_UNKNOWN, r->pinned_bytes },
	};

	if (process)
		printf("%u,%llu,", r->tgid, r->start_ns);
	else
		printf(",,");
	ttmon_slots_put_csv(r->comm, sizeof(r->comm));
	printf(",%s,%" PRIu64 ",%" PRId64 ",%" PRId64, ttmon_slots_class_name(r->cls), p->slots,
	       ttmon_slots_ms(info, p->first), ttmon_slots_ms(info, p->last));
	for (size_t i = 0; i < ARRAY_SIZE(cells); i++) {
		putchar(',');
		if (cells[i].known)
			printf("%" PRIu64, cells[i].value);
	}
	puts(is_least(s, p) ? ",true" : ",");
}

static void json_proc(const struct ttmon_slots_sum *s, struct ttmon_jsonw *w, const struct proc *p,
		      const struct ttmon_slots_info *info)
{
	static const char *const ctrs[TTMON_CTR_MAX] = {
#define X(id, NAME, name) [id] = name,
		TTMON_CTR_TABLE(X)
#undef X
	};
	const struct ttmon_slot_row *r = &p->sum;

	ttmon_slotjson_who(w, r);
	ttmon_jsonw_key_num(w, "slots", p->slots);
	ttmon_jsonw_key_int(w, "first_ms", ttmon_slots_ms(info, p->first));
	ttmon_jsonw_key_int(w, "last_ms", ttmon_slots_ms(info, p->last));
	ttmon_jsonw_key_known(w, "cpu_ns", p->cpu, r->cpu_ns);
	ttmon_jsonw_key_known(w, "switches", p->cpu, p->switches);
	for (unsigned int i = 0; i < TTMON_CTR_MAX; i++)
		ttmon_jsonw_key_known(w, ctrs[i], known_ctr(p, i), r->ctr[i]);
	ttmon_jsonw_key_known(w, "llc_bytes_peak", p->llc, r->llc_bytes);
	ttmon_jsonw_key_known(w, "mbm_total", p->mbm, r->mbm_total);
	ttmon_jsonw_key_known(w, "mbm_local", p->mbm, r->mbm_local);
	ttmon_jsonw_key_known(w, "copies", known_copies(s, r->copies) != TTMON_SLOTS_UNKNOWN, r->copies);
	ttmon_jsonw_key_known(w, "copy_bytes", known_copies(s, r->copy_bytes) != TTMON_SLOTS_UNKNOWN, r->copy_bytes);
	ttmon_jsonw_key_known(w, "pinned_bytes_peak", known_pinned(s, p) != TTMON_SLOTS_UNKNOWN, r->pinned_bytes);
	if (is_least(s, p))
		ttmon_jsonw_key_bool(w, "at_least", true);
	ttmon_jsonw_close(w, '}');
	ttmon_jsonw_end(w);
}

static void print_one(struct ttmon_slots_sum *s, const struct ttmon_slots_view *v, const struct proc *p)
{
	if (v->opts->form == TTMON_SLOTS_TABLE)
		table_proc(s, &v->seen, p);
	else if (v->opts->form == TTMON_SLOTS_CSV)
		csv_proc(s, p, v->info);
	else
		json_proc(s, v->json, p, v->info);
}

void ttmon_slots_sum_print(struct ttmon_slots_sum *s, const struct ttmon_slots_view *v)
{
	uint64_t shown = 0;

	if (s->nr)
		qsort(s->procs, s->nr, sizeof(*s->procs), by_time);
	if (v->opts->form == TTMON_SLOTS_TABLE)
		table_head(&v->seen);
	else if (v->opts->form == TTMON_SLOTS_CSV)
		puts("pid,start_ns,comm,class,slots,first_ms,last_ms,cpu_ns,switches,cycles,instructions,llc_misses,"
		     "llc_references,"
		     "llc_bytes_peak,mbm_total,mbm_local,copies,copy_bytes,pinned_bytes_peak,at_least");
	for (size_t i = 0; i < s->nr; i++) {
		if (v->opts->top && s->procs[i].sum.cls != TTMON_ROW_IDLE && shown++ >= v->opts->top)
			continue;
		print_one(s, v, &s->procs[i]);
	}
	if (s->others.slots)
		print_one(s, v, &s->others);
	if (v->opts->form == TTMON_SLOTS_TABLE && s->missing_ns && !v->opts->has_pid)
		printf("%7s  %-18s  %12.3f\n", "-", "(missing)", (double)s->missing_ns / (double)NSEC_PER_MS);
}
