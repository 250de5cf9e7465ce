# SPDX-License-Identifier: BSD-2-Clause
"""
Where an application can tell bloomgate from Redis, apart from the reads that it
answers: what, why, and the test that shows it. doc/compatibility.md is made of
them.
"""

from typing import NamedTuple


class Difference(NamedTuple):
    what: str
    why: str
    shown_by: str  # file::test


DIFFERENCES = [
    Difference(
        "GET and the elements of MGET answer the filter's `absent-reply` value (or "
        "every covered read its error) instead of nil",
        "an application that gets nil reads its database: only another answer "
        "protects that",
        "test_covered.py::test_in_the_filter_way"),
    Difference(
        "A `null-values` value that was written reads back as the `absent-reply` value",
        "writing the null-object must not make an id exist",
        "test_absent.py::test_null_values"),
    Difference(
        "CLIENT PAUSE, LOADING, BUSY and a Redis that is gone do not stop absent "
        "replies at once",
        "they come from the filter, whose lease and staleness bound how long",
        "test_robust.py::test_redis_stops_answering_for_a_while"),
    Difference(
        "Reads that are answered here are not in MONITOR, SLOWLOG, INFO "
        "commandstats and keyspace_misses, and split ones come there without their "
        "absent keys",
        "Redis does not see them: that is what it is for",
        "test_absent.py::test_local_answers_do_not_reach_redis"),
    Difference(
        "While Redis cannot be reached each command is answered with `-ERR "
        "bloomgate: upstream ...`; a session with a transaction, watched keys, "
        "subscriptions, tracking or an unknown state is closed",
        "what such a session had cannot be given back on another connection",
        "test_states.py::test_each_state_without_its_upstream"),
    Difference(
        "A write whose id cannot be added in 5 s is not executed: `-ERR "
        "bloomgate: ...`",
        "the id would be called absent although it exists",
        "test_filter_commands.py::test_a_failing_add_stops_its_write"),
    Difference(
        "BF.* of a configured filter is answered by bloomgate, and refused inside "
        "MULTI: EXEC then answers EXECABORT",
        "a module's filter of that name would be another one",
        "test_filter_commands.py::test_inside_multi"),
    Difference(
        "BF.* of a configured filter closes a session after MONITOR, CLIENT REPLY "
        "OFF or SKIP and the like",
        "replies can no longer be counted, so none can be put between",
        "test_state.py::test_bf_closes_an_opaque_session"),
    Difference(
        "CLIENT LIST, CLIENT INFO and MONITOR show bloomgate's address, and "
        "bloomgate's own connections beside those of clients",
        "each session has an upstream connection of its own",
        "test_relay.py::test_every_session_has_its_own_upstream"),
    Difference(
        "A command that COMMAND does not list under the name it was sent by makes "
        "the session Redis's alone, when it succeeds",
        "it may be MULTI or SELECT by another name",
        "test_states.py::test_renamed_commands"),
    Difference(
        "Requests and replies above `limits` end the connection where Redis has "
        "no such limit",
        "memory is bounded on every path",
        "test_relay.py::test_a_reader_above_the_limit_is_closed"),
]
