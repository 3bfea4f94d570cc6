# SPDX-License-Identifier: GPL-2.0-only
"""
Finding programs: libraries loaded late, copies at other inodes, other mount namespaces, static
runtimes; start and stop.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

from e2e import (
    PATIENCE,
    SLOW,
    STANDIN,
    TTMON,
    Skip,
    alone,
    eq,
    last_json,
    left_over,
    load_db,
    newest_prog,
    pair,
    process,
    same_transfers,
    standin,
)
from e2e import timeout, true, uprobe_events, whole
from tt_host import api, retry


# On a busy machine the daemon may come to a held program later than after its 250 ms.
PATIENT = {"TTMOND_HOLD_MS": "5000"}


def copies_of_runtime(bench, n):
    """Paths of n copies of the stripped runtime, at inodes that nobody has seen."""
    paths = []
    for i in range(n):
        folder = bench.path(f"venv{i}")
        os.mkdir(folder)
        paths.append(shutil.copy(standin("stripped/libcudart.so.13"), folder))
    return paths


def private_mounts():
    if subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        raise Skip("unshare -m is not allowed here")


def check_late(db, book):
    whole(db)
    proc = process(db, book["pid"])
    eq("pins", proc["pins"], book["pins"])
    eq("copies", pair(proc["transfers"], "h2h"), [book["copies"], book["bytes"]])


@timeout(60)
def test_dlopen_in_a_command_misses_nothing(bench):
    """-- CMD: calls right after the dlopen of libraries at unknown inodes."""
    out, db, _ = bench.trace([standin("late"), "--calls", "10", *copies_of_runtime(bench, 20)], env=PATIENT)
    check_late(db, last_json(out))
    windows = [b for b in db["completeness"]["blind"] if not b["held"]]
    eq("objects that were not held", windows, [])


@timeout(60)
def test_dlopen_after_a_pause_misses_nothing(bench):
    """The same after quiet times, when attaching takes milliseconds."""
    out, db, _ = bench.trace([standin("late"), "--gap", "600000", *copies_of_runtime(bench, 5)], env=PATIENT)
    check_late(db, last_json(out))


def test_dlopen_under_pid(bench):
    """--pid: calls can be missed, and how long that was possible is recorded."""
    target = bench.target(standin("late"), "--wait", "--gap", "50000", *copies_of_runtime(bench, 3))
    daemon = bench.daemon("--dump-db", bench.path("db.json"), "--pid", str(target.pid))
    target.go()
    book = last_json(target.finish())
    daemon.wait(0)
    db = load_db(bench.path("db.json"))
    blind = [b for b in db["completeness"]["blind"] if b["pid"] == book["pid"] and b["window_us"]]
    eq("blind windows", len(blind), 3)
    true(
        f"windows {[b['window_us'] for b in blind]}",
        all(0 < b["window_us"] < 100000 * PATIENCE and not b["held"] for b in blind),
    )
    true("more pins than were made", process(db, book["pid"])["pins"] <= 3)


def test_dlopen_while_the_daemon_stands_still(bench):
    """What was mapped, used and gone before ttmond came to it is still named, library by library."""
    target = bench.target(standin("late"), "--wait", "--gap", "20000", *copies_of_runtime(bench, 3))
    daemon = bench.daemon("--dump-db", bench.path("db.json"), "--pid", str(target.pid))
    daemon.proc.send_signal(signal.SIGSTOP)
    target.go()
    book = last_json(target.finish())
    time.sleep(0.3)
    daemon.proc.send_signal(signal.SIGCONT)
    daemon.wait(0)
    blind = [b for b in load_db(bench.path("db.json"))["completeness"]["blind"] if b["pid"] == book["pid"]]
    true(f"blind windows {blind}", len(blind) == 3 and all(b["window_us"] and not b["held"] for b in blind))


def test_library_mapped_before(bench):
    """A copy that a process has mapped when the trace begins."""
    folder = bench.path("lib")
    os.mkdir(folder)
    shutil.copy(standin("stripped/libcudart.so.13"), folder)
    out, db, _ = bench.attach([standin("scen"), "--wait", "copies"], env={"LD_LIBRARY_PATH": folder})
    book = last_json(out)
    whole(db)
    same_transfers(process(db, book["pid"]), book)


def in_container(bench, *cmd):
    """The command in a mount namespace of its own, with a runtime that exists only there, at lib/."""
    os.mkdir(bench.path("lib"))
    lib = bench.path("lib")
    script = f'mount -t tmpfs none {lib} && cp {standin("stripped/libcudart.so.13")} {lib} && exec "$@"'
    return ["unshare", "-m", "sh", "-c", script, "sh", *cmd]


def test_container_pid(bench):
    private_mounts()
    cmd = in_container(bench, standin("scen"), "--wait", "copies")
    out, db, _ = bench.attach(cmd, env={"LD_LIBRARY_PATH": bench.path("lib")})
    book = last_json(out)
    whole(db)
    same_transfers(process(db, book["pid"]), book)


def test_container_command(bench):
    private_mounts()
    lib = bench.path("lib/libcudart.so.13")
    out, db, _ = bench.trace(in_container(bench, standin("late"), "--calls", "10", lib))
    check_late(db, last_json(out))


def test_container_system_wide(bench):
    private_mounts()
    env = {"LD_LIBRARY_PATH": bench.path("lib"), "SCEN_LINGER": "300"}
    target = bench.target(*in_container(bench, standin("scen"), "--wait", "copies"), env=env)
    daemon = bench.daemon("--dump-db", bench.path("db.json"), *bench.service_args())
    target.go()
    book = last_json(target.finish())
    time.sleep(0.2)
    daemon.stop()
    same_transfers(process(load_db(bench.path("db.json")), book["pid"]), book)


@timeout(60)
def test_container_that_ends(bench):
    """
    The files of a container that has ended are nobody's, though they were never deleted: their
    probes go, and with them what kept its file system. Those of one that lives stay while no
    program has them mapped.
    """
    private_mounts()
    ends, lives = bench.path("ends"), bench.path("lives")
    for folder in (ends, lives):
        os.mkdir(folder)
    sock = bench.path("sock")
    daemon = bench.daemon(*bench.service_args())
    inside = (
        'mount -t tmpfs none "$1" && cp "$2" "$1" && echo ready $$ && read x && '
        'SCEN_LINGER=2000 LD_LIBRARY_PATH="$1" "$3" exit 1 >/dev/null; read x'
    )
    targets = [
        bench.target(
            "unshare", "-m", "sh", "-c", inside, "sh", folder, standin("stripped/libcudart.so.13"), standin("scen")
        )
        for folder in (ends, lives)
    ]
    for target in targets:
        target.go()

    def probed():
        paths = [o["path"] for o in api(sock, "/v1/probes")["objects"]]
        return [any(path.startswith(folder) for path in paths) for folder in (ends, lives)]

    retry(20, lambda: eq("probed", probed(), [True, True]))
    targets[0].go()
    targets[0].finish(None)
    daemon.wait_line(rf"{ends}/libcudart.so.13 is gone and no longer mapped: probes removed", 20)
    eq("probed after a look at both", probed(), [False, True])


@timeout(60)
def test_probed_ahead(bench):
    """
    Libraries under the usual paths of a container are probed before a program maps them, and what a
    container makes up there harms nobody: a pipe, a link out of it, a folder that leads back to
    itself. A namespace that a user made is left alone; with off nothing is looked for.
    """
    private_mounts()
    made = (
        'mount -t tmpfs none /opt && mkdir -p /opt/conda/lib /opt/x/lib && cp "$1" /opt/conda/lib/libcudart.so.13 && '
        "mkfifo /opt/conda/lib/libcuda.so.1 && "
        "ln -s /proc/self/root/etc/passwd /opt/conda/lib/libcudart.so.99 && ln -s / /opt/loop && echo ready $$ && "
        "exec cat"
    )
    inside = bench.target("unshare", "-m", "sh", "-c", made, "sh", standin("lib/libcudart.so.13"))
    users = bench.target(
        "unshare",
        "-Urm",
        "sh",
        "-c",
        made.replace("libcudart.so.13 &&", "libcudart-user.so.13 &&"),
        "sh",
        standin("copy/libcudart.so.13"),
    )
    for option, found in (("on", True), ("off", False)):
        sock = bench.path(f"sock-{option}")
        daemon = bench.daemon(
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
            "--probe-ahead",
            option,
        )
        said = subprocess.run([TTMON, "probes", "-s", sock], capture_output=True, text=True, check=True).stdout
        true(f"{option}: {said}", ("/opt/conda/lib/libcudart.so.13" in said) == found)
        true(f"{option}: {said}", "libcudart-user" not in said and "passwd" not in said)
        daemon.stop()
    for target in (inside, users):
        target.go()
        target.proc.stdin.close()


def test_static_runtime(bench):
    out, db, _ = bench.trace([standin("scen_static"), "copies"])
    book = last_json(out)
    whole(db)
    same_transfers(process(db, book["pid"]), book)


def test_static_stripped_runtime_says_so(bench):
    """Nothing to probe in it: a clear statement, and no database that looks complete and empty by itself."""
    out, db, daemon = bench.trace([standin("scen_static_stripped"), "copies"])
    book = last_json(out)
    eq("pins", process(db, book["pid"])["pins"], 0)
    true(f"nothing is said about it: {daemon.stderr()!r}", "a CUDA runtime could not be probed" in daemon.stderr())


def test_static_stripped_runtime_at_driver_level(bench):
    """Its calls of the driver are seen instead."""
    env = {"STANDIN_NESTED": "1", "LD_LIBRARY_PATH": os.path.join(STANDIN, "lib")}
    out, db, _ = bench.trace([standin("scen_static_stripped"), "copies"], env=env)
    book = last_json(out)
    proc = process(db, book["pid"])
    eq("pins", proc["pins"], book["pins"])
    eq("pinned to device", pair(proc["transfers"], "h2d", "pinned")[0] >= 1, True)


CLOSED = {"pins": 1, "copies": [3, 3 * 12288]}  # of closed.c


def closed(bench, cmd, **env):
    libs = os.path.join(STANDIN, "lib")
    env = {"LD_PRELOAD": os.path.join(libs, "libclosed.so"), "LD_LIBRARY_PATH": libs, **env}
    return bench.trace(["env", *(f"{k}={v}" for k, v in env.items()), *cmd])


def closed_is_counted(proc, book):
    eq("pins", proc["pins"], book["pins"] + CLOSED["pins"])
    mine = pair(book["transfers"], "h2d", "pinned")
    eq(
        "pinned to device",
        pair(proc["transfers"], "h2d", "pinned"),
        [mine[0] + CLOSED["copies"][0], mine[1] + CLOSED["copies"][1]],
    )


def test_runtime_in_a_closed_library_beside_a_probed_one(bench):
    """
    libcublas beside libcudart: the calls of the one are seen to enter the driver's probes, so those
    of the other cannot have been missed.
    """
    out, db, daemon = closed(bench, [standin("scen"), "copies"], STANDIN_NESTED="1")
    book = last_json(out)
    closed_is_counted(process(db, book["pid"]), book)
    whole(db)
    true(f"a warning: {daemon.stderr()}", "without symbols" not in daemon.stderr() and ">=" not in daemon.stderr())


def test_runtime_in_a_closed_library_and_no_evidence(bench):
    """
    A runtime that goes another way into the driver (the stand-in that is its own), or none at all:
    nobody knows what was missed.
    """
    out, db, daemon = closed(bench, [standin("scen"), "copies"])
    book = last_json(out)
    closed_is_counted(process(db, book["pid"]), book)
    whole(db, ("unprobed",))
    said = daemon.stderr()
    true(f"sums of copies are told as whole: {said}", re.search(r"^h2d +pinned +>= \d+ +>= ", said, re.M))
    _, db, _ = closed(bench, ["true"])
    whole(db, ("unprobed",))


def test_runtime_in_a_closed_library_after_an_exec(bench):
    """
    What one program was seen to do says nothing of the next one that the process executes, which
    has that library too.
    """
    rt = os.path.join(STANDIN, "lib", "libcudart.so.13")
    uses = (
        f"import ctypes, os; rt = ctypes.CDLL({rt!r}); p = ctypes.c_void_p(); "
        "assert rt.cudaHostAlloc(ctypes.byref(p), ctypes.c_size_t(4096), 0) == 0"
    )
    _, db, _ = closed(bench, [sys.executable, "-c", uses], STANDIN_NESTED="1")
    whole(db)
    _, db, _ = closed(bench, [sys.executable, "-c", uses + "; os.execvp('true', ['true'])"], STANDIN_NESTED="1")
    whole(db, ("unprobed",))


def compiled(bench, name, text, *more):
    """A library of this text."""
    path = bench.path(name)
    with open(path + ".c", "w", encoding="ascii") as f:
        f.write(text)
    subprocess.run(
        [
            "cc",
            "-O1",
            "-shared",
            "-fPIC",
            "-fno-omit-frame-pointer",
            "-fno-optimize-sibling-calls",
            "-o",
            path,
            path + ".c",
            *more,
        ],
        check=True,
    )
    return path


def test_runtime_in_a_closed_library_beside_a_few_functions(bench):
    """
    A library that has one function of the runtime's names and calls the driver's itself does not
    show where a whole runtime goes.
    """
    libs = os.path.join(STANDIN, "lib")
    mine = compiled(
        bench,
        "libmine.so",
        """
int cuMemcpyHtoDAsync_v2(unsigned long dst, const void *src, unsigned long n, void *stream);
int cudaMemcpyAsync(void *dst, const void *src, unsigned long n, int kind, void *stream);
int cudaMemcpyAsync(void *dst, const void *src, unsigned long n, int kind, void *stream)
{
	(void)kind;
	return cuMemcpyHtoDAsync_v2((unsigned long)dst, src, 0 * n, stream);
}
""",
        os.path.join(libs, "libcuda.so.1"),
        f"-Wl,-rpath,{libs}",
    )
    env = {"LD_PRELOAD": f"{mine} {os.path.join(libs, 'libclosed.so')}"}
    out, db, _ = closed(bench, [standin("again"), "none", "10"], **env)
    # The memory is the stand-in runtime's, which the driver does not know: so it copies nothing of it.
    true(f"{out!r}: no nested call", json.loads(out.splitlines()[-1])["copies"])
    whole(db, ("unprobed",))


CLONE = """
import ctypes, os, time
pid = ctypes.CDLL(None).syscall(56, 0x8000 | 17, 0, 0, 0, 0)  # CLONE_PARENT | SIGCHLD
if pid == 0:
    print("clone", os.getpid(), flush=True)
    time.sleep(2)  # its mappings are read meanwhile
    os._exit(0)
"""

CLONES = f"""
import ctypes, os, sys
rt = ctypes.CDLL(sys.argv[1])
p = ctypes.c_void_p()
assert rt.cudaHostAlloc(ctypes.byref(p), ctypes.c_size_t(4096), 0) == 0
if os.fork() == 0:
    os.execvp(sys.executable, [sys.executable, "-c", {CLONE!r}])
os.wait()
os.wait()
"""


def test_runtime_in_a_closed_library_and_a_sibling(bench):
    """
    clone(CLONE_PARENT): the new process's parent is another one than that whose copy it is, and
    which was not seen to call the driver.
    """
    rt = os.path.join(STANDIN, "lib", "libcudart.so.13")
    out, db, _ = closed(bench, [sys.executable, "-c", CLONES, rt], STANDIN_NESTED="1")
    clone = int(re.search(r"^clone (\d+)$", out, re.M)[1])
    whole(db, ("unprobed",))
    stripped = {g["pid"] for g in db["completeness"]["knowledge"] if g["why"] == "stripped runtime"}
    true(f"the copy {clone} has what it is a copy of: {stripped}", clone in stripped)


def test_library_without_symbols(bench):
    """Something called libcudart.so.13 that has nothing in it."""
    path = bench.path("libcudart.so.13")
    with open(bench.path("empty.c"), "w", encoding="ascii") as f:
        f.write("int ttmon_nothing(void);\nint ttmon_nothing(void)\n{\n\treturn 0;\n}\n")
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-Wl,-soname,libcudart.so.13", "-o", path, bench.path("empty.c")], check=True
    )
    python = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).ttmon_nothing()"
    _, db, _ = bench.trace(["python3", "-c", python, path])
    eq("allocations", [a["fn"] for a in db["allocations"] if a["method"] != "mmap"], [])


@timeout(60)
def test_single_stepped_function(bench):
    """
    A first instruction that the kernel does not emulate: said in the log and in ttmon probes, and
    the calls are seen as any other.
    """
    path, sock = bench.path("libcudart.so.13"), bench.path("sock")
    with open(bench.path("odd.c"), "w", encoding="ascii") as f:
        f.write(
            "int cudaHostUnregister(void *p);\n"
            '__asm__(".globl cudaHostUnregister\\n.type cudaHostUnregister, @function\\n"\n'
            '        "cudaHostUnregister: mov $713, %eax\\nret\\n.size cudaHostUnregister, . - '
            'cudaHostUnregister\\n");\n'
        )
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-Wl,-soname,libcudart.so.13", "-o", path, bench.path("odd.c")], check=True
    )
    python = (
        "import ctypes, sys; f = ctypes.CDLL(sys.argv[1]).cudaHostUnregister; "
        "[f(4096) for _ in range(50)]; print('{}', flush=True); input()"
    )
    target = bench.target("python3", "-c", python, path, wait_ready=False)
    eq("first line", target.line(), "{}\n")
    daemon = bench.daemon(
        "--dump-db",
        bench.path("db.json"),
        "--socket",
        sock,
        cmd=["python3", "-c", python.replace("input()", "pass"), path],
    )
    daemon.wait(0)
    db = load_db(bench.path("db.json"))
    eq(
        "failed calls",
        [(e["fn"], e["code"], e["count"]) for e in db["processes"][0]["errors"]],
        [("cudaHostUnregister", 713, 50)],
    )
    true(
        f"the log does not say so: {daemon.stderr()!r}",
        re.search(r"1 of 1 probed functions .*single-stepped", daemon.stderr()),
    )
    daemon = bench.daemon("--socket", sock, "--pid", str(target.pid))
    shown = subprocess.run(
        [TTMON, "probes", "--socket", sock], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    line = next(x.split() for x in shown if x.endswith(path))
    eq("ATTACHED, FAILED, STEPPED", [line[0], line[1], line[3]], ["1", "0", "1"])
    target.go()
    daemon.wait(0)


def odd_library(bench):
    """A runtime of three functions, of which the kernel refuses one (a lock prefix)."""
    os.mkdir(bench.path("lib"))
    path = bench.path("lib/libcudart.so.13")
    body = {
        "cudaHostUnregister": "mov $713, %eax\\nret",
        "cudaFreeHost": "lock orl $0, (%rsp)\\nmov $1, %eax\\nret",
        "cudaFree": "mov $1, %eax\\nret",
    }
    with open(bench.path("odd.c"), "w", encoding="ascii") as f:
        for name, code in body.items():
            f.write(
                f"int {name}(void *p);\n"
                f'__asm__(".globl {name}\\n.type {name}, @function\\n{name}: {code}\\n.size {name}, . - {name}\\n");\n'
            )
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-Wl,-soname,libcudart.so.13", "-o", path, bench.path("odd.c")], check=True
    )
    return path


ODD_CALLS = (
    "import ctypes, sys; l = ctypes.CDLL(sys.argv[1]); "
    "[f(4096) for f in (l.cudaHostUnregister, l.cudaFreeHost, l.cudaFree) for _ in range(9)]"
)


def odd_is_said(db, pid, daemon):
    proc = process(db, pid) if pid else db["processes"][0]
    eq("failed calls", [(e["fn"], e["count"]) for e in proc["errors"]], [("cudaHostUnregister", 9), ("cudaFree", 9)])
    true(
        f"the log does not say so: {daemon.stderr()!r}",
        re.search(r"cudaFreeHost cannot be probed: its first instruction", daemon.stderr()),
    )
    eq("complete", db["completeness"]["complete"], False)
    gaps = [g for g in db["completeness"]["knowledge"] if g["pid"] == proc["pid"]]
    eq(f"gaps {gaps}", [(g["why"], g["families"]) for g in gaps], [("function not probed", ["alloc"])])


def test_unprobeable_function(bench):
    """It is said and left out, the others of the object are probed all the same; what it did is unknown."""
    _, db, daemon = bench.trace(["/usr/bin/python3", "-c", ODD_CALLS, odd_library(bench)])
    odd_is_said(db, None, daemon)


def test_unprobeable_function_ahead(bench):
    """While nobody has the file mapped the kernel takes every function: what it refuses is seen all the same."""
    path = odd_library(bench)
    daemon = bench.daemon(
        "--dump-db",
        bench.path("db.json"),
        *bench.service_args(),
        "--tt-shm-version",
        "off",
        "--probe-ahead",
        os.path.dirname(path),
    )
    target = bench.target("/usr/bin/python3", "-c", ODD_CALLS + "; print('ready', flush=True); input()", path)
    time.sleep(0.3)
    target.go()
    target.finish()
    time.sleep(0.3)
    daemon.stop()
    odd_is_said(load_db(bench.path("db.json")), target.pid, daemon)


def test_replaced_library(bench):
    """
    An update puts another file under the library's name while a program has the old one mapped:
    both are traced, each as itself.
    """
    folder = bench.path("lib")
    os.mkdir(folder)
    lib = shutil.copy(standin("stripped/libcudart.so.13"), folder)
    env = {"LD_LIBRARY_PATH": folder}
    old = bench.target(standin("scen"), "--wait", "exit", "3", env=env)
    daemon = bench.daemon("--dump-db", bench.path("db.json"), *bench.service_args())
    shutil.copy(standin("lib/libcudart.so.13"), lib + ".new")
    os.rename(lib + ".new", lib)
    new = bench.target(standin("scen"), "--wait", "exit", "2", env=env)
    time.sleep(0.3)
    for target in (old, new):
        target.go()
        target.finish()
    time.sleep(0.3)
    daemon.stop()
    db = load_db(bench.path("db.json"))
    eq("pins", [process(db, t.pid)["pins"] for t in (old, new)], [3, 2])


def odd_runtime(bench, name, before):
    """A runtime of one function that fails with 713, after so many bytes of other code."""
    source = bench.path(name + ".c")
    with open(source, "w", encoding="ascii") as f:
        f.write(
            "int cudaHostUnregister(void *p);\n"
            f'__asm__(".fill {before}, 1, 0x90\\nret\\n.globl cudaHostUnregister\\n.type cudaHostUnregister, '
            '@function\\n"\n'
            '        "cudaHostUnregister: push %rbx\\npop %rbx\\nmov $713, %eax\\nret\\n.size cudaHostUnregister, . - '
            'cudaHostUnregister\\n");\n'
        )
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-Wl,-soname,libcudart.so.13", "-o", bench.path(name), source], check=True
    )
    with open(bench.path(name), "rb") as f:
        return f.read()


def test_overwritten_library(bench):
    """
    cp over a library that has probes, the same inode: they go to the new places, and no breakpoint
    stays in other code.
    """
    lib = bench.path("libcudart.so.13")
    old, new = odd_runtime(bench, "old", 7), odd_runtime(bench, "new", 300)
    with open(lib, "wb") as f:
        f.write(old)
    inode = os.stat(lib).st_ino
    python = (
        "import ctypes, sys, time; f = ctypes.CDLL(sys.argv[1]).cudaHostUnregister; time.sleep(0.4); "
        "[f(4096) for _ in range(int(sys.argv[2]))]"
    )
    daemon = bench.daemon("--dump-db", bench.path("db.json"), *bench.service_args())
    first = bench.target("python3", "-c", python, lib, "3", wait_ready=False)
    first.finish()
    with open(lib, "wb") as f:
        f.write(new)
    eq("inode", os.stat(lib).st_ino, inode)
    daemon.wait_line("was overwritten")
    second = bench.target("python3", "-c", python, lib, "5", wait_ready=False)
    second.finish()
    time.sleep(0.2)
    daemon.stop()
    db = load_db(bench.path("db.json"))
    errors = [process(db, t.pid)["errors"] for t in (first, second)]
    eq("calls", [[(e["code"], e["count"]) for e in rows] for rows in errors], [[(713, 3)], [(713, 5)]])


def hostile_files(bench):
    """Files that pretend to be a runtime: cut off, or with numbers in the headers that lie."""
    with open(standin("lib/libcudart.so.13"), "rb") as f:
        good = f.read()
    spoiled = {
        "cut": good[: len(good) // 3],
        "short": good[:80],
        "shoff": good[:40] + b"\xff" * 8 + good[48:],
        "shnum": good[:60] + b"\xff\xff" + good[62:],
        "phoff": good[:32] + b"\xf0" + b"\xff" * 7 + good[40:],
        "text": good[:4096] + b"\xff" * (len(good) - 4096),
    }
    for name, data in spoiled.items():
        os.mkdir(bench.path(name))
        path = bench.path(f"{name}/libcudart.so.13")
        with open(path, "wb") as f:
            f.write(data)
        yield path


def test_hostile_elf(bench):
    """Mapped executable in a traced process, they are refused and do no harm."""
    python = (
        "import ctypes, mmap, os, sys\n"
        "for p in sys.argv[2:]:\n"
        "    fd = os.open(p, os.O_RDONLY)\n"
        "    mmap.mmap(fd, min(4096, os.fstat(fd).st_size), mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)\n"
        "os.execv(sys.argv[1], [sys.argv[1], 'exit', '2'])\n"
    )
    out, db, _ = bench.trace(["python3", "-c", python, standin("scen"), *hostile_files(bench)])
    book = last_json(out)
    eq("pins of what came after", process(db, book["pid"])["pins"], 2)


def test_two_tracers(bench):
    """A second ttmond on the same process sees the same, and neither disturbs the other."""
    target = bench.target(standin("scen"), "--wait", "copies")
    daemons = [bench.daemon("--dump-db", bench.path(f"db{i}.json"), "--pid", str(target.pid)) for i in range(2)]
    target.go()
    book = last_json(target.finish())
    for i, daemon in enumerate(daemons):
        daemon.wait(0)
        db = load_db(bench.path(f"db{i}.json"))
        whole(db)
        same_transfers(process(db, book["pid"]), book)


@alone("it measures time, and counts the uprobe events of the whole host")
@timeout(60)
def test_start_and_stop_with_200_probes(bench):
    """
    Under a second each, or no more than some starts without any on a machine that is that slow; and
    nothing is left attached.
    """
    env = {"STANDIN_NESTED": "1"}
    target = bench.target(standin("scen"), "live", "2", env=env, wait_ready=False)
    target.line()
    eq("second line", target.line(), "waiting\n")
    since, events = newest_prog(), uprobe_events()
    idle = bench.target("sleep", "100", wait_ready=False)
    starts, stops, bare, probes = [], [], [], 0
    for _ in range(3):
        daemon = bench.daemon("--pid", str(idle.pid))
        bare.append(time.monotonic() - daemon.started)
        daemon.stop(signal.SIGINT)
        daemon = bench.daemon("--pid", str(target.pid))
        starts.append(time.monotonic() - daemon.started)
        probes = int(re.search(r"(\d+) probes in", daemon.stderr()).group(1))
        begin = time.monotonic()
        daemon.stop(signal.SIGINT)
        stops.append(time.monotonic() - begin)
    true(f"only {probes} probes", probes >= 200)
    enough = max(SLOW, 3 * min(bare))
    true(f"starts took {starts}, without probes {bare}", min(starts) < enough)
    true(f"stops took {stops}, starts without probes {bare}", min(stops) < enough)
    eq("BPF programs left", left_over(since), [])
    eq("uprobe events left", uprobe_events(), events)
    target.go()
    target.finish()
