"""What is said before anything is started: what a machine lacks, and who is left out."""

import os
from pathlib import Path

import pytest

from sentences import raises_sentence
from weighbridge import registry
from weighbridge.cli.approval import decides_sentence
from weighbridge.errors import EnvironmentLost, Interrupted, Unavailable
from weighbridge.linux.memory_room import MemoryBudget
from weighbridge.model.decisions import LeftOut
from weighbridge.model.facts import IO_URING, IO_URING_ALLOWED
from weighbridge.model.plugin import Readiness
from weighbridge.model.study import Study
from weighbridge.runner import known_noise, planned, preflight
from weighbridge.runner import run as running
from weighbridge.runner.planned import PlannedRun, refusals
from weighbridge.runner.session import Session
from weighbridge.store.run import RunStore
from weighbridge.study.loader import check
from weighbridge.study.source import parse

from .world import USERLAND, FakeSite, FakeWorkload, Told, World, begun, study

START = "study: s\nquestion: q\nbaseline: n\nenvironments: {n: {kind: native}}\n"
TCP = "workloads: {tcp: {kind: iperf3}}\n"


@pytest.mark.parametrize(
    ("more", "about"),
    [
        ("resources: {pin: {server: '1', client: '0'}}", []),
        ("resources: {pin: {server: '0-1', client: '0,7'}}", ["resources: pin: client: this machine has no CPU 7"]),
        ("hosts: {a: {kind: testbed, cpus: '0-3'}}", ["hosts: a: cpus: this machine has no CPU 2"]),
        ("hosts: {a: {kind: ssh, destination: a}}\nresources: {pin: {server: '7'}}", []),  # it may have that one
        ("resources: {cpus: 3}", ["resources: cpus: 3"]),
        ("resources: {memory: 900000GiB}", ["resources: memory: 921600000 MiB is more than the "]),
    ],
)
def test_cpus_that_are_not_here_are_told_before_the_run(monkeypatch: pytest.MonkeyPatch, more: str, about: list[str]):
    monkeypatch.setattr(preflight, "cpus_online", lambda: [0, 1])
    study = check(parse(START + TCP + more, "a.yaml"))
    told = preflight.missing_cpus(study) + preflight.warnings(study)
    assert len(told) == len(about)
    assert all(text.startswith(start) for text, start in zip(told, about, strict=True))


CLUSTER = """study: s
question: q
hosts: {a: {kind: kubernetes, node: n}}
inside: [server, client]
placement: {server: a, client: a}
baseline: pod
environments: {pod: {kind: pod}, port: {kind: pod, reach: nodeport}, guarded: {kind: pod, policy: allow}}
"""


def test_what_a_study_on_nodes_cannot_have_is_told():
    servers = "workloads: {sql: {kind: pgbench}, kv: {kind: redis-benchmark}, tcp: {kind: iperf3}}\n"
    warnings = preflight.warnings(check(parse(CLUSTER + servers + "resources: {pin: spread}", "a.yaml")))
    assert warnings == [
        "resources: pin has no effect on nodes of a cluster, because kubelet chooses the CPUs of pods. Remove it",
    ]
    assert preflight.warnings(check(parse(CLUSTER + TCP, "a.yaml"))) == []


def test_another_quality_of_service_than_the_baselines_is_told():
    guaranteed = CLUSTER.replace("{kind: pod, policy: allow}", "{kind: pod, quality: guaranteed}")
    limits = "resources: {cpus: 1, memory: 128MiB}\n"
    assert preflight.warnings(check(parse(guaranteed + TCP + limits, "a.yaml"))) == [
        "environments: guarded: quality of service is Guaranteed, but Burstable in pod, and this difference becomes "
        "part of the cost. Use the same 'quality' and limits in every environment"
    ]
    every = guaranteed.replace("kind: pod}", "kind: pod, quality: guaranteed}")
    every = every.replace("reach: nodeport", "reach: nodeport, quality: guaranteed")
    assert preflight.warnings(check(parse(every + TCP + limits, "a.yaml"))) == []
    alike = check(parse(guaranteed + TCP + "resources: {cpus: 0.05, memory: 32MiB}", "a.yaml"))
    assert preflight.warnings(alike) == [], "requests are as small as the limits: all are Guaranteed"


def test_this_machines_noise_says_nothing_of_nodes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(known_noise, "known", lambda: known_noise.KnownNoise("today", {"iperf3": 0.01}))
    of_nodes = known_noise.decidable(check(parse(CLUSTER + TCP, "a.yaml")))
    assert of_nodes.elsewhere and not of_nodes.visible and "doctor --noise" not in decides_sentence(of_nodes)
    assert known_noise.decidable(check(parse(START + TCP, "a.yaml"))).visible


@pytest.mark.parametrize(
    ("user", "lacks", "resources", "told"),
    [
        (0, "", "{pin: {client: '0', server: '1'}}", []),
        (
            1000,
            "",
            "{cpus: 1, pin: {client: '0', server: '1'}}",
            [
                "resources: pin: the limit has no effect in n, n-again, because systemd does not delegate cpuset to "
                "this user. As root, add 'Delegate=cpu cpuset io memory pids' to user@.service (systemctl edit), and "
                "log in again"
            ],
        ),
        (0, "w", "{cpus: 1}", []),
        (1000, "", "{cpus: 1}", []),
        (1000, "w", "{}", []),
        (
            1000,
            "w",
            "{cpus: 1, memory: 1GiB}",
            ["resources: cpus, memory: the limit has no effect in n, n-again, because w. Try: sudo"],
        ),
    ],
)
def test_limits_that_a_user_cannot_set_are_told_before_the_run(
    monkeypatch: pytest.MonkeyPatch, user: int, lacks: str, resources: str, told: list[str]
):
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(preflight.delegation, "lacking", lambda: lacks)
    monkeypatch.setattr(preflight.delegation, "remedy", lambda: "sudo")
    monkeypatch.setattr(preflight.delegation, "controllers", lambda: {"cpu", "memory", "pids"})
    environments = "environments: {n: {kind: native}, d: {kind: docker}}"
    text = START.replace("environments: {n: {kind: native}}", environments) + f"{TCP}resources: {resources}"
    assert preflight.warnings(check(parse(text, "a.yaml"))) == told


HOSTS = """\
hosts: {a: {kind: guest, memory: MEMORY}, b: {kind: guest, memory: 512MiB}}
placement: {client: a, server: b}
inside: [client, server]
"""


def refused(text: str) -> list[str]:
    study = check(parse(text, "a.yaml"))
    return refusals(study, dict.fromkeys((arm.name for arm in study.arms), Readiness(True)))


@pytest.mark.parametrize(
    ("host", "enabled", "switched"),
    [("local", b"Y\n", True), ("local", b"", False), ("guest", b"", True)],  # a guest has a kernel of its own
)
def test_what_this_kernel_has_nothing_of_is_not_switched(
    monkeypatch: pytest.MonkeyPatch, host: str, enabled: bytes, switched: bool
):
    monkeypatch.setattr(preflight, "read_here", lambda _: enabled)
    text = (
        f"study: s\nquestion: q\nbaseline: n\nhosts: {{a: {{kind: {host}}}}}\nexplain: true\n"
        "environments: {n: {kind: native}, d: {kind: docker, network: none}}\n"
        "workloads: {cpu: {kind: sysbench-cpu, duration: 1s}}\n"
    )
    made = preflight.on_this_kernel(check(parse(text, "s.yaml")))
    assert ("d-without-apparmor" in {arm.name for arm in made.arms}) is switched
    reasons = {each.kind: each.refused for each in made.mechanisms}
    assert reasons == {"apparmor": "" if switched else "this kernel has no AppArmor", "seccomp": ""}


def test_hosts_that_cannot_be_had_are_told_before_the_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(preflight, "which", lambda name: name)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert refused(START + TCP + HOSTS.replace("MEMORY", "512MiB")) == []
    (why,) = refused(START + TCP + HOSTS.replace("MEMORY", "921600GiB"))
    assert why.startswith("a.yaml:6: host a: a guest with 943718400 MiB does not fit on this machine (")
    assert why.endswith(": give it less memory")
    monkeypatch.setattr(preflight, "room_in", lambda _: MemoryBudget(800 * 2**20))  # room for one of them
    (why,) = refused(START + TCP + HOSTS.replace("MEMORY", "512MiB"))
    assert "host a: a guest with 512 MiB" in why and "of which other guests need 512 MiB" in why
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(preflight, "which", lambda _: None)  # nobody is to install what is of no use then
    assert refused(START + TCP + HOSTS.replace("MEMORY", "512MiB")) == [
        "a.yaml:6: hosts b, a: only root can create guest hosts: run as root"
    ]


NFS = """\
study: nfs
question: What does NFS cost?
hosts: {a: {kind: A}, b: {kind: B}}
placement: {client: a, server: a, storage: b}
environments: {n: {kind: native, storage: {kind: nfs, version: 4.2}}}
baseline: n
workloads: {cpu: {kind: sysbench-cpu}}
repetitions: {blocks: 1}
"""


@pytest.mark.parametrize(("site", "store"), [("testbed", "testbed"), ("testbed", "guest"), ("guest", "testbed")])
def test_storage_that_this_machine_s_kernel_would_serve_is_refused(
    monkeypatch: pytest.MonkeyPatch, site: str, store: str
):
    monkeypatch.setattr(type(registry.environments()["native"]), "ready", lambda *_: Readiness(True))
    study = check(parse(NFS.replace("kind: A", f"kind: {site}").replace("kind: B", f"kind: {store}"), "a"))
    states = planned.readiness_of(study)
    assert not any(state.ready for state in states.values())
    assert all("kind: guest" in state.remedy for state in states.values())


def test_of_a_study_that_a_run_has_kept_no_lines_are_known():
    study = check(parse(START + TCP, "a"))
    lacking = {
        "n": Readiness(False, "it is broken", "mend it"),
        "n-again": Readiness(False, "it is broken", "mend it"),
    }
    assert refusals(study, lacking) == ["a:4: n, n-again: it is broken: mend it"]
    assert refusals(study.model_copy(update={"lines": {}}), lacking) == ["n, n-again: it is broken: mend it"]


def test_no_hypervisor_is_to_be_installed_where_the_machine_can_run_none(monkeypatch: pytest.MonkeyPatch):
    """The first that a newcomer was told to install was Xen, on a machine without hardware virtualisation."""
    xen, pv = registry.environments()["xen"], registry.environments()["xen"].options(type="pv")
    install = Readiness(False, "xl is not installed", "apt-get install xen-utils")
    monkeypatch.setattr(preflight, "lacking_here", lambda _: install)
    monkeypatch.setattr(preflight.virtualisation, "lacking", lambda: "no svm")
    for plugin, options in (
        (xen, None),
        (xen, xen.options(type="hvm")),
        (registry.environments()["virtualbox"], None),
    ):
        assert preflight.ready(plugin, options) == Readiness(False, "no svm", preflight.virtualisation.ELSEWHERE)
    assert preflight.ready(xen, pv) == preflight.ready(registry.environments()["lxc"]) == install
    monkeypatch.setattr(preflight.virtualisation, "lacking", lambda: "")
    assert preflight.ready(xen) == install


def test_a_cache_that_cannot_be_written_is_no_ready_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WEIGHBRIDGE_CACHE", str(tmp_path / "not" / "yet"))
    assert preflight.checks()["disk"].ready
    monkeypatch.setattr(os, "access", lambda path, how: path != tmp_path)
    found = preflight.checks()["disk"]
    assert not found.ready and str(tmp_path) in found.detail and "WEIGHBRIDGE_CACHE" in found.remedy


def test_what_may_refuse_traffic_or_files_is_told_where_it_is_in_force(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(preflight.selinux, "state", lambda: "")
    monkeypatch.setattr(preflight.firewalld, "runs", lambda: False)
    assert not {"SELinux", "firewalld"} & set(preflight.checks())
    monkeypatch.setattr(preflight.selinux, "state", lambda: "enforcing")
    monkeypatch.setattr(preflight.firewalld, "runs", lambda: True)
    checks = preflight.checks()
    assert checks["SELinux"].ready and "label=disable" in checks["SELinux"].detail
    assert checks["firewalld"].ready and "zones" in checks["firewalld"].detail


# -- optional environments that are left out -------------------------------------------------------


INSTALL = Readiness(False, "podman is not installed", "apt-get install podman")


def readiness(world: World):
    """What `weighbridge.runner.planned.readiness_of` gives, without launchers and storage."""
    return lambda made: {arm.name: world.environments[arm.kind].ready(arm.options) for arm in made.arms}


def go(path: Path, made: Study, world: World, told: Told | None = None) -> tuple[Told, dict[str, int]]:
    """Run a study into a directory, as ``run_study`` does; how many trials each environment has."""
    told = told or Told()
    with begun(path, made) as (store, run):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(planned, "readiness_of", readiness(world))
            rest = running.leave_out(made, store, told, continued=True)
        try:
            Session(rest, store, run, USERLAND, told).go()
        finally:
            counts: dict[str, int] = {}
            for trial in store.finished():
                counts[trial.environment] = counts.get(trial.environment, 0) + 1
    return told, counts


def kept(path: Path) -> tuple[LeftOut, ...]:
    with RunStore(path / "run") as store:
        return store.left_out()


def test_what_is_not_ready_is_not_measured_and_the_run_keeps_why(world: World, tmp_path: Path):
    world.environments["fake"].ready = lambda *_: INSTALL  # type: ignore[method-assign]
    made = study(optional=["one", "two"])
    with raises_sentence(Unavailable):
        go(tmp_path, made, world)
    assert not world.sites
    ready = iter([Readiness(True), INSTALL])
    world.environments["fake"].ready = lambda *_: next(ready)  # type: ignore[method-assign]
    told, counts = go(tmp_path, made, world)
    assert counts == {"native": 4, "one": 4, "native-again": 4}
    assert "two is skipped: podman is not installed; apt-get install podman" in told.lines
    expected = LeftOut(environment="two", kind="fake", why=INSTALL.detail, remedy=INSTALL.remedy)
    assert kept(tmp_path) == (expected,)


@pytest.mark.parametrize("role", ["server", "client"])
def test_what_refuses_as_it_is_opened_is_closed_and_left_out(world: World, tmp_path: Path, role: str):
    world.unavailable = {f"one-{role}": "no guest came up under KVM"}
    made = study(optional=["one"], more="inside: [server, client]")
    told, counts = go(tmp_path, made, world)
    assert counts == {"native": 4, "two": 4, "native-again": 4}
    assert [(each.environment, each.why) for each in kept(tmp_path)] == [("one", "no guest came up under KVM")]
    assert "one is skipped: no guest came up under KVM" in told.lines
    assert world.left() == []
    assert len({site.name for site in world.sites}) == len(world.sites)
    assert not [place for place, _, _ in world.started if place == "one"]


@pytest.fixture
def refusing(world: World, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The places whose programs cannot use io_uring, which every workload of the world needs."""
    places: set[str] = set()

    def answer(site: FakeSite, _: object) -> dict[str, str]:
        return {IO_URING: "refused (EPERM, seccomp)" if site.place in places else IO_URING_ALLOWED}

    monkeypatch.setattr("weighbridge.runner.sites.about_io_uring", answer)
    monkeypatch.setattr(FakeWorkload, "needs_io_uring", lambda *_: True)
    return places


def test_an_optional_environment_that_refuses_io_uring_is_left_out(world: World, tmp_path: Path, refusing: set[str]):
    refusing.add("one")
    _, counts = go(tmp_path, study(optional=["one"]), world)
    assert counts == {"native": 4, "two": 4, "native-again": 4}
    (left_out,) = kept(tmp_path)
    assert left_out.environment == "one" and left_out.why.endswith(
        " needs io_uring, which is refused (EPERM, seccomp) in one"
    )
    assert world.left() == []


def test_an_error_that_is_no_refusal_is_not_called_one(
    world: World, tmp_path: Path, refusing: set[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("weighbridge.runner.sites.about_io_uring", lambda *_: {IO_URING: "not known (ENOMEM)"})
    with pytest.raises(Unavailable, match=r"needs io_uring, which failed in .*; the cause is not known \(ENOMEM\)"):
        go(tmp_path, study(optional=["one", "two"]), world)


def test_a_run_ends_before_its_first_trial_if_its_baseline_refuses_io_uring(
    world: World, tmp_path: Path, refusing: set[str]
):
    refusing |= {"native", "native-again"}
    with pytest.raises(Unavailable, match="needs io_uring, which is refused"):
        go(tmp_path, study(optional=["one", "two"]), world)
    assert world.started == [] and world.left() == []


def test_clients_outside_are_of_no_environment(world: World, tmp_path: Path):
    world.unavailable = {"outside-client": "no room"}
    with pytest.raises(Unavailable, match="no room"):
        go(tmp_path, study(optional=["one", "two"]), world)


def test_a_run_with_trials_keeps_what_it_began_with(world: World, tmp_path: Path):
    made, told = study(optional=["one"]), Told(interrupt_at=3)
    world.unavailable = {"one-server": "no guest"}
    with pytest.raises(Interrupted):
        go(tmp_path, made, world, told)
    world.unavailable = {}  # it could be opened now
    _, counts = go(tmp_path, made, world)
    assert counts == {"native": 4, "two": 4, "native-again": 4}
    assert [each.environment for each in kept(tmp_path)] == ["one"]


@pytest.mark.parametrize("how", ["opening", "readiness"])
def test_what_a_run_began_with_it_does_not_leave_out_later(world: World, tmp_path: Path, how: str):
    made, told = study(optional=["one"]), Told(interrupt_at=3)
    with pytest.raises(Interrupted):
        go(tmp_path, made, world, told)
    world.cannot_open = {"one"}
    if how == "readiness":
        world.environments["fake"].ready = lambda *_: INSTALL  # type: ignore[method-assign]
    with pytest.raises(Unavailable if how == "readiness" else EnvironmentLost):
        go(tmp_path, made, world)
    assert kept(tmp_path) == ()


def test_who_is_left_out_is_told_once(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Whoever begins a run is told before it is asked whether to start; whoever continues it, by the run."""
    not_here = {"one": Readiness(True), "two": INSTALL, "native": Readiness(True), "native-again": Readiness(True)}
    monkeypatch.setattr(planned, "readiness_of", lambda made: {arm.name: not_here[arm.name] for arm in made.arms})
    monkeypatch.setattr(running, "_session", lambda *_, **__: None)
    monkeypatch.setattr(running, "volatile_facts", dict)
    monkeypatch.setattr(running.clean, "sweep", lambda _: [])
    monkeypatch.setattr(running.clean, "sweep_and_forget", lambda run, *_: running.run_lock.forget(run) or ())
    made, told = study(optional=["two"]), [Told(), Told()]
    running.run_study(made, tmp_path / "run", told[0], lambda _: None)
    running.run_study(None, tmp_path / "run", told[1], lambda _: None)
    counts = [sum("two is skipped" in line for line in each.lines) for each in told]
    assert counts == [0, 1]


@pytest.mark.parametrize("trials", [0, 1])
def test_who_interrupts_a_run_before_its_first_trial_is_told_that_nothing_is_kept(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trials: int
):
    """It said that finished trials are kept, and the run's directory was gone."""

    def interrupt(*_: object, **__: object) -> None:
        raise Interrupted(2)

    monkeypatch.setattr(running, "_session", interrupt)
    monkeypatch.setattr(running.RunStore, "finished", lambda _: dict.fromkeys(range(trials)))
    monkeypatch.setattr(PlannedRun, "require_environments", lambda _: [])
    monkeypatch.setattr(running, "volatile_facts", dict)
    monkeypatch.setattr(planned, "readiness_of", lambda made: {arm.name: Readiness(True) for arm in made.arms})
    monkeypatch.setattr(running.clean, "sweep_and_forget", lambda run, *_: running.run_lock.forget(run) or ())
    with pytest.raises(Interrupted) as ended:
        running.run_study(study(), tmp_path / "run", Told(), lambda _: None)
    assert ("nothing was kept" in str(ended.value)) == (not trials)
    assert ("finished trials are kept" in str(ended.value)) == (tmp_path / "run").exists() == bool(trials)
