# SPDX-License-Identifier: GPL-2.0-only
"""
The RMID module kmod/ on a machine whose RDT is faked (rdt/): it takes the kernel's word for what
there is; the registers do nothing.
"""
import os
import subprocess
import time

from e2e import eq, true
from kmod_lib import Procs, Trace, busybox, dmesg, folder, info, module

NEEDS = "rdt"
RESCTRL = "/sys/fs/resctrl"


def test_kmod_resctrl(_, __):
    """Where resctrl is mounted it is refused."""
    subprocess.run(["mount", "-t", "resctrl", "resctrl", RESCTRL], check=True)
    try:
        status, out = busybox("insmod", os.path.join(folder(), "ttmon_rmid.ko"))
        true(f"insmod: {status} {out}", status != 0 and "busy" in out)
        true("the log says why", "ttmon_rmid: resctrl is mounted" in dmesg())
    finally:
        subprocess.run(["umount", RESCTRL], check=True)
    with module():
        pass


def test_kmod_hardware(_, __):
    """Registers are programmed; what is read is 0, for every RMID and in both L3 domains."""
    with module(), Trace("rdt_sample", "rmid_existing", "measure_perf_counters") as trace:
        got = info()
        eq(
            "as it is",
            [got[k] for k in ("mode", "max_rmid", "scale", "width", "events", "domains")],
            ["hardware", "31", "65536", "32", "7", "2"],
        )
        with Procs("hold", 8), Procs("burn", 200):
            time.sleep(0.2)
    samples = [e for e in trace.events if e["event"] == "rdt_sample"]
    eq("domains", len({e["domain"] for e in samples}), 2)
    true(f"{len({e['rmid'] for e in samples})} RMIDs", len({e["rmid"] for e in samples}) >= 8)
    eq("values", {e[name] for e in samples for name in ("llc_occupancy", "mbm_total", "mbm_local")}, {"0 (0)"})
    with module(force_emulated=1):
        eq("emulated", [info()[k] for k in ("mode", "max_rmid", "events")], ["emulated", "511", "0"])
