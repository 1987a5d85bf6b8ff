"""In which control group an engine's containers are: where native programs are, as far as the engine lets them."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from weighbridge.engines.docker import Engine
from weighbridge.engines.settings import USUAL
from weighbridge.linux import delegation
from weighbridge.model.host import Capabilities

OURS = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/weighbridge-1.scope/weighbridge-itself"
BY_SYSTEMD = {"CgroupDriver": "systemd", "CgroupVersion": "2"}
ROOTLESS = {"SecurityOptions": ["name=rootless"]}


@pytest.mark.parametrize(
    ("private", "user", "here", "info", "own", "parent"),
    [
        (True, 0, True, BY_SYSTEMD, OURS, "/weighbridge/0123456789ab"),
        (False, 0, True, BY_SYSTEMD, OURS, None),
        (False, 1000, True, BY_SYSTEMD, OURS, "user-1000.slice"),
        (False, 1000, False, BY_SYSTEMD, OURS, None),
        (False, 1000, True, BY_SYSTEMD | ROOTLESS, OURS, None),
        (False, 1000, True, {"CgroupDriver": "cgroupfs", "CgroupVersion": "2"}, OURS, None),
        (False, 1000, True, {"CgroupDriver": "systemd", "CgroupVersion": "1"}, OURS, None),
        (False, 1000, True, BY_SYSTEMD, "0::/user.slice/user-1001.slice/session-1.scope", None),
    ],
)
def test_containers_of_a_user_are_in_the_users_slice_where_the_engine_can_put_them_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, private, user, here, info, own, parent
):
    (tmp_path / "cgroup").write_text(f"{own}\n")
    monkeypatch.setattr(delegation, "_PROCESS", tmp_path / "cgroup")
    monkeypatch.setattr(os, "geteuid", lambda: user)
    client = SimpleNamespace(version=dict, info=lambda: info)
    run, host = SimpleNamespace(id="0123456789ab"), SimpleNamespace(capabilities=Capabilities(), this_machine=here)
    assert Engine(client, run, host, USUAL, private=private).cgroup_parent == parent  # type: ignore[arg-type]
