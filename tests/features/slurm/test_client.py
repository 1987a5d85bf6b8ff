"""What the commands of Slurm 22.05 really said, and the sentence that a user gets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import assert_sentence
from weighbridge.features.slurm import client as slurm
from weighbridge.model.command import Completed

NO_CONFIGURATION = """srun: error: resolve_ctls_from_dns_srv: res_nsearch error: Unknown host
srun: error: fetch_config: DNS SRV lookup failed
srun: error: _establish_config_source: failed to fetch config
srun: fatal: Could not establish a configuration source
"""
NO_CONTROLLER = (
    "srun: error: Unable to confirm allocation for job 3: Unable to contact slurm controller (connect failure)\n"
    "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 3\n"
)
UNSTARTED = {
    "no configuration": NO_CONFIGURATION,
    "no controller": NO_CONTROLLER,
    "too old": "srun: unrecognized option '--overlap'\nTry \"srun --help\" for more information\n",
    "no python": "srun: cluster configuration lacks support for cpu binding\n"
    "slurmstepd-n1: error: execve(): python3: No such file or directory\n"
    "srun: error: n1: task 0: Exited with exit code 2\n",
    "node of another job": "srun: cluster configuration lacks support for cpu binding\n"
    "srun: error: Unable to create step for job 6: Requested node configuration is not available\n",
    "job unknown": "srun: error: Unable to confirm allocation for job 999: Invalid job id specified\n"
    "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 999\n",
    "job over": "srun: error: Slurm job 13 has expired\n"
    "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 13\n",
    "slurmd dead": "srun: error: Task launch for StepId=4.0 failed on node n2: Communication connection failure\n"
    "srun: error: Application launch failed: Communication connection failure\nsrun: Job step aborted\n",
    "unknown": "something new\nthat nobody has seen\n",
    "old python": "weighbridge: python3 is 3.8.18\nsrun: error: n2: task 0: Exited with exit code 1\n",
    "nothing": "\n",
}
ENDED = {
    "cancelled": "srun: cluster configuration lacks support for cpu binding\n"
    "slurmstepd-n2: error: *** STEP 12.0 ON n2 CANCELLED AT 2026-11-27T14:43:52 ***\n"
    "srun: Job step aborted: Waiting up to 7 seconds for job step to finish.\n"
    "srun: error: n2: task 0: Terminated\n",
    "time limit": "slurmstepd-n2: error: *** STEP 12.0 ON n2 CANCELLED AT 2026-11-27T14:43:52 DUE TO TIME LIMIT ***\n"
    "srun: Job step aborted: Waiting up to 7 seconds for job step to finish.\n",
    "node set down": "srun: cluster configuration lacks support for cpu binding\nsrun: error: Node failure on n2\n",
    "node failed": "slurmstepd-n2: error: *** STEP 13.0 ON n2 CANCELLED AT 2026-11-27T14:43:54 DUE TO NODE FAILURE, "
    "SEE SLURMCTLD LOG FOR DETAILS ***\n",
    "killed": "srun: forcing job termination\nsrun: error: n2: task 0: Killed\n",
    "srun killed": "srun: cluster configuration lacks support for cpu binding\n",
}


@pytest.mark.parametrize("what", UNSTARTED)
def test_why_a_step_did_not_start(what: str):
    assert_sentence(slurm.unstarted(UNSTARTED[what]) or slurm.SILENT)


@pytest.mark.parametrize("what", ENDED)
def test_why_a_step_has_ended(what: str):
    assert_sentence(slurm.ended(ENDED[what]))


@given(st.text(), st.integers(-15, 255))
def test_whatever_is_said_gives_one_line(said: str, code: int):
    refusal = slurm.refusal("sbatch", Completed(("sbatch",), code, b"", said.encode(errors="replace"), 0.1))
    for told in (slurm.unstarted(said), slurm.ended(said), refusal):
        assert len(told.splitlines()) <= 1
    assert slurm.ended(said) and refusal


@pytest.mark.parametrize("shown", ["", "JobId=17", "ReqNodeList=n1", "NodeList"])
def test_a_field_that_is_not_shown_is_empty(shown: str):
    assert slurm.field("NodeList", shown) == ""
    assert slurm.field("NodeList", f"{shown} NodeList=n[1-3]\n") == "n[1-3]"
