"""Frozen data and the contracts between the parts. Nothing here reads or writes anything."""
