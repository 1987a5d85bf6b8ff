"""firewalld (firewalld(1)): whether it runs on this machine, where every interface is in one of its zones."""

import shutil

from weighbridge.linux.process import output

FACT = "firewalld"


def runs() -> bool:
    """Whether firewalld runs, as firewall-cmd(1) says; False where that is not installed or may not ask."""
    return shutil.which("firewall-cmd") is not None and output(("firewall-cmd", "--state")) == "running"
