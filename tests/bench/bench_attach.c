// SPDX-License-Identifier: GPL-2.0-only
/*
 * bench_attach.c: how long the start and the stop take: loading the programs, reading both stand-in
 * libraries, placing a probe at each of their functions, and removing everything again.
 *
 * The libraries are mapped by this process, so that breakpoints are really written. The floor is one
 * empty program at one function of the same library, through the same kind of link, in the same round.
 * The result is the median of the rounds.
 */
#include "empty.h"

#define ROUNDS 7

static const char *const objects[] = { "libcudart.so.13", "libcuda.so.1" };

struct round {
	double load, attach, detach, unload, one_on, one_off; /* ms */
};

static double ms_since(uint64_t *t)
{
	uint64_t now = now_ns();
	double ms = (double)(now - *t) / 1e6;

	*t = now;
	return ms;
}

static int one_empty(struct empty_bpf *skel, int fd, struct round *r)
{
	struct ttmon_elf_info info;
	uint64_t offset = 0, t;
	int err = ttmon_elf_read(fd, objects[0], NULL, 0, &info);
	int link;

	if (err)
		return err;
	err = offset_of(&info, "cudaMemcpy", &offset);
	ttmon_elf_info_fini(&info);
	if (err)
		return err;
	t = now_ns();
	link = attach_empty(skel, fd, offset, false);
	if (link < 0)
		return link;
	r->one_on = ms_since(&t);
	close(link);
	r->one_off = ms_since(&t);
	return 0;
}

static int run_round(const int *fds, struct round *r, size_t *nr_probes)
{
	const struct ttmon_bpf_cfg cfg = { .all = true, .stack_frames = 16, .ring_bytes = 4 << 20 };
	struct ttmon_probes probes[ARRAY_SIZE(objects)];
	struct ttmon_bpf *bpf = NULL;
	uint64_t t = now_ns();
	char why[256];
	size_t attached = 0;
	int err = ttmon_bpf_new(&cfg, &bpf, why, sizeof(why));

	if (!err)
		err = ttmon_bpf_attach(bpf, why, sizeof(why));
	if (err) {
		fprintf(stderr, "%s\n", why);
		ttmon_bpf_free(bpf);
		return err;
	}
	r->load = ms_since(&t);
	for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
		err = attach_object(bpf, fds[i], objects[i], &probes[i]);
		if (err) {
			fprintf(stderr, "cannot attach to %s: %s\n", objects[i], strerror(-err));
			exit(1);
		}
		if (probes[i].attached != probes[i].n) {
			fprintf(stderr, "%zu of %zu probes attached to %s\n", probes[i].attached, probes[i].n,
				objects[i]);
			exit(1);
		}
		attached += probes[i].attached;
	}
	ttmon_bpf_activate(bpf, true);
	r->attach = ms_since(&t);
	ttmon_bpf_activate(bpf, false);
	for (size_t i = 0; i < ARRAY_SIZE(objects); i++)
		ttmon_probes_detach(&probes[i]);
	r->detach = ms_since(&t);
	ttmon_bpf_free(bpf);
	r->unload = ms_since(&t);
	*nr_probes = attached;
	return 0;
}

/* The median of one column of the rounds. */
static double typical(const struct round *rounds, size_t column)
{
	double v[ROUNDS];

	for (size_t i = 0; i < ROUNDS; i++)
		memcpy(&v[i], (const char *)&rounds[i] + column, sizeof(v[i]));
	return median(v, ROUNDS);
}
#define TYPICAL(column) typical(rounds, offsetof(struct round, column))

int main(void)
{
	struct round rounds[ROUNDS] = { 0 };
	int fds[ARRAY_SIZE(objects)];
	struct empty_bpf *skel;
	double all, start, one;
	size_t probes = 0;

	if (skipped("bench_attach"))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(objects); i++) {
		char name[64], path[PATH_MAX];

		snprintf(name, sizeof(name), "../standin/lib/%s", objects[i]);
		beside(name, path, sizeof(path));
		fds[i] = open(path, O_RDONLY | O_CLOEXEC);
		if (fds[i] < 0 || !dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
			fprintf(stderr, "cannot open %s: make standin\n", path);
			return 1;
		}
	}
	skel = load_empty();
	if (!skel)
		return 1;
	for (size_t i = 0; i < ROUNDS; i++)
		if (one_empty(skel, fds[0], &rounds[i]) || run_round(fds, &rounds[i], &probes))
			return 1;
	empty_bpf__destroy(skel);

	start = TYPICAL(load) + TYPICAL(attach);
	all = start + TYPICAL(detach) + TYPICAL(unload);
	one = TYPICAL(one_on) + TYPICAL(one_off);
	printf("start: %.0f ms (load %.0f, %zu functions in %zu libraries %.1f), stop: %.0f ms (detach %.0f, unload "
	       "%.0f), "
	       "together %.0f ms (goal 1000%s)\n",
	       start, TYPICAL(load), probes, ARRAY_SIZE(objects), TYPICAL(attach), all - start, TYPICAL(detach),
	       TYPICAL(unload), all, all > 1000 ? ", MISSED" : "");
	printf("probes on and off: %.1f ms, one empty probe %.1f ms, ratio %.1f for %zu functions\n",
	       TYPICAL(attach) + TYPICAL(detach), one, (TYPICAL(attach) + TYPICAL(detach)) / one, probes);
	return 0;
}
