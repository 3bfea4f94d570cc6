// SPDX-License-Identifier: GPL-2.0-only
/*
 * sealed.c: a program that may make only the system calls that it needs, like one in a sandbox: the
 * kernel kills it at any other. `sealed N`: pins, copies and frees N times under such a filter.
 * `sealed listener`: tries to install a listener of its own, and prints the error, 0 for none. Prints
 * one line of JSON.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cuda_api.h"

#define SIZE 8192

#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static int seal(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(write),
		ALLOW(mmap),
		ALLOW(munmap),
		ALLOW(mprotect),
		ALLOW(madvise),
		ALLOW(brk),
		ALLOW(futex),
		ALLOW(getrandom),
		ALLOW(exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
}

static int own_listener(void)
{
	struct sock_filter code[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW) };
	struct sock_fprog prog = { 1, code };
	long fd = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
			  ? -1
			  : syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &prog);

	printf("{\"errno\":%d}\n", fd < 0 ? errno : 0);
	return 0;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0, pid = getpid();
	char *dev = NULL;

	if (argc > 1 && !strcmp(argv[1], "listener"))
		return own_listener();
	/* One-time work of the first call may need more system calls. */
	setvbuf(stdout, NULL, _IONBF, 0);
	if (n <= 0 || cudaMalloc((void **)&dev, SIZE) || seal())
		return 2;
	for (int i = 0; i < n; i++) {
		char *p = NULL;

		if (cudaHostAlloc((void **)&p, SIZE, 0) || cudaMemcpy(dev, p, SIZE, cudaMemcpyHostToDevice) ||
		    cudaFreeHost(p))
			return 5;
	}
	printf("{\"pid\":%d,\"copies\":%d}\n", pid, n);
	return 0;
}
