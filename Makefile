# make demo: set up and measure this machine (at most ten minutes). make test: set up and run the whole test suite.
# make test-long: what takes hours (power cuts, networks between guests, whole machines); a line for each promise.
# make test-machines: of that, the whole machines alone (TRY="--machines trixie --users docker").
# make docs: the documentation as a site, in build/docs/index.html; it opens without a network.
# make calibrate: put known costs on this machine and read them back.
# make gvisor: build gVisor's runsc and its shim for containerd, for all users (as root; Go 1.21 or later, minutes).
# make kubernetes: build Kubernetes' own programs for the clusters of the tests (as root; Go 1.25 or later, 20 minutes).
# make dist: build and check a release in dist/: wheels, source archive, checksums, changelog; uploads nothing.
# make deb: a Debian package in dist/, with all that it needs of Python, for Debian 12 (DEB="--python 3.13": for 13).
# make monitoring: Prometheus and its exporters on this machine, until Ctrl-C.

# Where an environment asks Python to keep nothing compiled, each of the thousands of commands that tests start, and each
# worker, would compile all modules anew: half of the time of collecting the tests.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-long test-machines check unit real side_by_side apart alone setup calibrate monitoring gvisor kubernetes dist deb \
	docs

demo:
	@scripts/setup.sh
	.venv/bin/weighbridge run first-look --yes

# The checks and then the unit tests run beside the first real ones, which leave half of the CPU time idle, and give way to
# them. What fails keeps nothing else from being run.
test: setup
	@echo "checks, unit tests and real ones side by side, about ten minutes: the output of each comes when it has ended"
	@$(MAKE) --no-print-directory -j2 --keep-going --output-sync=target side_by_side check unit; first=$$?; \
	$(MAKE) --no-print-directory --keep-going apart alone; exit $$((first | $$?))

setup:
	@scripts/setup.sh dev

check: setup
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/python scripts/check_english.py
	nice -n 19 .venv/bin/mypy
	nice -n 19 .venv/bin/sphinx-build -b dummy -W -n -q -d build/doctrees docs build/checked

unit: setup
	nice -n 19 .venv/bin/pytest -m "not real" -n 2 -p no:rerunfailures

real: setup
	@$(MAKE) --no-print-directory --keep-going side_by_side apart alone

# Two at a time, those that measure nothing. What failed is tried once more, when nothing else is tried beside it. What
# failed is noted in a folder of its own, as the unit tests note theirs meanwhile.
side_by_side: OWN_CACHE = -o cache_dir=.pytest_cache/side_by_side
side_by_side: setup
	.venv/bin/pytest -m "real and side_by_side" -n 2 --dist loadfile --no-loadscope-reorder -rsR --durations 20 $(OWN_CACHE) \
	|| .venv/bin/pytest -m "real and side_by_side" --last-failed --last-failed-no-failures none -rsR $(OWN_CACHE)

# Three at a time, those that watch the machine: each worker has one that looks like its own, where that can be had.
# A worker does not reach the socket by which the plug-in counts that tries tests again: what failed is tried once more,
# by itself, where nothing else takes the time from it.
apart: setup
	.venv/bin/pytest -m "real and apart" -p no:rerunfailures -rs --durations 30 \
	$(if $(shell tests/own_machine.sh true > /dev/null 2>&1 && echo can), \
	--dist loadfile --no-loadscope-reorder --tx "3*popen//python=tests/own_machine.sh .venv/bin/python") \
	|| .venv/bin/pytest -m "real and apart" --last-failed --last-failed-no-failures none -rsR

# One at a time, those that measure.
alone: setup
	.venv/bin/pytest -m "real and not side_by_side and not apart" -rsR --durations 30

# As root, with mmdebstrap, e2fsprogs and openssh-client; for arm64, with qemu-user-static and arch-test too. What is
# built is kept in $MACHINES, or in the user's cache folder; outcomes go to tests/machines/results.jsonl, and from there
# into the table of docs/reference/machines.md.
test-machines: setup
	.venv/bin/pytest -m machines tests/machines -v --durations 0 $(TRY); ended=$$?; \
	.venv/bin/python -m tests.machines.table; exit $$ended

# What `make test` leaves out, each minutes for a rare path, the other tests of the same promises, and many examples of
# what it tries with a few: hours where guests are emulated. The last lines say which promises were kept.
test-long: setup
	.venv/bin/pytest -m "long or promise or machines or hypothesis" -rs --durations 40

# With example reports of the runs that are kept with the project.
docs: setup
	.venv/bin/sphinx-build -W -n -q -d build/doctrees docs build/docs
	@echo build/docs/index.html

# Known costs put on this machine and read back; a few minutes.
calibrate:
	@scripts/setup.sh
	.venv/bin/weighbridge calibrate

# From Debian's packages; says which is missing. monitoring/README.md has the rest.
monitoring:
	@monitoring/run_here.py

# The version that its tests were run with. No part of setup: it takes minutes and is for one runtime only. Docker needs
# runsc alone, pods the shim as well.
gvisor: GO_INSTALL = CGO_ENABLED=0 GOBIN=$(abspath build/gvisor) go install
gvisor: INTO = $${GOBIN:-/usr/local/bin}
gvisor:
	@scripts/setup.sh
	version=$$(.venv/bin/python -c 'from weighbridge.engines.gvisor import VERSION; print(VERSION)'); \
	$(GO_INSTALL) gvisor.dev/gvisor/runsc@$$version gvisor.dev/gvisor/shim@$$version
	install -m 755 build/gvisor/runsc $(INTO)/runsc
	install -m 755 build/gvisor/shim $(INTO)/containerd-shim-runsc-v1
	rm -r build/gvisor

# Kept in the user's cache; with Debian's etcd, containerd, runc and CNI plug-ins. A second call does nothing.
kubernetes:
	@scripts/setup.sh dev kubernetes
	.venv/bin/python scripts/kubernetes/build.py

# With cross compilers for the processors that this machine's is not; DIST="--machines x86_64" without.
dist: setup
	.venv/bin/python scripts/dist.py $(DIST)

deb: setup
	.venv/bin/python scripts/deb.py $(DEB)
