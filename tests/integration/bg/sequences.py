# SPDX-License-Identifier: BSD-2-Clause
"""
Sequences of requests for the differential test and their text form, read from
the files of sequences/. A sequence is a list of items: a command (a tuple of
bytes), bytes that are sent as they are, or WAIT. Keys of a sequence hold a token
that no other sequence has.
"""

import os
import re
import zlib

FOLDER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "sequences")
WAIT = ()  # all replies so far are awaited before the rest is sent
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "a": "\a"}


def words(text):
    """Splits as redis-cli does; an unquoted ; ends a command."""
    commands, command, i = [], [], 0
    while i < len(text):
        c = text[i]
        if c in " \t":
            i += 1
        elif c == ";":
            commands.append(tuple(command))
            command, i = [], i + 1
        elif c in "\"'":
            word, i = _quoted(text, i + 1, c)
            command.append(word)
        else:
            end = i
            while end < len(text) and text[end] not in " \t;":
                end += 1
            command.append(text[i:end].encode())
            i = end
    if command:
        commands.append(tuple(command))
    return commands


def _quoted(text, i, quote):
    out = bytearray()
    while text[i] != quote:
        c = text[i]
        if quote == '"' and c == "\\":
            c = text[i + 1]
            if c == "x":
                out.append(int(text[i + 2 : i + 4], 16))
                i += 4
                continue
            out += ESCAPES.get(c, c).encode()
            i += 2
        else:
            out += c.encode()
            i += 1
    return bytes(out), i + 1


def quoted(word):
    """A word as words() reads it."""
    if re.fullmatch(rb"[!-:<-~]+", word) and not re.search(rb"[\"'\\\\]", word):
        return word.decode()
    return '"%s"' % "".join(
        chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else "\\x%02x" % byte
        for byte in word
    )


def text_of(sequence):
    """A line for each item, which items_of reads back."""
    out = []
    for item in sequence:
        if item == WAIT:
            out.append("WAIT.")
        elif isinstance(item, tuple):
            out.append(" ".join(map(quoted, item)))
        else:
            out.append("RAW. " + '"%s"' % quoted(b" " + item)[2:-1])
    return "\n".join(out)


def items_of(text):
    sequence = []
    for line in text.splitlines():
        for command in words(line):
            if command == (b"WAIT.",):
                sequence.append(WAIT)
            elif command and command[0] == b"RAW.":
                sequence.append(command[1])
            elif command:
                sequence.append(command)
    return sequence


def lines(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as found:
        for line in found:
            line = line.rstrip("\n")
            if line and not line.startswith("#"):
                yield line


def lines_of(name):
    for line in lines(name):
        name, _, text = line.partition(": ")
        yield name, text


def written():
    """(name, text) of every hand-written sequence."""
    for state, prepare in lines_of("preparations.txt"):
        for probe, ask in lines_of("probes.txt"):
            yield "%s/%s" % (state, probe), prepare + "; " + ask
    yield from lines_of("scenarios.txt")


def commands(text, token):
    """The commands of one text, its placeholders filled in. The filter over half
    of the keys covers those that begin with h."""
    text = re.sub(r"\{(\d+)\}", lambda m: "x" * int(m.group(1)), text)
    side = "hu"[zlib.crc32(token.encode()) % 2]
    text = text.replace("{k}", "%s%s:" % (side, token))
    return words(text.replace("{n}", str(int(token, 16))))


def with_waits(rng, sequence, share):
    """The sequence with WAITs at random places, none inside a transaction, whose
    replies come at its end."""
    out, inside = [], False
    for item in sequence:
        out.append(item)
        name = item[0].upper() if isinstance(item, tuple) and item else b""
        if name == b"MULTI":
            inside = True
        elif name in (b"EXEC", b"DISCARD", b"RESET") and len(item) == 1:
            inside = False
        if not inside and rng.random() < share:
            out.append(WAIT)
    return out
