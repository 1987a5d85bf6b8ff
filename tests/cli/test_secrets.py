"""What a command line says of secrets before it asks whether to start."""

from pathlib import Path

import pytest
import typer

from report.made_up_runs import THROUGHPUT, Recipe, Workload, make_run
from weighbridge import secret_values
from weighbridge.cli import approval
from weighbridge.errors import SecretError
from weighbridge.model.names import RunId
from weighbridge.model.secret import SecretName
from weighbridge.model.stored_study import study_json
from weighbridge.store.reader import SECRETS, run_identity
from weighbridge.store.run import RunStore
from weighbridge.study.loader import load

from .command_line import Weighbridge, one_sentence

STUDY = """study: tokens
question: Does it get them?
baseline: native
repetitions: {blocks: 10}
environments: {native: {kind: native}, netns: {kind: netns}}
workloads:
  own: {kind: command, server: 'x {port}', client: 'y {port}', server_env: {A: '${secret:API_TOKEN}'}}
"""


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for state in ("_values", "_offered", "_digests"):
        monkeypatch.setattr(secret_values, state, {})
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def study(weighbridge: Weighbridge) -> Path:
    Path("tokens.yaml").write_text(STUDY)
    return Path("tokens.yaml")


@pytest.fixture
def begun(study: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of the study that another process has begun."""
    secret_values.keep(SecretName("API_TOKEN"), "canary")
    made, run_id = load(str(study)), RunId.new()
    digests = secret_values.digests((SecretName("API_TOKEN"),), run_identity(run_id, made.text, study_json(made)))
    with RunStore(Path("begun"), writable=True) as store:
        store.begin(made, {"run_id": run_id}, digests)
    monkeypatch.setattr(secret_values, "_values", {})
    return Path("begun")


@pytest.fixture
def nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approval, "_person_there", lambda: True)
    monkeypatch.setattr(typer, "confirm", lambda *_, **__: pytest.fail("asked before the values are there"))


@pytest.mark.usefixtures("ready", "nobody_is_asked")
def test_a_new_run_without_a_value_is_refused_before_the_question(weighbridge: Weighbridge, study: Path):
    one_sentence(weighbridge("run", study), SecretError.exit_code)


@pytest.mark.usefixtures("ready", "nobody_is_asked")
def test_a_continued_run_without_a_value_is_refused_before_the_question(
    weighbridge: Weighbridge, begun: Path, monkeypatch: pytest.MonkeyPatch
):
    one_sentence(weighbridge("run", "--out", begun), SecretError.exit_code)
    monkeypatch.setenv("API_TOKEN", "other")
    one_sentence(weighbridge("run", "--out", begun), SecretError.exit_code)
    one_sentence(weighbridge("run", "--out", begun, "--env", "API_TOKEN"), SecretError.exit_code)


@pytest.mark.usefixtures("ready", "nobody_is_asked")
def test_a_variable_that_the_study_does_not_have_is_refused(weighbridge: Weighbridge, study: Path):
    one_sentence(weighbridge("run", study, "--env", "API_TOKN=x"), 2)
    secret_values._offered.clear()
    one_sentence(weighbridge("run", study, "--env", "OTHER=x"), 2)


@pytest.mark.usefixtures("ready")
def test_the_user_sees_which_secrets_a_study_receives(
    weighbridge: Weighbridge, begun: Path, study: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("API_TOKEN", "canary")
    for words in ((study, "--env", "API_TOKEN"), ("--out", begun)):
        said = weighbridge("run", *words, "--yes")
        assert said.code == 0 and "the study receives these secrets: API_TOKEN\n" in said.err, said
        assert "needs values" not in said.err


def test_a_plan_lists_the_values_that_a_run_needs(weighbridge: Weighbridge, study: Path):
    said = weighbridge("plan", study)
    assert "the study receives these secrets: API_TOKEN\n" in said.out
    assert "needs values: API_TOKEN (give them with --env API_TOKEN)\n" in said.out


def test_the_next_command_repeats_the_variables_of_the_run(
    weighbridge: Weighbridge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    recipe = Recipe(costs={"bridge": 1.25}, workloads=[Workload("tcp", [(THROUGHPUT, 8.66e9, 0.01)])], blocks=2)
    make_run(tmp_path / "run", recipe).close()
    with RunStore(tmp_path / "run", writable=True) as store:
        store.set_info(SECRETS, '{"API_TOKEN": "", "db.API_TOKEN": "", "A": ""}')
    monkeypatch.chdir(tmp_path)
    first = "First set API_TOKEN and A in your environment to the values that this run used."
    command = "weighbridge run --out run --env API_TOKEN --env A --yes --rounds "
    said = weighbridge("report", "run").out
    assert -1 < said.find(first) < said.find(command), said
    monkeypatch.setenv("API_TOKEN", "x")
    said = weighbridge("report", "run").out
    assert "First set A in your environment to the value that this run used." in said and command in said
