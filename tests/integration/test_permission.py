# SPDX-License-Identifier: BSD-2-Clause
"""
Permission: bloomgate never widens what a session may see, and an unclear right
means that Redis is asked. FAULTS: B1, C6, C7.
"""

import pytest
from bg import resp, wait

NULL = resp.bulk("__NULL__")
NO_COMMAND = "NOPERM this user has no permissions to run the '%s' command"
NO_KEY = (
    "NOPERM this user has no permissions to access one of the keys used as"
    " arguments"
)


@pytest.fixture
def gate(redis, bloomgate, make_filter, ids_file):
    for rule in (
        "all on >pw ~* &* +@all",
        "reader on >pw ~user:* +@read +@connection",
        "some on >pw ~user:n* +@read +@connection",
        "blind on >pw ~* +@all -get -mget -exists",
        "elsewhere on >pw ~other:* +@all",
        "setter on >pw ~user:* +set +@connection",
        "off off >pw ~* +@all",
    ):
        assert redis.value("ACL", "SETUSER", *rule.split()) == "OK"
    redis.value("SET", "user:1", "one")
    return bloomgate(
        redis, filters=[make_filter(ids_file(["1"]))], **{"permission-ttl": "1s"}
    )


def login(gate, user):
    client = gate.client()
    assert client.call("AUTH", user, "pw") == resp.OK
    return client


def test_all_rights_are_answered_locally(gate, redis):
    with login(gate, "all") as client:
        assert client.call("GET", "user:none") == NULL
        before = redis.calls("get")
        # The first question about a user may still be open.
        wait.until(
            lambda: (client.call("GET", "user:none"), redis.calls("get"))
            == (NULL, redis.calls("get")),
            5, "answered",
        )
        before = redis.calls("get")
        for _ in range(20):
            assert client.call("GET", "user:none") == NULL
        assert redis.calls("get") == before


def test_rights_on_the_covered_keys_are_enough(gate, redis):
    """reader may read user:* and nothing else."""
    with login(gate, "reader") as client:
        before = redis.calls("get")
        for _ in range(10):
            assert client.call("GET", "user:none") == NULL
        assert redis.calls("get") == before
        assert client.call("MGET", "user:1", "user:none") == resp.array(
            resp.bulk("one"), NULL
        )
        assert client.call("EXISTS", "user:1", "user:none") == b":1\r\n"
        assert client.value("MGET", "user:none", "other:1") == NO_KEY
        assert client.value("GET", "other:x") == NO_KEY
        assert client.value("SET", "user:new", "x") == NO_COMMAND % "set"
    assert gate.call("GET", "user:1") == resp.bulk("one")


def test_partial_rights_are_forwarded_and_protected_all_the_same(gate, redis):
    """Law 1 and the absent reply: the database stays protected."""
    with login(gate, "some") as client:
        before = redis.calls("get")
        for _ in range(10):
            assert client.call("GET", "user:none") == NULL
        assert redis.calls("get") == before + 10
        assert client.call("MGET", "user:none", "user:nine") == resp.array(NULL, NULL)
        assert client.value("MGET", "user:none", "user:1") == NO_KEY
        assert client.value("GET", "user:x") == NO_KEY


def test_no_right_is_no_answer(gate):
    with login(gate, "blind") as client:
        for _ in range(5):
            assert client.value("GET", "user:none") == NO_COMMAND % "get"
            assert client.value("MGET", "user:none") == NO_COMMAND % "mget"
            assert client.value("EXISTS", "user:none") == NO_COMMAND % "exists"
    with login(gate, "elsewhere") as client:
        for _ in range(5):
            assert client.value("GET", "user:none") == NO_KEY
            assert client.value("EXISTS", "user:none", "other:1") == NO_KEY


def test_auth_forgets_the_right_of_the_user_before(gate):
    with login(gate, "all") as client:
        assert client.call("GET", "user:none") == NULL
        assert client.call("AUTH", "blind", "pw") == resp.OK
        assert client.value("GET", "user:none") == NO_COMMAND % "get"
        assert client.value("AUTH", "all", "wrong").startswith("WRONGPASS")
        assert client.value("GET", "user:none") == NO_COMMAND % "get"
        assert client.call("HELLO", 2, "AUTH", "all", "pw").startswith(b"*")
        assert client.call("GET", "user:none") == NULL
        client.send(
            resp.encode("AUTH", "blind", "pw") + resp.encode("GET", "user:none")
        )
        assert client.read() == resp.OK
        assert resp.parse(client.read()) == NO_COMMAND % "get"


def test_a_right_that_is_taken_away_is_lost_within_the_ttl(gate, redis):
    with login(gate, "all") as client:
        assert client.call("GET", "user:none") == NULL
        assert redis.value("ACL", "SETUSER", "all", "-get") == "OK"
        wait.until(
            lambda: client.value("GET", "user:none") == NO_COMMAND % "get",
            10, "the right is asked for again",
        )


def test_bf_commands_need_the_right(gate):
    with login(gate, "all") as client:
        assert client.value("BF.ADD", "user", "p1") == 1
        assert client.value("BF.EXISTS", "user", "p1") == 1
    with login(gate, "blind") as client:
        assert client.value("BF.EXISTS", "user", "1").startswith("NOPERM")
        assert client.value("BF.MEXISTS", "user", "1", "2").startswith("NOPERM")
    with login(gate, "elsewhere") as client:
        assert client.value("BF.EXISTS", "user", "1").startswith("NOPERM")
        assert client.value("BF.ADD", "user", "sneaked").startswith("NOPERM")
    assert gate.value("BF.EXISTS", "user", "sneaked") == 0


def test_bf_unauthenticated(redis_server, bloomgate, make_filter, ids_file, folder):
    redis = redis_server()
    gate = bloomgate(
        redis, filters=[make_filter(ids_file(["1"]))], **{"permission-ttl": "1s"}
    )
    assert redis.value("ACL", "SETUSER", "default", "resetpass", ">pw") == "OK"
    # What was known before holds for permission-ttl.
    wait.until(
        lambda: gate.call("BF.EXISTS", "user", "1").startswith(b"-NOAUTH"), 20, "NOAUTH"
    )
    with gate.client() as client:
        for words in (["BF.ADD", "user", "x"], ["BF.EXISTS", "user", "1"],
                      ["BF.MADD", "user", "x"], ["BF.MEXISTS", "user", "1"]):
            assert client.call(*words) == b"-NOAUTH Authentication required.\r\n"
        assert client.call("AUTH", "pw") == resp.OK
        assert client.value("BF.EXISTS", "user", "x") in (0, 1)


def test_trust(redis, bloomgate, make_filter, ids_file):
    """permission: trust says that every session may read covered keys."""
    redis.value("ACL", "SETUSER", "reader", "on", ">pw", "~user:*", "+get",
                "+@connection")
    gate = bloomgate(redis, filters=[make_filter(ids_file(["1"]))],
                     permission="trust")
    with login(gate, "reader") as client:
        before = redis.calls("get")
        for _ in range(10):
            assert client.call("GET", "user:none") == NULL
        assert redis.calls("get") == before


def test_secrets_are_tried_in_order(redis, bloomgate, make_filter, ids_file, folder):
    """FAULTS C7: a list of secrets, for rotation."""
    secret = folder + "/secret"
    with open(secret, "w") as out:
        out.write("old\nnew\n")
    redis.value("ACL", "SETUSER", "gate", "on", ">new", "~*", "&*", "+@all")
    gate = bloomgate(
        redis, filters=[make_filter(ids_file(["1"]))],
        upstream={"username": "gate", "password-file": secret},
    )
    assert gate.call("GET", "user:none") == NULL
