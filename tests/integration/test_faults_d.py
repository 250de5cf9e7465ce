# SPDX-License-Identifier: BSD-2-Clause
"""
Faults in the order and attribution of replies that others shipped, where they
have no home in test_order.py, test_relay.py and test_upstream.py: each test names
its codes (tests/lint/faults).
"""

import pytest
from bg import resp, wait

NULL = resp.bulk("__NULL__")
LOST = b"-ERR bloomgate: upstream"


def test_late_replies_go_to_nobody(redis, bloomgate, make_filter, ids_file):
    """FAULTS D1: a whole pipeline that Redis answers too late gets its errors,
    one each; what Redis says afterwards is not taken for the answer to what the
    session asks next, again and again."""
    gate = bloomgate(
        redis, filters=[make_filter(ids_file(["1"]))],
        upstream={"response-timeout": "200ms"},
    ).warm()
    redis.value("SET", "user:1", "one")
    slow = "local t = redis.call('time') local n = t[1] * 1000000 + t[2] + 900000 " \
        "repeat t = redis.call('time') until t[1] * 1000000 + t[2] > n return 'late'"
    with gate.client(seconds=30) as client:
        for turn in range(3):
            asked = [
                resp.encode("EVAL", slow, 0), resp.encode("ECHO", "late %d" % turn),
                resp.encode("GET", "user:1"),
                resp.encode("MGET", "user:1", "user:none"),
                resp.encode("EXISTS", "user:none", "user:1"),
            ]
            client.send(b"".join(asked))
            replies = client.read_n(len(asked))
            assert all(r.startswith(LOST) for r in replies[:2]), (turn, replies)
            # What waited for a check may have gone out on the next connection.
            right = [resp.bulk("one"), None, b":1\r\n"]
            for got, want in zip(replies[2:], right):
                if want is None:
                    assert got.startswith((LOST, b"*2\r\n$3\r\none\r\n")), got
                else:
                    assert got == want or got.startswith(LOST), (turn, got)

            def again():
                reply = client.call("ECHO", "probe %d" % turn)
                assert reply == resp.bulk("probe %d" % turn) or reply.startswith(LOST)
                return not reply.startswith(LOST)

            wait.until(again, 20, "Redis answers again")
            for i in range(30):
                assert client.call("ECHO", i) == resp.bulk("%d" % i)
            assert client.call("GET", "user:1") == resp.bulk("one")
            client.quiet()


LEAVERS = {
    "in flight": (resp.encode("ECHO", "theirs") * 200, 0),
    "after some": (resp.encode("ECHO", "theirs") * 200, 50),
    "half a reply": (resp.encode("GET", "big") * 4, 0),
    "half a request": (resp.encode("ECHO", "theirs") * 3
                       + resp.encode("SET", "user:x", "y" * 300000)[:200000], 2),
    "merged": (resp.encode("MGET", "user:none", "big", "user:a") * 4, 0),
    "blocked": (resp.encode("BLPOP", "none", 0) + resp.encode("ECHO", "theirs"), 0),
    "in MULTI": (resp.encode("MULTI") + resp.encode("ECHO", "theirs") * 5, 3),
}


@pytest.mark.parametrize("name", LEAVERS)
def test_a_connection_that_was_left_is_not_used_again(
    redis, bloomgate, make_filter, ids_file, name
):
    """FAULTS D5, D6: whatever a client leaves unread or half said, its connection
    to Redis goes with it; nobody else gets its replies."""
    gate = bloomgate(redis, tcp=True, filters=[make_filter(ids_file(["1"]))]).warm()
    redis.value("SET", "big", "x" * 3000000)
    data, reads = LEAVERS[name]
    with gate.client() as first:
        seen = {first.value("CLIENT", "ID")}
    for turn in range(10):
        client = gate.client(tcp=True, receive_buffer=4096)
        seen.add(client.value("CLIENT", "ID"))
        client.send(data)
        client.read_n(reads)
        (client.reset if turn % 2 else client.close)()
        with gate.client() as client:
            number = client.value("CLIENT", "ID")
            assert number not in seen, turn
            seen.add(number)
            client.send(b"".join(resp.encode("ECHO", i) for i in range(50)))
            assert client.read_n(50) == [resp.bulk("%d" % i) for i in range(50)]
            assert client.call("GET", "user:none") in (NULL, resp.NIL2)

    def gone():
        ids = {
            int(line.split(b" ")[0][3:])
            for line in redis.value("CLIENT", "LIST").splitlines()
        }
        return not ids & seen

    wait.until(gone, 10, "their connections are closed")
    assert redis.value("EXISTS", "user:x") == 0


def test_one_session_one_order(redis, bloomgate, make_filter, ids_file):
    """FAULTS D3, D4, D8: in one write, writes and reads of one key, answered here,
    merged and forwarded, come back and take effect in the order they were sent."""
    gate = bloomgate(redis, filters=[make_filter(ids_file(["1"]))]).warm()
    with gate.client(seconds=30) as client:
        for turn in range(200):
            key = "user:k%d" % turn
            pairs = [
                (["GET", key], NULL),
                (["APPEND", key, "a"], b":1\r\n"),
                (["GET", key], resp.bulk("a")),
                (["MGET", "user:none", key], resp.array(NULL, resp.bulk("a"))),
                (["APPEND", key, "b"], b":2\r\n"),
                (["EXISTS", key, "user:none"], b":1\r\n"),
                (["GET", "user:none"], NULL),
                (["DEL", key], b":1\r\n"),
                (["GET", key], resp.NIL2),
                (["ECHO", turn], resp.bulk("%d" % turn)),
            ]
            client.send(b"".join(resp.encode(*words) for words, _ in pairs))
            for words, want in pairs:
                # A check that took too long is a maybe.
                got = client.read()
                assert got in (want, want.replace(NULL, resp.NIL2)), (turn, words)
