// SPDX-License-Identifier: GPL-2.0-only
#include "io/probes.h"

#include "io/usdt.h"

static const struct ttmon_fn_desc fns[TTMON_FN_COUNT] = {
#define F(id, sym, lib, ver, c, x, b, a0, a1, a2, a3, a4, a5, a6, a7) \
	[id] = { TTMON_CLS_##c, TTMON_##x, TTMON_##b, 0, { a0, a1, a2, a3, a4, a5, a6, a7 } },
	TTMON_FN_TABLE(F)
#undef F
};

const char *ttmon_probe_state_name(enum ttmon_probe_state state)
{
	static const char *const names[] = { "found", "attached", "failed" };

	return names[state];
}

static enum ttmon_prog entry_program(uint16_t fn, const struct ttmon_probes_opts *opts)
{
	const struct ttmon_fn_desc *d = &fns[fn];

	if (fn >= TTMON_FN_USDT_ALLOC)
		return TTMON_PROG_USDT;
	if (fn >= TTMON_FN_USER)
		return TTMON_PROG_USER_CALL;
	if (d->cls == TTMON_CLS_BATCH || d->cls == TTMON_CLS_BATCH_3D || d->cls == TTMON_CLS_HINT_BATCH)
		return TTMON_PROG_BATCH;
	if (d->bits & TTMON_FN_ENTRY)
		return TTMON_PROG_NOTE;
	if ((d->bits & TTMON_FN_ASYNC) && !opts->copy_results)
		return TTMON_PROG_ENQUEUE;
	return TTMON_PROG_CALL;
}

/* The offsets of one entry program; a return program has those of its entry program. */
static int collect(const struct ttmon_probes *p, const struct ttmon_elf_info *info, const uint64_t *cookies,
		   enum ttmon_prog entry, struct ttmon_uprobe_set *set)
{
	set->n = 0;
	set->offsets = malloc((p->n + 1) * sizeof(*set->offsets));
	set->cookies = malloc((p->n + 1) * sizeof(*set->cookies));
	if (!set->offsets || !set->cookies)
		return -ENOMEM;
	for (size_t i = 0; i < p->n; i++) {
		if (p->probes[i].prog != entry)
			continue;
		set->offsets[set->n] = i < info->nr_targets ? info->targets[i].offset : info->usdts[i - info->nr_targets].offset;
		set->cookies[set->n++] = cookies[i];
	}
	return 0;
}

static void free_set(struct ttmon_uprobe_set *set)
{
	free(set->offsets);
	free(set->cookies);
}

static void set_state(struct ttmon_probes *p, enum ttmon_prog entry, int err)
{
	for (size_t i = 0; i < p->n; i++) {
		if (p->probes[i].prog != entry)
			continue;
		p->probes[i].state = err ? TTMON_PROBE_FAILED : TTMON_PROBE_ATTACHED;
		p->probes[i].err = err;
		p->attached += !err;
		p->single_step += !err && p->probes[i].single_step;
	}
}

/* Cookie of a USDT point: the row, then the register of each operand (bpf/cuda.bpf.c, usdt_operand). */
static int usdt_cookie(const struct ttmon_usdt *u, uint64_t *ret)
{
	struct ttmon_usdt_spec spec;
	uint64_t cookie = u->is_free ? TTMON_FN_USDT_FREE : TTMON_FN_USDT_ALLOC;
	int err = ttmon_usdt_parse(u->args, &spec);

	if (err)
		return err;
	for (size_t i = 0; i < 3; i++) {
		uint64_t idx = 0xff;

		if (i < spec.nr_args) {
			if (spec.args[i].kind != TTMON_USDT_REG)
				return -EOPNOTSUPP;
			idx = spec.args[i].reg_off / 8;
		}
		cookie |= idx << (8 + 8 * i);
	}
	*ret = cookie;
	return 0;
}

static void describe(struct ttmon_probes *p, const struct ttmon_elf_info *info, const struct ttmon_probes_opts *opts,
		     uint64_t *cookies)
{
	for (size_t i = 0; i < info->nr_targets; i++) {
		struct ttmon_probe *q = &p->probes[i];

		memcpy(q->symbol, info->targets[i].symbol, sizeof(q->symbol));
		q->fn = info->targets[i].fn;
		q->single_step = info->targets[i].single_step;
		q->prog = entry_program(q->fn, opts);
		cookies[i] = q->fn;
	}
	for (size_t k = 0; k < info->nr_usdts; k++) {
		struct ttmon_probe *q = &p->probes[info->nr_targets + k];

		snprintf(q->symbol, sizeof(q->symbol), "usdt:ttmon:%s", info->usdts[k].is_free ? "free" : "alloc");
		q->fn = info->usdts[k].is_free ? TTMON_FN_USDT_FREE : TTMON_FN_USDT_ALLOC;
		q->prog = TTMON_PROG_USDT;
		q->err = usdt_cookie(&info->usdts[k], &cookies[info->nr_targets + k]);
		if (q->err) {
			q->state = TTMON_PROBE_FAILED;
			q->prog = TTMON_PROG_UPROBES; /* belongs to no program */
		}
	}
}

/* The return link first: a return without its entry is ignored, an entry without its return would stay in flight. */
static int attach_one(struct ttmon_bpf *b, int fd, struct ttmon_probes *p, struct ttmon_uprobe_set *set, enum ttmon_prog entry,
		      bool returns)
{
	enum ttmon_prog ret = entry == TTMON_PROG_CALL ? TTMON_PROG_RETURN : TTMON_PROG_USER_RETURN;
	bool pair = returns && (entry == TTMON_PROG_CALL || entry == TTMON_PROG_USER_CALL);

	if (pair) {
		set->prog = ret;
		p->links[ret] = ttmon_bpf_attach_uprobes(b, fd, set);
		if (p->links[ret] < 0)
			return p->links[ret];
	}
	set->prog = entry;
	p->links[entry] = ttmon_bpf_attach_uprobes(b, fd, set);
	if (p->links[entry] >= 0)
		return 0;
	if (pair) {
		ttmon_bpf_detach_uprobes(b, p->links[ret]);
		p->links[ret] = -1;
	}
	return p->links[entry];
}

int ttmon_probes_attach(struct ttmon_bpf *b, int object_fd, const struct ttmon_elf_info *info, const struct ttmon_probes_opts *opts,
			struct ttmon_probes *ret)
{
	struct ttmon_probes p = { .bpf = b, .n = info->nr_targets + info->nr_usdts };
	_cleanup_free_ uint64_t *cookies = calloc(p.n + 1, sizeof(*cookies));
	int last = 0;

	p.probes = calloc(p.n + 1, sizeof(*p.probes));
	if (!p.probes || !cookies) {
		free(p.probes);
		return -ENOMEM;
	}
	for (int i = 0; i < TTMON_PROG_UPROBES; i++)
		p.links[i] = -1;
	describe(&p, info, opts, cookies);
	for (int prog = 0; prog < TTMON_PROG_UPROBES; prog++) {
		struct ttmon_uprobe_set set = { 0 };
		int err = collect(&p, info, cookies, prog, &set);

		if (!err && set.n)
			err = attach_one(b, object_fd, &p, &set, prog, !opts->no_returns);
		if (set.n)
			set_state(&p, prog, err);
		if (err)
			last = err;
		free_set(&set);
	}
	if (!p.attached && last) {
		ttmon_probes_detach(&p);
		return last;
	}
	*ret = p;
	return 0;
}

void ttmon_probes_detach(struct ttmon_probes *p)
{
	for (int i = 0; i < TTMON_PROG_UPROBES; i++) {
		if (p->links[i] >= 0)
			ttmon_bpf_detach_uprobes(p->bpf, p->links[i]);
		p->links[i] = -1;
	}
	free(p->probes);
	p->probes = NULL;
	p->n = 0;
}
