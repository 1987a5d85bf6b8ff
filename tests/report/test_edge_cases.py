"""Every sentence about runs at the edges: few rounds, failed controls, overloads, steps, mechanisms, old sessions.

The other golden files show whole reports of a few runs. Here each run is small, and only its sentences are compared.
"""

from collections.abc import Callable, Iterator
from dataclasses import astuple, replace
from typing import Any

import pytest

from sentences import assert_sentence
from weighbridge.analysis.analyse import analyse
from weighbridge.analysis.conditions import Calibration
from weighbridge.analysis.next_step import more_rounds, obstacle
from weighbridge.analysis.results import Analysis
from weighbridge.analysis.sessions import RunSession, SessionDifference, Sessions
from weighbridge.model.choices import Promise
from weighbridge.model.decisions import LeftOut
from weighbridge.model.explained import Explains
from weighbridge.model.facts import HostDifference, Interface, NetworkPath
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.measurement import Metric, Outcome
from weighbridge.model.power_cut import SCOPE, PowerCut, power_cut_facts
from weighbridge.model.stored_study import StoredFile
from weighbridge.model.study import Repetitions
from weighbridge.report.text import conditions, explanation, matrix, summary, trust
from weighbridge.report.text.curves import broke_sentences, curve_sentences
from weighbridge.report.text.next_step import obstacle_sentence, rounds_sentence
from weighbridge.report.text.paths import difference_words
from weighbridge.report.text.remarks import coded_text
from weighbridge.report.text.steps import ladder_sentences
from weighbridge.report.text.trial_flags import flagged_sentence
from weighbridge.report.text.verdicts import broke_instead, comparison_verdict, open_text

from .explained_runs import FILTER, MECHANISMS, TRANSLATION, crossed, recipe, with_placebo
from .made_up_runs import LATENCY, LOSS, P99, REQUESTS, TCP, THROUGHPUT, TOO_MANY, Workload, rising_load
from .rich_runs import FACTS as HYPERVISORS

Change = Callable[[Analysis], Analysis]
ARMS = ("native", "native-again", "host", "bridge")
OTHERS = Flag(FlagCode.OTHER_WORK, figures={"cpus": 1.8})
STEAL = Flag(FlagCode.STEAL, figures={"share": 0.3})
CABLE = Flag(FlagCode.CABLE, "host a", {"share": 0.99, "rate": 100e6})
HOST: dict[str, Any] = {"costs": {"host": 1.0}}
BRIDGE: dict[str, Any] = {"costs": {"bridge": 1.25}}


def requests(name: str, noise: float) -> Workload:
    return Workload(name, [(REQUESTS, 1000, noise)])


def one_metric(noise: float) -> dict[str, Any]:
    return HOST | {"workloads": [requests("w", noise)]}


def lost(environment: str, *blocks: int) -> dict[str, Any]:
    return {"failing": {(block, environment): Outcome.DEADLINE for block in blocks}}


def flags(*several: Flag, arms: tuple[str, ...] = ARMS, blocks: int = 10) -> dict[str, Any]:
    return {"flags": {(block, arm): several for block in range(1, blocks + 1) for arm in arms}}


def over_loads(*rates: float, **more: Any) -> dict[str, Any]:
    cells = [Workload("web", [(REQUESTS, rate, 0.01)], load(n)) for n, rate in enumerate(rates, 1)]
    return HOST | {"workloads": cells, "loads": {"web": "connections"}, "blocks": 3} | more


def load(number: int) -> tuple[tuple[str, str], ...]:
    return (("connections", str(number)),)


def broken_at(number: int, *environments: str, blocks: int = 3) -> dict[Any, str]:
    return {(block, name, load(number)): TOO_MANY for block in range(1, blocks + 1) for name in environments}


def memory(centre: float, cost: float) -> dict[str, Any]:
    metric = Metric("memory_per_site", "MiB", "lower")
    return {"costs": {"bridge": cost}, "workloads": [Workload("density", [(metric, centre, 0.01)])]}


def path(mtu: int, **more: Any) -> str:
    port = Interface(place="server", name="eth0", kind="veth", mtu=mtu)
    return NetworkPath(transport="tcp", interfaces=(port,), mss=mtu - 52, **more).model_dump_json()


LADDER = {
    "costs": {"host": 1.0, "bridge": 1.12, "overlay": 1.6},
    "ladder": [["native", None], ["host", "native"], ["bridge", "native"], ["overlay", "bridge"]],
    "options": {"host": {"network": "host"}, "bridge": {"network": "bridge", "publish": True}},
}
APP = Workload("app", [(LATENCY, 5, 0.01)])
LOSSY = Workload("udp", [(LOSS, 0.05, 2.0), (THROUGHPUT, 1e7, 0.001)])
OPEN_LOOP = [
    Workload("web", [(P99, 1e3 / rate, 0.0), (REQUESTS, served, 0.0)], (("rate", str(rate)),))
    for rate, served in ((100, 100), (200, 200), (400, 150))
]
SLOW_RUNS = {(block, "bridge"): 3.0 for block in range(4, 31, 5)}
MANY_LEVELS = [Workload("redis", [(REQUESTS, 5e4, 0.01)], (("clients", str(n)),)) for n in range(10)]
HOST_FACTS = {
    "host a": {"kind": "testbed: on this machine", "kernel": "6.1"},
    "host differences": {
        "kernel": "6.1 on a, 6.6 on b",
        "clock": HostDifference(kind="clock", host="b", ahead_s=-1.5).model_dump_json(),
        "run 0a0a0a0a0a0a": HostDifference(kind="beside", values=(("0a0a0a0a0a0a", ""),)).model_dump_json(),
        "CPUs": HostDifference(kind="shared-cpus", values=(("a", "host a"), ("b", "host a"))).model_dump_json(),
        "all": HostDifference(kind="shared-cpus").model_dump_json(),
        "fact": HostDifference(kind="fact", fact="kernel", values=(("a", "6.1"), ("b", "6.5"))).model_dump_json(),
    },
}
FACTS = {
    "userland": {"digest": "abc"},
    "bridge/server": {
        "version iperf3": "3.16", "limits": "1 CPUs", "not metered: CPU time": "nobody counts it",
        "packages": "b" * 64, "version: kernel": "6.1.0-44-amd64", "open files of a process": "1048576",
    },
    "bridge/client": {"user": "root", "version: kernel": "6.1.0-44-amd64", "open files of a process": "1048576"},
    "native/server": {
        "version iperf3": "3.12", "limits": "none", "quality of service": "Guaranteed", "packages": "a" * 64,
        "version: kernel": "6.18.5", "open files of a process": "65536", "containers added": "none",
    },
    "native/client": {"user": "root", "version: kernel": "6.18.5", "open files of a process": "65536"},
    "host/server": {
        "quality of service": "Burstable", "not honoured: pin": "no second CPU", "limits": "none",
        "version: kernel": "6.18.5", "containers added": "istio-init, istio-proxy",
    },
    "outside/client": {"not honoured: pin": "no second CPU"},
    "packet sizes": {"native/tcp": "1468 B", "bridge/tcp": "1418 B", "host/tcp": "1468 B (probed)"},
    "durability": {"native/tcp": "synchronous", "host/tcp": "asynchronous", "bridge/tcp": "none"},
    "path": {"native@here": path(1500), "host@here": path(1450), "bridge@here": path(1422, translation="proxy")},
}  # fmt: skip


def cut(promise: Promise, claimed: str, lost: int, torn: int = 0) -> PowerCut:
    first = 10 - lost if lost else None
    return PowerCut("host", promise, "volume", claimed, "lab", 10, 10 - lost, lost, first, torn, 0)  # type: ignore[arg-type]


CUTS = [cut(Promise.FSYNC, "synchronous", 3, torn=1), cut(Promise.WRITE, "synchronous", 10)]
RULES = {
    **recipe()["facts"],
    "path": {"bridge@here": path(1500, rules=10), "bridge-without-translation@here": path(1500, rules=0)},
}
HIDING = {"bridge": 1.3, "bridge-without-filter": 1.3, "bridge-without-translation": 1.3, "bridge-bare": 1.0}
EXPLAINS = {
    name: Explains(environment="bridge", off=off)
    for name, off in zip([*HIDING][1:], ((FILTER,), (TRANSLATION,), (FILTER, TRANSLATION)), strict=True)
}
RUNS: dict[str, dict[str, Any]] = {
    "control failed": HOST | {"aa_factor": 1.08},
    "control passed": HOST,
    "three costs": {"costs": {"slow": 1.5, "fast": 0.6, "same": 1.0}, "workloads": [APP, TCP]},
    "no control": HOST | {"aa": False},
    "no trial": BRIDGE | {"blocks": 0},
    "baseline alone": {"costs": {}},
    "one round": BRIDGE | {"blocks": 1},
    "four rounds": BRIDGE | {"blocks": 4},
    "six rounds": BRIDGE | {"blocks": 6},
    "six quiet rounds": one_metric(0.0) | {"blocks": 6},
    "some exploratory": {"costs": {"a": 1.0, "b": 1.0}, **lost("a", 4)},
    "noise": one_metric(0.1),
    "much noise": one_metric(0.3),
    "much noise and steal": one_metric(0.3) | flags(STEAL),
    "much noise and others": one_metric(0.3) | flags(OTHERS),
    "quiet and noisy": HOST | {"workloads": [requests("quiet", 0.001), requests("noisy", 0.2)]},
    "three noises": HOST | {"workloads": [requests(f"w{n}", 0.01 * 4**n) for n in range(3)], "blocks": 20},
    "a workload without a control": HOST | {
        "workloads": [TCP, requests("udp", 0.01)], "absent": {("udp", "native-again")},
    },
    "out of reach": one_metric(0.1) | {
        "repetitions": Repetitions(target="2%", min=10, max=10), **flags(OTHERS), "facts": HOST_FACTS,
    },
    "steal and others": one_metric(0.1) | flags(OTHERS, STEAL),
    "others in few trials": one_metric(0.1) | flags(OTHERS, arms=("host",)),
    "others, control failed": HOST | {"aa_factor": 1.08, **flags(OTHERS, STEAL)},
    "others, no control": HOST | {"aa": False, **flags(OTHERS, STEAL)},
    "others, four rounds": HOST | {"blocks": 4, **flags(OTHERS, STEAL, blocks=4)},
    "flags of a few trials": {"costs": {"bridge": 1.25}, "flags": {
        (1, "bridge"): (Flag(FlagCode.STEAL, figures={"share": 0.03}), Flag(FlagCode.GENERATOR_SATURATED)),
        (2, "bridge"): (replace(STEAL, figures={"share": 0.09}), Flag(FlagCode.PROGRAM_ERRORS, figures={"count": 4})),
        (3, "native"): (Flag(FlagCode.LOAD, figures={"load": 5.2}),),
    }},
    "hidden": {"costs": {"bridge": 1.0}, **flags(CABLE)},
    "limited on one side": {"costs": {"bridge": 1.25}, **flags(CABLE, arms=("native", "native-again"))},
    "outliers": {"costs": {"bridge": 1.0}, "blocks": 12, "slowed": {(3, "bridge"): 3.0, (8, "bridge"): 4.0}},
    "stalls": {"costs": {"bridge": 1.0}, "blocks": 30, "slowed": SLOW_RUNS},
    "failures": {"costs": {"host": 1.0, "bridge": 1.0}, "blocks": 14, **lost("host", 3, 7)},
    "always fails": {"costs": {"qemu": 1.0, "bridge": 1.2}, "blocks": 3, **lost("qemu", 1, 2, 3)},
    "undecided": {"costs": {"a": 1.0, "b": 1.0}, "workloads": [requests("w", 0.04)], "blocks": 12},
    "not resolved": memory(8.0, -1.0),
    "baseline not resolved": memory(-3.7, 1.0),
    "differences": {"costs": {"bridge": 1.0}, "workloads": [LOSSY]},
    "facts": {"costs": {"host": 1.0, "bridge": 1.0}, "facts": FACTS},
    "host facts": HOST | {"facts": HOST_FACTS},
    "left out": BRIDGE | {
        "left_out": (LeftOut(environment="kvm", kind="qemu", why="/dev/kvm is missing", remedy="load kvm"),)
    },
    "hypervisors": {"costs": {"zxen": 1.4, "zqemu": 3.0, "zkvm": 1.0}, "facts": HYPERVISORS},
    "power cuts": HOST | {"facts": {SCOPE: power_cut_facts(CUTS)}},
    "rising load": rising_load(outputs=False),
    "still rising": over_loads(1e4, 2e4, 3e4),
    "falling": over_loads(3e4, 2e4, 1e4),
    "broke at the end": over_loads(1e4, 2e4, 3e4, breaking=broken_at(3, "host")),
    "broke in most trials": over_loads(1e4, 2e4, 3e4, breaking=broken_at(3, "host", blocks=2)),
    "baseline broke": over_loads(1e4, 2e4, 3e4, breaking=broken_at(3, "native")),
    "all broke": over_loads(1e4, 2e4, 3e4, breaking=broken_at(3, "native", "host", "native-again")),
    "broke for two reasons": over_loads(
        1e4, 2e4, 3e4, breaking={**broken_at(2, "host", blocks=1), **dict.fromkeys(broken_at(3, "host"), "died")}
    ),
    "a latency leads": HOST | {"workloads": OPEN_LOOP, "loads": {"web": "rate"}, "blocks": 2, "aa": False},
    "steps": LADDER | {"blocks": 12, **lost("bridge", 1, 2, 3)},
    "steps of two rounds": LADDER | {"blocks": 2},
    "explained": recipe(),
    "explained with rules": recipe(facts=RULES),
    "explained with a placebo": with_placebo(),
    "explained with a placebo that excludes zero": with_placebo(1.05),
    "explained by every combination": crossed(),
    "explained, and faster with all off": recipe(costs={**recipe()["costs"], "bridge-bare": 0.9}),
    "explained by two that hide each other": recipe(costs=HIDING, explains=EXPLAINS, mechanisms=MECHANISMS[:2]),
    "not explained": recipe(costs=dict.fromkeys(recipe()["costs"], 1.0), workloads=[requests("redis", 0.2)]),
    "steps of many workloads": LADDER | {"workloads": [requests(f"w{n}", 0.02) for n in range(14)]},
    "steps of many levels": LADDER | {"blocks": 12, "workloads": [*MANY_LEVELS, TCP]},
}  # fmt: skip
"""Each is a recipe of ``made_up_runs``."""


def on_nodes(analysis: Analysis) -> Analysis:
    study = StoredFile(hosts={"a": {"kind": "kubernetes"}})
    return replace(analysis, context=replace(analysis.context, study=study))


def calibrated(about: str) -> Change:
    found = Calibration(about, {"smallest detectable cost, tcp": "2%"})  # type: ignore[arg-type]
    return lambda analysis: replace(analysis, calibration=found, polled=about == "halting-cpus")


def total_is(verdict: str) -> Change:
    def changed(analysis: Analysis) -> Analysis:
        (explanation,) = analysis.explanations
        total = replace(explanation.total, verdict=verdict)
        return replace(analysis, explanations=(replace(explanation, total=total),))

    return changed


SESSIONS = Sessions(
    (RunSession(1.7e9, (1, 2, 3, 4, 5)), RunSession(1.7e9 + 9000, (5, 6, 7, 8, 9, 10))), (5,),
    (
        SessionDifference("frequency governor", ("powersave", "performance")),
        SessionDifference("docker", ("20.10", "29.1"), ("bridge",)),
    ),
)  # fmt: skip
UNEXPLAINED = ("inconclusive", "hidden", "equivalent")
CALIBRATIONS = ("this-run", "another-path", "halting-cpus")
CHANGED: dict[str, tuple[str, Change]] = {
    "steal and others on nodes": ("steal and others", on_nodes),
    "steal and others, polling": ("steal and others", lambda analysis: replace(analysis, polled=True)),
    "wide margin": ("much noise", lambda analysis: replace(analysis, equivalence=0.5)),
    "another baseline": ("three noises", lambda analysis: replace(analysis, baseline="before")),
    **{f"calibrated: {each}": ("one round", calibrated(each)) for each in CALIBRATIONS},
    **{f"explained, total {each}": ("explained", total_is(each)) for each in UNEXPLAINED},
    "two sessions": ("one round", lambda analysis: replace(analysis, sessions=SESSIONS)),
    "separate sessions": ("one round", lambda analysis: replace(analysis, sessions=replace(SESSIONS, mixed=()))),
}  # fmt: skip
"""Each is an analysis of one of the runs with a change."""


def sentences_of(analysis: Analysis) -> Iterator[str]:
    """Yield every sentence of a run's report, with what it is about."""
    step, stop = more_rounds(analysis), obstacle(analysis)
    stopped = obstacle_sentence(stop, analysis) if stop is not None and stop.code != "control-failed" else ""
    yield f"trust: {trust.trust_sentence(analysis)}"
    yield f"control: {trust.control_sentence(analysis)} {trust.control_power(analysis)}"
    if trust.imprecise(analysis):
        yield "the control is not precise"
    yield f"exploratory: {summary.exploratory_sentence(analysis)}"
    yield f"next: {rounds_sentence(step, analysis) if step else stopped}"
    yield f"flags: {flagged_sentence(analysis)}"
    for verdict, line in summary.verdict_sentences(analysis):
        yield f"{verdict}: {line}"
    yield from summary.disagreements(analysis)
    yield from conditions.condition_lines(analysis)
    yield from conditions.power_cut_lines(analysis)
    yield from conditions.left_out_lines(analysis)
    yield from conditions.session_lines(analysis)
    yield from broke_sentences(analysis)
    for sweep in analysis.sweeps:
        yield from curve_sentences(sweep, analysis.baseline)
    for _, line in ladder_sentences(analysis):
        yield f"step: {line}"
    for each in analysis.explanations:
        yield explanation.explanation_sentence(analysis, each)
        for line in explanation.explanation_rows(analysis, each):
            yield f"mechanism: {'; '.join(filter(None, map(str, astuple(line))))}"
    yield from map(coded_text, analysis.confounders)
    for report in analysis.metrics:
        for row in report.comparisons:
            remarks = [coded_text(each) for each in row.remarks if each.code != "control"]
            words = [*filter(None, (comparison_verdict(row), broke_instead(row), open_text(report, row))), *remarks]
            if words != ["control"]:
                yield f"{report.label} {report.metric}, {row.environment}: {'; '.join(words)}"
            unlike = analysis.paths.difference(report.cell, row.environment, analysis.baseline)
            if report.headline and unlike:
                yield f"path: {difference_words(unlike)}"
    for shown in matrix.matrix(analysis).rows:
        cells = [matrix.large(shown, cell) for cell in shown.cells if cell is not None]
        yield f"table: {' | '.join((*matrix.reference_values(analysis, shown), *cells))}"


@pytest.mark.parametrize("name", [*RUNS, *CHANGED])
def test_the_sentences_of_a_run_at_an_edge(run, name: str):
    base, change = CHANGED.get(name, (name, None))
    analysis = analyse(run(**RUNS[base]))
    assert_sentence("\n".join(sentences_of(change(analysis) if change else analysis)))
