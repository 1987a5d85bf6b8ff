"""Weighbridge measures how much slower a program runs in a container, a sandbox or a virtual machine.

The names in ``__all__`` are the public Python API (docs/reference/python.md). Each is imported at its first use,
because every command imports this module.
"""

TYPE_CHECKING = False  # the module typing would double the time of this import
if TYPE_CHECKING:
    from weighbridge.api.chart import CostChart
    from weighbridge.api.comparing import compare
    from weighbridge.api.rows import (
        ComparedCost,
        EnvironmentCost,
        MeterSample,
        PairedValues,
        RecordedFact,
        Rows,
        TrialValue,
    )
    from weighbridge.api.run import Run, load
    from weighbridge.api.weighing import weigh
    from weighbridge.errors import WeighbridgeError

    __version__: str

__all__ = [
    "ComparedCost",
    "CostChart",
    "EnvironmentCost",
    "MeterSample",
    "PairedValues",
    "RecordedFact",
    "Rows",
    "Run",
    "TrialValue",
    "WeighbridgeError",
    "__version__",
    "compare",
    "load",
    "weigh",
]

_MODULES = {
    "CostChart": "api.chart",
    "Run": "api.run",
    "WeighbridgeError": "errors",
    "compare": "api.comparing",
    "load": "api.run",
    "weigh": "api.weighing",
}
"""The modules of the public names; the others are in ``api.rows``."""

if not TYPE_CHECKING:  # a type checker would take any name for an attribute

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module 'weighbridge' has no attribute {name!r}")
        if name == "__version__":
            from importlib import metadata

            return metadata.version("weighbridge")
        from importlib import import_module

        value = globals()[name] = getattr(import_module(f"weighbridge.{_MODULES.get(name, 'api.rows')}"), name)
        return value

    def __dir__() -> list[str]:
        return [*__all__]
