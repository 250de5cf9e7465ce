# SPDX-License-Identifier: BSD-2-Clause
"""
Law 1 and the last part of law 2 (issue "must hold" 3): whatever happens to the
filter's keys or to Redis, from the next read on no id that exists is called
absent; a rebuild follows by itself and absents come back. FAULTS: F4, F6, F7,
H1-H5, H7, H8, C6.
"""

import os
import random
import threading
import time

import pytest
from bg import resp, wait

NULL = resp.bulk("__NULL__")
META = "bloom:{user}:meta"
KNOWN = ["known%d" % i for i in range(2000)]


class Traffic:
    """Sessions that read ids that exist all the time; every reply must be
    nil or an upstream error, never "absent". Others read unknown ids."""

    def __init__(self, gate, rng, sessions=3):
        self.gate = gate
        self.wrong, self.read, self.absents, self.closed = [], 0, 0, 0
        self.stopping = threading.Event()
        seeds = [rng.random() for _ in range(sessions)]
        self.threads = [
            threading.Thread(target=self.run, args=(seed,)) for seed in seeds
        ]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def run(self, seed):
        rng = random.Random(seed)
        client = self.gate.client()
        while not self.stopping.is_set() and not self.wrong:
            ids = [rng.choice(KNOWN) for _ in range(5)]
            unknown = "no%d" % rng.randrange(10**9)
            data = b"".join(resp.encode("GET", "user:" + one) for one in ids)
            data += resp.encode("MGET", *["user:" + one for one in ids])
            data += resp.encode("GET", "user:" + unknown)
            try:
                client.send(data)
                replies = client.read_n(7)
            except (OSError, resp.Closed):
                self.closed += 1
                client.close()
                client = self.gate.client()
                continue
            for reply in replies[:6]:
                if b"__NULL__" in reply:
                    self.wrong.append((ids, replies))
            self.read += 1
            self.absents += replies[6] == NULL
        client.close()

    def check(self):
        assert not self.wrong, self.wrong[0]
        assert all(thread.is_alive() for thread in self.threads)


@pytest.fixture
def setting(redis, bloomgate, make_filter, ids_file):
    """Redis with data persisted nowhere, and a filter of KNOWN (several
    shards, so that some can be lost while others are read)."""
    path = ids_file(KNOWN)
    gate = bloomgate(redis, filters=[
        make_filter(path, capacity=100000, **{"error-rate": 1e-9})
    ])
    return redis, gate, path


def active(redis):
    return redis.value("HGET", META, "active")


def shard(redis, index=0):
    return b"bloom:{user}:" + active(redis) + b"/%d" % index


def shards(redis):
    count = redis.value("HGET", META, b"g:" + active(redis) + b":shards")
    return [shard(redis, i) for i in range(int(count))]


def flushall(redis):
    redis.value("FLUSHALL")


def flushdb_async(redis):
    redis.value("FLUSHDB", "ASYNC")


def delete_one_shard(redis):
    assert redis.value("DEL", shard(redis)) == 1


def delete_last_shard(redis):
    assert redis.value("UNLINK", shards(redis)[-1]) == 1


def delete_all_shards(redis):
    assert redis.value("DEL", *shards(redis)) >= 1


def delete_meta(redis):
    assert redis.value("DEL", META) == 1


def delete_everything(redis):
    keys = redis.value("KEYS", "bloom:*")
    assert redis.value("DEL", *keys) == len(keys)


def expire_a_shard(redis):
    assert redis.value("PEXPIRE", shard(redis), 1) == 1


def expire_the_meta(redis):
    assert redis.value("PEXPIRE", META, 1) == 1


def wrong_tag(redis):
    key = shard(redis)
    size = redis.value("STRLEN", key)
    redis.value("SETRANGE", key, size - 8, b"\x01" * 8)


def zero_tag(redis):
    key = shard(redis)
    size = redis.value("STRLEN", key)
    redis.value("SETRANGE", key, size - 8, b"\x00" * 8)


def zeroed_shard(redis):
    """The right length, but all zero: an empty string that looks whole."""
    key = shard(redis)
    size = redis.value("STRLEN", key)
    redis.value("SET", key, b"\x00" * size)


def empty_shard(redis):
    """FAULTS H7: SET key ""."""
    redis.value("SET", shard(redis), "")


def short_shard(redis):
    key = shard(redis)
    redis.value("SET", key, redis.value("GETRANGE", key, 0, 99))


def other_type(redis):
    key = shard(redis)
    redis.value("DEL", key)
    redis.value("LPUSH", key, "x")


def renamed_shard(redis):
    key = shard(redis)
    redis.value("RENAME", key, key + b":gone")


def other_generation(redis):
    """A shard of another filter in its place: right size, other tag."""
    key = shard(redis)
    size = redis.value("STRLEN", key)
    redis.value("SET", key, os.urandom(size))


def restart_empty(redis):
    redis.restart()


def restart_with_snapshot(redis):
    redis.save()
    redis.keep_snapshot("now")
    redis.restart("now")


def swapped_databases(redis):
    redis.value("SWAPDB", 0, 1)


DAMAGES = [
    flushall, flushdb_async, delete_one_shard, delete_last_shard,
    delete_all_shards, delete_meta, delete_everything, expire_a_shard,
    expire_the_meta, wrong_tag, zero_tag, zeroed_shard, empty_shard, short_shard,
    other_type, renamed_shard, other_generation, restart_empty, restart_with_snapshot, swapped_databases,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda d: d.__name__)
def test_damage_during_traffic(setting, rng, damage):
    redis, gate, _ = setting
    before = gate.metric("filter_rebuilds_total", filter="user", result="ok")
    with Traffic(gate, rng) as traffic:
        wait.until(lambda: traffic.absents > 50 or traffic.wrong, 10, "traffic")
        damage(redis)
        # The very next read of this session, too.
        with gate.client() as client:
            for one in KNOWN[:300]:
                try:
                    reply = client.call("GET", "user:" + one)
                except (OSError, resp.Closed):
                    break
                assert reply == resp.NIL2 or reply.startswith(b"-"), reply
        traffic.check()
        wait.until(
            lambda: traffic.wrong
            or gate.metric("filter_rebuilds_total", filter="user", result="ok")
            > before,
            30, "a rebuild follows %s" % damage.__name__,
        )
        gate.wait_state("serving", seconds=20)
        seen = traffic.absents
        wait.until(
            lambda: traffic.absents > seen + 20 or traffic.wrong, 20,
            "absents come back",
        )
        traffic.check()
    with gate.client() as client:
        assert client.call("GET", "user:" + KNOWN[0]) == resp.NIL2
        assert client.value("SET", "user:after", "v") == "OK"
        assert client.call("GET", "user:after") == resp.bulk("v")


def test_meta_of_another_type(setting, rng):
    """Nothing is absent while it is unreadable, nothing of it is destroyed;
    a rebuild follows when a person has taken it away."""
    redis, gate, _ = setting
    with Traffic(gate, rng, 2) as traffic:
        redis.value("RENAME", META, "kept")
        redis.value("SET", META, "a string")
        wait.until(
            lambda: gate.metric("filter_ready", filter="user") == 0, 20, "not ready"
        )
        traffic.check()
        assert redis.value("GET", META) == b"a string"
        redis.value("DEL", META)
        gate.wait_state("serving", seconds=40)
        traffic.check()


def test_twice_in_a_row(setting, rng):
    redis, gate, _ = setting
    with Traffic(gate, rng, 2) as traffic:
        for damage in (flushall, wrong_tag, flushall, restart_empty, delete_meta):
            gate.wait_state("serving", seconds=30)
            wait.until(lambda: active(redis), 20, "a generation is active")
            damage(redis)
            traffic.check()
        gate.wait_state("serving", seconds=30)
        traffic.check()


def test_an_older_snapshot_lacks_adds_under_the_right_tag(
    redis, bloomgate, make_filter, folder
):
    """Trust: the run id is another, so nothing is absent before the rebuild
    is through, although every tag is right."""
    go = os.path.join(folder, "go")
    ids = os.path.join(folder, "ids")
    with open(ids, "w") as out:
        out.write("1\n")
    with open(go, "w"):
        pass
    script = "while [ ! -e %s ]; do sleep 0.05; done; cat %s" % (go, ids)
    gate = bloomgate(redis, filters=[
        make_filter("", rebuild={"source": {"command": ["sh", "-c", script]}})
    ])
    redis.save()
    redis.keep_snapshot("older")
    later = ["later%d" % i for i in range(100)]
    with gate.client() as client, open(ids, "a") as database:
        for one in later:
            database.write(one + "\n")
            database.flush()
            assert client.value("BF.ADD", "user", one) == 1
    os.unlink(go)
    for _ in range(2):
        redis.restart("older")
        with gate.client() as client:
            end = wait.deadline(2)
            while time.monotonic() < end:
                for one in later[:20] + ["1", "unknown"]:
                    reply = client.call("GET", "user:" + one)
                    assert reply == resp.NIL2 or reply.startswith(
                        b"-ERR bloomgate: upstream"
                    ), (one, reply)
        assert gate.readiness()["user"] in ("suspect", "building", "loading")
    with open(go, "w"):
        pass
    gate.wait_state("serving", seconds=40)
    with gate.client() as client:
        for one in later:
            assert client.call("GET", "user:" + one) == resp.NIL2
        wait.until(lambda: client.call("GET", "user:unknown") == NULL, 10, "absent again")


def test_adds_while_suspect_are_kept(redis, bloomgate, make_filter, folder):
    go = os.path.join(folder, "go")
    with open(go, "w"):
        pass
    script = "while [ ! -e %s ]; do sleep 0.05; done; echo 1" % go
    gate = bloomgate(redis, filters=[
        make_filter("", rebuild={"source": {"command": ["sh", "-c", script]}})
    ])
    os.unlink(go)
    redis.restart()

    def added():
        with gate.client() as client:
            return client.value("BF.ADD", "user", "while-suspect") in (0, 1)

    wait.until(
        lambda: gate.metric("filter_rebuild_in_progress", filter="user") == 1,
        20, "the rebuild runs",
    )
    # Adds go to the new generation once it is open; its source is read after.
    wait.until(
        lambda: redis.value(
            "HGET", META, b"g:%s:state" % (redis.value("HGET", META, "building") or b"")
        ) == b"building", 20, "an open generation",
    )
    wait.until(added, 10, "an add")
    with open(go, "w"):
        pass
    gate.wait_state("serving", seconds=40)
    with gate.client() as client:
        assert client.value("BF.EXISTS", "user", "while-suspect") == 1
        assert client.call("GET", "user:while-suspect") == resp.NIL2
        wait.until(lambda: client.call("GET", "user:none") == NULL, 10, "absent again")


def test_bloomgate_killed_during_a_rebuild(redis, bloomgate, make_filter, folder):
    """Law 8: the serving generation stays; the next start goes on."""
    go = os.path.join(folder, "go")
    with open(go, "w"):
        pass
    script = "while [ ! -e %s ]; do sleep 0.05; done; seq 1 1000" % go
    gate = bloomgate(redis, lease="2s", filters=[
        make_filter("", rebuild={"source": {"command": ["sh", "-c", script]}})
    ])
    serving = active(redis)
    os.unlink(go)
    gate.rebuild()
    wait.until(lambda: redis.value("HGET", META, "building"), 20, "building")
    gate.kill()
    assert active(redis) == serving
    with open(go, "w"):
        pass
    gate.start()
    gate.wait_state("serving", seconds=30)
    assert gate.call("GET", "user:7") == resp.NIL2
    wait.until(lambda: gate.call("GET", "user:none") == NULL, 10, "absent again")
    # What the dead one had begun does not stay for ever.
    # (As long as its lock runs, somebody else is building.)

    def rebuilt():
        gate.admin("REBUILD", "user")
        return active(redis) not in (serving, None)

    wait.until(rebuilt, 40, "a new generation", pause=0.1)
    wait.until(lambda: not redis.value("HGET", META, "building"), 20, "none building")


def test_a_source_that_fails_changes_nothing(redis, bloomgate, make_filter, folder):
    """Law 8: too few, an error, a line too long: refused, with the reason."""
    ids = os.path.join(folder, "ids")
    with open(ids, "w") as out:
        out.writelines("%d\n" % i for i in range(1000))
    script = "cat %s; exit $(cat %s.status)" % (ids, ids)

    def status(text):
        with open(ids + ".status", "w") as out:
            out.write(text)

    status("0")
    gate = bloomgate(redis, filters=[
        make_filter("", rebuild={"source": {"command": ["sh", "-c", script]},
                                 "min-elements": 100})
    ])
    serving = active(redis)

    def fails(prepare, result=("failed", "refused")):
        def count():
            return sum(
                gate.metric("filter_rebuilds_total", filter="user", result=one)
                for one in result
            )
        before = count()
        prepare()
        gate.rebuild()
        wait.until(lambda: count() > before, 20, prepare.__name__)
        assert active(redis) == serving
        assert gate.call("GET", "user:7") == resp.NIL2
        # The epoch has changed: maybe, until the next heartbeat.
        wait.until(lambda: gate.call("GET", "user:none") == NULL, 10, "absent again")

    def exit_status():
        status("3")

    def too_few():
        status("0")
        with open(ids, "w") as out:
            out.writelines("%d\n" % i for i in range(50))

    def shrunk():
        with open(ids, "w") as out:
            out.writelines("%d\n" % i for i in range(400))

    def too_long():
        with open(ids, "w") as out:
            out.writelines("%d\n" % i for i in range(1000))
            out.write("x" * 5000 + "\n")

    for prepare in (exit_status, too_few, shrunk, too_long):
        fails(prepare)


def test_master_that_becomes_a_replica(redis_server, bloomgate, make_filter, ids_file):
    """It keeps its run id and its connections, and takes over data that lack what
    was added: its first refusal of a heartbeat ends the lease."""
    redis, other = redis_server(tcp=True), redis_server(tcp=True)
    gate = bloomgate(redis, filters=[make_filter(ids_file(KNOWN))])

    def synced(server):
        return b"master_link_status:up" in server.value("INFO", "replication")

    def port(server):
        return server.value("CONFIG", "GET", "port")[1]

    for server in (redis, other):
        server.call("CONFIG", "SET", "repl-diskless-sync-delay", "0")
    assert other.call("REPLICAOF", "127.0.0.1", port(redis)) == b"+OK\r\n"
    wait.until(lambda: synced(other), 20, "the other is in sync")
    other.call("REPLICAOF", "NO", "ONE")
    with gate.client() as client:
        # A first replica gives the master a new history: rebuilt for it.
        wait.until(lambda: client.call("GET", "user:late") == NULL, 20, "absent")
        assert client.call("BF.ADD", "user", "late") == b":1\r\n"
        redis.call("REPLICAOF", "127.0.0.1", port(other))
        wait.until(lambda: synced(redis), 20, "a replica")
        wait.until(lambda: gate.events("heartbeat_failed"), 5, "refused")
        for _ in range(100):
            assert client.call("GET", "user:late") == b"$-1\r\n"


def never_absent(gate, ids, seconds, until):
    """Asks for ids as long as until is not yet true: none may be absent."""
    end = wait.deadline(seconds)
    with gate.client(seconds=30) as client:
        while not until():
            for one in ids:
                assert client.call("GET", "user:" + one) != NULL, one
            assert time.monotonic() < end


def rebuilt(gate, count):
    return lambda: len(gate.events("rebuild_done")) >= count


def test_demoted_and_promoted_again(redis_server, bloomgate, make_filter, folder):
    """The process, its connections and its run id stay; the data are another's,
    which lacked the last adds. Model rule: trust dies with the history."""
    first, second = redis_server(tcp=True), redis_server(tcp=True)
    ids = os.path.join(folder, "ids")
    with open(ids, "w") as out:
        out.write("1\n")
    gate = bloomgate(first, filters=[
        make_filter("", rebuild={"source": {"command": ["cat", ids]}})
    ])

    def follow(one, other):
        host, port = other.address.rsplit(":", 1)
        assert one.value("REPLICAOF", host, port) == "OK"
        wait.until(lambda: one.info("master_link_status") == "up", 20, "the copy")
        assert one.value("REPLICAOF", "NO", "ONE") == "OK"

    follow(second, first)
    with open(ids, "a") as out:
        out.write("n1\nn2\n")
    assert gate.value("BF.MADD", "user", "n1", "n2") == [1, 1]
    done = len(gate.events("rebuild_done"))
    follow(first, second)
    # One heartbeat may pass until it is seen: a second master took writes.
    wait.until(
        lambda: gate.metric("filter_ready", filter="user") == 0 or rebuilt(gate, done + 1)(),
        10, "suspicion",
    )
    never_absent(gate, ["n1", "n2"], 40, rebuilt(gate, done + 1))
    gate.wait_state("serving", seconds=40)
    wait.until(lambda: gate.call("GET", "user:none") == NULL, 20, "absent again")
    never_absent(gate, ["1", "n1", "n2"], 40, rebuilt(gate, done + 1))


def test_swapped_away_and_back(redis, bloomgate, make_filter, folder):
    """An epoch below one that was seen: the data are of an earlier moment."""
    ids = os.path.join(folder, "ids")
    with open(ids, "w") as out:
        out.write("1\n")
    gate = bloomgate(redis, filters=[
        make_filter("", rebuild={"source": {"command": ["cat", ids]}})
    ])
    gate.rebuild()
    wait.until(rebuilt(gate, 2), 20, "the second build")
    assert redis.value("SWAPDB", 0, 1) == "OK"
    wait.until(rebuilt(gate, 3), 20, "the build after the swap")
    gate.wait_state("serving", seconds=20)
    with open(ids, "a") as out:
        out.write("n1\nn2\n")
    assert gate.value("BF.MADD", "user", "n1", "n2") == [1, 1]
    assert redis.value("SWAPDB", 0, 1) == "OK"
    wait.until(lambda: gate.events("filter_older"), 10, "suspicion")
    never_absent(gate, ["n1", "n2"], 40, rebuilt(gate, 4))
    gate.wait_state("serving", seconds=40)
    wait.until(lambda: gate.call("GET", "user:none") == NULL, 20, "absent again")
    with gate.client() as client:
        for one in ("1", "n1", "n2"):
            assert client.call("GET", "user:" + one) == resp.NIL2
