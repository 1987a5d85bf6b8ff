"""What tests of pods share: a cluster, and hosts and sites opened in it by hand."""

import contextlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from weighbridge import registry
from weighbridge.model.host import Host, Limits, RunContext
from weighbridge.model.site import SiteRequest
from weighbridge.model.userland import Userland

from . import cluster as clusters
from .cluster import NAMES, Cluster
from .machine import Machine

NEEDS_CLUSTER = pytest.mark.skipif(bool(clusters.missing()), reason=clusters.missing())
MADE = "all,configmaps,networkpolicies,persistentvolumeclaims,secrets"
"""What there may be in a namespace that a run could leave."""
STRICT = "strict"
DOCUMENT = Path(__file__).parents[2] / "docs/howto/kubernetes.md"


@contextlib.contextmanager
def using_a_cluster(folder: Path) -> Iterator[Cluster]:
    """A cluster that kubectl finds by itself; the machine is afterwards as it was before."""
    before = Machine.as_it_is()
    with clusters.two_nodes(folder) as cluster, pytest.MonkeyPatch.context() as patch:
        for name, value in cluster.variables().items():
            patch.setenv(name, value)
        patch.setenv("PATH", str(cluster.programs["kubectl"].parent), prepend=":")
        yield cluster
    before.must_be_unchanged()


def made(cluster: Cluster) -> set[tuple[str, str, str]]:
    items = cluster.get(MADE, "--all-namespaces")["items"]
    return {(each["kind"], each["metadata"]["namespace"], each["metadata"]["name"]) for each in items}


@contextlib.contextmanager
def documented_role_given(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """The user ``tester`` has the Role of the documentation, as it stands there; who changes it sees it."""
    [text] = re.findall(r"```yaml\n(apiVersion: rbac.*?)```", DOCUMENT.read_text(), re.DOTALL)
    role = YAML(typ="safe").load(text)
    role["metadata"]["namespace"] = "default"
    subject = {"kind": "User", "name": "tester", "apiGroup": "rbac.authorization.k8s.io"}
    about = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "tests", "namespace": "default"}}
    reference = {"kind": "Role", "name": role["metadata"]["name"], "apiGroup": "rbac.authorization.k8s.io"}
    cluster.apply(role, {**about, "kind": "RoleBinding", "roleRef": reference, "subjects": [subject]})
    try:
        yield role
    finally:
        cluster.must("delete", "role/weighbridge", "rolebinding/tests")


def host_options(cluster: Cluster, node: int, **more: Any) -> dict[str, Any]:
    enter = ("nsenter", "--target", str(cluster.nodes[node].host.pid), "--mount", "--net", "--pid", "--")
    load = [*enter, "ctr", "--namespace", "k8s.io", "images", "import", "-"]
    return {"kind": "kubernetes", "node": NAMES[node], "images": {"load": load}, **more}


def onto_both_nodes(cluster: Cluster, folder: Path) -> str:
    """The command that loads an image onto each node; several may run at the same time."""
    loads = [shlex.join(host_options(cluster, node)["images"]["load"]) for node in (0, 1)]
    steps = (f"image=$(mktemp --tmpdir={folder})", 'cat > "$image"', *(f'{load} < "$image"' for load in loads))
    return shlex.join(("sh", "-c", " && ".join(steps)))


@contextlib.contextmanager
def opened_host(cluster: Cluster, run: RunContext, node: int = 1, **more: Any) -> Iterator[Host]:
    kind = registry.hosts()["kubernetes"]
    options = kind.options.model_validate(host_options(cluster, node, **more))
    with kind.open("ba"[node], options, run, (options,)) as host:
        yield host


def opened_pod(host: Host, run: RunContext, userland: Userland, name: str = "0-pod-solo", **options: Any):
    environment = registry.environments()["pod"]
    request = SiteRequest(run, host, name, "solo", userland, Limits(cpus=0.5, memory=128 << 20), separate_hosts=True)
    return environment.open(environment.options.model_validate(options), request)
