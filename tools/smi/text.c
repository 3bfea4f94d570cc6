// SPDX-License-Identifier: GPL-2.0-only
/*
 * text.c: the tables of chips and processes of `ttmon smi`, and the notes below them. Each table has
 * several forms, from wide to dense; the first that fits the terminal is taken, the widest if there is
 * no terminal. Pure except for the FILE and the time zone.
 */
#include <inttypes.h>
#include <time.h>

#include "tools/smi/smi.h"
#include "lib/base/fmt.h"

#define IDS_MAX 6

/* Formats "2.8 GiB", or "2.8G" if dense. */
const char *ttmon_smi_bytes(char *buf, size_t n, uint64_t bytes, bool dense)
{
	char *unit;

	if (bytes == TTMON_SMI_UNKNOWN) {
		snprintf(buf, n, "n/a");
		return buf;
	}
	ttmon_fmt_bytes(buf, n, bytes);
	unit = strchr(buf, ' ');
	if (dense && unit) {
		unit[0] = unit[1];
		unit[1] = '\0';
	}
	return buf;
}

/* Computes how much of the total is in use: the colour, and "12.3%" or "". */
static enum ttmon_term_colour usage_colour(uint64_t used, uint64_t total, char *percent, size_t n)
{
	double part;

	percent[0] = '\0';
	if (used == TTMON_SMI_UNKNOWN || total == TTMON_SMI_UNKNOWN || !total)
		return TTMON_TERM_PLAIN;
	part = 100.0 * (double)used / (double)total;
	snprintf(percent, n, part < 1000 ? "%.1f%%" : ">999%%", part);
	return part >= 90 ? TTMON_TERM_RED : part >= 75 ? TTMON_TERM_YELLOW : TTMON_TERM_PLAIN;
}

static void put_usage(struct ttmon_term_cell *cell, uint64_t used, uint64_t total, bool dense, bool with_percent)
{
	char a[TTMON_FMT_LEN], b[TTMON_FMT_LEN], percent[16];

	cell->colour = usage_colour(used, total, percent, sizeof(percent));
	if (used == TTMON_SMI_UNKNOWN && total == TTMON_SMI_UNKNOWN)
		snprintf(cell->text, sizeof(cell->text), "n/a");
	else
		snprintf(cell->text, sizeof(cell->text), dense ? "%s/%s" : "%s / %s",
			 ttmon_smi_bytes(a, sizeof(a), used, dense), ttmon_smi_bytes(b, sizeof(b), total, dense));
	if (with_percent) {
		size_t len = strlen(cell->text);

		/* Spaces in place of a missing percentage keep the figures aligned. */
		snprintf(cell->text + len, sizeof(cell->text) - len, " %6s", percent);
	}
}

/* Puts a number with its unit; a negative number is not known. */
static void put_number(struct ttmon_term_cell *cell, int64_t value, const char *unit, bool dense)
{
	if (value < 0)
		snprintf(cell->text, sizeof(cell->text), "n/a");
	else
		snprintf(cell->text, sizeof(cell->text), "%" PRId64 "%s%s", value, dense || !*unit ? "" : " ", unit);
}

static void put_temperature(struct ttmon_term_cell *cell, int32_t millidegrees, bool dense)
{
	if (millidegrees == INT32_MIN)
		snprintf(cell->text, sizeof(cell->text), "n/a");
	else
		snprintf(cell->text, sizeof(cell->text), "%" PRId32 "%sC",
			 (millidegrees + (millidegrees < 0 ? -500 : 500)) / 1000, dense ? "" : " ");
}

/* ---- chips ---- */

enum form { ROOMY, WIDE, MEDIUM, DENSE, DENSEST, FORMS };

static enum ttmon_term_colour status_colour(enum ttmon_smi_status status)
{
	static const enum ttmon_term_colour colours[TTMON_SMI_STATUS_MAX] = {
		[TTMON_SMI_NO_TRACKING] = TTMON_TERM_YELLOW, [TTMON_SMI_IN_USE] = TTMON_TERM_GREEN,
		[TTMON_SMI_IDLE] = TTMON_TERM_PLAIN,	     [TTMON_SMI_STALE] = TTMON_TERM_YELLOW,
		[TTMON_SMI_BAD_FILE] = TTMON_TERM_RED,	     [TTMON_SMI_RESETTING] = TTMON_TERM_YELLOW,
	};

	return colours[status];
}

static const char *arch_text(const struct ttmon_smi_chip *chip, bool dense)
{
	static const char *const shorts[TTMON_TT_ARCH_MAX] = {
		[TTMON_TT_GRAYSKULL] = "GS",
		[TTMON_TT_WORMHOLE] = "WH",
		[TTMON_TT_BLACKHOLE] = "BH",
	};
	const char *name = ttmon_smi_arch_name(chip->arch);

	return !name ? "n/a" : dense ? shorts[chip->arch] : name;
}

static void put_share(char *buf, size_t n, uint64_t ns, uint64_t window_ns, bool least)
{
	if (ns == TTMON_SMI_UNKNOWN || !window_ns)
		snprintf(buf, n, "-");
	else
		snprintf(buf, n, "%s%.1f %%", least ? ">=" : "", 100.0 * (double)ns / (double)window_ns);
}

/* A share whose error is the whole window is shown as not known. */
static void put_error(char *buf, size_t n, uint64_t ns, uint64_t window_ns)
{
	if (ns != TTMON_SMI_UNKNOWN && window_ns && ns >= window_ns)
		snprintf(buf, n, ">100 %%");
	else
		put_share(buf, n, ns, window_ns, false);
}

static struct ttmon_term_cell *add_column(struct ttmon_term_table *t, size_t i, struct ttmon_term_cell *row,
					  const char *title, bool right)
{
	t->titles[i] = title;
	t->right[i] = right;
	return row ? &row[i] : NULL;
}

/* Sets up the columns of a form; with chip, fills its cells too. Returns the number of columns. */
static size_t chip_row(struct ttmon_term_table *t, struct ttmon_term_cell *row, const struct ttmon_smi *v,
		       const struct ttmon_smi_chip *chip, enum form form)
{
	bool dense = form >= DENSE;
	struct ttmon_term_cell *cell;
	size_t n = 0;

	cell = add_column(t, n++, row, "ID", false);
	if (cell)
		snprintf(cell->text, sizeof(cell->text), "%s", chip->id);
	if (form < DENSEST) {
		cell = add_column(t, n++, row, "Arch", false);
		if (cell)
			snprintf(cell->text, sizeof(cell->text), "%s", arch_text(chip, dense));
	}
	if (form == ROOMY) {
		cell = add_column(t, n++, row, "Card", false);
		if (cell)
			ttmon_term_clean(cell->text, sizeof(cell->text), chip->card ? chip->card : "n/a", 16, 16,
					 false);
	}
	cell = add_column(t, n++, row, "Temp", true);
	if (cell)
		put_temperature(cell, chip->sys ? chip->sys->temperature_mc : INT32_MIN, dense);
	cell = add_column(t, n++, row, "Power", true);
	if (cell)
		put_number(cell, chip->sys && chip->sys->power_uw >= 0 ? (chip->sys->power_uw + 500000) / 1000000 : -1,
			   "W", dense);
	cell = add_column(t, n++, row, "AICLK", true);
	if (cell)
		put_number(cell, chip->sys ? chip->sys->aiclk_mhz : -1, dense ? "" : "MHz", dense);
	if (v->wants_busy) {
		cell = add_column(t, n++, row, "Busy", true);
		if (cell)
			put_share(cell->text, sizeof(cell->text), chip->busy_ns, v->busy_window_ns, chip->busy_least);
	}
	if (v->wants_busy && form < DENSE) {
		cell = add_column(t, n++, row, "Error", true);
		if (cell)
			put_error(cell->text, sizeof(cell->text), chip->busy_error_ns, v->busy_window_ns);
	}
	cell = add_column(t, n++, row, form < MEDIUM ? "DRAM used / total" : "DRAM", true);
	if (cell)
		put_usage(cell, chip->dram_used, chip->dram_total, form >= MEDIUM, form == ROOMY);
	cell = add_column(t, n++, row, form < MEDIUM ? "L1 used / total" : "L1", true);
	if (cell)
		put_usage(cell, chip->l1_used, chip->l1_total, form >= MEDIUM, form == ROOMY);
	cell = add_column(t, n++, row, "Status", false);
	if (cell) {
		snprintf(cell->text, sizeof(cell->text), "%s", ttmon_smi_status_name(chip->status));
		cell->colour = status_colour(chip->status);
	}
	return n;
}

static int chip_table(const struct ttmon_smi *v, enum form form, struct ttmon_term_table *t)
{
	*t = (struct ttmon_term_table){ .flex = SIZE_MAX, .gap = form >= MEDIUM ? 1 : 2 };
	t->nr_cols = chip_row(t, NULL, v, NULL, form);
	for (size_t i = 0; i < v->nr_chips; i++) {
		struct ttmon_term_cell *row = ttmon_term_table_row(t);

		if (!row)
			return -ENOMEM;
		chip_row(t, row, v, &v->chips[i], form);
	}
	return 0;
}

static void show_chips(const struct ttmon_smi *v, const struct ttmon_term_style *style, FILE *out)
{
	for (unsigned int form = ROOMY; form < FORMS; form++) {
		_cleanup_(ttmon_term_table_fini) struct ttmon_term_table t;

		if (chip_table(v, form, &t))
			return;
		if (form + 1 < FORMS && style->columns && ttmon_term_table_width(&t) > style->columns)
			continue;
		ttmon_term_table_print(&t, style, out);
		return;
	}
}

/* ---- processes ---- */

static const struct {
	const char *title;
	unsigned int type;
} process_columns[] = {
	{ "DRAM", TTMON_TT_TYPE_DRAM },		{ "Trace", TTMON_TT_TYPE_TRACE_BUF }, { "L1", TTMON_TT_TYPE_L1 },
	{ "L1 small", TTMON_TT_TYPE_L1_SMALL }, { "CB", TTMON_TT_TYPE_CB },
};

static int process_table(const struct ttmon_smi *v, const struct ttmon_term_style *style, bool dense,
			 struct ttmon_term_table *t)
{
	size_t n = 0;

	*t = (struct ttmon_term_table){ .flex = 2, .gap = dense ? 1 : 2 };
	add_column(t, n++, NULL, "ID", false);
	add_column(t, n++, NULL, "PID", true);
	add_column(t, n++, NULL, "Process", false);
	for (size_t i = 0; i < ARRAY_SIZE(process_columns); i++)
		add_column(t, n++, NULL,
			   dense && process_columns[i].type == TTMON_TT_TYPE_L1_SMALL ? "L1sml"
										      : process_columns[i].title,
			   true);
	t->nr_cols = n;
	for (size_t i = 0; i < v->nr_procs; i++) {
		const struct ttmon_smi_process *p = &v->procs[i];
		struct ttmon_term_cell *row;
		size_t len;

		if (!p->alive && !v->details)
			continue;
		row = ttmon_term_table_row(t);
		if (!row)
			return -ENOMEM;
		snprintf(row[0].text, sizeof(row[0].text), "%s", v->chips[p->chip].id);
		snprintf(row[1].text, sizeof(row[1].text), "%" PRIu32, p->pid);
		/* The field has 64 bytes, so the name may be longer than the kernel's 15. */
		ttmon_term_clean(row[2].text, sizeof(row[2].text), p->name[0] ? p->name : "n/a", sizeof(p->name),
				 p->alive ? 40 : 33, style->utf8);
		len = strlen(row[2].text);
		if (!p->alive)
			snprintf(row[2].text + len, sizeof(row[2].text) - len, " (dead)");
		for (size_t c = 0; c < ARRAY_SIZE(process_columns); c++)
			ttmon_smi_bytes(row[3 + c].text, TTMON_FMT_LEN, p->bytes[process_columns[c].type], dense);
		for (size_t c = 0; !p->alive && c < n; c++)
			row[c].colour = TTMON_TERM_DIM;
	}
	return 0;
}

static void show_processes(const struct ttmon_smi *v, const struct ttmon_term_style *style, FILE *out)
{
	for (int dense = 0; dense <= 1; dense++) {
		_cleanup_(ttmon_term_table_fini) struct ttmon_term_table t;

		if (process_table(v, style, dense, &t))
			return;
		if (!t.nr_rows) {
			fputs("no process is known to use a chip\n", out);
			return;
		}
		if (!dense && style->columns && ttmon_term_table_width(&t) > style->columns)
			continue;
		ttmon_term_table_print(&t, style, out);
		return;
	}
}

/* ---- busy ---- */

static void show_busy(const struct ttmon_smi *v, const struct ttmon_term_style *style, FILE *out)
{
	_cleanup_(ttmon_term_table_fini) struct ttmon_term_table t = {
		.titles = { "ID", "PID", "Process", "Busy", "Error" },
		.right = { false, true, false, true, true },
		.nr_cols = 5,
		.flex = 2,
		.gap = 2,
	};

	for (size_t i = 0; i < v->nr_busy; i++) {
		const struct ttmon_smi_busy *b = &v->busy[i];
		struct ttmon_term_cell *row = ttmon_term_table_row(&t);

		if (!row)
			return;
		snprintf(row[0].text, sizeof(row[0].text), "%s", b->id);
		snprintf(row[1].text, sizeof(row[1].text), "%" PRIu32, b->pid);
		ttmon_term_clean(row[2].text, sizeof(row[2].text), b->name, sizeof(b->name), 40, style->utf8);
		put_share(row[3].text, sizeof(row[3].text), b->busy_ns, v->busy_window_ns, false);
		put_error(row[4].text, sizeof(row[4].text), b->error_ns, v->busy_window_ns);
	}
	fputc('\n', out);
	ttmon_term_table_print(&t, style, out);
}

/* ---- notes ---- */

typedef bool (*chip_test)(const struct ttmon_smi *v, const struct ttmon_smi_chip *chip, unsigned int what);

/* Prints "251732099, 2517320d4 and 3 more: text" for the chips that a note is about. */
static void note_chips(const struct ttmon_smi *v, const struct ttmon_term_style *style, FILE *out, const char *head,
		       const char *text, chip_test test, unsigned int what)
{
	char line[1024];
	size_t n = 0, len;

	for (size_t i = 0; i < v->nr_chips; i++)
		n += test(v, &v->chips[i], what);
	if (!n)
		return;
	len = (size_t)snprintf(line, sizeof(line), "%s", head);
	if (n == v->nr_chips && n > IDS_MAX) {
		len += (size_t)snprintf(line + len, sizeof(line) - len, " (all %zu)", n);
	} else {
		size_t shown = 0;

		for (size_t i = 0; i < v->nr_chips && shown < IDS_MAX; i++)
			if (test(v, &v->chips[i], what))
				len += (size_t)snprintf(line + len, sizeof(line) - len, "%s%s", shown++ ? ", " : " ",
							v->chips[i].id);
		if (n > shown)
			len += (size_t)snprintf(line + len, sizeof(line) - len, " and %zu more", n - shown);
	}
	snprintf(line + len, sizeof(line) - len, ": %s", text);
	ttmon_term_put_wrapped(out, line, style->columns, 0, 4);
}

static bool is_why(const struct ttmon_smi *v, const struct ttmon_smi_chip *chip, unsigned int what)
{
	(void)v;
	return chip->why == what;
}

static bool is_unattributed(const struct ttmon_smi *v, const struct ttmon_smi_chip *chip, unsigned int what)
{
	(void)v;
	(void)what;
	return chip->unattributed;
}

static bool has_flag(const struct ttmon_smi *v, const struct ttmon_smi_chip *chip, unsigned int what)
{
	(void)v;
	return chip->flags & 1u << what;
}

static bool is_incomplete(const struct ttmon_smi *v, const struct ttmon_smi_chip *chip, unsigned int what)
{
	(void)v;
	(void)what;
	return chip->unlisted && chip->why != TTMON_SMI_WHY_UNLISTED;
}

/*
 * Lists the processes that have a chip open but are in no file. The table shows how many chips are
 * concerned.
 */
static void note_unlisted(const struct ttmon_smi *v, const struct ttmon_term_style *style, FILE *out)
{
	uint32_t shown[IDS_MAX];
	size_t n = 0;
	char line[1024];
	size_t len = (size_t)snprintf(line, sizeof(line), "without figures:");
	bool more = false;

	for (size_t i = 0; i < v->nr_procs && !more; i++) {
		const struct ttmon_smi_process *p = &v->procs[i];
		char name[64];
		bool again = p->file != TTMON_SMI_NONE || ttmon_smi_is_listed(v, p->pid);

		for (size_t k = 0; k < n; k++)
			again |= shown[k] == p->pid;
		if (again)
			continue;
		more = n == IDS_MAX;
		if (more)
			break;
		ttmon_term_clean(name, sizeof(name), p->name[0] ? p->name : "n/a", sizeof(p->name), 15, style->utf8);
		len += (size_t)snprintf(line + len, sizeof(line) - len, "%s process %" PRIu32 " (%s)", n ? "," : "",
					p->pid, name);
		shown[n++] = p->pid;
	}
	if (!n)
		return;
	snprintf(line + len, sizeof(line) - len, "%s", more ? " and more" : "");
	ttmon_term_put_wrapped(out, line, style->columns, 0, 4);
}

/*
 * Prints what ttmond reports about its own figures. A file that a program publishes itself gets no
 * note.
 */
static void note_flags(const struct ttmon_smi *v, const struct ttmon_term_style *style, FILE *out)
{
	static const char *const names[TTMON_TT_FLAGS] = {
#define X(id, NAME, name, help) [id] = name,
		TTMON_TT_F_TABLE(X)
#undef X
	};
	static const char *const helps[TTMON_TT_FLAGS] = {
#define X(id, NAME, name, help) [id] = help,
		TTMON_TT_F_TABLE(X)
#undef X
	};

	for (unsigned int k = 0; k < TTMON_TT_FLAGS; k++)
		if (1u << k != TTMON_TT_F_OWN_SHM)
			note_chips(v, style, out, names[k], helps[k], has_flag, k);
}

static bool has_no_driver(const struct ttmon_smi *v, const struct ttmon_smi_chip *chip, unsigned int what)
{
	(void)what;
	return !v->no_driver && !chip->sys;
}

static void note_dead(const struct ttmon_smi *v, const struct ttmon_term_style *style, FILE *out)
{
	uint64_t bytes = 0;
	size_t dead = 0, removed = 0;
	char line[256], text[TTMON_FMT_LEN];

	for (size_t i = 0; i < v->nr_shm; i++) {
		dead += v->files[i].dead;
		bytes += v->files[i].dead_bytes;
		removed += (size_t)v->files[i].removed;
	}
	if (removed) {
		snprintf(line, sizeof(line), "removed: %zu entr%s of dead processes", removed,
			 removed == 1 ? "y" : "ies");
		ttmon_term_put_wrapped(out, line, style->columns, 0, 4);
	}
	if (!dead)
		return;
	snprintf(line, sizeof(line), "left out: %zu entr%s of dead processes, %s%s", dead, dead == 1 ? "y" : "ies",
		 ttmon_smi_bytes(text, sizeof(text), bytes, false),
		 v->cleanup ? "" : "; ttmon smi -c removes them from the files");
	ttmon_term_put_wrapped(out, line, style->columns, 0, 4);
}

static void show_notes(const struct ttmon_smi *v, const struct ttmon_term_style *style, FILE *out)
{
	for (unsigned int why = TTMON_SMI_WHY_NONE + 1; why < TTMON_SMI_WHY_MAX; why++)
		note_chips(v, style, out, why == TTMON_SMI_WHY_FILE ? "bad file" : "no tracking",
			   ttmon_smi_why_text(why), is_why, why);
	note_chips(v, style, out, "memory of nobody",
		   "in use, but no process is listed: its per-process statistics are off", is_unattributed, 0);
	note_chips(v, style, out, "not everything",
		   "also open in a program that is in no file: the figures are lower bounds", is_incomplete, 0);
	note_unlisted(v, style, out);
	note_flags(v, style, out);
	note_chips(v, style, out, "no chip matches the file of",
		   "its figures are shown, but which of this host's chips they belong to is not known", has_no_driver,
		   0);
	if (v->no_driver && v->nr_chips)
		ttmon_term_put_wrapped(
			out,
			"tt-kmd is not loaded: temperature, power, clock and the bus addresses are not known, chips "
			"are "
			"named by their files",
			style->columns, 0, 4);
	note_dead(v, style, out);
	for (size_t i = 0; i < v->nr_problems; i++) {
		char line[sizeof(v->problems[i].what) + sizeof(v->problems[i].text) + 8];

		snprintf(line, sizeof(line), "%s: %s", v->problems[i].what, v->problems[i].text);
		fputs(ttmon_term_escape(style, TTMON_TERM_RED), out);
		ttmon_term_put_wrapped(out, line, style->columns, 0, 4);
		fputs(ttmon_term_escape(style, TTMON_TERM_PLAIN), out);
	}
}

/* ---- all of it ---- */

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Counts each process once, also if it has buffers on 32 chips. */
static size_t count_processes(const struct ttmon_smi *v)
{
	_cleanup_free_ uint32_t *pids = malloc((v->nr_procs + 1) * sizeof(*pids));
	size_t n = 0, distinct = 0;

	for (size_t i = 0; pids && i < v->nr_procs; i++)
		if (v->procs[i].alive)
			pids[n++] = v->procs[i].pid;
	if (n)
		qsort(pids, n, sizeof(*pids), by_number);
	for (size_t i = 0; i < n; i++)
		distinct += !i || pids[i] != pids[i - 1];
	return distinct;
}

static void show_head(const struct ttmon_smi *v, const struct ttmon_term_style *style, FILE *out)
{
	time_t sec = (time_t)(v->real_ns / NSEC_PER_SEC);
	size_t live = count_processes(v);
	char date[32] = "?", line[160];
	struct tm tm;

	if (localtime_r(&sec, &tm))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm);
	snprintf(line, sizeof(line), "ttmon smi  %s  %zu chip%s, %zu process%s", date, v->nr_chips,
		 v->nr_chips == 1 ? "" : "s", live, live == 1 ? "" : "es");
	ttmon_term_put_line(out, line, strlen(line), style->columns);
	fputc('\n', out);
}

void ttmon_smi_text(const struct ttmon_smi *v, const struct ttmon_term_style *style, FILE *out)
{
	show_head(v, style, out);
	if (!v->nr_chips) {
		char line[512];

		snprintf(line, sizeof(line), "no Tenstorrent chip: %s, and no tt_device_*_memory file in %s",
			 v->no_driver ? "tt-kmd is not here" : "tt-kmd shows none", v->shm_dir);
		ttmon_term_put_wrapped(out, line, style->columns, 0, 4);
	} else {
		show_chips(v, style, out);
		fputc('\n', out);
		show_processes(v, style, out);
	}
	if (v->wants_busy)
		show_busy(v, style, out);
	for (size_t i = 0; v->details && i < v->nr_chips; i++)
		ttmon_smi_details(v, style, out, i);
	if (v->nr_chips)
		fputc('\n', out);
	show_notes(v, style, out);
}
