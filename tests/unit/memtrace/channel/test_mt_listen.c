// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_mt_listen.c: the socket that channels arrive on: clients that connect, are refused or die, and
 * that no client takes the places of others.
 */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "memtrace/channel/chan.h"
#include "tests/memtrace/producer.h"
#include "lib/base/util.h"

struct world {
	char dir[64], path[96];
	struct ttmon_mt_listen *l;
	struct ttmon_mt_dictw dict;
	struct ttmon_mt_stats stats;
	struct ttmon_mt_sink sink;
	uint64_t n;
	uint32_t pid;
	char notes[8192];
	int fail;
};

static int recs(void *ctx, const struct ttmon_mt_rec *r, size_t n, uint32_t pid)
{
	struct world *w = ctx;

	(void)r;
	w->n += n;
	w->pid = pid;
	return w->fail;
}

static void note(void *ctx, uint32_t pid, const char *text)
{
	struct world *w = ctx;
	size_t used = strlen(w->notes);

	snprintf(w->notes + used, sizeof(w->notes) - used, "%u: %s\n", pid, text);
}

static void begin(struct world *w)
{
	char why[200] = "";

	memset(w, 0, sizeof(*w));
	strcpy(w->dir, "/tmp/ttmon-test-XXXXXX");
	assert_non_null(mkdtemp(w->dir));
	snprintf(w->path, sizeof(w->path), "%s/sock", w->dir);
	if (ttmon_mt_listen_new(w->path, 0600, &w->l, why, sizeof(why)))
		fail_msg("%s", why);
	w->sink = (struct ttmon_mt_sink){ .dict = &w->dict, .stats = &w->stats, .recs = recs, .note = note, .ctx = w };
}

static void end(struct world *w)
{
	ttmon_mt_listen_free(w->l);
	ttmon_mt_dict_fini(&w->dict);
	/* Nothing is left in it. */
	assert_int_equal(rmdir(w->dir), 0);
}

static void setup(struct mtp *p)
{
	assert_int_equal(mtp_new(p, 2, 1024, TTMON_MTC_MIN_DICT), 0);
	assert_true(mtp_site(p, 0, TTMON_MT_GLOBAL, TTMON_MT_LOAD, 4, "k", "ld.global.f32"));
	assert_true(mtp_launch(p, 0, "k"));
}

static void put(struct mtp *p, unsigned int n)
{
	struct ttmon_mtc_rec rec = { .base = 4096, .mask = UINT32_MAX, .stride = 4 };

	for (unsigned int i = 0; i < n; i++)
		assert_true(mtp_put(p, i % 2, rec, 0, 0, NULL));
}

static void work(struct world *w)
{
	int more;

	do
		more = ttmon_mt_listen_work(w->l, &w->sink);
	while (more > 0);
	assert_int_equal(more, 0);
}

/* As the caller does it, until there are no channels, for at most so long. */
static void work_until_none(struct world *w, unsigned int ms)
{
	for (unsigned int i = 0; i < ms && ttmon_mt_listen_channels(w->l); i++) {
		work(w);
		usleep(1000);
	}
	assert_int_equal(ttmon_mt_listen_channels(w->l), 0);
}

static bool is_readable(const struct world *w)
{
	struct pollfd p = { .fd = ttmon_mt_listen_fd(w->l), .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static void a_channel_comes_and_goes(void **state)
{
	struct world w;
	struct stat st;
	struct mtp p;
	int sock;

	(void)state;
	begin(&w);
	assert_int_equal(stat(w.path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_false(is_readable(&w));
	setup(&p);
	put(&p, 10);
	sock = mtp_hello(&p, w.path, p.fd);
	assert_true(sock >= 0);
	assert_true(is_readable(&w));
	work(&w);
	assert_int_equal(mtp_answer(sock), 0);
	assert_false(is_readable(&w));
	assert_int_equal(w.n, 10);
	assert_int_equal(w.pid, getpid());
	assert_int_equal(ttmon_mt_listen_channels(w.l), 1);
	put(&p, 7);
	mtp_done(&p);
	work(&w);
	assert_int_equal(w.n, 17);
	assert_int_equal(ttmon_mt_listen_channels(w.l), 0);
	assert_int_equal(ttmon_mt_listen_seen(w.l), 1);
	assert_true(!*w.notes && !w.stats.cut);
	/* The other side sees it. */
	assert_int_equal(mtp_answer(sock), -ECONNRESET);
	assert_int_equal(p.head->consumer, 0);
	close(sock);
	mtp_free(&p);
	end(&w);
}

/* A child that sends so many records, then waits to be killed; ready: a byte when it is done. */
static pid_t spawn(const struct world *w, unsigned int n, bool forks, int *ready)
{
	int pair[2];
	pid_t pid;

	assert_int_equal(pipe(pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct mtp p;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setup(&p);
		if (mtp_hello(&p, w->path, p.fd) < 0)
			_exit(1);
		put(&p, n);
		(void)!write(pair[1], &(pid_t){ forks ? fork() : 0 }, sizeof(pid_t));
		for (;;)
			pause();
	}
	close(pair[1]);
	*ready = pair[0];
	return pid;
}

/*
 * What was committed is there, the channel is closed, and that it was cut is said. Also where a child
 * of it lives on with the connection.
 */
static void who_is_killed_loses_nothing_that_was_committed(void **state)
{
	(void)state;
	for (unsigned int forks = 0; forks < 2; forks++) {
		struct world w;
		pid_t pid, child = 0, other = 0;
		int ready;

		begin(&w);
		pid = spawn(&w, 1500, forks, &ready);
		assert_int_equal(read(ready, &child, sizeof(child)), sizeof(child));
		if (forks)
			assert_int_equal(read(ready, &other, sizeof(other)), sizeof(other));
		/* Both report the result of fork(), in any order. */
		child = MAX(child, other);
		work(&w);
		assert_int_equal(ttmon_mt_listen_channels(w.l), 1);
		kill(pid, SIGKILL);
		work_until_none(&w, 5000);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		if (child)
			kill(child, SIGKILL);
		assert_int_equal(w.n, 1500);
		assert_true(w.stats.cut);
		assert_non_null(strstr(w.notes, "ended without saying so"));
		close(ready);
		end(&w);
	}
}

static void who_has_nothing_to_say_is_refused(void **state)
{
	struct world w;
	struct mtp p;
	int sock;

	(void)state;
	begin(&w);
	setup(&p);
	/* No descriptor; something else; another version; a file. */
	sock = mtp_hello(&p, w.path, -1);
	work(&w);
	assert_int_equal(mtp_answer(sock), -EPROTO);
	close(sock);
	sock = mtp_hello(&p, w.path, STDIN_FILENO);
	work(&w);
	assert_int_equal(mtp_answer(sock), -EINVAL);
	close(sock);
	p.head->version++;
	sock = mtp_hello(&p, w.path, p.fd);
	work(&w);
	assert_int_equal(mtp_answer(sock), -EPROTONOSUPPORT);
	close(sock);
	work_until_none(&w, 5000);
	assert_non_null(strstr(w.notes, "no hello"));
	assert_non_null(strstr(w.notes, "version 3"));
	assert_non_null(strstr(w.notes, "sealed"));
	assert_int_equal(ttmon_mt_listen_seen(w.l), 0);
	mtp_free(&p);
	end(&w);
}

static int connect_to(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	if (connect(sock, (const struct sockaddr *)&addr, sizeof(addr))) {
		close(sock);
		return -1;
	}
	return sock;
}

/*
 * A flood of connections that send nothing, or garbage: bounded, and later clients still get a place.
 */
static void a_flood_takes_no_places(void **state)
{
	int flood[500], sock;
	struct world w;
	struct mtp p;

	(void)state;
	begin(&w);
	for (unsigned int i = 0; i < ARRAY_SIZE(flood); i++) {
		flood[i] = connect_to(w.path);
		if (i % 3 == 0 && flood[i] >= 0)
			(void)!send(flood[i], "rubbish", 7, MSG_NOSIGNAL);
		(void)ttmon_mt_listen_work(w.l, &w.sink);
		assert_true(ttmon_mt_listen_channels(w.l) <= 16);
	}
	setup(&p);
	put(&p, 5);
	mtp_done(&p);
	sock = mtp_hello(&p, w.path, p.fd);
	assert_true(sock >= 0);
	work(&w);
	assert_int_equal(w.n, 5);
	assert_int_equal(mtp_answer(sock), 0);
	/* Its notes are bounded too. */
	assert_true(strlen(w.notes) < 4000);
	for (unsigned int i = 0; i < ARRAY_SIZE(flood); i++)
		if (flood[i] >= 0)
			close(flood[i]);
	close(sock);
	work_until_none(&w, 5000);
	mtp_free(&p);
	end(&w);
}

static void there_is_room_for_64(void **state)
{
	int socks[TTMON_MT_MAX_CHANNELS + 1];
	struct world w;
	struct mtp p;

	(void)state;
	begin(&w);
	setup(&p);
	for (unsigned int i = 0; i < ARRAY_SIZE(socks); i++) {
		socks[i] = mtp_hello(&p, w.path, p.fd);
		assert_true(socks[i] >= 0);
		work(&w);
		assert_int_equal(mtp_answer(socks[i]), i < TTMON_MT_MAX_CHANNELS ? 0 : -EMFILE);
	}
	assert_int_equal(ttmon_mt_listen_channels(w.l), TTMON_MT_MAX_CHANNELS);
	/* One process, so its sites are known once. */
	assert_int_equal(w.dict.dict.nr_sites, 1);
	assert_int_equal(ttmon_mt_listen_finish(w.l, &w.sink), 0);
	assert_int_equal(ttmon_mt_listen_channels(w.l), 0);
	assert_true(w.stats.cut);
	for (unsigned int i = 0; i < ARRAY_SIZE(socks); i++)
		close(socks[i]);
	mtp_free(&p);
	end(&w);
}

/* One user may not have all places; another user still gets one. */
static void a_user_has_some_of_them(void **state)
{
	int socks[TTMON_MT_USER_CHANNELS + 4], other;
	struct world w;
	struct mtp p;

	(void)state;
	if (geteuid())
		skip();
	begin(&w);
	setup(&p);
	assert_int_equal(chmod(w.dir, 0711) | chmod(w.path, 0666), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(socks); i++) {
		assert_int_equal(seteuid(4242), 0);
		socks[i] = mtp_hello(&p, w.path, p.fd);
		assert_int_equal(seteuid(0), 0);
		assert_true(socks[i] >= 0);
		work(&w);
		assert_int_equal(mtp_answer(socks[i]), i < TTMON_MT_USER_CHANNELS ? 0 : -EMFILE);
	}
	assert_int_equal(ttmon_mt_listen_refused(w.l), 4);
	assert_non_null(strstr(w.notes, "user 4242 has 16 channels"));
	assert_null(strchr(strchr(w.notes, '\n') + 1, '\n'));
	other = mtp_hello(&p, w.path, p.fd);
	work(&w);
	assert_int_equal(mtp_answer(other), 0);
	assert_int_equal(ttmon_mt_listen_finish(w.l, &w.sink), 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(socks); i++)
		close(socks[i]);
	close(other);
	mtp_free(&p);
	end(&w);
}

/*
 * If there is no descriptor for a waiting client, the listener is not polled at once; the client is
 * accepted later.
 */
static void it_does_not_spin_without_descriptors(void **state)
{
	struct rlimit old, none;
	struct world w;
	struct mtp p;
	int sock, next;

	(void)state;
	begin(&w);
	setup(&p);
	put(&p, 3);
	sock = mtp_hello(&p, w.path, p.fd);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	next = dup(0);
	close(next);
	none = (struct rlimit){ (rlim_t)next, old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	work(&w);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_false(is_readable(&w));
	assert_non_null(strstr(w.notes, "cannot be let in"));
	work(&w);
	assert_int_equal(ttmon_mt_listen_channels(w.l), 0);
	usleep(1010000);
	work(&w);
	assert_int_equal(mtp_answer(sock), 0);
	assert_int_equal(w.n, 3);
	close(sock);
	mtp_free(&p);
	end(&w);
}

/* A channel that breaks the protocol goes, with a line; the others stay. */
static void a_broken_one_goes_alone(void **state)
{
	struct mtp p, q;
	struct world w;
	int a, b;

	(void)state;
	begin(&w);
	setup(&p);
	setup(&q);
	a = mtp_hello(&p, w.path, p.fd);
	b = mtp_hello(&q, w.path, q.fd);
	work(&w);
	((uint32_t *)(void *)mtp_unit(&p, 0, 0))[7] = 77;
	put(&q, 3);
	work(&w);
	assert_int_equal(ttmon_mt_listen_channels(w.l), 1);
	assert_int_equal(w.n, 3);
	assert_non_null(strstr(w.notes, "broken"));
	assert_int_equal(p.head->consumer, 0);
	/* What the sink says is said on. */
	put(&q, 1);
	w.fail = -ENOSPC;
	assert_int_equal(ttmon_mt_listen_work(w.l, &w.sink), -ENOSPC);
	/* Where there is no memory for one it goes, so that it does not keep the others. */
	put(&q, 1);
	w.fail = -ENOMEM;
	assert_int_equal(ttmon_mt_listen_work(w.l, &w.sink), 0);
	assert_int_equal(ttmon_mt_listen_channels(w.l), 0);
	assert_non_null(strstr(w.notes, "no memory"));
	close(a);
	close(b);
	mtp_free(&p);
	mtp_free(&q);
	end(&w);
}

static void refused(const char *path, int err, const char *word)
{
	struct ttmon_mt_listen *l = NULL;
	char why[200] = "";

	assert_int_equal(ttmon_mt_listen_new(path, 0600, &l, why, sizeof(why)), err);
	assert_null(l);
	if (!strstr(why, word) || !strstr(why, path))
		fail_msg("%s: not about %s", why, word);
}

static void paths(void **state)
{
	struct ttmon_mt_listen *l;
	char path[128], why[200], *longest;
	struct world w;
	struct stat st;
	int fd;

	(void)state;
	begin(&w);
	refused(w.path, -EADDRINUSE, "listens there");
	snprintf(path, sizeof(path), "%s/file", w.dir);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
	refused(path, -EEXIST, "no socket");
	assert_int_equal(unlink(path), 0);
	refused("/nowhere/at/all", -ENOENT, "No such file");
	longest = malloc(300);
	memset(longest, 'x', 299);
	longest[299] = '\0';
	assert_int_equal(ttmon_mt_listen_new(longest, 0600, &l, why, sizeof(why)), -ENAMETOOLONG);
	free(longest);

	/* Left by one that was killed: taken over. Ours stays when the old one is freed. */
	assert_int_equal(rename(w.path, path), 0);
	ttmon_mt_listen_free(w.l);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(rename(path, w.path), 0);
	if (ttmon_mt_listen_new(w.path, 0666, &w.l, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(stat(w.path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0666);
	end(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_channel_comes_and_goes),
		cmocka_unit_test(who_is_killed_loses_nothing_that_was_committed),
		cmocka_unit_test(who_has_nothing_to_say_is_refused),
		cmocka_unit_test(a_flood_takes_no_places),
		cmocka_unit_test(there_is_room_for_64),
		cmocka_unit_test(a_user_has_some_of_them),
		cmocka_unit_test(it_does_not_spin_without_descriptors),
		cmocka_unit_test(a_broken_one_goes_alone),
		cmocka_unit_test(paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
