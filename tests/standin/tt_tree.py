#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""tt_tree.py: the files of sysfs and procfs that tt-kmd makes for Tenstorrent chips, as an ordinary
tree.

    tt_tree.py KIND DIR [--reset N] [--nonsense] [--pids N:PID[,PID...]] [--no-asic-id]
    ttmond --sysfs-root DIR/sys --proc-root DIR/proc ...        ttmon smi --sysfs-root DIR/sys --proc-root DIR/proc

KIND: n150, n300, n300x2, t3k (four N300), p100, p150, p150x2, p300, mixed (P150, N300, N150),
galaxy-wormhole, galaxy-blackhole (32 chips each), none (no driver). Everything is determined by
KIND. The layout and the texts follow tt-kmd 4af71921; a folder in sysfs/class is a link into
sysfs/devices as in the kernel. The numbers N of /dev/tenstorrent/N run against the order of the bus
addresses wherever there are several cards, so that nobody can mix the two up; on a Galaxy they are
tray * 8 + chip - 1.

--reset N     chip N is in reset: its attributes are there and say nothing (a file cannot answer ENODATA)
--nonsense    adds chips whose attributes are wrong in every way: too long, binary, negative, links, folders, missing
--pids N:P,.. what /proc/driver/tenstorrent/N/pids says (may be given often)
--no-asic-id  a driver that is too old for tt_asic_id
As a module: tree(kind, dir, ...) returns the list of Chip.
"""
import argparse
import os
import shutil
from dataclasses import dataclass

UPI = {
    "n150": 0x18,
    "n300": 0x14,
    "galaxy-wormhole": 0x35,
    "p100": 0x36,
    "p100a": 0x43,
    "p150a": 0x40,
    "p150b": 0x41,
    "p150c": 0x42,
    "p300a": 0x45,
    "p300b": 0x44,
    "p300c": 0x46,
    "galaxy-blackhole": 0x47,
}
KINDS = [
    "n150",
    "n300",
    "n300x2",
    "t3k",
    "p100",
    "p150",
    "p150x2",
    "p300",
    "mixed",
    "galaxy-wormhole",
    "galaxy-blackhole",
    "none",
]


@dataclass
class Chip:
    ordinal: int
    bdf: str
    card: str
    board_id: int
    asic_id: int

    @property
    def arch(self):
        return "blackhole" if self.card.startswith(("p", "galaxy-b")) else "wormhole"


def board_id(card, serial):
    return 0x01 << 56 | UPI[card] << 36 | serial


def chips_of(kind):
    def card(name, ordinal, bus, serial, chip=0):
        return Chip(ordinal, f"0000:{bus:02x}:00.0", name, board_id(name, serial), 0x2000000000 | serial << 4 | chip)

    if kind == "n150":
        return [card("n150", 0, 0x01, 0x1172D01A)]
    if kind == "n300":
        return [card("n300", 0, 0x01, 0x511732099)]
    if kind == "n300x2":
        return [card("n300", 1, 0x01, 0x511732099), card("n300", 0, 0x81, 0x5117320D4)]
    if kind == "t3k":
        return [card("n300", 3 - i, bus, 0x511732000 | i) for i, bus in enumerate((0x01, 0x41, 0x81, 0xC1))]
    if kind == "p100":
        return [card("p100a", 0, 0x01, 0x33010)]
    if kind == "p150":
        return [card("p150b", 0, 0x01, 0x33020)]
    if kind == "p150x2":
        return [card("p150a", 1, 0x01, 0x33020), card("p150a", 0, 0xC1, 0x33021)]
    if kind == "p300":
        return [card("p300c", 1, 0x03, 0x44001), card("p300c", 0, 0x04, 0x44001, 1)]
    if kind == "mixed":
        return [card("p150b", 2, 0x01, 0x33020), card("n300", 0, 0x41, 0x511732099), card("n150", 1, 0xC1, 0x1172D01A)]
    if kind in ("galaxy-wormhole", "galaxy-blackhole"):
        nibbles = (0xC, 0x8, 0x0, 0x4) if kind == "galaxy-wormhole" else (0x0, 0x4, 0xC, 0x8)
        return [
            card(kind, tray * 8 + chip - 1, nibbles[tray] << 4 | chip, 0x660000 | tray, chip)
            for tray in range(4)
            for chip in range(1, 9)
        ]
    if kind == "none":
        return []
    raise SystemExit(f"tt_tree.py: {kind}: not one of {', '.join(KINDS)}")


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(text if isinstance(text, bytes) else text.encode())


def add(root, c, reset=False, asic_id=True, pids=()):
    pci = f"devices/pci0000:00/0000:00:{c.ordinal % 32:02x}.0/{c.bdf}"
    node = f"{pci}/tenstorrent/tenstorrent!{c.ordinal}"
    dev, attrs = os.path.join(root, "sys", pci), os.path.join(root, "sys", node)
    bh = c.arch == "blackhole"
    told = {
        "tt_serial": f"{c.board_id:016X}",
        "tt_card_type": c.card,
        "tt_aiclk": str(1350 if bh else 1000),
        "tt_arcclk": "540",
        "tt_axiclk": "900",
        "tt_fw_bundle_ver": "18.12.0.0",
        "tt_heartbeat": "4711",
    }
    if asic_id:
        told["tt_asic_id"] = f"{c.asic_id:016X}"
    for name, text in told.items():
        write(os.path.join(attrs, name), "" if reset else text + "\n")
    hwmon = {
        "temp1_input": f"{40000 + c.ordinal * 500}",
        "temp1_max": "75000",
        "in0_input": "800",
        "curr1_input": "20000",
        "power1_input": f"{15000000 + c.ordinal * 1000000}",
        "power1_max": "300000000",
    }
    for name, text in hwmon.items():
        write(os.path.join(dev, f"hwmon/hwmon{c.ordinal + 2}", name), "" if reset else text + "\n")
    write(os.path.join(dev, f"hwmon/hwmon{c.ordinal + 2}/name"), c.arch + "\n")
    write(os.path.join(dev, "vendor"), "0x1e52\n")
    write(os.path.join(dev, "device"), "0xb140\n" if bh else "0x401e\n")
    write(os.path.join(dev, "numa_node"), "0\n")
    os.symlink("../../../" + c.bdf, os.path.join(attrs, "device"))
    links = os.path.join(root, "sys/class/tenstorrent")
    os.makedirs(links, exist_ok=True)
    os.symlink("../../" + node, os.path.join(links, f"tenstorrent!{c.ordinal}"))
    write(os.path.join(root, f"proc/driver/tenstorrent/{c.ordinal}/pids"), "".join(f"{p}\n" for p in pids))


def add_nonsense(root, first):
    """Five chips that a reader must survive; none has an identity."""
    attrs = ["tt_serial", "tt_asic_id", "tt_card_type", "tt_aiclk", "tt_fw_bundle_ver"]
    for i, text in enumerate([b"9" * 100000, bytes(range(256)), b"-5\n", None, b"\x1b[31mn300\n"]):
        dev = os.path.join(root, f"sys/devices/pci0000:00/0000:00:1f.0/0000:e{i}:00.0")
        node = os.path.join(dev, f"tenstorrent/tenstorrent!{first + i}")
        os.makedirs(node)
        for j, name in enumerate(attrs):
            if text is not None:
                write(os.path.join(node, name), text)
            elif j % 2:
                os.mkdir(os.path.join(node, name))
            else:
                os.symlink("/dev/zero", os.path.join(node, name))
        for name in ("temp1_input", "power1_input", "name"):
            write(os.path.join(dev, "hwmon/hwmon0", name), text or b"99999999999999999999\n")
        os.symlink(f"../../../0000:e{i}:00.0", os.path.join(node, "device"))
        os.symlink(
            os.path.relpath(node, os.path.join(root, "sys/class/tenstorrent")),
            os.path.join(root, f"sys/class/tenstorrent/tenstorrent!{first + i}"),
        )
        write(
            os.path.join(root, f"proc/driver/tenstorrent/{first + i}/pids"),
            b"-1\nx\n0\n99999999999999\n" + (text or b""),
        )
    for name in ("tenstorrent!", "tenstorrent!x", "tenstorrent!01", "tenstorrent!4294967296", "other"):
        os.mkdir(os.path.join(root, "sys/class/tenstorrent", name))


def tree(kind, root, reset=(), nonsense=False, pids=None, asic_id=True):
    chips = chips_of(kind)
    for top in ("sys", "proc"):
        shutil.rmtree(os.path.join(root, top), ignore_errors=True)
    os.makedirs(os.path.join(root, "sys/class"))
    os.makedirs(os.path.join(root, "proc/driver"))
    for c in chips:
        add(root, c, c.ordinal in reset, asic_id, (pids or {}).get(c.ordinal, ()))
    if nonsense:
        os.makedirs(os.path.join(root, "sys/class/tenstorrent"), exist_ok=True)
        add_nonsense(root, len(chips))
    return chips


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("kind", choices=KINDS)
    p.add_argument("dir")
    p.add_argument("--reset", type=int, action="append", default=[], metavar="N")
    p.add_argument("--nonsense", action="store_true")
    p.add_argument("--pids", action="append", default=[], metavar="N:PID,...")
    p.add_argument("--no-asic-id", action="store_true")
    args = p.parse_args()
    pids = {int(n): [int(x) for x in ps.split(",")] for n, ps in (s.split(":", 1) for s in args.pids)}
    for c in tree(args.kind, args.dir, args.reset, args.nonsense, pids, not args.no_asic_id):
        print(f"{c.ordinal} {c.bdf} {c.card} {c.board_id:016x} {c.asic_id:016x}")


if __name__ == "__main__":
    main()
