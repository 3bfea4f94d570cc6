// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_ttident.c: io/tt/ident*.c over trees of sysfs files and real processes: this program, executed
 * as "child" with the environment under test, opens and maps the files that its standard input names.
 * Nodes of /dev/tenstorrent are ordinary files on a tmpfs over /dev in a mount namespace of this test;
 * if that is not allowed, those tests are skipped.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "daemon/io/tt/ident_int.h"
#include "tests/unit/feed/tt_tree.h"

static bool have_dev;  /* /dev is a tmpfs of this test */
static bool own_nodes; /* and its nodes are used */

/* ---- the child ---- */

static int play_child(void)
{
	char line[PATH_MAX + 16];

	setvbuf(stdout, NULL, _IONBF, 0);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		char *arg = strchr(line, ' ');
		bool ok = false;
		int fd;

		line[strcspn(line, "\n")] = '\0';
		*arg++ = '\0';
		fd = open(arg, !strcmp(line, "look") ? O_RDONLY : O_RDWR);
		if (!strcmp(line, "open"))
			ok = fd >= 0;
		else if (!strcmp(line, "map"))
			ok = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) != MAP_FAILED;
		else if (!strcmp(line, "look"))
			ok = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED;
		puts(ok ? "ok" : "failed");
	}
	return 0;
}

struct child {
	pid_t pid;
	FILE *in, *out;
};

static void child_wait(struct child *c, const char *word)
{
	char line[64] = "";

	assert_non_null(fgets(line, sizeof(line), c->out));
	line[strcspn(line, "\n")] = '\0';
	assert_string_equal(line, word);
}

static struct child child_start(char *const env[])
{
	char *argv[] = { "test_ttident", "child", NULL };
	struct child c;
	int in[2], out[2];

	assert_int_equal(pipe2(in, O_CLOEXEC) | pipe2(out, O_CLOEXEC), 0);
	c.pid = fork();
	if (!c.pid) {
		struct rlimit r = { .rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY };

		setrlimit(RLIMIT_STACK, &r); /* room for a large environment */
		dup2(in[0], 0);
		dup2(out[1], 1);
		execve("/proc/self/exe", argv, env);
		_exit(9);
	}
	assert_true(c.pid > 0);
	close(in[0]);
	close(out[1]);
	c.in = fdopen(in[1], "w");
	c.out = fdopen(out[0], "r");
	child_wait(&c, "ready");
	return c;
}

static struct child child_with(const char *visible)
{
	char var[512];
	char *env[] = { "A=B", var, "ASAN_OPTIONS=detect_leaks=0", NULL };

	snprintf(var, sizeof(var), "%s%s", visible ? "TT_VISIBLE_DEVICES=" : "C=", visible ? visible : "");
	return child_start(env);
}

static void child_do(struct child *c, const char *what, const char *path)
{
	fprintf(c->in, "%s %s\n", what, path);
	fflush(c->in);
	child_wait(c, "ok");
}

static void child_end(struct child *c)
{
	int status;

	fclose(c->in);
	fclose(c->out);
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	assert_int_equal(status, 0);
}

/* ---- facts ---- */

static struct ttmon_ttident *t;
static struct ttmon_ev_tt_chip told[64];
static struct ttmon_ev_tt_proc proc;
static struct {
	struct ttmon_ev_tt_mesh e;
	struct ttmon_tt_mesh_dev dev[TTMON_TT_MESH_MAX];
} mesh;
static size_t nr_chips, nr_procs, nr_meshes;
static char sys_root[128], proc_root[128], shm_root[128];

static void on_fact(void *ctx, const void *rec, size_t size)
{
	const struct ttmon_event *h = rec;

	assert_ptr_equal(ctx, &t);
	assert_int_equal(h->cpu, TTMON_CPU_DAEMON);
	assert_true(h->ts_ns);
	assert_int_equal(size % 8, 0);
	if (h->kind == TTMON_EV_TT_CHIP) {
		assert_int_equal(size, sizeof(told[0]));
		if (nr_chips < ARRAY_SIZE(told))
			memcpy(&told[nr_chips], rec, size);
		nr_chips++;
	} else if (h->kind == TTMON_EV_TT_PROC) {
		assert_int_equal(size, sizeof(proc));
		memcpy(&proc, rec, size);
		nr_procs++;
	} else {
		assert_int_equal(h->kind, TTMON_EV_TT_MESH);
		assert_true(size >= sizeof(mesh.e));
		memcpy(&mesh, rec, size);
		assert_int_equal(size, sizeof(mesh.e) + mesh.e.count * sizeof(mesh.dev[0]));
		nr_meshes++;
	}
}

static int setup(void **state)
{
	struct ttmon_ttident_cfg cfg = { .roots = { sys_root, proc_root, shm_root }, .fact = on_fact, .ctx = &t };

	tree_setup(state);
	snprintf(sys_root, sizeof(sys_root), "%s/sys", tree);
	snprintf(proc_root, sizeof(proc_root), "%s/proc", tree);
	snprintf(shm_root, sizeof(shm_root), "%s/shm", tree);
	mkdir(shm_root, 0777);
	nr_chips = nr_procs = nr_meshes = 0;
	return ttmon_ttident_new(&cfg, &t);
}

static int teardown(void **state)
{
	ttmon_ttident_free(t);
	t = NULL;
	return tree_teardown(state);
}

/* The part of a process that a helper reads. */
static struct ttmon_helper_out look(uint32_t tgid)
{
	struct ttmon_ttident_ask ask = ttmon_ttident_question(t, tgid);
	struct ttmon_helper_out out = { .fd = -1 };

	ask.nodes = own_nodes;
	if (ttmon_ttident_job(NULL, &ask, sizeof(ask), -1, &out))
		out.n = 0;
	return out;
}

static void look_now(uint32_t tgid)
{
	struct ttmon_helper_out out;

	out = look(tgid);
	ttmon_ttident_read(t, tgid, out.buf, out.n);
	free(out.buf);
}

static void look_if_old(uint32_t tgid)
{
	if (ttmon_ttident_is_old(t, tgid))
		look_now(tgid);
}

static void again(void *ctx, uint32_t tgid)
{
	look_now(tgid);
	ttmon_ttident_again(ctx, tgid);
}

/* Returns the number of chips that were reported. */
static size_t refresh(void)
{
	nr_chips = 0;
	ttmon_ttident_refresh(t);
	ttmon_ttident_each_again(t, again, t);
	return nr_chips;
}

static void ask(uint32_t tgid, uint32_t logical, uint32_t chip, enum ttmon_tt_how how)
{
	struct ttmon_tt_want want = { .tgid = tgid, .logical = logical };
	size_t before = nr_procs;

	look_if_old(tgid);
	ttmon_ttident_answer(t, &want);
	assert_int_equal(nr_procs, before + 1);
	assert_int_equal(proc.h.tgid, tgid);
	assert_int_equal(proc.logical, logical);
	assert_int_equal(proc.chip, chip);
	assert_int_equal(proc.how, how);
}

static void provider(uint32_t tgid, uint32_t logical, uint64_t key, uint32_t chip, enum ttmon_tt_how how)
{
	look_if_old(tgid);
	ttmon_ttident_provider(t, tgid, logical, key, false);
	assert_int_equal(proc.h.tgid, tgid);
	assert_int_equal(proc.logical, logical);
	assert_int_equal(proc.chip, chip);
	assert_int_equal(proc.how, how);
	assert_int_equal(proc.flags, TTMON_TT_PROC_OWN_SHM);
}

/* P150 (N 2), N300 (N 0), N150 (N 1) by bus, then the second half of the N300: chips 1 to 4. */
static void mixed_tree(void)
{
	tree_chip(2, "0000:01:00.0", "p150b", "0100041000033020", "0000002000330200");
	tree_chip(0, "0000:41:00.0", "n300", "0100014511732099", "0000007117320990");
	tree_chip(1, "0000:c1:00.0", "n150", "010001801172D01A", "00000021172D01A0");
	assert_int_equal(refresh(), 4);
}

static const char *shm_file(uint64_t key, uint32_t version)
{
	const char *path = tree_path("shm/tt_device_%" PRIu64 "_memory", key);
	char page[4096] = { 0 };

	memcpy(page, &version, sizeof(version));
	tree_bytes(path, page, sizeof(page));
	return path;
}

/* ---- names, order, TT_VISIBLE_DEVICES ---- */

static void test_keys(void **state)
{
	static const char *const no[] = { "",
					  "/dev/shm/tt_device__memory",
					  "/dev/shm/tt_device_x_memory",
					  "/dev/shm/tt_device_1_memory2",
					  "/dev/shm/xtt_device_1_memory",
					  "/dev/shm/tt_device_18446744073709551616_memory",
					  "/dev/shm/tt_device_00000000000000000000001_memory",
					  "/dev/shm/tt_device_01_memory",
					  "/dev/shm/tt_device_-1_memory",
					  "/dev/shm/tt_device_memory",
					  "tt_device_1_memory/x" };
	uint64_t key = 0;

	(void)state;
	assert_true(ttmon_ttident_parse_key("/dev/shm/tt_device_18446744073709551615_memory", &key));
	assert_int_equal(key, UINT64_MAX);
	assert_true(ttmon_ttident_parse_key("tt_device_0_memory", &key));
	assert_int_equal(key, 0);
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		assert_false(ttmon_ttident_parse_key(no[i], &key));
}

/* Sets of positions as letters: a is the chip that was reported first. */
static void visible(const char *text, bool by_ordinal, const char *expected)
{
	uint32_t order[TTIDENT_CHIPS];
	bool set[TTIDENT_CHIPS] = { false };
	size_t n = ttmon_ttident_order(t, NULL, order), at = 0;
	char got[64] = "";

	if (ttmon_ttident_parse_visible(t, text, order, n, by_ordinal, set))
		strcpy(got, "?");
	else
		for (size_t i = 0; i < t->nr_chips; i++)
			if (set[i])
				got[at++] = (char)('a' + i);
	assert_string_equal(got, expected);
}

static void test_visible(void **state)
{
	(void)state;
	mixed_tree();
	visible("0", false, "a");
	visible("2", false, "c");
	visible("2,0", false, "ac");
	visible(" 1 , 1,0 ", false, "ab");
	visible("0000:41:00.0", false, "b");
	visible("0000:41:00.0,0", false, "ab");
	visible("1:00", false, "abc"); /* this is a part of all addresses */
	visible("0000:c", false, "c");
	visible("01:", false, "a");
	visible("2", true, "a");
	visible("1,0", true, "bc");
	visible("0000:41,2", true, "ab");
	visible("3", false, "?");
	visible("-1", false, "?");
	visible("0000:42:00.0", false, "?");
	visible("0000:C1:00.0", false, "?"); /* UMD compares case-sensitively */
	visible("n300", false, "?");
	visible("0x1", false, "?");
	visible("0 1", false, "?");
	visible("99999999999999999999", false, "?");
	visible("", false, "?");
	visible(",,", false, "?");
	visible(",1,", false, "b");
}

/*
 * Every subset of the chips, in every order, by number and by bus address: a logical id identifies the
 * right chip.
 */
static void test_every_subset(void **state)
{
	static const char *const bus[] = { "0000:01:00.0", "0000:41:00.0", "0000:c1:00.0" };
	struct ttident_info info = { .tgid = 1, .start = 1, .env_known = true };
	unsigned int cases = 0;

	(void)state;
	mixed_tree();
	for (unsigned int digits = 0; digits < 4 * 4 * 4; digits++) {
		for (unsigned int names = 0; names < 8; names++) {
			unsigned int pick[3] = { digits & 3, digits >> 2 & 3, digits >> 4 }, set = 0, logical = 0;
			uint32_t how;
			size_t locals;

			info.visible[0] = '\0';
			for (unsigned int i = 0; i < 3; i++) {
				if (pick[i] == 3)
					continue;
				snprintf(info.visible + strlen(info.visible), 20, "%s", *info.visible ? "," : "");
				if (names >> i & 1)
					strcat(info.visible, bus[pick[i]]);
				else
					sprintf(info.visible + strlen(info.visible), "%u", pick[i]);
				set |= 1u << pick[i];
			}
			if (!set)
				continue;
			for (unsigned int i = 0; i < 3; i++) {
				if (set >> i & 1) {
					assert_int_equal(ttmon_ttident_resolve(t, &info, logical++, &how, &locals),
							 i + 1);
					assert_int_equal(how, TTMON_TT_HOW_VISIBLE);
					assert_int_equal(locals, __builtin_popcount(set));
				}
			}
			if (set & 2)
				assert_int_equal(ttmon_ttident_resolve(t, &info, logical++, &how, &locals), 4);
			assert_int_equal(ttmon_ttident_resolve(t, &info, logical, &how, &locals), 0);
			assert_int_equal(how, TTMON_TT_HOW_NONE);
			cases++;
		}
	}
	assert_int_equal(cases, 63 * 8);
}

/*
 * Remote halves are numbered in the order of their local ones, and only if the local one is visible.
 */
static void test_far_halves(void **state)
{
	struct ttident_info info = { .tgid = 1, .start = 1, .env_known = true, .visible = "0000:c1,1" };
	static const uint32_t expected[] = { 2, 4, 6, 8, 0 };
	uint32_t how;
	size_t locals;

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		char bdf[16], serial[32];

		snprintf(bdf, sizeof(bdf), "0000:%x1:00.0", i * 4);
		snprintf(serial, sizeof(serial), "010001451173200%X", i);
		tree_chip(3 - i, bdf, "n300", serial, NULL);
	}
	assert_int_equal(refresh(), 8);
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(ttmon_ttident_resolve(t, &info, i, &how, &locals), expected[i]);
}

/*
 * The open files show which interpretation of the variable is meant, and whether it was changed after
 * the start.
 */
static void test_open_decides(void **state)
{
	struct ttident_info info = { .tgid = 1, .start = 1, .env_known = true };
	uint32_t how;
	size_t locals;

	(void)state;
	mixed_tree();
	strcpy(info.visible, "0,1"); /* by order: a, b; by N: b, c */
	info.open[1] = info.open[2] = true;
	info.nr_open = 2;
	assert_int_equal(ttmon_ttident_resolve(t, &info, 0, &how, &locals), 2);
	assert_int_equal(how, TTMON_TT_HOW_VISIBLE);
	info.open[2] = false;
	info.nr_open = 1; /* a part of a, b: still by order */
	assert_int_equal(ttmon_ttident_resolve(t, &info, 0, &how, &locals), 1);
	strcpy(info.visible, "2"); /* c; but b is open: os.environ[] was changed after the start */
	assert_int_equal(ttmon_ttident_resolve(t, &info, 0, &how, &locals), 2);
	assert_int_equal(how, TTMON_TT_HOW_OPEN);
	assert_int_equal(ttmon_ttident_resolve(t, &info, 1, &how, &locals), 4);
	info.visible[0] = '\0';
	info.open[2] = true;
	info.nr_open = 2;
	assert_int_equal(ttmon_ttident_resolve(t, &info, 1, &how, &locals), 3);
	assert_int_equal(how, TTMON_TT_HOW_ORDER);
	strcpy(info.visible, "7"); /* no chip by order, none by N */
	info.nr_open = 0;
	memset(info.open, 0, sizeof(info.open));
	assert_int_equal(ttmon_ttident_resolve(t, &info, 0, &how, &locals), 0);
	assert_int_equal(how, TTMON_TT_HOW_NONE);
	strcpy(info.visible, "0");
	info.hidden[0] = true; /* a container without the first node */
	assert_int_equal(ttmon_ttident_resolve(t, &info, 0, &how, &locals), 2);
	info.env_known = false;
	info.visible[0] = '\0';
	assert_int_equal(ttmon_ttident_resolve(t, &info, 0, &how, &locals), 0);
}

/* ---- processes ---- */

static void test_environment(void **state)
{
	struct child c;

	(void)state;
	mixed_tree();
	c = child_with("1,0000:01");
	ask((uint32_t)c.pid, 0, 1, TTMON_TT_HOW_VISIBLE);
	ask((uint32_t)c.pid, 1, 2, TTMON_TT_HOW_VISIBLE);
	ask((uint32_t)c.pid, 3, 0, TTMON_TT_HOW_NONE);
	assert_int_equal(proc.flags, 0);
	child_end(&c);
	t->info.at_ns = 0;
	ask((uint32_t)c.pid, 2, 4, TTMON_TT_HOW_VISIBLE); /* by its environment while it lived */
	ask((uint32_t)c.pid, 1, 2, TTMON_TT_HOW_VISIBLE);
	ttmon_ttident_exit(t, (uint32_t)c.pid);
	ask((uint32_t)c.pid, 1, 0, TTMON_TT_HOW_NONE); /* several chips, and nothing is known of the process */
	c = child_with(NULL);
	ask((uint32_t)c.pid, 2, 3, TTMON_TT_HOW_ORDER);
	child_end(&c);
	c = child_with("");
	ask((uint32_t)c.pid, 3, 4, TTMON_TT_HOW_ORDER);
	child_end(&c);
}

static void test_hostile_environment(void **state)
{
	static char big[24][128 << 10], longest[TTIDENT_VISIBLE + 64], fits[TTIDENT_VISIBLE + 64];
	char *env[40] = { "XTT_VISIBLE_DEVICES=0", "TT_VISIBLE_DEVICES2=0", "TT_VISIBLE_DEVICE=0",  "",	 "=",
			  "TT_VISIBLE_DEVICES",	   "TT_VISIBLE_DEVICES=2",  "TT_VISIBLE_DEVICES=0", NULL };
	struct child c = child_start(env);
	size_t n;

	(void)state;
	mixed_tree();
	ask((uint32_t)c.pid, 0, 3, TTMON_TT_HOW_VISIBLE); /* the first value, as getenv() returns */
	child_end(&c);
	/* 1.5 MiB of other variables precede it. */
	for (n = 0; n < 12; n++) {
		memset(big[n], 'x', sizeof(big[n]) - 1);
		env[n] = big[n];
	}
	env[n] = "TT_VISIBLE_DEVICES=1";
	env[n + 1] = NULL;
	c = child_start(env);
	ask((uint32_t)c.pid, 0, 2, TTMON_TT_HOW_VISIBLE);
	child_end(&c);
	/* 3 MiB: more than is searched. */
	for (n = 0; n < 24; n++) {
		memset(big[n], 'x', sizeof(big[n]) - 1);
		env[n] = big[n];
	}
	env[n] = "TT_VISIBLE_DEVICES=1";
	env[n + 1] = NULL;
	c = child_start(env);
	ask((uint32_t)c.pid, 0, 0, TTMON_TT_HOW_NONE);
	child_end(&c);
	/* A value that is too long, and one that just fits. */
	strcpy(longest, "TT_VISIBLE_DEVICES=1");
	memset(longest + strlen(longest), ' ', TTIDENT_VISIBLE - 1);
	strcpy(fits, "TT_VISIBLE_DEVICES=1");
	memset(fits + strlen(fits), ' ', TTIDENT_VISIBLE - 2);
	for (int i = 0; i < 2; i++) {
		env[0] = i ? fits : longest;
		env[1] = NULL;
		c = child_start(env);
		ask((uint32_t)c.pid, 0, i ? 2 : 0, i ? TTMON_TT_HOW_VISIBLE : TTMON_TT_HOW_NONE);
		child_end(&c);
	}
}

static void test_open_nodes(void **state)
{
	struct child c;

	(void)state;
	if (!have_dev)
		skip();
	for (int i = 0; i < 3; i++) {
		char path[64];

		snprintf(path, sizeof(path), "/dev/tenstorrent/%d", i);
		tree_bytes(path, "", 0);
	}
	tree_bytes("/dev/tenstorrent/by-id/wormhole-0000002a1172d01a", "", 0);
	mixed_tree();
	tree_attr(1, "tt_asic_id", "0000002A1172D01A");
	assert_int_equal(refresh(), 1);
	c = child_with(NULL);
	child_do(&c, "open", "/dev/tenstorrent/0");
	child_do(&c, "open", "/dev/tenstorrent/0");
	ask((uint32_t)c.pid, 0, 2, TTMON_TT_HOW_OPEN);
	ask((uint32_t)c.pid, 1, 4, TTMON_TT_HOW_OPEN);
	child_end(&c);
	c = child_with(NULL);
	child_do(&c, "open", "/dev/tenstorrent/by-id/wormhole-0000002a1172d01a");
	ask((uint32_t)c.pid, 0, 3, TTMON_TT_HOW_OPEN);
	child_end(&c);
	c = child_with(NULL);
	child_do(&c, "open", "/dev/tenstorrent/1");
	child_do(&c, "open", "/dev/tenstorrent/2");
	ask((uint32_t)c.pid, 1, 3, TTMON_TT_HOW_ORDER);
	ask((uint32_t)c.pid, 0, 1, TTMON_TT_HOW_ORDER);
	child_end(&c);
	/* Only some nodes exist: the others do not count. */
	own_nodes = true;
	assert_int_equal(unlink("/dev/tenstorrent/2"), 0);
	c = child_with("0");
	ask((uint32_t)c.pid, 0, 2, TTMON_TT_HOW_VISIBLE);
	child_end(&c);
	own_nodes = false;
	c = child_with("0");
	ask((uint32_t)c.pid, 0, 1, TTMON_TT_HOW_VISIBLE);
	child_end(&c);
}

/* The driver's list of the processes that have a chip open. */
static void test_driver(void **state)
{
	struct child c;
	char text[32];

	(void)state;
	mixed_tree();
	c = child_with(NULL);
	snprintf(text, sizeof(text), "%d\n%d\n", c.pid, c.pid);
	for (int i = 0; i < 3; i++)
		tree_text(tree_path("proc/driver/tenstorrent/%d/pids", i), i == 1 ? text : "1\n");
	ask((uint32_t)c.pid, 0, 3, TTMON_TT_HOW_OPEN);
	child_end(&c);
}

static void test_only(void **state)
{
	(void)state;
	tree_chip(0, "0000:41:00.0", "n300", "0100014511732099", NULL);
	assert_int_equal(refresh(), 2);
	ask(1u << 30, 0, 1, TTMON_TT_HOW_ONLY); /* no such process: it can have used only this chip */
	ask(1u << 30, 1, 2, TTMON_TT_HOW_ONLY);
	ask(1u << 30, 2, 0, TTMON_TT_HOW_NONE);
}

static void test_no_chips(void **state)
{
	(void)state;
	assert_int_equal(refresh(), 0);
	ask((uint32_t)getpid(), 0, 0, TTMON_TT_HOW_NONE);
	/* The chips appear: earlier questions are answered. */
	tree_chip(0, "0000:41:00.0", "n150", "0100018011732099", NULL);
	assert_int_equal(refresh(), 1);
	assert_int_equal(nr_procs, 2);
	assert_int_equal(proc.chip, 1);
	assert_int_equal(proc.how, TTMON_TT_HOW_ONLY);
	refresh();
	assert_int_equal(nr_procs, 2);
}

static void test_bounds(void **state)
{
	(void)state;
	tree_chip(0, "0000:41:00.0", "n150", "0100018011732099", NULL);
	refresh();
	for (uint32_t i = 1; i < TTIDENT_LOGICALS; i++)
		ask((uint32_t)getpid(), i, 0, TTMON_TT_HOW_NONE);
	ask((uint32_t)getpid(), 0, 1, TTMON_TT_HOW_ONLY);
	ask((uint32_t)getpid(), TTIDENT_LOGICALS, 0, TTMON_TT_HOW_NONE);
	ask((uint32_t)getpid(), UINT32_MAX, 0, TTMON_TT_HOW_NONE);
	assert_int_equal(t->procs[0].n, TTIDENT_LOGICALS);
	for (uint32_t i = 0; i < TTIDENT_PROCS + 10; i++)
		ask((1u << 30) + i, 0, 1, TTMON_TT_HOW_ONLY);
	assert_int_equal(t->nr_procs, TTIDENT_PROCS);
	assert_int_equal(t->procs[0].tgid, (1u << 30) + 10); /* the oldest was dropped */
}

/* A reused process id gets none of the answers about its predecessor. */
static void test_reused_pid(void **state)
{
	(void)state;
	mixed_tree();
	provider((uint32_t)getpid(), 1, 0x0100014511732099ULL << 8, 2, TTMON_TT_HOW_PROVIDER);
	ask((uint32_t)getpid(), 1, 2, TTMON_TT_HOW_PROVIDER);
	t->procs[0].start ^= 1;
	ask((uint32_t)getpid(), 0, 1, TTMON_TT_HOW_ORDER);
	assert_int_equal(proc.flags, 0);
	assert_int_equal(t->procs[0].n, 1);
}

/* ---- mapped files and providers ---- */

static void test_mapped(void **state)
{
	struct child c;

	(void)state;
	mixed_tree();
	c = child_with(NULL);
	child_do(&c, "look", shm_file(0x0100014511732099ULL << 8, 1)); /* opened by a monitoring program */
	ask((uint32_t)c.pid, 0, 1, TTMON_TT_HOW_ORDER);
	assert_int_equal(proc.flags, 0);
	child_end(&c);
	c = child_with(NULL);
	child_do(&c, "map", shm_file(0x0100014511732099ULL << 8 | 1, 1));
	child_do(&c, "map", shm_file(0x0100014511732099ULL << 8 | 1, 1));
	ask((uint32_t)c.pid, 0, 4, TTMON_TT_HOW_MAPPED);
	assert_int_equal(proc.flags, TTMON_TT_PROC_OWN_SHM);
	ask((uint32_t)c.pid, 1, 2, TTMON_TT_HOW_ORDER); /* a second id: the file cannot have both */
	assert_int_equal(proc.flags, TTMON_TT_PROC_OWN_SHM);
	ask((uint32_t)c.pid, 0, 4, TTMON_TT_HOW_MAPPED);
	child_end(&c);
	c = child_with(NULL);
	child_do(&c, "map", shm_file(0x0100014511732099ULL << 8 | 1, 1));
	child_do(&c, "map", shm_file(0x0100014511732099ULL << 8, 1));
	ask((uint32_t)c.pid, 0, 1, TTMON_TT_HOW_ORDER); /* two files */
	child_end(&c);
	/* The board id is in the key, and the board has one chip: the name gives the unique id. */
	c = child_with("1,2");
	nr_chips = 0;
	child_do(&c, "map", shm_file(0x0100041000033020ULL << 5 | 3, 3));
	ask((uint32_t)c.pid, 0, 1, TTMON_TT_HOW_MAPPED);
	assert_int_equal(nr_chips, 1);
	assert_int_equal(told[0].unique_id, 0x0100041000033020ULL << 5 | 3);
	child_end(&c);
	/* It may be either half: the name gives nothing. */
	c = child_with("1");
	child_do(&c, "map", shm_file(0x251732099, 3));
	nr_chips = 0;
	ask((uint32_t)c.pid, 0, 2, TTMON_TT_HOW_VISIBLE);
	assert_int_equal(nr_chips, 0);
	child_end(&c);
	/* The process's own provider takes precedence over the name of a file. */
	c = child_with(NULL);
	provider((uint32_t)c.pid, 0, 0x0100041000033020ULL << 8, 1, TTMON_TT_HOW_PROVIDER);
	child_do(&c, "map", shm_file(0x010001801172d01aULL << 8, 1));
	t->info.at_ns = 0;
	ask((uint32_t)c.pid, 0, 1, TTMON_TT_HOW_PROVIDER);
	child_end(&c);
}

/* Mapped after the first question. */
static void test_mapped_later(void **state)
{
	struct child c;
	size_t before;

	(void)state;
	mixed_tree();
	c = child_with("2");
	ask((uint32_t)c.pid, 0, 3, TTMON_TT_HOW_VISIBLE);
	assert_int_equal(proc.flags, 0);
	before = nr_procs;
	refresh();
	assert_int_equal(nr_procs, before);
	child_do(&c, "map", shm_file(77777, 3));
	refresh();
	assert_int_equal(nr_procs, before + 1);
	assert_int_equal(proc.chip, 3);
	assert_int_equal(proc.how, TTMON_TT_HOW_VISIBLE);
	assert_int_equal(proc.flags, TTMON_TT_PROC_OWN_SHM);
	refresh();
	assert_int_equal(nr_procs, before + 1);
	child_end(&c);
}

static void test_provider_v1(void **state)
{
	uint32_t me = (uint32_t)getpid();

	(void)state;
	mixed_tree();
	nr_chips = 0;
	provider(me, 1, 0x0100014511732099ULL << 8, 2, TTMON_TT_HOW_PROVIDER);
	provider(me, 3, 0x0100014511732099ULL << 8 | 1, 4, TTMON_TT_HOW_PROVIDER);
	provider(me, 0, 0x010001801172d01aULL << 8, 3, TTMON_TT_HOW_PROVIDER); /* against the bus order */
	ask(me, 0, 3, TTMON_TT_HOW_PROVIDER);
	assert_int_equal(nr_chips, 0);
	/* A location that no chip of the board has: the board has one chip. */
	shm_file(0x0100041000033020ULL << 8 | 9, 1);
	provider(me, 2, 0x0100041000033020ULL << 8 | 9, 1, TTMON_TT_HOW_PROVIDER);
	assert_int_equal(nr_chips, 0); /* the name of the file is unchanged */
	assert_int_equal(t->chips[0].fact.key_v1, 0x0100041000033020ULL << 8);
}

static void test_provider_disabled(void **state)
{
	uint32_t me = (uint32_t)getpid();

	(void)state;
	mixed_tree();
	ttmon_ttident_provider(t, me, 0, 0x0100041000033020ULL << 8, true);
	assert_int_equal(proc.chip, 1);
	assert_int_equal(proc.how, TTMON_TT_HOW_PROVIDER);
	assert_int_equal(proc.flags, 0);
	ask(me, 1, 2, TTMON_TT_HOW_ORDER);
	/* Another key is different: earlier answers are sent again. */
	nr_procs = 0;
	ttmon_ttident_provider(t, me, 2, 0x010001801172d01aULL << 8, false);
	assert_int_equal(nr_procs, 3);
	assert_int_equal(proc.flags, TTMON_TT_PROC_OWN_SHM);
}

static void test_provider_unique(void **state)
{
	uint32_t me = (uint32_t)getpid();

	(void)state;
	mixed_tree();
	nr_chips = 0;
	provider(me, 1, 0x251732099, 2, TTMON_TT_HOW_PROVIDER); /* N300: the low word is the board, mangled */
	assert_int_equal(nr_chips, 1);
	assert_int_equal(told[0].index, 2);
	assert_int_equal(told[0].unique_id, 0x251732099);
	provider(me, 3, 0x351732099, 4, TTMON_TT_HOW_PROVIDER);
	assert_int_equal(nr_chips, 2);
	assert_int_equal(told[1].index, 4);
	provider(me, 0, 0x0100041000033020ULL << 5 | 1, 1, TTMON_TT_HOW_PROVIDER); /* a linked P150 */
	provider(me, 2, 0x10172d01a, 3, TTMON_TT_HOW_PROVIDER);
	assert_int_equal(nr_chips, 4);
	/* The chips are known now, for any logical id; they are reported once. */
	provider(1u << 30, 7, 0x351732099, 4, TTMON_TT_HOW_PROVIDER);
	provider(1u << 30, 8, 0x251732099, 2, TTMON_TT_HOW_PROVIDER);
	assert_int_equal(nr_chips, 4);
	assert_int_equal(refresh(), 0); /* sysfs does not have it: it stays */
	/* An older UMD with another order: local halves still come first. */
	t->chips[1].fact.unique_id = t->chips[3].fact.unique_id = 0;
	provider(me, 0, 0x251732099, 2, TTMON_TT_HOW_PROVIDER);
	t->chips[1].fact.unique_id = 0;
	assert_int_equal(t->chips[3].fact.unique_id, 0);
}

/*
 * An order that is not the bus order (older UMD): the board is in the key, and local halves come first
 * in any order.
 */
static void test_provider_other_order(void **state)
{
	uint32_t me = (uint32_t)getpid();

	(void)state;
	tree_chip(1, "0000:01:00.0", "n300", "0100014511732001", NULL);
	tree_chip(0, "0000:81:00.0", "n300", "0100014511732002", NULL);
	assert_int_equal(refresh(), 4);
	provider(me, 0, 0x251732002, 2, TTMON_TT_HOW_PROVIDER);
	provider(me, 1, 0x251732001, 1, TTMON_TT_HOW_PROVIDER);
	provider(me, 2, 0x351732002, 4, TTMON_TT_HOW_PROVIDER);
	provider(me, 3, 0x351732001, 3, TTMON_TT_HOW_PROVIDER);
}

static void test_provider_p300(void **state)
{
	uint32_t me = (uint32_t)getpid();

	(void)state;
	tree_chip(1, "0000:03:00.0", "p300c", "0100046000044001", "0000000000AA0001");
	tree_chip(0, "0000:04:00.0", "p300c", "0100046000044001", "0000000000AA0002");
	assert_int_equal(refresh(), 2);
	/* The location is the reverse of what was assumed: the logical id decides. */
	provider(me, 0, 0x0100046000044001ULL << 5 | 1, 1, TTMON_TT_HOW_PROVIDER);
	provider(me, 1, 0x0100046000044001ULL << 5, 2, TTMON_TT_HOW_PROVIDER);
	assert_int_equal(t->chips[0].fact.unique_id, 0x0100046000044001ULL << 5 | 1);
	/* Version 1 gave the same key to both. */
	shm_file(0x0100046000044001ULL << 8, 1);
	provider(me, 1, 0x0100046000044001ULL << 8, 2, TTMON_TT_HOW_PROVIDER);
	provider(me, 0, 0x0100046000044001ULL << 8, 1, TTMON_TT_HOW_PROVIDER);
	/* The ASIC id is a proof too. */
	provider(me, 0, 0xaa0002, 2, TTMON_TT_HOW_PROVIDER);
	assert_int_equal(t->chips[1].fact.unique_id, 0xaa0002);
}

static void test_provider_galaxy(void **state)
{
	uint32_t me = (uint32_t)getpid();

	(void)state;
	for (unsigned int i = 0; i < 32; i++) {
		char bdf[16];

		snprintf(bdf, sizeof(bdf), "0000:%x%x:00.0", i / 8 * 4, i % 8 + 1);
		tree_chip(31 - i, bdf, "galaxy-blackhole", "0100047000660000", NULL);
	}
	assert_int_equal(refresh(), 32);
	nr_chips = 0;
	/* The unique id cannot be computed from sysfs: it is assigned to the chip of the logical id. */
	for (uint32_t i = 0; i < 32; i++)
		provider(me, i, 0xdead000000 + i, i + 1, TTMON_TT_HOW_PROVIDER);
	assert_int_equal(nr_chips, 32);
	/* Another process that uses one of these chips. */
	provider(1u << 30, 0, 0xdead000000 + 17, 18, TTMON_TT_HOW_PROVIDER);
	/* An id for a chip whose id is known: it belongs neither to that chip nor to any chip of sysfs. */
	provider(me, 5, 0xbad, 33, TTMON_TT_HOW_PROVIDER);
	assert_int_equal(told[32].flags, TTMON_TT_CHIP_LEARNED);
	assert_int_equal(t->chips[5].fact.unique_id, 0xdead000005);
	/* By composite key. */
	provider(me, 6, 0x0100047000660000ULL << 8 | 0x35, 29, TTMON_TT_HOW_PROVIDER);
}

/* A UMD without a chip id gives the logical id as the key. */
static void test_provider_fallback(void **state)
{
	(void)state;
	mixed_tree();
	nr_chips = 0;
	provider((uint32_t)getpid(), 2, 2, 3, TTMON_TT_HOW_ORDER);
	provider((uint32_t)getpid(), 0, 0, 1, TTMON_TT_HOW_ORDER);
	assert_int_equal(nr_chips, 0);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(t->chips[i].fact.unique_id, 0);
}

/* Wrong boards: a key with the id of another board, or with none, does not belong to that chip. */
static void test_provider_contradiction(void **state)
{
	uint32_t me = (uint32_t)getpid();

	(void)state;
	mixed_tree();
	provider(me, 0, 0x0100041000033029ULL << 5, 5, TTMON_TT_HOW_PROVIDER);
	assert_int_equal(t->chips[0].fact.unique_id, 0);
	assert_int_equal(t->chips[4].fact.flags, TTMON_TT_CHIP_LEARNED);
	provider(me, 2, 0x0100041000033020ULL << 5, 1, TTMON_TT_HOW_PROVIDER); /* the board decides, not the order */
	provider(me, 3, 0x0100041000033029ULL << 5, 5, TTMON_TT_HOW_PROVIDER);
}

/* Without a driver a chip has the key that the processes use. */
static void test_learned(void **state)
{
	uint32_t me = (uint32_t)getpid();
	struct child c;

	(void)state;
	assert_int_equal(refresh(), 0);
	shm_file(0x0100014511732099ULL << 8 | 1, 1);
	provider(me, 0, 0x0100014511732099ULL << 8 | 1, 1, TTMON_TT_HOW_PROVIDER);
	assert_int_equal(nr_chips, 1);
	assert_int_equal(told[0].flags, TTMON_TT_CHIP_LEARNED);
	assert_int_equal(told[0].key_v1, 0x0100014511732099ULL << 8 | 1);
	assert_int_equal(told[0].unique_id, 0);
	assert_int_equal(told[0].location, 1);
	assert_int_equal(told[0].ordinal, 0xffffffff);
	assert_int_equal(told[0].bdf, 0xffffffff);
	provider(me, 1, 0x351732099, 2, TTMON_TT_HOW_PROVIDER);
	assert_int_equal(told[1].unique_id, 0x351732099);
	assert_int_equal(told[1].key_v1, 0);
	provider(me, 2, 0x351732099, 2, TTMON_TT_HOW_PROVIDER);
	ask(me, 4, 0, TTMON_TT_HOW_NONE);
	c = child_with(NULL);
	child_do(&c, "map", shm_file(123456789, 3));
	ask((uint32_t)c.pid, 0, 3, TTMON_TT_HOW_MAPPED);
	child_end(&c);
	assert_int_equal(refresh(), 0); /* it is not reported as removed: it never existed */
	/* As many as are kept. */
	for (uint64_t i = 0; i < TTIDENT_LEARNED + 10; i++)
		ttmon_ttident_provider(t, me, 5, 1000000 + i, false);
	assert_int_equal(t->nr_chips, TTIDENT_LEARNED);
}

/* ---- chips over time ---- */

static void test_refresh(void **state)
{
	size_t n;

	(void)state;
	mixed_tree();
	assert_int_equal(told[0].index, 1);
	assert_int_equal(told[3].index, 4);
	assert_int_equal(told[3].flags, TTMON_TT_CHIP_REMOTE);
	assert_int_equal(refresh(), 0);
	tree_attr(0, "tt_aiclk", "500"); /* a fact does not contain it */
	assert_int_equal(refresh(), 0);
	assert_int_equal(ttmon_ttident_chips(t, &n)[1].aiclk_mhz, 500);
	assert_int_equal(n, 4);
	/* Removed, and back. */
	tree_drop(0);
	assert_int_equal(refresh(), 2);
	assert_int_equal(told[0].index, 2);
	assert_int_equal(told[0].flags, TTMON_TT_CHIP_GONE);
	assert_int_equal(told[1].index, 4);
	assert_int_equal(told[1].flags, TTMON_TT_CHIP_GONE | TTMON_TT_CHIP_REMOTE);
	assert_int_equal(told[1].key_v1, 0x0100014511732099ULL << 8 | 1);
	assert_int_equal(refresh(), 0);
	ask((uint32_t)getpid(), 1, 3, TTMON_TT_HOW_ORDER);
	tree_link("../../devices/pci0000:00/0000:41:00.0/tenstorrent/tenstorrent!0",
		  tree_path("sys/class/tenstorrent/tenstorrent!0"));
	assert_int_equal(refresh(), 2);
	assert_int_equal(told[0].index, 2);
	assert_int_equal(told[0].flags, 0);
	assert_int_equal(told[1].index, 4);
	/* The tree cannot be read once: nothing has changed. */
	assert_int_equal(rename(tree_path("sys"), tree_path("away")), 0);
	assert_int_equal(refresh(), 0);
	assert_int_equal(rename(tree_path("away"), tree_path("sys")), 0);
}

/* During a reset a chip keeps its data; so does its remote half. */
static void test_refresh_reset(void **state)
{
	(void)state;
	mixed_tree();
	tree_attr(0, "tt_serial", "");
	tree_attr(0, "tt_asic_id", "");
	tree_attr(0, "tt_card_type", "");
	assert_int_equal(refresh(), 0);
	assert_true(t->chips[1].resetting);
	assert_true(t->chips[3].resetting);
	assert_int_equal(t->chips[1].fact.key_v1, 0x0100014511732099ULL << 8);
	assert_int_equal(t->chips[1].fact.l1_bytes, 64 * 1499136);
	ask((uint32_t)getpid(), 3, 4, TTMON_TT_HOW_ORDER);
	tree_attr(0, "tt_serial", "0100014511732099");
	tree_attr(0, "tt_asic_id", "0000007117320990");
	tree_attr(0, "tt_card_type", "n300");
	assert_int_equal(refresh(), 0);
	assert_false(t->chips[3].resetting);
}

/* A reset may assign the numbers in another order: the bus address counts. */
static void test_refresh_renumbered(void **state)
{
	(void)state;
	mixed_tree();
	for (unsigned int i = 0; i < 3; i++)
		tree_drop(i);
	assert_int_equal(nftw(tree_path("sys/devices"), tree_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	tree_chip(1, "0000:01:00.0", "p150b", "0100041000033020", "0000002000330200");
	tree_chip(2, "0000:41:00.0", "n300", "0100014511732099", "0000007117320990");
	tree_chip(0, "0000:c1:00.0", "n150", "010001801172D0FF", "00000021172D01A0"); /* another card in that slot */
	assert_int_equal(refresh(), 5);
	assert_int_equal(t->nr_chips, 5);
	assert_int_equal(t->chips[0].fact.ordinal, 1);
	assert_int_equal(t->chips[1].fact.ordinal, 2);
	assert_int_equal(t->chips[3].fact.ordinal, 2);
	assert_int_equal(t->chips[2].fact.flags, TTMON_TT_CHIP_GONE);
	assert_int_equal(t->chips[4].fact.board_id, 0x010001801172d0ffULL);
	ask((uint32_t)getpid(), 2, 5, TTMON_TT_HOW_ORDER);
}

/* The unique id of the only card is a guess; a second card, or a process, revokes it. */
static void test_refresh_unique(void **state)
{
	(void)state;
	tree_chip(0, "0000:01:00.0", "p150b", "0100041000033020", "0000002000330200");
	assert_int_equal(refresh(), 1);
	assert_int_equal(told[0].unique_id, 0x2000330200);
	provider((uint32_t)getpid(), 0, 0x0100041000033020ULL << 5 | 2, 1, TTMON_TT_HOW_PROVIDER);
	assert_int_equal(t->chips[0].fact.unique_id, 0x0100041000033020ULL << 5 | 2);
	tree_chip(1, "0000:02:00.0", "p150b", "0100041000033021", "0000002000330210");
	assert_int_equal(refresh(), 1);
	assert_int_equal(told[0].index, 2);
	assert_int_equal(told[0].unique_id, 0);
	tree_drop(0);
	assert_int_equal(refresh(), 2);
	assert_int_equal(t->chips[1].fact.unique_id, 0x2000330210);
	tree_link("../../devices/pci0000:00/0000:01:00.0/tenstorrent/tenstorrent!0",
		  tree_path("sys/class/tenstorrent/tenstorrent!0"));
	assert_int_equal(refresh(), 2);
	assert_int_equal(t->chips[1].fact.unique_id, 0);
	assert_int_equal(t->chips[0].fact.unique_id, 0x0100041000033020ULL << 5 | 2);
}

static void never(void *ctx, const void *rec, size_t size)
{
	(void)rec, (void)size;
	++*(int *)ctx;
}

static void test_redirect(void **state)
{
	int other = 0;

	(void)state;
	mixed_tree();
	ttmon_ttident_redirect(t, never, &other);
	tree_drop(2);
	assert_int_equal(refresh(), 0);
	assert_int_equal(other, 1);
	ttmon_ttident_redirect(t, on_fact, &t);
	ask((uint32_t)getpid(), 0, 2, TTMON_TT_HOW_ORDER);
}

/* ---- meshes ---- */

/* Does what a helper does. */
static void ask_mesh(const struct ttmon_ttmesh_ask *ask)
{
	struct ttmon_helper_out out = { .fd = -1 };
	int err = ttmon_ttmesh_job(NULL, ask, sizeof(*ask), -1, &out);

	ttmon_ttident_mesh(t, ask, (const void *)out.buf, err ? 0 : out.n / sizeof(struct ttmon_tt_mesh_dev));
	free(out.buf);
}

static void test_mesh(void **state)
{
	static uint64_t vt[4], vt_mesh[4];
	uint64_t dev[2][8] = { { (uintptr_t)vt, 0, 0, 3 }, { (uintptr_t)vt, 0, 0, 9 } };
	uint64_t array[2] = { (uintptr_t)dev[1], (uintptr_t)dev[0] };
	uint64_t impl[4] = { 0, (uintptr_t)array, (uintptr_t)(array + 2), (uintptr_t)(array + 2) };
	uint64_t object[32] = { (uintptr_t)vt_mesh, 0, 0, (uintptr_t)impl };
	struct ttmon_ttmesh_ask want = { .tgid = (uint32_t)getpid(),
					 .mesh = (uintptr_t)object,
					 .vt_device = (uintptr_t)vt };

	(void)state;
	ask_mesh(&want);
	assert_int_equal(nr_meshes, 1);
	assert_int_equal(mesh.e.h.tgid, getpid());
	assert_int_equal(mesh.e.mesh, (uintptr_t)object);
	assert_int_equal(mesh.e.count, 2);
	assert_int_equal(mesh.dev[0].device, (uintptr_t)dev[1]);
	assert_int_equal(mesh.dev[0].logical, 9);
	assert_int_equal(mesh.dev[1].logical, 3);
	want.vt_device = 0; /* no mesh was ever seen */
	ask_mesh(&want);
	assert_int_equal(mesh.e.count, 0);
	want.tgid = 1u << 30;
	want.vt_device = (uintptr_t)vt;
	ask_mesh(&want);
	assert_int_equal(nr_meshes, 3);
	assert_int_equal(mesh.e.count, 0);
	assert_int_equal(mesh.e.h.tgid, 1u << 30);
}

/* Mounts a tmpfs on /dev that no other process sees. */
static bool own_dev(void)
{
	if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return false;
	return !mount("tmpfs", "/dev", "tmpfs", 0, NULL);
}

int main(int argc, char **argv)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_keys),
		T(test_visible),
		T(test_every_subset),
		T(test_far_halves),
		T(test_open_decides),
		T(test_environment),
		T(test_hostile_environment),
		T(test_open_nodes),
		T(test_driver),
		T(test_only),
		T(test_no_chips),
		T(test_bounds),
		T(test_reused_pid),
		T(test_mapped),
		T(test_mapped_later),
		T(test_provider_v1),
		T(test_provider_disabled),
		T(test_provider_unique),
		T(test_provider_other_order),
		T(test_provider_p300),
		T(test_provider_galaxy),
		T(test_provider_fallback),
		T(test_provider_contradiction),
		T(test_learned),
		T(test_refresh),
		T(test_refresh_reset),
		T(test_refresh_renumbered),
		T(test_refresh_unique),
		T(test_redirect),
		T(test_mesh),
	};

	if (argc == 2 && !strcmp(argv[1], "child"))
		return play_child();
	have_dev = own_dev();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
