"""Who may import whom (docs/project/architecture.md), read from the imports."""

import ast
from collections.abc import Iterator, Set
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import weighbridge

SOURCE = Path(weighbridge.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
PLUGINS = (
    "adapters",
    "environments",
    "workloads",
    "storage",
    "hosts/kinds",
    "userland/sources",
    "features/fleets/on",
    *sorted(
        str(path.relative_to(SOURCE).parent)
        for section in ("environments", "fleets", "hosts", "mechanisms", "storage")
        for path in SOURCE.glob(f"features/*/{section}/__init__.py")
    ),
)
"""The folders whose modules the registry finds."""
PARTS = {path.stem for path in SOURCE.iterdir() if not path.name.startswith("_") and path.suffix in ("", ".py")}

ALL = {"model", "errors"}
"""What nearly every part may use."""
ONLY: dict[str, set[str]] = {
    "errors": set(),
    "model": {"errors"},
    "statistics": set(),
    "build_once": {"errors", "linux", "model"},
    "user_cache": {"errors"},
    "secret_values": ALL,
    "registry": ALL,
    "linux": ALL,
    "launcher": {"build_once", "linux", "secret_values", *ALL},
    "engines": {"launcher", "linux", "secret_values", *ALL},
    "facts": {"engines", "linux", *ALL},
    "hosts": {"launcher", "facts", "engines", "registry", "linux", "user_cache", *ALL},
    "meters": {"linux", *ALL},
    "environments": {"engines", "hosts", "launcher", "linux", "userland", *ALL},
    "storage": {"engines", "linux", *ALL},
    "workloads": {"statistics", *ALL},
    "adapters": ALL,
    "api": {"analysis", "cli", "linux", "report", "statistics", "store", *ALL},
    "userland": {"engines", "registry", "build_once", "linux", "secret_values", "user_cache", *ALL},
    "study": {"registry", "secret_values", *ALL},
    "store": {"linux", "secret_values", *ALL},
    "runner": {"meters", "facts", "store", "study", "userland", "statistics", "engines", "launcher", "build_once",
               "linux", "registry", "secret_values", *ALL},
    "analysis": {"store", "statistics", *ALL},
    "report": {"analysis", "store", "statistics", "user_cache", *ALL},
    "cli": {"runner", "analysis", "report", "study", "store", "registry", "launcher", "secret_values",
            "user_cache", *ALL},
    "features": PARTS - {"features"},
}  # fmt: skip
"""What a part may use beside itself."""
OF_THE_PROGRAM = {"__main__": {"cli"}, "__init__": {"api", "errors"}}
"""What the two modules outside of all parts may use: the program, and the names of the Python API."""


parsed = cache(ast.parse)


@cache
def imported(text: str, package: str = "weighbridge") -> set[str]:
    """The full names of everything that a module imports, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, *([base] if base else [])])
            found.add(base)
            found.update(f"{base}.{alias.name}" for alias in node.names)
    return found


def _package(path: Path) -> str:
    return ".".join(["weighbridge", *path.relative_to(SOURCE).parts[:-1]])


def _part(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def _parts_used(path: Path) -> set[str]:
    names = imported(path.read_text(), _package(path))
    used = {name.split(".")[1] for name in names if name.startswith("weighbridge.")}
    return (used & PARTS) - {_part(path)}


def test_imports_are_read_right():
    text = (
        "import os.path\nfrom weighbridge import registry\ndef f():\n from . import a\n from ..model.site import Site"
    )
    assert imported(text, "weighbridge.study") == {
        "os.path", "weighbridge", "weighbridge.registry", "weighbridge.study", "weighbridge.study.a",
        "weighbridge.model.site", "weighbridge.model.site.Site",
    }  # fmt: skip


def test_a_module_uses_only_what_it_may():
    beyond = {}
    for path in MODULES:
        allowed = OF_THE_PROGRAM.get(_part(path)) or ONLY.get(_part(path), set())
        if more := _parts_used(path) - allowed:
            beyond[str(path.relative_to(SOURCE))] = more
    assert beyond == {}


def test_every_part_says_whom_it_uses():
    assert {*ONLY} == PARTS


@pytest.mark.parametrize("folder", PLUGINS)
def test_plug_ins_use_no_other_plug_in_nor_the_registry(folder: str):
    package, others = f"weighbridge.{folder.replace('/', '.')}", {*PLUGINS} - {folder}
    paths = [path for path in (SOURCE / folder).rglob("*.py") if path != SOURCE / folder / "__init__.py"]
    assert paths
    plugins = {path: path.relative_to(SOURCE / folder).parts[0].removesuffix(".py") for path in paths}
    for path, plugin in plugins.items():
        used = imported(path.read_text(), _package(path))
        assert "registry" not in _parts_used(path), path
        assert not [name for name in used for other in others if name.startswith(f"weighbridge.{other}.")], path
        own = {name.removeprefix(f"{package}.").split(".")[0] for name in used if name.startswith(f"{package}.")}
        shared = {name for name in plugins.values() if name.startswith("_")}
        assert own <= {plugin, *shared}, f"{path} uses another plug-in: what they share begins with _"


def test_no_part_uses_one_that_uses_it():
    uses = {part: set().union(*(_parts_used(path) for path in MODULES if _part(path) == part)) for part in PARTS}
    TopologicalSorter(uses).prepare()  # raises CycleError, which tells one: none is let pass


CIRCLES = {
    frozenset({"cli.approval", "cli.plan"}),
}
"""Modules that import one another, and that are known. None may be added."""


def _module(path: Path) -> str:
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def _modules_used(path: Path, modules: Set[str]) -> set[str]:
    ours = {name for name in imported(path.read_text(), _package(path)) if name.startswith("weighbridge.")}
    names = {name.removeprefix("weighbridge.") for name in ours} & modules
    return {name for name in names if not any(other.startswith(f"{name}.") for other in names)} - {_module(path)}


def test_modules_do_not_import_one_another():
    modules = {_module(path): path for path in MODULES}
    uses = {module: _modules_used(path, modules.keys()) for module, path in modules.items()}
    reached: dict[str, set[str]] = {}
    for module in modules:
        seen: set[str] = set()
        queue = [module]
        while queue:
            seen.update(more := uses[queue.pop()] - seen)
            queue += more
        reached[module] = seen
    circles = {frozenset(one for one in reached[module] if module in reached[one]) for module in modules}
    assert circles - {frozenset()} <= CIRCLES


FEATURES_THAT_USE_FEATURES = {
    ("fleets", "gate"), ("kit", "replication"), ("kubernetes", "fleets"), ("slurm", "fleets"),
}  # fmt: skip
"""docs/project/architecture.md names the pairs."""


def test_a_feature_uses_no_other_but_the_named_ones():
    using = {
        (path.relative_to(SOURCE / "features").parts[0], name.split(".")[2])
        for path in (SOURCE / "features").rglob("*.py")
        for name in imported(path.read_text(), _package(path))
        if name.startswith("weighbridge.features.")
    }
    assert {(one, other) for one, other in using if one != other} == FEATURES_THAT_USE_FEATURES


def test_the_core_imports_no_feature():
    for path in MODULES:
        if _part(path) != "features":
            assert not [name for name in imported(path.read_text(), _package(path)) if "features." in name], path


def test_only_process_starts_processes():
    using = {
        path.name
        for path in MODULES
        if {name.split(".")[0] for name in imported(path.read_text())} & {"subprocess", "pty", "multiprocessing"}
    }
    own_text = {"console.py", "repository.py", "session.py"}  # sent as texts: Xen's console, and an agent's session
    assert using == {"process.py", *own_text}
    for path in (each for each in MODULES if each.name not in own_text):
        for call in ("os.system(", "os.fork(", "os.popen(", "os.posix_spawn", "os.exec", "os.spawn"):
            assert call not in path.read_text(), path


REMOVING_COMMANDS = {
    "engines/memory_layer.py", "engines/podman.py", "environments/apptainer.py", "environments/podman/root.py",
    "features/guests/environments/virtualbox/site.py", "features/guests/hosts/guest/host.py", "linux/filesystems.py",
}  # fmt: skip
"""Modules that start rm(1): on another host, or as another user, where `linux/deletion` does not reach."""


def test_only_deletion_removes_trees():
    texts = {str(path.relative_to(SOURCE)): path.read_text() for path in MODULES if _part(path) != "workloads"}
    assert [path for path, text in texts.items() if "rmtree" in text or "removedirs" in text] == []
    starting = {path for path, text in texts.items() if '"rm", "-rf"' in text or "\nexec rm -rf" in text}
    assert starting == REMOVING_COMMANDS


def _strings(tree: ast.Module) -> Iterator[str]:
    """What a module says: strings but for docstrings, and for what it raises, which is one sentence for the user."""
    quiet: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            quiet.add(node.value)
        elif isinstance(node, ast.Raise):
            quiet.update(ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in quiet:
            yield node.value


WORDS = {"charged to the interrupted task"}
"""Values of facts that have so many words."""


def test_analysis_makes_no_sentences():
    for path in (SOURCE / "analysis").rglob("*.py"):
        if path.name not in ("requirement.py", "compared_run.py"):  # what is wrong with a word of the command line
            said = {text for text in _strings(parsed(path.read_text())) if len(text.split()) > 3}
            assert said <= WORDS, f"{path}: prose is made in report/text"


def test_only_the_cli_catches_every_failure():
    for path in MODULES:
        if _part(path) == "cli" or (_part(path) == "features" and path.name.endswith(("command.py", "commands.py"))):
            continue
        for node in ast.walk(parsed(path.read_text())):
            if isinstance(node, ast.ExceptHandler):
                assert "WeighbridgeError" not in (ast.unparse(node.type) if node.type else ""), path


def test_model_does_no_input_or_output():
    for path in (SOURCE / "model").glob("*.py"):
        roots = {name.split(".")[0] for name in imported(path.read_text())}
        assert not roots & {"os", "socket", "sqlite3", "shutil", "subprocess", "tempfile", "io"}, path
        calls = [ast.unparse(node.func) for node in ast.walk(parsed(path.read_text())) if isinstance(node, ast.Call)]
        assert not [name for name in calls if name.split(".")[-1] in {"open", "read_text", "write_text", "print"}], (
            path
        )


DEFINED_TWICE = {"Group", "Chart", "Command"}
"""Public classes with the same name and different meanings. The list is allowed to shrink only."""


def test_a_public_class_has_a_name_of_its_own():
    defined: dict[str, list[str]] = {}
    for path in MODULES:
        for node in parsed(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined.setdefault(node.name, []).append(_module(path))
    twice = {name: modules for name, modules in defined.items() if len(modules) > 1}
    assert twice.keys() == DEFINED_TWICE, twice


def test_tests_of_the_analysis_import_neither_reports_nor_commands():
    tests = Path(__file__).parent / "analysis"
    beyond = ("weighbridge.report", "weighbridge.cli", "cli.", "report.test_")
    names = {path.name: imported(path.read_text()) for path in tests.glob("*.py")}
    assert {test for test in names if any(name.startswith(beyond) for name in names[test])} <= {"test_gate.py"}
