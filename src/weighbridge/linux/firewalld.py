"""firewalld (firewalld(1)): whether it runs on this machine, where every interface is in one of its zones."""

import shutil

from weighbridge.linux.process import output

FACT = "firewalld"


def runs() -> bool:
    """Return whether firewalld runs, by firewall-cmd(1); False if that is not installed or refuses."""
    return shutil.which("firewall-cmd") is not None and output(("firewall-cmd", "--state")) == "running"
