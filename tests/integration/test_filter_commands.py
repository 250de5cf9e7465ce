# SPDX-License-Identifier: BSD-2-Clause
"""
BF.ADD, BF.MADD, BF.EXISTS, BF.MEXISTS of configured names on the client port
(WIRE: RedisBloom). Law 2: an add is acknowledged when Redis has it.
FAULTS: B12, H4, H7.
"""

import pytest
from bg import resp, wait

BOTH = [(2, b":1\r\n", b":0\r\n"), (3, b"#t\r\n", b"#f\r\n")]


@pytest.fixture
def gate(redis, bloomgate, make_filter, ids_file):
    return bloomgate(redis, filters=[make_filter(ids_file(["1", "2"]))])


@pytest.mark.parametrize("protocol,yes,no", BOTH)
def test_replies(gate, protocol, yes, no):
    """FAULTS B12: the forms of either protocol."""
    with gate.client() as client:
        client.call("HELLO", protocol)
        assert client.call("BF.EXISTS", "user", "1") == yes
        assert client.call("BF.EXISTS", "user", "x") == no
        assert client.call("BF.ADD", "user", "x") == yes
        assert client.call("BF.ADD", "user", "x") == no
        assert client.call("BF.EXISTS", "user", "x") == yes
        assert client.call("bf.madd", "user", "1", "y", "z", "y") == resp.array(
            no, yes, yes, no
        )
        assert client.call("Bf.MExists", "user", "y", "no", "1") == resp.array(
            yes, no, yes
        )
        # A key of the element and the element are two things.
        assert client.call("BF.EXISTS", "user", "user:1") == no


def test_arity(gate):
    """FAULTS A12: our own commands too may come without their arguments."""
    with gate.client() as client:
        for words in (["BF.ADD", "user"], ["BF.ADD", "user", "a", "b"],
                      ["BF.MADD", "user"], ["BF.EXISTS", "user"],
                      ["BF.EXISTS", "user", "a", "b"], ["BF.MEXISTS", "user"]):
            assert client.value(*words).startswith(
                "ERR wrong number of arguments for '"
            ), words
            assert client.value(*words).lower().endswith(
                "'%s' command" % words[0].lower()
            ), words
        assert client.call("PING") == resp.PONG


def test_odd_items(gate, rng):
    items = [b"\x00", b"\r\n", b"a" * 4096, b"\xff\xfe", "ключ".encode(), b"*3\r\n"]
    items += [resp.values(rng, rng.randrange(1, 300)) for _ in range(50)]
    items = list(dict.fromkeys(items))
    with gate.client() as client:
        known = client.value("BF.MADD", "user", *items)
        assert known == [1] * len(items)
        assert client.value("BF.MEXISTS", "user", *items) == [1] * len(items)
        assert client.value("BF.MADD", "user", *items) == [0] * len(items)
    # Longer than 4096 bytes: never absent, and cannot be added.
    with gate.client() as client:
        assert client.value("BF.EXISTS", "user", b"b" * 4097) == 1
        assert client.call("PING") == resp.PONG


def test_many_items(gate):
    items = ["m%d" % i for i in range(3000)]
    with gate.client(seconds=60) as client:
        assert client.value("BF.MADD", "user", *items) == [1] * len(items)
        assert client.value("BF.MEXISTS", "user", *items) == [1] * len(items)
        # (As many checks at once may take more than their 100 ms: maybe.)
        for at in range(0, 3000, 50):
            assert client.value(
                "BF.MEXISTS", "user", *["n%d" % i for i in range(at, at + 50)]
            ) == [0] * 50


def test_other_names_go_upstream(gate, redis):
    with gate.client() as client:
        want = redis.call("BF.ADD", "nobody", "x")
        assert want.startswith(b"-ERR unknown command 'BF.ADD'")
        assert client.call("BF.ADD", "nobody", "x") == want
        assert client.call("BF.EXISTS", "User", "1") == redis.call(
            "BF.EXISTS", "User", "1"
        )


def test_inside_multi(gate, redis):
    """Never forwarded: a module would make a filter of that name."""
    error = b"-ERR bloomgate: BF commands cannot be used inside MULTI\r\n"
    abort = b"-EXECABORT Transaction discarded because of previous errors.\r\n"
    with gate.client() as client:
        client.send(
            resp.encode("MULTI") + resp.encode("SET", "k", "v")
            + resp.encode("BF.ADD", "user", "inside")
            + resp.encode("GET", "k") + resp.encode("EXEC")
            + resp.encode("GET", "k") + resp.encode("EXEC")
        )
        assert client.read_n(7) == [
            resp.OK, b"+QUEUED\r\n", error, b"+QUEUED\r\n", abort, resp.NIL2,
            b"-ERR EXEC without MULTI\r\n",
        ]
        for words in (["BF.EXISTS", "user", "1"], ["BF.MADD", "user", "a"]):
            assert client.call("MULTI") == resp.OK
            assert client.call(*words) == error
            assert client.call("DISCARD") == resp.OK
        assert client.call("MULTI") == resp.OK
        assert client.call("SET", "k", "w") == b"+QUEUED\r\n"
        assert client.call("EXEC") == resp.array(resp.OK)
    assert redis.value("EXISTS", "user") == 0
    assert gate.value("BF.EXISTS", "user", "inside") == 0


def test_write_refused_inside_multi(gate, redis):
    """As in Redis: a command that is refused when it is queued makes EXEC fail,
    also where MULTI has no reply yet."""
    abort = b"-EXECABORT Transaction discarded because of previous errors.\r\n"

    def memory(limit):
        assert redis.call("CONFIG", "SET", "maxmemory", limit) == resp.OK

    def refused(reply):
        return reply.startswith(b"-ERR bloomgate: not executed")

    redis.call("CONFIG", "SET", "maxmemory-policy", "noeviction")
    with gate.client() as client:
        for _ in range(20):
            memory("1")
            client.send(b"".join(
                resp.encode(*one)
                for one in (["MULTI"], ["SET", "user:refused", "v"], ["EXEC"])
            ))
            replies = client.read_n(3)
            assert replies[0] == resp.OK and refused(replies[1])
            assert replies[2] == abort
            memory("0")
            assert client.call("MULTI") == resp.OK
            assert client.call("SET", "user:queued", "v") == b"+QUEUED\r\n"
            memory("1")
            assert refused(client.call("SET", "user:refused", "v"))
            memory("0")
            assert client.call("EXEC") == abort
            assert client.call("GET", "user:queued") == resp.NIL2
            client.send(
                resp.encode("MULTI") + resp.encode("SET", "user:taken", "w")
                + resp.encode("EXEC")
            )
            assert client.read_n(3) == [resp.OK, b"+QUEUED\r\n", resp.array(resp.OK)]


def test_in_forward_only_sessions(gate):
    with gate.client() as client:
        assert client.call("WATCH", "k") == resp.OK
        assert client.value("BF.ADD", "user", "watched") == 1
        assert client.value("BF.EXISTS", "user", "watched") == 1
        assert client.value("BF.EXISTS", "user", "nobody") == 0
    # ... and they make none.
    with gate.client() as client:
        assert client.value("BF.EXISTS", "user", "nobody") == 0
        assert client.call("GET", "user:nobody") == resp.bulk("__NULL__")


def test_on_another_database(gate):
    """A filter's name is its own whatever the database of the session."""
    with gate.client() as client:
        client.call("SELECT", 1)
        first = client.call("BF.EXISTS", "user", "1")
        assert first in (b":1\r\n",) or first.startswith(b"-ERR unknown command")
        assert client.call("PING") == resp.PONG


def test_before_the_filter_serves(redis, bloomgate, make_filter):
    """Not serving: EXISTS answers 1; adds are kept for what is building."""
    blocked = make_filter("", rebuild={
        "source": {"command": ["sleep", "1000"]}, "timeout": "1h"
    })
    gate = bloomgate(redis, filters=[blocked], serving=False)
    with gate.client() as client:
        assert client.value("BF.EXISTS", "user", "x") == 1
        assert client.value("BF.ADD", "user", "x") == 1
        assert client.value("BF.MEXISTS", "user", "x", "y") == [1, 1]
        assert client.call("GET", "user:x") == resp.NIL2
        assert client.call("SET", "user:x", "v") == resp.OK
        assert client.call("GET", "user:x") == resp.bulk("v")
    gate.ready_to_count()  # the builder's link and its command are open


def test_an_acknowledged_add_is_in_redis(gate, redis):
    """Law 2: kill bloomgate the moment the reply is there; the bits stay."""
    with gate.client() as client:
        assert client.value("BF.MADD", "user", *["k%d" % i for i in range(500)])
        assert client.call("SET", "user:last", "v") == resp.OK
    gate.kill()
    gate.start()
    gate.wait_state("serving")
    with gate.client() as client:
        assert client.value(
            "BF.MEXISTS", "user", *["k%d" % i for i in range(500)]
        ) == [1] * 500
        assert client.call("GET", "user:last") == resp.bulk("v")
        assert client.call("GET", "user:none") == resp.bulk("__NULL__")


def test_two_bloomgates_share_one_filter(redis, bloomgate, make_filter, ids_file):
    path = ids_file(["1"])
    # At once: a mirror may be max-staleness behind.
    one = bloomgate(redis, filters=[make_filter(path, check="remote")])
    two = bloomgate(redis, filters=[make_filter(path, check="remote")])
    assert redis.value("HGET", "bloom:{user}:meta", "active")
    with one.client() as a, two.client() as b:
        for i in range(200):
            assert a.value("BF.ADD", "user", "a%d" % i) == 1
            assert b.value("BF.EXISTS", "user", "a%d" % i) == 1
            assert b.call("SET", "user:b%d" % i, i) == resp.OK
            assert a.call("GET", "user:b%d" % i) == resp.bulk(b"%d" % i)


def test_a_failing_add_stops_its_write(redis, bloomgate, make_filter, ids_file,
                                       redis_server):
    """The store is gone: the write is not executed and the error says why."""
    store = redis_server()
    gate = bloomgate(redis, store={"address": store.address},
                     filters=[make_filter(ids_file(["1"]))])
    store.kill()
    with gate.client(seconds=30) as client:
        answer = client.value("SET", "user:lost", "v")
        assert isinstance(answer, resp.Error) and "bloomgate" in answer, answer
        assert redis.value("EXISTS", "user:lost") == 0
        assert client.call("SET", "plain", "v") == resp.OK
        assert client.call("GET", "user:none") == resp.NIL2
    store.start()
    gate.wait_state("serving", seconds=40)
    with gate.client() as client:
        assert wait.until(
            lambda: client.call("SET", "user:lost", "v") == resp.OK, 10, "adds again"
        )
        assert client.call("GET", "user:lost") == resp.bulk("v")


def test_adds_fail_at_once_where_the_store_stays_away(
        redis, bloomgate, make_filter, ids_file, redis_server):
    """5 s are over once, not for each write of a pipeline."""
    store = redis_server()
    gate = bloomgate(redis, store={"address": store.address},
                     filters=[make_filter(ids_file(["1"]))])
    store.kill()
    with gate.client(seconds=30) as client:
        pipeline = b"".join(
            resp.encode("SET", "user:%d" % i, "v") + resp.encode("PING")
            for i in range(100)
        )
        client.send(pipeline)
        replies = client.read_n(200)
        assert set(replies[1::2]) == {b"+PONG\r\n"}
        assert set(replies[::2]) == {
            b"-ERR bloomgate: not executed: the filter's store is not reachable\r\n"}
        assert redis.value("EXISTS", *["user:%d" % i for i in range(100)]) == 0
        assert client.call("BF.ADD", "user", "5").startswith(
            b"-ERR bloomgate: the filter's store is not reachable")
        store.start()
        wait.until(lambda: client.call("SET", "user:5", "v") == resp.OK, 10, "adds again")


def test_add_under_a_meta_that_cannot_be_read(redis, bloomgate, make_filter, ids_file):
    """It fails when its time is over, and nobody is asked without end."""
    gate = bloomgate(redis, filters=[make_filter(ids_file(["1"]))])
    redis.call("HSET", "bloom:{user}:meta", "epoch", "damaged")
    with gate.client(seconds=30) as client:
        before = redis.calls("evalsha")
        reply = client.call("BF.ADD", "user", "new")
        assert reply.startswith(b"-ERR bloomgate: the filter's store did not take")
        assert redis.calls("evalsha") - before < 1000


def test_write_of_an_id_that_the_scheme_cannot_hold(
        redis, bloomgate, make_filter, ids_file):
    """It is never absent, so there is nothing to learn, and the write passes."""
    gate = bloomgate(redis, filters=[
        make_filter(ids_file(["1"]), scheme="guava-hashcode")])
    with gate.client() as client:
        for key in (b"user:\xff\xfe", b"user:good"):
            assert client.call("SET", key, "v") == b"+OK\r\n"
            assert client.call("GET", key) == resp.bulk("v")
        assert client.call("GET", b"user:\xff\xff") == b"$-1\r\n"
        assert client.call("BF.ADD", "user", b"\xff\xfe").startswith(b"-ERR")
