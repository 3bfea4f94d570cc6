// SPDX-License-Identifier: GPL-2.0-only
/*
 * hook.c: intercepts the driver's functions. A program that is linked with libcuda.so.1 finds this
 * library's names first. The CUDA runtime gets cuGetProcAddress from dlsym(), and everything else from
 * that. When loaded late, by CUDA_INJECTION64_PATH from cuInit(), the library comes after all that:
 * then it searches the writable memory of the loaded objects for pointers that were found already, and
 * replaces them.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memtrace/inject/inj.h"

__attribute__((visibility("default"))) int InitializeInjection(void);
void *ttmon_inj_dlsym(void *handle, const char *name); /* called by the code of dlsym() below */
/* Our dlsym(): by its own name, loaded late, it would be the C library's. */
extern void *ttmon_inj_our_dlsym(void *handle, const char *name) __attribute__((visibility("hidden")));

static const struct row {
	const char *name, *base;
	int version;
	bool ptsz;
} rows[] = {
#define T(name, base, version, ptsz, params) { #name, #base, version, ptsz },
#define C(name, params)			     { #name, #name, 0, false },
	TTMON_INJ_TAKEN(T) TTMON_INJ_CALLED(C)
#undef T
#undef C
};

/* Our function of a row; 0: the function is only called, not intercepted. */
static uintptr_t ours_of(size_t i)
{
	static int (*const ours[])(void) = {
#define T(name, base, version, ptsz, params) (int (*)(void))(void (*)(void)) name,
		TTMON_INJ_TAKEN(T)
#undef T
	};

	return i < sizeof(ours) / sizeof(*ours) ? (uintptr_t)ours[i] : 0;
}

#define NR_TAKEN TTMON_INJ_cuCtxGetCurrent

static _Atomic uintptr_t reals[TTMON_INJ_FNS];

/* What dlsym() is without us; read by the code below. */
void *(*ttmon_inj_next_dlsym)(void *, const char *);

/*
 * By name: RTLD_NEXT leads nowhere from a library that was loaded late. Before glibc 2.34 it is in
 * libdl.
 */
static void find_dlsym(void)
{
	static const char *const libs[] = { "libc.so.6", "libdl.so.2" };
	static const char *const versions[] = { "GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17" };

	for (size_t l = 0; l < sizeof(libs) / sizeof(*libs); l++) {
		void *lib = dlopen(libs[l], RTLD_LAZY | RTLD_NOLOAD);

		for (size_t v = 0; lib && v < sizeof(versions) / sizeof(*versions) && !ttmon_inj_next_dlsym; v++)
			ttmon_inj_next_dlsym =
				(void *(*)(void *, const char *))(uintptr_t)dlvsym(lib, "dlsym", versions[v]);
	}
}

/*
 * dlsym() examines its caller for RTLD_NEXT, so unless the answer is our function, the caller's frame
 * and return address must be its own. That is why the original is reached by a jump.
 */
#if defined(__x86_64__)
__asm__(".pushsection .text\n"
	".globl dlsym\n.globl ttmon_inj_our_dlsym\n.hidden ttmon_inj_our_dlsym\n.type dlsym, @function\n"
	"dlsym:\nttmon_inj_our_dlsym:\n"
	"	endbr64\n"
	"	push %rdi\n	push %rsi\n	sub $8, %rsp\n"
	"	call ttmon_inj_dlsym\n"
	"	add $8, %rsp\n	pop %rsi\n	pop %rdi\n"
	"	test %rax, %rax\n	jz 1f\n	ret\n"
	"1:	jmp *ttmon_inj_next_dlsym(%rip)\n"
	".size dlsym, . - dlsym\n.popsection\n");
#elif defined(__aarch64__)
__asm__(".pushsection .text\n"
	".globl dlsym\n.globl ttmon_inj_our_dlsym\n.hidden ttmon_inj_our_dlsym\n.type dlsym, %function\n"
	"dlsym:\nttmon_inj_our_dlsym:\n"
	"	stp x29, x30, [sp, -32]!\n	mov x29, sp\n	stp x0, x1, [sp, 16]\n"
	"	bl ttmon_inj_dlsym\n"
	"	mov x16, x0\n	ldp x0, x1, [sp, 16]\n	ldp x29, x30, [sp], 32\n"
	"	cbz x16, 1f\n	mov x0, x16\n	ret\n"
	"1:	adrp x16, ttmon_inj_next_dlsym\n	ldr x16, [x16, :lo12:ttmon_inj_next_dlsym]\n	br x16\n"
	".size dlsym, . - dlsym\n.popsection\n");
#else
#error "dlsym() is not written for this architecture"
#endif

static int row_of(const char *name)
{
	for (int i = 0; i < NR_TAKEN; i++)
		if (!strcmp(rows[i].name, name))
			return i;
	return -1;
}

/* Returns our function for what the program looks up; NULL: the program gets the original result. */
__attribute__((used)) void *ttmon_inj_dlsym(void *handle, const char *name)
{
	void *fn;
	int i;

	if (!ttmon_inj_next_dlsym)
		find_dlsym();
	if (!name || strncmp(name, "cu", 2) || handle == RTLD_NEXT || handle == RTLD_DEFAULT)
		return NULL;
	i = row_of(name);
	fn = i < 0 ? NULL : ttmon_inj_next_dlsym(handle, name);
	if (!fn)
		return NULL;
	if ((uintptr_t)fn != ours_of((size_t)i) && !atomic_load_explicit(&reals[i], memory_order_relaxed))
		atomic_store_explicit(&reals[i], (uintptr_t)fn, memory_order_release);
	return (void *)ours_of((size_t)i);
}

struct search {
	char path[4096];
};

static int is_driver(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *base = strrchr(info->dlpi_name, '/');
	struct search *s = arg;

	(void)size;
	base = base ? base + 1 : info->dlpi_name;
	if (strncmp(base, "libcuda.so", 10) || strlen(info->dlpi_name) >= sizeof(s->path))
		return 0;
	snprintf(s->path, sizeof(s->path), "%s", info->dlpi_name);
	return 1;
}

void *ttmon_inj_real(enum ttmon_inj_fn i)
{
	uintptr_t fn = atomic_load_explicit(&reals[i], memory_order_acquire);
	struct search s;
	void *lib;

	if (fn)
		return (void *)fn;
	if (!ttmon_inj_next_dlsym)
		find_dlsym();
	if (dl_iterate_phdr(is_driver, &s)) {
		/* The library is loaded already, so this only adds a reference, which is kept. */
		lib = dlopen(s.path, RTLD_LAZY | RTLD_NOLOAD);
		fn = lib ? (uintptr_t)ttmon_inj_next_dlsym(lib, rows[i].name) : 0;
	}
	if (fn)
		atomic_store_explicit(&reals[i], fn, memory_order_release);
	return (void *)fn;
}

/* The program got *fn for name: replace it with our function, if there is one. */
static void replace(const char *name, int version, bool ptsz, void **fn)
{
	int best = -1;

	if (!name || !fn || !*fn)
		return;
	for (int i = 0; i < NR_TAKEN; i++) {
		const struct row *r = &rows[i];

		if (!strcmp(r->name, name) && strcmp(r->base, name)) {
			best = i;
			break;
		}
		if (strcmp(r->base, name) || r->version > version || (r->ptsz && !ptsz))
			continue;
		if (best < 0 || r->version > rows[best].version || r->ptsz > rows[best].ptsz)
			best = i;
	}
	if (best < 0 || (uintptr_t)*fn == ours_of((size_t)best))
		return;
	if (!atomic_load_explicit(&reals[best], memory_order_relaxed))
		atomic_store_explicit(&reals[best], (uintptr_t)*fn, memory_order_release);
	*fn = (void *)ours_of((size_t)best);
}

#define PER_THREAD 2 /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */

int cuGetProcAddress(const char *name, void **fn, int version, uint64_t flags)
{
	int err = CALL(cuGetProcAddress, name, fn, version, flags);

	if (!err)
		replace(name, version, flags & PER_THREAD, fn);
	return err;
}

int cuGetProcAddress_v2(const char *name, void **fn, int version, uint64_t flags, int *status)
{
	int err = CALL(cuGetProcAddress_v2, name, fn, version, flags, status);

	if (!err)
		replace(name, version, flags & PER_THREAD, fn);
	return err;
}

/* ---- loaded late ---- */

#define MAX_SEGMENT (64u << 20)

/*
 * Words that are addresses of the driver's functions, or dlsym()'s, become ours. Pages that were made
 * read-only are made so again.
 */
static size_t patch(uintptr_t from, uintptr_t to, bool relro)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = from & ~(page - 1),
		  end = (to + page - 1) & ~(page - 1);
	size_t n = 0;

	if (relro && mprotect((void *)begin, end - begin, PROT_READ | PROT_WRITE))
		return 0;
	for (uintptr_t *p = (uintptr_t *)((from + 7) & ~7ul); (uintptr_t)(p + 1) <= to; p++) {
		if (*p == (uintptr_t)ttmon_inj_next_dlsym) {
			*p = (uintptr_t)ttmon_inj_our_dlsym;
			n++;
			continue;
		}
		for (size_t i = 0; *p && i < NR_TAKEN; i++) {
			if (*p != atomic_load_explicit(&reals[i], memory_order_relaxed))
				continue;
			*p = ours_of(i);
			n++;
			break;
		}
	}
	if (relro)
		mprotect((void *)begin, end - begin, PROT_READ);
	return n;
}

static int patch_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	const char *base = strrchr(info->dlpi_name, '/');
	uintptr_t relro = 0, relro_end = 0, self = (uintptr_t)reals;
	size_t *n = arg;

	(void)size;
	base = base ? base + 1 : info->dlpi_name;
	if (!strncmp(base, "libcuda.so", 10) || !strncmp(base, "ld-linux", 8) || !strncmp(base, "libc.so", 7) ||
	    !strncmp(base, "linux-vdso", 10))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && self >= at && self < at + p->p_memsz)
			return 0;
		if (p->p_type == PT_GNU_RELRO) {
			relro = at;
			relro_end = at + p->p_memsz;
		}
	}
	if (relro)
		*n += patch(relro, relro_end, true);
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t at = info->dlpi_addr + p->p_vaddr, end = at + p->p_memsz;
		uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_W) || p->p_memsz > MAX_SEGMENT)
			continue;
		/* RELRO is at the beginning of the segment; its last page may be protected whole. */
		if (relro >= at && relro < end)
			at = (relro_end + page - 1) & ~(page - 1);
		if (at < end)
			*n += patch(at, end, false);
	}
	return 0;
}

/* Called by the driver in cuInit(), where CUDA_INJECTION64_PATH names this library. */
int InitializeInjection(void)
{
	size_t n = 0;

	ttmon_inj_conf();
	if (!ttmon_inj_next_dlsym)
		find_dlsym();
	/* Preloaded too: everything has come through us from the beginning. */
	if (ttmon_inj_next_dlsym(RTLD_DEFAULT, "dlsym") == (void *)(uintptr_t)ttmon_inj_our_dlsym)
		return 1;
	for (int i = 0; i < NR_TAKEN; i++)
		ttmon_inj_real((enum ttmon_inj_fn)i);
	dl_iterate_phdr(patch_object, &n);
	ttmon_inj_say(n == 0,
		      "loaded by CUDA_INJECTION64_PATH: %zu pointers to the driver's functions were replaced; %s", n,
		      n ? "modules loaded before cuInit() are not recorded" : "none was found: LD_PRELOAD it instead");
	return 1;
}
