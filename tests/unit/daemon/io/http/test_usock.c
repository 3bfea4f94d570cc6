// SPDX-License-Identifier: GPL-2.0-only
/* test_usock.c: the socket file: which users may use it, and which sockets are replaced. */
#include <grp.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/wait.h>

#include "tests/unit/feed/http_bench.h"

static mode_t mode_of(const char *name)
{
	struct stat st;

	assert_int_equal(lstat(name, &st), 0);
	return st.st_mode;
}

static void test_socket_file(void **state)
{
	struct ttmon_usock s = { .fd = -1 };
	char run[128];
	mode_t before = umask(022), after;

	(void)state;
	snprintf(run, sizeof(run), "%s/run", dir);
	assert_int_equal(ttmon_usock_open(path, "no-such-group-here", 0660, &s), 0);
	after = umask(before);
	assert_int_equal(after, 022);
	assert_int_equal(mode_of(run), S_IFDIR | 0750);
	assert_int_equal(mode_of(path), S_IFSOCK | 0660);
	assert_true(fcntl(s.fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(s.fd, F_GETFL) & O_NONBLOCK);
	ttmon_usock_fini(&s);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(s.fd, -1);
	/* The directory stays, and is no obstacle. */
	assert_int_equal(ttmon_usock_open(path, NULL, 0600, &s), 0);
	assert_int_equal(mode_of(path), S_IFSOCK | 0600);
	ttmon_usock_fini(&s);
}

static int open_quietly(struct ttmon_usock *s)
{
	int err;

	quiet();
	err = ttmon_usock_open(path, NULL, 0660, s);
	loud();
	return err;
}

static void test_live_and_stale(void **state)
{
	struct ttmon_usock live = { .fd = -1 }, s = { .fd = -1 };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct stat before, after;
	int fd;

	(void)state;
	assert_int_equal(ttmon_usock_open(path, NULL, 0660, &live), 0);
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(open_quietly(&s), -EADDRINUSE);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);

	/* The end of the live server does not remove a socket that is not its own. */
	assert_int_equal(unlink(path), 0);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	memcpy(addr.sun_path, path, strlen(path) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	ttmon_usock_fini(&live);
	assert_int_equal(access(path, F_OK), 0);

	/* No process listens on that socket: it is stale. */
	close(fd);
	assert_int_equal(ttmon_usock_open(path, NULL, 0660, &s), 0);
	assert_true((fd = dial()) >= 0);
	close(fd);
	ttmon_usock_fini(&s);
	assert_int_equal(dial(), -ENOENT);
}

/*
 * A lock decides between two servers that start at once. Every process that may open the directory
 * could lock the directory, so the lock is a file that no other user may open.
 */
static void test_lock(void **state)
{
	struct ttmon_usock s = { .fd = -1 };
	char run[128], lock[160];
	int fd, held;

	(void)state;
	snprintf(run, sizeof(run), "%s/run", dir);
	snprintf(lock, sizeof(lock), "%s/.%s.lock", run, strrchr(path, '/') + 1);
	assert_int_equal(ttmon_usock_open(path, NULL, 0660, &s), 0);
	ttmon_usock_fini(&s);
	assert_int_equal(mode_of(lock), S_IFREG | 0600);
	fd = open(run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(ttmon_usock_open(path, NULL, 0660, &s), 0);
	ttmon_usock_fini(&s);
	close(fd);
	held = open(lock, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(held, LOCK_EX | LOCK_NB), 0);
	assert_int_equal(open_quietly(&s), -EADDRINUSE);
	close(held);
	/* The lock file belongs to another user: the socket is opened without a lock. */
	assert_int_equal(unlink(lock), 0);
	assert_int_equal(symlink("/nowhere/at/all", lock), 0);
	assert_int_equal(open_quietly(&s), 0);
	ttmon_usock_fini(&s);
	assert_int_equal(unlink(lock), 0);
}

static void test_not_a_socket(void **state)
{
	struct ttmon_usock s = { .fd = -1 };
	char run[128];
	FILE *f;

	(void)state;
	snprintf(run, sizeof(run), "%s/run", dir);
	assert_int_equal(mkdir(run, 0700), 0);
	f = fopen(path, "we");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(open_quietly(&s), -EEXIST);
	assert_int_equal(mode_of(path) & S_IFMT, S_IFREG);
	assert_int_equal(unlink(path), 0);
	/* A symbolic link is refused too, wherever it leads. */
	assert_int_equal(symlink("/nowhere/at/all", path), 0);
	assert_int_equal(open_quietly(&s), -EEXIST);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(open_quietly(&s), -EEXIST);

	snprintf(path, sizeof(path), "%s/none/run/t.sock", dir);
	assert_int_equal(open_quietly(&s), -ENOENT);
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(open_quietly(&s), -ENAMETOOLONG);
	assert_int_equal(s.fd, -1);
	assert_null(s.path);
}

/*
 * Returns the error with which a process of another user, with only this group, connects; 0: it can.
 */
static int dial_as(uid_t uid, gid_t gid)
{
	pid_t child = fork();
	int status;

	if (!child) {
		if (setgroups(0, NULL) || setgid(gid) || setuid(uid))
			_exit(99);
		status = dial_unix(path);
		_exit(status < 0 ? -status : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

static void test_group(void **state)
{
	struct ttmon_usock s = { .fd = -1 };
	const struct group *g = getgrnam("nogroup");
	const struct passwd *nobody = getpwnam("nobody");
	char run[128];

	(void)state;
	if (geteuid() || !g || !nobody)
		skip();
	assert_int_equal(chmod(dir, 0755), 0);
	snprintf(run, sizeof(run), "%s/run", dir);
	/* The folder and the socket belong to the group. */
	assert_int_equal(ttmon_usock_open(path, "nogroup", 0660, &s), 0);
	assert_false(s.no_group);
	assert_int_equal(dial_as(nobody->pw_uid, g->gr_gid), 0);
	assert_int_equal(dial_as(nobody->pw_uid, g->gr_gid - 1), -EACCES);
	/* If every user may enter the folder, the socket still refuses them. */
	assert_int_equal(chmod(run, 0755), 0);
	assert_int_equal(dial_as(nobody->pw_uid, g->gr_gid - 1), -EACCES);
	ttmon_usock_fini(&s);
	assert_int_equal(ttmon_usock_open(path, "no-such-group-here", 0660, &s), 0);
	assert_true(s.no_group);
	assert_int_equal(dial_as(nobody->pw_uid, g->gr_gid), -EACCES);
	ttmon_usock_fini(&s);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
		T(test_socket_file), T(test_live_and_stale), T(test_lock), T(test_not_a_socket), T(test_group),
	};

	return cmocka_run_group_tests_name("usock", tests, NULL, NULL);
}
