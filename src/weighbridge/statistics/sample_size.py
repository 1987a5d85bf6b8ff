"""The numbers of blocks that statements need; no other module defines them."""

from weighbridge.statistics.ranks import fewest_differences

MIN_BLOCKS_INTERVAL = 2
"""Number of blocks from which there is a spread, and so an interval."""

MIN_BLOCKS_VERDICT = fewest_differences(0.95)
"""Number of blocks from which a report gives costs, verdicts and noise floors, and a gate an answer.

With 6 or more blocks an exact test can show a cost at 5%, at one look or at one of several. With fewer, a verdict
would depend on the assumption of normal noise, and reports show only values. Among several comparisons Holm can need
more (`weighbridge.statistics.verdicts.fewest_blocks`)."""

MIN_BLOCKS_SIGNED_RANK = 10
"""Number of blocks from which the exact signed-rank interval is fine enough; below, a t interval is exploratory."""
