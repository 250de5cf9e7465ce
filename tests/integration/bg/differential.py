# SPDX-License-Identifier: BSD-2-Clause
"""
The same bytes to Redis directly and through bloomgate: runs a sequence each way,
compares, and shrinks what differs to the requests that matter.
"""

import difflib
import itertools
import random
import time

from . import listed, resp, wait
from .generate import PASSWORD, USERS
from .sequences import WAIT, text_of

# The last request, whose answer says that every reply is there, and what ends
# every state that would hide it.
END = b"7f3a-the-end-91c0"
ENDING = [
    (b"DISCARD",), (b"UNSUBSCRIBE",), (b"PUNSUBSCRIBE",), (b"SUNSUBSCRIBE",),
    (b"AUTH", PASSWORD), (b"PING", END),
]
REPLY_ON = (b"CLIENT", b"REPLY", b"ON")


def ended(sequence):
    quiet = any(isinstance(item, tuple) and b"REPLY" in item for item in sequence)
    return sequence + ENDING[:4] + [REPLY_ON] * quiet + ENDING[4:]


# Both ways meet the same Redis as it was at the start.
FRESH = [
    ("FLUSHALL",), ("SCRIPT", "FLUSH"), ("FUNCTION", "FLUSH"), ("ACL", "DELUSER", "temp"),
]
FRESH_BYTES = b"".join(resp.encode(*command) for command in FRESH)
# For a Redis in which only requests change anything: no expiry or rehashing by
# the clock. hz: how soon a block ends.
REDIS_CONFIG = {"activerehashing": "no", "hz": 500}


def prepare(redis, password_needed):
    """Users and what makes runs repeatable."""
    assert redis.value("DEBUG", "SET-ACTIVE-EXPIRE", "0") == "OK"
    # Small buffers of idle clients make Redis close strangers at times.
    assert redis.value("DEBUG", "REPLYBUFFER", "RESIZING", "0") == "OK"
    for name, rules in USERS.items():
        assert redis.value("ACL", "SETUSER", name, *rules.split()) == "OK"
    rule = (">" + PASSWORD.decode(),) if password_needed else ("nopass",)
    rules = ("resetpass",) + rule if password_needed else rule
    assert redis.value("ACL", "SETUSER", "default", *rules) == "OK"


# Where requests are cut: a function of a stretch's start and size.

def uncut(start, size):
    return []


def cut_everywhere(start, size):
    return range(1, size)


class CutAt:
    def __init__(self, place):
        self.place = place

    def __str__(self):
        return "cut at byte %d" % self.place

    def __call__(self, start, size):
        return [self.place - start] if 0 < self.place - start < size else []


class CutAtRandom:
    def __init__(self, seed):
        self.seed = seed

    def __str__(self):
        return "cut at random places (%s)" % self.seed

    def __call__(self, start, size):
        return resp.cuts(random.Random("%s:%d" % (self.seed, start)), size)


def stretches(sequence):
    """The bytes up to each WAIT, which end with a PING, and the echo of that PING
    to wait for; the last ends with END."""
    out, data = [], []
    for item in ended(sequence):
        if item == WAIT:
            mark = b"mark-%d-91c0" % len(out)
            data.append(resp.encode("PING", mark))
            out.append((b"".join(data), resp.bulk(mark)))
            data = []
        else:
            data.append(listed.encode(item))
    out.append((b"".join(data), resp.bulk(END)))
    return out


class Session:
    """One connection that runs one sequence."""

    def __init__(self, address, taken):
        self.sock = resp.connect(address)
        self.sock.settimeout(15 * wait.SLOW)
        self.got = bytearray()
        self.taken = taken  # a piece is sent when the one before it was read
        self.closed = False

    def send(self, data, cuts):
        last = 0
        try:
            for cut in sorted(set(cuts)) + [len(data)]:
                if last and self.taken:
                    # Who reads nothing for long has ended.
                    self.taken = resp.until_read(self.sock)
                self.sock.sendall(data[last:cut])
                last = cut
        except (BrokenPipeError, ConnectionResetError):
            pass  # what came before the close is still to be read

    def receive_until(self, tail):
        """True when it came, False when the connection was closed before."""
        got = self.got
        from_ = 0
        while got.find(tail, from_) < 0:
            from_ = max(0, len(got) - len(tail))
            try:
                data = self.sock.recv(1 << 18)
            except ConnectionResetError:
                data = b""
            except TimeoutError:
                raise AssertionError("no end of replies: %r" % bytes(got[-400:]))
            if not data:
                self.closed = True
                return False
            got += data
        return True


def exchange(address, sequence, cuts=uncut, expected=None, taken=False):
    """All bytes of the replies. WAITs count only where expected, the replies of
    another run, say that what they wait for will come."""
    session = Session(address, taken)
    start = 0
    try:
        todo = bytearray()
        for data, mark in stretches(sequence):
            todo += data
            last = mark == resp.bulk(END)
            if not last and (expected is None or mark not in expected):
                continue
            session.send(todo, cuts(start, len(todo)))
            start += len(todo)
            todo = bytearray()
            if not session.receive_until(mark):
                return bytes(session.got) + b"<closed>"
        return bytes(session.got)
    finally:
        session.sock.close()


def renamed(sequence, token, fresh):
    """The sequence with other keys, as long as those that it had."""
    return [
        tuple(word.replace(token, fresh) for word in item)
        if isinstance(item, tuple) else item.replace(token, fresh)
        for item in sequence
    ]


class Difference(AssertionError):
    pass


class Comparison:
    """direct: address of the data Redis; sides: {name: address} of bloomgates."""

    def __init__(self, redis, password_needed, sides):
        self.direct = redis.address
        self.sides = sides
        self.fresh = redis.client()
        if password_needed:
            assert self.fresh.call("AUTH", PASSWORD) == resp.OK
        self.renamed = itertools.count(1)
        self.runs = 0

    def close(self):
        self.fresh.close()

    def run(self, address, sequence, **how):
        self.fresh.send(FRESH_BYTES)
        replies = self.fresh.read_n(len(FRESH))
        assert replies[:3] == [resp.OK] * 3, replies
        self.runs += 1
        return exchange(address, sequence, **how)

    def differ(self, name, sequence, want, cuts, taken):
        """(want, got) where they differ, else None."""
        got = self.run(
            self.sides[name], sequence, cuts=cuts, expected=want, taken=taken
        )
        if got == want:
            return None
        want, got = listed.comparable(want), listed.comparable(got)
        return None if got == want else (want, got)

    def check(self, title, token, sequence, cuts=uncut, taken=False, names=None):
        """Runs it directly and on every side (or those of names). Raises
        Difference with the shrunk sequence."""
        want = self.run(self.direct, sequence)
        for name in names or self.sides:
            try:
                found = self.differ(name, sequence, want, cuts, taken)
            except (OSError, AssertionError) as failure:
                # It may be gone: nothing is tried again.
                raise Difference(
                    "%s, %s: %s\n%s" % (title, name, failure, text_of(sequence))
                )
            if found:
                how = (name, token, cuts, taken)
                raise Difference(self.report(title, sequence, found, *how))

    def fresh_token(self):
        return b"%08x" % (0xE0000000 + next(self.renamed))

    def differs_again(self, name, token, sequence, cuts, taken):
        """The same with keys that no filter has seen."""
        items = renamed(sequence, token, self.fresh_token())
        try:
            want = self.run(self.direct, items)
            return self.differ(name, items, want, cuts, taken)
        except AssertionError as failure:
            return b"", str(failure).encode()
        except OSError:
            return None  # gone: nothing can be told any more

    def check_every_cut(self, title, token, sequence, names):
        """One run for each place between two bytes, on one side of names after
        the other."""
        want = self.run(self.direct, sequence)
        size = sum(len(data) for data, _ in stretches(sequence))
        for place in range(1, size):
            fresh = self.fresh_token()
            name = names[place % len(names)]
            found = self.differ(
                name, renamed(sequence, token, fresh), want.replace(token, fresh),
                CutAt(place), True,
            )
            if found:
                how = (name, token, CutAt(place), True)
                raise Difference(self.report(title, sequence, found, *how))

    def report(self, title, sequence, found, name, token, cuts, taken):
        """What a person needs, with the sequence cut down if that can be done."""

        def fails(shorter):
            return self.differs_again(name, token, shorter, cuts, taken)

        said = "shrunk"
        if not listens(self.sides[name]):
            said = "which is gone"
        elif fails(sequence):
            sequence = shrunk(sequence, fails, wait.deadline(30))
            found = fails(sequence) or found
        else:
            said = "not shrunk: with other keys there was no difference"
        lines = ["%s, %s, %s, %s:" % (title, name, getattr(cuts, "__name__", cuts), said)]
        lines += ["-- the sequence, to be replayed from a file:", text_of(sequence)]
        lines += ["-- replies:"]
        lines += difflib.unified_diff(
            cut_lines(found[0]), cut_lines(found[1]), "redis", name, n=2
        )
        return "\n".join(line[:2000] for line in lines[:150])


def listens(address):
    try:
        resp.connect(address).close()
    except OSError:
        return False
    return True


def cut_lines(replies):
    return [repr(line)[2:200] for line in replies.split(b"\r\n")]


def shrunk(sequence, fails, end):
    """The sequence without the items that its failing does not need."""
    size = max(1, len(sequence) // 2)
    while True:
        at = 0
        while at < len(sequence) and time.monotonic() < end:
            shorter = sequence[:at] + sequence[at + size :]
            if shorter and fails(shorter):
                sequence = shorter
            else:
                at += size
        if size == 1 or time.monotonic() > end:
            return sequence
        size //= 2
