// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_probes.c: which functions of an object are probed while families and spare probes are switched.
 * This file replaces the kernel: it counts links, so that the attached probes can be compared with the
 * state that each probe reports.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "daemon/io/probes/probes.c"

#define OFFSETS 16
#define LINKS	64

/* ---- instead of the kernel ---- */

static struct {
	enum ttmon_prog prog;
	size_t n;
	uint64_t offsets[OFFSETS];
	bool used;
} links[LINKS];
static int attached[TTMON_PROG_UPROBES][OFFSETS]; /* links that a function has, by program */
static uint64_t refused = UINT64_MAX;		  /* the offset that cannot be probed */
static bool legacy, session;
static bool nop5_optimized;
static enum ttmon_prog last_detached;

int ttmon_bpf_attach_uprobes(struct ttmon_bpf *b, int object_fd, const struct ttmon_uprobe_set *set)
{
	(void)b;
	(void)object_fd;
	assert_true(set->n > 0 && set->n <= OFFSETS);
	for (size_t i = 0; i < set->n; i++)
		if (set->offsets[i] == refused)
			return -EINVAL;
	for (int link = 0; link < LINKS; link++) {
		if (links[link].used)
			continue;
		links[link].used = true;
		links[link].prog = set->prog;
		links[link].n = set->n;
		memcpy(links[link].offsets, set->offsets, set->n * sizeof(*set->offsets));
		for (size_t i = 0; i < set->n; i++)
			attached[set->prog][set->offsets[i]]++;
		return link;
	}
	return -EMFILE;
}

void ttmon_bpf_detach_uprobes(struct ttmon_bpf *b, int link)
{
	(void)b;
	assert_true(links[link].used);
	links[link].used = false;
	last_detached = links[link].prog;
	for (size_t i = 0; i < links[link].n; i++)
		attached[links[link].prog][links[link].offsets[i]]--;
}

bool ttmon_bpf_session(const struct ttmon_bpf *b)
{
	(void)b;
	return session;
}

bool ttmon_bpf_legacy(const struct ttmon_bpf *b)
{
	(void)b;
	return legacy;
}

bool ttmon_bpf_optimizes_nop5(void)
{
	return nop5_optimized;
}

enum ttmon_family ttmon_bpf_family(enum ttmon_prog prog)
{
	switch (prog) {
	case TTMON_PROG_COPY:
	case TTMON_PROG_COPY_RET:
	case TTMON_PROG_ENQUEUE:
	case TTMON_PROG_BATCH:
		return TTMON_FAMILY_TRANSFER;
	case TTMON_PROG_LAUNCH:
		return TTMON_FAMILY_LAUNCH;
	case TTMON_PROG_TT_BUFFER:
	case TTMON_PROG_TT_CALL:
		return TTMON_FAMILY_TENSTORRENT;
	case TTMON_PROG_TT_DISPATCH:
	case TTMON_PROG_TT_PROGRAM:
		return TTMON_FAMILY_DISPATCH;
	default:
		return TTMON_FAMILY_ALLOC;
	}
}

/* ---- the object ---- */

static const struct {
	uint16_t fn;
	enum ttmon_prog prog, ret; /* ret: UPROBES: none */
	bool spare;
} want[] = {
	{ 8, TTMON_PROG_CALL, TTMON_PROG_RETURN, false },	    /* cudaMalloc */
	{ 13, TTMON_PROG_CALL, TTMON_PROG_RETURN, false },	    /* cudaFree */
	{ 7, TTMON_PROG_CALL, TTMON_PROG_RETURN, false },	    /* cudaHostGetDevicePointer */
	{ 16, TTMON_PROG_COPY, TTMON_PROG_COPY_RET, false },	    /* cudaMemcpy */
	{ 45, TTMON_PROG_COPY, TTMON_PROG_COPY_RET, false },	    /* cudaMemPrefetchAsync */
	{ 17, TTMON_PROG_ENQUEUE, TTMON_PROG_UPROBES, false },	    /* cudaMemcpyAsync */
	{ 41, TTMON_PROG_BATCH, TTMON_PROG_UPROBES, false },	    /* cudaMemcpyBatchAsync */
	{ 54, TTMON_PROG_NOTE, TTMON_PROG_UPROBES, false },	    /* cudaStreamEndCapture */
	{ 58, TTMON_PROG_LAUNCH, TTMON_PROG_UPROBES, false },	    /* cudaLaunchKernel */
	{ 62, TTMON_PROG_LAUNCH, TTMON_PROG_UPROBES, false },	    /* cudaGraphAddMemcpyNode */
	{ 256, TTMON_PROG_TT_BUFFER, TTMON_PROG_UPROBES, false },   /* track_allocate */
	{ 260, TTMON_PROG_TT_BUFFER, TTMON_PROG_UPROBES, true },    /* allocate_impl */
	{ 281, TTMON_PROG_TT_CALL, TTMON_PROG_UPROBES, true },	    /* buffer_create */
	{ 310, TTMON_PROG_TT_DISPATCH, TTMON_PROG_UPROBES, false }, /* EnqueueMeshWorkload */
};

static struct ttmon_target targets[ARRAY_SIZE(want)];
static struct ttmon_elf_info info = { .targets = targets, .nr_targets = ARRAY_SIZE(want) };
static const struct ttmon_probes_opts plain = { .tt_dispatch = TTMON_TT_DISPATCH_ON };

static struct ttmon_bpf *bpf(void)
{
	return (struct ttmon_bpf *)&info;
}

static int fresh(void **state)
{
	(void)state;
	memset(links, 0, sizeof(links));
	memset(attached, 0, sizeof(attached));
	refused = UINT64_MAX;
	legacy = false;
	nop5_optimized = false;
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		targets[i].fn = want[i].fn;
		targets[i].offset = i;
		targets[i].single_step = i & 1;
		targets[i].skip = 0;
		targets[i].nop5 = false;
		targets[i].addr = 0x1000;
	}
	return 0;
}

/*
 * Checks that every function is attached once or not at all, by its own programs, and reports it. off:
 * families that are off; away: the spare probes are removed.
 */
static void hold(const struct ttmon_probes *p, uint32_t off, bool away)
{
	size_t n = 0, steps = 0;

	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		const struct ttmon_probe *q = &p->probes[i];
		bool is_off = off >> ttmon_bpf_family(want[i].prog) & 1, on = !is_off && !(want[i].spare && away);

		for (int prog = 0; prog < TTMON_PROG_UPROBES; prog++)
			assert_int_equal(attached[prog][i],
					 on && (prog == (int)want[i].prog || prog == (int)want[i].ret));
		assert_int_equal(q->state, on			   ? TTMON_PROBE_ATTACHED
					   : want[i].spare && away ? TTMON_PROBE_SPARE
								   : TTMON_PROBE_OFF);
		assert_int_equal(!q->err, on);
		n += on;
		steps += on && q->single_step;
	}
	assert_int_equal(p->attached, n);
	assert_int_equal(p->single_step, steps);
}

static void nothing_left(void)
{
	for (int i = 0; i < LINKS; i++)
		assert_false(links[i].used);
}

static void each_function_has_its_program(void **state)
{
	struct ttmon_probes p = { 0 };

	(void)state;
	assert_int_equal(ttmon_probes_attach(bpf(), 3, &info, &plain, &p), 0);
	hold(&p, 0, false);
	ttmon_probes_detach(&p);
	nothing_left();
}

/*
 * The kernel activates the functions of a link one by one, while a program may call them: the end of a
 * call that was seen to begin must be seen.
 */
static void ends_come_first(void **state)
{
	static const uint16_t ids[] = { 256, 257, 266, 290, 291, 292, 293 };
	/*
	 * track_deallocate, mark_as_deallocated, track_allocate; track_deallocate_cb,
	 * deallocate_circular_buffers, then the others.
	 */
	static const uint64_t buffers[] = { 1, 2, 0 }, calls[] = { 4, 6, 3, 5 };
	struct ttmon_target some[ARRAY_SIZE(ids)] = { 0 };
	struct ttmon_elf_info few = { .targets = some, .nr_targets = ARRAY_SIZE(ids) };
	struct ttmon_probes p = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		some[i].fn = ids[i];
		some[i].offset = i;
	}
	assert_int_equal(ttmon_probes_attach(bpf(), 3, &few, &plain, &p), 0);
	assert_int_equal(links[0].n, 3);
	assert_memory_equal(links[0].offsets, buffers, sizeof(buffers));
	assert_int_equal(links[1].n, 4);
	assert_memory_equal(links[1].offsets, calls, sizeof(calls));
	ttmon_probes_detach(&p);
	nothing_left();
}

static void families_and_spares_in_any_order(void **state)
{
	struct ttmon_probes p = { 0 };
	uint32_t off = 0, x = 1;
	bool away = false;

	(void)state;
	assert_int_equal(ttmon_probes_attach(bpf(), 3, &info, &plain, &p), 0);
	for (int round = 0; round < 3000; round++) {
		x = x * 1103515245 + 12345;
		if ((x >> 16) % 4 == 0) {
			away = !away;
			assert_int_equal(ttmon_probes_spare(&p, 3, &info, !away), 0);
		} else {
			enum ttmon_family family = (x >> 16) / 4 % TTMON_FAMILY_MAX;
			/* A state that is already set may be set again. */
			bool on = (x >> 24) & 1;

			off = on ? off & ~(1u << family) : off | 1u << family;
			assert_int_equal(ttmon_probes_family(&p, 3, &info, family, on), 0);
		}
		hold(&p, off, away);
	}
	ttmon_probes_detach(&p);
	nothing_left();
}

/* A new object while families are off. */
static void held_back_from_the_start(void **state)
{
	struct ttmon_probes_opts opts = plain;
	struct ttmon_probes p = { 0 };

	(void)state;
	opts.off = 1u << TTMON_FAMILY_TRANSFER | 1u << TTMON_FAMILY_TENSTORRENT;
	assert_int_equal(ttmon_probes_attach(bpf(), 3, &info, &opts, &p), 0);
	hold(&p, opts.off, false);
	assert_int_equal(ttmon_probes_family(&p, 3, &info, TTMON_FAMILY_TRANSFER, true), 0);
	hold(&p, 1u << TTMON_FAMILY_TENSTORRENT, false);
	assert_int_equal(ttmon_probes_family(&p, 3, &info, TTMON_FAMILY_TENSTORRENT, true), 0);
	hold(&p, 0, false);
	ttmon_probes_detach(&p);
	opts.off = UINT32_MAX;
	assert_int_equal(ttmon_probes_attach(bpf(), 3, &info, &opts, &p), 0);
	hold(&p, UINT32_MAX, false);
	ttmon_probes_detach(&p);
	nothing_left();
}

/* A call that was entered can still return while its family is removed. */
static void entries_go_before_returns(void **state)
{
	struct ttmon_probes p = { 0 };

	(void)state;
	assert_int_equal(ttmon_probes_attach(bpf(), 3, &info, &plain, &p), 0);
	ttmon_probes_family(&p, 3, &info, TTMON_FAMILY_ALLOC, false);
	assert_int_equal(last_detached == TTMON_PROG_RETURN || last_detached == TTMON_PROG_NOTE, true);
	for (size_t i = 0; i < p.nr_links; i++)
		assert_int_not_equal(p.links[i].family, TTMON_FAMILY_ALLOC);
	ttmon_probes_detach(&p);
	nothing_left();
}

/* A function that the kernel refuses is left out, with the reason, and is not tried again. */
static void refused_function_stays_out(void **state)
{
	struct ttmon_probes p = { 0 };

	(void)state;
	refused = 3;
	assert_int_equal(ttmon_probes_attach(bpf(), 3, &info, &plain, &p), 0);
	for (int round = 0; round < 2; round++) {
		assert_int_equal(p.probes[3].state, TTMON_PROBE_FAILED);
		assert_int_equal(p.probes[3].err, -EINVAL);
		assert_int_equal(p.probes[4].state, TTMON_PROBE_ATTACHED);
		assert_int_equal(attached[TTMON_PROG_COPY_RET][4], 1);
		assert_int_equal(p.attached, ARRAY_SIZE(want) - 1);
		assert_int_equal(ttmon_probes_family(&p, 3, &info, TTMON_FAMILY_TRANSFER, false), 0);
		assert_int_equal(p.probes[3].state, TTMON_PROBE_FAILED);
		assert_int_equal(ttmon_probes_family(&p, 3, &info, TTMON_FAMILY_TRANSFER, true), 0);
	}
	ttmon_probes_detach(&p);
	nothing_left();
}

/*
 * A probe behind the entry: entry and return are at the same place, and code that uses the instruction
 * pointer is given that place.
 */
static void placed_behind_the_entry(void **state)
{
	struct ttmon_probes p = { 0 };

	(void)state;
	targets[3].skip = 12; /* cudaMemcpy: entry and return */
	targets[13].skip = 1; /* EnqueueMeshWorkload */
	targets[10].addr = UINT32_MAX;
	targets[10].skip = 0;
	targets[12].addr = UINT32_MAX;
	targets[12].skip = 1;
	assert_int_equal(ttmon_probes_attach(bpf(), 3, &info, &plain, &p), 0);
	assert_int_equal(p.probes[3].skip, 12);
	assert_int_equal(attached[TTMON_PROG_COPY][3] + attached[TTMON_PROG_COPY_RET][3], 0);
	assert_int_equal(attached[TTMON_PROG_COPY][15], 1);
	assert_int_equal(attached[TTMON_PROG_COPY_RET][15], 1);
	assert_int_equal(attached[TTMON_PROG_TT_DISPATCH][14], 1);
	assert_int_equal(p.probes[13].cookie >> 32, 0x1001);
	assert_int_equal(p.probes[10].cookie >> 32, UINT32_MAX);
	assert_int_equal(p.probes[12].cookie >> 32, 0);
	/* Removed and attached again. */
	assert_int_equal(ttmon_probes_family(&p, 3, &info, TTMON_FAMILY_TRANSFER, false), 0);
	assert_int_equal(attached[TTMON_PROG_COPY][15], 0);
	assert_int_equal(ttmon_probes_family(&p, 3, &info, TTMON_FAMILY_TRANSFER, true), 0);
	assert_int_equal(attached[TTMON_PROG_COPY][15], 1);
	ttmon_probes_detach(&p);
	nothing_left();
}

/* A nop of five bytes is refused if the kernel changes it, in any function, and stays refused. */
static void nop5_is_refused(void **state)
{
	static const size_t odd[] = { 0, 3, 10, 13 };
	struct ttmon_probes p = { 0 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++)
		targets[odd[i]].nop5 = true;
	assert_int_equal(ttmon_probes_attach(bpf(), 3, &info, &plain, &p), 0);
	hold(&p, 0, false);
	ttmon_probes_detach(&p);
	nop5_optimized = true;
	assert_int_equal(ttmon_probes_attach(bpf(), 3, &info, &plain, &p), 0);
	for (int family = 0; family < TTMON_FAMILY_MAX; family++) {
		assert_int_equal(ttmon_probes_family(&p, 3, &info, family, false), 0);
		assert_int_equal(ttmon_probes_family(&p, 3, &info, family, true), 0);
	}
	for (size_t i = 0; i < ARRAY_SIZE(odd); i++) {
		assert_int_equal(p.probes[odd[i]].state, TTMON_PROBE_REFUSED);
		assert_int_equal(p.probes[odd[i]].err, TTMON_PROBE_ENOP);
		for (int prog = 0; prog < TTMON_PROG_UPROBES; prog++)
			assert_int_equal(attached[prog][odd[i]], 0);
	}
	assert_int_equal(p.attached, ARRAY_SIZE(want) - ARRAY_SIZE(odd));
	assert_non_null(strstr(ttmon_probe_reason(TTMON_PROBE_ENOP), "nop"));
	ttmon_probes_detach(&p);
	nothing_left();
}

/* Without multi links nothing is removed. */
static void legacy_links_stay(void **state)
{
	struct ttmon_probes_opts opts = plain;
	struct ttmon_probes p = { 0 };

	(void)state;
	legacy = true;
	opts.off = 1u << TTMON_FAMILY_TRANSFER;
	assert_int_equal(ttmon_probes_attach(bpf(), 3, &info, &opts, &p), 0);
	hold(&p, 0, false);
	assert_int_equal(ttmon_probes_family(&p, 3, &info, TTMON_FAMILY_TRANSFER, false), -EOPNOTSUPP);
	hold(&p, 0, false);
	ttmon_probes_detach(&p);
	nothing_left();
}

/*
 * With --copy-results asynchronous copies have a return probe; without return probes no function has.
 */
static void options_choose_programs(void **state)
{
	struct ttmon_probes_opts opts = plain;
	struct ttmon_probes p = { 0 };

	(void)state;
	opts.copy_results = true;
	assert_int_equal(ttmon_probes_attach(bpf(), 3, &info, &opts, &p), 0);
	assert_int_equal(attached[TTMON_PROG_ENQUEUE][5], 0);
	assert_int_equal(attached[TTMON_PROG_COPY][5] + attached[TTMON_PROG_COPY_RET][5], 2);
	ttmon_probes_detach(&p);
	opts = plain;
	opts.no_returns = true;
	assert_int_equal(ttmon_probes_attach(bpf(), 3, &info, &opts, &p), 0);
	assert_int_equal(ttmon_probes_family(&p, 3, &info, TTMON_FAMILY_TRANSFER, false), 0);
	assert_int_equal(ttmon_probes_family(&p, 3, &info, TTMON_FAMILY_TRANSFER, true), 0);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		assert_int_equal(attached[TTMON_PROG_RETURN][i] + attached[TTMON_PROG_COPY_RET][i], 0);
	ttmon_probes_detach(&p);
	nothing_left();
}

/* A program that runs at both ends of a call has one link, at the entry. */
static void sessions_have_no_return_links(void **state)
{
	struct ttmon_probes p = { 0 };

	(void)state;
	assert_int_equal(ttmon_probes_attach(bpf(), 3, &info, &plain, &p), 0);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		assert_int_equal(attached[TTMON_PROG_RETURN][i] + attached[TTMON_PROG_COPY_RET][i],
				 want[i].ret != TTMON_PROG_UPROBES);
	ttmon_probes_detach(&p);
	session = true;
	assert_int_equal(ttmon_probes_attach(bpf(), 3, &info, &plain, &p), 0);
	for (size_t i = 0; i < ARRAY_SIZE(want); i++)
		assert_int_equal(attached[TTMON_PROG_RETURN][i] + attached[TTMON_PROG_COPY_RET][i], 0);
	ttmon_probes_detach(&p);
	session = false;
	nothing_left();
}

static void a_gap_is_never_negative(void **state)
{
	(void)state;
	assert_int_equal(ttmon_probes_gap_us(1000000, 1112000, false), 112);
	assert_int_equal(ttmon_probes_gap_us(1000000, 1112000, true), 0);
	/* A file that was probed before a process mapped it. */
	assert_int_equal(ttmon_probes_gap_us(1112000, 1000000, false), 0);
	assert_int_equal(ttmon_probes_gap_us(0, 1000000, false), -1);
	assert_int_equal(ttmon_probes_gap_us(1000000, 0, false), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_function_has_its_program, fresh),
		cmocka_unit_test_setup(ends_come_first, fresh),
		cmocka_unit_test_setup(families_and_spares_in_any_order, fresh),
		cmocka_unit_test_setup(held_back_from_the_start, fresh),
		cmocka_unit_test_setup(entries_go_before_returns, fresh),
		cmocka_unit_test_setup(refused_function_stays_out, fresh),
		cmocka_unit_test_setup(placed_behind_the_entry, fresh),
		cmocka_unit_test_setup(nop5_is_refused, fresh),
		cmocka_unit_test_setup(legacy_links_stay, fresh),
		cmocka_unit_test_setup(options_choose_programs, fresh),
		cmocka_unit_test_setup(sessions_have_no_return_links, fresh),
		cmocka_unit_test(a_gap_is_never_negative),
	};

	return cmocka_run_group_tests_name("probes", tests, NULL, NULL);
}
