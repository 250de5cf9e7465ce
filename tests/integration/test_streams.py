# SPDX-License-Identifier: BSD-2-Clause
"""
Requests too large to be kept whole, in every state that something can go wrong
in, and outputs that fill and drain. FAULTS: D2, E2, E12.
"""

import threading
import time

import pytest
from bg import resp, wait

NULL = resp.bulk("__NULL__")
MIB = 1 << 20


def big_set(key, size):
    return resp.encode("SET", key, b"v" * size)


def kill_sessions(redis):
    """Closes all normal connections but bloomgate's own links."""
    for line in redis.value("CLIENT", "LIST").split(b"\n"):
        fields = dict(f.split(b"=", 1) for f in line.split() if b"=" in f)
        if fields.get(b"name", b"").startswith(b"victim"):
            redis.call("CLIENT", "KILL", "ID", fields[b"id"])


@pytest.fixture
def gate(redis, bloomgate, make_filter, ids_file):
    return bloomgate(redis, filters=[make_filter(ids_file(["1"]))])


def test_answers_that_pass_the_pause_all_leave(
        redis, bloomgate, make_filter, ids_file):
    """Reading and answering stop while the output is long; when the socket takes
    it all at once, nothing else wakes the session again."""
    gate = bloomgate(
        redis,
        filters=[make_filter(
            ids_file(["1"]), **{"absent-reply": {"value": "n" * 5000}})],
        limits={"client-output-bytes": "64KiB"})
    with gate.client() as client:
        wait.until(lambda: client.call("GET", "user:no") == resp.bulk("n" * 5000),
                   10, "absent is said")
        get = resp.encode("GET", "user:no")
        for last in (b"", resp.encode("MONITOR")):
            client.send(get * 1000 + last)
            replies = client.read_n(1000)
            # A check that took too long is a maybe, which Redis answers.
            absent = replies.count(resp.bulk("n" * 5000))
            assert absent + replies.count(resp.NIL2) == 1000 and absent > 500
        assert client.read() == b"+OK\r\n"


@pytest.mark.parametrize("size", [MIB + 100, 3 * MIB])
def test_refused_before_it_is_all_there(redis, gate, size):
    """Redis answers the head of a request and closes; what follows on the
    connection is not taken for requests, and later ones get their own answers."""
    redis.call("CONFIG", "SET", "proto-max-bulk-len", "1mb")
    for _ in range(10):
        with gate.client() as client:
            client.send(big_set("user:big", size))
            assert client.read().startswith(b"-ERR Protocol error: invalid bulk")
            client.send(resp.encode("ECHO", "one") + resp.encode("PING"))
            assert client.read_n(2) == [resp.bulk("one"), resp.PONG]


def test_rest_of_a_refused_request_is_no_command(redis, gate):
    redis.call("CONFIG", "SET", "proto-max-bulk-len", "1mb")
    tail = resp.encode("SET", "smuggled", "1")
    value = b"v" * (MIB + 4000 - len(tail)) + tail
    with gate.client() as client:
        client.send(resp.encode("SET", "user:big", value))
        assert client.read().startswith(b"-ERR Protocol error: invalid bulk")
        assert client.call("PING") == resp.PONG
    assert redis.value("EXISTS", "smuggled") == 0


def test_refused_while_its_adds_are_out(
        redis_server, redis, bloomgate, make_filter, ids_file):
    store = redis_server()
    gate = bloomgate(
        redis, filters=[make_filter(ids_file(["1"]))],
        store={"address": store.address})
    redis.call("CONFIG", "SET", "proto-max-bulk-len", "1mb")
    with gate.client() as client:
        redis.pause()
        store.pause()
        client.send(big_set("user:big", MIB + 100) + resp.encode("PING"))
        wait.until(lambda: gate.metric("upstream_requests_in_flight") == 1, 5, "sent")
        time.sleep(0.2)
        redis.resume()
        assert client.read().startswith(b"-ERR Protocol error: invalid bulk")
        store.resume()
        assert client.read() == resp.PONG


def test_nothing_overtakes_a_write_whose_adds_are_out(
        redis_server, redis, bloomgate, make_filter, ids_file):
    """The upstream goes while the last byte waits for the adds: what the session
    sends behind it gets its answer behind it."""
    store = redis_server()
    gate = bloomgate(
        redis, filters=[make_filter(ids_file(["1"]))],
        store={"address": store.address})
    with gate.client() as client:
        assert client.call("CLIENT", "SETNAME", "victim") == b"+OK\r\n"
        store.pause()
        client.send(big_set("user:big", 200000))
        wait.until(lambda: gate.metric("upstream_requests_in_flight") == 1, 5, "sent")
        time.sleep(0.2)
        kill_sessions(redis)
        wait.until(lambda: gate.metric("upstream_requests_in_flight") == 0, 5, "lost")
        client.send(resp.encode("ECHO", "one") + resp.encode("ECHO", "two"))
        time.sleep(0.3)
        store.resume()
        replies = client.read_n(3)
    assert replies[0].startswith(b"-ERR bloomgate: not executed")
    assert replies[1:] == [resp.bulk("one"), resp.bulk("two")]


def test_learned_in_the_database_that_it_goes_to(
        redis, bloomgate, make_filter, ids_file):
    """A stream does not wait for the reply to SELECT: it is learned wherever it
    may go."""
    gate = bloomgate(redis, filters=[make_filter(ids_file(["1"]), db=1)])
    for i in range(3):
        key = "user:big%d" % i
        with gate.client() as client:
            assert client.call("PING") == resp.PONG
            redis.pause()
            client.send(resp.encode("SELECT", 1) + big_set(key, 300000))
            time.sleep(0.1)
            redis.resume()
            assert client.read_n(2) == [b"+OK\r\n"] * 2
            assert len(client.call("GET", key)) > 300000


def test_not_streamed_before_the_commands_are_known(
        redis, bloomgate, make_filter, ids_file):
    """Bloomgate's own user cannot log in: no write may pass unlearned."""
    redis.call("ACL", "SETUSER", "own", "on", ">right", "+@all", "~*", "&*")
    gate = bloomgate(
        redis, serving=False, filters=[make_filter(ids_file(["1"]))],
        upstream={"username": "own", "password-file": ids_file(["wrong"])})
    for size in (200000, 3 * MIB):
        with gate.client() as client:
            client.send(big_set("user:big", size))
            assert client.read().startswith(b"-ERR bloomgate: upstream is not")
            assert client.call("PING").startswith(b"-ERR bloomgate: upstream")
    assert redis.value("EXISTS", "user:big") == 0


@pytest.mark.parametrize("command", [["MONITOR"], ["CLIENT", "REPLY", "SKIP"]])
def test_replay_before_opaque(redis, gate, command):
    """The first command after a lost upstream makes the session opaque: the
    replies to the replay are still not the client's."""
    with gate.client() as client:
        client.send(resp.encode("CLIENT", "SETNAME", "victim") +
                    resp.encode("SELECT", 3))
        assert client.read_n(2) == [b"+OK\r\n"] * 2
        kill_sessions(redis)
        wait.until(lambda: b"victim" not in redis.value("CLIENT", "LIST"), 5,
                   "killed")
        time.sleep(0.1)
        if command == ["MONITOR"]:
            assert client.call(*command) == b"+OK\r\n"
            redis.call("ECHO", "seen")
            assert b"seen" in client.read()
        else:
            client.send(resp.encode(*command) + resp.encode("SET", "k", "v") +
                        resp.encode("ECHO", "one"))
            assert client.read() == resp.bulk("one")
            assert redis.value("EXISTS", "k") == 0


def test_large_nonsense_of_an_opaque_session(gate):
    with gate.client() as client, gate.client() as other:
        client.send(resp.encode("CLIENT", "REPLY", "OFF"))
        client.send(b"*4\r\n$3\r\nSET\r\n$1\r\nk\r\n$200000\r\n" + b"v" * 200000 +
                    b"\r\nnonsense\r\n" * 20)
        assert other.call("PING") == resp.PONG
        with pytest.raises((resp.Closed, OSError)):
            client.read()


def test_opaque_flood_arrives_whole(redis, gate):
    """More than fits is sent while Redis does not read: all of it follows."""
    with gate.client() as client:
        client.send(resp.encode("CLIENT", "REPLY", "OFF"))
        one = resp.encode("INCR", "n") + resp.encode("SET", "pad", "x" * 1000)
        redis.pause()
        sent = 8000
        feeder = threading.Thread(target=client.send, args=(one * sent,))
        feeder.start()
        time.sleep(0.5)
        redis.resume()
        feeder.join(20)
        wait.until(lambda: redis.value("GET", "n") == b"%d" % sent, 10, "all")


def test_large_request_right_behind_auth(
        redis_server, bloomgate, make_filter, ids_file):
    """Strangers are held to short requests, but not who has an AUTH on its way."""
    redis = redis_server()
    gate = bloomgate(redis, filters=[make_filter(ids_file(["1"]))])
    redis.call("ACL", "SETUSER", "own", "on", ">own", "+@all", "~*", "&*")
    redis.call("ACL", "SETUSER", "default", "resetpass", ">secret")
    own = bloomgate(
        redis, serving=False,
        upstream={"username": "own", "password-file": ids_file(["own"])},
        filters=[make_filter(ids_file(["1"]))])
    with own.client() as client:
        wait.until(lambda: client.call("GET", "k").startswith(b"-NOAUTH"))
    own.wait_state("serving")
    for i, size in enumerate((20000, 300000)):
        with own.client() as client:
            client.send(resp.encode("AUTH", "secret") + big_set("k%d" % i, size) +
                        resp.encode("MSET", *["x"] * 20))
            assert client.read_n(3) == [b"+OK\r\n"] * 3
    gate.kill()


def test_replies_before_a_request_that_is_cut_off(redis, gate):
    with gate.client() as client:
        assert client.call("PING") == resp.PONG
        redis.pause()
        client.send(resp.encode("ECHO", "one") + big_set("k", 300000)[:200000])
        client.half_close()
        time.sleep(0.2)
        redis.resume()
        assert client.read() == resp.bulk("one")
        with pytest.raises((resp.Closed, OSError)):
            client.read()
    assert redis.value("EXISTS", "k") == 0


def test_long_absent_answers_are_made_when_they_leave(
        redis, bloomgate, make_filter, ids_file):
    """A request of a few bytes a key may have an answer a thousand times as long:
    it is held to client-output-bytes, and is not kept while it waits."""
    value = "n" * 60000
    gate = bloomgate(
        redis, limits={"client-output-bytes": "8MiB"},
        filters=[make_filter(
            ids_file(["1"]), **{"absent-reply": {"value": value}})])
    with gate.client() as client:
        wait.until(lambda: client.call("GET", "user:no") == resp.bulk(value), 10,
                   "absent is said")
    before = gate.child.rss_bytes()

    def is_held():
        """A check that takes too long is maybe, so not each time."""
        with gate.client() as client:
            client.send(resp.encode("MGET", *["user:no"] * 2000))
            time.sleep(0.3)
            try:
                client.read()
            except (resp.Closed, OSError):
                pass
        return gate.events("client_too_slow")

    wait.until(is_held, 30, "closed")
    gate.memory_below(before, 60)
    with gate.client() as client:
        redis.call("CONFIG", "SET", "lua-time-limit", "0")
        client.send(resp.encode("EVAL", "local n = 0 for i = 1, 3e7 do n = n + i end "
                                "return 1", 0))
        client.send(resp.encode("GET", "user:no") * 1500)
        assert client.read() == b":1\r\n"
        for _ in range(1500):
            assert client.read()
    redis.call("ACL", "SETUSER", "limited", "on", ">p", "~user:n*", "+get")
    with gate.client() as client:
        # Redis says nil of each, at once; what takes nil's place is long.
        assert client.call("AUTH", "limited", "p") == resp.OK
        client.send(resp.encode("GET", "user:no") * 1500)
        for _ in range(1500):
            assert client.read() in (resp.bulk(value), b"$-1\r\n")
    gate.memory_below(before, 60)
