// SPDX-License-Identifier: GPL-2.0-only
/*
 * viewer.c: the rights of a client. Its user is the one that the kernel reported when it connected; a
 * process's user is the owner of /proc/PID, which belongs to its effective user whether or not it may
 * be dumped (proc(5): only the files below go to root then).
 */
#include "daemon/api/viewer.h"

#include <sys/stat.h>

#include "lib/os/proc.h"
#include "lib/os/clock.h"

void ttmon_viewer_init(struct ttmon_viewer *v, const struct ttmon_http_reply *reply)
{
	*v = (struct ttmon_viewer){ .all = reply->local && !reply->uid, .none = !reply->local, .uid = reply->uid };
}

bool ttmon_viewer_sees_uid(const struct ttmon_viewer *v, uint32_t uid)
{
	return v->all || (!v->none && uid == v->uid && uid != UINT32_MAX);
}

/*
 * /proc counts whole ticks from the boot, task->start_time leaves out the time that the host was
 * suspended. How much of that was before the process started is unknown: between none and all of it.
 * On a host that was never suspended the match is exact to the tick.
 */
static bool started_at(uint64_t ticks, uint64_t start_ns)
{
	uint64_t tick_ns = NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK), boot_ns = ticks * tick_ns;
	uint64_t mono_ns = ttmon_mono_ns(), asleep_ns = ttmon_clock_ns(CLOCK_BOOTTIME) - mono_ns;

	return boot_ns + tick_ns > start_ns && boot_ns <= start_ns + asleep_ns;
}

bool ttmon_viewer_owns_pid(const struct ttmon_viewer *v, uint32_t tgid)
{
	uid_t uid;

	/* The effective user, which is root for a setuid program. */
	return v->all || (ttmon_proc_owner(tgid, &uid, NULL) && ttmon_viewer_sees_uid(v, uid));
}

bool ttmon_viewer_sees_pid(const struct ttmon_viewer *v, uint32_t tgid, uint64_t start_ns)
{
	uint64_t start;

	if (v->all)
		return true;
	if (v->none || !start_ns)
		return false;
	/* The user first: if it was that of an earlier process with this id, the start time differs. */
	if (!ttmon_viewer_owns_pid(v, tgid))
		return false;
	start = ttmon_proc_alive(tgid);
	return start && started_at(start, start_ns);
}
