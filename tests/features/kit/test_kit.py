"""What a kit holds, for the bundled studies and for studies whose text is out to break it."""

import io
import json
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from sentences import assert_sentence, raises_sentence
from weighbridge.errors import StudyError
from weighbridge.features.kit.compose import compose_file, settings_in
from weighbridge.features.kit.contents import KitCell, KitEnvironment, contents, with_options
from weighbridge.features.kit.image import image_files
from weighbridge.features.kit.kit import KitFile, kit
from weighbridge.features.kit.scripts import _script
from weighbridge.features.kit.text import markdown, one_line
from weighbridge.features.replication.published import parameters_of
from weighbridge.model.by_hand import ByHand, Recipe, Setting
from weighbridge.model.command import Command
from weighbridge.model.study import Resources, Study
from weighbridge.model.workload import Endpoint
from weighbridge.study.loader import check, load
from weighbridge.study.profiles import load as load_profile
from weighbridge.study.source import bundled, parse
from weighbridge.workloads.iperf3 import PLUGIN as IPERF3

STUDY = """\
study: mine
question: "Does it run `this` $(here)?"
inside: {inside}
resources: {{memory: 256MiB, cpus: 0.5, cpu_period: 10ms, pin: {{server: "0", client: "1"}}}}
baseline: native
environments:
  native:    {{kind: native}}
  bridge:    {{kind: docker, network: bridge}}
  published: {{kind: docker, network: bridge, publish: true}}
  idle:      {{kind: native, engine: idle}}
  space:     {{kind: netns}}
workloads:
  tcp: {{kind: iperf3, duration: [1s, 2s]}}
  rr:  {{kind: netperf, test: TCP_RR, duration: 1s}}
  cpu: {{kind: sysbench-cpu, duration: 1s}}
repetitions: {{blocks: 7}}
"""


def mine(inside: str = "[server]", **changed: str) -> Study:
    text = STUDY.format(inside=inside)
    for old, new in changed.items():
        text = text.replace(old, new)
    return check(parse(text, "mine.yaml"))


def files_of(study: Study) -> Mapping[str, KitFile]:
    return kit(study, parameters_of(study.file.study))


def text_of(files: Mapping[str, KitFile], path: str) -> str:
    return files[path].data.decode()


def compose_of(files: Mapping[str, KitFile], environment: str) -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load(text_of(files, f"environments/{environment}/compose.yaml"))
    return loaded


def last_line(script: str) -> list[str]:
    return shlex.split(script.splitlines()[-1])


TCP = "tcp: {kind: iperf3, duration: [1s, 2s]}"
BRIDGE = "bridge:    {kind: docker, network: bridge}"
OWN = "{kind: docker, network: bridge, resources: {cpus: 2}, shm_size: 64MiB, sysctls: {net.core.somaxconn: 9}}"
STUDIES: dict[str, tuple[Callable[[], Study], str]] = {
    "mine": (mine, r"\.env|environments/(bridge|native|published)/(compose.yaml|run.sh|tcp-duration-1s/.*)"),
    "client inside": (lambda: mine("[server, client]"), r"environments/bridge/(compose.yaml|tcp-duration-1s/.*sh)"),
    "one port": (
        lambda: mine(
            **{"cpu:": "shop: {kind: command, server: s, client: 'c {address}:{port}', port: 8000}\n  cpu:"}
        ),
        r"environments/(published|bridge)/(compose.yaml|shop/.*sh)",
    ),
    "json alone": (
        lambda: mine(**{
            "  rr:  {kind: netperf, test: TCP_RR, duration: 1s}\n": "",
            "cpu: {kind: sysbench-cpu": "t: {kind: iperf3",
        }),
        "(?!)",
    ),
    "boot": (lambda: mine(**{"rr:  {kind: netperf, test: TCP_RR, duration: 1s}": "up:  {kind: boot}"}), ".*/up/.*"),
    "podman": (lambda: mine(**{"space:     {kind: netns}": "space: {kind: podman}"}), "(?!)"),
    "lxc": (lambda: mine(**{"space:     {kind: netns}": "space: {kind: lxc}"}), "(?!)"),
    "files of one role": (
        lambda: mine(**{"cpu: {kind: sysbench-cpu": "cpu: {kind: sysbench-fileio, threads: 1"}),
        "environments/bridge/cpu.*sh",
    ),
    "vegeta": (lambda: mine(**{"cpu: {kind: sysbench-cpu": "cpu: {kind: nginx-vegeta, rate: 100"}), "Dockerfile"),
    "own image": (
        lambda: mine(**{"baseline: native": "baseline: native\nuserland: {kind: image, image: 'own:1'}"}),
        "Dockerfile",
    ),
    "own folder": (
        lambda: mine(**{"baseline: native": "baseline: native\nuserland: {kind: directory, path: /}"}), "Dockerfile"
    ),
    "check": (
        lambda: mine(**{TCP: "tcp: {kind: command, run: [./load], check: [grep, -q, ok]}"}),
        "environments/(native|bridge)/.*/(check|solo).sh",
    ),
    "cleanup": (
        lambda: mine(**{TCP: "tcp: {kind: command, run: [./load], setup: [mk, x], cleanup: [rm, x]}"}),
        "environments/(native|bridge)/.*/finish.sh",
    ),
    "limits": (lambda: mine(**{BRIDGE: f"bridge:    {OWN}"}), "environments/(bridge|published)/compose.yaml"),
    "docker-networks": (lambda: load("docker-networks"), r"\.env|Dockerfile"),
    "published options": (
        lambda: load_profile("docker-vs-virtualbox", "published"), "environments/docker-host/tcp/(client|server).sh"
    ),
    "published pauses": (
        lambda: load_profile("native-vs-container-apps", "published"), r"\.env|environments/native/run.sh"
    ),
    "data": (
        lambda: load("native-vs-container-apps"),
        "environments/docker-bridge/(compose.yaml|mysql-threads-2/(prepare|restore|server).sh)",
    ),
    "first-look": (lambda: load("first-look"), r"\.env"),
}  # fmt: skip
"""Each study, and which files of its kit are in the golden file."""


@pytest.fixture(scope="module")
def usual() -> set[str]:
    return {*text_of(files_of(mine()), "README.md").splitlines()}


@pytest.mark.parametrize("name", STUDIES)
def test_the_files_of_a_kit(usual: set[str], name: str):
    make, shown = STUDIES[name]
    files = files_of(make())
    for path in sorted(files):
        if re.fullmatch(shown, path):
            text = text_of(files, path)
            said = json.dumps(YAML(typ="safe").load(text)) if path.endswith(".yaml") else text
            assert_sentence(f"{path}:\n{said}")
    readme = text_of(files, "README.md").splitlines()
    further = [line for line in readme if name == "mine" or not (line in usual or line.startswith("| "))]
    assert_sentence("\n".join(["README.md:", *further]))
    parts = {(path.split("/")[0], path.rpartition("/")[2]) for path in files}
    assert_sentence("all files: " + ", ".join(sorted("/".join(dict.fromkeys(each)) for each in parts)))


def test_command_lines_are_those_of_the_workloads_with_the_addresses_of_the_services():
    study = mine("[server, client]")
    files = files_of(study)
    services = compose_of(files, "bridge")["services"]
    address = services["server"]["networks"]["sites"]["ipv4_address"]
    options = study.cells[0].options
    at = Endpoint(address, address, 5201, services["client"]["networks"]["sites"]["ipv4_address"], 1472)
    for role in ("server", "client"):
        said = last_line(text_of(files, f"environments/bridge/tcp-duration-1s/{role}.sh"))
        argv = list(IPERF3.command(role, options, at).argv)
        assert said[: len(said) - 1][-len(argv) :] == argv
        assert said[-1] == "</dev/null"


def test_options_that_the_source_states_replace_none_that_a_program_has():
    assert with_options(("a", "-x", "1"), ("-x", "2", "-y", "3")) == ("a", "-x", "1", "-y", "3")


def test_published_parameters_are_a_table():
    files = files_of(load_profile("native-vs-container-apps", "published"))
    assert "nginx.pause_between_levels,120,s" in text_of(files, "parameters.csv")
    assert parameters_of("docker-vs-virtualbox")[0].parameter == "tool" and parameters_of("mine") == ()


def test_every_file_that_a_script_copies_is_in_the_kit():
    files = files_of(load("native-vs-container-apps"))
    folder = "environments/docker-bridge/mysql-threads-2"
    assert files[f"{folder}/prepare.sh"] == files["environments/docker-bridge/mysql-threads-10/prepare.sh"]
    copied = re.findall(r'cp "\$kit"/(\S+) (\S+)', text_of(files, f"{folder}/server.sh"))
    assert copied and all(path in files for path, _ in copied)


def test_a_study_without_containers_has_no_kit():
    with raises_sentence(StudyError):
        kit(load("calibrate-cpu"))


@pytest.mark.parametrize("name", ["docker-networks", "first-look", "native-vs-container-apps"])
def test_the_same_study_gives_the_same_bytes(name: str):
    assert dict(files_of(load(name))) == dict(files_of(load(name)))


def test_scripts_are_executable():
    assert {path.endswith(".sh") is file.executable for path, file in files_of(load("first-look")).items()} == {True}


def test_no_template_names_a_host():
    for name in bundled():
        try:
            files = kit(load(name))
        except StudyError:
            continue
        for path in {"Dockerfile", "rounds.sh", "run.sh", "summary.sh", "listening.sh"} & files.keys():
            assert not re.search(r"https?://|\.(org|com|io|net)\b", text_of(files, path).replace("com.docker", "")), (
                path
            )


WORDS = (
    "'; touch /tmp/x; '", "$(touch /tmp/x)", "${HOME}", "a\nRUN touch /tmp/x", 'x"\n- y: "z', "`id`", "{{ 7 * 7 }}",
    "#", "\\", "-n",
)  # fmt: skip
HOSTILE = st.text(min_size=1, max_size=40) | st.sampled_from(WORDS)


@given(HOSTILE, HOSTILE)
def test_a_script_has_the_words_that_it_was_given(first: str, second: str):
    first, second = (text.replace("\0", "").encode(errors="replace").decode() for text in (first, second))
    command = Command(("printf", "%s", "-", first, second), env={"GIVEN": second})
    script = _script(f"{first}\n{second}", command, {}, "", ends=False).decode()
    assert last_line_words(script) == ["printf", "%s", "-", first, second]
    assert script.splitlines()[2].startswith("# ")


def last_line_words(script: str) -> list[str]:
    """The words of the program that the script becomes."""
    words = shlex.split(script[script.rindex("\nexec ") + 1 :])
    return words[1:-1]


@given(HOSTILE, HOSTILE)
def test_a_compose_file_says_what_it_was_given(name: str, value: str):
    value = value.encode(errors="replace").decode()
    study = mine()
    arm = study.arms[0].model_copy(update={"name": name})
    cell = KitCell(
        "cell",
        study.cells[0],
        IPERF3,
        study.cells[0].options,
        {"server": Endpoint("", "", 1), "client": Endpoint("", "", 1)},
    )
    by_hand = ByHand(services={"server": {"hostname": value}}, networks={"n": {"driver": Setting("A", "b", "")}})
    made = KitEnvironment("one", arm, by_hand, frozenset({"server"}), (cell,), "server")
    text = compose_file(made, Resources(), "image")
    loaded = YAML(typ="safe").load(io.StringIO(text))
    assert [*loaded] == ["services", "networks"]
    printed = [each for each in value if each.isprintable() or each in "\n\t"]
    if len(printed) == len(value):
        assert loaded["services"]["server"]["hostname"] == value.replace("$", "$$")
    assert loaded["networks"]["n"]["driver"] == "${A:-b}"
    assert [*settings_in(by_hand.networks)] == [Setting("A", "b", "")]


@given(HOSTILE)
def test_a_dockerfile_takes_names_only(name: str):
    for recipe in (Recipe(base=name), Recipe(base="debian:bookworm", components=("main",), packages=(name,))):
        try:
            dockerfile = image_files(recipe)["Dockerfile"].decode()
        except StudyError:
            continue
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9+_.:/@-]*", name)
        assert dockerfile.count("FROM") == 1


@given(HOSTILE)
def test_text_stays_in_its_line(text: str):
    assert len(one_line(text).splitlines()) <= 1
    assert not re.search(r"(?<!\\)(?:\\\\)*[`<|]", markdown(text))


def test_folders_differ_where_names_do_not():
    study = mine()
    arms = [study.arms[1].model_copy(update={"name": name}) for name in ("a b", "a-b", "A.B", "...")]
    found = contents(study.model_copy(update={"arms": (study.arms[0], *arms)}))
    assert [each.folder for each in found.environments] == ["native", "a-b", "a-b-2", "a-b-3", "x"]
    assert replace(found.environments[0], folder="x").arm.name == "native"


def test_values_of_secrets_are_not_in_it():
    workload = (
        "shop: {kind: command, server: [shop, '--pass=${{secret:db.PW}}', \"it's\"], client: 'get {port}', "
        "port: 8000, server_env: {API_TOKEN: canary, A: 'x ${secret:db.PW}${secret:web.PW}'}}\n  cpu:"
    )
    changed = {
        "cpu:": workload,
        "{kind: docker, network: bridge}": "{kind: docker, network: host, variables: {SECRET: canary}}",
    }
    files = files_of(mine(**changed))
    assert not [path for path, file in files.items() if b"canary" in file.data]
    script = text_of(files, "environments/bridge/shop/server.sh")
    for value in ("db_PW", "web_PW", "workloads_shop_API_TOKEN"):
        assert f'"${{{value}:?its value is not in the kit}}"' in script
        assert value in text_of(files, "README.md").replace("\\", "")
    assert script.splitlines()[-1].startswith(
        "exec shop --pass=\"${db_PW:?its value is not in the kit}\" 'it'\"'\"'s'"
    )
    variables = compose_of(files, "bridge")["services"]["server"]["environment"]
    assert variables["db_PW"] == "${db_PW:?its value is not in the kit}" and "SECRET" in variables


def test_two_secrets_never_share_a_variable():
    server = "[shop, '{port}', '${{secret:a.PW}}', '${{secret:a_PW}}']"
    workload = f"shop: {{kind: command, server: {server}, client: 'get {{port}}'}}\n  cpu:"
    with raises_sentence(StudyError):
        files_of(mine(**{"cpu:": workload}))
