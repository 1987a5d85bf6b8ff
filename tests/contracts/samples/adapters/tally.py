"""A sample: a program that prints one name and number a line."""

from typing import Annotated, Literal

from pydantic import Field

from weighbridge.model.adapter import Adapter, AdapterOptions, safe_name
from weighbridge.model.measurement import Measurement, Metric, Unparseable


class TallyOptions(AdapterOptions):
    """Which of the names is read."""

    kind: Literal["tally"] = "tally"
    of: Annotated[str, Field(description="The name before the number")] = "words"

    def metrics(self) -> tuple[Metric, ...]:
        return (Metric(safe_name(self.of), "count", "higher"),)

    def read(self, stdout: bytes, stderr: bytes) -> tuple[Measurement, ...]:
        lines = [line.split() for line in stdout.decode(errors="replace").splitlines()]
        numbers = [words[1] for words in lines if len(words) == 2 and words[0] == self.of]
        if len(numbers) != 1 or not numbers[0].isdecimal() or len(numbers[0]) > 15:
            raise Unparseable(f"there is not one number of {self.of}")
        return (Measurement(self.metrics()[0], float(numbers[0])),)


class Tally(Adapter):
    """Lines of a name and a whole number."""

    kind = "tally"
    summary = "a name and a whole number on each line"
    options = TallyOptions
    usage = "tally FILE"


PLUGIN = Tally()
