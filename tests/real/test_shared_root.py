"""This machine's own programs natively and in a container: the same files, and nothing that is written stays."""

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest

from weighbridge import registry
from weighbridge.hosts.local import LocalHost
from weighbridge.launcher import build
from weighbridge.launcher.launch import Launcher
from weighbridge.model.command import Command, Completed
from weighbridge.model.host import Limits
from weighbridge.model.site import Site, SiteRequest, SiteStorage
from weighbridge.userland.sources.host import PLUGIN, HostRootOptions

from .conftest import open_run

KINDS = {"native": ("native", {}), "netns": ("netns", {}), "bridge": ("docker", {"network": "bridge"})}
RUN = "5a4ed4007123"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder below /tmp, which every site has empty but for this."""
    made = tmp_path_factory.mktemp("work of mine")
    (made / "data").write_text("as it was")
    return made


@pytest.fixture(scope="module")
def mounted() -> Iterator[Path]:
    """A folder of this machine's below which there are a tmpfs, an overlay over it and a file that is mounted."""
    made = Path(tempfile.mkdtemp(prefix="weighbridge-test-", dir="/var/tmp"))
    with ExitStack() as stack:
        stack.callback(made.rmdir)
        for name in ("memory", "layers", "upper"):
            (made / name).mkdir()
            stack.callback((made / name).rmdir)
        (made / "file").touch()
        stack.callback((made / "file").unlink)
        (made / "memory").chmod(0o755)

        def mount(*words: str, at: Path) -> None:
            subprocess.run(["mount", *words, at], check=True)
            stack.callback(subprocess.run, ["umount", "--lazy", at], check=True)

        mount("-t", "tmpfs", "tmpfs", at=made / "memory")
        (made / "memory/in").write_text("in memory\n")
        mount("-t", "tmpfs", "tmpfs", at=made / "upper")
        for name in ("upper", "work"):
            (made / "upper" / name).mkdir()
        options = f"lowerdir={made}/memory,upperdir={made}/upper/upper,workdir={made}/upper/work"
        mount("-t", "overlay", "overlay", "-o", options, at=made / "layers")
        (made / "layers/over").write_text("over it\n")
        mount("--bind", str(made / "memory/in"), at=made / "file")
        yield made


@pytest.fixture(scope="module")
def sites(folder: Path, mounted: Path) -> Iterator[dict[str, Site]]:
    userland = PLUGIN.existing(HostRootOptions(folder=str(folder), env={"WORD": "handed on"}))
    with open_run(RUN) as run:
        opened = {}
        for name, (kind, options) in KINDS.items():
            environment = registry.environments()[kind]
            request = SiteRequest(run, LocalHost(run.id), name, "server", userland, Limits(memory=2**28))
            opened[name] = run.stack.enter_context(environment.open(environment.options(**options), request))
        plugin, environment = registry.storage()["layer"], registry.environments()["docker"]
        kept = SiteStorage("layer", partial(plugin.open, plugin.options()))
        request = SiteRequest(run, LocalHost(run.id), "layer", "server", userland, Limits(), storage=kept)
        options = environment.options(storage=plugin.options())
        opened["layer"] = run.stack.enter_context(environment.open(options, request))
        yield opened
    assert not [*Path("/dev/shm").glob(f"weighbridge-{RUN}-*")]


@pytest.fixture(params=KINDS)
def shell(request: pytest.FixtureRequest, sites: dict[str, Site], folder: Path):
    site, process = (
        sites[request.param],
        PLUGIN.existing(HostRootOptions(folder=str(folder), env={"WORD": "handed on"})).process,
    )

    def run(script: str) -> Completed:
        return site.run(process.of(Command(("sh", "-c", script))))

    return run


def test_a_program_starts_in_the_folder_with_its_variables(shell, folder: Path):
    done = shell('pwd; echo "$WORD"; cat data')
    assert done.text.splitlines() == [str(folder), "handed on", "as it was"]


def test_the_files_are_this_machines_own(shell):
    about = Path("/usr/bin/env").stat()
    assert shell("stat -c %i /usr/bin/env").text == f"{about.st_ino}\n"


def test_what_it_writes_in_the_folder_is_in_memory_and_gone(shell, folder: Path):
    done = shell("echo changed > data && mkdir new && echo more > new/file && cat data new/file && rm data && ls")
    assert done.text.splitlines() == ["changed", "more", "new"]
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("data", "as it was")]
    shell("rm -r new; echo 'as it was' | tr -d '\\n' > data")


def test_everything_else_is_read_only(shell):
    for place in ("/usr", "/etc", "/root", "/var"):
        done = shell(f"touch {place}/weighbridge-was-here")
        assert done.returncode != 0 and "Read-only file system" in done.last_words
        assert not Path(place, "weighbridge-was-here").exists()


def test_what_is_mounted_below_it_is_there_and_read_only(shell, mounted: Path):
    done = shell(f"cd {mounted} && cat memory/in layers/in layers/over file")
    assert done.text.splitlines() == ["in memory", "in memory", "over it", "in memory"], done
    for place in ("memory", "layers"):
        assert "Read-only file system" in shell(f"touch {mounted}/{place}/was-here").last_words


def test_srv_of_a_layer_is_its_own_and_can_be_written_to(sites: dict[str, Site]):
    """This machine's is bound everywhere else: read-only, so that no workload could keep its data there."""
    site = sites["layer"]
    done = site.run(
        Command(("sh", "-c", "ls -A /srv && echo kept > /srv/file && cat /srv/file && stat -c %i /usr/bin/env"))
    )
    assert done.text.split() == ["kept", str(Path("/usr/bin/env").stat().st_ino)], done
    assert "Read-only file system" in site.run(Command(("touch", "/usr/was-here"))).last_words
    assert not Path("/srv/file").exists()


RESOLVED = """
mount -t tmpfs tmpfs /mnt && mkdir /mnt/upper /mnt/work
mount -t overlay overlay -o lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work /etc
mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/resolve
echo 'nameserver 192.0.2.1' > /run/systemd/resolve/stub.conf
rm /etc/resolv.conf && ln -s "$1" /etc/resolv.conf && shift && exec "$@"
"""
"""A machine as systemd-resolved makes it, in a mount namespace."""


@pytest.mark.parametrize("link", ["../run/systemd/resolve/stub.conf", "/run/systemd/resolve/stub.conf"])
def test_a_resolver_in_run_is_there_natively(link: str):
    with open_run("5a4ed400a123") as run:
        launcher = LocalHost(run.id).program(build.ensure(run.cache, run.say))
        inside = ("unshare", "--mount", "sh", "-c", RESOLVED, "sh", link, launcher)
        process, stream = LocalHost(run.id).talk(Command((*inside, "--root", "/", "--name", "resolved")))
        try:
            with Launcher(stream, "resolved", lambda: process.stop().last_words, {}) as site:
                assert site.read("/etc/resolv.conf") == b"nameserver 192.0.2.1\n"
                done = site.run(Command(("/bin/sh", "-c", "pwd; readlink /etc/resolv.conf; find /run -type f")))
                assert done.text.splitlines() == ["/", link, "/run/systemd/resolve/stub.conf"]
        finally:
            process.stop()


def test_other_folders_of_tmp_are_not_there(shell, folder: Path):
    beside = folder.parent / "beside"
    beside.mkdir(exist_ok=True)
    assert shell(f"ls {beside}").returncode != 0
