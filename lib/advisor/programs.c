// SPDX-License-Identifier: GPL-2.0-only
/*
 * programs.c: ttmon_program_subscribe(): runs of programs on Tenstorrent devices, as the daemon
 * reports them. A subscription belongs to the process that made it: a child after fork() does not have
 * the thread, and only frees its copy.
 */
#include "lib/advisor/advisor_int.h"
#include "lib/read/programs.h"

struct ttmon_program_sub {
	struct ttmon_link link;
	char route[64];
	ttmon_program_fn fn;
	void *ctx;
	struct ttmon_program_names names; /* used only by the thread */
	_Atomic uint64_t runs;
};

static void on_head(void *ctx)
{
	struct ttmon_program_sub *sub = ctx;

	/* The daemon sends the names again on each connection. */
	ttmon_program_names_fini(&sub->names);
}

static void on_line(struct ttmon_link *l, const char *at, size_t n, const json_t *line)
{
	struct ttmon_program_sub *sub = l->cfg.ctx;
	struct ttmon_program_row row;

	if (line) {
		/* If memory runs out the names are not known. */
		(void)!ttmon_program_names_take(&sub->names, line);
		return;
	}
	if (!ttmon_program_row_parse(at, n, &row) || !ttmon_link_is_new(l, row.seq))
		return;
	sub->fn(sub->ctx, &(struct ttmon_program_run){
				  .seq = row.seq,
				  .pid = row.pid,
				  .device = row.device,
				  .chip = row.chip,
				  .program = row.program,
				  .start_ns = row.start_ns,
				  .end_ns = row.end_ns,
				  .error_ns = row.error_ns,
				  .seen_ns = row.seen_ns,
				  .clock = row.clock,
				  .kernels = ttmon_program_names_get(&sub->names, row.kernels),
			  });
	/* Count the run after its callback has returned. */
	sub->runs++;
}

int ttmon_program_subscribe(const struct ttmon_program_opts *opts, ttmon_program_fn fn, void *ctx,
			    struct ttmon_program_sub **ret)
{
	struct ttmon_program_opts o = { 0 };
	struct ttmon_program_sub *sub;
	struct ttmon_link_cfg cfg = { .thread = "ttmon-programs", .head = on_head, .line = on_line };
	int err;

	if (opts)
		memcpy(&o, opts, MIN(opts->size, sizeof(o)));
	if (!fn || !ret || (opts && opts->size < sizeof(opts->size)) || o.pid < TTMON_PROGRAM_SELF)
		return -EINVAL;
	sub = calloc(1, sizeof(*sub));
	if (!sub)
		return -ENOMEM;
	sub->fn = fn;
	sub->ctx = ctx;
	if (o.pid > 0)
		snprintf(sub->route, sizeof(sub->route), "/v1/tt/programs?follow=1&pid=%d", o.pid);
	else
		snprintf(sub->route, sizeof(sub->route), "/v1/tt/programs?follow=1%s", o.pid ? "&pid=self" : "");
	cfg.route = sub->route;
	cfg.ctx = sub;
	err = ttmon_link_begin(&sub->link, ttmon_socket_or(o.socket), &cfg);
	if (err)
		free(sub);
	else
		*ret = sub;
	return err;
}

void ttmon_program_get_stats(const struct ttmon_program_sub *sub, struct ttmon_program_stats *ret)
{
	*ret = (struct ttmon_program_stats){ 0 };
	if (sub)
		*ret = (struct ttmon_program_stats){ .runs = sub->runs,
						     .missed = sub->link.missed,
						     .earlier = sub->link.earlier,
						     .connects = sub->link.connects,
						     .disconnects = sub->link.disconnects };
}

void ttmon_program_unsubscribe(struct ttmon_program_sub *sub)
{
	if (!sub)
		return;
	ttmon_link_end(&sub->link);
	ttmon_program_names_fini(&sub->names);
	free(sub);
}
