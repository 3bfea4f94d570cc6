/* SPDX-License-Identifier: GPL-2.0-only */
/* mt.h: the commands of `ttmon memtrace`. Each gets the arguments from its own name on, as tools/cli/cmds.h says. */
#ifndef TTMON_TOOLS_MT_H
#define TTMON_TOOLS_MT_H

int ttmon_mt_cmd_report(int argc, char **argv);	 /* report.c: tables and findings; what `ttmon memtrace FILE` is */
int ttmon_mt_cmd_print(int argc, char **argv);	 /* print.c: records as lines */
int ttmon_mt_cmd_convert(int argc, char **argv); /* print.c: to our own file */
int ttmon_mt_cmd_diff(int argc, char **argv);	 /* diff.c */
int ttmon_mt_cmd_record(int argc, char **argv);	 /* record.c: runs a program with libttmon-memtrace.so */
int ttmon_mt_cmd_view(int argc, char **argv);	 /* view.c: a page */

#endif
