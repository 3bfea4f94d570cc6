# SPDX-License-Identifier: GPL-2.0-only
"""
hungfs.py: a file system in user space (/dev/fuse, no library) that does not answer the ttmond of
one test. For tests/attack.

Everybody else is served. Of the requests that the helpers of this ttmond make, those named are
never answered: the caller waits in the kernel until the server ends, and if the server has read the
request not even SIGKILL ends that wait. (The kernel reads a file itself when probes go in, with a
lock that every fork() of the host waits for: such a read is answered.) The server is a process of
its own; when it ends, the kernel ends all waits with an error.
"""
import contextlib
import ctypes
import os
import signal
import struct
import time

from e2e import Skip

LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE, FLUSH, INIT, OPENDIR = 1, 2, 3, 14, 15, 17, 18, 25, 26, 27
RELEASEDIR, ACCESS, INTERRUPT, BATCH_FORGET = 29, 34, 36, 42
MARK = "TTMON_TEST_HUNGFS"  # the ttmond that is not to be answered has the test's folder in this variable
DIRECT_IO = 1  # FOPEN_DIRECT_IO
SILENT = (FORGET, INTERRUPT, BATCH_FORGET)
LIBC = ctypes.CDLL(None, use_errno=True)


def attr(ino, size):
    """struct fuse_attr: the root folder, or a file that everybody may execute."""
    mode = 0o40755 if ino == 1 else 0o100755
    return struct.pack("<6Q10I", ino, size, (size + 511) // 512, 1, 1, 1, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


class HungFs:
    """Files named after numbers, all with this content, below `folder`. uid: for whom it is mounted."""

    def __init__(self, folder, content, hang, uid=0, seconds=None):
        """
        seconds: the first of those requests waits so long, the others are answered; None: all of
        them wait for ever.
        """
        self.content, self.hang, self.folder, self.seconds = content, hang, folder, seconds
        self.valid = 0 if GETATTR in hang else 3600  # seconds that the kernel takes attributes for true
        os.makedirs(folder, exist_ok=True)
        try:
            self.fd = os.open("/dev/fuse", os.O_RDWR)
        except OSError as e:
            raise Skip(f"/dev/fuse: {e.strerror}") from None
        options = f"fd={self.fd},rootmode=40000,user_id={uid},group_id=0,allow_other,default_permissions"
        if LIBC.mount(b"hungfs", folder.encode(), b"fuse.hungfs", 6, options.encode()):
            raise Skip(f"cannot mount a file system in user space: {os.strerror(ctypes.get_errno())}")
        self.pid = os.fork()
        if not self.pid:
            # Pipes of other threads' programs, which would not end while it runs.
            os.closerange(3, self.fd)
            os.closerange(self.fd + 1, 65536)
            with contextlib.suppress(OSError):
                self.serve()
            os._exit(0)
        os.close(self.fd)

    def close(self):
        """All who wait get an error."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        LIBC.umount2(self.folder.encode(), 2)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def is_helper(self, pid):
        """
        Of this test: others may run at the same time, which look at every file of the host. Helpers
        have the environment of the process that forks them. Theirs is not read: who waits for this
        server may hold its own memory map, and this server would wait for that.
        """
        with contextlib.suppress(OSError):
            with open(f"/proc/{pid}/comm", encoding="ascii") as comm:
                if comm.read() != "ttmond-helper\n":
                    return False
            with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
                parent = stat.read().rsplit(")", 1)[1].split()[1]
            with open(f"/proc/{parent}/environ", "rb") as env:
                return os.fsencode(f"{MARK}={os.path.dirname(self.folder)}") in env.read().split(b"\0")
        return False

    def answer(self, opcode, node, body):
        size = len(self.content)
        if opcode == INIT:
            return struct.pack("<4I2H2I2HI7I", 7, 31, 131072, 0, 12, 9, 131072, 1, 32, 0, 0, *[0] * 7)
        if opcode == LOOKUP:
            name = body.split(b"\0")[0]
            if not name.isdigit():
                return -2
            ino = 2 + int(name)
            return struct.pack("<4Q2I", ino, 0, 3600, self.valid, 0, 0) + attr(ino, size)
        if opcode == GETATTR:
            return struct.pack("<Q2I", self.valid, 0, 0) + attr(node, 0 if node == 1 else size)
        if opcode in (OPEN, OPENDIR):
            # Where reads hang nobody else's read may have filled the page cache: all reads come here.
            return struct.pack("<Q2I", 0, DIRECT_IO if opcode == OPEN and READ in self.hang else 0, 0)
        if opcode == READ:
            _, at, n = struct.unpack_from("<2QI", body)
            return self.content[at : at + n]
        if opcode == STATFS:
            return struct.pack("<5Q4I6I", 1, 1, 1, 1, 1, 4096, 255, 4096, 0, *[0] * 6)
        return b"" if opcode in (RELEASE, FLUSH, ACCESS, RELEASEDIR) else -38

    def serve(self):
        while True:
            request = os.read(self.fd, 1 << 20)
            _, opcode, unique, node, _, _, pid = struct.unpack_from("<2I2Q3I", request)
            if opcode in SILENT:
                continue
            if opcode in self.hang and self.is_helper(pid):
                if self.seconds is None:
                    continue
                time.sleep(self.seconds)
                self.hang = set()
            answer = self.answer(opcode, node, request[40:])
            error, data = (answer, b"") if isinstance(answer, int) else (0, answer)
            os.write(self.fd, struct.pack("<IiQ", 16 + len(data), error, unique) + data)
