#!/bin/sh
# Makes ./configure. Needs autoconf and automake.
set -eu
cd "$(dirname "$0")"
mkdir -p build-aux
exec autoreconf --install --force --warnings=all
