# SPDX-License-Identifier: GPL-2.0-only
"""make demo: the workload's two mistakes are named, by call site with function names."""
import os

from e2e import OUT, eq, fast, true, whole

WORKLOAD = os.path.join(OUT, "demo", "workload")


def functions(db, site):
    return [f[2] or "" for f in db["sites"][site]["frames"]]


def advised(db, advice, function):
    return [
        a
        for a in db["advice"]
        if a["advice"] == advice and any(f.startswith(function) for f in functions(db, a["site"]))
    ]


@fast
def test_advice(bench):
    _, db, daemon = bench.trace([WORKLOAD])
    whole(db)
    true("what upload_batch copies is not to be pinned", advised(db, "pin", "upload_batch"))
    true("alloc_staging_never_used is not to be unpinned", advised(db, "unpin", "alloc_staging_never_used"))
    eq(
        "other advice for the weights",
        advised(db, "unpin", "alloc_weights_pinned") + advised(db, "pin", "alloc_weights_pinned"),
        [],
    )
    for name in ("upload_batch", "alloc_staging_never_used"):
        true(f"{name} is not in the summary", name in daemon.stderr())
