# SPDX-License-Identifier: BSD-2-Clause
"""
check: mirror: absents without a round trip, only while the mirror is in step with
Redis (DESIGN.md, "Mirror", laws 1 and 2, model rules 4 and 5), and remote checks
whenever it is not.
"""

import json
import os
import subprocess
import time

import pytest
from bg import daemon, resp, wait

NULL = resp.bulk("__NULL__")
META = "bloom:{user}:meta"
EVENTS = "bloom:{user}:events"
KNOWN = ["known%d" % i for i in range(2000)]


def mirror_of(make_filter, path, **over):
    return make_filter(path, **{"check": "mirror", "max-staleness": "1s", **over})


@pytest.fixture
def pair(redis, bloomgate, make_filter, ids_file):
    """Two bloomgates before one Redis; both mirrors in step."""
    path = ids_file(KNOWN)
    gates = [bloomgate(redis, filters=[mirror_of(make_filter, path)])
             for _ in range(2)]
    for gate in gates:
        in_step(gate)
        gate.warm()
    return gates


@pytest.fixture
def gate(redis, bloomgate, make_filter, ids_file):
    gate = bloomgate(redis, filters=[mirror_of(make_filter, ids_file(KNOWN))])
    in_step(gate)
    return gate.warm()


def word(gate):
    return json.loads(gate.http("/status.json")[1])["filters"][0]["mirror"]


def staleness(gate):
    return gate.metric("mirror_staleness_seconds", filter="user")


def in_step(gate, seconds=30):
    # Its load may wait for a part of 10 s where there are others.
    wait.until(lambda: staleness(gate) < 1, seconds, "the mirror is in step")


def checks(redis):
    """Remote checks that Redis has executed."""
    info = redis.value("INFO", "commandstats").decode()
    for line in info.splitlines():
        if line.startswith("cmdstat_bitfield_ro:"):
            return int(line.split("calls=")[1].split(",")[0])
    return 0


def read(gate, i):
    return gate.call("GET", "user:%s" % i)


def test_absent_without_a_round_trip(gate, redis):
    before = checks(redis)
    with gate.client() as client:
        for i in range(500):
            assert client.call("GET", "user:no%d" % i) == NULL
        assert client.call("MGET", "user:no1", "user:known1", "user:no2") == (
            b"*3\r\n" + NULL + resp.NIL2 + NULL)
        for one in KNOWN[:500]:
            assert client.call("GET", "user:" + one) == resp.NIL2
        assert client.call("EXISTS", "user:no1", "user:no2") == b":0\r\n"
        assert client.call("BF.EXISTS", "user", "no1") == b":0\r\n"
        assert client.call("BF.EXISTS", "user", "known1") == b":1\r\n"
    assert gate.admin("CHECK", "user", "no1", "known1") == [0, 1]
    assert checks(redis) == before
    assert gate.metric("filter_lookups_total", result="absent") >= 500
    active = redis.value("HGET", META, "active")
    shards = int(redis.value("HGET", META, b"g:%s:shards" % active))
    size = redis.value("STRLEN", b"bloom:{user}:%s/0" % active)
    assert gate.metric("mirror_bytes") == shards * (size - 8)
    assert word(gate) == "in step"


def test_remote_spares_the_checks_of_known_ids(redis, bloomgate, make_filter, ids_file):
    path = ids_file(KNOWN)
    gate = bloomgate(redis, filters=[make_filter(path, check="remote")])
    in_step(gate)
    gate.warm()
    before = checks(redis)
    for one in KNOWN[:100]:
        assert read(gate, one) == resp.NIL2
    assert checks(redis) == before
    for i in range(100):
        assert read(gate, "no%d" % i) == NULL
    assert checks(redis) == before + 100


def test_own_adds_count_at_once(gate, redis):
    with gate.client() as one, gate.client() as two:
        for i in range(500):
            key = "user:new%d" % i
            assert two.call("GET", key) == NULL
            if i % 2:
                assert one.call("BF.ADD", "user", "new%d" % i) == b":1\r\n"
                assert two.call("GET", key) == resp.NIL2
            else:
                assert one.call("SET", key, "v") == resp.OK
                assert two.call("GET", key) == resp.bulk("v")


def test_others_adds_arrive(pair):
    one, two = pair
    with one.client() as a, two.client() as b:
        for i in range(300):
            assert a.call("GET", "user:far%d" % i) == NULL
            assert b.call("SET", "user:far%d" % i, "v") == resp.OK
            # max-staleness is 1 s; a message takes no such time.
            wait.until(
                lambda i=i: a.call("GET", "user:far%d" % i) == resp.bulk("v"),
                1, "an id that another added", pause=0.001)


def cut_events(redis):
    for line in redis.value("CLIENT", "LIST").decode().splitlines():
        if "name=bloomgate-events" in line:
            redis.value("CLIENT", "KILL", "ID", line.split("id=")[1].split(" ")[0])


def test_lost_events_link(pair, redis):
    """Cut: remote checks until it has been loaded again."""
    one, two = pair
    loads = len(one.events("mirror_loaded"))
    cut_events(redis)
    wait.until(lambda: one.events("redis_down"), 5, "the cut is noticed")
    with one.client() as a, two.client() as b:
        for i in range(200):
            key = "user:cut%d" % i
            known = word(one) == "waiting"
            assert b.call("SET", key, "v") == resp.OK
            first = a.call("GET", key)
            if known and word(one) == "waiting":
                assert first == resp.bulk("v")
            wait.until(lambda key=key: a.call("GET", key) == resp.bulk("v"),
                       1, "an id that another added", pause=0.001)
        assert a.call("GET", "user:none") == NULL
    wait.until(lambda: len(one.events("mirror_loaded")) > loads, 30, "loaded again")
    in_step(one)


def test_paused_redis_ends_the_absents(gate, redis):
    """Absent at most max-staleness after the last heartbeat."""
    with gate.client() as client:
        redis.pause()
        try:
            began = time.monotonic()
            last = began
            while True:
                client.send(resp.encode("GET", "user:nobody"))
                if not wait.ready(client.sock, 1.5):
                    break
                assert client.read() == NULL
                last = time.monotonic()
                assert last - began < 30
            # It was in step at most as of the moment of the pause.
            assert last - began < 1.5 * wait.SLOW
        finally:
            redis.resume()
        assert client.read() in (NULL, resp.NIL2)
        in_step(gate)
        assert client.call("GET", "user:nobody") == NULL


@pytest.mark.parametrize("message", [
    b"", b"\x01", b"\x02\x01" + b"\0" * 20, b"\x01\x03" + b"\0" * 20,
    b"\x01\x01" + b"\0" * 16 + b"\xff\xff\xff\xff",
    b"\x01\x01" + b"\0" * 7 + b"\x01" + b"\0" * 6 + b"\x27\x10" + b"\0\0\0\0",
    b"\x01\x02" + b"\0" * 7 + b"\x01" + b"\0" * 6 + b"\x27\x10" + b"\0\0\0\0",
], ids=["empty", "short", "version", "kind", "count", "seq", "epoch"])
def test_message_that_does_not_fit(gate, redis, message):
    """A gap: everything is loaded again, and meanwhile checked remotely."""
    loads = len(gate.events("mirror_loaded"))
    redis.value("PUBLISH", EVENTS, message)
    wait.until(lambda: gate.events("mirror_gap"), 5, "the gap is seen")
    assert read(gate, "known1") == resp.NIL2
    assert read(gate, "nobody") == NULL
    wait.until(lambda: len(gate.events("mirror_loaded")) > loads, 10, "loaded again")
    in_step(gate)


def test_message_that_was_lost(gate, redis):
    """seq in Redis is ahead of what has arrived: in step no longer."""
    redis.value("HINCRBY", META, "seq", "5")
    before = checks(redis)

    def asks():
        assert read(gate, "nobody") == NULL
        return checks(redis) > before

    wait.until(asks, 5, "remote checks")
    wait.until(lambda: gate.events("mirror_gap"), 15, "the gap is seen")
    in_step(gate)
    assert read(gate, "nobody") == NULL


def test_rebuild_and_swap(gate, redis, ids_file):
    """The old mirror serves until commit, the new one is loaded afterwards."""
    with gate.client() as client:
        for i in range(3):
            loads = len(gate.events("mirror_loaded"))
            gate.rebuild()
            while len(gate.events("mirror_loaded")) == loads:
                assert client.call("GET", "user:known%d" % (i + 7)) == resp.NIL2
                assert client.call("GET", "user:nobody") in (NULL, resp.NIL2)
            assert client.call("SET", "user:late%d" % i, "v") == resp.OK
            assert client.call("GET", "user:late%d" % i) == resp.bulk("v")
            in_step(gate)
            assert client.call("GET", "user:nobody") == NULL
    before = checks(redis)
    assert read(gate, "nobody2") == NULL
    assert checks(redis) == before


@pytest.mark.parametrize("over", [
    {"capacity": 1000000, "error-rate": 0.01, "layout": "single"},
    {"capacity": 2000000, "error-rate": 0.001, "rebuild": {"redis-share": 0.25}},
    {"scheme": "keyed", "key-file": True},
    {"capacity": 1, "error-rate": 0.25},
], ids=["single", "shards", "keyed", "tiny"])
def test_shapes(redis, bloomgate, make_filter, ids_file, folder, over):
    over = dict(over)
    if over.get("key-file"):
        over["key-file"] = os.path.join(folder, "key")
        with open(over["key-file"], "wb") as out:
            out.write(bytes(range(32)))
    ids = KNOWN if over.get("capacity") != 1 else ["one"]
    gate = bloomgate(
        redis, filters=[mirror_of(make_filter, ids_file(ids), **over)])
    in_step(gate)
    gate.warm()
    before = checks(redis)
    with gate.client() as client:
        for one in ids:
            assert client.call("GET", "user:" + one) == resp.NIL2
        absent = sum(client.call("GET", "user:no%d" % i) == NULL for i in range(1000))
    assert checks(redis) == before
    assert absent > (950 if len(ids) > 1 else 500)


def test_subscribe_refused(redis, bloomgate, make_filter, ids_file):
    """Without the right to its channel bloomgate checks remotely, and says so."""
    redis.value("ACL", "SETUSER", "gatekeeper", "on", "nopass", "~*", "+@all",
                "-subscribe", "allchannels")
    gate = bloomgate(redis, filters=[mirror_of(make_filter, ids_file(KNOWN))],
                     upstream={"address": redis.address, "username": "gatekeeper"})
    wait.until(lambda: gate.events("events_refused"), 10, "it is said")
    gate.warm()
    before = checks(redis)
    assert read(gate, "nobody") == NULL
    assert read(gate, "known1") == resp.NIL2
    assert checks(redis) == before + 2
    assert len(gate.events("events_refused")) == 1


def test_config_check_prints_the_memory(gate):
    done = subprocess.run([daemon.PROGRAM, "-t", "-c", gate.file], check=True,
                          stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    assert "memory for filters: 0.5 MiB; 1.5 MiB while" in done.stdout
