"""`weighbridge kit`: where it writes, and what it refuses."""

import os

from .command_line import one_sentence


def test_it_writes_a_folder(weighbridge, tmp_path):
    said = weighbridge("kit", "docker-networks", "--out", tmp_path / "kit")
    assert (said.code, said.err) == (0, "")
    assert said.out.endswith(f"{tmp_path / 'kit'} written. {tmp_path / 'kit/README.md'} explains how to run it\n")
    assert os.access(tmp_path / "kit/run.sh", os.X_OK) and not os.access(tmp_path / "kit/Dockerfile", os.X_OK)
    assert " -l 120 " in (tmp_path / "kit/environments/docker-host/latency/client.sh").read_text()  # as published


def test_another_profile(weighbridge, tmp_path):
    assert weighbridge("kit", "docker-networks", "--profile", "standard", "--out", tmp_path / "kit").code == 0
    assert " -l 5 " in (tmp_path / "kit/environments/docker-host/latency/client.sh").read_text()
    one_sentence(weighbridge("kit", "docker-networks", "--profile", "quik"), 3)


def test_a_folder_of_its_own_name(weighbridge):
    assert "kit-first-look written" in weighbridge("kit", "first-look").out


def test_only_an_empty_folder_is_written_to(weighbridge, tmp_path):
    (tmp_path / "empty").mkdir()
    assert weighbridge("kit", "first-look", "--out", tmp_path / "empty").code == 0
    one_sentence(weighbridge("kit", "first-look", "--out", tmp_path / "empty"), 1)
    (tmp_path / "file").write_text("mine")
    one_sentence(weighbridge("kit", "first-look", "--out", tmp_path / "file"), 1)
    assert (tmp_path / "file").read_text() == "mine"
    one_sentence(weighbridge("kit", "first-look", "--out", tmp_path / "file/below"), 1)


def test_studies_of_which_there_is_no_kit(weighbridge, tmp_path):
    one_sentence(weighbridge("kit", "first-lok"), 3)
    one_sentence(weighbridge("kit", "calibrate-link", "--out", tmp_path / "kit"), 3)
    assert not (tmp_path / "kit").exists()
