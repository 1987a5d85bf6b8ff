"""Everything that a report computes: comparisons, verdicts, remarks, curves, resource use. Reads the store."""
