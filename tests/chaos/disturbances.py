# SPDX-License-Identifier: BSD-2-Clause
"""
What goes wrong. Each function disturbs and returns when the disturbance has
ended, with everything running again; TABLE names them. Several may run at once:
locks keep two from stopping the same process. Those that are ALONE come by
themselves.
"""

import collections
import random

from traffic import Queued, QueuedAdds
from world import FILTER, LEASE, wait

Disturbance = collections.namedtuple("Disturbance", "run alone peers_lost weight needs")


class Scene:
    """What a disturbance acts on."""

    def __init__(self, world, checker, stopping, rng):
        self.world = world
        self.checker = checker
        self.stopping = stopping
        self.rng = rng

    def fork(self):
        return Scene(self.world, self.checker, self.stopping,
                     random.Random(self.rng.random()))

    def lasts(self, low, high):
        """The traffic goes on for a while."""
        self.stopping.wait(self.rng.uniform(low, high))

    def gate(self):
        return self.rng.choice(self.world.gates)

    def note(self, text):
        self.checker.note("    " + text)


# --- bloomgates ---------------------------------------------------------------
def kill_gate(s, gate=None):
    gate = gate or s.gate()
    with gate.lock:
        gate.away = True
        gate.kill()
        s.note("b%d is killed" % gate.index)
        s.lasts(0, LEASE * 1.2)
        gate.start()
        gate.away = False


def stop_gate(s):
    gate = s.gate()
    with gate.lock:
        gate.away = True
        gate.end()
        s.note("b%d has stopped" % gate.index)
        s.lasts(0, 1)
        gate.start()
        gate.away = False


def kill_all_gates(s):
    for gate in s.world.gates:
        gate.lock.acquire()
        gate.away = True
        gate.kill()
    s.lasts(0, 1)
    for gate in s.world.gates:
        gate.start()
        gate.away = False
        gate.lock.release()


def pause_gate(s, gate=None):
    """Stopped beyond its lease; what was asked meanwhile is answered after."""
    gate = gate or s.gate()
    with gate.lock:
        gate.away = True
        gate.child.signal(19)
        s.note("b%d is stopped (SIGSTOP)" % gate.index)
        s.lasts(LEASE * 0.3, LEASE * 1.7)
        queued = Queued(s.checker, gate, s.rng)
        gate.child.signal(18)
        queued.collect()
        gate.away = False


def builder(s):
    """Starts a rebuild with a slow source; the bloomgate that does it."""
    gate = s.gate()
    s.world.source_mode("slow")
    s.world.admin(gate, "REBUILD", FILTER)
    s.lasts(0, 0.8)
    return gate


def kill_builder(s):
    kill_gate(s, builder(s))
    s.world.source_mode("ok")


def pause_builder(s):
    pause_gate(s, builder(s))
    s.world.source_mode("ok")


def pause_peer(s):
    """One bloomgate sleeps through the beginning of a rebuild; what it is asked
    to add after the source was read, it adds as soon as it wakes, with what it
    knew of before."""
    sleeper, *others = s.rng.sample(s.world.gates, len(s.world.gates))
    with sleeper.lock:
        sleeper.away = True
        sleeper.child.signal(19)
        s.world.source_mode("slow")
        reads = s.world.source_reads()
        s.world.admin(others[0], "REBUILD", FILTER)
        for _ in range(80):
            if s.world.source_reads() > reads:
                break
            s.stopping.wait(0.1)
        adds = QueuedAdds(s.world, s.checker, sleeper, s.rng)
        sleeper.child.signal(18)
        adds.collect()
        sleeper.away = False
        s.world.source_mode("ok")


# --- connections --------------------------------------------------------------
def cut(s):
    for _ in range(s.rng.randrange(1, 6)):
        for gate in s.rng.sample(s.world.gates, s.rng.randrange(1, 4)):
            s.world.relay("cut", gate.index)
        s.lasts(0, 0.4)


def partition(s):
    """One bloomgate hears nothing of Redis; then all of it comes late, or
    never."""
    gate = s.gate()
    late = s.rng.random() < 0.5
    s.world.relay("hold", gate.index)
    s.note("b%d is cut off, its bytes come %s" % (
        gate.index, "late" if late else "never"))
    s.lasts(0.2, LEASE * 1.7)
    if not late:
        s.world.relay("cut", gate.index)
    s.world.relay("go", gate.index)


# --- Redis --------------------------------------------------------------------
def kill_redis(s):
    with s.world.redis_lock:
        s.world.master.kill()
        s.lasts(0, 1)
        s.world.master.restart()


def restore_snapshot(s):
    """Comes back with what it held a while ago."""
    with s.world.redis_lock:
        master = s.world.master
        if s.world.redis("SAVE") != "OK":
            s.note("no snapshot could be written")
            return
        master.keep_snapshot("kept.rdb")
        s.lasts(0.2, 1.5)
        if s.rng.random() < 0.3:
            s.world.admin(s.gate(), "REBUILD", FILTER)
            s.lasts(0, 1)
        master.restart(snapshot="kept.rdb")


def pause_redis(s):
    with s.world.redis_lock:
        s.world.master.pause()
        s.lasts(0.2, LEASE * 1.3)
        s.world.master.resume()


def promote(s):
    """The master dies and its replica follows, which may lack the last adds."""
    world = s.world
    with world.redis_lock:
        if not world.in_step():
            s.note("the replica is not in step yet")
            wait.until(world.in_step, 20, "the replica is in step")
        if s.rng.random() < 0.6:
            world.redis("REPLICAOF", "NO", "ONE", server=world.replica)
            s.note("the replica is behind")
            s.lasts(0.1, 1)
        world.promote()
        s.lasts(0, 1)
        world.replica.restart()
        world.attach_replica()


def flushall(s):
    s.world.redis("FLUSHALL")


def flushdb(s):
    s.world.redis("FLUSHDB", s.rng.choice(("SYNC", "ASYNC")))


def some_shard(s):
    shards, offset = s.world.shards_of(s.rng.choice((b"active",) * 3 + (b"building",)))
    return (s.rng.choice(shards), offset) if shards else (None, 0)


def delete_shard(s):
    shard, _ = some_shard(s)
    if shard:
        way = s.rng.choice(("DEL", "UNLINK", "empty", "type", "expire", "short"))
        s.note("%s: %s" % (shard.decode(), way))
        if way == "empty":
            s.world.redis("SET", shard, "")
        elif way == "type":
            s.world.redis("DEL", shard)
            s.world.redis("RPUSH", shard, "x")
        elif way == "expire":
            s.world.redis("PEXPIRE", shard, "1")
        elif way == "short":
            s.world.redis("SET", shard, "x" * 999)
        else:
            s.world.redis(way, shard)


def corrupt_tag(s):
    shard, offset = some_shard(s)
    if shard:
        tag = s.rng.choice((b"\0" * 8, s.rng.randbytes(8)))
        s.world.redis("SETRANGE", shard, offset, tag)


def full_memory(s):
    used = s.world.redis("INFO", "memory")
    if used is None:
        return
    used = int(used.split(b"used_memory:")[1].split(b"\r")[0])
    s.world.redis("CONFIG", "SET", "maxmemory-policy", "noeviction")
    s.world.redis("CONFIG", "SET", "maxmemory", s.rng.choice((1, used, used + 60000)))
    if s.rng.random() < 0.5:
        s.world.admin(s.gate(), "REBUILD", FILTER)
    s.lasts(0.3, 2)
    for server in s.world.servers:
        s.world.redis("CONFIG", "SET", "maxmemory", "0", server=server)


def swap_databases(s):
    """Another, empty database, and after its rebuild the old one again."""
    world = s.world
    if world.redis("SWAPDB", "0", "1") != "OK":
        return
    done = world.rebuilds_done()
    wait.until(lambda: world.rebuilds_done() > done, 30, "the rebuild after SWAPDB")
    s.lasts(1.2, 2.5)
    world.redis("SWAPDB", "0", "1")
    world.redis("SELECT", "0")


# --- rebuilds -----------------------------------------------------------------
def rebuild(s):
    for _ in range(s.rng.randrange(1, 5)):
        s.world.source_mode(s.rng.choice(("ok", "slow", "slow")))
        s.world.admin(s.gate(), "REBUILD", FILTER)
        s.lasts(0, 1.2)
    s.world.source_mode("ok")


def rebuild_everywhere(s):
    for gate in s.world.gates:
        s.world.admin(gate, "REBUILD", FILTER)


def abort(s):
    """On one bloomgate only: it then rests for a minute, the others build."""
    gate = s.world.gates[0]
    s.world.source_mode("slow")
    s.world.admin(gate, "REBUILD", FILTER)
    s.lasts(0, 0.6)
    s.world.admin(gate, "ABORT", FILTER)
    s.world.source_mode("ok")


def bad_source(s):
    mode = s.rng.choice(("half", "half", "short", "hang"))
    s.note("the source: " + mode)
    s.world.source_mode(mode)
    s.world.admin(s.gate(), "REBUILD", FILTER)
    if s.rng.random() < 0.3:
        s.world.redis("FLUSHALL")
    s.lasts(0.5, 1.5)
    s.world.source_mode("ok")


def rollback(s):
    """The one before serves again. It has had every add, so all acknowledged ids
    are in it. It begins in observe: the operator ends that at once."""
    gate = s.gate()
    s.note("b%d: %r" % (gate.index, s.world.admin(gate, "ROLLBACK", FILTER)))
    s.lasts(0, 1)
    for gate in s.world.gates:
        s.world.admin(gate, "MODE", FILTER, "enforce")


def row(run, alone=False, peers_lost=False, weight=2, needs=None):
    return Disturbance(run, alone, peers_lost, weight, needs)


# weight: how often, against the others. peers_lost: a rebuild after it may have
# to wait for a dead peer's field to end. needs: a command of the admin socket;
# where HELP does not name it, this is left out.
TABLE = {
    "kill-gate": row(kill_gate, peers_lost=True),
    "stop-gate": row(stop_gate),
    "kill-all-gates": row(kill_all_gates, alone=True, peers_lost=True, weight=1),
    "pause-gate": row(pause_gate, peers_lost=True),
    "kill-builder": row(kill_builder, peers_lost=True),
    "pause-builder": row(pause_builder, peers_lost=True),
    "pause-peer": row(pause_peer, peers_lost=True),
    "cut": row(cut),
    "partition": row(partition, peers_lost=True),
    "kill-redis": row(kill_redis),
    "restore-snapshot": row(restore_snapshot),
    "pause-redis": row(pause_redis),
    "promote": row(promote),
    "flushall": row(flushall, weight=1),
    "flushdb": row(flushdb, weight=1),
    "delete-shard": row(delete_shard),
    "corrupt-tag": row(corrupt_tag, weight=1),
    "full-memory": row(full_memory),
    "swap-databases": row(swap_databases, alone=True, weight=1),
    "rebuild": row(rebuild),
    "rebuild-everywhere": row(rebuild_everywhere, weight=1),
    "abort": row(abort, weight=1),
    "bad-source": row(bad_source),
    "rollback": row(rollback, needs="ROLLBACK"),
}
