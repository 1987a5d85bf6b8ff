"""What `weighbridge weigh --compose` makes of a service of a Compose file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weighbridge.cli.output import WRONG_COMMAND_LINE, err, fail


@dataclass(frozen=True, slots=True)
class ComposeWords:
    """The words of a command line that are about a Compose file."""

    file: Path | None = None
    service: str | None = None
    without: Sequence[str] = ()
    saved: Sequence[str] = ()
    image: str | None = None
    """In place of the service's own: a name, or a file."""
    port: int | None = None

    def require_whole(self, *, server: bool, shell: bool) -> None:
        """End with a sentence where something is missing, or has no meaning."""
        if self.file is None:
            beside = {"--service": self.service, "--without": self.without, "--saved": self.saved}
            if given := [option for option, value in beside.items() if value]:
                fail(f"{given[0]} is about a Compose file: say --compose FILE", WRONG_COMMAND_LINE)
        elif not self.file.is_file():
            fail(f"--compose: there is no file {self.file}", WRONG_COMMAND_LINE)
        elif self.service is None:
            fail("--compose: say which service is weighed: --service NAME", WRONG_COMMAND_LINE)
        elif server or shell:
            which = "--server" if server else "--shell"
            fail(f"{which}: with --compose the server is the service's own program", WRONG_COMMAND_LINE)


def weighed_service(given: ComposeWords) -> dict[str, Any]:
    """Return what a `Weighed` has of the service. Says on stderr what is left out.

    Raises StudyError, Unavailable, UserlandError.
    """
    from weighbridge.errors import StudyError
    from weighbridge.model.companion import ComposedService
    from weighbridge.runner.compose_file import normalised
    from weighbridge.study.compose import Unhonoured
    from weighbridge.study.compose_key import service_of

    asked = ComposedService(
        file=str(given.file),
        service=given.service or "",
        without=tuple(key for keys in given.without for key in keys.split(",") if key),
        saved=dict(_saved(each) for each in given.saved),
        image=given.image,
        port=given.port,
    )
    try:
        found = service_of(asked, normalised)
    except Unhonoured as error:
        raise StudyError(f"{error.listed}--without {','.join(error.shortly)}") from None
    if found.remark:
        err().print(found.remark, markup=False, soft_wrap=True)
    if found.port is None:
        fail(f"compose: {given.service} has not one port: say where it listens: --ready PORT", WRONG_COMMAND_LINE)
    return {
        "server": found.server,
        "server_env": found.environment,
        "port": found.port,
        "userland": found.userland,
        "companions": found.companions,
        "remark": found.remark,
    }


def _saved(given: str) -> tuple[str, str]:
    image, equals, file = given.rpartition("=")
    if not (image and equals and file):
        fail(f"--saved {given}: say IMAGE=FILE", WRONG_COMMAND_LINE)
    return image, file
