"""What a command line did, in this process, and the machine of a user who lacks something."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from documents import fits
from sentences import assert_sentence
from weighbridge.cli.commands.studies import SchemaDocument
from weighbridge.linux import user_namespaces
from weighbridge.model.text import printable
from weighbridge.userland import debian_archive
from weighbridge.userland.sources import packages


class Said(NamedTuple):
    """What a command did: exit code, standard output, standard error."""

    code: int
    out: str
    err: str


Weighbridge = Callable[..., Said]


def one_sentence(said: Said, code: int) -> None:
    """Assert that a command ended with this code and said nothing but the next sentence of the test's golden file.

    With ``--json`` it also printed this sentence as an error document.
    """
    assert said.code == code, said
    (line,) = said.err.splitlines()
    assert line.startswith("weighbridge: ")
    if said.out:  # with --json
        fits(SchemaDocument.ERROR, document := json.loads(said.out))
        assert document["error"]["exit_code"] == code
        assert f"weighbridge: {printable(document['error']['message'])}" == line
    assert_sentence(line)


def users_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, programs: set[str], ids: str) -> None:
    """A user's machine with these programs, these subordinate ids and no userland."""
    usual = Path.read_text
    monkeypatch.setattr(packages.os, "geteuid", lambda: 4321)
    monkeypatch.setattr(user_namespaces, "refusal", lambda program="": None)
    for module, name in ((packages, "_which"), (debian_archive, "which")):
        monkeypatch.setattr(module, name, lambda program: f"/usr/bin/{program}" if program in programs else None)
    monkeypatch.setattr(
        Path, "read_text", lambda path, *a, **k: ids if path.name in {"subuid", "subgid"} else usual(path, *a, **k)
    )
    monkeypatch.setenv("WEIGHBRIDGE_CACHE", str(tmp_path / "cache"))
