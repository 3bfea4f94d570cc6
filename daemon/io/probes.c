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

const char *ttmon_probe_reason(int err)
{
	/* The kernel's own ENOTSUPP, which is no errno of user space: an instruction that can neither be emulated nor stepped. */
	return err == -524 ? "its first instruction cannot be probed" : strerror(-err);
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

/* Functions of one entry program: which[] are their places in p->probes. */
static int collect(const struct ttmon_probes *p, const struct ttmon_elf_info *info, const uint64_t *cookies,
		   enum ttmon_prog entry, struct ttmon_uprobe_set *set, size_t *which)
{
	set->n = 0;
	set->offsets = malloc((p->n + 1) * sizeof(*set->offsets));
	set->cookies = malloc((p->n + 1) * sizeof(*set->cookies));
	if (!set->offsets || !set->cookies)
		return -ENOMEM;
	for (size_t i = 0; i < p->n; i++) {
		if (p->probes[i].prog != entry)
			continue;
		which[set->n] = i;
		set->offsets[set->n] =
			i < info->nr_targets ? info->targets[i].offset : info->usdts[i - info->nr_targets].offset;
		set->cookies[set->n++] = cookies[i];
	}
	return 0;
}

static void free_set(struct ttmon_uprobe_set *set)
{
	free(set->offsets);
	free(set->cookies);
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

static int add_link(struct ttmon_bpf *b, struct ttmon_probes *p, int link)
{
	int *v = realloc(p->links, (p->nr_links + 1) * sizeof(*v));

	if (!v) {
		ttmon_bpf_detach_uprobes(b, link);
		return -ENOMEM;
	}
	p->links = v;
	p->links[p->nr_links++] = link;
	return 0;
}

/*
 * The return link first: a return without its entry is ignored, an entry without its return would stay in flight. Returns the last error;
 * every function of the set has its state.
 */
static int attach_set(struct ttmon_bpf *b, int fd, struct ttmon_probes *p, const struct ttmon_uprobe_set *set,
		      const size_t *which, bool returns)
{
	bool pair = returns && (set->prog == TTMON_PROG_CALL || set->prog == TTMON_PROG_USER_CALL);
	struct ttmon_uprobe_set part = *set;
	int ret = -1, entry, err, err2;

	if (pair) {
		part.prog = set->prog == TTMON_PROG_CALL ? TTMON_PROG_RETURN : TTMON_PROG_USER_RETURN;
		ret = ttmon_bpf_attach_uprobes(b, fd, &part);
	}
	part.prog = set->prog;
	entry = pair && ret < 0 ? ret : ttmon_bpf_attach_uprobes(b, fd, &part);
	if (entry >= 0) {
		for (size_t i = 0; i < set->n; i++) {
			struct ttmon_probe *q = &p->probes[which[i]];

			q->state = TTMON_PROBE_ATTACHED;
			p->attached++;
			p->single_step += q->single_step;
		}
		err = add_link(b, p, entry);
		err2 = pair ? add_link(b, p, ret) : 0;
		return err ? err : err2;
	}
	if (ret >= 0)
		ttmon_bpf_detach_uprobes(b, ret);
	if (set->n == 1) {
		p->probes[which[0]].state = TTMON_PROBE_FAILED;
		p->probes[which[0]].err = entry;
		return entry;
	}
	part.n = set->n / 2;
	err = attach_set(b, fd, p, &part, which, returns);
	part.offsets += part.n;
	part.cookies += part.n;
	which += part.n;
	part.n = set->n - part.n;
	err2 = attach_set(b, fd, p, &part, which, returns);
	return err2 ? err2 : err;
}

int ttmon_probes_attach(struct ttmon_bpf *b, int object_fd, const struct ttmon_elf_info *info,
			const struct ttmon_probes_opts *opts, struct ttmon_probes *ret)
{
	struct ttmon_probes p = { .bpf = b, .n = info->nr_targets + info->nr_usdts };
	_cleanup_free_ uint64_t *cookies = calloc(p.n + 1, sizeof(*cookies));
	_cleanup_free_ size_t *which = calloc(p.n + 1, sizeof(*which));
	int last = 0;

	p.probes = calloc(p.n + 1, sizeof(*p.probes));
	if (!p.probes || !cookies || !which) {
		free(p.probes);
		return -ENOMEM;
	}
	describe(&p, info, opts, cookies);
	for (int prog = 0; prog < TTMON_PROG_UPROBES; prog++) {
		struct ttmon_uprobe_set set = { .prog = prog };
		int err = collect(&p, info, cookies, prog, &set, which);

		if (!err && set.n)
			err = attach_set(b, object_fd, &p, &set, which, !opts->no_returns);
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
	for (size_t i = 0; i < p->nr_links; i++)
		ttmon_bpf_detach_uprobes(p->bpf, p->links[i]);
	free(p->links);
	p->links = NULL;
	p->nr_links = 0;
	free(p->probes);
	p->probes = NULL;
	p->n = 0;
}
