# SPDX-License-Identifier: GPL-2.0-only
"""What a person sees while it runs and at the end."""
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from e2e import PATIENCE, TTMOND, alone, eq, standin, true


def test_live_line(bench):
    """On a terminal: a line that is written over, within 80 columns, gone before the summary."""
    target = bench.target(standin("scen"), "live", "2", wait_ready=False)
    target.line()
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    with subprocess.Popen([TTMOND, "--pid", str(target.pid)], stdin=subprocess.DEVNULL, stderr=side) as daemon:
        os.close(side)
        text, end = b"", time.monotonic() + 20 * PATIENCE
        while text.count(b"pinned") < 3 and time.monotonic() < end:
            if select.select([main], [], [], 1)[0]:
                text += os.read(main, 65536)
        daemon.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):
            while chunk := os.read(main, 65536):
                text += chunk
    os.close(main)
    eq("status", daemon.returncode, 0)
    live = [x for x in text.decode().split("\r") if x.endswith("\x1b[K") and "pinned" in x]
    true(f"no live line in {text!r}", len(live) >= 2)
    true("wider than the terminal", all(len(x) - 3 < 80 for x in live))
    true("not wiped before the summary", re.search(rb"\r\x1b\[K\s*ttmond: [\d.]+ s traced", text))
    target.go()
    target.finish()


def shm():
    return sorted(os.listdir("/dev/shm"))


@alone("it lists /dev/shm")
def test_trace_only(bench):
    """Counts alone: no advice, nothing in /dev/shm, total and peak pinned pages at the end."""
    before = shm()
    target = bench.target(standin("scen"), "live", "2", wait_ready=False)
    target.line()
    daemon = bench.daemon("--trace-only", "--pid", str(target.pid))
    time.sleep(0.3)
    eq("/dev/shm", shm(), before)
    target.go()
    target.finish()
    daemon.wait(0)
    bench.trace([standin("scen"), "copies"], "--trace-only")
    lines = [bench.daemons[-1].stderr().strip().splitlines()[-1], daemon.stderr()]
    eq("last line", lines[0], "pinned in all: 2 allocations, peak 32 pages (128.0 KiB)")
    true("advice", not re.search("HOTTEST|COLDEST|ADVICE", lines[1] + bench.daemons[-1].stderr()))
