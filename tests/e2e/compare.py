#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""compare.py LEDGER DATABASE: hold ttmond's database against the books of tests/standin/ledger.c,
exactly.

Compares the calls that failed by function and code, allocations by address in the order of their
making with size, method, function, device, end and transfers, the transfers by direction and kind
of memory, and the counts of pins and pages. Prints the differences (the first 30) and ends with 1
if there are any.
"""
import gzip
import json
import sys
from collections import defaultdict

DIRS = ("h2h", "h2d", "d2h", "d2d")
# Calls that leave no record of their own, whatever they return.
SILENT = {"cudaSetDevice", "cudaMemPoolCreate", "cudaLaunchKernel"}


def pair_sum(pairs):
    pairs = list(pairs)
    return [sum(p[0] for p in pairs), sum(p[1] for p in pairs)]


def transfers_of(alloc):
    return {d: list(alloc[d]) for d in DIRS if d in alloc}


class Comparison:
    def __init__(self, ledger, db, ended):
        self.ledger, self.db, self.ended = ledger, db, ended
        self.diffs = []

    def check(self, what, got, wanted):
        if got != wanted:
            self.diffs.append(f"{what}: {got}, the ledger has {wanted}")

    def completeness(self):
        c = self.db["completeness"]
        # What is written while the trace goes on says so.
        late = {g["why"].replace(" ", "_") for g in c["knowledge"] if g["why"] in ("attached late", "coverage gap")}
        self.check("reasons for incompleteness", set(c["reasons"]), late | (set() if self.ended else {"cut"}))
        self.check("late under -- CMD", self.db["capture"]["mode"] == "command" and bool(late), False)
        self.check("identity", c["identity"], True)
        self.check("unknown frees", c["unknown_frees"], 0)

    def process(self):
        found = [p for p in self.db["processes"] if p["pid"] == self.ledger["pid"]]
        self.check("processes with the pid", len(found), 1)
        return found[0] if found else None

    def errors(self, proc):
        wanted = {
            (fn, int(code)): n
            for fn, codes in self.ledger["calls"].items()
            for code, n in codes.items()
            if code != "0" and fn not in SILENT
        }
        got = {(e["fn"], e["code"]): e["count"] for e in proc["errors"]}
        for key in sorted(set(wanted) | set(got), key=str):
            self.check(f"failed {key[0]} with {key[1]}", got.get(key, 0), wanted.get(key, 0))

    def counts(self, proc):
        led = self.ledger
        for name, wanted in (
            ("allocs", led["allocs"]),
            ("frees", led["frees"]),
            ("pins", led["pins"]),
            ("launches", led["kernels"]),
            ("pinned_peak_pages", led["peak_pages"]),
            ("pinned_peak_bytes", led["live_bytes"]),
            ("pinned_pages", 0 if self.ended else led["live_pages"]),
            ("pinned_bytes", 0 if self.ended else led["live_bytes"]),
            ("unknown_frees", 0),
            ("captured", 0),
        ):
            self.check(name, proc[name], wanted)

    def transfers(self, proc):
        for d in DIRS:
            got = proc["transfers"].get(d, {})
            wanted = self.ledger["transfers"][d]
            if d == "d2d":
                self.check("d2d", pair_sum(got.values()), wanted["none"])
                continue
            for mem in ("pinned", "managed"):
                self.check(f"{d} {mem}", got.get(mem, [0, 0]), wanted[mem])
            # What is older than the probes of its process is of an unknown kind.
            known, unknown = got.get("pageable", [0, 0]), got.get("unknown", [0, 0])
            self.check(f"{d} pageable, or unknown", pair_sum([known, unknown]), wanted["pageable"])
            if not proc["probed_ns"]:
                self.check(f"{d} of unknown memory", unknown, [0, 0])
        self.check("unknown direction", pair_sum(proc["transfers"].get("unknown", {}).values()), [0, 0])
        self.check("unmatched", proc["unmatched"], 0)

    def pageable(self):
        """
        Copies that touched ordinary memory are kept under mappings: which ones depends on the
        kernel, their sum does not.
        """
        maps = [a for a in self.db["allocations"] if a["pid"] == self.ledger["pid"] and a["method"] == "mmap"]
        for d in DIRS:
            self.check(
                f"{d} of mappings",
                pair_sum(a["transfers"].get(d, [0, 0]) for a in maps),
                self.ledger["pageable"].get(d, [0, 0]),
            )

    def allocation(self, addr, i, got, wanted):
        what = f"{addr} #{i}"
        for key in ("size", "method", "fn"):
            self.check(f"{what} {key}", got[key], wanted[key])
        if wanted["device"] >= 0:
            self.check(f"{what} device", got["device"], wanted["device"])
        elif got["device"] not in (0, None):
            # A thread that never chose: 0 where it was seen from its start, else not known.
            self.check(f"{what} device", got["device"], 0)
        ends = ("free",) if wanted["freed"] else ("exit",) if self.ended else ("live",)
        if got["end"] not in ends:
            self.check(f"{what} end", got["end"], ends[0])
        self.moved(what, {d: p for d, p in got["transfers"].items() if p[0]}, transfers_of(wanted))

    def moved(self, what, got, wanted):
        """What an allocation took part in, by direction."""
        self.check(f"{what} transfers", got, wanted)

    def allocations(self):
        """Those of an address follow one another, in both books."""
        wanted, got = defaultdict(list), defaultdict(list)
        for a in sorted(self.ledger["allocations"], key=lambda a: a["order"]):
            wanted[a["addr"]].append(a)
        for a in self.db["allocations"]:
            if a["pid"] == self.ledger["pid"] and a["method"] != "mmap":
                got[a["addr"]].append(a)
        for addr in sorted(set(wanted) | set(got)):
            self.check(f"allocations at {addr}", len(got[addr]), len(wanted[addr]))
            rows = sorted(got[addr], key=lambda a: int(a["alloc_ns"]))
            for i, (g, w) in enumerate(zip(rows, wanted[addr])):
                self.allocation(addr, i, g, w)

    def run(self):
        self.completeness()
        proc = self.process()
        if proc:
            self.errors(proc)
            self.counts(proc)
            self.transfers(proc)
            self.pageable()
            self.allocations()
        return self.diffs


def compare(ledger, db, ended=True):
    """Differences as lines of text. ended: program and trace had ended when the database was written."""
    return Comparison(ledger, db, ended).run()


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        ledger = json.load(f)
    with (gzip.open if sys.argv[2].endswith(".gz") else open)(sys.argv[2], "rt", encoding="utf-8") as f:
        db = json.load(f)
    diffs = compare(ledger, db)
    for line in diffs[:30]:
        print(line)
    print(f"{len(diffs)} differences, {len(ledger['allocations'])} allocations compared")
    return 1 if diffs else 0


if __name__ == "__main__":
    sys.exit(main())
