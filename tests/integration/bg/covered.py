# SPDX-License-Identifier: BSD-2-Clause
"""
The covered reads as data: for each its plain forms, forms that are Redis's to
judge, and what makes a key that it can read. KEY stands for the key.
"""

from collections import namedtuple

KEY = object()

# name: as COMMAND and commandstats have it; plain, other: arguments after the
# name; make: a write that makes KEY a key with something to read.
Row = namedtuple("Row", "name plain other make")

STRING = ("SET", KEY, "some value")
NUMBER = ("SETRANGE", KEY, "3", "x")
HASH = ("HSET", KEY, "f", "1", "g", "2")
SET = ("SADD", KEY, "m", "n")
LIST = ("RPUSH", KEY, "a", "b", "c")
ZSET = ("ZADD", KEY, "1", "m", "2.5", "n")


def words(text):
    return tuple(KEY if word == "KEY" else word for word in text.split(" "))


def row(name, make, plain, other=()):
    return Row(name, [words(p) for p in plain], [words(o) for o in other], make)


ROWS = [
    row("get", STRING, ["KEY"], ["KEY x", ""]),
    row("mget", STRING, ["KEY", "KEY KEY", "KEY other KEY"]),
    row("strlen", STRING, ["KEY"], ["KEY x"]),
    row("getrange", STRING, ["KEY 0 -1", "KEY -3 100"],
        ["KEY 0", "KEY a 1", "KEY 0 01", "KEY 0 +1", "KEY 0 1.0",
         "KEY 0 9223372036854775808", "KEY 0 1 2", "KEY  1"]),
    row("substr", STRING, ["KEY 0 -1"], ["KEY 0 x"]),
    row("exists", STRING, ["KEY", "KEY KEY", "KEY other"]),
    row("ttl", STRING, ["KEY"], ["KEY x"]),
    row("pttl", STRING, ["KEY"]),
    row("expiretime", STRING, ["KEY"]),
    row("pexpiretime", STRING, ["KEY"]),
    row("type", STRING, ["KEY"], ["KEY x"]),
    row("hget", HASH, ["KEY f", "KEY none", "KEY "], ["KEY", "KEY f g"]),
    row("hmget", HASH, ["KEY f", "KEY f none g"], ["KEY"]),
    row("hgetall", HASH, ["KEY"], ["KEY f"]),
    row("hexists", HASH, ["KEY f", "KEY none"], ["KEY"]),
    row("hlen", HASH, ["KEY"]),
    row("hkeys", HASH, ["KEY"]),
    row("hvals", HASH, ["KEY"]),
    row("hstrlen", HASH, ["KEY f", "KEY none"]),
    row("smembers", SET, ["KEY"], ["KEY x"]),
    row("sismember", SET, ["KEY m", "KEY none"], ["KEY"]),
    row("smismember", SET, ["KEY m", "KEY m none m"], ["KEY"]),
    row("scard", SET, ["KEY"]),
    row("lrange", LIST, ["KEY 0 -1", "KEY 1 1", "KEY 9 10"],
        ["KEY 0", "KEY a b", "KEY 0 1 2"]),
    row("llen", LIST, ["KEY"]),
    row("lindex", LIST, ["KEY 0", "KEY -1", "KEY 99"], ["KEY x", "KEY"]),
    row("zrange", ZSET, ["KEY 0 -1", "KEY 1 1"],
        ["KEY 0 -1 WITHSCORES", "KEY 0 -1 REV", "KEY (1 5 BYSCORE", "KEY a b",
         "KEY - +", "KEY 0"]),
    row("zscore", ZSET, ["KEY m", "KEY none"], ["KEY"]),
    row("zmscore", ZSET, ["KEY m", "KEY m none n"], ["KEY"]),
    row("zcard", ZSET, ["KEY"]),
    row("zrank", ZSET, ["KEY m", "KEY none"], ["KEY", "KEY m WITHSCORE"]),
    row("getbit", NUMBER, ["KEY 0", "KEY 25", "KEY 8388607"],
        ["KEY -1", "KEY x", "KEY 4294967296", "KEY 8388608", "KEY 01"]),
    row("bitcount", NUMBER, ["KEY"],
        ["KEY 0 -1", "KEY 0", "KEY a b", "KEY 0 -1 BIT"]),
    row("dump", STRING, ["KEY"], ["KEY x"]),
    row("object|encoding", STRING, ["KEY"], ["KEY x", ""]),
]


def request(row, args, key):
    """The request as a list of words."""
    return row.name.split("|") + [key if a is KEY else a for a in args]


def making(row, key):
    return [key if a is KEY else a for a in row.make]
