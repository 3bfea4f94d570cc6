/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * python.h: code objects of CPython 3.11 to 3.13 as the probe copied them (include/ttmon/python.h),
 * and Python frames among the native ones. Pure; what is read was written by a traced program.
 */
#ifndef TTMON_UNWIND_PYTHON_H
#define TTMON_UNWIND_PYTHON_H

#include <ttmon/stack.h>

#include "lib/unwind/walk.h"

/*
 * A string as UTF-8 into buf, with its NUL. room: bytes of text that there are. False: it does not
 * fit, is empty, or no such string.
 */
bool ttmon_py_text(const struct ttmon_py_str *s, const uint8_t *text, size_t room, char *buf, size_t n);

/*
 * The line of the instruction at off (of struct ttmon_py_frame), by a location table of n bytes. 0: it
 * has none, or the table does not say.
 */
uint32_t ttmon_py_line(const uint8_t *table, size_t n, uint32_t firstlineno, uint32_t off);

/*
 * The Python frames of a copy among the native ones that r has: those that one C frame of the
 * interpreter runs stand where it is, and native frames of the interpreter's own code are left out.
 * lines: what stands for each of c->py, 0: nothing. At most max frames into out, how many is
 * returned. *end: where
 * they end.
 */
unsigned int ttmon_py_merge(const struct ttmon_stack_copy *c, const struct ttmon_uw_result *r, const uint64_t *lines,
			    unsigned int max, uint64_t *out, enum ttmon_stack_end *end);

#endif
