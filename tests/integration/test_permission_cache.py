# SPDX-License-Identifier: BSD-2-Clause
"""
What is known of a user's rights, and for how long: AUTH, RESET, revoked rights,
many users; and what bloomgate's own user may not ask. FAULTS: C6, C7.
"""

import json
import os
import random
import subprocess

import pytest
from bg import resp, wait
from bg.daemon import CTL
from bg.relay import Relay

NULL = resp.bulk("__NULL__")
# Redis's own nil: where the check of the filter took too long.
MISSING = (NULL, resp.NIL2)
NO_COMMAND = "NOPERM this user has no permissions to run the '%s' command"


@pytest.fixture
def start(redis, bloomgate, make_filter, ids_file, folder):
    """start(rules, ...): with a user of bloomgate's own."""

    def start(rules="+@all", upstream=redis, store=None, **config):
        secret = os.path.join(folder, "secret")
        with open(secret, "w") as out:
            out.write("gatepw\n")
        own = {"username": "gate", "password-file": secret}
        redis.call("ACL", "SETUSER", "gate", "on", ">gatepw", "~*", "&*", *rules.split())
        return bloomgate(
            upstream, filters=[make_filter(ids_file(["1"]))],
            upstream=own, store=dict(own, **store) if store else {}, **config,
        )

    return start


def user(redis, name, rules):
    assert redis.value("ACL", "SETUSER", name, "on", ">pw", *rules.split()) == "OK"


def login(gate, name):
    client = gate.client()
    assert client.call("AUTH", name, "pw") == resp.OK
    return client


def asked(redis):
    """How many questions about users Redis has been asked."""
    return redis.calls("acl|getuser"), redis.calls("acl|dryrun")


def test_who_authenticates_gets_the_rights_of_now(start, redis):
    """AUTH, HELLO with AUTH and RESET forget, of the same user too; HELLO without
    does not. The rights of before would hold for an hour."""
    gate = start(**{"permission-ttl": "1h"})
    user(redis, "u", "~user:* +@read +@connection")
    with login(gate, "u") as client, login(gate, "u") as other:
        assert client.call("GET", "user:none") == NULL
        assert other.call("GET", "user:none") == NULL
        user(redis, "u", "-get")
        # Both have been told before.
        assert client.call("GET", "user:none") == NULL
        assert client.call("HELLO", 2).startswith(b"*")
        assert client.call("GET", "user:none") == NULL
        assert client.value("AUTH", "u", "wrong").startswith("WRONGPASS")
        assert client.call("GET", "user:none") == NULL
        assert client.call("AUTH", "u", "pw") == resp.OK
        assert client.value("GET", "user:none") == NO_COMMAND % "get"
        # What one has learned is known to all.
        assert other.value("GET", "user:none") == NO_COMMAND % "get"
        user(redis, "u", "+get")
        assert client.call("HELLO", 3, "AUTH", "u", "pw").startswith(b"%")
        before = redis.calls("get")
        assert client.call("GET", "user:none") == NULL
        assert redis.calls("get") == before
    with gate.client() as client:
        assert client.call("GET", "user:none") == NULL
        assert redis.value("ACL", "SETUSER", "default", "-get") == "OK"
        assert client.call("GET", "user:none") == NULL
        assert client.call("RESET") == b"+RESET\r\n"
        assert client.value("GET", "user:none") == NO_COMMAND % "get"


def test_pipelined_reads_wait_for_the_answer(start, redis):
    """AUTH and reads in one write, of commands allowed and not, keep their order,
    and each question is asked once."""
    gate = start(**{"permission-ttl": "1h"})
    user(redis, "u", "~user:* +@all -get -hget")
    redis.call("SET", "user:1", "one")
    with gate.client() as client:
        assert client.call("AUTH", "u", "pw") == resp.OK
        before = asked(redis)
        for _ in range(2):
            client.send(b"".join(
                resp.encode(*words.split())
                for words in ("GET user:none", "STRLEN user:none", "MGET user:1 user:none",
                              "HGET user:none f", "GET user:1", "STRLEN user:1")
                for _ in range(3)
            ))
            replies = client.read_n(18)
            assert [resp.parse(r) for r in replies[::3]] == [
                NO_COMMAND % "get", 0, [b"one", b"__NULL__"], NO_COMMAND % "hget",
                NO_COMMAND % "get", 3,
            ]
            assert replies[::3] == replies[1::3] == replies[2::3]
        # The user as a whole, and with each of GET, STRLEN, MGET, HGET.
        after = asked(redis)
        assert (after[0] - before[0], after[1] - before[1]) == (5, 4)


def test_many_sessions_ask_once(start, redis):
    gate = start(**{"permission-ttl": "1h"})
    user(redis, "u", "~user:* +@read +@connection")
    clients = [login(gate, "u") for _ in range(50)]
    before = asked(redis)
    redis.pause()
    for client in clients:
        client.send(resp.encode("GET", "user:none"))
    redis.resume()
    for client in clients:
        assert client.read() == NULL
        client.close()
    after = asked(redis)
    assert (after[0] - before[0], after[1] - before[1]) == (2, 1)


@pytest.mark.parametrize("rules", ("~* +@all", "~user:* +@read +@connection"))
def test_a_revoked_right_ends_with_the_ttl(start, redis, rules):
    gate = start(**{"permission-ttl": "300ms"})
    user(redis, "u", rules)
    changes = (
        ("-get", "+get"), ("-@read", "+@read"), ("resetkeys", rules.split()[0]),
        ("resetkeys ~other:*", "resetkeys " + rules.split()[0]), ("-@all", rules),
    )
    with login(gate, "u") as client:
        for revoked, given in changes:
            assert client.call("GET", "user:none") == NULL
            user(redis, "u", revoked)
            wait.until(lambda: client.value("GET", "user:none")[:6] == "NOPERM", 5,
                       "%s: %s" % (rules, revoked))
            # From then on there is no other answer.
            for _ in range(200):
                assert client.value("GET", "user:none")[:6] == "NOPERM"
            user(redis, "u", given)
            wait.until(lambda: client.call("GET", "user:none") == NULL, 5, given)


def test_rights_that_change_all_the_time(start, redis, rng, counts):
    """Whatever the moment: a reply that Redis gave within the last permission-ttl,
    or would give now."""
    gate = start(**{"permission-ttl": "100ms"})
    user(redis, "u", "~user:* +@read +@connection")
    with login(gate, "u") as client, redis.client() as direct:
        assert direct.call("AUTH", "u", "pw") == resp.OK
        for _ in range(counts(60, 600, 20)):
            change = rng.choice(("-get", "+get", "resetkeys ~other:*", "resetkeys ~user:*",
                                 "resetkeys ~user:1*", "resetkeys %W~*", "+@all", "-@all"))
            user(redis, "u", change)
            right = direct.call("GET", "user:none")
            want = NULL if right == resp.NIL2 else right
            wait.until(lambda: client.call("GET", "user:none") == want, 5, change)
            for _ in range(30):
                assert client.call("GET", "user:none") == want, change


def test_a_user_that_is_removed(start, redis):
    """Redis closes its connections; the name is nobody's then."""
    gate = start(**{"permission-ttl": "100ms"})
    user(redis, "u", "~user:* +@read +@connection")
    with login(gate, "u") as client:
        assert client.call("GET", "user:none") == NULL
        assert client.value("GET", "user:1") is None
        redis.call("ACL", "DELUSER", "u")

        def refused():
            try:
                return client.call("GET", "user:none") != NULL
            except (resp.Closed, BrokenPipeError, ConnectionResetError):
                return True

        wait.until(refused, 5, "no answer to a user that is gone")


def is_right(i, reply):
    """Of GET from user i, who may do so where i is odd."""
    if i % 2:
        return reply in MISSING
    return resp.parse(reply) == NO_COMMAND % "get"


def test_more_users_than_are_remembered(start, redis, counts):
    """The cache has its bound, and what does not fit is asked again."""
    gate = start(**{"permission-ttl": "1h"})
    number = counts(1500, 1500, 1100)
    data = b"".join(
        resp.encode("ACL", "SETUSER", "u%d" % i, "on", ">pw", "~user:*", "+@connection",
                    "+get" if i % 2 else "+strlen")
        for i in range(number)
    )
    with redis.client() as client:
        assert set(client.exchange(data, number)) == {resp.OK}
    before = gate.child.rss_bytes("VmRSS")
    order = list(range(number)) * 2
    random.Random(1).shuffle(order)
    with gate.client() as client:
        for i in order:
            assert client.call("AUTH", "u%d" % i, "pw") == resp.OK
            assert is_right(i, client.call("GET", "user:none"))
    gate.memory_below(before, 8, "VmRSS")


def test_many_users_at_once(start, redis, counts):
    """Questions have a bound, too; who comes late waits for its turn."""
    number = counts(300, 1200, 150)
    gate = start(**{"permission-ttl": "1h"})
    for i in range(number):
        user(redis, "u%d" % i, "~user:* +@connection " + ("+get" if i % 2 else "+strlen"))
    clients = [login(gate, "u%d" % i) for i in range(number)]
    before = asked(redis)
    redis.pause()
    for client in clients:
        client.send(resp.encode("GET", "user:none"))
    redis.resume()
    for i, client in enumerate(clients):
        assert is_right(i, client.read())
        client.close()
    after = asked(redis)
    assert after[0] - before[0] <= 2 * number
    assert after[1] - before[1] <= number


def test_an_upstream_slower_than_the_ttl(start, redis, folder):
    """Nobody waits for ever: what is told too late is not known."""
    relay = Relay(os.path.join(folder, "relay.sock"), redis.address, delay=0.15)
    gate = start(upstream=relay, store={"address": redis.address},
                 **{"permission-ttl": "100ms"})
    user(redis, "u", "~user:* +@read +@connection")
    with login(gate, "u") as client:
        for _ in range(5):
            assert client.call("GET", "user:none") == NULL
    gate.stop()
    relay.stop()


def problems(gate, *how):
    return subprocess.run(
        [CTL, "-s", gate.admin_address[5:], *how, "status"],
        stdout=subprocess.PIPE, check=True,
    ).stdout.decode()


@pytest.mark.parametrize("rule", ("+acl|getuser", "+acl|dryrun"))
def test_what_the_own_user_lacks_is_named(start, redis, rule):
    """In the log (once), in STATUS and in bloomgatectl, until it is cured. The
    reads are forwarded meanwhile, and protected all the same."""
    gate = start("+@all " + rule.replace("+", "-"), **{"permission-ttl": "100ms"})
    user(redis, "u", "~user:* +@read +@connection")

    def lacks():
        return [p["lacks"] for p in json.loads(gate.admin("STATUS"))["problems"]]

    wait.until(lambda: lacks() == [rule], 5, rule)
    text = [line for line in problems(gate).splitlines() if line.startswith("problem=")]
    assert len(text) == 1 and rule in text[0]
    assert json.loads(problems(gate, "--json"))["problems"][0]["lacks"] == rule
    (event,) = gate.events("permission_unknown")
    assert event["lacks"] == rule
    assert event["remedy"] == "ACL SETUSER gate " + rule
    assert event["error"].startswith("NOPERM")
    with login(gate, "u") as client:
        before = redis.calls("get")
        for _ in range(20):
            assert client.call("GET", "user:none") == NULL
        assert redis.calls("get") == before + 20
        assert len(gate.events("permission_unknown")) == 1
        user(redis, "gate", rule)

        def cured():
            before = redis.calls("get")
            assert client.call("GET", "user:none") == NULL
            return redis.calls("get") == before

        wait.until(cured, 10, "answered locally")
    wait.until(lambda: lacks() == [], 10, "no problem left")
    assert "problem" not in problems(gate)


def test_nothing_is_lacking(start, redis):
    gate = start()
    with gate.client() as client:
        assert client.call("GET", "user:none") == NULL
    assert json.loads(gate.admin("STATUS"))["problems"] == []
    assert not gate.events("permission_unknown")
    assert not gate.events("acl_missing")


def test_missing_rules_are_named(redis_server, bloomgate, make_filter, ids_file, folder):
    """The scripts' inner commands are probed for bloomgate's own user at start."""
    redis = redis_server()
    assert redis.value(
        "ACL", "SETUSER", "gate", "on", ">pw", "~bloom:{user}:*", "&bloom:*", "+@all",
        "-bitcount", "-publish",
    ) == "OK"
    secret = os.path.join(folder, "secret")
    with open(secret, "w") as out:
        out.write("pw\n")
    gate = bloomgate(
        redis, filters=[make_filter(ids_file(["1"]))], serving=False,
        upstream={"username": "gate", "password-file": secret},
    )
    wait.until(lambda: len(gate.events("acl_missing")) == 2, 10, "two missing rules")
    found = {event["command"]: event for event in gate.events("acl_missing")}
    assert set(found) == {"bitcount", "publish"}
    assert "ACL SETUSER gate +publish" in found["publish"]["remedy"]
    # With the rules in place nothing is missing, and the filter comes to serve.
    assert redis.value("ACL", "SETUSER", "gate", "+bitcount", "+publish") == "OK"
    gate.wait_state("serving", seconds=40)
    gate.stop()
    gate.start()
    gate.wait_state("serving", seconds=40)
    assert not gate.events("acl_missing")
