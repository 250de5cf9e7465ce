# SPDX-License-Identifier: BSD-2-Clause
"""
Law 5: a read is answered locally only where Redis would have executed it at
once. Absent ids answer __NULL__ where bloomgate may speak; in every other state
Redis's own nil must come. State by state: test_states.py. FAULTS: B3-B9, C1-C3.
"""

import pytest
from bg import resp, wait

NULL = resp.bulk("__NULL__")
GET = resp.encode("GET", "user:none")


@pytest.fixture
def gate(redis, bloomgate, make_filter, ids_file):
    return bloomgate(redis, filters=[make_filter(ids_file(["1"]))])


# Ordinary commands, after which absent ids are still answered here. What changes
# the state of a session: bg/states.py.
STAYS = [
    ["COMMAND COUNT"],
    ["INFO"],
    ["CONFIG GET maxmemory"],
    ["EVAL return\u00a01 0"],
    ["SET k v", "LPUSH l a", "LRANGE l 0 -1"],
    ["GET", "SET k"],
    ["PING", "ECHO hi", "DBSIZE"],
    ["PUBLISH ch x"],
    ["EXISTS user:1", "MGET user:1 k"],
    ["BF.EXISTS user 1", "BF.ADD user 1"],
    ["TIME"],
]


def run(client, lines):
    for line in lines:
        client.call(*[word.replace("\u00a0", " ") for word in line.split(" ")])


def test_ordinary_commands_leave_local_answers_on(gate):
    for lines in STAYS:
        with gate.client() as client:
            run(client, lines)
            assert client.call("GET", "user:none") == NULL, lines
            assert client.call("EXISTS", "user:none") == b":0\r\n", lines


def test_multi_is_redis_to_the_byte(gate):
    """FAULTS C3."""
    with gate.client() as client:
        client.send(
            resp.encode("MULTI") + GET + resp.encode("EXISTS", "user:none")
            + resp.encode("MGET", "user:none") + resp.encode("EXEC")
        )
        assert client.read_n(5) == [resp.OK] + [b"+QUEUED\r\n"] * 3 + [
            resp.array(resp.NIL2, b":0\r\n", resp.array(resp.NIL2))
        ]


def test_subscribed(gate):
    with gate.client() as client:
        client.call("SUBSCRIBE", "ch")
        assert client.call("GET", "user:none").startswith(
            b"-ERR Can't execute 'get': only (P|S)SUBSCRIBE"
        )
        assert client.call("PING") == resp.array(resp.bulk("pong"), resp.bulk(""))
        client.send(resp.encode("UNSUBSCRIBE", "ch"))
        assert b"unsubscribe" in client.read()
        assert client.call("GET", "user:none") == NULL


def test_unsubscribe_answers_once_per_subscription(gate):
    with gate.client() as client:
        client.send(
            resp.encode("SUBSCRIBE", "a", "b", "c") + resp.encode("UNSUBSCRIBE")
            + resp.encode("PSUBSCRIBE", "p*") + resp.encode("UNSUBSCRIBE")
            + resp.encode("PUNSUBSCRIBE") + resp.encode("PUNSUBSCRIBE")
            + resp.encode("ECHO", "end")
        )
        replies = client.read_n(3 + 3 + 1 + 1 + 1 + 1 + 1)
        assert replies[-1] == resp.bulk("end")
        assert sum(b"unsubscribe" in reply for reply in replies) == 6


def test_resp3_forms(redis, bloomgate, make_filter, ids_file):
    """FAULTS B4: synthetic replies speak the session's own protocol."""
    gate = bloomgate(redis, filters=[
        make_filter(ids_file(["1"]), **{"absent-reply": "nil"})
    ])
    redis.value("SET", "user:1", "one")
    with gate.client() as three, gate.client() as two:
        assert three.call("HELLO", 3).startswith(b"%")
        for _ in range(3):
            assert three.call("GET", "user:none") == resp.NIL3
            assert two.call("GET", "user:none") == resp.NIL2
            assert three.call("MGET", "user:a", "user:1", "user:b") == resp.array(
                resp.NIL3, resp.bulk("one"), resp.NIL3
            )
            assert two.call("MGET", "user:a", "user:b") == resp.array(
                resp.NIL2, resp.NIL2
            )
            assert three.call("BF.EXISTS", "user", "none") == b"#f\r\n"
            assert two.call("BF.EXISTS", "user", "none") == b":0\r\n"
        assert three.call("HELLO", 2).startswith(b"*")
        assert three.call("GET", "user:none") == resp.NIL2
    # In one write the protocol is not known yet: Redis answers.
    with gate.client() as client:
        client.send(resp.encode("HELLO", 3) + GET + resp.encode("GET", "user:1"))
        assert client.read_n(3)[1:] == [resp.NIL3, resp.bulk("one")]
    assert gate.metric("filter_lookups_total", result="absent") > 0


def test_select_decides_what_is_covered(gate, redis):
    """FAULTS C1, C2."""
    with gate.client() as client:
        assert client.call("SELECT", 1) == resp.OK
        assert client.call("GET", "user:none") == resp.NIL2
        assert client.value("SELECT", 99) == "ERR DB index is out of range"
        assert client.call("GET", "user:none") == resp.NIL2
        assert client.call("SELECT", 0) == resp.OK
        assert client.call("GET", "user:none") == NULL
        assert client.value("SELECT", 99) == "ERR DB index is out of range"
        assert client.call("GET", "user:none") == NULL
        client.send(resp.encode("SELECT", 1) + GET + resp.encode("SELECT", 0) + GET)
        replies = client.read_n(4)
        assert replies[1] == resp.NIL2 and replies[3] in (resp.NIL2, NULL)


def test_a_write_on_another_database_adds_nothing(gate):
    with gate.client() as client:
        client.call("SELECT", 1)
        assert client.call("SET", "user:other-db", "x") == resp.OK
    assert gate.call("GET", "user:other-db") == NULL


def test_reply_off_and_skip(gate):
    """FAULTS B9: opaque; only what Redis itself would say arrives."""
    with gate.client() as client:
        client.send(
            GET + resp.encode("CLIENT", "REPLY", "SKIP") + GET
            + resp.encode("ECHO", "b")
        )
        assert client.read_n(2) == [NULL, resp.bulk("b")]
        assert client.call("GET", "user:none") == resp.NIL2
        client.quiet()
    with gate.client() as client:
        client.send(
            GET + resp.encode("CLIENT", "REPLY", "OFF") + GET * 3
            + resp.encode("SET", "user:opaque", "v")
            + resp.encode("CLIENT", "REPLY", "ON") + GET
            + resp.encode("GET", "user:opaque")
        )
        assert client.read_n(4) == [NULL, resp.OK, resp.NIL2, resp.bulk("v")]
        client.quiet()
    # An opaque session's write was learned.
    assert gate.call("GET", "user:opaque") == resp.bulk("v")


def test_multi_with_reply_skip(gate):
    """Measured: *2 with one element in it; no framing can hold."""
    with gate.client() as client:
        client.send(
            resp.encode("MULTI") + resp.encode("CLIENT", "REPLY", "SKIP") + GET
            + resp.encode("EXEC") + resp.encode("ECHO", "swallowed")
        )
        want = b"+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n" + resp.NIL2
        got = bytearray()
        while len(got) < len(want):
            data = client.sock.recv(4096)
            assert data, bytes(got)
            got += data
        assert bytes(got) == want
        assert client.call("ECHO", "next") == resp.bulk("next")


def test_monitor(gate, redis):
    with gate.client() as client, gate.client() as other:
        client.send(GET + resp.encode("MONITOR"))
        assert client.read_n(2) == [NULL, resp.OK]
        assert other.call("SET", "user:seen", "v") == resp.OK
        while b'"SET" "user:seen" "v"' not in client.read():
            pass


def test_bf_closes_an_opaque_session(gate):
    with gate.client() as client:
        client.send(resp.encode("CLIENT", "REPLY", "SKIP") + resp.encode("PING"))
        assert client.call("ECHO", "x") == resp.bulk("x")
        client.send(resp.encode("BF.EXISTS", "user", "1"))
        replies, _ = client.read_all()
        assert replies == [] or replies[0].startswith(b"-")


def test_writes_in_a_transaction_are_learned(gate):
    with gate.client() as client:
        client.send(
            resp.encode("MULTI") + resp.encode("SET", "user:tx", "1")
            + resp.encode("EXEC")
        )
        assert client.read_n(3)[2] == resp.array(resp.OK)
    assert gate.call("GET", "user:tx") == resp.bulk("1")


def test_scripts_and_multi_key_writes_are_learned(gate):
    with gate.client() as client:
        assert client.value(
            "EVAL", "return redis.call('set', KEYS[1], 'x')", 1, "user:lua"
        ) == "OK"
        assert client.value("MSET", "user:m1", 1, "other", 2, "user:m2", 3) == "OK"
        assert client.value("HSET", "user:h", "f", "v") == 1
        assert client.value("SET", "tmp", "t") == "OK"
        assert client.value("RENAME", "tmp", "user:renamed") == "OK"
        assert client.value("COPY", "user:renamed", "user:copied") == 1
    with gate.client() as client:
        for key in ("lua", "m1", "m2", "h", "renamed", "copied"):
            assert client.value("EXISTS", "user:" + key) == 1, key
            assert client.call("GET", "user:" + key) != NULL, key


def test_unusual_forms_are_left_to_redis(gate):
    """Argument checks differ between versions: Redis judges."""
    with gate.client() as client:
        for words in (["GET"], ["GET", "user:none", "x"], ["MGET"], ["EXISTS"]):
            assert client.call(*words).startswith(
                b"-ERR wrong number of arguments for '"
            )


def test_hello_with_auth(redis_server, bloomgate, make_filter, ids_file, folder):
    """FAULTS B1: HELLO that carries AUTH passes; without, Redis's own text."""
    redis = redis_server(requirepass="secret")
    secret = folder + "/secret"
    with open(secret, "w") as out:
        out.write("secret\n")
    gate = bloomgate(
        redis, filters=[make_filter(ids_file(["1"]))],
        upstream={"password-file": secret}, serving=False,
    )
    gate.wait_state("serving")
    with gate.client() as client:
        assert client.call("GET", "user:none") == \
            b"-NOAUTH Authentication required.\r\n"
        assert client.call("HELLO", 3).startswith(b"-NOAUTH HELLO must be called")
        assert client.call("HELLO", 3, "AUTH", "default", "secret").startswith(b"%")
        wait.until(lambda: client.call("GET", "user:none") == NULL, 5, "allowed")
        assert client.call("AUTH", "bad").startswith(b"-WRONGPASS")
        assert client.call("GET", "user:none") == NULL
