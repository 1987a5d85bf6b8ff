"""With which options and variables ssh is started: a study's configuration cannot weaken it, the user's own can."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from weighbridge.errors import Unavailable
from weighbridge.hosts.options import SshOptions
from weighbridge.hosts.ssh import connect
from weighbridge.model.command import Command, Completed

SECRETS = {"AWS_SECRET_ACCESS_KEY": "s3cr3t", "GITHUB_TOKEN": "s3cr3t"}
NEEDED = {"HOME": "/root", "PATH": "/bin", "SSH_AUTH_SOCK": "/agent", "LC_TIME": "C", "KRB5CCNAME": "/ticket"}

Started = list[tuple[tuple[str, ...], Mapping[str, str]]]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    """The commands that were started, each with its variables, in the shell of a user with secrets."""
    calls: Started = []

    def start(command: Command, *, env: Mapping[str, str], inherit: bool, **_: Any) -> Completed:
        assert not inherit
        calls.append((command.argv, env))
        return Completed(command.argv, 0, b"", b"", 0.0)

    monkeypatch.setattr(connect, "Process", start)
    monkeypatch.setattr(connect, "run", start)
    monkeypatch.setattr(connect, "start_agent", lambda *_: None)
    for name, value in {**SECRETS, **NEEDED}.items():
        monkeypatch.setenv(name, value)
    return calls


def _connect(folder: Path, config: str | None) -> None:
    options = SshOptions(kind="ssh", destination="there", config=config)
    connection = connect.Connection("there", options, folder)
    connection.open("0123456789ab", "m")
    connection.forward("/run/docker.sock")


def test_a_studys_configuration_gets_no_secret_and_knows_its_hosts(started: Started, tmp_path: Path):
    _connect(tmp_path, str(tmp_path / "ssh.conf"))
    assert len(started) == 2
    for _, variables in started:
        assert variables.items() >= {**NEEDED, "LC_ALL": "C"}.items() and not {*variables} & {*SECRETS}
    options = {*started[0][0]}
    assert {"StrictHostKeyChecking=yes", "NoHostAuthenticationForLocalhost=no"} <= options


def test_the_users_own_configuration_decides(started: Started, tmp_path: Path):
    _connect(tmp_path, None)
    assert all(variables.items() >= SECRETS.items() for _, variables in started), "programs that it starts need them"
    assert not any("HostKey" in word for word in started[0][0])


@pytest.mark.parametrize("config", [None, "ssh.conf"])
def test_nothing_of_the_user_is_lent_to_the_other_machine(started: Started, tmp_path: Path, config: str | None):
    _connect(tmp_path, config)
    lent = {
        "ForwardAgent=no",
        "ForwardX11=no",
        "Tunnel=no",
        "GSSAPIDelegateCredentials=no",
        "ClearAllForwardings=yes",
    }
    assert lent <= {*started[0][0]}


@pytest.mark.parametrize("line", ["Include more", 'proxy"Jump" gate'])
def test_a_configuration_that_hides_what_ssh_does_starts_no_ssh(started: Started, tmp_path: Path, line: str):
    config = tmp_path / "ssh.conf"
    config.write_text(f"Host there\n  {line}\n")
    with pytest.raises(Unavailable, match="is refused because of"):
        _connect(tmp_path, str(config))
    assert started == []
