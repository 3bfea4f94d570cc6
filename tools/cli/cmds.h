/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cmds.h: the commands of ttmon. Each gets the arguments from its own name on (argv[0]), reads its options itself,
 * and gives back the exit status of the program. Errors are one line on stderr, starting with "ttmon".
 */
#ifndef TTMON_CMDS_H
#define TTMON_CMDS_H

/* 0: all is well, 1: the answer is no (what was asked for is not in order), 2: there is no answer. */
#define TTMON_EXIT_NO	 1
#define TTMON_EXIT_ERROR 2

int cmd_status(int argc, char **argv);
int cmd_probes(int argc, char **argv);
int cmd_db(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_smi(int argc, char **argv);
int cmd_programs(int argc, char **argv);
int cmd_slots(int argc, char **argv);
int cmd_family(int argc, char **argv);
int cmd_target(int argc, char **argv);
int cmd_bugreport(int argc, char **argv);
int cmd_advise(int argc, char **argv);
int cmd_heat(int argc, char **argv);
int cmd_view(int argc, char **argv);
int cmd_memtrace(int argc, char **argv);

#endif
