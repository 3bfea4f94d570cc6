// SPDX-License-Identifier: GPL-2.0-only
/*
 * coro.c: coroutines that yield in the middle of a call of CUDA: `coro WAY N`. With `own` as the next
 * argument they yield in a call of an allocator of the program, for --alloc-fn
 * '*:coro_alloc,size=1,out=ret'; with `async` in an asynchronous copy. WAY:
 *
 *   higher   a coroutine yields in a copy to the main stack, which is above its own, and which copies
 *            and allocates meanwhile
 *   lower    the main stack yields in a copy to a coroutine, which yields back in a copy of its own;
 *            the copies return in that order
 *   thread   a coroutine yields in a copy, and another thread continues it
 *   below    the same; the stack that it yields to is a thread's, directly above its own, in the same
 *            mapping
 *   cloned   the same; it yields to a thread of clone(), which has the first thread's thread pointer
 *   mixed    a coroutine yields in a copy; the main stack yields back in an allocation of its own, of
 *            which the copy is no part, and the copy returns first
 *   array-X  X, but the coroutine's stack is an array on the main stack, above all that that calls
 *   threads  no coroutine: threads with large, small and own stacks allocate, the first one far down
 *            its stack, and so does a child process that a thread makes
 *
 * There are two programs: coro switches stacks by instructions of its own, coro_ctx (-DWITH_UCONTEXT)
 * by swapcontext(). Prints one line of JSON: the copies to the device and their bytes, and the
 * allocations; with `own` the calls of coro_alloc().
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "cuda_api.h"
#include "standin.h"

#define SIZE  8192
#define STACK (256u << 10)

#if defined(__x86_64__) && !defined(WITH_UCONTEXT)
struct context {
	void *sp;
};

/* Saves the callee-saved registers on the old stack, then restores those on the new one. */
void swap(struct context *from, struct context *to);
__asm__(".text\n"
	".type swap, @function\n"
	"swap:\n"
	"	push %rbp\n	push %rbx\n	push %r12\n	push %r13\n	push %r14\n	push %r15\n"
	"	mov %rsp, (%rdi)\n"
	"	mov (%rsi), %rsp\n"
	"	pop %r15\n	pop %r14\n	pop %r13\n	pop %r12\n	pop %rbx\n	pop %rbp\n"
	"	ret\n"
	".size swap, . - swap\n");

static void make(struct context *c, char *stack, void (*body)(void))
{
	void **sp = (void **)(stack + STACK - 64);

	*--sp = NULL; /* the return address of body(), which also aligns its frame */
	*--sp = (void *)body;
	sp -= 6;
	memset(sp, 0, 6 * sizeof(*sp));
	c->sp = sp;
}
#else
struct context {
	ucontext_t u;
};

static void swap(struct context *from, struct context *to)
{
	swapcontext(&from->u, &to->u);
}

static void make(struct context *c, char *stack, void (*body)(void))
{
	getcontext(&c->u);
	c->u.uc_stack.ss_sp = stack;
	c->u.uc_stack.ss_size = STACK;
	c->u.uc_link = NULL;
	makecontext(&c->u, body, 0);
}
#endif

static struct context outside, inside;
static char *host, *dev, *coroutine; /* its stack, and as many bytes above it */
static unsigned long copies, allocs, calls;
static bool own, async;
static void (*on_copy)(void); /* executed once, in the middle of the next copy */

static void hook(void *arg)
{
	void (*now)(void) = on_copy;

	(void)arg;
	on_copy = NULL;
	if (now)
		now();
}

void *coro_alloc(size_t size);

/* For --alloc-fn: other tracers on this host do not know this function. */
__attribute__((noinline)) void *coro_alloc(size_t size)
{
	static char memory[SIZE];

	hook(NULL);
	return size == SIZE ? memory : NULL;
}

static void copy(void)
{
	if (own && coro_alloc(SIZE)) {
		calls++;
		return;
	}
	if (async ? cudaMemcpyAsync(dev, host, SIZE, cudaMemcpyHostToDevice, NULL)
		  : cudaMemcpy(dev, host, SIZE, cudaMemcpyHostToDevice))
		exit(5);
	copies++;
}

static void leave(void)
{
	swap(&inside, &outside);
}

static void go_in(void)
{
	swap(&outside, &inside);
}

/* The coroutine. */
static void body(void)
{
	for (;;) {
		on_copy = leave;
		copy();
		leave();
	}
}

static void higher(void)
{
	void *p = NULL;

	go_in();
	copy();
	if (!own) {
		if (cudaHostAlloc(&p, SIZE, 0) || cudaFreeHost(p))
			exit(5);
		allocs++;
	}
	go_in();
}

static void lower(void)
{
	on_copy = go_in;
	copy();
	go_in();
}

static void mixed(void)
{
	go_in();
	on_copy = go_in;
	if (!coro_alloc(SIZE))
		exit(5);
	calls++;
}

static void *other_thread(void *arg)
{
	(void)arg;
	go_in();
	return NULL;
}

static void go_on_in_other_thread(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, other_thread, NULL) || pthread_join(t, NULL))
		exit(5);
}

static void thread(void)
{
	go_in();
	go_on_in_other_thread();
}

static void *thread_in_thread(void *arg)
{
	(void)arg;
	thread();
	return NULL;
}

static void below(void)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	if (pthread_attr_setstack(&attr, coroutine + STACK, STACK) ||
	    pthread_create(&t, &attr, thread_in_thread, NULL) || pthread_join(t, NULL))
		exit(5);
}

static int go_in_cloned(void *arg)
{
	(void)arg;
	go_in();
	return 0;
}

static void cloned(void)
{
	static _Atomic int tid; /* the kernel owns it until the thread ends */

	tid = -1;
	if (clone(go_in_cloned, coroutine + 2 * STACK,
		  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
			  CLONE_CHILD_CLEARTID,
		  NULL, NULL, NULL, &tid) < 0)
		exit(5);
	while (tid)
		sched_yield();
	go_on_in_other_thread();
}

static void *allocate(void *arg)
{
	void *p = NULL;

	(void)arg;
	if (cudaHostAlloc(&p, SIZE, 0) || cudaFreeHost(p))
		exit(5);
	return NULL;
}

static void *fork_and_allocate(void *arg)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		allocate(arg);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || status)
		exit(5);
	return NULL;
}

#define DEEP (12u << 20)

/* Like programs with large arrays on their stacks. */
__attribute__((noinline)) static void allocate_far_down(void)
{
	struct rlimit limit = { .rlim_cur = 2 * DEEP, .rlim_max = RLIM_INFINITY };
	volatile char *room;

	getrlimit(RLIMIT_STACK, &limit);
	if (limit.rlim_cur < 2 * DEEP)
		limit.rlim_cur = 2 * DEEP;
	if (setrlimit(RLIMIT_STACK, &limit))
		exit(3);
	room = __builtin_alloca(DEEP);
	for (size_t i = DEEP; i; i -= 4096)
		room[i - 1] = 1;
	allocate(NULL);
	room[0] = 1;
}

static void threads(void)
{
	static char stack[STACK];
	size_t sizes[] = { 8u << 20, 64u << 10 };
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	for (int i = 0; i < 2; i++)
		if (pthread_attr_setstacksize(&attr, sizes[i]) || pthread_create(&t, &attr, allocate, NULL) ||
		    pthread_join(t, NULL))
			exit(5);
	if (pthread_attr_setstack(&attr, stack, sizeof(stack)) || pthread_create(&t, &attr, allocate, NULL) ||
	    pthread_join(t, NULL))
		exit(5);
	if (pthread_create(&t, NULL, fork_and_allocate, NULL) || pthread_join(t, NULL))
		exit(5);
	allocate_far_down();
	allocs += 4;
}

int main(int argc, char **argv)
{
	void (*round)(void) = NULL;
	char line[8];
	int n = argc > 2 ? atoi(argv[2]) : 10;

	if (argc > 1 && !strncmp(argv[1], "array-", 6)) {
		coroutine = __builtin_alloca_with_align(2 * STACK, 8 * 64);
		argv[1] += 6;
	} else {
		coroutine = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	if (argc > 1 && !strcmp(argv[1], "mixed"))
		round = mixed;
	if (argc > 1 && !strcmp(argv[1], "higher"))
		round = higher;
	if (argc > 1 && !strcmp(argv[1], "lower"))
		round = lower;
	if (argc > 1 && !strcmp(argv[1], "thread"))
		round = thread;
	if (argc > 1 && !strcmp(argv[1], "below"))
		round = below;
	if (argc > 1 && !strcmp(argv[1], "cloned"))
		round = cloned;
	if (argc > 1 && !strcmp(argv[1], "threads"))
		round = threads;
	if (!round || coroutine == MAP_FAILED)
		return 2;
	own = argc > 3 && !strcmp(argv[3], "own");
	async = argc > 3 && !strcmp(argv[3], "async");
	if (argc > 4 && !strcmp(argv[4], "--wait")) {
		printf("ready %d\n", getpid());
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 3;
	}
	if (!own) {
		if (cudaHostAlloc((void **)&host, SIZE, 0) || cudaMalloc((void **)&dev, SIZE))
			return 5;
		allocs += 2;
		standin_hook(async ? "cudaMemcpyAsync" : "cudaMemcpy", hook, NULL);
	}
	make(&inside, coroutine, body);
	for (int i = 0; i < n; i++)
		round();
	printf("{\"pid\":%d,\"copies\":%lu,\"bytes\":%lu,\"allocs\":%lu,\"calls\":%lu}\n", getpid(), copies,
	       copies * SIZE, allocs, calls);
	return 0;
}
