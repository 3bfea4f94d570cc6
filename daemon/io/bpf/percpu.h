/* SPDX-License-Identifier: GPL-2.0-only */
/* percpu.h: where the kernel's variables of each CPU are, by its BTF. */
#ifndef TTMON_PERCPU_H
#define TTMON_PERCPU_H

#include "lib/base/util.h"

struct ttmon_percpu_var {
	const char *name;
	const char *member; /* of the structure that the variable is; NULL: the variable itself */
	uint64_t offset;    /* from the begin of a CPU's area; valid if found */
	bool found;
};

/* Looks the n variables up by name. -errno: the kernel has no BTF, or there is no memory. */
int ttmon_percpu_find(struct ttmon_percpu_var *vars, size_t n) _must_check;

#endif
