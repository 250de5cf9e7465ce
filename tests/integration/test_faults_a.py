# SPDX-License-Identifier: BSD-2-Clause
"""
Parsing faults that others shipped, where they need a connection and have no
home in test_protocol.py: each test names its codes (tests/lint/faults).
"""

import os

import pytest
from bg import resp, wait
from bg.relay import Relay

NULL = resp.bulk("__NULL__")
LOST = b"-ERR bloomgate: upstream"


@pytest.fixture
def gate(redis, bloomgate, make_filter, ids_file):
    return bloomgate(redis, filters=[make_filter(ids_file(["1"]))]).warm()


def test_an_error_is_its_own_clients(gate, redis):
    """FAULTS A1: a request that cannot be parsed ends that client, not one of
    the others, whose replies go on in the middle of their pipelines."""
    bad = (b'SET k "\\x4\r\n', b'SET k "\\x41\r\n', b"SET k 'x\\'\r\n",
           b"*1\r\n:1\r\n", b"*\xff\r\n", b"*1\r\n$-1\r\n", b'"\\x"x\r\n')
    with gate.client() as good:
        for data in bad:
            good.send(resp.encode("GET", "user:none") + b"*2\r\n$3\r\nGET\r\n$6\r\nu")
            with gate.client() as client:
                client.send(data)
                replies, rest = client.read_all()
                assert len(replies) == 1 and rest == b"", data
                assert replies[0].startswith(b"-ERR Protocol error: "), data
            good.send(b'ser:1\r\nECHO "\\x41\\xff"\r\n')
            assert good.read_n(3) == [NULL, resp.NIL2, resp.bulk(b"A\xff")], data
    assert gate.metric("client_protocol_errors_total") == len(bad)


@pytest.mark.parametrize("protocol,nil", [(2, resp.NIL2), (3, resp.NIL3)])
def test_empty_and_nil_replies_keep_the_stream_in_step(gate, redis, protocol, nil):
    """FAULTS A4, A5, A6: empty values are values, nil has no end of its own;
    alone, in arrays, and where answers of both sides are merged."""
    redis.value("MSET", "user:1", "", "empty", "", "user:2", "two")
    gate.value("BF.ADD", "user", "2")
    with gate.client() as client:
        client.call("HELLO", protocol)
        client.call("GET", "user:none")
        pairs = [
            (["GET", "user:1"], resp.bulk("")),
            (["GET", "nothing"], nil),
            (["SET", "user:1", ""], resp.OK),
            (["GET", "empty"], resp.bulk("")),
            (["MGET", "user:1", "user:none", "nothing", "user:2", "empty"],
             resp.array(resp.bulk(""), NULL, nil, resp.bulk("two"), resp.bulk(""))),
            (["MGET", "nothing", "empty"], resp.array(nil, resp.bulk(""))),
            (["GET", "user:none"], NULL),
            (["ECHO", ""], resp.bulk("")),
            (["LRANGE", "nothing", 0, -1], b"*0\r\n"),
            (["GET", ""], nil),
            (["EVAL", "return {'', false, {}, ''}", 0],
             resp.array(resp.bulk(""), nil, b"*0\r\n", resp.bulk(""))),
            (["BLPOP", "nothing", "0.01"], b"*-1\r\n" if protocol == 2 else nil),
        ]
        client.send(b"".join(resp.encode(*words) for words, _ in pairs))
        for words, want in pairs:
            assert client.read() == want, words
        client.quiet()


REPLIES = [
    ["EVAL", "return {redis.status_reply('FINE'), {err='ERR in it'}, 1, false, 'x',"
     " {}, {redis.status_reply('DEEPER'), {err='E'}}}", 0],
    ["EVAL", "return {1,{2},3}", 0],
    ["EVAL", "return redis.status_reply('')", 0],
    ["EVAL", "return {double=3.25}", 0],
    ["EVAL", "return {map={a={map={b=1}}}}", 0],
    ["EVAL", "return {set={a=true}}", 0],
    ["EVAL", "return {big_number='123456789012345678901234567890'}", 0],
    ["EVAL", "return {verbatim_string={format='txt', string='one\\r\\ntwo'}}", 0],
    ["EVAL", "redis.setresp(3) return {true, false, redis.call('get', 'no')}", 0],
    ["EVAL", "redis.setresp(3) return {{{double=1}, {map={}}}, {set={}}, 'end'}", 0],
    ["COMMAND", "INFO", "get"],
    ["ACL", "GETUSER", "default"],
    ["DEBUG", "PROTOCOL", "attrib"],
    ["DEBUG", "PROTOCOL", "null"],
    ["DEBUG", "PROTOCOL", "true"],
    ["DEBUG", "PROTOCOL", "bignum"],
    ["DEBUG", "PROTOCOL", "verbatim"],
    ["MULTI"], ["SET", "k", "v"], ["PING"], ["LPUSH", "k", "x"], ["GET", "no"],
    ["EXEC"],
]


@pytest.mark.parametrize("protocol", [2, 3])
def test_any_type_is_an_element(gate, redis, protocol):
    """FAULTS A7, A8: statuses, errors, nils, maps, sets and the rest as elements
    at any depth, and attributes before a reply, arrive as Redis sent them."""
    data = b"".join(
        resp.encode(*words) + resp.encode("ECHO", "after %d" % i)
        for i, words in enumerate(REPLIES) if words[0] != "MULTI"
    )

    def arrived(client):
        with client:
            client.call("HELLO", protocol)
            client.send(data + resp.encode("QUIT"))
            replies, rest = client.read_all()
            return b"".join(replies) + rest

    want = arrived(redis.client())
    assert arrived(gate.client()) == want
    assert want.count(b"after ") > 15
    if protocol == 3:
        assert all(mark in want for mark in (b"|1", b"%1", b"~1", b",3.25"))


FORGED = {
    "deep": b"*1\r\n" * 2000 + b":1\r\n",
    "deep maps": b"%1\r\n+k\r\n" * 2000 + b":1\r\n",
    "deep attributes": b"|1\r\n" * 2000 + b":1\r\n",
    "count": b"*2147483647\r\n" + b":1\r\n" * 10,
    "pairs": b"%4611686018427387904\r\n+k\r\n+v\r\n",
    "count that overflows": b"*9223372036854775808\r\n",
    "bulk": b"$9223372036854775807\r\nabc",
    "bulk that overflows": b"$18446744073709551616\r\n",
    "negative": b"*-2\r\n",
    "a line without end": b":" + b"1" * 100000,
    "text without end": b"+" + b"x" * 100000,
    "not RESP": b"HTTP/1.1 400 Bad Request\r\n\r\n",
}


@pytest.mark.parametrize("words", [["ECHO", "forge me"],
                                   ["MGET", "user:none", "user:1", "forge me"],
                                   ["EXISTS", "user:none", "forge me"]],
                         ids=lambda words: words[0])
def test_what_an_upstream_promises_is_not_allocated(
    redis, bloomgate, make_filter, ids_file, folder, words
):
    """FAULTS A13: replies of absurd depth, count and length, to a relayed command
    and to one that is merged, cost their own bytes and end that session alone."""
    relay = Relay(os.path.join(folder, "relay.sock"), redis.address)
    gate = bloomgate(
        redis, upstream={"address": relay.address},
        store={"address": redis.address}, filters=[make_filter(ids_file(["1"]))],
    ).warm()
    before = gate.child.rss_bytes()
    clients = []
    try:
        with gate.client() as other:
            for name, reply in FORGED.items():
                relay.forged = {b"forge me": reply}
                client = gate.client()
                clients.append(client)
                client.send(resp.encode("ECHO", name))
                assert client.read() == resp.bulk(name)
                client.send(resp.encode(*words) + resp.encode("PING"))
                try:
                    # It is refused, or waits for what was promised.
                    client.sock.settimeout(0.1)
                    data = client.sock.recv(100)
                    assert not data.startswith(resp.PONG), name
                except (TimeoutError, ConnectionResetError):
                    pass
                assert other.call("PING") == resp.PONG, name
                assert other.call("GET", "user:none") in (NULL, resp.NIL2), name
        gate.memory_below(before, 16)
    finally:
        for client in clients:
            client.close()
        relay.stop()
    assert gate.events("upstream_not_resp")


@pytest.fixture
def closed_gate(redis_server, bloomgate, folder):
    """Redis lets nobody in without a password, and the worker knows it."""
    redis = redis_server(requirepass="secret")
    secret = os.path.join(folder, "secret")
    with open(secret, "w") as out:
        out.write("secret\n")
    gate = bloomgate(redis, upstream={"password-file": secret})

    def limited():
        with gate.client(seconds=1) as client:
            client.send(b"*11\r\n" + b"$4\r\nPING\r\n" * 11)
            return b"unauthenticated" in client.read()

    wait.until(limited, 10, "the limits of strangers")
    return redis, gate


def test_a_stranger_who_does_not_read_is_closed(closed_gate):
    """FAULTS A15: what an unauthenticated client leaves unread is bounded by
    kilobytes, not by client-output-bytes."""
    redis, gate = closed_gate
    before = gate.child.rss_bytes()
    clients = [gate.client() for _ in range(20)]
    asked = resp.encode("GET", "k") * 1000
    for client in clients:
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            for _ in range(2000):
                client.send(asked)
    gate.memory_below(before, 8)
    events = gate.events("stranger_too_slow")
    assert events
    for event in events:
        # The bound, and what one read from Redis may bring on top of it.
        assert 16384 <= int(event["unsent"]) < 16384 + 2 * 65536, event
    for client in clients:
        client.close()


def test_who_reads_or_is_known_is_not_closed(closed_gate):
    """FAULTS A15: the bound is for strangers, and for those who do not read."""
    redis, gate = closed_gate
    with gate.client() as stranger:
        for _ in range(50):
            stranger.send(resp.encode("GET", "k") * 200)
            replies = stranger.read_n(200)
            assert set(replies) == {b"-NOAUTH Authentication required.\r\n"}
    redis.call("AUTH", "secret")
    assert redis.value("SET", "big", "x" * 100000) == "OK"
    with gate.client(receive_buffer=4096) as known:
        known.send(resp.encode("GET", "k") + resp.encode("AUTH", "secret")
                   + resp.encode("GET", "big") * 30)
        wait.until(
            lambda: gate.metric("buffer_bytes", direction="out") > 500000,
            10, "its replies wait",
        )
        replies = known.read_n(32)
        assert replies[0].startswith(b"-NOAUTH") and replies[1] == resp.OK
        assert set(replies[2:]) == {resp.bulk("x" * 100000)}
    assert not gate.events("stranger_too_slow")
