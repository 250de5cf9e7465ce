#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
How long filling a filter takes and what it costs Redis, beside the usual way.

  tests/bench/fill.py [--rounds N] [--sizes 1000000,10000000] [--no-setbit]

Each round starts a redis-server with an empty filter, starts bloomgate with a
file of ids (redis-share 1) and waits until the filter serves; in the same Redis
the usual way then sets the same number of bits: SETBIT in a Lua script, 5000 ids
a batch, decimal offsets (drawn at random: hashing is left out, in its favour).
Redis's CPU time is that of all its threads, its commands' times are its own
SLOWLOG's. Exit 1 when a limit is missed.
"""

import argparse
import os
import random
import statistics
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests/integration"))

from bg import daemon, redis, resp, wait  # noqa: E402

SETBITS = b"""
for i = 1, #ARGV do redis.call('setbit', KEYS[1], ARGV[i], 1) end
return #ARGV
"""
# Redis 7 also logs each command that a script calls: those are not counted a
# second time. Of what bloomgate sends these are all that do work.
SENT = (b"EVAL", b"EVALSHA", b"BITFIELD_RO", b"SCRIPT")
LIMITS = {1000000: (0.6, 0.05), 10000000: (6, None)}
BATCH = 5000
BITS, HASHES = 9585058, 7


def slow_times(server):
    """Milliseconds of each command since the last reset."""
    entries = server.value("SLOWLOG", "GET", "-1")
    server.value("SLOWLOG", "RESET")
    return sorted(
        entry[2] / 1000 for entry in entries if entry[3][0].upper() in SENT
    )


def percentile(sorted_values, share):
    if not sorted_values:
        return 0.0
    return sorted_values[min(len(sorted_values) - 1,
                             int(share * len(sorted_values)))]


def report(row, wall, cpu, times):
    row.update(
        wall=wall, cpu=cpu, commands=len(times), p99=percentile(times, 0.99),
        worst=times[-1] if times else 0.0,
    )
    print(
        "  %-30s %8.3f s  redis cpu %8.4f s  %6d commands, p99 %7.3f ms,"
        " max %7.3f ms" % (row["way"], wall, cpu, row["commands"], row["p99"],
                           row["worst"])
    )
    return row


def fill_by_bloomgate(folder, server, path, total):
    gate = daemon.Bloomgate(
        os.path.join(folder, "gate"), server,
        {"filters": [{
            "name": "user", "keys": ["user:{id}"], "capacity": total,
            "error-rate": 0.01, "check": "remote",
            "rebuild": {"source": {"file": path, "trust": True},
                        "redis-share": 1, "schedule": "never"},
        }]},
    )
    server.value("SLOWLOG", "RESET")
    before, began = server.child.cpu_seconds(), time.monotonic()
    gate.start()
    try:
        gate.wait_state("serving", seconds=120)
        first = time.monotonic() - began, server.child.cpu_seconds() - before
        times = slow_times(server)
        first = report({"way": "bloomgate, from its start"}, *first, times)
        # Once more on the running one: a rebuild as the schedule does it.
        before, began = server.child.cpu_seconds(), time.monotonic()
        gate.rebuild()
        # By its log: asking Redis would be work for Redis.
        wait.until(
            lambda: len(gate.events("rebuild_done")) == 2, 120, "the swap"
        )
        wall = time.monotonic() - began
        cpu = server.child.cpu_seconds() - before
        again = report({"way": "bloomgate, REBUILD to swap"}, wall, cpu,
                       slow_times(server))
    finally:
        gate.stop()
    return [first, again]


def fill_by_setbit(server, total, rng):
    bits = int(BITS * total / 1000000)
    # Not every SETBIT in the script: that would triple its cost.
    server.value("CONFIG", "SET", "slowlog-log-slower-than", 1000)
    server.value("SLOWLOG", "RESET")
    wall = cpu = 0.0
    for at in range(0, total, BATCH):
        ids = min(BATCH, total - at)
        offsets = [b"%d" % rng.randrange(bits) for _ in range(ids * HASHES)]
        request = resp.encode("EVAL", SETBITS, 1, "by-hand", *offsets)
        before, began = server.child.cpu_seconds(), time.monotonic()
        assert server_send(server, request) == len(offsets)
        wall += time.monotonic() - began
        cpu += server.child.cpu_seconds() - before
    return report({"way": "SETBIT in Lua, 5000 ids a batch"}, wall, cpu,
                  slow_times(server))


def server_send(server, request):
    server.call("PING")
    server._client.send(request)
    return resp.parse(server._client.read())


def run_round(total, setbit, rng):
    folder = tempfile.mkdtemp(prefix="bg-bench-")
    server = redis.Redis(os.path.join(folder, "redis"),
                         slowlog_log_slower_than=0, slowlog_max_len=200000)
    rows = []
    try:
        server.start()
        path = os.path.join(folder, "ids.txt")
        with open(path, "w") as out:
            for at in range(0, total, 100000):
                out.write("".join(
                    "%d\n" % i for i in range(at, min(total, at + 100000))
                ))
        rows += fill_by_bloomgate(folder, server, path, total)
        if setbit:
            rows.append(fill_by_setbit(server, total, rng))
    finally:
        server.kill()
        for base, folders, files in os.walk(folder, topdown=False):
            for name in files:
                os.unlink(os.path.join(base, name))
            for name in folders:
                os.rmdir(os.path.join(base, name))
        os.rmdir(folder)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", default="1000000,10000000")
    parser.add_argument("--no-setbit", action="store_true")
    options = parser.parse_args()
    seed = os.environ.get("BLOOMGATE_SEED") or os.urandom(4).hex()
    print("seed", seed)
    rng = random.Random(seed)
    missed = []
    for total in map(int, options.sizes.split(",")):
        found = {}
        for index in range(options.rounds):
            print("%d ids, round %d of %d" % (total, index + 1, options.rounds))
            # Ten times as much by hand takes a minute and shows nothing new.
            setbit = not options.no_setbit and total <= 1000000
            for row in run_round(total, setbit, rng):
                found.setdefault(row["way"], []).append(row)
        print("%d ids, medians" % total)
        for way, rows in found.items():
            middle = {
                key: statistics.median(row[key] for row in rows)
                for key in ("wall", "cpu", "p99", "worst", "commands")
            }
            print(
                "  %-30s %8.3f s  redis cpu %8.4f s  p99 %7.3f ms  max %7.3f ms"
                % (way, middle["wall"], middle["cpu"], middle["p99"],
                   middle["worst"])
            )
            if way.startswith("bloomgate"):
                wall, cpu = LIMITS.get(total, (None, None))
                if wall and middle["wall"] > wall:
                    missed.append("%d ids, %s: %.3f s wall" % (
                        total, way, middle["wall"]))
                if cpu and middle["cpu"] > cpu:
                    missed.append("%d ids, %s: %.4f s of Redis" % (
                        total, way, middle["cpu"]))
                if middle["p99"] > 1:
                    missed.append("%d ids, %s: p99 %.3f ms" % (
                        total, way, middle["p99"]))
                if max(row["worst"] for row in rows) > 5:
                    missed.append("%d ids, %s: max %.3f ms" % (
                        total, way, max(row["worst"] for row in rows)))
    for line in missed:
        print("missed:", line)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
