"""Messages of OpenSSH, sudo and shells about unusable hosts, and one sentence with a remedy for each."""

import re

FAILED = 255
"""The exit code of OpenSSH for its own failures; others come from the remote program (ssh(1))."""
_THERE: tuple[tuple[str, str], ...] = (
    (r"sudo: .*(?:password is required|terminal is required|no askpass)",
     "sudo asks for a password there: allow this user python3 without one (NOPASSWD in /etc/sudoers.d)"),
    (r"is not in the sudoers|may not run sudo|not allowed to execute",
     "this user cannot use sudo there: allow python3 without a password (NOPASSWD in /etc/sudoers.d)"),
    (r"python3.*(?:not found|No such file)|not found.*python3",
     "python3 is not installed there: install it with the package manager there (3.9 or newer)"),
    (r"sudo\W+(?:No such file|(?:command )?not found)",
     "sudo is not installed there: log in as root instead, without 'sudo: true'"),
    (r"weighbridge: python3 is (\S+)", "its python3 has version {0}: install 3.9 or newer"),
    (r"account is currently not available|nologin",
     "the user has no shell there: choose another user in 'destination'"),
)  # fmt: skip
_TABLE: tuple[tuple[str, str], ...] = (
    (r"Could not resolve hostname ([^:]+):",
     "the name {0} is unknown: check 'destination', or give it a HostName in the ssh configuration"),
    (r"(ssh-keygen -f .+)$",
     "its host key differs from the key in known_hosts. If the machine was reinstalled, remove the old key with: "
     "{0}; otherwise the connection might be intercepted"),
    (r"REMOTE HOST IDENTIFICATION HAS CHANGED|[Hh]ost key for .* has changed",
     "its host key differs from the key in known_hosts. If the machine was reinstalled, remove the old key with "
     "'ssh-keygen -R HOST'; otherwise the connection might be intercepted"),
    (r"[Hh]ost key verification failed|host key is known for",
     "its host key is unknown. Check it and accept it once with: {login}"),
    (r"Permission denied \(([^)]*)\)",
     "it accepts none of this user's keys (it offers {0}): add the public key to authorized_keys there, or set "
     "IdentityFile in the ssh configuration to the right key"),
    (r"Too many authentication failures",
     "too many keys were offered: set IdentityFile to the right key, with IdentitiesOnly, in the ssh configuration"),
    (r"Load key .*: (.+)$", "the key cannot be used ({0}): check the key file and its permissions"),
    (r"Connection refused", "no ssh server listens there (connection refused): start sshd"),
    (r"timed out|No route to host|Network is unreachable|Host is down",
     "it cannot be reached: check that it is on and that the address is right"),
    (r"Bad configuration option|[Bb]ad owner or permissions|Can't open user config|terminating, \d+ bad",
     "the ssh configuration cannot be used ({line}): correct it"),
)  # fmt: skip


def sentence(output: str, returncode: int, login: str) -> str:
    """Return what is wrong, by the output before the agent's first frame and by ssh's return code.

    ``login`` is the command that logs in to the host. An unknown failure is described by the last lines: of ssh and
    its ProxyCommand, or of the remote program.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip(" @\r\n")]
    for pattern, template in _TABLE if returncode == FAILED else (*_THERE, *_TABLE):
        for line in lines:
            if match := re.search(pattern, line):
                return template.format(*match.groups(), line=line, login=login)
    if not lines:
        return "it closed the connection without a message"
    if returncode == FAILED:
        return f"ssh cannot connect to it: {'; '.join(line[:200] for line in lines[-3:])}"
    return f"it does not start python3: {lines[-1][:300]}"


def lost(output: str) -> str:
    """Return why a connection was lost, as a clause, by its last output."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    detail = f" ({lines[-1][:200]})" if lines else ""
    return f"the connection to it ended{detail}: check that it is on and reachable"
