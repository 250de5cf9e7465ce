# SPDX-License-Identifier: BSD-2-Clause
"""
Every scheme and both layouts, side by side in one bloomgate: built, rebuilt and
added to, with no id of the source ever absent. FAULTS: G4, I1, I4, I5.
"""

import os
import subprocess

import pytest
from bg import daemon, resp, wait

NULL = resp.bulk("__NULL__")
KINDS = [
    ("guava", "sharded"),
    ("guava", "single"),
    ("guava-seeded", "sharded"),
    ("guava-seeded", "single"),
    ("guava-hashcode", "sharded"),
    ("redisson", "single"),
    ("poly", "single"),
    ("keyed", "sharded"),
    ("keyed", "single"),
]
MEMBERS = ["%d" % i for i in range(500)] + ["Jos\u00e9", "\U0001f600", "a b", "x" * 4000]
OTHERS = ["none%d" % i for i in range(500)]


def name_of(kind):
    return "%s-%s" % kind


@pytest.fixture
def gate(redis, bloomgate, ids_file, folder):
    key = os.path.join(folder, "key")
    with open(key, "wb") as out:
        out.write(bytes(range(32)))
    source = ids_file(MEMBERS)
    filters = []
    for scheme, layout in KINDS:
        name = name_of((scheme, layout))
        filters.append({
            "name": name,
            "keys": [name + ":{id}"],
            "capacity": 1000,
            "scheme": scheme,
            "layout": layout,
            "absent-reply": {"value": "__NULL__"},
            "check": "remote",
            "rebuild": {
                "source": {"file": source, "trust": True}, "schedule": "never",
                **({"grow": False} if scheme == "poly" else {}),
            },
            **({"key-file": key} if scheme == "keyed" else {}),
        })
    return bloomgate(redis, filters=filters)


def check(gate, name, members, others):
    """No member is absent; nearly all others are, if not at once: a change of the
    epoch (a swap, the retiring after it) makes all maybe until the next heartbeat."""
    with gate.client(seconds=30) as client:

        def count(ids, want):
            data = b"".join(resp.encode("GET", name + ":" + one) for one in ids)
            return client.exchange(data, len(ids)).count(want)

        assert count(members, resp.NIL2) == len(members), name
        wait.until(lambda: count(others, NULL) > 0.9 * len(others), 10,
                   "absents of " + name)


def test_all_kinds(gate, redis):
    for kind in KINDS:
        name = name_of(kind)
        check(gate, name, MEMBERS, OTHERS)
        assert gate.value("BF.ADD", name, "later") == 1
        assert gate.value("BF.ADD", name, "later") == 0
        check(gate, name, MEMBERS[:20] + ["later"], OTHERS[:100])


def test_rebuilt(gate, redis):
    """The next generation of a month has another name, and for keyed another
    fingerprint; ids added before and not in the source go with the old one."""
    for kind in KINDS:
        name = name_of(kind)
        before = redis.value("HGET", "bloom:{%s}:meta" % name, "active")
        gate.rebuild(name)
        meta = "bloom:{%s}:meta" % name
        wait.until(
            lambda: redis.value("HGET", meta, "active") == before + b".2", 30, "the swap"
        )
        gate.wait_state("serving", name=name)
        check(gate, name, MEMBERS[:50], OTHERS[:100])


def test_single_layout_is_a_plain_bitmap(gate, redis):
    """Any client that knows the formulas can read it: bits as the vectors say."""
    meta = redis.value("HGETALL", "bloom:{guava-seeded-single}:meta")
    meta = dict(zip(meta[::2], meta[1::2]))
    name = meta[b"active"]
    bits = int(meta[b"g:" + name + b":bits"])
    hashes = int(meta[b"g:" + name + b":k"])
    assert int(meta[b"g:" + name + b":shards"]) == 1
    key = b"bloom:{guava-seeded-single}:" + name + b"/0"
    assert redis.value("STRLEN", key) == (bits + 63) // 64 * 8 + 8
    out = subprocess.run(
        [daemon.CTL, "positions", "--scheme", "guava-seeded", "--bits", str(bits),
         "--hashes", str(hashes), *MEMBERS[:50]],
        check=True, stdout=subprocess.PIPE, text=True,
    ).stdout
    assert len(out.splitlines()) == 50
    for line in out.splitlines():
        for position in line.split(","):
            assert redis.value("GETBIT", key, position) == 1
