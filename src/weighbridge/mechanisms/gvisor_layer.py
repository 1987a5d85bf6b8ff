"""gVisor's own writable layer."""

from typing import ClassVar

from weighbridge.model.explained import Proof
from weighbridge.model.facts import GVISOR_LAYERS
from weighbridge.model.measurement import DISK_FLUSHES, DISK_TIME
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class GvisorLayer(Mechanism):
    """What is written is in a file that gVisor maps: a sync has nothing to do, and a crash loses all."""

    kind = "gvisor-layer"
    summary = "the writable layer in gVisor's own file, which is never synced"
    title = "gVisor's own layer, never synced"
    switched = "gVisor's → the engine's"
    remedy = "a volume for data that must be kept"
    source = "gVisor documentation, Root filesystem overlay; google/gvisor#192"
    counters: ClassVar = (DISK_FLUSHES, DISK_TIME)
    proof = Proof(fact=GVISOR_LAYERS, off="none")

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment whose files go through to the engine's layer."""
        storage = subject.option("storage")
        if not subject.stores or storage is None or storage.kind != "layer" or subject.option("runtime") != "runsc":
            return None
        return subject.with_options(runsc_layer="host") if subject.option("runsc_layer") == "own" else None


PLUGIN = GvisorLayer()
