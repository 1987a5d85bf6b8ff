"""The sites of a run are opened at the same time, and closed whatever happens to one of them."""

import signal
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from weighbridge.errors import Interrupted, Unavailable
from weighbridge.linux import cancellation
from weighbridge.meters.opened import OpenMeters
from weighbridge.model.site import SiteRequest
from weighbridge.model.timing import Timing
from weighbridge.runner.signals import interruptible
from weighbridge.runner.sites import Sites

from .world import USERLAND, World, context, go, study

LONG_S = 60.0
SOLO = "cpu: {kind: fake-solo}"
SITES = ["native", "one", "two", "native-again"]


def place(request: SiteRequest) -> str:
    return request.environment


def test_sites_open_at_the_same_time_and_keep_their_order(world: World, tmp_path: Path):
    together = threading.Barrier(len(SITES))

    def at_open(_: SiteRequest) -> None:
        together.wait(LONG_S)

    world.at_open = at_open
    go(tmp_path, study(SOLO, blocks=1))
    assert [place(each) for each in sorted(world.requests, key=lambda each: each.name)] == SITES  # by their numbers
    assert world.left() == []


def test_sites_with_an_order_open_one_after_the_other(world: World, tmp_path: Path):
    world.orders = {"fake": "swarm", "native": "swarm"}
    opening, at_once = threading.Lock(), list[bool]()

    def at_open(_: SiteRequest) -> None:
        at_once.append(not opening.acquire(blocking=False))
        opening.release()

    world.at_open = at_open
    go(tmp_path, study(SOLO, blocks=1))
    assert list(map(place, world.requests)) == SITES and not any(at_once)


def test_the_ten_sites_of_a_cell_open_at_the_same_time(world: World, tmp_path: Path):
    together = threading.Barrier(3)

    def at_open(request: SiteRequest) -> None:
        if request.joined_site and place(request) == "one":
            together.wait(LONG_S)

    world.at_open = at_open
    go(tmp_path, study("cpu: {kind: fake-solo, sites: 4}", blocks=1))
    assert [place(each) for each in world.requests if each.joined_site].count("one") == 3
    assert world.left() == []


def test_one_failure_closes_every_site(world: World, tmp_path: Path):
    """The others were open, or waited for something."""
    waiting = threading.Barrier(2)

    def at_open(request: SiteRequest) -> None:
        if place(request) == "one":
            waiting.wait(LONG_S)
            raise Unavailable("no bridge")
        if place(request) == "two":
            waiting.wait(LONG_S)
            cancellation.wait(threading.Event(), LONG_S)

    world.at_open = at_open
    with pytest.raises(Unavailable, match="no bridge"):
        go(tmp_path, study(SOLO, blocks=1))
    assert world.left() == [] and "two" not in [site.place for site in world.sites]


def test_an_optional_environment_is_left_out_and_the_others_open(world: World, tmp_path: Path):
    def at_open(request: SiteRequest) -> None:
        if place(request) == "one":
            raise Unavailable("no bridge")

    world.at_open = at_open
    told = go(tmp_path, study(SOLO, blocks=1, optional=["one"]))
    assert {trial.environment for trial in told.begun} == {"native", "native-again", "two"}
    assert world.left() == []


def test_optional_environments_open_last_and_in_the_order_of_the_study(world: World, tmp_path: Path):
    """They wait also for the further sites of the required ones, and never open at the same time."""
    opening, at_once = threading.Lock(), list[bool]()

    def at_open(request: SiteRequest) -> None:
        if place(request) in ("one", "two"):
            at_once.append(not opening.acquire(blocking=False))
            opening.release()

    world.at_open = at_open
    go(tmp_path, study("cpu: {kind: fake-solo, sites: 2}", blocks=1, optional=["one", "two"]))
    opened = list(map(place, world.requests))
    assert sorted(opened[:4]) == ["native", "native", "native-again", "native-again"]
    assert opened[4:] == ["one", "two", "one", "two"] and not any(at_once)


def test_a_required_environment_gets_what_is_left(world: World, tmp_path: Path):
    """Only one of three finds room, although the optional ones are earlier in the study."""
    room = ["native", "native-again", "two"]

    def at_open(request: SiteRequest) -> None:
        if len(world.requests) >= len(room):
            raise Unavailable("no memory left")

    world.at_open = at_open
    told = go(tmp_path, study(SOLO, blocks=1, optional=["one"]))
    assert {trial.environment for trial in told.begun} == {*room}
    assert world.left() == []


def test_no_environment_is_charged_for_a_site_outside_of_all(world: World, tmp_path: Path):
    now = [0.0]
    timing = Timing(clock=lambda: now[0])

    def at_open(request: SiteRequest) -> None:
        now[0] += 100.0 if request.environment == "outside" else 1.0

    world.orders, world.at_open = {"fake": "one by one", "native": "one by one"}, at_open
    planned = study("net: {kind: fake}", blocks=1)
    with context(tmp_path) as run, ExitStack() as stack:
        meters = OpenMeters(planned.file.meters, 1.0, stack)
        Sites(planned, run, USERLAND, meters, timing=timing).open_all(stack)
    assert any(each.environment == "outside" for each in world.requests)
    assert set(timing.environments) == {*SITES} and max(timing.environments.values()) < 100


def test_an_interrupt_while_sites_open_closes_all(world: World, tmp_path: Path):
    waiting = threading.Barrier(2)

    def at_open(request: SiteRequest) -> None:
        if place(request) == "one":
            waiting.wait(LONG_S)
            cancellation.wait(threading.Event(), LONG_S)
        if place(request) == "two":
            waiting.wait(LONG_S)
            signal.raise_signal(signal.SIGINT)

    world.at_open = at_open
    with pytest.raises(Interrupted), interruptible():
        go(tmp_path, study(SOLO, blocks=1))
    assert world.left() == []
