"""Every mistake in a study file is one line: file, line, key and the nearest right spelling. No other exception."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from sentences import raises_sentence
from weighbridge import registry
from weighbridge.errors import StudyError
from weighbridge.hosts.options import SshOptions, TestbedOptions
from weighbridge.study.loader import load
from weighbridge.study.source import LARGEST

from .texts import LINES, NAME, changed, line_of, loaded

LINE = re.compile(rf"{re.escape(NAME)}:(\d+): (.+)")


def told(text: str) -> list[tuple[int, str]]:
    """Each mistake that is told: line and sentence."""
    with pytest.raises(StudyError) as caught:
        loaded(text)
    found = [LINE.fullmatch(line) for line in str(caught.value).splitlines()]
    assert found
    assert all(found), str(caught.value)
    return [(int(match[1]), match[2]) for match in found]


CPU = "cpu: {kind: sysbench-cpu, duration: 1s}"
NATIVE = "native: {kind: native}"
BRIDGE = "{kind: docker, network: bridge}"
TCP = "tcp: {kind: iperf3, duration: 1s}"
REPETITIONS = "repetitions: {blocks: 10}"
MISTAKES = {
    "unknown top key": ("equivalence: 3%", "equivalense: 3%"),
    "unknown key far from any": ("equivalence: 3%", "zzz: 3%"),
    "unknown key of an environment": (BRIDGE, "{kind: docker, netwrk: bridge}"),
    "unknown key of a workload": ("clients: 20", "clints: 20"),
    "unknown key of resources": ("cpus: 1", "cpu: 1"),
    "unknown kind of environment": (BRIDGE, "{kind: dokcer}"),
    "unknown kind of the baseline": (NATIVE, "native: {kind: nativ}"),
    "unknown workload": ("kind: redis-benchmark", "kind: redis-bench"),
    "a word of a kind of workload": ("kind: iperf3", "kind: redis"),
    "another word of a kind": ("kind: iperf3", "kind: wrk"),
    "a word of two kinds": ("kind: iperf3", "kind: nginx"),
    "more than a kind of environment": (BRIDGE, "{kind: docker-bridge}"),
    "the beginning of a kind of host": ("inside: [server]", "hosts: {a: {kind: test}}"),
    "memory of a workload": ("clients: 20", "memory: 1GiB"),
    "CPUs of a workload in a sweep": ("clients: 20", "cpus: [1, 2]"),
    "CPUs of an environment": (BRIDGE, "{kind: docker, pin: spread}"),
    "memory of the study": ("equivalence: 3%", "memory: 1GiB"),
    "unknown workload far from any": ("kind: iperf3", "kind: zzz"),
    "no kind": (BRIDGE, "{network: bridge}"),
    "kind is null": (BRIDGE, "{kind: }"),
    "kind is a list": (BRIDGE, "{kind: [docker, native]}"),
    "kind is a mapping": (BRIDGE, "{kind: {a: b}}"),
    "kind is a number": (BRIDGE, "{kind: 1}"),
    "kind has a tag": (BRIDGE, "{kind: !x docker}"),
    "a boolean as a level": ("clients: 20", "clients: [true, 10]"),
    "a boolean as a whole number": ("clients: 20", "clients: true"),
    "a boolean as a number of the study": (REPETITIONS, "repetitions: {blocks: true}"),
    "a boolean as a number with a fraction": ("cpus: 1", "cpus: true"),
    "no unit of time": ("tcp: {kind: iperf3, duration: 1s}", "tcp: {kind: iperf3, duration: 1}"),
    "no unit of size": ("512MiB", "512"),
    "no unit of a share": ("equivalence: 3%", "equivalence: 0.03"),
    "unknown unit": ("512MiB", "512mib"),
    "a longer word for a unit": (TCP, "tcp: {kind: iperf3, duration: 2seconds}"),
    "a unit of something else": ("512MiB", "512s"),
    "a negative size": ("512MiB", "-512MiB"),
    "a size that overflows": ("512MiB", f"{'9' * 400}MiB"),
    "a time that overflows": (TCP, f"tcp: {{kind: iperf3, duration: {'9' * 400}s}}"),
    "zero blocks": (REPETITIONS, "repetitions: {blocks: 0}"),
    "half a block": (REPETITIONS, "repetitions: {blocks: 1.5}"),
    "blocks and target": (REPETITIONS, "repetitions: {blocks: 10, target: 2%}"),
    "neither blocks nor target": (REPETITIONS, "repetitions: {max: 20}"),
    "min over max": (REPETITIONS, "repetitions: {target: 2%, max: 5}"),
    "baseline unknown": ("baseline: native", "baseline: nativ"),
    "baseline is a list": ("baseline: native", "baseline: [native]"),
    "placement of an unknown host": ("inside: [server]", "placement: {client: loca}"),
    "placement of an unknown role": ("inside: [server]", "placement: {clint: local}"),
    "inside of an unknown role": ("inside: [server]", "inside: [sever]"),
    "nobody inside": ("inside: [server]", "inside: []"),
    "unknown kind of host": ("inside: [server]", "hosts: {a: {kind: loca}}"),
    "network none": (BRIDGE, "{kind: docker, network: none}"),
    "network none in a sweep": (BRIDGE, "{kind: docker, network: [host, none]}"),
    "publish on host": (BRIDGE, "{kind: docker, network: host, publish: true}"),
    "unknown network": (BRIDGE, "{kind: docker, network: brige}"),
    "a workload that is a string": (CPU, "cpu: hello"),
    "a workload that is a list": (CPU, "cpu: [a]"),
    "a workload that is nothing": (CPU, "cpu:"),
    "a workload that is a set": (CPU, "cpu: !!set {kind, duration}"),
    "a number as a name": (CPU, "1: {kind: sysbench-cpu}"),
    "truth as a name": (CPU, "true: {kind: sysbench-cpu}"),
    "a name with a blank": (CPU, "my cpu: {kind: sysbench-cpu}"),
    "a name with a colour": (CPU, '"c\\e[31mpu": {kind: sysbench-cpu}'),
    "a name with a line break": ("study: small", 'study: "sm\\nall"'),
    "a name of 41 letters": ("study: small", f"study: {'s' * 41}"),
    "a number as study": ("study: small", "study: 2017"),
    "a date as study": ("study: small", "study: 2017-01-01"),
    "an empty sweep": ("clients: 20", "clients: []"),
    "a sweep of an unknown key": ("clients: 20", "clints: [1, 2]"),
    "a sweep with a wrong level": ("clients: 20", "clients: [1, x]"),
    "a level twice": ("clients: 20", "clients: [5, 6, 5]"),
    "too many combinations": ("clients: 20", f"clients: {list(range(1, 101))}, pipeline: {list(range(1, 101))}"),
    "the baseline is swept": (NATIVE, "native: {kind: docker, network: [host, bridge]}"),
    "the name of the A/A arm": ("bridge: {", "native-again: {"),
    "unknown pin": ("pin: spread", "pin: spred"),
    "a CPU list that is none": ("pin: spread", "pin: {server: x}"),
    "a CPU range of three": ("pin: spread", "pin: {server: 0-1-2}"),
    "a CPU range backwards": ("pin: spread", "pin: {server: 3-1}"),
    "a CPU range without end": ("pin: spread", "pin: {server: 0-99999999999}"),
    "infinite CPUs": ("cpus: 1", "cpus: .inf"),
    "CPUs of a host without end": ("inside: [server]", 'hosts: {a: {kind: testbed, cpus: "0-400000000"}}'),
    "CPUs of a host that overlap without end": (
        "inside: [server]",
        f'hosts: {{a: {{kind: testbed, cpus: "{",".join(["0-8191"] * 9000)}"}}}}',
    ),
    "CPUs of a host backwards": ("inside: [server]", "hosts: {a: {kind: testbed, cpus: 3-1}}"),
    "a CPU of a host that is a number": ("inside: [server]", "hosts: {a: {kind: testbed, cpus: 0}}"),
    "no number of CPUs": ("cpus: 1", "cpus: .nan"),
    "no CPUs": ("cpus: 1", "cpus: 0"),
    "too little memory": ("512MiB", "1B"),
    "no resources": ("{cpus: 1, memory: 512MiB, pin: spread}", ""),
    "a negative seed": ("seed: 7", "seed: -1"),
    "a seed that no database holds": ("seed: 7", f"seed: {2**63}"),
    "a seed that Python does not print": ("seed: 7", f"seed: 0x{'f' * 9000}"),
    "a negative one": ("seed: 7", f"seed: -0x{'f' * 9000}"),
    "a question that is empty": ("What does it cost?", "''"),
    "a duplicate key": ("seed: 7", "seed: 7\nbaseline: x"),
    "a key twice on a line": ("clients: 20", "clients: 20, clients: 3"),
    "no truth": (BRIDGE, "{kind: docker, publish: yes please}"),
    "no number to sweep": ("clients: 20", "clients: many"),
    "no number where nothing is swept": ("seed: 7", "seed: x"),
    "too long a period": ("cpus: 1", "cpu_period: 2s"),
    "too large a share": (NATIVE, "native: {kind: native, cpu_share: 101%}"),
    "too slow a link": (BRIDGE, "{kind: netns, rate: 5bit/s}"),
    "a role instead of a list": ("inside: [server]", "inside: server"),
    "an unknown role of pin": ("pin: spread", "pin: {sever: '0'}"),
    "pin is a number": ("pin: spread", "pin: 3"),
    "a CPU that is a number": ("pin: spread", "pin: {server: 0}"),
    "a number of blocks": (REPETITIONS, "repetitions: 3"),
    "a host without a kind": ("inside: [server]", "hosts: {a: {}}"),
    "another machine's idle CPUs": ("inside: [server]", "cpu_idle: poll\nhosts: {a: {kind: ssh, destination: b}}"),
    "a host of ssh to nowhere": ("inside: [server]", "hosts: {a: {kind: ssh}}"),
    "an option for ssh": ("inside: [server]", "hosts: {a: {kind: ssh, destination: -oProxyCommand=x}}"),
    "an unknown key of a host": ("inside: [server]", "hosts: {a: {kind: testbed, lnk: 100mbit}}"),
    "hosts without roles": ("inside: [server]", "hosts: {a: {kind: testbed}, b: {kind: testbed}}"),
    "a host without a role": (
        "inside: [server]",
        "hosts: {a: {kind: testbed}, b: {kind: testbed}}\nplacement: {client: a, server: a}",
    ),
    "a link that is too fast for offloads": (
        "inside: [server]",
        "hosts: {a: {kind: testbed, link: 1gbit, offloads: true}}",
    ),
    "a ladder to nowhere": ("inside: [server]", "ladder: [native, brigde]"),
    "a ladder to nothing": ("inside: [server]", "ladder: [native, {bridge: nativ}]"),
    "a ladder that begins in the air": ("inside: [server]", "ladder: [{bridge: native}]"),
    "a step below its base": ("inside: [server]", "ladder: [{bridge: native}, native]"),
    "a step in a circle": ("inside: [server]", "ladder: [native, {bridge: bridge}]"),
    "a step that is listed twice": ("inside: [server]", "ladder: [native, bridge, native]"),
    "a step of a sweep": (
        f"bridge: {BRIDGE}\n",
        "bridge: {kind: docker, publish: [true, false]}\nladder: [native, bridge]\n",
    ),
    "a step with two bases": ("inside: [server]", "ladder: [native, {bridge: a, b: a}]"),
    "a step on a list": ("inside: [server]", "ladder: [native, {bridge: [native]}]"),
    "a number as a step": ("inside: [server]", "ladder: [native, 7]"),
    "a ladder of one word": ("inside: [server]", "ladder: native"),
    "options of an unknown workload": (BRIDGE, "{kind: docker, workloads: {tcq: {}}}"),
    "a wrong option in an environment": (BRIDGE, "{kind: docker, workloads: {cpu: {thread: 2}}}"),
    "an environment's name with its kind": (BRIDGE, "{kind: dokcer}"),
    "a share without a unit": ("equivalence: 3%", "equivalence: 3"),
    "an unclosed bracket": ("inside: [server]", "inside: [server"),
    "a tab": (f"  {NATIVE}", f"\t{NATIVE}"),
    "an unknown alias": (CPU, "cpu: *nobody"),
    "a program in a tag": (CPU, 'cpu: !!python/object/apply:os.system ["false"]'),
    "two documents": ("seed: 7", "seed: 7\n---\nseed: 8"),
}


@pytest.mark.parametrize(("old", "new"), MISTAKES.values(), ids=MISTAKES)
def test_each_mistake_is_one_line_with_its_place(old: str, new: str):
    with raises_sentence(StudyError) as refused:
        loaded(changed(old, new))
    assert LINE.fullmatch(str(refused.value)) and len(str(refused.value)) < 600


def test_the_line_is_that_of_the_key_itself():
    text = changed(CPU, "cpu:\n    kind: sysbench-cpu\n    duration: 1s\n    # a remark\n    thread: 2")
    assert told(text) == [
        (line_of(text, "thread: 2"), "unknown key 'thread'. Did you mean 'threads'?"),
    ]


def test_the_line_of_a_wrong_step_is_its_own():
    text = changed("inside: [server]", "ladder:\n- native\n- bridge: nativ\n- 7")
    assert [line for line, _ in told(text)] == [line_of(text, "- 7")]
    text = text.replace("- 7", "- brigde")
    assert [line for line, _ in told(text)] == [line_of(text, "bridge: nativ"), line_of(text, "- brigde")]


def test_every_mistake_is_told_at_once():
    text = LINES.replace("kind: iperf3", "kind: iperv").replace("clients: 20", "clients: many").replace("3%", "3")
    text = text.replace("equivalence", "equivalenc")
    assert [line for line, _ in told(text)] == [line_of(text, "equivalenc")]
    text = text.replace("equivalenc: 3\n", "")
    assert [line for line, _ in told(text)] == [line_of(text, "kind: iperv,"), line_of(text, "clients: many")]


@pytest.mark.parametrize("key", ["study", "question", "baseline", "environments", "workloads"])
def test_what_is_missing_is_named(key: str):
    text = re.sub(rf"^{key}:.*\n(  .*\n)*", "", LINES, flags=re.MULTILINE)
    assert told(text) == [(1, f"'{key}' is missing")]


@pytest.mark.parametrize(
    ("key", "value"), [(k, v) for k in ("environments", "workloads") for v in ("[a]", "x", "", "{}")]
)
def test_sections_are_mappings_with_something_in_them(key: str, value: str):
    text = re.sub(rf"^{key}:\n(  .*\n)*", f"{key}: {value}\n", LINES, flags=re.MULTILINE)
    (line, sentence), *more = told(text)
    assert (line, more) == (line_of(text, f"{key}:"), [])
    assert sentence.startswith(f"{key}: ")


@pytest.mark.parametrize(
    "text",
    ["", "\n\n", "# nothing\n", "- a\n- b\n", "hello", "42", "null", "[a, b]", "'text'", "---\n", "!!set {a}", "{}x",
     "%YAML 9.9\n---\na: 1\n", "a: b: c", "\x01", "&a [*a]", f"a: {'9' * 5000}", "? [a]\n: 1\n", "<<: 1\n", "&a"],
)  # fmt: skip
def test_what_is_no_study_at_all(text: str):
    assert told(text)


BOMB = "x0: &x0 [a, a, a]\n" + "".join(f"x{i}: &x{i} [{', '.join([f'*x{i - 1}'] * 9)}]\n" for i in range(1, 40))


@pytest.mark.parametrize("use", ["duration: *x39", "bogus: *x39", "kind: *x39", "duration: [*x39, 1s]"])
def test_aliases_that_multiply_do_no_harm(use: str):
    assert told(BOMB + LINES.replace("duration: 1s}", f"{use}}}", 1))


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
@pytest.mark.parametrize("depth", [30, 150, 700])
def test_deep_nesting_does_no_harm(opening: str, depth: int):
    closing = {"[": "]", "{a: ": "}"}.get(opening, "")
    assert told(f"study: \n {opening * depth}x{closing * depth}\n")
    assert told(changed(CPU, f"cpu: {'[' * depth}{']' * depth}"))


def test_an_anchor_that_is_used_twice_is_no_warning(recwarn: pytest.WarningsRecorder):
    assert loaded(LINES.replace("duration: 1s", "duration: &d 1s"))
    assert list(recwarn) == []


def test_a_mapping_that_holds_itself_does_no_harm():
    assert told(changed(CPU, "cpu: &me {kind: sysbench-cpu, threads: [*me, 1]}"))


# -- files -----------------------------------------------------------------------------------------


def _refused(path: object, *says: str) -> None:
    with pytest.raises(StudyError) as caught:
        load(str(path))
    assert len(str(caught.value).splitlines()) == 1
    assert all(word in str(caught.value) for word in (*says,)), str(caught.value)


def test_files_that_are_no_text(tmp_path: Path):
    _refused(tmp_path, str(tmp_path), "is a directory")
    _refused(tmp_path / "none.yaml", "there is no file")
    for name, data in {"binary": bytes(range(256)), "nul": b"a: \0", "utf16": LINES.encode("utf-16")}.items():
        (tmp_path / f"{name}.yaml").write_bytes(data)
        _refused(tmp_path / f"{name}.yaml", f"{name}.yaml", "is not text")


def test_files_that_are_too_large(tmp_path: Path):
    big = tmp_path / "big.yaml"
    with big.open("wb") as file:
        file.truncate(50 * 2**20)
    _refused(big, "51200 KiB", "at most 256 KiB")
    big.write_text("#" * (LARGEST + 1))
    _refused(big, "at most")
    _refused("/dev/zero", "has more than")


def test_a_pipe_that_never_ends(tmp_path: Path):
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    os.write(writing, b"#" * 60_000)
    os.close(writing)
    _refused(f"/dev/fd/{reading}", ":1: ")
    os.close(reading)


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b", "\udcff", "no/such/thing"])
def test_names_of_nothing(name: str):
    _refused(name, "neither a file nor a bundled study", "'weighbridge studies' lists")


def test_a_folder_of_its_name_does_not_hide_a_bundled_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first-look").mkdir()
    assert load("first-look").file.study == "first-look"
    (tmp_path / "first-look").rmdir()
    (tmp_path / "first-look").write_text(LINES)
    assert load("first-look").file.study == "small"


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError(5, "Input/output error")])
def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError):
    usual = Path.open

    def refuse(path: Path, *arguments, **keywords):
        if path.name == "a.yaml":
            raise error
        return usual(path, *arguments, **keywords)

    (tmp_path / "a.yaml").write_text(LINES)
    monkeypatch.setattr(Path, "open", refuse)
    _refused(tmp_path / "a.yaml", "cannot read", error.strerror)


TWO = "hosts:\n  a: {kind: %s}\n  b: {kind: %s}\nplacement: {client: a, server: b}\nbaseline: native"


@pytest.mark.parametrize(
    ("client", "server", "reached"),
    [
        ("testbed", "testbed", True),
        ("local", "testbed", True),
        ("testbed", "local", True),
        ("local", "local", False),
        ("ssh, destination: x", "ssh, destination: y", True),
        ("ssh, destination: x", "testbed", False),
        ("ssh, destination: x", "local", False),
    ],
)
def test_hosts_that_do_not_reach_one_another(client: str, server: str, reached: bool):
    text = changed("baseline: native", TWO % (client, server)).replace(BRIDGE, "{kind: docker, network: host}")
    if reached:
        study = loaded(text)
        assert (study.client_hosts, study.server_host) == (("a",), "b")
        assert {cell.client for cell in study.cells} <= {"a", ""} and all(
            "client" not in dict(c.level) for c in study.cells
        )
        return
    ((line, sentence),) = told(text)
    assert line == line_of(text, "placement")
    assert sentence.startswith("placement: a and b ")


def test_two_hosts_of_one_kind_on_different_networks_do_not_reach_one_another(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(SshOptions, "networks", property(lambda options: {options.destination.partition(".")[2]}))
    text = changed("baseline: native", TWO % ("ssh, destination: a.lab", "ssh, destination: b.PLACE"))
    text = text.replace(BRIDGE, "{kind: docker, network: host}")
    assert loaded(text.replace("PLACE", "lab")).server_host == "b"
    ((line, sentence),) = told(text.replace("PLACE", "office"))
    assert line == line_of(text, "placement") and "hosts of kind ssh with these options" in sentence


def test_an_environment_is_refused_on_hosts_that_have_none_of_its_sites(monkeypatch: pytest.MonkeyPatch):
    """That alone is told, not what else its options lack there."""
    monkeypatch.setattr(TestbedOptions, "traits", replace(TestbedOptions.traits, managed=True))
    monkeypatch.setattr(type(registry.environments()["netns"]), "on_clusters", "only")
    text = changed("baseline: native", TWO % ("local", "testbed"))
    text = text.replace(BRIDGE, "{kind: docker, network: macvlan, attach: interface}")
    sentences = {sentence.split(":")[0]: sentence for _, sentence in told(text)}
    assert {*sentences} == {"native", "bridge"}
    assert all(said.endswith("(kind testbed); supported there: netns, pod") for said in sentences.values())


def test_nothing_is_outside_of_environments_on_hosts_that_no_environment_is(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(TestbedOptions, "traits", replace(TestbedOptions.traits, managed=True))
    monkeypatch.setattr(type(registry.environments()["pod"]), "as_host", lambda *_: None)
    text = changed("baseline: native", TWO % ("testbed", "local")).replace(BRIDGE, "{kind: docker, network: host}")
    ((line, sentence),) = told(text)
    assert line == line_of(text, "placement") and sentence.endswith("Add client to 'inside'")
    bridge = registry.environments()["docker"]
    monkeypatch.setattr(type(bridge), "as_host", lambda _, traits: bridge.options() if traits.managed else None)
    assert loaded(text).client_hosts == ("a",)
