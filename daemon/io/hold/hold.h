/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hold.h: start a command so that no call of it is missed.
 *
 * The command is forked, stands still before its exec, and carries a seccomp filter that asks us (user
 * notification) before every executable mmap of a file and every execve/execveat, in it and in all its
 * descendants. While it waits, the caller attaches probes to the file named by the request, then
 * releases it. The command cannot see any of this but for `Seccomp: 2` in /proc/PID/status.
 *
 * Not held: a file that is mapped without PROT_EXEC and made executable by mprotect later. ld.so maps
 * code executable at once, while JIT compilers call mprotect all the time and would pay 50 us each;
 * perf MMAP2 records tell of the rare loader that does it.
 *
 * A keeper process (keeper.h) receives the requests: when the daemon dies or lets a request wait for
 * 250 ms, the keeper answers CONTINUE, so the command always goes on.
 *
 * Runs in the cold thread. Call ttmon_hold_new() before rings are mapped: the keeper is a fork and
 * would keep them in memory.
 */
#ifndef TTMON_HOLD_H
#define TTMON_HOLD_H

#include <linux/seccomp.h>
#include <sys/types.h>

#include "lib/base/util.h"

struct ttmon_hold;

struct ttmon_hold_req {
	uint64_t id;
	uint32_t pid;		    /* thread that waits, in the initial pid namespace */
	bool exec;		    /* an execve, else a mapping */
	struct seccomp_notif notif; /* for ttmon_heldfile_open(), which says which file it is */
};

/*
 * Fork argv and leave it waiting. The child has our environment, stdio, credentials, process group,
 * and the signal mask, ignored signals and file and memlock limits that we were started with. Where
 * seccomp notification cannot be had (listener already there: -EBUSY, old kernel: -EINVAL/-ENOSYS),
 * *ret is made all the same, ttmon_hold_fd() is -1 and the command runs unheld: the caller warns that
 * calls right after a mapping can be missed.
 */
int ttmon_hold_new(char *const argv[], struct ttmon_hold **ret) _must_check;
pid_t ttmon_hold_pid(const struct ttmon_hold *h);
/* Poll for POLLIN, then ttmon_hold_next(). -1: unheld, or nothing left to hold. */
int ttmon_hold_fd(const struct ttmon_hold *h);
/* Why it is unheld: a negative errno; 0 when held. */
int ttmon_hold_error(const struct ttmon_hold *h);
/*
 * Let the command exec; is_program: is what it is about to execute an ELF file? Folders of PATH are
 * tried one by one, and most hold no such file. Returns when its exec waits as the first request
 * (unheld: when it is done), or with the -errno of the exec that failed (-ENOENT: no such command);
 * the child has then exited as a shell would, with 127 or 126, and is to be waited for.
 */
int ttmon_hold_go(struct ttmon_hold *h, bool (*is_program)(void *ctx, const struct seccomp_notif *notif),
		  void *ctx) _must_check;
/*
 * Fetch one request. 0; -EAGAIN: none, or the waiting thread is gone; -ENOENT: no process is left
 * under the filter (older kernels count zombies too: wait for the command beside polling). Poll again
 * after any answer; ttmon_hold_fd() stays the same until -ENOENT.
 */
int ttmon_hold_next(struct ttmon_hold *h, struct ttmon_hold_req *ret) _must_check;
/*
 * Does the thread still wait? Asked after its file was opened: only then was it its file, not that of
 * a later thread of the same number.
 */
bool ttmon_hold_waits(struct ttmon_hold *h, const struct ttmon_hold_req *req);
/*
 * Requests that went on without waiting for us, because we were stuck. The caller says so: calls may
 * have been missed.
 */
uint64_t ttmon_hold_missed(const struct ttmon_hold *h);
/*
 * Let it go on. False: it did not wait for that any more, as its thread had been
 * let go without us or was gone.
 */
bool ttmon_hold_release(struct ttmon_hold *h, const struct ttmon_hold_req *req);
/*
 * Give up holding and free. The command goes on (it is neither killed nor waited for); before
 * ttmon_hold_go() it exits with 127.
 */
void ttmon_hold_free(struct ttmon_hold *h);

#endif
