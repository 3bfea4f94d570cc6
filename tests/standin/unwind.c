// SPDX-License-Identifier: GPL-2.0-only
/*
 * unwind.c: call stacks of C code: recursion, alloca, callbacks of libc, tail calls, signal handlers,
 * longjmp, 16 threads, a library that is closed again; signals in the middle of the PLT, of a
 * function's first and last instructions, and of the vDSO. With UNWIND_JIT=1 also code that the
 * program generates, which has no unwind table. Built without frame pointers, with them, static, not
 * position-independent, stripped: standin.mk.
 */
#include "unwind.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>

static volatile int sink;

__attribute__((noinline)) static int in_recursion(int n)
{
	volatile char room[24];

	room[n % 24] = (char)n;
	if (!n)
		return unwind_pin(4096) != NULL;
	return in_recursion(n - 1) + room[n % 24];
}

__attribute__((noinline)) static int with_alloca(int n)
{
	volatile char *room = __builtin_alloca((size_t)n);

	memset((char *)room, n, (size_t)n);
	return (unwind_pin(8192) != NULL) + room[n - 1];
}

/*
 * A frame with a larger alignment than the stack: such functions find their caller through another
 * register.
 */
__attribute__((noinline)) static int aligned(int n)
{
	volatile char room[256] __attribute__((aligned(64)));
	volatile char *more = __builtin_alloca((size_t)n);

	room[n % 256] = more[n / 2] = (char)n;
	return (unwind_pin(12288) != NULL) + room[n % 256] + more[n / 2];
}

static int by_value(const void *a, const void *b)
{
	sink += unwind_pin(16384) != NULL;
	return *(const int *)a - *(const int *)b;
}

__attribute__((noinline)) static int sorted(void)
{
	int v[4] = { 4, 2, 3, 1 };

	qsort(v, 4, sizeof(v[0]), by_value);
	return v[0];
}

/* With -O2 the call is a jump: this function is on no stack. */
__attribute__((noinline)) static void *tail(size_t size)
{
	sink++;
	return unwind_pin(size);
}

__attribute__((noinline)) static int tail_caller(void)
{
	return (tail(20480) != NULL) + sink;
}

static void on_signal(int sig)
{
	sink += unwind_pin(24576) != NULL;
	sink += sig;
}

__attribute__((noinline)) static int signalled(int n)
{
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	return n + sink;
}

static jmp_buf back;

__attribute__((noinline)) static void jumps(int n)
{
	sink += unwind_pin(28672) != NULL;
	if (n)
		longjmp(back, n);
}

__attribute__((noinline)) static int jumped(void)
{
	volatile int n = 3;

	if (setjmp(back))
		n--;
	jumps(n);
	return n;
}

/* ---- signals at odd places ---- */

extern const char __executable_start[], etext[]; /* the linker's */
static volatile int steps, at_steps;

#define TRAP_FLAG 0x100

/*
 * After each instruction of the program's file. Instructions of the dynamic linker between them are
 * not recorded.
 */
static void on_step(int sig, siginfo_t *info, void *uc)
{
	greg_t *regs = ((ucontext_t *)uc)->uc_mcontext.gregs;
	const char *pc = (const char *)(uintptr_t)regs[REG_RIP];

	(void)sig;
	(void)info;
	if (!steps) {
		regs[REG_EFL] &= ~TRAP_FLAG;
		return;
	}
	if (pc >= __executable_start && pc < etext && at_steps < 64) {
		at_steps++;
		sink += unwind_pin(40960) != NULL;
	}
}

__attribute__((noinline)) static int stepped_inner(int n)
{
	volatile char room[40];

	room[n % 40] = (char)n;
	/* The first call goes through the beginning of the PLT and the dynamic linker. */
	return room[n % 40] + (int)getppid();
}

__attribute__((noinline)) static int stepped(void)
{
	struct sigaction act = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };
	int n;

	sigaction(SIGTRAP, &act, NULL);
	steps = 1;
	/* The push must not be directly below the stack pointer: the compiler uses the red zone there. */
	__asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushf\n\torl $0x100, (%%rsp)\n\tpopf\n\tlea 128(%%rsp), %%rsp"
			 :
			 :
			 : "memory", "cc");
	n = stepped_inner(at_steps + 7);
	steps = 0;
	return n + sink;
}

static sigjmp_buf out_of_vdso;

static void on_fault(int sig)
{
	sink += unwind_pin(45056) != NULL;
	siglongjmp(out_of_vdso, sig);
}

/*
 * The vDSO writes the time to the given address. If it calls the kernel instead, nothing happens.
 */
__attribute__((noinline)) static int in_vdso(void)
{
	struct timespec *volatile nowhere = (struct timespec *)8;

	signal(SIGSEGV, on_fault);
	if (!sigsetjmp(out_of_vdso, 1))
		sink += clock_gettime(CLOCK_MONOTONIC, nowhere);
	signal(SIGSEGV, SIG_DFL);
	return sink;
}

/* ---- code without a table ---- */

__attribute__((noinline)) static void *from_made(size_t size)
{
	void *p = unwind_pin(size);

	sink++;
	return p;
}

/*
 * push %rbp; mov %rdi, %rbp; call *%rsi; pop %rbp; ret. The other has mov %rsp, %rbp: a frame record.
 */
static const unsigned char plain_code[] = { 0x55, 0x48, 0x89, 0xfd, 0xff, 0xd6, 0x5d, 0xc3 };
static const unsigned char framed_code[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd6, 0x5d, 0xc3 };

static void made(void)
{
	const struct {
		const unsigned char *code;
		size_t size;
	} of[] = { { plain_code, 49152 }, { framed_code, 53248 } };

	for (int i = 0; i < 2; i++) {
		void *(*f)(size_t, void *(*)(size_t));
		/* One page is executable from the beginning, the other becomes so later. */
		unsigned char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | (i ? 0 : PROT_EXEC),
					   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (page == MAP_FAILED)
			exit(7);
		memcpy(page, of[i].code, sizeof(plain_code));
		if (mprotect(page, 4096, PROT_READ | PROT_EXEC))
			exit(8);
		memcpy(&f, &page, sizeof(f));
		sink += f(of[i].size, from_made) != NULL;
	}
}

static void *in_thread(void *arg)
{
	for (int i = 0; i < 8; i++) {
		sink += in_recursion(3 + (int)(long)arg % 4);
		sink += with_alloca(100 + i);
	}
	return arg;
}

__attribute__((noinline)) static void threads(void)
{
	pthread_t t[16];

	for (long i = 0; i < 16; i++)
		if (pthread_create(&t[i], NULL, in_thread, (void *)i))
			exit(4);
	for (int i = 0; i < 16; i++)
		pthread_join(t[i], NULL);
}

#ifndef UNWIND_STATIC
int cudaMalloc(void **p, size_t size);
int cudaMemcpy(void *to, const void *from, size_t size, int kind);

/* Ordinary memory gets the call site of the code that copies from it. */
__attribute__((noinline)) static int copy_inner(void *device, const void *host, size_t size)
{
	volatile char room[48];

	room[size % 48] = 1;
	return cudaMemcpy(device, host, size, 1) + room[size % 48];
}

__attribute__((noinline)) static int copy_outer(size_t size)
{
	void *host = malloc(size), *device = NULL;

	if (!host || cudaMalloc(&device, size))
		exit(6);
	memset(host, 1, size);
	return copy_inner(device, host, size) + sink;
}

/* A library that is mapped, used and closed again: it may have another address each time. */
__attribute__((noinline)) static void library(void)
{
	for (int i = 0; i < 4; i++) {
		void *lib = dlopen("libunwind_part.so", RTLD_NOW);
		int (*calls)(void *(*)(size_t), size_t) =
			lib ? (int (*)(void *(*)(size_t), size_t))dlsym(lib, "part_calls") : NULL;

		if (!calls)
			exit(5);
		sink += calls(unwind_pin, 32768);
		/* This happens before its mapping is read, unless a thread has waited for that. */
		dlclose(lib);
	}
}
#endif

#ifdef UNWIND_STATIC
/* UNWIND_SPIN=SECONDS: it allocates all the time. */
__attribute__((noinline)) static void spin(void)
{
	const char *s = getenv("UNWIND_SPIN");
	time_t until = time(NULL) + (s ? atoi(s) : 0);

	while (s && time(NULL) < until)
		for (int i = 0; i < 100; i++)
			free(unwind_pin(64));
}
#endif

int main(void)
{
	unwind_begin();
	for (int i = 0; i < 20; i++) {
		sink += in_recursion(i);
		sink += with_alloca(64 + 40 * i);
		sink += aligned(32 + i);
		sink += tail_caller();
	}
	sink += sorted();
	sink += signalled(1);
	sink += jumped();
	sink += stepped();
	sink += in_vdso();
	if (getenv("UNWIND_JIT"))
		made();
	unwind_wait();
	threads();
#ifdef UNWIND_STATIC
	spin();
#else
	sink += copy_outer(4 << 20);
	library();
#endif
	unwind_end();
	return 0;
}
