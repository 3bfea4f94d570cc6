// SPDX-License-Identifier: GPL-2.0-only
/*
 * test_top.c: `ttmon top` without a service and without a terminal: readings, some of them hostile,
 * their difference, order, lines of any width, JSON.
 *
 * The commands are part of a program, not of the archive that unit tests are linked with: their
 * sources are included.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tools/cli/show.c"
#include "tools/term/table.c"
#include "tools/top/args.c"
#include "tools/top/arrange.c"
#include "tools/top/data.c"
#define figure top_text_figure
#include "tools/top/text.c"
#undef figure

#define U TTMON_TOP_UNKNOWN

/* ---- readings made here ---- */

static json_t *json(const char *text)
{
	json_error_t error;
	json_t *doc = json_loads(text, JSON_DECODE_ANY, &error);

	if (!doc)
		fail_msg("%s: %s", error.text, text);
	return doc;
}

static int parse(const char *text, struct ttmon_top *ret)
{
	json_t *doc = json(text);
	int err = ttmon_top_parse(doc, ret);

	json_decref(doc);
	return err;
}

static struct ttmon_top must_parse(const char *text)
{
	struct ttmon_top t = { 0 };

	assert_int_equal(parse(text, &t), 0);
	return t;
}

static const struct ttmon_top_proc *proc_of(const struct ttmon_top *t, uint64_t pid, uint64_t start_ns)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->procs[i].pid == pid && t->procs[i].start_ns == start_ns)
			return &t->procs[i];
	fail_msg("process %llu is not there", (unsigned long long)pid);
	return NULL;
}

#define HEAD                                                                                   \
	"\"counters\":true,\"rdt\":true,\"sums\":{\"user_ns\":%d,\"kernel_ns\":0,\"idle_ns\":" \
	"0,\"missing_ns\":0,\"cpus\":2}"

static struct ttmon_top reading(const char *format, ...) _printf_(1, 2);
static struct ttmon_top reading(const char *format, ...)
{
	char text[8192];
	va_list args;

	va_start(args, format);
	assert_in_range(vsnprintf(text, sizeof(text), format, args), 1, sizeof(text) - 1);
	va_end(args);
	return must_parse(text);
}

static void fit(const struct ttmon_top *t, size_t width, bool args, struct ttmon_top_layout *ret)
{
	const struct ttmon_term_style style = { .columns = width, .utf8 = true };
	const struct ttmon_top_ask ask = { .args = args };

	ttmon_top_fit(t, &style, &ask, ret);
}

/* ---- parsing ---- */

static void test_parse(void **state)
{
	static const uint64_t wanted[TTMON_TOP_FIGURES] = { 4,	 2, 10, 25, 1, 2, 200, 1,   300,
							    700, 3, 50, 6,  1, 2, 100, 400, 9 };
	struct ttmon_top t = must_parse(
		"{\"since_ns\":7,\"now_ns\":1000,\"counters\":true,\"rdt\":false,"
		"\"sums\":{\"user_ns\":5,\"kernel_ns\":6,\"idle_ns\":8,\"missing_ns\":9,\"cpus\":4},"
		"\"processes\":["
		"{\"pid\":20,\"start_ns\":3,\"comm\":\"b\",\"class\":\"user\",\"cpu_ns\":4,\"switches\":2,"
		"\"cycles\":10,"
		"\"instructions\":25,\"llc_misses\":1,\"llc_references\":2,\"counters_complete\":true,\"rmid\":9,"
		"\"llc_bytes\":100,\"mbm_total_bytes\":200,\"copies\":1,\"copy_bytes\":300,"
		"\"wait_ns\":700,\"wait_missed\":3,\"pinned_bytes\":400,"
		"\"work\":{\"busy_ns\":50,\"bounded_error_ns\":6,\"unbounded_runs\":1,\"missed_runs\":2}},"
		"{\"pid\":0,\"class\":\"idle\",\"cpu_ns\":8},"
		"{\"pid\":3,\"start_ns\":1,\"comm\":\"kworker\",\"class\":\"kernel\",\"ended\":true,\"cpu_ns\":6},"
		"{\"pid\":0,\"class\":\"unassigned\",\"mbm_total_bytes\":50}],"
		"\"gone\":{\"pid\":0,\"class\":\"other\",\"cpu_ns\":77}}");
	const struct ttmon_top_proc *p = proc_of(&t, 20, 3), *k = proc_of(&t, 3, 1), *u = proc_of(&t, 0, 0);

	(void)state;
	assert_int_equal(t.since_ns, 7);
	assert_int_equal(t.now_ns, 1000);
	assert_int_equal(t.cpus, 4);
	assert_int_equal(t.user_ns + t.kernel_ns * 10 + t.idle_ns * 100 + t.missing_ns * 1000, 9865);
	assert_true(t.counters && !t.rdt);
	/* The idle task is none of them. */
	assert_int_equal(t.n, 3);
	for (size_t i = 1; i < t.n; i++)
		assert_true(ttmon_top_by_identity(&t.procs[i - 1], &t.procs[i]) < 0);
	for (unsigned int i = 0; i < TTMON_TOP_FIGURES; i++)
		assert_int_equal(p->v[i], wanted[i]);
	assert_true(p->complete && !p->ended && p->cls == TTMON_TOP_USER);
	assert_true(k->cls == TTMON_TOP_KERNEL && k->ended && !k->complete && k->v[TTMON_TOP_CYCLES] == U);
	assert_true(u->cls == TTMON_TOP_UNASSIGNED && u->v[TTMON_TOP_MBM] == 50);
	assert_true(t.gone.cls == TTMON_TOP_OTHER && t.gone.v[TTMON_TOP_CPU] == 77);
	ttmon_top_fini(&t);
}

/* What is not measured is not 0, whatever stands in its place. */
static void test_unknown(void **state)
{
	static const char *const values[] = {
		"null", "-1", "\"12\"", "1.5", "[1]", "{}", "true", "-9223372036854775808"
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		struct ttmon_top t =
			reading("{\"processes\":[{\"pid\":1,\"cycles\":%s,\"rmid\":%s}]}", values[i], values[i]);

		assert_true(t.procs[0].v[TTMON_TOP_CYCLES] == U);
		assert_true(t.procs[0].v[TTMON_TOP_RMID] == U);
		assert_true(t.procs[0].v[TTMON_TOP_CPU] == U);
		ttmon_top_fini(&t);
	}
}

static void test_hostile(void **state)
{
	static const char *const refused[] = {
		"{}", "[]", "1", "null", "{\"processes\":null}", "{\"processes\":{}}", "{\"processes\":\"x\"}"
	};
	struct ttmon_top t = { .n = 99 };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		assert_int_equal(parse(refused[i], &t), -EBADMSG);
		assert_true(t.n == 99 && !t.procs);
	}
	/* Rows that are none; a name that a terminal would obey, one that is too long; a pid twice. */
	t = reading("{\"sums\":[],\"gone\":7,\"processes\":[null,3,[],{},{\"pid\":-1},{\"pid\":\"x\"},"
		    "{\"pid\":5,\"start_ns\":-3,\"comm\":\"\\u001b[2J\\n\",\"class\":3,\"ended\":\"yes\"},"
		    "{\"pid\":5,\"comm\":\"again\"},"
		    "{\"pid\":9223372036854775807,\"comm\":\"%0100d\",\"cpu_ns\":9223372036854775807},"
		    "{\"pid\":6,\"class\":\"other\"}]}",
		    1);
	assert_int_equal(t.n, 2);
	assert_string_equal(t.procs[0].comm, "?[2J?");
	assert_true(t.procs[0].cls == TTMON_TOP_USER && !t.procs[0].ended);
	assert_int_equal(strlen(t.procs[1].comm), sizeof(t.procs[1].comm) - 1);
	assert_true(t.gone.v[TTMON_TOP_CPU] == U);
	ttmon_top_fini(&t);
}

/* ---- the difference ---- */

static void test_diff(void **state)
{
	struct ttmon_top a =
		reading("{\"since_ns\":1,\"now_ns\":1000000000," HEAD ",\"processes\":["
			"{\"pid\":1,\"start_ns\":5,\"cpu_ns\":100,\"switches\":7,\"cycles\":50,\"pinned_bytes\":64},"
			"{\"pid\":2,\"start_ns\":6,\"cpu_ns\":40,\"cycles\":null}]}",
			140);
	struct ttmon_top b = reading(
		"{\"since_ns\":1,\"now_ns\":3000000000," HEAD ",\"processes\":["
		"{\"pid\":3,\"start_ns\":9,\"cpu_ns\":11},"
		"{\"pid\":2,\"start_ns\":6,\"cpu_ns\":40,\"cycles\":9},"
		"{\"pid\":1,\"start_ns\":5,\"cpu_ns\":160,\"switches\":8,\"cycles\":null,\"pinned_bytes\":32}]}",
		211);
	struct ttmon_top d = { 0 };

	(void)state;
	assert_int_equal(ttmon_top_diff(&a, &b, &d), 0);
	assert_int_equal(d.now_ns, 2000000000);
	assert_int_equal(d.user_ns, 71);
	assert_int_equal(d.cpus, 2);
	assert_int_equal(d.n, 3);
	assert_int_equal(proc_of(&d, 1, 5)->v[TTMON_TOP_CPU], 60);
	assert_int_equal(proc_of(&d, 1, 5)->v[TTMON_TOP_SWITCHES], 1);
	assert_true(proc_of(&d, 1, 5)->v[TTMON_TOP_CYCLES] == U);
	/* A gauge is what it is now. */
	assert_int_equal(proc_of(&d, 1, 5)->v[TTMON_TOP_PINNED], 32);
	assert_int_equal(proc_of(&d, 2, 6)->v[TTMON_TOP_CPU], 0);
	assert_int_equal(proc_of(&d, 3, 9)->v[TTMON_TOP_CPU], 11);
	assert_int_equal(d.all.v[TTMON_TOP_CPU], 71);
	assert_int_equal(d.all.v[TTMON_TOP_PINNED], 32);
	assert_true(d.all.v[TTMON_TOP_LLC] == U);
	assert_int_equal(d.running, 2);
	assert_int_equal(d.known_procs, 3);
	ttmon_top_fini(&a);
	ttmon_top_fini(&b);
	ttmon_top_fini(&d);
}

/* A pid that was given out again is another process: its sums are not those of the one before. */
static void test_pid_reused(void **state)
{
	struct ttmon_top a = reading("{\"processes\":[{\"pid\":7,\"start_ns\":100,\"cpu_ns\":1000}]}%s", "");
	struct ttmon_top b = reading("{\"processes\":[{\"pid\":7,\"start_ns\":200,\"cpu_ns\":1500},"
				     "{\"pid\":7,\"start_ns\":100,\"cpu_ns\":1001,\"ended\":true}]}%s",
				     "");
	struct ttmon_top d = { 0 };

	(void)state;
	assert_int_equal(ttmon_top_diff(&a, &b, &d), 0);
	assert_int_equal(proc_of(&d, 7, 200)->v[TTMON_TOP_CPU], 1500);
	assert_int_equal(proc_of(&d, 7, 100)->v[TTMON_TOP_CPU], 1);
	ttmon_top_fini(&a);
	ttmon_top_fini(&b);
	ttmon_top_fini(&d);
}

#define WORK(busy, error, unbounded, missed)                                                             \
	"\"work\":{\"busy_ns\":" #busy ",\"bounded_error_ns\":" #error ",\"unbounded_runs\":" #unbounded \
	",\"missed_runs\":" #missed "}"

/*
 * Time that chips ran: of a process without reports it is not known, nor is the error if a part has
 * none.
 */
static void test_work(void **state)
{
	struct ttmon_top a = reading(
		"{\"now_ns\":1000,\"processes\":[{\"pid\":1,\"start_ns\":5,\"work\":null},"
		"{\"pid\":2,\"start_ns\":5," WORK(
			100, 10, 0, 3) "},"
				       "{\"pid\":3,\"start_ns\":5," WORK(
					       100, 10, 7, 3) "},"
							      "{\"pid\":4,\"start_ns\":5,\"work\":null},"
							      "{\"pid\":5,\"start_ns\":5," WORK(100, 10, 7, 3) "}]}%s",
		"");
	struct ttmon_top b = reading(
		"{\"now_ns\":2000,\"processes\":[{\"pid\":1,\"start_ns\":5,\"work\":null},"
		"{\"pid\":2,\"start_ns\":5," WORK(
			600, 15, 0, 3) "},"
				       "{\"pid\":3,\"start_ns\":5," WORK(
					       350, 12, 8, 4) "},"
							      "{\"pid\":4,\"start_ns\":5," WORK(
								      60, 2, 0, 0) "},"
										   "{\"pid\":5,\"start_ns\":5," WORK(
											   100, 10, 7, 4) "}]}%s",
		"");
	struct ttmon_top none = reading("{\"now_ns\":3000,\"processes\":[{\"pid\":1,\"start_ns\":5}]}%s", "");
	struct ttmon_top_ask ask = { .sort = TTMON_SORT_CHIP };
	struct ttmon_top d = { 0 }, r = { 0 };
	struct ttmon_top_layout l;
	char line[TTMON_TOP_LINE];

	(void)state;
	assert_int_equal(ttmon_top_diff(&a, &b, &d), 0);
	assert_true(proc_of(&d, 1, 5)->v[TTMON_TOP_CHIP] == U && proc_of(&d, 1, 5)->v[TTMON_TOP_CHIP_ERROR] == U);
	assert_int_equal(proc_of(&d, 2, 5)->v[TTMON_TOP_CHIP], 500);
	assert_int_equal(proc_of(&d, 2, 5)->v[TTMON_TOP_CHIP_ERROR], 5);
	assert_false(proc_of(&d, 2, 5)->least[TTMON_TOP_CHIP]);
	/* A run without a bound, and one that is missing. */
	assert_int_equal(proc_of(&d, 3, 5)->v[TTMON_TOP_CHIP], 250);
	assert_true(proc_of(&d, 3, 5)->v[TTMON_TOP_CHIP_ERROR] == U && proc_of(&d, 3, 5)->least[TTMON_TOP_CHIP]);
	assert_int_equal(proc_of(&d, 4, 5)->v[TTMON_TOP_CHIP], 60);
	/* All that is known is that something is missing: 0 would be a figure. */
	assert_true(proc_of(&d, 5, 5)->v[TTMON_TOP_CHIP] == U);
	assert_int_equal(ttmon_top_arrange(&d, &ask, &r), 0);
	assert_int_equal(r.procs[0].pid * 100 + r.procs[1].pid * 10 + r.procs[2].pid, 234);
	fit(&r, 0, false, &l);
	ttmon_top_columns(&l, line, sizeof(line));
	assert_non_null(strstr(line, "CPU%  CHIP%  ERROR"));
	ttmon_top_line(&r, 0, &l, NULL, line, sizeof(line));
	assert_non_null(strstr(line, " 50.0    0.5 "));
	ttmon_top_line(&r, 1, &l, NULL, line, sizeof(line));
	assert_non_null(strstr(line, "  >=25      - "));
	ttmon_top_line(&r, 3, &l, NULL, line, sizeof(line));
	assert_null(strstr(line, "0.0"));
	ttmon_top_fini(&r);
	ttmon_top_fini(&d);
	/* A host without such chips has no such columns. */
	assert_int_equal(ttmon_top_diff(&none, &none, &d), 0);
	fit(&d, 0, false, &l);
	assert_int_equal(l.width[TTMON_COL_CHIP] + l.width[TTMON_COL_CHIP_ERROR], 0);
	ttmon_top_fini(&d);
	ttmon_top_fini(&none);
	ttmon_top_fini(&a);
	ttmon_top_fini(&b);
}

/*
 * The service did not know yet when it was started: it is the same process still. Only one can have
 * been it.
 */
static void test_start_becomes_known(void **state)
{
	struct ttmon_top a = reading("{\"processes\":[{\"pid\":7,\"start_ns\":0,\"copies\":10},"
				     "{\"pid\":8,\"start_ns\":0,\"copies\":20}]}%s",
				     "");
	struct ttmon_top b =
		reading("{\"processes\":[{\"pid\":7,\"start_ns\":200,\"copies\":15},"
			"{\"pid\":8,\"start_ns\":0,\"copies\":21},{\"pid\":8,\"start_ns\":300,\"copies\":22}]}%s",
			"");
	struct ttmon_top d = { 0 };

	(void)state;
	assert_int_equal(ttmon_top_diff(&a, &b, &d), 0);
	assert_int_equal(proc_of(&d, 7, 200)->v[TTMON_TOP_COPIES], 5);
	assert_int_equal(proc_of(&d, 8, 0)->v[TTMON_TOP_COPIES], 1);
	assert_int_equal(proc_of(&d, 8, 300)->v[TTMON_TOP_COPIES], 22);
	ttmon_top_fini(&a);
	ttmon_top_fini(&b);
	ttmon_top_fini(&d);
}

/* Another daemon's sums, though some of them are larger by chance: since its start. */
static void test_daemon_restarted(void **state)
{
	struct ttmon_top a = reading("{\"since_ns\":10,\"now_ns\":2000," HEAD
				     ",\"processes\":[{\"pid\":1,\"start_ns\":5,\"cpu_ns\":100,\"switches\":900}],"
				     "\"gone\":{\"cpu_ns\":50}}",
				     150);
	struct ttmon_top b = reading("{\"since_ns\":2500,\"now_ns\":4000," HEAD
				     ",\"processes\":[{\"pid\":1,\"start_ns\":5,\"cpu_ns\":160,\"switches\":8}],"
				     "\"gone\":{\"cpu_ns\":3}}",
				     163);
	struct ttmon_top d = { 0 };

	(void)state;
	assert_int_equal(ttmon_top_diff(&a, &b, &d), 0);
	assert_int_equal(d.now_ns, 1500);
	assert_int_equal(d.user_ns, 163);
	assert_int_equal(proc_of(&d, 1, 5)->v[TTMON_TOP_CPU], 160);
	assert_int_equal(proc_of(&d, 1, 5)->v[TTMON_TOP_SWITCHES], 8);
	assert_int_equal(d.n, 2);
	assert_int_equal(d.all.v[TTMON_TOP_CPU], 163);
	ttmon_top_fini(&a);
	ttmon_top_fini(&b);
	ttmon_top_fini(&d);
}

/* Processes that ended and are no longer kept: all rows together are what the head says. */
static void test_gone(void **state)
{
	struct ttmon_top a =
		reading("{\"now_ns\":1000," HEAD ",\"processes\":["
			"{\"pid\":1,\"start_ns\":5,\"cpu_ns\":100},{\"pid\":2,\"start_ns\":6,\"cpu_ns\":40}],"
			"\"gone\":{\"cpu_ns\":1000,\"switches\":3,\"cycles\":null}}",
			1140);
	/* 2 ended after 10 more, two others came and went with 7; 1 ran for 5. */
	struct ttmon_top b =
		reading("{\"now_ns\":2000," HEAD ",\"processes\":[{\"pid\":1,\"start_ns\":5,\"cpu_ns\":105}],"
			"\"gone\":{\"cpu_ns\":1057,\"switches\":9,\"cycles\":null,\"pinned_bytes\":0,\"rmid\":4}}",
			1162);
	struct ttmon_top d = { 0 }, none = { 0 };
	uint64_t sum = 0;

	(void)state;
	assert_int_equal(ttmon_top_diff(&a, &b, &d), 0);
	assert_int_equal(d.n, 2);
	assert_int_equal(d.procs[1].cls, TTMON_TOP_OTHER);
	assert_int_equal(d.procs[1].v[TTMON_TOP_CPU], 17);
	assert_int_equal(d.procs[1].v[TTMON_TOP_SWITCHES], 6);
	assert_true(d.procs[1].v[TTMON_TOP_CYCLES] == U && d.procs[1].v[TTMON_TOP_RMID] == U);
	assert_true(d.procs[1].v[TTMON_TOP_PINNED] == U);
	for (size_t i = 0; i < d.n; i++)
		sum += d.procs[i].v[TTMON_TOP_CPU];
	assert_int_equal(sum, d.user_ns);
	/* It is no process that runs. */
	assert_int_equal(d.running, 1);
	/* No process ended: there is no empty row. */
	assert_int_equal(ttmon_top_diff(&b, &b, &none), 0);
	assert_int_equal(none.n, 1);
	ttmon_top_fini(&a);
	ttmon_top_fini(&b);
	ttmon_top_fini(&d);
	ttmon_top_fini(&none);
}

/* ---- order ---- */

#define ROWS                                                                                                \
	"{\"processes\":["                                                                                  \
	"{\"pid\":1,\"start_ns\":1,\"cpu_ns\":30,\"cycles\":100,\"instructions\":50,\"llc_misses\":5,"      \
	"\"mbm_total_bytes\":null,"                                                                         \
	"\"llc_bytes\":1,\"pinned_bytes\":0,\"copy_bytes\":9,\"switches\":1},"                              \
	"{\"pid\":2,\"start_ns\":1,\"cpu_ns\":20,\"cycles\":100,\"instructions\":200,\"llc_misses\":9,"     \
	"\"mbm_total_bytes\":7,"                                                                            \
	"\"llc_bytes\":null,\"pinned_bytes\":10,\"copy_bytes\":null,\"switches\":3},"                       \
	"{\"pid\":3,\"start_ns\":1,\"cpu_ns\":40,\"cycles\":null,\"instructions\":200,\"llc_misses\":null," \
	"\"mbm_total_bytes\":0,\"llc_bytes\":2,\"pinned_bytes\":5,\"copy_bytes\":1,\"switches\":2},"        \
	"{\"pid\":4,\"start_ns\":1,\"cpu_ns\":0,\"cycles\":0,\"instructions\":0,\"llc_misses\":0,"          \
	"\"mbm_total_bytes\":0,"                                                                            \
	"\"llc_bytes\":3,\"pinned_bytes\":5,\"copy_bytes\":1,\"switches\":0},"                              \
	"{\"pid\":5,\"start_ns\":1,\"class\":\"kernel\",\"cpu_ns\":90,\"switches\":9},"                     \
	"{\"pid\":6,\"start_ns\":1,\"ended\":true,\"cpu_ns\":0,\"switches\":0},"                            \
	"{\"pid\":7,\"start_ns\":1,\"ended\":true,\"cpu_ns\":1,\"switches\":0}]}"

static void arranged(const struct ttmon_top_ask *ask, const char *wanted)
{
	struct ttmon_top t = must_parse(ROWS), a = { 0 };
	char got[64] = "";

	assert_int_equal(ttmon_top_arrange(&t, ask, &a), 0);
	for (size_t i = 0; i < a.n; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%u", (unsigned int)a.procs[i].pid);
	assert_string_equal(got, wanted);
	ttmon_top_fini(&a);
	ttmon_top_fini(&t);
}

static void test_order(void **state)
{
	(void)state;
	arranged(&(struct ttmon_top_ask){ .sort = TTMON_SORT_CPU }, "31274");
	arranged(&(struct ttmon_top_ask){ .sort = TTMON_SORT_CPU, .reverse = true }, "47213");
	/* What is not known is last, both ways; among equals the CPU time decides. */
	arranged(&(struct ttmon_top_ask){ .sort = TTMON_SORT_IPC }, "21374");
	arranged(&(struct ttmon_top_ask){ .sort = TTMON_SORT_IPC, .reverse = true }, "12473");
	arranged(&(struct ttmon_top_ask){ .sort = TTMON_SORT_MISSES }, "21437");
	arranged(&(struct ttmon_top_ask){ .sort = TTMON_SORT_MBM }, "23417");
	arranged(&(struct ttmon_top_ask){ .sort = TTMON_SORT_LLC }, "43127");
	arranged(&(struct ttmon_top_ask){ .sort = TTMON_SORT_PINNED }, "23417");
	arranged(&(struct ttmon_top_ask){ .sort = TTMON_SORT_COPIED }, "13427");
	arranged(&(struct ttmon_top_ask){ .sort = TTMON_SORT_SWITCHES }, "23174");
	arranged(&(struct ttmon_top_ask){ .sort = TTMON_SORT_PID }, "12347");
	arranged(&(struct ttmon_top_ask){ .sort = TTMON_SORT_PID, .reverse = true }, "74321");
	arranged(&(struct ttmon_top_ask){ .kernel = true }, "234157");
	arranged(&(struct ttmon_top_ask){ .lines = 2 }, "23");
	arranged(&(struct ttmon_top_ask){ .pid = 5 }, "5");
	arranged(&(struct ttmon_top_ask){ .pid = 6 }, "6");
	arranged(&(struct ttmon_top_ask){ .pid = 99 }, "");
}

static void test_sort_keys(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < TTMON_SORT_MAX; i++) {
		/* None of the other keys of the screen. */
		assert_null(strchr("hqrkag/+-<>? ", ttmon_top_sort_key(i)));
		for (unsigned int k = 0; k < i; k++) {
			assert_true(ttmon_top_sort_key(i) != ttmon_top_sort_key(k));
			assert_string_not_equal(ttmon_top_sort_name(i), ttmon_top_sort_name(k));
		}
	}
	assert_null(ttmon_top_sort_name(TTMON_SORT_MAX));
	assert_int_equal(ttmon_top_sort_key(TTMON_SORT_MAX), 0);
}

/* ---- lines ---- */

#define TEXT                                                                                          \
	"{\"now_ns\":2000000000,\"counters\":%s,\"rdt\":%s,\"sums\":{\"user_ns\":1000000000,"         \
	"\"kernel_ns\":500000000,"                                                                    \
	"\"idle_ns\":2400000000,\"missing_ns\":%s,\"cpus\":2},"                                       \
	"\"processes\":["                                                                             \
	"{\"pid\":4194304,\"start_ns\":1,\"comm\":\"python3\",\"cpu_ns\":1000000000,\"cycles\":1000," \
	"\"instructions\":2500,"                                                                      \
	"\"llc_misses\":2468000,\"llc_bytes\":3145728,\"mbm_total_bytes\":2147483648,"                \
	"\"pinned_bytes\":1048575999,"                                                                \
	"\"copy_bytes\":1023,\"wait_ns\":1500000000,\"switches\":1999,\"rmid\":511},"                 \
	"{\"pid\":12,\"start_ns\":1,\"class\":\"kernel\",\"comm\":\"kthreadd\",\"cpu_ns\":null}]}"

static void test_lines(void **state)
{
	struct ttmon_top t = reading(TEXT, "true", "true", "100000000");
	struct ttmon_top_layout l;
	char line[TTMON_TOP_LINE];

	(void)state;
	fit(&t, 0, false, &l);
	ttmon_top_columns(&l, line, sizeof(line));
	assert_string_equal(
		line,
		"    PID PROCESS            PINNED COPIED/s  WAIT%   CPU%   IPC  MISS/s     LLC   MBM/s SWITCH/s RMID");
	ttmon_top_line(&t, 1, &l, NULL, line, sizeof(line));
	assert_string_equal(
		line,
		"4194304 python3           1000.0M     511B   75.0   50.0  2.50    1.2M    3.0M    1.0G     1.0k  511");
	ttmon_top_line(&t, 0, &l, "", line, sizeof(line));
	assert_string_equal(
		line,
		"     12 [kthreadd]              -        -      -      -     -       -       -       -        -    -");
	ttmon_top_head(&t, 0, line, sizeof(line));
	assert_string_equal(line, "2 CPUs: 25.0 % processes, 12.5 % kernel, 60.0 % idle, 2.50 % MISSING");
	ttmon_top_fini(&t);
	t = reading(TEXT, "false", "false", "0");
	ttmon_top_head(&t, 0, line, sizeof(line));
	assert_null(strstr(line, "MISSING"));
	ttmon_top_head(&t, 1, line, sizeof(line));
	assert_non_null(strstr(line, "no counters; no RDT"));
	/* Any buffer is enough. */
	for (size_t n = 1; n < 120; n++) {
		_cleanup_free_ char *small = malloc(n);

		assert_non_null(small);
		ttmon_top_head(&t, 0, small, n);
		ttmon_top_head(&t, 1, small, n);
		ttmon_top_columns(&l, small, n);
		ttmon_top_line(&t, 1, &l, NULL, small, n);
		assert_true(strlen(small) < n);
	}
	ttmon_top_fini(&t);
}

static bool has(const struct ttmon_top *t, size_t width, bool args, const char *title)
{
	struct ttmon_top_layout l;
	char line[TTMON_TOP_LINE];

	fit(t, width, args, &l);
	ttmon_top_columns(&l, line, sizeof(line));
	return strstr(line, title);
}

/* At any width: as many columns as fit, all lines as long as the title, no cell over its neighbour. */
static void test_width(void **state)
{
	static const char *const unmeasured[] = { "IPC", "MISS/s", "LLC", "MBM/s", "CHIP%" };
	struct ttmon_top all = reading(TEXT, "true", "true", "0"), none = reading(TEXT, "false", "false", "0");
	struct ttmon_top_layout l;
	char title[TTMON_TOP_LINE], line[TTMON_TOP_LINE];

	(void)state;
	for (size_t width = 1; width < 200; width++) {
		for (unsigned int form = 0; form < 4; form++) {
			const struct ttmon_top *t = form & 1 ? &all : &none;

			fit(t, width, form & 2, &l);
			ttmon_top_columns(&l, title, sizeof(title));
			ttmon_top_line(t, 1, &l, form & 2 ? "/usr/bin/python3 train.py --big --bigger" : NULL, line,
				       sizeof(line));
			assert_in_range(strlen(title), 1, width);
			/* A bar has three bytes a column. */
			assert_int_equal(ttmon_term_width(line), strlen(title));
			if (width > 145 || ((form & 2) && width > 122))
				assert_int_equal(strlen(title), width);
		}
	}
	/* What this host does not have is not there at any width. */
	for (size_t width = 0; width < 200; width += 10)
		for (size_t i = 0; i < ARRAY_SIZE(unmeasured); i++)
			assert_false(has(&none, width, false, unmeasured[i]));
	assert_true(has(&none, 80, false, "PINNED") && has(&none, 80, false, "COPIED/s") &&
		    has(&none, 80, false, "WAIT%") && has(&none, 80, false, "SWITCH/s"));
	assert_true(has(&all, 80, false, "LLC") && has(&all, 80, false, "MBM/s") && has(&all, 80, false, "IPC"));
	assert_false(has(&all, 80, false, "RMID"));
	assert_true(has(&all, 36, false, "PID") && has(&all, 36, false, "PROCESS") && has(&all, 36, false, "PINNED"));
	assert_false(has(&all, 30, false, "CPU%"));
	assert_true(has(&all, 12, false, "PROCESS"));
	assert_true(has(&all, 200, false, "COMMAND") && !has(&all, 200, true, "COMMAND") &&
		    !has(&all, 80, false, "COMMAND"));
	ttmon_top_fini(&all);
	ttmon_top_fini(&none);
}

/* Names take columns, not bytes; what turns the terminal round is not let through. */
static void test_names(void **state)
{
	struct ttmon_top t = reading("{\"now_ns\":1,\"processes\":["
				     "{\"pid\":1,\"comm\":\"\\u65e5\\u672c\\u8a9e\",\"cpu_ns\":0},"
				     "{\"pid\":2,\"comm\":\"\\u202egpj\\u0301\",\"cpu_ns\":0},"
				     "{\"pid\":3,\"comm\":\"\",\"cpu_ns\":0}]}%s",
				     "");
	struct ttmon_top_layout l;
	char line[TTMON_TOP_LINE];

	(void)state;
	fit(&t, 33, false, &l);
	for (size_t i = 0; i < t.n; i++) {
		ttmon_top_line(&t, i, &l, NULL, line, sizeof(line));
		assert_int_equal(ttmon_term_width(line), 33);
	}
	ttmon_top_line(&t, 1, &l, NULL, line, sizeof(line));
	assert_non_null(strstr(line, " ?gpj? "));
	ttmon_top_line(&t, 2, &l, NULL, line, sizeof(line));
	assert_non_null(strstr(line, " ? "));
	ttmon_top_line(&t, 0, &l, "a\x1b[31m\xff", line, sizeof(line));
	assert_non_null(strstr(line, "a?[31m?"));
	ttmon_top_fini(&t);
}

static void test_column_at(void **state)
{
	struct ttmon_top t = reading(TEXT, "true", "true", "0");
	struct ttmon_top_layout l;
	char line[TTMON_TOP_LINE];
	size_t at = 0, width = 0;

	(void)state;
	fit(&t, 0, false, &l);
	ttmon_top_columns(&l, line, sizeof(line));
	for (unsigned int i = 0; i < TTMON_SORT_MAX; i++) {
		/* No process uses a chip. */
		assert_true(ttmon_top_column_at(&l, i, &at, &width) == (i != TTMON_SORT_CHIP));
		assert_true(at == 0 || line[at - 1] == ' ');
		assert_true(line[at + width - 1] != ' ' && (line[at + width] == ' ' || !line[at + width]));
	}
	fit(&t, 33, false, &l);
	assert_false(ttmon_top_column_at(&l, TTMON_SORT_CPU, &at, &width));
	assert_true(ttmon_top_column_at(&l, TTMON_SORT_PINNED, &at, &width));
	assert_int_equal(at + width, 33);
	ttmon_top_fini(&t);
}

/* Figures stay within their columns, up to the largest that a hostile service can send. */
static void test_large(void **state)
{
	static const char *const values[] = {
		"0",	   "999",	 "1000",	  "999499",	  "999500",	     "99949999",
		"1048575", "1073741823", "1099511627775", "999999999999", "999999999999999", "9223372036854775807"
	};
	struct ttmon_top_layout l;
	char line[TTMON_TOP_LINE];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		const char *x = values[i];
		struct ttmon_top t =
			reading("{\"now_ns\":1000000000,\"counters\":true,\"rdt\":true,"
				"\"processes\":[{\"pid\":1,\"comm\":\"x\",\"cpu_ns\":500,"
				"\"llc_misses\":%s,\"llc_bytes\":%s,\"mbm_total_bytes\":%s,\"pinned_bytes\":%s,"
				"\"copy_bytes\":%s,\"switches\":%s}]}",
				x, x, x, x, x, x);

		fit(&t, 0, false, &l);
		ttmon_top_line(&t, 0, &l, NULL, line, sizeof(line));
		assert_int_equal(strlen(line), total(&l));
		ttmon_top_fini(&t);
	}
}

/* Figures that cannot be computed from known ones are not known; a process on 512 CPUs. */
static void test_figures(void **state)
{
	struct ttmon_top t = reading("{\"now_ns\":1000,\"counters\":true,\"processes\":["
				     "{\"pid\":1,\"comm\":\"x\",\"cpu_ns\":512000,\"cycles\":5,\"instructions\":null},"
				     "{\"pid\":2,\"comm\":\"x\",\"cpu_ns\":1,\"cycles\":0,\"instructions\":0},"
				     "{\"pid\":3,\"comm\":\"x\",\"cpu_ns\":1,\"cycles\":4,\"instructions\":1}]}%s",
				     "");
	const struct ttmon_top_ask ask = { .sort = TTMON_SORT_IPC };
	struct ttmon_top_layout l;
	struct ttmon_top a = { 0 };
	char line[TTMON_TOP_LINE];

	(void)state;
	fit(&t, 0, false, &l);
	ttmon_top_line(&t, 0, &l, NULL, line, sizeof(line));
	assert_non_null(strstr(line, "  51200     - "));
	ttmon_top_line(&t, 1, &l, NULL, line, sizeof(line));
	assert_non_null(strstr(line, "   0.1     - "));
	ttmon_top_line(&t, 2, &l, NULL, line, sizeof(line));
	assert_non_null(strstr(line, "   0.1  0.25 "));
	assert_int_equal(ttmon_top_arrange(&t, &ask, &a), 0);
	assert_int_equal(a.procs[0].pid, 3);
	ttmon_top_fini(&a);
	ttmon_top_fini(&t);
}

/* Bars: nothing for 0, something for anything more, never more than there is room for. */
static void test_bars(void **state)
{
	char bar[64];

	(void)state;
	for (unsigned int form = 0; form < 2; form++) {
		ttmon_top_bar(0, 10, form, bar, sizeof(bar));
		assert_string_equal(bar, "");
		for (double share = 1e-9; share < 3; share = share * 1.7 + 0.001) {
			ttmon_top_bar(share, 10, form, bar, sizeof(bar));
			assert_in_range(ttmon_term_width(bar), 1, 10);
		}
	}
	assert_string_equal(bar, "\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588");
	ttmon_top_bar(0.5, 10, false, bar, sizeof(bar));
	assert_string_equal(bar, "#####");
	for (size_t n = 1; n < sizeof(bar); n++) {
		ttmon_top_bar(1, 10, true, bar, n);
		assert_in_range(strlen(bar), 0, n - 1);
	}
}

/* ---- trees and groups ---- */

#define FAMILY                                                                   \
	"{\"now_ns\":1000,\"processes\":["                                       \
	"{\"pid\":1,\"start_ns\":1,\"ppid\":0,\"comm\":\"init\",\"cpu_ns\":1},"  \
	"{\"pid\":5,\"start_ns\":2,\"ppid\":1,\"comm\":\"sh\",\"cpu_ns\":2},"    \
	"{\"pid\":6,\"start_ns\":3,\"ppid\":5,\"comm\":\"Train\",\"cpu_ns\":9}," \
	"{\"pid\":7,\"start_ns\":4,\"ppid\":5,\"comm\":\"idle\",\"cpu_ns\":0},"  \
	"{\"pid\":8,\"start_ns\":5,\"ppid\":1,\"comm\":\"cron\",\"cpu_ns\":5},"  \
	"{\"pid\":9,\"start_ns\":6,\"ppid\":9,\"comm\":\"self\",\"cpu_ns\":4},"  \
	"{\"pid\":10,\"start_ns\":7,\"ppid\":11,\"comm\":\"a\",\"cpu_ns\":3},"   \
	"{\"pid\":11,\"start_ns\":7,\"ppid\":10,\"comm\":\"b\",\"cpu_ns\":3}]}%s"

static void tree_is(const struct ttmon_top_ask *ask, const char *const *names, size_t n)
{
	const struct ttmon_term_style style = { .columns = 60, .utf8 = false };
	struct ttmon_top t = reading(FAMILY, ""), a = { 0 };
	struct ttmon_top_layout l;
	char line[TTMON_TOP_LINE];

	assert_int_equal(ttmon_top_arrange(&t, ask, &a), 0);
	assert_int_equal(a.n, n);
	ttmon_top_fit(&a, &style, ask, &l);
	for (size_t i = 0; i < n; i++) {
		ttmon_top_line(&a, i, &l, NULL, line, sizeof(line));
		line[8 + strlen(names[i])] = '\0';
		assert_string_equal(line + 8, names[i]);
	}
	ttmon_top_fini(&a);
	ttmon_top_fini(&t);
}

/*
 * What sorts first is at the top with its ancestors; a filter keeps the ancestors; no row is its own
 * ancestor.
 */
static void test_tree(void **state)
{
	static const char *const all[] = {
		"init ", "|-sh ", "| |-Train ", "| `-idle ", "`-cron ", "self ", "a ", "`-b "
	};
	static const char *const filtered[] = { "init ", "`-sh ", "  `-Train " };

	(void)state;
	tree_is(&(struct ttmon_top_ask){ .by = TTMON_TOP_BY_TREE, .sort = TTMON_SORT_CPU }, all, ARRAY_SIZE(all));
	tree_is(&(struct ttmon_top_ask){ .by = TTMON_TOP_BY_TREE, .sort = TTMON_SORT_CPU, .filter = "train" }, filtered,
		ARRAY_SIZE(filtered));
	tree_is(&(struct ttmon_top_ask){ .by = TTMON_TOP_BY_TREE, .filter = "no such" }, NULL, 0);
}

/* A sum of which a part is not known is a lower bound; of nothing that is known it is not known. */
static void test_groups(void **state)
{
	const struct ttmon_top_ask ask = { .by = TTMON_TOP_BY_UNIT };
	struct ttmon_top t = reading("{\"now_ns\":1000,\"processes\":["
				     "{\"pid\":4194301,\"start_ns\":1,\"class\":\"user\",\"ended\":true,\"cpu_ns\":3,"
				     "\"pinned_bytes\":4096,\"copy_bytes\":null,\"wait_ns\":0,\"rmid\":4},"
				     "{\"pid\":4194302,\"start_ns\":1,\"class\":\"user\",\"ended\":true,\"cpu_ns\":4,"
				     "\"pinned_bytes\":null,\"copy_bytes\":null,\"wait_ns\":null,\"rmid\":4},"
				     "{\"pid\":0,\"class\":\"unassigned\",\"mbm_total_bytes\":7}]}%s",
				     ""),
			 a = { 0 };
	const struct ttmon_top_proc *g = NULL;
	json_t *doc;

	(void)state;
	assert_int_equal(ttmon_top_arrange(&t, &ask, &a), 0);
	assert_int_equal(a.n, 2);
	for (size_t i = 0; i < a.n; i++)
		g = a.procs[i].members ? &a.procs[i] : g;
	assert_non_null(g);
	assert_int_equal(g->members, 2);
	assert_string_equal(g->comm, "(not known)");
	assert_true(g->v[TTMON_TOP_CPU] == 7 && !g->least[TTMON_TOP_CPU]);
	assert_true(g->v[TTMON_TOP_PINNED] == 4096 && g->least[TTMON_TOP_PINNED]);
	assert_true(g->v[TTMON_TOP_COPIED] == U && g->v[TTMON_TOP_WAIT] == U && g->v[TTMON_TOP_RMID] == U);
	doc = ttmon_top_json(&a, &ask);
	assert_string_equal(json_string_value(json_object_get(doc, "by")), "unit");
	json_decref(doc);
	ttmon_top_fini(&a);
	ttmon_top_fini(&t);
}

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void test_group_names(void **state)
{
	static const struct {
		const char *text, *unit, *container;
	} cases[] = {
		{ "0::/system.slice/ssh.service\n", "ssh.service", "(none)" },
		{ "12:cpu:/x\n0::/system.slice/docker-" ID ".scope\n", "docker-" ID ".scope", "0123456789ab" },
		{ "0::/\n", "(none)", "(none)" },
		{ "1:name=systemd:/a.service\n", "(not known)", "(not known)" },
	};
	char root[] = "/tmp/ttmon-top-XXXXXX", path[128], buf[TTMON_CGNAME_MAX];

	(void)state;
	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/5", root);
	assert_int_equal(mkdir(path, 0700), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		FILE *f;

		snprintf(path, sizeof(path), "%s/5/cgroup", root);
		f = fopen(path, "we");
		assert_non_null(f);
		fputs(cases[i].text, f);
		assert_int_equal(fclose(f), 0);
		ttmon_top_group_name(root, 5, TTMON_TOP_BY_UNIT, buf, sizeof(buf));
		assert_string_equal(buf, cases[i].unit);
		ttmon_top_group_name(root, 5, TTMON_TOP_BY_CONTAINER, buf, sizeof(buf));
		assert_string_equal(buf, cases[i].container);
	}
	ttmon_top_group_name(root, 6, TTMON_TOP_BY_UNIT, buf, sizeof(buf));
	assert_string_equal(buf, "(not known)");
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	rmdir(root);
}

/* ---- JSON ---- */

static void test_json(void **state)
{
	struct ttmon_top a = reading("{\"now_ns\":1000,\"processes\":[],\"gone\":{\"cpu_ns\":0}}%s", "");
	struct ttmon_top b =
		reading("{\"now_ns\":5000,\"counters\":false,\"rdt\":true,\"sums\":{\"user_ns\":7,\"cpus\":3},"
			"\"processes\":[{\"pid\":9,\"start_ns\":4,\"comm\":\"x\",\"cpu_ns\":5,\"cycles\":null,"
			"\"pinned_bytes\":0,\"rmid\":null,\"mbm_total_bytes\":0}],\"gone\":{\"cpu_ns\":2}}%s",
			"");
	const struct ttmon_top_ask ask = { .sort = TTMON_SORT_PID };
	struct ttmon_top d = { 0 };
	const json_t *rows, *p, *gone;
	json_t *doc;

	(void)state;
	assert_int_equal(ttmon_top_diff(&a, &b, &d), 0);
	doc = ttmon_top_json(&d, &ask);
	assert_non_null(doc);
	assert_int_equal(json_integer_value(json_object_get(doc, "interval_ns")), 4000);
	assert_int_equal(json_integer_value(json_object_get(doc, "cpus")), 3);
	assert_string_equal(json_string_value(json_object_get(doc, "sort")), "pid");
	assert_true(json_is_false(json_object_get(doc, "counters")) && json_is_true(json_object_get(doc, "rdt")));
	rows = json_object_get(doc, "processes");
	assert_int_equal(json_array_size(rows), 2);
	p = json_array_get(rows, 0);
	assert_int_equal(json_integer_value(json_object_get(p, "pid")), 9);
	assert_int_equal(json_integer_value(json_object_get(p, "cpu_ns")), 5);
	assert_string_equal(json_string_value(json_object_get(p, "class")), "user");
	/* Not known is null; 0 is 0. Every name is always there. */
	assert_true(json_is_null(json_object_get(p, "cycles")) && json_is_null(json_object_get(p, "rmid")));
	assert_true(json_is_null(json_object_get(p, "switches")));
	assert_true(json_is_integer(json_object_get(p, "pinned_bytes")) &&
		    json_is_integer(json_object_get(p, "mbm_total_bytes")));
	gone = json_array_get(rows, 1);
	assert_true(json_is_null(json_object_get(gone, "pid")));
	assert_string_equal(json_string_value(json_object_get(gone, "class")), "other");
	assert_int_equal(json_integer_value(json_object_get(gone, "cpu_ns")), 2);
	assert_int_equal(json_object_size(p), json_object_size(gone));
	json_decref(doc);
	ttmon_top_fini(&a);
	ttmon_top_fini(&b);
	ttmon_top_fini(&d);
}

/* ---- command lines ---- */

static void test_args(void **state)
{
	static const char cmdline[] = "python3\0-c\0\x1b[2J\0";
	char root[] = "/tmp/ttmon-top-XXXXXX", path[128], buf[64];
	int fd;

	(void)state;
	assert_non_null(mkdtemp(root));
	ttmon_top_args(root, 5, buf, sizeof(buf));
	assert_string_equal(buf, "");
	snprintf(path, sizeof(path), "%s/5", root);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/5/cmdline", root);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, cmdline, sizeof(cmdline) - 1), sizeof(cmdline) - 1);
	close(fd);
	ttmon_top_args(root, 5, buf, sizeof(buf));
	assert_string_equal(buf, "python3 -c \x1b[2J");
	ttmon_top_args(root, 5, buf, 5);
	assert_string_equal(buf, "pyth");
	ttmon_top_args(root, 5, buf, 1);
	assert_string_equal(buf, "");
	/* A kernel thread has none. */
	assert_int_equal(truncate(path, 0), 0);
	ttmon_top_args(root, 5, buf, sizeof(buf));
	assert_string_equal(buf, "");
	unlink(path);
	*strrchr(path, '/') = '\0';
	rmdir(path);
	rmdir(root);
}

/* ---- what is known ---- */

/*
 * now_ns, off_ns and missed of cpu and of transfer, state and seen_since_ns of transfer, what the
 * process did.
 */
#define SEEN                                                                                                        \
	"{\"now_ns\":%d,\"counters\":true,\"rdt\":false,\"sums\":{\"user_ns\":%d,\"idle_ns\":%d,\"cpus\":%s},"      \
	"\"families\":{"                                                                                            \
	"\"cpu\":{\"state\":\"on\",\"why\":\"\",\"seen_since_ns\":1,\"off_ns\":%d,\"missed\":0},"                   \
	"\"transfer\":{\"state\":\"%s\",\"why\":\"budget\",\"from_ns\":3600000000000,\"seen_since_ns\":%s,"         \
	"\"off_ns\":%d,\"missed\":%d},"                                                                             \
	"\"alloc\":{\"state\":\"on\",\"why\":\"\",\"seen_since_ns\":1,\"off_ns\":0,\"missed\":0}},"                 \
	"\"processes\":[{\"pid\":9,\"start_ns\":4,\"comm\":\"x\",\"class\":\"user\",\"traced\":true,\"cpu_ns\":%s," \
	"\"cycles\":null,\"copies\":%s,\"copy_bytes\":%s,\"pinned_bytes\":8192,\"probed_ns\":%s}],\"gone\":{}}"

static struct ttmon_top between_two(const struct ttmon_top *a, const struct ttmon_top *b)
{
	struct ttmon_top d = { 0 };

	assert_int_equal(ttmon_top_diff(a, b, &d), 0);
	return d;
}

static void test_not_seen(void **state)
{
	struct ttmon_top a = reading(SEEN, 1000, 5, 5, "2", 0, "counting", "null", 10, 0, "5", "null", "null", "null");
	struct ttmon_top b =
		reading(SEEN, 2000, 9, 9, "2", 0, "counting", "null", 1010, 0, "9", "null", "null", "null");
	struct ttmon_top d = between_two(&a, &b), shown = { 0 };
	const struct ttmon_top_ask ask = { 0 };
	struct ttmon_top_layout l;
	char line[TTMON_TOP_LINE];
	json_t *doc;

	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	assert_int_equal(d.known[TTMON_TOP_FAMILY_TRANSFER], TTMON_TOP_NOTHING);
	assert_int_equal(d.known[TTMON_TOP_FAMILY_CPU], TTMON_TOP_ALL);
	assert_true(d.procs[0].v[TTMON_TOP_COPIES] == U && d.procs[0].v[TTMON_TOP_COPIED] == U);
	assert_int_equal(d.procs[0].v[TTMON_TOP_CPU], 4);
	assert_int_equal(d.procs[0].v[TTMON_TOP_PINNED], 8192);
	ttmon_top_head(&d, 1, line, sizeof(line));
	assert_non_null(strstr(line, "pinned; -/s copied;"));
	ttmon_top_head(&d, 2, line, sizeof(line));
	assert_string_equal(line, "transfer: only counted since 01:00:00 (budget)");
	doc = ttmon_top_json(&d, &ask);
	assert_int_equal(json_array_size(json_object_get(doc, "knowledge")), 1);
	json_decref(doc);
	ttmon_top_fini(&d);
	/* It came back within the interval: what was seen is a lower bound, nothing is not known. */
	ttmon_top_fini(&b);
	b = reading(SEEN, 2000, 9, 9, "2", 0, "on", "3660000000000", 510, 1, "9", "3", "null", "null");
	d = between_two(&a, &b);
	assert_int_equal(d.known[TTMON_TOP_FAMILY_TRANSFER], TTMON_TOP_AT_LEAST);
	assert_true(d.procs[0].v[TTMON_TOP_COPIES] == 3 && d.procs[0].least[TTMON_TOP_COPIES]);
	assert_true(d.procs[0].v[TTMON_TOP_COPIED] == U);
	ttmon_top_head(&d, 2, line, sizeof(line));
	assert_string_equal(line, "transfer: everything is seen again since 01:01:00");
	d.procs[0].v[TTMON_TOP_COPIED] = 1536;
	d.procs[0].least[TTMON_TOP_COPIED] = true;
	assert_int_equal(ttmon_top_arrange(&d, &ask, &shown), 0);
	fit(&shown, 0, false, &l);
	ttmon_top_line(&shown, 0, &l, NULL, line, sizeof(line));
	assert_non_null(strstr(line, " >=1G "));
	doc = ttmon_top_json(&d, &ask);
	assert_true(json_is_true(json_object_get(json_array_get(json_object_get(doc, "processes"), 0), "at_least")));
	json_decref(doc);
	ttmon_top_fini(&shown);
	ttmon_top_fini(&d);
	ttmon_top_fini(&a);
	/*
	 * It was on all the while: 0 is 0, though sums since the start are lower bounds; but for whose probes
	 * came late.
	 */
	a = reading(SEEN, 1500, 9, 9, "2", 0, "on", "1400", 510, 1, "9", "3", "null", "null");
	d = between_two(&a, &b);
	assert_true(d.procs[0].v[TTMON_TOP_COPIES] == 0 && d.procs[0].v[TTMON_TOP_COPIED] == 0);
	ttmon_top_head(&d, 2, line, sizeof(line));
	assert_string_equal(line, "");
	ttmon_top_fini(&d);
	ttmon_top_fini(&b);
	b = reading(SEEN, 2000, 9, 9, "2", 0, "on", "1400", 510, 1, "9", "3", "null", "1700");
	d = between_two(&a, &b);
	assert_true(d.procs[0].v[TTMON_TOP_COPIES] == U);
	assert_true(d.procs[0].least[TTMON_TOP_PINNED]);
	ttmon_top_fini(&d);
	ttmon_top_fini(&a);
	ttmon_top_fini(&b);
}

/* Waiting: what was not seen is no 0. */
static void test_waits(void **state)
{
	struct ttmon_top a = reading(SEEN, 1000, 5, 5, "2", 0, "on", "1", 0, 0, "5", "0", "0", "null"), b, d;

	(void)state;
	assert_true(a.procs[0].v[TTMON_TOP_WAIT] == U && !a.has_wait);
	ttmon_top_fini(&a);
	a = reading("{\"now_ns\":1000,\"processes\":[{\"pid\":9,\"start_ns\":4,\"traced\":true,\"wait_ns\":500,"
		    "\"wait_missed\":0}],\"gone\":{\"traced\":true,\"wait_ns\":null}}%s",
		    "");
	b = reading("{\"now_ns\":2000,\"processes\":[{\"pid\":9,\"start_ns\":4,\"traced\":true,\"wait_ns\":600,"
		    "\"wait_missed\":1}],\"gone\":{\"traced\":true,\"wait_ns\":null,\"cpu_ns\":4}}%s",
		    "");
	d = between_two(&a, &b);
	assert_true(d.has_wait && d.procs[0].v[TTMON_TOP_WAIT] == 100 && d.procs[0].least[TTMON_TOP_WAIT]);
	/* Of those that ended nothing is known. */
	assert_int_equal(d.n, 2);
	assert_true(d.procs[1].v[TTMON_TOP_WAIT] == U);
	ttmon_top_fini(&d);
	ttmon_top_fini(&a);
	ttmon_top_fini(&b);
}

static void test_cpu_not_measured(void **state)
{
	struct ttmon_top a = reading(SEEN, 1000, 5, 5, "null", 0, "on", "1", 0, 0, "5", "0", "0", "null");
	struct ttmon_top b = reading(SEEN, 2000, 5, 5, "null", 1000, "on", "1", 0, 0, "5", "7", "64", "null");
	struct ttmon_top d = between_two(&a, &b);
	char line[TTMON_TOP_LINE];
	const struct ttmon_top_ask ask = { 0 };
	json_t *doc;

	(void)state;
	assert_true(d.procs[0].v[TTMON_TOP_CPU] == U && d.procs[0].v[TTMON_TOP_COPIES] == 7);
	ttmon_top_head(&d, 0, line, sizeof(line));
	assert_string_equal(line, "CPU time is not measured");
	ttmon_top_head(&d, 1, line, sizeof(line));
	assert_non_null(strstr(line, "; - of 1 processes ran; - switches/s; "));
	doc = ttmon_top_json(&d, &ask);
	assert_true(json_is_null(json_object_get(doc, "cpus")) && json_is_null(json_object_get(doc, "idle_ns")));
	json_decref(doc);
	ttmon_top_fini(&d);
	ttmon_top_fini(&b);
	/* For a part of the interval. */
	b = reading(SEEN, 2000, 9, 9, "2", 400, "on", "1", 0, 0, "9", "7", "64", "null");
	d = between_two(&a, &b);
	assert_true(d.cpu_least && d.procs[0].v[TTMON_TOP_CPU] == 4 && d.procs[0].least[TTMON_TOP_CPU]);
	ttmon_top_head(&d, 0, line, sizeof(line));
	assert_string_equal(line, "2 CPUs for a part of the interval: 50.0 % processes, 0.0 % kernel, 50.0 % idle");
	doc = ttmon_top_json(&d, &ask);
	assert_true(json_is_true(json_object_get(doc, "at_least")));
	json_decref(doc);
	ttmon_top_fini(&d);
	ttmon_top_fini(&a);
	ttmon_top_fini(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_diff),
		cmocka_unit_test(test_pid_reused),
		cmocka_unit_test(test_work),
		cmocka_unit_test(test_start_becomes_known),
		cmocka_unit_test(test_daemon_restarted),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_sort_keys),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_width),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_column_at),
		cmocka_unit_test(test_large),
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_bars),
		cmocka_unit_test(test_tree),
		cmocka_unit_test(test_groups),
		cmocka_unit_test(test_group_names),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_args),
		cmocka_unit_test(test_not_seen),
		cmocka_unit_test(test_cpu_not_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
