"""What a site asks of Kubernetes, and what of it cannot be."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.features.kubernetes.environments.pod import PodOptions
from weighbridge.features.kubernetes.manifest import (
    given_otherwise,
    limits_of,
    not_honoured,
    pod_request,
    quota_not_honoured,
    requests_of,
)
from weighbridge.features.kubernetes.objects import ObjectOwner, asked_objects, pod
from weighbridge.features.kubernetes.site import PodSite
from weighbridge.model.environment import Needs, misplaced
from weighbridge.model.host import THIS_MACHINE, HostTraits, Limits
from weighbridge.model.study import Resources

POD = registry.environments()["pod"]
DATA = Path(__file__).parent / "data/pod"


def test_limits_are_thousandths_of_a_cpu_and_bytes():
    assert limits_of(Limits()) == {}
    assert limits_of(Limits(0.5, 1 << 30)) == {"cpu": "500m", "memory": str(1 << 30)}
    assert limits_of(Limits(0.0001)) == {"cpu": "1m"}


def test_what_kubelet_decides_is_said():
    assert not_honoured(Limits(1, 1)) == {}
    assert {*not_honoured(Limits(1, cpuset="0", cpu_period_us=10_000))} == {"pin", "cpu_period"}
    assert not_honoured(Limits(cpuset="0"), "none")["pin"].endswith("CPU manager policy none")


def test_a_limit_of_the_clusters_own_is_said():
    sidecar = {"name": "istio-proxy", "resources": {"limits": {"cpu": "2"}}}
    own = {"name": "site", "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}}}
    about = {"spec": {"containers": [sidecar, own]}}
    assert given_otherwise(Limits(), {"spec": {"containers": [sidecar]}}) == {}
    assert {*given_otherwise(Limits(0.5), about)} == {"memory"}
    assert given_otherwise(Limits(0.5, 1 << 30), about) == {} == given_otherwise(Limits(), {})


def test_all_pods_of_a_run_fit_on_a_small_node():
    assert requests_of(Limits(2, 1 << 30), "burstable") == {"cpu": "50m", "memory": str(64 << 20)}
    assert requests_of(Limits(0.02, 1 << 20), "burstable") == {"cpu": "20m", "memory": str(1 << 20)}
    assert requests_of(Limits(), "burstable").keys() == {"cpu", "memory"}
    assert requests_of(Limits(2, 1 << 30), "guaranteed") == limits_of(Limits(2, 1 << 30))


def test_a_guarantee_needs_limits():
    needs = Needs(resources=Resources(cpus=1))
    assert POD.check(PodOptions(), needs=needs) == []
    assert "Set resources: memory" in POD.check(PodOptions(quality="guaranteed"), needs=needs)[0]
    needs = Needs(resources=Resources(cpus=1, memory="1GiB"))
    assert POD.check(PodOptions(quality="guaranteed"), needs=needs) == []


def test_the_quota_in_force_is_the_kernels():
    assert quota_not_honoured(Limits(1), ("100000", "100000")) == {} == quota_not_honoured(Limits(), ("max", "1"))
    assert "did not set a CPU quota" in quota_not_honoured(Limits(1), ("max", "100000"))["cpus"]
    assert "did not set a CPU quota" in quota_not_honoured(Limits(1), ("-1", "100000"))["cpus"]
    assert quota_not_honoured(Limits(1), ("5000", "5000")) == {"cpu_period": "kubelet uses 5 ms"}
    assert quota_not_honoured(Limits(1), None) == {}
    assert quota_not_honoured(Limits(0.005), ("1000", "100000")) == {}, "kubelet's least"
    assert quota_not_honoured(Limits(0.5), ("100000", "100000")) == {"cpus": "the CPU quota equals 1 CPUs"}
    top = "/sys/fs/cgroup"
    one = {f"{top}/cpu/cpu.cfs_quota_us": "-1\n", f"{top}/cpu/cpu.cfs_period_us": "100000\n"}
    assert "not honoured: cpus" in site_of(one).facts()
    assert "not honoured: cpus" in site_of({f"{top}/cgroup.controllers": "cpu", f"{top}/cpu.max": "max 1\n"}).facts()
    assert "not honoured: cpus" not in site_of({}).facts()


def request(**changes: Any) -> Any:
    host = SimpleNamespace(name="a", address="10.0.0.1", layers=(), read=lambda path: b"")
    asked = {"name": "1-pod-server", "title": "pod", "host": host, "run": SimpleNamespace(id="0123456789ab"),
             "limits": Limits(1), "sysctls": {"net.core.somaxconn": "9"}, "shm_size": None, "separate_hosts": True,
             "open_files": None, "storage": None, "userland": None}  # fmt: skip
    return SimpleNamespace(**{**asked, **changes})


PODS = SimpleNamespace(
    node_name="node-b",
    image=lambda userland: "image",
    owner=ObjectOwner("o", "u"),
    user=0,
    pulls=False,
    cpu_manager="",
)


def asked(**more: Any) -> Any:
    return pod_request(request(), PODS, **more)  # type: ignore[arg-type]


def test_a_request_becomes_a_pods():
    its = asked()
    assert (its.node, its.limits, its.name) == ("node-b", {"cpu": "1000m"}, "weighbridge-0123456789ab-1-pod-server")


@pytest.mark.parametrize(
    ("host_network", "separate_hosts", "address"),
    [(False, True, "10.244.1.7"), (True, True, "10.0.0.1"), (True, False, "127.0.0.1")],
)
def test_it_is_reached_at_its_own_address_or_its_nodes(host_network: bool, separate_hosts: bool, address: str):
    site = site_of({}, host_network=host_network, separate_hosts=separate_hosts)
    assert site.address == site.listen == address


def site_of(
    files: dict[str, str],
    *,
    host_network: bool = False,
    separate_hosts: bool = True,
    pauses: Any = None,
    kernel: bytes = b"",
) -> PodSite:
    def read(path: str) -> bytes:
        if path not in files:
            raise FileNotFoundError(path)
        return files[path].encode()

    launcher = SimpleNamespace(
        name="pod (server)",
        open_files=9,
        reports_use=True,
        run=None,
        start=None,
        read=read,
        put=None,
        listening=None,
        alone=lambda: False,
        pause=pauses,
        round_trip_s=lambda: 0.1,
    )
    about = {"spec": {"nodeName": "node-b"}, "status": {"qosClass": "Guaranteed"}}
    running = SimpleNamespace(name="p", address="10.244.1.7", launcher=launcher, manifest=about)
    process = SimpleNamespace(user=lambda launcher: launcher)
    userland = SimpleNamespace(digest="d", process=process)
    return PodSite(
        request(
            separate_hosts=separate_hosts,
            userland=userland,
            host=SimpleNamespace(name="a", address="10.0.0.1", layers=(), read=lambda path: kernel),
        ),
        running,
        asked(host_network=host_network),
        {"pin": "no"},  # type: ignore[arg-type]
    )


def test_meters_are_those_of_the_group_that_a_pod_sees():
    top = "/sys/fs/cgroup"
    old = {
        "/sys/fs/cgroup/cpuacct/cpuacct.usage": "2000000000\n",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes": "7\n",
    }
    assert site_of(old).round_trip_s == 0.1
    meters = site_of(old).meters()
    assert meters["cpu_s"] == 2 and meters["memory_bytes"] == 7
    new = {f"{top}/cgroup.controllers": "cpu memory", f"{top}/cpu.stat": "usage_usec 3000000\n",
           f"{top}/memory.current": "8\n"}  # fmt: skip
    meters = site_of(new).meters()
    assert (meters["cpu_s"], meters["throttled_s"], meters["memory_bytes"]) == (3, 0, 8)
    assert site_of({}).meters() == {}


def test_a_pod_that_sees_all_of_the_nodes_groups_counts_in_its_own():
    top = "/sys/fs/cgroup"
    files = {f"{top}/cgroup.controllers": "cpu", f"{top}/cpu.stat": "usage_usec 9000000\n",
             "/proc/self/cgroup": "0::/kubepods/pod1/c1\n", f"{top}/kubepods/pod1/c1/cgroup.procs": "7\n",
             f"{top}/kubepods/pod1/c1/cpu.stat": "usage_usec 1000000\n"}  # fmt: skip
    site = site_of(files)
    assert site.meters()["cpu_s"] == 1 and site.scope()["cpu.stat"] == f"{top}/kubepods/pod1/c1/cpu.stat"


def test_how_long_a_pod_was_held_back_is_of_both_groups_where_it_sees_them():
    """Both have the quota, and wait in turns: the container's alone was 1.3 s of 2.8 s."""
    top, told = "/sys/fs/cgroup", "not metered: time held back by the CPU limit, in full"
    own = f"{top}/kubepods/pod1/c1"
    files = {f"{top}/cgroup.controllers": "cpu", "/proc/self/cgroup": "0::/kubepods/pod1/c1\n",
             f"{own}/cgroup.procs": "7\n", f"{own}/cpu.stat": "usage_usec 1000000\nthrottled_usec 1300000\n",
             f"{own}/../cpu.stat": "usage_usec 1000000\nthrottled_usec 1500000\n"}  # fmt: skip
    assert site_of(files).meters()["throttled_s"] == pytest.approx(2.8) and told not in site_of(files).facts()
    alone = {f"{top}/cgroup.controllers": "cpu", f"{top}/cpu.stat": "usage_usec 1000000\nthrottled_usec 1300000\n"}
    assert site_of(alone).meters()["throttled_s"] == pytest.approx(1.3)
    assert "or more" in site_of(alone).facts()[told]
    assert told not in site_of({**alone, f"{top}/cpu.max": "max 100000"}).facts(), "there is did not set a CPU quota"


def test_groups_as_kubelet_made_them_are_read():
    text = (DATA / "groups-v2.txt").read_text()
    files = {each[1]: each[2] for each in re.finditer(r"^== (\S+)\n(.*?)(?=^== |\Z)", text, re.MULTILINE | re.DOTALL)}
    own = "/sys/fs/cgroup" + files["/proc/self/cgroup"].strip()[3:]
    its_pod = own.rpartition("/")[0]
    files[f"{own}/../cpu.stat"] = files[f"{its_pod}/cpu.stat"]
    files |= {"/sys/fs/cgroup/cgroup.controllers": "cpu io memory pids\n"}
    site = site_of(files)
    assert site.meters() == {"cpu_s": 2.19, "throttled_s": 0.6, "memory_bytes": 901120, "oom_kills": 0}
    assert not [key for key in site.facts() if key.startswith("not metered")]
    assert site.scope()["memory.stat"] == f"{own}/memory.stat"
    assert files[f"{own}/memory.oom.group"] == "1\n" and files[f"{its_pod}/memory.oom.group"] == "0\n"


def test_before_linux_6_6_both_groups_count_the_same_time():
    """Their sum would be more than the whole time in which the program did not run."""
    top, own = "/sys/fs/cgroup", "/sys/fs/cgroup/kubepods/pod1/c1"
    shares = []
    for line in (DATA / "held-back-6.1.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        of, *numbers = line.split()
        wall_s, used_s, by_container, _, by_pod, _ = map(float, numbers)
        files = {f"{top}/cgroup.controllers": "cpu", "/proc/self/cgroup": "0::/kubepods/pod1/c1\n",
                 "/proc/sys/kernel/osrelease": "6.1.176\n", f"{own}/cgroup.procs": "7\n",
                 f"{own}/cpu.stat": "usage_usec 0\nthrottled_usec 0\n",
                 f"{own}/../cpu.stat": "usage_usec 0\nthrottled_usec 600000\n"}  # fmt: skip
        site = site_of(files)
        before = site.meters()
        files[f"{own}/cpu.stat"] = f"usage_usec 0\nthrottled_usec {by_container:.0f}\n"
        files[f"{own}/../cpu.stat"] = f"usage_usec 0\nthrottled_usec {600_000 + by_pod:.0f}\n"
        held_s = site.meters()["throttled_s"] - before["throttled_s"]
        assert held_s == pytest.approx(by_container / 1e6) and held_s <= wall_s - used_s + 0.05
        shares.append((by_container + by_pod) / 1e6 / (wall_s - used_s) if of == "native-1" else 0)
    assert max(shares) > 1.05


def test_a_pod_with_a_kernel_of_its_own_is_told():
    release = "/proc/sys/kernel/osrelease"
    assert site_of({release: "6.1.0\n"}, kernel=b"6.1.0\n").facts()["version: kernel"] == "6.1.0"
    own, other = site_of({release: "6.1.0\n"}, kernel=b"6.1.0\n"), site_of({release: "4.4.0\n"}, kernel=b"6.1.0\n")
    assert own.sampler.reports_use and not other.sampler.reports_use
    assert POD.layer_durability(PodOptions()) == "synchronous"
    assert POD.layer_durability(PodOptions(runtime_class="gvisor")) == "unknown"


def test_a_native_site_is_a_privileged_pod_with_the_limits_of_others():
    native, other = asked(privileged=True), asked()
    assert native.host_network and native.limits == other.limits == {"cpu": "1000m"}
    spec = pod(native)["spec"]
    assert spec["hostPID"] and spec["hostNetwork"] and "hostIPC" not in spec, "nothing stays in shared memory"
    assert spec["containers"][0]["securityContext"]["privileged"] is True
    assert "hostPID" not in pod(other)["spec"]


def test_pods_without_root_keep_to_the_level_restricted():
    spec = pod(replace(asked(), user=65532))["spec"]
    context = spec["containers"][0]["securityContext"]
    assert context["runAsNonRoot"] and context["runAsUser"] == 65532 and not context["allowPrivilegeEscalation"]
    assert context["capabilities"] == {"drop": ["ALL"]} and context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["securityContext"]["fsGroup"] == 65532


def test_what_a_cluster_is_asked_about_is_what_is_made():
    needs = Needs(resources=Resources(cpus=1), sysctls=frozenset({"net.core.somaxconn"}))
    options = PodOptions(reach="service", policy="allow", runtime_class="gvisor")
    objects = asked_objects({"a": POD.makes(options, needs=needs), "b": POD.makes(PodOptions(), needs=needs)}, 0)
    assert [each["kind"] for each in objects["a"]] == ["Pod", "Service", "NetworkPolicy"]
    assert len({each["metadata"]["name"] for each in (*objects["a"], *objects["b"])}) == 4
    spec = objects["a"][0]["spec"]
    assert spec["runtimeClassName"] == "gvisor" and spec["containers"][0]["resources"]["limits"] == {"cpu": "1000m"}
    [native] = registry.hosts()["kubernetes"].makes_for_native(needs)
    assert native.privileged and native.limits == {"cpu": "1000m"}


def test_its_facts_say_what_kubernetes_made_of_it():
    facts = site_of({}).facts()
    assert (facts["node"], facts["network"], facts["quality of service"]) == ("node-b", "pod", "Guaranteed")
    assert facts["not honoured: pin"] == "no" and facts["frozen by"] == "signals"


def test_it_is_stopped_by_signals():
    calls: list[bool] = []
    site = site_of({}, pauses=lambda *, stopped: calls.append(stopped))
    site.freeze()
    site.freeze()
    site.thaw()
    site.thaw()
    assert calls == [True, False]


def test_the_nodes_network_has_no_sysctls_of_a_pods_own():
    needs = Needs(sysctls=frozenset({"net.core.somaxconn", "kernel.shm_rmid_forced"}))
    assert POD.check(PodOptions(), needs=needs) == []
    assert "net.core.somaxconn" in POD.check(PodOptions(network="host"), needs=needs)[0]


def test_it_is_on_nodes_alone():
    assert "kubernetes" in misplaced(POD, THIS_MACHINE)
    assert misplaced(POD, HostTraits(managed=True)) == ""
    without = Needs(own_hosts={"kubernetes": HostTraits(managed=True, without_network="no")})
    assert POD.check(PodOptions(network="host"), needs=without) == ["no"]
    assert POD.as_host(HostTraits(managed=True, without_network="no")) is None
    host = SimpleNamespace(name="a", capabilities=SimpleNamespace(pods=None))
    with pytest.raises(Unavailable, match="host a cannot run pods"), POD.open(PodOptions(), request(host=host)):
        pass
