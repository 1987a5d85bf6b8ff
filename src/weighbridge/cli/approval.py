"""The announcement of a run and the question before it starts, because a study can start any program."""

import os
import shlex
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import typer
from rich.console import Console

from weighbridge import secret_values
from weighbridge.cli.messages import ANSWER, WRONG_COMMAND_LINE, fail
from weighbridge.cli.output import err
from weighbridge.errors import RunDirectoryError, StudyError
from weighbridge.model.explained import PLACEBO_TITLE, placebo_cost, sides
from weighbridge.model.secret import SecretName, env_options, variables_of
from weighbridge.model.spelling import nearest
from weighbridge.model.stored_study import secrets_of
from weighbridge.model.study import Study
from weighbridge.report.text.formatting import plain as plain_number
from weighbridge.report.text.formatting import plural, smallest_cost_text
from weighbridge.report.text.next_step import VERSIONS_GONE
from weighbridge.runner import compose_file, preflight
from weighbridge.runner import planned as planning
from weighbridge.runner import run as running
from weighbridge.runner.bundled import is_bundled
from weighbridge.runner.estimate import clock_range
from weighbridge.runner.known_noise import AGE, Decidable, KnownNoise
from weighbridge.secret_values import SecretComparison, without_value
from weighbridge.store.run import RunStore
from weighbridge.store.versions import can_continue
from weighbridge.study.compose_key import names_compose_file
from weighbridge.study.explained import unexplained
from weighbridge.study.external import ExternalResource, compose_resource, external_resources
from weighbridge.study.source import Origin, OriginKind, named_study, plain


def load_named(name: str, profile: str | None = None, link: str | None = None, *, yes: bool) -> tuple[Study, Origin]:
    """Load the study that a user names. Return it with its origin.

    docker-compose reads a Compose file that it names only if the user agrees. Raises as
    `weighbridge.runner.compose_file.load_study`.
    """

    def agree(file: str) -> None:
        tell([compose_resource(file)])
        if not yes and not _person_there():
            _needs_yes(f"{name} uses the Compose file {Path(file).absolute()}", "Read it")
        if not yes:
            typer.confirm("Read the Compose file?", default=True, abort=True, err=True)

    origin = named_study(name)
    return compose_file.load_study(origin, agree, profile, link), origin


def approved_already(study: Study, origin: Origin, *, yes: bool) -> Study:
    """Return the study, approved if it needs no question: it is bundled, or the user gave ``yes``."""
    return study.model_copy(update={"approved": yes or origin.is_bundled})


def confirm(origin: Origin, study: Study, directory: Path, *, yes: bool, quick_test: bool = False) -> bool:
    """Show what will run and for how long, and ask the user; return whether continuing the run needs ``yes``.

    Without a terminal, a study that is not bundled needs ``yes``. Raises Unavailable if the study cannot run here.
    """
    _require_yes(origin, yes=yes)

    require_values(names := secrets_of(study))
    announced = announce(approved_already(study, origin, yes=yes), directory, quick_test=quick_test)
    tell_secrets(names)
    _ask(external_resources(announced), yes=yes)
    return not is_bundled(announced)


def require_values(
    names: Sequence[SecretName], *, same: bool = False, again: str = ""
) -> Mapping[SecretName, SecretComparison]:
    """Require that the secrets of a study have values, and that the study uses every value that the user gives.

    ``same``, ``again`` and the result: as in `secret_values.require`. Raises SecretError.
    """
    for variable in secret_values.unknown_offers(names):
        hint = nearest(variable, variables_of(names))
        fail(f"--env {variable}: the study has no such secret{hint}", WRONG_COMMAND_LINE)
    return secret_values.require(names, same=same, again=again)


def secrets_lines(names: Sequence[SecretName]) -> list[str]:
    """Return lines that name the secrets of a study, and the secrets that have no value yet."""
    lines = [f"the study receives these secrets: {', '.join(names)}"] if names else []
    if lacking := without_value(names):
        options = env_options(variables_of(lacking))
        lines.append(f"needs values: {', '.join(lacking)} (give them with {options})")
    return lines


def tell_secrets(names: Sequence[SecretName]) -> None:
    """Show on standard error which secrets a study receives."""
    for line in secrets_lines(names):
        err().print(line, markup=False)


def announce(study: Study, directory: Path, *, quick_test: bool = False, timed: bool = True) -> Study:
    """Print the plan, its duration and its possible verdicts. Return the study as it runs here.

    If not ``timed``, the duration of its programs is unknown and not printed.

    Raises StudyError if the study has too few rounds for a verdict (unless it is a ``quick_test``), Unavailable if
    it cannot run here.
    """
    if not quick_test and (why := preflight.too_few_blocks(study)):
        raise StudyError(why)
    for line in planning.describe_locations(study):
        err().print(line, markup=False)
    planned = planning.plan(study)
    planned.require()
    study = planned.study
    if timed:
        arms, cells = plural(len(study.arms), "environment"), plural(len(study.cells), "workload")
        times_s = (planned.set_up_s + each for each in planned.trials_s)
        what = f"{arms} x {cells}, {clock_range(*times_s)}; {decides_sentence(planned.decidable)}"
    else:
        what = ", ".join(arm.name for arm in study.arms)
    err().print(f"{study.file.study}: {what}; results go to {directory}", markup=False)
    noise = planned.decidable.noise
    if not timed and (noise.cost is not None or noise.outdated is not None):
        err().print(noise_sentence(noise), markup=False)
    for line in _explained_lines(study):
        err().print(line, markup=False)
    for each in planned.left_out:
        err().print(f"note: {planning.left_out_line(each)}", markup=False)
    for warning in preflight.warnings(study, timed=timed):
        err().print(f"note: {warning}", markup=False)
    return study


def _explained_lines(study: Study) -> Iterator[str]:
    """Yield the mechanisms that will be switched off, one line per environment, and notes on those that cannot be."""
    present = {arm.name for arm in study.arms}
    for name in dict.fromkeys(each.environment for each in study.mechanisms if each.environment in present):
        mine = [each for each in study.mechanisms if each.environment == name]
        arms = study.arms_by_off(name)
        titles = [each.title for each in mine if sides(each, arms)]
        if titles:
            yield f"to explain {name}, switched off: {', '.join(titles)}"
        if placebo_cost(arms):
            yield placebo_line(name)
        for each in (each for each in mine if each.refused):
            yield f"note: {name}: {each.title} cannot be switched off: {each.refused}"
    if nothing := unexplained(study):
        yield f"note: {nothing_switched(nothing)}"
    if study.file.trace is not None and any(arm.explains is not None for arm in study.arms):
        yield traced_afterwards(study.file.trace)


def traced_afterwards(tracer: str) -> str:
    """Return the sentence about the extra run with a tracer."""
    return f"after the measurement, {tracer} records one extra run of each explained environment on the whole machine"


def placebo_line(environment: str) -> str:
    """Return the line about the placebo of an environment."""
    return f"{PLACEBO_TITLE}: {environment} once more, with nothing switched, as a control"


def nothing_switched(names: Sequence[str]) -> str:
    """Return the sentence about environments without a mechanism that can be switched off."""
    return f"no mechanism of {' and '.join(names)} can be switched off, so its costs will not be explained"


def decides_sentence(size: Decidable) -> str:
    """Return what a run of this size can decide, for example ``2 rounds: too few for a verdict (...)``."""
    rounds = plural(size.blocks, "round")
    if size.verdicts == "none":
        needed = f"{size.fewest_blocks} for a first one, {size.reliable_blocks} for a reliable one"
        return f"{rounds}: too few for a verdict ({needed})"
    if size.comparisons == 0:
        return f"{rounds}: nothing to compare with the baseline"
    which = f"{rounds} or more" if size.most_blocks > size.blocks else rounds
    which = f"about {rounds} in the given time" if size.limited_by_time else which
    if size.verdicts == "exploratory":
        which += f", exploratory (fewer than {size.reliable_blocks} rounds)"
    if size.visible:
        sizes = ", ".join(f"{kind} {plain_number(100 * cost, 2)}%" for kind, cost in size.visible.items())
        return f"{which}: can detect costs from {sizes}, each in four of five runs. {noise_sentence(size.noise)}"
    if size.elsewhere:
        return (
            f"{which}. The smallest detectable cost depends on the noise of its hosts, which the run's control shows"
        )
    return f"{which}. {noise_sentence(size.noise)}"


_CHANGED = {"CPU": "CPU", "CPUs online": "number of CPUs", "kernel": "kernel"}


def noise_sentence(noise: KnownNoise) -> str:
    """Return the smallest cost that ten minutes can detect here, or why it is unknown and how to measure it."""
    again = "Run weighbridge doctor --noise again"
    if noise.outdated is not None:
        old = noise.outdated
        if old.what == AGE:
            return f"The measured noise of this machine is {old.now} days old. {again}"
        if old.what not in _CHANGED:
            return f"The noise was measured on another machine. {again}"
        return f"The noise was measured with another {_CHANGED[old.what]} ({old.before}, now {old.now}). {again}"
    if noise.cost is None and noise.measured:
        return f"10 minutes are too short for some trials of this machine (doctor --noise, {noise.measured})"
    if noise.cost is None:
        return "The smallest detectable cost depends on this machine's noise: run weighbridge doctor --noise"
    return f"{smallest_cost_text(noise.cost)} (doctor --noise, {noise.measured})"


def confirm_named(origin: Origin, resources: Iterable[ExternalResource], *, yes: bool, advice: str = "") -> None:
    """Ask as `confirm` does, for a study that does not run (completely) on this machine.

    ``advice`` says how the user can inspect the study first, if not with `weighbridge plan`.
    """
    _require_yes(origin, yes=yes, advice=advice)
    _ask(resources, yes=yes)


def confirm_use(origin: Origin, study: Study, *, yes: bool) -> None:
    """Ask before a command uses a study without a run, if the study is not bundled."""
    if not origin.is_bundled:
        confirm_named(origin, external_resources(study), yes=yes)


_HOW_TO_READ = {
    OriginKind.FILE: "Read what 'weighbridge plan {}' shows",
    OriginKind.RUN: "Read the study that 'weighbridge explain {} --save FILE' writes",
    OriginKind.FLEET: "Read {}/fleet.json",
}
"""How a user reads a study before agreeing to it."""


def _require_yes(origin: Origin, *, yes: bool, advice: str = "") -> None:
    if not (yes or origin.is_bundled or _person_there()):
        advice = advice or _HOW_TO_READ[origin.kind].format(origin.name)
        _needs_yes(f"{origin.name} is not a bundled study", advice)


def _ask(resources: Iterable[ExternalResource], *, yes: bool) -> None:
    """Show the external resources of a study, and ask the user if there is a terminal."""
    tell(resources)
    if not yes and _person_there():
        typer.confirm("Start?", default=True, abort=True, err=True)


def confirm_continued(directory: Path, *, yes: bool) -> bool:
    """Show the external resources of the study in a run, and ask before it starts again; return whether it asked.

    A bundled study needs no question. Any other study can start programs, even without external resources, so it
    needs ``yes`` without a terminal. Raises RunDirectoryError if the directory has no run, SecretError if a secret
    of the run has no value or a different value.
    """
    with RunStore(directory) as store:
        store.require_changeable()
        study = running.study_of(store)
        if not can_continue(store):
            raise RunDirectoryError(f"{directory} cannot be continued: {VERSIONS_GONE}")
        if known := store.secrets():
            secret_values.expect(known, store.identity)
    names = secrets_of(study)
    of_compose = names_compose_file(study.text)
    again = shlex.join(("weighbridge", "run", "STUDY", "--out", str(directory))) if of_compose else ""
    require_values(names, same=True, again=again)
    tell_secrets(names)
    if is_bundled(study):
        return False
    tell(external_resources(study))
    if not yes and not _person_there():
        advice = f"Read it on the page that 'weighbridge report {directory}' writes"
        _needs_yes(f"the study in {directory} is not a bundled study", advice)
    if not yes:
        typer.confirm("Continue?", default=True, abort=True, err=True)
    return True


_HEADINGS = {True: "The fleet contacts or reads:", False: "The study starts, reads or contacts:"}
"""The headings for the parts that the command line names (machines of a fleet) and for the study's parts."""
_ABOUT_LINES = {"ssh configuration": ", its lines:", "kubeconfig": ", its fields:"}


def resource_lines(resources: Iterable[ExternalResource], width: int | None = None) -> list[str]:
    """List the external resources of a study, indented below headings, with the lines of each configuration.

    If ``width`` is given, longer lines are broken between words.
    """
    every = tuple(resources)
    lines: list[tuple[int, str]] = []
    for of_fleet, heading in _HEADINGS.items():
        entries = [each for each in every if each.is_of_fleet == of_fleet]
        lines += [(0, heading)] if entries else []
        for each in entries:
            what = "folder" if each.kind == "file" and os.path.isdir(each.value) else each.kind  # noqa: PTH112
            about = _ABOUT_LINES.get(each.kind, ":") if each.lines else ""
            lines.append((2, f"{what} {plain(each.value, 1000)} ({each.place}){about}"))
            lines += [(4, plain(line, 500)) for line in each.lines]
    if width is None:
        return [" " * indent + text for indent, text in lines]
    return [line for indent, text in lines for line in _broken(indent, text, width)]


def _broken(indent: int, text: str, width: int) -> list[str]:
    """Break a line between words; what follows is indented more than any line, so it cannot pass for one."""
    return textwrap.wrap(
        text, max(40, width), initial_indent=" " * indent, subsequent_indent=" " * (indent + 6),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def tell(resources: Iterable[ExternalResource], console: Console | None = None) -> None:
    """Show the external resources of a study, on standard error unless another console is given."""
    console = console or err()
    for line in resource_lines(resources, console.width if console.is_terminal else None):
        console.print(line, markup=False, soft_wrap=True)


def _person_there() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty() and not ANSWER.events  # only events are allowed then


def _needs_yes(what: str, advice: str) -> NoReturn:
    fail(f"{what}. {advice}, then add --yes, because Weighbridge has no terminal to ask on", WRONG_COMMAND_LINE)
