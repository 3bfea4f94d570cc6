/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * every.h: shared by everyrt.c and everydrv.c: a call of a function under each of its names, and the
 * accounts of the calls. The arguments follow the parameter lists of the CUDA headers, not ttmon's
 * table of argument positions, since that table is what is tested.
 */
#ifndef EVERY_H
#define EVERY_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Widths of the rectangles and arrays; sizes of copies stay below. */
#define EVERY_ROW 4096
#define EVERY_BUF (4 * EVERY_ROW)

/*
 * The size of the current call. Each call has a different one, so that the calls can be found in the
 * database.
 */
extern size_t n;

/*
 * A line of the accounts: the called function, the event that the database must have for it, and its
 * bytes.
 */
void did(const char *fn, const char *event, size_t bytes);
struct every_book {
	uint64_t d2d, d2d_bytes, kernels, graphs, graph_copies, captured;
};
extern struct every_book every;

/*
 * Calls name under its own name and with each suffix it is exported with; then executes effect, in
 * which `fn` is the called name.
 */
#define EVERY(name, args, effect)                                                                 \
	do {                                                                                      \
		static const char *const every_names[] = { #name, #name "_ptds", #name "_ptsz" }; \
		int every_found = 0;                                                              \
		for (int every_i = 0; every_i < 3; every_i++) {                                   \
			const char *fn = every_names[every_i];                                    \
			__typeof__(name) *every_fn = (__typeof__(name) *)dlsym(RTLD_DEFAULT, fn); \
			must(every_fn ? (n++, (int)every_fn args) : 0, fn);                       \
			if (every_fn) {                                                           \
				every_found++;                                                    \
				(void)fn;                                                         \
				effect;                                                           \
			}                                                                         \
		}                                                                                 \
		must(!every_found, #name " is not there");                                        \
	} while (0)
#define TO_DEV(name, args)	     EVERY(name, args, did(fn, "h2d", n))
#define TO_DEV_2D(name, args)	     EVERY(name, args, did(fn, "h2d", 2 * n))
#define FROM_DEV(name, args)	     EVERY(name, args, did(fn, "d2h", n))
#define FROM_DEV_2D(name, args)	     EVERY(name, args, did(fn, "d2h", 2 * n))
#define ON_DEV(name, args)	     EVERY(name, args, (every.d2d++, every.d2d_bytes += n))
#define ON_DEV_2D(name, args)	     EVERY(name, args, (every.d2d++, every.d2d_bytes += 2 * n))
#define COUNTED(counter, name, args) EVERY(name, args, every.counter++)

/* A call that is not under test. */
#define MUST(call) must((int)(call), #call)
void must(int err, const char *what);

void every_runtime(void);
void every_driver(void);

#endif
