#!/bin/sh
# Repeats the run in this folder with Weighbridge, and compares the new run with the original one.
# Options go to weighbridge run: ./repeat.sh --rounds 20
set -eu
CDPATH="" cd -- "$(dirname -- "$0")"
command -v weighbridge >/dev/null || {
    echo "weighbridge is not installed: README.md says which version the original run used" >&2
    exit 1
}
if [ ! -e original/run.sqlite ]; then
    mkdir -p original
    gzip -dc original.sqlite.gz >original/run.sqlite.new
    mv original/run.sqlite.new original/run.sqlite
fi
if [ -e repeated/run.sqlite ]; then # an interrupted run is continued
    weighbridge run --out repeated "$@"
else
    weighbridge run study.yaml --out repeated "$@"
fi
weighbridge compare original repeated --html comparison.html
