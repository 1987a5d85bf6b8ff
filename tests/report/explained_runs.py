"""Recipes of runs that explain a cost: one mechanism off in each arm, or in every combination."""

import math

from weighbridge.model.explained import PLACEBO, DescribedMechanism, Explains, Proof

from .made_up_runs import REQUESTS, Workload


def mechanism(kind: str, **changes: object) -> DescribedMechanism:
    return DescribedMechanism(
        **{
            "kind": kind, "environment": "bridge", "title": f"the {kind}", "switched": "on → off",
            "remedy": f"leave the {kind} out", "source": "a book", **changes,
        }
    )  # fmt: skip


FILTER, NETWORK, TRANSLATION = "filter", "network", "translation"
TRUE = {FILTER: 1.05, TRANSLATION: 1.1, NETWORK: 1.2}
"""By what each multiplies the time of a request; together they take 1.08 more than that, and 1.04 is of none."""
TOGETHER, REST = 1.08, 1.04
WHOLE = TRUE[FILTER] * TRUE[TRANSLATION] * TRUE[NETWORK] * TOGETHER * REST
MECHANISMS = (
    mechanism(FILTER, proof=Proof(fact="seccomp", off="off")),
    mechanism(TRANSLATION),
    mechanism(NETWORK, off_with=(TRANSLATION,)),
)


def recipe(**changes: object) -> dict[str, object]:
    """A bridge with three mechanisms, of which the network can be off only without the translation."""
    without_translation = WHOLE / TRUE[TRANSLATION]
    arms = {
        "without-filter": (WHOLE / TRUE[FILTER], (FILTER,)),
        "without-translation": (without_translation, (TRANSLATION,)),
        "without-network": (without_translation / TRUE[NETWORK], (TRANSLATION, NETWORK)),
        "bare": (REST, (FILTER, TRANSLATION, NETWORK)),
    }
    costs = {"bridge": WHOLE, **{f"bridge-{name}": cost for name, (cost, _) in arms.items()}}
    explains = {f"bridge-{name}": Explains(environment="bridge", off=off) for name, (_, off) in arms.items()}
    return {
        "costs": costs, "explains": explains, "mechanisms": MECHANISMS, "blocks": 20,
        "workloads": [Workload("redis", [(REQUESTS, 1000, 0.004)])],
        "facts": {"bridge/server": {"seccomp": "filter"}, "bridge-without-filter/server": {"seccomp": "off"}},
        **changes,
    }  # fmt: skip


MORE = 1.06
"""By what the filter and the translation take more together than each by itself."""


def crossed(**changes: object) -> dict[str, object]:
    """The same bridge with its mechanisms in every combination; the filter costs more beside the translation."""
    mechanisms = tuple(each.model_copy(update={"crossed": True}) for each in MECHANISMS)
    costs, explains = {}, {}
    for off in ((), (FILTER,), (TRANSLATION,), (FILTER, TRANSLATION), (TRANSLATION, NETWORK), tuple(TRUE)):
        on = [kind for kind in TRUE if kind not in off]
        name = f"bridge-without-{'-'.join(off)}" if off else "bridge"
        costs[name] = REST * math.prod(TRUE[kind] for kind in on) * (MORE if {FILTER, TRANSLATION} <= {*on} else 1)
        if off:
            explains[name] = Explains(environment="bridge", off=off)
    return recipe(costs=costs, explains=explains, mechanisms=mechanisms, **changes)


def with_placebo(cost: float = 1.0, **changes: object) -> dict[str, object]:
    """The first bridge with a placebo that costs so much, although it switches nothing."""
    made = recipe(**changes)
    made["costs"] = {**made["costs"], "bridge-placebo": WHOLE / cost}
    made["explains"] = {**made["explains"], "bridge-placebo": Explains(environment="bridge", off=(PLACEBO,))}
    return made
