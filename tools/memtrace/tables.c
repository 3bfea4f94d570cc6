// SPDX-License-Identifier: GPL-2.0-only
/* tables.c: the tables of launches and kernels of a trace, the most costly first. */
#include "tools/memtrace/columns.h"

/* Makes the rows for columns.c; NULL: out of memory, which is printed. */
static struct ttmon_mt_shown *shown_of(enum ttmon_mt_section what, const void *rows, size_t n, FILE *out)
{
	struct ttmon_mt_shown *shown = calloc(n + 1, sizeof(*shown));

	if (!shown)
		fputs("(out of memory)\n", out);
	for (size_t i = 0; i < n && shown; i++)
		shown[i] = (struct ttmon_mt_shown){ what, ((const void *const *)rows)[i], 1 };
	return shown;
}

void ttmon_mt_put_table(const struct ttmon_mt_report *r, enum ttmon_mt_section what, const void *rows, size_t n,
			const char *const *names, FILE *out, size_t width)
{
	_cleanup_free_ struct ttmon_mt_shown *shown = shown_of(what, rows, n, out);

	if (shown)
		ttmon_mt_columns_text(r, shown, n, names, out, width);
}

void ttmon_mt_launches(const struct ttmon_mt_report *r, FILE *out, size_t width)
{
	static const char *const names[] = { "contexts",       "id",	     "grid",	"block", "all_requests",
					     "all_sectors",    "efficiency", "touched", "again", "shared_requests",
					     "waves_to_ideal", "name",	     NULL };
	bool shared = false;
	size_t n;

	if (!r->nr_launches)
		return;
	n = ttmon_mt_rows(r, out, width, "LAUNCHES", "most sectors", r->nr_launches);
	for (size_t i = 0; i < n; i++)
		shared |= r->launches[i]->shared.requests != 0;
	ttmon_mt_wrap(
		out,
		shared ? "TOUCHED: distinct sectors of global memory, AGAIN: of these, also touched by the launch "
			 "before. SHARED: requests of shared memory. A * behind the number: only some of its blocks "
			 "were recorded."
		       : "TOUCHED: distinct sectors of global memory, AGAIN: of these, also touched by the launch "
			 "before. A * behind the number: only some of its blocks were recorded.",
		0, 0, width);
	ttmon_mt_put_table(r, TTMON_MT_SHOW_LAUNCHES, r->launches, n, names, out, width);
}

void ttmon_mt_kernels(const struct ttmon_mt_report *r, FILE *out, size_t width)
{
	static const char *const names[] = { "launches",   "requests", "load",	"store", "atomic",
					     "copy",	   "shared",   "local", "rest",	 "bytes_a_lane",
					     "efficiency", "name",     NULL };
	bool functions = false;
	size_t n;

	if (!r->nr_kernels)
		return;
	n = ttmon_mt_rows(r, out, width, "KERNELS", "most requests", r->nr_kernels);
	for (size_t i = 0; i < n; i++)
		functions |= r->kernels[i]->function;
	ttmon_mt_wrap(
		out,
		functions ? "What their requests are: loads, stores, atomics and asynchronous copies of global memory, "
			    "all of shared and of local memory; bytes a lane. EFF: of global memory. No launches: a "
			    "device function, with the requests of all kernels that call it."
			  : "What their requests are: loads, stores, atomics and asynchronous copies of global memory, "
			    "all of shared and of local memory; bytes a lane. EFF: of global memory.",
		0, 0, width);
	ttmon_mt_put_table(r, TTMON_MT_SHOW_KERNELS, r->kernels, n, names, out, width);
}
