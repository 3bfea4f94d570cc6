// SPDX-License-Identifier: GPL-2.0-only
/* grid.c: a launch: blocks on SMs, which are threads of the host. */
#include "exec.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define RESIDENT 2     /* blocks of an SM at a time; all of them for grids whose blocks may wait for one another */
#define SLICE	 20000 /* instructions of a warp before the next one */

static struct gpu_block *block_new(struct gpu_sm *sm, uint32_t nr)
{
	struct gpu_launch *l = sm->l;
	uint32_t threads = l->block[0] * l->block[1] * l->block[2], warps = (threads + GPU_LANES - 1) / GPU_LANES;
	struct gpu_block *b = calloc(1, sizeof(*b) + warps * sizeof(*b->warp));

	if (!b)
		abort();
	b->sm = sm;
	b->cta[0] = nr % l->grid[0];
	b->cta[1] = nr / l->grid[0] % l->grid[1];
	b->cta[2] = nr / l->grid[0] / l->grid[1];
	b->threads = b->alive = threads;
	b->nr_warps = warps;
	b->dyn = (l->func->static_shared + 15) / 16 * 16;
	b->shared_size = b->dyn + l->dyn_shared;
	b->shared = aligned_alloc(256, (b->shared_size + 511) / 256 * 256);
	b->local = mmap(NULL, (size_t)warps * GPU_LANES * GPU_STACK, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (!b->shared || b->local == MAP_FAILED)
		abort();
	memset(b->shared, 0xa5, b->shared_size); /* shared memory has arbitrary contents at the start */
	for (uint32_t i = 0; i < warps; i++) {
		struct gpu_warp *w = &b->warp[i];
		uint32_t n = threads - i * GPU_LANES;
		struct gpu_frame *fr;

		w->b = b;
		w->index = i;
		w->alive = n >= GPU_LANES ? UINT32_MAX : (1u << n) - 1;
		fr = gpu_frame_new(sm, l->func, NULL, w->alive);
		for (unsigned int j = 0; j < GPU_LANES; j++) {
			w->lane[j].state = w->alive >> j & 1 ? LANE_RUNS : LANE_DONE;
			w->lane[j].fr = w->alive >> j & 1 ? fr : NULL;
		}
	}
	return b;
}

static void frames_free(struct gpu_frame *fr)
{
	for (struct gpu_frame *next; fr; fr = next) {
		next = fr->next_free;
		free(fr->regs);
		free(fr->pmem);
		free(fr);
	}
}

static void block_free(struct gpu_block *b)
{
	for (uint32_t i = 0; i < b->nr_warps; i++) /* lanes of a launch that failed */
		for (unsigned int j = 0; j < GPU_LANES; j++)
			for (struct gpu_frame *fr = b->warp[i].lane[j].fr, *up; fr; fr = up) {
				up = fr->up;
				gpu_frame_leave(b->sm, fr, 1u << j);
			}
	munmap(b->local, (size_t)b->nr_warps * GPU_LANES * GPU_STACK);
	free(b->shared);
	free(b);
}

/* bar.red: combines the values of all threads. */
static uint64_t barrier_value(const struct gpu_insn *in, uint32_t yes, uint32_t all)
{
	if (memchr(in->mods, M_popc, in->nmods))
		return yes;
	return memchr(in->mods, M_and, in->nmods) ? yes == all : yes != 0;
}

/* Releases barriers that all threads have reached. Threads that have ended are not waited for. */
static bool barriers(struct gpu_block *b)
{
	bool any = false;

	for (unsigned int id = 0; id < 16; id++) {
		struct gpu_barrier *bar = &b->bar[id];
		uint32_t want = bar->expected && bar->expected < b->alive ? bar->expected : b->alive, yes = 0;

		if (!bar->waiting || bar->waiting + bar->arrived < want)
			continue;
		for (unsigned int pass = 0; pass < 2; pass++)
			for (uint32_t i = 0; i < b->nr_warps * GPU_LANES; i++) {
				struct gpu_lane *l = &b->warp[i / GPU_LANES].lane[i % GPU_LANES];
				const struct gpu_insn *in;

				if (l->state != LANE_AT_BARRIER || l->barrier != id)
					continue;
				yes += pass == 0 && l->value;
				if (pass == 0)
					continue;
				in = &l->fr->f->code[l->pc];
				if (memchr(in->mods, M_red, in->nmods))
					gpu_write(l->fr, i % GPU_LANES, &in->ops[0],
						  barrier_value(in, yes, bar->waiting));
				l->state = LANE_RUNS;
				l->pc++;
			}
		*bar = (struct gpu_barrier){ 0 };
		any = true;
	}
	return any;
}

static bool run_block(struct gpu_block *b)
{
	bool ran = false;

	for (uint32_t i = 0; i < b->nr_warps && !gpu_faulted(b->sm); i++) {
		if (b->warp[i].alive)
			ran |= gpu_run_warp(&b->warp[i], SLICE);
		b->sm->yield = false;
	}
	return barriers(b) || ran;
}

static void *sm_main(void *arg)
{
	struct gpu_sm *sm = arg;
	struct gpu_grid *g = sm->g;
	struct gpu_block *list = NULL;
	uint32_t have = 0;

	sm->free = calloc(sm->l->func->mod->nr_funcs, sizeof(*sm->free));
	if (!sm->free)
		abort();
	for (;;) {
		bool ran = false;

		while (have < g->resident && !gpu_faulted(sm)) {
			uint32_t nr = atomic_fetch_add(&g->next, 1);
			struct gpu_block *b;

			if (nr >= g->blocks)
				break;
			b = block_new(sm, nr);
			b->next = list;
			list = b;
			have++;
		}
		if (!list)
			break;
		for (struct gpu_block **at = &list; *at;) {
			struct gpu_block *b = *at;

			ran |= run_block(b);
			if (!b->alive || gpu_faulted(sm)) {
				*at = b->next;
				block_free(b);
				have--;
			} else {
				at = &b->next;
			}
		}
		if (!ran && list)
			gpu_fault(sm, NULL, GPU_E_TIMEOUT, "%s: all threads of a block wait for each other",
				  sm->l->func->name);
	}
	for (uint32_t i = 0; i < sm->l->func->mod->nr_funcs; i++)
		frames_free(sm->free[i]);
	free(sm->free);
	atomic_fetch_add(&g->lane_insns, sm->lane_insns);
	return NULL;
}

void gpu_run(struct gpu_launch *l)
{
	struct gpu_grid g = { .l = l, .shared_base = gpu_shared_base(), .local_base = gpu_local_base() };
	uint32_t blocks = l->grid[0] * l->grid[1] * l->grid[2], sms = l->sms < blocks ? l->sms : blocks;
	struct gpu_sm *sm = calloc(sms + 1, sizeof(*sm));
	pthread_t *threads = calloc(sms + 1, sizeof(*threads));

	if (!sm || !threads)
		abort();
	g.blocks = blocks;
	g.resident = l->cooperative ? (blocks + sms - 1) / sms : RESIDENT;
	for (uint32_t i = 0; i < sms; i++) {
		sm[i] = (struct gpu_sm){ .g = &g, .l = l, .id = i };
		if (i && pthread_create(&threads[i], NULL, sm_main, &sm[i]))
			abort();
	}
	sm_main(&sm[0]);
	for (uint32_t i = 1; i < sms; i++)
		pthread_join(threads[i], NULL);
	l->result = (int)atomic_load(&g.fault);
	l->lane_insns = atomic_load(&g.lane_insns);
	free(sm);
	free(threads);
}
