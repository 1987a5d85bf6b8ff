"""A folder to which a container can write, in memory: which volume is made, and that its memory is given back."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sentences import raises_sentence
from weighbridge.engines.docker import Engine
from weighbridge.engines.memory_layer import _Keeper, layered_folder
from weighbridge.errors import Unavailable
from weighbridge.launcher.launch import Launcher
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import RunContext
from weighbridge.model.userland import Userland

AT = "/var/lib/docker/volumes/weighbridge-0-memory/_data"
OWN = Userland("d", Path("/"), None, {}, layered="/home/me/work")


class Machine:
    """An engine that notes its volumes, and a keeper whose programs are noted; ``code`` is how they end."""

    def __init__(self, *, rootless: bool = False, code: int = 0) -> None:
        self.volumes: list[Mapping[str, str]] = []
        self.programs: list[tuple[str, ...]] = []
        self.code = code
        self.engine = cast(
            Engine, SimpleNamespace(host=SimpleNamespace(name="here"), rootless=rootless, volume=self.volume)
        )
        keeper = _Keeper(cast(Launcher, SimpleNamespace(run=self.run)), AT)
        self.context = cast(RunContext, SimpleNamespace(share=lambda *_: keeper))

    def run(self, command: Command) -> Completed:
        self.programs.append(command.argv)
        return Completed(command.argv, self.code, b"", b"mkdir: no room", 0.1)

    @contextmanager
    def volume(self, name: str, options: Mapping[str, str]) -> Iterator[str]:
        self.volumes.append(options)
        yield f"weighbridge-0-{name}"
        self.programs.append(("unmounted",))


@pytest.mark.parametrize("rootless", [False, True])
def test_the_layer_is_in_memory_that_is_given_back_once_it_is_unmounted(rootless: bool):
    machine = Machine(rootless=rootless)
    with layered_folder(machine.engine, machine.context, "docker", OWN) as name:
        assert name == "weighbridge-0-docker-folder"
    (options,) = machine.volumes
    mounted = f"lowerdir=/home/me/work,upperdir={AT}/docker/upper,workdir={AT}/docker/work"
    userxattr = ",userxattr" if rootless else ""  # where only attributes of users can be set
    assert options == {"type": "overlay", "device": "overlay", "o": mounted + userxattr}
    made, unmounted, removed = machine.programs
    assert (made[:2], unmounted, removed[:2]) == (("sh", "-c"), ("unmounted",), ("rm", "-rf"))
    assert made[-2].endswith("/docker") and removed[-1] == made[-2]


def test_what_cannot_be_made_is_told():
    machine = Machine(code=1)
    with (
        raises_sentence(Unavailable),
        layered_folder(cast(Any, machine.engine), machine.context, "docker", OWN),
    ):
        pass
    assert not machine.volumes
