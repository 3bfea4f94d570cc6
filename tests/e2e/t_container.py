# SPDX-License-Identifier: GPL-2.0-only
"""
Programs in containers: a pid and a mount namespace, a root and a cgroup of their own, with names as
Docker and Kubernetes give them.
"""
import os
import re
import shlex
import subprocess
import time
import uuid

from e2e import SLOW, Skip, eq, last_json, load_db, pair, process, same_transfers, standin, timeout, true, whole
from prom import Page
from tt_host import api, retry

# Nobody else's: other programs of this machine are in the metrics as well.
ID_A, ID_B = os.urandom(32).hex(), os.urandom(32).hex()
UID = str(uuid.uuid4())
TRAIN, SERVE = f"train{os.getpid()}", f"serve{os.getpid()}"


def cgroup2():
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        for line in f:
            fields = line.split()
            if fields[fields.index("-") + 1] == "cgroup2" and fields[3] == "/":
                return fields[4]
    raise Skip("no cgroup2 is mounted here")


def libraries(program):
    """What a root has to have for it, but for the runtime."""
    out = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return [path for path in re.findall(r"(/\S+) \(0x", out) if "cudart" not in path]


class Container:
    """
    `scen NAME N` under another name, told to go by a line, in a root that nobody else sees: its
    runtime is a copy at an inode of its own.
    """

    def __init__(self, bench, cgroup, comm, *args):
        self.comm, self.cgroup = comm, cgroup
        os.makedirs(cgroup)
        root, lib = bench.path(comm), "/usr/local/cuda/lib64"
        os.mkdir(root)
        copies = [f"{path} {root}{path}" for path in libraries(standin("scen"))]
        copies += [
            f"{standin('stripped/libcudart.so.13')} {root}{lib}/libcudart.so.13",
            f"{standin('scen')} {root}/app/{comm}",
        ]
        inside = [f"mount -t tmpfs none {root}"]
        inside += [f"install -D {copy}" for copy in copies]
        inside += [
            f"mkdir {root}/proc",
            f"mount -t proc none {root}/proc",
            f"exec env SCEN_LINGER=2500 LD_LIBRARY_PATH={lib} chroot {root} /app/{comm} --wait {' '.join(args)}",
        ]
        unshare = f"unshare -m -p -f --kill-child sh -c {shlex.quote(' && '.join(inside))}"
        script = f"echo $$ >{cgroup}/cgroup.procs && exec {unshare}"
        self.target = bench.target("sh", "-c", script, wait_ready=False)
        eq("what it takes for its pid", self.target.line().split(), ["ready", "1"])
        with open(f"{cgroup}/cgroup.procs", encoding="ascii") as f:
            pids = {int(line) for line in f} - {self.target.pid}
        eq(f"processes beside unshare in {cgroup}", len(pids), 1)
        self.pid = pids.pop()

    def remove(self):
        """After its end."""
        retry(5, lambda: os.rmdir(self.cgroup))


class Cgroups:
    """A branch of the host's tree that is removed whatever happens."""

    def __init__(self):
        self.top = os.path.join(cgroup2(), f"ttmon-e2e-{os.getpid()}")

    def __enter__(self):
        try:
            os.mkdir(self.top)
        except OSError as why:
            raise Skip(f"no cgroup can be made here: {why.strerror}") from None
        return self

    def __exit__(self, *_):
        end = time.monotonic() + 5
        while os.path.isdir(self.top) and time.monotonic() < end:
            for folder, _, _ in os.walk(self.top, topdown=False):
                try:
                    with open(f"{folder}/cgroup.kill", "w", encoding="ascii") as f:
                        f.write("1")
                    os.rmdir(folder)
                except OSError:
                    time.sleep(0.05)

    def path(self, name):
        return os.path.join(self.top, name)


def start(bench, cgroups):
    """As Docker's and as containerd's under Kubernetes."""
    pod = f"kubepods-burstable-pod{UID.replace('-', '_')}.slice"
    return (
        Container(bench, cgroups.path(f"docker-{ID_A}.scope"), TRAIN, "live", "6"),
        Container(bench, cgroups.path(f"{pod}/cri-containerd-{ID_B}.scope"), SERVE, "copies"),
    )


NAMES = {  # --group-by: what the two are called
    "comm": (TRAIN, SERVE),
    "unit": (f"docker-{ID_A}.scope", f"cri-containerd-{ID_B}.scope"),
    "container": (ID_A[:12], ID_B[:12]),
    "pod": ("none", UID),
}


def check_sums(page, label, book):
    """The series of this group are what the program says it did."""
    eq(f"allocations of {label}", sum(page.values("ttmond_group_allocations_total", **label).values()), book["allocs"])
    every = sum(page.values("ttmond_group_transfers_total", **label).values())
    eq(f"transfers of {label}", every, sum(count for mems in book["transfers"].values() for count, _ in mems.values()))
    for direction, mems in book["transfers"].items():
        for mem, (count, size) in mems.items():
            # What is older than the probes is of an unknown kind, or pageable.
            places = [
                dict(label, direction=direction, host_memory=m)
                for m in ((mem, "unknown") if mem == "pageable" else (mem,))
            ]
            for name, wanted in (("transfers", count), ("transfer_bytes", size)):
                got = sum(sum(page.values(f"ttmond_group_{name}_total", **where).values()) for where in places)
                eq(f"{name} {places}", got, wanted)


@timeout(120)
def test_metrics_by_group(bench):
    """
    Four services, each naming the groups in another way: the sums are the programs' own, also after
    they and their cgroups have gone.
    """
    with Cgroups() as cgroups:
        train, serve = start(bench, cgroups)
        socks = {by: bench.path(f"sock-{by}") for by in NAMES}
        for by, sock in socks.items():
            bench.daemon(
                "--socket",
                sock,
                "--listen-address",
                "none",
                "--shm-slots",
                "0",
                "--tt-shm-version",
                "off",
                "--max-overhead",
                "0",
                "--group-by",
                by,
                "-q",
            )
        train.target.go()
        serve.target.go()
        live = last_json(train.target.line())
        retry(10, lambda: who_ran(socks["container"], train, serve))  # who has ended stays in that list for two seconds
        copies = last_json(serve.target.finish())
        serve.remove()
        size = live["transfers"]["h2d"]["pinned"][1]

        def right(by):
            page = Page(socks[by])
            a, b = ({by: name} for name in NAMES[by])
            check_sums(page, b, copies)
            eq(f"pinned by {b}", sum(page.values("ttmond_group_pinned_bytes", **b).values()), 0)
            if by != "pod":
                check_sums(page, a, live)
                eq(f"pinned by {a}", sum(page.values("ttmond_group_pinned_bytes", **a).values()), live["live"] * size)
                eq(f"processes of {a}", page.value("ttmond_group_processes", **a), 1)

        for by in NAMES:
            retry(10, lambda b=by: right(b))
        page = Page(socks["container"])
        true("no CPU time", page.value("ttmond_group_cpu_seconds_total", container=ID_A[:12]) > 0)
        host_pids(socks["container"], train, serve, live, copies)
        train.target.go()
        train.target.finish()
        train.remove()
        retry(
            10,
            lambda: eq("processes", Page(socks["container"]).value("ttmond_group_processes", container=ID_A[:12]), 0),
        )
        check_sums(Page(socks["container"]), {"container": ID_A[:12]}, live)


def who_ran(sock, train, serve):
    comms = {p["pid"]: p["comm"] for p in api(sock, "/v1/processes")["processes"]}
    eq("who used the CPUs", [comms.get(train.pid), comms.get(serve.pid)], [TRAIN, SERVE])


def host_pids(sock, train, serve, live, copies):
    """Who is who by the host's pids; nobody is 1."""
    for pid, book in ((train.pid, live), (serve.pid, copies)):
        rows = api(sock, f"/v1/allocations?pid={pid}")["allocations"]
        eq("pids of allocations", {r["pid"] for r in rows}, {pid})
        eq(f"allocations of {pid}", len([r for r in rows if r["method"] != "mmap"]), book["allocs"])
    eq("allocations of pid 1", api(sock, "/v1/allocations?pid=1")["allocations"], [])


@timeout(60)
def test_database_has_the_hosts_pid(bench):
    """--pid takes the host's pid; what the program takes for its own is nowhere."""
    with Cgroups() as cgroups:
        train, serve = start(bench, cgroups)
        db = bench.path("db.json")
        daemon = bench.daemon("--dump-db", db, "--pid", str(train.pid), "--pid", str(serve.pid))
        books = {}
        for container in (train, serve):
            container.target.go()
        books[train.pid] = last_json(train.target.line())
        train.target.go()
        train.target.finish()
        books[serve.pid] = last_json(serve.target.finish())
        daemon.wait(0)
        doc = load_db(db)
        whole(doc)
        eq("processes", {p["pid"] for p in doc["processes"]}, {train.pid, serve.pid})
        for pid, book in books.items():
            same_transfers(process(doc, pid), book)
        eq("pins", process(doc, train.pid)["pins"], books[train.pid]["pins"])
