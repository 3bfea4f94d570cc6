// SPDX-License-Identifier: GPL-2.0-only
/*
 * cost.c: the rates and prices of the cost model, and where each of them comes from: an option, a
 * measurement, the pins in the databases, or the default.
 *
 * A measurement uses the CUDA runtime of this machine if it can be loaded and finds a device. Without
 * one, the steps of a transfer are imitated on the host: a copy in pieces through a staging buffer for
 * pageable memory, a copy straight from cold pages for pinned memory, mlock for pinning. Such figures
 * show that the tool works. They say nothing about a GPU, and the output says so.
 */
#include <dlfcn.h>
#include <sys/mman.h>
#include <time.h>

#include "lib/pin/groups.h"
#include "tools/advise/advise.h"

#define MEASURE_BYTES (64u << 20)
#define MEASURE_TIMES 5
#define STAGING_BYTES (4u << 20)
/* Number of one-page pins from which the cost of one call is measured. */
#define MEASURE_CALLS 64

static const char tells_nothing[] =
	"Measured without a GPU: these are rates of memory copies and mlock, not of transfers.";

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* ---- from the pins in the databases ---- */

static void from_databases(struct ttmon_run *const *runs, size_t n, struct ttmon_advise_cost *c)
{
	char size[TTMON_FMT_LEN], took[TTMON_FMT_LEN], count[TTMON_FMT_LEN], all[TTMON_FMT_LEN];
	struct ttmon_cost_seen seen = { 0 };
	struct ttmon_cost_bin pins;
	unsigned int what;

	for (size_t i = 0; i < n; i++)
		ttmon_groups_see(runs[i], &seen);
	what = ttmon_cost_measured(&seen, &c->cost);
	pins = ttmon_cost_middle(&seen);
	if (what & TTMON_COST_UNREAL)
		snprintf(c->from[TTMON_ADVISE_PINNING], sizeof(c->from[0]),
			 "default: %.0f GB/s (recorded) is no pinning", (double)pins.bytes / (double)pins.ns);
	if (what & TTMON_COST_RATE)
		snprintf(c->from[TTMON_ADVISE_PINNING], sizeof(c->from[0]), "databases: %s of %s pins, %s in %s",
			 ttmon_fmt_count(count, sizeof(count), pins.n), ttmon_fmt_count(all, sizeof(all), seen.all.n),
			 ttmon_fmt_bytes(size, sizeof(size), pins.bytes), ttmon_fmt_ns(took, sizeof(took), pins.ns));
	if (what & TTMON_COST_PINS)
		snprintf(c->from[TTMON_ADVISE_PIN_CALL], sizeof(c->from[0]), "databases: %s pins of 64 KiB at most",
			 ttmon_fmt_count(count, sizeof(count), ttmon_cost_calls(seen.small)));
	if (what & TTMON_COST_UNPINS)
		snprintf(c->from[TTMON_ADVISE_UNPIN_CALL], sizeof(c->from[0]), "databases: %s of 64 KiB at most",
			 ttmon_fmt_count(count, sizeof(count), ttmon_cost_calls(seen.unpins)));
}

/* ---- measured ---- */

static uint64_t rate_of(uint64_t best_ns)
{
	return MEASURE_BYTES * NSEC_PER_SEC / MAX(best_ns, 1u);
}

/* Newly mapped memory, each page written once. Returns MAP_FAILED on failure. */
static char *fresh(void)
{
	char *p = mmap(NULL, MEASURE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p != MAP_FAILED)
		memset(p, 1, MEASURE_BYTES);
	return p;
}

struct cuda {
	void *lib;
	int (*count)(int *n);
	int (*device_alloc)(void **p, size_t size);
	int (*device_free)(void *p);
	int (*host_alloc)(void **p, size_t size, unsigned int flags);
	int (*host_free)(void *p);
	int (*copy)(void *to, const void *from, size_t size, int kind);
};

/*
 * Looks up a function of an object. ISO C has no conversion from a data pointer to a function pointer.
 */
static void symbol(void *lib, const char *name, void *to)
{
	void *at = dlsym(lib, name);

	memcpy(to, &at, sizeof(at));
}

static bool cuda_open(struct cuda *c)
{
	static const char *const names[] = { "libcudart.so.13", "libcudart.so.12", "libcudart.so" };
	int n = 0;

	*c = (struct cuda){ 0 };
	for (size_t i = 0; i < ARRAY_SIZE(names) && !c->lib; i++)
		c->lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!c->lib)
		return false;
	symbol(c->lib, "cudaGetDeviceCount", &c->count);
	symbol(c->lib, "cudaMalloc", &c->device_alloc);
	symbol(c->lib, "cudaFree", &c->device_free);
	symbol(c->lib, "cudaHostAlloc", &c->host_alloc);
	symbol(c->lib, "cudaFreeHost", &c->host_free);
	symbol(c->lib, "cudaMemcpy", &c->copy);
	return c->count && c->device_alloc && c->device_free && c->host_alloc && c->host_free && c->copy &&
	       !c->count(&n) && n > 0;
}

/*
 * Returns the shortest time of several copies in ns, or 0 on failure. The first copy is not counted:
 * it includes what the runtime sets up on first use.
 */
static uint64_t time_copies(const struct cuda *c, void *device, const void *host)
{
	uint64_t best = UINT64_MAX;

	for (unsigned int i = 0; i <= MEASURE_TIMES; i++) {
		uint64_t from = now_ns();

		if (c->copy(device, host, MEASURE_BYTES, 1)) /* cudaMemcpyHostToDevice */
			return 0;
		if (i)
			best = MIN(best, now_ns() - from);
	}
	return best;
}

static int by_ns(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return *a < *b ? -1 : *a > *b;
}

/*
 * Measures the median time of pinning and of unpinning one page. Nearly all of it is the cost of the
 * call itself.
 */
static void time_calls(const struct cuda *c, struct ttmon_cost *ret)
{
	uint64_t pins[MEASURE_CALLS], unpins[MEASURE_CALLS];
	unsigned int n = 0;

	for (void *p; n < MEASURE_CALLS; n++) {
		uint64_t from = now_ns();

		if (c->host_alloc(&p, 4096, 0))
			break;
		pins[n] = now_ns() - from;
		from = now_ns();
		c->host_free(p);
		unpins[n] = now_ns() - from;
	}
	if (!n)
		return;
	qsort(pins, n, sizeof(*pins), by_ns);
	qsort(unpins, n, sizeof(*unpins), by_ns);
	ret->pin_call_ns = pins[n / 2];
	ret->unpin_call_ns = unpins[n / 2];
}

static bool cuda_rates(const struct cuda *c, struct ttmon_cost *ret)
{
	void *device = NULL, *pinned = NULL;
	char *pageable = fresh();
	uint64_t pin_ns, slow = 0, fast = 0;

	if (pageable == MAP_FAILED)
		return false;
	if (!c->device_alloc(&device, MEASURE_BYTES)) {
		slow = time_copies(c, device, pageable);
		pin_ns = now_ns();
		if (!c->host_alloc(&pinned, MEASURE_BYTES, 0)) {
			pin_ns = now_ns() - pin_ns;
			fast = time_copies(c, device, pinned);
			c->host_free(pinned);
		}
		c->device_free(device);
	}
	munmap(pageable, MEASURE_BYTES);
	if (!slow || !fast)
		return false;
	ret->pageable_bps = rate_of(slow);
	ret->pinned_bps = rate_of(fast);
	ret->pinning_bps = rate_of(pin_ns);
	time_calls(c, ret);
	return true;
}

static void staged_copy(char *to, char *staging, const char *from)
{
	for (size_t at = 0; at < MEASURE_BYTES; at += STAGING_BYTES) {
		memcpy(staging, from + at, STAGING_BYTES);
		/* The staging buffer is what a device would read: the compiler must not skip the copy into it. */
		__asm__ volatile("" ::: "memory");
		memcpy(to + at, staging, STAGING_BYTES);
	}
}

/* Leaves a rate that could not be measured as it was. */
static void standin_rates(struct ttmon_cost *ret)
{
	char *from = fresh(), *to = fresh(), *staging = malloc(STAGING_BYTES), *fresh_pages;
	uint64_t slow = UINT64_MAX, fast = UINT64_MAX, start;

	for (unsigned int i = 0; i < MEASURE_TIMES && from != MAP_FAILED && to != MAP_FAILED && staging; i++) {
		start = now_ns();
		staged_copy(to, staging, from);
		slow = MIN(slow, now_ns() - start);
		start = now_ns();
		memcpy(to, from, MEASURE_BYTES);
		__asm__ volatile("" ::: "memory");
		fast = MIN(fast, now_ns() - start);
	}
	if (slow != UINT64_MAX) {
		ret->pageable_bps = rate_of(slow);
		ret->pinned_bps = rate_of(fast);
	}
	free(staging);
	if (from != MAP_FAILED)
		munmap(from, MEASURE_BYTES);
	if (to != MAP_FAILED)
		munmap(to, MEASURE_BYTES);
	fresh_pages = mmap(NULL, MEASURE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fresh_pages == MAP_FAILED)
		return;
	start = now_ns();
	if (!mlock(fresh_pages, MEASURE_BYTES))
		ret->pinning_bps = rate_of(now_ns() - start);
	munmap(fresh_pages, MEASURE_BYTES);
}

static void measure(struct ttmon_advise_cost *c)
{
	struct ttmon_cost before = c->cost;
	uint64_t *rates[] = { &c->cost.pageable_bps, &c->cost.pinned_bps, &c->cost.pinning_bps, &c->cost.pin_call_ns,
			      &c->cost.unpin_call_ns };
	const uint64_t was[] = { before.pageable_bps, before.pinned_bps, before.pinning_bps, before.pin_call_ns,
				 before.unpin_call_ns };
	static const char *const stood_in[] = { "two memory copies", "a memory copy", "mlock", "", "" };
	static const char *const cuda_fn[] = { "cudaMemcpy", "cudaMemcpy", "cudaHostAlloc", "cudaHostAlloc",
					       "cudaFreeHost" };
	struct cuda cuda;
	bool real = cuda_open(&cuda) && cuda_rates(&cuda, &c->cost);

	if (!real) {
		standin_rates(&c->cost);
		c->warning = tells_nothing;
	}
	for (unsigned int i = 0; i < TTMON_ADVISE_RATES; i++)
		if (*rates[i] != was[i])
			snprintf(c->from[i], sizeof(c->from[i]),
				 !real			      ? "measured: %s, no GPU"
				 : i >= TTMON_ADVISE_PIN_CALL ? "measured: %s of a page"
							      : "measured: %s of 64 MiB",
				 real ? cuda_fn[i] : stood_in[i]);
	/* The library stays loaded: unloading it would remove the code that its threads run. */
}

/* ---- put together ---- */

void ttmon_advise_get_cost(const struct ttmon_advise_opts *o, struct ttmon_run *const *runs, size_t n,
			   struct ttmon_advise_cost *ret)
{
	static const char *const names[] = { "--pageable-gbps", "--pinned-gbps", "--pinning-gbps", "--pin-call-us",
					     "--unpin-call-us" };
	const uint64_t given[] = { o->cost.pageable_bps, o->cost.pinned_bps, o->cost.pinning_bps, o->cost.pin_call_ns,
				   o->cost.unpin_call_ns };
	const bool is_given[] = { given[0] != 0, given[1] != 0, given[2] != 0, o->has_pin_call, o->has_unpin_call };
	struct ttmon_advise_cost c = { .cost = TTMON_COST_DEFAULT };
	uint64_t *rates[] = { &c.cost.pageable_bps, &c.cost.pinned_bps, &c.cost.pinning_bps, &c.cost.pin_call_ns,
			      &c.cost.unpin_call_ns };

	for (unsigned int i = 0; i < TTMON_ADVISE_RATES; i++)
		snprintf(c.from[i], sizeof(c.from[i]), "default");
	from_databases(runs, n, &c);
	if (o->measure)
		measure(&c);
	for (unsigned int i = 0; i < TTMON_ADVISE_RATES; i++) {
		if (!is_given[i])
			continue;
		*rates[i] = given[i];
		snprintf(c.from[i], sizeof(c.from[i]), "%s", names[i]);
	}
	if (c.cost.pinned_bps <= c.cost.pageable_bps && !c.warning)
		c.warning = "Pinned memory is no faster here: pinning can gain nothing.";
	*ret = c;
}
