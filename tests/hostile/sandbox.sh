#!/bin/sh
# sandbox.sh OPTIONS...: try hostile runs in namespaces of their own, as root (see sandbox.py).
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
cd "$here"
exec tests/own_machine.sh unshare --pid --mount --ipc --fork --kill-child --mount-proc \
    "${PYTHON:-.venv/bin/python}" -m tests.hostile.sandbox "$@"
