"""A Kubernetes cluster of two nodes on this machine, with Kubernetes' own programs (`make kubernetes`).

    node-a  198.19.200.1   etcd, API server, controllers, scheduler; containerd, kubelet, kube-proxy
    node-b  198.19.200.2   containerd, kubelet, kube-proxy
    here    198.19.200.3   kubectl

A node is a testbed host: namespaces, control groups, /run, /etc and /var/lib of its own, which end with us, however
we end. Pods are in 10.244.1.0/24 and 10.244.2.0/24, with a route to each; Services in 10.96.0.0/16.

    .venv/bin/python -m tests.real.cluster [IMAGE.tar...]    # one to try things on, until Ctrl-C
"""

import base64
import contextlib
import importlib.util
import json
import os
import secrets
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from weighbridge.engines.layers import file_layer, image_archive
from weighbridge.hosts.options import TestbedOptions
from weighbridge.hosts.testbed import testbed_host
from weighbridge.linux import cgroup_files, cgroups, process
from weighbridge.linux.packages import install_here
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import RunContext
from weighbridge.model.names import GroupName
from weighbridge.user_cache import user_cache_folder

from .conftest import open_run
from .daemons import DaemonMachine

RUN = "c1057e4c1057"
NAMES = ("node-a", "node-b")
SERVICES, POD_NETWORK = "10.96.0.0/16", "10.244.0.0/16"
USERS = {
    "admin": "system:masters",
    "system:kube-controller-manager": "system:masters",
    "system:kube-scheduler": "system:masters",
    "system:kube-proxy": "system:masters",
    **{f"system:node:{name}": "system:nodes" for name in NAMES},
    "tester": "testers",
}
"""Each user's group. The tester may do nothing that nobody allows."""
PROXY_RULES = {
    "iptables": ("iptables-save", "-t", "nat"),
    "nftables": ("nft", "list", "table", "ip", "kube-proxy"),
}
"""What shows the rules of kube-proxy in each of its modes."""
PAUSE = "docker.io/library/pause:1"
"""The image with which each pod begins; its program waits."""
READY_S = 60.0
_API_PORT = 6443
_ETCD = "http://127.0.0.1:2379"
_SOCKET = "/run/containerd/containerd.sock"
_CNI_FOLDERS = ("/usr/lib/cni", "/usr/libexec/cni", "/opt/cni/bin")
GVISOR = ("runsc", "containerd-shim-runsc-v1")
"""What containerd starts for the handler ``runsc`` of a RuntimeClass."""
_DEBIAN = ("etcd", "containerd", "ctr", "runc", "conntrack", "iptables", "nft", "ipset", "openssl", "cc")
_ROOT = Path(__file__).parents[2]
_PAUSE_SOURCE = b"int pause(void); int main(void) { for (;;) pause(); }\n"
# kubelet writes these, and they are the whole machine's: it finds them as it wants them, in files of the node
_SYSCTLS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}
# $1: the node's folder; then pairs of a network and the address that it is reached by
_FURNISH = """set -e
data=$1; shift
mount -t tmpfs -o mode=755 weighbridge /var/log
mkdir -p "$data/kubelet" /var/lib/kubelet
mount --bind "$data/kubelet" /var/lib/kubelet # its sockets want a short path
if [ -e /etc/machine-id ]; then # each is a machine of its own
    printf %s "$data" | md5sum | cut -c1-32 > "$data/machine-id"
    mount --bind "$data/machine-id" /etc/machine-id
fi
for file in $(cd "$data/sysctl" && find . -type f); do
    if [ -e "/proc/sys/$file" ]; then mount --bind "$data/sysctl/$file" "/proc/sys/$file"; fi
done
echo 1 > /proc/sys/net/ipv4/ip_forward
if [ -e /proc/sys/net/bridge/bridge-nf-call-iptables ]; then
    echo 1 > /proc/sys/net/bridge/bridge-nf-call-iptables
fi
mount --make-rshared / # kubelet wants to propagate mounts
while [ $# -gt 0 ]; do ip route add "$1" via "$2"; shift 2; done
"""
# its own --cleanup-config wants IPVS
_WITHOUT_POLICIES = """set -e
for way in iptables ip6tables; do
    $way-save --table filter | grep -v -e KUBE-ROUTER- -e KUBE-POD-FW- -e KUBE-NWPLCY- | $way-restore --table filter
done
for name in $(ipset list --name); do ipset destroy "$name"; done
"""
_CERTIFICATES = """set -e
cd "$1"
new="-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
openssl req -x509 $new -days 30 -subj /CN=cluster-of-tests -keyout ca.key -out ca.crt
openssl req $new -subj /CN=kube-apiserver -keyout api.key -out api.csr
echo "subjectAltName=IP:$2,IP:127.0.0.1,IP:10.96.0.1,DNS:kubernetes.default.svc" > api.ext
openssl x509 -req -in api.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -extfile api.ext -out api.crt
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:prime256v1 -out accounts.key
openssl pkey -in accounts.key -pubout -out accounts.pub
"""
_CONTAINERD = """version = 2
root = "{data}/containerd"
state = "/run/containerd"
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "{data}/registries"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{data}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runsc]
    runtime_type = "io.containerd.runsc.v1"
"""


def _builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("build", _ROOT / "scripts/kubernetes/build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PROGRAMS: Mapping[str, Path] | None = _builder().programs(user_cache_folder())
"""Kubernetes' programs by their names, as `make kubernetes` has built them; None where it has not."""
_CNI = next((folder for folder in _CNI_FOLDERS if Path(folder, "host-local").exists()), None)


def missing() -> str:
    """Return why there can be no cluster on this machine; "" where there can."""
    if PROGRAMS is None:
        return "needs Kubernetes' own programs: make kubernetes"
    lacking = [program for program in _DEBIAN if process.which(program) is None]
    lacking += ["host-local"] if _CNI is None else []
    if lacking:
        return f"needs {', '.join(lacking)}: {install_here(lacking)}"
    if cgroup_files.version(cgroup_files.MOUNT) != 1:
        return "needs control groups of version 1: in version 2 a group with pods cannot have their node's programs"
    return ""


@dataclass(kw_only=True)
class Node(DaemonMachine):
    """A node: besides, a folder on the disk that goes with it, and its pods' network."""

    answer_s = READY_S
    data: Path
    pods: str
    group: str
    """The control group in which kubelet makes those of pods."""

    def kill(self, daemon: str) -> None:
        """End one of its programs at once, by SIGKILL."""
        os.killpg(self.daemons[daemon].pid, signal.SIGKILL)
        self.daemons.pop(daemon).stop()

    def stop(self, daemon: str) -> None:
        """End one of its programs in good order."""
        self.daemons.pop(daemon).stop()

    def last_words(self) -> str:
        """The last lines of each of its programs' messages."""
        logs = sorted(self.folder.glob("*.log"))
        return "\n".join(f"{log.name}: {' | '.join(log.read_text().splitlines()[-3:])}" for log in logs)


@dataclass
class Cluster:
    """Two nodes, what their API server lets whom do, and kubectl."""

    folder: Path
    programs: Mapping[str, Path]
    nodes: tuple[Node, ...]
    proxy: str

    @property
    def server(self) -> str:
        """Return the API server's URL."""
        return f"https://{self.nodes[0].host.address}:{_API_PORT}"

    def kubeconfig(self, user: str = "admin") -> Path:
        """Return the file by which kubectl is one of `USERS`."""
        return self.folder / f"{user.rpartition(':')[2]}.kubeconfig"

    def variables(self, user: str = "admin") -> dict[str, str]:
        """Return the environment in which kubectl is one of `USERS` and keeps nothing outside of the folder."""
        return {"KUBECONFIG": str(self.kubeconfig(user)), "KUBECACHEDIR": str(self.folder / "kubectl")}

    def kubectl(
        self, *words: str, stdin: str = "", user: str = "admin", deadline_s: float = 2 * READY_S
    ) -> Completed:
        """Run kubectl on this machine, as one of `USERS`."""
        return process.run(self.command(*words, stdin=stdin, user=user, deadline_s=deadline_s))

    def command(self, *words: str, stdin: str = "", user: str = "admin", deadline_s: float = 2 * READY_S) -> Command:
        """Return the command that runs kubectl on this machine, as one of `USERS`."""
        argv = (str(self.programs["kubectl"]), *words)
        return Command(argv, deadline_s, self.variables(user), stdin.encode())

    def must(self, *words: str, stdin: str = "") -> str:
        """Return what kubectl prints; it has to succeed."""
        done = self.kubectl(*words, stdin=stdin)
        assert done.returncode == 0, f"{done}\n{self.last_words()}"
        return done.text

    def get(self, *words: str) -> Any:
        """Return what ``kubectl get`` has, as JSON."""
        return json.loads(self.must("get", *words, "--output", "json"))

    def apply(self, *objects: Mapping[str, Any]) -> None:
        """Make or change objects: as JSON, as YAML 1.1 has words that are booleans."""
        every = {"apiVersion": "v1", "kind": "List", "items": objects}
        self.must("apply", "--filename", "-", stdin=json.dumps(every))

    def run_pods(self, *pods: Mapping[str, Any]) -> None:
        """Make pods and wait until they are ready."""
        self.apply(*pods)
        names = [f"pod/{pod['metadata']['name']}" for pod in pods]
        self.must("wait", "--for=condition=Ready", f"--timeout={READY_S:g}s", *names)

    def exec(self, pod: str, *argv: str) -> Completed:
        """Run a command in a pod."""
        return self.kubectl("exec", pod, "--", *argv)

    def load(self, archive: Path) -> None:
        """Bring an image, as ``docker save`` writes it, to the containerd of each node."""
        command = Command(("ctr", "--namespace", "k8s.io", "images", "import", str(archive.absolute())), 2 * READY_S)
        for importing in [node.host.start(command) for node in self.nodes]:
            ended = importing.wait(command.deadline_s)
            done = importing.stop(timed_out=not ended)
            assert ended and done.returncode == 0, done

    def start_api_server(self) -> None:
        """Start the API server, which has all that it had before."""
        _start_api_server(self)

    def start_kubelets(self, *nodes: Node) -> None:
        """Start kubelet on these nodes."""
        for node in nodes:
            _start_kubelet(self, node)

    def start_proxies(self, mode: str) -> None:
        """Have kube-proxy on each node in this mode, in the place of the one that runs."""
        self.proxy = mode
        for node in self.nodes:
            if "kube-proxy" in node.daemons:
                node.stop("kube-proxy")
            configuration = node.data / "kube-proxy.json"
            configuration.write_text(json.dumps(_proxy(node, mode, self.kubeconfig("system:kube-proxy"))))
            node.start("kube-proxy", self.programs["kube-proxy"], "--config", configuration)

    @contextmanager
    def policies_enforced(self) -> Iterator[None]:
        """Have kube-router enforce NetworkPolicy on each node, which nobody does before and after."""
        self.enforce_policies()
        try:
            yield
        finally:
            for node in self.nodes:
                node.stop("kube-router")
                node.must("sh", "-c", _WITHOUT_POLICIES)

    def enforce_policies(self) -> None:
        """Have kube-router enforce NetworkPolicy on each node: nobody does so before."""
        off = [f"--run-{what}=false" for what in ("router", "service-proxy", "loadbalancer")]
        for node in self.nodes:
            node.start(
                "kube-router", self.programs["kube-router"], "--kubeconfig", self.kubeconfig("system:kube-proxy"),
                "--hostname-override", node.name, "--run-firewall=true", "--service-cluster-ip-range", SERVICES, *off,
                NODE_NAME=node.name,
            )  # fmt: skip

    def last_words(self) -> str:
        """The last messages of every program of the nodes."""
        return "\n".join(f"{node.name}\n{node.last_words()}" for node in self.nodes)

    def eventually(self, what: str, condition: Callable[[], bool], seconds: float = READY_S) -> None:
        """Wait until a condition holds; fail with the last messages of every program where it does not."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds:g} s: {what}\n{self.last_words()}"
            time.sleep(0.1)


def pod(name: str, node: str, *argv: str, image: str, **spec: Any) -> dict[str, Any]:
    """Return a pod of one container, which the scheduler puts on the node; ``spec`` is added to its specification.

    It has the label ``app`` with its name, and ends at once when it is deleted.
    """
    container = {"name": "main", "image": image, "imagePullPolicy": "Never", "command": argv}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": node}, "containers": [container], "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False, "enableServiceLinks": False,
            "dnsPolicy": "Default", **spec,
        },
    }  # fmt: skip


def image_of(tag: str, layers: Sequence[bytes], folder: Path, command: Sequence[str] = ("sleep", "infinity")) -> Path:
    """Return an image's archive, made without an engine: pods name it ``docker.io/library/TAG``."""
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
    path = folder / f"{tag.partition(':')[0].rpartition('/')[2]}.tar"
    path.write_bytes(image_archive(tag, {}, architecture, layers, command))
    return path


@contextmanager
def two_nodes(folder: Path, *, proxy: str = "iptables", run_id: str = RUN) -> Iterator[Cluster]:
    """Start a cluster, and end it with everything in it; its messages stay in the folder, and nothing elsewhere.

    One at a time in a network: its addresses are those of testbed hosts.
    """
    assert not missing() and PROGRAMS is not None, missing()
    folder.chmod(0o755)
    with open_run(run_id) as run, ExitStack() as stack:
        nodes = tuple(_node(stack, run, name, number, folder) for number, name in enumerate(NAMES, 1))
        stack.enter_context(nodes[0].host.switch.uplink(f"{process.link_prefix(run_id)}v1000"))
        cluster = Cluster(folder, PROGRAMS, nodes, proxy)
        for number, node in enumerate(nodes):
            _furnish(node, nodes[1 - number])
            _start_containerd(node)
        _identify(cluster)
        _start_etcd(cluster)
        cluster.start_api_server()
        pause = _pause_image(folder)
        for node in nodes:
            cluster.eventually(f"containerd of {node.name}", partial(_answers, node))
        cluster.load(pause)
        cluster.eventually("the API server", lambda: cluster.kubectl("get", "--raw", "/readyz").returncode == 0)
        _start_controllers(cluster)
        cluster.start_kubelets(*nodes)
        cluster.start_proxies(proxy)
        names = [f"node/{name}" for name in NAMES]
        wanted = ("get", "--output", "name", "serviceaccount/default", *names)
        cluster.eventually("both nodes", lambda: cluster.kubectl(*wanted).returncode == 0)
        cluster.must("wait", "--for=condition=Ready", f"--timeout={READY_S:g}s", *names)
        yield cluster


def _node(stack: ExitStack, run: RunContext, name: str, number: int, folder: Path) -> Node:
    host = stack.enter_context(testbed_host(name, TestbedOptions(kind="testbed"), run))
    data = Path(stack.enter_context(host.engine_folder()))
    group = cgroups.Cgroup(GroupName(run.id, f"host-{name}", "pods")).create()
    assert group.everywhere  # kubelet wants it in each hierarchy; it goes with the host's own group
    node = Node(
        name=name, host=host, data=data, folder=folder / name, pods=f"10.244.{number}.0/24",
        group=f"/{cgroups.TOPS[0]}/{group.name}",
    )  # fmt: skip
    node.folder.mkdir()
    stack.callback(node.power_off)
    return node


def _furnish(node: Node, other: Node) -> None:
    for name, value in _SYSCTLS.items():
        file = node.data / "sysctl" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{value}\n")
    (node.data / "cni").mkdir()
    ranges = {"ranges": [[{"subnet": node.pods}]], "routes": [{"dst": "0.0.0.0/0"}]}
    addresses = {"type": "host-local", "dataDir": "/run/cni", **ranges}
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True, "ipam": addresses}
    network = {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}
    (node.data / "cni/10-pods.conflist").write_text(json.dumps(network))
    node.must("sh", "-c", _FURNISH, "furnish", str(node.data), other.pods, other.host.address)


def _start_containerd(node: Node) -> None:
    configuration = node.data / "containerd.toml"
    configuration.write_text(_CONTAINERD.format(data=node.data, socket=_SOCKET, pause=PAUSE, plugins=_CNI))
    path = os.environ["PATH"]
    if (shim := process.which(GVISOR[1])) is not None:
        folder = node.data / "bin"
        folder.mkdir()
        program = folder / GVISOR[1]
        words = shlex.join([sys.executable, str(Path(__file__).parent / "runsc_shim.py"), str(shim)])
        program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        program.chmod(0o755)
        path = f"{folder}:{path}"
    node.start("containerd", "containerd", "--config", configuration, TMPDIR="/run", PATH=path)


def _answers(node: Node) -> bool:
    return node.run("ctr", "version").returncode == 0


def _identify(cluster: Cluster) -> None:
    """Make the certificates, and a token and a kubeconfig for each of `USERS`."""
    folder, address = cluster.folder, cluster.nodes[0].host.address
    done = process.run(Command(("sh", "-c", _CERTIFICATES, "certificates", str(folder), address)))
    assert done.returncode == 0, done
    authority = base64.b64encode((folder / "ca.crt").read_bytes()).decode()
    place = {"server": cluster.server, "certificate-authority-data": authority}
    tokens = []
    for user, group in USERS.items():
        token = secrets.token_hex(16)
        tokens.append(f"{token},{user},{user},{group}\n")
        configuration = {
            "apiVersion": "v1", "kind": "Config", "current-context": "tests",
            "clusters": [{"name": "tests", "cluster": place}], "users": [{"name": user, "user": {"token": token}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": user}}],
        }  # fmt: skip
        cluster.kubeconfig(user).write_text(json.dumps(configuration))
        cluster.kubeconfig(user).chmod(0o600)
    (folder / "tokens.csv").write_text("".join(tokens))


def _start_etcd(cluster: Cluster) -> None:
    node = cluster.nodes[0]
    node.start(
        "etcd", "etcd", "--data-dir", "/run/etcd", "--listen-client-urls", _ETCD, "--advertise-client-urls", _ETCD,
        "--listen-peer-urls", "http://127.0.0.1:2380",
    )  # fmt: skip


def _start_api_server(cluster: Cluster) -> None:
    node, folder = cluster.nodes[0], cluster.folder
    node.start(
        "kube-apiserver", cluster.programs["kube-apiserver"], "--etcd-servers", _ETCD,
        "--advertise-address", node.host.address, "--secure-port", str(_API_PORT),
        "--tls-cert-file", folder / "api.crt", "--tls-private-key-file", folder / "api.key",
        "--cert-dir", "/run/kubernetes", "--client-ca-file", folder / "ca.crt",
        "--token-auth-file", folder / "tokens.csv", "--authorization-mode", "Node,RBAC", "--allow-privileged=true",
        "--service-cluster-ip-range", SERVICES, "--kubelet-preferred-address-types", "InternalIP",
        "--service-account-issuer", "https://kubernetes.default.svc",
        "--service-account-key-file", folder / "accounts.pub",
        "--service-account-signing-key-file", folder / "accounts.key",
    )  # fmt: skip


def _start_controllers(cluster: Cluster) -> None:
    node = cluster.nodes[0]
    node.start(
        "kube-controller-manager", cluster.programs["kube-controller-manager"], "--leader-elect=false",
        "--kubeconfig", cluster.kubeconfig("system:kube-controller-manager"), "--cluster-cidr", POD_NETWORK,
        "--service-account-private-key-file", cluster.folder / "accounts.key",
        "--root-ca-file", cluster.folder / "ca.crt", "--cert-dir", "/run/kubernetes",
        "--enable-hostpath-provisioner",  # of StorageClasses, for tests: folders in /tmp/hostpath_pv
        "--flex-volume-plugin-dir", "/run/kubernetes/volume-plugins",  # else it is made in /usr
    )  # fmt: skip
    node.start(
        "kube-scheduler", cluster.programs["kube-scheduler"], "--leader-elect=false",
        "--kubeconfig", cluster.kubeconfig("system:kube-scheduler"), "--cert-dir", "/run/kubernetes",
    )  # fmt: skip


def _start_kubelet(cluster: Cluster, node: Node) -> None:
    configuration = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": node.host.address,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"}, "cgroupDriver": "cgroupfs", "cgroupRoot": node.group,
        "containerRuntimeEndpoint": f"unix://{_SOCKET}", "failCgroupV1": False, "failSwapOn": False, "healthzPort": 0,
        "evictionHard": {"nodefs.available": "1%", "imagefs.available": "1%", "memory.available": "100Mi"},
        "imageGCHighThresholdPercent": 100, "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        "clusterDomain": "cluster.local", "resolvConf": "/etc/resolv.conf",
    }  # fmt: skip
    file = node.data / "kubelet.json"
    file.write_text(json.dumps(configuration))
    node.start(
        "kubelet", cluster.programs["kubelet"], "--config", file,
        "--kubeconfig", cluster.kubeconfig(f"system:node:{node.name}"), "--hostname-override", node.name,
        "--node-ip", node.host.address, "--v", "1",
    )  # fmt: skip


def _proxy(node: Node, mode: str, kubeconfig: Path) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": mode,
        "clientConnection": {"kubeconfig": str(kubeconfig)}, "clusterCIDR": POD_NETWORK,
        "conntrack": {"maxPerCore": 0}, "hostnameOverride": node.name, "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
    }  # fmt: skip


def _pause_image(folder: Path) -> Path:
    """An image whose program waits: each pod begins with it."""
    program = folder / "pause"
    compile_it = ("cc", "-static", "-Os", "-s", "-x", "c", "-o", str(program), "-")
    done = process.run(Command(compile_it, stdin=_PAUSE_SOURCE))
    assert done.returncode == 0, done
    return image_of("pause:1", [file_layer("/pause", program.read_bytes())], folder, ("/pause",))


def main(archives: Sequence[str]) -> None:
    """Run a cluster with these images until Ctrl-C."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a shell's job in the background would ignore the first
        signal.signal(number, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder, two_nodes(Path(folder)) as cluster:
        for archive in archives:
            cluster.load(Path(archive))
        print(cluster.must("get", "nodes", "--output", "wide"), end="")
        variables = {**cluster.variables(), "PATH": f"{cluster.programs['kubectl'].parent}:$PATH"}
        print("export", *(f"{name}={value}" for name, value in variables.items()), flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


if __name__ == "__main__":
    main(sys.argv[1:])
