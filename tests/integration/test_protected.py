# SPDX-License-Identifier: BSD-2-Clause
"""
protected: who comes from elsewhere is let in only where Redis asks for a password.
In a network of the test's own, whose address is not loopback.
"""

import ctypes
import fcntl
import os
import socket
import struct
import time

import pytest
from bg import resp, wait

ADDRESS = "10.99.0.1"
NEW_NETWORK = 0x40000000
SET_ADDRESS, SET_FLAGS, UP = 0x8916, 0x8914, 1
DENIED = b"-DENIED bloomgate"
NOAUTH = b"-NOAUTH"


def configure(name, address):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SET_ADDRESS, struct.pack(
            "16sHH4s8x", name, socket.AF_INET, 0, socket.inet_aton(address)))
        fcntl.ioctl(control, SET_FLAGS, struct.pack("16sH14x", name, UP))


@pytest.fixture
def own_network():
    """What is started and opened meanwhile is in it."""
    libc = ctypes.CDLL(None, use_errno=True)
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    assert libc.unshare(NEW_NETWORK) == 0, os.strerror(ctypes.get_errno())
    try:
        configure(b"lo", "127.0.0.1")
        configure(b"lo:1", ADDRESS)
        yield
    finally:
        assert libc.setns(before, NEW_NETWORK) == 0
        os.close(before)


@pytest.fixture
def gate(own_network, redis, bloomgate, folder):
    secret = os.path.join(folder, "secret")
    with open(secret, "w") as out:
        out.write("pw\n")
    redis.call("ACL", "SETUSER", "gate", "on", ">pw", "~*", "&*", "+@all")
    return bloomgate(
        redis, listen=["%s:0" % ADDRESS, "unix:%s/b0/client.sock" % folder],
        upstream={"username": "gate", "password-file": secret},
        **{"permission-ttl": "100ms"})


def greeting(gate):
    with gate.client(tcp=True) as client:
        try:
            client.send(resp.encode("PING"))
            return client.read()
        except resp.Closed as closed:
            return closed.args[0]
        except OSError:
            return DENIED  # closed before it was read


def test_let_in_where_redis_asks_for_a_password(gate, redis):
    """And not anew refused each time that permission-ttl is over."""
    redis.call("CONFIG", "SET", "requirepass", "secret")
    wait.until(lambda: greeting(gate).startswith(NOAUTH), 5, "let in")
    end = time.monotonic() + 1.5
    while time.monotonic() < end:
        quiet = time.monotonic() + 0.15
        wait.until(lambda: time.monotonic() > quiet, 2, "the ttl is over")
        assert greeting(gate).startswith(NOAUTH)


def test_refused_where_redis_does_not(gate, redis):
    for _ in range(20):
        assert greeting(gate).startswith(DENIED)
    redis.call("CONFIG", "SET", "requirepass", "secret")
    wait.until(lambda: greeting(gate).startswith(NOAUTH), 5, "let in")
    # Who is let in is asked for by each who comes, so the answer gets about.
    redis.call("AUTH", "secret")
    redis.call("CONFIG", "SET", "requirepass", "")
    wait.until(lambda: greeting(gate).startswith(DENIED), 5, "refused again")


def test_a_password_comes_and_goes(gate, redis):
    """FAULTS A14, A15: what strangers may send is little. Who was in before the
    password was set stays in with Redis, and is no stranger; RESET makes one."""
    large = resp.encode("SET", "k", "x" * 20000)

    def answer(client):
        client.send(large)
        try:
            return client.read()
        except (resp.Closed, OSError):
            return None

    def stranger():
        with gate.client() as client:
            return answer(client)

    with gate.client() as old:
        assert answer(old) == resp.OK
        redis.call("CONFIG", "SET", "requirepass", "secret")
        redis.call("AUTH", "secret")
        wait.until(
            lambda: stranger()
            == b"-ERR Protocol error: unauthenticated bulk length\r\n",
            5, "strangers are held short")
        for _ in range(3):
            assert answer(old) == resp.OK
        assert old.call("RESET") == b"+RESET\r\n"
        assert answer(old).startswith(b"-ERR Protocol error: unauthenticated")
    redis.call("CONFIG", "SET", "requirepass", "")
    wait.until(lambda: stranger() == resp.OK, 5, "strangers are nobody")
