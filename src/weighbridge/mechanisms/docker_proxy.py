"""A program of the engine that carries each byte of a published port."""

from typing import ClassVar

from weighbridge.model.explained import PATH, Proof
from weighbridge.model.measurement import ALL_CPU, CONNECTION_DROPS, SWITCHES
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class DockerProxy(Mechanism):
    """It ends the client's connection and makes one of its own to the container."""

    kind = "docker-proxy"
    summary = "docker-proxy, which forwards ports that are published on loopback or without a packet filter"
    title = "docker-proxy"
    switched = "docker-proxy → address translation"
    remedy = "connect to the port at the address of the bridge or the host instead of loopback"
    source = "Docker documentation, Packet filtering and firewalls"
    counters: ClassVar = (ALL_CPU, SWITCHES, CONNECTION_DROPS)
    proof = Proof(of=PATH, fact="translation", off="(?!proxy).*")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment with its port published by address translation."""
        on_loopback = subject.option("publish_on") == "loopback" and subject.option("userland_proxy")
        if not (subject.networked and subject.option("publish")):
            return None
        if not (on_loopback or subject.option("publish_by") == "proxy"):
            return None
        return subject.with_options(publish_on="gateway", publish_by="nat")


PLUGIN = DockerProxy()
