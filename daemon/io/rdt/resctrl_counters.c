// SPDX-License-Identifier: GPL-2.0-only
/*
 * resctrl_counters.c: bandwidth counters that are assigned (AMD ABMC). Cold thread.
 *
 *	info/L3_MON/mbm_assign_mode	 the mode in brackets; if it is not "default", an event counts while
 *					 it has a counter
 *	info/L3_MON/mbm_assign_on_mkdir	 1: each event of a new group gets a counter, while there are any
 *	info/L3_MON/available_mbm_cntrs	 how many are free, by domain: "0=30;1=30"
 *	GROUP/mbm_L3_assignments	 written: "mbm_total_bytes:0=e" gives one to that event in domain 0
 *
 * A group that was made when no counter was free reads "Unassigned" for ever, even after counters
 * became free. It gets one here, unless the administrator has switched assignment off for new groups.
 * The count then begins again, and a change of mode may reset all counters: readings before and after
 * are not subtracted.
 */
#include "daemon/io/rdt/resctrl_int.h"

#include <fcntl.h>

#include "lib/os/log.h"

#define LOOK_NS NSEC_PER_SEC

bool ttmon_resctrl_mode(struct ttmon_resctrl *r, int root)
{
	bool was = r->assigned_counters;
	char text[128];

	r->assigned_counters = ttmon_resctrl_text(root, "info/L3_MON/mbm_assign_mode", text, sizeof(text)) > 0 &&
			       !strstr(text, "[default]");
	r->by_hand = r->assigned_counters &&
		     ttmon_resctrl_text(root, "info/L3_MON/mbm_assign_on_mkdir", text, sizeof(text)) > 0 &&
		     !strcmp(text, "0");
	return was != r->assigned_counters;
}

/* "0=30;1=0": the domains with free counters. */
static void look_where(struct ttmon_resctrl *r, int root)
{
	char text[4096], *save = NULL;

	r->nr_free_in = 0;
	if (!r->assigned_counters || r->by_hand ||
	    ttmon_resctrl_text(root, "info/L3_MON/available_mbm_cntrs", text, sizeof(text)) <= 0)
		return;
	for (char *s = strtok_r(text, ";", &save); s; s = strtok_r(NULL, ";", &save)) {
		char *value = strchr(s, '=');
		uint64_t domain, free;

		if (!value || r->nr_free_in == RESCTRL_DOMAINS)
			return;
		*value++ = '\0';
		if (ttmon_resctrl_u64(s, UINT16_MAX, &domain) && ttmon_resctrl_u64(value, UINT32_MAX, &free) && free)
			r->free_in[r->nr_free_in++] = (uint16_t)domain;
	}
}

void ttmon_resctrl_look(struct ttmon_resctrl *r, int root, uint64_t now_ns)
{
	if (ttmon_before(now_ns, r->look_ns))
		return;
	r->look_ns = now_ns + LOOK_NS;
	if (ttmon_resctrl_mode(r, root)) {
		log_info("resctrl: bandwidth counters are %s now: they begin anew",
			 r->assigned_counters ? "assigned" : "not assigned");
		ttmon_resctrl_tell_limits(r);
	}
	look_where(r, root);
}

void ttmon_resctrl_assign(struct ttmon_resctrl *r, int root, const struct resctrl_group *g, uint16_t domain,
			  const char *event)
{
	char path[RESCTRL_PATH], text[64];
	_cleanup_close_ int fd = -1;
	size_t i = 0;
	int len;

	while (i < r->nr_free_in && r->free_in[i] != domain)
		i++;
	if (i == r->nr_free_in)
		return;
	ttmon_resctrl_path(g, "mbm_L3_assignments", path, sizeof(path));
	fd = ttmon_resctrl_open(root, path, O_WRONLY | O_APPEND);
	len = snprintf(text, sizeof(text), "%s:%u=e\n", event, domain);
	/* None is free there any more: not tried again before the next check. */
	if (fd < 0 || write(fd, text, (size_t)len) != len)
		r->free_in[i] = r->free_in[--r->nr_free_in];
	else
		r->assigned++;
}
