"""The system of a guest host: what is left out of its root file system."""

from pathlib import Path

from weighbridge.features.guests import system


def test_modules_are_left_out_below_usr_because_lib_is_a_link(tmp_path: Path):
    modules = tmp_path / "root/usr/lib/modules/6.1.0-13-amd64/kernel"
    for folder in ("drivers/gpu/drm", "drivers/net/wireless/ath", "drivers/net/ethernet", "sound"):
        (modules / folder).mkdir(parents=True)
    (tmp_path / "root/lib").symlink_to("usr/lib")
    system._leave_out(tmp_path, "6.1.0-13-amd64")
    left = sorted(str(path.relative_to(modules)) for path in modules.rglob("*"))
    assert left == ["drivers", "drivers/net", "drivers/net/ethernet"]
