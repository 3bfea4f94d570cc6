// SPDX-License-Identifier: GPL-2.0-only
/*
 * rmid_alloc.c: runs tests/rmid_script.h in BPF, and on the host beside it: the answers must be those
 * of the script, and after each part and after the random run the two pools must be the same byte for
 * byte. Prints "ok NAME" or "FAIL NAME: why". Needs root.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "tests/rmid_script.h"
#include "lib/base/util.h"

/* The skeleton's view of the shared types. */
typedef uint64_t u64;
typedef uint32_t u32;
#include "tests/bpf/rmid_alloc.skel.h"

struct pool_value {
	uint32_t lock;
	struct ttmon_rmid_pool pool;
};

struct bench {
	struct rmid_alloc_bpf *skel;
	struct pool_value *bpf, *zero;
	struct ttmon_rmid_pool *host;
};

/* In the kernel: 0 or -errno. */
static int in_bpf(struct bench *b, const struct rmid_script_step *s, uint32_t *ret)
{
	char packet[64] = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet));
	uint32_t key = 0;
	int fd = bpf_map__fd(b->skel->maps.rmid_pool);

	if (s->op == RMID_DO_INIT && bpf_map_update_elem(fd, &key, b->zero, BPF_ANY))
		return -errno;
	memcpy(&b->skel->bss->step, s, sizeof(*s));
	if (bpf_prog_test_run_opts(bpf_program__fd(b->skel->progs.rmid_step), &opts))
		return -errno;
	if (opts.retval)
		return -EPROTO;
	*ret = b->skel->bss->answer;
	return 0;
}

static uint32_t on_host(struct bench *b, const struct rmid_script_step *s)
{
	struct ttmon_rmid_holder who = { .start_ns = s->start_ns, .tgid = s->tgid, .comm = "test" };

	if (s->op == RMID_DO_INIT)
		memset(b->host, 0, sizeof(*b->host));
	return rmid_script_do(b->host, s, &who);
}

static bool same(struct bench *b)
{
	uint32_t key = 0;

	return !bpf_map_lookup_elem(bpf_map__fd(b->skel->maps.rmid_pool), &key, b->bpf) &&
	       !memcmp(&b->bpf->pool, b->host, sizeof(*b->host));
}

static bool script(struct bench *b, char *why, size_t n)
{
	for (size_t i = 0; i < RMID_SCRIPT_STEPS; i++) {
		const struct rmid_script_step *s = &rmid_script[i];
		uint32_t got = 0, host = on_host(b, s);
		int err = in_bpf(b, s, &got);

		if (err || got != s->want || host != s->want || !same(b)) {
			snprintf(why, n, "step %zu: %u, host %u, not %u, pools %s, %s", i, got, host, s->want,
				 same(b) ? "the same" : "not the same", strerror(-err));
			return false;
		}
	}
	return true;
}

static bool random_run(struct bench *b, char *why, size_t n)
{
	const struct rmid_script_step init = RMID_INIT(RMID_RANDOM_MAX, RMID_RANDOM_MAX);
	struct rmid_script_random r;
	uint32_t got;

	on_host(b, &init);
	if (in_bpf(b, &init, &got))
		return false;
	rmid_script_random_init(&r);
	for (size_t i = 0; i < RMID_RANDOM_STEPS; i++) {
		struct rmid_script_step s;
		int err;

		rmid_script_next(&r, &s);
		err = in_bpf(b, &s, &got);
		if (err || got != on_host(b, &s)) {
			snprintf(why, n, "step %zu: %u, %s", i, got, strerror(-err));
			return false;
		}
		rmid_script_answer(&r, &s, got);
	}
	if (r.digest != RMID_RANDOM_DIGEST || !same(b)) {
		snprintf(why, n, "digest 0x%llx, pools %s", (unsigned long long)r.digest,
			 same(b) ? "the same" : "not the same");
		return false;
	}
	return true;
}

int main(void)
{
	static bool (*const tests[])(struct bench *, char *, size_t) = { script, random_run };
	static const char *const names[] = { "rmid_alloc_script", "rmid_alloc_random" };
	struct bench b = { 0 };
	int failed = 0;

	b.skel = rmid_alloc_bpf__open_and_load();
	b.bpf = calloc(1, sizeof(*b.bpf));
	b.zero = calloc(1, sizeof(*b.zero));
	b.host = calloc(1, sizeof(*b.host));
	if (!b.skel || !b.bpf || !b.zero || !b.host) {
		printf("FAIL rmid_alloc_load: the kernel does not take the program: %s\n", strerror(errno));
		return 1;
	}
	printf("ok rmid_alloc_load\n");
	for (size_t i = 0; i < ARRAY_SIZE(tests); i++) {
		char why[256] = "";
		bool ok = tests[i](&b, why, sizeof(why));

		printf(ok ? "ok %s\n" : "FAIL %s: %s\n", names[i], why);
		failed |= !ok;
	}
	rmid_alloc_bpf__destroy(b.skel);
	free(b.bpf);
	free(b.zero);
	free(b.host);
	return failed;
}
