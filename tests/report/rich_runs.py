"""A run that has something in every part of a report, hypervisors too."""

from weighbridge.model.facts import layers_json
from weighbridge.model.flag import Flag, FlagCode
from weighbridge.model.isolation import SCOPE, Layer, SiteLayers
from weighbridge.model.measurement import Outcome

from .made_up_runs import LATENCY, REQUESTS, TCP, Recipe, Workload

TCG, KVM, XEN = Layer("QEMU, TCG", emulated=True), Layer("QEMU, KVM"), Layer("Xen PVH")
NESTED = SiteLayers("lab", (TCG,), (XEN,))
ON_GUEST = SiteLayers("lab", (TCG,))
WITHIN = {"zxen": "(Xen PVH inside QEMU, TCG: emulated)", "zkvm": "(QEMU, KVM)", "zqemu": "(QEMU, TCG: emulated)"}
FACTS = {
    SCOPE: {
        "zxen/server": layers_json(NESTED),
        "zkvm/server": layers_json(SiteLayers("here", (), (KVM,))),
        "zqemu/server": layers_json(SiteLayers("here", (), (TCG,))),
    },
    "durability": {"native/tcp": "synchronous", "zxen/tcp": "none"},
    "packet sizes": {"native/tcp": "1468 B", "zkvm/tcp": "1418 B"},
    "zqemu/server": {"not honoured: cpus": "no quota"},
}
WEB = [Workload("web", [(REQUESTS, 2e4, 0.01), (LATENCY, 0.4, 0.02)], (("connections", n),)) for n in "123"]
RICH = Recipe(
    costs={"zxen": 1.4, "zkvm": 1.0, "zqemu": 3.0, "bridge": 1.2},
    workloads=[TCP, *WEB],
    loads={"web": "connections"},
    ladder=[["zkvm", None], ["zqemu", "zkvm"], ["zxen", "zqemu"]],
    failing={(2, "zkvm"): Outcome.DEADLINE},
    breaking={(3, "zqemu", (("connections", "3"),)): "too many connections"},
    histograms={"service_latency": 0.001},
    flags={(1, "zxen"): (Flag(FlagCode.STEAL, figures={"share": 0.2}),)},
    slowed={(5, "zxen"): 9.0},
    series=True,
    outputs=True,
    facts=FACTS,
)
