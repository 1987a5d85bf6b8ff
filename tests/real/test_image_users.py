"""An image's programs run as whom, and with what HOME, its own containers have: natively and in Docker."""

import io
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from weighbridge import registry
from weighbridge.engines.docker import engine_of
from weighbridge.engines.labelled import LABEL
from weighbridge.hosts.local import LocalHost
from weighbridge.model.command import Command
from weighbridge.model.host import Limits, RunContext
from weighbridge.model.site import SiteRequest
from weighbridge.model.userland import Userland, UserlandSpec
from weighbridge.userland.products import archive, root
from weighbridge.userland.sources import image

from .conftest import open_run

RUN = "5a4ed4009123"
TELLS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int order(const void *a, const void *b) { return *(gid_t *)a - *(gid_t *)b; }
int main(void)
{
	gid_t groups[64];
	int count = getgroups(64, groups);
	qsort(groups, count, sizeof *groups, order);
	printf("%d %d %s", getuid(), getgid(), getenv("HOME"));
	for (int each = 0; each < count; each++)
		if (groups[each] != getgid())  /* whether it is among them Docker's versions do not agree */
			printf(" %d", groups[each]);
}
"""
PASSWD = b"root:x:0:0:root:/:/tells\nshop:x:1000:1001:Shop:/home/shop:/tells\n"
GROUP = b"root:x:0:\nstaff:x:50:other,shop\nvideo:x:60:shop\nshopping:x:70:shopper\n"
USERS = {
    "": "0 0 /", "shop": "1000 1001 /home/shop 50 60", "1000": "1000 1001 /home/shop 50 60",
    "shop:staff": "1000 50 /home/shop", "77": "77 0 /",
}  # fmt: skip


@pytest.fixture(scope="module")
def run() -> Iterator[RunContext]:
    with open_run(RUN) as opened:
        yield opened


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("tells")
    (folder / "tells.c").write_text(TELLS)
    subprocess.run(["cc", "-static", "-o", folder / "tells", folder / "tells.c"], check=True)
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        content = {"tells": (folder / "tells").read_bytes(), "etc/passwd": PASSWD, "etc/group": GROUP}
        for name, data in content.items():
            about = tarfile.TarInfo(name)
            about.size, about.mode = len(data), 0o755
            tar.addfile(about, io.BytesIO(data))
    return made.getvalue()


@pytest.mark.parametrize("user", USERS)
def test_they_are_those_of_its_own_containers(
    run: RunContext, files: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: str
):
    host = LocalHost(run.id)
    client = engine_of(run, host).client
    tag = f"user-{user.replace(':', '-')}"
    changes = [f"LABEL {LABEL}={run.id}", *([f"USER {user}"] if user else [])]
    client.api.import_image_from_stream(iter([files]), repository="weighbridge", tag=tag, changes=changes)
    name = f"weighbridge:{tag}"
    container = client.containers.run(name, ["/tells"], detach=True, network="none", labels={LABEL: run.id})
    container.wait()  # its log is read afterwards: followed, that of a program which ends at once is sometimes empty
    assert container.logs().decode() == USERS[user], "Docker itself"
    container.remove()

    monkeypatch.setattr(image, "client_from_environment", lambda: client)
    monkeypatch.setattr(client, "close", lambda: None)
    options = image.ImageOptions(image=name)
    image.PLUGIN.build(options, UserlandSpec(), tmp_path, tmp_path, print)
    root.unpack(tmp_path / archive.NAME, tmp_path / root.NAME)
    process = image.PLUGIN.process(options, tmp_path / root.NAME)
    tar = tmp_path / archive.NAME
    userland = Userland(archive.digest_of(tar), tmp_path / root.NAME, tar, {}, process)
    for kind in ("native", "docker"):
        environment = registry.environments()[kind]
        request = SiteRequest(run, host, f"{kind}-{tag}", "solo", userland, Limits())
        with environment.open(environment.options(), request) as site:
            done = site.run(process.of(Command(("/tells",))))
            facts = site.facts()
        assert (done.text, done.last_words) == (USERS[user], USERS[user]), (kind, done)
        uid, gid, *_ = USERS[user].split()
        assert facts["user"] == (f"{uid}:{gid}" if user else "root")
