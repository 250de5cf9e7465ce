# SPDX-License-Identifier: BSD-2-Clause
"""A child process with its log in a file, which dies with the test run."""

import ctypes
import os
import signal
import socket
import subprocess

from . import wait

LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port():
    """A port that was free a moment ago: users retry with another."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Child:
    def __init__(self, argv, log, env=None):
        self.argv = argv
        self.log = log
        with open(log, "ab") as out:
            self.popen = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                env=dict(os.environ, **(env or {})),
                preexec_fn=die_with_parent,
            )
        self.pid = self.popen.pid

    def text(self):
        with open(self.log, errors="replace") as log:
            return log.read()

    def running(self):
        return self.popen.poll() is None

    def signal(self, number):
        self.popen.send_signal(number)

    def wait(self, seconds):
        """The exit status; kills and fails after the deadline."""
        try:
            return self.popen.wait(seconds * wait.SLOW)
        except subprocess.TimeoutExpired:
            self.popen.kill()
            self.popen.wait()
            raise AssertionError(
                "%s: still running after %g s; log ends:\n%s"
                % (self.argv[0], seconds * wait.SLOW, self.text()[-3000:])
            )

    def kill(self):
        if self.running():
            self.popen.kill()
        self.popen.wait()

    def cpu_seconds(self):
        """Time on a CPU so far, of all threads, to the nanosecond."""
        total = 0
        for task in os.listdir("/proc/%d/task" % self.pid):
            path = "/proc/%d/task/%s/schedstat" % (self.pid, task)
            with open(path) as stat:
                total += int(stat.read().split()[0])
        return total / 1e9

    def pin(self, core):
        """All its threads on one core."""
        for task in os.listdir("/proc/%d/task" % self.pid):
            os.sched_setaffinity(int(task), {core})

    def rss_bytes(self, field="VmRSS"):
        with open("/proc/%d/status" % self.pid) as status:
            for line in status:
                if line.startswith(field + ":"):
                    return int(line.split()[1]) * 1024
        raise AssertionError("no %s of %d" % (field, self.pid))

    def descriptors(self):
        """What each open descriptor is, sorted."""
        folder = "/proc/%d/fd" % self.pid
        found = []
        for name in os.listdir(folder):
            try:
                found.append(os.readlink(os.path.join(folder, name)))
            except FileNotFoundError:
                pass
        return sorted(found)
