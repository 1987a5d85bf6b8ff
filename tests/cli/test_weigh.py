"""The words of `weighbridge weigh`: what they make of a study, and what is wrong with them."""

import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from saved_images import save_without_layers
from sentences import assert_sentence, raises_sentence
from weighbridge import registry
from weighbridge.cli.app import app
from weighbridge.environments.podman import root
from weighbridge.errors import RunDirectoryError, Unavailable
from weighbridge.hosts import cable
from weighbridge.model.level import NO_LEVEL
from weighbridge.model.measurement import Outcome
from weighbridge.model.plugin import Readiness
from weighbridge.model.stored_study import secrets_of
from weighbridge.model.study import Role, Study
from weighbridge.model.trial import Trial, TrialRecord
from weighbridge.model.workload import Endpoint
from weighbridge.secret_values import revealed
from weighbridge.store.run import RunStore
from weighbridge.study.loader import load


@pytest.fixture(autouse=True)
def lacking(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What the environments of this machine lack, by kind and why: nothing, unless a test says so."""
    lacks: dict[str, str] = {}

    def ready(plugin: Any, options: Any = None, needs: Any = None) -> Readiness:
        if plugin.kind in lacks or needs is None:
            return Readiness(plugin.kind not in lacks, lacks.get(plugin.kind, ""))
        unmet = root.unmet(needs, rootless=options.rootless) if plugin.kind == "podman" else cable.unmet(needs)
        return (unmet if plugin.kind in ("podman", "netns") else None) or Readiness(True)

    monkeypatch.setattr("weighbridge.runner.preflight.ready", ready)
    monkeypatch.setattr("weighbridge.engines.shared_root.refusal", lambda: None)
    return lacks


def saved(tmp_path: Path, *words: str):
    file = tmp_path / "mine.yaml"
    file.unlink(missing_ok=True)
    done = CliRunner().invoke(app, ["weigh", "--save", str(file), *words])
    assert done.exit_code == 0, done.output
    return load(str(file))


def arms_of(study: Study) -> dict[str, Any]:
    return {arm.name: arm for arm in study.arms if arm.name not in ("native", "native-again")}


def test_a_preset_and_a_kind_are_names_alike(tmp_path: Path):
    arms = arms_of(saved(tmp_path, "--in", "landrun,bubblewrap", "--", "true"))
    assert [*arms] == ["landrun", "bubblewrap"]
    assert (arms["landrun"].kind, arms["landrun"].options.preset) == ("wrapper", "landrun")


def test_a_wrapper_is_a_list_of_words_and_no_shell_sees_it(tmp_path: Path):
    wrappers = ("firejail --name='a b' $HOME --", "/opt/box/run --", "run")
    words = ("--in", "netns", *(word for wrapper in wrappers for word in ("--wrap", wrapper)))
    arms = arms_of(saved(tmp_path, *words, "--", "true"))
    assert [*arms] == ["netns", "wrap-firejail", "run", "run-2"]
    assert arms["wrap-firejail"].options.command == ("firejail", "--name=a b", "$HOME", "--")
    assert [*arms_of(saved(tmp_path, "--wrap", "box --", "--", "true"))] == ["box"]


def test_the_path_of_a_wrapper_starts_in_the_user_s_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    arms = arms_of(saved(tmp_path, "--wrap", "./box -c ./x --", "--wrap", "{home}/box", "--", "true"))
    commands = [arm.options.command for arm in arms.values()]
    assert commands == [(str(tmp_path / "box"), "-c", "./x", "--"), ("{home}/box",)]


def test_starting_a_sandbox_is_weighed_too(tmp_path: Path):
    kinds = {cell.workload: cell.kind for cell in saved(tmp_path, "--in", "landrun", "--", "true").cells}
    assert kinds == {"command": "command", "entry": "boot"}
    for words in (("--in", "netns"), ("--in", "landrun", "--against", "false")):
        assert {cell.workload for cell in saved(tmp_path, *words, "--", "true").cells} == {"command"}


@pytest.mark.parametrize("wrapper", ["", "box 'not closed", "box \0 --"])
def test_a_wrapper_that_is_no_command_line_is_refused(wrapper: str):
    done = CliRunner().invoke(app, ["weigh", "--wrap", wrapper, "--", "true"])
    assert done.exit_code == 2
    assert_sentence(done.output.strip())


def test_what_dev_shm_holds_can_be_said(tmp_path: Path):
    assert {arm.shm_size for arm in saved(tmp_path, "--shm-size", "256MiB", "--in", "docker", "--", "true").arms} == {
        2**28
    }


def test_idle_cpus_poll_or_halt_as_it_is_asked(tmp_path: Path):
    assert saved(tmp_path, "--", "true").file.cpu_idle == "auto"
    assert saved(tmp_path, "--cpu-idle", "halt", "--", "true").file.cpu_idle == "halt"


def test_what_is_saved_is_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", "/opt/mine:/usr/bin")
    monkeypatch.setenv("TOKEN", "secret")
    monkeypatch.chdir(tmp_path)
    study = saved(
        tmp_path, "--in", "host,bridge", "-L", "n=1,2", "--metric", "rps=json:$.a[?@.b=='x,y'],higher,1/s",
        "--within", "30s", "--", "./load", "-n", "{n}",
    )  # fmt: skip
    assert [arm.name for arm in study.arms] == ["native", "host", "bridge", "native-again"]
    assert study.file.userland.model_dump()["folder"] == str(tmp_path)
    assert study.file.userland.model_dump()["env"]["PATH"] == "/opt/mine:/usr/bin"
    assert "TOKEN" not in study.text and "secret" not in study.text
    assert study.file.repetitions.within == 30
    assert len(study.cells) == 2


def test_a_variable_is_handed_on_where_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ASKED", "for")
    study = saved(tmp_path, "-e", "ASKED", "-e", "OTHER=a=b", "--", "true")
    env = study.file.userland.model_dump()["env"]
    assert (env["ASKED"], env["OTHER"]) == ("${secret:ASKED}", "${secret:OTHER}")
    assert [revealed(env[name]) for name in ("ASKED", "OTHER")] == ["for", "a=b"]


COMPOSE = "--compose shop.yml --service shop"
WRONG = (
    "true --blocks 6", "true --blocks=6", "true x --in docker",
    "--parameter size -- true", "--parameter =1,2 -- true", "--metric rps -- true",
    "--metric rps=json:$.a,upwards,1/s -- true", "--metric rps=xml:/a,higher,1/s -- true",
    "--metric a=json:$.a,better,s -- true", "--metric A=json:$.a,lower,s -- true",
    "--metric 'a=json:$.a,lower,1 s' -- true", "--metric a=regex:(a,lower,s -- true",
    "--env NOT_THERE_AT_ALL -- true", "--env A-B=1 -- true", "--shm-size 2 -- true",
    "--within 10x -- true", "--memory 512M -- true", "--cpus 0 -- true", "--trace foo -- true",
    "--adapter foo -- true", "--adapter hyperfin -- true", "--target 2 -- true",
    "--rounds 6 --within 10s -- true", "--rounds 20 --target 2% -- true", "--server 'a -p {prt}' -- true",
    "-L size=1,2 --prepare 'a {sise}' -- true",
    "--compose shop.yml -- true", "--compose none.yml --service shop -- true",
    "--service shop -- true", f"{COMPOSE} --server x -- true", f"{COMPOSE} --saved x -- true",
    "-- ./nothere", "-- no-such-program", "-- plain", "-- ./plain", "--setup no-such-set-up -- true",
    "--server 'no-such-server {port}' -- true", "--server env -- true", "--server 'env {port}' --against env -- true",
    "--label before=a,after=b -- true", "--against true --label before=a -- true",
    "--against true --label before=a,after=a -- true", "--against '' -- true", "--against \"'\" -- true",
    "--in dokcer -- true", "--image ./none.tar -- x",
    "--in pod -- mine", "--cluster --env HOME -- dd",
    "--head main -- true", "--build make -- true", "--keep-trees -- true", "--base main --against x -- true",
    "--base main --server 'a {port}' -- true", "--base main --image a -- x", "--base main --explain -- true",
    "--base main --save a.yaml -- true", "--base main --cluster -- true", "--base main",
    "--base main --in dokcer -- true",
    "--base main --build \"'\" -- true", "--base main --metric rps -- true", "--base main --markdown no/a.md -- true",
    "--command a=true -- true", "--command true", "--command 'a b=true'", "--command a=true --command a=true",
    "--command a=", "--command \"a='\"", "--command entry=true", "--command a=true --cluster",
    "--command a=no-such-program", "--command a=true --server 'a {port}'",
)  # fmt: skip
"""Command lines of weigh, each with a mistake."""


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_command_line_is_one_sentence(shop: Path, monkeypatch, capsys: pytest.CaptureFixture[str], line: str):
    monkeypatch.setattr("weighbridge.runner.userlands.package_of", lambda name: "" if name == "mine" else name)
    (shop / "plain").touch()
    done = CliRunner().invoke(app, ["weigh", "--out", "run", *shlex.split(line)])
    said = (capsys.readouterr().err or done.output).strip()
    assert done.exit_code == 2 and len(said.splitlines()) == 1 and not (shop / "run").exists()
    assert_sentence(said)


def test_two_results_do_not_share_standard_output(shop: Path, capsys: pytest.CaptureFixture[str]):
    done = CliRunner().invoke(app, ["weigh", "--out", "run", "--json", "--markdown", "-", "--", "true"])
    assert done.exit_code == 2 and not (shop / "run").exists()
    assert_sentence((capsys.readouterr().err or done.output).splitlines()[-1])


@pytest.mark.parametrize(("option", "value"), [("--cpu-idle", "sleep"), ("--ready", "0"), ("--images", "knd")])
def test_a_value_that_an_option_does_not_have_is_refused(tmp_path: Path, monkeypatch, option: str, value: str):
    monkeypatch.setattr("weighbridge.runner.userlands.package_of", lambda name: name)
    where = "pod" if option == "--images" else "netns"
    words = ["weigh", "--save", str(tmp_path / "a.yaml"), "--in", where, option, value, "--", "dd"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2 and option in done.output


def test_a_word_that_is_not_utf_8_is_refused(capsys: pytest.CaptureFixture[str]):
    done = CliRunner().invoke(app, ["weigh", "--out", "run", "--", "true", "\udcff"])
    assert done.exit_code == 2 and "not UTF-8" in (capsys.readouterr().err or done.output)


def test_a_servers_run_is_called_after_the_server(tmp_path: Path):
    study = saved(tmp_path, "--in", "bridge", "--server", "/opt/redis-server --port {port}", "--", "curl", "{port}")
    assert study.file.study == "weigh-redis-server"
    assert "redis-server" in study.file.question and "curl" not in study.file.question


def test_a_file_that_is_there_is_not_written_over(tmp_path: Path):
    (tmp_path / "mine.yaml").write_text("mine")
    done = CliRunner().invoke(app, ["weigh", "--save", str(tmp_path / "mine.yaml"), "--", "true"])
    assert done.exception is not None and "already exists" in str(done.exception)
    assert (tmp_path / "mine.yaml").read_text() == "mine"


SHOP = """
services:
  shop:
    image: shop:1
    command: [--port, "8000", "{port}"]
    environment: {DEBUG: "0", BRACES: "{x}"}
    depends_on: [counter]
    ports: ["8080:8000"]
    deploy: {replicas: 1}
  counter: {image: "redis:7", command: redis-server, expose: ["6379"]}
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An image in a file, and Docker Compose that says what a file is."""
    monkeypatch.setattr("weighbridge.runner.compose_file.normalised", lambda file: Path(file).read_text())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shop.yml").write_text(SHOP)
    save_without_layers(tmp_path / "shop.tar", {"Entrypoint": ["/shop"], "Cmd": ["-h"]})
    return tmp_path


def test_a_saved_study_names_the_variables_that_it_has_no_values_of(shop: Path):
    (shop / "shop.yml").write_text(SHOP.replace('DEBUG: "0"', 'DEBUG: "${DEBUG}", API_TOKEN: canary-1'))
    done = CliRunner().invoke(app, [
        "weigh", "--compose", "shop.yml", "--service", "shop", "--without", "deploy", "--saved", "shop:1=shop.tar",
        "--env", "MINE=canary-2", "--save", "mine.yaml", "--", "curl", "{address}:{port}",
    ])  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "canary" not in (shop / "mine.yaml").read_text() + done.output
    assert {*secrets_of(load("mine.yaml"))} == {"DEBUG", "MINE", "workloads.command.API_TOKEN"}
    assert "--env MINE --env DEBUG --env API_TOKEN" in " ".join(done.output.split())


def test_a_service_of_a_compose_file_is_a_study(shop: Path):
    (shop / "redis.tar").touch()
    study = saved(
        shop, "--compose", "shop.yml", "--service", "shop", "--without", "deploy", "--saved", "shop:1=shop.tar",
        "--saved", "redis:7=redis.tar", "--", "curl", "{address}:{port}",
    )  # fmt: skip
    [cell] = study.cells
    options = cell.options.model_dump()
    command = registry.workloads()["command"].command("server", cell.options, Endpoint("0.0.0.0", "10.0.0.2", 8000))
    assert command.argv == ("/shop", "--port", "8000", "{port}")
    assert command.env == {"DEBUG": "0", "BRACES": "{x}"} and command.listens == (("tcp", 8000),)
    assert options["port"] == 8000
    assert registry.workloads()["command"].command("client", cell.options, Endpoint("", "h", 8000)).env == {}
    assert study.file.userland.model_dump() == {"kind": "saved-image", "path": str(shop / "shop.tar")}
    assert study.sources["client_userland"].kind == "host"
    assert study.file.companions["counter"].saved == str(shop / "redis.tar")
    assert study.file.companions["counter"].port == 6379
    assert study.text.splitlines()[0] == "# Left out of the Compose file: shop.deploy"


def test_what_is_not_honoured_refuses_the_file(shop: Path):
    done = CliRunner().invoke(app, ["weigh", "--compose", "shop.yml", "--service", "shop", "--", "true"])
    assert str(done.exception).endswith("unsupported keys (shop.deploy). To ignore them, use --without deploy")


def test_against_is_an_older_program_server_or_image(shop: Path):
    save_without_layers(shop / "old.tar", {"Entrypoint": ["/old-shop"]})
    command = registry.workloads()["command"].command

    def argv(study: Study, role: Role) -> list[tuple[str, ...]]:
        at = Endpoint("0.0.0.0", "h", 5)
        return [command(role, study.options(arm, study.cells[0]), at).argv for arm in study.arms[:2]]

    study = saved(shop, "--against", "./old -x '{'", "--", "./new")
    assert argv(study, "solo") == [("./old", "-x", "{"), ("./new",)]
    assert {arm.kind for arm in study.arms} == {"native"}
    study = saved(shop, "--server", "new {port}", "--against", "old {port}", "--", "curl", "{address}:{port}")
    assert argv(study, "server") == [("old", "5"), ("new", "5")]
    assert argv(study, "client") == [("curl", "h:5")] * 2
    study = saved(shop, "--image", "shop.tar", "--against", "old.tar", "--", "-x")
    assert argv(study, "solo") == [("/old-shop", "-x"), ("/shop", "-x")]
    assert study.sources["environments.before.userland"].model_dump()["path"] == str(shop / "old.tar")
    study = saved(shop, "--image", "shop.tar", "--against", "old.tar", "--server", "{port}", "--", "curl", "{port}")
    assert argv(study, "server") == [("/old-shop", "5"), ("/shop", "5")]
    study = saved(shop, "--against", "./old", "--label", "before=glibc-2.36,after=musl", "--", "./new")
    assert [arm.name for arm in study.arms[:2]] == ["glibc-2.36", "musl"] and study.file.baseline == "glibc-2.36"


@pytest.mark.parametrize("words", [["--", "true", "--check", "-c", "x"], ["true", "--own", "-c", "x"]])
def test_what_follows_the_program_is_its_own(tmp_path: Path, words: list[str]):
    study = saved(tmp_path, *words)
    command = registry.workloads()["command"].command("solo", study.cells[0].options, Endpoint("", "", 1))
    assert command.argv == tuple(word for word in words if word != "--")


def _environments(tmp_path: Path, *words: str) -> list[str]:
    return [*saved(tmp_path, *words).file.environments]


def test_what_it_is_weighed_in_is_the_first_that_can_be_had(
    tmp_path: Path, lacking: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    image = ("--image", str(tmp_path / "i.tar"))
    monkeypatch.setattr("weighbridge.cli.weigh._entry_point", lambda _: ())
    (tmp_path / "i.tar").touch()
    assert _environments(tmp_path, "--", "true") == ["native", "docker"]
    lacking["docker"] = "no Docker engine answers this user"
    assert _environments(tmp_path, "--", "true") == ["native", "netns"], "root's podman has another root"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert _environments(tmp_path, "--", "true") == ["native", "podman-rootless"]
    assert _environments(tmp_path, *image, "--", "true") == ["native", "podman-rootless"]
    lacking["podman"] = "podman lacks newuidmap"
    assert _environments(tmp_path, *image, "--", "true") == ["native", "netns"]
    lacking["netns"] = "this user is not allowed to make network namespaces"
    assert _environments(tmp_path, "--", "true") == ["native", "bubblewrap"]
    lacking["bubblewrap"] = "bwrap is not installed"
    assert _environments(tmp_path, "--", "true") == ["native", "docker"], "its own refusal says what to do"


def test_a_server_without_docker_and_root_is_weighed_behind_podman_s_published_port(
    tmp_path: Path, lacking: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    server = ("--server", "sleep {port}", "--", "true")
    lacking["docker"] = lacking["netns"] = "only root"
    assert _environments(tmp_path, *server) == ["native", "bubblewrap"], "root's podman has another root"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert _environments(tmp_path, *server) == ["native", "podman-published"]
    assert _environments(tmp_path, "--in", "podman-published", *server) == ["native", "podman-published"]
    lacking["podman"] = "podman is not installed"
    assert _environments(tmp_path, *server) == ["native", "bubblewrap"]


def test_what_is_not_usual_is_told_and_what_is_asked_for_is_never_changed(tmp_path: Path, lacking: dict[str, str]):
    lacking["podman"] = "podman is not installed"
    lacking["docker"] = "no Docker engine answers this user"
    done = CliRunner().invoke(app, ["weigh", "--save", str(tmp_path / "a.yaml"), "--", "true"])
    assert "note: using netns (docker: no Docker engine answers this user; podman-rootless: podman" in done.output
    assert "a container engine would also show" in done.output
    done = CliRunner().invoke(app, ["weigh", "--save", str(tmp_path / "b.yaml"), "--in", "docker", "--", "true"])
    assert "note:" not in done.output
    assert [*load(str(tmp_path / "b.yaml")).file.environments] == ["native", "docker"]


def test_in_the_root_folder_there_is_nothing_to_write_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir("/")
    assert saved(tmp_path, "--", "true").file.userland.model_dump()["folder"] is None


def test_a_program_starts_in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir("/tmp")
    assert saved(tmp_path, "--", "true").file.userland.model_dump()["folder"] == "/tmp"


def test_a_folder_that_every_environment_replaces_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir("/run")
    done = CliRunner().invoke(app, ["weigh", "--save", str(tmp_path / "a.yaml"), "--", "true"])
    assert done.exit_code == 2
    assert_sentence(capsys.readouterr().err or done.output)


def test_where_nothing_is_ready_one_sentence_names_all_that_would_do(
    tmp_path: Path, lacking: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    def ready(plugin: Any, options: Any = None, needs: Any = None) -> Readiness:
        return Readiness(False, "it is not installed", f"apt-get install {plugin.kind}")

    monkeypatch.setattr("weighbridge.runner.preflight.ready", ready)
    monkeypatch.chdir(tmp_path)
    for words in ([], ["--server", "python3 -m http.server {port}"]):
        with raises_sentence(Unavailable):
            CliRunner().invoke(app, ["weigh", "--out", "run", *words, "--", "true"], catch_exceptions=False)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("words", [[], ["--"], ["--in", "docker"], ["--server", "env {port}"], ["--shell"]])
def test_without_a_program_an_example_is_shown(words: list[str], capsys: pytest.CaptureFixture[str]):
    done = CliRunner().invoke(app, ["weigh", *words])
    assert done.exit_code == 2
    assert_sentence(capsys.readouterr().err or done.output)


def test_a_directory_with_another_run_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """In the words of weigh, which has no study to omit; the same command goes on with its run."""
    monkeypatch.setattr("weighbridge.cli.approval.announce", lambda *_, **__: pytest.fail("it was announced"))
    monkeypatch.setattr("weighbridge.runner.living.require_alone", lambda **_: None)
    study = saved(tmp_path, "--in", "docker", "--", "true")
    with RunStore(tmp_path / "run", writable=True) as store:
        store.begin(study, {"run_id": "0123456789ab"})
        store.save(TrialRecord(Trial(1, 0, "command", NO_LEVEL, "native"), Outcome.OK, 1e9, 0.5, 0.4))
    argv = ["weigh", "--in", "docker", "--out", str(tmp_path / "run"), "--", "true", "--else"]
    with raises_sentence(RunDirectoryError):
        CliRunner().invoke(app, argv, catch_exceptions=False)


def test_a_run_that_was_refused_before_its_first_trial_takes_no_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("weighbridge.runner.living.require_alone", lambda **_: None)
    monkeypatch.setattr("weighbridge.cli.approval.announce", lambda *_, **__: sys.exit(77))
    study = saved(tmp_path, "--in", "docker", "--", "true")
    with RunStore(tmp_path / "run", writable=True) as store:
        store.begin(study, {"run_id": "0123456789ab"})
    argv = ["weigh", "--in", "docker", "--out", str(tmp_path / "run"), "--", "true", "--else"]
    assert CliRunner().invoke(app, argv).exit_code == 77 and not (tmp_path / "run").exists()


def test_a_server_of_a_users_is_weighed_on_a_bridge_alone(
    tmp_path: Path, lacking: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    """A user's network namespace has no cable to the client."""
    words = ("--server", "python3 -m http.server {port}", "--", "curl", "{address}:{port}")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert _environments(tmp_path, *words) == ["native", "netns", "bridge"]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert _environments(tmp_path, *words) == ["native", "bridge"]
    lacking["docker"] = "no Docker engine answers this user"
    assert _environments(tmp_path, *words) == ["native", "podman-published"]
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert _environments(tmp_path, *words) == ["native", "netns"]


def test_a_name_of_a_cluster_asks_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("weighbridge.runner.userlands.package_of", lambda name: "" if name == "mine" else name)
    words = ("--images", "kind", "--in", "pod,service", "--server", "redis-server {port}", "--", "redis-benchmark")
    study = saved(tmp_path, *words)
    assert [host.kind for host in study.file.hosts.values()] == ["kubernetes", "kubernetes"]
    assert [arm.name for arm in study.arms] == ["host", "pod", "service", "host-again"]
    assert [*saved(tmp_path, "--cluster", "--", "redis-benchmark").file.environments] == ["host", "pod"]
