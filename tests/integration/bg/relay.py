# SPDX-License-Identifier: BSD-2-Clause
"""
A relay in front of Redis or bloomgate that cuts connections at an exact byte, or
lets one byte through at a time. A connection whose bytes hold "cut-replies:N:" is
closed once N bytes of replies have passed after that, one with "cut-requests:N:"
once N bytes of requests have. On one whose first requests hold "throttle:" every
byte, both ways, waits until the one before it has been read. With a delay all
replies pass that much later, one after the other. What holds a key of `forged` is
answered with its value, and Redis does not see it.
"""

import re
import select
import selectors
import socket
import threading

from . import resp

REPLIES = re.compile(rb"cut-replies:(\d+):")
REQUESTS = re.compile(rb"cut-requests:(\d+):")


THROTTLE = b"throttle:"


class Pair:
    def __init__(self, near, far, forged):
        self.near, self.far, self.forged = near, far, forged
        self.throttled = False
        self.deaf = False  # the far side takes no more; it may still speak
        self.single = 0  # bytes that went alone
        self.head = b""
        self.replies = self.requests = None
        self.replied = 0

    def close(self, selector):
        for sock in (self.near, self.far):
            try:
                selector.unregister(sock)
            except KeyError:
                pass
            sock.close()

    def pass_to(self, sock, data):
        at = 0
        while self.throttled and at < len(data):
            sock.sendall(data[at : at + 1])
            at += 1
            if not resp.until_read(sock):
                break  # it reads no more: it has ended
            self.single += 1
        sock.sendall(data[at:])

    def from_near(self, data):
        """Requests: returns False when the connection ends here."""
        for marker, reply in self.forged.items():
            if marker in data:
                self.near.sendall(reply)
                return True
        if self.requests is None and self.replies is None:
            self.head += data
            found = REPLIES.search(self.head)
            if found:
                self.replies = self.replied + int(found.group(1))
            found = REQUESTS.search(self.head)
            if found:
                self.requests = len(data) + int(found.group(1))
                self.requests -= len(self.head) - found.end()
            self.throttled = self.throttled or THROTTLE in self.head
            self.head = self.head[-4096:]
        if self.requests is not None and len(data) >= self.requests:
            self.far.sendall(data[: self.requests])
            return False
        if self.requests is not None:
            self.requests -= len(data)
        try:
            if not self.deaf:
                self.pass_to(self.far, data)
        except OSError:
            self.deaf = True
        return True

    def from_far(self, data):
        room = None if self.replies is None else self.replies - self.replied
        if room is not None and len(data) >= room:
            self.near.sendall(data[:room])
            return False
        self.replied += len(data)
        self.pass_to(self.near, data)
        return True


class Relay:
    def __init__(self, path, target, delay=0):
        self.target = target
        self.delay = delay  # seconds
        self.address = "unix:" + path
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(200)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.stopper, self.stopped = socket.socketpair()
        self.selector.register(self.stopped, selectors.EVENT_READ)
        self.cut = 0  # connections ended on purpose
        self.forged = {}  # bytes of a request: the reply to it
        self.single = 0  # bytes that went alone
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def stop(self):
        self.stopper.close()
        self.thread.join()

    def run(self):
        pairs = {}
        while True:
            for key, _ in self.selector.select():
                sock = key.fileobj
                if sock is self.stopped:
                    self.finish(pairs)
                    return
                if sock is self.listener:
                    self.admit(pairs)
                elif sock in pairs:
                    self.pass_on(pairs, sock)

    def finish(self, pairs):
        for pair in set(pairs.values()):
            pair.close(self.selector)
        self.selector.close()
        self.listener.close()
        self.stopped.close()

    def admit(self, pairs):
        near, _ = self.listener.accept()
        try:
            far = resp.connect(self.target)
        except OSError:
            near.close()
            return
        pair = Pair(near, far, self.forged)
        for sock in (near, far):
            pairs[sock] = pair
            self.selector.register(sock, selectors.EVENT_READ)

    def half_close(self, pair):
        """The end of the requests; replies to them may still come."""
        self.selector.unregister(pair.near)
        pair.far.shutdown(socket.SHUT_WR)
        return True

    def pass_on(self, pairs, sock):
        pair = pairs[sock]
        try:
            data = sock.recv(1 << 16)
            if sock is pair.near and not data:
                alive = self.half_close(pair)
            elif sock is pair.near:
                alive = pair.from_near(data)
            elif data:
                if self.delay:
                    select.select([], [], [], self.delay)
                alive = pair.from_far(data)
            else:
                alive = False
            if data and not alive:
                self.cut += 1
        except OSError:
            alive = False
        if not alive:
            pair.close(self.selector)
            self.single += pair.single
            del pairs[pair.near], pairs[pair.far]
