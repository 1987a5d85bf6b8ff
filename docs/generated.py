"""Write the generated parts of the documentation: python docs/generated.py.

A page marks such a part with the line ``<!-- generated: NAME ARGUMENTS -->`` before it and ``<!-- end -->`` after it.
This script replaces everything between the two with the text that the program, its plug-ins, its docstrings and the
kept runs give now. `tests/test_docs.py` fails if a page is not current.
"""

import ast
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
LLMS = DOCS.parent / "llms.txt"
sys.path[:0] = [str(DOCS), str(DOCS.parent / "src")]

from weighbridge import errors, registry  # noqa: E402
from weighbridge.cli.commands.studies import SchemaDocument  # noqa: E402
from weighbridge.cli.schema import schema_of  # noqa: E402
from weighbridge.environments.wrapper.preset import Preset, PresetNetwork, PresetSwitch, preset  # noqa: E402
from weighbridge.environments.wrapper.preset import names as preset_names  # noqa: E402
from weighbridge.features.fleets.machine_provider import MachineProvider  # noqa: E402
from weighbridge.features.fleets.providers import providers as machine_providers  # noqa: E402
from weighbridge.model.adapter import Adapter  # noqa: E402
from weighbridge.model.environment import Environment  # noqa: E402
from weighbridge.model.host_kind import HostKind  # noqa: E402
from weighbridge.model.measurement import EVENT_COUNTERS  # noqa: E402
from weighbridge.model.mechanism import Mechanism  # noqa: E402
from weighbridge.model.plugin import Plugin  # noqa: E402
from weighbridge.model.storage import Storage  # noqa: E402
from weighbridge.model.userland_source import UserlandSource  # noqa: E402
from weighbridge.model.workload import Workload  # noqa: E402
from weighbridge.study.loader import check  # noqa: E402
from weighbridge.study.source import bundled, parse  # noqa: E402

PART = re.compile(r"^(<!-- generated: ([a-z-]+)((?: [\w./%-]+)*) -->)$.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)
"""A generated part of a page with its two marks: groups are the first mark, the part's name and its arguments."""
_QUANTITIES = {
    "us|ms|s|min|h": ("a time", "s"),
    "B|kB": ("a size", "B"),
    "bit/s": ("a rate", "bit/s"),
    "%": ("a share", "%"),
}
"""The kind of an option in words, by the units of its pattern, and the base unit of its default."""
_STEPS = {
    "B": ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")),
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")),
}
_LOWER_CASE = {
    "bonnie++", "bubblewrap", "go", "hyperfine", "iperf", "nginx", "oha", "pytest-benchmark", "vegeta", "wrk", "xz",
}  # fmt: skip
"""Names of programs that begin with a small letter, also at the beginning of a sentence."""
_SECTIONS = {
    "workloads": registry.workloads, "environments": registry.environments, "hosts": registry.hosts,
    "storage": registry.storage, "userlands": registry.userlands, "adapters": registry.adapters,
}  # fmt: skip

Schema = Mapping[str, Any]


def filled(page: str) -> str:
    """Return the text of a page with its generated parts as they are now. Raises KeyError if a name is unknown."""

    def current(part: re.Match[str]) -> str:
        text = PARTS[part[2]](*part[3].split())
        return f"{part[1]}\n\n{text.strip()}\n\n<!-- end -->"

    return PART.sub(current, page)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; a bar in a cell is escaped."""
    lines = [[*head], ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(' '.join(cell.split()) for cell in row)} |" for row in lines) + "\n"


def code(text: object) -> str:
    """Return text as a code span."""
    return f"`{text}`"


def sentence(words: str) -> str:
    """Return words with a full stop, and a capital letter unless they begin with the name of a program."""
    is_name = words.split(maxsplit=1)[0].rstrip(":") in _LOWER_CASE
    return f"{words[:1] if is_name else words[:1].upper()}{words[1:].rstrip('.')}."


def figure(number: float, sign: str = "") -> str:
    """Return a number with three significant digits and a comma between thousands."""
    return f"{float(f'{number:.3g}'):{sign},.10g}"


def prose(docstring: str | None) -> str:
    """Return a docstring as Markdown."""
    return inspect.cleandoc(docstring or "").replace("``", "`")


def commands() -> str:
    """Return every command with its arguments and options, as ``--help`` shows them."""
    import typer.main

    from weighbridge.cli.app import app

    group: Any = typer.main.get_command(app)
    return "\n\n".join(_command(name, command) for name, command in group.commands.items() if not command.hidden)


def _command(name: str, command: Any, heading: str = "##") -> str:
    """Return the section of a command and of the commands in its group."""
    from weighbridge.cli.help import examples_of, panels_of

    inner = {each: inside for each, inside in getattr(command, "commands", {}).items() if not inside.hidden}
    usage = " ".join(["weighbridge", name, *command.collect_usage_pieces(None)])
    part = [f"{heading} {name}", prose(command.help)]
    part += [] if inner else [f"```text\n{usage}\n```"]
    rows = [
        (
            code(entry.usage),
            prose(
                f"With {panel.partition(':')[0]}: {entry.description}"
                if panel.startswith("--on ")
                else entry.description
            ),
        )
        for panel, entries in panels_of(command).items()
        for entry in entries
    ]
    part += [table(("option", "description"), rows)] if rows and not inner else []
    lines = [each.line for each in examples_of(command)]
    part += ["```sh\n" + "\n".join(lines) + "\n```"] if lines else []
    part += [_command(f"{name} {each}", inside, f"{heading}#") for each, inside in inner.items()]
    return "\n\n".join(part)


def exit_code_meanings() -> list[tuple[int, str, str]]:
    """Return every exit code with the kind of the failure and its meaning: from the classes, and of the shell."""
    from weighbridge.cli.messages import WRONG_COMMAND_LINE

    rows = [
        (kind.exit_code, kind.kind, prose(kind.__doc__).splitlines()[0])
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, errors.WeighbridgeError)
    ]
    rows += [
        (0, "", "Done."),
        (1, "not-started", "The user answered no to a question."),
        (WRONG_COMMAND_LINE, "command-line", "The command line is wrong, or incomplete."),
        (129, "interrupted", "SIGHUP; every finished trial is kept."),
        (130, "interrupted", "Ctrl-C; every finished trial is kept."),
        (141, "", "The reader of the output is gone; finished trials are kept."),
        (143, "interrupted", "SIGTERM; every finished trial is kept."),
    ]
    return sorted(rows, key=lambda row: row[0])


def exit_codes() -> str:
    """Return a table of every exit code."""
    rows = [(str(number), kind and code(kind), meaning) for number, kind, meaning in exit_code_meanings()]
    return table(("code", "kind", "meaning"), rows)


def json_commands() -> str:
    """Return a table of every command with the documents that it prints with ``--json``."""
    import typer.main

    from weighbridge.cli.app import app

    rows = [("`--version`", "`version`")]
    for words, command in sorted(_runnable(typer.main.get_command(app))):
        shown = ", ".join(map(code, command.documents))
        rows.append((code(" ".join(words)), shown or "a JSON Schema"))
    return table(("command", "documents"), rows)


def _runnable(command: Any, *words: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command that is shown, with its words."""
    if (inner := getattr(command, "commands", None)) is None:
        yield words, command
        return
    for name, each in inner.items():
        if not each.hidden:
            yield from _runnable(each, *words, name)


def llms_txt() -> str:
    """Return ``llms.txt``: the contents of the documentation for language models, as llmstxt.org describes it."""
    index = (DOCS / "index.md").read_text()
    title, summary = re.findall(r"^# (.*)\n\n\*\*(.*?)\*\*\n", index, re.MULTILINE | re.DOTALL)[0]
    about = re.findall(r"\*\*\n\n(.*?)\n\n```sh", index, re.DOTALL)[0]
    lines = [f"# {title}", "", f"> {' '.join(summary.split())}", "", " ".join(about.split()), ""]
    lines += ["- [Skill for coding agents](skills/weighbridge/SKILL.md): measure a change, and read the answer"]
    for heading, block in re.findall(r"^## (.*?)\n\n```\{toctree\}\n(.*?)```", index, re.MULTILINE | re.DOTALL):
        lines += ["", f"## {heading}", ""]
        lines += [f"- [{_title(name)}](docs/{name}.md)" for name in re.findall(r"^[\w/-]+$", block, re.MULTILINE)]
    return "\n".join(lines) + "\n"


def _title(page: str) -> str:
    return re.findall(r"^# (.*)", (DOCS / f"{page}.md").read_text(), re.MULTILINE)[0].replace("`", "")


@cache
def study_schema() -> Schema:
    """Return the JSON Schema of study files."""
    return schema_of(SchemaDocument.STUDY)


def study_keys(part: str = "") -> str:
    """Return the keys of a study, or of a part of it by the name of its definition (``Resources``)."""
    schema = study_schema()["$defs"][part] if part else study_schema()
    return _keys(schema)


def _keys(schema: Schema, *, without: Sequence[str] = ("kind",)) -> str:
    required = schema.get("required", ())
    rows = [
        (code(name), values(option), _default(option, name in required), description(option))
        for name, option in schema.get("properties", {}).items()
        if name not in without and not option.get("deprecated")
    ]
    return table(("key", "values", "default", "description"), rows) if rows else "No options.\n"


def kinds(section: str) -> str:
    """Return every kind of a section of a study with its options: ``workloads``, ``environments``, ``hosts``, ..."""
    parts = []
    for kind, plugin in _SECTIONS[section]().items():
        schema = _schema_of(section, kind, plugin)
        own = {
            "workloads",
            "userland",
            "clients",
            "optional",
            "resources",
            "shm_size",
            "sysctls",
            "link",
            "disk_speed",
            "sites",
        }
        shared = () if section not in ("workloads", "environments") else own - {*plugin.options.model_fields}
        body = _keys(schema, without=("kind", *shared))
        parts.append(f"### {code(kind)}\n\n{sentence(plugin.summary)}\n\n{body}")
    return "\n\n".join(parts)


def shared_keys(section: str) -> str:
    """Return the keys that every entry of a section can have in addition to the options of its kind."""
    kind, plugin = next(iter(_SECTIONS[section]().items()))
    schema = _schema_of(section, kind, plugin)
    return _keys(schema, without=("kind", *plugin.options.model_fields))


def providers() -> str:
    """Return the options of ``weighbridge fleet`` for each provider of machines."""
    from weighbridge.features.fleets.provider_options import SET_BY_ON

    parts = []
    for kind, provider in machine_providers().items():
        schema = provider.options.model_json_schema()
        rows = [
            (code(f"--{name.replace('_', '-')}"), description(option))
            for name, option in schema["properties"].items()
            if name not in SET_BY_ON
        ]
        parts += [
            f"`--on {provider.word or kind}`: {sentence(provider.summary)}\n",
            table(("option", "description"), rows),
        ]
    return "\n".join(parts)


def mechanisms() -> str:
    """Return a table of the mechanisms that can be switched off, with the sources of the findings."""
    rows = [(each.title, each.switched, each.remedy, each.source) for each in registry.mechanisms().values()]
    return table(("mechanism", "switched", "to change it", "source"), rows)


def event_counters() -> str:
    """Return a table of the metrics of the kernel's counters: names, unit and description."""
    rows = []
    for each in EVENT_COUNTERS:
        names, units = [f"{each.name}_per_gbit"], ["1/Gbit"]
        if each.per_trial:
            names, units = [*names, each.name], [*units, "count"]
        about = f"{each.description}; left out if always 0" if each.rare else each.description
        rows.append((", ".join(map(code, names)), ", ".join(units), about))
    return table(("metric", "unit", "description"), rows)


def summaries(section: str) -> str:
    """Return the kinds of a section, a row each."""
    rows = [(f"[{code(kind)}](#{kind})", plugin.summary) for kind, plugin in _SECTIONS[section]().items()]
    return table(("kind", "description"), rows)


def presets() -> str:
    """Return the presets of wrappers: their means, their switches, and their differences from the policy."""
    rows = []
    for name in preset_names():
        one = preset(name)
        lacks = "; ".join(f"{part}: {instead}" for part, instead in one.lacks.items())
        rows.append((code(name), one.summary, ", ".join(map(code, one.switches)), lacks))
    return table(("preset", "confines with", "can leave out", "differs from the policy"), rows)


def preset_keys(model: str) -> str:
    """Return the keys of a preset's file, or of one of its parts."""
    models = {each.__name__: each for each in (Preset, PresetNetwork, PresetSwitch)}
    return _keys(models[model].model_json_schema(), without=())


def _schema_of(section: str, kind: str, plugin: Plugin) -> Schema:
    if section in ("workloads", "environments"):
        (entries,) = study_schema()["properties"][section]["patternProperties"].values()
        return next(each for each in entries["oneOf"] if each["title"] == kind)
    return study_schema()["$defs"][plugin.options.__name__]


def description(option: Schema) -> str:
    """Return the description of an option from the outermost schema that has one besides a quantity's own words."""
    for schema in _layers(option):
        text = schema.get("description", "")
        if text and text not in {words for words, _ in _QUANTITIES.values()}:
            return prose(text).splitlines()[0]
    return ""


def _layers(option: Schema) -> Iterator[Schema]:
    """Yield a schema and the alternatives inside of it, definitions resolved, without the lists that sweep it."""
    yield option
    if "$ref" in option:
        yield from _layers(study_schema()["$defs"].get(option["$ref"].rpartition("/")[2], {}))
    for inner in option.get("anyOf", ())[: 1 if _is_swept(option) else None]:
        yield from _layers(inner)


def _is_swept(option: Schema) -> bool:
    """Return whether the second alternative is a list of the first: a study can sweep the option."""
    inner = option.get("anyOf", ())
    return len(inner) == 2 and inner[1].get("type") == "array" and inner[1].get("items") == inner[0]


def values(option: Schema) -> str:
    """Return the values that an option can have, in words."""
    if _is_swept(option):
        return values(option["anyOf"][0])
    if "anyOf" in option:
        return ", ".join(dict.fromkeys(filter(None, map(values, option["anyOf"]))))
    if "$ref" in option:
        inner = study_schema()["$defs"].get(option["$ref"].rpartition("/")[2], {})
        return "a mapping" if inner.get("type") == "object" else values(inner)
    if "pattern" in option:
        known = next((words for units, (words, _) in _QUANTITIES.items() if f"({units}" in option["pattern"]), "text")
        return known + (f", {code('mtu')}" if "mtu" in option.get("examples", ()) else "")
    chosen = option.get("enum", [option["const"]] if "const" in option else [])
    named = ", ".join(code("null" if each is None else each) for each in chosen)
    return named or ("a mapping" if "oneOf" in option else _plain_values(option))


def _plain_values(option: Schema) -> str:
    kind = option.get("type", "")
    if isinstance(kind, list):
        return " or ".join(_plain_values({"type": each}) for each in kind)
    if kind in ("integer", "number"):
        low = option.get("minimum", option.get("exclusiveMinimum"))
        high = option.get("maximum", option.get("exclusiveMaximum"))
        bounds = f", {low} to {high}" if None not in (low, high) else f", at least {low}" if low is not None else ""
        return {"integer": "a whole number", "number": "a number"}[kind] + bounds
    if kind == "array":
        return f"a list: {inner}" if (inner := values(option.get("items", {}))) else "a list"
    names = {"boolean": "`true`, `false`", "string": "text", "object": "a mapping", "null": ""}
    return names.get(kind, "")


def _default(option: Schema, required: bool) -> str:
    if required:
        return "required"
    for schema in _layers(option):
        if "default" in schema:
            value = schema["default"]
            break
    else:
        return ""
    if value is None or value in ([], {}):
        return "none"
    unit = next(
        (
            unit
            for each in _layers(option)
            for units, (_, unit) in _QUANTITIES.items()
            if f"({units}" in each.get("pattern", "")
        ),
        "",
    )
    return code(_written(value, unit))


def _written(value: Any, unit: str) -> str:
    """Return a default as a study file would have it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return (
            "{" + ", ".join(f"{name}: {_written(each, '')}" for name, each in value.items() if each is not None) + "}"
        )
    if isinstance(value, int | float) and unit:
        if unit == "%":
            return f"{value * 100:g}%"
        if unit == "s" and value < 1:
            return f"{value * 1000:g}ms"
        size, name = next(
            (step for step in _STEPS.get(unit, ()) if value >= step[0] and value % step[0] == 0), (1, unit)
        )
        return f"{value / size:g}{name}"
    return str(value)


def json_document(document: str) -> str:
    """Return the keys of a command's ``--json`` document, object by object."""
    schema = schema_of(SchemaDocument(document))
    own_object = {schema["title"]: schema} if "title" in schema else {}  # a union of objects has none
    objects = {**own_object, **schema.get("$defs", {})}
    keys = {name: each["properties"] for name, each in objects.items() if "properties" in each}
    parts = []
    for name, own in keys.items():
        bases = [base for base, inherited in keys.items() if len(inherited) > 9 and inherited.items() < own.items()]
        base = max(bases, key=lambda each: len(keys[each]), default="")
        rows = [
            (code(key), _type_of(option), " ".join(prose(option.get("description")).split()))
            for key, option in own.items()
            if key not in keys.get(base, {})
        ]
        if not any(meaning for *_, meaning in rows):
            rows = [row[:2] for row in rows]
        about = prose(objects[name].get("description")).splitlines()[:1]
        more = [f"It has the keys of {base}, and:"] if base else []
        heads = ("key", "type", "meaning")[: len(rows[0])]
        parts.append("\n\n".join([f"**{name}**: {about[0] if about else ''}", *more, table(heads, rows)]))
    return "\n\n".join(parts)


def _type_of(option: Schema) -> str:
    """Return the type of a key of a document, in words."""
    if "$ref" in option:
        return str(option["$ref"].rpartition("/")[2])
    if "anyOf" in option:
        return " or ".join(map(_type_of, option["anyOf"]))
    chosen = option.get("enum", [option["const"]] if "const" in option else [])
    if chosen:
        return ", ".join(map(code, chosen)) if len(chosen) <= 8 else "a code"
    kind = str(option.get("type", "any"))
    if kind == "array":
        inner = option.get("prefixItems") or [option.get("items", {})]
        return f"a list of {', '.join(map(_type_of, inner))}"
    inner_type = option.get("additionalProperties")
    return f"a mapping to {_type_of(inner_type)}" if kind == "object" and isinstance(inner_type, Mapping) else kind


def remark_codes() -> str:
    """Return every code of a remark, with its meaning and the fields of such a remark."""
    from weighbridge.analysis.remarks import kinds
    from weighbridge.report.text.remarks import CODES

    ways: dict[str, set[str]] = {each: set() for each in CODES}
    for kind in kinds():
        if not kind.__subclasses__() and getattr(kind, "code", None) in ways:
            ways[kind.code].add(", ".join(code(each.name) for each in fields(kind)))
    rows = [(code(each), meaning, "; or ".join(sorted(filter(None, ways[each])))) for each, meaning in CODES.items()]
    return table(("code", "meaning", "its fields"), rows)


def openmetrics() -> str:
    """Return every metric of ``report --openmetrics``, with its labels."""
    from weighbridge.report.export.openmetrics import FAMILIES, PREFIX

    rows = [(code(f"{PREFIX}{each.name}"), ", ".join(map(code, each.labels)), each.description) for each in FAMILIES]
    return table(("metric", "labels", "description"), rows)


def prometheus() -> str:
    """Return every metric of ``run --metrics``, with its labels."""
    import weighbridge.features.monitoring.families as module

    labels = {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, tuple) and all(isinstance(each, str) for each in value)
    }
    rows = []
    for call in ast.walk(ast.parse(inspect.getsource(module))):
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
            continue
        if call.func.id not in ("_gauge", "CounterMetricFamily") or len(call.args) < 2:
            continue
        name = eval(compile(ast.Expression(call.args[0]), "<name>", "eval"), dict(vars(module)))  # noqa: S307
        if not isinstance(call.args[1], ast.Constant):
            continue
        given = [*call.args[2:3], *(each.value for each in call.keywords if each.arg == "labels")]
        names = eval(compile(ast.Expression(given[0]), "<labels>", "eval"), dict(labels)) if given else ()  # noqa: S307
        counted = call.func.id == "CounterMetricFamily"
        full = f"{name}_total" if counted else f"{module.PREFIX}{name}"
        rows.append((code(full), ", ".join(map(code, names)), str(call.args[1].value)))
    return table(("metric", "labels", "description"), rows)


def protocol(kind: str) -> str:
    """Return the attributes and methods of a kind of plug-in, from the docstrings of its protocol."""
    base = _PROTOCOLS[kind]
    required, optional = [], []
    for method in _methods(base):
        (required if getattr(getattr(base, method.name), "__isabstractmethod__", False) else optional).append(method)
    parts = [f"## Attributes\n\n{_table_of_fields(base)}"]
    parts += ["## Methods that you must write", *map(_method, required)] if required else []
    parts += ["## Methods with a default", *map(_method, optional)] if optional else []
    return "\n\n".join(parts)


def members(name: str) -> str:
    """Return the docstring, fields and methods of a class, named as ``MODULE/CLASS``.

    The module is one of the model, or a dotted name below ``weighbridge``.
    """
    module, _, cls = name.partition("/")
    base = getattr(importlib.import_module(f"weighbridge.{module if '.' in module else f'model.{module}'}"), cls)
    parts = [prose(inspect.getdoc(base)), _table_of_fields(base), *map(_method, _methods(base))]
    return "\n\n".join(filter(None, parts))


def table_entry(kind: str) -> str:
    """Return the entry of a mechanism in the table of mechanisms, with its comment."""
    text = (DOCS.parent / "src/weighbridge/features/explain/mechanisms/table.py").read_text()
    (found,) = re.findall(
        rf'^(?: +#.*\n)+ +DeclaredMechanism\(\n +kind="{kind}",\n(?: {{8}}.*\n)+ +\),\n', text, re.MULTILINE
    )
    return f"```python\n{inspect.cleandoc(found).removesuffix(',')}\n```"


def function(name: str) -> str:
    """Return the signature and docstring of a function of the model, named as ``MODULE/FUNCTION``."""
    module, _, function_name = name.partition("/")
    return _method(_function(getattr(importlib.import_module(f"weighbridge.model.{module}"), function_name)))


def _parsed(definition: object) -> list[ast.stmt]:
    return ast.parse(inspect.cleandoc("\n" + inspect.getsource(definition))).body


def _body(base: type) -> list[ast.stmt]:
    (definition,) = _parsed(base)
    assert isinstance(definition, ast.ClassDef)
    return definition.body


def _table_of_fields(base: type) -> str:
    body = _body(base)
    rows = []
    for field, after in zip(body, [*body[1:], None], strict=True):
        if not isinstance(field, ast.AnnAssign) or ast.unparse(field.target).startswith(("_", "model_config")):
            continue
        text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else ""
        kind = re.sub(r"^ClassVar\[(.*)\]$", r"\1", ast.unparse(field.annotation))
        if kind.startswith("Annotated["):  # an option: its description is in the reference of studies
            continue
        default = code(_plain(field.value)) if field.value is not None else "required"
        rows.append((code(ast.unparse(field.target)), code(kind), default, prose(str(text))))
    return table(("name", "type", "default", "description"), rows) if rows else ""


def python_api() -> str:
    """Return the functions and classes of the public Python API."""
    import weighbridge

    public = [getattr(weighbridge, name) for name in weighbridge.__all__ if name != "__version__"]
    parts = [_method(_function(each)) for each in public if inspect.isfunction(each)]
    for each in public:
        if isinstance(each, type) and not issubclass(each, Exception):
            parts += [f"### {each.__name__}", prose(inspect.getdoc(each)), _fields_in_words(each)]
            parts += [_method(method, "####") for method in _methods(each)]
    return "\n\n".join(_with_examples(part) for part in parts if part)


def pytest_fixture() -> str:
    """Return the parameters of the fixture of pytest."""
    from weighbridge.api.pytest_plugin import weigh_within

    method = _function(weigh_within)
    method.name = "weigh"
    return _method(method)


def run_tables() -> str:
    """Return the tables of ``run.sqlite`` with their columns."""
    from weighbridge.store.format import MEANINGS
    from weighbridge.store.schema import columns_by_table

    parts = []
    for name, (row, meanings, stable) in MEANINGS.items():
        types = columns_by_table()[name]
        rows = [(code(column), types[column], meaning) for column, meaning in meanings.items()]
        note = "" if stable else " This table is not stable."
        parts.append(f"### {name}\n\nOne row: {row}{note}\n\n{table(('column', 'type', 'meaning'), rows)}")
    return "\n\n".join(parts)


def run_keys() -> str:
    """Return the stable keys of the table ``run``."""
    from weighbridge.store.format import STABLE_KEYS

    return table(("key", "value"), [(code(key), meaning) for key, meaning in STABLE_KEYS.items()])


def schema_version() -> str:
    """Return the version of the schema of ``run.sqlite``."""
    from weighbridge.store.schema import VERSION

    return f"The newest version is {VERSION}."


def notebook(name: str) -> str:
    """Return a notebook with its outputs: it is executed for that."""
    from notebook_pages import page

    return page(name)


def _with_examples(text: str) -> str:
    """Return a text with its examples as blocks of code."""
    return re.sub(r"^>>> .*(?:\n(?!\n).+)*", lambda example: f"```pycon\n{example[0]}\n```", text, flags=re.MULTILINE)


def _function(function: object) -> ast.FunctionDef:
    (definition,) = _parsed(function)
    assert isinstance(definition, ast.FunctionDef)
    return definition


def _fields_in_words(base: type) -> str:
    """Return a table of the fields of a class, without defaults."""
    body = _body(base)
    rows = []
    for field, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(field, ast.AnnAssign) and not ast.unparse(field.target).startswith("_"):
            is_documented = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            text = str(after.value.value) if is_documented else ""
            rows.append((code(ast.unparse(field.target)), code(ast.unparse(field.annotation)), prose(text)))
    return table(("name", "type", "description"), rows) if rows else ""


def _methods(base: type) -> list[ast.FunctionDef]:
    return [each for each in _body(base) if isinstance(each, ast.FunctionDef) and not each.name.startswith("_")]


def _method(method: ast.FunctionDef, heading: str = "###") -> str:
    decorators = {ast.unparse(each) for each in method.decorator_list}
    arguments = method.args
    arguments.args = [each for each in arguments.args if each.arg not in ("self", "cls")]
    for each in [*arguments.args, *arguments.kwonlyargs]:
        if each.annotation is not None and ast.unparse(each.annotation) in ("Any", "Any | None"):
            each.annotation = None
    returned = f" -> {ast.unparse(method.returns)}" if method.returns and ast.unparse(method.returns) != "Any" else ""
    words = "" if decorators & {"property", "cached_property"} else f"({ast.unparse(arguments)})"
    last = method.body[-1]
    simple = len(method.body) == 2 and isinstance(last, ast.Return) and last.value is not None
    value = _plain(last.value) if simple and isinstance(last, ast.Return) else ""
    default = f"Default: {code(value)}." if value and "self." not in value else ""
    signature = f"```python\n{method.name}{words}{returned}\n```"
    return "\n\n".join(
        filter(None, [f"{heading} {method.name}", signature, prose(ast.get_docstring(method)), default])
    )


def _plain(value: ast.expr | None) -> str:
    """Return a default as an author would write it, without what dataclasses and pydantic need around it."""
    text = ast.unparse(value).replace("'", '"') if value is not None else ""
    factory = re.fullmatch(r"field\(.*?default(?:_factory)?=(.*?)(?:, \w+=.*)?\)", text)
    return {"dict": "{}", "list": "[]"}.get(factory[1], factory[1]) if factory else text


def studies() -> str:
    """Return every bundled study: question, environments, workloads, commands, and the costs of its kept run."""
    from weighbridge.features.replication.published import available

    parts = []
    for name, text in bundled().items():
        study = check(parse(text, name)).file
        workloads = ", ".join(f"{code(each)} ({code(options['kind'])})" for each, options in study.workloads.items())
        lines = [f"- Environments: {', '.join(map(code, study.environments))}", f"- Workloads: {workloads}"]
        lines += [f"- Profiles: {', '.join(map(code, study.profiles))}"] if study.profiles else []
        lines += [f"- Repeats: {published_source(name)}"] if name in available() else []
        command = f"weighbridge {'replicate' if name in available() else 'run'} {name}"
        commands = [command, *([f"{command} --profile quick"] if "quick" in study.profiles else [])]
        run = "```sh\n" + "\n".join(commands) + "\n```"
        parts.append("\n\n".join([f"## {name}", study.question, "\n".join(lines), run, found(name)]))
    return "\n\n".join(parts)


def found(study: str) -> str:
    """Return the costs in the primary metrics of the kept run of a study."""
    from kept_runs import about_examples, is_kept

    if not is_kept(study):
        return "The project keeps no run of this study."
    document, costs = _primary_costs(study)
    rows = [
        (
            f"{code(row['workload'])} {row['metric']}{_level(row['level'])}",
            code(row["environment"]),
            _cost(row),
            row["verdict"].replace("hidden", "hidden by a bottleneck"),
        )
        for row in costs
    ]
    heads = ("metric", "environment", f"cost against {code(document['baseline'])} [95% interval]", "verdict")
    shown = f" [Its report](examples.md#{study})." if study in about_examples() else ""
    date = (document["date"] or "")[:10]
    return f"Measured on {date}. A positive cost is worse than the baseline.{shown}\n\n{table(heads, rows)}"


def _primary_costs(run: str) -> tuple[Mapping[str, Any], list[Mapping[str, Any]]]:
    """Return the report of a kept run, and its costs in the primary metrics."""
    from kept_runs import run_directory

    from weighbridge.analysis.analyse import analyse
    from weighbridge.report.export.json import report_json
    from weighbridge.store.run import RunStore

    with run_directory(run) as directory, RunStore(directory) as store:
        document = report_json(store, analyse(store))
    rows = [row for row in document["costs"] if row["primary"] and not row["control"] and row["cost"] is not None]
    return document, rows


def costs_by_workload(run: str) -> str:
    """Return the primary costs of a kept run: a row for each environment, a column for each workload."""
    from weighbridge.report.text.formatting import quantity

    document, rows = _primary_costs(run)
    workloads = [*dict.fromkeys(row["workload"] for row in rows)]
    cells = {
        (row["environment"], row["workload"]): f"{quantity(row['value'], row['unit'])}: {_cost(row)}{_sure(row)}"
        for row in rows
    }
    native = {row["workload"]: quantity(row["baseline_value"], row["unit"]) for row in rows}
    lines = [[code(document["baseline"]), *(native[each] for each in workloads)]]
    for name in dict.fromkeys(row["environment"] for row in rows):
        lines.append([code(name), *(cells.get((name, each), "") for each in workloads)])
    return table(["environment", *map(code, workloads)], lines)


def _sure(row: Mapping[str, Any]) -> str:
    return {"equivalent": " (within the margin)", "significant": ""}.get(row["verdict"], f" ({row['verdict']})")


def _cost(row: Mapping[str, Any]) -> str:
    unit = "%" if row["cost_unit"] == "%" else f" {row['cost_unit']}"
    return f"{figure(row['cost'])}{unit} [{figure(row['cost_low'])}, {figure(row['cost_high'])}]"


def unverified() -> str:
    """Return the things that have never worked on real hardware in tests, according to the plug-ins."""
    known = {**registry.environments(), **registry.hosts()}
    lines = [f"- {code(kind)}: {what}." for kind, plugin in known.items() if (what := plugin.unverified())]
    for plugin in registry.environments().values():
        for name, options in plugin.variants().items():
            what = plugin.unverified(options)
            lines += [f"- {code(name)}: {what}."] if what and what != plugin.unverified() else []
    return "\n".join(lines or ["- None."])


NOT_KEPT = "The project does not keep this run yet."


def screen(run: str, directory: str = "") -> str:
    """Return the report of a kept run as a terminal shows it, by the name of its directory on the page."""
    from kept_runs import is_kept, terminal_text

    return f"```text\n{terminal_text(run).replace(f'runs/{run}', directory or run)}```" if is_kept(run) else NOT_KEPT


def gate(run: str, budget: str) -> str:
    """Return the answer of a gate on a kept run, with a budget for the run time in docker."""
    from kept_runs import gate_text, is_kept

    return f"```text\n{gate_text(run, budget).strip()}\n```" if is_kept(run) else NOT_KEPT


def comment(run: str) -> str:
    """Return the comment on a pull request as a quotation, from its kept run."""
    from kept_runs import comment_text, is_kept

    lines = comment_text(run).strip().splitlines() if is_kept(run) else [NOT_KEPT]
    return "\n".join(f"> {line}".rstrip() for line in lines)


def replication(study: str) -> str:
    """Return a study's published tables next to the tables of its kept run, and the machine that measured the run."""
    document, facts = _replication(study)
    control = "passed" if document["trusted"] else "failed"
    counts = [(name, str(number)) for name, number in document["counts"].items() if number]
    lines = [
        f"Published in: {published_source(study)}",
        table(("measured on", ""), list(facts.items())),
        f"The control of the run {control}.",
    ]
    lines += [table(("direction", "rows"), counts)] if counts else []
    for part, heads, row_of in (
        ("rows", ("environment", "published", "measured", "direction"), _direction_row),
        ("pairs", ("difference", "published", "measured", "agrees in"), _pair_row),
        ("spreads", ("environment", "published variation", "measured variation"), _spread_row),
    ):
        for title in dict.fromkeys(row["table"] for row in document[part]):
            rows = [row for row in document[part] if row["table"] == title]
            measured = [row for row in rows if row["measured"] is not None]
            lines.append(f"### {title}")
            lines += [table(heads, list(map(row_of, measured)))] if measured else []
            reasons = dict.fromkeys(row["why"] for row in rows if row["measured"] is None)
            lines += [f"Rows that were not measured: {len(rows) - len(measured)}."] if reasons else []
            lines += ["\n".join(f"- {reason}." for reason in reasons if reason)] if any(reasons) else []
    return "\n\n".join(lines)


def _direction_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    environment = f"{code(row['environment'])}{_level(row['level'])}"
    return environment, effect(row["published"], row), effect(row["measured"], row), row["direction"]


def _pair_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    sides = [(each["mean"], each["p"]) for each in (row["published"], row["measured"])]
    unit = row["measured"]["unit"]
    texts = [f"{figure(mean, '+')} {unit} (p {'< 0.001' if p < 0.001 else f'= {p:.2g}'})" for mean, p in sides]
    return f"{code(row['first'])} - {code(row['second'])}", *texts, row["agreement"]


def _spread_row(row: Mapping[str, Any]) -> tuple[str, ...]:
    published, measured = row["published"]["variation"], row["measured"]
    shares = [measured[name] for name in ("variation", "variation_low", "variation_high")]
    variation, low, high = ["-" if share is None else f"{share:.1%}" for share in shares]
    return code(row["environment"]), "-" if published is None else f"{published:.1%}", f"{variation} [{low}, {high}]"


def published_source(study: str) -> str:
    """Return the publication of a study."""
    from weighbridge.features.replication.published import published

    return f"{published(study).source}."


@cache
def _replication(study: str) -> tuple[Any, dict[str, str]]:
    from kept_runs import run_directory

    from weighbridge.analysis.analyse import analyse
    from weighbridge.features.replication.comparison import replication
    from weighbridge.features.replication.document import replication_json
    from weighbridge.features.replication.published import published
    from weighbridge.report.export.provenance import provenance
    from weighbridge.store.run import RunStore

    with run_directory(study) as directory, RunStore(directory) as store:
        document = replication_json(replication(analyse(store), published(study)))
        about = provenance(store)
        host = {key: value for scope, key, value, _ in store.facts() if scope == "host"}
    named = ("CPU", "cores", "memory", "virtualisation", "operating system", "kernel", "version of dockerd")
    facts = {"date": (about.date or "")[:10], **{name: host[name] for name in named if name in host}}
    return document, facts


def effect(estimate: Mapping[str, Any] | None, row: Mapping[str, Any]) -> str:
    """Return an effect with its interval: a ratio, or a difference in the row's unit."""
    if estimate is None:
        return "not measured"
    ratio = row["scale"] == "ratio"
    unit = "" if ratio else f" {'points' if row['unit'] == '%' else row['unit']}"
    numbers = [estimate[name] for name in ("estimate", "low", "high")]
    words = ["" if each is None else figure(each, "" if ratio else "+") for each in numbers]
    interval = f" [{words[1]}, {words[2]}]" if words[1] and words[2] else ""
    return f"{words[0]}{unit}{interval}"


def _level(level: Mapping[str, str]) -> str:
    return f" ({', '.join(f'{name}={value}' for name, value in level.items())})" if level else ""


def examples() -> str:
    """Return the terminal report of every kept run, a comparison of two runs, and the summary of a gate."""
    from kept_runs import GATE, about_examples, example_text, gate_summary

    parts = [f"## {name}\n\n{sentence(about)}\n\n{example_text(name)}" for name, about in about_examples().items()]
    summary = gate_summary().replace("## ", "### ", 1)
    return "\n\n".join([*parts, f"## A gate\n\n{GATE}\n\n{summary}"])


def packages() -> str:
    """Return a table of the packages of ``src/weighbridge`` with the first sentences of their docstrings."""
    rows = []
    source = Path(__file__).parents[1] / "src/weighbridge"
    for path in sorted([*source.glob("*/__init__.py"), *source.glob("features/*/__init__.py")]):
        if docstring := ast.get_docstring(ast.parse(path.read_text())):
            first = re.split(r"(?<=\.)\s", " ".join(docstring.split("\n\n")[0].split()), maxsplit=1)[0]
            rows.append((code(f"{path.parent.relative_to(source)}/"), first.replace("``", "`")))
    return table(("package", "content"), rows)


_PROTOCOLS: dict[str, type[Plugin]] = {
    "plugin": Plugin, "workload": Workload, "environment": Environment, "host": HostKind, "storage": Storage,
    "userland": UserlandSource, "adapter": Adapter, "mechanism": Mechanism, "machine-provider": MachineProvider,
}  # fmt: skip
PARTS: dict[str, Callable[..., str]] = {
    "packages": packages,
    "commands": commands, "study-keys": study_keys, "kinds": kinds,
    "shared-keys": shared_keys, "summaries": summaries, "json": json_document, "remark-codes": remark_codes,
    "prometheus": prometheus, "openmetrics": openmetrics, "studies": studies, "unverified": unverified,
    "screen": screen, "gate": gate, "comment": comment,
    "replication": replication, "examples": examples, "providers": providers, "mechanisms": mechanisms,
    "event-counters": event_counters,
    "protocol": protocol, "members": members, "table-entry": table_entry, "function": function,
    "exit-codes": exit_codes, "json-commands": json_commands, "presets": presets, "preset-keys": preset_keys,
    "costs-by-workload": costs_by_workload,
    "python-api": python_api, "pytest-fixture": pytest_fixture, "run-tables": run_tables, "run-keys": run_keys,
    "schema-version": schema_version, "notebook": notebook,
}  # fmt: skip
"""The name of a part -> the function that makes it."""


def main() -> None:
    """Bring every page of the documentation up to date, and print the pages that changed."""
    current = {page: filled(page.read_text()) for page in sorted(DOCS.rglob("*.md"))} | {LLMS: llms_txt()}
    for page, text in current.items():
        if text != page.read_text():
            page.write_text(text)
            print(page.relative_to(DOCS.parent))


if __name__ == "__main__":
    main()
