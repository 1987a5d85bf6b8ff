"""The study that explains one cost of another study."""

from collections.abc import Sequence

from weighbridge.study.source import Source, plain, written


def why_study(
    source: Source,
    baseline: str,
    environment: str,
    workload: str,
    crossed: Sequence[str] = (),
    *,
    client: str = "",
    trace: str | None = None,
    placebo: bool = False,
) -> str:
    """Return the text of a study that explains the cost of one environment in one workload of another study.

    ``environment`` can be one level of a swept environment. ``crossed`` are the mechanisms to switch in every
    combination. If there are none, each is switched by itself. ``client`` is the host of the clients if there are
    several: parts that other clients need could not be switched off. ``trace`` is a tracer that watches the
    environment. ``placebo`` adds the environment with nothing switched. Everything else in the text stays.
    """
    data = dict(source.data)
    name = environment.partition("[")[0]
    data["study"] = f"why-{plain(str(data['study']).removeprefix('why-'), 30)}"
    data["question"] = f"Why does {environment} cost what it does, in {workload}?"
    data["environments"] = {each: dict(data["environments"][each]) for each in (baseline, name)}
    data["workloads"] = {workload: data["workloads"][workload]}
    data["explain"] = {environment: [*crossed]} if crossed else [environment]
    if client:
        data["placement"] = {**data["placement"], "client": client}
        hosts = data["placement"].values()
        data["hosts"] = {host: options for host, options in data["hosts"].items() if host in hosts}
        for options in data["environments"].values():
            options.pop("clients", None)
    if trace is not None:
        data["trace"] = trace
    if placebo:
        data["placebo"] = True
    for key in ("ladder", "profiles"):
        data.pop(key, None)
    return written(data)
