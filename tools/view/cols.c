// SPDX-License-Identifier: GPL-2.0-only
/*
 * cols.c: the allocations of the page, as one array for each column: this compresses better than rows
 * and loads faster.
 */
#include "lib/base/names.h"
#include "tools/view/view_int.h"

/* The columns; each has one value for an allocation. */
enum column {
	COL_T0, /* as the difference to the allocation before, which makes short numbers */
	COL_LIFE,
	COL_PROC,
	COL_SITE,
	COL_METHOD,
	COL_FN,
	COL_SIZE,
	COL_PAGES,
	COL_ORDINAL,
	COL_FLAGS,
	COL_H2D,
	COL_H2D_BYTES,
	COL_D2H,
	COL_D2H_BYTES,
	COL_OTHER,
	COL_ASYNC,
	COL_DROPPED,
	COL_PIN_NS,
	COL_UNPIN_NS,
	COL_VERDICT,
	COL_MATCH,
	COL_IN_PLACE,
	COL_CONFIDENCE, /* percent */
	COL_GAIN,	/* 0: there is no advice */
	COL_REASON,
	COL_COLD,
	COL_KIND,     /* enum kind */
	COL_AT_LEAST, /* some copies were missed: the counts above are lower bounds, null if none was seen */
	COL_MAX
};
/* view.js has the same numbers. */
enum kind { KIND_METHOD, KIND_UNKNOWN, KIND_PINNED };
static const char *const column_names[COL_MAX] = {
	[COL_T0] = "t0",
	[COL_LIFE] = "life",
	[COL_PROC] = "proc",
	[COL_SITE] = "site",
	[COL_METHOD] = "method",
	[COL_FN] = "fn",
	[COL_SIZE] = "size",
	[COL_PAGES] = "pages",
	[COL_ORDINAL] = "ordinal",
	[COL_FLAGS] = "flags",
	[COL_H2D] = "h2d",
	[COL_H2D_BYTES] = "h2d_bytes",
	[COL_D2H] = "d2h",
	[COL_D2H_BYTES] = "d2h_bytes",
	[COL_OTHER] = "other",
	[COL_ASYNC] = "async",
	[COL_DROPPED] = "dropped",
	[COL_PIN_NS] = "pin_ns",
	[COL_UNPIN_NS] = "unpin_ns",
	[COL_VERDICT] = "verdict",
	[COL_MATCH] = "match",
	[COL_IN_PLACE] = "in_place",
	[COL_CONFIDENCE] = "conf",
	[COL_GAIN] = "gain",
	[COL_REASON] = "reason",
	[COL_COLD] = "cold",
	[COL_KIND] = "kind",
	[COL_AT_LEAST] = "at_least",
};

static int64_t cut(uint64_t n)
{
	return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

static int64_t value(const struct ttmon_view_out *o, enum column col, const struct ttmon_run_alloc *a,
		     const struct ttmon_answer *answer, const struct ttmon_said *said)
{
	switch (col) {
	case COL_T0:
		return cut(ttmon_view_since(o->run, a->alloc_ns));
	case COL_LIFE:
		return cut(ttmon_view_since(o->run, a->free_ns) - ttmon_view_since(o->run, a->alloc_ns));
	case COL_PROC:
		return o->procs[a->proc];
	case COL_SITE:
		return o->sites[a->site];
	case COL_METHOD:
		return a->method;
	case COL_FN:
		return a->fn;
	case COL_SIZE:
		return cut(a->size);
	case COL_PAGES:
		return cut(ttmon_run_pages(a));
	case COL_ORDINAL:
		return a->ordinal;
	case COL_FLAGS:
		return a->flags;
	case COL_H2D:
		return a->h2d_copies;
	case COL_H2D_BYTES:
		return cut(a->h2d_bytes);
	case COL_D2H:
		return a->d2h_copies;
	case COL_D2H_BYTES:
		return cut(a->d2h_bytes);
	case COL_OTHER:
		return a->other_copies;
	case COL_ASYNC:
		return a->async_copies;
	case COL_DROPPED:
		return a->events_dropped;
	case COL_PIN_NS:
		return cut(a->pin_ns);
	case COL_UNPIN_NS:
		return cut(a->unpin_ns);
	case COL_VERDICT:
		return said->advice;
	case COL_MATCH:
		return answer->match;
	case COL_IN_PLACE:
		return answer->in_place;
	case COL_CONFIDENCE:
		return (int64_t)(said->confidence * 100 + 0.5);
	case COL_GAIN:
		return said->known ? said->gain_ns : 0;
	case COL_REASON:
		return said->reason;
	case COL_COLD:
		return said->cold;
	case COL_KIND:
		return ttmon_run_is_unknown(a) ? KIND_UNKNOWN : a->flags & TTMON_RUN_PROVED ? KIND_PINNED : KIND_METHOD;
	case COL_AT_LEAST:
		return (a->flags & TTMON_RUN_AT_LEAST) != 0;
	case COL_MAX:
		break;
	}
	return 0;
}

/* The verdict for memory that is in no group: keep it, or unknown if some copies were missed. */
static const struct ttmon_said *no_verdict(const struct ttmon_run_alloc *a)
{
	static const struct ttmon_said not_moved = { .advice = TTMON_ADVICE_KEEP, .reason = TTMON_REASON_NOT_MOVED };
	static const struct ttmon_said kind = { .advice = TTMON_ADVICE_UNKNOWN, .reason = TTMON_REASON_KIND };
	static const struct ttmon_said unseen = { .advice = TTMON_ADVICE_UNKNOWN, .reason = TTMON_REASON_UNSEEN };

	return a->flags & TTMON_RUN_UNSEEN ? &kind : a->flags & TTMON_RUN_AT_LEAST ? &unseen : &not_moved;
}

/*
 * Returns whether a count of copies or bytes is not known: none was seen, and some can have been
 * missed.
 */
static bool is_null(enum column col, const struct ttmon_run_alloc *a, int64_t n)
{
	return col >= COL_H2D && col <= COL_ASYNC && !n && a->flags & TTMON_RUN_AT_LEAST;
}

static void columns(struct ttmon_view_out *o)
{
	struct ttmon_jsonw *w = &o->w;
	const struct ttmon_view *v = o->v;

	for (unsigned int col = 0; col < COL_MAX; col++) {
		int64_t last = 0;

		ttmon_jsonw_key_open(w, column_names[col], '[');
		for (size_t i = 0; i < v->nr_shown; i++) {
			const struct ttmon_run_alloc *a = &o->run->allocs[v->shown[i]];
			const struct ttmon_said *said =
				v->groups ? ttmon_pin_groups_said(v->groups, v->shown[i]) : NULL;
			int64_t n = value(o, (enum column)col, a, &o->answers[i], said ?: no_verdict(a));

			if (is_null((enum column)col, a, n))
				ttmon_jsonw_null(w);
			else
				ttmon_jsonw_int(w, col == COL_T0 ? n - last : n);
			last = n;
		}
		ttmon_jsonw_close(w, ']');
	}
}

/* Returns whether the id can be computed from the other columns: only ids that cannot are written. */
static bool id_follows(const struct ttmon_view_out *o, const struct ttmon_run_alloc *a)
{
	char id[96];

	snprintf(id, sizeof(id), "%016llx:%llu:%u@%u", (unsigned long long)o->run->sites[a->site].key,
		 (unsigned long long)a->size, a->ordinal, a->proc);
	return strcmp(id, a->id) == 0;
}

static void texts(struct ttmon_view_out *o)
{
	struct ttmon_jsonw *w = &o->w;
	const struct ttmon_view *v = o->v;

	ttmon_jsonw_key_open(w, "addr", '[');
	for (size_t i = 0; i < v->nr_shown; i++)
		ttmon_jsonw_addr(w, o->run->allocs[v->shown[i]].addr);
	ttmon_jsonw_close(w, ']');
	/* an array of: number of the allocation, text */
	for (unsigned int names = 0; names < 2; names++) {
		ttmon_jsonw_key_open(w, names ? "names" : "ids", '[');
		for (size_t i = 0; i < v->nr_shown; i++) {
			const struct ttmon_run_alloc *a = &o->run->allocs[v->shown[i]];

			if (names ? !a->name : id_follows(o, a))
				continue;
			ttmon_jsonw_num(w, i);
			ttmon_jsonw_str(w, names ? a->name : a->id);
		}
		ttmon_jsonw_close(w, ']');
	}
	/* As in the database: the number in an id counts over all processes. */
	ttmon_jsonw_key_open(w, "proc_index", '[');
	for (size_t i = 0; i < o->run->nr_procs; i++)
		if (o->procs[i] != TTMON_RUN_NONE)
			ttmon_jsonw_num(w, i);
	ttmon_jsonw_close(w, ']');
	/* pairs of number and name */
	ttmon_jsonw_key_open(w, "fns", '[');
	for (size_t i = 0; i < v->nr_shown; i++) {
		uint16_t fn = o->run->allocs[v->shown[i]].fn;

		if (!fn || o->fns[fn])
			continue;
		o->fns[fn] = true;
		ttmon_jsonw_num(w, fn);
		ttmon_jsonw_str(w, ttmon_fn_name(fn));
	}
	ttmon_jsonw_close(w, ']');
}

void ttmon_view_columns(struct ttmon_view_out *o)
{
	columns(o);
	texts(o);
}
