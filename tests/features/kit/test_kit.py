"""What a kit holds, for the bundled studies and for studies whose text is out to break it."""

import io
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from sentences import raises_sentence
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


def test_services_have_image_limits_network_and_ports():
    server = compose_of(files_of(mine()), "published")["services"]["server"]
    assert server["image"] == "${IMAGE:-weighbridge-kit-mine}"
    assert server["command"] == ["sh", "/kit/environments/published/${CELL:-tcp-duration-1s}/server.sh"]
    assert (server["cpu_period"], server["cpu_quota"], server["mem_limit"]) == (10000, 5000, 268435456)
    assert server["read_only"] is True
    assert server["cpuset"] == "${SERVER_CPUS:-}"
    (gateway,) = {port.split(":")[0] for port in server["ports"]}
    assert server["ports"] == [f"{gateway}:5201:5201/tcp", f"{gateway}:5203:5203/tcp", f"{gateway}:5204:5204/tcp"]
    network = compose_of(files_of(mine()), "published")["networks"]["server"]
    assert network["ipam"]["config"][0]["gateway"] == gateway


def test_a_server_of_one_port_is_behind_another_one_of_the_host():
    one = "shop: {kind: command, server: shop, client: 'curl {address}:{port}', port: 8000}\n  cpu:"
    files = files_of(mine(**{"cpu:": one}))
    ports = compose_of(files, "published")["services"]["server"]["ports"]
    assert [port.split(":", 1)[1] for port in ports][3:] == ["5205:8000/tcp", "5206:8001/tcp"]
    called = {
        name: last_line(text_of(files, f"environments/{name}/shop/client.sh")) for name in ("published", "bridge")
    }
    assert [{word.rpartition(":")[2] for word in words if ":" in word} for words in called.values()] == [
        {"5205"}, {"8000"},
    ]  # fmt: skip


def test_only_the_roles_inside_are_services():
    assert [*compose_of(files_of(mine()), "bridge")["services"]] == ["server"]
    assert [*compose_of(files_of(mine("[server, client]")), "bridge")["services"]] == ["server", "client"]
    assert "begin bridge compose native server" in text_of(files_of(mine()), "environments/bridge/run.sh")
    assert "begin native native native server" in text_of(files_of(mine()), "environments/native/run.sh")


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


def test_what_is_left_out_is_named_with_its_reason():
    readme = text_of(files_of(mine()), "README.md")
    for name in ("idle", "space", "native-again"):
        assert f"- **{name}**: " in readme
    assert "only Weighbridge" not in readme
    assert "idle" not in text_of(files_of(mine()), "run.sh")
    first = text_of(files_of(load("first-look")), "README.md")
    assert "its client is on the host elsewhere" in first


def test_workloads_that_print_text_are_named_as_not_summarised():
    said = "Not summarised, because they print text: `rr`, `cpu`: see `results/ENVIRONMENT/WORKLOAD/*.out`."
    files = files_of(mine())
    assert said in text_of(files, "README.md")
    assert {path.split("/")[2] for path in files if path.endswith("headline.jq")} == {
        "tcp-duration-1s",
        "tcp-duration-2s",
    }
    only_json = mine(
        **{"  rr:  {kind: netperf, test: TCP_RR, duration: 1s}\n": "", "cpu: {kind: sysbench-cpu": "t: {kind: iperf3"}
    )
    assert "Not summarised" not in text_of(files_of(only_json), "README.md")


def test_workloads_that_time_the_opening_of_sites_are_left_out():
    files = files_of(mine(**{"rr:  {kind: netperf, test: TCP_RR, duration: 1s}": "up:  {kind: boot}"}))
    assert "- **up**: its trials start new environments" in text_of(files, "README.md")
    assert not [path for path in files if "/up/" in path]


@pytest.mark.parametrize(
    ("kind", "tool"), [("podman", "for example with podman run"), ("lxc", "with the tools of lxc")]
)
def test_what_the_kit_does_not_bring_up_is_brought_up_by_hand(kind: str, tool: str):
    readme = text_of(files_of(mine(**{"space:     {kind: netns}": f"space: {{kind: {kind}}}"})), "README.md")
    assert f"- **space**: the kit writes Compose files for Docker only: start it by hand, {tool}" in readme


def test_settings_are_the_studys():
    settings = text_of(files_of(mine()), ".env")
    assert "ROUNDS=7\n" in settings
    assert "SERVER_CPUS=0\n" in settings and "CLIENT_CPUS=1\n" in settings
    assert "workload; empty: none\nLEVEL_PAUSE=" in settings and "published" not in settings
    assert "PARENT=eth0\n" in text_of(files_of(load("docker-networks")), ".env")
    assert "CLIENT_CPUS=0\n" in text_of(files_of(load("docker-networks")), ".env")  # its host's


def test_programs_have_the_options_that_the_source_states():
    """Those that they have already stay, and so does all of the one whose JSON is read: --verbose spoils that."""
    files = files_of(load_profile("docker-vs-virtualbox", "published"))
    client, server = (text_of(files, f"environments/docker-host/tcp/{role}.sh") for role in ("client", "server"))
    assert "iperf3 -J -c " in client and client.count("-t 10") == 1 and "--verbose" not in client
    assert "iperf3 -s -B " in server and server.count(" -s ") == 1 and "--forceflush --one-off --json <" in server
    assert "what the source states and they lack" in text_of(files, "README.md")
    assert with_options(("a", "-x", "1"), ("-x", "2", "-y", "3")) == ("a", "-x", "1", "-y", "3")


def test_published_pauses_and_parameters_are_in_it():
    files = files_of(load_profile("native-vs-container-apps", "published"))
    assert " 120  # nginx" in text_of(files, "environments/native/run.sh")
    assert " 60  # redis" in text_of(files, "environments/native/run.sh")
    assert "ROUNDS=1\n" in text_of(files, ".env")
    assert "workload; empty: as published\nLEVEL_PAUSE=" in text_of(files, ".env")
    assert "nginx.pause_between_levels,120,s" in text_of(files, "parameters.csv")
    assert "what the source states and they lack" not in text_of(files, "README.md")
    assert parameters_of("docker-vs-virtualbox")[0].parameter == "tool"
    assert parameters_of("mine") == ()
    assert "parameters.csv" not in files_of(mine())


def test_data_files_and_what_makes_them_are_in_it():
    files = files_of(load("native-vs-container-apps"))
    assert compose_of(files, "docker-bridge")["services"]["server"]["volumes"][1] == "data:/srv"
    folder = "environments/docker-bridge/mysql-threads-2"
    assert {"prepare.sh", "restore.sh", "server.sh", "client.sh", "warm_up.sh"} <= {
        path.removeprefix(f"{folder}/") for path in files if path.startswith(folder)
    }
    assert files[f"{folder}/prepare.sh"] == files["environments/docker-bridge/mysql-threads-10/prepare.sh"]
    copied = re.findall(r'cp "\$kit"/(\S+) (\S+)', text_of(files, f"{folder}/server.sh"))
    assert copied and all(path in files for path, _ in copied)


def test_files_of_a_workload_without_a_server_are_made_where_it_runs():
    files = files_of(mine(**{"cpu: {kind: sysbench-cpu": "cpu: {kind: sysbench-fileio, threads: 1"}))
    (folder,) = {path.rpartition("/")[0] for path in files if path.endswith("prepare.sh") and "bridge" in path}
    assert "sysbench fileio --file-num=128" in text_of(files, f"{folder}/prepare.sh")
    assert f"{folder}/solo.sh" in files and f"{folder}/restore.sh" not in files
    assert "page caches are not emptied" in text_of(files, "README.md")
    assert "page caches" not in text_of(files_of(mine()), "README.md")


def test_sources_of_our_programs_are_built_in_the_image():
    files = files_of(load("docker-networks"))
    dockerfile = text_of(files, "Dockerfile")
    assert "COPY --from=build-coherence /build/target/jars /opt/coherence" in dockerfile
    assert "build/coherence/pom.xml" in files
    vegeta = files_of(mine(**{"cpu: {kind: sysbench-cpu": "cpu: {kind: nginx-vegeta, rate: 100"}))
    assert '"-o", "weighbridge-vegeta", "."]' in text_of(vegeta, "Dockerfile")
    assert "build/vegeta/go.sum" in vegeta


def test_a_userland_that_is_no_image_has_no_dockerfile():
    files = files_of(mine(**{"baseline: native": "baseline: native\nuserland: {kind: image, image: 'own:1'}"}))
    assert "FROM own:1\n" in text_of(files, "Dockerfile")
    files = files_of(mine(**{"baseline: native": "baseline: native\nuserland: {kind: directory, path: /}"}))
    assert "Dockerfile" not in files
    assert "There is no Dockerfile" in text_of(files, "README.md")


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
        for path in ("Dockerfile", "rounds.sh", "run.sh", "summary.sh", "listening.sh"):
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


def test_a_check_is_a_script_that_reads_what_was_printed():
    workload = "tcp: {kind: command, run: [./load], check: [grep, -q, ok]}"
    files = files_of(mine(**{"tcp: {kind: iperf3, duration: [1s, 2s]}": workload}))
    for environment in ("native", "bridge"):
        assert last_line(text_of(files, f"environments/{environment}/tcp/check.sh"))[-3:] == ["grep", "-q", "ok"]
        assert last_line(text_of(files, f"environments/{environment}/tcp/solo.sh"))[-1] == "</dev/null"
    assert not [path for path in files if path.endswith("/check.sh") and "/tcp/" not in path]
    assert "a check sees what the program printed" in text_of(files, "README.md")


def test_a_cleanup_is_a_script_of_the_site_that_was_set_up():
    workload = "tcp: {kind: command, run: [./load], setup: [mk, x], cleanup: [rm, x]}"
    files = files_of(mine(**{"tcp: {kind: iperf3, duration: [1s, 2s]}": workload}))
    for environment in ("native", "bridge"):
        assert last_line(text_of(files, f"environments/{environment}/tcp/finish.sh"))[-3:] == [
            "rm",
            "x",
            "</dev/null",
        ]
    assert not [path for path in files if path.endswith("/finish.sh") and "/tcp/" not in path]


def test_a_service_has_the_limits_and_settings_of_its_environment():
    """What an environment says of its own, as a run gives it to the sites."""
    own = "{kind: docker, network: bridge, resources: {cpus: 2}, shm_size: 64MiB, sysctls: {net.core.somaxconn: 9}}"
    files = files_of(mine(**{"bridge:    {kind: docker, network: bridge}": f"bridge:    {own}"}))
    (service,) = compose_of(files, "bridge")["services"].values()
    assert (service["cpu_quota"], service["mem_limit"]) == (20_000, 256 * 2**20)
    assert (service["shm_size"], service["sysctls"]) == (64 * 2**20, {"net.core.somaxconn": "9"})
    (other,) = compose_of(files, "published")["services"].values()
    assert other["cpu_quota"] == 5_000 and not {"shm_size", "sysctls"} & {*other}


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
