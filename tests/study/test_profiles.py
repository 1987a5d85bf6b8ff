"""Profiles: what is merged into a study, what is frozen, and how their mistakes are told."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentences import raises_sentence
from weighbridge.errors import StudyError
from weighbridge.features.guests import accelerator
from weighbridge.model.plugin import Readiness
from weighbridge.runner import set_up_time
from weighbridge.runner.estimate import seconds
from weighbridge.statistics.sample_size import MIN_BLOCKS_VERDICT
from weighbridge.study import profiles
from weighbridge.study.loader import with_blocks
from weighbridge.study.source import bundled, parse

STUDY = """\
# What it is about.
study: mine
question: What does it cost?
baseline: native
environments:
  native: {kind: native}
  second: &again {kind: native}
  third: *again
workloads:
  cpu: {kind: sysbench-cpu, duration: 2s}   # a control
  tcp: {kind: iperf3, duration: 2s}
repetitions: {target: 2%, min: 10, max: 20}
profiles:
  quick:
    repetitions: {blocks: 3}
    workloads:
      cpu: null
      tcp: {duration: 1s}
  other:
    seed: 7
    environments:
      second: {cpu_share: 90%}
    workloads:
      tcp: {kind: sysbench-cpu}
resources: {cpus: 1}
"""
TESTBED = STUDY.replace(
    "baseline:",
    "hosts:\n  a: {kind: testbed, link: 10mbit}\n  b: {kind: testbed}\nplacement: {client: a, server: b}\nbaseline:",
)


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "mine.yaml"
        path.write_text(text)
        return str(path)

    return write


def test_a_profile_is_merged_and_frozen(written):
    study = profiles.load(written(STUDY), "quick")
    assert [(cell.workload, cell.options.duration) for cell in study.cells] == [("tcp", 1.0)]
    assert (study.file.repetitions.blocks, study.file.repetitions.target) == (3, None)
    assert study.text.startswith("# mine, profile 'quick'\n") and "profiles:" not in study.text
    again = profiles.check(parse(study.text, "frozen"))
    assert (again.cells, again.arms) == (study.cells, study.arms)
    assert with_blocks(study, 2).file.repetitions.blocks == 2


def test_each_profile_is_the_one_that_is_loaded_by_its_name(written):
    path = written(STUDY)
    each = {name: (study.file, study.arms, study.cells) for name, study in profiles.load_each(path)}
    by_name = {name: profiles.load(path, name) for name in (profiles.STANDARD, "quick", "other")}
    assert each == {name: (study.file, study.arms, study.cells) for name, study in by_name.items()}
    assert [name for name, _ in profiles.load_each(written(STUDY.partition("profiles:")[0]))] == [profiles.STANDARD]


def test_another_kind_replaces_the_whole_entry_and_aliases_stay_apart(written):
    study = profiles.load(written(STUDY), "other")
    assert study.cells[1].kind == "sysbench-cpu" and study.cells[1].options.duration != 2.0
    shares = {arm.name: arm.options.cpu_share for arm in study.arms}
    assert (shares["second"], shares["third"]) == (0.9, None)
    assert study.file.seed == 7


def test_an_unknown_profile_names_the_nearest(written):
    with raises_sentence(StudyError):
        profiles.load(written(STUDY), "quik")
    with raises_sentence(StudyError):
        profiles.load(written(STUDY.split("profiles:", maxsplit=1)[0]), "quick")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("tcp: {duration: 1s}", "tcp: {duraton: 1s}"),
        ("tcp: {duration: 1s}", "tcp: {duration: 1}"),
        ("cpu: null", "cpuu: null"),
        ("repetitions: {blocks: 3}", "study: yours"),
        ("repetitions: {blocks: 3}", "profiles: {}"),
        ("tcp: {kind: sysbench-cpu}", "tcp: {kind: iperf4}"),
        ("seed: 7", "baseline: nativ"),
    ],
)
@pytest.mark.parametrize("profile", [None, "quick"])
def test_mistakes_in_any_profile_are_told_with_their_line(written, right, wrong, profile):
    assert right in STUDY
    with raises_sentence(StudyError):
        profiles.load(written(STUDY.replace(right, wrong)), profile)


def test_profiles_that_are_none(written):
    for text in (
        "profiles: 3",
        "profiles: [quick]",
        "profiles: {quick: 3}",
        "profiles: {'': {}}",
        "profiles: {quick: }",
    ):
        with pytest.raises(StudyError, match=r"mine\.yaml"):
            profiles.load(written(STUDY.split("profiles:", maxsplit=1)[0] + text), "quick")


def test_a_link_is_set_on_every_testbed_host(written):
    study = profiles.load(written(TESTBED), "quick", "100mbit")
    assert [host.link for host in study.file.hosts.values()] == [1e8, 1e8]
    assert "link 100mbit" in study.text.splitlines()[0]
    for link in "100", "fast", "1kbit":
        with raises_sentence(StudyError):
            profiles.load(written(TESTBED), None, link)
    with raises_sentence(StudyError):
        profiles.load(written(STUDY), None, "100mbit")


@pytest.mark.parametrize("study", bundled())
def test_every_profile_of_every_bundled_study_is_right_and_decides_something_or_is_a_rehearsal(study):
    for profile, loaded in profiles.load_each(study):
        repetitions = loaded.file.repetitions
        decides = (repetitions.blocks or repetitions.min) >= MIN_BLOCKS_VERDICT
        assert loaded.file.study == study and decides is not loaded.file.rehearsal, profile
        if profile.startswith("quick"):
            assert decides, f"{profile}: a quick profile asks less, and answers it"


@pytest.mark.parametrize(
    ("study", "profile"),
    [(name, each) for name in bundled() for each in profiles.profiles_of(name) if each.startswith("quick")],
)
def test_quick_profiles_fit_into_20_minutes_on_two_cpus_without_cache_and_kvm(
    study: str, profile: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("WEIGHBRIDGE_CACHE", str(tmp_path))
    monkeypatch.setattr(set_up_time, "cpus_online", lambda: [0, 1])
    monkeypatch.setattr(accelerator, "no_kvm", lambda: Readiness(False, "no KVM"))
    loaded = profiles.load(study, profile)
    set_up_s = set_up_time.set_up_s(loaded)
    builds = any(source is None or source.kind != "host" for source in loaded.sources.values())
    assert set_up_s > (20 if builds else 0) and set_up_s + seconds(loaded)[1] <= 20 * 60


def test_the_quick_profile_of_shared_storage_has_half_of_the_published_table_and_nothing_else():
    study = profiles.load("volume-vs-nfs", "quick")
    assert {arm.name for arm in study.arms if not arm.aa_of} == {"volume", "nfs-sync", "nfs-async"}
    assert [dict(cell.level) for cell in study.cells] == [
        {"disk_speed": "hdd-like", "sites": "1"}, {"disk_speed": "hdd-like", "sites": "10"},
    ]  # fmt: skip


VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abkind"), inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from(["seed", "workloads", "hosts", "repetitions", "x"]), VALUES, max_size=3))
def test_any_profile_is_merged_or_told(tmp_path_factory, changes):
    import io

    from ruamel.yaml import YAML

    text = io.StringIO()
    YAML(typ="safe").dump({"profiles": {"any": changes}}, text)
    path = tmp_path_factory.mktemp("any") / "mine.yaml"
    path.write_text(STUDY.split("profiles:", maxsplit=1)[0] + text.getvalue())
    try:
        study = profiles.load(str(path), "any")
    except StudyError:
        return
    assert "profiles" not in study.text
