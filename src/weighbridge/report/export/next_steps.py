"""The next steps after a run, for programs: reasons and commands."""

from collections.abc import Iterator

from weighbridge.analysis.next_step import more_rounds, obstacle
from weighbridge.analysis.results import Analysis
from weighbridge.model.document import SuggestedStep
from weighbridge.model.secret import variables_of
from weighbridge.report.text.formatting import SPACE
from weighbridge.report.text.next_step import continuing, obstacle_sentence, rounds_sentence, weigh_again
from weighbridge.store.run import RunStore
from weighbridge.store.versions import can_continue


def reason_of(sentence: str) -> str:
    """Return the sentence of a next step as a key of a document: without no-break spaces, and without ``Next:``."""
    text = sentence.replace(SPACE, " ").removeprefix("Next: ")
    return f"{text[:1].upper()}{text[1:]}"


def next_steps(
    store: RunStore, analysis: Analysis, *, yes: bool = False, lasting: bool = True
) -> Iterator[SuggestedStep]:
    """Yield what would decide the things that a run left open, or why nothing would.

    ``yes``: whether the user has just agreed to run the study, so that its command needs no further question.
    ``lasting``: whether the versions of ``weigh --base`` stay after the present command.
    """
    start = (
        "weighbridge",
        *continuing("run", str(store.directory), yes=yes, variables=variables_of(store.secrets() or ())),
    )
    lasting = lasting and can_continue(store)
    if (step := more_rounds(analysis)) is not None:
        yield SuggestedStep(
            code=step.aim,
            reason=reason_of(rounds_sentence(step, analysis) if lasting else weigh_again(step, analysis)),
            command=(*start, "--rounds", str(step.rounds)) if lasting else None,
            seconds=step.seconds,
        )
    elif analysis.unfinished and analysis.trials and lasting:
        yield SuggestedStep(code="unfinished", reason="The run is not finished. Continue it.", command=start)
    if (stop := obstacle(analysis)) is not None:
        yield SuggestedStep(code=stop.code, reason=reason_of(obstacle_sentence(stop, analysis)))
