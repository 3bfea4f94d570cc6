// SPDX-License-Identifier: GPL-2.0-only
/*
 * real.c: finds CUDA's own functions behind the names that this library defines. If the program was
 * linked with the libraries, the next definition is used; otherwise a loaded library of that name,
 * however it was loaded: Python's packages open theirs in a way that RTLD_NEXT does not search.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>

#include "preload/pin.h"

struct search {
	const char *prefix;
	char path[4096];
};

static int matches(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;
	const char *base = strrchr(info->dlpi_name, '/');

	(void)size;
	base = base ? base + 1 : info->dlpi_name;
	if (strncmp(base, s->prefix, strlen(s->prefix)) || strlen(info->dlpi_name) >= sizeof(s->path))
		return 0;
	snprintf(s->path, sizeof(s->path), "%s", info->dlpi_name);
	return 1;
}

void *ttmon_pin_real(const char *name)
{
	struct search s = { .prefix = strncmp(name, "cuda", 4) ? "libcuda.so" : "libcudart" };
	void *fn = dlsym(RTLD_NEXT, name), *lib;

	if (fn || !dl_iterate_phdr(matches, &s))
		return fn;
	/*
	 * The library is loaded already, so this only adds a reference, which is kept because its functions
	 * are called until the end.
	 */
	lib = dlopen(s.path, RTLD_LAZY | RTLD_NOLOAD);
	return lib ? dlsym(lib, name) : NULL;
}

static void find(struct ttmon_pin_api *api, bool rt)
{
	struct ttmon_pin_api a = { 0 };

#define F(field, rt_name, drv_name, params) \
	a.field = (int(*) params)(uintptr_t)ttmon_pin_real(rt ? #rt_name : #drv_name);
	TTMON_PIN_CALLS(F)
#undef F
	if (rt) {
		a.free = (int (*)(void *))(uintptr_t)ttmon_pin_real("cudaFree");
		a.last_error = (int (*)(void))(uintptr_t)ttmon_pin_real("cudaGetLastError");
		a.peek_error = (int (*)(void))(uintptr_t)ttmon_pin_real("cudaPeekAtLastError");
	}
	if (!rt)
		a.ctx_device = (int (*)(int *))(uintptr_t)ttmon_pin_real("cuCtxGetDevice");
	a.found = a.host_alloc && a.host_free;
	a.events = a.event_new && a.event_free && a.event_record && a.event_done && a.event_wait && a.capturing &&
		   a.capture_mode && a.device_sync && (!rt || (a.last_error && a.peek_error));
	*api = a;
}

/* Once found, it is never written again; until then each call looks it up. */
static const struct ttmon_pin_api *api_of(bool rt)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct ttmon_pin_api apis[2];
	static const struct ttmon_pin_api missing;
	static atomic_bool ready[2];

	if (!atomic_load_explicit(&ready[rt], memory_order_acquire)) {
		bool found;

		pthread_mutex_lock(&lock);
		if (!apis[rt].found)
			find(&apis[rt], rt);
		found = apis[rt].found;
		pthread_mutex_unlock(&lock);
		if (!found)
			return &missing;
		atomic_store_explicit(&ready[rt], true, memory_order_release);
	}
	return &apis[rt];
}

const struct ttmon_pin_api *ttmon_pin_rt(void)
{
	return api_of(true);
}

const struct ttmon_pin_api *ttmon_pin_drv(void)
{
	return api_of(false);
}

void *ttmon_pin_forward(_Atomic uintptr_t *slot, const char *name)
{
	uintptr_t fn = atomic_load_explicit(slot, memory_order_relaxed);

	if (!fn) {
		fn = (uintptr_t)ttmon_pin_real(name);
		atomic_store_explicit(slot, fn, memory_order_relaxed);
	}
	return (void *)fn;
}

int ttmon_pin_usable(const struct ttmon_pin_api *api)
{
	static atomic_bool runtime;
	int device, err;

	if (api->ctx_device)
		return api->ctx_device(&device);
	/* Freeing NULL initializes the runtime, as an allocation would. */
	if (!api->free || atomic_load_explicit(&runtime, memory_order_relaxed))
		return 0;
	err = api->free(NULL);
	if (!err)
		atomic_store_explicit(&runtime, true, memory_order_relaxed);
	return err;
}

int ttmon_pin_missing(const char *name)
{
	static atomic_flag said = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&said))
		ttmon_pin_say("%s was called and is in no CUDA library of this process: it fails", name);
	return CUDA_NO_SYMBOL;
}

struct ttmon_pin_quiet ttmon_pin_quiet_begin(const struct ttmon_pin_api *api)
{
	struct ttmon_pin_quiet q = { .api = api, .mode = 2 /* relaxed */ };

	if (api->capture_mode)
		api->capture_mode(&q.mode);
	q.clean = api->peek_error && !api->peek_error();
	return q;
}

void ttmon_pin_quiet_end(struct ttmon_pin_quiet *q)
{
	if (q->clean && q->api->last_error && q->api->peek_error())
		q->api->last_error();
	if (q->api->capture_mode)
		q->api->capture_mode(&q->mode);
}
