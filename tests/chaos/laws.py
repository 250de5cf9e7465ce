#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""
The test of the test: each mistake of configure --with-broken-law=N (the table is
in HACKING.md) is built, and the chaos that must see it has to fail with it.

  tests/chaos/laws.py [--build FOLDER] [--seconds 120] [N ...]

The build folder (build-law) is configured anew for each number and stays. The
last line is "N passed, N failed, 0 skipped".
"""

import argparse
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# The number, what is broken, the disturbances in which it shows, and words of
# what the checker must say: an id that is called absent, or absents that stay
# away.
ABSENT = "is called absent"
LATE = "unknown ids are not absent again"
LAWS = {
    1: ("the tag is not compared", "flushall,delete-shard", ABSENT),
    2: ("adds do not go to the building generation", "rebuild", ABSENT),
    3: ("the reply does not wait for the add", "cut,partition,rebuild", ABSENT),
    4: ("the run of Redis is not compared", "restore-snapshot,promote", ABSENT),
    5: ("a refused add is repeated for the generations of before", "pause-peer",
        ABSENT),
    6: ("a heartbeat under another epoch renews the lease", "rebuild", LATE),
    7: ("a check without an answer counts", "cut,pause-redis", ABSENT),
    8: ("a source that failed counts as a whole list", "bad-source", ABSENT),
    9: ("no guard refuses a list that is too short", "bad-source", ABSENT),
    10: ("an earlier state of the data is believed", "swap-databases", ABSENT),
    11: ("what was merged is not verified", "rebuild", ABSENT),
    12: ("own adds do not go into the mirror", "rebuild", ABSENT),
    13: ("a mirror is in step whatever events have come", "cut,partition,rebuild",
         ABSENT),
}
MIRROR = (12, 13)  # seen with check: mirror; the others with remote


def build(folder, number):
    """The program with that mistake, or None."""
    done = subprocess.run(
        [
            os.path.join(ROOT, "scripts/build"), folder, "--enable-werror",
            "CFLAGS=-O1 -g -DFOLLOW_SPREAD_MS=100", "--cache-file=config.cache",
            "--with-broken-law=%d" % number,
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        print(done.stderr[-3000:])
        return None
    return os.path.join(folder, "src/bloomgate")


def fails(program, number, seconds):
    """True when the chaos fails with it, for the reason that it should."""
    _, only, words = LAWS[number]
    done = subprocess.run(
        [sys.executable, "-B", os.path.join(HERE, "run.py"), "--seconds", str(seconds),
         "--only", only, "--check", "mirror" if number in MIRROR else "remote"],
        env=dict(os.environ, BLOOMGATE=program),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode == 1 and words in done.stdout:
        return True
    print(done.stdout)
    return False


def main():
    parser = argparse.ArgumentParser(description="see the head of this file")
    parser.add_argument("--build", default=os.path.join(ROOT, "build-law"))
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("numbers", nargs="*", type=int)
    options = parser.parse_args()
    passed = failed = 0
    for number in options.numbers or LAWS:
        began = time.monotonic()
        program = build(os.path.abspath(options.build), number)
        built = time.monotonic()
        good = program is not None and fails(program, number, options.seconds)
        print("broken law %d, %s: %s; built in %.0f s, seen in %.0f s" % (
            number, LAWS[number][0], "seen" if good else "NOT SEEN",
            built - began, time.monotonic() - built), flush=True)
        passed += good
        failed += not good
    print("%d passed, %d failed, 0 skipped" % (passed, failed))
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
