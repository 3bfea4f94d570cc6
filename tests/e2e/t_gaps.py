# SPDX-License-Identifier: GPL-2.0-only
"""
t_gaps.py: what is missed of a library's first calls, by how a program comes to be traced. The database agrees with
the program's own book: where calls were missed it is not complete and has a gap that they lie in; where it says
complete, or has no gap, none were. tests/bench/gaps.py shows how long the gaps are.
"""
from e2e import timeout
from gap_host import WAYS, state

HOW = {way: (how, none) for way, how, none in WAYS}
MS = 60


def agrees(bench, way, library="libcudart"):
    s = state(library)
    how, none = HOW[way]
    how(bench, s, MS).check(s, none)


@timeout(60)
def test_command(bench):
    agrees(bench, "-- CMD")


@timeout(60)
def test_pid_at_start(bench):
    agrees(bench, "--pid at start")


@timeout(60)
def test_pid_mid_run(bench):
    agrees(bench, "--pid mid-run")


@timeout(60)
def test_known(bench):
    agrees(bench, "known")


@timeout(60)
def test_looked_ahead(bench):
    agrees(bench, "looked ahead")


@timeout(60)
def test_first_contact(bench):
    agrees(bench, "first contact")


@timeout(60)
def test_first_contact_of_tenstorrent(bench):
    agrees(bench, "first contact", "tenstorrent")


@timeout(60)
def test_new_inode_of_the_real_driver(bench):
    agrees(bench, "new inode", "libcuda")


@timeout(60)
def test_dlopen(bench):
    agrees(bench, "dlopen")


@timeout(60)
def test_static_runtime(bench):
    agrees(bench, "static runtime")


@timeout(60)
def test_one_function_refused(bench):
    agrees(bench, "first contact", "one refused")


@timeout(60)
def test_exec_storm(bench):
    agrees(bench, "exec storm")
