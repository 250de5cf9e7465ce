# SPDX-License-Identifier: BSD-2-Clause
"""
The application: writers that add new ids through any bloomgate, readers that ask
for acknowledged and for unknown ones, and for each bloomgate one that asks for
unknown ids all the time, by which it is known since when it says absent again.
"""

import random
import threading
import time

from world import FILTER, resp

TICK = 0.003  # between requests of one thread: the load is bounded
SECONDS = 4  # how long a client waits for a reply
# Plain reads of one key; the reply to an existing one is never absent-like.
READS = (
    ("GET",), ("EXISTS",), ("STRLEN",), ("TTL",), ("TYPE",), ("HGET", "f"),
    ("HGETALL",), ("HLEN",), ("HMGET", "f", "g"), ("SISMEMBER", "m"), ("LLEN",),
    ("LRANGE", "0", "-1"), ("ZSCORE", "m"), ("GETRANGE", "0", "3"), ("DUMP",),
)


class Silent(Exception):
    """No reply in time, or the connection is gone: nothing is known."""


class Session:
    """One thread's connections, one to each bloomgate."""

    def __init__(self, world, rng):
        self.world = world
        self.rng = rng
        self.clients = {}

    def choose(self):
        gates = [g for g in self.world.gates if not g.away]
        if not gates or self.rng.random() < 0.02:
            gates = self.world.gates
        return self.rng.choice(gates)

    def client(self, gate):
        client = self.clients.get(gate.index)
        if client is None:
            client = resp.Client(gate.address, seconds=SECONDS)
            self.clients[gate.index] = client
            client.proto = self.rng.choice((2, 3))
            if client.proto == 3:
                client.call("HELLO", "3")
        return client

    def close(self, gate=None):
        for index in [gate.index] if gate else list(self.clients):
            client = self.clients.pop(index, None)
            if client:
                client.close()

    def ask(self, gate, requests):
        """The replies to a pipeline; Silent where one is missing."""
        try:
            client = self.client(gate)
            client.send(b"".join(resp.encode(*one) for one in requests))
            return client.read_n(len(requests))
        except (OSError, resp.Closed) as gone:
            self.close(gate)
            raise Silent from gone
        except AssertionError as failure:
            self.close(gate)
            if str(failure).startswith(("no reply", "connected to")):
                raise Silent from failure
            raise


def key(one, rng=None):
    return "user:%s" % one if rng is None or rng.random() < 0.8 else (
        "user:%s:profile" % one)


def read_requests(rng, ids):
    """Requests about acknowledged ids: (request, ids that it asks about)."""
    requests = []
    while ids:
        kind = rng.random()
        some, ids = ids[:4], ids[4:]
        if kind < 0.2:
            requests.append((("MGET", *[key(i, rng) for i in some]), some))
        elif kind < 0.35:
            requests.append((("BF.MEXISTS", FILTER, *some), some))
        elif kind < 0.45:
            requests.append((("EXISTS", *[key(i, rng) for i in some]), some))
        else:
            for one in some:
                read = rng.choice(READS) if rng.random() < 0.6 else ("GET",)
                if rng.random() < 0.15:
                    requests.append((("BF.EXISTS", FILTER, one), [one]))
                else:
                    requests.append(((read[0], key(one, rng), *read[1:]), [one]))
    return requests


def judge(checker, gate, request, ids, reply, sent):
    """Tells the checker what one reply says about acknowledged ids."""
    name = request[0]
    if name.startswith("BF."):
        value = resp.parse(reply)
        if isinstance(value, resp.Error):
            return
        values = value if isinstance(value, list) else [value]
        for one, there in zip(ids, values):
            checker.read([one], gate.index, request, sent, not there, reply)
    elif name == "MGET" and not gate.by_error:
        value = resp.parse(reply)
        if isinstance(value, resp.Error):
            return
        for one, there in zip(ids, value):
            checker.read(
                [one], gate.index, request, sent, there == b"__NULL__", reply)
    elif gate.by_error or name == "GET":
        # An error for several keys means at least one of them.
        checker.read(ids, gate.index, request, sent, gate.absent(reply), reply)


class Traffic:
    def __init__(self, world, checker, seed, writers=3, readers=3):
        self.world = world
        self.checker = checker
        self.stopping = threading.Event()
        self.last_absent = {g.index: 0.0 for g in world.gates}
        self.threads = []
        for i in range(writers):
            self.add(self.write, "w%d" % i, seed)
        for i in range(readers):
            self.add(self.read, "r%d" % i, seed)
        for gate in world.gates:
            self.add(self.probe, "p%d" % gate.index, seed, gate)

    def add(self, loop, name, seed, *args):
        rng = random.Random("%s:%s" % (seed, name))
        self.threads.append(
            threading.Thread(target=self.run, args=(loop, name, rng, *args))
        )

    def start(self):
        for thread in self.threads:
            thread.start()

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            if thread.is_alive():
                thread.join()

    def run(self, loop, name, rng, *args):
        session = Session(self.world, rng)
        step = 0
        try:
            while not self.stopping.is_set():
                try:
                    loop(session, rng, "%s-%d" % (name, step), *args)
                except Silent:
                    with self.checker.lock:
                        self.checker.counts["requests without a reply"] += 1
                    self.stopping.wait(0.02)
                step += 1
                self.stopping.wait(TICK)
        except Exception as failure:  # a bug here must not go unseen
            self.checker.failure("%s: %r" % (name, failure))
            raise
        finally:
            session.close()

    # --- writers ---------------------------------------------------------------
    def write(self, session, rng, step):
        gate = session.choose()
        way = rng.choice(WAYS)
        ids = ["%s-%d" % (step, i) for i in range(rng.choice((1, 1, 2, 8)))]
        requests, replies = way(ids, rng)
        written = self.world.write_source(ids)
        sent = time.monotonic()
        answers = session.ask(gate, requests)
        done = [one for one, n in zip(ids, replies) if accepted(answers[n])]
        if way is transaction:
            done = self.of_transaction(ids, answers)
        if not done:
            with self.checker.lock:
                self.checker.counts["adds refused"] += len(ids)
            return
        self.checker.acknowledged(done, gate.index, way.__name__, sent, written)
        # At once through the others: the add must be everywhere.
        self.ask_known(session, session.choose(), rng, done[:4])

    def of_transaction(self, ids, answers):
        """All of it or nothing: a refused command is a refused transaction."""
        queued = [answer == b"+QUEUED\r\n" for answer in answers[1:-1]]
        executed = answers[-1].startswith(b"*")
        if executed and not all(queued):
            self.checker.failure("executed without all of its commands: %r" % answers)
        return [one for one, it in zip(ids, queued) if executed and it]

    # --- readers ---------------------------------------------------------------
    def read(self, session, rng, step):
        gate = session.choose()
        ids = self.checker.some(rng, rng.choice((1, 4, 16)))
        self.ask_known(session, gate, rng, ids)

    def ask_known(self, session, gate, rng, ids):
        asked = read_requests(rng, ids)
        sent = time.monotonic()
        replies = session.ask(gate, [request for request, _ in asked])
        for (request, some), reply in zip(asked, replies):
            judge(self.checker, gate, request, some, reply, sent)

    # --- probers ---------------------------------------------------------------
    def probe(self, session, rng, step, gate):
        ids = ["none-%s-%d" % (step, i) for i in range(2)]
        sent = time.monotonic()
        replies = session.ask(gate, [("GET", key(one)) for one in ids])
        absents = sum(gate.absent(reply) for reply in replies)
        self.checker.unknown(absents, len(replies))
        if absents:
            self.last_absent[gate.index] = sent
        self.stopping.wait(0.01)

    def absent_everywhere(self, since):
        return all(at > since for at in self.last_absent.values())


def accepted(reply):
    return not reply.startswith(b"-")


# Ways to add: the requests, and for each id which reply acknowledges it.
def bf_add(ids, rng):
    return [("BF.ADD", FILTER, one) for one in ids], range(len(ids))


def bf_madd(ids, rng):
    return [("BF.MADD", FILTER, *ids)], [0] * len(ids)


def sets(ids, rng):
    return [("SET", key(one), rng.random()) for one in ids], range(len(ids))


def setex(ids, rng):
    return [("SET", key(one), "v", "EX", "100") for one in ids], range(len(ids))


def mset(ids, rng):
    words = [word for one in ids for word in (key(one), "v")]
    return [("MSET", *words)], [0] * len(ids)


def hset(ids, rng):
    return (
        [("HSET", "user:%s:profile" % one, "f", "v") for one in ids],
        range(len(ids)),
    )


def set_and_get(ids, rng):
    requests = []
    for one in ids:
        requests += [("SET", key(one), "v"), ("GET", key(one))]
    return requests, range(0, 2 * len(ids), 2)


def transaction(ids, rng):
    requests = [("MULTI",)] + [("SET", key(one), "v") for one in ids] + [("EXEC",)]
    return requests, [len(ids) + 1] * len(ids)


WAYS = (bf_add, bf_madd, sets, setex, mset, hset, set_and_get, transaction)


class Queued:
    """Reads that wait in the socket of a bloomgate which is stopped."""

    def __init__(self, checker, gate, rng):
        self.checker = checker
        self.gate = gate
        self.batches = []
        for _ in range(3):
            asked = read_requests(rng, checker.newest(40))
            try:
                client = resp.Client(gate.address, seconds=SECONDS)
            except (OSError, AssertionError):
                continue
            sent = time.monotonic()
            client.send(b"".join(resp.encode(*request) for request, _ in asked))
            self.batches.append((client, asked, sent))

    def collect(self):
        for client, asked, sent in self.batches:
            try:
                for request, ids in asked:
                    judge(self.checker, self.gate, request, ids, client.read(), sent)
            except (OSError, resp.Closed):
                pass
            except AssertionError as failure:
                if not str(failure).startswith("no reply"):
                    raise
            finally:
                client.close()


class QueuedAdds:
    """Adds that wait in the socket of a bloomgate which is stopped."""

    def __init__(self, world, checker, gate, rng):
        self.checker = checker
        self.gate = gate
        self.batches = []
        for n in range(20):
            ids = ["queued-%08x-%d" % (rng.getrandbits(32), n)]
            way = rng.choice((bf_add, sets, hset))
            requests, _ = way(ids, rng)
            try:
                client = resp.Client(gate.address, seconds=SECONDS)
            except (OSError, AssertionError):
                continue
            written = world.write_source(ids)
            sent = time.monotonic()
            client.send(b"".join(resp.encode(*one) for one in requests))
            self.batches.append((client, ids, way, sent, written))

    def collect(self):
        for client, ids, way, sent, written in self.batches:
            try:
                replies = client.read_n(len(ids))
            except (OSError, resp.Closed):
                continue
            except AssertionError as failure:
                if not str(failure).startswith("no reply"):
                    raise
                continue
            finally:
                client.close()
            done = [one for one, reply in zip(ids, replies) if accepted(reply)]
            self.checker.acknowledged(
                done, self.gate.index, way.__name__, sent, written)
