# SPDX-License-Identifier: BSD-2-Clause
"""
Laws 3 and 5 when Redis goes away: one error for each command, in order, and the
session goes on when Redis is back, unless it had state that cannot be rebuilt.
FAULTS: C6, C7, D1, D5, E12, F6, F8.
"""

import os
import socket

import pytest
from bg import resp, wait
from bg.relay import Relay

LOST = b"-ERR bloomgate: upstream"


@pytest.fixture
def gate(redis, bloomgate):
    return bloomgate(redis)


def recovered(client, seconds=15):
    """Until PING is answered again; only upstream errors may come before."""

    def again():
        reply = client.call("PING")
        assert reply == resp.PONG or reply.startswith(LOST), reply
        return reply == resp.PONG

    wait.until(again, seconds, "the session recovers")


def test_down_from_the_start(redis_server, bloomgate, make_filter, ids_file):
    redis = redis_server()
    redis.kill()
    gate = bloomgate(redis, serving=False, filters=[make_filter(ids_file(["1"]))])
    with gate.client() as client:
        for words in (["PING"], ["GET", "k"], ["GET", "user:x"], ["SET", "k", "v"],
                      ["MGET", "user:x", "k"]):
            assert client.call(*words).startswith(LOST), words
        redis.start()
        recovered(client)
        gate.wait_state("serving")
        wait.until(
            lambda: client.call("GET", "user:x") == resp.bulk("__NULL__"),
            5, "the session is answered locally",
        )


def test_one_error_each_in_order(redis, gate):
    redis.kill()
    with gate.client() as client:
        client.send(resp.encode("PING") * 100 + resp.encode("GET", "k") * 100)
        replies = client.read_n(200)
        assert all(reply.startswith(LOST) for reply in replies)
        client.quiet()
        redis.start()
        recovered(client)
        client.send(b"".join(resp.encode("ECHO", i) for i in range(100)))
        assert client.read_n(100) == [resp.bulk(b"%d" % i) for i in range(100)]


def test_a_session_is_rebuilt(redis, gate):
    with gate.client() as client:
        assert client.call("HELLO", 3, "SETNAME", "me").startswith(b"%")
        assert client.call("SELECT", 3) == resp.OK
        assert client.call("SET", "k", "three") == resp.OK
        redis.save()
        redis.keep_snapshot("snapshot")
        redis.restart("snapshot")
        recovered(client)
        assert client.call("GET", "k") == resp.bulk("three")
        assert client.call("GET", "none") == resp.NIL3
        assert client.call("CLIENT", "GETNAME") == resp.bulk("me")


def test_a_session_authenticates_again(redis_server, bloomgate):
    """FAULTS C6."""
    redis = redis_server(requirepass="pw")
    gate = bloomgate(redis)
    with gate.client() as client, gate.client() as other:
        assert client.call("AUTH", "pw") == resp.OK
        assert other.call("HELLO", 3, "AUTH", "default", "pw").startswith(b"%")
        redis.restart()
        recovered(client)
        assert client.call("SET", "k", "v") == resp.OK
        recovered(other)
        assert other.call("GET", "none") == resp.NIL3


def test_a_refused_rebuild_closes(redis_server, bloomgate):
    """FAULTS C7: after the restart the password is another."""
    redis = redis_server(requirepass="pw")
    gate = bloomgate(redis)
    with gate.client() as client:
        assert client.call("AUTH", "pw") == resp.OK
        redis.config["requirepass"] = "other"
        redis.restart()
        client.send(resp.encode("PING") * 50)
        replies, rest = client.read_all()
        assert rest == b""
        assert all(reply.startswith(b"-") for reply in replies), replies


STATES = [
    ["MULTI"],
    ["MULTI", "SET k v"],
    ["WATCH k"],
    ["SUBSCRIBE ch"],
    ["PSUBSCRIBE ch*"],
    ["CLIENT TRACKING ON"],
    ["CLIENT REPLY SKIP"],
    ["MONITOR"],
]


@pytest.mark.parametrize("lines", STATES, ids=lambda lines: lines[-1].split()[0])
def test_state_that_cannot_be_rebuilt_closes(redis, gate, lines):
    with gate.client() as client, gate.client() as plain:
        assert plain.call("PING") == resp.PONG
        for line in lines:
            client.send(resp.encode(*line.split()))
            if "REPLY" not in line:
                client.read()
        if lines[0].startswith("CLIENT REPLY"):
            client.send(resp.encode("ECHO", "a") + resp.encode("ECHO", "b"))
            assert client.read() == resp.bulk("b")
        redis.restart()
        # At the latest its next command ends it, and nothing is executed.
        try:
            client.send(resp.encode("SET", "k", "ghost"))
        except (BrokenPipeError, ConnectionResetError):
            pass
        replies, _ = client.read_all()
        assert all(reply.startswith(b"-") for reply in replies), replies
        assert redis.value("EXISTS", "k") == 0
        recovered(plain)


def test_forgotten_state_is_no_state(redis, gate):
    """MULTI that ended, subscriptions that ended: nothing is lost."""
    with gate.client() as client:
        for words in (["MULTI"], ["DISCARD"], ["WATCH", "k"], ["UNWATCH"],
                      ["SUBSCRIBE", "a"], ["UNSUBSCRIBE", "a"]):
            client.call(*words)
        redis.restart()
        recovered(client)


PIPELINE = [
    (["SET", "user:1", "one"], resp.OK),
    (["GET", "user:1"], resp.bulk("one")),
    (["GET", "user:none"], resp.bulk("__NULL__")),
    (["MGET", "user:none", "user:1", "k"],
     resp.array(resp.bulk("__NULL__"), resp.bulk("one"), resp.NIL2)),
    (["ECHO", "x" * 40], resp.bulk("x" * 40)),
    (["EXISTS", "user:1", "user:none"], b":1\r\n"),
    (["BF.ADD", "user", "1"], b":0\r\n"),
    (["BF.EXISTS", "user", "none"], b":0\r\n"),
    (["EVAL", "return {1,{2,'three'},{}}", 0],
     b"*3\r\n:1\r\n*2\r\n:2\r\n$5\r\nthree\r\n*0\r\n"),
    (["LRANGE", "nolist", 0, -1], b"*0\r\n"),
    (["GET", "user:no2"], resp.bulk("__NULL__")),
    (["PING"], resp.PONG),
]


@pytest.fixture
def cut_gate(redis, bloomgate, make_filter, ids_file, folder):
    relay = Relay(os.path.join(folder, "relay.sock"), redis.address)
    redis.value("SET", "user:1", "one")
    gate = bloomgate(
        redis, upstream={"address": relay.address},
        store={"address": redis.address}, filters=[make_filter(ids_file(["1"]))],
    )
    yield gate, relay
    relay.stop()


def run_cut(gate, marker, pipeline=PIPELINE):
    """Sends the pipeline behind a marker; checks what comes back. Returns
    whether any reply was lost, and whether the session was closed."""
    with gate.client() as client:
        first = resp.encode("ECHO", marker)
        client.send(first + b"".join(resp.encode(*w) for w, _ in pipeline))
        client.half_close()
        replies, rest = client.read_all()
    wanted = [resp.bulk(marker)] + [want for _, want in pipeline]
    lost = False
    for index, reply in enumerate(replies):
        want = wanted[index]
        if reply == want:
            continue
        # A write that depends on a lost upstream fails as one too.
        assert reply.startswith(b"-ERR bloomgate: "), (marker, index, reply)
        lost = True
    if len(replies) < len(wanted):
        # Part of a reply had left: nothing else may follow it.
        assert wanted[len(replies)].startswith(rest), (marker, rest)
    else:
        assert len(replies) == len(wanted) and rest == b"", (marker, replies, rest)
    return lost, len(replies) < len(wanted)


def test_replies_cut_at_every_byte(cut_gate, counts):
    gate, relay = cut_gate
    step = counts(1, small=7)
    total = 60 + sum(len(want) for _, want in PIPELINE)
    results = [
        run_cut(gate, "cut-replies:%d:" % n) for n in range(0, total, step)
    ]
    assert relay.cut > total / step / 2
    assert any(lost for lost, _ in results)
    assert gate.call("PING") == resp.PONG
    wait.until(lambda: gate.call("GET", "user:none") == resp.bulk("__NULL__"), 5,
               "absent is said again")


def test_a_run_of_requests_alike(cut_gate, redis, counts):
    """They share one slot; each still gets its one answer and is counted."""
    gate, relay = cut_gate
    redis.value("SET", "k", "v" * 30)
    redis.value("RPUSH", "list", "1")
    wrong = redis.call("GET", "list")
    assert wrong.startswith(b"-WRONGTYPE")
    replies = {"k": resp.bulk("v" * 30), "none": resp.NIL2, "list": wrong}
    keys = ["k", "none", "k", "list", "none", "k", "list", "list", "k", "none"]
    run = [(["GET", key], replies[key]) for key in keys]
    total = 30 + sum(len(want) for _, want in run)
    for n in range(0, total, counts(1, small=7)):
        run_cut(gate, "cut-replies:%d:" % n, run)
    assert relay.cut > 0
    wait.until(lambda: gate.metric("upstream_requests_in_flight") == 0, 5, "none due")

    def counted():
        return [
            gate.metric("commands_total", command="get", source="upstream"),
            gate.metric("command_duration_seconds_count", source="upstream"),
        ]

    before = counted()
    with gate.client() as client:
        client.send(b"".join(resp.encode("GET", key) for key in keys * 100))
        assert client.read_n(1000) == [replies[key] for key in keys] * 100
    assert counted() == [value + 1000 for value in before]
    assert gate.metric("upstream_requests_in_flight") == 0


def test_requests_cut_at_every_byte(cut_gate, counts):
    gate, relay = cut_gate
    step = counts(3, full=1, small=17)
    total = sum(len(resp.encode(*words)) for words, _ in PIPELINE)
    for n in range(0, total, step):
        run_cut(gate, "cut-requests:%d:" % n)
    assert relay.cut > total / step / 2
    assert gate.call("PING") == resp.PONG


def test_the_session_goes_on_after_each_cut(cut_gate, counts):
    gate, relay = cut_gate
    for n in range(0, 60, counts(2, small=10)):
        with gate.client() as client:
            client.send(resp.encode("ECHO", "cut-replies:%d:" % n) * 2)
            try:
                client.read_n(2)
                for _ in range(3):
                    recovered(client)
                assert client.call("SET", "k", n) == resp.OK
                assert client.call("GET", "k") == resp.bulk(b"%d" % n)
            except resp.Closed as closed:
                # Closed only where part of a reply had left.
                begun = closed.args[0]
                assert begun and (
                    resp.bulk("cut-replies:%d:" % n).startswith(begun)
                    or resp.PONG.startswith(begun)
                ), (n, begun)


def test_loading_is_passed_on(redis, bloomgate, make_filter, ids_file):
    """FAULTS F6, F7: an error of Redis is that command's reply, and no
    answer about the filter."""
    gate = bloomgate(redis, filters=[make_filter(ids_file(["1"]))])
    redis.fill([("k%d" % i, "x" * 100) for i in range(20000)])
    redis.save()
    redis.keep_snapshot("big")
    redis.config["key-load-delay"] = "100"
    redis.config["loading-process-events-interval-bytes"] = "1024"
    redis.restart("big", ready=False)
    seen = set()
    with gate.client(seconds=30) as client:

        def loaded():
            reply = client.call("GET", "user:none")
            seen.add(reply.split(b" ")[0])
            known = reply in (resp.NIL2, resp.bulk("__NULL__"))
            assert known or reply.startswith((LOST, b"-LOADING")), reply
            return known

        wait.until(loaded, 40, "Redis has loaded")
    assert b"-LOADING" in seen
    gate.wait_state("serving", seconds=40)


def test_response_timeout(redis, bloomgate):
    """FAULTS D1: after the error the connection is not used again, so that the
    late reply goes to nobody."""
    gate = bloomgate(redis, upstream={"response-timeout": "300ms"},
                     log={"level": "debug"})
    wait.until(lambda: gate.events("commands_known"), 10, "COMMAND is read")
    with gate.client(seconds=20) as client:
        assert client.call("SET", "k", "v") == resp.OK
        redis.pause()
        try:
            assert client.call("ECHO", "late").startswith(LOST)
        finally:
            redis.resume()
        recovered(client)
        for i in range(50):
            assert client.call("ECHO", i) == resp.bulk(b"%d" % i)


def test_a_silent_upstream_that_does_not_accept(folder, bloomgate):
    """connect-timeout: a listener whose backlog is never served."""

    class Silent:
        address = "unix:" + os.path.join(folder, "silent.sock")

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(Silent.address[5:])
    listener.listen(0)
    fillers = []
    try:
        while True:
            filler = socket.socket(socket.AF_UNIX)
            filler.setblocking(False)
            fillers.append(filler)
            filler.connect(Silent.address[5:])
    except BlockingIOError:
        pass
    gate = bloomgate(Silent, serving=False, upstream={"connect-timeout": "200ms"})
    with gate.client(seconds=20) as client:
        assert client.call("PING").startswith(LOST)
        assert client.call("PING").startswith(LOST)
    for sock in fillers + [listener]:
        sock.close()
