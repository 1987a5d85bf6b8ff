"""`weighbridge weigh`: a study made from a command line."""

import itertools
import json
import os
import re
import shlex
import shutil
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import nullcontext
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from weighbridge import registry
from weighbridge.cli import approval
from weighbridge.cli.commands.weigh import WeighOptions, What, Where
from weighbridge.cli.declared import later
from weighbridge.cli.files import STANDARD_OUTPUT, report_study, require_one_output
from weighbridge.cli.messages import WRONG_COMMAND_LINE, fail
from weighbridge.cli.output import err, out, write_new
from weighbridge.cli.progress import show
from weighbridge.cli.run import new_directory, report_run
from weighbridge.cli.runs import continuable, default_folder, holds_a_run
from weighbridge.cli.timing import print_timing, timing_since_start
from weighbridge.cli.variables import given_variables
from weighbridge.errors import RunDirectoryError, StudyError, Unavailable
from weighbridge.model.secret import PASSED_ON, SecretName, env_options, reference, secret_name, variables_of
from weighbridge.model.site import NO_START_FOLDERS
from weighbridge.model.stored_study import BASE, ENTRY, HEAD, secrets_of
from weighbridge.model.study import Study
from weighbridge.model.supporting_service import ComposedService
from weighbridge.model.timing import Timing
from weighbridge.report.text.environments import names_of_study, use_display_names
from weighbridge.report.text.next_step import continuing
from weighbridge.runner import compose_file, living, preflight, userlands
from weighbridge.runner import run as running
from weighbridge.runner.default_environments import DefaultEnvironments, default_environments
from weighbridge.runner.revisions import Revision, Revisions, built_revisions
from weighbridge.runner.signals import interruptible
from weighbridge.runner.stopper import ShortTime
from weighbridge.secret_values import keep_as
from weighbridge.store.run import RunStore
from weighbridge.store.versions import can_continue
from weighbridge.study import loader
from weighbridge.study.compose import Unhonoured
from weighbridge.study.compose_key import image_userland, service_of
from weighbridge.study.source import parse
from weighbridge.study.weighed import (
    USUAL,
    USUAL_IN_CLUSTER,
    USUAL_OF_SERVERS,
    USUAL_OF_SERVERS_IN_CLUSTER,
    WITHOUT_ENGINE,
    Earlier,
    Weighed,
    study_text,
)

_PARAMETER = r"[A-Za-z][A-Za-z0-9_]*"
_LABEL = r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}"
_PROGRAM_NAME = r"[A-Za-z][A-Za-z0-9_-]{0,39}"
_STUDY = "weigh"
"""The name of the study in messages."""
_LINE = re.compile(rf"^{_STUDY}:\d+: ", re.MULTILINE)
_OPTIONS: Mapping[str, str] = {"shm_size": "--shm-size", "json": "--metric", "regex": "--metric"} | {
    key: f"--{key}"
    for key in (
        "within", "target", "memory", "cpus", "placebo", "trace", "adapter", "deadline", "setup", "prepare", "check",
        "cleanup",
    )
}  # fmt: skip
"""The option that gives the value of a study's key."""
_PACKAGES: Mapping[str, Any] = {"kind": "packages"}
"""The root filesystem for a cluster if the user names no image."""
_ENGINE_SHOWS = "a container engine would also show the cost of its bridge, NAT and seccomp filter"


def weigh(options: WeighOptions) -> None:
    """Make a study of the command line, and run or save it. With two versions, check out and build both first."""
    timing = timing_since_start()
    _require_versions(options)
    if options.versions.base is None:
        _weigh(options, timing)
        return
    here = Path(_this_machine(options.what.env).get("folder", "/"))
    # mistakes are reported before a build
    study = _study(options, Revisions(Revision(BASE, "", here), Revision(HEAD, "", here)))
    if options.output.directory is not None:
        _require_own_run(options.output.directory, study)
    living.require_alone(allow_concurrent=options.limits.allow_concurrent)
    versions, build = options.versions, _words("--build", options.versions.build)
    with (
        interruptible(),
        built_revisions(options.versions.base, versions.head, build, _note, keep=versions.keep_trees) as revisions,
    ):
        if revisions.uncommitted:
            _note(f"note: {HEAD} is HEAD ({revisions.head.short_commit}). Your uncommitted changes are not measured")
        _weigh(options, timing, revisions)


def _note(text: str) -> None:
    err().print(text, markup=False, soft_wrap=True)


def _weigh(options: WeighOptions, timing: Timing, revisions: Revisions | None = None) -> None:
    study, save = _study(options, revisions), options.output.save
    if save is not None:
        _save(study, save)
        return
    living.require_alone(allow_concurrent=options.limits.allow_concurrent)
    _run(study, options, timing, lasting=revisions is None or options.versions.keep_trees)
    if options.output.timing:
        print_timing(timing)


def _study(options: WeighOptions, revisions: Revisions | None) -> Study:
    """Return the checked study. Exit with a message if an option is wrong, or if a program is missing here."""
    what, save = options.what, options.output.save
    environments = [name for names in options.where.inside for name in names.split(",") if name]
    in_cluster = _is_in_cluster(options.where, environments)
    _require_compatible(options, in_cluster=in_cluster)
    if in_cluster and (revisions is not None or what.commands):
        option = "--command" if revisions is None else "--base"
        fail(f"{option} does not work in a cluster: remove it", WRONG_COMMAND_LINE)
    program = _program(what, revisions, in_cluster=in_cluster)
    programs = [*program["commands"].values()] or [program["command"]]
    _require_text(what, [word for words in programs for word in words])
    commands = [each for words in programs for each in _commands_without_image(what, words)]
    if in_cluster:
        program |= _on_cluster(options.where, what, commands, ask=save is None)
        one = what.server is None or what.against is not None
        environments = environments or [*(USUAL_IN_CLUSTER if one else USUAL_OF_SERVERS_IN_CLUSTER)]
    elif not what.shell and save is None:
        unbuilt = revisions is not None and options.versions.build is None
        hint = "add --build COMMAND if a build makes it" if unbuilt else "add --shell"
        for place, folder in _start_folders(revisions, built=not unbuilt):
            _require_programs(commands, _variables(what.env), folder, (place, hint))
    wrappers = _wrappers(options.where.wrap, environments, program["userland"])
    if not environments and not wrappers and what.against is None and revisions is None:
        environments = [*_default_inside(program, save=save is not None)]
    return _checked_study(_weighed(options, program, [*environments, *wrappers], wrappers), _given(options))


def _require_compatible(options: WeighOptions, *, in_cluster: bool) -> None:
    """Exit with a message if options exclude each other, or if one is missing."""
    what, length = options.what, options.length
    if length.rounds is not None and (length.target is not None or length.within is not None):
        fail("--rounds excludes --target and --within", WRONG_COMMAND_LINE)
    _require_compose(what)
    if in_cluster and (what.compose or what.env):
        option = "--compose" if what.compose else "--env"
        fail(f"{option} does not apply to a cluster: remove it", WRONG_COMMAND_LINE)
    if what.image is None or _has_server_image(what):  # an image can have a program of its own
        _require_command(what.command or what.commands, what)
    if what.compose is not None and what.against is not None:
        fail(
            "--against does not work with --compose: save two studies (--save), run both, and compare the runs",
            WRONG_COMMAND_LINE,
        )


def _require_versions(options: WeighOptions) -> None:
    """Exit with a message if options for two versions or for several programs do not work with the others."""
    what, versions = options.what, options.versions
    values = {"--head": versions.head, "--build": versions.build, "--keep-trees": versions.keep_trees}
    if versions.base is None and (given := [name for name, value in values.items() if value]):
        fail(f"{given[0]} needs the version to compare with: add --base REF", WRONG_COMMAND_LINE)
    others = {
        "--against": what.against, "--image": what.image, "--compose": what.compose, "--server": what.server,
    }  # fmt: skip
    of_versions = {"--save": options.output.save, "--explain": options.measurement.explain, "--label": what.label}
    for option, excluded in (("--base", {**others, **of_versions}), ("--command", others)):
        is_given = versions.base is not None if option == "--base" else bool(what.commands)
        if is_given and (given := [name for name, value in excluded.items() if value]):
            fail(f"{given[0]} does not work with {option}: remove it", WRONG_COMMAND_LINE)
    markdown = options.output.markdown
    if markdown is not None and (markdown.is_dir() or not markdown.parent.is_dir()):
        fail(f"--markdown: {markdown} cannot be written: name a file in a folder that exists", WRONG_COMMAND_LINE)
    require_one_output(markdown, as_json=options.output.as_json)
    if what.commands and what.command:
        message = "--command replaces the program after --: name that too, as in --command a='./a'"
        fail(message, WRONG_COMMAND_LINE)


def _has_server_image(what: What) -> bool:
    """Return whether the server is in an image, which has other files than the client."""
    return what.compose is not None or (what.image is not None and what.server is not None)


def _program(what: What, revisions: Revisions | None, *, in_cluster: bool) -> dict[str, Any]:
    """Return the program's part of a `Weighed`: commands, root filesystems and the earlier version."""
    commands = _named_programs(what)
    command, parts = next(iter(commands.values()), what.command), dict[str, Any]()
    if revisions is not None:
        parts = _trees(what.env, revisions)
    elif what.compose is not None:
        parts = _weighed_service(what)
    else:
        packages = in_cluster and what.image is None
        userland = _PACKAGES if packages else _userland(what.image, () if _has_server_image(what) else what.env)
        parts = {"server": what.server, "port": what.ready, "userland": userland}
        if what.against is not None:
            parts["earlier"] = _earlier(what, what.against)
        entry_point = _entry_point(userland)
        if what.server is None:
            command = [*entry_point, *command]
        else:
            parts["server"] = _server_behind(entry_point, what.server)
    if _has_server_image(what):
        parts["client_userland"] = _PACKAGES if in_cluster else _this_machine(what.env)
    _require_command(command, what)
    return parts | {"command": command, "commands": commands} | _labels(what.label, what.against)


def _trees(env: Sequence[str], revisions: Revisions) -> dict[str, Any]:
    """Return the two versions' part of a `Weighed`: the same program, started in the tree of each."""
    base, head = ({**_this_machine(env), "folder": str(each.folder)} for each in revisions.both)
    commits = tuple(each.short_commit for each in revisions.both)
    return {"userland": head, "earlier": Earlier(base), "labels": (BASE, HEAD), "commits": commits}


def _named_programs(what: What) -> dict[str, list[str]]:
    """Parse each ``--command NAME=COMMAND``."""
    programs: dict[str, list[str]] = {}
    for option in what.commands:
        name, equals, line = option.partition("=")
        if not (equals and re.fullmatch(_PROGRAM_NAME, name)) or name in (*programs, ENTRY):
            form = "write NAME=COMMAND with a new name of letters, digits, _ and -"
            fail(f"--command {shlex.quote(option)}: {form}", WRONG_COMMAND_LINE)
        programs[name] = [line] if what.shell else _words(f"--command {name}", line)
        if not programs[name]:
            fail(f"--command {name}: name a program", WRONG_COMMAND_LINE)
    return programs


def _words(option: str, line: str | None) -> list[str]:
    """Return the words of an option's command line; none without one. Exit with a message if it cannot be split."""
    if line is not None and "\0" in line:
        fail(f"{option}: the command contains the character NUL: remove it", WRONG_COMMAND_LINE)
    try:
        return [] if line is None else shlex.split(line)
    except ValueError as error:
        fail(f"{option}: {error}", WRONG_COMMAND_LINE)


def _start_folders(revisions: Revisions | None, *, built: bool) -> list[tuple[str, Path]]:
    """Return the folders in which the program starts, each with words for messages."""
    if revisions is None:
        return [("", Path())]
    after = "after its build" if built else "without --build"
    versions = (each for each in revisions.both if each.commit)
    return [(f" in {each.name} ({each.short_commit}) {after}", each.folder) for each in versions]


def _commands_without_image(what: What, command: Sequence[str]) -> list[Sequence[str] | str | None]:
    """Return the commands that run from this machine's files, or from packages in a cluster."""
    if _has_server_image(what):
        return [command]
    return [command, what.server, *_unmeasured(what).values()] if what.image is None else []


def _unmeasured(what: What) -> dict[str, str]:
    """Return the commands that are not measured, by their keys in a study."""
    commands = {"setup": what.setup, "prepare": what.prepare, "check": what.check, "cleanup": what.cleanup}
    return {key: command for key, command in commands.items() if command is not None}


def _further(options: WeighOptions) -> dict[str, Any]:
    """Return the further options of the workload, by their keys in a study."""
    what, adapter, deadline = options.what, options.measurement.adapter, options.limits.deadline
    values = {"adapter": adapter, "deadline": deadline, "warm_up": what.warm_up or None}
    return {key: value for key, value in values.items() if value is not None}


def _weighed(
    options: WeighOptions,
    program: Mapping[str, Any],
    environments: Sequence[str],
    wrappers: Mapping[str, Sequence[str]],
) -> Weighed:
    what, measurement, limits, length = options.what, options.measurement, options.limits, options.length
    resources = {"cpus": limits.cpus, "memory": limits.memory}
    return Weighed(
        **program,
        inside=environments,
        wrappers=wrappers,
        shell=what.shell,
        parameters=dict(_parameter(each) for each in what.parameters),
        metrics=dict(_metric(each) for each in measurement.metrics),
        unmeasured=_unmeasured(what),
        further=_further(options),
        resources={name: value for name, value in resources.items() if value is not None},
        shm_size=limits.shm_size,
        target=length.target or "2%",
        within=length.within or "2min",
        blocks=length.rounds,
        explain=measurement.explain,
        placebo=measurement.placebo,
        trace=measurement.trace or "",
        cpu_idle=limits.cpu_idle,
    )


def _given(options: WeighOptions) -> set[str]:
    """Return the keys of the study whose values are on the command line."""
    measurement, limits, length = options.measurement, options.limits, options.length
    values = {
        "within": length.within, "target": length.target, "memory": limits.memory, "cpus": limits.cpus,
        "placebo": measurement.placebo or None, "trace": measurement.trace, "shm_size": limits.shm_size,
        "json": measurement.metrics or None,
        "regex": measurement.metrics or None,
    }  # fmt: skip
    given = {key for key, value in values.items() if value is not None}
    return {*_unmeasured(options.what), *_further(options), *given}


def _save(study: Study, file: Path) -> None:
    write_new(file, study.text)
    report_study(file)
    if variables := variables_of(secrets_of(study)):
        sentence = f"The file contains no values of --env. Run it with {env_options(variables)}."
        out().print(sentence, markup=False, soft_wrap=True)


def _run(study: Study, options: WeighOptions, timing: Timing, *, lasting: bool) -> None:
    """Run a study as `weighbridge run` does, and export its JSON if the user asked for it.

    ``lasting`` is whether the run can be continued.
    """
    length, export, directory = options.length, options.output.export_json, options.output.directory
    markdown = options.output.markdown
    short_time: ShortTime = "extend" if length.within is None else "keep" if length.quick_test else "refuse"
    variables, concurrent = [*given_variables(options.what.env)], options.limits.allow_concurrent
    if directory is not None:
        _require_own_run(directory, study)
    directory = directory or default_folder() / new_directory(study).name
    approval.announce(study, directory, quick_test=length.quick_test, timed=False)
    with (
        use_display_names(names_of_study(study)),
        interruptible(),
        show(directory) as progress,
        continuable(
            directory, *continuing("run", str(directory), yes=True, variables=variables, concurrent=concurrent)
        )
        if lasting
        else nullcontext(),
    ):

        def after(store: RunStore) -> None:
            analysis = report_run(
                store, progress, concurrent=concurrent, screen=markdown != STANDARD_OUTPUT, lasting=lasting
            )
            if markdown is not None and analysis is not None:
                _write_markdown(later("weighbridge.report.comment:comment")(analysis), markdown)
            if export is not None and analysis is not None:
                document = later("weighbridge.report.export.json:report_json")(store, analysis, lasting=lasting)
                export.write_text(json.dumps(document, indent=2, ensure_ascii=False))
                err().print(f"JSON: {export}", markup=False)

        running.run_study(study, directory, progress, after, short_time=short_time, timed=False, timing=timing)


def _write_markdown(text: str, file: Path) -> None:
    if file == STANDARD_OUTPUT:
        print(text, end="", flush=True)
    else:
        with file.open("a") as target:
            target.write(text)


def _require_own_run(directory: Path, study: Study) -> None:
    """Raise RunDirectoryError if a directory holds the run of another command; remove such a run without trials."""
    if not holds_a_run(directory):
        return
    with RunStore(directory) as store:
        lasting, has_trials = can_continue(store), bool(store.finished())
        frozen = running.study_of(store)
    if frozen.text == study.text:
        return
    if has_trials:
        further = f", or continue that run with 'weighbridge run --out {directory}'" if lasting else ""
        raise RunDirectoryError(
            f"{directory} already holds the run of another command ({frozen.file.study}): choose a new --out{further}"
        )
    with RunStore(directory, writable=True) as store:
        store.discard()


def _userland(image: str | None, env: Sequence[str]) -> Mapping[str, Any]:
    """Return the root filesystem of the program: this machine, an image of the engine, or a saved image."""
    if image is None:
        return _this_machine(env)
    if env:
        fail("--env does not work with an image, which sets its own variables: remove it", WRONG_COMMAND_LINE)
    return image_userland(image)


def _entry_point(userland: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the entry point of an image, which precedes the program's words as in `docker run`."""
    source = registry.userlands()[userland["kind"]]
    try:
        options = source.options.model_validate(userland)
    except ValidationError:
        fail(f"{userland['image']!r} is neither a file nor a valid image name", WRONG_COMMAND_LINE)
    return source.entry_point(options)


def _this_machine(env: Sequence[str]) -> Mapping[str, Any]:
    """Return this machine's root filesystem, with programs started in the current folder unless that is /."""
    try:
        folder = Path.cwd()
    except FileNotFoundError:
        fail("the current folder has been removed: cd to another one", WRONG_COMMAND_LINE)
    if str(folder) in NO_START_FOLDERS:
        fail(f"programs cannot start in {folder}, which every environment replaces: cd ~ first", WRONG_COMMAND_LINE)
    return {"kind": "host", **({} if folder == Path("/") else {"folder": str(folder)}), "env": _variables(env)}


def _variables(env: Sequence[str]) -> dict[str, str]:
    """Return the variables that every program gets, and references to the values of ``--env``."""
    variables = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    for name, value in given_variables(env).items():
        if name in PASSED_ON:
            variables[name] = value
        else:  # a variable of a Compose file can have this name
            variables[name] = reference(keep_as(SecretName(name), value, secret_name("env", name)))
    return variables


def _wrappers(options: Sequence[str], taken: Sequence[str], userland: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the words of each ``--wrap`` by a name that nothing else has, made of its program.

    With this machine's programs, a relative path of the program starts in the user's folder.
    """
    wrappers: dict[str, list[str]] = {}
    for option in options:
        if not (words := _words("--wrap", option)):
            fail("--wrap: name a program and its options", WRONG_COMMAND_LINE)
        if "/" in words[0] and words[0][0] != "{" and userland["kind"] == "host":  # it starts in /
            words[0] = str(Path(userland.get("folder", "/"), words[0]))
        program = re.sub(r"[^A-Za-z0-9_.-]+", "", words[0].rpartition("/")[2])[:30]
        name = f"wrap-{program}" if not program[:1].isalpha() or registry.environment_named(program) else program
        numbered = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
        wrappers[next(each for each in numbered if each not in (*wrappers, *taken))] = words
    return wrappers


def _parameter(option: str) -> tuple[str, list[str]]:
    name, equals, values = option.partition("=")
    if not (re.fullmatch(_PARAMETER, name) and equals and values):
        fail(f"--parameter {shlex.quote(option)}: write NAME=A,B,...", WRONG_COMMAND_LINE)
    return name, values.split(",")


def _metric(option: str) -> tuple[str, Mapping[str, Any]]:
    """Parse ``rps=json:$.summary.rps,higher,1/s``. The path can contain commas, so only the last two separate."""
    name, _, rest = option.partition("=")
    how, _, words = rest.partition(":")
    parts = words.rsplit(",", 2)
    problem = ""
    if how not in ("json", "regex") or len(parts) != 3:
        problem = "write NAME=json:PATH,higher|lower,UNIT or NAME=regex:PATTERN,higher|lower,UNIT"
    elif not re.fullmatch(r"[a-z][a-z0-9_]{0,59}", name):
        problem = f"the name must start with a lower-case letter and have only a-z, 0-9 and _, not {name!r}"
    elif parts[1] not in ("higher", "lower"):
        problem = f"the direction must be higher or lower, not {parts[1]!r}"
    elif not re.fullmatch(r"\S{1,20}", parts[2]):
        problem = f"the unit must have 1 to 20 characters and no space, not {parts[2]!r}"
    if problem:
        fail(f"--metric {shlex.quote(option)}: {problem}", WRONG_COMMAND_LINE)
    return name, {how: parts[0], "better": parts[1], "unit": parts[2]}


def _require_command(command: Sequence[str], what: What) -> None:
    """Exit with an example if the program is missing."""
    if command:
        return
    if not (what.server or what.service):
        fail("name the program to measure, for example: weighbridge weigh -- ./my-benchmark", WRONG_COMMAND_LINE)
    fail(
        "name the server's client, for example: weighbridge weigh ... -- curl -s http://{address}:{port}/",
        WRONG_COMMAND_LINE,
    )


def _labels(option: str | None, against: str | None) -> dict[str, tuple[str, str]]:
    """Parse ``before=glibc,after=musl``, the names of the two compared programs."""
    if option is None:
        return {}
    if against is None:
        fail("--label names the two versions of --against, which is missing", WRONG_COMMAND_LINE)
    pairs = dict(each.split("=", 1) for each in option.split(",") if "=" in each)
    before, after = pairs.get("before", ""), pairs.get("after", "")
    if (
        {*pairs} != {"before", "after"}
        or before == after
        or not all(re.fullmatch(_LABEL, each) for each in (before, after))
    ):
        fail(
            f"--label {shlex.quote(option)}: write before=A,after=B with two different names of letters and digits",
            WRONG_COMMAND_LINE,
        )
    return {"labels": (before, after)}


def _require_spelling(text: str, parameters: Iterable[str], *, server: bool) -> None:
    """Exit with a hint if a word in braces is almost a placeholder that is missing. Other braces are a program's."""
    names = {*parameters, *(("address", "port", "data_port", "listen") if server else ())}
    missing = sorted(name for name in names if f"{{{name}}}" not in text)
    for word in re.findall(rf"(?<!\$){{({_PARAMETER})}}", text):
        nearest = get_close_matches(word, missing, n=1, cutoff=0.75)
        if nearest and word not in names:
            fail(f"unknown placeholder {{{word}}}. Did you mean {{{nearest[0]}}}?", WRONG_COMMAND_LINE)


def _require_port(*servers: str | None) -> None:
    """Exit with a message if the command line of a server does not contain its port."""
    for server in servers:
        if server is not None and not any(place in server for place in ("{port}", "{data_port}")):
            message = "the port is missing. Write {port} in the command, or give a fixed port with --ready PORT"
            fail(f"--server {shlex.quote(server)}: {message}", WRONG_COMMAND_LINE)


def _server_behind(entry_point: Sequence[str], server: str) -> str:
    """Return the command line of a server in an image, with the image's entry point first."""
    return " ".join([shlex.join(entry_point), server]).strip()


def _earlier(what: What, against: str) -> Earlier:
    """Return the earlier version: the same command in another image, or another program of this machine.

    The other program replaces the server if there is one, else the program.
    """
    if what.image is not None:
        userland = _userland(against, ())
        entry_point = _entry_point(userland)
        if what.server is not None:
            return Earlier(userland, server=_server_behind(entry_point, what.server))
        return Earlier(userland, command=[*entry_point, *what.command])
    if what.server is not None:
        return Earlier(server=against)
    if what.shell:
        return Earlier(command=[against])
    if not (words := _words("--against", against)):
        fail("--against: name a program", WRONG_COMMAND_LINE)
    return Earlier(command=words)


def _is_in_cluster(where: Where, environments: Sequence[str]) -> bool:
    """Return whether an option, or a name of ``--in``, selects a cluster."""
    if where.cluster or where.context or where.namespace or where.images:
        return True
    elsewhere = [name for name in environments if registry.environment_named(name) is None]
    traits = [kind.options.traits for kind in registry.of_clusters().values()] if elsewhere else []
    return any(registry.environment_named(name, each) is not None for name in elsewhere for each in traits)


def _on_cluster(
    where: Where, what: What, commands: Sequence[Sequence[str] | str | None], *, ask: bool
) -> dict[str, Any]:
    """Return the cluster's part of a `Weighed`, for commands that are not in an image.

    Raises Unavailable, unless ``ask`` is False: then nothing contacts the cluster.
    """
    packages = _packages_of([*commands, what.against if what.image is None else None])
    return {"packages": packages, "hosts": _nodes(where, has_server=what.server is not None, ask=ask)}


def _nodes(where: Where, *, has_server: bool, ask: bool) -> Sequence[Mapping[str, Any]]:
    for plugin in registry.required_of_clusters().values():
        if ask and (lacking := preflight.lacking_here(plugin)) is not None:
            raise Unavailable(f"{lacking.detail}: {lacking.remedy}" if lacking.remedy else lacking.detail)
        try:
            return plugin.weighed_on(where.context, where.namespace, where.images, separate_hosts=has_server, ask=ask)
        except ValueError as error:
            fail(f"--images: {error}", WRONG_COMMAND_LINE)
    return ()


def _packages_of(commands: Sequence[Sequence[str] | str | None]) -> list[str]:
    """Return the Debian packages of the programs of commands. Exit with a message if a program has no package."""
    packages: dict[str, None] = {}
    for command in commands:
        try:
            words = shlex.split(command) if isinstance(command, str) else [*(command or ())]
        except ValueError:
            continue  # the check of the study reports it
        if words and "{" not in words[0]:
            package = userlands.package_of(words[0])
            if not package:
                fail(
                    f"Weighbridge knows no Debian package with {words[0]}: name an image that has it with --image",
                    WRONG_COMMAND_LINE,
                )
            packages[package] = None
    return [*packages]


def _require_compose(what: What) -> None:
    """Exit with a message if an option for a Compose file is missing or does not apply."""
    if what.compose is None:
        of_compose = {"--service": what.service, "--without": what.without, "--saved": what.saved}
        if given := [option for option, value in of_compose.items() if value]:
            fail(f"{given[0]} needs a Compose file: add --compose FILE", WRONG_COMMAND_LINE)
    elif not what.compose.is_file():
        fail(f"--compose: {what.compose} does not exist or is not a file", WRONG_COMMAND_LINE)
    elif what.service is None:
        fail("--compose needs the service to measure: add --service NAME", WRONG_COMMAND_LINE)
    elif what.server is not None or what.shell:
        option = "--server" if what.server is not None else "--shell"
        fail(f"{option} does not work with --compose (the service is the server): remove it", WRONG_COMMAND_LINE)


def _weighed_service(what: What) -> dict[str, Any]:
    """Return the service's part of a `Weighed`, and print on standard error what is left out.

    Raises StudyError, Unavailable, UserlandError.
    """
    composed = ComposedService(
        file=str(what.compose),
        service=what.service or "",
        without=tuple(key for keys in what.without for key in keys.split(",") if key),
        saved=dict(_saved(each) for each in what.saved),
        image=what.image,
        port=what.ready,
    )
    try:
        weighed = service_of(composed, compose_file.normalised)
    except Unhonoured as error:
        raise StudyError(f"{error.listed}--without {','.join(error.shortly)}") from None
    if weighed.remark:
        err().print(weighed.remark, markup=False, soft_wrap=True)
    if weighed.port is None:
        fail(f"compose: {what.service} does not have exactly one port: add --ready PORT", WRONG_COMMAND_LINE)
    return {
        "server": weighed.server,
        "server_env": weighed.environment,
        "port": weighed.port,
        "userland": weighed.userland,
        "companions": weighed.companions,
        "remark": weighed.remark,
        "settings": weighed.settings,
    }


def _saved(option: str) -> tuple[str, str]:
    image, equals, file = option.rpartition("=")
    if not (image and equals and file):
        fail(f"--saved {option}: write IMAGE=FILE", WRONG_COMMAND_LINE)
    return image, file


def _default_inside(where: Mapping[str, Any], *, save: bool) -> Sequence[str]:
    """Return the first choice of environments that is ready here, and print a note if it is not the first of all.

    If none is ready, a study that is only saved gets the first choice; otherwise raise Unavailable.
    """
    server = where.get("server") is not None
    defaults = default_environments(where["userland"]["kind"], server=server)
    if not defaults.ready and not save:
        what = "a server" if server else "a program"
        raise Unavailable(f"nothing here can isolate {what}. Install one of: {defaults.remedies}")
    if defaults.ready and defaults.passed_over:
        _print_choice(defaults)
    return [*defaults.ready] or (USUAL_OF_SERVERS if server else USUAL)[0]


def _print_choice(defaults: DefaultEnvironments) -> None:
    why = "; ".join(f"{name}: {state.detail}" for name, state in defaults.passed_over.items())
    shows = f"; {_ENGINE_SHOWS}" if {*defaults.ready} <= WITHOUT_ENGINE else ""
    err().print(f"note: using {', '.join(defaults.ready)} ({why}){shows}", markup=False, soft_wrap=True)


def _checked_study(weighed: Weighed, given: Container[str]) -> Study:
    """Return the checked study. Messages name an option instead of a line, because the study is not in a file.

    ``given`` are the keys of the study whose values are on the command line.
    """
    try:
        return loader.check(parse(study_text(weighed), _STUDY)).model_copy(update={"lines": {}})
    except StudyError as error:
        problems = [line.partition(": ") for line in _LINE.sub("", str(error)).splitlines()]
        named = (f"{_OPTIONS.get(key, key) if key in given else key}{colon}{text}" for key, colon, text in problems)
        fail("\n".join(dict.fromkeys(named)), WRONG_COMMAND_LINE)  # several environments can have the same problem


def _require_text(what: What, command: Sequence[str]) -> None:
    """Exit with a message if a word is not UTF-8, has a misspelt placeholder, or if a server has no port.

    Runs store the words, and reports show them.
    """
    words = [*command, *filter(None, (what.server, what.against)), *_unmeasured(what).values()]
    for word in (*words, *what.parameters):
        try:
            word.encode()
        except UnicodeEncodeError:
            fail(f"{word!a} is not UTF-8: write it in UTF-8", WRONG_COMMAND_LINE)
    names = [each.partition("=")[0] for each in what.parameters]
    _require_spelling(" ".join(words), names, server=what.server is not None)
    if what.server is not None and what.ready is None:
        _require_port(what.server, what.against if what.image is None else None)


def _require_programs(
    commands: Sequence[Sequence[str] | str | None], env: Mapping[str, Any], folder: Path, message: tuple[str, str]
) -> None:
    """Exit with a message if this machine does not have a command's program, unless a placeholder names it.

    Programs start in ``folder``; ``message``: the words about it, and a hint.
    """
    for command in commands:
        try:
            words = shlex.split(command) if isinstance(command, str) else command
        except ValueError:
            continue  # the check of the study reports it
        if not words or "{" in words[0]:
            continue
        name = words[0]
        if "/" in name and not (folder / name).exists():
            place, hint = message
            fail(f"{name}: no such program{place}. Check the path, or {hint}", WRONG_COMMAND_LINE)
        if "/" in name and not os.access(folder / name, os.X_OK):
            fail(
                f"{name} is not executable: run chmod +x {name}, or put its interpreter before it", WRONG_COMMAND_LINE
            )
        if "/" not in name and shutil.which(name, path=str(env.get("PATH", os.defpath))) is None:
            hint = f". Try ./{name}" if (folder / name).exists() else ". A shell builtin needs --shell"
            fail(f"{name}: not found in PATH{hint}", WRONG_COMMAND_LINE)
