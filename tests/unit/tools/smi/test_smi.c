// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_smi.c: the pure parts of `ttmon smi`: which file is about which chip, what a chip is called,
 * what is in use, text that fits.
 *
 * The commands are part of a program, not of the archive that unit tests are linked with: their
 * sources are included.
 */
#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tools/smi/match.c"
#include "tools/smi/figures.c"
#include "tools/term/table.c"
#include "tools/smi/text.c"
#include "tools/smi/details.c"
#include "tools/smi/json.c"

#define N300 (UINT64_C(0x14) << 36)
#define N150 (UINT64_C(0x18) << 36)
#define P150 (UINT64_C(0x40) << 36)
#define P300 (UINT64_C(0x44) << 36)
#define UBB  (UINT64_C(0x35) << 36)
#define GIB  (UINT64_C(1) << 30)

#define MANY 40
static struct ttmon_ttsys_chip sys[MANY];
static struct ttmon_ttshm shm[MANY];
static struct ttmon_smi v;

/* ---- a world ---- */

static struct ttmon_ttsys_chip *add_chip(uint64_t board, unsigned int location, uint32_t flags)
{
	struct ttmon_ttsys_chip *c = &sys[v.nr_sys];

	*c = (struct ttmon_ttsys_chip){ .temperature_mc = 36400, .power_uw = 21600000, .aiclk_mhz = 1000 };
	c->fact.board_id = board;
	c->fact.location = (uint8_t)location;
	c->fact.key_v1 = board ? board << 8 | location : 0;
	c->fact.flags = flags;
	c->fact.bdf = flags & TTMON_TT_CHIP_REMOTE ? TTMON_SMI_NONE : (uint32_t)(v.nr_sys + 1) << 8;
	c->fact.ordinal = flags & TTMON_TT_CHIP_REMOTE ? 0 : (uint32_t)v.nr_sys;
	c->fact.arch = (board >> 36 & 0xff) >= 0x40 ? TTMON_TT_BLACKHOLE : TTMON_TT_WORMHOLE;
	c->fact.dram_bytes = 12 * GIB;
	c->fact.l1_bytes = 64 * UINT64_C(1499136);
	v.sys = sys;
	v.nr_sys++;
	return c;
}

static struct ttmon_ttshm *add_file(unsigned int version, uint64_t key)
{
	struct ttmon_ttshm *f = &shm[v.nr_shm++];

	*f = (struct ttmon_ttshm){ .key = key, .version = version, .mode = 0100644, .reference_count = 1 };
	snprintf(f->name, sizeof(f->name), "tt_device_%" PRIu64 "_memory", key);
	if (version != 1)
		f->bytes[TTMON_TT_TYPE_KERNEL] = TTMON_SMI_UNKNOWN;
	v.shm = shm;
	return f;
}

static struct ttmon_ttshm_process *add_process(struct ttmon_ttshm *f, int pid, bool alive, uint64_t dram)
{
	struct ttmon_ttshm_process *p = &f->processes[f->nr_processes++];

	p->pid = pid;
	p->alive = alive;
	p->bytes[TTMON_TT_TYPE_DRAM] = dram;
	f->bytes[TTMON_TT_TYPE_DRAM] += dram;
	f->num_active++;
	snprintf(p->name, sizeof(p->name), "python3");
	return p;
}

static int setup(void **state)
{
	(void)state;
	v = (struct ttmon_smi){ .shm_dir = "/dev/shm", .real_ns = UINT64_C(1800000000000000000), .mono_ns = 1000 };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < v.nr_chips; i++)
		free(v.chips[i].open.pids);
	for (size_t i = 0; i < v.nr_shm; i++)
		free(v.files[i].mapped.pids);
	free(v.files);
	free(v.chips);
	free(v.procs);
	free(v.openings);
	free(v.listed);
	return 0;
}

static void opened(uint32_t pid, uint32_t ordinal)
{
	v.openings = realloc(v.openings, (v.nr_openings + 1) * sizeof(*v.openings));
	assert_non_null(v.openings);
	v.openings[v.nr_openings++] = (struct ttmon_smi_opening){ pid, ordinal };
}

static void open_by(size_t chip, uint32_t pid)
{
	struct ttmon_smi_pids *open = &v.chips[chip].open;

	open->known = true;
	if (!pid)
		return;
	open->pids = realloc(open->pids, (open->n + 1) * sizeof(*open->pids));
	assert_non_null(open->pids);
	open->pids[open->n++] = pid;
}

static void run(void)
{
	assert_int_equal(ttmon_smi_begin(&v), 0);
	ttmon_smi_match_keys(&v);
	ttmon_smi_match_openings(&v);
	assert_int_equal(ttmon_smi_finish(&v), 0);
}

static void expect_file(size_t file, const struct ttmon_ttsys_chip *chip, enum ttmon_smi_match match)
{
	assert_int_equal(v.files[file].match, match);
	assert_int_not_equal(v.files[file].chip, TTMON_SMI_NONE);
	assert_ptr_equal(v.chips[v.files[file].chip].sys, chip);
}

static char *show(const struct ttmon_term_style *style)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	ttmon_smi_text(&v, style, f);
	assert_int_equal(fclose(f), 0);
	return text;
}

static void expect_text(const char *wanted)
{
	char *text = show(&(struct ttmon_term_style){ .columns = 0 });

	if (!strstr(text, wanted))
		fail_msg("no \"%s\" in\n%s", wanted, text);
	free(text);
}

static void expect_no_text(const char *unwanted)
{
	char *text = show(&(struct ttmon_term_style){ .columns = 0 });

	if (strstr(text, unwanted))
		fail_msg("\"%s\" in\n%s", unwanted, text);
	free(text);
}

/* ---- files and chips ---- */

static void test_match_exact(void **state)
{
	struct ttmon_ttsys_chip *n150, *p150, *linked, *near, *far;

	(void)state;
	n150 = add_chip(N150 | 0x1172d01a, 0, 0);
	n150->fact.asic_id = 0x2000000001;
	p150 = add_chip(P150 | 77, 0, 0);
	p150->fact.asic_id = 0x2000000002;
	linked = add_chip(P300 | 78, 3, 0);
	linked->fact.asic_id = 0x2000000003;
	near = add_chip(N300 | 79, 0, 0);
	far = add_chip(N300 | 79, 1, TTMON_TT_CHIP_REMOTE);
	add_file(2, N150 | 0x1172d01a);	   /* a lone card: its board id */
	add_file(3, 0x2000000002);	   /* tt_asic_id */
	add_file(4, (P300 | 78) << 5 | 3); /* Blackhole with links */
	add_file(1, (N300 | 79) << 8);
	add_file(1, (N300 | 79) << 8 | 1);
	add_file(1, (N150 | 0x1172d01a) << 8); /* a second file of one chip */
	add_file(2, N300 | 79);		       /* two chips have this board id: neither's */
	add_file(1, 0x2000000003);	       /* of version 1: an ASIC id says nothing */
	run();
	expect_file(0, n150, TTMON_SMI_MATCH_SERIAL);
	expect_file(1, p150, TTMON_SMI_MATCH_ASIC_ID);
	expect_file(2, linked, TTMON_SMI_MATCH_SERIAL);
	expect_file(3, near, TTMON_SMI_MATCH_KEY_V1);
	expect_file(4, far, TTMON_SMI_MATCH_KEY_V1);
	expect_file(5, n150, TTMON_SMI_MATCH_KEY_V1);
	expect_file(6, NULL, TTMON_SMI_MATCH_NONE);
	expect_file(7, NULL, TTMON_SMI_MATCH_NONE);
	assert_int_equal(v.nr_chips, 7);
	/* What a file is called is the chip's id from now on; version 1 does not tell one. */
	assert_true(v.chips[v.files[2].chip].unique_id == ((P300 | 78) << 5 | 3));
	assert_true(v.chips[v.files[3].chip].unique_id == 0);
}

static void test_match_twice(void **state)
{
	(void)state;
	/* A driver that reports one serial for two chips: its file belongs to neither. */
	add_chip(N150 | 1, 0, 0);
	add_chip(N150 | 1, 0, 0);
	add_file(1, (N150 | 1) << 8);
	add_file(2, N150 | 1);
	run();
	expect_file(0, NULL, TTMON_SMI_MATCH_NONE);
	expect_file(1, NULL, TTMON_SMI_MATCH_NONE);
}

static void test_match_halves(void **state)
{
	uint64_t board = N300 | UINT64_C(0x511732099), low = 0x11732099 | (board >> 4 & 0xf0000000);
	struct ttmon_ttsys_chip *near = add_chip(board, 0, 0), *far = add_chip(board, 1, TTMON_TT_CHIP_REMOTE);

	(void)state;
	assert_true(low == mangled(board));
	add_file(3, UINT64_C(3) << 32 | low);
	add_file(3, UINT64_C(2) << 32 | low);
	run();
	expect_file(0, far, TTMON_SMI_MATCH_BOARD);
	expect_file(1, near, TTMON_SMI_MATCH_BOARD);
	assert_string_equal(v.chips[0].id, "251732099");
	assert_string_equal(v.chips[1].id, "351732099R");
	assert_int_equal(v.chips[0].source, TTMON_SMI_SOURCE_UNIQUE_ID);
}

/* One file alone: by the numbers that have been seen. */
static void test_match_half(void **state)
{
	uint64_t board = N300 | UINT64_C(0x511732099);
	struct ttmon_ttsys_chip *near = add_chip(board, 0, 0), *far = add_chip(board, 1, TTMON_TT_CHIP_REMOTE);
	uint64_t other = N300 | UINT64_C(0x5117320d4);

	(void)state;
	add_file(3, UINT64_C(3) << 32 | mangled(board));
	add_file(3, UINT64_C(2) << 32 | mangled(other));
	add_chip(other, 0, 0);
	add_chip(other, 1, TTMON_TT_CHIP_REMOTE);
	run();
	expect_file(0, far, TTMON_SMI_MATCH_BOARD);
	expect_file(1, near + 2, TTMON_SMI_MATCH_BOARD);
}

/* An N300 as tt_smi shows it, from the file of its near half alone. */
static void test_far_half_is_named(void **state)
{
	uint64_t board = N300 | UINT64_C(0x511732099);

	(void)state;
	add_chip(board, 0, 0);
	add_chip(board, 1, TTMON_TT_CHIP_REMOTE);
	add_file(3, UINT64_C(2) << 32 | mangled(board));
	run();
	assert_string_equal(v.chips[0].id, "251732099");
	assert_string_equal(v.chips[1].id, "251732099R");
}

static void test_match_halves_unclear(void **state)
{
	uint64_t board = N300 | UINT64_C(0x511732099);

	(void)state;
	add_chip(board, 0, 0);
	add_chip(board, 1, TTMON_TT_CHIP_REMOTE);
	add_file(3, UINT64_C(7) << 32 | mangled(board)); /* neither of the numbers that have been seen */
	run();
	expect_file(0, NULL, TTMON_SMI_MATCH_NONE);
	assert_string_equal(v.chips[2].id, "751732099");
	assert_int_equal(v.chips[2].source, TTMON_SMI_SOURCE_FILE);
	assert_int_equal(v.chips[0].why, TTMON_SMI_WHY_UNMATCHED);
}

static void test_match_processes(void **state)
{
	struct ttmon_ttsys_chip *a = add_chip(P150 | 1, 0, 0), *b = add_chip(P150 | 2, 0, 0),
				*c = add_chip(P150 | 3, 0, 0);

	(void)state;
	add_process(add_file(3, 501), 10, true, 1);  /* has a and b open: clear once b is taken */
	add_process(add_file(3, 502), 11, true, 1);  /* has b open */
	add_process(add_file(3, 503), 12, false, 1); /* dead: says nothing */
	add_process(add_file(3, 504), 13, true, 1);  /* what it has open is not known */
	add_process(add_file(1, 505), 14, true, 1);  /* version 1 goes by its name alone */
	opened(10, 0);
	opened(10, 1);
	opened(11, 1);
	opened(12, 2);
	opened(14, 2);
	run();
	expect_file(0, a, TTMON_SMI_MATCH_PROCESS);
	expect_file(1, b, TTMON_SMI_MATCH_PROCESS);
	expect_file(2, NULL, TTMON_SMI_MATCH_NONE);
	expect_file(3, NULL, TTMON_SMI_MATCH_NONE);
	expect_file(4, NULL, TTMON_SMI_MATCH_NONE);
	assert_string_equal(v.chips[0].id, "1f5");
	assert_ptr_equal(v.chips[2].sys, c);
	assert_int_equal(v.chips[2].status, TTMON_SMI_NO_TRACKING);
}

/* Two processes of one file: only a chip that both have open can be it. */
static void test_match_processes_both(void **state)
{
	struct ttmon_ttshm *f;
	struct ttmon_ttsys_chip *b;

	(void)state;
	add_chip(P150 | 1, 0, 0);
	b = add_chip(P150 | 2, 0, 0);
	f = add_file(3, 501);
	add_process(f, 10, true, 1);
	add_process(f, 11, true, 1);
	add_process(f, 12, false, 1);
	opened(10, 0);
	opened(10, 1);
	opened(11, 1);
	opened(12, 0); /* dead: the number is another's by now */
	run();
	expect_file(0, b, TTMON_SMI_MATCH_PROCESS);
}

static void test_ids(void **state)
{
	struct ttmon_ttsys_chip *c;

	(void)state;
	add_chip(N150 | 5, 0, 0)->fact.asic_id = 0xabc;
	add_chip(N300 | 6, 0, 0);
	add_chip(N300 | 6, 1, TTMON_TT_CHIP_REMOTE);
	add_chip(0, 0, 0)->fact.bdf = 0x1234 << 16 | 0x81 << 8 | 3 << 3 | 1;
	c = add_chip(UBB | 7, 0x15, TTMON_TT_CHIP_GALAXY);
	c->fact.tray = 1;
	c->fact.chip = 5;
	add_file(1, UINT64_C(469505));
	add_file(1, (UBB | 7) << 8 | 0x48);
	add_file(3, 0x251732099);
	run();
	assert_string_equal(v.chips[0].id, "T1:N5"); /* trays first */
	assert_string_equal(ttmon_smi_source_name(v.chips[0].source), "serial");
	assert_string_equal(v.chips[1].id, "abc");
	assert_string_equal(ttmon_smi_source_name(v.chips[1].source), "asic_id");
	assert_string_equal(v.chips[2].id, "14000000006:0");
	assert_string_equal(v.chips[3].id, "14000000006:1R");
	assert_string_equal(ttmon_smi_source_name(v.chips[3].source), "serial");
	assert_string_equal(v.chips[4].id, "1234:81:03.1");
	assert_null(ttmon_smi_source_name(v.chips[4].source));
	assert_string_equal(v.chips[5].id, "72a:1");
	assert_string_equal(ttmon_smi_source_name(v.chips[5].source), "file");
	assert_string_equal(v.chips[6].id, "T4:N8");
	assert_string_equal(v.chips[6].card, "galaxy-wormhole");
	assert_true(v.chips[6].dram_total == 12 * GIB);
	assert_string_equal(v.chips[7].id, "251732099");
	assert_true(v.chips[7].dram_total == TTMON_SMI_UNKNOWN);
}

/* The far half behind its near one, although sysfs numbers the far ones last. */
static void test_order(void **state)
{
	(void)state;
	add_chip(N300 | 1, 0, 0);
	add_chip(N300 | 2, 0, 0);
	add_chip(N300 | 1, 1, TTMON_TT_CHIP_REMOTE);
	add_chip(N300 | 2, 1, TTMON_TT_CHIP_REMOTE);
	add_file(1, (N300 | 2) << 8 | 1);
	add_file(1, (N300 | 1) << 8 | 1);
	run();
	assert_string_equal(v.chips[0].id, "14000000001:0");
	assert_string_equal(v.chips[1].id, "14000000001:1R");
	assert_string_equal(v.chips[2].id, "14000000002:0");
	assert_string_equal(v.chips[3].id, "14000000002:1R");
	assert_int_equal(v.files[0].chip, 3);
	assert_int_equal(v.files[1].chip, 1);
	assert_int_equal(v.chips[3].status, TTMON_SMI_IDLE);
}

/* ---- figures ---- */

static void test_dead(void **state)
{
	struct ttmon_ttshm *f;

	(void)state;
	add_chip(N150 | 1, 0, 0);
	f = add_file(1, (N150 | 1) << 8);
	add_process(f, 10, true, 3 * GIB);
	add_process(f, 11, false, 2 * GIB);
	f->bytes[TTMON_TT_TYPE_L1] = 100;
	f->processes[1].bytes[TTMON_TT_TYPE_L1] = 5000; /* more than there is */
	f->bytes[TTMON_TT_TYPE_TRACE_BUF] = GIB;
	run();
	assert_true(v.chips[0].bytes[TTMON_TT_TYPE_DRAM] == 3 * GIB);
	assert_true(v.chips[0].dram_used == 4 * GIB);
	assert_true(v.chips[0].l1_used == 0);
	assert_int_equal(v.chips[0].status, TTMON_SMI_IN_USE);
	assert_int_equal(v.chips[0].live, 1);
	assert_int_equal(v.chips[0].dead, 1);
	assert_int_equal(v.nr_procs, 2);
	assert_true(v.procs[0].alive);
	expect_text("left out: 1 entry of dead processes, 2.0 GiB; ttmon smi -c removes them");
	expect_text("4.0 GiB / 12.0 GiB  33.3%");
}

static void test_stale(void **state)
{
	(void)state;
	add_chip(N150 | 1, 0, 0);
	add_process(add_file(1, (N150 | 1) << 8), 11, false, 2 * GIB);
	run();
	assert_int_equal(v.chips[0].status, TTMON_SMI_STALE);
	assert_true(v.chips[0].dram_used == 0);
	assert_false(v.chips[0].unattributed);
}

static void test_unattributed(void **state)
{
	(void)state;
	add_chip(N150 | 1, 0, 0);
	add_file(1, (N150 | 1) << 8)->bytes[TTMON_TT_TYPE_DRAM] = 7;
	run();
	assert_true(v.chips[0].unattributed);
	assert_int_equal(v.chips[0].status, TTMON_SMI_IN_USE);
	expect_text("memory of nobody");
}

/*
 * From version 2 on the sum of circular buffers is one process's: a dead one's is not taken off while
 * others live.
 */
static void test_cb(void **state)
{
	struct ttmon_ttshm *f;

	(void)state;
	add_chip(N150 | 1, 0, 0);
	f = add_file(3, N150 | 1);
	add_process(f, 10, true, 0);
	add_process(f, 11, false, 0)->bytes[TTMON_TT_TYPE_CB] = 900;
	f->bytes[TTMON_TT_TYPE_CB] = 1000;
	run();
	assert_true(v.chips[0].bytes[TTMON_TT_TYPE_CB] == 1000);
	assert_true(v.chips[0].bytes[TTMON_TT_TYPE_KERNEL] == TTMON_SMI_UNKNOWN);
}

static void test_two_files(void **state)
{
	struct ttmon_ttshm *f;

	(void)state;
	add_chip(N150 | 1, 0, 0);
	add_chip(N150 | 2, 0, 0);
	/* ttmond's file of one process, tt-metal's own of another: both. */
	add_process(add_file(1, (N150 | 1) << 8), 10, true, 3);
	add_process(add_file(3, N150 | 1), 11, true, 5);
	/* The same process in both: once, by the newer layout. */
	f = add_file(1, (N150 | 2) << 8);
	add_process(f, 12, true, 7);
	f = add_file(3, N150 | 2);
	add_process(f, 12, true, 9);
	/* And a file that was left behind, of an older version. */
	f = add_file(2, N150 | 2);
	f->bytes[TTMON_TT_TYPE_DRAM] = 1000;
	f->reference_count = 0;
	run();
	assert_true(v.chips[0].bytes[TTMON_TT_TYPE_DRAM] == 8);
	assert_true(v.chips[0].bytes[TTMON_TT_TYPE_KERNEL] == 0); /* one of the two knows */
	assert_true(v.chips[1].bytes[TTMON_TT_TYPE_DRAM] == 9);
	assert_true(v.files[0].counted && v.files[1].counted);
	assert_false(v.files[2].counted || v.files[4].counted);
	assert_true(v.files[3].counted);
	assert_int_equal(v.nr_procs, 3);
	assert_int_equal(v.chips[1].live, 1);
}

static void test_reset(void **state)
{
	struct ttmon_ttsys_chip *c = add_chip(N150 | 1, 0, 0);

	(void)state;
	c->resetting = true;
	c->temperature_mc = INT32_MIN;
	c->power_uw = c->aiclk_mhz = -1;
	add_process(add_file(1, (N150 | 1) << 8), 10, true, 3);
	run();
	assert_int_equal(v.chips[0].status, TTMON_SMI_RESETTING);
	assert_true(v.chips[0].dram_used == TTMON_SMI_UNKNOWN);
	expect_text("n/a / 12.0 GiB");
	expect_text("resetting");
}

static void test_why(void **state)
{
	struct ttmon_ttshm *bad;

	(void)state;
	add_chip(P150 | 1, 0, 0);
	add_chip(P150 | 2, 0, 0);
	add_chip(P150 | 3, 0, 0);
	add_chip(P150 | 4, 0, 0);
	bad = add_file(0, (P150 | 4) << 8);
	bad->status = TTMON_TTSHM_UNREADABLE;
	bad->err = EACCES;
	assert_int_equal(ttmon_smi_begin(&v), 0);
	open_by(0, 0);
	open_by(1, 55);
	ttmon_smi_match_keys(&v);
	assert_int_equal(ttmon_smi_finish(&v), 0);
	assert_int_equal(v.chips[0].why, TTMON_SMI_WHY_NOBODY);
	assert_int_equal(v.chips[1].why, TTMON_SMI_WHY_SILENT);
	assert_int_equal(v.chips[2].why, TTMON_SMI_WHY_NO_FILE);
	assert_int_equal(v.chips[3].why, TTMON_SMI_WHY_FILE);
	assert_int_equal(v.chips[3].status, TTMON_SMI_BAD_FILE);
	/* Has it open and publishes nothing: unknown, not 0. */
	assert_int_equal(v.nr_procs, 1);
	assert_true(v.procs[0].bytes[TTMON_TT_TYPE_DRAM] == TTMON_SMI_UNKNOWN);
	expect_text("n/a    n/a  n/a       n/a  n/a");
	expect_text("TT_METAL_SHM_TRACKING_DISABLED");
	for (unsigned int why = TTMON_SMI_WHY_NONE + 1; why < TTMON_SMI_WHY_MAX; why++)
		assert_non_null(ttmon_smi_why_text(why));
}

static void test_nothing(void **state)
{
	(void)state;
	v.no_driver = true;
	run();
	assert_int_equal(v.nr_chips, 0);
	expect_text("no Tenstorrent chip: tt-kmd is not here");
}

/*
 * A chip whose serial is not known is not the one of key 0, where programs put what they know no name
 * for.
 */
static void test_zero(void **state)
{
	(void)state;
	add_chip(0, 0, 0)->fact.bdf = TTMON_SMI_NONE;
	add_file(1, 0);
	add_file(3, 0);
	run();
	expect_file(0, NULL, TTMON_SMI_MATCH_NONE);
	expect_file(1, NULL, TTMON_SMI_MATCH_NONE);
	assert_string_equal(v.chips[0].id, "chip 0");
	assert_string_equal(v.chips[1].id, "0");
}

/* A link or a folder of such a name is a problem, not a chip. */
static void test_not_a_file(void **state)
{
	(void)state;
	add_chip(N150 | 1, 0, 0);
	add_file(1, (N150 | 1) << 8)->status = TTMON_TTSHM_NOT_A_FILE;
	run();
	assert_int_equal(v.nr_chips, 1);
	assert_int_equal(v.chips[0].status, TTMON_SMI_NO_TRACKING);
}

/* ---- zeros that are not known ---- */

/* A process has it open but is in no file: a 0 of its chip is not known, the others are. */
static void test_unlisted(void **state)
{
	struct ttmon_ttshm *f;

	(void)state;
	add_chip(N150 | 1, 0, 0);
	add_chip(N150 | 2, 0, 0);
	add_chip(N150 | 3, 0, 0);
	add_chip(N150 | 4, 0, 0);
	add_chip(N150 | 5, 0, 0);
	for (unsigned int i = 1; i <= 4; i++) {
		f = add_file(1, (N150 | i) << 8);
		f->ours = true;
		if (i >= 3)
			add_process(f, 20, true, i == 3 ? 3 * GIB : 0);
	}
	assert_int_equal(ttmon_smi_begin(&v), 0);
	open_by(0, 55);
	open_by(1, 20); /* in the file of another chip: this one it only opened */
	open_by(2, 55);
	open_by(2, 20);
	open_by(3, 20);
	open_by(4, 0);
	ttmon_smi_match_keys(&v);
	assert_int_equal(ttmon_smi_finish(&v), 0);
	assert_true(v.chips[0].unlisted && v.chips[2].unlisted);
	assert_false(v.chips[1].unlisted || v.chips[3].unlisted || v.chips[4].unlisted);
	assert_true(v.chips[0].dram_used == TTMON_SMI_UNKNOWN && v.chips[0].l1_used == TTMON_SMI_UNKNOWN);
	for (unsigned int t = 0; t < TTMON_TTSHM_TYPES; t++)
		assert_true(v.chips[0].bytes[t] == TTMON_SMI_UNKNOWN);
	assert_int_equal(v.chips[0].status, TTMON_SMI_NO_TRACKING);
	assert_int_equal(v.chips[0].why, TTMON_SMI_WHY_UNLISTED);
	assert_int_equal(v.chips[1].status, TTMON_SMI_IDLE);
	assert_true(v.chips[1].dram_used == 0 && v.chips[1].l1_used == 0);
	/* At least that much, and of L1 nothing is known. */
	assert_int_equal(v.chips[2].status, TTMON_SMI_IN_USE);
	assert_true(v.chips[2].dram_used == 3 * GIB && v.chips[2].l1_used == TTMON_SMI_UNKNOWN);
	assert_int_equal(v.chips[3].status, TTMON_SMI_IN_USE);
	assert_true(v.chips[3].dram_used == 0);
	expect_text("no tracking 18000000001:0: open in a program that is in no file");
	expect_text("not everything 18000000003:0: also open in a program");
	expect_text("without figures: process 55 (n/a)\n");
}

/* The far half is used through the near one's node; a driver without a list: by the maps. */
static void test_unlisted_far(void **state)
{
	struct ttmon_ttshm *f;

	(void)state;
	add_chip(N300 | 6, 0, 0);
	add_chip(N300 | 6, 1, TTMON_TT_CHIP_REMOTE);
	f = add_file(1, (N300 | 6) << 8 | 1);
	opened(55, 0);
	run();
	assert_false(v.chips[0].unlisted); /* no file at all */
	assert_true(v.chips[1].unlisted);
	assert_true(v.chips[1].dram_used == TTMON_SMI_UNKNOWN);
	assert_int_equal(v.nr_procs, 1);
	assert_int_equal(v.procs[0].chip, 0);
	expect_text("without figures: process 55 (n/a)\n");
	assert_ptr_equal(f, v.files[0].shm);
}

/* What ttmond says of its own figures. */
static void test_flags(void **state)
{
	struct ttmon_ttshm *f;

	(void)state;
	for (unsigned int i = 1; i <= 4; i++) {
		add_chip(N150 | i, 0, 0);
		f = add_file(1, (N150 | i) << 8);
		f->ours = true;
		f->flags = i == 1   ? TTMON_TT_F_UNCALIBRATED
			   : i == 2 ? TTMON_TT_F_PARTIAL
			   : i == 3 ? TTMON_TT_F_LOST | TTMON_TT_F_OWN_SHM | 1u << 31
				    : 0;
		if (i == 2)
			add_process(f, 20, true, 3 * GIB);
	}
	run();
	assert_int_equal(v.chips[0].status, TTMON_SMI_NO_TRACKING);
	assert_int_equal(v.chips[0].why, TTMON_SMI_WHY_UNSEEN);
	assert_true(v.chips[0].dram_used == TTMON_SMI_UNKNOWN);
	assert_int_equal(v.chips[1].status, TTMON_SMI_IN_USE);
	assert_true(v.chips[1].dram_used == 3 * GIB && v.chips[1].l1_used == TTMON_SMI_UNKNOWN);
	for (unsigned int i = 2; i < 4; i++) {
		assert_int_equal(v.chips[i].status, TTMON_SMI_IDLE);
		assert_true(v.chips[i].dram_used == 0);
	}
	expect_text("\nuncalibrated 18000000001:0: the layout");
	expect_text("\npartial 18000000002:0: ran before the trace");
	expect_text("\nlost 18000000003:0: events were lost");
	expect_no_text("\nown ");
	expect_no_text("18000000004:0:");
}

/* Kernels cannot be seen by ttmond; tt-metal's own 0 is one. */
static void test_kernel(void **state)
{
	struct ttmon_ttshm *f;

	(void)state;
	for (unsigned int i = 1; i <= 3; i++) {
		add_chip(N150 | i, 0, 0);
		f = add_file(1, (N150 | i) << 8);
		f->ours = i > 1;
		add_process(f, 20, true, 7)->bytes[TTMON_TT_TYPE_KERNEL] = i == 3 ? 5 : 0;
		f->bytes[TTMON_TT_TYPE_KERNEL] = i == 3 ? 5 : 0;
	}
	v.details = true;
	run();
	assert_true(v.chips[0].bytes[TTMON_TT_TYPE_KERNEL] == 0);
	assert_true(v.chips[1].bytes[TTMON_TT_TYPE_KERNEL] == TTMON_SMI_UNKNOWN);
	assert_true(v.procs[1].bytes[TTMON_TT_TYPE_KERNEL] == TTMON_SMI_UNKNOWN);
	assert_true(v.chips[2].bytes[TTMON_TT_TYPE_KERNEL] == 5);
	expect_text("kernel 0 B");
	expect_text("kernel n/a");
	expect_text("kernel 5 B");
}

/* ---- text ---- */

static void expect_clean(const char *text, size_t columns, bool utf8, const char *wanted, size_t wide)
{
	char buf[64];

	assert_int_equal(ttmon_term_clean(buf, sizeof(buf), text, 64, columns, utf8), wide);
	assert_string_equal(buf, wanted);
}

static void test_clean(void **state)
{
	char small[4];

	(void)state;
	expect_clean("plain", 64, true, "plain", 5);
	expect_clean("a\033[2J\nb\x7f", 64, true, "a?[2J?b?", 8);
	expect_clean("\xc2\x9b"
		     "31m",
		     64, true, "?31m", 4);			      /* CSI in C1 */
	expect_clean("\xe2\x80\xaegpj.exe", 64, true, "?gpj.exe", 8); /* turns the direction */
	expect_clean("a\xcc\x80\xcc\x80", 64, true, "a??", 3);	      /* piled up accents */
	expect_clean("\xc0\xaf\xed\xa0\x80\xff\xc3", 64, true, "???????", 7);
	expect_clean("\xc3\xbc\xe4\xb8\xad\xf0\x9f\x98\x80", 64, true, "\xc3\xbc\xe4\xb8\xad\xf0\x9f\x98\x80", 5);
	expect_clean("\xe0\x80\x8a\xf0\x80\x80\x8a", 64, true, "???????",
		     7); /* a line break in three bytes, and in four */
	expect_clean("\xc3\xbc\xe4\xb8\xad", 64, false, "??", 2);
	expect_clean("\xe4\xb8\xad\xe4\xb8\xad", 3, true, "\xe4\xb8\xad", 2); /* half of one does not fit */
	assert_int_equal(ttmon_term_clean(small, sizeof(small), "ab\xc3\xbc", 64, 64, true), 2);
	assert_string_equal(small, "ab");
	assert_int_equal(ttmon_term_clean(small, sizeof(small), "abc\0d", 5, 64, true), 3);
	/* Not terminated within what may be read. */
	assert_int_equal(ttmon_term_clean(small, sizeof(small), "xyz", 2, 64, true), 2);
}

static void test_line(void **state)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	assert_int_equal(ttmon_term_width("\033[31mab\033[0m\xe4\xb8\xad"), 4);
	assert_int_equal(ttmon_term_put_line(f, "\033[31mabcdef\033[0m", 15, 4), 4);
	fputc('|', f);
	assert_int_equal(ttmon_term_put_line(f, "abc", 3, 0), 3);
	fputc('|', f);
	ttmon_term_put_wrapped(f, "one two three four", 10, 0, 2);
	ttmon_term_put_wrapped(f, "five six", 10, 4, 4);
	ttmon_term_put_wrapped(f, "left out", 0, 0, 4);
	fclose(f);
	assert_string_equal(text, "\033[31mabcd\033[0m|abc|one two\n  three\n  four\nfive\n    six\nleft out\n");
	free(text);
}

/* Longest line; nothing a terminal would obey, no blanks at the ends. */
static size_t longest(const char *text, bool colour)
{
	size_t most = 0;

	while (*text) {
		size_t len = strcspn(text, "\n");
		char line[1024];

		assert_true(len < sizeof(line));
		memcpy(line, text, len);
		line[len] = '\0';
		most = MAX(most, ttmon_term_width(line));
		for (size_t i = 0; i < len; i++)
			assert_true((unsigned char)line[i] >= ' ' || (colour && line[i] == '\033'));
		assert_true(!len || line[len - 1] != ' ');
		text += len + (text[len] == '\n');
	}
	return most;
}

static void worst_world(void)
{
	for (unsigned int i = 0; i < 8; i++) {
		uint64_t board = UINT64_C(0xff00000000000000) | N300 | i;
		struct ttmon_ttsys_chip *c = add_chip(board, 0, 0);
		struct ttmon_ttshm *f;

		snprintf(c->fact.card, sizeof(c->fact.card), "galaxy-wormhole");
		c->power_uw = INT64_C(1500) * 1000000;
		add_chip(board, 1, TTMON_TT_CHIP_REMOTE);
		f = add_file(1, board << 8);
		for (int p = 0; p < 3; p++) {
			struct ttmon_ttshm_process *proc = add_process(f, 4194304 - p, p < 2, GIB * 1023 / 100);

			memset(proc->name, "\033\xe4\xff"[p], sizeof(proc->name) - 1);
			for (unsigned int t = 0; t < TTMON_TTSHM_TYPES; t++)
				f->bytes[t] += proc->bytes[t] = (UINT64_C(1) << 20) * 1023 + 900000;
		}
		f = add_file(3, 0xfedcba9876543210 + i);
		add_process(f, 4000000, true, 1);
	}
}

static void test_widths(void **state)
{
	static const size_t columns[] = { 80, 100, 120, 200 };

	(void)state;
	worst_world();
	run();
	for (size_t details = 0; details < 2; details++) {
		v.details = details;
		for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
			struct ttmon_term_style style = { .columns = columns[i], .colour = i & 1, .utf8 = true };
			char *text = show(&style);

			if (longest(text, style.colour) > columns[i])
				fail_msg("%zu columns in %zu:\n%s", longest(text, style.colour), columns[i], text);
			/* Nothing of the tables was cut off. */
			assert_non_null(strstr(text, "Status"));
			assert_non_null(strstr(text, "in use"));
			assert_non_null(strstr(text, "ff00014000000007:1R"));
			assert_non_null(strstr(text, "CB"));
			assert_true(!strchr(text, '\033') == !style.colour);
			free(text);
		}
	}
	/* Where there is no terminal, all there is. */
	expect_text("galaxy-wormhole");
}

/* In no width does a line end between a figure and its unit. */
static void test_details(void **state)
{
	struct ttmon_ttshm *f;

	(void)state;
	add_chip(N150 | 1, 0, 0);
	f = add_file(1, (N150 | 1) << 8);
	add_process(f, 20, true, 0);
	for (unsigned int t = 0; t < TTMON_TTSHM_TYPES; t++)
		f->bytes[t] = (UINT64_C(1) << 20) * 1023 + 900000;
	f->last_update_ns = v.real_ns - 3000000000u;
	add_file(1, (UBB | 7) << 8 | 0x48);
	add_chip(UBB | 7, 0x15, TTMON_TT_CHIP_GALAXY);
	sys[1].fact.tray = 1;
	sys[1].fact.chip = 5;
	add_file(3, 5);
	v.details = true;
	run();
	for (size_t columns = 50; columns <= 140; columns++) {
		char *text = show(&(struct ttmon_term_style){ .columns = columns });

		for (const char *p = strchr(text, '\n'); p; p = strchr(p + 1, '\n')) {
			p += 1 + strspn(p + 1, " ");
			for (size_t i = 0; i < 5; i++)
				if (!strncmp(p, (const char *[]){ "GiB", "MiB", "KiB", "B,", "s ago" }[i], 2 + (i < 3)))
					fail_msg("a figure is torn at %zu columns:\n%s", columns, text);
			p--;
		}
		assert_null(strchr(text, TTMON_TERM_BLANK));
		free(text);
	}
	expect_text("1 process, 0 dead;");
	expect_text("0 processes, 0 dead;");
	expect_text("tray 4, chip 8, location 72\n"); /* by its key alone */
	expect_text("tray 1, chip 5, location 21\n"); /* by sysfs */
	expect_text("  board         id 0x18000000001, location 0\n");
	expect_text("no chip matches the file of T4:N8, 5: its figures are shown");
}

static void test_json(void **state)
{
	int fd = memfd_create("json", MFD_CLOEXEC);
	json_t *root;
	FILE *f;

	(void)state;
	assert_true(fd >= 0);
	worst_world();
	shm[0].flags = TTMON_TT_F_PARTIAL | TTMON_TT_F_MESH_ASSUMED;
	run();
	assert_int_equal(ttmon_smi_json(&v, true, fd), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	f = fdopen(fd, "r");
	root = json_loadf(f, 0, NULL);
	assert_non_null(root);
	fclose(f);
	assert_string_equal(json_string_value(json_object_get(root, "schema")), "ttmon-smi");
	assert_int_equal(json_array_size(json_object_get(root, "chips")), 24);
	assert_int_equal(json_array_size(json_object_get(root, "files")), 16);
	assert_int_equal(json_array_size(json_object_get(root, "processes")), 32);
	assert_int_equal(json_array_size(json_object_get(root, "problems")), 0);
	/* Of a far half nothing is known: null, not 0. */
	assert_true(json_is_true(json_object_get(json_array_get(json_object_get(root, "chips"), 1), "remote")));
	assert_true(json_is_null(
		json_object_get(json_object_get(json_array_get(json_object_get(root, "chips"), 1), "dram"), "used")));
	/* Flags by name, those of the file and of its chip. */
	assert_int_equal(json_array_size(json_object_get(json_array_get(json_object_get(root, "chips"), 0), "flags")),
			 2);
	assert_string_equal(json_string_value(json_array_get(
				    json_object_get(json_array_get(json_object_get(root, "files"), 0), "flags"), 1)),
			    "mesh assumed");
	assert_true(json_is_false(json_object_get(json_array_get(json_object_get(root, "chips"), 0), "unlisted")));
	json_decref(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_match_exact, setup, teardown),
		cmocka_unit_test_setup_teardown(test_match_twice, setup, teardown),
		cmocka_unit_test_setup_teardown(test_match_halves, setup, teardown),
		cmocka_unit_test_setup_teardown(test_match_half, setup, teardown),
		cmocka_unit_test_setup_teardown(test_far_half_is_named, setup, teardown),
		cmocka_unit_test_setup_teardown(test_match_halves_unclear, setup, teardown),
		cmocka_unit_test_setup_teardown(test_match_processes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_match_processes_both, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ids, setup, teardown),
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dead, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stale, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unattributed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_cb, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_files, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reset, setup, teardown),
		cmocka_unit_test_setup_teardown(test_why, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_zero, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_a_file, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unlisted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unlisted_far, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flags, setup, teardown),
		cmocka_unit_test_setup_teardown(test_kernel, setup, teardown),
		cmocka_unit_test_setup_teardown(test_details, setup, teardown),
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_line),
		cmocka_unit_test_setup_teardown(test_widths, setup, teardown),
		cmocka_unit_test_setup_teardown(test_json, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
