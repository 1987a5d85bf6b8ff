"""What a stranger's study, run or fleet does before the user agrees to it: nothing that can be seen from outside.

Every command that takes one is called without ``--yes`` and without a terminal. Canaries are programs in PATH, a
configuration of ssh that starts a program, an HTTP server that counts connections, and a FIFO on which a reader waits
for ever.
"""

import http.server
import os
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import typer

from weighbridge.cli import approval, output
from weighbridge.cli.app import main
from weighbridge.features.fleets.folder import Fleet, FleetFolder
from weighbridge.model.measurement import Measurement, Metric, Outcome
from weighbridge.model.trial import RoleRecord, TrialRecord
from weighbridge.store.run import RunStore
from weighbridge.study.loader import load
from weighbridge.study.schedule import block

from .command_line import Said

pytestmark = [pytest.mark.real, pytest.mark.side_by_side]

LONGEST_S = 30
PROGRAMS = ("docker-compose", "kubectl")
HEAD = (
    "study: {name}\nquestion: What does it do before anybody agreed?\nbaseline: native\nrepetitions: {{blocks: 10}}\n"
)
SERVER = "prometheus: {{url: 'http://127.0.0.1:{port}', queries: {{load: {{query: up, unit: '1'}}}}}}\n"
OWN = "workloads: {{own: {{kind: command, run: [touch, '{canary}/command'], files: {{/tmp/x: hosts.txt}}}}}}\n"
STUDIES = {
    "here.yaml": HEAD + SERVER + OWN + """environments:
  native: {{kind: native}}
  bridge: {{kind: docker, network: bridge}}
  mine: {{kind: docker, network: bridge, dockerd: bin/dockerd}}
""",
    "ssh.yaml": HEAD + SERVER + OWN + """hosts: {{a: {{kind: ssh, destination: victim, config: ssh.conf}}}}
placement: {{client: a, server: a}}
environments: {{native: {{kind: native}}, netns: {{kind: netns}}}}
""",
    "image.yaml": HEAD
    + OWN
    + """userland: {{kind: saved-image, path: fifo}}
environments: {{native: {{kind: native}}, netns: {{kind: netns}}}}
""",
    "preload.yaml": HEAD + """userland: {{kind: host, env: {{LD_PRELOAD: '{canary}/evil.so'}}}}
environments: {{native: {{kind: native}}, netns: {{kind: netns}}}}
workloads: {{own: {{kind: sysbench-cpu, duration: 1s}}}}
""",
    "server.yaml": HEAD + SERVER + OWN + "environments: {{native: {{kind: native}}, netns: {{kind: netns}}}}\n",
    "cluster.yaml": HEAD.replace("native", "host") + """hosts: {{a: {{kind: kubernetes, context: production}}}}
placement: {{client: a, server: a}}
environments: {{host: {{kind: pod, network: host}}, pod: {{kind: pod}}}}
workloads: {{tcp: {{kind: iperf3, duration: 1s}}}}
""",
    "kubeconfig.yaml": HEAD.replace("native", "host")
    + """hosts: {{a: {{kind: kubernetes, kubeconfig: kube.conf}}}}
placement: {{client: a, server: a}}
environments: {{host: {{kind: pod, network: host}}, pod: {{kind: pod}}}}
workloads: {{tcp: {{kind: iperf3, duration: 1s}}}}
""",
    "compose.yaml": HEAD + """environments: {{native: {{kind: native}}, bridge: {{kind: docker, network: bridge}}}}
compose: {{file: services.yaml, service: shop, load: {{client: [touch, "{canary}/client"]}}}}
""",
}  # fmt: skip


@dataclass
class Stranger:
    """A folder with a stranger's studies, run and fleet, and what they have done."""

    folder: Path
    requests: list[str] = field(default_factory=list)

    @property
    def canary(self) -> Path:
        """The folder in which every program that was started leaves a file."""
        return self.folder / "canary"

    def call(self, capsys: pytest.CaptureFixture[str], command: str, *, terminal: bool = False) -> Said:
        """Run a command in the folder; a user at a terminal refuses. What is allowed ends before the alarm."""

        def too_long(*_: object) -> None:
            raise AssertionError(f"'{command}' waits for something")

        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.folder)
            patch.setenv("PATH", f"{self.folder / 'bin'}:{os.environ['PATH']}")
            patch.setenv("WEIGHBRIDGE_CACHE", str(self.folder / "cache"))
            patch.setattr(approval, "_person_there", lambda: terminal)
            patch.setattr(typer, "confirm", _refuse)
            patch.setattr(sys, "argv", ["weighbridge", *command.split()])
            before = signal.signal(signal.SIGALRM, too_long)
            signal.alarm(LONGEST_S)
            try:
                main()
                code = 0
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 1
            finally:
                signal.alarm(0)
                signal.signal(signal.SIGALRM, before)
        return Said(code, *capsys.readouterr())

    def traces(self) -> list[str]:
        """Return and forget what was started and contacted since the last call."""
        requests, self.requests[:] = [*self.requests], []
        files = sorted(self.canary.iterdir())
        started = [f"{file.name} {file.read_text().strip()}" for file in files]
        for file in files:
            file.unlink()
        return [*started, *requests]


def _refuse(*_: object, **__: object) -> None:
    raise typer.Abort


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stranger]:
    made = Stranger(tmp_path_factory.mktemp("stranger"))

    class Counting(http.server.BaseHTTPRequestHandler):
        def handle(self) -> None:
            made.requests.append("HTTP")

    for console in (output.out, output.err):
        console.cache_clear()  # they keep the streams of the first call
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Counting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(made.folder)
        _furnish(made, server.server_port)
    yield made
    server.shutdown()
    server.server_close()


def _furnish(stranger: Stranger, port: int) -> None:
    for name in ("canary", "bin", "docker"):
        Path(name).mkdir()
    for name in (*PROGRAMS, "dockerd"):
        program = Path("bin", name)
        # kubectl contacts nothing to show the user's own configuration
        reads = 'case " $* " in *kube.conf*) ;; *" config "*) exit 1;; esac\n' if name == "kubectl" else ""
        program.write_text(f'#!/bin/sh\n{reads}echo "$*" >> {stranger.canary}/{name}\nexit 1\n')
        program.chmod(0o755)
    Path("ssh.conf").write_text(
        f'Match exec "touch {stranger.canary}/match"\nHost victim\n  SendEnv *\n  StrictHostKeyChecking no\n'
        f"  ProxyCommand touch {stranger.canary}/proxy\n"
    )
    Path("hosts.txt").write_text("victim\n")
    Path("services.yaml").write_text("services: {shop: {image: shop, env_file: .env}}\n")
    os.mkfifo("fifo")
    for name, text in STUDIES.items():
        Path(name).write_text(text.format(name="stranger", canary=stranger.canary, port=port))
    for name in ("noise", "calibrate-cpu", "docker-networks"):  # files hide bundled studies of these names
        Path(name).write_text(Path("here.yaml").read_text())
    make_run(Path("run"), "here.yaml")
    make_run(Path("first-look"), "here.yaml")
    make_run(Path("preload"), "preload.yaml")
    FleetFolder(Path("fleet").absolute()).create(
        Fleet(
            name="stranger", study=Path("ssh.yaml").read_text(), pairs=False, machines=("victim",), seed=1,
            on={"kind": "hosts", "file": str(Path("hosts.txt").absolute()), "listed": [{"destination": "victim"}]},
            cwd=str(Path.cwd()), created=1e9,
        )
    )  # fmt: skip


def make_run(directory: Path, named: str) -> None:
    """Make a run in which the bridge has a cost that is proven."""
    study, clock = load(named), 1e9
    time = Metric("time", "s", "lower")
    with RunStore(directory, writable=True) as store:
        store.begin(study, {"run_id": "0123456789ab"})
        for number in range(1, 11):
            for trial in block(study, number):
                clock += 1
                value = (2 if trial.environment == "bridge" else 1) + clock % 7 / 1000
                roles = (RoleRecord("solo", ("x",), 0, 0.4, b"", b""),)
                measured = (Measurement(time, value),)
                store.save(
                    TrialRecord(trial, Outcome.OK, clock, 0.5, 0.4, measurements=measured, roles=roles)
                )  # fmt: skip


ASKS, READS = 2, 0
"""Exit codes of a command that would have to ask, and of one that only reads."""
COMMANDS: dict[str, int | None] = {
    "plan here.yaml": None,
    "plan here.yaml --json": None,
    "plan ssh.yaml": None,
    "plan image.yaml": None,
    "plan cluster.yaml": None,
    "plan kubeconfig.yaml": None,
    "plan compose.yaml": ASKS,
    "run here.yaml": ASKS,
    "run ssh.yaml": ASKS,
    "run image.yaml": ASKS,
    "run server.yaml": ASKS,
    "run cluster.yaml": ASKS,
    "run kubeconfig.yaml": ASKS,
    "run compose.yaml": ASKS,
    "run ssh.yaml --out run": ASKS,
    "run --out run": ASKS,
    "run --out preload --blocks 11": ASKS,
    "gate preload --budget netns.own.time<=0.1% --extend 1min": ASKS,
    "durability --out preload": ASKS,
    "explain run": ASKS,
    "explain run --save why.yaml": READS,
    "explain first-look": ASKS,
    "gate run --budget bridge.own.time<=100% --extend 1min": ASKS,
    "gate run --budget bridge.own.time<=900%": None,
    "fleet plan ssh.yaml --on hosts.txt": None,
    "fleet plan compose.yaml --on hosts.txt": ASKS,
    "fleet submit ssh.yaml --on hosts.txt": ASKS,
    "fleet submit compose.yaml --on hosts.txt": ASKS,
    "fleet status fleet": READS,
    "fleet continue fleet": ASKS,
    "fleet drive fleet": ASKS,
    "kit here.yaml": ASKS,
    "kit compose.yaml": ASKS,
    "kit --run run --out packed": READS,
    "replicate docker-networks": None,
    "replicate compose.yaml": ASKS,
    "replicate --out run": None,
    "replicate --report run": None,
    "durability ssh.yaml": ASKS,
    "durability compose.yaml": ASKS,
    "durability --out run": ASKS,
    "userland push ssh.yaml registry.example/a": ASKS,
    "userland push compose.yaml registry.example/a": ASKS,
    "report run": READS,
    "report run --json": READS,
    "report run --methods": READS,
    "report run --bib": READS,
    "compare run first-look": None,
    "export run --format csv": None,
    "history .": None,
    "studies": READS,
}
"""Each command with its exit code; None: whichever it has, as it depends on the machine."""


@pytest.mark.parametrize("command", [command for command, code in COMMANDS.items() if code != READS])
def test_nothing_happens_before_the_question(stranger: Stranger, capsys: pytest.CaptureFixture[str], command: str):
    ended = stranger.call(capsys, command, terminal=True)
    assert stranger.traces() == [], ended
    assert ended.code != 0 or COMMANDS[command] is None or command.startswith("gate"), ended


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_happens_before_the_user_agrees(stranger: Stranger, capsys: pytest.CaptureFixture[str], command: str):
    ended = stranger.call(capsys, command)
    assert stranger.traces() == [], ended
    assert ended.code == (ended.code if COMMANDS[command] is None else COMMANDS[command]), ended
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("command", "trace"),
    [
        ("plan server.yaml --yes", "HTTP"),
        ("plan compose.yaml --yes", "docker-compose"),
        ("fleet plan ssh.yaml --on hosts.txt --yes --rehearsal", "match"),
        ("plan cluster.yaml --yes", "kubectl"),
    ],
)
def test_the_canaries_show_what_happens_once_the_user_agreed(
    stranger: Stranger, capsys: pytest.CaptureFixture[str], command: str, trace: str
):
    ended = stranger.call(capsys, command)
    assert any(each.startswith(trace) for each in stranger.traces()), ended
