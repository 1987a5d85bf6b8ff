"""The words of `weighbridge weigh`: what they make of a study, and what is wrong with them."""

import os
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


@pytest.mark.parametrize("words", [["--blocks", "6"], ["--blocks=6"], ["x", "--in", "docker"]])
def test_an_option_behind_the_program_is_not_taken_for_the_programs_own(words: list[str], tmp_path: Path):
    done = CliRunner().invoke(app, ["weigh", "--save", str(tmp_path / "a.yaml"), "true", *words])
    assert done.exit_code == 2
    option = next(word for word in words if word.startswith("--")).partition("=")[0]
    assert f"put {option} before the program, or -- before true" in done.output
    assert len(done.output.splitlines()) == 1


def test_what_dev_shm_holds_can_be_said(tmp_path: Path):
    assert {arm.shm_size for arm in saved(tmp_path, "--shm-size", "256MiB", "--in", "docker", "--", "true").arms} == {
        2**28
    }
    done = CliRunner().invoke(app, ["weigh", "--save", str(tmp_path / "a.yaml"), "--shm-size", "2", "--", "true"])
    assert done.exit_code == 2 and "--shm-size: " in done.output and len(done.output.splitlines()) == 1


def test_idle_cpus_poll_or_halt_as_it_is_asked(tmp_path: Path):
    assert saved(tmp_path, "--", "true").file.cpu_idle == "auto"
    assert saved(tmp_path, "--cpu-idle", "halt", "--", "true").file.cpu_idle == "halt"
    assert CliRunner().invoke(app, ["weigh", "--cpu-idle", "sleep", "--", "true"]).exit_code == 2


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


@pytest.mark.parametrize(
    "words",
    [
        ["--parameter", "size", "--", "true"],
        ["--parameter", "=1,2", "--", "true"],
        ["--metric", "rps", "--", "true"],
        ["--metric", "rps=json:$.a,upwards,1/s", "--", "true"],
        ["--metric", "rps=xml:/a,higher,1/s", "--", "true"],
        ["--env", "NOT_THERE_AT_ALL", "--", "true"],
        ["--env", "A-B=1", "--", "true"],
    ],
)
def test_wrong_words_are_a_wrong_command_line(words: list[str], capsys: pytest.CaptureFixture[str]):
    done = CliRunner().invoke(app, ["weigh", *words])
    assert done.exit_code == 2
    assert len(capsys.readouterr().err.strip().splitlines() or done.output.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--within", "10x"], "--within: unknown unit 'x'"),
        (["--memory", "512M"], "--memory: unknown unit 'M' in '512M'. Did you mean '512MB' or '512MiB'?"),
        (["--cpus", "0"], "--cpus: must be more than 0"),
        (["--trace", "foo"], "--trace: must be"),
        (["--adapter", "foo"], "--adapter: unknown kind 'foo'"),
        (["--target", "2"], "--target: write a percentage, such as 2%"),
        (["--rounds", "6", "--within", "10s"], "--rounds excludes --target and --within"),
        (["--rounds", "20", "--target", "2%"], "--rounds excludes --target and --within"),
        (["--server", "a -p {prt}"], "unknown placeholder {prt}. Did you mean {port}?"),
        (["-L", "size=1,2", "--prepare", "a {sise}"], "unknown placeholder {sise}. Did you mean {size}?"),
        (["--metric", "a=json:$.a,better,s"], "the direction must be higher or lower, not 'better'"),
        (["--metric", "A=json:$.a,lower,s"], "the name must start with a lower-case letter"),
        (["--metric", "a=json:$.a,lower,1 s"], "the unit must have 1 to 20 characters and no space"),
        (["--metric", "a=regex:(a,lower,s"], "--metric: the regular expression '(a' has an error: a closing"),
    ],
)
def test_a_wrong_value_is_named_by_its_option(words: list[str], sentence: str, tmp_path: Path):
    done = CliRunner().invoke(
        app, ["weigh", "--in", "netns", "--save", str(tmp_path / "a.yaml"), *words, "--", "true"]
    )
    assert done.exit_code == 2 and sentence in done.output and len(done.output.splitlines()) == 1


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


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--compose", "shop.yml"], 2, "--service NAME"),
        (["--compose", "none.yml", "--service", "shop"], 2, "none.yml does not exist"),
        (["--compose", "shop.yml", "--service", "shop", "--ready", "0"], 2, "--ready"),
        (["--service", "shop"], 2, "add --compose FILE"),
        (["--compose", "shop.yml", "--service", "shop", "--server", "x"], 2, "--server does not work with --compose"),
        (["--compose", "shop.yml", "--service", "shop", "--saved", "x"], 2, "write IMAGE=FILE"),
    ],
)
def test_wrong_words_about_a_compose_file_are_told(shop: Path, words: list[str], code: int, says: str):
    done = CliRunner().invoke(app, ["weigh", *words, "--", "true"])
    assert done.exit_code == code and says in done.output


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
    for words in (["--against", "'", "--", "x"], ["--against", "", "--", "x"]):
        assert CliRunner().invoke(app, ["weigh", *words]).exit_code == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--", "./nothere"], "./nothere: no such program"),
        (["--", "no-such-program"], "no-such-program: not found in PATH"),
        (["--", "plain"], "Try ./plain"),
        (["--", "./plain"], "is not executable"),
        (["--setup", "no-such-set-up", "--", "true"], "no-such-set-up"),
        (["--server", "no-such-server {port}", "--", "true"], "no-such-server"),
        (["--server", "env", "--", "true"], "Write {port} in the command, or give a fixed port"),
        (["--server", "env {port}", "--against", "env", "--", "true"], "--server env: the port is missing"),
        (["--label", "before=a,after=b", "--", "true"], "--against, which is missing"),
        (["--against", "true", "--label", "before=a", "--", "true"], "write before=A,after=B"),
        (["--against", "true", "--label", "before=a,after=a", "--", "true"], "write before=A,after=B"),
        (["--in", "dokcer", "--", "true"], "'docker'"),
        (["--adapter", "hyperfin", "--", "true"], "'hyperfine'"),
        (["--", "true", "\udcff"], "not UTF-8"),
        (["--image", "./shop.tar", "--", "x"], "'./shop.tar' is neither a file"),
    ],
)
def test_what_is_wrong_with_a_command_line_is_told_as_such(words, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plain").touch()
    done = CliRunner().invoke(app, ["weigh", "--out", "run", *words])
    said = capsys.readouterr().err or done.output
    assert done.exit_code == 2
    assert says in said and "weigh:" not in said.replace("weighbridge:", "")
    assert not (tmp_path / "run").exists()


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


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--in", "pod", "--", "mine"], "knows no Debian package with mine"),
        (["--in", "pod", "--images", "knd", "--", "dd"], "'knd' is not one of kind"),
        (["--cluster", "--env", "HOME", "--", "dd"], "--env does not apply to a cluster"),
    ],
)
def test_what_a_cluster_cannot_have_is_told(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("weighbridge.runner.userlands.package_of", lambda name: "" if name == "mine" else name)
    done = CliRunner().invoke(app, ["weigh", "--save", str(tmp_path / "a.yaml"), *words])
    assert done.exit_code == 2 and says in done.output
