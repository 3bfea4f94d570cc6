// SPDX-License-Identifier: GPL-2.0-only
/* sums.c: sums up runs of programs. No clock, no terminal. */
#include "tools/programs/programs.h"

#include "lib/base/grow.h"
#include "lib/base/hash.h"

/* The most times kept of one row; beyond it the oldest are dropped. */
#define TIMES_MAX 1048576u

static void add_time(struct ttmon_programs_times *t, uint64_t ns)
{
	if (t->n < TIMES_MAX && !TTMON_GROW(t->v, t->cap, t->n + 1, 16))
		t->v[t->n++] = ns;
	else if (t->n)
		t->v[ns % t->n] = ns;
}

static bool is_of(const struct ttmon_programs_row *row, const struct ttmon_program_run *run)
{
	if (row->pid != run->pid || row->device != run->device)
		return false;
	if (!row->kernels || !run->kernels)
		return !row->kernels && !run->kernels && row->program == run->program;
	return !strcmp(row->kernels, run->kernels);
}

static struct ttmon_programs_row *row_of(struct ttmon_programs *p, const struct ttmon_program_run *run)
{
	uint64_t key = ttmon_mix64((uint64_t)run->pid << 32 | run->device), at;
	struct ttmon_programs_row *row;

	key ^= run->kernels ? ttmon_fnv(TTMON_FNV_BASIS, run->kernels, strlen(run->kernels)) : run->program;
	while ((at = ttmon_hmap_get(&p->rows, key)) != TTMON_HMAP_NONE) {
		if (is_of(&p->v[at], run))
			return &p->v[at];
		key++;
	}
	if (TTMON_GROW(p->v, p->cap, p->n + 1, 16))
		return NULL;
	row = &p->v[p->n];
	*row = (struct ttmon_programs_row){ .program = run->program, .pid = run->pid, .device = run->device };
	row->kernels = run->kernels ? strdup(run->kernels) : NULL;
	if ((run->kernels && !row->kernels) || ttmon_hmap_put(&p->rows, key, p->n)) {
		free(row->kernels);
		return NULL;
	}
	p->n++;
	return row;
}

/*
 * Returns where the end of the previous run on the same chip is stored; NULL: out of memory.
 * *is_first: there was no previous run.
 */
static uint64_t *end_of(struct ttmon_programs *p, const struct ttmon_program_run *run, bool *is_first)
{
	uint64_t key = run->chip ? run->chip : (uint64_t)run->pid << 32 | run->device | 1ull << 31;
	uint64_t at = ttmon_hmap_get(&p->chips, key);

	*is_first = at == TTMON_HMAP_NONE;
	if (!*is_first)
		return &p->ends[at];
	if (TTMON_GROW(p->ends, p->cap_ends, p->nr_ends + 1, 16) || ttmon_hmap_put(&p->chips, key, p->nr_ends))
		return NULL;
	return &p->ends[p->nr_ends++];
}

static void add_gap(struct ttmon_programs *p, struct ttmon_programs_row *row, const struct ttmon_program_run *run)
{
	bool is_first;
	uint64_t *end = end_of(p, run, &is_first);

	if (!end)
		return;
	/* The gap between two runs that overlap is 0. */
	if (!is_first)
		add_time(&row->gaps, run->start_ns > *end ? run->start_ns - *end : 0);
	*end = is_first ? run->end_ns : MAX(*end, run->end_ns);
}

void ttmon_programs_add(struct ttmon_programs *p, const struct ttmon_program_run *run)
{
	struct ttmon_programs_row *row = row_of(p, run);
	uint64_t error = run->error_ns;

	if (!row) {
		p->left_out++;
		return;
	}
	row->runs++;
	row->many_ids |= row->program != run->program;
	row->chip = run->chip ? run->chip : row->chip;
	if (run->clock == TTMON_PROGRAM_CLOCK_NONE || run->end_ns < run->start_ns)
		return;
	row->timed++;
	row->busy_ns += run->end_ns - run->start_ns;
	/* Each of the two ends of a run has this error. */
	if (error > UINT64_MAX / 4 || row->error_ns > UINT64_MAX / 2)
		row->error_ns = TTMON_PROGRAMS_UNKNOWN;
	else
		row->error_ns += 2 * error;
	add_time(&row->lengths, run->end_ns - run->start_ns);
	add_gap(p, row, run);
	p->from_ns = p->from_ns ? MIN(p->from_ns, run->start_ns) : run->start_ns;
	p->to_ns = MAX(p->to_ns, run->end_ns);
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int by_busy(const void *a, const void *b)
{
	const struct ttmon_programs_row *x = a, *y = b;

	if (x->busy_ns != y->busy_ns)
		return x->busy_ns > y->busy_ns ? -1 : 1;
	if (x->runs != y->runs)
		return x->runs > y->runs ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->device < y->device ? -1 : x->device > y->device;
}

void ttmon_programs_sort(struct ttmon_programs *p)
{
	if (p->n)
		qsort(p->v, p->n, sizeof(*p->v), by_busy);
	/* Sorting moved the rows, so the index is not valid any more. */
	ttmon_hmap_fini(&p->rows);
	for (size_t i = 0; i < p->n; i++) {
		struct ttmon_programs_row *row = &p->v[i];

		if (row->lengths.n)
			qsort(row->lengths.v, row->lengths.n, sizeof(uint64_t), by_value);
		if (row->gaps.n)
			qsort(row->gaps.v, row->gaps.n, sizeof(uint64_t), by_value);
	}
}

uint64_t ttmon_programs_rank(const struct ttmon_programs_times *t, unsigned int percent)
{
	size_t at = (t->n * percent + 99) / 100;

	return t->n ? t->v[at ? at - 1 : 0] : TTMON_PROGRAMS_UNKNOWN;
}

void ttmon_programs_fini(struct ttmon_programs *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->v[i].kernels);
		free(p->v[i].lengths.v);
		free(p->v[i].gaps.v);
	}
	free(p->v);
	ttmon_hmap_fini(&p->rows);
	ttmon_hmap_fini(&p->chips);
	free(p->ends);
	*p = (struct ttmon_programs){ 0 };
}
