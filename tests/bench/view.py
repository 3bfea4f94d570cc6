#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""view.py [ALLOCATIONS]: the page of `ttmon view` for 20,000 allocations in headless Chromium without
a GPU, about half a minute.

Prints how long `ttmon view` takes, against `ttmon db show`, and how large the page is; from opening
the file to the first picture, against opening a page with nothing in it; and pictures a second
while the view is moved and zoomed, against the browser's own pace when nothing is drawn. Goals of
the issue: the first picture in 1 s, 30 pictures a second, 6 MB. After `make`; needs Chromium.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "e2e"))
sys.dont_write_bytecode = True

import browser  # noqa: E402
import e2e  # noqa: E402
import made_db  # noqa: E402

ROUNDS = 5
EMPTY = "<!DOCTYPE html><meta charset=utf-8><title>nothing</title><p>nothing"
EMPTY += "<script>document.documentElement.dataset.ready = 'yes'</script>"
# From the beginning of the navigation to the picture after the first drawing.
LOADED = "new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))"
# The chart moves at each picture, as a wheel or a drag makes it.
FRAMES = """new Promise((done) => {
	const chart = %s, start = performance.now(), times = [];
	let last = start;
	function frame() {
		const now = performance.now();

		times.push(now - last);
		last = now;
		if (now - start > 3000)
			return done(times.slice(1));
		if (chart) {
			const i = times.length;

			if (i %% 50 < 25)
				chart.zoom(0.97, 0.97, 0.3 + 0.01 * (i %% 40), 0.5);
			else
				chart.zoom(1 / 0.97, 1 / 0.97);
		}
		requestAnimationFrame(frame);
	}
	requestAnimationFrame(frame);
})"""


def load(b, path):
    b.open(path)
    return b.eval(LOADED)


def rate(times):
    return 1000 / statistics.median(times), 1000 / sorted(times)[int(len(times) * 0.95)]


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    with tempfile.TemporaryDirectory() as folder:
        db, page, empty = (os.path.join(folder, name) for name in ("db.json", "db.html", "empty.html"))
        made_db.workload(n, copies=60, sites=400).write(db)
        with open(empty, "w", encoding="ascii") as f:
            f.write(EMPTY)
        start = time.monotonic()
        subprocess.run([e2e.TTMON, "db", "show", db], check=True, stdout=subprocess.DEVNULL)
        floor = time.monotonic() - start
        start = time.monotonic()
        subprocess.run([e2e.TTMON, "view", db, "-o", page], check=True)
        took = time.monotonic() - start
        size = os.path.getsize(page)
        print(
            f"{n:,} allocations, database {os.path.getsize(db) / 1e6:.1f} MB: page written in {took:.2f} s, ttmon db "
            f"show {floor:.2f} s, ratio {took / floor:.2f}"
        )
        print(
            f"  page {size / 1e6:.2f} MB, {size / n:.0f} bytes an allocation (goal 6 "
            f"MB){' MISSED' if size > 6e6 else ''}"
        )
        try:
            with browser.Browser(1280, 800) as b:
                loads, floors = [], []
                for _ in range(ROUNDS):
                    floors.append(load(b, empty))
                    loads.append(load(b, page))
                ms, floor = statistics.median(loads), statistics.median(floors)
                print(
                    f"  first picture after {ms:.0f} ms, an empty page {floor:.0f} ms, ratio {ms / floor:.1f} (goal "
                    f"1000 ms){' MISSED' if ms > 1000 else ''}"
                )
                mine, p95 = rate(b.eval(FRAMES % "document.getElementById('plot').chart"))
                none, _ = rate(b.eval(FRAMES % "null"))
                print(
                    f"  {mine:.0f} pictures a second, 95 % of them at {p95:.0f} or more; nothing drawn {none:.0f}, "
                    f"ratio {mine / none:.2f} (goal 30){' MISSED' if mine < 30 else ''}"
                )
                if b.console:
                    sys.exit(f"the page says: {b.console}")
        except e2e.Skip as why:
            print(f"SKIP {why}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
