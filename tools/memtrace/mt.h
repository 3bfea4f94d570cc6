/* SPDX-License-Identifier: GPL-2.0-only */
/* mt.h: the commands of `ttmon memtrace`. */
#ifndef TTMON_TOOLS_MT_H
#define TTMON_TOOLS_MT_H

#include "lib/os/cli.h"

extern const struct ttmon_cli_cmd
	ttmon_mt_cmd_report;			      /* report.c: tables and findings; what `ttmon memtrace FILE` is */
extern const struct ttmon_cli_cmd ttmon_mt_cmd_print; /* print.c: records as lines */
extern const struct ttmon_cli_cmd ttmon_mt_cmd_convert; /* print.c: to our own file */
extern const struct ttmon_cli_cmd ttmon_mt_cmd_diff;	/* diff.c */
extern const struct ttmon_cli_cmd ttmon_mt_cmd_record;	/* record.c: runs a program with libttmon-memtrace.so */
extern const struct ttmon_cli_cmd ttmon_mt_cmd_view;	/* view.c: a page */

#define TTMON_MT_REPORT_ABOUT                                                                                                                     \
	"What the memory accesses of GPU kernels cost, instruction by instruction: a trace of NVBit's mem_trace (its text, or raw records), of\n" \
	"Accel-Sim's tracer, or of ttmon (NAME.ttmt), plain, .gz or .zst. Standard input is read while it comes: app 2>&1 | ttmon memtrace -"
int ttmon_mt_run_report(const struct ttmon_cli *cli, void *args); /* run() of it */

#endif
