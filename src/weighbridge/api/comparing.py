"""Compares two runs."""

import os
from pathlib import Path

from weighbridge.api.rows import ComparedCost, Rows
from weighbridge.api.run import Run
from weighbridge.api.source import opened
from weighbridge.cli.declared import later
from weighbridge.cli.feature import features
from weighbridge.errors import Unavailable


def compare(first: Run | str | os.PathLike[str], second: Run | str | os.PathLike[str]) -> Rows[ComparedCost]:
    """Compare the costs of two runs of one study, as `weighbridge compare` does. Paths are loaded.

    A change is the change of a cost. It is significant only if it exceeds the noise floors of both runs and an
    allowance for differences between sessions. Absolute values of two runs are not compared, because the machine
    might have changed. Raises WeighbridgeError if the runs do not belong to one study.

    >>> changes = weighbridge.compare("runs/weigh-server", "runs/weigh-server-later")
    >>> [(each.environment, each.verdict) for each in changes.where(primary=True, control=False)]
    [('netns', 'undecided'), ('bridge', 'undecided')]
    """
    compared_costs = next((each.api["compared_costs"] for each in features() if "compared_costs" in each.api), None)
    if compared_costs is None:
        raise Unavailable("this installation cannot compare runs, because the feature 'gate' was removed from it")
    places = [each.path if isinstance(each, Run) else Path(each) for each in (first, second)]
    with opened(places[0]) as one, opened(places[1]) as other:
        return Rows(ComparedCost, later(compared_costs)(one, other, [str(each) for each in places]))
