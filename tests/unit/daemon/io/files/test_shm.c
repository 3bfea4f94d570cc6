// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_shm.c: the segment of closed slots, io/files/shm.c against the reader of <ttmon/shm.h>. What is
 * published is what is read, completely or not at all, while a writer runs at full speed. A reader
 * that is behind gets to know how far. No content of a file harms a reader.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <ttmon/shm.h>

#include "daemon/io/files/shm.h"
#include "lib/os/clock.h"

static char dir[64], path[96];
static struct ttmon_shm *shm;

static int setup(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/dev/shm/ttmon-test-XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/ttmon.v1", dir);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ttmon_shm_free(shm);
	shm = NULL;
	unlink(path);
	return rmdir(dir);
}

static int try_new(uint32_t slots, uint32_t rows, char why[300])
{
	const struct ttmon_shm_cfg cfg = { .root = dir, .group = "no-such-group-here", .slots = slots, .rows = rows };

	return ttmon_shm_new(&cfg, &shm, why, 300);
}

static void start(uint32_t slots, uint32_t rows)
{
	char why[300];

	assert_int_equal(try_new(slots, rows, why), 0);
}

/* Every word is computed from the slot's number, so that a mixture of two slots is detected. */
static uint64_t word_of(uint64_t no, size_t i)
{
	return (no << 16) + i;
}

static size_t rows_of(uint64_t no, uint32_t max)
{
	return no * 7 % (max + 1);
}

static void make_slot(uint64_t no, struct ttmon_slot *slot, struct ttmon_slot_row *rows, size_t n)
{
	uint64_t words[sizeof(*slot) / 8], row[sizeof(*rows) / 8];

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = word_of(no, i);
	memcpy(slot, words, sizeof(words));
	slot->no = no;
	slot->nr_rows = (uint32_t)n;
	for (size_t k = 0; k < n; k++) {
		for (size_t i = 0; i < ARRAY_SIZE(row); i++)
			row[i] = word_of(no, 100 + k);
		memcpy(&rows[k], row, sizeof(row));
		rows[k].comm[15] = '\0';
	}
}

static bool is_whole(uint64_t no, const struct ttmon_slot *slot, const struct ttmon_slot_row *rows, size_t n)
{
	static _Thread_local struct ttmon_slot_row want_rows[512];
	struct ttmon_slot want;

	make_slot(no, &want, want_rows, n);
	return !memcmp(slot, &want, sizeof(want)) && (!n || !memcmp(rows, want_rows, n * sizeof(*rows)));
}

static void publish(uint64_t no, size_t n)
{
	static struct ttmon_slot_row rows[512];
	struct ttmon_slot slot;

	make_slot(no, &slot, rows, n);
	ttmon_shm_publish(shm, &slot, rows, n);
}

/* ---- in turn ---- */

static void test_in_turn(void **state)
{
	struct ttmon_shm_reader r;
	struct ttmon_slot slot;
	struct ttmon_slot_row rows[8];
	struct stat st;

	(void)state;
	start(16, 8);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_true((uint64_t)st.st_blocks * 512 >= (uint64_t)st.st_size);
	assert_int_equal(ttmon_shm_open(path, &r), 0);
	assert_int_equal(ttmon_shm_next(&r, &slot, rows, 8), 0);
	for (uint64_t no = 1000; no < 1100; no++) {
		publish(no, rows_of(no, 8));
		assert_int_equal(ttmon_shm_next(&r, &slot, rows, 8), 1);
		assert_true(is_whole(no, &slot, rows, rows_of(no, 8)));
		assert_int_equal(ttmon_shm_next(&r, &slot, rows, 8), 0);
	}
	assert_int_equal(TTMON_SHM_HEAD(&r, newest), 1099);
	assert_true(ttmon_shm_age_ns(&r) < 10 * NSEC_PER_SEC);

	/* Less room than rows: the number of rows shows it, and memory behind the room is not touched. */
	publish(1100, 8);
	memset(rows, 0x55, sizeof(rows));
	assert_int_equal(ttmon_shm_next(&r, &slot, rows, 3), 1);
	assert_int_equal(slot.nr_rows, 8);
	assert_int_equal(rows[2].start_ns, word_of(1100, 102));
	assert_int_equal(rows[3].start_ns, 0x5555555555555555);

	/* The remaining slots are read, then comes the end. */
	publish(1101, 0);
	ttmon_shm_free(shm);
	shm = NULL;
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(ttmon_shm_next(&r, &slot, rows, 8), 1);
	assert_int_equal(slot.no, 1101);
	assert_int_equal(ttmon_shm_next(&r, &slot, rows, 8), -EPIPE);
	assert_int_equal(ttmon_shm_next(&r, &slot, rows, 8), -EPIPE);
	ttmon_shm_close(&r);
	ttmon_shm_close(&r);
	assert_int_equal(ttmon_shm_open(path, &r), -ENOENT);
}

static void test_begin_and_overrun(void **state)
{
	struct ttmon_shm_reader r;
	struct ttmon_slot slot;
	struct ttmon_slot_row rows[4];
	uint64_t at;

	(void)state;
	start(16, 4);
	for (uint64_t no = 0; no < 100; no++)
		publish(no, 2);
	/* It starts at the newest slot, or, when rewound, at the oldest that is kept. */
	assert_int_equal(ttmon_shm_open(path, &r), 0);
	assert_int_equal(ttmon_shm_next(&r, &slot, rows, 4), 1);
	assert_int_equal(slot.no, 99);
	ttmon_shm_rewind(&r);
	for (uint64_t no = 84; no < 100; no++) {
		assert_int_equal(ttmon_shm_next(&r, &slot, rows, 4), 1);
		assert_true(is_whole(no, &slot, rows, 2));
	}
	assert_int_equal(ttmon_shm_next(&r, &slot, rows, 4), 0);
	/* As many as there are entries: none is missed. With one more some are missed, and counted. */
	for (uint64_t no = 100; no < 116; no++)
		publish(no, 1);
	assert_int_equal(ttmon_shm_next(&r, &slot, rows, 4), 1);
	assert_int_equal(slot.no, 100);
	publish(116, 1);
	publish(117, 1);
	at = r.next;
	assert_int_equal(ttmon_shm_next(&r, &slot, rows, 4), -EOVERFLOW);
	assert_true(r.missed >= 1 && r.missed <= 8);
	assert_int_equal(r.next, at + r.missed);
	assert_int_equal(ttmon_shm_next(&r, &slot, rows, 4), 1);
	assert_int_equal(slot.no, at + r.missed);
	ttmon_shm_close(&r);
}

/* More rows than fit: the first ones, idle, and one with the sum of all others; nothing is lost. */
static void test_cut(void **state)
{
	struct ttmon_slot_row rows[20] = { 0 }, got[20];
	struct ttmon_slot slot = { .no = 5, .user_ns = 1 };
	struct ttmon_shm_reader r;
	uint64_t sum = 0, ctr = 0, bytes = 0, got_sum = 0, got_ctr = 0, got_bytes = 0;

	(void)state;
	for (uint32_t i = 0; i < 20; i++) {
		rows[i] = (struct ttmon_slot_row){ .tgid = i + 1,
						   .cls = i == 19  ? TTMON_ROW_IDLE
							  : i == 2 ? TTMON_ROW_OTHER
								   : TTMON_ROW_USER,
						   .cpu_ns = 1000 - i,
						   .ctr = { i, 2 * i, 3 * i, 4 * i },
						   .mbm_total = i,
						   .copy_bytes = i,
						   .pinned_bytes = i,
						   .rdt_ns = i,
						   .switches = 1 };
		sum += rows[i].cpu_ns;
		ctr += rows[i].ctr[3];
		bytes += rows[i].mbm_total + rows[i].copy_bytes + rows[i].pinned_bytes;
	}
	start(4, 6);
	assert_int_equal(ttmon_shm_open(path, &r), 0);
	ttmon_shm_publish(shm, &slot, rows, 20);
	assert_int_equal(ttmon_shm_next(&r, &slot, got, 20), 1);
	assert_int_equal(slot.nr_rows, 6);
	assert_true(slot.flags & TTMON_SLOT_ROWS_CUT);
	assert_int_equal(slot.user_ns, 1);
	assert_memory_equal(got, rows, 2 * sizeof(*rows));
	assert_memory_equal(got + 2, rows + 3, 2 * sizeof(*rows)); /* there is only one of class OTHER */
	assert_memory_equal(got + 4, rows + 19, sizeof(*rows));
	assert_int_equal(got[5].cls, TTMON_ROW_OTHER);
	assert_int_equal(got[5].rdt_ns, 18);
	assert_int_equal(got[5].switches, 15);
	for (size_t i = 0; i < 6; i++) {
		got_sum += got[i].cpu_ns;
		got_ctr += got[i].ctr[3];
		got_bytes += got[i].mbm_total + got[i].copy_bytes + got[i].pinned_bytes;
	}
	assert_int_equal(got_sum, sum);
	assert_int_equal(got_ctr, ctr);
	assert_int_equal(got_bytes, bytes);
	/* Exactly as many as fit are not cut. */
	slot = (struct ttmon_slot){ .no = 6 };
	ttmon_shm_publish(shm, &slot, rows, 6);
	assert_int_equal(ttmon_shm_next(&r, &slot, got, 20), 1);
	assert_int_equal(slot.flags, 0);
	assert_memory_equal(got, rows, 6 * sizeof(*rows));
	ttmon_shm_close(&r);
	/* Room for one. */
	ttmon_shm_free(shm);
	start(4, 1);
	assert_int_equal(ttmon_shm_open(path, &r), 0);
	ttmon_shm_publish(shm, &slot, rows, 20);
	assert_int_equal(ttmon_shm_next(&r, &slot, got, 20), 1);
	assert_int_equal(slot.nr_rows, 1);
	assert_int_equal(got[0].cpu_ns, sum);
	ttmon_shm_close(&r);
}

/* ---- concurrently ---- */

#define RACE_SLOTS 200000u

struct race {
	uint64_t read, missed, bad, order;
	bool slow;
};

static void *reader_main(void *arg)
{
	struct race *c = arg;
	struct ttmon_slot_row rows[16];
	struct ttmon_shm_reader r;
	struct ttmon_slot slot;
	uint64_t last = 0;
	int got = ttmon_shm_open(path, &r);

	if (got)
		return NULL;
	r.next = 0;
	while (got != -EPIPE) {
		got = ttmon_shm_next(&r, &slot, rows, 16);
		if (got == -EOVERFLOW)
			c->missed += r.missed;
		if (got != 1)
			continue;
		c->read++;
		c->bad += !is_whole(slot.no, &slot, rows, rows_of(slot.no, 16));
		c->order += slot.no != r.next - 1 || (c->read > 1 && slot.no <= last);
		last = slot.no;
		if (c->slow && c->read % 8 == 0)
			usleep(10);
	}
	ttmon_shm_close(&r);
	return NULL;
}

/*
 * A writer that does not wait, and readers close behind it: no slot is a mixture, and read + missed is
 * the number of published slots.
 */
static void test_race(void **state)
{
	struct race c[2] = { { .slow = false }, { .slow = true } };
	pthread_t threads[2];

	(void)state;
	start(8, 16);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reader_main, &c[i]), 0);
	for (uint64_t no = 0; no < RACE_SLOTS; no++) {
		publish(no, rows_of(no, 16));
		if (no % 1000 == 0)
			usleep(50);
	}
	ttmon_shm_free(shm);
	shm = NULL;
	for (size_t i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(c[i].bad, 0);
		assert_int_equal(c[i].order, 0);
		assert_int_equal(c[i].read + c[i].missed, RACE_SLOTS);
		assert_true(c[i].read > 100);
	}
	/* Otherwise this test has shown nothing. */
	assert_true(c[0].missed + c[1].missed > 0);
}

/* ---- existing files ---- */

static void put_file(const void *p, size_t n, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, p, n), n);
	close(fd);
}

static void assert_refused(int err)
{
	char why[300];

	assert_int_equal(try_new(4, 4, why), err);
	assert_null(shm);
	assert_non_null(strstr(why, path));
	assert_null(strchr(why, '\n'));
}

static void test_taken(void **state)
{
	struct stat st, after;
	char target[128];

	(void)state;
	/* A different file stays as it is. */
	put_file("precious", 8, 0644);
	assert_refused(-EEXIST);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_size, 8);
	unlink(path);
	/* A link is not followed. */
	snprintf(target, sizeof(target), "%s/target", dir);
	assert_int_equal(symlink(target, path), 0);
	assert_refused(-EEXIST);
	assert_int_equal(access(target, F_OK), -1);
	unlink(path);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_refused(-EEXIST);
	rmdir(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_refused(-EEXIST);
	unlink(path);
	/* A segment of ttmond whose writer is alive: this process. */
	start(4, 4);
	{
		struct ttmon_shm *first = shm;
		char why[300];

		shm = NULL;
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(try_new(4, 4, why), -EBUSY);
		assert_non_null(strstr(why, "another ttmond"));
		assert_int_equal(stat(path, &after), 0);
		assert_int_equal(after.st_ino, st.st_ino);
		shm = first;
	}
	/* A file that belongs neither to root nor to this user. */
	if (geteuid() == 0) {
		struct ttmon_shm_reader r;

		assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
		assert_int_equal(ttmon_shm_open(path, &r), -EPERM);
		ttmon_shm_free(shm);
		shm = NULL;
		put_file("precious", 8, 0644);
		assert_int_equal(chown(path, 12345, (gid_t)-1), 0);
		assert_refused(-EEXIST);
	}
}

/*
 * A daemon that was killed: its readers get to know it when the next one starts, and keep what they
 * have mapped.
 */
static void test_killed(void **state)
{
	struct ttmon_shm_reader r, second;
	struct ttmon_slot slot;
	struct ttmon_slot_row rows[4];
	pid_t pid = fork();
	int status;

	(void)state;
	if (!pid) {
		char why[300];

		if (try_new(8, 4, why))
			_exit(1);
		for (uint64_t no = 0; no < 3; no++)
			publish(no, 2);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(ttmon_shm_open(path, &r), 0);
	ttmon_shm_rewind(&r);
	assert_int_equal(ttmon_shm_next(&r, &slot, rows, 4), 1);
	start(16, 4);
	publish(77, 1);
	for (uint64_t no = 1; no < 3; no++) {
		assert_int_equal(ttmon_shm_next(&r, &slot, rows, 4), 1);
		assert_true(is_whole(no, &slot, rows, 2));
	}
	assert_int_equal(ttmon_shm_next(&r, &slot, rows, 4), -EPIPE);
	assert_int_equal(ttmon_shm_open(path, &second), 0);
	assert_int_equal(ttmon_shm_next(&second, &slot, rows, 4), 1);
	assert_int_equal(slot.no, 77);
	ttmon_shm_close(&second);
	ttmon_shm_close(&r);
	/* Another daemon has put its own file there: the end of the first leaves it alone. */
	unlink(path);
	put_file("other", 5, 0600);
	ttmon_shm_free(shm);
	shm = NULL;
	assert_int_equal(access(path, F_OK), 0);
}

/*
 * A process that has ended and has not been waited for: its number and its start time are still in
 * /proc.
 */
static void test_zombie(void **state)
{
	pid_t pid = fork();
	siginfo_t info;

	(void)state;
	if (!pid) {
		char why[300];

		_exit(try_new(4, 4, why) ? 1 : 0);
	}
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(info.si_status, 0);
	start(4, 4);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	ttmon_shm_free(shm);
	shm = NULL;
}

/* There is no room: one line is logged, and no file is left. */
static void test_full(void **state)
{
	char why[300];

	(void)state;
	if (mount("tmpfs", dir, "tmpfs", 0, "size=65536")) {
		print_message("# no mount here\n");
		skip();
	}
	{
		const int err = try_new(64, 64, why);
		const int left = rmdir(dir); /* busy: it is a mount point */

		assert_int_equal(err, -ENOSPC);
		assert_non_null(strstr(why, "No space left"));
		assert_int_equal(left, -1);
		assert_int_equal(access(path, F_OK), -1);
		snprintf(why, sizeof(why), "%s/.ttmon.v1.%d", dir, (int)getpid());
		assert_int_equal(access(why, F_OK), -1);
		/* A segment that fits works. */
		assert_int_equal(try_new(4, 8, why), 0);
		ttmon_shm_free(shm);
		shm = NULL;
		assert_int_equal(umount(dir), 0);
	}
}

/* ---- hostile files ---- */

static uint64_t seed = 12345;

static uint64_t rnd(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

/*
 * Whatever the file contains, the reader stays in its mapping (the values that it took from the head
 * are within it) and comes to an end.
 */
static void test_hostile(void **state)
{
	static uint8_t good[65536], bad[65536];
	struct ttmon_slot_row rows[64];
	struct ttmon_shm_reader r;
	struct ttmon_slot slot;
	size_t size, opened = 0;
	int fd;

	(void)state;
	start(4, 8);
	for (uint64_t no = 0; no < 6; no++)
		publish(no, 8);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	size = (size_t)read(fd, good, sizeof(good));
	close(fd);
	ttmon_shm_free(shm);
	shm = NULL;
	assert_true(size > sizeof(struct ttmon_shm_head) && size < sizeof(good));
	for (unsigned int i = 0; i < 20000; i++) {
		static const uint64_t edges[] = { 0, 1, 7, 8, UINT32_MAX, UINT64_MAX, 1ull << 63, 4096, 1ull << 32 };
		size_t n = rnd() % 4 ? size : rnd() % size;

		memcpy(bad, good, size);
		/* The words of the head, the sequence numbers, the number of rows. */
		for (unsigned int k = 0; k <= rnd() % 3; k++) {
			size_t at =
				rnd() % 4 ? rnd() % (sizeof(struct ttmon_shm_head) / 4) * 4 : rnd() % (size / 4) * 4;
			uint64_t v = rnd() % 2 ? edges[rnd() % ARRAY_SIZE(edges)] : rnd() % 5000;

			memcpy(bad + at, &v, rnd() % 2 || at + 8 > size ? 4 : 8);
		}
		put_file(bad, n, 0600);
		if (ttmon_shm_open(path, &r))
			continue;
		opened++;
		/* Memory behind a mapping may be readable too, so a read past its end need not fault. */
		assert_true(r.size == n && r.head_size + (uint64_t)r.entries * r.entry_size <= n);
		assert_true(8 + (uint64_t)r.slot_size + (uint64_t)r.rows * r.row_size <= r.entry_size);
		if (rnd() % 2)
			ttmon_shm_rewind(&r);
		for (int k = 0; k < 20; k++) {
			uint64_t before = r.next;
			int got = ttmon_shm_next(&r, &slot, rows, ARRAY_SIZE(rows));

			assert_true(got == 1 || got == 0 || got == -EPIPE || got == -EOVERFLOW);
			if (got == 1) {
				assert_true(slot.nr_rows <= r.rows);
				for (uint32_t j = 0; j < MIN(slot.nr_rows, ARRAY_SIZE(rows)); j++)
					assert_int_equal(rows[j].comm[15], 0);
			}
			/* It advances, or there is nothing to read. */
			assert_true(got <= 0 ? r.next >= before || got == -EOVERFLOW : r.next == before + 1);
		}
		ttmon_shm_close(&r);
	}
	assert_true(opened > 1000 && opened < 20000);
	put_file("", 0, 0600);
	assert_int_equal(ttmon_shm_open(path, &r), -EBADMSG);
	put_file(good, 100, 0600);
	assert_int_equal(ttmon_shm_open(path, &r), -EBADMSG);
	good[8]++;
	put_file(good, size, 0600);
	assert_int_equal(ttmon_shm_open(path, &r), -EPROTONOSUPPORT);
	unlink(path);
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_int_equal(ttmon_shm_open(path, &r), -ELOOP);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(ttmon_shm_open(path, &r), -EBADMSG);
}

/* A later version has longer slots and rows: this reader takes the part that it knows. */
static void test_longer(void **state)
{
	static uint8_t file[16384];
	struct ttmon_shm_head *h = (struct ttmon_shm_head *)(void *)file;
	struct ttmon_slot slot, want = { .no = 9, .nr_rows = 2 };
	struct ttmon_slot_row rows[2];
	struct ttmon_shm_reader r;
	const uint64_t seq = 2;

	(void)state;
	*h = (struct ttmon_shm_head){ .magic = TTMON_SHM_MAGIC,
				      .version = TTMON_SHM_VERSION,
				      .head_size = 256,
				      .size = sizeof(file),
				      .entries = 2,
				      .entry_size = 1024,
				      .slot_size = sizeof(slot) + 16,
				      .row_size = sizeof(rows[0]) + 8,
				      .rows = 2,
				      .state = TTMON_SHM_RUNNING,
				      .published = 1 };
	memcpy(file + 256, &seq, 8);
	memset(file + 264, 0xee, 700);
	memcpy(file + 264, &want, sizeof(want));
	for (size_t i = 0; i < 2; i++) {
		struct ttmon_slot_row row = { .tgid = (uint32_t)(50 + i), .switches = 3 };

		memcpy(file + 264 + sizeof(slot) + 16 + i * (sizeof(row) + 8), &row, sizeof(row));
	}
	put_file(file, sizeof(file), 0600);
	assert_int_equal(ttmon_shm_open(path, &r), 0);
	assert_int_equal(ttmon_shm_next(&r, &slot, rows, 2), 1);
	assert_memory_equal(&slot, &want, sizeof(want));
	assert_int_equal(rows[0].tgid, 50);
	assert_int_equal(rows[1].tgid, 51);
	assert_int_equal(rows[1].switches, 3);
	ttmon_shm_close(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_in_turn, setup, teardown),
		cmocka_unit_test_setup_teardown(test_begin_and_overrun, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cut, setup, teardown),
		cmocka_unit_test_setup_teardown(test_race, setup, teardown),
		cmocka_unit_test_setup_teardown(test_taken, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_zombie, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_longer, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
