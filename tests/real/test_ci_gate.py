"""`ci/gate.sh` as shells run it, with a program in the place of weighbridge that writes down how it was called."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML

CI = Path(__file__).parents[2] / "ci"
SHELLS = [shell for shell in ("dash", "bash", "busybox") if shutil.which(shell)]
NASTY = ("'; touch x; ' $(touch x) ${HOME} `touch x` \\ * \" a b é", "-n", "--help")


@pytest.fixture(params=SHELLS)
def gate(request, tmp_path: Path):
    """Runs the script in an empty folder; gives its result and the calls that it made."""
    here, calls = tmp_path / "here", tmp_path / "calls"
    here.mkdir()
    fake = tmp_path / "bin" / "weighbridge"
    fake.parent.mkdir()
    fake.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        "open(os.environ['CALLS'], 'a').write(json.dumps(sys.argv[1:]) + '\\n')\n"
        "print('[]')\n"
        "sys.exit(int(os.environ.get(f'CODE_{sys.argv[1]}', '0')))\n"
    )
    fake.chmod(0o755)
    shell = [request.param, "sh"] if request.param == "busybox" else [request.param]

    def call(**variables: str):
        calls.unlink(missing_ok=True)
        known = {"PATH": f"{fake.parent}:{os.environ['PATH']}", "CALLS": str(calls), **variables}
        done = subprocess.run(
            [*shell, str(CI / "gate.sh")], cwd=here, env=known, capture_output=True, text=True, check=False
        )
        made = [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else []
        return done, made, here

    return call


def test_a_run_is_judged(gate):
    done, calls, _ = gate(WB_RUN="runs/one", WB_BUDGETS="bridge.tcp.throughput<=35%\n\n  \n*.p99<=10%\n")
    budgets = ["--budget", "bridge.tcp.throughput<=35%", "--budget", "*.p99<=10%"]
    assert (done.returncode, calls) == (0, [["gate", "--yes", *budgets, "--", "runs/one"]])


def test_a_study_is_run_first(gate):
    done, calls, _ = gate(WB_STUDY="costs.yaml", WB_PROFILE="quick", WB_BUDGETS="*<=9%", WB_EXTEND="10min")
    assert done.returncode == 0
    assert calls == [
        ["run", "--yes", "--out", "weighbridge-run", "--profile", "quick", "--", "costs.yaml"],
        ["gate", "--yes", "--budget", "*<=9%", "--extend", "10min", "--", "weighbridge-run"],
    ]


def test_a_program_is_weighed_first(gate):
    done, calls, here = gate(
        WB_COMMAND="./prog  --size * $(touch x)", WB_IN="docker,gvisor", WB_WITHIN="5min", WB_BUDGETS="*.time<=10%",
        WB_MARKDOWN="summary.md",
    )  # fmt: skip
    weigh = ["weigh", "--out", "weighbridge-run", "--in", "docker,gvisor", "--within", "5min"]
    assert done.returncode == 0
    assert calls == [
        [*weigh, "--", "./prog", "--size", "*", "$(touch", "x)"],
        ["report", "--", "weighbridge-run"],
        ["gate", "--yes", "--budget", "*.time<=10%", "--markdown", "summary.md", "--", "weighbridge-run"],
    ]
    assert (here / "summary.md").read_text() == "```text\n[]\n```\n\n"


def test_a_program_without_budgets_is_weighed_alone(gate):
    done, calls, _ = gate(WB_IMAGE="shop:1.5", CODE_weigh="9")
    assert (done.returncode, calls) == (
        9, [["weigh", "--out", "weighbridge-run", "--in", "docker", "--image", "shop:1.5", "--"]],
    )  # fmt: skip


def test_a_program_is_weighed_in_docker_or_not_at_all(gate):
    """Without an engine, `weigh` alone takes a network namespace, and the gate passed."""
    done, (weighed,), _ = gate(WB_COMMAND="./prog", WB_BUDGETS="*.time<=10%", CODE_weigh="4")
    assert done.returncode == 4 and weighed[3:5] == ["--in", "docker"]


@pytest.mark.parametrize("measured", [{"WB_COMMAND": "./crash.sh"}, {"WB_STUDY": "s"}])
@pytest.mark.parametrize(("gated", "ends"), [(12, 9), (0, 0), (11, 11), (10, 10), (2, 2)])
def test_undecided_as_trials_failed_is_no_warning(gate, measured, gated, ends, tmp_path):
    """A job may be allowed to end with 12 (GitLab's template): a program that crashes in every trial passed."""
    output, codes = tmp_path / "output", {"CODE_weigh": "9", "CODE_run": "9", "CODE_gate": str(gated)}
    done, calls, _ = gate(WB_BUDGETS="*.time<=10%", GITHUB_OUTPUT=str(output), **measured, **codes)
    assert (done.returncode, calls[-1][0]) == (ends, "gate")
    assert (output.read_text() == "answer=error\n") == (ends in (9, 2))


@pytest.mark.parametrize("variables", [
    {"WB_MARGIN": "3%", "WB_AGAINST": ""}, {"WB_MARGIN": "3%", "WB_BUDGETS": "*.time<=10%"}, {"WB_AGAINST": "old"},
    {"WB_EXTEND": "10min"},
])  # fmt: skip
@pytest.mark.parametrize("measured", ["WB_COMMAND", "WB_STUDY", "WB_RUN"])
def test_what_would_be_ignored_is_refused_before_anything_is_measured(gate, measured, variables):
    """The path of an artifact that was missing was empty: no gate ran, and the job passed."""
    done, calls, _ = gate(**{measured: "x"}, **variables)
    assert (done.returncode, calls) == (2, []) and next(iter(variables)) in done.stderr


def test_a_program_and_a_study_are_not_run_both(gate):
    done, calls, _ = gate(WB_COMMAND="true", WB_STUDY="s")
    assert (done.returncode, calls) == (2, []) and "not both" in done.stderr


def test_two_versions_are_weighed_and_the_gate_s_table_is_kept_for_the_comment(gate):
    done, calls, _ = gate(
        WB_BASE="main", WB_HEAD="topic", WB_BUILD="make -j 'a b'", WB_COMMAND="./prog --bench", WB_BUDGETS="*<=3%",
        WB_BUDGET_FILE="budgets.txt", WB_EXTEND="9min", WB_MARKDOWN="summary.md", WB_RUN="run",
    )  # fmt: skip
    weigh = ["weigh", "--out", "run", "--base", "main", "--head", "topic", "--build", "make -j 'a b'", "--keep-trees"]
    budgets = ["--budget", "*<=3%", "--budget-file", "budgets.txt", "--extend", "9min", "--markdown", "run/gate.md"]
    assert done.returncode == 0, done.stderr
    assert calls == [
        [*weigh, "--markdown", "summary.md", "--", "./prog", "--bench"], ["gate", "--yes", *budgets, "--", "run"],
        ["clean"],
    ]  # fmt: skip


def test_several_programs_are_weighed_together(gate):
    done, (weighed,), _ = gate(WB_BASE="main", WB_COMMANDS="a=./a 'x y'\n\nb=./b\n", WB_IN="docker")
    assert done.returncode == 0
    assert weighed[3:] == ["--base", "main", "--in", "docker", "--command", "a=./a 'x y'", "--command", "b=./b", "--"]


@pytest.mark.parametrize("variables", [
    {"WB_HEAD": "x"}, {"WB_BUILD": "make"}, {"WB_BASE": "x", "WB_IMAGE": "y"}, {"WB_BASE": "x", "WB_STUDY": "y"},
])  # fmt: skip
def test_versions_of_nothing_are_refused(gate, variables):
    done, calls, _ = gate(WB_RUN="r", **variables)
    assert (done.returncode, calls) == (2, []) and "WB_BASE" in done.stderr


def test_only_the_step_that_posts_has_the_token(gate, tmp_path):
    fake = tmp_path / "bin" / "weighbridge"
    fake.write_text(fake.read_text().replace("print('[]')", "print(sorted(x for x in os.environ if 'TOKEN' in x))"))
    tokens = {"GITHUB_TOKEN": "a", "GITLAB_TOKEN": "b"}
    assert gate(WB_COMMAND="./prog", **tokens)[0].stdout == "[]\n"
    (tmp_path / "here/run").mkdir()
    (tmp_path / "here/run/run.sqlite").touch()
    (tmp_path / "here/run/gate.md").touch()
    step = {"WB_STEP": "comment", "WB_RUN": "run", "WB_COMMENT_NAME": "a", "WB_PAGE": "https://b"}
    done, calls, _ = gate(**step, **tokens)
    named = ["comment", "--name", "a", "--page", "https://b"]
    files = ["--markdown", "run/comment.md", "--add", "run/gate.md"]
    assert (done.stdout, calls) == ("['GITHUB_TOKEN', 'GITLAB_TOKEN']\n", [[*named, *files, "--", "run"]])
    assert gate(**step, GITHUB_EVENT_NAME="workflow_run")[1] == [[*named, "--", "run"]], "a stranger's files"


def test_without_a_run_nothing_is_posted(gate):
    done, calls, _ = gate(WB_STEP="comment", WB_RUN="none")
    assert (done.returncode, calls) == (0, []) and "nothing to post" in done.stderr


@pytest.mark.parametrize("code", [0, 10, 11, 12, 2, 6, 130])
def test_the_gate_s_exit_code_is_the_script_s(gate, code, tmp_path):
    output = tmp_path / "output"
    done, _, _ = gate(WB_RUN="r", CODE_gate=str(code), GITHUB_OUTPUT=str(output))
    answer = {0: "passed", 10: "untrusted", 11: "failed", 12: "undecided"}.get(code, "error")
    assert done.returncode == code and output.read_text() == f"answer={answer}\n"


@pytest.mark.parametrize(("code", "calls_of_gate"), [(0, 1), (9, 1), (4, 0), (3, 0)])
def test_a_study_that_cannot_be_run_is_not_judged(gate, code, calls_of_gate):
    done, calls, _ = gate(WB_STUDY="s", CODE_run=str(code))
    assert sum(call[0] == "gate" for call in calls) == calls_of_gate
    assert done.returncode == (0 if calls_of_gate else code)


@pytest.mark.parametrize("text", NASTY)
def test_no_input_is_read_by_a_shell_again(gate, text):
    names = ("RUN", "PROFILE", "EXTEND", "AGAINST", "MARGIN", "JUNIT", "MARKDOWN", "BMF", "ANNOTATIONS")
    done, (run, shown, judged), here = gate(
        WB_STUDY=text, WB_BUDGETS=f"{text}\n{text}", **{f"WB_{name}": f"{text}{name}" for name in names}
    )
    assert done.returncode == 0 and [path.name for path in here.iterdir()] == [f"{text}MARKDOWN"]
    assert shown == ["report", "--", f"{text}RUN"]
    assert run == ["run", "--yes", "--out", f"{text}RUN", "--profile", f"{text}PROFILE", "--", text]
    options = [word for name in names[2:] for word in (f"--{name.lower()}", f"{text}{name}")]
    assert judged == ["gate", "--yes", "--budget", text, "--budget", text, *options, "--", f"{text}RUN"]


def test_the_program_may_be_a_command_of_words(gate, tmp_path):
    fake = tmp_path / "bin" / "weighbridge"
    done, calls, here = gate(WB_RUN="r", WEIGHBRIDGE=f"{sys.executable} -I {fake}")
    assert (done.returncode, calls) == (0, [["gate", "--yes", "--", "r"]])
    spaced = fake.rename(tmp_path / "bin" / "weigh bridge")
    done, calls, _ = gate(WB_RUN="r", WEIGHBRIDGE=str(spaced))
    assert (done.returncode, calls) == (0, [["gate", "--yes", "--", "r"]])
    (here / "file").touch()
    done, calls, _ = gate(WB_RUN="r", WEIGHBRIDGE=f"{sys.executable} '{spaced}'")
    assert done.returncode != 0 and calls == [], "quotes are letters"


@pytest.mark.parametrize("text", NASTY)
def test_no_word_of_the_program_is_read_by_a_shell(gate, tmp_path, text):
    fake = tmp_path / "bin" / "weighbridge"
    done, ((*given, gated, _, _, run),), here = gate(WB_RUN="r", WEIGHBRIDGE=f"{sys.executable} {fake} {text} $(x) *")
    assert (given, gated, run) == ([*text.split(), "$(x)", "*"], "gate", "r")
    assert list(here.iterdir()) == [] and done.returncode == 0


def test_a_program_of_blanks_is_the_usual_one(gate):
    assert gate(WB_RUN="r", WEIGHBRIDGE="  ")[1] == [["gate", "--yes", "--", "r"]]


def test_gitlab_s_report_goes_to_a_file(gate):
    done, _, here = gate(WB_RUN="r", WB_ANNOTATIONS="gitlab", CODE_gate="11")
    assert done.returncode == 11 and done.stdout == ""
    assert json.loads((here / "gl-code-quality-report.json").read_text()) == []


def test_nothing_to_judge(gate):
    done, calls, _ = gate(WB_BUDGETS="*<=5%")
    assert (done.returncode, calls) == (2, []) and "WB_STUDY" in done.stderr


ACTION = YAML(typ="safe").load(CI.parent / "action.yml")
JOBS = YAML(typ="safe").load(CI / "gitlab/weighbridge.yml")
JOB, PULL = JOBS[".weighbridge-gate"], JOBS[".weighbridge-merge-request"]

BLOCKS = {
    **{f"action.yml {each['id']}": each["run"] for each in ACTION["runs"]["steps"] if "run" in each},
    **{f"{name} {key}": "\n".join(job[key]) for name, job in JOBS.items() for key in job if key.endswith("script")},
    **{path.name: path.read_text() for path in (CI / "gate.sh", *(CI.parent / "scripts").glob("*.sh"))},
}
"""The scripts for users and their CI jobs."""


@pytest.mark.parametrize("block", BLOCKS)
def test_shellcheck_has_nothing_to_say(block: str):
    if not shutil.which("shellcheck"):
        pytest.skip("shellcheck is not installed")
    done = subprocess.run(
        ["shellcheck", "--shell=sh", "-"], input=BLOCKS[block], capture_output=True, text=True, check=False
    )
    assert done.stdout == ""


def test_the_action_and_the_template_hand_over_what_the_script_reads():
    script = (CI / "gate.sh").read_text()
    steps = {step["id"]: step for step in ACTION["runs"]["steps"]}
    assert ACTION["runs"]["using"] == "composite" and all(step.get("shell", "sh") == "sh" for step in steps.values())
    assert not any("${{" in step.get("run", "") for step in steps.values()), "a shell would read an input as its text"
    assert ACTION["outputs"]["answer"]["value"] == "${{ steps.gate.outputs.answer }}"
    for name, value in {**steps["comment"]["env"], **steps["gate"]["env"]}.items():
        if name == "GITHUB_TOKEN":
            continue
        assert f"${{{name}:-" in script, name
        if value.startswith("$") and name != "WB_BASE":
            assert value.removeprefix("${{ inputs.").removesuffix(" }}") in ACTION["inputs"]
    assert "GITHUB_TOKEN" not in steps["gate"]["env"], "the program would get it"
    assert JOB["script"] == ['sh "$WB_CI/gate.sh"']
    variables = {**JOB["variables"], **PULL["variables"]}
    assert all(f"${{{name}:-" in script for name in variables if name not in ("WB_CI", "WB_PACKAGE", "GIT_DEPTH"))
    written = {JOB["variables"][name] for name in ("WB_JUNIT", "WB_CODE_QUALITY")}
    assert set(JOB["artifacts"]["reports"].values()) == written and "$WB_RUN" in JOB["artifacts"]["paths"]
