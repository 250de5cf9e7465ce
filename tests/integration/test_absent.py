# SPDX-License-Identifier: BSD-2-Clause
"""
Law 3 and the absent replies: nil, the null-object or an error, in GET, MGET and
EXISTS, in RESP2 and RESP3; key patterns; null-values. FAULTS: A4, G8.
"""

import pytest
from bg import resp

NULL = resp.bulk("__NULL__")


@pytest.fixture
def gate_with(redis, bloomgate, make_filter, ids_file):
    def start(**over):
        return bloomgate(
            redis, filters=[make_filter(ids_file(["1", "2"]), **over)]
        ).warm()

    return start


def absents(gate):
    return gate.metric("filter_lookups_total", result="absent")


def test_value(gate_with, redis):
    gate = gate_with()
    redis.value("SET", "user:1", "one")
    redis.value("LPUSH", "list", "x")
    with gate.client() as client:
        assert client.call("GET", "user:none") == NULL
        assert client.call("GET", "user:1") == resp.bulk("one")
        assert client.call("GET", "user:2") == resp.NIL2  # maybe, and not there
        assert client.call("EXISTS", "user:none") == b":0\r\n"
        assert client.call(
            "MGET", "user:a", "user:1", "list", "other", "user:b", "user:2", "user:1"
        ) == resp.array(
            NULL, resp.bulk("one"), resp.NIL2, resp.NIL2, NULL, resp.NIL2,
            resp.bulk("one"),
        )
        assert client.call("MGET", "user:a", "user:b") == resp.array(NULL, NULL)
        assert client.call(
            "EXISTS", "user:1", "user:a", "user:1", "list", "user:2", "user:b"
        ) == b":3\r\n"
        assert client.call("EXISTS", "user:a", "user:b") == b":0\r\n"
        assert client.value("GET", "list").startswith("WRONGTYPE")
    # Reads that are not decided here stay Redis's.
    with gate.client() as client:
        assert client.call("STRLEN", "user:none") == b":0\r\n"
        assert client.call("TYPE", "user:none") == b"+none\r\n"
        assert client.call("HGETALL", "user:none") == b"*0\r\n"


def test_local_answers_do_not_reach_redis(gate_with, redis):
    gate = gate_with()
    before = [redis.calls(name) for name in ("get", "mget", "exists")]
    with gate.client() as client:
        for i in range(100):
            assert client.call("GET", "user:x%d" % i) == NULL
            assert client.call("MGET", "user:x%d" % i, "user:y") == resp.array(
                NULL, NULL
            )
            assert client.call("EXISTS", "user:x%d" % i) == b":0\r\n"
    assert [redis.calls(name) for name in ("get", "mget", "exists")] == before


def test_a_split_asks_redis_only_for_the_rest(gate_with, redis):
    gate = gate_with()
    redis.value("SET", "user:1", "one")
    with gate.client() as client:
        redis.value("CONFIG", "SET", "slowlog-log-slower-than", "0")
        redis.value("SLOWLOG", "RESET")
        want = resp.array(NULL, resp.bulk("one"), NULL)
        assert client.call("MGET", "user:a", "user:1", "user:b") == want
        seen = [
            entry[3] for entry in redis.value("SLOWLOG", "GET", "50")
            if entry[3][0].upper() in (b"MGET", b"GET")
        ]
    assert len(seen) == 1 and b"user:1" in seen[0]
    assert b"user:a" not in seen[0] and b"user:b" not in seen[0]


def test_nil(gate_with, redis):
    gate = gate_with(**{"absent-reply": "nil"})
    redis.value("SET", "user:1", "one")
    for protocol, nil in ((2, resp.NIL2), (3, resp.NIL3)):
        with gate.client() as client:
            client.call("HELLO", protocol)
            assert client.call("GET", "user:none") == nil
            assert client.call("MGET", "user:none", "user:1", "k") == resp.array(
                nil, resp.bulk("one"), nil
            )
            assert client.call("MGET", "user:none") == resp.array(nil)
            assert client.call("EXISTS", "user:none", "user:1") == b":1\r\n"
    assert absents(gate) >= 8


def test_error(gate_with, redis):
    """An MGET or EXISTS with any absent key answers the error as a whole."""
    gate = gate_with(**{"absent-reply": {"error": "NOTFOUND no such user"}})
    redis.value("SET", "user:1", "one")
    error = b"-NOTFOUND no such user\r\n"
    with gate.client() as client:
        assert client.call("GET", "user:none") == error
        assert client.call("EXISTS", "user:none") == error
        assert client.call("MGET", "user:1", "user:none", "k") == error
        assert client.call("EXISTS", "user:1", "user:none") == error
        assert client.call("MGET", "user:1", "k") == resp.array(
            resp.bulk("one"), resp.NIL2
        )
        assert client.call("GET", "user:1") == resp.bulk("one")
        client.send(
            resp.encode("MGET", "user:1", "user:none") + resp.encode("ECHO", "e")
            + resp.encode("GET", "user:none") + resp.encode("GET", "user:1")
        )
        assert client.read_n(4) == [error, resp.bulk("e"), error, resp.bulk("one")]


def test_binary_values(gate_with):
    for value in ("", "a\tb", "x" * 5000, "{\"none\": true}"):
        gate = gate_with(**{"absent-reply": {"value": value}})
        assert gate.call("GET", "user:none") == resp.bulk(value)
        gate.stop()


def test_null_values(gate_with, redis):
    """Applications that cache "known not to exist" write the null-object: that
    write does not make the id exist."""
    gate = gate_with(**{"null-values": ["__NULL__", "nothing"]})
    with gate.client() as client:
        assert client.call("SET", "user:n1", "__NULL__") == resp.OK
        assert client.call("SET", "user:n2", "nothing") == resp.OK
        assert client.call("SETEX", "user:n3", 1000, "nothing") in (resp.OK,)
        assert client.call("SET", "user:real", "nothing ") == resp.OK
        assert client.call("GET", "user:n1") == NULL
        assert client.call("GET", "user:n2") == NULL
        assert client.call("GET", "user:real") == resp.bulk("nothing ")
        assert client.call("BF.EXISTS", "user", "n1") == b":0\r\n"
        assert client.call("BF.EXISTS", "user", "n2") == b":0\r\n"
        assert client.call("BF.EXISTS", "user", "real") == b":1\r\n"
    # Written for an id that exists, it reads back as V all the same.
    with gate.client() as client:
        assert client.call("SET", "user:1", "nothing") == resp.OK
        assert client.call("GET", "user:1") in (NULL, resp.bulk("nothing"))


def test_writes_add_before_they_are_seen(gate_with):
    gate = gate_with()
    with gate.client() as one, gate.client() as two:
        for i in range(200):
            assert one.call("SET", "user:w%d" % i, i) == resp.OK
            assert two.call("GET", "user:w%d" % i) == resp.bulk(b"%d" % i)


def test_deleting_a_key_clears_no_bits(gate_with):
    """FAULTS G8."""
    gate = gate_with()
    with gate.client() as client:
        client.call("SET", "user:gone", "x")
        client.call("DEL", "user:gone")
        assert client.call("GET", "user:gone") == resp.NIL2
        assert client.call("SET", "user:gone", "y") == resp.OK
        assert client.call("GET", "user:gone") == resp.bulk("y")


PATTERNS = [
    (["user:{id}"], ["user:x"], ["user:x:orders", "userx", "user:", "User:x"]),
    (["user:{id*}"], ["user:x", "user:x:orders", "user:::"], ["user:", "use:x"]),
    (["{id*}"], ["x", "anything:at:all"], [""]),
    (["{id}:profile"], ["x:profile"], ["x:profil", ":profile", "x:profile:y"]),
    (["a{id}b"], ["axb", "aaab", "abb"], ["ab", "axbc", "xaxb"]),
    (["p:{id}:x", "q:{id}"], ["p:5:x", "q:6"], ["p:5:y", "q:5:6", "p::x"]),
    (["{{lit}}:{id}"], ["{lit}:7"], ["lit:7", "{{lit}}:7"]),
    (["shop.{id}"], ["shop.5"], ["shop.5.6", "shop."]),
]


@pytest.mark.parametrize("keys,covered,outside", PATTERNS)
def test_patterns(gate_with, keys, covered, outside):
    """FAULTS A4: the empty key is a key, and no pattern's."""
    gate = gate_with(keys=keys)
    with gate.client() as client:
        for key in covered:
            assert client.call("GET", key) == NULL, key
        for key in outside:
            assert client.call("GET", key) == resp.NIL2, key
        want = [NULL] * len(covered) + [resp.NIL2] * len(outside)
        assert client.call("MGET", *covered, *outside) == resp.array(*want)


def test_two_filters_and_an_element_template(
    redis, bloomgate, make_filter, ids_file
):
    gate = bloomgate(redis, filters=[
        make_filter(ids_file(["1"]), name="user", keys=["user:{id}", "u:{id}:p"],
                    element="{filter}:{id}"),
        make_filter(ids_file(["7"]), name="shop", keys=["shop:{id}"],
                    **{"absent-reply": "nil"}),
    ])
    with gate.client() as client:
        assert client.call(
            "MGET", "user:1", "user:2", "u:1:p", "u:2:p", "shop:7", "shop:8", "x:1"
        ) == resp.array(
            resp.NIL2, NULL, resp.NIL2, NULL, resp.NIL2, resp.NIL2, resp.NIL2
        )
        assert client.call("BF.EXISTS", "user", "1") == b":1\r\n"
        assert client.call("BF.EXISTS", "shop", "1") == b":0\r\n"
        assert client.call("BF.ADD", "shop", "1") == b":1\r\n"
        assert client.call("BF.EXISTS", "user", "7") == b":0\r\n"
    assert gate.metric("filter_lookups_total", filter="shop", result="absent") == 1


def test_elements_longer_than_4096_bytes_are_maybe(gate_with):
    gate = gate_with()
    with gate.client() as client:
        assert client.call("GET", "user:" + "x" * 4096) == NULL
        assert client.call("GET", "user:" + "x" * 4097) == resp.NIL2
        assert client.call("SET", "user:" + "x" * 4097, "v") == resp.OK
        assert client.call("GET", "user:" + "x" * 4097) == resp.bulk("v")


def test_observe_and_off_forward_everything(redis, bloomgate, make_filter, ids_file):
    gate = bloomgate(redis, serving=False, filters=[
        make_filter(ids_file(["1"]), name="seen", keys=["seen:{id}"], mode="observe"),
        make_filter(ids_file(["1"]), name="none", keys=["none:{id}"], mode="off"),
    ])
    gate.wait_state("observe", "seen")
    gate.wait_state("off", "none")
    with gate.client() as client:
        for name in ("seen", "none"):
            assert client.call("GET", name + ":x") == resp.NIL2
            assert client.call("MGET", name + ":x", name + ":1") == resp.array(
                resp.NIL2, resp.NIL2
            )
            assert client.call("BF.EXISTS", name, "x") == b":1\r\n"
            assert client.call("BF.ADD", name, "y") in (b":0\r\n", b":1\r\n")
            assert client.call("SET", name + ":z", "v") == resp.OK
            assert client.call("GET", name + ":z") == resp.bulk("v")
    # What observe would have said is counted; off decides nothing.
    assert gate.metric("filter_lookups_total", filter="none", result="absent") == 0
