# make demo: set up and measure this machine (at most ten minutes). make test: set up and run the whole test suite.
# make calibrate: put known costs on this machine and read them back.
# make gvisor: build runsc, Docker's runtime of gVisor, for all users (as root; Go 1.21 or later, two minutes).
# make monitoring: Prometheus and its exporters on this machine, until Ctrl-C.
.PHONY: demo test check unit real setup calibrate monitoring gvisor

demo:
	@scripts/setup.sh
	.venv/bin/weighbridge run first-look --yes

test: check unit real

setup:
	@scripts/setup.sh dev

check: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

unit: setup
	.venv/bin/pytest -m "not real" -n 2

# First, two at a time, those that measure nothing; then one at a time those that measure or watch the machine. Both
# parts run, whatever the first one found. Runs killed at more random moments than the few of this suite:
# .venv/bin/pytest tests/real/test_kill_anywhere.py --kills 100
real: setup
	.venv/bin/pytest -m "real and side_by_side" -n 2 --dist loadfile --no-loadscope-reorder -rsR --durations 20; first=$$?; \
	.venv/bin/pytest -m "real and not side_by_side" -rsR --durations 40; exit $$((first | $$?))

# Known costs put on this machine and read back; a few minutes.
calibrate:
	@scripts/setup.sh
	.venv/bin/weighbridge calibrate

# From Debian's packages; says which is missing. monitoring/README.md has the rest.
monitoring:
	@monitoring/run_here.py

# The version that its tests were run with. No part of setup: it takes minutes and is for one runtime only.
gvisor:
	@scripts/setup.sh
	CGO_ENABLED=0 GOBIN=$${GOBIN:-/usr/local/bin} go install gvisor.dev/gvisor/runsc@$$(.venv/bin/python -c \
		'from weighbridge.engines.gvisor import VERSION; print(VERSION)')
