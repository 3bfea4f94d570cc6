/* SPDX-License-Identifier: GPL-2.0-only */
/* mt.h: the commands of `ttmon memtrace`. */
#ifndef TTMON_TOOLS_MT_H
#define TTMON_TOOLS_MT_H

#include "lib/os/cli.h"

extern const struct ttmon_cli_cmd
	ttmon_mt_cmd_report; /* report.c: tables and findings; the default of `ttmon memtrace FILE` */
extern const struct ttmon_cli_cmd ttmon_mt_cmd_print;	/* print.c: prints records as lines */
extern const struct ttmon_cli_cmd ttmon_mt_cmd_convert; /* print.c: converts to ttmon's own format */
extern const struct ttmon_cli_cmd ttmon_mt_cmd_diff;	/* diff.c */
extern const struct ttmon_cli_cmd ttmon_mt_cmd_record;	/* record.c: runs a program with libttmon-memtrace.so */
extern const struct ttmon_cli_cmd ttmon_mt_cmd_view;	/* view.c: makes a page */

#define TTMON_MT_REPORT_ABOUT                                                                                        \
	"Shows what the memory accesses of GPU kernels cost, instruction by instruction. FILE is a trace of "        \
	"NVBit's mem_trace\n"                                                                                        \
	"(text or raw records), of Accel-Sim's tracer, or of ttmon (NAME.ttmt), plain, .gz or .zst. Standard input " \
	"is read\n"                                                                                                  \
	"as it arrives: app 2>&1 | ttmon memtrace -"
int ttmon_mt_run_report(const struct ttmon_cli *cli, void *args); /* its run function */

#endif
