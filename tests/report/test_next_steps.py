"""What ``report --json`` suggests after a run, as data."""

from weighbridge.analysis.analyse import analyse
from weighbridge.report.export.json import report_json


def test_few_rounds_give_the_command_for_reliable_verdicts(run):
    store = run(costs={"bridge": 1.25}, blocks=7)
    (step,) = report_json(store)["next_steps"]
    assert step["code"] == "reliable-verdicts" and "10 rounds" in step["reason"] and step["seconds"] > 0
    assert step["command"] == ["weighbridge", "run", "--out", str(store.directory), "--rounds", "10"]
    (again,) = report_json(store, analyse(store), yes=True)["next_steps"]
    assert again["command"] == [*step["command"][:4], "--yes", "--rounds", "10"]


def test_a_decided_run_needs_no_step(run):
    document = report_json(run(costs={"bridge": 1.25}, blocks=12))
    assert document["next_steps"] == [] and document["control_passed"]
    assert "bridge" in document["answer"] and "95% interval" in document["answer"]
    assert "Control passed" in document["control_sentence"]


def test_a_control_that_failed_gives_a_reason_and_no_command(run):
    document = report_json(run(costs={"bridge": 1.25}, aa_factor=1.1, blocks=12))
    assert document["control_passed"] is False
    assert [(step["code"], step["command"]) for step in document["next_steps"]] == [("control-failed", None)]


def test_sentences_have_usual_spaces(run):
    document = report_json(run(costs={"bridge": 1.25}, blocks=7))
    texts = [document["answer"], document["control_sentence"], *(step["reason"] for step in document["next_steps"])]
    assert not any("\u00a0" in text for text in texts)
