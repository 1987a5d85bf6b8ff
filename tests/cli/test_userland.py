"""`weighbridge userland push`: what it prints, and what it refuses."""

import json
from pathlib import Path

import pytest

from documents import fits
from weighbridge import registry
from weighbridge.cli.commands.studies import SchemaDocument
from weighbridge.runner import userlands

from .command_line import Weighbridge, one_sentence

NAMES = ["registry.example/wb@sha256:1", "registry.example/wb@sha256:2"]


def test_it_prints_the_names_of_what_was_pushed(weighbridge: Weighbridge, monkeypatch: pytest.MonkeyPatch):
    asked: list[str] = []

    def push(study: object, repository: str, say: object) -> list[str]:
        asked.append(repository)
        return NAMES

    monkeypatch.setattr(userlands, "push_userlands", push)
    assert weighbridge("userland", "push", "first-look", "registry.example/wb").out.splitlines() == NAMES
    said = weighbridge("userland", "push", "first-look", "registry.example/wb", "--json")
    fits(SchemaDocument.USERLAND, document := json.loads(said.out))
    assert document["images"] == NAMES and asked == ["registry.example/wb"] * 2


def test_what_is_no_repository_is_refused_before_anything_is_built(weighbridge: Weighbridge):
    one_sentence(weighbridge("userland", "push", "first-look", "https://registry.example/wb"), 4)
    assert weighbridge("userland", "pull", "first-look", "registry.example/wb").code == 2


def test_kinds_of_hosts_without_images_push_nothing(tmp_path: Path):
    kinds = [kind for name, kind in registry.hosts().items() if name != "kubernetes"]
    every = userlands.Userlands(userlands.Userland("1", tmp_path, None, {}))
    assert [kind.push(lambda: every, "registry.example/wb", tmp_path, print) for kind in kinds] == [()] * len(kinds)
