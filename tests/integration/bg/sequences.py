# SPDX-License-Identifier: BSD-2-Clause
"""
Sequences of commands for the differential test: read from the text files of
sequences/, or generated. A sequence is a list of commands, a command a tuple of
bytes. Keys of a sequence begin with a prefix that no other sequence has.
"""

import os
import re

from . import resp

FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "sequences")
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "a": "\a"}


def words(text):
    """Splits as redis-cli does; an unquoted ; ends a command."""
    commands, command, i = [], [], 0
    while i < len(text):
        c = text[i]
        if c in " \t":
            i += 1
        elif c == ";":
            commands.append(tuple(command))
            command, i = [], i + 1
        elif c in "\"'":
            word, i = _quoted(text, i + 1, c)
            command.append(word)
        else:
            end = i
            while end < len(text) and text[end] not in " \t;":
                end += 1
            command.append(text[i:end].encode())
            i = end
    if command:
        commands.append(tuple(command))
    return commands


def _quoted(text, i, quote):
    out = bytearray()
    while text[i] != quote:
        c = text[i]
        if quote == '"' and c == "\\":
            c = text[i + 1]
            if c == "x":
                out.append(int(text[i + 2 : i + 4], 16))
                i += 4
                continue
            out += ESCAPES.get(c, c).encode()
            i += 2
        else:
            out += c.encode()
            i += 1
    return bytes(out), i + 1


def lines_of(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as lines:
        for line in lines:
            line = line.rstrip("\n")
            if line and not line.startswith("#"):
                name, _, text = line.partition(": ")
                yield name, text


def written():
    """(name, text) of every hand-written sequence."""
    for state, prepare in lines_of("preparations.txt"):
        for probe, ask in lines_of("probes.txt"):
            yield "%s/%s" % (state, probe), prepare + "; " + ask
    yield from lines_of("scenarios.txt")


def commands(text, number):
    """The commands of one text, its placeholders filled in."""
    text = re.sub(r"\{(\d+)\}", lambda m: "x" * int(m.group(1)), text)
    text = text.replace("{k}", "d%05d:" % number).replace("{n}", str(number))
    return words(text)


# What random sequences are made of. k: a key, v: a value, n: a small number,
# f: a float, m: a member, i: an index.
GRAMMAR = """
GET k|GET k|GET k|SET k v|SET k v NX|SET k v XX|SET k v GET|SET k v KEEPTTL
MGET k k|MGET k k k k|EXISTS k|EXISTS k k k|MSET k v k v|MSETNX k v k v
APPEND k v|STRLEN k|GETRANGE k i i|SETRANGE k n v|GETSET k v|GETDEL k|SETNX k v
INCR k|DECR k|INCRBY k n|DECRBY k n|INCRBYFLOAT k f|GETEX k PERSIST
DEL k|DEL k k|UNLINK k|TOUCH k k|TYPE k|RENAME k k|RENAMENX k k|COPY k k|COPY k k REPLACE
EXPIRE k 100000|PERSIST k|TTL k|OBJECT ENCODING k|EXPIRE k -1
LPUSH k m m|RPUSH k m|LPUSHX k m|LPOP k|RPOP k n|LLEN k|LRANGE k i i|LINDEX k i
LSET k i m|LREM k i m|LTRIM k i i|LINSERT k BEFORE m m|LMOVE k k LEFT RIGHT|LPOS k m
RPOPLPUSH k k|LMPOP 2 k k LEFT COUNT n
HSET k m v|HSET k m v m v|HGET k m|HMGET k m m|HGETALL k|HDEL k m|HLEN k|HEXISTS k m
HINCRBY k m n|HKEYS k|HVALS k|HSETNX k m v|HSTRLEN k m
SADD k m m m|SREM k m|SISMEMBER k m|SMISMEMBER k m m|SMEMBERS k|SCARD k|SINTER k k
SUNION k k|SDIFF k k|SINTERSTORE k k k|SUNIONSTORE k k k|SDIFFSTORE k k k|SMOVE k k m
SINTERCARD 2 k k
ZADD k f m|ZADD k f m f m|ZADD k NX f m|ZADD k GT CH f m|ZREM k m|ZSCORE k m|ZCARD k
ZRANGE k i i|ZRANGE k i i WITHSCORES|ZRANK k m|ZINCRBY k f m|ZCOUNT k f f|ZPOPMIN k
ZPOPMAX k n|ZUNIONSTORE k 2 k k|ZINTERSTORE k 2 k k|ZRANGESTORE k k i i|ZMSCORE k m m
ZRANGEBYSCORE k f f|ZREMRANGEBYRANK k i i|ZDIFF 2 k k
XADD k n-1 m v|XADD k 9999999999999-* m v|XLEN k|XRANGE k - +|XREVRANGE k + - COUNT n
XDEL k n-1|XTRIM k MAXLEN n|XREAD COUNT n STREAMS k 0|XGROUP CREATE k m 0 MKSTREAM
XREADGROUP GROUP m m COUNT n STREAMS k >|XACK k m n-1|XPENDING k m
SETBIT k n 1|SETBIT k n 0|GETBIT k n|BITCOUNT k|BITPOS k 1|BITOP AND k k k|BITOP OR k k k
BITFIELD k INCRBY u8 n n GET i5 n|BITFIELD_RO k GET u8 n|BITOP NOT k k
PFADD k m m|PFCOUNT k|PFCOUNT k k|PFMERGE k k k
GEOADD k f f m|GEOPOS k m m|GEODIST k m m|GEOSEARCH k FROMLONLAT 0 0 BYRADIUS 9000 km ASC
GEOSEARCHSTORE k k FROMLONLAT 1 1 BYRADIUS 9000 km ASC
SORT k ALPHA|SORT k ALPHA STORE k|SORT k BY nosort LIMIT 0 n|DUMP k|RANDOMKEY x
EVAL set 1 k v|EVAL get 1 k|EVAL both 2 k k|EVAL error 1 k
ECHO v|PING|PING v|SELECT 0|SELECT 1|DBSIZE|NOSUCH k v|GET|SET k|MGET|HGET k
"""
SCRIPTS = {
    b"set": b"return redis.call('set', KEYS[1], ARGV[1])",
    b"get": b"return redis.call('get', KEYS[1])",
    b"both": b"redis.call('set', KEYS[2], 'x') return {redis.call('exists',"
    b" KEYS[1]), redis.call('get', KEYS[2]), {1, {2}}}",
    b"error": b"return redis.call('lpush', KEYS[1], 'a', 'b') + 'x'",
}
TEMPLATES = [
    tuple(one.encode().split())
    for line in GRAMMAR.split("\n")
    for one in line.split("|")
    if one
]


def generate(rng, number):
    """One random sequence; transactions in it are closed."""
    keys = [b"g%05d:%d" % (number, i) for i in range(rng.randrange(2, 7))]

    def fill(word):
        if word == b"k":
            return rng.choice(keys)
        if word == b"v":
            if rng.random() < 0.02:
                return resp.values(rng, rng.randrange(20000))
            if rng.random() < 0.3:
                return b"%d" % rng.randrange(-5, 1000)
            return resp.values(rng, rng.randrange(12))
        if word == b"n" or word == b"n-1":
            return b"%d" % rng.randrange(1, 40) + word[1:]
        if word == b"f":
            return b"%g" % rng.choice([0, 1, -2, 2.5, 80, rng.randrange(60)])
        if word == b"m":
            return rng.choice([b"a", b"b", b"c", b"d", b"1", b"22", b""])
        if word == b"i":
            return b"%d" % rng.randrange(-3, 4)
        return SCRIPTS.get(word, word)

    out = []
    inside = False
    for _ in range(rng.randrange(4, 26)):
        roll = rng.random()
        if roll < 0.03 and not inside:
            out.append((b"MULTI",))
            inside = True
        elif roll < 0.15 and inside:
            out.append((rng.choice([b"EXEC", b"EXEC", b"DISCARD"]),))
            inside = False
        elif roll < 0.03:
            out.append((b"WATCH", rng.choice(keys)))
        else:
            out.append(tuple(map(fill, rng.choice(TEMPLATES))))
    if inside:
        out.append((b"EXEC",))
    return out


# The one list of reply fields that may differ between two runs: what stands
# before them stays, they become N. (Everything else is compared as it came;
# times, ids and ports appear only here.)
FIELDS = [
    re.compile(rb"(\$2\r\nid\r\n:)\d+"),  # HELLO: the connection's id
]

# The last request, whose echo says that every reply is there.
MARKER = b"7f3a-the-end-91c0"

# Commands with no reply, with several, or that end the session: their
# sequences are not sent step by step.
UNEVEN = re.compile(
    rb"(P|S)?(UN)?SUBSCRIBE|QUIT|MONITOR|RESET$", re.IGNORECASE
)


def even(sequence):
    return not any(
        UNEVEN.match(command[0])
        or command[0].upper() == b"CLIENT" and b"REPLY" in command
        or command[:2] == (b"DEBUG", b"PROTOCOL")
        for command in sequence
    )


def comparable(replies):
    for field in FIELDS:
        replies = field.sub(rb"\1N", replies)
    return replies


def run_at_once(client, sequence, pieces=()):
    """All in one write (or cut at pieces); every byte of the replies."""
    data = b"".join(resp.encode(*command) for command in sequence)
    if any(command[0] == b"QUIT" for command in sequence):
        pieces = ()  # what follows it may find no reader
    client.send_cut(data + resp.encode("PING", MARKER), pieces)
    return _until_marker(client)


def run_step_by_step(client, sequence):
    return b"".join(client.call(*command) for command in sequence)


def _until_marker(client):
    tail = resp.bulk(MARKER)
    got = []
    try:
        while not got or not got[-1].endswith(tail):
            got.append(client.read())
    except resp.Closed as closed:
        return b"".join(got) + closed.args[0] + b"<closed>"
    return b"".join(got)[: -len(tail)]
