"""Which node of a job a host has, under which address it is reached, and how its step is started."""

from typing import Any

import pytest

from sentences import raises_sentence
from weighbridge.errors import Unavailable
from weighbridge.features.slurm import client as slurm
from weighbridge.features.slurm.hosts.slurm import PLUGIN, SlurmOptions
from weighbridge.features.slurm.job import Job, address_among
from weighbridge.model.command import Completed


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Job:
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setattr(slurm, "job_nodes", lambda: ("n1", "n2", "n3"))
    return Job("17")


def test_hosts_get_the_nodes_that_no_other_has(job: Job):
    named = frozenset({"n1"})
    assert job.node_for("b", None, named) == "n2"
    assert job.node_for("a", "n1", named) == "n1"
    assert job.node_for("c", None, named) == "n3"
    with raises_sentence(Unavailable):
        job.node_for("d", None, named)


def test_two_hosts_may_be_one_node_by_name(job: Job):
    assert [job.node_for(host, "n2", {"n2"}) for host in "ab"] == ["n2", "n2"]


def test_a_node_of_another_job_is_refused(job: Job):
    with raises_sentence(Unavailable):
        job.node_for("a", "n9", {"n9"})


def test_readiness_says_what_is_wrong(job: Job, monkeypatch: pytest.MonkeyPatch):
    def options(**named: Any) -> SlurmOptions:
        return SlurmOptions(kind="slurm", **named)

    assert PLUGIN.ready().ready and not PLUGIN.ready().caveat
    assert PLUGIN.ready(options(node="n2")).ready and PLUGIN.ready(options()).ready
    wrong = PLUGIN.ready(options(node="n9"))
    assert not wrong.ready and wrong.detail == "node n9 is not one of the nodes of job 17 (n1, n2, n3)"
    monkeypatch.delenv("SLURM_JOB_ID")
    assert PLUGIN.ready().ready and PLUGIN.ready().caveat == "no job"
    without = PLUGIN.ready(options())
    assert not without.ready and without.remedy.startswith("salloc")


INTERFACES = {"lo": "127.0.0.1", "eth0": "192.0.2.7"}


@pytest.mark.parametrize("known", ["192.0.2.7", "127.0.1.1", "", "203.0.113.1"])
def test_a_node_with_one_address_is_reached_at_that(known: str):
    assert address_among("a", known, INTERFACES) == "192.0.2.7"


def test_of_several_addresses_that_which_slurm_knows():
    several = {**INTERFACES, "ib0": "198.51.100.7"}
    assert address_among("a", "198.51.100.7", several) == "198.51.100.7"
    with raises_sentence(Unavailable):
        address_among("a", "127.0.1.1", several)
    with raises_sentence(Unavailable):
        address_among("a", "", {"lo": "127.0.0.1"})


def test_a_step_has_none_of_the_options_that_sbatch_left(monkeypatch: pytest.MonkeyPatch):
    for name in ("SLURM_MEM_PER_CPU", "SLURM_CONF", "SRUN_DEBUG", "SLURM_JOB_ID"):
        monkeypatch.setenv(name, "1")
    words = slurm.step("17", "n2", "--unbuffered")
    unset = {words[at + 1] for at, word in enumerate(words) if word == "-u"}
    assert {"SLURM_MEM_PER_CPU", "SRUN_DEBUG", "SLURM_JOB_ID"} <= unset and "SLURM_CONF" not in unset
    assert words[words.index("srun") + 1 : words.index("srun") + 3] == ("--jobid=17", "--nodelist=n2")
    assert "--overlap" in words and words[-2:] == ("--unbuffered", "--")


def test_the_nodes_of_a_job_are_asked_of_the_controller(monkeypatch: pytest.MonkeyPatch):
    said = {
        "--oneliner": "JobId=17 ReqNodeList=n[7-9] ExcNodeList=(null) NodeList=n[1-2] BatchHost=n1\n",
        "show": "n1\nn2\n",
    }
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n2")
    monkeypatch.setattr(slurm, "call", lambda *argv: Completed(argv, 0, said[argv[1]].encode(), b"", 0.1))
    assert slurm.job_nodes() == ("n1", "n2")
    monkeypatch.delenv("SLURM_JOB_ID")
    with raises_sentence(Unavailable):
        slurm.job_nodes()
