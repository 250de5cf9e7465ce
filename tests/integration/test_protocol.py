# SPDX-License-Identifier: BSD-2-Clause
"""
Law 4 at the edge of the protocol: what is not a plain RESP request gets what
Redis answers, text and closing included, after the replies to what came before.
FAULTS: A1-A9, A11, A13-A17, E7. Each case goes to Redis itself too.
"""

import os

import pytest
from bg import resp, wait

PING = resp.encode("PING")
GET = resp.encode("GET", "user:none")
BIG = b"x" * 70000

# Bytes after which the connection is still good.
OPEN = {
    "empty multibulk": b"*0\r\n" + GET,
    "null multibulk": b"*-1\r\n" + GET,
    "negative multibulk": b"*-7\r\n" + GET,
    "blank line": b"\r\n" + GET,
    "many blank lines": b"\r\n\r\n\n\n" + GET,
    "bare line feed": b"PING\n",
    "spaces only": b"   \r\nPING\r\n",
    "inline": b"SET k v\r\nGET k\r\nGET user:none\r\n",
    "inline quotes": b'SET k "a b"\r\nGET k\r\nECHO \'it\\\'s\'\r\n',
    "inline escapes": b'SET k "x\\x41\\n\\t\\\\\\""\r\nGET k\r\n',
    "inline bad hex": b'ECHO "\\xZZ"\r\n',
    "inline empty word": b'SET "" ""\r\nGET ""\r\nEXISTS ""\r\n',
    "inline spaces": b"  SET   k\tv  \r\nGET k\r\n",
    "inline then multibulk": b"PING\r\n" + GET + b"GET user:x\n" + PING,
    "inline long": b"ECHO " + b"y" * 60000 + b"\r\n",
    "inline wrong arity": b"GET\r\nGET a b\r\n",
    "empty argument": resp.encode("SET", "a", "") + resp.encode("GET", "a"),
    "empty key": resp.encode("SET", "", "v") + resp.encode("GET", ""),
    "empty command": resp.encode("") + PING,
    "command alone": b"*1\r\n$3\r\nGET\r\n",
    "no CRLF after a bulk": b"*1\r\n$4\r\nPINGXX" + PING,
    "bulk holds CRLF": resp.encode("ECHO", "\r\n*1\r\n$4\r\nPING\r\n"),
    "binary": resp.encode("ECHO", bytes(range(256))),
    "many arguments": resp.encode("MGET", *["user:%d" % i for i in range(2000)]),
    "unknown": resp.encode("FOO", "a", "b", "c") + resp.encode("foo"),
    "unknown, long": resp.encode("F" * 300, "a" * 300, "b"),
    "unknown, binary": resp.encode("FOO", b"\x00\r\n\xff"),
    "long command name": resp.encode("G" * 5000),
    "nested": resp.encode("EVAL", "return {1,{2,{3,{4}}},'x'}", 0),
}
# Bytes after which Redis answers an error and closes.
CLOSED = {
    "multibulk not a number": b"*x\r\n",
    "multibulk empty": b"*\r\n",
    "multibulk too large": b"*2147483648\r\n",
    "multibulk with sign": b"*+1\r\n",
    "multibulk with space": b"* 1\r\n",
    "multibulk with leading zero": b"*01\r\n",
    "bulk with leading zero": b"*1\r\n$04\r\n",
    "not a bulk": b"*1\r\n:4\r\n",
    "not a bulk, nothing": b"*1\r\n\r\n",
    "not a bulk, binary": b"*1\r\n\x80\r\n",
    "second not a bulk": b"*2\r\n$3\r\nGET\r\n+k\r\n",
    "null bulk": b"*1\r\n$-1\r\n",
    "bulk not a number": b"*1\r\n$x\r\n",
    "bulk empty number": b"*1\r\n$\r\n",
    "bulk too large": b"*1\r\n$536870913\r\n",
    "bulk far too large": b"*1\r\n$99999999999999999999\r\n",
    "second bulk too large": b"*2\r\n$3\r\nGET\r\n$536870913\r\n",
    "unbalanced quotes": b'GET "k\r\n',
    "quote in a word": b'GET "k"x\r\n',
    "single unbalanced": b"GET 'k\r\n",
    "inline too big": BIG,
    "multibulk line too big": b"*" + b"1" * 70000,
    "bulk line too big": b"*1\r\n$" + b"1" * 70000,
}
TEXTS = {
    "multibulk not a number": b"-ERR Protocol error: invalid multibulk length\r\n",
    "not a bulk": b"-ERR Protocol error: expected '$', got ':'\r\n",
    "null bulk": b"-ERR Protocol error: invalid bulk length\r\n",
    "bulk too large": b"-ERR Protocol error: invalid bulk length\r\n",
    "unbalanced quotes": b"-ERR Protocol error: unbalanced quotes in request\r\n",
    "inline too big": b"-ERR Protocol error: too big inline request\r\n",
}


def transcript(address, data, pieces=(), closes=False):
    """The exact bytes that come back; where the connection stays open, an
    ECHO at the end shows that it does."""
    with resp.Client(address) as client:
        if not closes:
            data = data + resp.encode("ECHO", "the end")
        try:
            client.send_cut(data, pieces)
        except (BrokenPipeError, ConnectionResetError):
            assert closes
        if closes:
            replies, rest = client.read_all()
            return b"".join(replies) + rest
        got = []
        while not got or got[-1] != resp.bulk("the end"):
            got.append(client.read())
        client.quiet()
        return b"".join(got)


@pytest.fixture
def pair(redis_server, bloomgate, make_filter, ids_file):
    """The addresses of Redis and of a bloomgate whose filter knows nothing
    of user:none but forwards all the same (absent is nil there too)."""
    redis = redis_server(tcp=True)
    gate = bloomgate(
        redis, tcp=True,
        filters=[make_filter(ids_file(["1"]), **{"absent-reply": "nil"})],
    )
    return redis, gate


def test_open(pair):
    """FAULTS A1, A3, A4, A9, A10, A17: each leaves the connection as good as it
    was, with Redis's own replies."""
    redis, gate = pair
    for name, data in OPEN.items():
        want = transcript(redis.address, data)
        assert transcript(gate.tcp_address, data) == want, name
        assert transcript(gate.address, data) == want, name


def test_closed(pair):
    """FAULTS A6, A17: Redis's text, then the end."""
    redis, gate = pair
    for name, data in CLOSED.items():
        want = transcript(redis.address, data, closes=True)
        got = transcript(gate.tcp_address, data, closes=True)
        assert got == want, name
        if name in TEXTS:
            assert got == TEXTS[name], name


def test_closed_after_earlier_replies(pair):
    """Remote-checked, forwarded and local replies leave before the error."""
    redis, gate = pair
    before = (
        resp.encode("SET", "user:7", "seven") + GET + resp.encode("GET", "user:7")
        + resp.encode("MGET", "user:7", "user:no") + PING
    )
    for name, data in CLOSED.items():
        want = transcript(redis.address, before + data, closes=True)
        assert want.startswith(b"+OK\r\n$-1\r\n$5\r\nseven\r\n"), want
        got = transcript(gate.tcp_address, before + data, closes=True)
        assert got == want, name


def test_what_follows_a_protocol_error_is_not_executed(pair):
    redis, gate = pair
    data = b"*x\r\n" + resp.encode("SET", "user:late", "1")
    transcript(gate.address, data, closes=True)
    assert redis.value("EXISTS", "user:late") == 0


def test_split_at_any_byte(pair):
    """FAULTS A2, A11: two writes, or one for each byte."""
    redis, gate = pair
    data = (
        b"*0\r\n" + resp.encode("SET", "user:1", "v\r\n") + GET
        + b'GET "user:\\x31"\r\n'
        + resp.encode("MGET", "user:1", "user:none") + b"\r\nPING\r\n"
        + resp.encode("BF.EXISTS", "other", "x")
    )
    want = transcript(redis.address, data)
    for cut in range(1, len(data)):
        assert transcript(gate.address, data, [cut]) == want, cut
    every = list(range(1, len(data)))
    assert transcript(gate.tcp_address, data, every) == want
    assert transcript(gate.address, data, every) == want


def test_split_errors(pair):
    redis, gate = pair
    for name, data in CLOSED.items():
        if len(data) < 100:
            want = transcript(redis.address, PING + data, closes=True)
            got = transcript(
                gate.address, PING + data, range(1, len(PING + data)), closes=True
            )
            assert got == want, name


def test_random_bytes_end_as_with_redis(pair, rng, counts):
    """Mutated requests: same replies, same closing."""
    redis, gate = pair
    base = (
        resp.encode("SET", "user:1", "value") + GET + resp.encode("GET", "user:1")
        + b"ECHO inline\r\n" + resp.encode("EXISTS", "user:1", "user:none")
    )
    letters = b"\r\n*$:-+019 \"'x\x00\xff"
    for _ in range(counts(400, full=4000, small=100)):
        data = bytearray(base)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data))
            data[at] = rng.choice(letters)
        if 0 in data:
            continue  # NUL in an inline request: Redis never finds its end
        results = []
        for address in (redis.address, gate.tcp_address):
            redis.value("FLUSHALL")
            results.append(raw_end(address, bytes(data)))
        assert results[0] == results[1], bytes(data)


def raw_end(address, data):
    """What arrives until the peer closes or the half-closed session ends."""
    with resp.Client(address) as client:
        client.send(data)
        client.half_close()
        replies, rest = client.read_all()
        return b"".join(replies) + rest


def test_half_close_still_answers(pair):
    """FAULTS E7: printf | nc -N."""
    redis, gate = pair
    with gate.client() as client:
        client.send(PING * 3 + GET + resp.encode("MGET", "user:x", "user:1"))
        client.half_close()
        replies, rest = client.read_all()
    assert replies == [resp.PONG] * 3 + [
        resp.NIL2, resp.array(resp.NIL2, resp.NIL2)
    ]
    assert rest == b""


def test_half_close_with_a_deep_pipeline(pair):
    redis, gate = pair
    redis.value("SET", "user:1", "x" * 100)
    one = resp.encode("GET", "user:1") + GET + PING
    with gate.client(tcp=True, seconds=60) as client:
        replies = client.exchange(one * 5000, 100)
        client.half_close()
        more, rest = client.read_all()
    assert replies + more == [resp.bulk("x" * 100), resp.NIL2, resp.PONG] * 5000
    assert rest == b""


def test_half_close_in_mid_request(pair):
    redis, gate = pair
    with gate.client() as client:
        client.send(PING + resp.encode("SET", "user:half", "value")[:-4])
        client.half_close()
        assert client.read_all() == ([resp.PONG], b"")
    assert redis.value("EXISTS", "user:half") == 0


def test_quit(pair):
    """FAULTS A16: what was pipelined before QUIT is answered, then +OK, then
    the end; what came after it is dropped."""
    redis, gate = pair
    data = PING + GET + resp.encode("QUIT") + resp.encode("SET", "user:q", "1")
    with gate.client() as client:
        client.send(data)
        assert client.read_all() == ([resp.PONG, resp.NIL2, resp.OK], b"")
    assert redis.value("EXISTS", "user:q") == 0


def test_unauthenticated_limits(redis_server, bloomgate, folder):
    """FAULTS A14: Redis's own limits before AUTH hold through bloomgate."""
    redis = redis_server(tcp=True, requirepass="secret")
    secret = os.path.join(folder, "secret")
    with open(secret, "w") as out:
        out.write("secret\n")
    gate = bloomgate(redis, tcp=True, upstream={"password-file": secret}, serving=False)

    def limited():
        """True once the worker has heard that strangers must authenticate."""
        with gate.client(tcp=True) as client:
            client.send(b"*11\r\n$4\r\nPING\r\n")
            return bool(wait.ready(client.sock, 0.2))

    wait.until(limited, 10, "the limits of strangers")
    # Up to the limits it is a matter of rights.
    for words in (["DEL"] + ["k"] * 9, ["ECHO", "x" * 16384]):
        assert gate.call(*words) == b"-NOAUTH Authentication required.\r\n"
    for data in (b"*11\r\n$4\r\nPING\r\n", b"*1\r\n$16385\r\n", b"*1\r\n$17000\r\n"):
        want = transcript(redis.address, data, closes=True)
        assert b"unauthenticated" in want
        assert transcript(gate.tcp_address, data, closes=True) == want
    # Not after a successful AUTH.
    with gate.client() as client:
        assert client.call("AUTH", "secret") == resp.OK
        assert client.call("ECHO", "x" * 17000) == resp.bulk("x" * 17000)
        assert client.call("DEL", *["k%d" % i for i in range(20)]) == b":0\r\n"


def test_declared_lengths_are_not_allocated(pair):
    """FAULTS A13: a few bytes that promise gigabytes cost a few bytes."""
    redis, gate = pair
    before = gate.child.rss_bytes()
    clients = []
    for _ in range(50):
        client = gate.client()
        client.send(PING + b"*2147483647\r\n$536870912\r\nx")
        assert client.read() == resp.PONG
        clients.append(client)
    gate.memory_below(before, 16)
    for client in clients:
        client.close()


def test_deeply_nested_replies(pair):
    """FAULTS A7, A13: framed with a heap stack."""
    redis, gate = pair
    script = "local t = 1 for i = 1, %d do t = {t} end return t"
    for depth in (1, 7, 30, 100):
        want = redis.call("EVAL", script % depth, 0)
        assert gate.call("EVAL", script % depth, 0) == want, depth
