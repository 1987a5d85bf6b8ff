"""Studies on the nodes of a cluster: what their hosts may say, and what cannot be there."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sentences import raises_sentence
from study.texts import loaded as text_loaded
from weighbridge import registry
from weighbridge.errors import StudyError
from weighbridge.features.kubernetes.hosts.kubernetes import KubernetesOptions
from weighbridge.features.kubernetes.objects import PodRequest
from weighbridge.model.environment import misplaced
from weighbridge.model.options import External
from weighbridge.model.plugin import Readiness
from weighbridge.model.study import Study
from weighbridge.runner.planned import describe_locations, readiness_of
from weighbridge.study.external import _lines_of_ssh, external_resources

TWO = "{kind: kubernetes, node: worker-1%s}\n  b: {kind: kubernetes, node: worker-2%s}"
ON_NODES = ("hosts", "  a:", "  b:", "placement")
STUDY = """study: pods
question: What does the pods' network cost?
hosts:
  a: {kind: kubernetes, node: worker-1}
  b: {kind: kubernetes, node: worker-2}
placement: {client: a, server: b}
inside: [server, client]
baseline: host
environments:
  host: {kind: pod, network: host}
  pod:  {kind: pod}
workloads:
  tcp: {kind: iperf3, duration: 1s}
repetitions: {blocks: 6}
"""


def loaded(old: str = "", new: str = "") -> Study:
    """The study with one change."""
    assert old in STUDY
    return text_loaded(STUDY.replace(old, new, 1) if old else STUDY)


def test_two_nodes_of_one_cluster_reach_each_other():
    assert [arm.options.network for arm in loaded().arms][:2] == ["host", "pod"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("node: worker-2", "context: other"),
        ("pod:  {kind: pod}", "pod:  {kind: docker}"),
        ("{kind: kubernetes, node: worker-1}", "{kind: testbed}"),
        ("{kind: pod, network: host}", "{kind: pod, network: host, sysctls: {net.core.somaxconn: 9}}"),
        ("node: worker-2", "node: 'worker;2'"),
        ("node: worker-2", "selector: --all"),
        ("node: worker-2", "services: [10, 1000]"),
        ("node: worker-2", "images: {load: []}"),
        ("node: worker-2", "images: {load: docker}"),
        ("node: worker-2", "images: {load: kind, pull: true}"),
        ("node: worker-2", "images: {push: 'https://registry.example'}"),
        ("node: worker-2", "images: {pull: true}"),
        ("pod:  {kind: pod}", "pod:  {kind: native}"),
        ("node: worker-2", "privileged: true, pod_security: baseline"),
        ("node: worker-2", "node: worker-2, pod_security: restricted"),
        ("{kind: iperf3, duration: 1s}", "{kind: fio, duration: 1s}"),
        (
            "{kind: pod}\nworkloads:\n  tcp: {kind: iperf3, duration: 1s}",
            "{kind: pod, reach: service, policy: allow}\n"
            "workloads:\n  tcp: {kind: netperf, test: TCP_CRR, duration: 1s}",
        ),
    ],
    ids=[
        "another cluster",
        "docker",
        "another kind of host",
        "sysctl of the node",
        "node",
        "selector",
        "a factor of the cluster",
        "no command",
        "another tool",
        "two ways",
        "no repository",
        "nothing to pull",
        "native without rights",
        "two levels",
        "no network of the node",
        "a cold cache",
        "a workload that is refused itself",
    ],
)
def test_a_mistake_has_a_sentence(old: str, new: str):
    with raises_sentence(StudyError):
        loaded(old, new)


def test_pods_are_on_nodes_alone():
    with raises_sentence(StudyError):
        text_loaded("".join(line for line in STUDY.splitlines(keepends=True) if not line.startswith(ON_NODES)))


def test_a_role_outside_of_all_is_in_a_pod_with_the_nodes_network():
    study = loaded("inside: [server, client]", "inside: [server]")
    environment, options = registry.bare_host(study.file.hosts["a"].traits)
    assert (environment.kind, options.network) == ("pod", "host")


def test_native_needs_privileged_pods_and_is_the_host_then():
    privileged = TWO % (", privileged: true", ", privileged: true")
    study = loaded(TWO % ("", ""), privileged)
    environment, _ = registry.bare_host(study.file.hosts["a"].own_traits)
    assert environment.kind == "native" and study.file.hosts["a"].description.endswith(", privileged")
    assert not misplaced(environment, study.file.hosts["b"].own_traits)


def test_a_level_of_pod_security_leaves_no_pod_the_nodes_network():
    options = KubernetesOptions(kind="kubernetes", pod_security="baseline")
    assert not registry.has_bare_host(options.own_traits) and options.description.endswith("pods at level baseline")


def test_a_host_is_told_in_the_plan():
    options = KubernetesOptions(kind="kubernetes", context="prod", namespace="bench", selector="disk=ssd")
    assert options.description == "Kubernetes, context prod, namespace bench, a node with disk=ssd"
    assert options.networks == {"kubernetes  prod"} and options.image_way.startswith(
        "must be on the node already; otherwise say"
    )


def test_what_a_study_names_of_a_cluster_is_shown_and_no_secret(tmp_path: Path):
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        '{"clusters": [{"cluster": {"server": "https://me:s3cr3t@evil:6443", "insecure-skip-tls-verify": true, '
        '"certificate-authority": "/ca", "certificate-authority-data": "s3cr3t", "proxy-url": "socks5://p"}}], '
        '"users": [{"user": {"token": "s3cr3t", "password": "s3cr3t", "tokenFile": "/root/.vault-token", '
        '"client-certificate": "/c", "client-key": "/k", "client-key-data": "s3cr3t"}}, '
        '{"user": {"auth-provider": {"config": {"cmd-path": "/gcloud", "cmd-args": "config helper", '
        '"access-token": "s3cr3t"}}}}, '
        '{"user": {"exec": {"command": "sh", "args": ["-c", "touch /tmp/x", 1, "'
        + "y" * 300
        + '"], "env": [{"name": "T", "value": "s3cr3t"}]}}}], "x": {"command": 1}}'
    )
    more = f", kubeconfig: {kubeconfig}, images: {{load: [ssh, worker-2, ctr, '-']}}"
    brought = external_resources(loaded(TWO % ("", ""), TWO % (f", kubeconfig: {kubeconfig}", more)))
    shown = {(each.kind, each.place): each for each in brought}
    assert shown[External.KUBECONFIG, "hosts.b.kubeconfig"].lines == (
        "server: https://evil:6443", "insecure-skip-tls-verify: True", "certificate-authority: /ca",
        "proxy-url: socks5://p", "tokenFile: /root/.vault-token", "client-certificate: /c", "client-key: /k",
        "starts /gcloud config helper", f"starts sh -c touch /tmp/x 1 {'y' * 200}...",
    )  # fmt: skip
    assert shown[External.COMMAND, "hosts.b.images.load"].value == "ssh worker-2 ctr -"
    assert shown[External.MACHINE, "hosts.b.node"].value == "worker-2"
    assert not any("s3cr3t" in line for each in brought for line in (each.value, *each.lines))


def test_each_of_several_kubeconfigs_is_shown(tmp_path: Path):
    for name in ("one", "two"):
        (tmp_path / name).write_text(f'{{"clusters": [{{"cluster": {{"server": "https://{name}"}}}}]}}')
    more = f", kubeconfig: '{tmp_path}/one:{tmp_path}/two'"
    (brought,) = [each for each in external_resources(loaded(TWO % ("", ""), TWO % (more, more))) if each.lines][:1]
    assert brought.lines == ("server: https://one", "server: https://two")


@pytest.mark.parametrize("text", ["{", "a: [", "- - -", "", "exec: !!python/object/apply:os.system [true]"])
def test_whatever_a_kubeconfig_holds_the_plan_is_shown(tmp_path: Path, text: str):
    (tmp_path / "config").write_text(text)
    more = f", kubeconfig: {tmp_path}/config"
    study = loaded(TWO % ("", ""), TWO % (more, more))
    assert any(each.kind is External.KUBECONFIG for each in external_resources(study))


def test_a_padded_file_hides_no_program(tmp_path: Path):
    padding = "# padding\n" * 30_000
    (tmp_path / "config").write_text(f'{padding}{{"users": [{{"user": {{"exec": {{"command": "evil.sh"}}}}}}]}}')
    (tmp_path / "ssh").write_text(f"{padding}Host x\n  ProxyCommand evil.sh\n")
    more = f", kubeconfig: {tmp_path}/config"
    brought = {each.kind: each for each in external_resources(loaded(TWO % ("", ""), TWO % (more, more)))}
    unknown = ("it is larger than 256 KiB, so the programs that it starts are unknown",)
    assert brought[External.KUBECONFIG].lines == unknown
    ssh = f"{{kind: ssh, destination: x, config: {tmp_path}/ssh}}"
    study = text_loaded(
        f"study: far\nquestion: What?\nhosts: {{a: {ssh}}}\nplacement: {{client: a, server: a}}\n"
        "inside: [server]\nbaseline: native\nenvironments: {native: {kind: native}, netns: {kind: netns}}\n"
        "workloads: {tcp: {kind: iperf3, duration: 1s}}\nrepetitions: {blocks: 6}\n"
    )
    assert {each.kind: each for each in external_resources(study)}[External.SSH_CONFIGURATION].lines == unknown


QUOTED = (
    '"ProxyCommand" sh -c "touch pwned"', 'Proxy"Command" sh', '"ProxyCommand"sh', '=ProxyCommand sh',
    "\rProxyCommand sh", '"localcommand"="sh" x', "SmartcardDevice x.so", "ProxyCommand sh -c 'a\x0bb'",
)  # fmt: skip
"""As ssh -G of OpenSSH 9.2 takes them."""


def test_every_line_of_an_ssh_configuration_is_shown_except_comments(tmp_path: Path):
    config = tmp_path / "ssh"
    config.write_bytes("\n".join(("Host x", "", "  # ProxyCommand y", "  SendEnv *", *QUOTED)).encode())
    assert [*_lines_of_ssh(config)] == ["Host x", "SendEnv *", *(line.strip() for line in QUOTED)]


@pytest.mark.parametrize(
    "line",
    [
        "Include more", "include=more", ' "Include" more', 'In"clude" more', "=Include more", '"" Include x',
        "\rINCLUDE more", "ProxyJump gate", 'proxy"jump"=gate',
    ],
)  # fmt: skip
def test_an_ssh_configuration_that_hides_what_ssh_does_is_refused(tmp_path: Path, line: str):
    config = tmp_path / "ssh"
    config.write_text(f"# Include fine\nHost x\n{line}\n")
    with pytest.raises(StudyError, match=r"refused because of (Include|ProxyJump)"):
        _lines_of_ssh(config)


def test_own_host_keys_of_an_ssh_configuration_are_pointed_out(tmp_path: Path):
    config = tmp_path / "ssh"
    config.write_text('Host x\n"UserKnownHostsFile"=known\n')
    assert [*_lines_of_ssh(config)][-1].startswith("(this configuration decides with its own host keys")


def test_the_cluster_is_asked_about_each_environment_before_a_run(monkeypatch: pytest.MonkeyPatch):
    kind, calls = registry.hosts()["kubernetes"], []

    def admits(_: object, options: KubernetesOptions, asked: Mapping[str, Sequence[PodRequest]]) -> Any:
        calls.append(options.node)
        assert [each.host_network for requests in asked.values() for each in requests] == [True, False, True]
        return {name: Readiness(name != "pod", "no", "ask") for name in asked}

    monkeypatch.setattr(type(kind), "admits", admits)
    monkeypatch.setattr("weighbridge.runner.preflight.lacking_here", lambda _: None)
    states = readiness_of(loaded())
    assert [name for name, state in states.items() if not state.ready] == ["pod"] and states["pod"].detail == "no"
    assert {*calls} == {"worker-1", "worker-2"}


def test_a_plan_names_the_cluster_once(monkeypatch: pytest.MonkeyPatch):
    kind = registry.hosts()["kubernetes"]
    monkeypatch.setattr(type(kind), "describe_location", lambda *_: "cluster: context prod")
    monkeypatch.setattr("weighbridge.runner.planned.lacking_here", lambda _: None)
    assert describe_locations(loaded()) == ["cluster: context prod"]
    monkeypatch.setattr("weighbridge.runner.planned.lacking_here", lambda _: Readiness(False))
    assert describe_locations(loaded()) == []
