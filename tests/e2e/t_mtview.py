# SPDX-License-Identifier: GPL-2.0-only
"""
ttmon memtrace view: the page opened in a headless Chromium, clicked, and compared with what --json
says. Its pictures are kept in $O/shots.
"""
import json
import os
import re
import subprocess
import sys

from browser import Browser
from e2e import PATIENCE, TTMON, eq, standin, timeout, true
from t_service import complete, options_of
from t_view import HOSTILE, quiet, shot

KERNEL = False
TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "memtrace"))

import make_traces  # noqa: E402

# Is anything drawn at these points (x, y, in pixels of the page) of a canvas? Out of a copy:
# reading from one that is drawn on makes the browser complain.
DRAWN = """((c, points) => { const copy = document.createElement('canvas'), scale = c.width / c.clientWidth;
    copy.width = c.width; copy.height = c.height;
    const g = copy.getContext('2d', {willReadFrequently: true}); g.drawImage(c, 0, 0);
    return points.map(([x, y]) => g.getImageData(Math.floor(x * scale), Math.floor(y * scale), 1, 1).data[3] > 0); })"""


def run(*args, **more):
    return subprocess.run(
        [TTMON, "memtrace", *args], capture_output=True, text=True, check=False, timeout=60 * PATIENCE, **more
    )


def view(bench, trace, *options):
    out = bench.path(os.path.basename(trace) + ".html")
    done = run("view", "-o", out, *options, trace)
    eq(f"ttmon memtrace view ({done.stderr.strip()})", done.returncode, 0)
    return out


def report(trace, *options):
    return json.loads(
        subprocess.run(
            [TTMON, "--json", "memtrace", *options, trace], capture_output=True, text=True, check=True
        ).stdout
    )


def card(b, title):
    return b.eval(
        f"[...document.querySelectorAll('.card')].find((c) => c.textContent.startsWith({json.dumps(title)})).innerText"
    ).split("\n")


def cells(b, section):
    return b.eval(
        f"[...document.querySelectorAll('#{section} tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))"
    )


@timeout(60)
def test_page(bench):
    """
    A recording: its figures, its findings, a click on an instruction, the heat map, both themes,
    narrow and on paper.
    """
    trace = bench.path("x.ttmt")
    subprocess.run(
        [
            TTMON,
            "memtrace",
            "record",
            "-o",
            trace,
            "--",
            standin("gpu/run"),
            os.path.join(TOP, "tests", "memtrace", "kernels_80.ptx"),
        ],
        capture_output=True,
        check=True,
        timeout=60 * PATIENCE,
    )
    d, page = report(trace), view(bench, trace)
    true("only its owner reads it", os.stat(page).st_mode & 0o077 == 0)
    total = d["totals"]["global"]
    with Browser(1400, 900) as b:
        b.open(page)
        eq(
            "requests",
            card(b, "Requests")[1:],
            [f"{d['totals']['all']['requests']:,}", f"{len(d['sites'])} instructions, {len(d['kernels'])} kernels"],
        )
        eq("efficiency", card(b, "Efficiency")[1], f"{100 * total['efficiency'] + 1e-9:.1f} %")
        eq("sectors", card(b, "Sectors a request")[1], f"{total['sectors_per_request'] + 1e-9:.2f}")
        eq("waves", card(b, "Shared memory")[1], f"{d['totals']['shared']['wavefronts_per_request'] + 1e-9:.2f}")
        eq(
            "findings",
            b.eval("[...document.querySelectorAll('#findings li .text')].map((t) => t.textContent)"),
            [f["text"] for f in d["findings"]][:12],
        )
        # Instructions: what could be saved most comes first; a click on a title turns it around.
        dash = lambda v: "\u2013" if v is None else f"{v + 1e-9:.2f}"  # noqa: E731
        wanted = [
            [
                s["kernel"],
                s["opcode"],
                f"{s['requests']:,}",
                dash(s["sectors_per_request"]),
                dash(s["wavefronts_per_request"]),
                f"{s['could_save']:,}",
            ]
            for s in d["sites"][:20]
        ]
        eq("instructions", [[r[i] for i in (0, 1, 4, 5, 8, 11)] for r in cells(b, "sites")], wanted)
        b.click("#sites .scroll > button")
        eq("all of them", len(cells(b, "sites")), len(d["sites"]))
        eq(
            "launches",
            [r[0] for r in cells(b, "launches")],
            [str(n) for n in sorted(line["id"] for line in d["launches"])][:20],
        )
        # A click on one shows what its requests are.
        n = next(i for i, s in enumerate(d["sites"]) if sum(1 for v in s["lines_histogram"] if v) > 2)
        site = d["sites"][n]
        b.click(f"#sites tbody tr:nth-child({n + 1})")
        text = b.eval("document.getElementById('details').innerText")
        for words in (
            site["opcode"],
            site["file"] + f":{site['line']}",
            f"{site['lines_per_request'] + 1e-9:.2f}",
            site["class"],
            site["first_byte"],
        ):
            true(f"{words} is not in {text!r}", words in text)
        for name in ("sectors", "lines"):
            what = b.eval(
                f"document.querySelector('#details figure[data-of^={name.capitalize()}] "
                "canvas').getAttribute('aria-label')"
            )
            eq(
                f"histogram of {name}",
                what.split(": ")[1],
                ", ".join(f"{v:,} of {'more' if i == 33 else i}" for i, v in enumerate(site[f"{name}_histogram"]) if v),
            )
            values = [(i, v) for i, v in enumerate(site[f"{name}_histogram"]) if v]
            first, step = values[0][0], 18 if values[-1][0] - values[0][0] > 15 else 34
            half = [[(i - first + 0.5) * step, 53] for i, _ in values]
            eq(
                "bars of half the height",
                b.eval(
                    f"{DRAWN}(document.querySelector('#details figure[data-of^={name.capitalize()}] canvas'), {half})"
                ),
                [2 * v > max(v for _, v in values) for _, v in values],
            )
        # How far requests are spread: of this one, and of all.
        for where, of in (("details", site), ("spread", d["totals"]["all"])):
            said = b.eval(
                f"document.querySelector('#{where} figure[data-of^=Lanes] canvas').getAttribute('aria-label')"
            )
            eq(
                f"lanes, {where}",
                said,
                "Lanes a request: "
                + ", ".join(
                    f"{v:,} of {name}"
                    for v, name in zip(of["lanes_bins"], ("1", "2-3", "4-7", "8-15", "16-31", "32"))
                    if v
                ),
            )
            eq(
                f"pages, {where}",
                b.eval(f"document.querySelectorAll('#{where} figure[data-of^=Pages]').length"),
                2 if sum(of["pages_4k_bins"]) else 0,
            )
        shot(b, "mt-details")
        # What kernels do to a buffer, and the instruction that costs most there; shares of findings
        # where they were counted.
        worst = next(s for s in d["sites"] if s["row"] == d["buffers"][0]["worst_sites"][0]["site"])
        true(
            "the buffer's worst",
            any(
                f"{worst['opcode']} at kernels.cu:{worst['line']}" in r and "read, write" in r
                for r in cells(b, "buffers")
            ),
        )
        eq(
            "shares",
            b.eval(
                "[...document.querySelectorAll('#findings li')].map((l) => (l.querySelector('.soft') || {textContent: "
                "''}).textContent.trim())"
            ),
            ["" if f["estimated"] else f"{100 * f['weight'] + 1e-9:.1f} %" for f in d["findings"]][:12],
        )
        eq(
            "one context",
            b.eval("[...document.querySelectorAll('#launches th')].some((h) => h.textContent.includes('Context'))"),
            False,
        )
        # Heat: as in the data, in colours, and said beside the pointer.
        heat, chart = [
            h["sectors"] for h in d["heat"]["buffers"] if any(h["sectors"])
        ], "document.getElementById('plot').chart"
        true("cells", b.eval(f"{chart}.cells") == heat[0])
        left, high, columns, first, rows, width = b.eval(
            f"(() => {{ const c = {chart}; return [c.left, c.high, c.columns, c.first, c.rows, c.canvas.clientWidth]; "
            f"}})()"
        )
        shown = heat[0][first * columns : (first + rows) * columns]
        points = [
            [left + (i % columns + 0.5) * (width - left) / columns, (i // columns + 0.5) * high / rows]
            for i in range(len(shown))
        ]
        eq("cells drawn", b.eval(f"{DRAWN}({chart}.canvas, {points})"), [v > 0 for v in shown])
        at = next(i for i, v in enumerate(heat[0]) if v)
        b.eval("document.getElementById('plot').scrollIntoView({block: 'center'})")
        b.mouse(
            "mouseMoved",
            b.eval(
                f"""(() => {{ const c = {chart}, r = document.getElementById('plot').getBoundingClientRect();
            const col = {at} % c.columns, row = Math.floor({at} / c.columns) - c.first;
            return [r.left + 1 + c.left + (col + 0.5) * (r.width - c.left - 2) / c.columns,
                r.top + 1 + (row + 0.5) * c.high / c.rows]; }})()"""
            ),
        )
        b.frame()
        tip = b.eval("document.getElementById('tip').innerText")
        true(
            f"tip {tip!r}",
            not b.eval("document.getElementById('tip').hidden") and re.search(rf"Sectors\s+{heat[0][at]:,}$", tip),
        )
        eq("buffers to choose from", b.eval("document.getElementById('heat-buffer').options.length"), len(heat))
        other = len(heat) - 1
        b.eval(
            f"(() => {{ const s = document.getElementById('heat-buffer'); s.value = {other}; s.dispatchEvent(new "
            f"Event('change')); }})()"
        )
        true("another buffer", b.eval(f"{chart}.cells") == heat[other])
        # Themes, widths, paper.
        ground = "getComputedStyle(document.body).backgroundColor"
        light, bars = b.eval(ground), "document.querySelector('#details canvas').toDataURL()"
        before = b.eval(bars)
        b.click("#theme")
        true("no dark theme", b.eval(ground) != light)
        true("the bars are as they were", b.eval(bars) != before)
        shot(b, "mt-dark")
        for width in (500, 1920):
            b.size(width, 1000)
            b.frame()
            true(f"scrolls sideways at {width}", b.eval("document.documentElement.scrollWidth <= innerWidth"))
            shot(b, f"mt-wide{width}")
        b.call("Page.printToPDF")
        quiet(b, page)


@timeout(60)
def test_hostile_and_large(bench):
    """
    Names stay text whatever they are; of more rows than a page takes the worst are in it, and the
    sums are those of all; nothing at all is said.
    """
    hostile, large = bench.path("hostile.txt"), bench.path("large.txt")
    with open(hostile, "w", encoding="utf-8") as f:
        for i, name in enumerate(HOSTILE):
            f.write(
                make_traces.launch(i, name, (1, 1, 1), (64, 1, 1))
                + make_traces.access(i, (0, 0, 0), 0, "LDG.E", make_traces.unit(make_traces.A, 128))
            )
    with open(large, "w", encoding="utf-8") as f:
        for i in range(5000):
            f.write(
                make_traces.launch(i, f"k{i}", (1, 1, 1), (32, 1, 1))
                + make_traces.access(
                    i, (0, 0, 0), 0, "LDG.E", make_traces.unit(make_traces.A + i * 512, 4 * (i % 9 + 1))
                )
            )
    with open(bench.path("none.txt"), "w", encoding="utf-8") as f:
        f.write(make_traces.launch(0, "k", (1, 1, 1), (32, 1, 1)))
    with Browser(1400, 900) as b:
        page = view(bench, hostile)
        with open(page, encoding="utf-8") as f:
            text = f.read()
        # What is packed may have three letters in a row by chance.
        true("a name is in the page as it is", "got in" not in text and "gnp.exe" not in text)
        b.open(page)
        for i in range(len(HOSTILE)):
            b.click(f"#sites tbody tr:nth-child({i + 1})")
        b.eval("document.querySelectorAll('#findings button').forEach((k) => k.click())")
        true(f"a name got in: {b.eval('document.title')!r}", b.eval("document.title.startsWith('ttmon')"))
        eq(
            "elements made by names",
            b.eval("document.querySelectorAll('img, svg, main script, #tip script').length"),
            0,
        )
        said = b.eval("document.body.innerText + [...document.querySelectorAll('[title]')].map((e) => e.title).join()")
        true("the name is not shown as text", "<img src=x onerror" in said)
        true(
            "control characters or marks of direction",
            not re.search("[\u0000-\u0008\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2028\u2029]", said),
        )
        true(
            "a long name makes a high row",
            b.eval("Math.max(...[...document.querySelectorAll('tbody tr')].map((r) => r.offsetHeight))") < 60,
        )
        shot(b, "mt-hostile")
        quiet(b, page)
        page = view(bench, large, "--plain")
        b.open(page, seconds=10)
        eq("sum of all", card(b, "Requests")[1:], ["5,000", "5,000 instructions, 5,000 kernels"])
        for section in ("sites", "launches", "kernels"):
            true(section, "4,096 of 5,000" in b.eval(f"document.getElementById('{section}-note').textContent"))
        shot(b, "mt-large")
        quiet(b, page)
        page = view(bench, bench.path("none.txt"))
        b.open(page)
        true("says that there is nothing", "No access was recorded." in b.eval("document.body.innerText"))
        quiet(b, page)


def test_command(bench):
    """What it refuses, and that it leaves nothing half written; a trace that is cut is shown, and said to be."""
    trace = os.path.join(TOP, "tests", "memtrace", "traces", "nvbit-1.7.txt")
    out = bench.path("x.html")
    for args in (
        [trace],
        ["-o", out],
        ["-o", out + ".gz", trace],
        ["-o", "/dev/full", trace],
        ["-o", "/nonexistent/x.html", trace],
        ["-o", out, "/nonexistent"],
        ["-o", out, "--json", trace],
        ["-o", out, "--db", "/nonexistent", trace],
    ):
        done = run("view", *args, stdin=subprocess.DEVNULL)
        eq(f"{args}: {done.stderr!r}", (done.returncode, len(done.stderr.splitlines())), (2, 1))
    eq("left over", os.listdir(bench.dir), [])
    with open(trace, "rb") as f:
        done = subprocess.run([TTMON, "memtrace", "view", "-o", "-", "-"], stdin=f, capture_output=True, check=False)
    true(
        "standard input to standard output",
        done.returncode == 0 and done.stdout.startswith(b"<!DOCTYPE html>") and done.stdout.endswith(b"</html>\n"),
    )
    for command in ("view", "diff"):
        eq(
            f"completion of {command}",
            set(complete(TTMON, "memtrace", command, "--")),
            options_of(TTMON, "memtrace", command),
        )
    # The options of the program in front of the command.
    done = subprocess.run(
        [TTMON, "--json", "memtrace", "diff", trace, trace], capture_output=True, text=True, check=False
    )
    eq(f"--json in front ({done.stderr})", json.loads(done.stdout)["schema"], "ttmon-memtrace-diff")
