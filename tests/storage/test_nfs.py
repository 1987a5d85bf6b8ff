"""What NFS is asked for, what is refused, and in which order it is taken back; hosts are recorded, not changed."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from sentences import raises_sentence
from weighbridge.errors import Unavailable
from weighbridge.hosts.local import LocalHost
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import Capabilities, RunContext
from weighbridge.model.site import Mount, MountRequest
from weighbridge.storage import nfs
from weighbridge.storage.nfs import NfsOptions

MOUNTED = "vers=4.2,hard,proto=tcp"


class Ended:
    def stop(self) -> None:
        """It has nothing to end."""


class Recording(LocalHost):
    """A host with a kernel of its own, which does as it is told, unless ``failing`` has the word; notes commands."""

    def __init__(self, name: str, address: str, log: list[str]) -> None:
        super().__init__("0123456789ab", name, address)
        self.machine, self.root, self.log = f"host {name}", True, log
        self.disposable: Any = self
        self.threads, self.exported, self.mounted, self.failing = "0", "rw,sync", MOUNTED, ""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(disposable=self.disposable)

    def run(self, command: Command) -> Completed:
        argv = [word.partition("\n")[0] for word in command.argv]
        self.log.append(f"{self.name}: {' '.join(argv)}")
        failed = bool(self.failing) and any(self.failing in word for word in command.argv)
        text = ""
        if argv[-1] == "-v":
            text = f"{self.folder('0-server-export')}\n\t\t198.51.100.1({self.exported})\n"
        elif "threads" in command.argv[-1]:
            text = self.threads
        return Completed(command.argv, int(failed), text.encode(), b"Permission denied" if failed else b"", 0.0)

    def start(self, command: Command, *, hold: bool = False) -> Ended:  # type: ignore[override]
        self.log.append(f"{self.name}: start {command.argv[0]}")
        return Ended()

    def read(self, path: str) -> bytes:
        if path.endswith("versions"):
            return b"+3 +4 +4.1 +4.2\n"
        return (
            f"1 2 0:50 / {self.folder('0-server-mount')} rw,relatime shared:1 - nfs4 :/x rw,{self.mounted}".encode()
        )

    def folder(self, name: str) -> Path:
        return Path(f"/data/{self.name}/{name}")

    @contextmanager
    def data_folder(self, run: RunContext, name: str) -> Iterator[Path]:
        yield self.folder(name)
        self.log.append(f"{self.name}: remove {name}")


class Engine:
    """Makes volumes that are only noted."""

    def __init__(self, log: list[str]) -> None:
        self.log = log

    @contextmanager
    def volume(self, name: str, options: Mapping[str, str] | None = None) -> Iterator[str]:
        self.options = options
        yield f"volume-{name}"
        self.log.append("remove volume")


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def host(log: list[str]) -> Recording:
    return Recording("lab", "198.51.100.1", log)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[RunContext]:
    with ExitStack() as stack:
        yield RunContext("0123456789ab", tmp_path, tmp_path, stack)


def opened(
    run: RunContext, host: Recording, given: Mapping[str, object], **further: object
) -> tuple[Mount, list[str]]:
    """What it gives, and what was done once that was closed."""
    request = MountRequest(run, host, "0-server", **further)  # type: ignore[arg-type]
    with nfs.PLUGIN.open(NfsOptions.model_validate(given), request) as mount:
        before = len(host.log)
    return mount, host.log[before:]


def test_versions_are_read_as_yaml_has_them():
    assert [NfsOptions.model_validate({"version": given}).version for given in (3, 4.0, 4.2, "4.2")] == [
        "3", "4.0", "4.2", "4.2",
    ]  # fmt: skip
    with raises_sentence(ValueError):
        NfsOptions.model_validate({"version": 4.1})


def test_the_option_of_the_export_decides_what_a_power_cut_leaves():
    levels = [{"export": export, "mount": mount} for export in ("sync", "async") for mount in ("sync", "async")]
    found = [nfs.PLUGIN.durability(NfsOptions.model_validate(level)) for level in levels]
    assert found == ["synchronous", "synchronous", "asynchronous", "asynchronous"]


def test_the_same_mount_natively_and_by_an_engine(run: RunContext, host: Recording, log: list[str]):
    engine = Engine(log)
    native, _ = opened(run, host, {})
    volume, after = opened(run, host, {}, volumes=engine)
    [asked, again] = [line for line in log if " mount -i" in line]
    assert asked == again
    assert engine.options == {
        "type": "nfs",
        "o": "addr=198.51.100.1,rw,nfsvers=4.2,proto=tcp,async,hard",
        "device": ":/data/lab/0-server-export",
    }
    assert f"-o {engine.options['o']} {engine.options['device']} " in asked
    assert (native.way, native.source) == ("folder", "/data/lab/0-server-mount")
    assert (volume.way, volume.source) == ("volume", "volume-0-server")
    assert after == [
        "lab: sh -c  unmount /data/lab/0-server-export",
        "remove volume",
        "lab: sh -c  unmount /data/lab/0-server-export",
        "lab: remove 0-server-mount",
        "lab: exportfs -u 198.51.100.1:/data/lab/0-server-export",
        "lab: remove 0-server-export",
    ]


def test_a_server_on_another_host_exports_to_the_site_s_own_alone(run: RunContext, host: Recording, log: list[str]):
    server = Recording("store", "198.51.100.2", log)
    mount, _ = opened(run, host, {}, server=server)
    assert mount.servers == (server,)
    [export] = [line for line in log if "exportfs -i" in line]
    assert export.startswith("store: ") and export.endswith(" 198.51.100.1:/data/store/0-server-export")
    assert any(line.startswith("lab: mount -i") and "addr=198.51.100.2," in line for line in log)
    assert any("-H 198.51.100.2 " in line for line in log)
    assert mount.facts == {"export": "rw,sync", "versions of the server": "+3 +4 +4.1 +4.2"}


def test_it_is_one_server_with_an_export_for_each_site(run: RunContext, host: Recording, log: list[str]):
    for _ in range(2):
        assert opened(run, host, {})[0].servers == ()
    assert sum("start -H" in line for line in log) == 1
    numbers = [line.partition("fsid=")[2].split()[0] for line in log if "exportfs -i" in line]
    assert numbers == ["1", "2"]
    run.stack.close()
    assert log[-1] == "lab: rpc.nfsd 0"


@pytest.mark.parametrize(
    ("changed", "given", "why"),
    [
        ({"threads": "8"}, {}, "host lab already has an NFS server: "),
        ({"exported": "rw,async"}, {}, "its NFS export should be 'sync' and 'rw', but is "),
        ({"exported": "ro,sync"}, {}, "its NFS export should be 'sync' and 'rw', but is "),
        ({"mounted": "vers=3,hard"}, {}, "its NFS mount should be 'vers=4.2', but is "),
        ({}, {"mount": "sync"}, "its NFS mount should be 'sync', but is "),
        ({}, {"write_size": "64KiB"}, "its NFS mount should be 'wsize=65536', but is "),
        ({"failing": "try-XXXXXX"}, {}, "a writable NFS mount is unavailable: Permission denied"),
        ({"root": False}, {}, "only root can mount NFS"),
        ({"machine": "host"}, {}, "kind: guest"),
        ({"disposable": None}, {}, "would remain after a killed run"),
    ],
)
def test_what_is_not_in_force_is_refused_and_taken_back(
    run: RunContext, host: Recording, log: list[str], changed: dict[str, object], given: dict[str, object], why: str
):
    for name, value in changed.items():
        setattr(host, name, value)
    with pytest.raises(Unavailable, match=r"^host lab") as refused:
        opened(run, host, given)
    assert why in str(refused.value) and "\n" not in str(refused.value)
    assert sum("exportfs -i" in line for line in log) == sum("exportfs -u" in line for line in log)
    run.stack.close()
    ours = any("start -H" in line for line in log)
    assert ("lab: rpc.nfsd 0" in log) == ours, "a server of the user's stays"


def test_this_machine_is_told_to_be_no_host_of_it():
    found = nfs.PLUGIN.ready(NfsOptions())
    assert not found.ready and "kind: guest" in found.remedy
