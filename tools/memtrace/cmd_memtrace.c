// SPDX-License-Identifier: GPL-2.0-only
/* cmd_memtrace.c: `ttmon memtrace` and its commands; the default command is report. */
#include "tools/cli/cmds.h"
#include "tools/memtrace/mt.h"
#include "tools/memtrace/tool.h"

const struct ttmon_cli_cmd ttmon_cmd_memtrace = {
	.name = "ttmon memtrace",
	.summary = "memory accesses of GPU kernels: record, read, analyse, compare",
	.args = "[report] [OPTIONS] FILE|-\nprint|convert|diff|record|view ..., see ttmon memtrace COMMAND --help",
	.about = TTMON_MT_REPORT_ABOUT,
	.notes = "What the figures mean: ttmon-memtrace(1).",
	TTMON_MT_ARGS(TTMON_MT_REPORT),
	.subs = (const struct ttmon_cli_cmd *const[]){ &ttmon_mt_cmd_report, &ttmon_mt_cmd_print, &ttmon_mt_cmd_convert,
						       &ttmon_mt_cmd_diff, &ttmon_mt_cmd_record, &ttmon_mt_cmd_view,
						       NULL },
	.run = ttmon_mt_run_report,
};
