"""A file that a study names is not opened before the user agrees."""

import builtins
from pathlib import Path

import pytest

from weighbridge.workloads._local_file import check_local, read_local
from weighbridge.workloads.command.options import CommandOptions


def test_a_study_is_checked_without_opening_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "data"
    file.write_bytes(b"x")
    monkeypatch.setattr(builtins, "open", lambda *_, **__: pytest.fail("a file is opened"))
    options = CommandOptions(run=["true"], files={"/tmp/data": str(file)})
    assert [*options.files.values()] == [str(file)]


def test_a_check_and_a_reader_refuse_the_same_files(tmp_path: Path):
    (tmp_path / "secret").write_bytes(b"x")
    (tmp_path / "secret").chmod(0o600)
    (tmp_path / "empty").touch()
    for name in ("secret", "empty", ".", "missing"):
        refusals = []
        for function in (check_local, read_local):
            with pytest.raises(ValueError, match="file") as refused:
                function(str(tmp_path / name), "file")
            refusals.append(str(refused.value))
        assert refusals[0] == refusals[1]
