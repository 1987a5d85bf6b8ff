"""`weighbridge registry`: what a copy of a run leaves out, where it goes, and registries that a stranger changed."""

import io
import json
import lzma
import os
import re
import shutil
import sqlite3
import tarfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.command_line import one_sentence
from documents import fits
from report.made_up_runs import Recipe, make_run
from sentences import assert_sentence, raises_sentence
from weighbridge.errors import RunDirectoryError
from weighbridge.features.archive import kept_file as kept
from weighbridge.features.archive import registry_folder
from weighbridge.features.archive.entry import MOST_COSTS, cpu_count, folder_name, machine_folder, machine_title
from weighbridge.features.archive.kept_file import kept_file, opened
from weighbridge.model.measurement import Outcome
from weighbridge.store.run import DATABASE, RunStore
from weighbridge.store.unpacking import ENDING, MOST_PACKED, MOST_UNPACKED, unpacked

HOST = {
    "CPU": "Imaginary(R) CPU @ 2.00GHz", "CPUs online": "0-1,4", "memory": "23.5 GiB", "virtualisation": "kvm",
    "machine id": "0123456789abcdef", "node": "lab-7.example.org", "placed by": "Slurm job 17 on lab-7",
    "kernel command line":
        "root=UUID=8c1b0a52-7a45-4f6e-9d06-0c1d7e3a9b11 mitigations=off rd.password=geheim -- --for-init x",
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run whose facts, messages and keys name its user, a host and a secret, and its registry."""
    folder = tmp_path_factory.mktemp("made")
    facts = {"host": HOST, "host far": {"node": "build9.example.org", "address": "9.9.9.9"}}
    recipe = Recipe(
        costs={"bridge": 1.2}, blocks=12, facts=facts, series=True, outputs=True,
        message="no /home/alice/prog on lab-7.example.org", failing={(3, "bridge"): Outcome.PROGRAM_FAILED},
    )  # fmt: skip
    make_run(folder / "run", recipe).close()
    with closing(sqlite3.connect(folder / "run" / DATABASE)) as database, database:
        database.execute("UPDATE run SET value = ? WHERE key = 'secrets'", (json.dumps({"TOKEN": "d1ge57"}),))
        words = ["/home/alice/prog", "--to", "build9.example.org", "9.9.9.9"]
        database.execute("UPDATE process SET argv = ?", (json.dumps(words),))
    with RunStore(folder / "run") as store:
        data = kept_file(store).data
    registry_folder.add_run(folder / "registry", registry_folder.read_run(data, "a run").entry, data)
    registry_folder.rebuild(folder / "registry")
    return folder


@pytest.fixture
def private(made: Path, tmp_path: Path) -> Path:
    """A copy of the run."""
    return Path(shutil.copytree(made / "run", tmp_path / "run0"))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def copied(run: Path, **options: bool) -> bytes:
    with RunStore(run) as store:
        return unpacked(kept_file(store, **options).data, "a copy")


# -- what a copy leaves out ------------------------------------------------------------------------


def test_a_copy_has_no_names_of_its_user_hosts_and_disks_and_no_secrets(private: Path):
    content = copied(private)
    private_words = (
        b"alice",
        b"lab-7",
        b"build9",
        b"9.9.9.9",
        b"d1ge57",
        b"geheim",
        b"8c1b0a52",
        b"Slurm job",
        b"for-init",
    )
    assert all(word in (private / DATABASE).read_bytes() for word in private_words)
    assert [word for word in private_words if word in content] == []
    public_words = (b"/home/me/prog", b"TOKEN", b"mitigations=off", b"rd.password=...", b"0123456789abcdef")
    assert [word for word in public_words if word not in content] == []


def test_the_folders_of_two_versions_stay_different(run):
    store = run(costs={"head": 1.2}, blocks=8)
    store.close()
    with closing(sqlite3.connect(store.directory / DATABASE)) as database, database:
        document = json.loads(database.execute("SELECT document FROM study").fetchone()[0])
        for arm, version in zip(document["arms"], ("base", "head"), strict=False):
            arm["userland"] = {
                "kind": "host",
                "folder": f"/home/alice/.cache/weighbridge/revisions/0a1b2c3d/{version}",
            }
        database.execute("UPDATE study SET document = ?", (json.dumps(document),))
    with opened(kept_file(RunStore(store.directory)).data, "a copy") as copy:
        study = copy.study()
    assert study is not None
    assert [arm.userland and arm.userland["folder"] for arm in study.arms[:2]] == [
        "/home/me/project", "/home/me/project-2",
    ]  # fmt: skip


def test_the_names_of_hosts_stay_if_the_user_wants_them(private: Path):
    content = copied(private, host_names=True)
    assert all(word in content for word in (b"lab-7.example.org", b"build9", b"9.9.9.9", b"Slurm job 17"))
    assert b"alice" not in content and b"d1ge57" not in content


def test_a_host_that_is_named_like_a_word_loses_its_fact_alone(run):
    store = run(costs={"server": 1.2}, blocks=8, facts={"host": {**HOST, "node": "server"}})
    with opened(kept_file(store).data, "a copy") as copy:
        assert [value for scope, key, value, _ in copy.facts() if (scope, key) == ("host", "node")] == ["machine"]
        assert [name for name, *_ in copy.environments()] == [name for name, *_ in store.environments()]


def test_a_copy_has_the_readings_of_the_first_round_or_all(private: Path):
    def rounds(content: bytes) -> set[int]:
        with closing(sqlite3.connect(":memory:")) as database:
            database.deserialize(content)
            return {block for (block,) in database.execute("SELECT block FROM trial JOIN series ON trial.id = trial")}

    assert rounds(copied(private)) == {1} and rounds(copied(private, everything=True)) == {*range(1, 13)}


def test_a_copy_has_the_costs_of_its_run(private: Path):
    with RunStore(private) as store:
        data = kept_file(store).data
    costs = [entry_of_file(data), entry_of_file(lzma.compress((private / DATABASE).read_bytes()))]
    assert costs[0] == costs[1] and len(costs[0]) == 1


def entry_of_file(data: bytes):
    return registry_folder.read_run(data, "a file").entry.costs


@given(st.text(max_size=300))
def test_no_text_gives_a_strange_name_of_a_folder(text: str):
    for name in (folder_name(text, "study"), machine_folder({"CPU": text, "machine id": text})):
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) and len(name) <= 60


def test_a_machine_has_a_title_and_a_folder_that_do_not_change():
    assert machine_title(HOST) == "Imaginary CPU @ 2.00GHz, 3 CPUs, 23.5 GiB, kvm"
    folder = machine_folder(HOST)
    assert folder.startswith("imaginary-cpu-2-00ghz-") and folder == machine_folder({**HOST, "kernel": "another"})
    assert machine_folder({**HOST, "machine id": "another"}) != folder
    assert machine_title({}) == "unknown machine" and machine_folder({}).startswith("machine-")


@pytest.mark.parametrize(
    ("listed", "count"),
    [("0", 1), ("0-3,8", 5), ("", 0), ("3-0", 0), ("0-99999999", 0), ("a", 0)],
)
def test_the_cpus_of_a_list_are_counted(listed: str, count: int):
    assert cpu_count(listed) == count


# -- adding ----------------------------------------------------------------------------------------


def test_a_run_is_added_once_with_its_page_and_the_index(weighbridge, private: Path, tmp_path: Path):
    registry = tmp_path / "registry"
    said = weighbridge("registry", "add", private, registry)
    assert said.code == 0, said
    assert "command: /home/me/prog --to far far" in said.out and "secrets: only the names TOKEN" in said.out
    assert "replaced: /home/alice by /home/me" in said.out and f"git -C {registry} commit" in said.out
    assert f"git init -q {registry}" in said.out
    files = contents(registry)
    (kept_name,) = [name for name in files if name.endswith(ENDING)]
    assert re.fullmatch(r"machines/imaginary-cpu-2-00ghz-[0-9a-f]{8}/first-look/[0-9a-f]{12}\.sqlite\.xz", kept_name)
    page = kept_name.replace(ENDING, ".html")
    assert {*files} == {kept_name, page, "index.html"}
    with RunStore(private) as store:
        (cost,) = registry_folder.read_run(kept_file(store).data, "x").entry.costs
    index = files["index.html"].decode()
    assert f'href="{page}"' in index and f'<td class="different">{cost.cost}</td>' in index
    assert re.fullmatch(r"\d\d\.\d% \[\d\d\.\d,\s\d\d\.\d\]", cost.cost) and cost.verdict == "significant"
    assert cost.cost in files[page].decode() and kept_name.rpartition("/")[2] in files[page].decode()
    again = weighbridge("registry", "add", private, registry)
    assert again.code == 0 and "already there: " in again.out and "git -C" not in again.out
    assert contents(registry) == files


def test_a_run_that_has_grown_replaces_its_file(weighbridge, private: Path, tmp_path: Path):
    registry = tmp_path / "registry"
    weighbridge("registry", "add", private, registry)
    before = contents(registry)
    with closing(sqlite3.connect(private / DATABASE)) as database, database:
        database.execute("DELETE FROM trial WHERE block = 12")
    assert "added: " in weighbridge("registry", "add", private, registry).out
    after = contents(registry)
    assert before.keys() == after.keys() and all(before[name] != after[name] for name in before)


def test_raw_outputs_are_kept_on_demand(weighbridge, private: Path, tmp_path: Path):
    registry = tmp_path / "registry"
    assert weighbridge("registry", "add", private, registry, "--raw").code == 0
    (archive,) = registry.rglob("*.raw.tar.xz")
    with tarfile.open(fileobj=io.BytesIO(archive.read_bytes())) as tar:
        assert {*tar.getnames()} == {f"raw/{path.name}" for path in (private / "raw").iterdir()}
    assert f'href="{archive.relative_to(registry)}"' in (registry / "index.html").read_text()
    shutil.rmtree(private / "raw")
    one_sentence(weighbridge("registry", "add", private, registry, "--raw"), 6)


def test_a_check_prints_everything_and_writes_nothing(weighbridge, private: Path, tmp_path: Path):
    with closing(sqlite3.connect(private / DATABASE)) as database, database:
        database.execute("UPDATE process SET argv = json_array('prog', 'n' || rowid)")
        ((programs,),) = database.execute("SELECT count(*) FROM process")
    said = weighbridge("registry", "add", private, tmp_path / "registry", "--check")
    assert said.code == 0 and "Its copy contains:" in said.out and not (tmp_path / "registry").exists()
    assert said.out.count("  command: ") == programs
    (tmp_path / "registry/.git").mkdir(parents=True)
    added = weighbridge("registry", "add", private, tmp_path / "registry").out
    assert added.count("  command: ") == 6 and f"and {programs - 6} more commands: see --check" in added
    assert "git init" not in added


def test_runs_that_cannot_be_kept_are_refused(weighbridge, private: Path, tmp_path: Path, monkeypatch):
    registry = tmp_path / "registry"
    with closing(sqlite3.connect(private / DATABASE)) as database, database:
        database.execute("PRAGMA user_version=99")
    one_sentence(weighbridge("registry", "add", private, registry), 6)
    with closing(sqlite3.connect(private / DATABASE)) as database, database:
        database.execute("PRAGMA user_version=5")
        database.execute("DELETE FROM run WHERE key = 'secrets'")
        changed = 'json_set(document, \'$.file.userland\', json(\'{"env": {"A": "b"}}\'))'
        database.execute(f"UPDATE study SET document = {changed}")
    one_sentence(weighbridge("registry", "add", private, registry), 6)
    with closing(sqlite3.connect(private / DATABASE)) as database, database:
        database.execute("UPDATE study SET document = json_remove(document, '$.file.userland')")
    assert weighbridge("registry", "add", private, registry, "--check").code == 0
    monkeypatch.setattr(kept, "MOST_UNPACKED", 1000)
    one_sentence(weighbridge("registry", "add", private, registry), 6)
    assert not registry.exists()


def test_a_page_of_someone_else_is_not_replaced(weighbridge, private: Path, tmp_path: Path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site/index.html").write_text("<title>My site</title>")
    assert weighbridge("registry", "add", private, tmp_path / "site").code == 1
    assert contents(tmp_path / "site") == {"index.html": b"<title>My site</title>"}
    one_sentence(weighbridge("registry", "index", tmp_path / "site"), 1)
    one_sentence(weighbridge("registry", "index", tmp_path / "nothing"), 6)
    one_sentence(weighbridge("registry", "index", private), 6)


def test_the_index_is_made_from_the_cache_and_limits_the_costs_of_a_run(tmp_path: Path, monkeypatch):
    recipe = Recipe(costs={f"e{number}": 1.1 for number in range(MOST_COSTS + 3)}, blocks=2)
    with make_run(tmp_path / "run", recipe) as store:
        data = kept_file(store).data
    entry = registry_folder.read_run(data, "a run").entry
    assert (len(entry.costs), entry.further) == (MOST_COSTS, 3)
    registry_folder.add_run(tmp_path / "registry", entry, data)
    monkeypatch.setattr(registry_folder, "analyse", lambda _: pytest.fail("it was read before"))
    (listed,) = registry_folder.rebuild(tmp_path / "registry").runs
    assert listed.entry == entry


# -- registries that a stranger has changed --------------------------------------------------------


@pytest.fixture
def registry(made: Path, tmp_path: Path) -> Path:
    """A copy of the registry with this run."""
    return Path(shutil.copytree(made / "registry", tmp_path / "registry"))


def test_a_registry_is_listed_and_not_changed(weighbridge, registry: Path, tmp_path: Path):
    page = kept_path(registry).with_name(kept_path(registry).name.removesuffix(ENDING) + ".html")
    page.unlink()
    (registry / "machines/x.txt").touch()
    before = contents(registry)
    document = json.loads(weighbridge("registry", "list", registry, "--json").out)
    fits("registry", document)
    (run,) = document["runs"]
    assert registry / run["file"] == kept_path(registry) and run["run"] in run["file"]
    assert [each["file"] for each in document["skipped"]] == ["machines/x.txt"]
    said = weighbridge("registry", "list", registry).out
    assert said.splitlines()[0] == str(registry / run["file"]) and run["machine"] in said and run["created"] in said
    assert contents(registry) == before
    one_sentence(weighbridge("registry", "list", tmp_path / "nothing"), 6)
    kept_path(registry).unlink()
    assert json.loads(weighbridge("registry", "list", registry, "--json").out)["runs"] == []
    assert weighbridge("registry", "list", registry).out == "no run in it\n"


def kept_path(registry: Path) -> Path:
    (path,) = registry.rglob(f"*{ENDING}")
    return path


def replaced_by_link(path: Path, outside: Path) -> None:
    outside.write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(outside)


def moved_to_another_machine(path: Path, outside: Path) -> None:
    other = path.parents[2] / "another-machine/first-look"
    other.mkdir(parents=True)
    path.rename(other / path.name)


def with_trigger(path: Path, outside: Path) -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        database.deserialize(unpacked(path.read_bytes(), "x"))
        database.execute("CREATE TRIGGER t AFTER INSERT ON fact BEGIN DELETE FROM fact; END")
        path.write_bytes(lzma.compress(database.serialize()))


def with_pipe(path: Path, outside: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def with_folder(path: Path, outside: Path) -> None:
    path.unlink()
    path.mkdir()


def written(change: Callable[[bytes], bytes]) -> Callable[[Path, Path], None]:
    def apply(path: Path, outside: Path) -> None:
        path.write_bytes(change(path.read_bytes()))

    return apply


HOSTILE: dict[str, Callable[[Path, Path], None]] = {
    "cut-off": written(lambda data: data[:-40]),
    "followed": written(lambda data: data + b"more"),
    "not-xz": written(lambda _: b"not xz"),
    "empty": written(lambda _: b""),
    "not-a-run": written(lambda _: lzma.compress(b"not a database")),
    "bomb": written(lambda _: lzma.compress(bytes(MOST_UNPACKED + 1), preset=0)),
    "large": written(lambda _: bytes(MOST_PACKED + 1)),
    "link": replaced_by_link,
    "pipe": with_pipe,
    "folder": with_folder,
    "other-place": moved_to_another_machine,
    "trigger": with_trigger,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_file_that_is_not_a_kept_run_is_listed_and_skipped(weighbridge, registry: Path, tmp_path: Path, name: str):
    HOSTILE[name](kept_path(registry), tmp_path / "outside")
    outside = contents(tmp_path)
    said = weighbridge("registry", "index", registry, "--strict")
    assert said.code == 6, said
    skipped, *others, failure = said.err.splitlines()
    assert failure.startswith("weighbridge: ")
    assert all("belongs to no run" in each for each in others)
    assert_sentence(re.sub(r"(?<=ghz-)[0-9a-f]{8}", "DIGEST", re.sub(r"[0-9a-f]{12}", "RUN", skipped)))
    assert "(0 runs, " in said.out and "Skipped files" in (registry / "index.html").read_text()
    beside = {name: data for name, data in contents(tmp_path).items() if not name.startswith("registry/")}
    assert beside == {name: data for name, data in outside.items() if not name.startswith("registry/")}
    assert weighbridge("registry", "index", registry).code == 0


@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_folder_that_is_a_link_is_not_entered(weighbridge, registry: Path, tmp_path: Path, level: int):
    folder = (registry / "machines", kept_path(registry).parents[1], kept_path(registry).parent)[level]
    shutil.copytree(folder, tmp_path / "elsewhere")
    shutil.rmtree(folder)
    folder.symlink_to(tmp_path / "elsewhere")
    before = contents(tmp_path / "elsewhere")
    said = weighbridge("registry", "index", registry, "--strict")
    assert said.code == 6 and "is a symbolic link" in said.err and contents(tmp_path / "elsewhere") == before


def test_pages_of_a_stranger_are_replaced_or_named(weighbridge, registry: Path, tmp_path: Path):
    path = kept_path(registry)
    page = path.with_name(path.name.replace(ENDING, ".html"))
    good = page.read_bytes()
    (tmp_path / "victim").write_text("mine")
    page.unlink()
    page.symlink_to(tmp_path / "victim")
    (path.parent / "evil.html").write_text("<script>alert(1)</script>")
    (registry / "machines/Evil Name").mkdir()
    said = weighbridge("registry", "index", registry)
    assert said.code == 0 and (tmp_path / "victim").read_text() == "mine"
    assert not page.is_symlink() and page.read_bytes() == good
    assert len(said.err.splitlines()) == 2 and "evil.html" in said.err and "Evil Name" in said.err
    assert 'href="' not in (registry / "index.html").read_text().partition("Skipped files")[2]


def test_every_text_of_a_run_is_escaped_and_short(tmp_path: Path):
    evil = '"><script>alert(1)</script>' + "x" * 5000
    facts = {"host": {"CPU": evil, "evil": evil}}
    recipe = Recipe(costs={evil: 1.3}, blocks=8, study=evil, question=evil, facts=facts)
    with make_run(tmp_path / "run", recipe) as store:
        data = kept_file(store).data
    run = registry_folder.read_run(data, "a run")
    registry_folder.add_run(tmp_path / "registry", run.entry, data)
    registry_folder.rebuild(tmp_path / "registry")
    index = (tmp_path / "registry/index.html").read_text()
    assert "<script>alert" not in index + run.page and "&lt;script&gt;alert" in index
    assert max(map(len, index.partition("</style>")[2].splitlines())) < 4000


def test_a_damaged_file_is_named_by_its_place():
    with raises_sentence(RunDirectoryError):
        unpacked(lzma.compress(b"x")[:-1], "machines/a/b/c.sqlite.xz")
    with raises_sentence(RunDirectoryError), opened(lzma.compress(b"x" * 5000), "machines/a/b/c.sqlite.xz"):
        pass
