# SPDX-License-Identifier: BSD-2-Clause
"""
The one list of what may differ between two runs of a sequence: times, ids, what
Redis picks at random, and the size of things. A listed command is sent between
two ECHOs that name its kind, so that its reply, in EXEC's too, is found among
the others. Everything else is compared as it came.
"""

import re

from . import resp

# kind: what of a reply counts
#   digits   all but the numbers that are not negative, and lengths
#   type     whether it is an error (which one), a null, or a value
#   payload  all, but for a stream, which holds times: that it is one
#   lines    all but their order: that of keys follows the size that the keyspace's
#            table happens to have
LISTED = {
    b"TTL": "digits",
    b"PTTL": "digits",
    b"EXPIRETIME": "digits",
    b"PEXPIRETIME": "digits",
    b"TIME": "digits",
    b"LASTSAVE": "digits",
    b"INFO": "digits",
    b"XPENDING": "digits",
    b"XCLAIM": "digits",
    b"CLIENT ID": "digits",
    b"CLIENT INFO": "digits",
    b"OBJECT IDLETIME": "digits",
    b"XINFO CONSUMERS": "digits",
    b"MEMORY USAGE": "digits",
    b"SLOWLOG LEN": "digits",
    b"DUMP": "payload",
    b"SCAN": "lines",
    b"KEYS": "lines",
    b"CLIENT LIST": "type",
    b"RANDOMKEY": "type",
    b"SRANDMEMBER": "type",
    b"HRANDFIELD": "type",
    b"ZRANDMEMBER": "type",
    b"SLOWLOG GET": "type",
    b"ACL GENPASS": "type",
    b"ACL LOG": "type",
    b"LOLWUT": "type",
    b"LATENCY DOCTOR": "type",
    b"MEMORY STATS": "type",
    b"MEMORY DOCTOR": "type",
    b"MEMORY MALLOC-STATS": "type",
}

# Found anywhere: what stands before stays.
ANYWHERE = [
    (re.compile(rb"(\$2\r\nid\r\n:)\d+"), rb"\1N"),  # HELLO's connection id
    # A time, from a script: seconds or milliseconds of about now.
    (re.compile(rb":1[6-9]\d{8}(\d{3})?\r\n"), b":N\r\n"),
    # XADD's id of about now.
    (re.compile(rb"\$\d+\r\n1[6-9]\d{11}-\d+\r\n"), b"$N\r\nN-N\r\n"),
    # MONITOR: time and address; what bloomgate asks for itself goes.
    (re.compile(rb"\+\d+\.\d{6} \[\d+ [^\]]*\] "), b"+N "),
    (re.compile(rb'\+N "(?:INFO|ACL|COMMAND|ROLE|HELLO|AUTH)"[^\r]*\r\n'
                rb'(?=)', re.IGNORECASE), b""),
]
MARKED = re.compile(rb"\$\d+\r\n<(\w+)>\r\n(.*?)\$\d+\r\n</\1>\r\n", re.DOTALL)
STREAM = re.compile(rb"\$\d+\r\n[\x0f\x13\x15].*", re.DOTALL)
KINDS = {
    b"digits": lambda body: re.sub(rb"(?<!-)\b\d+(\.\d+)?|(?<=N)\d+", b"N", body),
    b"type": lambda body: body if body[:1] in b"-_" or body[:2] == b"$-"
    else body[:1],
    b"payload": lambda body: b"stream" if STREAM.match(body) else body,
    b"lines": lambda body: b"\r\n".join(sorted(body.split(b"\r\n"))),
}


def kind_of(command):
    """The kind of a listed command, or None."""
    if not isinstance(command, tuple) or not command:
        return None
    name = command[0].upper()
    return LISTED.get(name) or LISTED.get(b" ".join((name,) + command[1:2]).upper())


def encode(item):
    """The bytes of an item, between its ECHOs when it is listed."""
    if not isinstance(item, tuple):
        return bytes(item)
    data = resp.encode(*item)
    kind = kind_of(item)
    if kind:
        data = (
            resp.encode("ECHO", "<%s>" % kind) + data
            + resp.encode("ECHO", "</%s>" % kind)
        )
    return data


def comparable(replies):
    replies = MARKED.sub(lambda m: KINDS[m[1]](m[2]), replies)
    for field, instead in ANYWHERE:
        replies = field.sub(instead, replies)
    return replies
