"""The JSON Schema of study files, generated from the models, for editors."""

from typing import Any

from pydantic import BaseModel, TypeAdapter

from weighbridge import registry
from weighbridge.model.adapter import AdapterOptions
from weighbridge.model.host import SPEEDS
from weighbridge.model.host_kind import HostOptions
from weighbridge.model.plugin import Plugin
from weighbridge.model.quantity import Size
from weighbridge.model.storage import StorageOptions
from weighbridge.model.study import Repetitions, Resources, StudyFile
from weighbridge.model.supporting_service import OF_THE_SERVICE
from weighbridge.model.sysctl import SYSCTL_PATTERN, SysctlValue
from weighbridge.model.userland_source import SourceOptions
from weighbridge.study.of_workloads import MOST_SITES
from weighbridge.study.sweeps import holds_factors


def json_schema() -> dict[str, Any]:
    """Return the schema of a study file with every known kind. Each option also accepts a list that sweeps it."""
    schema = StudyFile.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    definitions = schema.setdefault("$defs", {})
    hosts = {kind: _definition(plugin.options, definitions) for kind, plugin in registry.hosts().items()}
    mapping = {kind: reference["$ref"] for kind, reference in hosts.items()}
    one = {"discriminator": {"mapping": mapping, "propertyName": "kind"}, "oneOf": list(hosts.values())}
    names = schema["properties"]["hosts"]["patternProperties"]
    schema["properties"]["hosts"]["patternProperties"] = dict.fromkeys(names, one)
    definitions.pop(HostOptions.__name__)  # the base class of all kinds
    storages = {kind: _definition(plugin.options, definitions) for kind, plugin in registry.storage().items()}
    for kind, plugin in registry.storage().items():
        definitions[plugin.options.__name__]["properties"]["kind"] = {
            "enum": [kind, *plugin.aliases],
            "default": kind,
        }
    aliases = [alias for plugin in registry.storage().values() for alias in plugin.aliases]
    for section, plugins in (("environments", registry.environments()), ("workloads", registry.workloads())):
        own = _OWN[section]
        kinds = [_entry(kind, plugin, definitions, own) for kind, plugin in plugins.items()]
        entries = schema["properties"][section]
        entries["patternProperties"] = {key: {"oneOf": kinds} for key in entries["patternProperties"]}
        entries["additionalProperties"] = False  # names that do not match the pattern
        command = next((each for each in kinds if each["title"] == "command"), None)
        if section == "workloads" and command is not None:
            _as_load(definitions["ComposeOptions"]["properties"]["load"], command)
    definitions[StorageOptions.__name__] = {"anyOf": [{"enum": [*storages, *aliases]}, *storages.values()]}
    adapters = {kind: _definition(plugin.options, definitions) for kind, plugin in registry.adapters().items()}
    definitions[AdapterOptions.__name__] = {"anyOf": [{"enum": [*adapters]}, *adapters.values()]}
    sources = {kind: _definition(plugin.options, definitions) for kind, plugin in registry.userlands().items()}
    definitions[SourceOptions.__name__] = {"anyOf": [{"enum": [*sources]}, *sources.values()]}
    rounds = definitions[Repetitions.__name__]["properties"]
    rounds["blocks"] = rounds["rounds"] | {"description": "The old name of rounds", "deprecated": True}
    # a study names its workloads, or has one made of a Compose file's service
    schema["required"] = [key for key in schema["required"] if key != "workloads"]
    schema["anyOf"] = [{"required": ["workloads"]}, {"required": ["compose"]}]
    return schema


_NUMBER = {"type": "integer", "minimum": 1, "maximum": MOST_SITES}
_SPEED = {"enum": [*SPEEDS, None]}
_OWN: dict[str, dict[str, Any]] = {
    "environments": {
        "workloads": {
            "type": "object",
            "description": "Workload options for this environment only, by workload",
            "additionalProperties": {"type": "object"},
        },
        "userland": {
            "anyOf": [{"$ref": f"#/$defs/{SourceOptions.__name__}"}, {"type": "null"}],
            "default": None,
            "description": "Root filesystem with the programs of this environment, if it needs another one",
        },
        "clients": {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "description": "The client hosts to measure it from, if placement names several",
        },
        "optional": {
            "type": "boolean",
            "default": False,
            "description": "Skip it if it cannot be opened, instead of refusing the run",
        },
        "resources": {
            "anyOf": [{"$ref": f"#/$defs/{Resources.__name__}"}, {"type": "null"}],
            "default": None,
            "description": "Limits of this environment, overriding the study's; null lifts one",
        },
        "shm_size": {
            "anyOf": [TypeAdapter[int](Size).json_schema(), {"type": "null"}],
            "default": None,
            "description": "Size of /dev/shm in this environment",
        },
        "sysctls": {
            "type": "object",
            "description": "Kernel settings of this environment alone",
            "minProperties": 1,
            "patternProperties": {SYSCTL_PATTERN: TypeAdapter[str](SysctlValue).json_schema()},
            "additionalProperties": False,
        },
    },
    "workloads": {
        "link": {"const": "none", "description": "Lifts the rate limit of testbed cables while it is measured"},
        "disk_speed": {
            "anyOf": [_SPEED, {"type": "array", "items": _SPEED, "minItems": 1}],
            "default": None,
            "description": "Speed of its data disks, on guest hosts; a list sweeps it",
        },
        "sites": {
            "anyOf": [_NUMBER, {"type": "array", "items": _NUMBER, "minItems": 1}],
            "default": 1,
            "description": "How many sites of each environment run it at a time; a list sweeps it",
        },
    },
}
"""The keys of an entry in addition to the options of its plug-in."""


def _definition(model: type[BaseModel], definitions: dict[str, Any]) -> dict[str, str]:
    """Add a model to the definitions, and return a reference to it."""
    own = model.model_json_schema(ref_template="#/$defs/{model}")
    definitions.update(own.pop("$defs", {}))
    if definitions.setdefault(model.__name__, own) != own:
        raise TypeError(f"two options are called {model.__name__}")
    return {"$ref": f"#/$defs/{model.__name__}"}


def _entry(kind: str, plugin: Plugin, definitions: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    model = plugin.options.model_json_schema(ref_template="#/$defs/{model}")
    definitions.update(model.pop("$defs", {}))
    properties = {
        name: _swept_inside(option) if holds_factors(plugin.options, name) else _swept(option)
        for name, option in model.get("properties", {}).items()
    }
    common = {key: schema for key, schema in own.items() if key not in properties}  # ``boot`` has its own ``sites``
    return {
        "type": "object",
        "title": kind,
        "description": plugin.summary,
        "properties": {"kind": {"const": kind}, **properties, **common},
        "required": ["kind", *model.get("required", [])],
        "additionalProperties": False,
    }


def _as_load(load: dict[str, Any], command: dict[str, Any]) -> None:
    """Describe the load of a Compose service: a command line, or options of a command without its server."""
    mapping = next(each for each in load["anyOf"] if each["type"] == "object")
    properties = {key: option for key, option in command["properties"].items() if key not in OF_THE_SERVICE}
    mapping |= {"properties": properties, "required": ["client"], "additionalProperties": False}


def _swept(option: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [option, {"type": "array", "items": option, "minItems": 1}]}


def _swept_inside(option: dict[str, Any]) -> dict[str, Any]:
    named = {pattern: _swept(each) for pattern, each in option["patternProperties"].items()}
    return {**option, "patternProperties": named, "additionalProperties": False}
