// SPDX-License-Identifier: GPL-2.0-only
/* json.c: the heat map as JSON: the cells of each row as numbers. Pure. */
#include "lib/base/names.h"
#include "daemon/core/history/history.h"
#include "tools/heat/heat.h"

static json_t *count_of(uint64_t v)
{
	return json_integer((json_int_t)MIN(v, (uint64_t)INT64_MAX));
}

static json_t *time_or_null(bool known, uint64_t ns)
{
	char text[24];

	if (!known)
		return json_null();
	snprintf(text, sizeof(text), "%llu", (unsigned long long)ns);
	return json_string(text);
}

static json_t *text_of(const char *s)
{
	json_t *v = s ? json_string(s) : json_null();

	/* The text is not UTF-8. */
	return v ? v : json_string("?");
}

static json_t *cells_of(const struct ttmon_heatmap_row *r, const struct ttmon_heatmap_span *span)
{
	uint64_t cells[TTMON_HEAT_WIDTH_MAX];
	json_t *list = json_array();

	ttmon_heatmap_cells(r, span, cells);
	for (unsigned int c = 0; c < span->columns; c++)
		json_array_append_new(list, count_of(cells[c]));
	return list;
}

static json_t *row_of(const struct ttmon_heatmap *map, const struct ttmon_heatmap_row *r,
		      const struct ttmon_heatmap_span *span)
{
	struct ttmon_heatmap_span copies = *span, bytes = *span;
	json_t *o = json_object();

	copies.copies = true;
	bytes.copies = false;
	if (map->pages) {
		json_object_set_new(o, "offset", count_of(r->seq));
	} else {
		json_object_set_new(o, "id", text_of(map->sites && r->allocs > 1 ? NULL : r->id));
		json_object_set_new(o, "allocations", json_integer(r->allocs));
		json_object_set_new(o, "pid", json_integer(r->pid));
		json_object_set_new(o, "comm", text_of(r->comm));
		json_object_set_new(o, "call_site", text_of(r->site));
		json_object_set_new(o, "method", text_of(ttmon_method_name(r->method)));
		json_object_set_new(o, "pinned", r->unseen ? json_null() : json_boolean(r->pinned));
		if (r->unseen || r->pinned != ttmon_method_pinned(r->method))
			json_object_set_new(o, "kind", json_string(r->unseen ? "unknown" : "pinned"));
		json_object_set_new(o, "in_place", json_boolean(r->in_place));
		json_object_set_new(o, "gpu", json_boolean(r->gpu));
		json_object_set_new(o, "advice", text_of(r->judged ? ttmon_advice_name(r->said.advice) : NULL));
		json_object_set_new(o, "reason", text_of(r->judged ? ttmon_reason_text(r->said.reason) : NULL));
		json_object_set_new(o, "gain_ns",
				    r->judged && r->said.known ? json_integer(r->said.gain_ns) : json_null());
		json_object_set_new(o, "live", json_boolean(r->live));
		json_object_set_new(o, "alloc_ns", time_or_null(r->alloc_ns != 0, r->alloc_ns));
		json_object_set_new(o, "free_ns", time_or_null(!r->live, r->free_ns));
	}
	json_object_set_new(o, "size", count_of(r->size));
	if (r->size_least)
		json_object_set_new(o, "size_at_least", json_true());
	json_object_set_new(o, "moved",
			    r->bytes == UINT64_MAX || ttmon_heat_is_unknown(r) ? json_null() : count_of(r->bytes));
	json_object_set_new(o, "copies", ttmon_heat_is_unknown(r) ? json_null() : count_of(r->copies));
	if (r->at_least)
		json_object_set_new(o, "at_least", json_true());
	json_object_set_new(o, "events_missing", json_boolean(r->more));
	json_object_set_new(o, "cells_bytes", cells_of(r, &bytes));
	json_object_set_new(o, "cells_copies", cells_of(r, &copies));
	return o;
}

static json_t *marks_of(const struct ttmon_heatmap_mark *marks, size_t n, bool gap)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *o = json_object();

		json_object_set_new(o, gap ? "from_ns" : "ts_ns", time_or_null(true, marks[i].from_ns));
		if (gap)
			json_object_set_new(o, "to_ns", time_or_null(true, marks[i].to_ns));
		json_object_set_new(o, gap ? "what" : "label", text_of(marks[i].text));
		json_array_append_new(list, o);
	}
	return list;
}

json_t *ttmon_heat_json(const struct ttmon_heatmap *map, const struct ttmon_heatmap_span *span, uint64_t lines)
{
	size_t n = lines ? (size_t)MIN(lines, (uint64_t)map->nr) : map->nr;
	json_t *o = json_object(), *rows = json_array();

	json_object_set_new(o, "by", json_string(map->pages ? "page" : map->sites ? "site" : "allocation"));
	json_object_set_new(o, "of", text_of(map->title));
	json_object_set_new(o, "live", json_boolean(map->live));
	json_object_set_new(o, "from_ns", time_or_null(true, span->from_ns));
	json_object_set_new(o, "to_ns", time_or_null(true, span->to_ns));
	json_object_set_new(o, "columns", json_integer(span->columns));
	json_object_set_new(o, "pinned_pages", map->now_unknown ? json_null() : count_of(map->now_pages));
	if (map->pages_least)
		json_object_set_new(o, "at_least", json_true());
	json_object_set_new(o, "pinned_peak_pages", count_of(map->peak_pages));
	json_object_set_new(o, "page_size", count_of(map->page_size));
	json_object_set_new(o, "complete", map->not_said ? json_null() : json_boolean(map->complete));
	json_object_set_new(o, "missing", map->missing[0] ? text_of(map->missing) : json_null());
	json_object_set_new(o, "not_shown", count_of(map->hidden + (map->nr - n)));
	json_object_set_new(o, "checkpoints", marks_of(map->checkpoints, map->nr_checkpoints, false));
	json_object_set_new(o, "gaps", marks_of(map->gaps, map->nr_gaps, true));
	for (size_t i = 0; i < n; i++)
		json_array_append_new(rows, row_of(map, &map->rows[map->order[i]], span));
	if (json_object_set_new(o, "rows", rows)) {
		json_decref(o);
		return NULL;
	}
	return o;
}
