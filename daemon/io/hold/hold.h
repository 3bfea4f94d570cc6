/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hold.h: starts a command so that none of its calls is missed.
 *
 * The command is forked, waits before its exec, and has a seccomp filter that notifies us (user
 * notification) before every executable mmap of a file and every execve/execveat, in it and in all its
 * descendants. While it waits, the caller attaches probes to the file named by the request, then
 * releases it. The command sees nothing of this except `Seccomp: 2` in /proc/PID/status.
 *
 * Not held: a file that is mapped without PROT_EXEC and made executable by mprotect later. ld.so maps
 * code executable at once, while JIT compilers call mprotect all the time and would pay 50 us each;
 * perf MMAP2 records report the rare loader that does it.
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
	uint32_t pid;		    /* waiting thread, in the initial pid namespace */
	bool exec;		    /* true: an execve; false: a mapping */
	struct seccomp_notif notif; /* for ttmon_heldfile_open(), which finds the file */
};

/*
 * Forks argv and leaves it waiting. The child has our environment, stdio, credentials, process group,
 * and the signal mask, ignored signals and file and memlock limits that we were started with. If
 * seccomp notification is not available (listener already there: -EBUSY, old kernel: -EINVAL/-ENOSYS),
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
 * Lets the command exec. is_program: whether the file that it is about to execute is an ELF file;
 * folders of PATH are tried one by one, and most have no such file. Returns when its exec waits as the
 * first request (unheld: when it is done), or with the -errno of the failed exec (-ENOENT: no such
 * command); the child has then exited as a shell would, with 127 or 126, and the caller must wait for
 * it.
 */
int ttmon_hold_go(struct ttmon_hold *h, bool (*is_program)(void *ctx, const struct seccomp_notif *notif),
		  void *ctx) _must_check;
/*
 * Fetches one request. 0; -EAGAIN: none, or the waiting thread is gone; -ENOENT: no process is left
 * under the filter (older kernels count zombies too: wait for the command as well). Poll again after
 * any answer; ttmon_hold_fd() stays the same until -ENOENT.
 */
int ttmon_hold_next(struct ttmon_hold *h, struct ttmon_hold_req *ret) _must_check;
/*
 * True if the thread still waits. Call it after its file was opened: only then the file is its own,
 * and not that of a later thread with the same number.
 */
bool ttmon_hold_waits(struct ttmon_hold *h, const struct ttmon_hold_req *req);
/*
 * Requests that went on without waiting for us, because we were stuck. The caller reports it: calls
 * may have been missed.
 */
uint64_t ttmon_hold_missed(const struct ttmon_hold *h);
/*
 * Lets the call continue. False: it no longer waited, since its thread was released without us, or is
 * gone.
 */
bool ttmon_hold_release(struct ttmon_hold *h, const struct ttmon_hold_req *req);
/*
 * Stops holding and frees h. The command goes on (it is neither killed nor waited for); before
 * ttmon_hold_go() it exits with 127.
 */
void ttmon_hold_free(struct ttmon_hold *h);

#endif
