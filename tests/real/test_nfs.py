"""NFS on guest hosts, whose kernel has it: what is in force is read back, faults are told, and nothing is left."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

import pytest

from weighbridge import registry
from weighbridge.features.guests.hosts.guest.host import GuestHost, guest_host
from weighbridge.features.guests.hosts.guest.options import GuestOptions
from weighbridge.model.command import Command
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.site import DATA, Mount, MountRequest, Site, SiteRequest, SiteStorage
from weighbridge.model.userland import Userland
from weighbridge.runner.storage import storage_facts
from weighbridge.storage import nfs

from .conftest import open_run
from .programs import PATIENCE_S, await_that

RUN = "9f5000000a1b"
OPTIONS = GuestOptions.model_validate({"kind": "guest", "accelerator": "tcg", "memory": "1GiB"})
IN_FORCE = pytest.mark.promise("the NFS version, export and mount that are asked for are in force in every site")
_numbers = count()


@pytest.fixture(scope="module")
def run() -> Iterator[RunContext]:
    with open_run(RUN) as run:
        yield run


@pytest.fixture(scope="module")
def host(run: RunContext) -> GuestHost:
    return run.share("host lab", lambda: guest_host("lab", OPTIONS, run))


@contextmanager
def opened(
    kind: str, host: GuestHost, run: RunContext, userland: Userland, given: dict[str, object],
    server: GuestHost | None = None,
) -> Iterator[tuple[Site, Mount]]:  # fmt: skip
    """A site on NFS, and what was mounted for it."""
    options, mounts = nfs.NfsOptions.model_validate(given), list[Mount]()

    @contextmanager
    def noted(request: MountRequest) -> Iterator[Mount]:
        with nfs.PLUGIN.open(options, replace(request, server=server)) as mount:
            mounts.append(mount)
            yield mount

    environment = registry.environments()[kind]
    name = f"{next(_numbers)}-{kind}-solo"
    storage = SiteStorage("nfs", noted, mounts)
    request = SiteRequest(run, host, name, "solo", userland, Limits(), storage=storage)
    chosen = environment.options.model_validate({"network": "host"} if kind == "docker" else {})
    with environment.open(chosen, request) as site:
        yield site, mounts[0]


def shell(host: GuestHost | Site, script: str, deadline_s: float = 60.0) -> str:
    done = host.run(Command(("sh", "-c", script), deadline_s))
    assert done.returncode == 0, done
    return done.text


def written(site: Site) -> dict[str, str]:
    """Write a file there with dd; what the site's own mount table says."""
    shell(site, f"dd if=/dev/zero of={DATA}/file bs=4k count=64 conv=fsync && chown 33:33 {DATA}/file")
    assert shell(site, f"stat -c '%s %u' {DATA}/file") == "262144 33\n"
    return storage_facts((), site, Limits())


def nothing_left(host: GuestHost) -> None:
    assert shell(host, "exportfs -s") == ""
    assert "nfs " not in shell(host, "cat /proc/mounts").replace("nfs4 ", "nfs ")


@IN_FORCE
@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"version": "3"}, id="3", marks=pytest.mark.long),
        pytest.param({"version": "4.0", "hard": False}, id="4.0 soft", marks=pytest.mark.long),
        pytest.param({"export": "async", "mount": "sync"}, id="async export, sync mount"),
    ],
)
def test_what_is_asked_is_in_force_natively(host: GuestHost, run: RunContext, small_userland: Userland, given):
    with opened("native", host, run, small_userland, given) as (site, mount):
        in_force = written(site)["storage: mounted"]
        exported = shell(host, "exportfs -s")
    kind, options, own = in_force.split()
    assert kind == ("nfs" if given.get("version") == "3" else "nfs4")
    assert {f"vers={given.get('version', '4.2')}", "soft" if "hard" in given else "hard"} <= {*own.split(",")}
    assert ("sync" in {*options.split(","), *own.split(",")}) == ("mount" in given)
    when = str(given.get("export", "sync"))
    assert when in mount.facts["export"].split(",") and f",{when}," in exported.replace("(", ",")
    assert "*" not in exported and f"{host.address}(" in exported and "no_root_squash" in exported
    assert {"+3", "+4", "+4.2"} <= {*mount.facts["versions of the server"].split()}
    assert mount.servers == ()
    nothing_left(host)


@pytest.mark.long  # an engine in an emulated guest
@IN_FORCE
@pytest.mark.parametrize("version", ["3", "4.2"])
def test_a_container_has_it_as_a_volume(host: GuestHost, run: RunContext, small_userland: Userland, version: str):
    given = {"version": version, "mount": "sync", "export": "async"}
    with opened("docker", host, run, small_userland, given) as (site, mount):
        _, options, own = written(site)["storage: mounted"].split()
    assert mount.way == "volume" and "async" in mount.facts["export"].split(",")
    assert {f"vers={version}", "hard", f"addr={site.host.address}"} <= {*own.split(",")}
    assert "sync" in {*options.split(","), *own.split(",")}
    nothing_left(host)


@pytest.mark.long
@pytest.mark.promise("an NFS server that is gone ends no run, and what it refuses is told in its words")
def test_a_server_that_is_gone_ends_no_run(host: GuestHost, run: RunContext, small_userland: Userland):
    began = time.monotonic()
    try:
        with opened("native", host, run, small_userland, {}) as (site, _):
            written(site)
            shell(host, "echo 0 > /proc/fs/nfsd/threads")
            done = site.run(Command(("dd", "if=/dev/zero", f"of={DATA}/more", "bs=4k", "count=9", "oflag=sync"), 5))
            assert done.timed_out
    finally:
        shell(host, "echo 8 > /proc/fs/nfsd/threads", 120)
    assert time.monotonic() - began < 90
    nothing_left(host)


@pytest.mark.promise("an NFS server that is gone ends no run, and what it refuses is told in its words")
def test_what_a_server_does_to_a_mount_is_told_in_its_words(
    host: GuestHost, run: RunContext, small_userland: Userland
):
    write = Command(("dd", "if=/dev/zero", f"of={DATA}/more", "bs=4k", "count=9", "conv=fsync"), 20)

    def refused(site: Site) -> str:
        done = site.run(write)
        assert done.returncode == 1 and not done.timed_out
        return done.last_words

    with opened("native", host, run, small_userland, {"version": "3"}) as (site, _):
        written(site)
        folder, exported = shell(host, "exportfs -s").split(maxsplit=1)
        own = exported.partition("fsid=")[2].partition(",")[0]
        again = f"exportfs -i -o fsid={own},rw,sync,no_subtree_check,%s {host.address}:{folder} && exportfs -f"
        shell(host, f"chmod 755 {folder} && {again % 'root_squash'}")
        assert "Permission denied" in refused(site)
        shell(host, again.replace("rw,", "ro,") % "no_root_squash")
        assert "Read-only file system" in refused(site)
        shell(host, again % "no_root_squash")
        assert site.run(write).returncode == 0
        wait = "until [ -e /tmp/go ]; do sleep 0.1; done"
        held = f"exec 3>>{DATA}/open && echo opened && {wait} && dd if=/dev/zero bs=4k count=1 conv=fsync >&3"
        writer = site.start(Command(("sh", "-c", held), 600))
        await_that(lambda: writer.printed()[0] == b"opened\n")
        shell(host, f"rm {folder}/open && exportfs -f")
        site.put("/tmp/go", b"")
        assert writer.wait(PATIENCE_S)
        assert "Stale file handle" in writer.stop().stderr.decode()
    nothing_left(host)


@pytest.mark.long  # minutes where guests are emulated
@pytest.mark.promise("data is on the NFS server of another machine")
@pytest.mark.parametrize("kind", ["native", "docker"])
def test_the_server_is_another_guest(host: GuestHost, run: RunContext, small_userland: Userland, kind: str):
    server = run.share("host shelf", lambda: guest_host("shelf", OPTIONS, run))
    with opened(kind, host, run, small_userland, {"export": "async"}, server) as (site, mount):
        _, _, own = written(site)["storage: mounted"].split()
        (folder,) = {line.split()[0] for line in shell(server, "exportfs -s").splitlines()}
        assert shell(server, f"find {folder} -name file -size 256k").strip()
    assert f"addr={server.address}" in own.split(",") and mount.servers == (server,)
    nothing_left(server)
    nothing_left(host)
