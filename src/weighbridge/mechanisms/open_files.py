"""How many files a process may have open."""

from weighbridge.model.explained import Proof
from weighbridge.model.facts import OPEN_FILES
from weighbridge.model.mechanism import Mechanism, Subject
from weighbridge.model.study import Arm


class OpenFilesLimit(Mechanism):
    """Programs that close every file that could be open, one by one, when they start: 2^30 calls take minutes."""

    kind = "open-files"
    summary = "a limit of open files that differs from the baseline's"
    title = "limit of open files"
    switched = "own limit → the baseline's"
    remedy = "a lower limit (docker run --ulimit nofile=1024), or a program that uses close_range(2)"
    source = "moby/moby#38814: Default per-container ulimits are too generous"
    proof = Proof(fact=OPEN_FILES)

    def off(self, subject: Subject) -> Arm | None:
        """Return the environment with the baseline's limit."""
        if "open_files" not in type(subject.arm.options).model_fields:
            return None
        own, usual = subject.option("open_files"), getattr(subject.baseline.options, "open_files", None)
        if own == usual:
            return None
        return subject.with_options(without=("open_files",), **({} if usual is None else {"open_files": usual}))


PLUGIN = OpenFilesLimit()
