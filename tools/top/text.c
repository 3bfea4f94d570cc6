// SPDX-License-Identifier: GPL-2.0-only
/* text.c: the lines and the JSON of `ttmon top`. Pure. */
#include <inttypes.h>

#include "tools/cli/show.h"
#include "tools/term/table.h"
#include "tools/top/top.h"

#define NAME_MIN  8
#define NAME_PIPE 120 /* longest command line if stdout is no terminal */

static const struct {
	const char *title;
	size_t width;
	unsigned int sort; /* sort key of the column */
	bool left;
} columns[TTMON_COL_MAX] = {
	[TTMON_COL_PID] = { "PID", 7, TTMON_SORT_PID, false },
	[TTMON_COL_NAME] = { "PROCESS", 17, TTMON_SORT_MAX, true },
	[TTMON_COL_CPU] = { "CPU%", 6, TTMON_SORT_CPU, false },
	[TTMON_COL_CHIP] = { "CHIP%", 6, TTMON_SORT_CHIP, false },
	[TTMON_COL_CHIP_ERROR] = { "ERROR", 6, TTMON_SORT_MAX, false },
	[TTMON_COL_IPC] = { "IPC", 5, TTMON_SORT_IPC, false },
	[TTMON_COL_MISSES] = { "MISS/s", 7, TTMON_SORT_MISSES, false },
	[TTMON_COL_LLC] = { "LLC", 7, TTMON_SORT_LLC, false },
	[TTMON_COL_MBM] = { "MBM/s", 7, TTMON_SORT_MBM, false },
	[TTMON_COL_PINNED] = { "PINNED", 7, TTMON_SORT_PINNED, false },
	[TTMON_COL_COPIED] = { "COPIED/s", 8, TTMON_SORT_COPIED, false },
	[TTMON_COL_SWITCHES] = { "SWITCH/s", 8, TTMON_SORT_SWITCHES, false },
	[TTMON_COL_RMID] = { "RMID", 4, TTMON_SORT_MAX, false },
};

/* ---- selection of columns ---- */

static size_t total(const struct ttmon_top_layout *l)
{
	size_t sum = 0;

	for (unsigned int c = 0; c < TTMON_COL_MAX; c++)
		if (l->width[c])
			sum += l->width[c] + (sum != 0);
	return sum;
}

static void leave_out(struct ttmon_top_layout *l, const enum ttmon_top_column *which, size_t n, size_t width)
{
	for (size_t i = 0; i < n && total(l) > width; i++)
		l->width[which[i]] = 0;
}

void ttmon_top_fit(const struct ttmon_top *t, size_t width, bool args, struct ttmon_top_layout *ret)
{
	static const enum ttmon_top_column no_rdt[] = { TTMON_COL_LLC, TTMON_COL_MBM };
	static const enum ttmon_top_column no_counters[] = { TTMON_COL_MISSES, TTMON_COL_IPC };
	/* The order in which columns are left out, the least useful first. */
	static const enum ttmon_top_column order[] = { TTMON_COL_RMID, TTMON_COL_SWITCHES,   TTMON_COL_MISSES,
						       TTMON_COL_LLC,  TTMON_COL_COPIED,     TTMON_COL_MBM,
						       TTMON_COL_IPC,  TTMON_COL_CHIP_ERROR, TTMON_COL_PINNED,
						       TTMON_COL_CHIP };
	static const enum ttmon_top_column last[] = { TTMON_COL_PID, TTMON_COL_CPU };
	struct ttmon_top_layout l;
	size_t *name = &l.width[TTMON_COL_NAME], sum;

	for (unsigned int c = 0; c < TTMON_COL_MAX; c++)
		l.width[c] = columns[c].width;
	/* Most hosts have no such chips. */
	if (!t->has_work)
		l.width[TTMON_COL_CHIP] = l.width[TTMON_COL_CHIP_ERROR] = 0;
	if (!width && args)
		*name = NAME_PIPE;
	if (width) {
		if (!t->rdt)
			leave_out(&l, no_rdt, ARRAY_SIZE(no_rdt), width);
		if (!t->counters)
			leave_out(&l, no_counters, ARRAY_SIZE(no_counters), width);
		leave_out(&l, order, ARRAY_SIZE(order), width);
		sum = total(&l);
		if (sum > width)
			*name -= MIN(*name - NAME_MIN, sum - width);
		else if (args)
			*name += width - sum;
		leave_out(&l, last, ARRAY_SIZE(last), width);
		*name = MIN(*name, width);
	}
	*ret = l;
}

bool ttmon_top_column_at(const struct ttmon_top_layout *l, unsigned int sort, size_t *at, size_t *width)
{
	size_t x = 0;

	for (unsigned int c = 0; c < TTMON_COL_MAX; c++) {
		if (!l->width[c])
			continue;
		if (columns[c].sort == sort) {
			*at = x;
			*width = l->width[c];
			return true;
		}
		x += l->width[c] + 1;
	}
	return false;
}

/* ---- figures ---- */

static double seconds(const struct ttmon_top *t)
{
	return t->now_ns ? (double)t->now_ns / NSEC_PER_SEC : 1;
}

/* Formats "12.3M", "985": at most 6 characters. */
static const char *rate(char *buf, const struct ttmon_top *t, uint64_t v)
{
	static const char units[] = " kMGTPE";
	double x = (double)v / seconds(t);
	size_t u = 0;

	if (v == TTMON_TOP_UNKNOWN)
		return "-";
	for (; x >= 999.5 && u + 1 < sizeof(units) - 1; u++)
		x /= 1000;
	if (!u)
		snprintf(buf, TTMON_FMT_LEN, "%.0f", x);
	else
		snprintf(buf, TTMON_FMT_LEN, x < 99.95 ? "%.1f%c" : "%.0f%c", x, units[u]);
	return buf;
}

/* Formats "1023.9M", "512B": at most 7 characters. */
static const char *bytes(char *buf, uint64_t v)
{
	char *unit;

	if (v == TTMON_TOP_UNKNOWN)
		return "-";
	/* A column without a figure. */
	if (!v)
		return "0";
	unit = strchr(ttmon_fmt_bytes(buf, TTMON_FMT_LEN, v), ' ');
	if (unit) {
		unit[0] = unit[1];
		unit[1] = '\0';
	}
	return buf;
}

static const char *bytes_rate(char *buf, const struct ttmon_top *t, uint64_t v)
{
	double x = (double)v / seconds(t);

	if (v != TTMON_TOP_UNKNOWN)
		v = x < 1e18 ? (uint64_t)x : (uint64_t)1e18;
	return bytes(buf, v);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static const char *cpu(char *buf, const struct ttmon_top *t, uint64_t v)
{
	double x = percent(v, t->now_ns);

	if (v == TTMON_TOP_UNKNOWN)
		return "-";
	snprintf(buf, TTMON_FMT_LEN, x < 9999.95 ? "%.1f" : "%.0f", x);
	return buf;
}

/*
 * A small error must not be shown as 0.0. An error of a chip's whole time means that the share is not
 * known.
 */
static const char *error(char *buf, const struct ttmon_top *t, uint64_t v)
{
	double x = percent(v, t->now_ns);

	if (v == TTMON_TOP_UNKNOWN)
		return "-";
	if (v && x < 0.05)
		return "<0.1";
	if (x >= 99.95)
		return ">100";
	snprintf(buf, TTMON_FMT_LEN, "%.1f", x);
	return buf;
}

static const char *ipc(char *buf, const struct ttmon_top_proc *p)
{
	uint64_t cycles = p->v[TTMON_TOP_CYCLES], instructions = p->v[TTMON_TOP_INSTRUCTIONS];

	if (!cycles || cycles == TTMON_TOP_UNKNOWN || instructions == TTMON_TOP_UNKNOWN)
		return "-";
	snprintf(buf, TTMON_FMT_LEN, "%.2f", (double)instructions / (double)cycles);
	return buf;
}

static const char *number(char *buf, uint64_t v)
{
	if (v == TTMON_TOP_UNKNOWN)
		return "-";
	snprintf(buf, TTMON_FMT_LEN, "%" PRIu64, v);
	return buf;
}

/* Formats ">=12.3M" from "12.3M". In a column there is no room, so the last digits are dropped. */
static const char *at_least(char *buf, bool least, bool column)
{
	char text[TTMON_FMT_LEN];
	char *dot, *end;

	if (!least || buf[0] == '-')
		return buf;
	snprintf(text, sizeof(text), "%s", buf);
	dot = column ? strchr(text, '.') : NULL;
	if (dot) {
		end = dot + 1 + strspn(dot + 1, "0123456789");
		memmove(dot, end, strlen(end) + 1);
	}
	snprintf(buf, TTMON_FMT_LEN, ">=%.*s", TTMON_FMT_LEN - 3, text);
	return buf;
}

/* ---- lines ---- */

/* Formats "transfer: only counted since 12:03:11 (budget)". */
static int family_text(const struct ttmon_top *t, unsigned int f, char *buf, size_t n)
{
	const struct ttmon_top_seen *seen = &t->seen[f];
	char at[TTMON_SHOW_TIME], why[sizeof(seen->why) + 4] = "";
	bool on = !strcmp(seen->state, "on");
	uint64_t ns = on ? seen->since_ns : seen->from_ns;

	if (seen->why[0] && !on)
		snprintf(why, sizeof(why), " (%s)", seen->why);
	if (!ns || ns == TTMON_TOP_UNKNOWN)
		snprintf(at, sizeof(at), "the start");
	else
		ttmon_show_time(ns, t->real_offset_ns, at);
	return snprintf(buf, n, "%s: %s since %s%s", ttmon_top_family_name(f),
			!strcmp(seen->state, "counting") ? "only counted"
			: !strcmp(seen->state, "off")	 ? "off"
							 : "everything is seen again",
			at, why);
}

static bool is_state_of_alloc(unsigned int f)
{
	return f == TTMON_TOP_FAMILY_ALLOC || f == TTMON_TOP_FAMILY_TENSTORRENT;
}

static void why_line(const struct ttmon_top *t, char *buf, size_t n)
{
	size_t len = 0;

	buf[0] = '\0';
	for (unsigned int f = 0; f < TTMON_TOP_FAMILIES; f++) {
		char text[TTMON_TOP_LINE / TTMON_TOP_FAMILIES];

		/* The figures of what is held now depend only on whether the family is on now. */
		if (f == TTMON_TOP_FAMILY_DISPATCH && !t->has_work)
			continue;
		if (is_state_of_alloc(f) ? t->seen[f].since_ns != TTMON_TOP_UNKNOWN : t->known[f] == TTMON_TOP_ALL)
			continue;
		family_text(t, f, text, sizeof(text));
		if (len < n)
			len += (size_t)snprintf(buf + len, n - len, "%s%s", len ? "; " : "", text);
	}
}

static void cpu_line(const struct ttmon_top *t, char *buf, size_t n)
{
	uint64_t all = t->user_ns + t->kernel_ns + t->idle_ns + t->missing_ns;
	int len;

	if (t->known[TTMON_TOP_FAMILY_CPU] == TTMON_TOP_NOTHING) {
		snprintf(buf, n, "CPU time is not measured");
		return;
	}
	if (t->cpus == TTMON_TOP_UNKNOWN)
		len = snprintf(buf, n, "- CPUs");
	else
		len = snprintf(buf, n, "%" PRIu64 " CPU%s", t->cpus, t->cpus == 1 ? "" : "s");
	if ((size_t)len < n)
		len += snprintf(buf + len, n - (size_t)len, "%s: %.1f %% processes, %.1f %% kernel, %.1f %% idle",
				t->cpu_least ? " for a part of the interval" : "", percent(t->user_ns, all),
				percent(t->kernel_ns, all), percent(t->idle_ns, all));
	if (t->missing_ns && (size_t)len < n)
		snprintf(buf + len, n - (size_t)len, ", %.2f %% MISSING", percent(t->missing_ns, all));
}

void ttmon_top_head(const struct ttmon_top *t, unsigned int line, char *buf, size_t n)
{
	char pinned[TTMON_FMT_LEN], copied[TTMON_FMT_LEN], switches[TTMON_FMT_LEN], ran[TTMON_FMT_LEN];
	const struct ttmon_top_proc *all = &t->all;
	bool held = t->seen[TTMON_TOP_FAMILY_ALLOC].since_ns != TTMON_TOP_UNKNOWN &&
		    t->seen[TTMON_TOP_FAMILY_TENSTORRENT].since_ns != TTMON_TOP_UNKNOWN;

	if (line == 0) {
		cpu_line(t, buf, n);
		return;
	}
	if (line == 2) {
		why_line(t, buf, n);
		return;
	}
	snprintf(switches, sizeof(switches), "%s", rate(ran, t, all->v[TTMON_TOP_SWITCHES]));
	snprintf(pinned, sizeof(pinned), "%s", bytes(ran, held ? all->v[TTMON_TOP_PINNED] : TTMON_TOP_UNKNOWN));
	snprintf(copied, sizeof(copied), "%s", bytes_rate(ran, t, all->v[TTMON_TOP_COPIED]));
	snprintf(ran, sizeof(ran), "%s", t->running == TTMON_TOP_UNKNOWN ? "-" : "");
	if (!ran[0])
		snprintf(ran, sizeof(ran), "%s%" PRIu64, t->cpu_least ? ">=" : "", t->running);
	snprintf(buf, n, "%s of %" PRIu64 " processes ran; %s switches/s; %s pinned; %s/s copied%s%s", ran,
		 t->known_procs, at_least(switches, all->least[TTMON_TOP_SWITCHES], false),
		 at_least(pinned, all->least[TTMON_TOP_PINNED], false),
		 at_least(copied, all->least[TTMON_TOP_COPIED], false), t->counters ? "" : "; no counters",
		 t->rdt ? "" : "; no RDT");
}

static void put(char *buf, size_t n, size_t *len, const struct ttmon_top_layout *l, unsigned int column,
		const char *text)
{
	char cell[TTMON_TOP_LINE / 2];
	size_t width = l->width[column], shown;
	int pad;

	if (!width)
		return;
	shown = ttmon_term_clean(cell, sizeof(cell), text, sizeof(cell), width, true);
	pad = (int)(width - shown);
	if (*len < n)
		*len += (size_t)snprintf(buf + *len, n - *len, "%s%*s%s%*s", *len ? " " : "",
					 columns[column].left ? 0 : pad, "", cell, columns[column].left ? pad : 0, "");
}

void ttmon_top_columns(const struct ttmon_top_layout *l, char *buf, size_t n)
{
	size_t len = 0;

	buf[0] = '\0';
	for (unsigned int c = 0; c < TTMON_COL_MAX; c++)
		put(buf, n, &len, l, c, columns[c].title);
}

static const char *figure_cell(const struct ttmon_top *t, const struct ttmon_top_proc *p, enum ttmon_top_column column,
			       char *buf)
{
	switch (column) {
	case TTMON_COL_PID:
		return p->pid ? number(buf, p->pid) : "-";
	case TTMON_COL_CPU:
		return cpu(buf, t, p->v[TTMON_TOP_CPU]);
	case TTMON_COL_CHIP:
		return cpu(buf, t, p->v[TTMON_TOP_CHIP]);
	case TTMON_COL_CHIP_ERROR:
		return error(buf, t, p->v[TTMON_TOP_CHIP_ERROR]);
	case TTMON_COL_IPC:
		return ipc(buf, p);
	case TTMON_COL_MISSES:
		return rate(buf, t, p->v[TTMON_TOP_MISSES]);
	case TTMON_COL_LLC:
		return bytes(buf, p->v[TTMON_TOP_LLC]);
	case TTMON_COL_MBM:
		return bytes_rate(buf, t, p->v[TTMON_TOP_MBM]);
	case TTMON_COL_PINNED:
		return bytes(buf, p->v[TTMON_TOP_PINNED]);
	case TTMON_COL_COPIED:
		return bytes_rate(buf, t, p->v[TTMON_TOP_COPIED]);
	case TTMON_COL_SWITCHES:
		return rate(buf, t, p->v[TTMON_TOP_SWITCHES]);
	case TTMON_COL_RMID:
		return number(buf, p->v[TTMON_TOP_RMID]);
	default:
		return "";
	}
}

static const char *cell(const struct ttmon_top *t, const struct ttmon_top_proc *p, enum ttmon_top_column column,
			char *buf)
{
	static const enum ttmon_top_figure figures[TTMON_COL_MAX] = {
		[TTMON_COL_CPU] = TTMON_TOP_CPU,	   [TTMON_COL_MISSES] = TTMON_TOP_MISSES,
		[TTMON_COL_PINNED] = TTMON_TOP_PINNED,	   [TTMON_COL_COPIED] = TTMON_TOP_COPIED,
		[TTMON_COL_SWITCHES] = TTMON_TOP_SWITCHES, [TTMON_COL_CHIP] = TTMON_TOP_CHIP,
	};
	const char *text = figure_cell(t, p, column, buf);
	bool least = (column == TTMON_COL_CPU || figures[column]) && p->least[figures[column]];

	return least && text == buf ? at_least(buf, true, true) : text;
}

void ttmon_top_line(const struct ttmon_top *t, size_t i, const struct ttmon_top_layout *l, const char *args, char *buf,
		    size_t n)
{
	const struct ttmon_top_proc *p = &t->procs[i];
	char text[TTMON_FMT_LEN], name[sizeof(p->comm) + 2];
	size_t len = 0;

	snprintf(name, sizeof(name), p->cls == TTMON_TOP_KERNEL ? "[%s]" : "%s", p->comm[0] ? p->comm : "?");
	buf[0] = '\0';
	for (unsigned int c = 0; c < TTMON_COL_MAX; c++)
		put(buf, n, &len, l, c,
		    c != TTMON_COL_NAME ? cell(t, p, (enum ttmon_top_column)c, text)
		    : args && *args	? args
					: name);
}

/* ---- JSON ---- */

static json_t *figure(const struct ttmon_top_proc *p, unsigned int i)
{
	return p->v[i] == TTMON_TOP_UNKNOWN ? json_null() : json_integer((json_int_t)p->v[i]);
}

static json_t *row(const struct ttmon_top_proc *p)
{
	static const char *const classes[TTMON_TOP_CLASSES] = {
		[TTMON_TOP_USER] = "user",
		[TTMON_TOP_KERNEL] = "kernel",
		[TTMON_TOP_UNASSIGNED] = "unassigned",
		[TTMON_TOP_OTHER] = "other",
	};

	json_t *o;
	bool least = false;

	for (unsigned int i = 0; i < TTMON_TOP_FIGURES; i++)
		least |= p->least[i];
	o = json_pack(
		"{s:o, s:o, s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}",
		"pid", p->pid ? json_integer((json_int_t)p->pid) : json_null(), "start_ns",
		p->start_ns ? json_integer((json_int_t)p->start_ns) : json_null(), "comm", p->comm, "class",
		classes[p->cls], "ended", p->ended, "cpu_ns", figure(p, TTMON_TOP_CPU), "switches",
		figure(p, TTMON_TOP_SWITCHES), "cycles", figure(p, TTMON_TOP_CYCLES), "instructions",
		figure(p, TTMON_TOP_INSTRUCTIONS), "llc_misses", figure(p, TTMON_TOP_MISSES), "llc_references",
		figure(p, TTMON_TOP_REFS), "llc_bytes", figure(p, TTMON_TOP_LLC), "mbm_total_bytes",
		figure(p, TTMON_TOP_MBM), "copies", figure(p, TTMON_TOP_COPIES), "copy_bytes",
		figure(p, TTMON_TOP_COPIED), "chip_busy_ns", figure(p, TTMON_TOP_CHIP), "chip_busy_error_ns",
		figure(p, TTMON_TOP_CHIP_ERROR), "pinned_bytes", figure(p, TTMON_TOP_PINNED), "rmid",
		figure(p, TTMON_TOP_RMID), "counters_complete", p->complete);
	if (o && least)
		json_object_set_new(o, "at_least", json_true());
	return o;
}

static json_t *sum(uint64_t v)
{
	return v == TTMON_TOP_UNKNOWN ? json_null() : json_integer((json_int_t)v);
}

/* Lists the families that were not traced during the whole interval, and why. */
static json_t *knowledge(const struct ttmon_top *t)
{
	static const char *const names[] = { "known", "at least", "unknown" };
	json_t *list = json_array();

	for (unsigned int f = 0; f < TTMON_TOP_FAMILIES; f++) {
		const struct ttmon_top_seen *seen = &t->seen[f];

		if (f == TTMON_TOP_FAMILY_DISPATCH && !t->has_work)
			continue;
		if (t->known[f] == TTMON_TOP_ALL && seen->since_ns != TTMON_TOP_UNKNOWN)
			continue;
		json_array_append_new(list, json_pack("{s:[s], s:s, s:s, s:s, s:o, s:o}", "families",
						      ttmon_top_family_name(f), "known", names[t->known[f]], "state",
						      seen->state, "why", seen->why, "from_ns",
						      seen->from_ns ? sum(seen->from_ns) : json_null(), "seen_since_ns",
						      sum(seen->since_ns)));
	}
	return list;
}

json_t *ttmon_top_json(const struct ttmon_top *t, const struct ttmon_top_ask *ask)
{
	json_t *rows = json_array(), *doc;

	for (size_t i = 0; i < t->n; i++) {
		if (json_array_append_new(rows, row(&t->procs[i]))) {
			json_decref(rows);
			return NULL;
		}
	}
	doc = json_pack("{s:I, s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o}", "interval_ns", (json_int_t)t->now_ns,
			"sort", ttmon_top_sort_name(ask->sort), "cpus", sum(t->cpus), "user_ns", sum(t->user_ns),
			"kernel_ns", sum(t->kernel_ns), "idle_ns", sum(t->idle_ns), "missing_ns", sum(t->missing_ns),
			"counters", t->counters, "rdt", t->rdt, "knowledge", knowledge(t), "processes", rows);
	if (doc && t->cpu_least)
		json_object_set_new(doc, "at_least", json_true());
	return doc;
}
