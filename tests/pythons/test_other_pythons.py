"""Every module can be imported, `doctor` answers and unit tests pass under the other versions of Python.

Each has Weighbridge installed as a package, and the dependencies of constraints.txt. `make test` tries only the
newest version. `make test-long` and hosted CI also try those between it and the one that runs the suite.
"""

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from .interpreters import SUITES, VERSIONS, Interpreter, kept, lacking

pytestmark = [
    pytest.mark.real,
    pytest.mark.side_by_side,
    pytest.mark.promise("Weighbridge works under every Python that pyproject.toml names"),
]
UNIT_TESTS = (
    "tests/store/test_run.py",
    "tests/store/test_flags.py",
    *(f"tests/study/test_{name}.py" for name in ("loader", "frozen", "link", "of_workloads", "indentation")),
    "tests/features/gate/test_gate_analysis.py",
    *(f"tests/analysis/test_{name}.py" for name in ("analyse", "readings")),
    "tests/report/test_finished_runs.py::test_figures_of_a_finished_run_stay",
    "tests/report/test_finished_runs.py::test_a_finished_run_has_a_page",
)
"""Each of the parts that read, check and compute, without what tries many values: whole finished runs among them."""


@pytest.fixture(scope="module")
def building(request: pytest.FixtureRequest) -> Iterator[dict[str, "Future[Path]"]]:
    """Every interpreter that is asked for, being built: most of their time is spent waiting for packages."""
    asked = {item.callspec.params.get("python") for item in request.session.items if hasattr(item, "callspec")}
    ready = [version for version in VERSIONS if version in asked and not lacking(version)]
    with ThreadPoolExecutor() as pool:
        yield {version: pool.submit(kept, version) for version in ready}


@pytest.fixture(
    scope="module",
    params=[pytest.param(each, marks=pytest.mark.long if each in VERSIONS[1:-1] else ()) for each in VERSIONS],
)
def python(
    request: pytest.FixtureRequest, building: dict[str, "Future[Path]"], tmp_path_factory: pytest.TempPathFactory
) -> Interpreter:
    version: str = request.param
    if missing := lacking(version):
        pytest.skip(missing)
    interpreter = Interpreter(building[version].result(), version in SUITES, tmp_path_factory.mktemp("python"))
    assert interpreter.run("--version").stdout.startswith(f"Python {version}.")
    done = interpreter.install()
    assert done.returncode == 0, done
    return interpreter


def test_every_module_is_imported_and_warns_of_nothing(python: Interpreter):
    done = python.run("tests/pythons/import_all.py")
    assert done.returncode == 0, done
    assert int(done.stdout.split()[0]) > 400


def test_doctor_answers(python: Interpreter):
    done = python.run("-m", "weighbridge", "doctor")
    assert (done.returncode, done.stderr) == (0, ""), done
    told = python.run("-m", "weighbridge", "doctor", "--json")
    assert (told.returncode, told.stderr) == (0, ""), told
    assert json.loads(told.stdout)


def test_unit_tests_pass(python: Interpreter):
    done = python.run("-m", "pytest", "-p", "no:cacheprovider", "-m", "not real", *UNIT_TESTS)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
