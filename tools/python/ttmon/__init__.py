# SPDX-License-Identifier: GPL-2.0-only
"""
Reads the files of ttmon: allocation databases (ttmon run, ttmond --dump-db) and slot files (ttmond
--slots-out), plain or gzip, as the tables that `ttmon export` writes. Needs Python 3.9 or newer and
nothing else; with pandas each table is a DataFrame too.

    import ttmon
    run = ttmon.load("ttmon.json.gz")
    run["allocations"][0]["size_bytes"]        # a list of dicts, a row each
    run.frame("allocations").groupby("site")   # a DataFrame, if pandas is there

A figure that is not known is None (<NA> in a DataFrame), never 0. Sums of a run that was not seen whole
are lower bounds: see Tables.complete and Tables.reasons. Times are ns of CLOCK_MONOTONIC.
"""
from ._db import read_db
from ._slots import read_slots
from ._tables import Error, Tables

__all__ = ["Error", "Tables", "load"]


def load(path):
    """
    The tables of a file. Error (a ValueError): it is neither a database nor a slot file, damaged, cut
    off, or of a version that this reader does not know. OSError: it cannot be read. The whole file is
    held in memory.
    """
    from ._tables import read_bytes

    data = read_bytes(path)
    try:
        return read_slots(data) if data.startswith(b"ttmonsl1") else read_db(data)
    except Error as e:
        raise Error(f"{path}: {e}") from None
