# Run and measure
#   make demo           install what is missing and run the study first-look: about 7 minutes after the installation (root)
#   make calibrate      add known costs to this machine and measure them; a few minutes (root)
#   make monitoring     start Prometheus and its exporters on this machine, until Ctrl-C
# Develop (CONTRIBUTING.md; docs/project/testing.md)
#   make check          lint, format, types and documentation; needs no root
#   make lint           only lint and format
#   make unit           the unit tests; needs no root and no engine
#   make real-hosted    the real tests that a hosted CI runner can run (root, Docker)
#   make real           every real test but the long ones (root, a quiet machine)
#   make test           check, unit and real
#   make test-long      the long tests too: power cuts, networks between guests, whole machines. Hours
#   make test-machines  only the whole machines (TRY="--machines trixie --users docker")
#   make docs           the documentation as a site, in build/docs/index.html; it opens without a network
# Build
#   make dist           build and check a release in dist/: wheels, source archive, checksums, changelog; uploads nothing
#   make deb            build a Debian package with its Python packages in dist/, for Debian 12 (DEB="--python 3.13": for 13)
#   make gvisor         build gVisor's runsc and its containerd shim for all users (root, Go 1.21 or later, minutes)
#   make youki          build the OCI runtime youki for all users (root, Rust, the headers of libseccomp, minutes)
#   make kubernetes     build Kubernetes for the test clusters (root, Go 1.25 or later, 20 minutes)

# With this variable set, Python would compile all modules again in each of the thousands of commands that the tests
# start. That was half of the time of collecting the tests.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-long test-machines lint check checked texts_and_types unit real real-hosted side_by_side apart unmeasured alone setup \
	calibrate monitoring gvisor youki kubernetes dist deb docs

demo:
	@scripts/setup.sh
	.venv/bin/weighbridge run first-look --yes

# The checks and the unit tests run during the real tests that measure nothing, because these leave CPU time idle. They
# have a lower priority. A failure does not stop the rest.
test: setup
	@echo "Running the checks, the unit tests and the real tests that measure nothing at the same time, for about 18 minutes."
	@echo "Each part prints its output when it has finished."
	@rm -rf $(FAILURES)
	@$(MAKE) --no-print-directory -j2 --keep-going --output-sync=target unmeasured checked unit; ended=$$?; \
	$(MAKE) --no-print-directory alone || ended=1; \
	tail -v -n +1 $(FAILURES)/* 2> /dev/null; exit $$ended

# The system's packages (root installs them) and .venv.
setup:
	@scripts/setup.sh dev

# Only .venv: enough for the checks and the unit tests, without root. scripts/setup.sh writes the same file.
PYTHON ?= python3
VENV = .venv/installed-dev
$(VENV): pyproject.toml constraints.txt
	[ -x .venv/bin/python ] || $(PYTHON) -m venv .venv
	.venv/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@

lint: $(VENV)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .

texts_and_types: lint
	.venv/bin/python scripts/check_english.py
	nice -n 19 .venv/bin/mypy

check: texts_and_types
	nice -n 19 .venv/bin/sphinx-build -b dummy -W -n -q -d build/doctrees docs build/checked

# The checks of `make test`: tests/real/test_documentation.py builds the documentation. The end of what they print is
# among the failures if they fail.
checked:
	@mkdir -p $(FAILURES); $(MAKE) --no-print-directory texts_and_types > build/check.log 2>&1; ended=$$?; \
	cat build/check.log; [ $$ended = 0 ] || tail -n 20 build/check.log > $(FAILURES)/check; exit $$ended

unit: $(VENV)
	nice -n 19 .venv/bin/pytest -m "not real" -n 2 -p no:rerunfailures $(TO_FAILURES)

real: setup
	@$(MAKE) --no-print-directory --keep-going side_by_side apart alone

# Sites, networks and whole runs with Docker, without the tests that assert rates or times.
real-hosted: $(VENV)
	.venv/bin/pytest -m "real and not measures" -rs tests/real/test_sites.py tests/real/test_networks.py \
	tests/real/test_run.py tests/real/test_users_engine.py

# Where the real tests are. To collect all other tests takes 7 to 15 s of CPU time in each of six processes.
REAL = tests/real tests/pythons tests/release tests/hostile tests/cli/test_before_consent.py tests/userland/test_c_programs.py tests/workloads/test_agent_session_programs.py

# What failed, also in the repetition, for the last lines of `make test`.
FAILURES = build/failures
TO_FAILURES = --failures $(FAILURES)/$@

# Failures are recorded in separate cache folders because the unit tests record theirs at the same time.
side_by_side apart: OWN_CACHE = -o cache_dir=.pytest_cache/$@

# Real tests that measure nothing, two at a time. Failed tests run once more, alone.
side_by_side: setup
	.venv/bin/pytest $(REAL) -m "real and side_by_side" -n 2 --dist loadfile --no-loadscope-reorder -rsR --durations 20 $(OWN_CACHE) $(TO_FAILURES) \
	|| .venv/bin/pytest $(REAL) -m "real and side_by_side" --last-failed --last-failed-no-failures none -rsR $(OWN_CACHE) $(TO_FAILURES)

# Real tests that compare the machine before and after, three at a time. Each worker gets what looks like its own
# machine, if tests/own_machine.sh works here. A worker cannot reach the socket of the rerun plug-in, so failed tests
# run once more in a second call, when nothing competes with them for CPU time.
apart: setup
	.venv/bin/pytest $(REAL) -m "real and apart" -p no:rerunfailures -rs --durations 30 $(OWN_CACHE) $(TO_FAILURES) \
	$(if $(shell tests/own_machine.sh true > /dev/null 2>&1 && echo can), \
	--dist loadfile --no-loadscope-reorder --tx "3*popen//python=tests/own_machine.sh .venv/bin/python") \
	|| .venv/bin/pytest $(REAL) -m "real and apart" --last-failed --last-failed-no-failures none -rsR $(OWN_CACHE) $(TO_FAILURES)

# One after the other, whatever `make test` has in parallel.
unmeasured:
	@MAKEFLAGS= $(MAKE) --no-print-directory --keep-going side_by_side apart

# Real tests that measure, one at a time.
alone: setup
	.venv/bin/pytest $(REAL) -m "real and not side_by_side and not apart" -rsR --durations 30 $(TO_FAILURES)

# Needs root, mmdebstrap, e2fsprogs and openssh-client; for arm64 also qemu-user-static and arch-test. Images are kept in
# $MACHINES or in the user's cache. The outcomes go to tests/machines/results.jsonl, and from there to the table in
# docs/reference/machines.md.
test-machines: setup
	.venv/bin/pytest -m machines tests/machines -v --durations 0 $(TRY); ended=$$?; \
	.venv/bin/python -m tests.machines.table; exit $$ended

# The tests that `make test` skips because each takes minutes for a rare path, the other tests of the same promises, and
# more examples of the property tests. Takes hours if guests are emulated. The last lines list the promises.
test-long: setup
	.venv/bin/pytest -m "long or promise or machines or hypothesis" -rs --durations 40

# Includes example reports, made from the runs in docs/runs.
docs: setup
	.venv/bin/sphinx-build -W -n -q -d build/doctrees docs build/docs
	@echo build/docs/index.html

calibrate:
	@scripts/setup.sh
	.venv/bin/weighbridge calibrate

# Uses Debian's packages and names those that are missing. See monitoring/README.md.
monitoring:
	@monitoring/run_here.py

# Builds the version that the tests were run with. It is not part of setup because it takes minutes and serves one
# runtime. Docker needs only runsc; pods need the shim too.
gvisor: GO_INSTALL = CGO_ENABLED=0 GOBIN=$(abspath build/gvisor) go install
gvisor: INTO = $${GOBIN:-/usr/local/bin}
gvisor:
	@scripts/setup.sh
	version=$$(.venv/bin/python -c 'from weighbridge.engines.gvisor import VERSION; print(VERSION)'); \
	$(GO_INSTALL) gvisor.dev/gvisor/runsc@$$version gvisor.dev/gvisor/shim@$$version
	install -m 755 build/gvisor/runsc $(INTO)/runsc
	install -m 755 build/gvisor/shim $(INTO)/containerd-shim-runsc-v1
	rm -r build/gvisor

# Builds the version that the tests were run with, for tests/real/test_runtimes.py and the study runtimes.
youki:
	cargo install youki --locked --version 0.7.0 --no-default-features --features v1,v2,seccomp --root $${INTO:-/usr/local}

# Keeps the programs in the user's cache and installs Debian's etcd, containerd, runc and CNI plug-ins. A second call
# does nothing.
kubernetes:
	@scripts/setup.sh dev kubernetes
	.venv/bin/python scripts/kubernetes/build.py

# Needs a cross compiler for the other processor; DIST="--machines x86_64" builds without it.
dist: setup
	.venv/bin/python scripts/dist.py $(DIST)

deb: setup
	.venv/bin/python scripts/deb.py $(DEB)
