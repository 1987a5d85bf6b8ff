"""The kinds of storage of pods."""
