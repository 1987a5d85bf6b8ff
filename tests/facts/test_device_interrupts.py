"""Which device interrupts which CPU how often."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.facts.device_interrupts import interrupt_rates, interrupts_of
from weighbridge.model.facts import InterruptRate

CAPTURED = (Path(__file__).parent / "data" / "interrupts-kvm.txt").read_text()
PHYSICAL = """\
           CPU0       CPU2
   8:          1          0  IR-IO-APIC    8-edge      rtc0
  16:        523          7  IR-IO-APIC   16-fasteoi   i801_smbus, snd_hda_intel:card0
 127:      90210          4  IR-PCI-MSIX-0000:03:00.0    1-edge      nvme0q1
 NMI:         12         13   Non-maskable interrupts
"""


def test_those_of_devices_are_read():
    found = interrupts_of(CAPTURED)
    assert {device for _, device, _ in found} >= {"ttyS0", "virtio1-req.0", "virtio2-output.0"}
    assert {cpu for *_, cpu in found} == {0, 1} and all(count >= 0 for count in found.values())
    physical = interrupts_of(PHYSICAL)
    assert physical[127, "nvme0q1", 0] == 90210 and physical[16, "i801_smbus, snd_hda_intel:card0", 2] == 7
    assert len(physical) == 6, "without the CPUs' own"


@pytest.mark.parametrize("text", ["", "CPU0 CPU1", " 1: 2 3\n", PHYSICAL[:50], "  CPU0\n 1: x  chip  dev\n"])
def test_what_is_cut_off_tells_nothing_false(text: str):
    assert set(interrupts_of(text)) <= set(interrupts_of(PHYSICAL))


@given(st.text(max_size=200))
def test_any_text_is_read(text: str):
    interrupts_of(text)
    interrupts_of(f"CPU0 CPU1\n{text}")


def test_rates_are_of_the_time_between():
    before = {(127, "nvme0q1", 0): 1000, (8, "rtc0", 0): 1, (9, "gone", 0): 7}
    after = {(127, "nvme0q1", 0): 3000, (8, "rtc0", 0): 500, (5, "new", 0): 10**6}
    assert interrupt_rates(before, after, 4.0, 100) == (
        InterruptRate(127, "nvme0q1", 0, 500.0), InterruptRate(8, "rtc0", 0, 124.75),
    )  # fmt: skip
    assert interrupt_rates(before, after, 4.0, 501) == ()
