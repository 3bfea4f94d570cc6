# SPDX-License-Identifier: GPL-2.0-only
"""The allocation database (docs/ttmon-db.schema.json) as tables: the same as tools/export/db_tables.c."""
import json

from ._tables import Error, Tables, number, text

# {table: [(column, type, member)]}; member None: it is made here.
_RUN = [("key", str, None), ("value", str, None)]
_PROCESSES = [
    ("process", int, "index"),
    ("pid", int, "pid"),
    ("start_ns", int, "start_ns"),
    ("ppid", int, "ppid"),
    ("comm", str, "comm"),
    ("exe", str, "exe"),
    ("cmdline", str, "cmdline"),
    ("pins", int, "pins"),
    ("pinned_peak_bytes", int, "pinned_peak_bytes"),
    ("allocs", int, "allocs"),
    ("launches", int, "launches"),
]
_SITES = [
    ("site", int, "id"),
    ("key", str, "key"),
    ("call_stack", str, None),
    ("allocs", int, "allocs"),
    ("live", int, "live"),
    ("live_bytes", int, "live_bytes"),
    ("peak_bytes", int, "peak_bytes"),
    ("allocated_bytes", int, "bytes"),
]
_ALLOCATIONS = [
    ("allocation", str, "id"),
    ("process", int, "process"),
    ("pid", int, "pid"),
    ("site", int, "site"),
    ("ordinal", int, "ordinal"),
    ("size_bytes", int, "size"),
    ("addr", str, "addr"),
    ("method", str, "method"),
    ("fn", str, "fn"),
    ("device", int, "device"),
    ("alloc_ns", int, "alloc_ns"),
    ("free_ns", int, "free_ns"),
    ("end", str, "end"),
    ("pin_ns", int, "pin_ns"),
    ("unpin_ns", int, "unpin_ns"),
    ("api_flags", int, "api_flags"),
    ("name", str, "name"),
    ("kind", str, "kind"),
    ("at_least", int, "at_least"),
]
_TRANSFERS = [
    ("allocation", str, None),
    ("direction", str, None),
    ("copies", int, None),
    ("copied_bytes", int, None),
]
_EVENTS = [
    ("allocation", str, None),
    ("ts_ns", int, None),
    ("kind", str, None),
    ("moved_bytes", int, None),
    ("offset_bytes", int, None),
    ("memory", str, None),
    ("bits", int, None),
]
_PARTS = [
    ("wait_ns", int, "ns"),
    ("on_cpu_ns", int, "on_cpu_ns"),
    ("run_queue_ns", int, "run_queue_ns"),
    ("blocked_ns", int, "blocked_ns"),
]
_COUNTS = [
    (name, int, name) for name in ("minor_faults", "major_faults", "voluntary_switches", "involuntary_switches")
]
_WAITS = [
    ("process", int, "process"),
    ("fn", str, "fn"),
    ("kind", str, "kind"),
    ("site", int, "site"),
    ("calls", int, "calls"),
    ("unobserved", int, "unobserved"),
    ("unended", int, "unended"),
    *_PARTS,
    ("unknown_ns", int, "unknown_ns"),
    *_COUNTS,
]
_WAIT_CALLS = [
    ("process", int, "process"),
    ("tid", int, "tid"),
    ("fn", str, "fn"),
    ("kind", str, "kind"),
    ("site", int, "site"),
    ("entry_ns", int, "entry_ns"),
    *_PARTS,
    *_COUNTS,
    ("error", int, "error"),
]
_TABLES = {
    "run": _RUN,
    "processes": _PROCESSES,
    "sites": _SITES,
    "allocations": _ALLOCATIONS,
    "transfers": _TRANSFERS,
    "events": _EVENTS,
    "waits": _WAITS,
    "wait_calls": _WAIT_CALLS,
}


def _get(obj, key):
    return obj.get(key) if isinstance(obj, dict) else None


def _list(value):
    return value if isinstance(value, list) else []


def _items(value):
    return value.items() if isinstance(value, dict) else ()


def _row(obj, table, **made):
    """made: what is not a member of obj."""
    return tuple(
        made[column] if column in made else (number if kind is int else text)(_get(obj, member))
        for column, kind, member in table
    )


def _at(values, i):
    return values[i] if isinstance(values, list) and i < len(values) else None


def _call_stack(frames):
    """Innermost first; an offset in its file where no name is known."""
    return ";".join(text(_at(f, 2)) or text(_at(f, 1)) or "?" for f in _list(frames))


def _run_rows(doc):
    complete = _get(doc, "completeness")
    values = [
        ("ttmond", _get(doc, "ttmond")),
        ("hostname", _get(_get(doc, "host"), "hostname")),
        ("start_ns", _get(_get(doc, "capture"), "start_ns")),
        ("end_ns", _get(_get(doc, "capture"), "end_ns")),
        ("complete", _get(complete, "complete")),
        *(("reason", r) for r in _list(_get(complete, "reasons"))),
    ]
    return [(k, text(v) if isinstance(v, str) or number(v) is None else str(number(v))) for k, v in values]


def _add_events(rows, alloc):
    begin, name = number(_get(alloc, "alloc_ns")), text(_get(alloc, "id"))
    for event in _list(_get(alloc, "events")):
        values = [
            (number if kind is int else text)(_at(event, i)) for i, (_, kind, _) in enumerate(_EVENTS[1:])
        ]
        # In the file: since the allocation.
        values[0] = values[0] + begin if values[0] is not None and begin is not None else None
        rows.append((name, *values))


def read_db(data):
    """Tables of the text of a database."""
    try:
        doc = json.loads(data)
    except (ValueError, RecursionError) as e:
        raise Error(f"not a ttmond database, or damaged: {e}") from None
    if not isinstance(doc, dict) or doc.get("schema") != "ttmon-db":
        raise Error("neither a ttmond database nor a slot file")
    if doc.get("version") != 1:
        raise Error(f"version {doc.get('version')} of the database; this reader knows version 1")
    rows = {name: [] for name in _TABLES}
    rows["run"] = _run_rows(doc)
    rows["processes"] = [_row(p, _PROCESSES) for p in _list(doc.get("processes"))]
    rows["sites"] = [_row(s, _SITES, call_stack=_call_stack(_get(s, "frames"))) for s in _list(doc.get("sites"))]
    for alloc in _list(doc.get("allocations")):
        rows["allocations"].append(_row(alloc, _ALLOCATIONS))
        for direction, pair in _items(_get(alloc, "transfers")):
            rows["transfers"].append((text(_get(alloc, "id")), direction, number(_at(pair, 0)), number(_at(pair, 1))))
        _add_events(rows["events"], alloc)
    rows["waits"] = [_row(w, _WAITS) for w in _list(_get(doc.get("waits"), "sites"))]
    rows["wait_calls"] = [_row(w, _WAIT_CALLS) for w in _list(_get(doc.get("waits"), "calls"))]
    complete = _get(doc.get("completeness"), "complete")
    return Tables(
        {name: {column: kind for column, kind, _ in table} for name, table in _TABLES.items()},
        rows,
        complete if isinstance(complete, bool) else None,
        [r for r in _list(_get(doc.get("completeness"), "reasons")) if isinstance(r, str)],
    )
