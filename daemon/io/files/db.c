// SPDX-License-Identifier: GPL-2.0-only
/*
 * db.c: the allocation database: the document around the tables of db_rows.c and db_tt.c.
 *
 * Runs in the cold thread or in a forked child (memory, write and rename; no thread, no log).
 * lib/os/outfile.h creates and renames the file; mode 0600, since it contains command lines and
 * addresses of other users.
 *
 * Its content comes only from the pipeline and the meta, not from this host or the present time: a
 * replayed recording gives the same bytes anywhere.
 */
#include "daemon/io/files/db.h"

#include "daemon/core/stream/decode.h"
#include "daemon/io/files/db_rows.h"
#include "daemon/io/files/db_tt.h"
#include "daemon/io/files/db_waits.h"
#include "lib/os/jsonw.h"
#include "lib/os/outfile.h"

static void write_head(struct ttmon_jsonw *w, const struct ttmon_ev_clock *c, const struct ttmon_db_meta *meta)
{
	static const char *const modes[] = { "system", "pids", "command" };
	static const struct ttmon_ev_clock none;
	const char *mode = c && c->capture < ARRAY_SIZE(modes) ? modes[c->capture] : NULL;

	if (!c)
		c = &none;
	ttmon_jsonw_key_open(w, "host", '{');
	ttmon_jsonw_key_text(w, "hostname", c->hostname, sizeof(c->hostname));
	ttmon_jsonw_key_text(w, "release", c->release, sizeof(c->release));
	ttmon_jsonw_key_num(w, "nr_cpus", c->nr_cpus);
	ttmon_jsonw_key_num(w, "page_size", c->page_size);
	ttmon_jsonw_close(w, '}');
	ttmon_jsonw_line(w);
	ttmon_jsonw_key_open(w, "clock", '{');
	ttmon_jsonw_key_time(w, "mono_ns", c->mono_ns);
	ttmon_jsonw_key_time(w, "real_ns", c->real_ns);
	ttmon_jsonw_key_time(w, "boot_ns", c->boot_ns);
	ttmon_jsonw_close(w, '}');
	ttmon_jsonw_line(w);
	ttmon_jsonw_key_open(w, "capture", '{');
	ttmon_jsonw_key_name(w, "mode", mode);
	ttmon_jsonw_key_time(w, "start_ns", meta->start_ns);
	ttmon_jsonw_key_time(w, "end_ns", meta->end_ns);
	ttmon_jsonw_key_bool(w, "mmap", c->options & TTMON_OPT_MMAP);
	ttmon_jsonw_key_bool(w, "copy_results", c->options & TTMON_OPT_COPY_RESULTS);
	ttmon_jsonw_key_bool(w, "return_probes", !(c->options & TTMON_OPT_NO_RETURNS));
	ttmon_jsonw_key_bool(w, "trace_only", meta->trace_only);
	ttmon_jsonw_close(w, '}');
}

/* Everything that can make the file incomplete, collected once. */
struct state {
	struct ttmon_kernel_counts kernel;
	struct ttmon_accounting acc;
	struct ttmon_history_totals tot;
	uint64_t attempted, lost, decoded, malformed, malformed_facts;
	bool identity;
};

static void gather(const struct ttmon_history *h, const struct ttmon_pipeline *p, struct state *s)
{
	char ignored[256];

	ttmon_pipeline_kernel_counts(p, &s->kernel);
	ttmon_pipeline_accounting(p, &s->acc);
	ttmon_history_get_totals(h, &s->tot);
	for (size_t i = 0; i < TTMON_EV_FACT; i++) {
		s->attempted += s->kernel.attempted[i];
		s->lost += s->kernel.lost[i];
		s->decoded += s->acc.decoded[i];
	}
	/* Facts are refused by the decoder or, when they contradict what is known, by the history. */
	s->malformed_facts = s->tot.malformed_facts;
	for (size_t i = 0; i < TTMON_DECODE_MAX; i++) {
		s->malformed += s->acc.malformed[i];
		s->malformed_facts += s->acc.malformed_facts[i];
	}
	s->identity = ttmon_pipeline_check(p, ignored, sizeof(ignored));
}

static void write_reasons(struct ttmon_jsonw *w, uint32_t why)
{
	ttmon_jsonw_key_bool(w, "complete", !why);
	ttmon_jsonw_key_open(w, "reasons", '[');
	for (unsigned int i = 0; i < TTMON_INCOMPLETE_MAX; i++)
		if (why >> i & 1)
			ttmon_jsonw_name(w, ttmon_incomplete_name(i));
	ttmon_jsonw_close(w, ']');
}

static void write_gap(struct ttmon_jsonw *w, const struct ttmon_gap *g)
{
	ttmon_jsonw_row(w, '{');
	ttmon_jsonw_key_open(w, "families", '[');
	for (unsigned int f = 0; f < TTMON_FAMILY_MAX; f++)
		if (g->families >> f & 1)
			ttmon_jsonw_name(w, ttmon_family_name(f));
	ttmon_jsonw_close(w, ']');
	ttmon_jsonw_key_known(w, "pid", g->tgid, g->tgid);
	ttmon_jsonw_key_known(w, "object", g->object, g->object);
	TTMON_JSONW_KEY_IF(w, "from_ns", g->from_ns, time, g->from_ns);
	TTMON_JSONW_KEY_IF(w, "to_ns", g->to_ns != UINT64_MAX, time, g->to_ns);
	ttmon_jsonw_key_name(w, "state", ttmon_gap_state_name(g->state));
	ttmon_jsonw_key_name(w, "why", ttmon_gap_why_name(g->why));
	ttmon_jsonw_close(w, '}');
}

static void write_knowledge(struct ttmon_jsonw *w, const struct ttmon_know *know)
{
	const struct ttmon_gap *gaps;
	size_t n = ttmon_know_gaps(know, &gaps);

	ttmon_jsonw_key_open(w, "knowledge", '[');
	for (size_t i = 0; i < n; i++)
		write_gap(w, &gaps[i]);
	ttmon_jsonw_close(w, ']');
}

static void write_blinds(struct ttmon_jsonw *w, const struct ttmon_history *h)
{
	const struct ttmon_blind *b;
	size_t n = ttmon_history_blinds(h, &b);

	ttmon_jsonw_key_open(w, "blind", '[');
	for (size_t i = 0; i < n; i++) {
		ttmon_jsonw_open(w, '{');
		ttmon_jsonw_key_num(w, "object", b[i].object);
		ttmon_jsonw_key_num(w, "pid", b[i].tgid);
		ttmon_jsonw_key(w, "window_us");
		if (!b[i].mapped_ns || b[i].active_ns == UINT64_MAX)
			ttmon_jsonw_null(w);
		else
			ttmon_jsonw_num(w, ttmon_before(b[i].active_ns, b[i].mapped_ns)
						   ? 0
						   : (b[i].active_ns - b[i].mapped_ns) / NSEC_PER_US);
		ttmon_jsonw_key_bool(w, "held", b[i].held);
		ttmon_jsonw_key_bool(w, "let_go", b[i].let_go);
		ttmon_jsonw_close(w, '}');
	}
	ttmon_jsonw_close(w, ']');
}

static void write_completeness(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct state *s,
			       const struct ttmon_pipeline *p, const struct ttmon_db_meta *meta)
{
	ttmon_jsonw_key_open(w, "completeness", '{');
	write_reasons(w, ttmon_pipeline_incomplete(p, meta->cut));
	TTMON_JSONW_KEY_IF(w, "attempted", s->kernel.known, num, s->attempted);
	ttmon_jsonw_key_open(w, "lost", '{');
	for (unsigned int i = 0; i < TTMON_LOSS_MAX; i++)
		ttmon_jsonw_key_num(w, ttmon_loss_name(i), s->kernel.reason[i]);
	ttmon_jsonw_close(w, '}');
	ttmon_jsonw_key_num(w, "decoded", s->decoded);
	ttmon_jsonw_key_num(w, "malformed", s->malformed);
	ttmon_jsonw_key_num(w, "late", s->acc.late);
	ttmon_jsonw_key_num(w, "arena_full", s->acc.arena_full);
	ttmon_jsonw_key_num(w, "malformed_facts", s->malformed_facts);
	ttmon_jsonw_key_num(w, "unknown_frees", s->tot.unknown_frees);
	ttmon_jsonw_key_num(w, "unmatched", s->tot.unmatched);
	ttmon_jsonw_key_num(w, "superseded", s->tot.superseded);
	ttmon_jsonw_key_num(w, "events_dropped", s->tot.events_dropped);
	ttmon_jsonw_key_num(w, "events_trimmed", s->tot.events_trimmed);
	ttmon_jsonw_key_num(w, "evicted", s->tot.evicted);
	ttmon_jsonw_key_num(w, "folded", s->tot.folded);
	ttmon_jsonw_key_num(w, "checkpoints_dropped", s->tot.checkpoints_dropped);
	ttmon_jsonw_key_bool(w, "cut", meta->cut);
	ttmon_jsonw_key_bool(w, "identity", s->identity);
	write_blinds(w, h);
	write_knowledge(w, ttmon_pipeline_know(p));
	ttmon_jsonw_close(w, '}');
}

/* True if all memory that counts as pinned certainly still is. */
static bool pinned_known(const struct ttmon_history *h)
{
	for (size_t i = 0; i < ttmon_history_procs(h); i++)
		if (!ttmon_history_pinned_known(h, ttmon_history_proc(h, i)))
			return false;
	return true;
}

static void write_summary(struct ttmon_jsonw *w, const struct ttmon_history *h, const struct ttmon_history_totals *t)
{
	bool now = pinned_known(h);

	ttmon_jsonw_key_open(w, "summary", '{');
	if (ttmon_history_all_at_least(h))
		ttmon_jsonw_key_bool(w, "at_least", true);
	ttmon_jsonw_key_num(w, "pins", t->pins);
	ttmon_jsonw_key_known(w, "pinned_pages", now, t->pinned_pages);
	ttmon_jsonw_key_num(w, "pinned_peak_pages", t->pinned_peak_pages);
	ttmon_jsonw_key_known(w, "pinned_bytes", now, t->pinned_bytes);
	ttmon_jsonw_key_num(w, "pinned_peak_bytes", t->pinned_peak_bytes);
	ttmon_jsonw_key_time(w, "peak_ns", t->peak_ns);
	ttmon_jsonw_key_num(w, "allocs", t->allocs);
	ttmon_jsonw_key_num(w, "frees", t->frees);
	ttmon_jsonw_key_num(w, "live", t->live);
	ttmon_jsonw_key_num(w, "failed", t->failed);
	ttmon_jsonw_key_num(w, "captured", t->captured);
	ttmon_jsonw_key_num(w, "unknown_frees", t->unknown_frees);
	ttmon_jsonw_key_num(w, "unmatched", t->unmatched);
	ttmon_jsonw_key_num(w, "events", t->events_kept);
	ttmon_jsonw_key_num(w, "launches", t->kernels);
	ttmon_jsonw_key_num(w, "graph_launches", t->graphs);
	ttmon_jsonw_key_num(w, "graph_copies", t->graph_copies);
	ttmon_db_rows_transfers(w, t->xfer);
	ttmon_jsonw_close(w, '}');
}

static int write_document(struct ttmon_jsonw *w, struct ttmon_pipeline *p, const struct ttmon_db_meta *meta)
{
	const struct ttmon_history *h = ttmon_pipeline_history(p);
	_cleanup_(ttmon_tt_tables_fini) struct ttmon_tt_tables tt = { 0 };
	struct state s = { 0 };
	int err = ttmon_tt_tables_init(&tt, p);

	if (err)
		return err;
	gather(h, p, &s);
	ttmon_jsonw_open(w, '{');
	ttmon_jsonw_key_name(w, "schema", TTMON_DB_SCHEMA);
	ttmon_jsonw_key_num(w, "version", TTMON_DB_VERSION);
	ttmon_jsonw_key_str(w, "ttmond", meta->version);
	ttmon_jsonw_line(w);
	write_head(w, ttmon_history_clock(h), meta);
	ttmon_jsonw_line(w);
	write_completeness(w, h, &s, p, meta);
	ttmon_jsonw_line(w);
	ttmon_db_rows_objects(w, h);
	ttmon_jsonw_line(w);
	err = ttmon_db_rows_processes(w, h);
	if (err)
		return err;
	ttmon_jsonw_line(w);
	ttmon_db_rows_sites(w, h);
	ttmon_jsonw_line(w);
	ttmon_db_rows_checkpoints(w, h);
	ttmon_jsonw_line(w);
	err = ttmon_db_waits(w, h);
	if (err)
		return err;
	ttmon_jsonw_line(w);
	ttmon_db_rows_allocations(w, h);
	ttmon_jsonw_line(w);
	if (!meta->trace_only) {
		err = ttmon_db_rows_advice(w, h);
		if (err)
			return err;
		ttmon_jsonw_line(w);
	}
	ttmon_db_tt(w, &tt);
	write_summary(w, h, &s.tot);
	ttmon_jsonw_close(w, '}');
	ttmon_jsonw_end(w);
	return ttmon_jsonw_finish(w);
}

struct document {
	struct ttmon_pipeline *p;
	const struct ttmon_db_meta *meta;
};

static int write_fd(int fd, bool gzip, void *ctx)
{
	_cleanup_(ttmon_jsonw_fini) struct ttmon_jsonw w = { .fd = -1 };
	const struct document *d = ctx;
	int err = ttmon_jsonw_init(&w, fd, gzip);

	return err ? err : write_document(&w, d->p, d->meta);
}

int ttmon_db_fd(int fd, bool gzip, struct ttmon_pipeline *p, const struct ttmon_db_meta *meta)
{
	struct document d = { p, meta };

	return write_fd(fd, gzip, &d);
}

int ttmon_db_write(const char *path, struct ttmon_pipeline *p, const struct ttmon_db_meta *meta, char *why, size_t n)
{
	struct document d = { p, meta };
	int err = ttmon_outfile_write(path, write_fd, &d);

	if (err)
		snprintf(why, n, "cannot write the database to %s: %s", ttmon_outfile_name(path), strerror(-err));
	return err;
}
