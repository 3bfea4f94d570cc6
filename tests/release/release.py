#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""release.py [--parts LIST] [--compilers LIST] RELEASE: does ttmon build and run on another release of
Debian or Ubuntu?

Makes a root of that release with debootstrap, installs in it what tools/setup.sh installs, copies
the sources into it and, chrooted there, builds with each compiler, runs the unit tests and `make
demo`. The kernel is this machine's. Parts: build, unit, demo.

The root stays under $ROOTS (default /var/cache/ttmon/roots), with what was built in it: a second
run is quick. Everything is mounted in a mount namespace of its own, which the kernel takes away
with the last process in it: no end of this script leaves a mount behind. `rm -rf --one-file-system
$ROOTS/RELEASE` makes the next run start from nothing.

A root of Debian also gets the headers of CUDA that Debian packs in non-free. They are one gigabyte
to fetch, once; not with CUDA_HEADERS=0. Prints "ok NAME", "FAIL NAME: why" or "SKIP NAME: why".
Exit status 1 when something failed.
"""
import argparse
import ctypes
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROOTS = os.environ.get("ROOTS") or "/var/cache/ttmon/roots"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
JOBS = "-j%d" % (os.cpu_count() or 1)
SOURCES = "ttmon"  # folder of the root
SCRIPTS = "/usr/share/debootstrap/scripts"
MIRRORS = {
    "debian": os.environ.get("DEBIAN_MIRROR") or "http://deb.debian.org/debian",
    "ubuntu": os.environ.get("UBUNTU_MIRROR") or "http://archive.ubuntu.com/ubuntu",
}
UBUNTU = {"jammy", "noble", "oracular", "plucky", "questing", "resolute"}
KEYRINGS = {
    "debian": "/usr/share/keyrings/debian-archive-keyring.gpg",
    "ubuntu": "/usr/share/keyrings/ubuntu-archive-keyring.gpg",
}
CLONE_NEWNS, MS_BIND, MS_REC, MS_PRIVATE = 0x20000, 0x1000, 0x4000, 0x40000

failed = False


class Failure(Exception):
    pass


def say(line):
    global failed
    failed |= line.startswith("FAIL ")
    print(line, flush=True)


def note(text):
    print(text, file=sys.stderr, flush=True)


def run(what, *args, **more):
    """What a command says goes to stderr; its failure is ours."""
    done = subprocess.run(args, stdin=subprocess.DEVNULL, stdout=sys.stderr, **more)
    if done.returncode:
        raise Failure("%s: status %d" % (what, done.returncode))


def mount(source, target, fstype, flags):
    libc = ctypes.CDLL(None, use_errno=True)
    os.makedirs(target, exist_ok=True)
    if libc.mount(source.encode(), target.encode(), fstype and fstype.encode(), flags, None):
        raise Failure("mount %s: %s" % (target, os.strerror(ctypes.get_errno())))


def own_mounts():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS):
        raise Failure("unshare: " + os.strerror(ctypes.get_errno()))
    mount("none", "/", None, MS_REC | MS_PRIVATE)


def alone_with(path):
    """A lock on a root for as long as this process lives: two of us would build in each other's sources."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    fd = os.open(path + ".lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        note("waiting for another run in " + path)
        fcntl.flock(fd, fcntl.LOCK_EX)


def remove(folder):
    """Never through a mount."""
    if os.path.exists(folder):
        run("rm", "rm", "-rf", "--one-file-system", folder)


class Root:
    def __init__(self, release):
        self.release = release
        self.kind = "ubuntu" if release in UBUNTU else "debian"
        self.path = os.path.join(ROOTS, release)

    def keyring(self):
        """
        What the release's packages are checked with. Debian 12 has no package of Ubuntu's keys, but
        Debian 13 has.
        """
        path = KEYRINGS[self.kind]
        if os.path.exists(path):
            return path
        donor = Root("trixie")
        donor.make()
        if not os.path.exists(donor.path + path):
            for words in (["update"], ["install", "-y", "--no-install-recommends", "ubuntu-keyring"]):
                run(
                    "ubuntu-keyring",
                    "chroot",
                    donor.path,
                    "apt-get",
                    "-qq",
                    *words,
                    env={"PATH": PATH, "DEBIAN_FRONTEND": "noninteractive"}
                )
        return donor.path + path

    def make(self):
        """debootstrap into a folder that gets its name when it is whole."""
        if os.path.isdir(self.path):
            return
        if not shutil.which("debootstrap"):
            env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
            run("apt-get", "apt-get", "-qq", "install", "-y", "--no-install-recommends", "debootstrap", env=env)
        # A release that is newer than debootstrap here is made like every other one of its kind.
        script = (
            self.release
            if os.path.exists(os.path.join(SCRIPTS, self.release))
            else {"debian": "sid", "ubuntu": "gutsy"}[self.kind]
        )
        components = {"debian": "main", "ubuntu": "main,universe"}[self.kind]
        part = self.path + ".part"
        remove(part)
        os.makedirs(ROOTS, exist_ok=True)
        with tempfile.TemporaryFile("w+", errors="replace") as log:
            args = [
                "debootstrap",
                "--variant=minbase",
                "--components=" + components,
                "--keyring=" + self.keyring(),
                self.release,
                part,
                MIRRORS[self.kind],
                os.path.join(SCRIPTS, script),
            ]
            done = subprocess.run(args, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            log.seek(0)
            lines = log.read().splitlines()
        if done.returncode:
            note("\n".join(lines[-20:]))
            raise Failure("debootstrap: " + (lines or ["status %d" % done.returncode])[-1])
        # Without its mounts, which debootstrap may have left in our namespace.
        os.rename(part, self.path)

    def mount(self):
        # On itself, so that "/" is a mount there as on any machine: some tests make a mount namespace private.
        mount(self.path, self.path, None, MS_BIND)
        for folder in ("proc", "sys", "dev"):
            mount("/" + folder, os.path.join(self.path, folder), None, MS_BIND | MS_REC)
        for folder in ("run", "tmp"):
            mount("tmpfs", os.path.join(self.path, folder), "tmpfs", 0)
        os.chmod(os.path.join(self.path, "tmp"), 0o1777)
        shutil.copy("/etc/resolv.conf", os.path.join(self.path, "etc/resolv.conf"))

    def command(self, *words, **env):
        """The words as they run in the root. Its environment is its own: nothing of ours means anything there."""
        env = {"PATH": PATH, "HOME": "/root", "LC_ALL": "C.UTF-8", "TERM": "dumb", **env}
        return [
            "env",
            "-i",
            *("%s=%s" % pair for pair in env.items()),
            "chroot",
            self.path,
            "sh",
            "-c",
            'cd "$0" && exec "$@"',
            "/" + SOURCES,
            *words,
        ]

    def sources(self):
        """Those of this checkout, as they are now and with their times; what was built there stays."""
        target = os.path.join(self.path, SOURCES)
        os.makedirs(target, exist_ok=True)
        for name in os.listdir(target):
            if not name.startswith(".output"):
                remove(os.path.join(target, name))
        listed = subprocess.run(
            ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard", "-z"],
            cwd=TOP,
            stdout=subprocess.PIPE,
        )
        names = [n for n in listed.stdout.decode().split("\0") if n and os.path.lexists(os.path.join(TOP, n))]
        if not names:  # no checkout: a tree of sources
            names = [n for n in os.listdir(TOP) if not n.startswith((".output", ".git"))]
        pack = subprocess.Popen(
            ["tar", "-C", TOP, "-c", "--null", "-T", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        unpack = subprocess.Popen(["tar", "-C", target, "-x", "--no-same-owner"], stdin=pack.stdout)
        pack.stdout.close()
        pack.stdin.write("\0".join(names).encode())
        pack.stdin.close()
        if pack.wait() or unpack.wait():
            raise Failure("cannot copy the sources")

    def cuda_headers(self):
        """/usr/include of Debian's nvidia-cuda-dev, which is nearly all libraries."""
        if self.kind != "debian" or os.path.exists(os.path.join(self.path, "usr/include/cuda.h")):
            return
        # What is there was built without them.
        for name in os.listdir(os.path.join(self.path, SOURCES)):
            if name.startswith(".output"):
                remove(os.path.join(self.path, SOURCES, name))
        sources = os.path.join(self.path, "etc/apt/sources.list.d/non-free.list")
        with open(sources, "w") as f:
            f.write("deb %s %s contrib non-free\n" % (MIRRORS["debian"], self.release))
        run("apt-get update", *self.command("apt-get", "-qq", "update"))
        fetch = os.path.join(self.path, "var/tmp/cuda")
        remove(fetch)
        os.makedirs(fetch)
        run(
            "nvidia-cuda-dev",
            *self.command(
                "sh", "-c", "cd /var/tmp/cuda && apt-get -qq -o APT::Sandbox::User=root download nvidia-cuda-dev"
            )
        )
        deb = os.path.join(fetch, os.listdir(fetch)[0])
        unpack = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb], stdout=subprocess.PIPE)
        seen = False
        with tarfile.open(fileobj=unpack.stdout, mode="r|") as tar:
            for member in tar:
                if member.name.startswith("./usr/include/"):
                    tar.extract(member, self.path)
                    seen = True
                elif seen:  # the libraries behind them are not for us
                    break
        unpack.kill()
        unpack.wait()
        remove(fetch)
        if not seen:
            raise Failure("no headers in " + os.path.basename(deb))


def lines_of(command):
    """(status, lines) of what a command says on stdout; stderr is passed on."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace")
    return done.returncode, done.stdout.splitlines()


def build(root, name, words):
    """Everything that is installed and what the tests run on, without a warning."""
    done = subprocess.run(
        root.command("make", JOBS, "-k", "WERROR=1", *words, "all", "man", "libttmon", "standin"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    if done.returncode:
        note(done.stderr)
        first = re.search(r"^(\S+: (?:fatal )?error: .*)$", done.stderr, re.M)
        say("FAIL %s/build: %s" % (name, first[1] if first else "status %d" % done.returncode))
    else:
        say("ok %s/build" % name)


def unit(root, name, words):
    """The suite of tests/run.sh, its lines under our name."""
    status, lines = lines_of(root.command("make", "unit", *words))
    counted = 0
    for line in lines:
        found = re.match(r"(ok|FAIL|SKIP) (.*)", line)
        if found:
            counted += 1
            say("%s %s/%s" % (found[1], name, found[2].lstrip("/")))
    if not counted or (status and not any(line.startswith("FAIL ") for line in lines)):
        say("FAIL %s/unit: status %d, %d tests" % (name, status, counted))


def demo(root, name, words):
    """As a user calls it. Both mistakes of the workload are named, by function, with the right advice."""
    done = subprocess.run(
        root.command("make", "demo", *words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    status, text = done.returncode, done.stdout
    wanted = {"pin": "upload_batch", "unpin": "alloc_staging_never_used"}
    missing = [
        site for advice, site in wanted.items() if not re.search(r"^%s +saves .*\n  %s < " % (advice, site), text, re.M)
    ]
    if status or missing:
        note(text)
        say("FAIL %s/demo: %s" % (name, "status %d" % status if status else "does not show " + ", ".join(missing)))
    else:
        say("ok %s/demo" % name)


PARTS = {"build": build, "unit": unit, "demo": demo}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release")
    parser.add_argument("--parts", default="build,unit,demo")
    parser.add_argument("--compilers", default="gcc,clang")
    args = parser.parse_args()
    if os.geteuid():
        print("SKIP %s: needs root" % args.release)
        return 77
    try:
        own_mounts()
        root = Root(args.release)
        alone_with(root.path)
        root.make()
        root.mount()
        root.sources()
        run("tools/setup.sh", *root.command("tools/setup.sh"))
        if os.environ.get("CUDA_HEADERS", "1") == "1":
            root.cuda_headers()
        say("ok %s/root" % args.release)
    except Failure as why:
        say("FAIL %s/root: %s" % (args.release, why))
        return 1
    for compiler in args.compilers.split(","):
        # What gcc makes is where everybody has it.
        words = (
            ["CC=clang", "CXX=clang++", "O=.output-clang"] if compiler == "clang" else ["CC=" + compiler, "O=.output"]
        )
        for part in args.parts.split(","):
            PARTS[part](root, "%s/%s" % (args.release, compiler), words)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
