// SPDX-License-Identifier: GPL-2.0-only
#include "daemon/run/targets.h"

#include "daemon/io/probes/discover.h"
#include "daemon/run/daemon.h"
#include "lib/os/proc.h"

#define PF_KTHREAD 0x00200000u /* include/linux/sched.h; stable, as documented in proc_pid_stat(5) */

static bool has_ended(const struct ttmon_proc_stat *st)
{
	return st->state == 'Z' || st->state == 'X';
}

bool ttmon_target_has_ended(uint32_t pid)
{
	struct ttmon_proc_stat st;

	return ttmon_proc_read_stat(NULL, pid, &st) || has_ended(&st);
}

int ttmon_target_check(uint32_t pid, char *why, size_t n)
{
	uint32_t tgid = ttmon_proc_tgid(pid);
	struct ttmon_proc_stat st = { 0 };
	int err = -ESRCH;

	if (ttmon_proc_read_stat(NULL, pid, &st)) {
		snprintf(why, n, "no process %u", pid);
	} else if (has_ended(&st)) {
		snprintf(why, n, "process %u has ended", pid);
	} else if (st.flags & PF_KTHREAD) {
		snprintf(why, n, "process %u is a kernel thread", pid);
		err = -EPERM;
	} else if (tgid != pid) {
		snprintf(why, n, "%u is a thread of process %u: --pid %u", pid, tgid, tgid);
	} else if (pid == (uint32_t)getpid()) {
		snprintf(why, n, "process %u is ttmond itself", pid);
		err = -EPERM;
	} else {
		err = 0;
	}
	return err;
}

/*
 * First the kernel knows the process, then its mappings are read, so that nothing is missed in
 * between.
 */
static int add(void *ctx, uint32_t pid)
{
	struct ttmon_daemon *c = ctx;
	int err;

	/* A process's child may be this daemon. */
	if (pid == (uint32_t)getpid())
		return 0;
	err = ttmon_bpf_add_pid(ttmon_daemon_bpf(c), pid, false);
	if (err)
		return err;
	ttmon_daemon_announce(c, pid);
	return 0;
}

int ttmon_target_add(struct ttmon_daemon *c, uint32_t pid, uid_t uid, char *why, size_t n)
{
	int err = ttmon_target_check(pid, why, n);

	if (err)
		return err;
	err = add(c, pid);
	if (!err)
		err = ttmon_discover_children(pid, add, c);
	if (err && err != -ESRCH) {
		snprintf(why, n, "cannot trace process %u: %s", pid, strerror(-err));
		return err;
	}
	ttmon_daemon_await_announced(c);
	/* An end before it was in the table was not reported. */
	if (ttmon_target_has_ended(pid)) {
		ttmon_bpf_del_pid(ttmon_daemon_bpf(c), pid);
		snprintf(why, n, "process %u has ended", pid);
		return -ESRCH;
	}
	log_info("process %u is a target, as user %u asked for", pid, uid);
	return 0;
}

static int take_out(void *ctx, uint32_t pid)
{
	struct ttmon_daemon *c = ctx;

	(void)!ttmon_bpf_unlist_pid(ttmon_daemon_bpf(c), pid);
	return 0;
}

int ttmon_target_remove(struct ttmon_daemon *c, uint32_t pid, uid_t uid)
{
	int err = ttmon_bpf_unlist_pid(ttmon_daemon_bpf(c), pid);

	if (err)
		return err;
	/* A process that is gone has no children any more. */
	(void)!ttmon_discover_children(pid, take_out, c);
	log_info("process %u is no target any more, as user %u asked for", pid, uid);
	return 0;
}

int ttmon_target_all(struct ttmon_daemon *c, bool all, uid_t uid)
{
	if (ttmon_bpf_all(ttmon_daemon_bpf(c)) == all)
		return 0;
	ttmon_discover_set_all(ttmon_daemon_discover(c), all);
	ttmon_bpf_set_all(ttmon_daemon_bpf(c), all);
	log_info("%s, as user %u asked for", all ? "every process is traced" : "only targets are traced", uid);
	return all ? ttmon_discover_scan(ttmon_daemon_discover(c)) : 0;
}
