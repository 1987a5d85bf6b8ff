"""What an open host of another machine lacks of what an environment takes there."""

from types import SimpleNamespace
from typing import Any

from sentences import assert_sentence
from weighbridge import registry
from weighbridge.errors import Unavailable
from weighbridge.linux.packages import missing_on
from weighbridge.model.command import Command


class Machine:
    """An open host with these programs."""

    def __init__(self, *programs: str, engine: object = None, this_machine: bool = False) -> None:
        self._programs, self.this_machine = programs, this_machine
        self.capabilities = SimpleNamespace(engine=engine)

    def run(self, command: Command) -> Any:
        asked = command.argv[command.argv.index("sh", 1) + 1 :]
        return SimpleNamespace(text="".join(f"{each}\n" for each in asked if each not in self._programs))


def _lacking(kind: str, machine: Machine) -> str:
    host: Any = machine
    return missing_on(host, registry.environments()[kind].host_programs)


def test_programs_that_are_missing_are_named():
    assert _lacking("bubblewrap", Machine("bwrap")) == ""
    assert _lacking("native", Machine()) == ""
    assert_sentence(_lacking("bubblewrap", Machine()))
    assert_sentence(_lacking("netns", Machine()))
    assert_sentence(_lacking("netns", Machine("ip")))


def test_an_engine_that_may_not_be_used_is_told():
    def refuse() -> str:
        raise Unavailable("host n1: no engine answers there")

    docker: Any = registry.environments()["docker"]
    answers, silent = (
        docker.ready_on(docker.options(), Machine(engine=SimpleNamespace(engine_url=engine_url)))
        for engine_url in (lambda: "unix:///x", refuse)
    )
    assert answers.ready and not silent.ready
    assert_sentence(silent.detail)
