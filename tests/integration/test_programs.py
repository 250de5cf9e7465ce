# SPDX-License-Identifier: BSD-2-Clause
"""
The programs around the proxy: -t, -T, -V, bloomgatectl, the admin socket, the
stats port (INTERFACE). FAULTS: A12, J3-J5.
"""

import json
import os
import shutil
import socket
import subprocess

import pytest
from bg import daemon, resp, wait

VECTORS = os.path.join(daemon.ROOT, "tests/vectors/positions.tsv")


def run(*argv, **options):
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=60 * wait.SLOW,
        stdin=subprocess.DEVNULL, **options
    )


def ctl(gate, *words):
    return run(daemon.CTL, "-s", gate.admin_address[5:], *words)


@pytest.fixture
def gate(redis, bloomgate, make_filter, ids_file):
    return bloomgate(redis, filters=[
        make_filter(ids_file("%d" % i for i in range(1000)))
    ])


def rows_of_vectors():
    """(scheme, element, bits or shards, hashes, positions or shard)"""
    with open(VECTORS) as lines:
        for line in lines:
            if not line.startswith("#"):
                scheme, text, bits, hashes, want = line.rstrip("\n").split("\t")
                element = b"" if text == "-" else bytes.fromhex(text)
                yield scheme, element, bits, hashes, want


def test_positions_agree_with_every_vector(folder):
    """The original libraries' positions, row by row, as a command prints them
    (arguments cannot hold NUL: those rows are the unit test's)."""
    key = os.path.join(folder, "key")
    with open(key, "wb") as out:
        out.write(bytes(range(32)))
    groups = {}
    for scheme, element, bits, hashes, want in rows_of_vectors():
        if b"\0" not in element:
            groups.setdefault((scheme, bits, hashes), []).append((element, want))
    for (scheme, bits, hashes), items in groups.items():
        words = ["positions"]
        if scheme.endswith("shard"):
            words += ["--shards", bits, "--bits", "64", "--hashes", "1"]
        else:
            words += ["--bits", bits, "--hashes", hashes]
        if scheme.startswith("keyed"):
            words += ["--scheme", "keyed", "--key-file", key]
        else:
            words += ["--scheme", "guava" if scheme == "shard" else scheme]
        answer = subprocess.run(
            [daemon.CTL] + words + ["--"] + [element for element, _ in items],
            capture_output=True, timeout=60 * wait.SLOW,
        )
        assert answer.returncode == 0, answer.stderr
        got = answer.stdout.decode().splitlines()
        if scheme.endswith("shard"):
            got = [line.split(":")[0] for line in got]
        assert got == [want for _, want in items], (scheme, bits, hashes)
    assert len(groups) > 10 and sum(map(len, groups.values())) > 500


def test_config_check_and_dump(gate, folder):
    assert run(daemon.PROGRAM, "-t", "-c", gate.file).returncode == 0
    assert run(daemon.CTL, "config-check", gate.file).returncode == 0
    dump = run(daemon.PROGRAM, "-T", "-c", gate.file)
    assert dump.returncode == 0, dump.stderr
    path = os.path.join(folder, "dumped.yaml")
    with open(path, "w") as out:
        out.write(dump.stdout)
    assert run(daemon.PROGRAM, "-t", "-c", path).returncode == 0
    assert run(daemon.PROGRAM, "-T", "-c", path).stdout == dump.stdout


def test_config_errors_name_line_and_column(folder):
    path = os.path.join(folder, "bad.yaml")
    with open(path, "w") as out:
        out.write("listen: 127.0.0.1:0\nworkers: many\nnonsense: 1\nworkers: 2\n")
    for argv in ([daemon.PROGRAM, "-t", "-c", path],
                 [daemon.CTL, "config-check", path]):
        answer = run(*argv)
        assert answer.returncode == 1
        lines = answer.stderr.splitlines()
        for start in (":2:10: ", ":3:1: ", ":4:1: "):
            assert any(line.startswith(path + start) for line in lines), lines
    answer = run(daemon.PROGRAM, "-c", path)
    assert answer.returncode == 1 and path + ":2:10: " in answer.stderr
    assert run(daemon.PROGRAM, "-t", "-c", path + ".none").returncode == 1
    assert run(daemon.PROGRAM, "--nonsense").returncode == 2
    assert run(daemon.PROGRAM, "-V").stdout.startswith("bloomgate 0.")
    assert run(daemon.PROGRAM, "-h").returncode == 0


def test_status(gate):
    answer = ctl(gate, "--json", "status")
    assert answer.returncode == 0, answer.stderr
    status = json.loads(answer.stdout)
    assert json.loads(gate.http("/status.json")[1]).keys() == status.keys()
    plain = ctl(gate, "status")
    assert plain.returncode == 0 and "user" in plain.stdout
    assert "\x1b" not in plain.stdout
    assert ctl(gate, "status", "nobody").returncode == 1


def test_check_and_add(gate):
    answer = ctl(gate, "check", "user", "1", "nobody")
    assert answer.returncode == 0, answer.stderr
    lines = answer.stdout.splitlines()
    assert len(lines) == 2
    assert "maybe" in lines[0] and "absent" in lines[1]
    assert ctl(gate, "add", "user", "nobody", "else").returncode == 0
    assert "maybe" in ctl(gate, "check", "user", "nobody").stdout
    assert gate.value("BF.EXISTS", "user", "else") == 1
    assert ctl(gate, "check", "none", "1").returncode == 1
    assert ctl(gate, "check", "user").returncode == 2
    assert ctl(gate, "nonsense").returncode == 2


def test_rebuild_and_abort(gate, redis):
    before = redis.value("HGET", "bloom:{user}:meta", "active")
    answer = ctl(gate, "rebuild", "user", "--wait")
    assert answer.returncode == 0, answer.stderr
    after = redis.value("HGET", "bloom:{user}:meta", "active")
    assert after and after != before
    gate.wait_state("serving")
    assert ctl(gate, "abort", "user").returncode == 1
    assert ctl(gate, "rebuild", "nobody").returncode == 1


def test_unreachable(folder):
    answer = run(daemon.CTL, "-s", folder + "/none.sock", "status")
    assert answer.returncode == 3 and answer.stderr


def test_plan():
    answer = run(daemon.CTL, "plan", "--capacity", "1000000", "--error-rate", "0.01")
    assert answer.returncode == 0
    assert "9585058" in answer.stdout.replace(",", "")
    assert run(daemon.CTL, "plan", "--capacity", "0",
               "--error-rate", "0.01").returncode in (1, 2)


def test_admin_socket(gate):
    assert os.stat(gate.admin_address[5:]).st_mode & 0o777 == 0o660
    # FAULTS A12: arguments that are missing.
    for words in (["REBUILD"], ["ABORT"], ["ROLLBACK"], ["MODE"], ["CHECK"], ["ADD"],
                  ["LOAD"], ["SEAL"], ["DROP"], [""], ["CHECK", "user"],
                  ["ADD", "user"], ["LOAD", "user"], ["MODE", "user"],
                  ["NOPE"], ["STATUS", "nobody"],
                  ["REBUILD", "nobody"], ["MODE", "user", "sideways"]):
        answer = gate.admin(*words)
        assert isinstance(answer, resp.Error) and answer.startswith("ERR"), words
    assert gate.admin("CHECK", "user", "1", "nobody") in ([1, 0], ["maybe", "absent"])
    assert "user" in str(gate.admin("STATUS"))
    assert gate.admin("HELP")
    assert b"filters" in gate.admin("CONFIG")
    assert isinstance(gate.admin("CLIENTS"), bytes)
    with resp.Client(gate.admin_address) as client:
        client.send(resp.encode("HELP")[:9])
        with resp.Client(gate.admin_address) as other:
            assert other.call("HELP")
        client.send(b"*x\r\n" * 10)


def test_mode(gate):
    assert gate.admin("MODE", "user", "observe") == "OK"
    wait.until(lambda: gate.call("GET", "user:none") == resp.NIL2, 5, "observe")
    assert gate.readiness()["user"] == "observe"
    assert gate.admin("MODE", "user", "enforce") == "OK"
    wait.until(
        lambda: gate.call("GET", "user:none") == resp.bulk("__NULL__"), 10, "enforce"
    )


def test_metrics_are_valid(gate):
    with gate.client() as client:
        client.call("GET", "user:none")
        client.call("GET", "user:1")
        client.call("SET", "user:2", "x")
    status, text = gate.http("/metrics")
    assert status == 200
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing: apt-get install prometheus"
    answer = subprocess.run([promtool, "check", "metrics"], input=text, text=True,
                            capture_output=True, timeout=30)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert gate.metric("filter_lookups_total", filter="user", result="absent") == 1
    assert gate.metric("filter_lookups_total", filter="user", result="maybe") == 1
    assert gate.metric("filter_adds_total", filter="user", source="learn") == 1
    assert gate.metric("filter_elements", filter="user") == 1000
    assert gate.metric("commands_total", command="get") == 2


def test_http(gate):
    assert gate.http("/healthz")[0] == 200
    assert gate.http("/readyz")[0] == 200
    assert gate.http("/nowhere")[0] == 404
    for method in ("POST", "PUT", "DELETE"):
        assert gate.http("/metrics", method)[0] == 405
    status, body = gate.http("/metrics", "HEAD")
    assert status == 200 and body == ""
    # A client that sends half a request holds nothing up.
    host, port = gate.stats_address.rsplit(":", 1)
    with socket.create_connection((host, int(port))) as slow:
        slow.sendall(b"GET /metr")
        assert gate.http("/healthz")[0] == 200


def test_log_is_logfmt(gate):
    gate.call("GET", "user:none")
    for line in gate.lines_text().splitlines():
        fields = daemon.logfmt(line)
        assert "event" in fields and "level" in fields, line


def test_a_second_bloomgate_on_the_same_address_says_so(gate, folder):
    other = os.path.join(folder, "other.yaml")
    config = dict(gate.config, listen=gate.stats_address)
    with open(other, "w") as out:
        out.write(daemon.yaml(config))
    answer = run(daemon.PROGRAM, "-c", other)
    assert answer.returncode == 1
    assert gate.stats_address.rsplit(":", 1)[1] in answer.stderr
    assert gate.value("PING") == "PONG"
