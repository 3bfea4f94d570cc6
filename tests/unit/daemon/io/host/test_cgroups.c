// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_cgroups.c: paths of cgroups by their ids, with real cgroups in the cgroup2 mount of this host.
 * The source is compiled into this test with malloc and similar functions replaced, for the test in
 * which allocations fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "lib/base/util.h"

#include "tests/unit/feed/own_mounts.h"
#include "tests/unit/feed/torture.h"

#include "daemon/io/host/cgroups.c"

#undef malloc
#undef calloc
#undef realloc
#undef reallocarray

static char base[PATH_MAX + 64], mount_point[PATH_MAX];

/* Makes a cgroup below the test's own one ("" for that one itself). Returns its id. */
static uint64_t make(const char *name)
{
	char path[PATH_MAX + 128];
	struct stat st;

	snprintf(path, sizeof(path), "%s%s", base, name);
	if (mkdir(path, 0755) && errno != EEXIST)
		fail_msg("mkdir %s: %s", path, strerror(errno));
	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void destroy(const char *name)
{
	char path[PATH_MAX + 128];

	snprintf(path, sizeof(path), "%s%s", base, name);
	assert_int_equal(rmdir(path), 0);
}

static int set_up(void **state)
{
	struct ttmon_cgroups *c = NULL;

	(void)state;
	assert_int_equal(ttmon_cgroups_new(NULL, &c), 0);
	if (!geteuid() && c->fd >= 0) {
		snprintf(mount_point, sizeof(mount_point), "%s", c->mount);
		snprintf(base, sizeof(base), "%s/ttmon-test-%d", mount_point, (int)getpid());
		if (mkdir(base, 0755))
			base[0] = '\0';
	}
	ttmon_cgroups_free(c);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (*base)
		rmdir(base);
	return 0;
}

static unsigned int open_fds(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static struct ttmon_cgroups *new_for(const char *root)
{
	struct ttmon_cgroups *c = NULL;

	assert_int_equal(ttmon_cgroups_new(root, &c), 0);
	assert_non_null(c);
	return c;
}

static struct ttmon_cgroups *need_cgroups(void)
{
	if (!*base) {
		print_message("SKIP: this takes root and a cgroup2 that can be written\n");
		skip();
	}
	return new_for(NULL);
}

static void paths_by_id(void **state)
{
	struct ttmon_cgroups *c = need_cgroups();
	const char *ours = base + strlen(mount_point);
	char path[PATH_MAX + 128];
	struct stat st;
	uint64_t a = make("/a"), b = make("/a/b c");

	(void)state;
	snprintf(path, sizeof(path), "%s/a/b c", ours);
	assert_string_equal(ttmon_cgroups_path(c, b), path);
	snprintf(path, sizeof(path), "%s/a", ours);
	assert_string_equal(ttmon_cgroups_path(c, a), path);
	assert_int_equal(stat(mount_point, &st), 0);
	assert_string_equal(ttmon_cgroups_path(c, st.st_ino), "/");
	/* It was removed, and its path is remembered for as long as it is requested. */
	destroy("/a/b c");
	snprintf(path, sizeof(path), "%s/a/b c", ours);
	for (int i = 0; i < 3; i++) {
		assert_string_equal(ttmon_cgroups_path(c, b), path);
		ttmon_cgroups_sweep(c);
	}
	assert_int_equal(c->nr, 1);
	ttmon_cgroups_sweep(c);
	assert_int_equal(c->nr, 0);
	assert_string_equal(ttmon_cgroups_path(c, b), "");
	destroy("/a");
	ttmon_cgroups_free(c);
}

static void what_is_not_there(void **state)
{
	static const uint64_t ids[] = { 0, UINT64_MAX, 1ULL << 40, 0x7fffffff };
	struct ttmon_cgroups *c = need_cgroups();

	(void)state;
	for (int run = 0; run < 200; run++)
		for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
			assert_string_equal(ttmon_cgroups_path(c, ids[i]), "");
	assert_int_equal(c->nr, ARRAY_SIZE(ids));
	ttmon_cgroups_free(c);
}

/* An id that was not found is searched again after a while: here the mount had failed. */
static void not_found_is_not_for_ever(void **state)
{
	struct ttmon_cgroups *c = need_cgroups();
	uint64_t a = make("/a");
	int fd = c->fd, null = open("/dev/null", O_RDONLY | O_CLOEXEC), times = 0;

	(void)state;
	assert_true(null >= 0);
	c->fd = null;
	assert_string_equal(ttmon_cgroups_path(c, a), "");
	c->fd = fd;
	close(null);
	while (!*ttmon_cgroups_path(c, a))
		assert_in_range(++times, 1, 1000);
	assert_int_equal(times, ASK_AGAIN - 1);
	destroy("/a");
	ttmon_cgroups_free(c);
}

static void bounded(void **state)
{
	struct ttmon_cgroups *c = need_cgroups();
	const char *path;
	uint64_t a;

	(void)state;
	/* The lowest ids come last, so that each is inserted before all others. */
	for (uint64_t id = 2 * MAX_KNOWN; id > 0; id--)
		assert_string_equal(ttmon_cgroups_path(c, (id << 32) + UINT32_MAX), "");
	assert_int_equal(c->nr, MAX_KNOWN);
	/* One more is answered all the same. */
	a = make("/a");
	path = ttmon_cgroups_path(c, a);
	assert_string_equal(path + strlen(base) - strlen(mount_point), "/a");
	assert_string_equal(ttmon_cgroups_path(c, UINT64_MAX), "");
	assert_int_equal(c->nr, MAX_KNOWN);
	ttmon_cgroups_sweep(c);
	ttmon_cgroups_sweep(c);
	assert_int_equal(c->nr, 0);
	destroy("/a");
	ttmon_cgroups_free(c);
}

static void without_cgroup2(void **state)
{
	static const char *const roots[] = { "/proc", "/tmp", "/nowhere", "/dev/null" };
	unsigned int before = open_fds();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		struct ttmon_cgroups *c = new_for(roots[i]);

		assert_string_equal(ttmon_cgroups_path(c, 1), "");
		ttmon_cgroups_sweep(c);
		ttmon_cgroups_free(c);
	}
	ttmon_cgroups_free(NULL);
	assert_int_equal(open_fds(), before);
}

/*
 * Runs in a mount namespace of its own. Returns 0, or the line that failed; -1: there cannot be such a
 * namespace here.
 */
static int see_a_part(uint64_t inside, uint64_t part, uint64_t outside)
{
	char at[] = "/tmp/ttmon cgroup XXXXXX", from[PATH_MAX + 128];
	char all[] = "/tmp/ttmon-cgroup-XXXXXX";
	struct ttmon_cgroups *c = NULL;
	unsigned int before;
	bool not_here;
	int bad = 0;

	snprintf(from, sizeof(from), "%s/a", base);
	if (!own_mounts(&not_here))
		return not_here ? -1 : __LINE__;
	if (!mkdtemp(at))
		return __LINE__;
	if (mount(from, at, NULL, MS_BIND, NULL))
		bad = __LINE__;
	/* As long as there is a mount of the whole tree, it is used. */
	else if (ttmon_cgroups_new(NULL, &c) || strcmp(c->mount, mount_point) != 0)
		bad = __LINE__;
	ttmon_cgroups_free(TAKE_PTR(c));
	if (bad || umount2(mount_point, MNT_DETACH) || ttmon_cgroups_new(NULL, &c))
		bad = __LINE__;
	/* The only remaining mount has a blank in its name. */
	else if (strcmp(ttmon_cgroups_path(c, inside), "/b") != 0)
		bad = __LINE__;
	else if (strcmp(ttmon_cgroups_path(c, part), "/") != 0)
		bad = __LINE__;
	else if (*ttmon_cgroups_path(c, outside))
		bad = __LINE__;
	ttmon_cgroups_free(TAKE_PTR(c));
	before = open_fds();
	/*
	 * The whole tree is mounted once more, later in the list: it is used, and the other one is not left
	 * open.
	 */
	if (!bad && (!mkdtemp(all) || mount("none", all, "cgroup2", 0, NULL) || ttmon_cgroups_new(NULL, &c) ||
		     strcmp(c->mount, all) != 0))
		bad = __LINE__;
	ttmon_cgroups_free(c);
	if (open_fds() != before)
		bad = __LINE__;
	umount2(all, MNT_DETACH);
	rmdir(all);
	umount2(at, MNT_DETACH);
	rmdir(at);
	return bad;
}

static void a_mount_of_a_part(void **state)
{
	struct ttmon_cgroups *c = need_cgroups();
	uint64_t part = make("/a"), inside = make("/a/b"), outside = make("/c");
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid) {
		int bad = see_a_part(inside, part, outside);

		_exit(bad < 0 ? NO_OWN_MOUNTS : bad ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	destroy("/a/b");
	destroy("/a");
	destroy("/c");
	ttmon_cgroups_free(c);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_OWN_MOUNTS) {
		print_message("SKIP: in this chroot \"/\" is no mount point, so there is no private mount namespace\n");
		skip();
	}
	assert_int_equal(status, 0);
}

static void which_mount(void **state)
{
	static const struct {
		const char *line, *at;
		int how;
	} lines[] = {
		{ "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup/unified",
		  2 },
		{ "41 31 0:38 / /sys/fs/cgroup rw shared:9 master:1 - cgroup2 none rw\n", "/sys/fs/cgroup", 2 },
		{ "41 31 0:38 /../.. /host/sys/fs/cgroup rw - cgroup2 none rw\n", "/host/sys/fs/cgroup", 3 },
		{ "41 31 0:38 /kubepods/x /a\\040b rw - cgroup2 none rw\n", "/a b", 1 },
		{ "41 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n", NULL, 0 },
		{ "41 31 0:29 / /cgroup2 rw - tmpfs cgroup2 rw\n", NULL, 0 },
		{ "41 31 - cgroup2 x", NULL, 3 },
		{ " - cgroup2 ", NULL, 0 },
		{ "", NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		char *line = strdup(lines[i].line), *at = NULL;
		int how;

		assert_non_null(line);
		how = shows(line, &at);
		if (lines[i].at) {
			assert_int_equal(how, lines[i].how);
			unescape(at);
			assert_string_equal(at, lines[i].at);
		} else if (!lines[i].how) {
			assert_int_equal(how, 0);
		}
		free(line);
	}
}

static void allocations_fail(void **state)
{
	struct ttmon_cgroups *c = need_cgroups();
	uint64_t a = make("/a");

	(void)state;
	ttmon_cgroups_free(c);
	for (long i = 0; i < 2 * 3; i++) {
		asked = 0;
		fail_at = i / 2;
		fail_on = i & 1;
		c = NULL;
		if (ttmon_cgroups_new(base, &c) < 0) {
			assert_null(c);
			assert_int_equal(fail_at, 0);
			continue;
		}
		for (int k = 0; k < 2; k++)
			if (*ttmon_cgroups_path(c, a))
				assert_string_equal(ttmon_cgroups_path(c, a), "/a");
		fail_at = -1;
		for (int k = 0; k < ASK_AGAIN; k++)
			(void)ttmon_cgroups_path(c, a);
		assert_string_equal(ttmon_cgroups_path(c, a), "/a");
		ttmon_cgroups_free(c);
	}
	fail_at = -1;
	destroy("/a");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_by_id),
		cmocka_unit_test(what_is_not_there),
		cmocka_unit_test(not_found_is_not_for_ever),
		cmocka_unit_test(bounded),
		cmocka_unit_test(without_cgroup2),
		cmocka_unit_test(a_mount_of_a_part),
		cmocka_unit_test(which_mount),
		cmocka_unit_test(allocations_fail),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
