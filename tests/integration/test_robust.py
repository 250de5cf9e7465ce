# SPDX-License-Identifier: BSD-2-Clause
"""
Issue "must hold" 8: killing Redis or the client at any point of a pipeline
crashes nothing, leaks nothing and mixes up no replies. Each bloomgate is checked
for sanitizer reports, its exit status and its descriptors when it ends (see
bg/daemon.py). FAULTS: D5, E3, E4, E8, E9, E12, E13, E18.
"""

import signal
import subprocess
import time

import pytest
from bg import resp, wait
from bg.process import Child

NULL = resp.bulk("__NULL__")
PIPELINE = [
    resp.encode("SET", "user:1", "one"),
    resp.encode("GET", "user:1"),
    resp.encode("GET", "user:none"),
    resp.encode("MGET", "user:none", "user:1", "k"),
    resp.encode("EXISTS", "user:none", "user:1"),
    resp.encode("BF.ADD", "user", "2"),
    resp.encode("BF.MADD", "user", "2", "3"),
    resp.encode("BF.EXISTS", "user", "none"),
    resp.encode("MULTI") + resp.encode("GET", "user:1") + resp.encode("EXEC"),
    resp.encode("SUBSCRIBE", "ch") + resp.encode("UNSUBSCRIBE"),
    resp.encode("BLPOP", "none", "0.01"),
    resp.encode("HELLO", 3) + resp.encode("HELLO", 2),
    resp.encode("SET", "user:big", "x" * 40000),
    resp.encode("GET", "user:big"),
    b"PING\r\n",
]


@pytest.fixture
def gate(redis, bloomgate, make_filter, ids_file):
    return bloomgate(redis, tcp=True, filters=[make_filter(ids_file(["1"]))])


def alive(gate):
    with gate.client() as client:
        assert client.call("PING") == resp.PONG
        wait.until(
            lambda: client.call("GET", "user:none") == NULL, 10, "absent is said"
        )


def test_client_gone_at_every_byte(gate, counts):
    """Closed in order after each prefix of a pipeline, unread replies or not."""
    data = b"".join(PIPELINE[:12])
    for end in range(0, len(data), counts(1, small=5)):
        client = gate.client()
        client.send(data[:end])
        client.close()
    alive(gate)


def test_client_reset_at_every_byte(gate, counts):
    data = b"".join(PIPELINE[:12])
    for end in range(0, len(data), counts(3, full=1, small=11)):
        client = gate.client(tcp=True)
        client.send(data[:end])
        client.reset()
    alive(gate)


def test_client_gone_after_some_replies(gate, rng, counts):
    for _ in range(counts(500, small=100)):
        client = gate.client(tcp=rng.random() < 0.5)
        parts = rng.choices(PIPELINE, k=rng.randrange(1, 30))
        data = b"".join(parts)
        client.send_cut(data, resp.cuts(rng, len(data), 3))
        try:
            client.read_n(rng.randrange(len(parts)))
        except resp.Closed:
            pass
        if rng.random() < 0.5:
            client.half_close()
        client.close()
    alive(gate)


def test_many_clients_go_at_once(gate, rng):
    for _ in range(3):
        clients = [gate.client() for _ in range(100)]
        for client in clients:
            client.send(b"".join(rng.choices(PIPELINE, k=20)))
        for client in clients:
            client.close()
    alive(gate)




@pytest.mark.parametrize("how", ["kill", "stop"])
def test_redis_gone_in_mid_pipeline(gate, redis, rng, counts, how):
    redis.save()
    redis.keep_snapshot("now")
    for _ in range(counts(12, full=50, small=4)):
        clients = [gate.client() for _ in range(10)]
        echoes = [b"".join(resp.encode("ECHO", i) for i in range(200))] * 5
        for client in clients[:5]:
            client.send(b"".join(rng.choices(PIPELINE, k=100)))
        for client, data in zip(clients[5:], echoes):
            client.send(data)
        # Some replies have arrived, others are on their way.
        clients[5].read_n(rng.randrange(150))
        getattr(redis, how)()
        for client in clients[6:]:
            for index in range(200):
                try:
                    reply = client.read()
                except resp.Closed as closed:
                    # In the middle of a reply: its beginning must be right.
                    want = resp.bulk(b"%d" % index)
                    assert want.startswith(closed.args[0]), (index, closed)
                    break
                assert reply == resp.bulk(b"%d" % index) or reply.startswith(
                    b"-ERR bloomgate: upstream"
                ), (index, reply)
        for client in clients:
            client.close()
        redis.restart("now")
    gate.wait_state("serving", seconds=40)
    alive(gate)


def test_redis_stops_answering_for_a_while(gate, redis):
    """A paused Redis is no error without response-timeout, and absent ids
    are still not made up once the lease has run out."""
    with gate.client(seconds=30) as client:
        assert client.call("GET", "user:none") == NULL
        redis.pause()
        try:
            client.send(resp.encode("GET", "user:1") + resp.encode("PING"))
            with gate.client() as other:
                other.send(resp.encode("GET", "user:none"))
            client.quiet()
        finally:
            redis.resume()
        assert client.read() == resp.NIL2
        assert client.read() == resp.PONG


def test_bloomgate_paused_past_its_lease(gate, redis, bloomgate, make_filter,
                                         ids_file):
    """Leases: a process stopped in mid-turn must not trust an old one."""
    short = bloomgate(redis, lease="2s", filters=[
        make_filter(ids_file(["1"]), name="brief", keys=["brief:{id}"])
    ])
    with short.client(seconds=30) as client:
        assert client.call("GET", "brief:x") == NULL
        short.child.signal(signal.SIGSTOP)
        try:
            redis.value("DEL", *redis.value("KEYS", "bloom:{brief}*"))
            client.send(resp.encode("GET", "brief:1") * 50)
            over = time.monotonic() + 2.5
            wait.until(lambda: time.monotonic() > over, 10, "the lease is over")
        finally:
            short.child.signal(signal.SIGCONT)
        assert set(client.read_n(50)) == {resp.NIL2}


def test_descriptors_run_out(redis, bloomgate):
    """FAULTS E4, E5: refuses, goes on, and serves again."""
    gate = bloomgate(redis, **{"max-clients": 10000})
    subprocess.run(
        ["prlimit", "--pid", str(gate.pid), "--nofile=100:100"], check=True
    )
    clients = []
    try:
        for _ in range(150):
            client = gate.client(seconds=2)
            client.send(resp.encode("PING"))
            clients.append(client)
        assert gate.child.running()
        assert clients[0].call("PING")
    finally:
        for client in clients:
            client.close()

    def served():
        with gate.client() as client:
            try:
                return client.call("PING") == resp.PONG
            except (OSError, resp.Closed):
                return False

    wait.until(served, 10, "clients are served again")
    # Not by spinning.
    before = gate.child.cpu_seconds()
    with gate.client() as client:
        for _ in range(20):
            assert client.call("PING") == resp.PONG
    assert gate.child.cpu_seconds() - before < 1 * wait.SLOW


def test_idle_costs_nothing(gate):
    with gate.client() as client:
        client.call("PING")
        before = gate.child.cpu_seconds()
        over = time.monotonic() + 1
        wait.until(lambda: time.monotonic() > over, 3, "a second has passed")
        assert gate.child.cpu_seconds() - before < 0.2 * wait.SLOW


def test_redis_benchmark(gate, redis, counts, folder):
    """FAULTS E18: a foreign client with many connections and deep pipelines."""
    for depth in ("1", "100"):
        child = Child(
            ["redis-benchmark", "-s", gate.socket, "-t", "ping,set,get,mset,lrange",
             "-n", str(counts(20000, small=3000)), "-P", depth, "-c", "50", "-q",
             "-r", "1000"],
            folder + "/benchmark.log",
        )
        assert child.wait(60) == 0, child.text()
        assert "Error" not in child.text(), child.text()
    alive(gate)


def test_drain(gate, redis):
    """SIGTERM: what is in flight is finished, idle sessions are closed."""
    with gate.client() as idle, gate.client(seconds=30) as busy:
        assert idle.call("PING") == resp.PONG
        busy.send(resp.encode("BLPOP", "queue", 0))
        wait.until(lambda: redis.info("blocked_clients") == "1", 5, "BLPOP waits")
        gate.checked = True
        gate.child.signal(signal.SIGTERM)
        assert idle.read_all() == ([], b"")
        assert redis.value("RPUSH", "queue", "x") == 1
        assert busy.read() == resp.array(resp.bulk("queue"), resp.bulk("x"))
        assert busy.read_all() == ([], b"")
    assert gate.child.wait(15) == 0


def test_drain_timeout(redis, bloomgate):
    gate = bloomgate(redis, **{"drain-timeout": "1s"})
    with gate.client(seconds=30) as busy:
        busy.send(resp.encode("BLPOP", "queue", 0))
        wait.until(lambda: redis.info("blocked_clients") == "1", 5, "BLPOP waits")
        gate.checked = True
        gate.child.signal(signal.SIGINT)
        busy.read_all()
    assert gate.child.wait(15) == 0


def test_starts_and_stops_many_times(redis, bloomgate, make_filter, ids_file):
    gate = bloomgate(redis, filters=[make_filter(ids_file(["1"]))])
    for _ in range(5):
        gate.stop()
        gate.start()
        gate.wait_state("serving")
        alive(gate)
    # A clean stop removes its peer field.
    gate.stop()
    assert redis.value("HLEN", "bloom:{user}:peers") == 0


def test_idle_clients_are_closed(redis, bloomgate):
    """client-idle-timeout closes who is idle, and nobody who waits. E10."""
    gate = bloomgate(redis, **{"client-idle-timeout": "1s"})
    with gate.client() as idle, gate.client() as blocked, gate.client() as listener:
        assert listener.call("SUBSCRIBE", "ch").startswith(b"*3\r\n$9\r\nsubscribe")
        assert idle.call("PING") == resp.PONG
        blocked.send(resp.encode("BLPOP", "queue", 0))
        with pytest.raises(resp.Closed):
            idle.read()
        assert redis.value("PUBLISH", "ch", "hello") == 1
        assert b"hello" in listener.read()
        assert redis.value("RPUSH", "queue", "x") == 1
        assert b"x" in blocked.read()


def test_memory_limit_closes_the_largest(redis, bloomgate):
    """Law 7: limits.memory. Who reads nothing goes first; others are served."""
    gate = bloomgate(
        redis, limits={"memory": "16MiB", "client-output-bytes": "8MiB"}
    )
    assert redis.value("SET", "big", "x" * 1000000) == "OK"
    greedy = [gate.client(receive_buffer=4096) for _ in range(30)]
    with gate.client() as client:
        for one in greedy:
            one.send(resp.encode("GET", "big") * 8)
        wait.until(
            lambda: gate.metric("client_connections_rejected_total", reason="memory") > 0,
            20, "the limit to act",
        )
        wait.until(
            lambda: gate.metric("buffer_bytes", direction="out") < 17 << 20, 20, "memory"
        )
        assert client.call("PING") == resp.PONG
    for one in greedy:
        one.close()
