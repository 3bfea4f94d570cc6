// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_resctrl_read.c: io/rdt/resctrl over a tree of files and a simulated kernel: exhausted RMIDs,
 * limbo, readings of every kind and their times, file systems that are unmounted and mounted, symbolic
 * links, and two thousand random operations in a row.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/feed/resctrl_feed.h"

/* RMIDs */

static void numbers_of_our_own(void **state)
{
	(void)state;
	fake.debug = false;
	tree_text(tree_path("r/mon_hw_id"), NULL);
	tree_text(tree_path("r/info/L3_MON/num_rmids"), "4\n");
	start();
	for (uint32_t tgid = 100; tgid < 104; tgid++)
		tree_proc(tgid, "/", "", tgid, 0);
	ttmon_resctrl_proc(r, 100, 7);
	assert_rmid(1, TTMON_RMID_ALLOC, 1, 100);
	ttmon_resctrl_exit(r, 100);
	nr_told = 0;
	ttmon_resctrl_proc(r, 101, 7);
	assert_rmid(0, TTMON_RMID_ALLOC, 2, 101); /* not one that was in use until now */
	nr_told = 0;
	ttmon_resctrl_proc(r, 102, 7);
	assert_rmid(0, TTMON_RMID_ALLOC, 3, 102);
	nr_told = 0;
	ttmon_resctrl_proc(r, 103, 7);
	assert_rmid(0, TTMON_RMID_ALLOC, 1, 103);
	nr_told = 0;
	tick(100 * MS);
	tick(100 * MS);
	assert_int_equal(count_rdt(0, 2), 2); /* they stay with the group */
	/* Not more than there are, whatever mkdir returns. */
	tree_proc(104, "/", "", 104, 0);
	nr_told = 0;
	ttmon_resctrl_proc(r, 104, 7);
	assert_rmid(0, TTMON_RMID_NONE, 0, 104);
	assert_false(tree_has(in_group("", 104, "")));
}

static void bad_ids_are_refused(void **state)
{
	static const char *const bad[] = { "0\n", "4096\n", "-1\n", "x\n", "", "5 5\n", "18446744073709551617\n" };

	(void)state;
	start();
	tree_proc(100, "/", "", 100, 0);
	tree_proc(101, "/", "", 101, 0);
	fake.id_text = bad[0];
	ttmon_resctrl_proc(r, 100, 7);
	for (unsigned int i = 0; i < ARRAY_SIZE(bad); i++) {
		fake.id_text = bad[i];
		assert_int_equal(nr_told, 1);
		assert_false(tree_has(in_group("", 100, "")));
		assert_int_equal(info().waiting, 1);
		assert_non_null(strstr(info().reason, "no group could be made for process 100"));
		tick(S);
	}
	fake.id_text = NULL;
	tick(S);
	assert_rmid(1, TTMON_RMID_ALLOC, 1, 100);
	assert_string_equal(info().reason, "");
	/* Two groups have one RMID: one of them must be wrong. */
	fake.id_text = "1\n";
	ttmon_resctrl_proc(r, 101, 7);
	assert_int_equal(info().groups, 1);
	assert_int_equal(info().waiting, 1);
	assert_int_equal(info().exhausted, 0);
}

static void out_of_rmids(void **state)
{
	unsigned int mkdirs;

	(void)state;
	fake.nr_ids = 3;
	start();
	for (uint32_t tgid = 100; tgid < 106; tgid++)
		tree_proc(tgid, "/", "", tgid, 0);
	ttmon_resctrl_proc(r, 100, 7);
	ttmon_resctrl_proc(r, 101, 7);
	nr_told = 0;
	for (uint32_t tgid = 102; tgid < 106; tgid++)
		ttmon_resctrl_proc(r, tgid, 7);
	assert_int_equal(fake.mkdirs, 3); /* those behind the first one are not tried */
	assert_int_equal(nr_told, 4);
	for (uint32_t i = 0; i < 4; i++)
		assert_rmid(i, TTMON_RMID_NONE, 0, 102 + i);
	assert_int_equal(info().exhausted, 4);
	assert_int_equal(info().waiting, 4);
	assert_string_equal(info().reason, "out of RMIDs: 4 processes wait for one");

	/* Once a second, until the first failure. */
	tick(S);
	mkdirs = fake.mkdirs;
	for (unsigned int i = 0; i < 30; i++)
		tick(100 * MS);
	assert_int_equal(fake.mkdirs - mkdirs, 3);
	assert_int_equal(info().exhausted, 4);

	/* In order; 102 ended without a report, 103 with one. */
	tree_gone(102);
	ttmon_resctrl_exit(r, 103);
	assert_int_equal(info().waiting, 3);
	ttmon_resctrl_exit(r, 100);
	nr_told = 0;
	tick(S);
	assert_rmid(0, TTMON_RMID_ALLOC, 1, 104);
	assert_int_equal(info().waiting, 1);
	assert_tasks("", 104, "104\n");
	assert_int_equal(info().exhausted, 4);

	/* Limbo. */
	ttmon_resctrl_exit(r, 101);
	fake.mkdir_err = EBUSY;
	tick(S);
	assert_string_equal(info().reason, "all free RMIDs are in limbo: 1 processes wait for one");
	assert_int_equal(info().exhausted, 4);
	fake.mkdir_err = 0;
	tick(S);
	assert_int_equal(info().waiting, 0);
	assert_tasks("", 105, "105\n");
	assert_string_equal(info().reason, "");
}

static void failure_is_no_exhaustion(void **state)
{
	(void)state;
	start();
	tree_proc(100, "/", "", 100, 0);
	tree_proc(101, "/", "", 101, 0);
	fake.mkdir_err = EROFS;
	ttmon_resctrl_proc(r, 100, 7);
	ttmon_resctrl_proc(r, 101, 7);
	assert_int_equal(nr_told, 1);
	assert_int_equal(info().exhausted, 0);
	assert_int_equal(info().waiting, 2);
	assert_non_null(strstr(info().reason, "Read-only file system"));
	tick(S);
	fake.mkdir_err = 0;
	tick(S);
	assert_int_equal(info().groups, 2);
	assert_string_equal(info().reason, "");
}

/* Readings */

static void values(void **state)
{
	static const struct {
		const char *text;
		enum ttmon_rdt_state state;
		uint64_t value;
	} cases[] = {
		{ "0", TTMON_RDT_OK, 0 },
		{ "18446744073709551615", TTMON_RDT_OK, UINT64_MAX },
		{ "18446744073709551616", TTMON_RDT_ERROR, 0 },
		{ "99999999999999999999", TTMON_RDT_ERROR, 0 },
		{ "Unavailable", TTMON_RDT_UNAVAILABLE, 0 },
		{ "Error", TTMON_RDT_ERROR, 0 },
		{ "Unassigned", TTMON_RDT_UNASSIGNED, 0 },
		{ "unassigned", TTMON_RDT_ERROR, 0 },
		{ "", TTMON_RDT_ERROR, 0 },
		{ "-1", TTMON_RDT_ERROR, 0 },
		{ " 1", TTMON_RDT_ERROR, 0 },
		{ "1 ", TTMON_RDT_ERROR, 0 },
		{ "0x10", TTMON_RDT_ERROR, 0 },
		{ "1\n2", TTMON_RDT_ERROR, 0 },
	};
	uint64_t v;

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		v = 77;
		assert_int_equal(ttmon_resctrl_value(cases[i].text, &v), cases[i].state);
		assert_int_equal(v, cases[i].value);
	}
}

static void readings_of_every_kind(void **state)
{
	char big[4096];

	(void)state;
	start();
	tree_proc(100, "/", "", 100, 0);
	ttmon_resctrl_proc(r, 100, 7);
	tree_text(in_group("", 100, "mon_data/mon_L3_00/llc_occupancy"), "65536\n");
	tree_text(in_group("", 100, "mon_data/mon_L3_00/mbm_total_bytes"), "Unavailable\n");
	tree_text(in_group("", 100, "mon_data/mon_L3_00/mbm_local_bytes"), "Unassigned\n");
	tree_text(in_group("", 100, "mon_data/mon_L3_01/llc_occupancy"), "Error\n");
	tree_text(in_group("", 100, "mon_data/mon_L3_01/mbm_total_bytes"), NULL);
	memset(big, '1', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	tree_text(in_group("", 100, "mon_data/mon_L3_01/mbm_local_bytes"), big);
	/* Entries that are not domains; the sums are in the parent. */
	tree_text(in_group("", 100, "mon_data/mon_L3_00/mon_sub_L3_00/llc_occupancy"), "1\n");
	tree_text(in_group("", 100, "mon_data/mon_PERF_PKG_00/core_energy"), "1.5\n");
	tree_text(in_group("", 100, "mon_data/mon_L3_/llc_occupancy"), "1\n");
	tree_text(in_group("", 100, "mon_data/mon_L3_1x/llc_occupancy"), "1\n");
	tree_text(in_group("", 100, "mon_data/mon_L3_65536/llc_occupancy"), "1\n");
	tree_text(in_group("", 100, "mon_data/mon_L3_000001/llc_occupancy"), "1\n");
	tree_text(in_group("", 100, "mon_data/mon_L3_07"), "a file\n");
	tree_folder(in_group("", 100, "mon_data/mon_L3_08")); /* empty */
	nr_told = 0;
	tick(100 * MS);
	tick(100 * MS);
	assert_int_equal(nr_told, 2);
	assert_int_equal(last_rdt(0)->state[TTMON_RDT_OCCUPANCY], TTMON_RDT_OK);
	assert_int_equal(last_rdt(0)->value[TTMON_RDT_OCCUPANCY], 65536);
	assert_int_equal(last_rdt(0)->state[TTMON_RDT_TOTAL], TTMON_RDT_UNAVAILABLE);
	assert_int_equal(last_rdt(0)->state[TTMON_RDT_LOCAL], TTMON_RDT_UNASSIGNED);
	assert_int_equal(last_rdt(1)->state[TTMON_RDT_OCCUPANCY], TTMON_RDT_ERROR);
	assert_int_equal(last_rdt(1)->state[TTMON_RDT_TOTAL], TTMON_RDT_UNSUPPORTED);
	assert_int_equal(last_rdt(1)->state[TTMON_RDT_LOCAL], TTMON_RDT_ERROR);
	assert_int_equal(info().readings, 4);
	assert_int_equal(info().failed_readings, 2);
	assert_string_equal(info().reason, "1 groups have no bandwidth counter");
	tree_text(in_group("", 100, "mon_data/mon_L3_00/mbm_local_bytes"), "1\n");
	tick(100 * MS);
	assert_string_equal(info().reason, "");
}

static void readings_come_at_their_rate(void **state)
{
	static const struct {
		unsigned int hz, expected;
	} cases[] = { { 1, 10 }, { 0, 40 }, { 3, 30 }, { 10, 100 }, { 1000, 100 } };

	(void)state;
	for (unsigned int c = 0; c < ARRAY_SIZE(cases); c++) {
		start_as(false, cases[c].hz);
		r->budget_ns = 100 * S;
		tree_proc(100, "/", "", 100, 0);
		ttmon_resctrl_proc(r, 100, 7);
		tick(0);
		nr_told = 0;
		/* A tick may be slightly early or late. */
		for (unsigned int i = 0; i < 100; i++)
			tick(i % 2 ? 102 * MS : 98 * MS);
		assert_in_range(count_rdt(0, 1) / 2, cases[c].expected - 1, cases[c].expected);
		assert_int_equal(info().skipped, 0);
		ttmon_resctrl_exit(r, 100);
		ttmon_resctrl_free(r);
		r = NULL;
	}
}

static void readings_that_were_not_made_are_counted(void **state)
{
	(void)state;
	start();
	tree_proc(100, "/", "", 100, 0);
	ttmon_resctrl_proc(r, 100, 7);
	tick(0);
	nr_told = 0;
	tick(100 * MS);
	assert_int_equal(count_rdt(0, 1), 2);
	tick(550 * MS); /* 4 readings were due before the one that is made */
	assert_int_equal(count_rdt(0, 1), 4);
	assert_int_equal(info().skipped, 4);
	/* Without a time budget there is one reading per tick, in turn. */
	for (uint32_t tgid = 101; tgid < 105; tgid++) {
		tree_proc(tgid, "/", "", tgid, 0);
		ttmon_resctrl_proc(r, tgid, 7);
	}
	tick(100 * MS);
	tick(0);
	r->budget_ns = 0;
	nr_told = 0;
	for (unsigned int i = 0; i < 20; i++)
		tick(100 * MS);
	assert_int_equal(nr_told, 2 * 20);
	for (uint32_t rmid = 1; rmid <= 5; rmid++)
		assert_int_equal(count_rdt(0, rmid), 2 * 4);
	/* 5 groups at 10 Hz for 2 s, less those that are overdue by less than a period. */
	assert_in_range(info().skipped, 4 + 100 - 20 - 20, 4 + 100 - 20);
}

/* The file system is unmounted */

static void mount_goes_and_comes(void **state)
{
	char from[PATH_MAX], to[PATH_MAX];

	(void)state;
	start();
	tree_proc(100, "/", "", 100, 0);
	tree_proc(101, "/", "", 101, 0);
	tree_proc(103, "/", "pod", 103, 0);
	ttmon_resctrl_proc(r, 100, 7);
	ttmon_resctrl_proc(r, 103, 7);
	assert_int_equal(info().waiting, 0);
	nr_told = 0;
	snprintf(from, sizeof(from), "%s", tree_path("r"));
	snprintf(to, sizeof(to), "%s", tree_path("away"));
	assert_int_equal(rename(from, to), 0);
	ttmon_resctrl_proc(r, 101, 7); /* between two ticks */
	tick(100 * MS);
	assert_int_equal(nr_told, 1);
	assert_rmid(0, TTMON_RMID_FREE, 1, 100);
	assert_non_null(strstr(info().reason, "no longer mounted at /"));
	assert_int_equal(info().waiting, 3);
	assert_int_equal(info().exhausted, 0);
	tree_proc(102, "/", "", 102, 0);
	ttmon_resctrl_proc(r, 102, 7);
	ttmon_resctrl_exit(r, 101);
	tick(S);
	assert_int_equal(nr_told, 1);

	/*
	 * It is mounted again: without groups, including those of others, and here without visible RMIDs.
	 */
	memset(fake.used, 0, sizeof(fake.used));
	fake.debug = false;
	tree_ctrl("");
	tree_proc(103, "/", "", 103, 0);
	tree_text(tree_path("r/info/L3_MON/num_rmids"), "16\n");
	tree_text(tree_path("r/info/L3_MON/mon_features"), "llc_occupancy\n");
	tick(100 * MS);
	assert_int_equal(told[1].h.kind, TTMON_EV_RMID_INFO);
	assert_int_equal(told[1].info.max_rmid, 15);
	assert_int_equal(told[1].info.flags, TTMON_RMID_HAS_OCCUPANCY);
	assert_rmid(2, TTMON_RMID_ALLOC, 1, 100);
	assert_rmid(5, TTMON_RMID_ALLOC, 2, 103);
	assert_rmid(8, TTMON_RMID_ALLOC, 3, 102);
	assert_int_equal(last_rdt(0)->state[TTMON_RDT_TOTAL], TTMON_RDT_UNSUPPORTED);
	assert_string_equal(info().reason, "");
	assert_int_equal(info().waiting, 0);
	assert_tasks("", 100, "100\n");
}

/* Another file system was mounted over it for a while: the daemon's groups are still there. */
static void mount_was_hidden(void **state)
{
	char from[PATH_MAX], to[PATH_MAX];

	(void)state;
	start();
	for (uint32_t tgid = 100; tgid < 102; tgid++) {
		tree_proc(tgid, "/", "", tgid, 0);
		ttmon_resctrl_proc(r, tgid, 7);
	}
	snprintf(from, sizeof(from), "%s", tree_path("r"));
	snprintf(to, sizeof(to), "%s", tree_path("away"));
	assert_int_equal(rename(from, to), 0);
	tick(100 * MS);
	ttmon_resctrl_exit(r, 100);
	assert_int_equal(rename(to, from), 0);
	tick(100 * MS);
	assert_false(tree_has(in_group("", 100, "")));
	assert_tasks("", 101, "101\n");
	assert_int_equal(info().groups, 1);
	assert_int_equal(fake.used[2], 0);
}

/*
 * It was unmounted and mounted between two ticks; or another process removed a group of the daemon.
 */
static void groups_that_are_gone_are_made_again(void **state)
{
	char path[PATH_MAX];

	(void)state;
	start();
	for (uint32_t tgid = 100; tgid < 103; tgid++) {
		tree_proc(tgid, "/", "", tgid, 0);
		ttmon_resctrl_proc(r, tgid, 7);
	}
	tick(0);
	for (uint32_t tgid = 100; tgid < 102; tgid++) {
		snprintf(path, sizeof(path), "%s", in_group("", tgid, ""));
		tree_remove(path);
		fake.used[tgid - 99] = 0;
	}
	nr_told = 0;
	tick(100 * MS);
	assert_int_equal(info().lost, 2);
	assert_rmid(0, TTMON_RMID_FREE, 1, 100);
	assert_int_equal(info().waiting, 2);
	assert_int_equal(info().exhausted, 0);
	nr_told = 0;
	tick(S);
	assert_rmid(0, TTMON_RMID_ALLOC, 1, 100);
	assert_rmid(3, TTMON_RMID_ALLOC, 2, 101);
	assert_int_equal(info().groups, 3);
	assert_tasks("", 101, "101\n");
}

/* Mounted again between two ticks, without -o debug. */
static void mount_that_changed(void **state)
{
	(void)state;
	start();
	for (uint32_t tgid = 100; tgid < 103; tgid++) {
		tree_proc(tgid, "/", "", tgid, 0);
		ttmon_resctrl_proc(r, tgid, 7);
	}
	ttmon_resctrl_exit(r, 100);
	tick(0);
	tree_remove(tree_path("r/mon_groups"));
	memset(fake.used, 0, sizeof(fake.used));
	fake.debug = false;
	tree_ctrl("");
	r->budget_ns = 0; /* one reading per tick: the missing groups of the others are not noticed by their readings */
	nr_told = 0;
	tick(100 * MS);
	r->budget_ns = 100 * S;
	tick(S);
	assert_rmid(0, TTMON_RMID_FREE, 2, 101);
	assert_rmid(1, TTMON_RMID_FREE, 3, 102);
	assert_int_equal(told[2].h.kind, TTMON_EV_RMID_INFO);
	assert_false(told[2].info.flags & TTMON_RMID_HAS_HW_IDS);
	assert_rmid(3, TTMON_RMID_ALLOC, 1, 101);
	assert_rmid(6, TTMON_RMID_ALLOC, 2, 102);
	assert_int_equal(info().lost, 2);
}

/*
 * A group of this name exists: it is from an earlier instance with this process id, or made by another
 * program on purpose.
 */
static void own_name_is_taken(void **state)
{
	(void)state;
	start();
	tree_folder(in_group("", 100, ""));
	tree_text(in_group("", 100, "tasks"), "99\n");
	tree_proc(100, "/", "", 100, 0);
	ttmon_resctrl_proc(r, 100, 7);
	assert_rmid(1, TTMON_RMID_ALLOC, 1, 100);
	assert_tasks("", 100, "100\n");
}

static void symbolic_links_are_not_followed(void **state)
{
	char path[PATH_MAX];

	(void)state;
	start();
	tree_proc(100, "/", "", 100, 0);
	tree_proc(101, "/", "", 101, 0);
	tree_text(tree_path("secret"), "12345\n");
	tree_text(tree_path("domain/llc_occupancy"), "12345\n");
	ttmon_resctrl_proc(r, 100, 7);
	tick(0);
	snprintf(path, sizeof(path), "%s", in_group("", 100, "mon_data/mon_L3_00/llc_occupancy"));
	tree_text(path, NULL);
	assert_int_equal(symlink(tree_path("secret"), path), 0);
	assert_int_equal(symlink(tree_path("domain"), in_group("", 100, "mon_data/mon_L3_05")), 0);
	nr_told = 0;
	tick(100 * MS);
	assert_int_equal(nr_told, 2);
	assert_int_equal(last_rdt(0)->state[TTMON_RDT_OCCUPANCY], TTMON_RDT_ERROR);
	ttmon_resctrl_exit(r, 100);
	/* The folder of groups is a link to another folder, in the root. */
	assert_int_equal(rename(tree_path("r/mon_groups"), tree_path("r/elsewhere")), 0);
	assert_int_equal(symlink("elsewhere", tree_path("r/mon_groups")), 0);
	ttmon_resctrl_proc(r, 101, 7);
	assert_int_equal(info().groups, 0);
	assert_int_equal(info().waiting, 1);
	assert_int_equal(fake.mkdirs, 1);
	/* In the middle of a path. */
	assert_int_equal(rename(tree_path("r/info"), tree_path("r/elsewhere/info")), 0);
	assert_int_equal(symlink("elsewhere/info", tree_path("r/info")), 0);
	assert_refused(r->root, "num_rmids cannot be read");
}

/*
 * Any operations in any order: RMIDs are reported in pairs, never twice at a time, the folders are
 * those of the groups, and none is left at the end.
 */
static void torture(void **state)
{
	uint32_t owner[4096] = { 0 }, seed = 1;
	size_t done = 0;

	(void)state;
	fake.nr_ids = 6;
	start();
	for (unsigned int step = 0; step < 2000; step++) {
		uint32_t x = seed = seed * 1103515245 + 12345, tgid = 100 + (x >> 8) % 12;
		char path[PATH_MAX];

		switch ((x >> 16) % 16) {
		case 0 ... 4:
			if (!tree_has(tree_path("p/%u", tgid)))
				tree_proc(tgid, "/", "", tgid, 0);
			ttmon_resctrl_proc(r, tgid, 7);
			break;
		case 5 ... 7:
			tree_gone(tgid);
			ttmon_resctrl_exit(r, tgid);
			break;
		case 8:
			fake.mkdir_err = fake.mkdir_err ? 0 : (x >> 24) % 2 ? EBUSY : EACCES;
			break;
		case 9:
			snprintf(path, sizeof(path), "%s", in_group("", tgid, ""));
			free_id(path);
			tree_remove(path);
			break;
		case 10:
			if ((x >> 24) % 16)
				break;
			snprintf(path, sizeof(path), "%s", tree_path("away"));
			tree_remove(tree_path("r/mon_groups"));
			tree_folder(tree_path("r/mon_groups"));
			memset(fake.used, 0, sizeof(fake.used));
			assert_int_equal(rename(tree_path("r"), path), 0);
			tick(100 * MS);
			assert_int_equal(rename(path, tree_path("r")), 0);
			break;
		default:
			tick((x >> 24) % 300 * MS);
		}
		for (; done < nr_told; done++) {
			const struct ttmon_ev_rmid *e = &told[done].rmid;

			if (told[done].h.kind == TTMON_EV_RDT_READ)
				assert_true(owner[told[done].rdt.rmid]);
			if (told[done].h.kind != TTMON_EV_RMID_SET || e->op == TTMON_RMID_NONE)
				continue;
			assert_in_range(e->rmid, 1, 5);
			assert_int_equal(owner[e->rmid], e->op == TTMON_RMID_ALLOC ? 0 : e->h.tgid);
			owner[e->rmid] = e->op == TTMON_RMID_ALLOC ? e->h.tgid : 0;
		}
		assert_in_range(info().groups + info().waiting, 0, 12);
		if (nr_told > ARRAY_SIZE(told) - 4096)
			done = nr_told = 0;
	}
	assert_true(info().exhausted && info().lost && info().readings);
	for (uint32_t tgid = 100; tgid < 112; tgid++)
		ttmon_resctrl_exit(r, tgid);
	assert_int_equal(info().groups + info().waiting, 0);
	assert_int_equal(rmdir(tree_path("r/mon_groups")), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(numbers_of_our_own),
		T(bad_ids_are_refused),
		T(out_of_rmids),
		T(failure_is_no_exhaustion),
		T(values),
		T(readings_of_every_kind),
		T(readings_come_at_their_rate),
		T(readings_that_were_not_made_are_counted),
		T(mount_goes_and_comes),
		T(groups_that_are_gone_are_made_again),
		T(mount_was_hidden),
		T(mount_that_changed),
		T(own_name_is_taken),
		T(symbolic_links_are_not_followed),
		T(torture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
