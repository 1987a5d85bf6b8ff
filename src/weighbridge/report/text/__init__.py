"""The sentences of a report, made from the results of the analysis."""
