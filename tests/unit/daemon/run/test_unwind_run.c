// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_unwind_run.c: the daemon's side of the process that unwinds, with that process: its files, and
 * what happens when one of them hangs. Time stands still but where a test moves it.
 *
 * Both are part of the daemon, not of the archive that unit tests are linked with: their sources are
 * included.
 */
#include "tests/unit/feed/unwinder.h"

static uint64_t now_ns = 1000 * NSEC_PER_SEC;

static uint64_t fake_ns(void)
{
	return now_ns;
}

#define ttmon_mono_ns fake_ns
#define take	      part_take
#define receive	      part_receive
#define set_up	      part_set_up
#include "daemon/run/pynames.c"
#include "daemon/run/unwind.c"
#undef ttmon_mono_ns

#define TGID   7u
#define OBJECT 5u

static struct unwind *w;
static struct ttmon_ev_unwound told;
static unsigned int nr_told, nr_asked;
static uint64_t nr_copied;
static enum ttmon_stack_copying copying;
static bool hangs;

/* ---- the run that this is a part of ---- */

const struct ttmon_opts *ttmon_daemon_opts(const struct ttmon_daemon *c _unused_)
{
	static const struct ttmon_opts opts = { .stack_frames = 8 };

	return &opts;
}

void *ttmon_daemon_part(const struct ttmon_daemon *c _unused_, const struct ttmon_part *part _unused_)
{
	return w;
}

struct ttmon_bpf *ttmon_daemon_bpf(const struct ttmon_daemon *c _unused_)
{
	return (struct ttmon_bpf *)&shared;
}

struct ttmon_discover *ttmon_daemon_discover(const struct ttmon_daemon *c _unused_)
{
	return NULL;
}

void ttmon_bpf_stacks(struct ttmon_bpf *b _unused_, enum ttmon_stack_copying state)
{
	copying = state;
}

void ttmon_bpf_stack_counts(const struct ttmon_bpf *b _unused_, uint64_t *copied, uint64_t *lost)
{
	*copied = nr_copied;
	*lost = 0;
}

int ttmon_bpf_stack_ring(const struct ttmon_bpf *b _unused_)
{
	static int fd = -1;

	if (fd < 0)
		fd = eventfd(0, EFD_CLOEXEC);
	return fd;
}

void ttmon_bpf_confirm_chain(struct ttmon_bpf *b _unused_, uint64_t chain _unused_)
{
}

void ttmon_bpf_codes_again(struct ttmon_bpf *b _unused_)
{
}

uint32_t ttmon_discover_number(struct ttmon_discover *d _unused_)
{
	static uint32_t n;

	return ++n;
}

void ttmon_hot_ask(struct ttmon_asker *a _unused_, uint32_t tgid _unused_, const void *body _unused_, size_t n _unused_)
{
}

int ttmon_daemon_watch(struct ttmon_daemon *c _unused_, int fd)
{
	return fd >= 0 ? 0 : -EBADF;
}

void ttmon_daemon_work(struct ttmon_daemon *c _unused_, int fd, unsigned int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	(void)poll(&p, 1, (int)ms);
}

void ttmon_daemon_fact(void *ctx _unused_, const void *rec, size_t size)
{
	assert_true(size >= sizeof(told));
	memcpy(&told, rec, sizeof(told));
	nr_told++;
}

void ttmon_daemon_list(void *ctx _unused_, uint32_t tgid)
{
	const struct ttmon_ev_map m = {
		.h = { .kind = TTMON_EV_MAP, .tgid = tgid, .ts_ns = ttmon_clock_ns(CLOCK_MONOTONIC) },
		.start = CODE,
		.end = CODE + EH_SIZE,
		.object = OBJECT,
		.prot = 5,
	};

	ttmon_part_unwind.fact(w, &m, sizeof(m));
}

void ttmon_discover_each_followed(struct ttmon_discover *d _unused_, void (*cb)(void *ctx, uint32_t tgid), void *ctx)
{
	cb(ctx, TGID);
}

const char *ttmon_discover_path(const struct ttmon_discover *d _unused_, uint32_t id _unused_)
{
	return "FILE";
}

/* As a helper does it. */
void ttmon_discover_hand(struct ttmon_discover *d _unused_, uint32_t id, int to)
{
	_cleanup_close_ int file = hangs ? memfd_create("hangs", MFD_CLOEXEC) : image();

	assert_int_equal(id, OBJECT);
	nr_asked++;
	assert_int_equal(ttmon_unwinder_send(to, "", 1, file, true), 0);
}

/* ---- tests ---- */

static int begin(void **state _unused_)
{
	void *part = NULL;

	nr_told = nr_asked = 0;
	nr_copied = 0;
	hangs = false;
	if (make_ring() || ttmon_part_unwind.configure(NULL, &part, NULL) || !part)
		return -1;
	w = part;
	if (ttmon_part_unwind.load(NULL, &part) || copying != TTMON_STACKS_ON)
		return -1;
	ttmon_daemon_list(NULL, TGID);
	return 0;
}

static int end(void **state _unused_)
{
	munmap((void *)w->reads, sizeof(*w->reads));
	ttmon_part_unwind.free(w);
	return munmap(shared.consumer, RING + 4096);
}

static void copies(uint64_t id)
{
	put_copy(TGID, id);
	nr_copied++;
	ttmon_part_unwind.request(w, &(struct ttmon_request){ .kind = TTMON_REQ_PART });
}

/* Goes on until it has said what this stack is. */
static void until_told(uint64_t id)
{
	while (!nr_told || told.stack != id) {
		ttmon_daemon_work(NULL, w->sock, 10);
		ttmon_part_unwind.tick(w);
		assert_true(w->sock >= 0);
	}
}

static void files(void **state _unused_)
{
	copies(1);
	until_told(1);
	assert_int_equal(told.end, TTMON_STACK_COMPLETE);
	copies(2);
	until_told(2);
	assert_int_equal(nr_asked, 1);
	assert_int_equal(ttmon_part_unwind.stop(w), 0);
	assert_true(w->done);
}

/* Another one takes its place, and does not get that file. */
static void a_file_that_hangs(void **state _unused_)
{
	struct pollfd p = { 0 };

	hangs = true;
	copies(1);
	while ((uint32_t)__atomic_load_n(w->reads, __ATOMIC_RELAXED) != OBJECT) {
		ttmon_daemon_work(NULL, w->sock, 10);
		ttmon_part_unwind.tick(w);
	}
	ttmon_part_unwind.tick(w);
	p.fd = dup(w->pidfd);
	p.events = POLLIN;
	now_ns += FILE_HANGS_NS - 1;
	ttmon_part_unwind.tick(w);
	assert_int_equal(poll(&p, 1, 0), 0);
	now_ns++;
	ttmon_part_unwind.tick(w);
	assert_int_equal(poll(&p, 1, 30000), 1);
	close(p.fd);
	assert_int_equal(w->nr_refused, 1);
	ttmon_part_unwind.request(w, &(struct ttmon_request){ .kind = TTMON_REQ_PART });
	until_told(1);
	assert_int_equal(told.end, TTMON_STACK_NO_TABLE);
	copies(2);
	until_told(2);
	assert_int_equal(told.end, TTMON_STACK_NO_TABLE);
	assert_int_equal(nr_asked, 1);
	assert_int_equal(copying, TTMON_STACKS_ON);
	/* What was left behind is no sign that this one hangs. */
	now_ns += HANGS_NS;
	ttmon_part_unwind.tick(w);
	assert_int_equal(copying, TTMON_STACKS_ON);
	assert_int_equal(ttmon_part_unwind.stop(w), 0);
	assert_true(w->done);
}

/* There is an end to that. */
static void one_that_hangs_always(void **state _unused_)
{
	uint64_t *reads = (uint64_t *)w->reads;

	for (uint32_t i = 0; i <= FOLLOWERS; i++) {
		assert_int_equal(copying, TTMON_STACKS_ON);
		while (!w->met)
			ttmon_part_unwind.tick(w);
		/* Its own word, which need not be true. */
		__atomic_store_n(reads, (uint64_t)(100 + i) << 32 | (1 + i), __ATOMIC_RELAXED);
		ttmon_part_unwind.tick(w);
		now_ns += FILE_HANGS_NS;
		__atomic_store_n(reads, (uint64_t)(100 + i) << 32 | (1 + i), __ATOMIC_RELAXED);
		ttmon_part_unwind.tick(w);
	}
	assert_int_equal(copying, TTMON_STACKS_OVER);
	assert_int_equal(w->sock, -1);
	assert_int_equal(told.stack, 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(files), TEST(a_file_that_hangs), TEST(one_that_hangs_always) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
