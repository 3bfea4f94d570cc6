# SPDX-License-Identifier: GPL-2.0-only
"""
The slot file as tables: the same as tools/export/slot_tables.c, row by row in the order of the file. The
format is described in lib/read/slots.h; the names of fields here are those of include/ttmon/slot.h.
"""
import zlib

from ._tables import INT_MAX, Error, Tables

_U64 = 2**64 - 1
_MS = 1_000_000
_HEAD, _BLOCK_HEAD, _COLUMNS = 172, 16, 19
_USER, _KERNEL, _IDLE, _UNASSIGNED = range(4)
_CLASSES = ("user", "kernel", "idle", "unassigned", "other")
_FAMILIES = ("process", "alloc", "transfer", "launch", "tenstorrent", "dispatch", "mmap", "cpu", "rmid", "wait")
_ALLOC, _TRANSFER, _TENSTORRENT, _DISPATCH = (1 << i for i in (1, 2, 4, 5))
_SLOT_FLAGS = ("forced", "has_cpu", "has_ctr", "has_rdt", "missing", "rows_cut", "has_known")
_HAS_CPU, _HAS_CTR, _HAS_KNOWN = 1 << 1, 1 << 2, 1 << 6
_ROW_FLAGS = ("ctr_unknown", "ctr_scaled", "ctr_late", "rdt_unknown", "llc_valid", "ended")
_CTR_UNKNOWN, _RDT_UNKNOWN, _LLC_VALID = 1 << 0, 1 << 3, 1 << 4

# Fields in the order of the bits of the masks, with how they are predicted.
_SLOT_FIELDS = (
    ("events", "zero"),
    ("nr_rows", "last"),
    ("no", "next"),
    ("missing_ns", "zero"),
    ("flags", "last"),
    ("copies", "zero"),
    ("copy_bytes", "zero"),
    ("allocs", "zero"),
    ("frees", "zero"),
    ("pinned_pages", "last"),
    ("tt_dispatches", "zero"),
    ("tt_busy_ns", "zero"),
    ("cpus", "last"),
    ("user_ns", "sum"),
    ("kernel_ns", "sum"),
    ("idle_ns", "sum"),
    ("late", "zero"),
    ("dropped", "zero"),
    ("kernel_lost", "zero"),
    ("missed", "zero"),
    ("known", "last"),  # from version 2 on
)
_ROW_FIELDS = (
    ("cpu_ns", "time"),
    ("switches", "zero"),
    ("cycles", "cycles"),
    ("instructions", "zero"),
    ("llc_misses", "zero"),
    ("llc_references", "zero"),
    ("mbm_total", "zero"),
    ("mbm_local", "total"),
    ("rdt_ns", "last"),
    ("llc_bytes", "last"),
    ("flags", "last"),
    ("rmid", "last"),
    ("copies", "zero"),
    ("copy_bytes", "zero"),
    ("pinned_bytes", "last"),
)
_ROW_START = dict.fromkeys((name for name, _ in _ROW_FIELDS), 0)

_TABLES = {
    "run": {"key": str, "value": str},
    "slots": {
        **dict.fromkeys(
            (
                "slot start_ns cpus user_ns kernel_ns idle_ns missing_ns events late dropped kernel_lost allocs frees "
                "copies copied_bytes pinned_pages tt_dispatches tt_busy_ns missed_before"
            ).split(),
            int,
        ),
        "flags": str,
        "known": str,
        "at_least": int,
    },
    "slot_rows": {
        "slot": int,
        "pid": int,
        "start_ns": int,
        "comm": str,
        "class": str,
        **dict.fromkeys(
            (
                "rmid cpu_ns switches cycles instructions llc_misses llc_references llc_bytes mbm_total_bytes "
                "mbm_local_bytes rdt_ns copies copied_bytes pinned_bytes"
            ).split(),
            int,
        ),
        "flags": str,
        "at_least": int,
    },
}


class _Column:
    """Varints (LEB128), one after the other."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def get(self):
        value = shift = 0
        while True:
            if self.at >= len(self.data) or shift > 63:
                raise Error("damaged: a number")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & _U64
            shift += 7

    def take(self, n):
        if n > len(self.data) - self.at:
            raise Error("damaged: a text")
        self.at += n
        return self.data[self.at - n : self.at]


def _unzigzag(z):
    return (z >> 1) ^ -(z & 1)


class _Block:
    """The slots of one block: they do not depend on those of another."""

    def __init__(self, data, slots, fields):
        lengths = _Column(data)
        sizes = [lengths.get() for _ in range(_COLUMNS)]
        if lengths.at + sum(sizes) != len(data):
            raise Error("damaged: columns")
        self.columns = [_Column(lengths.take(n)) for n in sizes]
        self.slots, self.procs = slots, []
        self.fields = _SLOT_FIELDS[:fields]
        self.last = dict.fromkeys((name for name, _ in _SLOT_FIELDS), 0)

    def __iter__(self):
        for _ in range(self.slots):
            yield self._slot()
        if any(c.at != len(c.data) for c in self.columns):
            raise Error("damaged: a block has more than its slots")

    def _slot(self):
        column = self.columns[0]
        mask = column.get()
        diffs = {}
        for i, (name, how) in enumerate(self.fields):
            diff = column.get() if mask >> i & 1 else 0
            diffs[name] = diff if how == "zero" else _unzigzag(diff)
        if mask >> len(self.fields):
            raise Error("damaged: a slot")
        slot = dict.fromkeys(self.last, 0)
        for name, how in self.fields:
            if how != "sum":
                base = 0 if how == "zero" else self.last[name] + (how == "next")
                slot[name] = (base + diffs[name]) & _U64
        sums = {"user_ns": 0, "kernel_ns": 0, "idle_ns": 0, "left": slot["cpus"] * _MS - slot["missing_ns"]}
        if slot["nr_rows"] > len(self.columns[1].data) - self.columns[1].at:
            raise Error("damaged: rows")
        rows = [self._row(sums) for _ in range(slot["nr_rows"])]
        for name in ("user_ns", "kernel_ns", "idle_ns"):
            slot[name] = (sums[name] + diffs[name]) & _U64
        self.last = slot
        return slot, rows

    def _process(self):
        column = self.columns[2]
        pid, cls, start = column.get(), column.get(), column.get()
        comm = column.take(column.get())
        if cls >= len(_CLASSES):
            raise Error("damaged: a process")
        return dict(_ROW_START, pid=pid, cls=cls, start_ns=start, comm=comm.decode("utf-8", "replace"))

    def _row(self, sums):
        index, mask = self.columns[1].get(), self.columns[3].get()
        if index > len(self.procs) or mask >> len(_ROW_FIELDS):
            raise Error("damaged: a row")
        if index == len(self.procs):
            self.procs.append(self._process())
        last = self.procs[index]
        row = dict(last)
        idle = last["cls"] == _IDLE
        for i, (name, how) in enumerate(_ROW_FIELDS):
            diff = self.columns[4 + i].get() if mask >> i & 1 else 0
            plain = how == "zero" or (how == "time" and not idle)
            if how == "last":
                base = last[name]
            elif how == "time":
                base = sums["left"] if idle else 0
            elif how == "cycles":
                base = last["cycles"] * row["cpu_ns"] // last["cpu_ns"] if last["cpu_ns"] else 0
            else:
                base = row["mbm_total"] if how == "total" else 0
            row[name] = (base + (diff if plain else _unzigzag(diff))) & _U64
        sums["left"] -= row["cpu_ns"]
        if row["cls"] <= _IDLE:
            sums[("user_ns", "kernel_ns", "idle_ns")[row["cls"]]] += row["cpu_ns"]
        self.procs[index] = row
        return row


def _names(names, bits):
    return " ".join(name for i, name in enumerate(names) if bits >> i & 1)


def _known(known, value):
    return min(value, INT_MAX) if known else None


class _Sums:
    """Sums of a slot or a row; least: one of them is a lower bound."""

    def __init__(self, slot):
        self.slot, self.least = slot, False

    def knows(self, need):
        return not self.slot["flags"] & _HAS_KNOWN or self.slot["known"] & need == need

    def sum(self, need, value):
        if self.knows(need):
            return min(value, INT_MAX)
        self.least |= value != 0
        return _known(value, value)


def _slot_row(s):
    cpu, sums = s["flags"] & _HAS_CPU, _Sums(s)
    return (
        _known(True, s["no"]),
        _known(s["no"] < INT_MAX // _MS, s["no"] * _MS),
        _known(cpu, s["cpus"]),
        _known(cpu, s["user_ns"]),
        _known(cpu, s["kernel_ns"]),
        _known(cpu, s["idle_ns"]),
        _known(cpu, s["missing_ns"]),
        s["events"],
        s["late"],
        s["dropped"],
        s["kernel_lost"],
        sums.sum(_ALLOC | _TENSTORRENT, s["allocs"]),
        sums.sum(_ALLOC | _TENSTORRENT, s["frees"]),
        sums.sum(_TRANSFER, s["copies"]),
        sums.sum(_TRANSFER, s["copy_bytes"]),
        _known(sums.knows(_ALLOC | _TENSTORRENT), s["pinned_pages"]),
        sums.sum(_TENSTORRENT | _DISPATCH, s["tt_dispatches"]),
        sums.sum(_TENSTORRENT | _DISPATCH, s["tt_busy_ns"]),
        _known(True, s["missed"]),
        _names(_SLOT_FLAGS, s["flags"]),
        _names(_FAMILIES, s["known"]) if s["flags"] & _HAS_KNOWN else None,
        int(sums.least),
    )


def _process_row(s, r):
    process, cpu, sums = r["cls"] in (_USER, _KERNEL), s["flags"] & _HAS_CPU, _Sums(s)
    counted = s["flags"] & _HAS_CTR and r["cls"] != _UNASSIGNED
    values = [
        _known(True, s["no"]),
        _known(process, r["pid"]),
        _known(process, r["start_ns"]),
        r["comm"] or None,
        _CLASSES[r["cls"]],
        _known(r["rmid"], r["rmid"]),
        _known(cpu, r["cpu_ns"]),
        _known(cpu, r["switches"]),
    ]
    for name in ("cycles", "instructions", "llc_misses", "llc_references"):
        values.append(_known(counted and (r[name] or not r["flags"] & _CTR_UNKNOWN), r[name]))
    values += [
        _known(r["flags"] & _LLC_VALID, r["llc_bytes"]),
        *(_known(r["rdt_ns"], r[name]) for name in ("mbm_total", "mbm_local", "rdt_ns")),
        sums.sum(_TRANSFER, r["copies"]),
        sums.sum(_TRANSFER, r["copy_bytes"]),
        _known(sums.knows(_ALLOC | _TENSTORRENT), r["pinned_bytes"]),
        _names(_ROW_FLAGS, r["flags"]),
        int(sums.least),
    ]
    return tuple(values)


def _u(data, at, n):
    return int.from_bytes(data[at : at + n], "little")


def _text(data):
    return data.partition(b"\0")[0].decode("utf-8", "replace")


def _blocks(data, at):
    """Payloads with the number of their slots; the last one, with None, is that of the end."""
    while True:
        head = data[at : at + _BLOCK_HEAD]
        kind, length, slots, crc = (_u(head, i, 4) for i in range(0, 16, 4))
        payload = data[at + _BLOCK_HEAD : at + _BLOCK_HEAD + length]
        if len(head) < _BLOCK_HEAD or (kind in (1, 2) and len(payload) < length):
            raise Error("ends without its last block: cut off, or still being written")
        if kind not in (1, 2) or zlib.crc32(payload, zlib.crc32(head[:12])) != crc:
            raise Error("damaged: a block")
        at += _BLOCK_HEAD + length
        if kind == 2:
            if at != len(data):
                raise Error("damaged: there is more behind the last block")
            yield payload, None
            return
        yield payload, slots


def read_slots(data):
    """Tables of the bytes of a slot file."""
    version, length = _u(data, 8, 4), _u(data, 12, 4)
    if version not in (1, 2):
        raise Error(f"version {version} of the slot file; this reader knows versions 1 and 2")
    if not _HEAD <= length <= len(data) or zlib.crc32(data[: length - 4]) != _u(data, length - 4, 4):
        raise Error("damaged: the head")
    rows = {
        "run": [
            ("ttmond", _text(data[104:167])),
            ("hostname", _text(data[40:103])),
            ("start_ns", str(_u(data, 16, 8))),
            ("real_ns", str(_u(data, 24, 8))),
            ("nr_cpus", str(_u(data, 32, 4))),
        ],
        "slots": [],
        "slot_rows": [],
    }
    for payload, slots in _blocks(data, length):
        if slots is None:
            end = _Column(payload)
            given = end.get(), end.get()
            if given != (len(rows["slots"]), len(rows["slot_rows"])):
                raise Error("damaged: slots are missing")
            dropped = end.get()
            rows["run"].append(("dropped_slots", str(dropped)))
            break
        for slot, processes in _Block(payload, slots, 20 if version == 1 else 21):
            rows["slots"].append(_slot_row(slot))
            rows["slot_rows"].extend(_process_row(slot, r) for r in processes)
    return Tables(_TABLES, rows)
