// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_mmap2.c: io/objects/mmap2.c. The reader of records is tested on invented buffers, for any user.
 * If system-wide perf events may be opened, real records are tested too: a child loads a library with
 * dlopen(), in this mount namespace and in another one. Exit status 77 means that only the first part
 * could run.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>

#include "daemon/io/objects/mmap2.h"
#include "tests/unit/feed/own_mounts.h"

#define SIZE 4096u

struct fake {
	uint8_t data[SIZE] __attribute__((aligned(8)));
	uint8_t bounce[TTMON_MMAP2_BOUNCE] __attribute__((aligned(8)));
	uint64_t tail, head;
	struct ttmon_mmap2_stats stats;
	unsigned int calls;
	uint64_t sum_ts;
	char last[256];
	struct ttmon_mmap2_rec rec;
};

static void put(struct fake *f, const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		f->data[(f->head + i) % SIZE] = ((const uint8_t *)bytes)[i];
	f->head += n;
}

static void put_record(struct fake *f, uint32_t type, uint16_t misc, const void *body, size_t n, uint16_t lie)
{
	struct perf_event_header h = { .type = type, .misc = misc, .size = (uint16_t)(sizeof(h) + n + lie) };

	put(f, &h, sizeof(h));
	put(f, body, n);
}

/* pid, tid, ... are 1, 2, ... in the order of the record, so that each field can be identified. */
static void put_mmap2(struct fake *f, const char *name, uint64_t ts)
{
	struct {
		uint32_t pid, tid;
		uint64_t addr, len, pgoff;
		uint32_t maj, min;
		uint64_t ino, gen;
		uint32_t prot, flags;
		char name[200];
	} b = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, "" };
	size_t n = offsetof(__typeof__(b), name) + ROUND_UP(strlen(name) + 1, 8);

	snprintf(b.name, sizeof(b.name), "%s", name);
	memcpy((char *)&b + n, &ts, sizeof(ts));
	put_record(f, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, &b, n + sizeof(ts), 0);
}

static void on_fake(void *ctx, const struct ttmon_mmap2_rec *rec)
{
	struct fake *f = ctx;

	f->calls++;
	f->sum_ts += rec->ts_ns;
	f->rec = *rec;
	snprintf(f->last, sizeof(f->last), "%s", rec->filename);
}

static void consume(struct fake *f, bool loss_records)
{
	f->tail = ttmon_mmap2_consume(f->data, SIZE, f->tail, f->head, f->bounce, loss_records, on_fake, f, &f->stats);
	assert_true(f->tail == f->head);
}

static struct fake *new_fake(void)
{
	struct fake *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	return f;
}

static void test_fields(void **state)
{
	struct fake *f = new_fake();

	(void)state;
	put_mmap2(f, "/usr/lib/libcudart.so.12", 12);
	consume(f, true);
	assert_int_equal(f->calls, 1);
	assert_int_equal(f->stats.records, 1);
	assert_string_equal(f->last, "/usr/lib/libcudart.so.12");
	assert_int_equal(f->rec.pid, 1);
	assert_int_equal(f->rec.tid, 2);
	assert_int_equal(f->rec.addr, 3);
	assert_int_equal(f->rec.len, 4);
	assert_int_equal(f->rec.pgoff, 5);
	assert_int_equal(f->rec.maj, 6);
	assert_int_equal(f->rec.min, 7);
	assert_int_equal(f->rec.ino, 8);
	assert_int_equal(f->rec.ino_generation, 9);
	assert_int_equal(f->rec.prot, 10);
	assert_int_equal(f->rec.flags, 11);
	assert_int_equal(f->rec.ts_ns, 12);
	free(f);
}

/* Every place in the buffer at which a record can wrap, with both positions passing 2^64. */
static void test_wrap(void **state)
{
	struct fake *f = new_fake();

	(void)state;
	f->head = f->tail = UINT64_MAX - 40 * SIZE + 1;
	for (uint64_t i = 0; i < 80 * SIZE / 96; i++) {
		unsigned int before = f->calls;

		put_mmap2(f, i % 2 ? "/a" : "/a/longer/name/of/a/file", i);
		consume(f, true);
		assert_int_equal(f->calls, before + 1);
		assert_int_equal(f->rec.ts_ns, i);
		assert_string_equal(f->last, i % 2 ? "/a" : "/a/longer/name/of/a/file");
	}
	assert_int_equal(f->stats.malformed, 0);
	free(f);
}

static void test_lost_and_others(void **state)
{
	uint64_t lost[3] = { 77, 5, 0 }, other[4] = { 0 };
	struct fake *f = new_fake();

	(void)state;
	put_record(f, PERF_RECORD_LOST, 0, lost, sizeof(lost), 0);
	put_record(f, PERF_RECORD_FORK, 0, other, sizeof(other), 0);
	put_mmap2(f, "x", 1);
	consume(f, true);
	assert_int_equal(f->stats.lost, 5);
	assert_int_equal(f->calls, 1);
	put_record(f, PERF_RECORD_LOST, 0, lost, sizeof(lost), 0);
	consume(f, false);
	assert_int_equal(f->stats.lost, 5);
	assert_int_equal(f->stats.malformed, 0);
	free(f);
}

static void test_malformed(void **state)
{
	uint8_t body[256];
	uint64_t refused = 0;
	struct fake *f = new_fake();

	(void)state;
	memset(body, 'x', sizeof(body));

	/* Cut off, unaligned, empty, or larger than the data: nothing behind such a record is usable. */
	put_record(f, PERF_RECORD_MMAP2, 0, body, 80, 8);
	consume(f, true);
	assert_int_equal(f->stats.malformed, ++refused);
	put_record(f, PERF_RECORD_MMAP2, 0, body, 80, 4);
	put_mmap2(f, "behind", 1);
	consume(f, true);
	assert_int_equal(f->stats.malformed, ++refused);
	put_record(f, PERF_RECORD_MMAP2, 0, body, 0, (uint16_t)-8);
	put_mmap2(f, "behind", 1);
	consume(f, true);
	assert_int_equal(f->stats.malformed, ++refused);
	f->head += 4;
	consume(f, true);
	assert_int_equal(f->stats.malformed, ++refused);
	f->head = f->tail = 0;
	f->head = SIZE + 8;
	consume(f, true);
	assert_int_equal(f->stats.malformed, ++refused);
	assert_int_equal(f->calls, 0);

	/*
	 * A valid size, but without a name, with an unterminated name, or with a build id: only this record is
	 * refused.
	 */
	f->head = f->tail = 0;
	put_record(f, PERF_RECORD_MMAP2, 0, body, 72, 0);
	put_record(f, PERF_RECORD_MMAP2, 0, body, 128, 0);
	put_record(f, PERF_RECORD_MMAP2, 0, body, 16, 0);
	memset(body, 0, sizeof(body));
	put_record(f, PERF_RECORD_MMAP2, PERF_RECORD_MISC_MMAP_BUILD_ID, body, 128, 0);
	put_record(f, PERF_RECORD_LOST, 0, body, 8, 0);
	put_mmap2(f, "good", 1);
	consume(f, true);
	assert_int_equal(f->stats.malformed, refused + 5);
	assert_int_equal(f->calls, 1);
	assert_string_equal(f->last, "good");
	free(f);
}

static void test_cpu_list(void **state)
{
	static const char *const bad[] = {
		"x", "-1", "0-", "3-1", "0,,1", "0 1", "8", "0-8", "0-99999999999999999999", "1-+2"
	};
	bool set[8];

	(void)state;
	assert_int_equal(ttmon_mmap2_parse_cpus("0-2,5,7\n", set, ARRAY_SIZE(set)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(set); i++)
		assert_int_equal(set[i], i <= 2 || i == 5 || i == 7);
	assert_int_equal(ttmon_mmap2_parse_cpus("", set, ARRAY_SIZE(set)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(set); i++)
		assert_false(set[i]);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		if (ttmon_mmap2_parse_cpus(bad[i], set, ARRAY_SIZE(set)) != -EBADMSG)
			fail_msg("accepted: %s", bad[i]);
	}
}

/* ---- with the kernel ---- */

struct wanted {
	uint32_t pid;
	ino_t ino;
	dev_t dev;
	unsigned int seen;
	uint64_t from_ns, to_ns;
	char name[256];
};

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void on_real(void *ctx, const struct ttmon_mmap2_rec *rec)
{
	struct wanted *w = ctx;

	if (rec->pid != w->pid || rec->ino != w->ino || makedev(rec->maj, rec->min) != w->dev)
		return;
	w->seen++;
	assert_true(rec->prot & PROT_EXEC);
	assert_true(rec->ts_ns >= w->from_ns && rec->ts_ns <= now_ns());
	assert_true(rec->len >= 4096);
	snprintf(w->name, sizeof(w->name), "%s", rec->filename);
}

/*
 * The child maps a file executable, and once more not executable: n times each. It does so in a mount
 * namespace of its own if bind_to is set.
 */
static int play(const char *file, const char *bind_to, int n)
{
	bool not_here;

	if (bind_to && !own_mounts(&not_here))
		return not_here ? NO_OWN_MOUNTS : 1;
	if (bind_to && mount(file, bind_to, NULL, MS_BIND, NULL))
		return 1;
	for (int i = 0; i < n; i++) {
		int fd = open(bind_to ? bind_to : file, O_RDONLY | O_CLOEXEC);
		void *exec = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		void *data = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);

		if (exec == MAP_FAILED || data == MAP_FAILED)
			return 2;
		munmap(exec, 4096);
		munmap(data, 4096);
		close(fd);
	}
	return 0;
}

/* Returns false if the child cannot have a mount namespace of its own here. */
static bool map_in_child(struct ttmon_mmap2 *m, const char *file, const char *bind_to, int n, struct wanted *w)
{
	struct pollfd pfd = { .fd = ttmon_mmap2_fd(m), .events = POLLIN };
	struct stat st;
	int status;

	assert_int_equal(stat(file, &st), 0);
	w->ino = st.st_ino;
	w->dev = st.st_dev;
	w->seen = 0;
	w->from_ns = now_ns();
	w->pid = (uint32_t)fork();
	if (w->pid == 0)
		_exit(play(file, bind_to, n));
	assert_int_equal(waitpid((pid_t)w->pid, &status, 0), w->pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == NO_OWN_MOUNTS)
		return false;
	assert_int_equal(status, 0);
	assert_int_equal(poll(&pfd, 1, 1000), 1);
	ttmon_mmap2_drain(m, on_real, w);
	return true;
}

/* file: "/tmp/ttmon-mmap2-XXXXXX" */
static void make_page(char *file)
{
	char page[4096] = "";
	int fd = mkostemp(file, O_CLOEXEC);

	assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
	close(fd);
}

static void test_child(void **state)
{
	char file[] = "/tmp/ttmon-mmap2-XXXXXX";
	struct ttmon_mmap2_stats stats;
	struct ttmon_mmap2 *m;
	struct wanted w;

	(void)state;
	make_page(file);
	assert_int_equal(ttmon_mmap2_new(64, &m), 0);
	assert_int_equal(ttmon_mmap2_cpus(m), sysconf(_SC_NPROCESSORS_ONLN));

	assert_true(map_in_child(m, file, NULL, 3, &w));
	assert_int_equal(w.seen, 3);
	assert_string_equal(w.name, file);

	/* Nothing changed: the same CPUs, and the content of the buffers stays. */
	assert_int_equal(ttmon_mmap2_refresh(m), 0);
	assert_int_equal(ttmon_mmap2_cpus(m), sysconf(_SC_NPROCESSORS_ONLN));
	ttmon_mmap2_get_stats(m, &stats);
	assert_true(stats.records >= 3);
	assert_int_equal(stats.lost, 0);
	assert_int_equal(stats.malformed, 0);
	ttmon_mmap2_free(m);
	ttmon_mmap2_free(NULL);
	unlink(file);
}

/* In another mount namespace the name differs, but the inode does not. */
static void test_child_with_own_mounts(void **state)
{
	char file[] = "/tmp/ttmon-mmap2-XXXXXX", other[] = "/tmp/ttmon-mmap2-XXXXXX";
	struct ttmon_mmap2_stats stats;
	struct ttmon_mmap2 *m;
	struct wanted w;
	bool seen;

	(void)state;
	make_page(file);
	make_page(other);
	assert_int_equal(ttmon_mmap2_new(64, &m), 0);
	seen = map_in_child(m, file, other, 2, &w);
	ttmon_mmap2_get_stats(m, &stats);
	ttmon_mmap2_free(m);
	unlink(file);
	unlink(other);
	if (!seen) {
		print_message("SKIP: in this chroot \"/\" is no mount point, so there is no private mount namespace\n");
		skip();
	}
	assert_int_equal(w.seen, 2);
	assert_string_equal(w.name, other);
	assert_true(stats.records >= 2);
	assert_int_equal(stats.lost, 0);
	assert_int_equal(stats.malformed, 0);
}

/* One page holds about 40 records: the exact number of records that do not fit is counted. */
static void test_loss_is_counted(void **state)
{
	const unsigned int total = 300;
	struct ttmon_mmap2_stats stats;
	struct ttmon_mmap2 *m;
	struct wanted w;

	(void)state;
	assert_int_equal(ttmon_mmap2_new(1, &m), 0);
	assert_true(map_in_child(m, "/proc/self/exe", NULL, (int)total, &w));
	ttmon_mmap2_get_stats(m, &stats);
	assert_true(w.seen > 0 && w.seen < total);
	assert_true(stats.lost >= total - w.seen);
	assert_int_equal(stats.malformed, 0);
	ttmon_mmap2_free(m);
}

static void test_arguments(void **state)
{
	struct ttmon_mmap2 *m = (void *)state;

	assert_int_equal(ttmon_mmap2_new(0, &m), -EINVAL);
	assert_int_equal(ttmon_mmap2_new(3, &m), -EINVAL);
	assert_ptr_equal(m, state);
}

int main(void)
{
	const struct CMUnitTest pure[] = {
		cmocka_unit_test(test_fields),		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_lost_and_others), cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_cpu_list),	cmocka_unit_test(test_arguments),
	};
	const struct CMUnitTest real[] = {
		cmocka_unit_test(test_child),
		cmocka_unit_test(test_child_with_own_mounts),
		cmocka_unit_test(test_loss_is_counted),
	};
	struct ttmon_mmap2 *m = NULL;
	int failed = cmocka_run_group_tests_name("mmap2", pure, NULL, NULL), err;

	if (failed)
		return failed;
	err = ttmon_mmap2_new(1, &m);
	ttmon_mmap2_free(m);
	if (err) {
		printf("SKIP: no system-wide perf events for us: %s\n", strerror(-err));
		return 77;
	}
	return cmocka_run_group_tests_name("mmap2 with the kernel", real, NULL, NULL);
}
