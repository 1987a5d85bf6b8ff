"""The immutable data types and the contracts that all other packages share. Nothing here reads or writes anything."""
