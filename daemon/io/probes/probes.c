// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/io/probes/probes.h"

#include "daemon/core/stream/decode.h"
#include "lib/base/names.h"
#include "daemon/io/objects/usdt.h"
#include "lib/os/clock.h"

/* clang-format off */
static const struct ttmon_fn_desc fns[TTMON_FN_COUNT] = {
	TTMON_FN_TABLE(TTMON_FN_DESC)
	[TTMON_FN_USER ... TTMON_FN_USER + TTMON_FN_USER_MAX - 1] = { .lib = TTMON_LIB_USER },
	[TTMON_FN_USDT_ALLOC ... TTMON_FN_USDT_CHECKPOINT] = { .lib = TTMON_LIB_USDT },
};
/* clang-format on */

const char *ttmon_probe_state_name(enum ttmon_probe_state state)
{
	static const char *const names[] = { "found", "attached", "failed", "refused", "spare", "off" };

	return names[state];
}

const char *ttmon_probe_reason(int err)
{
	switch (err) {
	case TTMON_PROBE_EINSN:
		return "its first instruction cannot be probed";
	case TTMON_PROBE_ESTEP:
		return "would be single-stepped: --tt-dispatch on probes it";
	case TTMON_PROBE_EOFF:
		return "--tt-dispatch off";
	case TTMON_PROBE_ESLOT:
		return "too many libraries with tt-metal at a time";
	case TTMON_PROBE_ESPARE:
		return "not needed while the primary pair works";
	case TTMON_PROBE_ENOP:
		return "a nop of five bytes, which this kernel makes a call that kills a forked child";
	case TTMON_PROBE_EFAMILY:
		return "its family is off";
	case TTMON_PROBE_EUSERFS:
		return "it is on a file system that a user's program serves";
	case TTMON_PROBE_ELATE:
		return "it could not be read in time";
	default:
		return strerror(-err);
	}
}

enum ttmon_family ttmon_probes_family_of(const struct ttmon_probe *q)
{
	return q->prog < TTMON_PROG_UPROBES ? ttmon_bpf_family(q->prog) : TTMON_FAMILY_ALLOC;
}

static enum ttmon_prog tt_program(const struct ttmon_tt_desc *d)
{
	switch (d->cls) {
	case TTMON_TT_CLS_BUFFER:
		return TTMON_PROG_TT_BUFFER;
	case TTMON_TT_CLS_DISPATCH:
		return TTMON_PROG_TT_DISPATCH;
	case TTMON_TT_CLS_PROGRAM:
	case TTMON_TT_CLS_PROGRAMS:
		return TTMON_PROG_TT_PROGRAM;
	default:
		return TTMON_PROG_TT_CALL;
	}
}

static enum ttmon_prog entry_program(uint16_t fn, const struct ttmon_probes_opts *opts)
{
	const struct ttmon_fn_desc *d = &fns[fn];

	if (d->lib == TTMON_LIB_USDT)
		return TTMON_PROG_USDT;
	if (d->lib == TTMON_LIB_USER)
		return TTMON_PROG_USER_CALL;
	if (d->cls >= TTMON_CLS_LAUNCH)
		return TTMON_PROG_LAUNCH;
	if (d->cls == TTMON_CLS_SYNC)
		return TTMON_PROG_SYNC;
	if (d->cls == TTMON_CLS_BATCH || d->cls == TTMON_CLS_BATCH_3D || d->cls == TTMON_CLS_HINT_BATCH)
		return TTMON_PROG_BATCH;
	if (d->bits & TTMON_FN_ENTRY)
		return TTMON_PROG_NOTE;
	if ((d->bits & TTMON_FN_ASYNC) && !opts->copy_results)
		return TTMON_PROG_ENQUEUE;
	if ((d->cls >= TTMON_CLS_COPY && d->cls <= TTMON_CLS_DRV_3D) || d->cls == TTMON_CLS_HINT)
		return TTMON_PROG_COPY;
	return TTMON_PROG_CALL;
}

/* What is at the return of a program's functions; TTMON_PROG_UPROBES: nothing. */
static enum ttmon_prog return_program(enum ttmon_prog entry)
{
	switch (entry) {
	case TTMON_PROG_CALL:
		return TTMON_PROG_RETURN;
	case TTMON_PROG_COPY:
		return TTMON_PROG_COPY_RET;
	case TTMON_PROG_SYNC:
		return TTMON_PROG_SYNC_RET;
	case TTMON_PROG_USER_CALL:
		return TTMON_PROG_USER_RETURN;
	default:
		return TTMON_PROG_UPROBES;
	}
}

/* Does it tell the end of what other functions began? */
static bool is_end(uint32_t fn)
{
	const struct ttmon_tt_desc *d = ttmon_tt_fn(fn);

	if (!d)
		return false;
	switch (d->cls) {
	case TTMON_TT_CLS_BUFFER:
		return d->aux != TTMON_TT_OP_ALLOCATED && d->aux != TTMON_TT_OP_ENTER;
	case TTMON_TT_CLS_CB_OF:
		return d->aux == TTMON_TT_OP_LEAVE;
	case TTMON_TT_CLS_BULK:
	case TTMON_TT_CLS_CB_FREE:
	case TTMON_TT_CLS_DEVICE_END:
	case TTMON_TT_CLS_MESH_ANEW:
		return true;
	default:
		return false;
	}
}

/*
 * Functions of one entry program that wait for a link, spare or not: which[] are their places in
 * p->probes. One that is thought to be refused by the kernel is a set of its own, and comes last.
 * The kernel activates them in this order, one by one, while programs may call them: ends come
 * first, so that what is seen to begin is seen to end.
 */
static int collect(const struct ttmon_probes *p, const struct ttmon_elf_info *info, enum ttmon_prog entry, bool spare,
		   bool refused, struct ttmon_uprobe_set *set, size_t *which)
{
	set->n = 0;
	set->offsets = malloc((p->n + 1) * sizeof(*set->offsets));
	set->cookies = malloc((p->n + 1) * sizeof(*set->cookies));
	if (!set->offsets || !set->cookies)
		return -ENOMEM;
	for (size_t k = 0; k < 2 * p->n; k++) {
		size_t i = k % p->n;

		if (p->probes[i].prog != entry || p->probes[i].spare != spare || p->probes[i].refused != refused ||
		    p->probes[i].state != TTMON_PROBE_FOUND || is_end(p->probes[i].fn) != (k < p->n) ||
		    (refused && set->n))
			continue;
		which[set->n] = i;
		set->offsets[set->n] = i < info->nr_targets ? info->targets[i].offset + info->targets[i].skip
							    : info->usdts[i - info->nr_targets].offset;
		set->cookies[set->n++] = p->probes[i].cookie;
	}
	return 0;
}

static void free_set(struct ttmon_uprobe_set *set)
{
	free(set->offsets);
	free(set->cookies);
}

/*
 * Cookie of a USDT point: the row, then the register of each operand (bpf/usdt.bpf.c, usdt_operand).
 */
static int usdt_cookie(const struct ttmon_usdt *u, uint64_t *ret)
{
	struct ttmon_usdt_spec spec;
	uint64_t cookie = u->fn;
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
		cookie |= idx << (16 + 8 * i);
	}
	*ret = cookie;
	return 0;
}

/* On a nop of five bytes, where the kernel would change it. */
static void refuse_nop5(struct ttmon_probe *q)
{
	if (!ttmon_bpf_optimizes_nop5())
		return;
	q->state = TTMON_PROBE_REFUSED;
	q->err = TTMON_PROBE_ENOP;
}

/* A function of tt-metal: may it be probed? */
static void describe_tt(struct ttmon_probe *q, const struct ttmon_target *t, const struct ttmon_probes_opts *opts)
{
	const struct ttmon_tt_desc *d = ttmon_tt_fn(q->fn);
	/*
	 * From this and the instruction pointer follows where the library lies. Past 4 GiB there is no code:
	 * then nothing is known.
	 */
	uint64_t at = t->addr + t->skip, addr = at <= UINT32_MAX ? at : 0;

	q->mangled = t->mangled ? strdup(t->mangled) : NULL;
	q->prog = tt_program(d);
	q->spare = d->bits & TTMON_TTF_SPARE;
	q->cookie = TTMON_TT_COOKIE(q->fn, opts->tt_slot < 0 ? 0 : opts->tt_slot, addr);
	if (q->err)
		return;
	if (opts->tt_slot < 0)
		q->err = TTMON_PROBE_ESLOT;
	else if (d->cls == TTMON_TT_CLS_DISPATCH && opts->tt_dispatch == TTMON_TT_DISPATCH_OFF)
		q->err = TTMON_PROBE_EOFF;
	else if (d->cls == TTMON_TT_CLS_DISPATCH && opts->tt_dispatch == TTMON_TT_DISPATCH_AUTO && q->single_step)
		q->err = TTMON_PROBE_ESTEP;
	if (q->err)
		q->state = TTMON_PROBE_REFUSED;
}

static void describe(struct ttmon_probes *p, const struct ttmon_elf_info *info, const struct ttmon_probes_opts *opts)
{
	for (size_t i = 0; i < info->nr_targets; i++) {
		struct ttmon_probe *q = &p->probes[i];
		uint64_t size;

		memcpy(q->symbol, info->targets[i].symbol, sizeof(q->symbol));
		q->fn = info->targets[i].fn;
		q->skip = info->targets[i].skip;
		q->single_step = info->targets[i].single_step;
		q->refused = info->targets[i].refused;
		if (info->targets[i].nop5)
			refuse_nop5(q);
		if (ttmon_tt_fn(q->fn)) {
			describe_tt(q, &info->targets[i], opts);
			continue;
		}
		q->prog = entry_program(q->fn, opts);
		size = info->targets[i].size;
		q->cookie = TTMON_COOKIE(q->fn, TTMON_LIB_IS_RT(fns[q->fn].lib) && info->whole_rt,
					 size > q->skip && size <= UINT32_MAX ? size - q->skip : 0);
	}
	for (size_t k = 0; k < info->nr_usdts; k++) {
		struct ttmon_probe *q = &p->probes[info->nr_targets + k];

		q->fn = info->usdts[k].fn;
		snprintf(q->symbol, sizeof(q->symbol), "usdt:ttmon:%s", strchr(ttmon_fn_name(q->fn), ':') + 1);
		q->prog = TTMON_PROG_USDT;
		q->err = usdt_cookie(&info->usdts[k], &q->cookie);
		if (q->err) {
			q->state = TTMON_PROBE_FAILED;
			q->prog = TTMON_PROG_UPROBES; /* belongs to no program */
		} else if (info->usdts[k].nop5) {
			refuse_nop5(q);
		}
	}
}

/* Those of families that are off now wait for them. */
static void hold_back(struct ttmon_probes *p)
{
	for (size_t i = 0; i < p->n; i++) {
		struct ttmon_probe *q = &p->probes[i];

		if (q->state == TTMON_PROBE_FOUND && p->off >> ttmon_bpf_family(q->prog) & 1) {
			q->state = TTMON_PROBE_OFF;
			q->err = TTMON_PROBE_EFAMILY;
		}
	}
}

static int add_link(struct ttmon_bpf *b, struct ttmon_probes *p, int link, enum ttmon_prog prog, bool spare)
{
	struct ttmon_probes_link *v = realloc(p->links, (p->nr_links + 1) * sizeof(*v));

	if (!v) {
		ttmon_bpf_detach_uprobes(b, link);
		return -ENOMEM;
	}
	p->links = v;
	p->links[p->nr_links++] = (struct ttmon_probes_link){ link, ttmon_bpf_family(prog), spare };
	return 0;
}

/*
 * The return link first: a return without its entry is ignored, an entry without its return would stay
 * in flight. Returns the last error; every function of the set has its state.
 */
static int attach_set(struct ttmon_bpf *b, int fd, struct ttmon_probes *p, const struct ttmon_uprobe_set *set,
		      const size_t *which)
{
	enum ttmon_prog ret_prog = return_program(set->prog);
	bool pair = p->returns && ret_prog != TTMON_PROG_UPROBES && !ttmon_bpf_session(p->bpf);
	bool spare = p->probes[which[0]].spare;
	struct ttmon_uprobe_set part = *set;
	int ret = -1, entry, err, err2;

	if (pair) {
		part.prog = ret_prog;
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
		err = add_link(b, p, entry, set->prog, spare);
		err2 = pair ? add_link(b, p, ret, ret_prog, spare) : 0;
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
	err = attach_set(b, fd, p, &part, which);
	part.offsets += part.n;
	part.cookies += part.n;
	which += part.n;
	part.n = set->n - part.n;
	err2 = attach_set(b, fd, p, &part, which);
	return err2 ? err2 : err;
}

/*
 * Every program's functions, the spare ones in links of their own. A link that the kernel refuses
 * for one of its functions has to be taken back, which waits for grace periods, and its halves
 * tried: 0.3 to 0.5 s. So those that are thought to be refused are tried one by one. The last
 * error, 0 where there was none.
 */
static int attach_those(struct ttmon_probes *p, int object_fd, const struct ttmon_elf_info *info, bool spare,
			bool refused)
{
	_cleanup_free_ size_t *which = calloc(p->n + 1, sizeof(*which));
	int last = 0;

	if (!which)
		return -ENOMEM;
	for (int prog = 0; prog < TTMON_PROG_UPROBES;) {
		struct ttmon_uprobe_set set = { .prog = prog };
		int err = collect(p, info, prog, spare, refused, &set, which);
		bool more = !err && set.n && refused;

		if (!err && set.n)
			err = attach_set(p->bpf, object_fd, p, &set, which);
		if (err)
			last = err;
		prog += !more;
		free_set(&set);
	}
	return last;
}

static int attach_all(struct ttmon_probes *p, int object_fd, const struct ttmon_elf_info *info, bool spare)
{
	int err = attach_those(p, object_fd, info, spare, false), err2 = attach_those(p, object_fd, info, spare, true);

	return err2 ? err2 : err;
}

static void take_away(struct ttmon_probes *p, struct ttmon_probe *q, enum ttmon_probe_state state, int err)
{
	if (q->state == TTMON_PROBE_ATTACHED) {
		p->attached--;
		p->single_step -= q->single_step;
	}
	q->state = state;
	q->err = err;
}

size_t ttmon_probes_places(const struct ttmon_probes *p, const struct ttmon_elf_info *info, uint64_t *ret)
{
	size_t n = MIN(p->n, info->nr_targets);

	for (size_t i = 0; i < n; i++)
		ret[i] = info->targets[i].offset + info->targets[i].skip;
	return n;
}

bool ttmon_probes_misplaced(struct ttmon_probes *p, const char *missing, size_t n)
{
	size_t placed = 0, before = p->attached;

	n = MIN(n, p->n);
	for (size_t i = 0; i < n; i++)
		placed += p->probes[i].state == TTMON_PROBE_ATTACHED && !missing[i];
	for (size_t i = 0; placed && i < n; i++)
		if (missing[i] && p->probes[i].state == TTMON_PROBE_ATTACHED)
			take_away(p, &p->probes[i], TTMON_PROBE_FAILED, TTMON_PROBE_EINSN);
	return p->attached != before;
}

int ttmon_probes_attach(struct ttmon_bpf *b, int object_fd, const struct ttmon_elf_info *info,
			const struct ttmon_probes_opts *opts, struct ttmon_probes *ret)
{
	struct ttmon_probes p = { .bpf = b,
				  .n = info->nr_targets + info->nr_usdts,
				  .off = ttmon_bpf_legacy(b) ? 0 : opts->off,
				  .returns = !opts->no_returns };
	size_t before;
	int err, err2;

	p.probes = calloc(p.n + 1, sizeof(*p.probes));
	if (!p.probes)
		return -ENOMEM;
	describe(&p, info, opts);
	hold_back(&p);
	err = attach_those(&p, object_fd, info, false, false);
	err2 = attach_those(&p, object_fd, info, true, false);
	p.active_ns = ttmon_mono_ns();
	before = p.attached;
	err = attach_all(&p, object_fd, info, false) ?: err;
	err2 = attach_all(&p, object_fd, info, true) ?: err2;
	if (p.attached > before)
		p.active_ns = ttmon_mono_ns();
	if (!p.attached && (err || err2)) {
		ttmon_probes_detach(&p);
		return err ? err : err2;
	}
	*ret = p;
	return 0;
}

size_t ttmon_probes_give_links(struct ttmon_probes *p, int *links)
{
	size_t n = p->nr_links;

	for (size_t i = 0; i < n; i++)
		links[i] = p->links[i].fd;
	p->nr_links = 0;
	return n;
}

static bool any_link(const struct ttmon_probes_link *l _unused_, unsigned int which _unused_)
{
	return true;
}

/* Those that are picked; the others stay, in their order. */
static void detach_links(struct ttmon_probes *p, bool (*pick)(const struct ttmon_probes_link *l, unsigned int which),
			 unsigned int which)
{
	_cleanup_free_ int *fds = p->close && p->nr_links ? malloc(p->nr_links * sizeof(*fds)) : NULL;
	size_t kept = 0, n = 0;

	for (size_t i = 0; i < p->nr_links; i++) {
		if (!pick(&p->links[i], which))
			p->links[kept++] = p->links[i];
		else if (fds)
			fds[n++] = p->links[i].fd;
		else
			ttmon_bpf_detach_uprobes(p->bpf, p->links[i].fd);
	}
	p->nr_links = kept;
	if (n)
		p->close(p->close_ctx, fds, n, pick == any_link);
}

static bool is_spare(const struct ttmon_probes_link *l, unsigned int which _unused_)
{
	return l->spare;
}

static bool is_of_family(const struct ttmon_probes_link *l, unsigned int family)
{
	return l->family == family;
}

void ttmon_probes_detach(struct ttmon_probes *p)
{
	detach_links(p, any_link, 0);
	free(p->links);
	p->links = NULL;
	p->nr_links = 0;
	for (size_t i = 0; i < p->n; i++)
		free(p->probes[i].mangled);
	free(p->probes);
	p->probes = NULL;
	p->n = 0;
}

static void detach_spare(struct ttmon_probes *p)
{
	detach_links(p, is_spare, 0);
	for (size_t i = 0; i < p->n; i++) {
		struct ttmon_probe *q = &p->probes[i];

		if (!q->spare || (q->state != TTMON_PROBE_ATTACHED && q->state != TTMON_PROBE_OFF))
			continue;
		take_away(p, q, TTMON_PROBE_SPARE, TTMON_PROBE_ESPARE);
	}
}

/* Those in that state are as if just found. Returns whether there were any. */
static bool found_again(struct ttmon_probes *p, enum ttmon_probe_state state)
{
	bool any = false;

	for (size_t i = 0; i < p->n; i++) {
		struct ttmon_probe *q = &p->probes[i];

		if (q->state != state)
			continue;
		q->state = TTMON_PROBE_FOUND;
		q->err = 0;
		any = true;
	}
	hold_back(p);
	return any;
}

int ttmon_probes_spare(struct ttmon_probes *p, int object_fd, const struct ttmon_elf_info *info, bool on)
{
	if (ttmon_bpf_legacy(p->bpf))
		return -EOPNOTSUPP;
	if (!on) {
		detach_spare(p);
		return 0;
	}
	return found_again(p, TTMON_PROBE_SPARE) ? attach_all(p, object_fd, info, true) : 0;
}

/*
 * Links of entries are before those of their returns: what was entered can still return while they go.
 */
static void detach_family(struct ttmon_probes *p, enum ttmon_family family)
{
	detach_links(p, is_of_family, family);
	for (size_t i = 0; i < p->n; i++) {
		struct ttmon_probe *q = &p->probes[i];

		if (q->state == TTMON_PROBE_ATTACHED && ttmon_bpf_family(q->prog) == family)
			take_away(p, q, TTMON_PROBE_OFF, TTMON_PROBE_EFAMILY);
	}
}

int ttmon_probes_family(struct ttmon_probes *p, int object_fd, const struct ttmon_elf_info *info,
			enum ttmon_family family, bool on)
{
	int err, err2;

	if (ttmon_bpf_legacy(p->bpf))
		return -EOPNOTSUPP;
	if (!on) {
		p->off |= 1u << family;
		detach_family(p, family);
		return 0;
	}
	p->off &= ~(1u << family);
	if (!found_again(p, TTMON_PROBE_OFF))
		return 0;
	err = attach_all(p, object_fd, info, false);
	err2 = attach_all(p, object_fd, info, true);
	return err ? err : err2;
}

/* Which ways of seeing allocations one function stands for. */
static uint32_t has_of(const struct ttmon_tt_desc *d)
{
	switch (d->cls) {
	case TTMON_TT_CLS_CREATE:
		return d->aux == TTMON_TT_OP_SHADOW ? TTMON_TT_HAS_SHADOW : TTMON_TT_HAS_CREATE;
	case TTMON_TT_CLS_DEVICE_NEW:
		return TTMON_TT_HAS_DEVICE;
	case TTMON_TT_CLS_PROVIDER:
		return TTMON_TT_HAS_SHM;
	case TTMON_TT_CLS_CB:
		return TTMON_TT_HAS_CB;
	case TTMON_TT_CLS_DISPATCH:
		return TTMON_TT_HAS_DISPATCH;
	case TTMON_TT_CLS_PROGRAM:
	case TTMON_TT_CLS_PROGRAMS:
		return TTMON_TT_HAS_PROGRAMS;
	case TTMON_TT_CLS_PAIR:
		return TTMON_TT_HAS_SYNC;
	default:
		return 0;
	}
}

uint32_t ttmon_probes_tt_has(const struct ttmon_probes *p, const struct ttmon_elf_info *info)
{
	uint32_t has = (info->tt.vt_device ? TTMON_TT_HAS_VTABLE : 0) | (info->tt.vt_mesh ? TTMON_TT_HAS_MESH : 0);
	uint32_t ops = 0, of = 0; /* 1 << enum ttmon_tt_op */

	for (size_t i = 0; i < p->n; i++) {
		const struct ttmon_probe *q = &p->probes[i];
		const struct ttmon_tt_desc *d = ttmon_tt_fn(q->fn);

		if (!d ||
		    (q->state != TTMON_PROBE_ATTACHED && q->state != TTMON_PROBE_SPARE && q->state != TTMON_PROBE_OFF))
			continue;
		has |= has_of(d);
		if (d->cls == TTMON_TT_CLS_BUFFER)
			ops |= 1u << d->aux;
		if (d->cls == TTMON_TT_CLS_CB_OF)
			of |= 1u << d->aux;
		if (q->spare && q->state == TTMON_PROBE_ATTACHED)
			has |= TTMON_TT_HAS_SPARE;
	}
	if (of >> TTMON_TT_OP_ENTER & of >> TTMON_TT_OP_LEAVE & 1)
		has |= TTMON_TT_HAS_CB_OF;
	if (ops >> TTMON_TT_OP_ALLOCATED & ops >> TTMON_TT_OP_FREEING & 1)
		has |= TTMON_TT_HAS_PRIMARY;
	if (ops >> TTMON_TT_OP_ENTER & 1 &&
	    ops & (1u << TTMON_TT_OP_LEAVE | 1u << TTMON_TT_OP_TAKE_BACK | 1u << TTMON_TT_OP_DTOR))
		has |= TTMON_TT_HAS_FALLBACK;
	return has;
}

int64_t ttmon_probes_gap_us(uint64_t mapped_ns, uint64_t active_ns, bool held)
{
	if (held)
		return 0;
	if (!mapped_ns || !active_ns)
		return -1;
	return ttmon_before(mapped_ns, active_ns) ? (int64_t)((active_ns - mapped_ns) / NSEC_PER_US) : 0;
}
