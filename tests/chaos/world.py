# SPDX-License-Identifier: BSD-2-Clause
"""
The processes: a Redis with a replica, the relay that leads to whichever is
master, and the bloomgates, each with its own door in the relay. Nothing here
knows what is right.

Processes are started from threads that live as long as the run: a child dies
with the thread that started it (bg/process.py).
"""

import os
import signal
import socket
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))

from bg import daemon, process, resp, wait  # noqa: E402
from bg.redis import Redis  # noqa: E402

GATES = 3
LEASE = 3
STALENESS = 1
FILTER = "user"
META = "bloom:{user}:meta"
STRANGER = b"no such id"  # the text of absent-reply: error
NULL = "__NULL__"
FIRST_IDS = 2000
# How long a dead peer's field holds beyond its lease (control/tracked.h).
PEER_SLACK = 7

SOURCE = """#!/bin/sh
# The application's database: prints every id that it holds.
case $(cat "$1/mode") in
ok) cat "$1/ids" ;;
slow) cat "$1/ids" && echo >>"$1/reads" && sleep 0.3 ;;
half) head -n $(($(wc -l <"$1/ids") - 50)) "$1/ids"; exit 1 ;;
short) head -n 100 "$1/ids" ;;
hang) cat "$1/ids"; exec sleep 3 ;;
esac
"""


class Gate(daemon.Bloomgate):
    slack = 12  # links and what traffic left at this moment

    def __init__(self, index, folder, upstream, config):
        super().__init__(folder, upstream, config)
        self.index = index
        self.lock = threading.Lock()  # held by who stops or pauses it
        self.away = False  # not answering, on purpose
        # How this one answers an absent id.
        self.by_error = index != 1

    def absent(self, reply):
        """True where a reply to a plain covered read says absent."""
        if self.by_error:
            return reply.startswith(b"-") and STRANGER in reply
        return reply == resp.bulk(NULL)

    def end(self):
        """SIGTERM while clients are at it: must end by itself, with 0."""
        self.checked = True
        self.child.signal(signal.SIGTERM)
        status = self.child.wait(20)
        assert status == 0 and not self.trouble(), "b%d: exit %r\n%s" % (
            self.index, status, self.lines_text()[-4000:])

    def trouble(self):
        return daemon.TROUBLE.search(self.lines_text())


def connected(path):
    """A socket, or None where nobody listens yet."""
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.connect(path)
    except OSError:
        sock.close()
        return None
    sock.settimeout(10 * wait.SLOW)
    return sock


class Upstream:
    def __init__(self, path):
        self.address = "unix:" + path


class World:
    def __init__(self, folder, options):
        self.folder = folder
        self.options = options
        self.redis_lock = threading.Lock()  # held by who stops or replaces it
        self.servers = [
            Redis(
                os.path.join(folder, "r%d" % i),
                True,
                repl_diskless_sync_delay=0,
                repl_diskless_sync="yes",
            )
            for i in range(2)
        ]
        self.master, self.replica = self.servers
        self.switch = None
        self.control = None
        self.control_lock = threading.Lock()
        self.source = os.path.join(folder, "source")
        self.gates = [self.make_gate(i) for i in range(GATES)]
        self.rebuild_seconds = 0

    # --- start and end ---------------------------------------------------------
    def make_gate(self, index):
        door = os.path.join(self.folder, "door%d" % index)
        absent = {"value": NULL} if index == 1 else {"error": STRANGER.decode()}
        return Gate(
            index,
            os.path.join(self.folder, "b%d" % index),
            Upstream(door),
            {
                "lease": "%ds" % LEASE,
                "drain-timeout": "1s",
                "workers": 2 if index == 1 else 1,
                "filters": [
                    {
                        "name": FILTER,
                        "keys": ["user:{id}", "user:{id}:profile"],
                        "capacity": self.options.capacity,
                        "error-rate": 0.001,
                        "suffix": self.options.suffix,
                        "check": self.options.check,
                        "max-staleness": "%ds" % STALENESS,
                        "verify-sample": 0,
                        "absent-reply": absent,
                        "rebuild": {
                            "source": {"command": ["sh", self.source + ".sh", self.source]},
                            "timeout": "2s",
                            "schedule": "never",
                            "min-elements": FIRST_IDS,
                        },
                    }
                ],
            },
        )

    def start(self, first):
        os.mkdir(self.source)
        with open(self.source + ".sh", "w") as out:
            out.write(SOURCE)
        self.source_mode("ok")
        self.ids = os.open(
            os.path.join(self.source, "ids"),
            os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC,
            0o600,
        )
        self.write_source(first)
        for server in self.servers:
            server.start()
        self.attach_replica()
        control = os.path.join(self.folder, "control")
        doors = [gate.config["upstream"]["address"][5:] for gate in self.gates]
        self.switch = process.Child(
            [sys.executable, os.path.join(HERE, "switch.py"), control,
             self.master.socket] + doors,
            os.path.join(self.folder, "switch.log"),
        )
        self.control = wait.until(lambda: connected(control), 10, "the relay")
        for gate in self.gates:
            gate.start()
        for gate in self.gates:
            gate.wait_state("serving", seconds=30)
            gate.ready_to_count()
        # How long a rebuild takes where nothing is wrong.
        began = time.monotonic()
        done = self.rebuilds_done()
        self.gates[0].rebuild(FILTER)
        wait.until(lambda: self.rebuilds_done() > done, 30, "the first rebuild")
        self.rebuild_seconds = time.monotonic() - began

    def stop(self):
        """Everything ends by itself; returns what was wrong with that."""
        wrong = []
        for gate in self.gates:
            try:
                if gate.child:
                    gate.child.signal(signal.SIGCONT)
                gate.stop()
            except AssertionError as failure:
                wrong.append("b%d: %s" % (gate.index, failure))
        self.kill()
        return wrong

    def kill(self):
        for gate in self.gates:
            if gate.child:
                gate.child.kill()
        for server in self.servers:
            server.kill()
        if self.switch:
            self.switch.kill()
        if self.control:
            self.control.close()
            self.control = None

    # --- the source ------------------------------------------------------------
    def source_mode(self, mode):
        path = os.path.join(self.source, "mode")
        with open(path + ".new", "w") as out:
            out.write(mode + "\n")
        os.rename(path + ".new", path)

    def source_reads(self):
        """How often a slow source has printed its last id."""
        path = os.path.join(self.source, "reads")
        return os.path.getsize(path) if os.path.exists(path) else 0

    def write_source(self, ids):
        text = "".join(one + "\n" for one in ids).encode()
        assert os.write(self.ids, text) == len(text)
        return time.monotonic()

    # --- the relay -------------------------------------------------------------
    def relay(self, word, value):
        with self.control_lock:
            self.control.sendall(("%s %s\n" % (word, value)).encode())
            answer = self.control.recv(100)
        assert answer == b"ok\n", answer

    # --- Redis -----------------------------------------------------------------
    def redis(self, *args, server=None):
        """A command to the master, on a connection of its own; None where it
        cannot be reached in time."""
        try:
            with resp.Client(
                "unix:" + (server or self.master).socket, seconds=2
            ) as client:
                return client.value(*args)
        except (OSError, resp.Closed):
            return None
        except AssertionError as failure:
            if not str(failure).startswith("no reply"):
                raise
            return None

    def attach_replica(self):
        """The other server follows the master."""
        answer = self.redis(
            "REPLICAOF", "127.0.0.1", self.master.port, server=self.replica
        )
        assert answer == "OK", answer

    def in_step(self):
        text = self.redis("INFO", "replication", server=self.replica)
        return text is not None and b"master_link_status:up" in text

    def promote(self):
        """The replica is the master from here on; the old one is dead."""
        self.master.kill()
        self.redis("REPLICAOF", "NO", "ONE", server=self.replica)
        self.master, self.replica = self.replica, self.master
        self.relay("target", self.master.socket)

    # --- the filter ------------------------------------------------------------
    def meta(self):
        flat = self.redis("HGETALL", META)
        if not isinstance(flat, list):
            return {}
        return dict(zip(flat[::2], flat[1::2]))

    def shards_of(self, name=b"active"):
        """The keys of a generation's shards, and where their tag is."""
        meta = self.meta()
        generation = meta.get(name)
        if generation is None:
            return [], 0
        field = b"g:" + generation + b":"
        try:
            count = int(meta[field + b"shards"])
            offset = int(meta[field + b"bits"]) // 8
        except (KeyError, ValueError):
            return [], 0
        return [b"bloom:{user}:%s/%d" % (generation, i) for i in range(count)], offset

    def admin(self, gate, *args):
        """An operator's command; None where nobody answers."""
        try:
            with resp.Client(gate.admin_address, seconds=5) as client:
                return client.value(*args)
        except (OSError, resp.Closed):
            return None
        except AssertionError as failure:
            if not str(failure).startswith("no reply"):
                raise
            return None

    def rebuilds(self):
        """(gate, seconds) of the rebuilds that were done, of living processes."""
        for gate in self.gates:
            if gate.child:
                for event in gate.events("rebuild_done"):
                    yield gate.index, float(event["seconds"])

    def rebuilds_done(self):
        return len(list(self.rebuilds()))
