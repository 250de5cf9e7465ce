# SPDX-License-Identifier: BSD-2-Clause
"""
doc/compatibility.md is made of what the tests prove: the covered reads, the
states, the differences. `BLOOMGATE_WRITE=1 pytest -k compatibility` writes it.
"""

import os
import re

from bg import sequences
from bg.covered import KEY, ROWS, request
from bg.states import STATES

HERE = os.path.dirname(os.path.abspath(__file__))
FILE = os.path.join(HERE, "..", "..", "doc", "compatibility.md")

HEAD = """# Compatibility

This file is made by tests/integration/test_compatibility.py of the tables that the tests prove (bg/covered.py,
bg/states.py, sequences/differences.txt); do not edit it.

A read is answered by bloomgate when its row in the first table and the row of the session's state in the second both say so,
its key is covered, the session's user may read it, and the filter says that it cannot exist. Everything else is Redis's.

## Covered reads

What a missing key is answered with, as Redis 7.0 does. GET and MGET answer the filter's `absent-reply` value in place of
nil, and every read its error, where the filter says so. Any other form of a command (options, integers not well formed,
another number of arguments) is forwarded.

| command | plain form | RESP2 | RESP3 |
| --- | --- | --- | --- |
"""

STATE_HEAD = """
## States of a session

Answered here: covered reads of absent keys may be, while the state lasts. Where it ends: what makes it so again. Outlives: the
session goes on when its connection to Redis is lost; others are closed then.

| state | requests | protocol | answered here | ends by | outlives | why |
| --- | --- | --- | --- | --- | --- | --- |
"""

DIFFERENCE_HEAD = """
## What differs

| what | why | shown by |
| --- | --- | --- |
"""


def cell(text):
    return text.replace("|", "\\|").replace("\t", "\\t")


def code(words):
    return "`%s`" % cell(words) if words else ""


def shown(reply):
    return code(reply.decode().replace("\r\n", " ").strip() or "")


def form(row, args):
    """The plain form with its arguments named."""
    words = ["key" if a is KEY else "integer" if re.fullmatch("-?[0-9]+", a)
             else "field" for a in args]
    many = any(len(other) > len(args) for other in row.plain)
    return " ".join(row.name.upper().split("|") + words) + (" ..." if many else "")


def covered_reads(redis):
    lines = []
    with redis.client() as old, redis.client() as new:
        new.call("HELLO", 3)
        for row in ROWS:
            words = request(row, row.plain[0], "none")
            lines.append("| %s | %s | %s | %s |\n" % (
                row.name.upper().replace("|", " "), code(form(row, row.plain[0])),
                shown(old.call(*words)), shown(new.call(*words))))
    return lines


def states():
    lines, seen = [], {}
    for state in STATES:
        seen.setdefault(state._replace(protocol=0, enter=tuple(state.enter),
                                       leave=tuple(state.leave or [])), []).append(
            state.protocol)
    for state, protocols in seen.items():
        ends = "" if state.local else "; ".join(state.leave) or "never"
        lines.append("| %s | %s | %s | %s | %s | %s | %s |\n" % (
            cell(state.name), code("; ".join(state.enter)),
            " ".join("RESP%d" % p for p in protocols),
            "yes" if state.local else "no", cell(ends),
            "yes" if state.survives else "no", cell(state.note)))
    return lines


def differences():
    rows = [line.split(" | ") for line in sequences.lines("differences.txt")]
    return ["| %s: %s | %s | %s |\n" % (what, how, why, code(shown_by))
            for what, how, why, shown_by in rows]


def test_the_document_is_what_the_tests_say(redis):
    made = "".join([HEAD, *covered_reads(redis), STATE_HEAD, *states(),
                    DIFFERENCE_HEAD, *differences()])
    if os.environ.get("BLOOMGATE_WRITE"):
        with open(FILE, "w") as out:
            out.write(made)
    with open(FILE) as held:
        assert held.read() == made


def test_each_covered_read_of_the_daemon_is_a_row():
    """The table in src/policy/covered.c has the same commands."""
    with open(os.path.join(HERE, "..", "..", "src", "policy", "covered.c")) as source:
        names = re.findall(r'^    \{"(\w+)", (?:NULL|"(\w+)"), ARGS', source.read(),
                           re.MULTILINE)
    assert [n + ("|" + sub if sub else "") for n, sub in names] == [
        row.name for row in ROWS]
