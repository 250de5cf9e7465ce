# SPDX-License-Identifier: BSD-2-Clause
"""
Laws 3, 4 and 5, and 1 with them: the same bytes are sent to Redis directly and
through bloomgate, and every reply is the same, byte for byte (but for what
bg/listed.py lists), in every state of a session, with the filters off, with one
over every key in both layouts, and with one over half of the keys. FAULTS: A2-A9,
A11, A16, B9, B11, C1-C3, C8-C10, D3, D4, D8, E7, G8.

A difference is printed shrunk. Whole runs are repeated with BLOOMGATE_SEED, one
sequence with BLOOMGATE_SEQUENCE (HACKING.md).
"""

import os
import re

import pytest
from bg import covered, differential, grammar, resp, sequences
from bg.generate import PASSWORD, generate
from bg.relay import Relay

PARTS = 16
SEED = os.environ.get("BLOOMGATE_SEED")
CHOSEN = os.environ.get("BLOOMGATE_SEQUENCE")
# Hand-written sequences that are cut at every single byte.
CORPUS = (
    "absent/read", "hash/transaction", "expiring/watched", "subscribe-refused",
    "resp3-subscribe", "resp3-types", "reply-off", "mget-mixed", "multi-select",
    "binary-keys", "null-text", "quit-multi",
)


@pytest.fixture
def compare(redis_server, bloomgate, ids_file, make_filter, folder, counts):
    """compare(password_needed): a Comparison of all configurations. The filters
    lie in a store of their own, so that FLUSHALL takes data only, and hold
    nothing at the start: they learn."""
    made = []

    def start(password_needed=False, throttled=False):
        redis, store = redis_server(**differential.REDIS_CONFIG), redis_server()
        differential.prepare(redis, password_needed)
        upstream = {"address": redis.address}
        if password_needed:
            secret = os.path.join(folder, "secret")
            with open(secret, "w") as out:
                out.write(PASSWORD.decode() + "\n")
            upstream["password-file"] = secret
        relays = []

        def through(address):
            path = os.path.join(folder, "t%d" % len(relays))
            relays.append(Relay(path, address))
            return relays[-1].address

        if throttled:
            upstream["address"] = through(redis.address)
        sides, gates = {}, {}
        for name, over in (
            ("off", {"mode": "off"}),
            ("sharded", {"check": "mirror"}),
            ("single", {"layout": "single", "check": "remote"}),
            ("half", {"keys": ["h{id*}"]}),
        ):
            settings = {
                "name": name,
                "keys": ["{id*}"],
                "absent-reply": "nil",
                "capacity": counts(200000, full=1000000),
                "error-rate": 1e-6,
            }
            settings.update(over)
            gates[name] = bloomgate(
                redis, serving=name != "off", upstream=upstream,
                filters=[make_filter(ids_file([]), **settings)],
                store={"address": store.address},
            )
            address = gates[name].address
            sides[name] = through(address) if throttled else address
        comparison = differential.Comparison(redis, password_needed, sides)
        comparison.gates, comparison.relays = gates, relays
        made.append(comparison)
        return comparison

    yield start
    for comparison in made:
        comparison.close()
        for relay in comparison.relays:
            relay.stop()


def answered_locally(comparison):
    return {
        name: gate.metric("commands_total", source="filter")
        for name, gate in comparison.gates.items()
    }


def written():
    """(title, token, commands) of what people wrote."""
    for number, (name, text) in enumerate(sequences.written()):
        token = "%08x" % (0xD0000000 + number)
        yield name, token.encode(), sequences.commands(text, token)


def other_keys(sequence, token):
    """The sequence over keys that filters do not remember from the first time."""
    fresh = b"b" + token[1:]
    return differential.renamed(sequence, token, fresh), fresh


def found():
    """(title, password needed, token, items) of sequences/found.txt, or of what
    BLOOMGATE_SEQUENCE names: a file of that form or SEED:NUMBER."""
    if CHOSEN and not os.path.exists(CHOSEN):
        seed, number = CHOSEN.rsplit(":", 1)
        needed = int(number) % 2 == 1
        token = b"%08x" % int(number)
        yield CHOSEN, needed, token, generate(seed, int(number), needed)
        return
    path = CHOSEN or os.path.join(sequences.FOLDER, "found.txt")
    with open(path, encoding="utf-8") as lines:
        text = "".join(line for line in lines if not line.startswith("#"))
    for section in re.split(r"^== ", text, flags=re.MULTILINE):
        if not section.strip():
            continue
        title, _, body = section.partition("\n")
        if not text.startswith("== "):
            title, body = "a file", section
        token = re.search(r"\b[hu]([0-9a-f]{8})", body)
        yield (
            title, title.endswith(", password"),
            token[1].encode() if token else b"no token", sequences.items_of(body),
        )


def test_at_least_500_distinct_sequences_are_written():
    texts = [text for _, text in sequences.written()]
    assert len(set(texts)) == len(texts) >= 500


def test_every_command_of_redis_is_generated(redis):
    """Or left out for a reason that is written down, which then is true."""
    known = {name.decode() for name in redis.value("COMMAND", "LIST")}
    spoken = {
        name
        for group in grammar.groups().values()
        for template in group
        for name in (
            template.command[0].decode().lower(),
            b"|".join(template.command[:2]).decode().lower(),
        )
    }
    # Blocks of bg/generate.py.
    for number in range(2000):
        for item in generate("coverage", number):
            if isinstance(item, tuple) and item:
                spoken.add(item[0].decode(errors="replace").lower())
                spoken.add(b"|".join(item[:2]).decode(errors="replace").lower())
    left_out = {name for name, _ in sequences.lines_of("left_out.txt")}
    assert known - spoken - left_out == set()
    assert left_out - known == set() and left_out & spoken == set()


def test_covered_reads_meet_every_state():
    """Plain and not plain, in the state that each of these commands begins."""
    reads = {row.name.upper().replace("|", " ") for row in covered.ROWS}
    for group in ("reads", "unusual"):
        spoken = [b" ".join(t.command).decode() for t in grammar.groups()[group]]
        assert not [r for r in reads if not any(s.startswith(r) for s in spoken)]
    states = ("MULTI", "WATCH", "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE", "SELECT", "AUTH",
              "HELLO", "RESET", "QUIT", "MONITOR", "CLIENT TRACKING", "CLIENT REPLY")
    met = {state: set() for state in states}
    for number in range(5000):
        state = None
        for item in generate("states", number):
            if not isinstance(item, tuple) or not item:
                continue
            first = item[0].decode(errors="replace")
            both = b" ".join(item[:2]).decode(errors="replace")
            state = first if first in met else both if both in met else state
            if state:
                met[state].update({first, both} & reads)
    assert not {s: reads - got for s, got in met.items() if reads - got}


def test_text_of_a_sequence_reads_back():
    for number in range(300):
        sequence = generate("text", number)
        assert sequences.items_of(sequences.text_of(sequence)) == sequence


def test_a_planted_difference_is_seen_and_shrunk(compare, folder):
    """A way that changes one byte must be caught, with little around it."""

    class Wrong(differential.Comparison):
        def run(self, address, sequence, **how):
            got = super().run(self.direct, sequence, **how)
            wrong = address != self.direct
            return got.replace(b":5\r\n", b":6\r\n") if wrong else got

    sequence = [(b"SET", b"h0000000a", b"five5"), (b"GET", b"none"), (b"PING",)]
    sequence += [(b"STRLEN", b"h0000000a"), (b"GET", b"none"), (b"PING",)]
    redis = compare()
    planted = Wrong.__new__(Wrong)
    planted.__dict__.update(redis.__dict__, sides={"wrong": redis.sides["off"]})
    redis.check("unharmed", b"0000000a", sequence)
    with pytest.raises(differential.Difference) as caught:
        planted.check("planted", b"0000000a", sequence)
    shrunk = str(caught.value).split("file:\n")[1].split("\n--")[0]
    assert shrunk == "SET h0000000a five5\nSTRLEN h0000000a"


@pytest.mark.parametrize("part", range(4))
def test_written_sequences(compare, rng, part):
    comparison = compare()
    before = answered_locally(comparison)
    for title, token, sequence in list(written())[part::4]:
        for protocol in (2, 3):
            items = sequence
            if protocol == 3:
                items, token = other_keys([(b"HELLO", b"3")] + sequence, token)
            share = rng.choice([0, 0.5, 1, 1])
            comparison.check(
                "%s, RESP%d" % (title, protocol), token,
                sequences.with_waits(rng, items, share),
                differential.CutAtRandom(rng.random()),
            )
    after = answered_locally(comparison)
    for name, least in (("sharded", 3), ("single", 3), ("half", 1)):
        assert after[name] >= before[name] + least


@pytest.mark.parametrize("part", range(PARTS))
def test_generated_sequences(compare, counts, part):
    """Odd parts: default needs a password, so sessions begin without rights."""
    password_needed = part % 2 == 1
    comparison = compare(password_needed)
    before = answered_locally(comparison)
    total = counts(2000, full=200000, small=320) // PARTS
    for number in range(part, total * PARTS, PARTS):
        comparison.check(
            "BLOOMGATE_SEQUENCE=%s:%d" % (SEED, number), b"%08x" % number,
            generate(SEED, number, password_needed),
            differential.CutAtRandom(number),
        )
    after = answered_locally(comparison)
    assert after["off"] == before["off"] == 0
    for name in ("sharded", "single", "half"):
        assert after[name] - before[name] > total / 8


def test_sequences_that_once_differed(compare):
    """Each whole, byte by byte, and cut at random."""
    comparisons = {}
    for title, needed, token, items in found():
        if needed not in comparisons:
            comparisons[needed] = compare(needed)
        comparison = comparisons[needed]
        # The generated one's own cuts, and ten others.
        seeds = [int(token, 16)] if CHOSEN and title == CHOSEN else []
        cuts = [differential.CutAtRandom(n) for n in seeds + list(range(10))]
        for cut in [differential.uncut, differential.cut_everywhere] + cuts:
            fresh = comparison.fresh_token()
            comparison.check(
                title, fresh, differential.renamed(items, token, fresh), cut,
                taken=cut is differential.cut_everywhere,
            )
    assert comparisons


@pytest.mark.parametrize("part", range(4))
def test_written_sequences_byte_by_byte(compare, counts, part):
    """Every byte of a request comes alone: each place is a cut, all at once."""
    comparison = compare()
    names = list(comparison.sides)
    for number, (title, token, sequence) in enumerate(list(written())[part::4]):
        if sum(len(resp.encode(*item)) for item in sequence) < 5000:
            comparison.check(
                title, token, sequence, differential.cut_everywhere, taken=True,
                names=counts([names[number % len(names)]], full=names),
            )


@pytest.mark.parametrize("part", range(4))
def test_written_sequences_cut_at_every_byte(compare, counts, part):
    """A run for each place: the bytes before it come at once, and those after."""
    comparison = compare()
    chosen = [
        (title, token, sequence) for title, token, sequence in written()
        if title in CORPUS or counts(False, full=True)
        and sum(len(resp.encode(*item)) for item in sequence) < 5000
    ]
    assert len(chosen) >= len(CORPUS)
    for title, token, sequence in chosen[part::4]:
        comparison.check_every_cut(
            title, token, sequence, ("sharded", "half", "single", "off")
        )


@pytest.mark.parametrize("part", range(2))
def test_both_sides_one_byte_a_read(compare, counts, part):
    """Between client and bloomgate and between it and Redis one byte is let
    through at a time, both ways."""
    comparison = compare(throttled=True)
    total = counts(80, full=4000, small=16) // 2
    number, done, some = part, 0, 0
    while done < total:
        sequence = [(b"ECHO", b"throttle:")] + generate(SEED, number)
        want = comparison.run(comparison.direct, sequence)
        if len(want) < 2000 and sum(
            len(data) for data, _ in differential.stretches(sequence)
        ) < 2000:
            comparison.check(
                "BLOOMGATE_SEQUENCE=%s:%d, throttled" % (SEED, number),
                b"%08x" % number, sequence,
                names=[list(comparison.sides)[done % 4]],
            )
            done += 1
            some += len(want)
        number += 2
    # Almost every byte of requests and replies, on both of bloomgate's sides.
    assert sum(relay.single for relay in comparison.relays) > 2 * some
