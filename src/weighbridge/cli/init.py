"""`weighbridge init`."""

import re
from pathlib import Path

import typer

from weighbridge.cli.output import examples, out
from weighbridge.errors import WeighbridgeError

TEMPLATE = """\
# A study: one question, answered by `weighbridge run {file}`.
# Every size, rate, time and share has its unit. `weighbridge plan {file}` shows what will run, and for how long.
study: {name}
question: What does a published port cost a Redis server?

inside: [server]              # which roles are in the environment; the others run natively on the host
resources: {{cpus: 1, memory: 512MiB, pin: spread}}   # the same limits for every environment, native too

baseline: native              # what the others are compared with; it is measured twice (the A/A arm)
environments:
  native:    {{kind: native}}
  bridge:    {{kind: docker, network: bridge}}
  published: {{kind: docker, network: bridge, publish: true}}

workloads:
  redis: {{kind: redis-benchmark, requests: 50000, clients: [10, 50]}}   # a list sweeps a factor
  cpu:   {{kind: sysbench-cpu, duration: 2s}}                           # a control: nothing should cost here

repetitions: {{blocks: 10}}     # each block measures every environment once, in random order
equivalence: 3%               # smaller costs than this do not matter to me
seed: 1                       # the same seed gives the same order
"""


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(epilog=examples("weighbridge init my-study.yaml"))
    def init(file: Path = typer.Argument(Path("study.yaml"), help="The file to write.")) -> None:
        """Write a commented study file to start from."""
        name = re.sub(r"[^A-Za-z0-9_.-]", "-", file.stem).strip("-.") or "my-study"
        if not re.match("[A-Za-z]", name):
            name = f"study-{name}"
        try:
            with file.open("x") as target:
                target.write(TEMPLATE.format(file=file, name=name[:40]))
        except FileExistsError:
            raise WeighbridgeError(f"{file} exists already: name another file") from None
        except OSError as error:
            raise WeighbridgeError(f"cannot write {file}: {error.strerror}") from None
        out().print(f"{file} written. Next: weighbridge plan {file}", markup=False, soft_wrap=True)
