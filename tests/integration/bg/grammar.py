# SPDX-License-Identifier: BSD-2-Clause
"""
Random commands: templates of sequences/grammar.txt with their words filled in,
some of them then spoilt (an argument dropped, added or changed), because errors
must be Redis's own too.
"""

import functools
import hashlib

from . import resp
from .sequences import lines, words

SET = b"return redis.call('set', KEYS[1], ARGV[1])"
GET = b"return redis.call('get', KEYS[1])"
SCRIPTS = {
    b"@set": SET,
    b"@get": GET,
    b"@both": b"redis.call('set', KEYS[2], 'x') return {redis.call('exists',"
    b" KEYS[1]), redis.call('get', KEYS[2]), {1, {2}}}",
    b"@error": b"return redis.call('lpush', KEYS[1], 'a', 'b') + 'x'",
    b"@types": b"return {1, 2.5, 'x', {'y', {false}}, redis.status_reply('s')}",
    b"@resp3": b"redis.setresp(3) return {redis.call('hgetall', KEYS[1]),"
    b" {double = 1.5}, {map = {a = 1}}, {set = {b = true}}, true}",
    b"@sha-set": hashlib.sha1(SET).hexdigest().encode(),
    b"@sha-get": hashlib.sha1(GET).hexdigest().encode(),
    b"@library": b"#!lua name=lib\nredis.register_function('put', function(k, a)"
    b" return redis.call('set', k[1], a[1]) end)\n"
    b"redis.register_function{function_name = 'ask', callback = function(k, a)"
    b" return redis.call('get', k[1]) end, flags = {'no-writes'}}",
}
# What DUMP of Redis 7.0 gives for one of each type.
PAYLOADS = [
    b"\x00\x05hello\n\x00cr\xdfve4 \n",
    b"\x12\x01\x02\r\r\x00\x00\x00\x02\x00\x81a\x02\x81b\x02\xff\n\x00h\xeb"
    b"\n\x89\x13A\xbb\xb1",
    b"\x10\r\r\x00\x00\x00\x02\x00\x81f\x02\x81v\x02\xff\n\x00 \xf1=D#T\x08\x9d",
    b"\x0b\x0c\x02\x00\x00\x00\x02\x00\x00\x00\x01\x00\x02\x00\n\x00oy8\xb14"
    b"\xeb .",
    b"\x11\x0c\x0c\x00\x00\x00\x02\x00\x81a\x02\x01\x01\xff\n\x00\xa8\x05\xce"
    b"\xb8\xd7\xa93\x02",
]
MEMBERS = [b"a", b"b", b"c", b"d", b"1", b"22", b""]
JUNK = [
    b"", b"x", b"-1", b"0", b"9223372036854775808", b"4294967296", b"1.5",
    b"\xff\r\n", b" 1", b"+1", b"nan", b"NX", b"WITHSCORES", b"$-1\r\n",
]


class Template:
    def __init__(self, command, fixed):
        self.command = command
        self.fixed = fixed  # not to be spoilt


@functools.lru_cache(None)
def groups():
    """{group: [Template, ...]} of the grammar."""
    found = {}
    for line in lines("grammar.txt"):
        if line.startswith("["):
            name = line.strip("[]!")
            all_fixed = line.startswith("[!")
            found[name] = []
            continue
        for text in line.split(" | "):
            fixed = text.startswith("!")
            (command,) = words(text[fixed:])
            found[name].append(Template(command, fixed or all_fixed))
    return found


class Words:
    """Gives the words of templates values. keys: those of the sequence."""

    def __init__(self, rng, keys, channels):
        self.rng = rng
        self.keys = keys
        self.channels = channels
        self.favourite = keys[0]
        self.makers = {
            b"k": self.key,
            b"v": self.value,
            b"m": lambda: rng.choice(MEMBERS),
            b"n": lambda: b"%d" % rng.randrange(1, 40),
            b"i": lambda: b"%d" % rng.randrange(-3, 4),
            b"f": lambda: b"%g" % rng.choice([0, 1, -2, 2.5, 80, rng.randrange(60)]),
            b"b": lambda: b"%d" % rng.randrange(200),
            b"d": lambda: b"%d" % rng.randrange(4),
            b"e": lambda: b"100000",
            b"t": lambda: b"%d" % rng.choice([4102444800, 4102444800123]),
            b"p": lambda: b"1",
            b"x": lambda: b"%d-1" % rng.randrange(1, 40),
            b"c": lambda: rng.choice(channels),
            b"c*": lambda: rng.choice(channels) + b"*",
            b"y": lambda: rng.choice(PAYLOADS),
        }

    def key(self):
        rng = self.rng
        if rng.random() < 0.6:
            return self.favourite
        return rng.choice(self.keys) if rng.random() < 0.98 else b""

    def value(self):
        rng = self.rng
        roll = rng.random()
        if roll < 0.01:
            return resp.values(rng, rng.randrange(20000))
        if roll < 0.3:
            return b"%d" % rng.randrange(-5, 1000)
        return resp.values(rng, rng.randrange(12))

    def fill(self, template):
        makers = self.makers
        out = []
        for word in template.command:
            maker = makers.get(word)
            out.append(maker() if maker else SCRIPTS.get(word, word))
        return tuple(out)

    def prefer(self, group):
        """Commands of one group mostly take one key: the types then fit."""
        self.favourite = self.keys[GROUP_INDEX[group] % len(self.keys)]

    def command(self, group, spoil=0.06):
        rng = self.rng
        template = rng.choice(groups()[group])
        command = self.fill(template)
        if rng.random() < spoil and not template.fixed:
            command = self.spoilt(command)
        if rng.random() < 0.05:
            command = (random_case(rng, command[0]),) + command[1:]
        return command

    def spoilt(self, command):
        rng = self.rng
        at = rng.randrange(1, len(command) + 1)
        roll = rng.random()
        if roll < 0.35 and at < len(command):
            return command[:at] + command[at + 1 :]
        if roll < 0.55:
            return command[:at] + (rng.choice(JUNK),) + command[at:]
        return command[:at] + (rng.choice(JUNK),) + command[at + 1 :]


def random_case(rng, name):
    return bytes(
        byte ^ 0x20 if chr(byte).isalpha() and rng.random() < 0.5 else byte
        for byte in name
    )


GROUP_INDEX = {name: i for i, name in enumerate(groups())}
