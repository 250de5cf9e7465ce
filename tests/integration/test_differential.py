# SPDX-License-Identifier: BSD-2-Clause
"""
Laws 3 and 4, and 1 with it: through bloomgate every reply is what Redis itself
gives, byte for byte, with the filter off and with one over every key that
starts empty and learns. FAULTS: A3-A9, C3, D3, D4, G8. Both ways use one Redis,
flushed in between, so that hash seeds and orders are the same; the filter lies
in a store of its own, so that FLUSHALL takes data only.
"""

import difflib

import pytest
from bg import resp, sequences

RESET = [("FLUSHALL",), ("SCRIPT", "FLUSH"), ("FUNCTION", "FLUSH")]


class Side:
    """One way to the data Redis."""

    def __init__(self, name, redis, client):
        self.name = name
        self.redis = redis
        self.client = client

    def run(self, sequence, protocol, steps, pieces=()):
        for command in RESET:
            assert self.redis.value(*command) == "OK"
        with self.client() as client:
            if protocol == 3:
                assert client.call("HELLO", "3").startswith(b"%")
            if steps:
                replies = sequences.run_step_by_step(client, sequence)
            else:
                replies = sequences.run_at_once(client, sequence, pieces)
        return sequences.comparable(replies)


def difference(sequence, want, got):
    """The replies side by side, for the report."""
    def cut(replies):
        return [
            repr(line)[:200] for line in replies.split(b"\r\n")
        ]

    lines = ["%r" % (command,) for command in sequence]
    lines += difflib.unified_diff(cut(want), cut(got), "redis", "bloomgate", n=2)
    return "\n".join(line[:300] for line in lines[:200])


def compare(rng, direct, proxied, names_and_sequences):
    """Runs each in RESP2 and RESP3, at once and step by step."""
    wrong = []
    for name, sequence in names_and_sequences:
        even = sequences.even(sequence)
        size = sum(len(resp.encode(*command)) for command in sequence)
        for protocol in (2, 3):
            want = direct.run(sequence, protocol, even and protocol == 2)
            for side in proxied:
                steps = even and rng.random() < 0.4
                pieces = resp.cuts(rng, size) if rng.random() < 0.5 else []
                got = side.run(sequence, protocol, steps, pieces)
                if got != want:
                    wrong.append(
                        "%s, RESP%d, %s, cut at %r:\n%s" % (
                            name, protocol, side.name, pieces,
                            difference(sequence, want, got)
                        )
                    )
        if len(wrong) > 5:
            break
    assert not wrong, "\n\n".join(wrong)


@pytest.fixture
def sides(redis, redis_server, bloomgate, ids_file, make_filter):
    store = redis_server()
    off = bloomgate(redis, serving=False)
    every = make_filter(
        ids_file([]), name="every", keys=["{id*}"], **{"absent-reply": "nil"}
    )
    learning = bloomgate(redis, filters=[every], store={"address": store.address})
    yield (
        Side("direct", redis, redis.client),
        [Side("off", redis, off.client), Side("learning", redis, learning.client)],
        learning,
    )


def answered_locally(gate):
    return gate.metric("filter_lookups_total", result="absent")


def numbered_written():
    return [
        (name, sequences.commands(text, number))
        for number, (name, text) in enumerate(sequences.written())
    ]


def test_at_least_500_distinct_sequences_are_written():
    texts = [text for _, text in sequences.written()]
    assert len(set(texts)) == len(texts) >= 500


def test_the_comparison_sees_a_planted_difference(redis, rng):
    """A side that swaps two replies or changes one byte must be caught."""

    class Wrong(Side):
        def run(self, *args):
            return super().run(*args).replace(b"$-1", b"$0\r\n")

    sequence = [(b"GET", b"none")]
    direct = Side("direct", redis, redis.client)
    compare(rng, direct, [Side("same", redis, redis.client)], [("same", sequence)])
    with pytest.raises(AssertionError, match="RESP2, wrong"):
        compare(rng, direct, [Wrong("wrong", redis, redis.client)],
                [("planted", sequence)])


@pytest.mark.parametrize("part", range(4))
def test_written_sequences(sides, rng, part):
    direct, proxied, learning = sides
    before = answered_locally(learning)
    compare(rng, direct, proxied, numbered_written()[part::4])
    assert answered_locally(learning) > before + 20


@pytest.mark.parametrize("part", range(4))
def test_generated_sequences(sides, rng, counts, part):
    direct, proxied, learning = sides
    before = answered_locally(learning)
    total = counts(500, full=5000, small=60)
    compare(
        rng, direct, proxied,
        (("generated %d" % n, sequences.generate(rng, n)) for n in range(total)),
    )
    assert answered_locally(learning) > before + total / 10
