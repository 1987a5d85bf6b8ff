"""A node that is off, in a cluster of its own: it does not come back."""

from pathlib import Path

import pytest

from weighbridge.model.command import Command
from weighbridge.model.userland import Userland

from .conftest import open_run
from .kubernetes import NEEDS_CLUSTER, made, opened_host, opened_pod, using_a_cluster
from .pods.test_kubernetes import study
from .pods.test_kubernetes_faults import RUN, told
from .weighing import going, run_id, trials

pytestmark = [NEEDS_CLUSTER, pytest.mark.promise("a run goes on where the stream to a pod was cut")]


@pytest.mark.long
def test_a_node_that_is_off_is_told_and_finished_trials_are_kept(tmp_path: Path, small_userland: Userland):
    run = tmp_path / "run"
    (tmp_path / "cluster").mkdir()
    with (
        using_a_cluster(tmp_path / "cluster") as cluster,
        open_run(RUN) as context,
        opened_host(cluster, context) as host,
        opened_pod(host, context, small_userland) as site,
        going("run", study(cluster, tmp_path, 0, 1), "--rehearsal", "--out", run, "--yes", files=tmp_path) as program,
    ):
        program.await_that(lambda: trials(run), "a trial is saved")
        with told("node node-b does not answer|no route to host", 15):  # 10 s of patience, then a look
            running = site.start(Command(("sleep", "60"), 90))
            cluster.nodes[1].power_off()
            running.wait(60)
            running.stop()
        ended = program.end()
        assert ended.code != 0 and "Traceback" not in ended.stderr and "node node-b" in ended.stderr, ended
        assert trials(run)
        assert not [each for each in made(cluster) if run_id(run) in each[2]]
