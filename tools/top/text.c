// SPDX-License-Identifier: GPL-2.0-only
/* text.c: the lines and the JSON of `ttmon top`. Pure. */
#include <inttypes.h>

#include "tools/cli/show.h"
#include "tools/term/table.h"
#include "tools/top/top.h"

#define NAME_MIN    8
#define NAME_PIPE   120 /* longest command line if stdout is no terminal */
#define COMMAND_MIN 20

static const struct {
	const char *title;
	size_t width;
	unsigned int sort; /* sort key of the column */
	bool left;
} columns[TTMON_COL_MAX] = {
	[TTMON_COL_PID] = { "PID", 7, TTMON_SORT_PID, false },
	[TTMON_COL_NAME] = { "PROCESS", 17, TTMON_SORT_MAX, true },
	[TTMON_COL_PINNED] = { "PINNED", 7, TTMON_SORT_PINNED, false },
	[TTMON_COL_PINNED_BAR] = { "", 10, TTMON_SORT_MAX, true },
	[TTMON_COL_COPIED] = { "COPIED/s", 8, TTMON_SORT_COPIED, false },
	[TTMON_COL_WAIT] = { "WAIT%", 6, TTMON_SORT_WAIT, false },
	[TTMON_COL_CPU] = { "CPU%", 6, TTMON_SORT_CPU, false },
	[TTMON_COL_CPU_BAR] = { "", 10, TTMON_SORT_MAX, true },
	[TTMON_COL_CHIP] = { "CHIP%", 6, TTMON_SORT_CHIP, false },
	[TTMON_COL_CHIP_ERROR] = { "ERROR", 6, TTMON_SORT_MAX, false },
	[TTMON_COL_IPC] = { "IPC", 5, TTMON_SORT_IPC, false },
	[TTMON_COL_MISSES] = { "MISS/s", 7, TTMON_SORT_MISSES, false },
	[TTMON_COL_LLC] = { "LLC", 7, TTMON_SORT_LLC, false },
	[TTMON_COL_MBM] = { "MBM/s", 7, TTMON_SORT_MBM, false },
	[TTMON_COL_SWITCHES] = { "SWITCH/s", 8, TTMON_SORT_SWITCHES, false },
	[TTMON_COL_RMID] = { "RMID", 4, TTMON_SORT_MAX, false },
	[TTMON_COL_COMMAND] = { "COMMAND", 0, TTMON_SORT_MAX, true },
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

/* Leaves out the columns that this host, or its service, has no figures for. */
static void leave_out_unmeasured(const struct ttmon_top *t, struct ttmon_top_layout *l)
{
	if (!t->has_wait)
		l->width[TTMON_COL_WAIT] = 0;
	/* Most hosts have no such chips. */
	if (!t->has_work)
		l->width[TTMON_COL_CHIP] = l->width[TTMON_COL_CHIP_ERROR] = 0;
	if (!t->counters)
		l->width[TTMON_COL_IPC] = l->width[TTMON_COL_MISSES] = 0;
	if (!t->rdt)
		l->width[TTMON_COL_LLC] = l->width[TTMON_COL_MBM] = 0;
	if (!t->has_rmid || l->by == TTMON_TOP_BY_UNIT || l->by == TTMON_TOP_BY_CONTAINER)
		l->width[TTMON_COL_RMID] = 0;
}

/* What is left of the width goes to names and command lines. */
static void widen(struct ttmon_top_layout *l, const struct ttmon_top_ask *ask, size_t width)
{
	size_t sum = total(l), *name = &l->width[TTMON_COL_NAME];

	if (sum > width) {
		*name -= MIN(*name - NAME_MIN, sum - width);
		return;
	}
	if (l->by != TTMON_TOP_BY_PROCESS)
		*name += MIN(width - sum, (size_t)30);
	else if (ask->args)
		*name += width - sum;
	sum = total(l);
	if (l->by <= TTMON_TOP_BY_TREE && !ask->args && sum + 1 + COMMAND_MIN <= width)
		l->width[TTMON_COL_COMMAND] = width - sum - 1;
}

void ttmon_top_fit(const struct ttmon_top *t, const struct ttmon_term_style *style, const struct ttmon_top_ask *ask,
		   struct ttmon_top_layout *ret)
{
	/* The order in which columns are left out, the least useful first. */
	static const enum ttmon_top_column order[] = { TTMON_COL_CPU_BAR, TTMON_COL_RMID,	TTMON_COL_SWITCHES,
						       TTMON_COL_MISSES,  TTMON_COL_PINNED_BAR, TTMON_COL_LLC,
						       TTMON_COL_IPC,	  TTMON_COL_MBM,	TTMON_COL_CHIP_ERROR,
						       TTMON_COL_WAIT,	  TTMON_COL_COPIED,	TTMON_COL_CHIP,
						       TTMON_COL_CPU };
	static const enum ttmon_top_column last[] = { TTMON_COL_PID, TTMON_COL_PINNED };
	struct ttmon_top_layout l = { .by = ask->by, .style = *style };
	size_t *name = &l.width[TTMON_COL_NAME], width = style->columns;

	for (unsigned int c = 0; c < TTMON_COL_MAX; c++)
		l.width[c] = columns[c].width;
	leave_out_unmeasured(t, &l);
	if (width) {
		leave_out(&l, order, ARRAY_SIZE(order), width);
		widen(&l, ask, width);
		leave_out(&l, last, ARRAY_SIZE(last), width);
		*name = MIN(*name, width);
	} else {
		l.width[TTMON_COL_PINNED_BAR] = l.width[TTMON_COL_CPU_BAR] = 0;
		*name = ask->args ? NAME_PIPE : ask->by != TTMON_TOP_BY_PROCESS ? 2 * *name : *name;
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
		char text[160];

		/* The figures of what is held now depend only on whether the family is on now. */
		if ((f == TTMON_TOP_FAMILY_DISPATCH && !t->has_work) || (f == TTMON_TOP_FAMILY_WAIT && !t->has_wait))
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
	snprintf(buf, n, "%s pinned; %s/s copied; %s of %" PRIu64 " processes ran; %s switches/s%s%s",
		 at_least(pinned, all->least[TTMON_TOP_PINNED], false),
		 at_least(copied, all->least[TTMON_TOP_COPIED], false), ran, t->known_procs,
		 at_least(switches, all->least[TTMON_TOP_SWITCHES], false), t->counters ? "" : "; no counters",
		 t->rdt ? "" : "; no RDT");
}

static void put(char *buf, size_t n, size_t *len, const struct ttmon_top_layout *l, unsigned int column,
		const char *text, enum ttmon_term_colour colour)
{
	char cell[TTMON_TOP_LINE / 2];
	size_t width = l->width[column], shown;
	const char *on = "", *off = "";
	int pad;

	if (!width)
		return;
	shown = ttmon_term_clean(cell, sizeof(cell), text, sizeof(cell), width, l->style.utf8);
	pad = (int)(width - shown);
	if (colour != TTMON_TERM_PLAIN && shown) {
		on = ttmon_term_escape(&l->style, colour);
		off = ttmon_term_escape(&l->style, TTMON_TERM_PLAIN);
	}
	if (*len < n)
		*len += (size_t)snprintf(buf + *len, n - *len, "%s%*s%s%s%s%*s", *len ? " " : "",
					 columns[column].left ? 0 : pad, "", on, cell, off,
					 columns[column].left ? pad : 0, "");
}

static const char *title_of(const struct ttmon_top_layout *l, unsigned int column)
{
	bool groups = l->by == TTMON_TOP_BY_UNIT || l->by == TTMON_TOP_BY_CONTAINER;

	if (groups && column == TTMON_COL_PID)
		return "PROCS";
	if (groups && column == TTMON_COL_NAME)
		return l->by == TTMON_TOP_BY_UNIT ? "UNIT" : "CONTAINER";
	return columns[column].title;
}

void ttmon_top_columns(const struct ttmon_top_layout *l, char *buf, size_t n)
{
	size_t len = 0;

	buf[0] = '\0';
	for (unsigned int c = 0; c < TTMON_COL_MAX; c++)
		put(buf, n, &len, l, c, title_of(l, c), TTMON_TERM_PLAIN);
}

/* A full block, or the part of one in eighths; without UTF-8 '#' for a half and more. */
void ttmon_top_bar(double share, size_t width, bool utf8, char *buf, size_t n)
{
	static const char *const eighths[] = {
		"", "\u258f", "\u258e", "\u258d", "\u258c", "\u258b", "\u258a", "\u2589"
	};
	size_t parts = (size_t)(MIN(MAX(share, 0), 1) * (double)width * 8 + 0.5), len = 0;

	/* What is not 0 is seen. */
	if (share > 0 && !parts)
		parts = 1;
	buf[0] = '\0';
	if (!utf8)
		parts = share > 0 ? MAX((parts + 4) / 8, 1) * 8 : 0;
	for (size_t i = 0; i < parts / 8 && len < n; i++)
		len += (size_t)snprintf(buf + len, n - len, "%s", utf8 ? "\u2588" : "#");
	if (len < n)
		snprintf(buf + len, n - len, "%s", eighths[parts % 8]);
}

static const char *figure_cell(const struct ttmon_top *t, const struct ttmon_top_proc *p, enum ttmon_top_column column,
			       char *buf)
{
	switch (column) {
	case TTMON_COL_PID:
		return p->members ? number(buf, p->members) : p->pid ? number(buf, p->pid) : "-";
	case TTMON_COL_WAIT:
		return cpu(buf, t, p->v[TTMON_TOP_WAIT]);
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
		[TTMON_COL_WAIT] = TTMON_TOP_WAIT,
	};
	const char *text = figure_cell(t, p, column, buf);
	bool least = (column == TTMON_COL_CPU || figures[column]) && p->least[figures[column]];

	return least && text == buf ? at_least(buf, true, true) : text;
}

/* The lines that lead from a row to its parent, and its name. */
static void name_cell(const struct ttmon_top_proc *p, const struct ttmon_top_layout *l, char *buf, size_t n)
{
	const bool utf8 = l->style.utf8;
	size_t len = 0;

	buf[0] = '\0';
	for (uint32_t d = 1; l->by == TTMON_TOP_BY_TREE && d <= p->depth && len < n; d++) {
		bool more = d < 64 && p->more >> d & 1;
		const char *part = d < p->depth ? (more ? utf8 ? "\u2502 " : "| " : "  ")
				   : more	? utf8 ? "\u251c\u2500" : "|-"
						: (utf8 ? "\u2514\u2500" : "`-");

		len += (size_t)snprintf(buf + len, n - len, "%s", part);
	}
	if (len < n)
		snprintf(buf + len, n - len, p->cls == TTMON_TOP_KERNEL && p->pid ? "[%s]" : "%s",
			 p->comm[0] ? p->comm : "?");
}

static uint64_t largest(const struct ttmon_top *t, enum ttmon_top_figure figure)
{
	uint64_t most = 0;

	for (size_t i = 0; i < t->n; i++)
		if (t->procs[i].v[figure] != TTMON_TOP_UNKNOWN)
			most = MAX(most, t->procs[i].v[figure]);
	return most;
}

/* The share that a bar shows; what is not known has no bar. */
static double share_of(const struct ttmon_top *t, const struct ttmon_top_proc *p, enum ttmon_top_column column)
{
	enum ttmon_top_figure figure = column == TTMON_COL_CPU_BAR ? TTMON_TOP_CPU : TTMON_TOP_PINNED;
	uint64_t whole = column == TTMON_COL_CPU_BAR ? t->now_ns : largest(t, TTMON_TOP_PINNED);

	if (p->v[figure] == TTMON_TOP_UNKNOWN || !whole)
		return 0;
	return (double)p->v[figure] / (double)whole;
}

/* Much waiting and much CPU time stand out; lower bounds do, too. Colour alone shows nothing. */
static enum ttmon_term_colour colour_of(const struct ttmon_top *t, const struct ttmon_top_proc *p,
					enum ttmon_top_column column, const char *text)
{
	double share;

	if (text[0] == '-' || (text[0] == '0' && !text[1]))
		return TTMON_TERM_DIM;
	switch (column) {
	case TTMON_COL_PINNED:
	case TTMON_COL_PINNED_BAR:
		return TTMON_TERM_GREEN;
	case TTMON_COL_WAIT:
	case TTMON_COL_CPU:
	case TTMON_COL_CPU_BAR:
		share = percent(p->v[column == TTMON_COL_WAIT ? TTMON_TOP_WAIT : TTMON_TOP_CPU], t->now_ns);
		return share >= 80 ? TTMON_TERM_RED : share >= 30 ? TTMON_TERM_YELLOW : TTMON_TERM_PLAIN;
	case TTMON_COL_COMMAND:
		return TTMON_TERM_DIM;
	default:
		return TTMON_TERM_PLAIN;
	}
}

void ttmon_top_line(const struct ttmon_top *t, size_t i, const struct ttmon_top_layout *l, const char *args, char *buf,
		    size_t n)
{
	const struct ttmon_top_proc *p = &t->procs[i];
	bool in_name = args && *args && !l->width[TTMON_COL_COMMAND];
	char text[TTMON_FMT_LEN], wide[TTMON_TOP_LINE / 4];
	size_t len = 0;

	buf[0] = '\0';
	for (unsigned int c = 0; c < TTMON_COL_MAX; c++) {
		const char *shown = wide;

		if (!l->width[c])
			continue;
		if (c == TTMON_COL_NAME && in_name)
			shown = args;
		else if (c == TTMON_COL_NAME)
			name_cell(p, l, wide, sizeof(wide));
		else if (c == TTMON_COL_COMMAND)
			shown = args ? args : "";
		else if (c == TTMON_COL_PINNED_BAR || c == TTMON_COL_CPU_BAR)
			ttmon_top_bar(share_of(t, p, (enum ttmon_top_column)c), l->width[c], l->style.utf8, wide,
				      sizeof(wide));
		else
			shown = cell(t, p, (enum ttmon_top_column)c, text);
		put(buf, n, &len, l, c, shown, colour_of(t, p, (enum ttmon_top_column)c, shown));
	}
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
	o = json_pack("{s:o, s:o, s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
		      "s:o, s:b}",
		      "pid", p->pid ? json_integer((json_int_t)p->pid) : json_null(), "start_ns",
		      p->start_ns ? json_integer((json_int_t)p->start_ns) : json_null(), "comm", p->comm, "class",
		      classes[p->cls], "ended", p->ended, "cpu_ns", figure(p, TTMON_TOP_CPU), "switches",
		      figure(p, TTMON_TOP_SWITCHES), "cycles", figure(p, TTMON_TOP_CYCLES), "instructions",
		      figure(p, TTMON_TOP_INSTRUCTIONS), "llc_misses", figure(p, TTMON_TOP_MISSES), "llc_references",
		      figure(p, TTMON_TOP_REFS), "llc_bytes", figure(p, TTMON_TOP_LLC), "mbm_total_bytes",
		      figure(p, TTMON_TOP_MBM), "copies", figure(p, TTMON_TOP_COPIES), "copy_bytes",
		      figure(p, TTMON_TOP_COPIED), "wait_ns", figure(p, TTMON_TOP_WAIT), "chip_busy_ns",
		      figure(p, TTMON_TOP_CHIP), "chip_busy_error_ns", figure(p, TTMON_TOP_CHIP_ERROR), "pinned_bytes",
		      figure(p, TTMON_TOP_PINNED), "rmid", figure(p, TTMON_TOP_RMID), "counters_complete", p->complete);
	if (o && least)
		json_object_set_new(o, "at_least", json_true());
	if (o && p->members)
		json_object_set_new(o, "processes", json_integer((json_int_t)p->members));
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

		if ((f == TTMON_TOP_FAMILY_DISPATCH && !t->has_work) || (f == TTMON_TOP_FAMILY_WAIT && !t->has_wait))
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
	doc = json_pack("{s:I, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o, s:o}", "interval_ns",
			(json_int_t)t->now_ns, "by", ttmon_top_by_name(ask->by), "sort", ttmon_top_sort_name(ask->sort),
			"cpus", sum(t->cpus), "user_ns", sum(t->user_ns), "kernel_ns", sum(t->kernel_ns), "idle_ns",
			sum(t->idle_ns), "missing_ns", sum(t->missing_ns), "counters", t->counters, "rdt", t->rdt,
			"knowledge", knowledge(t), "processes", rows);
	if (doc && t->cpu_least)
		json_object_set_new(doc, "at_least", json_true());
	return doc;
}
