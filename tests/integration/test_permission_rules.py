# SPDX-License-Identifier: BSD-2-Clause
"""
Every kind of ACL rule against every covered read: there is never an absent reply
where Redis would have said NOAUTH or NOPERM, and where DESIGN's rule allows it
the answer is bloomgate's own. Redis itself is the oracle for what is permitted.
"""

import os
from collections import namedtuple

import pytest
from bg import resp, wait
from bg.covered import ROWS, making, request

ERROR = b"-NOTFOUND no such user\r\n"

# covers: the keys of every set of permissions that allows anything give all of
# user:* for reading, in a way that can be read. full: some set alone allows all
# commands and those keys.
Rule = namedtuple("Rule", "text covers full")

RULES = [
    Rule("+@all ~*", True, True),
    Rule("allcommands allkeys", True, True),
    Rule("+@all ~user:*", True, True),
    Rule("+@all ~us*", True, True),
    Rule("+@all ~other:* ~user:* ~x", True, True),
    Rule("+@all ~* resetchannels", True, True),
    Rule("+@all ~* nopass", True, True),
    Rule("+@all ~* off", False, False),
    Rule("+@all", False, False),
    Rule("+@all ~* resetkeys", False, False),
    Rule("+@all ~user:", False, False),
    Rule("+@all ~user:none*", False, False),
    Rule("+@all ~other:*", False, False),
    Rule("+@all ~u?er:*", False, False),
    Rule("+@all ~[u]ser:*", False, False),
    Rule("+@all ~us\\er:*", False, False),
    Rule("+@all ~*:*", False, False),
    Rule("+@all ~u*r:*", False, False),
    Rule("+@all %R~user:*", True, True),
    Rule("+@all %R~*", True, True),
    Rule("+@all %RW~us*", True, True),
    Rule("+@all %W~user:*", False, False),
    Rule("+@all %W~* %R~user:none*", False, False),
    Rule("+@all %W~* %R~us*", True, True),
    Rule("+@all -get ~*", True, False),
    Rule("+@all -mget -exists ~user:*", True, False),
    Rule("+@all -@hash ~user:*", True, False),
    Rule("+@all -@slow ~*", True, False),
    Rule("+@all -object ~*", True, False),
    Rule("+@all -object|encoding ~*", True, False),
    Rule("+@all -object|freq %R~us*", True, False),
    Rule("nocommands ~*", True, False),
    Rule("+get ~user:*", True, False),
    Rule("+get ~user:none*", False, False),
    Rule("+get +mget ~a* ~user:*", True, False),
    Rule("+get|user:none-get ~*", False, False),
    Rule("+exists|user:none-get +get ~*", True, False),
    Rule("+set ~*", True, False),
    Rule("+object ~*", True, False),
    Rule("+object|encoding ~user:*", True, False),
    Rule("+@read ~user:*", True, False),
    Rule("+@read %R~u*", True, False),
    Rule("+@read %W~*", False, False),
    Rule("+@read -@hash -get ~user:*", True, False),
    Rule("+@string +@set ~user:*", True, False),
    Rule("+@connection ~*", True, False),
    Rule("(+@read ~user:*)", True, False),
    Rule("(+@all ~user:*)", True, True),
    Rule("(+@all ~user:none*)", False, False),
    Rule("+@connection (+@read ~user:*)", False, False),
    Rule("+get ~user:* (+mget ~us*)", True, False),
    Rule("+get ~user:* (+set ~s:*)", False, False),
    Rule("+get ~user:* (-@all ~s:*)", True, False),
    Rule("+get ~other:* (+mget ~user:*)", False, False),
    Rule("+get ~s:* (+@all ~user:*)", True, True),
    Rule("+@all ~user:* (+set ~s:*)", True, True),
    Rule("+@all -get ~user:* (+get ~user:none*)", False, False),
    Rule("+@read ~user:none* (+get ~user:*)", False, False),
    Rule("+get ~* (+mget %R~us*) (+ttl %W~*)", False, False),
    Rule("+get ~* (+mget %R~us*) (+ttl %RW~*)", True, False),
]

OWN = {
    "all": "+@all",
    "no dryrun": "+@all -acl|dryrun",
    "no getuser": "+@all -acl|getuser",
}


def may_be_local(rule, own):
    return {"all": rule.covers, "no dryrun": rule.full, "no getuser": False}[own]


def denied(reply):
    return reply.startswith((b"-NOPERM", b"-NOAUTH"))


class Executed:
    """Which commands about which keys Redis has executed for others."""

    def __init__(self, redis):
        self.redis = redis
        redis.call("CONFIG", "SET", "slowlog-max-len", "100000")
        redis.call("CONFIG", "SET", "slowlog-log-slower-than", "0")

    def reset(self):
        self.redis.call("SLOWLOG", "RESET")

    def keys(self):
        return {
            word.decode()
            for entry in self.redis.value("SLOWLOG", "GET", "-1")
            if entry[3][0].lower() != b"acl"
            for word in entry[3]
            if word.startswith(b"user:")
        }


@pytest.fixture
def start(redis, bloomgate, make_filter, ids_file, folder):
    def start(own="all", absent=None, **config):
        secret = os.path.join(folder, "secret")
        with open(secret, "w") as out:
            out.write("gatepw\n")
        redis.call("ACL", "SETUSER", "gate", "on", ">gatepw", "~*", "&*",
                   *OWN[own].split())
        over = {"absent-reply": absent or {"error": ERROR[1:-2].decode()}}
        return bloomgate(
            redis,
            filters=[
                make_filter(ids_file(["1"]), **over),
                make_filter(ids_file(["1"]), name="team", keys=["team:{id}"], **over),
            ],
            upstream={"username": "gate", "password-file": secret},
            **config,
        )

    return start


def words_of(rule):
    """A selector is one argument."""
    words, depth = [], 0
    for word in rule.text.split():
        if depth:
            words[-1] += " " + word
        else:
            words.append(word)
        depth += word.count("(") - word.count(")")
    return words


def login(redis, gate, name, rule):
    """A session through bloomgate and one to Redis of a user with these rules."""
    redis.call("ACL", "DELUSER", name)
    assert redis.value("ACL", "SETUSER", name, "on", ">pw") == "OK"
    pair = gate.client(), redis.client()
    for client in pair:
        assert client.call("AUTH", name, "pw") == resp.OK
    assert redis.value("ACL", "SETUSER", name, *words_of(rule)) == "OK", rule
    return pair


def absent_reply(right, absent):
    """What may be seen through bloomgate, right being what Redis says."""
    return right if denied(right) or absent == "nil" else ERROR


@pytest.mark.parametrize("absent", (None, "nil"))
@pytest.mark.parametrize("own", OWN)
def test_every_rule_against_every_covered_read(start, redis, own, absent):
    gate = start(own, absent)
    executed = Executed(redis)
    local = 0
    for number, rule in enumerate(RULES):
        client, direct = login(redis, gate, "u%d" % number, rule)
        want = {}
        for row in ROWS:
            key = "user:none-" + row.name
            words = request(row, row.plain[0], key)
            want[key] = words, direct.call(*words)
        executed.reset()
        for key, (words, right) in want.items():
            assert client.call(*words) == absent_reply(right, absent), (rule, words)
        asked = executed.keys()
        for key, (words, right) in want.items():
            if not denied(right):
                expected = may_be_local(rule, own)
                assert (key not in asked) == expected, (rule, words)
                local += expected
        client.close()
        direct.close()
    assert (local > 0) == (own != "no getuser")


def test_existing_keys_are_redis_own_under_every_rule(start, redis):
    gate = start()
    for number, rule in enumerate(RULES):
        client, direct = login(redis, gate, "u%d" % number, rule)
        for row in ROWS:
            redis.call("DEL", "user:1")
            redis.call(*making(row, "user:1"))
            for args in row.plain:
                words = request(row, args, "user:1")
                assert client.call(*words) == direct.call(*words), (rule, words)
        client.close()
        direct.close()


@pytest.mark.parametrize("absent", (None, "nil"))
def test_several_keys_under_every_rule(start, redis, absent):
    """Keys of another filter, of none, and ones that exist, among absent ones."""
    gate = start(absent=absent)
    redis.fill([("user:1", "one"), ("other:1", "x"), ("s:1", "y")])
    mixtures = (
        ["user:none", "user:none2"], ["user:none", "other:1"], ["other:1", "user:none"],
        ["user:1", "user:none"], ["user:none", "team:none"], ["team:none", "user:none"],
        ["s:1", "user:none"], ["user:none", "user:none-get", "user:1", "other:none"],
    )
    for number, rule in enumerate(RULES):
        client, direct = login(redis, gate, "u%d" % number, rule)
        for command in ("mget", "exists"):
            for keys in mixtures:
                right = direct.call(command, *keys)
                got = client.call(command, *keys)
                assert got == absent_reply(right, absent), (rule, command, keys)
        client.close()
        direct.close()


def test_bf_commands_under_every_rule(start, redis):
    """BF.EXISTS needs what a local GET needs, BF.ADD the same for SET."""
    gate = start()
    for number, rule in enumerate(RULES):
        client, direct = login(redis, gate, "u%d" % number, rule)
        reads = not denied(direct.call("GET", "user:none-get")) and rule.covers
        reply = client.value("BF.EXISTS", "user", "none")
        assert reply == 0 if reads else reply.startswith("NOPERM"), rule
        reply = client.value("BF.MEXISTS", "user", "none")
        assert reply == [0] if reads else reply[:6] == "NOPERM", rule
        client.close()
        direct.close()
    for number, (rules, allowed) in enumerate((
        ("+@all ~*", True), ("+@all %W~user:*", True), ("+@all %R~user:*", False),
        ("+set ~user:*", True), ("+set %W~us*", True), ("+set %R~us*", False),
        ("+set %R~* %W~user:*", True), ("+set ~user:1*", False), ("-@all ~*", False),
        ("+@all -set ~*", False), ("+set|user:x ~*", False), ("+@write ~*", True),
        ("+set ~user:* (+get ~g*)", False), ("(+set %W~user:*)", True),
        ("+get ~* (+set %W~user:*)", True), ("+@read ~*", False),
    )):
        rule = Rule(rules, None, None)
        client, direct = login(redis, gate, "w%d" % number, rule)
        for words in (["BF.ADD", "user", "w%d" % number],
                      ["BF.MADD", "user", "v%d" % number]):
            reply = client.value(*words)
            if allowed:
                assert reply in (1, [1]), (rule, reply)
            else:
                assert reply.startswith("NOPERM"), (rule, reply)
            assert gate.value("BF.EXISTS", "user", words[2]) == allowed
        client.close()
        direct.close()


def test_default_user_under_every_rule(start, redis):
    """Sessions that have not authenticated are its, as far as Redis lets them.
    What was known before holds for permission-ttl."""
    admin = redis.client()
    gate = start(**{"permission-ttl": "100ms"})
    assert admin.call("AUTH", "gate", "gatepw") == resp.OK
    for rule in RULES:
        for password in ("nopass", "resetpass"):
            admin.call("ACL", "SETUSER", "default", "reset", "on", password,
                       *[word for word in words_of(rule) if word != "nopass"])
            with gate.client() as client, redis.client() as direct:
                for row in ROWS[:4]:
                    args = request(row, row.plain[0], "user:none")
                    want = absent_reply(direct.call(*args), None)
                    wait.until(lambda: client.call(*args) == want, 5,
                               "%r to %r with %r" % (want, args, rule))
    admin.close()
