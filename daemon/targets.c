// SPDX-License-Identifier: GPL-2.0-only
#include "targets.h"

#include "capture.h"

#define PF_KTHREAD 0x00200000u /* include/linux/sched.h; in proc_pid_stat(5) for ever */

/* State and flags of proc_pid_stat(5). -ESRCH: there is no such process. */
static int read_stat(uint32_t pid, char *state, unsigned int *flags)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], buf[1024];
	const char *p;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return -ESRCH;
	buf[fread(buf, 1, sizeof(buf) - 1, f)] = '\0';
	/* The name in parentheses may hold anything. */
	p = strrchr(buf, ')');
	return p && sscanf(p + 1, " %c %*d %*d %*d %*d %*d %u", state, flags) == 2 ? 0 : -ESRCH;
}

bool ttmon_target_has_ended(uint32_t pid)
{
	unsigned int flags;
	char state;

	return read_stat(pid, &state, &flags) || state == 'Z' || state == 'X';
}

int ttmon_target_check(uint32_t pid, char *why, size_t n)
{
	uint32_t tgid = ttmon_loop_tgid(pid);
	unsigned int flags = 0;
	int err = -ESRCH;
	char state;

	if (read_stat(pid, &state, &flags)) {
		snprintf(why, n, "no process %u", pid);
	} else if (state == 'Z' || state == 'X') {
		snprintf(why, n, "process %u has ended", pid);
	} else if (flags & PF_KTHREAD) {
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

/* Known to the kernel first, then what it has mapped: nothing falls in between. */
static int add(void *ctx, uint32_t pid)
{
	struct ttmon_run *c = ctx;
	int err;

	/* Somebody's child. */
	if (pid == (uint32_t)getpid())
		return 0;
	err = ttmon_bpf_add_pid(c->bpf, pid, false);
	if (err)
		return err;
	ttmon_loop_discover(c, pid);
	ttmon_cpurun_request(c->cpu, &(struct ttmon_request){ .kind = TTMON_REQ_PROC, .tgid = pid });
	return 0;
}

int ttmon_target_add(struct ttmon_run *c, uint32_t pid, char *why, size_t n)
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
	/* An end before it was in the table was not told. */
	if (ttmon_target_has_ended(pid)) {
		ttmon_bpf_del_pid(c->bpf, pid);
		snprintf(why, n, "process %u has ended", pid);
		return -ESRCH;
	}
	log_info("process %u is a target", pid);
	return 0;
}

static int take_out(void *ctx, uint32_t pid)
{
	struct ttmon_run *c = ctx;

	(void)!ttmon_bpf_unlist_pid(c->bpf, pid);
	return 0;
}

int ttmon_target_remove(struct ttmon_run *c, uint32_t pid)
{
	int err = ttmon_bpf_unlist_pid(c->bpf, pid);

	if (err)
		return err;
	/* A process that is gone has no children any more. */
	(void)!ttmon_discover_children(pid, take_out, c);
	log_info("process %u is no target any more", pid);
	return 0;
}

int ttmon_target_all(struct ttmon_run *c, bool all)
{
	if (ttmon_bpf_all(c->bpf) == all)
		return 0;
	ttmon_discover_set_all(c->discover, all);
	ttmon_bpf_set_all(c->bpf, all);
	log_info(all ? "every process is traced" : "only targets are traced");
	return all ? ttmon_discover_scan(c->discover) : 0;
}
