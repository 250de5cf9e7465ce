# SPDX-License-Identifier: BSD-2-Clause
"""Deadlines. Nothing here waits for a fixed time: conditions are polled."""

import os
import select
import time

SLOW = float(os.environ.get("BLOOMGATE_SLOW", "1"))


def deadline(seconds):
    """The monotonic time that lies this many (scaled) seconds ahead."""
    return time.monotonic() + seconds * SLOW


def until(condition, seconds=10, what="condition", pause=0.005):
    """Polls until condition() is true and returns its value."""
    end = deadline(seconds)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError("%s: not within %g s" % (what, seconds * SLOW))
        time.sleep(pause)


def ready(sock, seconds, writing=False):
    """The poll() events of a socket: 0 when none came in time. A descriptor may
    have any number, which select() does not bear."""
    poll = select.poll()
    poll.register(sock, select.POLLIN | (select.POLLOUT if writing else 0))
    events = poll.poll(max(0, seconds) * 1000)
    return events[0][1] if events else 0
