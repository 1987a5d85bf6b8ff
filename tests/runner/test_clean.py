"""What belongs to no run, and is left nevertheless: told by `find`, removed by `clean`."""

from pathlib import Path

import pytest

from weighbridge.engines.firewall import Adds
from weighbridge.runner import clean
from weighbridge.runner.clean import NO_RUN, Leftover

RULES = "ip6tables nat: 5 of rules, chains and policies"


@pytest.fixture
def engine_rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The rules that an engine left on a machine with nothing else; gone once the packet filter is restored."""
    left = [RULES]

    def restore(base: Path, adds: Adds) -> None:
        assert base == tmp_path
        assert adds is Adds.DOCKER
        left.clear()

    monkeypatch.setattr(clean.alone, "left", lambda base: list(left) if base == tmp_path else [])
    monkeypatch.setattr(clean.alone, "restore", restore)
    monkeypatch.setattr(clean.state, "base", lambda: tmp_path)
    monkeypatch.setattr(clean, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(clean.docker, "client_from_environment", lambda: None)
    monkeypatch.setattr(clean.cgroups, "runs", lambda **_: [])
    monkeypatch.setattr(clean.cgroups, "remove_top", lambda: None)
    for module, name in (
        (clean.state, "known_runs"), (clean.xen_domains, "domains"), (clean.virtualbox, "left"), (clean, "_links"),
        (clean.links, "rules"), (clean.known_noise, "left"), (clean, "_processes"),
    ):  # fmt: skip
        monkeypatch.setattr(module, name, list)
    return left


def test_rules_of_an_engine_are_left_until_they_are_cleaned(engine_rules: list[str]):
    expected = (Leftover(NO_RUN, "packet filter of an engine", RULES),)
    assert clean.find().left == expected
    assert clean.find("0123456789ab").left == (), "they are of no run"
    found = clean.clean()
    assert (found.left, found.removed) == ((), expected)
    assert engine_rules == []
    assert clean.find().left == ()
