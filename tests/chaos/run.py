#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
Chaos: three bloomgates, a Redis with a replica, an application that adds and
reads, and everything that can go wrong, while a checker holds every answer
against laws 1, 2 and 8 (checker.py says how, and what lies outside of them).

  tests/chaos/run.py [--seconds 60] [--seed X] [--only NAME,...]
                     [--check remote|mirror]

In rounds: one to three disturbances, then everything must be absent again within
its time, then the acknowledged ids are asked for through every bloomgate. Prints
the seed, a timeline and what was seen. Exit 0, or 1 with the history of the
offending id. BLOOMGATE: the program; BLOOMGATE_SLOW multiplies every limit. The
last line is "N passed, N failed, 0 skipped".
"""

import argparse
import concurrent.futures
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback

import disturbances
from checker import Checker
from traffic import SECONDS, Session, Silent, Traffic
from world import FIRST_IDS, GATES, LEASE, PEER_SLACK, STALENESS, World, daemon, resp, wait

BOUND = 5  # seconds beyond lease and rebuild
SWEEP = 500  # acknowledged ids asked for after each round


def arguments():
    parser = argparse.ArgumentParser(description="see the head of this file")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", default=os.environ.get("BLOOMGATE_SEED"))
    parser.add_argument("--only", help="disturbances, separated by commas")
    parser.add_argument("--check", choices=("remote", "mirror"), default="remote")
    parser.add_argument("--capacity", type=int, default=200000)
    parser.add_argument("--suffix", help="names of generations (strftime)")
    parser.add_argument("--keep", action="store_true", help="keep the folder")
    parser.add_argument("--list", action="store_true", help="name the disturbances")
    options = parser.parse_args()
    options.seed = options.seed or os.urandom(4).hex()
    table = disturbances.TABLE
    options.names = options.only.split(",") if options.only else list(table)
    for name in options.names:
        if name not in table:
            parser.error("no disturbance is called %s" % name)
    return options


class Run:
    def __init__(self, options, folder):
        self.rng = random.Random(options.seed)
        if options.suffix is None:
            # By the month, or a new name for each rebuild.
            options.suffix = self.rng.choice(("%Y%m", "%Y%m%d-%H%M%S"))
        self.options = options
        self.world = World(folder, options)
        self.checker = Checker(STALENESS if options.check == "mirror" else None)
        self.traffic = Traffic(self.world, self.checker, options.seed)
        # Its threads live as long as the run, as the children need it.
        self.pool = concurrent.futures.ThreadPoolExecutor(4)
        self.scene = disturbances.Scene(
            self.world, self.checker, self.traffic.stopping, self.rng)
        self.seen = {}  # gate: (start of its log, rebuilds in it)

    def begin(self):
        first = ["first-%d" % i for i in range(FIRST_IDS)]
        now = time.monotonic()
        self.pool.submit(self.world.start, first).result()
        self.checker.acknowledged(first, None, "the source", now, now)
        self.checker.note("serving; a rebuild takes %.3f s" % self.world.rebuild_seconds)
        known = str(self.world.admin(self.world.gates[0], "HELP"))
        table = disturbances.TABLE
        self.names = [
            name for name in self.options.names
            if table[name].needs is None or table[name].needs in known
        ]
        assert self.names, "this bloomgate cannot do that yet"
        self.traffic.start()

    # --- one round ---------------------------------------------------------------
    def choose(self):
        table = disturbances.TABLE
        weights = [table[name].weight for name in self.names]
        count = self.rng.choice((1, 1, 2, 3))
        names = []
        for name in self.rng.choices(self.names, weights, k=count):
            if table[name].alone:
                return [name]
            if name not in names:
                names.append(name)
        return names

    def disturb(self, name, scene, delay):
        scene.lasts(0, delay)
        began = time.monotonic()
        self.checker.note("%s" % name)
        disturbances.TABLE[name].run(scene)
        self.checker.note("%s has ended after %.3f s" % (name, time.monotonic() - began))

    def new_rebuilds(self):
        """The seconds of rebuilds that were done since the last call."""
        seconds = []
        for gate in self.world.gates:
            events = gate.events("rebuild_done")
            offset, count = self.seen.get(gate.index, (gate.offset, 0))
            if offset != gate.offset:
                count = 0
            seconds += [float(e["seconds"]) for e in events[count:]]
            self.seen[gate.index] = (gate.offset, len(events))
        return seconds

    def round(self):
        names = self.choose()
        self.new_rebuilds()
        scenes = [self.scene.fork() for _ in names]
        works = [
            self.pool.submit(self.disturb, name, scene, 0 if i == 0 else 1.5)
            for i, (name, scene) in enumerate(zip(names, scenes))
        ]
        for work in works:
            work.result()
        self.recover(names, time.monotonic())
        self.sweep(SWEEP)

    def recover(self, names, ended):
        """Until every bloomgate says absent to questions from now on."""
        lost = any(disturbances.TABLE[name].peers_lost for name in names)
        most = 2 * self.world.rebuild_seconds + (lost and LEASE + PEER_SLACK)
        while not self.traffic.absent_everywhere(ended):
            if self.checker.broken.is_set():
                return
            for gate in self.world.gates:
                if not gate.child.running():
                    self.checker.failure("b%d has ended by itself" % gate.index)
            if time.monotonic() > ended + (LEASE + most + BOUND) * wait.SLOW:
                self.late(names, ended)
                return
            self.traffic.stopping.wait(0.01)
        seconds = max(self.traffic.last_absent.values())
        seconds = max(0, min(time.monotonic(), seconds) - ended)
        rebuilds = self.new_rebuilds()
        allowed = LEASE + min(max(rebuilds, default=0), most) + BOUND
        self.checker.recovered(names, seconds)
        self.checker.note("absent again %.3f s later; rebuilds: %s" % (
            seconds, ", ".join("%.3f s" % s for s in rebuilds) or "none"))
        if seconds > allowed * wait.SLOW:
            self.late(names, ended, allowed)

    def late(self, names, ended, allowed=None):
        behind = [
            "b%d" % index for index, at in self.traffic.last_absent.items()
            if at <= ended
        ]
        self.checker.failure(
            "after %s: unknown ids are not absent again %.3f s later%s%s" % (
                ", ".join(names), time.monotonic() - ended,
                " (allowed %.3f s)" % (allowed * wait.SLOW) if allowed else "",
                ", through " + ", ".join(behind) if behind else ""))

    def sweep(self, count=None):
        """Acknowledged ids, the newest and some others, through each bloomgate."""
        everything = self.checker.everything()
        ids = everything
        if count is not None and len(everything) > count:
            ids = everything[-count // 2:] + self.rng.sample(everything, count // 2)
        session = Session(self.world, self.rng)
        try:
            for gate in self.world.gates:
                for at in range(0, len(ids), 200):
                    try:
                        self.traffic.ask_known(session, gate, self.rng, ids[at:at + 200])
                    except Silent:
                        self.checker.counts["requests without a reply"] += 1
                if self.checker.broken.is_set():
                    return
        finally:
            session.close()

    # --- the whole --------------------------------------------------------------
    def go(self):
        end = time.monotonic() + self.options.seconds
        rounds = 0
        while time.monotonic() < end and not self.checker.broken.is_set():
            self.round()
            rounds += 1
        if not self.checker.broken.is_set():
            self.sweep()
        return rounds

    def diagnose(self):
        """What the processes know, while they still run."""
        for violation in self.checker.violations[:3]:
            yield from self.checker.history(violation)
            one = violation[0]
            for gate in self.world.gates if one else ():
                yield "    b%d: BF.EXISTS now %r" % (gate.index, self.ask(gate, one))
        for gate in self.world.gates:
            if not gate.child:
                continue
            yield "--- the end of b%d's log" % gate.index
            yield from gate.lines_text().splitlines()[-25:]
        meta = self.world.meta()
        yield "--- meta"
        for field in sorted(meta):
            yield "%s %r" % (field.decode(), meta[field])

    def ask(self, gate, one):
        try:
            with resp.Client(gate.address, seconds=SECONDS) as client:
                return client.value("BF.EXISTS", "user", one)
        except (OSError, resp.Closed, AssertionError) as failure:
            return failure


def run(options, folder):
    """True when no law was broken."""
    r = Run(options, folder)
    checker = r.checker
    try:
        try:
            r.begin()
            rounds = r.go()
            checker.note("%d rounds" % rounds)
        except Exception as failure:
            traceback.print_exc()
            checker.failure("the run itself: %r" % failure)
        if checker.violations:
            print("\n".join(r.diagnose()), flush=True)
        r.traffic.stop()
        for wrong in r.world.stop():
            checker.failure(wrong)
    finally:
        r.traffic.stop()
        r.world.kill()
        r.pool.shutdown()
    for line in checker.report():
        print(line)
    if checker.violations:
        for violation in checker.violations[:3]:
            print("\n".join(checker.history(violation)))
        print("%d violations; repeat with --seed %s" % (
            len(checker.violations), options.seed))
    if not checker.counts["absents of unknown ids"]:
        print("nothing was ever absent: nothing was tested")
        return False
    return not checker.violations


def main():
    options = arguments()
    if options.list:
        print("\n".join(options.names))
        return 0
    print("seed %s, %d bloomgates (%s), check: %s" % (
        options.seed, GATES, daemon.PROGRAM, options.check), flush=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by way of finally
    folder = tempfile.mkdtemp(prefix="bg-chaos-")
    try:
        good = run(options, folder)
    finally:
        if options.keep:
            print("kept: " + folder)
        else:
            shutil.rmtree(folder)
    print("%d passed, %d failed, 0 skipped" % (good, not good))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
