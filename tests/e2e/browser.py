# SPDX-License-Identifier: GPL-2.0-only
"""browser.py: a headless Chromium for the tests of pages, driven over a pipe by its DevTools protocol;
no port, no library.

Everything that a page says on its console, every exception in it, and every request that is not for
the page itself is kept.
"""
import base64
import contextlib
import fcntl
import functools
import glob
import json
import os
import select
import shutil
import subprocess
import struct
import tempfile
import time
import zlib

from e2e import PATIENCE, SLOW, Skip


def find():
    """The program; Skip where there is none."""
    if SLOW > 1:
        raise Skip("a browser takes minutes under emulation")
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        path = shutil.which(name)
        if path:
            return path
    found = glob.glob("/root/.cache/ms-playwright/chromium-*/chrome-linux*/chrome")
    if found:
        return sorted(found)[-1]
    raise Skip("there is no chromium: apt-get install chromium")


class Picture:
    """A PNG as a screenshot is: width, height, and rows of bytes, three a pixel."""

    def __init__(self, data):
        self.width, self.height, *kind = struct.unpack(">IIBBBBB", data[16:29])
        assert kind == [8, 2, 0, 0, 0], f"not 24 bits a pixel: {kind}"
        packed, at = b"", 8
        while at < len(data):
            size, name = struct.unpack(">I4s", data[at : at + 8])
            packed += data[at + 8 : at + 8 + size] if name == b"IDAT" else b""
            at += size + 12
        lines, wide = zlib.decompress(packed), self.width * 3
        self.rows, above = [], bytes(wide)
        for start in range(0, len(lines), wide + 1):
            above = self.row(lines[start], lines[start + 1 : start + 1 + wide], above)
            self.rows.append(above)

    @staticmethod
    def row(how, line, above):
        """
        One row out of its differences. Asked for speed, the browser writes those to the row above
        alone, so that these are all that is known here.
        """
        if how == 0:
            return line
        assert how == 2, f"differences of kind {how}"
        # All sums modulo 256 at once: those of even and of odd bytes, each with room for a carry.
        even = int.from_bytes(b"\0\xff" * (len(line) // 2 + 1), "little")
        a, b = int.from_bytes(line, "little"), int.from_bytes(above, "little")
        total = (a & even) + (b & even) & even | (a & even >> 8) + (b & even >> 8) & even >> 8
        return (total & (1 << 8 * len(line)) - 1).to_bytes(len(line), "little")

    def at(self, x, y):
        """(red, green, blue) of a pixel, 0 to 255."""
        return tuple(self.rows[int(y)][int(x) * 3 : int(x) * 3 + 3])

    def colours(self):
        """Those of every sixteenth row."""
        return {p for row in self.rows[::16] for p in zip(row[0::3], row[1::3], row[2::3])}


@functools.cache
def lightness(colour):
    """CIE L* of a colour: 0 black, 100 white. It goes by luminance alone."""
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in colour))
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    return 116 * y ** (1 / 3) - 16 if y > 216 / 24389 else y * 24389 / 27


class Browser:
    """One page. Use with "with"."""

    def __init__(self, width=1280, height=800, arguments=()):
        program = find()
        self.home = tempfile.mkdtemp(prefix="ttmon-browser-")
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()

        def pipes():
            # It reads commands from descriptor 3 and writes answers to 4.
            high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 64) for fd in (to_read, from_write)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.proc = subprocess.Popen(
            [
                program,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--remote-debugging-pipe",
                f"--user-data-dir={self.home}",
                "--no-first-run",
                "--disable-extensions",
                "--disable-background-networking",
                "--disable-component-update",
                "--hide-scrollbars",
                f"--window-size={width},{height}",
                *arguments,
                "about:blank",
            ],
            preexec_fn=pipes,
            pass_fds=(3, 4),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(from_write)
        self.write, self.read, self.buffer, self.number = to_write, from_read, b"", 0
        self.console, self.requests = [], []
        self.session = None
        try:
            targets = self.call("Target.getTargets", seconds=60)["targetInfos"]
            page = next(t for t in targets if t["type"] == "page")
            self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(domain + ".enable")
            self.size(width, height)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.session = None
        with contextlib.suppress(AssertionError, OSError):
            self.call("Browser.close", seconds=5)
        try:
            self.proc.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
        os.close(self.write)
        os.close(self.read)
        shutil.rmtree(self.home, ignore_errors=True)

    def message(self, until):
        """The next thing that the browser says."""
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read], [], [], max(0, until - time.monotonic()))
            if not ready:
                raise AssertionError("the browser does not answer")
            more = os.read(self.read, 1 << 20)
            if not more:
                raise AssertionError("the browser has ended")
            self.buffer += more
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def take(self, event):
        what, p = event["method"], event.get("params", {})
        if what == "Runtime.consoleAPICalled":
            self.console.append(
                p["type"] + ": " + " ".join(str(a.get("value", a.get("description"))) for a in p["args"])
            )
        elif what == "Runtime.exceptionThrown":
            d = p["exceptionDetails"]
            self.console.append("exception: " + d["text"] + " " + str(d.get("exception", {}).get("description")))
        elif what == "Log.entryAdded":
            self.console.append(p["entry"]["level"] + ": " + p["entry"]["text"])
        elif what == "Network.requestWillBeSent":
            self.requests.append(p["request"]["url"])

    def call(self, method, seconds=30, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + seconds * PATIENCE
        while True:
            answer = self.message(until)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            if "method" in answer:
                self.take(answer)

    # ---- what a test does ----

    def size(self, width, height, scale=1):
        self.pixels = (width * scale, height * scale)
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )

    def dark(self, on):
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": "prefers-color-scheme", "value": "dark" if on else "light"}],
        )

    def vision(self, kind):
        """none, deuteranopia, protanopia, tritanopia, achromatopsia."""
        self.call("Emulation.setEmulatedVisionDeficiency", type=kind)

    def open(self, path, ready="document.documentElement.dataset.ready === 'yes'", seconds=30):
        """Open a file and wait until it says that it is ready."""
        self.console, self.requests = [], []
        self.call("Page.navigate", url="file://" + path)
        if not self.settle(
            "location.href !== 'about:blank' && document.readyState === 'complete' && !!(" + ready + ")", seconds
        ):
            raise AssertionError(
                f"{path} is not ready after {seconds} s: {self.console} "
                f"{self.eval('document.body.innerText.slice(0, 300)')!r}"
            )

    def eval(self, code, seconds=30):
        """The value of an expression, or what its promise becomes."""
        r = self.call("Runtime.evaluate", seconds, expression=code, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise AssertionError(f"{code[:80]}: {r['exceptionDetails'].get('exception', {}).get('description')}")
        return r["result"].get("value")

    def frame(self):
        """Wait until what was asked for has been drawn."""
        self.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")

    def settle(self, code, seconds=5):
        """Wait until an expression is true; False where it does not become so."""
        until = time.monotonic() + seconds * PATIENCE
        while not self.eval(code):
            if time.monotonic() > until:
                return False
            time.sleep(0.05)
        return True

    def place(self, selector, x=0.5, y=0.5):
        """A point of an element, in the window."""
        return self.eval(
            f"(() => {{ const r = document.querySelector({json.dumps(selector)}).getBoundingClientRect(); return "
            f"[r.left + {x} * r.width, r.top + {y} * r.height]; }})()"
        )

    def mouse(self, what, at, button="none", clicks=0, **more):
        self.call("Input.dispatchMouseEvent", type=what, x=at[0], y=at[1], button=button, clickCount=clicks, **more)

    def click(self, selector, x=0.5, y=0.5):
        self.eval(f"document.querySelector({json.dumps(selector)}).scrollIntoView({{block: 'nearest'}})")
        at = self.place(selector, x, y)
        self.mouse("mouseMoved", at)
        self.mouse("mousePressed", at, "left", 1)
        self.mouse("mouseReleased", at, "left", 1)
        self.frame()

    def drag(self, start, end, modifiers=0):
        self.mouse("mouseMoved", start)
        self.mouse("mousePressed", start, "left", 1, modifiers=modifiers)
        for k in range(1, 5):
            self.mouse(
                "mouseMoved",
                [start[i] + (end[i] - start[i]) * k / 4 for i in (0, 1)],
                "left",
                modifiers=modifiers,
                buttons=1,
            )
        self.mouse("mouseReleased", end, "left", 1, modifiers=modifiers)
        self.frame()

    def wheel(self, at, dy, modifiers=0):
        self.mouse("mouseWheel", at, deltaX=0, deltaY=dy, modifiers=modifiers)
        self.frame()

    def key(self, key, code=None):
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, code=code or key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, code=code or key)
        self.frame()

    def screenshot(self, path):
        """What is in the window, as a person with the emulated vision sees it: into a file, and as a Picture."""
        data = base64.b64decode(
            self.call("Page.captureScreenshot", format="png", optimizeForSpeed=True, seconds=60)["data"]
        )
        with open(path, "wb") as f:
            f.write(data)
        return Picture(data)
