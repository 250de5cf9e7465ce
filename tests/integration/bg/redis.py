# SPDX-License-Identifier: BSD-2-Clause
"""A private redis-server in a folder of its own."""

import os
import shutil
import signal

from . import resp, wait
from .process import Child, free_port


class Redis:
    def __init__(self, folder, tcp=False, **config):
        self.folder = folder
        self.tcp = tcp
        self.config = config
        self.port = 0
        self.child = None
        self._client = None
        self.socket = os.path.join(folder, "redis.sock")
        self.log = os.path.join(folder, "redis.log")
        self.dump = os.path.join(folder, "dump.rdb")
        os.makedirs(folder, exist_ok=True)

    @property
    def address(self):
        """What bloomgate's configuration and a client may use."""
        if self.tcp:
            return "127.0.0.1:%d" % self.port
        return "unix:" + self.socket

    @property
    def pid(self):
        return self.child.pid

    def start(self, ready=True):
        """ready: also waits until it answers."""
        assert self.child is None or not self.child.running()
        for _ in range(20):
            if self.tcp and not self.port:
                self.port = free_port()
            if self._start_once(ready):
                return self
            self.port = 0
        raise AssertionError("redis-server does not start: " + self.child.text())

    def _start_once(self, wait_ready):
        argv = ["redis-server", "--port", str(self.port)]
        argv += ["--unixsocket", self.socket, "--dir", self.folder]
        argv += ["--save", "", "--appendonly", "no", "--daemonize", "no"]
        argv += ["--protected-mode", "no", "--enable-debug-command", "yes"]
        for name, value in self.config.items():
            # A value of several words is a tuple.
            words = value if isinstance(value, tuple) else (value,)
            argv += ["--" + name.replace("_", "-"), *map(str, words)]
        self.child = Child(argv, self.log)
        if not wait_ready:
            return True
        state = {}

        def ready():
            if not self.child.running():
                state["dead"] = True
                return True
            try:
                with resp.Client("unix:" + self.socket) as client:
                    answer = client.call("PING")
            except (OSError, resp.Closed):
                return False
            return not answer.startswith(b"-LOADING")

        wait.until(ready, 15, "redis-server ready")
        return "dead" not in state

    def stop(self):
        """SIGTERM; no snapshot is written unless the configuration says so."""
        self._forget()
        if self.child and self.child.running():
            self.child.signal(signal.SIGTERM)
            self.child.wait(20)

    def kill(self):
        self._forget()
        if self.child:
            self.child.kill()

    def pause(self):
        self.child.signal(signal.SIGSTOP)

    def resume(self):
        self.child.signal(signal.SIGCONT)

    def save(self):
        """Writes a snapshot now."""
        assert self.value("SAVE") == "OK"

    def keep_snapshot(self, name):
        shutil.copy(self.dump, os.path.join(self.folder, name))

    def restart(self, snapshot=None, ready=True):
        """Kills it and starts it again, with the snapshot of that name
        (see keep_snapshot) or with nothing at all."""
        self.kill()
        if os.path.exists(self.dump):
            os.unlink(self.dump)
        if snapshot:
            shutil.copy(os.path.join(self.folder, snapshot), self.dump)
        return self.start(ready)

    def client(self, **options):
        return resp.Client(self.address, **options)

    def _forget(self):
        if self._client:
            self._client.close()
            self._client = None

    def call(self, *args):
        """The raw reply, on a connection that is kept."""
        if self._client is None:
            self._client = resp.Client("unix:" + self.socket)
        return self._client.call(*args)

    def value(self, *args):
        return resp.parse(self.call(*args))

    def fill(self, pairs):
        """SETs many pairs, pipelined."""
        data = b"".join(resp.encode("SET", k, v) for k, v in pairs)
        with resp.Client("unix:" + self.socket) as client:
            assert set(client.exchange(data, len(pairs))) <= {resp.OK}

    def info(self, field):
        for line in self.value("INFO", "everything").decode().splitlines():
            if line.startswith(field + ":"):
                return line.split(":", 1)[1]
        return None

    def calls(self, command):
        """How often the command has run (INFO commandstats)."""
        stats = self.info("cmdstat_" + command.lower())
        return int(stats.split("calls=")[1].split(",")[0]) if stats else 0
