"""Machines on which sites are opened."""
