# SPDX-License-Identifier: BSD-2-Clause
"""
bloomgatectl positions against every row of the vectors that the original
libraries made, through the program itself: all schemes, keyed and the shard
rows too, elements with NUL bytes included.
"""

import os
import subprocess

import pytest
from bg.daemon import CTL

VECTORS = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../vectors/positions.tsv"
)


def rows():
    with open(VECTORS) as lines:
        for line in lines:
            if not line.startswith("#"):
                scheme, element, bits, hashes, wanted = line.rstrip("\n").split("\t")
                yield scheme, "" if element == "-" else element, bits, hashes, wanted


def run(*args):
    return subprocess.run([CTL, "positions", *args], capture_output=True, text=True,
                          timeout=60)


@pytest.fixture(scope="module")
def key_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("key") / "key"
    path.write_bytes(bytes(range(32)))
    path.chmod(0o600)
    return str(path)


def options_of(scheme, bits, hashes, key_file):
    """How a row's geometry is asked for; shard rows have shards, not bits."""
    if scheme == "shard":
        return ["--scheme", "guava", "--bits", "64", "--hashes", "1", "--shards", bits]
    if scheme == "keyed-shard":
        return ["--scheme", "keyed", "--bits", "64", "--hashes", "1", "--shards",
                bits, "--key-file", key_file]
    options = ["--scheme", scheme, "--bits", bits, "--hashes", hashes]
    if scheme == "keyed":
        options += ["--key-file", key_file]
    return options


def test_every_vector(key_file):
    groups = {}
    for scheme, element, bits, hashes, wanted in rows():
        groups.setdefault((scheme, bits, hashes), []).append((element, wanted))
    assert sum(map(len, groups.values())) > 800
    for (scheme, bits, hashes), items in groups.items():
        answer = run(*options_of(scheme, bits, hashes, key_file), "--hex", "--",
                     *[element for element, _ in items])
        assert answer.returncode == 0, answer.stderr
        found = answer.stdout.splitlines()
        assert len(found) == len(items)
        for line, (element, wanted) in zip(found, items):
            if scheme.endswith("shard"):
                line = line.split(":")[0]
            assert line == wanted, (scheme, bits, hashes, element)


def test_text_and_hex_agree():
    options = ["--scheme", "guava", "--bits", "95872", "--hashes", "7"]
    text = run(*options, "--", "foo", "-x", "").stdout
    assert text == run(*options, "--hex", "--", "666f6f", "2D78", "").stdout
    # WIRE: the vector of Guava itself.
    assert text.splitlines()[0] == "64481,17768,66927,20214,69373,22660,71819"


@pytest.mark.parametrize("args", [
    [],
    ["--scheme", "guava", "--bits", "64", "--hashes", "1"],
    ["--bits", "64", "--hashes", "1", "x"],
    ["--scheme", "guava", "--hashes", "1", "x"],
    ["--scheme", "guava", "--bits", "0", "--hashes", "1", "x"],
    ["--scheme", "guava", "--bits", "064", "--hashes", "1", "x"],
    ["--scheme", "guava", "--bits", "64", "--hashes", "33", "x"],
    ["--scheme", "guava", "--bits", "64", "--hashes", "1", "--shards", "0", "x"],
    ["--scheme", "guava", "--bits", "-64", "--hashes", "1", "x"],
    ["--scheme", "nope", "--bits", "64", "--hashes", "1", "x"],
    ["--scheme", "keyed", "--bits", "64", "--hashes", "1", "x"],
    ["--scheme", "guava", "--bits", "64", "--hashes", "1", "--key-file", "/x", "x"],
])
def test_usage(args):
    answer = run(*args)
    assert answer.returncode == 2
    assert answer.stderr and not answer.stdout


def test_elements_without_positions(tmp_path):
    latin = subprocess.run(
        [CTL, "positions", "--scheme", "guava-hashcode", "--bits", "64", "--hashes",
         "1", b"caf\xe9"], capture_output=True, timeout=60)
    assert latin.returncode == 1 and b"UTF-8" in latin.stderr
    options = ["--scheme", "guava", "--bits", "64", "--hashes", "1"]
    assert run(*options, "x" * 4096).returncode == 0
    assert run(*options, "x" * 4097).returncode == 1
    assert run(*options, "--hex", "abc").returncode == 1
    assert run(*options, "--hex", "zz").returncode == 1
    short = tmp_path / "short"
    short.write_bytes(b"x" * 31)
    answer = run("--scheme", "keyed", "--bits", "64", "--hashes", "1", "--key-file",
                 str(short), "x")
    assert answer.returncode == 1 and answer.stderr
