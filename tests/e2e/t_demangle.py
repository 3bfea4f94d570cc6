# SPDX-License-Identifier: GPL-2.0-only
"""Names of C++ functions: as people write them in all that people read, symbols in all that programs read."""
import base64
import json
import re
import subprocess

from e2e import PATIENCE, TTMON, eq, standin, true


def ttmon(*args):
    return subprocess.run([TTMON, *args], capture_output=True, text=True, timeout=20 * PATIENCE, check=True).stdout


def test_cxx(bench):
    """A program with lambdas, destructors and std::function: summary, tables, advice and page against the database."""
    path, page = bench.path("names.json"), bench.path("names.html")
    daemon = bench.daemon("--dump-db", path, cmd=[standin("unwind_cxx")], wait=False)
    daemon.wait(0)
    with open(path, encoding="utf-8") as f:
        db = json.load(f)
    symbols = {f[2] for s in db["sites"] for f in s["frames"] if f[2]}
    true(
        f"the database has symbols: {sorted(symbols)}",
        any(x.startswith("_ZL7catcheri+0x") for x in symbols) and any(x.startswith("_ZN5GuardD") for x in symbols),
    )

    ttmon("view", "--plain", "-o", page, path)
    shown = {
        "summary": daemon.stderr(),
        "db show": ttmon("db", "show", path),
        "advise": ttmon("advise", path),
        "heat": ttmon("heat", "-1", "--by", "site", path),
    }
    for name, text in shown.items():
        # The command that it proposes is read by a program; each symbol is once in it.
        command = re.search(r"^next: sudo ttmon run .*", text, re.M) if name == "advise" else None
        unpin = re.search(r" --unpin (\S+) -- ", command.group()).group(1).split(",") if command else []
        eq(f"{name}: --unpin", unpin, ["_ZL10unwind_pinm"] if name == "advise" else [])
        read = text.replace(command.group(), "") if command else text
        true(f"{name}: symbols in {text}", not re.search(r"\b_Z\w", read))
        if name != "heat":
            true(
                f"{name}: no names in {text}",
                re.search(r"^ +unwind_pin\S* < .*(catcher|Guard::~Guard|std::\w+<\.\.\.>)", text, re.M),
            )
    # What made the call is there, and what is nearest to the program; what is missing between is said.
    sites = [line.strip() for line in shown["summary"].splitlines() if " < " in line]
    true(
        f"sites {sites}",
        sites
        and all(
            s.startswith("unwind_pin < ") and len(s) <= 77 and re.search(r" < (main|std::thread::\S+)$", s)
            for s in sites
        ),
    )
    true(f"no dots in {sites}", any(" < ... < " in s for s in sites))
    with open(page, encoding="utf-8") as f:
        data = base64.b64decode(re.search(r'id="meta"[^>]*>([^<]*)<', f.read()).group(1)).decode()
    true("the page has symbols", "Guard::~Guard+0x" in data and "_ZN5Guard" not in data)
    sites = [s["call_site"] for p in json.loads(ttmon("advise", "--json", path))["programs"] for s in p["advice"]]
    true(
        f"JSON has no symbols: {sites}", any(" < _ZN5GuardD" in s for s in sites) and not any("::" in s for s in sites)
    )
