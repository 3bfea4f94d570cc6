# SPDX-License-Identifier: GPL-2.0-only
"""Tables, and how they become DataFrames."""
import gzip
import zlib

INT_MAX = 2**63 - 1


class Error(ValueError):
    """A file that cannot be used, in one line."""


def read_bytes(path):
    """What is in a file, unpacked where it is gzip."""
    with open(path, "rb") as f:
        data = f.read()
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, OSError, zlib.error) as e:
        raise Error(f"{path}: damaged gzip data: {e}") from None


class Tables:
    """
    The tables of a file by their names, each a list of dicts: tables["sites"]. names: in the order of
    `ttmon export`. complete: whether all was seen, else sums are lower bounds; None: the file does not
    say. reasons: why not.
    """

    def __init__(self, columns, rows, complete=None, reasons=()):
        """columns: {table: {column: str or int}}, rows: {table: [a tuple a row]}."""
        self._columns = columns
        self._rows = rows
        self.names = list(columns)
        self.complete = complete
        self.reasons = list(reasons)

    def columns(self, name):
        """{column: str or int} of a table. KeyError: there is no such table."""
        return dict(self._columns[name])

    def __getitem__(self, name):
        keys = list(self._columns[name])
        return [dict(zip(keys, row)) for row in self._rows[name]]

    def __iter__(self):
        return iter(self.names)

    def __len__(self):
        return len(self.names)

    def frame(self, name):
        """A table as a DataFrame with columns of Int64 and string. ImportError: there is no pandas."""
        import pandas

        columns = self._columns[name]
        values = list(zip(*self._rows[name])) or [()] * len(columns)
        return pandas.DataFrame(
            {
                column: pandas.array(list(v), dtype="Int64" if kind is int else "string")
                for (column, kind), v in zip(columns.items(), values)
            }
        )


def number(value):
    """A figure of JSON: an integer, a truth, or a text of digits ("12", "0x10"). None: not known."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int):
        return value if -INT_MAX <= value <= INT_MAX else None
    if not isinstance(value, str) or not value:
        return None
    try:
        value = int(value, 16 if value.startswith("0x") else 10)
    except ValueError:
        return None
    return value if -INT_MAX <= value <= INT_MAX else None


def text(value):
    """A text of JSON. None: not known."""
    return value if isinstance(value, str) else None
