"""Writes a study as a folder of scripts and Compose files that a user can run without Weighbridge."""
