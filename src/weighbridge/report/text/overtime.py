"""Resource use over time in words: which block is drawn, and what its marks and bands are."""

from weighbridge.analysis.overtime import BlockChoice, Picture
from weighbridge.analysis.use_by_level import ByLevel, generator_limited
from weighbridge.report.text.formatting import plain


def interval_words(use: ByLevel) -> str:
    """Return what the band round the medians is."""
    intervals = [value.interval for row in use.rows for value in row.use.values()]
    most = max((value.blocks for row in use.rows for value in row.use.values()), default=0)
    if most < 2:
        return "there is one block, and so no interval"
    if all(intervals):
        return "the band is the 95 % interval of the median, from order statistics"
    if not any(intervals):
        return "the band is from the smallest to the largest of the blocks: fewer than six have no 95 % interval"
    return "the band is the 95 % interval of the median, or all blocks where they are fewer than six"


def _why(choice: BlockChoice) -> str:
    """Why it is this block."""
    return {
        "nearest": f"of {choice.complete} blocks the one whose results are nearest to their medians",
        "only": "the only one",
        "most-results": "the one with the most results",
        "first-of-most-results": "the first of those with the most results",
    }[choice.why]


def picture_caption(picture: Picture) -> str:
    """Return the caption of a picture: which block it is, and how to read it."""
    sentences = [f"Block {picture.block} ({_why(picture.choice)}) in the order in which it ran"]
    sentences.append(
        "a band is a trial in its environment's colour, with its level above: it leads to the raw output"
    )
    if any(span.cut for span in picture.spans):
        sentences.append(f"dashed: time in which nothing of {picture.group.title} ran is cut out")
    if any(not span.trial.ok for span in picture.spans):
        sentences.append("cross: a trial without a value, broken under its load or failed")
    if any(generator_limited(span.trial) for span in picture.spans):
        sentences.append("triangle: the generator was the limit, not the server")
    step = f"the mean over at least {plain(picture.step_s, 2)} s" if picture.step_s else "one reading"
    sentences.append(f"each step is {step}")
    return ". ".join(each[0].upper() + each[1:] for each in sentences) + "."
