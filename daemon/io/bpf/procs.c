// SPDX-License-Identifier: GPL-2.0-only
/*
 * procs.c: the traced processes: the kernel's table of them, and whether all are traced. Cold thread.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "daemon/io/bpf/bpf_int.h"
#include "lib/os/proc.h"

/* bpf/task.bpf.h */
struct proc_value {
	uint64_t start_ns;
	uint32_t flags, capturing;
	uint64_t kernels, graphs, told;
	uint32_t image, stacks;
	uint64_t hits[TTMON_PROC_HITS];
	uint32_t unmapped[32];
	uint32_t uid, doubt[3];
	uint64_t tried[8];
};
#define PROC_FROM_START	     (1 << 1)
#define PROC_LISTED	     (1 << 2)
#define PROC_GAP	     (1 << 3)
#define REDUCED_SAMPLE_SHIFT 24

size_t ttmon_bpf_procs_bytes(void)
{
	return sizeof(struct proc_value);
}

bool ttmon_bpf_all(const struct ttmon_bpf *b)
{
	return __atomic_load_n(ttmon_bpf_trace_all(b), __ATOMIC_RELAXED);
}

/*
 * An update may undo a flag that the kernel set at the same moment (the process was announced): then
 * it is announced again.
 */
static int relist(const struct ttmon_bpf *b, uint32_t tgid, bool listed)
{
	int fd = ttmon_bpf_procs_fd(b);
	struct proc_value v;

	if (bpf_map_lookup_elem(fd, &tgid, &v))
		return -errno;
	if (!(v.flags & PROC_LISTED) == !listed)
		return 0;
	v.flags ^= PROC_LISTED;
	v.flags |= PROC_GAP;
	return bpf_map_update_elem(fd, &tgid, &v, BPF_EXIST) ? -errno : 0;
}

int ttmon_bpf_add_pid(struct ttmon_bpf *b, uint32_t tgid, bool from_start)
{
	struct proc_value v = { .flags = PROC_LISTED | (from_start ? PROC_FROM_START : 0) };

	if (!bpf_map_update_elem(ttmon_bpf_procs_fd(b), &tgid, &v, BPF_NOEXIST))
		return 0;
	return errno == EEXIST ? relist(b, tgid, true) : -errno;
}

/* The kernel's program for a first call makes the same entry (bpf/task.bpf.h). */
void ttmon_bpf_follow_pid(struct ttmon_bpf *b, uint32_t tgid)
{
	struct proc_value v = { 0 };
	uid_t uid;

	if (!ttmon_bpf_all(b) || !ttmon_proc_owner(tgid, &uid, NULL))
		return;
	v.uid = uid;
	/* One that ended meanwhile was not reported, and would keep its entry. */
	if (!bpf_map_update_elem(ttmon_bpf_procs_fd(b), &tgid, &v, BPF_NOEXIST) && !ttmon_proc_alive(tgid))
		ttmon_bpf_del_pid(b, tgid);
}

int ttmon_bpf_del_pid(struct ttmon_bpf *b, uint32_t tgid)
{
	return bpf_map_delete_elem(ttmon_bpf_procs_fd(b), &tgid) ? -errno : 0;
}

int ttmon_bpf_unlist_pid(struct ttmon_bpf *b, uint32_t tgid)
{
	if (!ttmon_bpf_is_listed(b, tgid))
		return -ENOENT;
	return ttmon_bpf_all(b) ? relist(b, tgid, false) : ttmon_bpf_del_pid(b, tgid);
}

bool ttmon_bpf_has_pid(const struct ttmon_bpf *b, uint32_t tgid)
{
	struct proc_value v;

	return !bpf_map_lookup_elem(ttmon_bpf_procs_fd(b), &tgid, &v);
}

bool ttmon_bpf_is_listed(const struct ttmon_bpf *b, uint32_t tgid)
{
	struct proc_value v;

	return !bpf_map_lookup_elem(ttmon_bpf_procs_fd(b), &tgid, &v) && v.flags & PROC_LISTED;
}

void ttmon_bpf_each_pid(const struct ttmon_bpf *b, void (*cb)(void *ctx, uint32_t tgid), void *ctx)
{
	int fd = ttmon_bpf_procs_fd(b);
	uint32_t key, next;
	bool more = !bpf_map_get_next_key(fd, NULL, &next);

	while (more) {
		key = next;
		/* Before the callback, which may delete this key: after a deleted key the walk would begin again. */
		more = !bpf_map_get_next_key(fd, &key, &next);
		cb(ctx, key);
	}
}

static void drop_unlisted(void *ctx, uint32_t tgid)
{
	struct ttmon_bpf *b = ctx;

	if (!ttmon_bpf_is_listed(b, tgid))
		ttmon_bpf_del_pid(b, tgid);
}

void ttmon_bpf_set_all(struct ttmon_bpf *b, bool all)
{
	__atomic_store_n(ttmon_bpf_trace_all(b), all, __ATOMIC_RELEASE);
	if (!all)
		ttmon_bpf_each_pid(b, drop_unlisted, b);
}

static int reduce(int fd, uint32_t *nr, uint32_t key, uint32_t families, unsigned int sample)
{
	uint32_t was, value = families | sample << REDUCED_SAMPLE_SHIFT;
	bool there = !bpf_map_lookup_elem(fd, &key, &was);

	if (!families && there)
		(void)!bpf_map_delete_elem(fd, &key);
	else if (families && bpf_map_update_elem(fd, &key, &value, BPF_ANY))
		return -errno;
	__atomic_fetch_add(nr, (families != 0) - (uint32_t)there, __ATOMIC_SEQ_CST);
	return 0;
}

int ttmon_bpf_reduce_pid(struct ttmon_bpf *b, uint32_t tgid, uint32_t families, unsigned int sample)
{
	return reduce(ttmon_bpf_reduced_fd(b), ttmon_bpf_nr_reduced(b), tgid, families, sample);
}

int ttmon_bpf_reduce_user(struct ttmon_bpf *b, uint32_t uid, uint32_t families, unsigned int sample)
{
	return reduce(ttmon_bpf_reduced_users_fd(b), ttmon_bpf_nr_reduced_users(b), uid, families, sample);
}

int ttmon_bpf_set_switcher(struct ttmon_bpf *b, uint32_t tgid, unsigned int when)
{
	int fd = ttmon_bpf_switchers_fd(b);
	uint32_t value = 0;

	if (!ttmon_bpf_session(b))
		return -EOPNOTSUPP;
	if (!when)
		return bpf_map_delete_elem(fd, &tgid) && errno != ENOENT ? -errno : 0;
	(void)!bpf_map_lookup_elem(fd, &tgid, &value);
	value |= when;
	if (bpf_map_update_elem(fd, &tgid, &value, BPF_ANY))
		return -errno;
	__atomic_store_n(ttmon_bpf_any_switcher(b), 1, __ATOMIC_RELEASE);
	return 0;
}

void ttmon_bpf_each_hits(const struct ttmon_bpf *b,
			 void (*cb)(void *ctx, uint32_t tgid, uint32_t uid, const uint64_t *hits), void *ctx)
{
	int fd = ttmon_bpf_procs_fd(b);
	uint32_t key, next;
	bool more = !bpf_map_get_next_key(fd, NULL, &next);

	while (more) {
		struct proc_value v;

		key = next;
		more = !bpf_map_get_next_key(fd, &key, &next);
		if (!bpf_map_lookup_elem(fd, &key, &v))
			cb(ctx, key, v.uid, v.hits);
	}
}

int ttmon_bpf_each_user_hits(const struct ttmon_bpf *b, void (*cb)(void *ctx, uint32_t uid, const uint64_t *hits),
			     void *ctx)
{
	int fd = ttmon_bpf_user_hits_fd(b), cpus = libbpf_num_possible_cpus();
	_cleanup_free_ uint64_t *v = cpus > 0 ? calloc((size_t)cpus * TTMON_PROC_HITS, sizeof(*v)) : NULL;
	uint32_t key, next;
	bool more = v && !bpf_map_get_next_key(fd, NULL, &next);

	if (!v)
		return -ENOMEM;
	while (more) {
		uint64_t sum[TTMON_PROC_HITS] = { 0 };

		key = next;
		more = !bpf_map_get_next_key(fd, &key, &next);
		if (bpf_map_lookup_elem(fd, &key, v))
			continue;
		for (int i = 0; i < cpus * (int)TTMON_PROC_HITS; i++)
			sum[i % TTMON_PROC_HITS] += v[i];
		cb(ctx, key, sum);
	}
	return 0;
}

bool ttmon_bpf_uid_of(const struct ttmon_bpf *b, uint32_t tgid, uint32_t *uid)
{
	struct proc_value v;

	if (bpf_map_lookup_elem(ttmon_bpf_procs_fd(b), &tgid, &v))
		return false;
	*uid = v.uid;
	return true;
}
