# SPDX-License-Identifier: BSD-2-Clause
"""
Random sequences. Each is made of blocks: commands of one group; covered reads,
plain and not, in the state that the session happens to be in; or one that
changes the state (transaction, subscription, database, user, protocol, tracking,
replies off, monitor, reset, quit, bytes that are no request).
"""

import random

from . import grammar
from .sequences import with_waits

PASSWORD = b"pw"
# Who AUTH may become: name and ACL rules. Their rights never change, so that
# what was learned of them within permission-ttl stays true.
USERS = {
    "all": "on >pw ~* &* +@all",
    "reader": "on >pw ~h* ~u* &* +@read +@connection +@transaction",
    "narrow": "on >pw ~h* +get +mget +hget +set +@connection +@transaction",
    "blind": "on >pw ~* &* +@all -get -mget -exists -hgetall -@set",
    "writer": "on >pw ~* &* +@all -@read",
    "split": "on >pw %R~h* %W~u* &* +@all",
    "selector": "on >pw ~h* +get +@connection +@transaction (~u* +set +get +ttl)",
    "silent": "on >pw ~* resetchannels +@all -@dangerous",
    "gone": "off >pw ~* +@all",
}
NAMES = [name.encode() for name in USERS] + [b"default", b"nobody"]

# Groups of the grammar by how often a block is of them.
GROUPS = [
    name for name in grammar.groups() for _ in range(3)
    if name not in ("reads", "unusual")
] + ["strings"] * 6 + ["keyspace"] * 3
# What ends a session or is no request, as bytes.
BROKEN = [
    b"*x\r\n", b"*1\r\n:1\r\n", b"*1\r\n$-1\r\n", b"*1\r\n$x\r\n", b"*2\r\n$3\r\nGET\r\nx",
    b"*1\r\n$536870913\r\n", b"*99999999999\r\n", b'GET "x\r\n', b"GET 'x'y\r\n",
    b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n!1\r\n",
]
EMPTY = [b"\r\n", b"\n", b"*0\r\n", b"*-1\r\n", b"  \r\n", b"*-10\r\n"]


class Generator:
    def __init__(self, seed, number, password_needed):
        self.rng = rng = random.Random("%s:%d" % (seed, number))
        self.token = token = b"%08x" % number
        self.password_needed = password_needed
        # Redis closes an unauthenticated connection that has unread replies, so
        # what RESET of a pipeline does there depends on the moment.
        self.resets = [] if password_needed else [b"RESET"]
        tails = [b"", b":1", b":2", b":two words", b":3", b":\xff\r\n", b"{tag}"]
        rng.shuffle(tails)
        keys = [
            rng.choice([b"h", b"h", b"u"]) + token + tail
            for tail in tails[: rng.randrange(2, 6)]
        ]
        if rng.random() < 0.01:
            keys.append(b"h" + token + b"x" * 4100)  # longer than any element
        self.words = grammar.Words(rng, keys, [b"c" + token, b"c" + token + b"2"])
        self.out = []
        self.ended = False
        self.silent = False  # CLIENT REPLY OFF
        self.queued = False  # by MULTI

    def put(self, *items):
        for item in items:
            words = tuple(w.upper() for w in item) if isinstance(item, tuple) else ()
            if words[:1] == (b"QUIT",) and self.silent:
                if self.queued:  # CLIENT REPLY ON would be, too
                    continue
                self.speak()
            self.out.append(item)
            if words == (b"MULTI",):
                self.queued = True
            elif words in ((b"EXEC",), (b"DISCARD",), (b"RESET",)):
                self.queued = False
            elif words[:2] == (b"CLIENT", b"REPLY") and not self.queued:
                if words[2:] in ((b"ON",), (b"OFF",)):
                    self.silent = words[2] == b"OFF"

    # Blocks

    def commands(self):
        group = self.rng.choice(GROUPS)
        self.words.prefer(group)
        for _ in range(self.rng.randrange(1, 6)):
            self.put(self.words.command(group))

    def reads(self):
        rng = self.rng
        for _ in range(rng.randrange(1, 6)):
            self.words.favourite = rng.choice(self.words.keys)
            if rng.random() < 0.75:
                self.put(self.words.command("reads", 0))
            else:
                self.put(self.words.command("unusual"))

    def either(self):
        self.rng.choice([self.reads, self.reads, self.commands])()

    def either_few(self, most=2):
        for _ in range(self.rng.randrange(most + 1)):
            self.either()

    def transaction(self):
        rng = self.rng
        if rng.random() < 0.3:
            self.watch()
        self.put((b"MULTI",))
        self.either_few()
        if rng.random() < 0.1:
            self.put(rng.choice([
                (b"MULTI",), (b"WATCH", self.words.key()), (b"SELECT", b"1"),
                (b"UNWATCH",), (b"SUBSCRIBE", self.words.channels[0]),
                (b"HELLO", b"3"), (b"AUTH", b"all", PASSWORD), (b"QUIT", b"x"),
                (b"CLIENT", b"TRACKING", b"ON"), (b"NOSUCH",), (b"EXEC", b"x"),
                (b"PUNSUBSCRIBE",), (b"AUTH", b"nobody", b"x"),
            ]))
            self.either()
        self.put((rng.choice([b"EXEC"] * 6 + [b"DISCARD"] * 2 + self.resets),))

    def watch(self):
        rng = self.rng
        self.put((b"WATCH", self.words.key(), self.words.key()))
        self.either_few()
        if rng.random() < 0.3:
            self.put((b"SET", self.words.key(), b"touched"))
        if rng.random() < 0.3:
            self.put((b"UNWATCH",))

    def subscription(self):
        rng = self.rng
        kind = rng.choice([b"", b"", b"P", b"S"])
        channels = self.words.channels
        self.put((kind + b"SUBSCRIBE",) + tuple(channels[: rng.randrange(1, 3)]))
        self.either_few()
        if rng.random() < 0.5:
            self.put((b"SPUBLISH" if kind == b"S" else b"PUBLISH",
                      channels[0], self.words.value()))
        if rng.random() < 0.2:
            self.put((b"PING",), (b"PING", b"x"))
        if rng.random() < 0.2:
            self.put((b"PSUBSCRIBE", b"c" + self.token + b"*"), (b"PUNSUBSCRIBE",))
        if rng.random() < 0.3:
            self.put((kind + b"UNSUBSCRIBE", channels[0]))
        if rng.random() < 0.1 and self.resets:
            self.put((b"RESET",))
        self.put((kind + b"UNSUBSCRIBE",))

    def database(self):
        self.put((b"SELECT", b"%d" % self.rng.randrange(4)))
        self.either_few(3)
        if self.rng.random() < 0.8:
            self.put((b"SELECT", b"0"))

    def login(self):
        rng = self.rng
        name = rng.choice(NAMES)
        password = PASSWORD if rng.random() < 0.85 else b"wrong"
        if rng.random() < 0.2:
            self.put((b"AUTH", password))
        elif rng.random() < 0.7:
            self.put((b"AUTH", name, password))
        else:
            self.put((b"HELLO", rng.choice([b"2", b"3"]), b"AUTH", name, password))
        self.either_few(3)
        if rng.random() < 0.5:
            self.put((b"AUTH", b"default", PASSWORD))

    def protocol(self):
        rng = self.rng
        hello = (b"HELLO", rng.choice([b"2", b"3", b"3", b"3"]))
        if rng.random() < 0.2:
            hello += (b"SETNAME", b"name")
        if rng.random() < 0.1:
            hello += (b"AUTH", rng.choice(NAMES), PASSWORD)  # after SETNAME too
        self.put(hello)
        self.either_few()

    def tracking(self):
        rng = self.rng
        how = rng.choice([b"", b"", b"OPTIN", b"OPTOUT", b"NOLOOP",
                          b"BCAST PREFIX zz", b"REDIRECT 0", b"REDIRECT 999999"])
        self.put((b"CLIENT", b"TRACKING", b"ON") + tuple(how.split()))
        if rng.random() < 0.3:
            self.put((b"CLIENT", b"CACHING", rng.choice([b"YES", b"NO"])))
        self.either_few(3)
        if rng.random() < 0.7:
            self.put((b"CLIENT", b"TRACKING", b"OFF"))
            self.reads()

    def replies(self):
        """CLIENT REPLY. What is listed is not skipped: its ECHOs are a pair."""
        rng = self.rng
        if rng.random() < 0.5:
            for _ in range(rng.randrange(1, 3)):
                self.put((b"CLIENT", b"REPLY", b"SKIP"), (b"GET", self.words.key()))
        else:
            self.put((b"CLIENT", b"REPLY", b"OFF"))
            self.either_few()
            if rng.random() < 0.8:
                self.speak()
        self.reads()

    def speak(self):
        """Without replies Redis may not even close at the end."""
        if self.silent:
            self.put((b"CLIENT", b"REPLY", b"ON"))

    def monitor(self):
        self.put((b"MONITOR",))
        self.either_few()
        self.put_all(self.resets)

    def put_all(self, names):
        self.put(*((name,) for name in names))

    def reset(self):
        if self.resets:
            self.put((b"RESET",))
        else:
            self.put((b"AUTH", PASSWORD), (b"HELLO", b"2"))
        self.reads()

    def flush(self):
        self.put((self.rng.choice([b"FLUSHALL", b"FLUSHDB"]),))
        self.reads()

    def debug(self):
        kinds = [b"STRING", b"INTEGER", b"DOUBLE", b"NULL", b"ARRAY", b"SET", b"MAP",
                 b"BIGNUM", b"TRUE", b"FALSE", b"VERBATIM", b"ATTRIB", b"PUSH"]
        self.put((b"DEBUG", b"PROTOCOL", self.rng.choice(kinds)))

    def inline(self):
        """The same commands as a person types them."""
        rng = self.rng
        for _ in range(rng.randrange(1, 4)):
            key = self.words.key() or b'""'
            if key.strip(b"\r\n \xff") != key or b" " in key:
                key = b'"' + key.replace(b"\xff\r\n", b"\\xff\\r\\n") + b'"'
            self.put(rng.choice([b"GET %s", b"get  %s ", b"EXISTS %s", b"SET %s 'v'",
                                 b'SET %s "a\\x41\\n"', b"STRLEN %s", b"TYPE %s x",
                                 b"MGET %s '%s'", b"HGETALL\t%s"])
                     .replace(b"'%s'", b"x").replace(b"%s", key)
                     + rng.choice([b"\r\n", b"\n"]))
        self.put(rng.choice(EMPTY))

    def quit(self):
        self.speak()
        self.put((b"QUIT",))
        self.reads()
        self.ended = True

    def broken(self):
        self.speak()
        self.put(self.rng.choice(BROKEN))
        self.ended = True

    STATES = [
        (transaction, 8), (watch, 2), (subscription, 5), (database, 4), (login, 5),
        (protocol, 6), (tracking, 3), (replies, 3), (monitor, 1), (reset, 2),
        (flush, 1), (debug, 1), (inline, 4), (quit, 1), (broken, 1),
    ]
    BLOCKS = [block for block, weight in STATES for _ in range(weight)]

    def sequence(self):
        rng = self.rng
        if self.password_needed and rng.random() < 0.85:
            self.put(rng.choice([
                (b"AUTH", PASSWORD), (b"AUTH", b"default", PASSWORD),
                (b"HELLO", b"3", b"AUTH", b"default", PASSWORD),
            ]))
            if rng.random() < 0.1:
                self.put((b"RESET",), (b"GET", self.words.key()), (b"AUTH", PASSWORD))
        elif rng.random() < 0.35:
            self.put((b"HELLO", b"3"))
        length = rng.randrange(3, 22)
        while len(self.out) < length and not self.ended:
            if rng.random() < 0.3:
                rng.choice(self.BLOCKS)(self)
            else:
                self.either()
        share = rng.choice([0, 0, 0.2, 0.5, 1])
        return with_waits(rng, self.out, share) if share else self.out


def generate(seed, number, password_needed=False):
    """Sequence number of a seed; the same each time."""
    return Generator(seed, number, password_needed).sequence()
