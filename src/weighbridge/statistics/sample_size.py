"""How many blocks a statement needs: the only place that says when there are enough of them."""

from weighbridge.statistics.ranks import fewest_differences

MIN_BLOCKS_INTERVAL = 2
"""Blocks from which there is a spread, and so an interval."""

MIN_BLOCKS_VERDICT = fewest_differences(0.95)
"""Blocks from which a report gives costs, verdicts and noise floors, a gate an answer; of fewer it shows values.

The fewest, 6, with which an exact test can say at 5 % that there is a cost, at one look or at one of several: of
fewer a verdict would rest on normal noise alone. Among several comparisons Holm may need more
(`weighbridge.statistics.verdicts.fewest_blocks`).
"""

MIN_BLOCKS_SIGNED_RANK = 10
"""Blocks from which the exact signed-rank interval is fine enough. Below, a t interval is given, as exploratory."""
