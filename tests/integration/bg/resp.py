# SPDX-License-Identifier: BSD-2-Clause
"""
A RESP2/RESP3 client on a raw socket. Replies are returned as the exact bytes
that arrived, so that tests compare bytes; parse() gives values where it helps.
"""

import fcntl
import os
import select
import socket
import struct
import termios
import time

from . import wait

CRLF = b"\r\n"
AGGREGATES = {b"*": 1, b"~": 1, b">": 1, b"%": 2, b"|": 2}


class Closed(Exception):
    """The peer closed; what had arrived of an unfinished reply is args[0]."""


def encode(*args):
    """One request as a multibulk."""
    out = [b"*%d\r\n" % len(args)]
    for arg in args:
        if isinstance(arg, str):
            arg = arg.encode()
        elif not isinstance(arg, (bytes, bytearray)):
            arg = str(arg).encode()
        out.append(b"$%d\r\n%s\r\n" % (len(arg), arg))
    return b"".join(out)


def bulk(value):
    if isinstance(value, str):
        value = value.encode()
    return b"$%d\r\n%s\r\n" % (len(value), value)


def integer(value):
    return b":%d\r\n" % value


def array(*items):
    return b"*%d\r\n%s" % (len(items), b"".join(items))


NIL2 = b"$-1\r\n"
NIL3 = b"_\r\n"
OK = b"+OK\r\n"
PONG = b"+PONG\r\n"


class Reader:
    """Cuts a stream into whole replies."""

    def __init__(self):
        self.buffer = bytearray()
        self.start = 0  # of the reply being read
        self.scan = 0  # up to here it is understood
        self.need = 1  # elements still missing from it

    def feed(self, data):
        if self.start > 1 << 20:
            del self.buffer[: self.start]
            self.scan -= self.start
            self.start = 0
        self.buffer += data

    def take(self):
        """The next whole reply, or None."""
        buffer = self.buffer
        while self.need:
            end = buffer.find(CRLF, self.scan)
            if end < 0:
                return None
            kind = bytes(buffer[self.scan : self.scan + 1])
            after = end + 2
            more = 0
            if kind in (b"$", b"=", b"!"):
                length = int(buffer[self.scan + 1 : end])
                if length >= 0:
                    after += length + 2
                    if len(buffer) < after:
                        return None
            elif kind in AGGREGATES:
                count = int(buffer[self.scan + 1 : end])
                more = max(count, 0) * AGGREGATES[kind]
                if kind == b"|":
                    more += 1
            elif kind not in (b"+", b"-", b":", b"_", b"#", b",", b"("):
                raise AssertionError(
                    "not a reply: %r" % bytes(buffer[self.scan : self.scan + 80])
                )
            self.scan = after
            self.need += more - 1
        reply = bytes(buffer[self.start : self.scan])
        self.start = self.scan
        self.need = 1
        if self.start == len(buffer):
            buffer.clear()
            self.start = self.scan = 0
        return reply

    def rest(self):
        return bytes(self.buffer[self.start :])


class Error(str):
    """An error reply as a value."""


def parse(reply):
    """The value of one reply; maps become lists of pairs."""
    value, end = _parse(reply, 0)
    assert end == len(reply), (reply, end)
    return value


def _parse(b, at):
    end = b.index(CRLF, at)
    kind, head = b[at : at + 1], b[at + 1 : end]
    at = end + 2
    if kind == b"+":
        return head.decode(), at
    if kind == b"-":
        return Error(head.decode()), at
    if kind == b":" or kind == b"(":
        return int(head), at
    if kind == b"_":
        return None, at
    if kind == b"#":
        return head == b"t", at
    if kind == b",":
        return float(head), at
    if kind in (b"$", b"=", b"!"):
        size = int(head)
        if size < 0:
            return None, at
        return b[at : at + size], at + size + 2
    count = int(head)
    if count < 0:
        return None, at
    items = []
    for _ in range(count * AGGREGATES[kind]):
        item, at = _parse(b, at)
        items.append(item)
    if kind == b"%":
        return list(zip(items[::2], items[1::2])), at
    return items, at


def connect(address, receive_buffer=0):
    if address.startswith("unix:"):
        sock = socket.socket(socket.AF_UNIX)
        target = address[5:]
    else:
        host, port = address.rsplit(":", 1)
        sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        target = (host.strip("[]"), int(port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    sock.settimeout(10 * wait.SLOW)

    def connected():
        try:
            sock.connect(target)
        except BlockingIOError:
            return False  # a Unix socket's backlog is full for a moment
        return True

    try:
        wait.until(connected, 10, "connected to " + address, pause=0.001)
    except BaseException:
        sock.close()
        raise
    return sock


class Client:
    """One connection. Every wait ends at a deadline."""

    def __init__(self, address, seconds=15, receive_buffer=0):
        self.address = address
        self.seconds = seconds
        self.sock = connect(address, receive_buffer)
        self.reader = Reader()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.sock.close()

    def reset(self):
        """Closes with an RST (on TCP)."""
        linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.sock.close()

    def send(self, data):
        self.sock.settimeout(self.seconds * wait.SLOW)
        self.sock.sendall(data)

    def send_cut(self, data, cuts):
        """Sends data in pieces that end at each of cuts."""
        last = 0
        for cut in sorted(cuts) + [len(data)]:
            if cut > last:
                self.send(data[last:cut])
                last = cut

    def half_close(self):
        self.sock.shutdown(socket.SHUT_WR)

    def _receive(self, end):
        left = end - time.monotonic()
        if left <= 0 or not wait.ready(self.sock, left):
            raise AssertionError(
                "no reply from %s in %g s; so far %r"
                % (self.address, self.seconds * wait.SLOW, self.reader.rest()[:200])
            )
        try:
            data = self.sock.recv(1 << 18)
        except ConnectionResetError:
            data = b""
        if not data:
            raise Closed(self.reader.rest())
        self.reader.feed(data)

    def read(self):
        """The exact bytes of the next reply."""
        end = wait.deadline(self.seconds)
        while True:
            reply = self.reader.take()
            if reply is not None:
                return reply
            self._receive(end)

    def read_n(self, count):
        return [self.read() for _ in range(count)]

    def read_all(self):
        """Everything up to the peer's close: a list of replies, and what is
        left over, which must be empty for a clean end."""
        replies = []
        try:
            while True:
                replies.append(self.read())
        except Closed as closed:
            return replies, closed.args[0]

    def call(self, *args):
        self.send(encode(*args))
        return self.read()

    def value(self, *args):
        return parse(self.call(*args))

    def exchange(self, data, count):
        """Sends data while reading count replies: any amount of both."""
        replies = []
        view = memoryview(data)
        end = wait.deadline(self.seconds)
        self.sock.setblocking(False)
        try:
            while len(replies) < count:
                reply = self.reader.take()
                if reply is not None:
                    replies.append(reply)
                    continue
                ready = wait.ready(self.sock, end - time.monotonic(), writing=view)
                if not ready:
                    raise AssertionError(
                        "exchange: %d of %d replies in %g s"
                        % (len(replies), count, self.seconds * wait.SLOW)
                    )
                if ready & select.POLLOUT:
                    view = view[self.sock.send(view[: 1 << 18]) :]
                if ready & ~select.POLLOUT:
                    data = self.sock.recv(1 << 18)
                    if not data:
                        raise Closed(self.reader.rest())
                    self.reader.feed(data)
                    end = wait.deadline(self.seconds)
        finally:
            self.sock.setblocking(True)
        return replies

    def quiet(self):
        """Asserts that nothing unread has arrived."""
        assert not self.reader.rest(), self.reader.rest()
        if wait.ready(self.sock, 0):
            raise AssertionError("unexpected: %r" % self.sock.recv(1000))


def until_read(sock):
    """Until the peer has read all that was sent, so that what is sent next comes
    with another read. False where the peer reads nothing for long."""
    end = time.monotonic() + 0.2 * wait.SLOW
    while struct.unpack("i", fcntl.ioctl(sock, termios.TIOCOUTQ, b"    "))[0]:
        if time.monotonic() > end:
            return False
        os.sched_yield()
    return True


def cuts(rng, size, most=6):
    """Random places to cut size bytes at."""
    if size < 2:
        return []
    return [rng.randrange(1, size) for _ in range(rng.randrange(most + 1))]


def values(rng, size):
    """Bytes of any value, CR and LF among them more often than by chance."""
    letters = bytes(range(256)) + b"\r\n" * 32 + b"$*+-:_" * 4
    return bytes(rng.choices(letters, k=size))
