// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_resctrl.c: io/rdt/resctrl over a tree of files and a simulated kernel: the reports when it
 * cannot work, groups of processes and cgroups, their threads, tasks of others, stale groups.
 * test_resctrl_read.c tests RMIDs and readings.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/feed/resctrl_feed.h"

/* Why it cannot work */

static void says_what_is_missing(void **state)
{
	char root[80], text[256] = "";
	const char *rmids = tree_path("r/info/L3_MON/num_rmids");

	(void)state;
	snprintf(root, sizeof(root), "%s/r", tree);
	assert_int_equal(ttmon_resctrl_check(root, text, sizeof(text)), 0);
	assert_string_equal(text, "");
	tree_text(rmids, "1\n");
	assert_refused(root, "has 1 RMIDs");
	tree_text(rmids, "many\n");
	assert_refused(root, "num_rmids cannot be read");
	tree_text(rmids, "");
	assert_refused(root, "num_rmids cannot be read");
	tree_text(rmids, "99999999999999999999999\n");
	assert_refused(root, "num_rmids cannot be read");
	tree_text(rmids, "32\n");
	tree_text(tree_path("r/info/L3_MON/mon_features"), "mbm_total_bytes_config\nxllc_occupancy\n");
	assert_refused(root, "names no event");
	tree_remove(tree_path("r/info/L3_MON"));
	assert_refused(root, "no L3 monitoring (no info/L3_MON): this CPU can only allocate");
	tree_remove(tree_path("r/info"));
	assert_refused(root, "/r: mount -t resctrl resctrl /");
	/*
	 * The default path must be a real resctrl file system: there is none on a machine without RDT, and a
	 * plain folder is not enough on one with it.
	 */
	if (access(RESCTRL_DEFAULT "/info", F_OK))
		assert_refused(NULL,
			       access(RESCTRL_DEFAULT, F_OK) ? "this machine has no resctrl" : "mount -t resctrl");
}

static void tells_limits(void **state)
{
	(void)state;
	start();
	assert_int_equal(nr_told, 1);
	assert_int_equal(told[0].h.kind, TTMON_EV_RMID_INFO);
	assert_int_equal(told[0].info.backend, TTMON_RMID_RESCTRL);
	assert_int_equal(told[0].info.max_rmid, 31);
	assert_int_equal(told[0].info.scale, 1);
	assert_int_equal(told[0].info.width, 64);
	assert_int_equal(told[0].info.flags, TTMON_RMID_HAS_OCCUPANCY | TTMON_RMID_HAS_TOTAL | TTMON_RMID_HAS_LOCAL |
						     TTMON_RMID_HAS_HW_IDS);
	ttmon_resctrl_free(r);
	/* More than fit, only one event, RMIDs that are not shown. */
	tree_text(tree_path("r/info/L3_MON/num_rmids"), "100000\n");
	tree_text(tree_path("r/info/L3_MON/mon_features"), "mbm_total_bytes_config\nmbm_local_bytes");
	tree_text(tree_path("r/mon_hw_id"), NULL);
	start();
	assert_int_equal(told[0].info.max_rmid, TTMON_RMID_LIMIT - 1);
	assert_int_equal(told[0].info.flags, TTMON_RMID_HAS_LOCAL);
	assert_false(info().hw_ids);
}

/* Groups */

static void lives_and_dies(void **state)
{
	uint64_t before;

	(void)state;
	start();
	tree_proc(100, "/", "", 100, 101, 0);
	before = ttmon_mono_ns();
	ttmon_resctrl_proc(r, 100, 7);
	assert_int_equal(nr_told, 4);
	assert_rmid(1, TTMON_RMID_ALLOC, 1, 100);
	assert_int_equal(told[1].rmid.start_ns, 7);
	assert_string_equal(told[1].rmid.comm, "prog 100");
	/* The baseline comes after the allocation. */
	assert_int_equal(count_rdt(2, 1), 2);
	assert_int_equal(last_rdt(0)->value[TTMON_RDT_TOTAL], 0);
	assert_true(told[1].h.ts_ns >= before && told[2].rdt.when_ns >= told[1].h.ts_ns);
	assert_true(told[3].rdt.when_ns >= told[2].rdt.when_ns && told[3].rdt.when_ns <= ttmon_mono_ns());
	assert_tasks("", 100, "100\n101\n");
	assert_int_equal(info().groups, 1);
	assert_string_equal(info().reason, "");
	ttmon_resctrl_proc(r, 100, 7); /* again */
	assert_int_equal(nr_told, 4);

	tree_text(in_group("", 100, "mon_data/mon_L3_01/mbm_total_bytes"), "12345\n");
	tree_gone(100);
	ttmon_resctrl_exit(r, 100);
	assert_int_equal(nr_told, 7);
	assert_int_equal(count_rdt(4, 1), 2);
	assert_int_equal(told[4].rdt.value[TTMON_RDT_TOTAL] + told[5].rdt.value[TTMON_RDT_TOTAL], 12345);
	assert_rmid(6, TTMON_RMID_FREE, 1, 100);
	assert_true(told[6].rmid.when_ns >= told[5].rdt.when_ns);
	assert_false(tree_has(in_group("", 100, "")));
	assert_int_equal(info().groups, 0);
	ttmon_resctrl_exit(r, 100);
	ttmon_resctrl_exit(r, 5);
	assert_int_equal(nr_told, 7);
}

static void reused_pid_is_another_process(void **state)
{
	(void)state;
	start();
	tree_proc(100, "/", "", 100, 0);
	ttmon_resctrl_proc(r, 100, 7);
	ttmon_resctrl_proc(r, 100, 8);
	assert_rmid(6, TTMON_RMID_FREE, 1, 100);
	assert_rmid(7, TTMON_RMID_ALLOC, 1, 100);
	assert_int_equal(told[6].rmid.start_ns, 7);
	assert_int_equal(told[7].rmid.start_ns, 8);
	assert_int_equal(info().groups, 1);
	assert_false(tree_has(in_group("", 100, "")));
}

static void process_that_is_gone_gets_none(void **state)
{
	(void)state;
	start();
	ttmon_resctrl_proc(r, 100, 7);
	assert_int_equal(nr_told, 1);
	assert_int_equal(fake.mkdirs, 0);
	assert_int_equal(info().waiting, 0);
}

static void threads_that_come_and_go(void **state)
{
	(void)state;
	start();
	tree_proc(100, "/", "", 100, 101, 102, 0);
	fake.gone_tid = 101;
	/* While 102 is moved it creates 103, and while 103 is moved it creates 104. */
	fake.born_of = 102;
	fake.born = 103;
	fake.born_times = 2;
	ttmon_resctrl_proc(r, 100, 7);
	assert_tasks("", 100, "100\n102\n103\n104\n");
	assert_int_equal(fake.moves, 5); /* each once */
	assert_int_equal(info().foreign, 0);
	/* A thread that was being created when its creator was moved shows up later. */
	tree_proc(100, "/", "", 105, 0);
	tick(100 * MS);
	assert_tasks("", 100, "100\n102\n103\n104\n105\n");
	tick(100 * MS);
	assert_int_equal(fake.moves, 6);
}

/*
 * Each pass finds another thread: there are ten passes, and the others are found by the next check.
 */
static void passes_are_bounded(void **state)
{
	(void)state;
	start();
	tree_proc(100, "/", "", 100, 0);
	fake.born_of = 100;
	fake.born = 101;
	fake.born_times = 15;
	ttmon_resctrl_proc(r, 100, 7);
	assert_int_equal(fake.moves, 10);
	tick(100 * MS);
	assert_int_equal(fake.moves, 16);
}

static void tasks_of_others_are_left(void **state)
{
	(void)state;
	start();
	tree_folder(tree_path("r/mon_groups/pod"));
	tree_proc(100, "/", "pod", 100, 101, 0);
	ttmon_resctrl_proc(r, 100, 7);
	assert_int_equal(nr_told, 1);
	assert_int_equal(fake.mkdirs, 0);
	assert_int_equal(info().foreign, 2);
	assert_int_equal(info().waiting, 0);
	/*
	 * One thread of a process, one of another instance of the daemon, and one that the kernel refuses.
	 */
	tree_proc(200, "/", "", 200, 203, 0);
	tree_proc(200, "/", "pod", 201, 0);
	tree_proc(200, "/", "ttmon-1.1-200.7", 202, 0);
	fake.refused_tid = 203;
	ttmon_resctrl_proc(r, 200, 7);
	assert_tasks("", 200, "200\n");
	assert_int_equal(info().foreign, 5);
	tick(S);
	assert_int_equal(info().foreign, 5);
	ttmon_resctrl_exit(r, 100);
	assert_true(tree_has(tree_path("r/mon_groups/pod")));
	/*
	 * A child is created in the group of its parent: it belongs to this daemon, and gets a group of its
	 * own.
	 */
	tree_proc(300, "/", strrchr(in_group("", 200, ""), '/') + 1, 300, 0);
	ttmon_resctrl_proc(r, 300, 7);
	assert_tasks("", 300, "300\n");
}

static void group_is_made_in_the_control_group_of_the_process(void **state)
{
	(void)state;
	tree_ctrl("batch");
	start();
	tree_proc(100, "batch", "", 100, 0);
	ttmon_resctrl_proc(r, 100, 7);
	assert_tasks("batch", 100, "100\n");
	assert_false(tree_has(in_group("", 100, "")));
	ttmon_resctrl_exit(r, 100);
	assert_false(tree_has(in_group("batch", 100, "")));
	/* Names that lead to another folder are not accepted. */
	tree_proc(101, "../x", "", 101, 0);
	ttmon_resctrl_proc(r, 101, 7);
	assert_tasks("", 101, "101\n");
}

static void without_the_places_of_tasks_lists_are_read(void **state)
{
	(void)state;
	fake.no_places = true;
	tree_ctrl("batch");
	start();
	tree_folder(tree_path("r/batch/mon_groups/pod"));
	tree_text(tree_path("r/batch/tasks"), "7\n100\n201\n202\n");
	tree_text(tree_path("r/batch/mon_groups/pod/tasks"), "7\n201\n");
	tree_proc(100, "", "", 100, 0);
	tree_proc(200, "", "", 200, 201, 0);
	tree_proc(202, "", "", 202, 0);
	tree_proc(201, "", "", 201, 0);
	ttmon_resctrl_proc(r, 100, 7);
	ttmon_resctrl_proc(r, 200, 7);
	ttmon_resctrl_proc(r, 201, 7);
	ttmon_resctrl_proc(r, 202, 7);
	assert_tasks("batch", 100, "100\n");
	assert_tasks("", 200, "200\n"); /* 201 is in pod */
	assert_tasks("batch", 202, "202\n");
	assert_int_equal(info().groups, 3);
	assert_int_equal(info().foreign, 2);
}

static void stale_groups_are_removed(void **state)
{
	static const char *const stay[] = {
		"pod_1",	   "ttmon-",	    "ttmon-11",
		"ttmon-11.1",	   "ttmon-11.1-5",  "ttmon-11.1-5.6x",
		"ttmon-011.1-5.6", "ttmon-x.1-5.6", "ttmon-11.77777777777777777777-5.6",
		"ttmon-12.77-5.6", /* its daemon runs */
	};
	char path[PATH_MAX];
	uint64_t started;
	static const char *const go[] = { "ttmon-11.1-5.6", "ttmon-12.78-5.6" };

	(void)state;
	tree_stat(12, 77);
	tree_ctrl("batch");
	for (unsigned int i = 0; i < ARRAY_SIZE(stay); i++)
		tree_folder(tree_path("r/mon_groups/%s", stay[i]));
	for (unsigned int i = 0; i < 2; i++) {
		tree_folder(tree_path("r/mon_groups/%s", go[i]));
		tree_folder(tree_path("r/batch/mon_groups/%s", go[i]));
	}
	tree_folder(tree_path("elsewhere"));
	assert_int_equal(symlink(tree_path("elsewhere"), tree_path("r/mon_groups/ttmon-11.1-5.7")), 0);
	start();
	for (unsigned int i = 0; i < ARRAY_SIZE(stay); i++)
		assert_true(tree_has(tree_path("r/mon_groups/%s", stay[i])));
	for (unsigned int i = 0; i < 2; i++) {
		assert_false(tree_has(tree_path("r/mon_groups/%s", go[i])));
		assert_false(tree_has(tree_path("r/batch/mon_groups/%s", go[i])));
	}
	assert_true(tree_has(tree_path("elsewhere")));
	/* A group of an earlier instance with this process id, which runs. */
	assert_int_equal(sscanf(r->prefix, "ttmon-%*u.%" SCNu64, &started), 1);
	tree_stat((uint32_t)getpid(), started);
	snprintf(path, sizeof(path), "%s", in_group("", 5, ""));
	tree_folder(path);
	ttmon_resctrl_free(r);
	start();
	assert_false(tree_has(path));
}

static void ends_with_its_own_groups_removed(void **state)
{
	char path[PATH_MAX];

	(void)state;
	start();
	tree_folder(tree_path("r/mon_groups/pod"));
	tree_proc(100, "/", "", 100, 0);
	ttmon_resctrl_proc(r, 100, 7);
	snprintf(path, sizeof(path), "%s", in_group("", 100, ""));
	assert_true(tree_has(path));
	ttmon_resctrl_free(r);
	r = NULL;
	assert_false(tree_has(path));
	assert_true(tree_has(tree_path("r/mon_groups/pod")));
}

static void by_cgroup(void **state)
{
	(void)state;
	start_as(true, 10);
	for (uint32_t tgid = 100; tgid < 105; tgid++)
		tree_proc(tgid, tgid == 103 ? "batch" : "/", "", tgid, 0);
	tree_ctrl("batch");
	tree_text(tree_path("p/100/cgroup"), "12:cpu:/v1\n0::/system.slice/a\n");
	tree_text(tree_path("p/101/cgroup"), "0::/system.slice/a\n");
	tree_text(tree_path("p/102/cgroup"), "0::/system.slice/ab\n");
	tree_text(tree_path("p/103/cgroup"), "0::/system.slice/a\n");
	for (uint32_t tgid = 100; tgid < 105; tgid++)
		ttmon_resctrl_proc(r, tgid, 7);
	/* 103 is in another control group, 104 is in an unknown cgroup. */
	assert_int_equal(info().groups, 4);
	assert_tasks("", 100, "100\n101\n");
	assert_tasks("", 102, "102\n");
	assert_tasks("batch", 103, "103\n");
	assert_tasks("", 104, "104\n");
	nr_told = 0;
	ttmon_resctrl_exit(r, 100);
	assert_int_equal(nr_told, 0);
	assert_true(tree_has(in_group("", 100, "")));
	ttmon_resctrl_exit(r, 101);
	assert_rmid(2, TTMON_RMID_FREE, 1, 100); /* the owner that was reported */
	assert_false(tree_has(in_group("", 100, "")));
	assert_int_equal(info().groups, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(says_what_is_missing),
		T(tells_limits),
		T(lives_and_dies),
		T(reused_pid_is_another_process),
		T(process_that_is_gone_gets_none),
		T(threads_that_come_and_go),
		T(passes_are_bounded),
		T(tasks_of_others_are_left),
		T(group_is_made_in_the_control_group_of_the_process),
		T(without_the_places_of_tasks_lists_are_read),
		T(stale_groups_are_removed),
		T(ends_with_its_own_groups_removed),
		T(by_cgroup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
