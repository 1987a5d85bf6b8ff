"""What networks of several environments have in common in what they do not reach: each said in one way."""

NO_NETWORK = "network: none cannot carry a workload that needs a network"
LOOPBACK_IS_HERE = "'publish_on: loopback' cannot be reached from another host"
ONE_WAY = "a published port carries connections to the server only; a workload needs both ways"


def needs_bridge(option: str, network: str) -> str:
    """An option that is given with a network that has no use for it."""
    return f"'{option}' needs network: bridge, not {network}"


def joins_elsewhere(what: str, remedy: str = "put both roles on testbed hosts") -> str:
    """An option (``what``) whose network is not that of the other hosts."""
    return f"{what} would join a network that other hosts are not on: {remedy}"
