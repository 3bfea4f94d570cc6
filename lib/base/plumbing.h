/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * plumbing.h: which frames of a call stack belong to allocators, frameworks and runtimes, and not to
 * the program. A call site is identified by the program's own frames, so that two lines that allocate
 * through one library are two sites, and another version of the library does not change a site. Pure,
 * any thread.
 *
 * Built-in patterns cover the C and C++ libraries, the CUDA runtime and driver, PyTorch's libraries,
 * the Python interpreter with its standard library, and libttmon. A file of the user has further
 * patterns, one a line; the first one that matches decides, before the built-in ones:
 *
 *	# a comment
 *	object libpool.so*		base name of the file
 *	function pool_*			symbol
 *	namespace mylib			symbols of C++ or Rust in this outermost namespace or class
 *	python * /mylib/ *		path of the Python file (without the blanks)
 *	own object libmine.so*		the opposite: these frames are the program's own
 *
 * '*' stands for any text, '/' included, '?' for one character.
 */
#ifndef TTMON_PLUMBING_H
#define TTMON_PLUMBING_H

#include "lib/base/util.h"

#define TTMON_PLUMBING_MAX 4096 /* the most patterns of a user */

struct ttmon_plumbing;

/*
 * Parses the patterns of a user. *ret: to be freed. -EINVAL, -E2BIG (more than TTMON_PLUMBING_MAX),
 * -ENOMEM, with a line of text in why.
 */
int ttmon_plumbing_parse(const char *text, size_t n, struct ttmon_plumbing **ret, char *why, size_t why_size);
void ttmon_plumbing_free(struct ttmon_plumbing *p);

/*
 * Each returns whether the frame is plumbing. p NULL: only the built-in patterns. path: that of an ELF
 * file or of a Python file, not NULL. function: a symbol, not demangled; NULL: not known.
 */
bool ttmon_plumbing_native(const struct ttmon_plumbing *p, const char *path, const char *function);
bool ttmon_plumbing_python(const struct ttmon_plumbing *p, const char *path);
/*
 * Returns whether the ELF file is a Python interpreter. If native frames in it are in a stack without
 * Python frames, it is not known which lines the stack has.
 */
bool ttmon_plumbing_is_interpreter(const char *path);

TTMON_FREEP(ttmon_plumbing_freep, struct ttmon_plumbing, ttmon_plumbing_free);

#endif
