"""The Python API: loads runs, returns their costs as typed rows, measures and compares."""
