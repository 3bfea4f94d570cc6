/* SPDX-License-Identifier: GPL-2.0-only */
/* python.bpf.h: the Python frames of the thread that hit the probe (include/ttmon/python.h). */
#ifndef TTMON_PYTHON_BPF_H
#define TTMON_PYTHON_BPF_H

#include "gather.bpf.h"

#include <ttmon/python.h>
#include <ttmon/stack.h>

/*
 * Processes with an interpreter of known layout, by tgid. fork() copies the entry, exec removes it.
 */
struct pythons_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, u32);
	__type(value, struct ttmon_py_layout);
};

/* The time at which a code object was sent last, by a hash of its process, address and contents. */
struct codes_map {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, u64);
	__type(value, u64);
};

extern struct pythons_map pythons SEC(".maps");
extern struct codes_map codes SEC(".maps");
extern u32 any_python;	/* 0: no process has an interpreter of known layout */
extern u64 codes_since; /* code objects that were sent before this time have to be sent again */

/*
 * Stores the Python frames in t->py. Returns enum ttmon_py_state. sp: the stack pointer as in the copy
 * of the stack; `entry` of a frame is relative to it. It is in python.bpf.c as a global function, so
 * that the verifier checks it once instead of at each call.
 */
int walk_python(struct task_state *t, const struct ttmon_py_layout *o, u64 sp);

#endif
