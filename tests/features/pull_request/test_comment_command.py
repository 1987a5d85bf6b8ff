"""`weighbridge comment` against a local server: one comment, edited in place, and a token that goes nowhere else."""

import json
from pathlib import Path

import pytest

from cli.command_line import one_sentence
from report.made_up_runs import THROUGHPUT, Recipe, Workload, make_run
from sentences import assert_sentence
from weighbridge.features.pull_request import api
from weighbridge.report.comment import marker

from .service import USER, Service, served

TOKEN = "ghs_secretsecretsecret"
MARK = marker("weighbridge")
PULL = {"pull_request": {"number": 7}}
FORK = {
    "workflow_run": {
        "id": 4, "event": "pull_request", "head_sha": "a" * 40, "head_branch": "fix/#1",
        "head_repository": {"owner": {"login": "stranger"}},
    }
}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Path:
    tcp = Workload("tcp", [(THROUGHPUT, 8.66e9, 0.01)])
    make_run(tmp_path / "run", Recipe(costs={"head": 1.25}, workloads=[tcp], blocks=10)).close()
    return tmp_path / "run"


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch):
    """A local service that the variables of both CI systems name."""
    for name in ("http_proxy", "HTTP_PROXY", "GITHUB_ACTIONS", "GITLAB_CI", "GITHUB_TOKEN", "GITLAB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with served(Service()) as running:
        yield running


@pytest.fixture
def github(service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """The variables of a job of GitHub for an event; gives the file of its summary."""

    def begin(event: object = PULL, token: str | None = TOKEN) -> Path:
        (tmp_path / "event.json").write_text(event if isinstance(event, str) else json.dumps(event))
        variables = {
            "GITHUB_ACTIONS": "true", "GITHUB_API_URL": service.address, "GITHUB_REPOSITORY": "o/r",
            "GITHUB_EVENT_PATH": str(tmp_path / "event.json"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
            "GITHUB_SERVER_URL": "https://github.example", "GITHUB_RUN_ID": "5",
            **({"GITHUB_TOKEN": token} if token is not None else {}),
        }  # fmt: skip
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        return tmp_path / "summary.md"

    return begin


@pytest.fixture
def gitlab(service: Service, monkeypatch: pytest.MonkeyPatch):
    variables = {
        "GITLAB_CI": "true", "CI_API_V4_URL": service.address, "CI_MERGE_REQUEST_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_IID": "7", "CI_JOB_URL": "https://gitlab.example/o/r/-/jobs/5", "GITLAB_TOKEN": TOKEN,
    }  # fmt: skip
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    service.me = {"id": 1, "login": ""}


def test_it_is_created_once_and_then_edited(weighbridge, run, github, service):
    summary = github()
    assert weighbridge("comment", run).out == "comment created\n"
    service.comments[0]["body"] = f"old {MARK}"
    assert weighbridge("comment", run).out == "comment edited\n"
    (only,) = service.comments
    assert only["body"].startswith("**head") and only["body"].rstrip().endswith(MARK)
    assert "(https://github.example/o/r/actions/runs/5)" in only["body"]
    assert not summary.exists() and {token for *_, token in service.asked} == {f"Bearer {TOKEN}"}


def test_the_merge_request_of_gitlab(weighbridge, run, gitlab, service):
    service.add(f"not ours {MARK}", author=2)
    assert weighbridge("comment", run).code == 0
    assert weighbridge("comment", run).out == "comment edited\n"
    assert [each["body"].startswith("**head") for each in service.comments] == [False, True]
    paths = {path.partition("?")[0] for _, path, _ in service.asked}
    notes = "/api/projects/3/merge_requests/7/notes"
    assert paths == {"/api/user", notes, f"{notes}/2"} and {token for *_, token in service.asked} == {TOKEN}


def test_a_comment_on_the_second_page_is_found(weighbridge, run, github, service):
    github()
    for number in range(150):
        service.add(f"comment {number}")
    service.comments[149]["body"] = f"ours {MARK}"
    assert weighbridge("comment", run).out == "comment edited\n"
    assert len(service.comments) == 150 and service.comments[149]["body"].startswith("**head")


def test_nobody_elses_comment_is_edited_whatever_its_marker(weighbridge, run, github, service):
    github()
    others = [f"forged {MARK}", f"> {MARK}\n\nA bot answers a quoted comment."]
    service.add(others[0], login="stranger", kind="User")
    service.add(others[1], login="helper[bot]")
    assert weighbridge("comment", run).out == "comment created\n"
    assert [each["body"] for each in service.comments[:2]] == others
    service.me = {"login": USER, "type": "User"}
    mine = service.add(f"mine {MARK}", login=USER, kind="User")
    assert weighbridge("comment", run).out == "comment edited\n"
    assert service.comments[mine - 1]["body"].startswith("**head")


def test_names_tell_several_comments_apart(weighbridge, run, github, service):
    github()
    for name in ("a", "b", "a"):
        weighbridge("comment", run, "--name", name)
    assert [each["body"].splitlines()[-1] for each in service.comments] == [marker("a"), marker("b")]


def test_what_a_gate_wrote_is_posted_too(weighbridge, run, github, service, tmp_path):
    github()
    (tmp_path / "gate.md").write_text("## The gate\n")
    file = tmp_path / "comment.md"
    weighbridge("comment", run, "--add", tmp_path / "gate.md", "--markdown", file)
    assert "## The gate" in service.comments[0]["body"] and file.read_text() == service.comments[0]["body"]


@pytest.mark.parametrize("status", [403, 404])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_token_that_only_reads_leaves_the_text_in_the_summary(weighbridge, run, github, service, status, method):
    summary = github()
    service.faults[method] = (status, b'{"message": "Resource not accessible by integration"}', {})
    said = weighbridge("comment", run)
    assert said.code == 0 and summary.read_text().startswith("**head") and service.comments == []
    assert_sentence(said.err)


def test_without_a_token_nothing_is_asked(weighbridge, run, github, service):
    summary = github(token=None)
    assert_sentence(weighbridge("comment", run).err)
    assert summary.read_text().startswith("**head") and service.asked == []


HUGE = b"[" + b" " * (api.LARGEST_ANSWER + 1)
FAULTS = {
    "500": (500, b"", {}), "garbage": (200, b"<html>", {}), "another-form": (200, b'{"a": 1}', {}),
    "huge": (200, HUGE, {}), "401": (401, b"{}", {}), "minus": (200, b'[{"id": -1}]', {}),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_a_service_that_fails_is_one_sentence(weighbridge, run, github, service, fault, monkeypatch):
    github()
    monkeypatch.setattr("weighbridge.features.pull_request.services.MOST_PAGES", 2)
    service.faults["GET"] = FAULTS[fault]
    said = weighbridge("comment", run)
    assert said.code == 1 and len(said.err.splitlines()) == 1 and TOKEN not in said.err
    assert_sentence(said.err.replace(service.address, "API"))


def test_a_comment_that_was_deleted_meanwhile_is_created_again(weighbridge, run, github, service):
    github()
    service.add(f"old {MARK}")
    service.faults["PATCH"] = (404, b"{}", {})
    assert weighbridge("comment", run).out == "comment created\n"


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_other_host_gets_the_token(weighbridge, run, github, service, status, method):
    github()
    with served(Service()) as elsewhere:
        service.faults[method] = (status, b"", {"Location": f"{elsewhere.address}/user"})
        said = weighbridge("comment", run)
    assert said.code == 1 and elsewhere.asked == [] and TOKEN not in said.err
    assert_sentence(said.err.replace(service.address, "API"))


def test_nobody_answers(weighbridge, run, github, service, monkeypatch):
    github()
    monkeypatch.setenv("GITHUB_API_URL", "http://127.0.0.1:1/api")
    one_sentence(weighbridge("comment", run), 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_API_URL", "file:///etc"), ("GITHUB_API_URL", "http://user@host/"), ("GITHUB_API_URL", ""),
        ("GITHUB_API_URL", "http://a..b/"),
        ("GITHUB_REPOSITORY", "o/../r"), ("GITHUB_REPOSITORY", "o/.."), ("GITHUB_TOKEN", "a b"),
        ("GITHUB_TOKEN", "a\nX-Evil: 1"), ("GITHUB_EVENT_PATH", "/nowhere"),
    ],
)  # fmt: skip
def test_a_wrong_variable_is_one_sentence(weighbridge, run, github, service, monkeypatch, name, value):
    github()
    monkeypatch.setenv(name, value)
    one_sentence(weighbridge("comment", run), 1)
    assert service.asked == []


@pytest.mark.parametrize(
    "event", ["", "[]", '{"pull_request": {"number": "../1"}}', '{"pull_request": {"number": 0}}']
)
def test_another_form_of_event_is_one_sentence(weighbridge, run, github, service, event):
    github(event)
    one_sentence(weighbridge("comment", run), 1)
    assert service.asked == []


def test_a_push_has_no_pull_request(weighbridge, run, github, service):
    summary = github({"after": "x"})
    said = weighbridge("comment", run)
    assert said.code == 0 and service.asked == [] and summary.read_text().startswith("**head")
    assert_sentence(said.err)


def test_the_run_of_a_forks_job_is_posted_to_the_pull_request_of_its_commit(weighbridge, run, github, service):
    github(FORK)
    service.pulls = [{"number": 6, "head": {"sha": "b" * 40}}, {"number": 7, "head": {"sha": "a" * 40}}]
    assert weighbridge("comment", run).out == "comment created\n"
    assert "/api/repos/o/r/issues/7/comments" in {path for _, path, _ in service.asked}
    assert any("head=stranger%3Afix%2F%231" in path for _, path, _ in service.asked)
    body = service.comments[0]["body"]
    assert "Do not take these figures as proof" in body
    assert "https://github.example/o/r/actions/runs/4)" in body, "the measuring job has the report, not this one"


def test_a_forks_older_commit_is_not_posted(weighbridge, run, github, service):
    github(FORK)
    service.pulls = [{"number": 7, "head": {"sha": "b" * 40}}]
    assert_sentence(weighbridge("comment", run).err)
    assert service.comments == []


def test_a_forks_run_is_checked_before_it_is_read(weighbridge, run, github, service, tmp_path, monkeypatch):
    github(FORK)
    (tmp_path / "gate.md").write_text("@everybody")
    one_sentence(weighbridge("comment", run, "--add", tmp_path / "gate.md"), 2)
    monkeypatch.setattr("weighbridge.features.pull_request.comment_command.MOST_UNPACKED", 2**20)
    with (run / "run.sqlite").open("ab") as file:
        file.truncate(2**21)
    one_sentence(weighbridge("comment", run), 6)
    assert service.asked == []


@pytest.mark.parametrize("words", [("--name", "a b"), ("--page", "ftp://a"), (), ("--markdown", "-", "--json")])
def test_a_wrong_command_line_is_one_sentence(weighbridge, run, service, words):
    one_sentence(weighbridge("comment", run, *words), 2)


def test_outside_of_ci_it_is_a_file(weighbridge, run, service, tmp_path):
    said = weighbridge("comment", run, "--markdown", tmp_path / "a.md")
    assert said.code == 0 and said.out == ""
    assert_sentence(said.err)
    text, shown = (tmp_path / "a.md").read_text(), weighbridge("comment", run, "--markdown", "-")
    assert text.startswith("**head") and (shown.out, shown.err) == (text, "")


def test_no_token_is_posted_whatever_the_build_left(weighbridge, run, github, service, tmp_path):
    """The build of a pull request runs in the same job, and can write any file."""
    github()
    (tmp_path / "environ").write_text(f"GITHUB_TOKEN={TOKEN}")
    (run / "gate.md").symlink_to(tmp_path / "environ")
    assert_sentence(weighbridge("comment", run, "--add", run / "gate.md").err)
    weighbridge("comment", run, "--add", tmp_path / "environ", "--markdown", tmp_path / "comment.md")
    (only,) = service.comments
    assert TOKEN not in only["body"] + (tmp_path / "comment.md").read_text()
    (tmp_path / "link.md").symlink_to(tmp_path / "other")
    assert weighbridge("comment", run, "--markdown", tmp_path / "link.md").code == 1
    assert not (tmp_path / "other").exists()
