"""The parts of the documentation that come from the program itself, as Markdown.

A page has ``*Shown by `make docs`.* <!-- generated: NAME ARGUMENT -->`` on a line of its own where such a part
belongs. `conf.py` puts it there while Sphinx reads the page; nothing of it is kept in a file. Only the exit codes are
kept, as who meets one may have no site at hand: `tests/test_docs.py` holds them.
"""

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

from weighbridge import errors, registry
from weighbridge.cli.schema import Document, schema_of
from weighbridge.model.plugin import Plugin
from weighbridge.study.loader import check
from weighbridge.study.source import bundled, parse

MARK = re.compile(r"^(?:\*Shown by `make docs`\.\* )?<!-- generated: ([a-z-]+)(?: ([\w/-]+))? -->$", re.MULTILINE)
"""Where a page has a generated part: its name, and what it is told."""
_QUANTITIES = {
    "us|ms|s|min|h": ("a time", "s"),
    "B|kB": ("a size", "B"),
    "bit/s": ("a rate", "bit/s"),
    "%": ("a share", "%"),
}
"""What a pattern's units tell of an option: its kind in words, and the base unit of its default."""
_STEPS = {
    "B": ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")),
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")),
}
_SECTIONS = {
    "workloads": registry.workloads, "environments": registry.environments, "hosts": registry.hosts,
    "storage": registry.storage, "userlands": registry.userlands, "adapters": registry.adapters,
}  # fmt: skip

Schema = Mapping[str, Any]


def filled(page: str) -> str:
    """Return a page with its generated parts in their places; unknown names raise KeyError."""
    return MARK.sub(lambda mark: PARTS[mark[1]](*filter(None, [mark[2]])), page)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; a bar in a cell is escaped."""
    lines = [[*head], ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(' '.join(cell.split()) for cell in row)} |" for row in lines) + "\n"


def code(text: object) -> str:
    """Return text as a code span."""
    return f"`{text}`"


def prose(docstring: str | None) -> str:
    """Return a docstring as Markdown."""
    return inspect.cleandoc(docstring or "").replace("``", "`")


def commands() -> str:
    """Every command with its arguments and options, as ``--help`` has them."""
    import typer.main

    from weighbridge.cli.app import app

    group: Any = typer.main.get_command(app)
    return "\n\n".join(_command(name, command) for name, command in group.commands.items() if not command.hidden)


def _command(name: str, command: Any, heading: str = "##") -> str:
    """A command, and those of a group below it."""
    shown = [each for each in command.params if not getattr(each, "hidden", False) and each.name != "help"]
    inner = {each: inside for each, inside in getattr(command, "commands", {}).items() if not inside.hidden}
    arguments = [each for each in shown if each.param_type_name == "argument"]
    options = [each for each in shown if each.param_type_name == "option"]
    words = [each.name.upper() if each.required else f"[{each.name.upper()}]" for each in arguments]
    usage = " ".join(["weighbridge", name, *(["[OPTIONS]"] if options else []), *words])
    part = [f"({name.replace(' ', '-')}-command)=", f"{heading} {name}", prose(command.help)]
    part += [] if inner else [f"```text\n{usage}\n```"]
    rows = [(code(each.name.upper()), prose(each.help)) for each in arguments]
    rows += [(_option_words(each), prose(each.help)) for each in options]
    part += [table(("option", "what it does"), rows)] if rows and not inner else []
    lines = [line.removeprefix("- ") for line in (command.epilog or "").split("\n\n")[1:]]
    part += ["```sh\n" + "\n".join(lines) + "\n```"] if lines else []
    part += [_command(f"{name} {each}", inside, f"{heading}#") for each, inside in inner.items()]
    return "\n\n".join(part)


def _option_words(option: Any) -> str:
    names = ", ".join(code(name) for name in [*option.opts, *option.secondary_opts])
    return f"{names} {code(option.metavar)}" if option.metavar else names


def exit_codes() -> str:
    """Every exit code with its meaning: those of failures from their classes, the shell's own beside them."""
    from weighbridge.cli.output import WRONG_COMMAND_LINE

    meanings: dict[int, list[str]] = {0: ["Done."], WRONG_COMMAND_LINE: ["The command line is wrong, or incomplete."]}
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, errors.WeighbridgeError):
            meanings.setdefault(kind.exit_code, []).append(prose(kind.__doc__).splitlines()[0])
    meanings |= {
        129: ["SIGHUP; every finished trial is kept."],
        130: ["Ctrl-C; every finished trial is kept."],
        141: ["The reader of the output is gone; finished trials are kept."],
        143: ["SIGTERM; every finished trial is kept."],
    }
    return table(("code", "meaning"), [(str(each), " ".join(meanings[each])) for each in sorted(meanings)])


@cache
def study_schema() -> Schema:
    """The JSON Schema of study files."""
    return schema_of(Document.STUDY)


def study_keys(part: str = "") -> str:
    """The keys of a study, or of a part of it by the name of its definition (``Resources``)."""
    schema = study_schema()["$defs"][part] if part else study_schema()
    return _keys(schema)


def _keys(schema: Schema, *, without: Sequence[str] = ("kind",)) -> str:
    required = schema.get("required", ())
    rows = [
        (code(name), values(option), _default(option, name in required), description(option))
        for name, option in schema.get("properties", {}).items()
        if name not in without
    ]
    return table(("key", "values", "default", "what it is"), rows) if rows else "No options.\n"


def kinds(section: str) -> str:
    """Every kind of a section of a study with its options: ``workloads``, ``environments``, ``hosts``, ..."""
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
        parts.append(f"({section}-{kind})=\n\n### {code(kind)}\n\n{plugin.summary}\n\n{body}")
    return "\n\n".join(parts)


def shared_keys(section: str) -> str:
    """What any entry of a section may say beside the options of its kind."""
    kind, plugin = next(iter(_SECTIONS[section]().items()))
    schema = _schema_of(section, kind, plugin)
    return _keys(schema, without=("kind", *plugin.options.model_fields))


def providers() -> str:
    """The options of ``weighbridge fleet`` that are those of each provider of machines."""
    from weighbridge.cli.provider_options import SET_BY_ON

    parts = []
    for kind, provider in registry.providers().items():
        schema = provider.options.model_json_schema()
        rows = [
            (code(f"--{name.replace('_', '-')}"), description(option))
            for name, option in schema["properties"].items()
            if name not in SET_BY_ON
        ]
        parts += [f"`--on {provider.word or kind}`: {provider.summary}\n", table(("option", "what it does"), rows)]
    return "\n".join(parts)


def mechanisms() -> str:
    """What can be switched off, and whose finding it is."""
    rows = [(each.title, each.switched, each.remedy, each.source) for each in registry.mechanisms().values()]
    return table(("mechanism", "switched", "to change it", "source"), rows)


def summaries(section: str) -> str:
    """The kinds of a section, a row each."""
    rows = [(f"[{code(kind)}](#{section}-{kind})", plugin.summary) for kind, plugin in _SECTIONS[section]().items()]
    return table(("kind", "what it is"), rows)


def _schema_of(section: str, kind: str, plugin: Plugin) -> Schema:
    if section in ("workloads", "environments"):
        (entries,) = study_schema()["properties"][section]["patternProperties"].values()
        return next(each for each in entries["oneOf"] if each["title"] == kind)
    return study_schema()["$defs"][plugin.options.__name__]


def description(option: Schema) -> str:
    """Return what an option is, from the outermost schema that says it; a quantity's own words do not count."""
    for schema in _layers(option):
        text = schema.get("description", "")
        if text and text not in {words for words, _ in _QUANTITIES.values()}:
            return prose(text).splitlines()[0]
    return ""


def _layers(option: Schema) -> Iterator[Schema]:
    """Give a schema and the alternatives inside of it, definitions resolved, without the lists that sweep it."""
    yield option
    if "$ref" in option:
        yield from _layers(study_schema()["$defs"].get(option["$ref"].rpartition("/")[2], {}))
    for inner in option.get("anyOf", ())[: 1 if _is_swept(option) else None]:
        yield from _layers(inner)


def _is_swept(option: Schema) -> bool:
    """Return whether the second alternative is a list of the first: an option that may be swept."""
    inner = option.get("anyOf", ())
    return len(inner) == 2 and inner[1].get("type") == "array" and inner[1].get("items") == inner[0]


def values(option: Schema) -> str:
    """Return what may be written, in words."""
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
    """The keys of what a command prints with ``--json``, object by object."""
    schema = schema_of(Document(document))
    objects = {schema["title"]: schema, **schema.get("$defs", {})}
    parts = []
    for name, each in objects.items():
        if "properties" not in each:
            continue
        rows = [(code(key), _type_of(option)) for key, option in each["properties"].items()]
        about = prose(each.get("description")).splitlines()[:1]
        parts.append("\n\n".join([f"**{name}**: {about[0] if about else ''}", table(("key", "type"), rows)]))
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
    """Every code of a remark: what it means, and the fields that a remark of it has."""
    from weighbridge.analysis import remarks
    from weighbridge.analysis.results import Remark
    from weighbridge.report.text.remarks import CODES

    known = [kind for kind in vars(remarks).values() if isinstance(kind, type) and issubclass(kind, Remark)]
    ways: dict[str, set[str]] = {each: set() for each in CODES}
    for kind in known:
        if not kind.__subclasses__() and getattr(kind, "code", None) in ways:
            ways[kind.code].add(", ".join(code(each.name) for each in fields(kind)))
    rows = [(code(each), meaning, "; or ".join(sorted(filter(None, ways[each])))) for each, meaning in CODES.items()]
    return table(("code", "what it means", "its fields"), rows)


def prometheus() -> str:
    """Every metric of ``run --metrics``, with its labels."""
    import weighbridge.live.families as module

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
    return table(("metric", "labels", "what it is"), rows)


def studies() -> str:
    """Every bundled study: what it asks, compares and runs, how to run it, and what a kept run of it found."""
    from weighbridge.replication.published import available

    parts = []
    for name, text in bundled().items():
        study = check(parse(text, name)).file
        workloads = ", ".join(f"{code(each)} ({code(options['kind'])})" for each, options in study.workloads.items())
        rows = [("environments", ", ".join(map(code, study.environments))), ("workloads", workloads)]
        rows += [("profiles", ", ".join(map(code, study.profiles)))] if study.profiles else []
        rows += [("repeats", published_source(name))] if name in available() else []
        command = f"weighbridge {'replicate' if name in available() else 'run'} {name}"
        lines = [command, *([f"{command} --profile quick"] if "quick" in study.profiles else [])]
        run = "```sh\n" + "\n".join(lines) + "\n```"
        parts.append(f"({name})=\n\n## {name}\n\n{study.question}\n\n{table(('', ''), rows)}\n{run}\n\n{found(name)}")
    return "\n\n".join(parts)


def found(study: str) -> str:
    """Return the headline costs of the kept run of a study, where there is one."""
    from kept_runs import is_kept, run_directory

    if not is_kept(study):
        return "No run of it is kept with the project."
    from weighbridge.analysis.analyse import analyse
    from weighbridge.report.export.json import report_json
    from weighbridge.store.run import RunStore

    with run_directory(study) as directory, RunStore(directory) as store:
        document = report_json(store, analyse(store))
    rows = [
        (
            f"{code(row['workload'])} {row['metric']}{_level(row['level'])}",
            code(row["environment"]),
            _cost(row),
            str(row["verdict"]),
        )
        for row in document["costs"]
        if row["headline"] and not row["aa"] and row["cost"] is not None
    ]
    heads = ("metric", "environment", f"cost against {code(document['baseline'])} [95 %]", "verdict")
    link = f'<a href="../examples/{study}.html">The whole report</a>'
    return f"Measured on {(document['date'] or '')[:10]} (positive is worse). {link}.\n\n{table(heads, rows)}"


def _cost(row: Mapping[str, Any]) -> str:
    return f"{row['cost']:.3g} {row['cost_unit']} [{row['cost_low']:.3g}, {row['cost_high']:.3g}]"


def unverified() -> str:
    """What has never been seen to work on real hardware, by what the plug-ins say."""
    known = {**registry.environments(), **registry.hosts()}
    lines = [f"- {code(kind)}: {what}." for kind, plugin in known.items() if (what := plugin.unverified())]
    for plugin in registry.environments().values():
        for name, options in plugin.variants().items():
            what = plugin.unverified(options)
            lines += [f"- {code(name)}: {what}."] if what and what != plugin.unverified() else []
    return "\n".join(lines or ["- None."]) + "\n"


def weigh_text() -> str:
    """The command and the terminal of the run of the first minute."""
    from kept_runs import WEIGHED, command_line, terminal_text

    return f"```text\n$ {command_line(WEIGHED)}\n{terminal_text(WEIGHED)}```\n"


def replications() -> str:
    """Every published study that can be repeated: its tables, or that no run of it is kept."""
    from kept_runs import is_kept

    from weighbridge.replication.published import available

    return "\n\n".join(replicated(study) if is_kept(study) else _not_measured(study) for study in available())


def _not_measured(study: str) -> str:
    command = f"```sh\nweighbridge replicate {study} --profile quick\n```"
    return f"## {study}\n\n{published_source(study)}\n\nNo run of it is kept, so there are no figures.\n\n{command}"


def replicated(study: str) -> str:
    """The tables of a published study beside those of the kept run of it, and the machine that it ran on."""
    document, facts = _replication(study)
    lines = [f"## {study}", published_source(study), _table_of_facts(facts), _counts(document)]
    for title in dict.fromkeys(row["table"] for row in document["rows"]):
        rows = [row for row in document["rows"] if row["table"] == title]
        if all(row["measured"] is None for row in rows):
            lines.append(f"### {title}\n\nNot measured: {rows[0]['why']}")
            continue
        cells = [
            (
                f"{code(row['environment'])}{_level(row['level'])}",
                effect(row["published"], row),
                effect(row["measured"], row),
                row["direction"],
            )
            for row in rows
        ]
        lines.append(f"### {title}\n\n{table(('environment', 'published', 'measured', 'direction'), cells)}")
    return "\n\n".join(lines)


def published_source(study: str) -> str:
    """Return where a published study was published."""
    from weighbridge.replication.published import published

    return f"{published(study).source}."


@cache
def _replication(study: str) -> tuple[Any, dict[str, str]]:
    from kept_runs import run_directory

    from weighbridge.analysis.analyse import analyse
    from weighbridge.replication.comparison import replication
    from weighbridge.replication.document import replication_json
    from weighbridge.replication.published import published
    from weighbridge.report.export.provenance import provenance
    from weighbridge.store.run import RunStore

    with run_directory(study) as directory, RunStore(directory) as store:
        document = replication_json(replication(analyse(store), published(study)))
        about = provenance(store)
        host = {key: value for scope, key, value, _ in store.facts() if scope == "host"}
    named = ("CPU", "cores", "memory", "virtualisation", "operating system", "kernel", "version of dockerd")
    facts = {"date": about["date"] or "", **{name: host[name] for name in named if name in host}}
    return document, facts


def _table_of_facts(facts: Mapping[str, str]) -> str:
    return table(("measured on", ""), [(name, value) for name, value in facts.items()])


def _counts(document: Any) -> str:
    counts = [f"{number} {name}" for name, number in document["counts"].items() if number]
    control = "passed" if document["trusted"] else "failed"
    return f"The control {control}. Of {len(document['rows'])} rows: {', '.join(counts)}."


def effect(estimate: Mapping[str, Any] | None, row: Mapping[str, Any]) -> str:
    """Return an effect with its interval as a table has it: a ratio, or a difference in the row's unit."""
    if estimate is None:
        return "not measured"
    ratio = row["scale"] == "ratio"
    unit = "" if ratio else f" {'points' if row['unit'] == '%' else row['unit']}"
    figures = [estimate[name] for name in ("estimate", "low", "high")]
    words = ["" if each is None else f"{each:.3g}" if ratio else f"{each:+.3g}" for each in figures]
    interval = f" [{words[1]}, {words[2]}]" if words[1] and words[2] else ""
    return f"{words[0]}{unit}{interval}"


def _level(level: Mapping[str, str]) -> str:
    return f" ({', '.join(f'{name}={value}' for name, value in level.items())})" if level else ""


def examples() -> str:
    """The example reports, and the summary of a gate."""
    from kept_runs import GATE, about_examples, gate_summary

    rows = [(f'<a href="../examples/{name}.html">{name}</a>', about) for name, about in about_examples().items()]
    summary = gate_summary().replace("## ", "### ", 1)
    return f"{table(('report', 'what it is'), rows)}\n## A gate\n\n{GATE}\n\n{summary}"


def packages() -> str:
    """Return a table of the packages of ``src/weighbridge`` with the first sentences of their docstrings."""
    rows = []
    for path in sorted((Path(__file__).parents[1] / "src/weighbridge").glob("*/__init__.py")):
        if docstring := ast.get_docstring(ast.parse(path.read_text())):
            first = re.split(r"(?<=\.)\s", " ".join(docstring.split("\n\n")[0].split()), maxsplit=1)[0]
            rows.append((code(f"{path.parent.name}/"), first.replace("``", "`")))
    return table(("package", "what is in it"), rows)


PARTS: dict[str, Callable[..., str]] = {
    "packages": packages,
    "commands": commands, "study-keys": study_keys, "kinds": kinds,
    "shared-keys": shared_keys, "summaries": summaries, "json": json_document, "remark-codes": remark_codes,
    "prometheus": prometheus, "studies": studies, "unverified": unverified, "weigh-text": weigh_text,
    "replications": replications, "examples": examples, "providers": providers, "mechanisms": mechanisms,
}  # fmt: skip
