# SPDX-License-Identifier: BSD-2-Clause
"""
Every covered read: in its plain form it is answered here with exactly what this
Redis answers for a missing key, under RESP2 and RESP3; any other form, and every
key that may exist, is Redis's. Redis is asked, nobody remembers.
"""

import pytest
from bg import resp
from bg.covered import ROWS, making, request
from bg.relay import Relay

NULL = resp.bulk("__NULL__")
ERROR = b"-NOTFOUND no such user\r\n"
TEXT = {"value": "__NULL__", "error": "NOTFOUND no such user"}


@pytest.fixture
def gate_with(redis, bloomgate, make_filter, ids_file):
    def start(upstream=redis, **over):
        return bloomgate(
            upstream, filters=[make_filter(ids_file(["1"]), **over)],
            store={"address": redis.address},
        ).warm()

    return start


def every(rows, forms):
    return [(row, args) for row in rows for args in forms(row)]


class Seen:
    """Which requests about a key of users reach Redis and are executed. (The
    filter's own reads of its keys are not among them.)"""

    def __init__(self, redis):
        self.redis = redis
        redis.call("CONFIG", "SET", "slowlog-max-len", "1000")
        redis.call("CONFIG", "SET", "slowlog-log-slower-than", "0")

    def reset(self):
        self.redis.call("SLOWLOG", "RESET")

    def count(self):
        return sum(any(word.startswith(b"user:") for word in entry[3])
                   for entry in self.redis.value("SLOWLOG", "GET", "-1"))


@pytest.mark.parametrize("protocol", (2, 3))
def test_missing_keys_are_answered_as_redis_does(gate_with, redis, protocol):
    gate = gate_with(**{"absent-reply": "nil"})
    seen = Seen(redis)
    with gate.client() as client, redis.client() as direct:
        client.call("HELLO", protocol)
        direct.call("HELLO", protocol)
        for row, args in every(ROWS, lambda row: row.plain):
            words = request(row, args, "user:none")
            right = direct.call(*words)
            seen.reset()
            assert client.call(*words) == right, words
            assert seen.count() == 0, words


@pytest.mark.parametrize("protocol", (2, 3))
def test_other_forms_are_redis_own(gate_with, redis, protocol):
    gate = gate_with(**{"absent-reply": {"error": TEXT["error"]}})
    with gate.client() as client, redis.client() as direct:
        client.call("HELLO", protocol)
        direct.call("HELLO", protocol)
        for row, args in every(ROWS, lambda row: row.other):
            words = request(row, args, "user:none")
            right = direct.call(*words)
            assert client.call(*words) == right, words
            assert b"NOTFOUND" not in right


@pytest.mark.parametrize("protocol", (2, 3))
def test_keys_that_may_exist_are_redis_own(gate_with, redis, protocol):
    """The one with something in it, and one of another type."""
    gate = gate_with(**{"absent-reply": {"error": TEXT["error"]}})
    with gate.client() as client, redis.client() as direct:
        client.call("HELLO", protocol)
        direct.call("HELLO", protocol)
        for make in sorted({row.make for row in ROWS}, key=str):
            redis.call("DEL", "user:1")
            redis.call(*making(ROWS[0]._replace(make=make), "user:1"))
            for row, args in every(ROWS, lambda row: row.plain):
                words = request(row, args, "user:1")
                assert client.call(*words) == direct.call(*words), (make, words)


@pytest.mark.parametrize("protocol", (2, 3))
@pytest.mark.parametrize("permitted", (True, False))
@pytest.mark.parametrize("absent", ("value", "error"))
def test_in_the_filter_way(gate_with, redis, protocol, permitted, absent):
    """Where Redis has to be asked because nobody can say whether the user may
    read, its word that a key is missing is replaced."""
    gate = gate_with(**{"absent-reply": {absent: TEXT[absent]}})
    redis.call("ACL", "SETUSER", "some", "on", ">pw", "~user:n*", "~other",
               "+@all")
    with gate.client() as client, redis.client() as direct:
        for one in (client, direct):
            one.call("HELLO", protocol, *([] if permitted else
                                          ["AUTH", "some", "pw"]))
        for row, args in every(ROWS, lambda row: row.plain):
            words = request(row, args, "user:none")
            right = direct.call(*words)
            nil = resp.NIL2 if protocol == 2 else resp.NIL3
            if absent == "error":
                right = ERROR
            elif row.name == "get":
                right = NULL
            elif row.name == "mget":
                right = resp.array(*(NULL if k != "other" else nil
                                     for k in words[1:]))
            assert client.call(*words) == right, words


class OneByte(Relay):
    """Passes what Redis says a byte at a time, once it is told to: the daemon's
    start reads too much for that."""

    slow = False

    def pass_on(self, pairs, sock):
        pair = pairs[sock]
        if sock is pair.near or not self.slow:
            super().pass_on(pairs, sock)
            return
        try:
            data = sock.recv(1)
            pair.near.sendall(data)
        except OSError:  # the daemon waits no longer
            data = b""
        if not data:
            pair.close(self.selector)
            del pairs[pair.near], pairs[pair.far]


@pytest.fixture
def slow(redis, folder):
    relay = OneByte(folder + "/relay.sock", redis.address)
    yield relay
    relay.stop()


@pytest.mark.parametrize("protocol", (2, 3))
def test_replies_that_begin_like_a_missing_key(
        gate_with, redis, slow, protocol):
    """They are kept back until a byte differs, and then all of them leave. Keys
    that were written round the daemon are there although absent is said."""
    gate = gate_with(slow, **{"absent-reply": {"error": TEXT["error"]}})
    slow.slow = True
    redis.call("ACL", "SETUSER", "some", "on", ">pw", "~user:[ln]*", "+@all")
    makes = [
        ("SET", "user:late", ""), ("SET", "user:late", "x"),
        ("SET", "user:late", "-1"), ("HSET", "user:late", "z", ""),
        ("HSET", "user:late", "g", "2"), ("SADD", "user:late", "none"),
        ("RPUSH", "user:late", ""), ("ZADD", "user:late", "0", "none"),
        ("ZADD", "user:late", "3", "n"),
    ]
    with gate.client(seconds=60) as client, redis.client() as direct:
        for one in (client, direct):
            one.call("HELLO", protocol, "AUTH", "some", "pw")
        for make in makes:
            redis.call("DEL", "user:late")
            redis.call(*make)
            for row, args in every(ROWS, lambda row: row.plain):
                if row.name in ("mget", "exists"):
                    continue
                words = request(row, args, "user:late")
                right = direct.call(*words)
                missing = direct.call(*request(row, args, "user:none"))
                got = client.call(*words)
                assert got == (ERROR if right == missing else right), (make, words)


def test_inline(gate_with, redis):
    gate = gate_with()
    with gate.client() as client:
        client.send(b"get user:none\r\nSTRLEN user:none\r\nhmget user:none f g\r\n"
                    b"OBJECT ENCODING user:none\r\nexists user:none\r\n"
                    b"mget user:none\r\n")
        assert client.read_n(6) == [
            NULL, b":0\r\n", resp.array(resp.NIL2, resp.NIL2), resp.NIL2, b":0\r\n",
            resp.array(NULL)]
