/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * site.h: text of call sites for people: "at::native::copy_kernel_cuda+0x50b < at::native::copy_impl <
 * ... < THPVariable_to". Pure, any thread. Frames are given innermost first, each as a symbol or the
 * base name of a file, with "+0x12" if that should be shown.
 */
#ifndef TTMON_DEMANGLE_SITE_H
#define TTMON_DEMANGLE_SITE_H

#include "lib/base/util.h"

#define TTMON_SITE_FRAMES 64   /* the most frames shown; no call site has more */
#define TTMON_SITE_WHOLE  8192 /* size of a buffer that is enough for nearly every call site, mangled or not */

/*
 * Joins names, which must be short and clean already, to at most columns (0: no limit) and n bytes;
 * each byte counts as a column. A name is left out completely, and "..." marks the gap. Two names are
 * always kept: the first, which made the call, and the last one before the program's own code, which
 * shows what the program called (the frame before the first of the Python interpreter, otherwise the
 * outermost). Start-up code (_start and frames of libc) is not shown behind other frames. If these two
 * do not fit, their namespaces are removed from the left; then only the first is shown, cut at its end
 * if necessary. Returns buf.
 */
char *ttmon_site_join(char *buf, size_t n, const char *const *names, size_t nr, size_t columns);
/* The same for symbols: each is demangled with ttmon_demangle(). */
char *ttmon_site_show(char *buf, size_t n, const char *const *symbols, size_t nr, size_t columns);
/* The same for a text "a+0x12 < b < c", which is the form of call sites in JSON. */
char *ttmon_site_show_text(char *buf, size_t n, const char *site, size_t columns);

#endif
