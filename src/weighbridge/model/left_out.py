"""Environments of a study that a run does not measure, as they cannot be opened where it runs."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, TypeAdapter


class LeftOut(BaseModel):
    """An optional environment that could not be opened: why, and what would make it ready ("" where not known)."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    environment: str
    kind: str
    why: str
    remedy: str = ""

    @property
    def reason(self) -> str:
        """Why, and what helps: ``podman is not installed; apt-get install podman``."""
        return f"{self.why}; {self.remedy}" if self.remedy else self.why


_EVERY = TypeAdapter(tuple[LeftOut, ...])


def left_out_text(left_out: Sequence[LeftOut]) -> str:
    """Return them as a run keeps them: JSON."""
    return _EVERY.dump_json(tuple(left_out)).decode()


def left_out_of(text: str) -> tuple[LeftOut, ...]:
    """Read what `left_out_text` gives. Raises ValidationError."""
    return _EVERY.validate_json(text)
