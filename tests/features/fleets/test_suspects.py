"""Who is measured again: the machines that the fleet's report calls odd, by their names in the fleet."""

from pathlib import Path

from report.made_up_fleets import make_fleet, make_pairs, rounds
from weighbridge.features.fleets.folder import FleetFolder
from weighbridge.features.fleets.suspects import Suspects


def test_nobody_is_odd_where_nothing_was_measured(tmp_path: Path):
    assert Suspects.of(FleetFolder(tmp_path), ("a", "b")) == Suspects((), ("a", "b"))


def test_a_machine_that_is_odd_alone_is_measured_again(tmp_path: Path):
    make_fleet(tmp_path / "fleet", 8, slow={"n3": 1.3})
    machines = tuple(f"n{each}" for each in range(1, 10))
    found = Suspects.of(FleetFolder(tmp_path / "fleet"), machines)
    assert found == Suspects(("n3",), ("n1", "n2", "n4", "n5", "n6", "n7", "n8"))


def test_a_machine_that_is_slow_with_every_partner_is_measured_again(tmp_path: Path):
    make_pairs(tmp_path / "fleet", rounds(8, 4), slow={"n5": 1.5})
    found = Suspects.of(FleetFolder(tmp_path / "fleet"), tuple(f"n{each}" for each in range(1, 9)))
    assert found.outliers == ("n5",) and len(found.good) == 7
