# SPDX-License-Identifier: GPL-2.0-only
"""
ttmon view: the page opened in a headless Chromium, looked into, clicked, and compared with the
database. Its pictures are kept in $O/shots.
"""
import itertools
import json
import os
import re
import subprocess

import made_db
from browser import Browser, lightness
from e2e import OUT, TTMON, eq, kernel, standin, timeout, true

KERNEL = False
CHART = "document.getElementById('plot').chart"
# Pixels of the picture, out of a copy: reading from a canvas that is drawn on makes the browser complain.
PIXELS = (
    """((x, y, w, h) => { const copy = document.createElement('canvas'), base = %s.base;
    copy.width = w || base.width; copy.height = h || base.height;
    const g = copy.getContext('2d', {willReadFrequently: true});
    g.drawImage(base, -Math.round(x), -Math.round(y));
    return g.getImageData(0, 0, copy.width, copy.height).data; })"""
    % CHART
)
VISIONS = ("none", "deuteranopia", "protanopia", "tritanopia", "achromatopsia")
METHODS = (
    "host_alloc",
    "registered",
    "pool",
    "custom",
    "mmap",
    "managed",
    "device",
    "tt_dma",
    "tt_dram",
    "tt_l1",
    "tt_l1_small",
    "tt_trace",
    "tt_cb",
)
# Of CIE L*, from 0 to 100. Half of all people see a difference of 7.3 between marks a third of a
# degree large, about 13 pixels, and need more for smaller ones (Stone,
# Szafir, Setlur: An engineering model for color difference as a function of size, 2014); lines are
# thinner. Differences of hue are not counted: not everybody has them.
APART = 12
HOSTILE = [
    "</script><script>document.title = 'got in'</script>",
    "<img src=x onerror=\"document.title='got in'\">",
    "\u202egnp.exe",
    "a\u2028b\u2029c",
    "\"'`${document.title='got in'}",
    "x" * 4000,
    "\x1b[31mred\x7f",
    "constructor",
    "__proto__",
    "&lt;b&gt;",
]


def view(bench, db, *options, status=0):
    out = os.path.splitext(db)[0] + ".html"
    done = subprocess.run([TTMON, "view", db, "-o", out, *options], capture_output=True, text=True, check=False)
    eq(f"status of ttmon view ({done.stderr.strip()})", done.returncode, status)
    return out


def shot(b, name):
    """The picture, kept in $O/shots: as large as the window, on the ground of its theme, and not empty."""
    os.makedirs(os.path.join(OUT, "shots"), exist_ok=True)
    b.frame()
    picture = b.screenshot(os.path.join(OUT, "shots", name + ".png"))
    eq(f"size of {name}", (picture.width, picture.height), b.pixels)
    ground, dark = lightness(picture.at(1, 1)), b.eval("isDark()")
    true(f"the ground of {name} has the lightness {ground:.0f}, dark: {dark}", ground < 15 if dark else ground > 90)
    written = sum(row != picture.rows[0] for row in picture.rows)
    colours = len(picture.colours())
    true(
        f"{name}: {written} rows with something on them, {colours} colours",
        written > picture.height / 3 and colours > 16,
    )
    return picture


def quiet(b, page):
    """Nothing on the console, and nothing asked for but the page."""
    eq("console", b.console, [])
    eq("requests", b.requests, ["file://" + page])


def card(b, title):
    return b.eval(
        f"[...document.querySelectorAll('.card')].find((c) => c.textContent.startsWith({json.dumps(title)})).innerText"
    )


def drawn(b):
    """How many colours there are in the picture: a canvas that nothing was drawn on has one."""
    return b.eval(f"new Set(new Uint32Array({PIXELS}(0, 0).buffer)).size")


@kernel(True)
@timeout(120)
def test_traced(bench):
    """A traced program: the figures of the page are those of the database and of ttmon db show."""
    _, db, _ = bench.trace([standin("scen"), "copies"])
    page = view(bench, bench.path("db.json"))
    pinned = [a for a in db["allocations"] if a["method"] in ("host_alloc", "registered", "pool")]
    with Browser() as b:
        b.open(page)
        quiet(b, page)
        eq(
            "peak",
            int(card(b, "Peak pinned pages").split("\n")[1].replace(",", "")),
            db["summary"]["pinned_peak_pages"],
        )
        true("pinned", f"{len(pinned)} pinned" in card(b, "Host allocations"))
        moved = sum(
            a["transfers"].get("h2d", [0, 0])[0]
            for a in db["allocations"]
            if a["method"] in ("host_alloc", "registered", "pool", "custom", "mmap")
        )
        true(f"{moved} transfers: {card(b, 'Transfers')}", f"\n{moved} to the device" in card(b, "Transfers"))
        true("title", db["processes"][0]["comm"] in b.eval("document.title"))
        # Every transfer is in the bins.
        copies = sum(1 for a in db["allocations"] for e in a["events"] if e[1] == "h2d" and not e[5] & 4)
        eq(
            "copies in the bins",
            b.eval(
                f"(() => {{ const d = {CHART}.data; let n = 0; for (let a = 0; a < d.n; a++) for (let k = d.from[a]; "
                f"k < d.middle[a]; k++) n += d.copies[k]; return n; }})()"
            ),
            copies,
        )
        shot(b, "traced")


@timeout(120)
def test_look_and_touch(bench):
    """Hover, click, keys, wheel, drag, filter, both themes: each does what it says."""
    m = made_db.workload(300)
    m.process(comm="other", pid=77)
    m.alloc(1, 8192, 1, 2, [(1.5, "h2d", 8192)], proc=1)
    page = view(bench, m.write(bench.path("w.json.gz")))
    with Browser() as b:
        b.open(page)
        b.eval("document.getElementById('plot').scrollIntoView()")
        colours = drawn(b)
        true(f"only {colours} colours in the heat map", colours > 40)
        shot(b, "light")
        # Each transfer is in its bin.
        got, width = b.eval(
            f"(() => {{ const d = {CHART}.data; return [Array.from(d.from, (_, a) => [[d.from[a], d.middle[a]], "
            f"[d.middle[a], d.to[a]]].map(([k, end]) => {{ const l = []; for (; k < end; k++) l.push([d.at[k], "
            f"d.copies[k], d.bytes[k]]); return l; }})), d.width]; }})()"
        )
        for a, bins in zip(m.document()["allocations"], got):
            for other in (False, True):
                wanted = {}
                for rel, kind, n, *_ in a["events"]:
                    if (kind != "h2d") == other:
                        one = wanted.setdefault((int(a["alloc_ns"]) + rel - made_db.T0) // width, [0, 0])
                        one[0] += 1
                        one[1] += n
                eq(f"bins of {a['id']}", bins[other], [[at, *one] for at, one in sorted(wanted.items())])
        # The hottest site is on top, and what is said of a row is what is in the database.
        first = b.eval(f"{CHART}.data.meta.addr[{CHART}.rows[0]]")
        row = next(a for a in m.allocs if a["addr"] == first)
        b.mouse(
            "mouseMoved",
            b.eval(
                f"(() => {{ const c = {CHART}, r = c.box.getBoundingClientRect(); return [r.left + c.left + 200, "
                f"r.top + c.y(0) + 2]; }})()"
            ),
        )
        b.frame()
        tip = b.eval("document.getElementById('tip').hidden ? '' : document.getElementById('tip').innerText")
        true(f"{first} is not in the tip {tip!r}", first in tip and row["method"] in tip)
        true(f"its copies are not in the tip {tip!r}", f"{row['transfers']['h2d'][0]} cop" in tip)
        shot(b, "hover")
        # A click keeps it, Escape lets it go.
        b.click("#plot", 0.5, 0.02 + 22 / b.eval("document.getElementById('plot').clientHeight"))
        details = b.eval("document.getElementById('details').innerText")
        true(
            f"no frames in the details {details!r}",
            "main+0x2a" in details and re.search("Allocation\\s+[0-9a-f]{16}:", details),
        )
        shot(b, "details")
        b.eval("document.getElementById('plot').focus()")
        b.key("Escape")
        true("the details are still there", b.eval("document.getElementById('details').hidden"))
        # Keys.
        full = b.eval(f"[{CHART}.t0, {CHART}.t1]")
        b.key("+")
        closer = b.eval(f"[{CHART}.t0, {CHART}.t1]")
        true(f"+ did not come closer: {full} {closer}", abs((closer[1] - closer[0]) * 2 - (full[1] - full[0])) < 1e6)
        b.key("ArrowRight")
        true("the arrow did not move", b.eval(f"{CHART}.t0") > closer[0])
        b.key("ArrowDown")
        b.key("ArrowDown")
        eq("row chosen by keys", b.eval(f"{CHART}.rows.indexOf({CHART}.selected)"), 1)
        b.key("0")
        eq("all again", b.eval(f"[{CHART}.t0, {CHART}.t1]"), full)
        # Wheel and drag; far in, the page says that this is as close as it gets.
        b.eval("document.getElementById('plot').scrollIntoView()")
        middle = b.place("#plot", 0.6, 0.3)
        b.wheel(middle, -500)
        true("the wheel did not come closer", b.eval(f"{CHART}.t1 - {CHART}.t0") < (full[1] - full[0]) * 0.6)
        before = b.eval(f"{CHART}.t0")
        b.drag(middle, [middle[0] - 100, middle[1]])
        true("the drag did not move", b.eval(f"{CHART}.t0") > before)
        b.drag(middle, [middle[0] + 150, middle[1] + 60], modifiers=8)
        shot(b, "chosen")
        for _ in range(16):  # each to 1 / e, from 10 s to 8 us
            b.wheel(middle, -600)
        eq("closest", b.eval(f"Math.round(({CHART}.t1 - {CHART}.t0) / {CHART}.width)"), 8)
        true(
            "does not say so", b.settle("document.getElementById('status').textContent.includes('as close as it gets')")
        )
        shot(b, "closest")
        b.click("#zoom-all")
        eq("all again", b.eval(f"[{CHART}.t0, {CHART}.t1]"), full)
        # Filters.
        b.eval(
            "(() => { const f = document.getElementById('filter'); f.value = 'PREFETCH host_alloc'; "
            "f.dispatchEvent(new Event('input')); })()"
        )
        wanted = sum(
            1 for a in m.allocs if a["method"] == "host_alloc" and "prefetch" in m.sites[a["site"]]["frames"][0][2]
        )
        eq("rows with prefetch", b.eval(f"{CHART}.rows.length"), wanted)
        b.eval(
            "(() => { const f = document.getElementById('filter'); f.value = ''; f.dispatchEvent(new Event('input')); "
            "const p = document.getElementById('proc'); p.value = '1'; p.dispatchEvent(new Event('input')); })()"
        )
        eq("rows of one process", b.eval(f"{CHART}.rows.length"), 1)
        true("the card of one process", "\n2\n" in card(b, "Peak pinned pages"))
        b.eval(
            "(() => { const p = document.getElementById('proc'); p.value = '-1'; p.dispatchEvent(new Event('input')); "
            "})()"
        )
        # Tables: a click on a title sorts, one on a row shows it.
        b.click("#tables table th:nth-child(3) button")
        column = b.eval(
            "[...document.querySelectorAll('#tables table:first-of-type tbody')][0].innerText.split('\\n').map((l) => "
            "Number(l.split('\\t')[2].replace(/,/g, '')))"
        )
        eq("sorted", column, sorted(column, reverse=True))
        b.click("#tables table tbody tr")
        true("the row of a table shows nothing", not b.eval("document.getElementById('details').hidden"))
        # Themes, by the system and by the button; both can be drawn, so can paper.
        ground = "getComputedStyle(document.body).backgroundColor"
        light = b.eval(ground)
        b.dark(True)
        b.frame()
        dark = b.eval(ground)
        true("no dark theme", dark != light)
        true("the dark picture is empty", drawn(b) > 40)
        shot(b, "dark")
        b.click("#theme")
        eq("light by the button", b.eval(ground), light)
        b.click("#mode-life")
        true("no life lines", drawn(b) > 6)
        shot(b, "life")
        for width in (600, 1920):
            b.size(width, 1080)
            b.frame()
            eq(f"scrolls sideways at {width}", b.eval("document.documentElement.scrollWidth <= innerWidth"), True)
            shot(b, f"wide{width}")
        b.call("Page.printToPDF")
        quiet(b, page)
        # For a person to look at; the browser asks itself for filters.
        b.size(1280, 800)
        b.click("#zoom-all")
        for kind in VISIONS[1:]:
            b.vision(kind)
            for mode in ("life", "heat"):
                b.click(f"#mode-{mode}")
                b.eval("document.getElementById('plot').scrollIntoView()")
                shot(b, f"{kind}-{mode}")


def apart(what, one, other):
    true(f"{what}: lightness {one:.1f} and {other:.1f}", abs(one - other) >= APART)


def seen(b, picture):
    """
    Lightness in the picture of the chart's ground, and of each row [method, [(copies, lightness) of
    each cell]]; in the legend of the heat's ramp.
    """
    corner, left, rows, ramp = b.eval(
        f"""(() => {{ const c = {CHART}, r = c.base.getBoundingClientRect();
        const k = document.querySelector('#legend canvas').getBoundingClientRect();
        const row = (a, i) => [c.data.methods[c.data.method[a]].name, r.top + c.y(i + 0.5),
            Array.from(c.heat.slice(i * c.nx, (i + 1) * c.nx))];
        return [[r.left + 20, r.top + 4], r.left + c.left, Array.from(c.rows, row),
            [k.left, k.right, (k.top + k.bottom) / 2]]; }})()"""
    )
    light = lambda x, y: lightness(picture.at(x, y))  # noqa: E731
    # A cell is two pixels wide. Those at the edges are cut off.
    cells = [
        [method, [(n, light(left + 2 * i + 1, y)) for i, n in list(enumerate(copies))[4:-4]]]
        for method, y, copies in rows
    ]
    return light(*corner), cells, [light(x, ramp[2]) for x in range(int(ramp[0]) + 2, int(ramp[1]) - 2)]


def heat_is_seen(what, dark, ground, cells, legend):
    """
    The more copies the further from the ground; what is only alive, a single copy, and each power
    of 10 can be told apart.
    """
    by_copies = {}
    for n, light in next(row for method, row in cells if method == "host_alloc"):
        by_copies.setdefault(n, set()).add(light)
    eq(
        f"{what}, numbers of copies with more than one lightness",
        [n for n, lights in by_copies.items() if len(lights) > 1],
        [],
    )
    by_copies = {n: lights.pop() for n, lights in sorted(by_copies.items())}
    alive, *ramp = by_copies.values()
    true(f"{what}: {ramp}", len(ramp) > 30 and all(a < b if dark else a > b for a, b in itertools.pairwise(ramp)))
    # Its pixels are less than one apart in lightness, and colours are rounded twice: by the ramp and by the emulation.
    true(
        f"{what}, the legend: {legend}",
        len(legend) > 100 and all((b - a if dark else a - b) > -0.5 for a, b in itertools.pairwise(legend)),
    )
    for a, b in itertools.pairwise([ground, *(by_copies[n] for n in (0, 1, 10, 100, 1000))]):
        apart(what, a, b)
    apart(f"{what}, the legend", legend[0], legend[-1])


def lines_are_seen(what, ground, cells):
    """Any two methods have other stripes or another lightness; a transfer is seen on each."""
    known = {}
    for method, row in cells:
        free = [light for n, light in row[:60] if not n]
        eq(f"{what}, lightness of {method}: {set(free)}", len(set(free) - {ground}), 1)
        # How many cells long the line and its gaps are. The first and the last of them are cut off.
        runs = {
            (light == ground, length)
            for light, length in [(light, len(list(run))) for light, run in itertools.groupby(free)][1:-1]
        }
        line = max(set(free) - {ground}, key=free.count)
        apart(f"{what}, {method} and its ground", line, ground)
        for light in {light for n, light in row if n}:
            apart(f"{what}, {method} and a transfer on it", line, light)
        known[method] = runs, line
    eq(f"{what}, methods", sorted(known), sorted(METHODS))
    for one, other in itertools.combinations(known, 2):
        if known[one][0] == known[other][0]:
            apart(f"{what}, {one} and {other}", known[one][1], known[other][1])


@timeout(120)
def test_colours(bench):
    """
    What the colours say can be seen in light and dark with each kind of colour vision, out of the
    pixels that the browser shows for it.
    """
    m = made_db.Maker(10.0)
    m.process()
    lib = m.object("/usr/lib/libpin.so")
    numbers = sorted({round(1000 ** (i / 51)) for i in range(52)})
    for i, method in enumerate(METHODS):
        copies = (
            [(2 + 7.5 * k / len(numbers), "h2d", 4096) for k, n in enumerate(numbers) for _ in range(n)]
            if method == "host_alloc"
            else [(5, "h2d", 4096)] * (1 if i % 2 else 1000)
        )
        m.alloc(m.site([(lib, 64 * i + 64, "make_" + method)]), 65536, 0, None, copies, method=method)
    page = view(bench, m.write(bench.path("colours.json.gz")))
    with Browser(1000, 1100) as b:
        b.open(page)
        b.eval(
            "(() => { const k = document.getElementById('kind'); k.value = ''; k.dispatchEvent(new Event('input')); "
            "})()"
        )
        quiet(b, page)
        for dark, mode in itertools.product((False, True), ("heat", "life")):
            b.dark(dark)
            b.click(f"#mode-{mode}")
            b.frame()
            b.eval(f"document.getElementById('legend').replaceChildren(); {CHART}.redraw()")
            true("no legend", b.settle("!!document.querySelector('#legend canvas')"))
            for kind in VISIONS:
                b.vision(kind)
                name = f"colours-{'dark' if dark else 'light'}-{mode}-{kind}"
                ground, cells, legend = seen(b, shot(b, name))
                if mode == "heat":
                    heat_is_seen(name, dark, ground, cells, legend)
                else:
                    lines_are_seen(name, ground, cells)
            b.vision("none")


@timeout(120)
def test_hostile_names(bench):
    """Names out of the traced programs stay text, whatever they are."""
    m = made_db.Maker(1.0, hostname=HOSTILE[0])
    lib = m.object("/tmp/" + HOSTILE[0] + ".so")
    for i, name in enumerate(HOSTILE):
        proc = m.process(comm=name[:15], exe=name, cmdline=name)
        m.alloc(
            m.site([(lib, 16 * i + 16, name), (lib, 0x999, None)]),
            4096 * (i + 1),
            0.1,
            0.9,
            [(0.2 + j / 20, "h2d", 4096) for j in range(i + 1)],
            proc=proc,
            name=name if i % 2 else None,
            method="custom" if i % 3 == 0 else "host_alloc",
        )
        m.checkpoint(0.1 + i / 20, name, proc)
    m.reasons, m.complete = ["lost"], False
    page = view(bench, m.write(bench.path("hostile.json")))
    with open(page, encoding="utf-8") as f:
        text = f.read()
    # In the page is what base64 makes of them, with any letters, but without a point or a space.
    true("a name is in the page as it is", "got in" not in text and "gnp.exe" not in text)
    with Browser() as b:
        b.open(page)
        for i in range(len(HOSTILE)):
            b.eval(
                f"{CHART}.hooks.pick({i}); {CHART}.hooks.hover({{x: 300, t: 5e8, alloc: {i}, others: 0, copies: 1}}, "
                "300, 300)"
            )
            b.frame()
        shot(b, "hostile")
        true(f"a name got in: {b.eval('document.title')!r}", b.eval("document.title !== 'got in'"))
        eq(
            "elements made by names",
            b.eval("document.querySelectorAll('img, svg, main script, #tip script').length"),
            0,
        )
        said = b.eval("document.body.innerText")
        true("the name is not shown as text", "<img src=x onerror" in said)
        true(
            "control characters or marks of direction",
            not re.search("[\u0000-\u0008\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2028\u2029]", said),
        )
        quiet(b, page)
        # The policy that the page brings along is one: it lets nothing be fetched and no other script run.
        eq("fetched", b.eval("fetch('data:text/plain,x').then(() => 'yes', () => 'no')"), "no")
        b.eval(
            "(() => { const s = document.createElement('script'); s.textContent = 'document.title = \"ran\"'; "
            "document.body.append(s); })()"
        )
        true("a script without the nonce ran", b.eval("document.title !== 'ran'"))


@timeout(120)
def test_not_all_seen(bench):
    """
    Figures of which not all was seen are lower bounds or not known; what may be pinned is neither
    pinned nor pageable; a mapping can be pinned.
    """
    m = made_db.Maker()
    lib = m.object("/opt/train")
    sites = [m.site([(lib, 16 * i, fn)]) for i, fn in enumerate(("known", "some", "none", "pinned"))]
    m.process()
    copies = [(2.0, "h2d", 1 << 20)] * 3
    m.alloc(sites[0], 1 << 20, 1, copies=copies)
    m.alloc(sites[1], 1 << 20, 1, copies=copies, method="mmap", kind="unknown", at_least=True)
    m.alloc(sites[2], 1 << 20, 1, method="registered", kind="unknown", perhaps="pinned", at_least=True, transfers=None)
    m.alloc(sites[3], 1 << 20, 1, copies=copies, method="mmap", kind="pinned")
    m.complete, m.reasons, m.procs[0]["at_least"] = False, ["attached_late"], True
    page = view(bench, m.write(bench.path("late.json")))
    with Browser() as b:
        b.open(page)
        said = b.eval("document.getElementById('state').innerText")
        for words in (
            "not complete: attached_late",
            "Of 2 allocations not all copies were seen: >= is a lower bound, - is not known",
            "Of 2 allocations it is not known",
        ):
            true(f"{words!r} is not in {said!r}", words in said)
        cards = b.eval("document.getElementById('cards').innerText")
        for words in (">= 256", ">= 9.0 MiB", ">= 9", "unknown 2: not all was seen"):
            true(f"{words!r} is not in {cards!r}", words in cards)
        rows = b.eval(
            "[...document.querySelectorAll('#tables table')[0].querySelectorAll('tbody tr')].map((r) => "
            "[...r.cells].map((c) => c.innerText))"
        )
        got = {r[0].split("+")[0]: (r[5], r[6]) for r in rows}
        eq(
            "copies and bytes",
            got,
            {"known": ("3", "3.0 MiB"), "some": (">= 3", ">= 3.0 MiB"), "none": ("-", "-"), "pinned": ("3", "3.0 MiB")},
        )
        details = {}
        for i, name in enumerate(("known", "some", "none", "pinned")):
            b.eval(f"{CHART}.hooks.pick({i})")
            details[name] = b.eval("document.getElementById('details').innerText")
        for name, words in (
            ("known", "pinned"),
            ("some", "not known whether it is pinned"),
            ("some", ">= 3 copies to the device"),
            ("none", "not known whether it is pinned"),
            ("pinned", "mmap, pinned"),
        ):
            true(f"{name}: {words!r} is not in {details[name]!r}", words in details[name])
        true(f"pageable: {details}", not any("pageable" in text for text in details.values()))
        true(f"never: {details['none']!r}", "never" not in details["none"])
        b.settle("document.getElementById('legend').innerText")
        legend = b.eval("document.getElementById('legend').innerText")
        true(
            f"the legend does not say it: {legend!r}",
            "alive, not known whether pinned" in legend and "alive, not pinned" not in legend,
        )
        shot(b, "late")


@timeout(120)
def test_loss(bench):
    """What is not in the database is said, and drawn as missing."""
    m = made_db.workload(100)
    m.complete, m.reasons, m.lost = False, ["lost"], 1234
    m.blind = [{"object": 1, "pid": 1000, "window_us": 700000, "held": False}]
    m.procs[0]["first_ns"] = str(made_db.T0 + 3_000_000_000)
    m.allocs[0]["events_dropped"] = 17
    page = view(bench, m.write(bench.path("lossy.json")))
    with Browser() as b:
        b.open(page)
        said = b.eval("document.getElementById('state').innerText")
        for words in (
            "not complete: lost",
            "1,234 events were lost",
            "17 events of allocations were not kept",
            "1 time in which",
        ):
            true(f"{words!r} is not in {said!r}", words in said)
        eq("gaps", b.eval(f"{CHART}.data.gaps.length"), 1)
        # Stripes: the colour of loss is in the picture within the gap, and not beside it.
        count = f"""(() => {{ const c = {CHART}, want = rgb(c.colours.hatch), at = (t) => c.x(t) * c.dpr;
            const n = (x) => {{ const p = {PIXELS}(x, AXIS * c.dpr, 20, c.h * c.dpr); let k = 0;
                const off = (i, c) => Math.abs(p[i + c] - want[c]);
                for (let i = 0; i < p.length; i += 4) k += off(i, 0) + off(i, 1) + off(i, 2) < 30; return k; }};
            return [n(at(2.6e9)), n(at(6e9))]; }})()"""
        within, beside = b.eval(count)
        true(f"{within} pixels of loss within the gap, {beside} beside it", within > 100 > beside)
        b.settle("document.getElementById('legend').innerText")
        legend = b.eval("document.getElementById('legend').innerText")
        true(
            f"the legend does not say it: {legend!r}",
            "something can be missing" in legend and "not in the file" in legend,
        )
        shot(b, "lossy")
        # What was not kept is seen on the life line of its allocation, whatever the line's colour:
        # a stripe with the ground on both sides, once in 6 cells.
        b.click("#mode-life")
        runs = b.eval(
            f"""(() => {{ const c = {CHART}, a = c.data.dropped.findIndex((n) => n), y = c.y(c.rows.indexOf(a) + 0.5);
            const p = new Uint32Array({PIXELS}(c.left * c.dpr, y * c.dpr, c.w * c.dpr, 1).buffer);
            const ground = pixel(rgb(c.colours.plot)), loss = pixel(rgb(c.colours.hatch));
            const cell = (i) => p[i * CELL * c.dpr];
            let n = 0, alone = 0; for (let i = 1; i < c.nx - 1; i++) if (cell(i) === loss) {{
                n++; alone += cell(i - 1) === ground || cell(i + 1) === ground; }} return [n, alone]; }})()"""
        )
        true(f"stripes of loss, and those with ground beside them: {runs}", runs[0] > 10 and runs[1] >= 0.9 * runs[0])
        shot(b, "lossy-life")
        quiet(b, page)


@timeout(120)
def test_sizes(bench):
    """Nothing, one allocation, and more than fit: all are shown; the sums are those of all."""
    empty, one = made_db.Maker(), made_db.Maker(2.0)
    one.process()
    one.alloc(
        one.site([(one.object("/bin/one"), 16, "load+0x41")]),
        65536,
        0.5,
        1.5,
        [(0.7, "h2d", 65536), (1.2, "h2d", 65536)],
    )
    many = made_db.workload(200, copies=10)
    with Browser() as b:
        page = view(bench, empty.write(bench.path("empty.json")))
        b.open(page)
        eq("peak of nothing", card(b, "Peak pinned pages").split("\n")[1], "0")
        shot(b, "empty")
        quiet(b, page)
        for options in ((), ("--plain",)):
            page = view(bench, one.write(bench.path("one.json")), *options)
            b.open(page)
            eq("peak of one", card(b, "Peak pinned pages").split("\n")[1], "16")
            eq("bins of one", b.eval(f"Array.from({CHART}.data.copies)"), [1, 1])
            shot(b, "one")
            quiet(b, page)
        page = view(bench, many.write(bench.path("many.json")), "--max", "50")
        b.open(page)
        eq("shown", b.eval(f"{CHART}.data.n"), 50)
        true("does not say so", "50 hottest of 200" in b.eval("document.getElementById('state').innerText"))
        eq("sum of all", card(b, "Host allocations").split("\n")[1], "200")
        hottest = sorted((sum(p[1] for p in a["transfers"].values()) for a in many.allocs), reverse=True)[:50]
        eq(
            "the hottest",
            b.eval(
                f"Array.from({CHART}.data.h2d_bytes, (n, a) => n + {CHART}.data.d2h_bytes[a]).sort((x, y) => y - x)"
            ),
            hottest,
        )


def test_command(bench):
    """Where it writes, what it refuses, and that it leaves nothing half written."""
    db = made_db.workload(20, copies=3).write(bench.path("run.json.gz"))
    run = lambda *args, **more: subprocess.run(
        [TTMON, "view", *args], capture_output=True, text=True, check=False, **more
    )  # noqa: E731
    done = run(db)
    eq("the name that it says", (done.returncode, done.stdout), (0, bench.path("run.html") + "\n"))
    done = run(db)
    eq("its own page is written again", done.returncode, 0)
    with open(bench.path("run.html"), "w", encoding="utf-8") as f:
        f.write("<html>my own</html>")
    done = run(db)
    eq("a foreign page", (done.returncode, len(done.stderr.splitlines())), (2, 1))
    true(done.stderr, "run.html exists" in done.stderr)
    with open(bench.path("run.html"), encoding="utf-8") as f:
        eq("it is as it was", f.read(), "<html>my own</html>")
    with open(db, "rb") as f:
        done = subprocess.run([TTMON, "view", "-", "-o", "-"], stdin=f, capture_output=True, check=False)
    true(
        "standard input to standard output",
        done.returncode == 0 and done.stdout.startswith(b"<!DOCTYPE html>") and done.stdout.endswith(b"</html>\n"),
    )
    for args in (
        ["/nonexistent.json"],
        [bench.path("run.html"), "-o", bench.path("x.html")],
        [db, "-o", "/nonexistent/x.html"],
        [db, "--max", "0", "-o", bench.path("x.html")],
        ["-"],
        [db, "-o", "/dev/full"],
        [db, "-o", bench.path("x.html.gz")],
    ):
        done = run(*args, stdin=subprocess.DEVNULL)
        eq(f"{args}: {done.stderr!r}", (done.returncode, len(done.stderr.splitlines())), (2, 1))
        true(done.stderr, done.stderr.startswith(("ttmon: ", "ttmon view: ")))
    eq("left over", [f for f in os.listdir(bench.dir) if ".tmp." in f or f == "x.html"], [])
