"""The rounds and the time that would decide what a run left undecided, in words."""

from collections.abc import Mapping, Sequence

from weighbridge.analysis.next_step import MoreRounds, Obstacle, ObstacleCode
from weighbridge.analysis.results import EXTENDED_ERROR, Analysis
from weighbridge.model.flag import FlagCode
from weighbridge.report.text.formatting import level, margin, whole
from weighbridge.report.text.verdicts import duration_text
from weighbridge.statistics.precision import MOST_BLOCKS
from weighbridge.statistics.verdicts import ALPHA

_OBSTACLES: Mapping[ObstacleCode, str] = {
    "control-failed": "The control failed, so do not rely on the costs. Measure again on a quieter machine, into a "
    "new directory.",
    "too-close": f"{whole(MOST_BLOCKS)} rounds would not decide it. Longer trials or a quieter machine might.",
    "narrower-interval": "More rounds narrow the interval; how many would decide it is not known.",
    "unproven": "More rounds would not decide it, because the control failed.",
    "no-path": "More rounds would not decide it, because the network path is unknown.",
    "failed-trials": "More rounds would help only if their trials succeed.",
    "unknown-rounds": "More rounds might decide it; how many is not known.",
}

VERSIONS_GONE = (
    "the two versions that it compares have been removed. Weigh again with --keep-trees or a longer --within"
)
"""Why a run of ``weigh --base`` cannot get more rounds."""


def continuing(
    command: str, directory: str, *, yes: bool, variables: Sequence[str] = (), concurrent: bool = False
) -> tuple[str, ...]:
    """Return the words of the command that continues the run in ``directory``.

    ``variables``: the environment variables that hold the secrets of its study. ``concurrent``: whether it can run
    next to other runs.
    """
    options = [word for name in variables for word in ("--env", name)]
    options += ["--allow-concurrent"] if concurrent else []
    return (command, "--out", directory, *options, *(("--yes",) if yes else ()))


def first_set(variables: Sequence[str]) -> str:
    """Return which environment variables the user has to set before a run can continue."""
    values = "value" if len(variables) == 1 else "values"
    listed = " and ".join(filter(None, (", ".join(variables[:-1]), variables[-1])))
    return f"First set {listed} in your environment to the {values} that this run used."


def rounds_sentence(step: MoreRounds, analysis: Analysis) -> str:
    """Return the use of more rounds.

    For example ``Next: about 24 rounds (2 min more) would probably decide every undecided comparison.``
    """
    more = f" ({duration_text(step.seconds)} more)" if step.seconds is not None else ""
    about = "" if step.aim == "reliable-verdicts" else "about "
    return f"Next: {about}{step.rounds} rounds{more} {_gain(step, analysis)}.{_price(analysis)}"


def weigh_again(step: MoreRounds, analysis: Analysis) -> str:
    """Return the next step for a run that cannot be continued.

    For example ``Next: measure again with --rounds 24. These rounds would probably decide the undecided comparison.``
    """
    return f"Next: measure again with --rounds {step.rounds}. These rounds {_gain(step, analysis)}."


def _gain(step: MoreRounds, analysis: Analysis) -> str:
    """Return what the rounds would do."""
    if step.aim == "reliable-verdicts":
        return f"give {'a reliable verdict' if step.compared == 1 else 'reliable verdicts'}"
    if step.aim == "target-missed":
        return f"would probably reach {margin(analysis.target or 0.0)}"
    return _settles(step.undecided, step.decided)


def obstacle_sentence(obstacle: Obstacle, analysis: Analysis) -> str:
    """Return why no number of rounds is named for an undecided primary metric."""
    if obstacle.code == "some-undecided":
        return f"More rounds would decide only {obstacle.decided} of {obstacle.undecided} undecided comparisons."
    if obstacle.code == "disturbed":
        who = "other programs" if analysis.disturbance.took(FlagCode.OTHER_WORK) else "the hypervisor"
        return f"More rounds would not help, because {who} disturbed the run."
    return _OBSTACLES[obstacle.code]


def _price(analysis: Analysis) -> str:
    """Return the effect of added rounds on false alarms; empty without an earlier look, or after an extension."""
    if analysis.extended or not analysis.plan.next_looks.further:
        return ""
    return (
        f" Adding rounds after seeing results raises the false-alarm rate from {level(ALPHA)} to about "
        f"{level(EXTENDED_ERROR)}."
    )


def _settles(undecided: int, number: int) -> str:
    """Return how many of the undecided comparisons are decided, if each needs a number of rounds that is known."""
    if number < undecided:
        return f"would probably decide {number} of {undecided} undecided comparisons"
    if undecided == 1:
        return "would probably decide the undecided comparison"
    return f"would probably decide {'both' if undecided == 2 else f'all {undecided}'} undecided comparisons"
