"""The sentences of errors and of the command line, in golden files beside the tests that provoke them.

``ROOM/sentences/test_MODULE.txt`` has, for each test of ``ROOM/test_MODULE.py``, its id and below it, indented, each
sentence that it asserts, in their order. Other assertions of a test are about codes and figures. Where a sentence
changes on purpose, make the files of these tests anew, and read the difference before it is committed:

    pytest tests/study --update-golden && git diff tests/study/sentences

Only the sentences of tests that ran and passed are replaced, also by several processes of pytest-xdist. What differs
from run to run is a name in capitals: TMP, a folder of the test; CACHE, the user's; ROOT, this repository.
A plug-in of pytest.
"""

import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import currently_in_test_context
from pydantic import ValidationError

from weighbridge.model.validation import problems_of

ROOT = Path(__file__).resolve().parent.parent
_INDENT = "    "
_RUNNING: list["RunningTest"] = []
"""The innermost is the test that runs; outer ones are tests of pytest itself."""
_KEY = pytest.StashKey["GoldenSentences"]()


@contextmanager
def raises_sentence(*types: type[BaseException]) -> Iterator[pytest.ExceptionInfo[BaseException]]:
    """Check that an error of these types is raised, and that its text is the next sentence of the test's file."""
    __tracebackhide__ = True
    with pytest.raises(types) as error:
        yield error
    assert_sentence(error.value)


def assert_sentence(said: str | BaseException) -> None:
    """Check that a text, or that of an error, is the next sentence of the running test in its golden file."""
    __tracebackhide__ = True
    if not _RUNNING:
        raise RuntimeError("a sentence is asserted by a test, and none is running")
    if currently_in_test_context():
        raise RuntimeError("each example of Hypothesis has a sentence of its own: use pytest.raises with match")
    _RUNNING[-1].check("\n".join(problems_of(said)) if isinstance(said, ValidationError) else str(said))


def golden_path(module: Path) -> Path:
    """Return the golden file of a module of tests."""
    return module.parent / "sentences" / f"{module.stem}.txt"


def read_golden(path: Path) -> dict[str, list[str]]:
    """Return the sentences by the test's id, as they are written: the lines after the first are indented further."""
    sentences: dict[str, list[str]] = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        if not line.startswith(_INDENT):
            current = sentences.setdefault(line, [])
        elif line.startswith(2 * _INDENT):
            current[-1] += f"\n{line[len(_INDENT) :]}"
        else:
            current.append(line[len(_INDENT) :])
    return sentences


def merge_into_golden(path: Path, new: Mapping[str, list[str]], *, remove: Iterable[str] = ()) -> None:
    """Replace the sentences of some tests and remove those of others, while no other process does the same."""
    if not (new or path.exists()):
        return
    path.parent.mkdir(exist_ok=True)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        merged = {test: said for test, said in {**read_golden(path), **new}.items() if said and test not in {*remove}}
        if not merged:
            path.unlink(missing_ok=True)
            return
        temporary = path.with_suffix(".new")
        temporary.write_text("".join(_entry(test, merged[test]) for test in sorted(merged)))
        temporary.replace(path)
    finally:
        os.close(folder)


def _entry(test: str, sentences: Iterable[str]) -> str:
    lines = [test, *(f"{_INDENT}{line}" for sentence in sentences for line in sentence.splitlines())]
    return "".join(f"{line}\n" for line in lines)


def _written(text: str) -> str:
    """How a sentence is written: in printable letters, without empty lines, and indented after the first line."""
    lines = [line.strip() for line in text.replace("\u00a0", " ").splitlines()]
    written = f"\n{_INDENT}".join(line for line in lines if line) or "(nothing)"
    return "".join(letter if letter.isprintable() or letter == "\n" else ascii(letter)[1:-1] for letter in written)


def test_id(item: pytest.Item) -> str:
    """Return the name of a test within its module, with its class and its parameters."""
    return item.nodeid.partition("::")[2]


class RunningTest:
    """The sentences of one test in its golden file, and those that it has asserted so far."""

    def __init__(self, item: pytest.Item, golden: "GoldenSentences") -> None:
        self.path = golden_path(item.path)
        self.test = test_id(item)
        self.module = item.nodeid.partition("::")[0]
        self.golden = golden
        self.expected = golden.of(self.path).get(self.test, [])
        self.said: list[str] = []

    def check(self, text: str) -> None:
        __tracebackhide__ = True
        said = self.golden.placeholders(_written(text))
        number = len(self.said)
        self.said.append(said)
        if self.golden.update:
            return
        remedy = f"where this is meant: pytest {self.module} --update-golden, and read the difference"
        if number >= len(self.expected):
            pytest.fail(f"{self.path.name} has no sentence {number + 1} of {self.test}:\n{said}\n{remedy}")
        assert said == self.expected[number], f"another sentence than in {self.path.name}; {remedy}"

    def finish(self) -> None:
        """Fail where the golden file has more; keep what was said where it is made anew."""
        __tracebackhide__ = True
        if self.golden.update:
            if self.said != self.expected:
                self.golden.unwritten[self.path] = {self.test: self.said}
        elif len(self.said) < len(self.expected):
            rest = "\n".join(self.expected[len(self.said) :])
            pytest.fail(
                f"{self.path.name} has more sentences of {self.test} than it asserted:\n{rest}\n"
                f"where this is meant: pytest {self.module} --update-golden"
            )


class GoldenSentences:
    """The golden files of one session of pytest."""

    def __init__(self, config: pytest.Config) -> None:
        self.update: bool = config.getoption("--update-golden")
        self.unwritten: dict[Path, dict[str, list[str]]] = {}
        """Of the test that has passed: written once nothing of its fixtures is in the way."""
        self.collected: dict[Path, set[str]] = {}
        """The ids of all tests of a module, also of those that are left out by -k or -m."""
        self.in_part = bool(config.getoption("lf", False)) or any("::" in each for each in config.args)
        """Whether a module may have tests that were not even collected."""
        self.temporary = ""
        self._files: dict[Path, dict[str, list[str]]] = {}

    def of(self, path: Path) -> dict[str, list[str]]:
        """Return the sentences of a golden file, which is read once."""
        if path not in self._files:
            self._files[path] = read_golden(path)
        return self._files[path]

    def placeholders(self, text: str) -> str:
        """Replace what differs from run to run or from machine to machine."""
        if self.temporary:
            folder = re.escape(self.temporary)
            text = re.sub(rf"{folder}/caches/\d+", "CACHE", text)
            text = re.sub(rf"{folder}/[^/\s'\":;,]+", "TMP", text)
        # which call was one too many depends on how deep the stack of pytest is
        text = re.sub(r"(maximum recursion depth exceeded)[^:;)\n]*", r"\1", text)
        return text.replace(str(ROOT), "ROOT")

    def without_test(self, module: Path) -> set[str]:
        """Return the ids in the golden file of a module that are no test's of it."""
        tests = set(self.of(golden_path(module)))
        if module in self.collected and not self.in_part:
            return tests - self.collected[module]
        names = set(re.findall(r"^\s*def (test_\w+)", module.read_text(), re.MULTILINE)) if module.exists() else set()
        return {test for test in tests if test.partition("[")[0].rpartition("::")[2] not in names}

    def write(self) -> None:
        """Write what the last test said."""
        while self.unwritten:
            merge_into_golden(*self.unwritten.popitem())

    def remove_those_without_test(self) -> None:
        """Remove what is in the golden files of the modules of this session and no test's."""
        for module in self.collected:
            if without := self.without_test(module):
                merge_into_golden(golden_path(module), {}, remove=without)


@pytest.fixture(autouse=True, scope="session")
def _temporary_folders(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    request.config.stash[_KEY].temporary = str(tmp_path_factory.getbasetemp())


@pytest.fixture
def golden_sentences(request: pytest.FixtureRequest) -> GoldenSentences:
    """The golden files of this session."""
    return request.config.stash[_KEY]


def pytest_configure(config: pytest.Config) -> None:
    """Begin without any sentence."""
    config.stash[_KEY] = GoldenSentences(config)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Note which tests there are, before any is left out."""
    collected = config.stash[_KEY].collected
    for item in items:
        collected.setdefault(item.path, set()).add(test_id(item))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Read the golden file of a module before any fixture of a test changes how files are read."""
    item.config.stash[_KEY].of(golden_path(item.path))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Count the sentences of a test from its first one, also where it is run again."""
    running = RunningTest(item, item.config.stash[_KEY])
    _RUNNING.append(running)
    try:
        yield
    finally:
        _RUNNING.pop()
    running.finish()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    """Write once the fixtures of a test have ended."""
    try:
        yield
    finally:
        item.config.stash[_KEY].write()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Where the golden files are made anew, remove what is no test's any more."""
    golden = session.config.stash[_KEY]
    if golden.update:
        golden.remove_those_without_test()
