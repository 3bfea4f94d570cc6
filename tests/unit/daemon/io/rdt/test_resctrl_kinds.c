// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_resctrl_kinds.c: io/rdt/resctrl on trees of the kinds that exist in 2026: telemetry of
 * packages, no L3 monitoring, sub-NUMA clusters, bandwidth counters that are assigned. Folders, files
 * and their texts are those of the page "User Interface for Resource Control feature"
 * (filesystems/resctrl.rst) of Linux 7.3.4, as Debian's package linux-doc-7.3 has it; the numbers are
 * invented.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/feed/resctrl_feed.h"

/* Telemetry */

static void decimal_fractions(void **state)
{
	static const struct {
		const char *text;
		bool ok;
		uint64_t millionths;
	} cases[] = {
		{ "0", true, 0 },
		{ "7", true, 7000000 },
		{ "0.02203", true, 22030 },
		{ "94499439.510380", true, 94499439510380 },
		{ "1.9999999999", true, 1999999 },
		{ "0.000001", true, 1 },
		{ "18446744073708.999999", true, 18446744073708999999ULL },
		{ "18446744073709", false, 0 },
		{ "99999999999999999999999999", false, 0 },
		{ "1.", false, 0 },
		{ ".5", false, 0 },
		{ "1.5x", false, 0 },
		{ "1.5.5", false, 0 },
		{ "-1.5", false, 0 },
		{ "1e3", false, 0 },
		{ "", false, 0 },
		{ "Unavailable", false, 0 },
		{ "Error", false, 0 },
	};
	uint64_t v;

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		v = 0;
		if (ttmon_resctrl_decimal(cases[i].text, &v) != cases[i].ok || v != cases[i].millionths)
			fail_msg("\"%s\": %llu", cases[i].text, (unsigned long long)v);
	}
}

/* Makes a package of a group with the content of its files; NULL: there is no such file. */
static void package(uint32_t tgid, const char *nn, const char *energy, const char *activity)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "mon_data/mon_PERF_PKG_%s/core_energy", nn);
	tree_text(in_group("", tgid, path), energy);
	snprintf(path, sizeof(path), "mon_data/mon_PERF_PKG_%s/activity", nn);
	tree_text(in_group("", tgid, path), activity);
	snprintf(path, sizeof(path), "mon_data/mon_PERF_PKG_%s/uops_retired", nn);
	tree_text(in_group("", tgid, path), "123456789\n");
}

static void telemetry_beside_l3(void **state)
{
	(void)state;
	tree_text(tree_path("r/info/PERF_PKG_MON/num_rmids"), "32\n");
	tree_text(tree_path("r/info/PERF_PKG_MON/mon_features"), "core_energy\nactivity\nuops_retired\n");
	start();
	assert_int_equal(info().telemetry_has, 3);
	for (uint32_t tgid = 100; tgid < 102; tgid++) {
		tree_proc(tgid, "/", "", tgid, 0);
		ttmon_resctrl_proc(r, tgid, 7);
	}
	tick(0);
	/* The first reading is the baseline: the counters ran before. */
	package(100, "00", "10.25\n", "0.5\n");
	package(100, "01", "1000\n", "7.0\n");
	package(101, "00", "3.000001\n", "1.000000\n");
	tick(100 * MS);
	assert_int_equal(info().telemetry[TTMON_RESCTRL_ENERGY], 0);
	package(100, "00", "11.5\n", "0.75\n");
	package(100, "01", "1000.000001\n", "Unavailable\n");
	package(101, "00", "3.5\n", NULL);
	tick(100 * MS);
	assert_int_equal(info().telemetry[TTMON_RESCTRL_ENERGY], 1250000 + 1 + 499999);
	assert_int_equal(info().telemetry[TTMON_RESCTRL_ACTIVITY], 250000);
	/*
	 * Energy during a missing reading is part of the next valid one. A counter that started again does not
	 * give negative energy.
	 */
	package(100, "01", "0.5\n", "9.0\n");
	tick(100 * MS);
	assert_int_equal(info().telemetry[TTMON_RESCTRL_ENERGY], 1750000);
	assert_int_equal(info().telemetry[TTMON_RESCTRL_ACTIVITY], 2250000);
	/* Readings of L3 are the same as without telemetry, and no package is taken for a domain. */
	for (size_t i = 0; i < nr_told; i++)
		if (told[i].h.kind == TTMON_EV_RDT_READ)
			assert_true(told[i].rdt.domain < 2);
	assert_int_equal(count_rdt(0, 1), 2 * 4);
}

static void telemetry_is_not_there(void **state)
{
	(void)state;
	start();
	tree_proc(100, "/", "", 100, 0);
	ttmon_resctrl_proc(r, 100, 7);
	package(100, "00", "10.25\n", "0.5\n");
	tick(100 * MS);
	assert_int_equal(info().telemetry_has, 0);
	assert_int_equal(info().telemetry[TTMON_RESCTRL_ENERGY], 0);
}

/* There are as many groups as the smaller of the two numbers of RMIDs. */
static void telemetry_has_fewer_rmids(void **state)
{
	(void)state;
	tree_text(tree_path("r/info/PERF_PKG_MON/num_rmids"), "8\n");
	tree_text(tree_path("r/info/PERF_PKG_MON/mon_features"), "core_energy\n");
	start();
	assert_int_equal(info().max_rmid, 7);
	assert_int_equal(info().telemetry_has, 1);
	assert_int_equal(told[0].info.max_rmid, 7);
}

/* No L3 monitoring */

static void named_for_what_it_is(void **state)
{
	char root[80];

	(void)state;
	snprintf(root, sizeof(root), "%s/r", tree);
	tree_remove(tree_path("r/info/L3_MON"));
	tree_folder(tree_path("r/info/L3"));
	tree_folder(tree_path("r/info/MB"));
	assert_refused(root, "has no L3 monitoring (no info/L3_MON): this CPU can only allocate");
	tree_text(tree_path("r/info/PERF_PKG_MON/num_rmids"), "576\n");
	tree_text(tree_path("r/info/PERF_PKG_MON/mon_features"), "core_energy\nactivity\n");
	assert_refused(root, "monitors PERF_PKG_MON alone, not L3: nothing of caches and memory bandwidth");
}

/* Sub-NUMA clusters */

/*
 * There are two nodes for each L3. Their own values are below the sums, and only the sums are
 * reported.
 */
static void sub_numa_clusters(void **state)
{
	static const char *const files[] = { "llc_occupancy", "mbm_total_bytes", "mbm_local_bytes" };
	char path[PATH_MAX], text[32];

	(void)state;
	start();
	tree_proc(100, "/", "", 100, 0);
	ttmon_resctrl_proc(r, 100, 7);
	for (unsigned int node = 0; node < 4; node++) {
		for (unsigned int i = 0; i < 3; i++) {
			snprintf(path, sizeof(path), "mon_data/mon_L3_%02u/mon_sub_L3_%02u/%s", node / 2, node,
				 files[i]);
			snprintf(text, sizeof(text), "%u\n", 1000 * (node + 1) + i);
			tree_text(in_group("", 100, path), text);
		}
	}
	for (unsigned int l3 = 0; l3 < 2; l3++) {
		for (unsigned int i = 0; i < 3; i++) {
			snprintf(path, sizeof(path), "mon_data/mon_L3_%02u/%s", l3, files[i]);
			snprintf(text, sizeof(text), "%u\n", 3000 + 4000 * l3 + 2 * i);
			tree_text(in_group("", 100, path), text);
		}
	}
	nr_told = 0;
	tick(100 * MS);
	tick(100 * MS);
	assert_int_equal(nr_told, 2);
	assert_int_equal(last_rdt(0)->value[TTMON_RDT_OCCUPANCY], 3000);
	assert_int_equal(last_rdt(1)->value[TTMON_RDT_OCCUPANCY], 7000);
	assert_int_equal(last_rdt(1)->value[TTMON_RDT_TOTAL], 7002);
	assert_int_equal(last_rdt(1)->value[TTMON_RDT_LOCAL], 7004);
}

/* Counters that are assigned */

static void mode(const char *text, const char *on_mkdir, const char *available)
{
	tree_text(tree_path("r/info/L3_MON/mbm_assign_mode"), text);
	tree_text(tree_path("r/info/L3_MON/num_mbm_cntrs"), "0=32;1=32\n");
	tree_text(tree_path("r/info/L3_MON/available_mbm_cntrs"), available);
	tree_text(tree_path("r/info/L3_MON/mbm_assign_on_mkdir"), on_mkdir);
}

/* A process whose group has no counters, and the file through which they are assigned. */
static void without_counters(uint32_t tgid)
{
	static const char *const files[] = { "mon_L3_00/mbm_total_bytes", "mon_L3_00/mbm_local_bytes",
					     "mon_L3_01/mbm_total_bytes", "mon_L3_01/mbm_local_bytes" };
	char path[PATH_MAX];

	tree_proc(tgid, "/", "", tgid, 0);
	ttmon_resctrl_proc(r, tgid, 7);
	tree_text(in_group("", tgid, "mbm_L3_assignments"), "");
	for (unsigned int i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "mon_data/%s", files[i]);
		tree_text(in_group("", tgid, path), "Unassigned\n");
	}
}

static void assert_assigned(uint32_t tgid, const char *expected)
{
	char text[512];

	tree_text_of(in_group("", tgid, "mbm_L3_assignments"), text, sizeof(text));
	assert_string_equal(text, expected);
}

static void no_counter_is_free(void **state)
{
	(void)state;
	mode("[mbm_event]\ndefault\n", "1\n", "0=0;1=0\n");
	start();
	without_counters(100);
	tick(0);
	nr_told = 0;
	tick(100 * MS);
	assert_int_equal(last_rdt(0)->state[TTMON_RDT_TOTAL], TTMON_RDT_UNASSIGNED);
	assert_int_equal(last_rdt(0)->state[TTMON_RDT_OCCUPANCY], TTMON_RDT_OK);
	assert_string_equal(info().reason, "1 groups have no bandwidth counter: the hardware has too few to assign "
					   "(info/L3_MON/num_mbm_cntrs)");
	assert_assigned(100, "");
}

/* The group was made when no counter was free, and the kernel does not assign one later. */
static void counters_come_free(void **state)
{
	(void)state;
	mode("[mbm_event]\ndefault\n", "1\n", "0=0;1=0\n");
	start();
	without_counters(100);
	tick(0);
	tick(100 * MS);
	mode("[mbm_event]\ndefault\n", "1\n", "0=0;1=4\n");
	tick(S);
	assert_assigned(100, "mbm_total_bytes:1=e\nmbm_local_bytes:1=e\n");
	assert_int_equal(info().assigned, 2);
	/* The group has its counters in this domain; then in the other domain. */
	tree_text(in_group("", 100, "mon_data/mon_L3_01/mbm_total_bytes"), "Unavailable\n");
	tree_text(in_group("", 100, "mon_data/mon_L3_01/mbm_local_bytes"), "0\n");
	mode("[mbm_event]\ndefault\n", "1\n", "0=2;1=2\n");
	tick(S);
	assert_assigned(100, "mbm_total_bytes:1=e\nmbm_local_bytes:1=e\nmbm_total_bytes:0=e\nmbm_local_bytes:0=e\n");
	tree_text(in_group("", 100, "mon_data/mon_L3_00/mbm_total_bytes"), "0\n");
	tree_text(in_group("", 100, "mon_data/mon_L3_00/mbm_local_bytes"), "0\n");
	tick(S);
	assert_int_equal(info().assigned, 4);
	assert_string_equal(info().reason, "");
}

/* The administrator of the machine assigns them. */
static void counters_are_given_by_hand(void **state)
{
	(void)state;
	mode("[mbm_event]\ndefault\n", "0\n", "0=30;1=30\n");
	start();
	without_counters(100);
	tick(0);
	tick(S);
	assert_assigned(100, "");
	assert_string_equal(info().reason, "1 groups have no bandwidth counter: they are assigned by hand "
					   "(info/L3_MON/mbm_assign_on_mkdir is 0)");
}

/* There are no counters to assign: the file is missing, or says so. */
static void counters_as_they_always_were(void **state)
{
	static const char *const modes[] = { NULL, "[default]\n", "mbm_event\n[default]\n" };

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(modes); i++) {
		mode(modes[i], "1\n", "0=30;1=30\n");
		start();
		without_counters(100);
		tick(0);
		tick(S);
		assert_assigned(100, "");
		assert_string_equal(info().reason, "1 groups have no bandwidth counter");
		ttmon_resctrl_exit(r, 100);
		ttmon_resctrl_free(r);
		r = NULL;
	}
}

/*
 * The mode changes while the daemon runs: counters may have started again, so no difference is taken
 * across the change.
 */
static void the_mode_changes(void **state)
{
	size_t infos = 0;

	(void)state;
	mode("mbm_event\n[default]\n", "1\n", "0=30;1=30\n");
	start();
	without_counters(100);
	tick(0);
	nr_told = 0;
	mode("[mbm_event]\ndefault\n", "1\n", "0=30;1=30\n");
	tick(S);
	tick(S);
	for (size_t i = 0; i < nr_told; i++)
		infos += told[i].h.kind == TTMON_EV_RMID_INFO;
	assert_int_equal(infos, 1);
	assert_true(info().assigned >= 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		cmocka_unit_test(decimal_fractions),
		T(telemetry_beside_l3),
		T(telemetry_is_not_there),
		T(telemetry_has_fewer_rmids),
		T(named_for_what_it_is),
		T(sub_numa_clusters),
		T(no_counter_is_free),
		T(counters_come_free),
		T(counters_are_given_by_hand),
		T(counters_as_they_always_were),
		T(the_mode_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
