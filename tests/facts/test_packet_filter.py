"""Which rules a probe crossed, from what real packet filters printed before and after it.

`nft-*.json` and `iptables-save-beside-nft-*.txt` are of one machine (nftables 1.1.7, iptables 1.8.13 on it), before
and after half a megabyte went through port 5999 to 6000; `nft-podman.json` is what netavark 1.17.2 made for a port;
`nft-docker-28.json` is the ruleset behind the iptables-save of Docker 28.5.2.
"""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from weighbridge.facts.packet_filter import count_nftables, crossed_rules, parse

DATA = Path(__file__).parent / "data"


def text(name: str) -> str:
    return (DATA / name).read_text()


def test_rules_whose_counters_rose_were_crossed():
    before, after = (parse(text(f"iptables-save-{when}.txt"), None) for when in ("before", "after"))
    assert crossed_rules(before, after) == [("filter INPUT", True), ("nat OUTPUT", True)]
    assert crossed_rules(after, after) == []
    assert crossed_rules(before, None) is None
    assert crossed_rules(parse("", None), parse("", None)) == []
    assert parse(None, None) is None


def test_rules_of_nftables_are_seen_beside_those_of_iptables():
    before, after = (
        parse(text(f"iptables-save-beside-nft-{when}.txt"), text(f"nft-{when}.json")) for when in ("before", "after")
    )
    assert crossed_rules(before, after) == [
        ("filter INPUT", False),
        ("filter INPUT", True),
        ("nat OUTPUT", True),
        ("nat ports", True),
        ("filter INPUT", True),
        ("filter services", True),
    ], "what iptables shows once, translation in its first packet, and chains that were led to"
    assert after is not None
    assert after.unseen == 5, "rules without a counter or with a shared one, but none of IPv6"


def test_without_iptables_its_tables_are_read_from_nftables():
    before, after = (parse(None, text(f"nft-{when}.json")) for when in ("before", "after"))
    met = crossed_rules(before, after)
    assert met is not None
    assert met.count(("filter INPUT", True)) == 2
    assert after is not None
    assert after.unseen == 5


def test_legacy_tables_are_none_of_nftables():
    saved = text("iptables-save-beside-nft-after.txt").replace(" (nf_tables)", "")
    before, after = parse("", text("nft-before.json")), parse(saved, text("nft-after.json"))
    met = crossed_rules(before, after)
    assert met is not None
    assert met.count(("filter INPUT", True)) == 3, (
        "one of a legacy table, and one of the table of its name in nftables"
    )


def test_rules_of_netavark_are_unseen():
    """None of its rules has a counter."""
    found = parse(None, text("nft-podman.json"))
    assert found is not None
    rules = [each for each in json.loads(text("nft-podman.json"))["nftables"] if "rule" in each]
    assert found.unseen == len(rules) == 18
    assert crossed_rules(found, found) == []


def test_every_rule_of_docker_on_iptables_is_seen():
    found = parse(None, text("nft-docker-28.json"))
    assert found is not None
    assert found.unseen == 0
    assert ("nat DOCKER", True) in found.met.values()
    assert ("raw PREROUTING", True) not in found.met.values(), "nftables calls it by its type"
    assert ("filter PREROUTING", True) in found.met.values()


def test_rules_of_nftables_are_counted_without_their_tables_and_chains():
    assert count_nftables(text("nft-podman.json")) == 18
    assert count_nftables("Error: no JSON support") is None


@given(st.text())
def test_no_text_is_a_fault(any_text: str):
    found = parse(any_text, any_text)
    assert crossed_rules(found, found) == []
