# SPDX-License-Identifier: BSD-2-Clause
"""
What differs from Redis on purpose (sequences/differences.txt): each row is shown
by a test, here or where it belongs. Everything else is test_differential.py's.
"""

import os

import pytest
from bg import resp, sequences, wait

HERE = os.path.dirname(os.path.abspath(__file__))


@pytest.fixture
def gate(redis_server, bloomgate, ids_file, make_filter):
    """Over every key of db 0, with nothing in it; filters in a store of their
    own."""
    redis, store = redis_server(), redis_server()
    every = make_filter(
        ids_file([]), keys=["{id*}"], **{"absent-reply": "nil"}
    )
    gate = bloomgate(
        redis, filters=[every], store={"address": store.address},
    ).warm()
    gate.redis = redis
    return gate


def test_each_row_is_shown_by_a_test():
    rows = [line.split(" | ") for line in sequences.lines("differences.txt")]
    assert len({row[0] for row in rows}) == len(rows) > 5
    for _, _, _, shown in rows:
        name, _, test = shown.partition("::")
        with open(os.path.join(HERE, name)) as text:
            assert ("def %s(" % test if test else "") in text.read(), shown


def local_get(gate, client):
    """Asks for absent keys until one is answered here."""
    tried = []

    def local():
        before = gate.metric("commands_total", source="filter")
        tried.append("none:%d" % len(tried))
        assert client.call("GET", tried[-1]) == resp.NIL2
        return gate.metric("commands_total", source="filter") > before

    wait.until(local, 10, "an answer from the filter")
    return tried[-1].encode()


def test_redis_does_not_see_what_is_answered_here(gate):
    redis = gate.redis
    redis.value("CONFIG", "SET", "notify-keyspace-events", "KEAm")
    with redis.client() as monitor, redis.client() as events:
        assert monitor.call("MONITOR") == resp.OK
        events.call("PSUBSCRIBE", "__key*__:*")
        redis.value("CONFIG", "RESETSTAT")
        with gate.client() as client:
            key = local_get(gate, client)
        assert redis.value("GET", "asked directly") is None
        # Of the two absent keys Redis saw one.
        seen = b""
        while b"asked directly" not in seen:
            seen += monitor.read()
        assert key not in seen
        missed = b""
        while b"asked directly" not in missed:
            missed += events.read()
        assert key not in missed


def test_connections_and_commands_of_its_own(gate):
    redis = gate.redis
    with redis.client() as client:
        listed = client.value("CLIENT", "LIST").decode().splitlines()
        # That client and the one that redis.value() keeps, and others.
        assert len(listed) > 1
    with gate.client() as client:
        client.call("CLIENT", "SETNAME", "through")
        found = redis.value("CLIENT", "LIST").decode()
        assert "name=through" in found


def test_pause_does_not_stop_absent_replies(gate):
    with gate.client() as client, gate.redis.client() as paused:
        local_get(gate, client)
        # To the end of the test: Redis would not hear an UNPAUSE either.
        assert paused.call("CLIENT", "PAUSE", "600000", "ALL") == resp.OK
        paused.send(resp.encode("PING"))
        local_get(gate, client)
        paused.quiet()


def written_unseen(gate, client, *command):
    """Runs the command, after which k exists; what GET says of it here."""
    local_get(gate, client)
    client.call(*command)
    assert gate.redis.value("EXISTS", "k") == 1
    return client.call("GET", "k")


def test_undeclared_keys_are_not_learned(gate):
    with gate.client() as client:
        got = written_unseen(gate, client, "EVAL", "redis.call('set', 'k', 'v')", "0")
        assert got in (resp.NIL2, resp.bulk("v"))  # a slow check is maybe
        # Declared, it is.
        client.call("EVAL", "redis.call('set', KEYS[1], 'v')", "1", "k")
        assert client.call("GET", "k") == resp.bulk("v")


def test_swapdb_is_not_learned(gate):
    with gate.redis.client() as direct:
        direct.call("SELECT", "1")
        direct.call("SET", "k", "v")
    with gate.client() as client:
        got = written_unseen(gate, client, "SWAPDB", "0", "1")
        assert got in (resp.NIL2, resp.bulk("v"))
        client.call("SET", "k", "w")
        assert client.call("GET", "k") == resp.bulk("w")
