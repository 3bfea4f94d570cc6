/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * inj_mod.h: shared by text.c, module.c, link.c and handle.c: texts, modules, and the kernels in them.
 */
#ifndef TTMON_MEMTRACE_INJ_MOD_H
#define TTMON_MEMTRACE_INJ_MOD_H

#include "memtrace/inject/inj.h"

/*
 * A rewritten text. Its kernels are never freed: a launch must still be reported when its module is
 * gone.
 */
struct ttmon_inj_text {
	struct ttmon_inj_text *next;
	uint64_t hash[2];
	size_t len;  /* of the original */
	char *ptx;   /* rewritten; NULL: not kept, or there is none */
	void *cubin; /* what was compiled from it; NULL: nothing was, or it is not kept */
	size_t cubin_bytes;
	bool none; /* nothing in it is recorded */
	bool kept;
	struct ttmon_inj_kernel **kernels;
	size_t nr_kernels;
	struct ttmon_inj_kernel *functions; /* no kernel: the sites in functions; NULL: none */
	char module[128];
};

struct ttmon_inj_module {
	struct ttmon_inj_module *next;
	void *handle;			   /* CUmodule or CUlibrary */
	void *lib;			   /* a module of a library: that */
	void *ctx;			   /* a module's; NULL: a library */
	const struct ttmon_inj_text *text; /* NULL: as the program gave it */
	/* reason why kernels that are not in text are not recorded; NULL, "": they should be recorded */
	const char *why;
	char name[128];
};

/* A cubin that the program made with cuLink*(). */
struct ttmon_inj_linked {
	const struct ttmon_inj_text *text; /* the kernels of all inputs; NULL: none is recorded */
	const char *why; /* reason why kernels in none of its texts are not recorded; NULL: there should be none */
	const char *name;
};

/* Protects modules, kernels, handles and linked cubins. */
extern pthread_rwlock_t ttmon_inj_lock;

/* ---- compile.c ---- */

#define TTMON_INJ_JIT_MAX 16
#define TTMON_INJ_LOG	  8192
/* What a program's options (CU_JIT_*) say of machine code. */
struct ttmon_inj_jit {
	unsigned int n;
	int opts[TTMON_INJ_JIT_MAX];
	void *vals[TTMON_INJ_JIT_MAX];
	bool symbols; /* it gives addresses of symbols: only the program's own load can do that */
};

struct ttmon_inj_code {
	int err;     /* the driver's */
	void *cubin; /* the caller's, for free() */
	size_t size;
	char log[TTMON_INJ_LOG]; /* the compiler's errors */
};

void ttmon_inj_jit_take(struct ttmon_inj_jit *j, unsigned int n, const int *opts, void *const *vals);
/*
 * Compiles a text (NUL-terminated) for the current context until until_ns (CLOCK_MONOTONIC). recorder:
 * the recorder's module, linked to it; NULL: it is in the text, which is then loaded and unloaded for
 * a trial, with the functions of these names (separated by newlines), and gives no cubin. 0. -ENOSYS:
 * there is no context or no linker, or the options give symbols; -EBADMSG: the driver refused it, ret
 * has its error and the log; -ETIMEDOUT; -ENOMEM.
 */
int ttmon_inj_compile(const char *ptx, const char *recorder, const char *names, const struct ttmon_inj_jit *jit,
		      uint64_t until_ns, struct ttmon_inj_code *ret);

/* ---- text.c ---- */

struct ttmon_mt_image;

/* Held during the two calls below, and while the driver compiles: one text at a time. */
extern pthread_mutex_t ttmon_inj_rewriting;
/*
 * The rewritten text, or (none) what it says of its kernels. jit: it is compiled, without the kernels
 * that the compiler refuses (compile.c); NULL: it is an input of a link. NULL: why.
 */
const struct ttmon_inj_text *ttmon_inj_rewrite(const struct ttmon_mt_image *image, const char *module,
					       const struct ttmon_inj_jit *jit, char *why, size_t n);
/* The driver has compiled it, or will not: a text that is too much to keep goes. */
void ttmon_inj_settle(const struct ttmon_inj_text *text);
void ttmon_inj_hash(const void *data, size_t n, uint64_t ret[2]);
/* NULL: out of memory. why "" or NULL: it is recorded. */
struct ttmon_inj_kernel *ttmon_inj_kernel_new(const char *name, const char *module, const char *why);
/* Adds it to the list for good. With the lock held for writing. */
void ttmon_inj_kernel_list(struct ttmon_inj_kernel *k);
/*
 * Returns a kernel that is in no text, made when it is first requested. With the lock held for
 * writing; NULL: out of memory.
 */
struct ttmon_inj_kernel *ttmon_inj_kernel_unknown(const char *name, const char *module, const char *why);

/* ---- link.c ---- */

/*
 * Returns the link whose result the image (n as for ttmon_mt_image_ptx()) is. NULL: none, or it was
 * not followed.
 */
const struct ttmon_inj_linked *ttmon_inj_linked(const void *image, size_t n);

/* ---- module.c ---- */

/*
 * Maps a regular file that is not empty, of *n bytes, to be freed with munmap(); NULL: it cannot be
 * read.
 */
void *ttmon_inj_map(const char *path, size_t *n);

/* 90: architecture of the current context's device. */
int ttmon_inj_max_arch(void);

/*
 * A module was loaded, with the lock free. lib: it is the module of that library; ctx: its context,
 * NULL: it is a library. Copies name and why.
 */
void ttmon_inj_remember(void *handle, void *lib, void *ctx, const struct ttmon_inj_text *text, const char *name,
			const char *why);
void *ttmon_inj_current(void); /* context; NULL: none */

/* With the lock held; NULL: not known. */
struct ttmon_inj_module *ttmon_inj_module_of(const void *handle);
/*
 * Returns the kernel of that name, with the lock held for writing; a kernel that is not recorded is
 * made when it is first seen. NULL: out of memory.
 */
struct ttmon_inj_kernel *ttmon_inj_kernel_of(const struct ttmon_inj_module *m, const char *name);
/* Removes an unloaded module, or library with its modules. With the lock held for writing. */
void ttmon_inj_forget_module(const void *owner);
/* A module of a library; NULL: none is left. With the lock free. */
void *ttmon_inj_module_in(const void *lib);
/* Returns the number of kernel copies in it, which the program must not see. With the lock free. */
unsigned int ttmon_inj_copies(const void *owner);

#endif
