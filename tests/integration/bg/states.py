# SPDX-License-Identifier: BSD-2-Clause
"""
Every state of a session, as rows: what brings a session into it, whether a
covered absent read may be answered by bloomgate while it lasts, what ends it, and
whether the session outlives a lost upstream in it. test_states.py proves each row
against Redis; doc/compatibility.md is made of them.

A row's requests are words between single blanks. Users: `full` may do everything,
`part` everything but EXEC, DISCARD, UNWATCH and SUBSCRIBE; both have the password
`pw`.
"""

from typing import List, NamedTuple


class State(NamedTuple):
    name: str
    enter: List[str]
    local: bool  # may be answered by bloomgate
    leave: List[str]  # afterwards: local again. None where nothing ends it
    protocol: int  # 2 or 3
    survives: bool  # a lost upstream: the session goes on
    note: str = ""


def rows(name, enter, local, leave=(), protocols=(2, 3), survives=None, note=""):
    """A row for each protocol. Plain states survive, unless it is said."""
    if survives is None:
        survives = local
    return [
        State(name, enter, local, leave if leave is None else list(leave),
              protocol, survives, note)
        for protocol in protocols
    ]


QUEUED = "Redis queues the read"
ERROR = "an error changes nothing"

STATES = sum([
    rows("new", [], True),

    # Databases
    rows("SELECT another database", ["SELECT 3"], False, ["SELECT 0"], survives=True,
         note="the filter covers one database"),
    rows("SELECT and back", ["SELECT 3", "SELECT 0"], True),
    rows("SELECT out of range", ["SELECT 99"], True, note=ERROR),
    rows("SELECT no number", ["SELECT x"], True, note=ERROR),
    rows("SELECT with a zero in front", ["SELECT 03"], True, note=ERROR),
    rows("SELECT without a database", ["SELECT"], True, note=ERROR),
    rows("SELECT refused elsewhere", ["SELECT 3", "SELECT 99"], False, ["SELECT 0"],
         survives=True, note=ERROR),

    # Users
    rows("AUTH", ["AUTH full pw"], True),
    rows("AUTH, wrong password", ["AUTH full no"], True, note=ERROR),
    rows("AUTH, unknown user", ["AUTH nobody pw"], True, note=ERROR),
    rows("AUTH, default without a password", ["AUTH pw"], True, note=ERROR),
    rows("AUTH, too many arguments", ["AUTH a b c"], True, note=ERROR),
    rows("AUTH twice, wrong at last", ["AUTH full pw", "AUTH part no"], True,
         note=ERROR),

    # HELLO
    rows("HELLO 3", ["HELLO 3"], True, protocols=(2,)),
    rows("HELLO 2", ["HELLO 2"], True, protocols=(3,)),
    rows("HELLO without a version", ["HELLO"], True),
    rows("HELLO with AUTH and SETNAME", ["HELLO 3 AUTH full pw SETNAME n"], True),
    rows("HELLO, unknown version", ["HELLO 4"], True, note=ERROR),
    rows("HELLO, no version", ["HELLO x"], True, note=ERROR),
    rows("HELLO, wrong password", ["HELLO 3 AUTH full no SETNAME n"], True,
         note=ERROR),
    rows("HELLO, unknown option", ["HELLO 3 FOO"], True, note=ERROR),
    rows("HELLO, AUTH cut short", ["HELLO 3 AUTH full"], True, note=ERROR),
    rows("HELLO, SETNAME cut short", ["HELLO 3 SETNAME"], True, note=ERROR),
    rows("HELLO, part of it done", ["HELLO 3 AUTH full pw FOO"], False, None,
         note="Redis 7.0 lets the user in and then refuses the rest; others do "
         "not: opaque"),

    # Transactions
    rows("MULTI", ["MULTI"], False, ["DISCARD"], note=QUEUED),
    rows("MULTI, ended by EXEC", ["MULTI"], False, ["EXEC"], note=QUEUED),
    rows("MULTI, ended by RESET", ["MULTI"], False, ["RESET"], note=QUEUED),
    rows("MULTI with commands", ["MULTI", "GET user:none", "SET k v"], False,
         ["EXEC"], note=QUEUED),
    rows("MULTI in MULTI", ["MULTI", "MULTI"], False, ["EXEC"], note=ERROR),
    rows("MULTI with an argument", ["MULTI x"], True, note=ERROR),
    rows("MULTI with a failed command", ["MULTI", "NOSUCH"], False, ["EXEC"],
         note="EXECABORT ends it"),
    rows("MULTI with a wrong arity", ["MULTI", "GET"], False, ["EXEC"],
         note="EXECABORT ends it"),
    rows("MULTI, EXEC with an argument", ["MULTI", "EXEC x"], True,
         note="EXECABORT ends it"),
    rows("MULTI, EXEC not permitted", ["AUTH part pw", "MULTI", "EXEC"], True,
         note="EXECABORT ends it"),
    rows("MULTI, DISCARD not permitted", ["AUTH part pw", "MULTI", "DISCARD"], False,
         ["RESET"], note=ERROR),
    rows("MULTI, DISCARD with an argument", ["MULTI", "DISCARD x"], False, ["EXEC"],
         note=ERROR),
    rows("MULTI, RESET with an argument", ["MULTI", "RESET x"], False, ["EXEC"],
         note=ERROR),
    rows("MULTI, WATCH in it", ["MULTI", "WATCH k"], False, ["EXEC"], note=ERROR),
    rows("MULTI, a blocking command in it", ["MULTI", "BLPOP none 0"], False,
         ["EXEC"], note="blocks nothing in a transaction"),
    rows("MULTI, a script in it", ["MULTI", "EVAL return(1) 0"], False, ["EXEC"]),
    rows("EXEC without MULTI", ["EXEC"], True, note=ERROR),
    rows("DISCARD without MULTI", ["DISCARD"], True, note=ERROR),

    # WATCH
    rows("WATCH", ["WATCH k"], False, ["UNWATCH"],
         note="the transaction depends on what Redis read"),
    rows("WATCH, ended by RESET", ["WATCH k"], False, ["RESET"]),
    rows("WATCH of the key that is read", ["WATCH user:none"], False, ["UNWATCH"]),
    rows("WATCH, MULTI and EXEC", ["WATCH k", "MULTI", "EXEC"], True),
    rows("WATCH, MULTI and DISCARD", ["WATCH k", "MULTI", "DISCARD"], True),
    rows("WATCH, a transaction that fails",
         ["WATCH k", "SET k other", "MULTI", "EXEC"], True,
         note="the nil of EXEC ends both"),
    rows("WATCH, a transaction that is aborted",
         ["WATCH k", "MULTI", "NOSUCH", "EXEC"], True),
    rows("WATCH, EXEC without MULTI", ["WATCH k", "EXEC"], False, ["UNWATCH"],
         note=ERROR),
    rows("WATCH, DISCARD without MULTI", ["WATCH k", "DISCARD"], False, ["UNWATCH"],
         note=ERROR),
    rows("WATCH, UNWATCH not permitted", ["AUTH part pw", "WATCH k", "UNWATCH"],
         False, ["RESET"], note=ERROR),
    rows("WATCH, UNWATCH in MULTI", ["WATCH k", "MULTI", "UNWATCH"], False, ["EXEC"],
         note=QUEUED),
    rows("WATCH without a key", ["WATCH"], True, note=ERROR),
    rows("UNWATCH", ["UNWATCH"], True),

    # Subscriptions
    rows("SUBSCRIBE", ["SUBSCRIBE a"], False, ["UNSUBSCRIBE a"], (2,),
         note="Redis refuses the read"),
    rows("SUBSCRIBE to several", ["SUBSCRIBE a b", "UNSUBSCRIBE a"], False,
         ["UNSUBSCRIBE"], (2,), note="until the last one is gone"),
    rows("PSUBSCRIBE", ["PSUBSCRIBE a*"], False, ["PUNSUBSCRIBE"], (2,)),
    rows("SSUBSCRIBE", ["SSUBSCRIBE a"], False, ["SUNSUBSCRIBE a"], (2,)),
    rows("subscriptions of each kind",
         ["SUBSCRIBE a", "PSUBSCRIBE a*", "SSUBSCRIBE a", "UNSUBSCRIBE",
          "PUNSUBSCRIBE"], False, ["SUNSUBSCRIBE"], (2,)),
    rows("SUBSCRIBE, ended by RESET", ["SUBSCRIBE a"], False, ["RESET"], (2,)),
    rows("SUBSCRIBE, and MULTI refused", ["SUBSCRIBE a", "MULTI"], False,
         ["UNSUBSCRIBE a"], (2,), note=ERROR),
    rows("SUBSCRIBE, and HELLO refused", ["SUBSCRIBE a", "HELLO 3"], False,
         ["UNSUBSCRIBE a"], (2,), note=ERROR),
    rows("SUBSCRIBE under RESP3", ["SUBSCRIBE a"], True, ["UNSUBSCRIBE a"], (3,),
         survives=False, note="Redis executes every command there"),
    rows("PSUBSCRIBE under RESP3", ["PSUBSCRIBE a*"], True, ["PUNSUBSCRIBE"], (3,),
         survives=False),
    rows("SSUBSCRIBE under RESP3", ["SSUBSCRIBE a"], True, ["SUNSUBSCRIBE a"], (3,),
         survives=False),
    rows("SUBSCRIBE under RESP3, then HELLO 2", ["SUBSCRIBE a", "HELLO 2"], False,
         ["UNSUBSCRIBE a"], (3,), note="RESP2 with subscriptions"),
    rows("SUBSCRIBE under RESP3, then MULTI", ["SUBSCRIBE a", "MULTI"], False,
         ["EXEC", "UNSUBSCRIBE a"], (3,), note=QUEUED),
    rows("SUBSCRIBE without a channel", ["SUBSCRIBE"], True, note=ERROR),
    rows("SUBSCRIBE not permitted", ["AUTH part pw", "SUBSCRIBE a"], True, note=ERROR),
    rows("UNSUBSCRIBE of nothing", ["UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE a"],
         True),

    # CLIENT TRACKING: what Redis has not read it does not invalidate
    rows("CLIENT TRACKING ON", ["CLIENT TRACKING ON"], False, ["CLIENT TRACKING OFF"],
         note="Redis must see the read to invalidate it"),
    rows("CLIENT TRACKING ON, ended by RESET", ["CLIENT TRACKING ON"], False,
         ["RESET"]),
    rows("CLIENT TRACKING BCAST", ["CLIENT TRACKING ON BCAST PREFIX user: NOLOOP"],
         False, ["CLIENT TRACKING OFF"]),
    rows("CLIENT TRACKING OPTIN", ["CLIENT TRACKING ON OPTIN"], False,
         ["CLIENT TRACKING OFF"]),
    rows("CLIENT TRACKING OPTIN, CACHING",
         ["CLIENT TRACKING ON OPTIN", "CLIENT CACHING YES"], False,
         ["CLIENT TRACKING OFF"]),
    rows("CLIENT TRACKING OPTOUT", ["CLIENT TRACKING ON OPTOUT"], False,
         ["CLIENT TRACKING OFF"]),
    rows("CLIENT TRACKING ON, then another mode refused",
         ["CLIENT TRACKING ON", "CLIENT TRACKING ON BCAST"], False,
         ["CLIENT TRACKING OFF"], note=ERROR),
    rows("CLIENT TRACKING ON, OFF refused",
         ["CLIENT TRACKING ON", "CLIENT TRACKING OFF FOO"], False,
         ["CLIENT TRACKING OFF"], note=ERROR),
    rows("CLIENT TRACKING ON, then HELLO",
         ["CLIENT TRACKING ON", "HELLO 3", "HELLO 2"], False,
         ["CLIENT TRACKING OFF"], note="stays on"),
    rows("CLIENT TRACKING ON, unknown option", ["CLIENT TRACKING ON FOO"], True,
         note=ERROR),
    rows("CLIENT TRACKING ON, prefix without BCAST",
         ["CLIENT TRACKING ON PREFIX a"], True, note=ERROR),
    rows("CLIENT TRACKING ON, to nobody", ["CLIENT TRACKING ON REDIRECT 999999"], True,
         note=ERROR),
    rows("CLIENT TRACKING, neither on nor off", ["CLIENT TRACKING FOO"], True,
         note=ERROR),
    rows("CLIENT TRACKING OFF", ["CLIENT TRACKING OFF"], True),
    rows("CLIENT CACHING without TRACKING", ["CLIENT CACHING YES"], True, note=ERROR),

    # CLIENT REPLY
    rows("CLIENT REPLY ON", ["CLIENT REPLY ON"], True),
    rows("CLIENT REPLY OFF and ON", ["CLIENT REPLY OFF", "CLIENT REPLY ON"], False,
         None, note="opaque"),
    rows("CLIENT REPLY SKIP", ["CLIENT REPLY SKIP", "PING", "PING"], False, None,
         note="opaque"),
    rows("CLIENT REPLY, unknown", ["CLIENT REPLY FOO"], False, None, note="opaque"),

    # The rest of CLIENT
    *[
        rows("CLIENT " + words, ["CLIENT " + words], True)
        for words in (
            "ID", "INFO", "LIST", "GETNAME", "GETREDIR", "TRACKINGINFO", "HELP",
            "SETNAME n", "KILL ID 999999", "UNBLOCK 999999", "UNPAUSE", "NO-EVICT OFF",
        )
    ],
    *[
        rows("CLIENT %s, refused" % words, ["CLIENT " + words], True, note=ERROR)
        for words in (
            "ID x", "SETNAME", "SETNAME a\tb", "KILL 1.2.3.4:5", "UNBLOCK x",
            "PAUSE x", "NO-EVICT x", "FOO",
        )
    ],
    # Of Redis 7.2; an error before
    rows("CLIENT SETINFO", ["CLIENT SETINFO lib-name l"], True),
    rows("CLIENT SETINFO, unknown", ["CLIENT SETINFO foo l"], True, note=ERROR),
    rows("CLIENT NO-EVICT ON", ["CLIENT NO-EVICT ON"], True, ["CLIENT NO-EVICT OFF"],
         survives=False, note="of the connection, not of its reads"),
    rows("CLIENT NO-EVICT ON and OFF", ["CLIENT NO-EVICT ON", "CLIENT NO-EVICT OFF"],
         True),
    rows("CLIENT NO-EVICT ON, then RESET", ["CLIENT NO-EVICT ON", "RESET"], True,
         ["CLIENT NO-EVICT OFF"], survives=False, note="RESET leaves it on"),
    rows("CLIENT in MULTI", ["MULTI", "CLIENT ID"], False, None,
         note="acts within EXEC: opaque"),

    # RESET
    rows("RESET", ["RESET"], True),
    rows("RESET with an argument", ["RESET x"], True, note=ERROR),
    rows("RESET of everything",
         ["HELLO 3 AUTH full pw SETNAME n", "SELECT 3", "SUBSCRIBE a", "WATCH k",
          "CLIENT TRACKING ON", "MULTI", "RESET"], True,
         note="RESP2, database 0, the default user"),

    # Blocking and unknown commands
    rows("BLPOP, ended", ["BLPOP none 0.01"], True),
    rows("XREAD BLOCK, ended", ["XREAD BLOCK 1 STREAMS none 0"], True),
    rows("WAIT, ended", ["WAIT 0 0"], True),
    rows("BLPOP, refused", ["BLPOP none x"], True, note=ERROR),
    rows("unknown command", ["NOSUCH a b"], True, note=ERROR),

    # Opaque for good
    rows("MONITOR", ["MONITOR"], False, None, (2,), note="opaque"),
    rows("REPLCONF", ["REPLCONF capa eof"], False, None,
         note="opaque: REPLCONF ACK has no reply"),
    *[
        rows("MULTI, %s in it" % words.split()[0], ["MULTI", words], False, None,
             note="acts within EXEC: opaque")
        for words in ("SELECT 0", "AUTH full pw", "HELLO 2", "SUBSCRIBE a",
                      "UNSUBSCRIBE")
    ],
], [])
