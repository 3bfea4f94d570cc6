// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_ttsys.c: io/tt/sys.c over trees of sysfs and procfs files: order, identity, keys, memory,
 * Galaxy trays, chips in reset, and attributes with every kind of invalid value. The complete hosts of
 * tests/standin/tt_tree.py are read too.
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>

#include "daemon/io/tt/sys.h"
#include "tests/unit/feed/tt_tree.h"

#define NONE 0xffffffffu

static struct ttmon_ttsys_chip *chips;
static size_t nr;

static struct ttmon_ttsys_roots roots(void)
{
	static char sys[128], proc[128];

	snprintf(sys, sizeof(sys), "%s/sys", tree);
	snprintf(proc, sizeof(proc), "%s/proc", tree);
	return (struct ttmon_ttsys_roots){ .sysfs = sys, .proc = proc };
}

static void read_tree(size_t expected)
{
	struct ttmon_ttsys_roots r = roots();

	free(chips);
	chips = NULL;
	assert_int_equal(ttmon_ttsys_read(&r, &chips, &nr), 0);
	assert_int_equal(nr, expected);
}

static int teardown(void **state)
{
	free(chips);
	chips = NULL;
	return tree_teardown(state);
}

static void is_chip(size_t i, uint32_t ordinal, uint32_t bdf, uint64_t board, uint64_t key, uint64_t unique)
{
	const struct ttmon_ev_tt_chip *f = &chips[i].fact;

	assert_int_equal(f->ordinal, ordinal);
	assert_int_equal(f->bdf, bdf);
	assert_int_equal(f->board_id, board);
	assert_int_equal(f->key_v1, key);
	assert_int_equal(f->unique_id, unique);
}

static void test_nothing(void **state)
{
	struct ttmon_ttsys_roots r = { .sysfs = "/nonexistent/tree" };
	struct ttmon_ttsys_chip *out = (void *)state;
	size_t n = 7;

	read_tree(0); /* no class: no driver */
	assert_int_equal(ttmon_ttsys_read(&r, &out, &n), -ENOENT);
	assert_ptr_equal(out, state);
	assert_int_equal(n, 7);
	tree_text(tree_path("sys/class/tenstorrent"), "not a folder");
	r = roots();
	assert_int_equal(ttmon_ttsys_read(&r, &out, &n), -ENOTDIR);
	assert_ptr_equal(out, state);
}

static void test_empty_class(void **state)
{
	(void)state;
	tree_text(tree_path("sys/class/tenstorrent/tenstorrent"), "");
	read_tree(0);
}

static void test_n300(void **state)
{
	(void)state;
	tree_chip(5, "0001:c1:02.3", "n300", "0100014511732099\n", "00000000000000A1\n");
	tree_attr(5, "tt_aiclk", "1000\n");
	tree_attr(5, "tt_fw_bundle_ver", "18.12.0.0\n");
	tree_text(tree_path("sys/devices/pci0000:00/0001:c1:02.3/hwmon/hwmon7/name"), "wormhole\n");
	tree_text(tree_path("sys/devices/pci0000:00/0001:c1:02.3/hwmon/hwmon7/temp1_input"), "-1500\n");
	tree_text(tree_path("sys/devices/pci0000:00/0001:c1:02.3/hwmon/hwmon7/power1_input"), "15250000\n");
	tree_text(tree_path("sys/devices/pci0000:00/0001:c1:02.3/hwmon/hwmon3/name"), "nvme\n");
	tree_text(tree_path("sys/devices/pci0000:00/0001:c1:02.3/hwmon/hwmon3/temp1_input"), "99000\n");
	read_tree(2);
	is_chip(0, 5, 0x0001c113, 0x0100014511732099, 0x0001451173209900, 0); /* the key wraps at 64 bits */
	is_chip(1, 5, NONE, 0x0100014511732099, 0x0001451173209901, 0);
	assert_int_equal(chips[0].fact.asic_id, 0xa1);
	assert_int_equal(chips[0].fact.arch, TTMON_TT_WORMHOLE);
	assert_int_equal(chips[0].fact.flags, 0);
	assert_string_equal(chips[0].fact.card, "n300");
	assert_int_equal(chips[0].temperature_mc, -1500);
	assert_int_equal(chips[0].power_uw, 15250000);
	assert_int_equal(chips[0].aiclk_mhz, 1000);
	assert_int_equal(chips[0].numa_node, 1);
	assert_string_equal(chips[0].fw_bundle, "18.12.0.0");
	assert_false(chips[0].resetting);
	assert_int_equal(chips[0].fact.dram_bytes, 12ULL << 30);
	assert_int_equal(chips[0].fact.l1_bytes, 64 * 1499136);
	/* The remote half: sysfs has no data of it. */
	assert_int_equal(chips[1].fact.flags, TTMON_TT_CHIP_REMOTE);
	assert_int_equal(chips[1].fact.location, 1);
	assert_int_equal(chips[1].fact.asic_id, 0);
	assert_int_equal(chips[1].fact.l1_bytes, 64 * 1499136);
	assert_int_equal(chips[1].temperature_mc, INT32_MIN);
	assert_int_equal(chips[1].power_uw, -1);
	assert_int_equal(chips[1].aiclk_mhz, -1);
	assert_string_equal(chips[1].fact.card, "n300");
}

/*
 * In the order of bus addresses, not of numbers; remote halves after all others, in the order of the
 * local ones.
 */
static void test_order(void **state)
{
	(void)state;
	tree_chip(0, "0000:81:00.0", "n300", "0100014511700002", NULL);
	tree_chip(1, "0000:41:00.0", "n150", "0100018511700003", "0000000000000099");
	tree_chip(2, "0000:01:00.0", "n300", "0100014511700001", NULL);
	tree_chip(10, "0000:02:00.0", "p150b", "0100041011700004", "0000000000000077");
	read_tree(6);
	is_chip(0, 2, 0x100, 0x0100014511700001, 0x0001451170000100, 0);
	is_chip(1, 10, 0x200, 0x0100041011700004, 0x0004101170000400, 0);
	is_chip(2, 1, 0x4100, 0x0100018511700003, 0x0001851170000300, 0);
	is_chip(3, 0, 0x8100, 0x0100014511700002, 0x0001451170000200, 0);
	is_chip(4, 2, NONE, 0x0100014511700001, 0x0001451170000101, 0);
	is_chip(5, 0, NONE, 0x0100014511700002, 0x0001451170000201, 0);
	assert_int_equal(chips[1].fact.arch, TTMON_TT_BLACKHOLE);
}

/*
 * The unique id is known without asking the chip only for the single card of a host that has no second
 * chip.
 */
static void test_unique(void **state)
{
	(void)state;
	tree_chip(0, "0000:01:00.0", "n150", "0100018511700003", "0000000000000099");
	read_tree(1);
	is_chip(0, 0, 0x100, 0x0100018511700003, 0x0001851170000300, 0x0100018511700003);
	tree_drop(0);
	tree_chip(1, "0000:02:00.0", "p150a", "0100040000000004", "00000ABC00000099");
	read_tree(1);
	is_chip(0, 1, 0x200, 0x0100040000000004, 0x0004000000000400, 0xabc00000099);
	tree_chip(2, "0000:03:00.0", "p150a", "0100040000000005", "00000ABC00000098");
	read_tree(2);
	assert_int_equal(chips[0].fact.unique_id, 0); /* they may be linked */
	assert_int_equal(chips[1].fact.unique_id, 0);
}

/* Chips of a P300 share the board id. Two chips never have the same key. */
static void test_shared_boards(void **state)
{
	(void)state;
	tree_chip(0, "0000:04:00.0", "p300c", "0100046000044001", "0000000000000002");
	tree_chip(1, "0000:03:00.0", "p300c", "0100046000044001", "0000000000000001");
	tree_chip(2, "0000:05:00.0", "p300c", "0100046000044002", "0000000000000003");
	tree_chip(3, "0000:06:00.0", "n150", "0100018000000001", NULL);
	tree_chip(4, "0000:07:00.0", "n150", "0100018000000001", NULL); /* impossible: not accepted */
	read_tree(5);
	is_chip(0, 1, 0x300, 0x0100046000044001, 0x0004600004400100, 0);
	is_chip(1, 0, 0x400, 0x0100046000044001, 0x0004600004400101, 0);
	is_chip(2, 2, 0x500, 0x0100046000044002, 0x0004600004400200, 0);
	is_chip(3, 3, 0x600, 0x0100018000000001, 0x0001800000000100, 0);
	is_chip(4, 4, 0x700, 0x0100018000000001, 0, 0);
	assert_int_equal(chips[1].fact.location, 1);
}

static void test_galaxy_trays(void **state)
{
	static const struct {
		const char *bdf, *card, *serial;
		unsigned int tray, chip;
	} is[] = {
		{ "0000:c1:00.0", "galaxy-wormhole", "0100035000000001", 1, 1 },
		{ "0000:88:00.0", "galaxy-wormhole", "0100035000000002", 2, 8 },
		{ "0000:05:00.0", "galaxy-wormhole", "0100035000000003", 3, 5 },
		{ "0000:43:00.0", "galaxy-wormhole", "0100035000000004", 4, 3 },
		{ "0000:06:00.0", "galaxy-blackhole", "0100047000000001", 1, 6 },
		{ "0000:42:00.0", "galaxy-blackhole", "0100047000000002", 2, 2 },
		{ "0000:c7:00.0", "galaxy-blackhole", "0100047000000003", 3, 7 },
		{ "0000:84:00.0", NULL, "0100047000000004", 4, 4 },		  /* the board id shows it too */
		{ "0000:21:00.0", "galaxy-blackhole", "0100047000000005", 0, 0 }, /* no tray has this bus */
	};

	(void)state;
	for (unsigned int i = 0; i < ARRAY_SIZE(is); i++)
		tree_chip(i, is[i].bdf, is[i].card, is[i].serial, NULL);
	tree_text(tree_path("sys/devices/pci0000:00/0000:84:00.0/device"), "0xb140\n");
	read_tree(ARRAY_SIZE(is));
	for (size_t j = 0; j < nr; j++) {
		const struct ttmon_ev_tt_chip *f = &chips[j].fact;
		unsigned int tray = is[f->ordinal].tray, chip = is[f->ordinal].chip;

		assert_int_equal(f->tray, tray);
		assert_int_equal(f->chip, chip);
		assert_int_equal(f->flags, tray ? TTMON_TT_CHIP_GALAXY : 0);
		assert_int_equal(f->location, tray << 4 | chip);
		assert_int_equal(f->key_v1, tray ? f->board_id << 8 | tray << 4 | chip : 0);
		assert_int_equal(f->l1_bytes, f->arch == TTMON_TT_WORMHOLE ? 80 * 1499136 : 130 * 1572864);
		if (f->ordinal == 4)
			assert_string_equal(f->card, "galaxy-blackhole");
	}
}

static void test_memory(void **state)
{
	static const struct {
		uint64_t upi;
		unsigned int arch;
		const char *card;
		uint64_t dram_gib, l1;
	} is[] = {
		{ 0x18, TTMON_TT_WORMHOLE, "", 12, 72 * 1499136 },
		{ 0x14, 0, NULL, 12, 64 * 1499136 },
		{ 0x35, TTMON_TT_WORMHOLE, "", 12, 80 * 1499136 },
		{ 0x36, TTMON_TT_BLACKHOLE, "", 28, 120 * 1572864 },
		{ 0x43, TTMON_TT_BLACKHOLE, "", 28, 120 * 1572864 },
		{ 0x40, TTMON_TT_BLACKHOLE, "", 32, 120 * 1572864 },
		{ 0x41, TTMON_TT_BLACKHOLE, "", 32, 120 * 1572864 },
		{ 0x42, TTMON_TT_BLACKHOLE, "", 32, 120 * 1572864 },
		{ 0x44, TTMON_TT_BLACKHOLE, "", 32, 120 * 1572864 },
		{ 0x45, TTMON_TT_BLACKHOLE, "", 32, 120 * 1572864 },
		{ 0x46, TTMON_TT_BLACKHOLE, "", 32, 120 * 1572864 },
		{ 0x47, TTMON_TT_BLACKHOLE, "", 32, 130 * 1572864 },
		{ 0, TTMON_TT_BLACKHOLE, "p100a", 28, 120 * 1572864 },
		{ 0, TTMON_TT_WORMHOLE, "n150", 12, 72 * 1499136 },
		{ 0, TTMON_TT_WORMHOLE, "unknown", 12, 0 },
		{ 0x99, TTMON_TT_BLACKHOLE, "", 0, 0 },
		{ 0x14, TTMON_TT_BLACKHOLE, "", 0, 0 }, /* the two disagree */
		{ 0, 0, NULL, 0, 0 },
	};
	uint64_t dram, l1;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(is); i++) {
		ttmon_ttsys_memory(0xff00000fffffffff | is[i].upi << 36, is[i].arch, is[i].card, &dram, &l1);
		assert_int_equal(dram, is[i].dram_gib << 30);
		assert_int_equal(l1, is[i].l1);
	}
	assert_string_equal(ttmon_ttsys_board(0x0100014511732099), "n300");
	assert_null(ttmon_ttsys_board(0));
	assert_null(ttmon_ttsys_board(0x0100099511732099));
	assert_string_equal(ttmon_ttsys_card_board(0, "p150c"), "p150");
	assert_null(ttmon_ttsys_card_board(0, ""));
}

static void test_reset(void **state)
{
	(void)state;
	tree_chip(0, "0000:01:00.0", "n300", "0100014511732099", "00000000000000A1");
	tree_chip(1, "0000:02:00.0", "", "", "");
	tree_attr(1, "tt_aiclk", "");
	read_tree(3);
	assert_false(chips[0].resetting);
	assert_true(chips[1].resetting);
	is_chip(1, 1, 0x200, 0, 0, 0);
	assert_int_equal(chips[1].aiclk_mhz, -1);
	assert_int_equal(chips[1].fact.arch, TTMON_TT_WORMHOLE); /* known from PCI */
	assert_int_equal(chips[1].fact.l1_bytes, 0);
	/* Missing attributes do not mean a reset. */
	for (int i = 0; i < 4; i++)
		tree_attr(1, (const char *[]){ "tt_card_type", "tt_serial", "tt_asic_id", "tt_aiclk" }[i], NULL);
	read_tree(3);
	assert_false(chips[1].resetting);
}

static void test_nonsense(void **state)
{
	static const char *const texts[] = { "-1\n",
					     "0x0100014511732099\n",
					     "010001451173209\n",
					     "01000145117320991\n",
					     "n300 \n",
					     "\x1b[31mred\n",
					     " \n",
					     "99999999999999999999999999\n",
					     "0100014511732099 x\n",
					     "%s%n\n",
					     "../../etc\n",
					     "1e3\n" };
	static const char *const attrs[] = { "tt_card_type", "tt_serial", "tt_asic_id", "tt_aiclk",
					     "tt_fw_bundle_ver" };
	char huge[100000], binary[256];

	(void)state;
	memset(huge, '9', sizeof(huge));
	for (size_t i = 0; i < sizeof(binary); i++)
		binary[i] = (char)i;
	for (unsigned int i = 0; i < ARRAY_SIZE(texts) + 4; i++) {
		char bdf[32];

		snprintf(bdf, sizeof(bdf), "0000:%02x:00.0", i + 1);
		tree_chip(i, bdf, "n300", NULL, NULL);
		for (size_t j = 0; j < ARRAY_SIZE(attrs); j++) {
			const char *path = tree_path("sys/class/tenstorrent/tenstorrent!%u/%s", i, attrs[j]);

			unlink(path);
			if (i < ARRAY_SIZE(texts))
				tree_text(path, texts[i]);
			else if (i == ARRAY_SIZE(texts))
				tree_bytes(path, huge, sizeof(huge));
			else if (i == ARRAY_SIZE(texts) + 1)
				tree_bytes(path, binary, sizeof(binary));
			else if (i == ARRAY_SIZE(texts) + 2)
				assert_int_equal(mkfifo(path, 0600), 0); /* without a writer: must not wait */
			else
				tree_link("/dev/zero", path);
		}
		tree_text(tree_path("sys/devices/pci0000:00/%s/device", bdf), "0xzzzz\n");
		tree_text(tree_path("sys/devices/pci0000:00/%s/hwmon/hwmon0/temp1_input", bdf),
			  i & 1 ? "-999999\n" : "1000001\n");
		tree_text(tree_path("sys/devices/pci0000:00/%s/hwmon/hwmon0/power1_input", bdf),
			  i & 1 ? "-1\n" : "99999999999\n");
		tree_text(tree_path("sys/devices/pci0000:00/%s/numa_node", bdf), "-1\n");
	}
	read_tree(ARRAY_SIZE(texts) + 4);
	for (size_t i = 0; i < nr; i++) {
		is_chip(i, (uint32_t)i, (uint32_t)(i + 1) << 8, 0, 0, 0);
		assert_int_equal(chips[i].fact.asic_id, 0);
		assert_int_equal(chips[i].fact.arch, 0);
		assert_int_equal(chips[i].aiclk_mhz, -1);
		assert_int_equal(chips[i].power_uw, -1);
		assert_int_equal(chips[i].temperature_mc, INT32_MIN);
		assert_int_equal(chips[i].numa_node, UINT32_MAX);
		assert_false(chips[i].resetting);
		for (const char *s = chips[i].fw_bundle; *s; s++)
			assert_true(*s > ' ' && *s < 127);
	}
}

static void test_names(void **state)
{
	static const char *const no[] = { "tenstorrent!",
					  "tenstorrent!x",
					  "tenstorrent!01",
					  "tenstorrent!4294967296",
					  "tenstorrent!-1",
					  "tenstorrent",
					  "x!1" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(no); i++)
		tree_text(tree_path("sys/class/tenstorrent/%s/tt_serial", no[i]), "0100014511732099\n");
	tree_attr(7, "tt_serial", "0100018511732099\n"); /* a plain folder, without a bus address */
	tree_text(tree_path("sys/class/tenstorrent/tenstorrent!8"), "a file");
	read_tree(2);
	is_chip(0, 7, NONE, 0x0100018511732099, 0x0001851173209900, 0);
	tree_link("tt_serial", tree_path("sys/class/tenstorrent/tenstorrent!7/tt_asic_id"));
	read_tree(2);
	assert_int_equal(chips[0].fact.asic_id, 0);		 /* a link is not followed, wherever it leads */
	assert_int_equal(chips[0].fact.arch, TTMON_TT_WORMHOLE); /* of the board */
	is_chip(1, 8, NONE, 0, 0, 0);
}

static void test_300_chips(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 300; i++) {
		char bdf[32], serial[32];

		snprintf(bdf, sizeof(bdf), "%04x:%02x:00.0", i / 200, 255 - i % 200);
		snprintf(serial, sizeof(serial), "%016" PRIX64, (uint64_t)0x0100014000000000 + i);
		tree_chip(i, bdf, "n300", serial, NULL);
	}
	read_tree(TTMON_TTSYS_MAX); /* the first ones by number, and no room for remote halves */
	for (size_t i = 0; i < nr; i++) {
		assert_int_equal(chips[i].fact.flags, 0);
		assert_true(chips[i].fact.ordinal < TTMON_TTSYS_MAX);
		assert_true(!i || chips[i - 1].fact.bdf < chips[i].fact.bdf);
	}
	for (unsigned int i = 200; i < 300; i++)
		tree_drop(i);
	read_tree(TTMON_TTSYS_MAX);
	assert_int_equal(chips[199].fact.flags, 0);
	assert_int_equal(chips[200].fact.flags, TTMON_TT_CHIP_REMOTE);
	assert_int_equal(chips[255].fact.ordinal, chips[55].fact.ordinal);
}

static void test_pids(void **state)
{
	struct ttmon_ttsys_roots r = roots();
	uint32_t pids[4] = { 0 };
	size_t n = 9;

	(void)state;
	assert_int_equal(ttmon_ttsys_pids(&r, 3, pids, 4, &n), -ENOENT);
	assert_int_equal(n, 0);
	tree_text(tree_path("proc/driver/tenstorrent/3/pids"),
		  "12\n12\n7\n0\n-4\nx\n99999999999999999999\n4294967295\n12\n2147483647\n");
	assert_int_equal(ttmon_ttsys_pids(&r, 3, pids, 4, &n), 0);
	assert_int_equal(n, 3);
	assert_int_equal(pids[0], 12);
	assert_int_equal(pids[1], 7);
	assert_int_equal(pids[2], 2147483647);
	assert_int_equal(ttmon_ttsys_pids(&r, 3, pids, 1, &n), 0);
	assert_int_equal(n, 1);
	tree_text(tree_path("proc/driver/tenstorrent/4/pids"), "");
	assert_int_equal(ttmon_ttsys_pids(&r, 4, pids, 4, &n), 0);
	assert_int_equal(n, 0);
	tree_link("/proc/self/status", tree_path("proc/driver/tenstorrent/5/pids"));
	assert_int_equal(ttmon_ttsys_pids(&r, 5, pids, 4, &n), -ELOOP);
}

/* The data that tt_tree.py prints of each chip is what is read back. */
static void test_hosts(void **state)
{
	static const struct {
		const char *kind;
		size_t chips, remote, galaxy, unique;
	} hosts[] = {
		{ "n150", 1, 0, 0, 1 },
		{ "n300", 2, 1, 0, 0 },
		{ "n300x2", 4, 2, 0, 0 },
		{ "t3k", 8, 4, 0, 0 },
		{ "p100", 1, 0, 0, 1 },
		{ "p150", 1, 0, 0, 1 },
		{ "p150x2", 2, 0, 0, 0 },
		{ "p300", 2, 0, 0, 0 },
		{ "mixed", 4, 1, 0, 0 },
		{ "galaxy-wormhole", 32, 0, 32, 0 },
		{ "galaxy-blackhole", 32, 0, 32, 0 },
		{ "none", 0, 0, 0, 0 },
	};
	char cmd[512], line[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++) {
		size_t remote = 0, galaxy = 0, unique = 0, keys = 0, lines = 0;
		char *first;
		FILE *f;

		snprintf(cmd, sizeof(cmd), "python3 tests/standin/tt_tree.py %s %s", hosts[i].kind, tree);
		f = popen(cmd, "r");
		assert_non_null(f);
		/* The first line is printed when the tree is complete. */
		first = fgets(line, sizeof(line), f);
		read_tree(hosts[i].chips);
		for (; first; first = fgets(line, sizeof(line), f)) {
			unsigned int n, domain, bus, dev, fn;
			char card[32];
			uint64_t board, asic;
			bool found = false;

			assert_int_equal(sscanf(line, "%u %x:%x:%x.%x %31s %" SCNx64 " %" SCNx64, &n, &domain, &bus,
						&dev, &fn, card, &board, &asic),
					 8);
			for (size_t j = 0; j < nr && !found; j++)
				found = chips[j].fact.ordinal == n && chips[j].fact.bdf == (bus << 8 | dev << 3 | fn) &&
					!strcmp(chips[j].fact.card, card) && chips[j].fact.board_id == board &&
					chips[j].fact.asic_id == asic;
			assert_true(found);
			lines++;
		}
		assert_int_equal(pclose(f), 0);
		for (size_t j = 0; j < nr; j++) {
			const struct ttmon_ev_tt_chip *c = &chips[j].fact;

			remote += !!(c->flags & TTMON_TT_CHIP_REMOTE);
			galaxy += !!(c->flags & TTMON_TT_CHIP_GALAXY);
			unique += !!c->unique_id;
			keys += !!c->key_v1;
			assert_true(c->dram_bytes && c->l1_bytes && c->arch);
			/* On purpose, numbers and bus order disagree here. */
			if (!strcmp(hosts[i].kind, "galaxy-wormhole"))
				assert_int_equal(c->ordinal, (c->tray - 1) * 8 + c->chip - 1);
		}
		assert_int_equal(lines, hosts[i].chips - hosts[i].remote);
		assert_int_equal(remote, hosts[i].remote);
		assert_int_equal(galaxy, hosts[i].galaxy);
		assert_int_equal(unique, hosts[i].unique);
		assert_int_equal(keys, hosts[i].chips);
	}
	snprintf(cmd, sizeof(cmd), "python3 tests/standin/tt_tree.py n300x2 %s --nonsense --reset 0 >/dev/null", tree);
	assert_int_equal(system(cmd), 0);
	read_tree(2 + 5 + 1);
	for (size_t j = 0; j < nr; j++)
		assert_int_equal(chips[j].resetting, chips[j].fact.ordinal == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, tree_setup, teardown)
		T(test_nothing),       T(test_empty_class),  T(test_n300),   T(test_order), T(test_unique),
		T(test_shared_boards), T(test_galaxy_trays), T(test_memory), T(test_reset), T(test_nonsense),
		T(test_names),	       T(test_300_chips),    T(test_pids),   T(test_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
