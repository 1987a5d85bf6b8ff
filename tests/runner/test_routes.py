"""Where the servers of a study listen: where they are told to, or at the only port that they can."""

from types import SimpleNamespace

from weighbridge.model.command import PublishedPort
from weighbridge.model.study import Study
from weighbridge.model.workload import Endpoint
from weighbridge.runner.routes import Routes, published_ports, taken_ports, unreached
from weighbridge.study.loader import check
from weighbridge.study.source import parse

TEXT = """
study: ports
question: Where?
userland: {kind: host}
baseline: native
environments:
  native: {kind: native}
  netns: {kind: netns}
workloads:
  told: {kind: command, server: 'a {port}', client: b}
  fixed: {kind: command, server: a, client: b, port: [7000, 8000]}
  solo: {kind: command, run: b}
"""


GIVEN = {("told", 0): 24000, ("fixed", 7000): 25000, ("fixed", 8000): 26000}
"""The free ports of a host that the servers of an environment were given."""


def made() -> Study:
    return check(parse(TEXT, "study.yaml"))


def test_a_published_port_leads_to_where_a_server_listens():
    study = made()
    assert published_ports(study, study.arms[0], GIVEN) == tuple(
        PublishedPort("tcp", reached + each, listens + each)
        for reached, listens in ((24000, 24000), (25000, 7000), (26000, 8000))
        for each in (0, 1)  # the server's and that of its data
    )


def test_nobody_else_is_given_a_fixed_port_as_the_first_or_second_of_two():
    assert taken_ports(made(), [{("told", 0): 24000}]) == {6999, 7000, 7999, 8000, 24000}


def password(text: str) -> str:
    """Of the first server of a study."""
    study, routes = check(parse(text, "study.yaml")), Routes()
    routes.give_ports(study, SimpleNamespace(free_ports=lambda taken: 24000 + len(taken)))  # type: ignore[arg-type]
    site = SimpleNamespace(listen="0.0.0.0", address="10.0.0.2", assigned_ports={}, reached={})
    ends = routes.endpoints(study.arms[0], study.cells[0], {"server": site, "client": site})  # type: ignore[dict-item]
    assert ends["server"].password == ends["client"].password
    return ends["server"].password


def test_servers_on_nodes_of_a_cluster_get_a_password_which_is_another_one_in_each_run():
    on_nodes = TEXT.replace("userland: {kind: host}", "hosts: {a: {kind: kubernetes}}").replace("netns", "service")
    on_nodes = on_nodes.replace("{kind: native}", "{kind: pod}").replace("kind: service", "kind: pod, reach: service")
    one, other = password(on_nodes), password(on_nodes)
    assert len(one) == len(other) == 32 and one != other
    assert password(TEXT) == ""


def test_who_is_unreached_is_told():
    told = str(unreached("native", "datagram", Endpoint("0.0.0.0", "10.0.0.2", 8000), 15))
    assert told == "environment native: no datagram from the client reached the server at 10.0.0.2 within 15 s"
