"""An init of the engine's in front of a container's program."""

from weighbridge.model.explained import Proof
from weighbridge.model.facts import FIRST_PROCESS
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class InitProcess(Mechanism):
    """It takes in processes that nobody waits for, and passes signals on; a start takes one program more."""

    kind = "init"
    summary = "the engine's init (tini, catatonit) as the first process of a container"
    title = "init (tini, catatonit)"
    switched = "on → off"
    remedy = "no init, if the program waits for its own children"
    source = "krallin/tini, README; Docker documentation, docker run: --init"
    proof = Proof(fact=FIRST_PROCESS)

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment whose own program is its first process."""
        return subject.with_options(init=False) if subject.option("init") else None


PLUGIN = InitProcess()
