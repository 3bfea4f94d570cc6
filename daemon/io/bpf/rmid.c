// SPDX-License-Identifier: GPL-2.0-only
/*
 * rmid.c: programs of bpf/rmid.bpf.c with their own way of running: the task iterator, and those on
 * the tracepoints of an RMID module, which may be loaded later and unloaded while we run. Our links
 * pin the module, so they are closed when it requests that. Cold thread.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <ttmon/rmid_alloc.h>

#include "daemon/io/bpf/bpf_int.h"
#include "lib/os/clock.h"

/*
 * Processes reported at a time: some 40 KiB of records in the ring of the present CPU, which the hot
 * thread empties every millisecond.
 */
#define CHUNK	 256
#define PAUSE_US 100

enum { FREE, ALLOC, EXISTING, RDT, TICK, LINKS };

struct ttmon_rmid_links {
	struct bpf_link *link[LINKS];
	enum ttmon_prog rdt; /* which of the two is attached */
};

/* The value of the map rmid_pool, as in bpf/rmid.bpf.h. */
struct pool_value {
	uint32_t lock;
	struct ttmon_rmid_pool pool;
};

static void detach(struct ttmon_rmid_links *l)
{
	for (size_t i = LINKS; i--;) {
		bpf_link__destroy(l->link[i]);
		l->link[i] = NULL;
	}
}

void ttmon_rmid_links_free(struct ttmon_rmid_links *l)
{
	if (!l)
		return;
	detach(l);
	free(l);
}

int ttmon_bpf_each_task(struct ttmon_bpf *b)
{
	int prog = bpf_program__fd(ttmon_bpf_program(b, TTMON_PROG_TASK_ITER));
	_cleanup_close_ int link = -1, iter = -1;
	uint8_t buf[CHUNK];
	int without = 0;

	if (prog < 0)
		return -ENOENT;
	link = bpf_link_create(prog, 0, BPF_TRACE_ITER, NULL);
	if (link < 0)
		return -errno;
	iter = bpf_iter_create(link);
	if (iter < 0)
		return -errno;
	for (;;) {
		ssize_t n = read(iter, buf, sizeof(buf));

		/* EAGAIN: a million tasks of which none was a process. */
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return n < 0 ? -errno : without;
		for (ssize_t i = 0; i < n; i++)
			without += buf[i];
		usleep(PAUSE_US);
	}
}

int ttmon_bpf_rmid_counts(struct ttmon_bpf *b, struct ttmon_rmid_counts *ret)
{
	_cleanup_free_ struct pool_value *v = calloc(1, sizeof(*v));
	int fd = ttmon_bpf_rmid_pool_fd(b);
	uint32_t zero = 0;

	if (!v)
		return -ENOMEM;
	if (fd < 0)
		return -ENOENT;
	if (bpf_map_lookup_elem(fd, &zero, v))
		return -errno;
	*ret = (struct ttmon_rmid_counts){
		.max = v->pool.max,
		.in_use = v->pool.in_use,
		.allocs = v->pool.allocs,
		.frees = v->pool.frees,
		.exhausted = v->pool.exhausted + v->pool.limbo,
		.ready = ttmon_rmid_pool_ready(&v->pool, ttmon_mono_ns()),
	};
	return 0;
}

static int attach(struct ttmon_bpf *b, enum ttmon_prog prog, const char *prefix, const char *name,
		  struct bpf_link **ret)
{
	struct bpf_link *link;
	char full[128];

	if (bpf_program__fd(ttmon_bpf_program(b, prog)) < 0)
		return -ENOENT;
	snprintf(full, sizeof(full), "%s%s", prefix, name);
	link = bpf_program__attach_raw_tracepoint(ttmon_bpf_program(b, prog), full);
	if (!link)
		return -errno;
	*ret = link;
	return 0;
}

static void show(struct ttmon_bpf *b, const struct ttmon_rmid_links *l)
{
	ttmon_bpf_set_attached(b, TTMON_PROG_RMID_FREE, l->link[FREE]);
	ttmon_bpf_set_attached(b, TTMON_PROG_RMID_ALLOC, l->link[ALLOC]);
	ttmon_bpf_set_attached(b, TTMON_PROG_RMID_EXISTING, l->link[EXISTING]);
	ttmon_bpf_set_attached(b, TTMON_PROG_RMID_RDT, l->link[RDT] && l->rdt == TTMON_PROG_RMID_RDT);
	ttmon_bpf_set_attached(b, TTMON_PROG_RMID_RDT9, l->link[RDT] && l->rdt == TTMON_PROG_RMID_RDT9);
	ttmon_bpf_set_attached(b, TTMON_PROG_CPU_TICK, l->link[TICK]);
}

/*
 * Frees first, so that an allocation that is seen has its free seen too. A program with nine arguments
 * is refused (EINVAL) where there are eight.
 */
static int attach_all(struct ttmon_bpf *b, struct ttmon_rmid_links *l, const char *prefix)
{
	const char *why;
	int err;

	err = attach(b, TTMON_PROG_RMID_FREE, prefix, "rmid_free", &l->link[FREE]);
	if (!err)
		err = attach(b, TTMON_PROG_RMID_ALLOC, prefix, "rmid_alloc", &l->link[ALLOC]);
	if (!err)
		err = attach(b, TTMON_PROG_RMID_EXISTING, prefix, "rmid_existing", &l->link[EXISTING]);
	if (err)
		return err;
	l->rdt = TTMON_PROG_RMID_RDT9;
	if (attach(b, l->rdt, prefix, "rdt_sample", &l->link[RDT])) {
		l->rdt = TTMON_PROG_RMID_RDT;
		attach(b, l->rdt, prefix, "rdt_sample", &l->link[RDT]);
	}
	/* Its tick is useful only with counters; with the prefix it is called sample. */
	if (ttmon_bpf_has_counters(b, &why))
		attach(b, TTMON_PROG_CPU_TICK, prefix, *prefix ? "sample" : "measure_perf_counters", &l->link[TICK]);
	return 0;
}

int ttmon_bpf_module_attach(struct ttmon_bpf *b, const char *prefix)
{
	struct ttmon_rmid_links **slot = ttmon_bpf_rmid_links(b);
	int err;

	if (!*slot)
		*slot = calloc(1, sizeof(**slot));
	if (!*slot)
		return -ENOMEM;
	if ((*slot)->link[ALLOC])
		return 0;
	err = attach_all(b, *slot, prefix);
	if (err)
		detach(*slot);
	show(b, *slot);
	return err;
}

void ttmon_bpf_module_detach(struct ttmon_bpf *b)
{
	struct ttmon_rmid_links *l = *ttmon_bpf_rmid_links(b);

	if (!l)
		return;
	detach(l);
	show(b, l);
}
