// SPDX-License-Identifier: GPL-2.0-only
/* tables.c: launches and kernels of a trace, biggest first. */
#include <inttypes.h>

#include "tools/memtrace/cells.h"

/* Launches of several contexts, whose ids may be the same. */
static bool has_contexts(const struct ttmon_mt_dict *d)
{
	for (size_t i = 1; i < d->nr_launches; i++)
		if (d->launches[i].ctx != d->launches[0].ctx || d->launches[i].pid != d->launches[0].pid)
			return true;
	return false;
}

/* "0x7f12" or, where the process is known, "1234:0x7f12". */
static void put_context(struct ttmon_mt_grid *t, const struct ttmon_mt_launch *l)
{
	if (l->pid)
		ttmon_mt_grid_put(t, "%u:0x%" PRIx64, l->pid, l->ctx);
	else
		ttmon_mt_grid_put(t, "0x%" PRIx64, l->ctx);
}

static void put_dims(struct ttmon_mt_grid *t, const uint32_t *d)
{
	if (d && d[0])
		ttmon_mt_grid_put(t, "%u,%u,%u", d[0], d[1], d[2]);
	else
		ttmon_mt_grid_put(t, "?");
}

/* contexts, shared: whether these columns are there. */
static void put_launch(struct ttmon_mt_grid *t, const struct ttmon_mt_report *r, const struct ttmon_mt_launch_row *row,
		       bool contexts, bool shared)
{
	const struct ttmon_mt_launch *l = row->launch < r->dict->nr_launches ? &r->dict->launches[row->launch] : NULL;
	const struct ttmon_mt_sums *g = &row->global, *s = &row->shared;
	_cleanup_free_ char *name = l ? ttmon_mt_short_name(l->kernel) : NULL;
	char x[TTMON_FMT_LEN];

	if (contexts && l)
		put_context(t, l);
	else if (contexts)
		ttmon_mt_grid_put(t, "-");
	if (l)
		ttmon_mt_grid_put(t, "%" PRIu64 "%s", l->id, l->flags & TTMON_MT_LAUNCH_SAMPLED ? "*" : "");
	else
		ttmon_mt_grid_put(t, "others");
	put_dims(t, l ? l->grid : NULL);
	put_dims(t, l ? l->block : NULL);
	ttmon_mt_grid_put(t, "%s", COUNT(x, g->requests + s->requests + row->local.requests));
	ttmon_mt_grid_put(t, "%s", COUNT(x, g->sectors + row->local.sectors));
	ttmon_mt_grid_put(t, "%s", PERCENT(x, ttmon_mt_efficiency(g, r->args->requested)));
	ttmon_mt_grid_put(t, "%s%s", row->estimate ? "~" : "",
			  g->records ? BYTES(x, row->sectors * TTMON_MT_SECTOR) : "-");
	ttmon_mt_grid_put(t, "%s", PERCENT(x, share_of(row->again, row->sectors)));
	if (shared) {
		ttmon_mt_grid_put(t, "%s", COUNT(x, s->requests));
		ttmon_mt_grid_put(t, "%s", PER(x, s->waves, s->ideal_waves));
	}
	ttmon_mt_grid_put(t, "%s", name ? name : "");
}

void ttmon_mt_launches(const struct ttmon_mt_report *r, FILE *out, size_t width)
{
	/* The first is left out where there is but one context. */
	const char *heads[] = { "<CONTEXT", "LAUNCH",  "<GRID", "<BLOCK", "REQUESTS",	 "SECTORS",
				"EFF",	    "TOUCHED", "AGAIN", "SHARED", "WAVES/IDEAL", "<KERNEL" };
	bool contexts = has_contexts(r->dict), shared = false;
	struct ttmon_mt_grid t = { .heads = heads + !contexts, .cols = ARRAY_SIZE(heads) - !contexts };
	size_t n;

	if (!r->nr_launches)
		return;
	n = ttmon_mt_rows(r, out, width, "LAUNCHES", "most sectors", r->nr_launches);
	for (size_t i = 0; i < n; i++)
		shared |= r->launches[i]->shared.requests != 0;
	if (!shared) {
		heads[ARRAY_SIZE(heads) - 3] = heads[ARRAY_SIZE(heads) - 1];
		t.cols -= 2;
	}
	ttmon_mt_wrap(
		out,
		shared ? "TOUCHED: distinct sectors of global memory, AGAIN: of these, also touched by the launch before. SHARED: requests of shared memory. A * behind the number: only some of its blocks were recorded."
		       : "TOUCHED: distinct sectors of global memory, AGAIN: of these, also touched by the launch before. A * behind the number: only some of its blocks were recorded.",
		0, 0, width);
	for (size_t i = 0; i < n; i++)
		put_launch(&t, r, r->launches[i], contexts, shared);
	ttmon_mt_grid_print(&t, out, width);
}

/* What requests are: by spaces and kinds, bits of 1 << enum. What is in none of these is "OTHER". */
#define GLOBAL_BITS (1u << TTMON_MT_GENERIC | 1u << TTMON_MT_GLOBAL)
static const struct {
	const char *head;
	unsigned int spaces, kinds;
} mix[] = {
	{ "LOAD", GLOBAL_BITS, 1u << TTMON_MT_LOAD },
	{ "STORE", GLOBAL_BITS, 1u << TTMON_MT_STORE },
	{ "ATOMIC", GLOBAL_BITS, 1u << TTMON_MT_ATOM | 1u << TTMON_MT_RED },
	{ "COPY", GLOBAL_BITS, 1u << TTMON_MT_COPY_SRC | 1u << TTMON_MT_COPY_DST },
	{ "SHARED", 1u << TTMON_MT_SHARED, ~0u },
	{ "LOCAL", 1u << TTMON_MT_LOCAL, ~0u },
};
#define PARTS (ARRAY_SIZE(mix) + 1) /* with "OTHER" */

/* Requests of each part; returns their sum. */
static uint64_t parts_of(const struct ttmon_mt_kernel_row *k, uint64_t *parts)
{
	uint64_t all = 0;

	memset(parts, 0, PARTS * sizeof(*parts));
	for (unsigned int s = 0; s < TTMON_MT_SPACE_MAX; s++) {
		for (unsigned int kind = 0; kind < TTMON_MT_KIND_MAX; kind++) {
			size_t p = 0;

			while (p < ARRAY_SIZE(mix) && !(mix[p].spaces >> s & 1 && mix[p].kinds >> kind & 1))
				p++;
			parts[p] += k->requests[s][kind];
			all += k->requests[s][kind];
		}
	}
	return all;
}

/* "4:67% 16:33%": bytes a lane. */
static void put_widths(struct ttmon_mt_grid *t, const struct ttmon_mt_kernel_row *k, uint64_t all)
{
	static const char *const bytes[] = { "1", "2", "4", "8", "16", "32", "*" };
	char text[160] = "";
	size_t len = 0;

	for (size_t w = 0; w < ARRAY_SIZE(k->widths) && len < sizeof(text); w++) {
		if (!k->widths[w])
			continue;
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", len ? " " : "", bytes[w]);
		if (k->widths[w] != all && len < sizeof(text))
			len += (size_t)snprintf(text + len, sizeof(text) - len, ":%s%.0f%%",
						k->widths[w] * 200 < all ? "<" : "",
						MAX(100 * share_of(k->widths[w], all), 1));
	}
	ttmon_mt_grid_put(t, "%s", text);
}

/* shown: of the parts, a bit each. */
static void put_kernel(struct ttmon_mt_grid *t, const struct ttmon_mt_kernel_row *k, unsigned int shown, bool requested)
{
	_cleanup_free_ char *name = ttmon_mt_short_name(k->kernel);
	uint64_t parts[PARTS], all = parts_of(k, parts);
	char x[TTMON_FMT_LEN];

	ttmon_mt_grid_put(t, "%s", k->function ? "-" : COUNT(x, k->launches));
	ttmon_mt_grid_put(t, "%s", COUNT(x, all));
	for (size_t p = 0; p < PARTS; p++)
		if (shown >> p & 1)
			ttmon_mt_grid_put(t, "%s", PERCENT(x, share_of(parts[p], all)));
	put_widths(t, k, all);
	ttmon_mt_grid_put(t, "%s", PERCENT(x, ttmon_mt_efficiency(&k->sums, requested)));
	ttmon_mt_grid_put(t, "%s", name ? name : "?");
}

void ttmon_mt_kernels(const struct ttmon_mt_report *r, FILE *out, size_t width)
{
	const char *heads[PARTS + 5] = { "LAUNCHES", "REQUESTS" };
	struct ttmon_mt_grid t = { .heads = heads, .cols = 2 };
	unsigned int shown = 3; /* loads and stores always */
	bool functions = false;
	size_t n;

	if (!r->nr_kernels)
		return;
	n = ttmon_mt_rows(r, out, width, "KERNELS", "most requests", r->nr_kernels);
	for (size_t i = 0; i < n; i++) {
		uint64_t parts[PARTS];

		parts_of(r->kernels[i], parts);
		for (size_t p = 0; p < PARTS; p++)
			shown |= parts[p] ? 1u << p : 0;
		functions |= r->kernels[i]->function;
	}
	for (size_t p = 0; p < PARTS; p++)
		if (shown >> p & 1)
			heads[t.cols++] = p < ARRAY_SIZE(mix) ? mix[p].head : "OTHER";
	heads[t.cols++] = "<WIDTHS";
	heads[t.cols++] = "EFF";
	heads[t.cols++] = "<KERNEL";
	ttmon_mt_wrap(
		out,
		functions
			? "What their requests are: loads, stores, atomics and asynchronous copies of global memory, all of shared and of local memory; bytes a lane. EFF: of "
			  "global memory. No launches: a device function, with the requests of all kernels that call it."
			: "What their requests are: loads, stores, atomics and asynchronous copies of global memory, all of shared and of local memory; bytes a lane. EFF: of "
			  "global memory.",
		0, 0, width);
	for (size_t i = 0; i < n; i++)
		put_kernel(&t, r->kernels[i], shown, r->args->requested);
	ttmon_mt_grid_print(&t, out, width);
}
