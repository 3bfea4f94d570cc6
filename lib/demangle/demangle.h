/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * demangle.h: turns the symbol of a C++ or Rust function into its name without parameters, return
 * type, template arguments and compiler suffixes. Only for display: databases, JSON, metrics,
 * recordings and the matching of runs use the symbol. Pure, any thread.
 *
 * libiberty parses the symbol. Symbols come from untrusted files, so this code runs in the client
 * programs and in an unprivileged process (daemon/run/names.h), never in a privileged one.
 */
#ifndef TTMON_DEMANGLE_H
#define TTMON_DEMANGLE_H

#include "lib/base/util.h"

/* Longest symbol in bytes; a longer one stays as it is. libiberty has the same limit for C++. */
#define TTMON_DEMANGLE_SYMBOL 1024
/* Longest name with its arguments, in bytes; otherwise the symbol stays as it is. */
#define TTMON_DEMANGLE_WHOLE 16384
/* Size of a buffer that is enough for most names. */
#define TTMON_DEMANGLE_NAME 512

/*
 * "_ZN2at6nativeL9copy_implERNS_6TensorERKS1_b.isra.0" becomes "at::native::copy_impl", "_Z3addIiEvT_"
 * becomes "add<...>". (anonymous namespace) is left out. A text that is no C++ or Rust symbol stays as
 * it is. The result is cleaned for a terminal as by ttmon_fmt_text() and cut to n. Returns buf.
 */
char *ttmon_demangle(char *buf, size_t n, const char *symbol);

#endif
