#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""check.py REAL WORKLOAD LIBDIR: ttmond on the real runtime and driver; called by run.sh. One line a check: ok, FAIL or SKIP."""
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))
import e2e  # noqa: E402
from e2e import eq, last_json, process, same_transfers, true, whole  # noqa: E402

REAL, WORKLOAD, LIBDIR = (os.path.abspath(p) for p in sys.argv[1:4])


def check_books(db, out, names):
    book = last_json(out)
    whole(db)
    proc = process(db, book["pid"])
    same_transfers(proc, book)
    eq("pins, allocs, frees", [proc[k] for k in ("pins", "allocs", "frees")], [book[k] for k in ("pins", "allocs", "frees")])
    eq("failed", proc["failed"], book["failed"])
    true("no call of " + names, any(re.match(names, a["fn"] or "") for a in db["allocations"]))


def runtime_level(bench):
    """Calls of the runtime, which calls the driver: each counts once."""
    out, db, daemon = bench.trace([REAL])
    check_books(db, out, "cuda")
    stepped = re.search(r"single.stepped", daemon.stderr())
    print(f"  single-stepped probes: {'yes' if stepped else 'none said'}")


def demonstration(bench):
    """The demonstration's workload on a real device."""
    out, db, _ = bench.trace([WORKLOAD], env={"LD_LIBRARY_PATH": LIBDIR})
    true("the workload did not run", "steps" in out)
    advice = {a["advice"] for a in db["advice"]}
    true(f"advice {advice}", {"pin", "unpin"} <= advice)


def driver_level(bench):
    """The driver is found and probed beside the runtime."""
    env = {"LD_LIBRARY_PATH": LIBDIR}
    _, db, _ = bench.trace([REAL], env=env)
    drivers = [o for o in db["objects"] if o["path"] and "libcuda.so" in o["path"]]
    true("libcuda is not among the objects", drivers)
    print(f"  driver object: {drivers[0]['path']}")


def main():
    failed = 0
    for check in (runtime_level, demonstration, driver_level):
        with tempfile.TemporaryDirectory(prefix="ttmon-gpu-") as folder:
            bench = e2e.Bench(folder)
            try:
                check(bench)
                print(f"ok gpu/{check.__name__}")
            except e2e.Skip as why:
                print(f"SKIP gpu/{check.__name__}: {why}")
            except AssertionError as why:
                failed += 1
                print(f"FAIL gpu/{check.__name__}: {why}")
                bench.show_logs()
            finally:
                bench.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
