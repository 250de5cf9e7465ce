# SPDX-License-Identifier: BSD-2-Clause
"""
Law 5 state by state: each row of bg/states.py against Redis itself, in RESP2 and
RESP3. An absent id answers __NULL__ where bloomgate may speak; in every other
state what Redis says must come, to the byte. FAULTS C1-C5, C8-C10, B11.
"""

import os

import pytest
from bg import covered, resp, wait
from bg.relay import Relay
from bg.states import STATES

NULL = resp.bulk("__NULL__")
GET = resp.encode("GET", "user:none")
NIL = {2: resp.NIL2, 3: resp.NIL3}
FAMILY = ("SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE")
USERS = [("full", "+@all"), ("part", "+@all -exec -discard -unwatch -subscribe")]


def add_users(redis):
    for name, rules in USERS:
        assert redis.value(
            "ACL", "SETUSER", name, "on", ">pw", "~*", "&*", *rules.split()
        ) == "OK"


@pytest.fixture
def gate(redis, bloomgate, make_filter, ids_file):
    add_users(redis)
    return bloomgate(redis, filters=[make_filter(ids_file(["1"]))])


def words(request):
    return request.split(" ")


def silent(request):
    return request in ("CLIENT REPLY OFF", "CLIENT REPLY SKIP")


def reply_counts(requests):
    """How many replies each request gets."""
    counts, skip = [], False
    for request in requests:
        name, *args = words(request)
        count = len(args) if name in FAMILY and args else 1
        if silent(request) or skip:
            count = 0
        skip = request == "CLIENT REPLY SKIP"
        counts.append(count)
    return counts


def run(client, requests):
    """Requests one by one; their replies."""
    replies = []
    for request, count in zip(requests, reply_counts(requests)):
        client.send(resp.encode(*words(request)))
        replies.append(client.read_n(count))
    return replies


def read_of(client):
    """The reply to a GET of an absent id; MONITOR's lines are passed over."""
    client.send(GET)
    reply = client.read()
    while b'"' in reply:
        reply = client.read()
    return reply


def answered_here(client):
    """An absent id is; a check that is late makes it a maybe, for Redis to say."""
    wait.until(lambda: read_of(client) == NULL, 5, "an absent id is answered here")


def begin(peer, protocol):
    client = peer.client()
    if protocol == 3:
        assert client.call("HELLO", 3).startswith(b"%")
    return client


def kinds(replies):
    return [[reply[:1] for reply in some] for some in replies]


def case(state):
    return "%s/%d" % (state.name.replace(" ", "-"), state.protocol)


def check_row(redis, gate, state):
    with begin(redis, state.protocol) as oracle, \
            begin(gate, state.protocol) as client:
        answered_here(client)
        want = run(oracle, state.enter)
        got = run(client, state.enter)
        assert kinds(got) == kinds(want)
        want = read_of(oracle)
        if state.local:
            # Redis would have executed it at once, and found nothing.
            assert want in NIL.values()
            answered_here(client)
        else:
            assert read_of(client) == want != NULL
        if state.leave is None:
            assert read_of(client) == read_of(oracle) != NULL
            return
        want = run(oracle, state.leave)
        assert kinds(run(client, state.leave)) == kinds(want)
        assert read_of(oracle) in NIL.values()
        answered_here(client)
        assert client.call("EXISTS", "user:none") == resp.integer(0)


def test_each_state(redis, gate):
    """Every row; FAULTS C1, C2, C3, C8, C9, C10."""
    for state in STATES:
        try:
            check_row(redis, gate, state)
        except (AssertionError, resp.Closed, OSError) as failure:
            raise AssertionError(case(state)) from failure


def check_reads(redis, gate, state):
    """Each covered read of an absent key in that state."""
    requests = [covered.request(row, row.plain[0], "user:none")
                for row in covered.ROWS]
    with begin(redis, state.protocol) as oracle, \
            begin(gate, state.protocol) as client:
        run(oracle, state.enter)
        run(client, state.enter)
        for words_ in requests:
            want = oracle.call(*words_)
            if state.local and words_[0] == "get":
                want = NULL
            elif state.local and words_[0] == "mget":
                want = resp.array(NULL)
            got = client.call(*words_)
            assert got == want, (words_, got, want)


def test_each_covered_read_in_each_state(redis, gate):
    """Command x state: where a read may not be answered here Redis's own word
    comes, QUEUED and refusals included; where it may, that of a missing key."""
    for state in STATES:
        if state.enter == ["MONITOR"]:
            continue  # its lines come in between
        try:
            check_reads(redis, gate, state)
        except (AssertionError, resp.Closed, OSError) as failure:
            raise AssertionError(case(state)) from failure


def total(requests):
    return sum(reply_counts(requests))


def check_row_in_one_write(redis, gate, state):
    """While a reply is due that may change the state, Redis answers: the first
    read is Redis's, unless the row is local."""
    leave = state.leave or []
    data = b"".join(resp.encode(*words(r)) for r in state.enter) + GET
    data += b"".join(resp.encode(*words(r)) for r in leave) + GET
    counts = [total(state.enter), 1, total(leave), 1]
    replies = []
    for peer in (redis, gate):
        with begin(peer, state.protocol) as client:
            client.send(data)
            replies.append([client.read_n(count) for count in counts])
            if peer is gate and state.leave is not None:
                answered_here(client)
    want, got = replies
    assert kinds(got[::2]) == kinds(want[::2])
    for mine, oracle in ((got[1], want[1]), (got[3], want[3])):
        may = state.local or (mine is got[3] and state.leave is not None)
        assert mine == oracle or (may and mine == [NULL]), (mine, oracle)


def test_each_state_in_one_write(redis, gate):
    for state in STATES:
        if state.enter == ["MONITOR"]:
            continue  # its lines come in between
        try:
            check_row_in_one_write(redis, gate, state)
        except (AssertionError, resp.Closed, OSError) as failure:
            raise AssertionError(case(state)) from failure


def client_ids(redis):
    lines = redis.value("CLIENT", "LIST").decode().splitlines()
    return {line.split(" ")[0].split("=")[1] for line in lines}


def check_loss(redis, gate, state):
    with gate.client() as client:
        before = client_ids(redis)
        assert client.call("PING") == resp.PONG
        mine = client_ids(redis) - before
        assert len(mine) == 1, "somebody else connected"
        if state.protocol == 3:
            client.call("HELLO", 3)
        run(client, state.enter)
        assert redis.value("CLIENT", "KILL", "ID", mine.pop()) == 1
        if not state.survives:
            assert all(b'"' in line for line in client.read_all()[0])
            return
        answer = client.call("PING")
        while answer.startswith(b"-ERR bloomgate: upstream"):
            answer = client.call("PING")
        assert answer == resp.PONG
        # It is what it was.
        with begin(redis, state.protocol) as oracle:
            run(oracle, state.enter)
            assert client.call("CLIENT", "GETNAME") == oracle.call(
                "CLIENT", "GETNAME"
            )
            assert client.call("ACL", "WHOAMI") == oracle.call("ACL", "WHOAMI")
        if state.local:
            answered_here(client)


def test_each_state_without_its_upstream(redis, gate):
    """FAULTS C6: what another connection can be given goes on, else it ends."""
    for state in STATES:
        try:
            check_loss(redis, gate, state)
        except (AssertionError, resp.Closed, OSError) as failure:
            raise AssertionError(case(state)) from failure


def test_tracked_reads_are_invalidated(redis, gate):
    """FAULTS C8: a nil that Redis did not give would never be invalidated."""
    for options in ([], ["BCAST"], ["OPTOUT"], ["BCAST", "PREFIX", "user:"]):
        with gate.client() as client:
            client.call("HELLO", 3)
            # In one write, too: the state is unknown until the reply.
            client.send(resp.encode("CLIENT", "TRACKING", "ON", *options) + GET)
            assert client.read_n(2) == [resp.OK, resp.NIL3]
            assert client.call("GET", "user:none") == resp.NIL3
            redis.call("SET", "user:none", "v")
            assert client.read() == b">2\r\n" + resp.bulk("invalidate") + \
                resp.array(resp.bulk("user:none"))
            redis.call("DEL", "user:none")


def test_a_redirected_read_is_invalidated(redis, gate):
    """FAULTS C8: invalidations may go to another session, plain or not, and are
    no reply of it."""
    with gate.client() as target, gate.client() as client:
        target.call("HELLO", 3)
        number = target.value("CLIENT", "ID")
        assert client.call(
            "CLIENT", "TRACKING", "ON", "REDIRECT", number
        ) == resp.OK
        assert client.call("GET", "user:none") == resp.NIL2
        redis.call("SET", "user:none", "v")
        push = b">2\r\n" + resp.bulk("invalidate") + \
            resp.array(resp.bulk("user:none"))
        assert target.read() == push
        redis.call("DEL", "user:none")
        answered_here(target)


def test_watch_is_redis_own(redis, gate):
    """FAULTS C10: between WATCH and the end of the transaction Redis reads."""
    with gate.client() as client:
        client.send(
            resp.encode("WATCH", "user:none") + GET + resp.encode("MULTI") + GET
            + resp.encode("EXEC") + resp.encode("ECHO", "end")
        )
        assert client.read_n(6) == [
            resp.OK, resp.NIL2, resp.OK, b"+QUEUED\r\n", resp.array(resp.NIL2),
            resp.bulk("end"),
        ]
        answered_here(client)
        assert client.call("WATCH", "user:none") == resp.OK
        assert client.call("GET", "user:none") == resp.NIL2
        redis.call("SET", "user:none", "v")
        client.send(resp.encode("MULTI") + GET + resp.encode("EXEC"))
        assert client.read_n(3) == [resp.OK, b"+QUEUED\r\n", b"*-1\r\n"]
        redis.call("DEL", "user:none")
        answered_here(client)


def test_reset_resets_what_bloomgate_knows(redis, gate):
    """FAULTS C9: in MULTI, subscribed, RESP3, another database and user."""
    for enter in (["MULTI"], ["SUBSCRIBE a"], ["SELECT 3"], ["AUTH full pw"],
                  ["HELLO 3 AUTH full pw SETNAME n", "SELECT 3", "MULTI"],
                  ["HELLO 3", "SUBSCRIBE a", "SELECT 3"]):
        with gate.client() as client:
            run(client, enter)
            assert client.call("RESET") == b"+RESET\r\n"
            answered_here(client)
            assert client.call("BF.EXISTS", "user", "1") == resp.integer(1)
            assert client.call("MGET", "user:none", "k") in (
                resp.array(NULL, resp.NIL2), resp.array(resp.NIL2, resp.NIL2)
            )
            assert client.call("ACL", "WHOAMI") == resp.bulk("default")
            assert client.call("CLIENT", "GETNAME") == resp.NIL2
        # In one write: the last read may be anybody's, in RESP2.
        with gate.client() as client:
            data = b"".join(resp.encode(*words(r)) for r in enter)
            client.send(data + resp.encode("RESET") + GET)
            assert client.read_n(total(enter) + 2)[-1] in (NULL, resp.NIL2)


# What the loss of a reply means: (request, the session goes on).
CHANGES = [
    ("SELECT 3", False),
    ("MULTI", False),
    ("WATCH k", False),
    ("AUTH full pw", False),
    ("HELLO 3", False),
    ("RESET", False),
    ("CLIENT TRACKING ON", False),
    ("NOSUCH", False),
    ("CLIENT SETNAME n", True),
    ("CLIENT ID", True),
    ("BLPOP none 0.01", True),
    ("PING", True),
]

BLOCKING = [
    ("BLPOP q 0", ["RPUSH", "q", "go"]),
    ("BRPOP q 0", ["RPUSH", "q", "go"]),
    ("BLMOVE q other LEFT LEFT 0", ["RPUSH", "q", "go"]),
    ("BZPOPMIN z 0", ["ZADD", "z", "1", "go"]),
    ("XREAD BLOCK 0 STREAMS s $", ["XADD", "s", "*", "f", "v"]),
]


def blocked(redis, count=1):
    return int(redis.info("blocked_clients")) == count


@pytest.mark.parametrize(
    "request_, end", BLOCKING, ids=lambda value: str(value).split()[0]
)
def test_what_follows_a_blocking_command_sees_what_ended_it(
    redis, gate, request_, end
):
    """FAULTS C4, C5: a read behind it is Redis's, for it is executed only then."""
    with gate.client() as client, gate.client() as other:
        client.send(resp.encode(*words(request_)) + resp.encode("GET", "user:late")
                    + resp.encode("EXISTS", "user:late"))
        wait.until(lambda: blocked(redis), 10, "it blocks")
        client.quiet()
        assert other.call("SET", "user:late", "v") == resp.OK
        assert not other.call(*end).startswith(b"-")
        replies = client.read_n(3)
        assert replies[1:] == [resp.bulk("v"), resp.integer(1)]
        answered_here(client)


def test_a_blocked_client_that_goes(redis, gate):
    """FAULTS C4: its upstream goes with it, and takes nothing from the list."""
    with gate.client() as client:
        client.send(resp.encode("BLPOP", "q", 0) + GET)
        wait.until(lambda: blocked(redis), 10, "it blocks")
    wait.until(lambda: blocked(redis, 0), 10, "it blocks no more")
    redis.call("RPUSH", "q", "kept")
    assert redis.value("LLEN", "q") == 1
    with gate.client() as client:
        answered_here(client)


def test_no_timeout_for_what_blocks(redis, bloomgate, make_filter, ids_file):
    """FAULTS C5: WAIT blocks too, though COMMAND of Redis 7.0 does not say so."""
    gate = bloomgate(
        redis, filters=[make_filter(ids_file(["1"]))],
        upstream={"response-timeout": "200ms"},
    )
    with gate.client() as client:
        assert client.call("SET", "k", "v") == resp.OK
        assert client.call("BLPOP", "none", "0.6") == b"*-1\r\n"
        assert client.call("WAIT", 1, 600) == resp.integer(0)
        answered_here(client)


def test_pushes_are_no_replies(redis, gate):
    """FAULTS B11, C5: messages under RESP3 come between replies of every shape,
    and take none of them."""
    add_users(redis)
    redis.call("SET", "user:1", "one")
    redis.call("ACL", "SETUSER", "reads", "on", ">pw", "~user:*", "&*", "+get",
               "+mget", "+exists", "+subscribe", "+hello")
    message = b">3\r\n" + b"".join(map(resp.bulk, ("message", "a", "m")))
    for user in ("full", "reads"):
        with gate.client() as client:
            client.call("HELLO", 3, "AUTH", user, "pw")
            assert client.call("SUBSCRIBE", "a").startswith(b">3")
            reads = [
                (["GET", "user:none"], NULL),
                (["GET", "user:1"], resp.bulk("one")),
                (["MGET", "user:none", "user:1"],
                 resp.array(NULL, resp.bulk("one"))),
                (["EXISTS", "user:none", "user:1"], resp.integer(1)),
            ]
            for round_ in range(20):
                redis.call("PUBLISH", "a", "m")
                for request, want in reads:
                    client.send(resp.encode(*request))
                    redis.call("PUBLISH", "a", "m")
                    reply = client.read()
                    while reply == message:
                        reply = client.read()
                    late = want.replace(NULL, resp.NIL3)
                    assert reply in (want, late), (user, request)


# (the name, its new name, what enters the state by it)
RENAMED = [
    ("MULTI", "begin", "begin"),
    ("WATCH", "look", "look k"),
    ("SUBSCRIBE", "listen", "listen a"),
    ("SELECT", "use", "use 3"),
    ("CLIENT", "klient", "klient TRACKING ON"),
    ("ECHO", "say", "say hi"),
]


@pytest.mark.parametrize("name, other, enter", RENAMED, ids=lambda value: value)
def test_renamed_commands(
    redis_server, bloomgate, make_filter, ids_file, name, other, enter
):
    """FAULTS C1, C3, C8, C10 by other names: COMMAND lists a renamed command as
    before, so what the new name does is not known; where it does not fail, the
    session is Redis's for good."""
    redis = redis_server(**{"rename-command": (name, other)})
    gate = bloomgate(redis, filters=[make_filter(ids_file(["1"]))])
    with gate.client() as client, redis.client() as oracle:
        # The old name and no name fail, and change nothing.
        for request in (name, "NOSUCH"):
            assert client.call(request, "x").startswith(b"-ERR unknown command")
            answered_here(client)
        assert run(client, [enter]) == run(oracle, [enter])
        for _ in range(2):
            assert read_of(client) == read_of(oracle) != NULL
        # With the state's own requests behind it bytes pass as they come.
        assert run(client, ["CLIENT ID"])[0][0][:1] in b"-+:"
        assert read_of(client) != NULL
    with gate.client() as client:
        client.send(resp.encode(*words(enter)) + GET + GET)
        assert NULL not in client.read_n(3)


def test_renamed_reads_and_writes(redis_server, bloomgate, make_filter, ids_file):
    """A write by another name is learned in every database; a covered read's
    name that Redis no longer knows is Redis's to refuse."""
    redis = redis_server(**{
        "rename-command": ("SETNX", "put"), "rename_command": ("SMEMBERS", "members")
    })
    gate = bloomgate(redis, filters=[make_filter(ids_file(["1"]))])
    with gate.client() as client, gate.client() as reader:
        answered_here(reader)
        assert client.call("put", "user:new", "v") == resp.integer(1)
        assert reader.call("GET", "user:new") == resp.bulk("v")
        assert client.call("SELECT", 3) == resp.OK
        assert client.call("COPY", "user:new", "user:copy", "DB", 0) == b":0\r\n"
        assert reader.call("SMEMBERS", "user:none").startswith(b"-ERR unknown command")
        assert reader.call("members", "user:none") == resp.array()


def test_a_user_that_is_not_known(redis_server, bloomgate, make_filter, ids_file):
    """AUTH by another name: whose session it is nobody can say."""
    redis = redis_server(**{"rename-command": ("AUTH", "login")})
    redis.call("ACL", "SETUSER", "poor", "on", ">pw", "+ping")
    gate = bloomgate(redis, filters=[make_filter(ids_file(["1"]))])
    with gate.client() as client:
        assert client.call("BF.EXISTS", "user", "1") == resp.integer(1)
        client.send(resp.encode("login", "poor", "pw")
                    + resp.encode("BF.EXISTS", "user", "none") + GET)
        ok, exists, read = client.read_n(3)
        assert ok == resp.OK
        assert exists.startswith(b"-ERR bloomgate: this session's user")
        assert read.startswith(b"-NOPERM")
        assert client.call("GET", "user:none").startswith(b"-NOPERM")


def test_a_database_that_is_not_known(redis_server, bloomgate, make_filter, ids_file):
    """FAULTS C1: SELECT by another name, and writes behind it in one write."""
    redis = redis_server(**{"rename-command": ("SELECT", "use")})
    gate = bloomgate(redis, filters=[make_filter(ids_file(["1"]))])
    with gate.client() as client:
        client.send(b"".join(resp.encode(*words(r)) for r in (
            "use 3", "SET user:three v", "use 0", "SET user:zero v"
        )))
        assert client.read_n(4) == [resp.OK] * 4
    assert gate.call("GET", "user:zero") == resp.bulk("v")


def test_changes_that_are_lost_end_the_session(
    redis, bloomgate, make_filter, ids_file, folder
):
    """FAULTS C2: a SELECT or a MULTI whose reply is lost; what comes behind it
    must not be executed in another state than it was meant for."""
    add_users(redis)
    relay = Relay(os.path.join(folder, "relay.sock"), redis.address)
    gate = bloomgate(
        redis, upstream={"address": relay.address},
        store={"address": redis.address}, filters=[make_filter(ids_file(["1"]))],
    )
    marker = "cut-replies:%d:" % len(resp.bulk("cut-replies:NN:"))
    try:
        for change, survives in CHANGES:
            with gate.client() as client:
                client.send(resp.encode("ECHO", marker)
                            + resp.encode(*words(change)))
                assert client.read() == resp.bulk(marker)
                assert client.read().startswith(b"-ERR bloomgate: upstream"), change
                if survives:
                    assert client.call("SET", "survived", change) == resp.OK
                    continue
                try:
                    client.send(resp.encode("SET", "ghost", change))
                except OSError:
                    pass
                assert client.read_all() == ([], b""), change
    finally:
        relay.stop()
    assert redis.value("GET", "survived") == b"PING"
    assert redis.value("EXISTS", "ghost") == 0
