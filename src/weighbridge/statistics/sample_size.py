"""How many blocks a statement needs: the only place that says when there are enough of them."""

MIN_BLOCKS_INTERVAL = 2
"""Blocks from which there is a spread, and so an interval."""

MIN_BLOCKS_VERDICT = 5
"""Blocks from which a report gives costs, verdicts and noise floors, a gate an answer; of fewer it shows values."""

MIN_BLOCKS_SIGNED_RANK = 10
"""Blocks from which the exact signed-rank interval is fine enough. Below, a t interval is given, as exploratory."""
