/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * demangle.h: names of functions as people write them: the symbol of a C++ or Rust function to its
 * name without parameters, return type, template arguments and suffixes of the compiler. For what
 * people read alone: in databases, JSON, metrics and recordings, and where runs are matched, a
 * function is its symbol. Pure, any thread.
 *
 * libiberty reads the symbol. Symbols are what the authors of other people's files chose, so it
 * runs in the programs that show names, and in no process that has rights (daemon/run/names.h).
 */
#ifndef TTMON_DEMANGLE_H
#define TTMON_DEMANGLE_H

#include "lib/base/util.h"

/* Bytes of a symbol; a longer one stays as it is. libiberty reads no longer one of C++ either. */
#define TTMON_DEMANGLE_SYMBOL 1024
/* Bytes of a name with its arguments; with a longer one the symbol stays as it is. */
#define TTMON_DEMANGLE_WHOLE 16384
/* A buffer that takes all that is shown of most names. */
#define TTMON_DEMANGLE_NAME 512

/*
 * "_ZN2at6nativeL9copy_implERNS_6TensorERKS1_b.isra.0": "at::native::copy_impl"; "_Z3addIiEvT_":
 * "add<...>". (anonymous namespace) is left out. What is no symbol of C++ or Rust stays as it is.
 * The text is cleaned for a terminal as by ttmon_fmt_text() and cut to n. Returns buf.
 */
char *ttmon_demangle(char *buf, size_t n, const char *symbol);

#endif
