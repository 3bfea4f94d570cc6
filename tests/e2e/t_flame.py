# SPDX-License-Identifier: GPL-2.0-only
"""
`ttmon flame`: folded stacks against what the database says, and the page in a headless Chromium, light
and dark. Its pictures are kept in $O/shots.
"""
import json
import os
import random
import re
import subprocess

import made_db
from browser import Browser
from e2e import OUT, PATIENCE, TTMON, eq, load_db, timeout, true
from t_view import HOSTILE, quiet, shot

KERNEL = False
PINNED = ("host_alloc", "registered", "pool")


def flame(*args, status=0):
    done = subprocess.run(
        [TTMON, "flame", *args], capture_output=True, text=True, timeout=60 * PATIENCE, check=False
    )
    eq(f"ttmon flame {args}: {done.stderr}", done.returncode, status)
    return done.stdout, done.stderr


def folded(path, of):
    rows = [line.rpartition(" ") for line in flame("--folded", "--of", of, path)[0].splitlines()]
    eq("each stack once", len({r[0] for r in rows}), len(rows))
    return {stack: int(n) for stack, _, n in rows}


def stack_of(doc, site):
    """Outermost first, functions without their offsets."""
    names = [f[2].rpartition("+")[0] for f in reversed(doc["sites"][site]["frames"])]
    return ";".join(names) or "(call stack not known)"


def expected(doc):
    """Pinned byte-seconds, bytes at the peak and at the end, by stack, computed in another way."""
    end_ns, spans = int(doc["capture"]["end_ns"]), []
    for a in doc["allocations"]:
        if a["method"] in PINNED:
            live = a["free_ns"] is None
            spans.append((int(a["alloc_ns"]), end_ns if live else int(a["free_ns"]), live, a["size"], a["site"]))
    moments = sorted({s[0] for s in spans})
    sums = [sum(s[3] for s in spans if s[0] <= t and (s[2] or s[1] > t)) for t in moments]
    peak = moments[sums.index(max(sums))]
    out = {"byte-seconds": {}, "peak": {}, "end": {}}
    for begin, end, live, size, site in spans:
        out["byte-seconds"][site] = out["byte-seconds"].get(site, 0) + size * (end - begin)
        if begin <= peak and (live or end > peak):
            out["peak"][site] = out["peak"].get(site, 0) + size
        if live:
            out["end"][site] = out["end"].get(site, 0) + size
    out["byte-seconds"] = {k: (v + 500_000_000) // 1_000_000_000 for k, v in out["byte-seconds"].items()}
    return {of: {stack_of(doc, k): v for k, v in rows.items() if v} for of, rows in out.items()}


def made(sites=30):
    m = made_db.workload(300, sites=sites)
    m.sites[1].update(pin_ns=5_000_000, methods=["host_alloc"])
    m.sites[1].update(h2d={"pageable": [3, 12345]}, d2h={"pageable": [1, 5]})
    return m


def test_folded(bench):
    """Each figure, by stack; lower bounds are said to be some; what is not known is no 0."""
    path = made().write(bench.path("db.json.gz"))
    doc = load_db(path)
    for of, rows in expected(doc).items():
        eq(of, folded(path, of), rows)
    eq("pageable", folded(path, "pageable"), {stack_of(doc, 1): 12350})
    pins = {}
    for a in doc["allocations"]:
        if a["method"] in PINNED and a["site"] != 1:
            pins[stack_of(doc, a["site"])] = pins.get(stack_of(doc, a["site"]), 0) + a["pin_ns"]
    true("the sum of the site counts", len(pins) > 3)
    eq("pin", folded(path, "pin"), {**pins, stack_of(doc, 1): 5_000_000})
    _, err = flame("--folded", "--of", "wait", path, status=2)
    true(err, "no synchronous call was looked at" in err)
    eq("nothing to say", flame("--folded", path)[1], "")
    m = made()
    m.complete, m.reasons = False, ["lost"]
    true("lower bounds", "lost: figures are lower bounds" in flame("--folded", m.write(bench.path("lost")))[1])
    m = made()
    m.alloc(0, 4096, 1, None, kind="unknown")
    true("kind not known", "figures are lower bounds" in flame("--folded", m.write(bench.path("unknown")))[1])
    true("no output", "-o OUT.html, or --folded" in flame(path, status=2)[1])


def test_traced(bench):
    """The demo: its call stacks are those of its database, and waits stand below their callers."""
    db = bench.path("db.json")
    bench.daemon("--dump-db", db, cmd=[os.path.join(OUT, "demo", "workload")], wait=False).wait()
    doc = load_db(db)
    rows = folded(db, "wait")
    eq("waits", sum(rows.values()), sum(w["ns"] or 0 for w in doc["waits"]["sites"]))
    true(f"{rows}", any(stack.endswith("upload_batch;cudaMemcpy") for stack in rows))
    true("weights", any(s.endswith("main;alloc_weights_pinned") for s in folded(db, "byte-seconds")))
    moved = sum(p.get("pageable", [0, 0])[1] for s in doc["sites"] for p in (s["h2d"], s["d2h"]))
    eq("pageable", sum(folded(db, "pageable").values()), moved)


test_traced.kernel = True


def test_order(bench):
    """Members in any order, white space, allocations across the reader's buffers; damage is an error."""
    m = made_db.workload(2000, copies=3)
    doc = m.document()
    path = bench.path("a.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(doc, f)
    want = folded(path, "byte-seconds")
    r = random.Random(1)
    for i, a in enumerate(doc["allocations"]):
        items = list(a.items())
        r.shuffle(items)
        doc["allocations"][i] = dict(items)
    doc["allocations"][7]["name"] = 'a } ] " \\ name' * 20000
    with open(path, "w", encoding="utf-8") as f:
        json.dump(doc, f, indent=1)
    eq("the same", folded(path, "byte-seconds"), want)
    text = json.dumps(doc)
    at = text.index('"alloc_ns"')
    for bad in (text[:-5000], text[:at] + "," + text[at:], text.replace('"site": ', '"site": 9999999, "x": ', 1)):
        with open(path, "w", encoding="utf-8") as f:
            f.write(bad)
        _, err = flame("--folded", path, status=2)
        true(err, err.startswith("ttmon flame: ") and err.count("\n") == 1)


FIND = """(() => { const f = document.querySelector('#find');
    f.value = '%s'; f.dispatchEvent(new Event('input')); })()"""


def frames(b):
    return b.eval("[...document.querySelectorAll('.frame')].map((f) => f.getAttribute('aria-label'))")


@timeout(90)
def test_page(bench):
    """Totals, zoom, search, each figure; Python and native frames; both themes; nothing is fetched."""
    m = made()
    script = m.object("/srv/train.py")
    m.objects[-1]["kind"] = "python"
    site = m.site([(1, 0x999, "at::empty+0x10"), (script, 42, "forward+0x0"), (1, 0x900, "main+0x2a")])
    m.alloc(site, 1 << 30, 0.5, None)
    m.complete, m.reasons = False, ["lost"]
    db, page = m.write(bench.path("db.json")), bench.path("flame.html")
    flame("-o", page, db)
    true("only its owner reads it", os.stat(page).st_mode & 0o077 == 0)
    total = sum(folded(db, "byte-seconds").values())
    with Browser(1200, 420) as b:
        b.open(page)
        shot(b, "flame-light")
        light = b.eval("getComputedStyle(document.body).backgroundColor")
        said = b.eval("document.querySelector('#status').textContent")
        eq("in all", said, f"\u2265 {total / 2**30:.1f} GiB\u00b7s in all")
        true("lost", "Not all was seen (lost)" in b.eval("document.querySelector('#state').textContent"))
        eq("not known", b.eval("document.querySelectorAll('#of button')[5].disabled"), True)
        python = b.eval("document.querySelector('.frame.python').textContent")
        eq("a Python frame", python, "train.py:42 in forward")
        true("narrow frames do not overlap", b.eval("""(() => {
            const rows = Map.groupBy(document.querySelectorAll('.frame'), (f) => f.style.top);
            return [...rows.values()].every((row) => {
                const r = row.map((f) => f.getBoundingClientRect()).sort((x, y) => x.left - y.left);
                return r.every((f, i) => !i || f.left >= r[i - 1].right - 0.51);
            }); })()"""))
        b.click(".frame.python")
        true("zoomed", "train.py:42 in forward: " in b.eval("document.querySelector('#status').textContent"))
        eq("its callers and callees", len(frames(b)), 4)
        b.click("#whole")
        b.eval(FIND % "STEP")
        true("found", b.eval("document.querySelectorAll('.frame.found').length") > 3)
        b.eval(FIND % "")
        b.click("#of button:nth-child(4)")
        true("pageable", "12.1 KiB in all" in b.eval("document.querySelector('#status').textContent"))
        b.click("#of button:nth-child(2)")
        true("peak", "The peak was" in b.eval("document.querySelector('#about').textContent"))
        b.dark(True)
        shot(b, "flame-dark")
        true("no dark theme", b.eval("getComputedStyle(document.body).backgroundColor") != light)
        quiet(b, page)


@timeout(90)
def test_hostile_names(bench):
    """Names of traced programs stay text in the page, and one frame of a line in folded stacks."""
    m = made_db.Maker(1.0, hostname=HOSTILE[0])
    lib = m.object("/tmp/" + HOSTILE[0] + ".so")
    for i, name in enumerate(HOSTILE):
        m.process(comm=name[:15])
        m.alloc(m.site([(lib, 16 * i + 16, name), (lib, 0x999, "a;b\nc+0x1"), (lib, 0x77, None)]), 4096, 0.1, None)
    db, page = m.write(bench.path("db.json")), bench.path("flame.html")
    for line in flame("--folded", "--of", "end", db)[0].splitlines():
        true(repr(line), re.fullmatch(r"[^;]+;a:b.c;[^;]+ \d+", line))
        true(repr(line), not re.search("[\u0000-\u001f\u202e]", line))
    flame("-o", page, db)
    with open(page, encoding="utf-8") as f:
        true("a name is in the page as it is", "got in" not in f.read())
    with Browser(1200, 420) as b:
        b.open(page)
        shot(b, "flame-hostile")
        true("a name got in", b.eval("document.title !== 'got in'"))
        eq("elements made by names", b.eval("document.querySelectorAll('img, svg, main script').length"), 0)
        true("the name is shown as text", any("<img src=x onerror" in f for f in frames(b)))
        quiet(b, page)
