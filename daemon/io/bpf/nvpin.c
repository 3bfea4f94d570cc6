// SPDX-License-Identifier: GPL-2.0-only
/*
 * nvpin.c: the programs of bpf/nvpin.bpf.c on NVIDIA's kernel module, with --nvidia-pins. The module
 * may be loaded, unloaded and loaded again while we run, as tt-kmd may (kmd.c). Functions that the
 * module does not have are left out. Cold thread.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "daemon/io/bpf/bpf.h"
#include "daemon/io/bpf/bpf_int.h"
#include "lib/os/log.h"

#define MODULE	"nvidia"
#define KPROBES "/sys/bus/event_source/devices/kprobe/type"

/* With the module's name, so that a function of the same name in another module is not probed. */
static const char *const functions[TTMON_NVPIN_MAX] = {
#define X(id, NAME, function, arg, unit) [id] = MODULE ":" function,
	TTMON_NVPIN_TABLE(X)
#undef X
};

enum { RETURN, ENTRY, LINKS };
_Static_assert(LINKS *TTMON_NVPIN_MAX == TTMON_NVPIN_LINKS, "as the header says");

struct ttmon_nvpin {
	bool off;     /* its family is off */
	bool tried;   /* attaching was tried with the present module */
	bool said;    /* it was logged that there is no module */
	ino_t module; /* see ttmon_bpf_module_there() */
	size_t probed;
	struct bpf_link *links[TTMON_NVPIN_MAX][LINKS];
	int errs[TTMON_NVPIN_MAX];
};

struct ttmon_nvpin *ttmon_nvpin_new(void)
{
	return calloc(1, sizeof(struct ttmon_nvpin));
}

static void detach_one(struct ttmon_nvpin *v, size_t fn)
{
	/* Entries first. */
	for (size_t i = LINKS; i-- > 0;) {
		bpf_link__destroy(v->links[fn][i]);
		v->links[fn][i] = NULL;
	}
}

static void detach(struct ttmon_nvpin *v)
{
	for (size_t fn = 0; fn < TTMON_NVPIN_MAX; fn++)
		detach_one(v, fn);
	v->probed = 0;
}

void ttmon_nvpin_free(struct ttmon_nvpin *v)
{
	if (!v)
		return;
	detach(v);
	free(v);
}

size_t ttmon_nvpin_links(const struct ttmon_nvpin *v, int *fds)
{
	size_t n = 0;

	for (size_t i = 0; v && i < TTMON_NVPIN_LINKS; i++)
		if (v->links[i / LINKS][i % LINKS])
			fds[n++] = bpf_link__fd(v->links[i / LINKS][i % LINKS]);
	return n;
}

void ttmon_nvpin_set_off(struct ttmon_nvpin *v, bool off)
{
	if (v)
		v->off = off;
}

static const char *why_not(int err)
{
	return err == -ENOENT || err == -EADDRNOTAVAIL ? "the module nvidia has no such function" : strerror(-err);
}

const char *ttmon_nvpin_reason(const struct ttmon_nvpin *v)
{
	if (!v || v->probed)
		return "";
	if (access(KPROBES, F_OK))
		return "this kernel has no kprobes";
	if (!v->tried)
		return "the module nvidia is not loaded";
	/* None could be probed. */
	return why_not(v->errs[0]);
}

static int attach_one(struct ttmon_bpf *b, struct ttmon_nvpin *v, size_t fn)
{
	static const enum ttmon_prog progs[LINKS] = { [RETURN] = TTMON_PROG_NVPIN_RET, [ENTRY] = TTMON_PROG_NVPIN };

	for (size_t i = 0; i < LINKS; i++) {
		LIBBPF_OPTS(bpf_kprobe_opts, opts, .bpf_cookie = fn, .retprobe = i == RETURN);
		int err;

		v->links[fn][i] = bpf_program__attach_kprobe_opts(ttmon_bpf_program(b, progs[i]), functions[fn], &opts);
		if (v->links[fn][i])
			continue;
		err = -errno;
		detach_one(v, fn);
		return err;
	}
	return 0;
}

static void attach(struct ttmon_bpf *b, struct ttmon_nvpin *v)
{
	v->probed = 0;
	for (size_t fn = 0; fn < TTMON_NVPIN_MAX; fn++) {
		v->errs[fn] = attach_one(b, v, fn);
		v->probed += !v->errs[fn];
	}
	if (v->probed)
		log_info("--nvidia-pins: %zu of %d functions of the module nvidia are counted", v->probed,
			 TTMON_NVPIN_MAX);
}

void ttmon_bpf_nvpin_refresh(struct ttmon_bpf *b)
{
	struct ttmon_nvpin *v = ttmon_bpf_nvpin(b);
	ino_t module = 0;
	bool there;

	if (!v)
		return;
	there = !v->off && !access(KPROBES, F_OK) && ttmon_bpf_module_there(MODULE, &module);
	if (v->tried && (!there || module != v->module)) {
		detach(v);
		v->tried = v->said = false;
	}
	if (there && !v->tried) {
		v->tried = true;
		v->module = module;
		attach(b, v);
	}
	if (!v->probed && !v->said && !v->off) {
		log_warn("--nvidia-pins: %s, continuing without the pages it pins", ttmon_nvpin_reason(v));
		v->said = true;
	}
	ttmon_bpf_set_attached(b, TTMON_PROG_NVPIN, v->probed);
	ttmon_bpf_set_attached(b, TTMON_PROG_NVPIN_RET, v->probed);
}

bool ttmon_bpf_nvpin_get(const struct ttmon_bpf *b, enum ttmon_nvpin_fn fn, struct ttmon_nvpin_info *ret)
{
	static const struct ttmon_nvpin_info infos[TTMON_NVPIN_MAX] = {
#define X(id, NAME, name, arg, what) [id] = { .function = name, .unit = what },
		TTMON_NVPIN_TABLE(X)
#undef X
	};
	const struct ttmon_nvpin *v = ttmon_bpf_nvpin(b);
	_cleanup_free_ struct ttmon_nvpin_sums *by_cpu = NULL;
	uint32_t key = fn;

	if (!v)
		return false;
	*ret = infos[fn];
	ret->probed = v->links[fn][ENTRY];
	ret->reason = ret->probed ? ""
		      : v->off	  ? "its family is off"
		      : v->probed ? why_not(v->errs[fn])
				  : ttmon_nvpin_reason(v);
	by_cpu = calloc(ttmon_bpf_cpus(b), sizeof(*by_cpu));
	if (!by_cpu || bpf_map_lookup_elem(ttmon_bpf_nvpin_sums_fd(b), &key, by_cpu))
		return true;
	for (uint32_t cpu = 0; cpu < ttmon_bpf_cpus(b); cpu++) {
		ret->sums.calls += by_cpu[cpu].calls;
		ret->sums.returned += by_cpu[cpu].returned;
		ret->sums.failed += by_cpu[cpu].failed;
		ret->sums.amount += by_cpu[cpu].amount;
	}
	return true;
}
