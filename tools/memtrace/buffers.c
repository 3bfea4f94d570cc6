// SPDX-License-Identifier: GPL-2.0-only
/*
 * buffers.c: the table of the buffers that a trace touches, most sectors first: how kernels use them,
 * and which buffers no kernel touched.
 */
#include <inttypes.h>

#include "lib/demangle/site.h"
#include "tools/memtrace/cells.h"

#define SOME  5 /* number of buffers whose instructions are shown by default */
#define NAMED 3 /* number of read-only buffers that are named */

const char *ttmon_mt_buffer_label(const struct ttmon_mt_report *r, const struct ttmon_mt_buffer_row *b, char *buf,
				  size_t n)
{
	const struct ttmon_mt_alloc *a = ttmon_mt_buffer_alloc(r, b);

	if (!b->addr && !b->size)
		snprintf(buf, n, "others");
	else if (!a || !*a->name)
		snprintf(buf, n, "0x%" PRIx64, b->addr);
	else
		ttmon_fmt_text(buf, n, a->name);
	return buf;
}

const char *ttmon_mt_buffer_use(const struct ttmon_mt_buffer_row *b)
{
	if (b->sums.reads && b->sums.writes)
		return "RW";
	if (b->unknown || b->ambiguous || !(b->sums.reads | b->sums.writes))
		return "?";
	return b->sums.reads ? "RO" : "WO";
}

/* ---- below the table ---- */

/*
 * Prints the sum of memory that was allocated before kernels ran and that none of them touched. The
 * findings name the single allocations.
 */
static void untouched(const struct ttmon_mt_report *r, FILE *out)
{
	uint64_t n = 0, bytes = 0;
	size_t nr = 0;
	const struct ttmon_mt_alloc *allocs = r->map ? ttmon_mt_map_get(r->map, &nr) : NULL;
	char x[TTMON_FMT_LEN], y[TTMON_FMT_LEN];

	for (size_t i = 0; i < r->nr_findings; i++) {
		if (r->findings[i].what != TTMON_MT_FIND_UNTOUCHED || r->findings[i].row >= nr)
			continue;
		n++;
		bytes += allocs[r->findings[i].row].size;
	}
	if (n)
		fprintf(out, "never touched: %s allocation%s of %s: see the findings\n", COUNT(x, n), n == 1 ? "" : "s",
			BYTES(y, bytes));
}

/* Returns whether the host filled this memory and kernels only read it. */
static bool is_input(const struct ttmon_mt_report *r, const struct ttmon_mt_buffer_row *b)
{
	const struct ttmon_mt_alloc *a = ttmon_mt_buffer_alloc(r, b);

	return a && !strcmp(ttmon_mt_buffer_use(b), "RO") &&
	       (a->copies || a->mem == TTMON_MT_MEM_PINNED || a->mem == TTMON_MT_MEM_REGISTERED ||
		a->mem == TTMON_MT_MEM_MANAGED);
}

static void only_read(const struct ttmon_mt_report *r, FILE *out, size_t width)
{
	char text[1200], label[120], x[TTMON_FMT_LEN];
	bool managed = false;
	size_t n = 0, len;

	len = (size_t)snprintf(text, sizeof(text), "Kernels only read, in %s:",
			       ttmon_mt_pick_is_all(&r->args->pick) ? "this trace" : "the selected part of this trace");
	for (size_t i = 0; i < r->nr_buffers; i++) {
		const struct ttmon_mt_buffer_row *b = r->buffers[i];

		if (!is_input(r, b))
			continue;
		managed |= ttmon_mt_buffer_alloc(r, b)->mem == TTMON_MT_MEM_MANAGED;
		if (n++ < NAMED)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s %s (%s, %s)", n > 1 ? "," : "",
						ttmon_mt_buffer_label(r, b, label, sizeof(label)),
						ttmon_mt_mem_name(ttmon_mt_buffer_alloc(r, b)->mem), BYTES(x, b->size));
	}
	if (!n)
		return;
	if (n > NAMED)
		len += (size_t)snprintf(text + len, sizeof(text) - len, " and %zu more with RO", n - NAMED);
	snprintf(text + len, sizeof(text) - len, ". Their pointers can be const __restrict__ (or __ldg)%s.",
		 managed ? ", managed ones advised as read-mostly" : "");
	ttmon_mt_wrap(out, text, 0, 0, width);
}

/* ---- the table ---- */

void ttmon_mt_buffers(const struct ttmon_mt_report *r, FILE *out, size_t width)
{
	static const char *const names[] = { "sectors",		 "reads",    "writes",	 "access", "efficiency",
					     "distinct_sectors", "coverage", "launches", "copies", "size",
					     "memory",		 "buffer",   NULL };
	bool asked = r->args->sections || r->args->all;
	size_t n;

	if (!r->nr_buffers) {
		untouched(r, out);
		return;
	}
	n = ttmon_mt_rows(r, out, width, "BUFFERS", "most sectors", r->nr_buffers);
	if (!r->map)
		ttmon_mt_wrap(out, "Ranges of 2 MiB that were touched: --db or --live names the allocations.", 0, 0,
			      width);
	ttmon_mt_wrap(
		out,
		"READS, WRITES: requests. USE: RO, WO, RW: kernels only read, only write, do both. TOUCHED: distinct "
		"sectors, COVER: of the size. COPIES: transfers of it. A ? behind the memory: another allocation had "
		"these addresses too.",
		0, 0, width);
	ttmon_mt_put_table(r, TTMON_MT_SHOW_BUFFERS, r->buffers, n, names, out, width);
	only_read(r, out, width);
	untouched(r, out);
	if (asked || r->map)
		ttmon_mt_sites_of_buffers(r, asked ? n : MIN(n, (size_t)SOME), out, width);
}
