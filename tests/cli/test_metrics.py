"""``--metrics``: wrong addresses are one sentence, and who is told of the run."""

from contextlib import contextmanager
from pathlib import Path

import pytest

from weighbridge.errors import Unavailable
from weighbridge.features.monitoring import server
from weighbridge.features.monitoring.fanout import ProgressFanout
from weighbridge.features.monitoring.option import watched
from weighbridge.runner import run as running
from weighbridge.study.loader import load

from .command_line import one_sentence


class Heard:
    """Progress that is not looked at."""

    def say(self, text): ...
    def waits(self, steps): ...
    def layers_known(self, layers): ...
    def trial_started(self, trial, done, total, left): ...
    def trial_finished(self, record): ...
    def precision_checked(self, blocks, statuses): ...
    def interference_noticed(self, out_of_reach): ...
    def time_known(self, trial_s, left): ...
    def costs_estimated(self, blocks, estimates): ...


@pytest.mark.parametrize("command", [("run", "first-look"), ("replicate", "docker-networks")])
@pytest.mark.parametrize(
    "address",
    ["0.0.0.0:9464", "9464",
     "127.0.0.1:99999"],
)  # fmt: skip
def test_a_wrong_address_is_one_sentence(weighbridge, command, address):
    one_sentence(weighbridge(*command, "--metrics", address), 2)
    assert not Path("runs").exists()


def test_a_report_serves_no_metrics(weighbridge, tmp_path):
    said = weighbridge("replicate", "--report", tmp_path, "--metrics", "127.0.0.1:0")
    one_sentence(said, 2)


def test_without_the_option_only_the_person_is_told(tmp_path: Path):
    person = Heard()
    with watched(None, person, None, tmp_path) as told:
        assert told is person


def test_a_port_that_is_taken_ends_the_command_before_anything_runs(weighbridge, run, monkeypatch):
    def taken(*_):
        raise Unavailable("metrics cannot be served on 127.0.0.1:9464: another program has that port")

    monkeypatch.setattr(server, "serving", taken)
    monkeypatch.setattr(running, "run_study", lambda *_: pytest.fail("nothing is run"))
    one_sentence(weighbridge("run", "--out", run, "--metrics", "127.0.0.1:9464"), 4)


@pytest.mark.parametrize("continued", [False, True])
def test_the_address_is_told_and_the_study_named(run, monkeypatch, capsys, continued):
    named: list[str] = []

    @contextmanager
    def serving(address, live, study):
        named.append(study)
        yield f"http://{address[0]}:4711/metrics"

    monkeypatch.setattr(server, "serving", serving)
    study = None if continued else load("first-look")
    with watched(("127.0.0.1", 0), Heard(), study, run) as told:
        assert isinstance(told, ProgressFanout)
    assert named == ["first-look"]
    assert capsys.readouterr().err.endswith("metrics: http://127.0.0.1:4711/metrics\n")
