"""What OpenSSH 9.2, sudo 1.9.13 and dash really said, and the sentence that a user gets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weighbridge.hosts.ssh import failures

CHANGED = """@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @
@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@
IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!
Someone could be eavesdropping on you right now (man-in-the-middle attack)!
It is also possible that a host key has just been changed.
The fingerprint for the ED25519 key sent by the remote host is
SHA256:/X1GlLIF1vqtPrBoJaHSlLyXpzML4ajBgoGJnI+jmi0.
Please contact your system administrator.
Add correct host key in /home/me/.ssh/known_hosts to get rid of this message.
Offending ED25519 key in /home/me/.ssh/known_hosts:1
  remove with:
  ssh-keygen -f "/home/me/.ssh/known_hosts" -R "[127.0.0.1]:20222"
Host key for [127.0.0.1]:20222 has changed and you have requested strict checking.
Host key verification failed.
"""
LOGIN = "ssh -F /home/me/cluster.conf root@127.0.0.1"
SAID = {
    "root@127.0.0.1: Permission denied (publickey,password,keyboard-interactive).": "none of this user's keys",
    CHANGED: 'remove the old key with: ssh-keygen -f "/home/me/.ssh/known_hosts" -R "[127.0.0.1]:20222";',
    "No ED25519 host key is known for [127.0.0.1]:20222 and you have requested strict checking.\r\n"
    "Host key verification failed.\r\n": f"is unknown. Check it and accept it once with: {LOGIN}",
    "Host key verification failed.": f"is unknown. Check it and accept it once with: {LOGIN}",
    "ssh: connect to host 127.0.0.1 port 20223: Connection refused\r\n": "no ssh server listens there",
    "ssh: connect to host 198.51.100.7 port 22: Connection timed out": "check that it is on",
    "ssh: connect to host 10.0.0.9 port 22: No route to host": "check that it is on",
    "ssh: Could not resolve hostname nosuch.invalid: Name or service not known": "nosuch.invalid is unknown",
    "sudo: a password is required": "NOPASSWD",
    "sudo: a terminal is required to read the password; either use the -S option": "NOPASSWD",
    "asked is not in the sudoers file.": "cannot use sudo",
    "env: 'sudo': No such file or directory": "sudo is not installed there",
    "/bin/sh: 1: exec: python3: not found": "python3 is not installed there",
    "bash: line 1: python3: command not found": "python3 is not installed there",
    "sudo: python3: command not found": "python3 is not installed there",
    "weighbridge: python3 is 3.8.18": "its python3 has version 3.8.18",
    "/home/me/.ssh/config: line 1: Bad configuration option: nonsense\r\n/home/me/.ssh/config: terminating, "
    "1 bad configuration options": "the ssh configuration cannot be used (/home/me/.ssh/config: line 1:",
    "Can't open user config file /nowhere: No such file or directory": "the ssh configuration cannot be used",
    "This account is currently not available.": "has no shell there",
    "Received disconnect from 10.0.0.9 port 22:2: Too many authentication failures": "IdentitiesOnly",
    "something new\nthat nobody has seen": "does not start python3: that nobody has seen",
    "": "closed the connection without a message",
    "\n \r\n": "closed the connection without a message",
}


@pytest.mark.parametrize("said", SAID)
def test_each_failure_has_its_sentence(said: str):
    told = failures.sentence(said, 1, LOGIN)
    assert SAID[said] in told
    assert "\n" not in told


@given(st.text(), st.sampled_from([0, 1, 127, 255, -15]))
def test_whatever_is_said_gives_one_sentence(said: str, returncode: int):
    for told in (failures.sentence(said, returncode, LOGIN), failures.lost(said)):
        assert told and len(told.splitlines()) == 1
