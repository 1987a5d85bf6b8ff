"""Resource use over time in words: the round that is drawn, and its marks and bands."""

from weighbridge.analysis.overtime import BlockChoice, Picture
from weighbridge.analysis.use_by_level import ByLevel, generator_limited
from weighbridge.report.text.formatting import plain


def interval_words(use: ByLevel) -> str:
    """Return the meaning of the band round the medians."""
    intervals = [value.interval for row in use.rows for value in row.use.values()]
    most = max((value.blocks for row in use.rows for value in row.use.values()), default=0)
    if most < 2:
        return "one round has no interval"
    if all(intervals):
        return "the band is the median's 95% interval (order statistics)"
    if not any(intervals):
        return "the band spans all rounds, because fewer than six have no 95% interval"
    return "the band is the median's 95% interval, or spans all rounds if there are fewer than six"


def _why(choice: BlockChoice) -> str:
    """Return why this round was chosen."""
    return {
        "nearest": f"the nearest to the medians of {choice.complete} rounds",
        "only": "the only one",
        "most-results": "the one with the most results",
        "first-of-most-results": "the first with the most results",
    }[choice.reason]


def picture_caption(picture: Picture) -> str:
    """Return the caption of a picture: its round, and how to read it."""
    sentences = [f"Round {picture.block} ({_why(picture.choice)}) in running order"]
    sentences.append("each band is a trial in its environment's colour, its level above; click it for the raw output")
    if any(span.cut for span in picture.spans):
        sentences.append(f"dashed: time without {picture.group.title} is cut out")
    if any(not span.trial.ok for span in picture.spans):
        sentences.append("cross: a trial that was overloaded or failed")
    if any(generator_limited(span.trial) for span in picture.spans):
        sentences.append("triangle: the generator was the limit, not the server")
    step = f"a mean over at least {plain(picture.step_s, 2)} s" if picture.step_s else "one reading"
    sentences.append(f"each step is {step}")
    return ". ".join(each[0].upper() + each[1:] for each in sentences) + "."
