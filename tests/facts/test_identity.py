"""Which machine it is: its name, a hash that tells it from others, its hardware, and who placed us there."""

from collections.abc import Mapping

import pytest

from weighbridge.facts import host
from weighbridge.facts.host import fingerprint, hardware_facts, identity_facts, machine_id_fact
from weighbridge.model.host import MACHINE_ID, NODE, PLACED_BY

ID = "0123456789abcdef0123456789abcdef"


def _of(files: Mapping[str, str]) -> dict[str, str]:
    return hardware_facts(lambda path: files.get(path.rpartition("/")[2], ""))


def test_a_machine_is_told_by_a_hash_of_its_id_and_not_by_the_id():
    told = machine_id_fact(f"{ID}\n")
    assert len(told) == 16 and int(told, 16) and told not in ID
    assert told == machine_id_fact(ID.upper()) == machine_id_fact(ID) != machine_id_fact(ID[::-1])


def test_a_cluster_writes_the_id_with_dashes():
    dashed = "-".join((ID[:8], ID[8:12], ID[12:16], ID[16:20], ID[20:]))
    assert machine_id_fact(dashed) == machine_id_fact(ID)


@pytest.mark.parametrize("text", ["", "\n", "uninitialized\n", "0123", "not an id at all, but thirty-six!!!!!"])
def test_a_machine_without_an_id_has_none(text: str):
    assert machine_id_fact(text) == ""


def test_the_hardware_is_that_of_the_firmwares_tables():
    files = {"sys_vendor": "Dell Inc.", "product_name": "R7625", "bios_version": "1.5.8", "bios_date": "07/21/2023"}
    assert _of(files) == {"model": "Dell Inc. R7625", "firmware": "1.5.8 of 07/21/2023"}
    assert _of({"product_name": "R7625"}) == {"model": "R7625", "firmware": ""}
    assert _of({"model": "Raspberry Pi 4\0"}) == {"model": "Raspberry Pi 4", "firmware": ""}


def test_a_scheduler_is_named_where_there_is_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert identity_facts()[PLACED_BY] == ""
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    assert identity_facts()[PLACED_BY] == "Slurm job 17 on n1"


def test_the_facts_of_a_machine_have_its_name(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(host, "output", lambda *_, **__: None)
    facts = fingerprint()
    assert facts[NODE] and MACHINE_ID in facts and PLACED_BY in facts
