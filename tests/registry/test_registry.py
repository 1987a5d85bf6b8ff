"""The registry is strict: it finds every plug-in or says what is wrong, and hides nothing."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sentences import raises_sentence
from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.model.environment import Environment
from weighbridge.model.host import THIS_MACHINE, HostTraits
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.workload import Workload
from weighbridge.registry import RegistryError, register
from weighbridge.workloads.iperf3 import PLUGIN

PACKAGE = "plugins_of_a_test"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty package of plug-ins that can be imported during one test."""
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    yield folder
    for name in [name for name in sys.modules if name.split(".")[0] in (PACKAGE, "other_package")]:
        del sys.modules[name]


def _workloads() -> dict[str, Workload]:
    return dict(register(registry.discover(PACKAGE), Workload))


def test_a_module_with_a_plug_in_is_found_by_its_kind(package: Path):
    (package / "any_name.py").write_text("from weighbridge.workloads.iperf3 import PLUGIN")
    assert _workloads() == {"iperf3": PLUGIN}


def test_all_plug_ins_of_a_tuple_are_found(package: Path):
    text = "from weighbridge.workloads.{0} import PLUGIN as {0}\n"
    names = ("iperf3", "netperf")
    (package / "several.py").write_text("".join(map(text.format, names)) + f"PLUGINS = ({', '.join(names)})")
    assert [*_workloads()] == ["iperf3", "netperf"]


@pytest.mark.parametrize("name", ["ONE", "BOTH"])
def test_an_entry_point_names_a_plug_in_or_a_tuple_of_them(package: Path, name: str):
    text = "from weighbridge.workloads import iperf3, netperf\n"
    (package.parent / "other_package.py").write_text(
        f"{text}ONE = iperf3.PLUGIN\nBOTH = (iperf3.PLUGIN, netperf.PLUGIN)"
    )
    info = package.parent / "other_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{PACKAGE}]\nany-name = other_package:{name}\n")
    assert [*_workloads()] == {"ONE": ["iperf3"], "BOTH": ["iperf3", "netperf"]}[name]


def test_two_plug_ins_of_one_kind_are_an_error_that_names_both(package: Path):
    for name in ("first", "second"):
        (package / f"{name}.py").write_text("from weighbridge.workloads.iperf3 import PLUGIN")
    with raises_sentence(RegistryError):
        _workloads()


@pytest.mark.parametrize(
    "text",
    ["", "PLUGIN = None", "PLUGINS = ()", "PLUGIN = 'iperf3'", "from weighbridge.workloads.iperf3 import Iperf3"],
)
def test_a_module_without_a_plug_in_is_an_error_that_names_it(package: Path, text: str):
    (package / "empty.py").write_text(text)
    with raises_sentence(RegistryError):
        _workloads()


def test_the_class_of_a_plug_in_is_no_plug_in(package: Path):
    (package / "a_class.py").write_text("from weighbridge.workloads.iperf3 import Iperf3 as PLUGIN")
    with raises_sentence(RegistryError):
        _workloads()


def test_a_plug_in_without_a_member_that_its_kind_declares():
    class Nameless(Mechanism):
        kind, summary, switched, source = "nameless", "it", "on → off", "nobody"

        def off(self, subject: Subject) -> None:
            return None

    with raises_sentence(RegistryError):
        register([("here", Nameless())], Mechanism)


def test_a_workload_is_no_environment():
    with raises_sentence(RegistryError):
        register([("here", PLUGIN)], Environment)


@pytest.mark.parametrize(
    "text", ["import no_such_module_anywhere", "def (", "1 / 0"], ids=["no module", "no Python", "a zero"]
)
def test_what_goes_wrong_in_a_module_is_told_with_its_name(package: Path, text: str):
    (package / "broken.py").write_text(text)
    with raises_sentence(RegistryError):
        _workloads()


def test_a_module_that_begins_with_an_underscore_is_no_plug_in(package: Path):
    (package / "_shared.py").write_text("1 / 0")
    assert _workloads() == {}


def test_a_plug_in_that_is_needed_is_loaded_alone(package: Path):
    (package / "iperf3.py").write_text("from weighbridge.workloads.iperf3 import PLUGIN")
    (package / "other.py").write_text("1 / 0")
    plugins = registry.PlugIns(Workload, PACKAGE)
    assert "iperf3" in plugins and plugins["iperf3"] is PLUGIN and f"{PACKAGE}.other" not in sys.modules
    for whole in (len, list, lambda every: every.get("netperf")):
        with pytest.raises(RegistryError, match="other cannot be loaded"):
            whole(plugins)


@pytest.mark.parametrize(
    "plugins",
    [
        registry.adapters, registry.environments, registry.hosts, registry.storage, registry.userlands,
        registry.workloads,
    ],
)  # fmt: skip
def test_each_plug_in_is_in_a_module_of_its_kind(plugins):
    kinds = {kind: type(plugin).__module__ for kind, plugin in plugins().items()}
    assert [kind for kind, module in kinds.items() if module.rpartition(".")[2] != kind.replace("-", "_")] == []


@pytest.mark.parametrize("kind", ["_shared", "iperf3.x", "..", "", "os", "an-own", "netperf"])
def test_a_kind_without_a_plug_in_is_unknown(package: Path, kind: str):
    (package / "_shared.py").write_text("1 / 0")
    (package / "netperf.py").write_text("from weighbridge.workloads.iperf3 import PLUGIN")
    assert kind not in registry.PlugIns(Workload, PACKAGE)


def test_plug_ins_are_sorted_and_cannot_be_changed():
    workloads = registry.workloads()
    assert list(workloads) == sorted(workloads)
    assert {"iperf3", "redis-benchmark", "sysbench-cpu", "sysbench-memory"} <= set(workloads)
    with pytest.raises(TypeError):
        workloads["iperf3"] = PLUGIN


def test_of_each_kind_of_host_one_environment_is_the_host_itself():
    for kind in registry.hosts().values():
        traits = kind.options.traits
        [one] = [each for each in registry.environments().values() if each.as_host(traits) is not None]
        environment, options = registry.bare_host(traits)
        assert environment is one and isinstance(options, one.options) and registry.has_bare_host(traits)


def test_a_host_that_is_no_environment_s_is_a_fault(monkeypatch: pytest.MonkeyPatch):
    managed = HostTraits(managed=True)
    monkeypatch.setattr(type(registry.environments()["pod"]), "as_host", lambda *_: None)
    assert not registry.has_bare_host(managed)
    with raises_sentence(RegistryError):
        registry.bare_host(managed)
    netns = registry.environments()["netns"]
    monkeypatch.setattr(type(netns), "as_host", lambda *_: netns.options())
    assert registry.bare_host(managed) == (netns, netns.options())


def test_each_environment_is_weighed_in_by_its_kind_or_by_names_of_its_own(monkeypatch: pytest.MonkeyPatch):
    named = registry.weighed_in()
    assert {options["kind"] for options in named.values()} == {*registry.environments()} - {"pod"}
    [cluster] = registry.of_clusters().values()
    traits = cluster.options.traits
    assert {"host", "pod", "service"} <= {*registry.weighed_in(traits)} and registry.bare_host_name(traits) == "host"
    assert registry.bare_host_name(THIS_MACHINE) == "native"
    assert named["netns"] == {"kind": "netns"} and named["none"] == {"kind": "docker", "network": "none"}
    assert {name: registry.environment_named(name) for name in named} == named
    assert registry.environment_named("pod") is None and registry.environment_named("host", traits)["kind"] == "pod"
    podman = registry.environments()["podman"]
    monkeypatch.setattr(type(podman), "weighed_in", lambda _: {"bridge": {}})
    with raises_sentence(RegistryError):
        registry.weighed_in()


def test_without_hosts_in_a_cluster_there_is_one_sentence(monkeypatch):
    monkeypatch.setattr(registry, "of_clusters", dict)
    with raises_sentence(Unavailable):
        registry.required_of_clusters()


def test_every_module_of_the_package_is_a_plug_in_of_its_own_kind():
    import weighbridge.workloads

    folder = Path(weighbridge.workloads.__file__).parent
    paths = [*folder.glob("*.py"), *(path.parent for path in folder.glob("*/__init__.py"))]
    modules = {path.stem for path in paths if not path.stem.startswith("_")}
    assert modules == {kind.replace("-", "_") for kind in registry.workloads()}


@pytest.mark.parametrize("name", ["readiness", "problems", "unmet", "unplaceable", "lacking_on"])
def test_a_plug_in_with_a_member_that_nothing_calls_any_more_is_refused(name: str):
    old = type("Old", (type(registry.environments()["native"]),), {name: lambda *_: None})
    with pytest.raises(RegistryError, match=f"rename {name} to "):
        register([("other_package", old())], Environment)  # type: ignore[type-abstract]
