# SPDX-License-Identifier: BSD-2-Clause
"""A bloomgate process in a folder of its own, with its configuration."""

import http.client
import os
import re
import shlex
import signal

from . import resp, wait
from .process import Child

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
PROGRAM = os.environ.get("BLOOMGATE", os.path.join(ROOT, "build/src/bloomgate"))
CTL = os.path.join(os.path.dirname(PROGRAM), "bloomgatectl")
TROUBLE = re.compile(r"Sanitizer|runtime error|Assertion|check failed|panic")
PLAIN = re.compile(r"^[A-Za-z0-9_./]([A-Za-z0-9_./%:-]*[A-Za-z0-9_./%-])?$")
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1:"
    "quarantine_size_mb=8",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": "second_deadlock_stack=1:exitcode=66",
}


def yaml_scalar(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if PLAIN.match(value):
        return value
    quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return '"%s"' % quoted


def yaml_lines(value, indent=0):
    """Block style, as a person would write it."""
    pad = " " * indent
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, (dict, list)) and item:
                yield "%s%s:" % (pad, key)
                yield from yaml_lines(item, indent + 2)
            elif isinstance(item, (dict, list)):
                yield "%s%s: %s" % (pad, key, "{}" if item == {} else "[]")
            else:
                yield "%s%s: %s" % (pad, key, yaml_scalar(item))
    else:
        for item in value:
            if isinstance(item, dict):
                lines = list(yaml_lines(item, indent + 2))
                lines[0] = pad + "- " + lines[0].lstrip()
                yield from lines
            else:
                yield "%s- %s" % (pad, yaml_scalar(item))


def yaml(config):
    return "\n".join(yaml_lines(config)) + "\n"


def merged(base, over):
    out = dict(base)
    for key, value in over.items():
        if isinstance(value, dict) and isinstance(out.get(key), dict):
            out[key] = merged(out[key], value)
        else:
            out[key] = value
    return out


def logfmt(line):
    """The fields of a log line."""
    fields = {}
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    for word in words:
        key, equals, value = word.partition("=")
        if equals:
            fields[key] = value
    return fields


class Bloomgate:
    """Use client(), admin(), metric(); stop() checks how it ends."""

    def __init__(self, folder, upstream, config, tcp=False):
        self.folder = folder
        self.child = None
        self.checked = True
        self.socket = os.path.join(folder, "client.sock")
        self.admin_address = "unix:" + os.path.join(folder, "admin.sock")
        self.log = os.path.join(folder, "bloomgate.log")
        self.file = os.path.join(folder, "bloomgate.yaml")
        os.makedirs(folder, exist_ok=True)
        self.config = merged(
            {
                "listen": ["unix:" + self.socket] + ["127.0.0.1:0"] * tcp,
                "upstream": {"address": upstream.address},
                "stats": {"listen": "127.0.0.1:0"},
                "admin": {"listen": self.admin_address},
            },
            config,
        )
        self.filters = [f["name"] for f in self.config.get("filters", [])]
        self.tcp_address = None
        self.stats_address = None
        self.baseline = None

    @property
    def address(self):
        return "unix:" + self.socket

    @property
    def pid(self):
        return self.child.pid

    def write_config(self):
        with open(self.file, "w") as out:
            out.write(yaml(self.config))

    def start(self):
        self.write_config()
        self.offset = os.path.getsize(self.log) if os.path.exists(self.log) else 0
        self.child = Child([PROGRAM, "-c", self.file], self.log, SANITIZERS)
        self.checked = False
        wait.until(self._listening, 20, "bloomgate listening")
        self.baseline = self.child.descriptors()
        return self

    def _listening(self):
        if not self.child.running():
            self.checked = True
            raise AssertionError(
                "bloomgate ended with %r:\n%s"
                % (self.child.popen.returncode, self.lines_text()[-4000:])
            )
        self._find_addresses()
        if self.stats_address is None:
            return False
        try:
            return self.http("/readyz")[0] in (200, 503)
        except OSError:
            return False

    def _find_addresses(self):
        # In this order: it is logged after the others.
        for fields in self.events("stats_listening"):
            self.stats_address = fields.get("address")
        for fields in self.events("listening"):
            if not fields["address"].startswith("unix:"):
                self.tcp_address = fields["address"]

    def lines_text(self):
        with open(self.log, errors="replace") as log:
            log.seek(self.offset)
            return log.read()

    def events(self, name):
        """Log lines of that event since the last start, as dicts."""
        return [
            logfmt(line)
            for line in self.lines_text().splitlines()
            if "event=%s" % name in line.split()
        ]

    def client(self, tcp=False, **options):
        return resp.Client(self.tcp_address if tcp else self.address, **options)

    def call(self, *args):
        with self.client() as client:
            return client.call(*args)

    def value(self, *args):
        return resp.parse(self.call(*args))

    def admin(self, *args):
        with resp.Client(self.admin_address, seconds=30) as client:
            return client.value(*args)

    def rebuild(self, name="user", *more):
        """Asks for a rebuild; the one before may be ending although it serves."""
        wait.until(lambda: self.admin("REBUILD", name, *more) == "OK", 10,
                   "a rebuild is taken")

    def http(self, path, method="GET"):
        host, port = self.stats_address.rsplit(":", 1)
        connection = http.client.HTTPConnection(
            host.strip("[]"), int(port), timeout=10 * wait.SLOW
        )
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def readiness(self):
        """{filter: state} of /readyz."""
        found = {}
        for line in self.http("/readyz")[1].splitlines():
            words = re.findall(r"[^\s:=]+", line)
            if len(words) >= 2:
                found[words[0]] = words[1]
        return found

    def wait_state(self, state="serving", name=None, seconds=20):
        names = [name] if name else self.filters

        def there():
            assert self.child.running(), self.lines_text()[-4000:]
            states = self.readiness()
            if not all(states.get(n) == state for n in names):
                return False
            # A serving filter says absent once its lease runs.
            return state != "serving" or all(
                self.metric("filter_ready", filter=n) == 1 for n in names
            )

        wait.until(there, seconds, "filters %s %s" % (names, state))
        return self

    def memory_below(self, before, mib, field="VmHWM"):
        """Asserts that memory has grown by less than mib since it was before.
        Sanitizers hold freed memory back and shadow the rest: with them only
        what cannot be explained so is a failure."""
        grown = (self.child.rss_bytes(field) - before) / (1 << 20)
        assert grown < mib * (1 if wait.SLOW <= 1 else 10), "%d MiB" % grown

    def metrics(self):
        """{'name{label="x"}': value} of /metrics."""
        found = {}
        for line in self.http("/metrics")[1].splitlines():
            if line and not line.startswith("#"):
                key, value = line.rsplit(" ", 1)
                found[key] = float(value)
        return found

    def metric(self, name, **labels):
        """The sum of the samples of that family with these labels."""
        total = 0
        for key, value in self.metrics().items():
            family, _, rest = key.partition("{")
            if family == "bloomgate_" + name and all(
                '%s="%s"' % pair in rest for pair in labels.items()
            ):
                total += value
        return total

    def warm(self):
        """Until absent ids are answered without asking Redis: the first
        question about a user's rights is then answered."""
        key = self.config["filters"][0]["keys"][0]
        key = key.replace("{{", "\0").replace("}}", "\1")
        key = re.sub(r"\{[a-z]+\*?\}", "warm", key)
        key = key.replace("\0", "{").replace("\1", "}")
        with self.client() as client:

            def local():
                before = self.metric("commands_total", source="filter")
                client.call("GET", key)
                return self.metric("commands_total", source="filter") > before

            wait.until(local, 10, "absent ids are answered locally")
        return self

    def ready_to_count(self):
        """Takes the descriptors that are open now as the normal ones."""
        self.baseline = self.child.descriptors()

    def _descriptors_back(self):
        return len(self.child.descriptors()) <= len(self.baseline) + self.slack

    # Links that are opened when first needed, or when Redis is there, and kept:
    # control, events, checks, the upstream's COMMAND.
    slack = 4

    def stop(self, status=0):
        """SIGTERM: must end by itself, with nothing leaked or reported."""
        if self.child is None or self.checked:
            return
        self.checked = True
        try:
            if self.child.running():
                wait.until(
                    self._descriptors_back, 5, "descriptors closed: %s"
                    % (self.child.descriptors(),)
                )
        finally:
            if self.child.running():
                self.child.signal(signal.SIGTERM)
            ended = self.child.wait(20)
        text = self.lines_text()
        trouble = TROUBLE.search(text)
        assert not trouble, text[max(0, trouble.start() - 500):][:6000]
        assert ended == status, "exit %r:\n%s" % (ended, text[-4000:])

    def kill(self):
        """SIGKILL: nothing is checked but what it had said."""
        self.checked = True
        if self.child:
            self.child.kill()
            assert not TROUBLE.search(self.lines_text()), self.lines_text()[-6000:]
