# SPDX-License-Identifier: GPL-2.0-only
"""The HTTP server as its clients meet it: curl, ordinary users, and those who mean no good."""
import contextlib
import http.client
import json
import os
import random
import selectors
import signal
import socket
import subprocess
import time

from e2e import PATIENCE, SLOW, Skip, eq, free_port, standin, timeout, true

REQUEST_S = 10  # daemon/io/http/http.h: for a whole request


def serve(bench, *args, path=None, port=None, wait=True):
    """A daemon that traces a sleeping target and listens: (it, its socket, its port)."""
    path, port = path or bench.path("t.sock"), port or free_port()
    target = bench.target("sleep", "100", wait_ready=False)
    daemon = bench.daemon(
        "--pid", str(target.pid), "--socket", path, "--listen-address", f"127.0.0.1:{port}", *args, wait=wait
    )
    return daemon, path, port


def curl(*args):
    try:
        done = subprocess.run(
            ["curl", "-sS", "--max-time", str(10 * PATIENCE), *args], capture_output=True, check=False
        )
    except FileNotFoundError:
        raise Skip("no curl") from None
    eq(f"curl {args}: {done.stderr}", done.returncode, 0)
    return done.stdout.decode()


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, seconds):
        super().__init__("ttmond", timeout=seconds)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def get(where, path, seconds=5):
    """(status, body) from a socket's path or a port."""
    c = (
        UnixConnection(where, seconds)
        if isinstance(where, str)
        else http.client.HTTPConnection("127.0.0.1", where, timeout=seconds)
    )
    with contextlib.closing(c):
        c.request("GET", path)
        reply = c.getresponse()
        return reply.status, reply.read()


def dial(where):
    if isinstance(where, str):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.connect(where)
    else:
        s = socket.create_connection(("127.0.0.1", where))
    s.setblocking(False)
    return s


def test_curl(bench):
    daemon, path, port = serve(bench, "--record", bench.path("rec"))
    tcp = f"http://127.0.0.1:{port}"
    local = ("--unix-socket", path, "http://ttmond")
    eq("over TCP", json.loads(curl(tcp + "/v1/status"))["mode"], "pids")
    eq("by name", curl(f"http://localhost:{port}/healthz"), "ok\n")
    eq("over the socket", json.loads(curl(*local[:2], local[2] + "/v1/status"))["mode"], "pids")
    true("objects", "objects" in json.loads(curl(*local[:2], local[2] + "/v1/probes")))
    # The rest of it is not for everybody, nor are names of files.
    eq("path over TCP", json.loads(curl(tcp + "/v1/status"))["recording"]["path"], None)
    eq(
        "path over the socket",
        json.loads(curl(*local[:2], local[2] + "/v1/status"))["recording"]["path"],
        bench.path("rec"),
    )
    reply = curl("-i", tcp + "/v1/probes")
    true(
        f"not refused: {reply}",
        reply.startswith("HTTP/1.1 403 ") and path in json.loads(reply.split("\r\n\r\n")[1])["error"],
    )
    reply = curl("-i", "-H", "Host: evil.example", tcp + "/metrics")
    true(f"not refused: {reply}", reply.startswith("HTTP/1.1 403 "))
    # Pages, for people and for programs, compressed if asked for.
    plain = curl(*local[:2], local[2] + "/")
    true("routes", "/v1/allocations " in plain and "/metrics" in plain)
    true("links", '<a href="/metrics">' in curl("-H", "Accept: text/html", tcp + "/"))
    packed = curl("-i", "--compressed", *local[:2], local[2] + "/")
    true(f"not compressed: {packed}", "Content-Encoding: gzip" in packed)
    eq("the same page", packed.split("\r\n\r\n", 1)[1], plain)
    # A request with a body is not read.
    big = bench.path("big")
    with open(big, "wb") as f:
        f.truncate(100 << 20)
    reply = curl("-i", "-X", "GET", "--data-binary", f"@{big}", tcp + "/healthz")
    true(f"not refused: {reply}", "HTTP/1.1 413 " in reply)
    daemon.stop()
    true("the socket is gone", not os.path.exists(path))


def test_stale_socket(bench):
    """What a killed daemon left is replaced; what a live one has is not."""
    daemon, path, port = serve(bench)
    daemon.stop(signal.SIGKILL, status=None)
    true("left over", os.path.exists(path))
    daemon, _, port = serve(bench, path=path)
    daemon.wait_line("removed the stale socket")
    eq("status", get(path, "/healthz"), (200, b"ok\n"))
    target = bench.target("sleep", "100", wait_ready=False)
    bench.refused(
        ["--pid", str(target.pid), "--socket", path, "--listen-address", f"127.0.0.1:{free_port()}"],
        "another ttmond serves it",
        status=1,
    )
    eq("status", get(path, "/healthz"), (200, b"ok\n"))
    daemon.stop()


def test_port_in_use(bench):
    daemon, path, port = serve(bench)
    target = bench.target("sleep", "100", wait_ready=False)
    args = ["--pid", str(target.pid), "--socket", bench.path("other.sock"), "--listen-address"]
    bench.refused([*args, f"127.0.0.1:{port}"], f"127.0.0.1:{port}: the port is in use", "--listen-address", status=1)
    true("its socket is gone", not os.path.exists(bench.path("other.sock")))
    bench.refused([*args, "example.org:9843"], "example.org:9843: not HOST:PORT", status=1)
    eq("status", get(port, "/healthz"), (200, b"ok\n"))
    daemon.stop()


def as_nobody(path):
    """What connect() says to a user who is in no group that matters."""
    code = (
        "import os, socket, sys\nos.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "print(socket.socket(socket.AF_UNIX).connect_ex(sys.argv[1]))"
    )
    return int(subprocess.run(["python3", "-c", code, path], capture_output=True, check=True).stdout)


def test_ordinary_user(bench):
    """Neither into the folder that the daemon makes, nor to the socket where everybody can get to it."""
    os.chmod(bench.dir, 0o755)
    daemon, path, port = serve(bench, path=bench.path("run/t.sock"))
    eq("mode of the folder", os.stat(bench.path("run")).st_mode & 0o777, 0o750)
    eq("mode of the socket", os.stat(path).st_mode & 0o777, 0o660)
    eq("into the folder", as_nobody(path), 13)
    os.chmod(bench.path("run"), 0o755)
    eq("to the socket", as_nobody(path), 13)
    os.chmod(path, 0o666)
    eq("without modes", as_nobody(path), 0)
    daemon.stop()


class Crowd:
    """Clients that mean no good; each new one takes the place of one that was shut out."""

    def __init__(self, where):
        self.where = where
        self.selector = selectors.DefaultSelector()
        self.random = random.Random(1)
        self.shut_out = {"slow": 0, "hostile": 0}
        self.refused = 0

    def add(self, kind):
        try:
            s = dial(self.where[self.random.randrange(len(self.where))])
        except OSError:
            self.refused += 1
            return
        self.selector.register(s, selectors.EVENT_READ, (kind, time.monotonic()))
        if kind == "hostile":
            self.attack(s)

    def attack(self, s):
        r = self.random
        what = [
            b"GET /v1/status HTT",
            b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 65536,
            b"GET /" + b"x" * 65536 + b" HTTP/1.1\r\n\r\n",
            b"GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100,
            b"PUT /v1/status HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000000\r\n\r\n" + b"x" * 10000,
            b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
            bytes(r.randrange(256) for _ in range(500)) + b"\r\n\r\n",
            b"\0" * 10000,
        ]
        with contextlib.suppress(OSError):
            s.send(r.choice(what))

    def drop(self, s, kind):
        self.selector.unregister(s)
        s.close()
        self.shut_out[kind] += 1
        self.add(kind)

    def turn(self, seconds):
        for key, _ in self.selector.select(seconds):
            kind = key.data[0]
            try:
                # The slow ones do not read either.
                more = key.fileobj.recv(1, socket.MSG_PEEK) if kind == "slow" else key.fileobj.recv(65536)
            except OSError:
                more = b""
            if not more:
                self.drop(key.fileobj, kind)

    def trickle(self):
        """Another byte of each slow request; the hostile come and go."""
        for key in list(self.selector.get_map().values()):
            kind, since = key.data
            if kind == "slow":
                with contextlib.suppress(OSError):
                    key.fileobj.send(b"G" if time.monotonic() - since < 1 else b"x")
            elif self.random.random() < 0.3:
                self.drop(key.fileobj, kind)

    def close(self):
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()


def fds(daemon):
    return len(os.listdir(f"/proc/{daemon.proc.pid}/fd"))


@timeout(60)
def test_crowd(bench):
    """200 slow and 200 hostile clients change nothing for the others, nor for what is traced."""
    ledgers = [
        bench.target(standin("ledger"), "--out", bench.path(f"book{i}.json"), "--wait", "--calls", "20000")
        for i in range(5)
    ]
    path, port = bench.path("t.sock"), free_port()
    pids = [x for t in ledgers for x in ("--pid", str(t.pid))]
    daemon = bench.daemon(*pids, "--socket", path, "--listen-address", f"127.0.0.1:{port}")
    before = fds(daemon)
    crowd = Crowd([path, port])
    for _ in range(200):
        crowd.add("slow")
        crowd.add("hostile")
    end, second, worst, asked = time.monotonic() + REQUEST_S + 4, 0, 0.0, 0
    waiting = list(ledgers)
    while time.monotonic() < end:
        crowd.turn(0.02)
        if time.monotonic() > second:
            second = time.monotonic() + 1
            crowd.trickle()
            # All the while there is something to trace.
            if waiting:
                waiting.pop().go()
        for where in (path, port):
            started = time.monotonic()
            eq("a good client's status", get(where, "/v1/status", 5 * PATIENCE)[0], 200)
            worst = max(worst, time.monotonic() - started)
            asked += 1
    true(f"a good client waited for {worst:.1f} s", worst < REQUEST_S / 2 * SLOW)
    true(f"only {asked} requests in all that time", asked > 50 / SLOW**2)
    eq("refused connections", crowd.refused, 0)
    true(f"slow ones that were cut off: {crowd.shut_out}", crowd.shut_out["slow"] >= 200)
    for target in ledgers:
        eq("last line", target.line(60), "done\n")
    status = json.loads(get(path, "/v1/status")[1])
    eq(f"identity ({status['identity']})", status["identity"]["ok"], True)
    eq("lost", sum(status["events"]["lost"].values()), 0)
    true(f"only {status['events']['decoded']} events", status["events"]["decoded"] > 50000)
    crowd.close()
    time.sleep(1)
    eq("a status of the end", get(port, "/healthz"), (200, b"ok\n"))
    true(f"{fds(daemon)} descriptors, {before} at first", fds(daemon) < before + 50)
    for target in ledgers:
        target.go()
        target.finish()
    daemon.wait(0)
