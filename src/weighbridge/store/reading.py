"""The valid contents of a run's rows, so that a damaged file is rejected here.

All sizes are bounded, so that results computed from them stay finite.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    Json,
    PlainValidator,
    TypeAdapter,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from weighbridge.errors import RunDirectoryError
from weighbridge.model.address import ArmId
from weighbridge.model.decisions import BlockSchedule, GateLook, LeftOut, TrialLength
from weighbridge.model.flag import Flag
from weighbridge.model.level import Level, LevelText
from weighbridge.model.measurement import LARGEST, SMALLEST, Outcome
from weighbridge.model.names import RunId
from weighbridge.model.text import one_line
from weighbridge.model.validation import first_problem
from weighbridge.store.flags import flags_of

_OUTCOMES: Mapping[Any, Outcome] = {each.value: each for each in Outcome}


def _outcome(text: Any) -> Outcome:
    # a function, because pydantic asks a validator for its number of arguments, and since Python 3.12 an enum takes
    # any
    if (outcome := _OUTCOMES.get(text)) is None:
        raise ValueError(f"'{one_line(text, 60)}' is not an outcome of a trial")
    return outcome


class _Plausible:
    """An annotation for values that `is_plausible` allows in a range, without a call for each number."""

    def __init__(self, least: float, most: float) -> None:
        self._least, self._most = least, most

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        ranges = [(SMALLEST, self._most), (0.0, 0.0), *([(self._least, -SMALLEST)] if self._least < 0 else [])]
        return core_schema.union_schema(
            [core_schema.float_schema(ge=low, le=high, allow_inf_nan=False) for low, high in ranges],
            mode="left_to_right",
            custom_error_type="implausible",
            custom_error_message="not a number that can have been measured",
        )


Seconds = Annotated[float, _Plausible(0, 1e11)]
Number = Annotated[int, Field(ge=0, le=2**53)]
Finite = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]
MeasuredNumber = Annotated[float, _Plausible(-LARGEST, LARGEST)]
AnyOutcome = Annotated[Outcome, PlainValidator(_outcome)]
RowLevel = Annotated[Level, PlainValidator(Level.from_text)]
"""The same as `LevelText` for text alone, which reads the thousands of rows of a run twice as fast."""
StoredFlags = Annotated[tuple[Flag, ...], PlainValidator(flags_of)]


def _comparable(options: dict[str, Any]) -> dict[str, Any]:
    """Refuse NaN: it differs from itself, so a run with it would differ from its own study."""
    try:
        json.dumps(options, allow_nan=False)
    except ValueError as error:
        raise ValueError("expected finite numbers") from error
    return options


StoredOptions = Annotated[Json[dict[str, Any]], AfterValidator(_comparable)]


class _Repetitions(BaseModel):
    """The repetitions as far as reports read them; another version can write more keys."""

    model_config = ConfigDict(strict=True)

    blocks: Annotated[int, Field(ge=1, le=1000)] | None = None
    target: Annotated[float, Field(gt=0, lt=1)] | None = None
    min: Annotated[int, Field(ge=2, le=1000)] = 10
    max: Annotated[int, Field(ge=2, le=1000)] = 60

    @model_validator(mode="after")
    def _in_order(self) -> "_Repetitions":
        if self.min > self.max:
            raise ValueError(f"min ({self.min}) is larger than max ({self.max})")
        return self


RUN_ID = "run_id"
"""The key of a run for its id."""
TEXTS = TypeAdapter(list[tuple[str]])
KEYS: TypeAdapter[list[tuple[str, str]]] = TypeAdapter(list[tuple[str, str]])
KEY_TYPES: Mapping[str, TypeAdapter[Any]] = {
    RUN_ID: TypeAdapter(RunId),
    "equivalence": TypeAdapter(Annotated[float, Field(gt=0, lt=1)]),
    "created": TypeAdapter(Seconds),
    "seed": TypeAdapter(Json[int]),
    "repetitions": TypeAdapter(Json[_Repetitions]),
    "ladder": TypeAdapter(Json[list[str | tuple[str, str | None]]]),
    "networked": TypeAdapter(Json[list[str]]),
    "absent": TypeAdapter(Json[tuple[ArmId, ...]]),
    "loads": TypeAdapter(Json[dict[str, str]]),
    "left_out": TypeAdapter(Json[tuple[LeftOut, ...]]),
    "trial_lengths": TypeAdapter(Json[tuple[TrialLength, ...]]),
    "allotments": TypeAdapter(Json[tuple[BlockSchedule, ...]]),
    "gate_looks": TypeAdapter(Json[tuple[GateLook, ...]]),
    "secrets": TypeAdapter(Json[dict[str, str]]),
    "session_starts": TypeAdapter(Json[list[tuple[Seconds, Number]]]),
}
"""The types of the values of these keys of a run."""
ENVIRONMENTS = TypeAdapter(list[tuple[str, str, StoredOptions, str | None]])
CELLS = TypeAdapter(list[tuple[str, LevelText, str, StoredOptions]])
FACTS = TypeAdapter(list[tuple[str, str, str, Seconds]])
FINISHED = TypeAdapter(list[tuple[Number, Number, str, RowLevel, str, AnyOutcome, str]])
VALUES = TypeAdapter(list[tuple[Number, str, str, Literal["higher", "lower"], MeasuredNumber]])
TRIALS = TypeAdapter(
    list[
        tuple[
            Number, Number, Number, str, RowLevel, str, AnyOutcome, str, Seconds, Seconds, Seconds, StoredFlags,
            Seconds | None,
        ]
    ]
)  # fmt: skip
PROCESSES = TypeAdapter(list[tuple[Number, str, Json[list[str]], int, Seconds, str, str]])
SAMPLES = TypeAdapter(list[tuple[Number, str, str, Finite]])
SERIES = TypeAdapter(list[tuple[Number, str, str, Json[tuple[Finite, ...]], Json[tuple[Finite, ...]]]])
HISTOGRAMS = TypeAdapter(list[tuple[Number, str, str]])
SPENT = TypeAdapter(list[tuple[Finite]])

_BESIDE_S = 60.0
"""The largest distance of a reading from its trial: sysstat has full seconds, and a server rounds."""


def are_times(at_s: Sequence[float], duration_s: float) -> bool:
    """Return whether these can be the times of a trial's readings: some, in order, and roughly within it."""
    if not at_s or at_s[0] < -_BESIDE_S or at_s[-1] > duration_s + _BESIDE_S:
        return False
    return list(at_s) == sorted(at_s)


@contextmanager
def checked(where: Path, what: str) -> Iterator[None]:
    """Turn a validation error into one sentence about a damaged file."""
    try:
        yield
    except ValidationError as error:
        location, problem = first_problem(error)
        place = f" ({', '.join(map(str, location))})" if location else ""
        raise RunDirectoryError(f"{where} is damaged: {what}{place}: {problem}") from error
