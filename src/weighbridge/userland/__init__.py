"""Builds and caches root filesystems, so that every environment runs exactly the same programs."""
