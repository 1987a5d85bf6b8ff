"""One cluster for all tests of pods: it starts before the first of them and ends when the last has ended."""

from collections.abc import Iterator

import pytest

from ..cluster import Cluster
from ..kubernetes import STRICT, made, using_a_cluster


@pytest.fixture(scope="package", name="cluster")
def shared_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that kubectl finds by itself. What a test changes of it, it puts back."""
    with using_a_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
        cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": STRICT, "labels": restricted}})
        yield cluster


@pytest.fixture(name="unchanged")
def unchanged_cluster(cluster: Cluster) -> Iterator[None]:
    """Nothing of the run is in the cluster when the test has ended."""
    before = made(cluster)
    yield
    cluster.eventually("nothing of the run is left", lambda: made(cluster) == before)
