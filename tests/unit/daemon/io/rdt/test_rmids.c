// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_rmids.c: the choice of the backend of RMIDs; the module's formats and units, including hostile
 * ones; when the module is released and dumped again; when processes are reported again. It runs on an
 * invented tracefs and /proc, and this file replaces io/bpf/bpf.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <ftw.h>
#include <sys/stat.h>

#include "daemon/io/rdt/rmids.h"
#include "lib/os/log.h"

/* ---- instead of the BPF side ---- */

static struct {
	unsigned int each_task, attach, detach;
	int attach_err;
	bool attached;
	char prefix[64];
	struct ttmon_rmid_counts counts;
	struct ttmon_cpu_stat stat[2];
	int without; /* after an iteration */
} bpf;

int ttmon_bpf_each_task(struct ttmon_bpf *b)
{
	(void)b;
	bpf.each_task++;
	return bpf.without;
}

int ttmon_bpf_rmid_counts(struct ttmon_bpf *b, struct ttmon_rmid_counts *ret)
{
	(void)b;
	*ret = bpf.counts;
	return 0;
}

int ttmon_bpf_module_attach(struct ttmon_bpf *b, const char *prefix)
{
	(void)b;
	bpf.attach++;
	snprintf(bpf.prefix, sizeof(bpf.prefix), "%s", prefix);
	bpf.attached = !bpf.attach_err;
	return bpf.attach_err;
}

void ttmon_bpf_module_detach(struct ttmon_bpf *b)
{
	(void)b;
	bpf.detach++;
	bpf.attached = false;
}

uint32_t ttmon_bpf_cpus(const struct ttmon_bpf *b)
{
	(void)b;
	return ARRAY_SIZE(bpf.stat);
}

const struct ttmon_cpu_stat *ttmon_bpf_stat(const struct ttmon_bpf *b, uint32_t cpu)
{
	(void)b;
	return &bpf.stat[cpu];
}

/* ---- a folder with tracefs and /proc ---- */

static char root[] = "/tmp/test_rmids.XXXXXX";
static char tracefs[64], proc[64], resctrl[64], proc_file[96];

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void forget(void)
{
	nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	mkdir(root, 0700);
	mkdir(proc, 0700);
}

static void put_bytes(const char *path, const void *data, size_t n)
{
	char folder[256];
	_cleanup_fclose_ FILE *f = NULL;

	for (const char *p = path + 1; (p = strchr(p, '/')); p++) {
		snprintf(folder, sizeof(folder), "%.*s", (int)(p - path), path);
		mkdir(folder, 0700);
	}
	f = fopen(path, "we");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, n, f), n);
}

static void put(const char *path, const char *text)
{
	put_bytes(path, text, strlen(text));
}

static const char common[] =
	"name: %s\nID: 1801\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n%s\nprint fmt: \"rmid=%%u size:8;\", REC->rmid\n";

static const char owner[] =
	"\tfield:u32 rmid;\toffset:8;\tsize:4;\tsigned:0;\n\tfield:char comm[16];\toffset:12;\tsize:16;\tsigned:0;\n"
	"\tfield:pid_t tgid;\toffset:28;\tsize:4;\tsigned:1;\n\tfield:u64 timestamp;\toffset:32;\tsize:8;\tsigned:0;\n";
static const char freed[] =
	"\tfield:u32 rmid;\toffset:8;\tsize:4;\tsigned:0;\n\tfield:u64 timestamp;\toffset:16;\tsize:8;\tsigned:0;\n";
#define RDT8                                                               \
	"\tfield:u32 rmid;\toffset:8;\tsize:4;\tsigned:0;\n"               \
	"\tfield:u64 timestamp;\toffset:16;\tsize:8;\tsigned:0;\n"         \
	"\tfield:u64 llc_occupancy_val;\toffset:24;\tsize:8;\tsigned:0;\n" \
	"\tfield:int llc_occupancy_err;\toffset:32;\tsize:4;\tsigned:1;\n" \
	"\tfield:u64 mbm_total_val;\toffset:40;\tsize:8;\tsigned:0;\n"     \
	"\tfield:int mbm_total_err;\toffset:48;\tsize:4;\tsigned:1;\n"     \
	"\tfield:u64 mbm_local_val;\toffset:56;\tsize:8;\tsigned:0;\n"     \
	"\tfield:int mbm_local_err;\toffset:64;\tsize:4;\tsigned:1;\n"
static const char rdt8[] = RDT8, rdt9[] = RDT8 "\tfield:u32 domain;\toffset:68;\tsize:4;\tsigned:0;\n";

static void put_event(const char *system, const char *prefix, const char *event, const char *fields)
{
	char path[256], text[4096];

	snprintf(path, sizeof(path), "%s/events/%s/%s%s/format", tracefs, system, prefix, event);
	snprintf(text, sizeof(text), common, event, fields);
	put(path, text);
}

static void put_module(const char *system, const char *prefix, const char *rdt)
{
	put_event(system, prefix, "rmid_alloc", owner);
	put_event(system, prefix, "rmid_existing", owner);
	put_event(system, prefix, "rmid_free", freed);
	if (rdt)
		put_event(system, prefix, "rdt_sample", rdt);
}

static const char units[] =
	"version 1.0\nmode hardware\nmax_rmid 79\nin_use 3\nscale 40960\nwidth 24\nevents 5\nnew_thing 7\nfailed 4\n"
	"released 0\n";

/* ---- what is reported ---- */

static struct ttmon_ev_rmid_info info;
static unsigned int infos;

static void fact(void *ctx, const void *rec, size_t size)
{
	(void)ctx;
	assert_int_equal(size, sizeof(info));
	memcpy(&info, rec, sizeof(info));
	assert_int_equal(info.h.kind, TTMON_EV_RMID_INFO);
	infos++;
}

static struct ttmon_rmids_cfg cfg_for(enum ttmon_rmid_backend wanted)
{
	return (struct ttmon_rmids_cfg){
		.wanted = wanted, .tracefs_root = tracefs, .proc_root = proc, .resctrl_root = resctrl, .fact = fact
	};
}

static int choose(const struct ttmon_rmids_cfg *cfg, enum ttmon_rmid_backend *ret, char *why, size_t n)
{
	*ret = TTMON_RMID_BACKEND_MAX;
	snprintf(why, n, "-");
	return ttmon_rmids_choose(cfg, ret, why, n);
}

static int setup(void **state)
{
	(void)state;
	memset(&bpf, 0, sizeof(bpf));
	infos = 0;
	forget();
	return 0;
}

static void test_choose(void **state)
{
	struct ttmon_rmids_cfg cfg = cfg_for(TTMON_RMID_AUTO);
	enum ttmon_rmid_backend got;
	char why[512];

	(void)state;
	assert_int_equal(choose(&cfg, &got, why, sizeof(why)), 0);
	assert_int_equal(got, TTMON_RMID_EMULATED);
	cfg.wanted = TTMON_RMID_OFF;
	assert_int_equal(choose(&cfg, &got, why, sizeof(why)), 0);
	assert_int_equal(got, TTMON_RMID_OFF);
	cfg.wanted = TTMON_RMID_RESCTRL;
	assert_int_equal(choose(&cfg, &got, why, sizeof(why)), -ENODEV);
	assert_int_equal(got, TTMON_RMID_BACKEND_MAX);
	assert_true(strlen(why) > 5);
	cfg.wanted = TTMON_RMID_MODULE;
	assert_int_equal(choose(&cfg, &got, why, sizeof(why)), -ENODEV);
	assert_int_equal(got, TTMON_RMID_BACKEND_MAX);
	assert_non_null(strstr(why, "not loaded"));
	put_module("memory_collector", "", rdt9);
	assert_int_equal(choose(&cfg, &got, why, sizeof(why)), 0);
	assert_int_equal(got, TTMON_RMID_MODULE);
	cfg.wanted = TTMON_RMID_AUTO;
	assert_int_equal(choose(&cfg, &got, why, sizeof(why)), 0);
	assert_int_equal(got, TTMON_RMID_MODULE);
}

/* Events, their fields, and whether they are supported. */
#define LONG "rmid_0123456789_0123456789_0123456789_0123456789"
static void test_formats(void **state)
{
	static const struct {
		const char *event, *fields;
		bool known;
	} rows[] = {
		{ "rdt_sample", rdt8, true },
		{ "rdt_sample", rdt9, true },
		{ "rmid_free", owner, false },
		{ "rmid_alloc", freed, false },
		{ "rmid_alloc", "", false },
		/* An additional field at the end. */
		{ "rmid_free",
		  "\tfield:u32 rmid;\toffset:8;\tsize:4;\n\tfield:u64 timestamp;\toffset:16;\tsize:8;\n\tfield:u64 x;"
		  "\toffset:24;\tsize:8;\n",
		  true },
		/* The wrong order, the wrong size, the wrong name. */
		{ "rmid_free", "\tfield:u64 timestamp;\toffset:16;\tsize:8;\n\tfield:u32 rmid;\toffset:8;\tsize:4;\n",
		  false },
		{ "rmid_free", "\tfield:u64 rmid;\toffset:8;\tsize:8;\n\tfield:u64 timestamp;\toffset:16;\tsize:8;\n",
		  false },
		{ "rmid_free", "\tfield:u32 rmidx;\toffset:8;\tsize:4;\n\tfield:u64 timestamp;\toffset:16;\tsize:8;\n",
		  false },
		{ "rdt_sample", freed, false },
		{ "measure_perf_counters",
		  "\tfield:bool is_context_switch;\toffset:8;\tsize:1;\n\tfield:u32 rmid;\toffset:12;\tsize:4;\n",
		  true },
		{ "measure_perf_counters", "\tfield:u32 rmid;\toffset:12;\tsize:4;\n", false },
		{ "rmid_free", "\tfield:u32 " LONG LONG LONG LONG ";\toffset:8;\tsize:4;\n", false },
		/* Text that is not a format. */
		{ "rmid_free", "\tfield:;\n\tfield:size:;\n\tfield:u32 ;size:4;\n\tfield:x y\n", false },
	};
	struct ttmon_rmids_cfg cfg = cfg_for(TTMON_RMID_MODULE);
	enum ttmon_rmid_backend got;
	char why[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		forget();
		put_module("memory_collector", "", NULL);
		put_event("memory_collector", "", rows[i].event, rows[i].fields);
		cfg.wanted = TTMON_RMID_MODULE;
		if (choose(&cfg, &got, why, sizeof(why)) != (rows[i].known ? 0 : -ENODEV))
			fail_msg("row %zu: %s", i, why);
		if (!rows[i].known && !strstr(why, rows[i].event))
			fail_msg("row %zu does not say which: %s", i, why);
		/* In any of these cases the daemon starts. */
		cfg.wanted = TTMON_RMID_AUTO;
		assert_int_equal(choose(&cfg, &got, why, sizeof(why)), 0);
		assert_int_equal(got, rows[i].known ? TTMON_RMID_MODULE : TTMON_RMID_EMULATED);
	}
}

/* One of three required events is missing; names with another system and another prefix. */
static void test_names(void **state)
{
	struct ttmon_rmids_cfg cfg = cfg_for(TTMON_RMID_MODULE);
	enum ttmon_rmid_backend got;
	struct ttmon_rmids *r;
	char why[512];

	(void)state;
	put_event("memory_collector", "", "rmid_alloc", owner);
	put_event("memory_collector", "", "rmid_existing", owner);
	assert_int_equal(choose(&cfg, &got, why, sizeof(why)), -ENODEV);
	assert_non_null(strstr(why, "rmid_free"));
	forget();
	put_module("memory_collector", "memory_collector_", NULL);
	assert_int_equal(choose(&cfg, &got, why, sizeof(why)), 0);
	assert_int_equal(ttmon_rmids_new(&cfg, got, NULL, &r), 0);
	ttmon_rmids_start(r);
	assert_string_equal(bpf.prefix, "memory_collector_");
	ttmon_rmids_free(r);
	forget();
	put_module("other", "my_", NULL);
	assert_int_equal(choose(&cfg, &got, why, sizeof(why)), -ENODEV);
	cfg.module_system = "other";
	assert_int_equal(choose(&cfg, &got, why, sizeof(why)), -ENODEV);
	cfg.module_system = "other:my_";
	assert_int_equal(choose(&cfg, &got, why, sizeof(why)), 0);
	cfg.module_system = "../events/other:my_";
	assert_int_equal(choose(&cfg, &got, why, sizeof(why)), -ENODEV);
	cfg.module_system = "other:../other/my_";
	assert_int_equal(choose(&cfg, &got, why, sizeof(why)), -ENODEV);
	put_module("there", "", NULL);
	cfg.module_system = "there/../other:my_";
	assert_int_equal(choose(&cfg, &got, why, sizeof(why)), -ENODEV);
	cfg.module_system = "";
	assert_int_equal(choose(&cfg, &got, why, sizeof(why)), -ENODEV);
	cfg.module_system = ":";
	assert_int_equal(choose(&cfg, &got, why, sizeof(why)), -ENODEV);
}

static void test_noise(void **state)
{
	struct ttmon_rmids_cfg cfg = cfg_for(TTMON_RMID_MODULE);
	enum ttmon_rmid_backend got;
	char path[256], why[512];
	uint64_t seed = 1;

	(void)state;
	put_module("memory_collector", "", NULL);
	snprintf(path, sizeof(path), "%s/events/memory_collector/rmid_free/format", tracefs);
	for (int i = 0; i < 300; i++) {
		static const char words[][12] = { "field:", "size:", ";",   "\n", "rmid",    "[",
						  "u32 ",   "4",     "\0x", "*",  "common_", "\xff\x80" };
		char text[12000];
		size_t n = 0;

		while (n < sizeof(text) - 12) {
			seed = seed * 6364136223846793005ULL + 1;
			memcpy(text + n, words[(seed >> 33) % ARRAY_SIZE(words)], 12);
			n += 1 + (seed >> 40) % 12;
		}
		put_bytes(path, text, n);
		assert_int_equal(choose(&cfg, &got, why, sizeof(why)), -ENODEV);
	}
}

static struct ttmon_rmids *start(enum ttmon_rmid_backend backend)
{
	struct ttmon_rmids_cfg cfg = cfg_for(backend);
	struct ttmon_rmids *r = NULL;

	assert_int_equal(ttmon_rmids_new(&cfg, backend, NULL, &r), 0);
	ttmon_rmids_start(r);
	return r;
}

static void assert_dumped(bool want)
{
	_cleanup_fclose_ FILE *f = fopen(proc_file, "re");
	char line[64] = "";

	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	assert_int_equal(!strcmp(line, "dump\n"), want);
}

static struct ttmon_rmids_info get(const struct ttmon_rmids *r)
{
	struct ttmon_rmids_info i;

	ttmon_rmids_get_info(r, &i);
	return i;
}

/* Each tick of this test is a second later; the clock of start() is the real one. */
static uint64_t later(void)
{
	static uint64_t now;

	now = MAX(now, 1ULL << 62) + NSEC_PER_SEC;
	return now;
}

static void test_module(void **state)
{
	struct ttmon_rmids *r;

	(void)state;
	put_module("memory_collector", "", rdt9);
	put(proc_file, units);
	r = start(TTMON_RMID_MODULE);
	assert_true(bpf.attached);
	assert_string_equal(bpf.prefix, "");
	assert_dumped(true);
	assert_int_equal(infos, 1);
	assert_int_equal(info.backend, TTMON_RMID_MODULE);
	assert_int_equal(info.max_rmid, 79);
	assert_int_equal(info.scale, 40960);
	assert_int_equal(info.width, 24);
	assert_int_equal(info.flags, TTMON_RMID_HAS_OCCUPANCY | TTMON_RMID_HAS_LOCAL);
	assert_string_equal(get(r).source, "ttmon_rmid 1.0, hardware");
	assert_string_equal(get(r).reason, "");
	assert_int_equal(get(r).exhausted, 4);
	assert_true(get(r).attached);
	/* Processes are reported for their names, and not again without a reason. */
	assert_int_equal(bpf.each_task, 1);
	put(proc_file, units);
	ttmon_rmids_tick(r, later());
	ttmon_rmids_tick(r, later());
	assert_dumped(false);
	assert_int_equal(bpf.each_task, 1);
	assert_int_equal(bpf.attach, 1);
	/* A record was lost: there is one dump. */
	bpf.stat[1].lost[TTMON_EV_RMID]++;
	ttmon_rmids_tick(r, later());
	assert_dumped(true);
	put(proc_file, units);
	ttmon_rmids_tick(r, later());
	assert_dumped(false);
	/* The module requests to be released, and not to be attached again; then it is loaded again. */
	put(proc_file, "version 1.0\nreleased 1\n");
	ttmon_rmids_tick(r, later());
	assert_false(bpf.attached);
	assert_false(get(r).attached);
	assert_non_null(strstr(get(r).reason, "let go"));
	ttmon_rmids_tick(r, later());
	assert_int_equal(bpf.attach, 1);
	put(proc_file, units);
	ttmon_rmids_tick(r, later());
	assert_true(bpf.attached);
	assert_dumped(true);
	assert_int_equal(infos, 2);
	/* The file is gone; the module is no longer loaded; it is loaded again. */
	put(proc_file, units);
	remove(proc_file);
	ttmon_rmids_tick(r, later());
	assert_false(bpf.attached);
	forget();
	ttmon_rmids_tick(r, later());
	assert_non_null(strstr(get(r).reason, "not loaded"));
	put_module("memory_collector", "", rdt8);
	put(proc_file, units);
	bpf.attach_err = -EBUSY;
	ttmon_rmids_tick(r, later());
	assert_false(get(r).attached);
	assert_non_null(strstr(get(r).reason, strerror(EBUSY)));
	bpf.attach_err = 0;
	ttmon_rmids_tick(r, later());
	assert_true(bpf.attached);
	ttmon_rmids_free(r);
	assert_false(bpf.attached);
}

/* The units in the module's file are checked; if they are invalid, those of CPUID stay. */
static void test_units(void **state)
{
	static const char *const bad[] = {
		"max_rmid 0\nscale 0\nwidth 23\nevents 8\nversion\n",
		"max_rmid 4096\nscale 99999999999999999999\nwidth 65\nevents -1\n",
		"max_rmid 7x\nscale  5\nwidth 0x20\nevents \n",
		"max_rmid -1\nscale +5\nwidth\t30\nevents\n",
		"dump\n\n \n  \nmax_rmid\nmax_rmid \n",
	};
	struct ttmon_ev_rmid_info plain;
	char version[8000] = "version ", text[9000];
	struct ttmon_rmids *r;

	(void)state;
	put_module("memory_collector", "", NULL);
	put(proc_file, "");
	r = start(TTMON_RMID_MODULE);
	plain = info;
	ttmon_rmids_free(r);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		put(proc_file, bad[i]);
		r = start(TTMON_RMID_MODULE);
		if (info.max_rmid != plain.max_rmid || info.scale != plain.scale || info.width != plain.width ||
		    info.flags != plain.flags)
			fail_msg("row %zu was taken", i);
		ttmon_rmids_free(r);
	}
	memset(version + 8, 'v', sizeof(version) - 9);
	version[9] = '\x1b';
	snprintf(text, sizeof(text), "%s\nmax_rmid 12\n", version);
	put(proc_file, text);
	r = start(TTMON_RMID_MODULE);
	assert_int_equal(info.max_rmid, 12);
	assert_non_null(strstr(get(r).source, "v?vvvv"));
	assert_true(strlen(get(r).source) < 64);
	ttmon_rmids_free(r);
	/* The predecessor's file cannot be read, but it exists and can be written. */
	remove(proc_file);
	snprintf(text, sizeof(text), "%s/unvariance_collector", proc);
	put(text, "");
	r = start(TTMON_RMID_MODULE);
	assert_string_equal(get(r).source, "unvariance_collector");
	ttmon_rmids_free(r);
}

static void test_emulated(void **state)
{
	struct ttmon_rmids *r;
	uint64_t now;

	(void)state;
	bpf.without = 3;
	bpf.counts = (struct ttmon_rmid_counts){ .max = 20, .exhausted = 3 };
	r = start(TTMON_RMID_EMULATED);
	assert_int_equal(infos, 1);
	assert_int_equal(info.backend, TTMON_RMID_EMULATED);
	assert_int_equal(info.max_rmid, ttmon_rmids_max(TTMON_RMID_EMULATED));
	assert_int_equal(info.scale, 1);
	assert_int_equal(info.width, 64);
	assert_int_equal(info.flags, 0);
	assert_int_equal(bpf.each_task, 1);
	assert_int_equal(get(r).exhausted, 3);
	assert_string_equal(get(r).reason, "out of RMIDs");
	/*
	 * Three processes wait: they are tried when an RMID is free, not before, and at most once a second.
	 */
	ttmon_rmids_tick(r, now = later());
	assert_int_equal(bpf.each_task, 1);
	bpf.counts.ready = true;
	ttmon_rmids_tick(r, now + NSEC_PER_SEC / 2);
	assert_int_equal(bpf.each_task, 1);
	bpf.without = 0;
	ttmon_rmids_tick(r, later());
	assert_int_equal(bpf.each_task, 2);
	assert_string_equal(get(r).reason, "");
	ttmon_rmids_tick(r, later());
	assert_int_equal(bpf.each_task, 2);
	/* A fork got no RMID. */
	bpf.counts.exhausted++;
	bpf.counts.ready = false;
	ttmon_rmids_tick(r, later());
	assert_int_equal(bpf.each_task, 2);
	bpf.counts.ready = true;
	ttmon_rmids_tick(r, later());
	assert_int_equal(bpf.each_task, 3);
	ttmon_rmids_tick(r, later());
	assert_int_equal(bpf.each_task, 3);
	/* Records were lost. */
	bpf.stat[0].lost[TTMON_EV_TASK] += 5;
	ttmon_rmids_tick(r, later());
	bpf.stat[1].lost[TTMON_EV_RMID] += 5;
	ttmon_rmids_tick(r, later());
	ttmon_rmids_tick(r, later());
	assert_int_equal(bpf.each_task, 5);
	/*
	 * A process gets no RMID in any attempt (there is always one more): attempts become rarer, at least
	 * one each 16 s.
	 */
	bpf.without = 1;
	bpf.counts.exhausted++;
	for (int i = 0; i < 100; i++)
		ttmon_rmids_tick(r, later());
	assert_in_range(bpf.each_task - 5, 5 + 4, 5 + 7);
	/* The iteration is impossible. */
	bpf.without = -EPERM;
	bpf.stat[0].lost[TTMON_EV_TASK]++;
	ttmon_rmids_tick(r, later());
	ttmon_rmids_tick(r, later());
	assert_int_equal(bpf.attach, 0);
	ttmon_rmids_free(r);
	ttmon_rmids_free(NULL);
}

static void test_max(void **state)
{
	uint32_t all;

	(void)state;
	unsetenv("TTMOND_MAX_RMID");
	all = ttmon_rmids_max(TTMON_RMID_EMULATED);
	assert_true(all >= 1 && all <= 1023);
	setenv("TTMOND_MAX_RMID", "1", 1);
	assert_int_equal(ttmon_rmids_max(TTMON_RMID_EMULATED), 1);
	setenv("TTMOND_MAX_RMID", "0", 1);
	assert_int_equal(ttmon_rmids_max(TTMON_RMID_EMULATED), all);
	setenv("TTMOND_MAX_RMID", "1024", 1);
	assert_int_equal(ttmon_rmids_max(TTMON_RMID_EMULATED), all);
	setenv("TTMOND_MAX_RMID", "1x", 1);
	assert_int_equal(ttmon_rmids_max(TTMON_RMID_EMULATED), all);
	unsetenv("TTMOND_MAX_RMID");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_choose, setup),   cmocka_unit_test_setup(test_formats, setup),
		cmocka_unit_test_setup(test_names, setup),    cmocka_unit_test_setup(test_noise, setup),
		cmocka_unit_test_setup(test_module, setup),   cmocka_unit_test_setup(test_units, setup),
		cmocka_unit_test_setup(test_emulated, setup), cmocka_unit_test_setup(test_max, setup),
	};
	int failed;

	ttmon_log_set_level(TTMON_LOG_ERROR);
	if (!mkdtemp(root))
		return 1;
	snprintf(tracefs, sizeof(tracefs), "%s/tracing", root);
	snprintf(proc, sizeof(proc), "%s/proc", root);
	snprintf(resctrl, sizeof(resctrl), "%s/resctrl", root);
	snprintf(proc_file, sizeof(proc_file), "%s/ttmon_rmid", proc);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	return failed;
}
