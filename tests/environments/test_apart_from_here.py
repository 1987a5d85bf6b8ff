"""This machine and a testbed host: what would join a network of this machine alone is refused."""

import pytest

from weighbridge.environments.docker import PLUGIN, DockerOptions
from weighbridge.model.environment import Needs

from .kinds import traits

APART = Needs(network=True, separate_hosts=True, hosts=traits("local", "testbed"), inside=frozenset({"server"}))


@pytest.mark.parametrize(
    ("options", "fits"),
    [
        (DockerOptions(network="bridge", attach="interface"), False),
        (DockerOptions(network="macvlan", parent="eth0"), False),
        (DockerOptions(network="bridge", publish=True), True),
        (DockerOptions(network="host"), True),
    ],
)
def test_networks_for_clients_elsewhere(options: DockerOptions, fits: bool):
    assert (PLUGIN.check(options, needs=APART) == []) is fits
