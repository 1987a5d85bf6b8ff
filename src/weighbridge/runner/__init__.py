"""Runs a study: opens environments, runs one trial at a time, saves each trial when it ends, and cleans up."""
