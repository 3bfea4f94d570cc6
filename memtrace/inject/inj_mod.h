/* SPDX-License-Identifier: GPL-2.0-only */
/* inj_mod.h: what module.c and handle.c share: modules, and the kernels in them. */
#ifndef TTMON_MEMTRACE_INJ_MOD_H
#define TTMON_MEMTRACE_INJ_MOD_H

#include "memtrace/inject/inj.h"

/* A text that was rewritten. Kernels live to the end of the process: what was launched must still be told when its module is gone. */
struct ttmon_inj_text {
	struct ttmon_inj_text *next;
	uint64_t hash[2];
	size_t len; /* of the original */
	char *ptx;  /* rewritten; NULL: not kept, or there is none */
	bool none;  /* nothing in it is recorded */
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
	const struct ttmon_inj_text *text; /* NULL: as the program gave it */
	const char *why;		   /* then: why its kernels are not recorded */
	char name[128];
};

/* Of modules, kernels and handles. */
extern pthread_rwlock_t ttmon_inj_lock;

/* A module was loaded, with the lock free. lib: it is the module of that library. Copies name and why. */
void ttmon_inj_remember(void *handle, void *lib, const struct ttmon_inj_text *text, const char *name, const char *why);

/* With the lock held; NULL: not known. */
struct ttmon_inj_module *ttmon_inj_module_of(const void *handle);
/* The kernel of that name, with the lock held for writing; one that is not recorded is made when it is first seen. NULL: no memory. */
struct ttmon_inj_kernel *ttmon_inj_kernel_of(const struct ttmon_inj_module *m, const char *name);
/* It was unloaded, and what is of it as a library. With the lock held for writing. */
void ttmon_inj_forget_module(const void *owner);
/* A module of a library; NULL: none is left. With the lock free. */
void *ttmon_inj_module_in(const void *lib);
/* How many copies of kernels are in it, which the program must not see. With the lock free. */
unsigned int ttmon_inj_copies(const void *owner);

#endif
