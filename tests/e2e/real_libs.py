#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""
real_libs.py: NVIDIA's own driver and runtime, for the tests of where probes stand (t_place.py).

    real_libs.py [FOLDER]

fetches the packages that Debian has in non-free (drivers 535 and 550, runtimes 11.8 and 12.4; 7 MB)
and unpacks them below FOLDER, by default .output/real. Nothing is installed: apt works on lists of
its own. Then it shows where the probe of each function would stand.

Libraries are looked for there, in $TTMON_REAL_LIBS, in CUDA's folder and where Debian's driver is
installed.
"""
import collections
import glob
import os
import subprocess
import sys
import tempfile

from e2e import CUDA_LIB, OUT, TOP

PACKAGES = {"bookworm": ["libcuda1", "libcudart11.0"], "trixie": ["libcuda1", "libcudart12"]}
MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"

Row = collections.namedtuple("Row", "name addr skip stepped why refused")


def libraries():
    """Paths of the real libraries that are here, each file once."""
    places_ = [os.environ.get("TTMON_REAL_LIBS", os.path.join(OUT, "real")), "/usr/lib/x86_64-linux-gnu/nvidia/current"]
    found = [
        f
        for p in places_
        for name in ("libcuda.so.*", "libcudart.so.*")
        for f in glob.glob(os.path.join(p, "**", name), recursive=True)
    ]
    found += glob.glob("/usr/lib/x86_64-linux-gnu/libcuda.so.*") + glob.glob(os.path.join(CUDA_LIB, "libcudart.so.*"))
    return sorted({os.path.realpath(f) for f in found})


def build_places(out):
    """The program that says where probes would stand."""
    sources = ["tests/e2e/places.c", "daemon/io/objects/place.c", "daemon/io/objects/insn.c", "lib/os/elf.c"]
    subprocess.run(
        [os.environ.get("CC", "cc"), "-O2", "-D_GNU_SOURCE", "-I.", "-Iinclude", "-o", out, *sources],
        cwd=TOP,
        check=True,
    )
    return out


def places(tool, lib):
    out = subprocess.run([tool, lib], check=True, capture_output=True, text=True).stdout
    fields = [line.split(" ", 4) for line in out.splitlines()]
    return [Row(f[0], int(f[1], 16), int(f[2]), f[3] != "0", f[4], f[3] == "2") for f in fields]


def fetch(folder):
    for release, packages in PACKAGES.items():
        apt = os.path.join(folder, "apt-" + release)
        for sub in ("state/lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(apt, sub), exist_ok=True)
        with open(os.path.join(apt, "sources.list"), "w", encoding="ascii") as f:
            f.write(f"deb [signed-by={KEYRING}] {MIRROR} {release} non-free\n")
        options = [
            x
            for o in (
                f"Dir::Etc::sourcelist={apt}/sources.list",
                "Dir::Etc::sourceparts=/nonexistent",
                f"Dir::State={apt}/state",
                "Dir::State::status=/var/lib/dpkg/status",
                f"Dir::Cache={apt}/cache",
                "APT::Sandbox::User=root",
            )
            for x in ("-o", o)
        ]
        subprocess.run(["apt-get", "-q", *options, "update"], check=True)
        subprocess.run(["apt-get", "-q", *options, "download", *packages], cwd=apt, check=True)
        for deb in glob.glob(os.path.join(apt, "*.deb")):
            subprocess.run(["dpkg-deb", "-x", deb, os.path.join(folder, release)], check=True)
            os.unlink(deb)


def show():
    with tempfile.TemporaryDirectory() as scratch:
        tool = build_places(os.path.join(scratch, "places"))
        for lib in libraries():
            rows = places(tool, lib)
            print(f"\n{lib}: {len(rows)} functions")
            for (skip, why), n in sorted(collections.Counter((r.skip, r.why) for r in rows).items()):
                names = " ".join(sorted(r.name for r in rows if (r.skip, r.why) == (skip, why))) if n < 20 else ""
                print(f"{n:6}  +{skip:<3} {why}{': ' if names else ''}{names}")


if __name__ == "__main__":
    where = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(OUT, "real"))
    fetch(where)
    os.environ["TTMON_REAL_LIBS"] = where
    show()
