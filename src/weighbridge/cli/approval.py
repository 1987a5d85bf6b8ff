"""What a person is told and asked before a run starts: a study is code."""

import os
import shlex
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from weighbridge.cli.output import WRONG_COMMAND_LINE, err, fail
from weighbridge.errors import StudyError
from weighbridge.report.text.formatting import plural
from weighbridge.study.source import Origin, OriginKind

if TYPE_CHECKING:
    from rich.console import Console

    from weighbridge.model.secret import SecretName
    from weighbridge.model.study import Study
    from weighbridge.runner.known_noise import Decidable
    from weighbridge.secret_values import Comparison
    from weighbridge.study.brings import Brought


def load_named(
    name: str, profile: str | None = None, link: str | None = None, *, yes: bool
) -> "tuple[Study, Origin]":
    """Load the study that a user names. Return it with its origin.

    docker-compose reads a Compose file that it names only if the user agrees. Raises as
    `weighbridge.runner.compose_file.load_study`.
    """
    from weighbridge.runner.compose_file import load_study
    from weighbridge.study.brings import brought_compose
    from weighbridge.study.source import named_study

    def agree(file: str) -> None:
        tell([brought_compose(file)])
        if not yes and not _person_there():
            _needs_yes(f"{name} uses the Compose file {Path(file).absolute()}", "Read it")
        if not yes:
            typer.confirm("Read the Compose file?", default=True, abort=True, err=True)

    origin = named_study(name)
    return load_study(origin, agree, profile, link), origin


def approved_already(study: "Study", origin: Origin, *, yes: bool) -> "Study":
    """Return the study with ``approved`` as it is before any question: bundled studies and ``yes`` need none."""
    return study.model_copy(update={"approved": yes or origin.is_bundled})


def confirm(origin: Origin, study: "Study", directory: Path, *, yes: bool, rehearsal: bool = False) -> bool:
    """Show what will run and for how long, and ask the user; return whether continuing the run needs ``yes``.

    Without a terminal a study that is not bundled needs ``yes``. Raises Unavailable where the study cannot be run.
    """
    _require_yes(origin, yes=yes)
    from weighbridge.model.stored_study import secrets_of
    from weighbridge.runner.bundled import is_bundled
    from weighbridge.study.brings import brought_by

    require_values(names := secrets_of(study))
    announced = announce(approved_already(study, origin, yes=yes), directory, rehearsal=rehearsal)
    tell_secrets(names)
    _ask(brought_by(announced), yes=yes)
    return not is_bundled(announced)


def require_values(
    names: "Sequence[SecretName]", *, same: bool = False, again: str = ""
) -> "Mapping[SecretName, Comparison]":
    """Require that the secrets of a study have values, and that the study takes every value that the user gives.

    ``same``, ``again`` and the result: as in `secret_values.require`. Raises SecretError.
    """
    from weighbridge import secret_values
    from weighbridge.model.secret import variables_of
    from weighbridge.model.spelling import nearest

    for variable in secret_values.unknown_offers(names):
        hint = nearest(variable, variables_of(names))
        fail(f"--env {variable}: the study has no such secret{hint}", WRONG_COMMAND_LINE)
    return secret_values.require(names, same=same, again=again)


def secrets_lines(names: "Sequence[SecretName]") -> list[str]:
    """Say which secrets a study receives, and which of them have no value yet."""
    from weighbridge.model.secret import env_options, variables_of
    from weighbridge.secret_values import without_value

    lines = [f"the study receives these secrets: {', '.join(names)}"] if names else []
    if lacking := without_value(names):
        options = env_options(variables_of(lacking))
        lines.append(f"needs values: {', '.join(lacking)} (give them with {options})")
    return lines


def tell_secrets(names: "Sequence[SecretName]") -> None:
    """Show on standard error which secrets a study receives."""
    for line in secrets_lines(names):
        err().print(line, markup=False)


def announce(study: "Study", directory: Path, *, rehearsal: bool = False, timed: bool = True) -> "Study":
    """Tell what will be run, for how long and what it can decide; gives the study as it is run here.

    Not ``timed``: how long its programs take is not known before one has run, and nothing is said of it.

    Raises StudyError where its blocks can give no verdict and it is no ``rehearsal``, Unavailable where it cannot
    be run.
    """
    from weighbridge.cli.plan import whereabouts
    from weighbridge.runner.estimate import clock_range, seconds
    from weighbridge.runner.known_noise import decidable
    from weighbridge.runner.preflight import (
        left_out_line,
        not_ready,
        on_this_kernel,
        too_few_blocks,
        warnings,
        without_left_out,
    )
    from weighbridge.runner.run import readiness_of, require_ready
    from weighbridge.runner.userlands import require_userlands

    if not rehearsal and (why := too_few_blocks(study)):
        raise StudyError(why)
    for line in whereabouts(study):
        err().print(line, markup=False)
    study = on_this_kernel(study)
    left_out = not_ready(study, readiness_of)
    study = without_left_out(study, left_out)
    require_ready(study)
    require_userlands(study)
    if timed:
        arms, cells = plural(len(study.arms), "environment"), plural(len(study.cells), "workload")
        what = f"{arms} x {cells}, {clock_range(*seconds(study))}; {decides_sentence(decidable(study))}"
    else:
        what = ", ".join(arm.name for arm in study.arms)
    err().print(f"{study.file.study}: {what}; results go to {directory}", markup=False)
    for line in _explained_lines(study):
        err().print(line, markup=False)
    for each in left_out:
        err().print(f"note: {left_out_line(each)}", markup=False)
    for warning in warnings(study, timed=timed):
        err().print(f"note: {warning}", markup=False)
    return study


def _explained_lines(study: "Study") -> Iterator[str]:
    """What is switched off to explain costs, a line for each environment, and what cannot be."""
    from weighbridge.model.explained import sides
    from weighbridge.study.explained import unexplained

    present = {arm.name for arm in study.arms}
    for name in dict.fromkeys(each.environment for each in study.mechanisms if each.environment in present):
        mine = [each for each in study.mechanisms if each.environment == name]
        arms = study.arms_by_off(name)
        titles = [each.title for each in mine if sides(each, arms)]
        if titles:
            yield f"to explain {name}, switched off: {', '.join(titles)}"
        for each in (each for each in mine if each.refused):
            yield f"note: {name}: {each.title} cannot be switched off: {each.refused}"
    if nothing := unexplained(study):
        yield f"note: {nothing_switched(nothing)}"
    if study.file.trace is not None and any(arm.explains is not None for arm in study.arms):
        yield traced_afterwards(study.file.trace)


def traced_afterwards(tracer: str) -> str:
    """Say what a tracer will do."""
    return f"afterwards, uncounted: {tracer} watches this whole machine in what is explained"


def nothing_switched(names: Sequence[str]) -> str:
    """Say of which environments nothing can be switched off."""
    return f"nothing of {' and '.join(names)} can be switched off, so no cost of it is explained"


def decides_sentence(size: "Decidable") -> str:
    """Say what a run of this size can decide: ``2 blocks: a verdict is impossible (...)``."""
    from weighbridge.report.text.formatting import plain

    blocks = plural(size.blocks, "block")
    if size.verdicts == "none":
        first = f"{size.fewest_blocks} for a first one, {size.reliable_blocks} for a reliable one"
        return f"{blocks}: too few for a verdict ({first})"
    if size.comparisons == 0:
        return f"{blocks}: nothing to compare with the baseline"
    which = f"{blocks} or more" if size.most_blocks > size.blocks else blocks
    if size.verdicts == "exploratory":
        which += f", exploratory (below {size.reliable_blocks} blocks)"
    if size.visible:
        sizes = ", ".join(f"{kind} {plain(100 * cost, 2)} %" for kind, cost in size.visible.items())
        return f"{which}: can detect costs from {sizes} (80 % power; doctor --noise, {size.measured})"
    if size.on_nodes:
        return f"{which}; from what size on a cost shows depends on the nodes' noise, which the run's control tells"
    return f"{which}; from what size on a cost shows depends on this machine's noise: weighbridge doctor --noise"


def confirm_named(origin: Origin, brought: "Iterable[Brought]", *, yes: bool, advice: str = "") -> None:
    """Ask as `confirm` does, for a study that does not run on this machine or not as a whole.

    ``advice`` says how the user can read before that what the study brings, if not by `weighbridge plan`.
    """
    _require_yes(origin, yes=yes, advice=advice)
    _ask(brought, yes=yes)


def confirm_use(origin: Origin, study: "Study", *, yes: bool) -> None:
    """Ask before a command uses a study without a run, if the study is not bundled."""
    from weighbridge.study.brings import brought_by

    if not origin.is_bundled:
        confirm_named(origin, brought_by(study), yes=yes)


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


def _ask(brought: "Iterable[Brought]", *, yes: bool) -> None:
    """Show what a study brings, and ask the user if there is a terminal."""
    tell(brought)
    if not yes and _person_there():
        typer.confirm("Start?", default=True, abort=True, err=True)


def confirm_continued(directory: Path, *, yes: bool) -> bool:
    """Show what the study in a run brings, and ask before it starts again; return whether there was a question.

    A bundled study needs no question. Any other can start programs, even if it brings nothing. Without a terminal it
    needs ``yes``. Raises RunDirectoryError if there is no run, SecretError if a secret of the run has no value or
    another one.
    """
    from weighbridge import secret_values
    from weighbridge.model.stored_study import secrets_of
    from weighbridge.runner.bundled import is_bundled
    from weighbridge.runner.run import study_of
    from weighbridge.store.run import RunStore
    from weighbridge.study.brings import brought_by
    from weighbridge.study.compose_key import names_compose_file

    with RunStore(directory) as store:
        study = study_of(store)
        if known := store.secrets():
            secret_values.expect(known, store.identity)
    names = secrets_of(study)
    of_compose = names_compose_file(study.text)
    again = shlex.join(("weighbridge", "run", "STUDY", "--out", str(directory))) if of_compose else ""
    require_values(names, same=True, again=again)
    tell_secrets(names)
    if is_bundled(study):
        return False
    tell(brought_by(study))
    if not yes and not _person_there():
        advice = f"Read it on the page that 'weighbridge report {directory}' writes"
        _needs_yes(f"the study in {directory} is not a bundled study", advice)
    if not yes:
        typer.confirm("Continue?", default=True, abort=True, err=True)
    return True


_HEADINGS = {True: "The fleet contacts or reads:", False: "The study starts, reads or contacts:"}
"""The heading of what the command line names (the machines of a fleet), and of what the study names."""
_ABOUT_LINES = {"ssh configuration": ", its lines:", "kubeconfig": ", its fields:"}


def brought_lines(brought: "Iterable[Brought]", width: int | None = None) -> list[str]:
    """List what a study brings, indented below headings, with the lines of each configuration.

    If ``width`` is given, longer lines are broken between words.
    """
    from weighbridge.study.source import plain

    every = tuple(brought)
    lines: list[tuple[int, str]] = []
    for of_fleet, heading in _HEADINGS.items():
        entries = [each for each in every if each.is_of_fleet == of_fleet]
        lines += [(0, heading)] if entries else []
        for each in entries:
            what = "folder" if each.what == "file" and os.path.isdir(each.value) else each.what  # noqa: PTH112
            about = _ABOUT_LINES.get(each.what, ":") if each.lines else ""
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


def tell(brought: "Iterable[Brought]", console: "Console | None" = None) -> None:
    """Show what a study brings, on standard error unless another console is given."""
    console = console or err()
    for line in brought_lines(brought, console.width if console.is_terminal else None):
        console.print(line, markup=False, soft_wrap=True)


def _person_there() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _needs_yes(what: str, advice: str) -> NoReturn:
    fail(f"{what}. {advice}, then add --yes, because there is no terminal to ask on.", WRONG_COMMAND_LINE)
