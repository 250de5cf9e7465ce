#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
What forwarding a GET costs a proxy, beside HAProxy and the least a relay can.

  tests/bench/forward.py [--rounds N] [--requests N] [-P 1,16] [-c 50]
                         [--only NAME,...] [--build FOLDER]

All speak TCP on the loopback to one redis-server, which has a core of its own;
each proxy has one thread and the other core, with the generator. Every round
measures them all in an order drawn anew; every key read is there. bloomgate has a
learning filter with remote checks and reads keys that no filter covers ("bloomgate",
which is what is claimed), or keys of a filter with mode off ("bloomgate off"). Its
CPU time is that of the whole process. Nothing is judged but that all answers were
values: the figures are for people.

It needs redis-server and haproxy (Debian's packages), and in the build folder
src/bloomgate and, by make, tests/bench/load and tests/bench/floor.
"""

import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/integration"))

from bg import daemon, redis, wait  # noqa: E402
from bg.process import Child, free_port  # noqa: E402

IDS = 10000
REDIS_CORE, PROXY_CORE = 0, 1
DIRECT, HAPROXY, FLOOR = "redis direct", "haproxy", "relay floor"
GATE, GATE_OFF = "bloomgate", "bloomgate off"
NAMES = (DIRECT, HAPROXY, FLOOR, GATE, GATE_OFF)
HAPROXY_CONFIG = """\
global
    nbthread 1
    maxconn 1000
defaults
    mode tcp
    timeout connect 5s
    timeout client 60s
    timeout server 60s
listen redis
    bind 127.0.0.1:%d
    server redis 127.0.0.1:%d
"""


class Failed(Exception):
    pass


def missing(build):
    """What must be installed or built first, or None."""
    for program in ("redis-server", "haproxy"):
        if not shutil.which(program):
            return "no %s: apt-get install %s" % (program, program)
    for path in ("src/bloomgate", "tests/bench/load", "tests/bench/floor"):
        if not os.access(os.path.join(build, path), os.X_OK):
            return "no %s in %s: make %s" % (path, build, path)
    return None


class Bench:
    """The servers, by name: (address, process, prefix of the keys to read)."""

    def __init__(self, folder, build, options):
        self.folder = folder
        self.build = build
        self.options = options
        self.servers = {}
        self.children = []

    def start(self):
        server = redis.Redis(os.path.join(self.folder, "redis"), tcp=True)
        self.children.append(server)
        server.start()
        server.child.pin(REDIS_CORE)
        server.fill([
            ("%s:%d" % (prefix, i), "value:%d" % i)
            for prefix in ("item", "off") for i in range(IDS)
        ])
        self.redis = server.child
        self.servers[DIRECT] = server.address, None, "item"
        self.start_relay(HAPROXY, server.port, self.haproxy_argv)
        self.start_relay(FLOOR, server.port, self.floor_argv)
        self.start_gate(server)

    def haproxy_argv(self, port, upstream):
        path = os.path.join(self.folder, "haproxy.cfg")
        with open(path, "w") as out:
            out.write(HAPROXY_CONFIG % (port, upstream))
        return ["haproxy", "-db", "-f", path]

    def floor_argv(self, port, upstream):
        path = os.path.join(self.build, "tests/bench/floor")
        return [path, str(port), str(upstream)]

    def start_relay(self, name, upstream, argv):
        port = free_port()
        child = Child(argv(port, upstream), os.path.join(self.folder, name))
        self.children.append(child)
        address = "127.0.0.1:%d" % port

        def answers():
            if not child.running():
                raise Failed("%s ended: %s" % (name, child.text()))
            try:
                with daemon.resp.Client(address) as client:
                    return client.call("PING") == b"+PONG\r\n"
            except (OSError, daemon.resp.Closed):
                return False

        wait.until(answers, 10, name)
        child.pin(PROXY_CORE)
        self.servers[name] = address, child, "item"

    def start_gate(self, server):
        plain = {"capacity": IDS, "check": "remote"}
        gate = daemon.Bloomgate(
            os.path.join(self.folder, "gate"), server,
            {"filters": [
                dict(plain, name="user", keys=["user:{id}"]),
                dict(plain, name="off", keys=["off:{id}"], mode="off"),
            ]}, tcp=True,
        )
        self.children.append(gate)
        gate.start()
        gate.child.pin(PROXY_CORE)
        self.servers[GATE] = gate.tcp_address, gate.child, "item"
        self.servers[GATE_OFF] = gate.tcp_address, gate.child, "off"

    def stop(self):
        for child in reversed(self.children):
            child.kill()

    def measure(self, name, depth, requests, seed):
        """One run: {rps, proxy, redis} in requests a second and us a request."""
        address, child, prefix = self.servers[name]
        command = [
            os.path.join(self.build, "tests/bench/load"), "-a", address,
            "-c", str(self.options.connections), "-P", str(depth),
            "-n", str(requests), "-i", "0-%d" % (IDS - 1), "-s", str(seed),
            "GET", prefix + ":{id}",
        ]
        before = [c.cpu_seconds() if c else 0 for c in (child, self.redis)]
        ended = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            preexec_fn=lambda: os.sched_setaffinity(0, {PROXY_CORE}),
        )
        after = [c.cpu_seconds() if c else 0 for c in (child, self.redis)]
        found = dict(line.split(" ", 1) for line in ended.stdout.splitlines())
        if (ended.returncode != 0 or found["errors"] != "0"
                or found["nils"] != "0" or int(found["requests"]) < requests):
            raise Failed("%s, P=%d: %s" % (name, depth, ended.stdout))
        used = [(b - a) * 1e6 / requests for a, b in zip(before, after)]
        return {"rps": float(found["requests_per_second"]),
                "proxy": used[0], "redis": used[1]}


def median(rows, key):
    return statistics.median(row[key] for row in rows)


def ratio(rows, others, key):
    """The median over the rounds of the ratio within one round."""
    return statistics.median(
        row[key] / other[key] for row, other in zip(rows, others)
    )


def report(depth, found):
    print("P=%d, medians and the medians of each round's ratios" % depth)
    print("  %-14s %9s %9s %9s %9s %11s %9s" % (
        "", "rps", "proxy us", "redis us", "/ haproxy", "/ floor", "rps/direct"))
    for name, rows in found.items():
        line = "  %-14s %9.0f %9.3f %9.3f" % (
            name, median(rows, "rps"), median(rows, "proxy"),
            median(rows, "redis"))
        for other, key in ((HAPROXY, "proxy"), (FLOOR, "proxy"),
                           (DIRECT, "rps")):
            known = name != DIRECT and other in found
            line += " %9s" % (
                "%.3f" % ratio(rows, found[other], key) if known else "-")
        print(line, flush=True)


def run(bench, options, rng):
    names = [n for n in NAMES if not options.only or n in options.only]
    for depth in options.depths:
        # Batches cost little a request: as long a run needs more of them.
        requests = options.requests * min(depth, 8)
        found = {name: [] for name in names}
        for index in range(options.rounds):
            order = rng.sample(names, len(names))
            for name in order:
                found[name].append(bench.measure(
                    name, depth, requests, rng.randrange(1 << 31)))
            print("P=%d round %d of %d, proxy us/request: %s" % (
                depth, index + 1, options.rounds, ", ".join(
                    "%s %.3f" % (name, found[name][-1]["proxy"])
                    for name in order if name != DIRECT)), flush=True)
        report(depth, found)


def numbers(text):
    return [int(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=100000)
    parser.add_argument("-P", dest="depths", type=numbers, default=[1, 16])
    parser.add_argument("-c", dest="connections", type=int, default=50)
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--build", default=os.path.dirname(os.path.dirname(
        daemon.PROGRAM)))
    options = parser.parse_args()
    need = missing(options.build)
    if need:
        print(need, file=sys.stderr)
        return 2
    seed = os.environ.get("BLOOMGATE_SEED") or os.urandom(4).hex()
    print("seed", seed)
    folder = tempfile.mkdtemp(prefix="bg-bench-")
    bench = Bench(folder, options.build, options)
    try:
        bench.start()
        run(bench, options, random.Random(seed))
    except Failed as failure:
        print(failure, file=sys.stderr)
        return 1
    finally:
        bench.stop()
        shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
