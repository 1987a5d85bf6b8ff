"""What a private dockerd (20.10) adds to the packet filter is taken out again: all of it and nothing else."""

import json
from pathlib import Path

import pytest

from weighbridge.engines import firewall
from weighbridge.engines.firewall import undo

EMPTY = """\
:INPUT ACCEPT
:FORWARD ACCEPT
:OUTPUT ACCEPT"""
USERS = """\
:INPUT DROP
:FORWARD ACCEPT
:OUTPUT ACCEPT
:web -
-A INPUT -i lo -j ACCEPT
-A INPUT -p tcp -m tcp --dport 22 -m comment --comment "ssh for docker people" -j ACCEPT
-A FORWARD -i virbr0 -o eth0 -j ACCEPT
-A web -s 10.0.0.0/8 -j RETURN""".replace("- \n", "-\n")
FILTER = """\
:DOCKER -
:DOCKER-ISOLATION-STAGE-1 -
:DOCKER-ISOLATION-STAGE-2 -
:DOCKER-USER -
-A FORWARD -j DOCKER-USER
-A FORWARD -j DOCKER-ISOLATION-STAGE-1
-A FORWARD -o wb-0a1b2c-0 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A FORWARD -o wb-0a1b2c-0 -j DOCKER
-A FORWARD -i wb-0a1b2c-0 ! -o wb-0a1b2c-0 -j ACCEPT
-A FORWARD -i wb-0a1b2c-0 -o wb-0a1b2c-0 -j ACCEPT
-A DOCKER -d 172.18.0.2/32 ! -i wb-0a1b2c-0 -o wb-0a1b2c-0 -p tcp -m tcp --dport 5301 -j ACCEPT
-A DOCKER-ISOLATION-STAGE-1 -i wb-0a1b2c-0 ! -o wb-0a1b2c-0 -j DOCKER-ISOLATION-STAGE-2
-A DOCKER-ISOLATION-STAGE-1 -j RETURN
-A DOCKER-ISOLATION-STAGE-2 -o wb-0a1b2c-0 -j DROP
-A DOCKER-ISOLATION-STAGE-2 -j RETURN
-A DOCKER-USER -j RETURN""".splitlines()
NAT = """\
:PREROUTING ACCEPT
:INPUT ACCEPT
:OUTPUT ACCEPT
:POSTROUTING ACCEPT
:DOCKER -
-A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
-A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
-A POSTROUTING -s 172.18.0.0/16 ! -o wb-0a1b2c-0 -j MASQUERADE
-A POSTROUTING -s 172.18.0.2/32 -d 172.18.0.2/32 -p tcp -m tcp --dport 5301 -j MASQUERADE
-A DOCKER -i wb-0a1b2c-0 -j RETURN
-A DOCKER ! -i wb-0a1b2c-0 -p tcp -m tcp --dport 5301 -j DNAT --to-destination 172.18.0.2:5301""".splitlines()

HAIRPIN = NAT[8]
"""Gone when the container is stopped; there after a kill of dockerd."""


def with_docker(before: str) -> list[str]:
    """A filter table once dockerd ran: its chains and rules, and the policy that it sets."""
    lines = before.replace(":FORWARD ACCEPT", ":FORWARD DROP").splitlines()
    chains = [line for line in lines if line.startswith(":")]
    return [*chains, *FILTER[:4], *FILTER[4:10], *(line for line in lines if line.startswith("-A")), *FILTER[10:]]


def after(now: list[str], steps: list[tuple[str, ...]]) -> list[str]:
    """The table once the steps were taken, as iptables takes them: a chain that is in use cannot be deleted."""
    import shlex

    left = list(now)
    for action, *rest in steps:
        if action == "-D":
            rule = next(line for line in left if line.startswith("-A") and shlex.split(line)[1:] == rest)
            left.remove(rule)
        elif action == "-X":
            (chain,) = rest
            uses = [line for line in left if line.startswith("-A") and chain in shlex.split(line)]
            assert uses == [], f"{chain} is in use"
            left = [line for line in left if not line.startswith(f":{chain} ")]
        else:
            assert action == "-P"
            left = [f":{rest[0]} {rest[1]}" if line.startswith(f":{rest[0]} ") else line for line in left]
    return left


@pytest.mark.parametrize("before", [EMPTY, USERS])
def test_the_filter_table_is_as_it_was(before: str):
    now = with_docker(before)
    steps = undo(set(before.splitlines()), now)
    assert sorted(after(now, steps)) == sorted(before.splitlines())
    actions = [step[0] for step in steps]
    assert actions == sorted(actions, key=["-D", "-X", "-P"].index), "rules, then chains, then policies"


def test_the_policies_are_restored_even_where_the_table_was_never_used():
    steps = undo(set(), with_docker(EMPTY))
    assert ("-P", "FORWARD", "ACCEPT") in steps
    assert [step for step in steps if step[0] == "-P"] == [("-P", "FORWARD", "ACCEPT")]


def test_the_nat_table_is_as_it_was():
    now = [line for line in NAT if line != HAIRPIN]
    assert after(now, undo(set(NAT[:4]), now)) == NAT[:4]


def test_the_nat_table_is_as_it_was_even_where_a_rule_does_not_name_the_bridge():
    before = NAT[:4]
    steps = undo(set(before), NAT)
    assert after(NAT, steps) == before


@pytest.mark.parametrize("before", [EMPTY, USERS])
def test_nothing_added_nothing_to_do(before: str):
    assert undo(set(before.splitlines()), before.splitlines()) == []


def test_an_engine_that_was_there_before_keeps_its_rules():
    before = [line.replace("wb-0a1b2c-0", "docker0") for line in with_docker(USERS)]
    ours = ["-A FORWARD -o wb-0a1b2c-0 -j DOCKER", "-A DOCKER-ISOLATION-STAGE-2 -o wb-0a1b2c-0 -j DROP"]
    now = [*before, *ours]
    steps = undo(set(before), now)
    assert after(now, steps) == before
    assert [step[0] for step in steps] == ["-D", "-D"]


def test_what_the_user_adds_meanwhile_stays():
    added = ["-A INPUT -s 192.0.2.1/32 -j DROP", '-A INPUT -m comment --comment "a b" -j LOG', "-A web -j DROP"]
    now = [*with_docker(USERS), *added]
    left = after(now, undo(set(USERS.splitlines()), now))
    assert sorted(left) == sorted([*USERS.splitlines(), *added])


def test_quoted_arguments_stay_one():
    (step,) = undo(set(), ['-A DOCKER-USER -m comment --comment "for all, \\"really\\"" -j RETURN'])
    assert step == ("-D", "DOCKER-USER", "-m", "comment", "--comment", 'for all, "really"', "-j", "RETURN")


@pytest.mark.parametrize("adds", [None, *firewall.Adds])
@pytest.mark.parametrize("quote", ["", '"'])
def test_the_rules_of_our_own_bridges_stay(adds: firewall.Adds | None, quote: str):
    """Also those of another run that goes on."""
    comment = f"-m comment --comment {quote}weighbridge-123456abcdef{quote}"
    bridge = f"-A FORWARD -i wb-abcdef-b0 -o wb-abcdef-b0 {comment} -j ACCEPT"
    assert undo(set(), [bridge], adds) == []
    assert all("weighbridge-123456abcdef" not in step for step in undo(set(), [bridge, *FILTER], adds))


# -- remember and restore --------------------------------------------------------------------------


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """A host with iptables; what is run on it is noted under "run"."""
    tables = {"filter": USERS.splitlines(), "nat": NAT[:4], "run": []}

    def output(argv: tuple[str, ...]) -> str:
        if argv[0] == "iptables-save":
            rows = [line + (" [12:3456]" if line.startswith(":") else "") for line in tables[argv[2]]]
            return "\n".join(["# Generated by iptables-save", f"*{argv[2]}", *rows, "COMMIT"])
        assert argv[:3] == ("iptables", "--wait", "-t")
        tables["run"].append(" ".join(argv[3:]))
        tables[argv[3]] = after(tables[argv[3]], [argv[4:]])
        return ""

    monkeypatch.setattr(firewall, "output", output)
    monkeypatch.setattr(firewall, "_sysctl", lambda _: None)
    return tables


def test_what_is_remembered_is_restored(tmp_path: Path, host: dict[str, list[str]]):
    before = {table: list(host[table]) for table in firewall.TABLES}
    assert firewall.count() == 4
    firewall.remember(tmp_path)
    host["filter"], host["nat"] = with_docker(USERS), [line for line in NAT if line != HAIRPIN]
    firewall.restore(tmp_path)
    assert {table: sorted(host[table]) for table in before} == {table: sorted(before[table]) for table in before}
    assert list(tmp_path.iterdir()) == []
    host["run"].clear()
    firewall.restore(tmp_path)
    assert host["run"] == [], "without a note nothing is touched"


def test_a_note_that_is_there_is_kept(tmp_path: Path, host: dict[str, list[str]]):
    firewall.remember(tmp_path)
    host["filter"] = with_docker(USERS)
    firewall.remember(tmp_path)
    note = json.loads((tmp_path / firewall.NOTE).read_text())
    assert note["rules"]["filter"] == USERS.splitlines()


def test_without_iptables_there_are_no_rules(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(firewall, "output", lambda _: None)
    assert firewall.count() == 0


NETAVARK = """\
:FORWARD ACCEPT
:NETAVARK_FORWARD -
-A FORWARD -m comment --comment "netavark firewall plugin rules" -j NETAVARK_FORWARD
-A NETAVARK_FORWARD -d 10.89.0.0/24 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
-A NETAVARK_FORWARD -s 10.89.0.0/24 -j ACCEPT""".splitlines()


def test_what_podman_adds_is_taken_out_and_what_docker_added_stays():
    """As netavark 1.4 left it beside a private dockerd."""
    now = [*NETAVARK, *FILTER]
    steps = undo({":FORWARD ACCEPT"}, now, firewall.Adds.PODMAN)
    assert steps[-1] == ("-X", "NETAVARK_FORWARD")
    assert [step[0] for step in steps] == ["-D", "-D", "-D", "-X"]
    assert not any("DOCKER" in word for step in steps for word in step)
    assert not any("NETAVARK" in word for step in undo(set(), now, firewall.Adds.DOCKER) for word in step)
    assert len(undo({":FORWARD ACCEPT"}, now)) == len(now) - 1
