// SPDX-License-Identifier: GPL-2.0-only
/*
 * resctrl_read.c: limits and readings (Documentation/filesystems/resctrl.rst). Cold thread.
 *
 *	info/L3_MON/num_rmids		RMIDs 0..n-1; 0 is the root group's, each control group takes one
 *	info/PERF_PKG_MON/num_rmids	where there is telemetry: the smaller of the two counts
 *	info/L3_MON/mon_features	one event a line: files of that name
 *	GROUP/mon_hw_id			RMID, only when mounted with -o debug
 *	GROUP/mon_data/mon_L3_NN/EVENT	bytes, in decimal; or a word
 *
 * NN is the L3 domain. With sub-NUMA clusters there are mon_sub_L3_YY in it, and its own files have
 * the sums: those are read. Values are bytes since the group was made, 64 bits wide: the kernel has
 * scaled them and taken care of counters that wrapped.
 *
 * A reading is stamped halfway between the clock before its first file and after its last: each file
 * takes a round trip to a CPU of that domain, so its three values are that far apart.
 */
#include "daemon/io/rdt/resctrl_int.h"

#include <dirent.h>
#include <fcntl.h>

#include "lib/os/clock.h"

#define MAX_ENTRIES 4096

static const struct {
	const char *name;
	uint32_t has;
} events[TTMON_RDT_VALUES] = {
	[TTMON_RDT_OCCUPANCY] = { "llc_occupancy", TTMON_RMID_HAS_OCCUPANCY },
	[TTMON_RDT_TOTAL] = { "mbm_total_bytes", TTMON_RMID_HAS_TOTAL },
	[TTMON_RDT_LOCAL] = { "mbm_local_bytes", TTMON_RMID_HAS_LOCAL },
};

bool ttmon_resctrl_u64(const char *s, uint64_t max, uint64_t *ret)
{
	uint64_t v = 0;

	if (!*s)
		return false;
	for (; *s; s++) {
		unsigned int digit = (unsigned int)(*s - '0');

		if (digit > 9 || v > (max - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	*ret = v;
	return true;
}

bool ttmon_resctrl_has_line(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *s = text; s; s = strchr(s, '\n')) {
		s += *s == '\n';
		if (!strncmp(s, word, n) && (s[n] == '\n' || !s[n]))
			return true;
	}
	return false;
}

/* The error for a mount without L3 monitoring: lists what it has. */
static int no_l3(const struct ttmon_resctrl *r, int root, char *why, size_t n)
{
	char **names, all[128] = "";
	size_t nr = ttmon_resctrl_folders(root, "info", &names);

	for (size_t i = 0; i < nr; i++) {
		size_t len = strlen(names[i]), used = strlen(all);

		if (len > 4 && !strcmp(names[i] + len - 4, "_MON"))
			snprintf(all + used, sizeof(all) - used, "%s%s", used ? ", " : "", names[i]);
	}
	ttmon_resctrl_free_names(names, nr);
	if (*all)
		snprintf(why, n, "resctrl at %s monitors %s alone, not L3: nothing of caches and memory bandwidth",
			 r->root, all);
	else
		snprintf(why, n, "resctrl at %s has no L3 monitoring (no info/L3_MON): this CPU can only allocate",
			 r->root);
	return -ENODEV;
}

int ttmon_resctrl_limits(struct ttmon_resctrl *r, int root, char *why, size_t n)
{
	uint64_t rmids, others;
	uint32_t has = 0;
	char text[4096];

	if (faccessat(root, "info/L3_MON", F_OK, 0))
		return no_l3(r, root, why, n);
	if (ttmon_resctrl_text(root, "info/L3_MON/num_rmids", text, sizeof(text)) < 0 ||
	    !ttmon_resctrl_u64(text, UINT32_MAX, &rmids)) {
		snprintf(why, n, "%s/info/L3_MON/num_rmids cannot be read", r->root);
		return -ENODEV;
	}
	/* A group needs an RMID of all kinds of monitoring. */
	if (ttmon_resctrl_text(root, "info/PERF_PKG_MON/num_rmids", text, sizeof(text)) >= 0 &&
	    ttmon_resctrl_u64(text, UINT32_MAX, &others))
		rmids = MIN(rmids, others);
	if (rmids < 2) {
		snprintf(why, n, "resctrl at %s has %llu RMIDs: none for a group", r->root, (unsigned long long)rmids);
		return -ENODEV;
	}
	if (ttmon_resctrl_text(root, "info/L3_MON/mon_features", text, sizeof(text)) < 0)
		text[0] = '\0';
	for (unsigned int i = 0; i < TTMON_RDT_VALUES; i++)
		has |= ttmon_resctrl_has_line(text, events[i].name) ? events[i].has : 0;
	if (!has) {
		snprintf(why, n, "%s/info/L3_MON/mon_features names no event that is known", r->root);
		return -ENODEV;
	}
	if (faccessat(root, "mon_groups", W_OK, 0)) {
		snprintf(why, n, "%s/mon_groups cannot be written (%s): mount -o remount,rw %s, and run as root",
			 r->root, strerror(errno), r->root);
		return -ENODEV;
	}
	(void)ttmon_resctrl_mode(r, root);
	ttmon_resctrl_has_telemetry(r, root);
	r->hw_ids = !faccessat(root, "mon_hw_id", R_OK, 0);
	r->max_rmid = (uint32_t)MIN(rmids, (uint64_t)TTMON_RMID_LIMIT) - 1;
	r->has = has;
	return 0;
}

void ttmon_resctrl_tell_limits(const struct ttmon_resctrl *r)
{
	struct ttmon_ev_rmid_info e = {
		.h = { .ts_ns = ttmon_mono_ns(), .kind = TTMON_EV_RMID_INFO, .cpu = TTMON_CPU_DAEMON },
		.backend = TTMON_RMID_RESCTRL,
		.max_rmid = r->max_rmid,
		.scale = 1,
		.width = 64,
		.flags = r->has | (r->hw_ids ? TTMON_RMID_HAS_HW_IDS : 0),
	};

	r->cfg.fact(r->cfg.ctx, &e, sizeof(e));
}

static bool is_used(const struct ttmon_resctrl *r, uint32_t rmid)
{
	for (size_t i = 0; i < r->nr_groups; i++)
		if (r->groups[i]->rmid == rmid)
			return true;
	return false;
}

int ttmon_resctrl_id(struct ttmon_resctrl *r, int root, const struct resctrl_group *g, uint32_t *ret)
{
	char path[RESCTRL_PATH], text[32];
	uint64_t id;
	ssize_t n;

	if (!r->hw_ids) {
		/* Prefers an id that was not in use just before. */
		for (uint32_t i = 0; i < r->max_rmid; i++) {
			r->last_id = r->last_id % r->max_rmid + 1;
			if (!is_used(r, r->last_id)) {
				*ret = r->last_id;
				return 0;
			}
		}
		return -ENOSPC;
	}
	ttmon_resctrl_path(g, "mon_hw_id", path, sizeof(path));
	n = ttmon_resctrl_text(root, path, text, sizeof(text));
	if (n < 0)
		return (int)n;
	if (!ttmon_resctrl_u64(text, TTMON_RMID_LIMIT - 1, &id) || !id || is_used(r, (uint32_t)id))
		return -ERANGE;
	*ret = (uint32_t)id;
	return 0;
}

enum ttmon_rdt_state ttmon_resctrl_value(const char *text, uint64_t *ret)
{
	*ret = 0;
	if (!strcmp(text, "Unavailable"))
		return TTMON_RDT_UNAVAILABLE;
	if (!strcmp(text, "Unassigned"))
		return TTMON_RDT_UNASSIGNED;
	/* "Error", and any text that no kernel writes. */
	return ttmon_resctrl_u64(text, UINT64_MAX, ret) ? TTMON_RDT_OK : TTMON_RDT_ERROR;
}

/* "mon_L3_00" */
static bool parse_domain(const char *name, uint16_t *ret)
{
	uint64_t v;

	if (strncmp(name, "mon_L3_", 7) || strlen(name) > 7 + 5 || !ttmon_resctrl_u64(name + 7, UINT16_MAX, &v))
		return false;
	*ret = (uint16_t)v;
	return true;
}

static enum ttmon_rdt_state read_value(int domain, const char *name, uint64_t *ret)
{
	char text[64];
	ssize_t n = ttmon_resctrl_text(domain, name, text, sizeof(text));

	*ret = 0;
	if (n == -ENOENT)
		return TTMON_RDT_UNSUPPORTED;
	return n < 0 ? TTMON_RDT_ERROR : ttmon_resctrl_value(text, ret);
}

/* False: this domain is gone, or the name is something else. */
static bool read_domain(struct ttmon_resctrl *r, int root, int data, const char *name, struct resctrl_group *g)
{
	_cleanup_close_ int fd = -1;
	struct ttmon_ev_rdt e = {
		.h = { .kind = TTMON_EV_RDT_READ, .cpu = TTMON_CPU_DAEMON },
		.rmid = g->rmid,
	};
	unsigned int good = 0, bad = 0;
	uint64_t before;

	if (!parse_domain(name, &e.domain))
		return false;
	fd = ttmon_resctrl_open(data, name, O_RDONLY | O_DIRECTORY);
	if (fd < 0)
		return false;
	before = ttmon_mono_ns();
	for (unsigned int i = 0; i < TTMON_RDT_VALUES; i++) {
		uint64_t value = 0;

		e.state[i] = TTMON_RDT_UNSUPPORTED;
		if (r->has & events[i].has)
			e.state[i] = (uint8_t)read_value(fd, events[i].name, &value);
		e.value[i] = value;
		good += e.state[i] == TTMON_RDT_OK;
		bad += e.state[i] != TTMON_RDT_OK && e.state[i] != TTMON_RDT_UNSUPPORTED;
		if (e.state[i] == TTMON_RDT_UNASSIGNED) {
			g->unassigned = true;
			ttmon_resctrl_assign(r, root, g, e.domain, events[i].name);
		}
	}
	/* A group removed during the reading: nothing of it is reported. */
	if (!good && !bad)
		return false;
	e.when_ns = e.h.ts_ns = before + (ttmon_mono_ns() - before) / 2;
	r->readings++;
	r->failed_readings += bad > 0;
	r->cfg.fact(r->cfg.ctx, &e, sizeof(e));
	return true;
}

int ttmon_resctrl_read(struct ttmon_resctrl *r, int root, struct resctrl_group *g)
{
	unsigned int domains = 0, seen = 0;
	char path[RESCTRL_PATH];
	struct dirent *e;
	int data;
	DIR *d;

	ttmon_resctrl_path(g, "mon_data", path, sizeof(path));
	data = ttmon_resctrl_open(root, path, O_RDONLY | O_DIRECTORY);
	d = data < 0 ? NULL : fdopendir(data);
	if (!d) {
		if (data >= 0)
			close(data);
		return data == -ENOENT || data == -ENODEV ? -ENODEV : 0;
	}
	g->unassigned = false;
	while (domains < RESCTRL_DOMAINS && seen++ < MAX_ENTRIES && (e = readdir(d)))
		domains += read_domain(r, root, dirfd(d), e->d_name, g) ||
			   ttmon_resctrl_package(r, dirfd(d), e->d_name, g);
	closedir(d);
	return 0;
}
