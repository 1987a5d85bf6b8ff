"""The sites of a run are opened at the same time, and closed whatever happens to one of them."""

import signal
import threading
from pathlib import Path

import pytest

from weighbridge.errors import Interrupted, Unavailable
from weighbridge.linux import cancellation
from weighbridge.model.site import SiteRequest
from weighbridge.runner.signals import interruptible

from .world import World, go, study

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
