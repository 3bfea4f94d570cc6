# SPDX-License-Identifier: GPL-2.0-only
"""
RMIDs by the kernel's resctrl, on a machine whose RDT is faked (rdt/): the groups are the kernel's,
the readings are chosen (rdt/fakeqm).
"""
import contextlib
import glob
import json
import os
import socket
import subprocess
import sys

from e2e import Skip, eq, true
from kmod_lib import Procs, folder, wait

NEEDS = "rdt"
ROOT = "/sys/fs/resctrl"
RMIDS = 32  # of the faked CPU, 0 is the root's
DOMAINS = 2
PARAMETERS = "/sys/module/fakeqm/parameters"


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


def write(text, *path):
    with open(os.path.join(*path), "w", encoding="utf-8") as f:
        f.write(text)


def mount():
    """Whether with -o debug, which came with Linux 6.7: RMIDs can be seen."""
    if not subprocess.run(
        ["mount", "-t", "resctrl", "-o", "debug", "resctrl", ROOT], capture_output=True, check=False
    ).returncode:
        return True
    subprocess.run(["mount", "-t", "resctrl", "resctrl", ROOT], check=True)
    return False


def unmount():
    """It is busy only while the daemon is at it."""
    wait("umount", lambda: not subprocess.run(["umount", ROOT], capture_output=True, check=False).returncode)


class Resctrl:
    """Mounted, with readings that are ours."""

    def __init__(self):
        self.folder = os.environ.get("FAKEQM", "-run.py did not build it")
        if self.folder.startswith("-"):
            raise Skip("no fakeqm: " + self.folder[1:])
        self.debug = False

    def module(self, *args):
        busybox = os.path.join(self.folder, "..", "..", "..", "tools", "bin", "busybox")
        subprocess.run([busybox, *args], check=True)

    def __enter__(self):
        self.module("insmod", os.path.join(self.folder, "fakeqm.ko"))
        self.debug = mount()
        return self

    def __exit__(self, *_):
        unmount()
        self.module("rmmod", "fakeqm")

    @staticmethod
    def set(name, value):
        """A reading of each RMID: a function of it, or the same for all."""
        values = [value(i) if callable(value) else value for i in range(RMIDS)]
        write(",".join(map(str, values)), PARAMETERS, name)


class Later(Procs):
    """A program that begins when it is told to: what it is and forks then is traced from its start."""

    def __init__(self, *args):
        self.book = None
        words = ["sh", "-c", 'read x; exec "$0" "$@"', *map(str, args)]
        self.proc = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def begin(self):
        self.say("")
        self.book = json.loads(self.proc.stdout.readline())
        return [self.book["pid"], *self.book["children"]]


def hold(n):
    return Later(os.path.join(folder(), "procs"), "hold", n)


class Service:
    """ttmond on these programs, which begin now."""

    def __init__(self, bench, *targets, args=()):
        self.sock = bench.path("sock")
        words = [word for target in targets for word in ("--pid", str(target.proc.pid))]
        self.daemon = bench.daemon("--rmid", "resctrl", "--rdt-rate", "10", "--socket", self.sock, *words, *args)
        self.pids = [target.begin() for target in targets]

    def get(self, route):
        with socket.socket(socket.AF_UNIX) as conn:
            conn.connect(self.sock)
            conn.sendall(f"GET /v1/{route} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            return json.loads(b"".join(iter(lambda: conn.recv(65536), b"")).split(b"\r\n\r\n", 1)[1])

    def status(self):
        return self.get("status")["rmid"]

    def processes(self):
        return {p["pid"]: p for p in self.get("processes")["processes"]}

    def stop(self):
        self.daemon.stop()


def groups(where=ROOT):
    """{process: folder} of ttmond's groups."""
    return {int(path.rsplit("-", 1)[1].split(".")[0]): path for path in glob.glob(f"{where}/mon_groups/ttmon-*.*-*.*")}


def tasks(folder):
    return sorted(map(int, read(folder, "tasks").split()))


def divided():
    """Tasks of each group of ours."""
    result = []
    for path in groups().values():
        with contextlib.suppress(OSError):  # it goes at this moment
            result.append(tasks(path))
    return sorted(result)


def threads(pid):
    return sorted(map(int, os.listdir(f"/proc/{pid}/task")))


def has_groups(*pids):
    wait(f"groups of {len(pids)} processes", lambda: set(groups()) == set(pids))


def test_groups(bench, _):
    """One for each process, of all its threads; gone with it; and nobody else's is touched."""
    many = """import json, os, sys, threading, time
for i in range(20):
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
print(json.dumps({"pid": os.getpid(), "children": []}), flush=True)
sys.stdin.readline()"""
    with Resctrl(), hold(3) as procs, Later(sys.executable, "-S", "-c", many) as python:
        for name in ("pod", "ttmon-999999.1-5.6", "ttmon-1"):
            os.mkdir(f"{ROOT}/mon_groups/{name}")
        service = Service(bench, procs, python)
        (pid, *children), (other,) = service.pids
        has_groups(pid, *children, other)
        eq("a stale group", os.path.exists(f"{ROOT}/mon_groups/ttmon-999999.1-5.6"), False)
        for one in (pid, *children, other):
            wait(f"tasks of {one}", lambda one=one: tasks(groups()[one]) == threads(one))
        eq("threads", len(tasks(groups()[other])), 21)
        status = service.status()
        eq(
            "as it is",
            [status[k] for k in ("backend", "source", "reason", "max_rmid", "groups")],
            ["resctrl", ROOT, "", RMIDS - 1, 5],
        )
        python.say("")
        has_groups(pid, *children)
        procs.say(0)
        has_groups(pid, *children[1:])
        service.stop()
        eq(
            "groups afterwards",
            sorted(os.path.basename(p) for p in glob.glob(f"{ROOT}/mon_groups/*")),
            ["pod", "ttmon-1"],
        )
        true("tasks are back in the root's", {pid, *children[1:]} <= set(tasks(ROOT)))


def test_groups_of_others(bench, _):
    """A task in somebody's monitoring group stays there; one in a control group gets a monitoring group beneath it."""
    with Resctrl(), hold(1) as pod, hold(1) as batch:
        os.mkdir(f"{ROOT}/mon_groups/pod")
        os.mkdir(f"{ROOT}/batch")
        write(str(pod.proc.pid), ROOT, "mon_groups/pod/tasks")
        write(str(batch.proc.pid), ROOT, "batch/tasks")
        service = Service(bench, pod, batch)
        theirs, ours = service.pids
        wait("groups", lambda: set(groups(f"{ROOT}/batch")) == set(ours))
        for pid in ours:
            wait(f"tasks of {pid}", lambda pid=pid: tasks(groups(f"{ROOT}/batch")[pid]) == [pid])
            eq("its control group", read(f"/proc/{pid}/cpu_resctrl_groups").split("\n")[0], "res:batch")
        eq("groups elsewhere", groups(), {})
        eq("tasks of somebody else's group", tasks(f"{ROOT}/mon_groups/pod"), sorted(theirs))
        service.stop()
        eq("groups afterwards", groups(f"{ROOT}/batch"), {})
        true("tasks are back in the control group's", set(ours) <= set(tasks(f"{ROOT}/batch")))
        os.rmdir(f"{ROOT}/batch")


def test_values(bench, _):
    """Occupancy and bandwidth as they were chosen, byte for byte, from two L3 domains."""
    with Resctrl() as rdt, hold(2) as procs:
        # Without -o debug it is not known who has which RMID: all have the same values.
        weigh = (lambda i: i) if rdt.debug else (lambda i: 1)
        rdt.set("mbm_total", 10**12)
        rdt.set("mbm_local", 7)
        service = Service(bench, procs)
        (pids,) = service.pids
        has_groups(*pids)
        wait("readings", lambda: service.status()["readings"] >= len(pids) * DOMAINS * 2)
        ids = {pid: int(read(groups()[pid], "mon_hw_id")) if rdt.debug else 1 for pid in pids}
        rdt.set("occ", lambda i: 65536 * weigh(i))
        rdt.set("mbm_total", lambda i: 10**12 + 1000003 * weigh(i))
        rdt.set("mbm_local", lambda i: 7 + 11 * weigh(i))
        want = {pid: [v * DOMAINS * i for v in (65536, 1000003, 11)] for pid, i in ids.items()}

        def got():
            processes = service.processes()
            return {
                pid: [processes.get(pid, {}).get(k) for k in ("llc_bytes", "mbm_total_bytes", "mbm_local_bytes")]
                for pid in pids
            }

        with contextlib.suppress(AssertionError):
            wait("values", lambda: got() == want)
        eq("values", got(), want)
        rmids = {pid: p["rmid"] for pid, p in service.processes().items() if pid in pids}
        eq("RMIDs", rmids if rdt.debug else len(set(rmids.values())), ids if rdt.debug else len(pids))
        status = service.status()
        eq(
            "sums",
            [status["mbm_total_bytes"], status["mbm_local_bytes"]],
            [sum(w[k] for w in want.values()) for k in (1, 2)],
        )
        eq("unassigned and failed", [status["unassigned_bytes"], status["failed_readings"]], [0, 0])
        # The hardware has no value for a while: unknown, not 0. What it counted meanwhile comes with the next one.
        rdt.set("unavailable", "Y")
        wait("failed readings", lambda: service.status()["failed_readings"] > 5)
        rdt.set("mbm_total", lambda i: 10**12 + 2 * 1000003 * weigh(i))
        rdt.set("unavailable", "N")
        wait("bandwidth", lambda: {pid: v[1] for pid, v in got().items()} == {pid: 2 * w[1] for pid, w in want.items()})
        service.stop()


def test_exhausted(bench, _):
    """Fewer RMIDs than processes: those that wait are counted, and take the place of those that end."""
    with Resctrl(), hold(34) as procs:
        service = Service(bench, procs)
        wait("those that wait", lambda: service.status()["exhausted"] == 35 - (RMIDS - 1), 10)
        waiting = set(procs.book["children"]) - set(groups())
        status = service.status()
        eq(
            "how many",
            [len(groups()), len(waiting), status["reason"]],
            [RMIDS - 1, 4, "out of RMIDs: 4 processes wait for one"],
        )
        eq("noted", status["odd"]["exhausted"], 4)
        lucky = next(pid for pid in procs.book["children"] if pid in groups())
        procs.say(procs.book["children"].index(lucky))
        got = wait("one of them gets it", lambda: set(groups()) & waiting)
        eq("how many", len(got), 1)
        wait("its tasks", lambda: tasks(groups()[min(got)]) == sorted(got))
        service.stop()
        eq("groups afterwards", groups(), {})


test_exhausted.timeout = 60


def test_limbo(bench, _):
    """An RMID whose lines are still in the cache is not given out again before they are gone."""
    with Resctrl() as rdt, hold(31) as procs:
        service = Service(bench, procs)
        wait("one waits", lambda: service.status()["exhausted"] == 1, 10)
        rdt.set("occ", 1 << 30)
        lucky = next(pid for pid in procs.book["children"] if pid in groups())
        waiting = set(procs.book["children"]) - set(groups())
        procs.say(procs.book["children"].index(lucky))
        wait(
            "its RMID is in limbo",
            lambda: service.status()["reason"] == "all free RMIDs are in limbo: 1 processes wait for one",
        )
        eq("groups", len(groups()), RMIDS - 2)
        rdt.set("occ", 0)
        wait("it is given out", lambda: waiting <= set(groups()))
        wait("no reason to complain", lambda: not service.status()["reason"])
        service.stop()


test_limbo.timeout = 60


def test_unmounted(bench, _):
    """resctrl is unmounted under the daemon, which does not keep it busy, and comes back."""
    with Resctrl(), hold(1) as procs:
        service = Service(bench, procs)
        (pids,) = service.pids
        has_groups(*pids)
        unmount()
        wait("it is said", lambda: service.status()["reason"] == f"resctrl is no longer mounted at {ROOT}")
        eq("groups", service.status()["groups"], 0)
        mount()
        has_groups(*pids)
        wait("their tasks", lambda: all(tasks(groups()[pid]) == [pid] for pid in pids))
        status = service.status()
        eq("as before", [status["reason"], status["groups"], status["exhausted"]], ["", 2, 0])
        # And between two looks.
        unmount()
        mount()
        has_groups(*pids)
        service.stop()
        true("it was not said", "no longer mounted" in service.daemon.stderr())


def test_by_cgroup(bench, _):
    """A group for the traced processes of each cgroup, until the last one is gone."""
    cgroup = "/sys/fs/cgroup/resctrl-test"
    with Resctrl(), hold(1) as inside, hold(1) as outside:
        os.mkdir(cgroup)
        try:
            write(str(inside.proc.pid), cgroup, "cgroup.procs")
            service = Service(bench, inside, outside, args=("--rmid-group", "cgroup"))
            a, b = service.pids
            wait("groups", lambda: divided() == sorted([sorted(a), sorted(b)]))
            inside.finish()
            wait("the other is left", lambda: divided() == [sorted(b)])
            outside.say(0)
            wait("its first process is left", lambda: divided() == [b[:1]])
            service.stop()
        finally:
            with contextlib.suppress(OSError):
                os.rmdir(cgroup)


def test_not_mounted(bench, _):
    """What to do is said."""
    bench.refused(
        ["--rmid", "resctrl"], f"resctrl is not mounted at {ROOT}: mount -t resctrl resctrl {ROOT}", cmd=["true"]
    )


def test_auto(bench, _):
    """Taken by itself where it is mounted."""
    with Resctrl(), hold(0) as procs:
        service = Service(bench, procs, args=("--rmid", "auto"))
        has_groups(*service.pids[0])
        eq("backend", service.status()["backend"], "resctrl")
        service.stop()
