"""What `weighbridge weigh --compose` makes of a service of a Compose file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weighbridge.cli.output import WRONG_COMMAND_LINE, err, fail

if TYPE_CHECKING:
    from weighbridge.study.compose import Composed


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


def weighed_service(given: ComposeWords, userland: Callable[[str], Mapping[str, Any]]) -> dict[str, Any]:
    """Return what a `Weighed` has of the service; ``userland`` says where an image is.

    Says on stderr what is left out. Raises StudyError, Unavailable, UserlandError.
    """
    from weighbridge import registry
    from weighbridge.runner.compose_file import normalised
    from weighbridge.study.compose import composed, server_words, with_saved

    saved = dict(_saved(each) for each in given.saved)
    without = [key for keys in given.without for key in keys.split(",") if key]
    found = with_saved(composed(normalised(str(given.file)), given.service or "", without), saved)
    where = userland(given.image or saved.get(found.image, found.image))
    source = registry.userlands()[where["kind"]]
    options = source.options.model_validate(where)
    remark = _remark(found)
    if remark:
        err().print(remark, markup=False, soft_wrap=True)
    port = given.port or found.port
    if port is None:
        fail(f"compose: {given.service} has not one port: say where it listens: --ready PORT", WRONG_COMMAND_LINE)
    return {
        "server": server_words(found, source.entry_point(options), source.default_command(options)),
        "server_env": found.environment,
        "port": port,
        "userland": where,
        "companions": found.companions,
        "remark": remark,
    }


def _remark(found: "Composed") -> str:
    keys = [f"{service}.{key}" for service, each in found.without.items() for key in each]
    return f"Left out of the Compose file: {', '.join(keys)}" if keys else ""


def _saved(given: str) -> tuple[str, str]:
    image, equals, file = given.rpartition("=")
    if not (image and equals and file):
        fail(f"--saved {given}: say IMAGE=FILE", WRONG_COMMAND_LINE)
    return image, str(Path(file).absolute())
