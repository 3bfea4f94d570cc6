# SPDX-License-Identifier: GPL-2.0-only
"""The short form of tests/soak: the service with programs coming and going."""
import os
import sys

from e2e import timeout, true

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "soak"))
from soak import soak  # noqa: E402


@timeout(60)
def test_short(bench):
    runs, _, _ = soak(bench, 12)
    true("no ledger was run", runs)
