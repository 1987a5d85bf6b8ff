#!/bin/sh
# sandbox.sh OPTIONS...: try hostile runs in namespaces of their own, as root (see sandbox.py).
set -eu
cd "$(dirname "$0")/../.."
set -- unshare --pid --mount --net --ipc --fork --kill-child --mount-proc \
    "${PYTHON:-.venv/bin/python}" -m tests.hostile.sandbox "$@"
grep -q '^own /run tmpfs ' /proc/self/mounts || set -- tests/own_machine.sh "$@" # else this is in one already
exec "$@"
