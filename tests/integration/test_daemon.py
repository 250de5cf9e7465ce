# SPDX-License-Identifier: BSD-2-Clause
"""
The daemon as a process: signals, the order of its stop, notify, --build, and the
operator's tool where it watches.
"""

import os
import re
import signal
import socket
import subprocess

import pytest
from bg import resp, wait
from bg.daemon import CTL, PROGRAM, Bloomgate
from bg.process import Child


@pytest.fixture
def gate(bloomgate, redis, make_filter, ids_file):
    def start(**config):
        source = ids_file(range(1000))
        return bloomgate(redis, filters=[make_filter(source)], **config)

    return start


def ctl(gate, *args):
    path = gate.admin_address[len("unix:"):]
    return subprocess.run([CTL, "-s", path, *args], capture_output=True, text=True,
                          timeout=60 * wait.SLOW)


def busy_client(gate):
    """A client that waits in a blocking command."""
    client = gate.client()
    client.send(resp.encode("BLPOP", "list", "0"))
    wait.until(lambda: gate.metric("upstream_requests_in_flight") == 1)
    return client


# --- signals ------------------------------------------------------------------


def test_drain_waits_for_what_is_in_flight(gate, redis):
    g = gate(**{"drain-timeout": "60s"})
    client = busy_client(g)
    g.child.signal(signal.SIGTERM)
    wait.until(lambda: g.http("/readyz")[0] == 503, what="not ready")
    assert "draining" in g.http("/readyz")[1]
    assert g.http("/healthz")[0] == 200
    with pytest.raises(OSError):
        g.client(seconds=1).call("PING")
    redis.value("RPUSH", "list", "x")
    assert resp.parse(client.read()) == [b"list", b"x"]
    assert g.child.wait(20) == 0
    assert g.events("drained")
    g.stop()


def test_drain_timeout_ends_it(gate):
    g = gate(**{"drain-timeout": "200ms"})
    with busy_client(g):
        g.child.signal(signal.SIGINT)
        assert g.child.wait(20) == 0
    assert g.events("drain_timeout")


def test_second_signal_ends_at_once(gate):
    g = gate(**{"drain-timeout": "3600s"})
    with busy_client(g):
        g.child.signal(signal.SIGTERM)
        wait.until(lambda: g.events("draining"))
        g.child.signal(signal.SIGTERM)
        assert g.child.wait(20) == 0


def test_stops_while_an_operator_waits(gate, redis):
    """CHECK and ADD that Redis has not answered end with the process."""
    g = gate()
    redis.pause()
    asked = []
    for _ in range(4):
        client = resp.Client(g.admin_address)
        client.send(resp.encode("ADD", "user", *["new%d" % i for i in range(50)]))
        asked.append(client)
    wait.until(lambda: g.http("/healthz")[0] == 200)
    g.child.signal(signal.SIGTERM)
    assert g.child.wait(20) == 0
    redis.resume()
    for client in asked:
        client.close()


def test_drain_by_the_operator(gate):
    g = gate()
    answer = ctl(g, "drain")
    assert answer.returncode == 0, answer.stderr
    assert g.child.wait(20) == 0
    assert ctl(g, "drain").returncode == 3
    assert not os.path.exists(g.admin_address[len("unix:"):])


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGHUP])
def test_log_is_reopened(redis, folder, number):
    log = os.path.join(folder, "own.log")
    gate = Bloomgate(os.path.join(folder, "b"), redis, {"log": {"file": log}})
    gate.write_config()
    child = Child([PROGRAM, "-c", gate.file], os.path.join(folder, "err.log"))

    def said(path, event):
        with open(path) as lines:
            return "event=%s " % event in lines.read()

    try:
        wait.until(lambda: os.path.exists(log) and said(log, "admin_listening"), 20)
        os.rename(log, log + ".1")
        child.signal(number)
        wait.until(lambda: os.path.exists(log) and said(log, "log_reopened"))
        # Where that fails the old file stays, and it says so.
        os.rename(log, log + ".2")
        os.mkdir(log)
        child.signal(number)
        wait.until(lambda: said(log + ".2", "log_reopen_failed"))
        child.signal(signal.SIGTERM)
        assert child.wait(20) == 0
        assert said(log + ".2", "stopped")
        assert child.text() == ""
    finally:
        child.kill()


def test_log_reopen_listens_still(gate):
    g = gate()
    g.child.signal(signal.SIGHUP)
    wait.until(lambda: g.events("reload_unavailable"))
    assert g.call("PING") == b"+PONG\r\n"


# --- service manager ----------------------------------------------------------


@pytest.mark.parametrize("abstract", [False, True])
def test_notify(folder, redis, abstract, monkeypatch):
    path = os.path.join(folder, "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + path if abstract else path)
        manager.settimeout(20 * wait.SLOW)
        monkeypatch.setenv("NOTIFY_SOCKET", ("@" if abstract else "") + path)
        gate = Bloomgate(os.path.join(folder, "b"), redis, {})
        gate.start()
        # Ready means: a client is served.
        assert b"READY=1" in manager.recv(4096).split(b"\n")
        assert gate.call("PING") == b"+PONG\r\n"
        gate.ready_to_count()
        gate.stop()
        assert b"STOPPING=1" in manager.recv(4096).split(b"\n")


# --- --build --------------------------------------------------------------------


def build(gate, name="user"):
    return subprocess.run([PROGRAM, "-c", gate.file, "--build", name],
                          capture_output=True, text=True, timeout=120 * wait.SLOW)


@pytest.fixture
def unstarted(folder, redis, make_filter):
    def make(source, **over):
        gate = Bloomgate(os.path.join(folder, "build"), redis,
                         {"filters": [make_filter(source, **over)]})
        gate.write_config()
        return gate

    return make


def test_build_makes_it_serve(unstarted, redis, ids_file):
    gate = unstarted(ids_file(range(500)))
    answer = build(gate)
    assert answer.returncode == 0, answer.stderr
    active = redis.value("HGET", "bloom:{user}:meta", "active").decode()
    assert redis.value("HGET", "bloom:{user}:meta", "g:%s:elements" % active) == b"500"
    # Its peer field is gone: nobody waits for a process that has ended.
    assert redis.value("EXISTS", "bloom:{user}:peers") == 0


def test_build_that_fails(unstarted, folder):
    gate = unstarted(os.path.join(folder, "none.txt"))
    answer = build(gate)
    assert answer.returncode == 1
    assert "none.txt" in answer.stderr


def test_build_of_an_unknown_filter(unstarted, ids_file):
    gate = unstarted(ids_file([1]))
    answer = build(gate, "nope")
    assert answer.returncode == 2
    assert "nope" in answer.stderr


def test_build_while_another_builds(unstarted, redis, folder, ids_file):
    fifo = os.path.join(folder, "fifo")
    os.mkfifo(fifo)
    slow = unstarted(None, rebuild={"source": {"command": ["cat", fifo]}})
    first = Child([PROGRAM, "-c", slow.file, "--build", "user"],
                  os.path.join(folder, "first.log"))
    try:
        wait.until(lambda: "rebuild_started" in first.text(), 20)
        answer = build(slow)
        assert answer.returncode == 3, answer.stderr
        # The first one is not disturbed by that.
        with open(fifo, "w") as out:
            out.write("1\n2\n")
        assert first.wait(60) == 0, first.text()
    finally:
        first.kill()


def test_build_is_interrupted(unstarted, redis, folder):
    fifo = os.path.join(folder, "fifo")
    os.mkfifo(fifo)
    gate = unstarted(None, rebuild={"source": {"command": ["cat", fifo]}})
    child = Child([PROGRAM, "-c", gate.file, "--build", "user"],
                  os.path.join(folder, "build.log"))
    try:
        wait.until(lambda: "rebuild_started" in child.text(), 20)
        child.signal(signal.SIGTERM)
        assert child.wait(20) == 1
    finally:
        child.kill()
    # Neither a lock nor half a generation stays.
    meta = redis.value("HGETALL", "bloom:{user}:meta")
    fields = dict(zip(meta[::2], meta[1::2]))
    assert not fields.get(b"lock")
    assert not fields.get(b"building")


def test_build_without_redis(folder, make_filter, ids_file):
    class Nobody:
        address = "unix:" + os.path.join(folder, "no.sock")

    gate = Bloomgate(os.path.join(folder, "b"), Nobody,
                     {"filters": [make_filter(ids_file([1]))]})
    gate.write_config()
    answer = build(gate)
    assert answer.returncode == 1
    assert "reach" in answer.stderr


# --- bloomgatectl ---------------------------------------------------------------


def test_rebuild_and_wait(gate):
    g = gate()
    before = g.admin("STATUS", "user")
    answer = ctl(g, "rebuild", "user", "--wait")
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines()[-1] == "built"
    generation = re.compile(rb'"generation":"([^"]*)"')
    after = g.admin("STATUS", "user")
    assert generation.search(before).group(1) != generation.search(after).group(1)


def test_rebuild_that_fails_says_why(gate):
    g = gate()
    os.unlink(g.config["filters"][0]["rebuild"]["source"]["file"])
    answer = ctl(g, "rebuild", "user", "--wait")
    assert answer.returncode == 1
    assert "ids" in answer.stderr
    # What served goes on serving.
    assert g.readiness()["user"] == "serving"


def test_large_checks_are_split(gate):
    g = gate()
    answer = ctl(g, "check", "user", *map(str, range(1700)))
    assert answer.returncode == 0, answer.stderr
    lines = answer.stdout.splitlines()
    assert len(lines) == 1700
    assert lines[0] == "0 maybe" and lines[999] == "999 maybe"
    assert lines[1699] == "1699 absent"


@pytest.mark.parametrize("args", [
    [], ["nope"], ["status", "a", "b"], ["rebuild"], ["rebuild", "a", "b"],
    ["rebuild", "user", "--nope"], ["mode", "user"], ["check", "user"],
    ["add", "user"], ["clients", "x"], ["drain", "x"], ["abort"],
    ["plan"], ["plan", "--capacity", "0", "--error-rate", "0.1"],
    ["plan", "--capacity", "1", "--error-rate", "0.3"],
    ["plan", "--capacity", "1", "--error-rate", "nan"],
    ["config-check"], ["--nope"],
])
def test_usage(args):
    answer = subprocess.run([CTL, "-s", "/nonexistent/socket", *args],
                            capture_output=True, text=True, timeout=30)
    assert answer.returncode == 2, answer
    assert answer.stderr


def test_what_answers_is_not_bloomgate(folder):
    path = os.path.join(folder, "s")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        child = subprocess.Popen([CTL, "-s", path, "status"], stderr=subprocess.PIPE,
                                 text=True)
        peer, _ = server.accept()
        with peer:
            peer.recv(100)
            peer.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            assert child.wait(20 * wait.SLOW) == 3
        assert "not bloomgate" in child.stderr.read()
        child.stderr.close()
