# SPDX-License-Identifier: GPL-2.0-only
"""
A kernel that must fail: booted with lockdown=confidentiality, under which no BPF program may read
the kernel's memory.
"""
import os

from e2e import eq

NEEDS = "lockdown"
SENTENCE = (
    "ttmond: this kernel is locked down (lockdown=confidentiality): no BPF program may read its memory, which tracing "
    "needs; "
    "under lockdown=integrity it may"
)


def test_refused_with_the_reason(bench, _):
    """One line, exit status 1 and nothing left; the command is not run."""
    eq("what it says of the whole host", bench.refused([], status=1), SENTENCE)
    eq("what it says of a process", bench.refused(["--pid", str(os.getppid())], status=1), SENTENCE)
    eq("what it says of a command", bench.refused([], status=1, cmd=["touch", bench.path("ran")]), SENTENCE)
    eq("the command was run", os.path.exists(bench.path("ran")), False)
