"""What tracers saw of environments that are explained: tables of trials that are not counted, below the causes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from weighbridge.model.traced import Trace, TracerName
from weighbridge.report.text.environments import display_name
from weighbridge.report.text.formatting import in_percent, whole
from weighbridge.store.run import RunStore
from weighbridge.store.traces import FILE, FOLDER, read_traces

_SHOWN = 12
_SKID = (
    " perf samples on a clock's interrupts. The kernel's work with interrupts disabled is therefore counted in the"
    " function that enables them again, such as _raw_spin_unlock_irqrestore."
)
_WHAT: dict[TracerName, str] = {"perf": "function", "bpftrace": "event of the kernel"}


@dataclass(frozen=True, slots=True)
class TraceTable:
    """The events that a tracer saw of one workload in an explained environment, and in it without its mechanisms."""

    title: str
    sentence: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]


def trace_tables(store: RunStore) -> list[TraceTable]:
    """Return the traces of a run, a table for each environment and workload."""
    try:
        traces = read_traces(store.directory)
    except ValueError:
        damaged = f"{FOLDER}/{FILE} is damaged, or does not belong to the run, so it is not shown."
        return [TraceTable("traced, not counted", damaged, (), ())]
    return [
        _table(environment, workload, [*group])
        for (environment, workload), group in groupby(traces, key=lambda each: (each.environment, each.workload))
    ]


def _table(environment: str, workload: str, traces: Sequence[Trace]) -> TraceTable:
    tracer, name = traces[0].tracer, display_name(environment)
    told = [each for each in traces if each.items]
    failures = dict.fromkeys(each.failure for each in traces if each.failure)
    sentence = (
        f"One run each under {tracer}, which slows it down. {tracer} watches the whole machine, so other programs and"
        f" the beginning and end of a run are included.{_SKID if tracer == 'perf' else ''}"
        f" Complete data: {FOLDER}/{FILE}."
    )
    if failures:
        sentence = f"Not traced: {'; '.join(failures)}."
    unit = "samples" if tracer == "perf" else "events"
    heads = (_WHAT[tracer], *(f"{_arm(name, each)}, {_grouped(each.total)} {unit}" for each in told))
    return TraceTable(f"{name}: {workload}, traced, not counted", sentence, heads, [*_rows(told)])


def _rows(traces: Sequence[Trace]) -> Iterator[tuple[str, ...]]:
    """Return the most frequent items of any of the traces; items of perf are shares of its samples."""
    counts = [{item.name: item.count for item in each.items} for each in traces]
    shares = [{name: n / max(1, each.total) for name, n in mine.items()} for each, mine in zip(traces, counts)]  # noqa: B905
    names = sorted(
        {name for each in counts for name in each},
        key=lambda name: (-max(each.get(name, 0.0) for each in shares), name),
    )
    for name in names[:_SHOWN]:
        if traces[0].tracer == "perf":
            yield name, *(in_percent(f"{100 * each[name]:.1f}") if name in each else "–" for each in shares)
        else:
            yield name, *(_grouped(each[name]) if name in each else "–" for each in counts)


def _arm(name: str, trace: Trace) -> str:
    return name if trace.arm == trace.environment else f"{name} without these"


def _grouped(number: int) -> str:
    return whole(number)
