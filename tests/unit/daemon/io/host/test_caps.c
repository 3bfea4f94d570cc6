// SPDX-License-Identifier: GPL-2.0-only
/* test_caps.c: what is left after ttmon_caps_keep(), each time in a child; as root alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <linux/capability.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "daemon/io/host/caps.h"

struct sets {
	unsigned long long inh, prm, eff, bnd, amb;
	int nnp;
};

static void read_sets(struct sets *s)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/thread-self/status", "re");
	char line[256];

	*s = (struct sets){ .nnp = -1 };
	while (f && fgets(line, sizeof(line), f)) {
		sscanf(line, "CapInh: %llx", &s->inh);
		sscanf(line, "CapPrm: %llx", &s->prm);
		sscanf(line, "CapEff: %llx", &s->eff);
		sscanf(line, "CapBnd: %llx", &s->bnd);
		sscanf(line, "CapAmb: %llx", &s->amb);
		sscanf(line, "NoNewPrivs: %d", &s->nnp);
	}
}

static const int wanted[] = { CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_PERFMON };

/* A test that a child runs: true is good. What a cmocka assertion says there would be lost. */
static void in_child(bool (*fn)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(fn() ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static unsigned long long mask_of(void)
{
	unsigned long long m = 0;

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
		m |= 1ULL << wanted[i];
	return m;
}

/* What an ambient capability needs, as a service manager does it. */
static bool make_ambient(int cap)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[2];

	if (syscall(SYS_capget, &head, sets))
		return false;
	sets[cap / 32].inheritable |= 1u << (cap % 32);
	return !syscall(SYS_capset, &head, sets) && !prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0);
}

static bool keeps(void)
{
	struct sets before, after;

	if (!make_ambient(wanted[0]) || !make_ambient(CAP_NET_RAW))
		return false;
	read_sets(&before);
	if (!before.amb || !before.inh)
		return false;
	if (ttmon_caps_keep(wanted, ARRAY_SIZE(wanted)))
		return false;
	read_sets(&after);
	return after.prm == (before.prm & mask_of()) && after.prm && after.eff == after.prm && !after.inh &&
	       !after.amb && after.bnd == (before.bnd & mask_of()) && after.nnp == 1 && before.nnp == 0;
}

static void test_keeps(void **state)
{
	(void)state;
	in_child(keeps);
}

static void *look(void *ctx)
{
	read_sets(ctx);
	return NULL;
}

static bool threads(void)
{
	struct sets s = { .prm = ~0ULL };
	pthread_t t;

	if (ttmon_caps_keep(wanted, 1) || pthread_create(&t, NULL, look, &s))
		return false;
	pthread_join(t, NULL);
	return s.prm == 1ULL << wanted[0] && s.eff == s.prm && s.nnp == 1;
}

static void test_later_threads(void **state)
{
	(void)state;
	in_child(threads);
}

/* A second call takes away more; what is gone is no error and does not come back. */
static bool twice(void)
{
	const int more[] = { CAP_SYS_ADMIN, CAP_PERFMON };
	struct sets s;

	if (ttmon_caps_keep(wanted, ARRAY_SIZE(wanted)) || ttmon_caps_keep(more, ARRAY_SIZE(more)))
		return false;
	read_sets(&s);
	if (s.prm != 1ULL << CAP_PERFMON || s.eff != s.prm)
		return false;
	if (ttmon_caps_keep(NULL, 0))
		return false;
	read_sets(&s);
	return !s.prm && !s.eff;
}

static void test_twice(void **state)
{
	(void)state;
	in_child(twice);
}

/* Without CAP_SETPCAP the bounding set stays, the others shrink all the same. */
static bool without_setpcap(void)
{
	const int some[] = { CAP_SYS_PTRACE, CAP_CHOWN };
	const unsigned long long mask = 1ULL << CAP_SYS_PTRACE | 1ULL << CAP_CHOWN;
	struct sets s;

	/* The bounding set keeps CAP_NET_RAW, which is in the permitted set no more. */
	if (prctl(PR_CAPBSET_READ, CAP_NET_RAW, 0, 0, 0) != 1)
		return true;
	if (ttmon_caps_keep((const int[]){ CAP_SYS_PTRACE, CAP_CHOWN, CAP_NET_RAW }, 3))
		return false;
	if (ttmon_caps_keep(some, 2))
		return false;
	read_sets(&s);
	return s.prm == mask && s.bnd == (mask | 1ULL << CAP_NET_RAW);
}

static void test_without_setpcap(void **state)
{
	(void)state;
	in_child(without_setpcap);
}

/* A number that is no capability: refused, and nothing has changed. */
static bool nonsense(void)
{
	struct sets before, after;

	read_sets(&before);
	if (ttmon_caps_keep((const int[]){ CAP_BPF, 64 }, 2) != -EINVAL ||
	    ttmon_caps_keep((const int[]){ -1 }, 1) != -EINVAL)
		return false;
	read_sets(&after);
	return !memcmp(&before, &after, sizeof(before));
}

static void test_nonsense(void **state)
{
	(void)state;
	in_child(nonsense);
}

static bool unprivileged(void)
{
	struct sets s;

	if (setuid(65534) || ttmon_caps_keep(wanted, ARRAY_SIZE(wanted)))
		return false;
	read_sets(&s);
	return !s.prm && !s.eff && s.nnp == 1;
}

static void test_unprivileged(void **state)
{
	(void)state;
	in_child(unprivileged);
}

static void paranoid(const char *root, const char *text, bool want)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/proc/sys/kernel/perf_event_paranoid", root);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	assert_int_equal(ttmon_caps_perf_wants_admin(root), want);
}

static void test_perf(void **state)
{
	char root[] = "/tmp/ttmon-caps-XXXXXX", path[128];
	static const char *const dirs[] = { "proc", "proc/sys", "proc/sys/kernel" };

	(void)state;
	assert_non_null(mkdtemp(root));
	assert_false(ttmon_caps_perf_wants_admin(root));
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		snprintf(path, sizeof(path), "%s/%s", root, dirs[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	paranoid(root, "-1\n", false);
	paranoid(root, "2\n", false);
	paranoid(root, "3\n", true);
	paranoid(root, "4\n", true);
	paranoid(root, "x\n", false);
	snprintf(path, sizeof(path), "%s/proc/sys/kernel/perf_event_paranoid", root);
	unlink(path);
	for (size_t i = ARRAY_SIZE(dirs); i--;) {
		snprintf(path, sizeof(path), "%s/%s", root, dirs[i]);
		rmdir(path);
	}
	rmdir(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_keeps),	 cmocka_unit_test(test_later_threads),
		cmocka_unit_test(test_twice),	 cmocka_unit_test(test_without_setpcap),
		cmocka_unit_test(test_nonsense), cmocka_unit_test(test_unprivileged),
		cmocka_unit_test(test_perf),
	};
	struct sets s;

	read_sets(&s);
	if ((s.prm & mask_of()) != mask_of() || s.nnp) {
		puts("needs root, and no no_new_privs");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
