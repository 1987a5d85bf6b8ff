"""What removes the folder of a guest host's engine, run on this machine in a mount namespace of its own."""

import subprocess
from pathlib import Path

from weighbridge.features.guests.hosts.guest.host import _REMOVE_ENGINE


def test_what_a_killed_engine_left_mounted_is_unmounted_and_not_emptied(tmp_path: Path):
    userland, engine = tmp_path / "userland", tmp_path / "engine"
    layer = engine / "overlay2/0123/diff"
    for folder in (userland, layer):
        folder.mkdir(parents=True)
    (userland / "kept").touch()
    mounts = f"""
    mount --bind {userland} {layer} && cd {engine}/overlay2 && mkdir merged && mount -t tmpfs none merged &&
    mkdir merged/inner && mount -t tmpfs none merged/inner && cd / || exit 99
    sh -c "$1" remove {engine}; echo $?; grep -c {engine}/ /proc/self/mountinfo
    """
    command = ["unshare", "--mount", "sh", "-c", mounts, "mounts", _REMOVE_ENGINE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["0", "0"], done
    assert not engine.exists() and (userland / "kept").exists()
