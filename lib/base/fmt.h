/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fmt.h: figures for people. Each writes a short text into buf (TTMON_FMT_LEN bytes are always enough;
 * a smaller buffer is cut) and gives buf back, so that it can stand in the argument list of a printf.
 * Same in every locale.
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
 * The text of the figure v with what it is worth: "-" where it is not known, ">= text" where it is a
 * lower bound that says something, else the text. buf may be text.
 */
char *ttmon_fmt_known(char *buf, size_t n, const char *text, uint64_t v, bool known, bool at_least);
/*
 * The length of what begins at p if a terminal obeys it, or turns or breaks the line it is in: control
 * characters (C0, DEL, C1, as UTF-8 or as a byte by itself), and those of Unicode for direction and
 * lines (061C, 200E, 200F, 2028-202E, 2066-2069). 0: it is neither. p ends with a NUL.
 */
size_t ttmon_fmt_control(const char *p);
/*
 * Text that somebody else chose, for a terminal or the log: each of these becomes '?'; cut to what
 * fits, not within a UTF-8 sequence. text
 * NULL: "".
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
