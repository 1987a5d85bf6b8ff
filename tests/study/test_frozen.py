"""The checked study of a run: data that comes back as it was, wherever the run is, or one sentence."""

import json
import sqlite3
from pathlib import Path

import pytest

from sentences import assert_sentence, raises_sentence
from weighbridge.errors import RunDirectoryError, StudyError
from weighbridge.model.options import External
from weighbridge.model.stored_study import StoredStudy, study_json
from weighbridge.model.study import Study
from weighbridge.runner import run as running
from weighbridge.store.run import DATABASE, RunStore
from weighbridge.study.external import external_resources
from weighbridge.study.frozen import thaw
from weighbridge.study.loader import check
from weighbridge.study.profiles import load_each
from weighbridge.study.source import bundled, parse

WHOLE = """
study: whole
question: Does everything come back?
hosts: {a: {kind: ssh, destination: user@a}, b: {kind: ssh, destination: user@b, config: ssh.conf}}
placement: {client: a, server: b}
inside: [server]
resources: {cpus: 1.5, cpu_period: 50ms, memory: 1GiB, pin: {server: "0", client: "1"}}
userland: {kind: image, image: "nginx:1.27"}
baseline: native
ladder: [native, host, {port: host}]
environments:
  native: {kind: native, storage: directory}
  host: {kind: docker, network: host, workloads: {udp: {request_size: 1418B}}}
  port: {kind: docker, network: bridge, publish: true, storage: overlay}
workloads:
  udp: {kind: netperf, test: UDP_RR, request_size: [mtu, 1468B], duration: 2s}
  redis: {kind: redis-benchmark, tests: "set,get", appendonly: no, clients: [10, 50], maxmemory: 64MiB}
  web: {kind: nginx-vegeta, objective: 10ms, percentile: 99%, search_from: 2000, link: none}
repetitions: {target: 2%, min: 10, max: 60, budget: 2h}
meters: {source: kernel, hz: 2}
prometheus: {url: "http://127.0.0.1:9090/", step: 500ms, queries: {load: {query: node_load1, unit: "1"}}}
"""


def frozen_and_thawed(study, directory=Path("run")):
    return thaw(StoredStudy.model_validate_json(study_json(study)), study.text, directory)


def small(**changes: str):
    parts = {
        "study": "small", "question": "What?", "baseline": "native", "environments": "{native: {kind: native}}",
        "workloads": "{web: {kind: nginx-wrk}}", **changes,
    }  # fmt: skip
    return check(parse("\n".join(f"{key}: {value}" for key, value in parts.items()), "small.yaml"))


@pytest.mark.parametrize("name", bundled())
def test_a_bundled_study_comes_back_in_each_profile(name: str):
    for _, study in load_each(name):
        again = frozen_and_thawed(study)
        without_profiles = study.file.model_copy(update={"profiles": {}})
        assert again == study.model_copy(update={"file": without_profiles})
        assert repr(again.arms) == repr(study.arms) and repr(again.cells) == repr(study.cells)


def test_every_kind_of_value_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    picture = tmp_path / "a.jpg"
    picture.write_bytes(b"x")
    monkeypatch.chdir(tmp_path)
    study = check(parse(WHOLE.replace("link: none}", "link: none, picture: a.jpg}"), "whole.yaml"))
    monkeypatch.chdir("/")  # as where the run is continued from another folder
    again = frozen_and_thawed(study)
    assert again == study
    assert again.file.hosts["b"].config == str(tmp_path / "ssh.conf")
    assert again.cells[-1].options.picture == str(picture)


# -- one sentence ----------------------------------------------------------------------------------


def thawed(document: dict) -> Study:
    return thaw(StoredStudy.model_validate_json(json.dumps(document)), "", Path("run"))


def refused(document: dict) -> str:
    with pytest.raises(RunDirectoryError) as caught:
        thawed(document)
    (sentence,) = str(caught.value).splitlines()
    assert sentence.startswith("the run in run cannot be continued: ")
    return sentence


def test_what_does_not_fit_is_told_in_one_sentence():
    whole = json.loads(study_json(small()))

    def changed(*path, value):
        document = json.loads(json.dumps(whole))
        inner = document
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        return refused(document)

    assert_sentence(changed("cells", 0, "kind", value="gone"))
    assert_sentence(changed("arms", 0, "kind", value="gone"))
    assert_sentence(changed("cells", 0, "options", "no_such", value=1))
    for wrong in (-1, 1e300, "2s", True, None):
        assert_sentence(changed("cells", 0, "options", "duration", value=wrong))
    assert_sentence(changed("file", "baseline", value="gone"))
    assert_sentence(changed("file", "hosts", value={"a": {"kind": "gone"}}))
    assert_sentence(changed("cells", 0, "client", value="gone"))
    assert_sentence(changed("arms", value=[]))
    for name in ("../../etc", "/srv/data", "", "a\nb", "native\0"):
        assert_sentence(changed("arms", 1, "name", value=name))
    assert_sentence(changed("cells", 0, "workload", value=".."))
    assert_sentence(changed("cells", 0, "disk_speed", value="\x1b[2J"))
    assert_sentence(changed("file", "hosts", value={"../a": {"kind": "local"}}))


NOT_ITS_BASELINE: tuple[dict, ...] = (
    {"kind": "docker", "options": {"network": "bridge"}}, {"options": {"storage": {"kind": "tmpfs"}}},
    {"resources": {"cpus": 4}}, {"aa_of": "other"}, {"optional": True}, {"sysctls": {"net.core.somaxconn": "9"}},
)  # fmt: skip


def test_an_aa_arm_that_is_not_its_baseline_is_refused():
    sentences = set()
    for changed in NOT_ITS_BASELINE:
        document = json.loads(study_json(small()))
        document["arms"][1] |= changed
        sentences.add(refused(document))
    (sentence,) = sentences
    assert_sentence(sentence)


def test_what_an_explaining_arm_of_a_run_brings_is_shown():
    """A hostile run adds one arm with an engine of its own, which no environment of the study has."""
    document = json.loads(study_json(small(environments="{native: {kind: native}, bridge: {kind: docker}}")))
    arm = next(each for each in document["arms"] if each["name"] == "bridge")
    assert external_resources(thawed(document)) == ()
    explains = {"environment": "bridge", "off": ["seccomp"]}
    options = {**arm["options"], "dockerd": "/opt/x/dockerd"}
    document["arms"].append({**arm, "name": "bridge-without-seccomp", "options": options, "explains": explains})
    (brought,) = external_resources(thawed(document))
    assert (brought.kind, brought.value) == (External.PROGRAM, "/opt/x/dockerd")


# -- in a run --------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path: Path) -> Path:
    with RunStore(tmp_path / "run", writable=True) as store:
        store.begin(small(), {"run_id": "0123456789ab"})
    return tmp_path / "run"


def execute(run: Path, sql: str) -> None:
    with sqlite3.connect(run / DATABASE) as file:
        file.executescript(sql)
    file.close()


def test_the_text_of_an_older_run_is_checked_once(run: Path):
    execute(run, "DELETE FROM study")
    with RunStore(run) as store:
        assert store.study() is None and running.study_of(store) == small()
    with RunStore(run, writable=True) as store:
        running._begin_or_continue(None, store, Quiet(), None)
        assert store.study() is not None
    execute(run, "UPDATE run SET value = 'x' WHERE key = 'study_text'")
    with RunStore(run) as store:
        assert running.study_of(store) == small().model_copy(update={"text": "x"})


def test_a_refused_command_leaves_an_older_run_as_it_was(run: Path):
    execute(run, "DELETE FROM study")
    with RunStore(run, writable=True) as store:
        for other, blocks in ((small(question="x"), None), (None, 1)):
            if blocks:
                store.set_info("extensions", "x")
            with pytest.raises(RunDirectoryError):
                running._begin_or_continue(other, store, Quiet(), blocks)
            assert store.study() is None


class Quiet:
    def say(self, text: str) -> None: ...


def test_what_was_approved_is_what_a_run_goes_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pictures = [tmp_path / "mine" / "a.jpg", tmp_path / "theirs" / "a.jpg"]
    for picture in pictures:
        picture.parent.mkdir()
        picture.write_bytes(b"x")
    monkeypatch.chdir(tmp_path / "theirs")
    theirs = small(workloads="{web: {kind: nginx-wrk, picture: a.jpg}}")
    monkeypatch.chdir(tmp_path / "mine")
    mine = small(workloads="{web: {kind: nginx-wrk, picture: a.jpg}}")
    with RunStore(tmp_path / "run", writable=True) as store:
        store.begin(theirs, {"run_id": "0123456789ab"})
        assert running._begin_or_continue(theirs, store, Quiet(), None) == theirs
        assert running._begin_or_continue(None, store, Quiet(), None) == theirs
        with raises_sentence(RunDirectoryError):
            running._begin_or_continue(mine, store, Quiet(), None)


@pytest.mark.parametrize(
    ("path", "value"),
    [("file.resources.cpus", "1"), ("file.cpu_idle", "'poll'"), ("cells[0].link", "'none'")],
)
def test_an_edited_study_is_not_the_one_that_was_approved(run: Path, path: str, value: str):
    execute(run, f"UPDATE study SET document = json_set(document, '$.{path}', {value})")
    with RunStore(run, writable=True) as store, raises_sentence(RunDirectoryError):
        running._begin_or_continue(small(), store, Quiet(), None)


def test_an_older_run_whose_text_no_longer_passes_says_so(run: Path):
    execute(run, "DELETE FROM study; UPDATE run SET value = replace(value, 'nginx-wrk', 'gone')")
    with RunStore(run) as store, raises_sentence(StudyError):
        running.study_of(store)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE study SET document = replace(document, 'native-again', 'other')",
        "UPDATE cell SET kind = 'iperf'",
        "UPDATE cell SET options = json_set(options, '$.duration', 77)",
        "UPDATE environment SET options = json_set(options, '$.cpu_share', 0.5)",
        *(
            f"UPDATE study SET document = json_set(document, '$.file.{key}', json('{value}'))"
            for key, value in (
                ("seed", "7"), ("equivalence", "0.5"), ("baseline", '"native-again"'), ("question", '"x"'),
                ("repetitions.blocks", "11"), ("ladder", '["native"]'),
            )
        ),
        "DELETE FROM run WHERE key = 'study_text'",
        "UPDATE study SET document = '{}'",
    ],
)  # fmt: skip
def test_a_damaged_study_is_told_when_its_run_is_continued(run: Path, damage: str):
    execute(run, damage)
    with RunStore(run) as store, raises_sentence(RunDirectoryError) as caught:
        running.study_of(store)
    assert len(str(caught.value).splitlines()) == 1
