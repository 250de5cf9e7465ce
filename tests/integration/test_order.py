# SPDX-License-Identifier: BSD-2-Clause
"""
Laws 2 and 3 (issue "must hold" 4): what a session has written it sees in its
next read, in the same write() too, while rebuilds and swaps go on all the time.
FAULTS: D3, D4, D8, H1, H13.
"""

import os
import threading
import time

import pytest
from bg import resp, wait

NULL = resp.bulk("__NULL__")


class Rebuilding:
    """Drives REBUILD over the admin socket, one after the other."""

    def __init__(self, gate, name="user"):
        self.gate, self.name = gate, name
        self.stopping = threading.Event()
        self.refused = []
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.before = self.done()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.thread.join()

    def done(self):
        return self.gate.metric(
            "filter_rebuilds_total", filter=self.name, result="ok"
        )

    def run(self):
        with resp.Client(self.gate.admin_address, seconds=30) as admin:
            while not self.stopping.is_set():
                reply = admin.call("REBUILD", self.name)
                # Busy with the one before: ask again.
                self.stopping.wait(0.002 if reply.startswith(b"+") else 0.005)

    def swaps(self):
        return self.done() - self.before


class Source:
    """A list of ids that grows, as a database does: appended to where a
    command prints it, written anew and renamed where a file is the source."""

    def __init__(self, folder, kind):
        self.path = os.path.join(folder, "growing.txt")
        self.kind = kind
        self.ids = ["base%d" % i for i in range(1000)]
        self.write("w", self.path, self.ids)

    @staticmethod
    def write(mode, path, ids):
        with open(path, mode) as out:
            out.writelines(one + "\n" for one in ids)

    def add(self, ids):
        self.ids += ids
        if self.kind == "command":
            self.write("a", self.path, ids)
        else:
            self.write("w", self.path + ".new", self.ids)
            os.rename(self.path + ".new", self.path)

    def settings(self):
        if self.kind == "command":
            return {"command": ["cat", self.path]}
        return {"file": self.path, "trust": True}


@pytest.mark.parametrize("kind", ["command", "file"])
def test_own_writes_are_seen_through_rebuilds(
    redis, bloomgate, make_filter, folder, rng, counts, kind
):
    """FAULTS D3, D8: 10,000 random interleavings, half from each kind of source.
    Every id is in the source before it is written here, as with a database."""
    total = counts(5000, full=20000, small=1000)
    source = Source(folder, kind)
    gate = bloomgate(redis, filters=[
        make_filter("", rebuild={"source": source.settings()})
    ])
    clients = [gate.client() for _ in range(4)]
    wrong = []
    with Rebuilding(gate) as rebuilding:
        index = 0
        end = wait.deadline(120)
        while index < total or rebuilding.swaps() < 5:
            assert time.monotonic() < end, "%d interleavings, %d swaps" % (
                index, rebuilding.swaps()
            )
            batch = []
            names = ["%s%d" % (kind, index + i) for i in range(len(clients))]
            index += len(clients)
            source.add(names)
            for client, name in zip(clients, names):
                data, wanted = interleaving(rng, name)
                client.send_cut(data, resp.cuts(rng, len(data), 2))
                batch.append((client, name, wanted))
            for client, name, wanted in batch:
                replies = client.read_n(len(wanted))
                if replies != wanted:
                    wrong.append((name, wanted, replies))
            # Another session sees it too, at once.
            client, name, _ = rng.choice(batch)
            reader = rng.choice(clients)
            if reader.call("GET", "user:" + name) == NULL:
                wrong.append((name, "another session says absent"))
            assert not wrong, wrong[:3]
        swaps = rebuilding.swaps()
    for client in clients:
        client.close()
    assert swaps >= 5
    # A changed epoch is maybe for a moment.
    wait.until(lambda: gate.call("GET", "user:never") == NULL, 5, "absent")
    print("%d interleavings over %d swaps" % (index, swaps))


def interleaving(rng, name):
    """(bytes, replies) that write an id and read it in one go."""
    key, value = "user:" + name, b"v-" + name.encode()
    plain = (resp.encode("ECHO", name), resp.bulk(name))
    absent = (resp.encode("GET", "user:no-" + name), None)
    parts = []
    if rng.random() < 0.5:
        parts.append((resp.encode("SET", key, value), resp.OK))
        there = resp.bulk(value)
    else:
        parts.append((resp.encode("BF.ADD", "user", name), None))
        there = resp.NIL2
    reads = [
        (resp.encode("GET", key), there),
        (resp.encode("MGET", key, "plain"), resp.array(there, resp.NIL2)),
        (resp.encode("EXISTS", key), resp.integer(there != resp.NIL2)),
        (resp.encode("BF.EXISTS", "user", name), resp.integer(1)),
    ]
    before = rng.sample([plain, absent], rng.randrange(3))
    for one in rng.sample(reads, rng.randrange(1, 4)):
        parts.append(one)
        if rng.random() < 0.3:
            parts.append(plain)
    parts = before + parts
    return b"".join(data for data, _ in parts), Wanted(
        [want for _, want in parts]
    )


class Wanted(list):
    """Replies; None stands for one of the allowed forms of it."""

    ALLOWED = {NULL, resp.NIL2, b":0\r\n", b":1\r\n"}

    def __eq__(self, replies):
        return len(self) == len(replies) and all(
            got == want or want is None and got in self.ALLOWED
            for want, got in zip(self, replies)
        )

    def __ne__(self, replies):
        return not self == replies


def test_wanted_sees_a_wrong_reply():
    assert Wanted([resp.OK, None]) == [resp.OK, NULL]
    assert Wanted([resp.OK]) != [NULL]
    assert Wanted([resp.bulk("v")]) != [NULL]
    assert Wanted([resp.NIL2, None]) != [resp.NIL2]


def open_for_reader(fifo):
    """Opens it for writing once somebody reads it."""

    def attempt():
        try:
            return os.fdopen(os.open(fifo, os.O_WRONLY | os.O_NONBLOCK), "w")
        except OSError:
            return None

    return wait.until(attempt, 20, "the source is read")


def test_an_add_while_the_source_is_read(redis, bloomgate, make_filter, folder):
    """Model rules 3 and 4: the source was opened before the id existed and
    never names it; the add must be in the new generation all the same."""
    gate_file = os.path.join(folder, "go")
    os.mkfifo(gate_file)
    ids = os.path.join(folder, "ids")
    with open(ids, "w") as out:
        out.write("1\n2\n")
    script = "cat %s; cat %s" % (ids, gate_file)
    gate = bloomgate(redis, serving=False, filters=[
        make_filter("", rebuild={"source": {"command": ["sh", "-c", script]}})
    ])
    open_for_reader(gate_file).close()  # the first build runs through
    gate.wait_state("serving")
    generation = redis.value("HGET", "bloom:{user}:meta", "active")
    for turn in range(3):
        gate.rebuild()
        with open_for_reader(gate_file):
            with gate.client() as client:
                assert client.value("BF.ADD", "user", "during%d" % turn) == 1
                assert client.call("SET", "user:set%d" % turn, "v") == resp.OK
                assert client.call("GET", "user:during%d" % turn) == resp.NIL2
        swapped = wait.until(
            lambda: redis.value("HGET", "bloom:{user}:meta", "active")
            not in (generation, None)
            and redis.value("HGET", "bloom:{user}:meta", "active"),
            20, "the swap",
        )
        generation = swapped
        gate.wait_state("serving")
        with gate.client() as client:
            assert client.call("GET", "user:during%d" % turn) == resp.NIL2
            assert client.call("GET", "user:set%d" % turn) == resp.bulk("v")
            wait.until(lambda: client.call("GET", "user:none") == NULL, 5, "absent")


def test_reads_are_answered_in_request_order(gate_user, rng):
    """FAULTS D4, D7: local answers wait for earlier, slower ones."""
    with gate_user.client() as client:
        client.call("SET", "user:1", "one")
        for _ in range(100):
            client.send(
                resp.encode("EVAL", "local x = 0 for i = 1, 20000 do x = x + i end"
                            " return 'slow'", 0)
                + resp.encode("GET", "user:none") + resp.encode("GET", "user:1")
                + resp.encode("EXISTS", "user:none") + resp.encode("PING")
            )
            assert client.read_n(5) == [
                resp.bulk("slow"), NULL, resp.bulk("one"), b":0\r\n", resp.PONG
            ]


def test_others_see_a_write_as_soon_as_it_is_acknowledged(gate_user):
    with gate_user.client() as writer, gate_user.client() as reader:
        for i in range(1000):
            assert reader.call("GET", "user:s%d" % i) == NULL
            assert writer.call("SET", "user:s%d" % i, "v") == resp.OK
            assert reader.call("GET", "user:s%d" % i) == resp.bulk("v")


@pytest.fixture
def gate_user(redis, bloomgate, make_filter, ids_file):
    return bloomgate(redis, filters=[make_filter(ids_file(["1"]))])
