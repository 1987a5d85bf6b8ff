"""In which control group an engine's containers are: where native programs are, as far as the engine lets them."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from weighbridge.engines.docker import Engine
from weighbridge.engines.settings import USUAL
from weighbridge.errors import Unavailable
from weighbridge.linux import delegation
from weighbridge.model.host import Capabilities

OURS = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/weighbridge-1.scope/weighbridge-itself"
BY_SYSTEMD = {"CgroupDriver": "systemd", "CgroupVersion": "2"}
ROOTLESS = {"SecurityOptions": ["name=rootless"]}


@pytest.mark.parametrize(
    ("private", "user", "here", "info", "own", "parent"),
    [
        (True, 0, True, BY_SYSTEMD, OURS, "/weighbridge/0123456789ab"),
        (False, 0, True, BY_SYSTEMD, OURS, "weighbridge-0123456789ab.slice"),
        (False, 0, True, BY_SYSTEMD | {"CgroupVersion": "1"}, OURS, "weighbridge-0123456789ab.slice"),
        (False, 0, True, {"CgroupDriver": "cgroupfs", "CgroupVersion": "1"}, OURS, "/weighbridge/0123456789ab"),
        (False, 0, True, {"CgroupDriver": "cgroupfs"} | ROOTLESS, OURS, None),
        (False, 0, False, {"CgroupDriver": "cgroupfs", "CgroupVersion": "2"}, OURS, None),
        (False, 1000, True, BY_SYSTEMD, OURS, "user-1000.slice"),
        (False, 1000, False, BY_SYSTEMD, OURS, None),
        (False, 1000, True, BY_SYSTEMD | ROOTLESS, OURS, None),
        (False, 1000, True, {"CgroupDriver": "cgroupfs", "CgroupVersion": "2"}, OURS, None),
        (False, 1000, True, {"CgroupDriver": "systemd", "CgroupVersion": "1"}, OURS, None),
        (False, 1000, True, BY_SYSTEMD, "0::/user.slice/user-1001.slice/session-1.scope", None),
    ],
)
def test_containers_are_where_native_programs_are_as_far_as_the_engine_lets_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, private, user, here, info, own, parent
):
    (tmp_path / "cgroup").write_text(f"{own}\n")
    monkeypatch.setattr(delegation, "_PROCESS", tmp_path / "cgroup")
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr("weighbridge.engines.docker.Cgroup.create", lambda group: group)
    client = SimpleNamespace(version=dict, info=lambda: info)
    run, host = SimpleNamespace(id="0123456789ab"), SimpleNamespace(capabilities=Capabilities(), this_machine=here)
    assert Engine(client, run, host, USUAL, private=private).cgroup_parent == parent  # type: ignore[arg-type]


def test_where_no_group_can_be_made_the_engine_puts_them_where_it_does(monkeypatch: pytest.MonkeyPatch):
    def refuse(_: object) -> None:
        raise Unavailable("no control group can be created: Read-only file system")

    monkeypatch.setattr("weighbridge.engines.docker.Cgroup.create", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    client = SimpleNamespace(version=dict, info=lambda: {"CgroupDriver": "cgroupfs"})
    run, host = SimpleNamespace(id="0123456789ab"), SimpleNamespace(capabilities=Capabilities(), this_machine=True)
    assert Engine(client, run, host, USUAL, private=False).cgroup_parent is None  # type: ignore[arg-type]
