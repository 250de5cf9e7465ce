# SPDX-License-Identifier: BSD-2-Clause
"""
Faults in handshakes, RESP3 and introspection that others shipped, where they
have no home in test_state.py: each test names its codes (tests/lint/faults).
"""

import os
import re
import threading

import pytest
from bg import resp, wait

NULL = resp.bulk("__NULL__")
ID = re.compile(rb"(\$2\r\nid\r\n):\d+\r\n")


def same(reply):
    """A reply without what differs between two connections."""
    return ID.sub(rb"\1:0\r\n", reply)


@pytest.fixture
def closed(redis_server, bloomgate, make_filter, ids_file, folder):
    """A Redis with a password and a bloomgate in front of it."""
    redis = redis_server(requirepass="secret")
    redis.call("AUTH", "secret")
    secret = os.path.join(folder, "secret")
    with open(secret, "w") as out:
        out.write("secret\n")
    return redis, bloomgate(
        redis, filters=[make_filter(ids_file(["1"]))],
        upstream={"password-file": secret},
    )


# What clients send first; {pw} is the password.
HANDSHAKES = {
    "redis-py": ["AUTH {pw}", "CLIENT SETINFO LIB-NAME redis-py",
                 "CLIENT SETINFO LIB-VER 5.0.1", "SELECT 0"],
    "redis-py on RESP3": ["HELLO 3 AUTH default {pw}",
                          "CLIENT SETINFO LIB-NAME redis-py",
                          "CLIENT SETINFO LIB-VER 8.0.0", "CLIENT SETNAME app"],
    "go-redis": ["HELLO 3 AUTH default {pw}", "CLIENT SETINFO LIB-NAME go-redis(,go1)",
                 "CLIENT SETINFO LIB-VER 9.5.0"],
    "Jedis": ["AUTH default {pw}", "CLIENT SETINFO lib-name jedis", "PING"],
    "Lettuce": ["HELLO 3 AUTH default {pw} SETNAME app",
                "CLIENT SETINFO lib-name Lettuce"],
    "StackExchange.Redis": ["HELLO 3 AUTH default {pw} SETNAME app", "AUTH {pw}",
                            "CLIENT SETNAME app", "CLIENT SETINFO lib-ver 2.8", "PING"],
    "older": ["HELLO 2", "AUTH {pw}", "HELLO 2 SETNAME app", "ECHO hi"],
    "not there yet": ["HELLO 4 AUTH default {pw}", "HELLO 3 AUTH default {pw}"],
    "not a number": ["HELLO x AUTH default {pw}", "AUTH {pw}"],
    "wrong, then right": ["HELLO 3 AUTH default wrong", "HELLO 3", "PING",
                          "HELLO 3 AUTH default {pw}"],
    "half": ["HELLO 3 AUTH default", "HELLO 3 SETNAME", "AUTH {pw}"],
}
# Redis may have done a part of such a HELLO: the session need not be plain.
UNSURE = "half"


@pytest.mark.parametrize("name", HANDSHAKES)
def test_handshakes_of_clients(closed, name):
    """FAULTS B1, B3, B5, B6, B7: HELLO, AUTH, SETNAME and SETINFO, pipelined or
    one by one, get one reply each, in order and Redis's own (an error begins with
    '-'); afterwards the session is as plain as any."""
    redis, gate = closed
    lines = [line.format(pw="secret").split(" ") for line in HANDSHAKES[name]]
    data = b"".join(resp.encode(*words) for words in lines)
    with redis.client() as client:
        client.send(data)
        want = [same(reply) for reply in client.read_n(len(lines))]
    if any("SETINFO" in words for words in lines):
        assert any(r.startswith((b"-ERR unknown subcommand", b"+OK")) for r in want)
    with gate.client() as client:
        client.send(data)
        assert [same(reply) for reply in client.read_n(len(lines))] == want
        client.quiet()
        if name != UNSURE:
            wait.until(lambda: client.call("GET", "user:none") == NULL, 5, "plain")
        assert client.call("GET", "none") in (resp.NIL2, resp.NIL3)
    with gate.client() as client:
        for words, reply in zip(lines, want):
            assert same(client.call(*words)) == reply, words
        if name != UNSURE:
            wait.until(lambda: client.call("GET", "user:none") == NULL, 5, "plain")
        if "app" in HANDSHAKES[name][-1]:
            assert client.call("CLIENT", "GETNAME") == resp.bulk("app")


def test_hello_that_redis_does_not_know(
    redis_server, bloomgate, make_filter, ids_file, folder
):
    """FAULTS B2: clients fall back to RESP2 when they read "unknown command":
    that is what they get, and absent answers are RESP2 then."""
    old = os.path.join(folder, "old.conf")
    with open(old, "w") as out:
        out.write('rename-command HELLO ""\n')
    redis = redis_server(include=old)
    gate = bloomgate(redis, filters=[
        make_filter(ids_file(["1"]), **{"absent-reply": "nil"})
    ]).warm()
    for words in (["HELLO", "3"], ["HELLO", "3", "AUTH", "default", "x"],
                  ["hello"], ["NOSUCH", "a"]):
        with gate.client() as client:
            want = redis.call(*words)
            assert want.startswith(b"-ERR unknown command '" + words[0].encode())
            assert client.call(*words) == want
            for _ in range(3):
                assert client.call("GET", "user:none") == resp.NIL2
            assert client.call("MGET", "user:none", "user:1") == resp.array(
                resp.NIL2, resp.NIL2
            )


INTROSPECTION = [
    ["COMMAND"], ["COMMAND", "COUNT"], ["COMMAND", "INFO", "get", "nosuch"],
    ["COMMAND", "DOCS", "get"], ["COMMAND", "LIST", "FILTERBY", "PATTERN", "x*"],
    ["COMMAND", "GETKEYS", "MSET", "a", "1", "b", "2"],
    ["CONFIG", "GET", "max*"], ["CONFIG", "SET", "nosuch", "1"],
    ["CLUSTER", "INFO"], ["CLUSTER", "NODES"], ["MODULE", "LIST"], ["ROLE"],
    ["SLOWLOG", "LEN"], ["LATENCY", "DOCTOR"], ["MEMORY", "DOCTOR"],
    ["ACL", "WHOAMI"], ["ACL", "CAT"], ["OBJECT", "HELP"], ["SCRIPT", "EXISTS", "x"],
    ["FUNCTION", "STATS"], ["READONLY"], ["DBSIZE"], ["LASTSAVE"], ["WAIT", "0", "0"],
    ["SCAN", "0"], ["DEBUG", "JMAP"], ["BF.INFO", "other"],
]


def test_introspection_is_redis_own(closed):
    """FAULTS A10, B8: COMMAND, CONFIG, CLUSTER and the like are forwarded, in
    both protocols; nothing closes the connection."""
    redis, gate = closed
    for protocol in (2, 3):
        with redis.client() as direct, gate.client() as client:
            for one in (direct, client):
                one.call("HELLO", protocol, "AUTH", "default", "secret")
            for words in INTROSPECTION:
                # Their order is a hash table's, the same on both ways.
                assert client.call(*words) == direct.call(*words), words
            info = client.value("INFO", "everything").decode()
            assert redis.info("run_id") in info and "# Commandstats" in info


def test_own_links_are_plain(closed):
    """FAULTS B10: bloomgate's own connections stay RESP2, never MONITOR, and
    subscribe nowhere that commands are sent."""
    redis, gate = closed
    with gate.client() as client:
        assert client.call("AUTH", "secret") == resp.OK
        assert client.call("SET", "user:2", "x") == resp.OK
        assert client.call("BF.ADD", "user", "3") == b":1\r\n"
        wait.until(lambda: client.call("GET", "user:none") == NULL, 5, "absent")
        generation = redis.value("HGET", "bloom:{user}:meta", "active")
        gate.rebuild()
        wait.until(
            lambda: redis.value("HGET", "bloom:{user}:meta", "active") != generation,
            20, "rebuilt",
        )
        mine = client.value("CLIENT", "ID")
        lines = redis.value("CLIENT", "LIST").decode().splitlines()
    own = [dict(f.split("=", 1) for f in line.split()) for line in lines]
    own = [c for c in own if c["id"] != str(mine) and c["cmd"] != "client|list"]
    assert len(own) >= 2
    for link in own:
        assert link["resp"] == "2" and not set(link["flags"]) & set("Oxbt"), link
        if link["sub"] != "0" or link["psub"] != "0":
            assert link["cmd"].endswith("subscribe"), link
    assert redis.calls("monitor") == 0


def test_pushes_take_no_replys_place(closed):
    """FAULTS B11: while messages pour in, a RESP3 subscriber's replies, local,
    forwarded and merged, come whole and in their order."""
    redis, gate = closed
    redis.value("SET", "user:1", "one")
    count = 300
    with gate.client(seconds=30) as client:
        client.call("HELLO", 3, "AUTH", "default", "secret")
        client.call("GET", "user:none")
        assert client.call("SUBSCRIBE", "ch").startswith(b">3")

        def pour():
            with redis.client() as publisher:
                publisher.call("AUTH", "secret")
                message = resp.encode("PUBLISH", "ch", "m" * 50)
                publisher.exchange(message * count, count)

        thread = threading.Thread(target=pour)
        thread.start()
        replies, pushes = [], 0
        for turn in range(30):
            client.send(
                resp.encode("GET", "user:none") + resp.encode("GET", "user:1")
                + resp.encode("MGET", "user:none", "user:1", "no")
                + resp.encode("ECHO", turn)
            )
            due = len(replies) + 4
            while len(replies) < due:
                reply = client.read()
                if reply.startswith(b">"):
                    assert reply.endswith(resp.bulk("m" * 50)), reply
                    pushes += 1
                else:
                    replies.append(reply)
        while pushes < count:
            assert client.read().endswith(resp.bulk("m" * 50))
            pushes += 1
        thread.join()
        client.quiet()
    for turn in range(30):
        absent, one, several, echo = replies[4 * turn : 4 * turn + 4]
        # Forwarded or not, as the session's state allows.
        assert absent in (NULL, resp.NIL3), turn
        assert one == resp.bulk("one"), turn
        assert several in (
            resp.array(nothing, resp.bulk("one"), resp.NIL3)
            for nothing in (NULL, resp.NIL3)
        ), turn
        assert echo == resp.bulk("%d" % turn), turn
