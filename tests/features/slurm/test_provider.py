"""What the provider asks of Slurm 22.05's commands, and what it makes of their answers, whole, damaged or none."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sentences import assert_sentence, raises_sentence
from weighbridge.errors import Unavailable
from weighbridge.features.fleets.folder import FleetFolder
from weighbridge.features.fleets.machine_provider import Submission
from weighbridge.features.fleets.providers import provided_by
from weighbridge.features.slurm import client as slurm
from weighbridge.features.slurm.fleets import slurm as provider
from weighbridge.features.slurm.fleets.slurm import (
    PLUGIN,
    SlurmProviderOptions,
    accounted_state,
    job_number,
    partitions,
    queue_states,
)
from weighbridge.model.command import Completed

Answer = tuple[int, str, str]
INVALID = (1, "", "slurm_load_jobs error: Invalid job id specified\n")
NO_CONTROLLER = (
    1,
    "",
    "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n",
)
NO_ACCOUNTING = (1, "", "Slurm accounting storage is disabled\n")
PARTITIONS = "compute*|3|up\nclosed|3|down\n"
FOLDER = Path("/fleet")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[str, ...]]]:
    """Have each program answer so; the commands that were called are kept."""

    def having(**said: Answer) -> list[tuple[str, ...]]:
        called: list[tuple[str, ...]] = []

        def call(*argv: str) -> Completed:
            called.append(argv)
            code, out, err = said[argv[0]] if "--format=%Z" not in argv else (0, f"{FOLDER}\n", "")
            return Completed(argv, code, out.encode(), err.encode(), 0.1)

        monkeypatch.setattr(slurm, "call", call)
        return called

    return having


def options(**named: object) -> SlurmProviderOptions:
    return SlurmProviderOptions.model_validate({"nodes": 2, **named})


def submission(folder: Path, *, seconds: tuple[float, float] = (1000.0, 2000.0)) -> Submission:
    return Submission(("/py", "-m", "weighbridge", "fleet", "drive", str(folder)), folder, "a b;c", True, seconds)


STATES: Mapping[str, tuple[Answer, Answer, str, str]] = {
    "waits": ((0, "PENDING|Resources\n", ""), NO_ACCOUNTING, "waiting", "job 17 PENDING (Resources)"),
    "held": ((0, "REQUEUE_HOLD|job requeued in held state\n", ""), NO_ACCOUNTING, "waiting",
             "job 17 REQUEUE_HOLD (job requeued in held state)"),
    "runs": ((0, "RUNNING|None\n", ""), NO_ACCOUNTING, "running", "job 17 RUNNING"),
    "ends": ((0, "COMPLETING|None\n", ""), NO_ACCOUNTING, "running", "job 17 COMPLETING"),
    "has ended": ((0, "CANCELLED|None\n", ""), NO_ACCOUNTING, "ended", "job 17 CANCELLED"),
    "time limit": ((0, "TIMEOUT|TimeLimit\n", ""), NO_ACCOUNTING, "ended", "job 17 TIMEOUT (TimeLimit)"),
    "array": ((0, "PENDING|JobArrayTaskLimit\nRUNNING|None\nRUNNING|None\n", ""), NO_ACCOUNTING, "running",
              "job 17 1 PENDING, 2 RUNNING (JobArrayTaskLimit)"),
    "not shared": ((0, "FAILED|JobLaunchFailure\n", ""), NO_ACCOUNTING, "ended",
                   "job 17 FAILED (its node could not start it: put --out on storage that all nodes share)"),
    "killed": ((0, "FAILED|JobLaunchFailure\n", ""), NO_ACCOUNTING, "ended",
               "job 17 FAILED (the driver was killed by signal 9)"),
    "forgotten": (INVALID, NO_ACCOUNTING, "ended", "job 17"),
    "accounted": (INVALID, (0, "CANCELLED by 0\n", ""), "ended", "job 17 CANCELLED by 0"),
    "requeued": (INVALID, (0, "NODE_FAIL\nCOMPLETED\n", ""), "ended", "job 17 COMPLETED"),
    "empty": ((0, "", ""), (0, "", ""), "ended", "job 17"),
    "cut": ((0, "RUNN", ""), (0, "", ""), "ended", "job 17"),
    "no controller": (NO_CONTROLLER, NO_ACCOUNTING, "unknown", "Slurm's controller does not answer. Try: "
        "scontrol ping"),
}  # fmt: skip


@pytest.mark.parametrize("what", STATES)
def test_the_state_of_a_job(answers: Callable[..., object], what: str):
    queue, accounting, state, detail = STATES[what]
    shown = f"JobId=17 JobState=FAILED ExitCode=0:{53 if what == 'not shared' else 9} NodeList=n1\n"
    answers(squeue=queue, sacct=accounting, scontrol=(0, shown, ""))
    known = PLUGIN.state(options(), "17")
    assert (known.state, known.detail) == (state, detail)


def test_how_many_nodes_has_to_be_said():
    with pytest.raises(ValueError, match="--on slurm needs --nodes"):
        provided_by("slurm", {})


def test_no_program_is_no_state(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(slurm, "which", lambda _: None)
    assert PLUGIN.state(options(), "17").state == "unknown"


def test_a_job_is_submitted_with_the_words_of_the_user(answers: Callable[..., list[tuple[str, ...]]], tmp_path: Path):
    called = answers(sbatch=(0, "17\n", ""))
    asked = options(partition="compute", account="lab", sbatch=["--mail-type=END"])
    folder = tmp_path / "50%"
    folder.mkdir()
    assert PLUGIN.submit(asked, submission(folder)) == "17"
    argv = called[0]
    assert {"--nodes=2", "--exclusive", "--partition=compute", "--account=lab", "--mail-type=END"} <= {*argv}
    assert "--job-name=weighbridge-a-b-c" in argv and "--time=84" in argv
    assert f"--output={tmp_path}/50%%/drive.log" in argv
    assert argv[argv.index("--") + 1 :] == (str(folder / "job.sh"), *submission(folder).argv)
    assert (folder / "job.sh").read_text().endswith('exec "$@"\n')


def test_a_fleet_that_goes_on_asks_for_the_nodes_it_had(
    answers: Callable[..., list[tuple[str, ...]]], tmp_path: Path
):
    FleetFolder(tmp_path).note_machines(("n1", "n2", "n3"))
    called = answers(sbatch=(0, "18\n", ""), sinfo=(0, "n1|idle\nn2|down\nn3|allocated\nn3|allocated\n", ""))
    PLUGIN.submit(options(), submission(tmp_path))
    assert "--nodelist=n1,n3" in called[-1]
    called.clear()
    PLUGIN.submit(options(nodelist="n7"), submission(tmp_path))
    assert [word for word in called[-1] if "nodelist" in word] == ["--nodelist=n7"]
    answers(sbatch=(0, "18\n", ""), sinfo=(0, "n1|idle*\nn2|drained\ncut", ""))
    assert PLUGIN.submit(options(), submission(tmp_path)) == "18"


def test_an_array_has_a_job_for_each_node_that_is_not_measured(
    answers: Callable[..., list[tuple[str, ...]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    called = answers(sbatch=(0, "18\n", ""), squeue=(0, "RUNNING|None\n", ""), scancel=(0, "", ""))
    asked = options(nodes=5, array=2, exclude="n9")
    for name in ("n1", "n2", "alone--n3--n4"):
        (tmp_path / "runs" / name).mkdir(parents=True)
    monkeypatch.setattr(FleetFolder, "is_finished", lambda _, unit: unit.name != "n2")
    single = replace(submission(tmp_path), pairs=False)
    PLUGIN.submit(asked, single)
    assert {"--array=1-4%2", "--nodes=1", "--exclude=n9,n1"} <= {*called[-1]}
    with raises_sentence(Unavailable):
        PLUGIN.submit(asked, replace(single, pairs=True))
    PLUGIN.cancel(asked, "18", FOLDER)
    assert [each[:3] for each in called if each[0] == "scancel"] == [
        ("scancel", "--state=PENDING", "18"), ("scancel", "--batch", "--signal=TERM"),
    ]  # fmt: skip
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "3")
    assert PLUGIN.part(asked) == "3" and PLUGIN.part(options()) == ""


def test_jobs_of_an_array_that_wait_get_no_node_that_another_had(
    answers: Callable[..., list[tuple[str, ...]]], monkeypatch: pytest.MonkeyPatch
):
    shown = (
        "JobId=18 ArrayJobId=18 ArrayTaskId=3-4%2 JobState=PENDING NodeList=(null) ExcNodeList=n[8-9]\n"
        "JobId=20 ArrayJobId=18 ArrayTaskId=2 JobState=RUNNING NodeList=n5 ExcNodeList=n[8-9]\n"
    )
    called = answers(scontrol=(0, shown, ""), squeue=(0, "\nn5\nn2\n", ""))
    monkeypatch.setattr(provider.slurm, "job_nodes", lambda: ("n5",))
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "18")
    assert PLUGIN.allotted(options(nodes=4, array=2)) == ("n5",)
    assert called[-1] == ("scontrol", "update", "jobid=18", "ExcNodeList=n2,n5,n[8-9]")
    answers(scontrol=INVALID)
    assert PLUGIN.allotted(options(nodes=4, array=2)) == ("n5",)


@pytest.mark.parametrize("printed", ["", "sbatch: warning\n", "-1", "17; rm", "seventeen"])
def test_what_is_no_number_of_a_job_is_refused(printed: str):
    with raises_sentence(Unavailable):
        job_number(printed)


def test_a_job_of_another_cluster(answers: Callable[..., list[tuple[str, ...]]]):
    called = answers(squeue=(0, "PENDING|Priority\n", ""), scancel=(0, "", ""))
    assert job_number("sbatch: lua: hello\n17;west\n") == "17;west"
    PLUGIN.cancel(options(), "17;west", FOLDER)
    assert called[0][-2:] == called[1][-2:] == ("--clusters=west", "--jobs=17") and called[2] == (
        "scancel",
        "--state=PENDING",
        "--clusters=west",
        "17",
    )


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("PENDING|Resources", [("scancel", "--state=PENDING", "17")]),
        ("RUNNING|None", [("scancel", "--batch", "--signal=TERM", "17")]),
        ("COMPLETED|None", []),
    ],
)
def test_how_a_job_is_cancelled(answers: Callable[..., list[tuple[str, ...]]], state: str, words: list[object]):
    called = answers(squeue=(0, state, ""), scancel=(0, "", ""), sacct=NO_ACCOUNTING)
    PLUGIN.cancel(options(), "17", FOLDER)
    assert [each for each in called if each[0] == "scancel"] == words
    called.clear()
    if words:  # somebody else's folder may name any job
        with raises_sentence(Unavailable):
            PLUGIN.cancel(options(), "17", Path("/another"))
    assert "scancel" not in {each[0] for each in called}


@pytest.mark.parametrize("job", ["--user=root", "", "17 18", "17;--me=x y", "17\n", "1" * 65536])
def test_what_a_folder_names_is_no_option_of_slurms_programs(answers: Callable[..., list[tuple[str, ...]]], job: str):
    called = answers(squeue=(0, "PENDING|None", ""), scancel=(0, "", ""), sacct=NO_ACCOUNTING)
    assert PLUGIN.state(options(), job).state == "unknown"
    with pytest.raises(Unavailable, match="is not a Slurm job"):
        PLUGIN.cancel(options(), job, FOLDER)
    assert called == []


REFUSED = [
    "sbatch: error: Batch job submission failed: Requested node configuration is not available\n",
    "sbatch: error: invalid partition specified: nowhere\n"
    "sbatch: error: Batch job submission failed: Invalid partition name specified\n",
    "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified\n",
    "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size "
    "and/or time limits)\n",
    "sbatch: error: Batch job submission failed: Required partition not available (inactive or drain)\n",
    "sbatch: error: Invalid --time specification\n",
    "sbatch: error: Slurm temporarily unable to accept job, sleeping and retrying\n",
    "",
]


@pytest.mark.parametrize("said", REFUSED)
def test_a_job_that_is_refused(answers: Callable[..., object], said: str, tmp_path: Path):
    answers(sbatch=(1, "", said))
    with raises_sentence(Unavailable):
        PLUGIN.submit(options(), submission(tmp_path))
    assert not [*tmp_path.iterdir()]


def test_more_nodes_than_the_partition_has(answers: Callable[..., object]):
    answers(sinfo=(0, PARTITIONS, ""))
    assert PLUGIN.count(options(nodes=3)) == 3
    with raises_sentence(Unavailable):
        PLUGIN.count(options(nodes=4))
    with raises_sentence(Unavailable):
        PLUGIN.count(options(partition="nowhere"))
    unknown = PLUGIN.ready(options(partition="nowhere"))
    assert not unknown.ready and "nowhere" in unknown.detail


def test_fewer_nodes_allotted_than_asked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setattr(slurm, "job_nodes", lambda: ("n1", "n2"))
    assert PLUGIN.allotted(options()) == ("n1", "n2")
    with raises_sentence(Unavailable):
        PLUGIN.allotted(options(nodes=3))


def test_a_run_is_a_step_on_its_first_machine(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    command = PLUGIN.command(options(), ("n2", "n3"), ("python3", "-m", "weighbridge"))
    assert "--nodelist=n2" in command and command[-3:] == ("python3", "-m", "weighbridge")
    assert PLUGIN.hosts(options(), ("n2", "n3")) == (
        {"kind": "slurm", "node": "n2"}, {"kind": "slurm", "node": "n3"},
    )  # fmt: skip


def test_further_options_of_sbatch_on_the_command_line():
    assert options(sbatch="--mail-type=END '--comment=a b'").words == ("--mail-type=END", "--comment=a b")


@pytest.mark.parametrize("words", [["job.sh"], ["--Time=1"], ["-p", "compute"], ["--", "x"]])
def test_what_is_no_option_is_not_passed_on(words: list[str]):
    with pytest.raises(ValidationError):
        options(sbatch=words)


@given(st.text())
def test_whatever_is_printed_is_read_or_left(printed: str):
    assert all(each.name for each in partitions(printed))
    assert all(state for state, _ in queue_states(printed))
    assert isinstance(accounted_state(printed), str)


def test_the_partitions(answers: Callable[..., object]):
    assert [(each.name, each.default, each.nodes) for each in partitions(PARTITIONS + "cut|")] == [
        ("compute", True, 3), ("closed", False, 3),
    ]  # fmt: skip
    assert provider.partitions("") == []


def test_a_partition_that_is_down_is_told(answers: Callable[..., object]):
    answers(sinfo=(0, PARTITIONS, ""))
    assert PLUGIN.notes(options()) == PLUGIN.notes(options(partition="closed,compute")) == ()
    [note] = PLUGIN.notes(options(partition="closed"))
    assert_sentence(note)
    answers(sinfo=NO_CONTROLLER)
    assert PLUGIN.notes(options(partition="closed")) == ()
