# SPDX-License-Identifier: GPL-2.0-only
"""
The service as systemd starts it, with a fake of systemd's side; the units, the completion and what
`make install` puts where.
"""
import contextlib
import ctypes
import glob
import json
import os
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

from e2e import PATIENCE, SLOW, TOP, TTMON, TTMOND, Skip, alone, eq, fast, free_port, make, timeout, true
from t_http import get

QUIET = ("--shm-slots", "0", "--tt-shm-version", "off", "--cpu", "off")
# linux/capability.h; those that the service keeps.
KEPT = {"dac_read_search": 2, "sys_ptrace": 19, "perfmon": 38, "bpf": 39, "checkpoint_restore": 40}
SYS_ADMIN = 21
PTRACE_ATTACH, PTRACE_DETACH, WALL = 16, 17, 0x40000000


class Notify:
    """The socket that systemd has in $NOTIFY_SOCKET: (pid of the sender, the fields)."""

    def __init__(self, bench):
        self.path = bench.path("notify")
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.sock.bind(self.path)

    def get(self, seconds):
        """The next message, or None."""
        if not select.select([self.sock], [], [], seconds)[0]:
            return None
        text, control, _, _ = self.sock.recvmsg(4096, 256)
        pid = struct.unpack("iII", control[0][2])[0]
        return pid, dict(line.split("=", 1) for line in text.decode().splitlines())

    def until(self, key, value=None, seconds=20):
        """The next message with this field; those before it are (*, *) of what came meanwhile."""
        end, seen = time.monotonic() + seconds * PATIENCE, []
        while time.monotonic() < end:
            message = self.get(end - time.monotonic())
            if message and key in message[1] and value in (None, message[1][key]):
                return message[0], message[1], seen
            seen.append(message)
        raise AssertionError(f"no {key} in {seconds * PATIENCE:g} s, but {seen}")


def service(bench, *args, **more):
    return bench.daemon("--socket", bench.path("sock"), "--listen-address", "none", *QUIET, *args, **more)


@fast
@timeout(60)
def test_notify(bench):
    """
    READY when it traces, a status line, a reload between two messages, STOPPING at the end; nothing
    comes from anybody else.
    """
    notify = Notify(bench)
    daemon = service(bench, env={"NOTIFY_SOCKET": notify.path}, wait=False)
    pid, message, before = notify.until("READY")
    eq("sender, and what came before", (pid, message["READY"], before), (daemon.proc.pid, "1", []))
    true("it traces by then", "tracing the whole host" in daemon.stderr())
    _, message, _ = notify.until("STATUS")
    true(message["STATUS"], message["STATUS"])
    clock = time.monotonic_ns() // 1000
    daemon.proc.send_signal(signal.SIGHUP)
    _, message, _ = notify.until("RELOADING", "1")
    true(f"MONOTONIC_USEC {message}", clock <= int(message["MONOTONIC_USEC"]) <= time.monotonic_ns() // 1000)
    notify.until("READY", "1")
    eq("health", get(bench.path("sock"), "/healthz", 5 * PATIENCE), (200, b"ok\n"))
    daemon.proc.send_signal(signal.SIGTERM)
    notify.until("STOPPING", "1")
    daemon.wait(0)
    eq(
        "watchdog messages that nobody asked for",
        [m for m in iter(lambda: notify.get(0), None) if "WATCHDOG" in m[1]],
        [],
    )


def hot_thread(pid):
    for path in glob.glob(f"/proc/{pid}/task/*/comm"):
        with open(path, encoding="ascii") as f:
            if f.read() == "ttmond-hot\n":
                return int(path.split("/")[4])
    raise AssertionError("no hot thread")


@timeout(90)
def test_watchdog(bench):
    """A sign of life each half of the time, none while the hot thread hangs, and again when it goes on."""
    notify = Notify(bench)
    period = 2 * SLOW
    daemon = service(bench, env={"NOTIFY_SOCKET": notify.path, "WATCHDOG_USEC": str(int(period * 1e6))})
    for _ in range(4):
        notify.until("WATCHDOG", "1", period / PATIENCE)
    tid = hot_thread(daemon.proc.pid)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    eq("ptrace", libc.ptrace(PTRACE_ATTACH, tid, None, None), 0)
    os.waitpid(tid, WALL)
    try:
        # healthz's two seconds, and what was on its way.
        end = time.monotonic() + 2 + period
        while time.monotonic() < end:
            notify.get(end - time.monotonic())
        late = [notify.get(period / 4) for _ in range(8)]
        eq("while the hot thread hangs", [m for m in late if m and "WATCHDOG" in m[1]], [])
    finally:
        libc.ptrace(PTRACE_DETACH, tid, None, None)
    notify.until("WATCHDOG", "1", 10)


@timeout(90)
def test_watchdog_of_the_socket(bench):
    """No sign of life while nobody is answered at the socket, though the hot thread lives."""
    notify = Notify(bench)
    period = 2 * SLOW
    service(bench, env={"NOTIFY_SOCKET": notify.path, "WATCHDOG_USEC": str(int(period * 1e6))})
    notify.until("WATCHDOG", "1", period / PATIENCE)
    os.rename(bench.path("sock"), bench.path("away"))
    # What was on its way.
    while notify.get(0.3):
        pass
    late = [notify.get(period / 4) for _ in range(8)]
    eq("while the socket does not answer", [m for m in late if m and "WATCHDOG" in m[1]], [])
    os.rename(bench.path("away"), bench.path("sock"))
    notify.until("WATCHDOG", "1", 10)


# As systemd does it: sockets at 3 and up, their owner by pid.
LAUNCH = """
import os, socket, sys
unix = socket.socket(socket.AF_UNIX); unix.bind(sys.argv[1]); os.chmod(sys.argv[1], 0o600); unix.listen()
tcp = socket.socket(); tcp.bind(("127.0.0.1", int(sys.argv[2]))); tcp.listen()
high = [os.dup2(s.fileno(), 50 + i) for i, s in enumerate((unix, tcp))]
for i, fd in enumerate(high):
    os.dup2(fd, 3 + i)
os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="2", LISTEN_FDNAMES="a:b")
os.execv(sys.argv[3], sys.argv[3:])
"""


@alone("its daemon is not told of a socket")
@timeout(60)
def test_sockets_handed_over(bench):
    """It serves on what it is given, makes no socket of its own, and leaves systemd's where it is."""
    port, path = free_port(), bench.path("given")
    daemon = bench.daemon("--listen-address", "none", *QUIET, wrap=[sys.executable, "-c", LAUNCH, path, str(port)])
    inode = os.stat(path).st_ino
    eq("over the Unix socket", get(path, "/healthz", 5 * PATIENCE), (200, b"ok\n"))
    eq("over TCP", get(port, "/healthz", 5 * PATIENCE), (200, b"ok\n"))
    eq("probes over TCP", get(port, "/v1/probes", 5 * PATIENCE)[0], 403)
    eq("probes over the Unix socket", get(path, "/v1/probes", 5 * PATIENCE)[0], 200)
    daemon.stop(signal.SIGTERM)
    eq("the socket stays", (os.stat(path).st_ino, os.stat(path).st_mode & 0o777), (inode, 0o600))


def test_command_does_not_inherit(bench):
    """What ttmond runs must neither speak for it nor take its sockets."""
    notify = Notify(bench)
    daemon = bench.daemon(
        "-q",
        cmd=["env"],
        env={"NOTIFY_SOCKET": notify.path, "WATCHDOG_USEC": "1000000", "LISTEN_FDS": "1", "LISTEN_PID": "1"},
        wait=False,
    )
    daemon.wait(0)
    eq(
        "environment",
        [line for line in daemon.stdout().splitlines() if re.match("NOTIFY_|WATCHDOG_|LISTEN_", line)],
        [],
    )
    eq("a run is no service", notify.get(0), None)


def test_journal(bench):
    """Lines to the journal have a priority in the place of a name."""
    wrap = ["sh", "-c", 'JOURNAL_STREAM=$(stat -L -c %d:%i /dev/fd/2) exec "$@"', "sh"]
    daemon = service(bench, "--quiet", wait=False, wrap=wrap)
    daemon.wait_line(r"^<6>tracing the whole host")
    daemon.stop(signal.SIGTERM)
    eq(
        "lines without a priority",
        [line for line in daemon.stderr().splitlines() if not re.match(r"<[3467]>\S", line)],
        [],
    )
    daemon = bench.daemon("--no-such-option", wait=False, wrap=wrap)
    daemon.wait(2)
    eq(
        "an option that is wrong",
        daemon.stderr().splitlines(),
        ["<3>no such option: --no-such-option, see ttmond --help"],
    )


def capabilities(pid):
    found = {}
    for path in glob.glob(f"/proc/{pid}/task/*/status"):
        try:
            with open(path, encoding="utf-8") as f:
                status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        except (FileNotFoundError, ProcessLookupError):
            continue  # Links are closed in threads that end with that.
        found[status["Name"]] = tuple(int(status[n], 16) for n in ("CapPrm", "CapEff", "CapInh", "CapAmb")) + (
            status["NoNewPrivs"],
        )
    return found


def test_capabilities(bench):
    """
    The service keeps what it needs to go on, in all its threads; traces a new library with that; a
    run keeps what it had.
    """
    with open("/proc/sys/kernel/perf_event_paranoid", encoding="ascii") as f:
        mask = sum(1 << n for n in KEPT.values()) | (1 << SYS_ADMIN if int(f.read()) > 2 else 0)
    daemon = service(bench)
    end = time.monotonic() + 5 * PATIENCE
    while time.monotonic() < end and any(c[0] != mask for c in capabilities(daemon.proc.pid).values()):
        time.sleep(0.05)
    eq(
        "threads",
        capabilities(daemon.proc.pid),
        {n: (mask, mask, 0, 0, "1") for n in ("ttmond", "ttmond-hot", "ttmond-attach", "ttmond-detach")},
    )
    target = bench.target("sleep", "100", wait_ready=False)
    daemon = bench.daemon("--pid", str(target.pid))
    own = capabilities(os.getpid())
    eq("of a run", capabilities(daemon.proc.pid)["ttmond"][0], next(iter(own.values()))[0])


def rendered(bench):
    """The units, as make installs them, for the program that is built."""
    paths = []
    for path in glob.glob(os.path.join(TOP, "systemd", "*.in")):
        with open(path, encoding="utf-8") as f:
            text = f.read().replace("@sbindir@", os.path.dirname(TTMOND)).replace("@sysconfdir@", "/etc")
        paths.append(bench.path(os.path.basename(path)[:-3]))
        with open(paths[-1], "w", encoding="utf-8") as f:
            f.write(text)
    return sorted(paths)


def test_units(bench):
    """
    systemd-analyze: nothing to complain about, an exposure of at most 3.3, and the unit says of
    each point that is left why it is.
    """
    if not shutil.which("systemd-analyze"):
        raise Skip("no systemd-analyze")
    units = rendered(bench)
    eq("units", [os.path.basename(u) for u in units], ["ttmond.service", "ttmond.socket"])
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False
    )
    eq(
        f"systemd-analyze verify: {done.stderr}",
        [line for line in (done.stdout + done.stderr).splitlines() if "ttmon" in line],
        [],
    )
    security = ["systemd-analyze", "security", "--offline=yes", "--no-pager"]
    done = subprocess.run([*security, "--threshold=33", units[0]], capture_output=True, text=True, check=False)
    eq(f"systemd-analyze security: {done.stdout[-200:]}", done.returncode, 0)
    true("what it says", re.search(r"Overall exposure level for ttmond.service: [0-3]\.\d", done.stdout))
    done = subprocess.run([*security, "--json=short", units[0]], capture_output=True, text=True, check=False)
    points = {p["name"] for p in json.loads(done.stdout) if p["set"] is False}
    with open(units[0], encoding="utf-8") as f:
        comments = "".join(line for line in f if line.startswith("#"))
    eq("points of which the unit does not say why they stay", {p for p in points if p not in comments}, set())


def test_daemonset(bench):
    """
    The manifest is YAML whose parts fit each other, and its options and capabilities are those of
    the program and of the unit.
    """
    try:
        import yaml
    except ImportError:
        raise Skip("no python3-yaml") from None
    with open(os.path.join(TOP, "docs", "kubernetes", "daemonset.yaml"), encoding="utf-8") as f:
        documents = list(yaml.safe_load_all(f))
    eq("documents", [(d["apiVersion"], d["kind"]) for d in documents], [("apps/v1", "DaemonSet")])
    spec = documents[0]["spec"]
    labels, pod = spec["template"]["metadata"]["labels"], spec["template"]["spec"]
    eq(
        "the selector finds its pods",
        {k: labels.get(k) for k in spec["selector"]["matchLabels"]},
        spec["selector"]["matchLabels"],
    )
    true("hostPID", pod["hostPID"] is True)
    (container,) = pod["containers"]
    eq("volumes", sorted(m["name"] for m in container["volumeMounts"]), sorted(v["name"] for v in pod["volumes"]))
    eq(
        "each is the host's folder",
        [
            v["name"]
            for v in pod["volumes"]
            if v["hostPath"]["path"] not in [m["mountPath"] for m in container["volumeMounts"]]
        ],
        [],
    )
    args = [a.replace("$(NODE_IP)", "192.0.2.1") for a in container["args"]]
    done = subprocess.run([TTMOND, *args, "--no-such-option"], capture_output=True, text=True, check=False)
    true(f"{args}: {done.stderr}", done.returncode == 2 and "--no-such-option" in done.stderr)
    ports = {p["containerPort"] for p in container["ports"]} | {
        container[p]["httpGet"]["port"] for p in ("startupProbe", "livenessProbe")
    }
    eq("ports", ports, {int(a.rsplit(":", 1)[1]) for a in args if a.startswith("--listen-address")})
    with open(rendered(bench)[0], encoding="utf-8") as f:
        unit = re.search(r"^CapabilityBoundingSet=(.*)$", f.read(), re.M)[1].replace("CAP_", "").split()
    # What the unit has by its limits and its group.
    eq(
        "capabilities",
        sorted(container["securityContext"]["capabilities"]["add"]),
        sorted(unit + ["SYS_RESOURCE", "SYS_NICE", "CHOWN"]),
    )


# Each prints what the last word can become, one a line, by the shell's own machinery as far as it
# can be had without a terminal.
SHELLS = {
    "bash": """
source "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_ttmon
printf '%s\\n' "${COMPREPLY[@]}"
""",
    "fish": """
set script $argv[1]
source $script
complete -C (string join ' ' -- $argv[2..-1]) | string replace -r '\\t.*' ''; true
""",
    # compadd's helper _describe and _files need a line editor: they are asked to print.
    "zsh": """
_describe() { print -rl -- ${(P)${@[-1]}%%:*} }
_files() { print -rl -- ${words[CURRENT]}*(N) }
_normal() { print -rl -- ${(k)commands[(I)${words[CURRENT]}*]} }
script=$1
shift
words=("$@")
CURRENT=$#
source $script
""",
}


def complete(program, *words, shell="bash"):
    script = os.path.join(TOP, "completions", shell)
    args = [
        shell,
        *(["-f"] if shell == "zsh" else []),
        "-c",
        SHELLS[shell],
        *([] if shell == "fish" else [shell]),
        script,
        program,
        *words,
    ]
    env = dict(os.environ, PATH=os.path.dirname(TTMON) + ":" + os.environ["PATH"])
    done = subprocess.run(args, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, env=env)
    eq(f"completion of {words} in {shell}: {done.stderr}", (done.returncode, done.stderr), (0, ""))
    return done.stdout.split()


def help_of(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def options_of(*words):
    return set(re.findall(r"^  (?:-.,|   ) (--[a-z][a-z-]*)", help_of(*words, "--help"), re.M))


@timeout(60)
def test_completion_of_ttmond(_bench):
    """
    Every option of --help=all, and for those that take one of a few words the words that the
    program names when it refuses another.
    """
    text = help_of(TTMOND, "--help=all").split("\nExamples:")[0]
    options = re.findall(r"^  .{3} (--[a-z-]+)", text, re.M)
    true(f"{len(options)} options", len(options) > 30)
    eq("options", sorted(complete(TTMOND, "--")), sorted(options + ["--"]))
    eq("one that was begun", complete(TTMOND, "--dump-"), ["--dump-db"])
    eq("no option again after one", complete(TTMOND, "--quiet", "--rmid-g"), ["--rmid-group"])
    named = 0  # a second mistake, lest an option that takes anything starts a trace
    for option in options:
        done = subprocess.run(
            [TTMOND, option, "no-such-word", "--no-such-option"], capture_output=True, text=True, check=False
        )
        said = re.search(r"wants (.*), not", done.stderr) if done.returncode == 2 else None
        if said and "number" not in said[1] and "HOST" not in said[1]:
            words = [w for w in re.split(r", | or ", said[1]) if w]
            eq(option, sorted(complete(TTMOND, option, "")), sorted(words))
            eq(option + "=", sorted(complete(TTMOND, option, "=", "")), sorted(words))
            named += 1
    true(f"{named} options with words", named >= 6)
    eq("versions", sorted(complete(TTMOND, "--tt-shm-version", "")), ["1", "2", "3", "4", "off"])
    true("pids", str(os.getpid()) in complete(TTMOND, "--pid", ""))
    eq("files", complete(TTMOND, "--dump-db", TTMOND), [TTMOND])
    eq("a number is typed", complete(TTMOND, "--window", ""), [])
    true("a command after --", "bash" in complete(TTMOND, "--", "bas"))


@timeout(60)
def test_completion_of_ttmon(_bench):
    """Every command of the help, and every option of each command's, those of the commands of db and memtrace too."""
    groups = [()]
    seen = 0
    for group in groups:
        text = help_of(TTMON, *group, "--help")
        if "commands:" not in text:
            continue
        commands = re.findall(r"^  ([a-z][a-z-]*)  ", text.split("commands:")[1].split("\n\n")[0], re.M)
        eq(f"commands of {group}", sorted(w for w in complete(TTMON, *group, "") if w in commands), sorted(commands))
        groups += [(*group, c) for c in commands]
    for command in groups[1:]:
        options = options_of(TTMON, *command)
        eq(command, set(complete(TTMON, *command, "--")) - {"--"}, options)
        true(f"{command}: --help", "--help" in options)
        seen += len(options)
    true(f"{len(groups)} commands, {seen} options", len(groups) > 24 and seen > 150)
    eq("one that was begun", complete(TTMON, "sl"), ["slots"])
    said = subprocess.run([TTMON, "top", "--sort", "no-such-key"], capture_output=True, text=True, check=False)
    words = complete(TTMON, "top", "--sort", "")
    eq(f"keys ({said.stderr})", [w for w in words if w not in said.stderr], [])
    eq("number of keys", len(words), 11)
    eq("with =", complete(TTMON, "top", "--sort", "=", "ll"), ["llc"])
    eq("of --socket nothing of a command", complete(TTMON, "--socket", "/x", "prob"), ["probes"])


@timeout(60)
def test_completion_in_other_shells(_bench):
    """zsh and fish say what bash says."""
    shells = [s for s in ("zsh", "fish") if shutil.which(s)]
    if not shells:
        raise Skip("neither zsh nor fish is here")
    for shell in shells:
        for words in (("to",), ("top", "--s"), ("top", "--sort", ""), ("memtrace", "record", "--r"), ("db", "m")):
            eq(f"{shell}: {words}", sorted(complete("ttmon", *words, shell=shell)), sorted(complete(TTMON, *words)))
        eq(
            f"{shell}: --option=word",
            [w.split("=")[-1] for w in complete("ttmond", "--rmid=e", shell=shell)],
            ["emulated"],
        )


def tree(folder):
    return sorted(os.path.relpath(os.path.join(d, f), folder) for d, _, files in os.walk(folder) for f in files)


def builds():
    if SLOW != 1:
        raise Skip("builds nothing under emulation")


@timeout(240)
def test_make_install(bench):
    """make install and uninstall under DESTDIR: all of it there, nothing left, a file that was configured stays."""
    builds()
    root = bench.path("root")
    make("install", "DESTDIR=" + root)
    found = tree(root)
    wanted = [
        "etc/default/ttmond",
        "usr/local/sbin/ttmond",
        "usr/local/bin/ttmon",
        "usr/local/lib/systemd/system/ttmond.service",
        "usr/local/lib/systemd/system/ttmond.socket",
        "usr/local/lib/sysusers.d/ttmond.conf",
        "usr/local/lib/tmpfiles.d/ttmond.conf",
        "usr/local/share/man/man8/ttmond.8",
        "usr/local/share/man/man1/ttmon.1",
        "usr/local/share/man/man1/ttmon-memtrace.1",
        "usr/local/lib/libttmon-memtrace.so",
        "usr/local/share/bash-completion/completions/ttmond",
        "usr/local/share/bash-completion/completions/ttmon",
        "usr/local/share/zsh/site-functions/_ttmon",
        "usr/local/share/fish/vendor_completions.d/ttmon.fish",
        "usr/local/share/fish/vendor_completions.d/ttmond.fish",
    ]
    eq("not installed", [w for w in wanted if w not in found], [])
    with open(os.path.join(root, "usr/local/lib/systemd/system/ttmond.service"), encoding="utf-8") as f:
        unit = f.read()
    true("its program", "\nExecStart=/usr/local/sbin/ttmond " in unit)
    eq("words that nobody put in", re.findall("@[a-z]+@", unit), [])
    with open(os.path.join(root, "etc/default/ttmond"), "a", encoding="utf-8") as f:
        f.write("# changed\n")
    make("install", "DESTDIR=" + root)
    make("uninstall", "DESTDIR=" + root)
    eq("left", tree(root), ["etc/default/ttmond"])
    shutil.rmtree(root)
    make("install", "DESTDIR=" + root)
    make("uninstall", "DESTDIR=" + root)
    eq("left when nothing was changed", tree(root), [])


def upgrade(bench, debs):
    """
    From the package of before, which had all files in one: a root of its own, without the scripts, which
    are those of this host's service.
    """
    root, old = bench.path("root"), bench.path("old")
    kept = [d for name, d in debs.items() if name not in ("ttmon-dkms", "python3-ttmon")]
    for folder in ("var/lib/dpkg/updates", "var/lib/dpkg/info"):
        os.makedirs(os.path.join(root, folder))
    for name in ("status", "available"):
        with open(os.path.join(root, "var/lib/dpkg", name), "w", encoding="ascii"):
            pass

    def pack(folder, name):
        for script in ("postinst", "prerm", "postrm", "triggers"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(os.path.join(folder, "DEBIAN", script))
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-Znone", "--build", folder, bench.path(name)],
            check=True,
            capture_output=True,
        )
        return bench.path(name)

    def dpkg(*args):
        done = subprocess.run(
            ["dpkg", "--root=" + root, "--force-depends", *args], capture_output=True, text=True, check=False
        )
        eq(f"dpkg {args[0]}: {done.stdout}{done.stderr}", done.returncode, 0)
        return done.stdout

    # All files in one package of a version before.
    for d in kept:
        subprocess.run(["dpkg-deb", "--extract", d, old], check=True)
    os.makedirs(os.path.join(old, "DEBIAN"))
    with open(os.path.join(old, "DEBIAN/control"), "w", encoding="ascii") as f:
        f.write("Package: ttmon\nVersion: 0.1.0+gabc\nArchitecture: all\nMaintainer: x <x@y.z>\nDescription: before\n")
    dpkg("-i", pack(old, "old.deb"))
    new = []
    for d in kept:
        folder = bench.path("new-" + os.path.basename(d))
        subprocess.run(["dpkg-deb", "--raw-extract", d, folder], check=True)
        new.append(pack(folder, os.path.basename(d)))
    # As apt does it: what the new packages break is deconfigured until it is new, too.
    dpkg("--auto-deconfigure", "-i", *new)
    for file, owner in (
        ("libttmon.so.0", "libttmon0"),
        ("libttmon-pin.so", "ttmon-preload"),
        ("client.h", "libttmon-dev"),
        ("bin/ttmon", "ttmon"),
    ):
        owners = dpkg("-S", "*/" + file)
        true(f"{file} is {owners}", re.match(owner + r"(:\w+)?: /", owners) and owners.count("\n") == 1)
    dpkg("--purge", "ttmon", "libttmon-dev", "libttmon0", "ttmon-preload")
    eq("left", [f for f in tree(root) if not f.startswith("var/lib/dpkg/") and not f.startswith("var/log")], [])


@timeout(480)
def test_package(bench):
    """
    What make deb makes: the files of make install, root's, the units of Debian's folder, programs
    that need what it depends on.
    """
    builds()
    if not shutil.which("dpkg-shlibdeps"):
        raise Skip("no dpkg-dev")
    debs = {os.path.basename(d).split("_")[0]: os.path.join(TOP, d) for d in make("deb").split() if d.endswith(".deb")}
    eq(
        "packages",
        sorted(debs),
        ["libttmon-dev", "libttmon0", "python3-ttmon", "ttmon", "ttmon-dkms", "ttmon-preload"],
    )
    deb = debs["ttmon"]
    fields = help_of("dpkg-deb", "--field", deb)
    for wanted in (
        r"^Package: ttmon$",
        r"^Version: \d.*-1$",
        r"^Depends: .*\blibc6\b.*\blibmicrohttpd12",
        r"^Architecture: \w+$",
    ):
        true(f"{wanted}: {fields}", re.search(wanted, fields, re.M))
    listing = [line for d in debs.values() for line in help_of("dpkg-deb", "--contents", d).splitlines()]
    eq("not root's", [line for line in listing if line.split()[1] != "root/root"], [])
    eq("others may write", [line for line in listing if line[8] == "w" and line[0] != "l"], [])
    for name in ("ttmon-preload", "libttmon0", "libttmon-dev"):
        subprocess.run(["dpkg-deb", "--raw-extract", debs[name], bench.path(name)], check=True)
    eq(
        "headers",
        [f.split("/")[-1] for f in tree(bench.path("libttmon-dev")) if f.endswith(".h")],
        ["client.h", "family.h", "shm.h", "slot.h", "tt_shm.h", "usdt.h"],
    )
    with open(bench.path("libttmon0/DEBIAN/shlibs"), encoding="ascii") as f:
        true("shlibs", f.read().startswith("libttmon 0 libttmon0 (>= "))
    if shutil.which("lintian"):
        # Severe errors alone: the checks that unpack take long.
        done = subprocess.run(
            ["lintian", "--fail-on", "error", "--allow-root", *debs.values()],
            capture_output=True,
            text=True,
            check=False,
        )
        eq(f"lintian: {done.stdout[-2000:]}{done.stderr[-500:]}", done.returncode, 0)
    upgrade(bench, debs)
    subprocess.run(["dpkg-deb", "--raw-extract", deb, bench.path("deb")], check=True)
    found = tree(bench.path("deb"))
    for wanted in (
        "lib/systemd/system/ttmond.service",
        "usr/sbin/ttmond",
        "usr/share/doc/ttmon/copyright",
        "usr/share/man/man8/ttmond.8.gz",
        "DEBIAN/postinst",
        "DEBIAN/md5sums",
    ):
        true(wanted, wanted in found or "usr/" + wanted in found)
    for library, probes in (("libttmon.so.0", {"checkpoint"}), ("libttmon-pin.so", {"alloc", "free", "checkpoint"})):
        package = "libttmon0" if library == "libttmon.so.0" else "ttmon-preload"
        path = next(
            os.path.join(bench.path(package), name)
            for name in tree(bench.path(package))
            if name.endswith("/" + library)
        )
        notes = help_of("readelf", "--notes", "--wide", os.path.realpath(path))
        eq(f"probes of {library}, stripped", set(re.findall(r"Provider: ttmon\s+Name: (\w+)", notes)), probes)
    with open(bench.path("deb/DEBIAN/conffiles"), encoding="ascii") as f:
        eq("conffiles", f.read(), "/etc/default/ttmond\n")
    for script in ("postinst", "prerm", "postrm"):
        subprocess.run(["sh", "-n", bench.path("deb/DEBIAN/" + script)], check=True)
    done = subprocess.run(
        ["md5sum", "--quiet", "-c", "DEBIAN/md5sums"],
        cwd=bench.path("deb"),
        capture_output=True,
        text=True,
        check=False,
    )
    eq(f"md5sums: {done.stdout}", done.returncode, 0)
