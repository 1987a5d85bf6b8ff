"""hyperfine: the mean time of a command."""

from typing import Literal

from weighbridge.adapters._benchmarks import BenchmarkOptions, add
from weighbridge.adapters._json import at, entries, number, read_document
from weighbridge.model.adapter import Adapter
from weighbridge.model.measurement import Measurement, Metric, ProgramFailed
from weighbridge.model.text import one_line

_USAGE = "hyperfine --export-json /tmp/h.json COMMAND >&2 && cat /tmp/h.json"
_WHAT = "hyperfine"


class HyperfineOptions(BenchmarkOptions):
    """Options of hyperfine's output. The name of a benchmark is its command, or the name that you gave it."""

    kind: Literal["hyperfine"] = "hyperfine"

    @property
    def only(self) -> Metric:
        """Return the mean time in seconds."""
        return Metric("mean_time", "s", "lower")

    def read(self, stdout: bytes, stderr: bytes) -> tuple[Measurement, ...]:
        """Return the mean of each command's runs. A run with a nonzero exit code is not a measurement."""
        values: dict[str, float] = {}
        for result in entries(read_document(stdout, _WHAT, _USAGE), "results", _WHAT):
            codes = at(result, "exit_codes")
            if isinstance(codes, list) and any(code != 0 for code in codes):
                raise ProgramFailed(
                    f"hyperfine: a run of '{one_line(at(result, 'command'), 60)}' failed with a nonzero exit code"
                )
            add(values, at(result, "command"), number(result, _WHAT, "mean"), _WHAT)
        return self.chosen(values, "hyperfine's output")


class Hyperfine(Adapter):
    """Reads the JSON of ``--export-json``, which must be printed instead of hyperfine's own report."""

    kind = "hyperfine"
    summary = "hyperfine: the mean time of each command"
    options = HyperfineOptions
    usage = _USAGE


PLUGIN = Hyperfine()
