#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""seed_http.py: write the seed corpus of fuzz_http (tests/fuzz/corpus/http). Same files each time."""
import os

UNIX, TCP, HALF, GONE, ERROR = 0, 1, 2, 4, 8
HERE = os.path.dirname(os.path.abspath(__file__))


def request(line, *headers):
    return "\r\n".join([line + " HTTP/1.1", "Host: 127.0.0.1:9843", *headers, "", ""]).encode()


SEEDS = {
    "index": (UNIX, request("GET /")),
    "index-html": (TCP, request("GET /", "Accept: text/html,*/*;q=0.8")),
    "metrics": (TCP, request("GET /metrics?n=5000", "Accept-Encoding: gzip;q=0.5, *;q=0", "Accept: text/plain")),
    "metrics-head": (TCP | HALF, request("HEAD /metrics")),
    "rebind": (TCP, b"GET /metrics HTTP/1.1\r\nHost: evil.example:80\r\n\r\n"),
    "v6-host": (TCP, b"GET /metrics HTTP/1.1\r\nHost: [::1]:80\r\n\r\n"),
    "local-only": (TCP, request("GET /v1/echo")),
    "put": (UNIX, request("PUT /v1/echo?a=b&n=1", "Content-Length: 0")),
    "delete": (UNIX, request("DELETE /v1/echo?error&n=%c3")),
    "bad-method": (UNIX, request("POST /v1/echo")),
    "body": (UNIX, request("PUT /v1/echo", "Content-Length: 5") + b"hello"),
    "chunked": (UNIX, request("PUT /v1/echo", "Transfer-Encoding: chunked") + b"5\r\nhello\r\n0\r\n\r\n"),
    "expect": (UNIX, request("PUT /v1/echo", "Content-Length: 5", "Expect: 100-continue")),
    "item": (UNIX, request("GET /v1/items/a%20b%2f?x=%zz&y")),
    "nul": (UNIX, request("GET /v1/items/a%00?n=%00")),
    "stream": (UNIX, request("GET /v1/stream")),
    "stream-gone": (UNIX | GONE, request("GET /v1/stream")),
    "stream-head": (UNIX, request("HEAD /v1/stream") + request("GET /v1/echo")),
    "later": (UNIX, request("GET /v1/later")),
    "later-error": (UNIX | ERROR, request("GET /v1/later")),
    "later-gone": (TCP | GONE, request("GET /v1/later")),
    "pipelined": (UNIX, request("GET /v1/echo") * 3 + request("GET /", "Connection: close")),
    "pieces": (UNIX, b"GET /v1/ec\xff\xffho HTTP/1.1\r\nHo\xff\xffst: x\r\n\r\xff\xff\n"),
    "old": (TCP, b"GET /metrics HTTP/1.0\n\n"),
    "long": (UNIX, request("GET /" + "a" * 20000)),
    "long-header": (UNIX, request("GET /", "X: " + "a" * 20000)),
    "garbage": (UNIX | HALF, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
}


def main():
    folder = os.path.join(HERE, "corpus", "http")
    os.makedirs(folder, exist_ok=True)
    for name, (how, data) in SEEDS.items():
        with open(os.path.join(folder, name), "wb") as f:
            f.write(bytes([how]) + data)


if __name__ == "__main__":
    main()
