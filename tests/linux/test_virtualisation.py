"""What the kernel tells of hardware virtualisation without a try."""

from pathlib import Path

import pytest

from weighbridge.linux import virtualisation


@pytest.mark.parametrize(
    ("cpuinfo", "device", "lacking"),
    [
        ("flags\t\t: fpu vmx\n", False, ""),
        ("flags\t\t: fpu svm\n", True, ""),
        ("flags\t\t: fpu\nvmx flags\t: ept\n", True, "the CPU has neither vmx nor svm"),
        ("Features\t: fp asimd\n", True, ""),
        ("Features\t: fp asimd\n", False, "there is no DEVICE"),
    ],
)
def test_flags_tell_it_and_elsewhere_the_device(tmp_path: Path, cpuinfo: str, device: bool, lacking: str):
    file, place = tmp_path / "cpuinfo", tmp_path / "kvm"
    file.write_text(cpuinfo)
    if device:
        place.touch()
    assert virtualisation.lacking(place, file).replace(str(place), "DEVICE") == lacking
