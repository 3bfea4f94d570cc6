// SPDX-License-Identifier: GPL-2.0-only
/*
 * box.c: confines the unwinding process before it reads any untrusted data: it gives up its user, its
 * capabilities, the right to gain any, and, by seccomp, all system calls except those that it needs.
 * It keeps its open descriptors.
 */
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <grp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "daemon/io/unwind/unwinder.h"

#define NOBODY	   65534
#define MEMORY_MAX (512ul << 20) /* bytes of address space, the ring twice and the tables included */

/* clang-format off */
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), RETURN(SECCOMP_RET_ALLOW)
/* clang-format on */

/* Sanitizers make other system calls, and map more than the limit. They are used in tests only. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

#ifdef __x86_64__
static bool filter(void)
{
	static const struct sock_filter insns[] = {
		LOAD(arch),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		ALLOW(pread64),
		ALLOW(recvmsg),
		ALLOW(sendmsg),
		ALLOW(epoll_wait),
		ALLOW(epoll_pwait),
		ALLOW(ppoll),
		ALLOW(poll),
		ALLOW(close),
		ALLOW(fstat),
		ALLOW(newfstatat), /* what fstat() is in newer libraries */
		ALLOW(brk),
		ALLOW(munmap),
		ALLOW(mremap),
		ALLOW(madvise),
		ALLOW(futex),
		ALLOW(getrandom), /* malloc() of newer libraries */
		ALLOW(clock_gettime),
		ALLOW(sysinfo), /* qsort() reads the size of memory */
		ALLOW(restart_syscall),
		ALLOW(exit),
		ALLOW(exit_group),
		/* Memory, but no executable memory. */
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mmap, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mprotect, 0, 3),
		LOAD(args[2]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog prog = { .len = ARRAY_SIZE(insns), .filter = (struct sock_filter *)insns };

	return !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0);
}
#else
static bool filter(void)
{
	return false;
}
#endif

void ttmon_unwinder_starter_box(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, caps))
		return;
	caps[0].permitted &= 1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_KILL;
	caps[0].effective = caps[0].permitted;
	caps[0].inheritable = 0;
	memset(&caps[1], 0, sizeof(caps[1]));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_capset, &head, caps))
		errno = 0; /* it reads no untrusted data */
}

bool ttmon_unwinder_box(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];
	struct rlimit memory = { MEMORY_MAX, MEMORY_MAX }, nothing = { 0, 0 };

	/*
	 * A service may not be allowed to change its user. Without capabilities root has no rights, except on
	 * root's files.
	 */
	if (syscall(SYS_setgroups, 0, NULL) || syscall(SYS_setresgid, NOBODY, NOBODY, NOBODY) ||
	    syscall(SYS_setresuid, NOBODY, NOBODY, NOBODY))
		errno = 0;
	/*
	 * It ends with the process that started it, which ends with the daemon: even during a read that hangs.
	 * A change of user would reset this.
	 */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	memset(none, 0, sizeof(none));
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    syscall(SYS_capset, &head, none))
		return false;
	if ((!SANITIZED && setrlimit(RLIMIT_AS, &memory)) || setrlimit(RLIMIT_FSIZE, &nothing) ||
	    setrlimit(RLIMIT_CORE, &nothing))
		return false;
	return SANITIZED || filter();
}
