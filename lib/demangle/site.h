/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * site.h: call sites as people read them: "at::native::copy_kernel_cuda+0x50b <
 * at::native::copy_impl < ... < THPVariable_to". Pure, any thread. Frames come innermost first,
 * each as a symbol or the base name of a file, with "+0x12" where that is to be shown.
 */
#ifndef TTMON_DEMANGLE_SITE_H
#define TTMON_DEMANGLE_SITE_H

#include "lib/base/util.h"

#define TTMON_SITE_FRAMES 64   /* of a call site, more than any has; what comes after is not shown */
#define TTMON_SITE_WHOLE  8192 /* a buffer that takes nearly every call site whole, mangled or not */

/*
 * Names that are short and clean already, joined so that they take columns (0: no limit) and n
 * bytes at most, with a byte for a column. A name is left out whole, and "..." stands where some
 * are missing. Kept are the first, as what made the call, and the last before the program's own
 * code, as what that called: that is the frame before the first of the Python interpreter, else
 * the outermost. Frames of start-up code (_start, those of libc) are not shown after others. Where
 * these two do not fit, their namespaces are left out, from the left; then the first stands alone,
 * and is cut at its end at last. Returns buf.
 */
char *ttmon_site_join(char *buf, size_t n, const char *const *names, size_t nr, size_t columns);
/* The same of symbols: each is shown by ttmon_demangle(). */
char *ttmon_site_show(char *buf, size_t n, const char *const *symbols, size_t nr, size_t columns);
/* The same of one text "a+0x12 < b < c", as JSON has call sites. */
char *ttmon_site_show_text(char *buf, size_t n, const char *site, size_t columns);

#endif
