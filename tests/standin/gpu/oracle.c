// SPDX-License-Identifier: GPL-2.0-only
/*
 * oracle.c: tests the recorders of memtrace/ptx/recorder.ptx. It rewrites the given PTX, runs the
 * copies of its kernels in the interpreter with rings laid out as in <ttmon/mtchan.h>, and compares
 * every record with the accesses that the interpreter itself saw: site, launch, block, warp, lanes,
 * each address, the form. It does the same with the counters of the aggregate mode, which it computes
 * by the text of the rules. The results of the kernels must be the same as without a recorder.
 */
#include "oracle.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static void fail(struct oracle *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void fail(struct oracle *o, const char *fmt, ...)
{
	va_list ap;

	if (o->failures++ > 5)
		return;
	printf("%s: ", o->what);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

void oracle_push(struct seen_list *l, const struct seen *s)
{
	if (l->nr == l->cap) {
		l->cap = l->cap ? 2 * l->cap : 4096;
		l->all = realloc(l->all, l->cap * sizeof(*l->all));
		if (!l->all)
			abort();
	}
	l->all[l->nr++] = *s;
}

/* A generic access has three sites if its counters are kept by space. */
static bool is_triple(const struct oracle *o, uint32_t site)
{
	const struct ttmon_mt_site *s = &o->rw.sites[site];

	return o->aggregate && site + 2 < o->rw.nr_sites && s[0].space == TTMON_MT_GLOBAL &&
	       s[1].space == TTMON_MT_SHARED && s[2].space == TTMON_MT_LOCAL && s[0].text_line == s[2].text_line &&
	       !strcmp(s[0].opcode, s[2].opcode);
}

/*
 * Finds the site of each instruction of a copy: the text of a function and its sites are in the same
 * order.
 */
static void map_sites(struct oracle *o)
{
	for (uint32_t i = 0; i < o->mod->nr_funcs; i++) {
		const struct gpu_func *f = o->mod->funcs[i];
		uint32_t site = 0;

		if (f->is_rec || strncmp(f->name, TTMON_PTX_PREFIX, sizeof(TTMON_PTX_PREFIX) - 1))
			continue;
		o->site_of[i] = calloc(f->nr_code + 1, sizeof(uint32_t));
		while (site < o->rw.nr_sites &&
		       strcmp(o->rw.sites[site].kernel, f->name + sizeof(TTMON_PTX_PREFIX) - 1))
			site++;
		for (uint32_t j = 0; j < f->nr_code; j++) {
			const struct gpu_insn *in = &f->code[j];
			bool copy = in->op == OP_cp && in->nops >= 3;

			if (!copy && in->op != OP_ld && in->op != OP_ldu && in->op != OP_st && in->op != OP_atom &&
			    in->op != OP_red && in->op != OP_ldmatrix && in->op != OP_stmatrix && in->op != OP_prefetch)
				continue;
			if (in->space == SP_PARAM || in->space == SP_CONST)
				continue;
			if (site >= o->rw.nr_sites || strcmp(o->rw.sites[site].opcode, in->text))
				fail(o, "%s: %s has no site of its own", f->name, in->text);
			o->site_of[i][j] = site;
			site += copy ? 2 : is_triple(o, site) ? 3 : 1;
		}
	}
}

static void expect_one(struct oracle *o, struct seen *s, uint32_t mask, const uint64_t *addr, uint64_t base)
{
	if (!mask)
		return;
	s->mask = mask;
	memset(s->addr, 0, sizeof(s->addr));
	for (unsigned int i = 0; i < GPU_LANES; i++)
		if (mask >> i & 1)
			s->addr[i] = addr[i] - base;
	oracle_push(&o->want, s);
}

static void on_access(void *ctx, const struct gpu_access *a)
{
	struct oracle *o = ctx;
	uint32_t shared = 0, local = 0, block;
	const struct ttmon_mt_site *site;
	uint32_t of_global;
	struct seen s;

	block = (a->cta[2] * o->grid[1] + a->cta[1]) * o->grid[0] + a->cta[0];
	if (o->sample > 1 && block % o->sample)
		return;
	if (!o->site_of[a->in->func->index]) /* called by its address: the original, which records nothing */
		return;
	pthread_mutex_lock(&o->lock);
	memset(&s, 0, sizeof(s));
	s.site = o->site_of[a->in->func->index][a->in - a->in->func->code] + a->operand;
	of_global = s.site;
	s.launch = o->launches;
	s.warp = a->warp;
	memcpy(s.cta, a->cta, sizeof(s.cta));
	site = &o->rw.sites[s.site];
	if (site->space != TTMON_MT_GENERIC && !is_triple(o, s.site)) {
		expect_one(o, &s, a->mask, a->addr, 0);
	} else {
		for (unsigned int i = 0; i < GPU_LANES; i++) {
			shared |= (uint32_t)(a->mask >> i & 1 && a->addr[i] - gpu_shared_base() < GPU_WINDOW) << i;
			local |= (uint32_t)(a->mask >> i & 1 && a->addr[i] - gpu_local_base() < GPU_WINDOW) << i;
		}
		s.space = TTMON_MT_GLOBAL;
		expect_one(o, &s, a->mask & ~shared & ~local, a->addr, 0);
		s.space = TTMON_MT_SHARED;
		s.site += is_triple(o, s.site);
		expect_one(o, &s, shared, a->addr, gpu_shared_base());
		s.space = TTMON_MT_LOCAL;
		s.site = of_global + 2 * is_triple(o, of_global);
		expect_one(o, &s, local, a->addr, gpu_local_base());
	}
	pthread_mutex_unlock(&o->lock);
}

/*
 * The consumer's side of the protocol: C1 to C3.
 * ------------------------------------------------------------------------
 */

static uint8_t *unit(struct oracle *o, uint32_t ring, uint64_t pos)
{
	return o->rings + ((uint64_t)ring * o->units + pos % o->units) * TTMON_MTC_UNIT;
}

/* Returns true if the addresses of the lanes have one distance that fits into 32 bits. */
static bool is_affine(const struct seen *s, int64_t *stride)
{
	int first = __builtin_ctz(s->mask), second;
	uint32_t rest = s->mask & (s->mask - 1);
	int64_t d;

	*stride = 0;
	if (!rest)
		return true;
	second = __builtin_ctz(rest);
	d = (int64_t)(s->addr[second] - s->addr[first]);
	if (d % (second - first) || d / (second - first) != (int32_t)(d / (second - first)))
		return false;
	*stride = d / (second - first);
	for (int i = 0; i < GPU_LANES; i++)
		if (s->mask >> i & 1 && s->addr[i] != s->addr[first] + (uint64_t)(*stride * (i - first)))
			return false;
	return true;
}

static void take(struct oracle *o, uint32_t ring, const struct ttmon_mtc_rec *rec, const uint64_t *list)
{
	uint32_t kind = TTMON_MTC_KIND(rec->tag), nth = 0;
	int64_t stride;
	struct seen s;

	if (TTMON_MTC_LAP(rec->tag) != (o->tail[ring] / o->units & 31))
		fail(o, "a record with lap %u at %llu", TTMON_MTC_LAP(rec->tag), (unsigned long long)o->tail[ring]);
	if (kind == TTMON_MTC_LOST) {
		o->lost += rec->base;
		return;
	}
	memset(&s, 0, sizeof(s));
	s.site = TTMON_MTC_SITE(rec->tag) - FIRST_SITE;
	s.space = (uint8_t)TTMON_MTC_SPACE(rec->tag);
	s.launch = rec->launch_warp >> 6;
	s.warp = rec->launch_warp & 63;
	s.cta[0] = rec->cta_x;
	s.cta[1] = rec->cta_y;
	s.cta[2] = rec->cta_z;
	s.mask = rec->mask;
	for (int i = 0; i < GPU_LANES; i++)
		if (rec->mask >> i & 1)
			s.addr[i] =
				kind == TTMON_MTC_LIST
					? list[nth++]
					: rec->base + (uint64_t)((int64_t)rec->stride * (i - __builtin_ctz(rec->mask)));
	if (!rec->mask || (kind == TTMON_MTC_AFFINE) != is_affine(&s, &stride) ||
	    (kind == TTMON_MTC_LIST && s.addr[__builtin_ctz(rec->mask)] != rec->base))
		fail(o, "site %u: kind %u, mask 0x%x", s.site, kind, rec->mask);
	oracle_push(&o->have, &s);
}

/* Reads all available records. Returns false if there were none. */
static bool consume(struct oracle *o)
{
	struct ttmon_mtc_tail *tails = o->tails;
	bool any = false;

	for (uint32_t r = 0; r < o->nr_rings; r++)
		for (;;) {
			struct ttmon_mtc_rec rec;
			uint64_t list[GPU_LANES + 4];
			uint32_t *tag = (uint32_t *)(void *)(unit(o, r, o->tail[r]) +
							     offsetof(struct ttmon_mtc_rec, tag)),
				 n = 1;

			if (!__atomic_load_n(tag, __ATOMIC_ACQUIRE))
				break;
			memcpy(&rec, unit(o, r, o->tail[r]), sizeof(rec));
			if (TTMON_MTC_KIND(rec.tag) == TTMON_MTC_LIST)
				n += ((uint32_t)__builtin_popcount(rec.mask) + 3) / 4;
			for (uint32_t i = 1; i < n; i++)
				memcpy(&list[4 * (i - 1)], unit(o, r, o->tail[r] + i), TTMON_MTC_UNIT);
			take(o, r, &rec, list);
			for (uint32_t i = 0; i < n; i++)
				memset(unit(o, r, o->tail[r] + i), 0, TTMON_MTC_UNIT);
			o->tail[r] += n;
			__atomic_store_n(&tails[r].tail, o->tail[r], __ATOMIC_RELEASE);
			any = true;
		}
	return any;
}

static void *consumer(void *arg)
{
	struct oracle *o = arg;

	while (!__atomic_load_n(&o->stop, __ATOMIC_ACQUIRE))
		if (!consume(o))
			nanosleep(&(struct timespec){ .tv_nsec = 50000 }, NULL);
	return NULL;
}

static int compare_seen(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct seen));
}

static void print_seen(const char *what, const struct oracle *o, const struct seen *s)
{
	printf("  %s: site %u %s space %u launch %u cta %u,%u,%u warp %u mask %08x first %llx\n", what, s->site,
	       s->site < o->rw.nr_sites ? o->rw.sites[s->site].opcode : "?", s->space, s->launch, s->cta[0], s->cta[1],
	       s->cta[2], s->warp, s->mask, (unsigned long long)(s->mask ? s->addr[__builtin_ctz(s->mask)] : 0));
}

/*
 * Checks that every record was an access. lossless: every access must have its record; else those
 * without one must be counted as lost.
 */
static void compare_records(struct oracle *o, const char *kernel)
{
	uint64_t missing = 0;
	size_t i = 0, j = 0;

	qsort(o->want.all, o->want.nr, sizeof(struct seen), compare_seen);
	qsort(o->have.all, o->have.nr, sizeof(struct seen), compare_seen);
	while (i < o->want.nr || j < o->have.nr) {
		int c = i == o->want.nr ? 1 : j == o->have.nr ? -1 : compare_seen(&o->want.all[i], &o->have.all[j]);

		if (c > 0) {
			fail(o, "%s: a record of what did not happen", kernel);
			if (o->failures < 5)
				print_seen("recorded", o, &o->have.all[j]);
		} else if (c < 0 && !missing++ && !o->lossy) {
			fail(o, "%s: an access without a record", kernel);
			print_seen("access", o, &o->want.all[i]);
		}
		i += c <= 0;
		j += c >= 0;
	}
	for (uint32_t r = 0; r < o->nr_rings; r++)
		o->lost += ((struct ttmon_mtc_ctl *)gpu_mem_host(o->ctl, 64))->ring[r].lost;
	if (missing != o->lost)
		fail(o, "%s: %llu accesses without a record, %llu counted as lost", kernel, (unsigned long long)missing,
		     (unsigned long long)o->lost);
	o->total += o->have.nr;
	o->total_lost += o->lost;
	for (uint32_t r = 0; r < o->nr_rings; r++)
		((struct ttmon_mtc_ctl *)gpu_mem_host(o->ctl, 64))->ring[r].lost = 0;
	o->want.nr = o->have.nr = 0;
	o->lost = 0;
}

/*
 * Launches
 * ------------------------------------------------------------------------------------------------
 */

static uint64_t mem_alloc(void *ctx, size_t n)
{
	return gpu_mem_alloc(n, ctx);
}

static void mem_free(void *ctx, uint64_t dev)
{
	(void)ctx;
	gpu_mem_free(dev, NULL);
}

static void mem_put(void *ctx, uint64_t dev, const void *host, size_t n)
{
	(void)ctx;
	memcpy(gpu_mem_host(dev, n), host, n);
}

static void mem_get(void *ctx, void *host, uint64_t dev, size_t n)
{
	(void)ctx;
	memcpy(host, gpu_mem_host(dev, n), n);
}

static uint64_t variable(void *ctx, const char *name)
{
	struct oracle *o = ctx;
	struct gpu_sym *s = gpu_find_var(o->mod, name);

	return s ? s->off : 0;
}

static int launch(void *ctx, const char *name, const uint32_t *grid, const uint32_t *block, uint32_t dyn, void **params,
		  unsigned int n)
{
	struct oracle *o = ctx;
	struct gpu_launch l = { .dyn_shared = dyn, .sms = o->sms };
	uint64_t launch_nr = o->launches;
	pthread_t thread;
	char copy[256];

	snprintf(copy, sizeof(copy), "%s%s", o->original ? "" : TTMON_PTX_PREFIX, name);
	l.func = gpu_find(o->mod, copy);
	if (!l.func)
		return gpu_find(o->mod, name) ? 1 : 500;
	memcpy(l.grid, grid, sizeof(l.grid));
	memcpy(l.block, block, sizeof(l.block));
	memcpy(o->grid, grid, sizeof(o->grid));
	l.params = calloc(1, l.func->param_bytes + 8u);
	for (unsigned int i = 0; i < n; i++)
		memcpy(l.params + l.func->params[i]->off, params[i], l.func->params[i]->size);
	if (!o->original) {
		memcpy(l.params + l.func->params[n]->off, &o->ctl, 8);
		memcpy(l.params + l.func->params[n + 1]->off, &launch_nr, 8);
		l.trace = on_access;
		l.trace_ctx = o;
	}
	o->stop = false;
	if (o->consumer && pthread_create(&thread, NULL, consumer, o))
		abort();
	gpu_run(&l);
	if (o->consumer) {
		__atomic_store_n(&o->stop, true, __ATOMIC_RELEASE);
		pthread_join(thread, NULL);
	}
	if (l.result)
		fail(o, "%s: %s", copy, l.why);
	free(l.params);
	consume(o);
	o->launches++;
	o->lane_insns += l.lane_insns;
	return l.result;
}

static void channel(struct oracle *o)
{
	size_t bytes = (size_t)o->nr_rings * (o->units * TTMON_MTC_UNIT + sizeof(struct ttmon_mtc_tail));
	struct ttmon_mtc_ctl *ctl;

	bytes = (bytes + 4095) / 4096 * 4096;
	o->rings = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (o->rings == MAP_FAILED || !gpu_mem_map(o->rings, bytes, MEM_REGISTERED, 0, true, o))
		abort();
	o->bytes = bytes;
	o->tails = o->rings + (size_t)o->nr_rings * o->units * TTMON_MTC_UNIT;
	o->ctl = gpu_mem_alloc(sizeof(*ctl) + o->nr_rings * sizeof(struct ttmon_mtc_ring), o);
	o->aggs = gpu_mem_alloc((FIRST_SITE + o->rw.nr_sites) * sizeof(struct ttmon_mtc_agg), o);
	o->touch = gpu_mem_alloc(TOUCH_SLOTS * 8, o);
	ctl = gpu_mem_host(o->ctl, sizeof(*ctl));
	*ctl = (struct ttmon_mtc_ctl){ .rings = (uintptr_t)o->rings,
				       .tails = (uintptr_t)o->tails,
				       .aggs = o->aggs,
				       .touch = o->touch,
				       .nr_rings = o->nr_rings,
				       .units = o->units,
				       .wait_ns = o->wait_ns,
				       .sample = o->sample,
				       .agg_sites = FIRST_SITE + (uint32_t)o->rw.nr_sites,
				       .touch_slots = TOUCH_SLOTS };
}

static void oracle_fini(struct oracle *o)
{
	for (uint32_t i = 0; i < o->mod->nr_funcs; i++)
		free(o->site_of[i]);
	free(o->site_of);
	gpu_mem_free_owner(o);
	gpu_mem_free((uintptr_t)o->rings, NULL);
	munmap(o->rings, o->bytes);
	gpu_module_free(o->mod);
	ttmon_ptx_fini(&o->rw);
	free(o->want.all);
	free(o->have.all);
}

/* Tests one way of recording with all kernels. Returns false if something was wrong. */
static bool prove(struct oracle *o, const char *text, size_t len)
{
	const struct kernel_io io = { o, mem_alloc, mem_free, mem_put, mem_get, launch, variable };
	const struct ttmon_ptx_opts opts = {
		.aggregate = o->aggregate, .spaces = 0xf, .first_site = FIRST_SITE, .instr_end = UINT32_MAX
	};
	unsigned int kernels = 0;
	char why[200] = "";

	pthread_mutex_init(&o->lock, NULL);
	if (ttmon_ptx_rewrite(text, len, &opts, &o->rw, why, sizeof(why))) {
		printf("%s: not rewritten: %s\n", o->what, why);
		return false;
	}
	o->mod = gpu_parse(o->rw.text, o->rw.len);
	if (o->mod->error) {
		printf("%s: the rewritten text: %s\n", o->what, o->mod->error);
		return false;
	}
	o->site_of = calloc(o->mod->nr_funcs + 1, sizeof(*o->site_of));
	map_sites(o);
	channel(o);
	for (size_t i = 0; i < nr_kernel_tests; i++) {
		const struct kernel_test *t = &kernel_tests[i];
		uint64_t plain = 0, sum = 0;
		int err;

		o->original = true;
		err = t->run(&io, t->name, &plain);
		o->original = false;
		if (err == 500)
			continue;
		err = t->run(&io, t->name, &sum);
		/* The variables of the module have been changed twice. */
		if (err || (sum != plain && strcmp(t->name, "nothing_given")))
			fail(o, "%s: error %d, sum %llx, without a recorder %llx", t->name, err,
			     (unsigned long long)sum, (unsigned long long)plain);
		if (o->aggregate)
			oracle_counters(o, t->name);
		else
			compare_records(o, t->name);
		kernels++;
	}
	printf("%s: %u kernels, %u launches, %llu %s, %llu lost: %s\n", o->what, kernels, o->launches,
	       (unsigned long long)o->total, o->aggregate ? "requests counted" : "records",
	       (unsigned long long)o->total_lost, o->failures ? "WRONG" : "right");
	oracle_fini(o);
	return !o->failures;
}

void oracle_fail(struct oracle *o, const char *text, const char *kernel, uint32_t site, uint64_t have, uint64_t want)
{
	fail(o, "%s: site %u (%s): %s %llu, but %llu by the rules", kernel, site,
	     site < o->rw.nr_sites ? o->rw.sites[site].opcode : "?", text, (unsigned long long)have,
	     (unsigned long long)want);
}

int main(int argc, char **argv)
{
	static const struct oracle ways[] = {
		{ .what = "stream", .units = 1 << 15, .nr_rings = 2, .sms = 2, .wait_ns = 1 },
		{ .what = "stream, 4 SMs on 2 small rings",
		  .units = 128,
		  .nr_rings = 2,
		  .sms = 4,
		  .wait_ns = 1u << 30,
		  .consumer = true },
		{ .what = "stream, nobody reads", .units = 128, .nr_rings = 3, .sms = 2, .wait_ns = 0, .lossy = true },
		{ .what = "stream, one block in three",
		  .units = 1 << 15,
		  .nr_rings = 2,
		  .sms = 2,
		  .wait_ns = 1,
		  .sample = 3 },
		{ .what = "aggregate", .units = 128, .nr_rings = 2, .sms = 3, .aggregate = true },
	};
	bool ok = true;

	if (argc < 2) {
		fprintf(stderr, "usage: oracle PTX...\n");
		return 2;
	}
	for (int i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "re");
		char *text = calloc(1, 1 << 22);
		size_t len = f && text ? fread(text, 1, (1 << 22) - 1, f) : 0;

		if (!len) {
			fprintf(stderr, "oracle: %s cannot be read\n", argv[i]);
			return 2;
		}
		fclose(f);
		printf("%s\n", argv[i]);
		for (size_t j = 0; j < sizeof(ways) / sizeof(*ways); j++) {
			struct oracle o = ways[j];

			ok &= prove(&o, text, len);
		}
		free(text);
	}
	return !ok;
}
