# SPDX-License-Identifier: BSD-2-Clause
"""
What is known about every id, and which answers break a law.

An id is *acknowledged* from the moment that the reply to its add was read. A
read of it that was sent after that must not say absent:

  check remote   ever, from whichever bloomgate
  check mirror   by another bloomgate once max-staleness has passed; by the one
                 that acknowledged it ever

Both moments are taken on this side of the sockets, the add's after its reply
was read and the read's before it was sent, so that no delay of ours can make a
wrong answer of a right one. An add without a success (an error, a closed or
silent connection) may or may not have been made: nothing is said about its id.

What lies outside of law 2 by design, and how the chaos keeps clear of it:

- Two masters at once. The relay leads to one Redis only; the old master is dead
  before the replica that follows it is reached. (Between the replica's cutting
  loose and the old one's death only the old one takes writes.)
- Adds that a Redis took and lost. They are covered by the rebuild from a fresh
  source, which the application's database holds: so a writer writes each id to
  the source (a file that grows; the `command` of the filter prints it) before
  it adds it, as an application commits before it fills its cache.
- A source that lies: exits 0 with too little. Only the guards can see that; the
  short answer is below min-elements, which refuse it.
- Bits cleared by hand under a right tag, and a meta key deleted alone.
- Coming back by SWAPDB or an old dump on a *running* Redis is seen by those
  bloomgates that saw the newer epoch, at their next heartbeat; so the swap back
  is done while all of them run.

Unknown ids are never written anywhere; each must be absent again, through every
bloomgate, within lease + rebuild time + 5 s after a disturbance has ended.
"""

import collections
import statistics
import threading
import time

Ack = collections.namedtuple("Ack", "at gate how sent written")


class Checker:
    def __init__(self, staleness):
        """staleness: None for check remote, else max-staleness in seconds."""
        self.staleness = staleness
        self.lock = threading.Lock()
        self.began = time.monotonic()
        self.known = []  # acknowledged ids, oldest first
        self.acks = {}
        self.counts = collections.Counter()
        self.timeline = []
        self.violations = []
        self.recoveries = collections.defaultdict(list)
        self.broken = threading.Event()

    def since(self, at):
        return at - self.began

    def note(self, text, at=None):
        at = time.monotonic() if at is None else at
        line = "%8.3f  %s" % (self.since(at), text)
        with self.lock:
            self.timeline.append(line)
        print(line, flush=True)

    def acknowledged(self, ids, gate, how, sent, written):
        now = time.monotonic()
        with self.lock:
            for one in ids:
                self.acks[one] = Ack(now, gate, how, sent, written)
                self.known.append(one)
            self.counts["acknowledged"] += len(ids)

    def some(self, rng, count):
        """Acknowledged ids, most of them of the last moments."""
        with self.lock:
            size = len(self.known)
            recent = min(size, 200)
            return [
                self.known[
                    rng.randrange(size - recent, size)
                    if rng.random() < 0.7
                    else rng.randrange(size)
                ]
                for _ in range(count)
            ]

    def newest(self, count):
        with self.lock:
            return self.known[-count:]

    def everything(self):
        with self.lock:
            return list(self.known)

    def read(self, ids, gate, how, sent, absent, reply):
        """One answer about these acknowledged ids."""
        now = time.monotonic()
        with self.lock:
            self.counts["reads of acknowledged ids"] += len(ids)
            if not absent:
                return
            for one in ids:
                ack = self.acks[one]
                if sent < ack.at:
                    continue
                if (
                    self.staleness is not None
                    and gate != ack.gate
                    and sent <= ack.at + self.staleness
                ):
                    self.counts["absents within max-staleness"] += 1
                    continue
                self.violations.append((one, gate, how, sent, now, reply))
        if self.violations:
            self.broken.set()

    def unknown(self, absents, reads):
        with self.lock:
            self.counts["reads of unknown ids"] += reads
            self.counts["absents of unknown ids"] += absents

    def failure(self, what):
        """Anything else that must not be."""
        with self.lock:
            self.violations.append((None, None, what, 0, time.monotonic(), b""))
        self.broken.set()

    def recovered(self, names, seconds):
        for name in names:
            self.recoveries[name].append(seconds)

    def history(self, violation):
        one, gate, how, sent, now, reply = violation
        if one is None:
            yield "LAW BROKEN at %.3f: %s" % (self.since(now), how)
            return
        ack = self.acks[one]
        yield "LAW BROKEN: %s is called absent" % one
        yield "%8.3f  written to the source" % self.since(ack.written)
        yield "%8.3f  add sent: %s through b%s" % (
            self.since(ack.sent), ack.how, ack.gate)
        yield "%8.3f  add acknowledged" % self.since(ack.at)
        yield "%8.3f  read sent: %s through b%s" % (
            self.since(sent), " ".join(how), gate)
        yield "%8.3f  answered: %r" % (self.since(now), reply[:200])

    def report(self):
        for name in sorted(self.counts):
            yield "%-32s %d" % (name, self.counts[name])
        for name in sorted(self.recoveries):
            times = self.recoveries[name]
            yield "absent again after %-20s %3d x  median %6.3f s  worst %6.3f s" % (
                name, len(times), statistics.median(times), max(times))
