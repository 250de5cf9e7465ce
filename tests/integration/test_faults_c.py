# SPDX-License-Identifier: BSD-2-Clause
"""
Faults in session state that others shipped, where they have no home in
test_state.py and test_upstream.py: each test names its codes (tests/lint/faults).
What a session may be answered locally is asserted only where Redis alone may
speak.
"""

import os
import time

import pytest
from bg import resp, wait

NULL = resp.bulk("__NULL__")
LOST = b"-ERR bloomgate: upstream"
GET = resp.encode("GET", "user:none")


@pytest.fixture
def gate(redis, bloomgate, make_filter, ids_file):
    return bloomgate(redis, filters=[make_filter(ids_file(["1"]))]).warm()


def kill_clients(redis):
    """Every connection but the test's own: bloomgate's links and sessions."""
    redis.value("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


BLOCKING = [
    ["BLPOP", "none", "0.7"],
    ["BRPOP", "none", "no2", "0.7"],
    ["BRPOPLPUSH", "none", "to", "0.7"],
    ["BLMOVE", "none", "to", "LEFT", "LEFT", "0.7"],
    ["BLMPOP", "0.7", "1", "none", "LEFT"],
    ["BZPOPMIN", "none", "0.7"],
    ["BZPOPMAX", "none", "0.7"],
    ["BZMPOP", "0.7", "1", "none", "MIN"],
    ["XREAD", "BLOCK", "700", "STREAMS", "none", "$"],
    ["XREADGROUP", "GROUP", "g", "c", "BLOCK", "700", "STREAMS", "stream", ">"],
    ["WAIT", "1", "700"],
]


def test_response_timeout_is_not_for_what_blocks(redis, bloomgate):
    """FAULTS C5: blocking commands of every kind outlast it, and so does what was
    pipelined behind them; so do a subscriber and a MONITOR with nothing to read."""
    gate = bloomgate(redis, upstream={"response-timeout": "250ms"})
    redis.value("XGROUP", "CREATE", "stream", "g", "$", "MKSTREAM")
    clients = [gate.client(seconds=20) for _ in BLOCKING]
    subscriber, monitor = gate.client(), gate.client()
    assert subscriber.call("SUBSCRIBE", "ch").startswith(b"*3")
    began = time.monotonic()
    for client, words in zip(clients, BLOCKING):
        client.call("SET", "k", "v")
        client.send(resp.encode(*words) + resp.encode("ECHO", words[0]))
    for client, words in zip(clients, BLOCKING):
        want = b":0\r\n" if words[0] == "WAIT" else b"*-1\r\n"
        assert client.read() in (want, resp.NIL2), words
        assert client.read() == resp.bulk(words[0]), words
        client.close()
    # They did block, for longer than the timeout.
    assert time.monotonic() - began > 0.6
    assert monitor.call("MONITOR") == resp.OK
    over = time.monotonic() + 0.6
    wait.until(lambda: time.monotonic() > over, 3, "twice the timeout")
    assert redis.value("PUBLISH", "ch", "late") == 1
    assert subscriber.read().endswith(resp.bulk("late"))
    while b'"late"' not in monitor.read():
        pass
    subscriber.close()
    monitor.close()


def test_response_timeout_is_not_for_what_may_block(redis, bloomgate, folder):
    """FAULTS C5: nor for commands of which bloomgate cannot know whether they do,
    as all are while COMMAND has not been read, or may not be."""
    secret = os.path.join(folder, "secret")
    with open(secret, "w") as out:
        out.write("pw\n")
    redis.value("ACL", "SETUSER", "gate", "on", ">pw", "~*", "&*", "+@all", "-command")
    gate = bloomgate(redis, upstream={
        "response-timeout": "250ms", "username": "gate", "password-file": secret})
    with gate.client(seconds=20) as client:
        assert client.call("BLPOP", "none", "0.7") == b"*-1\r\n"
        assert client.call("PING") == resp.PONG


@pytest.mark.parametrize("words", BLOCKING, ids=lambda words: words[0])
def test_a_client_that_leaves_while_blocked(gate, redis, words):
    """FAULTS C4: it goes with a blocked command and reads, local, merged and
    forwarded, behind it; Redis lets go of it and others are served."""
    words = ["0" if w in ("0.7", "700") else w for w in words]
    redis.value("XGROUP", "CREATE", "stream", "g", "$", "MKSTREAM")
    redis.value("SET", "k", "v")
    behind = GET + resp.encode("MGET", "user:none", "user:1", "k") + resp.encode("PING")
    for leave in ("close", "half_close"):
        client = gate.client()
        if words[0] == "WAIT":
            client.call("SET", "k", "v")  # it waits only behind a write
        client.send(GET + resp.encode(*words) + behind)
        assert client.read() in (NULL, resp.NIL2)
        wait.until(lambda: redis.info("blocked_clients") == "1", 5, "it blocks")
        with gate.client() as other:
            assert other.call("PING") == resp.PONG
            assert other.call("MGET", "user:none", "k") in (
                resp.array(NULL, resp.bulk("v")), resp.array(resp.NIL2, resp.bulk("v"))
            )
            getattr(client, leave)()
            wait.until(lambda: redis.info("blocked_clients") == "0", 5, "let go")
            assert other.call("GET", "k") == resp.bulk("v")
        client.close()


def test_secrets_change_while_it_runs(redis, bloomgate, make_filter, ids_file, folder):
    """FAULTS C7: rotation. When Redis takes another of the file's secrets, links
    that must log in again try them in turn, and sessions that are open stay."""
    secret = os.path.join(folder, "secret")
    with open(secret, "w") as out:
        out.write("third\nsecond\nfirst\n")
    redis.value("ACL", "SETUSER", "own", "on", ">first", "~*", "&*", "+@all")
    gate = bloomgate(
        redis, filters=[make_filter(ids_file(["1"]))],
        upstream={"username": "own", "password-file": secret},
    ).warm()
    with gate.client() as client:
        mine = client.value("CLIENT", "ID")
        for old, new in (("first", "second"), ("second", "third"),
                         ("third", "first")):
            redis.value("ACL", "SETUSER", "own", "<" + old, ">" + new)
            ups = len(gate.events("redis_up"))
            assert redis.value("CLIENT", "KILL", "USER", "own") > 0
            wait.until(lambda: len(gate.events("redis_up")) > ups, 10, "logged in")
            gate.wait_state("serving", seconds=40)
            wait.until(lambda: gate.call("GET", "user:none") == NULL, 10, new)
            assert gate.call("SET", "user:" + new, "v") == resp.OK
            assert client.value("CLIENT", "ID") == mine


def test_login_comes_before_the_first_command(redis_server, bloomgate):
    """FAULTS C6: after a loss the whole pipeline that comes next finds the session
    as it was: no command gets ahead of AUTH, SELECT or HELLO."""
    redis = redis_server(requirepass="pw")
    gate = bloomgate(redis)
    redis.call("AUTH", "pw")
    with gate.client() as client:
        hello = ["HELLO", 3, "AUTH", "default", "pw", "SETNAME", "me"]
        assert client.call(*hello).startswith(b"%")
        assert client.call("SELECT", 5) == resp.OK
        whole = 0
        while whole < 5:
            turn = whole
            kill_clients(redis)
            wait.until(
                lambda: b"name=me" not in redis.value("CLIENT", "LIST"), 5, "killed"
            )
            client.send(
                resp.encode("SET", "k", turn) + resp.encode("GET", "none")
            )
            replies = client.read_n(2)
            # They may have been sent before the loss was noticed.
            if replies[0].startswith(LOST):
                continue
            whole += 1
            assert replies == [resp.OK, resp.NIL3], turn
            assert b"name=me" in redis.value("CLIENT", "LIST")
            redis.call("SELECT", 5)
            assert redis.value("GET", "k") == b"%d" % turn
            redis.call("SELECT", 0)
            assert redis.value("EXISTS", "k") == 0


TRACKING = [
    [["CLIENT", "TRACKING", "ON"]],
    [["CLIENT", "TRACKING", "ON", "BCAST", "PREFIX", "user:"]],
    [["CLIENT", "TRACKING", "ON", "NOLOOP"]],
    [["CLIENT", "TRACKING", "ON", "OPTIN"], ["CLIENT", "CACHING", "YES"]],
    [["CLIENT", "TRACKING", "ON", "OPTOUT"]],
]


@pytest.mark.parametrize("lines", TRACKING, ids=lambda lines: " ".join(lines[0][3:]))
@pytest.mark.parametrize("read", [["GET", "user:none"], ["MGET", "user:1", "user:none"],
                                  ["EXISTS", "user:none"]], ids=lambda words: words[0])
def test_tracked_reads_reach_redis(gate, redis, lines, read):
    """FAULTS C8: an absent id that is read under tracking is invalidated when it
    comes to be: with an answer of our own no invalidation would ever come."""
    with gate.client() as client, gate.client() as writer:
        client.call("HELLO", 3)
        for words in lines:
            assert client.call(*words) == resp.OK, words
        assert NULL not in client.call(*read)
        assert writer.call("SET", "user:none", "v") == resp.OK
        push = client.read()
        assert push.startswith(b">2\r\n$10\r\ninvalidate\r\n"), push
        assert resp.bulk("user:none") in push
        assert client.call("GET", "user:none") == resp.bulk("v")


def test_tracking_redirected(gate, redis):
    """FAULTS C8: RESP2 clients have another connection told."""
    with gate.client() as listener, gate.client() as client, gate.client() as writer:
        to = listener.value("CLIENT", "ID")
        assert listener.call("SUBSCRIBE", "__redis__:invalidate").startswith(b"*3")
        assert client.call("CLIENT", "TRACKING", "ON", "REDIRECT", to) == resp.OK
        assert client.call("GET", "user:none") == resp.NIL2
        assert writer.call("SET", "user:none", "v") == resp.OK
        assert resp.bulk("user:none") in listener.read()


BEFORE_RESET = [
    [],
    ["MULTI"],
    ["MULTI", "SET user:in v", "GET user:none"],
    ["WATCH user:none"],
    ["SUBSCRIBE a b"],
    ["HELLO 3"],
    ["HELLO 3", "SUBSCRIBE a", "PSUBSCRIBE b*"],
    ["SELECT 3"],
    ["SELECT 3", "MULTI"],
    ["CLIENT TRACKING ON"],
    ["CLIENT SETNAME me"],
    ["AUTH reader pw", "SELECT 2", "HELLO 3"],
]


@pytest.mark.parametrize("lines", BEFORE_RESET, ids=lambda lines: "; ".join(lines))
@pytest.mark.parametrize("at_once", [False, True])
def test_reset_undoes_all_of_it(
    redis, bloomgate, make_filter, ids_file, lines, at_once
):
    """FAULTS C9: RESET leaves MULTI, WATCH, subscriptions, RESP3, the database,
    tracking, the name and the user behind: what follows is a new session's."""
    redis.value("ACL", "SETUSER", "reader", "on", ">pw", "~*", "&*", "+@all")
    # Of database 0 is nobody's filter but the first.
    redis.value("SET", "three:x", "there")
    gate = bloomgate(redis, filters=[
        make_filter(ids_file(["1"]), **{"absent-reply": "nil"}),
        make_filter(ids_file(["1"]), name="three", keys=["three:{id}"], db=3),
    ]).warm()
    lines = lines + ["RESET"]
    # Those last that bloomgate may leave to Redis for good.
    after = [["GET", "user:none"], ["GET", "three:x"], ["SET", "user:after", "v"],
             ["GET", "user:after"], ["GET", "none"], ["PING"], ["ACL", "WHOAMI"],
             ["CLIENT", "GETNAME"], ["EXEC"]]
    want = [resp.NIL2, resp.bulk("there"), resp.OK, resp.bulk("v"), resp.NIL2,
            resp.PONG, resp.bulk("default"), resp.NIL2,
            b"-ERR EXEC without MULTI\r\n"]
    with gate.client() as client:
        requests = [line.split(" ") for line in lines] + after
        if at_once:
            client.send(b"".join(resp.encode(*words) for words in requests))
        replies = []
        for words in requests:
            if not at_once:
                client.send(resp.encode(*words))
            count = len(words) - 1 if words[0].endswith("SUBSCRIBE") else 1
            replies += client.read_n(count)
        client.quiet()
    assert replies[-len(after) - 1] == b"+RESET\r\n"
    for words, got, due in zip(after, replies[-len(after):], want):
        assert got == due, words
    assert redis.value("GET", "user:after") == b"v"
    assert redis.value("EXISTS", "user:in") == 0


def test_reset_makes_a_stranger_of_a_session(
    redis_server, bloomgate, make_filter, ids_file, folder
):
    """FAULTS C9: where Redis asks for a password, RESET takes the right away that
    local answers stood on."""
    redis = redis_server(requirepass="secret")
    secret = os.path.join(folder, "secret")
    with open(secret, "w") as out:
        out.write("secret\n")
    gate = bloomgate(redis, filters=[make_filter(ids_file(["1"]))],
                     upstream={"password-file": secret})
    no = b"-NOAUTH Authentication required.\r\n"
    with gate.client() as client:
        assert client.call("AUTH", "secret") == resp.OK
        wait.until(lambda: client.call("GET", "user:none") == NULL, 5, "known")
        client.send(resp.encode("RESET") + GET + resp.encode("BF.EXISTS", "user", "x"))
        assert client.read_n(3) == [b"+RESET\r\n", no, no]
        assert client.call("EXISTS", "user:none") == no
        assert client.call("AUTH", "secret") == resp.OK
        assert client.call("GET", "user:none") in (NULL, resp.NIL2)


@pytest.mark.parametrize("end", [None, "EXEC", "DISCARD", "UNWATCH", "RESET"])
@pytest.mark.parametrize("at_once", [False, True])
def test_watched_reads_reach_redis(gate, redis, end, at_once):
    """FAULTS C10: between WATCH and its end every read is Redis's, and an id that
    comes to be in between makes EXEC fail."""
    calls = redis.calls("get")
    with gate.client() as client, gate.client() as writer:
        if at_once:
            client.send(resp.encode("WATCH", "user:none") + GET * 3)
            replies = client.read_n(4)
        else:
            replies = [client.call("WATCH", "user:none")]
            replies += [client.call("GET", "user:none") for _ in range(3)]
        assert replies == [resp.OK] + [resp.NIL2] * 3
        assert redis.calls("get") == calls + 3
        if end in ("EXEC", "DISCARD"):
            assert client.call("MULTI") == resp.OK
        if end is not None:
            want = {"EXEC": b"*0\r\n", "RESET": b"+RESET\r\n"}
            assert client.call(end) == want.get(end, resp.OK)
        assert writer.call("SET", "user:none", "theirs") == resp.OK
        assert client.call("MULTI") == resp.OK
        assert client.call("SET", "user:none", "mine") == b"+QUEUED\r\n"
        got = client.call("EXEC")
    assert got == (b"*-1\r\n" if end is None else resp.array(resp.OK))
    assert redis.value("GET", "user:none") == (b"theirs" if end is None else b"mine")
