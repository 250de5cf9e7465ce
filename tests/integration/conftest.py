# SPDX-License-Identifier: BSD-2-Clause
"""
Fixtures of the integration tests. Each test has servers, ports, folders and a
random seed of its own, so that tests may run side by side. Environment:

  BLOOMGATE       the program (build/src/bloomgate)
  BLOOMGATE_SEED  repeats a run's random choices
  BLOOMGATE_CHECK mirror: filters are checked so unless a test says otherwise
                  (remote)
  BLOOMGATE_SLOW  multiplies every deadline (4 for sanitizer builds)
  BLOOMGATE_COUNTS=small  fewer repetitions (sanitizer builds); --full: more
"""

import os
import random
import shutil
import signal
import tempfile

import pytest

from bg import wait
from bg.daemon import Bloomgate
from bg.redis import Redis

SEED = os.environ.get("BLOOMGATE_SEED") or os.urandom(4).hex()


def pytest_addoption(parser):
    parser.addoption("--full", action="store_true", help="the longer counts")


def pytest_configure(config):
    os.environ["BLOOMGATE_SEED"] = SEED  # side processes take the same
    config.addinivalue_line("markers", "full: runs with --full only")


def pytest_report_header(config):
    return "BLOOMGATE_SEED=%s" % SEED


def pytest_collection_modifyitems(config, items):
    if config.getoption("--full"):
        return
    chosen, left = [], []
    for item in items:
        (left if item.get_closest_marker("full") else chosen).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = chosen


@pytest.fixture(autouse=True)
def no_test_hangs(request):
    """Every wait has a deadline of its own; this is for those that do not."""

    def hangs(*_):
        raise AssertionError("the test hangs")

    before = signal.signal(signal.SIGALRM, hangs)
    longer = 4 if request.config.getoption("--full") else 1
    signal.alarm(int(240 * wait.SLOW * longer))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def rng(request):
    seed = "%s:%s" % (os.environ["BLOOMGATE_SEED"], request.node.nodeid)
    print("seed", seed)
    return random.Random(seed)


@pytest.fixture
def counts(request):
    """counts(normal, full, small): how often to repeat something."""

    def choose(normal, full=None, small=None):
        if request.config.getoption("--full"):
            return full or normal
        if os.environ.get("BLOOMGATE_COUNTS") == "small":
            return small or normal
        return normal

    return choose


@pytest.fixture
def folder():
    """A folder with a name short enough for a Unix socket in it."""
    path = tempfile.mkdtemp(prefix="bg-")
    yield path
    shutil.rmtree(path)


@pytest.fixture
def redis_server(folder):
    started = []

    def start(tcp=False, **config):
        server = Redis(os.path.join(folder, "r%d" % len(started)), tcp, **config)
        started.append(server)
        return server.start()

    yield start
    for server in started:
        server.kill()


@pytest.fixture
def redis(redis_server):
    return redis_server()


@pytest.fixture
def bloomgate(folder, redis_server):
    """bloomgate(redis, tcp=False, **config): started, listening."""
    started = []

    def start(upstream, /, tcp=False, serving=True, **config):
        gate = Bloomgate(
            os.path.join(folder, "b%d" % len(started)), upstream, config, tcp
        )
        started.append(gate)
        gate.start()
        if serving and gate.filters:
            gate.wait_state("serving")
        gate.ready_to_count()
        return gate

    yield start
    failures = []
    for gate in started:
        try:
            gate.stop()
        except AssertionError as failure:
            failures.append(str(failure))
    assert not failures, "\n".join(failures)


@pytest.fixture
def ids_file(folder):
    """ids_file(iterable): a source file with a line for each."""
    made = []

    def write(ids):
        path = os.path.join(folder, "ids%d.txt" % len(made))
        made.append(path)
        with open(path, "w") as out:
            out.writelines("%s\n" % i for i in ids)
        return path

    return write


def user_filter(path, **over):
    """The filter that most tests use: user:{id} from a trusted file."""
    settings = {
        "name": "user",
        "keys": ["user:{id}"],
        "capacity": 100000,
        "error-rate": 1e-9,
        "absent-reply": {"value": "__NULL__"},
        "check": os.environ.get("BLOOMGATE_CHECK", "remote"),
        "rebuild": {
            "source": {"file": path, "trust": True},
            "min-elements": 0,
            "redis-share": 1,
            "schedule": "never",
        },
    }
    rebuild = over.pop("rebuild", {})
    settings.update(over)
    settings["rebuild"] = dict(settings["rebuild"], **rebuild)
    return {k: v for k, v in settings.items() if v is not None}


@pytest.fixture
def make_filter():
    return user_filter
