"""A sample: a program that the study itself brings, with a server of the study's own where it names one."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from weighbridge.model.command import Command, Completed, Transport
from weighbridge.model.measurement import Measurement, Metric, ProgramFailed, Unparseable
from weighbridge.model.options import Options
from weighbridge.model.study import Role
from weighbridge.model.trial import TrialResult, Work
from weighbridge.model.workload import Endpoint, Workload

_SCRIPT = "/tmp/measured.pl"


class ScriptOptions(Options):
    """What is run: lines of Perl, and the command of a server that listens at HOST, PORT."""

    script: Annotated[str, Field(description="What is measured; it prints one number")] = "print 42"
    server: Annotated[str | None, Field(description="The server's command, HOST and PORT in it")] = None
    users: Annotated[int, Field(ge=1, le=1000, description="The script's last argument: the server's load")] = 1
    timeout: Annotated[float, Field(gt=0, description="Seconds that the script may take")] = 30.0


class Script(Workload):
    """Alone, or as the client of a server: as the options say."""

    kind = "script"
    summary = "a script of the study's own, alone or with a server"
    options = ScriptOptions
    packages = ("perl",)

    def transports(self, options: Any) -> tuple[Transport, ...]:
        return ("tcp",) if options.server else ()

    def load(self, options: Any) -> str:
        return "users" if options.server else ""

    def metrics(self, options: Any) -> tuple[Metric, ...]:
        return (Metric("answers", "1/s" if options.server else "count", "higher"),)

    def files(self, role: Role, options: Any, at: Endpoint) -> Mapping[str, bytes]:
        return {} if role == "server" else {_SCRIPT: options.script.encode()}

    def command(self, role: Role, options: Any, at: Endpoint) -> Command:
        if role == "server":
            argv = tuple(options.server.replace("HOST", at.listen).replace("PORT", str(at.port)).split())
            return Command(argv, deadline_s=options.timeout + 60, listens=(("tcp", at.port),))
        reached = (at.address, str(at.port)) if options.server else ()
        return Command(("perl", _SCRIPT, *reached, str(options.users)), deadline_s=options.timeout)

    def expected_s(self, options: Any) -> float:
        return float(options.timeout) / 10

    def parse(self, options: Any, completed: Mapping[str, Completed]) -> TrialResult:
        done = completed[self.roles(options)[-1]]
        if done.returncode != 0:
            raise ProgramFailed(f"the script exited with code {done.returncode}: {done.last_words}")
        try:
            value = float(done.text)
        except ValueError:
            raise Unparseable(f"the script printed no number: {done.text[:40]!r}") from None
        work = Work(value / 1000, "1000_transactions") if options.server else None
        return TrialResult((Measurement(self.metrics(options)[0], value),), work)


PLUGIN = Script()
