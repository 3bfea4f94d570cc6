/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fmt.h: formats figures for people. Each function writes a short text to buf (TTMON_FMT_LEN bytes are
 * always enough; in a smaller buffer the text is cut) and returns buf, so that it can be an argument
 * of printf. The result does not depend on the locale.
 */
#ifndef TTMON_FMT_H
#define TTMON_FMT_H

#include "lib/base/util.h"

#define TTMON_FMT_LEN 32

/* "0 B", "512 B", "1.0 KiB", "12.3 MiB", ... up to EiB; one decimal, rounded to nearest. */
char *ttmon_fmt_bytes(char *buf, size_t n, uint64_t bytes);
/* "850 ns", "12.3 us", "4.0 ms", "59.9 s", then "1 min 05 s" and "27 h 03 min". */
char *ttmon_fmt_ns(char *buf, size_t n, uint64_t ns);
/* "1,234,567" */
char *ttmon_fmt_count(char *buf, size_t n, uint64_t count);
/*
 * Marks the text of a figure v: "-" if it is not known, ">= text" if it is a lower bound above 0, else
 * the text itself. buf may be the same as text.
 */
char *ttmon_fmt_known(char *buf, size_t n, const char *text, uint64_t v, bool known, bool at_least);
/*
 * Returns the length of a character at p that must not reach a terminal: control characters (C0, DEL,
 * C1, as UTF-8 or as a single byte), and Unicode characters that change the direction of writing or
 * break lines (061C, 200E, 200F, 2028-202E, 2066-2069). 0: the character is harmless. p ends with a
 * NUL.
 */
size_t ttmon_fmt_control(const char *p);
/*
 * Copies text of another program for a terminal or log: each such character becomes '?'. The text is
 * cut to the buffer between UTF-8 sequences. text NULL: "".
 */
char *ttmon_fmt_text(char *buf, size_t n, const char *text);
/*
 * A file's name for a command line that people copy: as it is, or in quotes where a shell would take
 * it apart; control characters become '?'. Cut to what fits in n > 8 bytes.
 */
char *ttmon_fmt_quote(char *buf, size_t n, const char *path);

/* "train.py:42 in forward", of line 0, which is not known, "train.py in forward". Returns buf. */
char *ttmon_python_line(char *buf, size_t n, const char *path, uint64_t line, const char *function);

#endif
