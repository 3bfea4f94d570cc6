// SPDX-License-Identifier: GPL-2.0-only
/* top_text.c: lines and JSON of `ttmon top`. Pure. */
#include <inttypes.h>

#include "tools/smi.h"
#include "tools/top.h"

#define NAME_MIN  8
#define NAME_PIPE 120 /* of a command line where there is no terminal */

static const struct {
	const char *title;
	size_t width;
	unsigned int sort; /* key that sorts by it */
	bool left;
} columns[TTMON_COL_MAX] = {
	[TTMON_COL_PID] = { "PID", 7, TTMON_SORT_PID, false },
	[TTMON_COL_NAME] = { "PROCESS", 17, TTMON_SORT_MAX, true },
	[TTMON_COL_CPU] = { "CPU%", 6, TTMON_SORT_CPU, false },
	[TTMON_COL_IPC] = { "IPC", 5, TTMON_SORT_IPC, false },
	[TTMON_COL_MISSES] = { "MISS/s", 7, TTMON_SORT_MISSES, false },
	[TTMON_COL_LLC] = { "LLC", 7, TTMON_SORT_LLC, false },
	[TTMON_COL_MBM] = { "MBM/s", 7, TTMON_SORT_MBM, false },
	[TTMON_COL_PINNED] = { "PINNED", 7, TTMON_SORT_PINNED, false },
	[TTMON_COL_COPIED] = { "COPIED/s", 8, TTMON_SORT_COPIED, false },
	[TTMON_COL_SWITCHES] = { "SWITCH/s", 8, TTMON_SORT_SWITCHES, false },
	[TTMON_COL_RMID] = { "RMID", 4, TTMON_SORT_MAX, false },
};

/* ---- which columns ---- */

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
	/* The least missed first. */
	static const enum ttmon_top_column order[] = { TTMON_COL_RMID, TTMON_COL_SWITCHES, TTMON_COL_MISSES,
						       TTMON_COL_LLC,  TTMON_COL_COPIED,   TTMON_COL_MBM,
						       TTMON_COL_IPC,  TTMON_COL_PINNED };
	static const enum ttmon_top_column last[] = { TTMON_COL_PID, TTMON_COL_CPU };
	struct ttmon_top_layout l;
	size_t *name = &l.width[TTMON_COL_NAME], sum;

	for (unsigned int c = 0; c < TTMON_COL_MAX; c++)
		l.width[c] = columns[c].width;
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

/* "12.3M", "985": at most 6 characters. */
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

/* "1023.9M", "512B": at most 7 characters. */
static const char *bytes(char *buf, uint64_t v)
{
	char *unit;

	if (v == TTMON_TOP_UNKNOWN)
		return "-";
	/* No figure to look for. */
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

/* ---- lines ---- */

void ttmon_top_head(const struct ttmon_top *t, unsigned int line, char *buf, size_t n)
{
	uint64_t all = t->user_ns + t->kernel_ns + t->idle_ns + t->missing_ns;
	char pinned[TTMON_FMT_LEN], copied[TTMON_FMT_LEN], switches[TTMON_FMT_LEN];
	int len;

	if (line == 0) {
		len = snprintf(buf, n, "%" PRIu64 " CPU%s: %.1f %% processes, %.1f %% kernel, %.1f %% idle", t->cpus,
			       t->cpus == 1 ? "" : "s", percent(t->user_ns, all), percent(t->kernel_ns, all),
			       percent(t->idle_ns, all));
		if (t->missing_ns && (size_t)len < n)
			snprintf(buf + len, n - (size_t)len, ", %.2f %% MISSING", percent(t->missing_ns, all));
		return;
	}
	snprintf(buf, n, "%" PRIu64 " of %" PRIu64 " processes ran; %s switches/s; %s pinned; %s/s copied%s%s",
		 t->running, t->known, rate(switches, t, t->all.v[TTMON_TOP_SWITCHES]),
		 bytes(pinned, t->all.v[TTMON_TOP_PINNED]), bytes_rate(copied, t, t->all.v[TTMON_TOP_COPIED]),
		 t->counters ? "" : "; no counters", t->rdt ? "" : "; no RDT");
}

static void put(char *buf, size_t n, size_t *len, const struct ttmon_top_layout *l, unsigned int column,
		const char *text)
{
	char cell[TTMON_TOP_LINE / 2];
	size_t width = l->width[column], shown;
	int pad;

	if (!width)
		return;
	shown = ttmon_smi_clean(cell, sizeof(cell), text, sizeof(cell), width, true);
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

static const char *cell(const struct ttmon_top *t, const struct ttmon_top_proc *p, enum ttmon_top_column column,
			char *buf)
{
	switch (column) {
	case TTMON_COL_PID:
		return p->pid ? number(buf, p->pid) : "-";
	case TTMON_COL_CPU:
		return cpu(buf, t, p->v[TTMON_TOP_CPU]);
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

	return json_pack("{s:o, s:o, s:s, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}",
			 "pid", p->pid ? json_integer((json_int_t)p->pid) : json_null(), "start_ns",
			 p->start_ns ? json_integer((json_int_t)p->start_ns) : json_null(), "comm", p->comm, "class",
			 classes[p->cls], "ended", p->ended, "cpu_ns", figure(p, TTMON_TOP_CPU), "switches",
			 figure(p, TTMON_TOP_SWITCHES), "cycles", figure(p, TTMON_TOP_CYCLES), "instructions",
			 figure(p, TTMON_TOP_INSTRUCTIONS), "llc_misses", figure(p, TTMON_TOP_MISSES), "llc_references",
			 figure(p, TTMON_TOP_REFS), "llc_bytes", figure(p, TTMON_TOP_LLC), "mbm_total_bytes",
			 figure(p, TTMON_TOP_MBM), "copies", figure(p, TTMON_TOP_COPIES), "copy_bytes",
			 figure(p, TTMON_TOP_COPIED), "pinned_bytes", figure(p, TTMON_TOP_PINNED), "rmid",
			 figure(p, TTMON_TOP_RMID), "counters_complete", p->complete);
}

json_t *ttmon_top_json(const struct ttmon_top *t, const struct ttmon_top_ask *ask)
{
	json_t *rows = json_array();

	for (size_t i = 0; i < t->n; i++) {
		if (json_array_append_new(rows, row(&t->procs[i]))) {
			json_decref(rows);
			return NULL;
		}
	}
	return json_pack("{s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:b, s:b, s:o}", "interval_ns", (json_int_t)t->now_ns,
			 "sort", ttmon_top_sort_name(ask->sort), "cpus", (json_int_t)t->cpus, "user_ns",
			 (json_int_t)t->user_ns, "kernel_ns", (json_int_t)t->kernel_ns, "idle_ns",
			 (json_int_t)t->idle_ns, "missing_ns", (json_int_t)t->missing_ns, "counters", t->counters,
			 "rdt", t->rdt, "processes", rows);
}
