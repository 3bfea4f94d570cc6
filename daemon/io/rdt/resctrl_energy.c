// SPDX-License-Identifier: GPL-2.0-only
/*
 * resctrl_energy.c: telemetry of Intel's packages (application energy telemetry). Cold thread.
 *
 *	info/PERF_PKG_MON/mon_features			events there are, one a line
 *	GROUP/mon_data/mon_PERF_PKG_NN/core_energy	J, a decimal fraction: cores with L1 and L2, in the
 *							group's tasks
 *	GROUP/mon_data/mon_PERF_PKG_NN/activity		F, a decimal fraction: work done, whatever the frequency
 *
 * The counters run on: what a group has used is the difference of two readings, and the first one
 * is the baseline.
 */
#include "daemon/io/rdt/resctrl_int.h"

#include <fcntl.h>

#define MILLION	     1000000U
#define MAX_PACKAGES 64

static const char *const names[TTMON_RESCTRL_TELEMETRY] = {
	[TTMON_RESCTRL_ENERGY] = "core_energy",
	[TTMON_RESCTRL_ACTIVITY] = "activity",
};

bool ttmon_resctrl_decimal(const char *s, uint64_t *ret)
{
	size_t whole = strspn(s, "0123456789"), part;
	uint64_t v, unit = MILLION;
	char digits[24];

	if (!whole || whole >= sizeof(digits))
		return false;
	memcpy(digits, s, whole);
	digits[whole] = '\0';
	if (!ttmon_resctrl_u64(digits, UINT64_MAX / MILLION - 1, &v))
		return false;
	v *= MILLION;
	s += whole;
	if (*s == '.') {
		part = strspn(++s, "0123456789");
		if (!part || s[part])
			return false;
		for (size_t i = 0; i < part && unit > 1; i++)
			v += (uint64_t)(s[i] - '0') * (unit /= 10);
	} else if (*s) {
		return false;
	}
	*ret = v;
	return true;
}

void ttmon_resctrl_has_telemetry(struct ttmon_resctrl *r, int root)
{
	char text[4096];

	r->telemetry_has = 0;
	if (ttmon_resctrl_text(root, "info/PERF_PKG_MON/mon_features", text, sizeof(text)) <= 0)
		return;
	for (unsigned int i = 0; i < TTMON_RESCTRL_TELEMETRY; i++)
		r->telemetry_has |= ttmon_resctrl_has_line(text, names[i]) ? 1U << i : 0;
}

static struct resctrl_package *package_of(struct resctrl_group *g, uint16_t id)
{
	struct resctrl_package *v;

	for (size_t i = 0; i < g->nr_packages; i++)
		if (g->packages[i].id == id)
			return &g->packages[i];
	if (g->nr_packages == MAX_PACKAGES)
		return NULL;
	v = reallocarray(g->packages, g->nr_packages + 1, sizeof(*v));
	if (!v)
		return NULL;
	g->packages = v;
	v[g->nr_packages] = (struct resctrl_package){ .id = id };
	return &v[g->nr_packages++];
}

bool ttmon_resctrl_package(struct ttmon_resctrl *r, int data, const char *name, struct resctrl_group *g)
{
	static const char prefix[] = "mon_PERF_PKG_";
	_cleanup_close_ int fd = -1;
	struct resctrl_package *p;
	uint64_t id, v;
	char text[64];

	if (!r->telemetry_has || strncmp(name, prefix, sizeof(prefix) - 1) != 0 ||
	    !ttmon_resctrl_u64(name + sizeof(prefix) - 1, UINT16_MAX, &id))
		return false;
	fd = ttmon_resctrl_open(data, name, O_RDONLY | O_DIRECTORY);
	p = fd < 0 ? NULL : package_of(g, (uint16_t)id);
	if (!p)
		return false;
	for (unsigned int i = 0; i < TTMON_RESCTRL_TELEMETRY; i++) {
		if (!(r->telemetry_has >> i & 1) || ttmon_resctrl_text(fd, names[i], text, sizeof(text)) < 0)
			continue;
		if (!ttmon_resctrl_decimal(text, &v)) {
			/* "Unavailable": the next valid value includes this interval. */
			r->failed_readings++;
			continue;
		}
		/* A smaller value means that the counter was reset. */
		if (p->has >> i & 1 && v >= p->last[i])
			r->telemetry[i] += v - p->last[i];
		p->last[i] = v;
		p->has |= (uint8_t)(1U << i);
	}
	return true;
}
