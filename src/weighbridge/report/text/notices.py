"""Remarks about hypervisors, what was never seen on real hardware, and limits of what was measured, in words."""

from collections.abc import Callable
from typing import Any

from weighbridge.analysis.condition_remarks import (
    Capped,
    Emulated,
    EmulatedCost,
    Fragments,
    GuestTicks,
    Nested,
    Unresolved,
    Unverified,
)
from weighbridge.model.flag import FlagCode
from weighbridge.report.text.verdicts import LIMITS


def emulated_text(remark: Emulated) -> str:
    """Return whose costs those of some environments are."""
    begin = f"{', '.join(remark.environments)}: measured under emulation ({', '.join(remark.layers)})"
    if remark.baseline:
        return (
            f"{begin}: as {remark.baseline} is the baseline, each cost is the emulator's or compares emulated with "
            "emulated, and is not what real hardware would show"
        )
    return (
        f"{begin}: what they cost is the emulator's on this machine, and says nothing of a hypervisor with hardware "
        "support"
    )


def emulated_cost_text(remark: EmulatedCost) -> str:
    """Return whose a cost is."""
    layers = ", ".join(remark.layers)
    if remark.both:
        return f"both sides were measured under emulation ({layers}): the cost is not what real hardware would show"
    return f"{remark.environment}: measured under emulation ({layers}): the cost is the emulator's"


def nested_text(remark: Nested) -> str:
    """Return in which machine environments were measured."""
    where = f"host {remark.host}, which is itself inside {' inside '.join(reversed(remark.layers))}"
    who = f"{', '.join(remark.environments)}: " if remark.environments else "both were "
    return f"{who}measured on {where}: costs are those inside of that machine"


def guest_ticks_text(remark: GuestTicks) -> str:
    """Return who counted a CPU time."""
    return (
        f"{remark.environment}: its CPU time is what the kernel of host {remark.host} counted, which its emulator "
        "tells of no steal: time in which this machine did not let it run may be in it"
    )


def unverified_text(remark: Unverified) -> str:
    """Return what was never seen to work on real hardware."""
    who = remark.environment or f"host {remark.host}"
    return f"{who}: unverified on real hardware: {remark.what}"


def unresolved_text(remark: Unresolved) -> str:
    """Return that memory per site is less than the changes of the machine's memory that others make."""
    return (
        f"{remark.environment}: memory per site is zero or less in {remark.count} of {remark.trials} trials: it is "
        "the growth of the whole machine's used memory, and values around zero are below what that can resolve"
    )


def capped_text(remark: Capped) -> str:
    """Return what held one of two sides back."""
    where = f"{LIMITS[FlagCode(remark.limit)]} in {remark.trials} of {remark.of} trials"
    then = "larger" if remark.of_baseline else "smaller"
    return f"{remark.environment} was limited by {where}: without that the cost would be {then}"


def fragments_text(remark: Fragments) -> str:
    """Return what a datagram carries and what its path would take."""
    sizes = f"{remark.size} B, of which its path carries {remark.in_one_piece} B at once"
    return f"each datagram of {remark.environment} goes in pieces: {sizes}"


NOTICES: tuple[Callable[[Any], str], ...] = (
    emulated_text, emulated_cost_text, nested_text, guest_ticks_text, unverified_text,
    unresolved_text, capped_text, fragments_text,
)  # fmt: skip
"""What `weighbridge.report.text.remarks` has of this module."""
