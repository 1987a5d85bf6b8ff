"""A command line as a study: what it says, and that it is one."""

from typing import Any

import pytest

from sentences import raises_sentence
from weighbridge import registry
from weighbridge.errors import StudyError
from weighbridge.runner.known_noise import decidable
from weighbridge.runner.precision import comparisons_of
from weighbridge.study.loader import check
from weighbridge.study.source import parse
from weighbridge.study.weighed import Earlier, Weighed, study_text

HOST = {"kind": "host", "folder": "/home/me", "env": {"PATH": "/usr/bin", "NOTE": "a: b # no comment"}}


def made(*command: str, **more):
    return check(parse(study_text(Weighed(command, more.pop("userland", HOST), **more)), "weigh"))


def test_a_program_alone_is_weighed_in_docker_within_two_minutes():
    study = made("python3", "fib.py", "--n", "20")
    assert [(arm.name, arm.kind) for arm in study.arms] == [
        ("native", "native"), ("docker", "docker"), ("native-again", "native"),
    ]  # fmt: skip
    [cell] = study.cells
    command = registry.workloads()["command"].command("solo", cell.options, None)  # type: ignore[arg-type]
    assert command.argv == ("python3", "fib.py", "--n", "20")
    assert (study.file.repetitions.target, study.file.repetitions.within) == (0.02, 120)
    assert study.file.userland.model_dump() == HOST


def test_parameters_are_swept_and_limits_hold_everywhere():
    study = made(
        "pack",
        "{size}",
        "{level}",
        parameters={"size": ["64", "1k"], "level": ["9"]},
        resources={"cpus": 1.0},
        blocks=5,
    )
    assert [cell.level for cell in study.cells] == [(("size", "64"),), (("size", "1k"),)]
    assert study.file.resources.cpus == 1.0 and study.file.repetitions.blocks == 5


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("sh", "-c", "pack a | wc"), "weigh-sh-pack-a"), (("sh", "-c", "sort b"), "weigh-sh-sort-b"),
        (("python3", "fib.py", "30"), "weigh-python3-fib.py"), (("sh", "-c"), "weigh-sh"),
    ],
)  # fmt: skip
def test_the_name_of_a_shell_s_program_says_what_it_runs(words: tuple[str, ...], name: str):
    """Every `sh -c` was weigh-sh, and so one program of `history`."""
    assert made(*words).file.study == name


def test_what_nothing_can_be_weighed_in_is_told_with_the_nearest_name():
    with pytest.raises(StudyError, match="gvisor"):
        study_text(Weighed(["true"], HOST, inside=["gvsor"]))


@pytest.mark.parametrize("name", ["lxc", "nspawn", "qemu"])
def test_environments_that_cannot_have_this_machines_files_say_so(name: str):
    with raises_sentence(StudyError):
        made("true", inside=[name])


def test_the_client_of_an_image_s_server_is_of_this_machine():
    image = {"kind": "saved-image", "path": "/tmp/i.tar"}
    study = made("curl", "{address}:{port}", server="shop {port}", userland=image, client_userland=HOST)
    assert study.file.userland.kind == "saved-image"
    assert study.sources["client_userland"].model_dump() == HOST
    weighed = Weighed(("curl", "{address}:{port}"), image, server="shop {port}", client_userland=HOST)
    elsewhere = "hosts: {a: {kind: ssh, destination: b}}\nplacement: {client: a, server: a}\nbaseline:"
    with raises_sentence(StudyError):
        check(parse(study_text(weighed).replace("baseline:", elsewhere), "weigh"))


def test_a_port_of_no_server_is_told():
    with raises_sentence(StudyError):
        made("true", port=8000)


def test_two_programs_are_two_environments_that_differ_in_the_program_alone():
    study = made("./new", "{size}", earlier=Earlier(command=["./old", "{size}"]), parameters={"size": ["1", "2"]})
    before, after, again = study.arms
    assert (study.file.baseline, before.name, after.name, again.aa_of) == ("before", "before", "after", "before")
    assert before.kind == after.kind == "native" and before.options == after.options
    words = {
        (arm.name, cell.label): registry.workloads()["command"].command("solo", study.options(arm, cell), None).argv  # type: ignore[arg-type]
        for arm in (before, after)
        for cell in study.cells
    }
    assert words == {
        ("before", "command (size=1)"): ("./old", "1"),
        ("before", "command (size=2)"): ("./old", "2"),
        ("after", "command (size=1)"): ("./new", "1"),
        ("after", "command (size=2)"): ("./new", "2"),
    }
    assert not study.file.ladder
    assert study.file.question == "How much slower is './new {size}' (after) than './old {size}' (before)?"
    rate = made(
        "./new",
        earlier=Earlier(command=["./old"]),
        metrics={"rate": {"regex": "(.*)", "unit": "1/s", "better": "higher"}},
    )
    assert rate.file.question == "What does './new' (after) cost against './old' (before)?"


def test_two_images_are_two_userlands_of_one_environment():
    images = [{"kind": "saved-image", "path": f"/tmp/{name}.tar"} for name in ("new", "old")]
    words = ("curl", "{address}:{port}")
    earlier = Earlier(images[1], server="/old-shop {port}")
    study = made(*words, server="/shop {port}", userland=images[0], client_userland=HOST, earlier=earlier)
    before, after, _ = study.arms
    assert before.kind == after.kind == "docker" and before.options == after.options
    source = study.arms[0].source("server", study.file)
    assert source.model_dump() == images[1] and after.source("server", study.file).model_dump() == images[0]
    assert before.source("client", study.file).model_dump() == HOST
    assert {*study.sources} == {"userland", "client_userland", "environments.before.userland"}


@pytest.mark.parametrize(
    ("inside", "earlier"),
    [
        (["docker", "native"], Earlier(command=["./old"])),
        (["dcker"], Earlier(command=["./old"])),
        (["native"], None),
    ],
)
def test_two_programs_take_one_environment(inside: list[str], earlier: Earlier | None):
    with raises_sentence(StudyError):
        made("./new", inside=inside, earlier=earlier)


@pytest.mark.parametrize(
    ("command", "more", "name"),
    [
        (["python3", "fib.py"], {}, "weigh-python3-fib.py"),
        (["./my-benchmark", "--fast"], {}, "weigh-my-benchmark"),
        (["/opt/x/" + "y" * 60], {}, "weigh-" + "y" * 34),
        (["{tool}", "a b"], {"parameters": {"tool": ["a", "b"]}}, "weigh-a"),
        (["curl"], {"server": "shop --port {port}"}, "weigh-shop"),
        (["-x"], {}, "weigh"),
    ],
)
def test_runs_of_one_program_have_one_name(command: list[str], more: dict[str, Any], name: str):
    assert made(*command, **more).file.study == name


def test_in_a_cluster_the_baseline_is_the_nodes_own_network():
    node = {"kind": "kubernetes", "images": {"load": "kind"}}
    packages = {"kind": "packages"}
    alone = made("sysbench", "cpu", "run", userland=packages, packages=["sysbench"], hosts=[node], inside=["pod"])
    assert [arm.name for arm in alone.arms] == ["host", "pod", "host-again"] and [*alone.file.hosts] == ["a"]
    assert alone.file.question == (
        "What does the pods' network cost, against a pod with its node's network: sysbench cpu run"
    )
    assert registry.workloads()["command"].packages_for(alone.cells[0].options) == ("sysbench",)
    inside = ["pod", "service", "nodeport"]
    study = made("c", "{port}", server="s {port}", userland=packages, hosts=[node, node], inside=inside)
    assert (study.server_host, study.client_hosts, study.file.inside) == ("b", ("a",), ["server", "client"])
    assert [rung.name for rung in study.file.ladder] == ["host", "pod", "service"]
    assert study.file.question == (
        "What do the pods' network, a Service and a node port cost, against a pod with its node's network, for the "
        "server: s {port}"
    )
    one = made("c", "{port}", server="s {port}", userland=packages, hosts=[node], inside=["pod"])
    assert one.server_host == "a"
    with raises_sentence(StudyError):
        made("true", userland=packages, hosts=[node], inside=["docker"])


def of_commits(**more: Any) -> Any:
    base = Earlier({**HOST, "folder": "/cache/base"})
    return made(
        "./prog", userland={**HOST, "folder": "/cache/head"}, earlier=base, labels=("base", "head"),
        commits=("1a2b3c4d5e", "6f7a8b9c0d"), **more,
    )  # fmt: skip


def folder_of(study: Any, arm: Any) -> str:
    return arm.source("solo", study.file).folder


def test_two_commits_are_the_same_program_in_two_folders():
    study = of_commits()
    assert [(arm.name, arm.kind, folder_of(study, arm)) for arm in study.arms] == [
        ("base", "native", "/cache/base"), ("head", "native", "/cache/head"), ("base-again", "native", "/cache/base"),
    ]  # fmt: skip
    assert study.file.ladder == () and study.file.baseline == "base"
    assert study.file.question == "How much slower is './prog' at head 6f7a8b9c0d than at base 1a2b3c4d5e?"


def test_two_commits_are_measured_in_each_environment_and_compared_there():
    study = of_commits(inside=["docker", "box", "native"], wrappers={"box": ["firejail", "--quiet", "--"]})
    folders = {arm.name: folder_of(study, arm) for arm in study.arms if arm.declared}
    assert folders == {
        f"{name}{place}": f"/cache/{name}" for place in ("", "-docker", "-box") for name in ("base", "head")
    }
    assert not study.file.ladder  # each head is compared with its base, and isolation is not the question
    with raises_sentence(StudyError):
        of_commits(inside=["dokcer"])


def test_several_programs_are_workloads_of_one_study():
    study = of_commits(commands={"sort": ["./prog", "--name={x}"], "find": ["./prog", "b"]}, metrics={})
    assert [cell.workload for cell in study.cells] == ["sort", "find"]
    command = registry.workloads()["command"].command
    argvs = [command("solo", cell.options, None).argv for cell in study.cells]  # type: ignore[arg-type]
    assert argvs == [("./prog", "--name={x}"), ("./prog", "b")]
    assert "slower are sort, find at head" in study.file.question
    plain = made("./prog", commands={"sort": ["./prog"], "find": ["./prog", "b"]})
    assert [cell.workload for cell in plain.cells] == ["sort", "find"]
    assert "docker" in {arm.name for arm in plain.arms}


def test_the_target_of_two_commits_is_about_each_pair_alone():
    study = of_commits(inside=["docker"])
    (cell,) = study.cells
    compared = {each.name: each.contrast.arms for each in comparisons_of(study, cell)}
    assert compared == {"head": ("base", "head"), "head-docker": ("base-docker", "head-docker")}
    assert decidable(study).comparisons == len(compared)
