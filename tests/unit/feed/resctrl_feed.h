/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * resctrl_feed.h: runs daemon/io/rdt/resctrl on a tree (resctrl_tree.h) and checks the facts that it
 * reports. For its unit tests.
 */
#ifndef TTMON_TEST_RESCTRL_FEED_H
#define TTMON_TEST_RESCTRL_FEED_H

#include "daemon/io/rdt/resctrl_int.h"
#include "tests/unit/feed/resctrl_tree.h"
#include "lib/os/clock.h"
#include "lib/os/log.h"

#define MS NSEC_PER_MS
#define S  NSEC_PER_SEC

/* The reported facts, in order. */
static union {
	struct ttmon_event h;
	struct ttmon_ev_rmid rmid;
	struct ttmon_ev_rdt rdt;
	struct ttmon_ev_rmid_info info;
} told[65536];
static size_t nr_told;
static struct ttmon_resctrl *r;
static uint64_t now;

static inline void take(void *ctx, const void *rec, size_t size)
{
	const struct ttmon_event *h = rec;

	assert_ptr_equal(ctx, &nr_told);
	assert_true(nr_told < ARRAY_SIZE(told) && size <= sizeof(told[0]));
	assert_int_equal(h->cpu, TTMON_CPU_DAEMON);
	memcpy(&told[nr_told++], rec, size);
}

static inline void start_as(bool by_cgroup, unsigned int hz)
{
	static char root[80], proc[80];
	struct ttmon_resctrl_cfg cfg = {
		.root = root, .proc_root = proc, .by_cgroup = by_cgroup, .hz = hz, .fact = take, .ctx = &nr_told
	};

	snprintf(root, sizeof(root), "%s/r", tree);
	snprintf(proc, sizeof(proc), "%s/p", tree);
	nr_told = 0;
	now = 1000 * S;
	assert_int_equal(ttmon_resctrl_new(&cfg, &r), 0);
}

static inline void start(void)
{
	start_as(false, 10);
	r->budget_ns = 100 * S; /* a slow machine is no excuse */
}

static inline void tick(uint64_t later)
{
	now += later;
	ttmon_resctrl_tick(r, now);
}

static inline struct ttmon_resctrl_info info(void)
{
	struct ttmon_resctrl_info i;

	ttmon_resctrl_get_info(r, &i);
	return i;
}

static inline int setup(void **state)
{
	ttmon_log_set_level(TTMON_LOG_ERROR);
	return tree_setup(state);
}

static inline int teardown(void **state)
{
	ttmon_resctrl_free(r);
	r = NULL;
	return tree_teardown(state);
}

/* Path of something in the group of a process (start time 7) beneath a control group. */
static inline const char *in_group(const char *ctrl, uint32_t tgid, const char *file)
{
	return tree_path("r%s%s/mon_groups/%s%u.7%s%s", *ctrl ? "/" : "", ctrl, r->prefix, tgid, *file ? "/" : "",
			 file);
}

static inline void assert_tasks(const char *ctrl, uint32_t tgid, const char *expected)
{
	char text[256];

	tree_text_of(in_group(ctrl, tgid, "tasks"), text, sizeof(text));
	assert_string_equal(text, expected);
}

static inline void assert_rmid(size_t i, enum ttmon_rmid_op op, uint32_t rmid, uint32_t tgid)
{
	assert_true(i < nr_told);
	assert_int_equal(told[i].h.kind, TTMON_EV_RMID_SET);
	assert_int_equal(told[i].rmid.op, op);
	assert_int_equal(told[i].rmid.rmid, rmid);
	assert_int_equal(told[i].h.tgid, tgid);
	assert_int_equal(told[i].rmid.when_ns, told[i].h.ts_ns);
}

/* The reading of a domain among the last two facts. */
static inline const struct ttmon_ev_rdt *last_rdt(uint16_t domain)
{
	for (size_t i = nr_told - 2; i < nr_told; i++)
		if (told[i].h.kind == TTMON_EV_RDT_READ && told[i].rdt.domain == domain)
			return &told[i].rdt;
	fail_msg("no reading of domain %u", domain);
	return NULL;
}

static inline size_t count_rdt(size_t from, uint32_t rmid)
{
	size_t n = 0;

	for (size_t i = from; i < nr_told; i++)
		n += told[i].h.kind == TTMON_EV_RDT_READ && told[i].rdt.rmid == rmid;
	return n;
}

static inline void assert_refused(const char *root, const char *why)
{
	char text[256] = "";

	assert_int_equal(ttmon_resctrl_check(root, text, sizeof(text)), -ENODEV);
	if (!strstr(text, why))
		fail_msg("\"%s\" does not say \"%s\"", text, why);
}

#endif
